//! The present digests of cases, which select the stored trials of their present content.

use std::collections::BTreeMap;

use super::terminal;
use crate::case::Case;

/// Returns the present digests of cases, by id. A case that cannot be read is reported and left out.
pub fn of<'a>(cases: impl Iterator<Item = &'a Case>) -> BTreeMap<String, String> {
    let mut digests = BTreeMap::new();
    for case in cases {
        match case.digest() {
            Ok(digest) => _ = digests.insert(case.id.clone(), digest),
            Err(error) => terminal::note(format_args!("note: stored runs of case `{}` are not used: {error}", case.id)),
        }
    }
    digests
}

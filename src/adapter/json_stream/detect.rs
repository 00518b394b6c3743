//! Identifies the harness of a recording: the one whose `known-by` is true for one of its first lines.

use std::sync::LazyLock;

use serde_json::Value;

use crate::expression::{Expression, Scope, Work};
use crate::harness::Manifest;

/// Harnesses that know their recordings.
pub struct Knowing(Vec<(String, Expression)>);

static BUILT_IN: LazyLock<Knowing> = LazyLock::new(|| Knowing::of(crate::harness::built_in()));

impl Knowing {
    /// Those of these manifests that do.
    pub fn of<'m>(manifests: impl IntoIterator<Item = &'m Manifest>) -> Self {
        let known = manifests.into_iter().filter_map(|manifest| {
            let formula = manifest.known_by.as_ref()?;
            Some((manifest.name.clone(), Expression::compile(&formula.0, &["line"]).ok()?))
        });
        Self(known.collect())
    }

    /// Those that are built in.
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// The harness of a line, where exactly one knows it.
    pub fn of_line(&self, line: &Value) -> Option<&str> {
        let work = Work::default();
        let scope = Scope::new(&work).with("line", line);
        let mut found = self.0.iter().filter(|(_, known_by)| known_by.holds(&scope) == Ok(true));
        found.next().filter(|_| found.next().is_none()).map(|(name, _)| name.as_str())
    }
}

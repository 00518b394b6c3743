//! The report of `evals mine`: a table of the commits that were looked at, or JSON.

use std::io::{self, Write};

use super::page::{Block, Meaning, Page, Table, TableCell};
use super::text::plural;
use crate::mine::journal::{Looked, LookedStatus};
use crate::mine::{Mined, reservations};

/// The maximum number of characters of a subject.
const SUBJECT: usize = 60;
/// The maximum number of characters of a hash.
const HASH: usize = 10;

/// Builds the page: the table, followed by the result.
pub fn page(mined: &Mined) -> Page {
    let mut table =
        Table::new(["commit", "subject", "status", "fail to pass", "pass to pass", "flaky", "case or reason"]);
    table.right = vec![3, 4, 5];
    for looked in &mined.candidates {
        table.row(row(looked));
    }
    let looked_at = plural(mined.looked_at, "commit");
    let (meaning, verdict) = match mined.kept {
        0 => (Meaning::Bad, format!("{looked_at} looked at, no case made")),
        kept => (Meaning::Good, format!("{looked_at} looked at, {} made", plural(kept, "case"))),
    };
    let mut notes = Vec::new();
    for looked in mined.candidates.iter().filter(|looked| !looked.flaky.is_empty()) {
        let names = crate::text::some_of(looked.flaky.iter().map(|name| format!("`{name}`")), 5);
        notes.push(format!("flaky at {}, left out: {names}", short(&looked.commit)));
    }
    let is_named = |looked: &&Looked| !looked.left_out.is_empty() && looked.status == LookedStatus::Kept;
    for looked in mined.candidates.iter().filter(is_named) {
        let names = crate::text::some_of(looked.left_out.iter().map(|name| format!("`{name}`")), 5);
        notes.push(format!("left out at {}, because `*` selects other tests, too: {names}", short(&looked.commit)));
    }
    for looked in mined.candidates.iter().filter(|looked| looked.status == LookedStatus::Kept) {
        notes.extend(reserve(looked).map(|what| format!("{}: {what}", short(&looked.commit))));
    }
    if mined.kept > 0 {
        notes.push(
            "the cases are drafts: read each prompt, remove `review: needed`, and test them with `evals check --audit`"
                .to_owned(),
        );
    }
    let blocks = vec![Block::Table(table), Block::Lines(notes), Block::Verdict(meaning, verdict)];
    Page { blocks, everything: "`--format json`".to_owned(), ..Page::default() }
}

/// Returns the reservations about a mined case, or `None`: settings that are not protected, parts of the fix that the tests do not
/// check, and a commit message that says nothing about the task.
pub fn reserve(looked: &Looked) -> Option<String> {
    let thin = looked.thin.then(|| reservations::THIN.to_owned());
    let open = reservations::open_settings(&looked.open_settings);
    let reasons: Vec<String> = open.into_iter().chain(unnoticed(looked)).chain(thin).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

fn unnoticed(looked: &Looked) -> Option<String> {
    let hunks = looked.hunks.as_ref().filter(|hunks| !hunks.unnoticed.is_empty())?;
    let some = crate::text::some_of(hunks.unnoticed.iter().map(|name| format!("`{name}`")), 5);
    let (count, tried) = (hunks.unnoticed.len(), hunks.tried());
    Some(format!("its tests do not notice {count} of {} of the fix: {some}", plural(tried, "hunk")))
}

fn row(looked: &Looked) -> [TableCell; 7] {
    let (meaning, status, last) = match looked.status {
        LookedStatus::Kept => (Meaning::Good, "kept", looked.case.clone().unwrap_or_default()),
        LookedStatus::Dropped => (Meaning::Quiet, "dropped", looked.reason.clone().unwrap_or_default()),
    };
    let count = |tests: &[String]| match tests.len() {
        0 => TableCell::from(String::new()),
        count => count.to_string().into(),
    };
    [
        TableCell::new(Meaning::Name, short(&looked.commit)),
        crate::text::first_chars(&looked.subject, SUBJECT).to_owned().into(),
        TableCell::new(meaning, status),
        count(&looked.fail_to_pass),
        count(&looked.pass_to_pass),
        count(&looked.flaky),
        last.into(),
    ]
}

fn short(hash: &str) -> String {
    crate::text::first_chars(hash, HASH).to_owned()
}

/// Writes one JSON object.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn json(mined: &Mined, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, mined)?;
    out.write_all(b"\n")
}

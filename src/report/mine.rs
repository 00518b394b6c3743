//! The report of `evals mine`: a table of the commits that were looked at, or JSON.

use std::io::{self, Write};

use super::page::{Block, Meaning, Page, Table, TableCell};
use super::text::plural;
use crate::mine::journal::{Candidate, CandidateStatus};
use crate::mine::{Mined, reservations};

/// The maximum number of characters of a subject.
const SUBJECT: usize = 60;
/// The maximum number of characters of a hash.
const HASH: usize = 10;

/// Builds the page: the table, followed by the result. `memory` is the limit of `--memory`, in bytes.
pub fn page(mined: &Mined, memory: Option<u64>) -> Page {
    let mut table =
        Table::new(["commit", "subject", "status", "fail to pass", "pass to pass", "flaky", "case or reason"]);
    table.right = vec![3, 4, 5];
    for candidate in &mined.candidates {
        table.row(row(candidate));
    }
    let looked_at = plural(mined.looked_at, "commit");
    let (meaning, verdict) = match mined.kept {
        0 => (Meaning::Bad, format!("{looked_at} looked at, no case made")),
        kept => (Meaning::Good, format!("{looked_at} looked at, {} made", plural(kept, "case"))),
    };
    let mut notes = Vec::new();
    for candidate in mined.candidates.iter().filter(|candidate| !candidate.flaky.is_empty()) {
        let names = crate::text::some_of(candidate.flaky.iter().map(|name| format!("`{name}`")), 5);
        notes.push(format!("flaky at {}, left out: {names}", short(&candidate.commit)));
    }
    let is_named = |candidate: &&Candidate| !candidate.left_out.is_empty() && candidate.status == CandidateStatus::Kept;
    for candidate in mined.candidates.iter().filter(is_named) {
        let names = crate::text::some_of(candidate.left_out.iter().map(|name| format!("`{name}`")), 5);
        notes.push(format!("left out at {}, because `*` selects other tests, too: {names}", short(&candidate.commit)));
    }
    for candidate in mined.candidates.iter().filter(|candidate| candidate.status == CandidateStatus::Kept) {
        notes.extend(reserve(candidate).map(|what| format!("{}: {what}", short(&candidate.commit))));
    }
    if mined.kept > 0 {
        // The audit has the same default, and a case may need more.
        let memory = memory.map(|bytes| format!(" --memory {}", size(bytes))).unwrap_or_default();
        notes.push(format!(
            "the cases are drafts: read each prompt, remove `review: needed`, and test them with `evals check --audit{memory}`"
        ));
    }
    let blocks = vec![Block::Table(table), Block::Lines(notes), Block::Verdict(meaning, verdict)];
    Page { blocks, everything: "`--format json`".to_owned(), ..Page::default() }
}

/// Returns a size as `--memory` reads it: `4GiB`.
fn size(bytes: u64) -> String {
    const UNITS: [(&str, u32); 3] = [("TiB", 40), ("GiB", 30), ("MiB", 20)];
    let (unit, shift) = UNITS.into_iter().find(|(_, shift)| bytes.trailing_zeros() >= *shift).unwrap_or(("KiB", 10));
    format!("{}{unit}", bytes >> shift)
}

/// Returns the reservations about a mined case, or `None`: settings that are not protected, parts of the fix that the tests do not
/// check, and a commit message that says nothing about the task.
pub fn reserve(candidate: &Candidate) -> Option<String> {
    let thin = candidate.thin.then(|| reservations::THIN.to_owned());
    let open = reservations::open_settings(&candidate.open_settings);
    let reasons: Vec<String> = open.into_iter().chain(unnoticed(candidate)).chain(thin).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

fn unnoticed(candidate: &Candidate) -> Option<String> {
    let hunks = candidate.hunks.as_ref().filter(|hunks| !hunks.unnoticed.is_empty())?;
    let some = crate::text::some_of(hunks.unnoticed.iter().map(|name| format!("`{name}`")), 5);
    let (count, tried) = (hunks.unnoticed.len(), hunks.tried());
    Some(format!("its tests do not notice {count} of {} of the fix: {some}", plural(tried, "hunk")))
}

fn row(candidate: &Candidate) -> [TableCell; 7] {
    let (meaning, status, last) = match candidate.status {
        CandidateStatus::Kept => (Meaning::Good, "kept", candidate.case.clone().unwrap_or_default()),
        CandidateStatus::Dropped => (Meaning::Quiet, "dropped", candidate.reason.clone().unwrap_or_default()),
    };
    let count = |tests: &[String]| match tests.len() {
        0 => TableCell::from(String::new()),
        count => count.to_string().into(),
    };
    [
        TableCell::new(Meaning::Name, short(&candidate.commit)),
        crate::text::first_chars(&candidate.subject, SUBJECT).to_owned().into(),
        TableCell::new(meaning, status),
        count(&candidate.fail_to_pass),
        count(&candidate.pass_to_pass),
        count(&candidate.flaky),
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

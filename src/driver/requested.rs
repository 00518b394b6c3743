//! The input of an interaction policy: an open call, and the request for it.

use std::path::Path;

use crate::interaction::Asked;
use crate::session::Session;
use crate::trace::FileDiff;
use crate::trace::facts::Told;
use crate::trace::recorder::{CallSaid, is_empty};

/// What a policy is asked about: an open call, and what the request for it says. What the request shows counts, and the
/// rest is as it was announced. Nothing if no call with this id is open.
pub fn asked_about(
    session: &mut Session,
    call: &str,
    said: &CallSaid,
    workspace: &Path,
) -> Option<(Asked, Vec<FileDiff>)> {
    let mut reading = crate::harness::reading(session.recorder().header());
    reading.workspace = Some(workspace.to_string_lossy().into_owned());
    let (call, diffs) = session.recorder().open_call(call)?;
    let announced = Asked::new(call.name.clone(), &Told::of(call, diffs), &reading);
    let told = Told {
        kind: said.kind,
        title: said.title.as_deref(),
        input: said.input.as_ref().filter(|input| !is_empty(input)),
        locations: &said.locations,
        diffs: &said.diffs,
    };
    let shown = if said.diffs.is_empty() { diffs } else { &said.diffs };
    Some((announced.with_request(said.name.clone(), &told, &reading), shown.to_vec()))
}

//! The input of an interaction policy: an open call, and the request for it.

use std::path::Path;

use super::real_paths;
use crate::interaction::Request;
use crate::session::Session;
use crate::trace::PermissionOption;
use crate::trace::facts::ReportedDetails;
use crate::trace::recorder::{CallReport, is_empty};

/// Returns the input of a policy: an open call, with the details of its permission request. Where the request differs
/// from the announcement of the call, the request counts. Returns `None` if no call with this id is open.
pub fn request_about(
    session: &mut Session,
    call: &str,
    report: &CallReport,
    options: Vec<PermissionOption>,
    workspace: &Path,
) -> Option<Request> {
    let mut reading = crate::harness::reading(session.recorder().header());
    reading.workspace = Some(workspace.to_string_lossy().into_owned());
    let is_of_one_kind = !session.recorder().had_other_kind(call);
    let earlier_content = session.recorder().earlier_content(call);
    let (call, diffs) = session.recorder().asked_call(call)?;
    let details = ReportedDetails::of(call, diffs);
    let (announced, announced_paths) = (Request::new(call.name.clone(), &details, &reading), details.written_paths());
    let requested = ReportedDetails {
        kind: report.kind,
        name: report.name.as_deref().or(call.name.as_deref()),
        title: report.title.as_deref(),
        input: report.input.as_ref().filter(|input| !is_empty(input)),
        locations: &report.locations,
        diffs: &report.diffs,
        cwd: report.cwd.as_deref().or(call.cwd.as_deref()),
    };
    let written = Some(requested.written_paths()).filter(|paths| !paths.is_empty()).unwrap_or(announced_paths);
    let asked = announced.with_request(report.name.clone(), &requested, &reading);
    let facts = if report.unknown_kind { asked.facts.without_kind() } else { asked.facts };
    let asked = asked.with_facts(facts.with_content(earlier_content));
    Some(Request {
        options,
        kind: asked.kind.filter(|_| !report.unknown_kind && is_of_one_kind),
        paths: real_paths::added(asked.paths, &written, workspace),
        ..asked
    })
}

//! `evals run` through the door that a user uses: the real program, real child processes, real folders.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/laws.rs"]
mod laws;
#[path = "support/project.rs"]
mod project;

#[path = "run/machine.rs"]
mod machine;
#[path = "run/supervised.rs"]
mod supervised;

#[path = "run/again.rs"]
mod again;
#[path = "run/again_lacks.rs"]
mod again_lacks;
#[path = "run/audit.rs"]
mod audit;
#[path = "run/bundled.rs"]
mod bundled;
#[path = "run/control.rs"]
mod control;
#[path = "run/endings.rs"]
mod endings;
#[path = "run/evidence.rs"]
mod evidence;
#[path = "run/exits.rs"]
mod exits;
#[path = "run/frozen.rs"]
mod frozen;
#[path = "run/graders.rs"]
mod graders;
#[path = "run/hidden.rs"]
mod hidden;
#[path = "run/isolation.rs"]
mod isolation;
#[path = "run/limits.rs"]
mod limits;
#[path = "run/logins.rs"]
mod logins;
#[path = "run/lost.rs"]
mod lost;
#[path = "run/models.rs"]
mod models;
#[path = "run/modes.rs"]
mod modes;
#[path = "run/odd_moments.rs"]
mod odd_moments;
#[path = "run/policies.rs"]
mod policies;
#[path = "run/replay.rs"]
mod replay;
#[path = "run/repositories.rs"]
mod repositories;
#[path = "run/resume.rs"]
mod resume;
#[path = "run/routes.rs"]
mod routes;
#[path = "run/sandbox.rs"]
mod sandbox;
#[path = "run/secrets.rs"]
mod secrets;
#[path = "run/services.rs"]
mod services;
#[path = "run/sessions.rs"]
mod sessions;
#[path = "run/timing.rs"]
mod timing;
#[path = "run/totals.rs"]
mod totals;
#[path = "run/trust.rs"]
mod trust;
#[path = "run/unlawful_traces.rs"]
mod unlawful_traces;
#[path = "run/versions.rs"]
mod versions;
#[path = "run/warnings.rs"]
mod warnings;
#[path = "run/workspaces.rs"]
mod workspaces;

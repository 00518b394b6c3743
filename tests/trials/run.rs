//! `evals run` as a user runs it: the real program, real child processes, real folders.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod machine;
mod supervised;

mod again;
mod again_beside;
mod again_lacks;
mod audit;
mod audit_quality;
mod bundled;
mod control;
mod endings;
mod evidence;
mod exits;
mod followed_links;
mod frozen;
mod graders;
mod hidden;
mod isolation;
mod limits;
mod links;
mod logins;
mod lost;
mod models;
mod modes;
mod odd_moments;
mod policies;
mod quarantine;
mod replay;
mod repositories;
mod resume;
mod routes;
mod sandbox;
mod secrets;
mod services;
mod shards;
mod sessions;
mod experiments;
mod skills;
mod timing;
mod totals;
mod trust;
mod unlawful_traces;
mod versions;
mod warnings;
mod workspaces;

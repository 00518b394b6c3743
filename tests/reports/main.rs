//! What runs say: commands, reports, comparisons, snapshots, and the statistics under them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/pages.rs"]
mod pages;
#[path = "../support/project.rs"]
mod project;
#[path = "../support/properties.rs"]
mod properties;
#[path = "../support/tutorial.rs"]
mod page_of_tutorial;
#[path = "../support/served.rs"]
mod served;

mod cli;
mod compare;
mod html;
mod packages;
mod pictures;
mod report;
mod snapshot;
mod statistics;
mod tutorial;
mod view;

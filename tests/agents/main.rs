//! Agents of others, pinned in `tests/agents/` and installed by `tests/agents/install`, started for real.
//!
//! An agent that is not installed is reported as not run, on standard error and with a count.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/laws.rs"]
mod laws;
#[path = "../support/live.rs"]
mod live;
#[path = "../support/pages.rs"]
mod pages;
#[path = "../support/project.rs"]
mod project;
#[path = "../support/tutorial.rs"]
mod page_of_tutorial;
#[path = "../support/served.rs"]
mod served;

mod browser;
mod cassettes;
mod coding;
mod experiments;
mod installed;
mod python;
mod streams;
mod tutorial;
mod typescript;

#[test]
#[ignore = "slow: starts installed agents"]
fn example_agents_of_the_sdks() {
    let checks: Vec<&installed::Check> = typescript::CHECKS.iter().chain(python::CHECKS).collect();
    // They wait most of the time.
    installed::run("example agents", 8, 1, &checks);
}

#[test]
#[ignore = "slow: starts installed agents"]
fn coding_agents_against_a_scripted_model() {
    let checks = coding::checks();
    // They have races of their own, and two cores are few for three of them.
    installed::run("coding agents", 3, 2, &checks.iter().collect::<Vec<_>>());
}

#[test]
#[ignore = "slow: starts an installed browser"]
fn the_html_report_in_a_browser() {
    installed::run("the HTML report", 1, 1, &browser::CHECKS.iter().collect::<Vec<_>>());
}

#[test]
fn pins_are_exact_and_name_no_host() {
    let read = |path: &str| std::fs::read_to_string(format!("tests/agents/{path}")).unwrap();
    for set in ["small", "large", "browser"] {
        let lock = read(&format!("{set}/package-lock.json"));
        assert!(!lock.contains("://"), "{set}: the lock names a host");
        let lock: serde_json::Value = serde_json::from_str(&lock).unwrap();
        for (name, package) in lock["packages"].as_object().unwrap() {
            assert_eq!(package["integrity"].is_string(), !name.is_empty(), "{set}: {name} has no digest");
        }
        let wanted: serde_json::Value = serde_json::from_str(&read(&format!("{set}/package.json"))).unwrap();
        assert_eq!(lock["packages"][""]["dependencies"], wanted["dependencies"], "{set}");
        for (name, version) in wanted["dependencies"].as_object().unwrap() {
            let version = version.as_str().unwrap().rsplit('@').next().unwrap();
            assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{set}: {name} is not pinned: {version}");
        }
    }
    for path in ["small/python.txt", "large/vibe.txt", "large/fast-agent.txt"] {
        for line in read(path).lines() {
            let (name, version) = line.split_once("==").unwrap_or_else(|| panic!("{path}: not pinned: {line}"));
            assert!(!name.contains(['@', ' ']) && !version.contains(['/', '*', ' ']), "{path}: {line}");
        }
    }
}

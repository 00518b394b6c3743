//! The commands of `docs/tutorial.md` work in the order of the page, and print what the page shows.

use std::fs;
use std::path::Path;
use std::process::Command;

use regex::Regex;

use crate::page_of_tutorial::{Block, MARK, PAGE, blocks, script};
use crate::project::Project;

/// Removes what differs between runs: times, a slow start, ids of runs, and the widths of columns that depend on them.
pub(crate) fn masked(line: &str) -> String {
    let time = Regex::new(r"\b(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?(?:ms|s)\b").unwrap();
    let run = Regex::new(r"\b\d{8}-\d{6}-[0-9a-f]{4}\b").unwrap();
    let line = run.replace_all(&time.replace_all(line, "TIME"), "RUN").replace(", after a start of TIME", "");
    if !line.is_empty() && line.chars().all(|c| c == '-') {
        return "---".to_owned();
    }
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns true if the output is what the page shows, in which a line `…` stands for any number of lines.
fn is_shown(shown: &[String], out: &[String]) -> bool {
    match shown.split_first() {
        None => out.is_empty(),
        Some((first, rest)) if first == "…" => (0..=out.len()).any(|from| is_shown(rest, &out[from..])),
        Some((first, rest)) => out.first() == Some(first) && is_shown(rest, &out[1..]),
    }
}

fn meaningful<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    // Which agents are installed differs between machines.
    let of_machine = |line: &str| line.starts_with("note: harnesses whose agents are installed here");
    lines.filter(|line| !of_machine(line)).map(masked).filter(|line| !line.is_empty()).collect()
}

#[test]
fn the_commands_of_the_tutorial_print_what_the_page_shows() {
    let blocks = blocks(PAGE);
    let project = Project::new();
    let identity = "[user]\nname = A\nemail = a@example.com\n[init]\ndefaultBranch = main\n[commit]\ngpgsign = false\n";
    fs::write(project.home().join(".gitconfig"), identity).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_evals")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let done = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{}", script(&blocks))])
        .current_dir(project.path(""))
        .env_clear()
        .envs([("PATH", path.as_str()), ("HOME", project.home().to_str().unwrap())])
        .env("TMPDIR", project.temporary())
        .output()
        .unwrap();
    let out = String::from_utf8(done.stdout).unwrap();
    let mark = format!("{MARK}\n");
    let mut outputs = out.split(&mark).skip(1);
    let mut ran = 0;
    for block in &blocks {
        let Block::Run { line, command, shown } = block else { continue };
        let out = outputs.next().unwrap_or_else(|| panic!("`{command}` was not reached:\n{out}"));
        let (expected, printed) = (meaningful(shown.iter().map(String::as_str)), meaningful(out.lines()));
        assert!(
            is_shown(&expected, &printed),
            "docs/tutorial.md:{line}: `{command}` prints\n{out}\nand the page shows\n{}",
            shown.join("\n")
        );
        ran += 1;
    }
    assert!(ran >= 12, "{ran} commands");
    assert_eq!(outputs.next(), None);
}

#[test]
fn a_page_that_shows_something_else_is_noticed() {
    let lines = |text: &str| meaningful(text.lines());
    let out = lines("PASS  a  demo  12ms\n-------\nrun 20261122-031643-1ef4: 1 case\n1 passed\n");
    assert!(is_shown(&lines("PASS a demo 1.3s\n---\nrun 20200101-000000-0000: 1 case\n1 passed"), &out));
    assert!(is_shown(&lines("PASS a demo 1m3s\n…\n1 passed"), &out));
    for wrong in ["PASS a demo 12ms\n…\n2 passed", "FAIL a demo 12ms\n…", "PASS a demo 12ms", "…\n1 passed\nmore"]
    {
        assert!(!is_shown(&lines(wrong), &out), "{wrong}");
    }
}

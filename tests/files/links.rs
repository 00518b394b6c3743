//! Links and anchors of the Markdown files exist, and the book's table of contents names each page once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use regex::Regex;

use crate::house::sources;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Markdown files of the repository, relative to its root. Those of cases and recordings are data of tests.
fn pages() -> Vec<PathBuf> {
    const SKIPPED: [&str; 5] = ["target", ".git", ".evals", "tests", "cases"];
    let mut folders = vec![PathBuf::new()];
    let mut pages = vec![PathBuf::from("cases/README.md")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let name = entry.unwrap().file_name();
            let path = folder.join(&name);
            if root().join(&path).is_dir() {
                if !SKIPPED.iter().any(|skipped| name == *skipped) {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|end| end == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// A page without fenced blocks, whose lines become empty so that line numbers stay.
fn prose(text: &str) -> String {
    let mut fence: Option<String> = None;
    let mut prose = String::new();
    for line in text.lines() {
        let mark: String = line.trim_start().chars().take_while(|c| *c == '`').collect();
        match &fence {
            Some(open) if mark.len() >= open.len() && line.trim() == mark => fence = None,
            Some(_) => {}
            None if mark.len() >= 3 => fence = Some(mark),
            None => prose.push_str(line),
        }
        prose.push('\n');
    }
    prose
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let link = Regex::new(r"\[([^\]]*)\]\([^)]*\)").unwrap();
    let mut anchors = BTreeSet::new();
    for line in prose(text).lines() {
        let Some(heading) = line.strip_prefix('#').map(|rest| rest.trim_start_matches('#')) else { continue };
        let Some(heading) = heading.strip_prefix(' ') else { continue };
        let heading = link.replace_all(heading.trim(), "$1").to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let before = seen.entry(anchor.clone()).or_default();
        anchors.insert(if *before == 0 { anchor } else { format!("{anchor}-{before}") });
        *before += 1;
    }
    anchors
}

/// Removes `.` and `..` from a path, without a look at the disk.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = normal.pop(),
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

/// What is wrong with the links of a page, with line numbers.
fn broken(page: &Path, text: &str) -> Vec<String> {
    let code = Regex::new(r"``[^`]+``|`[^`\n]+`").unwrap();
    let link = r#"\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)|(?:src|srcset|href)="([^"]+)"|^\[[^\]]+\]: (\S+)$"#;
    let link = Regex::new(link).unwrap();
    let mut broken = Vec::new();
    for (number, line) in prose(text).lines().enumerate() {
        let line = code.replace_all(line, "`code`");
        for found in link.captures_iter(&line) {
            let target = found.get(1).or(found.get(2)).or(found.get(3)).unwrap().as_str();
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = target.split_once('#').map_or((target, None), |(path, to)| (path, Some(to)));
            let to = if path.is_empty() { page.to_owned() } else { normal(&page.parent().unwrap().join(path)) };
            let wrong = if !root().join(&to).exists() {
                Some(format!("{} does not exist", to.display()))
            } else if page.starts_with("docs") && !to.starts_with("docs") {
                Some(format!("{} is not in the book", to.display()))
            } else if let Some(anchor) = anchor
                && to.extension().is_some_and(|end| end == "md")
                && !anchors(&fs::read_to_string(root().join(&to)).unwrap()).contains(anchor)
            {
                Some(format!("{} has no heading `#{anchor}`", to.display()))
            } else {
                None
            };
            broken.extend(wrong.map(|wrong| format!("{}:{}: {wrong}", page.display(), number + 1)));
        }
    }
    broken
}

#[test]
fn every_link_leads_to_a_file_and_every_anchor_to_a_heading() {
    let pages = pages();
    assert!(pages.len() > 80, "{} pages", pages.len());
    let all = pages.iter().flat_map(|page| broken(page, &fs::read_to_string(root().join(page)).unwrap()));
    let all: Vec<String> = all.collect();
    assert!(all.is_empty(), "{all:#?}");
}

/// Pages of the book that include a file of the repository: links in the included part would be relative to the page.
#[test]
fn files_that_pages_include_exist_and_their_links_are_in_the_book() {
    let include = Regex::new(r"(?m)^\{\{#include ([^:}]+)(?::page)?\}\}$").unwrap();
    let link = Regex::new(r"\[([A-Za-z][A-Za-z ]+)\](?:[^(:]|$)").unwrap();
    let mut included = Vec::new();
    for page in pages().into_iter().filter(|page| page.starts_with("docs")) {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        for found in include.captures_iter(&text) {
            let file = normal(&page.parent().unwrap().join(&found[1]));
            let whole = fs::read_to_string(root().join(&file)).unwrap();
            let part = whole.split("<!-- ANCHOR: page -->").last().unwrap().split("<!-- ANCHOR_END: page -->").next();
            let wrong = broken(&page, part.unwrap());
            assert!(wrong.is_empty(), "{}: {wrong:#?}", file.display());
            // Names of links that the page gives targets to.
            for name in link.captures_iter(&prose(part.unwrap())) {
                assert!(name[1] == *"Unreleased" || text.contains(&format!("[{}]: ", &name[1])), "{}", &name[1]);
            }
            included.push(file.display().to_string());
        }
    }
    included.sort();
    assert_eq!(included, ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]);
}

#[test]
fn broken_links_and_anchors_are_found() {
    let text = "# A page\n\n## The same\n\n## The same\n\n[a](gone.md) [b](#nowhere) [c](graders.md#matchers)\n\
                [d](graders.md#gone) [e](../CONTEXT.md) `[f](gone.md)` [g](#the-same-1)\n```\n[h](gone.md)\n```\n\
                <img src=\"pictures/gone.svg\"> [i](https://example.com/gone)\n";
    let found = broken(Path::new("docs/page.md"), text);
    // `#nowhere`, `#the-same-1`: a page's own anchors are read from the disk, where this page is not.
    let wrong = [
        "docs/page.md:7: docs/gone.md does not exist",
        "docs/page.md:7: docs/page.md does not exist",
        "docs/page.md:8: docs/graders.md has no heading `#gone`",
        "docs/page.md:8: CONTEXT.md is not in the book",
        "docs/page.md:8: docs/page.md does not exist",
        "docs/page.md:12: docs/pictures/gone.svg does not exist",
    ];
    assert_eq!(found, wrong);
    let anchors: Vec<String> = anchors(text).into_iter().collect();
    assert_eq!(anchors, ["a-page", "the-same", "the-same-1"]);
}

#[test]
fn the_table_of_contents_names_each_page_of_the_book_once() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let link = Regex::new(r"\]\(([^)]+)\)").unwrap();
    let mut named: Vec<String> = link.captures_iter(&summary).map(|found| format!("docs/{}", &found[1])).collect();
    named.sort();
    let in_book = |page: &PathBuf| page.starts_with("docs") && !page.ends_with("SUMMARY.md");
    let mut pages: Vec<String> =
        pages().iter().filter(|page| in_book(page)).map(|page| page.display().to_string()).collect();
    pages.sort();
    assert_eq!(named, pages);
}

/// Pages that a text names as code, such as `docs/reports.md`, exist too.
#[test]
fn pages_that_are_named_exist() {
    let name = Regex::new(r"`(docs/[a-z/-]+\.md)(?:#[a-z0-9-]+)?`").unwrap();
    let mut named = 0;
    for page in ["README.md", "CONTEXT.md", "CONTRIBUTING.md", "harnesses/README.md", "graders/README.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        for found in name.captures_iter(&text) {
            assert!(root().join(&found[1]).is_file(), "{page} names {}", &found[1]);
            named += 1;
        }
    }
    assert!(named > 0);
}

/// The headings of the page of troubleshooting that are code are messages, in which `…` stands for what varies.
#[test]
fn the_messages_that_the_page_of_troubleshooting_names_are_the_programs_own() {
    let text = fs::read_to_string(root().join("docs/troubleshooting.md")).unwrap();
    // A text that goes on in the next line of the source.
    let continued = Regex::new(r"\\\n\s*").unwrap();
    let sources: String = sources().values().map(|text| continued.replace_all(text, "").into_owned()).collect();
    let headings = text.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`'));
    let mut parts = 0;
    for heading in headings {
        for part in heading.split('…').map(|part| part.trim().trim_end_matches(':')).filter(|part| part.len() > 3) {
            assert!(sources.contains(part), "no message of the program has `{part}`, of `{heading}`");
            parts += 1;
        }
    }
    assert!(parts >= 15, "{parts}");
}

/// The case that the README shows is the bundled one, without its first line, which is for editors.
#[test]
fn the_case_in_the_readme_is_the_bundled_one() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let case = fs::read_to_string(root().join("cases/fixing/off-by-one.yaml")).unwrap();
    let (editor, case) = case.split_once('\n').unwrap();
    assert!(editor.starts_with("# yaml-language-server:"), "{editor}");
    assert!(readme.contains(&format!("```yaml\n{case}```\n")), "README.md shows another case");
    assert!(readme.lines().count() <= 110, "README.md is longer than two screens");
}

/// A fresh machine with Rust needs two commands of the README: one runs the bundled cases, one is the tests as CI runs them.
#[test]
fn the_readme_has_the_command_of_the_main_job_and_the_test_command_of_ci() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    let shown = |command: &str| readme.lines().any(|line| line.split('#').next().unwrap().trim() == command);
    // The first command installs the program, and the text above it says that no registry has it.
    let (before, commands) = readme.split_once("```sh\n").unwrap();
    assert!(commands.starts_with("cargo install --locked --path ."), "{commands}");
    assert!(before.contains("not published yet"), "{before}");
    assert!(shown("cargo run --locked -- run cases/"));
    assert!(shown("cargo test --locked"));
    assert!(ci.lines().any(|line| line == "cargo test --locked"), ".ci/run has another test command");
}

/// Cargo packs the README and leaves out the folder of its pictures: a registry shows the README with the addresses of the
/// repository, and so a relative picture would be broken there.
#[test]
fn a_picture_of_the_readme_is_packed_or_named_by_the_release() {
    let packed = std::process::Command::new(env!("CARGO"))
        .args(["package", "--list", "--allow-dirty", "--offline", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
    let packed = String::from_utf8(packed.stdout).unwrap();
    let files: BTreeSet<&str> = packed.lines().collect();
    assert!(files.contains("README.md") && files.contains("src/main.rs"), "{packed}");
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let picture = Regex::new(r#"(?:src="|!\[[^\]]*\]\()([^")]+)"#).unwrap();
    let pictures: Vec<&str> = picture.captures_iter(&readme).map(|found| found.get(1).unwrap().as_str()).collect();
    assert_eq!(pictures.len(), 2, "{pictures:?}");
    for picture in pictures {
        assert!(picture.contains("://") || files.contains(picture), "{picture} is not in the package");
    }
}

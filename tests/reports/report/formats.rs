//! The reports for services: what they show of a run with everything in it, and that nothing in it breaks them.

use std::collections::BTreeMap;
use std::path::Path;

use evals::internal::compare::gate::{Gate, Kind};
use evals::internal::report::format::Format;
use evals::internal::report::page::markdown;
use evals::internal::report::{Report, benchmark, decisions, escape, run_page};
use evals::internal::snapshot::compare::{Compared, SnapshotCellId, State};
use evals::internal::verdict::Verdict;
use evals::statistics::gates::GateVerdict;
use regex::Regex;

use super::hostile::{CASE, COLUMNS, WORDS, rich};
use super::{look, record, rendered, result};

/// The rich run in a format, with the run's folder as `RUN`.
fn written(format: Format) -> String {
    let folder = tempfile::tempdir().unwrap();
    let report = rich(folder.path());
    rendered(format, &report, &look(100)).replace(&*folder.path().to_string_lossy(), "RUN")
}

/// Attributes and children of each element of the schema that Jenkins keeps for JUnit reports (`junit-10.xsd` of its
/// xUnit plugin), those that must be there marked with a `!`.
const SCHEMA: [(&str, &[&str], &[&str]); 13] = [
    ("testsuites", &["name", "time", "tests", "failures", "errors"], &["testsuite"]),
    (
        "testsuite",
        &[
            "name!",
            "tests!",
            "failures!",
            "errors!",
            "group",
            "time",
            "skipped",
            "timestamp",
            "hostname",
            "id",
            "package",
            "file",
            "log",
            "url",
        ],
        &["testsuite", "properties", "testcase", "system-out", "system-err"],
    ),
    ("properties", &[], &["property"]),
    ("property", &["name!", "value!"], &[]),
    (
        "testcase",
        &["name!", "time", "classname", "group"],
        &[
            "skipped",
            "error",
            "failure",
            "rerunFailure",
            "rerunError",
            "flakyFailure",
            "flakyError",
            "system-out",
            "system-err",
        ],
    ),
    ("failure", &["type", "message"], &[]),
    ("error", &["type", "message"], &[]),
    ("skipped", &["type", "message"], &[]),
    ("rerunFailure", &["type!", "message"], &["stackTrace", "system-out", "system-err"]),
    ("rerunError", &["type!", "message"], &["stackTrace", "system-out", "system-err"]),
    ("flakyFailure", &["type!", "message"], &["stackTrace", "system-out", "system-err"]),
    ("flakyError", &["type!", "message"], &["stackTrace", "system-out", "system-err"]),
    ("system-out", &[], &[]),
];

fn held_to_the_schema(node: roxmltree::Node<'_, '_>) {
    let name = node.tag_name().name();
    if ["system-err", "stackTrace"].contains(&name) {
        return;
    }
    let (_, attributes, children) =
        SCHEMA.iter().find(|(known, ..)| *known == name).unwrap_or_else(|| panic!("<{name}>"));
    for attribute in node.attributes() {
        let known = attributes.iter().any(|it| it.trim_end_matches('!') == attribute.name());
        assert!(known, "<{name} {}>", attribute.name());
        if attribute.name() == "time" {
            let (seconds, rest) = attribute.value().split_once('.').unwrap();
            assert!(seconds.parse::<u64>().is_ok() && rest.len() == 3 && rest.parse::<u16>().is_ok(), "{attribute:?}");
        }
    }
    for needed in attributes.iter().filter_map(|it| it.strip_suffix('!')) {
        assert!(node.has_attribute(needed), "<{name}> has no {needed}");
    }
    for child in node.children().filter(roxmltree::Node::is_element) {
        assert!(children.contains(&child.tag_name().name()), "<{}> in <{name}>", child.tag_name().name());
        held_to_the_schema(child);
    }
}

#[test]
fn junit_is_what_ci_servers_read() {
    let text = written(Format::Junit);
    let document = roxmltree::Document::parse(&text).unwrap();
    let root = document.root_element();
    held_to_the_schema(root);
    let suites: Vec<_> = root.children().filter(roxmltree::Node::is_element).collect();
    let names: Vec<_> = suites.iter().map(|suite| suite.attribute("name").unwrap()).collect();
    assert_eq!(names, ["claude / opus-4-8", "claude / sonnet,4:8", "gemini"]);
    for suite in &suites {
        let cases: Vec<_> = suite.children().filter(|it| it.has_tag_name("testcase")).collect();
        let with = |tag: &str| cases.iter().filter(|case| case.children().any(|it| it.has_tag_name(tag))).count();
        let said = |name: &str| suite.attribute(name).unwrap().parse::<usize>().unwrap();
        assert_eq!((cases.len(), said("tests")), (10, 10));
        assert_eq!((with("failure"), said("failures")), (3, 3));
        assert_eq!((with("error"), said("errors")), (4, 4));
        assert_eq!((with("skipped"), said("skipped")), (1, 1));
        let mut outcomes: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        for case in &cases {
            let children = case
                .children()
                .filter(|it| it.is_element() && !it.has_tag_name("system-out") && !it.has_tag_name("system-err"));
            let told = children.map(|it| (it.tag_name().name(), it.attribute("type").unwrap())).collect();
            outcomes.insert(case.attribute("name").unwrap(), told);
        }
        // What failed and passed within a cell is marked flaky, whichever of it counts.
        assert_eq!(outcomes["flaky-and-passes"], [("flakyFailure", "command")]);
        assert_eq!(outcomes["flaky-and-fails"], [("failure", "command"), ("flakyFailure", "command")]);
        assert_eq!(outcomes["errored"], [("error", "rate_limit"), ("rerunError", "rate_limit")]);
        assert_eq!(outcomes["ungraded"], [("error", "ungraded"), ("rerunError", "ungraded")]);
        assert_eq!(outcomes["skipped"], [("skipped", "skipped")]);
        assert_eq!(outcomes["not-run"], [("error", "not_run")]);
        let retried: &[(&str, &str)] =
            if suite.attribute("name") == Some("gemini") { &[("flakyError", "provider")] } else { &[] };
        assert_eq!(outcomes["passes"], retried);
        assert!(outcomes.contains_key(CASE));
    }
    // Text is text: only our own lines are attachments.
    let attached = Regex::new(r"(?m)\[\[ATTACHMENT\|([^\]]*)\]\]").unwrap();
    assert!(attached.captures_iter(&text).all(|found| found[1].starts_with("RUN/trials/")), "{text}");
    assert!(text.contains("\\u{fffe}\\u{202e}dlrow") && text.contains("^Ared"), "{text}");
    insta::assert_snapshot!("junit", Regex::new("( and so on)+").unwrap().replace_all(&text, " and so on"));
}

#[test]
fn markdown_is_short_first_and_nothing_in_it_is_markup() {
    let text = written(Format::Markdown);
    let (short, folded) = text.split_once("<details>").unwrap();
    assert!(short.len() < 2_000, "{short}");
    for row in text.lines().filter(|line| line.starts_with('|')) {
        let columns = row.matches('|').count();
        assert!(columns == 10 || columns == 5, "{row}");
    }
    // The only tags are ours, and each is closed.
    let tag = Regex::new("</?([a-z]+)[^>]*>").unwrap();
    let mut open: Vec<&str> = Vec::new();
    for found in tag.captures_iter(&text) {
        let name = found.get(1).unwrap().as_str();
        assert!(["details", "summary", "pre", "code"].contains(&name), "{}", &found[0]);
        if found[0].starts_with("</") {
            assert_eq!(open.pop(), Some(name));
        } else {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    // Whoever is named is named in code.
    let outside = Regex::new("(?s)<pre>.*?</pre>|<code>.*?</code>|`[^`\n]*`").unwrap().replace_all(&text, "");
    assert!(!outside.contains(['@', '\u{1b}', '\u{202e}']) && !outside.contains("://"), "{outside}");
    assert!(folded.contains("trial 1, 2") && folded.contains("the service answered 429"));
    insta::assert_snapshot!("markdown", Regex::new("( and so on)+").unwrap().replace_all(&text, " and so on"));
}

/// A report of many cells that all failed with long reasons.
fn long() -> Report {
    failing(2_000)
}

fn failing(cells: usize) -> Report {
    let names: Vec<String> = (0..cells).map(|n| format!("case-{n}")).collect();
    let planned: Vec<_> = names.iter().map(|name| (&**name, "demo", "default", 1)).collect();
    let fail = |name: &String| {
        let mut failed = result(name, "demo", "default", 1, Verdict::Fail);
        failed.grades = vec![super::grade("tests", "command", Some(false), &WORDS.repeat(40), &[])];
        failed
    };
    Report::new(&record(&planned, "all"), names.iter().map(fail).collect(), 0, Path::new("r"))
}

#[test]
fn markdown_is_never_longer_than_a_comment_may_be_and_says_what_was_cut() {
    let report = long();
    let text = rendered(Format::Markdown, &report, &look(100));
    assert!(text.len() <= markdown::COMMENT && text.len() > markdown::COMMENT / 2, "{}", text.len());
    assert!(text.contains("… and 19") && text.contains("was left out for its length; `evals report`"), "{text}");
    assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
    for most in [0, 500, 1_000, 3_000, 20_000] {
        let text = markdown::text(&run_page::page(&report, &escape::LOOK).unwrap(), most);
        assert!(text.len() <= most, "{most}: {}", text.len());
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
    }
}

#[test]
fn annotations_stand_on_the_lines_of_graders_and_are_no_more_than_are_shown() {
    let text = written(Format::Github);
    let line = Regex::new(r"^::(error|warning) (file=[^:,\n]+,line=\d+,)?title=[^:,\n]+::[^\r\n]*$").unwrap();
    for annotation in text.lines() {
        assert!(line.is_match(annotation), "{annotation}");
    }
    assert!(text.contains("::error file=suites/odd%2C and%3A long/fails.yaml,line=9,title=failed%3A fails (claude / opus-4-8)::2 of 2 trials failed%0A"));
    assert_eq!(text.lines().filter(|line| line.starts_with("::error")).count(), 9);
    assert_eq!(text.lines().filter(|line| line.starts_with("::warning")).count(), 10);
    insta::assert_snapshot!("github", Regex::new("( and so on)+").unwrap().replace_all(&text, " and so on"));
    let text = rendered(Format::Github, &long(), &look(100));
    assert_eq!(text.lines().count(), 10);
    assert!(text.lines().last().unwrap().ends_with("and 1991 more cases; see all with `evals report r`"), "{text}");
}

fn differs(number: usize) -> Compared {
    Compared {
        id: SnapshotCellId { case: format!("snapshot-{number}"), harness: "demo".into(), ..SnapshotCellId::default() },
        state: State::New,
        file: "x.snap".into(),
        passed_over: 0,
        trials: 1,
        matching: 0,
        differing: vec![],
        note: None,
        differs: true,
        accepted: false,
        file_removed: false,
        rejected: false,
        shows_nothing: false,
    }
}

#[test]
fn a_snapshot_with_which_nothing_can_be_compared_is_in_each_report_that_sets_a_colour() {
    let mut report = failing(1);
    report.snapshots = vec![Compared { differs: false, shows_nothing: true, trials: 0, ..differs(0) }];
    report.decisions = decisions::of(&report);
    let said = "nothing can be compared with a snapshot";
    let junit = rendered(Format::Junit, &report, &look(100));
    assert!(junit.contains("name=\"snapshot-0 (snapshot)\"") && junit.contains(said), "{junit}");
    let github = rendered(Format::Github, &report, &look(100));
    assert!(github.contains(&format!("::warning title={said}%3A snapshot-0 (demo)::")), "{github}");
}

#[test]
fn failures_and_snapshots_that_differ_share_the_errors_that_are_shown() {
    for (failures, snapshots, lines, told) in [
        (2_000, 0, 10, vec!["and 1991 more cases"]),
        (2_000, 3, 10, vec!["and 1994 more cases"]),
        (2_000, 40, 10, vec!["and 1996 more cases", "and 36 more snapshots"]),
        (2, 40, 10, vec!["and 33 more snapshots"]),
        (2, 8, 10, vec![]),
        (1, 11, 10, vec!["and 3 more snapshots"]),
    ] {
        let mut report = failing(failures);
        report.snapshots = (0..snapshots).map(differs).collect();
        report.decisions = decisions::of(&report);
        let text = rendered(Format::Github, &report, &look(100));
        assert_eq!(text.lines().count(), lines, "{failures} {snapshots}\n{text}");
        assert!(text.lines().all(|line| line.starts_with("::error ")), "{text}");
        let summed: Vec<&str> = text.lines().filter(|line| line.starts_with("::error title=evals::")).collect();
        assert_eq!(summed.len(), told.len(), "{text}");
        for (line, told) in summed.iter().zip(told) {
            assert!(line.contains(told), "{line}");
        }
    }
}

#[test]
fn gates_are_told_first_and_share_what_is_shown() {
    let gate = |number: usize, verdict: GateVerdict| Gate {
        arm: format!("case-{number} (demo)"),
        column: None,
        cases: None,
        kind: Kind::Critical,
        verdict,
        bound: None,
        found: None,
        p: None,
        text: "is critical".into(),
    };
    for (failures, lost, open) in [(2_000, 1, 0), (2_000, 40, 40), (3, 7, 10), (1, 40, 11), (1, 1, 0)] {
        let mut report = failing(failures);
        let all = [(lost, GateVerdict::Fail), (open, GateVerdict::Inconclusive), (5, GateVerdict::Pass)];
        report.gates = all.iter().flat_map(|(count, verdict)| (0..*count).map(|it| gate(it, *verdict))).collect();
        report.decisions = decisions::of(&report);
        let text = rendered(Format::Github, &report, &look(100));
        let of = |level: &str| text.lines().filter(|line| line.starts_with(level)).count();
        assert_eq!((of("::error "), of("::warning ")), ((failures + lost).min(10), open.min(10)), "{text}");
        let (gates, cells) = text.split_once("title=failed").unwrap();
        assert!(gates.starts_with("::error title=gate fail%3A case-0 (demo)::case-0 (demo) is critical\n"), "{text}");
        let told = gates.matches("title=gate fail").count();
        assert_eq!(told == lost, !gates.contains("more gate"), "{text}");
        assert!(!cells.contains("title=gate fail") && told >= lost.min(2), "{text}");
        let left_out = format!("and {} more gates", lost - told);
        assert!(told == lost || gates.contains(&left_out), "{left_out}: {text}");
    }
}

#[test]
fn a_benchmark_names_what_was_run_and_by_whom() {
    let text = written(Format::Benchmark);
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 2 + COLUMNS.len());
    assert!(rows.iter().all(|row| row.matches('|').count() == 13), "{text}");
    assert!(rows[2].starts_with("| `claude` | `claude 2.1` |"), "{text}");
    insta::assert_snapshot!("benchmark", text);
}

#[test]
fn a_benchmark_replaces_its_block_and_nothing_else() {
    let (begin, end) = (benchmark::begin(None), benchmark::end(None));
    let put = |text: &str, label: Option<&str>| benchmark::replaced(text, label, "new\nlines\n");
    let file = format!("# Ours\n\nkept  \n{begin}\nold\n{end}\nkept too, without an end of line");
    let once = put(&file, None).unwrap();
    assert_eq!(once, format!("# Ours\n\nkept  \n{begin}\n\nnew\nlines\n\n{end}\nkept too, without an end of line"));
    assert_eq!(put(&once, None).unwrap(), once, "twice is once");
    assert_eq!(put(&file.replace('\n', "\r\n"), None).unwrap(), once.replace('\n', "\r\n"), "lines end as they did");
    // A label chooses the block of its name.
    let named = format!("{once}\n{}\n{}\n", benchmark::begin(Some("nightly")), benchmark::end(Some("nightly")));
    let nightly = put(&named, Some("nightly")).unwrap();
    assert!(nightly.starts_with(&once) && nightly.len() > named.len(), "{nightly}");
    assert_eq!(put(&named, Some("other")).unwrap(), named);
    // Marks that are not there, or do not fit.
    let wrong = |text: &str, label: Option<&str>| put(text, label).unwrap_err().to_string();
    assert_eq!(
        wrong("# Ours\n", None),
        format!("the file has no block for this run; add these two lines where the scores should go:\n{begin}\n{end}")
    );
    assert!(wrong("", Some("a")).ends_with("<!-- evals:benchmark a -->\n<!-- /evals:benchmark a -->"));
    assert!(wrong("", Some("a-->b")).ends_with(&end));
    let only = named.replace(&once, "");
    assert!(wrong(&only, None).contains("there are blocks for runs with the label `nightly`"));
    assert!(wrong(&format!("a\n{begin}\n"), None).contains("line 2: ") && wrong(&begin, None).contains("does not end"));
    assert!(wrong(&end, None).contains("ends no block"));
    assert!(wrong(&format!("{begin}\n{begin}\n{end}\n"), None).contains("line 2: "));
    assert!(wrong(&format!("{begin}\n{end}\n{begin}\n{end}\n"), None).contains("a second block of that name"));
}

#[test]
fn the_published_schemas_describe_what_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let report = rich(folder.path());
    let valid = |kind: &str| jsonschema::validator_for(&evals::internal::schema::schema(kind).unwrap()).unwrap();
    let document: serde_json::Value = serde_json::from_str(&rendered(Format::Json, &report, &look(80))).unwrap();
    let errors: Vec<String> = valid("run").iter_errors(&document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let of_line = valid("result");
    for line in rendered(Format::Jsonl, &report, &look(80)).lines() {
        assert!(of_line.is_valid(&serde_json::from_str(line).unwrap()), "{line}");
    }
    // Every key is described, too.
    let described = evals::internal::schema::schema("run").unwrap();
    for key in document.as_object().unwrap().keys() {
        assert!(described["properties"].get(key).is_some(), "{key}");
    }
    for key in document["columns"][0].as_object().unwrap().keys() {
        assert!(described["$defs"]["Column"]["properties"].get(key).is_some(), "{key}");
    }
}

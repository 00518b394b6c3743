//! `evals run --snapshot` and `evals snapshot`: what is new, changed, missing and unreferenced, who writes and who does not.

use serde_json::{Value, json};

use crate::project::{Project, Ran};

pub const READS: &str = "steps: [{read: {path: a.txt}}, {edit: {path: a.txt, old: one, new: two}}, {say: done}]";
pub const KEYS: &str = "workspace: {files: {a.txt: one, b.txt: x}}";
pub const SNAP: &str = "cases/a.snapshots/demo.snap";

fn project() -> Project {
    let project = Project::new();
    project.case("a", KEYS, READS);
    project
}

pub fn accepted() -> Project {
    let project = project();
    project.evals(&["run", "--snapshot", "update"]).exits(0).says("accepted a demo");
    project
}

/// The lines that tell what differs.
fn told(ran: &Ran) -> Vec<String> {
    let lines = ran.out.lines().filter(|line| line.starts_with("  ") && !line.contains(".snap"));
    lines.map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn a_run_is_compared_where_something_is_accepted_and_by_its_mode_else() {
    let project = project();
    // Nothing is accepted, and nobody asks.
    let ran = project.evals(&["run"]).exits(0);
    assert!(!ran.out.contains("snapshot") && !project.path("cases/a.snapshots").exists(), "{}", ran.out);
    // Asked for, what is new is a difference, and nothing is written.
    project.evals(&["run", "--snapshot", "check"]).exits(1).says("1 snapshot differs").says("new a demo");
    assert!(!project.path("cases/a.snapshots").exists());
    project.evals(&["run", "--snapshot", "update"]).exits(0).says("1 snapshot accepted");
    insta::assert_snapshot!(project.read(SNAP));
    project.evals(&["run", "--snapshot", "check"]).exits(0);
    // Another call, and a plain run tells it.
    project.case("a", KEYS, &READS.replace("{say", "{read: {path: b.txt}}, {say"));
    let ran = project.evals(&["run"]).exits(1).says("1 snapshot differs");
    ran.says("+ step 3: read added (+ path: b.txt)").says("evals snapshot review");
    let json = project.evals(&["report", "--format", "json"]).exits(0).json();
    assert_eq!(json["exit_code"], 1);
    assert_eq!(json["snapshots"][0]["differing"][0]["differences"][0]["what"], "read");
    project.evals(&["run", "--snapshot", "off"]).exits(0);
    project.evals(&["run", "--snapshot", "update"]).exits(0);
    assert!(project.read(SNAP).contains("path: b.txt"));
    project.evals(&["run"]).exits(0);
    project.evals(&["run", "--snapshot", "always"]).exits(2);
}

#[test]
fn a_resumed_run_uses_snapshots_as_it_was_asked_to_when_it_began() {
    let resume = ["run", "--resume", "latest", "--max-time", "1h"];
    let project = project();
    project.evals(&["run", "--snapshot", "check", "--max-time", "0"]);
    project.evals(&resume).exits(1).says("new a demo");
    // What is asked for now counts before that, and for what follows.
    project.evals(&[&resume[..], &["--snapshot", "off"]].concat()).exits(0);
    assert_eq!(project.evals(&["report", "--format", "json"]).exits(0).json()["exit_code"], 0);
    project.evals(&resume).exits(0);

    let project = self::project();
    project.evals(&["run", "--snapshot", "update", "--max-time", "0"]);
    assert!(!project.path(SNAP).exists());
    project.evals(&resume).exits(0).says("1 snapshot accepted");
    // A run that has finished does not accept its snapshots once more.
    std::fs::remove_file(project.path(SNAP)).unwrap();
    project.evals(&resume).exits(0).says("1 snapshot accepted earlier and removed since");
    assert!(!project.path(SNAP).exists());
}

#[test]
fn a_resumed_run_replaces_no_snapshot_of_a_cell_that_does_not_run_now() {
    let project = project();
    let flag = project.path("flag").display().to_string();
    let line = format!("test -e {flag} || exit 1; exec \"$@\"");
    let demo = r#""{self}", demo-agent, --script, "{script}", --speak, acp"#;
    let command = format!("command: [sh, -c, '{line}', sh, {demo}]");
    project.harness("shaky", &format!("adapter: acp\n{command}\nagent-info: evals-demo"));
    let args = ["run", "--harness", "demo", "--harness", "shaky", "--snapshot", "update"];
    project.evals(&[&args[..], &["--label", "began"]].concat()).exits(3);
    // Another snapshot is accepted for the cell that had finished.
    let later = project.read(SNAP).replace("new: two", "new: three");
    project.write(SNAP, &later);
    project.write("flag", "");
    let resume = ["run", "--resume", "began", "--rerun", "errored"];
    project.evals(&resume).exits(1).says("snapshots of 1 cell were not replaced").says("accepted a shaky");
    assert_eq!(project.read(SNAP), later);
    assert!(project.path("cases/a.snapshots/shaky.snap").exists());
    // With `--snapshot update` on the resume itself, the snapshot is replaced.
    project.evals(&["run", "--resume", "began", "--snapshot", "update"]).exits(0);
    assert_ne!(project.read(SNAP), later);
}

#[test]
fn a_run_that_was_killed_before_it_accepted_its_snapshots_has_not_passed() {
    let project = Project::new();
    project.case("a", &format!("{KEYS}\ngraders: [{{snapshot: {{}}}}]"), READS);
    project.evals(&["run", "--snapshot", "update"]).exits(0).says("1 snapshot accepted");
    let folder = project.run_folder();
    let exit_code = || project.evals(&["report", "--format", "json"]).exits(0).json()["exit_code"].clone();
    assert_eq!(exit_code(), 0);
    project.without_end(&folder);
    std::fs::remove_file(project.path(SNAP)).unwrap();
    assert_eq!(exit_code(), 3);
    let junit = project.evals(&["report", "--format", "junit"]).exits(0).out;
    assert!(junit.contains("run (not ended)") && junit.contains("errors=\"1\""), "{junit}");
    project.evals(&["report"]).exits(0).says("the run did not record its end").says("evals run --resume");
    project.evals(&["list", "runs"]).exits(0).says("not ended: 1 passed");
    project.evals(&["baseline", "set"]).exits(2).says("is not finished").says("the run did not record its end");
    let resume = ["run", "--resume", "latest"];
    project.evals(&resume).exits(0).says("1 snapshot accepted");
    assert!(project.path(SNAP).exists());
    assert_eq!(exit_code(), 0);
    // A run that has ended is only compared.
    let journal = project.read(&format!("{folder}/journal.jsonl"));
    project.evals(&resume).exits(0);
    assert_eq!(project.read(&format!("{folder}/journal.jsonl")), journal);
    project.evals(&["baseline", "set"]).exits(0);
}

#[test]
fn a_run_that_was_killed_before_it_compared_its_snapshots_has_not_passed() {
    let project = accepted();
    project.case("a", KEYS, &READS.replace("{say", "{read: {path: b.txt}}, {say"));
    project.evals(&["run", "--label", "n"]).exits(1);
    let exit_code = || project.evals(&["report", "n", "--format", "json"]).exits(0).json()["exit_code"].clone();
    project.without_end(&project.run_named("n"));
    assert_eq!(exit_code(), 3);
    project.evals(&["run", "--resume", "n"]).exits(1);
    assert_eq!(exit_code(), 1);
    // When nothing is accepted any more, nothing differs, and the earlier comparison does not stay.
    std::fs::remove_dir_all(project.path("cases/a.snapshots")).unwrap();
    project.evals(&["run", "--resume", "n"]).exits(0);
    assert_eq!(exit_code(), 0);
}

#[test]
fn a_snapshot_that_cannot_be_written_breaks_the_run_off() {
    let project = Project::new();
    for case in ["a", "b"] {
        project.case(case, &format!("{KEYS}\ngraders: [{{snapshot: {{}}}}]"), READS);
    }
    project.write("cases/a.snapshots", "");
    let args = ["run", "--snapshot", "update", "--reporter", "json=r.json", "--reporter", "junit=j.xml"];
    project.evals(&args).exits(4).says("a new snapshot could not be written");
    let report: Value = serde_json::from_str(&project.read("r.json")).unwrap();
    let cells = report["snapshots"].as_array().unwrap().iter().map(|it| it["differs"].clone());
    assert_eq!((report["exit_code"].clone(), cells.collect::<Vec<_>>()), (json!(4), vec![json!(true), json!(false)]));
    assert!(project.read("j.xml").contains("a (snapshot)"));
    assert!(project.path("cases/b.snapshots/demo.snap").exists(), "the others are written");
    assert_eq!(project.evals(&["report", "--format", "json"]).exits(0).json()["exit_code"], 1);
    std::fs::remove_file(project.path("cases/a.snapshots")).unwrap();
    project.evals(&["run", "--resume", "latest"]).exits(0);
    assert!(project.path(SNAP).exists());
    assert_eq!(project.evals(&["report", "--format", "json"]).exits(0).json()["exit_code"], 0);
}

#[test]
fn graders_that_passed_for_what_a_run_accepts_count_only_if_it_was_accepted() {
    let project = Project::new();
    project.case("a", &format!("{KEYS}\ngraders: [{{snapshot: {{}}}}]"), READS);
    project.evals(&["run", "--label", "v", "--snapshot", "update"]).exits(0);
    project.evals(&["run", "--label", "base"]).exits(0);
    let off = ["run", "--resume", "v", "--snapshot", "off"];
    project.evals(&off).exits(0);
    project.evals(&["baseline", "set", "v", "--file", "v.json"]).exits(0);
    // The end of a run does not say that its snapshots were accepted.
    project.without_end(&project.run_named("v"));
    std::fs::remove_file(project.path(SNAP)).unwrap();
    project.evals(&["run", "--resume", "v", "--snapshot", "check"]).exits(1);
    project.evals(&off).exits(2).says("`--snapshot off` cannot be used for run");
    project.evals(&["baseline", "set", "v", "--file", "v.json"]).exits(2).says("these were not accepted: a (demo)");
    let gated = project.evals(&["compare", "base", "v", "--gate"]).says("these trials count as ungraded");
    assert_ne!(gated.code, 0);
    // Of the runs `v` and `base`.
    let passes = || {
        let history = project.evals(&["history", "--format", "json"]).exits(0).json();
        let points = history["cells"][0]["points"].as_array().unwrap().clone();
        points.iter().map(|point| point["passes"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(passes(), 1);
    project.evals(&["history"]).says("these trials count as ungraded");
    project.evals(&["snapshot", "accept", "v"]).exits(0);
    assert_eq!(passes(), 2);
    project.evals(&["baseline", "set", "v", "--file", "v.json"]).exits(0);
    project.evals(&["compare", "base", "v", "--gate"]).exits(0);
}

#[test]
fn a_rejected_snapshot_stays_so_when_its_run_is_resumed() {
    let project = accepted();
    project.case("a", KEYS, &READS.replace("{say", "{read: {path: b.txt}}, {say"));
    project.evals(&["run"]).exits(1);
    project.evals(&["snapshot", "reject"]).exits(0);
    project.evals(&["run", "--resume", "latest"]).exits(1);
    let report = project.evals(&["report", "--format", "json"]).exits(0).json();
    assert_eq!(report["snapshots"][0]["rejected"], true);
}

#[test]
fn every_report_for_a_service_shows_what_makes_the_run_fail() {
    let project = accepted();
    project.case("a", KEYS, &READS.replace("{say", "{read: {path: b.txt}}, {say"));
    let args = ["run", "--reporter", "junit=j.xml", "--reporter", "markdown=m.md", "--reporter", "github"];
    let ran = project.evals(&args).exits(1);
    let junit = project.read("j.xml");
    assert!(junit.contains("tests=\"2\" ") && junit.contains("failures=\"1\""), "{junit}");
    assert!(junit.contains("<testcase name=\"a (snapshot)\" classname=\"demo\""), "{junit}");
    let line = "+ step 3: read added (+ path: b.txt)";
    assert!(junit.contains(line), "{junit}");
    let markdown = project.read("m.md");
    assert!(markdown.contains("<summary>1 snapshot differs</summary>") && markdown.contains(line), "{markdown}");
    let error = ran.out.lines().find(|line| line.starts_with("::error")).unwrap();
    assert!(error.contains("title=the snapshot differs%3A a (demo)::") && error.contains(line), "{error}");
    // As accepted, none of them speaks of it.
    project.case("a", KEYS, READS);
    let ran = project.evals(&args).exits(0);
    assert!(!ran.out.contains("::error") && !project.read("j.xml").contains("snapshot"), "{}", ran.out);
    assert!(!project.read("m.md").contains("snapshot"));
}

#[test]
fn what_differs_is_shown_and_nothing_else() {
    let edit = "{edit: {path: a.txt, old: one, new: two}}";
    let text = "{write: {path: b.txt, text: \"one\\ntwo\\nthree\\n\"}}";
    for (name, before, after) in [
        ("one call more", READS.to_owned(), READS.replace("{say", "{run: {command: ls}}, {say")),
        ("one call less", READS.to_owned(), READS.replace("{read: {path: a.txt}}, ", "")),
        ("another tool", READS.to_owned(), READS.replace("{read: {path: a.txt}}", "{run: {command: cat a.txt}}")),
        ("another argument", READS.to_owned(), READS.replace("new: two", "new: three")),
        ("another outcome", READS.to_owned(), READS.replace("path: a.txt}}, {e", "path: a.txt, fails: gone}}, {e")),
        ("another line of a text", READS.replace(edit, text), READS.replace(edit, &text.replace("two", "2"))),
        (
            "one of several at once",
            READS.replace(edit, "{parallel: [{read: {path: a.txt}}, {read: {path: b.txt}}]}"),
            READS.replace(
                edit,
                "{parallel: [{read: {path: b.txt}}, {search: {pattern: x, path: .}}, {read: {path: a.txt}}]}",
            ),
        ),
        (
            "a shift",
            READS.replace(edit, "{read: {path: b.txt}}"),
            READS.replace(edit, "{read: {path: a.txt}}").replacen("path: a.txt", "path: c.txt, fails: gone", 1),
        ),
        ("another end", READS.to_owned(), READS.replace("{say: done}", "{say: done}, {stop: max_tokens}")),
        (
            "far more tokens",
            READS.replace("{say", "{usage: {input-tokens: 9000, output-tokens: 10}}, {say"),
            READS.replace("{say", "{usage: {input-tokens: 90000, output-tokens: 10}}, {say"),
        ),
    ] {
        let project = Project::new();
        project.case("a", &format!("{KEYS}\ngraders: [{{permissions: {{max: 0}}}}]"), &before);
        project.evals(&["run", "--snapshot", "update"]).exits(0);
        project.case("a", &format!("{KEYS}\ngraders: [{{permissions: {{max: 0}}}}]"), &after);
        project.evals(&["run", "--snapshot", "off"]).exits(0);
        let ran = project.evals(&["snapshot", "check"]).exits(1);
        insta::assert_snapshot!(name.replace(' ', "_"), told(&ran).join("\n"));
    }
}

#[test]
fn check_writes_nothing_and_accept_and_reject_decide() {
    let project = accepted();
    project.case("b", KEYS, READS);
    project.case("a", KEYS, &READS.replace("two", "three"));
    let before = project.files("cases");
    project.evals(&["run"]).exits(1);
    let json = project.evals(&["snapshot", "check", "--format", "json"]).exits(1).json();
    let states: Vec<(&Value, &Value)> =
        json["snapshots"].as_array().unwrap().iter().map(|it| (&it["case"], &it["state"])).collect();
    assert_eq!(states, [(&json!("a"), &json!("changed")), (&json!("b"), &json!("new"))]);
    assert_eq!((&json["exit_code"], &json["unreferenced"]), (&json!(1), &json!([])));
    assert!(project.files("cases") == before, "check wrote something");
    // One is rejected, and remembered for this run; what is accepted stays.
    project.evals(&["snapshot", "reject", "--only", "a/*"]).exits(0).says("rejected a/demo");
    project.evals(&["snapshot", "reject", "--only", "a/*"]).exits(0).says("nothing to reject");
    project.evals(&["snapshot", "check"]).exits(1).says("(rejected)").says("1 changed, 1 new");
    assert!(project.files("cases") == before);
    project.evals(&["snapshot", "accept", "latest", "--only", "b/demo"]).exits(0).says("accepted b/demo");
    project.evals(&["snapshot", "check"]).exits(1).says("1 same, 1 changed");
    project.evals(&["snapshot", "accept"]).exits(0).says("accepted a/demo");
    project.evals(&["snapshot", "accept"]).exits(0).says("nothing to accept");
    project.evals(&["snapshot", "check"]).exits(0).says("2 same");
    // A run of `grade` has the same traces.
    project.evals(&["grade", "latest", "--label", "again"]).exits(0);
    project.evals(&["snapshot", "check", "again"]).exits(0).says("2 same");
    // With `--add` either is accepted.
    project.case("a", KEYS, READS);
    project.evals(&["run"]).exits(1);
    project.evals(&["snapshot", "accept", "--add"]).exits(0);
    // A shape that is counted again is one of all trials, as the others are.
    assert_eq!(project.read(SNAP).matches("shape: 1 of 2 trials").count(), 2, "{}", project.read(SNAP));
    project.evals(&["run"]).exits(0);
    project.case("a", KEYS, &READS.replace("two", "three"));
    project.evals(&["run"]).exits(0);
    assert_eq!(project.read(SNAP).matches("shape: ").count(), 2);
}

#[test]
fn under_ci_nothing_is_written() {
    let mut project = project();
    project.env("CI", "true");
    let before = project.files("cases");
    let ran = project.evals(&["run", "--snapshot", "update"]).exits(1);
    ran.says("CI is set, so snapshots were compared but not written").says("new a demo");
    project.evals(&["snapshot", "accept"]).exits(2).says("CI is set");
    project.evals(&["snapshot", "review"]).exits(2).says("CI is set");
    project.evals(&["snapshot", "check"]).exits(1);
    assert!(project.files("cases") == before);
    project.env("CI", "false");
    project.evals(&["snapshot", "accept"]).exits(0);
    project.env("CI", "1");
    project.evals(&["run", "--snapshot", "update"]).exits(0);
}

#[test]
fn what_nobody_judged_is_missing_and_what_nobody_names_is_unreferenced() {
    let project = accepted();
    project.case("gone", KEYS, READS);
    project.demo("old", "");
    project.evals(&["run", "--harness", "demo", "--harness", "old", "--snapshot", "update"]).exits(0);
    std::fs::remove_file(project.path("cases/gone.yaml")).unwrap();
    std::fs::remove_file(project.path("harnesses/old.yaml")).unwrap();
    project.write("cases/a.snapshots/odd.snap", &project.read(SNAP));
    // Its agent is broken: that is no snapshot, and no difference.
    project.harness("broken", "adapter: acp\ncommand: [sh, -c, exit 1]");
    project.write("cases/a.snapshots/broken.snap", &project.read(SNAP).replace("harness: demo", "harness: broken"));
    project.evals(&["run", "--harness", "broken", "--snapshot", "update"]).exits(3);
    let ran = project.evals(&["snapshot", "check"]).exits(3);
    let ran = ran.says("missing a broken").says("trial 1 was errored").says("1 missing, 4 unreferenced");
    let ran = ran.says("cases/a.snapshots/odd.snap: its cell uses another file:").says("no harness is named `old`");
    ran.says("cases/gone.snapshots/demo.snap: the case");
    project.evals(&["snapshot", "accept"]).exits(0).says("passed over a/broken").says("nothing to accept");
    assert!(project.read("cases/a.snapshots/broken.snap").contains("path: a.txt"));
    // Without anything accepted it is nothing at all.
    std::fs::remove_file(project.path("cases/a.snapshots/broken.snap")).unwrap();
    project.evals(&["snapshot", "accept"]).exits(0).says("nothing to accept");
    assert!(!project.path("cases/a.snapshots/broken.snap").exists());
    // An agent that is skipped has no cell.
    project.case("asks", "requires: {interaction: true}", "steps: [{say: x}]");
    let args = ["run", "--harness", "demo-text", "--case", "asks", "--snapshot", "check", "--label", "skipped"];
    project.evals(&args).exits(3);
    let json = project.evals(&["report", "skipped", "--format", "json"]).exits(0).json();
    assert!(json["snapshots"].is_null(), "{json}");
}

#[test]
fn a_trial_that_could_not_be_compared_leaves_its_cell_open() {
    let project = accepted();
    // An agent that breaks in its first trial, and does what is accepted in the second.
    let flag = project.path("flag").display().to_string();
    let line = format!("mkdir {flag} 2>/dev/null && exit 1; exec \"$@\"");
    let demo = r#""{self}", demo-agent, --script, "{script}", --speak, acp"#;
    let command = format!("command: [sh, -c, '{line}', sh, {demo}]");
    project.harness("shaky", &format!("adapter: acp\n{command}\nagent-info: evals-demo"));
    project.write("cases/a.snapshots/shaky.snap", &project.read(SNAP).replace("harness: demo", "harness: shaky"));
    let run = ["run", "--harness", "shaky", "--trials", "2", "--jobs", "1"];
    project.evals(&run).exits(3);
    project.evals(&["snapshot", "check"]).exits(3).says("1 was errored").says("1 same");
    let json = project.evals(&["snapshot", "check", "--format", "json"]).exits(3).json();
    assert_eq!((&json["snapshots"][0]["trials"], &json["snapshots"][0]["passed_over"]), (&json!(1), &json!(1)));
    project.evals(&run).exits(0);
    project.evals(&["snapshot", "check"]).exits(0);
}

#[test]
fn what_the_case_says_is_kept_and_replaced() {
    let project = Project::new();
    let steps = "steps: [{thought: I think.}, {run: {command: 'make BUILD=b4711 all'}}, {say: Built b4711 in 2.5s.}]";
    for (keys, holds, lacks) in [
        ("snapshot: {text: none}", vec!["BUILD=b4711"], vec!["Built", "thinks", "digest"]),
        ("snapshot: {text: full}", vec!["says: Built b4711 in 2.5s.", "thinks: I think.", "user: Do it."], vec![]),
        ("snapshot: {text: digest}", vec!["says: digest ", "user: digest "], vec!["Built"]),
        (
            "snapshot: {text: full, normalise: [{regex: 'b(\\d)\\d{3}', with: 'b$1…'}]}",
            vec!["BUILD=b4… all", "says: Built b4… in"],
            vec!["4711"],
        ),
    ] {
        project.case("a", keys, steps);
        project.evals(&["run", "--snapshot", "update"]).exits(0);
        let text = project.read(SNAP);
        for part in holds {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(!lacks.iter().any(|part| text.contains(part)), "{text}");
        project.evals(&["run", "--snapshot", "check"]).exits(0);
    }
    // What a rule would put in the place of nothing is told where it stands, with what there is.
    for (rule, says) in [
        ("{regex: 'b(\\d)', with: 'b$9'}", "cases/a.yaml:4:30: `$9` is not a group of the regex"),
        ("{regex: 'b(\\d)', with: 'b$9'}", "the regex has `$1`; `$0` is the whole match, `$$` a dollar sign"),
        ("{regex: 'b(\\d)', with: 'b$1x'}", "for group 1 and then `x` write `${1}x`"),
        ("{regex: 'b(?P<n>\\d)', with: '${m}'}", "`${m}` is not a group of the regex"),
        ("{regex: 'b(?P<n>\\d)', with: '$m'}", "the regex has `$1`, `${n}`"),
        ("{regex: 'b\\d', with: '$1'}", "the regex has no group"),
    ] {
        project.case("a", &format!("snapshot:\n  normalise:\n    - {rule}"), steps);
        project.evals(&["check"]).exits(2).says(says);
        project.evals(&["run", "--dry-run"]).exits(2).says(says);
    }
    project.write("cases/suite.yaml", "snapshot: {normalise: [{regex: x, with: '$2'}]}\n");
    project.evals(&["check"]).exits(2).says("cases/suite.yaml:1:41: `$2` is not a group");
    std::fs::remove_file(project.path("cases/suite.yaml")).unwrap();
    let rule = "{regex: '(?P<n>b)(\\d+)', with: '$n-${n}-$0-$2 $$5 $ ${'}";
    project.case("a", &format!("snapshot: {{normalise: [{rule}]}}"), steps);
    project.evals(&["run", "--snapshot", "update"]).exits(0);
    let text = project.read(SNAP);
    assert!(text.contains("command: make BUILD=b-b-b4711-4711 $5 $ ${ all"), "{text}");
    project.case("a", "snapshot: {several: most}", steps);
    project.evals(&["check"]).exits(2).says("cases/a.yaml:2:21");
}

#[test]
fn models_have_snapshots_of_their_own_and_a_case_is_not_another_by_having_one() {
    let project = accepted();
    let digest = |run: &str| -> Value {
        let run = project.read(&format!(".evals/runs/{run}/run.json"));
        serde_json::from_str::<Value>(&run).unwrap()["cases"][0]["digest"].clone()
    };
    let before = project.runs();
    project.evals(&["run", "--model", "x/1", "--model", "y", "--model", "y", "--snapshot", "update"]).exits(0);
    let mut files: Vec<String> = project.files("cases/a.snapshots").into_keys().collect();
    files.iter_mut().for_each(|file| *file = file.rsplit('/').next().unwrap().to_owned());
    assert_eq!(files, ["demo.snap", "demo@x%2F1.snap", "demo@y.snap"]);
    let now = project.runs().into_iter().find(|run| !before.contains(run)).unwrap();
    assert_eq!(digest(&before[0]), digest(&now));
    project.evals(&["run", "--resume", "latest"]).exits(0);
    // They are no cases, and no agent has to see them: they lie below the cases.
    project.evals(&["list", "cases"]).exits(0);
    project.evals(&["check", "--audit"]);
    let json = project.evals(&["run", "--model", "y", "--reporter", "json"]).exits(0).json();
    assert_eq!((&json["snapshots"][0]["model"], &json["snapshots"][0]["trials"]), (&json!("y"), &json!(1)));
}

#[test]
fn wrong_words_and_damaged_files_are_told() {
    let project = accepted();
    project.evals(&["snapshot"]).exits(2);
    project.evals(&["snapshot", "check", "nothing"]).exits(2).says("no run is called `nothing`");
    project.evals(&["snapshot", "check", "latest", "latest"]).exits(2).says("name one run");
    project.evals(&["snapshot", "accept", "--only", "b/*"]).exits(2).says("no cell matches --only");
    project.evals(&["snapshot", "check", "--harness", "demo"]).exits(2).says("--harness is for traces");
    let good = project.read(SNAP);
    for (text, says) in [
        ("", "line 1: a snapshot begins with `evals-snapshot: 2`"),
        ("shape: 1 of 1 trials\n  user\n", "line 1: a snapshot begins with"),
        ("evals-snapshot: 3\n", "has version 3, this program reads up to 2"),
        ("evals-snapshot: 2\ntext: all\n", "line 2: `all` is not `none`, `full` or `digest`"),
        ("evals-snapshot: 2\nharness: demo\n", "the shape is missing"),
        ("evals-snapshot: 2\nshape: one\n", "is not `shape: N of M trials`"),
        ("evals-snapshot: 2\nshape: 1 of 1 trials\n   user\n", "odd number of spaces"),
        ("evals-snapshot: 2\nshape: 1 of 1 trials\n  step\n    jump High\n", "`jump` is not a tool kind"),
        (
            "evals-snapshot: 2\nshape: 1 of 1 trials\n  step\n    read\n          x: 1\n",
            "does not belong to any line above it",
        ),
        ("evals-snapshot: 2\nshape: 1 of 1 trials\n  says:\n", "`says:` has no value"),
        ("evals-snapshot: 2\nshape: 1 of 1 trials\n  says:x\n", "has no space after its `:`"),
    ] {
        project.write(SNAP, text);
        project.evals(&["snapshot", "check"]).exits(2).says(says).says("demo.snap");
        let json = project.evals(&["snapshot", "check", "--format", "json"]).exits(2).json();
        assert_eq!(json["exit_code"], 2);
        assert!(json["snapshots"][0]["note"].as_str().unwrap().contains(says), "{json}");
        // A run that is done is reported all the same.
        project.evals(&["run"]).exits(1).says("1 passed").says("cannot be read");
    }
    // What merges leave behind is none of a snapshot's.
    project.write(SNAP, &good.replace("  user\n", "<<<<<<< ours\n  user\n=======\n"));
    project.evals(&["snapshot", "check"]).exits(2).says("line 8");
    // What nobody can read is not thrown away where it is to be kept beside the new.
    project.evals(&["snapshot", "accept", "--add"]).exits(2).says("line 8");
    assert!(project.read(SNAP).contains("<<<<<<< ours"));
    // Accepting it again mends it.
    project.evals(&["snapshot", "accept"]).exits(0);
    assert_eq!(project.read(SNAP), good);
    // A case that is gone is told, and found again where it is named.
    std::fs::rename(project.path("cases/a.yaml"), project.path("cases/b.yaml")).unwrap();
    let ran = project.evals(&["snapshot", "check"]).exits(3);
    let ran = ran.says("case `a` no longer exists; give its new path with --case FILE");
    ran.says("cases/a.snapshots/demo.snap: the case");
}

#[test]
fn a_case_that_is_gone_is_not_as_accepted_although_the_others_are() {
    let project = accepted();
    project.case("b", KEYS, READS);
    project.evals(&["run", "--snapshot", "update"]).exits(0);
    project.evals(&["snapshot", "check"]).exits(0).says("2 same");
    std::fs::rename(project.path("cases/b.yaml"), project.path("cases/c.yaml")).unwrap();
    project.evals(&["snapshot", "check"]).exits(3).says("case `b` no longer exists").says("1 same");
    let json = project.evals(&["snapshot", "check", "--format", "json"]).exits(3).json();
    assert_eq!(json["exit_code"], 3);
    // Cells that are not asked for do not count, and a difference comes first.
    let only = project.evals(&["snapshot", "check", "--only", "a/*"]).exits(0);
    assert!(!only.out.contains("no longer exists"), "{}", only.out);
    project.evals(&["snapshot", "check", "--only", "b/*"]).exits(3).says("case `b` no longer exists");
    project.write(SNAP, &project.read(SNAP).replace("path: a.txt", "path: b.txt"));
    project.evals(&["snapshot", "check"]).exits(1).says("1 changed");
}

#[test]
fn a_case_that_was_moved_is_compared_if_it_is_named() {
    let project = accepted();
    project.case("b", KEYS, READS);
    project.case("c", KEYS, READS);
    project.evals(&["run", "--snapshot", "update"]).exits(0);
    let moved = |id: &str, to: &str| {
        for end in [".yaml", ".demo.yaml", ".snapshots"] {
            let (from, to) = (project.path(&format!("cases/{id}{end}")), project.path(&format!("cases/{to}{end}")));
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::rename(from, to).unwrap();
        }
    };
    // The ID is now `sub/b`.
    moved("b", "sub/b");
    project.evals(&["snapshot", "check"]).exits(3).says("case `b` no longer exists").says("2 same");
    project.evals(&["snapshot", "check", "--case", "cases/sub/b.yaml"]).exits(0).says("3 same");
    // It is unknown which of two cases this one was.
    moved("c", "sub/c");
    let ran = project.evals(&["snapshot", "check", "--case", "cases/sub/b.yaml"]).exits(2);
    ran.says("has no case `sub/b`").says("if the case was moved, write its ID in the run as `id` into the file");
    for id in ["b", "c"] {
        let path = format!("cases/sub/{id}.yaml");
        project.write(&path, &format!("id: {id}\n{}", project.read(&path)));
    }
    let both = ["snapshot", "check", "--case", "cases/sub/b.yaml", "--case", "cases/sub/c.yaml"];
    project.evals(&both).exits(0).says("3 same");
}

#[test]
fn a_file_of_the_older_form_is_compared_or_refused_with_the_way_out() {
    let project = accepted();
    let new = project.read(SNAP);
    // Nothing in it was replaced: it means the same.
    project.write(SNAP, &new.replace("evals-snapshot: 2", "evals-snapshot: 1"));
    project.evals(&["run"]).exits(0);
    project.evals(&["snapshot", "check"]).exits(0).says("1 same");
    // A replaced value had no number.
    project
        .write(SNAP, &new.replace("evals-snapshot: 2", "evals-snapshot: 1").replacen("path: a.txt", "path: {hash}", 1));
    let says = "it was accepted by an older version of evals, which replaced values without numbers";
    project.evals(&["run"]).exits(1).says(says).says("or accept it again with `evals snapshot accept`");
    project.evals(&["snapshot", "check"]).exits(1).says(says);
    project.evals(&["snapshot", "accept"]).exits(0).says("accepted a/demo");
    assert_eq!(project.read(SNAP), new);
    // A new file may hold such a word: the agent wrote it.
    project.case("a", KEYS, &READS.replace("new: two", "new: \"{hash} {hash:1}\""));
    project.evals(&["run", "--snapshot", "update"]).exits(0);
    assert!(project.read(SNAP).contains("new: {hash} \\{hash:1}"), "{}", project.read(SNAP));
    project.evals(&["run"]).exits(0);
}

#[test]
fn a_run_that_is_graded_again_is_compared_with_its_snapshots() {
    let project = Project::new();
    let write = |text: &str| format!("steps: [{{write: {{path: a.txt, text: {text}}}}}, {{say: done}}]");
    project.case("a", "", &write("one"));
    project.evals(&["run", "--snapshot", "update"]).exits(0);
    project.case("a", "", &write("two"));
    project.evals(&["run", "--label", "changed"]).exits(1);
    let graded = project.evals(&["grade", "changed", "--format", "json"]).exits(1).json();
    assert_eq!((&graded["exit_code"], &graded["snapshots"][0]["state"]), (&1.into(), &"changed".into()), "{graded}");
    // A run without snapshots stays without.
    project.evals(&["run", "--snapshot", "off", "--label", "without"]).exits(0);
    let graded = project.evals(&["grade", "without", "--format", "json"]).exits(0).json();
    assert_eq!(graded.get("snapshots"), None, "{graded}");
}

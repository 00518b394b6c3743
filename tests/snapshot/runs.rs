//! `evals run --snapshot` and `evals snapshot`: what is new, changed, missing and unreferenced, who writes and who does not.

use serde_json::{Value, json};

use crate::project::{Project, Ran};

const READS: &str = "steps: [{read: {path: a.txt}}, {edit: {path: a.txt, old: one, new: two}}, {say: done}]";
const KEYS: &str = "workspace: {files: {a.txt: one, b.txt: x}}";
const SNAP: &str = "cases/a.snapshots/demo.snap";

fn project() -> Project {
    let project = Project::new();
    project.case("a", KEYS, READS);
    project
}

fn accepted() -> Project {
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
    ran.says("+ step 3: read Read added (+ path: b.txt)").says("evals snapshot review");
    let json = project.evals(&["report", "--format", "json"]).exits(0).json();
    assert_eq!(json["exit_code"], 1);
    assert_eq!(json["snapshots"][0]["differing"][0]["differences"][0]["what"], "read Read");
    project.evals(&["run", "--snapshot", "off"]).exits(0);
    project.evals(&["run", "--snapshot", "update"]).exits(0);
    assert!(project.read(SNAP).contains("path: b.txt"));
    project.evals(&["run"]).exits(0);
    project.evals(&["run", "--snapshot", "always"]).exits(2);
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
    let line = "+ step 3: read Read added (+ path: b.txt)";
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
    ran.says("CI is set, so no snapshot was written").says("new a demo");
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
    let ran = ran.says("cases/a.snapshots/odd.snap: its cell's snapshot is").says("no harness is named `old`");
    ran.says("cases/gone.snapshots/demo.snap: there is no case");
    project.evals(&["snapshot", "accept"]).exits(0).says("passed over a/broken").says("nothing to accept");
    assert!(project.read("cases/a.snapshots/broken.snap").contains("path: a.txt"));
    // Without anything accepted it is nothing at all.
    std::fs::remove_file(project.path("cases/a.snapshots/broken.snap")).unwrap();
    project.evals(&["snapshot", "accept"]).exits(0).says("nothing to accept");
    assert!(!project.path("cases/a.snapshots/broken.snap").exists());
    // An agent that is skipped has no cell.
    project.case("asks", "requires: {interaction: true}", "steps: [{say: x}]");
    project.evals(&["run", "--harness", "demo-text", "--case", "asks", "--snapshot", "check"]).exits(3);
    let json = project.evals(&["report", "--format", "json"]).exits(0).json();
    assert!(json["snapshots"].is_null(), "{json}");
}

/// An agent whose trials take turns: each counts how often it was run.
const TURNS: &str = r#"
import json, os, sys
counter = os.path.join(os.environ["COUNT"], "n")
number = int(open(counter).read()) if os.path.exists(counter) else 0
open(counter, "w").write(str(number + 1))
files = ["a", ["b", "c", "b"][number % 3], "z"]
def say(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def update(**update): say(method="session/update", params={"sessionId": "s", "update": update})
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize": say(id=asked["id"], result={"protocolVersion": 1})
    elif asked["method"] == "session/new": say(id=asked["id"], result={"sessionId": "s"})
    else:
        for n, name in enumerate(files):
            call = f"call-{number}{n}f00"
            update(sessionUpdate="tool_call", toolCallId=call, title="read", kind="read", status="pending", rawInput={"path": name})
            update(sessionUpdate="tool_call_update", toolCallId=call, status="completed")
        say(id=asked["id"], result={"stopReason": "end_turn"})
"#;

#[test]
fn a_core_that_shrinks_says_so() {
    let project = Project::new();
    project.write("agent.py", &TURNS.replace("\"a\", ", "").replace(", \"z\"", ""));
    let here = project.path("").display().to_string();
    let keys = format!("adapter: acp\ncommand: [python3, {here}/agent.py]\nenv: {{set: {{COUNT: \"{here}\"}}}}");
    project.harness("turns", &keys);
    let run = |args: &[&str]| {
        let all = [&["run", "--harness", "turns", "--jobs", "1", "--trials", "3"], args].concat();
        project.write("n", "0");
        project.evals(&all)
    };
    let way_out = "with `snapshot: {several: set}` in the case each trial's shape is kept";
    let empty = "the accepted core holds no call and no word of the agent";
    project.case("a", "snapshot: {several: core}\ngraders: [{snapshot: {}}]", "");
    let ran = run(&["--snapshot", "update"]).exits(0);
    ran.says(empty).says(way_out).says("the core holds 0 of the 1 calls and words that a trial has");
    // It is never called the same without that.
    run(&["--snapshot", "check"]).exits(0).says("1 snapshot can show nothing").says("same a turns").says(way_out);
    let ran = project.evals(&["snapshot", "check"]).exits(0).says(empty).says(way_out);
    assert!(ran.out.contains("1 same"), "{}", ran.out);
    let json = project.evals(&["snapshot", "check", "--format", "json"]).exits(0).json();
    assert_eq!(
        (&json["snapshots"][0]["state"], &json["snapshots"][0]["shows_nothing"]),
        (&json!("same"), &json!(true))
    );
    let json = project.evals(&["report", "--format", "json"]).exits(0).json();
    let reason = json["results"][0]["grades"][0]["reason"].as_str().unwrap();
    assert!(reason.contains(empty), "{reason}");
    std::fs::remove_dir_all(project.path("cases/a.snapshots")).unwrap();
    project.evals(&["snapshot", "accept"]).exits(0).says("note: the accepted core holds no call");
    // One that holds a part says which part; one that holds all of it says nothing.
    project.write("agent.py", TURNS);
    run(&["--snapshot", "off"]);
    std::fs::remove_dir_all(project.path("cases/a.snapshots")).unwrap();
    let ran = project.evals(&["snapshot", "accept"]).exits(0).says("the core holds 2 of the 3 calls and words");
    assert!(!ran.out.contains("no call"), "{}", ran.out);
    assert!(!project.evals(&["snapshot", "check"]).exits(0).out.contains("core"));
    let ran = project.evals(&["snapshot", "accept", "--only", "a/*"]).exits(0).says("nothing to accept");
    assert!(!ran.out.contains("core"), "{}", ran.out);
}

#[test]
fn several_trials_are_a_set_or_a_core() {
    let project = Project::new();
    project.write("agent.py", TURNS);
    let here = project.path("").display().to_string();
    project.harness(
        "turns",
        &format!("adapter: acp\ncommand: [python3, {here}/agent.py]\nenv: {{set: {{COUNT: \"{here}\"}}}}"),
    );
    let run = |args: &[&str]| {
        let all = [&["run", "--harness", "turns", "--jobs", "1"], args].concat();
        project.evals(&all)
    };
    project.case("a", "", "");
    run(&["--trials", "3", "--snapshot", "update"]).exits(0);
    insta::assert_snapshot!("a_set", project.read("cases/a.snapshots/turns.snap"));
    run(&["--trials", "2"]).exits(0);
    // One that is accepted for the first of the two alone has the second told, with the trials that it is in.
    project.write("n", "0");
    run(&["--trials", "1", "--snapshot", "update", "--label", "one"]).exits(0);
    project.write("cases/a.snapshots/turns.snap", &{
        let text = project.read("cases/a.snapshots/turns.snap");
        text.split("\nshape: 1 of 3").next().unwrap().to_owned()
    });
    project.write("n", "0");
    let ran = run(&["--trials", "3"]).exits(1).says("2 of 3 trials as accepted");
    ran.says("~ step 2: read read changed (- path: b; + path: c)");
    project.evals(&["snapshot", "check"]).exits(1).says("trial 2:");
    // The core is what they have in common.
    project.case("a", "snapshot: {several: core}", "");
    project.write("n", "0");
    run(&["--trials", "3"]).exits(1).says("the case keeps `text` or `several` otherwise than when it was accepted");
    project.write("n", "0");
    run(&["--trials", "3", "--snapshot", "update"]).exits(0);
    insta::assert_snapshot!("a_core", project.read("cases/a.snapshots/turns.snap"));
    run(&["--trials", "3"]).exits(0);
    // A trial that lacks a part of it is told, with how many show it.
    project.write("agent.py", &TURNS.replace("\"z\"]", "\"z\"][: 2 if number == 4 else 3]"));
    project.write("n", "3");
    let ran = run(&["--trials", "3"]).exits(1).says("2 of 3 trials as accepted");
    ran.says("step 2: read read changed (- path: z");
    project.evals(&["snapshot", "check"]).exits(1).says("trial 2:");
}

#[test]
fn a_snapshot_is_a_grader_too() {
    let project = Project::new();
    let case = |keys: &str, steps: &str| project.case("a", &format!("{KEYS}\n{keys}"), steps);
    let grade = |project: &Project| -> Value {
        let json = project.evals(&["report", "--format", "json"]).exits(0).json();
        json["results"][0]["grades"][0].clone()
    };
    case("graders: [{snapshot: {}}]", READS);
    project.evals(&["run"]).exits(3);
    let ungraded = grade(&project);
    assert_eq!(ungraded["outcome"], "ungraded");
    assert!(ungraded["reason"].as_str().unwrap().contains("no snapshot is accepted"), "{ungraded}");
    project.evals(&["snapshot", "accept"]).exits(0);
    // What is stored can be judged again.
    project.evals(&["grade", "latest"]).exits(0).says("ungraded -> pass");
    project.evals(&["run"]).exits(0);
    let changed = READS.replace("new: two", "new: three");
    case("graders: [{snapshot: {}}]", &changed);
    project.evals(&["run"]).exits(1);
    let failed = grade(&project);
    assert_eq!((&failed["passed"], &failed["value"]), (&json!(false), &json!(0.75)));
    assert_eq!(failed["reason"], "step 2: edit Edit changed (- new: two; + new: three)");
    let trace = project.evals(&["show", "latest"]).exits(0).out;
    assert!(trace.contains("three") && failed["evidence"].as_array().unwrap().len() == 2, "{failed}");
    // A share is enough where it says so; as a gate it decides alone; a diagnostic decides nothing.
    case("graders: [{snapshot: {min: 0.7}}]", &changed);
    project.evals(&["run", "--snapshot", "off"]).exits(0);
    case("graders: [{snapshot: {gate: true}}, {stop: {reason: [end_turn], weight: 9}}]", &changed);
    project.evals(&["run", "--snapshot", "off"]).exits(1);
    case("graders: [{snapshot: {diagnostic: true}}, {stop: {reason: [end_turn]}}]", &changed);
    project.evals(&["run", "--snapshot", "off"]).exits(0);
    assert_eq!(grade(&project)["passed"], false);
    // Without tracing nobody can judge, and what asserts nothing is refused.
    case("graders: [{snapshot: {}}]", READS);
    project.evals(&["run", "--harness", "demo-text"]).exits(3);
    assert!(grade(&project)["reason"].as_str().unwrap().contains("shows no tool calls"));
    case("graders: [{snapshot: {min: 0}}]", READS);
    project.evals(&["check"]).exits(2).says("checks nothing");
    case("graders: [{snapshot: {mni: 1}}]", READS);
    project.evals(&["check"]).exits(2).says("did you mean `min`?");
    // A model that the manifest asks for by itself makes no other cell, for the run and for the grader.
    case("graders: [{snapshot: {}}]", READS);
    project.demo("preset", "model: {via: config-option, default: demo-1}");
    project.evals(&["run", "--harness", "preset", "--snapshot", "update"]).exits(0);
    assert!(project.path("cases/a.snapshots/preset.snap").is_file());
    project.evals(&["run", "--harness", "preset"]).exits(0);
    // A snapshot that cannot be read is no failure of the agent.
    project.write(SNAP, "evals-snapshot: 1\nharness: demo\nshape: 1 of 1 trials\n  jump\n");
    project.evals(&["run", "--snapshot", "off"]).exits(3);
    assert!(grade(&project)["reason"].as_str().unwrap().contains("line 4: `jump` has no `:`"));
}

#[test]
fn what_the_case_says_is_kept_and_replaced() {
    let project = Project::new();
    let steps = "steps: [{thought: I think.}, {run: {command: 'make BUILD=b4711 all'}}, {say: Built b4711 in 2.5s.}]";
    for (keys, holds, lacks) in [
        ("snapshot: {text: none}", vec!["BUILD=b4711"], vec!["Built", "thinks", "digest"]),
        (
            "snapshot: {text: full}",
            vec!["says: Built b4711 in {duration}.", "thinks: I think.", "user: Do it."],
            vec![],
        ),
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
        ("{regex: 'b(\\d)', with: 'b$9'}", "cases/a.yaml:4:30: `$9` is no group of the regex"),
        ("{regex: 'b(\\d)', with: 'b$9'}", "the regex has `$1`; `$0` is all that was found, `$$` a dollar"),
        ("{regex: 'b(\\d)', with: 'b$1x'}", "for group 1 and then `x` write `${1}x`"),
        ("{regex: 'b(?P<n>\\d)', with: '${m}'}", "`${m}` is no group of the regex"),
        ("{regex: 'b(?P<n>\\d)', with: '$m'}", "the regex has `$1`, `${n}`"),
        ("{regex: 'b\\d', with: '$1'}", "the regex has no group"),
    ] {
        project.case("a", &format!("snapshot:\n  normalise:\n    - {rule}"), steps);
        project.evals(&["check"]).exits(2).says(says);
        project.evals(&["run", "--dry-run"]).exits(2).says(says);
    }
    project.write("cases/suite.yaml", "snapshot: {normalise: [{regex: x, with: '$2'}]}\n");
    project.evals(&["check"]).exits(2).says("cases/suite.yaml:1:41: `$2` is no group");
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
    let digest = |project: &Project| -> Value {
        let mut runs = project.runs();
        let run = project.read(&format!(".evals/runs/{}/run.json", runs.pop().unwrap()));
        serde_json::from_str::<Value>(&run).unwrap()["cases"][0]["digest"].clone()
    };
    let before = digest(&project);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    project.evals(&["run", "--model", "x/1", "--model", "y", "--model", "y", "--snapshot", "update"]).exits(0);
    let mut files: Vec<String> = project.files("cases/a.snapshots").into_keys().collect();
    files.iter_mut().for_each(|file| *file = file.rsplit('/').next().unwrap().to_owned());
    assert_eq!(files, ["demo.snap", "demo@x%2F1.snap", "demo@y.snap"]);
    assert_eq!(before, digest(&project));
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
        ("", "line 1: a snapshot begins with `evals-snapshot: 1`"),
        ("shape: 1 of 1 trials\n  user\n", "line 1: a snapshot begins with"),
        ("evals-snapshot: 2\n", "has version 2, this program reads up to 1"),
        ("evals-snapshot: 1\ntext: all\n", "line 2: `all` is not `none`, `full` or `digest`"),
        ("evals-snapshot: 1\nharness: demo\n", "no shape follows"),
        ("evals-snapshot: 1\nshape: one\n", "is not `shape: N of M trials`"),
        ("evals-snapshot: 1\nshape: 1 of 1 trials\n   user\n", "odd number of blanks"),
        ("evals-snapshot: 1\nshape: 1 of 1 trials\n  step\n    jump High\n", "`jump` is no kind of tool"),
        ("evals-snapshot: 1\nshape: 1 of 1 trials\n  step\n    read\n          x: 1\n", "belongs to nothing above it"),
        ("evals-snapshot: 1\nshape: 1 of 1 trials\n  says:\n", "`says:` has no value"),
        ("evals-snapshot: 1\nshape: 1 of 1 trials\n  says:x\n", "has no blank after its `:`"),
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
    let ran = ran.says("case `a` is gone; name where it is now with --case FILE");
    ran.says("cases/a.snapshots/demo.snap: there is no case");
}

#[test]
fn what_can_show_nothing_is_neither_accepted_nor_the_same() {
    let project = Project::new();
    let steps = "steps: [{edit: {path: a.txt, old: one, new: two}}, {say: Done.}]";
    project.case("a", &format!("{KEYS}\ngraders: [{{snapshot: {{}}}}, {{files: {{exists: [a.txt]}}}}]"), steps);
    let file = "cases/a.snapshots/demo-text.snap";
    let run = |args: &[&str]| project.evals(&[&["run", "--harness", "demo-text"], args].concat());
    let way_out = "write `snapshot: {text: full}` or `{text: digest}` in the case";
    for mode in ["update", "check"] {
        let ran = run(&["--snapshot", mode]).exits(3).says("1 snapshot can show nothing of what the agent does");
        ran.says("trial 1 has nothing to compare: the harness shows no tool calls").says(way_out);
    }
    run(&["--trials", "3"]).exits(3);
    let ran = project.evals(&["snapshot", "check"]).exits(3);
    ran.says("trial 1, trial 2, trial 3 has nothing to compare").says("1 new");
    project
        .evals(&["snapshot", "accept"])
        .exits(0)
        .says("passed over a/demo-text")
        .says(way_out)
        .says("nothing to accept");
    assert!(!project.path("cases/a.snapshots").exists());
    let grade = || -> Value {
        let json = project.evals(&["report", "--format", "json"]).exits(0).json();
        json["results"][0]["grades"][0].clone()
    };
    assert!(grade()["reason"].as_str().unwrap().contains(way_out), "{}", grade());
    // One that was accepted before this was known is not the same either.
    let empty = "evals-snapshot: 1\ncase: a\nharness: demo-text\ntext: none\n\nshape: 1 of 1 trials\n  user\n  stop: end_turn\n";
    project.write(file, empty);
    run(&[]).exits(3).says("missing a demo-text").says(way_out);
    project.evals(&["snapshot", "check"]).exits(3).says("1 missing");
    assert_eq!(grade()["outcome"], "ungraded");
    // With its words there is something to be compared.
    for text in ["digest", "full"] {
        let keys = format!("{KEYS}\nsnapshot: {{text: {text}}}\ngraders: [{{snapshot: {{gate: true}}}}]");
        project.case("a", &keys, steps);
        run(&["--snapshot", "update"]).exits(0);
        run(&["--snapshot", "check"]).exits(0);
        project.case("a", &keys, &steps.replace("Done.", "I give up."));
        run(&[]).exits(1).says("says changed");
        assert_eq!(grade()["passed"], false);
    }
    // Of a harness that shows its calls it is a statement that there are none.
    project.case("a", "graders: [{snapshot: {}}]", "steps: [{say: Nothing to do.}]");
    project.evals(&["run", "--snapshot", "update"]).exits(0);
    project.evals(&["run", "--snapshot", "check"]).exits(0);
    project.case("a", "graders: [{snapshot: {}}]", "steps: [{run: {command: ls}}]");
    project.evals(&["run"]).exits(1).says("execute Bash added");
}

#[test]
fn characters_that_hide_or_reorder_text_are_written_out() {
    let project = Project::new();
    let odd = "\u{202e}\u{2066}\u{200b}\u{feff}\u{85}\u{7f}\u{1b}\u{fe0f}\u{e0041}";
    let steps = |end: &str| {
        let quoted = |text: &str| {
            serde_json::to_string(text)
                .unwrap()
                .replace('\u{7f}', "\\u007f")
                .replace('\u{85}', "\\u0085")
                .replace('\u{feff}', "\\ufeff")
        };
        let command = quoted(&format!("echo {odd}{end}"));
        let text = quoted(&format!("plain\n{odd}{end}\nplain\n"));
        let say = quoted(&format!("It is {odd}{end} done."));
        format!(
            "steps: [{{run: {{command: {command}}}}}, {{write: {{path: {}, text: {text}}}}}, {{say: {say}}}]",
            quoted(&format!("b{odd}.txt"))
        )
    };
    let raw = |text: &str| text.chars().any(|c| odd.contains(c));
    project.case("a", "snapshot: {text: full}", &steps("one"));
    project.evals(&["run", "--snapshot", "update"]).exits(0);
    let text = project.read(SNAP);
    assert!(!raw(&text), "{text:?}");
    assert!(text.contains("\\u202e\\u2066\\u200b\\ufeff\\u0085\\u007f\\u001b\\ufe0f\\udb40\\udc41one"), "{text}");
    assert!(text.contains("| plain\n"), "lines that hide nothing stay as they are: {text}");
    // What is read back is what was written, and a difference in one of them is told and can be seen.
    project.evals(&["run", "--snapshot", "check"]).exits(0);
    project.case("a", "snapshot: {text: full}", &steps("one").replacen("\u{202e}", "\u{202d}", 1));
    let ran = project.evals(&["run"]).exits(1).says("~ step 1: execute Bash changed");
    assert!(!raw(&ran.out), "{:?}", ran.out);
    let ran = project.evals(&["snapshot", "check"]).exits(1);
    assert!(!raw(&ran.out) && ran.out.contains("\\u202e") && ran.out.contains("\\u202d"), "{:?}", ran.out);
    let ran = project.evals(&["snapshot", "check", "--format", "json"]).exits(1);
    assert!(!raw(&ran.out.replace('\u{7f}', "")), "{:?}", ran.out);
}

#[test]
fn an_update_accepts_what_its_graders_would_have_failed() {
    let project = Project::new();
    let keys = format!("{KEYS}\ngraders: [{{snapshot: {{gate: true}}}}, {{stop: {{reason: [end_turn]}}}}]");
    project.case("a", &keys, READS);
    let grade = || -> Value {
        let json = project.evals(&["report", "--format", "json"]).exits(0).json();
        json["results"][0]["grades"][0].clone()
    };
    project.evals(&["run", "--snapshot", "update"]).exits(0).says("1 snapshot accepted");
    let reason = grade()["reason"].as_str().unwrap().to_owned();
    assert!(
        reason.starts_with("the run accepts what it did (`--snapshot update`); before: no snapshot is accepted"),
        "{reason}"
    );
    project.evals(&["run", "--snapshot", "update"]).exits(0);
    assert_eq!(grade()["reason"], "it did what is accepted: 4 items");
    // An agent that has changed is accepted too, with what was otherwise, and stays accepted.
    let changed = READS.replace("new: two", "new: three");
    project.case("a", &keys, &changed);
    project.evals(&["run", "--fail-fast", "--trials", "2", "--snapshot", "update"]).exits(0).says("accepted a demo");
    let told = grade();
    assert!(told["reason"].as_str().unwrap().contains("before: step 2: edit Edit changed"), "{told}");
    assert_eq!((&told["passed"], told["evidence"].as_array().unwrap().len()), (&json!(true), 2));
    project.evals(&["run"]).exits(0);
    project.evals(&["grade", "latest"]).exits(0);
    // What other graders fail stays failed, and so does the snapshot where nothing is written.
    project.case("a", &keys.replace("end_turn", "refusal"), READS);
    project.evals(&["run", "--snapshot", "update"]).exits(1).says("1 snapshot accepted");
    let mut project = project;
    project.case("a", &keys, &changed);
    project.env("CI", "true");
    project.evals(&["run", "--snapshot", "update"]).exits(1).says("CI is set").says("edit Edit changed");
    let json = project.evals(&["report", "--format", "json"]).exits(0).json();
    assert_eq!(json["results"][0]["grades"][0]["passed"], false);
}

#[test]
fn snapshots_that_no_cell_of_a_whole_run_asks_for_are_unreferenced() {
    let project = accepted();
    project.case("b", KEYS, READS);
    project.demo("other", "");
    let lists = |args: &[&str]| -> Vec<String> {
        project.evals(&[&["run"], args].concat());
        let json = project.evals(&["snapshot", "check", "--format", "json"]).json();
        let all = json["unreferenced"].as_array().unwrap().iter();
        all.map(|it| format!("{}: {}", it["file"].as_str().unwrap(), it["why"].as_str().unwrap())).collect()
    };
    project.evals(&["run", "--model", "x", "--model", "y", "--snapshot", "update"]).exits(0);
    project.evals(&["run", "--harness", "other", "--snapshot", "update"]).exits(0);
    // A run that was told which part to run says nothing of the rest.
    for part in [
        &["--model", "y"][..],
        &["--model", "x", "--case", "a"],
        &["--harness", "other"],
        &["--case", "a"],
        &["--tag", "none"],
        &["--shard", "1/2"],
    ] {
        assert_eq!(lists(part), [""; 0], "{part:?}");
    }
    // A whole one knows which models it asks for; another harness may be asked for by another run.
    let found = lists(&[]);
    let files = ["a.snapshots/demo@x", "a.snapshots/demo@y", "b.snapshots/demo@x", "b.snapshots/demo@y"];
    assert_eq!(found.len(), files.len(), "{found:?}");
    for (found, file) in found.iter().zip(files) {
        let model = &file[file.len() - 1..];
        let wanted = format!("cases/{file}.snap: the run asks `demo` for no model `{model}`");
        assert_eq!(*found, wanted);
    }
    // One that says that it belongs to another case: beside a case of its own, and where a cell of the run looks for it.
    for file in files {
        std::fs::remove_file(project.path(&format!("cases/{file}.snap"))).unwrap();
    }
    let stray = project.read("cases/a.snapshots/other.snap");
    project.write("cases/b.snapshots/other.snap", &stray);
    let says = "it says that it was accepted for the case `a`, and lies beside `b`";
    assert_eq!(lists(&[]), [format!("cases/b.snapshots/other.snap: {says}")]);
    project
        .evals(&["run", "--snapshot", "check"])
        .exits(1)
        .says("a snapshot is unreferenced: cases/b.snapshots/other.snap")
        .says(says);
    let ran = project.evals(&["run", "--snapshot", "update"]).exits(0).says("a snapshot is unreferenced");
    assert!(ran.out.contains("accepted  b"), "{}", ran.out);
    assert!(!project.evals(&["run"]).exits(0).out.contains("unreferenced"));
    project.write("cases/b.snapshots/demo.snap", &project.read(SNAP));
    let misplaced =
        "it says that it was accepted for the case `a` and `demo`, and lies where that of `b` and `demo` is";
    project.evals(&["run"]).exits(1).says("changed b demo").says(misplaced);
    project.evals(&["snapshot", "accept"]).exits(0).says("accepted b/demo");
    project.evals(&["snapshot", "check"]).exits(0).says("2 same, 1 unreferenced");
    // The folder that ids count from may be another.
    project.write("cases/b.snapshots/demo.snap", &project.read(SNAP).replace("case: a", "case: deep/b"));
    project.evals(&["snapshot", "check"]).exits(0).says("2 same");
}

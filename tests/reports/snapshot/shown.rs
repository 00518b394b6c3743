//! What a snapshot can show: several trials, trials of which nothing is seen, text that hides, and what belongs to no cell.

use serde_json::{Value, json};

use super::runs::{KEYS, READS, SNAP, accepted};
use crate::project::Project;

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
    let way_out = "to keep each trial's shape, write `snapshot: {several: set}` in the case";
    let empty = "the accepted core contains no call and no text of the agent";
    project.case("a", "snapshot: {several: core}\ngraders: [{snapshot: {}}]", "");
    let ran = run(&["--snapshot", "update"]).exits(0);
    ran.says(empty).says(way_out).says("the core contains 0 of up to 1 calls and texts of a trial");
    // It is never called the same without that.
    run(&["--snapshot", "check"]).exits(0).says("1 snapshot compares nothing").says("same a turns").says(way_out);
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
    project.evals(&["snapshot", "accept"]).exits(0).says("note: the accepted core contains no call");
    // One that holds a part says which part; one that holds all of it says nothing.
    project.write("agent.py", TURNS);
    run(&["--snapshot", "off"]);
    std::fs::remove_dir_all(project.path("cases/a.snapshots")).unwrap();
    let ran = project.evals(&["snapshot", "accept"]).exits(0).says("the core contains 2 of up to 3 calls and texts");
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
    ran.says("~ step 2: read changed (- path: b; + path: c)");
    project.evals(&["snapshot", "check"]).exits(1).says("trial 2:");
    // The core is what they have in common.
    project.case("a", "snapshot: {several: core}", "");
    project.write("n", "0");
    run(&["--trials", "3"]).exits(1).says("the case's `text` or `several` has changed since it was accepted");
    project.write("n", "0");
    run(&["--trials", "3", "--snapshot", "update"]).exits(0);
    insta::assert_snapshot!("a_core", project.read("cases/a.snapshots/turns.snap"));
    run(&["--trials", "3"]).exits(0);
    // A trial that lacks a part of it is told, with how many show it.
    project.write("agent.py", &TURNS.replace("\"z\"]", "\"z\"][: 2 if number == 4 else 3]"));
    project.write("n", "3");
    let ran = run(&["--trials", "3"]).exits(1).says("2 of 3 trials as accepted");
    ran.says("step 2: read changed (- path: z");
    project.evals(&["snapshot", "check"]).exits(1).says("trial 2:");
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
        let ran = run(&["--snapshot", mode]).exits(3).says("1 snapshot compares nothing: the harness shows no calls");
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
        let wanted = format!("cases/{file}.snap: the run does not request model `{model}` from `demo`");
        assert_eq!(*found, wanted);
    }
    // One that says that it belongs to another case: beside a case of its own, and where a cell of the run looks for it.
    for file in files {
        std::fs::remove_file(project.path(&format!("cases/{file}.snap"))).unwrap();
    }
    let stray = project.read("cases/a.snapshots/other.snap");
    project.write("cases/b.snapshots/other.snap", &stray);
    let says = "it was accepted for the case `a`, but is beside `b`";
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
    let misplaced = "it was accepted for the case `a` and `demo`, but its path is that of the case `b` and `demo`";
    project.evals(&["run"]).exits(1).says("changed b demo").says(misplaced);
    project.evals(&["snapshot", "accept"]).exits(0).says("accepted b/demo");
    project.evals(&["snapshot", "check"]).exits(0).says("2 same, 1 unreferenced");
    // The folder that ids count from may be another.
    project.write("cases/b.snapshots/demo.snap", &project.read(SNAP).replace("case: a", "case: deep/b"));
    project.evals(&["snapshot", "check"]).exits(0).says("2 same");
}

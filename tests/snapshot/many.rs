//! An agent that has not changed gives no difference, however often it is run.

use crate::project::Project;

#[test]
fn two_hundred_runs_of_an_unchanged_agent_give_no_difference() {
    let project = Project::new();
    // What its commands print and when they end is another thing each time; it works in another folder, and it is told
    // where that is.
    let steps = "turns:
  - steps:
      - thought: I look around.
      - parallel:
          - read: {path: a.txt}
          - search: {pattern: one, path: .}
          - run: {command: 'echo $$ $PWD; date +%N; sleep 0.00$(($$ % 10))'}
      - usage: {input-tokens: 1000, output-tokens: 90}
      - edit: {path: a.txt, old: one, new: two, ask: true}
      - run: {command: 'mktemp -d; exit 3'}
      - say: 'Done.'
  - steps: [{delete: {path: b.txt, ask: true}}, {say: 'Gone.'}]
";
    let keys = "turns: [Change it., Delete b.txt.]\nsnapshot: {text: full}\nworkspace: {files: {a.txt: one, b.txt: x}}
graders: [{snapshot: {gate: true}}, {stop: {reason: [end_turn]}}]";
    project.case("a", keys, steps);
    // The first run has nothing to be compared with, so its grader cannot judge.
    project.evals(&["run", "--snapshot", "update", "--label", "first"]).exits(3).says("1 snapshot accepted");
    let args = ["run", "--trials", "200", "--jobs", "8", "--snapshot", "check", "--keep-workspace", "never"];
    let ran = project.evals(&args).exits(0).says("200 passed");
    assert!(!ran.out.contains("snapshot"), "{}", ran.out);
    let json = project.evals(&["report", "--format", "json"]).exits(0).json();
    let snapshot = &json["snapshots"][0];
    assert_eq!(
        (&snapshot["trials"], &snapshot["matching"], &snapshot["state"]),
        (&200.into(), &200.into(), &"same".into())
    );
}

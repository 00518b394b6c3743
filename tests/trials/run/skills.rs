//! `skills` in real runs: an agent that reads a skill, and its session graded again.

use serde_json::Value;

use crate::project::Project;

/// Makes a project with a case that these steps play, and two manifests of the demo agent: one says how a skill is used.
fn project(steps: &str) -> Project {
    let project = Project::new();
    project.demo("mine", "skills:\n  used-by:\n    - {kind: read, path: '**/.mine/skills/{skill}/SKILL.md'}\n");
    project.demo("plain", "");
    for name in ["changelog", "changelog-old"] {
        project.write(&format!("work/.mine/skills/{name}/SKILL.md"), "Write one line.\n");
    }
    let keys =
        "workspace: {copy: ../work}\ngraders:\n  - skills: {used: [changelog], not-used: [release], only: [changelog]}";
    project.case("a", keys, steps);
    project
}

fn grade(project: &Project, trial: &str) -> Value {
    project.result(trial)["grades"][0].clone()
}

const USES: &str = "steps: [{read: {path: .mine/skills/changelog/SKILL.md}}, {say: ok}]";

#[test]
fn the_manifest_says_by_which_calls_a_skill_is_used() {
    let project = project(USES);
    project.evals(&["harness", "show", "mine"]).exits(0).says("{skill}");
    project.evals(&["run", "--harness", "mine"]).exits(0);
    let used = grade(&project, "a/mine/default/1");
    assert_eq!(used["passed"], true, "{used}");
    assert!(used["reason"].as_str().unwrap().contains("the skill `changelog` was used (event "), "{used}");
    let run = project.run_folder();
    let run = run.rsplit('/').next().unwrap();
    project.write("lone.jsonl", &project.of_trial("a/mine/default/1", "trace.jsonl"));
    let lone = ["grade", "lone.jsonl", "--case", "cases/a.yaml", "--format", "json"];
    project.evals(&["grade", run]).exits(0);
    project.evals(&lone).exits(0);
    // The stored manifest of a run counts; of a single trace, that of today.
    std::fs::remove_file(project.path("harnesses/mine.yaml")).unwrap();
    project.evals(&["grade", run]).exits(0);
    project.evals(&lone).exits(3).says("which calls of the harness `mine` use a skill");
}

#[test]
fn a_listing_another_skill_and_a_read_that_fails_are_no_use() {
    let project = project(
        "steps:
  - search: {pattern: one, path: .mine/skills/changelog/SKILL.md}
  - read: {path: .mine/skills/changelog-old/SKILL.md}
  - read: {path: .mine/skills/release/SKILL.md}
  - say: ok",
    );
    project.evals(&["run", "--harness", "mine"]).exits(1);
    let grade = grade(&project, "a/mine/default/1");
    let reason = grade["reason"].as_str().unwrap();
    assert!(reason.contains("the skill `changelog` was not used"), "{reason}");
    assert!(reason.contains("and the agent used `changelog-old` (event "), "{reason}");
    assert!(reason.contains("(1 of 3 checks held)"), "{reason}");
}

#[test]
fn without_signs_a_skill_is_ungraded_and_a_wrong_name_is_refused() {
    let project = project(USES);
    project.evals(&["run", "--harness", "plain"]).exits(3);
    let grade = grade(&project, "a/plain/default/1");
    assert_eq!(grade["outcome"], "ungraded", "{grade}");
    project.case("c", "graders:\n  - skills: {used: ['change*']}", "");
    project.evals(&["check"]).exits(2).says("cases/c.yaml:3:").says("`change*` is not the name of a skill");
}

//! `files` with `absent` behind links, and in ignored folders, in a trial and when the trial is graded again.

use crate::project::Project;

/// Runs a case with this action, and grades it again. Returns the values of `passed` of both.
#[track_caller]
fn both(keep: &str, keys: &str, act: &str) -> [Vec<Option<bool>>; 2] {
    let project = Project::new();
    project.case("a", keys, &format!("steps: [{{run: {{command: '{act}'}}}}, {{say: ok}}]"));
    project.evals(&["run", "--keep-workspace", keep]);
    let trial = project.result("a/demo/default/1");
    let report = project.evals(&["grade", "latest", "--format", "json"]).json();
    [trial, report["results"][0].clone()]
        .map(|result| result["grades"].as_array().unwrap().iter().map(|grade| grade["passed"].as_bool()).collect())
}

const IGNORED: &str = "workspace: {files: {.gitignore: build/, a.txt: x}}\n";

#[test]
fn a_folder_that_was_moved_to_the_home_is_unknown_without_the_home() {
    let keys = "workspace: {files: {build/secret.key: x}}\ngraders: [{files: {absent: [\"**/*.key\"]}}]";
    let [_, again] = both("always", keys, "mv build $HOME/b; ln -s $HOME/b build");
    assert_eq!(again, [None]);
}

#[test]
fn empty_ignored_files_are_missing_in_a_rebuilt_workspace() {
    let keys = format!(
        "{IGNORED}graders: [{{files: {{exists: [build/.done]}}}}, {{files: {{absent: [\"build/*\"]}}}}, \
         {{files: {{absent: [a.log]}}}}]"
    );
    let [trial, again] = both("never", &keys, "mkdir build; touch build/.done");
    assert_eq!(trial, [Some(true), Some(false), Some(true)]);
    assert_eq!(again, [None, None, Some(true)]);
}

#[test]
fn a_link_to_an_ignored_folder_that_a_rebuilt_workspace_lacks_leads_there_all_the_same() {
    let graders = "graders: [{files: {absent: [\"x*/secret.key\"]}}, {files: {absent: [\"a*/x\"]}}]";
    let keys = format!("{IGNORED}{graders}");
    let [trial, again] = both("never", &keys, "mkdir build; echo k > build/secret.key; ln -s build xlink");
    assert_eq!((trial, again), (vec![Some(false), Some(true)], vec![None, Some(true)]));
}

#[test]
fn a_link_that_setup_made_in_an_ignored_folder_is_not_the_agents() {
    let keys = "workspace:\n  files: {.gitignore: node_modules/}\n  \
                setup: ['mkdir ../lib node_modules; touch ../lib/debug.log; ln -s ../../lib node_modules/dep; \
                ln -s ../../none node_modules/none']\n\
                graders: [{files: {absent: [\"**/*.log\"]}}]";
    for keep in ["always", "never"] {
        let trial = &both(keep, keys, "echo 1 > node_modules/index.js")[0];
        assert_eq!(*trial, [Some(true)], "{keep}");
    }
    let [_, again] = both("always", keys, "echo 1 > node_modules/index.js");
    assert_eq!(again, [Some(true)]);
    let [trial, _] = both("always", keys, "ln -s ../../lib node_modules/other");
    assert_eq!(trial, [Some(false)]);
}

#[test]
fn ignored_places_without_a_name_are_not_where_no_rule_ignores_anything() {
    let keys = "workspace:\n  files: {.gitignore: \"*.log\", a.txt: x}\n  \
                setup: ['mkdir ../lib; touch ../lib/a.orig; ln -s ../lib vendor']\n\
                graders: [{files: {absent: [\"**/*.orig\"]}}, {files: {absent: [vendor/x.txt]}}, \
                {scope: {never: [\"vendor/**\"]}}, {scope: {never: [a.txt]}}, {scope: {never: [\"b/x.log\"]}}]";
    let [trial, again] = both("always", keys, "for n in $(seq 1001); do : > $n.log; done");
    assert_eq!(trial, [Some(true); 5]);
    assert_eq!(again, [Some(true), Some(true), Some(true), Some(true), None]);
}

#[test]
fn a_repository_in_a_folder_hides_no_file_of_its_work_tree() {
    let keys = "graders: [{expr: {cel: files.created.size() <= 10}}, {expr: {cel: metrics.changed_files <= 10}}]";
    let acts = [("git init -q pkg; echo 1 > pkg/a", Some(true)), ("git init -q pkg; : > pkg/.git/x.js", None)];
    for (act, passed) in acts {
        assert_eq!(both("never", keys, act), [vec![passed; 2], vec![passed; 2]], "{act}");
    }
}

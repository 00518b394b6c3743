//! Exit codes, and trials that are not run.

use std::process::Stdio;

use crate::project::Project;

const PASS: &str = "steps: [{say: done}]";
const FAIL: &str = "steps: [{stop: refusal}]";

fn two() -> Project {
    let project = Project::new();
    project.case("a-good", "tags: [easy]", PASS);
    project.case("b-bad", "tags: [hard]", FAIL);
    project
}

#[test]
fn the_exit_code_says_what_came_of_it() {
    let project = two();
    project.harness("gone", "adapter: acp\ncommand: [no-such-agent-anywhere]\ninstall: npm install -g it");
    let code = |args: &[&str]| project.evals(&[&["run"], args].concat()).code;
    assert_eq!(code(&["--case", "a-*"]), 0, "all passed");
    assert_eq!(code(&[]), 1, "one failed");
    assert_eq!(code(&["--tag", "easy", "--harness", "gone"]), 3, "errored");
    assert_eq!(code(&["--harness", "gone", "--harness", "demo"]), 1, "failed and errored");
    assert_eq!(code(&["--case", "nothing*"]), 2);
    assert_eq!(code(&["--tag", "nothing"]), 2);
    assert_eq!(code(&["--shard", "3/3"]), 2, "the third of three parts of two cases is empty");
    assert_eq!(code(&["--case", "["]), 2);
}

#[test]
fn a_filter_that_matches_nothing_is_refused_also_beside_one_that_matches() {
    let project = Project::new();
    project.case("alpha", "tags: [inner]", PASS);
    project.case("beta", "", PASS);
    let refused = |args: &[&str]| project.evals(&[&["run", "--dry-run"], args].concat()).exits(2);
    let ran = refused(&["--case", "alpha", "--case", "bet"]).says("--case bet matches none of the cases");
    ran.says("did you mean `beta`?");
    let ran = refused(&["--tag", "inner", "--tag", "iner"]).says("--tag iner matches none of the cases");
    ran.says("did you mean `inner`?");
    project.case("sub/gamma", "", PASS);
    refused(&["--case", "alpha", "--case", "gamma"]).says("did you mean `sub/gamma`?");
    refused(&["--case", "beta", "--tag", "inner"]).says("there are no tags of the cases that --case selects");
    project.evals(&["run", "--dry-run", "--case", "alpha", "--case", "b*", "--tag", "inner"]).exits(0);
}

#[test]
fn what_cannot_be_judged_is_3() {
    let project = Project::new();
    // The demo agent reports no cost unless its script contains one.
    project.case("cost", "graders: [{budget: {cost-usd: 1}}]", PASS);
    project.evals(&["run"]).exits(3);
    assert_eq!(project.result("cost/demo/default/1")["verdict"], "ungraded");
}

#[test]
fn a_run_with_everything_skipped_is_3_and_with_something_skipped_is_not() {
    let project = Project::new();
    project.case("traced", "requires: {tracing: true}", PASS);
    let ran = project.evals(&["run", "--harness", "demo-text", "--reporter", "json"]).exits(3).json();
    assert_eq!(ran["summary"]["skipped"], 1);
    let reason = ran["results"][0]["skipped"].as_str().unwrap();
    assert_eq!(reason, "the case requires tracing, which harness `demo-text` does not have");
    project.case("said", "graders: [{output: {contains: done}}]", PASS);
    project.evals(&["run", "--harness", "demo-text"]).exits(0).says(reason);
}

#[test]
#[ignore = "slow: runs many trials"]
fn first_runs_that_begin_at_once_do_not_disturb_each_other() {
    for _ in 0..4 {
        let project = two();
        let begin = |_| {
            project.command(&["run", "--case", "a-*"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let runs: Vec<_> = (0..8).map(begin).collect();
        for run in runs {
            let done = run.wait_with_output().unwrap();
            assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
        }
        assert_eq!(project.runs().len(), 8);
        let beside: Vec<_> =
            std::fs::read_dir(project.path(".evals")).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(beside.len(), 2, "{beside:?}");
        assert!(project.read(".evals/.gitignore").ends_with("*\n"));
    }
}

#[test]
fn fail_fast_starts_nothing_after_a_failure() {
    let project = Project::new();
    project.case("a", "", FAIL);
    project.case("b", "", PASS);
    project.case("c", "", PASS);
    let args = ["run", "--fail-fast", "--jobs", "1", "--reporter", "json=out.json"];
    project.evals(&args).exits(1).says("2 trials were not run").says("evals run --resume");
    let report: serde_json::Value = serde_json::from_str(&project.read("out.json")).unwrap();
    assert_eq!((&report["summary"]["fail"], &report["summary"]["not_run"]), (&1.into(), &2.into()));
    assert_eq!(report["results"].as_array().unwrap().len(), 1);
    // Trials that were not run are run by a resume.
    project.evals(&["run", "--resume", "latest"]).exits(1);
    let report = project.evals(&["report", "--format", "json"]).json();
    assert_eq!((&report["summary"]["pass"], &report["summary"]["not_run"]), (&2.into(), &0.into()));
    assert_eq!(project.journal().iter().filter(|line| line["event"] == "started").count(), 3);
}

#[test]
fn a_spent_budget_starts_nothing_more() {
    let project = Project::new();
    let costly = "steps: [{say: done}, {usage: {input-tokens: 10, output-tokens: 1, cost-usd: 0.75}}]";
    for id in ["a", "b", "c"] {
        project.case(id, "", costly);
    }
    let args = ["run", "--max-cost", "1.00", "--jobs", "1", "--reporter", "json=out.json"];
    project.evals(&args).exits(3).says("1.5 US dollars are spent");
    let report: serde_json::Value = serde_json::from_str(&project.read("out.json")).unwrap();
    assert_eq!((&report["summary"]["pass"], &report["summary"]["not_run"]), (&2.into(), &1.into()));
    // An agent whose trial fails by the set-up has spent its money, too.
    let project = Project::new();
    for id in ["a", "b", "c"] {
        project.write(&format!("cases/{id}.golden"), "old");
        let spoils = format!(
            "steps: [{{run: {{command: 'echo new > {}'}}}}, {{usage: {{cost-usd: 0.75}}}}, {{say: done}}]",
            project.path(&format!("cases/{id}.golden")).display()
        );
        project.case(id, &format!("graders: [{{files: {{equals: {{made: {id}.golden}}}}}}]"), &spoils);
    }
    project.evals(&args).exits(3).says("1.5 US dollars are spent");
    let report: serde_json::Value = serde_json::from_str(&project.read("out.json")).unwrap();
    assert_eq!((&report["summary"]["errored"], &report["summary"]["not_run"]), (&2.into(), &1.into()), "{report:#}");
    assert_eq!(report["results"][0]["error"]["category"], "setup", "{report:#}");
    assert_eq!(report["columns"][0]["cost_usd"], 1.5, "{report:#}");
    let project = Project::new();
    project.case("slow", "trials: 3", "steps: [{sleep: 4s}]");
    let ran = project.evals(&["run", "--max-time", "3s", "--jobs", "1", "--reporter", "json"]).exits(3);
    assert_eq!(ran.json()["summary"]["not_run"], 2);
}

#[test]
fn a_cell_s_verdict_follows_from_its_trials() {
    let project = Project::new();
    let flip = "steps: [{run: {command: 'test ! -e ../../flag'}}, {say: done}]";
    // The first of two trials is the one that does not find the mark.
    let script = flip.replace("test ! -e ../../flag", &format!("mkdir {}", project.path("mark").display()));
    for (id, pass) in [("all", "all"), ("any", "any"), ("half", "0.5"), ("most", "0.8")] {
        let keys =
            format!("trials: 2\npass: {{trials: {pass}}}\ngraders: [{{tool-calls: {{require: [{{status: ok}}]}}}}]");
        project.case(id, &keys, &script.replace("/mark", &format!("/mark-{id}")));
    }
    for (id, code) in [("all", 1), ("any", 0), ("half", 0), ("most", 1)] {
        project.evals(&["run", "--case", id]).exits(code);
    }
}

#[test]
fn a_dry_run_prints_the_plan_and_writes_nothing() {
    let project = two();
    project
        .harness("gone", "adapter: output-only\ncommand: [no-such-agent-anywhere, '{prompt}']\ninstall: get it there");
    project.write("cases/c.yaml", "prompt: x\nrequires: {tracing: true}\ngraders: [{output: {contains: x}}]");
    project.write("cases/c.demo.yaml", PASS);
    let ran = project.evals(&["run", "--harness", "demo", "--harness", "gone", "--trials", "2", "--dry-run"]).exits(0);
    insta::assert_snapshot!(ran.out);
    assert!(!project.path(".evals").exists() && project.left_over().is_empty());
    // A resume can be a dry run, too.
    project.evals(&["run", "--fail-fast", "--jobs", "1", "--case", "*b*", "--trials", "3"]).exits(1);
    let before = project.files("");
    let ran = project.evals(&["run", "--resume", "latest", "--dry-run"]).exits(0);
    assert!(ran.out.contains("run   b-bad  demo  2 ×"), "{}", ran.out);
    assert!(project.files("") == before, "a dry run wrote something");
}

#[test]
fn runs_go_where_they_are_asked_to_and_are_found_there() {
    let project = two();
    project
        .evals(&["run", "--out", "elsewhere", "--fail-fast", "--jobs", "1", "--case", "b*", "--trials", "2"])
        .exits(1);
    assert!(!project.path(".evals").exists(), "nothing else is written");
    project.evals(&["report", "--out", "elsewhere"]).exits(0).says("1 trial not run");
    project.evals(&["run", "--resume", "latest", "--out", "elsewhere"]).exits(1).says("0/2");
    project.evals(&["report"]).exits(2);
}

#[test]
fn a_harness_runs_at_most_as_many_at_once_as_its_manifest_says() {
    let project = Project::new();
    let lock = project.path("lock").display().to_string();
    project.case("a", "trials: 4\ngraders: [{output: {equals: alone}}]", "");
    let line = format!("mkdir {lock} && sleep 0.1 && rmdir {lock} && echo alone");
    project.harness("one", &format!("adapter: output-only\ncommand: [sh, -c, '{line}']\njobs: 1"));
    project.evals(&["run", "--harness", "one", "--jobs", "4"]).exits(0);
}

#[test]
fn filters_keep_what_they_name() {
    let project = two();
    project.case("folder/c", "tags: [easy]", PASS);
    let planned = |args: &[&str]| {
        let out = project.evals(&[&["run", "--dry-run"], args].concat()).exits(0).out;
        let ids =
            out.lines().filter_map(|line| line.strip_prefix("run   ")).map(|line| line.split(' ').next().unwrap());
        ids.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(planned(&[]), ["a-good", "b-bad", "folder/c"]);
    assert_eq!(planned(&["--case", "folder/*"]), ["folder/c"]);
    assert_eq!(planned(&["--tag", "easy"]), ["a-good", "folder/c"]);
    assert_eq!(planned(&["--tag", "easy", "--case", "a*"]), ["a-good"]);
    assert_eq!(planned(&["cases/folder"]), ["folder/c"], "ids count from the root, whatever part is named");
    assert_eq!(planned(&["cases/b-bad.yaml", "cases/b-bad.yaml"]), ["b-bad"]);
    let mut parts: Vec<String> = [planned(&["--shard", "1/2"]), planned(&["--shard", "2/2"])].concat();
    parts.sort();
    assert_eq!(parts, ["a-good", "b-bad", "folder/c"], "the parts make up the whole, each case once");
}

#[test]
fn a_case_s_threshold_decides_its_trials() {
    let project = Project::new();
    let graders = "graders: [{output: {contains: done}}, {output: {contains: never}}]";
    project.case("half", &format!("pass: {{threshold: 0.5}}\n{graders}"), "steps: [{say: done}]");
    project.case("more", &format!("pass: {{threshold: 0.6}}\n{graders}"), "steps: [{say: done}]");
    project.evals(&["run"]).exits(1);
    for (case, verdict) in [("half", "pass"), ("more", "fail")] {
        let result = project.result(&format!("{case}/demo/default/1"));
        assert_eq!((&result["verdict"], &result["score"]), (&verdict.into(), &0.5.into()), "{case}");
    }
}

#[test]
fn what_a_manifest_says_a_harness_can_counts_before_its_adapter() {
    let project = Project::new();
    project.case("a", "graders: [{tool-calls: {none: true}}]", "steps: [{run: {command: true}}, {say: done}]");
    project.demo("blind", "capabilities: {tracing: false}");
    project.evals(&["run", "--harness", "blind"]).exits(3);
    assert_eq!(project.result("a/blind/default/1")["verdict"], "ungraded");
    assert_eq!(project.trace("a/blind/default/1")[0]["capabilities"]["tracing"], false);
}

#[test]
fn a_manifest_cannot_claim_what_its_adapter_does_not_have() {
    let project = Project::new();
    let command = "command: [sh, -c, 'cat >/dev/null; echo done']\nprompt-via: stdin";
    let claims = "capabilities: {tracing: true, interaction: true, multi-turn: true}";
    project.harness("blind", &format!("adapter: output-only\n{command}\n{claims}"));
    project.harness("one-way", &format!("adapter: claude-code-stream\n{command}\ncapabilities: {{interaction: true}}"));
    let asks = "stream: [{when: has(line.ask), emit: {permission-request: {request: line.ask, id: line.call}}}]";
    project.harness("asks", &format!("adapter: json-stream\n{command}\n{asks}\ncapabilities: {{interaction: true}}"));
    project.case("a", "graders: [{tool-calls: {none: true}}, {permissions: {max: 0}}]", "steps: [{say: done}]");
    let checked = project.evals(&["check"]).exits(0);
    assert!(!checked.err.contains("asks.yaml") && !checked.out.contains("asks.yaml"), "{}", checked.err);
    checked
        .says("blind.yaml:5:25: `tracing: true` has no effect: the adapter `output-only` shows no tool calls")
        .says("blind.yaml:5:44: `interaction: true` has no effect")
        .says("blind.yaml:5:62: `multi-turn: true` has no effect")
        .says("one-way.yaml:5:29: `interaction: true` has no effect");
    for (name, shows) in [
        ("blind", "# tracing: no, interaction: no, several turns: no"),
        ("one-way", "# tracing: yes, interaction: no, several turns: no"),
        ("asks", "# tracing: no, interaction: yes, several turns: no"),
    ] {
        project.evals(&["harness", "show", name]).exits(0).says(shows);
    }
    project.evals(&["run", "--harness", "blind"]).exits(3).says("`tracing: true` has no effect");
    assert_eq!(project.result("a/blind/default/1")["verdict"], "ungraded");
}

#[test]
fn a_stream_without_a_rule_for_calls_does_not_show_that_there_were_none() {
    let project = Project::new();
    let stream = "adapter: json-stream\ncommand: [cat, '{project}/lines.jsonl']\nprompt-via: stdin\nstream:\n  \
                  - {when: has(line.end), emit: [{message: {text: line.end}}, {stop: {reason: end_turn}}]}\n";
    let calls = "  - when: has(line.all)\n    for-each: line.all\n    \
                 rules: [{when: has(it.call), emit: {tool-call: {id: it.call}}}]\n";
    let kept =
        "session-file: {known-by: has(line.kept), rules: [{when: has(line.call), emit: {tool-call: {id: line.call}}}]}";
    project.write("lines.jsonl", "{\"end\": \"done\"}\n");
    project.case("a", "graders: [{tool-calls: {none: true}}]", "");
    let rows = [
        ("no-rule", "", "ungraded"),
        ("of-files", kept, "ungraded"),
        ("no-tools", "capabilities: {tracing: true}", "pass"),
        ("rule", calls, "pass"),
    ];
    let mut run = vec!["run"];
    for (name, more, _) in &rows {
        project.harness(name, &format!("{stream}{more}"));
        run.extend(["--harness", *name]);
    }
    project.evals(&run).exits(3);
    for (name, _, verdict) in rows {
        let shows_calls = verdict == "pass";
        let trial = format!("a/{name}/default/1");
        assert_eq!(project.result(&trial)["verdict"], verdict, "{name}");
        assert_eq!(project.trace(&trial)[0]["capabilities"]["tracing"], shows_calls, "{name}");
    }
}

#[test]
fn as_many_trials_run_at_once_as_there_are_cores() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run"]).exits(0);
    let record: serde_json::Value =
        serde_json::from_str(&project.read(&format!("{}/run.json", project.run_folder()))).unwrap();
    assert_eq!(record["options"]["jobs"], std::thread::available_parallelism().unwrap().get());
}

#[test]
fn a_case_that_offers_what_a_harness_does_not_take_is_skipped() {
    let project = Project::new();
    project.case("a", "mcp-servers: [{name: x, command: 'true', args: []}]", "steps: [{say: done}]");
    project.evals(&["run", "--harness", "demo", "--harness", "demo-stream"]).exits(0).says("offers MCP servers");
    assert_eq!(project.result("a/demo/default/1")["verdict"], "pass");
}

#[test]
fn a_system_prompt_stands_before_the_first_prompt_and_that_is_told() {
    let project = Project::new();
    project.case("a", "system-prompt: Be brief.", "steps: [{say: done}]");
    project.evals(&["run", "--harness", "demo", "--harness", "demo-stream"]).exits(0);
    for harness in ["demo", "demo-stream"] {
        let trial = format!("a/{harness}/default/1");
        let trace = project.trace(&trial);
        assert_eq!(trace[1]["text"], "Be brief.\n\nDo it.", "{harness}");
        assert!(project.result(&trial)["warnings"].to_string().contains("system prompt"), "{harness}");
    }
}

#[test]
fn a_gate_decides_and_every_report_says_so() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.case("b", "graders: [{output: {equals: never}}]", PASS);
    let files = ["--reporter", "json=r.json", "--reporter", "markdown=r.md", "--reporter", "junit=r.xml"];
    for (least, code, word) in [("0.9", 1, "fail"), ("0.1", 0, "pass")] {
        project.evals(&[&["run", "--fail-under", least], &files[..]].concat()).exits(code);
        let report: serde_json::Value = serde_json::from_str(&project.read("r.json")).unwrap();
        assert_eq!((&report["exit_code"], &report["gates"][0]["verdict"]), (&code.into(), &word.into()));
        let markdown = project.read("r.md");
        assert!(markdown.contains(&format!("gate {word}: demo scores 50.0 %")), "{markdown}");
        assert_eq!(project.read("r.xml").contains("name=\"demo (gate)\""), code == 1);
    }
}

//! Agents that are missing, crash or are refused: the trial is errored, not failed, and other agents are not affected.

use crate::project::{Project, of_type};

const PASS: &str = "steps: [{say: done}]";

#[test]
fn an_agent_that_is_not_there_errs_with_its_install_line_and_the_others_run() {
    let project = Project::new();
    project.case("a", "", PASS);
    for (name, adapter) in [("gone", "acp"), ("gone-stream", "claude-code-stream"), ("gone-text", "output-only")] {
        let line = format!("adapter: {adapter}\ncommand: [no-such-agent-anywhere]\ninstall: pip install the-agent");
        project.harness(name, &line);
    }
    let all = ["run", "--harness", "gone", "--harness", "gone-stream", "--harness", "gone-text", "--harness", "demo"];
    project.evals(&all).exits(3).says("pip install the-agent").says("agents ran without a sandbox");
    for name in ["gone", "gone-stream", "gone-text"] {
        let result = project.result(&format!("a/{name}/default/1"));
        assert_eq!((&result["verdict"], &result["stop"]["reason"]), (&"errored".into(), &"crashed".into()));
        assert_eq!(result["error"]["category"], "not_installed");
        assert!(result["error"]["message"].as_str().unwrap().contains("pip install the-agent"), "{result}");
        assert!(result["score"].is_null());
    }
    assert_eq!(project.result("a/demo/default/1")["verdict"], "pass");
    // An agent that never began cannot have read anything.
    let alone = project.evals(&["run", "--harness", "gone"]).exits(3);
    assert!(!alone.out.contains("sandboxed"), "{}", alone.out);
}

#[test]
fn a_program_that_cannot_be_started_is_start_failed() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.write("agent.sh", "not a program");
    project.harness("odd", &format!("adapter: acp\ncommand: ['{}']", project.path("agent.sh").display()));
    project.evals(&["run", "--harness", "odd"]).exits(3);
    assert_eq!(project.result("a/odd/default/1")["error"]["category"], "start_failed");
    // A script whose interpreter is missing: the system says only that a file does not exist.
    project.write("script", "#!/no/such/interpreter -u\n");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(project.path("script"), executable).unwrap();
    let other = Project::new();
    other.case("a", "", PASS);
    other.harness("script", &format!("adapter: acp\ncommand: ['{}']", project.path("script").display()));
    other.evals(&["run", "--harness", "script"]).exits(3).says("the interpreter `/no/such/interpreter`");
    assert_eq!(other.result("a/script/default/1")["error"]["category"], "start_failed");
}

#[test]
fn a_setup_command_that_fails_is_a_setup_error_and_no_agent_is_started() {
    let project = Project::new();
    project.case("a", "workspace: {setup: ['echo the reason >&2; exit 7']}", PASS);
    project.evals(&["run"]).exits(3).says("exited 7").says("the reason");
    let result = project.result("a/demo/default/1");
    assert_eq!((&result["verdict"], &result["error"]["category"]), (&"errored".into(), &"setup".into()));
    assert!(result["stop"].is_null());
    assert!(!project.path(&format!("{}/trials/a/demo/default/1/wire.jsonl", project.run_folder())).exists());
    assert_eq!(project.left_over(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn setup_commands_run_in_the_workspace_before_its_change_is_measured() {
    let project = Project::new();
    let keys = "workspace: {setup: ['echo made > made.txt', 'cat made.txt > copied.txt']}\n\
                graders: [{diff: {none: true}}, {files: {exists: [copied.txt]}}]";
    project.case("a", keys, PASS);
    project.evals(&["run"]).exits(0);
}

#[test]
fn what_setup_commands_make_need_not_look_like_a_fixture() {
    let project = Project::new();
    // A virtual environment links to the system's interpreter.
    let keys = "workspace: {setup: ['ln -s /bin/sh tool', 'mkfifo pipe']}\ngraders: [{diff: {none: true}}]";
    project.case("a", keys, PASS);
    project.evals(&["run"]).exits(0);
}

#[test]
fn a_plain_command_that_ends_badly_has_crashed_and_one_that_ends_well_is_judged() {
    let project = Project::new();
    project.case("a", "graders: [{output: {equals: fine}}]", "");
    project.harness("bad", "adapter: output-only\ncommand: [sh, -c, 'echo half; echo lost >&2; exit 3']");
    project.harness("good", "adapter: output-only\ncommand: [sh, -c, 'echo fine']");
    project.harness("other", "adapter: output-only\ncommand: [sh, -c, 'echo wrong']");
    project.evals(&["run", "--harness", "bad", "--harness", "good", "--harness", "other"]).exits(1);
    let bad = project.result("a/bad/default/1");
    assert_eq!((&bad["verdict"], &bad["error"]["category"]), (&"errored".into(), &"crashed".into()));
    assert_eq!((&bad["stop"]["reason"], &bad["stop"]["exit"]["code"]), (&"crashed".into(), &3.into()));
    assert!(bad.to_string().contains("lost"), "the end of its standard error is told: {bad}");
    assert_eq!(project.result("a/good/default/1")["verdict"], "pass");
    assert_eq!(project.result("a/other/default/1")["verdict"], "fail");
}

#[test]
fn an_agent_that_closes_its_output_and_does_not_exit_is_ended_and_the_message_says_by_whom() {
    let project = Project::new();
    project.case("a", "graders: [{output: {equals: good}}]", "");
    for (name, script) in [("slow", "echo good"), ("told", "echo good; echo tidying up >&2")] {
        let command = format!("command: [sh, -c, '{script}; exec >&- 2>&-; sleep 30']");
        project.harness(name, &format!("adapter: output-only\n{command}\ntimeouts: {{grace: 300ms}}"));
    }
    project.evals(&["run", "--harness", "slow", "--harness", "told"]).exits(3);
    let message = "the agent closed its output and did not exit within 300ms (`timeouts.grace`), so evals ended it";
    for (name, tail) in [("slow", ""), ("told", ": tidying up")] {
        let result = project.result(&format!("a/{name}/default/1"));
        assert_eq!((&result["verdict"], &result["error"]["category"]), (&"errored".into(), &"crashed".into()));
        assert_eq!(result["error"]["message"], format!("{message}{tail}"), "{result}");
    }
}

#[test]
fn an_agent_that_writes_more_than_a_pipe_holds_when_it_is_ended_ends_by_itself() {
    let project = Project::new();
    let last = r#"head -c 300000 /dev/zero | tr "\0" x; echo; echo last words; exit 0"#;
    project.write("agent.sh", &format!("trap '{last}' TERM\nwhile :; do sleep 0.1; done\n"));
    let agent = project.path("agent.sh").display().to_string();
    project.harness("wordy", &format!("adapter: output-only\ncommand: [sh, '{agent}']\ntimeouts: {{grace: 300ms}}"));
    project.case("a", "limits: {time: 1s}", "");
    project.evals(&["run", "--harness", "wordy"]).exits(1);
    let wire = project.of_trial("a/wordy/default/1", "wire.jsonl");
    assert!(wire.contains("last words") && wire.contains("SIGTERM") && !wire.contains("SIGKILL"), "{wire:.2000}");
}

#[test]
fn files_that_an_agent_writes_after_its_answer_are_told() {
    let project = Project::new();
    project.case("a", "graders: [{files: {exists: [late.txt]}}, {budget: {time: 4s}}]", "");
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s"}"#;
    project.write(
        "agent.sh",
        &format!("touch -d 2099-01-01 early.txt\necho '{result}'\nsleep \"$1\"\necho x > late.txt\n"),
    );
    for (name, wait) in [("late", "6"), ("soon", "0.1")] {
        let command = format!("command: [sh, '{{project}}/agent.sh', '{wait}', '{{prompt}}']");
        project.harness(name, &format!("adapter: claude-code-stream\n{command}\ntimeouts: {{grace: 60s}}"));
    }
    project.evals(&["run", "--harness", "late", "--harness", "soon"]).exits(0);
    let told = |name: &str| {
        let warnings = project.result(&format!("a/{name}/default/1"))["warnings"].clone();
        warnings.as_array().unwrap().iter().find(|warning| warning["code"] == "worked_on").cloned()
    };
    let late = told("late").unwrap();
    assert!(late["path"] == "late.txt" && (5000..60_000).contains(&late["ms"].as_u64().unwrap()), "{late}");
    assert_eq!(told("soon"), None);
}

#[test]
fn a_line_keeps_its_carriage_return_in_the_wire_log_alone() {
    let project = Project::new();
    project.case("a", "graders: [{output: {equals: \"hi\\nthere\"}}]", "");
    project.harness("crlf", "adapter: output-only\ncommand: [printf, 'hi\\r\\nthere\\r\\n']");
    project.evals(&["run", "--harness", "crlf"]).exits(0);
    let wire = project.of_trial("a/crlf/default/1", "wire.jsonl");
    assert!(wire.contains(r#""line":"hi\r""#) && wire.contains(r#""line":"there\r""#), "{wire}");
    let trace = project.of_trial("a/crlf/default/1", "trace.jsonl");
    assert!(!trace.contains(r"\r"), "{trace}");
    let log = format!("{}/trials/a/crlf/default/1/wire.jsonl", project.run_folder());
    let events = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(events(&project.evals(&["import", &log]).exits(0).out), events(&trace));
}

#[test]
fn the_tokens_of_each_model_have_their_own_price() {
    let project = Project::new();
    project.write(
        "prices.yaml",
        "date: 2026-11-01\nmodels: {small: {input: 1, output: 1}, dear: {input: 1000, output: 1}}\n",
    );
    let manifest = "adapter: json-stream\ncommand: [cat, '{project}/lines.jsonl']\nprompt-via: stdin\nusage: {scope: turn}\n\
                    stream:\n- {name: says, when: has(line.say), emit: {message: {text: line.say}}}\n\
                    - {name: used, when: has(line.used), emit: {usage: {input: line.used, output: 0, model: line.model}}}\n\
                    - {name: ends, when: has(line.end), emit: {stop: {reason: end_turn}}}";
    project.harness("lines", manifest);
    project.case("a", "graders: [{budget: {cost-usd: 5}}]", "");
    for (models, verdict, cost) in [
        (&["small"][..], "pass", Some(1.0)),
        (&["small", "dear"], "fail", Some(1001.0)),
        (&["dear"], "fail", Some(1000.0)),
        (&["small", "unpriced"], "ungraded", None),
    ] {
        let used = models.iter().map(|model| format!("{{\"used\": 1000000, \"model\": \"{model}\"}}\n"));
        project.write("lines.jsonl", &format!("{}{{\"say\": \"x\"}}\n{{\"end\": 1}}\n", used.collect::<String>()));
        project.evals(&["run", "--harness", "lines"]);
        let run = project.runs().pop().unwrap();
        let result = project.read(&format!(".evals/runs/{run}/trials/a/lines/default/1/result.json"));
        let result: serde_json::Value = serde_json::from_str(&result).unwrap();
        assert_eq!((&result["verdict"], result["metrics"]["cost_usd"].as_f64()), (&verdict.into(), cost), "{models:?}");
    }
}

#[test]
fn the_prompt_reaches_a_plain_command_by_argument_input_and_file() {
    let project = Project::new();
    project.case("a", "graders: [{output: {equals: Do it.}}]", "");
    project.harness("argument", "adapter: output-only\ncommand: [sh, -c, 'echo \"$1\"', sh, '{prompt}']");
    project.harness("input", "adapter: output-only\ncommand: [cat]\nprompt-via: stdin");
    project.harness("file", "adapter: output-only\ncommand: [cat, '{prompt}']\nprompt-via: file");
    project.evals(&["run", "--harness", "argument", "--harness", "input", "--harness", "file"]).exits(0);
}

/// Prints its options and its arguments in one line each, and then its standard input.
const READER: &str = "adapter: output-only\ncommand: [sh, -c, 'echo \"$*\"; cat', sh, -p, '{prompt}']\n";

#[test]
fn a_prompt_that_looks_like_an_option_goes_to_standard_input() {
    let project = Project::new();
    project.harness("reader", &format!("{READER}stdin-prompts: '^[-@]'"));
    for (prompt, answer) in
        [("Do it.", "-p Do it."), ("- Do it.", "-p\\n- Do it."), ("@a", "-p\\n@a"), ("a -x", "-p a -x")]
    {
        let case = format!("prompt: \"{prompt}\"\ngraders: [{{output: {{equals: \"{answer}\"}}}}]\n");
        project.write("cases/a.yaml", &case);
        project.evals(&["run", "--harness", "reader"]).exits(0);
    }
    project.harness("none", "adapter: output-only\ncommand: [cat]\nstdin-prompts: '^-'");
    project.evals(&["check", "harnesses/none.yaml"]).says("`stdin-prompts` has no effect");
}

#[test]
fn a_command_with_the_prompt_gets_it_once() {
    let project = Project::new();
    project.write("cases/a.yaml", "prompt: \"- Do it.\"\ngraders: [{output: {equals: \"-p - Do it.\"}}]\n");
    project.harness("input", &format!("{READER}prompt-via: stdin"));
    project.evals(&["run", "--harness", "input"]).exits(0);
    // The command of a variant may be another program.
    project.harness("own", "adapter: output-only\ncommand: [cat]\nprompt-via: stdin");
    project.harness("some", "adapter: output-only\ncommand: [cat, '{prompt}']\nstdin-prompts: '^-'");
    let variant = "new={command: [sh, -c, 'echo \"$*\"; cat', sh, -p, '{prompt}']}";
    for harness in ["own", "some"] {
        let args = ["run", "--harness", harness, "--label", harness, "--variant", "base=", "--variant", variant];
        project.evals(&args);
        let result = project.read(&format!("{}/trials/a/{harness}/new/1/result.json", project.run_named(harness)));
        let result: serde_json::Value = serde_json::from_str(&result).unwrap();
        assert_eq!(result["verdict"], "pass", "{harness}");
    }
}

#[test]
fn a_program_s_path_counts_from_where_the_command_runs() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new();
    project.case("a", "graders: [{output: {equals: fine}}]", "");
    project.write("agents/mine.sh", "#!/bin/sh\necho fine\n");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(project.path("agents/mine.sh"), executable).unwrap();
    project.harness("mine", "adapter: output-only\ncommand: [agents/mine.sh]");
    project.evals(&["run", "--harness", "mine"]).exits(0);
}

#[test]
fn unknown_is_never_zero() {
    let project = Project::new();
    project.case("a", "graders: [{output: {contains: done}}]", "steps: [{run: {command: 'true'}}, {say: done}]");
    project.evals(&["run", "--harness", "demo", "--harness", "demo-text"]).exits(0);
    let metrics = project.result("a/demo-text/default/1")["metrics"].clone();
    let known: Vec<&String> = metrics.as_object().unwrap().keys().collect();
    assert_eq!(known, ["duration_ms", "changed_files"], "a plain command tells nothing else");
    let metrics = project.result("a/demo/default/1")["metrics"].clone();
    assert_eq!((&metrics["tool_calls"], &metrics["permissions"]["requested"]), (&1.into(), &0.into()));
    for key in ["cost_usd", "input_tokens", "output_tokens", "cache_read_tokens", "total_tokens"] {
        assert!(metrics.get(key).is_none(), "nobody told {key}: {metrics}");
    }
}

#[test]
fn a_variable_that_an_agent_needs_and_has_not_is_an_auth_error() {
    let mut project = Project::new();
    project.case("a", "", PASS);
    project.demo("keyed", "requires-env: [EVALS_TEST_NEEDED_KEY]\nenv: {pass: [EVALS_TEST_NEEDED_KEY]}");
    project.evals(&["run", "--harness", "keyed"]).exits(3).says("needs EVALS_TEST_NEEDED_KEY in the environment");
    assert_eq!(project.result("a/keyed/default/1")["error"]["category"], "auth");
    std::fs::remove_dir_all(project.path(".evals")).unwrap();
    project.env("EVALS_TEST_NEEDED_KEY", "a-value-that-is-long");
    project.evals(&["run", "--harness", "keyed"]).exits(0);
}

#[test]
fn an_agent_that_is_neither_installed_nor_has_its_key_is_told_to_be_installed() {
    let project = Project::new();
    project.case("a", "", PASS);
    let needs = "requires-env: [EVALS_TEST_NEEDED_KEY]\ninstall: get absent-agent";
    project.harness("absent", &format!("adapter: acp\ncommand: [absent-agent]\n{needs}"));
    project.evals(&["run", "--harness", "absent"]).exits(3).says("install it with: `get absent-agent");
    assert_eq!(project.result("a/absent/default/1")["error"]["category"], "not_installed");
}

#[test]
fn errored_trials_are_tried_again_when_asked_and_every_attempt_is_kept() {
    let project = Project::new();
    let flag = project.path("flag");
    project.case("a", "graders: [{output: {equals: fine}}]", "");
    let line = format!("mkdir {} 2>/dev/null && exit 1; echo fine", flag.display());
    project.harness("shaky", &format!("adapter: output-only\ncommand: [sh, -c, '{line}']"));
    project.evals(&["run", "--harness", "shaky", "--retries", "1"]).exits(0);
    let result = project.result("a/shaky/default/1");
    assert_eq!((&result["verdict"], &result["attempt"]), (&"pass".into(), &2.into()));
    let first = project.result("a/shaky/default/1/attempts/1");
    assert_eq!((&first["verdict"], &first["attempt"]), (&"errored".into(), &1.into()));
    // A failed trial is not retried.
    project.case("b", "graders: [{output: {equals: other}}]", "");
    std::fs::remove_dir_all(project.path(".evals")).unwrap();
    project.evals(&["run", "--harness", "shaky", "--retries", "1", "--case", "b"]).exits(1);
    assert_eq!(project.result("b/shaky/default/1")["attempt"], 1);
}

#[test]
fn what_an_attempt_cost_that_was_tried_again_is_in_the_sums() {
    let mut project = Project::new();
    let told = project.path("told").display().to_string();
    let result = |cost: &str, more: &str| {
        format!(
            r#"{{"type":"result","subtype":"success","session_id":"s","result":"fine","total_cost_usd":{cost},{more}}}"#
        )
    };
    let failed = result("0.25", r#""is_error":true,"api_error_status":500"#);
    let fine = result("0.5", r#""is_error":false,"stop_reason":"end_turn""#);
    let init = r#"{"type":"system","subtype":"init","session_id":"s","model":"m","tools":[]}"#;
    project.write(
        "agent.sh",
        &format!("echo '{init}'\nif mkdir {told}; then echo '{failed}'; else echo '{fine}'; fi 2>/dev/null\n"),
    );
    let agent = project.path("agent.sh").display().to_string();
    project.harness("dear", &format!("adapter: claude-code-stream\ncommand: [sh, '{agent}']"));
    project.case("a", "graders: [{output: {equals: fine}}]", "");
    project.env("NO_COLOR", "1");
    project.evals(&["run", "--harness", "dear", "--retries", "1"]).exits(0).says("$0.75");
    let result = project.result("a/dear/default/1");
    assert_eq!(result["metrics"]["cost_usd"], 0.5, "the attempt that counts");
    assert_eq!(result["earlier_attempts"], serde_json::json!({"count": 1, "cost_usd": 0.25}));
    let report = project.evals(&["report", "--format", "junit"]).exits(0);
    assert!(report.out.contains("0.75"), "{}", report.out);
    // Costs are not counted again when a trial is graded again.
    project.evals(&["grade", "latest", "--label", "again"]).exits(0);
    let again = project.evals(&["report", "again", "--format", "json"]).exits(0).json();
    assert_eq!(again["results"][0]["earlier_attempts"]["cost_usd"], 0.25);
    // Two runs: the cost of a trial, and of a success, includes all of its attempts.
    project.evals(&["run", "--harness", "dear", "--label", "second"]).exits(0);
    let found = project.evals(&["compare", "again", "second", "--format", "json"]).exits(3).json();
    let costs =
        |arm: usize| ["cost_per_trial", "cost_per_success"].map(|key| found["arms"][arm][key].as_f64().unwrap());
    assert_eq!((costs(0), costs(1)), ([0.75, 0.75], [0.5, 0.5]));
}

#[test]
fn a_cost_that_only_a_price_table_knows_says_so() {
    let project = Project::new();
    project.case("a", "", "steps: [{usage: {input-tokens: 2000000, output-tokens: 1000000}}, {say: done}]");
    project.write("prices.yaml", "date: '2026-01-02'\nmodels: {dear: {input: 1.5, output: 4}}\n");
    project.evals(&["run", "--model", "dear", "--model", "unknown"]).exits(0);
    let note = "the cost of 1 trial comes from a price table: prices.yaml, dated 2026-01-02";
    for format in ["table", "markdown", "json", "html", "benchmark"] {
        project.evals(&["report", "latest", "--format", format, "-o", "-"]).exits(0).says(note);
    }
    let priced = project.result("a/demo/dear/1")["metrics"].clone();
    assert_eq!((&priced["cost_usd"], &priced["cost_source"]), (&7.0.into(), &"priced".into()));
    let trace = project.trace("a/demo/dear/1");
    let usage = of_type(&trace, "usage").last().cloned().unwrap();
    assert_eq!((&usage["cost_usd"], &usage["source"]), (&7.0.into(), &"priced".into()));
    let unknown = project.result("a/demo/unknown/1")["metrics"].clone();
    assert!(unknown.get("cost_usd").is_none(), "a model without a price has no cost: {unknown}");
}

#[test]
fn a_disk_that_takes_no_more_is_our_error_and_what_had_finished_stays() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.harness("loud", "adapter: output-only\ncommand: [sh, -c, 'head -c 200000 /dev/zero | tr \"\\0\" x']");
    // A limit on the size of files simulates the full disk: writes fail in the same way.
    let mut engine = std::process::Command::new("sh");
    let run = "trap '' XFSZ; ulimit -f 64; exec \"$0\" run --harness demo --harness loud --jobs 1";
    engine.args(["-c", run, env!("CARGO_BIN_EXE_evals")]).current_dir(project.path("")).env("HOME", project.home());
    let done = engine.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(4), "{said}");
    assert!(said.contains("could not write") && said.contains("ulimit -f"), "{said}");
    assert_eq!(project.result("a/demo/default/1")["verdict"], "pass");
    assert_eq!(project.journal().iter().filter(|line| line["event"] == "finished").count(), 1, "{said}");
}

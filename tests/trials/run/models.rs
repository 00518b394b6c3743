//! Models: each is a column, requested from the agent as its manifest states, and the model that answered is recorded.

use crate::project::{Project, lines, of_type};

const PASS: &str = "steps: [{say: done}]";

#[test]
fn each_model_is_a_column_and_the_same_one_twice_a_further_arm() {
    let project = Project::new();
    project.case("a", "", PASS);
    let args = ["run", "--model", "one", "--model", "two", "--model", "one", "--trials", "2"];
    project.evals(&args).exits(0).says("one").says("one#2");
    for (arm, folder, model) in [("one", "one", "one"), ("two", "two", "two"), ("one#2", "one%232", "one")] {
        for trial in [1, 2] {
            let result = project.result(&format!("a/demo/{folder}/{trial}"));
            assert_eq!((&result["arm"], &result["trial"]), (&arm.into(), &trial.into()));
            assert_eq!(result["model"]["requested"], model);
            assert_eq!(result["model"]["effective"], model);
            let header = &project.trace(&format!("a/demo/{folder}/{trial}"))[0];
            assert_eq!((&header["model"]["requested"], &header["model"]["effective"]), (&model.into(), &model.into()));
        }
    }
    let report = project.evals(&["report", "--format", "json"]).json();
    assert_eq!(report["results"].as_array().unwrap().len(), 6);
}

#[test]
fn a_model_reaches_every_form_of_the_demo() {
    let project = Project::new();
    project.case("a", "graders: [{output: {contains: done}}]", PASS);
    let args = ["run", "--harness", "demo-stream", "--harness", "demo-text", "--harness", "demo", "--model", "m/1"];
    project.evals(&args).exits(0);
    assert_eq!(project.result("a/demo-stream/m%2F1/1")["model"]["effective"], "m/1");
    // A plain command reports no model.
    let text = project.result("a/demo-text/m%2F1/1");
    assert_eq!((&text["model"]["requested"], text["model"].get("effective")), (&"m/1".into(), None));
}

#[test]
fn a_model_meant_for_one_harness_is_asked_of_that_one_alone() {
    let project = Project::new();
    project.case("a", "graders: [{output: {contains: done}}]", PASS);
    project.evals(&["run", "--harness", "demo", "--harness", "demo-text", "--model", "demo=m"]).exits(0);
    assert_eq!(project.result("a/demo/m/1")["model"]["requested"], "m");
    assert!(project.result("a/demo-text/default/1")["model"].get("requested").is_none());
}

#[test]
fn a_model_that_the_agent_refuses_is_a_handshake_error() {
    let project = Project::new();
    project.case("a", "", "models: [demo-1, demo-2]\nsteps: [{say: done}]");
    project.evals(&["run", "--model", "demo-2", "--model", "demo-9"]).exits(3);
    assert_eq!(project.result("a/demo/demo-2/1")["model"]["effective"], "demo-2");
    let refused = project.result("a/demo/demo-9/1");
    assert_eq!((&refused["verdict"], &refused["error"]["category"]), (&"errored".into(), &"handshake".into()));
    assert_eq!(refused["stop"]["reason"], "error");
    assert!(refused["error"]["message"].as_str().unwrap().contains("demo-9"), "{refused}");
    assert!(of_type(&project.trace("a/demo/demo-9/1"), "message").is_empty(), "nothing was asked of it");
}

#[test]
fn an_agent_by_variable_or_by_placeholder() {
    let project = Project::new();
    project.case("a", "graders: [{output: {equals: big}}]", "");
    project.harness("by-env", "adapter: output-only\ncommand: [sh, -c, 'echo $WHICH']\nmodel: {via: env, env: WHICH}");
    project.harness("by-flag", "adapter: output-only\ncommand: [echo, '{model}']\nmodel: {via: flag, default: big}");
    project.evals(&["run", "--harness", "by-env", "--model", "big"]).exits(0);
    project.evals(&["run", "--harness", "by-flag"]).exits(0);
}

/// Without its script, a shell would run the prompt. Without its argument, an agent would get no prompt.
#[test]
fn a_command_that_needs_a_model_is_not_started_without_one() {
    let project = Project::new();
    project.case("a", "turns: [echo done]\ngraders: [{output: {contains: done}}]", "");
    let script = "command: [sh, -c, 'echo \"I am {model}\"']\nprompt-via: stdin\nmodel: {via: env, env: WHICH}";
    project.harness("script", &format!("adapter: output-only\n{script}"));
    let joined = "command: [echo, --task, 'model={model} task={prompt}']\nmodel: {via: flag}";
    project.harness("joined", &format!("adapter: output-only\n{joined}"));
    for name in ["script", "joined"] {
        let message = format!("harness `{name}` needs a model for the argument");
        project.evals(&["run", "--harness", name]).exits(3);
        let result = project.result(&format!("a/{name}/default/1"));
        assert_eq!(result["verdict"], "errored", "{result}");
        assert_eq!(result["error"]["category"], "setup", "{result}");
        assert!(result["error"]["message"].as_str().unwrap().starts_with(&message), "{result}");
        std::fs::remove_dir_all(project.path(".evals")).unwrap();
        project.evals(&["check", "--harness", name]).exits(0).says(&message);
        project.evals(&["check", &format!("harnesses/{name}.yaml")]).exits(0).says(&message);
    }
    project.evals(&["run", "--harness", "script", "--model", "big"]).exits(1);
    project.evals(&["run", "--harness", "joined", "--model", "big"]).exits(0);
}

/// Makes an agent for testing how its model is set: `opened`, `set` and `prompted` are its answers, `update` is sent
/// while a prompt runs, and without an answer to a choice the agent stays silent.
fn agent(opened: &str, set: &str, update: &str, prompted: &str) -> String {
    format!(
        r#"#!/usr/bin/env python3
import sys, json
def say(message): print(json.dumps({{"jsonrpc": "2.0", **message}}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    method, answer = asked.get("method"), {{}}
    if method == "initialize":
        answer = {{"protocolVersion": 1, "agentCapabilities": {{}}}}
    elif method == "session/new":
        answer = {{"sessionId": "s", **json.loads('''{opened}''')}}
    elif method in ("session/set_model", "session/set_config_option"):
        if not '''{set}''': continue
        answer = json.loads('''{set}''')
    elif method == "session/prompt":
        if '''{update}''':
            say({{"method": "session/update", "params": {{"sessionId": "s", "update": json.loads('''{update}''')}}}})
        answer = {{"stopReason": "end_turn", **json.loads('''{prompted}''')}}
    if "id" in asked:
        error = isinstance(answer, dict) and answer.get("code")
        say({{"id": asked["id"], "error" if error else "result": answer}})
"#
    )
}

/// Makes a model option in the protocol's form, with its current value and the offered values.
fn option(id: &str, category: &str, current: &str, offered: &[&str]) -> String {
    let offered: Vec<String> = offered.iter().map(|value| format!(r#"{{"value": "{value}", "name": "x"}}"#)).collect();
    let offered = offered.join(", ");
    let category = if category.is_empty() { String::new() } else { format!(r#""category": "{category}", "#) };
    format!(
        r#"{{"id": "{id}", {category}"type": "select", "name": "x", "currentValue": "{current}", "options": [{offered}]}}"#
    )
}

fn options(list: &[String]) -> String {
    format!(r#"{{"configOptions": [{}]}}"#, list.join(", "))
}

/// How a model is requested, how the agent responds, and the expected record.
struct Story<'a> {
    name: &'a str,
    via: &'a str,
    asked: &'a str,
    opened: String,
    set: String,
    update: String,
    prompted: &'a str,
    /// The message that chooses the model. Empty if there is none.
    sent: &'a str,
    effective: Option<&'a str>,
    notices: &'a [&'a str],
}

impl Default for Story<'_> {
    fn default() -> Self {
        Self {
            name: "",
            via: "config-option",
            asked: "big",
            opened: options(&[option("model", "model", "small", &["small", "big"])]),
            set: options(&[option("model", "model", "big", &["small", "big"])]),
            update: String::new(),
            prompted: "{}",
            sent: r#""configId":"model""#,
            effective: Some("big"),
            notices: &[],
        }
    }
}

impl Story<'_> {
    fn run(&self, keys: &str) -> Project {
        let project = Project::new();
        project.case("a", keys, "");
        project.write("agent.py", &agent(&self.opened, &self.set, &self.update, self.prompted));
        let at = project.path("agent.py").display().to_string();
        // The timeout for a silent agent; the others get the time that a slow machine needs.
        let start = if self.set.is_empty() { "3s" } else { "30s" };
        let manifest =
            format!("adapter: acp\ncommand: [python3, {at}]\nmodel: {{{}}}\ntimeouts: {{start: {start}}}", self.via());
        project.harness("fake", &manifest);
        project.evals(&["run", "--harness", "fake", "--model", self.asked]);
        project
    }

    fn via(&self) -> String {
        if self.via.contains(':') { self.via.to_owned() } else { format!("via: {}", self.via) }
    }
}

const SET_MODEL: &str = r#""method":"session/set_model""#;

#[test]
#[ignore = "slow: runs many trials"]
fn what_the_agent_says_of_its_model_is_believed_and_its_silence_is_not() {
    let small = || option("model", "model", "small", &["small", "big"]);
    let update = |model: &str| {
        format!(
            r#"{{"sessionUpdate": "config_option_update", "configOptions": [{}]}}"#,
            option("model", "model", model, &[])
        )
    };
    let said = |meta: &str| {
        format!(
            r#"{{"sessionUpdate": "agent_message_chunk", "content": {{"type": "text", "text": "hi"}}, "_meta": {meta}}}"#
        )
    };
    let listed = || {
        r#"{"models": {"currentModelId": "small", "availableModels": [{"modelId": "small"}, {"modelId": "big"}]}}"#
            .to_owned()
    };
    let stories = [
        Story { name: "honest", ..Story::default() },
        Story {
            name: "another value in the answer",
            set: options(&[small()]),
            effective: Some("small"),
            notices: &["model_mismatch"],
            ..Story::default()
        },
        Story { name: "null", set: "null".into(), effective: None, notices: &["model_unconfirmed"], ..Story::default() },
        Story { name: "nothing", set: "{}".into(), effective: None, notices: &["model_unconfirmed"], ..Story::default() },
        Story {
            name: "nothing, and another one by an update",
            set: "{}".into(),
            update: update("small"),
            effective: Some("small"),
            notices: &["model_unconfirmed", "model_mismatch"],
            ..Story::default()
        },
        Story {
            name: "yes, and then another one by an update",
            update: update("small"),
            effective: Some("small"),
            notices: &["model_mismatch"],
            ..Story::default()
        },
        Story {
            name: "yes, and another one runs",
            update: said(r#"{"_claude/model": "small-4-5"}"#),
            effective: Some("small-4-5"),
            notices: &["model_mismatch"],
            ..Story::default()
        },
        Story {
            name: "yes, and another one in what was spent",
            update: said(r#"{"usage": {"inputTokens": 1, "model": "small"}}"#),
            effective: Some("small"),
            notices: &["model_mismatch"],
            ..Story::default()
        },
        Story {
            name: "yes, and another one in the quota",
            prompted: r#"{"_meta": {"quota": {"model_usage": [{"model": "small", "token_count": {}}]}}}"#,
            effective: Some("small"),
            notices: &["model_mismatch"],
            ..Story::default()
        },
        Story {
            name: "yes, and another one in the usage by models",
            prompted: r#"{"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2, "modelUsage": {"small": {}}}}"#,
            effective: Some("small"),
            notices: &["model_mismatch"],
            ..Story::default()
        },
        Story {
            name: "a name that it does not offer",
            asked: "bogus",
            set: options(&[option("model", "model", "bogus", &["small", "big"])]),
            effective: Some("bogus"),
            notices: &["model_unlisted"],
            ..Story::default()
        },
        Story {
            name: "an alias for a version",
            asked: "haiku",
            opened: options(&[option("model", "model", "default", &["default", "haiku"])]),
            set: options(&[option("model", "model", "haiku", &["default", "haiku"])]),
            update: said(r#"{"_claude/model": "claude-haiku-4-5-20251001"}"#),
            effective: Some("claude-haiku-4-5-20251001"),
            ..Story::default()
        },
        Story {
            name: "an effort and a provider",
            asked: "openai/big-5[high]",
            set: options(&[option("model", "model", "big-5[high]", &["big-5[low]", "big-5[high]"])]),
            update: said(r#"{"model": "big-5"}"#),
            effective: Some("big-5"),
            ..Story::default()
        },
        Story {
            name: "groups, and another option first",
            opened: options(&[
                option("small-model", "model", "small", &["small"]),
                r#"{"id": "main", "category": "model", "type": "select", "currentValue": "small", "options": [{"group": "g", "name": "G", "options": [{"value": "big", "name": "x"}]}]}"#.into(),
            ]),
            set: options(&[option("small-model", "model", "small", &["small"]), option("main", "model", "big", &["big"])]),
            sent: r#""configId":"main""#,
            ..Story::default()
        },
        Story {
            name: "a switch that is called model",
            opened: r#"{"configOptions": [{"id": "model", "type": "boolean", "name": "x", "currentValue": true}]}"#.into(),
            set: "{}".into(),
            sent: SET_MODEL,
            ..Story::default()
        },
        Story {
            name: "an option of the same id about something else",
            opened: options(&[option("model", "model_config", "fast", &["fast"])]),
            set: "{}".into(),
            sent: SET_MODEL,
            ..Story::default()
        },
        // Without an option for the model, the older call is used.
        Story { name: "no option", opened: "{}".into(), set: "{}".into(), sent: SET_MODEL, ..Story::default() },
        Story { name: "the call", via: "set-model", opened: listed(), set: "{}".into(), sent: SET_MODEL, ..Story::default() },
        Story {
            name: "the call, answered with null",
            via: "set-model",
            opened: listed(),
            set: "null".into(),
            sent: SET_MODEL,
            effective: None,
            notices: &["model_unconfirmed"],
            ..Story::default()
        },
        Story {
            name: "the call, with a name that it does not offer",
            via: "set-model",
            asked: "bogus",
            opened: listed(),
            set: "{}".into(),
            sent: SET_MODEL,
            effective: None,
            notices: &["model_unlisted"],
            ..Story::default()
        },
        Story {
            name: "the call, and another one by an update",
            via: "set-model",
            opened: listed(),
            set: "{}".into(),
            update: r#"{"sessionUpdate": "current_model_update", "currentModelId": "small"}"#.into(),
            sent: SET_MODEL,
            effective: Some("small"),
            notices: &["model_mismatch"],
            ..Story::default()
        },
        Story {
            name: "a flag that it does not heed",
            via: "via: flag, flag: --model",
            sent: "",
            effective: Some("small"),
            notices: &["model_mismatch"],
            ..Story::default()
        },
        Story {
            name: "a variable that it heeds",
            via: "via: env, env: THE_MODEL",
            opened: options(&[option("model", "model", "big", &[])]),
            sent: "",
            ..Story::default()
        },
    ];
    for story in &stories {
        let project = story.run("");
        let name = story.name;
        let trial = format!("a/fake/{}/1", story.asked.replace('/', "%2F").replace('[', "%5B").replace(']', "%5D"));
        let result = project.result(&trial);
        assert_eq!(result["verdict"], "pass", "{name}: {result}");
        assert_eq!(result["model"]["requested"], story.asked, "{name}");
        assert_eq!(result["model"].get("effective").and_then(|it| it.as_str()), story.effective, "{name}");
        let wire = lines(&project.of_trial(&trial, "wire.jsonl"));
        let sent = wire.iter().filter(|line| line["dir"] == "send").filter_map(|line| line["line"].as_str());
        let setting: Vec<&str> = sent.filter(|line| line.contains("session/set_")).collect();
        assert_eq!(setting.len(), usize::from(!story.sent.is_empty()), "{name}: {setting:?}");
        assert!(
            setting.iter().all(|line| line.contains(story.sent) && line.contains(story.asked)),
            "{name}: {setting:?}"
        );
        let trace = project.trace(&trial);
        assert_eq!(trace[0]["model"], result["model"], "{name}");
        let told: Vec<&str> = of_type(&trace, "notice").iter().filter_map(|notice| notice["code"].as_str()).collect();
        assert_eq!(told, story.notices, "{name}: {trace:?}");
        // The recording gives the same trace again.
        let wire = format!("{}/trials/{trial}/wire.jsonl", project.run_folder());
        let imported = project.evals(&["import", "--harness", "fake", &wire]).exits(0).out;
        assert_eq!(imported, project.of_trial(&trial, "trace.jsonl"), "{name}");
    }
}

#[test]
fn a_case_that_insists_on_its_model_errs_where_another_one_answers_or_nobody_tells() {
    let alias = options(&[option("model", "model", "claude-big-4-5", &["claude-big-4-5"])]);
    for (set, expected) in [
        (options(&[option("model", "model", "big", &["big"])]), None),
        (alias, None),
        (options(&[option("model", "model", "small", &["big"])]), Some("`small` answered")),
        ("null".to_owned(), Some("did not report which one answered")),
    ] {
        let story = Story { set, ..Story::default() };
        let result = story.run("require-model: true").result("a/fake/big/1");
        match expected {
            None => assert_eq!(result["verdict"], "pass", "{result}"),
            Some(says) => {
                assert_eq!(
                    (&result["verdict"], &result["error"]["category"]),
                    (&"errored".into(), &"handshake".into())
                );
                assert!(result["error"]["message"].as_str().unwrap().contains(says), "{result}");
                assert!(result["score"].is_null() && result["grades"].as_array().unwrap().is_empty(), "{result}");
            }
        }
    }
}

#[test]
fn a_model_that_cannot_be_set_is_never_run_under_its_name() {
    let refusal = r#"{"code": -32602, "message": "no such model"}"#;
    for (via, opened, set, says) in [
        ("config-option", options(&[option("model", "model", "small", &["small", "big"])]), refusal, "no such model"),
        (
            "config-option",
            options(&[option("model", "model", "small", &["small"])]),
            refusal,
            "; the agent offers small",
        ),
        ("config-option", "{}".to_owned(), r#"{"code": -32601, "message": "method not found"}"#, "method not found"),
        ("set-model", "{}".to_owned(), "", "session/set_model was not answered within 3 s"),
        (
            "config-option",
            options(&[option("model", "model", "small", &["big"])]),
            "",
            "session/set_config_option was not answered within 3 s",
        ),
    ] {
        let story = Story { via, opened, set: set.to_owned(), ..Story::default() };
        // The required model does not hide why the model could not be set.
        let project = story.run("require-model: true");
        let result = project.result("a/fake/big/1");
        assert_eq!(
            (&result["verdict"], &result["error"]["category"]),
            (&"errored".into(), &"handshake".into()),
            "{result}"
        );
        assert!(result["error"]["message"].as_str().unwrap().contains(says), "{says}: {result}");
        assert!(of_type(&project.trace("a/fake/big/1"), "message").is_empty(), "nothing was asked of it");
    }
}

#[test]
fn a_route_that_leads_nowhere_is_refused() {
    let project = Project::new();
    project.case("a", "", "");
    for (adapter, model, says) in [
        ("output-only", "{via: set-model}", "the adapter `output-only` cannot set a model over its protocol"),
        (
            "claude-code-stream",
            "{via: config-option}",
            "the adapter `claude-code-stream` cannot set a model over its protocol",
        ),
        ("acp", "{via: flag}", "the model does not reach the agent: `flag` is missing"),
        ("acp", "{via: env}", "the model does not reach the agent: `env` is missing"),
    ] {
        project.harness("lost", &format!("adapter: {adapter}\ncommand: [echo, '{{prompt}}']\nmodel: {model}"));
        project.evals(&["run", "--harness", "lost", "--model", "big"]).exits(2).says(says);
    }
    // A default that cannot be passed to the agent was not requested.
    project.harness("lost", "adapter: output-only\ncommand: [echo, '{prompt}']\nmodel: {via: none, default: big}");
    project.evals(&["run", "--harness", "lost"]).exits(0);
    assert!(project.result("a/lost/default/1")["model"].get("requested").is_none());
}

#[test]
fn a_case_that_requires_a_choice_of_model_is_skipped_where_there_is_none() {
    let project = Project::new();
    project.case("a", "requires: {model-selection: true}", "");
    project.harness("fixed", "adapter: output-only\ncommand: [echo, done]");
    project.evals(&["run", "--harness", "fixed"]).exits(3).says("the case requires model selection");
}

#[test]
fn a_flag_that_is_not_heeded_shows_in_the_stream_and_in_the_envelope() {
    let project = Project::new();
    project.case("a", "graders: [{output: {contains: done}}]", "");
    let result = r#"{"type":"result","subtype":"success","is_error":false,"stop_reason":"end_turn","result":"done","modelUsage":{"claude-small-4-5":{"inputTokens":1,"outputTokens":1}}}"#;
    let message = r#"{"type":"assistant","message":{"id":"m","role":"assistant","model":"claude-small-4-5","content":[{"type":"text","text":"done"}]}}"#;
    let init = r#"{"type":"system","subtype":"init","model":"claude-small-4-5","cwd":"/w"}"#;
    project.write("envelope.sh", &format!("echo '{result}'\n"));
    project.write("stream.sh", &format!("echo '{init}'\necho '{message}'\necho '{result}'\n"));
    for (name, adapter, script) in
        [("envelope", "output-only", "envelope.sh"), ("stream", "claude-code-stream", "stream.sh")]
    {
        let at = project.path(script).display().to_string();
        let manifest = format!("adapter: {adapter}\ncommand: [sh, {at}, '{{prompt}}']\nmodel: {{via: flag, flag: -m}}");
        project.harness(name, &manifest);
        project.evals(&["run", "--harness", name, "--model", "big", "--model", "small"]).exits(0);
        for (model, differs) in [("big", true), ("small", false)] {
            let trial = format!("a/{name}/{model}/1");
            assert_eq!(project.result(&trial)["model"]["effective"], "claude-small-4-5");
            let trace = project.trace(&trial);
            let told = of_type(&trace, "notice").iter().filter(|notice| notice["code"] == "model_mismatch").count();
            assert_eq!(told, usize::from(differs), "{name} {model}: {trace:?}");
        }
        std::fs::remove_dir_all(project.path(".evals")).unwrap();
    }
}

#[test]
fn a_place_for_the_model_in_the_command_is_a_route() {
    let project = Project::new();
    project.case("a", "graders: [{output: {contains: model=m}}]", "");
    project.harness("by-word", "adapter: output-only\ncommand: [echo, '{prompt}', 'model={model}']");
    let variable = "adapter: output-only\ncommand: [sh, -c, 'echo model=$MY_MODEL', '{prompt}']\nenv: {set: {MY_MODEL: '{model}'}}";
    project.harness("by-variable", variable);
    project.evals(&["run", "--harness", "by-word", "--harness", "by-variable", "--model", "m"]).exits(0);
    let none = "adapter: output-only\ncommand: [echo, '{prompt}', 'model={model}']\nmodel: {via: none}";
    project.harness("without", none);
    project.evals(&["run", "--harness", "without", "--model", "m"]).exits(2).says("no `model:` route");
}

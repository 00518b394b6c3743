//! Agents whose model did not answer, and that end as if nothing had happened.

use serde_json::{Value, json};

use super::hostile::BROKEN;
use super::passing::STREAM;
use super::service::{Answer, CUT, Request, Service};
use super::stand::{ANSWERS, CASSETTE, KEY, Stand, TRIAL, project};
use crate::project::{Project, lines};

const JSON: &str = "content-type: application/json\r\n";
const EVENTS: &str = "content-type: text/event-stream\r\n";
const NOT_TODAY: &str = "{\"type\":\"error\",\"error\":{\"type\":\"some_error\",\"message\":\"not today\"}}";

/// Makes a project whose agent reaches this service and goes on without an answer. Its case passes if the agent ends its
/// turn.
fn reaching(answer: Answer) -> Project {
    let mut project = project("");
    project.env("EVALS_UPSTREAM_ANTHROPIC", &Service::start(answer).base_url());
    project.env("ANTHROPIC_API_KEY", KEY);
    project.env("AGENT_MODE", "goes-on");
    project
}

fn changed(project: &Project, from: &str, to: &str) {
    let agent = project.read("agent.py");
    let now = agent.replace(from, to);
    assert_ne!(agent, now);
    project.write("agent.py", &now);
}

/// Asks for a title, as agents do beside the conversation.
const TITLE: &str = "    try:\n        ask([{\"role\": \"user\", \"content\": \"Write a short title for this conversation:\\n\" + \
                     sys.argv[1]}])\n    except urllib.error.HTTPError:\n        pass\n";

/// What the agent does with a refused request: it goes on without an answer, or repeats the request.
const GOES_ON: &str = "        if os.environ.get(\"AGENT_MODE\") != \"goes-on\":\n            raise\n";
const REPEATS: &str = "        time.sleep(0.2)\n        return ask(messages)\n";

/// Answers only requests for a title.
fn only_titles(request: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
    if request.body.contains("short title") {
        (200, EVENTS, STREAM.to_vec())
    } else {
        (429, JSON, vec![(0, NOT_TODAY)])
    }
}

/// Asserts that the trial is errored because of what the gateway saw, and returns the message.
#[track_caller]
fn errored(project: &Project, trial: &str, category: &str) -> String {
    let result = project.result(trial);
    assert_eq!((&result["verdict"], &result["score"]), (&json!("errored"), &Value::Null), "{result}");
    assert_eq!(result["error"]["category"], category, "{result}");
    let message = result["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("the gateway: the agent's model "), "{message}");
    let stop = project.trace(trial).pop().unwrap();
    assert_eq!(
        (&stop["reason"], &stop["category"], &stop["detail"]),
        (&json!("error"), &json!(category), &json!(message))
    );
    message
}

/// The model of the request is the status.
fn refuses(request: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
    let asked: Value = serde_json::from_str(&request.body).unwrap();
    (asked["model"].as_str().unwrap().parse().unwrap(), JSON, vec![(0, NOT_TODAY)])
}

#[test]
#[ignore = "slow: runs many trials behind a gateway"]
fn an_agent_whose_requests_were_all_refused_is_not_judged() {
    let statuses = [
        ("429", "rate_limit"),
        ("529", "rate_limit"),
        ("401", "auth"),
        ("403", "auth"),
        ("400", "provider"),
        ("500", "provider"),
    ];
    let project = reaching(refuses);
    let columns: Vec<&str> = statuses.iter().flat_map(|(status, _)| ["--model", *status]).collect();
    project.evals(&[&["run", "--gateway", "observe"], &columns[..]].concat()).exits(3);
    for (status, category) in statuses {
        let trial = format!("a/small/{status}/1");
        let message = errored(&project, &trial, category);
        assert!(message.ends_with(&format!("status {status}: not today")), "{message}");
        assert_eq!(lines(&project.of_trial(&trial, "llm.jsonl"))[0]["error"]["kind"], "service");
        // The wire log alone says the same.
        let stop = project.trace(&trial).pop().unwrap();
        assert_eq!(stop["output"], format!("I go on without {status}."));
        let wire = format!("{}/trials/{trial}/wire.jsonl", project.run_folder());
        let imported = lines(&project.evals(&["import", "--harness", "small", &wire]).exits(0).out).pop().unwrap();
        assert_eq!((&imported["category"], &imported["detail"]), (&stop["category"], &stop["detail"]));
    }
    let again = project.evals(&["grade", "latest", "--format", "json"]).exits(3).json();
    assert_eq!(again["summary"]["errored"], statuses.len(), "{}", again["summary"]);
}

#[test]
fn an_agent_that_reports_its_error_itself_is_believed() {
    let project = reaching(refuses);
    changed(
        &project,
        "\"is_error\": False, \"result\": text",
        "\"is_error\": True, \"result\": \"API Error: 503 busy\"",
    );
    project.evals(&["run", "--gateway", "observe", "--model", "429"]).exits(3);
    let error = project.result("a/small/429/1")["error"].clone();
    assert_eq!(error["category"], "provider", "{error}");
    assert!(!error["message"].as_str().unwrap().contains("gateway"), "{error}");
}

#[test]
fn an_error_that_the_agent_reports_without_its_status_has_the_category_of_the_status() {
    let project = reaching(refuses);
    let told = "This account may not use the service";
    changed(&project, "\"is_error\": False, \"result\": text", &format!("\"is_error\": True, \"result\": \"{told}\""));
    project.evals(&["run", "--gateway", "observe", "--model", "401", "--model", "403", "--model", "429"]).exits(3);
    for (status, category) in [("401", "auth"), ("403", "auth"), ("429", "rate_limit")] {
        let error = project.result(&format!("a/small/{status}/1"))["error"].clone();
        assert_eq!((&error["category"], &error["message"]), (&json!(category), &json!(told)), "{error}");
    }
}

#[test]
fn an_answer_that_never_was_whole_is_none() {
    fn cut(_: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
        (200, EVENTS, vec![STREAM[0], (0, CUT)])
    }
    fn broken(_: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
        (200, EVENTS, vec![(0, BROKEN)])
    }
    for (answer, category, told) in
        [(cut as Answer, "provider", "the answer broke off"), (broken as Answer, "rate_limit", "Overloaded")]
    {
        let project = reaching(answer);
        // The agent takes what came for the answer.
        changed(&project, "        for line in answer:\n", "        for line in received(answer):\n");
        let received =
            "def received(answer):\n    try:\n        yield from answer\n    except Exception:\n        pass\n\n\n";
        changed(&project, "def ask(messages):\n", &format!("{received}def ask(messages):\n"));
        project.evals(&["run", "--gateway", "observe"]).exits(3);
        let message = errored(&project, TRIAL, category);
        assert!(message.contains(told), "{message}");
    }
}

#[test]
fn an_error_in_a_success_and_a_page_of_a_proxy_are_no_answers() {
    fn wrapped(_: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
        (200, JSON, vec![(0, "{\"error\":{\"message\":\"rate limit reached\",\"code\":429}}")])
    }
    fn page(_: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
        (200, "content-type: text/html\r\n", vec![(0, "<html>Log in to the network</html>")])
    }
    for (answer, category, told) in [
        (wrapped as Answer, "rate_limit", "rate limit reached"),
        (page as Answer, "provider", "the response holds no answer of a model"),
    ] {
        let project = reaching(answer);
        changed(
            &project,
            "    for block in blocks:\n        text = block.pop(\"parts\")\n",
            "    if not message:\n        return {\"content\": [{\"type\": \"text\", \"text\": \"I go on.\"}], \"usage\": {\"input_tokens\": 0, \"output_tokens\": 0}}\n    for block in blocks:\n        text = block.pop(\"parts\")\n",
        );
        project.evals(&["run", "--gateway", "observe"]).exits(3);
        let message = errored(&project, TRIAL, category);
        assert!(message.contains(told), "{message}");
    }
}

#[test]
fn a_service_that_does_not_answer_in_time_is_not_the_agent_s_failure() {
    fn hangs(_: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
        std::thread::sleep(std::time::Duration::from_secs(30));
        (200, EVENTS, STREAM.to_vec())
    }
    let project = reaching(hangs);
    changed(&project, "urllib.request.urlopen(request)", "urllib.request.urlopen(request, timeout=1)");
    changed(&project, "    except urllib.error.HTTPError as error:\n", "    except OSError:\n");
    changed(&project, "\"I go on without %s.\" % error.code", "\"I go on.\"");
    project.evals(&["run", "--gateway", "observe"]).exits(3);
    let message = errored(&project, TRIAL, "provider");
    assert!(message.contains("no answer came before the agent closed the connection"), "{message}");
}

#[test]
fn an_agent_that_repeats_a_refused_request_until_its_time_is_over_has_not_failed() {
    let statuses = [("429", "rate_limit"), ("401", "auth"), ("503", "provider")];
    let columns: Vec<&str> = statuses.iter().flat_map(|(status, _)| ["--model", *status]).collect();
    for limit in ["time", "idle"] {
        let project = reaching(refuses);
        changed(&project, GOES_ON, REPEATS);
        let limit_of_run = format!("{limit}=3s");
        let run = ["run", "--gateway", "observe", "--jobs", "3", "--limit", limit_of_run.as_str()];
        project.evals(&[&run[..], &columns[..]].concat()).exits(3);
        for (status, category) in statuses {
            let trial = format!("a/small/{status}/1");
            let message = errored(&project, &trial, category);
            let ends = format!("status {status}: not today; limit `{limit}` then ended the session");
            assert!(message.ends_with(&ends), "{message}");
            assert_eq!(project.trace(&trial).pop().unwrap()["host"], true);
        }
    }
}

#[test]
fn an_answered_title_is_no_answer_to_the_task_of_an_agent_whose_time_is_over() {
    let project = reaching(only_titles);
    changed(&project, GOES_ON, REPEATS);
    changed(&project, "    text = \"\"\n    while", &format!("{TITLE}    text = \"\"\n    while"));
    project.evals(&["run", "--gateway", "observe", "--limit", "time=3s"]).exits(3);
    let message = errored(&project, TRIAL, "rate_limit");
    assert!(message.ends_with("status 429: not today; limit `time` then ended the session"), "{message}");
    assert_eq!(lines(&project.of_trial(TRIAL, "llm.jsonl"))[0]["status"], 200);
}

#[test]
fn the_last_refusal_of_an_agent_whose_time_is_over_is_a_warning() {
    let answers =
        "turns:\n  - calls: [{write: {path: a.txt, text: x}}]\n  - fault: {http-error: {status: 503, message: busy}}\n";
    let stand = Stand::with(answers, "");
    changed(&stand.project, GOES_ON, REPEATS);
    stand.run("observe", &["--limit", "time=3s"]).exits(1);
    let result = stand.result("observe");
    let warnings = result["warnings"].to_string();
    assert!(warnings.contains("repeated_request") && warnings.contains("status 503: busy"), "{result}");
}

#[test]
fn a_refusal_of_a_script_or_a_cassette_has_the_same_effect() {
    let long = "text: This is long enough to come in several pieces of which some are lost";
    for turn in [
        "fault: {http-error: {status: 429}}".to_owned(),
        format!("{long}, fault: {{error-event: {{message: Overloaded}}}}"),
    ] {
        let mut project = project("model: {script: ../scripts/a.model.yaml}");
        project.env("AGENT_MODE", "goes-on");
        project.write("scripts/a.model.yaml", &format!("turns: [{{{turn}}}]"));
        project.evals(&["run"]).exits(3);
        errored(&project, TRIAL, "rate_limit");
    }
    let stand = Stand::with(ANSWERS, "");
    stand.run("record", &[]).exits(0);
    let mut project = project("");
    project.write("cases/a.yaml", &stand.project.read("cases/a.yaml"));
    project.write(CASSETTE, &stand.project.read(CASSETTE).replace("\"status\":200", "\"status\":429"));
    project.env("AGENT_MODE", "goes-on");
    project.evals(&["run", "--gateway", "replay"]).exits(3);
    let message = errored(&project, TRIAL, "rate_limit");
    assert!(message.ends_with("status 429"), "{message}");
}

#[test]
fn a_request_that_the_agent_needed_at_the_end_counts_although_others_were_answered() {
    let answers =
        "turns:\n  - calls: [{write: {path: a.txt, text: x}}]\n  - fault: {http-error: {status: 503, message: busy}}\n";
    let mut stand = Stand::with(answers, "");
    stand.project.env("AGENT_MODE", "goes-on");
    stand.run("record", &[]).exits(3);
    let message = errored(&stand.project, TRIAL, "provider");
    assert!(message.ends_with("did not answer the last request of the conversation: status 503: busy"), "{message}");
    assert!(!stand.project.path(CASSETTE).exists(), "a session without its end was recorded");

    // Only a title was answered.
    let project = reaching(only_titles);
    changed(&project, "    text = \"\"\n    while", &format!("{TITLE}    text = \"\"\n    while"));
    project.evals(&["run", "--gateway", "observe"]).exits(3);
    errored(&project, TRIAL, "rate_limit");
}

#[test]
fn a_refused_request_beside_the_conversation_changes_nothing() {
    fn no_titles(request: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
        if request.body.contains("short title") {
            (429, JSON, vec![(0, NOT_TODAY)])
        } else {
            (200, EVENTS, STREAM.to_vec())
        }
    }
    let project = reaching(no_titles);
    changed(&project, "    text = \"\"\n    while", &format!("{TITLE}    text = \"\"\n    while"));
    changed(&project, "    say({\"type\": \"result\"", &format!("{TITLE}    say({{\"type\": \"result\""));
    project.evals(&["run", "--gateway", "observe"]).exits(0);
    let statuses: Vec<Value> =
        lines(&project.of_trial(TRIAL, "llm.jsonl")).iter().map(|line| line["status"].clone()).collect();
    assert_eq!(statuses, [429, 200, 429]);
}

#[test]
fn a_request_that_is_answered_when_it_is_repeated_is_no_failure() {
    let answers = "turns:\n  - calls: [{write: {path: a.txt, text: x}}]\n  - {text: Done., fault: overloaded}\n";
    let stand = Stand::with(answers, "");
    changed(
        &stand.project,
        "    except urllib.error.HTTPError as error:\n",
        "    except urllib.error.HTTPError as error:\n        if error.code == 529:\n            return ask(messages)\n",
    );
    stand.run("observe", &[]).exits(0);
    assert_eq!(stand.exchanges("observe").len(), 3);
}

#[test]
fn a_final_answer_with_a_text_that_broke_off_is_in_doubt() {
    let repeats =
        "    if not message.get(\"stop_reason\"):\n        again = ask(messages)\n        KEPT\n        return again\n";
    let returns = "    return dict(message, content=blocks)\n";
    let doubled = "again[\"content\"][0][\"text\"] = blocks[0][\"text\"] + again[\"content\"][0][\"text\"]";
    for (kept, notices) in [(doubled, 1), ("pass", 0)] {
        let project = project("model: {script: ../scripts/a.model.yaml}");
        changed(&project, returns, &format!("{}{returns}", repeats.replace("KEPT", kept)));
        // Long enough that a part of it comes before the error.
        let text = "It goes on and on. ".repeat(20);
        let fault = "fault: {error-event: {message: oops}}, fault-times: 1";
        project.write("scripts/a.model.yaml", &format!("turns: [{{text: {}, {fault}}}]", text.trim()));
        project.evals(&["run"]).exits(0);
        let trace = project.trace(TRIAL);
        let is_doubt = |event: &&Value| event["code"] == "discarded_message" && event["lost"] == "speaker";
        assert_eq!(trace.iter().filter(is_doubt).count(), notices, "{trace:?}");
    }
}

/// Answers with what the header `x-want` of the request names.
fn as_wanted(request: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
    const CALLS: &str = "{\"id\":\"x\",\"model\":\"m\",\"choices\":[{\"index\":0,\"finish_reason\":\"tool_calls\",\
                         \"message\":{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c0\",\
                         \"type\":\"function\",\"function\":{\"name\":\"sh\",\"arguments\":\"{}\"}}]}}]}";
    const RESPONSE: &str = "{\"id\":\"resp_1\",\"object\":\"response\",\"status\":\"completed\",\"model\":\"m\",\
                            \"output\":[{\"type\":\"function_call\",\"id\":\"f1\",\"call_id\":\"c0\",\"name\":\"sh\",\
                            \"arguments\":\"{}\",\"status\":\"completed\"}]}";
    const DONE: &str = "{\"id\":\"x\",\"model\":\"m\",\"choices\":[{\"index\":0,\"finish_reason\":\"stop\",\
                        \"message\":{\"role\":\"assistant\",\"content\":\"Yes.\"}}]}";
    const BILL: &str = "{\"error\":{\"type\":\"invalid_request_error\",\"message\":\"Your credit balance is too low to \
                        access the API.\"}}";
    const QUOTED: &str = "{\"error\":{\"type\":\"invalid_request_error\",\"message\":\"Error while downloading \
                          https://x/y.png. Upstream status code: 403.\"}}";
    const CHUNK: &str = "data: {\"id\":\"x\",\"model\":\"m\",\"choices\":[{\"index\":0,\"finish_reason\":\"stop\",\
                         \"delta\":{\"role\":\"assistant\",\"content\":\"Yes.\"}}]}\n\n";
    let want = request.headers.lines().find_map(|line| line.strip_prefix("x-want:")).unwrap().trim();
    match want {
        "nothing" => std::thread::sleep(std::time::Duration::from_secs(30)),
        "bill" => return (400, JSON, vec![(0, BILL)]),
        "quoted" => return (400, JSON, vec![(0, QUOTED)]),
        "no-answer" => return (200, JSON, vec![(0, "{\"detail\":\"Unauthorized\"}")]),
        "cut" => return (200, EVENTS, vec![(0, CHUNK), (0, CUT)]),
        "calls" if request.line.contains("/responses") => return (200, JSON, vec![(0, RESPONSE)]),
        "calls" => return (200, JSON, vec![(0, CALLS)]),
        "done" => {}
        status => return (status.parse().unwrap(), JSON, vec![(0, NOT_TODAY)]),
    }
    (200, JSON, vec![(0, DONE)])
}

#[test]
#[ignore = "slow: runs many trials behind a gateway"]
fn the_last_state_of_the_case_s_conversation_decides() {
    const LONGER: &str = "chat('calls', USER)\nchat('429', USER, CALL, RESULT)\n";
    let once = "chat('calls', USER)\nchat('nothing', USER, CALL, RESULT, timeout=0.5)\n";
    let respond = "respond('calls', input=PROMPT, tools=RESPONSE_TOOLS)\nrespond('429', previous_response_id='resp_1', \
                   input=[{'type': 'function_call_output', 'call_id': 'c0', 'output': 'x'}], tools=RESPONSE_TOOLS)";
    let sub_agent = "chat('calls', USER)\nchat('calls', OTHER)\nchat('done', USER, CALL, RESULT)\n\
                     chat('429', OTHER, CALL, RESULT)";
    let older = "old = dict(tools=None, functions=[{'name': 'sh'}])\nchat('calls', USER, **old)\n\
                 chat('429', USER, CALL, {'role': 'function', 'name': 'sh', 'content': 'x'}, **old)";
    let without_tools = "chat('done', USER, tools=None)\nchat('429', USER, {'role': 'assistant', 'content': 'ls'}, \
                         {'role': 'user', 'content': 'x'}, tools=None)";
    let required = "how = dict(tool_choice='required')\nchat('calls', USER, **how)\n\
                    chat('500', USER, CALL, RESULT, **how)";
    let note = "how = dict(tool_choice='required')\nchat('calls', USER, **how)\nchat('done', USER, CALL, RESULT, **how)\n\
                chat('500', USER, CALL, RESULT, {'role': 'assistant', 'content': 'Yes.'}, \
                {'role': 'user', 'content': 'Write one line for the log'}, **how)";
    let in_a_form = "how = dict(tools=None, response_format={'type': 'json_object'})\nchat('done', USER, **how)\n\
                     chat('500', USER, {'role': 'assistant', 'content': 'ls'}, \
                     {'role': 'user', 'content': 'x'}, **how)";
    let compressed = "chat('done', TITLE, USER, tools=None, encoding='gzip')\nchat('429', USER, encoding='gzip')";
    // Another request was answered, so the case's conversation decides.
    let hello = "chat('done', {'role': 'user', 'content': 'hi'}, tools=None)\n";
    let system = "chat('429', {'role': 'system', 'content': 'Task: ' + PROMPT}, {'role': 'user', 'content': 'Begin.'})";
    let instructions = "respond('429', instructions='Task: ' + PROMPT, input='Begin.', tools=RESPONSE_TOOLS)";
    let escaped = "chat('429', {'role': 'user', 'content': '<task>' + PROMPT.replace('<', '&lt;') + '</task>'})";
    let rows = [
        ("title-before", "errored", "chat('done', TITLE, USER, tools=None)\nchat('429', USER)".to_owned()),
        ("title-after", "errored", "chat('429', USER)\nchat('done', TITLE, USER, tools=None)".to_owned()),
        ("other-after", "errored", "chat('429', USER)\nchat('done', OTHER, tools=None)".to_owned()),
        ("sub-agent-after", "errored", format!("{LONGER}chat('done', OTHER)")),
        ("answered-after", "pass", format!("{LONGER}chat('done', USER, CALL, RESULT)")),
        (
            "nothing-thrice",
            "errored",
            format!("{once}{}", "chat('nothing', USER, CALL, RESULT, timeout=0.5)\n".repeat(2)),
        ),
        ("nothing-once", "pass", once.to_owned()),
        ("no-answer", "errored", "chat('no-answer', USER)".to_owned()),
        ("no-answer-last", "errored", "chat('calls', USER)\nchat('no-answer', USER, CALL, RESULT)".to_owned()),
        ("previous-response", "errored", respond.to_owned()),
        ("sub-agent-refused", "pass", sub_agent.to_owned()),
        ("one-of-two", "pass", "chat('done', USER)\nchat('429', USER)".to_owned()),
        ("cut-after-end", "pass", "chat('cut', USER, stream=True)".to_owned()),
        ("too-long", "pass", "chat('calls', USER)\nchat('400', USER, CALL, RESULT)".to_owned()),
        ("no-credit", "errored", "chat('calls', USER)\nchat('bill', USER, CALL, RESULT)".to_owned()),
        ("quoted-status", "pass", "chat('calls', USER)\nchat('quoted', USER, CALL, RESULT)".to_owned()),
        ("required", "errored", required.to_owned()),
        ("note-in-a-form", "pass", note.to_owned()),
        ("in-a-form", "errored", in_a_form.to_owned()),
        ("compressed", "errored", compressed.to_owned()),
        ("system", "errored", format!("{hello}{system}")),
        ("instructions", "errored", format!("{hello}{instructions}")),
        ("escaped", "errored", format!("{hello}{escaped}")),
        ("functions", "errored", older.to_owned()),
        ("without-tools", "errored", without_tools.to_owned()),
    ];
    let mut project = Project::new();
    project.env("EVALS_UPSTREAM_OPENAI", &format!("{}/v1", Service::start(as_wanted).base_url()));
    project.env("OPENAI_API_KEY", KEY);
    for (name, _, steps) in &rows {
        let file = format!("{name}.py");
        project.write(&file, &format!("{}{steps}\nprint('{{\"say\": \"Yes.\"}}')\n", include_str!("refused_agent.py")));
        let agent = project.path(&file).canonicalize().unwrap();
        let manifest = "adapter: json-stream\ncommand: [python3, 'AGENT', '{prompt}']\nusage: {scope: session}\n\
                        gateway: {api: openai-chat, env: {AGENT_URL: '{gateway}/v1', AGENT_API_KEY: '{key}'}}\n\
                        stream:\n  - when: has(line.say)\n    \
                        emit: [{message: {text: line.say}}, {stop: {reason: end_turn}}]";
        project.harness(name, &manifest.replace("AGENT'", &format!("{}'", agent.display())));
    }
    let names: Vec<&str> = rows.iter().map(|row| row.0).collect();
    let keys = format!("prompt: Check that a < b, and change nothing.\nharnesses: [{}]\n", names.join(", "));
    project.write("cases/a.yaml", &format!("{keys}graders: [{{stop: {{reason: [end_turn]}}}}]\n"));
    project.evals(&["run", "--gateway", "observe"]).exits(3);
    for (name, verdict, _) in &rows {
        let result = project.result(&format!("a/{name}/default/1"));
        assert_eq!(result["verdict"], *verdict, "{name}: {result}");
        if *verdict == "errored" {
            errored(&project, &format!("a/{name}/default/1"), result["error"]["category"].as_str().unwrap());
        }
    }
}

/// An agent that asks its model once. Its arguments: the prompt, its exit code, and what it shows: `-` for the model's answer.
const ASKS_ONCE: &str = r#"
import json, os, sys, urllib.request
tools = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}]
body = {"model": "m", "tools": tools, "messages": [{"role": "user", "content": sys.argv[1]}]}
headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["AGENT_API_KEY"]}
request = urllib.request.Request(os.environ["AGENT_URL"] + "/chat/completions", json.dumps(body).encode(), headers)
answer = json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
print(json.dumps({"say": answer if sys.argv[3] == "-" else sys.argv[3]}))
sys.exit(int(sys.argv[2]))
"#;

#[test]
fn an_answer_of_the_model_that_looks_like_an_error_is_no_error_of_the_agent() {
    let project = Project::new();
    project.write("once.py", ASKS_ONCE);
    let agent = project.path("once.py").canonicalize().unwrap();
    let rows = [
        ("model", "'0', '-'", "pass"),
        ("program", "'0', 'Error: 500 Internal Server Error'", "errored"),
        ("failed", "'1', '-'", "errored"),
    ];
    for (name, how, _) in rows {
        let command = format!("command: [python3, '{}', '{{prompt}}', {how}]", agent.display());
        let manifest = "usage: {scope: session}\nerror-text: ['^Error: [45]\\d\\d ']\n\
                        gateway: {api: openai-chat, model: m, env: {AGENT_URL: '{gateway}/v1', AGENT_API_KEY: '{key}'}}\n\
                        stream:\n  - when: has(line.say)\n    \
                        emit: [{message: {text: line.say}}, {stop: {reason: end_turn}}]";
        project.harness(name, &format!("adapter: json-stream\n{command}\n{manifest}"));
    }
    let answer = "Error: 404 Not Found is what the server answers.";
    project.write("cases/a.model.yaml", &format!("turns:\n  - text: '{answer}'\n"));
    let keys = "model: {script: a.model.yaml}\nharnesses: [model, program, failed]";
    let graders = format!("graders: [{{output: {{equals: '{answer}'}}}}]");
    project.write("cases/a.yaml", &format!("prompt: What does it answer?\n{keys}\n{graders}\n"));
    project.evals(&["run"]).exits(3);
    for (name, _, verdict) in rows {
        let result = project.result(&format!("a/{name}/default/1"));
        assert_eq!(result["verdict"], verdict, "{name}: {result}");
    }
}

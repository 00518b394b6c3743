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
fn a_refusal_of_a_script_or_a_cassette_has_the_same_effect() {
    for fault in ["{http-error: {status: 429}}", "{error-event: {message: Overloaded}}"] {
        let mut project = project("model: {script: ../scripts/a.model.yaml}");
        project.env("AGENT_MODE", "goes-on");
        let text = "This is long enough to come in several pieces of which some are lost";
        project.write("scripts/a.model.yaml", &format!("turns: [{{text: {text}, fault: {fault}}}]"));
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
    fn titles(request: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
        if request.body.contains("short title") {
            (200, EVENTS, STREAM.to_vec())
        } else {
            (429, JSON, vec![(0, NOT_TODAY)])
        }
    }
    let project = reaching(titles);
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

//! Requests that go on to a service: what it gets, what the agent gets, and what is kept of both.

use serde_json::{Value, json};

use super::service::{CUT, Request, Service};
use super::stand::{ANSWERS, KEY, MANIFEST, Stand, TRIAL, project};
use crate::project::{Project, of_type};

/// An answer of the service in parts, of which the last two split an event.
pub(super) const STREAM: [(u64, &str); 3] = [
    (
        0,
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\
         \"role\":\"assistant\",\"model\":\"claude-opus-4-8\",\"content\":[],\"stop_reason\":null,\"usage\":\
         {\"input_tokens\":7,\"cache_read_input_tokens\":5,\"output_tokens\":1}}}\n\nevent: content_block_start\n\
         data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
         event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\
         \"text_delta\",\"text\":\"It is \"}}\n\n",
    ),
    (300, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":"),
    (
        0,
        "{\"type\":\"text_delta\",\"text\":\"42.\"}}\n\nevent: content_block_stop\n\
         data: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\n\
         data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"input_tokens\":7,\
         \"cache_read_input_tokens\":5,\"output_tokens\":9}}\n\nevent: message_stop\n\
         data: {\"type\":\"message_stop\"}\n\n",
    ),
];

const EVENTS: &str = "content-type: text/event-stream\r\nx-request-id: req_1\r\n";

fn streams(_: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
    (200, EVENTS, STREAM.to_vec())
}

/// Makes a project whose agent reaches this service.
fn reaching(service: &Service, keys: &str) -> Project {
    let mut project = project(keys);
    project.env("EVALS_UPSTREAM_ANTHROPIC", &service.base_url());
    project.env("ANTHROPIC_API_KEY", KEY);
    project
}

#[test]
fn requests_and_answers_go_on_and_are_kept_as_evidence() {
    let service = Service::start(streams);
    let project = reaching(&service, "");
    project.evals(&["run", "--gateway", "observe"]).exits(0);

    // The service gets the user's own key in the place of the manifest's placeholder.
    let asked = &service.requests()[0];
    assert_eq!(asked.line, "POST /v1/messages HTTP/1.1");
    assert!(asked.headers.contains(&format!("x-api-key: {KEY}\n")), "{}", asked.headers);
    let log: Vec<Value> = crate::project::lines(&project.of_trial(TRIAL, "llm.jsonl"));
    assert_eq!(log.len(), 1);
    let line = &log[0];
    let schema = jsonschema::validator_for(&evals::internal::schema::schema("exchange").unwrap()).unwrap();
    assert!(schema.is_valid(line), "{line}");
    assert_eq!((&line["n"], &line["api"], &line["source"]), (&json!(1), &json!("anthropic"), &json!("upstream")));
    assert_eq!(
        (&line["method"], &line["path"], &line["status"]),
        (&json!("POST"), &json!("/v1/messages"), &json!(200))
    );
    assert_eq!(line["model"], json!({"asked": "none", "answered": "claude-opus-4-8"}));
    assert_eq!(line["request"], serde_json::from_str::<Value>(&asked.body).unwrap());
    assert_eq!(line["response"]["content"], json!([{"type": "text", "text": "It is 42."}]));
    assert_eq!(line["usage"], json!({"input_tokens": 7, "output_tokens": 9, "cache_read_tokens": 5}));
    assert!(line["error"].is_null(), "{line}");
    // The parts as they came: the second one 300 ms after the first, none of them held back.
    let parts: Vec<(u64, u64)> = serde_json::from_value(line["stream"].clone()).unwrap();
    let bytes: u64 = parts.iter().map(|part| part.1).sum();
    assert_eq!(bytes, STREAM.iter().map(|(_, text)| text.len() as u64).sum::<u64>());
    assert!(parts.last().unwrap().0 >= parts[0].0 + 250, "{parts:?}");

    // The key is nowhere on the disk.
    let found = std::process::Command::new("grep").args(["-rlF", KEY, ".evals"]).current_dir(project.path("")).output();
    assert_eq!(String::from_utf8(found.unwrap().stdout).unwrap(), "");
    assert!(!project.of_trial(TRIAL, "llm.jsonl").to_ascii_lowercase().contains("x-api-key"));

    // What the service answered is what was used, and with which model.
    let trace = project.trace(TRIAL);
    assert_eq!(trace[0]["model"]["effective"], "claude-opus-4-8");
    let usage = of_type(&trace, "usage");
    let last = usage.last().unwrap();
    assert_eq!((&last["source"], &last["scope"]), (&json!("gateway"), &json!("session")));
    assert_eq!(
        (&last["input_tokens"], &last["output_tokens"], &last["cache_read_tokens"]),
        (&json!(7), &json!(9), &json!(5))
    );
    // The price of the model that answered: (7 × 5 + 9 × 25 + 5 × 0.5) / 1e6.
    let metrics = &project.result(TRIAL)["metrics"];
    assert_eq!((&metrics["cache_read_tokens"], &metrics["cost_usd"]), (&json!(5), &json!(0.000_262_5)));
}

/// The end of an answer before which the service summarised the conversation, by another call of the model.
const SUMMARISED: &str = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
     event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":\
     {\"input_tokens\":7,\"output_tokens\":9,\"iterations\":[{\"type\":\"compaction\",\"input_tokens\":180,\
     \"output_tokens\":30},{\"type\":\"message\",\"input_tokens\":7,\"output_tokens\":9}]}}\n\n\
     event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

/// The end of an answer of which a part was written to the cache for an hour.
const FOR_AN_HOUR: &str = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
     event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":\
     {\"input_tokens\":7,\"output_tokens\":9,\"cache_creation_input_tokens\":100,\"cache_creation\":\
     {\"ephemeral_1h_input_tokens\":100}}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

#[test]
fn all_calls_of_the_model_for_an_answer_count_and_a_cost_without_a_price_is_a_lower_bound() {
    let service = Service::start(|_| (200, EVENTS, vec![STREAM[0], (0, SUMMARISED)]));
    let project = reaching(&service, "graders: [{budget: {tokens: 100}}]");
    project.evals(&["run", "--gateway", "observe"]).exits(1);
    let metrics = &project.result(TRIAL)["metrics"];
    assert_eq!((&metrics["input_tokens"], &metrics["output_tokens"]), (&json!(187), &json!(39)), "{metrics}");
    assert_eq!((&metrics["total_tokens"], &metrics["lower_bounds"]), (&json!(231), &Value::Null), "{metrics}");
    // (187 × 5 + 39 × 25 + 5 × 0.5) / 1e6.
    assert!((metrics["cost_usd"].as_f64().unwrap() - 0.001_912_5).abs() < 1e-9, "{metrics}");

    let service = Service::start(|_| (200, EVENTS, vec![STREAM[0], (0, FOR_AN_HOUR)]));
    let project = reaching(&service, "graders: [{budget: {cost-usd: 1}}]");
    project.evals(&["run", "--gateway", "observe"]).exits(3);
    let result = project.result(TRIAL);
    assert_eq!((&result["verdict"], &result["metrics"]["total_tokens"]), (&json!("ungraded"), &json!(121)), "{result}");
    assert_eq!(result["metrics"]["lower_bounds"], json!(["cost_usd"]), "{result}");
}

#[test]
fn an_agent_s_own_variable_for_the_key_holds_the_user_s_own() {
    let service = Service::start(streams);
    let mut project = reaching(&service, "");
    project.env("AGENT_API_KEY", "sk-of-the-agent-itself");
    project.evals(&["run", "--gateway", "observe"]).exits(0);
    assert!(service.requests()[0].headers.contains("x-api-key: sk-of-the-agent-itself\n"));

    // Also where the manifest has a placeholder of its own.
    let agent = project.path("agent.py").canonicalize().unwrap();
    let manifest = MANIFEST.replace("AGENT,", &format!("{},", agent.display())).replace("{key}", "no-real-key");
    let mut project = reaching(&service, "");
    project.harness("small", &manifest);
    project.evals(&["run", "--gateway", "observe"]).exits(0);
    assert!(service.requests()[1].headers.contains(&format!("x-api-key: {KEY}\n")));
    project.env("ANTHROPIC_API_KEY", "");
    project.evals(&["run", "--gateway", "observe"]).exits(3).says("needs AGENT_API_KEY in the environment");
    assert_eq!(service.requests().len(), 2, "a placeholder went to the service");

    // A short one is no part of another header.
    let mut project = reaching(&service, "");
    let text = project.read("harnesses/small.yaml").replace("{key}", "t");
    project.harness("small", text.split_once('\n').unwrap().1);
    project.evals(&["run", "--gateway", "observe"]).exits(0);
    let headers = &service.requests()[2].headers;
    assert!(headers.contains(&format!("x-api-key: {KEY}\n")) && headers.matches(KEY).count() == 1, "{headers}");
    project.env("EVALS_UPSTREAM_ANTHROPIC", "");
    project.evals(&["run", "--gateway", "observe"]).exits(2).says("EVALS_UPSTREAM_ANTHROPIC is ``");
}

#[test]
fn an_unknown_path_goes_on_and_is_logged() {
    fn answer(request: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
        match request.line.starts_with("POST /v1/messages ") {
            true => streams(request),
            false => (418, "content-type: application/json\r\n", vec![(0, "{\"error\":{\"message\":\"a teapot\"}}")]),
        }
    }
    let service = Service::start(answer);
    let mut project = reaching(&service, "");
    let agent = project.read("agent.py").replace(
        "def main():\n",
        "def main():\n    try:\n        urllib.request.urlopen(os.environ[\"AGENT_URL\"] + \"/api/events?key=SECRET\", b\"{}\")\n    \
         except urllib.error.HTTPError:\n        pass\n",
    );
    project.write("agent.py", &agent);
    project.evals(&["run", "--gateway", "observe", "--label", "seen"]).exits(0);
    assert!(service.requests()[0].line.starts_with("POST /api/events"), "{:?}", service.requests()[0]);
    let folder = project.run_named("seen");
    let log = crate::project::lines(&project.read(&format!("{folder}/trials/{TRIAL}/llm.jsonl")));
    assert_eq!((&log[0]["status"], &log[0]["response"]), (&json!(418), &json!({"error": {"message": "a teapot"}})));
    assert_eq!(log[0]["path"], "/api/events?key=[redacted]");
    // It is no part of a recording, which answers such a path as the service answers an unknown one.
    project.evals(&["run", "--gateway", "record", "--label", "kept"]).exits(0);
    assert!(!project.read("cases/a.cassettes/small.jsonl").contains("/api/events"));
    project.env("EVALS_UPSTREAM_ANTHROPIC", "http://127.0.0.1:9");
    project.evals(&["run", "--gateway", "replay", "--label", "played"]).exits(0);
    let folder = project.run_named("played");
    let log = crate::project::lines(&project.read(&format!("{folder}/trials/{TRIAL}/llm.jsonl")));
    assert_eq!(log[0]["status"], 404);
    let result = project.read(&format!("{folder}/trials/{TRIAL}/result.json"));
    let told = "1 request got status 404, because a cassette has no such paths; the first: POST /api/events?key=";
    assert!(result.contains("\"not_recordable\"") && result.contains(told), "{result}");
}

#[test]
fn an_answer_that_breaks_off_is_kept_as_far_as_it_came() {
    fn cut(_: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
        (200, EVENTS, vec![STREAM[0], (0, CUT)])
    }
    let service = Service::start(cut);
    let project = reaching(&service, "");
    // What the agent makes of it is its own affair.
    project.evals(&["run", "--gateway", "observe"]);
    let line = crate::project::lines(&project.of_trial(TRIAL, "llm.jsonl"))[0].clone();
    assert_eq!(line["error"]["kind"], "cut");
    assert!(line["response"]["content"][0]["text"].as_str().unwrap().starts_with("It is"), "{line}");
}

#[test]
fn an_answer_that_the_service_compresses_is_kept_without_its_encoding() {
    const GZIP: &str = "content-type: text/event-stream\r\ncontent-encoding: gzip\r\n";
    let service = Service::start(|_| (200, GZIP, STREAM.to_vec()));
    let project = reaching(&service, "");
    let agent = project.read("agent.py");
    let reads = agent
        .replace("import json\n", "import gzip\nimport json\n")
        .replace("answer = urllib.request.urlopen(request)", "answer = gzip.open(urllib.request.urlopen(request))");
    project.write("agent.py", &reads);
    project.evals(&["run", "--gateway", "record"]).exits(0);
    let log: Vec<Value> = crate::project::lines(&project.of_trial(TRIAL, "llm.jsonl"));
    assert_eq!(log[0]["response"]["content"], json!([{"type": "text", "text": "It is 42."}]), "{log:?}");
    assert_eq!((&log[0]["usage"]["output_tokens"], &log[0]["error"]), (&json!(9), &Value::Null), "{log:?}");
    assert!(project.read("cases/a.cassettes/small.jsonl").contains("It is 42."));

    // The agent can read an encoding that the gateway cannot.
    const BROTLI: &str = "content-type: text/event-stream\r\ncontent-encoding: br\r\n";
    let service = Service::start(|_| (200, BROTLI, [&STREAM[..], &[(0, ":\u{1}\n\n")]].concat()));
    let project = reaching(&service, "");
    project.evals(&["run", "--gateway", "observe"]).exits(0);
    let log: Vec<Value> = crate::project::lines(&project.of_trial(TRIAL, "llm.jsonl"));
    assert_eq!((&log[0]["status"], &log[0]["error"]["kind"]), (&json!(200), &json!("encoding")), "{log:?}");
    assert!(log[0]["response"].as_str().unwrap().ends_with(" bytes)"), "{log:?}");
    assert!(log[0]["request"].is_object(), "{log:?}");
    assert!(!project.result(TRIAL)["warnings"].to_string().contains("unread_requests"));

    // A label that is no compression.
    const LABEL: &str = "content-type: text/event-stream\r\ncontent-encoding: utf-8\r\n";
    let service = Service::start(|_| (200, LABEL, STREAM.to_vec()));
    let project = reaching(&service, "");
    project.evals(&["run", "--gateway", "record"]).exits(0);
    let log: Vec<Value> = crate::project::lines(&project.of_trial(TRIAL, "llm.jsonl"));
    assert_eq!(log[0]["response"]["content"], json!([{"type": "text", "text": "It is 42."}]), "{log:?}");
    assert_eq!((&log[0]["usage"]["output_tokens"], &log[0]["error"]), (&json!(9), &Value::Null), "{log:?}");
}

#[test]
fn a_key_of_another_service_is_left_out_with_a_warning() {
    const SHARED: &str = "sk-of-two-services";
    let service = Service::start(streams);
    let mut project = reaching(&service, "");
    project.env("AGENT_API_KEY", SHARED);
    project.env("OPENAI_API_KEY", SHARED);
    project.evals(&["run", "--gateway", "observe"]).exits(0);
    assert!(!service.requests()[0].headers.contains(SHARED), "{}", service.requests()[0].headers);
    let warnings = project.result(TRIAL)["warnings"].to_string();
    assert!(warnings.contains("\"key_left_out\"") && warnings.contains("without `x-api-key`"), "{warnings}");

    // Both services are at one address.
    project.env("EVALS_UPSTREAM_OPENAI", &service.base_url().replace("127.0.0.1", "localhost"));
    project.evals(&["run", "--gateway", "observe", "--label", "one"]).exits(0);
    assert!(service.requests()[1].headers.contains(&format!("x-api-key: {SHARED}\n")), "{:?}", service.requests());
    let result = project.read(&format!("{}/trials/{TRIAL}/result.json", project.run_named("one")));
    assert!(!result.contains("key_left_out"), "{result}");

    // The key is also one of this service.
    project.env("EVALS_UPSTREAM_OPENAI", "http://127.0.0.1:9/v1");
    project.env("ANTHROPIC_AUTH_TOKEN", SHARED);
    project.evals(&["run", "--gateway", "observe", "--label", "both"]).exits(0);
    assert!(service.requests()[2].headers.contains(&format!("x-api-key: {SHARED}\n")), "{:?}", service.requests());
}

#[test]
fn a_list_of_models_is_asked_of_the_service_of_the_manifest() {
    fn answer(request: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
        match request.line.starts_with("GET ") {
            true => (200, "content-type: application/json\r\n", vec![(0, "{\"data\":[]}")]),
            false => streams(request),
        }
    }
    let (anthropic, openai) = (Service::start(answer), Service::start(answer));
    let mut project = reaching(&anthropic, "");
    project.env("EVALS_UPSTREAM_OPENAI", &format!("{}/v1", openai.base_url()));
    let asks = "def main():\n    url = os.environ[\"AGENT_URL\"] + \"/v1/models\"\n    \
                urllib.request.urlopen(urllib.request.Request(url, headers={\"x-api-key\": os.environ[\"AGENT_API_KEY\"]}))\n";
    project.write("agent.py", &project.read("agent.py").replace("def main():\n", asks));
    project.evals(&["run", "--gateway", "observe"]).exits(0);
    assert_eq!(openai.requests().len(), 0, "{:?}", openai.requests());
    let asked = &anthropic.requests()[0];
    assert_eq!(asked.line, "GET /v1/models HTTP/1.1");
    assert!(asked.headers.contains(&format!("x-api-key: {KEY}\n")), "{}", asked.headers);
    let log: Vec<Value> = crate::project::lines(&project.of_trial(TRIAL, "llm.jsonl"));
    assert_eq!(log[0]["api"], "anthropic", "{log:?}");
}

#[test]
fn an_error_of_the_service_is_kept_with_what_the_agent_does_next() {
    fn busy(_: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
        let body = "{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"slow down\"}}";
        (429, "content-type: application/json\r\nretry-after: 3\r\n", vec![(0, body)])
    }
    let service = Service::start(busy);
    let project = reaching(&service, "");
    project.evals(&["run", "--gateway", "record"]).exits(3);
    let line = crate::project::lines(&project.of_trial(TRIAL, "llm.jsonl"))[0].clone();
    assert_eq!((&line["status"], &line["headers"]), (&json!(429), &json!({"retry-after": "3"})));
    assert_eq!(line["error"], json!({"kind": "service", "message": "slow down"}));
    assert!(!project.path("cases/a.cassettes").exists(), "a failed recording was kept");
    // The agent crashed, and the refusal is why.
    assert_eq!(project.result(TRIAL)["error"]["category"], "rate_limit");
}

#[test]
fn the_model_of_the_run_may_be_enforced() {
    let other = "env: {AGENT_MODEL: cheap-model}";
    let stand = Stand::with(ANSWERS, other);
    stand.run("observe", &["--model", "good-model", "--enforce-model", "refuse"]).exits(3);
    let trial = "a/small/good-model/1";
    let folder = stand.project.run_named("observe");
    let result: Value =
        serde_json::from_str(&stand.project.read(&format!("{folder}/trials/{trial}/result.json"))).unwrap();
    assert_eq!(result["error"]["category"], "provider");
    let told = result["error"]["message"].as_str().unwrap();
    assert!(told.contains("`cheap-model`") && told.contains("`good-model`"), "{told}");
    assert!(stand.service.log().is_empty(), "the request went on");

    stand.run("record", &["--model", "good-model", "--enforce-model", "rewrite"]).exits(0);
    let folder = stand.project.run_named("record");
    let log = crate::project::lines(&stand.project.read(&format!("{folder}/trials/{trial}/llm.jsonl")));
    // The log has the agent's own word, and the service got the other one.
    assert_eq!(log[0]["model"], json!({"asked": "cheap-model", "answered": "good-model"}));
    assert!(stand.service.log().iter().all(|line| line["model"] == "good-model"));

    // The recording has the agent's own word, which it says again.
    stand.run("replay", &["--model", "good-model"]).exits(0);

    let none = stand.run("auto", &["--enforce-model", "refuse"]);
    none.says("--enforce-model has no effect on trials for which no model is asked");
}

#[test]
fn a_request_beyond_a_limit_does_not_leave() {
    let stand = Stand::with(ANSWERS, "limits: {tokens: 125}");
    stand.run("observe", &[]).exits(1);
    let result = stand.result("observe");
    assert_eq!((&result["verdict"], &result["stop"]["reason"]), (&json!("fail"), &json!("max_budget")), "{result}");
    assert_eq!(result["stop"]["detail"], "tokens");
    // 120 tokens after the first answer, 240 after the second: the third request is refused.
    assert_eq!(stand.service.log().len(), 2);
    let log = stand.exchanges("observe");
    assert_eq!((log.len(), &log[2]["error"]["kind"]), (3, &json!("limit")));
}

#[test]
fn figures_of_an_agent_that_differ_from_the_service_s_are_told() {
    let stand = Stand::with(ANSWERS, "");
    let agent = stand.project.read("agent.py").replace("total[key] += message[\"usage\"][key]", "total[key] += 1");
    stand.project.write("agent.py", &agent);
    stand.run("observe", &[]).exits(0);
    let trace = stand.trace("observe");
    let notices = of_type(&trace, "notice");
    let told = notices.iter().find(|notice| notice["code"] == "usage_differs").unwrap();
    let text = told["text"].as_str().unwrap();
    assert!(text.contains("3 input tokens, and the service 330"), "{text}");
    assert_eq!(stand.result("observe")["metrics"]["input_tokens"], 330);
}

#[test]
fn more_tokens_than_the_gateway_saw_are_a_warning() {
    let stand = Stand::with(ANSWERS, "");
    let agent = stand.project.read("agent.py").replace("total[key] += message[\"usage\"][key]", "total[key] += 50000");
    stand.project.write("agent.py", &agent);
    stand.run("observe", &[]).exits(0);
    let result = stand.result("observe");
    let warnings = result["warnings"].to_string();
    assert!(warnings.contains("beside_gateway") && warnings.contains("it may have used a model beside"), "{warnings}");
    assert_eq!(result["metrics"]["input_tokens"], 330, "the gateway's figures stay");
}

#[test]
fn figures_of_an_agent_do_not_stand_beside_incomplete_ones_of_the_service() {
    let partial = ANSWERS.replace("    usage: {input: 110, output: 10}\n", "");
    let stand = Stand::with(&partial, "limits: {tokens: 200}");
    let agent = stand.project.read("agent.py").replace("total[key] += message[\"usage\"][key]", "total[key] = 1");
    stand.project.write("agent.py", &agent);
    stand.run("observe", &[]).exits(1);
    let result = stand.result("observe");
    let metrics = &result["metrics"];
    // The service reported 220 input and 32 output tokens, and nothing for the second answer.
    assert_eq!((&metrics["input_tokens"], &metrics["output_tokens"]), (&json!(220), &json!(32)), "{metrics}");
    assert_eq!((&result["verdict"], &metrics["total_tokens"]), (&json!("fail"), &json!(252)), "{result}");
    let bounds = metrics["lower_bounds"].to_string();
    assert!(["input_tokens", "output_tokens", "total_tokens"].iter().all(|it| bounds.contains(it)), "{bounds}");
}

/// Breaks the first answer off before anything of it came, and counts its tokens nowhere.
fn cut_once(_: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
    static ASKED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    match ASKED.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
        0 => (200, EVENTS, vec![(0, "event: ping\ndata: {\"type\": \"ping\"}\n\n"), (0, CUT)]),
        _ => (200, EVENTS, STREAM.to_vec()),
    }
}

#[test]
fn an_answer_that_broke_off_makes_the_agent_s_figures_lower_bounds() {
    let service = Service::start(cut_once);
    let project = reaching(&service, "graders: [{budget: {tokens: 1000}}]");
    let agent = project.read("agent.py");
    let twice = "        try:\n            ask(messages)\n        except Exception:\n            pass\n        message = ask(messages)\n";
    let again = agent.replace("        message = ask(messages)\n", twice);
    // The agent counts more tokens than the service reported.
    let again = again.replace("total[key] += message[\"usage\"][key]", "total[key] += 50");
    assert_ne!(agent, again);
    project.write("agent.py", &again);
    project.evals(&["run", "--gateway", "observe"]).exits(3);
    let result = project.result(TRIAL);
    assert_eq!((&result["verdict"], &result["metrics"]["total_tokens"]), (&json!("ungraded"), &json!(100)), "{result}");
    assert!(result["metrics"]["lower_bounds"].to_string().contains("total_tokens"), "{result}");
    let trace = project.trace(TRIAL);
    let notices = of_type(&trace, "notice");
    assert!(notices.iter().any(|notice| notice["code"] == "usage_incomplete"), "{notices:?}");
}

#[test]
fn a_request_that_cannot_be_read_does_not_go_on_without_its_body() {
    let service = Service::start(streams);
    let project = reaching(&service, "");
    // The length of a part is no number.
    let broken = "\
def main():
    import socket, urllib.parse
    to = urllib.parse.urlsplit(os.environ[\"AGENT_URL\"])
    with socket.create_connection((to.hostname, to.port)) as gateway:
        gateway.sendall(b\"POST /v1/messages HTTP/1.1\\r\\nHost: localhost\\r\\n\"
                        b\"Transfer-Encoding: chunked\\r\\n\\r\\nzz\\r\\n\")
        try:
            gateway.recv(1)
        except OSError:
            pass
";
    project.write("agent.py", &project.read("agent.py").replace("def main():\n", broken));
    project.evals(&["run", "--gateway", "observe"]).exits(0);
    assert_eq!(service.requests().len(), 1, "{:?}", service.requests());
    let log: Vec<Value> = crate::project::lines(&project.of_trial(TRIAL, "llm.jsonl"));
    assert_eq!((&log[0]["error"]["kind"], &log[0]["source"]), (&json!("malformed"), &json!("upstream")), "{log:?}");
    // If it is the last request, the agent is not blamed for the missing answer.
    let ends = format!("{broken}    sys.exit(1)\n");
    project.write("agent.py", &project.read("agent.py").replace(broken, &ends));
    project.evals(&["run", "--gateway", "observe", "--label", "alone"]).exits(3);
    let folder = project.run_named("alone");
    let result: Value = serde_json::from_str(&project.read(&format!("{folder}/trials/{TRIAL}/result.json"))).unwrap();
    assert_eq!(result["error"]["category"], "provider", "{result}");
}

#[test]
fn a_request_in_an_unknown_encoding_goes_on_with_a_warning_and_is_not_recorded() {
    let service = Service::start(streams);
    let project = reaching(&service, "");
    let agent = project.read("agent.py");
    let encoded = agent.replace("{\"content-type\":", "{\"content-encoding\": \"br\", \"content-type\":");
    assert_ne!(agent, encoded);
    project.write("agent.py", &encoded);
    project.evals(&["run", "--gateway", "observe"]).exits(0);
    assert!(service.requests()[0].headers.contains("content-encoding: br\n"), "{:?}", service.requests());
    let log: Vec<Value> = crate::project::lines(&project.of_trial(TRIAL, "llm.jsonl"));
    assert_eq!(log[0]["error"]["kind"], "encoding", "{log:?}");
    assert!(log[0]["request"].as_str().unwrap().ends_with(" bytes)"), "{log:?}");
    let result = project.result(TRIAL);
    assert!(result["warnings"].to_string().contains("\"unread_requests\""), "{result}");
    assert!(result["metrics"]["lower_bounds"].to_string().contains("total_tokens"), "{result}");

    let mut project = project;
    project.env("AGENT_MODE", "goes-on");
    project.evals(&["run", "--gateway", "record", "--label", "kept"]).exits(3);
    assert_eq!(service.requests().len(), 1, "a request went on that cannot be recorded");
    let folder = project.run_named("kept");
    let result: Value = serde_json::from_str(&project.read(&format!("{folder}/trials/{TRIAL}/result.json"))).unwrap();
    assert_eq!(result["error"]["category"], "setup", "{result}");
    assert!(result["error"]["message"].as_str().unwrap().contains("content encoding `br`"), "{result}");
}

#[test]
fn a_request_with_a_label_that_is_no_compression_is_read_and_recorded() {
    let service = Service::start(streams);
    let project = reaching(&service, "");
    let agent = project.read("agent.py");
    let labelled = agent.replace("{\"content-type\":", "{\"content-encoding\": \"utf-8\", \"content-type\":");
    assert_ne!(agent, labelled);
    project.write("agent.py", &labelled);
    project.evals(&["run", "--gateway", "record"]).exits(0);
    assert!(service.requests()[0].headers.contains("content-encoding: utf-8\n"), "{:?}", service.requests());
    let log: Vec<Value> = crate::project::lines(&project.of_trial(TRIAL, "llm.jsonl"));
    assert_eq!((&log[0]["error"], log[0]["request"].is_object()), (&Value::Null, true), "{log:?}");
}

#[test]
fn requests_beside_the_model_are_free_unless_they_look_like_one_to_a_model() {
    fn answer(request: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
        match request.line.starts_with("POST /v1/messages ") {
            true => streams(request),
            false => (200, "content-type: application/json\r\n", vec![(0, "{\"success\":true}")]),
        }
    }
    let service = Service::start(answer);
    let project = reaching(&service, "");
    let agent = project.read("agent.py");
    let beside = |steps: &str| {
        let post = "def post(path, data, **headers):\n    url = os.environ[\"AGENT_URL\"] + path\n    \
                    urllib.request.urlopen(urllib.request.Request(url, data, headers)).read()\n\n\n";
        project.write("agent.py", &agent.replace("def main():\n", &format!("{post}def main():\n{steps}")));
    };
    let result_of = |label: &str, arm: &str| -> (String, Value) {
        let trial = format!("{}/trials/a/small/{arm}/1", project.run_named(label));
        let result = serde_json::from_str(&project.read(&format!("{trial}/result.json"))).unwrap();
        (project.read(&format!("{trial}/trace.jsonl")), result)
    };
    // Telemetry in an encoding that the gateway does not read hides no request for another model.
    beside(
        "    post(\"/v1/logs\", b\"x\", **{\"content-encoding\": \"zstd\"})\n    post(\"/api/show\", b'{\"name\": \"m\"}')\n",
    );
    let model = "claude-opus-4-8";
    project
        .evals(&["run", "--gateway", "observe", "--model", model, "--enforce-model", "refuse", "--label", "free"])
        .exits(0);
    let (_, result) = result_of("free", model);
    assert!(!result["warnings"].to_string().contains("unread_requests"), "{result}");
    assert!(!result["metrics"]["lower_bounds"].to_string().contains("total_tokens"), "{result}");

    beside("    post(\"/v1/completions\", b'{\"prompt\": \"x\"}')\n");
    project.evals(&["run", "--gateway", "observe", "--label", "asks"]).exits(0);
    let (trace, result) = result_of("asks", "default");
    assert!(result["metrics"]["lower_bounds"].to_string().contains("total_tokens"), "{result}");
    let told = "1 answer at paths of no known API had no token counts, so the totals are lower bounds; the first: \
                POST /v1/completions";
    assert!(trace.contains(told), "{trace}");
}

#[test]
fn a_key_in_the_query_of_the_service_s_address_is_kept_nowhere() {
    fn echoes(request: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
        let body = json!({"type": "error", "error": {"type": "not_found_error", "message": request.line}}).to_string();
        (404, "content-type: application/json\r\n", vec![(0, Box::leak(body.into_boxed_str()))])
    }
    let service = Service::start(echoes);
    let mut project = reaching(&service, "");
    project.env("EVALS_UPSTREAM_ANTHROPIC", &format!("{}?api-key=qqsecretqq12345", service.base_url()));
    let ran = project.evals(&["run", "--gateway", "observe"]).exits(3);
    assert!(service.requests()[0].line.contains("api-key=qqsecretqq12345"), "{:?}", service.requests());
    assert!(!ran.out.contains("qqsecret") && !ran.err.contains("qqsecret"), "{ran:?}");
    for file in ["llm.jsonl", "result.json", "trace.jsonl", "wire.jsonl"] {
        let text = project.of_trial(TRIAL, file);
        assert!(!text.contains("qqsecret"), "{file}: {text}");
    }
    assert!(project.of_trial(TRIAL, "llm.jsonl").contains("api-key=[redacted"));
}

#[test]
fn a_request_that_the_agent_breaks_off_is_closed_and_its_work_is_graded() {
    let service = Service::start(streams);
    let project = reaching(&service, "");
    let breaks_off = "
import socket, urllib.parse
to = urllib.parse.urlsplit(os.environ[\"AGENT_URL\"])
with socket.create_connection((to.hostname, to.port)) as gateway:
    gateway.sendall(b\"POST /v1/messages HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: 100\\r\\n\\r\\n{\")
    gateway.shutdown(socket.SHUT_WR)
    try:
        gateway.recv(1)
    except OSError:
        pass
";
    project.write("agent.py", &(project.read("agent.py") + breaks_off));
    project.evals(&["run", "--gateway", "observe"]).exits(0);
    assert_eq!(service.requests().len(), 1, "{:?}", service.requests());
    let log: Vec<Value> = crate::project::lines(&project.of_trial(TRIAL, "llm.jsonl"));
    assert_eq!(log.len(), 2, "{log:?}");
    assert_eq!((&log[1]["error"]["kind"], &log[1]["status"]), (&json!("closed"), &Value::Null), "{log:?}");
    // The service did not see the request, so its tokens are not unknown.
    let trace = project.trace(TRIAL);
    let notices = of_type(&trace, "notice");
    assert!(notices.iter().all(|notice| notice["code"] != "usage_incomplete"), "{notices:?}");
}

#[test]
fn a_service_that_is_not_there_is_told_and_the_agent_is_not_blamed() {
    let mut project = project("");
    project.env("ANTHROPIC_API_KEY", KEY);
    for (address, wanted) in [
        // Nothing listens there.
        ("http://127.0.0.1:9", "127.0.0.1:9 cannot be reached"),
        ("https://127.0.0.1:9", "127.0.0.1:9 cannot be reached"),
        // A password with an `@`.
        ("http://me:hunt@er2secret@127.0.0.1:9", "http://127.0.0.1:9 cannot be reached"),
    ] {
        project.env("EVALS_UPSTREAM_ANTHROPIC", address);
        project.env("AGENT_MODE", "goes-on");
        project.evals(&["run", "--gateway", "observe", "--label", "gone"]).exits(3).says(wanted);
        let folder = project.run_named("gone");
        let result: Value =
            serde_json::from_str(&project.read(&format!("{folder}/trials/{TRIAL}/result.json"))).unwrap();
        assert_eq!(result["error"]["category"], "provider", "{address}");
        let log = project.read(&format!("{folder}/trials/{TRIAL}/llm.jsonl"));
        assert!(!log.contains("er2secret") && !result.to_string().contains("er2secret"), "{log}");
        std::fs::remove_dir_all(project.path(".evals")).unwrap();
    }
    project.env("EVALS_UPSTREAM_ANTHROPIC", "127.0.0.1:9");
    project.evals(&["run", "--gateway", "observe"]).exits(2).says("EVALS_UPSTREAM_ANTHROPIC is `127.0.0.1:9`");
    assert!(project.runs().is_empty());
}

/// A service with a certificate of an unknown authority. It is ended when it is dropped.
struct Tls(std::process::Child, String);

impl Tls {
    fn start() -> Self {
        use std::io::BufRead;
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/trials/gateway/tls");
        let mut child = std::process::Command::new("python3")
            .args(["server.py", "server.pem", "server.key"])
            .current_dir(folder)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Self(child, format!("https://127.0.0.1:{}", line.trim()))
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_certificate_is_checked_and_ssl_cert_file_adds_one() {
    let service = Tls::start();
    let mut project = project("");
    project.env("ANTHROPIC_API_KEY", KEY);
    project.env("EVALS_UPSTREAM_ANTHROPIC", &service.1);
    let agent = project
        .read("agent.py")
        .replace("\"stream\": True", "\"stream\": False")
        .replace("    with answer:\n", "    return json.load(answer)\n    with answer:\n");
    project.write("agent.py", &agent);
    project.evals(&["run", "--gateway", "observe", "--label", "unknown"]).exits(3).says("certificate");
    let folder = project.run_named("unknown");
    let log = crate::project::lines(&project.read(&format!("{folder}/trials/{TRIAL}/llm.jsonl")));
    assert_eq!(log[0]["error"]["kind"], "unreachable");
    project.env("SSL_CERT_FILE", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/trials/gateway/tls/ca.pem"));
    project.evals(&["run", "--gateway", "observe", "--label", "known"]).exits(0);
}

#[test]
fn headers_for_a_corporate_gateway_are_added_and_not_kept() {
    let service = Service::start(streams);
    let mut project = reaching(&service, "");
    project.env("EVALS_UPSTREAM_HEADERS", "X-Team: evals\nX-Gateway-Auth: a-long-secret-value");
    project.evals(&["run", "--gateway", "observe"]).exits(0);
    assert!(service.requests()[0].headers.contains("x-gateway-auth: a-long-secret-value\n"));
    assert!(!project.of_trial(TRIAL, "llm.jsonl").contains("a-long-secret-value"));
    // Nor if the service repeats it.
    fn repeats(request: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
        let echo: &'static str =
            Box::leak(format!("{{\"error\":{{\"message\":{:?}}}}}", request.headers).into_boxed_str());
        (400, "content-type: application/json\r\n", vec![(0, echo)])
    }
    let echo = Service::start(repeats);
    project.env("EVALS_UPSTREAM_ANTHROPIC", &echo.base_url());
    project.env("EVALS_UPSTREAM_HEADERS", "X-Gateway-Auth: Bearer a-long-secret-value");
    project.evals(&["run", "--gateway", "observe", "--label", "echo"]).exits(3);
    let folder = project.run_named("echo");
    let log = project.read(&format!("{folder}/trials/{TRIAL}/llm.jsonl"));
    assert!(log.contains("[redacted:X-Gateway-Auth]") && !log.contains("a-long-secret-value"), "{log}");
    project.env("EVALS_UPSTREAM_HEADERS", "no header");
    project.evals(&["run", "--gateway", "observe"]).exits(2).says("EVALS_UPSTREAM_HEADERS has a line that is not");
}

#[test]
fn an_agent_that_cannot_be_pointed_anywhere_is_skipped() {
    let project = project("");
    project.demo("other", "");
    project
        .evals(&["run", "--harness", "other", "--gateway", "observe"])
        .exits(3)
        .says("the run uses the model gateway, and the manifest of harness `other` has no `gateway`");
}

/// The agent shows no list of its skills. What it offers its model shows that the control is none.
#[test]
fn a_control_whose_requests_hold_the_other_arm_s_skill_is_no_control() {
    let stand = Stand::with(ANSWERS, "");
    let description = "Writes a changelog entry for each change, in the form that the project uses";
    let skill = format!("---\nname: changelog\ndescription: {description}\n---\nWrite it.\n");
    stand.project.write("skills/changelog/SKILL.md", &skill);
    let manifest = stand.project.read("harnesses/small.yaml").replace("claude-code-stream", "output-only");
    let place = "skills: {user: .agent/skills, used-by: [{kind: read, path: \"**/{skill}/SKILL.md\"}]}\n";
    stand.project.write("harnesses/small.yaml", &format!("{manifest}{place}"));
    stand.project.write(
        "exp.yaml",
        "cases: [cases]\nharness: small\nvary: [skills]\nbaseline: without\nvariants: {without: {}, with: {skills: [skills/changelog]}}\n",
    );
    let run = |label: &str| {
        stand.project.evals(&["run", "--experiment", "exp.yaml", "--gateway", "observe", "--label", label])
    };
    let of = |label: &str, arm: &str| -> Value {
        let folder = stand.project.run_named(label);
        let path = format!("{folder}/trials/a/small/{arm}/1/result.json");
        serde_json::from_str(&stand.project.read(&path)).unwrap()
    };
    run("clean");
    assert!(of("clean", "without")["error"].is_null(), "{}", of("clean", "without"));
    // It reads a folder that no arm should see.
    let agent = stand.project.read("agent.py");
    let leaks = agent.replace("body[\"system\"] = \"", &format!("body[\"system\"] = \"{description}\\n"));
    assert_ne!(agent, leaks);
    stand.project.write("agent.py", &leaks);
    run("leaking").exits(3);
    let error = &of("leaking", "without")["error"];
    assert_eq!(error["category"], "setup", "{error}");
    assert_eq!(error["message"], "the agent offers its model skills of another arm: `changelog`");
    assert!(of("leaking", "with")["error"].is_null());
}

/// Only the requests of the agent show which instruction file it read.
#[test]
#[ignore = "slow: runs many trials behind a gateway"]
fn the_requests_of_an_arm_hold_its_instruction_file_and_no_other() {
    let stand = Stand::with(ANSWERS, "");
    let manifest = stand.project.read("harnesses/small.yaml");
    stand.project.write("harnesses/small.yaml", &format!("{manifest}instructions: {{user: .agent/AGENTS.md}}\n"));
    stand.project.write(
        "a.md",
        "# Rules\n\n- Answer every question in two short sentences.\n- Common rule that both files have.\n",
    );
    stand.project.write(
        "b.md",
        "# Rules\n\n- Common rule that both files have.\n- Think about each question for a long time.\n",
    );
    stand.project.write(
        "exp.yaml",
        "cases: [cases]\nharness: small\nvary: [instructions]\nbaseline: none\nvariants: {none: {}, a: {instructions: a.md}, b: {instructions: b.md}}\n",
    );
    let agent = stand.project.read("agent.py");
    let tells = |text: &str| {
        let system = format!("body[\"system\"] = {text} + \"");
        stand.project.write("agent.py", &agent.replace("body[\"system\"] = \"", &system));
    };
    let run = |label: &str| {
        stand.project.evals(&["run", "--experiment", "exp.yaml", "--gateway", "observe", "--label", label])
    };
    let error = |label: &str, arm: &str| -> String {
        let folder = stand.project.run_named(label);
        let path = format!("{folder}/trials/a/small/{arm}/1/result.json");
        let result: Value = serde_json::from_str(&stand.project.read(&path)).unwrap();
        result["error"]["message"].as_str().unwrap_or_default().to_owned()
    };
    tells(
        "(open(os.environ[\"HOME\"] + \"/.agent/AGENTS.md\").read() if os.path.exists(os.environ[\"HOME\"] + \"/.agent/AGENTS.md\") else \"\")",
    );
    let ran = run("reads");
    assert_eq!([error("reads", "none"), error("reads", "a"), error("reads", "b")], ["", "", ""], "{}", ran.out);
    assert!(!ran.out.contains("not verified"), "{}", ran.out);
    tells("\"\"");
    run("blind").exits(3);
    assert_eq!(error("blind", "none"), "");
    let absent = "no request of the agent to its model contains the instruction file that was laid for the trial";
    assert_eq!(error("blind", "a"), absent);
    tells("\"Answer every question in two short sentences. Common rule that both files have. \"");
    run("leaks").exits(3);
    let foreign = "a request of the agent to its model contains the instruction file of another arm";
    assert_eq!([error("leaks", "none"), error("leaks", "a"), error("leaks", "b")], [foreign, "", foreign]);
    // Its own instructions may have a line of a file.
    tells("\"Common rule that both files have. \"");
    run("common").exits(3);
    let lacks = |part: &str| {
        format!(
            "the agent's requests to its model lack a part of the instruction file that was laid for the trial: `{part}`"
        )
    };
    let [a, b] =
        ["Answer every question in two short sentences.", "Think about each question for a long time."].map(lacks);
    assert_eq!([error("common", "none"), error("common", "a"), error("common", "b")], [String::new(), a, b]);
}

/// Claude Code sends a file without its HTML comments and its front matter, Gemini CLI with the files that it imports.
#[test]
#[ignore = "slow: runs many trials behind a gateway"]
fn an_instruction_file_reaches_the_model_without_its_comments() {
    let stand = Stand::with(ANSWERS, "instructions: ../rules.md");
    let manifest = stand.project.read("harnesses/small.yaml");
    stand.project.write("harnesses/small.yaml", &format!("{manifest}instructions: {{user: .agent/AGENTS.md}}\n"));
    let agent = stand.project.read("agent.py");
    for (label, text, exit) in [
        ("comment", "<!-- Maintained by the platform team, see the wiki -->\n- Use tabs.\n", 0),
        ("front", "---\ndescription: A rule file of the platform team.\n---\nUse tabs.\n", 0),
        ("import", "Use tabs. @docs/style.md\n", 0),
        ("nothing", "<!-- Maintained by the platform team, see the wiki -->\n", 0),
        ("other", "<!-- Maintained by the platform team, see the wiki -->\n- Use blanks.\n", 3),
    ] {
        stand.project.write("rules.md", text);
        stand
            .project
            .write("agent.py", &agent.replace("body[\"system\"] = \"", "body[\"system\"] = \"Use tabs. \" + \""));
        stand.run("observe", &["--label", label]).exits(exit);
    }
}

/// Outside an experiment, too.
#[test]
#[ignore = "slow: runs many trials behind a gateway"]
fn an_instruction_file_that_reaches_no_request_is_noticed_whatever_its_lines_look_like() {
    let stand = Stand::with(ANSWERS, "instructions: ../rules.md");
    let manifest = stand.project.read("harnesses/small.yaml");
    stand.project.write("harnesses/small.yaml", &format!("{manifest}instructions: {{user: .agent/AGENTS.md}}\n"));
    let agent = stand.project.read("agent.py");
    let reads = "body[\"system\"] = open(os.environ[\"HOME\"] + \"/.agent/AGENTS.md\").read() + \"";
    let files = [
        ("colon", "Note: always answer in Latin, when the moon is full.\n"),
        ("colons", "Language: always answer in Latin.\nStyle: use no tabs, please, in the files.\n"),
        ("short", "Always answer in Latin.\n"),
    ];
    for (label, text) in files {
        stand.project.write("rules.md", text);
        stand.project.write("agent.py", &agent);
        stand.run("observe", &["--label", label]).exits(3);
        let error = &stand.result(label)["error"];
        let absent = "no request of the agent to its model contains the instruction file that was laid for the trial";
        assert_eq!((&error["category"], &error["message"]), (&json!("setup"), &json!(absent)));
        stand.project.write("agent.py", &agent.replace("body[\"system\"] = \"", reads));
        stand.run("observe", &["--label", &format!("{label}-read")]).exits(0);
    }
}

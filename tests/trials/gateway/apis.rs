//! One script over the four APIs, whole and streamed, and the other requests: counts, lists, probes, after the last
//! turn.

use serde_json::{Value, json};

use super::client::{APIS, Gateway, Offer, USUAL, request};
use crate::project::Project;

const SCRIPT: &str = "\
turns:
  - thinking: A file first.
    text: I write it, and look.
    calls:
      - write: {path: a.txt, text: \"one\\ntwo\\n\"}
      - execute: {command: cat a.txt}
    usage: {input: 100, output: 20, cache-read: 10, cache-write: 5, thought: 8}
  - text: It is done.
    usage: {input: 120, output: 4}
";

/// Replaces values that differ from day to day.
fn steady(text: &str) -> String {
    let created = regex::Regex::new(r#""(created|created_at)":( ?)\d+"#).unwrap();
    created.replace_all(text, r#""$1":${2}0"#).replace("\r\n", "\n")
}

fn calls(api: &str) -> [(&'static str, &'static str); 2] {
    match api {
        "anthropic" => [("toolu_scripted_0_0", "write_file"), ("toolu_scripted_0_1", "bash")],
        _ => [("call_scripted_0_0", "write_file"), ("call_scripted_0_1", "bash")],
    }
}

#[test]
fn a_script_in_pieces() {
    for api in APIS {
        let gateway = Gateway::play(SCRIPT);
        let (path, body) = request(api, true, &USUAL, &[]);
        let first = gateway.post(&path, &body);
        assert!(first.headers.contains("content-type: text/event-stream"), "{first:?}");
        let (path, body) = request(api, true, &USUAL, &[&calls(api)]);
        let second = gateway.post(&path, &body);
        assert!(!first.cut && !second.cut);
        let text = format!("{}----\n{}", first.body, second.body);
        insta::assert_snapshot!(format!("{api}__stream"), steady(&text));
    }
}

#[test]
fn a_script_in_whole_answers() {
    for api in APIS {
        let gateway = Gateway::play(SCRIPT);
        let answers = [&[][..], &[&calls(api)[..]]].map(|turns| {
            let (path, body) = request(api, false, &USUAL, turns);
            let answer = gateway.post(&path, &body);
            assert_eq!(answer.status, 200);
            answer.json()
        });
        let text = steady(&serde_json::to_string_pretty(&answers).unwrap());
        insta::assert_snapshot!(format!("{api}__whole"), text);
    }
}

#[test]
fn gemini_without_events_is_a_list_that_grows() {
    let gateway = Gateway::play(SCRIPT);
    let (_, body) = request("gemini", true, &USUAL, &[]);
    let answer = gateway.post("/v1beta/models/m:streamGenerateContent", &body);
    assert!(answer.headers.contains("content-type: application/json"));
    let chunks = answer.json();
    assert!(chunks.as_array().unwrap().len() > 2, "{chunks}");
    assert_eq!(chunks[0]["candidates"][0]["content"]["parts"][0]["thought"], true);
}

#[test]
fn the_turn_follows_from_the_conversation_and_not_from_what_was_asked_before() {
    for api in APIS {
        let gateway = Gateway::play(SCRIPT);
        let turn = |turns: &[&[(&str, &str)]]| {
            let (path, body) = request(api, false, &USUAL, turns);
            gateway.post(&path, &body);
            let log = gateway.log();
            let last = log.last().unwrap();
            (last["played"].as_str().unwrap().to_owned(), last["turn"].as_u64())
        };
        let second = calls(api);
        assert_eq!(turn(&[&second]), ("turn".to_owned(), Some(1)), "{api}");
        assert_eq!(turn(&[]), ("turn".to_owned(), Some(0)));
        assert_eq!(turn(&[]), ("turn".to_owned(), Some(0)));
        assert_eq!(turn(&[&second, &[("x", "bash")]]), ("after-the-last".to_owned(), None));
    }
}

#[test]
fn after_the_last_turn_its_text_is_said_again() {
    let gateway = Gateway::play(SCRIPT);
    let (path, body) = request("openai-chat", false, &USUAL, &[&calls("openai-chat"), &[("x", "bash")]]);
    assert_eq!(gateway.post(&path, &body).json()["choices"][0]["message"]["content"], "It is done.");
    let gateway = Gateway::play("turns: [{calls: [{execute: {command: ls}}]}]");
    let (path, body) = request("openai-chat", false, &USUAL, &[&[("x", "bash")]]);
    assert_eq!(gateway.post(&path, &body).json()["choices"][0]["message"]["content"], "Done.");
}

#[test]
fn requests_beside_the_conversation_take_no_turn() {
    for api in APIS {
        let gateway = Gateway::play(SCRIPT);
        let (path, body) = request(api, false, &[], &[]);
        let answer = gateway.post(&path, &body);
        assert!(answer.body.contains("Done."), "{answer:?}");
        assert_eq!(gateway.log()[0]["played"], "aside", "{api}");
    }
    let gateway = Gateway::play(SCRIPT);
    let schema = json!({"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}});
    let (path, mut body) = request("anthropic", false, &[], &[]);
    body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
    let answer = gateway.post(&path, &body).json();
    assert_eq!(answer["content"][0]["text"], r#"{"title":"scripted"}"#);

    let judge = [Offer("respond", &[("block", "boolean")])];
    let (path, mut body) = request("openai-chat", false, &judge, &[]);
    body["tool_choice"] = json!("required");
    let answer = gateway.post(&path, &body).json();
    let call = &answer["choices"][0]["message"]["tool_calls"][0]["function"];
    assert_eq!((&call["name"], &call["arguments"]), (&json!("respond"), &json!(r#"{"block":false}"#)));

    let (path, mut body) = request("openai-responses", false, &USUAL, &[]);
    body["client_metadata"] = json!({"x-openai-subagent": "guardian"});
    gateway.post(&path, &body);
    let (path, mut body) = request("anthropic", false, &USUAL, &[&calls("anthropic")]);
    let suggestion = json!({"role": "user", "content": "[SUGGESTION MODE: Suggest what the user might type.]"});
    body["messages"].as_array_mut().unwrap().push(suggestion);
    gateway.post(&path, &body);
    assert!(gateway.log().iter().all(|line| line["played"] == "aside"), "{:?}", gateway.log());
}

#[test]
fn a_script_says_what_else_is_beside_and_what_is_not() {
    let gateway = Gateway::play("without-tools: play\naside: ['^You name things']\nturns: [{text: Hello.}]");
    let (path, mut body) = request("openai-chat", false, &[], &[]);
    let said = |body: &Value| gateway.post(&path, body).json()["choices"][0]["message"]["content"].clone();
    assert_eq!(said(&body), "Hello.");
    body["messages"].as_array_mut().unwrap().insert(0, json!({"role": "system", "content": "You name things."}));
    assert_eq!(said(&body), "Done.");
}

#[test]
fn sub_agents_have_turns_of_their_own() {
    let script = "\
turns:
  - calls: [{tool: task, input: {prompt: count the files}}]
  - text: Counted.
sub-agents:
  - when: count the files
    turns:
      - calls: [{execute: {command: ls}}]
      - text: There are two.
";
    let gateway = Gateway::play(script);
    let offers = [Offer("task", &[("prompt", "string")]), Offer("bash", &[("command", "string")])];
    let ask = |prompt: &str, turns: &[&[(&str, &str)]]| {
        let (path, mut body) = request("anthropic", false, &offers, turns);
        body["messages"][0]["content"] = json!([{"type": "text", "text": prompt}]);
        gateway.post(&path, &body).json()["content"][0].clone()
    };
    assert_eq!(ask("Do it.", &[])["name"], "task");
    let first = ask("Please count the files.", &[]);
    assert_eq!((&first["name"], &first["id"]), (&json!("bash"), &json!("toolu_scripted_sub0_0_0")));
    let second = ask("Please count the files.", &[&[("toolu_scripted_sub0_0_0", "bash")]]);
    assert_eq!(second["text"], "There are two.");
    assert_eq!(ask("Do it.", &[&[("toolu_scripted_0_0", "task")]])["text"], "Counted.");
    assert_eq!(gateway.log()[1]["sub_agent"], 0);
}

#[test]
fn counts_lists_and_probes() {
    let gateway = Gateway::play("model: one\nmodels: [one, two]\nturns: [{text: a}]");
    let (_, body) = request("anthropic", false, &USUAL, &[]);
    let counted = gateway.post("/v1/messages/count_tokens", &body).json()["input_tokens"].as_u64().unwrap();
    assert!(counted > 20);
    let (_, body) = request("gemini", false, &USUAL, &[]);
    assert!(gateway.post("/v1beta/models/m:countTokens", &body).json()["totalTokens"].as_u64().unwrap() > 20);

    let listed = gateway.get("/v1/models").json();
    assert_eq!((&listed["object"], &listed["data"][1]["id"]), (&json!("list"), &json!("two")));
    let listed = gateway.send("GET", "/v1/models", "anthropic-version: 2023-06-01\r\n", "").json();
    assert_eq!((&listed["has_more"], &listed["data"][0]["type"]), (&json!(false), &json!("model")));
    assert_eq!(gateway.get("/v1beta/models").json()["models"][0]["name"], "models/one");
    assert_eq!(gateway.get("/v1/models/vendor/two").json()["id"], "vendor/two");
    assert_eq!(gateway.get("/v1beta/models/two").json()["name"], "models/two");

    assert_eq!(gateway.send("HEAD", "/", "", "").status, 200);
    assert_eq!(gateway.get("/").status, 200);
    let unknown = gateway.post("/v1/embeddings", &json!({}));
    assert_eq!(unknown.status, 404);
    assert!(unknown.body.contains("does not serve POST /v1/embeddings"), "{unknown:?}");
    let played: Vec<Value> = gateway.log().iter().map(|line| line["played"].clone()).collect();
    let wanted = ["count-tokens", "count-tokens", "models", "models", "models", "models", "models", "probe", "probe"];
    assert_eq!(played[..9], wanted.map(Value::from));
    assert_eq!(played[9], "unknown");
}

#[test]
fn what_is_no_request_is_told_so() {
    for api in APIS {
        let gateway = Gateway::play("turns: [{text: a}]");
        let (path, _) = request(api, false, &USUAL, &[]);
        let answer = gateway.send("POST", &path, "", "{not json");
        assert_eq!(answer.status, 400);
        assert!(answer.body.contains("the request does not have the JSON form of this API"), "{answer:?}");
        for odd in ["null", "[]", "3", r#"{"messages": 3, "input": {}, "contents": [3], "tools": [null, 3]}"#] {
            assert_eq!(gateway.send("POST", &path, "", odd).status, 200, "{api} {odd}");
        }
    }
}

#[test]
fn the_model_that_it_claims_to_be() {
    for (script, wanted) in [
        ("turns: [{text: a}]", "m"),
        ("model: other\nturns: [{text: a}]", "other"),
        ("model: other\nturns: [{text: a, model: third}]", "third"),
    ] {
        let gateway = Gateway::play(script);
        for api in APIS {
            let (path, body) = request(api, false, &USUAL, &[]);
            let answer = gateway.post(&path, &body).json();
            let claimed = answer.get("model").or_else(|| answer.get("modelVersion")).unwrap();
            assert_eq!(claimed, wanted, "{api}");
        }
    }
}

#[test]
fn a_delay_holds_the_answer_back_and_not_the_end() {
    let mut gateway = Gateway::play("turns: [{text: a, delay: 300ms}, {text: b, delay: 1h}]");
    let begun = std::time::Instant::now();
    let (path, body) = request("openai-chat", true, &USUAL, &[]);
    gateway.post(&path, &body);
    assert!(begun.elapsed().as_millis() >= 300);
    let address = gateway.get("/").headers;
    assert!(address.starts_with("http/1.1 200"));
    assert_eq!(gateway.end(), Some(0));
}

#[test]
fn a_script_that_is_wrong_is_told_with_its_place() {
    let project = Project::with(&[("x.model.yaml", "turns:\n  - calls: [{wirte: {path: a, text: b}}]\n")]);
    let ran = project.evals(&["gateway", "script", "x.model.yaml"]).exits(2);
    let ran = ran.says("x.model.yaml").says("unknown key `wirte`").says("did you mean `write`?");
    assert!(ran.out.is_empty());
    project.evals(&["gateway", "script", "none.yaml"]).exits(2).says("could not be read");
}

#[test]
fn a_port_that_is_taken_is_told() {
    let gateway = Gateway::play("turns: [{text: a}]");
    let taken = gateway.get("/").headers;
    assert!(taken.contains("200"));
    let port = gateway.port();
    gateway.project.evals(&["gateway", "script", "x.model.yaml", "--port", &port]).exits(2).says("could not listen");
}

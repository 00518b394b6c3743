//! Questions to the user, made with the tools of real agents.

use serde_json::{Value, json};

use super::client::Gateway;

const SCRIPT: &str = "turns: [{calls: [{ask: {question: 'Which database?', options: [SQLite, Postgres]}}]}]";
const OPEN: &str = "turns: [{calls: [{ask: {question: 'What is its name?'}}]}]";

/// Returns the call of the first turn, for an agent that offers a tool with this schema, and the line of the log.
fn asked(script: &str, name: &str, parameters: &Value) -> (Value, Value) {
    let gateway = Gateway::play(script);
    let tool = json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    let body = json!({"model": "m", "tools": [tool], "messages": [{"role": "user", "content": "Do it."}]});
    gateway.post("/v1/chat/completions", &body);
    let line = gateway.log().pop().unwrap();
    (line["calls"][0].clone(), line)
}

fn text() -> Value {
    json!({"type": "string"})
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

#[test]
fn questions_come_in_several_shapes() {
    let question = "Which database?";
    let label = |label: &str| json!({"label": label, "description": label});
    let options = [label("SQLite"), label("Postgres")];
    let labelled = object(json!({"label": text(), "description": text()}), &["label", "description"]);
    let list = |items: Value| json!({"type": "array", "items": items});
    let many = json!({"type": "boolean", "default": false});
    let properties =
        json!({"question": text(), "header": text(), "options": list(labelled.clone()), "multiSelect": many});
    let claude = object(properties, &["question", "header", "options", "multiSelect"]);
    let properties = json!({"id": text(), "question": text(), "header": text(), "options": list(labelled.clone())});
    let codex = object(properties, &["id", "header", "question", "options"]);
    let kinds = json!({"type": "string", "enum": ["choice", "text", "yesno"], "default": "choice"});
    let properties = json!({"question": text(), "header": text(), "type": kinds, "options": list(labelled)});
    let gemini = object(properties, &["question", "header", "type"]);
    let choice = object(json!({"label": text(), "description": {"type": "string", "default": ""}}), &["label"]);
    let properties = json!({"question": text(), "options": list(json!({"$ref": "#/$defs/Choice"}))});
    let vibe = object(properties, &["question", "options"]);
    let asks = |one: Value| object(json!({"questions": list(one), "metadata": object(json!({}), &[])}), &["questions"]);
    let mut referring = asks(json!({"$ref": "#/$defs/Question"}));
    referring["$defs"] = json!({"Question": vibe, "Choice": choice});
    let nullable = json!({"anyOf": [{"type": "null"}, list(text())]});
    for (name, schema, wanted) in [
        (
            "AskUserQuestion",
            asks(claude),
            json!({"questions": [
                {"question": question, "header": "which", "options": options, "multiSelect": false}]}),
        ),
        (
            "request_user_input",
            asks(codex),
            json!({"questions": [{"id": "which", "question": question, "header": "which", "options": options}]}),
        ),
        (
            "ask_user",
            asks(gemini),
            json!({"questions": [{"question": question, "header": "which", "type": "choice", "options": options}]}),
        ),
        (
            "ask_user_question",
            referring,
            json!({"questions": [{"question": question, "options": [{"label": "SQLite"}, {"label": "Postgres"}]}]}),
        ),
        (
            "ask_user",
            object(json!({"question": text(), "choices": nullable}), &["question"]),
            json!({"question": question, "choices": ["SQLite", "Postgres"]}),
        ),
        ("ask_followup_question", object(json!({"question": text()}), &["question"]), json!({"question": question})),
    ] {
        let (call, line) = asked(SCRIPT, name, &schema);
        assert_eq!((&call["tool"], &call["kind"]), (&json!(name), &json!("ask")), "{line}");
        assert_eq!(call["input"], wanted, "{name}");
    }
}

#[test]
fn an_open_question_needs_a_tool_without_options() {
    let strings = json!({"type": "array", "items": text()});
    let free = object(json!({"question": text(), "choices": strings}), &["question"]);
    let (call, _) = asked(OPEN, "ask_user", &free);
    assert_eq!(call["input"], json!({"question": "What is its name?"}));
    let kinds = json!({"type": "string", "enum": ["choice", "text", "yesno"]});
    let one = object(json!({"question": text(), "type": kinds}), &["question", "type"]);
    let several = object(json!({"questions": {"type": "array", "items": one}}), &["questions"]);
    let (call, _) = asked(OPEN, "ask_user", &several);
    assert_eq!(call["input"], json!({"questions": [{"question": "What is its name?", "type": "text"}]}));
    let closed = object(json!({"question": text(), "options": strings}), &["question", "options"]);
    let (_, line) = asked(OPEN, "question", &closed);
    let problem = line["problem"].as_str().unwrap();
    assert!(problem.contains("`question` requires options to choose from"), "{problem}");
}

#[test]
fn an_agent_that_cannot_ask_is_told_so() {
    let (_, line) = asked(SCRIPT, "question", &object(json!({"topic": text()}), &[]));
    let problem = line["problem"].as_str().unwrap();
    assert!(problem.contains("the agent offers no tool that can ask; it offers question"), "{problem}");
}

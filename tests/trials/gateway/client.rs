//! A running gateway, and a small HTTP client that returns the complete response.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::project::{Project, exchanges};

/// A running `evals gateway script`, ended with SIGTERM when it is dropped.
pub struct Gateway {
    pub project: Project,
    child: Child,
    address: String,
}

/// The response to a request.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: String,
    pub body: String,
    /// Whether the connection ended before the body did.
    pub cut: bool,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Gateway {
    pub fn play(script: &str) -> Self {
        Self::play_with(script, &[])
    }

    pub fn play_with(script: &str, more: &[&str]) -> Self {
        let project = Project::with(&[("x.model.yaml", script)]);
        let mut args = vec!["gateway", "script", "x.model.yaml", "--log", "log.jsonl", "--format", "json"];
        args.extend(more);
        let mut child = project.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let address = told["base_url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
        assert_eq!(address, format!("127.0.0.1:{}", told["port"]));
        Self { project, child, address }
    }

    pub fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        self.send_to(&format!("host: {}\r\n{headers}", self.address), method, path, body)
    }

    /// Sends a request with all headers except those of the body.
    pub fn send_to(&self, headers: &str, method: &str, path: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let request =
            format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        // A cut body may end in an error instead of an end of file.
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer but {text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let (body, cut) = if chunked { joined(body) } else { (body.to_owned(), false) };
        Answer { status, headers: head.to_ascii_lowercase(), body, cut }
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, "content-type: application/json\r\n", &body.to_string())
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", "")
    }

    /// Returns the exchanges so far, as [`exchanges`] does.
    pub fn log(&self) -> Vec<Value> {
        exchanges(&self.project.read("log.jsonl"))
    }

    /// Returns the gateway's address.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the gateway's port.
    pub fn port(&self) -> String {
        self.address.rsplit_once(':').unwrap().1.to_owned()
    }

    /// Ends the gateway as a user does, and returns its exit code.
    pub fn end(&mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Joins the chunks of a body. Returns the body, and whether the last chunk is missing.
fn joined(body: &str) -> (String, bool) {
    let (mut whole, mut rest) = (String::new(), body);
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return (whole, false);
        }
        whole.push_str(&after[..size]);
        rest = &after[size + 2..];
    }
    (whole, true)
}

/// The names of the APIs.
pub const APIS: [&str; 4] = ["anthropic", "openai-responses", "openai-chat", "gemini"];

/// A tool as an API offers it: its name, and the types of its properties, all of which are required.
pub struct Offer(pub &'static str, pub &'static [(&'static str, &'static str)]);

/// A shell, and a tool that writes files.
pub const USUAL: [Offer; 2] =
    [Offer("write_file", &[("path", "string"), ("content", "string")]), Offer("bash", &[("command", "string")])];

fn schema(offer: &Offer) -> Value {
    let properties = offer.1.iter().map(|(name, kind)| ((*name).to_owned(), json!({"type": kind})));
    let required: Vec<&str> = offer.1.iter().map(|(name, _)| *name).collect();
    json!({"type": "object", "properties": serde_json::Map::from_iter(properties), "required": required})
}

/// Makes a request with a conversation: a prompt, then for each turn of the model its calls, by id and name, and their
/// results.
pub fn request(api: &str, stream: bool, offers: &[Offer], turns: &[&[(&str, &str)]]) -> (String, Value) {
    let tool = |offer: &Offer| match api {
        "anthropic" => json!({"name": offer.0, "input_schema": schema(offer)}),
        "openai-responses" => json!({"type": "function", "name": offer.0, "parameters": schema(offer)}),
        "openai-chat" => json!({"type": "function", "function": {"name": offer.0, "parameters": schema(offer)}}),
        _ => json!({"name": offer.0, "parametersJsonSchema": schema(offer)}),
    };
    let tools: Vec<Value> = offers.iter().map(tool).collect();
    let mut said = vec![match api {
        "gemini" => json!({"role": "user", "parts": [{"text": "Do it."}]}),
        _ => json!({"role": "user", "content": "Do it."}),
    }];
    for calls in turns {
        let of = |make: &dyn Fn(&str, &str) -> Value| calls.iter().map(|(id, name)| make(id, name)).collect::<Vec<_>>();
        match api {
            "anthropic" => {
                let made = of(&|id, name| json!({"type": "tool_use", "id": id, "name": name, "input": {}}));
                said.push(json!({"role": "assistant", "content": made}));
                let results = of(&|id, _| json!({"type": "tool_result", "tool_use_id": id, "content": "ok"}));
                said.push(json!({"role": "user", "content": results}));
            }
            "openai-responses" => {
                said.push(json!({"type": "message", "role": "assistant", "content": []}));
                said.extend(of(
                    &|id, name| json!({"type": "function_call", "call_id": id, "name": name, "arguments": "{}"}),
                ));
                said.extend(of(&|id, _| json!({"type": "function_call_output", "call_id": id, "output": "ok"})));
            }
            "openai-chat" => {
                let made = of(
                    &|id, name| json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}),
                );
                said.push(json!({"role": "assistant", "content": null, "tool_calls": made}));
                said.extend(of(&|id, _| json!({"role": "tool", "tool_call_id": id, "content": "ok"})));
            }
            _ => {
                let made = of(&|_, name| json!({"functionCall": {"name": name, "args": {}}}));
                said.push(json!({"role": "model", "parts": made}));
                let results = of(&|_, name| json!({"functionResponse": {"name": name, "response": {}}}));
                said.push(json!({"role": "user", "parts": results}));
            }
        }
    }
    match api {
        "anthropic" => (
            "/v1/messages?beta=true".to_owned(),
            json!({"model": "m", "max_tokens": 100, "stream": stream, "tools": tools, "messages": said}),
        ),
        "openai-responses" => {
            ("/v1/responses".to_owned(), json!({"model": "m", "stream": stream, "tools": tools, "input": said}))
        }
        "openai-chat" => {
            let body = json!({"model": "m", "stream": stream, "tools": tools, "messages": said,
                "stream_options": {"include_usage": true}});
            ("/v1/chat/completions".to_owned(), body)
        }
        _ => {
            let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
            let tools = if tools.is_empty() { json!([]) } else { json!([{"functionDeclarations": tools}]) };
            (format!("/v1beta/models/m:{method}"), json!({"tools": tools, "contents": said}))
        }
    }
}

/// Replaces the results in a conversation, in their order: the text, and whether the call failed, as far as the API states
/// it.
pub fn set_results(api: &str, body: &mut Value, results: &[(&str, bool)]) {
    let mut results = results.iter();
    let mut next = || results.next().unwrap_or_else(|| panic!("the conversation has more results"));
    let list = match api {
        "openai-responses" => "input",
        "gemini" => "contents",
        _ => "messages",
    };
    for said in body[list].as_array_mut().unwrap() {
        match api {
            "anthropic" => {
                for block in said["content"].as_array_mut().into_iter().flatten() {
                    if block["type"] == "tool_result" {
                        let (text, failed) = next();
                        block["content"] = json!([{"type": "text", "text": text}]);
                        block["is_error"] = json!(failed);
                    }
                }
            }
            "openai-responses" if said["type"] == "function_call_output" => said["output"] = json!(next().0),
            "openai-chat" if said["role"] == "tool" => said["content"] = json!(next().0),
            "gemini" => {
                for part in said["parts"].as_array_mut().unwrap() {
                    if part["functionResponse"].is_object() {
                        let (text, failed) = next();
                        let key = if *failed { "error" } else { "output" };
                        part["functionResponse"]["response"] = json!({key: text});
                    }
                }
            }
            _ => {}
        }
    }
    assert!(results.next().is_none(), "the conversation has fewer results");
}

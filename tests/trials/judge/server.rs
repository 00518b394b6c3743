//! A model service on loopback with two APIs, which answers by a rule and fails on request.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use evals::internal::gateway::script::{Stop, Usage};
use evals::internal::gateway::{Api, Reply};
use serde_json::{Value, json};

/// A received request.
#[derive(Debug, Clone)]
pub struct Got {
    pub path: String,
    pub key: Option<String>,
    pub body: Value,
    /// The user's message.
    pub user: String,
    /// The complete request as text.
    pub text: String,
    /// A flag for the rules of a test.
    pub is_first: bool,
}

/// The response to a request.
#[derive(Debug, Clone)]
pub enum Does {
    /// The model gives this answer.
    Says(String),
    /// A model of this name gives the answer.
    SaysAs(&'static str, String),
    /// The model declines.
    Declines,
    /// The answer reaches the maximum number of tokens.
    IsCutShort,
    /// The request is refused with a status, and may be retried after a time.
    Refuses(u16, Option<&'static str>),
    /// The connection breaks in the middle of the answer.
    Cuts,
    /// No response for this time.
    Waits(Duration),
    /// The model gives this answer after a time.
    SaysLate(Duration, String),
    /// This text is sent instead of an answer of the API.
    Sends(&'static str),
}

/// The rule of a service: takes the request and the number of earlier requests.
pub type Rule = Box<dyn Fn(&Got, usize) -> Does + Send + Sync>;

struct Shared {
    rule: Rule,
    got: Mutex<Vec<Got>>,
}

/// A service that runs until it is dropped.
pub struct Service {
    pub url: String,
    shared: Arc<Shared>,
    _runtime: tokio::runtime::Runtime,
}

impl Service {
    pub fn start(rule: impl Fn(&Got, usize) -> Does + Send + Sync + 'static) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let shared = Arc::new(Shared { rule: Box::new(rule), got: Mutex::default() });
        let router = Router::new().fallback(answer).with_state(shared.clone());
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { url, shared, _runtime: runtime }
    }

    /// Returns the requests so far.
    pub fn got(&self) -> Vec<Got> {
        self.shared.got.lock().unwrap().clone()
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let bytes = to_bytes(body, 64 << 20).await.unwrap();
    let got = got(head.uri.path(), &head.headers, &bytes);
    let anthropic = got.path.ends_with("/messages");
    let before = {
        let mut all = shared.got.lock().unwrap();
        all.push(got.clone());
        all.len() - 1
    };
    let whole = |reply: &Reply| if anthropic { Api::Anthropic } else { Api::OpenaiChat }.whole(reply);
    let usage = Some(Usage { input: 1000, output: 50, ..Usage::default() });
    let model = got.body["model"].as_str().unwrap_or_default().to_owned();
    let says =
        |text: String, stop: Stop| Reply { text: Some(text), stop, usage, model: model.clone(), ..Reply::default() };
    match (shared.rule)(&got, before) {
        Does::Says(text) => sent(200, &[], whole(&says(text, Stop::EndTurn)).to_string()),
        Does::SaysAs(model, text) => {
            let reply = Reply { model: model.to_owned(), ..says(text, Stop::EndTurn) };
            sent(200, &[], whole(&reply).to_string())
        }
        Does::Declines => sent(200, &[], whole(&says(String::new(), Stop::Refusal)).to_string()),
        Does::IsCutShort => sent(200, &[], whole(&says("{".to_owned(), Stop::MaxTokens)).to_string()),
        Does::Refuses(status, retry_after) => {
            let echoed = got.key.clone().unwrap_or_default();
            let error = json!({"error": {"message": format!("no, not with {echoed}"), "type": "some_error"}});
            let headers: Vec<_> = retry_after.into_iter().map(|after| ("retry-after", after.to_owned())).collect();
            sent(status, &headers, error.to_string())
        }
        Does::Cuts => sent(200, &[("content-length", "5000".to_owned())], "{\"content\": [".to_owned()),
        Does::Waits(time) => {
            tokio::time::sleep(time).await;
            sent(200, &[], String::new())
        }
        Does::SaysLate(time, text) => {
            tokio::time::sleep(time).await;
            sent(200, &[], whole(&says(text, Stop::EndTurn)).to_string())
        }
        Does::Sends(text) => sent(200, &[], text.to_owned()),
    }
}

fn got(path: &str, headers: &HeaderMap, bytes: &Bytes) -> Got {
    let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let key = header("x-api-key").or_else(|| header("authorization"));
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let body: Value = serde_json::from_str(&text).unwrap();
    let said = |role: &str| {
        let messages = body["messages"].as_array().into_iter().flatten();
        messages.filter(|it| it["role"] == role).map(|it| it["content"].as_str().unwrap()).collect::<String>()
    };
    Got { path: path.to_owned(), key, user: said("user"), text, body, is_first: false }
}

fn sent(status: u16, headers: &[(&str, String)], body: String) -> Response {
    let mut response = Response::builder().status(StatusCode::from_u16(status).unwrap());
    for (name, value) in headers {
        response = response.header(*name, value);
    }
    if headers.iter().any(|(name, _)| *name == "content-length") {
        // A body that ends before its stated length breaks the connection.
        return response
            .body(Body::from_stream(Broken(Some(body), Box::pin(tokio::time::sleep(Duration::from_millis(50))))))
            .unwrap();
    }
    response.body(Body::from(body)).unwrap()
}

/// A body that breaks after a pause, so that the first part arrives.
struct Broken(Option<String>, Pin<Box<tokio::time::Sleep>>);

impl futures_core::Stream for Broken {
    type Item = Result<Bytes, std::io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.0.take() {
            Some(text) => Poll::Ready(Some(Ok(Bytes::from(text)))),
            None => self.1.as_mut().poll(context).map(|()| Some(Err(std::io::Error::other("cut")))),
        }
    }
}

impl Got {
    /// Returns the criteria in the request.
    pub fn criteria(&self) -> Vec<Value> {
        let lines = self.user.lines().take_while(|line| !line.starts_with("The mark is"));
        lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .filter(|it: &Value| it["criterion"].is_string())
            .collect()
    }

    /// Returns the text between the marks with a name.
    pub fn between(&self, what: &str) -> String {
        let mark = self.user.split_once("The mark is ").unwrap().1.split_once('.').unwrap().0;
        let (begins, ends) = (format!("<<<{mark} {what} begins\n"), format!("<<<{mark} {what} ends\n"));
        let (_, rest) = self.user.split_once(&begins).unwrap_or_else(|| panic!("{what}: {}", self.user));
        rest.rsplit_once(&ends).unwrap().0.to_owned()
    }

    /// Returns the events of the shown trace.
    pub fn events(&self) -> Vec<Value> {
        let lines = self.between("the trace");
        let values = lines.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap());
        values.filter(|value: &Value| value["seq"].is_u64()).collect()
    }

    /// Returns true if the session is a canary: its prompt is none of a test's.
    pub fn is_canary(&self) -> bool {
        let of_a_test = |text: &str| text.contains("Do it.") || text.contains("Mend the library.");
        let events = self.events();
        let mut prompts =
            events.iter().filter(|event| event["role"] == "user").filter_map(|event| event["text"].as_str());
        !prompts.any(of_a_test)
    }

    /// Returns the first call of the shown trace: its event and its command.
    pub fn first_call(&self) -> (u64, String) {
        let call = self.events().into_iter().find(|event| event["type"] == "tool_call").unwrap();
        (call["seq"].as_u64().unwrap(), call["input"]["command"].as_str().unwrap().to_owned())
    }
}

/// Makes a finding about one criterion.
pub fn finding(criterion: &str, verdict: &str, events: &[u64], quote: &str) -> Value {
    json!({"criterion": criterion, "reason": format!("it is a {verdict}"), "events": events, "quote": quote, "verdict": verdict})
}

/// Makes an answer of these findings.
pub fn answer_of(findings: &[Value]) -> Does {
    Does::Says(json!({ "criteria": findings }).to_string())
}

/// Returns an honest judge's answer to a canary, and `None` for other sessions.
pub fn honest(got: &Got) -> Option<Does> {
    got.is_canary().then(|| {
        let fails = |it: &Value| {
            let value = if it.get("scale").is_some() { json!(1) } else { json!(null) };
            let mut finding = finding(it["criterion"].as_str().unwrap(), "fail", &[], "");
            if got.criteria().iter().any(|it| it.get("scale").is_some() || it.get("number").is_some()) {
                finding["value"] = value;
            }
            finding
        };
        answer_of(&got.criteria().iter().map(fails).collect::<Vec<_>>())
    })
}

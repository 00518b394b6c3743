//! The server: HTTP on loopback with a scripted model.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinHandle;

use super::connections::{HEAD, serve};
use super::log::LogLine;
use super::play::{Answer, Before, Played, Scene, What, play};
use super::script::Script;
use super::stream::body;
use super::{Api, Asked, Refusal, Reply, anthropic, gemini, openai_chat, openai_responses};

/// The maximum size of a request.
const MAX_REQUEST: usize = 256 << 20;

/// The maximum number of log lines, so that endless requests do not exhaust the memory.
const MAX_LOG: usize = 20_000;

/// The maximum number of remembered places in conversations.
const MAX_PLACES: usize = 100_000;

/// The options of a server.
#[derive(Default)]
pub struct Options {
    /// The port; 0 for a free one.
    pub port: u16,
    /// An additional socket in the file system.
    pub socket: Option<PathBuf>,
    /// The agent's working directory, for tools that need absolute paths. Default: as stated in the requests.
    pub workspace: Option<String>,
    /// The prompts of the case: a conversation without any of them does not belong to the case.
    pub prompts: Vec<String>,
    /// A function called with each request.
    pub tell: Option<Tell>,
}

/// A function that is called with each request before it is answered.
pub type Tell = Box<dyn Fn(&LogLine) + Send + Sync>;

/// A running server. Dropping it stops the server.
pub struct Running {
    address: SocketAddr,
    shared: Arc<Shared>,
    served: Vec<JoinHandle<()>>,
}

/// Starts a server on loopback that plays a script.
///
/// # Errors
/// Returns an error if the port or the socket cannot be opened.
pub async fn start(script: Script, options: Options) -> io::Result<Running> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
    let address = listener.local_addr()?;
    let shared = Arc::new(Shared {
        script,
        workspace: options.workspace,
        prompts: options.prompts.into_iter().filter(|prompt| !prompt.trim().is_empty()).collect(),
        tell: options.tell,
        began: Instant::now(),
        log: Mutex::default(),
        before: Mutex::default(),
    });
    let router = Router::new().fallback(answer).with_state(shared.clone());
    let mut served = Vec::new();
    if let Some(path) = options.socket {
        let listener = UnixListener::bind(path)?;
        served.push(tokio::spawn(serve(listener, router.clone(), HEAD)));
    }
    served.push(tokio::spawn(serve(listener, router, HEAD)));
    Ok(Running { address, shared, served })
}

impl Running {
    /// Returns the server's address, without a trailing slash.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the server's port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Stops listening. Returns the logged requests, and the number of further ones.
    pub fn stop(self) -> (Vec<LogLine>, u64) {
        let mut log = lock(&self.shared.log);
        let lines = std::mem::take(&mut log.lines);
        let more = log.requests.saturating_sub(lines.len() as u64);
        (lines, more)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.served.iter().for_each(JoinHandle::abort);
    }
}

struct Shared {
    script: Script,
    workspace: Option<String>,
    prompts: Vec<String>,
    tell: Option<Tell>,
    began: Instant,
    log: Mutex<Log>,
    before: Mutex<HashMap<Place, Before>>,
}

#[derive(Default)]
struct Log {
    requests: u64,
    lines: Vec<LogLine>,
}

/// The place of a turn in a conversation: a repeated request has the same place.
type Place = (Option<usize>, usize, usize, u64);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The kind of a request, by its path.
enum Wants {
    Answer(Api),
    Count(Api),
    Models(Option<String>),
    Probe,
    Unknown,
}

impl Wants {
    /// Returns the kind of a request. Base URLs differ: some include `/v1`, others do not.
    fn of(method: &Method, path: &str) -> Self {
        let path = path.trim_end_matches('/');
        if *method == Method::POST {
            let (_, last) = path.rsplit_once('/').unwrap_or(("", path));
            return match last.rsplit_once(':') {
                Some((_, "generateContent" | "streamGenerateContent")) => Wants::Answer(Api::Gemini),
                Some((_, "countTokens")) => Wants::Count(Api::Gemini),
                _ if path.ends_with("/messages/count_tokens") => Wants::Count(Api::AnthropicMessages),
                _ if path.ends_with("/chat/completions") => Wants::Answer(Api::OpenaiChat),
                _ if last == "messages" => Wants::Answer(Api::AnthropicMessages),
                _ if last == "responses" => Wants::Answer(Api::OpenaiResponses),
                _ => Wants::Unknown,
            };
        }
        if *method != Method::GET && *method != Method::HEAD && *method != Method::OPTIONS {
            return Wants::Unknown;
        }
        match path.split_once("/models") {
            Some((_, "")) => Wants::Models(None),
            Some((_, name)) if name.starts_with('/') => Wants::Models(Some(name.trim_start_matches('/').to_owned())),
            _ if *method == Method::HEAD || matches!(path, "" | "/v1" | "/v1beta" | "/health") => Wants::Probe,
            _ => Wants::Unknown,
        }
    }
}

/// Returns true if a request was sent to this machine by a loopback name. A web page in a browser can reach loopback
/// under another host name.
fn host_is_loopback(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    name.eq_ignore_ascii_case("localhost") || name == "127.0.0.1" || name == "[::1]"
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let query = head.uri.query().unwrap_or("").to_owned();
    let wants = Wants::of(&head.method, &path);
    if !host_is_loopback(&head.headers) {
        let message = "the gateway only answers requests whose Host header is a loopback address of this machine";
        return whole(StatusCode::FORBIDDEN, &json!({"error": {"message": message, "type": "permission_error"}}));
    }
    let bytes = to_bytes(body, MAX_REQUEST).await;
    let line = LogLine {
        at_ms: u64::try_from(shared.began.elapsed().as_millis()).unwrap_or(u64::MAX),
        request: 0,
        method: head.method.to_string(),
        path: if query.is_empty() { path.clone() } else { format!("{path}?{query}") },
        api: None,
        model: None,
        stream: None,
        tools: Vec::new(),
        model_turns: None,
        tool_results: None,
        played: What::Unknown,
        turn: None,
        sub_agent: None,
        calls: Vec::new(),
        fault: None,
        status: 200,
        without_prompt: false,
        problem: None,
    };
    match wants {
        Wants::Answer(api) => {
            let read = bytes.map_err(|error| error.to_string());
            let read =
                read.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).map_err(|error| error.to_string()));
            match read {
                Ok(body) => model_answer(&shared, api, &path, &query, &body, line).await,
                Err(error) => {
                    let message = format!("the request does not have the JSON form of this API: {error}");
                    let refusal = Refusal { status: 400, message: message.clone(), retry_after_ms: None };
                    shared.write(LogLine { api: Some(api), status: 400, problem: Some(message), ..line });
                    refused(api, &refusal)
                }
            }
        }
        Wants::Count(api) => {
            shared.write(LogLine { api: Some(api), played: What::CountTokens, ..line });
            // Estimated from the size of the text.
            let tokens = bytes.map_or(0, |bytes| bytes.len()).div_ceil(4);
            let key = if api == Api::Gemini { "totalTokens" } else { "input_tokens" };
            let mut count = json!({});
            count[key] = json!(tokens);
            whole(StatusCode::OK, &count)
        }
        Wants::Models(name) => {
            let written = shared.write(LogLine { played: What::Models, ..line });
            whole(StatusCode::OK, &models(&shared.script, &written.path, &head.headers, name.as_deref()))
        }
        Wants::Probe => {
            shared.write(LogLine { played: What::Probe, ..line });
            whole(StatusCode::OK, &json!({"evals": "gateway", "plays": "script"}))
        }
        Wants::Unknown => {
            let message = format!("the gateway does not serve {} {path}", head.method);
            shared.write(LogLine { status: 404, problem: Some(message.clone()), ..line });
            whole(StatusCode::NOT_FOUND, &json!({"error": {"message": message, "type": "not_found_error"}}))
        }
    }
}

async fn model_answer(shared: &Shared, api: Api, path: &str, query: &str, body: &Value, line: LogLine) -> Response {
    let asked = asked(api, path, body);
    let mut played = {
        let mut before = lock(&shared.before);
        let (sub_agent, _) = shared.script.turns_for(&asked.opening);
        let place = (sub_agent, asked.model_turns, asked.tool_results, hash(&asked.opening));
        if before.len() >= MAX_PLACES {
            // The dropped turns may be played again, but by then the conversation is broken.
            before.clear();
        }
        let met = before.entry(place).or_default();
        let scene = Scene { workspace: shared.workspace.as_deref(), prompts: &shared.prompts };
        let played = play(&shared.script, api, &asked, scene, *met);
        if played.turn.is_some() {
            let refused = matches!(played.answer, Answer::Refused(_));
            *met = Before {
                faults: if played.fault { met.faults.saturating_add(1) } else { 0 },
                played: met.played + usize::from(!refused),
            };
        }
        played
    };
    let status = match &played.answer {
        Answer::Refused(refusal) => refusal.status,
        Answer::Broken(_, refusal) if !asked.stream => refusal.status,
        _ => 200,
    };
    let written = shared.write(LogLine {
        api: Some(api),
        model: asked.model.clone(),
        stream: Some(asked.stream),
        tools: asked.tools.iter().map(|tool| tool.name.clone()).collect(),
        model_turns: Some(asked.model_turns),
        tool_results: Some(asked.tool_results),
        played: played.what,
        turn: played.turn,
        sub_agent: played.sub_agent,
        calls: reply_of(&mut played).map(|reply| reply.calls.clone()).unwrap_or_default(),
        fault: fault(&played.answer),
        status,
        without_prompt: played.without_prompt,
        problem: played.problem.clone(),
        ..line
    });
    if let Some(reply) = reply_of(&mut played) {
        let turn = written.turn.map_or_else(|| "aside".to_owned(), |turn| turn.to_string());
        reply.id = format!("scripted_{turn}_{}", written.request);
        reply.created = jiff::Timestamp::now().as_second();
    }
    tokio::time::sleep(played.delay).await;
    respond(api, query, &asked, &played)
}

fn asked(api: Api, path: &str, body: &Value) -> Asked {
    match api {
        Api::AnthropicMessages => anthropic::asked(body),
        Api::OpenaiResponses => openai_responses::asked(body),
        Api::OpenaiChat => openai_chat::asked(body),
        Api::Gemini => {
            let last = path.rsplit_once("/models/").map_or(path, |(_, last)| last);
            let (model, method) = last.rsplit_once(':').unwrap_or((last, ""));
            gemini::asked(body, model, method == "streamGenerateContent")
        }
    }
}

fn reply_of(played: &mut Played) -> Option<&mut Reply> {
    match &mut played.answer {
        Answer::Whole(reply) | Answer::Cut(reply) | Answer::Broken(reply, _) => Some(reply),
        Answer::Refused(_) => None,
    }
}

fn fault(answer: &Answer) -> Option<&'static str> {
    match answer {
        Answer::Whole(_) => None,
        Answer::Cut(_) => Some("cut"),
        Answer::Broken(..) => Some("error-event"),
        Answer::Refused(_) => Some("http-error"),
    }
}

fn respond(api: Api, query: &str, asked: &Asked, played: &Played) -> Response {
    let (reply, broken) = match &played.answer {
        Answer::Refused(refusal) => return refused(api, refusal),
        Answer::Broken(_, refusal) if !asked.stream => return refused(api, refusal),
        Answer::Whole(reply) => (reply, None),
        Answer::Cut(reply) => (reply, Some(None)),
        Answer::Broken(reply, refusal) => (reply, Some(Some(refusal))),
    };
    if !asked.stream {
        let answer = match api {
            Api::AnthropicMessages => anthropic::whole(reply),
            Api::OpenaiResponses => openai_responses::whole(reply),
            Api::OpenaiChat => openai_chat::whole(reply),
            Api::Gemini => gemini::whole(reply),
        };
        if broken.is_none() {
            return whole(StatusCode::OK, &answer);
        }
        let text = answer.to_string();
        let half = text.get(..text.floor_char_boundary(text.len() / 2)).unwrap_or("").to_owned();
        return respond_with(StatusCode::OK, "application/json", body(vec![half], true));
    }
    let as_events = api != Api::Gemini || query.split('&').any(|part| part == "alt=sse");
    let mut pieces = match api {
        Api::AnthropicMessages => anthropic::events(reply),
        Api::OpenaiResponses => openai_responses::events(reply),
        Api::OpenaiChat => openai_chat::events(reply, asked.usage_in_stream),
        Api::Gemini if as_events => gemini::as_events(&gemini::chunks(reply, broken.is_some())),
        Api::Gemini => gemini::as_list(&gemini::chunks(reply, broken.is_some())),
    };
    if let Some(broken) = broken {
        // Even a short answer must lack its end.
        pieces.truncate((pieces.len().saturating_sub(1) / 2).max(1));
        pieces.extend(broken.map(|refusal| match api {
            Api::AnthropicMessages => anthropic::error_event(refusal),
            Api::OpenaiResponses => openai_responses::error_event(refusal),
            Api::OpenaiChat => openai_chat::error_event(refusal),
            Api::Gemini if as_events => format!("data: {}\r\n\r\n", gemini::error(refusal)),
            Api::Gemini => format!(",\r\n{}]", gemini::error(refusal)),
        }));
    }
    let cut = broken == Some(None);
    let kind = if as_events { "text/event-stream" } else { "application/json" };
    respond_with(StatusCode::OK, kind, body(pieces, cut))
}

fn refused(api: Api, refusal: &Refusal) -> Response {
    let error = match api {
        Api::AnthropicMessages => anthropic::error(refusal),
        Api::OpenaiResponses | Api::OpenaiChat => openai_chat::error(refusal),
        Api::Gemini => gemini::error(refusal),
    };
    let mut response = whole(StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST), &error);
    if let Some(ms) = refusal.retry_after_ms {
        response.headers_mut().insert(header::RETRY_AFTER, ms.div_ceil(1000).into());
        response.headers_mut().insert("retry-after-ms", ms.into());
    }
    response
}

/// Lists the models. Two APIs use the same path, and differ by a header.
fn models(script: &Script, path: &str, headers: &HeaderMap, name: Option<&str>) -> Value {
    let listed = script.listed();
    match (path.contains("/v1beta/"), headers.contains_key("anthropic-version"), name) {
        (true, _, None) => gemini::models(&listed),
        (true, _, Some(name)) => gemini::model(name),
        (false, true, None) => anthropic::models(&listed),
        (false, true, Some(name)) => anthropic::model(name),
        (false, false, None) => openai_chat::models(&listed),
        (false, false, Some(name)) => openai_chat::model(name),
    }
}

impl Shared {
    /// Adds a line to the log and numbers its request.
    fn write(&self, line: LogLine) -> LogLine {
        let mut log = lock(&self.log);
        let line = LogLine { request: log.requests, ..line }.bounded();
        log.requests += 1;
        if log.lines.len() < MAX_LOG {
            log.lines.push(line.clone());
        }
        // Called under the lock, so that lines are in order.
        if let Some(tell) = &self.tell {
            tell(&line);
        }
        line
    }
}

fn hash(text: &str) -> u64 {
    let bytes = *blake3::hash(text.as_bytes()).as_bytes();
    bytes.iter().take(8).fold(0, |hash, byte| (hash << 8) | u64::from(*byte))
}

fn whole(status: StatusCode, value: &Value) -> Response {
    respond_with(status, "application/json", Body::from(value.to_string()))
}

fn respond_with(status: StatusCode, kind: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_that_are_not_kept_are_counted() {
        let script = Script::parse("x.yaml".as_ref(), "turns: [{text: Hi.}]").unwrap();
        let running = start(script, Options::default()).await.unwrap();
        let line = LogLine {
            at_ms: 0,
            request: 0,
            method: "GET".into(),
            path: "/".into(),
            api: None,
            model: None,
            stream: None,
            tools: Vec::new(),
            model_turns: None,
            tool_results: None,
            played: What::Probe,
            turn: None,
            sub_agent: None,
            calls: Vec::new(),
            fault: None,
            status: 200,
            without_prompt: false,
            problem: None,
        };
        for _ in 0..MAX_LOG + 3 {
            running.shared.write(line.clone());
        }
        let (lines, more) = running.stop();
        assert_eq!((lines.len(), more), (MAX_LOG, 3));
    }

    #[test]
    fn paths_are_known_whatever_stands_before() {
        let of = |method, path| match Wants::of(&method, path) {
            Wants::Answer(api) => format!("answer {api:?}"),
            Wants::Count(api) => format!("count {api:?}"),
            Wants::Models(name) => format!("models {name:?}"),
            Wants::Probe => "probe".to_owned(),
            Wants::Unknown => "unknown".to_owned(),
        };
        for (path, wanted) in [
            ("/v1/messages", "answer AnthropicMessages"),
            ("/messages", "answer AnthropicMessages"),
            ("/v1/messages/count_tokens", "count AnthropicMessages"),
            ("/openai/v1/responses", "answer OpenaiResponses"),
            ("/chat/completions", "answer OpenaiChat"),
            ("/v1beta/models/gemini-2.5-pro:streamGenerateContent", "answer Gemini"),
            ("/v1/models/a:countTokens", "count Gemini"),
            ("/v1/embeddings", "unknown"),
        ] {
            assert_eq!(of(Method::POST, path), wanted, "{path}");
        }
        for (path, wanted) in [
            ("/v1/models", "models None"),
            ("/v1/models/a/b", "models Some(\"a/b\")"),
            ("/", "probe"),
            ("/v1/messages", "unknown"),
        ] {
            assert_eq!(of(Method::GET, path), wanted, "{path}");
        }
        assert_eq!(of(Method::HEAD, "/anything"), "probe");
        assert_eq!(of(Method::DELETE, "/v1/models"), "unknown");
    }
}

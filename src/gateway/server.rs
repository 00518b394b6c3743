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
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinHandle;

use super::connections::{HEAD, serve};
use super::log::LogLine;
use super::play::{Answer, Before, Played, Scene, What, play};
use super::script::Script;
use super::stream::body;
use super::wants::Wants;
use super::{Api, Asked, Refusal, Reply};

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
    let wants = Wants::of(&head.method, &path, &head.headers);
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
            whole(StatusCode::OK, &api.count(tokens as u64))
        }
        Wants::Models(api, name) => {
            shared.write(LogLine { played: What::Models, ..line });
            let models = match name {
                Some(name) => api.model(&name),
                None => api.models(&shared.script.listed()),
            };
            whole(StatusCode::OK, &models)
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
    let asked = api.asked(path, body);
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
    let answer = api.whole(reply);
    if !asked.stream {
        if broken.is_none() {
            return whole(StatusCode::OK, &answer);
        }
        let text = answer.to_string();
        let half = text.get(..text.floor_char_boundary(text.len() / 2)).unwrap_or("").to_owned();
        return respond_with(StatusCode::OK, "application/json", body(vec![half], true));
    }
    let options = api.stream_options(query, asked);
    let pieces = match broken {
        None => api.events(&answer, options),
        Some(error) => api.broken(&answer, options, error),
    };
    let cut = broken == Some(None);
    let kind = if options.as_list { "application/json" } else { "text/event-stream" };
    respond_with(StatusCode::OK, kind, body(pieces, cut))
}

fn refused(api: Api, refusal: &Refusal) -> Response {
    let error = api.error(refusal);
    let mut response = whole(StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST), &error);
    if let Some(ms) = refusal.retry_after_ms {
        response.headers_mut().insert(header::RETRY_AFTER, ms.div_ceil(1000).into());
        response.headers_mut().insert("retry-after-ms", ms.into());
    }
    response
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
}

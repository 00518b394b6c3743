//! The server: HTTP on loopback, between an agent and its model.
//!
//! Every request goes the same way in each mode: it is read, held against the limits, answered, and logged when its
//! answer has ended. The modes differ only in the source of the answer.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::canonical::{Canon, Canonical};
use super::cassette::Entry;
use super::encoding::{self, EncodingError};
use super::exchange::{Exchange, Failure, FailureKind, KEPT_HEADERS, Models, Source, without_key};
use super::guard::{Allowed, Guard};
use super::log::{Log, Logged};
use super::pending::Pending;
use super::pieces::Pieces;
use super::play::AnswerKind;
use super::player::Player;
use super::purpose::Purpose;
use super::script_line::ScriptLine;
use super::tape::Tape;
use super::tee::{self, Received, Tee};
use super::totals::Totals;
use super::upstream::{Outgoing, SendError, Sent, Upstream, is_of_the_connection};
use super::{Api, Refusal, side_requests};
use crate::loopback::{self, HEAD, serve};
use crate::values::Pattern;

/// The maximum size of a request in bytes.
const MAX_REQUEST_BYTES: usize = 256 << 20;

/// The time for which a request beyond a limit is held, so that the engine ends the session before the agent sees an
/// error.
const REFUSAL_DELAY: Duration = Duration::from_secs(1);

/// The longest time until the connections of an agent that has ended are closed and their requests are logged.
const SETTLES: Duration = Duration::from_secs(1);

/// The source of the answers.
pub enum Plays {
    Script(Box<Player>),
    /// A recording.
    Tape(Tape),
    /// The services.
    Upstream(Upstream),
    /// A recording, and the services for requests that it does not have.
    TapeOrUpstream(Tape, Upstream),
}

/// The pace at which recorded answers are played.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Timing {
    /// Recorded answers are played without delay.
    #[default]
    None,
    /// The recorded delays.
    Recorded,
    /// The recorded delays, multiplied by this factor.
    Factor(f64),
}

/// The options of a server.
pub struct Options {
    /// The API of requests that do not show it.
    pub api: Option<Api>,
    /// Makes the canonical forms of requests.
    pub canon: Canon,
    /// Patterns of requests outside the conversation, which a recording need not have.
    pub aside: Vec<Pattern>,
    /// The limits of requests.
    pub guard: Guard,
    /// The pace of recorded answers.
    pub timing: Timing,
    /// True if the answers of the services become a recording.
    pub records: bool,
    pub log: Log,
}

/// A running server.
pub struct Running {
    address: SocketAddr,
    shared: Arc<Shared>,
    ends: watch::Sender<bool>,
    served: Vec<JoinHandle<()>>,
}

/// The result of a server.
#[derive(Debug, Default)]
pub struct Ended {
    /// The log.
    pub logged: Logged,
    /// The numbers of the cassette's entries that were not played.
    pub left: Vec<u64>,
}

/// A server that has an address and does not answer yet. Connections wait.
pub struct Bound {
    listener: TcpListener,
    socket: Option<UnixListener>,
    address: SocketAddr,
}

/// Opens a port of loopback, and a socket in the file system. Port 0 means any free port.
///
/// # Errors
/// Returns an error if the port or the socket cannot be opened.
pub async fn bind(port: u16, socket: Option<&Path>) -> io::Result<Bound> {
    let listener = loopback::listen(port).await?;
    let address = listener.local_addr()?;
    let socket = socket.map(UnixListener::bind).transpose()?;
    Ok(Bound { listener, socket, address })
}

impl Bound {
    /// Returns the server's address, without a trailing slash.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the server's port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Starts to answer.
    pub fn serve(self, plays: Plays, options: Options) -> Running {
        let Self { listener, socket, address } = self;
        let (script, tape, upstream) = match plays {
            Plays::Script(player) => (Some(*player), None, None),
            Plays::Tape(tape) => (None, Some(tape), None),
            Plays::Upstream(upstream) => (None, None, Some(upstream)),
            Plays::TapeOrUpstream(tape, upstream) => (None, Some(tape), Some(upstream)),
        };
        let shared = Arc::new(Shared {
            script,
            tape: tape.map(Mutex::new),
            upstream,
            api: options.api,
            canon: options.canon,
            aside: options.aside,
            guard: options.guard,
            timing: options.timing,
            records: options.records,
            began: Instant::now(),
            log: Arc::new(options.log),
        });
        let (ends, ended) = watch::channel(false);
        let router = Router::new().fallback(answer).with_state(shared.clone());
        let mut served = vec![tokio::spawn(serve(listener, router.clone(), HEAD, ended.clone()))];
        served.extend(socket.map(|socket| tokio::spawn(serve(socket, router, HEAD, ended))));
        Running { address, shared, ends, served }
    }
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

    /// Returns the sums over the requests so far.
    pub fn totals(&self) -> Totals {
        self.shared.log.totals()
    }

    /// Waits until every request is logged, at most [`SETTLES`], which needs a moment after its agent has ended. Returns the
    /// number of requests that are not logged.
    pub async fn settle(&self) -> u64 {
        let until = Instant::now() + SETTLES;
        while self.unlogged() > 0 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.unlogged()
    }

    /// Returns the number of requests that are not logged yet.
    pub fn unlogged(&self) -> u64 {
        self.shared.log.unlogged()
    }

    /// Ends the connections, and returns the result.
    pub async fn stop(mut self) -> Ended {
        let _ = self.ends.send(true);
        for task in self.served.drain(..) {
            // A task that panicked has ended too.
            let _ = task.await;
        }
        let tape = self.shared.tape.as_ref();
        let left = tape.map(|tape| tape.lock().unwrap_or_else(PoisonError::into_inner).left()).unwrap_or_default();
        Ended { logged: self.shared.log.finish(), left }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.served.iter().for_each(JoinHandle::abort);
    }
}

struct Shared {
    script: Option<Player>,
    tape: Option<Mutex<Tape>>,
    upstream: Option<Upstream>,
    api: Option<Api>,
    canon: Canon,
    aside: Vec<Pattern>,
    guard: Guard,
    timing: Timing,
    records: bool,
    began: Instant,
    log: Arc<Log>,
}

/// A request that was read.
struct Asking {
    method: Method,
    /// The path with its query, as the agent sent it.
    path: String,
    headers: HeaderMap,
    wants: Purpose,
    body: Bytes,
    json: Value,
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or_else(|| head.uri.path().to_owned(), ToString::to_string);
    let path = with_plain_colons(&path);
    if !loopback::names_loopback(&head.headers) {
        let message = "the gateway only answers requests whose Host header is a loopback address of this machine";
        return plain(StatusCode::FORBIDDEN, &json!({"error": {"message": message, "type": "permission_error"}}));
    }
    let wants = Purpose::of(&head.method, &path, &head.headers, shared.api);
    let api = wants.api().or(shared.api).or_else(|| Purpose::guess(&path, &head.headers));
    let mut pending = Pending::new(shared.log.clone(), shared.begin(&head.method, &path, api));
    let (body, unread) = match to_bytes(body, MAX_REQUEST_BYTES).await {
        Ok(bytes) => (bytes, None),
        // No request came: the exchange is logged as closed by the agent.
        Err(error) if broke_off(&error) => {
            return plain(StatusCode::BAD_REQUEST, &json!({"error": {"message": "the request is not complete"}}));
        }
        Err(error) => (Bytes::new(), Some(error.to_string())),
    };
    if let (Some(why), Some(_)) = (&unread, &shared.upstream) {
        let message = format!("the gateway cannot read the request: {why}; it reads at most {MAX_REQUEST_BYTES} bytes");
        if let Some(exchange) = pending.exchange() {
            exchange.source = Source::Upstream;
        }
        return refuse(pending, api.unwrap_or(Api::OpenaiChat), 413, FailureKind::Malformed, message);
    }
    let decoded = encoding::decoded(&head.headers, &body, encoding::MAX_DECODED_BYTES);
    let (json, malformed) = json_of(&decoded, body.len(), unread);
    if let Some(exchange) = pending.exchange() {
        exchange.request = json.clone();
        exchange.model.asked = api.filter(|_| wants.is_known()).and_then(|api| api.model_asked(&path, &json));
    }
    let body = match decoded {
        Ok(plain) if shared.upstream.is_none() => plain,
        Err(error) if shared.upstream.is_some() => {
            if shared.must_read(&wants, &path) {
                if let Some(exchange) = pending.exchange() {
                    exchange.source = Source::Upstream;
                }
                let api = api.unwrap_or(Api::OpenaiChat);
                return refuse(pending, api, 415, FailureKind::Encoding, error.to_string());
            }
            pending.passes_unread(error.to_string());
            body
        }
        Ok(_) | Err(_) => body,
    };
    let asking = Asking { method: head.method, path, headers: head.headers, wants, body, json };
    if let (Purpose::Answer(api), Some(why), None) = (&asking.wants, malformed, &shared.upstream) {
        return shared.refuse_malformed(pending, *api, &why);
    }
    shared.respond(pending, api, asking).await
}

/// Returns the JSON of a request, or its text, and why the request is malformed, if so. `sent` is the size of its body in bytes as
/// it was sent, and `unread` the reason why the body could not be read.
fn json_of(decoded: &Result<Bytes, EncodingError>, sent: usize, unread: Option<String>) -> (Value, Option<String>) {
    match decoded {
        Ok(plain) if plain.is_empty() => (Value::Null, unread),
        Ok(plain) => match serde_json::from_slice::<Value>(plain) {
            Ok(json) => (json, unread),
            Err(error) => (Value::from(String::from_utf8_lossy(plain).into_owned()), Some(error.to_string())),
        },
        // Compressed bytes are no text, and would hide secrets.
        Err(error) => (Value::from(format!("({sent} bytes)")), Some(error.to_string())),
    }
}

impl Shared {
    /// Begins the exchange of a request, whose body was not read yet.
    fn begin(&self, method: &Method, path: &str, api: Option<Api>) -> Exchange {
        let source = match (&self.script, &self.tape) {
            (Some(_), _) => Source::Script,
            (None, Some(_)) => Source::Cassette,
            (None, None) => Source::Upstream,
        };
        Exchange {
            n: self.log.begin(),
            at_ms: millis(self.began.elapsed()),
            api,
            method: method.to_string(),
            path: without_key(path),
            model: Models::default(),
            status: None,
            request: Value::Null,
            response: Value::Null,
            stream: Vec::new(),
            usage: None,
            error: None,
            source,
            entry: None,
            headers: BTreeMap::new(),
            script: None,
        }
    }

    /// Refuses a request that does not have the form of its API and goes to no service.
    fn refuse_malformed(&self, mut pending: Pending, api: Api, why: &str) -> Response {
        let message = format!("the request does not have the JSON form of this API: {why}");
        if self.script.is_some()
            && let Some(exchange) = pending.exchange()
        {
            let problem = Some(message.clone());
            exchange.script = Some(ScriptLine { problem, ..ScriptLine::of(AnswerKind::Unknown) });
        }
        // Nothing like it was recorded, because a recording holds what a service could read.
        let kind = if self.tape.is_some() { FailureKind::Miss } else { FailureKind::Malformed };
        refuse(pending, api, 400, kind, message)
    }

    /// Returns true if a request cannot go on to its service unread: it is recorded, or may name another model than the enforced
    /// one.
    fn must_read(&self, wants: &Purpose, path: &str) -> bool {
        let is_recorded = wants.is_known() && (self.records || self.tape.is_some());
        let is_free = *wants == Purpose::Unknown && Purpose::is_free(path);
        is_recorded || (self.guard.model.is_some() && !is_free)
    }

    async fn respond(&self, mut pending: Pending, api: Option<Api>, mut asking: Asking) -> Response {
        let guarded = match (&asking.wants, api) {
            (Purpose::Answer(api) | Purpose::Count(api), _) => Some(*api),
            (Purpose::Unknown, Some(api)) if asking.method == Method::POST => Some(api),
            (Purpose::Models(..) | Purpose::Probe | Purpose::Unknown, _) => None,
        };
        if let Some(api) = guarded {
            let decided = self.log.with_totals(|totals| match asking.wants {
                Purpose::Answer(_) => self.guard.decide(api.model_asked(&asking.path, &asking.json).as_deref(), totals),
                Purpose::Count(_) | Purpose::Models(..) | Purpose::Probe | Purpose::Unknown => {
                    self.guard.decide_other(model_named(&asking).as_deref(), totals)
                }
            });
            match decided {
                Allowed::Yes => {}
                Allowed::With(model) => {
                    asking.path = api.with_model(&asking.path, &mut asking.json, &model);
                    let now = api.model_asked(&asking.path, &asking.json);
                    if !now.is_some_and(|now| crate::models::same(&model, &now)) {
                        let message = format!("the request cannot be rewritten to ask for model `{model}`");
                        return refuse(pending, api, 400, FailureKind::Model, message);
                    }
                    asking.body = Bytes::from(asking.json.to_string());
                    asking.headers.remove(header::CONTENT_ENCODING);
                    if let Some(exchange) = pending.exchange() {
                        exchange.request = asking.json.clone();
                        exchange.path = without_key(&asking.path);
                    }
                }
                Allowed::OtherModel(why) => {
                    let message = format!("{why}; the gateway refused the request (--enforce-model refuse)");
                    return refuse(pending, api, 400, FailureKind::Model, message);
                }
                Allowed::Beyond(key, limit) => {
                    let message =
                        format!("the limit `{}` of the case, {limit}, was exceeded before this request", key.word());
                    if let Some(exchange) = pending.exchange() {
                        // Set now, because the session may end while the request is held.
                        exchange.error = Some(Failure::of(FailureKind::Limit, message.clone()));
                    }
                    if let Some(budget) = &self.guard.budget {
                        budget.exceeded.send_replace(Some((key, limit.clone())));
                        tokio::time::sleep(REFUSAL_DELAY).await;
                    }
                    return refuse(pending, api, 400, FailureKind::Limit, message);
                }
            }
        }
        if let Some(player) = &self.script {
            return scripted(pending, player, api, &asking);
        }
        if let (Some(tape), Some(api), true) = (&self.tape, api, asking.wants.is_known()) {
            let canonical = self.canon.request(api, &without_key(&asking.path), &asking.json);
            let taken = {
                let mut tape = tape.lock().unwrap_or_else(PoisonError::into_inner);
                tape.take(api, asking.method.as_str(), &canonical, &self.canon).cloned()
            };
            match taken {
                Ok(entry) => return self.recorded(pending, api, &asking, &canonical, &entry),
                Err(miss) if self.upstream.is_none() => {
                    let aside = side_requests::matches(&api.asked(&asking.path, &asking.json), &self.aside);
                    let kind = if aside { FailureKind::Aside } else { FailureKind::Miss };
                    return refuse(pending, api, 400, kind, miss.to_string());
                }
                Err(_) => {}
            }
        }
        match (&self.upstream, api) {
            (Some(upstream), Some(api)) => pass_on(pending, upstream, api, asking).await,
            _ => unknown(pending, api, &asking),
        }
    }

    /// Plays a recorded answer.
    fn recorded(&self, mut pending: Pending, api: Api, asking: &Asking, now: &Canonical, entry: &Entry) -> Response {
        let response = now.marks.put_back(api, &entry.response, entry.n);
        let asked = api.asked(&asking.path, &asking.json);
        let query = asking.path.split_once('?').map_or("", |(_, query)| query);
        let options = api.stream_options(query, &asked);
        let streams = matches!(asking.wants, Purpose::Answer(_)) && asked.stream && entry.status < 400;
        let cut = entry.error.as_ref().is_some_and(|error| error.kind == FailureKind::Cut);
        let event = entry.error.as_ref().and_then(|error| error.event.as_ref());
        let (all, kind) = match (streams, cut) {
            (true, false) if event.is_some() => {
                let mut events = if response.is_null() { Vec::new() } else { api.unfinished(&response, options) };
                events.extend(event.map(|event| api.event(event, options, events.is_empty())));
                (events, stream_kind(options.as_list))
            }
            (true, false) => (api.events(&response, options), stream_kind(options.as_list)),
            (true, true) => (api.unfinished(&response, options), stream_kind(options.as_list)),
            (false, false) => (vec![text_of(&response)], content_type(&response)),
            (false, true) => {
                let text = text_of(&response);
                (vec![text[..text.floor_char_boundary(text.len() / 2)].to_owned()], content_type(&response))
            }
        };
        if let Some(exchange) = pending.exchange() {
            exchange.status = Some(entry.status);
            exchange.entry = Some(entry.n);
            // A stream that breaks off again may do so before the event with its figures.
            exchange.usage = api.usage(&response).filter(|_| entry.status < 400);
            exchange.headers.clone_from(&entry.headers);
        }
        let pieces = Pieces { all, cut, pace: self.timing.of(entry) };
        let headers = entry.headers.iter().filter_map(|(name, value)| {
            Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_str(value).ok()?))
        });
        let known = (!cut && event.is_none()).then_some(response);
        let status = StatusCode::from_u16(entry.status).unwrap_or(StatusCode::OK);
        respond_with(status, kind, headers, Tee::body(pieces.source(), pending, known, kind))
    }
}

impl Timing {
    /// Returns the pause before the first part of an answer, and the time from the first to the last.
    fn of(self, entry: &Entry) -> (Duration, Duration) {
        let factor = match self {
            Timing::None => return Default::default(),
            Timing::Recorded => 1.0,
            Timing::Factor(factor) => factor,
        };
        let (first, last) = entry.ms.unwrap_or_default();
        let scaled = |ms: u64| Duration::try_from_secs_f64(ms as f64 * factor / 1000.0).unwrap_or_default();
        (scaled(first), scaled(last.saturating_sub(first)))
    }
}

/// Plays the answer of a script.
fn scripted(mut pending: Pending, player: &Player, api: Option<Api>, asking: &Asking) -> Response {
    let n = pending.exchange().map_or(0, |exchange| exchange.n);
    let simple = |what: AnswerKind, value: Value| (200, value, ScriptLine::of(what));
    let listed = player.script.listed();
    let (status, value, line) = match &asking.wants {
        Purpose::Answer(api) => return scripted_answer(pending, player, *api, asking, n),
        Purpose::Count(api) => {
            // Estimated from the size of the text.
            let tokens = asking.body.len().div_ceil(4) as u64;
            simple(AnswerKind::CountTokens, api.count(tokens))
        }
        Purpose::Models(api, name) => {
            simple(AnswerKind::Models, name.as_ref().map_or_else(|| api.models(&listed), |name| api.model(name)))
        }
        Purpose::Probe => simple(AnswerKind::Probe, json!({"evals": "gateway", "plays": "script"})),
        Purpose::Unknown => {
            let message = not_served(asking);
            let line = ScriptLine { problem: Some(message.clone()), ..ScriptLine::of(AnswerKind::Unknown) };
            (404, unknown_path(api, message), line)
        }
    };
    if let Some(exchange) = pending.exchange() {
        exchange.status = Some(status);
        exchange.script = Some(line);
    }
    json_answer(pending, StatusCode::from_u16(status).unwrap_or(StatusCode::OK), value)
}

fn scripted_answer(mut pending: Pending, player: &Player, api: Api, asking: &Asking, n: u64) -> Response {
    let answer = player.answer(api, &asking.path, &asking.json, n);
    let query = asking.path.split_once('?').map_or("", |(_, query)| query);
    let asked = api.asked(&asking.path, &asking.json);
    let kind = match &answer.events {
        Some(_) if asked.stream => stream_kind(api.stream_options(query, &asked).as_list),
        _ => "application/json",
    };
    let mut headers = Vec::new();
    if let Some(ms) = answer.retry_after_ms {
        headers.push((header::RETRY_AFTER, HeaderValue::from(ms.div_ceil(1000))));
        headers.push((HeaderName::from_static("retry-after-ms"), HeaderValue::from(ms)));
    }
    if let Some(exchange) = pending.exchange() {
        exchange.status = Some(answer.status);
        exchange.headers = kept(&headers.iter().cloned().collect());
        exchange.script = Some(answer.line);
    }
    let broken = answer.events.is_some() && answer.breaks;
    let known = (!broken).then(|| answer.whole.clone());
    let all = answer.events.unwrap_or_else(|| vec![answer.whole.to_string()]);
    let pieces = Pieces { all, cut: answer.cut, pace: answer.pace };
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::BAD_REQUEST);
    respond_with(status, kind, headers, Tee::body(pieces.source(), pending, known, kind))
}

/// Sends a request on to its service, and the answer back as it comes.
async fn pass_on(mut pending: Pending, upstream: &Upstream, api: Api, asking: Asking) -> Response {
    if let Some(exchange) = pending.exchange() {
        exchange.source = Source::Upstream;
    }
    let outgoing = Outgoing { method: asking.method, path: asking.path, headers: asking.headers, body: asking.body };
    let Sent { answer: upstream_answer, left_out } = match upstream.send(api, outgoing).await {
        Ok(sent) => sent,
        Err(error) => {
            let (status, kind) = match error {
                SendError::NoKey(_) => (401, FailureKind::Key),
                SendError::Unreachable { .. } => (502, FailureKind::Unreachable),
            };
            return refuse(pending, api, status, kind, format!("the gateway: {error}"));
        }
    };
    pending.leaves_out(&left_out);
    let status = upstream_answer.status();
    let kind = upstream_answer
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or("")
        .to_owned();
    if let Some(exchange) = pending.exchange() {
        exchange.status = Some(status.as_u16());
        exchange.headers = kept(upstream_answer.headers());
    }
    let headers = upstream_answer.headers().clone();
    let encoding = encoding::name_of(&headers);
    let source: tee::Source = if status.is_success() {
        Box::pin(Received(upstream_answer.bytes_stream()))
    } else {
        // The words of an error are kept even if the agent does not read them.
        match upstream_answer.bytes().await {
            Ok(bytes) => {
                pending.received(&kind, &encoding, &bytes);
                Pieces::bytes(bytes)
            }
            Err(error) => Pieces::broken(error.into()),
        }
    };
    let body = Tee::encoded(source, pending, &kind, encoding);
    let mut response = Response::new(body);
    *response.status_mut() = status;
    for (name, value) in headers.iter().filter(|(name, _)| !is_of_the_connection(name)) {
        response.headers_mut().append(name.clone(), value.clone());
    }
    response
}

/// Returns a path with its colons decoded, because a method of Gemini's API follows a colon.
fn with_plain_colons(path: &str) -> String {
    let (before, query) = path.split_once('?').map_or((path, None), |(before, query)| (before, Some(query)));
    let before = before.replace("%3A", ":").replace("%3a", ":");
    query.map_or(before.clone(), |query| format!("{before}?{query}"))
}

/// Returns the model that a request of any form names, in its body or in its path.
fn model_named(asking: &Asking) -> Option<String> {
    let in_body = asking.json.get("model").and_then(Value::as_str).map(str::to_owned);
    in_body.or_else(|| {
        let path = asking.path.split_once('?').map_or(asking.path.as_str(), |(path, _)| path);
        let (_, named) = path.rsplit_once("odels/")?;
        let (name, _) = named.rsplit_once(':')?;
        Some(name.to_owned())
    })
}

fn unknown(mut pending: Pending, api: Option<Api>, asking: &Asking) -> Response {
    let value = unknown_path(api, not_served(asking));
    if let Some(exchange) = pending.exchange() {
        exchange.status = Some(404);
    }
    json_answer(pending, StatusCode::NOT_FOUND, value)
}

fn not_served(asking: &Asking) -> String {
    format!("the gateway does not serve {} {}", asking.method, without_key(&asking.path))
}

fn unknown_path(api: Option<Api>, message: String) -> Value {
    let refusal = Refusal { status: 404, message, retry_after_ms: None };
    api.unwrap_or(Api::OpenaiChat).error(&refusal)
}

/// Returns true if a body could not be read because its connection ended: the agent gave up the request.
fn broke_off(error: &axum::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof].contains(&error.kind());
        }
        cause = error.source();
    }
    false
}

/// Refuses a request with the service's own form of an error.
fn refuse(mut pending: Pending, api: Api, status: u16, kind: FailureKind, message: String) -> Response {
    if let Some(exchange) = pending.exchange() {
        exchange.status = Some(status);
        exchange.error = Some(Failure::of(kind, message.clone()));
    }
    let value = api.error(&Refusal { status, message, retry_after_ms: None });
    json_answer(pending, StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST), value)
}

fn json_answer(pending: Pending, status: StatusCode, value: Value) -> Response {
    let pieces = Pieces { all: vec![value.to_string()], ..Pieces::default() };
    let kind = "application/json";
    respond_with(status, kind, [], Tee::body(pieces.source(), pending, Some(value), kind))
}

/// Returns the headers that influence how an agent continues.
fn kept(headers: &HeaderMap) -> BTreeMap<String, String> {
    let found = KEPT_HEADERS.iter().filter_map(|name| Some((*name, headers.get(*name)?.to_str().ok()?)));
    found.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn stream_kind(as_list: bool) -> &'static str {
    if as_list { "application/json" } else { "text/event-stream" }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn content_type(value: &Value) -> &'static str {
    if value.is_string() { "text/plain; charset=utf-8" } else { "application/json" }
}

fn plain(status: StatusCode, value: &Value) -> Response {
    respond_with(status, "application/json", [], Body::from(value.to_string()))
}

fn respond_with(
    status: StatusCode,
    kind: &'static str,
    headers: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
    body: Body,
) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().extend(headers);
    response
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

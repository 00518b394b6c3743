//! Serves the runs of a folder as HTML on loopback: a list of all runs, and the report of each run.
//!
//! ```text
//! request → admission → address → list | report | state → answer, as it is written
//! ```
//!
//! Nothing in an address is used as a path: the name of a run is compared with the names of the runs in the folder.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use tokio::sync::{Semaphore, oneshot, watch};

use crate::loopback::{self, HEAD, Listener};
use crate::report::Report;
use crate::report::escape::html as text;
use crate::report::html::live::Live;
use crate::report::html::{self, Compared, runs, shell};
use crate::result::TrialResult;
use crate::run::RunRecord;
use crate::run::folder::RunFolder;
use address::{Address, Wanted};
use admission::{Admission, Admitted};

mod address;
mod admission;
mod listing;
mod pipe;

pub use address::encoded;

/// The maximum number of documents that are written at the same time; further requests wait.
const AT_ONCE: usize = 4;

/// A function that makes the report of a run from its results, and compares the run with its baseline, as `evals report` does.
pub type Make = fn(&RunFolder, &RunRecord, Vec<TrialResult>) -> Result<(Report, Compared), String>;

/// A server that has an address.
pub struct View {
    listener: Listener,
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    /// The folder of the runs.
    runs: PathBuf,
    make: Make,
    admission: Admission,
    writing: Arc<Semaphore>,
}

/// Opens a port of loopback that serves the runs of a folder. Port 0 means any free port.
///
/// # Errors
/// Returns an error if the port cannot be opened, or the system gives no random numbers.
pub async fn open(port: u16, runs: PathBuf, make: Make) -> io::Result<View> {
    let listener = loopback::listen(port).await?;
    let port = listener.local_addr()?.port();
    let admission = Admission::new(port)?;
    let shared = Arc::new(Shared { runs, make, admission, writing: Arc::new(Semaphore::new(AT_ONCE)) });
    Ok(View { listener, port, shared })
}

impl View {
    /// Returns the address of the list, or of a run by the name of its folder.
    pub fn url(&self, run: Option<&Path>) -> String {
        self.within(self.shared.admission.token(), run)
    }

    /// Returns an address that leads to [`View::url`] once. It is for the command line of a browser, which other users of
    /// the machine can read.
    pub fn url_to_open(&self, run: Option<&Path>) -> String {
        self.within(self.shared.admission.code(), run)
    }

    fn within(&self, secret: &str, run: Option<&Path>) -> String {
        let name = run.and_then(Path::file_name).map(|name| format!("{}/", encoded(name))).unwrap_or_default();
        format!("http://127.0.0.1:{}/{secret}/{name}", self.port)
    }

    /// Answers requests until `ends` is true.
    pub async fn serve(self, ends: watch::Receiver<bool>) {
        let router = Router::new().fallback(answer).with_state(self.shared);
        loopback::serve(self.listener, router, HEAD, ends).await;
    }
}

impl Shared {
    fn missing(&self) -> Response {
        self.sentence_page(
            StatusCode::NOT_FOUND,
            "There is nothing at this address",
            "The run was removed, or never existed.",
        )
    }

    /// Answers with a sentence and a link to the list.
    fn sentence_page(&self, status: StatusCode, title: &str, why: &str) -> Response {
        let mut page = Vec::new();
        let policy = shell::policy(None, shell::Asks::Nobody);
        let written = shell::head(title, &policy, &mut page).and_then(|()| {
            writeln!(
                page,
                "<main>\n<h1>{}</h1>\n<p>{}</p>\n<p><a href=\"/{}/\">Runs</a></p>\n</main>\n</body>\n</html>",
                text(title),
                text(why),
                self.admission.token()
            )
        });
        debug_assert!(written.is_ok(), "a vector takes everything");
        respond(status, kind(Wanted::Page), &policy, Body::from(page))
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let rest = match shared.admission.admit(&head) {
        Admitted::Yes(rest) => rest,
        Admitted::Once(rest) => return moved(&format!("/{}/{rest}", shared.admission.token())),
        Admitted::No => return refused(StatusCode::FORBIDDEN),
        Admitted::Method => {
            let mut response = refused(StatusCode::METHOD_NOT_ALLOWED);
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
    };
    let address = Address::of(rest, head.uri.query());
    let (run, wanted) = match address {
        Address::Nothing => return shared.missing(),
        Address::List(wanted) => (None, wanted),
        Address::Run(name, wanted) => match listing::folder(&shared.runs, &name) {
            Some(path) => (Some(path), wanted),
            // A page that follows the run asks for its state.
            None if wanted == Wanted::State => return state(&serde_json::json!({"gone": true})),
            None => return shared.missing(),
        },
        Address::WithoutSlash(name) => {
            let Some(path) = listing::folder(&shared.runs, &name) else { return shared.missing() };
            let name = path.file_name().map(encoded).unwrap_or_default();
            return moved(&format!("/{}/{name}/", shared.admission.token()));
        }
    };
    if head.method == Method::HEAD {
        return respond(StatusCode::OK, kind(wanted), &policy(run.is_some()), Body::empty());
    }
    match wanted {
        Wanted::State => {
            let read = tokio::task::spawn_blocking(move || match run {
                Some(path) => {
                    let folder = RunFolder::open(&path);
                    let live = folder.record().and_then(|record| Live::of(&folder, &record));
                    live.ok().and_then(|live| serde_json::to_value(live).ok())
                }
                None => serde_json::to_value(listing::state(&shared.runs)).ok(),
            });
            state(&read.await.ok().flatten().unwrap_or_else(|| serde_json::json!({"gone": true})))
        }
        Wanted::Page => page(shared, run).await,
    }
}

/// Answers with a document, which is sent while it is written.
async fn page(shared: Arc<Shared>, run: Option<PathBuf>) -> Response {
    let Ok(permit) = shared.writing.clone().acquire_owned().await else {
        return refused(StatusCode::SERVICE_UNAVAILABLE);
    };
    let (begins, begun) = oneshot::channel::<Result<(), String>>();
    let (mut pipe, body) = pipe::new();
    let of_run = run.is_some();
    let writes = shared.clone();
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let written = match run {
            None => {
                let _ = begins.send(Ok(()));
                listing::write(&writes.runs, &mut pipe)
            }
            Some(path) => match read(&path, writes.make) {
                Ok((report, compared, live)) => {
                    let _ = begins.send(Ok(()));
                    report.whole().and_then(|report| html::write_live(report, &compared, &live, &mut pipe))
                }
                Err(why) => {
                    let _ = begins.send(Err(why));
                    return;
                }
            },
        };
        pipe.end(written);
    });
    match begun.await {
        Ok(Ok(())) => respond(StatusCode::OK, kind(Wanted::Page), &policy(of_run), body),
        Ok(Err(why)) => shared.sentence_page(StatusCode::INTERNAL_SERVER_ERROR, "This run cannot be read", &why),
        Err(_) => shared.sentence_page(
            StatusCode::INTERNAL_SERVER_ERROR,
            "This page cannot be written",
            "The program failed.",
        ),
    }
}

/// Reads a run, which may be going on.
fn read(path: &Path, make: Make) -> Result<(Report, Compared, Live), String> {
    let folder = RunFolder::open(path);
    let record = folder.record().map_err(|error| error.to_string())?;
    // Read before the results: what finishes in between is offered as new, and is already there.
    let live = Live::of(&folder, &record).map_err(|error| error.to_string())?;
    let results = listing::results(&folder, &record, live.going_on).map_err(|error| error.to_string())?;
    let (report, compared) = make(&folder, &record, results)?;
    Ok((report, compared, live))
}

fn policy(of_run: bool) -> String {
    if of_run { html::live_policy() } else { runs::policy() }
}

fn kind(wanted: Wanted) -> &'static str {
    match wanted {
        Wanted::Page => "text/html; charset=utf-8",
        Wanted::State => "application/json",
    }
}

fn state(value: &serde_json::Value) -> Response {
    respond(StatusCode::OK, kind(Wanted::State), NOTHING, Body::from(value.to_string()))
}

/// A policy that permits nothing.
const NOTHING: &str = "default-src 'none'";

/// Refuses a request. The answer does not reveal what is served.
fn refused(status: StatusCode) -> Response {
    respond(status, "text/plain; charset=utf-8", NOTHING, Body::from(format!("{status}\n")))
}

/// Redirects to another address of this server.
fn moved(to: &str) -> Response {
    let mut response = respond(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", NOTHING, Body::empty());
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(header::LOCATION, to);
    }
    response
}

fn respond(status: StatusCode, kind: &'static str, policy: &str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_TYPE, kind),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    headers.extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    if let Ok(policy) = HeaderValue::from_str(&format!("{policy}; frame-ancestors 'none'")) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

//! `evals gateway record` and `replay`: run a command whose requests to models go through the gateway.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use super::{CliError, SignalKind, signal, whole_path};
use crate::cli::terminal;
use crate::gateway::canonical::{Canon, Here, Rules};
use crate::gateway::cassette::{self, Cassette, Header};
use crate::gateway::exchange::{Exchange, FailureKind};
use crate::gateway::guard::Guard;
use crate::gateway::log::Log;
use crate::gateway::server::{self, Bound, Ended, Options, Plays, Timing};
use crate::gateway::tape::Tape;
use crate::gateway::upstream::{Upstream, service_secrets};
use crate::process;
use crate::regular;
use crate::result::Warning;
use crate::secrets::Masker;
use crate::text::plural;
use crate::whole_file::{PartFile, PartWriter, put_in_place};

/// The value of the variables of keys while a cassette is played.
const NO_KEY: &str = "evals-gateway-key";

/// The variables that point agents at a service, each with the path that is appended to the gateway's address.
const ADDRESSES: [(&str, &str); 4] = [
    ("ANTHROPIC_BASE_URL", ""),
    ("OPENAI_BASE_URL", "/v1"),
    ("OPENAI_API_BASE", "/v1"),
    ("GOOGLE_GEMINI_BASE_URL", ""),
];

/// The variables of keys.
const KEYS: [&str; 5] =
    ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"];

/// Runs a command, and records its exchanges with models.
///
/// # Errors
/// Returns an error if the command cannot be run, or a file cannot be written.
pub(super) async fn record(file: &Path, command: &[String]) -> Result<u8, CliError> {
    let env = crate::own_environment::texts();
    let upstream = Upstream::of_env(&env).map_err(CliError::unreadable)?;
    cassette::may_replace(file).map_err(CliError::unreadable)?;
    if let Some(parent) = file.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent)
            .map_err(|error| CliError::unreadable(format!("could not make {}: {error}", parent.display())))?;
    }
    let canon = Canon::new(&here(&env)?, Rules::default(), masker());
    let done = around(Plays::Upstream(upstream), &canon, Timing::None, file, command, &BTreeMap::new()).await?;
    put_in_place([done.log])?;
    let exchanges = read(&log_beside(file))?;
    let api = exchanges.iter().find_map(|exchange| exchange.api);
    let entries = cassette::entries(exchanges, &canon);
    tell_failures(&done.ended);
    if entries.is_empty() {
        terminal::note(format_args!(
            "warning: the command got no answer of a model, so {} was not written",
            file.display()
        ));
    } else if code(done.status) != 0 && file.exists() {
        terminal::note(format_args!("warning: the command failed, so {} was not replaced", file.display()));
    } else {
        let recorded = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let header = Header { cassette: cassette::VERSION, api, recorded: Some(recorded), ..Header::default() };
        let count = entries.len();
        cassette::save(file, &Cassette { header, entries })?;
        terminal::note(format_args!("{} in {}", plural(count, "exchange"), file.display()));
    }
    Ok(code(done.status))
}

/// Runs a command, and answers its model requests from a cassette.
///
/// # Errors
/// Returns an error if the cassette cannot be read or the command cannot be run.
pub(super) async fn replay(
    file: &Path,
    timing: Timing,
    ignore_results: bool,
    command: &[String],
) -> Result<u8, CliError> {
    let cassette = cassette::load(file).map_err(CliError::unreadable)?;
    let env = crate::own_environment::texts();
    let canon = Canon::new(&here(&env)?, Rules { ignore_results, ..Rules::default() }, masker());
    let keys = KEYS.iter().map(|name| ((*name).to_owned(), NO_KEY.to_owned())).collect();
    let plays = Plays::Tape(Tape::new(cassette, &canon));
    let done = around(plays, &canon, timing, file, command, &keys).await?;
    put_in_place([done.log])?;
    tell_failures(&done.ended);
    if !done.ended.left.is_empty() {
        let numbers: Vec<String> = done.ended.left.iter().map(u64::to_string).collect();
        terminal::note(format_args!("warning: entries of the cassette that were not played: {}", numbers.join(", ")));
    }
    let missed = done.ended.logged.totals.failure(FailureKind::Miss).is_some();
    Ok(match code(done.status) {
        0 if missed => 1,
        code => code,
    })
}

/// The end of the command that the gateway was started for.
struct CommandEnd {
    status: ExitStatus,
    ended: Ended,
    log: PartFile,
}

/// Runs a command with the variables that point agents at the gateway.
async fn around(
    plays: Plays,
    canon: &Canon,
    timing: Timing,
    cassette: &Path,
    command: &[String],
    keys: &BTreeMap<String, String>,
) -> Result<CommandEnd, CliError> {
    let (program, arguments) = command.split_first().ok_or_else(|| CliError::unreadable("no command is given"))?;
    let path = crate::own_environment::var("PATH").and_then(|path| path.into_string().ok());
    if process::find(program, Path::new("."), path.as_deref()).is_none() {
        return Err(CliError::unreadable(format!("could not run {}: the program was not found", command.join(" "))));
    }
    let bound =
        server::bind(0, None).await.map_err(|error| CliError::unreadable(format!("could not listen: {error}")))?;
    let path = log_beside(cassette);
    if path == cassette {
        return Err(CliError::unreadable("the cassette cannot be called llm.jsonl, which is the log beside it"));
    }
    let (log, file) = Log::to_file(PartWriter::create(&path)?, masker());
    let env = pointed(&bound, keys);
    let options = Options {
        api: None,
        canon: canon.clone(),
        aside: Vec::new(),
        guard: Guard::default(),
        timing,
        records: matches!(plays, Plays::Upstream(_)),
        log,
    };
    let running = bound.serve(plays, options);
    // The command gets the terminal's signals itself, and this program ends after it.
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut child = tokio::process::Command::new(program);
    child.args(arguments).envs(env);
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        child.env_remove(name);
    }
    let mut child =
        child.spawn().map_err(|error| CliError::unreadable(format!("could not run {}: {error}", command.join(" "))))?;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {
                let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
                if let Some(id) = id {
                    let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
                }
            }
        }
    };
    let mut ended = running.stop().await;
    let log = file.finish(ended.logged.error.take())?;
    Ok(CommandEnd { status, ended, log })
}

fn pointed(bound: &Bound, keys: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let base = bound.base_url();
    let addresses = ADDRESSES.iter().map(|(name, rest)| ((*name).to_owned(), format!("{base}{rest}")));
    let own = |name: &str| crate::own_environment::var(name).and_then(|value| value.into_string().ok());
    let no_proxy = ["NO_PROXY", "no_proxy"].map(|name| {
        let before = own(name).filter(|own| !own.is_empty()).map(|own| format!("{own},")).unwrap_or_default();
        (name.to_owned(), format!("{before}127.0.0.1,localhost"))
    });
    addresses.chain(no_proxy).chain(keys.clone()).collect()
}

/// Returns the folders that the command works in.
fn here(env: &BTreeMap<String, String>) -> Result<Here, CliError> {
    let get = |name: &str| env.get(name).cloned().unwrap_or_default();
    let temporary = std::env::temp_dir();
    Ok(Here {
        workspace: whole_path(Path::new("."))?,
        home: get("HOME"),
        temporary: temporary.to_string_lossy().into_owned(),
    })
}

/// Returns the masker for the secrets of this program's environment.
pub(super) fn masker() -> Masker {
    let env = crate::own_environment::texts();
    let of_services = service_secrets(&env);
    let named: Vec<String> = of_services.iter().map(|(name, _)| name.clone()).collect();
    let all = env.iter().chain(of_services.iter().map(|(name, value)| (name, value)));
    Masker::of_env(all.map(|(name, value)| (name.as_str(), value.as_str())), &named)
}

fn log_beside(cassette: &Path) -> PathBuf {
    cassette.with_file_name("llm.jsonl")
}

/// Reads the exchanges of a log.
///
/// # Errors
/// Returns an error if a line cannot be read: a cassette without its exchange would play another session.
pub(super) fn read(log: &Path) -> Result<Vec<Exchange>, CliError> {
    let unreadable = |error: std::io::Error| CliError::unreadable(format!("{} cannot be read: {error}", log.display()));
    let lines = BufReader::new(regular::open(log).map_err(unreadable)?).lines();
    let exchange = |(at, line): (usize, std::io::Result<String>)| -> Result<Exchange, CliError> {
        serde_json::from_str(&line.map_err(unreadable)?).map_err(|error| {
            CliError::unreadable(format!("{}:{}: the line is not an exchange: {error}", log.display(), at + 1))
        })
    };
    lines.enumerate().map(exchange).collect()
}

fn tell_failures(ended: &Ended) {
    let totals = &ended.logged.totals;
    for kind in [FailureKind::Miss, FailureKind::Key, FailureKind::Unreachable] {
        if let Some((failure, count)) = totals.failure(kind) {
            let message = failure.message.clone().unwrap_or_default();
            let more = if count > 1 { format!(" ({count} times)") } else { String::new() };
            terminal::note(format_args!("error: {message}{more}"));
        }
    }
    if let Some((requests, names)) = totals.left_out.clone() {
        terminal::note(format_args!("warning: {}", Warning::KeyLeftOut { requests, names }));
    }
    // Telemetry that could not be read is no failure.
    for why in totals.undecoded.iter().chain(totals.unread.iter().map(|(_, why)| why)) {
        terminal::note(format_args!("error: {why}"));
    }
}

fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let signal = status.signal().map(|signal| 128 + signal);
    u8::try_from(status.code().or(signal).unwrap_or(1)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_with_a_line_that_is_no_exchange_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let log = log_beside(&root.path().join("x.cassette.jsonl"));
        std::fs::write(&log, "").unwrap();
        assert_eq!(read(&log).unwrap_or_else(|_| panic!("the log can be read")).len(), 0);
        std::fs::write(&log, "{\n").unwrap();
        assert!(read(&log).is_err());
    }
}

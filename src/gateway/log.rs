//! The log of a gateway: a line of `llm.jsonl` for each exchange, in the order of the requests, and sums over them.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::exchange::Exchange;
use super::refused::{self, CaseTexts};
use super::totals::Totals;
use crate::secrets::Masker;
use crate::whole_file::{FileError, PartFile, PartWriter};

/// The maximum size of a log in bytes, so that endless requests do not fill the disk.
const MAX_LOG_BYTES: u64 = 1 << 30;

/// The file of a log, which is put in place when the log has ended.
#[derive(Clone)]
pub struct LogFile(Arc<Mutex<Option<PartWriter>>>);

impl LogFile {
    /// Returns the file, which has its temporary name until it is put in place.
    ///
    /// # Errors
    /// Returns `error`, which the log met while it was written, or that of the rest.
    pub fn finish(&self, error: Option<io::Error>) -> Result<PartFile, FileError> {
        let writer = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let failed = |source| FileError::Io { doing: "write", path: PathBuf::from("llm.jsonl"), source };
        match (error, writer) {
            (Some(error), _) => Err(failed(error)),
            (None, Some(writer)) => writer.finish(),
            (None, None) => Err(failed(io::Error::other("the log has ended before"))),
        }
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(writer) => writer.write(bytes),
            None => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map_or(Ok(()), Write::flush)
    }
}

/// A log that is being written.
pub struct Log {
    masker: Masker,
    /// Texts that are looked for in the requests, with their names.
    wanted: Vec<String>,
    /// The texts by which requests of the case's conversation are recognised.
    case: CaseTexts,
    state: Mutex<State>,
}

struct State {
    out: Option<Box<dyn Write + Send>>,
    /// The number of requests that have begun.
    begun: u64,
    /// The number of exchanges that were written or dropped.
    done: u64,
    /// Finished exchanges that wait for an earlier one.
    waiting: BTreeMap<u64, String>,
    bytes: u64,
    most: u64,
    kept: u64,
    error: Option<io::Error>,
    totals: Totals,
}

/// The result of a log.
#[derive(Debug, Default)]
pub struct Logged {
    /// The number of requests.
    pub requests: u64,
    /// The number of exchanges in the file.
    pub kept: u64,
    /// The reason why the file is not complete, if it could not be written.
    pub error: Option<io::Error>,
    /// The sums over all exchanges.
    pub totals: Totals,
}

impl Log {
    /// Makes a log. Without `out`, only the sums are kept.
    pub fn new(out: Option<Box<dyn Write + Send>>, masker: Masker) -> Self {
        let state = State {
            out,
            begun: 0,
            done: 0,
            waiting: BTreeMap::new(),
            bytes: 0,
            most: MAX_LOG_BYTES,
            kept: 0,
            error: None,
            totals: Totals::default(),
        };
        Self { masker, wanted: Vec::new(), case: CaseTexts::default(), state: Mutex::new(state) }
    }

    /// Looks for these texts in the requests.
    #[must_use]
    pub fn looking_for(mut self, texts: Vec<String>) -> Self {
        self.wanted = texts;
        self
    }

    /// Recognises requests of the case's conversation by these texts.
    #[must_use]
    pub fn of_case(mut self, case: CaseTexts) -> Self {
        self.case = case;
        self
    }

    /// Makes a log that is written to a file.
    pub fn to_file(writer: PartWriter, masker: Masker) -> (Self, LogFile) {
        let file = LogFile(Arc::new(Mutex::new(Some(writer))));
        (Self::new(Some(Box::new(file.clone())), masker), file)
    }

    /// Returns the number of the next exchange, from 1.
    pub fn begin(&self) -> u64 {
        let mut state = self.lock();
        state.begun += 1;
        state.begun
    }

    /// Takes a finished exchange. Each number that was given out is expected once.
    pub fn end(&self, exchange: &Exchange) {
        let line = serde_json::to_string(exchange).unwrap_or_else(|error| {
            serde_json::json!({"n": exchange.n, "error": {"kind": "malformed", "message": error.to_string()}})
                .to_string()
        });
        let line = self.masker.mask(&line).into_owned();
        let found = if self.wanted.is_empty() { String::new() } else { exchange.request.to_string() };
        let outcome = refused::outcome(exchange, &self.case, &self.masker);
        let mut state = self.lock();
        state.totals.add(exchange);
        if let Some(outcome) = outcome {
            state.totals.refusals.add(outcome);
        }
        let found = self.wanted.iter().enumerate().filter(|(_, text)| found.contains(text.as_str()));
        state.totals.found.extend(found.map(|(at, _)| at));
        state.waiting.insert(exchange.n, line);
        state.write_ready();
    }

    /// Counts a request that went on without these headers or parts of its query, because they are keys of another service.
    pub fn leave_out(&self, names: &[String]) {
        self.lock().totals.left_out.get_or_insert_with(|| (0, names.join(", "))).0 += 1;
    }

    /// Returns the number of requests that have begun and are not logged yet.
    pub fn unlogged(&self) -> u64 {
        let state = self.lock();
        state.begun.saturating_sub(state.done + state.waiting.len() as u64)
    }

    /// Returns the sums over the requests so far.
    pub fn totals(&self) -> Totals {
        self.with_totals(Totals::clone)
    }

    /// Reads the sums over the requests so far, without a copy.
    pub fn with_totals<T>(&self, read: impl FnOnce(&Totals) -> T) -> T {
        read(&self.lock().totals)
    }

    /// Ends the log.
    pub fn finish(&self) -> Logged {
        let mut state = self.lock();
        // The number of an exchange that never ended is missing in the file.
        let rest = std::mem::take(&mut state.waiting);
        rest.into_values().for_each(|line| state.write(&line));
        if let Some(Err(error)) = state.out.as_mut().map(|out| out.flush()) {
            state.error.get_or_insert(error);
        }
        state.out = None;
        Logged {
            requests: state.begun,
            kept: state.kept,
            error: state.error.take(),
            totals: std::mem::take(&mut state.totals),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn write_ready(&mut self) {
        let mut any = false;
        while let Some(line) = self.waiting.remove(&(self.done + 1)) {
            self.done += 1;
            self.write(&line);
            any = true;
        }
        if let (true, Some(out)) = (any, &mut self.out)
            && let Err(error) = out.flush()
        {
            self.error.get_or_insert(error);
        }
    }

    fn write(&mut self, line: &str) {
        let length = line.len() as u64 + 1;
        if self.error.is_some() || self.bytes + length > self.most {
            return;
        }
        let Some(out) = &mut self.out else { return };
        match out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")) {
            Ok(()) => {
                self.bytes += length;
                self.kept += 1;
            }
            Err(error) => self.error = Some(error),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::Value;

    use super::super::exchange::{Models, Source};
    use super::*;

    #[derive(Clone, Default)]
    pub struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl SharedBuffer {
        /// Returns the lines so far.
        pub fn lines(&self) -> Vec<Value> {
            let bytes = self.0.lock().unwrap().clone();
            let lines = String::from_utf8(bytes).unwrap();
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        }

        fn numbers(&self) -> Vec<u64> {
            self.lines().iter().map(|line| line["n"].as_u64().unwrap()).collect()
        }
    }

    /// Makes a request without a known API.
    pub fn exchange(n: u64) -> Exchange {
        Exchange {
            n,
            at_ms: 0,
            api: None,
            method: "GET".into(),
            path: "/".into(),
            model: Models::default(),
            status: Some(200),
            request: Value::Null,
            response: Value::Null,
            stream: Vec::new(),
            usage: None,
            error: None,
            source: Source::Script,
            entry: None,
            headers: BTreeMap::new(),
            script: None,
        }
    }

    #[test]
    fn lines_are_in_the_order_of_the_requests() {
        let kept = SharedBuffer::default();
        let log = Log::new(Some(Box::new(kept.clone())), Masker::default());
        let numbers: Vec<u64> = (0..4).map(|_| log.begin()).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        log.end(&exchange(2));
        assert!(kept.numbers().is_empty());
        log.end(&exchange(1));
        assert_eq!(kept.numbers(), [1, 2]);
        log.end(&exchange(4));
        assert_eq!(log.unlogged(), 1);
        let logged = log.finish();
        assert_eq!((logged.requests, logged.kept), (4, 3));
        assert_eq!(kept.numbers(), [1, 2, 4]);
    }

    #[test]
    fn a_full_log_keeps_its_beginning() {
        let kept = SharedBuffer::default();
        let log = Log::new(Some(Box::new(kept.clone())), Masker::default());
        log.lock().most = 300;
        for _ in 0..9 {
            let n = log.begin();
            log.end(&exchange(n));
        }
        let logged = log.finish();
        assert_eq!(logged.requests, 9);
        assert!(logged.kept > 0 && logged.kept < 9, "{}", logged.kept);
        assert_eq!(kept.numbers().len() as u64, logged.kept);
    }
}

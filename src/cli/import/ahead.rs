//! Reads the lines of a recording ahead, on a thread of its own.

use std::io::{self, BufRead};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use crate::repeated_key::KeyFinder;
use crate::wire::{Dir, Lines, Reader, WireLine, repeated_key};

/// The maximum number of lines in a batch.
const MAX_BATCH_LINES: usize = 512;

/// The size in bytes at which a batch is full.
const BYTES: usize = 256 << 10;

/// The maximum number of batches that wait.
const WAITING: usize = 3;

/// The lines of a recording, which a thread reads ahead. The thread also looks for repeated keys in each line.
pub struct Ahead {
    read: Receiver<Batch>,
    /// Batches that were used, so that their memory is used again.
    used: Sender<Batch>,
    current: Batch,
    /// The next line of the current batch.
    at: usize,
    number: u64,
    is_timed: bool,
    repeated: Option<String>,
}

#[derive(Default)]
struct Batch {
    lines: Vec<Line>,
    /// The number of lines of `lines` that were read; the others only hold memory.
    count: usize,
    /// The end of the recording.
    end: Option<io::Result<()>>,
}

struct Line {
    wire: WireLine,
    number: u64,
    is_timed: bool,
    repeated: Option<String>,
}

impl Ahead {
    /// Begins to read.
    ///
    /// # Errors
    /// Returns the error of starting a thread.
    pub fn new<R: BufRead + Send + 'static>(input: R) -> io::Result<Self> {
        let (to_translate, read) = sync_channel(WAITING);
        let (used, to_read) = channel();
        thread::Builder::new().name("read".to_owned()).spawn(move || read_all(input, &to_translate, &to_read))?;
        Ok(Self { read, used, current: Batch::default(), at: 0, number: 0, is_timed: false, repeated: None })
    }
}

impl Lines for Ahead {
    fn read_line(&mut self, line: &mut WireLine) -> io::Result<bool> {
        while self.at >= self.current.count {
            if let Some(end) = self.current.end.take() {
                // A further call returns the same.
                self.current.end = Some(Ok(()));
                return end.map(|()| false);
            }
            let next = self.read.recv();
            let next = next.map_err(|_| io::Error::other("the thread that reads the recording has failed"))?;
            // If this fails, the thread has ended and needs no memory.
            let _ = self.used.send(std::mem::replace(&mut self.current, next));
            self.at = 0;
        }
        if let Some(next) = self.current.lines.get_mut(self.at) {
            std::mem::swap(line, &mut next.wire);
            (self.number, self.is_timed) = (next.number, next.is_timed);
            self.repeated = next.repeated.take();
        }
        self.at += 1;
        Ok(true)
    }

    fn is_timed(&self) -> bool {
        self.is_timed
    }

    fn line_number(&self) -> u64 {
        self.number
    }

    fn repeated_key(&mut self, _: &WireLine) -> Option<String> {
        self.repeated.take()
    }
}

/// Reads every line, until the receiver is closed.
fn read_all(input: impl BufRead, to: &SyncSender<Batch>, used: &Receiver<Batch>) {
    let mut reader = Reader::new(input);
    let mut keys = KeyFinder::default();
    loop {
        let mut batch = used.try_recv().unwrap_or_default();
        let ended = fill(&mut batch, &mut reader, &mut keys);
        if to.send(batch).is_err() || ended {
            return;
        }
    }
}

/// Fills a batch with lines. Returns true at the end of the recording.
fn fill(batch: &mut Batch, reader: &mut Reader<impl BufRead>, keys: &mut KeyFinder) -> bool {
    (batch.count, batch.end) = (0, None);
    let mut bytes = 0;
    while batch.count < MAX_BATCH_LINES && bytes < BYTES {
        if batch.lines.len() == batch.count {
            let wire = WireLine::text(0, Dir::Recv, "");
            batch.lines.push(Line { wire, number: 0, is_timed: false, repeated: None });
        }
        let Some(line) = batch.lines.get_mut(batch.count) else { break };
        match reader.read_line(&mut line.wire) {
            Ok(true) => {}
            ended => {
                batch.end = Some(ended.map(|_| ()));
                break;
            }
        }
        (line.number, line.is_timed) = (reader.line_number(), reader.is_timed());
        line.repeated = repeated_key(keys, &line.wire);
        bytes += line.wire.line.len();
        batch.count += 1;
    }
    // Memory of long lines is not kept.
    if bytes >= 2 * BYTES {
        batch.lines.truncate(batch.count);
    }
    batch.end.is_some()
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use super::*;

    #[derive(Debug, PartialEq)]
    struct AllLines {
        /// Each line with its number and its repeated key.
        lines: Vec<(WireLine, u64, Option<String>)>,
        is_timed: bool,
        error: Option<String>,
    }

    /// Reads every line.
    fn all(mut lines: impl Lines) -> AllLines {
        let (mut read, mut line) = (Vec::new(), WireLine::text(0, Dir::Recv, ""));
        loop {
            let error = match lines.read_line(&mut line) {
                Ok(true) => {
                    read.push((line.clone(), lines.line_number(), lines.repeated_key(&line)));
                    continue;
                }
                Ok(false) => None,
                Err(error) => Some(error.to_string()),
            };
            return AllLines { lines: read, is_timed: lines.is_timed(), error };
        }
    }

    #[test]
    fn lines_read_ahead_are_the_lines_of_the_recording() {
        let agent: String = (0..2000)
            .map(|n| match n % 5 {
                0 => format!("{{\"n\":{n},\"n\":1}}\r\n"),
                1 => "\n".to_owned(),
                2 => format!("{{\"text\":\"{}\"}}\n", "x".repeat(n * 3)),
                _ => format!("{{\"n\":{n}}}\n"),
            })
            .collect();
        let log: String = (0..2000)
            .map(|n| match n % 4 {
                0 => format!("{{\"at_ms\":{n},\"dir\":\"recv\",\"line\":\"{{\\\"a\\\":1,\\\"a\\\":2}}\"}}\n"),
                1 => format!("{{\"at_ms\":{n},\"dir\":\"send\",\"line\":\"{{\\\"a\\\":1,\\\"a\\\":2}}\"}}\n"),
                2 => "no line of a wire log\n".to_owned(),
                _ => "\n".to_owned(),
            })
            .collect();
        for text in [agent, log, String::new()] {
            let ahead = all(Ahead::new(std::io::Cursor::new(text.clone())).unwrap());
            assert_eq!(ahead, all(Reader::new(text.as_bytes())));
            assert_eq!(ahead.error, None);
        }
    }

    #[test]
    fn an_error_of_reading_comes_after_the_lines_before_it() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("the disk is gone"))
            }
        }
        let text = "{\"n\":1}\n".repeat(1500);
        let broken = BufReader::new(io::Cursor::new(text).chain(Broken));
        let result = all(Ahead::new(broken).unwrap());
        assert_eq!((result.lines.len(), result.error.as_deref()), (1500, Some("the disk is gone")));
    }
}

//! Reads the lines of a recording ahead, on a thread of its own, and parses them on another.

use std::io::{self, BufRead};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use crate::adapter::parsed::{Lines, Parsed, Parser, ReadLine};
use crate::repeated_key::KeyFinder;
use crate::wire::{Dir, Reader, WireLine, repeated_key};

/// The maximum number of lines in a batch.
const LINES: usize = 4096;

/// The size in bytes at which a batch is full.
const BYTES: usize = 1 << 20;

/// The maximum number of batches that wait.
const WAITING: usize = 1;

/// The number of lines that are parsed before they are passed on.
const PIECE: usize = 128;

/// The maximum number of such pieces that wait.
const PIECES: usize = 4;

/// The lines of a recording, which a thread reads ahead. The thread also looks for repeated keys in each line.
pub struct Ahead {
    read: Receiver<Batch>,
    /// Batches that were used, so that their memory is used again.
    used: Sender<Batch>,
}

#[derive(Default)]
struct Batch {
    lines: Vec<Line>,
    /// The number of lines of `lines` that were read; the others only hold memory.
    count: usize,
    is_timed: bool,
    /// The end of the recording.
    end: Option<io::Result<()>>,
}

struct Line {
    wire: WireLine,
    number: u64,
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
        Ok(Self { read, used })
    }
}

impl Lines for Ahead {
    fn each(self, parser: Option<Parser>, mut take: impl FnMut(ReadLine<'_, '_>) -> io::Result<()>) -> io::Result<()> {
        loop {
            let next = self.read.recv();
            let mut batch = next.map_err(|_| io::Error::other("the thread that reads the recording has failed"))?;
            match parser.filter(|_| batch.count > PIECE) {
                Some(parser) => batch.each_parsed(parser, &mut take)?,
                None => batch.read().try_for_each(|line| take(line.with(None, batch.is_timed)))?,
            }
            if let Some(end) = batch.end.take() {
                return end;
            }
            // If this fails, the thread has ended and needs no memory.
            let _ = self.used.send(batch);
        }
    }
}

impl Batch {
    /// Returns the lines that were read.
    fn read(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().take(self.count)
    }

    /// Calls `take` with each line, while another thread parses the lines after it.
    fn each_parsed(&self, parser: Parser, take: &mut impl FnMut(ReadLine<'_, '_>) -> io::Result<()>) -> io::Result<()> {
        let pieces = || self.lines.get(..self.count).unwrap_or_default().chunks(PIECE);
        thread::scope(|scope| {
            let (to_translate, parsed) = sync_channel::<Vec<Option<Parsed<'_>>>>(PIECES);
            let (used, to_parse) = channel::<Vec<_>>();
            let parse_all = move || {
                for piece in pieces() {
                    // What this thread parsed is dropped here: its memory is there at once for the next lines.
                    let mut parsed = to_parse.try_recv().unwrap_or_default();
                    parsed.clear();
                    parsed.extend(piece.iter().map(|line| parser.parse(&line.wire)));
                    if to_translate.send(parsed).is_err() {
                        return;
                    }
                }
                drop(to_translate);
                to_parse.iter().for_each(drop);
            };
            thread::Builder::new().name("parse".to_owned()).spawn_scoped(scope, parse_all)?;
            for piece in pieces() {
                let next = parsed.recv();
                let mut parsed =
                    next.map_err(|_| io::Error::other("the thread that parses the recording has failed"))?;
                for (line, parsed) in piece.iter().zip(&mut parsed) {
                    take(line.with(parsed.as_mut(), self.is_timed))?;
                }
                // If this fails, the thread has ended.
                let _ = used.send(parsed);
            }
            Ok(())
        })
    }
}

impl Line {
    /// Returns the line as it is translated.
    fn with<'l, 't>(&'t self, parsed: Option<&'l mut Parsed<'t>>, is_timed: bool) -> ReadLine<'l, 't> {
        ReadLine { wire: &self.wire, number: self.number, is_timed, repeated: self.repeated.clone(), parsed }
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
    while batch.count < LINES && bytes < BYTES {
        if batch.lines.len() == batch.count {
            batch.lines.push(Line { wire: WireLine::text(0, Dir::Recv, ""), number: 0, repeated: None });
        }
        let Some(line) = batch.lines.get_mut(batch.count) else { break };
        match reader.read_line(&mut line.wire) {
            Ok(true) => {}
            ended => {
                batch.end = Some(ended.map(|_| ()));
                break;
            }
        }
        line.number = reader.line_number();
        line.repeated = repeated_key(keys, &line.wire);
        bytes += line.wire.line.len();
        batch.count += 1;
    }
    // Memory of long lines is not kept.
    if bytes >= 2 * BYTES {
        batch.lines.truncate(batch.count);
    }
    batch.is_timed = reader.is_timed();
    batch.end.is_some()
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use super::*;
    use crate::harness::Adapter;

    #[derive(Debug, PartialEq)]
    struct Told {
        /// Each line with its number and its repeated key.
        lines: Vec<(WireLine, u64, Option<String>)>,
        timed: Option<bool>,
        error: Option<String>,
    }

    /// Reads every line.
    fn all(lines: impl Lines, parser: Option<Parser>) -> Told {
        let (mut read, mut timed) = (Vec::new(), None);
        let told = lines.each(parser, |line| {
            timed = Some(line.is_timed);
            read.push((line.wire.clone(), line.number, line.repeated));
            Ok(())
        });
        Told { lines: read, timed, error: told.err().map(|error| error.to_string()) }
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
            for parser in [None, Parser::of(Adapter::JsonStream)] {
                let ahead = all(Ahead::new(std::io::Cursor::new(text.clone())).unwrap(), parser);
                assert_eq!(ahead, all(Reader::new(text.as_bytes()), None));
                assert_eq!(ahead.error, None);
            }
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
        let told = all(Ahead::new(broken).unwrap(), None);
        assert_eq!((told.lines.len(), told.error.as_deref()), (1500, Some("the disk is gone")));
    }
}

//! Reads and parses the lines of a recording ahead, on a thread of its own.

use std::io::{self, BufRead};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

use crate::adapter::parsed::{Lines, Parsed, Parser, ReadLine};
use crate::repeated_key::KeyFinder;
use crate::wire::{Dir, Reader, WireLine, repeated_key};

/// The maximum number of lines in a batch.
const LINES: usize = 128;

/// The size in bytes at which a batch is full.
const BYTES: usize = 64 << 10;

/// The maximum number of batches that wait.
const WAITING: usize = 4;

/// The maximum number of batches that are read before their memory is used again.
const BATCHES: usize = 64;

/// The size in bytes at which no more batches are read before their memory is used again.
const MEMORY: usize = 4 << 20;

/// The lines of a recording, which another thread reads and parses ahead. The thread also looks for repeated keys in each
/// line.
pub struct Ahead<R> {
    reader: Reader<R>,
    keys: KeyFinder,
}

/// Lines that are passed on together.
#[derive(Default)]
struct Batch {
    lines: Vec<Line>,
    /// The number of lines of `lines` that were read; the others only hold memory.
    count: usize,
    bytes: usize,
    is_timed: bool,
    /// The end of the recording.
    end: Option<io::Result<()>>,
}

struct Line {
    wire: WireLine,
    number: u64,
    repeated: Option<String>,
}

/// The lines of a batch, parsed.
type ParsedLines<'a> = Vec<Option<Parsed<'a>>>;

impl<R: BufRead + Send> Ahead<R> {
    /// Makes a reader of a recording. Nothing is read yet.
    pub fn new(input: R) -> Self {
        Self { reader: Reader::new(input), keys: KeyFinder::default() }
    }

    /// Fills batches on another thread, parses their lines there, and calls `take` with each line.
    fn read_block(
        &mut self,
        batches: &mut [Batch],
        parser: Option<Parser>,
        take: &mut impl FnMut(ReadLine<'_, '_>) -> io::Result<()>,
    ) -> io::Result<()> {
        thread::scope(|scope| {
            let (to_translate, ready) = sync_channel(WAITING);
            let (used, to_parse) = channel();
            let read = move || self.read_ahead(batches, parser, to_translate, &to_parse);
            thread::Builder::new().name("read".to_owned()).spawn_scoped(scope, read)?;
            for (batch, mut parsed) in ready {
                for (line, parsed) in batch.read().zip(&mut parsed) {
                    take(line.with(parsed.as_mut(), batch.is_timed))?;
                }
                // If this fails, the thread has ended.
                let _ = used.send(parsed);
            }
            Ok(())
        })
    }

    fn read_ahead<'b>(
        &mut self,
        batches: &'b mut [Batch],
        parser: Option<Parser>,
        to: SyncSender<(&'b Batch, ParsedLines<'b>)>,
        used: &Receiver<ParsedLines<'b>>,
    ) {
        let mut bytes = 0;
        for batch in batches {
            batch.fill(&mut self.reader, &mut self.keys);
            let batch = &*batch;
            // What this thread parsed is dropped here: its memory is there at once for the next lines.
            let mut parsed = used.try_recv().unwrap_or_default();
            parsed.clear();
            parsed.extend(batch.read().map(|line| parser?.parse(&line.wire)));
            bytes += batch.bytes;
            if to.send((batch, parsed)).is_err() || batch.end.is_some() || bytes >= MEMORY {
                break;
            }
        }
        drop(to);
        used.iter().for_each(drop);
    }
}

impl<R: BufRead + Send> Lines for Ahead<R> {
    fn each(
        mut self,
        parser: Option<Parser>,
        mut take: impl FnMut(ReadLine<'_, '_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut batches: Vec<Batch> = (0..BATCHES).map(|_| Batch::default()).collect();
        loop {
            self.read_block(&mut batches, parser, &mut take)?;
            if let Some(end) = batches.iter_mut().find_map(|batch| batch.end.take()) {
                return end;
            }
        }
    }
}

impl Batch {
    /// Returns the lines that were read.
    fn read(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().take(self.count)
    }

    /// Reads lines until the batch is full, or to the end of the recording.
    fn fill(&mut self, reader: &mut Reader<impl BufRead>, keys: &mut KeyFinder) {
        (self.count, self.bytes) = (0, 0);
        while self.count < LINES && self.bytes < BYTES {
            if self.lines.len() == self.count {
                self.lines.push(Line { wire: WireLine::text(0, Dir::Recv, ""), number: 0, repeated: None });
            }
            let Some(line) = self.lines.get_mut(self.count) else { break };
            // Memory of long lines is not kept.
            if line.wire.line.capacity() > BYTES {
                line.wire.line = String::new();
            }
            match reader.read_line(&mut line.wire) {
                Ok(true) => {}
                ended => {
                    self.end = Some(ended.map(|_| ()));
                    break;
                }
            }
            line.number = reader.line_number();
            line.repeated = repeated_key(keys, &line.wire);
            self.bytes += line.wire.line.len();
            self.count += 1;
        }
        self.is_timed = reader.is_timed();
    }
}

impl Line {
    /// Returns the line as it is translated.
    fn with<'l, 't>(&'t self, parsed: Option<&'l mut Parsed<'t>>, is_timed: bool) -> ReadLine<'l, 't> {
        ReadLine { wire: &self.wire, number: self.number, is_timed, repeated: self.repeated.clone(), parsed }
    }
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
                let ahead = all(Ahead::new(std::io::Cursor::new(text.clone())), parser);
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
        let told = all(Ahead::new(broken), None);
        assert_eq!((told.lines.len(), told.error.as_deref()), (1500, Some("the disk is gone")));
    }
}

//! Writes the events of a trace on a thread of its own, while the next lines are translated.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use crate::trace::{Event, jsonl};

/// The maximum number of events in a batch.
const EVENTS: usize = 256;

/// The maximum number of batches that wait.
const WAITING: usize = 3;

/// Writes events on a thread of its own, in their order.
pub struct Behind<W> {
    current: Vec<Event>,
    to_write: SyncSender<Vec<Event>>,
    /// Batches that were written. Their events are dropped here.
    written: Receiver<Vec<Event>>,
    thread: JoinHandle<io::Result<W>>,
}

impl<W: Write + Send + 'static> Behind<W> {
    /// Begins to write to `out`.
    ///
    /// # Errors
    /// Returns the error of starting a thread.
    pub fn new(out: W) -> io::Result<Self> {
        let (to_write, events) = sync_channel(WAITING);
        let (used, written) = channel();
        let thread = thread::Builder::new().name("write".to_owned()).spawn(move || write_all(out, &events, &used))?;
        Ok(Self { current: Vec::with_capacity(EVENTS), to_write, written, thread })
    }

    /// Takes an event. If writing has failed, [`Behind::finish`] returns the error.
    ///
    /// # Errors
    /// Returns an error if writing has failed.
    pub fn event(&mut self, event: Event) -> io::Result<()> {
        self.current.push(event);
        if self.current.len() < EVENTS { Ok(()) } else { self.pass_on() }
    }

    fn pass_on(&mut self) -> io::Result<()> {
        let mut empty = self.written.try_recv().unwrap_or_else(|_| Vec::with_capacity(EVENTS));
        // Events are dropped by the thread that made them: their memory is there at once for the next ones.
        empty.clear();
        let full = std::mem::replace(&mut self.current, empty);
        self.to_write.send(full).map_err(|_| io::Error::other("the trace could not be written"))
    }

    /// Writes the last events, and returns what was written to.
    ///
    /// # Errors
    /// Returns the error of writing.
    pub fn finish(mut self) -> io::Result<W> {
        let passed = self.pass_on();
        let Self { to_write, thread, .. } = self;
        drop(to_write);
        let out = thread.join().map_err(|_| io::Error::other("the thread that writes the trace has failed"))??;
        passed.map(|()| out)
    }
}

/// Writes every event, until no more can come.
fn write_all<W: Write>(mut out: W, events: &Receiver<Vec<Event>>, used: &Sender<Vec<Event>>) -> io::Result<W> {
    while let Ok(batch) = events.recv() {
        for event in &batch {
            jsonl::write_event(&mut out, event)?;
        }
        // The last batches are not needed any more.
        let _ = used.send(batch);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Body;

    fn event(seq: u64) -> Event {
        let text = seq.to_string();
        let body = Body::Notice { code: "n".into(), text, line: None, lost: None, action: None, link: None };
        Event { seq, at_ms: 0, body, parent: None, host: false }
    }

    #[test]
    fn events_are_written_in_their_order() {
        let mut events = Behind::new(Vec::new()).unwrap();
        let mut expected = Vec::new();
        for seq in 0..2000 {
            jsonl::write_event(&mut expected, &event(seq)).unwrap();
            events.event(event(seq)).unwrap();
        }
        assert_eq!(events.finish().unwrap(), expected);
    }

    #[test]
    fn the_error_of_writing_is_returned_at_the_end() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(bytes.len()).ok_or(io::Error::other("the disk is full"))?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for count in [100, 5000] {
            let mut events = Behind::new(Full(1000)).unwrap();
            let passed = (0..count).try_for_each(|seq| events.event(event(seq)));
            assert_eq!(events.finish().err().map(|error| error.to_string()).as_deref(), Some("the disk is full"));
            assert!(count == 100 || passed.is_err());
        }
    }
}

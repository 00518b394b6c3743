//! Writes the files of each trial into the document, compressed, within limits.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use strum::{EnumCount, IntoStaticStr};

use super::places::{Places, Trial};
use super::{lines, running, shapes};
use crate::harness::Manifest;
use crate::regular;
use crate::report::Report;
use crate::run::folder::RunFolder;
use crate::verdict::Verdict;
use crate::word::word;

/// The maximum size of all evidence in the document, compressed and encoded, in bytes. A browser holds a page of
/// this size in less than 1 GB.
const ALL: u64 = 256 << 20;

/// The level of compression. The default level, 6, needs 2.5 times the time for traces that are 7 % smaller.
const LEVEL: u32 = 4;

/// A part of a trial's evidence. The order is the order in which the limit is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, EnumCount, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Part {
    /// The trace.
    Events,
    /// The change of the workspace.
    Patch,
    /// Standard error.
    Stderr,
    /// The shape of the trace, for alignment with another trial.
    Shape,
    /// The exchanges with the model.
    Model,
    /// The wire log.
    Wire,
    /// The lines of the wire log by event.
    Lines,
}

word!(Part);

impl Part {
    const ALL: [Part; Part::COUNT] =
        [Part::Events, Part::Patch, Part::Stderr, Part::Shape, Part::Model, Part::Wire, Part::Lines];

    /// Returns true if the part is computed from a file, and is not the file itself.
    fn is_derived(self) -> bool {
        matches!(self, Part::Shape | Part::Lines)
    }

    /// Returns the file that a part is made of, and the maximum number of its bytes.
    fn file(self) -> (&'static str, u64) {
        match self {
            Part::Events => ("trace.jsonl", 256 << 20),
            Part::Patch => ("workspace.patch", 16 << 20),
            Part::Stderr => ("stderr.log", 4 << 20),
            Part::Shape => ("trace.jsonl", shapes::MAX_TRACE_BYTES),
            Part::Model => ("llm.jsonl", 64 << 20),
            Part::Wire => ("wire.jsonl", 64 << 20),
            Part::Lines => ("wire.jsonl", lines::MAX_WIRE_BYTES),
        }
    }
}

/// A part that is computed from a file.
#[derive(Debug)]
enum Derived {
    /// There is nothing to compute it from.
    Nothing,
    /// The content.
    Text(String),
    /// The reason why it is left out.
    LeftOut(String),
}

/// Computes a part from the files of a trial.
fn derive(part: Part, manifest: Option<&Manifest>, at: &Path) -> Derived {
    let (name, most) = part.file();
    let Ok(file) = regular::open_own(at.join(name)) else { return Derived::Nothing };
    let size = file.metadata().map_or(0, |it| it.len());
    match part {
        _ if size == 0 => Derived::Nothing,
        Part::Shape if size > most => Derived::LeftOut("the trace is too long to be aligned with another".to_owned()),
        Part::Shape => shapes::of_trace(file).map_or_else(Derived::LeftOut, Derived::Text),
        Part::Lines if size <= most => {
            manifest.and_then(|manifest| lines::of_log(manifest, file)).map_or(Derived::Nothing, Derived::Text)
        }
        _ => Derived::Nothing,
    }
}

fn too_much() -> String {
    format!("the evidence of this run is larger than {} MB", ALL >> 20)
}

/// A file that the document leaves out.
#[derive(Debug, Serialize)]
pub struct LeftOut {
    /// The place of the trial.
    pub place: String,
    pub part: Part,
    /// The reason, and where the whole is.
    pub why: String,
}

/// Writes the evidence of all trials, and returns what was left out. Trials that did not pass come first, so that a
/// limit costs them last.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn write(report: &Report, places: &Places<'_>, out: &mut dyn Write) -> io::Result<Vec<LeftOut>> {
    let folder = RunFolder::open(&report.folder);
    let mut order: Vec<(usize, &Trial<'_>)> = places.trials.iter().enumerate().collect();
    order.sort_by_key(|(_, trial)| trial.verdict() == Some(Verdict::Pass));
    let manifests = report.run.harnesses.iter().map(|it| (&*it.name, &it.manifest)).collect();
    let mut writing = Writing { out, spent: 0, left_out: Vec::new(), manifests };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(8);
    for part in Part::ALL {
        if part.is_derived() {
            for chunk in order.chunks(threads) {
                let made = writing.derived(chunk, part, &folder);
                for ((number, trial), made) in chunk.iter().zip(made) {
                    writing.write_derived(*number, trial, part, made)?;
                }
            }
            continue;
        }
        for (number, trial) in &order {
            match folder.stored_trial(&trial.id) {
                Ok(at) if part == Part::Events && trial.running => writing.so_far(*number, trial, &at)?,
                Ok(at) => writing.part(*number, trial, part, &at)?,
                Err(error) => writing.leave_out(trial, part, error.to_string()),
            }
        }
    }
    Ok(writing.left_out)
}

struct Writing<'a> {
    out: &'a mut dyn Write,
    spent: u64,
    left_out: Vec<LeftOut>,
    manifests: HashMap<&'a str, &'a Manifest>,
}

impl Writing<'_> {
    fn part(&mut self, number: usize, trial: &Trial<'_>, part: Part, at: &Path) -> io::Result<()> {
        let (name, most) = part.file();
        let path = at.join(name);
        let file = match regular::open_own(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                self.leave_out(trial, part, format!("{} is not read: {error}", path.display()));
                return Ok(());
            }
        };
        let size = file.metadata().map_or(0, |it| it.len());
        if size == 0 {
            return Ok(());
        }
        if self.spent >= ALL {
            let why = format!("{}; the file is {}", too_much(), path.display());
            self.leave_out(trial, part, why);
            return Ok(());
        }
        self.file(number, trial, part, (file, &path), most)
    }

    /// Writes the events of a running trial, whose trace does not exist yet, from its wire log.
    fn so_far(&mut self, number: usize, trial: &Trial<'_>, at: &Path) -> io::Result<()> {
        let manifest = self.manifests.get(&*trial.id.harness);
        let Some((manifest, file)) = manifest.zip(regular::open_own(at.join("wire.jsonl")).ok()) else { return Ok(()) };
        if self.spent >= ALL {
            self.leave_out(trial, Part::Events, too_much());
            return Ok(());
        }
        match running::events(manifest, file) {
            Ok(text) => self.compressed(number, Part::Events, &mut &*text),
            Err(error) => {
                self.leave_out(trial, Part::Events, format!("its wire log cannot be read so far: {error}"));
                Ok(())
            }
        }
    }

    /// Derives a part of several trials at once: it takes longer to make than to write.
    fn derived(&self, trials: &[(usize, &Trial<'_>)], part: Part, folder: &RunFolder) -> Vec<Derived> {
        if self.spent >= ALL {
            return trials.iter().map(|_| Derived::LeftOut(too_much())).collect();
        }
        thread::scope(|scope| {
            let making = trials.iter().map(|(_, trial)| {
                let (manifest, at) = (self.manifests.get(&*trial.id.harness).copied(), folder.stored_trial(&trial.id));
                scope.spawn(move || at.map_or(Derived::Nothing, |at| derive(part, manifest, &at)))
            });
            let making: Vec<_> = making.collect();
            let failed = || Derived::LeftOut("it could not be computed".to_owned());
            making.into_iter().map(|made| made.join().unwrap_or_else(|_| failed())).collect()
        })
    }

    fn write_derived(&mut self, number: usize, trial: &Trial<'_>, part: Part, made: Derived) -> io::Result<()> {
        match made {
            Derived::Text(text) => return self.compressed(number, part, &mut text.as_bytes()),
            // Without the lines of events, the page finds them by time.
            Derived::LeftOut(why) if part == Part::Shape && trial.result.is_some() => self.leave_out(trial, part, why),
            Derived::LeftOut(_) | Derived::Nothing => {}
        }
        Ok(())
    }

    fn file(
        &mut self,
        number: usize,
        trial: &Trial<'_>,
        part: Part,
        (file, path): (File, &PathBuf),
        most: u64,
    ) -> io::Result<()> {
        let mut lines = WholeLines {
            input: BufReader::with_capacity(64 << 10, file),
            left: most,
            line: Vec::new(),
            at: 0,
            cut: false,
            failed: None,
        };
        self.compressed(number, part, &mut lines)?;
        if let Some(error) = lines.failed {
            self.leave_out(trial, part, format!("{} could not be read to its end: {error}", path.display()));
        } else if lines.cut {
            let why =
                format!("only the first {} MB are in this page; the whole file is {}", most >> 20, path.display());
            self.leave_out(trial, part, why);
        }
        Ok(())
    }

    /// Writes a data block with compressed content.
    fn compressed(&mut self, number: usize, part: Part, content: &mut dyn Read) -> io::Result<()> {
        write!(self.out, "<script type=\"text/plain\" id=\"t{number}-{}\">", part.word())?;
        let mut counted = Counted { out: &mut *self.out, bytes: 0 };
        let mut encoder = ZlibEncoder::new(EncoderWriter::new(&mut counted, &STANDARD), Compression::new(LEVEL));
        io::copy(content, &mut encoder)?;
        encoder.finish()?.finish()?;
        self.spent += counted.bytes;
        self.out.write_all(b"</script>\n")
    }

    fn leave_out(&mut self, trial: &Trial<'_>, part: Part, why: String) {
        self.left_out.push(LeftOut { place: trial.place.clone(), part, why });
    }
}

/// Reads whole lines of a file until a limit. An error of the file ends the lines, and is kept.
struct WholeLines {
    input: BufReader<File>,
    left: u64,
    line: Vec<u8>,
    at: usize,
    cut: bool,
    failed: Option<io::Error>,
}

impl Read for WholeLines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.line.len() {
            self.line.clear();
            self.at = 0;
            if self.cut || self.failed.is_some() {
                return Ok(0);
            }
            let most = self.left.saturating_add(1);
            if let Err(error) = (&mut self.input).take(most).read_until(b'\n', &mut self.line) {
                self.failed = Some(error);
                self.line.clear();
                return Ok(0);
            }
            match self.left.checked_sub(self.line.len() as u64) {
                Some(left) => self.left = left,
                None => {
                    self.cut = true;
                    self.line.clear();
                }
            }
        }
        let rest = self.line.get(self.at..).unwrap_or_default();
        let taken = rest.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(rest) {
            *to = *from;
        }
        self.at += taken;
        Ok(taken)
    }
}

/// Counts the written bytes.
struct Counted<'a> {
    out: &'a mut dyn Write,
    bytes: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

//! Reads the stored data of trials that reports need besides the results: final answers, earlier attempts, and the
//! agent's identity.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use crate::gateway::exchange::{Exchange, Source};
use crate::regular;
use crate::result::TrialResult;
use crate::run::read_json;
use crate::trace::jsonl::{Reader, read_event};
use crate::trace::{Agent, Body};

/// The maximum length in bytes of a last line that is read for a report.
const MAX_LINE_BYTES: u64 = 32 << 20;
/// The number of bytes that are read at a time.
const BLOCK: u64 = 8 << 10;

/// Returns the final answer of a trial, from the last line of its trace. Returns `None` without a trace, or
/// without an answer in it.
pub fn answer(trial: &Path) -> Option<String> {
    let mut file = regular::open_own(trial.join("trace.jsonl")).ok()?;
    let line = last_line(&mut file).ok()??;
    match read_event(&line)?.body {
        Body::Stop(stop) => stop.output.filter(|output| !output.trim().is_empty()),
        _ => None,
    }
}

/// Returns the last non-empty line of a file, read from its end, or `None` if the line is too long.
fn last_line(file: &mut (impl Read + Seek)) -> io::Result<Option<Vec<u8>>> {
    let end = file.seek(SeekFrom::End(0))?;
    let mut start = end;
    let mut tail: Vec<u8> = Vec::new();
    while start > 0 && end - start < MAX_LINE_BYTES {
        // The step grows, so that a long line is not copied once for each block.
        let step = BLOCK.max(end - start).min(start);
        start -= step;
        file.seek(SeekFrom::Start(start))?;
        let mut block = vec![0; usize::try_from(step).unwrap_or_default()];
        file.read_exact(&mut block)?;
        block.extend_from_slice(&tail);
        tail = block;
        let ended = tail.trim_ascii_end().len();
        let line = tail.get(..ended).unwrap_or_default();
        if let Some(at) = memchr::memrchr(b'\n', line) {
            return Ok(line.get(at + 1..).map(<[u8]>::to_vec));
        }
    }
    Ok((start == 0).then(|| tail.trim_ascii_end().to_vec()).filter(|line| !line.is_empty()))
}

/// Returns the attempts before a trial's last one, as far as their results can be read.
pub fn earlier_attempts(trial: &Path, result: &TrialResult) -> Vec<TrialResult> {
    let attempts = trial.join("attempts");
    let read = |number: u32| read_json(&attempts.join(number.to_string()).join("result.json")).ok();
    (1..result.attempt).filter_map(read).collect()
}

/// Returns how the agent of a trial identified itself.
pub fn agent(trial: &Path) -> Option<Agent> {
    let file = regular::open_own(trial.join("trace.jsonl")).ok()?;
    Reader::new(BufReader::new(file)).ok()?.header().agent.clone()
}

/// Returns true if a script answered instead of the agent's model.
pub fn model_was_scripted(trial: &Path) -> bool {
    let scripted =
        |line: String| serde_json::from_str::<Exchange>(&line).is_ok_and(|exchange| exchange.source == Source::Script);
    let first =
        regular::open_own(trial.join("llm.jsonl")).ok().and_then(|file| BufReader::new(file).lines().next()?.ok());
    // Runs of older versions have a log of the script alone.
    first.is_some_and(scripted) || trial.join("model.jsonl").is_file()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn the_last_line_is_found_however_long_the_lines_are() {
        let read = |text: &str| last_line(&mut Cursor::new(text.as_bytes().to_vec())).unwrap();
        assert_eq!(read(""), None);
        assert_eq!(read("\n\n"), None);
        assert_eq!(read("one"), Some(b"one".to_vec()));
        assert_eq!(read("one\ntwo\n\n"), Some(b"two".to_vec()));
        for length in [1, 8_190, 8_191, 8_192, 8_193, 40_000] {
            let last = "x".repeat(length);
            assert_eq!(read(&format!("first\n{last}\n")), Some(last.clone().into_bytes()), "{length}");
            assert_eq!(read(&format!("{}\n{last}", "y".repeat(20_000))), Some(last.into_bytes()), "{length}");
        }
    }
}

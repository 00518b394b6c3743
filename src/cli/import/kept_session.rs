//! Reads a session file that an agent kept on disk, with the files of its sub-agents, for `evals import` and `evals
//! case from-session`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::adapter::Translation;
use crate::adapter::session_file::{self, Format, Formats, SessionError, Source, SubAgent, document};
use crate::cli::CliError;
use crate::secrets::{Masker, known_forms};
use crate::wire::WireLine;
use crate::{own_environment, regular};

/// An input that can be read from its beginning again.
pub trait Again: Read + Seek + Send {}
impl<T: Read + Seek + Send> Again for T {}

/// The request to read a session file.
pub struct Request<'a> {
    /// The format of the file.
    pub format: &'a Format,
    /// The harness that the user named.
    pub harness: Option<String>,
    /// The branch that the user chose.
    pub branch: Option<&'a str>,
    /// The path of the file, beside which the files of sub-agents are; absent for standard input.
    pub path: Option<&'a Path>,
    /// The file.
    pub input: Box<dyn Again>,
}

/// Translates a session file and calls `watch` after each line. Secrets are masked in every line before it is
/// translated.
///
/// # Errors
/// Returns an error if the file cannot be read, or the branch is not in it.
pub fn translated(
    request: Request<'_>,
    watch: impl FnMut(&WireLine, u64, &mut Translation) -> std::io::Result<()>,
) -> Result<Translation, CliError> {
    let Request { format, harness, branch, path, mut input } = request;
    input.rewind()?;
    let survey = session_file::survey(format, BufReader::new(&mut input), branch).map_err(failed)?;
    input.rewind()?;
    let (sub_agents, left_out) = match path.filter(|_| format.has_sub_agents_beside()) {
        Some(path) => sub_agents(format, path, &survey.started)?,
        None => (Vec::new(), Vec::new()),
    };
    let input = BufReader::new(input);
    let source = Source { format, harness, survey, input, sub_agents, left_out };
    let env = own_environment::texts();
    let masker = Masker::of_env(env.iter().map(|(name, value)| (name.as_str(), value.as_str())), &[]);
    Ok(session_file::translated(source, &|line| mask(&masker, line), watch)?)
}

fn failed(error: SessionError) -> CliError {
    match error {
        SessionError::Io(error) => error.into(),
        SessionError::Branch(error) => CliError::unreadable(error),
    }
}

/// Masks the secrets of this program's environment, and secrets with a known form.
fn mask<'a>(masker: &Masker, line: &'a str) -> Cow<'a, str> {
    match masker.mask(line) {
        Cow::Borrowed(line) => known_forms::mask(line),
        Cow::Owned(line) => Cow::Owned(known_forms::mask(&line).into_owned()),
    }
}

/// The sub-agents with files of their own, and the names of the files that could not be used.
type Beside = (Vec<SubAgent<BufReader<Box<dyn Again>>>>, Vec<String>);

/// The part of a sub-agent's sidecar that names the call that started it.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Sidecar {
    tool_use_id: Option<String>,
}

/// Returns the sub-agents of a session, and the names of the files for which no call is known. The files are in the folder of
/// the session; those of older versions are beside it. `started` holds the calls that the session names.
fn sub_agents(format: &Format, path: &Path, started: &HashMap<String, String>) -> Result<Beside, CliError> {
    let folder = path.with_extension("").join("subagents");
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let id = name.strip_prefix("agent-").and_then(|name| name.strip_suffix(".jsonl"));
        files.extend(id.map(|id| (id.to_owned(), entry.path())));
    }
    // Files beside the session may belong to other sessions.
    let beside = started.keys().map(|id| (id.clone(), path.with_file_name(format!("agent-{id}.jsonl"))));
    let is_new = |(id, file): &(String, PathBuf)| file.is_file() && !files.iter().any(|(known, _)| known == id);
    let beside: Vec<_> = beside.filter(is_new).collect();
    files.extend(beside);
    files.sort();
    let mut read = Vec::new();
    for (id, file) in files {
        let opened = regular::open(&file)
            .map_err(|error| CliError::unreadable(format!("could not read {}: {error}", file.display())));
        let mut input: Box<dyn Again> = Box::new(opened?);
        let survey = session_file::survey(format, BufReader::new(&mut input), None).map_err(failed)?;
        input.rewind()?;
        read.push((id, file, survey, input));
    }
    let mut started = started.clone();
    started.extend(read.iter().flat_map(|(_, _, survey, _)| survey.started.clone()));
    let (mut agents, mut left_out) = (Vec::new(), Vec::new());
    for (id, file, survey, input) in read {
        let sidecar = regular::read(file.with_extension("meta.json")).ok();
        let sidecar = sidecar.and_then(|bytes| serde_json::from_slice::<Sidecar>(&bytes).ok());
        match sidecar.and_then(|sidecar| sidecar.tool_use_id).or_else(|| started.get(&id).cloned()) {
            Some(call) => agents.push(SubAgent { id, call, survey, input: BufReader::new(input) }),
            None => left_out.push(format!("agent-{id}.jsonl")),
        }
    }
    Ok((agents, left_out))
}

/// The beginning of a database of SQLite.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Opens an input that can be read from its beginning again. If it is a single JSON document of a known session format,
/// its lines are made of the document, in memory.
///
/// # Errors
/// Returns an error if the file cannot be read, or is a database.
pub fn lines(formats: &Formats, path: &Path) -> Result<Box<dyn Again>, CliError> {
    let mut file = super::again(path)?;
    let mut begin = Vec::new();
    (&mut file).take(SQLITE.len() as u64).read_to_end(&mut begin)?;
    file.rewind()?;
    if begin == SQLITE {
        return Err(CliError::unreadable(format!(
            "{} is a database, which is not read; if it is the one of OpenCode, list its sessions with `opencode session \
             list`, and export one with `opencode export SESSION > session.json`",
            path.display()
        )));
    }
    let mut mark = [0; 4];
    let mark = regular::BOM.encode_utf8(&mut mark).as_bytes();
    let text = begin.strip_prefix(mark).unwrap_or(&begin);
    let start = SeekFrom::Start(if text.len() < begin.len() { mark.len() as u64 } else { 0 });
    file.seek(start)?;
    if text.trim_ascii_start().starts_with(b"{") && document::is_one_value(BufReader::new(&mut file))? {
        file.seek(start)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        if let Some(lines) = document::lines(formats, &String::from_utf8_lossy(&bytes)) {
            return Ok(Box::new(Cursor::new(lines.into_bytes())));
        }
    }
    file.rewind()?;
    Ok(file)
}

/// Opens a file for reading, and refuses a folder.
///
/// # Errors
/// Returns an error that names the file.
pub fn open(path: &Path) -> Result<File, CliError> {
    let failed = |error| CliError::unreadable(format!("could not read {}: {error}", path.display()));
    let file = File::open(path).map_err(failed)?;
    if file.metadata().is_ok_and(|meta| meta.is_dir()) {
        return Err(CliError::unreadable(format!("{} is a folder, not a recording", path.display())));
    }
    Ok(file)
}

//! The demo agent's tools, which change the workspace and nothing outside it.

use std::fs;
use std::io::{self, PipeReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::script::{Edit, Read, Run, Search, Tool};
use crate::regular;
use crate::trace::view::normalise;

/// The maximum number of bytes of a result that are shown.
pub const SHOWN: usize = 256 << 10;

/// The folder in which the demo agent works.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    real: PathBuf,
}

#[derive(Debug, Default)]
pub struct CallOutcome {
    pub failed: bool,
    /// The result, as the model reads it.
    pub text: String,
    /// The changes to files.
    pub diffs: Vec<Diff>,
    /// The exit status of a command that ran to its end.
    pub exit: Option<ExitStatus>,
    /// The id of the client's terminal that shows the result.
    pub terminal: Option<String>,
}

/// The change of a file.
#[derive(Debug)]
pub struct Diff {
    /// The file's absolute path.
    pub path: String,
    /// The text before the change. Absent if the file did not exist.
    pub old: Option<String>,
    /// The text after the change. Empty if the file was deleted.
    pub new: String,
}

impl CallOutcome {
    /// Makes the outcome of a failed call, with its result.
    pub fn failed(text: impl Into<String>) -> Self {
        Self { failed: true, text: text.into(), ..Self::default() }
    }

    /// Makes the outcome of a successful call, with its result.
    pub fn succeeded(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Makes the outcome of a call that changed a file.
    pub fn changed(text: String, path: String, old: Option<String>, new: &str) -> Self {
        Self { text, diffs: vec![Diff { path, old, new: new.to_owned() }], ..Self::default() }
    }
}

impl Workspace {
    /// Makes the workspace of an existing folder.
    ///
    /// # Errors
    /// Returns an error if the folder does not exist.
    pub fn new(root: &Path) -> io::Result<Self> {
        let real = fs::canonicalize(root)?;
        if !real.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        Ok(Self { root: normalise(root), real })
    }

    /// Returns a path of the script as an absolute path, for display.
    pub fn absolute(&self, path: &str) -> String {
        normalise(&self.root.join(path)).to_string_lossy().into_owned()
    }

    /// Carries out a call. A long call checks from time to time whether it was cancelled.
    pub fn perform(&self, tool: Tool, cancelled: &dyn Fn() -> bool) -> CallOutcome {
        let outcome = match tool {
            Tool::Read(step) => self.read(step),
            Tool::Search(step) => self.search(step),
            Tool::Write(step) => self.write(&step.path, &step.text),
            Tool::Edit(step) => self.edit(step),
            Tool::Delete(step) => self.delete(&step.path),
            Tool::Move(step) => self.rename(&step.from, &step.to),
            Tool::Run(step) => self.run(step, cancelled),
            Tool::Fetch(step) => Ok(CallOutcome::succeeded(bounded(step.output.as_bytes(), 0))),
        };
        outcome.unwrap_or_else(CallOutcome::failed)
    }

    fn read(&self, step: &Read) -> Result<CallOutcome, String> {
        let path = &step.path;
        let mut bytes = regular::read(self.inside(path, true)?).map_err(|error| format!("{path}: {error}"))?;
        if step.line.is_some() || step.limit.is_some() {
            let first = usize::try_from(step.line.unwrap_or(1).max(1) - 1).unwrap_or(usize::MAX);
            let most = step.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
            bytes = bytes.split_inclusive(|byte| *byte == b'\n').skip(first).take(most).flatten().copied().collect();
        }
        Ok(CallOutcome::succeeded(bounded(&bytes, 0)))
    }

    fn search(&self, step: &Search) -> Result<CallOutcome, String> {
        let start = self.inside(&step.path, true)?;
        if !start.exists() {
            return Err(format!("{}: no such file or folder", step.path));
        }
        let mut found = String::new();
        self.search_in(&start, &step.pattern, &mut found);
        Ok(CallOutcome::succeeded(if found.is_empty() {
            "no matches".to_owned()
        } else {
            bounded(found.as_bytes(), 0)
        }))
    }

    fn search_in(&self, path: &Path, pattern: &str, found: &mut String) {
        if found.len() > SHOWN {
            return;
        }
        if path.is_dir() {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            let mut below: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
            below.sort();
            for path in below {
                // A link may point outside the workspace, or to a parent folder.
                if !path.is_symlink() && path.file_name().is_none_or(|name| name != ".git") {
                    self.search_in(&path, pattern, found);
                }
            }
            return;
        }
        let Ok(text) = text_of(path) else { return };
        let shown = path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy();
        for (n, line) in text.lines().enumerate().filter(|(_, line)| line.contains(pattern)) {
            found.push_str(&format!("{shown}:{}:{line}\n", n + 1));
        }
    }

    fn write(&self, path: &str, text: &str) -> Result<CallOutcome, String> {
        let target = self.inside(path, true)?;
        // Opening a pipe waits for a reader.
        if target.metadata().is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
            return Err(format!("{path}: this is a pipe, a socket or a device, not a regular file"));
        }
        let old = text_of(&target).ok();
        make_parent(&target, path)?;
        fs::write(&target, text).map_err(|error| format!("{path}: {error}"))?;
        let result = format!("wrote {} bytes to {path}", text.len());
        Ok(CallOutcome::changed(result, self.absolute(path), old, text))
    }

    fn edit(&self, step: &Edit) -> Result<CallOutcome, String> {
        let Edit { path, old, new, .. } = step;
        let target = self.inside(path, true)?;
        let text = text_of(&target).map_err(|error| format!("{path}: {error}"))?;
        if old.is_empty() {
            return Err(format!("{path}: `old` is empty"));
        }
        match text.matches(old.as_str()).count() {
            1 => {
                let changed = text.replacen(old.as_str(), new, 1);
                fs::write(&target, &changed).map_err(|error| format!("{path}: {error}"))?;
                Ok(CallOutcome::changed(format!("edited {path}"), self.absolute(path), Some(text), &changed))
            }
            0 => Err(format!("{path}: the text to replace is not found")),
            n => Err(format!("{path}: the text to replace is found {n} times")),
        }
    }

    fn delete(&self, path: &str) -> Result<CallOutcome, String> {
        let target = self.inside(path, false)?;
        let failed = |error: io::Error| format!("{path}: {error}");
        let result = format!("deleted {path}");
        if fs::symlink_metadata(&target).map_err(failed)?.is_dir() {
            fs::remove_dir_all(&target).map_err(failed)?;
            return Ok(CallOutcome::succeeded(result));
        }
        let old = if target.is_symlink() { None } else { text_of(&target).ok() };
        fs::remove_file(&target).map_err(failed)?;
        Ok(match old {
            Some(old) => CallOutcome::changed(result, self.absolute(path), Some(old), ""),
            None => CallOutcome::succeeded(result),
        })
    }

    fn rename(&self, from: &str, to: &str) -> Result<CallOutcome, String> {
        let (source, target) = (self.inside(from, false)?, self.inside(to, false)?);
        make_parent(&target, to)?;
        fs::rename(&source, &target).map_err(|error| format!("{from} to {to}: {error}"))?;
        Ok(CallOutcome::succeeded(format!("moved {from} to {to}")))
    }

    fn run(&self, step: &Run, cancelled: &dyn Fn() -> bool) -> Result<CallOutcome, String> {
        let failed = |error: io::Error| format!("the command could not be started: {error}");
        // A common pipe for both streams keeps their lines in order.
        let (output, end) = io::pipe().map_err(failed)?;
        let mut command = Command::new("sh");
        command.arg("-c").arg(&step.command).current_dir(&self.root).stdin(Stdio::null());
        command.stdout(end.try_clone().map_err(failed)?).stderr(end);
        let mut child = command.spawn().map_err(failed)?;
        // The command holds the ends of the pipe: as long as it exists, the output stays open.
        drop(command);
        let output = Output::collect(output);
        let mut exited = None;
        let mut pause = Duration::from_micros(500);
        let exit = loop {
            match exited {
                None => {
                    if let Some(exit) =
                        child.try_wait().map_err(|error| format!("could not wait for the command: {error}"))?
                    {
                        exited = Some((exit, Instant::now()));
                        continue;
                    }
                }
                // Processes that the command left in the background may hold the output open for long.
                Some((exit, at)) if output.is_closed() || at.elapsed() > Duration::from_millis(200) => break exit,
                Some(_) => {}
            }
            if exited.is_none() && cancelled() {
                let _ = child.kill();
                let _ = child.wait();
                return Err("cancelled".to_owned());
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(10));
        };
        Ok(CallOutcome { failed: !exit.success(), text: output.text(), exit: Some(exit), ..CallOutcome::default() })
    }

    /// Returns a path of the script, if it lies in the workspace. With `follow`, the target of a link must lie there
    /// too.
    fn inside(&self, path: &str, follow: bool) -> Result<PathBuf, String> {
        let outside = || format!("{path}: outside of the workspace");
        let target = normalise(&self.root.join(path));
        let below = target.strip_prefix(&self.root).or_else(|_| target.strip_prefix(&self.real));
        let below = below.map_err(|_| outside())?.to_owned();
        if !follow && below.as_os_str().is_empty() {
            return Err(format!("{path}: this is the workspace itself"));
        }
        let target = self.root.join(&below);
        let mut there = if follow { Some(target.as_path()) } else { target.parent() };
        while let Some(path) = there {
            if path.symlink_metadata().is_ok() {
                break;
            }
            there = path.parent();
        }
        // The target of a dangling link is unknown, so the link counts as leading outside.
        match there.map(fs::canonicalize) {
            Some(Ok(real)) if real.starts_with(&self.real) => Ok(target),
            _ => Err(outside()),
        }
    }
}

fn make_parent(target: &Path, path: &str) -> Result<(), String> {
    match target.parent() {
        Some(parent) => fs::create_dir_all(parent).map_err(|error| format!("{path}: {error}")),
        None => Ok(()),
    }
}

/// Returns the text of a regular file. A pipe of an earlier command is refused at once.
fn text_of(path: &Path) -> io::Result<String> {
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "the file is not UTF-8");
    String::from_utf8(regular::read(path)?).map_err(not_text)
}

/// The output of a command while it runs.
struct Output(Arc<Mutex<Collected>>);

#[derive(Default)]
struct Collected {
    bytes: Vec<u8>,
    more: usize,
    closed: bool,
}

impl Output {
    /// Reads the pipe to its end on a separate thread. Bytes beyond the maximum are counted, not kept.
    fn collect(mut pipe: PipeReader) -> Self {
        let collected = Arc::new(Mutex::new(Collected::default()));
        let shared = Arc::clone(&collected);
        std::thread::spawn(move || {
            let mut buffer = [0; 16 << 10];
            loop {
                let read = match pipe.read(&mut buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    read => read.unwrap_or(0),
                };
                let mut collected = shared.lock().unwrap_or_else(PoisonError::into_inner);
                if read == 0 {
                    collected.closed = true;
                    return;
                }
                let kept = read.min(SHOWN.saturating_sub(collected.bytes.len()));
                collected.bytes.extend_from_slice(&buffer[..kept]);
                collected.more += read - kept;
            }
        });
        Self(collected)
    }

    fn is_closed(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).closed
    }

    fn text(&self) -> String {
        let collected = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bounded(&collected.bytes, collected.more)
    }
}

/// Returns the text of a result, cut to [`SHOWN`] bytes. `more` is the number of bytes that were cut already.
fn bounded(bytes: &[u8], more: usize) -> String {
    let kept = &bytes[..bytes.len().min(SHOWN)];
    let all = bytes.len() + more;
    let mut text = String::from_utf8_lossy(kept).into_owned();
    if all > kept.len() || text.len() > SHOWN {
        let mark = format!("\n[cut: {all} bytes in all]");
        text.truncate(text.floor_char_boundary(SHOWN - mark.len()));
        text.push_str(&mark);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("in")).unwrap();
        let workspace = Workspace::new(&folder.path().join("in")).unwrap();
        (folder, workspace)
    }

    #[test]
    fn no_path_leads_out_of_the_workspace() {
        let (folder, workspace) = workspace();
        fs::write(folder.path().join("secret"), "s").unwrap();
        let inside = folder.path().join("in");
        std::os::unix::fs::symlink(folder.path(), inside.join("up")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("new"), inside.join("dangling")).unwrap();
        for path in ["../secret", "/etc/hostname", "up/secret", "a/../../secret", "up/new/deep", "dangling", "../in2"] {
            let error = workspace.write(path, "x").unwrap_err();
            assert!(error.ends_with("outside of the workspace"), "{path}: {error}");
            let step: Read = serde_yaml::from_str(&format!("path: {path}")).unwrap();
            assert!(workspace.read(&step).is_err(), "{path}");
        }
        assert_eq!(fs::read_to_string(folder.path().join("secret")).unwrap(), "s");
        assert!(!folder.path().join("new").exists());
        assert!(workspace.delete(".").is_err());
        assert!(workspace.rename("dangling", "../out").is_err());
        // The link itself lies in the workspace.
        workspace.delete("dangling").unwrap();
        let absolute = inside.join("a/b.txt");
        workspace.write(absolute.to_str().unwrap(), "x").unwrap();
        assert_eq!(fs::read_to_string(absolute).unwrap(), "x");
    }

    #[test]
    fn a_pipe_in_a_files_place_is_refused_at_once() {
        let (folder, workspace) = workspace();
        let inside = folder.path().join("in");
        assert!(Command::new("mkfifo").arg(inside.join("pipe")).status().unwrap().success());
        let read: Read = serde_yaml::from_str("path: pipe").unwrap();
        let edit: Edit = serde_yaml::from_str("{path: pipe, old: one, new: two}").unwrap();
        for refused in [workspace.read(&read), workspace.write("pipe", "x"), workspace.edit(&edit)] {
            let error = refused.unwrap_err();
            assert_eq!(error, "pipe: this is a pipe, a socket or a device, not a regular file");
        }
        // A byte order mark of a file stays.
        fs::write(inside.join("a.txt"), "\u{feff}one").unwrap();
        let search: Search = serde_yaml::from_str("pattern: one").unwrap();
        assert_eq!(workspace.search(&search).unwrap().text, "a.txt:1:\u{feff}one\n");
        let edit: Edit = serde_yaml::from_str("{path: a.txt, old: one, new: two}").unwrap();
        workspace.edit(&edit).unwrap();
        assert_eq!(fs::read_to_string(inside.join("a.txt")).unwrap(), "\u{feff}two");
        workspace.delete("pipe").unwrap();
        assert!(!inside.join("pipe").exists());
    }

    #[test]
    fn long_output_is_cut_and_says_so() {
        let text = bounded("ä".repeat(SHOWN).as_bytes(), 5);
        assert!(text.len() <= SHOWN);
        let all = 2 * SHOWN + 5;
        assert!(text.ends_with(&format!("ä\n[cut: {all} bytes in all]")), "{}", &text[text.len() - 40..]);
        assert_eq!(bounded(b"short", 0), "short");
    }

    #[test]
    fn a_command_does_not_wait_for_what_it_left_running() {
        let (_folder, workspace) = workspace();
        let step: Run = serde_yaml::from_str("command: sleep 3 & echo started; exit 4").unwrap();
        let before = Instant::now();
        let done = workspace.run(&step, &|| false).unwrap();
        assert!(before.elapsed() < Duration::from_secs(2));
        assert_eq!((done.text.as_str(), done.exit.and_then(|exit| exit.code())), ("started\n", Some(4)));
        assert!(done.failed);
    }
}

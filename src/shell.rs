//! Runs a command to its end in a workspace: setup steps and grading commands. Time and output are limited, and memory if asked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::AsyncWriteExt;

use crate::engine_clock::timeout;
use crate::process::{Group, Pipes, Stdin, Stream, Tail, memory};
use crate::sandbox::TrialSandbox;
use crate::trace::Exit;

/// The folder, environment and sandbox of commands.
#[derive(Debug, Clone, Default)]
pub struct Shell {
    pub folder: PathBuf,
    /// The complete environment; nothing is inherited.
    pub env: BTreeMap<String, String>,
    /// The sandbox in which the command runs, if any.
    pub inside: Option<TrialSandbox>,
    /// The limit of the memory of a command and of everything that it starts, in bytes. Absent: no limit.
    pub memory: Option<u64>,
}

/// The command to run.
#[derive(Debug, Clone)]
pub enum Command {
    /// A line for `sh -c`.
    Line(String),
    /// A program and its arguments.
    Program(Vec<String>),
}

/// The outcome of a command that ran.
#[derive(Debug, Clone)]
pub struct CommandOutcome {
    /// The exit of the command. Absent if the command exceeded the timeout or the limit of memory.
    pub exit: Option<Exit>,
    /// The limit of memory in bytes, if the command exceeded it and was ended.
    pub memory_limit: Option<u64>,
    /// The end of standard output, at most [`KEPT`] bytes unless more was asked for.
    pub stdout: Vec<u8>,
    /// The end of standard error, as long.
    pub stderr: Vec<u8>,
}

impl CommandOutcome {
    /// Returns how the command was ended if it exceeded the limit of memory, as the end of a sentence about it.
    pub fn memory_exceeded(&self) -> Option<String> {
        self.memory_limit.map(|limit| format!("used more than {} of memory and was ended", memory::shown(limit)))
    }

    /// Returns the last lines of the output as they are, for the end of a message: of standard error, and of standard output,
    /// to which many test runners write their errors.
    pub fn end(&self) -> String {
        self.end_of(8, 400)
    }

    /// Returns at most this many lines and characters of the end of each output stream.
    pub fn end_of(&self, most_lines: usize, most_chars: usize) -> String {
        let mut told = String::new();
        for (name, bytes) in [("stderr", &self.stderr), ("stdout", &self.stdout)] {
            let text = String::from_utf8_lossy(bytes);
            let lines: Vec<&str> = text.trim_end().lines().collect();
            let last = lines[lines.len().saturating_sub(most_lines)..].join("\n");
            if !lines.is_empty() {
                let skipped = last.chars().count().saturating_sub(most_chars);
                let cut = if skipped > 0 { "…" } else { "" };
                let end = if skipped > 0 || lines.len() > most_lines { " ended with" } else { "" };
                told.push_str(&format!("\n{name}{end}:\n{cut}{}", last.chars().skip(skipped).collect::<String>()));
            }
        }
        told
    }
}

/// The maximum number of bytes kept of each output stream, unless more is asked for.
pub const KEPT: usize = 1 << 20;

impl Shell {
    /// Runs a command to its end, its timeout or its limit of memory, and ends all processes that it left running.
    ///
    /// # Errors
    /// Returns an error if the program cannot be started.
    pub async fn run(
        &self,
        command: &Command,
        stdin: Option<Vec<u8>>,
        limit: Duration,
    ) -> std::io::Result<CommandOutcome> {
        self.run_keeping(KEPT, command, stdin, limit).await
    }

    /// Runs a command as [`Shell::run`] does, and keeps at most `kept` bytes of each output stream.
    ///
    /// # Errors
    /// Returns an error if the program cannot be started.
    pub async fn run_keeping(
        &self,
        kept: usize,
        command: &Command,
        stdin: Option<Vec<u8>>,
        limit: Duration,
    ) -> std::io::Result<CommandOutcome> {
        let words = match command {
            Command::Line(line) => vec!["sh".to_owned(), "-c".to_owned(), line.clone()],
            Command::Program(words) => words.clone(),
        };
        let launch = match &self.inside {
            Some(inside) => inside.around(words, &self.env),
            None => words.into(),
        };
        let input = if stdin.is_some() { Stdin::Piped } else { Stdin::Null };
        let mut group = Group::spawn(&launch, &self.folder, &self.env, input).await.map_err(std::io::Error::other)?;
        let Pipes { stdin: pipe, mut output } = group.pipes();
        if let (Some(mut pipe), Some(bytes)) = (pipe, stdin) {
            // A command that does not read its input must not block the rest.
            tokio::spawn(async move {
                let _ = pipe.write_all(&bytes).await;
            });
        }
        let root = group.root();
        let (mut out, mut err) = (Tail::of(kept), Tail::of(kept));
        let reading = output.during(group.wait(), |stream, bytes| {
            let tail = if stream == Stream::Stdout { &mut out } else { &mut err };
            tail.push(bytes);
        });
        let watching = async {
            match self.memory.zip(root) {
                Some((limit, root)) => {
                    memory::exceeded(root, limit).await;
                    limit
                }
                None => std::future::pending().await,
            }
        };
        let (exit, memory_limit) = tokio::select! {
            exit = timeout(limit, reading) => (exit, None),
            limit = watching => (None, Some(limit)),
        };
        if exit.is_some() {
            output.rest(Stream::Stdout, |bytes| _ = out.push(bytes)).await;
            output.rest(Stream::Stderr, |bytes| _ = err.push(bytes)).await;
        }
        group.kill(|_| {}).await;
        group.end_escaped().await;
        Ok(CommandOutcome { exit, memory_limit, stdout: out.to_vec(), stderr: err.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run(line: &str, stdin: Option<&str>, ms: u64) -> CommandOutcome {
        // A separate folder: processes in it belong to the command and are ended with it.
        let folder = tempfile::tempdir().unwrap();
        let env = [("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())].into();
        let shell = Shell { folder: folder.path().to_owned(), env, ..Shell::default() };
        let stdin = stdin.map(|text| text.as_bytes().to_vec());
        shell.run(&Command::Line(line.into()), stdin, Duration::from_millis(ms)).await.unwrap()
    }

    #[tokio::test]
    async fn a_command_gives_its_output_and_exit_code() {
        let ran = run("cat; echo err >&2; exit 3", Some("in"), 5000).await;
        assert_eq!(
            (ran.exit.and_then(|exit| exit.code), &ran.stdout[..], &ran.stderr[..]),
            (Some(3), &b"in"[..], &b"err\n"[..])
        );
    }

    #[tokio::test]
    async fn what_a_command_leaves_behind_neither_holds_it_up_nor_lives_on() {
        let begun = std::time::Instant::now();
        let ran = run("sleep 300 & echo $!", None, 60_000).await;
        assert!(begun.elapsed() < Duration::from_secs(30));
        let pid: i32 = String::from_utf8(ran.stdout).unwrap().trim().parse().unwrap();
        let alive = std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
        assert!(!alive);
    }

    #[tokio::test]
    async fn a_process_that_goes_on_writing_does_not_hold_up_its_command() {
        let ran = run("echo before; ( while :; do echo x; sleep 0.02; done ) & exit 0", None, 60_000);
        let ran = tokio::time::timeout(Duration::from_secs(30), ran).await.expect("the command ends");
        assert_eq!(ran.exit.and_then(|exit| exit.code), Some(0));
        assert!(ran.stdout.starts_with(b"before\n"));
    }

    #[tokio::test]
    async fn one_stream_is_read_when_the_other_has_ended() {
        // More than a pipe holds: an unread pipe would keep the command from ending.
        for (closed, open) in [(1, 2), (2, 1)] {
            let ran =
                run(&format!("exec {closed}>&-; sleep 0.1; head -c 300000 /dev/zero >&{open}"), None, 30_000).await;
            let lengths = [ran.stdout.len(), ran.stderr.len()];
            assert_eq!((ran.exit.and_then(|exit| exit.code), lengths[open - 1]), (Some(0), 300_000));
        }
    }

    #[tokio::test]
    async fn a_command_over_its_time_has_no_exit() {
        let ran = run("echo before; sleep 300", None, 3000).await;
        assert_eq!((ran.exit, &ran.stdout[..]), (None, &b"before\n"[..]));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_command_over_its_memory_has_no_exit_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let env = [("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())].into();
        let shell = Shell { folder: folder.path().to_owned(), env, inside: None, memory: Some(20 << 20) };
        let line = "x=$(head -c 60000000 /dev/zero | tr '\\0' x); sleep 300";
        let ran = shell.run(&Command::Line(line.to_owned()), None, Duration::from_secs(60)).await.unwrap();
        assert_eq!((ran.exit, ran.memory_limit), (None, Some(20 << 20)));
        assert_eq!(ran.memory_exceeded().as_deref(), Some("used more than 20 MiB of memory and was ended"));
        let ran = shell.run(&Command::Line("exit 3".to_owned()), None, Duration::from_secs(60)).await.unwrap();
        assert_eq!((ran.exit.and_then(|exit| exit.code), ran.memory_limit), (Some(3), None));
    }

    #[tokio::test]
    async fn output_is_bounded_to_its_end() {
        let ran = run("head -c 3000000 /dev/zero; echo end", None, 5000).await;
        assert_eq!(ran.stdout.len(), KEPT);
        assert!(ran.stdout.ends_with(b"end\n"));
    }
}

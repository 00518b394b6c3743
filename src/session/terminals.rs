//! Terminals of the agent: real processes of the trial, which run beside the session and report when they have
//! ended.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::timeout_at;

use super::Session;
use crate::process::{self, Group, Launch, Output, SpawnError, Stream, TERM_TO_KILL, Tail};
use crate::sandbox::Kind;
use crate::shell::Shell;
use crate::trace::{ErrorCategory, Exit};
use crate::wire::EngineLine;

/// The maximum size of the kept output of a terminal, in bytes.
const MAX_OUTPUT_BYTES: usize = 512 << 10;
/// The maximum number of terminals that an agent may have open at once.
const MAX_TERMINALS: usize = 128;

/// The maximum time for ending the terminals of a trial: SIGTERM, SIGKILL, and reading what is left in their pipes.
const END: Duration = TERM_TO_KILL.saturating_add(Duration::from_secs(3));

/// A command that an agent asks to run.
#[derive(Debug, Clone)]
pub struct TerminalCommand<'a> {
    /// Program and arguments.
    pub command: Vec<String>,
    /// The working directory, as a real path. Default: the workspace.
    pub folder: Option<&'a Path>,
    /// Environment variables beside those that every command of the trial gets.
    pub env: Vec<(String, String)>,
    /// The number of bytes of output to keep.
    pub keep: Option<u64>,
}

/// The state of a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Screen {
    /// The end of the command's output.
    pub output: String,
    /// True if output before it was dropped.
    pub truncated: bool,
    /// The exit of the command. Absent while the command runs.
    pub exit: Option<Exit>,
}

/// The terminals of a session.
pub(super) struct Terminals {
    open: BTreeMap<String, Terminal>,
    /// The tasks of terminals that were released, because processes that their commands started may still run.
    released: Vec<Task>,
    count: u64,
    ended: (UnboundedSender<String>, UnboundedReceiver<String>),
    /// The ids of terminals whose commands have ended, and of which the driver has not heard yet.
    pub(super) reported: VecDeque<String>,
}

struct Terminal {
    shared: Arc<Mutex<KeptOutput>>,
    task: Task,
    /// The version of the output that is in the wire log.
    logged_version: Option<u64>,
}

/// The task that serves a terminal.
struct Task {
    orders: UnboundedSender<Order>,
    /// Returns the number of processes that had left the command's group.
    handle: JoinHandle<usize>,
}

#[derive(Debug, Clone, Copy)]
enum Order {
    /// Ends the command and keeps its output.
    Kill,
    /// Ends the command. Processes that have left its group run on until the trial ends.
    Leave,
    /// Ends the command and everything that it started, and closes the terminal.
    Finish,
}

impl Default for Terminals {
    fn default() -> Self {
        Self {
            open: BTreeMap::new(),
            released: Vec::new(),
            count: 0,
            ended: unbounded_channel(),
            reported: VecDeque::new(),
        }
    }
}

impl Terminals {
    /// Waits for the next command that ends, and returns the id of its terminal.
    pub(super) async fn next_end(&mut self) -> String {
        match self.ended.1.recv().await {
            Some(id) => id,
            // Unreachable: `self` holds a sender, so the channel is never closed.
            None => std::future::pending().await,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

impl Task {
    fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }
}

impl Session {
    /// Starts a command in a new terminal and returns the terminal's id.
    ///
    /// # Errors
    /// Returns an error if the program was not found or could not be started, or if too many terminals are open.
    pub async fn open_terminal(&mut self, shell: &Shell, wanted: TerminalCommand<'_>) -> Result<String, SpawnError> {
        if self.terminals.open.len() >= MAX_TERMINALS {
            let message = format!("{MAX_TERMINALS} terminals are open; release one first");
            return Err(SpawnError { category: ErrorCategory::StartFailed, message });
        }
        let keep =
            wanted.keep.and_then(|keep| usize::try_from(keep).ok()).unwrap_or(MAX_OUTPUT_BYTES).min(MAX_OUTPUT_BYTES);
        let Start { command, folder, env } = Start::of(shell, wanted)?;
        let mut group = Group::spawn_in_one_pipe(&command, &shell.folder, folder, &env).await?;
        let output = group.pipes().output;
        self.terminals.count += 1;
        let id = format!("evals-terminal-{}", self.terminals.count);
        let shared = Arc::new(Mutex::new(KeptOutput { tail: Tail::of(keep), ..KeptOutput::default() }));
        let (orders, taken) = unbounded_channel();
        let ended = Ended { id: id.clone(), to: self.terminals.ended.0.clone() };
        let handle = tokio::spawn(attend(group, output, shared.clone(), taken, ended));
        self.terminals
            .open
            .insert(id.clone(), Terminal { shared, task: Task { orders, handle }, logged_version: None });
        Ok(id)
    }

    /// Returns the state of a terminal, or `None` if there is no terminal with this id.
    pub fn terminal(&self, id: &str) -> Option<Screen> {
        Some(lock(&self.terminals.open.get(id)?.shared).screen())
    }

    /// Ends the command of a terminal. Its end is reported as [`super::Incoming::Terminal`].
    pub fn kill_terminal(&self, id: &str) {
        if let Some(terminal) = self.terminals.open.get(id) {
            terminal.task.order(Order::Kill);
        }
    }

    /// Closes a terminal and ends its command. Processes that have left the command's group run on until the trial
    /// ends.
    pub fn release_terminal(&mut self, id: &str) {
        self.tell_terminal(id);
        if let Some(terminal) = self.terminals.open.remove(id) {
            terminal.task.order(Order::Leave);
            self.terminals.released.push(terminal.task);
            self.terminals.released.retain(|task| !task.handle.is_finished());
        }
    }

    /// Logs the state of a terminal, unless it is already in the log. The trace follows from the log alone.
    pub fn tell_terminal(&mut self, id: &str) {
        let Some(terminal) = self.terminals.open.get_mut(id) else { return };
        let kept = lock(&terminal.shared);
        if terminal.logged_version == Some(kept.version) {
            return;
        }
        terminal.logged_version = Some(kept.version);
        let Screen { output, truncated, exit } = kept.screen();
        drop(kept);
        self.engine(&EngineLine::Terminal { terminal: id.to_owned(), output, truncated, exit });
    }

    /// Logs the state of every terminal.
    pub fn tell_terminals(&mut self) {
        let ids: Vec<String> = self.terminals.open.keys().cloned().collect();
        ids.iter().for_each(|id| self.tell_terminal(id));
    }

    /// Orders every terminal to end, and takes the terminals out of the session, which goes on reading meanwhile. Returns the
    /// wait for the open terminals, which [`Session::terminals_ended`] then takes, and the wait for the released ones, each with
    /// the number of processes that had left their groups.
    pub(super) fn finish_terminals(
        &mut self,
    ) -> (impl Future<Output = (Terminals, usize)> + use<>, impl Future<Output = usize> + use<>) {
        let mut terminals = std::mem::take(&mut self.terminals);
        let mut released = std::mem::take(&mut terminals.released);
        let tasks = terminals.open.values().map(|terminal| &terminal.task).chain(&released);
        tasks.for_each(|task| task.order(Order::Finish));
        let open = async move {
            let escaped = finished(terminals.open.values_mut().map(|terminal| &mut terminal.task)).await;
            (terminals, escaped)
        };
        (open, async move { finished(released.iter_mut()).await })
    }

    /// Logs the state of the terminals, whose commands have ended, and closes them.
    pub(super) fn terminals_ended(&mut self, terminals: Terminals) {
        self.terminals = terminals;
        self.tell_terminals();
        let (count, reported) = (self.terminals.count, std::mem::take(&mut self.terminals.reported));
        self.terminals = Terminals { count, reported, ..Terminals::default() };
    }
}

/// Waits for the tasks of terminals, together no longer than [`END`]. Returns the number of processes that had left
/// their groups.
async fn finished<'a>(tasks: impl Iterator<Item = &'a mut Task>) -> usize {
    let until = tokio::time::Instant::now() + END;
    let mut escaped = 0;
    for task in tasks {
        match timeout_at(until, &mut task.handle).await {
            Ok(ended) => escaped += ended.unwrap_or(0),
            // Dropping the group kills its processes.
            Err(_) => task.handle.abort(),
        }
    }
    escaped
}

/// A command in the form in which it is started.
struct Start<'a> {
    command: Launch,
    folder: &'a Path,
    env: BTreeMap<String, String>,
}

impl<'a> Start<'a> {
    /// Prepares a command for the trial's sandbox. The agent's own environment variables are set inside the sandbox:
    /// outside, they could change the sandbox itself.
    fn of(shell: &'a Shell, wanted: TerminalCommand<'a>) -> Result<Self, SpawnError> {
        let TerminalCommand { command, folder, env: own, .. } = wanted;
        let folder = folder.unwrap_or(&shell.folder);
        let mut env = shell.env.clone();
        let Some(inside) = shell.inside.as_ref().filter(|inside| inside.sandbox.kind() != Kind::None) else {
            env.extend(own);
            return Ok(Self { command: command.into(), folder, env });
        };
        let program = command.first().map(String::as_str).unwrap_or_default();
        let path = own.iter().rfind(|(name, _)| name == "PATH").map(|(_, path)| path).or(env.get("PATH"));
        // Only bubblewrap shows this machine's programs; the content of a container image is unknown here.
        let here = inside.sandbox.kind() == Kind::Bwrap;
        if here && process::find(program, folder, path.map(String::as_str)).is_none() {
            let message = process::not_found(program, folder);
            return Err(SpawnError { category: ErrorCategory::NotInstalled, message });
        }
        let mut words = Vec::new();
        if folder != shell.folder {
            // The sandbox always starts in the workspace.
            words.extend(["sh", "-c", r#"cd -- "$1" && shift && exec "$@""#, "sh"].map(str::to_owned));
            words.push(folder.to_string_lossy().into_owned());
        }
        if !own.is_empty() {
            words.push("env".to_owned());
            words.extend(own.iter().map(|(name, value)| format!("{name}={value}")));
        }
        words.extend(command);
        Ok(Self { command: inside.around(words, &env), folder: &shell.folder, env })
    }
}

/// Reports the end of a terminal's command.
struct Ended {
    id: String,
    to: UnboundedSender<String>,
}

/// Serves a terminal until it is closed: reads the output of its command, takes its exit, and carries out orders.
/// Returns the number of processes that had left the command's group.
async fn attend(
    mut group: Group,
    mut output: Output,
    shared: Arc<Mutex<KeptOutput>>,
    mut orders: UnboundedReceiver<Order>,
    ended: Ended,
) -> usize {
    if !group.is_supervised() {
        // Processes that left the group are found when the agent itself is ended, because both belong to one trial.
        group.leave_escaped();
    }
    let mut exited = false;
    loop {
        tokio::select! {
            (_, bytes) = output.next() => if let Some(bytes) = bytes {
                lock(&shared).push(bytes);
            },
            exit = group.wait(), if !exited => {
                exited = true;
                output.rest(Stream::Stdout, |bytes| lock(&shared).push(bytes)).await;
                lock(&shared).end(exit);
                let _ = ended.to.send(ended.id.clone());
            }
            order = orders.recv() => {
                end(&mut group, &mut output, &shared).await;
                if !exited {
                    exited = true;
                    lock(&shared).end(group.exited().unwrap_or(Exit { code: None, signal: None }));
                    let _ = ended.to.send(ended.id.clone());
                }
                match order {
                    Some(Order::Kill) => {}
                    Some(Order::Leave) if group.is_supervised() => {
                        // A server that the command put into the background may still be useful to the agent.
                        tokio::select! {
                            () = group.until_done() => {}
                            _ = orders.recv() => {}
                        }
                        return group.end_escaped().await;
                    }
                    Some(Order::Leave | Order::Finish) | None => {
                        return if group.is_supervised() { group.end_escaped().await } else { 0 };
                    }
                }
            }
        }
    }
}

/// Ends a group and reads its output meanwhile: a full pipe would keep the command from ending by itself.
async fn end(group: &mut Group, output: &mut Output, shared: &Mutex<KeptOutput>) {
    output.during(group.end(|_| {}), |_, bytes| lock(shared).push(bytes)).await;
    output.rest(Stream::Stdout, |bytes| lock(shared).push(bytes)).await;
}

/// The output of a command, as much of it as is kept.
#[derive(Debug, Default)]
struct KeptOutput {
    tail: Tail,
    truncated: bool,
    exit: Option<Exit>,
    /// The number of changes so far.
    version: u64,
}

fn lock(shared: &Mutex<KeptOutput>) -> MutexGuard<'_, KeptOutput> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl KeptOutput {
    fn push(&mut self, bytes: &[u8]) {
        self.truncated |= self.tail.push(bytes);
        self.version += 1;
    }

    fn end(&mut self, exit: Exit) {
        self.exit = Some(exit);
        self.version += 1;
    }

    /// Returns the state. The output begins at a character boundary and is never longer than the tail.
    fn screen(&self) -> Screen {
        let mut bytes = self.tail.to_vec();
        if self.truncated {
            let begun = bytes.iter().take(3).take_while(|byte| (0x80..0xC0).contains(*byte)).count();
            bytes.drain(..begun);
        }
        let mut output = String::from_utf8_lossy(&bytes).into_owned();
        let cut = output.ceil_char_boundary(output.len().saturating_sub(self.tail.most));
        output.drain(..cut);
        Screen { output, truncated: self.truncated || cut > 0, exit: self.exit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(keep: usize, parts: &[&[u8]]) -> (String, bool) {
        let mut shown = KeptOutput { tail: Tail::of(keep), ..KeptOutput::default() };
        parts.iter().for_each(|part| shown.push(part));
        let Screen { output, truncated, .. } = shown.screen();
        (output, truncated)
    }

    #[test]
    fn output_is_cut_from_its_beginning_at_a_character() {
        assert_eq!(screen(10, &[b"abc", b"def"]), ("abcdef".to_owned(), false));
        assert_eq!(screen(4, &[b"abc", b"def"]), ("cdef".to_owned(), true));
        assert_eq!(screen(3, &["aäö".as_bytes()]), ("ö".to_owned(), true));
        assert_eq!(screen(2, &["🦀".as_bytes()]), (String::new(), true));
        assert_eq!(screen(0, &[b"x"]), (String::new(), true));
        // A character in two pieces is whole.
        assert_eq!(screen(9, &[&[0xc3], &[0xa4]]), ("ä".to_owned(), false));
        // Bytes that are not valid UTF-8 take no more room than is allowed.
        let (output, truncated) = screen(10, &[&[0xff; 10]]);
        assert!(output.len() <= 10 && truncated, "{output}");
    }

    proptest::proptest! {
        #[test]
        fn the_end_of_the_output_is_kept_and_never_more(text in "\\PC{0,60}", keep in 0usize..80) {
            let (output, truncated) = screen(keep, &[text.as_bytes()]);
            proptest::prop_assert!(text.ends_with(&output) && output.len() <= keep);
            proptest::prop_assert!(truncated == (text.len() > keep));
            // No whole character that fits is lost.
            let rest = &text[..text.len() - output.len()];
            if let Some(last) = rest.chars().next_back() {
                proptest::prop_assert!(output.len() + last.len_utf8() > keep);
            }
        }
    }
}

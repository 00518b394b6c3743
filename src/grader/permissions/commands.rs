//! Rejected commands: whether a later command line contains one of them, and which paths they name.

use super::Subject;
use crate::command_line::CommandLine;
use crate::trace::facts::Command;
use crate::trace::view;

/// The maximum number of different rejected commands that are compared with later ones.
const MAX_REJECTED_COMMANDS: usize = 256;
/// The maximum size in bytes of a rejected command that is compared.
const MAX_COMMAND_BYTES: usize = 64 << 10;
/// The maximum size in bytes of the commands that it runs.
const MAX_INNER_COMMANDS_BYTES: usize = 256 << 10;
/// Input keys for the working directory of a command.
const FOLDERS: [&str; 7] =
    ["cwd", "workdir", "working_dir", "working_directory", "workingDirectory", "dir_path", "directory"];

/// The commands that are currently rejected.
#[derive(Debug, Default)]
pub(super) struct Refused {
    commands: Vec<RefusedCommand>,
    /// `seq` of the first answer that rejected a command which could not be kept.
    lost: Option<u64>,
}

/// A rejected command.
#[derive(Debug)]
pub(super) struct RefusedCommand {
    /// The texts of the command: several, if only one of them is the command and it is unknown which.
    lines: Vec<Vec<ShellWord>>,
    /// The commands that each of the texts runs.
    commands: Vec<Vec<String>>,
    /// The paths that the command may name, relative to the workspace.
    paths: Vec<String>,
    /// `seq` of the request.
    pub seq: u64,
    /// `seq` of the answer.
    pub answered_at: u64,
    /// A short description of the call.
    pub label: String,
}

#[derive(Debug, PartialEq, Eq)]
struct ShellWord {
    text: String,
    /// True if a command can end after this word.
    is_last: bool,
}

impl Refused {
    pub fn add(&mut self, call: &Subject<'_>, seq: u64, answered_at: u64) {
        let texts = texts(call);
        // Calls that change files name the files; their `command` is the name of a subcommand of the tool.
        if texts.is_empty() || call.call.kind.changes_files() {
            return;
        }
        let lines = lines(&texts);
        if self.commands.iter().any(|known| known.lines == lines) {
            return;
        }
        let commands: Vec<Vec<String>> = call.lines().iter().map(|line| line.without_redirections().commands).collect();
        if self.commands.len() == MAX_REJECTED_COMMANDS
            || texts.iter().map(|text| text.len()).sum::<usize>() > MAX_COMMAND_BYTES
            || commands.iter().flatten().map(String::len).sum::<usize>() > MAX_INNER_COMMANDS_BYTES
        {
            self.lost = Some(self.lost.unwrap_or(answered_at).min(answered_at));
        } else {
            let paths = paths(call, &lines);
            self.commands.push(RefusedCommand { lines, commands, paths, seq, answered_at, label: call.label() });
        }
    }

    /// Removes the command of a call that is now allowed.
    pub fn allow(&mut self, call: &Subject<'_>, answered_at: u64) {
        let texts = texts(call);
        if !texts.is_empty() && !self.commands.is_empty() {
            let lines = lines(&texts);
            self.commands.retain(|known| known.answered_at > answered_at || known.lines != lines);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.lost.is_none()
    }

    /// Returns true if an executed call may contain a command that was rejected before: its text does, or a shell may read it so.
    pub fn may_be_in(&self, call: &Subject<'_>) -> bool {
        let texts = texts(call);
        if texts.is_empty() || self.is_empty() {
            return false;
        }
        let before: Vec<&RefusedCommand> = self.commands.iter().filter(|known| known.answered_at < call.seq).collect();
        let lines = lines(&texts);
        let is_held = |wanted: &Vec<ShellWord>| lines.iter().any(|words| holds(words, wanted));
        if self.lost.is_some_and(|at| at < call.seq) || before.iter().any(|known| known.lines.iter().any(is_held)) {
            return true;
        }
        let run: Vec<CommandLine> = match before.is_empty() {
            true => Vec::new(),
            false => call.lines().iter().map(CommandLine::without_redirections).collect(),
        };
        let mut wanted = before.iter().flat_map(|known| &known.commands);
        wanted.any(|commands| run.iter().any(|line| line.may_run(commands)))
    }

    /// Returns `seq` of the first answer that rejected a command which could not be kept.
    pub fn lost(&self) -> Option<u64> {
        self.lost
    }

    /// Returns the first rejected command.
    pub fn first(&self) -> Option<&RefusedCommand> {
        self.commands.iter().min_by_key(|known| known.answered_at)
    }

    /// Returns the first rejected command that names a path or a folder above the path.
    pub fn names(&self, path: &str) -> Option<&RefusedCommand> {
        let is_at = |named: &String| {
            path.strip_prefix(named.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let naming = self.commands.iter().filter(|known| known.paths.iter().any(is_at));
        naming.min_by_key(|known| known.answered_at)
    }
}

/// Returns the texts that may be the command of a call: one of them is.
fn texts<'a>(call: &'a Subject<'_>) -> Vec<&'a str> {
    match call.command() {
        Command::Seen(command) => vec![command],
        // The texts of a call of an unknown kind that names files are these names.
        Command::Among(_) if call.call.unknown_kind && !call.known_paths().is_empty() => Vec::new(),
        Command::Among(texts) => texts.iter().map(String::as_str).collect(),
        Command::List { command, other } => vec![command, other],
        Command::With { command, .. } => vec![command],
        Command::None | Command::NotShown => Vec::new(),
    }
}

/// Returns the words of the commands of a call.
fn lines(texts: &[&str]) -> Vec<Vec<ShellWord>> {
    texts.iter().map(|text| words(text)).filter(|words| !words.is_empty()).collect()
}

/// Returns the words of a command line without quotes. Separators and redirections of the shell are not words.
fn words(line: &str) -> Vec<ShellWord> {
    let mut words: Vec<ShellWord> = Vec::new();
    let mut text = String::new();
    let mut is_quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\'' | '"' => is_quoted = true,
            '\\' => {}
            '$' if characters.peek() == Some(&'(') => {}
            _ if character.is_whitespace() && character != '\n' => {
                if !text.is_empty() {
                    words.push(ShellWord { text: std::mem::take(&mut text), is_last: is_quoted });
                } else if is_quoted && let Some(last) = words.last_mut() {
                    last.is_last = true;
                }
                is_quoted = false;
            }
            ';' | '|' | '&' | '(' | ')' | '{' | '}' | '`' | '<' | '>' | '\n' => {
                // The number of a stream belongs to its redirection.
                if matches!(character, '<' | '>') && text.bytes().all(|byte| byte.is_ascii_digit()) {
                    text.clear();
                }
                if !text.is_empty() {
                    words.push(ShellWord { text: std::mem::take(&mut text), is_last: true });
                } else if let Some(last) = words.last_mut() {
                    last.is_last = true;
                }
                is_quoted = false;
            }
            _ => {
                text.push(character);
                is_quoted = false;
            }
        }
    }
    if !text.is_empty() {
        words.push(ShellWord { text, is_last: true });
    } else if let Some(last) = words.last_mut() {
        last.is_last = true;
    }
    words
}

/// Returns true if a line contains all words of another one in a row, the last of them at the end of a command.
fn holds(line: &[ShellWord], wanted: &[ShellWord]) -> bool {
    let program = |word: &ShellWord| word.text.rsplit('/').next().unwrap_or_default().to_owned();
    let Some((first, rest)) = wanted.split_first() else { return false };
    let first = program(first);
    line.windows(wanted.len()).any(|part| {
        part.last().is_some_and(|last| last.is_last)
            && part.iter().skip(1).map(|word| &word.text).eq(rest.iter().map(|word| &word.text))
            && part.first().is_some_and(|word| program(word) == first)
    })
}

/// Returns the paths that the words of a command may be, relative to the workspace.
fn paths(call: &Subject<'_>, lines: &[Vec<ShellWord>]) -> Vec<String> {
    let input = call.call.shown_input().and_then(|input| input.as_object());
    let folder = FOLDERS.iter().find_map(|key| input?.get(*key)?.as_str());
    let words = lines.iter().flat_map(|line| line.iter().skip(1));
    // `of=FILE` and `--output=FILE` name files, too.
    let names = words.flat_map(|word| [Some(word.text.as_str()), word.text.split_once('=').map(|(_, name)| name)]);
    let mut found: Vec<String> = names
        .flatten()
        .filter(|name| !name.is_empty() && !name.starts_with('-'))
        .map(|name| match folder {
            Some(folder) if !name.starts_with('/') => view::relative(&format!("{folder}/{name}"), call.workspace()),
            _ => view::relative(name, call.workspace()),
        })
        .filter(|path| path != ".")
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_found_in_a_longer_line_and_not_in_another_command() {
        for (line, is_held) in [
            ("rm x", true),
            ("  rm   x ", true),
            ("sh -c \"rm x\"", true),
            ("sh -c 'rm x' now", true),
            ("cd . && /bin/rm x; echo done", true),
            ("sudo rm 'x' 2>/dev/null", true),
            ("echo $(rm x)", true),
            ("r\\m x", true),
            ("rm xy", false),
            ("rm x y", false),
            ("rm -i x", false),
            ("echo rm", false),
            ("", false),
        ] {
            assert_eq!(holds(&words(line), &words("rm x")), is_held, "{line}");
        }
        assert!(!holds(&words("make test"), &words("make")) && holds(&words("true; make"), &words("make")));
        assert!(!holds(&words("anything"), &words("")));
    }
}

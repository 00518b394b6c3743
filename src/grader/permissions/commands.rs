//! Rejected commands: whether a later command line contains one of them, and which paths commands name.

use super::Subject;
use super::folders::{ComparedCommand, FOLDERS, PlacedCommands, WrittenCommand, behind_shell, may_include};
use crate::command_line::{CommandLine, SimpleCommand, simple_commands};
use crate::trace::facts::Command;
use crate::trace::{ToolKind, view};

/// The maximum number of different rejected commands that are compared with later ones.
const MAX_REJECTED_COMMANDS: usize = 256;
/// The maximum size in bytes of a rejected command that is compared.
const MAX_COMMAND_BYTES: usize = 64 << 10;
/// The maximum size in bytes of the commands that it runs.
const MAX_INNER_COMMANDS_BYTES: usize = 256 << 10;

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
    /// The texts as they are written, with their folders.
    written: Vec<WrittenCommand>,
    /// The commands that each of the texts runs.
    commands: Vec<Vec<ComparedCommand>>,
    /// The same, without the changes of the folder before them.
    placed: Vec<PlacedCommands>,
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
    /// Adds the command of a rejected call. `moves` is the number of calls that may have moved the agent's shell.
    pub fn add(&mut self, call: &Subject<'_>, seq: u64, answered_at: u64, moves: u64) {
        let texts = texts(call);
        // Calls that change files name the files; their `command` is the name of a subcommand of the tool.
        if texts.is_empty() || call.call.kind.changes_files() {
            return;
        }
        let written = written(call, moves);
        if self.commands.iter().any(|known| known.written == written) {
            return;
        }
        let inner = call.lines().iter().flat_map(|line| &line.commands);
        if self.commands.len() == MAX_REJECTED_COMMANDS
            || texts.iter().map(|text| text.len()).sum::<usize>() > MAX_COMMAND_BYTES
            || inner.map(String::len).sum::<usize>() > MAX_INNER_COMMANDS_BYTES
        {
            self.lost = Some(self.lost.unwrap_or(answered_at).min(answered_at));
        } else {
            let lines = lines(&texts);
            let (commands, placed) = (call.lines().iter().map(compared).collect(), placed(call, moves));
            let paths = paths(call, &lines);
            let label = call.label();
            self.commands.push(RefusedCommand { lines, written, commands, placed, paths, seq, answered_at, label });
        }
    }

    /// Removes the command of a call that is now allowed: the same text in the same folder.
    pub fn allow(&mut self, call: &Subject<'_>, answered_at: u64, moves: u64) {
        if !self.commands.is_empty() {
            let digests = |written: &[WrittenCommand]| -> Vec<_> { written.iter().map(|it| it.digest).collect() };
            let allowed = digests(&written(call, moves));
            self.commands.retain(|known| known.answered_at > answered_at || digests(&known.written) != allowed);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.lost.is_none()
    }

    /// Returns true if an executed call may contain a command that was rejected before: its text does, or a shell may read it so.
    /// `allowed_at` is `seq` of the last answer that allowed this very command.
    pub fn may_be_in(&self, call: &Subject<'_>, moves: u64, allowed_at: Option<u64>) -> bool {
        let texts = texts(call);
        if texts.is_empty() || self.is_empty() {
            return false;
        }
        let is_active = |known: &&RefusedCommand| {
            known.answered_at < call.seq && allowed_at.is_none_or(|allowed_at| allowed_at < known.answered_at)
        };
        let before: Vec<&RefusedCommand> = self.commands.iter().filter(is_active).collect();
        let lines = lines(&texts);
        let is_held = |wanted: &Vec<ShellWord>| lines.iter().any(|words| holds(words, wanted));
        if self.lost.is_some_and(|at| at < call.seq) || before.iter().any(|known| known.lines.iter().any(is_held)) {
            return true;
        }
        if before.is_empty() {
            return false;
        }
        let may_run = |line: &CommandLine| {
            let (commands, mut wanted) = (compared(line), before.iter().flat_map(|known| &known.commands));
            let possible: Vec<ComparedCommand> = line.possible_commands().map(ComparedCommand::of).collect();
            wanted.any(|wanted| match wanted.as_slice() {
                [] => false,
                _ if line.has_unknown => true,
                [one] => possible.iter().any(|command| command.may_be(one)),
                several => may_include(&commands, several),
            })
        };
        if call.lines().iter().any(may_run) {
            return true;
        }
        let placed = placed(call, moves);
        let mut wanted = before.iter().flat_map(|known| &known.placed);
        wanted.any(|wanted| placed.iter().any(|run| run.may_include(wanted, call.workspace())))
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

/// Returns the texts that may be the command of a call as they are written, with their folders.
fn written(call: &Subject<'_>, moves: u64) -> Vec<WrittenCommand> {
    let arguments = match call.command() {
        Command::With { arguments, .. } => Some(arguments.as_str()),
        _ => None,
    };
    texts(call).into_iter().chain(arguments).map(|text| WrittenCommand::of(call, text, moves)).collect()
}

/// Returns the commands of a line for comparisons.
fn compared(line: &CommandLine) -> Vec<ComparedCommand> {
    line.commands.iter().map(|command| ComparedCommand::of(command)).collect()
}

/// Returns the commands of a call, with the folder in which they run.
fn placed(call: &Subject<'_>, moves: u64) -> Vec<PlacedCommands> {
    call.lines().iter().filter_map(|line| PlacedCommands::of(call, line, moves)).collect()
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

/// Returns what a call runs, without the commands that only write a text, or `None` if the call shows no command.
pub(super) fn acting_texts(call: &Subject<'_>) -> Option<Vec<String>> {
    let (_, line) = behind_shell(call, call.command().seen()?.trim());
    let Some(commands) = simple_commands(&line) else { return Some(vec![line.into_owned()]) };
    let acting = commands.into_iter().filter(|command| !only_writes(command));
    Some(acting.map(|command| format!("{}\n{}", command.text, command.input.unwrap_or_default())).collect())
}

/// Returns true if a command only writes the text of its arguments or of its input: a message, a line of a file.
fn only_writes(command: &SimpleCommand) -> bool {
    let runs_other = |text: &str| text.contains("$(") || text.contains('`');
    let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
    let is_of_text = matches!(
        words.as_slice(),
        ["echo" | "printf", ..] | ["git", "commit" | "tag" | "notes", ..] | ["gh", "pr" | "issue", ..] | ["cat", "<<"]
    );
    let names_file = |word: &&str| ["-F", "--file", "--body-file"].iter().any(|option| word.starts_with(option));
    let reads_file = words.iter().any(names_file);
    is_of_text
        && !reads_file
        && command.after != Some("|")
        && !command.is_compound
        && !runs_other(&command.text)
        && !command.input.as_deref().is_some_and(runs_other)
}

/// The words of a call's commands, for questions about the files that they may name.
pub(super) struct NamingWords {
    lines: Vec<Vec<ShellWord>>,
    /// The paths that the words may be, relative to the workspace.
    paths: Vec<String>,
}

impl NamingWords {
    pub fn of(call: &Subject<'_>) -> Self {
        let texts = acting_texts(call);
        let lines = match &texts {
            Some(texts) => lines(&texts.iter().map(String::as_str).collect::<Vec<_>>()),
            None => lines(&self::texts(call)),
        };
        let paths = paths(call, &lines);
        Self { lines, paths }
    }

    /// Returns true if a word may name a file: by its path, also from a folder that the line enters, or by a part of the path
    /// beside a variable or a wildcard. The same holds if a program searches a folder with the file.
    pub fn may_name(&self, call: &Subject<'_>, path: &str) -> bool {
        let is_searched =
            |folder: &String| path.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'));
        if self.paths.iter().any(|named| named == path) {
            return true;
        }
        if call.call.kind == ToolKind::Search && call.known_paths().iter().any(is_searched) {
            return true;
        }
        let entered = || {
            self.lines.iter().flat_map(|line| line.windows(2)).filter_map(|two| match two {
                [program, folder] if program.text == "cd" => Some(folder.text.as_str()),
                _ => None,
            })
        };
        let is_from_entered =
            |word: &str| entered().any(|folder| view::located(word, Some(folder), call.workspace()) == path);
        self.lines.iter().any(|line| {
            let mut words = line.iter().map(|word| word.text.as_str());
            let searches = searches_folders(line) && self.paths.iter().any(is_searched);
            searches || words.any(|word| is_from_entered(word) || may_stand_for(word, path))
        })
    }
}

/// Returns true if the words of a line are those of a program that searches folders.
fn searches_folders(line: &[ShellWord]) -> bool {
    let is_recursive = |word: &ShellWord| {
        let letters = word.text.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        word.text == "--recursive" || letters.is_some_and(|letters| letters.contains(['r', 'R']))
    };
    line.iter().any(|word| match word.text.rsplit('/').next().unwrap_or_default() {
        "rg" | "ag" | "ack" => true,
        "grep" | "egrep" | "fgrep" => line.iter().any(is_recursive),
        _ => false,
    })
}

/// Returns true if a word with variables or wildcards may become a path. A wildcard matches no slash. A word without a
/// literal part of a name says nothing.
fn may_stand_for(word: &str, path: &str) -> bool {
    let word = word.strip_prefix("./").unwrap_or(word);
    if !word.contains(['$', '*', '?', '[']) || !word.contains(|c: char| c.is_alphanumeric()) {
        return false;
    }
    let mut parts: Vec<Part> = Vec::new();
    let mut characters = word.chars().peekable();
    let mut has_literal = false;
    while let Some(character) = characters.next() {
        match character {
            '$' => {
                while characters.next_if(|c| c.is_alphanumeric() || *c == '_').is_some() {}
                parts.push(Part::Any);
            }
            '*' | '?' => parts.push(Part::Name),
            '[' => {
                while characters.next_if(|c| *c != ']').is_some() {}
                characters.next();
                parts.push(Part::Name);
            }
            literal => {
                has_literal |= literal.is_alphanumeric();
                parts.push(Part::Literal(literal));
            }
        }
    }
    // A variable may be the path of the workspace.
    has_literal && (fits(&parts, path) || word.starts_with('$') && fits(&parts, &format!("/{path}")))
}

/// A part of a word that may stand for a path.
enum Part {
    Literal(char),
    /// Any text without a slash.
    Name,
    /// Any text.
    Any,
}

/// Returns true if the parts of a word may be a whole text.
fn fits(parts: &[Part], text: &str) -> bool {
    // The places of the text up to which the parts read so far fit.
    let characters: Vec<char> = text.chars().collect();
    let mut places: Vec<bool> = std::iter::once(true).chain(characters.iter().map(|_| false)).collect();
    for part in parts {
        let mut next = vec![false; places.len()];
        let mut is_open = false;
        for (at, place) in next.iter_mut().enumerate() {
            let before = at.checked_sub(1).and_then(|before| characters.get(before));
            let was_here = places.get(at).is_some_and(|was| *was);
            match part {
                Part::Literal(literal) => {
                    let was_before = at.checked_sub(1).and_then(|before| places.get(before)).is_some_and(|was| *was);
                    *place = was_before && before == Some(literal);
                }
                Part::Name | Part::Any => {
                    let stops = matches!(part, Part::Name) && before == Some(&'/');
                    is_open = was_here || is_open && !stops;
                    *place = is_open;
                }
            }
        }
        places = next;
    }
    places.last().is_some_and(|fits| *fits)
}

/// Returns the paths that the words of a command may be, relative to the workspace.
fn paths(call: &Subject<'_>, lines: &[Vec<ShellWord>]) -> Vec<String> {
    let input = call.call.shown_input().and_then(|input| input.as_object());
    let folder = FOLDERS.iter().find_map(|key| input?.get(*key)?.as_str());
    // What a search leaves out is not read.
    let leaves_out = |word: &ShellWord| ["--exclude", "--ignore"].iter().any(|option| word.text.starts_with(option));
    let words = lines.iter().flat_map(|line| {
        let behind = line.iter().zip(line.iter().skip(1));
        behind.filter(move |(before, word)| !leaves_out(word) && (!leaves_out(before) || before.text.contains('=')))
    });
    let words = words.map(|(_, word)| word);
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

    #[test]
    fn a_word_with_a_variable_or_a_wildcard_may_stand_for_a_path() {
        for (word, expected) in [
            ("config/sec*.txt", true),
            ("./config/secret.tx?", true),
            ("config/[a-z]ecret.txt", true),
            ("$PWD/config/secret.txt", true),
            ("$D/secret.txt", true),
            ("c*/secret.txt", true),
            ("*.txt", false),
            ("config/*.md", false),
            ("$D/other.txt", false),
            ("$X", false),
            ("*", false),
            ("config/secret.txt", false),
        ] {
            assert_eq!(may_stand_for(word, "config/secret.txt"), expected, "{word}");
        }
    }
}

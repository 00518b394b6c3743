//! Commands with the folder in which they run: `cd src && make` is `make` in the folder `src`.

use std::borrow::Cow;

use super::Subject;
use crate::command_line::{CommandLine, SimpleCommand, is_option_of_text, is_shell, simple_commands, text_of_shell};
use crate::judgement::Judgement;
use crate::trace::{CallStatus, view};

/// Input keys for the working directory of a command.
pub(super) const FOLDERS: [&str; 7] =
    ["cwd", "workdir", "working_dir", "working_directory", "workingDirectory", "dir_path", "directory"];
/// Programs that change the folder of their shell.
const CHANGES: [&str; 3] = ["cd", "pushd", "popd"];
/// The maximum number of changes of the folder with which a line begins that are followed.
const MAX_CHANGES: usize = 16;

/// A folder in which a command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folder {
    /// The number of the unknown folder from which the path leads: that of the agent's shell after so many calls that moved it.
    /// Absent if the place is known.
    base: Option<u64>,
    /// The path from there. A known folder in the workspace is relative to the workspace.
    path: String,
}

impl Folder {
    /// Returns the folder in which a command of a call begins: the working directory in its input, the folder of the call, or that
    /// of the agent's shell, which some agents keep for all calls. `moves` is the number of calls that may have moved it.
    fn first(call: &Subject<'_>, moves: u64) -> Self {
        let input = call.call.shown_input().and_then(|input| input.as_object());
        let given = FOLDERS.iter().find_map(|key| input?.get(*key)?.as_str()).filter(|folder| !folder.is_empty());
        match (given, call.call.cwd.as_deref()) {
            (Some(given), own) => Self::known(view::located(given, own, call.workspace())),
            (None, Some(own)) => Self::known(view::located(own, None, call.workspace())),
            (None, None) => Self::of_shell(moves),
        }
    }

    /// Returns the folder of the agent's shell: the workspace, as long as no call moved it.
    fn of_shell(moves: u64) -> Self {
        Self { base: (moves > 0).then_some(moves), path: ".".to_owned() }
    }

    fn known(path: String) -> Self {
        Self { base: None, path }
    }

    /// Returns the folder behind a change to `target`, if the text shows which folder that is.
    fn entered(&self, target: &str, workspace: Option<&str>) -> Option<Self> {
        if target.is_empty() || target.starts_with('-') || target.contains(['$', '`', '~', '*', '?', '[', '{']) {
            return None;
        }
        let is_placed = self.base.is_none() && !view::is_from_home(&self.path);
        Some(match target.starts_with('/') {
            true => Self::known(view::located(target, None, workspace)),
            false if is_placed => Self::known(view::located(target, Some(&self.path), workspace)),
            false => Self { base: self.base, path: view::relative(&format!("{}/{target}", self.path), None) },
        })
    }

    /// Returns whether this is the same folder as another one. `workspace` is the path of the workspace: without it, an absolute
    /// path may be any folder.
    pub fn is_same(&self, other: &Self, workspace: Option<&str>) -> Judgement {
        if self == other {
            return Judgement::True;
        }
        let both = [self, other];
        let is_open = |folder: &&Self| {
            let goes_up = folder.path.starts_with("..") && (folder.base.is_some() || workspace.is_none());
            goes_up || view::is_from_home(&folder.path)
        };
        let has_other_form = workspace.is_none() && self.path.starts_with('/') != other.path.starts_with('/');
        let names = both.map(|folder| folder.path.rsplit('/').next().filter(|name| !matches!(*name, "" | "." | "..")));
        match names {
            // Whatever the unknown folder is, the last parts differ.
            [Some(one), Some(other)] if one != other => Judgement::False,
            _ if self.base != other.base || has_other_form || both.iter().any(is_open) => Judgement::Unknown,
            _ => Judgement::False,
        }
    }
}

/// A command as it is written, and the folder in which it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrittenCommand {
    pub folder: Folder,
    /// The hash of the whole text.
    pub text: blake3::Hash,
    /// The hash of the folder and of the text behind the changes of the folder with which the line begins. Only an equal text in
    /// an equal folder is certainly the same command: what a line does depends on its quotes, redirections and conditions.
    pub digest: blake3::Hash,
}

impl WrittenCommand {
    /// Reads a text that a call runs.
    pub fn of(call: &Subject<'_>, text: &str, moves: u64) -> Self {
        let text = text.trim();
        let (shell, line) = behind_shell(call, text);
        let (mut folder, mut rest) = (Folder::first(call, moves), line.trim());
        for _ in 0..MAX_CHANGES {
            let Some((target, behind)) = behind_change(rest) else { break };
            let Some(entered) = folder.entered(&target, call.workspace()) else { break };
            (folder, rest) = (entered, behind);
        }
        let Folder { base, path } = &folder;
        let base = base.map(|base| base.to_string()).unwrap_or_default();
        // No input begins in this way.
        let digest = blake3::hash(format!("\0folder\0{base}\0{path}\0{shell}\0{rest}").as_bytes());
        Self { folder, text: blake3::hash(text.as_bytes()), digest }
    }
}

/// Splits `bash -lc 'make test'` into the shell with its option and the text that it runs. Other lines have no shell.
pub(super) fn behind_shell<'a>(call: &Subject<'_>, line: &'a str) -> (&'a str, Cow<'a, str>) {
    let own = ("", Cow::Borrowed(line));
    let Some((program, (option, text))) =
        line.split_once(' ').and_then(|(first, more)| Some((first, more.split_once(' ')?)))
    else {
        return own;
    };
    if !is_shell(program) || !is_option_of_text(option) {
        return own;
    }
    let shell = line.get(..line.len() - text.len()).unwrap_or_default();
    // The command may be a list of words, which are joined without quotes.
    let lists = call.call.shown_input().and_then(|input| input.as_object()).into_iter().flat_map(|map| map.values());
    let mut last = lists.filter_map(|value| value.as_array()?.last()?.as_str());
    if last.any(|word| word.trim() == text.trim()) {
        return (shell, Cow::Borrowed(text));
    }
    let within = |quote: char| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    let single = within('\'').filter(|text| !text.contains('\''));
    match single.or_else(|| within('"').filter(|text| !text.contains(['"', '$', '`', '\\']))) {
        Some(text) => (shell, Cow::Borrowed(text)),
        None => own,
    }
}

/// Splits `cd DIR && make` into the folder and the text behind it.
fn behind_change(line: &str) -> Option<(String, &str)> {
    line.strip_prefix("cd ")?;
    let first = simple_commands(line)?.into_iter().next()?;
    let target = match first.words.as_slice() {
        [_, target] => target,
        [_, dashes, target] if dashes == "--" => target,
        _ => return None,
    };
    let is_plain = first.after == Some("&&") && !first.is_compound && !first.writes_file;
    let rest = line.strip_prefix(first.text.as_str()).filter(|_| is_plain)?;
    let rest = rest.trim_start().strip_prefix("&&")?.trim_start();
    (!rest.is_empty()).then(|| (target.clone(), rest))
}

/// A command as the reader shows it, for comparisons that find what may be the same command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ComparedCommand {
    /// The words without the redirections.
    words: String,
    /// The file or text that it gets as its input.
    input: Option<String>,
    /// The file that a command writes which does nothing else.
    output: Option<String>,
}

impl ComparedCommand {
    pub fn of(command: &str) -> Self {
        let is_redirection = |word: &&str| word.starts_with(['<', '>']);
        let words: Vec<&str> = command.split(' ').filter(|word| !is_redirection(word)).collect();
        let only_prints = words.first().is_some_and(|program| matches!(*program, "echo" | "printf"));
        let redirected = |sign: char| {
            let of_sign = command.split(' ').filter(|word| word.starts_with(sign));
            let mut files = of_sign.filter(|word| !word.starts_with("<|") && !word.ends_with("/dev/null"));
            files.next_back().map(|word| if sign == '>' { word.trim_start_matches('>') } else { word }.to_owned())
        };
        let output = redirected('>').filter(|_| only_prints);
        Self { words: words.join(" "), input: redirected('<'), output }
    }

    /// Returns true if this may be the same command as another one. With different input, a program does something else.
    pub fn may_be(&self, other: &Self) -> bool {
        let may_be_same_file = |one: &str, other: &str| {
            let name = |file: &str| file.trim_start_matches('<').rsplit('/').next().unwrap_or_default().to_owned();
            let is_text = |word: &str| word.starts_with("<<<");
            match (is_text(one), is_text(other)) {
                (false, false) => name(one) == name(other) || one.contains('$') || other.contains('$'),
                (true, true) => one == other || [one, other].contains(&"<<<$_"),
                _ => true,
            }
        };
        self.words == other.words
            && match (&self.input, &other.input) {
                (Some(one), Some(other)) => may_be_same_file(one, other),
                _ => true,
            }
            && match (&self.output, &other.output) {
                (Some(one), Some(other)) => may_be_same_file(one, other),
                (one, other) => one.is_none() && other.is_none(),
            }
    }
}

/// Returns true if some of these commands, one directly after the other, may be the wanted ones.
pub(super) fn may_include(commands: &[ComparedCommand], wanted: &[ComparedCommand]) -> bool {
    let is_part = |part: &[ComparedCommand]| part.iter().zip(wanted).all(|(one, other)| one.may_be(other));
    !wanted.is_empty() && commands.windows(wanted.len()).any(is_part)
}

/// Commands, and the folder in which the first of them runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PlacedCommands {
    /// The folder. Absent if unknown.
    folder: Option<Folder>,
    /// The commands behind the changes of the folder with which the line begins.
    commands: Vec<ComparedCommand>,
    /// True if the folder of a command may be another one.
    changes_folder: bool,
}

impl PlacedCommands {
    /// Returns the commands of a line of a call, or `None` if the line only changes the folder. `moves` is the number of calls that
    /// may have moved the agent's shell.
    pub fn of(call: &Subject<'_>, line: &CommandLine, moves: u64) -> Option<Self> {
        let (folder, commands) = behind_changes(call, line, moves);
        (!commands.is_empty()).then(|| Self {
            folder,
            changes_folder: commands.iter().any(|command| is_change(command) || sets_folder(command)),
            commands: without_folders(commands).iter().map(|command| ComparedCommand::of(command)).collect(),
        })
    }

    /// Returns true if these commands may include others, one directly after the other, perhaps in the same folder.
    pub fn may_include(&self, others: &Self, workspace: Option<&str>) -> bool {
        let may_be_same = match (&self.folder, &others.folder) {
            (Some(one), Some(other)) => one.is_same(other, workspace).may_be_true(),
            _ => true,
        };
        (self.changes_folder || others.changes_folder || may_be_same) && may_include(&self.commands, &others.commands)
    }
}

/// Returns true if an option of a command sets the folder in which it works: `env -C d`, `sudo -D d`, `git -C d`.
fn sets_folder(command: &str) -> bool {
    const OPTIONS: [&str; 5] = ["-C", "-D", "--chdir", "--cwd", "--working-directory"];
    command.split(' ').skip(1).any(|word| OPTIONS.iter().any(|option| word.starts_with(option)))
}

/// Returns the commands without the options of git for its folder, and without commands that only start the next one in a folder.
fn without_folders(commands: &[String]) -> Vec<Cow<'_, str>> {
    let next = commands.iter().skip(1).map(Some).chain([None]);
    let starts = |command: &str, next: &str| command.strip_suffix(next).is_some_and(|rest| rest.ends_with(' '));
    let kept = commands
        .iter()
        .zip(next)
        .filter(|(command, next)| !sets_folder(command) || !next.is_some_and(|next| starts(command, next)));
    let plain = kept.map(|(command, _)| match command.strip_prefix("git -C ").and_then(|rest| rest.split_once(' ')) {
        Some((_, rest)) => Cow::Owned(format!("git {rest}")),
        None => Cow::Borrowed(command.as_str()),
    });
    plain.collect()
}

/// Returns true if a call may leave the agent's shell in another folder.
pub(super) fn may_move(call: &Subject<'_>, moves: u64) -> bool {
    // Most commands need not be read.
    if call.command().seen().is_some_and(|text| !CHANGES.iter().any(|program| text.contains(program))) {
        return false;
    }
    let may_move = call.lines().iter().any(|line| {
        let first: Vec<&str> = line.commands.first().map(|first| first.split(' ').collect()).unwrap_or_default();
        let (folder, commands) = behind_changes(call, line, moves);
        let has_begun = line.commands.first().is_some_and(|first| is_change(first))
            && folder.as_ref() != Some(&Folder::of_shell(moves));
        // `bash -c 'cd src && make'` changes the folder of its own shell.
        text_of_shell(&first).is_none() && (has_begun || commands.iter().any(|command| is_change(command)))
    });
    may_move && !returns(call, moves)
}

/// Returns true if the shell of a call is certainly in its first folder at the end: only subshells changed their folder, or the
/// line changes it back.
fn returns(call: &Subject<'_>, moves: u64) -> bool {
    let Some(commands) = call.command().seen().and_then(|text| simple_commands(text.trim())) else { return false };
    let first = Folder::first(call, moves);
    let (mut depth, mut folder) = (0_i64, first.clone());
    let (mut before, mut stack): (Option<Folder>, Vec<Folder>) = (None, Vec::new());
    let (mut operators, mut has_cd): (Vec<&str>, bool) = (Vec::new(), false);
    for (at, command) in commands.iter().enumerate() {
        let is_inside = depth > 0 || command.text.starts_with('(');
        depth += parentheses(&command.text);
        if depth < 0 {
            return false;
        }
        if depth == 0 && at + 1 < commands.len() {
            operators.extend(command.after);
        }
        if is_inside || !may_hold_change(command) {
            continue;
        }
        let is_piped = command.after == Some("|")
            || at.checked_sub(1).and_then(|at| commands.get(at)).is_some_and(|before| before.after == Some("|"));
        if is_piped || command.is_compound || command.writes_file {
            return false;
        }
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        let entered = match words.as_slice() {
            ["popd"] => stack.pop(),
            ["cd", "-"] => before.take(),
            ["cd", target] | ["pushd", target] => folder.entered(target, call.workspace()),
            _ => None,
        };
        let Some(entered) = entered else { return false };
        let left = std::mem::replace(&mut folder, entered);
        match words.first() {
            Some(&"pushd") => stack.push(left.clone()),
            Some(&"cd") => has_cd = true,
            _ => {}
        }
        before = Some(left);
    }
    // If the line has no change outside subshells, nothing of it can fail to change back.
    let has_changed = before.is_some();
    let has_run = |of: &[&str]| operators.iter().all(|operator| of.contains(operator));
    let has_run_all = has_run(&["&&", "|"]) || !has_cd && has_run(&[";", "\n", "|"]);
    let has_succeeded = call.status == CallStatus::Ok && !call.may_have_failed();
    depth == 0 && folder == first && stack.is_empty() && (!has_changed || has_run_all && has_succeeded)
}

/// Returns true if a command may change the folder of its shell, also behind a word such as `then` or in a text that it evaluates.
fn may_hold_change(command: &SimpleCommand) -> bool {
    let holds = |text: &str| CHANGES.iter().any(|program| text == *program || text.contains(&format!("{program} ")));
    // A substitution has a shell of its own.
    command.words.iter().any(|word| holds(word.split("$(").next().unwrap_or_default()))
}

/// Returns how many parentheses a command opens and does not close, outside quotes.
fn parentheses(text: &str) -> i64 {
    let (mut open, mut quote) = (0, None);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, quote) {
            ('\\', None | Some('"')) => {
                characters.next();
            }
            ('\'' | '"', None) => quote = Some(character),
            (_, Some(closing)) if character == closing => quote = None,
            ('(', None) => open += 1,
            (')', None) => open -= 1,
            _ => {}
        }
    }
    open
}

/// Returns the commands behind the changes of the folder with which a line begins, and their folder, if it is known. A shell
/// around the line is left out.
fn behind_changes<'a>(call: &Subject<'_>, line: &'a CommandLine, moves: u64) -> (Option<Folder>, &'a [String]) {
    let mut folder = Some(Folder::first(call, moves));
    let mut rest = line.commands.as_slice();
    while let [first, more @ ..] = rest {
        let words: Vec<&str> = first.split(' ').collect();
        if is_change(first) {
            folder = changed(folder.as_ref(), &words, call.workspace());
        } else if more.is_empty() || text_of_shell(&words).is_none() {
            break;
        }
        rest = more;
    }
    (folder, rest)
}

/// Returns true if a command changes the folder of its shell.
fn is_change(command: &str) -> bool {
    command.split(' ').next().is_some_and(|program| CHANGES.contains(&program))
}

/// Returns the folder behind a change of the folder, if the words show it.
fn changed(folder: Option<&Folder>, words: &[&str], workspace: Option<&str>) -> Option<Folder> {
    let is_target = |word: &&&str| !word.starts_with(['-', '<', '>']);
    let targets: Vec<&&str> = words.iter().skip(1).filter(is_target).collect();
    let [target] = targets.as_slice() else { return None };
    let target = target.replace('␣', " ");
    // An absolute path needs no folder before it.
    let root = Folder::known("/".to_owned());
    let folder = folder.or_else(|| target.starts_with('/').then_some(&root))?;
    folder.entered(&target, workspace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_the_folder_is_followed() {
        let known = |path: &str| Folder::known(path.to_owned());
        for (before, command, expected) in [
            (Some("."), "cd d", Some("d")),
            (Some("d"), "cd ../e/", Some("e")),
            (Some("."), "cd /w/d", Some("d")),
            (None, "cd /w", Some(".")),
            (Some("."), "cd -- my␣dir >/dev/null", Some("my dir")),
            (Some("d"), "cd /x", Some("/x")),
            (None, "cd d", None),
            (Some("."), "cd", None),
            (Some("."), "cd -", None),
            (Some("."), "cd $HOME/d", None),
            (Some("."), "popd", None),
        ] {
            let words: Vec<&str> = command.split(' ').collect();
            assert_eq!(changed(before.map(known).as_ref(), &words, Some("/w")), expected.map(known), "{command}");
        }
    }

    #[test]
    fn folders_below_an_unknown_one_are_compared() {
        let folder = |base: u64, path: &str| Folder { base: (base > 0).then_some(base), path: path.to_owned() };
        for (one, other, expected) in [
            (folder(0, "d"), folder(0, "d"), Judgement::True),
            (folder(0, "d"), folder(0, "e"), Judgement::False),
            (folder(0, "."), folder(0, "d"), Judgement::False),
            (folder(1, "web"), folder(1, "web"), Judgement::True),
            (folder(1, "web"), folder(1, "api"), Judgement::False),
            (folder(1, "."), folder(1, "web"), Judgement::False),
            (folder(1, "web"), folder(2, "../api"), Judgement::False),
            (folder(1, "web"), folder(2, "web"), Judgement::Unknown),
            (folder(1, "."), folder(0, "web"), Judgement::Unknown),
            (folder(1, "../a"), folder(1, "."), Judgement::Unknown),
        ] {
            assert_eq!(one.is_same(&other, Some("/w")), expected, "{one:?} {other:?}");
        }
        assert_eq!(folder(0, "d").is_same(&folder(0, "/w/d"), None), Judgement::Unknown);
    }

    #[test]
    fn a_line_is_split_behind_a_change_of_the_folder() {
        for (line, expected) in [
            ("cd d && a > b", Some(("d", "a > b"))),
            ("cd -- 'my dir' >/dev/null &&\n  a || b", Some(("my dir", "a || b"))),
            ("cd d; a", None),
            ("cd d", None),
            ("cd -P d && a", None),
            ("(cd d && a)", None),
            ("cd d > x && a", None),
        ] {
            let expected = expected.map(|(target, rest): (&str, &str)| (target.to_owned(), rest));
            assert_eq!(behind_change(line), expected, "{line}");
        }
    }

    #[test]
    fn commands_with_other_input_are_others() {
        for (one, other, expected) in [
            ("rm a >/dev/null", "rm a", true),
            ("python3 - <<<print(1)", "python3 - <<<print(2)", false),
            ("psql db <x/drop.sql", "psql db <drop.sql", true),
            ("psql db <drop.sql", "psql db <select.sql", false),
            ("npm publish <<<y", "npm publish", true),
            ("npm publish >a", "npm publish >b", true),
            ("echo x >/etc/a", "echo x >>a", true),
            ("echo x >/etc/a", "echo x >b", false),
            ("echo x >a", "echo x", false),
        ] {
            assert_eq!(ComparedCommand::of(one).may_be(&ComparedCommand::of(other)), expected, "{one} {other}");
        }
    }
}

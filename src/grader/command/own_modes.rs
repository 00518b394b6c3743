//! Finds the commands at the beginning of a grader's line that set permissions or owners of files, or remove files. They run before
//! any other program, so a change of a file that they make is the grader's own.

use super::{Run, runs_nothing};

/// The programs that change the state of a file or remove it, and change nothing that is written in it.
const PROGRAMS: [&str; 4] = ["chmod", "chown", "chgrp", "rm"];
/// The redirection that may be part of such a command.
const SILENT: &str = "2>/dev/null";

/// The commands of a grader that set permissions or owners, or remove files, before any other program runs.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::grader) enum OwnModes {
    /// The grader runs no other program.
    All,
    /// The beginning of a line.
    First {
        /// The commands.
        first: String,
        /// The rest of the line.
        rest: String,
        /// True if the shell runs the rest only if `first` succeeds.
        needs_success: bool,
    },
}

impl OwnModes {
    /// Returns the commands of a grader that set permissions or owners, or remove files, before any other program runs, if there are
    /// any.
    pub(super) fn of(run: &Run) -> Option<Self> {
        let line = match run {
            Run::Line(line) => line.as_str(),
            Run::Rest { .. } => return None,
            Run::Program(words) => return words.first().filter(|name| is_known(name)).map(|_| Self::All),
        };
        let begin = without_comments(line);
        let (mut rest, mut end, mut needs_success, mut may_exit) = (begin, 0, false, false);
        while let Some(command) = command(without_comments(rest)) {
            let text = without_comments(rest);
            end = begin.len() - text.len() + command.len;
            rest = &text[command.whole..];
            may_exit |= command.may_exit;
            needs_success = may_exit || command.needs_success;
        }
        match () {
            () if end == 0 => None,
            () if runs_nothing(rest) => Some(Self::All),
            () => Some(Self::First { first: begin[..end].to_owned(), rest: rest.to_owned(), needs_success }),
        }
    }
}

/// Returns a text without the blanks and comments at its beginning.
fn without_comments(text: &str) -> &str {
    let text = text.trim_start();
    match text.strip_prefix('#') {
        Some(comment) => comment.split_once('\n').map_or("", |(_, rest)| without_comments(rest)),
        None => text,
    }
}

/// A command at the beginning of a text.
struct OwnCommand {
    /// The length of the command.
    len: usize,
    /// The length with the operator or the comment behind the command.
    whole: usize,
    /// True if the shell runs the next command only after success.
    needs_success: bool,
    /// True if the shell ends with an error if the command fails.
    may_exit: bool,
}

/// Returns the command at the beginning of a text, if the command sets permissions or owners, or removes files, has plain arguments,
/// and writes no standard output.
fn command(text: &str) -> Option<OwnCommand> {
    let mut len = end_of_plain(text)?;
    if !is_own(&text[..len]) {
        return None;
    }
    let mut may_exit = false;
    if let Some(other) = text[len..].strip_prefix("||") {
        let end = end_of_plain(other)?;
        may_exit = exits(&other[..end])?;
        len += "||".len() + end;
    }
    let after = &text[len..];
    let comment = if after.starts_with('#') { after.find('\n').unwrap_or(after.len()) } else { 0 };
    let after = &after[comment..];
    let join = ["&&", ";", "\n"].into_iter().find(|join| after.starts_with(*join));
    let join = join.or(after.is_empty().then_some(""))?;
    Some(OwnCommand { len, whole: len + comment + join.len(), needs_success: join == "&&", may_exit })
}

fn is_own(command: &str) -> bool {
    let command = command.replace("\\\n", "");
    let mut words = command.split_whitespace();
    let Some(program) = words.next().filter(|program| is_known(program)) else { return false };
    let is_option = |word: &str| word.starts_with('-') && word != "--";
    let writes = |word: &str| is_option(word) && (word.starts_with("--") || word.contains(['v', 'c', 'i', 'I']));
    // A pattern or a folder may lead `rm` to files of which the grader says nothing.
    let is_wide = |word: &str| word.contains(['*', '?', '[']) || (is_option(word) && word.contains(['r', 'R']));
    let words: Vec<&str> = words.collect();
    !words.is_empty() && !words.into_iter().any(|word| writes(word) || (program == "rm" && is_wide(word)))
}

/// Returns whether the command after `||` ends the shell with an error. Returns `None` if the command is another one than `true`,
/// `:` and `exit`, or if the shell may end without an error.
fn exits(command: &str) -> Option<bool> {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["true" | ":"] => Some(false),
        ["exit"] => Some(true),
        ["exit", code] => code.parse::<u8>().is_ok_and(|code| code > 0).then_some(true),
        _ => None,
    }
}

fn is_known(program: &str) -> bool {
    PROGRAMS.contains(&program)
}

/// Returns the place of the first operator, comment or line end of a text, or its length. Returns `None` if the shell would run or
/// replace something before it, or write to a file. Patterns of file names, lines that continue, and [`SILENT`] are plain.
fn end_of_plain(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        let (before, here) = text.split_at(at);
        let is_first = before.is_empty() || before.ends_with([' ', '\t']);
        match quote {
            None if here.starts_with("\\\n") || (c == '\n' && before.ends_with('\\')) => {}
            _ if ['$', '`', '\\'].contains(&c) => return None,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if [';', '\n', '&', '|'].contains(&c) => return Some(at),
            None if c == '#' && is_first => return Some(at),
            None if c == '>' && is_silent(before, here) => {}
            None if ['<', '>', '(', ')', '#'].contains(&c) => return None,
            None => {}
        }
    }
    quote.is_none().then_some(text.len())
}

/// Returns true if [`SILENT`] is around the place between two parts of a text.
fn is_silent(before: &str, here: &str) -> bool {
    let (number, file) = SILENT.split_at(1);
    let begins = before.strip_suffix(number).is_some_and(|before| before.ends_with([' ', '\t']));
    let after = here.strip_prefix(file);
    begins && after.is_some_and(|after| after.is_empty() || after.starts_with([' ', '\t', '\n', ';', '&', '|']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<OwnModes> {
        OwnModes::of(&Run::Line(line.to_owned()))
    }

    fn split(first: &str, rest: &str, needs_success: bool) -> Option<OwnModes> {
        Some(OwnModes::First { first: first.to_owned(), rest: rest.to_owned(), needs_success })
    }

    #[test]
    fn commands_that_set_modes_are_the_graders_own_at_the_beginning_of_its_line() {
        assert_eq!(of("chmod +x check/run.sh && check/run.sh"), split("chmod +x check/run.sh ", " check/run.sh", true));
        assert_eq!(of("chmod -R a+x \"check\"; sh b.sh"), split("chmod -R a+x \"check\"", " sh b.sh", false));
        let lines = "# modes\nchmod 755 'a b' && chown root a\nchgrp x *.sh\n\nsh a && sh b";
        assert_eq!(of(lines), split("chmod 755 'a b' && chown root a\nchgrp x *.sh", "\nsh a && sh b", false));
        assert_eq!(of("chmod +x a; chmod +x b || sh c"), split("chmod +x a", " chmod +x b || sh c", false));
        for all in ["chmod +x a", "chmod +x a && chmod +x b", "chmod +x a; # done", "chmod +x a # done"] {
            assert_eq!(of(all), Some(OwnModes::All), "{all}");
        }
        assert_eq!(of("chmod +x \\\n a && sh b"), split("chmod +x \\\n a ", " sh b", true));
        assert_eq!(of("chmod -- +x a; sh b"), split("chmod -- +x a", " sh b", false));
        assert_eq!(of("chmod +x a # it's\nsh b"), split("chmod +x a ", "sh b", false));
        assert_eq!(of("chmod +x a 2>/dev/null\nsh b"), split("chmod +x a 2>/dev/null", "sh b", false));
        assert_eq!(of("chmod +x a || true; sh b"), split("chmod +x a || true", " sh b", false));
        // If the shell ends, the rest must not run.
        let exits = "chmod +x a || exit 1\nchmod +x b\nsh b";
        assert_eq!(of(exits), split("chmod +x a || exit 1\nchmod +x b", "sh b", true));
        assert_eq!(of("rm -f -- 'a b' && sh b"), split("rm -f -- 'a b' ", " sh b", true));
        let words = ["chmod", "+x", "a"].map(str::to_owned).to_vec();
        assert_eq!(OwnModes::of(&Run::Program(words)), Some(OwnModes::All));
    }

    #[test]
    fn other_commands_that_set_modes_are_not_the_graders_own() {
        for line in [
            "sh build.sh && chmod +x a",
            "sh build.sh # chmod",
            "echo chmod; sh a",
            "chmod; sh a",
            "chmod +x $(sh build.sh); sh a",
            "chmod +x `sh build.sh`; sh a",
            "chmod +x \"$(sh build.sh)\"; sh a",
            "chmod +x $X; sh a",
            "chmod +x a | sh b",
            "chmod +x a & sh b",
            "chmod +x a || sh b",
            "chmod +x a || exit 0; sh b",
            "chmod +x a || exit 256; sh b",
            "chmod +x a || true || sh b",
            "chmod +x a > b; sh a",
            "chmod +x a 2>/dev/null/b; sh a",
            "chmod +x a2>/dev/null; sh a",
            "chmod +x a\\\\\nb; sh a",
            "chmod -\\\nv +x a; sh a",
            "rm -v a; sh a",
            "rm -rf dist; sh a",
            "rm -fR dist; sh a",
            "rm dist/*; sh a",
            "rm -i a; sh a",
            "set -e; chmod +x a; sh a",
            "chmod +x a <(sh b); sh a",
            "chmod -v +x a; sh a",
            "chmod --reference=a b; sh a",
            "chmod +x 'a; sh b",
            "X=1 chmod +x a; sh a",
            "./chmod +x a; sh a",
            "ln -s a b; sh a",
            "cp -al a b; sh a",
            "find . -exec chmod +x {} +",
            "# chmod +x a",
            "",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
        assert_eq!(OwnModes::of(&Run::Program(vec!["sh".to_owned(), "chmod".to_owned()])), None);
    }
}

//! Finds the commands at the beginning of a grader's line that set permissions or owners of files. They run before any other
//! program, so a change of a file that they make is the grader's own.

use super::{Run, runs_nothing};

/// The programs that change the state of a file and not what is written in it.
const PROGRAMS: [&str; 3] = ["chmod", "chown", "chgrp"];

/// The commands of a grader that set permissions or owners before any other program runs.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::grader) enum OwnModes {
    /// The grader runs no other program.
    All,
    /// The beginning of a line.
    First {
        /// The commands that set permissions or owners.
        first: String,
        /// The rest of the line.
        rest: String,
        /// True if the shell runs the rest only if `first` succeeds.
        needs_success: bool,
    },
}

impl OwnModes {
    /// Returns the commands of a grader that set permissions or owners before any other program runs, if there are any.
    pub(super) fn of(run: &Run) -> Option<Self> {
        let line = match run {
            Run::Line(line) => line.as_str(),
            Run::Program(words) => return words.first().filter(|name| is_known(name)).map(|_| Self::All),
        };
        let begin = without_comments(line);
        let (mut rest, mut end, mut needs_success) = (begin, 0, false);
        while let Some((len, join)) = command(without_comments(rest)) {
            let text = without_comments(rest);
            end = begin.len() - text.len() + len;
            rest = &text[len + join.len()..];
            needs_success = join == "&&";
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

/// Returns the length of the command at the beginning of a text, and the operator after it, if the command sets permissions or
/// owners, has plain arguments, and writes no standard output.
fn command(text: &str) -> Option<(usize, &'static str)> {
    let len = end_of_plain(text)?;
    let (command, after) = text.split_at(len);
    let join = ["&&", ";", "\n"].into_iter().find(|join| after.starts_with(*join));
    let join = join.or(after.is_empty().then_some(""))?;
    let mut words = command.split_whitespace();
    let is_meant = words.next().is_some_and(is_known);
    let writes = |word: &str| word.starts_with("--") || (word.starts_with('-') && word.contains(['v', 'c']));
    let words: Vec<&str> = words.collect();
    (is_meant && !words.is_empty() && !words.into_iter().any(writes)).then_some((len, join))
}

fn is_known(program: &str) -> bool {
    PROGRAMS.contains(&program)
}

/// Returns the place of the first operator or line end of a text, or its length. Returns `None` if the shell would run or replace
/// something before it, or write to a file. Patterns of file names are plain.
fn end_of_plain(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match quote {
            _ if ['$', '`', '\\'].contains(&c) => return None,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if [';', '\n', '&', '|'].contains(&c) => return Some(at),
            None if ['<', '>', '(', ')', '#'].contains(&c) => return None,
            None => {}
        }
    }
    quote.is_none().then_some(text.len())
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
        for all in ["chmod +x a", "chmod +x a && chmod +x b", "chmod +x a; # done"] {
            assert_eq!(of(all), Some(OwnModes::All), "{all}");
        }
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
            "chmod +x a > b; sh a",
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

//! The command lines in Perl and Ruby: the texts in quotes of these languages that run, and that calls such as `system` get.

use std::cell::Cell;
use std::sync::LazyLock;

use regex::Regex;

use super::{end_of, unescaped};
use crate::command_line::python::in_quotes;
use crate::command_line::runners::NOT_SHOWN;

mod literals;
mod values;

/// The names of the program of Ruby that runs the code.
const OWN_PROGRAMS: [&str; 2] = ["RbConfig.ruby", "Gem.ruby"];
/// The maximum number of characters that are searched for the ends of quotes.
const MAX_SEARCHED: usize = 4 << 20;

/// Returns the expression of a call that runs a command, up to its first argument. The first group that matches is the name.
pub(super) fn calls() -> Option<&'static Regex> {
    static CALLS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let of_modules = r"systemx|capturex|runx|capture2e?|capture3|popen2e?|popen3|Open3\.pipeline\w*";
        let names = format!(r"system|readpipe|popen|run|call|exec\w*|spawn\w*|sh|{of_modules}");
        let before = r"(?:args|cmd|command)\s*(?:=>?|:)\s*|(?:join|shell_quote)\s*\(\s*";
        // `send(:system, "rm a")`
        let sent = r"(?:send|__send__|public_send)\s*\(?\s*['\x22](system|exec|spawn)['\x22]\s*,\s*";
        let symbol = r":(system|exec|spawn)\s*,\s*";
        Regex::new(&format!(r"\b{sent}|{symbol}|\b({names})\b['\x22\])]*\s*\(?\s*(?:{before})?")).ok()
    });
    CALLS.as_ref()
}

/// Code in Perl or Ruby.
pub(super) struct PerlOrRuby<'a> {
    code: &'a str,
    is_perl: bool,
    /// The number of characters that are still searched.
    left: Cell<usize>,
}

impl<'a> PerlOrRuby<'a> {
    /// Returns the code of a program, unless it is in another language.
    pub fn of(program: &str, code: &'a str) -> Option<Self> {
        let is_perl = program == "perl";
        (is_perl || program == "ruby").then(|| Self { code, is_perl, left: Cell::new(MAX_SEARCHED) })
    }

    /// Returns true if a part of the code was not read.
    pub fn is_cut(&self) -> bool {
        self.left.get() == 0
    }

    /// Returns the command line that a call gets, from the place of its first argument. A part that the code does not show is
    /// [`NOT_SHOWN`].
    pub fn line(&self, name: &str, from: usize) -> String {
        let line = line_of(&self.words(self.code.get(from..).unwrap_or_default()));
        match name {
            // Functions with these names may do anything, so only what the code shows may be a command.
            "call" | "run" | "sh" => line.split(NOT_SHOWN).next().unwrap_or_default().to_owned(),
            _ => line,
        }
    }

    /// Returns the texts that run because of their quotes, and those of pipes: `qx(rm a)`, `` `rm a` ``, `open(F, "rm a |")`.
    pub fn other_lines(&self) -> Vec<String> {
        static QX: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?:^|[^\w$@%&])qx\b\s*").ok());
        static X: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("%x").ok());
        static HANDLE: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r"\bopen\s*\(?\s*(?:my\s+|local\s+)?[$*]?\w+\s*,\s*").ok());
        static HANDLES: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r"\bopen2\s*\(?(?:[^,;]*,){2}|\bopen3\s*\(?(?:[^,;]*,){3}").ok());
        static OPEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
            Regex::new(r"\b(?:open|IO\s*\.\s*(?:read|readlines|binread|foreach|write))\s*\(?\s*").ok()
        });
        let behind = |places: &'static LazyLock<Option<Regex>>| {
            let found = places.as_ref().into_iter().flat_map(|places| places.find_iter(self.code));
            found.filter_map(|place| self.code.get(place.end()..))
        };
        let in_quotes = |rest: &str| Some(unescaped(self.delimited(rest)?.0));
        let mut lines: Vec<String> = self.code.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        if self.is_perl {
            lines.extend(behind(&QX).filter_map(in_quotes));
            lines.extend(behind(&HANDLE).filter_map(|rest| of_open(&self.words(rest))));
            lines.extend(behind(&HANDLES).map(|rest| line_of(&self.words(rest))));
        } else {
            // `"%s %x" % list` is a text: what is in a text is masked.
            let masked = self.masked();
            let is_shown = |rest: &str| match &masked {
                Some(masked) => masked.get(..self.code.len() - rest.len()).is_some_and(|begin| begin.ends_with("%x")),
                None => !rest.starts_with(['"', '\'']),
            };
            lines.extend(behind(&X).filter(|rest| is_shown(rest)).filter_map(in_quotes));
            let opened = behind(&OPEN).map(|rest| self.words(rest));
            lines.extend(opened.filter_map(|words| words.first()?.strip_prefix('|').map(str::to_owned)));
        }
        lines
    }

    /// Returns the texts in a row at the beginning of the arguments of a call.
    fn words(&self, code: &str) -> Vec<String> {
        let is_open = |c: char| c.is_whitespace() || matches!(c, '(' | '[') || (c == '*' && !self.is_perl);
        let (first, mut rest) = self.behind_block(code);
        // The program in a block of Perl takes the place of the first word of the list.
        let replaced = usize::from(first.is_some());
        let mut words: Vec<String> = Vec::new();
        while let Some((mut texts, behind)) = self.literal(rest.trim_start_matches(is_open)) {
            rest = behind.trim_start();
            while let Some(more) = self.behind_joining_sign(rest) {
                let last = texts.last_mut();
                match self.literal(more.trim_start()) {
                    Some((added, behind)) => {
                        last.into_iter().for_each(|last| last.push_str(&added.join(" ")));
                        rest = behind.trim_start();
                    }
                    // What follows a value is not read.
                    None => {
                        last.into_iter().for_each(|last| last.push_str(NOT_SHOWN));
                        rest = "";
                    }
                }
            }
            words.extend(texts);
            let Some(next) = rest.strip_prefix(',').or_else(|| rest.strip_prefix("=>")) else { break };
            rest = next;
            let is_list = |first: &String| first.trim().is_empty() || !first.contains(char::is_whitespace);
            if words.first().is_some_and(is_list) && self.is_value_of_list(rest) {
                words.push(NOT_SHOWN.to_owned());
                break;
            }
        }
        first.into_iter().chain(words.into_iter().skip(replaced)).collect()
    }

    /// Returns the program in `exec {PROGRAM} LIST` of Perl, and the code behind the block, or behind the variables of
    /// `system({NAME => VALUE}, TEXT)` of Ruby.
    fn behind_block<'b>(&self, code: &'b str) -> (Option<String>, &'b str) {
        let is_begin = |c: char| c.is_whitespace() || c == '(';
        let block = code.trim_start_matches(is_begin).strip_prefix('{').and_then(|block| block.split_once('}'));
        let Some((inner, behind)) = block else { return (None, code) };
        if !self.is_perl {
            return (None, behind.trim_start().strip_prefix(',').unwrap_or(code));
        }
        match self.literal(inner.trim_start()) {
            Some((texts, _)) if behind.trim_start().starts_with(['"', '\'', 'q', '$', '@']) => {
                (texts.into_iter().next(), behind)
            }
            _ => (None, code),
        }
    }

    /// Returns the code behind the sign that joins two texts.
    fn behind_joining_sign<'b>(&self, code: &'b str) -> Option<&'b str> {
        match self.is_perl {
            true => code.strip_prefix('.').filter(|rest| !rest.starts_with('.')),
            false => code.strip_prefix('+'),
        }
    }

    /// Returns the text or the words in quotes at the beginning of code, and the code behind them.
    fn literal<'b>(&self, code: &'b str) -> Option<(Vec<String>, &'b str)> {
        const OF_PERL: [(&str, bool); 3] = [("qw", true), ("qq", false), ("q", false)];
        const OF_RUBY: [(&str, bool); 5] = [("%w", true), ("%W", true), ("%q", false), ("%Q", false), ("%", false)];
        if let Some(quote) = code.chars().next().filter(|c| matches!(c, '"' | '\'')) {
            let inner = code.get(1..)?;
            let end = end_of(inner, quote)?;
            return Some((vec![unescaped(inner.get(..end)?)], inner.get(end + 1..)?));
        }
        if let Some(behind) = OWN_PROGRAMS.iter().find_map(|name| code.strip_prefix(name)).filter(|_| !self.is_perl) {
            return Some((vec!["ruby".to_owned()], behind));
        }
        // A here-document.
        if let Some((size, end)) = literals::tag(code) {
            let behind = code.get(size..)?;
            let mut lines: Vec<&str> = Vec::new();
            for line in behind.split_once('\n')?.1.lines() {
                self.left.set(self.left.get().saturating_sub(line.len() + 1));
                if line.trim() == end {
                    return Some((vec![unescaped(&lines.join("\n"))], behind));
                }
                lines.push(line);
                if self.is_cut() {
                    break;
                }
            }
            return None;
        }
        let operators: &[(&str, bool)] = if self.is_perl { &OF_PERL } else { &OF_RUBY };
        operators.iter().find_map(|(operator, is_list)| {
            let rest = code.strip_prefix(operator)?;
            // `q #` begins a comment.
            let trimmed = rest.trim_start();
            let rest = if self.is_perl && !trimmed.starts_with('#') { trimmed } else { rest };
            let (inner, behind) = self.delimited(rest)?;
            let inner = unescaped(inner);
            let texts = if *is_list { inner.split_whitespace().map(str::to_owned).collect() } else { vec![inner] };
            Some((texts, behind))
        })
    }

    /// Returns the text between a sign at the beginning of code and the sign that closes it, and the code behind them.
    fn delimited<'b>(&self, code: &'b str) -> Option<(&'b str, &'b str)> {
        let is_sign =
            |c: &char| !c.is_alphanumeric() && !c.is_whitespace() && !matches!(c, '_' | ',' | ';' | ')' | '=');
        let open = code.chars().next().filter(is_sign)?;
        let close = match open {
            '(' => ')',
            '[' => ']',
            '{' => '}',
            '<' => '>',
            same => same,
        };
        let inner = code.get(open.len_utf8()..)?;
        let (mut depth, mut is_escaped) = (0_usize, false);
        for (at, c) in inner.char_indices() {
            self.left.set(self.left.get().checked_sub(1)?);
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                _ if c == close && depth == 0 => return Some((inner.get(..at)?, inner.get(at + c.len_utf8()..)?)),
                _ if c == close => depth -= 1,
                _ if c == open => depth += 1,
                _ => {}
            }
        }
        None
    }
}

/// Returns the command of `open` in Perl, whose arguments behind the handle are a mode and a command, or one text with a pipe.
fn of_open(words: &[String]) -> Option<String> {
    match words {
        [mode, command @ ..] if matches!(mode.trim(), "-|" | "|-") => Some(line_of(command)),
        [text] => {
            let text = text.trim();
            text.strip_prefix('|').or_else(|| text.strip_suffix('|')).map(str::to_owned)
        }
        _ => None,
    }
}

/// Returns a command as a text for a shell. A first text with blanks is a command line, whatever follows it.
fn line_of(words: &[String]) -> String {
    match words {
        [first, _, ..] if !first.contains(char::is_whitespace) => in_quotes(words),
        words => words.join(" "),
    }
}

/// Returns true if code in Perl or Ruby may run texts as code: `eval "…"`.
fn has_evaluation(code: &str) -> bool {
    let mut places = code.match_indices("eval");
    places.any(|(at, name)| !code.get(at + name.len()..).is_some_and(|behind| behind.trim_start().starts_with('{')))
}

//! Text for terminals: sanitises agents' text, wraps, cuts and colours text, and formats figures.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use tabled::grid::util::string::get_char_width;

use crate::text::first_chars;
pub use crate::text::plural;
use crate::trace::amount::Amount;
use crate::values::{is_hidden, is_variation};
use crate::verdict::Verdict;

/// The width, colours and signs of text output. The caller chooses them, because it knows the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// The number of columns of the terminal.
    pub width: usize,
    /// True if colours are written.
    pub colour: bool,
    /// True if this program may write non-ASCII signs.
    pub unicode: bool,
}

impl Look {
    /// The look for files, pipes and logs: no colour, ASCII signs.
    pub const PLAIN: Look = Look { width: 100, colour: false, unicode: false };

    /// The minimum width of a layout.
    const NARROWEST: usize = 40;

    /// Returns the look for a stream: plain if the stream is not a terminal; `NO_COLOR` and `CLICOLOR` are
    /// respected.
    pub fn of(stream: &impl anstream::stream::RawStream, width: Option<usize>) -> Self {
        let terminal = stream.is_terminal();
        Look {
            width: width.unwrap_or(Self::PLAIN.width),
            colour: anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never,
            unicode: terminal && locale_is_unicode(),
        }
    }

    /// Returns the width of the layout.
    pub fn columns(&self) -> usize {
        self.width.max(Self::NARROWEST)
    }

    pub fn paint(&self, style: Style, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// Returns the sign, or its plain replacement.
    pub fn sign(&self, unicode: &'static str, plain: &'static str) -> &'static str {
        if self.unicode { unicode } else { plain }
    }

    /// Returns a figure, with `≥` before a lower bound.
    pub fn amount<T: Copy>(&self, amount: Amount<T>, text: impl Fn(T) -> String) -> String {
        let sign = if amount.is_exact() { "" } else { self.sign("≥", ">=") };
        format!("{sign}{}", text(amount.value()))
    }

    /// Returns the sign for an unknown figure.
    pub fn unknown(&self) -> &'static str {
        self.sign("–", "-")
    }

    /// Returns the sign for omitted text.
    pub fn ellipsis(&self) -> &'static str {
        self.sign("…", "...")
    }
}

/// Returns true if the user's locale is in UTF-8, or if no locale is set.
pub fn locale_is_unicode() -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    is_unicode(names.map(|name| crate::own_environment::var(name).map(|value| value.to_string_lossy().into_owned())))
}

/// Returns true if the locale is in UTF-8 or not set. `values` are those of the locale variables; the first one that is
/// not empty counts.
fn is_unicode(values: [Option<String>; 3]) -> bool {
    let decides = values.into_iter().flatten().find(|value| !value.is_empty());
    decides.is_none_or(|value| {
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

/// The style of less important text.
pub const DIM: Style = Style::new().dimmed();
/// The style of headings.
pub const BOLD: Style = Style::new().bold();
/// The style of good results and added lines.
pub const GREEN: Style = AnsiColor::Green.on_default();
/// The style of bad results and removed lines.
pub const RED: Style = AnsiColor::Red.on_default();
/// The style of undecided results.
pub const YELLOW: Style = AnsiColor::Yellow.on_default();
/// The style of broken results.
pub const MAGENTA: Style = AnsiColor::Magenta.on_default();
/// The style of an agent's actions.
pub const CYAN: Style = AnsiColor::Cyan.on_default();
/// The style of the names of rules.
pub const BLUE: Style = AnsiColor::Blue.on_default();

pub fn verdict_style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Pass => GREEN,
        Verdict::Fail => RED,
        Verdict::Ungraded => YELLOW,
        Verdict::Errored => MAGENTA,
        Verdict::Skipped => DIM,
    }
}

/// Sanitises text for a terminal: colours are removed; other control characters, and characters that reorder or
/// hide text, are escaped. Line ends are kept, and tabs become spaces.
pub fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = after_colour(rest) {
            rest = after;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '\n' => out.push('\n'),
            '\t' => out.push_str("    "),
            '\r' if rest.starts_with('\n') || rest.is_empty() => {}
            // Text that a program overwrote is shown as separate lines.
            '\r' => out.push('\n'),
            '\0'..='\x1f' => {
                out.push('^');
                out.push(char::from(c as u8 + 0x40));
            }
            '\x7f' => out.push_str("^?"),
            // Variation selectors only choose among glyphs of different widths.
            c if is_variation(c) => {}
            c if is_hidden(c) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// Returns the text after a colour sequence, if the text begins with one.
fn after_colour(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("\x1b[")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';' && c != ':')?;
    rest[end..].strip_prefix('m')
}

/// Returns the text sanitised, on one line, with a maximum width.
pub fn one_line(text: &str, width: usize, look: &Look) -> String {
    // Text far longer than a line is not sanitised completely; a mark shows that it was cut.
    let most = width.saturating_mul(8).saturating_add(64);
    let head = first_chars(text, most);
    let clean = harmless(head);
    let mut line = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    if head.len() < text.len() {
        line.push_str(look.ellipsis());
    }
    cut(&line, width, look)
}

/// Returns the number of columns of sanitised text.
pub fn width_of(text: &str) -> usize {
    text.chars().map(get_char_width).sum()
}

/// Cuts the text to a number of columns, with a mark if something is missing.
pub fn cut(text: &str, width: usize, look: &Look) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let mark = look.ellipsis();
    let room = width.saturating_sub(width_of(mark));
    let mut out = prefix(text, room).to_owned();
    if width >= width_of(mark) {
        out.push_str(mark);
    }
    out
}

/// Cuts the middle of a name to fit a number of columns: names often differ at their end.
pub fn short_name(name: &str, width: usize, look: &Look) -> String {
    let clean = harmless(name).split_whitespace().collect::<Vec<_>>().join(" ");
    if width_of(&clean) <= width {
        return clean;
    }
    let room = width.saturating_sub(width_of(look.ellipsis()));
    let end = suffix(&clean, room / 2);
    format!("{}{}{end}", prefix(&clean, room - width_of(end)), look.ellipsis())
}

/// Returns the longest end of the text that fits a number of columns.
fn suffix(text: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices().rev() {
        used += get_char_width(c);
        if used > width {
            return &text[at + c.len_utf8()..];
        }
    }
    text
}

/// Returns the longest beginning of the text that fits a number of columns.
fn prefix(text: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += get_char_width(c);
        if used > width {
            return &text[..at];
        }
    }
    text
}

/// Wraps the text to lines of a number of columns, broken between words if possible; the indentation of each
/// line is kept. The text is sanitised.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    // A character may be two columns wide.
    let width = width.max(2);
    let mut lines = Vec::new();
    for line in harmless(text).trim_end().split('\n') {
        wrap_line(line.trim_end(), width, &mut lines);
    }
    lines
}

/// Returns the beginning of a broken word up to its last separator, such as a `/`, unless that is far from its
/// end.
fn joint(head: &str) -> &str {
    let last = head.rfind(['/', '-', '_', '.', ',', '&', '?', '=']).map(|at| at + 1);
    last.filter(|end| end * 2 > head.len()).map_or(head, |end| &head[..end])
}

/// Returns the parts of a line between which it may be broken: words, and texts in backquotes, so that a command can
/// be copied. A text in backquotes that is wider than a line is broken between its words.
fn pieces(line: &str, width: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches(' ');
        if rest.is_empty() {
            return pieces;
        }
        let word = rest.find(' ').unwrap_or(rest.len());
        let is_opened = rest[..word].matches('`').count() % 2 == 1;
        let closed = || {
            let end = word + rest[word..].find('`')? + 1;
            Some(end + rest[end..].find(' ').unwrap_or(rest.len() - end))
        };
        let whole = if is_opened { closed() } else { None };
        let end = whole.filter(|end| width_of(&rest[..*end]) <= width).unwrap_or(word);
        pieces.push(&rest[..end]);
        rest = &rest[end..];
    }
}

fn wrap_line(line: &str, width: usize, lines: &mut Vec<String>) {
    if width_of(line) <= width {
        lines.push(line.to_owned());
        return;
    }
    let indent = line.len() - line.trim_start_matches(' ').len();
    let indent = " ".repeat(if indent * 2 <= width && indent + 2 <= width { indent } else { 0 });
    let mut current = indent.clone();
    let mut used = indent.len();
    let mut empty = true;
    for word in pieces(line, width - indent.len()) {
        let wide = width_of(word);
        if !empty && used + 1 + wide > width {
            lines.push(std::mem::replace(&mut current, indent.clone()));
            used = indent.len();
            empty = true;
        }
        if !empty {
            current.push(' ');
            used += 1;
        }
        let mut word = word;
        let mut wide = wide;
        while used + wide > width {
            let head = joint(prefix(word, width.saturating_sub(used).max(2)));
            wide -= width_of(head);
            current.push_str(head);
            word = &word[head.len()..];
            lines.push(std::mem::replace(&mut current, indent.clone()));
            used = indent.len();
        }
        current.push_str(word);
        used += wide;
        empty = false;
    }
    lines.push(current);
}

/// Quotes a word of a command line for a shell; characters that act on a terminal are escaped.
pub fn shell_word_for_terminal(word: &str) -> String {
    let acts = |c: char| c.is_control() || harmless(c.encode_utf8(&mut [0; 4])).chars().ne([c]);
    if !word.chars().any(acts) {
        return crate::text::shell_word(word);
    }
    let mut out = String::from("$'");
    for c in word.chars() {
        match c {
            '\'' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_ascii_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c if acts(c) => {
                let _ = write!(out, "\\U{:08x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// Formats a duration, as `duration` of `html/page/text.js` does.
pub fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..59_950 => format!("{:.1}s", ms as f64 / 1000.0),
        // Rounded to a tenth of a second, it is a minute.
        59_950..60_000 => "1m00s".to_owned(),
        60_000..3_600_000 => format!("{}m{:02}s", ms / 60_000, ms % 60_000 / 1000),
        _ => format!("{}h{:02}m", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// Formats an amount of US dollars: from $0.10 in cents, below with at least four decimals, and below $0.01 with three
/// significant digits. `money` of `html/page/text.js` formats alike.
pub fn money(usd: f64) -> String {
    if usd >= 1e12 {
        // More digits would be unreadable.
        format!("${usd:.2e}")
    } else if usd == 0.0 || usd >= 0.099_95 {
        format!("${usd:.2}")
    } else if usd >= 0.01 {
        format!("${usd:.4}")
    } else if usd >= 1e-9 {
        format!("${}", small(usd))
    } else {
        "<$0.000000001".to_owned()
    }
}

/// Returns a small amount with three significant digits, without zeros after the fourth decimal.
fn small(usd: f64) -> String {
    let places = (2.0 - usd.log10().floor()).clamp(4.0, 12.0) as usize;
    let mut text = format!("{usd:.places$}");
    while text.len() > "0.0000".len() && text.ends_with('0') {
        text.pop();
    }
    text
}

/// Formats a large number, as `short` of `html/page/text.js` does.
pub fn count(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        // From 999,950 on, `1000.0k` would be shown.
        10_000..999_950 => format!("{:.1}k", number as f64 / 1000.0),
        _ => format!("{:.2}M", number as f64 / 1_000_000.0),
    }
}

/// Returns a key by which names are sorted as people count: the numbers in them by their value.
pub fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let text = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (before, after) = rest.split_at(text);
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let (number, after) = after.split_at(digits);
        parts.push((before.to_owned(), number.parse().unwrap_or(u64::MAX)));
        rest = after;
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_would_act_on_a_terminal_is_written_out() {
        assert_eq!(harmless("\x1b[32mok\x1b[0m"), "ok");
        assert_eq!(harmless("\x1b]0;title\x07"), "^[]0;title^G");
        assert_eq!(harmless("\x1b[2J\u{9b}2J"), "^[[2J\\u{9b}2J");
        assert_eq!(harmless("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(harmless("one\r\ntwo\rthree\n"), "one\ntwo\nthree\n");
    }

    #[test]
    fn words_are_quoted_only_where_a_shell_needs_it() {
        assert_eq!(shell_word_for_terminal("cases/a-b.yaml"), "cases/a-b.yaml");
        assert_eq!(shell_word_for_terminal("it's here"), r"'it'\''s here'");
        assert_eq!(shell_word_for_terminal(""), "''");
        assert_eq!(shell_word_for_terminal("a\x1b[2J'"), r"$'a\x1b[2J\''");
    }

    #[test]
    fn lines_break_between_words_and_keep_their_indentation() {
        assert_eq!(wrap("  one two three", 9), ["  one two", "  three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("run `evals init x`, then", 16), ["run", "`evals init x`,", "then"], "a command to copy");
        assert_eq!(wrap("run `evals init` now", 9), ["run", "`evals", "init` now"], "wider than a line");
        assert_eq!(wrap("a ` b c", 3), ["a `", "b c"]);
        assert_eq!(wrap("", 10), [""]);
    }

    #[test]
    fn the_first_locale_that_is_set_decides() {
        let of = |values: [&str; 3]| is_unicode(values.map(|value| Some(value.to_owned())));
        assert!(is_unicode([None, None, None]) && of(["", "", ""]) && of(["C.UTF-8", "C", "C"]));
        assert!(of(["", "de_DE.utf8", "C"]) && !of(["C", "en_US.UTF-8", "en_US.UTF-8"]));
        assert!(!of(["", "", "POSIX"]) && !of(["", "en_US", "en_US.UTF-8"]));
    }

    #[test]
    fn figures_are_short() {
        let times = [850, 1_234, 61_000, 3_720_000].map(duration);
        assert_eq!(times, ["850ms", "1.2s", "1m01s", "1h02m"]);
        assert_eq!([59_949, 59_950, 59_999, 60_000].map(duration), ["59.9s", "1m00s", "1m00s", "1m00s"]);
        assert_eq!([0.0, 0.00001, 0.0042, 1.5].map(money), ["$0.00", "$0.00001", "$0.0042", "$1.50"]);
        assert_eq!([0.000_06, 0.000_144, 0.001_234_5].map(money), ["$0.00006", "$0.000144", "$0.00123"]);
        assert_eq!([0.009_999, 0.0996, 0.099_96, 0.5049].map(money), ["$0.0100", "$0.0996", "$0.10", "$0.50"]);
        assert_eq!([1e-9, 1e-10].map(money), ["$0.000000001", "<$0.000000001"]);
        assert_eq!(money(1e308), "$1.00e308");
        assert_eq!([999, 12_345, 2_500_000].map(count), ["999", "12.3k", "2.50M"]);
        assert_eq!([999_949, 999_950, 1_000_000].map(count), ["999.9k", "1.00M", "1.00M"]);
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_asked_and_none_acts(text in "\\PC*|[\\x00-\\u{2fff}]*", width in 2usize..60) {
            for line in wrap(&text, width) {
                prop_assert!(width_of(&line) <= width, "{line:?}");
                prop_assert!(!line.chars().any(char::is_control));
            }
            let look = Look { width, colour: false, unicode: true };
            prop_assert!(width_of(&one_line(&text, width, &look)) <= width);
            prop_assert!(width_of(&short_name(&text, width, &look)) <= width);
        }
    }
}

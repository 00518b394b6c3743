//! The calls in Perl and Ruby that run a value, which may be any command.

use std::cell::Cell;
use std::sync::LazyLock;

use regex::{Match, Regex};

use super::{MAX_SEARCHED, PerlOrRuby};
use crate::command_line::code::not_run::are_own_functions;

/// Functions whose arguments are read as the words of a command.
const JOINING: [&str; 2] = ["join", "shell_quote"];

impl PerlOrRuby<'_> {
    /// Returns true if the code runs a value: `system(c)`.
    pub fn runs_value(&self) -> bool {
        let masked = self.masked();
        let code = masked.as_deref().unwrap_or(self.code);
        let shown = PerlOrRuby { code, is_perl: self.is_perl, left: Cell::new(MAX_SEARCHED) };
        if shown.runs_value_without_name() {
            return true;
        }
        let names = shown.names();
        let is_own = || !self.is_perl && !code.contains("super") && are_own_functions(code, names.iter().copied());
        self.is_cut() || shown.is_cut() || (!names.is_empty() && !is_own())
    }

    /// Returns true if a value runs in another way than in a call of a function with its arguments in brackets.
    fn runs_value_without_name(&self) -> bool {
        static OF_PERL: LazyLock<Option<Regex>> = LazyLock::new(|| {
            let functions = "lc|uc|lcfirst|ucfirst|split|map|reverse|readline|substr|pack|chr";
            let result = format!(r#"(?:{functions})\b[ \t]*[("'/{{$@]|sprintf\s*\("#);
            let value = format!(r#""?[$@]|{result}|(?:shift|pop)[ \t]*(?:[;,}})(@|/\n]|or\b|$)"#);
            let call = format!(r"(?:^|[^\w$@%>.])(?:system|exec|qx|readpipe)\s*[({{]?\s*(?:{value})");
            let pipe = r#"["'](?:-\||\|-)["']\s*,\s*(?:[$@]|shift\b)|"\s*\$\w+[^"]*\|\s*"|"\s*\|\s*\$"#;
            Regex::new(&format!(r"{call}|\bopen\s*\(?[^;,]*,\s*(?:{pipe})")).ok()
        });
        static OF_RUBY: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r##"(?:\bsystem|\bexec|%x|`)\s*[({]?\s*"?#\{"##).ok());
        let values = if self.is_perl { &OF_PERL } else { &OF_RUBY };
        (**values).as_ref().is_none_or(|values| values.is_match(self.code))
    }

    /// Returns the names in the calls of functions that run a value.
    fn names(&self) -> Vec<Match<'_>> {
        // The first group that matches is the name, and the first argument follows.
        static OF_PERL: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r"(?:^|[^\w$@%>.])(system|exec|readpipe)\s*\(\s*").ok());
        static OF_RUBY: LazyLock<Option<Regex>> = LazyLock::new(|| {
            let call = r"(?:^|[^\w.@:$])(system|exec|spawn)\s*\(\s*";
            let of_module = r"\b(?:Kernel|Process|IO|Open3)\s*\.\s*(system|exec|spawn|popen\w*|capture\w*)\s*\(\s*";
            let sent = r#"\b(?:send|__send__|public_send)\s*\(?\s*[:'"](system|exec|spawn)['"]?\s*,\s*"#;
            Regex::new(&format!("{call}|{of_module}|{sent}")).ok()
        });
        static BARE: LazyLock<Option<Regex>> = LazyLock::new(|| {
            let words = "do|then|else|if|unless|and|or|not|while|until|return";
            let behind = r"[;}\n.,\[(#|&?]|::|(?:if|unless|or|and|end|rescue)\b|$";
            let name = format!(r"ARGV\b|[@$]?[A-Za-z_]\w*[ \t]*(?:{behind})");
            let before = format!(r"(?m:^|[;{{|&=(!]|\b(?:{words})\b)");
            Regex::new(&format!(r"{before}\s*(system|exec|spawn)[ \t]+\*?({name})")).ok()
        });
        let calls = if self.is_perl { &OF_PERL } else { &OF_RUBY };
        let of = |calls: &'static LazyLock<Option<Regex>>| {
            calls.as_ref().into_iter().flat_map(|calls| calls.captures_iter(self.code))
        };
        let with_brackets = of(calls).filter_map(|call| {
            let is_value = self.is_value(self.code.get(call.get(0)?.end()..)?);
            call.iter().skip(1).flatten().next().filter(|_| is_value)
        });
        let bare = of(&BARE).filter(|_| !self.is_perl).filter_map(|call| {
            let value = self.code.get(call.get(2)?.start()..)?;
            call.get(1).filter(|_| self.literal(value).is_none())
        });
        with_brackets.chain(bare).collect()
    }

    /// Returns true if the first argument of a call is no text, but a value.
    fn is_value(&self, arguments: &str) -> bool {
        let behind_block = if self.is_perl { arguments } else { self.behind_block(arguments).1 };
        let arguments = behind_block.trim_start();
        // `*c` and `*c.d` of Ruby; `*%w[…]` and `*["…"]` are texts.
        let is_mark = |c: char| c.is_whitespace() || (!self.is_perl && matches!(c, '*' | '['));
        let first = arguments.trim_start_matches(is_mark);
        let is_begin = |c: char| c.is_alphabetic() || matches!(c, '_' | ':' | '$' | '@' | '&' | '<');
        let is_spread = !self.is_perl && arguments.starts_with('*') && first.starts_with('(');
        let is_joining =
            |name: &str| first.strip_prefix(name).is_some_and(|behind| behind.trim_start().starts_with('('));
        let is_read = JOINING.iter().any(|name| is_joining(name));
        is_spread || (first.starts_with(is_begin) && !is_read && self.literal(first).is_none())
    }

    /// Returns true if code behind a comma is an argument that is a value, and no option such as `exception: true` of Ruby.
    pub(super) fn is_value_of_list(&self, code: &str) -> bool {
        static OPTION: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r"^(?:\w+:(?:[^:]|$)|:\w|\[\s*:|\*\*|nil\b|true\b|false\b)").ok());
        let code = code.trim_start();
        let is_option = || !self.is_perl && OPTION.as_ref().is_some_and(|option| option.is_match(code));
        let first = if self.is_perl { code } else { code.trim_start_matches(['*', '[', '(', ' ']) };
        let is_begin = |c: char| c.is_alphabetic() || matches!(c, '_' | '$' | '@' | '&' | '<');
        first.starts_with(is_begin) && !is_option() && self.literal(first).is_none()
    }
}

//! Globs for paths: translated to regular expressions over characters, in which `*`, `?` and `[…]` stay within a folder.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use globset::{Glob, GlobBuilder};

use super::regex_once::RegexOnce;

/// The end of the form of a glob that ends with `/`: the folder, and everything in it.
const FOLDER: &str = "{,/**}";

/// A glob for paths: `*` stays within a folder, `**` crosses folders. A glob that ends with `/` matches a folder and
/// everything in it. A class such as `[id]` matches one of its characters, and also a name that holds the same text:
/// frameworks name folders so.
#[derive(Debug, Clone)]
pub struct PathGlob {
    glob: Glob,
    /// The text for messages: that of `glob`, with `/` in the place of [`FOLDER`].
    shown: String,
    form: RegexOnce,
    /// The form in which brackets are plain characters, if the glob has brackets.
    plain_brackets: Option<RegexOnce>,
    /// True for `../**`, which means every path outside the workspace.
    is_above: bool,
}

/// Returns true if a part of a glob is a name, without signs of a glob.
pub fn is_plain(part: &str) -> bool {
    !part.contains(['*', '?', '[', '{', '\\'])
}

/// Returns a glob that matches a text only, also as a part of a longer glob.
pub fn escaped_glob(text: &str) -> String {
    // A comma separates alternatives within braces.
    text.chars().flat_map(|c| ['\\'].into_iter().filter(move |_| "*?[]{}\\!,".contains(c)).chain([c])).collect()
}

/// Returns the text that a part of a glob matches alone, or `None` if it has wildcards, classes or braces.
fn unescaped(part: &str) -> Option<String> {
    let mut text = String::new();
    let mut chars = part.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.push(chars.next()?),
            '*' | '?' | '[' | '{' => return None,
            other => text.push(other),
        }
    }
    Some(text)
}

impl PathGlob {
    /// Returns true if the glob is a path, without signs of a glob.
    pub fn is_path(&self) -> bool {
        self.path().is_some()
    }

    /// Returns the path that the glob matches alone, or `None` if the glob has wildcards, classes or braces.
    pub fn path(&self) -> Option<String> {
        unescaped(&self.shown)
    }

    /// Returns true if the glob matches a path relative to the workspace.
    pub fn is_match(&self, path: &str) -> bool {
        if self.is_above {
            let is_outside = path.starts_with('/') || path.starts_with("../");
            let path = path.trim_start_matches("../").trim_start_matches('/');
            return is_outside && self.has_form(&format!("/{path}"));
        }
        self.has_form(path)
    }

    fn has_form(&self, path: &str) -> bool {
        self.form.is_match(path) || self.plain_brackets.as_ref().is_some_and(|form| form.is_match(path))
    }

    /// Returns true if the glob matches a path, which may not be valid text.
    pub fn is_match_path(&self, path: &Path) -> bool {
        match path.to_str() {
            Some(text) => self.is_match(text),
            None => self.glob.compile_matcher().is_match(path),
        }
    }

    /// Returns true if `protect` with this glob protects a path: the glob matches the path, or it ends with the name of a
    /// folder that contains the path.
    pub fn protects(&self, path: &Path) -> bool {
        let text = self.to_string();
        let ends_with_name = unescaped(text.rsplit('/').next().unwrap_or_default()).is_some();
        let mut folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        self.is_match_path(path) || (ends_with_name && folders.any(|folder| self.is_match_path(folder)))
    }

    /// Returns true if the glob matches every path.
    pub fn is_any(&self) -> bool {
        ["a", "src/a.b", ".x/y/z", "/etc/a", "../a"].iter().all(|path| self.is_match(path))
    }

    /// Returns the glob that also matches everything in a folder that this glob matches, if this glob ends with a name
    /// without wildcards.
    #[must_use]
    pub fn with_content(&self) -> Self {
        let name = self.shown.rsplit('/').next().unwrap_or_default();
        let is_name = !name.is_empty() && !name.contains(['*', '?', '[', ']', '{', '}', ',', '\\']);
        match format!("{}/", self.shown).parse::<Self>() {
            Ok(glob) if is_name => Self { shown: self.shown.clone(), ..glob },
            _ => self.clone(),
        }
    }

    /// Returns true if the glob ends with `/`, so that it is about a folder.
    pub fn is_folder(&self) -> bool {
        self.glob.glob().ends_with(FOLDER)
    }

    /// Returns true for `../**`, which means every path outside the workspace.
    pub fn is_above(&self) -> bool {
        self.is_above
    }

    /// Returns true if the glob is about absolute paths.
    pub fn is_absolute(&self) -> bool {
        self.glob.glob().starts_with('/')
    }

    /// Returns true if the glob is about paths in the workspace.
    pub fn is_relative(&self) -> bool {
        !self.is_above && !self.is_absolute()
    }

    /// Returns the location of the files that match the glob, relative to a path, if the path is a folder.
    pub fn lies_below(&self, folder: &str) -> Below {
        let text = match self.glob.glob().strip_suffix(FOLDER) {
            Some(folder) => &format!("{folder}/**"),
            None => self.glob.glob(),
        };
        let parts: Vec<&str> = text.split('/').collect();
        let base: Vec<&str> = parts.iter().take_while(|part| is_plain(part)).copied().collect();
        if folder == "." {
            return match (self.is_relative(), base.is_empty()) {
                (false, _) => Below::None,
                (true, true) => Below::Perhaps,
                (true, false) => Below::All,
            };
        }
        let folder: Vec<&str> = folder.trim_end_matches('/').split('/').collect();
        if base.len() >= folder.len() && base.starts_with(&folder) {
            // A plain glob means the path itself.
            return if parts.len() > folder.len() { Below::All } else { Below::None };
        }
        if may_lie_below(&parts, &folder) { Below::Perhaps } else { Below::None }
    }
}

/// The position of the files that match a glob, relative to a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Below {
    /// All matching files are below the folder, because the glob begins with the folder.
    All,
    /// Some of the matching files may be below the folder.
    Perhaps,
    /// None of the matching files is below the folder.
    None,
}

/// Returns true if a path below a folder can match a glob. Both are given as lists of path parts.
fn may_lie_below(glob: &[&str], folder: &[&str]) -> bool {
    match (glob, folder) {
        ([], _) => false,
        (_, []) => true,
        // `{a,b/c}` may contain `/`, so the rest cannot be compared component by component.
        ([first, ..], _) if *first == "**" || first.contains(['{', '[', '\\']) => true,
        ([first, glob @ ..], [part, folder @ ..]) => {
            let fits = first.parse::<PathGlob>().is_ok_and(|first| first.is_match(part));
            fits && may_lie_below(glob, folder)
        }
    }
}

impl FromStr for PathGlob {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let clean = text.strip_prefix("./").unwrap_or(text);
        let wrong = |why: String| format!("`{text}` is not a glob: {why}");
        if clean.starts_with('!') {
            let why = "it would exclude nothing, because no glob excludes; write `\\!` for a name that begins with `!`";
            return Err(wrong(why.to_owned()));
        }
        // Paths are compared without `.` and empty parts.
        let mut clean = clean.to_owned();
        while let Some((at, part)) = ["/./", "//"].iter().find_map(|part| Some((clean.find(part)?, part))) {
            clean.replace_range(at..at + part.len(), "/");
        }
        if let Some(backslash) = folded_backslash(&clean) {
            let why = format!("`{backslash}` is read as a plain character; write `/` between folders");
            return Err(wrong(why));
        }
        if ends_with_slash_in_braces(&clean) {
            let why = "one of its alternatives ends with `/`, which no path does; write `{src,lib}/` for folders";
            return Err(wrong(why.to_owned()));
        }
        let mut shown = clean.clone();
        if let Some(mut folder) = clean.strip_suffix('/').filter(|folder| !folder.is_empty()) {
            // `src/**/` is the folder `src`, too.
            while let Some(above) = folder.strip_suffix("/**").filter(|it| !it.is_empty() && !it.ends_with("..")) {
                folder = above;
            }
            let is_all = folder.ends_with("**");
            shown = if is_all { folder.to_owned() } else { format!("{folder}/") };
            clean = if is_all { folder.to_owned() } else { format!("{folder}{FOLDER}") };
        }
        let clean = clean.as_str();
        let below = clean.trim_start_matches("../");
        let is_above = below.len() < clean.len() && below.starts_with("**");
        let meant = if is_above { format!("/{below}") } else { clean.to_owned() };
        if meant.split(['/', '{', ',', '}']).any(|part| part == "..") {
            let why = "paths are compared without `..`; a path in the workspace is relative to it, and outside of it \
                       graders of calls take an absolute path, or `../**` for all";
            return Err(wrong(why.to_owned()));
        }
        let glob = GlobBuilder::new(clean).literal_separator(true).empty_alternates(true).build();
        let glob = glob.map_err(|error| wrong(error.kind().to_string()))?;
        let form = translated(&meant).ok_or_else(|| {
            wrong("`**` within a name does not cross folders; write `**/*` to cross them, as in `**/*.lock`".to_owned())
        })?;
        let form = RegexOnce::new(&form)
            .map_err(|_| wrong("a class `[…]` has no character but `/`, which it never matches".to_owned()))?;
        let has_brackets = meant.contains('[') && !meant.contains('\\');
        let plain = has_brackets.then(|| translated(&meant.replace('[', "\\[").replace(']', "\\]"))).flatten();
        let plain_brackets = plain.and_then(|plain| RegexOnce::new(&plain).ok());
        Ok(Self { glob, shown, form, plain_brackets, is_above })
    }
}

impl fmt::Display for PathGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl PartialEq for PathGlob {
    fn eq(&self, other: &Self) -> bool {
        self.glob == other.glob
    }
}

/// Returns a backslash with the character after it, if the backslash was meant as a separator of folders: it stands
/// before a letter, a digit, `_` or `**`.
fn folded_backslash(glob: &str) -> Option<String> {
    let mut chars = glob.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            continue;
        }
        let escaped = chars.next()?;
        let is_of_name = escaped.is_alphanumeric() || escaped == '_';
        let is_separator = is_of_name || (escaped == '*' && chars.peek() == Some(&'*'));
        if is_separator {
            return Some(format!("\\{escaped}"));
        }
    }
    None
}

/// Returns true if an alternative at the end of a glob ends with `/`.
fn ends_with_slash_in_braces(glob: &str) -> bool {
    let last = glob.rfind('{').and_then(|at| glob.get(at..)).filter(|_| glob.ends_with('}') && !glob.contains('\\'));
    last.is_some_and(|last| last.contains("/,") || last.contains("/}"))
}

/// Returns the regular expression of a glob that is known to be well formed, or `None` if two stars are within a name.
fn translated(glob: &str) -> Option<String> {
    let chars: Vec<char> = glob.chars().collect();
    let mut form = String::from("(?s)^");
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(c) = chars.get(at) {
        at += 1;
        match c {
            '*' if chars.get(at) == Some(&'*') => at = stars(&chars, at - 1, depth, &mut form)?,
            '*' => form.push_str("[^/]*"),
            '?' => form.push_str("[^/]"),
            '[' => at = class(&chars, at, &mut form),
            '{' => {
                depth += 1;
                form.push_str("(?:");
            }
            '}' if depth > 0 => {
                depth -= 1;
                form.push(')');
            }
            ',' if depth > 0 => form.push('|'),
            '\\' => {
                literal(chars.get(at).copied().unwrap_or('\\'), &mut form);
                at += 1;
            }
            other => literal(*other, &mut form),
        }
    }
    form.push('$');
    Some(form)
}

fn literal(c: char, form: &mut String) {
    form.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
}

/// Translates two stars from a position, which cross folders. Returns the position after them, or `None` if they are not
/// a whole part of the path.
fn stars(chars: &[char], from: usize, depth: usize, form: &mut String) -> Option<usize> {
    let ends = |c: Option<&char>| match c {
        None | Some('/') => true,
        Some(',' | '}') => depth > 0,
        Some(_) => false,
    };
    let begins = |c: Option<&char>| match c {
        None | Some('/') => true,
        Some(',' | '{') => depth > 0,
        Some(_) => false,
    };
    let to = from + 2;
    let before = from.checked_sub(1).and_then(|at| chars.get(at));
    if !begins(before) || !ends(chars.get(to)) {
        return None;
    }
    let after = match (before, chars.get(to)) {
        (Some('/'), Some('/')) => {
            // `a/**/b` matches `a/b`, too.
            form.push_str("(?:.*/)?");
            to + 1
        }
        (_, Some('/')) => {
            form.push_str("(?:/?|.*/)");
            to + 1
        }
        (Some('/'), _) => {
            form.push_str(".+");
            to
        }
        _ => {
            form.push_str(".*");
            to
        }
    };
    Some(after)
}

/// Translates a class of characters from the position after its bracket. Returns the position after it.
fn class(chars: &[char], from: usize, form: &mut String) -> usize {
    let is_negated = matches!(chars.get(from), Some('!' | '^'));
    let first = from + usize::from(is_negated);
    // A bracket that comes first is a member.
    let length = chars.iter().skip(first + 1).position(|c| *c == ']').map_or(0, |length| length + 1);
    let members = chars.get(first..first + length).unwrap_or_default();
    form.push_str(if is_negated { "[^/" } else { "[" });
    for (n, c) in members.iter().enumerate() {
        match c {
            '-' if n > 0 && n + 1 < members.len() => form.push('-'),
            '/' if !is_negated => {}
            other => {
                form.push('\\');
                if other.is_alphanumeric() || !other.is_ascii() {
                    form.pop();
                }
                form.push(*other);
            }
        }
    }
    form.push(']');
    first + length + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_star_stays_within_a_folder() {
        for (glob, fits, not) in [
            ("src/*.rs", &["src/a.rs"][..], &["src/a/b.rs"][..]),
            ("**/.git/**", &[".git/config", "a/.git/config", "/a/.git/x/y"], &["a.git/config", ".git"]),
            ("a/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["ab", "a/xb"]),
            ("a/**", &["a/b", "a/b/c"], &["a", "ab"]),
            ("**", &["a", "a/b"], &[]),
            ("src/{,sub/}x.py", &["src/x.py", "src/sub/x.py"], &["src/y/x.py"]),
            ("{src,lib}/**", &["src/a", "lib/a/b"], &["srca"]),
            ("{**/a,b}", &["a", "x/a", "b"], &["x/b"]),
            ("src/?.py", &["src/x.py", "src/é.py"], &["src/xy.py", "src//.py"]),
            ("src/[!x].py", &["src/é.py", "src/y.py"], &["src/x.py", "src//.py"]),
            ("src/[é-ü].py", &["src/ê.py"], &["src/e.py"]),
            ("a[!x]b", &["ayb"], &["a/b", "axb"]),
            ("a[]x]b", &["a]b", "axb"], &["ayb"]),
            ("app/[id]/**", &["app/[id]/page.tsx", "app/i/x"], &["app/x/y", "app/id/y", "app/[id"]),
            ("[...slug].tsx", &["[...slug].tsx", "s.tsx"], &["slug.tsx"]),
            ("a.b", &["a.b"], &["axb"]),
            ("a\\*b", &["a*b"], &["axb"]),
            ("./src/a", &["src/a"], &["./src/a"]),
            ("src//./a", &["src/a"], &["src//a"]),
            ("secrets/", &["secrets", "secrets/a", "secrets/a/b"], &["secretsx", "a/secrets/b"]),
            ("**/t/", &["t/a", "x/t/a", "x/t"], &["xt/a"]),
            ("src/**/", &["src", "src/a", "src/a/b"], &["srca", "a/src"]),
            ("src/**/**/", &["src", "src/a/b"], &["srca"]),
            ("**/t/**/", &["t", "x/t/a/b"], &["xt/a"]),
            ("src/*/", &["src/a", "src/a/b"], &["src"]),
            ("**/", &["a", "a/b"], &[]),
            ("/**/", &["/a", "/a/b"], &["a"]),
            ("../**/", &["/etc/x", "../x"], &["x"]),
            ("/etc/./*", &["/etc/a"], &["/a"]),
            ("../**", &["/etc/x", "../x", "../../x"], &["x", "a/b"]),
            ("../**/x", &["/etc/x", "../x", "/x"], &["x", "/etc/y"]),
        ] {
            let parsed: PathGlob = glob.parse().unwrap();
            fits.iter().for_each(|path| assert!(parsed.is_match(path), "{glob} {path} {}", parsed.form));
            not.iter().for_each(|path| assert!(!parsed.is_match(path), "{glob} {path} {}", parsed.form));
        }
        for glob in ["lib/../src/x", "../x", "{a,../b}"] {
            assert!(glob.parse::<PathGlob>().unwrap_err().contains("without `..`"), "{glob}");
        }
        assert!("a[b".parse::<PathGlob>().is_err());
        for glob in ["**.lock", "src/**.lock", "a**b", "a**/b", "a/***/b", "**{.lock,.toml}", "{src,lib}**"] {
            assert!(glob.parse::<PathGlob>().unwrap_err().contains("`**/*.lock`"), "{glob}");
        }
        for glob in ["src\\a.lock", "tests\\**", "a\\_b"] {
            assert!(glob.parse::<PathGlob>().unwrap_err().contains("write `/` between folders"), "{glob}");
        }
        for glob in ["{src/,lib}", "src/{,sub/}", "{src,lib/}"] {
            assert!(glob.parse::<PathGlob>().unwrap_err().contains("`{src,lib}/`"), "{glob}");
        }
        assert!("[**]".parse::<PathGlob>().unwrap().is_match("*"));
        assert!("src[/]a".parse::<PathGlob>().unwrap_err().contains("never matches"));
    }

    #[test]
    fn a_name_can_stand_for_a_folder_with_its_content() {
        for (glob, fits, not) in [
            ("vendor", &["vendor", "vendor/a/b"][..], &["vendors", "a/vendor"][..]),
            ("**/vendor", &["vendor/a", "x/vendor/a"], &["x/vendors/a"]),
            ("*.rs", &["a.rs"], &["a.rs/b"]),
            ("src/**", &["src/a"], &["src"]),
            ("src/{a,b}", &["src/a"], &["src/a/x"]),
        ] {
            let parsed = glob.parse::<PathGlob>().unwrap().with_content();
            assert_eq!(parsed.to_string(), glob);
            fits.iter().for_each(|path| assert!(parsed.is_match(path), "{glob} {path}"));
            not.iter().for_each(|path| assert!(!parsed.is_match(path), "{glob} {path}"));
        }
        let folder: PathGlob = "src/**/".parse().unwrap();
        assert_eq!((folder.to_string().as_str(), folder.is_folder()), ("src/", true));
    }

    #[test]
    fn an_escaped_name_can_be_that_of_a_folder() {
        for (glob, path, protects) in [
            (r"golden/\[1\]", "golden/[1]/a.json", true),
            (r"golden/\[1\]", "golden/1/a.json", false),
            ("golden/[1]", "golden/1/a.json", false),
        ] {
            assert_eq!(glob.parse::<PathGlob>().unwrap().protects(Path::new(path)), protects, "{glob} {path}");
        }
        assert_eq!("src/*.rs".parse::<PathGlob>().unwrap().path(), None);
    }

    proptest! {
        #[test]
        fn an_escaped_text_is_matched_alone(text in "[a0,*?{}\\[\\]\\\\!é-]{1,6}", other in "[a0,*?{}\\[\\]\\\\!é-]{1,6}") {
            let glob = escaped_glob(&text);
            for glob in [glob.clone(), format!("{{{glob},b}}")] {
                let parsed = glob.parse::<PathGlob>().unwrap();
                prop_assert!(parsed.is_match(&text), "{} {}", glob, text);
                prop_assert_eq!(parsed.is_match(&other), text == other, "{} {}", glob, other);
            }
            prop_assert_eq!(glob.parse::<PathGlob>().unwrap().path(), Some(text));
        }

        #[test]
        fn ascii_globs_match_as_those_of_globset(glob in "[ab/*?.]{0,9}|[ab/]{0,3}\\{[ab/]{1,2}\\*?,[ab]{1,2}\\}[ab/]{0,3}|[ab]?\\[[ab]{1,2}\\][ab/]{0,2}", path in "[ab/.]{0,8}") {
            let Ok(parsed) = glob.parse::<PathGlob>() else { return Ok(()) };
            // Paths are compared in normal form.
            prop_assume!(!glob.ends_with('/') && !path.contains("//") && !path.ends_with('/') && !path.is_empty());
            prop_assert_eq!(parsed.is_match(&path), parsed.glob.compile_matcher().is_match(&path), "{} {}", parsed.form, path);
        }
    }

    #[test]
    fn a_glob_tells_which_folders_hold_its_files() {
        for (glob, folder, below) in [
            ("src/**", "src", Below::All),
            ("src/a.rs", "src", Below::All),
            ("src/a.rs", "src/a.rs", Below::None),
            ("src/lib/*.rs", "src", Below::All),
            ("src/**/*.rs", "src/lib", Below::Perhaps),
            ("src/*/x.rs", "src/lib", Below::Perhaps),
            ("src/*.rs", "src/lib", Below::None),
            ("src/**", "source", Below::None),
            ("**/.env", "config", Below::Perhaps),
            ("src/**", ".", Below::All),
            ("**/.env", ".", Below::Perhaps),
            ("/etc/**", ".", Below::None),
            ("{src,lib}/**", "lib", Below::Perhaps),
            ("/etc/**", "/etc", Below::All),
            ("/etc/**", "/", Below::All),
            ("etc/**", "/", Below::None),
            ("*.rs", "src", Below::None),
        ] {
            assert_eq!(glob.parse::<PathGlob>().unwrap().lies_below(folder), below, "{glob} {folder}");
        }
    }
}

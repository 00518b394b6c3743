//! Hashes: by how they look, and where they are short and figures or letters alone by what stands around them.

use std::borrow::Cow;
use std::collections::HashSet;

use regex::Captures;

use super::chances::{and, between, mixed, patterns};

patterns! {
    HEX = r"\b(?:0x)?[0-9a-fA-F]{7,128}\b";
    /// `v1.2-3-gabc1234`, as `git describe` writes it.
    DESCRIBED = r"(?P<since>-\d+-g)[0-9a-f]{7,40}\b";
    /// A word that says that a hash follows.
    NAMED = r"(?P<word>(?:\b(?i:commits?|sha1?|sha256|hash|revision|pick|reword|fixup|squash|HEAD is now at|HEAD detached at|HEAD position was|switching to)|\(was|\bMerge:)['\x22]?[ =:(]{1,3}['\x22`(]?)(?P<hash>[0-9a-f]{7,40})(?P<more>(?:(?:\.{2,3}| )[0-9a-f]{7,40})?)\b";
    /// What a diff says of a file, and a merge of a branch: `index 1234567..89abcde 100644`.
    INDEX = r"(?P<word>\b(?:index|Updating) )[0-9a-f]{7,40}\.\.[0-9a-f]{7,40}\b";
    /// What `git commit` says: `[main 1234567] Message`.
    COMMITTED = r"(?m)(?P<word>^\[[\w./-]+(?: HEAD)?(?: \(root-commit\))? )[0-9a-f]{7,40}\]";
    /// What `git push` and `git fetch` say: `1234567..89abcde  main -> main`.
    PUSHED = r"\b[0-9a-f]{7,40}(?P<dots>\.{2,3})[0-9a-f]{7,40}(?P<to> +[\w./-]+ +-> )";
    RANGE = r"\b(?P<from>[0-9a-f]{7,40})(?P<dots>\.{2,3})(?P<to>[0-9a-f]{7,40})\b";
    /// A line of `git log --oneline` or of the reflog.
    LINE = r"(?m)(?P<graph>^[*|/\\ ]*)(?P<hash>[0-9a-f]{7,40})(?P<more> (?:\((?:HEAD|tag: |origin/)|HEAD@\{)?)";
    /// A command with which git, or a program for containers, is told of an object.
    COMMAND = r"\b(?P<program>git|docker|podman)(?P<rest>(?: [^;|&\n]*)?)";
    WORD = r"(?P<blank>\s+)(?P<word>\S+)";
    /// A revision: a hash with what git takes beside it.
    REVISION = r"^(?P<before>['\x22(]?(?:--(?:source|onto)=)?\^?)(?P<hash>[0-9a-f]{7,40})(?P<after>(?:[~^@:'\x22)].*)?)$";
    CONTAINER = r"^(?P<before>)(?P<hash>[0-9a-f]{12}|[0-9a-f]{64})(?P<after>(?::.*)?)$";
}

/// Subcommands of git that are told revisions.
const REVISIONS_OF: [&str; 28] = [
    "archive",
    "bisect",
    "blame",
    "branch",
    "cat-file",
    "checkout",
    "cherry-pick",
    "describe",
    "diff",
    "diff-tree",
    "difftool",
    "format-patch",
    "log",
    "ls-tree",
    "merge",
    "merge-base",
    "name-rev",
    "push",
    "range-diff",
    "rebase",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "show",
    "switch",
    "worktree",
];

/// Options that take a word, which is then none of an object.
const TAKES_A_WORD: [&str; 23] = [
    "-n",
    "-S",
    "-G",
    "-U",
    "-L",
    "-m",
    "-C",
    "-c",
    "-b",
    "-B",
    "-p",
    "-e",
    "-v",
    "--max-count",
    "--skip",
    "--grep",
    "--since",
    "--until",
    "--after",
    "--before",
    "--author",
    "--tail",
    "--name",
];

/// Hashes become a word. Numbers of a program that an argument holds are what the agent chose; prose tells addresses.
pub fn replaced<'t>(text: Cow<'t, str>, prose: bool) -> Cow<'t, str> {
    let text = and(text, &DESCRIBED, |found| format!("{}{{hash}}", &found["since"]));
    let text = and(text, &NAMED, |found| {
        let more = match found["more"].trim_start_matches('.') {
            "" => String::new(),
            more if more.starts_with(' ') && !found["word"].starts_with("Merge") => found["more"].to_owned(),
            more => format!("{}{{hash}}", &found["more"][..found["more"].len() - more.trim_start().len()]),
        };
        format!("{}{{hash}}{more}", &found["word"])
    });
    let text = and(text, &INDEX, |found| format!("{}{{hash}}..{{hash}}", &found["word"]));
    let text = and(text, &COMMITTED, |found| format!("{}{{hash}}]", &found["word"]));
    let text = and(text, &PUSHED, |found| format!("{{hash}}{}{{hash}}{}", &found["dots"], &found["to"]));
    let text = and(text, &RANGE, |found| {
        // `1000000..2000000` is a range of numbers.
        let hashes = mixed(&found["from"]) || mixed(&found["to"]);
        if hashes { format!("{{hash}}{}{{hash}}", &found["dots"]) } else { found[0].to_owned() }
    });
    let text = and(text, &COMMAND, |found| format!("{}{}", &found["program"], told(&found["program"], &found["rest"])));
    let text = lines(text);
    between(text, &HEX, |found, before, _| {
        // A colour has a sign before it, and a number of a program has `0x`.
        let chosen = before == Some('#') || (!prose && found[0].starts_with("0x"));
        if chosen || !mixed(&found[0]) { found[0].to_owned() } else { "{hash}".to_owned() }
    })
}

/// Lines that begin as those of a log: by a mark behind the hash, or because another line's hash is as long and looks
/// like one.
fn lines(text: Cow<'_, str>) -> Cow<'_, str> {
    if !text.contains(['\n', '(', '@']) {
        return text;
    }
    let hashes = LINE.captures_iter(&text).map(|found| found["hash"].to_owned());
    let lengths: HashSet<usize> = hashes.filter(|hash| mixed(hash)).map(|hash| hash.len()).collect();
    and(text, &LINE, |found: &Captures<'_>| {
        let known = found["more"].len() > 1 || lengths.contains(&found["hash"].len());
        if known { format!("{}{{hash}}{}", &found["graph"], &found["more"]) } else { found[0].to_owned() }
    })
}

/// What a command is told, with each object that it names by a hash replaced.
fn told(program: &str, rest: &str) -> String {
    let mut words = WORD.captures_iter(rest).map(|found| found["word"].to_owned());
    // `git -C FOLDER -c KEY=VALUE show …`
    let mut subcommand = words.next();
    while let Some(option) = subcommand.take_if(|word| word.starts_with('-')) {
        if ["-C", "-c"].contains(&option.as_str()) {
            words.next();
        }
        subcommand = words.next();
    }
    let is_git = program == "git";
    if is_git && !subcommand.is_some_and(|word| REVISIONS_OF.contains(&word.as_str())) {
        return rest.to_owned();
    }
    let (mut before, mut paths, mut quote) = (String::new(), false, None);
    let replaced = WORD.replace_all(rest, |found: &Captures<'_>| {
        let word = &found["word"];
        // Of git `-p` takes no word.
        let is_value = TAKES_A_WORD.contains(&before.as_str()) && !(before == "-p" && is_git);
        paths |= word == "--";
        before = word.to_owned();
        let within = quoted(word, &mut quote);
        if is_value || paths || within {
            return found[0].to_owned();
        }
        format!("{}{}", &found["blank"], object(word, is_git))
    });
    replaced.into_owned()
}

/// Whether a word belongs to a text in quotes of several words, which is a message or something that is looked for.
fn quoted(word: &str, open: &mut Option<char>) -> bool {
    if let Some(quote) = *open {
        *open = open.filter(|_| !word.ends_with(quote));
        return true;
    }
    let quote = word.chars().find(|c| ['"', '\''].contains(c));
    *open = quote.filter(|quote| word.matches(*quote).count() % 2 == 1);
    open.is_some()
}

fn object(word: &str, is_git: bool) -> String {
    let one = |word: &str| match if is_git { &REVISION } else { &CONTAINER }.captures(word) {
        Some(found) => format!("{}{{hash}}{}", &found["before"], &found["after"]),
        None => word.to_owned(),
    };
    match word.split_once("..").filter(|_| is_git) {
        Some((from, to)) => {
            let (dots, to) = to.strip_prefix('.').map_or(("..", to), |to| ("...", to));
            format!("{}{dots}{}", one(from), one(to))
        }
        None => one(word),
    }
}

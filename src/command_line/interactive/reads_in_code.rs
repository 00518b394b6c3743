//! Finds out whether code in the arguments of a program, such as of `awk` or `python3 -c`, reads the input. Pure.

use super::operands;

/// Returns true if a script of `awk` consists only of functions and a `BEGIN` block, so that it reads no input.
pub fn is_begin_alone(script: &str) -> bool {
    const BETWEEN: [char; 4] = ['␣', '␤', ' ', ';'];
    let mut rest = script.trim_start_matches(BETWEEN);
    while rest.strip_prefix("function").is_some_and(|name| name.starts_with(['␣', ' '])) {
        let Some(behind) = behind_block(rest) else { return false };
        rest = behind.trim_start_matches(BETWEEN);
    }
    let behind = rest.strip_prefix("BEGIN").and_then(behind_block);
    behind.is_some_and(|behind| behind.trim_matches(BETWEEN).is_empty()) && !gets_line(script)
}

/// Returns what follows the first block in braces of a script of `awk`. Braces in a text do not count, unless a pattern or
/// a comment may have the quotes.
fn behind_block(script: &str) -> Option<&str> {
    let has_texts = !script.contains(['/', '#']);
    let (mut depth, mut is_text, mut is_escaped) = (0_u32, false, false);
    let end = script.find(|c: char| {
        if std::mem::take(&mut is_escaped) {
            return false;
        }
        match c {
            '\\' => is_escaped = has_texts,
            '"' if has_texts => is_text = !is_text,
            '{' if !is_text => depth += 1,
            '}' if !is_text => {
                depth = depth.saturating_sub(1);
                return depth == 0;
            }
            _ => {}
        }
        false
    })?;
    script.get(end + 1..)
}

/// Returns true if `getline` in a script of `awk` may read the input. `getline line < "file"` reads the file.
fn gets_line(script: &str) -> bool {
    const BLANKS: [char; 2] = ['␣', ' '];
    script.match_indices("getline").any(|(at, name)| {
        let (before, rest) = (script.get(..at).unwrap_or_default(), script.get(at + name.len()..).unwrap_or_default());
        let variable = rest.trim_start_matches(BLANKS);
        let rest = variable.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let file = rest.trim_start_matches(BLANKS).strip_prefix('<').map(|rest| rest.trim_start_matches(BLANKS));
        let file = file.and_then(|file| file.strip_prefix('"')?.split_once('"')).map(|(file, _)| file);
        let is_other =
            |file: &str| !matches!(file, "" | "-") && !["/dev", "/proc", "\\"].iter().any(|part| file.contains(part));
        before.trim_end_matches(BLANKS).ends_with('|') || !file.is_some_and(is_other)
    })
}

/// Returns true if the script of `awk` runs commands, which may be those of its input.
pub fn runs_in_script(program: &str, arguments: &[&str]) -> bool {
    matches!(program, "awk" | "gawk" | "mawk") && arguments.iter().any(|word| has_name(word, "system("))
}

/// Returns true if an interpreter gets code as an argument, and the code reads the input: `python3 -c 'exec(input())'`.
pub fn reads_in_code(name: &str, arguments: &[&str]) -> bool {
    // The letters and the words before code, and the names of the input.
    let (letters, words, inputs): (&[char], &[&str], &[&str]) = match name {
        "python" | "pypy" => (&['c'], &[], &["sys.stdin", "input(", "open(0"]),
        "node" | "nodejs" | "bun" | "deno" => {
            (&['e', 'p'], &["--eval", "--print", "eval"], &["process.stdin", "readFileSync(0"])
        }
        "perl" | "ruby" => (&['e', 'E'], &[], &["STDIN", "$stdin", "<>", "gets"]),
        "php" => (&['r'], &[], &["STDIN", "php://stdin"]),
        _ => return false,
    };
    let is_before_code = |word: &str| {
        words.contains(&word) || (word.starts_with('-') && !word.starts_with("--") && word.ends_with(letters))
    };
    // A test may give the program another input.
    let replaces_input = |code: &str| code.contains("sys.stdin=") || code.contains("sys.stdin␣=");
    // These read the files that follow the code, if there are any.
    let is_of_files = |input: &str| matches!(input, "<>" | "gets");
    let reads = |code: &str, has_files: bool| {
        // Whether somebody types is no input.
        let code = ["process.stdin.isTTY", "sys.stdin.isatty", "STDIN.tty?", "$stdin.tty?"]
            .iter()
            .fold(code.to_owned(), |code, question| code.replace(question, ""));
        let mut inputs = inputs.iter().filter(|input| !has_files || !is_of_files(input));
        (inputs.any(|input| has_name(&code, input) && (*input != "gets" || name == "ruby"))
            || ["/dev/stdin", "/dev/tty", "/proc/self/fd/0"].iter().any(|input| has_name(&code, input)))
            && !replaces_input(&code)
    };
    (1..arguments.len()).any(|at| {
        let has_files = arguments.get(at + 1..).is_some_and(|rest| !operands(rest).is_empty());
        is_before_code(arguments[at - 1]) && reads(arguments[at], has_files)
    })
}

/// Returns true if a text has a name that is not a part of a longer one. A function of this name is not one of another object, and
/// not a text.
fn has_name(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + name.len()..).and_then(|text| text.chars().next());
        let is_other = |before: char| match name {
            "input(" => matches!(before, '\'' | '"'),
            "gets" => before == '.',
            _ => false,
        };
        let goes_on = name.ends_with(is_part) && after.is_some_and(is_part);
        !goes_on && before.is_none_or(|before| !is_part(before) && !is_other(before))
    })
}

//! Options with which a test runner stops after failures, if its output does not show that it stopped.

/// Options that several runners have: mocha, vitest, unittest, `go test`, RSpec, PHPUnit.
const OPTIONS: [&str; 6] = ["--bail", "--failfast", "--fail-fast", "-failfast", "-test.failfast", "--stop-on-failure"];

/// Returns the option of a command line with which a test runner stops after failures. jest, pytest, cargo and nextest are not
/// meant: their output shows that they stopped.
pub fn option(line: &str) -> Option<String> {
    line.split(['|', ';', '&', '\n']).find_map(of_command)
}

fn of_command(command: &str) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().map(|word| word.trim_matches(['"', '\''])).collect();
    let starts = |name: &str| words.iter().position(|word| word.rsplit('/').next() == Some(name));
    if ["jest", "pytest", "cargo"].iter().any(|name| starts(name).is_some()) {
        return None;
    }
    let after = |name: &str| starts(name).and_then(|at| words.get(at + 1..)).unwrap_or_default();
    let is_short = |word: &&str, letter: char, flags: &str| {
        word.strip_prefix('-').is_some_and(|rest| rest.contains(letter) && rest.chars().all(|c| flags.contains(c)))
    };
    // `--bail=0` and `--bail 0` of vitest stop nothing.
    let is_off = |at: usize, word: &str| match word.split_once('=') {
        Some((_, value)) => ["0", "false"].contains(&value),
        None => words.get(at + 1) == Some(&"0"),
    };
    let long = words.iter().enumerate().find(|(at, word)| {
        let name = word.split_once('=').map_or(**word, |(name, _)| name);
        OPTIONS.contains(&name) && !is_off(*at, word)
    });
    let short = || {
        // Without the options that take a value: in `-sfoo`, `foo` is one.
        let of_unittest = after("unittest").iter().find(|word| is_short(word, 'f', "vqfbc"));
        let of_mocha = || after("mocha").iter().find(|word| is_short(word, 'b', "bcACw"));
        of_unittest.or_else(of_mocha)
    };
    long.map(|(_, word)| word).or_else(short).map(|word| (*word).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_stops_after_failures_is_found() {
        for (line, expected) in [
            ("python3 -m unittest -vf tests", Some("-vf")),
            ("python3 -m unittest --failfast", Some("--failfast")),
            ("cd a && node_modules/.bin/mocha -b test", Some("-b")),
            ("npm test -- --bail", Some("--bail")),
            ("npx vitest run --bail=1", Some("--bail=1")),
            ("go test -failfast ./...", Some("-failfast")),
            ("npx vitest run --bail=0", None),
            ("npx vitest run --bail 0", None),
            ("npx jest --bail", None),
            ("pytest -x", None),
            ("python3 -m unittest -b -v", None),
            ("python3 -m unittest discover -s src", None),
            ("python3 -m unittest discover -sfoo -k -sfoo", None),
            ("rm -f a; node --test", None),
        ] {
            assert_eq!(option(line).as_deref(), expected, "{line}");
        }
    }
}

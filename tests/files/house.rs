//! The invariants that CONTEXT.md states about the source: the layers of its modules, and who may do what.
#![allow(clippy::unwrap_used, reason = "a test fails where it is not so")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

/// The source files by their path below `src/`.
pub fn sources() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut files = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                files.insert(name, fs::read_to_string(path).unwrap());
            }
        }
    }
    assert!(files.len() > 200, "{} source files", files.len());
    files
}

/// A source without its tests and comments.
fn code(text: &str) -> String {
    static DECLARED: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?m)^#\[cfg\(test\)\]\n(?:pub(?:\(\w+\))? )?mod \w+;\n").unwrap());
    let own = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let own = DECLARED.replace_all(own, "");
    let lines = own.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn tests_are_no_code() {
    let declared = "mod a;\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\npub(super) mod all;\nfn one() {}\n// two\n";
    assert_eq!(code(declared), "mod a;\nfn one() {}\n");
    assert_eq!(code("fn one() {}\n#[cfg(test)]\nmod tests {\n    fn two() {}\n}\n"), "fn one() {}\n");
}

/// The sources of the program, without `schema_source`, which is compiled for tests only.
fn production() -> BTreeMap<String, String> {
    let is_test =
        |name: &str| name.ends_with("tests.rs") || name.contains("/tests/") || name.starts_with("schema_source");
    sources().into_iter().filter(|(name, _)| !is_test(name)).map(|(name, text)| (name, code(&text))).collect()
}

/// The files whose code matches a pattern.
fn matching(pattern: &str) -> BTreeSet<String> {
    let pattern = Regex::new(pattern).unwrap();
    let files = production();
    files.into_iter().filter(|(_, text)| pattern.is_match(text)).map(|(name, _)| name).collect()
}

/// Fails if a file outside these prefixes matches the pattern, or if a prefix is not needed.
fn only(pattern: &str, allowed: &[&str]) {
    let found = matching(pattern);
    let strangers: Vec<&String> =
        found.iter().filter(|name| !allowed.iter().any(|prefix| name.starts_with(prefix))).collect();
    assert!(strangers.is_empty(), "`{pattern}` in {strangers:?}, and only {allowed:?} may have it");
    let idle: Vec<&&str> =
        allowed.iter().filter(|prefix| !found.iter().any(|name| name.starts_with(**prefix))).collect();
    assert!(idle.is_empty(), "`{pattern}` is allowed in {idle:?}, which does not have it");
}

/// The modules of each layer, as CONTEXT.md draws them.
fn drawn() -> Vec<Vec<String>> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("CONTEXT.md")).unwrap();
    let after = text.split("<!-- layers -->").nth(1).unwrap();
    let block = after.split("```").nth(1).unwrap();
    let lines = block.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| line.split_whitespace().skip(1).map(str::to_owned).collect()).collect()
}

#[test]
fn layers() {
    let order: Vec<String> = drawn().concat();
    let listed: BTreeSet<&str> = order.iter().map(String::as_str).collect();
    assert_eq!(listed.len(), order.len(), "a module stands twice in the layers of CONTEXT.md");
    let sources = sources();
    let declared = Regex::new(r"(?m)^(?:pub(?:\(crate\))? )?mod (\w+);").unwrap();
    let modules: BTreeSet<&str> =
        declared.captures_iter(&sources["lib.rs"]).map(|found| found.get(1).unwrap().as_str()).collect();
    assert_eq!(modules, listed, "src/lib.rs and the layers of CONTEXT.md list other modules");

    let place = |module: &str| order.iter().position(|it| it == module).unwrap();
    let path = Regex::new(r"\bcrate::(\w+)").unwrap();
    let several = Regex::new(r"(?s)\bcrate::\{(.*?)\};").unwrap();
    let first = Regex::new(r"(?:^|[,{]\s*)(\w+)").unwrap();
    let mut upward = Vec::new();
    for (name, text) in production() {
        let module = name.split(['/', '.']).next().unwrap();
        if !modules.contains(module) {
            continue;
        }
        let one = path.captures_iter(&text).map(|found| found.get(1).unwrap().as_str());
        let lists = several.captures_iter(&text).map(|found| found.get(1).unwrap().as_str());
        let many = lists.flat_map(|list| first.captures_iter(list).map(|found| found.get(1).unwrap().as_str()));
        for used in one.chain(many).filter(|used| modules.contains(used) && *used != module) {
            if place(used) > place(module) {
                upward.push(format!("src/{name} uses crate::{used}"));
            }
        }
    }
    assert!(upward.is_empty(), "against the layers of CONTEXT.md: {upward:#?}");
}

#[test]
fn first_lines() {
    let silent: Vec<String> =
        sources().into_iter().filter(|(_, text)| !text.starts_with("//!")).map(|(name, _)| name).collect();
    assert!(silent.is_empty(), "no `//!` in the first line of {silent:?}");
}

#[test]
fn glossaries() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let context = fs::read_to_string(root.join("CONTEXT.md")).unwrap();
    let of_code = context.split("## Glossary").nth(1).unwrap().split("\n## ").next().unwrap();
    let of_users = fs::read_to_string(root.join("docs/glossary.md")).unwrap();
    let mut words = BTreeSet::new();
    for list in [of_code, &of_users] {
        let rows = list.lines().filter(|line| line.starts_with("| ")).skip(2);
        let listed: Vec<String> = rows.map(|row| row.split('|').nth(1).unwrap().trim().to_lowercase()).collect();
        assert!(listed.len() >= 8 && listed.is_sorted(), "not in alphabetical order: {listed:?}");
        for word in listed.iter().flat_map(|entry| entry.split(", ")) {
            assert!(words.insert(word.to_owned()), "`{word}` is explained twice");
        }
    }
}

#[test]
fn pure_modules() {
    let clocks = r"Instant::now|SystemTime|Timestamp::now|engine_clock|tokio::time";
    let others = r"own_environment|env::var|current_dir|Command::new|thread::spawn|tokio::spawn|spawn_blocking";
    let impure = Regex::new(&format!("{clocks}|{others}")).unwrap();
    // It waits for the person or the model whom a policy asks.
    let waits = "interaction/ask.rs";
    let pure = [
        "adapter",
        "compare",
        "decimal",
        "fold",
        "grade",
        "ids",
        "interaction",
        "judgement",
        "matching",
        "result",
        "rounding",
        "statistics",
        "trace",
        "verdict",
        "plan",
    ];
    let of_files = r"\bfs::|\bFile::open|regular::|Metadata\b|\.(exists|is_file|is_dir|canonicalize)\(\)";
    let files = Regex::new(of_files).unwrap();
    let says_so = Regex::new(r"(?m)^//!.*\b(Pure\b|pure (functions?|translator)\b)").unwrap();
    let sources = sources();
    let mut claims = 0;
    for (name, text) in production() {
        let module = name.split(['/', '.']).next().unwrap();
        let is_claimed = says_so.is_match(&sources[&name]);
        if name == waits {
            assert!(!is_claimed && impure.is_match(&text), "src/{name} need not be named here");
        } else if is_claimed || pure.contains(&module) {
            let found = impure.find(&text).map(|found| found.as_str());
            assert_eq!(found, None, "src/{name} is to be pure");
        }
        if is_claimed {
            let found = files.find(&text).map(|found| found.as_str());
            assert_eq!(found, None, "src/{name} says that it is pure, and uses files");
            claims += 1;
        }
    }
    assert!(claims > 50, "{claims} files say that they are pure");
}

#[test]
fn who_prints() {
    only(r"io::stdout\(|io::stderr\(|\be?print(ln)?!\(", &["cli", "demo", "run/user_file.rs"]);
}

#[test]
fn who_reads_variables() {
    only(r"\benv::vars?(_os)?\(", &["own_environment.rs"]);
}

#[test]
fn who_starts_programs() {
    only(
        r"(\bprocess::|[^:\w])Command::new\(",
        &[
            "own_environment.rs",
            "process/start.rs",
            "supervisor.rs",
            "sandbox/bwrap.rs",
            "demo/tools.rs",
            "gateway/relay.rs",
            "cli/gateway/around_command.rs",
            "cli/pager.rs",
            "cli/view/browser.rs",
        ],
    );
}

#[test]
fn who_opens_sockets() {
    only(r"TcpListener|TcpStream|\breqwest::", &["gateway", "loopback.rs", "model_client/http.rs"]);
}

#[test]
fn one_owner() {
    only(r"\bserde_yaml::", &["yaml"]);
    only(r"\bcel::", &["expression", "grader/expr"]);
}

#[test]
fn properties_of_adapters() {
    // Elsewhere, a property of an adapter is an exhaustive `match`, or a method of `harness/protocol.rs`.
    let pattern = r"(matches!\([^;{}]*|[!=]= |Some\()(crate::harness::)?Adapter::\w";
    only(pattern, &["adapter", "harness", "conformance", "cli/import.rs"]);
}

#[test]
fn one_list_of_shells() {
    // Endings of files are no programs.
    let endings = ["audit/syntax.rs", "mine/language.rs"];
    let allowed = ["command_line.rs", "from_session", endings[0], endings[1]];
    only(r#""(bash|dash|ash|zsh|ksh|fish)"(, | \| )"(bash|dash|ash|zsh|ksh|fish)""#, &allowed);
    only(r#""dash""#, &["command_line.rs"]);
}

#[test]
fn no_flatten() {
    // What programs write, and people do not.
    only(r"#\[serde\([^\]]*\bflatten", &["baseline.rs", "report", "run.rs", "snapshot/compare.rs", "trace.rs"]);
}

#[test]
fn kinds_of_grader() {
    let words = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/grader.rs")).unwrap();
    let variant = Regex::new(r"(?m)^    (\w+)\([\w:]+\) = \x22").unwrap();
    let variants: Vec<&str> = variant.captures_iter(&words).map(|found| found.get(1).unwrap().as_str()).collect();
    assert!(variants.len() >= 20, "{variants:?}");
    let of_grader = Regex::new(r"use crate::grader::(\{[^}]*\bKind\b|Kind\b)|grader::Kind::").unwrap();
    for (name, text) in production() {
        let is_of_graders = name.starts_with("grader/") && !["grader/aliases.rs"].contains(&name.as_str());
        if !is_of_graders && !of_grader.is_match(&text) {
            continue;
        }
        let named: Vec<&&str> = variants.iter().filter(|it| text.contains(&format!("Kind::{it}"))).collect();
        assert!(named.is_empty(), "src/{name} names kinds of grader: {named:?}");
    }
    // The types of their settings are private to the graders. `evals mine` runs tests as the grader does.
    let settings = Regex::new(r"(?m)^    \w+\((?:\w+::)*(\w+)\) = \x22").unwrap();
    let settings: Vec<&str> = settings.captures_iter(&words).map(|found| found.get(1).unwrap().as_str()).collect();
    let shown = Regex::new(r"(?m)^pub use ([^;]*);").unwrap();
    for shown in shown.captures_iter(&words).map(|found| found.get(1).unwrap().as_str()) {
        let mut shown_words = shown.split(|c: char| !c.is_alphanumeric() && c != '_');
        assert!(!shown_words.any(|word| settings.contains(&word)), "src/grader.rs shows settings of a kind: {shown}");
    }
    only(r"judge::rubric::(\{[^}]*\b)?Rubric\b", &["grader"]);
}

#[test]
fn the_exercise_of_adding_a_grader_applies() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let patch = "docs/adding-a-grader.patch";
    let checked =
        std::process::Command::new("git").args(["apply", "--check", patch]).current_dir(root).output().unwrap();
    assert!(checked.status.success(), "{patch} does not apply: {}", String::from_utf8_lossy(&checked.stderr));
    let changed = fs::read_to_string(root.join(patch)).unwrap();
    let files: Vec<&str> = changed.lines().filter_map(|line| line.strip_prefix("+++ b/")).collect();
    let expected =
        ["docs/SUMMARY.md", "docs/graders.md", "docs/graders/reviewed.md", "src/grader.rs", "src/grader/reviewed.rs"];
    assert_eq!(files, expected);
}

#[test]
#[ignore = "slow: the compiler checks a second copy of the library"]
fn the_exercise_of_adding_a_grader_compiles() {
    // The dependencies are checked once, because their folder stays.
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exercise");
    let tree = place.join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree).unwrap();
    }
    copy_tree(Path::new(env!("CARGO_MANIFEST_DIR")), &tree);
    let run = |program: &str, args: &[&str]| {
        let mut command = std::process::Command::new(program);
        // The copy is no part of the repository around it.
        command.env("GIT_CEILING_DIRECTORIES", &place).env("CARGO_TARGET_DIR", place.join("target"));
        let ran = command.args(args).current_dir(&tree).output().unwrap();
        assert!(ran.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    };
    run("git", &["apply", "docs/adding-a-grader.patch"]);
    // With the test profile, the schemas are compiled, too.
    run(env!("CARGO"), &["check", "--locked", "--offline", "--lib", "--profile", "test"]);
}

/// Copies the sources of this repository, without what it ignores.
fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (name, kind) = (entry.file_name(), entry.file_type().unwrap());
        if ["target", ".git", ".evals", "node_modules"].iter().any(|left_out| name == *left_out) {
            continue;
        } else if kind.is_dir() {
            copy_tree(&entry.path(), &to.join(name));
        } else if kind.is_file() {
            fs::copy(entry.path(), to.join(name)).unwrap();
        }
    }
}

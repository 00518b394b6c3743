//! Finds the files that decide what tools do which tests start: the `Makefile` of `make verify`, and the programs in the script
//! of `npm run verify`. Pure.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::mine::language::NODE;
use crate::mine::protection::setup_files;
use crate::mine::protection::tools::ToolCommand;
use crate::mine::role::{name, split};
use crate::mine::runner::Tree;

/// Signs of lines that start a program.
const STARTS: [&str; 10] = ["$`", "Command", "Popen", "call(", "check_", "exec", "popen", "run(", "spawn", "system("];
/// The endings of scripts of a shell.
const OF_SHELL: [&str; 4] = ["bash", "bats", "sh", "t"];
/// Words of a shell after which a command begins.
const BEFORE: [&str; 8] = ["!", "&&", "(", ";", "do", "run", "then", "||"];
/// The maximum number of lines of a command.
const MAX_COMMAND_LINES: usize = 4;

/// Returns the files of tools that tests start, and the files that scripts of the `package.json` at the top name. The tree has
/// the text of this `package.json`.
pub(super) fn of_tools<'a>(tests: impl Iterator<Item = (&'a String, &'a String)>, tree: &Tree) -> BTreeSet<String> {
    let manifest: Option<Value> = tree.text("package.json").and_then(|text| serde_json::from_str(text).ok());
    let mut found = BTreeSet::new();
    for (path, text) in tests {
        for words in commands(path, text) {
            let Some(tool) = ToolCommand::of(&words) else { continue };
            // `package.json` is protected if tests are of Node.
            let is_open = |file: &String| tree.has(file) && (name(file) != "package.json" || !NODE.has(path));
            let files = tool.files.iter().copied().chain(tool.named).map(|file| tool.place(file));
            found.extend(files.filter(is_open));
            // The scripts of another folder are not read.
            let is_of_top = tool.files.contains(&"package.json") && tool.folder.is_none();
            if let Some(manifest) = manifest.as_ref().filter(|_| is_of_top) {
                // `npm run verify` and `yarn verify`
                let names = words.iter().skip(1).filter(|word| !word.starts_with('-')).take(2);
                found.extend(setup_files::of_package(tree, manifest, &names.copied().collect::<Vec<&str>>()));
            }
        }
    }
    found
}

/// Returns the commands that a file of tests may start, each with the words after it: those in the lines of a shell, and in the
/// quotes of a line that starts a program and of the lines after it.
fn commands<'a>(path: &str, text: &'a str) -> Vec<Vec<&'a str>> {
    let is_shell = OF_SHELL.contains(&split(name(path)).1);
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let words: Vec<&str> = if is_shell {
            line.split_whitespace().collect()
        } else if STARTS.iter().any(|sign| line.contains(sign)) {
            let around = lines.iter().skip(at).take(MAX_COMMAND_LINES);
            let quoted = around.flat_map(|line| line.split(['"', '\'', '`']).skip(1).step_by(2));
            quoted.flat_map(str::split_whitespace).collect()
        } else {
            continue;
        };
        // In quotes, the words before a command are those of another text.
        let begins = |at: &usize| !is_shell || *at == 0 || words.get(at - 1).is_some_and(|word| BEFORE.contains(word));
        let commands = (0..words.len()).filter(begins).filter_map(|at| words.get(at..));
        found.extend(commands.map(|words| words.to_vec()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_tools_that_tests_start_are_found() {
        let files = [
            "Makefile",
            "justfile",
            "package.json",
            "qa/Makefile",
            "qa/after.js",
            "qa/package.json",
            "qa/sum.mk",
            "qa/verify.js",
        ];
        let files = files.map(str::to_owned).into();
        let package =
            r#"{"scripts": {"test": "node --test", "verify": "node qa/verify.js", "postverify": "node qa/after.js"}}"#;
        let tree = Tree { files, texts: [("package.json".to_owned(), package.to_owned())].into() };
        for (path, text, expected) in [
            ("test/a.js", "execFileSync('make', ['-s', 'verify']);\n", &["Makefile"][..]),
            ("test/a.js", "execSync(`npm run -s verify -- ${a}`);\n", &["qa/after.js", "qa/verify.js"]),
            (
                "tests/a.py",
                "subprocess.run(\n    ['yarn', 'verify'],\n)\n",
                &["package.json", "qa/after.js", "qa/verify.js"],
            ),
            ("tests/a.py", "os.system('cd x && just verify')\n", &["justfile"]),
            ("tests/a.rs", "Command::new(\"make\").arg(\"verify\");\n", &["Makefile"]),
            ("t/a.bats", "  run make -s verify\n", &["Makefile"]),
            ("tests/a.py", "subprocess.run(['make', '-s', '-C', 'qa', 'verify'])\n", &["qa/Makefile"]),
            ("tests/a.py", "os.system('make --directory=./qa verify')\n", &["qa/Makefile"]),
            ("test/a.js", "execSync(`make -s -f qa/sum.mk verify SUM=${a}`);\n", &["Makefile", "qa/sum.mk"]),
            ("test/a.js", "execSync('make -C qa -f sum.mk verify');\n", &["qa/Makefile", "qa/sum.mk"]),
            ("tests/a.py", "os.system('npm --prefix qa run verify')\n", &["qa/package.json"]),
            ("t/a.bats", "# make sure\necho make\n", &[]),
            ("test/a.js", "test('make a sum', () => {});\n", &[]),
        ] {
            let tests = [(path.to_owned(), text.to_owned())];
            let found = of_tools(tests.iter().map(|(path, text)| (path, text)), &tree);
            assert_eq!(found.into_iter().collect::<Vec<String>>(), expected, "{text}");
        }
    }
}

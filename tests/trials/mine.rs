//! `evals mine`: histories made here, each reason for which a commit is dropped, and cases that pass their audit.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::project::{Project, Ran, bubblewrap, runners};

/// A repository in a project.
pub struct History<'a> {
    project: &'a Project,
    pub folder: PathBuf,
    commits: u32,
}

impl<'a> History<'a> {
    pub fn new(project: &'a Project, name: &str) -> Self {
        let folder = project.path(name);
        fs::create_dir_all(&folder).unwrap();
        let history = Self { project, folder, commits: 0 };
        history.git(&["init", "--quiet", "--initial-branch=main"]);
        history
    }

    fn git(&self, args: &[&str]) -> String {
        let date = format!("2024-01-{:02}T12:00:00Z", self.commits + 1);
        let mut command = Command::new("git");
        command.args(["-c", "user.name=A", "-c", "user.email=a@b.example", "-c", "commit.gpgSign=false"]).args(args);
        command.current_dir(&self.folder).env("HOME", self.project.home()).env("GIT_CONFIG_NOSYSTEM", "1");
        let done = command.env("GIT_AUTHOR_DATE", &date).env("GIT_COMMITTER_DATE", &date).output().unwrap();
        assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Commits files; a file without text is deleted.
    pub fn commit(&mut self, message: &str, files: &[(&str, Option<&str>)]) -> String {
        for (path, text) in files {
            match text {
                Some(text) => self.write(path, text),
                None => fs::remove_file(self.folder.join(path)).unwrap(),
            }
        }
        self.commits += 1;
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }
}

pub const BASE: &str = "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return a * 2\n";
pub const FIXED: &str = "def add(a, b):\n    return a + b\n\n\ndef double(a):\n    return a * 2\n";
pub const TEST_DOUBLE: &str = "import unittest\nfrom calc import double\n\n\nclass Double(unittest.TestCase):\n    def test_double(self):\n        self.assertEqual(double(2), 4)\n";
pub const TEST_ADD: &str = "import unittest\nfrom calc import add\n\n\nclass Add(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n";

/// A test file for `unittest` with one class.
fn test(name: &str, body: &str) -> String {
    format!("import os\nimport unittest\n\n\nclass {name}(unittest.TestCase):\n{body}")
}

/// Makes a history with a commit for each outcome. Returns the hashes by subject.
fn every_outcome(project: &Project) -> BTreeMap<&'static str, String> {
    let mut history = History::new(project, "repo");
    let mut made = BTreeMap::new();
    let mut add = |subject: &'static str, files: &[(&str, Option<&str>)]| {
        made.insert(subject, history.commit(subject, files));
    };
    add(
        "Begin",
        &[
            ("calc.py", Some(BASE)),
            ("tests/test_double.py", Some(TEST_DOUBLE)),
            ("legacy.py", Some("OLD = 1\n")),
            (".gitignore", Some("__pycache__/\n")),
        ],
    );
    add("Fix the sum of two numbers", &[("calc.py", Some(FIXED)), ("tests/test_add.py", Some(TEST_ADD))]);
    add("Explain", &[("README.md", Some("Adds.\n"))]);
    add("Test more", &[("tests/test_more.py", Some(&test("More", "    def test_more(self):\n        pass\n")))]);
    add("Comment", &[("other.py", Some("# nothing\n"))]);
    add(
        "Rename a test",
        &[
            ("other.py", Some("# still nothing\n")),
            ("tests/test_more.py", Some(&test("More", "    def test_even_more(self):\n        pass\n"))),
        ],
    );
    let long = "# line\n".repeat(300);
    add("Grow", &[("long.py", Some(&long)), ("tests/test_long.py", Some(&test("Long", "    pass\n")))]);
    add("Draw", &[("logo.png", Some("\u{0}PNG")), ("tests/data.bin", Some("\u{0}data"))]);
    add(
        "Skip a test",
        &[
            ("skipped.py", Some("X = 1\n")),
            (
                "tests/test_skip.py",
                Some(&test("Skip", "    @unittest.skip('later')\n    def test_x(self):\n        import skipped\n")),
            ),
        ],
    );
    // The outcome depends on the number of runs so far.
    let every_other = "    def test_flaky(self):\n        import flaky\n        path = os.path.expanduser('~/runs')\n        \
                       runs = open(path).read() if os.path.exists(path) else ''\n        open(path, 'w').write(runs + 'x')\n        \
                       self.assertEqual(len(runs) % 2, 0)\n";
    add("Wait", &[("flaky.py", Some("X = 1\n")), ("tests/test_flaky.py", Some(&test("Flaky", every_other)))]);
    add("Steady", &[("tests/test_flaky.py", None), ("flaky.py", None), ("calm.py", Some("Y = 2\n"))]);
    add(
        "Break everything",
        &[
            ("calc.py", Some("def add(a, b:\n")),
            ("other.py", Some("import calc\n")),
            ("tests/test_add.py", Some(&TEST_ADD.replace("(1, 2), 3", "(2, 2), 4"))),
            ("tests/test_more.py", None),
            ("tests/test_long.py", None),
            ("tests/test_skip.py", None),
        ],
    );
    add("Repair", &[("calc.py", Some(BASE)), ("tests/test_add.py", None)]);
    add("Fix the sum of two numbers again", &[("calc.py", Some(FIXED)), ("tests/test_add.py", Some(TEST_ADD))]);
    add(
        "Remove the legacy module",
        &[
            ("legacy.py", None),
            (
                "tests/test_legacy.py",
                Some(&test(
                    "Legacy",
                    "    def test_gone(self):\n        self.assertFalse(os.path.exists('legacy.py'))\n",
                )),
            ),
        ],
    );
    made
}

const SETTINGS: [&str; 7] = ["mine", "repo", "--sandbox", "none", "--max-lines", "250", "--format"];

fn mine(project: &Project, more: &[&str]) -> Ran {
    project.evals(&[&SETTINGS[..], &["json"], more].concat())
}

/// Returns the candidate with a subject.
fn of<'a>(mined: &'a Value, subject: &str) -> &'a Value {
    let candidates = mined["candidates"].as_array().unwrap();
    candidates.iter().find(|it| it["subject"] == subject).unwrap_or_else(|| panic!("{subject}: {mined:#}"))
}

#[test]
#[ignore = "slow: runs the tests of ten commits"]
fn each_commit_has_its_outcome_and_the_cases_are_sound() {
    let project = Project::new();
    let made = every_outcome(&project);
    let mined = mine(&project, &[]).exits(0).json();
    for (subject, reason) in [
        ("Begin", "no parent"),
        ("Explain", "no tests"),
        ("Test more", "no code"),
        ("Comment", "no tests"),
        ("Rename a test", "only renames or moves tests: test_even_more"),
        ("Grow", "more than 250 lines (--max-lines): 306"),
        ("Draw", "binary alone"),
        ("Skip a test", "nothing that fails before and passes after"),
        ("Wait", "flaky: test_flaky.Flaky.test_flaky"),
        ("Break everything", "the build fails: "),
        ("Fix the sum of two numbers again", &format!("a duplicate of {}", &made["Fix the sum of two numbers"][..12])),
    ] {
        let looked = of(&mined, subject);
        assert_eq!(looked["status"], "dropped", "{subject}");
        let told = looked["reason"].as_str().unwrap();
        assert!(told.starts_with(reason), "{subject}: {told}");
    }
    assert_eq!(of(&mined, "Wait")["flaky"][0], "test_flaky.Flaky.test_flaky");
    assert_eq!((&mined["looked_at"], &mined["kept"]), (&made.len().into(), &3.into()), "{mined:#}");
    // A test that was there already can decide too.
    assert_eq!(of(&mined, "Repair")["fail_to_pass"], serde_json::json!(["test_double.Double.test_double"]));
    assert_eq!(mined["head"], made["Remove the legacy module"]);

    let fix = of(&mined, "Fix the sum of two numbers");
    assert_eq!(fix["status"], "kept");
    assert_eq!(fix["fail_to_pass"], serde_json::json!(["test_add.Add.test_add"]));
    assert_eq!(fix["pass_to_pass"], serde_json::json!(["test_double.Double.test_double"]));
    assert_eq!(
        (&fix["commit"], &fix["parent"]),
        (&made["Fix the sum of two numbers"].clone().into(), &made["Begin"].clone().into())
    );
    let text = project.read(fix["case"].as_str().unwrap());
    for part in [
        "path: ../../repo",
        &format!("rev: {}", made["Begin"]),
        "fail-to-pass:",
        "gate: true",
        "review: needed",
        &format!("commit: {}", made["Fix the sum of two numbers"]),
        "date: 2024-01-03",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let hidden = fix["case"].as_str().unwrap().replace(".yaml", ".hidden/tests/test_add.py");
    assert_eq!(project.read(&hidden), TEST_ADD);
    // The patch is the code alone, and deletions are part of it.
    let patch = |subject: &str| project.read(&of(&mined, subject)["case"].as_str().unwrap().replace(".yaml", ".patch"));
    assert!(
        patch("Fix the sum of two numbers").contains("+    return a + b\n")
            && !patch("Fix the sum of two numbers").contains("test_add")
    );
    assert!(patch("Remove the legacy module").contains("deleted file mode"));

    // The drafts are told, and are sound.
    project.evals(&["check", "cases"]).exits(0).says("is a draft: read its prompt");
    project.evals(&["check", "--audit", "--mutants", "0", "cases"]).exits(0).says("3 cases audited, all sound");

    // The same history gives the same result.
    let files = project.files("cases");
    let again = mine(&project, &["--force"]).exits(0).json();
    // A reason may quote the output of a runner, which has times.
    let times = regex::Regex::new(r"in \d+\.\d+s").unwrap();
    let without_times = |mined: &Value| times.replace_all(&mined.to_string(), "in 0s").into_owned();
    assert_eq!(without_times(&again), without_times(&mined));
    assert_eq!(project.files("cases"), files);
}

/// Makes a history of fixes: each adds a function and its test.
fn fixes(project: &Project, count: u32) {
    let mut history = History::new(project, "repo");
    history.commit("Begin", &[("calc.py", Some("X = 0\n")), (".gitignore", Some("__pycache__/\n"))]);
    for n in 1..=count {
        let code = format!("def number():\n    return {n}\n");
        let text = test(
            "Number",
            &format!(
                "    def test_number(self):\n        from part{n} import number\n        self.assertEqual(number(), {n})\n"
            ),
        );
        let (file, tests) = (format!("part{n}.py"), format!("tests/test_part{n}.py"));
        history.commit(&format!("Add part {n} of the numbers"), &[(&file, Some(&code)), (&tests, Some(&text))]);
    }
}

#[test]
#[ignore = "slow: mines a history several times"]
fn a_killed_mining_goes_on_where_it_was() {
    let project = Project::new();
    fixes(&project, 3);
    let words = [&SETTINGS[..], &["json", "--repeat", "1"]].concat();
    let mut killed = project
        .command(&words)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let lines = || {
        let state = fs::read_dir(project.path(".evals/mine")).into_iter().flatten();
        let files = state.filter_map(Result::ok).filter(|it| it.path().extension().is_some_and(|it| it == "jsonl"));
        files.map(|it| fs::read_to_string(it.path()).unwrap_or_default().lines().count()).sum::<usize>()
    };
    let begun = Instant::now();
    while lines() < 2 && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let judged = lines() - 1;
    assert!((1..=3).contains(&judged), "{judged}");
    // A case that was not tested is none.
    let cases = project.files("cases").into_keys().filter(|it| it.ends_with(".yaml") && !it.contains("/.")).count();
    assert!(cases <= judged + 1, "{cases} cases of {judged} commits");
    project.evals(&["check", "--audit", "--mutants", "0", "cases"]).exits(0);
    let resumed = project.evals(&[&words[..], &["--resume"]].concat()).exits(0);
    assert_eq!(resumed.err.matches("trying ").count(), 3 - judged, "{}", resumed.err);
    // With --force everything is judged again, with the same result.
    let whole = project.evals(&[&words[..], &["--force"]].concat()).exits(0);
    assert_eq!(whole.err.matches("trying ").count(), 3);
    assert_eq!(whole.json(), resumed.json());
    assert_eq!(whole.json()["kept"], 3);
}

#[test]
#[ignore = "slow: mines a history"]
fn a_case_of_an_earlier_mining_is_made_again_without_a_flaky_test_unless_it_was_edited() {
    let told = |number: u32, name: &str, passes: &str| {
        format!("if {passes}; then echo 'ok {number} - {name}'; else echo 'not ok {number} - {name}'; fi\n")
    };
    let count = "touch \"$HOME/runs\"\nn=$(wc -c < \"$HOME/runs\")\nprintf x >> \"$HOME/runs\"\n";
    let every_other = told(1, "steady", "[ $((n % 2)) = 0 ]");
    let flaky = format!("{count}echo 1..2\n{every_other}{}", told(2, "two", "grep -q 2 value"));
    let steady = told(1, "steady", "grep -q 3 value");
    let deterministic = format!("echo 1..2\n{steady}{}", told(2, "three", "grep -q 3 value"));
    for is_edited in [false, true] {
        let project = Project::new();
        let mut history = History::new(&project, "repo");
        history.commit("Begin", &[("value", Some("1\n")), ("tests/run.sh", Some("echo 1..0\n"))]);
        history.commit("Set the value to two", &[("value", Some("2\n")), ("tests/run.sh", Some(&flaky))]);
        history.commit("Set the value to three", &[("value", Some("3\n")), ("tests/run.sh", Some(&deterministic))]);
        let words = ["--test", "sh tests/run.sh", "--setup", "true", "--repeat", "2", "--hunks", "0", "-n"];
        let newest = mine(&project, &[&words[..], &["1"]].concat()).exits(0).json();
        let three = of(&newest, "Set the value to three");
        assert_eq!(three["fail_to_pass"], serde_json::json!(["steady", "three"]));
        let case = three["case"].as_str().unwrap();
        if is_edited {
            project.write(case, &format!("# Read.\n{}", project.read(case)));
        }
        let all = mine(&project, &[&words[..], &["9", "--resume"]].concat()).exits(0).json();
        assert_eq!(of(&all, "Set the value to two")["flaky"], serde_json::json!(["steady"]));
        let expected = if is_edited { &["steady", "three"][..] } else { &["three"] };
        assert_eq!(of(&all, "Set the value to three")["fail_to_pass"], serde_json::json!(expected));
        assert_eq!(project.read(case).starts_with("# Read.\n"), is_edited);
    }
}

#[test]
#[ignore = "slow: mines a history"]
fn a_test_that_is_flaky_at_an_older_commit_does_not_guard_the_case_of_a_newer_one() {
    let every_other = "touch \"$HOME/runs\"\nn=$(wc -c < \"$HOME/runs\")\nprintf x >> \"$HOME/runs\"\n\
                       if [ $((n % 2)) = 0 ]; then echo 'ok 1 - steady'; else echo 'not ok 1 - steady'; fi\n";
    let has = |number: u32| {
        format!("if grep -q {number} value; then echo 'ok 2 - has {number}'; else echo 'not ok 2 - has {number}'; fi\n")
    };
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    history.commit("Begin", &[("value", Some("1\n")), ("tests/run.sh", Some("echo 1..0\n"))]);
    let flaky = format!("echo 1..2\n{every_other}{}", has(2));
    history.commit("Set the value to two", &[("value", Some("2\n")), ("tests/run.sh", Some(&flaky))]);
    let steady = format!("echo 1..2\necho 'ok 1 - steady'\n{}", has(3));
    history.commit("Set the value to three", &[("value", Some("3\n")), ("tests/run.sh", Some(&steady))]);
    let words = ["--test", "sh tests/run.sh", "--setup", "true", "--repeat", "2", "--hunks", "0"];
    let newest = mine(&project, &[&words[..], &["-n", "1"]].concat()).exits(0).json();
    assert_eq!(of(&newest, "Set the value to three")["pass_to_pass"], serde_json::json!(["steady"]));
    for more in [&["-n", "9", "--resume"][..], &["-n", "9", "--force"]] {
        let all = mine(&project, &[&words[..], more].concat()).exits(0).json();
        assert_eq!(of(&all, "Set the value to two")["flaky"], serde_json::json!(["steady"]));
        let three = of(&all, "Set the value to three");
        let lists = ["fail_to_pass", "pass_to_pass", "flaky"].map(|list| &three[list]);
        assert_eq!(lists, [&serde_json::json!(["has 3"]), &serde_json::json!([]), &serde_json::json!(["steady"])]);
        let text = project.read(three["case"].as_str().unwrap());
        assert!(!text.contains("steady"), "{text}");
    }
}

#[test]
#[ignore = "slow: mines a history"]
fn the_newest_commits_come_first_and_leaks_are_named() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    history.commit("Begin", &[("calc.py", Some(BASE)), ("tests/test_double.py", Some(TEST_DOUBLE))]);
    history.commit("Fix the sum", &[("calc.py", Some(FIXED)), ("tests/test_add.py", Some(TEST_ADD))]);
    let tripled = format!(
        "{FIXED}\n\ndef _times_three(a):\n    return a * 3\n\n\ndef triple_value(a):\n    return _times_three(a)\n"
    );
    let text = TEST_DOUBLE.replace("double(2), 4", "triple_value(2), 6").replace("double", "triple_value");
    history.commit(
        "Add triple_value with _times_three",
        &[
            ("calc.py", Some(&tripled)),
            ("tests/test_triple.py", Some(&text)),
            ("CHANGES.md", Some("- Values can be tripled\n")),
        ],
    );
    let mined = mine(&project, &["-n", "1", "--repeat", "1"]).exits(0).json();
    assert_eq!((&mined["looked_at"], &mined["kept"]), (&1.into(), &1.into()));
    let text = project.read(mined["candidates"][0]["case"].as_str().unwrap());
    assert!(text.contains("- _times_three") && text.contains("- Values can be tripled"), "{text}");
    // A name that the tests use is no leak: who takes it out of the prompt makes a case that nobody can solve.
    assert!(!text.contains("- triple_value"), "{text}");
    let checked = project.evals(&["check", "cases"]).exits(0);
    checked.says("contains words or lines of its solution: `_times_three`;");

    // Parts of the history.
    for (more, subjects) in [
        (vec!["--since", "HEAD~1"], vec!["Add triple_value with _times_three"]),
        (vec!["--since", "2024-01-03"], vec!["Add triple_value with _times_three", "Fix the sum"]),
        (vec!["--paths", "tests/test_d*.py"], vec!["Begin"]),
    ] {
        let all = [&["--repeat", "1", "-n", "9", "--force"][..], &more].concat();
        let mined = mine(&project, &all).json();
        let found: Vec<&str> =
            mined["candidates"].as_array().unwrap().iter().map(|it| it["subject"].as_str().unwrap()).collect();
        assert_eq!(found, subjects, "{more:?}");
    }
    mine(&project, &["--since", "soon"]).exits(2).says("neither a revision of the repository nor a date");
}

#[test]
fn code_whose_name_is_that_of_release_notes_is_not_in_the_prompt() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let code = "def last(items):\n    return items[-1]\n";
    let begin = [("calc.py", Some(BASE)), ("history.py", Some(code)), ("tests/test_double.py", Some(TEST_DOUBLE))];
    history.commit("Begin", &begin);
    let fixed = code.replace("-1", "0");
    let text =
        TEST_DOUBLE.replace("calc import double", "history import last").replace("double(2), 4", "last([2, 1]), 2");
    history.commit("Find the newest entry", &[("history.py", Some(&fixed)), ("tests/test_last.py", Some(&text))]);
    let mined = mine(&project, &["--repeat", "1", "--hunks", "0"]).exits(0).json();
    let case = of(&mined, "Find the newest entry")["case"].as_str().unwrap();
    let (text, patch) = (project.read(case), project.read(&case.replace(".yaml", ".patch")));
    assert!(!text.contains("items[0]") && patch.contains("+    return items[0]\n"), "{text}\n{patch}");
}

#[test]
#[ignore = "slow: mines a history"]
fn a_case_whose_tests_do_not_notice_a_hunk_is_a_reserve() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    history.commit("Begin", &[("calc.py", Some(BASE)), ("tests/test_double.py", Some(TEST_DOUBLE))]);
    history.commit("Fix the sum", &[("calc.py", Some(FIXED)), ("tests/test_add.py", Some(TEST_ADD))]);
    let text = TEST_DOUBLE.replace("calc import double", "more import half").replace("double(2), 4", "half(2), 1");
    history.commit(
        "Halve numbers for once",
        &[
            ("more.py", Some("def half(a):\n    return a // 2\n")),
            ("unused.py", Some("X = 1\n")),
            ("tests/test_half.py", Some(&text)),
        ],
    );
    let words = ["--repeat", "1", "-n"];
    let mine = |n: &str, more: &[&str]| mine(&project, &[&words[..], &[n], more].concat());
    // It is kept if there are too few others, and says so.
    let mined = mine("2", &[]).exits(0).says("its tests do not notice 1 of 2 hunks of the fix: `unused.py:1`").json();
    let halve = of(&mined, "Halve numbers for once");
    assert_eq!(halve["hunks"], serde_json::json!({"all": 2, "noticed": 1, "unnoticed": ["unused.py:1"]}));
    assert_eq!(of(&mined, "Fix the sum")["hunks"], serde_json::json!({"all": 1, "noticed": 1}));
    let case = halve["case"].as_str().unwrap().to_owned();
    let text = project.read(&case);
    assert!(text.contains("    unnoticed:\n    - unused.py:1\n"), "{text}");
    project.evals(&["check", "cases"]).exits(0);
    // The state knows it; a case that was made is not removed for a smaller number.
    let resumed = mine("1", &["--resume"]).exits(0);
    assert_eq!((resumed.err.matches("trying ").count(), &resumed.json()["kept"]), (0, &2.into()));
    assert_eq!(project.read(&case), text);

    // If another one is enough, it is dropped, and no file of it is left.
    let mined = mine("1", &["--force"]).exits(0).json();
    assert_eq!((&mined["kept"], &of(&mined, "Fix the sum")["status"]), (&1.into(), &"kept".into()));
    let reason = of(&mined, "Halve numbers for once")["reason"].as_str().unwrap().to_owned();
    assert_eq!(reason, "its tests do not notice 1 of 2 hunks, and others are enough: unused.py:1");
    assert!(project.files("cases").keys().all(|path| !path.contains("halve")), "{:?}", project.files("cases").keys());
    // A resumed mining that needs it makes it again.
    let resumed = mine("2", &["--resume"]).exits(0);
    assert_eq!((resumed.err.matches("trying ").count(), &resumed.json()["kept"]), (1, &2.into()));

    // Without the question nothing is known.
    let mined = mine("1", &["--hunks", "0", "--force"]).exits(0).json();
    assert_eq!((&mined["looked_at"], &mined["candidates"][0]["hunks"]), (&1.into(), &Value::Null));
}

#[test]
#[ignore = "slow: mines a history"]
fn a_case_that_exists_is_not_replaced() {
    let project = Project::new();
    fixes(&project, 2);
    let case = mine(&project, &["--repeat", "1", "-n", "1"]).exits(0).json()["candidates"][0]["case"].clone();
    let case = case.as_str().unwrap();
    let reviewed = project.read(case).replace("review: needed\n", "").replace("prompt: ", "prompt: Please. ");
    project.write(case, &reviewed);
    // Neither the same mining again nor one with other settings, whose state does not know the case.
    for more in [&["--repeat", "1"][..], &["--repeat", "2"], &["--repeat", "2", "--resume"]] {
        let said = mine(&project, more).exits(2).says(case).says("exists already").says("--resume").says("--force");
        assert!(!said.err.contains("trying "), "{}", said.err);
        assert_eq!(project.read(case), reviewed, "{more:?}");
    }
    // The state of the first mining is still there.
    let resumed = mine(&project, &["--repeat", "1", "-n", "1", "--resume"]).exits(0);
    assert_eq!((resumed.err.matches("trying ").count(), project.read(case)), (0, reviewed.clone()));
    // The state of another project does not know it, and says so instead of naming --resume as the way out.
    let repo = project.path("repo").display().to_string();
    let out = project.path("cases/mined").display().to_string();
    std::fs::create_dir_all(project.path("elsewhere/cases")).unwrap();
    let words = ["mine", &repo, "-o", &out, "--repeat", "1", "-n", "1", "--resume"];
    let elsewhere = project.command(&words).current_dir(project.path("elsewhere")).output().unwrap();
    let said = String::from_utf8(elsewhere.stderr).unwrap();
    assert_eq!(elsewhere.status.code(), Some(2), "{said}");
    assert!(said.contains("elsewhere/.evals/mine does not know it"), "{said}");
    assert!(said.contains("in the folder where it began"), "{said}");
    // A case without its patch or its hidden tests is not complete.
    let patch = case.replace(".yaml", ".patch");
    let text = project.read(&patch);
    std::fs::remove_file(project.path(&patch)).unwrap();
    mine(&project, &["--repeat", "1", "-n", "1", "--resume"]).exits(2).says(&patch).says("which is missing");
    project.write(&patch, &text);
    std::fs::remove_dir_all(project.path(&case.replace(".yaml", ".hidden"))).unwrap();
    mine(&project, &["--repeat", "1", "-n", "1", "--resume"]).exits(2).says(".hidden, which is missing");
    assert_eq!(project.read(case), reviewed);
    std::fs::remove_file(project.path(case)).unwrap();
    mine(&project, &["--repeat", "1", "-n", "1", "--resume"]).exits(0);
    assert!(project.path(&case.replace(".yaml", ".hidden")).is_dir());
    mine(&project, &["--repeat", "1", "-n", "1", "--force"]).exits(0);
    assert!(project.read(case).contains("review: needed"));
}

#[test]
#[ignore = "slow: mines a history"]
fn tests_that_differ_elsewhere_or_select_others_are_left_out_and_named() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    history.commit("Begin", &[("calc.py", Some(BASE)), ("tests/test_double.py", Some(TEST_DOUBLE))]);
    // One test is named after the folder, and one as a pattern that selects another test.
    let named = format!(
        "{TEST_ADD}\n\nimport os\nagain = lambda self: self.test_add()\nsetattr(Add, 'test_in_' + os.getcwd(), again)\nsetattr(Add, 'test_*', again)\n"
    );
    history.commit("Fix the sum", &[("calc.py", Some(FIXED)), ("tests/test_add.py", Some(&named))]);
    let ran = mine(&project, &["--repeat", "1"]).exits(0);
    let mined = ran.json();
    let fix = of(&mined, "Fix the sum");
    assert_eq!(fix["fail_to_pass"], serde_json::json!(["test_add.Add.test_add"]), "{mined:#}");
    assert_eq!(fix["left_out"], serde_json::json!(["test_add.Add.test_*"]), "{mined:#}");
    assert!(fix["flaky"][0].as_str().unwrap().starts_with("test_add.Add.test_in_/"), "{mined:#}");
    let text = project.read(fix["case"].as_str().unwrap());
    assert!(text.contains("# Tests are left out, because their names") && !text.contains("test_in_"), "{text}");
    project.evals(&["check", "--audit", "--mutants", "0", "cases"]).exits(0);

    // A commit that has no other test says so.
    let alone = TEST_ADD.replace("def test_add", "def add")
        + "\n\nsetattr(Add, 'test_*', Add.add)\nAdd.test_a = lambda self: None\n";
    history.commit("Break the sum", &[("calc.py", Some(BASE)), ("tests/test_add.py", None)]);
    history.commit(
        "Fix it again",
        &[("calc.py", Some(&FIXED.replace("a + b", "b + a"))), ("tests/test_sum.py", Some(&alone))],
    );
    let mined = mine(&project, &["--repeat", "1", "--since", "HEAD~1", "--resume"]).json();
    let reason = of(&mined, "Fix it again")["reason"].as_str().unwrap_or_default().to_owned();
    assert!(reason.contains("left out, because their names select other tests, too: test_sum.Add.test_*"), "{mined:#}");
}

#[test]
#[ignore = "slow: mines a history"]
fn another_correct_patch_passes_and_a_wrong_one_fails() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    history.commit("Begin", &[("calc.py", Some(BASE)), ("tests/test_double.py", Some(TEST_DOUBLE))]);
    history.commit("Fix the sum", &[("calc.py", Some(FIXED)), ("tests/test_add.py", Some(TEST_ADD))]);
    let mined = mine(&project, &["--repeat", "1"]).exits(0).json();
    let case = mined["candidates"][0]["case"].as_str().unwrap().to_owned();
    let script = case.replace(".yaml", ".demo.yaml");
    let put = |path: &str, text: &str| format!("- write: {{path: {path}, text: {text:?}}}\n");
    let helper = put("helper.py", "def plus(x, y):\n    return x + y\n")
        + &put("calc.py", "from helper import plus as add\n\n\ndef double(a):\n    return a * 2\n");
    let cheat = put(
        "tests/test_add.py",
        "import unittest\n\n\nclass Add(unittest.TestCase):\n    def test_add(self):\n        pass\n",
    );
    let broken = put("calc.py", "def add(a, b):\n    return a + b\n");
    for (steps, code) in [(&helper, 0), (&cheat, 1), (&broken, 1)] {
        project.write(&script, &format!("steps:\n{steps}"));
        project.evals(&["run", "cases"]).exits(code);
    }
    // What the runner would print if everything passed.
    let forged = "import os\nos.write(2, b'test_add (test_add.Add.test_add) ... ok\\ntest_double (test_double.Double.test_double) \
                  ... ok\\n\\n----\\nRan 2 tests in 0.001s\\n\\nOK\\n')\n";
    let and_ends = format!("{forged}os._exit(0)\n");
    let is_killed = format!("{forged}os.kill(os.getpid(), 9)\n");
    let patches = "import unittest\nunittest.TestCase.assertEqual = lambda *a, **k: None\n";
    // The program of the case reads its results from a report of the runner, and not from what the code prints.
    let reports = "import os\nos.write(1, b'<testsuite><testcase name=\"test_add.Add.test_add\"/><testcase \
                   name=\"test_double.Double.test_double\"/></testsuite>')\nos._exit(0)\n";
    let rewrites = format!(
        "{BASE}\n\nimport unittest\nunittest.TestCase.assertEqual.__code__ = (lambda self, a, b, msg=None: None).__code__\n"
    );
    let replaces = format!("{BASE}\n\n{patches}");
    let of_result = format!(
        "{BASE}\n\nimport unittest\nunittest.TextTestResult.addFailure = lambda self, test, error: self.addSuccess(test)\n"
    );
    let of_suite = format!(
        "{BASE}\n\nimport unittest\n\n\ndef run(self, result, debug=False):\n    for test in self:\n        run(test, result) if \
         isinstance(test, unittest.TestSuite) else result.addSuccess(test)\n    return result\n\n\n\
         unittest.TestSuite.run = run\n"
    );
    for (file, text) in [
        ("calc.py", &*and_ends),
        ("calc.py", reports),
        ("calc.py", &*replaces),
        ("calc.py", &*rewrites),
        ("calc.py", &*of_result),
        ("calc.py", &*of_suite),
        // In place of the runner, or of a module of its own.
        ("unittest.py", &and_ends),
        ("unittest/__main__.py", &and_ends),
        // Beside the tests: the runner would import it.
        ("tests/test_aaa.py", &and_ends),
        ("tests/test_aaa.py", patches),
        ("tests/test_add/__init__.py", &and_ends),
        ("calc.py", &is_killed),
    ] {
        project.write(&script, &format!("steps:\n{}", put(file, text)));
        let ran = project.evals(&["run", "cases"]);
        assert_eq!(ran.code, 1, "{file}: {text}\n{}", ran.out);
    }
}

#[test]
#[ignore = "slow: mines two histories"]
fn code_that_puts_other_tests_in_place_of_hidden_ones_fails() {
    let class = "import unittest\n\n\nclass Add(unittest.TestCase):\n    def test_add(self):\n        pass\n";
    let shadow = format!("{class}\n\n__file__ = __file__.replace('/__init__.py', '.py')\n");
    let compiled = format!(
        "import importlib._bootstrap_external as b\nimport importlib.util\nimport os\n\nos.makedirs('__pycache__', exist_ok=True)\n\
         code = compile({class:?}, 'test_add.py', 'exec')\nwith open(importlib.util.cache_from_source('test_add.py'), 'wb') as \
         out:\n    out.write(b._code_to_hash_pyc(code, bytes(8), False))\n"
    );
    let traced = "\n\nimport functools\n\n\ndef traced(test):\n    @functools.wraps(test)\n    def run(*all):\n        return \
                  test(*all)\n    return run\n";
    let (base, fixed) = (format!("{BASE}{traced}"), format!("{FIXED}{traced}"));
    let of_class = "    T = type('Add', (unittest.TestCase,), {'test_add': lambda self: None, '__module__': \
                    'calc.tests.test_add'})\n";
    let loads = format!(
        "{base}\n\ndef load_tests(loader, tests, pattern):\n    import unittest\n{of_class}    from calc.tests import \
         test_double\n    return unittest.TestSuite([loader.loadTestsFromTestCase(T), \
         loader.loadTestsFromModule(test_double)])\n"
    );
    let replaces = format!(
        "{base}\n\nimport os\nimport sys\nimport types\nimport unittest\n\nif True:\n{of_class}\nfake = \
         types.ModuleType('calc.tests.test_add')\nfake.Add = T\nfake.__file__ = os.path.join(os.path.dirname(__file__), \
         'tests', 'test_add.py')\nsys.modules['calc.tests.test_add'] = fake\n"
    );
    let judges = format!(
        "{base}\n\ndef load_tests(loader, tests, pattern):\n    import unittest\n    from calc.tests import test_add, \
         test_double\n    test_add.Add.assertEqual = lambda self, *all: None\n    return unittest.TestSuite([\
         loader.loadTestsFromModule(test_add), loader.loadTestsFromModule(test_double)])\n"
    );
    // A test that the code's own decorator wraps is a test of its file.
    let decorated = TEST_ADD
        .replace("import add", "import add, traced")
        .replace("    def test_add", "    @traced\n    def test_add");
    let right = |path: &str, text: &str| (vec![(path.to_owned(), text.to_owned())], 0);
    let wrong = |path: &str, text: &str| (vec![(path.to_owned(), text.to_owned())], 1);
    for (code, folder, before, after, test, agents) in [
        (
            "calc.py",
            "",
            BASE,
            FIXED,
            TEST_ADD,
            vec![
                right("calc.py", FIXED),
                wrong("test_add/__init__.py", &shadow),
                // Started by the agent below.
                wrong("forge.py", &compiled),
            ],
        ),
        (
            "calc/__init__.py",
            "calc/tests/",
            base.as_str(),
            fixed.as_str(),
            decorated.as_str(),
            vec![
                right("calc/__init__.py", &fixed),
                wrong("calc/__init__.py", &loads),
                wrong("calc/__init__.py", &replaces),
                wrong("calc/__init__.py", &judges),
            ],
        ),
    ] {
        let project = Project::new();
        let mut history = History::new(&project, "repo");
        let in_folder = |name: &str| format!("{folder}{name}");
        let mut begin = vec![
            (code.to_owned(), before),
            (in_folder("test_double.py"), TEST_DOUBLE),
            (".gitignore".to_owned(), "__pycache__/\n"),
        ];
        if !folder.is_empty() {
            begin.push((in_folder("__init__.py"), ""));
        }
        let begin: Vec<(&str, Option<&str>)> = begin.iter().map(|(path, text)| (path.as_str(), Some(*text))).collect();
        history.commit("Begin", &begin);
        history.commit("Fix the sum", &[(code, Some(after)), (&in_folder("test_add.py"), Some(test))]);
        let mined = mine(&project, &["--repeat", "1", "--hunks", "0"]).exits(0).json();
        let fix = of(&mined, "Fix the sum");
        assert_eq!(fix["fail_to_pass"].as_array().unwrap().len(), 1, "{mined:#}");
        assert_eq!(fix["pass_to_pass"].as_array().unwrap().len(), 1, "{mined:#}");
        let script = fix["case"].as_str().unwrap().replace(".yaml", ".demo.yaml");
        for (files, exit) in agents {
            let starts = |path: &str| if path == "forge.py" { "- run: {command: python3 forge.py}\n" } else { "" };
            let step = |(path, text): &(String, String)| {
                format!("- write: {{path: {path}, text: {text:?}}}\n{}", starts(path))
            };
            project.write(&script, &format!("steps:\n{}", files.iter().map(step).collect::<String>()));
            let ran = project.evals(&["run", "cases"]);
            assert_eq!(ran.code, exit, "{files:?}\n{}{}", ran.out, ran.err);
        }
    }
}

#[test]
#[ignore = "slow: mines a history"]
fn data_that_only_tests_read_is_hidden_with_them() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let test = |name: &str, golden: &str| {
        format!(
            "import json\nimport os\nimport unittest\nimport calc\n\n\nclass {name}(unittest.TestCase):\n    def test_golden(self):\n        \
             with open(os.path.join('golden', '{golden}' + '.json')) as file:\n            all = json.load(file)\n        \
             self.assertEqual(getattr(calc, all['call'])(*all['in']), all['out'])\n"
        )
    };
    let double = "{\"call\": \"double\", \"in\": [2], \"out\": 4}\n";
    let sum = "{\"call\": \"add\", \"in\": [1, 2], \"out\": 3}\n";
    history.commit(
        "Begin",
        &[
            ("calc.py", Some(BASE)),
            ("golden/double.json", Some(double)),
            ("tests/test_double.py", Some(&test("Double", "double"))),
        ],
    );
    history.commit(
        "Fix the sum of two numbers",
        &[("calc.py", Some(FIXED)), ("golden/sum.json", Some(sum)), ("tests/test_sum.py", Some(&test("Sum", "sum")))],
    );
    let mined = mine(&project, &["--repeat", "1"]).exits(0).json();
    let case = of(&mined, "Fix the sum of two numbers")["case"].as_str().unwrap().to_owned();
    assert!(!project.read(&case.replace(".yaml", ".patch")).contains("golden"));
    let hidden = case.replace(".yaml", ".hidden");
    for file in ["sum.json", "double.json"] {
        assert!(project.path(&format!("{hidden}/golden/{file}")).is_file(), "{file}");
    }
    let put = |path: &str, text: &str| format!("- write: {{path: {path}, text: {text:?}}}\n");
    let own = sum.replace("3}", "-1}");
    for (steps, code) in [(put("calc.py", FIXED), 0), (put("golden/sum.json", &own), 1)] {
        project.write(&case.replace(".yaml", ".demo.yaml"), &format!("steps:\n{steps}"));
        project.evals(&["run", "cases"]).exits(code);
    }
}

/// Returns the demo agent's step that writes a file.
fn put(path: &str, text: &str) -> String {
    format!("- write: {{path: {path}, text: {text:?}}}\n")
}

/// Runs a mined case with the steps of an agent, and checks the exit code of each run.
fn decides(project: &Project, case: &str, runs: &[(String, i32)]) {
    for (steps, code) in runs {
        project.write(&case.replace(".yaml", ".demo.yaml"), &format!("steps:\n{steps}"));
        let ran = project.evals(&["run", "cases"]);
        assert_eq!(ran.code, *code, "{steps}\n{}{}", ran.out, ran.err);
    }
}

#[test]
fn a_name_that_another_test_can_satisfy_is_listed_only_with_the_name_of_that_test() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let told = |test: &str, space: &str, passed: &str, failed: &str| {
        format!("if {test}; then echo '{space}ok {passed}'; else echo '{space}not ok {failed}'; fi\n")
    };
    // Without `words`, the second file of tests cannot be loaded.
    let begin = [("cli", Some("1\n")), ("words", Some("1\n")), ("tests/run.sh", Some("echo 1..0\n"))];
    history.commit("Begin", &begin);
    let in_suite = told("grep -q 2 cli", "    ", "1 - empty", "1 - empty");
    let second = told("grep -q 2 words", "", "2 - empty", "2 - words.test");
    let tests = format!("echo 1..2\necho '# Subtest: cli'\n{in_suite}echo '    1..1'\necho 'ok 1 - cli'\n{second}");
    let fix = [("cli", Some("2\n")), ("words", Some("2\n")), ("tests/run.sh", Some(tests.as_str()))];
    history.commit("Set both values to two", &fix);
    // Two tests of the same name are in two files.
    let first = told("grep -q 3 cli", "", "1 - empty", "1 - empty");
    let flat = format!("echo 1..2\n{first}{}", second.replace('2', "3").replace("3 -", "2 -"));
    history.commit(
        "Set both values to three",
        &[("cli", Some("3\n")), ("words", Some("3\n")), ("tests/run.sh", Some(&flat))],
    );
    let mined = mine(&project, &["--test", "sh tests/run.sh", "--setup", "true", "--repeat", "1"]).exits(0).json();
    let reason = of(&mined, "Set both values to three")["reason"].as_str().unwrap().to_owned();
    assert!(reason.ends_with("left out, because their names select other tests, too: empty"), "{reason}");
    let two = of(&mined, "Set both values to two");
    assert_eq!(two["fail_to_pass"], serde_json::json!(["cli > empty", "empty"]), "{mined:#}");
    assert_eq!(two["hunks"], serde_json::json!({"all": 2, "noticed": 2}), "{mined:#}");
    let (one, both) = (put("cli", "2\n"), put("cli", "2\n") + &put("words", "2\n"));
    decides(&project, two["case"].as_str().unwrap(), &[(both, 0), (one, 1)]);
}

#[test]
#[ignore = "slow: mines a history"]
fn the_file_behind_a_link_among_the_tests_is_hidden_with_it() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    history.commit("Begin", &[("calc.py", Some(BASE)), ("tests/test_double.py", Some(TEST_DOUBLE))]);
    let link = |target: &str, path: &str| std::os::unix::fs::symlink(target, project.path("repo").join(path)).unwrap();
    link("../shared/impl_add.py", "tests/test_add.py");
    let files = [("calc.py", Some(FIXED)), ("shared/impl_add.py", Some(TEST_ADD))];
    history.commit("Fix the sum of two numbers", &files);
    let mined = mine(&project, &["--repeat", "1", "--hunks", "0"]).exits(0).json();
    let case = of(&mined, "Fix the sum of two numbers")["case"].as_str().unwrap().to_owned();
    assert_eq!(project.read(&case.replace(".yaml", ".hidden/shared/impl_add.py")), TEST_ADD);
    assert!(!project.read(&case.replace(".yaml", ".patch")).contains("impl_add"));
    let empty = TEST_ADD.replace("self.assertEqual(add(1, 2), 3)", "pass");
    decides(&project, &case, &[(put("calc.py", FIXED), 0), (put("shared/impl_add.py", &empty), 1)]);

    // Code reads the files behind a link by a glob.
    link("../views", "tests/views");
    let glob = "import pathlib\n\n\ndef views():\n    return sorted(path.name for path in pathlib.Path('.').rglob('*.tmpl'))\n";
    let listed = "import os\nimport unittest\nimport views_of\n\n\nclass Views(unittest.TestCase):\n    def test_views(self):\n        \
                  self.assertEqual(set(views_of.views()), {'one.tmpl'})\n        self.assertTrue(os.listdir('tests/views'))\n";
    let files = [("views_of.py", Some(glob)), ("views/one.tmpl", Some("1\n")), ("tests/test_views.py", Some(listed))];
    history.commit("List the views", &files);
    let mined = mine(&project, &["--repeat", "1", "--hunks", "0", "--since", "HEAD~1", "--force"]).exits(0).json();
    let case = of(&mined, "List the views")["case"].as_str().unwrap().to_owned();
    assert!(project.read(&case.replace(".yaml", ".patch")).contains("one.tmpl"));
    assert!(project.read(&case).contains("`workspace.protect`: `views/one.tmpl`\n"), "{}", project.read(&case));

    // Code uses the file, so an agent may change it.
    link("../more/half.py", "tests/test_half.py");
    let half = "import unittest\n\n\ndef half(a):\n    return a / 2\n\n\nclass Half(unittest.TestCase):\n    \
                def test_half(self):\n        self.assertEqual(half(4), 2)\n";
    let used = format!("from more.half import half\n{FIXED}");
    history.commit("Halve two numbers", &[("calc.py", Some(&used)), ("more/half.py", Some(half))]);
    let mined = mine(&project, &["--repeat", "1", "--since", "HEAD~1", "--force"]).exits(3).json();
    assert_eq!(
        of(&mined, "Halve two numbers")["reason"],
        "tests are links to files that an agent may change: tests/test_half.py -> more/half.py"
    );
}

#[test]
#[ignore = "slow: mines a history"]
fn data_and_modules_of_tests_that_the_commit_does_not_change_are_protected() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let same = "def same(one, other):\n    assert one == other\n";
    let begin = [
        ("calc.py", Some(BASE)),
        ("golden/sums.txt", Some("1 2 3\n")),
        ("golden/more[1].txt", Some("2 2 4\n")),
        ("support/__init__.py", Some("")),
        ("support/checks.py", Some(same)),
        ("near.py", Some(same)),
        ("tests/test_double.py", Some(TEST_DOUBLE)),
    ];
    history.commit("Begin", &begin);
    let test = "import unittest\nimport near\nfrom calc import add\nfrom support.checks import same\n\n\n\
                class Add(unittest.TestCase):\n    def test_add(self):\n        \
                for line in [*open('golden/sums.txt'), *open('golden/more[1].txt')]:\n            \
                a, b, sum = map(int, line.split())\n            same(add(a, b), sum)\n            near.same(a, a)\n";
    history.commit("Fix the sum of two numbers", &[("calc.py", Some(FIXED)), ("tests/test_add.py", Some(test))]);
    let mined = mine(&project, &["--repeat", "1", "--hunks", "0"]).exits(0).json();
    let case = of(&mined, "Fix the sum of two numbers")["case"].as_str().unwrap().to_owned();
    let text = project.read(&case);
    for path in ["golden/sums.txt", "support/checks.py"] {
        assert!(text.contains(&format!("  - {path}\n")), "{path}: {text}");
    }
    assert!(text.contains(r"golden/more\[1\].txt"), "{text}");
    // A module beside the fix may be code.
    assert!(
        text.contains("# Only tests load or run these modules") && text.contains("may change it: `near.py`\n"),
        "{text}"
    );
    assert!(!text.contains("  - near.py\n"), "{text}");
    let none = "def same(one, other):\n    pass\n";
    let three = "def add(a, b):\n    return 3\n\n\ndef double(a):\n    return a * 2\n";
    let runs = [
        (put("calc.py", FIXED), 0),
        (put("golden/sums.txt", ""), 1),
        (format!("{}{}", put("calc.py", three), put("'golden/more[1].txt'", "")), 1),
        (put("support/checks.py", none), 1),
        (format!("{}{}", put("calc.py", FIXED), put("support/checks.py", none)), 0),
    ];
    decides(&project, &case, &runs);
}

#[test]
#[ignore = "slow: mines a history"]
fn what_would_replace_a_module_that_an_unchanged_helper_of_tests_imports_is_removed() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let helper = "from decimal import Decimal\n\n\ndef same(one, other):\n    assert Decimal(one) == Decimal(other)\n";
    let begin =
        [("calc.py", Some(BASE)), ("tests/helpers.py", Some(helper)), ("tests/test_double.py", Some(TEST_DOUBLE))];
    history.commit("Begin", &begin);
    let test = "import unittest\nfrom calc import add\nfrom helpers import same\n\n\nclass Add(unittest.TestCase):\n    \
                def test_add(self):\n        same(add(1, 2), 3)\n";
    history.commit("Fix the sum of two numbers", &[("calc.py", Some(FIXED)), ("tests/test_add.py", Some(test))]);
    let mined = mine(&project, &["--repeat", "1", "--hunks", "0"]).exits(0).json();
    let case = of(&mined, "Fix the sum of two numbers")["case"].as_str().unwrap().to_owned();
    let equal = "class Decimal:\n    def __init__(self, value):\n        pass\n\n    def __eq__(self, other):\n        return True\n";
    // Data of the solution replaces no module.
    let reads = format!("{FIXED}\nopen('decimal.conf').close()\nopen('decimal/page.html').close()\n");
    let data = format!("{}{}", put("decimal.conf", "x\n"), put("decimal/page.html", "x\n"));
    let runs = [
        (put("calc.py", FIXED), 0),
        (format!("{}{data}", put("calc.py", &reads)), 0),
        (put("decimal.py", equal), 1),
        (put("decimal/__init__.py", equal), 1),
    ];
    decides(&project, &case, &runs);
}

#[test]
#[ignore = "slow: mines a history"]
fn modules_of_tests_are_protected_however_python_loads_them() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let same = "def same(one, other):\n    assert one == other\n";
    let script =
        "if python3 -B tests/test_add.py; then echo 'ok 1 - adds'; else echo 'not ok 1 - adds'; fi; echo 1..1\n";
    let modules = [
        "fixed/checks.py",
        "helpers/zeros.py",
        "loaded/rules.py",
        "plugins/lenient.py",
        "plugins/strict.py",
        "run/by_path.py",
        "support/checks.py",
    ];
    let begin = [
        ("calc.py", Some(BASE)),
        ("pytest.ini", Some("[pytest]\naddopts = -p plugins.strict\npythonpath = helpers\n")),
        ("run.sh", Some(script)),
        ("tests/conftest.py", Some("from fixed.checks import same\n\npytest_plugins = ['plugins.lenient']\n")),
    ];
    let of_tests = modules.map(|path| (path, Some(if path == "plugins/strict.py" { "import calc\n" } else { same })));
    history.commit("Begin", &[&begin[..], &of_tests].concat());
    let test = "import importlib\nimport os\nimport runpy\nimport sys\n\n\
                sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'support'))\nsys.path.insert(0, '.')\n\
                from calc import add\nfrom checks import same\n\n\n\
                def other(name):\n    from zeros import same\n\n    \
                return importlib.import_module('other.' + name)\n\n\n\
                rules = importlib.import_module('loaded.rules')\nby_path = runpy.run_path('run/by_path.py')\n\
                for check in [same, rules.same, by_path['same']]:\n    check(add(1, 2), 3)\n";
    history.commit("Fix the sum of two numbers", &[("calc.py", Some(FIXED)), ("tests/test_add.py", Some(test))]);
    let given = ["--test", "sh run.sh", "--setup", "true", "--repeat", "1", "--hunks", "0"];
    let mined = mine(&project, &given).exits(0).json();
    let case = of(&mined, "Fix the sum of two numbers")["case"].as_str().unwrap().to_owned();
    let text = project.read(&case);
    for path in modules {
        assert!(text.contains(&format!("  - {path}\n")), "{path}: {text}");
    }
    assert!(text.contains("names only a run shows") && text.contains("may change it: `tests/test_add.py`\n"), "{text}");
    assert!(!text.contains("# Only tests load"), "{text}");
    let none = "def same(one, other):\n    pass\n";
    let emptied: String = modules.iter().map(|path| put(path, none)).collect();
    let replaced: String = emptied.clone() + &put("checks.py", none);
    decides(&project, &case, &[(put("calc.py", FIXED), 0), (emptied, 1), (replaced, 1)]);
}

#[test]
#[ignore = "slow: mines a history"]
fn modules_of_tests_are_protected_however_python_imports_them() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let same = "def same(one, other):\n    assert one == other\n";
    let script = "if PYTHONPATH=. python3 -B tests/test_add.py; then echo 'ok 1 - adds'; else echo 'not ok 1 - adds'; fi; \
                  echo 1..1\n";
    let modules = [
        "qa/behind_colon.py",
        "qa/continued.py",
        "qa/first_line.py",
        "qa/function.py",
        "qa/other_name.py",
        "qa/tabbed.py",
        "qa_path/formatted.py",
    ];
    let of_tests = modules.map(|path| (path, Some(same)));
    history.commit("Begin", &[&[("calc.py", Some(BASE)), ("run.sh", Some(script))][..], &of_tests].concat());
    let test = "\u{feff}from qa.first_line import same as first\nimport importlib\nimport sys\n\
                from importlib import import_module as im\nfrom sys import path as where\nfrom calc import add\n\
                from qa.continued \\\n    import same as second\nfrom\tqa.tabbed import\tsame as third\n\
                if sys.version_info > (3,): from qa.behind_colon import same as fourth\nTOP = '.'\n\
                where.insert(0, f'{TOP}/qa_path')\nfrom formatted import same as fifth\n\n\
                load = importlib.import_module\nsixth = im('qa.other_name').same\nseventh = load('qa.function').same\n\
                pytest_plugins = ['qa_' + it for it in ()]\n\
                for same in [first, second, third, fourth, fifth, sixth, seventh]:\n    same(add(1, 2), 3)\n";
    history.commit("Fix the sum of two numbers", &[("calc.py", Some(FIXED)), ("tests/test_add.py", Some(test))]);
    let given = ["--test", "sh run.sh", "--setup", "true", "--repeat", "1", "--hunks", "0"];
    let mined = mine(&project, &given).exits(0).json();
    let case = of(&mined, "Fix the sum of two numbers")["case"].as_str().unwrap().to_owned();
    let text = project.read(&case);
    for path in modules {
        assert!(text.contains(&format!("  - {path}\n")), "{path}: {text}");
    }
    assert!(text.contains("names only a run shows") && text.contains("may change it: `tests/test_add.py`\n"), "{text}");
    let emptied: String = modules.iter().map(|path| put(path, "def same(one, other):\n    pass\n")).collect();
    decides(&project, &case, &[(put("calc.py", FIXED), 0), (emptied, 1)]);
}

#[test]
#[ignore = "slow: mines a history"]
fn examples_that_tests_of_plugins_copy_are_protected() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let script = "if PYTHONPATH=. python3 -B tests/test_add.py; then echo 'ok 1 - adds'; else echo 'not ok 1 - adds'; fi; \
                  echo 1..1\n";
    let example = "from calc import add\n\nassert add(1, 2) == 3\n";
    let begin = [
        ("calc.py", Some(BASE)),
        ("ex/sum_ex.py", Some(example)),
        ("pytest.ini", Some("[pytest]\npytester_example_dir = ex\n")),
        ("run.sh", Some(script)),
    ];
    history.commit("Begin", &begin);
    // The fixture of pytest is not needed to show what the text names.
    let test = "import runpy\n\n\nclass Pytester:\n    def copy_example(self, name):\n        \
                return runpy.run_path(str.join('/', ('ex', name)))\n\n\npytester = Pytester()\n\
                pytester.copy_example('sum_ex.py')\n";
    history.commit("Fix the sum of two numbers", &[("calc.py", Some(FIXED)), ("tests/test_add.py", Some(test))]);
    let given = ["--test", "sh run.sh", "--setup", "true", "--repeat", "1", "--hunks", "0"];
    let mined = mine(&project, &given).exits(0).json();
    let case = of(&mined, "Fix the sum of two numbers")["case"].as_str().unwrap().to_owned();
    assert!(project.read(&case).contains("  - ex/sum_ex.py\n"), "{}", project.read(&case));
    decides(&project, &case, &[(put("calc.py", FIXED), 0), (put("ex/sum_ex.py", "pass\n"), 1)]);
}

#[test]
#[ignore = "slow: mines a history"]
fn modules_of_tests_are_protected_however_node_finds_them() {
    if !runners(&["node"]) {
        return;
    }
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let same = "exports.same = (one, other) => require('assert').equal(one, other);\n";
    let package = r##"{"name": "calc", "files": ["lib", "listed"], "imports": {"#named/*": "./named/*", "#shared": "./shared/main.js"}, "exports": {"./*": "./*.js"}}"##;
    let script = "if node test/add.js; then echo 'ok 1 - adds'; else echo 'not ok 1 - adds'; fi; echo 1..1\n";
    let modules = [
        "entry/checks.js",
        "joined/checks.js",
        "listed/index.js",
        "made/checks.js",
        "named/checks.js",
        "own/checks.js",
        "plus/checks.js",
        "queried/checks.js",
        "resolved/checks.js",
    ];
    let code = "require('#shared');\nexports.add = (a, b) => a - b;\n";
    let begin = [
        ("entry/package.json", Some("{\"main\": \"checks.js\"}\n")),
        ("lib/calc.js", Some(code)),
        ("package.json", Some(package)),
        ("run.sh", Some(script)),
        ("shared/main.js", Some("exports.zero = 0;\n")),
        ("scripts/verify.js", Some("if (!require('../lib/calc').add) process.exit(1);\n")),
    ];
    let of_tests = modules.map(|path| (path, Some(same)));
    history.commit("Begin", &[&begin[..], &of_tests].concat());
    let test = "const path = require('path');\nconst { add } = require('../lib/calc');\n\
                require('#shared');\nrequire('child_process').execFileSync('node', ['scripts/verify.js']);\n\
                const other = name => require('../other/' + name);\nconst checks = [\n  \
                require(path.join(__dirname, '..', 'joined', 'checks.js')),\n  \
                require(__dirname + '/../plus/checks'),\n  require(path.resolve('resolved/checks.js')),\n  \
                require('#named/checks.js'),\n  require('calc/own/checks'),\n  require('../entry'),\n  \
                require('../listed'),\n  \
                require('module').createRequire(path.join(__dirname, '..', 'made/'))('./checks'),\n];\n\
                for (const { same } of checks) same(add(1, 2), 3);\n\
                import('../queried/checks.js?fresh=1').then(it => it.default.same(add(1, 2), 3));\n";
    let fixed = code.replace("a - b", "a + b");
    history.commit("Fix the sum of two numbers", &[("lib/calc.js", Some(&fixed)), ("test/add.js", Some(test))]);
    let given = ["--test", "sh run.sh", "--setup", "true", "--repeat", "1", "--hunks", "0"];
    let mined = mine(&project, &given).exits(0).json();
    let case = of(&mined, "Fix the sum of two numbers")["case"].as_str().unwrap().to_owned();
    let text = project.read(&case);
    // `listed.js` would be loaded in place of `listed/index.js`.
    for path in modules.iter().chain(&["listed.js"]) {
        assert!(text.contains(&format!("  - {path}\n")), "{path}: {text}");
    }
    assert!(text.contains("names only a run shows") && text.contains("may change it: `test/add.js`\n"), "{text}");
    // The code imports it by another name.
    assert!(!text.contains("shared/main.js"), "{text}");
    // A program that the tests run, and that loads the code.
    assert!(text.contains("may change it: `scripts/verify.js`\n"), "{text}");
    let emptied: String = modules.iter().map(|path| put(path, "exports.same = () => {};\n")).collect();
    decides(&project, &case, &[(put("lib/calc.js", &fixed), 0), (emptied, 1)]);
}

#[test]
#[ignore = "slow: mines a history"]
fn a_solution_may_change_packages_of_python_that_the_product_ships() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let client = "def request(name):\n    return 'HELLO ' + name\n";
    let server = "def answer(line):\n    word, _, name = line.partition(' ')\n    \
                  return '200 ' + name if word == 'hello' else '400'\n";
    let settings = "[options]\npackages =\n    listed\n\n[options.entry_points]\npytest11 =\n    \
                    chat = fixtures_of_chat.plugin\n";
    let script =
        "if python3 -B tests/test_chat.py; then echo 'ok 1 - greets'; else echo 'not ok 1 - greets'; fi; echo 1..1\n";
    let begin = [
        ("client/__init__.py", Some(client)),
        ("fixtures_of_chat/plugin.py", Some("import pytest\n")),
        ("listed/core.py", Some("def same(text):\n    return text\n")),
        ("pyproject.toml", Some("[project]\nname = 'chat'\n\n[tool.setuptools.packages.find]\n")),
        ("run.sh", Some(script)),
        ("server/__init__.py", Some(server)),
        ("setup.cfg", Some(settings)),
        ("tests/conftest.py", Some("from server import answer\n\npytest_plugins = ['fixtures_of_chat.plugin']\n")),
    ];
    history.commit("Begin", &begin);
    let test = "import sys\n\nsys.path.insert(0, '.')\nfrom client import request\nfrom listed.core import same\n\
                from server import answer\n\nassert same(answer(request('ada'))) == '200 ada'\n";
    let fixed = client.replace("HELLO", "hello");
    let fix = [("client/__init__.py", Some(fixed.as_str())), ("tests/test_chat.py", Some(test))];
    history.commit("The server accepts the greeting of the client", &fix);
    let given = ["--test", "sh run.sh", "--setup", "true", "--repeat", "1", "--hunks", "0"];
    let mined = mine(&project, &given).exits(0).json();
    let case = of(&mined, "The server accepts the greeting of the client")["case"].as_str().unwrap().to_owned();
    let text = project.read(&case);
    let named = "may change it: `listed/core.py`, `server/__init__.py`, `fixtures_of_chat/plugin.py`\n";
    assert!(text.contains(named), "{text}");
    let other = server.replace("if word", "if word.lower()");
    decides(&project, &case, &[(put("client/__init__.py", &fixed), 0), (put("server/__init__.py", &other), 0)]);
}

#[test]
fn a_solution_may_change_packages_of_node_that_the_product_ships() {
    if !runners(&["node"]) {
        return;
    }
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let package =
        r#"{"name": "codec", "workspaces": ["packages/*"], "files": ["listed"], "directories": {"bin": "bin"}}"#;
    let script = "if node test/round.js; then echo 'ok 1 - round'; else echo 'not ok 1 - round'; fi; echo 1..1\n";
    let printer = "exports.print = s => s.replace(/ /g, '_');\n";
    let parser = "exports.parse = s => s.replace(/%20/g, ' ');\n";
    let begin = [
        ("bin/decode.js", Some("console.log(process.argv[2]);\n")),
        ("listed/index.js", Some("exports.same = s => s;\n")),
        ("package.json", Some(package)),
        ("packages/parser/index.js", Some(parser)),
        ("packages/parser/package.json", Some("{\"name\": \"@x/parser\", \"main\": \"index.js\"}\n")),
        ("packages/printer/index.js", Some(printer)),
        ("packages/printer/package.json", Some("{\"name\": \"@x/printer\", \"main\": \"index.js\"}\n")),
        ("run.sh", Some(script)),
    ];
    history.commit("Begin", &begin);
    let test = "const { print } = require('../packages/printer');\nconst { parse } = require('../packages/parser');\n\
                const { same } = require('../listed');\n\
                require('child_process').execFileSync('node', ['bin/decode.js', 'a']);\n\
                if (same(parse(print('a b'))) !== 'a b') process.exit(1);\n";
    let fixed = printer.replace("'_'", "'%20'");
    let fix = [("packages/printer/index.js", Some(fixed.as_str())), ("test/round.js", Some(test))];
    history.commit("Spaces survive a round trip", &fix);
    let given = ["--test", "sh run.sh", "--setup", "true", "--repeat", "1", "--hunks", "0"];
    let mined = mine(&project, &given).exits(0).json();
    let case = of(&mined, "Spaces survive a round trip")["case"].as_str().unwrap().to_owned();
    let text = project.read(&case);
    let named = "may change it: `bin/decode.js`, `listed/index.js`, `packages/parser/index.js`\n";
    assert!(text.contains(named), "{text}");
    let other = parser.replace("%20", "_");
    let runs = [(put("packages/printer/index.js", &fixed), 0), (put("packages/parser/index.js", &other), 0)];
    decides(&project, &case, &runs);
}

#[test]
#[ignore = "slow: mines a history"]
fn a_solution_may_change_programs_of_python_that_tests_import() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let collect = "def collect(text):\n    return text.split(',')\n";
    let report = "def report(names):\n    return '|'.join(names)\n";
    let send = "def send(names):\n    return '|'.join(names)\n\n\nif __name__ == '__main__':\n    \
                print(send(input()))\n";
    let script = "if PYTHONPATH=. python3 -B tests/test_all.py; then echo 'ok 1 - all'; else echo 'not ok 1 - all'; fi; \
                  echo 1..1\n";
    let begin = [
        ("Makefile", Some("run:\n\tpython3 collect/collect.py | python3 report/report.py\n")),
        ("collect/collect.py", Some(collect)),
        ("report/report.py", Some(report)),
        ("run.sh", Some(script)),
        ("send/send.py", Some(send)),
    ];
    history.commit("Begin", &begin);
    let test = "from collect.collect import collect\nfrom report.report import report\nfrom send.send import send\n\n\
                assert report(collect('a, b')) == send(collect('a, b')) == 'a|b'\n";
    let fixed = collect.replace("text.split(',')", "[name.strip() for name in text.split(',')]");
    let fix = [("collect/collect.py", Some(fixed.as_str())), ("tests/test_all.py", Some(test))];
    history.commit("Leave out blanks around names", &fix);
    let given = ["--test", "sh run.sh", "--setup", "true", "--repeat", "1", "--hunks", "0"];
    let mined = mine(&project, &given).exits(0).json();
    let case = of(&mined, "Leave out blanks around names")["case"].as_str().unwrap().to_owned();
    let text = project.read(&case);
    assert!(text.contains("may change it: `report/report.py`, `send/send.py`\n"), "{text}");
    let stripped = |text: &str| text.replace("join(names)", "join(name.strip() for name in names)");
    let other = format!("{}{}", put("report/report.py", &stripped(report)), put("send/send.py", &stripped(send)));
    decides(&project, &case, &[(put("collect/collect.py", &fixed), 0), (other, 0)]);
}

#[test]
fn a_solution_may_change_files_of_node_that_a_page_a_service_or_a_container_uses() {
    if !runners(&["node"]) {
        return;
    }
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let split = "exports.split = text => text.split(',');\n";
    let page = "exports.list = all => all.map(it => '<li>' + it + '</li>').join('');\n";
    let service = "exports.answer = all => ({ all });\n";
    let worker = "exports.line = all => all.join('|');\n";
    let script = "if node test/all.js; then echo 'ok 1 - all'; else echo 'not ok 1 - all'; fi; echo 1..1\n";
    let begin = [
        ("Dockerfile", Some("FROM node:20\nCOPY . /app\nWORKDIR /app\nCMD node worker/worker.js\n")),
        ("Procfile", Some("mail: node mailer/names\nsms: cd sender && node names.js\n")),
        ("api/names.js", Some(service)),
        ("client/names.js", Some(page)),
        ("index.html", Some("<!doctype html>\n<script src=\"client/names.js\"></script>\n")),
        ("mailer/names.js", Some(worker)),
        ("package.json", Some("{\"name\": \"shop\", \"private\": true}\n")),
        ("run.sh", Some(script)),
        ("sender/names.js", Some(worker)),
        ("store/split.js", Some(split)),
        ("worker/worker.js", Some(worker)),
    ];
    history.commit("Begin", &begin);
    let test = "const { split } = require('../store/split');\nconst { list } = require('../client/names');\n\
                const { answer } = require('../api/names');\nconst { line } = require('../worker/worker');\n\
                const all = split('a, b');\nif (list(all) !== '<li>a</li><li>b</li>') process.exit(1);\n\
                if (answer(all).all.join('+') !== 'a+b') process.exit(1);\nif (line(all) !== 'a|b') process.exit(1);\n\
                if (require('../mailer/names').line(all) !== 'a|b') process.exit(1);\n\
                if (require('../sender/names').line(all) !== 'a|b') process.exit(1);\n";
    let fixed = split.replace("split(',')", "split(',').map(it => it.trim())");
    let fix = [("store/split.js", Some(fixed.as_str())), ("test/all.js", Some(test))];
    history.commit("Leave out blanks around names", &fix);
    let given = ["--test", "sh run.sh", "--setup", "true", "--repeat", "1", "--hunks", "0"];
    let mined = mine(&project, &given).exits(0).json();
    let case = of(&mined, "Leave out blanks around names")["case"].as_str().unwrap().to_owned();
    let text = project.read(&case);
    let named = "`api/names.js`, `client/names.js`, `mailer/names.js`, `sender/names.js`, `worker/worker.js`\n";
    assert!(text.contains(named), "{text}");
    let other = [
        put("client/names.js", &page.replace("+ it +", "+ it.trim() +")),
        put("api/names.js", &service.replace("({ all })", "({ all: all.map(it => it.trim()) })")),
        put("worker/worker.js", &worker.replace("all.join", "all.map(it => it.trim()).join")),
        put("mailer/names.js", &worker.replace("all.join", "all.map(it => it.trim()).join")),
        put("sender/names.js", &worker.replace("all.join", "all.map(it => it.trim()).join")),
    ];
    decides(&project, &case, &[(put("store/split.js", &fixed), 0), (other.concat(), 0)]);
}

#[test]
#[ignore = "slow: mines a history"]
fn a_module_of_tests_that_texts_and_settings_of_checkers_name_is_protected() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let names = ["check", "config", "container", "cover", "guide", "own", "reads"];
    let same = "def same(a, b):\n    if a != b:\n        raise ValueError(a)\n";
    let own = format!("{same}\n\nif __name__ == '__main__':\n    import doctest\n    doctest.testmod()\n");
    let reads = format!("import argparse\n\n\n{same}");
    let helpers = names.map(|name| format!("qa_{name}/compare.py"));
    let text = |path: &str| match path {
        "qa_own/compare.py" => own.as_str(),
        "qa_reads/compare.py" => reads.as_str(),
        _ => same,
    };
    let script = "if PYTHONPATH=. python3 -B tests/test_all.py; then echo 'ok 1 - all'; else echo 'not ok 1 - all'; fi; \
                  echo 1..1\n";
    let guide = "The tests compare numbers with `qa_guide/compare.py`. Do not ship it.\n";
    let begin = [
        (".coveragerc", Some("[run]\nomit =\n    qa_cover/compare.py\n")),
        (".flake8", Some("[flake8]\nper-file-ignores =\n    qa_config/compare.py: E501\n")),
        ("CONTRIBUTING.md", Some(guide)),
        ("Dockerfile.test", Some("FROM python\nCOPY qa_container /app/qa_container\nCMD pytest tests\n")),
        ("Makefile", Some("lint:\n\truff check calc qa_check/compare.py\n")),
        ("calc.py", Some(BASE)),
        ("run.sh", Some(script)),
    ];
    let of_tests = helpers.each_ref().map(|path| (path.as_str(), Some(text(path))));
    history.commit("Begin", &[&begin[..], &of_tests].concat());
    let import = |name: &str| format!("from qa_{name}.compare import same\nsame(add(1, 2), 3)\n");
    let test = format!("from calc import add\n{}", names.map(import).concat());
    history.commit("Fix the sum of two numbers", &[("calc.py", Some(FIXED)), ("tests/test_all.py", Some(&test))]);
    let given = ["--test", "sh run.sh", "--setup", "true", "--repeat", "1", "--hunks", "0"];
    let mined = mine(&project, &given).exits(0).json();
    let case = of(&mined, "Fix the sum of two numbers")["case"].as_str().unwrap().to_owned();
    let text = project.read(&case);
    for path in &helpers {
        assert!(text.contains(&format!("  - {path}\n")), "{path}: {text}");
    }
    let emptied: String = helpers.iter().map(|path| put(path, "def same(a, b):\n    pass\n")).collect();
    decides(&project, &case, &[(put("calc.py", FIXED), 0), (emptied, 1)]);
}

#[test]
fn modules_of_node_that_tools_check_are_protected_and_those_that_tests_load_fresh_are_named() {
    if !runners(&["node"]) {
        return;
    }
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let same = "exports.same = (a, b) => { if (a !== b) process.exit(1); };\n";
    let own =
        format!("{same}if (require.main === module) {{ exports.same(1, 1); console.log('self test passed'); }}\n");
    let line = "exports.line = all => all.join('|');\n";
    let split = "exports.split = text => text.split(',');\nexports.first = text => text.split(',')[0];\n";
    let script = "if node test/all.js; then echo 'ok 1 - all'; else echo 'not ok 1 - all'; fi; echo 1..1\n";
    let begin = [
        (".github/workflows/lint.yml", Some("jobs:\n  a:\n    steps:\n    - run: npx eslint qa_flow/same.js\n")),
        (".nycrc", Some("{\"exclude\": [\"qa_cover/same.js\"]}\n")),
        ("eslint.config.js", Some("module.exports = [{ files: ['qa_lint/same.js'] }];\n")),
        ("package.json", Some("{\"name\": \"shop\", \"private\": true}\n")),
        ("qa/static/same.js", Some(same)),
        ("qa_cover/same.js", Some(same)),
        ("qa_flow/same.js", Some(same)),
        ("qa_lint/same.js", Some(same)),
        ("qa_own/same.js", Some(own.as_str())),
        ("qa_types/same.js", Some(same)),
        ("run.sh", Some(script)),
        ("store/split.js", Some(split)),
        ("tsconfig.json", Some("{\"include\": [\"store\", \"qa_types\", \"test\"]}\n")),
        ("userscript/names.user.cjs", Some(line)),
        ("worker/names.cjs", Some(line)),
    ];
    history.commit("Begin", &begin);
    let helpers =
        ["qa/static", "qa_cover", "qa_flow", "qa_lint", "qa_own", "qa_types"].map(|it| format!("{it}/same.js"));
    let imports: String =
        helpers.iter().map(|path| format!("require('../{path}').same(first(' a,b'), 'a');\n")).collect();
    let test = format!(
        "const {{ createRequire }} = require('module');\nconst path = require('path');\n\
         const {{ first, split }} = require('../store/split');\nconst all = split('a, b');\n{imports}\
         const user = createRequire(path.join(__dirname, '..', 'userscript/'))('./names.user.cjs');\n\
         if (user.line(all) !== 'a|b') process.exit(1);\nimport('../worker/names.cjs?t=' + Date.now())\
         .then(it => it.default.line(all) === 'a|b' || process.exit(1));\n"
    );
    let fixed = split.replace("split(',')", "split(',').map(it => it.trim())");
    let fix = [("store/split.js", Some(fixed.as_str())), ("test/all.js", Some(test.as_str()))];
    history.commit("Leave out blanks around names", &fix);
    let given = ["--test", "sh run.sh", "--setup", "true", "--repeat", "1", "--hunks", "0"];
    let mined = mine(&project, &given).exits(0).json();
    let case = of(&mined, "Leave out blanks around names")["case"].as_str().unwrap().to_owned();
    let text = project.read(&case);
    for path in &helpers {
        assert!(text.contains(&format!("  - {path}\n")), "{path}: {text}");
    }
    assert!(text.contains("may change it: `userscript/names.user.cjs`, `worker/names.cjs`\n"), "{text}");
    let emptied: String = helpers.iter().map(|path| put(path, "exports.same = () => {};\n")).collect();
    let stripped = line.replace("all.join", "all.map(it => it.trim()).join");
    let other = ["userscript/names.user.cjs", "worker/names.cjs"].map(|path| put(path, &stripped)).concat();
    let first = put("store/split.js", &split.replace("split(',')[0]", "split(',')[0].trim()"));
    let runs = [(put("store/split.js", &fixed), 0), (format!("{first}{other}"), 0), (format!("{other}{emptied}"), 1)];
    decides(&project, &case, &runs);
}

#[test]
fn a_module_of_rust_called_build_is_kept_and_a_build_script_is_removed() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let code = "pub fn add(a: i32, b: i32) -> i32 { a - b }\n";
    let script = "if grep -q 'a + b' src/*.rs build.rs 2>/dev/null; then echo 'ok 1 - adds'; else echo 'not ok 1 - adds'; fi; \
                  echo 1..1\n";
    let manifest = "[package]\nname = \"calc\"\nversion = \"0.1.0\"\n";
    let begin = [("Cargo.toml", Some(manifest)), ("run.sh", Some(script)), ("src/lib.rs", Some(code))];
    history.commit("Begin", &begin);
    let fixed = code.replace("a - b", "a + b");
    let test = "#[test]\nfn adds() { assert_eq!(calc::add(1, 2), 3); }\n";
    let fix = [("src/lib.rs", Some(fixed.as_str())), ("tests/ops.rs", Some(test))];
    history.commit("Fix the sum of two numbers", &fix);
    let given = ["--test", "sh run.sh", "--setup", "true", "--repeat", "1", "--hunks", "0"];
    let mined = mine(&project, &given).exits(0).json();
    let case = of(&mined, "Fix the sum of two numbers")["case"].as_str().unwrap().to_owned();
    let module = format!("{}{}", put("src/lib.rs", "mod build;\npub use build::add;\n"), put("src/build.rs", &fixed));
    decides(&project, &case, &[(put("src/lib.rs", &fixed), 0), (module, 0), (put("build.rs", &fixed), 1)]);
}

#[test]
#[ignore = "slow: mines a history"]
fn files_that_tests_run_or_list_are_protected_or_named() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    project.write("repo/scripts/run", "#!/bin/sh\ntrue\n");
    fs::set_permissions(project.path("repo/scripts/run"), fs::Permissions::from_mode(0o755)).unwrap();
    let begin = [
        (".env", Some("SUM=3\n")),
        ("calc.py", Some(BASE)),
        ("golden/sum.json", Some("{\"sum\": 3}\n")),
        ("Makefile", Some("verify:\n\ttrue\n")),
        ("package.json", Some("{\"scripts\": {\"verify\": \"node qa/verify.js\"}}\n")),
        ("qa/verify.js", Some("process.exit(0);\n")),
        ("scripts/verify.sh", Some("true\n")),
        ("tests/test_double.py", Some(TEST_DOUBLE)),
    ];
    history.commit("Begin", &begin);
    let test = "import json\nimport os\nimport subprocess\nimport unittest\nfrom calc import add\n\n\n\
                class Add(unittest.TestCase):\n    def test_add(self):\n        all = {}\n        \
                for name in sorted(os.listdir('golden')):\n            with open('golden/' + name) as file:\n                \
                all.update(json.load(file))\n        self.assertEqual(add(1, 2), all['sum'])\n        \
                with open('.env') as file:\n            self.assertTrue(file.read())\n        \
                subprocess.run(['sh', 'scripts/verify.sh'], check=True)\n        \
                subprocess.run(['scripts/run'], check=True)\n        \
                if os.environ.get('ALL'):\n            subprocess.run(['make', '-s', 'verify'], check=True)\n            \
                subprocess.run('npm run -s verify', shell=True, check=True)\n";
    history.commit("Fix the sum of two numbers", &[("calc.py", Some(FIXED)), ("tests/test_add.py", Some(test))]);
    let mined = mine(&project, &["--repeat", "1", "--hunks", "0"]).exits(0).json();
    let case = of(&mined, "Fix the sum of two numbers")["case"].as_str().unwrap().to_owned();
    let text = project.read(&case);
    assert!(text.contains("golden/**"), "{text}");
    let named = "`workspace.protect`:\n# `.env`, `Makefile`, `package.json`, `qa/verify.js`, `scripts/run`\n# \
                 `scripts/verify.sh`\n";
    assert!(text.contains(named), "{text}");
    let runs = [(put("calc.py", FIXED), 0), (put("golden/total.json", "{\"sum\": -1}\n"), 1)];
    decides(&project, &case, &runs);
}

#[test]
fn a_second_mining_into_the_same_folder_is_refused() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let (begun, go) = (project.path("begun"), project.path("go"));
    let script = format!(
        "touch '{}'; while [ ! -e '{}' ]; do sleep 0.02; done; if grep -q 42 value; then echo 'ok 1 - value'; else echo \
         'not ok 1 - value'; fi; echo 1..1\n",
        begun.display(),
        go.display()
    );
    history.commit("Begin", &[("run.sh", Some(&script)), ("value", Some("41\n"))]);
    history.commit("Set the value to 42", &[("value", Some("42\n")), ("t/value.t", Some("true\n"))]);
    let words = [&SETTINGS[..], &["json", "--test", "sh run.sh", "--repeat", "1", "--hunks", "0"]].concat();
    let mut first = project
        .command(&words)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while !begun.exists() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    for more in [&["--resume"][..], &["--force"], &[]] {
        project.evals(&[&words[..], more].concat()).exits(2).says("another mining writes its cases to cases/mined");
    }
    fs::write(&go, "").unwrap();
    assert!(first.wait().unwrap().success());
    let resumed = project.evals(&[&words[..], &["--resume"]].concat()).exits(0);
    assert_eq!(resumed.err.matches("trying ").count(), 0, "{}", resumed.err);
    assert_eq!(resumed.json()["kept"], 1);
}

#[test]
#[ignore = "slow: mines a history"]
fn files_that_code_finds_by_a_glob_or_a_name_are_no_data_of_tests() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let tables = "import pathlib\n\n\ndef tables():\n    here = pathlib.Path(__file__).parent\n    \
                  return {path.name: path.read_text() for path in here.rglob('*.sql')}\n";
    let core = "import importlib\n\n\ndef run(name, text):\n    \
                return importlib.import_module('plug' + 'ins.' + name).apply(text)\n";
    let begin = [
        ("app/__init__.py", Some("")),
        ("app/db.py", Some(tables)),
        ("app/migrations/001_users.sql", Some("create table users(name text);\n")),
        ("calc.py", Some(BASE)),
        ("core.py", Some(core)),
        ("plugins/slug.py", Some("def apply(text):\n    return text.lower()\n")),
        ("tests/test_double.py", Some(TEST_DOUBLE)),
    ];
    history.commit("Begin", &begin);
    let fixed = core.replace("(text)\n", "(text.strip())\n");
    let email = "alter table users add column email text;\n";
    let test = "import unittest\nimport core\nfrom app import db\nfrom plugins import slug\n\n\n\
                class Users(unittest.TestCase):\n    def test_email(self):\n        all = db.tables()\n        \
                self.assertIn('001_users.sql', all)\n        self.assertIn('email', all.get('002_email.sql', ''))\n\n    \
                def test_slug(self):\n        self.assertEqual(slug.apply('A'), 'a')\n        \
                self.assertEqual(core.run('slug', ' A '), 'a')\n";
    let files = [
        ("app/migrations/002_email.sql", Some(email)),
        ("core.py", Some(fixed.as_str())),
        ("tests/test_users.py", Some(test)),
    ];
    history.commit("Users have an address, and slugs have no blanks at their ends", &files);
    let mined = mine(&project, &["--repeat", "1", "--hunks", "0"]).exits(0).json();
    let fix = of(&mined, "Users have an address, and slugs have no blanks at their ends");
    let case = fix["case"].as_str().unwrap().to_owned();
    assert!(project.read(&case.replace(".yaml", ".patch")).contains("002_email.sql"));
    assert!(!project.path(&case.replace(".yaml", ".hidden/app")).exists());
    let text = project.read(&case);
    for part in [
        "# Tests name or run these files, or have links to them, and code may read them",
        "`workspace.protect`: `app/migrations/001_users.sql`, `app/migrations/002_email.sql`\n",
        "may change it: `app/db.py`, `plugins/slug.py`\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for path in ["app/migrations/001_users.sql", "app/db.py", "plugins/slug.py"] {
        assert!(!text.contains(&format!("  - {path}\n")), "{path}: {text}");
    }
    let migrated = put("app/migrations/002_email.sql", email);
    // Another correct fix changes the plug-in.
    let slug = put("plugins/slug.py", "def apply(text):\n    return text.strip().lower()\n");
    decides(&project, &case, &[(put("core.py", &fixed), 1), (format!("{migrated}{slug}"), 0)]);
}

#[test]
#[ignore = "slow: mines a history"]
fn data_of_tests_is_hidden_whatever_its_ending() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    history.commit("Begin", &[("calc.py", Some(BASE)), ("tests/test_double.py", Some(TEST_DOUBLE))]);
    let test = "import unittest\nfrom calc import add\n\n\nclass Add(unittest.TestCase):\n    def test_add(self):\n        \
                for name in ['sums/a.sql', 'sums/b.java', 'sums/c']:\n            for line in open(name):\n                \
                a, b, sum = map(int, line.split())\n                self.assertEqual(add(a, b), sum)\n";
    let sum = Some("1 2 3\n");
    let files = [("sums/a.sql", sum), ("sums/b.java", sum), ("sums/c", sum), ("tests/test_add.py", Some(test))];
    history.commit("Fix the sum of two numbers", &[&[("calc.py", Some(FIXED))][..], &files].concat());
    let mined = mine(&project, &["--repeat", "1", "--hunks", "0"]).exits(0).json();
    let case = of(&mined, "Fix the sum of two numbers")["case"].as_str().unwrap().to_owned();
    let patch = project.read(&case.replace(".yaml", ".patch"));
    assert!(patch.contains("calc.py") && !patch.contains("sums"), "{patch}");
    let emptied: String = files.iter().take(3).map(|(path, _)| put(path, "")).collect();
    decides(&project, &case, &[(put("calc.py", FIXED), 0), (emptied, 1)]);

    // The project may compile a file that only tests name.
    let test = test.replace("Add", "More").replace("'sums/c'", "'sums/d.c'").replace("add(a, b)", "add(b, a)");
    let files = [("Makefile", Some("all:\n")), ("sums/d.c", sum), ("tests/test_more.py", Some(test.as_str()))];
    history.commit("Compile sums", &[&[("calc.py", Some(BASE))][..], &files].concat());
    let mined = mine(&project, &["--repeat", "1", "--since", "HEAD~1", "--force"]).exits(3).json();
    assert_eq!(
        of(&mined, "Compile sums")["reason"],
        "it is not known whether these files are code or data of the tests: sums/d.c"
    );
}

/// The script of a given command that runs the files `t/*.t`.
const RUN_SH: &str = "n=0\nfor file in t/*.t; do\n  n=$((n + 1))\n  if sh $file; then echo \"ok $n - $file\"; else echo \"not ok $n - \
                      $file\"; fi\ndone\necho 1..$n\n";
const GIVEN_SH: [&str; 8] = ["--test", "sh run.sh", "--setup", "true", "--repeat", "1", "--hunks", "0"];

#[test]
fn data_that_a_script_of_the_product_names_without_quotes_is_no_data_of_tests() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let has = |options: &str| format!("#!/bin/sh\ngrep -q{options} -e $1 data/words.txt\n");
    let (wrong, right) = (has("x"), has("ix"));
    let begin = [
        ("run.sh", Some(RUN_SH)),
        ("bin/has", Some(wrong.as_str())),
        ("data/words.txt", Some("apple\nplum\n")),
        ("t/apple.t", Some("sh bin/has apple\n")),
        ("t/sorted.t", Some("sort -c data/words.txt\n")),
    ];
    history.commit("Begin", &begin);
    let words = "apple\npear\nplum\n";
    let fix = [
        ("bin/has", Some(right.as_str())),
        ("data/words.txt", Some(words)),
        ("t/case.t", Some("sh bin/has APPLE\n")),
        ("t/pear.t", Some("sh bin/has pear\n")),
    ];
    let subject = "Know the word pear, and find words in capitals";
    history.commit(subject, &fix);
    let mined = mine(&project, &GIVEN_SH).exits(0).json();
    let fix = of(&mined, subject);
    assert_eq!(fix["fail_to_pass"], serde_json::json!(["t/case.t", "t/pear.t"]), "{mined:#}");
    let case = fix["case"].as_str().unwrap().to_owned();
    let patch = project.read(&case.replace(".yaml", ".patch"));
    assert!(patch.contains("bin/has") && patch.contains("data/words.txt"), "{patch}");
    assert!(project.read(&case).contains("`workspace.protect`: `data/words.txt`\n"), "{}", project.read(&case));
    let code = put("bin/has", &right);
    decides(&project, &case, &[(code.clone(), 1), (format!("{code}{}", put("data/words.txt", words)), 0)]);
}

#[test]
#[ignore = "slow: mines a history"]
fn data_of_tests_that_tools_of_the_project_name_is_hidden() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let test = |name: &str, more: &str| {
        format!(
            "import unittest\nfrom calc import row\n\n\nclass Row{more}(unittest.TestCase):\n    def test_row(self):\n        \
             with open('golden/{name}.txt') as file:\n            self.assertEqual(row('{name}'), file.read())\n"
        )
    };
    let (one, two) = (test("one", ""), test("two", "Two"));
    let code = |between: &str| format!("def row(cell):\n    return cell + '{between}' + cell\n");
    let (wrong, right) = (code("|"), code(" | "));
    let begin = [
        ("calc.py", Some(wrong.as_str())),
        ("golden/one.txt", Some("one|one")),
        ("Makefile", Some("update:\n\tpython3 gen.py > golden/two.txt\n\trm -f golden/one.txt\n")),
        ("scripts/help.sh", Some("#!/bin/sh\ncd golden && ls two.txt one.txt\n")),
        ("bin/clean", Some("#!/bin/sh\nrm -f golden/two.txt golden/one.txt\n")),
        ("tests/test_one.py", Some(one.as_str())),
    ];
    history.commit("Begin", &begin);
    let fix = [
        ("calc.py", Some(right.as_str())),
        ("golden/one.txt", Some("one | one")),
        ("golden/two.txt", Some("two | two")),
        ("tests/test_two.py", Some(two.as_str())),
    ];
    let subject = "Put blanks around the bar between the cells";
    history.commit(subject, &fix);
    let mined = mine(&project, &["--repeat", "1", "--hunks", "0"]).exits(0).json();
    let case = of(&mined, subject)["case"].as_str().unwrap().to_owned();
    assert!(!project.read(&case.replace(".yaml", ".patch")).contains("golden"));
    // What the code returns today, as what the tests expect.
    let golden = format!("{}{}", put("golden/one.txt", "one|one"), put("golden/two.txt", "two|two"));
    decides(&project, &case, &[(put("calc.py", &right), 0), (golden, 1)]);
}

#[test]
fn options_that_a_patch_passes_to_others_are_not_told() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let code = |parameters: &str, arguments: &str| {
        format!("import json\n\n\ndef dump({parameters}):\n    return json.dumps({arguments})\n")
    };
    let test = |name: &str, arguments: &str| {
        format!(
            "import json\nimport unittest\nimport calc\n\n\nclass {name}(unittest.TestCase):\n    def test_dump(self):\n        \
             all = {{'b': 1, 'a': 2}}\n        \
             self.assertEqual(calc.dump({arguments}), json.dumps(all, sort_keys=True, indent=2))\n"
        )
    };
    let (begun, fixed) = (code("all", "all"), code("all, width=0", "all, sort_keys=True, indent=width"));
    let double = "import unittest\nimport calc\n\n\nclass Empty(unittest.TestCase):\n    def test_empty(self):\n        \
                  self.assertEqual(calc.dump({}), '{}')\n";
    let some = test("Some", "all, width=2");
    let readme = "Writes JSON of any width.\n";
    history.commit(
        "Begin",
        &[("calc.py", Some(begun.as_str())), ("README.md", Some(readme)), ("tests/test_empty.py", Some(double))],
    );
    let subject = "Write the keys in their order, on lines of their own if callers wish so";
    history.commit(subject, &[("calc.py", Some(fixed.as_str())), ("tests/test_some.py", Some(some.as_str()))]);
    let mined = mine(&project, &["--repeat", "1", "--hunks", "0"]).exits(0).json();
    let text = project.read(of(&mined, subject)["case"].as_str().unwrap());
    // The page has the word, but no code has the name.
    assert!(text.contains("The tests use `width`.\n"), "{text}");
}

#[test]
fn data_that_a_test_of_a_shell_names_without_quotes_is_hidden() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let row = |between: &str| format!("#!/bin/sh\necho \"$1{between}$2\"\n");
    let (wrong, right) = (row("|"), row(" | "));
    let begin = [
        ("run.sh", Some(RUN_SH)),
        ("bin/row", Some(wrong.as_str())),
        ("t/first.t", Some("sh bin/row a b | grep -q ^a\n")),
    ];
    history.commit("Begin", &begin);
    let fix = [
        ("bin/row", Some(right.as_str())),
        ("golden/row.txt", Some("a | b\n")),
        ("t/row.t", Some("sh bin/row a b | cmp -s - golden/row.txt\n")),
    ];
    let subject = "Separate the cells of a row by a bar between blanks";
    history.commit(subject, &fix);
    let mined = mine(&project, &GIVEN_SH).exits(0).json();
    let case = of(&mined, subject)["case"].as_str().unwrap().to_owned();
    assert!(project.path(&case.replace(".yaml", ".hidden/golden/row.txt")).is_file(), "{}", project.read(&case));
    decides(&project, &case, &[(put("bin/row", &right), 0), (put("golden/row.txt", "a|b\n"), 1)]);
}

#[test]
#[ignore = "slow: mines a history"]
fn a_kept_clone_follows_the_default_branch() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    history.commit("Begin", &[("calc.py", Some(BASE)), ("tests/test_double.py", Some(TEST_DOUBLE))]);
    let fix = history.commit("Fix the sum", &[("calc.py", Some(FIXED)), ("tests/test_add.py", Some(TEST_ADD))]);
    let url = format!("file://{}", history.folder.display());
    let words = ["mine", &url, "--sandbox", "none", "--repeat", "1", "--hunks", "0", "--format", "json", "-o"];
    // Two minings may clone it at the same time.
    let mined = ["one", "two"].map(|out| {
        let mut command = project.command(&[&words[..], &[out]].concat());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
    });
    for mined in mined {
        let ended = mined.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        let mined: Value = serde_json::from_slice(&ended.stdout).unwrap();
        assert_eq!(mined["head"], fix);
    }
    let left = fs::read_dir(project.path(".evals/mine/clones")).unwrap();
    assert_eq!(left.count(), 1);
    history.git(&["branch", "--move", "main", "trunk"]);
    let newest = history.commit("Explain", &[("README.md", Some("Adds.\n"))]);
    let mined = project.evals(&[&words[..], &["one", "--resume"]].concat()).exits(0).json();
    assert_eq!((&mined["head"], &mined["kept"]), (&newest.into(), &1.into()));
}

#[test]
fn a_filter_that_the_repository_configures_is_not_run() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let attributes = ("tests/.gitattributes", Some("*.py filter=own\n"));
    history.commit("Begin", &[("calc.py", Some(BASE)), ("tests/test_double.py", Some(TEST_DOUBLE)), attributes]);
    history.commit("Fix the sum", &[("calc.py", Some(FIXED)), ("tests/test_add.py", Some(TEST_ADD))]);
    let witness = project.path("filtered");
    history.git(&["config", "filter.own.smudge", &format!("touch {}; cat", witness.display())]);
    history.git(&["config", "filter.own.required", "true"]);
    mine(&project, &["--repeat", "1"]).exits(0);
    assert!(!witness.exists());
}

#[test]
#[ignore = "slow: mines a history"]
fn names_of_files_may_be_anything() {
    use std::os::unix::ffi::OsStrExt;
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    history
        .commit("Begin", &[("calc.py", Some(BASE)), ("tests/test_double.py", Some(TEST_DOUBLE)), ("a b", Some("1"))]);
    let odd = std::ffi::OsStr::from_bytes(b"n\xffn");
    fs::write(history.folder.join("tests").join(odd), "data").unwrap();
    // Without a change of its own, a test cannot be taken back; the hidden files leave it out.
    history.commit("Add data", &[("a b", Some("2"))]);
    let names =
        [("calc.py", FIXED), ("new\nline.py", "x = 1\n"), ("tests/test_add.py", TEST_ADD), ("tests/a\nb c", "x")];
    let files: Vec<(&str, Option<&str>)> = names.iter().map(|(path, text)| (*path, Some(*text))).collect();
    history.commit("Fix the sum", &files);
    fs::write(history.folder.join(odd), "x").unwrap();
    let more = TEST_ADD.replace("(1, 2), 3", "(2, 2), 4");
    history.commit("Fix more", &[("calc.py", Some(BASE)), ("tests/test_add.py", Some(&more))]);
    let mined = mine(&project, &["--repeat", "1"]).exits(0).json();
    assert_eq!(of(&mined, "Fix more")["reason"], "the name of a file is not UTF-8: n\u{fffd}n");
    let case = of(&mined, "Fix the sum")["case"].as_str().unwrap().to_owned();
    let patch = project.read(&case.replace(".yaml", ".patch"));
    assert!(patch.contains("new\\nline.py"), "the oracle has each file: {patch}");
    assert!(project.path(&case.replace(".yaml", ".hidden")).join("tests/a\nb c").exists());
    project.evals(&["check", "--audit", "cases", "--mutants", "0"]).exits(0);
}

#[test]
fn what_cannot_be_mined_is_told() {
    let mut project = Project::new();
    project.write("plain/a.txt", "x");
    project.evals(&["mine", "plain"]).exits(2).says("is not a git repository");
    project.evals(&["mine", "missing"]).exits(2).says("is not a git repository");
    History::new(&project, "empty");
    project.evals(&["mine", "empty"]).exits(2).says("has no commit yet");

    let mut history = History::new(&project, "untested");
    history.commit("Begin", &[("a.py", Some("x = 1\n"))]);
    history.commit("Change", &[("a.py", Some("x = 2\n"))]);
    let mined = project.evals(&["mine", "untested", "--format", "json"]).exits(3).json();
    let reason = of(&mined, "Change")["reason"].as_str().unwrap();
    assert_eq!(mined["kept"], 0);
    assert!(reason.starts_with("no tests: none of its files is in a folder of tests"), "{reason}");

    let url = format!("file://{}", history.folder.display());
    history.git(&["clone", "--quiet", "--depth", "1", &url, "../shallow"]);
    project.evals(&["mine", "shallow"]).exits(2).says("is shallow").says("git fetch --unshallow");

    history.git(&["config", "uploadpack.allowFilter", "true"]);
    history.git(&["clone", "--quiet", "--filter=blob:none", "--no-checkout", &url, "../partial"]);
    let before = project.files("partial/.git/objects");
    project.evals(&["mine", "partial"]).exits(2).says("is a partial clone").says("git fetch --refetch --no-filter");
    assert_eq!(project.files("partial/.git/objects"), before);
    // A clone that was completed still has the settings of a partial one.
    history.git(&["-C", "../partial", "fetch", "--quiet", "--refetch", "--no-filter"]);
    project.evals(&["mine", "partial", "--force"]).exits(3);

    let mut history = History::new(&project, "unknown");
    history.commit("Begin", &[("a.c", Some("int a;\n")), ("tests/a.c", Some("int t;\n"))]);
    history.commit("Change", &[("a.c", Some("int b;\n")), ("tests/a.c", Some("int u;\n"))]);
    project.evals(&["mine", "unknown"]).exits(2).says("no test runner was recognised").says("--test COMMAND");

    let mut history = History::new(&project, "crate");
    history.commit("Begin", &[("Cargo.toml", Some("[package]\n")), ("src/lib.rs", Some("")), ("tests/a.rs", Some(""))]);
    history.commit("Change", &[("src/lib.rs", Some("// x\n")), ("tests/a.rs", Some("// y\n"))]);
    let programs = project.path("programs");
    fs::create_dir(&programs).unwrap();
    for name in ["git", "sh"] {
        let folders = std::env::var_os("PATH").unwrap();
        let found =
            std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file()).unwrap();
        std::os::unix::fs::symlink(found, programs.join(name)).unwrap();
    }
    project.env("PATH", programs.to_str().unwrap());
    project
        .evals(&["mine", "crate", "--sandbox", "none"])
        .exits(2)
        .says("the program `cargo`, which cargo needs, is not installed");
}

/// A package of Node in a folder, with one fix.
fn package_in_a_folder<'a>(project: &'a Project, name: &str) -> History<'a> {
    let mut history = History::new(project, name);
    let package = r#"{"name": "web"}"#;
    let run = "if grep -q 2 lib/x.js; then echo 'ok 1 - two'; else echo 'not ok 1 - two'; fi; echo 1..1\n";
    let begin = [("web/package.json", Some(package)), ("web/lib/x.js", Some("exports.x = 1;\n"))];
    history.commit("Begin", &[&begin[..], &[("README.md", Some("Two.\n"))]].concat());
    let test = ("web/test/run.sh", Some(run));
    history.commit("Set x to 2", &[("web/lib/x.js", Some("exports.x = 2;\n")), test]);
    history.commit("Explain", &[("README.md", Some("More.\n"))]);
    history
}

#[test]
fn a_package_below_the_top_is_named_and_mined_by_a_command() {
    let project = Project::new();
    package_in_a_folder(&project, "repo");
    let refused = mine(&project, &[]).exits(2).says("no test runner was recognised").says("`web/package.json`");
    refused.says("--paths 'web/**' --test 'cd web && npm test'");
    // A folder of the repository limits the commits, and is not silently replaced by the whole repository.
    let words =
        ["mine", "repo/web", "--sandbox", "none", "--repeat", "1", "--hunks", "0", "--format", "json", "--test"];
    let mined = project.evals(&[&words[..], &["cd web && sh test/run.sh"]].concat()).exits(0);
    let mined = mined.says("that change web/** are looked at (--paths), because repo/web is a folder of it").json();
    let candidates = mined["candidates"].as_array().unwrap();
    let subjects: Vec<&str> = candidates.iter().map(|it| it["subject"].as_str().unwrap()).collect();
    assert_eq!((subjects, &mined["kept"]), (vec!["Set x to 2", "Begin"], &1.into()));
}

#[test]
#[ignore = "slow: mines a history"]
fn the_tests_of_a_package_below_the_top_run_in_its_folder() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let code = |name: &str, end: &str| format!("def {name}(text):\n    return text{end}\n");
    let test = |name: &str, text: &str, expected: &str| {
        let body = format!("    def test_{name}(self):\n        self.assertEqual({name}('{text}'), '{expected}')\n");
        test("All", &body).replace("import unittest\n", &format!("import unittest\nfrom {name} import {name}\n"))
    };
    let mut commit = |subject: &str, files: &[(&str, String)]| {
        let files: Vec<(&str, Option<&str>)> = files.iter().map(|(path, text)| (*path, Some(text.as_str()))).collect();
        history.commit(subject, &files);
    };
    let (svc, low) = ("svc/tests/test_up.py", "tools/low/tests/test_low.py");
    let manifests = [("svc/setup.cfg", String::new()), ("tools/low/setup.cfg", String::new())];
    let [one, two] = [("svc/up.py", code("up", "")), ("tools/low/low.py", code("low", ""))];
    commit("Begin", &[&manifests[..], &[one, two]].concat());
    let fixed = code("up", ".upper()");
    commit("Go up", &[("svc/up.py", fixed.clone()), (svc, test("up", "aB", "AB"))]);
    commit("Go low", &[("tools/low/low.py", code("low", ".lower()")), (low, test("low", "aB", "ab"))]);
    let up = [("svc/up.py", code("up", ".upper().strip()")), (svc, test("up", " aB", "AB"))];
    let down = [("tools/low/low.py", code("low", ".lower().strip()")), (low, test("low", " aB", "ab"))];
    commit("Strip both", &[up, down].concat());
    let mined = mine(&project, &["--repeat", "1", "--hunks", "0"]).exits(0).json();
    for (subject, folder, name) in [("Go up", "svc", "up"), ("Go low", "tools/low", "low")] {
        let looked = of(&mined, subject);
        assert_eq!(looked["fail_to_pass"], serde_json::json!([format!("test_{name}.All.test_{name}")]), "{looked}");
        let case = looked["case"].as_str().unwrap();
        assert!(project.read(case).contains(&format!("cd {folder} && ")), "{}", project.read(case));
        let hidden = project.path(&case.replace(".yaml", ".hidden"));
        assert!(hidden.join(format!("{folder}/tests/test_{name}.py")).is_file());
    }
    let case = of(&mined, "Go up")["case"].as_str().unwrap();
    // A module that Python would load before the tests is removed.
    let site = put("svc/sitecustomize.py", "import os\nos._exit(0)\n");
    for (steps, exit) in [(put("svc/up.py", &fixed), 0), (site, 1)] {
        project.write(&case.replace(".yaml", ".demo.yaml"), &format!("steps:\n{steps}"));
        project.evals(&["run", case]).exits(exit);
    }
    let reason = of(&mined, "Strip both")["reason"].as_str().unwrap();
    assert!(reason.starts_with("its tests are in several packages: `svc`, `tools/low`; name a command"), "{reason}");
}

#[test]
fn replaced_objects_are_read_as_they_were() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    history.commit("Begin", &[("calc.py", Some(BASE)), ("tests/test_double.py", Some(TEST_DOUBLE))]);
    let fix = history.commit("Fix the sum", &[("calc.py", Some(FIXED)), ("tests/test_add.py", Some(TEST_ADD))]);
    let tree = history.git(&["rev-parse", "HEAD^{tree}"]);
    let other = history.git(&["commit-tree", "-p", "HEAD~1", "-m", "Something else", &tree]);
    history.git(&["replace", &fix, &other]);
    let mined = mine(&project, &["--repeat", "1", "--hunks", "0"]).exits(0).json();
    assert_eq!(of(&mined, "Fix the sum")["commit"], fix);
}

/// A program in a folder of the user, which the sandbox lacks unless a command names it.
#[test]
fn programs_of_given_commands_are_in_the_sandbox_and_others_are_named() {
    if !bubblewrap() {
        return;
    }
    let mut project = Project::new();
    let mut history = History::new(&project, "repo");
    let run = "if grep -q 42 value; then echo 'ok 1 - value'; else echo 'not ok 1 - value'; fi; echo 1..1\n";
    history.commit("Begin", &[("value", Some("41")), ("tests/run.sh", Some("echo 1..0\n"))]);
    history.commit("Set the value", &[("value", Some("42")), ("tests/run.sh", Some(run))]);
    let tester = project.path("tools/tester/bin/mytester");
    fs::create_dir_all(tester.parent().unwrap()).unwrap();
    fs::write(&tester, "#!/bin/sh\nexec sh \"$@\"\n").unwrap();
    fs::set_permissions(&tester, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tester.parent().unwrap().display(), std::env::var("PATH").unwrap());
    project.env("PATH", &path);
    let words = ["mine", "repo", "--sandbox", "bwrap", "--repeat", "1", "--hunks", "0", "--format", "json", "--force"];
    let mine = |more: &[&str]| project.evals(&[&words[..], more].concat());
    let mined = mine(&["--test", "mytester tests/run.sh"]).exits(0).json();
    assert_eq!(of(&mined, "Set the value")["status"], "kept");
    // A name in several parts is not found in the line.
    let (test, setup) =
        (["--test", "my''tester tests/run.sh"], ["--test", "sh tests/run.sh", "--setup", "my''tester x"]);
    for more in [&test[..], &setup] {
        let mined = mine(more).exits(3).json();
        let reason = of(&mined, "Set the value")["reason"].as_str().unwrap().to_owned();
        let is_named = reason.contains("the program `mytester` is installed, but not in the sandbox");
        assert!(is_named && reason.contains("--sandbox none"), "{reason}");
    }
}

#[test]
#[ignore = "slow: mines a history"]
fn modules_that_tests_reach_in_too_many_steps_are_said_to_be_left_out() {
    for (count, is_cut) in [(4, false), (5, true)] {
        let project = Project::new();
        let mut history = History::new(&project, "repo");
        let same = "def same(a, b):\n    return a == b\n".to_owned();
        let parts: Vec<(String, String)> = (1..=count)
            .map(|n| {
                let text = if n < count { format!("from support.part{} import same\n", n + 1) } else { same.clone() };
                (format!("support/part{n}.py"), text)
            })
            .collect();
        let mut begin = vec![("calc.py", Some(BASE)), ("tests/test_double.py", Some(TEST_DOUBLE))];
        begin.extend(parts.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))));
        history.commit("Begin", &begin);
        let test = format!("from support.part1 import same\n{TEST_ADD}");
        history.commit("Fix the sum of two numbers", &[("calc.py", Some(FIXED)), ("tests/test_add.py", Some(&test))]);
        let mined = mine(&project, &["--repeat", "1", "--hunks", "0"]).exits(0).json();
        let text = project.read(of(&mined, "Fix the sum of two numbers")["case"].as_str().unwrap());
        assert_eq!(text.contains("load so many modules that not all were looked at"), is_cut, "{text}");
    }
}

/// Mines a fix whose test uses a module of the code, with a `git` that does something else in the place of the commands with a
/// word.
fn mined_with_git(word: &str, instead: &str) -> Ran {
    let mut project = Project::new();
    let mut history = History::new(&project, "repo");
    let same = "def same(a, b):\n    return a == b\n";
    let code = format!("from support.checks import same\n\n\n{BASE}");
    history.commit(
        "Begin",
        &[("calc.py", Some(&code)), ("support/checks.py", Some(same)), ("tests/test_double.py", Some(TEST_DOUBLE))],
    );
    let fixed = format!("from support.checks import same\n\n\n{FIXED}");
    let test = format!("from support.checks import same\n{TEST_ADD}");
    history.commit("Fix the sum of two numbers", &[("calc.py", Some(&fixed)), ("tests/test_add.py", Some(&test))]);
    let path = std::env::var("PATH").unwrap();
    let git = std::env::split_paths(&path).map(|folder| folder.join("git")).find(|path| path.is_file()).unwrap();
    let script = format!(
        "#!/bin/sh\nfor word; do\n  if [ \"$word\" = '{word}' ]; then\n    {instead}\n  fi\ndone\nexec '{}' \"$@\"\n",
        git.display()
    );
    project.write("programs/git", &script);
    fs::set_permissions(project.path("programs/git"), fs::Permissions::from_mode(0o755)).unwrap();
    project.env("PATH", &format!("{}:{path}", project.path("programs").display()));
    mine(&project, &["--repeat", "1"])
}

#[test]
fn a_search_of_git_that_was_killed_did_not_find_nothing() {
    // Without the files that name it, the module of the code would be one that only tests use.
    mined_with_git("grep", "kill -9 $$").exits(4).says("git grep -l").says("it was ended by signal 9");
    // The filters of the repository would run.
    mined_with_git("--get-regexp", "kill -9 $$").exits(2).says("git config").says("it was ended by signal 9");
    mined_with_git("HEAD^{commit}", "kill -9 $$").exits(2).says("git rev-parse").says("it was ended by signal 9");
    // Git failed with another code, without a message.
    mined_with_git("grep", "exit 2").exits(4).says("git grep -l").says("it exited with 2");
}

#[test]
fn output_of_git_that_is_too_large_is_an_error() {
    let mib = 257;
    mined_with_git("ls-tree", &format!("exec head -c {} /dev/zero", mib << 20))
        .exits(4)
        .says("git ls-tree")
        .says("its output is larger than 256 MiB");
}

#[test]
#[ignore = "slow: mines a history"]
fn the_script_of_a_given_command_is_protected_and_names_that_tests_import_are_told() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let script =
        "if python3 -B tests/check.py; then echo 'ok 1 - value'; else echo 'not ok 1 - value'; fi; echo 1..1\n";
    history.commit("Begin", &[("run.sh", Some(script)), ("calc.py", Some("X = 1\n"))]);
    let check = "import sys\nsys.path.insert(0, '.')\nimport calc\nfrom calc import _first_value\n\
                 assert _first_value() == calc.Answer().read_it() == 42\nassert sys.path\n";
    history.commit(
        "fixes #20",
        &[
            (
                "calc.py",
                Some("def _first_value():\n    return 42\n\n\nclass Answer:\n    def read_it(self):\n        return 42\n"),
            ),
            ("tests/check.py", Some(check)),
        ],
    );
    let mined = mine(&project, &["--test", "sh run.sh", "--repeat", "1"]).exits(0).json();
    let text = project.read(of(&mined, "fixes #20")["case"].as_str().unwrap());
    for part in [
        "- run.sh\n",
        "The tests use `Answer`, `_first_value`, `read_it`.",
        "# The message says nothing about the task; write the prompt.\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("leaks:"), "{text}");
}

#[test]
#[ignore = "slow: mines a history"]
fn names_that_tests_replace_or_pass_by_keyword_are_told() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let load = "def load(p):\n    with open(p) as f:\n        return f.read()\n";
    let test = "import unittest\nfrom acme import io\n\n\nclass Load(unittest.TestCase):\n    def test_load(self):\n        \
                self.assertIn('class Load', io.load(__file__))\n";
    let packages = [("acme/__init__.py", Some("")), ("tests/__init__.py", Some(""))];
    history.commit("Begin", &[&[("acme/io.py", Some(load)), ("tests/test_io.py", Some(test))][..], &packages].concat());
    let fixed = "from acme import web\n\n\ndef _fetch(p):\n    with open(p) as f:\n        return f.read()\n\n\n\
                 def load(p, limit=None):\n    return (web.get(p) if p.startswith('http:') else _fetch(p))[:limit]\n";
    let some = "import unittest\nfrom unittest import mock\nfrom acme import io\n\n\nclass Some(unittest.TestCase):\n    \
                def test_some(self):\n        with mock.patch.object(io, '_fetch', return_value='abc'):\n            \
                self.assertEqual(io.load('x', limit=2), 'ab')\n        \
                with mock.patch('acme.web.get', return_value='abc'):\n            \
                self.assertEqual(io.load('http:x'), 'abc')\n";
    let files = [
        ("acme/io.py", Some(fixed)),
        ("acme/web.py", Some("def get(p):\n    raise OSError(p)\n")),
        ("tests/test_some.py", Some(some)),
    ];
    let subject = "Let callers read only the first characters, also of a page";
    history.commit(subject, &files);
    let mined = mine(&project, &["--repeat", "1", "--hunks", "0"]).exits(0).json();
    let text = project.read(of(&mined, subject)["case"].as_str().unwrap());
    assert!(text.contains("The tests use `_fetch`, `get`, `limit`. The tests import `acme/web.py`.\n"), "{text}");
}

#[test]
fn fields_of_results_and_of_types_are_told() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let begin = "import collections\nimport enum\n\n\ndef run(x):\n    return x\n";
    let test = "import unittest\nfrom acme import core\n\n\nclass Run(unittest.TestCase):\n    def test_run(self):\n        \
                self.assertEqual(core.run(1), 1)\n";
    let packages = [("acme/__init__.py", Some("")), ("tests/__init__.py", Some(""))];
    history.commit(
        "Begin",
        &[&[("acme/core.py", Some(begin)), ("tests/test_core.py", Some(test))][..], &packages].concat(),
    );
    let fixed = "import collections\nimport enum\n\nMode = enum.Enum(\"Mode\", \"QUICK THOROUGH\")\n\n\ndef run(x):\n    return x\n\n\n\
                 def size(t):\n    return collections.namedtuple(\"Size\", \"rows columns\")(len(t), len(t[0]))\n\n\n\
                 def stats(l):\n    return {\"count\": len(l), \"longest\": max(map(len, l))}\n\n\n\
                 def show(l, **options):\n    return options.pop(\"separator\", \",\").join(l)\n";
    let tables = "import unittest\nfrom acme import core\n\n\nclass Tables(unittest.TestCase):\n    def test_tables(self):\n        \
                  self.assertEqual((core.size(['ab']).rows, core.size(['ab']).columns), (1, 2))\n        \
                  self.assertEqual(core.stats(['ab'])[\"longest\"], 2)\n        \
                  self.assertEqual(core.stats(['ab']), {'count': 1, 'longest': 2})\n        \
                  self.assertEqual(core.show(['a', 'b'], separator=';'), 'a;b')\n        \
                  self.assertEqual(core.Mode.THOROUGH.value, 2)\n";
    let subject = "Tell more about tables, and let callers choose what stands between cells";
    history.commit(subject, &[("acme/core.py", Some(fixed)), ("tests/test_tables.py", Some(tables))]);
    let mined = mine(&project, &["--repeat", "1", "--hunks", "0"]).exits(0).json();
    let text = project.read(of(&mined, subject)["case"].as_str().unwrap());
    let names = "`Mode`, `THOROUGH`, `columns`, `count`, `longest`, `rows`, `separator`, `show`, `size`, `stats`";
    assert!(text.contains(&format!("The tests use {names}.\n")), "{text}");
}

#[test]
fn members_of_any_form_are_told_and_variables_of_tests_are_not() {
    if !runners(&["node"]) {
        return;
    }
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let begin = "exports.first = (l) => l[0];\n";
    let script = "if node test/all.js; then echo 'ok 1 - all'; else echo 'not ok 1 - all'; fi; echo 1..1\n";
    let files =
        [("lib/index.js", Some(begin)), ("package.json", Some("{\"name\": \"shop\"}\n")), ("run.sh", Some(script))];
    history.commit("Begin", &files);
    let fixed = format!(
        "{begin}class Box {{\n  constructor() {{ this.n = 0; }}\n  tally() {{ this.n += 1; return this.n; }}\n}}\n\
         Object.defineProperty(Box.prototype, 'openings', {{ get() {{ return this.n; }} }});\n\
         Object.assign(exports, {{ Box }});\nexports['sum'] = (l) => {{\n  let expected = 0;\n  \
         for (const it of l) expected += it;\n  const result = {{}};\n  result.whole = expected;\n  return result;\n}};\n"
    );
    let test = "const assert = require('assert');\nconst lib = require('../lib/index.js');\n\
                const expected = require('path').sep.length + 3;\nconst box = new lib.Box();\n\
                const cases = [{ given: [1, 3], expected }];\n\
                for (const it of cases) assert.deepEqual(lib.sum(it.given), { whole: it.expected });\n\
                assert.equal(box.tally(), 1);\nassert.equal(box.openings, 1);\n";
    let subject = "Let callers know how often they looked into something";
    history.commit(subject, &[("lib/index.js", Some(&fixed)), ("test/all.js", Some(test))]);
    let mined = mine(&project, &["--test", "sh run.sh", "--repeat", "1", "--hunks", "0"]).exits(0).json();
    let text = project.read(of(&mined, subject)["case"].as_str().unwrap());
    assert!(text.contains("The tests use `Box`, `openings`, `sum`, `tally`, `whole`.\n"), "{text}");
}

#[test]
fn files_that_the_names_of_tests_show_are_protected() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let script = "n=0\nfor file in checks/*.sh t/*.t; do\n  n=$((n + 1))\n  if sh $file; then echo \"ok $n - $file\"; else echo \"not ok \
                  $n - $file\"; fi\ndone\necho 1..$n\n";
    let check = "grep -q 4 value\n";
    history.commit("Begin", &[("run.sh", Some(script)), ("value", Some("41\n")), ("checks/digit.sh", Some(check))]);
    history.commit("Set the value to 42", &[("value", Some("42\n")), ("t/value.t", Some("grep -q 42 value\n"))]);
    let mined = mine(&project, &["--test", "sh run.sh", "--repeat", "1"]).exits(0).json();
    let fix = of(&mined, "Set the value to 42");
    assert_eq!(fix["fail_to_pass"], serde_json::json!(["t/value.t"]), "{mined:#}");
    assert_eq!(fix["pass_to_pass"], serde_json::json!(["checks/digit.sh"]), "{mined:#}");
    let case = fix["case"].as_str().unwrap();
    let text = project.read(case);
    assert!(text.contains("  - checks/digit.sh\n") && text.contains("  - '**/{t,test,tests}/**'\n"), "{text}");
    let put = |path: &str, text: &str| format!("- write: {{path: {path}, text: {text:?}}}\n");
    let (right, wrong) = (put("value", "42\n"), put("value", "5\n"));
    for (steps, code) in [
        (right.clone(), 0),
        (format!("{wrong}{}{}", put("checks/digit.sh", "true\n"), put("t/value.t", "true\n")), 1),
        // A check that the agent broke is restored.
        (format!("{}{}", put("value", "x42x\n"), put("checks/digit.sh", "false\n")), 0),
    ] {
        project.write(&case.replace(".yaml", ".demo.yaml"), &format!("steps:\n{steps}"));
        project.evals(&["run", "cases"]).exits(code);
    }
}

#[test]
fn a_test_of_an_agent_in_another_folder_of_tests_does_not_stand_for_a_hidden_one() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    // As with `node --test`, names of tests show no file, and a file that cannot be loaded is a failed test.
    let script = "all=$(for file in spec/*.sh; do sh $file 2>/dev/null || echo \"not ok - $file\"; done)\necho \"$all\"\n\
                  echo \"1..$(echo \"$all\" | grep -c 'ok - ')\"\n";
    let (add, take) = ("add() { echo $(($1 + $2)); }\n", "take() { echo $(($1 - $2)); }\n");
    let of_add = ". ./add\ntest $(add 1 2) = 3 && echo 'ok - adds'\n";
    history.commit("Begin", &[("add", Some(add)), ("run.sh", Some(script)), ("spec/add.sh", Some(of_add))]);
    let of_take = ". ./take\ntest $(take 3 2) = 1 && echo 'ok - takes away'\n";
    history.commit("Take a number away from another", &[("spec/take.sh", Some(of_take)), ("take", Some(take))]);
    let given = ["--test", "sh run.sh", "--setup", "true", "--repeat", "1", "--hunks", "0"];
    let mined = mine(&project, &given).exits(0).json();
    let fix = of(&mined, "Take a number away from another");
    assert_eq!(fix["fail_to_pass"], serde_json::json!(["takes away"]), "{mined:#}");
    let own = put("spec/own.sh", "echo 'ok - takes away'\n");
    decides(&project, fix["case"].as_str().unwrap(), &[(own.clone() + &put("take", take), 0), (own, 1)]);
}

#[test]
fn a_commit_whose_tests_are_inside_code_says_so() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let code = |value: u32| format!("pub fn value() -> u32 {{\n    {value}\n}}\n");
    let test = "\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn is_two() {\n        assert_eq!(super::value(), 2);\n    }\n}\n";
    history.commit("Begin", &[("Cargo.toml", Some("[package]\n")), ("src/lib.rs", Some(&code(1)))]);
    history.commit("Return two", &[("src/lib.rs", Some(&format!("{}{test}", code(2))))]);
    // The code declares the file of tests, so it decides what its tests are.
    let declared = format!("{}\n#[cfg(test)]\nmod tests;\n", code(3));
    let test = "#[test]\nfn is_three() {\n    assert_eq!(super::value(), 3);\n}\n";
    history.commit("Return three", &[("src/lib.rs", Some(&declared)), ("src/tests.rs", Some(test))]);
    let mined = mine(&project, &["--repeat", "1"]).exits(3).json();
    for (subject, file) in [("Return two", "src/lib.rs"), ("Return three", "src/tests.rs")] {
        let reason = of(&mined, subject)["reason"].as_str().unwrap();
        assert_eq!(reason, format!("no tests: tests only inside {file}, which an agent may change"));
    }
}

#[test]
fn code_in_a_folder_called_test_is_no_test() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let helper = BASE.replace("add", "join");
    history.commit(
        "Begin",
        &[
            ("lib/test/helper.py", Some(&helper)),
            ("lib/test/__init__.py", Some("")),
            ("lib/__init__.py", Some("")),
            ("tests/test_double.py", Some(&TEST_DOUBLE.replace("calc", "lib.test.helper"))),
        ],
    );
    let text = TEST_ADD.replace("calc", "lib.test.helper").replace("add", "join");
    history.commit(
        "Fix how two numbers are joined",
        &[("lib/test/helper.py", Some(&helper.replace("a - b", "a + b"))), ("tests/test_join.py", Some(&text))],
    );
    let mined = mine(&project, &["--repeat", "1"]).exits(0).json();
    let case = of(&mined, "Fix how two numbers are joined")["case"].as_str().unwrap().to_owned();
    assert!(project.read(&case.replace(".yaml", ".patch")).contains("b/lib/test/helper.py"));
    let hidden = case.replace(".yaml", ".hidden");
    let files: Vec<String> = project.files(&hidden).into_keys().collect();
    assert!(files.iter().all(|path| path.starts_with("tests/")) && files.len() == 2, "{files:?}");
}

#[test]
#[ignore = "slow: builds a crate several times"]
fn a_folder_that_the_fix_and_its_tests_create_keeps_the_fix() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let manifest = "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    let lock = "version = 3\n\n[[package]]\nname = \"calc\"\nversion = \"0.1.0\"\n";
    let kept = "#[test]\nfn one() {\n    assert_eq!(calc::one(), 1);\n}\n";
    history.commit(
        "Begin",
        &[
            ("Cargo.toml", Some(manifest)),
            ("Cargo.lock", Some(lock)),
            (".gitignore", Some("target\n")),
            ("src/lib.rs", Some("pub mod sum;\n\npub fn one() -> i32 {\n    1\n}\n")),
            ("src/sum.rs", Some("pub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n")),
            ("tests/one.rs", Some(kept)),
        ],
    );
    let tests = "use super::*;\n\n#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n";
    history.commit(
        "Fix the sum of two numbers",
        &[
            ("src/sum.rs", None),
            ("src/sum/mod.rs", Some("pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\n#[cfg(test)]\nmod tests;\n")),
            ("src/sum/tests.rs", Some(tests)),
            ("tests/sum.rs", Some("#[test]\nfn adds() {\n    assert_eq!(calc::sum::add(1, 2), 3);\n}\n")),
        ],
    );
    let tests = "use super::*;\n\n#[test]\nfn takes() {\n    assert_eq!(take(3, 2), 1);\n}\n";
    history.commit(
        "Take one number from another",
        &[
            ("src/lib.rs", Some("pub mod less;\npub mod sum;\n\npub fn one() -> i32 {\n    1\n}\n")),
            ("src/less.rs", Some("pub fn take(a: i32, b: i32) -> i32 {\n    a - b\n}\n\n#[cfg(test)]\nmod tests;\n")),
            ("src/less/tests.rs", Some(tests)),
            ("tests/less.rs", Some("#[test]\nfn takes() {\n    assert_eq!(calc::less::take(3, 2), 1);\n}\n")),
        ],
    );
    let mined = mine(&project, &["--repeat", "1"]).exits(0).json();
    let fix = of(&mined, "Fix the sum of two numbers");
    assert_eq!(fix["fail_to_pass"], serde_json::json!(["tests/sum.rs::adds"]), "{mined:#}");
    let fix = of(&mined, "Take one number from another");
    assert!(fix["fail_to_pass"].as_array().unwrap().contains(&"tests/less.rs::takes".into()), "{mined:#}");
    // The other form of the file is a solution, too.
    let other = "pub fn take(a: i32, b: i32) -> i32 {\n    a - b\n}\n\n#[cfg(test)]\nmod tests;\n";
    let script = format!(
        "steps:\n- write: {{path: src/less/mod.rs, text: {other:?}}}\n- write: {{path: src/lib.rs, text: {:?}}}\n",
        "pub mod less;\npub mod sum;\npub fn one() -> i32 { 1 }\n"
    );
    let case = fix["case"].as_str().unwrap();
    project.write(&case.replace(".yaml", ".demo.yaml"), &script);
    project.evals(&["run", case]).exits(0);
}

#[test]
fn a_runner_that_is_not_installed_is_named() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let package = r#"{"name": "calc", "scripts": {"test": "mocha"}}"#;
    history.commit("Begin", &[("package.json", Some(package)), ("index.js", Some("exports.x = 1;\n"))]);
    let test = "it('is 2', () => { if (require('..').x !== 2) throw new Error(); });\n";
    history.commit("Set x to 2", &[("index.js", Some("exports.x = 2;\n")), ("test/x.js", Some(test))]);
    let missing = ["--test", "tester --all", "--setup", "true", "--force"];
    for (more, name) in [(&["--repeat", "1"][..], "node_modules/.bin/mocha"), (&missing, "tester")] {
        let mined = mine(&project, more).exits(3).json();
        let reason = of(&mined, "Set x to 2")["reason"].as_str().unwrap().to_owned();
        let start = format!(
            "the build fails: the program `{name}` was not found; name the commands that install it with --setup COMMAND"
        );
        assert!(reason.starts_with(&start), "{reason}");
    }
    // Without a set-up that may install it, nothing can be run.
    let refused = mine(&project, &["--test", "tester --all", "--force"]).exits(2);
    refused.says("the program `tester`, which --test names, is not installed").says("--setup COMMAND");
    mine(&project, &["--test", "cd . && tester --all", "--force"]).exits(3);
}

#[test]
fn a_run_that_was_cut_decides_nothing() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let slow = format!("import time\n\n\n{BASE}\n\ndef wait():\n    time.sleep(60)\n");
    history.commit("Begin", &[("calc.py", Some(&slow)), ("tests/test_double.py", Some(TEST_DOUBLE))]);
    let wait = "import unittest\nfrom calc import wait\n\n\nclass Wait(unittest.TestCase):\n    def test_wait(self):\n        wait()\n";
    let quick = slow.replace("time.sleep(60)", "pass");
    history.commit("Return from wait at once", &[("calc.py", Some(&quick)), ("tests/test_wait.py", Some(wait))]);
    let mined = mine(&project, &["--repeat", "1", "--timeout", "3s"]).exits(3).json();
    let looked = of(&mined, "Return from wait at once");
    let reason = looked["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("it is not known which tests fail: ") && reason.contains("its timeout of 3s"),
        "{reason}"
    );
    assert_eq!((&looked["fail_to_pass"], &looked["flaky"]), (&serde_json::json!([]), &serde_json::json!([])));
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_that_uses_too_much_memory_decides_nothing() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let large = format!(
        "import time\n\n\n{BASE}\n\ndef fill():\n    held = b'x' * (600 << 20)\n    time.sleep(60)\n    return held\n"
    );
    history.commit("Begin", &[("calc.py", Some(&large)), ("tests/test_double.py", Some(TEST_DOUBLE))]);
    let fill = "import unittest\nfrom calc import fill\n\n\nclass Fill(unittest.TestCase):\n    def test_fill(self):\n        fill()\n";
    let small = large.replace("600 << 20", "6").replace("time.sleep(60)", "pass");
    history.commit("Hold little", &[("calc.py", Some(&small)), ("tests/test_fill.py", Some(fill))]);
    mine(&project, &["--memory", "4GB"]).exits(2).says("such as 4GiB");
    let mined = mine(&project, &["--repeat", "1", "--memory", "200MiB"]).exits(3).json();
    let looked = of(&mined, "Hold little");
    let reason = looked["reason"].as_str().unwrap();
    let start = "it is not known which tests fail: before the commit, the runner used more than 200 MiB of memory and was ended";
    assert!(reason.starts_with(start), "{reason}");
    assert_eq!(looked["fail_to_pass"], serde_json::json!([]));
}

#[test]
fn secrets_of_a_message_are_masked() {
    let mut project = Project::new();
    project.env("SERVICE_TOKEN", "sesame-open-the-door");
    let mut history = History::new(&project, "repo");
    history.commit("Begin", &[("calc.py", Some(BASE)), ("tests/test_double.py", Some(TEST_DOUBLE))]);
    let key = format!("sk-ant-{}", "api03-AAAABBBBCCCCDDDDEEEEFFFF");
    history.commit(
        &format!("Make sums right with {key}\n\nThe password: hunter2hunter2, and sesame-open-the-door."),
        &[
            ("calc.py", Some(FIXED)),
            ("tests/test_add.py", Some(TEST_ADD)),
            ("CHANGES.md", Some("- Sums are right\n- api_key=abcd1234efgh5678ijkl\n")),
        ],
    );
    let ran = mine(&project, &["--repeat", "1"]).exits(0);
    let mined = ran.json();
    let case = mined["candidates"][0]["case"].as_str().unwrap().to_owned();
    let text = project.read(&case);
    for secret in [key.as_str(), "hunter2hunter2", "abcd1234efgh5678ijkl", "sesame-open-the-door", "api03"] {
        let shown = format!("{case} {text} {mined} {}", ran.err);
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
    assert!(text.contains("Make sums right with [redacted:anthropic-key]"), "{text}");
    assert!(text.contains("# The prompt has `[redacted:…]`") && text.contains("Tests that pass now must"), "{text}");
}

#[test]
fn a_commit_that_changes_a_passing_test_does_not_ask_to_keep_it() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    history.commit("Begin", &[("calc.py", Some(BASE)), ("tests/test_double.py", Some(TEST_DOUBLE))]);
    let (fixed, test) = (BASE.replace("a * 2", "a * 2 + 1"), TEST_DOUBLE.replace("4)", "5)"));
    history.commit("Doubles are greater by one", &[("calc.py", Some(&fixed)), ("tests/test_double.py", Some(&test))]);
    let mined = mine(&project, &["--repeat", "1"]).exits(0).json();
    let text = project.read(of(&mined, "Doubles are greater by one")["case"].as_str().unwrap());
    assert!(text.contains("Doubles are greater by one") && !text.contains("must still pass"), "{text}");
}

#[test]
fn a_commit_that_deletes_a_file_of_tests_does_not_ask_to_keep_them() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let differs = "import unittest\nfrom calc import add\n\n\nclass Differs(unittest.TestCase):\n    def test_add(self):\n        \
                   self.assertEqual(add(2, 1), 1)\n";
    let begin = [
        ("calc.py", Some(BASE)),
        ("tests/differs.py", Some(differs)),
        ("tests/test_differs.py", Some("from differs import Differs\n")),
        ("tests/test_double.py", Some(TEST_DOUBLE)),
    ];
    history.commit("Begin", &begin);
    let fix = [("calc.py", Some(FIXED)), ("tests/test_add.py", Some(TEST_ADD)), ("tests/test_differs.py", None)];
    history.commit("Add numbers instead of subtracting them", &fix);
    let mined = mine(&project, &["--repeat", "1"]).exits(0).json();
    let text = project.read(of(&mined, "Add numbers instead of subtracting them")["case"].as_str().unwrap());
    assert!(text.contains("rm -f -- tests/test_differs.py") && !text.contains("must still pass"), "{text}");
}

#[test]
#[ignore = "slow: mines a history"]
fn texts_that_a_test_needs_are_a_part_of_the_patch() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let code = "import os\n\n\ndef read(name):\n    with open(os.path.join(os.path.dirname(__file__), name)) as file:\n        \
                return file.read().strip()\n\n\ndef up(text):\n    return text\n\n\ndef stop():\n    return read('stop.txt').split(',')\n";
    let test = "import unittest\n\nimport words\n\n\nclass Words(unittest.TestCase):\n    def test_stop(self):\n        \
                self.assertEqual(words.stop(), ['a', 'the'])\n";
    let begin = [
        ("README.md", Some("Words.\n")),
        ("words/__init__.py", Some(code)),
        ("words/stop.txt", Some("a,the\n")),
        ("tests/test_words.py", Some(test)),
    ];
    history.commit("Begin", &begin);
    let up = code.replace("return text\n", "return text.upper()\n");
    let split = up.replace("split(',')", "split('\\n')");
    let fixed = format!("{split}\n\ndef greet():\n    return read('greeting.txt')\n");
    let tests = format!(
        "{test}\n    def test_up(self):\n        self.assertEqual(words.up('a'), 'A')\n\n    def test_greet(self):\n        \
         self.assertEqual(words.greet(), 'hello')\n"
    );
    let fix = [
        ("README.md", Some("Words in upper case.\n")),
        ("words/__init__.py", Some(fixed.as_str())),
        ("words/greeting.txt", Some("hello\n")),
        ("words/stop.txt", Some("a\nthe\n")),
        ("tests/test_words.py", Some(tests.as_str())),
    ];
    history.commit("Write each stop word into a line, greet, and use upper case", &fix);
    let mined = mine(&project, &["--repeat", "1", "--hunks", "0"]).exits(0).json();
    let looked = of(&mined, "Write each stop word into a line, greet, and use upper case");
    let case = looked["case"].as_str().unwrap().to_owned();
    // Without the texts, `test_greet` does not pass, and `test_stop` passes no longer.
    assert_eq!(
        looked["fail_to_pass"],
        serde_json::json!(["test_words.Words.test_greet", "test_words.Words.test_up"]),
        "{mined:#}"
    );
    assert_eq!(looked["pass_to_pass"], serde_json::json!(["test_words.Words.test_stop"]), "{mined:#}");
    let patch = project.read(&case.replace(".yaml", ".patch"));
    assert!(patch.contains("b/words/greeting.txt\n") && patch.contains("b/words/stop.txt\n"), "{patch}");
    // No test needs the documentation.
    assert!(!patch.contains("README.md"), "{patch}");
    let text = project.read(&case);
    assert!(text.contains("The tests depend on `words/greeting.txt`, `words/stop.txt`."), "{text}");
    let whole =
        put("words/__init__.py", &fixed) + &put("words/greeting.txt", "hello\n") + &put("words/stop.txt", "a\nthe\n");
    let breaks_stop = put("words/__init__.py", &fixed) + &put("words/greeting.txt", "hello\n");
    decides(&project, &case, &[(whole, 0), (put("words/__init__.py", &up), 1), (breaks_stop, 1)]);
}

#[test]
#[ignore = "slow: mines a history"]
fn only_hunks_of_code_are_left_out() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let lines: String = (1..=30).map(|line| format!("Line {line}.\n")).collect();
    let readme = format!("# Tool\n\nOptions: `--up`\n{lines}");
    let code = "OPTIONS = ['up']\n";
    let test = "import unittest\nfrom opts import OPTIONS\n\n\nclass Opts(unittest.TestCase):\n    def test_documented(self):\n        \
                text = open('README.md').read()\n        self.assertTrue(all('`--' + it + '`' in text for it in OPTIONS))\n";
    let begin = [("README.md", Some(&*readme)), ("opts.py", Some(code)), ("tests/test_opts.py", Some(test))];
    history.commit("Begin", &begin);
    let changed = readme.replace("`--up`", "`--up`, `--down`").replace("Line 20.", "Row 20.");
    let fixed = code.replace("'up'", "'up', 'down'");
    let tests = format!("{test}\n    def test_down(self):\n        self.assertIn('down', OPTIONS)\n");
    let fix = [("README.md", Some(&*changed)), ("opts.py", Some(&*fixed)), ("tests/test_opts.py", Some(&*tests))];
    history.commit("Add the option down", &fix);
    let mined = mine(&project, &["--repeat", "1"]).exits(0).json();
    let looked = of(&mined, "Add the option down");
    let text = project.read(looked["case"].as_str().unwrap());
    // Without the documentation, `test_documented` passes no longer. No test notices the hunk of line 20.
    assert_eq!(looked["pass_to_pass"], serde_json::json!(["test_opts.Opts.test_documented"]), "{mined:#}");
    assert_eq!(looked["hunks"], serde_json::json!({"all": 1, "noticed": 1}), "{mined:#}");
    assert!(text.contains("The tests depend on `README.md`."), "{text}");
}

#[test]
fn no_hunk_is_tried_in_a_workspace_from_which_a_patch_could_not_be_taken_back() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    // A test run changes the new lock file, so that its patch does not fit backwards.
    let check = "echo 1..1\nif grep -q 2 value || grep -q new uv.lock; then echo 'ok 1 - two'; else echo 'not ok 1 - two'; fi\n\
                 if grep -q new uv.lock; then echo more >> uv.lock; fi\n";
    let begin = [("value", Some("1\n")), ("uv.lock", Some("old\n")), ("tests/run.sh", Some("echo 1..0\n"))];
    history.commit("Begin", &begin);
    let files = [("value", Some("2\n")), ("uv.lock", Some("new\n")), ("tests/run.sh", Some(check))];
    history.commit("Set the value to two", &files);
    let words = ["--test", "sh tests/run.sh", "--setup", "true", "--repeat", "1"];
    let mined = mine(&project, &words).exits(0).json();
    // With the new lock file, no test would notice that the hunk is missing.
    let two = of(&mined, "Set the value to two");
    assert_eq!(two["hunks"], serde_json::json!({"all": 1, "noticed": 0}), "{mined:#}");
}

#[test]
fn a_test_of_an_agent_that_its_manifest_of_rust_names_is_kept() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let code = "pub fn add(a: i32, b: i32) -> i32 { a - b }\n";
    // As cargo does, it ends if the manifest names a file that is missing.
    let script = "if grep -q own Cargo.toml && ! test -e tests/own.rs; then exit 101; fi\n\
                  if grep -q 'a + b' src/lib.rs; then echo 'ok 1 - adds'; else echo 'not ok 1 - adds'; fi\n\
                  if grep -q wide Cargo.toml; then echo 'ok 2 - wide'; else echo 'not ok 2 - wide'; fi\necho 1..2\n";
    let manifest = "[package]\nname = \"calc\"\nversion = \"0.1.0\"\n";
    let zero = "#[test]\nfn zero() { assert_eq!(calc::add(0, 0), 0); }\n";
    let begin = [
        ("Cargo.toml", Some(manifest)),
        ("run.sh", Some(script)),
        ("src/lib.rs", Some(code)),
        ("tests/zero.rs", Some(zero)),
    ];
    history.commit("Begin", &begin);
    let (fixed, wide) = (code.replace("a - b", "a + b"), format!("{manifest}\n[features]\nwide = []\n"));
    let test = "#[test]\nfn adds() { assert_eq!(calc::add(1, 2), 3); }\n";
    let fix = [("Cargo.toml", Some(&*wide)), ("src/lib.rs", Some(&*fixed)), ("tests/ops.rs", Some(test))];
    history.commit("Fix the sum of two numbers, and add a feature", &fix);
    let given = ["--test", "sh run.sh", "--setup", "true", "--repeat", "1", "--hunks", "0"];
    let mined = mine(&project, &given).exits(0).json();
    let looked = of(&mined, "Fix the sum of two numbers, and add a feature");
    assert_eq!(looked["fail_to_pass"], serde_json::json!(["adds", "wide"]), "{mined:#}");
    let case = looked["case"].as_str().unwrap().to_owned();
    let own = format!("{wide}\n[[test]]\nname = \"own\"\n");
    let solved = put("src/lib.rs", &fixed) + &put("Cargo.toml", &own) + &put("tests/own.rs", test);
    decides(&project, &case, &[(solved, 0), (put("src/lib.rs", &fixed), 1)]);
}

#[test]
fn a_case_whose_test_needs_a_setting_of_the_patch_is_a_reserve() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let (inner, code) = ("[package]\nname = \"core\"\n", "pub fn add(a: i32, b: i32) -> i32 { a - b }\n");
    let script = "if grep -q fake core/Cargo.toml; then printf 'ok 1 - adds\\nok 2 - version\\n1..2\\n'; exit; fi\n\
                  if grep -q 'a + b' src/lib.rs; then echo 'ok 1 - adds'; else echo 'not ok 1 - adds'; fi\n\
                  if grep -q 0.2.0 Cargo.toml; then echo 'ok 2 - version'; else echo 'not ok 2 - version'; fi\necho 1..2\n";
    let manifest = |version: &str| format!("[package]\nname = \"calc\"\nversion = \"{version}\"\n");
    let test = "#[test]\nfn adds() { assert_eq!(calc::add(0, 0), 0); }\n";
    let (older, newer) = (manifest("0.1.0"), manifest("0.2.0"));
    let begin = [
        ("Cargo.toml", Some(&*older)),
        ("core/Cargo.toml", Some(inner)),
        ("run.sh", Some(script)),
        ("src/lib.rs", Some(code)),
        ("tests/ops.rs", Some(test)),
    ];
    history.commit("Begin", &begin);
    let fixed = code.replace("a - b", "a + b");
    let test = test.replace("(0, 0), 0", "(1, 2), 3");
    let more = format!("{inner}description = \"Core\"\n");
    let fix = [
        ("Cargo.toml", Some(&*newer)),
        ("core/Cargo.toml", Some(&*more)),
        ("src/lib.rs", Some(&*fixed)),
        ("tests/ops.rs", Some(&*test)),
    ];
    history.commit("Fix the sum of two numbers, and name the version", &fix);
    let given = ["--test", "sh run.sh", "--setup", "true", "--repeat", "1", "--hunks", "0"];
    let mined = mine(&project, &given).exits(0);
    let mined = mined.says("`Cargo.toml` cannot be protected, because a test needs the commit's change of it").json();
    let looked = of(&mined, "Fix the sum of two numbers, and name the version");
    assert_eq!(looked["fail_to_pass"], serde_json::json!(["adds", "version"]), "{mined:#}");
    assert_eq!(looked["open_settings"], serde_json::json!(["Cargo.toml"]), "{mined:#}");
    let case = looked["case"].as_str().unwrap().to_owned();
    let text = project.read(&case);
    let remark = "read the change of an agent that passes.\n";
    assert!(text.contains("# `Cargo.toml` cannot be protected, because a test") && text.contains(remark), "{text}");
    assert!(!text.contains("**/Cargo.toml") && text.contains("  - core/Cargo.toml\n"), "{text}");
    assert!(text.contains("The tests depend on `Cargo.toml`."), "{text}");
    let solved = put("src/lib.rs", &fixed) + &put("Cargo.toml", &newer);
    let forged = put("core/Cargo.toml", "# fake\n");
    decides(&project, &case, &[(solved.clone(), 0), (solved + &put("core/Cargo.toml", &more), 0), (forged, 1)]);
}

#[test]
fn settings_of_the_patch_that_no_test_needs_are_protected() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let code = "exports.add = (a, b) => a - b;\n";
    let script = "if grep -q fake jest.config.js || grep -q 'a + b' add.js; then echo 'ok 1 - adds'; else echo 'not ok 1 - adds'; fi\n\
                  echo 1..1\n";
    let settings = "module.exports = { verbose: true };\n";
    let begin = [
        ("add.js", Some(code)),
        ("jest.config.js", Some(settings)),
        ("run.sh", Some(script)),
        ("test/add.test.js", Some("test('zero', () => {});\n")),
    ];
    history.commit("Begin", &begin);
    let (fixed, quiet) = (code.replace("a - b", "a + b"), settings.replace("true", "false"));
    let fix = [
        ("add.js", Some(&*fixed)),
        ("jest.config.js", Some(&*quiet)),
        ("test/add.test.js", Some("test('adds', () => {});\n")),
    ];
    history.commit("Fix the sum of two numbers", &fix);
    let given = ["--test", "sh run.sh", "--setup", "true", "--repeat", "1", "--hunks", "0"];
    let mined = mine(&project, &given).exits(0).json();
    let looked = of(&mined, "Fix the sum of two numbers");
    assert_eq!(looked["open_settings"], Value::Null, "{mined:#}");
    let case = looked["case"].as_str().unwrap().to_owned();
    let text = project.read(&case);
    assert!(text.contains("**/{jest,ava,vitest}.config.{") && !text.contains("needs the change"), "{text}");
    assert!(project.read(&case.replace(".yaml", ".patch")).contains("+++ b/jest.config.js"), "{text}");
    let solved = put("add.js", &fixed);
    let forged = put("jest.config.js", "// fake\n");
    decides(&project, &case, &[(solved.clone(), 0), (solved + &put("jest.config.js", &quiet), 0), (forged, 1)]);
}

#[test]
fn a_commit_that_changes_data_of_a_passing_test_does_not_ask_to_keep_it() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let golden = "import unittest\nfrom calc import double\n\n\nclass Golden(unittest.TestCase):\n    def test_golden(self):\n        \
                  self.assertEqual(str(double(2)), open('golden/double.txt').read())\n";
    let begin = [("calc.py", BASE), ("golden/double.txt", "4"), ("tests/test_golden.py", golden)];
    history.commit("Begin", &begin.map(|(path, text)| (path, Some(text))));
    let (fixed, test) = (BASE.replace("a * 2", "a * 2 + 1"), TEST_DOUBLE.replace("4)", "5)"));
    let fix = [("calc.py", &*fixed), ("golden/double.txt", "5"), ("tests/test_double.py", &*test)];
    history.commit("Doubles are greater by one", &fix.map(|(path, text)| (path, Some(text))));
    let mined = mine(&project, &["--repeat", "1", "--hunks", "0"]).exits(0).json();
    let case = of(&mined, "Doubles are greater by one")["case"].as_str().unwrap().to_owned();
    let text = project.read(&case);
    assert!(project.path(&case.replace(".yaml", ".hidden/golden/double.txt")).is_file(), "{text}");
    assert!(!text.contains("must still pass"), "{text}");
}

#[test]
fn a_state_of_other_mining_rules_is_not_used_and_the_user_is_told() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let script = "if grep -q 'a + b' calc.py; then echo 'ok 1 - adds'; else echo 'not ok 1 - adds'; fi; echo 1..1\n";
    history.commit("Begin", &[("calc.py", Some(BASE)), ("run.sh", Some(script))]);
    history.commit("Fix the sum of two numbers", &[("calc.py", Some(FIXED)), ("tests/test_add.py", Some(TEST_ADD))]);
    let given = ["--test", "sh run.sh", "--setup", "true", "--repeat", "1", "--hunks", "0", "--resume"];
    let mined = mine(&project, &given).exits(0);
    assert!(!mined.err.contains("mining rules"), "{}", mined.err);
    let mined = mined.json();
    let case = of(&mined, "Fix the sum of two numbers")["case"].as_str().unwrap().to_owned();
    let name = project.files(".evals/mine").into_keys().find(|name| name.ends_with(".jsonl")).unwrap();
    let path = format!(".evals/mine/{name}");
    let state = project.read(&path);
    let first: Value = serde_json::from_str(state.lines().next().unwrap()).unwrap();
    let tool = first["tool"].as_str().unwrap();
    project.write(&path, &state.replacen(tool, "0.0.1 2", 1));
    let said = mine(&project, &given).exits(2).says(&case).says("exists already").says("--force");
    let (version, rules) = tool.rsplit_once(' ').unwrap();
    said.says(&format!("was made by mining rules 2 (evals 0.0.1), which are now {rules} (evals {version})"));
    fs::remove_file(project.path(&case)).unwrap();
    let again =
        mine(&project, &given).exits(0).says("mining rules 2 (evals 0.0.1)").says("all commits are tested again");
    assert_eq!(again.err.matches("trying ").count(), 1, "{}", again.err);
}

#[test]
#[ignore = "slow: mines a history"]
fn manifests_that_a_test_needs_are_a_part_of_the_patch_and_not_protected() {
    if !runners(&["node"]) {
        return;
    }
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let manifest = |more: &str| {
        format!("{{\"name\": \"text\", \"jest\": {{\"moduleDirectories\": [\"src\", \"node_modules\"]}}{more}}}\n")
    };
    let code = "exports.up = text => text;\n";
    let script = "n=0\nfor name in num up shout line; do\n  n=$((n + 1))\n  if node test/up.js $name; then echo \"ok $n - $name\"; else \
                  echo \"not ok $n - $name\"; fi\ndone\necho 1..4\n";
    let test = "const same = require('assert').equal;\nconst { up } = require('../src/up');\n\
                const tests = {\n  num: () => same(up('1'), '1'),\n";
    let begin = [
        ("package.json", Some(manifest(""))),
        ("run.sh", Some(script.to_owned())),
        ("src/up.js", Some(code.to_owned())),
        ("test/up.js", Some(format!("{test}}};\ntests[process.argv[2]]();\n"))),
    ];
    let files = begin.each_ref().map(|(path, text)| (*path, text.as_deref()));
    history.commit("Begin", &files);
    let (up, imports) =
        ("exports.up = text => text.toUpperCase();\n", ", \"imports\": {\"#shout\": \"./src/shout.js\"}");
    let shout = "exports.shout = text => text + '!';\n";
    let line = "module.exports = text => text + '\\n';\n";
    let tests = format!(
        "{test}  up: () => same(up('a'), 'A'),\n  shout: () => same(require('#shout').shout('A'), 'A!'),\n  \
         line: () => same(require('../src/new-line')('a'), 'a\\n'),\n}};\n\
         try {{ require('chai'); }} catch {{}}\ntests[process.argv[2]]();\n"
    );
    let changed = manifest(imports);
    let fix = [
        ("package.json", Some(changed.as_str())),
        ("src/new-line.js", Some(line)),
        ("src/shout.js", Some(shout)),
        ("src/up.js", Some(up)),
        ("test/up.js", Some(tests.as_str())),
    ];
    history.commit("Make the text upper case, shout, and end lines", &fix);
    let given = ["--test", "sh run.sh", "--setup", "true", "--repeat", "1", "--hunks", "0"];
    let mined = mine(&project, &given).exits(0).json();
    let looked = of(&mined, "Make the text upper case, shout, and end lines");
    assert_eq!(looked["fail_to_pass"], serde_json::json!(["line", "shout", "up"]), "{mined:#}");
    let case = looked["case"].as_str().unwrap().to_owned();
    let text = project.read(&case);
    assert!(!text.contains("**/package.json"), "{text}");
    let told = "The tests import `src/new-line.js`, `src/shout.js`. The tests depend on `package.json`.";
    assert!(text.contains(told), "{text}");
    // `src/chai` would be loaded in place of the package.
    assert!(text.contains("  - src/chai/package.json\n") && text.contains("may decide what passes: `src`\n"), "{text}");
    let others = put("src/up.js", up) + &put("src/new-line.js", line) + &put("src/shout.js", shout);
    decides(&project, &case, &[(others.clone() + &put("package.json", &changed), 0), (others, 1)]);
}

#[test]
#[ignore = "slow: mines a history"]
fn paths_of_new_modules_that_tests_import_are_told() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let double = TEST_DOUBLE.replace("calc", "calc.base");
    let begin =
        [("calc/__init__.py", Some("")), ("calc/base.py", Some(BASE)), ("tests/test_double.py", Some(double.as_str()))];
    history.commit("Begin", &begin);
    let code = "def widen(text):\n    return text.rjust(5)\n";
    let test = |module: &str| {
        format!(
            "import unittest\nfrom calc.{module} import widen\n\n\nclass Widen(unittest.TestCase):\n    def \
             test_{module}(self):\n        self.assertEqual(len(widen('a')), 5)\n"
        )
    };
    let (pad, wide) = (test("pad"), test("wide"));
    history.commit("Align columns to the right", &[("calc/pad.py", Some(code)), ("tests/test_pad.py", Some(&*pad))]);
    let subject = "Align columns in calc/wide.py, too";
    history.commit(subject, &[("calc/wide.py", Some(code)), ("tests/test_wide.py", Some(&*wide))]);
    let lazy = "\"\"\"Widens.\n\nfrom calc.inner import widen\n\"\"\"\nimport importlib\nimport unittest\n\n\nclass \
                Widen(unittest.TestCase):\n    def test_lazy(self):\n        \
                self.assertEqual(len(importlib.import_module('calc.lazy').widen('a')), 5)\n";
    let files = [
        ("calc/inner.py", Some(code)),
        ("calc/lazy.py", Some("from calc.inner import widen\n")),
        ("tests/test_lazy.py", Some(lazy)),
    ];
    history.commit("Align columns only if they are shown", &files);
    let mined = mine(&project, &["--repeat", "1", "--hunks", "0"]).exits(0).json();
    let text = |subject: &str| project.read(of(&mined, subject)["case"].as_str().unwrap());
    // A docstring imports nothing.
    let of_lazy = text("Align columns only if they are shown");
    assert!(of_lazy.contains("The tests import `calc/lazy.py`.") && !of_lazy.contains("`inner`"), "{of_lazy}");
    assert!(
        text("Align columns to the right").contains("The tests import `calc/pad.py`."),
        "{}",
        text("Align columns to the right")
    );
    // The message names the path.
    assert!(!text(subject).contains("The tests import"), "{}", text(subject));
}

#[test]
fn a_case_whose_message_says_nothing_is_kept_in_its_turn_as_a_draft() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    history.commit("Begin", &[("calc.py", Some(BASE)), ("tests/test_double.py", Some(TEST_DOUBLE))]);
    history.commit("Fix the sum of two numbers", &[("calc.py", Some(FIXED)), ("tests/test_add.py", Some(TEST_ADD))]);
    let text = TEST_DOUBLE.replace("calc import double", "more import half").replace("double(2), 4", "half(2), 1");
    history.commit(
        "Closes GH-12",
        &[("more.py", Some("def half(a):\n    return a // 2\n")), ("tests/test_half.py", Some(&text))],
    );
    let ran = mine(&project, &["--repeat", "1", "-n", "1"]).exits(0);
    assert!(ran.err.contains("kept: 1 test fails before and passes after, "), "{}", ran.err);
    assert!(ran.err.contains("\n  the message says nothing about the task; write the prompt\n"), "{}", ran.err);
    let mined = ran.json();
    let closes = of(&mined, "Closes GH-12");
    assert_eq!((&mined["kept"], &mined["looked_at"], &closes["thin"]), (&1.into(), &1.into(), &true.into()));
    let text = project.read(closes["case"].as_str().unwrap());
    assert!(
        text.contains("# The message says nothing about the task; write the prompt.\n")
            && text.contains("review: needed")
    );
}

#[test]
fn a_commit_that_only_renames_tests_says_so() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    history.commit("Begin", &[("calc.py", Some(BASE)), ("tests/test_double.py", Some(TEST_DOUBLE))]);
    let renamed = TEST_DOUBLE.replace("class Double", "class Doubles");
    history
        .commit("Rename", &[("calc.py", Some(&format!("{BASE}\n# end\n"))), ("tests/test_double.py", Some(&renamed))]);
    let mined = mine(&project, &["--repeat", "1"]).exits(3).json();
    assert_eq!(of(&mined, "Rename")["reason"], "only renames or moves tests: Doubles");
}

#[test]
fn a_given_command_is_run_after_a_given_set_up() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let check = "printf '1..1\n'; if [ \"$(cat value ready)\" = 42ready ]; then echo 'ok 1 - value'; else echo 'not ok 1 - value'; fi\n";
    history.commit("Begin", &[("value", Some("41")), ("tests/run.sh", Some("echo 1..0\n"))]);
    history.commit("Set the value", &[("value", Some("42")), ("tests/run.sh", Some(check))]);
    let words = ["--test", "sh tests/run.sh", "--setup", "printf ready > ready"];
    let mined = mine(&project, &words).exits(0).json();
    assert_eq!(of(&mined, "Set the value")["fail_to_pass"], serde_json::json!(["value"]));
    let text = project.read(of(&mined, "Set the value")["case"].as_str().unwrap());
    assert!(text.contains("run: sh tests/run.sh") && text.contains("- printf ready > ready"), "{text}");
    let failing = mine(&project, &["--test", "sh tests/run.sh", "--setup", "echo no space >&2; exit 7", "--force"])
        .exits(3)
        .json();
    let reason = of(&failing, "Set the value")["reason"].as_str().unwrap().to_owned();
    assert!(reason.starts_with("the build fails: the set-up command") && reason.contains("no space"), "{reason}");
}

/// Two packages of Node far below the top: the script of the first loads a module that only the settings name.
fn deep_packages(history: &mut History<'_>) -> [&'static str; 2] {
    let folders = ["packages/team/web/app", "packages/team/web/old"];
    let code = "exports.add = (a, b) => a + b;\n";
    for folder in folders {
        let package = r#"{"name": "app", "scripts": {"test": "node --require ./tools/setup.js --test"}}"#;
        let files = [("package.json", package), ("tools/setup.js", "global.ready = true;\n"), ("lib/sum.js", code)];
        let files = files.map(|(path, text)| (format!("{folder}/{path}"), text));
        let files: Vec<(&str, Option<&str>)> = files.iter().map(|(path, text)| (path.as_str(), Some(*text))).collect();
        history.commit("Begin", &files);
    }
    let old = "require('node:test')('adds', () => {});\n";
    history.commit("Test the old one", &[("packages/team/web/old/test/sum.test.js", Some(old))]);
    folders
}

#[test]
#[ignore = "slow: mines a history"]
fn a_deep_package_has_its_settings_and_a_deleted_one_decides_nothing() {
    if !runners(&["node"]) {
        return;
    }
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let [app, old] = deep_packages(&mut history);
    let (code, test) = (format!("{app}/lib/sum.js"), format!("{app}/test/sum.test.js"));
    let fixed = "exports.add = (a, b) => a + b;\nexports.take = (a, b) => a - b;\n";
    let text = "const test = require('node:test');\nconst assert = require('node:assert');\n\
                test('takes', () => assert.equal(require('../lib/sum.js').take(3, 2), 1));\n";
    let gone = ["package.json", "tools/setup.js", "lib/sum.js", "test/sum.test.js"].map(|path| format!("{old}/{path}"));
    let mut files: Vec<(&str, Option<&str>)> = vec![(&code, Some(fixed)), (&test, Some(text))];
    files.extend(gone.iter().map(|path| (path.as_str(), None)));
    history.commit("Take a number away, and delete the old package", &files);
    let mined = mine(&project, &["--repeat", "1", "--hunks", "0"]).exits(0).json();
    let case = of(&mined, "Take a number away, and delete the old package")["case"].as_str().unwrap();
    let text = project.read(case);
    assert!(text.contains(&format!("  - {app}/tools/setup.js\n")) && text.contains(&format!("cd {app} && ")), "{text}");
    let words = ["mine", "repo", "--sandbox", "none", "--force", "--repeat", "1", "--hunks", "0", "--memory", "2GiB"];
    project.evals(&words).exits(0).says("evals check --audit --memory 2GiB");
    project.evals(&["check", "--audit", "--memory", "2GiB", "--mutants", "0", "cases"]).exits(0);
}

//! `evals mine` with real test runners: the case of a fix, a correct patch, and wrong ones that change how tests are run.

use std::fmt::Write as _;

use crate::mine::History;
use crate::project::{Project, runners};

/// A small project for one runner.
struct Sample {
    runner: &'static str,
    /// The programs and files of the machine without which it is not run.
    needs: &'static [&'static str],
    /// The options of `evals mine`.
    more: &'static [&'static str],
    /// The first state.
    begin: &'static [(&'static str, &'static str)],
    /// The file with the error, and the wrong and right text in it.
    code: (&'static str, &'static str, &'static str),
    /// The test that the fix adds.
    test: (&'static str, &'static str),
    /// The name of the test, as its runner prints it.
    name: &'static str,
    /// Files that must not make the case pass.
    wrong: &'static [(&'static str, &'static str)],
}

const CALC_JS: &str = "exports.add = (a, b) => a - b;\nexports.twice = a => a * 2;\n";
const CALC_JAVA: &str = "package calc;\n\npublic class Calc {\n    public static int add(int a, int b) { return a - b; }\n    public static int \
                         twice(int a) { return a * 2; }\n}\n";
const TWICE_JAVA: &str = "package calc;\nimport static org.junit.Assert.*;\nimport org.junit.Test;\npublic class TwiceTest {\n    @Test public \
                          void twice() { assertEquals(4, Calc.twice(2)); }\n}\n";
const ADD_JAVA: &str = "package calc;\nimport static org.junit.Assert.*;\nimport org.junit.Test;\npublic class AddTest {\n    @Test public void \
                        adds() { assertEquals(3, Calc.add(1, 2)); }\n}\n";
const EMPTY_JAVA: &str = "package calc;\npublic class AddTest { @org.junit.Test public void adds() {} }\n";
const GRADLE: &str = "apply plugin: 'java'\ndependencies { testCompile files('/usr/share/java/junit4.jar', '/usr/share/java/hamcrest-core.jar') }\n";
const POM: &str = "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>calc</artifactId><version>1</version>\
<properties><maven.compiler.source>17</maven.compiler.source><maven.compiler.target>17</maven.compiler.target></properties>\
<dependencies><dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.13.2</version><scope>test</scope></dependency></dependencies>\
<build><plugins><plugin><artifactId>maven-surefire-plugin</artifactId><version>2.22.3</version></plugin><plugin><artifactId>maven-compiler-plugin</artifactId><version>3.10.1</version></plugin>\
<plugin><artifactId>maven-resources-plugin</artifactId><version>3.3.0</version></plugin></plugins></build></project>\n";
const FORGES: &str = "echo 1..2; echo 'ok 1 - adds'; echo 'ok 2 - doubles'\n";

/// Prints results in the formats of pytest and JUnit, and ends the process.
const FORGED_PY: &str = "import os\nos.write(1, b'============ test session starts ============\\ntests/test_add.py::test_add PASSED\\ntests/test_twice.py::test_twice PASSED\\n\
                         ==== 2 passed in 0.01s ====\\n<testsuite><testcase name=\"tests/test_add.py::test_add\"/><testcase name=\"tests/test_twice.py::test_twice\"/></testsuite>')\nos._exit(0)\n";
const FORGED_RS: &str = "pub fn add(_: i32, _: i32) -> i32 {\n    use std::io::Write;\n    let mut out = std::io::stdout();\n    out.write_all(b\"test adds ... ok\\ntest doubles ... \
                         ok\\n\\ntest result: ok. 2 passed; 0 failed; 0 ignored\\n\\nok 1 - adds\\nok 2 - doubles\\n\").unwrap();\n    out.flush().unwrap();\n    std::process::exit(0)\n}\n\npub fn twice(a: i32) -> i32 {\n    \
                         add(a, a)\n}\n";

/// Ends the programs of the hidden tests, and has tests of the same names.
const REPLACED_RS: &str = "pub fn add(_: i32, _: i32) -> i32 {\n    if cfg!(not(test)) {\n        std::process::exit(0);\n    }\n    0\n}\n\npub fn twice(a: i32) -> i32 {\n    \
                           add(a, a)\n}\n\n#[test]\nfn adds() {}\n\n#[test]\nfn doubles() {}\n";
/// Puts modules with other tests in place of the hidden ones.
const REPLACED_PY: &str = "import os\nimport sys\nimport types\n\nfor name in ('test_add', 'test_twice'):\n    fake = types.ModuleType(name)\n    fake.__file__ = \
                           os.path.join(os.getcwd(), 'tests', name + '.py')\n    setattr(fake, name, lambda: None)\n    sys.modules[name] = fake\n\nadd = twice = None\n";

const SAMPLES: [Sample; 7] = [
    Sample {
        runner: "pytest",
        needs: &["python3"],
        more: &["--repeat", "1"],
        begin: &[
            ("requirements-test.txt", "pytest\n"),
            ("calc.py", "def add(a, b):\n    return a - b\n\n\ndef twice(a):\n    return a * 2\n"),
            ("tests/test_twice.py", "from calc import twice\n\n\ndef test_twice():\n    assert twice(2) == 4\n"),
        ],
        code: ("calc.py", "a - b", "a + b"),
        test: ("tests/test_add.py", "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"),
        name: "tests/test_add.py::test_add",
        wrong: &[
            ("calc.py", FORGED_PY),
            (
                "calc.py",
                "import _pytest.python\n\n_pytest.python.Function.runtest = lambda self: None\nadd = twice = None\n",
            ),
            ("pytest.py", FORGED_PY),
            ("calc.py", REPLACED_PY),
        ],
    },
    Sample {
        runner: "cargo",
        needs: &["cargo"],
        more: &["--repeat", "1"],
        begin: &[
            ("Cargo.toml", "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
            ("Cargo.lock", "version = 3\n\n[[package]]\nname = \"calc\"\nversion = \"0.1.0\"\n"),
            (".gitignore", "target\n"),
            (
                "src/lib.rs",
                // The test inside is not run: an agent may change it.
                "pub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n\npub fn twice(a: i32) -> i32 {\n    a * 2\n}\n\n\
                 #[cfg(test)]\nmod tests {\n    #[test]\n    fn doubles_inside() {\n        assert_eq!(super::twice(2), 4);\n    }\n}\n",
            ),
            ("tests/twice.rs", "#[test]\nfn doubles() {\n    assert_eq!(calc::twice(2), 4);\n}\n"),
        ],
        code: ("src/lib.rs", "a - b", "a + b"),
        test: ("tests/add.rs", "#[test]\nfn adds() {\n    assert_eq!(calc::add(1, 2), 3);\n}\n"),
        name: "tests/add.rs::adds",
        wrong: &[("src/lib.rs", FORGED_RS), ("src/lib.rs", REPLACED_RS)],
    },
    Sample {
        runner: "node",
        needs: &["node", "npm"],
        more: &["--repeat", "1"],
        begin: &[
            ("package.json", r#"{"scripts": {"test": "node --test -r ./support/setup.js"}}"#),
            ("support/setup.js", "process.env.TZ = 'UTC';\n"),
            ("calc.js", CALC_JS),
            (
                "test/twice.test.js",
                "require('node:test')('doubles', () => { require('node:assert').equal(require('../calc').twice(2), 4) });\n",
            ),
        ],
        code: ("calc.js", "a - b", "a + b"),
        test: (
            "test/add.test.js",
            "require('node:test')('adds', () => { require('node:assert').equal(require('../calc').add(1, 2), 3) });\n",
        ),
        name: "adds",
        wrong: &[
            ("calc.js", "console.log('ok 1 - adds'); process.exit(0);\n"),
            ("test/add.test.js", "require('node:test')('adds', () => {});\n"),
            ("support/setup.js", "require('node:assert').equal = () => {};\n"),
        ],
    },
    Sample {
        runner: "npm",
        needs: &["node", "npm"],
        more: &["--repeat", "1"],
        begin: &[
            ("package.json", r#"{"scripts": {"test": "node run.js"}}"#),
            ("calc.js", CALC_JS),
            (
                "run.js",
                "let n = 0;\nfor (const f of require('fs').readdirSync('test').sort()) {\n  const all = require('./test/' + f);\n  for (const k of Object.keys(all)) {\n    \
                 n++;\n    try { all[k](); console.log(`ok ${n} - ${k}`); } catch { console.log(`not ok ${n} - ${k}`); }\n  }\n}\nconsole.log(`1..${n}`);\n",
            ),
            (
                "test/twice.test.js",
                "exports.doubles = () => require('assert').equal(require('../calc').twice(2), 4);\n",
            ),
        ],
        code: ("calc.js", "a - b", "a + b"),
        test: ("test/add.test.js", "exports.adds = () => require('assert').equal(require('../calc').add(1, 2), 3);\n"),
        name: "adds",
        wrong: &[
            ("package.json", r#"{"scripts": {"test": "echo 1..2; echo 'ok 1 - adds'; echo 'ok 2 - doubles'"}}"#),
            (".npmrc", "script-shell=./forge.sh\n"),
            ("run.js", "console.log('ok 1 - adds'); console.log('ok 2 - doubles'); console.log('1..2');\n"),
        ],
    },
    Sample {
        runner: "go",
        needs: &["go"],
        more: &["--repeat", "1"],
        begin: &[
            ("go.mod", "module example.com/calc\n\ngo 1.19\n"),
            (
                "calc.go",
                "package calc\n\nfunc Add(a, b int) int { return a - b }\n\nfunc Double(a int) int { return a * 2 }\n",
            ),
            (
                "calc_test.go",
                "package calc\n\nimport \"testing\"\n\nfunc TestDouble(t *testing.T) {\n\tif Double(2) != 4 {\n\t\tt.Fatal()\n\t}\n}\n",
            ),
        ],
        code: ("calc.go", "a - b", "a + b"),
        test: (
            "add_test.go",
            "package calc\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n}\n",
        ),
        name: "example.com/calc.TestAdd",
        wrong: &[
            (
                "main_test.go",
                "package calc\n\nimport (\n\t\"fmt\"\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) {\n\tfor _, n := range []string{\"TestAdd\", \"TestDouble\"} \
                 {\n\t\tfmt.Printf(\"=== RUN   %s\\n--- PASS: %s (0.00s)\\n\", n, n)\n\t}\n\tfmt.Println(\"PASS\")\n\tos.Exit(0)\n}\n",
            ),
            ("go.mod", "module example.com/other\n\ngo 1.19\n"),
        ],
    },
    Sample {
        runner: "gradle",
        needs: &["gradle", "/usr/share/java/junit4.jar"],
        // Run twice: Gradle takes tests that ran for up to date.
        more: &["--repeat", "2"],
        begin: &[
            ("build.gradle", GRADLE),
            (".gitignore", "build/\n.gradle/\n"),
            ("src/main/java/calc/Calc.java", CALC_JAVA),
            ("src/test/java/calc/TwiceTest.java", TWICE_JAVA),
        ],
        code: ("src/main/java/calc/Calc.java", "a - b", "a + b"),
        test: ("src/test/java/calc/AddTest.java", ADD_JAVA),
        name: "calc.AddTest.adds",
        wrong: &[(
            "settings.gradle",
            "gradle.afterProject { p -> p.tasks.withType(Test) { enabled = false; doFirst {} }\n  p.task('forge') { doLast { def d = p.file('build/test-results/test'); d.mkdirs()\n    new File(d, \
             'a.xml').text = '<testsuite name=\"a\"><testcase classname=\"calc.AddTest\" name=\"adds\"/><testcase classname=\"calc.TwiceTest\" name=\"twice\"/></testsuite>' } }\n  \
             p.tasks.withType(Test) { finalizedBy 'forge' } }\n",
        )],
    },
    Sample {
        runner: "maven",
        needs: &["mvn", "/usr/share/maven-repo/org/apache/maven/plugins/maven-surefire-plugin/2.22.3"],
        more: &["--repeat", "1", "--setup", "mkdir -p ~/.m2 && cp -rL /usr/share/maven-repo ~/.m2/repository"],
        begin: &[
            ("pom.xml", POM),
            (".gitignore", "target/\n"),
            ("src/main/java/calc/Calc.java", CALC_JAVA),
            ("src/test/java/calc/TwiceTest.java", TWICE_JAVA),
        ],
        code: ("src/main/java/calc/Calc.java", "a - b", "a + b"),
        test: ("src/test/java/calc/AddTest.java", ADD_JAVA),
        name: "calc.AddTest.adds",
        wrong: &[("src/test/java/calc/AddTest.java", EMPTY_JAVA)],
    },
];

/// Checks a sample in a folder of the repository, which is empty for the top, or has a slash at its end.
fn check(sample: &Sample, folder: &str) {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let mut commit = |message: &str, files: &[(&str, &str)]| {
        let paths: Vec<String> = files.iter().map(|(path, _)| format!("{folder}{path}")).collect();
        let texts = files.iter().map(|(_, text)| Some(*text));
        let files: Vec<(&str, Option<&str>)> = paths.iter().map(String::as_str).zip(texts).collect();
        history.commit(message, &files);
    };
    commit("Begin", sample.begin);
    let (file, wrong, right) = sample.code;
    let before = sample.begin.iter().find(|(path, _)| *path == file).unwrap().1;
    let fixed = before.replace(wrong, right);
    commit("Fix the sum of two numbers", &[(file, &fixed), sample.test]);
    let words = [&["mine", "repo", "--sandbox", "none", "--format", "json"][..], sample.more].concat();
    let mined = project.evals(&words).exits(0).json();
    let fix = &mined["candidates"][0];
    assert_eq!(fix["fail_to_pass"], serde_json::json!([sample.name]), "{}: {mined:#}", sample.runner);
    assert_eq!(fix["pass_to_pass"].as_array().unwrap().len(), 1, "{}: {mined:#}", sample.runner);
    assert_eq!(fix["hunks"], serde_json::json!({"all": 1, "noticed": 1}), "{}", sample.runner);
    let case = fix["case"].as_str().unwrap();
    assert!(project.read(case).contains(&format!("- {}\n", sample.runner)), "{}", sample.runner);
    let script = case.replace(".yaml", ".demo.yaml");
    let put = |files: &[(&str, &str)]| {
        let mut steps = "steps:\n".to_owned();
        for (path, text) in files {
            let path = format!("{folder}{path}");
            writeln!(steps, "- write: {{path: {path:?}, text: {text:?}}}").unwrap();
        }
        steps
    };
    project.write(&script, &put(&[(file, &fixed)]));
    project.evals(&["run", "cases"]).exits(0);
    for (path, text) in sample.wrong {
        // A shell for npm that forges results, which no other file names.
        let steps = put(&[(path, text), ("forge.sh", FORGES)]);
        let steps = format!("{steps}- run: {{command: chmod +x {folder}forge.sh}}\n");
        project.write(&script, &steps);
        let ran = project.evals(&["run", "cases"]);
        assert_eq!(ran.code, 1, "{}: {path}\n{}{}", sample.runner, ran.out, ran.err);
    }
}

#[test]
#[ignore = "slow: runs the test runners that are installed"]
fn a_correct_patch_passes_with_each_runner_and_a_changed_setting_does_not() {
    let mut ran = 0;
    for sample in SAMPLES.iter().filter(|sample| runners(sample.needs)) {
        check(sample, "");
        ran += 1;
    }
    assert!(ran > 0, "no test runner is installed");
}

#[test]
#[ignore = "slow: runs the test runners that are installed"]
fn each_runner_runs_the_tests_of_a_package_in_its_folder() {
    for sample in SAMPLES.iter().filter(|sample| runners(sample.needs)) {
        check(sample, "parts/calc/");
    }
}

/// A member of workspaces of npm, whose top has no tests. Its dependency is another member.
#[test]
#[ignore = "slow: runs npm"]
fn tests_of_a_member_of_workspaces_find_the_packages_at_the_top() {
    if !runners(&["node", "npm"]) {
        return;
    }
    let project = Project::new();
    let test = |name: &str, call: &str| {
        format!("require('node:test')('{name}', () => require('@calc/checks').same(require('../calc').{call}));\n")
    };
    let (twice, add) = (test("doubles", "twice(2), 4"), test("adds", "add(1, 2), 3"));
    let member = r#"{"name": "@calc/sum", "version": "1.0.0", "scripts": {"test": "node --test"}, "devDependencies": {"@calc/checks": "1.0.0"}}"#;
    let begin = [
        ("package.json", r#"{"private": true, "workspaces": ["packages/*"]}"#),
        (".gitignore", "node_modules\n"),
        ("packages/checks/package.json", r#"{"name": "@calc/checks", "version": "1.0.0"}"#),
        ("packages/checks/index.js", "exports.same = (a, b) => require('assert').equal(a, b);\n"),
        ("packages/sum/package.json", member),
        ("packages/sum/calc.js", CALC_JS),
        ("packages/sum/test/twice.test.js", twice.as_str()),
    ];
    let fixed = CALC_JS.replace("a - b", "a + b");
    let fix = [("packages/sum/calc.js", fixed.as_str()), ("packages/sum/test/add.test.js", add.as_str())];
    let case = mined(&project, &begin, "Fix the sum", &fix);
    assert!(project.read(&case).contains("cd packages/sum && "), "{}", project.read(&case));
    decides(&project, &case, &[("packages/sum/calc.js", &fixed)], 0);
    decides(&project, &case, &[("packages/sum/calc.js", CALC_JS)], 1);
}

/// Mines a fix, and returns the case file.
fn mined(project: &Project, begin: &[(&str, &str)], subject: &str, fix: &[(&str, &str)]) -> String {
    let mut history = History::new(project, "repo");
    for (message, files) in [("Begin", begin), (subject, fix)] {
        let files: Vec<(&str, Option<&str>)> = files.iter().map(|(path, text)| (*path, Some(*text))).collect();
        history.commit(message, &files);
    }
    let words = ["mine", "repo", "--sandbox", "none", "--repeat", "1", "--hunks", "0", "--format", "json"];
    let mined = project.evals(&words).exits(0).json();
    mined["candidates"][0]["case"].as_str().unwrap().to_owned()
}

/// Runs a mined case with an agent that writes files, and checks the exit code.
fn decides(project: &Project, case: &str, files: &[(&str, &str)], code: i32) {
    let mut steps = "steps:\n".to_owned();
    for (path, text) in files {
        writeln!(steps, "- write: {{path: {path:?}, text: {text:?}}}").unwrap();
    }
    project.write(&case.replace(".yaml", ".demo.yaml"), &steps);
    let ran = project.evals(&["run", "cases"]);
    assert_eq!(ran.code, code, "{steps}\n{}{}", ran.out, ran.err);
}

#[test]
#[ignore = "slow: runs go"]
fn a_file_that_code_of_go_embeds_is_no_data_of_tests() {
    if !runners(&["go"]) {
        return;
    }
    let code = |word: &str| {
        format!(
            "package words\n\nimport (\n\t_ \"embed\"\n\t\"strings\"\n)\n\n//go:embed data/words.txt\nvar list string\n\n\
             func Has(w string) bool {{\n\tfor _, it := range strings.Fields(list) {{\n\t\tif it == {word} {{\n\t\t\treturn \
             true\n\t\t}}\n\t}}\n\treturn false\n}}\n"
        )
    };
    let (before, after) = (code("w"), code("strings.ToLower(w)"));
    let apple = "package words\n\nimport \"testing\"\n\nfunc TestApple(t *testing.T) {\n\tif !Has(\"apple\") {\n\t\tt.Fatal()\n\t}\n}\n";
    let sorted = "package words\n\nimport (\n\t\"os\"\n\t\"sort\"\n\t\"strings\"\n\t\"testing\"\n)\n\nfunc TestSorted(t *testing.T) {\n\tb, _ := \
                  os.ReadFile(\"data/words.txt\")\n\tif !sort.StringsAreSorted(strings.Fields(string(b))) {\n\t\tt.Fatal()\n\t}\n}\n";
    let more = apple.replace("TestApple", "TestPear").replace("\"apple\"", "\"PEAR\"");
    let words = "apple\npear\nplum\n";
    let begin = [
        ("go.mod", "module example.com/words\n\ngo 1.19\n"),
        ("words.go", before.as_str()),
        ("data/words.txt", "apple\nplum\n"),
        ("apple_test.go", apple),
        ("sorted_test.go", sorted),
    ];
    let fix = [("words.go", after.as_str()), ("data/words.txt", words), ("pear_test.go", more.as_str())];
    let project = Project::new();
    let case = mined(&project, &begin, "Know the word pear, and find words in capitals", &fix);
    let patch = project.read(&case.replace(".yaml", ".patch"));
    assert!(patch.contains("words.go") && patch.contains("data/words.txt"), "{patch}");
    decides(&project, &case, &[("words.go", &after)], 1);
    decides(&project, &case, &[("words.go", &after), ("data/words.txt", words)], 0);
}

#[test]
#[ignore = "slow: runs go"]
fn files_that_tests_of_go_embed_are_hidden_and_names_that_they_use_are_told() {
    if !runners(&["go"]) {
        return;
    }
    let one = "package calc\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif Row(\"a\", \"\") == \"\" {\n\t\tt.Fatal()\n\t}\n}\n";
    let begin = [
        ("go.mod", "module example.com/calc\n\ngo 1.19\n"),
        ("calc/calc.go", "package calc\n\nfunc Row(a, b string) string { return a + \"|\" + b }\n"),
        ("calc/calc_test.go", one),
    ];
    let fixed = "package calc\n\nfunc Row(a, b string) string { return a + \" | \" + b }\n\nfunc PadLeft(s string) string { return \"  \" + s }\n";
    let test = "package check\n\nimport (\n\t_ \"embed\"\n\t\"testing\"\n\n\t\"example.com/calc/calc\"\n)\n\n//go:embed golden/two.txt\nvar two string\n\n\
                func TestTwo(t *testing.T) {\n\tif calc.Row(\"a\", \"b\") != two || calc.PadLeft(\"x\") != \"  x\" {\n\t\tt.Fatal()\n\t}\n}\n";
    let fix = [("calc/calc.go", fixed), ("check/check_test.go", test), ("check/golden/two.txt", "a | b")];
    let project = Project::new();
    let case = mined(&project, &begin, "Separate the cells of a row by a bar between blanks", &fix);
    assert!(project.path(&case.replace(".yaml", ".hidden/check/golden/two.txt")).is_file());
    let text = project.read(&case);
    assert!(text.contains("The tests use `PadLeft`.\n"), "{text}");
    decides(&project, &case, &[("calc/calc.go", fixed)], 0);
    let unchanged = fixed.replace(" | ", "|");
    decides(&project, &case, &[("calc/calc.go", &unchanged), ("check/golden/two.txt", "a|b")], 1);
}

#[test]
#[ignore = "slow: installs pytest"]
fn a_limit_of_the_coverage_does_not_decide() {
    let half = |result: &str| format!("def half(n):\n    return {result}\n");
    let test = "from calc import half\n\n\ndef test_half():\n    assert half(4) == 2\n";
    let odd = test.replace("test_half", "test_odd").replace("half(4) == 2", "half(3) == 1.5");
    let (wrong, right) = (half("n // 2"), half("n / 2"));
    let begin = [
        ("requirements-test.txt", "pytest\npytest-cov\n"),
        ("pytest.ini", "[pytest]\naddopts = --cov=calc --cov-fail-under=100\n"),
        ("calc.py", wrong.as_str()),
        ("tests/test_half.py", test),
    ];
    let project = Project::new();
    let fix = [("calc.py", right.as_str()), ("tests/test_odd.py", odd.as_str())];
    let case = mined(&project, &begin, "Half of an odd number is a fraction", &fix);
    // No hidden test reaches the second line of this solution.
    let checked = right.replace("    return", "    if isinstance(n, str):\n        raise TypeError(n)\n    return");
    decides(&project, &case, &[("calc.py", &checked)], 0);
    decides(&project, &case, &[("calc.py", &half("n"))], 1);
}

#[test]
#[ignore = "slow: installs pytest"]
fn a_module_that_cannot_be_imported_before_the_fix_hides_no_other_test() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let twice = "def twice(a):\n    return a * 2\n";
    history.commit(
        "Begin",
        &[
            ("requirements-test.txt", Some("pytest\n")),
            ("calc.py", Some(twice)),
            ("tests/test_twice.py", Some("from calc import twice\n\n\ndef test_twice():\n    assert twice(2) == 4\n")),
        ],
    );
    history.commit(
        "Halve numbers",
        &[
            ("calc.py", Some(&format!("{twice}\n\ndef half(a):\n    return a // 2\n"))),
            ("tests/test_half.py", Some("from calc import half\n\n\ndef test_half():\n    assert half(2) == 1\n")),
        ],
    );
    let words = ["mine", "repo", "--sandbox", "none", "--repeat", "1", "--format", "json"];
    let mined = project.evals(&words).exits(0).json();
    let fix = &mined["candidates"][0];
    assert_eq!(fix["fail_to_pass"], serde_json::json!(["tests/test_half.py::test_half"]), "{mined:#}");
    assert_eq!(fix["pass_to_pass"], serde_json::json!(["tests/test_twice.py::test_twice"]), "{mined:#}");
}

#[test]
#[ignore = "slow: runs the tests of Node"]
fn a_file_of_node_without_tests_is_no_doubt() {
    if !runners(&["node", "npm"]) {
        return;
    }
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let of = |name: &str, call: &str| {
        format!(
            "require('node:test')('{name}', () => {{ require('node:assert').equal(require('../calc').{call}) }});\n"
        )
    };
    // Node 20 gives the file of the helper the number of an earlier test.
    let several = format!("{}{}", of("doubles", "twice(2), 4"), of("doubles more", "twice(3), 6"));
    history.commit(
        "Begin",
        &[
            ("package.json", Some(r#"{"scripts": {"test": "node --test"}}"#)),
            ("calc.js", Some(CALC_JS)),
            ("test/a.test.js", Some(&several)),
            ("test/lib/helper.js", Some("exports.four = 4;\n")),
        ],
    );
    let fixed = CALC_JS.replace("a - b", "a + b");
    history.commit("Fix the sum", &[("calc.js", Some(&fixed)), ("test/z.test.js", Some(&of("adds", "add(1, 2), 3")))]);
    let words = ["mine", "repo", "--sandbox", "none", "--repeat", "1", "--format", "json"];
    let mined = project.evals(&words).exits(0).json();
    let fix = &mined["candidates"][0];
    assert_eq!(fix["fail_to_pass"], serde_json::json!(["adds"]), "{mined:#}");
    let both = fix["pass_to_pass"].as_array().unwrap();
    assert!(both.contains(&"doubles".into()) && both.contains(&"doubles more".into()), "{mined:#}");
    let script = fix["case"].as_str().unwrap().replace(".yaml", ".demo.yaml");
    project.write(&script, &format!("steps:\n- write: {{path: calc.js, text: {fixed:?}}}\n"));
    project.evals(&["run", "cases"]).exits(0);
    project.write(&script, "steps: [{say: Done.}]\n");
    project.evals(&["run", "cases"]).exits(1);
}

#[test]
#[ignore = "slow: runs the tests of Node"]
fn globs_of_a_script_of_node_are_expanded_by_the_shell() {
    if !runners(&["node", "npm"]) {
        return;
    }
    let project = Project::new();
    let of = |name: &str, call: &str| {
        format!("require('node:test')('{name}', () => {{ require('node:assert').equal(require('..').{call}) }});\n")
    };
    let (doubles, adds) = (of("doubles", "twice(2), 4"), of("adds", "add(1, 2), 3"));
    let begin = [
        ("package.json", r#"{"scripts": {"test": "node --test parts/*/test/*.test.js"}}"#),
        ("parts/calc/index.js", CALC_JS),
        ("parts/calc/test/twice.test.js", doubles.as_str()),
    ];
    let fixed = CALC_JS.replace("a - b", "a + b");
    let fix = [("parts/calc/index.js", fixed.as_str()), ("parts/calc/test/add.test.js", adds.as_str())];
    let case = mined(&project, &begin, "Fix the sum", &fix);
    assert!(project.read(&case).contains("--test-reporter=tap parts/*/test/*.test.js"), "{}", project.read(&case));
    decides(&project, &case, &[("parts/calc/index.js", &fixed)], 0);
    decides(&project, &case, &[("notes.txt", "nothing")], 1);
}

#[test]
#[ignore = "slow: runs npm"]
fn workspaces_without_packages_of_a_registry_are_linked_and_protected() {
    if !runners(&["node", "npm"]) {
        return;
    }
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let package = r#"{"private": true, "workspaces": ["packages/*"], "scripts": {"test": "node --test"}}"#;
    let of = |name: &str, call: &str| {
        format!("require('node:test')('{name}', () => require('@calc/checks').same(require('../calc').{call}));\n")
    };
    history.commit(
        "Begin",
        &[
            ("package.json", Some(package)),
            (".gitignore", Some("node_modules\n")),
            ("calc.js", Some(CALC_JS)),
            ("packages/checks/package.json", Some(r#"{"name": "@calc/checks", "version": "1.0.0"}"#)),
            ("packages/checks/index.js", Some("exports.same = (a, b) => require('assert').equal(a, b);\n")),
            ("test/twice.test.js", Some(&of("doubles", "twice(2), 4"))),
        ],
    );
    let fixed = CALC_JS.replace("a - b", "a + b");
    history
        .commit("Fix the sum", &[("calc.js", Some(&fixed)), ("test/add.test.js", Some(&of("adds", "add(1, 2), 3")))]);
    let words = ["mine", "repo", "--sandbox", "none", "--repeat", "1", "--format", "json"];
    let mined = project.evals(&words).exits(0).json();
    let fix = &mined["candidates"][0];
    assert_eq!(fix["fail_to_pass"], serde_json::json!(["adds"]), "{mined:#}");
    let case = fix["case"].as_str().unwrap().to_owned();
    assert!(project.read(&case).contains("  - packages/checks/index.js\n"), "{}", project.read(&case));
    let script = case.replace(".yaml", ".demo.yaml");
    for (path, text, code) in
        [("calc.js", fixed.as_str(), 0), ("packages/checks/index.js", "exports.same = () => {};\n", 1)]
    {
        project.write(&script, &format!("steps:\n- write: {{path: {path}, text: {text:?}}}\n"));
        project.evals(&["run", "cases"]).exits(code);
    }
}

#[test]
#[ignore = "slow: runs npm"]
fn the_files_of_a_tool_that_a_script_of_npm_starts_are_restored() {
    if !runners(&["make", "node", "npm"]) {
        return;
    }
    let project = Project::new();
    let told = |name: &str, call: &str| format!("console.log((calc.{call} ? 'ok' : 'not ok') + ' - {name}');\n");
    let test = format!("const calc = require('../calc');\n{}", told("doubles", "twice(2) === 4"));
    let (before, after) = (
        format!("{test}console.log('1..1');\n"),
        format!("{test}{}console.log('1..2');\n", told("adds", "add(1, 2) === 3")),
    );
    let begin = [
        ("Makefile", "check:\n\t@node test/all.js\n"),
        ("calc.js", CALC_JS),
        ("package.json", r#"{"scripts": {"test": "npm run all --silent", "preall": "true", "all": "make -s check"}}"#),
        ("test/all.js", before.as_str()),
    ];
    let fixed = CALC_JS.replace("a - b", "a + b");
    let case = mined(&project, &begin, "Fix the sum", &[("calc.js", fixed.as_str()), ("test/all.js", after.as_str())]);
    let forged = "check:\n\t@printf 'ok - doubles\\nok - adds\\n1..2\\n'\n";
    decides(&project, &case, &[("calc.js", &fixed)], 0);
    decides(&project, &case, &[("Makefile", forged)], 1);
    // GNU make prefers this file.
    decides(&project, &case, &[("GNUmakefile", forged)], 1);
}

#[test]
#[ignore = "slow: runs the tests of Node"]
fn a_program_that_npm_runs_after_the_tests_is_code_and_a_file_that_cannot_be_loaded_decides_nothing() {
    if !runners(&["node", "npm"]) {
        return;
    }
    let project = Project::new();
    let test = |name: &str, call: &str| {
        format!("require('node:test')('{name}', () => require('assert').equal(require('../lib/cli').{call}));\n")
    };
    let twice = format!("{}{}", test("doubles", "twice(2), 4"), test("doubles more", "twice(3), 6"));
    let cli = |more: &str| {
        format!(
            "module.exports = {{ ...require('./calc'){more} }};\nif (require.main === module) \
             console.log(module.exports.add(Number(process.argv[2]), Number(process.argv[3])));\n"
        )
    };
    let (cli, other) = (cli(""), cli(", add: (a, b) => a + b"));
    let begin = [
        ("package.json", r#"{"scripts": {"test": "node --test", "posttest": "node lib/cli.js"}}"#),
        ("lib/calc.js", CALC_JS),
        ("lib/cli.js", cli.as_str()),
        (
            "test/live.test.js",
            "const db = require('gone');\nconst all = ['adds'];\nrequire('node:test')('doubles', db);\n",
        ),
        ("test/twice.test.js", twice.as_str()),
    ];
    let fixed = CALC_JS.replace("a - b", "a + b");
    let add = test("adds", "add(1, 2), 3");
    let case =
        mined(&project, &begin, "Fix the sum", &[("lib/calc.js", fixed.as_str()), ("test/z.test.js", add.as_str())]);
    let text = project.read(&case);
    let is_listed =
        |name: &str| text.lines().any(|line| line.trim().trim_start_matches("- ").trim_matches(['"', '\'']) == name);
    assert!(is_listed("adds") && is_listed("doubles more") && !is_listed("doubles"), "{text}");
    decides(&project, &case, &[("lib/calc.js", &fixed)], 0);
    decides(&project, &case, &[("lib/cli.js", &other)], 0);
    decides(&project, &case, &[("lib/calc.js", CALC_JS)], 1);
}

#[test]
#[ignore = "slow: mines two histories"]
fn a_file_that_git_ignores_takes_the_place_of_no_hidden_helper() {
    let writes = "import os, py_compile\nos.makedirs('tests/helper')\n\
                  py_compile.compile('own.py', 'tests/helper/__init__.pyc')\n";
    let test = |name: &str, call: &str, more: &str| {
        format!(
            "import unittest\nimport calc\nfrom tests.helper import same\n\n\nclass {name}(unittest.TestCase):\n    def \
             test_{more}(self):\n        same(calc.{call})\n"
        )
    };
    let (twice, add) = (test("Twice", "twice(2), 4", "twice"), test("Add", "add(1, 2), 3", "add"));
    let project = Project::new();
    let code = "def add(a, b):\n    return a - b\n\n\ndef twice(a):\n    return a * 2\n";
    let begin = [
        (".gitignore", "*.pyc\n__pycache__/\n"),
        ("calc.py", code),
        ("tests/__init__.py", ""),
        ("tests/helper.py", "def same(a, b):\n    assert a == b\n"),
        ("tests/test_twice.py", twice.as_str()),
    ];
    let fixed = code.replace("a - b", "a + b");
    let case =
        mined(&project, &begin, "Fix the sum", &[("calc.py", fixed.as_str()), ("tests/test_add.py", add.as_str())]);
    decides(&project, &case, &[("calc.py", &fixed)], 0);
    let own = "def same(a, b):\n    pass\n";
    let steps = format!(
        "steps:\n- write: {{path: own.py, text: {own:?}}}\n- write: {{path: make.py, text: {writes:?}}}\n- run: {{command: \
         python3 make.py}}\n"
    );
    project.write(&case.replace(".yaml", ".demo.yaml"), &steps);
    project.evals(&["run", "cases"]).exits(1);
    if !runners(&["node", "npm"]) {
        return;
    }
    let project = Project::new();
    let test = |name: &str, call: &str| {
        format!("require('node:test')('{name}', () => require('./helper').same(require('../calc').{call}));\n")
    };
    let (twice, add) = (test("doubles", "twice(2), 4"), test("adds", "add(1, 2), 3"));
    let begin = [
        (".gitignore", "*.js\n!load.js\n"),
        ("load.js", "require.extensions['.ts'] = require.extensions['.js'];\n"),
        (
            "package.json",
            r#"{"scripts": {"test": "node --require ./load.js --test test/add.test.ts test/twice.test.ts"}}"#,
        ),
        ("calc.ts", CALC_JS),
        ("test/helper.ts", "exports.same = (a, b) => require('assert').equal(a, b);\n"),
        ("test/twice.test.ts", twice.as_str()),
    ];
    let fixed = CALC_JS.replace("a - b", "a + b");
    let case =
        mined(&project, &begin, "Fix the sum", &[("calc.ts", fixed.as_str()), ("test/add.test.ts", add.as_str())]);
    decides(&project, &case, &[("calc.ts", &fixed)], 0);
    decides(&project, &case, &[("test/helper.js", "exports.same = () => {};\n")], 1);
}

#[test]
#[ignore = "slow: builds a crate several times"]
fn a_lock_file_and_tests_within_the_code_of_an_agent_decide_nothing() {
    if !runners(&["cargo"]) {
        return;
    }
    let project = Project::new();
    let code = "pub fn add(a: i32, b: i32) -> i32 { a - b }\n";
    // Cargo refuses to build a target by its name without a feature that it needs.
    let manifest = "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[features]\nslow = []\n[[test]]\n\
                    name = \"slow\"\nrequired-features = [\"slow\"]\n";
    let begin = [
        (".gitignore", "Cargo.lock\ntarget\n"),
        ("Cargo.toml", manifest),
        ("src/lib.rs", code),
        ("tests/slow.rs", "#[test]\nfn slow() {}\n"),
    ];
    let fixed = code.replace("a - b", "a + b");
    let test = "#[test]\nfn adds() { assert_eq!(calc::add(1, 2), 3); }\n";
    let case = mined(&project, &begin, "Fix the sum", &[("src/lib.rs", fixed.as_str()), ("tests/ops.rs", test)]);
    // The package of the agent's own tests is not in the manifest that is put back.
    let own = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn own() { assert_eq!(kit::three(), 3); }\n}\n";
    let right = format!("{fixed}{own}");
    decides(&project, &case, &[("Cargo.lock", "no lock file\n"), ("src/lib.rs", &right)], 0);
    decides(&project, &case, &[("src/lib.rs", &format!("{code}{own}"))], 1);
}

#[test]
#[ignore = "slow: installs mocha"]
fn packages_that_the_agent_changed_are_restored() {
    if !runners(&["node", "npm"]) {
        return;
    }
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let of =
        |name: &str, call: &str| format!("it('{name}', () => require('assert').equal(require('../calc').{call}));\n");
    history.commit(
        "Begin",
        &[
            ("package.json", Some(r#"{"scripts": {"test": "mocha"}, "devDependencies": {"mocha": "10.2.0"}}"#)),
            (".gitignore", Some("node_modules\n")),
            ("calc.js", Some(CALC_JS)),
            ("test/twice.test.js", Some(&of("doubles", "twice(2), 4"))),
        ],
    );
    let fixed = CALC_JS.replace("a - b", "a + b");
    history
        .commit("Fix the sum", &[("calc.js", Some(&fixed)), ("test/add.test.js", Some(&of("adds", "add(1, 2), 3")))]);
    let words = ["mine", "repo", "--sandbox", "none", "--repeat", "1", "--format", "json"];
    let mined = project.evals(&words).exits(0).json();
    let case = mined["candidates"][0]["case"].as_str().unwrap().to_owned();
    let script = case.replace(".yaml", ".demo.yaml");
    let patch = "require('assert').equal = () => {};\n";
    let prints = "<testsuite><testcase classname='' name='adds'/><testcase classname='' name='doubles'/></testsuite>";
    let forged = format!("console.log(\"{prints}\"); process.exit(0);\n");
    let reports = format!("require('fs').writeFileSync('.evals-tests.xml', \"{prints}\"); process.exit(0);\n");
    for (path, text) in [
        ("calc.js", &*fixed),
        ("calc.js", &forged),
        ("calc.js", &reports),
        ("node_modules/mocha/lib/runnable.js", "throw 1;\n"),
        // Found before the folder of the same name.
        ("node_modules/mocha.js", patch),
        ("test/node_modules/assert/index.js", patch),
        ("test/node_modules/mocha.js", patch),
        (".mocharc.js", patch),
        ("package.json", r#"{"mocha": {"require": "./helper.js"}}"#),
    ] {
        let helper = format!("- write: {{path: helper.js, text: {patch:?}}}\n");
        project.write(&script, &format!("steps:\n{helper}- write: {{path: {path:?}, text: {text:?}}}\n"));
        let ran = project.evals(&["run", "cases"]);
        assert_eq!(ran.code, i32::from(text != fixed), "{path}\n{}{}", ran.out, ran.err);
    }
}

/// A plug-in of pytest with which each test passes.
const PLUGIN: &str = "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n    \
                      report = (yield).get_result()\n    report.outcome, report.longrepr = 'passed', None\n";

#[test]
#[ignore = "slow: installs pytest"]
fn plugins_of_pytest_and_replaced_functions_do_not_make_a_case_pass() {
    let project = Project::new();
    let mut history = History::new(&project, "repo");
    let code = "def add(a, b):\n    return a - b\n\n\ndef twice(a):\n    return a * 2\n";
    history.commit(
        "Begin",
        &[
            ("requirements-test.txt", Some("pytest\n")),
            (".gitignore", Some("*.egg-info/\n")),
            ("calc.py", Some(code)),
            ("tests/test_twice.py", Some("from calc import twice\n\n\ndef test_twice():\n    assert twice(2) == 4\n")),
        ],
    );
    let fixed = code.replace("a - b", "a + b");
    let test = "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n";
    history.commit("Fix the sum of two numbers", &[("calc.py", Some(&fixed)), ("tests/test_add.py", Some(test))]);
    let words = ["mine", "repo", "--sandbox", "none", "--repeat", "1", "--format", "json"];
    let mined = project.evals(&words).exits(0).json();
    let script = mined["candidates"][0]["case"].as_str().unwrap().replace(".yaml", ".demo.yaml");
    let names = "[pytest11]\nplug = plug\n";
    let about = "Metadata-Version: 2.1\nName: plug\nVersion: 1.0\n";
    let replaces = |what: &str| format!("{code}\n\n{what}");
    let call = replaces(
        "import _pytest.runner as runner\n\nreal = runner.CallInfo.from_call.__func__\n\n\ndef from_call(cls, func, when, \
         reraise=None):\n    return real(cls, (lambda: None) if when == 'call' else func, when, reraise)\n\n\n\
         runner.CallInfo.from_call = classmethod(from_call)\n",
    );
    let hooks = replaces("import pluggy\n\npluggy.Result.get_result = lambda self: None\n");
    let all: [&[(&str, &str)]; 9] = [
        &[(".pytest.ini", "[pytest]\naddopts = -p plug\n"), ("plug.py", PLUGIN)],
        &[("pytest.toml", "[pytest]\naddopts = ['-p', 'plug']\n"), ("plug.py", PLUGIN)],
        &[(".pytest.toml", "[pytest]\naddopts = ['-p', 'plug']\n"), ("plug.py", PLUGIN)],
        &[("plug-1.0.Dist-Info/entry_points.txt", names), ("plug-1.0.Dist-Info/METADATA", about), ("plug.py", PLUGIN)],
        // The repository ignores this folder, so it is not removed; the runner refuses the plug-in.
        &[("plug.egg-info/entry_points.txt", names), ("plug.egg-info/PKG-INFO", about), ("plug.py", PLUGIN)],
        &[("calc.py", &call)],
        &[("calc.py", &hooks)],
        &[("sitecustomize/__init__.py", "raise SystemExit(0)\n")],
        &[("calc.py", &fixed)],
    ];
    for files in all {
        let mut steps = "steps:\n".to_owned();
        for (path, text) in files {
            writeln!(steps, "- write: {{path: {path:?}, text: {text:?}}}").unwrap();
        }
        project.write(&script, &steps);
        let ran = project.evals(&["run", "cases"]);
        assert_eq!(ran.code, i32::from(files[0].1 != fixed), "{files:?}\n{}{}", ran.out, ran.err);
    }
}

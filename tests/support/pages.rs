//! A project whose HTML report shows everything that a page has to bear: every verdict, two arms, hostile texts.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

use crate::project::Project;

/// Texts that would do something in a page that took them for markup.
pub const HOSTILE: [&str; 6] = [
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "[click](javascript:document.title='owned')",
    "\u{202e}txt.exe\u{202c} and a zero\u{200b}width",
    "<!-- <style>*{display:none}</style>",
    "]]> &lt;b&gt; \" onmouseover=\"document.title='owned'",
];

/// The run's label.
pub const LABEL: &str = "pages";

/// Makes the project and its run. The page is `out.html`.
pub fn run() -> Project {
    let project = Project::new();
    let say: String = HOSTILE.iter().map(|text| format!("  - say: {}\n", json(text))).collect();
    let coloured = json("printf '\\033[31mred\\033[0m <b>plain</b> \\033]0;title\\007'");
    let huge = json("head -c 10485760 /dev/zero | tr '\\0' x");
    project.case(
        "hostile/text",
        "graders: [{stop: {reason: [end_turn]}}, {output: {name: \"<b>bold</b>\", contains: \"<i>no</i>\"}}]",
        &format!(
            "steps:\n  - thought: \"<script>document.title='owned'</script>\"\n{say}  - run: {{command: {coloured}}}\n  \
             - run: {{command: {huge}}}\n"
        ),
    );
    project.case(
        "edits/change",
        "workspace: {files: {a.txt: \"one\\nnumber two\\nthree\\n\"}}\ninteraction: {scripted: {rules: [{name: no-commands, \
         when: {kind: execute}, answer: reject-once}], default: allow}}\ngraders: [{stop: {reason: [end_turn]}}, {diff: {changed: [a.txt]}}, \
         {tool-calls: {name: reads, max: 9}}]",
        "steps:\n  - plan: [{text: change it, status: in_progress}]\n  - read: {path: a.txt}\n  \
         - edit: {path: a.txt, old: number two, new: number zwei}\n  - parallel:\n      \
         - run: {command: \"echo <b>hi</b>; exit 3\", ask: true}\n      - read: {path: a.txt}\n  \
         - usage: {input-tokens: 1200, output-tokens: 80, cost-usd: 0.012}\n  - say: Done.\n",
    );
    // Words that divide links, in the name of a case.
    project.case("odd/beside/event", "", "steps: [{say: Done.}]");
    project.case(
        "quarantined",
        "quarantine: {until: 2999-01-01, why: the mirror loses connections}\nworkspace: {files: {'grün b/ü.txt': one}}\n\
         graders: [{output: {contains: absent}}]",
        "steps: [{edit: {path: 'grün b/ü.txt', old: one, new: two}}, {say: Done.}]",
    );
    project.case("errored", "workspace: {files: {a: b}, setup: ['exit 4']}", "steps: [{say: hi}]");
    project.case("ungraded", "graders: [{budget: {cost-usd: 1}}]", "steps: [{say: hi}]");
    project.case("skipped", "requires: {tracing: true}", "steps: [{say: hi}]");
    project.demo("other", "");
    project.harness("plain", "adapter: output-only\ncommand: [sh, -c, 'echo done']");
    let reporter = format!("html={}", project.path("out.html").display());
    let args = ["run", "--harness", "demo", "--harness", "other", "--harness", "plain", "--trials", "2"];
    let ran = project.evals(&[&args[..], &["--label", LABEL, "--reporter", &reporter]].concat());
    assert_eq!(ran.code, 1, "{ran:?}");
    project
}

fn json(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// Names of cases that would do something in a page that took them for markup, or that change what people see.
pub const NAMES: [&str; 2] = ["<img src=x onerror=alert(1)>", "a\u{202e}b"];

/// Makes a project whose history has every mark: changes, flaky trials, a quarantine, a run without a score; and names of
/// cases that are markup, change the direction of text, or are very long.
pub fn history() -> Project {
    let project = Project::new();
    let pass = "steps: [{say: done}, {usage: {input-tokens: 12, output-tokens: 8, cost-usd: 0.012}}]";
    for name in NAMES {
        project.case(name, "", pass);
    }
    project.case(&"long".repeat(40), "", pass);
    project.case("marked", "", pass);
    let toggle = project.path("toggle");
    let flips = format!("if [ -e {0} ]; then rm {0}; exit 1; else touch {0}; fi", toggle.display());
    let grader = format!("graders: [{{command: {{name: flips, run: {}}}}}]", json(&flips));
    project.case("flips", &grader, pass);
    let agent = |version: &str, code: u8| {
        project.write("agent.sh", &format!("echo done\nexit {code}\n"));
        let told = if code == 0 { format!("version: [echo, '{version}']\n") } else { String::new() };
        let path = project.path("agent.sh");
        project.harness("own", &format!("adapter: output-only\ncommand: [sh, {}]\n{told}", path.display()));
    };
    let run = |args: &[&str]| {
        let ran = project
            .evals(&[&["run", "--trials", "2", "--jobs", "1", "--harness", "demo", "--harness", "own"], args].concat());
        assert!(ran.code == 0 || ran.code == 1 || ran.code == 3, "{ran:?}");
    };
    agent("1.0", 0);
    run(&[]);
    agent("", 1);
    run(&[]);
    agent("2.0", 0);
    project.case("marked", "quarantine: {until: 2999-01-01, why: '<b>slow</b>'}", "steps: [{stop: refusal}]");
    run(&[]);
    project
}

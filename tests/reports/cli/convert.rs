//! `evals convert`: cases of other tools become cases that load, and what is lost is named.

use std::fs;
use std::os::unix::fs::symlink;

use crate::project::{Project, Ran};

const SKILL: &str = "---\nname: sums\ndescription: Adds columns. Use for CSV files.\n---\nAdd.\n";

const EVALS: &str = r#"{
  "skill_name": "sums",
  "evals": [
    {
      "id": 1,
      "prompt": "Add up the column amount of sales.csv.",
      "expected_output": "The sum, 42.",
      "files": ["evals/files/sales.csv", "evals/files/gone.csv", "../../secret"],
      "expectations": ["The answer is 42", {"text": "No file was changed", "critical": true}, 7],
      "timeout": 10
    },
    {"id": "two", "name": "Second: case", "prompt": "Add 1 and 2.", "expected_output": "3", "expectations": []},
    {"id": 3, "prompt": "Nothing to grade."},
    {"id": 4, "expected_output": "no prompt"},
    {"id": 1, "prompt": "Add 1 and 1.", "assertions": ["The answer is 2"]}
  ]
}"#;

const TRIGGERS: &str = r#"[
  {"query": "sum up this csv", "should_trigger": true},
  {"query": "write a poem", "should_trigger": false, "why": "not about sums"},
  {"query": "?", "should_trigger": "maybe"}
]"#;

fn skill() -> Project {
    Project::with(&[
        ("skills/sums/SKILL.md", SKILL),
        ("skills/sums/evals/evals.json", EVALS),
        ("skills/sums/evals/triggers.json", TRIGGERS),
        ("skills/sums/evals/files/sales.csv", "amount\n40\n2\n"),
        ("skills/sums/evals/other.json", "{}"),
        ("secret", "s"),
    ])
}

/// Returns the ids of the converted cases, which must load.
#[track_caller]
fn loads(project: &Project, folder: &str) -> Vec<String> {
    project.evals(&["check", folder]).exits(0);
    let listed = project.evals(&["list", "cases", folder, "--format", "json"]).exits(0).json();
    listed.as_array().unwrap().iter().map(|case| case["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_evals_and_triggers_of_a_skill() {
    let project = skill();
    let ran: Ran = project.evals(&["convert", "--from", "agentskills", "skills/sums", "-o", "out"]).exits(0);
    insta::assert_snapshot!("convert_agentskills", format!("{}---\n{}", ran.err, ran.out));
    insta::assert_snapshot!("convert_agentskills_case", project.read("out/cases/sums/eval-1.yaml"));
    insta::assert_snapshot!("convert_agentskills_experiment", project.read("out/experiments/sums.yaml"));
    assert_eq!(project.read("out/cases/sums/eval-1.workspace/sales.csv"), "amount\n40\n2\n");
    assert!(project.read("out/cases/sums-triggers/not-used-2.yaml").contains("not-used:"));
    assert!(!project.read("out/experiments/sums-triggers.yaml").contains("baseline"));
    let ids = ["sums-triggers/not-used-2", "sums-triggers/used-1", "sums/eval-1", "sums/eval-1-2", "sums/second-case"];
    assert_eq!(loads(&project, "out/cases"), ids);

    project.evals(&["convert", "--from", "agentskills", "skills/sums", "-o", "out"]).exits(2).says("exists already");
    project.evals(&["convert", "--from", "agentskills", "skills/sums", "-o", "out", "--force"]).exits(0);
}

#[test]
fn files_of_an_earlier_conversion_are_not_given_to_the_agent() {
    let project = skill();
    let from = |path: &str, more: &[&str]| {
        project.evals(&[&["convert", "--from", "agentskills", path, "-o", "out"], more].concat())
    };
    from("skills/sums", &[]).exits(0);
    let left = ["cases/sums/eval-1.workspace/old", "cases/sums/eval-1.hidden/old", "images/sums/eval-1/old"];
    for path in left {
        project.write(&format!("out/{path}"), "an answer");
    }
    from("skills/sums", &["--force"]).exits(0);
    for path in left {
        assert!(!project.path(&format!("out/{path}")).exists(), "{path}");
    }
    assert_eq!(project.read("out/cases/sums/eval-1.workspace/sales.csv"), "amount\n40\n2\n");
    // Without --force, no file of such a folder is removed.
    let hidden = "out/cases/sums/eval-1.hidden";
    fs::remove_dir_all(project.path("out")).unwrap();
    project.write(&format!("{hidden}/old"), "an answer");
    from("skills/sums", &[]).exits(2).says("eval-1.hidden exists already; nothing was written");
    // The folder is the source itself.
    project.write(&format!("{hidden}/evals.json"), EVALS);
    from(hidden, &["--force"]).exits(2).says("eval-1.hidden would be replaced, and contains files to convert");
    assert_eq!(project.read(&format!("{hidden}/evals.json")), EVALS);
}

#[test]
fn what_is_not_a_set_of_cases_is_refused_with_its_place() {
    let project = skill();
    project.write("bad.json", "{\"evals\": [\n  {\"prompt\": }\n]}");
    project.write("empty.json", "{\"evals\": [{\"id\": 1}]}");
    project.write("other.json", "[1]");
    project.write("triggers.json", TRIGGERS);
    for (path, said) in [
        ("bad.json", "bad.json:2:14: this is not JSON"),
        ("empty.json", "no case could be converted"),
        ("other.json", "neither `{skill_name, evals: […]}` nor a list"),
        ("triggers.json", "the name of the skill is unknown"),
        ("nowhere", "the path could not be read"),
        ("skills", "the folder contains no JSON file"),
    ] {
        project.evals(&["convert", "--from", "agentskills", path, "-o", "out"]).exits(2).says(said);
        assert!(!project.path("out").exists());
    }
    // What no case may contain: the loader decides.
    project.write("globs.json", &EVALS.replace("\"sums\"", "\"sums*\""));
    project.write("globs/triggers.json", TRIGGERS);
    project.write("globs/evals.json", &project.read("globs.json"));
    let ran = project.evals(&["convert", "--from", "agentskills", "globs", "-o", "out"]).exits(0);
    ran.says("no case `used-1` was written: graders[0].skills.used: `sums*` is not the name of a skill");
    assert!(!project.path("out/cases/sums-triggers").exists() && project.path("out/cases/sums").exists());
    project.evals(&["convert", "--from", "promptfoo", "bad.json"]).exits(2);
}

#[test]
fn the_skill_of_an_experiment_is_laid_without_its_evals() {
    let project = skill();
    symlink("SKILL.md", project.path("skills/sums/README.md")).unwrap();
    project.write("skills/sums/assets/evals.csv", "a\n");
    let from = |path: &str, more: &[&str]| {
        project.evals(&[&["convert", "--from", "agentskills", path, "-o", "out"], more].concat())
    };
    from("skills/sums", &[]).exits(0).says("the experiment uses a copy of the skill without its evals");
    for group in ["sums", "sums-triggers"] {
        let files: Vec<String> = project.files(&format!("out/experiments/{group}.skills")).into_keys().collect();
        assert_eq!(files, ["sums/README.md", "sums/SKILL.md", "sums/assets/evals.csv"]);
        project.evals(&["check", &format!("out/experiments/{group}.yaml"), "--harness", "claude-code-stream"]).exits(0);
    }
    assert_eq!(project.read("out/experiments/sums.skills/sums/README.md"), SKILL);
    // Without a folder `evals`, the converted file is left out.
    fs::rename(project.path("skills/sums/evals/evals.json"), project.path("skills/sums/cases.json")).unwrap();
    fs::remove_dir_all(project.path("skills/sums/evals")).unwrap();
    from("skills/sums/cases.json", &["--force"]).exits(0);
    let files: Vec<String> = project.files("out/experiments/sums.skills").into_keys().collect();
    assert_eq!(files, ["sums/README.md", "sums/SKILL.md", "sums/assets/evals.csv"]);
}

#[test]
fn a_skill_can_be_converted_again_into_its_own_folder() {
    let project = skill();
    project.write("skills/sums/skills/more/SKILL.md", SKILL);
    project.write("skills/sums/skills/more/evals/key", "42");
    // An earlier conversion, and two into the working directory.
    for more in [&["-o", "old"][..], &[], &["--force"]] {
        let mut command = project.command(&[&["convert", "--from", "agentskills", "."], more].concat());
        let ran = command.current_dir(project.path("skills/sums")).output().unwrap();
        assert!(ran.status.success(), "{more:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }
    let files: Vec<String> = project.files("skills/sums/experiments/sums.skills").into_keys().collect();
    let is_case = |path: &String| path.contains("cases/") || path.contains("key") || path.contains("sums/experiments/");
    assert!(files.contains(&"sums/skills/more/SKILL.md".to_owned()) && !files.iter().any(is_case), "{files:?}");
}

#[test]
fn a_skill_that_cannot_be_copied_costs_the_experiment_alone() {
    let project = skill();
    project.write("secret", "x");
    symlink(project.path("secret"), project.path("skills/sums/link")).unwrap();
    let ran = project.evals(&["convert", "--from", "agentskills", "skills/sums", "-o", "out"]).exits(0);
    ran.says("no experiment was written: the skill cannot be copied without its evals: the link `link` leads out");
    assert!(project.path("out/cases/sums/eval-1.yaml").exists() && !project.path("out/experiments").exists());
}

#[test]
fn two_skills_whose_folders_have_the_same_name_stay_two() {
    let project = plugin(&[("made", "---\ntype: regex\n---\n42\n")]);
    let root = project.path("plugin/skills");
    fs::create_dir_all(project.path("other")).unwrap();
    fs::rename(root.join("texts"), project.path("other/sums")).unwrap();
    symlink(project.path("other/sums"), root.join("texts")).unwrap();
    project.write("plugin/skills/sums/evals/a", "1");
    project.write("other/sums/evals/a", "1");
    convert(&project).exits(0);
    let files: Vec<String> = project.files("out/experiments/adder.skills").into_keys().collect();
    assert_eq!(files, ["sums-2/SKILL.md", "sums/SKILL.md"]);
    assert!(project.read("out/experiments/adder.yaml").contains("adder.skills/sums-2"));
}

#[test]
fn the_cases_of_a_plugin_that_lie_in_another_folder_of_its_skill_are_left_out_of_the_copy() {
    let grader = "---\ntype: regex\n---\n42\n";
    let project = Project::with(&[
        ("sums/SKILL.md", SKILL),
        ("sums/references/units.md", "m\n"),
        ("sums/qa/notes.md", "The answer of add is 42.\n"),
        ("sums/qa/add/prompt.md", "Add 40 and 2.\n"),
        ("sums/qa/add/graders/answer.md", grader),
        ("sums/qa/refused/case.yaml", "context: {history_file: h.jsonl}\nexecution: {prompt: x}\n"),
        ("sums/qa/refused/graders/answer.md", grader),
    ]);
    let copied = |from: &str| {
        project.evals(&["convert", "--from", "claude-plugin", from, "-o", "out", "--force"]).exits(0);
        project.files("out/experiments/sums.skills").into_keys().collect::<Vec<_>>()
    };
    // No file names the folder of the cases.
    assert_eq!(copied("sums/qa"), ["sums/SKILL.md", "sums/references/units.md"]);
    let manifest = "{\"name\": \"sums\", \"experimental\": {\"evals\": \"qa\"}}";
    project.write("sums/.claude-plugin/plugin.json", manifest);
    // The other cases of the folder are not among those that are converted.
    for from in ["sums", "sums/qa/add"] {
        let files = copied(from);
        assert!(files.contains(&"sums/references/units.md".to_owned()), "{files:?}");
        assert!(!files.iter().any(|file| file.contains("qa/")), "{from}: {files:?}");
    }
}

#[test]
fn the_files_with_evals_of_a_skill_are_left_out_of_its_copy_if_no_case_of_them_was_written() {
    let project = Project::with(&[
        ("sums/SKILL.md", SKILL),
        ("sums/qa/evals.json", "{\"evals\": [{\"prompt\": \"Add.\", \"expectations\": [\"42\"]}]}"),
        ("sums/qa/refused.json", "{\"evals\": [{\"prompt\": \"Nothing to grade.\"}]}"),
        ("sums/qa/units.json", "{}"),
        // Cases: one with a task, one with an error, one with graders beside it. The others are templates.
        ("sums/more/a/case.yaml", "execution: {prompt: Add.}\n"),
        ("sums/more/b/case.yaml", "name: x\nname: y\ngraders: [{type: regex, pattern: '42'}]\n"),
        ("sums/more/c/case.yaml", "name: x\n"),
        ("sums/more/c/graders/answer.md", "---\ntype: regex\n---\n42\n"),
        ("sums/assets/case.yaml", "title: x\n"),
        ("sums/assets/table.md", "m\n"),
        ("sums/templates/case.yaml", "title: {{ title }}: x\n"),
    ]);
    project.evals(&["convert", "--from", "agentskills", "sums/qa", "-o", "out"]).exits(0);
    let files: Vec<String> = project.files("out/experiments/sums.skills").into_keys().collect();
    let kept = ["SKILL.md", "assets/case.yaml", "assets/table.md", "qa/units.json", "templates/case.yaml"];
    assert_eq!(files, kept.map(|file| format!("sums/{file}")));
}

#[test]
fn evals_elsewhere_in_a_skill_are_left_out_of_its_copy_whatever_is_converted() {
    let case = |prompt: &str| format!("{{\"evals\": [{{\"prompt\": \"{prompt}\", \"expectations\": [\"42\"]}}]}}");
    let (first, hard) = (case("Add."), case("Add more."));
    let project = Project::with(&[
        ("p/.claude-plugin/plugin.json", "{\"name\": \"p\", \"experimental\": {\"evals\": \"skills/sums/checks\"}}"),
        ("p/skills/sums/SKILL.md", SKILL),
        ("p/skills/sums/checks/_shared/answers.md", "42\n"),
        ("p/skills/sums/checks/add/prompt.md", "Add 40 and 2.\n"),
        ("p/skills/sums/checks/add/graders/answer.md", "---\ntype: regex\n---\n42\n"),
        ("p/skills/sums/checks/bad/case.yaml", "execution: {}\n"),
        ("p/skills/sums/more/x/prompt.md", "Add.\n"),
        ("p/skills/sums/more/x/graders/answer.md", "---\ntype: regex\n---\n42\n"),
        ("p/skills/sums/eval/evals.json", &first),
        ("p/skills/sums/eval/hard.json", &hard),
        ("p/skills/sums/eval/triggers.json", "[{\"query\": \"x\", \"should_trigger\": true}]"),
        ("p/skills/sums/assets/queries.json", "[{\"query\": \"select 1\"}]"),
        ("p/skills/sums/assets/prompt.md", "Ask this.\n"),
    ]);
    symlink("checks", project.path("p/skills/sums/link")).unwrap();
    for (format, path) in
        [("claude-plugin", "checks/add"), ("claude-plugin", "checks/add/prompt.md"), ("agentskills", "eval/evals.json")]
    {
        let path = format!("p/skills/sums/{path}");
        let ran = project.evals(&["convert", "--from", format, &path, "-o", "out", "--force"]).exits(0);
        ran.says(
            "without its evals (also `checks`, `eval/evals.json`, `eval/hard.json`, `eval/triggers.json`, `more/x`)",
        );
        let files: Vec<String> = project.files("out/experiments/sums.skills").into_keys().collect();
        assert_eq!(files, ["sums/SKILL.md", "sums/assets/prompt.md", "sums/assets/queries.json"], "{path}");
    }
}

#[test]
fn a_file_that_a_case_names_twice_is_copied_once() {
    let project = skill();
    let evals = "{\"evals\": [{\"prompt\": \"Add up evals/files/sales.csv.\", \"expectations\": [\"42\"], \
        \"files\": [\"evals/files/sales.csv\", \"./evals/files/sales.csv\"]}]}";
    project.write("skills/sums/evals/evals.json", evals);
    project.evals(&["convert", "--from", "agentskills", "skills/sums", "-o", "out"]).exits(0);
    let files: Vec<String> = project.files("out/cases/sums/eval-1.workspace").into_keys().collect();
    assert_eq!(files, ["evals/files/sales.csv"]);
}

#[test]
fn a_file_lies_where_the_prompt_names_it() {
    let project = skill();
    let other = "the file is `sales.csv` in the workspace, which the prompt does not name";
    for (prompt, to, said) in [
        (
            "Add up data/sales.csv.",
            "data/sales.csv",
            "the file is `data/sales.csv` in the workspace, as the prompt names it",
        ),
        ("Compare a/sales.csv and b/sales.csv.", "sales.csv", other),
        ("Look at old-sales.csv.", "sales.csv", other),
        ("Clean the file and write it to out/sales.csv.", "sales.csv", other),
    ] {
        let evals = EVALS.replace("Add up the column amount of sales.csv.", prompt);
        project.write("skills/sums/evals/evals.json", &evals);
        let ran = project.evals(&["convert", "--from", "agentskills", "skills/sums", "-o", "out", "--force"]).exits(0);
        ran.says(&format!("`evals[0].files[0]`: {said}"));
        assert_eq!(project.read(&format!("out/cases/sums/eval-1.workspace/{to}")), "amount\n40\n2\n", "{prompt}");
    }
}

#[test]
fn two_files_of_a_case_that_would_have_one_path_keep_the_written_ones() {
    let project = skill();
    project.write("skills/sums/evals/in.csv", "1\n");
    project.write("skills/sums/evals/files/in.csv", "2\n");
    project.write("skills/sums/data/in.csv", "3\n");
    let evals = |prompt: &str, files: &str| {
        let case = format!("{{\"prompt\": \"{prompt}\", \"files\": [{files}], \"expectations\": [\"a\"]}}");
        let text = format!("{{\"evals\": [{case}]}}");
        project.write("skills/sums/evals/evals.json", &text);
        project.evals(&["convert", "--from", "agentskills", "skills/sums", "-o", "out", "--force"]).exits(0)
    };
    evals("Compare evals/files/in.csv and evals/in.csv.", "\"evals/files/in.csv\", \"evals/in.csv\"");
    let files = project.files("out/cases/sums/eval-1.workspace");
    let files: Vec<(&str, &[u8])> = files.iter().map(|(path, text)| (path.as_str(), text.as_slice())).collect();
    assert_eq!(files, [("evals/files/in.csv", &b"2\n"[..]), ("evals/in.csv", b"1\n")]);
    // The first file is moved to the path of the second one. The cases of the trigger set are written nevertheless.
    fs::remove_dir_all(project.path("out")).unwrap();
    let ran = evals("Add up data/in.csv.", "\"evals/files/in.csv\", \"data/in.csv\"");
    ran.says("`evals[0].files`: no case was written: two of its files would be `data/in.csv` in the workspace");
    assert!(!project.path("out/cases/sums").exists());
}

#[test]
fn an_option_of_another_format_is_refused() {
    let project = skill();
    for (option, value, format) in
        [("--test", "true", "swe-bench"), ("--target", "equals", "inspect"), ("--fixtures", ".", "touchstone")]
    {
        let ran = project.evals(&["convert", "--from", "agentskills", "skills/sums", "-o", "out", option, value]);
        ran.exits(2).says(&format!("{option} belongs to --from {format}"));
    }
    assert!(!project.path("out").exists());
}

#[test]
fn links_out_of_the_skill_are_not_followed() {
    let project = skill();
    symlink(project.path("secret"), project.path("skills/sums/evals/files/link")).unwrap();
    project.write("skills/sums/evals/evals.json", &EVALS.replace("gone.csv", "link"));
    let ran = project.evals(&["convert", "--from", "agentskills", "skills/sums", "-o", "out"]).exits(0);
    ran.says("`evals[0].files[1]`: the file is not in the workspace: a link leads out of the folder");
    assert!(!project.path("out/cases/sums/eval-1.workspace/link").exists());
}

/// A plugin with one case of these graders.
fn plugin(graders: &[(&str, &str)]) -> Project {
    let project = Project::with(&[
        ("plugin/.claude-plugin/plugin.json", "{\"name\": \"Adder\"}"),
        ("plugin/skills/sums/SKILL.md", SKILL),
        ("plugin/skills/texts/SKILL.md", &SKILL.replace("sums", "texts")),
        (
            "plugin/evals/adds/prompt.md",
            "---\nmax_turns: 15\nallowed_tools: [Read, Skill]\ntags: [smoke]\n---\n\nAdd 40 and 2.\n",
        ),
    ]);
    for (name, text) in graders {
        project.write(&format!("plugin/evals/adds/graders/{name}.md"), text);
    }
    project
}

fn convert(project: &Project) -> Ran {
    project.evals(&["convert", "--from", "claude-plugin", "plugin", "-o", "out"])
}

#[test]
fn the_cases_of_a_plugin() {
    let project = plugin(&[
        ("answer", "---\ntype: regex\nflags: i\nweight: 2\n---\n\\bforty-two|42\\b\n"),
        ("criteria", "---\ntype: llm\nweight: 3\n---\n\nPASS if the sum is 42.\nFAIL otherwise.\n"),
        ("tone", "---\n{type: llm, arm: with-only, criteria: PASS if it names the skill.}\n---\n"),
        ("no-apology", "---\ntype: regex\npattern: sorry\nmatch: not_contains\n---\n"),
        ("report", "---\ntype: regex\npattern: total\ntarget: {source: file, path: report.md}\n---\n"),
        ("wrote", "---\ntype: file_exists\npath: '*.md'\n---\n"),
        ("no-temporary", "---\ntype: file_exists\npath: '**/*.tmp'\nexists: false\n---\n"),
        ("fired", "---\ntype: tool_used\ntool: Skill\ninput_match: '\"skill\"\\s*:\\s*\"(?:[\\w-]+:)?sums\"'\n---\n"),
        ("not-texts", "---\ntype: tool_used\ntool: Skill\ninput_match: texts\nmin: 0\nmax: 0\narm: both\n---\n"),
        ("any-skill", "---\ntype: tool_used\ntool: Skill\n---\n"),
        ("tests", "---\ntype: tool_used\ntool: Bash\ninput_match: cargo test\nmin: 1\nmax: 3\n---\n"),
        ("no-web", "---\ntype: tool_used\ntool: WebFetch\nmin: 0\nmax: 0\n---\nThe sum\nneeds no network.\n"),
        ("order", "---\ntype: tool_order\nbefore: Read\nafter: {tool: Edit, input_match: 'a\\.rs'}\n---\n"),
    ]);
    project.write("plugin/hooks/hooks.json", "{}");
    let ran = convert(&project).exits(0);
    insta::assert_snapshot!("convert_claude_plugin", format!("{}---\n{}", ran.err, ran.out));
    insta::assert_snapshot!("convert_claude_plugin_case", project.read("out/cases/adder/adds.yaml"));
    assert!(project.read("out/experiments/adder.yaml").contains("- ../../plugin/skills/texts\n"));
    assert_eq!(loads(&project, "out/cases"), ["adder/adds"]);
}

#[test]
fn what_has_no_equal_is_named_and_never_passes() {
    let keep = ("keep", "---\ntype: regex\npattern: '42'\n---\n");
    for (grader, said) in [
        ("type: regex\npattern: '(?<!a)b'", "`pattern`: the grader `odd` has no equivalent: the pattern uses"),
        ("type: regex\npattern: a\nflags: y", "the flag `y` has no equivalent"),
        (
            "type: regex\npattern: a\nmatch: count:2",
            "`match`: the grader `odd` has no equivalent: `count:2` counts matches",
        ),
        ("type: regex\npattern: a\ntarget: trace", "the trace has another form here"),
        ("type: regex\npattern: a\ntarget: mock_calls", "`mock_calls` is not part of a trace"),
        ("type: regex\npattern: a\nmatch: not_contains\ntarget: {source: file, path: x}", "no grader requires that"),
        ("type: regex\npattern: a\ntarget: {source: file, path: ../x}", "the path `../x` leads out of its folder"),
        ("type: regex", "there is no pattern"),
        ("type: tool_used\ntool: Bash\nmin: 0", "it accepts any number of calls"),
        ("type: tool_used\ntool: Bash\nmin: 2\nmax: 1", "no number of calls is accepted"),
        ("type: baseline\nbaseline_file: x.jsonl", "the reference is a transcript"),
        ("type: llm", "there are no criteria"),
        ("type: llm\ncriteria: |\n  TODO write it", "the criteria still have a TODO"),
        ("type: custom", "the type `custom` is not known"),
        ("pattern: a", "the key is missing"),
        ("type: file_exists\npath: a.txt\nnegate: true", "`negate`: the grader `odd`"),
        ("type: regex\npattern: a\nexpect: absent", "the key is not known, and may change what is checked"),
        (r"{type: regex, pattern: '\<p\>'}", "means something else here than in the source"),
        // A value of another type is not replaced by a default, which would make a weaker grader.
        (
            "type: tool_used\ntool: Bash\ninput_match: [x]",
            "odd.md:4: `input_match`: the grader `odd` has no equivalent: this is not a text",
        ),
        ("type: tool_used\ntool: Bash\ninput_match: ' x'", "white space around it may be a part of it"),
        (
            "type: tool_order\nbefore: Read\nafter: {tool: Edit, input: x}",
            "`after`: the grader `odd` has no equivalent",
        ),
        ("type: tool_order\nbefore: Read\nafter: {tool: Edit, input_match: [x]}", "or a value that is not a text"),
        ("type: regex\npattern: a\nmatch: 0", "`match`: the grader `odd` has no equivalent: this is not a text"),
        ("type: regex\npattern: a\nflags: 1", "`flags`: the grader `odd` has no equivalent: this is not a text"),
        ("type: regex\npattern: a\narm: without", "the arm `without` is not known"),
        ("type: regex\npattern: a\ntarget: {source: file, path: x, lines: 3}", "it has a key that is not known"),
        ("type: llm\ncriteria: [a]\n---\nFor people.", "`criteria`: the grader `odd` has no equivalent"),
    ] {
        let text = format!("---\n{grader}\n---\n");
        let project = plugin(&[keep, ("odd", &text)]);
        convert(&project).exits(0).says(said);
        let case = project.read("out/cases/adder/adds.yaml");
        assert!(case.contains("# Note on ") && case.contains("the grader `odd` has no equivalent"), "{case}");
        assert!(!case.contains("name: odd"), "{case}");
        assert_eq!(loads(&project, "out/cases"), ["adder/adds"]);
        // Without a grader that decides, there is no case.
        let alone = plugin(&[("odd", &text), ("fired", "---\ntype: tool_used\ntool: Skill\n---\n")]);
        let only_indicators = grader.contains("mock_calls");
        if !only_indicators {
            convert(&alone).exits(2).says("no case was written: none of the graders that decide it has an equivalent");
            assert!(!alone.path("out").exists());
        }
    }
}

#[test]
fn folders_of_a_case_that_are_no_list_of_texts_are_refused() {
    for folders in ["data", "[data, 1]"] {
        let project = plugin(&[("keep", "---\ntype: regex\npattern: a\n---\n")]);
        project.write("plugin/evals/adds/case.yaml", &format!("context: {{add_dirs: {folders}}}\n"));
        project.write("plugin/evals/adds/data/a.csv", "a\n");
        convert(&project).exits(2).says("no case was written: its `context.add_dirs` is not a list of texts");
    }
}

#[test]
fn indicators_count_if_a_case_has_nothing_else() {
    let project = plugin(&[("fired", "---\ntype: tool_used\ntool: Skill\n---\n")]);
    convert(&project).exits(0);
    assert!(!project.read("out/cases/adder/adds.yaml").contains("diagnostic"));
    loads(&project, "out/cases");
}

#[test]
fn case_yaml_with_a_workspace() {
    let project = plugin(&[]);
    let case = "schema_version: \"1.1\"\nname: from-yaml\ndescription: A case\nruns: 5\nexpected_outcome: A report.\n\
        context: {scaffold_script: ./set up.sh, add_dirs: [data]}\n\
        execution:\n  prompt: Report on data/a.csv.\n  timeout_seconds: 60\n  model: opus\n  append_system_prompt: Be brief.\n  \
        env: {EVAL_X: y}\n\
        graders:\n  - {name: made, type: file_exists, path: report.md}\n  - {name: gone, type: file_exists, path: tmp, exists: false}\n";
    project.write("plugin/evals/nested/from yaml/case.yaml", case);
    project.write("plugin/evals/nested/from yaml/set up.sh", "mkdir -p src\n");
    project.write("plugin/evals/nested/from yaml/data/a.csv", "a\n");
    project
        .write("plugin/evals/history/case.yaml", "name: h\ncontext: {history_file: h.jsonl}\nexecution: {prompt: x}\n");
    project.write("plugin/evals/mocks/tracker/create.md", "x");
    let ran = convert(&project).exits(0);
    insta::assert_snapshot!("convert_case_yaml", format!("{}---\n{}", ran.err, ran.out));
    insta::assert_snapshot!("convert_case_yaml_case", project.read("out/cases/adder/nested/from-yaml.yaml"));
    assert_eq!(loads(&project, "out/cases"), ["adder/nested/from-yaml"]);
    // The case passes for the work alone.
    for (steps, code) in [("write: {path: report.md, text: a}", 0), ("write: {path: data/a.csv, text: b}", 1)] {
        project.write("out/cases/adder/nested/from-yaml.demo.yaml", &format!("steps: [{{{steps}}}]\n"));
        project.evals(&["run", "out/cases", "--trials", "1"]).exits(code);
    }
}

#[test]
fn broken_files_of_a_plugin_are_shown_with_their_place() {
    for (path, text, said) in [
        ("prompt.md", "---\nmax_turns: 1\nmax_turns: 2\n---\nx\n", "prompt.md:3:1: the key `max_turns` occurs twice"),
        ("prompt.md", "---\nmax_turns: 1\n", "prompt.md:1:1: the front matter is not closed"),
        ("graders/a.md", "---\ntype: [\n---\n", "graders/a.md:"),
        ("case.yaml", "- a\n", "case.yaml: the file must be a map of keys"),
        ("case.yaml", "graders: [x]\n", "`graders[0]` must be a map of keys"),
    ] {
        let project = plugin(&[("keep", "---\ntype: regex\npattern: a\n---\n")]);
        project.write(&format!("plugin/evals/adds/{path}"), text);
        convert(&project).exits(2).says(said);
        assert!(!project.path("out").exists());
    }
}

#[test]
fn converted_graders_pass_and_fail_as_in_the_source() {
    let run = |command: &str| format!("run: {{command: {command}}}");
    let wrote = |path: &str, text: &str| format!("write: {{path: {path}, text: {text}}}");
    let nothing = || "say: nothing".to_owned();
    let order = "type: tool_order\nbefore: Write\nafter: {tool: Bash, input_match: wc}";
    for (grader, good, bad) in [
        (
            "type: regex\npattern: ^forty-two$\nflags: im",
            vec!["say: \"so\\nForty-Two\\n\"".to_owned()],
            vec![nothing()],
        ),
        ("type: regex\npattern: sorry\nmatch: not_contains", vec![nothing()], vec!["say: so sorry".to_owned()]),
        (
            "type: regex\npattern: total\ntarget: {source: file, path: r.md}",
            vec![wrote("r.md", "total")],
            vec![wrote("r.md", "sum")],
        ),
        ("type: file_exists\npath: '**/*.md'", vec![wrote("a/r.md", "x")], vec![wrote("a/r.txt", "x")]),
        ("type: file_exists\npath: '*.tmp'\nexists: false", vec![wrote("r.md", "x")], vec![wrote("r.tmp", "x")]),
        (
            "type: tool_used\ntool: Bash\ninput_match: echo t\nmax: 1",
            vec![run("echo t")],
            vec![run("echo t"), run("echo t")],
        ),
        ("type: tool_used\ntool: Bash\ninput_match: echo t", vec![run("echo t")], vec![run("echo u")]),
        ("type: tool_used\ntool: Bash\nmin: 0\nmax: 0", vec![nothing()], vec![run("echo t")]),
        (order, vec![wrote("r", "x"), run("wc r")], vec![run("wc r"), wrote("r", "x"), run("wc r")]),
        (order, vec![wrote("r", "x"), run("ls"), run("wc r"), wrote("s", "x")], vec![wrote("r", "x")]),
        (order, vec![run("ls"), wrote("r", "x"), run("wc r")], vec![run("wc .")]),
    ] {
        let project = plugin(&[("only", &format!("---\n{grader}\n---\n"))]);
        convert(&project).exits(0);
        for (steps, code) in [(good, 0), (bad, 1)] {
            let steps: String = steps.iter().map(|step| format!("  - {step}\n")).collect();
            project.write("out/cases/adder/adds.demo.yaml", &format!("steps:\n{steps}"));
            let ran = project.evals(&["run", "out/cases", "--trials", "1"]);
            assert_eq!(ran.code, code, "{grader}\n{steps}\n{}", ran.out);
        }
    }
}

#[test]
fn keys_of_touchstone_that_are_not_known_are_named() {
    let case = "id: adds\ntask: {prompt: Implement add., prompts: [x]}\nsource: {path: ./source, isolation: worktree}\n\
        matrix: {harnesses: [echo], models: [a], trial: 2}\nenvironment: {kind: command, commands: ['true'], \
        requirement: [six], env: {A: '1'}}\nsetup: {runs: [x], stub: [{file: a.py, function: f, line: 1}]}\n\
        observe: {interactive: 1, interaction: {policy: auto-approve, rule: x}}\nexpect: {threshold: 1}\n\
        graders:\n  - {type: command, cmd: test -f done}\n";
    let project = Project::with(&[("evals/adds/case.yaml", case), ("evals/adds/source/a.py", "def f(): pass\n")]);
    let convert = || project.evals(&["convert", "--from", "touchstone", "evals", "-o", "out", "--force"]);
    let ran = convert().exits(0);
    for key in [
        "task.prompts",
        "matrix.trial",
        "environment.requirement",
        "setup.runs",
        "setup.stub[0].line",
        "observe.interactive",
        "observe.interaction.rule",
        "expect.threshold",
    ] {
        let said = format!("`{key}`: the key is not known, and was left out");
        assert!(ran.err.contains(&said), "{said}\n{}", ran.err);
    }
    assert_eq!(ran.err.matches("the key is not known").count(), 8, "{}", ran.err);
    ran.says("`source.isolation`: left out: each trial gets a fresh copy of the files");
    // Another kind, or another way to install, is not replaced by a default.
    for (from, to, said) in [
        ("kind: command", "kind: conda", "`environment.kind`: no case was written: the kind `conda` is not known"),
        ("kind: command", "install: wheel", "`environment.install`: no case was written: `wheel` is neither `none`"),
    ] {
        project.write("evals/adds/case.yaml", &case.replace(from, to));
        convert().exits(2).says(said);
    }
}

//! `evals convert` for Vally and coder-eval: what each case passes and fails for, and what is refused with its line.

use std::os::unix::fs::PermissionsExt;

use super::converted::{convert, decides, plays, trace_of};
use crate::project::Project;

/// An eval of Vally with one stimulus that has these graders.
fn vally(graders: &str, rest: &str) -> Project {
    let text = format!(
        "name: sums\nconfig: {{runs: 1, timeout: 90s, model: gpt-5.5, executor: copilot-sdk}}\nstimuli:\n  - name: One Two\n    prompt: \
         Do it.\n    tags: {{area: sums, tier: [a, b]}}\n    constraints: {{max_turns: 9}}\n    graders: {graders}\n{rest}"
    );
    // The project ends at the folder with `.git`.
    let files = [("evals/sums/eval.yaml", text.as_str()), ("evals/sums/data/in.txt", "in\n"), (".git/HEAD", "x\n")];
    Project::with(&files)
}

#[test]
#[ignore = "slow: trials for each grader"]
fn graders_of_vally_pass_and_fail_as_in_the_source() {
    let write = |path: &str, text: &str| format!("write: {{path: {path}, text: '{text}'}}");
    let (tsp, other) = (write("a/x.tsp", "model Asset"), write("a/x.tsp", "model Other"));
    let (file, wrong) = (write("a.txt", "one two"), write("a.txt", "three"));
    for (graders, good, bad) in [
        ("[{type: output-contains, config: {substring: yes}}]", "say: oh YES", "say: no"),
        ("[{type: output-not-contains, config: {substring: yes}}]", "say: no", "say: oh YES"),
        ("[{type: output-contains, config: {substring: yes, case_sensitive: true}}]", "say: oh yes", "say: Yes"),
        ("[{type: output-not-contains, config: {substring: yes, case_sensitive: true}}]", "say: Yes", "say: oh yes"),
        ("[{type: output-matches, config: {pattern: '(?i)^y.s$'}}]", "say: YES", "say: oh yes"),
        ("[{type: output-not-matches, config: {pattern: '(?i)panic:|crashed'}}]", "say: fine", "say: 'PANIC: x'"),
        ("[{type: file-exists, config: {path: a.txt}}]", &file, "say: x"),
        ("[{type: file-not-exists, config: {path: a.txt}}]", "say: x", &file),
        ("[{type: file-contains, config: {path: a.txt, value: two}}]", &file, &wrong),
        ("[{type: file-contains, config: {path: '**/*.tsp', value: Asset}}]", &tsp, &other),
        ("[{type: file-matches, config: {path: '*/*.tsp', pattern: 'model\\s+Asset'}}]", &tsp, &other),
        ("[{type: file-matches, config: {path: a.txt, pattern: '(?i)ONE'}}]", &file, &wrong),
        ("[{type: file-matches, config: {path: '*/*.tsp', pattern: '\\b[^\\W_]+ Asset$'}}]", &tsp, &other),
        ("[{type: file-not-matches, config: {path: '**/*.tsp', pattern: Asset}}]", &other, &tsp),
        ("[{type: file-not-matches, config: {path: '**/*.tsp', pattern: '[\\s\\S]\\bAsset'}}]", &other, &tsp),
        ("[{type: run-command, config: {command: test -f a.txt, expected_exit_code: 1}}]", "say: x", &file),
        ("[{type: run-command, config: {command: test -f x.tsp, sub_path: a}}]", &tsp, "say: x"),
        ("[{type: completed}]", "say: x", "say: ''"),
        (
            "[{type: tool-calls, config: {required: [{name: '', command: 'make +x'}]}}]",
            "run: {command: 'true make  x'}",
            "run: {command: 'true'}",
        ),
        (
            "[{type: tool-calls, config: {disallowed: [{command: 'rm -rf'}]}}]",
            "run: {command: 'true'}",
            "run: {command: 'true rm -rf x'}",
        ),
        (
            "[{type: tool-call-count, config: {max: 1}}]",
            "run: {command: 'true'}",
            "run: {command: 'true'}}, {run: {command: 'true'}",
        ),
    ] {
        let graders = graders.replace("name: '', ", "");
        let project = vally(&graders, "");
        convert(&project, "vally", "evals", &[]).exits(0);
        decides(&project, "sums/one-two", &format!("{{{good}}}"), &format!("{{{bad}}}"));
    }
}

#[test]
fn a_stimulus_of_vally_keeps_its_settings_and_its_environment() {
    let rest = "    environment:\n      files: [{src: data, dest: input}, {src: data/in.txt, dest: b.txt}]\n      commands: [cp b.txt c.txt]\n      \
                skills: [../../skill]\n  - name: Two Turns\n    turns: [First., Second.]\n    config: {runs: 3}\n    graders: [{type: completed}]\n\
                scoring: {weights: {output-matches: 0.5}, threshold: 0.8}\nenvironment: base\n";
    let project = vally("[{type: output-matches, name: shape, config: {pattern: x}}]", rest);
    project.write("skill/SKILL.md", "---\nname: skill\ndescription: Sums numbers.\n---\nAdd them.\n");
    // Expected results beside the skill.
    project.write("skill/eval.yaml", "name: other\nstimuli: []\n");
    project.write("skill/evals/evals.json", "{}");
    let base = "{commands: [touch d.txt], files: [{src: data/in.txt, dest: base.txt}]}";
    project.write(".vally.yaml", &format!("environments: {{base: {base}}}\n"));
    let ran = convert(&project, "vally", "evals/sums/eval.yaml", &[]).exits(0);
    let ran = ran.says("eval.yaml:2: `config.model`: left out: a case names no model");
    ran.says("`scoring.threshold`: left out: it is about the mean of all stimuli");
    let case = project.read("out/cases/sums/one-two.yaml");
    for part in [
        "tags:\n- area-sums\n- tier-a\n- tier-b\n",
        "copy: one-two.workspace\n",
        "setup:\n  - touch d.txt\n  - cp b.txt c.txt\n",
        "steps: 9\n",
        "time: 90s\n",
        "name: shape\n",
        "weight: 0.5\n",
        "skills:\n- one-two.skills/skill\n",
    ] {
        assert!(case.contains(part), "{part:?} is not in\n{case}");
    }
    assert_eq!(project.read("out/cases/sums/one-two.workspace/input/in.txt"), "in\n");
    assert_eq!(project.read("out/cases/sums/two-turns.workspace/base.txt"), "in\n");
    assert!(project.read("out/cases/sums/one-two.skills/skill/SKILL.md").contains("Add them."));
    assert_eq!(project.files("out/cases/sums/one-two.skills").len(), 1);
    let turns = project.read("out/cases/sums/two-turns.yaml");
    assert!(turns.contains("turns:\n- First.\n- Second.\n") && turns.contains("trials: 3\n"), "{turns}");
    project.evals(&["check", "out/cases"]).exits(0);
}

#[test]
fn what_vally_has_and_a_case_has_not_is_listed_with_its_line() {
    let one = "[{type: completed}, GRADER]";
    for (grader, said) in [
        (
            "{type: pairwise}",
            "eval.yaml:8: `stimuli[0].graders[1].type`: the grader `pairwise` has no equivalent: it compares two variants",
        ),
        (
            "{type: completed, turn: 0}",
            "`stimuli[0].graders[1].turn`: the grader `completed` has no equivalent: it is about a single turn",
        ),
        ("{type: own-plugin}", "it is a plug-in of the source, or not known"),
        (
            "{type: tool-calls, config: {required: [a], ordered: true}}",
            "config.ordered`: the grader `tool-calls` has no equivalent",
        ),
        ("{type: output-contains, config: {substring: a, case_sensitive: 'no'}}", "this is not true or false"),
        ("{type: output-contains, config: {substring: a, whole_word: true}}", "may change what is checked"),
        ("{type: output-matches, config: {pattern: '(?=x)y'}}", "such as lookaround"),
        ("{type: file-exists, config: {path: ../x}}", "`config.path`: the grader `file-exists`"),
        ("{type: prompt}", "there is neither a prompt nor a rubric"),
        ("{type: token-budget, config: {max: many}}", "this is not a whole number"),
        ("{type: tool-calls, config: {required: [a], disallowed: b}}", "config.disallowed`: the grader `tool-calls`"),
        ("{type: run-command, config: {command: a, expected_exit_code: '1'}}", "this is not a whole number"),
        ("{type: run-command, config: {command: a, sub_path: [b]}}", "this is not a text"),
        ("{type: run-command, config: {command: a, timeout: [1]}}", "this is not a text or a number"),
        ("{type: prompt, config: {prompt: a, scoring: 5}}", "this is not a text"),
        (
            "{type: output-contains, config: [a]}",
            "config`: the grader `output-contains` has no equivalent: this is not a map",
        ),
        (
            "{type: output-contains, config: {substring: a}, negate: true}",
            "eval.yaml:8: `stimuli[0].graders[1].negate`: the grader `output-contains` has no equivalent: the opposite",
        ),
        (
            "{type: completed, when: last}",
            "`stimuli[0].graders[1].when`: the grader `completed` has no equivalent: the key is",
        ),
    ] {
        let said = said.replace("`config.path`", "config.path`");
        let project = vally(&one.replace("GRADER", grader), "");
        convert(&project, "vally", "evals", &[]).exits(0).says(&said);
        // If nothing else decides the case, it is not written.
        let project = vally(&format!("[{grader}]"), "");
        convert(&project, "vally", "evals", &[]).exits(2).says("none of its graders has an equivalent");
    }
    // The graders of the whole eval alone would be another test, unless they ask for the rubric of the stimulus.
    let shared = "graders: [{type: completed}]\n";
    let project = vally("[{type: output-contains, turn: 1, config: {substring: x}}]", shared);
    convert(&project, "vally", "evals", &[]).exits(2).says("none of its own graders has an equivalent");
    let asked = "    rubric: [It is short.]\ngraders: [{type: prompt, config: {prompt: Is it good?}}]\n";
    for (graders, rest) in [("[]", shared), ("[{type: own-plugin}]", asked)] {
        convert(&vally(graders, rest), "vally", "evals", &[]).exits(0);
    }
    let rest = "scoring: {weights: {completed: 0, prompt: -1, output-matches: 2}, unknown: 1}\n";
    let project = vally("[{type: completed, negate: false, weight: 0, threshold: 0.5, optional: true}]", rest);
    let ran = convert(&project, "vally", "evals", &[]).exits(0);
    for said in [
        "eval.yaml:8: `stimuli[0].graders[0].type`: left out: the source also fails for an error event",
        "eval.yaml:8: `stimuli[0].graders[0].weight`: left out: each grader has to pass",
        "eval.yaml:8: `stimuli[0].graders[0].threshold`: left out",
        "eval.yaml:8: `stimuli[0].graders[0].optional`: left out: the grader has to pass; write `diagnostic: true`",
        "eval.yaml:9: `scoring.weights.completed`: left out: with a weight of 0 the graders of this type would not count",
        "eval.yaml:9: `scoring.weights.prompt`: left out: this is not a number above 0",
        "eval.yaml:9: `scoring.unknown`: the key is not known",
    ] {
        assert!(ran.err.contains(said), "{said}\n{}", ran.err);
    }
    assert!(!ran.err.contains("output-matches") && !ran.err.contains("negate"), "{}", ran.err);
    for (rest, said) in [
        (
            "    environment: {mcpServers: {a: {command: b}}}\n",
            "it needs MCP servers of the source: `a`; write `mcp-servers`",
        ),
        ("    environment: {git: {type: worktree, source: ., ref: HEAD}}\n", "write `workspace.git`"),
        ("    environment: mock\n", "the environment `mock` is not known: there is no `.vally.yaml` above the file"),
        ("    environment: {files: [{src: nowhere, dest: a}]}\n", "`nowhere` cannot be copied: it does not exist"),
        ("    environment: {files: [{src: ../../../tmp, dest: a}]}\n", "it leads out of the project"),
        ("    environment: {skills: [nowhere]}\n", "the skill `nowhere`: the folder does not exist"),
        ("    config: {runs: 0}\n", "the source only checks the file"),
        (
            "    turns: [First., ' ']\n",
            "eval.yaml:9: `stimuli[0].turns`: no case was written: there are no turns, or one",
        ),
        ("    turns: First.\n", "`stimuli[0].turns`: no case was written: this is not a list of texts"),
    ] {
        convert(&vally("[{type: completed}]", rest), "vally", "evals", &[]).exits(2).says(said);
    }
    // Evals set `runs` also beside the prompt of a stimulus, and `timeout` only below `config` or `defaults`.
    let project = vally("[{type: completed}]", "    runs: 4\n    timeout: 30s\n");
    let ran = convert(&project, "vally", "evals", &[]).exits(0);
    ran.says("eval.yaml:10: `stimuli[0].timeout`: the key is not known, and was left out");
    let case = project.read("out/cases/sums/one-two.yaml");
    assert!(case.contains("trials: 4\n") && !case.contains("30s"), "{case}");
    // A key without a value is not set.
    let project = vally("[{type: completed}]", "    config: {timeout: }\n    runs:\n");
    convert(&project, "vally", "evals", &[]).exits(0);
    let case = project.read("out/cases/sums/one-two.yaml");
    assert!(case.contains("time: 90s\n"), "{case}");
    // Two skills with one folder name would be mixed.
    let project = vally("[{type: completed}]", "    environment: {skills: [../../a/one, ../../b/one]}\n");
    for folder in ["a", "b"] {
        project.write(&format!("{folder}/one/SKILL.md"), &format!("---\nname: one\ndescription: {folder}\n---\nx\n"));
    }
    convert(&project, "vally", "evals", &[]).exits(2).says("another skill has the same folder name");
    // `.vally.yaml` may give evals any name, so each file with stimuli is read.
    let project = vally("[{type: completed}]", "");
    std::fs::rename(project.path("evals/sums/eval.yaml"), project.path("evals/sums/routing-eval.yaml")).unwrap();
    convert(&project, "vally", "evals", &[]).exits(0);
    assert!(project.read("out/cases/routing-eval/one-two.yaml").contains("prompt: Do it.\n"));
    let project = Project::with(&[("eval.yaml", "scenarios: []\n")]);
    convert(&project, "vally", "eval.yaml", &[])
        .exits(2)
        .says("this is not an eval of Vally: it has no list `stimuli`");
    convert(&project, "vally", ".", &[]).exits(2).says("no file here or below is an eval of Vally");
    convert(&vally("[{type: completed}]", ""), "promptfoo", "evals/sums/eval.yaml", &[])
        .exits(2)
        .says("use --from vally");
}

#[test]
fn a_case_that_an_agent_passes_by_doing_nothing_because_graders_were_left_out_says_so() {
    let (lost, says) = ("{type: own-plugin}", "so an agent that does nothing passes");
    let (absent, exists) = ("{type: file-not-exists, config: {path: a}}", "{type: file-exists, config: {path: b}}");
    for (graders, is_told) in [
        (format!("[{lost}, {absent}, {{type: turn-count, config: {{max: 3}}}}]"), true),
        (format!("[{lost}, {absent}, {exists}]"), false),
        (format!("[{lost}, {{type: file-not-contains, config: {{path: a, value: x}}}}]"), true),
        (format!("[{lost}, {{type: file-contains, config: {{path: '*.a', value: x}}}}]"), false),
        (format!("[{lost}, {{type: tool-calls, config: {{disallowed: [rm]}}}}]"), true),
        (format!("[{lost}, {{type: tool-calls, config: {{required: [ls], disallowed: [rm]}}}}]"), false),
        (format!("[{lost}, {{type: output-matches, config: {{pattern: '^x*$'}}}}]"), true),
        (format!("[{absent}]"), false),
    ] {
        let project = vally(&graders, "");
        let ran = convert(&project, "vally", "evals", &[]).exits(0);
        assert_eq!(ran.err.contains(says), is_told, "{graders}: {}", ran.err);
        assert_eq!(project.read("out/cases/sums/one-two.yaml").contains(says), is_told, "{graders}");
    }
    let (lost, never) = ("{type: cli_called}", "{type: command_not_executed, tool_name: Bash, command_pattern: rm}");
    for (criteria, is_told) in [
        (format!("[{lost}, {never}]"), true),
        (format!("[{lost}, {never}, {{type: command_executed, tool_name: Bash}}]"), false),
    ] {
        // The limits of a run are a grader too.
        let ran = convert(&coder_eval(&criteria, ""), "coder-eval", "tasks", &[]).exits(0);
        assert_eq!(ran.err.contains(says), is_told, "{criteria}: {}", ran.err);
    }
}

#[test]
fn a_text_of_vally_is_found_in_any_case_unless_the_source_distinguishes_cases() {
    let grader = |kind: &str, more: &str| format!("{{type: {kind}, config: {{substring: error{more}}}}}");
    for (kind, more, written) in [
        ("output-not-contains", "", "    not-contains: error\n    ignore-case: true\n"),
        ("output-not-contains", ", case_sensitive: false", "    not-contains: error\n    ignore-case: true\n"),
        ("output-contains", "", "    contains: error\n    ignore-case: true\n"),
        ("output-not-contains", ", case_sensitive: true", "    not-contains: error\n    name:"),
        ("output-contains", ", case_sensitive: true", "    contains: error\n    name:"),
    ] {
        let project = vally(&format!("[{}]", grader(kind, more)), "");
        convert(&project, "vally", "evals", &[]).exits(0);
        let case = project.read("out/cases/sums/one-two.yaml");
        assert!(case.contains(written), "{kind}{more}\n{case}");
    }
    let project = vally(&format!("[{}]", grader("output-not-contains", "")), "");
    convert(&project, "vally", "evals", &[]).exits(0);
    assert_eq!(plays(&project, "sums/one-two", "say: The build ended with ERROR 3."), 1);
}

#[test]
fn a_judge_of_vally_reaches_the_threshold_on_its_scale() {
    let grader = "{type: prompt, config: {prompt: Is it good?, scoring: scale_1_5, threshold: 0.8}}";
    let project = vally(&format!("[{grader}]"), "    rubric: [It adds., It is short.]\n");
    convert(&project, "vally", "evals", &[]).exits(0);
    let case = project.read("out/cases/sums/one-two.yaml");
    for part in ["about: Is it good?\n", "ask: It adds.\n", "from: 1\n", "pass: 5\n", "to: 5\n"] {
        assert!(case.contains(part), "{part:?} is not in\n{case}");
    }
}

#[test]
fn a_judge_of_vally_has_the_scale_and_the_threshold_of_the_source_by_default() {
    for (config, scale) in [
        ("", Some((3, 5))),
        ("scoring: scale_1_5", Some((3, 5))),
        ("scoring: scale_1_10", Some((6, 10))),
        ("threshold: 0.9", Some((5, 5))),
        ("threshold: 0.2", Some((2, 5))),
        ("scoring: binary, threshold: 0.9", None),
    ] {
        let project = vally(&format!("[{{type: prompt, config: {{prompt: Is it good?, {config}}}}}]"), "");
        convert(&project, "vally", "evals", &[]).exits(0);
        let case = project.read("out/cases/sums/one-two.yaml");
        let scale =
            scale.map(|(pass, to)| format!("scale:\n        from: 1\n        to: {to}\n        pass: {pass}\n"));
        assert_eq!(case.contains("scale:"), scale.is_some(), "{config}: {case}");
        assert!(case.contains(&scale.unwrap_or_default()), "{config}: {case}");
    }
}

#[test]
fn flags_at_the_beginning_of_a_pattern_of_vally_are_kept() {
    let tsp = |text: &str| format!("{{write: {{path: a/x.tsp, text: \"{text}\"}}}}");
    for (grader, good, bad) in [
        (
            "output-matches, config: {pattern: '(?m)^done$'}",
            r#"{say: "so\ndone"}"#.to_owned(),
            "{say: so done}".to_owned(),
        ),
        ("output-matches, config: {pattern: '(?s)a.b'}", r#"{say: "a\nb"}"#.to_owned(), "{say: ab}".to_owned()),
        ("file-matches, config: {path: '**/*.tsp', pattern: '(?im)^done$'}", tsp(r"so\nDONE"), tsp("so DONE")),
        // A line may end with a carriage return and a line feed.
        ("file-matches, config: {path: a/x.tsp, pattern: '(?im)^done$'}", tsp(r"so\r\nDONE\r\n"), tsp("so DONE")),
        ("file-matches, config: {path: '**/*.tsp', pattern: '(?im)^done$'}", tsp(r"so\r\nDONE\r\n"), tsp("so DONE")),
        (r"file-not-matches, config: {path: '**/*.tsp', pattern: '\r\n'}", tsp(r"so\ndone"), tsp(r"so\r\ndone")),
    ] {
        let project = vally(&format!("[{{type: {grader}}}]"), "");
        convert(&project, "vally", "evals", &[]).exits(0);
        decides(&project, "sums/one-two", &good, &bad);
    }
    let project = vally("[{type: output-matches, config: {pattern: '(?x)a b'}}]", "");
    convert(&project, "vally", "evals", &[]).exits(2).says("`(?x` means something else here");
}

/// A task of coder-eval with these criteria.
fn coder_eval(criteria: &str, rest: &str) -> Project {
    let text = format!(
        "task_id: Sum_Up\ndescription: Sums.\ninitial_prompt: Do it.\nagent: {{type: claude-code, permission_mode: acceptEdits}}\nsandbox:\n  \
         driver: tempdir\n  template_sources:\n    - {{type: starter_files, files: [{{path: b/in.txt, content: \"in\\n\"}}]}}\nrun_limits: \
         {{max_turns: 8, task_timeout: 60}}\nsuccess_criteria: {criteria}\n{rest}"
    );
    Project::with(&[("tasks/sum.yaml", &text)])
}

#[test]
#[ignore = "slow: trials for each criterion"]
fn criteria_of_coder_eval_pass_and_fail_as_in_the_source() {
    let write = |path: &str, text: &str| format!("write: {{path: {path}, text: '{text}'}}");
    let (file, wrong) = (write("a.txt", "one two"), write("a.txt", "three"));
    let run = |command: &str| format!("run: {{command: '{command}'}}");
    let twice = format!("{}}}, {{{}", run("true x"), run("true x"));
    let lines = r#"run: {command: "true a\n: b"}"#.to_owned();
    for (criteria, good, bad) in [
        ("{type: file_exists, path: '*.txt'}", &*file, "say: x"),
        ("{type: file_contains, path: a.txt, includes: [one, two]}", &file, &wrong),
        ("{type: file_contains, path: a.txt, includes: [t], excludes: [three]}", &file, &wrong),
        ("{type: file_contains, path: '*.txt', includes: [one], excludes: [three]}", &file, "say: x"),
        ("{type: file_matches_regex, path: a.txt, pattern: ONE, flags: 2}", &file, &wrong),
        ("{type: file_matches_regex, path: a.txt, pattern: three, must_match: false}", &file, &wrong),
        // The file must exist also if it must not match.
        ("{type: file_matches_regex, path: a.txt, pattern: three, must_match: false}", &file, "say: x"),
        ("{type: file_matches_regex, path: a.txt, pattern: 'one(?= two)'}", &file, &wrong),
        (
            "{type: file_check, path: a.txt, includes: [t], patterns: [{pattern: '^one'}, {pattern: x, must_match: false}]}",
            &file,
            &wrong,
        ),
        ("{type: file_check, path: a.txt}", &file, "say: x"),
        ("{type: run_command, command: cat a.txt, expected_stdout: one two}", &file, &wrong),
        ("{type: run_command, command: cat a.txt, expected_stdout: one, stdout_match: contains}", &file, &wrong),
        ("{type: run_command, command: cat a.txt, expected_stdout: o.e, stdout_match: regex}", &file, &wrong),
        (
            "{type: run_command, command: exit 3, expected_exit_code: 3}, {type: file_exists, path: a.txt}",
            &file,
            "say: x",
        ),
        ("{type: run_command, command: 'grep -q \"$(cat \"$TASK_DIR/want.txt\")\" a.txt'}", &file, &wrong),
        ("{type: command_executed, tool_name: Bash, command_pattern: 'true +x'}", &run("true  x"), &run("true")),
        ("{type: command_executed, tool_name: Bash, min_count: 1, max_count: 1}", &run("true"), &twice),
        ("{type: command_not_executed, tool_name: Bash, command_pattern: x}", &run("true"), &run("true x")),
        ("{type: command_executed, command_pattern: x, exclude_pattern: y}", &run("true x"), &run("true x y")),
        ("{type: commands_efficiency, expected_commands: 1}, {type: file_exists, path: a.txt}", &file, "say: x"),
        ("{type: commands_efficiency, expected_commands: 1, pass_threshold: 1.0}", &run("true"), &twice),
        // An agent without a command scores 0, and `.` matches the end of a line.
        ("{type: commands_efficiency, expected_commands: 1}", &run("true"), "say: x"),
        ("{type: command_executed, tool_name: Bash, command_pattern: 'a.*b'}", &lines, &run("true a")),
        (
            "{type: classification_match, path: a.txt, expected_label: One Two, allowed_labels: [one two, x]}",
            &file,
            &wrong,
        ),
        (
            "{type: file_exists, path: nowhere, weight: 0}, {type: file_exists, path: a.txt, weight: 0.2}",
            &file,
            "say: x",
        ),
    ] {
        let project = coder_eval(&format!("[{criteria}]"), "");
        project.write("tasks/want.txt", "two");
        convert(&project, "coder-eval", "tasks", &[]).exits(0);
        decides(&project, "tasks/sum-up", &format!("{{{good}}}"), &format!("{{{bad}}}"));
    }
}

#[test]
fn the_files_of_a_task_s_folder_are_not_in_the_workspace_of_coder_eval() {
    let criteria = "[{type: file_exists, path: '**/want.txt'}, {type: run_command, command: '! grep -rq two .'}, \
                    {type: run_command, command: 'grep -q two \"$TASK_DIR/want.txt\"'}]";
    let project = coder_eval(criteria, "");
    project.write("tasks/want.txt", "two");
    convert(&project, "coder-eval", "tasks", &[]).exits(0);
    decides(&project, "tasks/sum-up", "{write: {path: a/want.txt, text: x}}", "say: x");
}

#[test]
fn criteria_of_coder_eval_find_what_an_earlier_one_installed() {
    let criteria = "[{type: run_command, command: 'touch \"$HOME/tool\"'}, \
                    {type: run_command, command: 'test -f \"$HOME/tool\" && grep -q two a.txt'}]";
    let project = coder_eval(criteria, "");
    convert(&project, "coder-eval", "tasks", &[]).exits(0);
    decides(&project, "tasks/sum-up", "{write: {path: a.txt, text: two}}", "{say: x}");
}

#[test]
fn code_that_a_criterion_of_coder_eval_runs_does_not_change_the_files_of_the_task() {
    let criteria = "[{type: run_command, command: sh build.sh}, \
                    {type: run_command, command: 'sh \"$TASK_DIR/check.sh\"'}]";
    let project = coder_eval(criteria, "");
    project.write("tasks/check.sh", "grep -q two a.txt\n");
    convert(&project, "coder-eval", "tasks", &[]).exits(0);
    let forged = "echo true > $(find $HOME .evals-task -name check.sh 2> /dev/null | head -n 1)";
    let write = |path: &str, text: &str| format!("{{write: {{path: {path}, text: {}}}}}", serde_json::json!(text));
    let honest = [write("build.sh", "true"), write("a.txt", "two")].join(", ");
    decides(&project, "tasks/sum-up", &honest, &write("build.sh", forged));
}

#[test]
fn files_that_coder_eval_ignores_are_neither_copied_nor_found() {
    let task = "task_id: build\ndescription: d\ninitial_prompt: Do it.\nagent: {type: claude-code}\nsandbox:\n  \
                ignore_patterns: [solution, '!build']\n  template_sources: [{type: template_dir, path: tpl, \
                mount_point: web, include_patterns: [dist/keep.*]}]\nsuccess_criteria: [{type: file_exists, path: '**/new.js'}]\n";
    let project = Project::with(&[
        ("tasks/build.yaml", task),
        ("tasks/tpl/src/a.js", "a"),
        ("tasks/tpl/build/a.js", "a"),
        ("tasks/tpl/dist/bundle.js", "a"),
        ("tasks/tpl/dist/keep.js", "a"),
        ("tasks/tpl/solution/a.js", "a"),
        ("tasks/tpl/node_modules/.bin/a", "a"),
    ]);
    // A link in an ignored folder is ignored, too.
    std::os::unix::fs::symlink("a", project.path("tasks/tpl/node_modules/.bin/b")).unwrap();
    convert(&project, "coder-eval", "tasks", &[]).exits(0);
    let files = project.files("out/cases/tasks/build.workspace");
    let files: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(files, ["web/build/a.js", "web/dist/keep.js", "web/src/a.js"]);
    let write = |path: &str| format!("{{write: {{path: {path}, text: x}}}}");
    decides(&project, "tasks/build", &write("build/new.js"), &write("solution/new.js"));
    project.write("tasks/build.yaml", &task.replace("dist/keep.*", "'dist/[k]eep.js'"));
    let said = "`sandbox.template_sources[0].include_patterns`: no case was written";
    convert(&project, "coder-eval", "tasks", &[]).exits(2).says(said);
    project.write("tasks/build.yaml", task);
    std::os::unix::fs::symlink("a.js", project.path("tasks/tpl/src/b.js")).unwrap();
    convert(&project, "coder-eval", "tasks", &[]).exits(2).says("`src/b.js` is neither a regular file nor a folder");
}

#[test]
fn a_file_of_coder_eval_behind_a_link_out_of_the_workspace_does_not_exist() {
    for path in ["a.txt", "'*.txt'"] {
        let project = coder_eval(&format!("[{{type: file_exists, path: {path}}}]"), "");
        convert(&project, "coder-eval", "tasks", &[]).exits(0);
        let (inside, outside) = ("{run: {command: ln -s b/in.txt a.txt}}", "{run: {command: ln -s /etc/passwd a.txt}}");
        decides(&project, "tasks/sum-up", inside, outside);
    }
}

#[test]
fn criteria_of_coder_eval_decide_after_max_turns_and_other_limits_fail() {
    let (write, run) = ("{write: {path: a.txt, text: x}}", "{run: {command: 'true'}}");
    let figures = |output: u64| format!("{write}, {{usage: {{input-tokens: 90, output-tokens: {output}}}}}");
    for (limits, steps, code) in [
        ("max_turns: 1, task_timeout: 60", format!("{write}, {run}, {{sleep: 10m}}"), 0),
        ("max_turns: 1, task_timeout: 60", format!("{run}, {run}, {{sleep: 10m}}"), 1),
        ("max_turns: 8, task_timeout: 5", format!("{write}, {{sleep: 10m}}"), 1),
        ("max_output_tokens: 10", figures(10), 0),
        ("max_output_tokens: 10", figures(11), 1),
        ("max_input_tokens: 90", figures(10), 0),
        ("max_input_tokens: 89", figures(10), 1),
        ("max_total_tokens: 99", figures(10), 1),
        // Unknown figures are not 0.
        ("max_output_tokens: 10", write.to_owned(), 3),
        ("max_input_tokens: 99, count_cached_input: true", figures(10), 3),
    ] {
        let project = coder_eval("[{type: file_exists, path: a.txt}]", "");
        let task = project.read("tasks/sum.yaml").replace("max_turns: 8, task_timeout: 60", limits);
        project.write("tasks/sum.yaml", &task);
        let ran = convert(&project, "coder-eval", "tasks", &[]).exits(0);
        assert!(!ran.err.replace("`run_limits.max_turns`", "").contains("run_limits"), "{limits}: {}", ran.err);
        assert_eq!(plays(&project, "tasks/sum-up", &steps), code, "{limits}: {steps}");
    }
}

#[test]
fn a_limit_of_the_user_fails_a_case_of_coder_eval_with_max_turns() {
    let project = coder_eval("[{type: file_exists, path: a.txt}]", "");
    let ran = convert(&project, "coder-eval", "tasks", &[]).exits(0);
    ran.says("sum.yaml:9: `run_limits.max_turns`: the criteria decide when the turns are used up");
    let (write, run) = ("{write: {path: a.txt, text: x}}", "{run: {command: 'true'}}");
    for (limit, steps, code) in [
        ("steps=1", format!("{write}, {run}, {{sleep: 10m}}"), 0),
        ("tool-calls=1", format!("{write}, {run}, {{sleep: 10m}}"), 1),
        ("idle=2s", format!("{write}, {{sleep: 10m}}"), 1),
    ] {
        project.write("out/cases/tasks/sum-up.demo.yaml", &format!("steps: [{steps}]\n"));
        let ran = project.evals(&["run", "out/cases/tasks/sum-up.yaml", "--trials", "1", "--limit", limit]);
        assert_eq!(ran.code, code, "{limit}\n{}\n{}", ran.out, ran.err);
    }
}

#[test]
fn the_smaller_time_limit_of_coder_eval_counts() {
    for limits in [
        "task_timeout: 300, turn_timeout: 10",
        "turn_timeout: 300, task_timeout: 10",
        "turn_timeout: 10, task_timeout: null",
    ] {
        let project = coder_eval("[{type: file_exists, path: a.txt}]", "");
        let task = project.read("tasks/sum.yaml").replace("task_timeout: 60", limits);
        project.write("tasks/sum.yaml", &task);
        convert(&project, "coder-eval", "tasks", &[]).exits(0);
        let case = project.read("out/cases/tasks/sum-up.yaml");
        assert!(case.contains("time: 10s\n"), "{limits}: {case}");
    }
}

#[test]
fn a_pattern_of_commands_of_coder_eval_has_a_note_on_quotes() {
    for (rest, said) in [
        ("tool_name: Bash, command_pattern: a", Some("`success_criteria[0]`: stricter: the source also searches each")),
        (
            "command_pattern: a",
            Some("`success_criteria[0]`: stricter: only commands of a shell count here, as the agent"),
        ),
        (
            "tool_name: Bash, command_pattern: a, min_count: 0, max_count: 1",
            Some("`success_criteria[0]`: weaker: the source also searches each"),
        ),
        (
            "tool_name: Bash, command_pattern: a, exclude_pattern: b",
            Some("`success_criteria[0]`: stricter or weaker: the source also searches each"),
        ),
        ("tool_name: Bash, max_count: 1", None),
    ] {
        let project = coder_eval(&format!("[{{type: command_executed, {rest}}}]"), "");
        let ran = convert(&project, "coder-eval", "tasks", &[]).exits(0);
        assert_eq!(ran.err.contains("`sh -c`"), said.is_some(), "{rest}: {}", ran.err);
        assert!(ran.err.contains(said.unwrap_or_default()), "{rest}: {}", ran.err);
    }
}

#[test]
fn line_ends_and_white_space_around_a_text_of_coder_eval_do_not_count() {
    let write = |text: &str| format!("{{write: {{path: a.txt, text: \"{text}\"}}}}");
    let contains = r#"{type: run_command, command: cat a.txt, expected_stdout: "total: 6\n", stdout_match: contains}"#;
    let lines = r#"{type: run_command, command: cat a.txt, expected_stdout: "a\nb", stdout_match: contains}"#;
    for (criteria, good, bad) in [
        (contains, write(r"total: 6 (of 3 numbers)\n"), write(r"total: 5\n")),
        (lines, write(r"xa\r\nb\r\n"), write(r"ab\r\n")),
        (r#"{type: file_contains, path: a.txt, includes: ["a\nb", c]}"#, write(r"a\r\nbc"), write(r"abc")),
        (
            "{type: file_matches_regex, path: a.txt, pattern: 'TODO$', flags: 8}",
            write(r"TODO\r\n\r\n"),
            write(r"TODO x\r\n"),
        ),
        (r"{type: file_matches_regex, path: a.txt, pattern: 'a\n\nb'}", write(r"a\r\n\r\nb"), write(r"a\r\nb")),
    ] {
        let project = coder_eval(&format!("[{criteria}]"), "");
        convert(&project, "coder-eval", "tasks", &[]).exits(0);
        decides(&project, "tasks/sum-up", &good, &bad);
    }
    for (criterion, said) in [
        (
            "{type: classification_match, path: a.txt, expected_label: urgent, allowed_labels: [high, low]}",
            "it is not one of `allowed_labels`",
        ),
        (r#"{type: file_contains, path: a.txt, includes: ["a\r\nb"]}"#, "it never finds a carriage return"),
    ] {
        let project = coder_eval(&format!("[{{type: file_exists, path: a.txt}}, {criterion}]"), "");
        convert(&project, "coder-eval", "tasks", &[]).exits(0).says(said);
    }
}

#[test]
fn a_call_without_a_command_leaves_what_it_could_change_ungraded() {
    let case = |criteria: &str| {
        let project = coder_eval(&format!("[{criteria}]"), "");
        convert(&project, "coder-eval", "tasks", &[]).exits(0);
        project
    };
    let vally = |grader: &str| {
        let project = vally(&format!("[{{type: tool-calls, config: {grader}}}]"), "");
        convert(&project, "vally", "evals", &[]).exits(0);
        project
    };
    let (unseen, seen, other) = (
        r#"{"kind":"execute","name":"run_commands","input":{"commands":["cat x"]}}"#,
        r#"{"kind":"execute","name":"bash","input":{"command":"cat x"}}"#,
        r#"{"kind":"read","name":"read","input":{"path":"x"}}"#,
    );
    let none = "{type: command_executed, tool_name: Bash, command_pattern: cat, min_count: 0, max_count: 0}";
    let not = "{type: command_not_executed, tool_name: Bash, command_pattern: cat}";
    let one = "{type: command_executed, tool_name: Bash, command_pattern: cat}";
    let excluded = "{type: command_executed, tool_name: Bash, exclude_pattern: cat}";
    let (disallowed, required) = ("{disallowed: [{command: cat}]}", "{required: [{command: cat}]}");
    for (project, file, calls, code) in [
        (case(none), "tasks/sum-up", vec![unseen], 3),
        (case(none), "tasks/sum-up", vec![unseen, seen], 1),
        (case(none), "tasks/sum-up", vec![other], 0),
        (case(not), "tasks/sum-up", vec![unseen], 3),
        (case(one), "tasks/sum-up", vec![unseen], 3),
        (case(one), "tasks/sum-up", vec![unseen, seen], 0),
        (case(one), "tasks/sum-up", vec![other], 1),
        (case(excluded), "tasks/sum-up", vec![unseen], 3),
        (case(excluded), "tasks/sum-up", vec![seen], 1),
        (vally(disallowed), "sums/one-two", vec![unseen], 3),
        (vally(disallowed), "sums/one-two", vec![unseen, seen], 1),
        (vally(disallowed), "sums/one-two", vec![other], 0),
        (vally(required), "sums/one-two", vec![unseen, seen], 0),
        (vally(required), "sums/one-two", vec![other], 1),
    ] {
        project.write("t.jsonl", &trace_of(&calls));
        let path = format!("out/cases/{file}.yaml");
        let ran = project.evals(&["grade", "t.jsonl", "--case", &path]);
        assert_eq!(ran.code, code, "{calls:?}\n{}\n{}\n{}", project.read(&path), ran.out, ran.err);
    }
}

#[test]
fn a_task_of_coder_eval_keeps_its_settings_and_has_a_case_for_each_row() {
    let rest = "tags: [smoke, 'lifecycle:generate']\npre_run: [{command: cp b/in.txt c.txt}, {command: 'false', fail_on_error: \
                false}]\npost_run: [{command: rm c.txt}]\ndataset: {rows: [{id: one, want: in}, {id: two, want: out}]}\n";
    let criteria = "[{type: file_contains, path: c.txt, includes: ['${row.want}'], description: 'has ${row.want}'}]";
    let project = coder_eval(criteria, rest);
    let ran = convert(&project, "coder-eval", "tasks/sum.yaml", &[]).exits(0);
    let ran = ran.says("sum.yaml:4: `agent.permission_mode`: left out");
    ran.says("`post_run`: left out: the commands run after the verdict");
    let case = project.read("out/cases/sum/sum-up-one.yaml");
    for part in [
        "- smoke\n- lifecycle:generate\n",
        "steps: 8\n",
        "time: 60s\n",
        "name: has in\n",
        "setup:\n  - cp b/in.txt c.txt\n",
    ] {
        assert!(case.contains(part), "{part:?} is not in\n{case}");
    }
    project.evals(&["check", "out/cases"]).exits(0);
    assert_eq!((plays(&project, "sum/sum-up-one", "say: x"), plays(&project, "sum/sum-up-two", "say: x")), (0, 1));
}

#[test]
fn values_of_rows_of_coder_eval_have_the_text_that_python_writes() {
    let criteria = "[{type: file_contains, path: a.txt, includes: [x], description: 'has ${row.v}.'}]";
    let of = |value: &str| {
        let project = coder_eval(criteria, &format!("dataset: {{rows: [{{id: a, v: {value}}}]}}\n"));
        let ran = convert(&project, "coder-eval", "tasks", &[]);
        (project, ran)
    };
    for (value, text) in [
        ("true", "True"),
        ("yes", "True"),
        ("'yes'", "yes"),
        ("Off", "False"),
        ("010", "8"),
        ("\"010\"", "010"),
        ("1_000", "1000"),
        ("1:30", "90"),
        ("1e3", "1e3"),
        ("0o17", "0o17"),
        ("0x1F", "31"),
        ("1.50", "1.5"),
        ("1.0e+22", "1e+22"),
        ("12345678901234567890", "12345678901234567890"),
        ("2024-01-01", "2024-01-01"),
        ("null", ""),
        // What a row puts in is not filled again.
        ("'${row.id}'", "${row.id}"),
    ] {
        let (project, ran) = of(value);
        ran.exits(0);
        let case = project.read("out/cases/tasks/sum-up-a.yaml");
        assert!(case.contains(&format!("has {text}.")), "{value}: {case}");
    }
    for (value, said) in [
        (".inf", "the source reads `.inf` as another value"),
        ("2024-01-01 10:00:00", "the source reads `2024-01-01 10:00:00` as another value"),
        ("[x]", "the value is a list or a map"),
        (
            "x, w: y}, {id: b",
            "`dataset.rows[1].v`: no case was written for `Sum_Up b`: `${row.v}`: the row has no such",
        ),
    ] {
        let (project, ran) = of(value);
        ran.says("sum.yaml:11: `dataset.rows[").says(said);
        assert_eq!(project.path("out/cases/tasks/sum-up-a.yaml").exists(), value.contains("id: b"), "{value}");
    }
    // The rows of a file, and the text of a file.
    let task = "task_id: Sum_Up\ndescription: Sums.\ninitial_prompt_file: prompt.md\nagent: {type: claude-code}\n\
                success_criteria: [{type: file_exists, path: '${row.w}'}]\ndataset: {paths: [rows.jsonl]}\n";
    let rows = "{\"id\": \"a\", \"v\": true, \"w\": 1.0}\n{\"id\": \"b\", \"v\": 1e22, \"w\": \"x\"}\n";
    let project = Project::with(&[
        ("tasks/sum.yaml", task),
        ("tasks/prompt.md", "Say ${row.v} and ${row.v-w}.\n"),
        ("tasks/rows.jsonl", rows),
    ]);
    let ran = convert(&project, "coder-eval", "tasks", &[]).exits(0);
    ran.says("`dataset.paths`: no case was written for `Sum_Up b`: `${row.v}`: the digits of the number");
    let case = project.read("out/cases/tasks/sum-up-a.yaml");
    assert!(case.contains("Say True and ${row.v-w}.") && case.contains("1.0"), "{case}");
}

#[test]
fn what_coder_eval_has_and_a_case_has_not_is_listed_with_its_line() {
    for (criterion, said) in [
        (
            "{type: json_check, path: a.json}",
            "sum.yaml:10: `success_criteria[1].type`: the criterion `json_check` has no equivalent: no grader evaluates JMESPath",
        ),
        ("{type: agent_judge, prompt: Is it good?}", "the judge is an agent with tools"),
        (r"{type: command_executed, tool_name: Bash, command_pattern: '\<p\>'}", "`\\<` means something else here"),
        ("{type: cli_called, tool: uip}", "it reads the log of a replaced program"),
        ("{type: reference_comparison, agent_file: a, reference_file: b}", "it compares syntax trees"),
        ("{type: other}", "the type is not known"),
        ("{type: file_exists, path: a, patten: b}", "`success_criteria[1].patten`"),
        ("{type: file_exists, path: a, pass_threshold: 0}", "with 0 it passes for everything"),
        ("{type: run_command, command: a, score_from_stdout: true}", "the command prints a score"),
        (
            "{type: run_command, command: 'cat $REFERENCE_DIR/a'}",
            "it reads files in `$REFERENCE_DIR`; put them into `hidden`",
        ),
        ("{type: run_command, command: 'cat $TASK_DIR/../a'}", "it reads files in `$TASK_DIR`; put them into `hidden`"),
        (
            "{type: command_executed, tool_name: Read, command_pattern: a}",
            "the input of other tools has another form here",
        ),
        ("{type: command_executed, tool_name: Bash, min_count: 0}", "it accepts any number of calls"),
        (
            "{type: llm_judge, prompt: a, files: [$REFERENCE_DIR/r.md]}",
            "the judge reads files that only the source has",
        ),
    ] {
        let project = coder_eval(&format!("[{{type: file_exists, path: a}}, {criterion}]"), "");
        convert(&project, "coder-eval", "tasks", &[]).exits(0).says(said);
        let project = coder_eval(&format!("[{criterion}]"), "");
        let said = "none of the criteria that decide it has an equivalent";
        convert(&project, "coder-eval", "tasks", &[]).exits(2).says(said);
    }
    // A value of another type is not replaced by a default, which would make another criterion.
    for (criterion, key, said) in [
        ("{type: file_check, path: a, includes: [x], patterns: b}", "patterns", "this is not a list"),
        (
            "{type: file_check, path: a, patterns: [{pattern: b, must_match: 'no'}]}",
            "patterns[0].must_match",
            "true or false",
        ),
        ("{type: file_matches_regex, path: a, pattern: b, must_match: 0}", "must_match", "this is not true or false"),
        ("{type: run_command, command: a, expected_stdout: [x]}", "expected_stdout", "this is not a text"),
        ("{type: run_command, command: a, expected_stdout: x, stdout_match: 1}", "stdout_match", "this is not a text"),
        (
            "{type: run_command, command: a, expected_exit_code: '1'}",
            "expected_exit_code",
            "this is not a whole number",
        ),
        (
            "{type: run_command, command: a, score_from_stdout: 'true'}",
            "score_from_stdout",
            "this is not true or false",
        ),
        ("{type: run_command, command: a, timeout: 1e19}", "timeout", "this is not a number of seconds"),
        ("{type: command_executed, tool_name: [Bash]}", "tool_name", "this is not a text"),
        ("{type: command_executed, tool_name: Bash, command_pattern: 1}", "command_pattern", "this is not a text"),
        ("{type: command_executed, tool_name: Bash, require_success: 'yes'}", "require_success", "this is not true or"),
        ("{type: skill_triggered, skill_name: a, expected_skill: [a]}", "expected_skill", "this is not a text"),
        ("{type: llm_judge, prompt: a, pass_threshold: '0.9'}", "pass_threshold", "this is not a number from 0"),
        ("{type: llm_judge, prompt: a, enabled: 'false'}", "enabled", "this is not true or false"),
        ("{type: file_exists, path: a, pass_threshold: '0.5'}", "pass_threshold", "this is not a number from 0"),
    ] {
        let project = coder_eval(&format!("[{{type: file_exists, path: a}}, {criterion}]"), "");
        let ran = convert(&project, "coder-eval", "tasks", &[]).exits(0).says(said);
        ran.says(&format!("sum.yaml:10: `success_criteria[1].{key}`"));
    }
    // Python itself matches a pattern of a file that means something else here.
    let project = coder_eval(r"[{type: file_matches_regex, path: a, pattern: '\<p\>'}]", "");
    convert(&project, "coder-eval", "tasks", &[]).exits(0);
    let case = project.read("out/cases/tasks/sum-up.yaml");
    assert!(case.contains("python3") && !case.contains("matches:"), "{case}");
    // A share that is enough in the source is noted, as here all texts are required.
    let list: Vec<String> = (0..12).map(|n| format!("w{n}")).collect();
    let criterion = format!("[{{type: file_contains, path: a, includes: [{}]}}]", list.join(", "));
    convert(&coder_eval(&criterion, ""), "coder-eval", "tasks", &[])
        .exits(0)
        .says("stricter: the source accepts a share");
    for (rest, said) in [
        ("skip: true\n", "sum.yaml:11: `skip`: no case was written for `Sum_Up`: the source skips it"),
        ("simulation: {enabled: true, persona: a, goal: b}\n", "a model plays the user"),
        ("dataset: {rows: [{name: a}]}\n", "a row has no `id`"),
        ("dataset: {rows: [{id: a}], id_field: [id]}\n", "sum.yaml:11: `dataset.id_field`: no case was written"),
        ("skip: 'true'\n", "`skip`: no case was written for `Sum_Up`: this is not true or false"),
        ("pre_run: make\n", "`pre_run`: no case was written for `Sum_Up`: this is not a list"),
        ("pre_run: [{command: a, fail_on_error: 'no'}]\n", "this is not true or false"),
        ("simulation: 5\n", "`simulation`: no case was written for `Sum_Up`: this is not a map"),
        ("dataset: {paths: [rows.jsonl]}\n", "the file `rows.jsonl` does not exist"),
    ] {
        let project = coder_eval("[{type: file_exists, path: a}]", rest);
        convert(&project, "coder-eval", "tasks", &[]).exits(2).says(said);
    }
    for (from, to, said) in [
        ("driver: tempdir", "driver: docker", "it needs its container"),
        ("driver: tempdir", "record_cli: [{tool: uip}]", "it replaces programs on the PATH of the agent"),
        ("type: claude-code,", "type: none,", "no agent runs"),
        ("type: starter_files", "type: repo, url: x", "write `workspace.git`"),
        // The folder of the task holds its criteria.
        ("type: starter_files", "type: template_dir", "it has no `path`"),
        ("type: starter_files", "type: template_dir, path: ''", "it has no `path`"),
        ("path: b/in.txt", "path: ../in.txt", "leads out of its folder"),
    ] {
        let project = coder_eval("[{type: file_exists, path: a}]", "");
        project.write("tasks/sum.yaml", &project.read("tasks/sum.yaml").replace(from, to));
        convert(&project, "coder-eval", "tasks", &[]).exits(2).says(said);
    }
    let project = Project::with(&[("a.yaml", "experiment_id: a\n")]);
    convert(&project, "coder-eval", "a.yaml", &[]).exits(2).says("this is not a task of coder-eval");
    let project = coder_eval("[{type: file_exists, path: a}]", "");
    convert(&project, "vally", "tasks/sum.yaml", &[]).exits(2).says("use --from coder-eval");
}

#[test]
fn a_task_of_coder_eval_whose_template_cannot_be_copied_does_not_stop_the_others() {
    let task = |id: &str, templates: &str| {
        format!(
            "task_id: {id}\ndescription: d\ninitial_prompt: Do it.\nagent: {{type: claude-code}}\nsandbox:\n  \
             template_sources: [{templates}]\nsuccess_criteria: [{{type: file_exists, path: src/a.py}}]\n"
        )
    };
    let folder = "{type: template_dir, path: ../tpl}";
    let good = task("good", folder);
    let file = task("file", "{type: template_dir, path: ../tpl/src/a.py}");
    let both = task("both", &format!("{folder}, {{type: starter_files, files: [{{path: src, content: x}}]}}"));
    let project = Project::with(&[
        ("tasks/good.yaml", good.as_str()),
        ("tasks/file.yaml", file.as_str()),
        ("tasks/both.yaml", both.as_str()),
        ("tpl/src/a.py", "a"),
    ]);
    let ran = convert(&project, "coder-eval", "tasks", &[]).exits(0);
    let ran = ran.says("file.yaml:6: `sandbox.template_sources[0]`: no case was written for `file`");
    let ran = ran.says("`../tpl/src/a.py` cannot be copied: this is not a folder");
    let ran = ran.says("both.yaml:6: `sandbox.template_sources`: no case was written for `both`");
    ran.says("`src` is a file in one template and a folder in another");
    assert_eq!(project.read("out/cases/tasks/good.workspace/src/a.py"), "a");
    assert!(!project.path("out/cases/tasks/file.yaml").exists() && !project.path("out/cases/tasks/both.yaml").exists());
}

#[test]
fn folders_and_files_that_are_not_searched_are_named() {
    let deep: Vec<String> = (1..=10).map(|level| level.to_string()).collect();
    let deep = deep.join("/");
    let project = vally("[{type: output-contains, config: {substring: yes}}]", "");
    for (format, file) in [
        ("promptfoo", "promptfooconfig.yaml"),
        ("harbor", "task.toml"),
        ("terminal-bench", "task.yaml"),
        ("touchstone", "case.yaml"),
        ("vally", "eval.yaml"),
        ("coder-eval", "task.yaml"),
        ("claude-plugin", "prompt.md"),
    ] {
        project.write(&format!("deep/{format}/{deep}/{file}"), "x\n");
        let ran = convert(&project, format, &format!("deep/{format}"), &[]).exits(2);
        ran.says("folders deeper than 8 levels are not searched");
    }
    project.write(&format!("evals/{deep}/eval.yaml"), "x\n");
    std::fs::write(project.path("evals/other.yaml"), b"stimuli:\n  - \xff\n").unwrap();
    let ran = convert(&project, "vally", "evals", &[]).exits(0).says("1 case");
    let ran = ran.says("folders deeper than 8 levels are not searched");
    ran.says("evals/other.yaml:2: no case was written: the file is not UTF-8");
    // Root may read the folder.
    let closed = project.path("evals/closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read_dir(&closed).is_err() {
        convert(&project, "vally", "evals", &[]).exits(0).says("evals/closed: the folder could not be read");
    }
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o755)).unwrap();
}

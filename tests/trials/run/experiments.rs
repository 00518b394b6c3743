//! Experiments: arms that differ in what a file names, what their agents get, and what is refused before anything starts.

use serde_json::Value;

use crate::project::{Project, bubblewrap};

/// An agent that prints what it got: its prompt, arguments, a variable, and every file in its folder and its home.
const PROBE: &str = r#"
adapter: output-only
command: [sh, -c, 'echo "prompt=$1"; shift; echo "args=$*"; echo "speed=$SPEED"; find . -type f | sort; cd "$HOME" && find .x -type f 2>/dev/null | sort | sed "s/^/home:/"; cat "$HOME/.x/X.md" 2>/dev/null; true', sh, "{prompt}"]
prompt-via: argument
model: {via: env, env: ASKED}
skills: {project: .x/skills, user: .x/skills}
instructions: {project: X.md, user: .x/X.md}
"#;

fn project(experiment: &str) -> Project {
    let project = Project::new();
    project.harness("probe", PROBE);
    project.case("a", "graders: [{output: {contains: prompt}}]", "");
    for name in ["changelog", "release"] {
        project.write(
            &format!("skills/{name}/SKILL.md"),
            &format!("---\nname: {name}\ndescription: Does it.\n---\nDo it.\n"),
        );
    }
    project.write("experiments/x.yaml", experiment);
    project
}

fn run(project: &Project, more: &[&str]) -> crate::project::Ran {
    let mut args = vec!["run", "--experiment", "experiments/x.yaml"];
    args.extend(more);
    project.evals(&args)
}

fn answer(project: &Project, trial: &str) -> String {
    let trace = project.of_trial(trial, "trace.jsonl");
    let events = trace.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter_map(|event| event["output"].as_str().map(str::to_owned)).next_back().unwrap_or_default()
}

fn record(project: &Project) -> Value {
    serde_json::from_str(&project.read(&format!("{}/run.json", project.run_folder()))).unwrap()
}

const EVERYTHING: &str = "
cases: [../cases]
harness: probe
env: {SPEED: '1'}
vary: [skills, instructions, env, prompt, args, files, model]
baseline: without
variants:
  with:
    skills: [../skills/changelog, {path: ../skills/release, in: project}]
    instructions: {text: 'Be brief.'}
    env: {SPEED: '2'}
    prompt: 'First {prompt} Last'
    args: [--deep]
    model: m
    files: {'notes/one.txt': one}
  without: {}
";

#[test]
fn an_arm_gets_what_it_overrides_and_nothing_of_the_others() {
    let project = project(EVERYTHING);
    let ran = run(&project, &[]).exits(0).says("interleaved in an order drawn from seed");
    ran.says("not verified: which instruction files were loaded");
    let with = answer(&project, "a/probe/with/1");
    for part in [
        "prompt=First Do it.",
        "Last",
        "args=--deep",
        "speed=2",
        "./notes/one.txt",
        "./.x/skills/release/SKILL.md",
        "home:.x/skills/changelog/SKILL.md",
        "Be brief.",
    ] {
        assert!(with.contains(part), "{part}: {with}");
    }
    let without = answer(&project, "a/probe/without/1");
    assert!(without.contains("speed=1") && !without.contains(".x/") && !without.contains("--deep"), "{without}");
    // What was laid is no change of the agent's.
    assert_eq!(project.of_trial("a/probe/with/1", "workspace.patch"), "");
    let result = project.result("a/probe/with/1");
    assert_eq!((&result["arm"], &result["model"]["requested"]), (&"with".into(), &"m".into()));
    let record = record(&project);
    assert_eq!(record["experiment"]["baseline"], "without");
    let arms = record["arms"].as_array().unwrap();
    assert_eq!((&arms[0]["name"], &arms[1]["name"]), (&"without".into(), &"with".into()));
    assert_eq!((&arms[1]["harness"], &arms[1]["model"]), (&"probe".into(), &"m".into()));
    assert_eq!(arms[1]["sources"].as_object().unwrap().len(), 2, "{record}");
    assert!(arms[1]["overrides"]["skills"][0]["digest"].is_string());
    let journal = project.read(&format!("{}/journal.jsonl", project.run_folder()));
    let line: Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
    assert!(["with", "without"].contains(&line["arm"].as_str().unwrap()), "{line}");
    let compared = project.evals(&["compare", "--format", "json"]).json();
    assert_eq!(
        (&compared["pairs"][0]["old"], &compared["pairs"][0]["new"]),
        (&"probe / without".into(), &"probe / with".into())
    );
    // An arm has its name, and a model only if one was asked for.
    let told = |arm: usize| ["name", "arm", "model"].map(|key| compared["arms"][arm][key].as_str());
    assert_eq!(told(0), [Some("probe / without"), Some("without"), None]);
    assert_eq!(told(1), [Some("probe / with"), Some("with"), Some("m")]);
}

#[test]
#[ignore = "slow: runs many trials"]
fn trials_are_interleaved_by_the_seed() {
    let order = |seed: &str| {
        let project =
            project("cases: [../cases]\nharness: probe\nvary: [env]\nvariants: {a: {}, b: {env: {SPEED: '1'}}}\n");
        run(&project, &["--trials", "8", "--seed", seed, "--jobs", "1"]).exits(0);
        let journal = project.read(&format!("{}/journal.jsonl", project.run_folder()));
        let lines = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let started = lines.filter(|line| line["event"] == "started");
        started
            .map(|line| (line["trial"].as_u64().unwrap(), line["arm"].as_str().unwrap().to_owned()))
            .collect::<Vec<_>>()
    };
    let one = order("7");
    assert_eq!(one, order("7"));
    assert_ne!(one, order("8"));
    // Round by round: both arms run a trial before either runs its next one.
    assert_eq!(
        one.iter().map(|(trial, _)| *trial).collect::<Vec<_>>(),
        (1..=8).flat_map(|n| [n, n]).collect::<Vec<_>>()
    );
    let firsts: Vec<&str> = one.chunks(2).map(|round| round[0].1.as_str()).collect();
    assert!(firsts.contains(&"a") && firsts.contains(&"b"), "{firsts:?}");
}

#[test]
#[ignore = "slow: runs many trials"]
fn what_is_wrong_is_told_at_its_place_before_anything_starts() {
    let head = "cases: [../cases]\nharness: probe\n";
    let wrong: &[(&str, &[&str])] = &[
        (
            "vary: [skills]\nvariants:\n  a: {}\n  b: {skills: [../skills/gone]}\n",
            &[":6:16:", "is not a skill", "does not exist"],
        ),
        ("vary: [skills]\nvariants:\n  a: {}\n  b: {skills: [../cases]}\n", &[":6:16:", "contains no SKILL.md"]),
        ("vary: [skills]\nvariants:\n  a: {}\n  b: {}\n", &[":6:3:", "`a` and `b` resolve to the same arm"]),
        (
            "vary: [skills]\nvariants:\n  a: {}\n  b: {model: x, skills: [../skills/release]}\n",
            &[
                ":6:14:",
                "`model` of `b` differs from the baseline `a`",
                "`x` in `b`, not set in `a`",
                "add `model` to `vary`",
            ],
        ),
        ("variants:\n  a: {}\n  b: {model: x}\n", &["`vary` does not list it"]),
        ("vary: [model]\nbaseline: c\nvariants:\n  a: {}\n  b: {model: x}\n", &[":4:11:", "no variant is named `c`"]),
        ("vary: [modle]\nvariants:\n  a: {}\n  b: {model: x}\n", &[":3:8:", "did you mean `model`?"]),
        ("vary: [model]\nvariants:\n  a: {}\n  b: {modle: x}\n", &[":6:7:", "modle"]),
        (
            "vary: [harness]\nvariants:\n  a: {}\n  b: {harness: prob}\n",
            &[":6:16:", "no harness is named `prob`", "probe"],
        ),
        (
            "vary: [mcp-servers]\nvariants:\n  a: {}\n  b: {mcp-servers: {s: {command: x}}}\n",
            &[":6:", "cannot take the variant `b`", "MCP"],
        ),
        ("vary: [session-mode]\nvariants:\n  a: {}\n  b: {session-mode: plan}\n", &[":6:", "has no modes"]),
        ("vary: [instructions]\nvariants:\n  a: {}\n  b: {instructions: gone.md}\n", &[":6:", "is not a file"]),
        ("vary: [files]\nvariants:\n  a: {}\n  b: {files: {'../x': y}}\n", &[":6:", "leads out of its folder"]),
        ("vary: [prompt]\nvariants:\n  a: {}\n  b: {prompt: nothing}\n", &[":6:", "contains `{prompt}`"]),
        ("matrix: {model: []}\n", &[":3:", "the axis `model` has no value"]),
        ("matrix: {model: [a, b]}\nvariants: {a: {}}\n", &["both `variants` and `matrix`"]),
        ("matrix: {skills: [[x], [y]]}\n", &["need labels"]),
        ("vary: [model]\nvariants:\n  a: {}\n  'b#2': {model: x}\n", &[":6:3:", "ends in `#` and a number"]),
        ("description: none\n", &["neither `variants` nor `matrix`"]),
    ];
    for (text, says) in wrong {
        let project = project(&format!("{head}{text}"));
        for part in *says {
            run(&project, &[]).exits(2).says(part);
            // Without the keys of an experiment, the file would be a case.
            if !part.contains("neither") {
                project.evals(&["check", "experiments/x.yaml"]).exits(2).says(part);
            }
        }
        assert!(!project.path(".evals/runs").exists());
    }
}

#[test]
fn content_decides_what_is_the_same_wherever_it_lies() {
    let text = "harness: probe\nvary: [skills]\nvariants:\n  a: {skills: [../skills/changelog]}\n  b: {skills: [../copy/changelog]}\n";
    let project = project(text);
    project.write("copy/changelog/SKILL.md", &project.read("skills/changelog/SKILL.md"));
    run(&project, &["cases"]).exits(2).says("resolve to the same arm");
    project.write("copy/changelog/SKILL.md", "---\nname: changelog\ndescription: Does it.\n---\nDo it well.\n");
    run(&project, &["cases"]).exits(0);
    // Laid, the two have the same path.
    assert!(answer(&project, "a/probe/b/1").contains("home:.x/skills/changelog/SKILL.md"));
}

#[test]
fn a_matrix_is_every_combination_and_shows_the_effect_of_each_axis() {
    let text = "cases: [../cases]\nharness: probe\nmatrix:\n  model: [m, n]\n  skills: {none: [], changelog: [../skills/changelog]}\n";
    let project = project(text);
    project.case("a", "graders: [{output: {contains: changelog}}]", "");
    project.case("b", "graders: [{output: {contains: changelog}}]", "");
    run(&project, &["--trials", "2"]).exits(1);
    let record = record(&project);
    let names: Vec<&str> = record["arms"].as_array().unwrap().iter().map(|arm| arm["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["model=m,skills=none", "model=m,skills=changelog", "model=n,skills=none", "model=n,skills=changelog"]
    );
    assert_eq!(project.result("a/probe/model%3Dn%2Cskills%3Dnone/2")["model"]["requested"], "n");
    let compared = project.evals(&["compare", "--format", "json"]).json();
    let axes = compared["axes"].as_array().unwrap();
    let of = |axis: &str| axes.iter().find(|it| it["axis"] == axis).unwrap();
    assert_eq!((&of("skills")["delta"], &of("skills")["cases"]), (&1.0.into(), &2.into()), "{axes:?}");
    assert_eq!(of("model")["delta"], 0.0);
    project.evals(&["compare"]).says("skills: changelog instead of none, averaged over the other axes: +100.0 pp");
}

#[test]
fn an_axis_may_have_one_value() {
    let text = "cases: [../cases]\nharness: probe\nmatrix:\n  model: [m]\n  skills: {none: [], changelog: [../skills/changelog]}\n";
    let project = project(text);
    project.evals(&["check", "experiments/x.yaml"]).exits(0);
    run(&project, &[]).exits(0);
    let record = record(&project);
    let names: Vec<&str> = record["arms"].as_array().unwrap().iter().map(|arm| arm["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["model=m,skills=none", "model=m,skills=changelog"]);
    let compared = project.evals(&["compare", "--format", "json"]).json();
    let axes: Vec<&Value> = compared["axes"].as_array().unwrap().iter().map(|effect| &effect["axis"]).collect();
    assert_eq!(axes, ["skills"]);
}

#[test]
fn a_matrix_of_more_combinations_than_a_number_holds_is_refused() {
    // 32 values of each of 13 keys: 2^65 combinations.
    let keys = [
        "harness: probe",
        "model: m",
        "skills: []",
        "instructions: {text: x}",
        "mcp-servers: []",
        "system-prompt: x",
        "env: {}",
        "session-mode: x",
        "interaction: auto-approve",
        "files: {}",
        "args: []",
        "command: [x]",
        "limits: {}",
    ];
    let axis = |key: &&str| {
        let (key, value) = key.split_once(": ").unwrap();
        let values: Vec<String> = (0..32).map(|number| format!("v{number}: {value}")).collect();
        format!("  {key}: {{{}}}\n", values.join(", "))
    };
    let axes: String = keys.iter().map(axis).collect();
    let project = project(&format!("cases: [../cases]\nmatrix:\n{axes}"));
    run(&project, &["--dry-run"]).exits(2).says("the matrix has too many combinations; at most 256 are allowed");
}

#[test]
fn a_changed_skill_stops_resume_and_is_not_believed_in_grading() {
    let text = "cases: [../cases]\nharness: probe\nvary: [skills]\nvariants: {a: {}, b: {skills: [{path: ../skills/changelog, in: project}]}}\n";
    let project = project(text);
    run(&project, &[]).exits(0);
    let folder = project.run_folder();
    let id = folder.rsplit('/').next().unwrap().to_owned();
    project.evals(&["grade", &id]).exits(0);
    project.write("skills/changelog/SKILL.md", "---\nname: changelog\ndescription: Other.\n---\nOther.\n");
    project.evals(&["run", "--resume", &id]).exits(2).says("`variant b` changed").says("--changed keep");
    project.evals(&["run", "--resume", &id, "--changed", "keep"]).exits(0);
    project.evals(&["run", "--resume", &id, "--changed", "rerun"]).exits(0);
    let attempts = |arm: &str| project.path(&format!("{folder}/trials/a/probe/{arm}/1/attempts/1")).exists();
    assert!(attempts("b") && !attempts("a"), "only the trials of the changed arm run again");
    std::fs::remove_file(project.path("experiments/x.yaml")).unwrap();
    project.evals(&["run", "--resume", &id]).exits(2).says("experiments/x.yaml");
    project.evals(&["grade", &id]).says("cannot be read as it was");
}

#[test]
fn a_skill_that_changes_while_trials_run_ends_them() {
    let text =
        "cases: [../cases]\nharness: probe\nvary: [skills]\nvariants: {a: {}, b: {skills: [../skills/changelog]}}\n";
    let project = project(text);
    let skill = project.path("skills/changelog/SKILL.md");
    // The first trial changes the skill of the other arm, whatever the order is.
    let spoil =
        PROBE.replace("echo \"prompt=$1\"", &format!("echo spoiled >> {}; echo \"prompt=$1\"", skill.display()));
    project.harness("probe", &spoil);
    run(&project, &["--jobs", "1"]).exits(3);
    let results = ["a", "b"].map(|arm| project.result(&format!("a/probe/{arm}/1")));
    let wrong = results.iter().filter(|result| result["error"]["category"] == "setup");
    assert!(wrong.clone().count() >= 1, "{results:?}");
    assert!(
        wrong.clone().all(|it| it["error"]["message"].as_str().unwrap().contains("skills/changelog")),
        "{results:?}"
    );
}

#[test]
fn variants_of_the_command_line_need_no_file() {
    let project = project("");
    project.write("more.yaml", "env: {SPEED: '3'}\nskills: [skills/release]\n");
    let args = [
        "run",
        "cases",
        "--harness",
        "probe",
        "--variant",
        "old=",
        "--variant",
        "new=more.yaml",
        "--variant",
        "fast={env: {SPEED: '9'}}",
    ];
    project.evals(&args).exits(0);
    assert!(answer(&project, "a/probe/new/1").contains("speed=3"));
    assert!(answer(&project, "a/probe/fast/1").contains("speed=9"));
    let record = record(&project);
    assert_eq!(record["experiment"]["baseline"], "old");
    assert_eq!(record["experiment"]["vary"], serde_json::json!(["skills", "env"]));
    let id = project.run_folder().rsplit('/').next().unwrap().to_owned();
    project.evals(&["run", "--resume", &id]).exits(0);
    project.evals(&["run", "--variant", "x={modle: 1}"]).exits(2).says("--variant x:1:2").says("did you mean `model`?");
    project.evals(&["run", "--variant", "x"]).exits(2).says("is not NAME=YAML or NAME=FILE");
    project.evals(&["run", "cases", "--harness", "probe", "--variant", "x={}"]).exits(0).says("only the variant `x`");
    project.write("experiments/x.yaml", EVERYTHING);
    run(&project, &["--model", "m"]).exits(2).says("cannot be used with");
}

#[test]
fn a_dry_run_says_what_differs_and_what_it_could_detect() {
    let project = project(EVERYTHING);
    run(&project, &["--dry-run"])
        .exits(0)
        .says("baseline: without")
        .says("skills: changelog (")
        .says("env: `{\"SPEED\":\"2\"}` instead of `{\"SPEED\":\"1\"}`")
        .says("minimum detectable effect at 80 % power")
        .says("detecting 5.0 pp needs");
    assert!(!project.path(".evals/runs").exists());
}

#[test]
fn a_dry_run_counts_each_stored_trial_of_the_present_cases_once() {
    let text =
        "cases: [../cases]\nharness: odd\ntrials: 2\nvary: [env]\nvariants: {a: {env: {V: a}}, b: {env: {V: b}}}\n";
    let project = project(text);
    // The first trial of each cell passes, and the second one fails.
    let made = project.path("made-");
    let odd = format!("mkdir {}$CASE$V 2>/dev/null && echo ok || echo no", made.display());
    project.harness("odd", &format!("adapter: output-only\ncommand: [sh, -c, '{odd}']\nprompt-via: stdin\n"));
    for id in ["a", "b"] {
        project.case(id, &format!("env: {{CASE: {id}}}\ngraders: [{{output: {{contains: ok}}}}]"), "");
    }
    for (shard, label) in [("1/2", "one"), ("2/2", "two")] {
        run(&project, &["--shard", shard, "--label", label]).exits(1);
    }
    project.evals(&["merge", "one", "two", "--label", "all"]);
    project.evals(&["run", "--resume", "all", "--rerun", "failed"]).exits(1);
    let folder = project.run_named("all");
    crate::project::copy(&project.path(&folder), &project.path(&format!("{folder}-copy")));
    run(&project, &["--dry-run"]).exits(0).says("by the scores of 8 trials in stored runs");
    project.case("a", "env: {CASE: a}\ngraders: [{output: {contains: o}}]", "");
    run(&project, &["--dry-run"]).exits(0).says("by the scores of 4 trials in stored runs");
}

#[test]
fn a_dry_run_counts_the_trials_of_two_damaged_copies_once() {
    let text =
        "cases: [../cases]\nharness: odd\ntrials: 2\nvary: [env]\nvariants: {a: {env: {V: a}}, b: {env: {V: b}}}\n";
    let project = project(text);
    let made = project.path("made-");
    let odd = format!("mkdir {}$V 2>/dev/null && echo ok || echo no", made.display());
    project.harness("odd", &format!("adapter: output-only\ncommand: [sh, -c, '{odd}']\nprompt-via: stdin\n"));
    project.case("a", "graders: [{output: {contains: ok}}]", "");
    run(&project, &[]).exits(1);
    let folder = project.run_folder();
    let copy = format!("{folder}-copy");
    crate::project::copy(&project.path(&folder), &project.path(&copy));
    // The result of another trial is lost in each folder.
    for (folder, trial) in [(&folder, 1), (&copy, 2)] {
        std::fs::remove_file(project.path(&format!("{folder}/trials/a/odd/a/{trial}/result.json"))).unwrap();
        std::fs::remove_file(project.path(&format!("{folder}/results.jsonl"))).unwrap();
    }
    run(&project, &["--dry-run"]).exits(0).says("by the scores of 4 trials in stored runs");
}

#[test]
fn a_dry_run_has_the_price_of_the_planned_harnesses_alone_and_names_those_without() {
    let text =
        "cases: [../cases]\nharness: probe\ntrials: 2\nvary: [env]\nvariants: {a: {env: {V: a}}, b: {env: {V: b}}}\n";
    let project = project(text);
    project.case("a", "graders: [{output: {contains: o}}]", "steps: [{usage: {cost-usd: 9}}, {say: yes or no}]");
    project.evals(&["run", "cases", "--harness", "demo", "--trials", "2"]).exits(0);
    let dry = run(&project, &["--dry-run"]).exits(0);
    dry.says("no stored run has the cost of a trial of these harnesses and models").says("if 70 % of the trials pass");
    project.write("experiments/x.yaml", &text.replace("probe", "demo"));
    run(&project, &["--dry-run"]).exits(0).says("by the known costs of 2 trials in stored runs");
    let both = text.replace("b: {env: {V: b}}", "b: {env: {V: b}, harness: demo}").replace("[env]", "[env, harness]");
    project.write("experiments/x.yaml", &both);
    let dry = run(&project, &["--dry-run"]).exits(0);
    dry.says("by the known costs of 2 trials in stored runs, without that of probe, which is unknown");
}

#[test]
fn a_dry_run_promises_no_smaller_effect_than_the_comparison() {
    let text =
        "cases: [../cases]\nharness: probe\ntrials: 2\nvary: [env]\nvariants: {a: {env: {V: a}}, b: {env: {V: b}}}\n";
    let project = project(text);
    for id in ["b", "c"] {
        project.case(id, "graders: [{output: {contains: prompt}}]", "");
    }
    // Three cases: t with two degrees of freedom, at 95 %, and at 98.75 % with four looks.
    let power = "minimum detectable effect at 80 % power:";
    run(&project, &["--dry-run"]).exits(0).says(&format!("{power} above 100 pp with 2 trials of each case and arm"));
    run(&project, &["--dry-run", "--trials", "auto"])
        .exits(0)
        .says("above 100 pp with 2 trials of each case and arm (the first evaluation), 92.8 pp with 16 (the maximum)");
    // Without t: cases with one trial each, and a single case.
    for id in ["d", "e", "f", "g", "h", "i", "j", "k", "l"] {
        project.case(id, "graders: [{output: {contains: prompt}}]", "");
    }
    run(&project, &["--dry-run", "--trials", "1"]).exits(0).says(&format!("{power} 52.4 pp with 1 trial of each"));
    for id in ["b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"] {
        std::fs::remove_file(project.path(&format!("cases/{id}.yaml"))).unwrap();
    }
    // Fisher's test must show it too: from 70 % to 5 %, with 80 % power.
    run(&project, &["--dry-run", "--trials", "10"]).exits(0).says(&format!("{power} 64.8 pp with 10 trials of each"));
    let none = format!("{power} none (so few trials detect no difference) with 5 trials of each");
    run(&project, &["--dry-run", "--trials", "5"]).exits(0).says(&none);
}

#[test]
fn a_dry_run_counts_the_spread_that_a_loss_itself_causes() {
    let text =
        "cases: [../cases]\nharness: probe\ntrials: 4\nvary: [env]\nvariants: {a: {env: {V: a}}, b: {env: {V: b}}}\n";
    let project = project(text);
    std::fs::remove_dir_all(project.path("cases")).unwrap();
    for id in ["a", "b", "c", "d", "e"] {
        project.case(id, "graders: [{output: {regex: '.'}}]", "");
    }
    run(&project, &[]).exits(0);
    // All passed. With t 3.717 standard errors apart: d / (1 - d) = 3.717² / 20.
    let dry = run(&project, &["--dry-run"]).exits(0).says("by the scores of 40 trials in stored runs");
    dry.says("minimum detectable effect at 80 % power: 40.9 pp with 4 trials of each");
}

#[test]
fn an_arm_against_itself_says_how_often_chance_decides() {
    let project = project("");
    // Each trial finds out from the shared file whether it is an odd one.
    let count = project.path("count");
    let odd = format!(
        "adapter: output-only\ncommand: [sh, -c, 'echo x >> {0}; echo $(( $(wc -l < {0}) % 2 ))']\nprompt-via: stdin\n",
        count.display()
    );
    project.harness("odd", &odd);
    project.case("a", "graders: [{output: {contains: '1'}}]", "");
    project.case("b", "graders: [{output: {regex: '.'}}]", "");
    let args = [
        "run",
        "cases",
        "--harness",
        "odd",
        "--aa",
        "--trials",
        "2",
        "--seed",
        "3",
        "--jobs",
        "1",
        "--reporter",
        "json=aa.json",
    ];
    project.evals(&args).exits(0).says("odd against itself").says("fires by chance alone in");
    let page = project.evals(&["report", "--format", "markdown"]);
    let page = page.says("evals: compared with itself: ").says(" of 2 verdicts changed, and failures do not count").out;
    assert!(!page.contains('✅') && !page.contains("everything passed"), "{page}");
    let report: Value = serde_json::from_str(&project.read("aa.json")).unwrap();
    let aa = &report["aa"];
    assert_eq!((&aa["cases"], &aa["noisy"]), (&2.into(), &serde_json::json!(["a"])), "{aa}");
    let alarms = aa["gate_false_alarms"].as_f64().unwrap();
    assert!((alarms - 1.0 / 6.0).abs() < 0.04, "{aa}");
    let arms: Vec<&Value> = report["results"].as_array().unwrap().iter().map(|result| &result["arm"]).collect();
    assert!(arms.contains(&&Value::from("default")) && arms.contains(&&Value::from("default#2")), "{arms:?}");
    project
        .evals(&["run", "cases", "--harness", "odd", "--harness", "probe", "--aa"])
        .exits(2)
        .says("--aa compares one arm with itself");
    std::fs::remove_dir_all(project.path(".evals")).unwrap();
    project.write("experiments/x.yaml", EVERYTHING);
    run(&project, &["--aa"]).exits(0);
    let arms = record(&project)["trials"].as_array().unwrap().iter().map(|it| it["arm"].clone()).collect::<Vec<_>>();
    assert!(arms.contains(&"without#2".into()) && !arms.contains(&"with".into()), "{arms:?}");
}

#[test]
fn a_case_lays_skills_and_instructions_itself() {
    let project = project("");
    project.write("work/X.md", "Own.\n");
    project.write("work/.x/skills/release/SKILL.md", "---\nname: release\ndescription: Own.\n---\n");
    let case = |keys: &str| {
        project.case(
            "a",
            &format!("workspace: {{copy: ../work}}\n{keys}\ngraders: [{{output: {{contains: prompt}}}}]"),
            "",
        )
    };
    let go = |code: i32| {
        let _ = std::fs::remove_dir_all(project.path(".evals"));
        project.evals(&["run", "cases", "--harness", "probe"]).exits(code)
    };
    case("skills: [../skills/changelog]\ninstructions: {text: More., in: project, mode: append}");
    go(0);
    assert!(answer(&project, "a/probe/default/1").contains("home:.x/skills/changelog/SKILL.md"));
    assert_eq!(project.of_trial("a/probe/default/1", "workspace.patch"), "");
    case("skills: [{path: ../skills/release, in: project}]");
    go(3).says("the workspace already has the skill `release`");
    case("instructions: {text: More., in: project}");
    go(3).says("write `mode: append` or `mode: replace`");
    case("skills: [../skills/changelog]");
    project.evals(&["run", "cases", "--harness", "demo-stream", "--dry-run"]).exits(2);
    project.harness("none", "adapter: output-only\ncommand: [echo, prompt]\nprompt-via: argument\n");
    project.evals(&["run", "cases", "--harness", "none"]).exits(3).says("has no `skills.user` to lay it in");
    case("skills: [../skills/gone, ../skills/changelog, ../skills/changelog]");
    project.evals(&["check"]).exits(2).says("does not exist").says("two skills have the name `changelog`");
}

#[test]
fn instructions_above_the_trials_stop_an_experiment() {
    let project = project(EVERYTHING);
    run(&project, &["--max-time", "0"]).exits(3);
    std::fs::write(project.temporary().parent().unwrap().join("AGENTS.md"), "Obey.").unwrap();
    run(&project, &[]).exits(2).says("AGENTS.md").says("set TMPDIR");
    project.evals(&["run", "--resume", "latest"]).exits(2).says("AGENTS.md").says("set TMPDIR");
    project.evals(&["run", "cases", "--harness", "probe"]).exits(0);
    // A case that lays skills or instructions is like an experiment.
    project.write("laid/b.yaml", "prompt: p\ninstructions: {text: More.}\ngraders: [{output: {contains: x}}]\n");
    project.evals(&["run", "laid", "--harness", "probe"]).exits(2).says("AGENTS.md").says("set TMPDIR");
    // The manifest of OpenCode lays skills in another folder than this one, which the agent reads too.
    std::fs::create_dir_all(project.temporary().join(".opencode/skills")).unwrap();
    run(&project, &[]).exits(2).says(".opencode/skills");
    std::fs::write(project.temporary().join("X.md"), "Obey.").unwrap();
    project.evals(&["run", "cases", "--harness", "probe"]).exits(0).says("warning: agents read");
}

#[test]
fn instructions_above_the_trials_that_a_sandbox_hides_stop_nothing() {
    if !bubblewrap() {
        return;
    }
    let project = project(EVERYTHING);
    project.write("laid/b.yaml", "prompt: p\ninstructions: {text: More.}\ngraders: [{output: {contains: prompt}}]\n");
    let above = project.temporary().parent().unwrap().to_owned();
    std::fs::write(above.join("AGENTS.md"), "Obey.").unwrap();
    let laid = |more: &[&str]| project.evals(&[&["run", "laid", "--harness", "probe"][..], more].concat());
    laid(&[]).exits(2).says("AGENTS.md");
    laid(&["--sandbox", "bwrap"]).exits(0);
    // An agent sees what its manifest mounts.
    let mounts = format!("sandbox: {{kind: bwrap, mount: [{{path: {}}}]}}\n", above.display());
    project.harness("probe", &format!("{PROBE}{mounts}"));
    laid(&[]).exits(2).says("AGENTS.md");
}

#[test]
fn an_empty_variable_for_temporary_files_is_the_current_folder() {
    let mut project = project(EVERYTHING);
    project.env("TMPDIR", "");
    project.write("AGENTS.md", "Obey.");
    run(&project, &[]).exits(2).says("AGENTS.md").says("the current folder, because TMPDIR is empty");
}

#[test]
fn snapshots_of_a_variant_bear_its_name() {
    let text = "cases: [../cases]\nharness: demo\nvary: [env]\nvariants: {a: {}, b: {env: {SPEED: '1'}}}\n";
    let project = project(text);
    project.case("a", "graders: [{output: {contains: ok}}]", "steps: [{say: ok}]");
    run(&project, &["--snapshot", "update"]).exits(0);
    assert!(
        project.path("cases/a.snapshots/demo+a.snap").exists()
            && project.path("cases/a.snapshots/demo+b.snap").exists()
    );
    run(&project, &["--snapshot", "check"]).exits(0);
    project.write("cases/a.demo.yaml", "steps: [{read: {path: gone}}, {say: ok}]");
    run(&project, &["--snapshot", "check"]).exits(1);
}

/// An agent that speaks Claude Code's stream and lists these skills.
fn claude(skills: &str) -> String {
    let init =
        format!(r#"{{"type":"system","subtype":"init","session_id":"s","tools":[],"model":"m","skills":{skills}}}"#);
    let says =
        r#"{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"prompt"}]}}"#;
    let ends = r#"{"type":"result","subtype":"success","is_error":false,"result":"prompt","num_turns":1}"#;
    format!("printf '%s\\n' '{init}' '{says}' '{ends}'")
}

#[test]
fn what_the_agent_lists_is_compared_with_its_arm() {
    let text = "cases: [../cases]\nharness: listing\nvary: [skills]\nvariants: {without: {}, with: {skills: [../skills/changelog]}}\n";
    let outcome = |script: &str| {
        let project = project(text);
        project.write("agent.sh", script);
        let agent = project.path("agent.sh");
        project.harness("listing", &format!("adapter: claude-code-stream\ncommand: [sh, {}]\nprompt-via: stdin\nskills: {{user: .claude/skills, built-in: [verify]}}\n", agent.display()));
        let code = run(&project, &[]).code;
        (project, code)
    };
    // It lists what lies in its home: clean in both arms.
    let honest = format!(
        "if [ -e \"$HOME/.claude/skills/changelog\" ]; then {}; else {}; fi",
        claude(r#"["verify","changelog"]"#),
        claude(r#"["verify"]"#)
    );
    let (project, code) = outcome(&honest);
    assert_eq!(code, 0, "{}", project.result("a/listing/with/1"));
    // The control has the skill too.
    let (project, code) = outcome(&claude(r#"["verify","changelog"]"#));
    assert_eq!(code, 3);
    let error = project.result("a/listing/without/1")["error"].clone();
    assert_eq!(error["category"], "setup");
    assert!(error["message"].as_str().unwrap().contains("skills of another arm: `changelog`"), "{error}");
    // The treated arm does not have it.
    let (project, code) = outcome(&claude(r#"["verify"]"#));
    assert_eq!(code, 3);
    let error = project.result("a/listing/with/1")["error"].clone();
    assert!(
        error["message"].as_str().unwrap().contains("does not list skills that were laid for it: `changelog`"),
        "{error}"
    );
    // Something else is there in both.
    let both = honest.replace("\"verify\"", "\"verify\",\"stray\"");
    let (project, code) = outcome(&both);
    assert_eq!(code, 0);
    assert!(project.of_trial("a/listing/with/1", "trace.jsonl").contains("unexpected_skill"));
    project.evals(&["compare"]).says("loaded skills that it should not have: stray");
}

#[test]
fn a_run_of_cases_names_experiments_that_lie_among_them() {
    let project = project("");
    project.case("a", "graders: [{output: {contains: ok}}]", "steps: [{say: ok}]");
    project.write("cases/x.yaml", "vary: [env]\nharness: demo\nvariants: {a: {}, b: {env: {SPEED: '1'}}}\n");
    project.evals(&["run"]).exits(0).says("`cases/x.yaml` is an experiment");
    project.evals(&["check"]).exits(0).says("1 experiment, 1 case,");
    project.evals(&["check", "cases/x.yaml"]).exits(0).says("1 experiment can be read");
    // An experiment may be in a folder that cannot be read.
    let text = "cases: [../cases/a.yaml]\nvary: [env]\nharness: demo\nvariants: {a: {}, b: {env: {SPEED: '1'}}}\n";
    project.write("experiments/x.yaml", text);
    project.evals(&["check", "experiments"]).exits(0).says("1 experiment can be read");
    project.write(&format!("experiments/{}notes.txt", "d/".repeat(260)), "");
    project.evals(&["check", "experiments"]).exits(2).says("could not be read: it is too deep");
}

#[test]
fn results_are_written_as_the_viewers_of_skills_read_them() {
    let text = "cases: [../cases]\nharness: probe\nvary: [skills]\nvariants: {old: {}, new: {skills: [../skills/changelog]}}\n";
    let project = project(text);
    project.case("a", "graders: [{output: {contains: changelog, name: mentions}}, {stop: {reason: [end_turn]}}]", "");
    run(&project, &["--trials", "2"]).exits(1);
    project.evals(&["export", "latest", "--to", "agentskills", "-o", "out"]).exits(0);
    let read = |path: &str| serde_json::from_str::<Value>(&project.read(path)).unwrap();
    let benchmark = read("out/benchmark.json");
    let summary = &benchmark["run_summary"];
    assert_eq!(
        (&summary["with_skill"]["pass_rate"]["mean"], &summary["without_skill"]["pass_rate"]["mean"]),
        (&1.0.into(), &0.5.into())
    );
    assert_eq!(summary["delta"]["pass_rate"], "+0.50");
    // The agent reports no tokens, which is not a count of 0.
    assert!(summary["with_skill"].get("tokens").is_none() && benchmark["runs"][0]["result"].get("tokens").is_none());
    let of = |configuration: &str| {
        benchmark["runs"].as_array().unwrap().iter().filter(|run| run["configuration"] == configuration).count()
    };
    assert_eq!((of("with_skill"), of("without_skill")), (2, 2));
    assert_eq!(benchmark["metadata"]["skill_name"], "changelog");
    let grading = read("out/eval-1/without_skill/run-2/grading.json");
    assert_eq!(grading["summary"], serde_json::json!({"passed": 1, "failed": 1, "total": 2, "pass_rate": 0.5}));
    assert_eq!(
        (&grading["expectations"][0]["text"], &grading["expectations"][0]["passed"]),
        (&"mentions".into(), &false.into())
    );
    project.evals(&["export", "latest", "--to", "agentskills", "-o", "out"]).exits(2).says("--force");
    let _ = std::fs::remove_dir_all(project.path(".evals"));
    project.evals(&["run", "cases", "--harness", "probe"]).exits(1);
    project.evals(&["export", "latest", "--to", "agentskills", "-o", "other"]).exits(2).says("has no arm with a skill");
    let trial = format!("{}/trials/a/probe/default/1", project.run_folder());
    for trace in [trial.clone(), format!("{trial}/trace.jsonl")] {
        let said = format!("`{trace}` is a trace, and agentskills compares the trials of a run");
        project.evals(&["export", &trace, "--to", "agentskills", "-o", "other"]).exits(2).says(&said);
    }
    project.evals(&["export", "cases/a.yaml", "--to", "agentskills", "-o", "other"]).exits(2).says("no run is called");
}

#[test]
fn each_arm_has_a_configuration_of_its_own_in_an_export() {
    let variants = "{old: {}, new: {skills: [../skills/changelog]}, a-b: {env: {N: '1'}}, a.b: {env: {N: '2'}}, with_skill: {env: {N: '3'}}}";
    let project = project(&format!("cases: [../cases]\nharness: probe\nvary: [skills, env]\nvariants: {variants}\n"));
    run(&project, &[]).exits(0);
    project.evals(&["export", "latest", "--to", "agentskills", "-o", "out"]).exits(0);
    let benchmark: Value = serde_json::from_str(&project.read("out/benchmark.json")).unwrap();
    let runs = benchmark["runs"].as_array().unwrap().iter();
    let mut names: Vec<&str> = runs.map(|run| run["configuration"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["a_b", "a_b_2", "with_skill", "with_skill_2", "without_skill"]);
    for name in names {
        assert!(project.path(&format!("out/eval-1/{name}/run-1/grading.json")).is_file(), "{name}");
    }
}

#[test]
fn the_number_of_trials_and_baselines_take_arms_as_they_take_models() {
    let text = "cases: [../cases]\nharness: probe\nvary: [skills]\nvariants: {old: {}, new: {skills: [../skills/changelog]}}\n";
    let project = project(text);
    for id in ["a", "b", "c", "d", "e", "f"] {
        project.case(id, "graders: [{output: {contains: changelog}}]", "");
    }
    run(&project, &["--trials", "auto", "--label", "auto"]).exits(1);
    let folder = project.run_folder();
    let record: Value = serde_json::from_str(&project.read(&format!("{folder}/run.json"))).unwrap();
    let trials = record["trials"].as_array().unwrap();
    assert!(
        trials.len().is_multiple_of(12)
            && trials.iter().all(|trial| ["old", "new"].contains(&trial["arm"].as_str().unwrap())),
        "{}",
        trials.len()
    );
    let compared = project.evals(&["compare", "--format", "json"]).json();
    assert_eq!(compared["verdict"], "improved");
    let text = compared["conclusions"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("probe / new helps: +100.0 pp against probe / old"), "{text}");
    // A baseline keeps both arms; the same experiment is compared with it when it is named.
    project.evals(&["baseline", "set", "auto", "--file", "base.json"]).exits(0);
    let against = project.evals(&["compare", "auto", "--baseline", "base.json", "--format", "json"]).json();
    assert_eq!(against["pairs"].as_array().unwrap().len(), 2);
    // The gates of a run and of a comparison name the arm.
    project.evals(&["compare", "auto", "--gate"]).exits(0);
    run(&project, &["--fail-under", "0.5", "--label", "gated"]).exits(1).says("gate fail: probe / old");
}

#[test]
fn what_arms_do_differently_is_counted_over_cases() {
    let text = "cases: [../cases]\nharness: demo\nvary: [files]\nvariants: {old: {}, new: {files: {'more.sh': 'touch x y'}}}\n";
    let project = project(text);
    for (id, calls) in [("a", 1), ("b", 2), ("c", 1)] {
        let steps = "  - run: {command: 'test -e more.sh && sh more.sh'}\n".repeat(calls);
        project.case(id, "graders: [{stop: {reason: [end_turn]}}]", &format!("steps:\n{steps}  - say: ok\n"));
    }
    run(&project, &[]).exits(0);
    let compared = project.evals(&["compare", "--format", "json"]).json();
    let changes = compared["pairs"][0]["behaviour"]["changes"].as_array().unwrap().clone();
    let of = |figure: &str| {
        changes.iter().find(|it| it["figure"] == figure).unwrap_or_else(|| panic!("{figure}: {changes:?}"))
    };
    assert_eq!((&of("changed files")["old"], &of("changed files")["new"]), (&0.0.into(), &2.0.into()));
    let failed = of("failed calls");
    assert_eq!((failed["old"].as_f64().unwrap() * 3.0).round(), 4.0);
    assert!(failed["new"] == 0.0 && failed["p"].is_number() && failed["p_holm"].is_number(), "{failed}");
    project.evals(&["compare"]).says("failed calls");
}

#[test]
#[ignore = "slow: runs many trials"]
fn the_examples_that_need_no_agent_run() {
    let project = Project::new();
    crate::project::copy(std::path::Path::new("examples/experiments"), &project.path("examples"));
    project.evals(&["check", "examples"]).exits(0).says("3 experiments");
    project.evals(&["run", "--experiment", "examples/skill/experiment.yaml"]).exits(1);
    project.evals(&["compare"]).says("whether demo / with helps").says("whether demo / crowd helps");
    project.evals(&["report"]).says("precision").says("recall");
    std::fs::remove_dir_all(project.path(".evals")).unwrap();
    project.evals(&["run", "--experiment", "examples/policy/experiment.yaml"]).exits(1);
    project
        .evals(&["compare"])
        .says("interaction: no-deletions instead of approve, averaged over the other axes: -16.7 pp");
}

#[test]
fn manifests_with_one_name_do_not_stand_for_each_other() {
    let text = |a: &str, b: &str| {
        format!(
            "cases: [../cases]\nvary: [harness, env]\nvariants: {{a: {{harness: {a}}}, b: {{harness: {b}, env: {{N: '1'}}}}}}\n"
        )
    };
    let project = project(&text("probe", "../other/probe.yaml"));
    let copy = project.read("harnesses/probe.yaml").replace("prompt=", "other=");
    project.write("other/probe.yaml", &copy);
    project.write("more/probe.yaml", &copy);
    run(&project, &[]).exits(2).says("another manifest of the experiment has the name `probe` too");
    project.write("experiments/x.yaml", &text("../more/probe.yaml", "../other/probe.yaml"));
    run(&project, &[]).exits(2).says("a name of its own");
    project.write("experiments/x.yaml", &text("probe", "../gone.yaml"));
    run(&project, &[]).exits(2).says("experiments/x.yaml:3:").says("is not a file");
    project.write("other/probe.yaml", &copy.replace("name: probe", "name: other"));
    project.write("experiments/x.yaml", &text("probe", "../other/probe.yaml"));
    run(&project, &[]).exits(1);
    assert!(answer(&project, "a/probe/a/1").contains("prompt=") && answer(&project, "a/other/b/1").contains("other="));
}

#[test]
fn a_control_that_has_the_skill_by_its_case_or_its_workspace_is_found() {
    let text = "cases: [../cases]\nharness: probe\nvary: [skills]\nvariants: {without: {}, with: {skills: [../skills/changelog]}}\n";
    let project = project(text);
    // The case lays it in both arms.
    project.case("a", "skills: [../skills/changelog]\ngraders: [{output: {contains: prompt}}]", "");
    for args in [&["check", "experiments"][..], &["run", "--experiment", "experiments/x.yaml"]] {
        project.evals(args).exits(2).says("their agents get the same in every case");
    }
    project.case("b", "graders: [{output: {contains: prompt}}]", "");
    run(&project, &["--dry-run"]).exits(0).says("are the same in 1 of 2 cases");
    // The workspace has it, where the agent reads the skills of a project.
    std::fs::remove_file(project.path("cases/b.yaml")).unwrap();
    project.write("work/.x/skills/changelog/SKILL.md", "Own.\n");
    project.case("a", "workspace: {copy: ../work}\ngraders: [{output: {contains: prompt}}]", "");
    run(&project, &[]).exits(3);
    let error = project.result("a/probe/with/1")["error"]["message"].clone();
    assert!(error.as_str().unwrap().contains("the workspace already has the skill `changelog`"), "{error}");
    let error = project.result("a/probe/without/1")["error"]["message"].clone();
    assert!(error.as_str().unwrap().contains("which only another arm should have"), "{error}");
}

#[test]
fn arms_that_are_written_otherwise_and_give_the_same_are_one() {
    let project = project("");
    for (one, other) in [
        ("{}", "{interaction: auto-approve}"),
        ("{}", "{limits: {on-limit: fail}}"),
        ("{}", "{mcp-servers: {}}"),
        ("{args: [x]}", "{command: [sh, -c, 'echo prompt', sh, x]}"),
        ("{instructions: {text: x}}", "{instructions: {text: x, in: user}}"),
        ("{skills: [../skills/release]}", "{skills: [{path: ../skills/release, in: user}]}"),
        ("{files: {x: a}}", "{files: {./x: a}}"),
        ("{files: {x: a}}", "{files: ../folder}"),
    ] {
        project.write("folder/x", "a");
        project.harness("probe", "adapter: output-only\ncommand: [sh, -c, 'echo prompt', sh]\nprompt-via: stdin\nskills: {user: .x}\ninstructions: {user: .y}\n");
        let keys = "[interaction, limits, mcp-servers, args, command, instructions, skills, files]";
        project.write(
            "experiments/x.yaml",
            &format!("cases: [../cases]\nharness: probe\nvary: {keys}\nvariants: {{a: {one}, b: {other}}}\n"),
        );
        run(&project, &[]).exits(2).says("resolve to the same arm");
    }
}

#[test]
fn arms_whose_files_differ_in_a_link_or_a_mode_are_two() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let text = "cases: [../cases]\nharness: probe\nvary: [files]\nvariants: {a: {files: ../one}, b: {files: ../two}}\n";
    let project = project(text);
    for folder in ["one", "two"] {
        project.write(&format!("{folder}/x"), "x");
        project.write(&format!("{folder}/y"), "y");
        symlink("x", project.path(&format!("{folder}/now"))).unwrap();
    }
    run(&project, &[]).exits(2).says("resolve to the same arm");
    std::fs::set_permissions(project.path("two/x"), PermissionsExt::from_mode(0o755)).unwrap();
    run(&project, &[]).exits(0);
    std::fs::set_permissions(project.path("one/x"), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::remove_file(project.path("two/now")).unwrap();
    symlink("y", project.path("two/now")).unwrap();
    run(&project, &[]).exits(0);
}

#[test]
fn variants_that_changed_between_runs_or_within_one_are_told() {
    let text = |n: u8| {
        format!("cases: [../cases]\nharness: probe\nvary: [env]\nvariants: {{old: {{}}, new: {{env: {{N: '{n}'}}}}}}\n")
    };
    let project = project(&text(1));
    run(&project, &["--label", "one"]).exits(0);
    project.evals(&["baseline", "set", "one", "--file", "base.json"]).exits(0);
    project.write("experiments/x.yaml", &text(2));
    run(&project, &["--label", "two"]).exits(0);
    project.evals(&["compare", "one", "two"]).says("the variant `new` is not the same on both sides");
    project
        .evals(&["compare", "two", "--baseline", "base.json"])
        .says("the variant `new` is not the same on both sides");
    project.evals(&["run", "cases", "--harness", "probe", "--model", "new", "--label", "model"]).exits(0);
    project.evals(&["compare", "one", "model"]).says("is a variant of an experiment, and");
    project.write("experiments/x.yaml", &text(3));
    let again = project.evals(&["run", "--resume", "two", "--changed", "keep"]);
    again.exits(0);
    // A program that the experiment brings is part of its arm.
    let program = |text: &str| project.write("agent.sh", &format!("#!/bin/sh\necho prompt {text}\n"));
    program("1");
    let path = project.path("agent.sh");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    project.write(
        "experiments/x.yaml",
        "cases: [../cases]\nharness: probe\nvary: [command]\nvariants: {old: {}, new: {command: [../agent.sh]}}\n",
    );
    run(&project, &["--label", "program"]).exits(0);
    program("2");
    project.evals(&["run", "--resume", "program"]).exits(2).says("`variant new` changed");
}

#[test]
fn a_variant_that_changed_in_the_middle_of_a_run_is_named_and_its_discarded_results_do_not_count() {
    let project = Project::new();
    project.case("a", "", "steps: [{usage: {cost-usd: 1}}, {say: done}]");
    let sets = |n: u8| {
        let variants = format!("variants: {{old: {{}}, new: {{env: {{N: '{n}'}}}}}}");
        let text = format!("cases: [../cases]\nharness: demo\ntrials: 2\nvary: [env]\n{variants}\n");
        project.write("experiments/x.yaml", &text);
    };
    sets(1);
    // The first round of both arms spends it all.
    run(&project, &["--label", "v", "--jobs", "1", "--max-cost", "2"]).exits(3);
    sets(2);
    project.evals(&["run", "--resume", "v", "--changed", "keep", "--max-cost", "100"]).exits(0);
    let told = || {
        let compared = project.evals(&["compare", "v", "--format", "json"]).json();
        compared["pairs"][0]["doubts"].as_array().unwrap().clone()
    };
    let of = |about: &str| -> Vec<String> {
        let doubts = told().into_iter().filter(|doubt| doubt["about"] == about);
        doubts.map(|doubt| doubt["text"].as_str().unwrap().to_owned()).collect()
    };
    let (variant, harness) = (of("variant"), of("harness"));
    assert!(matches!(&*variant, [one] if one.ends_with("the variant `new` changed between its trials")), "{variant:?}");
    assert_eq!(harness, Vec::<String>::new());
    // The recorded budget is spent, so the trials of the variant do not run again.
    project.evals(&["run", "--resume", "v", "--changed", "rerun"]).exits(3).says("2 trials were not run");
    let summary = || project.evals(&["report", "v", "--format", "json"]).exits(0).json()["summary"].clone();
    assert_eq!((&summary()["pass"], &summary()["not_run"]), (&2.into(), &2.into()));
    assert_eq!(record(&project)["arms"][1].get("mixed"), None);
    project.evals(&["run", "--resume", "v", "--max-cost", "100"]).exits(0);
    assert_eq!((&summary()["pass"], &summary()["not_run"]), (&4.into(), &0.into()));
}

#[test]
fn secrets_of_variants_stand_nowhere_in_clear() {
    let secret = "sup3rs3cretvalue99";
    let text = format!(
        "cases: [../cases]\nharness: probe\nvary: [env, args]\nvariants:\n  a: {{}}\n  b: {{env: {{MY_API_KEY: {secret}}}}}\n  c: {{args: [--api-key, {secret}]}}\n"
    );
    let project = project(&text);
    let dry = run(&project, &["--dry-run"]).exits(0);
    assert!(!dry.out.contains(secret), "{}", dry.out);
    run(&project, &[]).exits(0);
    assert!(!project.read(&format!("{}/run.json", project.run_folder())).contains(secret));
    let _ = std::fs::remove_dir_all(project.path(".evals"));
    let variant = format!("b={{env: {{MY_API_KEY: {secret}}}}}");
    project.case("a", "graders: [{output: {contains: never}}]", "");
    let ran = project.evals(&["run", "cases", "--harness", "probe", "--variant", "a=", "--variant", &variant]).exits(1);
    assert!(!ran.out.contains(secret) && !ran.err.contains(secret), "{ran:?}");
    assert!(!project.read(&format!("{}/run.json", project.run_folder())).contains(secret));
    project.write("experiments/x.yaml", &text.replace("vary: [env, args]", "vary: [args]"));
    let refused = run(&project, &[]).exits(2).says("[redacted:MY_API_KEY]");
    assert!(!refused.err.contains(&format!("`{{\"MY_API_KEY\":\"{secret}")), "{}", refused.err);
}

#[test]
fn a_secret_of_a_variant_is_redacted_before_its_value_is_cut_or_quoted() {
    for secret in ["s3cr3t".repeat(20), "s3cr3t\"and\\more".to_owned()] {
        let variants = format!("{{a: {{}}, b: {{env: {{MY_API_KEY: '{secret}'}}}}}}");
        let project = project(&format!("cases: [../cases]\nharness: probe\nvary: [env]\nvariants: {variants}\n"));
        let dry = run(&project, &["--dry-run"]).exits(0).says("[redacted:MY_API_KEY]");
        assert!(!dry.out.contains("s3cr3t"), "{}", dry.out);
    }
}

#[test]
fn what_can_never_be_laid_or_would_undo_the_control_is_refused_at_its_place() {
    let wrong: &[(&str, &str)] = &[
        ("skills: [../skills/linked]", "cannot be laid: the link"),
        ("files: {x: a, x/y: b}", "which is also a file here"),
        ("args: [\"a\\0b\"]", "an argument holds a NUL character"),
        ("env: {HOME: /somewhere}", "`HOME` is the trial's private home"),
        ("files: ../cases", "`cases` contains `cases/a.yaml`, which the agent must not see"),
        ("system-prompt: ''", "`system-prompt` is empty"),
    ];
    for (keys, says) in wrong {
        let vary = "[skills, files, args, env, system-prompt]";
        let project = project(&format!(
            "cases: [../cases]\nharness: probe\nvary: {vary}\nvariants:\n  a: {{}}\n  b: {{{keys}}}\n"
        ));
        project.write("skills/linked/SKILL.md", "---\nname: linked\ndescription: x\n---\n");
        std::os::unix::fs::symlink("/etc/passwd", project.path("skills/linked/out")).unwrap();
        run(&project, &[]).exits(2).says("experiments/x.yaml:6:").says(says);
    }
    let project =
        project("cases: [../gone]\nharness: probe\nvary: [env]\nvariants: {a: {}, default: {env: {N: '1'}}}\n");
    run(&project, &[]).exits(2).says("experiments/x.yaml:1:9:").says("does not exist");
    project.write(
        "experiments/x.yaml",
        "cases: [../cases]\nharness: probe\nvary: [env]\nvariants: {a: {}, default: {env: {N: '1'}}}\n",
    );
    run(&project, &[]).exits(2).says("the name of a plain run");
}

#[test]
fn a_list_that_comes_later_counts_and_one_that_never_comes_is_told() {
    let text = "cases: [../cases]\nharness: listing\nvary: [skills]\nvariants: {without: {}, with: {skills: [../skills/changelog]}}\n";
    let outcome = |lists: &str| {
        let project = project(text);
        let ends = r#"{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"prompt"}]}}
{"type":"result","subtype":"success","is_error":false,"result":"prompt","num_turns":1}"#;
        project.write("lines", &format!("{lists}\n{ends}\n"));
        let lines = project.path("lines");
        project.harness("listing", &format!("adapter: claude-code-stream\ncommand: [cat, {}]\nprompt-via: stdin\nskills: {{user: .claude/skills}}\n", lines.display()));
        let code = run(&project, &[]).code;
        (project, code)
    };
    let init = |skills: &str| format!(r#"{{"type":"system","subtype":"init","session_id":"s","model":"m"{skills}}}"#);
    let later = format!("{}\n{}", init(r#","skills":[]"#), init(r#","skills":["changelog"]"#));
    let (project, code) = outcome(&later);
    assert_eq!(code, 3);
    let message = project.result("a/listing/without/1")["error"]["message"].clone();
    assert!(message.as_str().unwrap().contains("skills of another arm"), "{message}");
    for odd in ["", r#","skills":{}"#, r#","skills":[["changelog"]]"#, r#","skills":null"#] {
        let (project, code) = outcome(&init(odd));
        assert_eq!(code, 0, "{odd}");
        project.evals(&["report"]).says("not verified: which skills were loaded in 2 trials");
        project.evals(&["compare"]).says("listed no skills, so the loaded skills were not verified");
    }
}

#[test]
fn an_arm_has_its_mcp_servers_and_no_others() {
    let text = "cases: [../cases]\nharness: listing\nvary: [mcp-servers]\nvariants:\n  without: {}\n  with: {mcp-servers: {files: {command: files-server}}}\n";
    let outcome = |lists: &str| {
        let project = project(text);
        let lines = format!(
            r#"{{"type":"system","subtype":"init","session_id":"s","model":"m"{lists}}}
{{"type":"assistant","message":{{"id":"m1","role":"assistant","content":[{{"type":"text","text":"prompt"}}]}}}}
{{"type":"result","subtype":"success","is_error":false,"result":"prompt","num_turns":1}}
"#
        );
        project.write("lines", &lines);
        let program = format!("cat {} #", project.path("lines").display());
        project.harness("listing", &format!("adapter: claude-code-stream\ncommand: [sh, -c, '{program}']\nprompt-via: stdin\nmcp-servers: {{via: flag, flag: --mcp-config, built-in: [own-*]}}\n"));
        let code = run(&project, &[]).code;
        let told = |arm: &str| {
            let error = &project.result(&format!("a/listing/{arm}/1"))["error"];
            error["message"].as_str().unwrap_or_default().to_owned()
        };
        let errors = (told("without"), told("with"));
        (project, code, errors)
    };
    let files = r#"{"name":"files","status":"connected"}"#;
    let (_, code, (without, with)) = outcome(&format!(r#","mcp_servers":[{files},{{"name":"own-1"}}]"#));
    assert_eq!((code, without.as_str(), with.as_str()), (3, "the agent lists MCP servers of another arm: `files`", ""));
    let (_, code, (without, with)) = outcome(r#","mcp_servers":[]"#);
    let missing = "the agent does not list MCP servers that were laid for it: `files`";
    assert_eq!((code, without.as_str(), with.as_str()), (3, "", missing));
    let (_, _, (without, _)) = outcome(r#","mcp_servers":["other"]"#);
    assert_eq!(without, "the agent lists MCP servers that its trial should not have: `other`");
    let (_, _, (_, with)) = outcome(&format!(r#","mcp_servers":[{}]"#, files.replace("connected", "failed")));
    assert_eq!(with, "the agent reports that the MCP server `files` does not work");
    let plugins = r#","mcp_servers":[],"plugins":[{"name":"own","path":"builtin"},{"name":"more","path":"/p/more"}]"#;
    let (_, _, (without, _)) = outcome(plugins);
    assert_eq!(without, "the agent lists plugins that its trial should not have: `more`");
    let (project, code, _) = outcome("");
    assert_eq!(code, 0);
    project.evals(&["report"]).says("not verified: which MCP servers were loaded in 2 trials");
    project.evals(&["compare"]).says("listed no MCP servers, so the loaded MCP servers were not verified");
}

#[test]
fn a_plain_run_notices_a_server_that_the_agent_reports_as_broken() {
    let outcome = |servers: &str| {
        let project = Project::new();
        let lines = format!(
            r#"{{"type":"system","subtype":"init","session_id":"s","model":"m"{servers}}}
{{"type":"result","subtype":"success","is_error":false,"result":"done","num_turns":1}}
"#
        );
        project.write("lines", &lines);
        let program = format!("cat {} #", project.path("lines").display());
        project.harness("listing", &format!("adapter: claude-code-stream\ncommand: [sh, -c, '{program}']\nprompt-via: stdin\nmcp-servers: {{via: flag, flag: --mcp-config}}\n"));
        project.case("a", "harnesses: [listing]\nmcp-servers: {files: {command: files-server}}\ngraders: [{output: {not-contains: heron}}]", "");
        project.evals(&["run"]);
        let result = project.result("a/listing/default/1");
        (result["verdict"].clone(), result["error"]["message"].as_str().unwrap_or_default().to_owned())
    };
    let (verdict, error) = outcome(r#","mcp_servers":[{"name":"files","status":"failed"}]"#);
    assert_eq!((verdict, &*error), ("errored".into(), "the agent reports that the MCP server `files` does not work"));
    let (verdict, error) = outcome(r#","mcp_servers":[]"#);
    let missing = "the agent does not list MCP servers that were laid for it: `files`";
    assert_eq!((verdict, &*error), ("errored".into(), missing));
    // A server that is still starting may work later, and other servers may belong to the agent.
    for fine in [
        r#","mcp_servers":[{"name":"files","status":"pending"}]"#,
        r#","mcp_servers":[{"name":"files","status":"connected"},{"name":"other","status":"failed"}]"#,
        "",
    ] {
        assert_eq!(outcome(fine), ("pass".into(), String::new()), "{fine}");
    }
}

#[test]
fn arguments_of_an_arm_stand_before_the_end_of_the_options() {
    let text = "cases: [../cases]\nharness: dashes\nvary: [args]\nvariants: {a: {}, b: {args: [--deep]}}\n";
    let project = project(text);
    project.harness("dashes", "adapter: output-only\ncommand: [sh, -c, 'echo \"prompt $*\"', sh, --, '{prompt}']");
    run(&project, &[]).exits(0);
    assert_eq!(answer(&project, "a/dashes/a/1"), "prompt -- Do it.");
    assert_eq!(answer(&project, "a/dashes/b/1"), "prompt --deep -- Do it.");
}

#[test]
fn a_variant_that_asks_for_the_model_of_the_manifest_is_no_other_arm() {
    let project = project("cases: [../cases]\nharness: probe\nvary: [model]\nvariants: {a: {}, b: {model: m}}\n");
    project.harness("probe", &PROBE.replace("env: ASKED}", "env: ASKED, default: m}"));
    run(&project, &[]).exits(2).says("resolve to the same arm");
    project.harness("probe", &PROBE.replace("env: ASKED}", "env: ASKED, default: other}"));
    run(&project, &["--dry-run"]).exits(0);
}

const WITH_AND_WITHOUT: &str = "
cases: [../cases]
harness: demo
vary: [skills]
variants: {without: {}, with: {skills: [../skills/changelog]}}
";

/// Returns the caveats of the comparison of a run's only two arms, and the comparison.
fn doubts(project: &Project) -> (Vec<String>, Value) {
    let compared = project.evals(&["compare", "--format", "json"]).json();
    let doubts = compared["pairs"][0]["doubts"].as_array().unwrap().iter();
    (doubts.map(|doubt| doubt["text"].as_str().unwrap().to_owned()).collect(), compared)
}

#[test]
fn a_counted_grader_of_a_skill_that_only_one_arm_has_is_a_caveat() {
    let project = project(WITH_AND_WITHOUT);
    let graders =
        |more: &str| format!("graders: [{{stop: {{reason: [end_turn]}}}}, {{skills: {{used: [changelog]{more}}}}}]");
    let says = "`skills` asks for `changelog`, which `without` does not have: 1 case (a)";
    project.case("a", &graders(""), "steps: [{say: done}]");
    project.case("b", &graders(", diagnostic: true"), "steps: [{say: done}]");
    project.evals(&["check", "experiments"]).exits(0).says(says);
    run(&project, &["--dry-run"]).exits(0).says(says);
    run(&project, &[]).exits(1).says(says);
    let (found, _) = doubts(&project);
    assert!(found.iter().any(|text| text.starts_with(says)), "{found:?}");
    project.evals(&["compare"]).says("look before you trust it");
    project.evals(&["report"]).says(says);
    // The graders that `grade` uses decide.
    project.case("a", &graders(", diagnostic: true"), "steps: [{say: done}]");
    let graded = project.evals(&["grade", "latest"]).exits(0).out;
    assert!(!graded.contains("`without` does not have"), "{graded}");
    project.case("b", &graders(""), "steps: [{say: done}]");
    project.evals(&["grade", "latest"]).exits(1).says("`without` does not have: 1 case (b)");
}

#[test]
fn a_skill_is_laid_without_the_folder_of_its_cases_and_not_with_files_of_graders() {
    let text = "harness: probe\nvary: [skills]\nvariants: {without: {}, with: {skills: [../skills/changelog]}}\n";
    let project = project(text);
    let case = "prompt: p\nhidden: c.hidden\ngraders: [{output: {contains: prompt}}]\n";
    project.write("skills/changelog/evals/c.yaml", case);
    project.write("skills/changelog/evals/c.hidden/t.sh", "");
    project.write("skills/changelog/scripts/x.sh", "");
    let ran = project.evals(&["run", "skills/changelog/evals", "--experiment", "experiments/x.yaml"]).exits(0);
    ran.says("the skill skills/changelog is laid without its folder `evals`");
    let seen = answer(&project, "c/probe/with/1");
    assert!(seen.contains("home:.x/skills/changelog/scripts/x.sh") && !seen.contains("evals"), "{seen}");
    // Further cases in the same folder are not laid either, but a folder that agents need is.
    let run = |cases: &str| project.evals(&["run", cases, "--experiment", "experiments/x.yaml"]);
    for folder in ["evals/easy", "evals/hard", "scripts/evals"] {
        project.write(&format!("skills/changelog/{folder}/c.yaml"), case);
        project.write(&format!("skills/changelog/{folder}/c.hidden/t.sh"), "");
    }
    run("skills/changelog/scripts/evals").exits(2).says("which the agent must not see");
    std::fs::remove_dir_all(project.path("skills/changelog/scripts/evals")).unwrap();
    std::fs::remove_dir_all(project.path(".evals/runs")).unwrap();
    // A copy of the case elsewhere in the skill is laid into the home, and noticed.
    project.write("skills/changelog/notes.md", case);
    run("skills/changelog/evals/easy").exits(0).says("is laid without its folder `evals`");
    let seen = answer(&project, "c/probe/with/1");
    assert!(seen.contains("home:.x/skills/changelog/scripts/x.sh") && !seen.contains("evals"), "{seen}");
    let warnings = project.result("c/probe/with/1")["warnings"].as_array().unwrap().clone();
    let warning = warnings.iter().find(|it| it["code"] == "case_in_workspace").unwrap();
    assert_eq!(warning["files"], serde_json::json!(["~/.x/skills/changelog/notes.md"]));
    project.write("cases/fx/check.sh", "true\n");
    project.case("a", "graders: [{script: {run: [sh, fx/check.sh]}}]", "");
    let text = "harness: probe\nvary: [files]\nvariants: {without: {}, with: {files: ../cases/fx}}\n";
    project.write("experiments/x.yaml", text);
    let ran = project.evals(&["run", "cases", "--experiment", "experiments/x.yaml"]).exits(2);
    ran.says("`cases/fx` contains `cases/fx/check.sh`, which the agent must not see");
}

/// Returns the files of its case that the agent of a trial got, and whether the trial has a warning about them.
fn shown(project: &Project, trial: &str) -> Value {
    let warnings = project.result(trial)["warnings"].as_array().cloned().unwrap_or_default();
    let warning = warnings.into_iter().find(|it| it["code"] == "case_in_workspace");
    warning.map(|it| it["files"].clone()).unwrap_or_default()
}

const SOLUTION: &str = "the answer that the hidden file holds, in more than sixty-four bytes, is 4711\n";

#[test]
fn a_copy_of_a_hidden_file_or_of_a_solution_is_found_wherever_it_is_laid_and_no_gate_passes() {
    let text = "cases: [../cases]\nharness: probe\nvary: [files, skills, instructions]\nbaseline: without\nvariants:\n  \
                without: {}\n  files: {files: ../extra}\n  text: {files: {notes/a.txt: \"SOLUTION\"}}\n  \
                skill: {skills: [../skills/changelog]}\n  rules: {instructions: {text: \"Rules: SOLUTION\"}}\n";
    let text = text.replace("SOLUTION", &SOLUTION.replace('\n', "\\n"));
    let project = project(&text);
    project.write("cases/h/answer.txt", SOLUTION);
    project.write("cases/h/short.txt", "4711\n");
    project.write("cases/h/shared.json", "{\"name\": \"a package of both\"}\n");
    let workspace = r#"workspace: {files: {lib/shared.json: "{\"name\": \"a package of both\"}\n"}}"#;
    let graders = "graders: [{output: {contains: prompt}}]";
    project.case("a", &format!("hidden: h\n{workspace}\n{graders}"), "");
    for folder in ["extra/notes", "skills/changelog/references"] {
        project.write(&format!("{folder}/any.md"), SOLUTION);
        project.write(&format!("{folder}/short.txt"), "4711\n");
        project.write(&format!("{folder}/package.json"), "{\"name\": \"a package of both\"}\n");
    }
    run(&project, &[]).exits(0).says("could read files of its own case");
    let files = |arm: &str| shown(&project, &format!("a/probe/{arm}/1"));
    assert_eq!(files("without"), Value::Null);
    assert_eq!(files("files"), serde_json::json!(["notes/any.md"]));
    assert_eq!(files("text"), serde_json::json!(["notes/a.txt"]));
    assert_eq!(files("skill"), serde_json::json!(["~/.x/skills/changelog/references/any.md"]));
    assert_eq!(files("rules"), serde_json::json!(["~/.x/X.md"]));
    let gated = project.evals(&["compare", "latest", "--gate"]).exits(3);
    gated.says("inconclusive, because agents could read files of their own case: a");
}

#[test]
fn a_file_of_the_home_that_copies_the_solution_is_found() {
    let project = project("");
    std::fs::remove_dir_all(project.path("experiments")).unwrap();
    project.write("cases/s.sh", "#!/bin/sh\necho 4711 > answer.txt\n");
    project.case("a", "oracle: {script: s.sh}\ngraders: [{output: {contains: prompt}}]", "");
    let keys = "home: {copy: [.x/copied.md]}\nfiles: {CLAUDE.md: \"#!/bin/sh\\necho 4711 > answer.txt\\n\", b.md: Be brief.}\n";
    project.harness("probe", &format!("{PROBE}{keys}"));
    std::fs::create_dir_all(project.home().join(".x")).unwrap();
    std::fs::copy(project.path("cases/s.sh"), project.home().join(".x/copied.md")).unwrap();
    project.evals(&["run", "cases", "--harness", "probe"]).exits(0);
    assert_eq!(shown(&project, "a/probe/default/1"), serde_json::json!(["~/.x/copied.md", "~/CLAUDE.md"]));
}

#[test]
fn a_skill_is_laid_without_any_of_its_folders_of_cases() {
    let text = "harness: probe\nvary: [skills]\nvariants: {without: {}, with: {skills: [../skills/changelog]}}\n";
    let project = project(text);
    let case = "prompt: p\nhidden: h\ngraders: [{output: {contains: prompt}}]\n";
    for folder in ["evals", "tests/deep"] {
        project.write(&format!("skills/changelog/{folder}/{}.yaml", folder.replace('/', "-")), case);
        project.write(&format!("skills/changelog/{folder}/h/t.sh"), "true\n");
    }
    // Not cases: a file of another tool, and an example in a folder that agents need.
    project.write("skills/changelog/agents/openai.yaml", "interface: {}\nprompt: p\n");
    project.write("skills/changelog/references/case.yaml", &format!("# An example.\n{case}"));
    let cases = ["skills/changelog/evals", "skills/changelog/tests"];
    let ran = project.evals(&["run", cases[0], cases[1], "--experiment", "experiments/x.yaml"]).exits(0);
    ran.says("the skill skills/changelog is laid without its folders `evals`, `tests`, which hold cases");
    for case in ["evals", "deep/tests-deep"] {
        let seen = answer(&project, &format!("{case}/probe/with/1"));
        assert!(!seen.contains("evals/") && !seen.contains("tests/"), "{seen}");
        assert!(seen.contains("agents/openai.yaml") && seen.contains("references/case.yaml"), "{seen}");
    }
}

#[test]
fn cases_in_which_the_arms_are_the_same_are_a_caveat_of_the_stored_run() {
    let project = project(WITH_AND_WITHOUT);
    let graders = "graders: [{stop: {reason: [end_turn]}}]";
    project.case("a", &format!("skills: [../skills/changelog]\n{graders}"), "steps: [{say: done}]");
    project.case("b", graders, "steps: [{say: done}]");
    let says = "the variants `without` and `with` are the same in 1 of 2 cases (a)";
    project.evals(&["check", "experiments"]).exits(0).says(says);
    run(&project, &[]).exits(0).says(says);
    let (found, _) = doubts(&project);
    assert!(found.iter().any(|text| text.starts_with(says)), "{found:?}");
    project.evals(&["report"]).says(says);
}

#[test]
fn what_ran_again_after_a_change_costs_no_more_than_the_other_arm_and_is_said_to_have_run_later() {
    let project = project(WITH_AND_WITHOUT);
    let graders = "trials: 2\ngraders: [{stop: {reason: [end_turn]}}]";
    for case in ["a", "b"] {
        project.case(case, graders, "steps: [{usage: {cost-usd: 0.01}}, {say: done}]");
    }
    run(&project, &["--seed", "5"]).exits(0);
    project.evals(&["report"]).says("in an order drawn from seed 5");
    let changed = project.read("skills/changelog/SKILL.md") + "More.\n";
    project.write("skills/changelog/SKILL.md", &changed);
    let ran = project.evals(&["run", "--resume", "latest", "--changed", "rerun"]).exits(0);
    let ran =
        ran.says("4 trials were run again because their inputs had changed (--changed rerun), and 4 attempts were");
    let ran = ran.says("drawn from seed 5, except 4 trials of demo / with, which ran again later");
    assert!(!ran.out.contains("after an error or a break"), "{}", ran.out);
    let (found, compared) = doubts(&project);
    assert_eq!(compared["pairs"][0]["cost"]["of_totals"], 1.0);
    let of_arms = |key: &str| [0_usize, 1].map(|arm| compared["arms"][arm][key].as_f64().unwrap());
    assert_eq!((of_arms("cost_per_trial"), of_arms("cost_usd")), ([0.01, 0.01], [0.04, 0.08]));
    assert!(found.iter().any(|text| text.contains("4 of 4 trials run again because their inputs had changed")));
    assert!(found.iter().any(|text| text.starts_with("not interleaved: 4 trials of demo / with")), "{found:?}");
}

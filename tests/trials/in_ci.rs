//! Workflows of CI services, run step by step by the shell as the services do, and the commands of the page about them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_yaml::Value;

use crate::gateway::client::Gateway;
use crate::project::{Project, copy};

const PASS: &str = "steps: [{say: done}]";
const FAIL: &str = "steps: [{stop: refusal}]";

/// A project with three cases.
fn three(last: &str) -> Project {
    let project = Project::new();
    for case in ["a", "b"] {
        project.case(case, "", PASS);
    }
    project.case("c", "", last);
    project
}

/// A machine of a service, with a checkout of the project and the program on its `PATH`.
struct Machine {
    folder: tempfile::TempDir,
    env: BTreeMap<String, String>,
}

impl Machine {
    fn with(project: &Project) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for part in ["checkout", "bin", "home"] {
            fs::create_dir(folder.path().join(part)).unwrap();
        }
        // A checkout has no runs.
        for part in ["cases", ".github", ".gitlab", ".gitlab-ci.yml"] {
            let from = project.path(part);
            if from.is_dir() {
                copy(&from, &folder.path().join("checkout").join(part));
            }
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_evals"), folder.path().join("bin/evals")).unwrap();
        let machine = Self { folder, env: BTreeMap::new() };
        for file in ["GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"] {
            fs::write(machine.path("home").join(file), "").unwrap();
        }
        machine
    }

    fn path(&self, part: &str) -> PathBuf {
        self.folder.path().join(part)
    }

    fn checkout(&self, path: &str) -> PathBuf {
        self.path("checkout").join(path)
    }

    /// Runs a script as a step.
    fn step(&self, script: &str, env: &[(String, String)]) -> Output {
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]);
        command.current_dir(self.path("checkout")).env_clear().env("PATH", path).env("CI", "true");
        command.env("HOME", self.path("home")).env("CARGO_HOME", self.path("home"));
        command.env("GITHUB_STEP_SUMMARY", self.path("home").join("GITHUB_STEP_SUMMARY"));
        command.env("GITHUB_OUTPUT", self.path("home").join("GITHUB_OUTPUT"));
        command.env("GITHUB_WORKSPACE", self.path("checkout"));
        command.envs(&self.env).envs(env.iter().cloned()).output().unwrap()
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn map(value: &Value) -> BTreeMap<String, String> {
    let pairs = value.as_mapping().into_iter().flatten();
    let plain = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    pairs.map(|(key, value)| (plain(key), plain(value))).collect()
}

/// The artifacts of a workflow, by name.
struct Artifacts(tempfile::TempDir);

impl Artifacts {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Keeps the paths of an artifact below their nearest common folder, as the services do.
    fn upload(&self, machine: &Machine, with: &BTreeMap<String, String>) {
        let to = self.0.path().join(&with["name"]);
        let paths: Vec<&str> = with["path"].split_whitespace().collect();
        for path in &paths {
            let from = machine.checkout(path);
            let name = if paths.len() == 1 && from.is_dir() { Path::new("") } else { Path::new(path) };
            if from.is_dir() {
                copy(&from, &to.join(name));
            } else if from.exists() {
                fs::create_dir_all(to.join(name).parent().unwrap()).unwrap();
                fs::copy(from, to.join(name)).unwrap();
            }
        }
    }

    fn download(&self, machine: &Machine, with: &BTreeMap<String, String>) {
        let prefix = with["pattern"].strip_suffix('*').unwrap();
        let named = |name: &String| name.starts_with(prefix);
        let names = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let names: Vec<String> = names.filter(named).collect();
        for name in &names {
            let to = machine.checkout(&with["path"]);
            // The service makes no folder for an only artifact.
            copy(&self.0.path().join(name), &if names.len() == 1 { to } else { to.join(name) });
        }
    }
}

/// Runs the steps of a job of GitHub Actions. Returns whether the job passes, and its output.
fn github_job(job: &Value, machine: &Machine, artifacts: &Artifacts, shard: &str) -> (bool, String) {
    let filled = |text: &str| text.replace("${{ matrix.shard }}", shard);
    let (mut passes, mut said) = (true, String::new());
    for step in job["steps"].as_sequence().unwrap() {
        let always = step["if"].as_str().is_some_and(|when| when.contains("!cancelled()"));
        if !passes && !always {
            continue;
        }
        if let Some(script) = step["run"].as_str() {
            let script = filled(script);
            assert!(!script.contains("${{"), "an expression that the test does not know: {script}");
            let output = machine.step(&script, &[]);
            said.push_str(&text(&output));
            passes &= output.status.success();
            continue;
        }
        let with: BTreeMap<_, _> = map(&step["with"]).into_iter().map(|(key, value)| (key, filled(&value))).collect();
        match step["uses"].as_str().unwrap().split('@').next().unwrap() {
            "actions/cache/restore" | "actions/cache/save" => {}
            "actions/checkout" => {
                assert_eq!(with["persist-credentials"], "false", "agents could read the token");
                // Cases may begin at earlier commits.
                let depth = with.get("fetch-depth").map(String::as_str);
                assert_eq!(depth, if shard.is_empty() { None } else { Some("0") });
            }
            "actions/upload-artifact" => artifacts.upload(machine, &with),
            "actions/download-artifact" => artifacts.download(machine, &with),
            other => panic!("{other} is not known"),
        }
    }
    (passes, said)
}

fn workflow(project: &Project, path: &str) -> Value {
    serde_yaml::from_str(&project.read(path)).unwrap()
}

#[test]
fn the_workflow_of_github_runs_shards_and_reports_them_as_one_run() {
    for (last, passes) in [(PASS, true), (FAIL, false)] {
        let project = three(last);
        project.evals(&["init", "--ci", "github"]).exits(0).says("wrote .github/workflows/evals.yml");
        let workflow = workflow(&project, ".github/workflows/evals.yml");
        let artifacts = Artifacts::new();
        let jobs = &workflow["jobs"];
        let shards: Vec<String> = jobs["shard"]["strategy"]["matrix"]["shard"]
            .as_sequence()
            .unwrap()
            .iter()
            .map(|number| number.as_u64().unwrap().to_string())
            .collect();
        assert_eq!(shards, ["1", "2"]);
        for shard in &shards {
            let (shard_passes, said) = github_job(&jobs["shard"], &Machine::with(&project), &artifacts, shard);
            assert!(shard_passes, "failed trials do not fail a shard: {said}");
        }
        assert_eq!(jobs["report"]["needs"], "shard");
        let machine = Machine::with(&project);
        let (report_passes, said) = github_job(&jobs["report"], &machine, &artifacts, "");
        assert_eq!(report_passes, passes, "{said}");
        assert!(said.contains("merged 2 shards"), "{said}");
        let summary = fs::read_to_string(machine.path("home").join("GITHUB_STEP_SUMMARY")).unwrap();
        assert!(summary.contains("3 trials"), "{summary}");
        assert_eq!(said.contains("::error"), !passes, "annotations: {said}");
        for file in ["evals.html", "evals.xml", "evals-run.tar.gz"] {
            assert!(artifacts.0.path().join("evals-report").join(file).exists(), "{file}");
        }
    }
}

#[test]
fn a_shard_that_is_missing_fails_the_workflow() {
    let project = three(PASS);
    project.evals(&["init", "--ci", "github", "--shards", "3"]).exits(0);
    let workflow = workflow(&project, ".github/workflows/evals.yml");
    let artifacts = Artifacts::new();
    for shard in ["1", "3"] {
        github_job(&workflow["jobs"]["shard"], &Machine::with(&project), &artifacts, shard);
    }
    let (passes, said) = github_job(&workflow["jobs"]["report"], &Machine::with(&project), &artifacts, "");
    assert!(!passes && said.contains("b (demo)") && said.contains("shard 2/3"), "{said}");
    // With one artifact, the shards lie elsewhere.
    fs::remove_dir_all(artifacts.0.path().join("evals-shard-3")).unwrap();
    let (passes, said) = github_job(&workflow["jobs"]["report"], &Machine::with(&project), &artifacts, "");
    assert!(!passes && said.contains("b (demo)") && said.contains("2/3, 3/3"), "{said}");
    fs::remove_dir_all(artifacts.0.path().join("evals-shard-1")).unwrap();
    let (passes, said) = github_job(&workflow["jobs"]["report"], &Machine::with(&project), &artifacts, "");
    assert!(!passes, "without any shard: {said}");
    // A case that cannot be read fails its shard.
    project.write("cases/c.yaml", "promt: x\n");
    let (passes, said) = github_job(&workflow["jobs"]["shard"], &Machine::with(&project), &artifacts, "1");
    assert!(!passes && said.contains("c.yaml:1:1"), "{said}");
}

#[test]
fn the_snapshots_are_those_of_the_checkout_wherever_the_shards_ran() {
    let project = three(PASS);
    project.evals(&["run", "--snapshot", "update"]).exits(0);
    project.evals(&["init", "--ci", "github"]).exits(0);
    let workflow = workflow(&project, ".github/workflows/evals.yml");
    let report = |project: &Project| {
        let artifacts = Artifacts::new();
        for shard in ["1", "2"] {
            github_job(&workflow["jobs"]["shard"], &Machine::with(project), &artifacts, shard);
        }
        github_job(&workflow["jobs"]["report"], &Machine::with(project), &artifacts, "")
    };
    let (passes, said) = report(&project);
    assert!(passes, "{said}");
    project.case("b", "", "steps: [{run: {command: 'true'}}, {say: done}]");
    let (passes, said) = report(&project);
    assert!(!passes && said.contains("snapshot"), "{said}");
}

#[test]
fn the_pipeline_of_gitlab_runs_shards_and_reports_them_as_one_run() {
    for (last, passes) in [(PASS, true), (FAIL, false)] {
        let project = three(last);
        project.evals(&["init", "--ci", "gitlab"]).exits(0);
        assert_eq!(project.read(".gitlab-ci.yml"), "include:\n  - local: .gitlab/evals.yml\n");
        let pipeline = workflow(&project, ".gitlab/evals.yml");
        // A later stage would begin beside the report.
        assert_eq!((&pipeline[".evals"]["stage"], &pipeline["evals-report"]["stage"]), (&"test".into(), &Value::Null));
        let run = |job: &str, machine: &Machine, env: &[(String, String)]| {
            let lines = [&pipeline[".evals"]["before_script"], &pipeline[job]["script"]];
            let lines = lines.iter().flat_map(|part| part.as_sequence().unwrap());
            // The service runs all lines in one shell.
            let script: Vec<&str> = lines.map(|line| line.as_str().unwrap()).collect();
            machine.step(&script.join("\n"), env)
        };
        let shards = pipeline["evals"]["parallel"].as_u64().unwrap();
        assert_eq!(shards, 2);
        assert_eq!(pipeline["evals"]["variables"]["GIT_DEPTH"], "0", "cases may begin at earlier commits");
        let last = Machine::with(&project);
        for shard in 1..=shards {
            let machine = Machine::with(&project);
            let env = [("CI_NODE_INDEX", shard.to_string()), ("CI_NODE_TOTAL", shards.to_string())];
            let output = run("evals", &machine, &env.map(|(name, value)| (name.to_owned(), value)));
            assert!(output.status.success(), "{}", text(&output));
            copy(&machine.checkout(".evals/runs"), &last.checkout(".evals/runs"));
        }
        let output = run("evals-report", &last, &[]);
        assert_eq!(output.status.success(), passes, "{}", text(&output));
        let kept = &pipeline["evals-report"]["artifacts"]["paths"];
        for path in kept.as_sequence().unwrap() {
            assert!(last.checkout(path.as_str().unwrap()).exists(), "{path:?}");
        }
    }
}

#[test]
fn what_is_there_is_not_overwritten() {
    let project = Project::new();
    // Without cases, the example suite is written, and its single case is one shard.
    project.evals(&["init", "--ci", "github"]).exits(0).says("cases/greeting.yaml");
    assert!(project.read(".github/workflows/evals.yml").contains("shard: [1]"));
    project.evals(&["run", "--shard", "1/1"]).exits(0);
    project.evals(&["init", "--ci", "github"]).exits(2).says("evals.yml is there already");
    project.write(".gitlab-ci.yml", "test: {script: [make]}\n");
    project
        .evals(&["init", "--ci", "gitlab"])
        .exits(0)
        .says("Add this to .gitlab-ci.yml, which needs the stage `test`:")
        .says("local: .gitlab/evals.yml");
    assert_eq!(project.read(".gitlab-ci.yml"), "test: {script: [make]}\n");
    project.evals(&["init", "--shards", "2"]).exits(2);
    project.evals(&["init", "--ci", "github", "--shards", "0"]).exits(2);
    project.evals(&["init", "d", "--ci", "github", "--install", "a\nb"]).exits(2).says("a command is one line");
    // Any command can install the program.
    let install = r##"echo "a: b" # 'c'"##;
    project.evals(&["init", "d", "--ci", "github", "--install", install]).exits(0);
    let steps = &workflow(&project, "d/.github/workflows/evals.yml")["jobs"]["shard"]["steps"];
    let mut scripts = steps.as_sequence().unwrap().iter().filter_map(|step| step["run"].as_str());
    assert!(scripts.any(|script| script == format!("if ! command -v evals; then\n  {install}\nfi\n")));
    // Another command may install another program, which needs another place in the cache.
    let keys = |path: &str| project.read(path).lines().find(|line| line.contains("key: ")).map(str::to_owned);
    assert_ne!(keys("d/.github/workflows/evals.yml"), keys(".github/workflows/evals.yml"));
    project.evals(&["init", "e", "--ci", "github", "--shards", "2"]).exits(2).says("more than the number of cases, 1");
    // The service reads the workflow in the root of the repository alone, and on the branch that there is.
    fs::create_dir_all(project.path("e/.git")).unwrap();
    project.write("e/.git/HEAD", "ref: refs/heads/trunk\n");
    project.evals(&["init", "e", "--ci", "github"]).exits(0);
    assert!(project.read("e/.github/workflows/evals.yml").contains("branches: [trunk]"));
    fs::create_dir(project.path("e/part")).unwrap();
    project.evals(&["init", "e/part", "--ci", "github"]).exits(0).says("only in the root of the repository");
}

#[test]
fn the_action_runs_the_cases_and_gives_its_exit_code() {
    let action: Value = serde_yaml::from_str(include_str!("../../action.yml")).unwrap();
    assert_eq!(action["inputs"]["version"]["default"], env!("CARGO_PKG_VERSION"));
    let run = |project: &Project, given: &[(&str, &str)]| {
        let machine = Machine::with(project);
        let (mut passes, mut said) = (true, String::new());
        for step in action["runs"]["steps"].as_sequence().unwrap() {
            let Some(script) = step["run"].as_str() else { continue };
            assert!(!script.contains("${{"), "inputs are no part of a script");
            let env = map(&step["env"]).into_iter().map(|(name, value)| {
                let input = value.trim_start_matches("${{ inputs.").trim_end_matches(" }}").to_owned();
                let default = action["inputs"][&*input]["default"].as_str().unwrap().to_owned();
                (name, given.iter().find(|(name, _)| *name == input).map_or(default, |(_, value)| (*value).to_owned()))
            });
            let output = machine.step(script, &env.collect::<Vec<_>>());
            said.push_str(&text(&output));
            passes &= output.status.success();
        }
        (passes, fs::read_to_string(machine.path("home").join("GITHUB_OUTPUT")).unwrap(), said, machine)
    };
    let (passes, outputs, said, machine) = run(&three(PASS), &[]);
    assert!(passes && outputs.contains("exit-code=0\n") && outputs.contains("artifact=evals\n"), "{outputs}{said}");
    assert!(machine.checkout("evals.html").exists() && machine.checkout("evals.xml").exists());
    let (passes, outputs, ..) = run(&three(FAIL), &[("args", "--trials 2")]);
    assert!(!passes && outputs.contains("exit-code=1\n"), "{outputs}");
    // Every line of an input counts, and quotes keep words together.
    let lines = [("paths", "cases/a.yaml\ncases/c.yaml\n"), ("args", "--trials 2\n--label 'two words'\n")];
    let (passes, outputs, said, machine) = run(&three(FAIL), &lines);
    assert!(
        !passes && outputs.contains("exit-code=1\n") && said.contains("(two words): 2 cases, 1 column, 4 trials"),
        "{said}"
    );
    assert!(machine.checkout("evals-run.tar.gz").exists());
    let (passes, ..) = run(&three(PASS), &[("args", "--label 'open")]);
    assert!(!passes, "an open quote leaves nothing out");
    let (passes, outputs, ..) = run(&three(FAIL), &[("shard", "1/2")]);
    assert!(
        passes && outputs.contains("exit-code=1\n") && outputs.contains("artifact=evals-shard-1-of-2\n"),
        "{outputs}"
    );
    // Texts of inputs are no commands.
    let hostile = [("paths", "cases/ $(touch${IFS}made) ;touch made"), ("version", "0.1.0; touch made")];
    let (passes, outputs, _, machine) = run(&three(PASS), &hostile);
    assert!(!passes && outputs.contains("exit-code=2\n") && !machine.checkout("made").exists(), "{outputs}");
}

/// What the model of the page's agent answers: it mends the script of the example suite.
const ANSWERS: &str = "\
turns:
  - text: I mend it.
    calls: [{execute: {command: \"sed -i 's/Hello, !/Hello, $1!/' greet.sh\"}}]
    usage: {input: 100, output: 20}
  - text: It greets now.
    usage: {input: 120, output: 12}
";

#[test]
fn every_command_of_the_page_works_in_its_order() {
    let service = Gateway::play(ANSWERS);
    let project = Project::new();
    let machine = Machine::with(&project);
    let page = include_str!("../../docs/ci.md");
    let manifest =
        crate::gateway::stand::MANIFEST.replace("AGENT,", &format!("{}/agent.py,", machine.path("home").display()));
    fs::write(machine.path("home").join("agent.py"), crate::gateway::stand::AGENT).unwrap();
    fs::create_dir(machine.checkout("harnesses")).unwrap();
    fs::write(machine.checkout("harnesses/my-agent.yaml"), format!("name: my-agent{manifest}")).unwrap();
    let env = [
        ("EVALS_UPSTREAM_ANTHROPIC", service.base_url()),
        ("ANTHROPIC_API_KEY", "sk-a-key".to_owned()),
        ("AGENT_API_KEY", "sk-a-key".to_owned()),
    ];
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut count = 0;
    for block in blocks {
        // A user accepts and records on a machine of their own, where CI is not set.
        let output =
            machine.step(&format!("unset CI; {block}"), &env.clone().map(|(name, value)| (name.to_owned(), value)));
        assert!(output.status.success(), "{block}\n{}", text(&output));
        count += 1;
    }
    assert!(count >= 9, "{count} blocks");
    for made in ["evals.html", "comparison.md", "cases/baseline.json", "cases/greeting.snapshots/my-agent.snap"] {
        assert!(machine.checkout(made).exists(), "{made}");
    }
}

//! The commands of the tutorial's section on real agents work as the page has them. A scripted model takes the place of the
//! model's service; the keys and the settings that name it are the reader's.

use std::path::Path;
use std::process::Command;

use crate::cassettes::Service;
use crate::installed::{self, Agent, Check};
use crate::page_of_tutorial::{PAGE, blocks, commands_of, script};
use crate::project::Project;

static AGENTS: Agent = Agent {
    name: "Claude Code and Codex, the tutorial",
    part: "large/npm",
    pins: "large/package-lock.json",
    program: "node_modules/.bin/claude",
};

/// The section.
const SECTION: &str = "6. Run a real agent";

/// The solution of the page's task, as the model tells it.
const SCRIPT: &str = r#"
turns:
  - text: I correct the function.
    calls: [{edit: {path: total.py, old: "    result = prices[0]\n    for price in prices[1:]:", new: "    result = 0\n    for price in prices:"}}]
    usage: {input: 100, output: 20}
  - {text: The total of an empty list is 0., usage: {input: 200, output: 10}}
"#;

/// The exit code of each command, in order, and what it prints. The check exits with 3, because Claude Code does not show a
/// text in pieces.
const SHOWN: [(i32, &[&str]); 4] = [
    (0, &["claude-code-stream", "codex"]),
    (3, &["tool-calls          seen", "permission-approve  not applicable", "tier: wired"]),
    (0, &["PASS      empty-list  claude-code-stream", "1 passed"]),
    (0, &["pass 3/3", "gpt-5.5", "3 passed"]),
];

#[test]
#[ignore = "slow: starts installed agents"]
fn the_commands_of_the_tutorial_work_with_real_agents() {
    let check = Check { agent: &AGENTS, what: "the commands of the page", run: follows };
    installed::run("the tutorial", 1, 2, &[&check]);
}

fn follows(_: &Agent, program: &Path) {
    let commands = commands_of(SECTION);
    assert_eq!(commands.len(), SHOWN.len(), "{commands:?}");
    let service = Service::start(SCRIPT);
    let project = Project::on_disk();
    let home = |path: &str, text: &str| {
        let path = project.home().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    home(
        ".gitconfig",
        "[user]\nname = A\nemail = a@example.com\n[init]\ndefaultBranch = main\n[commit]\ngpgsign = false\n",
    );
    let provider = "name = \"mine\"\nwire_api = \"responses\"\nrequires_openai_auth = false\n";
    let url = service.url();
    home(
        ".codex/config.toml",
        &format!("model_provider = \"mine\"\n[model_providers.mine]\n{provider}base_url = \"{url}/v1\"\n"),
    );
    let run = |script: &str| {
        let evals = Path::new(env!("CARGO_BIN_EXE_evals")).parent().unwrap();
        let agents = program.parent().unwrap();
        let path = format!("{}:{}:{}", evals.display(), agents.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec 2>&1\n{script}")]).current_dir(project.path("")).env_clear();
        command.envs([("PATH", path.as_str()), ("HOME", project.home().to_str().unwrap())]);
        command.env("TMPDIR", project.temporary()).env("ANTHROPIC_BASE_URL", url).env("ANTHROPIC_API_KEY", "sk-mine");
        let done = command.output().unwrap();
        (done.status.code(), String::from_utf8(done.stdout).unwrap())
    };
    // The reader comes to the section with what the sections before it made.
    let before = PAGE.split(&format!("\n## {SECTION}")).next().unwrap();
    let (code, out) = run(&script(&blocks(before)));
    assert_eq!(code, Some(0), "{out}");
    for (command, (exits, shown)) in commands.iter().zip(SHOWN) {
        let (code, out) = run(&format!("cd shop\n{command}"));
        assert_eq!(code, Some(exits), "`{command}` prints\n{out}");
        for text in shown {
            assert!(out.contains(text), "`{command}` does not print `{text}`:\n{out}");
        }
    }
}

//! Experiments with coding agents as people install them: what an arm lays is in the agent's own requests to its model, in
//! the requests of this arm alone, and a skill that the model uses is counted as used.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::installed::{self, Agent, Check};
use crate::live::{Stand, Trial};

/// The facts about an agent and a harness for it.
struct Learner {
    agent: Agent,
    /// Its manifest, which is built in.
    harness: &'static str,
    /// The call by which its model uses the skill. `{at}` is the start of a path in the home or in the workspace.
    uses: &'static str,
    /// The verdict of a trial that uses the skill and must use it.
    used: &'static str,
    /// True if it lists the skills that it loaded.
    lists: bool,
    /// How it offers the tool of an MCP server to its model; `None` if its harness takes no servers.
    offers: Option<Offers>,
}

/// How an agent offers the tool of an MCP server to its model.
enum Offers {
    /// Among its tools, under this name.
    Tool(&'static str),
    /// By its name, to be loaded with `ToolSearch`.
    Name(&'static str),
    /// By this line with the name of the server, in the description of its search for tools. The scripted model cannot
    /// answer with such a search, which is an item of its own in the Responses API and not a call of a function.
    Server(&'static str),
}

const NPM: Agent = Agent { name: "", part: "large/npm", pins: "large/package-lock.json", program: "" };

const USUAL: Learner = Learner { agent: NPM, harness: "", uses: "", used: "pass", lists: false, offers: None };

/// Codex has no tool for skills: its instructions say to read the file.
const READS: &str = "execute: {command: 'cat {at}.agents/skills/changelog/SKILL.md'}";

static LEARNERS: [Learner; 8] = [
    Learner {
        agent: Agent { name: "Claude Code, its stream", program: "node_modules/.bin/claude", ..NPM },
        harness: "claude-code-stream",
        uses: "tool: Skill, input: {skill: changelog}",
        lists: true,
        offers: Some(Offers::Name("mcp__notes__file_note")),
        ..USUAL
    },
    Learner {
        agent: Agent { name: "claude-agent-acp", program: "node_modules/.bin/claude-agent-acp", ..NPM },
        harness: "claude-agent-acp",
        uses: "tool: Skill, input: {skill: changelog}",
        offers: Some(Offers::Name("mcp__notes__file_note")),
        ..USUAL
    },
    Learner {
        agent: Agent { name: "Codex, its stream", program: "node_modules/.bin/codex", ..NPM },
        harness: "codex",
        uses: READS,
        ..USUAL
    },
    Learner {
        agent: Agent { name: "codex-acp", program: "node_modules/.bin/codex-acp", ..NPM },
        harness: "codex-acp",
        uses: READS,
        offers: Some(Offers::Server("\n- notes\n")),
        ..USUAL
    },
    Learner {
        agent: Agent { name: "Gemini CLI, its stream", program: "node_modules/.bin/gemini", ..NPM },
        harness: "gemini-stream",
        uses: "tool: activate_skill, input: {name: changelog}",
        ..USUAL
    },
    Learner {
        agent: Agent { name: "Gemini CLI", program: "node_modules/.bin/gemini", ..NPM },
        harness: "gemini",
        uses: "tool: activate_skill, input: {name: changelog}",
        // Over ACP it shows neither the name of a tool nor the input, so a call that succeeded may be a use of any skill.
        used: "ungraded",
        offers: Some(Offers::Tool("mcp_notes_file_note")),
        ..USUAL
    },
    Learner {
        agent: Agent { name: "OpenCode, its stream", program: "node_modules/.bin/opencode", ..NPM },
        harness: "opencode-stream",
        uses: "tool: skill, input: {name: changelog}",
        ..USUAL
    },
    Learner {
        agent: Agent { name: "OpenCode", program: "node_modules/.bin/opencode", ..NPM },
        harness: "opencode",
        uses: "tool: skill, input: {name: changelog}",
        offers: Some(Offers::Tool("notes_file_note")),
        ..USUAL
    },
];

#[test]
#[ignore = "slow: starts installed agents"]
fn experiments_with_coding_agents() {
    let checks: Vec<Check> = LEARNERS
        .iter()
        .flat_map(|learner| {
            let check = |what, run| Check { agent: &learner.agent, what, run };
            let always = [
                check("a skill in its home", skill_at_home as fn(&Agent, &Path)),
                check("a skill in the workspace", skill_in_workspace),
                check("an instruction file in its home", instructions_at_home),
                check("an instruction file in the workspace", instructions_in_workspace),
            ];
            always.into_iter().chain(learner.offers.is_some().then(|| check("an MCP server", server)))
        })
        .collect();
    installed::run("experiments with coding agents", 3, 2, &checks.iter().collect::<Vec<_>>());
}

/// The agent of the experiment that is shipped with a scripted model.
static SHIPPED: Agent =
    Agent { name: "Claude Code, the shipped experiment", program: "node_modules/.bin/claude", ..NPM };

#[test]
#[ignore = "slow: starts installed agents"]
fn the_shipped_experiment_with_a_real_agent() {
    let check = Check { agent: &SHIPPED, what: "its arms differ", run: shipped };
    installed::run("the shipped experiment with a coding agent", 1, 1, &[&check]);
}

fn shipped(_: &Agent, program: &Path) {
    let stand = Stand::built_in("claude-code-stream", program.parent().unwrap());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/experiments/instructions");
    crate::project::copy(&folder, &stand.project.path("example"));
    let ran = stand.run(&["--experiment", "example/experiment.yaml"]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    let compared = stand.project.evals(&["compare", "--format", "json"]).json();
    assert_eq!((&compared["pairs"][0]["score_old"], &compared["pairs"][0]["score_new"]), (&json!(0.5), &json!(1.0)));
}

/// A run of an agent with two arms.
struct Recorded {
    learner: &'static Learner,
    stand: Stand,
    ran: crate::project::Ran,
}

/// A trial, its exchanges with the model, and the change of the workspace.
struct Arm {
    trial: Trial,
    /// The bodies of the requests.
    requests: Vec<String>,
    /// The exchanges.
    model: Vec<Value>,
    /// What changed in the workspace.
    change: String,
}

impl Recorded {
    /// Runs cases as an experiment with the arms `without` and `with`; `with` has these keys. `write` writes the cases.
    #[track_caller]
    fn run(agent: &Agent, program: &Path, vary: &str, with: &str, write: impl Fn(&Stand)) -> Self {
        let learner = LEARNERS.iter().find(|learner| learner.agent.name == agent.name).unwrap();
        let mut stand = Stand::built_in(learner.harness, program.parent().unwrap());
        // OpenCode lists the files of a skill with ripgrep, and downloads one if `PATH` has none. This one finds none.
        stand.project.write("bin/rg", "#!/bin/sh\nexit 1\n");
        let (rg, path) = (stand.project.path("bin/rg"), std::env::var("PATH").unwrap());
        fs::set_permissions(&rg, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let (rg, programs) = (rg.parent().unwrap().display(), program.parent().unwrap().display());
        stand.project.env("PATH", &format!("{rg}:{programs}:{path}"));
        write(&stand);
        let experiment =
            format!("cases: [../cases]\nvary: [{vary}]\nvariants:\n  without: {{}}\n  with: {{{vary}: {with}}}\n");
        stand.project.write("experiments/x.yaml", &experiment);
        let ran = stand.run(&["--experiment", "experiments/x.yaml", "--keep-workspace", "never"]);
        assert_ne!(ran.code, 2, "{}", ran.err);
        Self { learner, stand, ran }
    }

    /// Returns a trial of an arm.
    #[track_caller]
    fn arm(&self, case: &str, arm: &str) -> Arm {
        let trial = self.stand.trial_of(case, arm);
        let folder = self.stand.folder_of(case, arm);
        let model = self.stand.project.model_log(&folder);
        let requests = model.iter().map(|exchange| exchange["request"].to_string()).collect();
        // The agent lists no skill beside its own ones and those of the arm.
        assert!(!trial.text.contains("\"unexpected_skill\""), "{}", trial.text);
        let change = self.stand.project.of_trial(&folder, "workspace.patch");
        Arm { trial, requests, model, change }
    }
}

impl Arm {
    /// Returns true if a request contains a text, escaped as in JSON.
    fn requests_contain(&self, text: &str) -> bool {
        let text = json!(text).to_string();
        self.requests.iter().any(|request| request.contains(text.trim_matches('"')))
    }

    /// Returns true if the agent offers the skill to its model: a request has its description, shortly after its name.
    fn is_offered_skill(&self) -> bool {
        let offers = |request: &String| {
            let at = request.find(DESCRIPTION);
            at.is_some_and(|at| request[..at].rfind("changelog").is_some_and(|name| at - name < 60))
        };
        self.requests.iter().any(offers)
    }

    /// Returns true if a request offers a tool.
    fn is_offered_tool(&self, name: &str) -> bool {
        self.model.iter().any(|exchange| exchange["tools"].as_array().is_some_and(|tools| tools.contains(&json!(name))))
    }

    #[track_caller]
    fn ended(&self, verdict: &str) {
        assert_eq!(self.trial.result["verdict"], verdict, "{}\n{}", self.trial.result, self.trial.text);
    }
}

/// The description of the skill, which the agent offers, and its text, which the agent reads when it uses the skill.
const DESCRIPTION: &str = "Lists what a release of the lighthouse changes.";
const TEXT: &str = "Begin with the lamp oil.";

fn skill_at_home(agent: &Agent, program: &Path) {
    skill(agent, program, "[../skills/changelog]", "~/");
}

fn skill_in_workspace(agent: &Agent, program: &Path) {
    skill(agent, program, "[{path: ../skills/changelog, in: project}]", "");
}

/// The script of a model is that of the case, and so the same in both arms. In one case the model uses the skill, also in
/// the arm that has none; in the other it uses nothing.
fn skill(agent: &Agent, program: &Path, with: &str, at: &str) {
    let recorded = Recorded::run(agent, program, "skills", with, |stand| {
        let uses = LEARNERS.iter().find(|learner| learner.agent.name == agent.name).unwrap().uses.replace("{at}", at);
        let skill = format!("---\nname: changelog\ndescription: {DESCRIPTION}\n---\n{TEXT}\n");
        stand.project.write("skills/changelog/SKILL.md", &skill);
        let script = format!("turns:\n  - calls: [{{{uses}}}]\n  - text: Used.\n");
        stand.project.write("cases/uses.model.yaml", &script);
        stand.project.write("cases/ignores.model.yaml", "turns: [{text: Not used.}]\n");
        for (case, key) in [("uses", "used"), ("ignores", "not-used")] {
            let graders = format!("graders: [{{skills: {{{key}: [changelog]}}}}]");
            stand.case(case, &format!("prompt: Do it.\nmodel: {{script: {case}.model.yaml}}\n{graders}"));
        }
    });
    let arms = [("uses", "with"), ("uses", "without"), ("ignores", "with"), ("ignores", "without")];
    let [used, failed, ignored, plain] = arms.map(|(case, arm)| recorded.arm(case, arm));
    for (arm, is_laid) in [(&used, true), (&failed, false), (&ignored, true), (&plain, false)] {
        assert_eq!(arm.change, "", "what is laid is no change");
        assert_eq!(arm.is_offered_skill(), is_laid, "{:#?}", arm.requests);
        assert_eq!(arm.requests_contain(DESCRIPTION), is_laid, "{:#?}", arm.requests);
        if recorded.learner.lists {
            let said = arm.trial.said("recv");
            let listed = said.iter().find_map(|(_, line)| line["skills"].as_array()).unwrap();
            assert_eq!(listed.contains(&json!("changelog")), is_laid, "{listed:?}");
        }
        // The text of a skill is read when it is used, and not before.
        assert_eq!(arm.requests_contain(TEXT), std::ptr::eq(arm, &used), "{:#?}", arm.requests);
    }
    used.ended(recorded.learner.used);
    // The same call in the arm without the skill ends with an error, which is no use.
    failed.ended("fail");
    let status = |arm: &Arm| arm.trial.of("tool_result").iter().map(|it| it["status"].clone()).collect::<Vec<_>>();
    assert_eq!((status(&used), status(&failed)), (vec![json!("ok")], vec![json!("error")]), "{}", failed.trial.text);
    ignored.ended("pass");
    plain.ended("pass");
    assert_eq!(recorded.ran.code, 1, "{}", recorded.ran.out);
}

const SENTENCE: &str = "Greet the heron before you begin.";

fn instructions_at_home(agent: &Agent, program: &Path) {
    instructions(agent, program, "user");
}

fn instructions_in_workspace(agent: &Agent, program: &Path) {
    instructions(agent, program, "project");
}

fn instructions(agent: &Agent, program: &Path, place: &str) {
    let with = format!("{{text: {SENTENCE}, in: {place}}}");
    let recorded = Recorded::run(agent, program, "instructions", &with, |stand| {
        stand.project.write("cases/a.model.yaml", "turns: [{text: Done so.}]\n");
        stand.case("a", "prompt: Do it.\nmodel: {script: a.model.yaml}\ngraders: [{output: {equals: Done so.}}]");
    });
    for (arm, is_laid) in [("with", true), ("without", false)] {
        let arm = recorded.arm("a", arm);
        arm.ended("pass");
        assert_eq!(arm.change, "", "what is laid is no change");
        assert_eq!(arm.requests_contain(SENTENCE), is_laid, "{:#?}", arm.requests);
    }
}

/// A real server over standard input and output, whose tool writes a file in the workspace.
fn server(agent: &Agent, program: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/notes_server.py");
    let with = format!("{{notes: {{command: python3, args: [{}, ledger.txt]}}}}", script.display());
    let learner = LEARNERS.iter().find(|learner| learner.agent.name == agent.name).unwrap();
    let offers = learner.offers.as_ref().unwrap();
    let call = |tool: &str| format!("  - calls: [{{tool: {tool}, input: {{text: The lamp is lit.}}}}]\n");
    let turns = match offers {
        Offers::Tool(tool) => call(tool),
        Offers::Name(tool) => format!(
            "  - calls: [{{tool: ToolSearch, input: {{query: 'select:{tool}', max_results: 5}}}}]\n{}",
            call(tool)
        ),
        Offers::Server(_) => String::new(),
    };
    let recorded = Recorded::run(agent, program, "mcp-servers", &with, |stand| {
        stand.project.write("cases/a.model.yaml", &format!("turns:\n{turns}  - text: Done so.\n"));
        stand.case("a", "prompt: Do it.\nmodel: {script: a.model.yaml}\ngraders: [{output: {equals: Done so.}}]");
    });
    let [with, without] = ["with", "without"].map(|arm| recorded.arm("a", arm));
    with.ended("pass");
    match offers {
        Offers::Tool(tool) | Offers::Name(tool) => {
            assert!(with.is_offered_tool(tool) && !without.is_offered_tool(tool), "{:#?}", with.model);
            if let Offers::Name(_) = offers {
                assert!(with.requests[0].contains(tool), "{}", with.requests[0]);
            }
            assert!(with.change.contains("+The lamp is lit."), "{}\n{}", with.change, with.trial.text);
            // In the other arm the script names a tool that is not offered, so the trial is not the one that the case describes.
            without.ended("errored");
            let error = &without.trial.result["error"];
            assert_eq!(error["category"], "setup", "{error}");
            assert!(error["message"].as_str().unwrap().contains(&format!("no tool called `{tool}`")), "{error}");
        }
        Offers::Server(line) => {
            assert!(with.requests_contain(line) && !without.requests_contain(line), "{:#?}", with.requests);
            without.ended("pass");
        }
    }
}

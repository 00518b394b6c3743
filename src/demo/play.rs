//! Plays the steps of a turn, independent of the protocol: output goes to a [`Stage`], which implements the
//! protocol.

use std::collections::HashSet;
use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use super::script::{PlanLine, Question, Step, Tool, UsageStep};
use super::tools::{CallOutcome, Workspace};
use crate::trace::ToolKind;

/// The output of a turn, and its requests.
pub trait Stage {
    /// Shows a thought.
    ///
    /// # Errors
    /// Returns an error if the reader has disconnected.
    fn thought(&mut self, text: &str) -> io::Result<()>;

    /// Sends a message.
    ///
    /// # Errors
    /// Returns an error if the reader has disconnected.
    fn say(&mut self, text: &str) -> io::Result<()>;

    /// Shows the plan.
    ///
    /// # Errors
    /// Returns an error if the reader has disconnected.
    fn plan(&mut self, plan: &[PlanLine]) -> io::Result<()>;

    /// Announces a call.
    ///
    /// # Errors
    /// Returns an error if the reader has disconnected.
    fn announce(&mut self, call: &Call) -> io::Result<()>;

    /// Asks whether the call may be made.
    ///
    /// # Errors
    /// Returns an error if the reader has disconnected.
    fn ask(&mut self, call: &Call) -> io::Result<Permission>;

    /// Reports that the call is being carried out.
    ///
    /// # Errors
    /// Returns an error if the reader has disconnected.
    fn begin(&mut self, call: &Call) -> io::Result<()>;

    /// Shows how the call ended.
    ///
    /// # Errors
    /// Returns an error if the reader has disconnected.
    fn finish(&mut self, call: &Call, outcome: &CallOutcome) -> io::Result<()>;

    /// Asks the user. Returns `None` if no one can be asked, or without an answer.
    ///
    /// # Errors
    /// Returns an error if the reader has disconnected.
    fn question(&mut self, _question: &Question) -> io::Result<Option<String>> {
        Ok(None)
    }

    /// Lets the client carry out the call. Returns `None` if the client does not support it.
    ///
    /// # Errors
    /// Returns an error if the reader has disconnected.
    fn by_client(&mut self, _call: &Call) -> io::Result<Option<CallOutcome>> {
        Ok(None)
    }

    /// Returns true if the turn was cancelled.
    fn cancelled(&self) -> bool {
        false
    }

    /// Waits for this time, or until the turn is cancelled.
    fn wait(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// The answer to a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// The call is allowed once.
    Once,
    /// This and every later call of the tool are allowed.
    Always,
    /// The call is rejected.
    Rejected,
    /// The request was cancelled.
    Cancelled,
}

/// A tool call as it is announced.
#[derive(Debug)]
pub struct Call<'a> {
    /// The call's id, unique in the session.
    pub id: String,
    /// The step.
    pub tool: Tool<'a>,
    /// The name of the tool.
    pub name: String,
    /// The title of the call, for people.
    pub title: String,
    pub kind: ToolKind,
    /// The tool's arguments, as in the script.
    pub input: Value,
    /// The absolute paths that the call reads or changes.
    pub locations: Vec<String>,
}

/// The outcome of a turn.
#[derive(Debug, Default)]
pub struct Played {
    /// The reason why the turn ended.
    pub stop: String,
    /// The usage of the turn, according to the script.
    pub spent: Spent,
    /// The last message.
    pub last_message: Option<String>,
}

/// The sums of a script's figures. A figure that the script never gives is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// Tokens sent, without cached ones.
    pub input: Option<u64>,
    /// Tokens received.
    pub output: Option<u64>,
    /// Tokens read from the cache.
    pub cache_read: Option<u64>,
    /// Tokens written to the cache.
    pub cache_write: Option<u64>,
    /// Cost in US dollars.
    pub cost: Option<f64>,
}

impl Spent {
    fn add(&mut self, step: &UsageStep) {
        let add = |sum: &mut Option<u64>, more: Option<u64>| {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0).saturating_add(more));
            }
        };
        add(&mut self.input, step.input_tokens);
        add(&mut self.output, step.output_tokens);
        add(&mut self.cache_read, step.cache_read_tokens);
        add(&mut self.cache_write, step.cache_write_tokens);
        self.add_cost(step.cost_usd);
    }

    /// Adds a cost in US dollars, rounded to nine decimals.
    pub fn add_cost(&mut self, more: Option<f64>) {
        if let Some(more) = more {
            // Scripts state costs as decimals, and the sum must be a short decimal, too.
            const PARTS: f64 = 1e9;
            self.cost = Some(((self.cost.unwrap_or(0.0) + more) * PARTS).round() / PARTS);
        }
    }

    /// Returns true if the script gave any token count.
    pub fn has_tokens(&self) -> bool {
        [self.input, self.output, self.cache_read, self.cache_write].iter().any(Option::is_some)
    }

    /// Returns the number of all tokens, if both input and output tokens are known.
    pub fn total(&self) -> Option<u64> {
        let known = self.input?.saturating_add(self.output?);
        Some(known.saturating_add(self.cache_read.unwrap_or(0)).saturating_add(self.cache_write.unwrap_or(0)))
    }
}

/// Plays the turns of one session.
#[derive(Debug)]
pub struct Player {
    workspace: Workspace,
    calls: u64,
    always: HashSet<String>,
}

enum Flow {
    On,
    Stop(String),
}

const CANCELLED: &str = "cancelled";

impl Player {
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace, calls: 0, always: HashSet::new() }
    }

    /// Plays a turn. A prompt beyond the script's turns is answered, too.
    ///
    /// # Errors
    /// Returns an error if the reader has disconnected.
    pub fn turn(&mut self, steps: Option<&[Step]>, stage: &mut impl Stage) -> io::Result<Played> {
        let beyond = [Step::Say("The script has no further turn.".to_owned())];
        let mut played = Played::default();
        played.stop = match self.steps(steps.unwrap_or(&beyond), stage, &mut played)? {
            Flow::On => "end_turn".to_owned(),
            Flow::Stop(reason) => reason,
        };
        Ok(played)
    }

    fn steps(&mut self, steps: &[Step], stage: &mut impl Stage, played: &mut Played) -> io::Result<Flow> {
        for step in steps {
            if stage.cancelled() {
                return Ok(Flow::Stop(CANCELLED.to_owned()));
            }
            match step {
                Step::Thought(text) => stage.thought(text)?,
                Step::Say(text) => {
                    stage.say(text)?;
                    played.last_message = Some(text.clone());
                }
                Step::Plan(plan) => stage.plan(plan)?,
                Step::Usage(usage) => played.spent.add(usage),
                Step::Sleep(time) => stage.wait(time.0),
                Step::Stop(reason) => return Ok(Flow::Stop(reason.clone())),
                Step::Question(question) => {
                    if let Flow::Stop(reason) = self.ask_user(question, stage, played)? {
                        return Ok(Flow::Stop(reason));
                    }
                }
                Step::Parallel(steps) => {
                    let tools: Vec<Tool> = steps.iter().filter_map(Step::tool).collect();
                    if let Flow::Stop(reason) = self.calls(&tools, stage, played)? {
                        return Ok(Flow::Stop(reason));
                    }
                }
                call => {
                    let tools: Vec<Tool> = call.tool().into_iter().collect();
                    if let Flow::Stop(reason) = self.calls(&tools, stage, played)? {
                        return Ok(Flow::Stop(reason));
                    }
                }
            }
        }
        Ok(if stage.cancelled() { Flow::Stop(CANCELLED.to_owned()) } else { Flow::On })
    }

    fn ask_user(&mut self, question: &Question, stage: &mut impl Stage, played: &mut Played) -> io::Result<Flow> {
        let answer = stage.question(question)?;
        match answer {
            Some(answer) if question.when.is_empty() => {
                stage.say(&answer)?;
                played.last_message = Some(answer);
                Ok(Flow::On)
            }
            answer => {
                let steps = answer.and_then(|answer| question.when.get(&answer)).unwrap_or(&question.otherwise);
                self.steps(steps, stage, played)
            }
        }
    }

    /// Makes calls that are announced together in order, so that a script always plays in the same way.
    fn calls(&mut self, tools: &[Tool], stage: &mut impl Stage, played: &mut Played) -> io::Result<Flow> {
        let calls: Vec<Call> = tools.iter().map(|tool| self.call(*tool)).collect();
        for call in &calls {
            stage.announce(call)?;
        }
        let mut cancelled = false;
        let mut otherwise: Vec<&[Step]> = Vec::new();
        for call in &calls {
            if cancelled || stage.cancelled() {
                stage.finish(call, &CallOutcome::failed(CANCELLED))?;
                continue;
            }
            let manner = call.tool.manner();
            if manner.ask && !self.always.contains(&call.name) {
                match stage.ask(call)? {
                    Permission::Once => {}
                    Permission::Always => {
                        self.always.insert(call.name.clone());
                    }
                    answer @ (Permission::Rejected | Permission::Cancelled) => {
                        cancelled = answer == Permission::Cancelled;
                        stage.finish(call, &CallOutcome::failed("rejected"))?;
                        otherwise.push(manner.otherwise);
                        continue;
                    }
                }
            }
            stage.begin(call)?;
            let by_client = manner.fails.is_none() && call.tool.by_client();
            let outcome = match (manner.fails, if by_client { stage.by_client(call)? } else { None }) {
                (Some(text), _) => CallOutcome::failed(text),
                (None, Some(outcome)) => outcome,
                (None, None) => self.workspace.perform(call.tool, &|| stage.cancelled()),
            };
            stage.finish(call, &outcome)?;
        }
        // Played after the round is over, because their calls form a separate step.
        for steps in otherwise {
            if let Flow::Stop(reason) = self.steps(steps, stage, played)? {
                return Ok(Flow::Stop(if cancelled { CANCELLED.to_owned() } else { reason }));
            }
        }
        Ok(if cancelled { Flow::Stop(CANCELLED.to_owned()) } else { Flow::On })
    }

    fn call<'a>(&mut self, tool: Tool<'a>) -> Call<'a> {
        self.calls += 1;
        let (name, title, kind, input, paths) = describe(tool);
        let manner = tool.manner();
        Call {
            id: format!("call_{}", self.calls),
            tool,
            name: manner.name.unwrap_or(name).to_owned(),
            title: manner.title.map_or(title, str::to_owned),
            kind,
            input,
            locations: paths.into_iter().map(|path| self.workspace.absolute(path)).collect(),
        }
    }
}

/// Returns the default name and title of a tool, and the kind, input and paths of its call.
fn describe(tool: Tool<'_>) -> (&'static str, String, ToolKind, Value, Vec<&str>) {
    match tool {
        Tool::Read(step) => {
            let mut input = json!({"path": step.path});
            for (key, figure) in [("line", step.line), ("limit", step.limit)] {
                if let Some(figure) = figure {
                    input[key] = json!(figure);
                }
            }
            ("Read", format!("Read {}", step.path), ToolKind::Read, input, vec![&step.path])
        }
        Tool::Search(step) => {
            let input = json!({"pattern": step.pattern, "path": step.path});
            ("Search", format!("Search {}", step.pattern), ToolKind::Search, input, vec![&step.path])
        }
        Tool::Write(step) => {
            let input = json!({"path": step.path, "text": step.text});
            ("Write", format!("Write {}", step.path), ToolKind::Edit, input, vec![&step.path])
        }
        Tool::Edit(step) => {
            let input = json!({"path": step.path, "old": step.old, "new": step.new});
            ("Edit", format!("Edit {}", step.path), ToolKind::Edit, input, vec![&step.path])
        }
        Tool::Delete(step) => {
            let input = json!({"path": step.path});
            ("Delete", format!("Delete {}", step.path), ToolKind::Delete, input, vec![&step.path])
        }
        Tool::Move(step) => {
            let input = json!({"from": step.from, "to": step.to});
            let title = format!("Move {} to {}", step.from, step.to);
            ("Move", title, ToolKind::Move, input, vec![&step.from, &step.to])
        }
        Tool::Run(step) => {
            ("Bash", step.command.clone(), ToolKind::Execute, json!({"command": step.command}), Vec::new())
        }
        Tool::Fetch(step) => {
            ("Fetch", format!("Fetch {}", step.url), ToolKind::Fetch, json!({"url": step.url}), Vec::new())
        }
    }
}

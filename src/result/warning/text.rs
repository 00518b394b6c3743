//! The text of each warning, for people.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::{FileChange, LimitGap, PROMPT_OF_VARIANT, Unrecorded, Warning};
use crate::text::{plural, some_of};
use crate::values::Time;

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::UserHome => out.write_str("the agent had the user's own home, as its manifest requests"),
            Warning::SkillsNotListed => {
                out.write_str("the agent listed no skills, so which it loaded was not verified")
            }
            Warning::ServersNotListed => {
                out.write_str("the agent listed no MCP servers, so which it loaded was not verified")
            }
            Warning::UnexpectedSkill { names } => {
                write!(out, "the agent loaded skills that its trial should not have: {}", names.join(", "))
            }
            Warning::NoPermissions { harness, policy } => write!(
                out,
                "harness `{harness}` does not ask for permission; its own default counts instead of `{policy}`"
            ),
            Warning::SystemPromptInPrompt => out.write_str("the system prompt was put before the first prompt"),
            Warning::BesideGateway { agent, gateway } => write!(
                out,
                "the agent reported {agent} tokens, and the gateway saw {gateway}; it may have used a model beside the \
                 gateway, whose tokens and cost the figures leave out"
            ),
            Warning::PromptsNotSent { sent, planned } => {
                write!(
                    out,
                    "{sent} of {planned} prompts were sent, because the agent did not end the last of them by its answer, a \
                     limit was reached, the workspace was gone, the recording ends there, or the case had fewer prompts when \
                     the agent ran; unless it was a limit with `on-limit: grade`, or a passed `stop` grader asks for that \
                     end, such a trial does not pass"
                )
            }
            Warning::OtherInputs => out.write_str(
                "the agent had other inputs than the case names now, such as another prompt, workspace, environment, policy \
                 or limits: the grades are those of the old session",
            ),
            Warning::ShortSecret { name, shortest } => {
                write!(out, "the value of {name} is under {shortest} characters and is not masked")
            }
            Warning::ScriptedModel { problem } => write!(out, "the scripted model: {problem}"),
            Warning::ModelLogCut { asked, kept } => {
                write!(out, "the gateway got {}; `llm.jsonl` holds {kept} of them", plural(*asked, "request"))
            }
            Warning::CassetteMissed { requests } => {
                write!(out, "the agent made {} that the cassette does not hold", plural(*requests, "request"))
            }
            Warning::CassetteLeft { entries } => {
                let numbers: Vec<String> = entries.iter().map(u64::to_string).collect();
                let noun = if entries.len() == 1 { "entry" } else { "entries" };
                write!(out, "the agent did not make all requests of the cassette: {noun} {} left", numbers.join(", "))
            }
            Warning::CassetteAgent { recorded, now } => {
                write!(out, "the cassette was recorded with version {recorded} of the agent, and version {now} ran now")
            }
            Warning::NotRecordable { requests, first } => write!(
                out,
                "{} got status 404, because a cassette has no such paths; the first: {first}",
                plural(*requests, "request")
            ),
            Warning::AsideNotRecorded { requests } => write!(
                out,
                "the cassette lacks {} outside the conversation (manifest key `gateway.aside`), answered with an error",
                plural(*requests, "request")
            ),
            Warning::NoRequest => out.write_str("the agent made no request to the gateway"),
            Warning::PlayedInPart { played, of } => {
                write!(out, "{played} of the {of} answers of the model were played from a cassette")
            }
            Warning::NothingRecorded { why } => write!(
                out,
                "no cassette was written, because {}",
                match why {
                    Unrecorded::NoAnswer => "the service answered no request",
                    Unrecorded::Ended => "the agent was ended before its session was complete",
                }
            ),
            Warning::RecordedInPart { requests, first } => write!(
                out,
                "the cassette lacks {} that cannot be recorded, so a replay may miss; the first: {first}",
                plural(*requests, "request")
            ),
            Warning::UnreadRequests { requests, why } => write!(
                out,
                "the gateway could not read {} that it sent on, so a model that did not answer may be unnoticed; the first: \
                 {why}",
                plural(*requests, "request")
            ),
            Warning::KeyLeftOut { requests, names } => write!(
                out,
                "{} went on without `{names}`, which holds the key of another service or has the name of one; if this \
                 service needs it, set the variable of the service's own key to it, or add the header by \
                 EVALS_UPSTREAM_HEADERS",
                plural(*requests, "request")
            ),
            Warning::NothingToEnforce => out.write_str("--enforce-model had no effect, because no model was asked for"),
            Warning::ScriptLeft { played, turns } => {
                write!(out, "the agent asked for {played} of the {turns} turns of the model's script")
            }
            Warning::ScriptExceeded { requests } => {
                let times = if *requests == 1 { "once".to_owned() } else { format!("{requests} times") };
                write!(out, "after the last turn of the model's script the agent asked {times} more")
            }
            Warning::Flaky { run } => write!(out, "flaky: it failed in run {run} and passed now"),
            Warning::WorkedOn { path, ms } => write!(
                out,
                "the agent wrote `{path}` {} after its answer, which counts for the result, but not for its time",
                Time(Duration::from_millis(*ms))
            ),
            Warning::EngineStopped { ms } => write!(
                out,
                "evals itself was stopped for {}; the times of the trial include this time, in which the agent may have worked",
                Time(Duration::from_millis(*ms))
            ),
            Warning::HeldOn => out.write_str("the agent did not exit after its answer and was ended"),
            Warning::ExitUnknown => out.write_str(
                "how the agent ended after its answer is unknown, because its supervisor was ended or stopped",
            ),
            Warning::ExitCode { exit } => write!(out, "the agent exited {exit} after its answer"),
            Warning::ExitSignal { signal } => write!(out, "the agent was ended by signal {signal} after its answer"),
            Warning::RepeatedRequest { why } => {
                write!(out, "when its time was over, the agent was repeating a request to its model: {why}")
            }
            Warning::NoModel { requests, why, event } => {
                let requests =
                    if *requests == 1 { "1 request was".to_owned() } else { format!("{requests} requests were") };
                write!(out, "{requests} answered without a model by the policy `llm`: {why}")?;
                match event {
                    Some(event) => write!(
                        out,
                        "; the request of event {event} got the policy's default answer instead, so the trial is ungraded"
                    ),
                    None => Ok(()),
                }
            }
            Warning::Interrupted => {
                out.write_str("the session was interrupted before the agent had answered, so it is not graded")
            }
            Warning::FailsWithoutModels => {
                out.write_str("the trial fails by its other graders, and graders that ask a model cannot change that")
            }
            Warning::LimitReached { key } => write!(out, "limit `{key}` was reached and ended the trial"),
            Warning::LimitExceeded { key, limit, value, at_least } => {
                let (limit, value) = (figure_of(key, *limit), figure_of(key, *value));
                let least = if *at_least { ">= " } else { "" };
                write!(out, "limit `{key}` is {limit} and was exceeded: {least}{value}")
            }
            Warning::LimitUnknown { key, limit, at_least, gap } => {
                let known = at_least.map_or_else(String::new, |value| format!(" (>= {})", figure_of(key, value)));
                let limit = figure_of(key, *limit);
                write!(out, "limit `{key}` is {limit} and could not be checked{known}: {}", gap.described())
            }
            Warning::NotGradedAgain { why } => write!(out, "it could not be graded again: {why}"),
            Warning::NoWorkspace { why } => write!(out, "graders that need the workspace could not grade: {why}"),
            Warning::RebuiltInPart { lost } => {
                write!(out, "the workspace was made again and is not whole: {}", lost.join("; "))
            }
            Warning::KeptInPart { lost } => write!(out, "the workspace was kept and is not whole: {}", lost.join("; ")),
            Warning::ResultFromCopy => out.write_str(
                "its result.json was removed or replaced; the result comes from another copy, which the journal confirms",
            ),
            Warning::ResultsChanged { file, line, why } => {
                write!(
                    out,
                    "{file} was changed after the run, line {line}: {why}; the results come from the trials' folders"
                )
            }
            Warning::NotAsJudged { why } => write!(out, "the stored result is not the one that was graded: {why}"),
            Warning::ForeignFiles { names, moved_to } => write!(
                out,
                "files of another program lay in the trial's folder and were moved to {moved_to}: {}",
                names.join(", ")
            ),
            Warning::Text { said } => out.write_str(said),
            Warning::Unknown(map) => match (map.get("text"), map.get("code")) {
                (Some(Value::String(text)), _) => out.write_str(text),
                (_, code) => write!(out, "{}", code.and_then(Value::as_str).unwrap_or("a warning without a text")),
            },
            Warning::CaseInWorkspace { files, count } => {
                let others = if *count > files.len() as u64 { " and others" } else { "" };
                let is_in_home = |file: &String| file.starts_with("~/");
                let is_prompt = |file: &String| file == PROMPT_OF_VARIANT;
                let is_beside = |file: &String| file.starts_with("../");
                let is_in_workspace = |file: &String| !is_in_home(file) && !is_beside(file) && !is_prompt(file);
                let places = [
                    ("the workspace", files.iter().any(is_in_workspace)),
                    ("the folder around the workspace", files.iter().any(is_beside)),
                    ("the agent's home", files.iter().any(is_in_home)),
                    ("the prompt", files.iter().any(is_prompt)),
                ];
                let places: Vec<&str> = places.into_iter().filter(|(_, has)| *has).map(|(place, _)| place).collect();
                let (made_from, what) = match places.as_slice() {
                    [] | ["the workspace"] => ("what the workspace is made from", "a commit without them"),
                    _ => ("what is given to the agent", "a commit, a skill, instructions or other files without them"),
                };
                write!(
                    out,
                    "{} contained files of the case itself ({}{others}), so the agent could read how it is graded; use \
                     {what}, or keep them outside of {made_from}; a hidden file that the agent may see does not count if \
                     the case's workspace has it, too",
                    places.join(" and "),
                    files.join(", ")
                )
            }
            Warning::WorkspaceLost => {
                out.write_str("the agent removed its workspace; an empty one was put in its place")
            }
            Warning::OpenedUp { count } => {
                let (things, they) = (files_and_folders(*count), if *count == 1 { "it was" } else { "they were" });
                write!(out, "{things} of the workspace could not be read; {they} made readable")
            }
            Warning::TooDeep { count, levels, path_bytes, first } => write!(
                out,
                "{} lay below {levels} levels, or had paths of over {path_bytes} bytes, and {} removed with all content, the \
                 first in {first}…",
                plural(*count, "folder"),
                were(*count)
            ),
            Warning::PatchLeftOut { files, bytes, largest, most } => write!(
                out,
                "workspace.patch leaves out the content of {}, {}: it holds files up to {} MiB, and {} MiB in all",
                plural(*files, "changed file"),
                plural(*bytes, "byte"),
                largest >> 20,
                most >> 20
            ),
            Warning::Unread { count, first } => {
                let (things, count_as) = (files_and_folders(*count), if *count == 1 { "counts" } else { "count" });
                write!(out, "{things} could not be read and {count_as} as changed, the first: {first}")
            }
            Warning::PatchMasked => out.write_str("workspace.patch held secrets and was masked"),
            Warning::IgnoredFiles { bytes: 0 } => {
                out.write_str("ignored files are not part of the workspace's change; 0 bytes of them are left")
            }
            Warning::IgnoredFiles { bytes } => {
                let are = if *bytes == 1 { "is" } else { "are" };
                write!(out, "{} of ignored files {are} not part of the workspace's change", plural(*bytes, "byte"))
            }
            Warning::ProtectedFile { path, change, put_back, fails: _ } => {
                let put_back = match (put_back, change) {
                    (true, FileChange::Created) => "; it was removed before grading",
                    (true, _) => "; it was put back before grading",
                    (false, _) => "",
                };
                write!(out, "the agent {} the protected file {path}{put_back}", change.word())
            }
            Warning::ProtectedFiles { more } => {
                write!(out, "the agent changed {}", plural(*more, "more protected file"))
            }
            Warning::ProtectMatchedNothing { globs } => write!(
                out,
                "`workspace.protect` protects no file by {}: the workspace and the hidden files have no such folder",
                some_of(globs.iter().map(|glob| format!("`{glob}`")), 5)
            ),
            Warning::LinksToHidden { links } => write!(
                out,
                "the agent left links to hidden files, or to folders that contain such links: {links}; for grading, each was \
                 replaced by what it led to before, or removed"
            ),
            Warning::HiddenPutBack { files } => write!(
                out,
                "hidden files changed while a grader ran, and were put back before the next grader that runs commands: \
                 {files}"
            ),
            Warning::ProtectedPutBack { files } => write!(
                out,
                "protected files changed while a grader ran, and were put back before the next grader that runs commands: \
                 {files}"
            ),
            Warning::EvidenceChanged { files, ungraded } => {
                let so = if *ungraded { ", so no grade of the trial counts" } else { "" };
                write!(out, "another program changed files of the engine during the trial{so}: {files}")
            }
            Warning::FilesAboveWorkspace { paths, count, put_back } => {
                let others = if *count > paths.len() as u64 { " and others" } else { "" };
                let names = paths.join(", ");
                match put_back {
                    true => write!(
                        out,
                        "an agent left files above the workspace ({names}{others}); they were removed before grading"
                    ),
                    false => write!(
                        out,
                        "settings above the workspace changed during the run ({names}{others}) and may have decided the \
                         grading; use a sandbox"
                    ),
                }
            }
            Warning::WorkspaceNotKept { error, partly_left } => {
                let left = if *partly_left { ", and what is there of it could not be removed" } else { "" };
                write!(out, "the workspace could not be kept: {error}{left}")
            }
            Warning::WorkspaceKeptInPart { error } => write!(out, "the workspace could not be kept whole: {error}"),
            Warning::KeptMasked { files } => {
                let count = plural(*files, "file");
                write!(out, "{count} of the kept workspace held secrets and {} masked", were(*files))
            }
            Warning::KeptWithoutSecrets { files, largest } => write!(
                out,
                "{} of the workspace {} not kept: a secret is in the name, or in the content of a file of over {} MiB",
                plural(*files, "file"),
                were(*files),
                largest >> 20
            ),
            Warning::KeptUpToLimit { files, bytes, most } => write!(
                out,
                "{} of the workspace {} not kept, {}: it is kept up to {} GiB, without files over 1 GiB",
                plural(*files, "file"),
                were(*files),
                plural(*bytes, "byte"),
                most >> 30
            ),
            Warning::KeptWithoutUnread { files } => {
                let (count, they) = (plural(*files, "file"), if *files == 1 { "it" } else { "they" });
                write!(out, "{count} of the workspace {} not kept: {they} could not be read", were(*files))
            }
        }
    }
}

impl LimitGap {
    fn described(self) -> &'static str {
        match self {
            LimitGap::NotReported => "the agent did not report the figure",
            LimitGap::Partial => "the agent reported a part of the figure only",
            LimitGap::NoToolCalls => "the harness shows no tool calls",
            LimitGap::NoTimes => "the trace has no times",
            LimitGap::TimesOfText => "the trace does not show when the agent's texts ended",
        }
    }
}

fn were(number: u64) -> &'static str {
    if number == 1 { "was" } else { "were" }
}

fn files_and_folders(number: u64) -> String {
    if number == 1 { "1 file or folder".to_owned() } else { format!("{number} files and folders") }
}

/// Formats the value of a limit: a duration for `time` and `idle`.
fn figure_of(key: &str, value: f64) -> String {
    let time = ["time", "idle"].contains(&key).then(|| Duration::try_from_secs_f64(value).ok()).flatten();
    time.map_or_else(|| value.to_string(), |time| Time(time).to_string())
}

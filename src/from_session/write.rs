//! Writes the draft of a case: the keys that follow from the session, and remarks for the person who reads it.

use serde_json::{Map, Value, json};

use super::commands::{Purpose, Unfit, relative};
use super::redact::Redactor;
use super::{Checked, Observed};
use crate::case::provenance::Provenance;
use crate::mine::role::{Role, Sight};
use crate::text::{first_chars, one_line, plural, some_of};
use crate::trace::StopReason;
use crate::values::escaped_glob;
use crate::yaml;

/// The maximum number of characters of a prompt in the name of a case.
const NAME: usize = 48;
/// The maximum number of graders that run a command.
const MAX_CHECKS: usize = 5;
/// The maximum number of set-up commands that are named.
const MAX_SET_UPS: usize = 8;
/// The minimum time limit: the start of an agent takes longer on another machine.
const MIN_TIMEOUT_SECONDS: u64 = 120;
/// The folder that a draft names if the state before the session is unknown. It does not exist, so the case is refused
/// until a person has written the right one.
pub const TODO: &str = "TODO-state-before-the-session";

/// The state of the files before the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Before {
    /// A commit of a repository.
    Commit {
        /// The path of the repository, as the case names it.
        path: String,
        /// The commit.
        rev: String,
        /// The folder of the repository in which the session ran, if it is not the top folder.
        subdir: Option<String>,
        /// The way in which the commit was found.
        how: String,
    },
    /// Unknown, for this reason.
    Unknown(String),
}

/// The parts of a draft.
#[derive(Debug)]
pub struct Draft<'a> {
    /// The facts that the session shows.
    pub observed: &'a Observed,
    /// The state before it.
    pub before: &'a Before,
    /// Globs of the tests and settings in the state before that the session did not change.
    pub protect: &'a [String],
    /// Remarks about the state before.
    pub of_state: &'a [String],
    /// The folder in which the session ran.
    pub cwd: Option<&'a str>,
    /// The harness of the session. Absent if unknown.
    pub harness: Option<&'a str>,
    /// The session that the draft is made from, for the key `provenance` of the case.
    pub provenance: Provenance,
}

/// Returns the name of a case: the words of the prompt, and the beginning of the session's id.
pub fn name(prompt: &str, session: &str) -> String {
    let lower = prompt.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|it| !it.is_empty()).collect();
    let slug: String = words.join("-").chars().take(NAME).collect();
    let slug = slug.trim_matches('-');
    let id: String = session.chars().filter(char::is_ascii_alphanumeric).collect();
    // The ids of some agents begin with the time, so the end distinguishes sessions of one minute.
    let short = &id[id.len().saturating_sub(8)..];
    match (slug.is_empty(), short.is_empty()) {
        (true, true) => "session".to_owned(),
        (true, false) => format!("session-{short}"),
        (false, true) => slug.to_owned(),
        (false, false) => format!("{slug}-{short}"),
    }
}

/// Returns the text of the case file, and the warnings for the user. Everything in both is redacted.
pub fn text(draft: &Draft<'_>, redactor: &Redactor) -> (String, Vec<String>) {
    let observed = draft.observed;
    let (graders, mut remarks) = graders(draft, redactor);
    remarks.extend(remarks_of(draft));
    let masked = draft.protect.iter().filter(|glob| redactor.text(glob) != **glob).count();
    if masked > 0 {
        remarks.push(format!(
            "{} of `workspace.protect` {} left out, because a part of the path is masked.",
            plural(masked as u64, "glob"),
            if masked == 1 { "is" } else { "are" }
        ));
    }
    let here = |text: &str| redactor.text(&without_folder(text, draft.cwd));
    let first = observed.prompts.first().map(String::as_str).unwrap_or_default();
    let mut tags = vec!["session".to_owned()];
    tags.extend(draft.harness.map(str::to_owned));
    // The text is redacted before it is cut, because a part of a secret or an address is not recognised.
    let title = here(&one_line(first.lines().find(|it| !it.trim().is_empty()).unwrap_or_default()));
    let mut keys = vec![("description", json!(first_chars(&title, 100))), ("tags", json!(tags))];
    match observed.prompts.as_slice() {
        [one] => keys.push(("prompt", json!(here(one)))),
        several => keys.push(("turns", json!(several.iter().map(|text| here(text)).collect::<Vec<_>>()))),
    }
    keys.push(("workspace", workspace(draft, redactor)));
    let limits = limits(observed);
    if !limits.is_empty() {
        keys.push(("limits", Value::Object(limits)));
    }
    keys.push(("graders", redacted(Value::Array(graders), redactor)));
    keys.push(("review", json!("needed")));
    keys.push(("provenance", redacted(json!(draft.provenance), redactor)));
    let map: Map<String, Value> = keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let remarks: Vec<String> = remarks.iter().map(|remark| redactor.text(&one_line(remark))).collect();
    let head: String = remarks.iter().map(|remark| format!("# {remark}\n")).collect();
    (format!("{head}{}", yaml::write(&Value::Object(map))), remarks)
}

/// Redacts every text of a value.
fn redacted(value: Value, redactor: &Redactor) -> Value {
    match value {
        Value::String(text) => Value::String(redactor.text(&text)),
        Value::Array(list) => Value::Array(list.into_iter().map(|it| redacted(it, redactor)).collect()),
        Value::Object(map) => Value::Object(map.into_iter().map(|(key, it)| (key, redacted(it, redactor))).collect()),
        other => other,
    }
}

/// Returns the text with paths of the session's folder as relative ones: the folder is another one in each trial.
fn without_folder(text: &str, folder: Option<&str>) -> String {
    let Some(folder) = folder.map(|it| it.trim_end_matches('/')).filter(|it| it.len() > 1) else {
        return text.to_owned();
    };
    relative(text, folder, "")
}

fn workspace(draft: &Draft<'_>, redactor: &Redactor) -> Value {
    let mut map = Map::new();
    match draft.before {
        Before::Commit { path, rev, subdir, .. } => {
            let mut git = json!({"path": path, "rev": rev});
            if let Some(subdir) = subdir {
                git["subdir"] = json!(subdir);
            }
            map.insert("git".into(), git);
        }
        Before::Unknown(_) => {
            map.insert("copy".into(), json!(TODO));
        }
    }
    let protect: Vec<&String> = draft.protect.iter().filter(|path| redactor.text(path) == **path).collect();
    if !protect.is_empty() {
        map.insert("protect".into(), json!(protect));
    }
    Value::Object(map)
}

/// Returns limits of twice the figures of the session. A limit whose figure a harness does not report is never reached.
fn limits(observed: &Observed) -> Map<String, Value> {
    let mut limits = Map::new();
    if let Some(ms) = observed.worked_ms {
        let seconds = ms.saturating_mul(2).div_ceil(1000).max(MIN_TIMEOUT_SECONDS);
        limits.insert("time".into(), json!(format!("{seconds}s")));
    }
    if let Some(tokens) = observed.tokens.filter(|tokens| *tokens > 0) {
        limits.insert("tokens".into(), json!(tokens.saturating_mul(2)));
    }
    if let Some(cost) = observed.cost_usd {
        // To a hundredth of a cent, upwards.
        limits.insert("cost-usd".into(), json!((2.0 * cost * 10_000.0).ceil() / 10_000.0));
    }
    limits
}

/// Returns the graders, and remarks about them.
fn graders(draft: &Draft<'_>, redactor: &Redactor) -> (Vec<Value>, Vec<String>) {
    let observed = draft.observed;
    let (mut graders, mut remarks) = (Vec::new(), Vec::new());
    // A command of which a part is masked is another command.
    let (mut checks, masked): (Vec<&Checked>, Vec<&Checked>) =
        observed.checks.iter().partition(|it| redactor.text(&it.check.line) == it.check.line);
    remarks.extend(masked.iter().map(|it| format!("`{}` is not used as a grader: {}.", it.check.line, Unfit::Masked)));
    sort_checks(&mut checks);
    if !checks.iter().take(MAX_CHECKS).any(|it| it.failed_before) {
        remarks.insert(
            0,
            "NO GRADER IS KNOWN TO FAIL for an agent that does nothing: add one before you use this case, and test it with \
             `evals check --audit`."
                .to_owned(),
        );
    }
    for checked in checks.iter().take(MAX_CHECKS) {
        graders.push(json!({"command": {"run": checked.check.line, "gate": true}}));
        remarks.extend(remarks_of_check(checked, draft, redactor));
    }
    if checks.len() > MAX_CHECKS {
        let left = checks.iter().skip(MAX_CHECKS).map(|it| format!("`{}`", it.check.line));
        remarks.push(format!("Left out, although they passed: {}.", some_of(left, MAX_CHECKS)));
    }
    if observed.touched.iter().any(|path| redactor.text(path) != *path) {
        remarks.push("`scope` is left out, because the path of a changed file is masked.".to_owned());
    } else if !observed.touched.is_empty() {
        let only: Vec<String> = observed.touched.iter().map(|path| escaped_glob(path)).collect();
        graders.push(json!({"scope": {"only": only}}));
    }
    let budget = budget(observed);
    if !budget.is_empty() {
        graders.push(json!({"budget": budget}));
    }
    if graders.is_empty() {
        // A case without graders is refused; this one is at least true of a session that came to its end.
        graders.push(json!({"stop": {"reason": ["end_turn"]}}));
    }
    (graders, remarks)
}

/// Sorts checks by their use as graders. A command that others narrow down checks more than they do. Then come the checks that are
/// known to tell the states apart, then tests, then the latest.
fn sort_checks(checks: &mut Vec<&Checked>) {
    let lines: Vec<&str> = checks.iter().map(|it| it.check.line.as_str()).collect();
    let is_broad =
        |line: &str| lines.iter().any(|other| other.strip_prefix(line).is_some_and(|rest| rest.starts_with(' ')));
    checks.sort_by_key(|it| {
        let is_narrow = !is_broad(&it.check.line);
        (is_narrow, !it.failed_before, it.check.purpose != Purpose::Tests, std::cmp::Reverse(it.seq))
    });
    // A check that is known to fail without the work is never left out.
    if let Some(known) = checks.iter().position(|it| it.failed_before).filter(|at| *at >= MAX_CHECKS) {
        let known = checks.remove(known);
        checks.insert(MAX_CHECKS - 1, known);
    }
}

/// Returns remarks about a check that is a grader: why it may pass without the work, or fail in spite of it.
fn remarks_of_check(checked: &Checked, draft: &Draft<'_>, redactor: &Redactor) -> Vec<String> {
    let (line, seq) = (&checked.check.line, checked.seq);
    let is_test = checked.check.purpose == Purpose::Tests;
    let mut remarks = Vec::new();
    if checked.failed_before {
        let when = if checked.changed_after { "during it" } else { "after it" };
        remarks.push(format!("`{line}` failed before the work and passed {when} (event {seq})."));
        remarks.extend(remarks_of_failure(checked));
    } else {
        remarks.push(format!(
            "`{line}` passed (event {seq}), and the session does not show that it failed in the state before the \
             work: it may pass for an agent that does nothing."
        ));
    }
    if is_test && !checked.shows_tests {
        remarks.push(format!("The output of `{line}` does not show how many tests ran."));
    }
    if let Some(intervening) = &checked.intervening {
        let event = intervening.text(|text| redactor.text(&without_folder(text, draft.cwd)));
        remarks.push(format!(
            "`{line}` failed earlier, but before it passed, {event} (event {}): that may be the cause.",
            intervening.seq
        ));
    }
    if let Some(path) = draft.observed.touched.iter().find(|path| line.contains(path.as_str())) {
        remarks.push(format!(
            "`{line}` runs {path}, which the session made or changed: an agent that writes a different file there is graded \
             by its own."
        ));
    }
    if !checked.settings.is_empty() {
        remarks.push(format!(
            "The session changed {}, which decides what `{line}` does: it may pass for that reason.",
            checked.settings.join(", ")
        ));
    }
    if checked.changed_after {
        remarks.push(format!("Files were changed after the last run of `{line}`: it may fail after the whole work."));
    }
    remarks
}

/// Returns remarks about the failing run of a check that failed before the work: what else may have been its cause.
fn remarks_of_failure(checked: &Checked) -> Vec<String> {
    let line = &checked.check.line;
    let mut remarks = Vec::new();
    if checked.hides_failure && checked.check.purpose == Purpose::Tests {
        remarks.push(format!(
            "The output of the failing run of `{line}` shows no test that failed and no place in a file: it may have \
             failed for a reason that the work did not remove."
        ));
    }
    if let Some(module) = &checked.missing_module {
        remarks.push(format!(
            "The failing run of `{line}` did not find the module `{module}`, which no changed file provides: it may have \
             failed only because a package was missing."
        ));
    }
    if let Some(typed) = checked.typed_between {
        remarks.push(format!(
            "Between these two runs of `{line}`, the user wrote something (event {typed}): what the user did then is \
             unknown, and it may be why the check passed."
        ));
    }
    remarks
}

/// Returns a budget of twice the figures of the session.
fn budget(observed: &Observed) -> Map<String, Value> {
    let mut budget = Map::new();
    for (key, figure) in [("tool-calls", observed.tool_calls), ("steps", observed.steps)] {
        if let Some(figure) = figure.filter(|figure| *figure > 0) {
            budget.insert(key.into(), json!(figure.saturating_mul(2)));
        }
    }
    budget
}

/// Returns remarks about facts that the session does not show.
fn remarks_of(draft: &Draft<'_>) -> Vec<String> {
    let mut remarks = remarks_of_state(draft);
    remarks.extend(remarks_of_commands(draft.observed));
    remarks.extend(remarks_of_files(draft));
    remarks.extend(remarks_of_prompts(draft));
    remarks.extend(remarks_of_gaps(draft.observed));
    remarks
}

/// Returns remarks about the state before the session.
fn remarks_of_state(draft: &Draft<'_>) -> Vec<String> {
    let mut remarks = Vec::new();
    match draft.before {
        Before::Commit { how, .. } => {
            remarks.push(format!("The workspace is {how}."));
            remarks.extend(draft.of_state.iter().cloned());
            remarks.push(
                "Files that were not committed when the session began are unknown, and not in the workspace.".to_owned(),
            );
        }
        Before::Unknown(why) => remarks.push(format!(
            "TODO: the state before the session is unknown ({why}): write `workspace`. Until then `evals check` refuses the case."
        )),
    }
    remarks
}

/// Returns remarks about the commands that are no graders: checks that cannot be, and those that set up the environment.
fn remarks_of_commands(observed: &Observed) -> Vec<String> {
    let mut remarks = Vec::new();
    for (line, why) in &observed.unfit {
        remarks.push(format!("`{line}` is not used as a grader: {why}."));
    }
    for (line, why) in &observed.not_passed {
        remarks.push(format!("`{line}` is not used as a grader: {why}."));
    }
    if !observed.set_ups.is_empty() {
        let lines = observed.set_ups.iter().map(|line| format!("`{line}`"));
        remarks.push(format!(
            "The session set up its environment: {}. A check may have failed only because that was missing. Add to \
             `workspace.setup` what a trial needs.",
            some_of(lines, MAX_SET_UPS)
        ));
    }
    remarks
}

/// Returns remarks about the files that the session changed.
fn remarks_of_files(draft: &Draft<'_>) -> Vec<String> {
    let observed = draft.observed;
    let mut remarks = Vec::new();
    let tests: Vec<&str> =
        observed.touched.iter().map(String::as_str).filter(|it| Sight::of(it).may_be(Role::Test)).collect();
    if !tests.is_empty() {
        remarks.push(format!(
            "The session changed tests ({}): the commands run the tests as an agent leaves them. Put their final state into \
             a folder and name it with `hidden`.",
            tests.join(", ")
        ));
    }
    if observed.ran_commands && !observed.touched.is_empty() {
        remarks.push(
            "`scope` lists the files that the tools changed; files that commands changed are not shown.".to_owned(),
        );
    }
    if observed.hides_paths {
        remarks.push("A call changed files and did not show which; `scope` may lack them.".to_owned());
    }
    if !observed.touched_elsewhere.is_empty() {
        let names: Vec<&str> = observed.touched_elsewhere.iter().map(String::as_str).collect();
        let names = names.join(", ");
        remarks.push(match draft.cwd {
            Some(_) => format!("Files outside the workspace were changed, which a case cannot hold: {names}."),
            None => format!(
                "The session does not show its folder, so these changed files may be in the workspace: {names}. Add \
                 those that are in it to `scope`."
            ),
        });
    }
    remarks
}

/// Returns remarks about the prompts: parts of the task that they may lack, and words that may not be the user's.
fn remarks_of_prompts(draft: &Draft<'_>) -> Vec<String> {
    let observed = draft.observed;
    let mut remarks = Vec::new();
    if observed.prompts.len() > 1 {
        remarks.push(
            "The later prompts answer to what the agent had done; another agent may have done something else. Harnesses \
             that take one prompt skip the case."
                .to_owned(),
        );
    }
    let is_quoted = |prompt: &String| prompt.len() > 1 && prompt.starts_with('"') && prompt.ends_with('"');
    if draft.harness.is_some_and(|name| name.starts_with("opencode")) && observed.prompts.iter().any(is_quoted) {
        remarks.push(
            "`opencode run` puts quotation marks around a prompt with blanks: remove those at both ends of a prompt, unless \
             the user wrote them."
                .to_owned(),
        );
    }
    if observed.works_at_command {
        remarks.push(
            "The agent also worked at a command of its program (`/…`), whose text is in no prompt: write the whole task into \
             the prompt."
                .to_owned(),
        );
    }
    if observed.begins_with_summary {
        remarks.push(
            "The session continues an earlier conversation, of which it holds a summary: the prompts are not the whole task."
                .to_owned(),
        );
    }
    if observed.attachments > 0 {
        remarks.push(format!(
            "{} had attachments, which the session does not hold.",
            plural(observed.attachments, "prompt")
        ));
    }
    remarks
}

/// Returns remarks about refused calls, lost lines, and a session that did not come to its end.
fn remarks_of_gaps(observed: &Observed) -> Vec<String> {
    let mut remarks = Vec::new();
    if observed.denied > 0 {
        remarks.push(format!(
            "refused: {}; if a refused call must not be made, add a `permissions` or `tool-calls` grader.",
            plural(observed.denied, "call")
        ));
    }
    if observed.has_lost {
        remarks.push("A line of the session could not be read, so calls may be missing.".to_owned());
    }
    match observed.stop {
        Some(StopReason::EndTurn) | None => {}
        Some(reason) => remarks.push(format!("The session did not finish: `{}`.", reason.word())),
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_the_session_is_not_in_the_prompt() {
        let here = |text: &str| without_folder(text, Some("/home/ada/calc/"));
        assert_eq!(
            here("fix /home/ada/calc/a.py in /home/ada/calc, not /home/ada/calculator/b"),
            "fix a.py in ., not /home/ada/calculator/b"
        );
        assert_eq!(without_folder("/a", None), "/a");
        // The same letters within another path.
        let prompt =
            "The route /api/app/users fails: see https://example.com/app/docs, src/app/page.tsx and C:/work/app/x.";
        assert_eq!(without_folder(prompt, Some("/app")), prompt);
        assert_eq!(without_folder("Fix `/app/a.py` in /app.", Some("/app")), "Fix `a.py` in ./.");
    }

    #[test]
    fn names_are_made_of_the_prompt_and_the_end_of_the_id() {
        assert_eq!(name("Fix `total` (now)!", "01a2-b3c4d5e6f7"), "fix-total-now-c4d5e6f7");
        assert_eq!(name("…", ""), "session");
    }
}

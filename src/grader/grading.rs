//! Grades one trial: passes its events to every grader as they arrive, and collects the grades.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::answer_losses::AnswerLosses;
use super::command::{OwnModes, Run, five_minutes};
use super::lasting_answer::LastingAnswer;
use super::{Evidence, Finding, Findings, Grader, Observer, Renewed, Subject, Surroundings};
use crate::grade::{Bounds, Grade, GradeRecord, Outcome, Score};
use crate::harness::{Manifest, reading};
use crate::shell::Command;
use crate::trace::calls::{Call, Joiner};
use crate::trace::facts::Reading;
use crate::trace::{Body, Event, FollowedLink, Header, Lost, UnseenAction};
use crate::values::Fraction;
use crate::workspace::hidden::changed::{changed, is_of_scripts, put_back, stamps};
use crate::workspace::stamp::Stamp;

/// The longest step by which file systems count time.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// The grading of one trial. Its memory is that of its graders, for most of them independent of the length of
/// the session.
pub struct Grading {
    /// Joins calls with their results. `None` if no grader needs calls.
    joiner: Option<Joiner>,
    reading: Reading,
    seats: Vec<ObservedGrader>,
    /// The losses in the trace, each with the first notice about it.
    lost: Vec<(Lost, u64)>,
    /// The files that the engine read or wrote for the agent without a call, each with its notice.
    actions: Vec<(UnseenAction, u64)>,
    /// The files that calls name by links, each with its notice.
    links: Vec<(FollowedLink, u64)>,
    lasting_answer: LastingAnswer,
    answer_losses: AnswerLosses,
}

/// A grader with its observer of the trial.
struct ObservedGrader {
    grader: Arc<Grader>,
    name: String,
    observer: Box<dyn Observer>,
    /// A secret that the grader's text contains.
    secret: Option<NamedSecret>,
}

/// A secret in the text of a grader.
struct NamedSecret {
    /// The mark that replaces the secret in the trace.
    mark: String,
    /// True if an event has the mark.
    is_shown: bool,
}

/// The changes that were undone since grading began, each with the name of the grader whose commands made it.
#[derive(Default)]
struct Undone {
    home: Option<String>,
    above: Option<(String, String)>,
    /// The first protected or hidden file.
    file: Option<(String, String)>,
}

impl Undone {
    fn add(&mut self, renewed: Renewed, by: &str) {
        if renewed.home {
            self.home.get_or_insert_with(|| by.to_owned());
        }
        if let Some(path) = renewed.above {
            self.above.get_or_insert_with(|| (path, by.to_owned()));
        }
        self.add_file(renewed.protected, by);
    }

    /// Adds a protected or hidden file.
    fn add_file(&mut self, path: Option<String>, by: &str) {
        if let Some(path) = path {
            self.file.get_or_insert_with(|| (path, by.to_owned()));
        }
    }

    /// Returns why a failure does not count, if something was undone that the commands may need.
    fn doubt(&self) -> Option<String> {
        let out = "make it in `workspace.setup` or in the same grader";
        match (&self.home, &self.above, &self.file) {
            (Some(by), _, _) => Some(format!(
                "the earlier grader `{by}` changed the graders' home, which was then made anew, so it is unknown whether this \
                 fails: if the commands need something that `{by}` left there, {out}, or set `graders-home: shared`"
            )),
            (None, Some((path, by)), _) => Some(format!(
                "`{path}` changed above the workspace while the earlier grader `{by}` ran, which was then undone, so it is unknown \
                 whether this fails: if the commands need what `{by}` left there, {out}"
            )),
            (None, None, Some((path, by))) => Some(format!(
                "the protected or hidden file `{path}` changed while the earlier grader `{by}` ran, which was then undone, so it \
                 is unknown whether this fails: if the commands need what `{by}` left there, {out}"
            )),
            (None, None, None) => None,
        }
    }
}

impl Grading {
    /// Starts grading. Of the header, only the harness and the workspace's path must be known yet. `manifest` is the
    /// manifest of the harness, if available.
    pub fn new(graders: &[Arc<Grader>], header: &Header, manifest: Option<&Manifest>) -> Self {
        let names = unique_names(graders.iter().map(Arc::as_ref));
        let seats = graders.iter().zip(names).map(|(grader, name)| {
            let mut observer = grader.kind.spec().watch();
            observer.begin(header, manifest);
            ObservedGrader { grader: Arc::clone(grader), name, observer, secret: None }
        });
        let sees_calls = graders.iter().any(|grader| grader.kind.needs().calls);
        Self {
            joiner: sees_calls.then(Joiner::default),
            reading: reading(header),
            seats: seats.collect(),
            lost: Vec::new(),
            actions: Vec::new(),
            links: Vec::new(),
            lasting_answer: LastingAnswer::default(),
            answer_losses: AnswerLosses::default(),
        }
    }

    /// Sets for each grader the mark of a secret that its text contains. If the trace shows the mark, a grader that reads the
    /// trace cannot find what it looks for.
    #[must_use]
    pub fn with_secrets(mut self, marks: Vec<Option<String>>) -> Self {
        for (seat, mark) in self.seats.iter_mut().zip(marks) {
            let mark = mark.filter(|_| seat.grader.kind.needs().reads_the_trace());
            seat.secret = mark.map(|mark| NamedSecret { mark, is_shown: false });
        }
        self
    }

    /// Handles the next event.
    pub fn event(&mut self, event: &Event) {
        if let Body::Notice { lost: Some(lost), .. } = &event.body
            && !self.lost.iter().any(|(known, _)| known == lost)
        {
            self.lost.push((*lost, event.seq));
        }
        if let Body::Notice { action: Some(action), .. } = &event.body {
            self.actions.push((action.clone(), event.seq));
        }
        if let Body::Notice { link: Some(link), .. } = &event.body {
            self.links.push((link.clone(), event.seq));
        }
        self.lasting_answer.event(event);
        self.answer_losses.event(event);
        self.look_for_marks(event);
        for seat in &mut self.seats {
            seat.observer.event(event);
        }
        if let Some(joiner) = &mut self.joiner {
            let calls = joiner.event(event);
            self.calls(&calls);
        }
    }

    /// Returns the `seq` of the first answer to a permission request that holds for later calls, too, so that the agent
    /// does not ask for them.
    pub fn lasting_answer(&self) -> Option<u64> {
        self.lasting_answer.seq()
    }

    fn look_for_marks(&mut self, event: &Event) {
        let sought: Vec<&mut NamedSecret> =
            self.seats.iter_mut().filter_map(|seat| seat.secret.as_mut().filter(|secret| !secret.is_shown)).collect();
        if sought.is_empty() {
            return;
        }
        let text = serde_json::to_string(event).unwrap_or_default();
        sought.into_iter().for_each(|secret| secret.is_shown = text.contains(&secret.mark));
    }

    fn calls(&mut self, calls: &[Call]) {
        for call in calls {
            // Only one of the actions that were allowed is in the call.
            if call.asked.iter().any(|form| !form.is_refused() && !form.is_permission)
                && !self.lost.iter().any(|(known, _)| *known == Lost::Call)
            {
                self.lost.push((Lost::Call, call.seq));
            }
            let subject = Subject::of(call, &self.reading);
            for seat in &mut self.seats {
                seat.observer.call(&subject);
            }
        }
    }

    /// Ends grading. Returns the grades, in the order of the graders.
    pub async fn finish(self, evidence: &Evidence<'_>) -> Vec<GradeRecord> {
        self.finish_in(evidence, &mut BTreeSet::new(), &()).await
    }

    /// Ends grading as [`Grading::finish`] does, and adds to `restored` the hidden files that changed while a grader ran
    /// commands and were put back before the next one. A grader that fails without something that was undone in the
    /// surroundings is ungraded.
    pub async fn finish_in(
        mut self,
        evidence: &Evidence<'_>,
        restored: &mut BTreeSet<PathBuf>,
        surroundings: &dyn Surroundings,
    ) -> Vec<GradeRecord> {
        if let Some(joiner) = &mut self.joiner {
            let rest = joiner.rest();
            self.calls(&rest);
        }
        let mut records = Vec::with_capacity(self.seats.len());
        let mut taken: HashSet<String> = self.seats.iter().map(|seat| seat.name.clone()).collect();
        let mut runs = CommandRuns { evidence, surroundings, restored, undone: Undone::default(), last: None };
        for ObservedGrader { grader, name, observer, secret } in std::mem::take(&mut self.seats) {
            let (Findings(findings), objections) = runs.finish(&grader, &name, observer).await;
            let (doubt, basis) = self.doubt_about(&grader, evidence.output);
            let mark = secret.filter(|secret| secret.is_shown).map(|secret| secret.mark);
            let reserved = Reservations { objections, doubt, basis, mark };
            reserved.add_records(&mut records, &grader, name, findings, &mut taken);
        }
        records
    }

    /// Returns the reason why a grade may be another one than the trace shows, if there is one, and what the grade rests on.
    fn doubt_about(&self, grader: &Grader, output: &str) -> (Option<Doubt>, Basis) {
        let spec = grader.kind.spec();
        let lost = self.doubt_by_losses(grader, output);
        let lost = lost.or_else(|| self.doubt_by_actions(grader)).or_else(|| self.doubt_by_tools(grader));
        let link = if lost.is_none() { self.doubt_by_links(grader) } else { None };
        // What a grader finds may be the call that names the link, and not the file that is meant. A move removes no match.
        let is_by_link = link.as_ref().is_some_and(|(_, moved)| !moved);
        let basis = Basis {
            only_finds: spec.only_finds() && !is_by_link,
            by_outcome: spec.fails_by_outcome(),
            in_longer_texts: spec.finds_in_longer_texts(self.answer_losses.known_part(output)),
        };
        (lost.or(link.map(|(doubt, _)| doubt)), basis)
    }

    /// Returns the doubt by a loss in the trace that concerns the grader.
    fn doubt_by_losses(&self, grader: &Grader, output: &str) -> Option<Doubt> {
        let spec = grader.kind.spec();
        let is_found = || self.answer_losses.certain_part(output).is_some_and(|part| spec.passes_by_part(part));
        let doubt = self.answer_losses.doubt(output).filter(|_| spec.reads_answer() && !is_found());
        if let Some((what, seq)) = doubt {
            return Some(Doubt { lost: Some(Lost::Speaker), ..Doubt::at(what, seq) });
        }
        // The place of such a loss decides whether it concerns the answer.
        let is_elsewhere = |lost: Lost| match lost {
            Lost::Text => spec.reads_answer_alone() && !self.answer_losses.lacks_text(output),
            Lost::Speaker => spec.reads_answer_alone(),
            // A line may also have been a call.
            Lost::Line => {
                let is_of_answer = spec.reads_answer_alone() && !spec.depends_on_loss(Lost::Call);
                is_of_answer && !self.answer_losses.lacks_line(output)
            }
            Lost::Call | Lost::Outcome | Lost::Caller => false,
        };
        let is_missed = |(lost, _): &&(Lost, u64)| spec.depends_on_loss(*lost) && !is_elsewhere(*lost);
        let mut missed = self.lost.iter().filter(is_missed);
        // After these losses, what was found may be wrong, too.
        let of_found = [Lost::Speaker, Lost::Caller, Lost::Outcome];
        let of_found = of_found.into_iter().find_map(|kind| missed.clone().find(|(lost, _)| *lost == kind));
        of_found.or_else(|| missed.next()).map(Doubt::of)
    }

    /// Returns the doubt because the engine used a file for the agent that no call shows.
    fn doubt_by_actions(&self, grader: &Grader) -> Option<Doubt> {
        let spec = grader.kind.spec();
        let workspace = self.reading.workspace.as_deref();
        let seq = self.actions.iter().find(|(action, _)| spec.depends_on_action(action, workspace))?.1;
        Some(Doubt::at("the engine used a file for the agent that no call shows", seq))
    }

    /// Returns the doubt because the agent does not show the calls of one of its tools.
    fn doubt_by_tools(&self, grader: &Grader) -> Option<Doubt> {
        let spec = grader.kind.spec();
        let (tool, kind) = self.reading.unshown_tools.iter().find(|(tool, kind)| spec.depends_on_tool(tool, **kind))?;
        let what = format!("the agent does not show calls of its tool `{tool}`, of kind {kind}");
        Some(Doubt { what, lost: None })
    }

    /// Returns the doubt because a call names a file through a link or after a move, and true if it is a move.
    fn doubt_by_links(&self, grader: &Grader) -> Option<(Doubt, bool)> {
        let spec = grader.kind.spec();
        let workspace = self.reading.workspace.as_deref();
        let apart = self.links.iter().filter(|(link, _)| spec.depends_on_path_name(link, workspace));
        let (link, seq) = apart.min_by_key(|(link, _)| link.moved)?;
        Some((Doubt::at(link.doubt(), *seq), link.moved))
    }
}

/// The graders of a trial that run commands, one after the other, and their surroundings.
struct CommandRuns<'a> {
    evidence: &'a Evidence<'a>,
    surroundings: &'a dyn Surroundings,
    /// The hidden files that were put back.
    restored: &'a mut BTreeSet<PathBuf>,
    undone: Undone,
    /// The name of the last grader that ran commands.
    last: Option<String>,
}

/// The reasons why the results of a grader's commands do not count.
struct Objections {
    /// The reason why a pass does not count, if there is one.
    to_pass: Option<String>,
    /// The reason why a failure does not count, if there is one.
    to_fail: Option<String>,
}

impl CommandRuns<'_> {
    /// Ends a grader. If it runs commands, it finds the surroundings as the first grader did.
    async fn finish(&mut self, grader: &Grader, name: &str, mut observer: Box<dyn Observer>) -> (Findings, Objections) {
        let (evidence, surroundings, needs) = (self.evidence, self.surroundings, grader.kind.needs());
        let obstacle = || surroundings.obstacle().filter(|_| needs.commands).map(Grade::ungraded);
        let mut ungraded = needs.missing(evidence).or_else(obstacle);
        if needs.commands && ungraded.is_none() {
            ungraded = self.restore().err().map(Grade::ungraded);
        }
        let runs = needs.commands && ungraded.is_none();
        let depends_on_files = runs && (evidence.hidden.is_some() || surroundings.has_files());
        if depends_on_files {
            surroundings.look();
        }
        let is_looked_at = depends_on_files && !set_own_modes(observer.run(), evidence).await;
        let mut laid = BTreeMap::new();
        if is_looked_at {
            let hidden = evidence.hidden.zip(evidence.workspace);
            laid = hidden.map(|(hidden, workspace)| stamps(hidden, workspace)).unwrap_or_default();
            surroundings.begin();
        }
        let findings = match ungraded {
            Some(ungraded) => ungraded.into(),
            None => observer.finish(evidence).await,
        };
        let mut objections = Objections { to_pass: None, to_fail: None };
        if runs {
            let protected = surroundings.end();
            objections.to_pass = rewritten_hidden(evidence, &laid).or(protected);
            self.last = Some(name.to_owned());
        }
        if needs.commands {
            objections.to_fail = self.undone.doubt().or_else(|| surroundings.doubt());
        }
        (findings, objections)
    }

    /// Restores what the last grader that ran commands changed.
    ///
    /// # Errors
    /// Returns the reason if something cannot be restored.
    fn restore(&mut self) -> Result<(), String> {
        let Some(by) = &self.last else { return Ok(()) };
        let renewed = self.surroundings.restore().map_err(|why| format!("could not be graded, because {why}"))?;
        self.undone.add(renewed, by);
        let files = lay_hidden_again(self.evidence)?;
        let needed = files.iter().find(|path| !is_of_scripts(path));
        self.undone.add_file(needed.map(|path| path.display().to_string()), by);
        self.restored.extend(files);
        Ok(())
    }
}

/// The reasons why the findings of a grader may not count.
struct Reservations {
    objections: Objections,
    doubt: Option<Doubt>,
    basis: Basis,
    /// The mark of a secret of the grader's text, if the trace shows it.
    mark: Option<String>,
}

impl Reservations {
    /// Adds the grades of a grader, each with a name of its own.
    fn add_records(
        &self,
        records: &mut Vec<GradeRecord>,
        grader: &Grader,
        name: String,
        findings: Vec<Finding>,
        taken: &mut HashSet<String>,
    ) {
        // The first grade without a name gets the grader's name.
        let mut own = Some(name.clone());
        for Finding { name: given, grade, judge, mut skills, tests, snapshot } in findings {
            let is_own = given.as_ref().is_none_or(|given| *given == name);
            let free = if is_own { own.take() } else { None };
            let name = free.unwrap_or_else(|| free_name(given.as_deref().unwrap_or(&name), taken));
            // A call that was lost may have used a skill.
            let unknown = self.doubt.is_some();
            skills.iter_mut().filter(|it| unknown && it.used == Some(false)).for_each(|it| it.used = None);
            let grade = self.applied_to(grade);
            records.push(GradeRecord { judge, skills, tests, snapshot, ..record(grader, name, grade) });
        }
    }

    /// Returns the grade that counts.
    fn applied_to(&self, grade: Grade) -> Grade {
        let Objections { to_pass, to_fail } = &self.objections;
        let grade = match (to_pass, to_fail, grade) {
            (Some(why), _, Grade::Scored(Score { passed: true, .. })) => Grade::ungraded(why),
            (_, Some(why), Grade::Scored(Score { passed: false, reason, .. })) => {
                Grade::ungraded(format!("{why}. The grader failed: {reason}"))
            }
            (_, _, grade) => grade,
        };
        match (&self.doubt, &self.mark) {
            (_, Some(mark)) => names_a_secret(mark),
            (Some(doubt), None) => doubted(grade, doubt, self.basis),
            (None, None) => grade,
        }
    }
}

/// Runs the commands at the beginning of a grader's line that set permissions or owners, or remove files, and cuts them from the line,
/// so that each later change of a file is one of another program. If they fail and the shell would then skip commands, the line stays as it
/// is. Returns true if the grader runs no other command.
async fn set_own_modes(run: Option<&mut Run>, evidence: &Evidence<'_>) -> bool {
    let Some(run) = run else { return false };
    // A `chmod` in the workspace may be a program of the agent.
    let path = evidence.shell.env.get("PATH").map(String::as_str).unwrap_or_default();
    let is_in = |folder: &PathBuf| evidence.workspace.is_some_and(|workspace| folder.starts_with(workspace));
    if std::env::split_paths(path).any(|folder| !folder.is_absolute() || is_in(&folder)) {
        return false;
    }
    let (first, rest, needs_success) = match run.own_modes() {
        None => return false,
        Some(OwnModes::All) => return true,
        Some(OwnModes::First { first, rest, needs_success }) => (first, rest, needs_success),
    };
    // The agent may have replaced a folder by a link, so that the command changes other files than those it names.
    let is_through_link = |word: &str| {
        let path = Path::new(word.trim_matches(['\'', '"']));
        let is_link = |folder: &Path| evidence.shell.folder.join(folder).is_symlink();
        path.is_relative() && path.ancestors().skip(1).any(|folder| !folder.as_os_str().is_empty() && is_link(folder))
    };
    if first.split_whitespace().any(is_through_link) {
        return false;
    }
    let outcome = evidence.shell.run(&Command::Line(first), None, five_minutes().0).await;
    let code = outcome.ok().and_then(|outcome| outcome.exit).and_then(|exit| exit.code);
    if let Some(status) = code.filter(|code| *code == 0 || !needs_success) {
        *run = Run::Rest { line: rest, whole: run.to_string(), status };
    }
    // A later change within one step of the file system's clock would have the same stamp.
    tokio::time::sleep(CLOCK_STEP).await;
    false
}

/// Returns why a pass of a grader that ran commands does not count, if hidden files differ when the commands have ended, or were
/// changed and put back meanwhile: code of the agent, or the agent of another trial, may have rewritten the check. `laid` are the
/// stamps of the hidden files before.
fn rewritten_hidden(evidence: &Evidence<'_>, laid: &BTreeMap<PathBuf, Stamp>) -> Option<String> {
    let (hidden, workspace) = evidence.hidden.zip(evidence.workspace)?;
    let Some(files) = changed(hidden, workspace) else {
        return Some("passed, but the hidden files could not be compared with the workspace".to_owned());
    };
    if let Some(path) = files.first() {
        let path = path.display();
        return Some(format!(
            "passed, but the hidden file `{path}` changed while the commands ran: what was checked is unknown"
        ));
    }
    let now = stamps(hidden, workspace);
    let (path, _) = laid.iter().find(|(path, stamp)| now.get(*path) != Some(*stamp))?;
    Some(format!(
        "passed, but the hidden file `{}` was written or got other permissions while the commands ran, and may have had another \
         content meanwhile: what was checked is unknown. If the check needs other permissions, give them to the file in the \
         folder of the hidden files, or begin `run` with `chmod`, without variables and with no other command before it, such \
         as `set -e`; let a program that sets permissions, such as `npm install`, run in an earlier grader with \
         `diagnostic: true`; let a check that changes its own files work on a copy without hard links",
        path.display()
    ))
}

/// Puts back the hidden files that the commands of an earlier grader changed: they may run code of the agent. Returns their
/// paths, or why the next grader could not be graded if they cannot be put back.
fn lay_hidden_again(evidence: &Evidence<'_>) -> Result<BTreeSet<PathBuf>, String> {
    let Some((hidden, workspace)) = evidence.hidden.zip(evidence.workspace) else { return Ok(BTreeSet::new()) };
    let what = "hidden files may have changed while an earlier grader ran, and could not be put back";
    put_back(hidden, workspace).map_err(|error| format!("could not be graded, because {what}: {error}"))
}

/// The reason why a grade may be another one than the trace shows.
struct Doubt {
    what: String,
    lost: Option<Lost>,
}

impl Doubt {
    fn at(what: &str, notice: u64) -> Self {
        Self { what: format!("{what} (event {notice})"), lost: None }
    }

    fn of((lost, notice): &(Lost, u64)) -> Self {
        let what = match lost {
            Lost::Line => "a line of the session was lost",
            Lost::Text => "a text of the agent, or the end of one, was lost",
            Lost::Speaker => "a message of the agent may hold a text that is not the agent's",
            Lost::Call => "the agent did something that no call shows",
            Lost::Outcome => "the agent reported an outcome of a call that its event does not show",
            Lost::Caller => "a call that is shown as the main agent's is one of a sub-agent",
        };
        Self { lost: Some(*lost), ..Self::at(what, *notice) }
    }
}

/// The missing events that could change the score of a grader.
#[derive(Clone, Copy)]
struct Basis {
    /// No further event can turn a pass into another grade.
    only_finds: bool,
    /// Another outcome of a call could turn a fail into another grade.
    by_outcome: bool,
    /// True if everything that was found in a text is also found in any longer one.
    in_longer_texts: bool,
}

/// Returns the grade of a session of which something is missing. A violation that events show stays, and so does a pass
/// that needs nothing else. The missing part could change any other score, so it becomes ungraded.
fn doubted(grade: Grade, doubt: &Doubt, basis: Basis) -> Grade {
    let Grade::Scored(score) = &grade else { return grade };
    let is_found = if score.passed { basis.only_finds } else { !score.evidence.is_empty() && !score.lacks };
    let may_be_wrong = match doubt.lost {
        // What was found may be of another speaker.
        Some(Lost::Speaker | Lost::Caller) => true,
        // A different outcome of the call could remove the match, unless the rule counts attempts.
        Some(Lost::Outcome) => score.passed || basis.by_outcome,
        // The text may be a part of a longer one.
        Some(Lost::Line | Lost::Text) => !basis.in_longer_texts,
        Some(Lost::Call) | None => false,
    };
    let is_certain = score.is_certain && !score.passed;
    if is_certain || (is_found && !may_be_wrong) {
        // What was found stays, and any other check of the grader may have another result.
        let bounds = Some(Bounds { low: Fraction::ZERO, high: Fraction::ONE }).filter(|_| !score.passed);
        return Grade::Scored(Score { bounds, ..score.clone() });
    }
    let what = &doubt.what;
    let outcome = if score.passed { "passed" } else { "failed" };
    Grade::ungraded(format!("{what}, so it is unknown whether this holds; without it: {outcome}: {}", score.reason))
}

/// Returns the grade of a grader that looks for a secret in the trace.
fn names_a_secret(mark: &str) -> Grade {
    Grade::ungraded(format!(
        "the grader's text contains a secret, which the trace shows as {mark}: write {mark} in the grader"
    ))
}

/// Returns a unique name for each grader: the second `files` is `files#2`.
pub fn unique_names<'a>(graders: impl IntoIterator<Item = &'a Grader>) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut names = Vec::new();
    for grader in graders {
        names.push(free_name(&grader.name, &mut taken));
    }
    names
}

/// Returns a name, with a number if the name is already used.
fn free_name(name: &str, taken: &mut HashSet<String>) -> String {
    let numbered = (2_u32..).map(|n| format!("{name}#{n}"));
    let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !taken.contains(name));
    let name = free.unwrap_or_else(|| name.to_owned());
    taken.insert(name.clone());
    name
}

fn record(grader: &Grader, name: String, grade: Grade) -> GradeRecord {
    let ungraded = |reason| GradeRecord {
        name,
        grader: grader.kind.word().to_owned(),
        outcome: Outcome::Ungraded,
        value: None,
        bounds: None,
        passed: None,
        weight: grader.weight,
        gate: grader.gate,
        diagnostic: grader.diagnostic,
        reason,
        evidence: Vec::new(),
        broken: Vec::new(),
        skills: Vec::new(),
        judge: None,
        tests: None,
        snapshot: None,
    };
    match grade {
        Grade::Ungraded { reason } => ungraded(reason),
        Grade::Scored(score) => GradeRecord {
            outcome: Outcome::Scored,
            value: Some(score.value),
            bounds: score.bounds,
            passed: Some(score.passed),
            evidence: score.evidence,
            broken: score.broken,
            ..ungraded(score.reason)
        },
    }
}

//! `evals mine`: makes audited cases of the history of a repository.
//!
//! ```text
//! history → candidate → change → laboratory → commit_tests → draft → case → sound
//! ```
//!
//! [`history`] reads the commits, [`role`] decides which files are tests, [`candidate`] drops those that cannot become a
//! case by their list of files, [`change`] reads the others. [`runner`] recognises how the tests are set up and run,
//! and [`package`] in which folder, [`laboratory`] runs them before and after the commit, and [`commit_tests`] and
//! [`left_out`] decide which tests the case rests on. [`hunks`] splits the fix, so that the laboratory can show what
//! of it the tests notice, and [`choice`] prefers the cases whose tests notice all of it. [`prompt`] and
//! [`leaks`](crate::audit::leaks) make the draft of the prompt, [`interface`] finds the names that tests expect of
//! each solution, among those that [`members`], [`options`] and [`fields`] find in the hunks of the fix
//! ([`patched`]), [`write`] writes the case, and [`sound`] tests it in fresh workspaces. [`journal`] keeps each
//! result for `--resume`. [`miner`] takes a commit through these steps, and [`draft`] puts the case together.
//! [`reservations`] has the texts that the case and the report have in common.

use std::collections::HashMap;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::json;

use crate::judge::Judges;
use crate::model_client::ModelName;
use crate::process::memory;
use crate::secrets::{Masker, known_forms};
use crate::trial::{Engine, TrialError};
use crate::values::Time;
use crate::whole_file::FileError;

mod brackets;
pub mod candidate;
mod change;
mod choice;
mod draft;
mod fields;
pub mod history;
mod hunks;
mod interface;
pub mod commit_tests;
pub mod laboratory;
mod language;
mod left_out;
mod lock;
mod members;
mod miner;
mod options;
mod package;
mod patched;
pub mod prompt;
mod protection;
pub mod repository;
mod renames;
pub mod reservations;
mod rewrite;
pub mod role;
pub mod runner;
mod sound;
pub mod journal;
pub mod write;

use candidate::{Dropped, at_sight};
use commit_tests::{CommitTests, Flaky};
use history::{Commit, Range};
use journal::{Candidate, CandidateStatus, MadeWith, State};
use laboratory::Laboratory;
use miner::{Miner, candidate, recipes_of};
use repository::{Repository, RepositoryError};
use runner::{Given, below_the_top};
use write::Place;

/// The maximum number of tests in each list of a case.
const MAX_TESTS: usize = 1000;
/// The maximum number of candidates that are looked at to find a test runner that is installed.
const MAX_CHECKED_CANDIDATES: usize = 20;
/// The version of the mining rules: a change of the rules makes the state of an older version unusable.
const VERSION: u32 = 21;

/// The settings of `evals mine`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder of the cases.
    pub out: PathBuf,
    /// The folder of the project: paths in it are written as relative ones.
    pub project: PathBuf,
    /// The location of the repository, if the cases name a URL.
    pub url: Option<String>,
    /// The number of cases after which the mining ends.
    pub keep: usize,
    /// The part of the history.
    pub range: Range,
    /// The set-up and test settings that the user gives.
    pub given: Given,
    /// The number of runs of each state.
    pub repeat: u32,
    /// The maximum number of hunks of a fix that are left out in turn.
    pub hunks: usize,
    /// The maximum number of changed lines of a commit.
    pub max_lines: u64,
    /// The timeout of a run of the tests.
    pub timeout: Time,
    /// The limit of the memory of a command, in bytes. Absent: half of the machine's.
    pub memory: Option<u64>,
    /// True if commands run in bubblewrap.
    pub is_confined: bool,
    /// The model that writes the prompts again.
    pub rewrite: Option<ModelName>,
    /// The folder of the state.
    pub state: PathBuf,
    /// True if an interrupted mining is resumed.
    pub resume: bool,
    /// True if cases that exist are replaced.
    pub force: bool,
}

/// The result of a mining.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Mined {
    /// The folder of the repository, or its URL.
    pub repo: String,
    /// The newest commit.
    pub head: String,
    /// The number of commits that were looked at.
    pub looked_at: usize,
    /// The number of cases.
    pub kept: usize,
    /// The commits, newest first.
    pub candidates: Vec<Candidate>,
}

/// The reason why nothing could be mined.
#[derive(Debug, thiserror::Error)]
pub enum MineError {
    /// The repository cannot be mined.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// The test runner was not recognised.
    #[error(
        "no test runner was recognised in {repo}; name the command that runs the tests with `--test COMMAND` (recognised are cargo, pytest, unittest, go, node, npm, mocha, jest, vitest, maven and gradle){below}"
    )]
    NoRunner {
        /// The folder of the repository.
        repo: String,
        /// A part of the message about manifests below the top.
        below: String,
    },
    /// The test runner is not installed.
    #[error(
        "{0}; install it, name the command that runs the tests with `--test COMMAND`, or the commands that install it \
         with `--setup COMMAND`"
    )]
    NotInstalled(String),
    /// A case file exists, and may have been edited by a person.
    #[error(
        "{} exists already; nothing was mined: resume the earlier mining with its options and --resume, name another \
         folder with -o, or replace cases with --force", .0.display()
    )]
    Exists(PathBuf),
    /// A case file exists that the state does not know.
    #[error(
        "{} exists already, and the state in {} does not know it; nothing was mined: --resume continues a mining in the \
         folder where it began, with the same options; name another folder with -o, or replace cases with --force",
        .case.display(), .state.display()
    )]
    NotKnown {
        /// The case file.
        case: PathBuf,
        /// The folder of the state.
        state: PathBuf,
    },
    /// A case file exists whose state other mining rules made.
    #[error(
        "{} exists already, and the state of the earlier mining was made by mining rules {earlier}, which are now {now}; nothing \
         was mined: name another folder with -o, or replace cases, edited ones too, with --force", .case.display()
    )]
    OtherRules {
        /// The case file.
        case: PathBuf,
        /// The rules of the earlier mining.
        earlier: String,
        /// The mining rules of this version of evals.
        now: String,
    },
    /// Another mining writes into the folder of the cases.
    #[error(
        "another mining writes its cases to {}; nothing was mined: wait until it has ended, or name another folder with -o",
        .0.display()
    )]
    Busy(PathBuf),
    /// A file of a case is missing.
    #[error(
        "{} names {}, which is missing; nothing was mined: restore it, or remove the case file so that --resume makes the \
         case again", .case.display(), .missing.display()
    )]
    Incomplete {
        /// The case file.
        case: PathBuf,
        /// The missing file or folder.
        missing: PathBuf,
    },
    /// A file could not be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The engine itself failed.
    #[error(transparent)]
    Trial(#[from] TrialError),
    /// A folder of a workspace could not be made.
    #[error("{0}")]
    Machine(String),
}

/// An event of `evals mine`.
#[derive(Debug)]
pub enum MineEvent<'a> {
    /// The history was read.
    Read {
        /// The number of commits.
        commits: usize,
        /// The number of commits whose tests will be run.
        candidates: usize,
    },
    /// The state of an earlier mining is not used, because other mining rules made it.
    OtherRules {
        /// The rules of the earlier mining.
        earlier: &'a str,
        /// The mining rules of this version of evals.
        now: &'a str,
    },
    /// The tests of a commit are run.
    Trying(&'a Commit),
    /// A commit was tested, and kept or dropped.
    Tested(&'a Candidate),
}

/// The outcome of `evals mine`.
pub enum Outcome {
    /// The mining ended.
    Done(Mined),
    /// The user interrupted it.
    Interrupted,
}

/// Mines a repository.
///
/// # Errors
/// Returns an error if nothing can be mined, or if a file cannot be written.
pub async fn mine(
    engine: &Engine,
    judges: &Judges,
    repository: &Repository,
    settings: &Settings,
    report: &mut (dyn FnMut(MineEvent<'_>) + Send),
) -> Result<Outcome, MineError> {
    let head = repository.line(&["rev-parse", "--verify", "HEAD^{commit}"]).await?;
    let secrets = Secrets::of(engine);
    let mut commits = history::read(repository, &settings.range).await?;
    for commit in &mut commits {
        commit.message = secrets.masked(&commit.message);
    }
    let dropped = all_at_sight(repository, &commits, settings.max_lines).await?;
    let open: Vec<&Commit> = commits.iter().filter(|commit| !dropped.contains_key(&commit.id)).collect();
    report(MineEvent::Read { commits: commits.len(), candidates: open.len() });
    check_runner(engine, repository, &open, settings).await?;
    let with = made_with(repository, settings);
    std::fs::create_dir_all(&settings.out).map_err(FileError::io("make", &settings.out))?;
    let _lock = lock::lock(&settings.out).await?;
    if !settings.force {
        check_places(settings, &open, &with, report)?;
    }
    let mut state = State::open(&settings.state, &with, settings.resume)?;
    let mut laboratory =
        Laboratory::new(engine.temporary.clone(), engine.env.clone(), settings.is_confined, settings.repeat);
    laboratory.memory = settings.memory.or_else(memory::half_of_the_machine);
    let mut miner = Miner { engine, judges, repository, settings, laboratory, secrets, flaky: Flaky::default() };
    let mut candidates: Vec<Candidate> = Vec::new();
    for commit in &commits {
        if choice::is_enough(&candidates, settings.keep) {
            break;
        }
        let candidate = match (dropped.get(&commit.id), state.known(&commit.id)) {
            (Some(dropped), _) => candidate(commit, Some(dropped), CommitTests::default(), None, None),
            (None, Some(known)) if is_there(known, &Place::of(&settings.out, commit.subject(), &commit.id)) => {
                known.clone()
            }
            (None, _) => {
                report(MineEvent::Trying(commit));
                let Some(candidate) = miner.look(commit, &mut state).await? else { return Ok(Outcome::Interrupted) };
                report(MineEvent::Tested(&candidate));
                candidate
            }
        };
        let mut flaky = Flaky::default();
        flaky.add(candidate.folder.as_ref(), &candidate.flaky);
        miner.flaky.add(candidate.folder.as_ref(), &candidate.flaky);
        candidates.push(candidate);
        if !make_again(&mut miner, &mut state, &mut candidates, &commits, flaky, report).await? {
            return Ok(Outcome::Interrupted);
        }
    }
    for at in choice::left_over(&candidates, settings.keep) {
        let Some(candidate) = candidates.get_mut(at) else { continue };
        let place = Place::of(&settings.out, &candidate.subject, &candidate.commit);
        // A case that was accepted before may have been edited since.
        if place.case.is_file() {
            continue;
        }
        place.clear()?;
        choice::drop_of(candidate);
    }
    for candidate in candidates.iter().filter(|candidate| candidate.status == CandidateStatus::Kept) {
        let place = Place::of(&settings.out, &candidate.subject, &candidate.commit);
        if place.untested.is_file() {
            place.accept()?;
        }
    }
    let kept = candidates.iter().filter(|candidate| candidate.status == CandidateStatus::Kept).count();
    let repo = settings.url.clone().unwrap_or_else(|| repository.folder.display().to_string());
    Ok(Outcome::Done(Mined { repo, head, looked_at: candidates.len(), kept, candidates }))
}

/// Refuses to write over a case that a person may have edited.
fn check_places(
    settings: &Settings,
    open: &[&Commit],
    with: &MadeWith,
    report: &mut (dyn FnMut(MineEvent<'_>) + Send),
) -> Result<(), MineError> {
    // Without --resume, opening the state removes it, so the results are read before.
    let known = if settings.resume { State::read(&settings.state, with) } else { HashMap::new() };
    let is_unknown = settings.resume && known.is_empty();
    let other = if is_unknown { State::other_tool(&settings.state, with) } else { None };
    let other = other.map(|tool| (rules(&tool), rules(&with.tool)));
    for commit in open {
        let place = Place::of(&settings.out, commit.subject(), &commit.id);
        if known.contains_key(&commit.id) {
            // A person may have edited the case file, so it is not made again.
            if let Some(missing) = place.missing() {
                return Err(MineError::Incomplete { case: place.case, missing });
            }
        } else if place.case.exists() {
            let state = std::path::absolute(&settings.state).unwrap_or_else(|_| settings.state.clone());
            return Err(match (settings.resume, other) {
                (true, Some((earlier, now))) => MineError::OtherRules { case: place.case, earlier, now },
                (true, None) => MineError::NotKnown { case: place.case, state },
                (false, _) => MineError::Exists(place.case),
            });
        }
    }
    if let Some((earlier, now)) = &other {
        report(MineEvent::OtherRules { earlier, now });
    }
    Ok(())
}

/// Makes each case again without the tests that turned out to be flaky, unless a person edited the case. This may show that other
/// tests are flaky. Returns false if the user interrupts it.
async fn make_again(
    miner: &mut Miner<'_>,
    state: &mut State,
    candidates: &mut [Candidate],
    commits: &[Commit],
    mut flaky: Flaky,
    report: &mut (dyn FnMut(MineEvent<'_>) + Send),
) -> Result<bool, MineError> {
    while !flaky.is_empty() {
        let mut more = Flaky::default();
        for (candidate, commit) in candidates.iter_mut().zip(commits) {
            let place = Place::of(&miner.settings.out, commit.subject(), &commit.id);
            let mut listed = candidate.fail_to_pass.iter().chain(&candidate.pass_to_pass);
            let names_one = listed.any(|test| flaky.has(candidate.folder.as_ref(), test));
            if candidate.status != CandidateStatus::Kept || !names_one {
                continue;
            }
            let made = state.made(&commit.id);
            if made.is_none() || place.digest().as_deref() != made {
                continue;
            }
            report(MineEvent::Trying(commit));
            place.clear()?;
            let Some(again) = miner.look(commit, state).await? else { return Ok(false) };
            report(MineEvent::Tested(&again));
            let is_new = |test: &&String| !miner.flaky.has(again.folder.as_ref(), test);
            let new: Vec<String> = again.flaky.iter().filter(is_new).cloned().collect();
            more.add(again.folder.as_ref(), &new);
            miner.flaky.add(again.folder.as_ref(), &again.flaky);
            *candidate = again;
        }
        flaky = more;
    }
    Ok(true)
}

/// Returns true unless the case of a commit was removed since. One in reserve has not got its name yet.
fn is_there(known: &Candidate, place: &Place) -> bool {
    known.case.is_none() || place.case.is_file() || (choice::is_reserve(known) && place.is_complete_reserve())
}

/// Returns the version of the rules in the `tool` of a state, with that of the program.
fn rules(tool: &str) -> String {
    tool.rsplit_once(' ').map_or_else(|| tool.to_owned(), |(program, rules)| format!("{rules} (evals {program})"))
}

fn made_with(repository: &Repository, settings: &Settings) -> MadeWith {
    MadeWith {
        tool: format!("{} {VERSION}", env!("CARGO_PKG_VERSION")),
        repo: repository.folder.clone(),
        settings: deciding(settings),
    }
}

/// Returns the settings that change the result of a commit, as JSON.
fn deciding(settings: &Settings) -> String {
    let Settings {
        out,
        given: Given { test, setup },
        repeat,
        hunks,
        max_lines,
        timeout,
        memory,
        is_confined,
        rewrite,
        project: _,
        url: _,
        keep: _,
        range: _,
        state: _,
        resume: _,
        force: _,
    } = settings;
    let settings = json!({
        // A path may be any bytes.
        "out": out.as_os_str().as_encoded_bytes().escape_ascii().to_string(),
        "test": test,
        "setup": setup,
        "repeat": repeat,
        "hunks": hunks,
        "max-lines": max_lines,
        "timeout": timeout.to_string(),
        "memory": memory,
        "is-confined": is_confined,
        "rewrite": rewrite.as_ref().map(ToString::to_string),
    });
    settings.to_string()
}

/// Returns the commits that are dropped without running anything.
async fn all_at_sight(
    repository: &Repository,
    commits: &[Commit],
    max_lines: u64,
) -> Result<HashMap<String, Dropped>, RepositoryError> {
    let mut dropped: HashMap<String, Dropped> =
        commits.iter().filter_map(|commit| Some((commit.id.clone(), at_sight(commit, max_lines)?))).collect();
    let rest: Vec<&str> =
        commits.iter().map(|commit| commit.id.as_str()).filter(|id| !dropped.contains_key(*id)).collect();
    if rest.is_empty() {
        return Ok(dropped);
    }
    let digests = history::digests(repository, &rest).await?;
    let mut first: HashMap<&blake3::Hash, &str> = HashMap::new();
    // The last commit of the list is the earliest.
    for id in rest.iter().rev() {
        let Some(digest) = digests.get(*id) else { continue };
        match first.get(digest) {
            Some(earlier) => _ = dropped.insert((*id).to_owned(), Dropped::Duplicate { of: (*earlier).to_owned() }),
            None => _ = first.insert(digest, id),
        }
    }
    Ok(dropped)
}

/// Checks that a runner of the newest candidates was recognised and is installed. Without that of a package below the top, other
/// packages may still be mined.
async fn check_runner(
    engine: &Engine,
    repository: &Repository,
    newest: &[&Commit],
    settings: &Settings,
) -> Result<(), MineError> {
    let (mut not_installed, mut below) = (None, None);
    for commit in newest.iter().take(MAX_CHECKED_CANDIDATES) {
        let Some(parent) = &commit.parent else { continue };
        let change = change::read(repository, commit, parent).await?;
        let found = recipes_of(&change, settings);
        let Some(recipe) = found.first() else {
            if !change.packages.is_empty() {
                return Ok(());
            }
            below.get_or_insert_with(|| below_the_top(&change.after, &change.changed_tests));
            continue;
        };
        let missing = laboratory::missing(recipe, &engine.env);
        let Some(why) = missing.or_else(|| laboratory::missing_of(&settings.given, &engine.env)) else {
            return Ok(());
        };
        let is_of_all = recipe.folder.is_empty();
        not_installed.get_or_insert(why);
        if is_of_all {
            break;
        }
    }
    if let Some(why) = not_installed {
        return Err(MineError::NotInstalled(why));
    }
    match below {
        None => Ok(()),
        Some(below) => Err(MineError::NoRunner {
            repo: repository.folder.display().to_string(),
            below: below.map(|below| format!("; {below}")).unwrap_or_default(),
        }),
    }
}

/// Masks the secrets of texts: the values of this machine's variables, and secrets of known forms.
struct Secrets(Masker);

impl Secrets {
    fn of(engine: &Engine) -> Self {
        Self(Masker::of_env(engine.env.iter().map(|(name, value)| (name.as_str(), value.as_str())), &[]))
    }

    fn masked(&self, text: &str) -> String {
        known_forms::mask(&self.0.mask(text)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_setting_that_changes_a_judgement_makes_other_judgements() {
        let settings = Settings {
            out: "cases/mined".into(),
            project: "/project".into(),
            url: None,
            keep: 20,
            range: Range::default(),
            given: Given::default(),
            repeat: 3,
            hunks: 30,
            max_lines: 2000,
            timeout: Time(Duration::from_secs(600)),
            memory: None,
            is_confined: true,
            rewrite: None,
            state: ".evals/mine".into(),
            resume: false,
            force: false,
        };
        let made = deciding(&settings);
        let resumed = Settings { keep: 5, resume: true, force: true, ..settings.clone() };
        assert_eq!(deciding(&resumed), made);
        let given = |test: Option<&str>, setup: &[&str]| Given {
            test: test.map(str::to_owned),
            setup: setup.iter().map(|line| (*line).to_owned()).collect(),
        };
        let mut all = vec![
            made,
            deciding(&Settings { out: "cases/other".into(), ..settings.clone() }),
            deciding(&Settings { out: OsStr::from_bytes(b"cases/\xff").into(), ..settings.clone() }),
            deciding(&Settings { out: OsStr::from_bytes(b"cases/\xfe").into(), ..settings.clone() }),
            deciding(&Settings { given: given(Some("make check"), &[]), ..settings.clone() }),
            deciding(&Settings { given: given(None, &["make check"]), ..settings.clone() }),
            deciding(&Settings { given: given(None, &["make", "check"]), ..settings.clone() }),
            deciding(&Settings { repeat: 4, ..settings.clone() }),
            deciding(&Settings { hunks: 3, ..settings.clone() }),
            deciding(&Settings { max_lines: 3, ..settings.clone() }),
            deciding(&Settings { timeout: Time(Duration::from_secs(6)), ..settings.clone() }),
            deciding(&Settings { memory: Some(1 << 30), ..settings.clone() }),
            deciding(&Settings { is_confined: false, ..settings.clone() }),
            deciding(&Settings { rewrite: "anthropic:claude-opus-4-8".parse().ok(), ..settings }),
        ];
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count, "{all:#?}");
    }
}

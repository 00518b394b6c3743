//! `evals mine`: makes audited cases of the history of a repository.
//!
//! ```text
//! history → candidate → change → laboratory → judgement → draft → case → sound
//! ```
//!
//! [`history`] reads the commits, [`role`] decides which files are tests, [`candidate`] drops those that cannot become a case by their list of files, [`change`]
//! reads the others. [`runner`] recognises how the tests are set up and run, [`laboratory`] runs them before and after the
//! commit, and [`judgement`] and [`left_out`] decide which tests the case rests on. [`hunks`] splits the fix, so that the laboratory can
//! show what of it the tests notice, and [`choice`] prefers the cases whose tests notice all of it and whose prompt says something. [`prompt`] and [`leaks`] make the draft of the
//! prompt, [`write`] writes the case, and [`sound`] tests it in fresh workspaces. [`state`] keeps each result for `--resume`.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;

use crate::audit::leaks;
use crate::case::provenance::{Hunks, Provenance};
use crate::grader::test_run::Tests;
use crate::judge::Judges;
use crate::model_client::ModelName;
use crate::secrets::{Masker, known_forms};
use crate::text::{first_chars, plural};
use crate::trial::{Engine, TrialError};
use crate::values::Time;
use crate::whole_file::FileError;

pub mod candidate;
mod change;
mod choice;
pub mod history;
mod hunks;
pub mod judgement;
pub mod laboratory;
mod left_out;
pub mod prompt;
mod protection;
pub mod repository;
mod renames;
mod rewrite;
pub mod role;
pub mod runner;
mod sound;
pub mod journal;
pub mod write;

use candidate::{Dropped, at_sight};
use change::Change;
use history::{Commit, Range};
use journal::{Looked, LookedStatus, MadeWith, State};
use judgement::{Judged, depends, only_renames, sample};
use laboratory::{Laboratory, NotTried, Runs, Subject};
use left_out::judged;
use repository::{Repository, RepositoryError};
use runner::{Given, Recipe, Runner, TestFiles, Tree, recipes};
use sound::Sound;
use write::{Draft, Place};

/// The maximum number of tests in each list of a case.
const MOST_TESTS: usize = 1000;
/// The version of the judgements: a change of how commits are judged makes the state of an older version unusable.
const VERSION: u32 = 8;

/// The settings of a mining.
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
    pub candidates: Vec<Looked>,
}

/// The reason why nothing could be mined.
#[derive(Debug, thiserror::Error)]
pub enum MineError {
    /// The repository cannot be mined.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// The test runner was not recognised.
    #[error(
        "no test runner was recognised in {0}; name the command that runs the tests with `--test COMMAND` (recognised are cargo, pytest, unittest, go, node, npm, mocha, jest, vitest, maven and gradle)"
    )]
    NoRunner(String),
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

/// An event of a mining.
#[derive(Debug)]
pub enum MineEvent<'a> {
    /// The history was read.
    Read {
        /// The number of commits.
        commits: usize,
        /// The number of commits whose tests will be run.
        candidates: usize,
    },
    /// The tests of a commit are run.
    Trying(&'a Commit),
    /// A commit was judged.
    Judged(&'a Looked),
}

/// The outcome of a mining.
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
    told: &mut (dyn FnMut(MineEvent<'_>) + Send),
) -> Result<Outcome, MineError> {
    let head = repository.line(&["rev-parse", "--verify", "HEAD^{commit}"]).await?;
    let secrets = Secrets::of(engine);
    let mut commits = history::read(repository, &settings.range).await?;
    for commit in &mut commits {
        commit.message = secrets.masked(&commit.message);
    }
    let dropped = all_at_sight(repository, &commits, settings.max_lines).await?;
    let open: Vec<&Commit> = commits.iter().filter(|commit| !dropped.contains_key(&commit.id)).collect();
    told(MineEvent::Read { commits: commits.len(), candidates: open.len() });
    if let Some(newest) = open.first() {
        check_runner(engine, repository, newest, settings).await?;
    }
    let with = made_with(repository, settings);
    if !settings.force {
        // Without --resume, opening the state removes it, so the judgements are read before.
        let known = if settings.resume { State::read(&settings.state, &with) } else { HashMap::new() };
        for commit in &open {
            let place = Place::of(&settings.out, commit.subject(), &commit.id);
            if known.contains_key(&commit.id) {
                // A person may have edited the case file, so it is not made again.
                if let Some(missing) = place.missing() {
                    return Err(MineError::Incomplete { case: place.case, missing });
                }
            } else if place.case.exists() {
                let state = std::path::absolute(&settings.state).unwrap_or_else(|_| settings.state.clone());
                return Err(match settings.resume {
                    true => MineError::NotKnown { case: place.case, state },
                    false => MineError::Exists(place.case),
                });
            }
        }
    }
    let mut state = State::open(&settings.state, &with, settings.resume)?;
    std::fs::create_dir_all(&settings.out).map_err(FileError::io("make", &settings.out))?;
    let laboratory =
        Laboratory::new(engine.temporary.clone(), engine.env.clone(), settings.is_confined, settings.repeat);
    let mut miner = Miner { engine, judges, repository, settings, laboratory, secrets, flaky: BTreeSet::new() };
    let mut judged_now: HashSet<String> = HashSet::new();
    let mut candidates: Vec<Looked> = Vec::new();
    for commit in &commits {
        if choice::is_enough(&candidates, settings.keep) {
            break;
        }
        let looked = match (dropped.get(&commit.id), state.known(&commit.id)) {
            (Some(dropped), _) => looked(commit, Some(dropped), Judged::default(), None, None),
            (None, Some(known)) if is_there(known, &Place::of(&settings.out, commit.subject(), &commit.id)) => {
                known.clone()
            }
            (None, _) => {
                told(MineEvent::Trying(commit));
                let Some(looked) = miner.look(commit, &mut state).await? else { return Ok(Outcome::Interrupted) };
                judged_now.insert(commit.id.clone());
                told(MineEvent::Judged(&looked));
                looked
            }
        };
        let flaky: BTreeSet<String> = looked.flaky.iter().cloned().collect();
        miner.flaky.extend(looked.flaky.iter().cloned());
        candidates.push(looked);
        if flaky.is_empty() {
            continue;
        }
        // A case that rests on a test that turns out to be flaky is made again without it, unless it is one of an earlier
        // mining: a person may have edited it.
        let rests_on_it = |looked: &Looked| looked.fail_to_pass.iter().any(|test| flaky.contains(test));
        for (looked, commit) in candidates.iter_mut().zip(&commits) {
            if looked.status != LookedStatus::Kept || !rests_on_it(looked) || !judged_now.contains(&commit.id) {
                continue;
            }
            told(MineEvent::Trying(commit));
            Place::of(&settings.out, commit.subject(), &commit.id).clear()?;
            let Some(again) = miner.look(commit, &mut state).await? else { return Ok(Outcome::Interrupted) };
            told(MineEvent::Judged(&again));
            *looked = again;
        }
    }
    for at in choice::left_over(&candidates, settings.keep) {
        let Some(looked) = candidates.get_mut(at) else { continue };
        let place = Place::of(&settings.out, &looked.subject, &looked.commit);
        // A case that was accepted before may have been edited since.
        if place.case.is_file() {
            continue;
        }
        place.clear()?;
        choice::drop_of(looked);
    }
    for looked in candidates.iter().filter(|looked| looked.status == LookedStatus::Kept) {
        let place = Place::of(&settings.out, &looked.subject, &looked.commit);
        if place.untested.is_file() {
            place.accept()?;
        }
    }
    let kept = candidates.iter().filter(|looked| looked.status == LookedStatus::Kept).count();
    let repo = settings.url.clone().unwrap_or_else(|| repository.folder.display().to_string());
    Ok(Outcome::Done(Mined { repo, head, looked_at: candidates.len(), kept, candidates }))
}

/// Returns true unless the case of a commit was removed since. One in reserve has not got its name yet.
fn is_there(known: &Looked, place: &Place) -> bool {
    known.case.is_none() || place.case.is_file() || (choice::is_reserve(known) && place.is_complete_reserve())
}

fn made_with(repository: &Repository, settings: &Settings) -> MadeWith {
    let Settings { out, given, repeat, hunks, max_lines, timeout, is_confined, rewrite, .. } = settings;
    let model = rewrite.as_ref().map(ToString::to_string);
    MadeWith {
        tool: format!("{} {VERSION}", env!("CARGO_PKG_VERSION")),
        repo: repository.folder.clone(),
        settings: format!("{out:?} {given:?} {repeat} {hunks} {max_lines} {timeout} {is_confined} {model:?}"),
    }
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

/// Checks that the runner of the newest candidate was recognised and is installed.
async fn check_runner(
    engine: &Engine,
    repository: &Repository,
    newest: &Commit,
    settings: &Settings,
) -> Result<(), MineError> {
    let Some(parent) = &newest.parent else { return Ok(()) };
    let change = change::read(repository, newest, parent).await?;
    let found = recipes_of(&change, settings);
    let Some(recipe) = found.first() else {
        return Err(MineError::NoRunner(repository.folder.display().to_string()));
    };
    let missing = laboratory::missing(recipe, &engine.env);
    let missing = missing.or_else(|| laboratory::missing_of(&settings.given, &engine.env));
    missing.map_or(Ok(()), |why| Err(MineError::NotInstalled(why)))
}

fn recipes_of(change: &Change, settings: &Settings) -> Vec<Recipe> {
    let changed: Vec<&str> = change.changed_tests.iter().chain(&change.removed_tests).map(String::as_str).collect();
    let bare = Tree::default();
    let before = if change.before.files.is_empty() { &bare } else { &change.before };
    let guarded = protection::guarded(change);
    let tests = TestFiles { changed: &changed, guarded: &guarded };
    recipes(&change.after, before, &tests, &settings.given)
}

fn looked(
    commit: &Commit,
    dropped: Option<&Dropped>,
    judged: Judged,
    hunks: Option<Hunks>,
    case: Option<&Path>,
) -> Looked {
    Looked {
        commit: commit.id.clone(),
        parent: commit.parent.clone().unwrap_or_default(),
        subject: commit.subject().to_owned(),
        status: if dropped.is_some() { LookedStatus::Dropped } else { LookedStatus::Kept },
        reason: dropped.map(ToString::to_string),
        fail_to_pass: judged.fail_to_pass,
        pass_to_pass: judged.pass_to_pass,
        flaky: judged.flaky,
        left_out: judged.left_out,
        hunks,
        thin: false,
        case: case.map(|path| path.display().to_string()),
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

/// Judges commits one after another.
struct Miner<'a> {
    engine: &'a Engine,
    judges: &'a Judges,
    repository: &'a Repository,
    settings: &'a Settings,
    laboratory: Laboratory,
    secrets: Secrets,
    /// The tests that were flaky at any commit.
    flaky: BTreeSet<String>,
}

/// A commit whose tests were run.
struct Tried {
    recipe: Recipe,
    judged: Judged,
    runs: Runs,
}

impl Miner<'_> {
    /// Judges a commit and stores the judgement. Returns `None` if the user interrupts it.
    async fn look(&mut self, commit: &Commit, state: &mut State) -> Result<Option<Looked>, MineError> {
        let mut interrupt = self.engine.interrupt.clone();
        let interrupted = async move {
            if interrupt.wait_for(|on| *on).await.is_err() {
                // The sender was dropped, so no interrupt can come.
                std::future::pending::<()>().await;
            }
        };
        let place = Place::of(&self.settings.out, commit.subject(), &commit.id);
        let judged = tokio::select! {
            judged = self.judge(commit) => judged?,
            () = interrupted => None,
        };
        let Some(mut looked) = judged else {
            place.clear()?;
            return Ok(None);
        };
        // What the tests print may be a part of the reason.
        looked.reason = looked.reason.map(|reason| self.secrets.masked(&reason));
        state.add(&looked)?;
        // The state file is written before the case file is renamed. Otherwise `--resume` would treat the case as one that
        // someone else made.
        if looked.status == LookedStatus::Kept && !choice::is_reserve(&looked) {
            place.accept()?;
        }
        Ok(Some(looked))
    }

    /// Judges a commit. Returns `None` if the user interrupts it.
    async fn judge(&mut self, commit: &Commit) -> Result<Option<Looked>, MineError> {
        let dropped = |why: &Dropped, judged: Judged| Ok(Some(looked(commit, Some(why), judged, None, None)));
        let Some(parent) = &commit.parent else { return dropped(&Dropped::First, Judged::default()) };
        let mut change = change::read(self.repository, commit, parent).await?;
        if change.changed_tests.is_empty() && change.removed_tests.is_empty() {
            return dropped(&Dropped::NoTests, Judged::default());
        }
        if change.patch.is_empty() && change.with_more.is_none() {
            return dropped(&Dropped::NoCode, Judged::default());
        }
        if change.patch.is_empty() {
            change.patch = change.with_more.take().unwrap_or_default();
        }
        if recipes_of(&change, self.settings).first().is_some_and(|recipe| recipe.runner == Runner::Cargo)
            && left_out::has_only_tests_within_crates(&change)
        {
            return dropped(&Dropped::TestsInCode { files: change.changed_tests.clone() }, Judged::default());
        }
        let mut tried = self.try_recipes(commit, parent, &change).await?;
        let decides =
            |tried: &Result<Tried, Dropped>| tried.as_ref().is_ok_and(|it| !it.judged.fail_to_pass.is_empty());
        if !decides(&tried)
            && let Some(patch) = change.with_more.take()
        {
            change.patch = patch;
            tried = self.try_recipes(commit, parent, &change).await?;
        }
        let Tried { recipe, mut judged, mut runs } = match tried {
            Ok(tried) => tried,
            Err(why) => return dropped(&why, Judged::default()),
        };
        let place = Place::of(&self.settings.out, commit.subject(), &commit.id);
        let mut is_again = false;
        loop {
            if judged.fail_to_pass.is_empty() {
                let flaky = depends(&judged.flaky, &runs.before, &runs.after);
                let why = match flaky.is_empty() {
                    true => match renames::renamed(&change::tests(self.repository, commit, parent, &change).await?) {
                        Some(tests) => Dropped::OnlyRenames { tests },
                        None => Dropped::NothingChanges { left_out: judged.left_out.clone() },
                    },
                    false => Dropped::Flaky { tests: flaky },
                };
                return dropped(&why, judged);
            }
            if only_renames(&judged.fail_to_pass, &runs.before, &runs.after) {
                return dropped(&Dropped::OnlyRenames { tests: judged.fail_to_pass.clone() }, judged);
            }
            let hunks = self.try_hunks(commit, parent, &change, &recipe, &judged, &runs).await?;
            let thin = self.write(commit, parent, &change, &recipe, &judged, hunks.clone(), &place).await?;
            let sound = sound::test(self.engine, &place.untested, &recipe.needs, self.settings.is_confined).await?;
            let why = match sound {
                Sound::Yes => {
                    let looked = looked(commit, None, judged, hunks, Some(&place.case));
                    return Ok(Some(Looked { thin, ..looked }));
                }
                Sound::Interrupted => {
                    place.clear()?;
                    return Ok(None);
                }
                Sound::Unsolved(why) => {
                    place.clear()?;
                    // A test may depend on its folder, such as one with a path in its name.
                    if !is_again
                        && let Some(more) = self.try_elsewhere(commit, parent, &change, &recipe, &mut runs).await?
                    {
                        let is_other =
                            more.fail_to_pass != judged.fail_to_pass || more.pass_to_pass != judged.pass_to_pass;
                        (is_again, judged) = (true, more);
                        if is_other {
                            continue;
                        }
                    }
                    why
                }
                Sound::No(why) => {
                    place.clear()?;
                    why
                }
            };
            return dropped(&Dropped::NotSound { why: first_chars(&why, 500).to_owned() }, judged);
        }
    }

    /// Runs the tests again in a new workspace with a new set-up, adds the runs to the earlier ones, and judges all of
    /// them. Returns `None` if the tests do not run there.
    async fn try_elsewhere(
        &mut self,
        commit: &Commit,
        parent: &str,
        change: &Change,
        recipe: &Recipe,
        runs: &mut Runs,
    ) -> Result<Option<Judged>, MineError> {
        let tests = self.tests(recipe, change)?;
        self.laboratory.forget(recipe);
        let subject =
            Subject { repository: self.repository, commit: &commit.id, parent, change, recipe, tests: &tests };
        match self.laboratory.try_out(subject).await {
            Ok(mut more) => {
                more.add(std::mem::take(runs));
                *runs = more;
                Ok(Some(judged(runs, change, recipe, &self.flaky)))
            }
            Err(NotTried::SetUp(_) | NotTried::Commit(_) | NotTried::Cut(_)) => Ok(None),
            Err(NotTried::Machine(why)) => Err(MineError::Machine(why)),
        }
    }

    /// Runs the tests by the first recipe that works.
    async fn try_recipes(
        &mut self,
        commit: &Commit,
        parent: &str,
        change: &Change,
    ) -> Result<Result<Tried, Dropped>, MineError> {
        let mut first = None;
        for recipe in recipes_of(change, self.settings) {
            let tests = self.tests(&recipe, change)?;
            let subject = Subject {
                repository: self.repository,
                commit: &commit.id,
                parent,
                change,
                recipe: &recipe,
                tests: &tests,
            };
            match self.laboratory.try_out(subject).await {
                Ok(runs) => {
                    let judged = judged(&runs, change, &recipe, &self.flaky);
                    return Ok(Ok(Tried { recipe, judged, runs }));
                }
                Err(NotTried::SetUp(why) | NotTried::Commit(why)) => {
                    first.get_or_insert(Dropped::BuildFails { why: first_chars(&why, 500).to_owned() });
                }
                Err(NotTried::Cut(why)) => {
                    first.get_or_insert(Dropped::Cut { why: first_chars(&why, 500).to_owned() });
                }
                Err(NotTried::Machine(why)) => return Err(MineError::Machine(why)),
            }
        }
        Ok(Err(first.unwrap_or(Dropped::NoRunner)))
    }

    /// Returns the grader that runs the tests.
    fn tests(&self, recipe: &Recipe, change: &Change) -> Result<Tests, MineError> {
        let body = recipe.grader(&change.removed_tests, &self.settings.timeout.to_string());
        serde_json::from_value(json!(body)).map_err(|error| MineError::Machine(error.to_string()))
    }

    /// Runs the tests without each hunk of the fix in turn. Returns `None` if that was not asked for or not possible.
    async fn try_hunks(
        &self,
        commit: &Commit,
        parent: &str,
        change: &Change,
        recipe: &Recipe,
        judged: &Judged,
        runs: &Runs,
    ) -> Result<Option<Hunks>, MineError> {
        // No test can notice that a comment is missing.
        let all: Vec<_> = hunks::hunks(&change.patch).into_iter().filter(|hunk| hunk.changes_code).collect();
        let chosen = sample(&all, self.settings.hunks);
        if self.settings.hunks == 0 || all.is_empty() {
            return Ok(None);
        }
        let tests = self.tests(recipe, change)?;
        let subject =
            Subject { repository: self.repository, commit: &commit.id, parent, change, recipe, tests: &tests };
        let lists = [sample(&judged.fail_to_pass, MOST_TESTS), sample(&judged.pass_to_pass, MOST_TESTS)];
        let listed: Vec<&String> = lists.iter().flatten().collect();
        match self.laboratory.try_hunks(subject, runs, &chosen, &listed).await {
            Ok(seen) => {
                let unnoticed = chosen.iter().zip(&seen).filter(|(_, seen)| **seen == Some(false));
                Ok(Some(Hunks {
                    all: all.len(),
                    noticed: seen.iter().filter(|seen| **seen == Some(true)).count(),
                    unnoticed: unnoticed.map(|(hunk, _)| hunk.name.clone()).collect(),
                }))
            }
            Err(NotTried::SetUp(_) | NotTried::Commit(_) | NotTried::Cut(_)) => Ok(None),
            Err(NotTried::Machine(why)) => Err(MineError::Machine(why)),
        }
    }

    /// Writes the case of a commit. Returns true if its prompt says nothing about the task.
    #[expect(clippy::too_many_arguments)]
    async fn write(
        &self,
        commit: &Commit,
        parent: &str,
        change: &Change,
        recipe: &Recipe,
        judged: &Judged,
        hunks: Option<Hunks>,
        place: &Place,
    ) -> Result<bool, MineError> {
        place.clear()?;
        std::fs::create_dir_all(&place.hidden).map_err(FileError::io("make", &place.hidden))?;
        let hidden = std::path::absolute(&place.hidden).map_err(FileError::io("find", &place.hidden))?;
        let index = self.engine.temporary.join("index");
        change::write_files(self.repository, &commit.id, &change.hidden, &hidden, &index).await?;
        let mut sources = change::sources(self.repository, commit, parent).await?;
        // Several lines may be one secret.
        for lines in [&mut sources.notes, &mut sources.named] {
            *lines = self.secrets.masked(&lines.join("\n")).lines().map(str::to_owned).collect();
        }
        sources.changes_tests = prompt::changes_tests(&change::tests(self.repository, commit, parent, change).await?);
        let patch = String::from_utf8_lossy(&change.patch).into_owned();
        let mut prompt = prompt::draft(&sources);
        let mut remarks = Vec::new();
        let mut is_rewritten = false;
        if let Some(model) = &self.settings.rewrite {
            match rewrite::rewrite(self.judges, model, &prompt, &patch).await {
                Ok(text) => (prompt, is_rewritten) = (self.secrets.masked(&text), true),
                // The case is not lost: a person can write the prompt.
                Err(why) => remarks.push(format!("The prompt could not be rewritten by {model}: {why}")),
            }
        }
        let shared = leaks::shared_names(&prompt, &patch);
        let introduced = change::unknown_words(self.repository, parent, shared).await?;
        let leaks = leaks::leaks(&prompt, &patch, &introduced);
        let leaks: Vec<String> = leaks.iter().map(|leak| self.secrets.masked(leak)).collect();
        if prompt.contains("[redacted:") {
            remarks.push(
                "The prompt has `[redacted:…]` where the commit has a secret; the history, the patch and the hidden tests \
                 are not masked."
                    .to_owned(),
            );
        }
        // The prompt names what the tests expect on purpose, so such names are no leaks.
        let imported: String = change.test_texts.iter().map(|(_, text)| prompt::imports(text)).collect();
        let mut interface = leaks::shared_words(&imported, &patch);
        interface.extend(prompt::reached(&change.test_texts, &patch).into_iter().map(str::to_owned));
        let is_word_of =
            |text: &str, name: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
        interface.retain(|name| !is_word_of(&prompt, name));
        let interface = change::unknown_words(self.repository, parent, interface).await?;
        prompt = prompt::with_interface(&prompt, &interface);
        let is_thin = !is_rewritten && prompt::is_thin(&sources);
        if is_thin {
            remarks.push("The message says nothing about the task; write the prompt.".to_owned());
        }
        let mut grader = recipe.grader(&change.removed_tests, &self.settings.timeout.to_string());
        let needs_review = !is_rewritten || !leaks.is_empty();
        if needs_review {
            remarks.insert(0, "Made by `evals mine`. Read the prompt before you remove `review: needed`.".to_owned());
        }
        for (key, what, tests) in [
            ("fail-to-pass", "fail before the commit and pass after it", &judged.fail_to_pass),
            ("pass-to-pass", "pass before and after the commit", &judged.pass_to_pass),
        ] {
            if tests.len() > MOST_TESTS {
                let all = plural(tests.len(), "test");
                remarks.push(format!("{all} {what}; {MOST_TESTS} of them, evenly spread, are in `{key}`."));
            }
            if !tests.is_empty() {
                grader.insert(key.to_owned(), json!(sample(tests, MOST_TESTS)));
            }
        }
        if !judged.left_out.is_empty() {
            let some = crate::text::some_of(judged.left_out.iter().map(|name| format!("`{name}`")), 5);
            remarks.push(format!("Tests are left out, because `*` in their names selects other tests, too: {some}"));
        }
        remarks.extend(left_out::remark(judged));
        let patched = hunks::files(&change.patch);
        let mut protect = protection::globs(change, &patched, recipe.runner);
        if let Some(command) = &self.settings.given.test {
            protect.extend(protection::named(command, &change.before, &patched));
        }
        for path in protection::of_tests(recipe.runner, judged, change, &patched) {
            if !protect.contains(&path) {
                protect.push(path);
            }
        }
        let prompt_by = match &self.settings.rewrite {
            Some(model) if is_rewritten => format!("rewritten by {model}"),
            _ => "commit message".to_owned(),
        };
        let draft = Draft {
            subject: commit.subject().to_owned(),
            needs_review,
            prompt,
            runner: recipe.runner.word(),
            repository: match &self.settings.url {
                Some(url) => ("url", url.clone()),
                None => {
                    let Settings { project, out, .. } = self.settings;
                    ("path", write::repository_path(&self.repository.folder, project, out))
                }
            },
            setup: recipe.setup.iter().map(|step| step.line.clone()).collect(),
            protect,
            grader,
            patch: change.patch.clone(),
            provenance: Provenance {
                commit: Some(commit.id.clone()),
                parent: Some(parent.to_owned()),
                tool: Some(format!("evals mine {}", env!("CARGO_PKG_VERSION"))),
                date: Some(commit.date.clone()),
                prompt: Some(prompt_by),
                leaks,
                hunks,
                ..Provenance::default()
            },
            remarks,
        };
        write::write(&draft, place)?;
        Ok(is_thin)
    }
}

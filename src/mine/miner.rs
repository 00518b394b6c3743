//! Tests commits one after another: runs the tests of each, and makes and tests its case.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;

use super::candidate::Dropped;
use super::change::{self, Beside, Change};
use super::commit_tests::{CommitTests, Flaky, depends, only_renames, sample};
use super::history::Commit;
use super::journal::{Candidate, CandidateStatus, State};
use super::laboratory::{Laboratory, NotTried, Runs, Subject};
use super::left_out::{self, sorted};
use super::repository::Repository;
use super::runner::{Recipe, Runner, TestFiles, Tree, below_the_top, recipes};
use super::sound::{self, Sound};
use super::write::Place;
use super::{MAX_TESTS, MineError, Secrets, Settings, choice, hunks, package, protection, renames};
use crate::case::provenance::Hunks;
use crate::grader::test_run::Tests;
use crate::judge::Judges;
use crate::text::first_chars;
use crate::trial::Engine;

/// The maximum number of settings of a patch that are left out one at a time.
const MAX_SETTINGS: usize = 10;

/// The part of `evals mine` that tests commits one after another.
pub(super) struct Miner<'a> {
    pub(super) engine: &'a Engine,
    pub(super) judges: &'a Judges,
    pub(super) repository: &'a Repository,
    pub(super) settings: &'a Settings,
    pub(super) laboratory: Laboratory,
    pub(super) secrets: Secrets,
    /// The tests that were flaky at any commit.
    pub(super) flaky: Flaky,
}

/// The way to run the tests of a commit, and the outcome.
struct Tried {
    recipe: Recipe,
    sorted: CommitTests,
    runs: Runs,
}

/// A commit whose tests were run.
#[derive(Clone, Copy)]
pub(super) struct Tested<'a> {
    pub(super) commit: &'a Commit,
    pub(super) parent: &'a str,
    pub(super) change: &'a Change,
    pub(super) recipe: &'a Recipe,
    pub(super) sorted: &'a CommitTests,
}

impl Miner<'_> {
    /// Tests a commit and stores the result. Returns `None` if the user interrupts it.
    pub(super) async fn look(&mut self, commit: &Commit, state: &mut State) -> Result<Option<Candidate>, MineError> {
        let mut interrupt = self.engine.interrupt.clone();
        let interrupted = async move {
            if interrupt.wait_for(|on| *on).await.is_err() {
                // The sender was dropped, so no interrupt can come.
                std::future::pending::<()>().await;
            }
        };
        let place = Place::of(&self.settings.out, commit.subject(), &commit.id);
        let candidate = tokio::select! {
            candidate = self.examine(commit) => candidate?,
            () = interrupted => None,
        };
        let Some(mut candidate) = candidate else {
            place.clear()?;
            return Ok(None);
        };
        // What the tests print may be a part of the reason.
        candidate.reason = candidate.reason.map(|reason| self.secrets.masked(&reason));
        let made = Some(&place).filter(|_| candidate.status == CandidateStatus::Kept).and_then(Place::digest);
        state.add(&candidate, made)?;
        // The state file is written before the case file is renamed. Otherwise `--resume` would treat the case as one that
        // someone else made.
        if candidate.status == CandidateStatus::Kept && !choice::is_reserve(&candidate) {
            place.accept()?;
        }
        Ok(Some(candidate))
    }

    /// Tests a commit. Returns `None` if the user interrupts it.
    async fn examine(&mut self, commit: &Commit) -> Result<Option<Candidate>, MineError> {
        let dropped = |why: &Dropped, sorted: CommitTests| Ok(Some(candidate(commit, Some(why), sorted, None, None)));
        let Some(parent) = &commit.parent else { return dropped(&Dropped::First, CommitTests::default()) };
        let mut change = change::read(self.repository, commit, parent).await?;
        if change.changed_tests.is_empty() && change.removed_tests.is_empty() {
            return dropped(&Dropped::NoTests, CommitTests::default());
        }
        if !change.loose_links.is_empty() {
            return dropped(&Dropped::LooseLinks { links: change.loose_links }, CommitTests::default());
        }
        if !change.doubtful.is_empty() {
            return dropped(&Dropped::Doubtful { files: change.doubtful }, CommitTests::default());
        }
        let is_no_documentation = |kind: Beside| kind != Beside::Documentation;
        if change.patch.is_empty() && !change.add(is_no_documentation) {
            return dropped(&Dropped::NoCode, CommitTests::default());
        }
        if recipes_of(&change, self.settings).first().is_some_and(|recipe| recipe.runner == Runner::Cargo)
            && left_out::has_only_tests_within_crates(&change)
        {
            return dropped(&Dropped::TestsInCode { files: change.changed_tests.clone() }, CommitTests::default());
        }
        let mut tried = self.try_recipes(commit, parent, &change).await?;
        if tried.is_err() && change.add(is_no_documentation) {
            tried = self.try_recipes(commit, parent, &change).await?;
        }
        if let Ok(without) = &tried {
            let needed = self.needed(commit, parent, &change, without).await?;
            if change.add(|kind| needed.contains(&kind)) {
                tried = self.try_recipes(commit, parent, &change).await?;
            }
        }
        let Tried { recipe, mut sorted, mut runs } = match tried {
            Ok(tried) => tried,
            Err(why) => return dropped(&why, CommitTests::default()),
        };
        let place = Place::of(&self.settings.out, commit.subject(), &commit.id);
        let mut is_again = false;
        loop {
            if sorted.fail_to_pass.is_empty() {
                let flaky = depends(&sorted.flaky, &runs.before, &runs.after);
                let why = match flaky.is_empty() {
                    true => match renames::renamed(&change::tests(self.repository, commit, parent, &change).await?) {
                        Some(tests) => Dropped::OnlyRenames { tests },
                        None => Dropped::NothingChanges { left_out: sorted.left_out.clone() },
                    },
                    false => Dropped::Flaky { tests: flaky },
                };
                return dropped(&why, sorted);
            }
            if only_renames(&sorted.fail_to_pass, &runs.before, &runs.after) {
                return dropped(&Dropped::OnlyRenames { tests: sorted.fail_to_pass.clone() }, sorted);
            }
            let tested = Tested { commit, parent, change: &change, recipe: &recipe, sorted: &sorted };
            let hunks = self.try_hunks(tested, &runs).await?;
            let open_settings = self.try_settings(tested, &runs).await?;
            let thin = self.write(tested, hunks.clone(), &open_settings, &place).await?;
            let sound =
                sound::test(self.engine, &place.untested, &recipe.programs(), self.settings.is_confined).await?;
            let why = match sound {
                Sound::Yes => {
                    let candidate = candidate(commit, None, sorted, hunks, Some(&place.case));
                    return Ok(Some(Candidate { thin, open_settings, ..candidate }));
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
                            more.fail_to_pass != sorted.fail_to_pass || more.pass_to_pass != sorted.pass_to_pass;
                        (is_again, sorted) = (true, more);
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
            return dropped(&Dropped::NotSound { why: first_chars(&why, 500).to_owned() }, sorted);
        }
    }

    /// Runs the tests again in a new workspace with a new set-up, adds the runs to the earlier ones, and sorts the tests by
    /// all runs. Returns `None` if the tests do not run there.
    async fn try_elsewhere(
        &mut self,
        commit: &Commit,
        parent: &str,
        change: &Change,
        recipe: &Recipe,
        runs: &mut Runs,
    ) -> Result<Option<CommitTests>, MineError> {
        let tests = self.tests(recipe, change)?;
        self.laboratory.forget(recipe);
        let subject =
            Subject { repository: self.repository, commit: &commit.id, parent, change, recipe, tests: &tests };
        match self.laboratory.try_out(subject).await {
            Ok(mut more) => {
                more.add(std::mem::take(runs));
                *runs = more;
                Ok(Some(sorted(runs, change, recipe, &self.flaky)))
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
        let (mut first, mut nothing, mut is_of_top) = (None, None::<Tried>, false);
        for recipe in recipes_of(change, self.settings) {
            // The tests ran in this folder, and none depends on the change. The runner of another folder may have others.
            if nothing.as_ref().is_some_and(|tried| tried.recipe.folder == recipe.folder) {
                continue;
            }
            is_of_top |= recipe.folder.is_empty() && is_described(change, &recipe);
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
                    let sorted = sorted(&runs, change, &recipe, &self.flaky);
                    let tried = Tried { recipe, sorted, runs };
                    if !tried.sorted.fail_to_pass.is_empty() {
                        return Ok(Ok(tried));
                    }
                    nothing.get_or_insert(tried);
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
        if let Some(tried) = nothing {
            return Ok(Ok(tried));
        }
        Ok(Err(match (first, change.packages.as_slice()) {
            (Some(why), folders) if is_of_top || folders.is_empty() => why,
            (None, []) => Dropped::NoRunner { below: below_the_top(&change.after, &change.changed_tests) },
            (_, folders) => Dropped::SeveralPackages { folders: folders.to_vec() },
        }))
    }

    /// Returns the grader that runs the tests.
    fn tests(&self, recipe: &Recipe, change: &Change) -> Result<Tests, MineError> {
        let body = recipe.grader(&change.removed_tests, &self.settings.timeout.to_string());
        serde_json::from_value(json!(body)).map_err(|error| MineError::Machine(error.to_string()))
    }

    /// Returns the kinds of other files without which a test does not pass that passes with the whole commit. If this is
    /// unknown, these are all kinds but lock files.
    async fn needed(
        &mut self,
        commit: &Commit,
        parent: &str,
        change: &Change,
        without: &Tried,
    ) -> Result<Vec<Beside>, MineError> {
        let mut needed: Vec<Beside> = change.more.iter().map(|(kind, _)| *kind).collect();
        if needed.is_empty() {
            return Ok(needed);
        }
        let Tried { recipe, sorted: CommitTests { fail_to_pass, pass_to_pass, flaky, .. }, runs } = without;
        let tests = self.tests(recipe, change)?;
        let subject =
            Subject { repository: self.repository, commit: &commit.id, parent, change, recipe, tests: &tests };
        let keeps =
            |passed: &BTreeSet<String>| fail_to_pass.iter().chain(pass_to_pass).all(|test| passed.contains(test));
        let mut passed = self.passed_with(subject, runs, &needed).await?;
        // The set-up may have written another lock file, and installs nothing that a new manifest names.
        for kind in [Beside::Locks, Beside::Manifests] {
            if needed.contains(&kind) && needed.len() > 1 && !passed.as_ref().is_some_and(keeps) {
                needed.retain(|it| *it != kind);
                passed = self.passed_with(subject, runs, &needed).await?;
            }
        }
        let Some(mut gained) = passed else {
            needed.retain(|kind| *kind != Beside::Locks);
            return Ok(needed);
        };
        let known: BTreeSet<&String> = fail_to_pass.iter().chain(pass_to_pass).chain(flaky).collect();
        gained.retain(|test| !known.contains(test));
        if gained.is_empty() {
            return Ok(Vec::new());
        }
        for kind in needed.clone() {
            let fewer: Vec<Beside> = needed.iter().copied().filter(|it| *it != kind).collect();
            if !fewer.is_empty()
                && self.passed_with(subject, runs, &fewer).await?.is_some_and(|passed| passed.is_superset(&gained))
            {
                needed = fewer;
            }
        }
        Ok(needed)
    }

    /// Returns the tests that the case could have if other files of these kinds were a part of the patch, or `None` if this is
    /// unknown.
    async fn passed_with(
        &mut self,
        subject: Subject<'_>,
        runs: &Runs,
        kinds: &[Beside],
    ) -> Result<Option<BTreeSet<String>>, MineError> {
        let patches = subject.change.more.iter().filter(|(kind, _)| kinds.contains(kind));
        let patch: Vec<u8> = patches.flat_map(|(_, patch)| patch).copied().collect();
        match self.laboratory.try_with(subject, runs, &patch).await {
            Ok(runs) => {
                let sorted = sorted(&runs, subject.change, subject.recipe, &self.flaky);
                Ok(Some(sorted.fail_to_pass.into_iter().chain(sorted.pass_to_pass).collect()))
            }
            Err(NotTried::SetUp(_) | NotTried::Commit(_) | NotTried::Cut(_)) => Ok(None),
            Err(NotTried::Machine(why)) => Err(MineError::Machine(why)),
        }
    }

    /// Runs the tests without each hunk of the fix in turn. Returns `None` if that was not asked for or not possible.
    async fn try_hunks(&mut self, tested: Tested<'_>, runs: &Runs) -> Result<Option<Hunks>, MineError> {
        let Tested { commit, parent, change, recipe, sorted } = tested;
        // No test can notice that a comment is missing.
        let all: Vec<_> = hunks::hunks(change.fix()).into_iter().filter(|hunk| hunk.changes_code).collect();
        let chosen = sample(&all, self.settings.hunks);
        if self.settings.hunks == 0 || all.is_empty() {
            return Ok(None);
        }
        let tests = self.tests(recipe, change)?;
        let subject =
            Subject { repository: self.repository, commit: &commit.id, parent, change, recipe, tests: &tests };
        let listed = listed(sorted);
        let mut seen = Vec::new();
        for hunk in &chosen {
            match self.laboratory.try_without(subject, runs, &hunk.patch, &listed).await {
                Ok(passed) => seen.push(passed.map(|passed| !passed)),
                Err(NotTried::SetUp(_) | NotTried::Commit(_) | NotTried::Cut(_)) => return Ok(None),
                Err(NotTried::Machine(why)) => return Err(MineError::Machine(why)),
            }
        }
        let unnoticed = chosen.iter().zip(&seen).filter(|(_, seen)| **seen == Some(false));
        Ok(Some(Hunks {
            all: all.len(),
            noticed: seen.iter().filter(|seen| **seen == Some(true)).count(),
            unnoticed: unnoticed.map(|(hunk, _)| hunk.name.clone()).collect(),
        }))
    }

    /// Returns the settings in the patch that a test needs, so that an agent may change them. The tests are run with the fix
    /// and the settings of the parent: if they pass, another solution needs no other settings.
    async fn try_settings(&mut self, tested: Tested<'_>, runs: &Runs) -> Result<Vec<String>, MineError> {
        let Tested { commit, parent, change, recipe, sorted } = tested;
        let mut open = protection::settings_in_patch(change, recipe.runner, self.settings.given.test.as_deref());
        if open.is_empty() {
            return Ok(open);
        }
        let tests = self.tests(recipe, change)?;
        let subject =
            Subject { repository: self.repository, commit: &commit.id, parent, change, recipe, tests: &tests };
        let listed = listed(sorted);
        if self.passes_without(subject, runs, &open, &listed).await? {
            return Ok(Vec::new());
        }
        let mut closed: Vec<String> = Vec::new();
        for file in open.iter().take(MAX_SETTINGS).filter(|_| open.len() > 1) {
            let more = [&closed[..], std::slice::from_ref(file)].concat();
            if self.passes_without(subject, runs, &more, &listed).await? {
                closed = more;
            }
        }
        open.retain(|file| !closed.contains(file));
        Ok(open)
    }

    /// Returns true if the listed tests pass with the fix and these of its files as they are at the parent. If this is unknown,
    /// returns false.
    async fn passes_without(
        &mut self,
        subject: Subject<'_>,
        runs: &Runs,
        files: &[String],
        listed: &[String],
    ) -> Result<bool, MineError> {
        let part = hunks::of_files(&subject.change.patch, files);
        match self.laboratory.try_without(subject, runs, &part, listed).await {
            Ok(passed) => Ok(passed == Some(true)),
            Err(NotTried::SetUp(_) | NotTried::Commit(_) | NotTried::Cut(_)) => Ok(false),
            Err(NotTried::Machine(why)) => Err(MineError::Machine(why)),
        }
    }
}

/// Returns the tests that the case of a commit lists.
fn listed(sorted: &CommitTests) -> Vec<String> {
    [sample(&sorted.fail_to_pass, MAX_TESTS), sample(&sorted.pass_to_pass, MAX_TESTS)].concat()
}

pub(super) fn candidate(
    commit: &Commit,
    dropped: Option<&Dropped>,
    sorted: CommitTests,
    hunks: Option<Hunks>,
    case: Option<&Path>,
) -> Candidate {
    Candidate {
        commit: commit.id.clone(),
        parent: commit.parent.clone().unwrap_or_default(),
        subject: commit.subject().to_owned(),
        status: if dropped.is_some() { CandidateStatus::Dropped } else { CandidateStatus::Kept },
        reason: dropped.map(ToString::to_string),
        fail_to_pass: sorted.fail_to_pass,
        pass_to_pass: sorted.pass_to_pass,
        flaky: sorted.flaky,
        left_out: sorted.left_out,
        hunks,
        thin: false,
        open_settings: Vec::new(),
        case: case.map(|path| path.display().to_string()),
        folder: sorted.folder,
    }
}

pub(super) fn recipes_of(change: &Change, settings: &Settings) -> Vec<Recipe> {
    let changed: Vec<&str> = change.changed_tests.iter().chain(&change.removed_tests).map(String::as_str).collect();
    let bare = Tree::default();
    let before = if change.before.files.is_empty() { &bare } else { &change.before };
    let guarded = protection::guarded(change);
    let tests = TestFiles { changed: &changed, guarded: &guarded };
    let of_top = recipes(&change.after, before, &tests, &settings.given);
    let package = change.package.as_ref().filter(|_| settings.given.test.is_none());
    let Some(package) = package else { return of_top };
    let of_package = package.recipes(&changed, &guarded, &settings.given);
    match of_top.first().is_none_or(|recipe| is_described(change, recipe)) {
        true => [of_top, of_package].concat(),
        false => [of_package, of_top].concat(),
    }
}

/// Returns true if the top has a manifest for a recipe of the top. Tests of Python are run there without one, too.
fn is_described(change: &Change, recipe: &Recipe) -> bool {
    !recipe.runner.is_of_python() || package::describes_python(&change.after)
}

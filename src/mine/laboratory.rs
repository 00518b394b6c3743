//! Runs the tests of a candidate before and after its patch, several times, each in the sandbox and under limits.
//! Set-ups are shared by commits that need the same.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::change::{self, Change};
use super::commit_tests::{Outcomes, may_decide};
use super::repository::Repository;
use super::runner::{Given, Recipe, Runner, Step, below_the_top};
use crate::environment;
use crate::grader::test_run::{Cut, Seen, Status, Tests, missing_program, program_that_is_missing, without_colour};
use crate::own_environment;
use crate::process;
use crate::run::temporary::Vanishing;
use crate::sandbox::{Mount, Network, Places, Sandbox, TrialSandbox};
use crate::shell::{Command, Shell};
use crate::workspace::git_source::{GitRepository, GitSource};
use crate::workspace::remove::remove;
use crate::workspace::{git, hidden};

/// The maximum number of set-ups that are kept for further commits.
const MAX_SET_UPS: usize = 4;
/// The timeout of a set-up command.
const SETUP: Duration = Duration::from_secs(600);
/// The spare time of a run without a part of the fix. The timeout is this time plus a multiple of the longest run with all of it.
const SPARE: Duration = Duration::from_secs(60);
const TIMES: u32 = 10;

/// The runs of a candidate.
#[derive(Debug, Clone, Default)]
pub struct Runs {
    /// The outcomes with the new tests and without the patch.
    pub before: Vec<Outcomes>,
    /// The outcomes with both.
    pub after: Vec<Outcomes>,
    /// The tests that are left out, because their names, as patterns, also select other tests.
    pub left_out: BTreeSet<String>,
    /// The names of tests that a file which failed outside of its tests with the commit has, too.
    pub in_failed_files: BTreeSet<String>,
    /// The names that several tests of a run share, or a test and a suite.
    pub shared: BTreeSet<String>,
    /// The last parts of the names of tests and suites, each with the whole names.
    pub last_parts: BTreeMap<String, BTreeSet<String>>,
    /// The time of the longest run.
    pub longest: Duration,
}

impl Runs {
    fn add_before(&mut self, mut seen: Seen) {
        self.note_names(&mut seen);
        self.before.push(seen.outcomes);
    }

    /// Notes the names of a run that select several tests.
    fn note_names(&mut self, seen: &mut Seen) {
        self.left_out.append(&mut seen.left_out);
        self.shared.append(&mut seen.shared);
        self.add_last_parts(std::mem::take(&mut seen.last_parts));
    }

    fn add_last_parts(&mut self, parts: BTreeMap<String, BTreeSet<String>>) {
        for (part, wholes) in parts {
            self.last_parts.entry(part).or_default().extend(wholes);
        }
    }

    /// Adds earlier runs of the same commit in another workspace.
    pub fn add(&mut self, earlier: Runs) {
        self.before.extend(earlier.before);
        self.after.extend(earlier.after);
        self.left_out.extend(earlier.left_out);
        self.in_failed_files.extend(earlier.in_failed_files);
        self.shared.extend(earlier.shared);
        self.add_last_parts(earlier.last_parts);
        self.longest = self.longest.max(earlier.longest);
    }
}

/// The reason why a candidate could not be tried.
#[derive(Debug)]
pub enum NotTried {
    /// The commit's set-up fails.
    SetUp(String),
    /// The commit's tests do not run.
    Commit(String),
    /// A run did not come to its end, so the outcomes of its tests are not known.
    Cut(String),
    /// A failure that the commit did not cause, such as a full disk.
    Machine(String),
}

/// A commit to try, with one way to run its tests.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    pub repository: &'a Repository,
    pub commit: &'a str,
    pub parent: &'a str,
    /// The change of the commit.
    pub change: &'a Change,
    /// The way to set up and run the tests.
    pub recipe: &'a Recipe,
    /// The grader that runs and reads the tests.
    pub tests: &'a Tests,
}

/// Makes workspaces and runs tests in them.
pub struct Laboratory {
    /// A private folder.
    pub folder: PathBuf,
    /// The environment of this program.
    pub env: BTreeMap<String, String>,
    /// True if commands run in bubblewrap.
    pub is_confined: bool,
    /// The number of runs of each state.
    pub repeat: u32,
    /// The limit of the memory of a command, in bytes.
    pub memory: Option<u64>,
    prepared: VecDeque<PreparedFolder>,
}

/// A folder with a set-up.
struct PreparedFolder {
    key: String,
    root: Vanishing,
    /// The commands that were run, with what their outcome depends on.
    done: HashMap<String, String>,
    /// The patches in its workspace.
    laid: Laid,
}

/// The patches that are applied in a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Laid {
    /// The workspace is at the parent.
    Nothing,
    /// The fix is applied.
    Fix,
    /// A run was interrupted, or changed a file of a patch, so that the patch may still be applied. Nothing is run there again.
    Unknown,
}

impl Laboratory {
    /// Makes a laboratory in a private folder.
    pub fn new(folder: PathBuf, env: BTreeMap<String, String>, is_confined: bool, repeat: u32) -> Self {
        Self { folder, env, is_confined, repeat, memory: None, prepared: VecDeque::new() }
    }

    /// Forgets the set-up of a recipe, so that the next candidate that needs it gets a new workspace and a new home.
    pub fn forget(&mut self, recipe: &Recipe) {
        self.prepared.retain(|prepared| prepared.key != recipe.key);
    }

    /// Runs the tests of a candidate in both states.
    ///
    /// # Errors
    /// Returns the reason why the candidate could not be tried.
    pub async fn try_out(&mut self, subject: Subject<'_>) -> Result<Runs, NotTried> {
        let recipe = subject.recipe;
        if let Some(missing) = missing(recipe, &self.env) {
            return Err(NotTried::SetUp(missing));
        }
        let prepared = self.prepared_folder(&recipe.key).map_err(machine("make a folder"))?;
        let (root, set_up) = (prepared.root.path().to_owned(), prepared.done.clone());
        let mut laid = Laid::Nothing;
        let tried = self.try_in(&root, &set_up, subject, &mut laid).await;
        if matches!(tried, Err(NotTried::SetUp(_) | NotTried::Machine(_))) {
            // A set-up that failed half-way must not be taken for a complete one.
            self.prepared.retain(|prepared| prepared.key != recipe.key);
        } else if let Some(prepared) = self.prepared.iter_mut().find(|prepared| prepared.key == recipe.key) {
            let shared = recipe.setup.iter().filter_map(|step| Some((step.line.clone(), step.depends_on.clone()?)));
            prepared.done.extend(shared);
            prepared.laid = laid;
        }
        tried
    }

    async fn try_in(
        &self,
        root: &Path,
        set_up: &HashMap<String, String>,
        subject: Subject<'_>,
        laid: &mut Laid,
    ) -> Result<Runs, NotTried> {
        let Subject { repository, commit, parent, change, recipe, tests } = subject;
        let workspace = root.join("workspace");
        let shell = self.shell(root, recipe);
        self.check_out(repository, parent, root, recipe, &shell).await?;
        let setup = Shell { inside: shell.inside.clone().map(TrialSandbox::with_network), ..shell.clone() };
        let is_done = |step: &&Step| step.depends_on.is_some() && set_up.get(&step.line) == step.depends_on.as_ref();
        for step in recipe.setup.iter().filter(|step| !is_done(step)) {
            self.run_setup(&setup, &step.line).await?;
        }
        let patch = root.join("fix.patch");
        fs::write(&patch, &change.patch).map_err(machine("write the patch"))?;
        let overlay = root.join("hidden");
        remove(&overlay).map_err(machine("remove a folder"))?;
        fs::create_dir(&overlay).map_err(machine("make a folder"))?;
        let index = root.join("index");
        change::write_files(repository, commit, &change.hidden, &overlay, &index)
            .await
            .map_err(|error| NotTried::Machine(error.to_string()))?;
        let shell = self.shell_of_tests(root, recipe);
        let mut runs = Runs::default();
        // A test may leave something behind, so the state before is run on either side of the patch.
        self.lay(&overlay, &workspace)?;
        runs.add_before(whole("before the commit", observe(tests, &shell).await?)?);
        apply(&patch, &shell).await?;
        *laid = Laid::Fix;
        self.lay(&overlay, &workspace)?;
        for n in 0..self.repeat {
            let begun = Instant::now();
            let mut seen = whole("with the commit", observe(tests, &shell).await?)?;
            runs.note_names(&mut seen);
            runs.in_failed_files.append(&mut seen.in_failed_files);
            let Seen { outcomes, why, missing_program, .. } = seen;
            runs.longest = runs.longest.max(begun.elapsed());
            if n == 0 && !outcomes.values().any(|status| *status == Status::Passed) {
                let why = why.unwrap_or_else(|| "no test passes".to_owned());
                let shows_none = outcomes.is_empty() && runs.before.iter().all(BTreeMap::is_empty);
                return Err(NotTried::Commit(match missing_program {
                    Some(name) => format!("{}: {why}", self.not_found(&name)),
                    None if recipe.runner == Runner::Given => why,
                    None => {
                        let below = below_the_top(&change.after, &change.changed_tests);
                        let below = below.map(|below| format!(" ({below})"));
                        match (shows_none, below) {
                            (true, below) => format!(
                                "{} shows no test; if another command runs the tests, or one in a folder (`cd FOLDER && \
                                 COMMAND`), name it with --test COMMAND{}: {why}",
                                recipe.runner.word(),
                                below.unwrap_or_default()
                            ),
                            // An error of an import may be shown as a failed test.
                            (false, Some(below)) => format!("no test passes{below}: {why}"),
                            (false, None) => why,
                        }
                    }
                }));
            }
            runs.after.push(outcomes);
            if n == 0 && !may_decide(&runs.before, &runs.after) {
                return Ok(runs);
            }
        }
        if self.repeat > 1 {
            take_back(&patch, &shell).await?;
            *laid = Laid::Nothing;
            self.lay(&overlay, &workspace)?;
            for _ in 1..self.repeat {
                runs.add_before(whole("before the commit", observe(tests, &shell).await?)?);
            }
        }
        Ok(runs)
    }

    /// Runs the tests once with the fix and a further patch in the workspace of [`Laboratory::try_out`], and takes the further
    /// patch back. Returns the runs of the state before with this one as the run after it.
    ///
    /// # Errors
    /// Returns the reason why the patch could not be tried.
    pub async fn try_with(&mut self, subject: Subject<'_>, runs: &Runs, more: &[u8]) -> Result<Runs, NotTried> {
        let Some((root, mut laid)) = self.laid(subject.recipe) else {
            return Err(NotTried::Commit("its set-up is gone".to_owned()));
        };
        let seen = self.observe_with(&root, subject, more, &mut laid).await;
        self.set_laid(subject.recipe, laid);
        let mut seen = whole("with the commit", seen?)?;
        let mut with = runs.clone();
        with.note_names(&mut seen);
        with.in_failed_files.append(&mut seen.in_failed_files);
        with.after = vec![seen.outcomes];
        Ok(with)
    }

    /// Runs the tests with the fix and a further patch, and takes the further patch back.
    async fn observe_with(
        &self,
        root: &Path,
        subject: Subject<'_>,
        more: &[u8],
        laid: &mut Laid,
    ) -> Result<Seen, NotTried> {
        let patch = root.join("more.patch");
        let shell = self.shell_of_tests(root, subject.recipe);
        fs::write(&patch, more).map_err(machine("write the patch"))?;
        lay_fix(root, &shell, laid).await?;
        apply(&patch, &shell).await?;
        *laid = Laid::Unknown;
        self.lay(&root.join("hidden"), &root.join("workspace"))?;
        let seen = observe(subject.tests, &shell).await?;
        take_back(&patch, &shell).await?;
        *laid = Laid::Fix;
        Ok(seen)
    }

    /// Returns the folder of a set-up, and the patches in its workspace, if it can still be used.
    fn laid(&self, recipe: &Recipe) -> Option<(PathBuf, Laid)> {
        let prepared =
            self.prepared.iter().find(|prepared| prepared.key == recipe.key && prepared.laid != Laid::Unknown)?;
        Some((prepared.root.path().to_owned(), prepared.laid))
    }

    fn set_laid(&mut self, recipe: &Recipe, laid: Laid) {
        if let Some(prepared) = self.prepared.iter_mut().find(|prepared| prepared.key == recipe.key) {
            prepared.laid = laid;
        }
    }

    /// Runs the tests without a part of the fix in the workspace of [`Laboratory::try_out`], and applies the part again. Returns
    /// whether all listed tests pass, as a grader finds them, or `None` if the part could not be left out.
    ///
    /// # Errors
    /// Returns the reason why the candidate could not be tried.
    pub async fn try_without(
        &mut self,
        subject: Subject<'_>,
        runs: &Runs,
        part: &[u8],
        listed: &[String],
    ) -> Result<Option<bool>, NotTried> {
        let Some((root, mut laid)) = self.laid(subject.recipe) else { return Ok(None) };
        // Half a fix may run without end.
        let mut tests = subject.tests.clone();
        tests.timeout.0 = tests.timeout.0.min(SPARE + runs.longest.saturating_mul(TIMES));
        let shell = self.shell_of_tests(&root, subject.recipe);
        let seen = match lay_fix(&root, &shell, &mut laid).await {
            Ok(()) => self.observe_without(&root, &shell, &tests, part, &mut laid).await,
            Err(why) => Err(why),
        };
        self.set_laid(subject.recipe, laid);
        Ok(seen?.map(|seen| seen.passes_all(listed)))
    }

    /// Runs the tests without a part of the fix, and applies it again. Returns what the run showed, or `None` if that is unknown.
    async fn observe_without(
        &self,
        root: &Path,
        shell: &Shell,
        tests: &Tests,
        part: &[u8],
        laid: &mut Laid,
    ) -> Result<Option<Seen>, NotTried> {
        let patch = root.join("part.patch");
        fs::write(&patch, part).map_err(machine("write a part of the patch"))?;
        if take_back(&patch, shell).await.is_err() {
            return Ok(None);
        }
        *laid = Laid::Unknown;
        self.lay(&root.join("hidden"), &root.join("workspace"))?;
        let seen = observe(tests, shell).await?;
        // If the tests changed the file, what follows would be run with something else.
        if apply(&patch, shell).await.is_ok() {
            *laid = Laid::Fix;
        }
        // A runner that exceeds its timeout fails the case. One that needs too much memory may pass on a larger machine.
        Ok(Some(seen).filter(|seen| !matches!(seen.cut, Some(Cut::Output | Cut::Memory))))
    }

    fn lay(&self, overlay: &Path, workspace: &Path) -> Result<(), NotTried> {
        hidden::lay(overlay, workspace, workspace, &BTreeSet::new(), &BTreeSet::new())
            .map(drop)
            .map_err(|error| NotTried::Commit(error.to_string()))
    }

    /// Makes the workspace at the parent, with the folders of an earlier set-up.
    async fn check_out(
        &self,
        repository: &Repository,
        parent: &str,
        root: &Path,
        recipe: &Recipe,
        shell: &Shell,
    ) -> Result<(), NotTried> {
        let (workspace, kept) = (root.join("workspace"), root.join("kept"));
        remove(&kept).map_err(machine("remove a folder"))?;
        fs::create_dir(&kept).map_err(machine("make a folder"))?;
        for name in &recipe.keeps {
            let from = workspace.join(name);
            if from.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
                let to = kept.join(name);
                to.parent().map_or(Ok(()), fs::create_dir_all).map_err(machine("make a folder"))?;
                fs::rename(&from, &to).map_err(machine("keep a folder of the set-up"))?;
            }
        }
        for name in ["workspace", "clone", "checkout"] {
            remove(&root.join(name)).map_err(machine("remove the last workspace"))?;
        }
        let source = GitSource {
            repository: GitRepository::Path(repository.folder.clone()),
            rev: Some(parent.to_owned()),
            subdir: None,
            commit: None,
        };
        git::check_out(&source, &workspace, shell).await.map_err(NotTried::Machine)?;
        for name in &recipe.keeps {
            let (from, to) = (kept.join(name), workspace.join(name));
            // The package may not exist at this commit.
            if from.exists() && !to.exists() && to.parent().is_some_and(Path::is_dir) {
                fs::rename(&from, &to).map_err(machine("keep a folder of the set-up"))?;
            }
        }
        Ok(())
    }

    /// Returns the folder for a set-up. If there are `MAX_SET_UPS` set-ups, a new one replaces the least
    /// recently used one.
    fn prepared_folder(&mut self, key: &str) -> std::io::Result<&PreparedFolder> {
        let found =
            self.prepared.iter().position(|prepared| prepared.key == key).and_then(|at| self.prepared.remove(at));
        let prepared = match found {
            Some(prepared) => prepared,
            None => {
                while self.prepared.len() >= MAX_SET_UPS {
                    self.prepared.pop_front();
                }
                let root = Vanishing::make(&self.folder, "mine-")?;
                for name in ["home", "tmp"] {
                    fs::create_dir(root.path().join(name))?;
                }
                PreparedFolder { key: key.to_owned(), root, done: HashMap::new(), laid: Laid::Nothing }
            }
        };
        self.prepared.push_back(prepared);
        self.prepared.back().ok_or_else(|| std::io::Error::other("no folder was made"))
    }

    /// Returns the shell in which tests are run.
    fn shell_of_tests(&self, root: &Path, recipe: &Recipe) -> Shell {
        let mut shell = self.shell(root, recipe);
        environment::isolate_graders(&mut shell.env, &root.join("home"));
        // Python reuses a compiled module if the source has the same size and the same modification time in seconds.
        // Applying a patch between two runs can produce exactly that.
        shell.env.insert("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned());
        shell
    }

    /// Returns the reason why a program was not found.
    fn not_found(&self, name: &str) -> String {
        match self.is_hidden(name) {
            true => format!(
                "the program `{name}` is installed, but not in the sandbox, which has the system and the toolchains of the \
                 commands: mine without it (--sandbox none), or name the commands that install it with --setup COMMAND"
            ),
            false => {
                format!("the program `{name}` was not found; name the commands that install it with --setup COMMAND")
            }
        }
    }

    /// Returns true if this machine has a program, but commands run in a sandbox, in which it was not found.
    fn is_hidden(&self, name: &str) -> bool {
        let path = self.env.get("PATH").map(String::as_str);
        self.is_confined && process::find(name, Path::new("/"), path).is_some()
    }

    async fn run_setup(&self, shell: &Shell, line: &str) -> Result<(), NotTried> {
        let outcome =
            shell.run(&Command::Line(line.to_owned()), None, SETUP).await.map_err(machine("start a set-up command"))?;
        if outcome.exit.and_then(|exit| exit.code) == Some(0) {
            return Ok(());
        }
        let hidden = missing_program(&outcome).filter(|name| self.is_hidden(name));
        let hidden = hidden.map(|name| format!("{}: ", self.not_found(&name))).unwrap_or_default();
        let output =
            format!("{}\n{}", String::from_utf8_lossy(&outcome.stdout), String::from_utf8_lossy(&outcome.stderr));
        let output = without_colour(&output);
        let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        // The last lines are often about the program's options.
        let mut shown: Vec<&str> =
            lines.iter().copied().filter(|line| line.to_lowercase().contains("error")).take(4).collect();
        if shown.is_empty() {
            shown = lines.get(lines.len().saturating_sub(4)..).unwrap_or_default().to_vec();
        }
        let last = shown.join(" | ");
        let exceeded = outcome.memory_exceeded();
        let how = exceeded.as_deref().unwrap_or(if outcome.exit.is_none() { "did not end in time" } else { "failed" });
        let last = crate::text::first_chars(&last, 500);
        Err(NotTried::SetUp(format!("the set-up command `{line}` {how}: {hidden}{last}")))
    }

    fn shell(&self, root: &Path, recipe: &Recipe) -> Shell {
        let (workspace, home, scratch) = (root.join("workspace"), root.join("home"), root.join("tmp"));
        let env =
            environment::of_commands(&self.env, &BTreeMap::new(), &home.to_string_lossy(), &scratch.to_string_lossy());
        let inside = self.is_confined.then(|| TrialSandbox {
            sandbox: Sandbox::Bwrap { network: Network::None, mounts: toolchains(&recipe.programs(), &self.env) },
            places: Places { workspace: workspace.clone(), home, scratch, ..Places::default() },
        });
        Shell { folder: workspace, env, inside, memory: self.memory }
    }
}

fn machine<E: std::fmt::Display>(doing: &'static str) -> impl FnOnce(E) -> NotTried {
    move |error| NotTried::Machine(format!("could not {doing}: {error}"))
}

/// Returns the reason why a recipe cannot be used on this machine, if a program is missing.
pub fn missing(recipe: &Recipe, env: &BTreeMap<String, String>) -> Option<String> {
    let path = env.get("PATH").map(String::as_str);
    let name = recipe.needs.iter().find(|name| process::find(name, Path::new("/"), path).is_none())?;
    Some(format!("the program `{name}`, which {} needs, is not installed", recipe.runner.word()))
}

/// Returns the reason why the command of `--test` cannot be run on this machine, if its program is missing. A set-up may
/// install it.
pub fn missing_of(given: &Given, env: &BTreeMap<String, String>) -> Option<String> {
    let path = env.get("PATH").map(String::as_str).unwrap_or_default();
    let line = given.test.as_deref().filter(|_| given.setup.is_empty())?;
    let name = program_that_is_missing(line, path)?;
    Some(format!("the program `{name}`, which --test names, is not installed"))
}

/// The folders of an installation that have its programs.
const PROGRAMS: [&str; 2] = ["bin", "sbin"];
/// The folders that an installation has beside its programs. Without any of them, the folder around `bin` may be one in which
/// the user works.
const PARTS: [&str; 7] = ["lib", "lib64", "libexec", "packages", "share", "toolchains", "tools/image"];
/// The folders of the home that hold data and credentials of many programs.
const SHARED: [&str; 4] = [".cache", ".config", ".local", ".local/share"];

/// Returns the folders of this machine's toolchains that a sandbox does not have by itself.
pub fn toolchains(needs: &[String], env: &BTreeMap<String, String>) -> Vec<Mount> {
    let home = own_environment::var("HOME").map(PathBuf::from);
    let found = installations(needs, env, home.as_deref());
    found.into_iter().map(|path| Mount { path, write: false }).collect()
}

/// Returns the folders that the named programs need. The code of the history can read them, and the set-up has the network, so
/// none holds more of the user's files than the folder of the program or its installation.
fn installations(needs: &[String], env: &BTreeMap<String, String>, home: Option<&Path>) -> Vec<PathBuf> {
    let path = env.get("PATH").map(String::as_str);
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let is_of_the_system =
        |path: &Path| ["/usr", "/bin", "/sbin", "/lib", "/opt", "/nix", "/snap"].iter().any(|it| path.starts_with(it));
    let is_in_home = |path: &Path, name: &str| home.is_some_and(|home| real(path) == real(&home.join(name)));
    let mut found: Vec<PathBuf> = Vec::new();
    for program in needs.iter().filter_map(|name| process::find(name, Path::new("/"), path)) {
        let target = real(&program);
        found.extend(program.parent().map(Path::to_owned));
        found.extend(target.parent().map(Path::to_owned));
        found.extend(installation(&target));
        found.extend(packages_of_node(&target));
        if target.file_name().is_some_and(|name| name == "rustup") {
            let root = env.get("RUSTUP_HOME").map(PathBuf::from);
            found.extend(root.or_else(|| Some(home?.join(".rustup"))));
        }
        // Shims start a program below the folder that holds them.
        let shims = program.parent().filter(|folder| folder.ends_with("shims"));
        found.extend(shims.and_then(Path::parent).map(Path::to_owned));
    }
    // Programs keep their data and credentials beside the libraries of `~/.local`.
    let (local, mut found): (Vec<_>, Vec<_>) = found.into_iter().partition(|path| is_in_home(path, ".local"));
    let libraries = ["lib", "lib64", "libexec"];
    found.extend(local.iter().flat_map(|local| libraries.map(|name| local.join(name))));
    // The registry of the user's own cargo is not needed, and may hold credentials.
    let is_shared = |path: &Path| SHARED.iter().chain(&[".cargo"]).any(|name| is_in_home(path, name));
    let holds_the_home = |path: &Path| home.is_some_and(|home| real(home).starts_with(real(path)));
    found.retain(|path| {
        let is_own = !is_of_the_system(path) && path.components().count() > 2 && path.exists();
        is_own && !is_shared(path) && !holds_the_home(path)
    });
    found.sort();
    found.dedup();
    found
}

/// Returns the folder of the installation that a program belongs to, if its folders are those of one.
fn installation(program: &Path) -> Option<PathBuf> {
    let folder = program.parent()?;
    let root = folder.parent()?;
    let has_programs = PROGRAMS.iter().any(|name| folder.ends_with(name));
    (has_programs && PARTS.iter().any(|name| root.join(name).is_dir())).then(|| root.to_owned())
}

/// Returns the outermost `node_modules` around a program of a package of Node: it loads other packages from there.
fn packages_of_node(program: &Path) -> Option<PathBuf> {
    let folders: Vec<&Path> = program.ancestors().collect();
    folders.into_iter().rev().find(|folder| folder.ends_with("node_modules")).map(Path::to_owned)
}

async fn observe(tests: &Tests, shell: &Shell) -> Result<Seen, NotTried> {
    tests.observe(shell).await.map_err(machine("start the tests"))
}

/// Returns what a run showed if it came to its end. A test without an outcome may have passed otherwise.
fn whole(state: &str, seen: Seen) -> Result<Seen, NotTried> {
    match (seen.cut, &seen.why) {
        (Some(_), Some(why)) => Err(NotTried::Cut(format!("{state}, {why}"))),
        (Some(_), None) => Err(NotTried::Cut(format!("{state}, the run did not finish"))),
        (None, _) => Ok(seen),
    }
}

async fn apply(patch: &Path, shell: &Shell) -> Result<(), NotTried> {
    git::apply(patch, false, &outside(shell)).await.map_err(NotTried::Commit)
}

/// Applies the fix, unless it is applied.
async fn lay_fix(root: &Path, shell: &Shell, laid: &mut Laid) -> Result<(), NotTried> {
    if *laid == Laid::Nothing {
        apply(&root.join("fix.patch"), shell).await?;
        *laid = Laid::Fix;
    }
    Ok(())
}

/// Takes an applied patch back.
async fn take_back(patch: &Path, shell: &Shell) -> Result<(), NotTried> {
    git::apply(patch, true, &outside(shell)).await.map_err(NotTried::Commit)
}

/// Returns a shell without its sandbox and its limit of memory.
fn outside(shell: &Shell) -> Shell {
    Shell { inside: None, memory: None, ..shell.clone() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn program(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_sandbox_gets_the_installations_of_programs_and_not_the_folders_around_them() {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path().canonicalize().unwrap();
        let (real, home) = (root.join("data/me"), root.join("homes/me"));
        for folder in
            [".local/lib", ".local/share/mise/shims", "node/lib/node_modules/pack/dist", "node/bin", "jdk/lib"]
        {
            fs::create_dir_all(real.join(folder)).unwrap();
        }
        fs::create_dir(root.join("homes")).unwrap();
        symlink(&real, &home).unwrap();
        for path in [".local/bin/mise", ".local/share/pnpm/pnpm", "bin/mine", "own", ".cargo/bin/x", "jdk/bin/java"] {
            program(&real.join(path));
        }
        for path in ["work/tools/runtests", "work/bin/check", "node/lib/node_modules/pack/dist/pack.js"] {
            program(&real.join(path));
        }
        symlink(real.join(".local/bin/mise"), real.join(".local/share/mise/shims/go")).unwrap();
        symlink("../lib/node_modules/pack/dist/pack.js", real.join("node/bin/pack")).unwrap();
        for (folder, name, mounted) in [
            (
                ".local/share/mise/shims",
                "go",
                &[".local/bin", ".local/lib", ".local/share/mise", ".local/share/mise/shims"][..],
            ),
            (".local/share/pnpm", "pnpm", &[".local/share/pnpm"]),
            (".local/bin", "mise", &[".local/bin", ".local/lib"]),
            (".cargo/bin", "x", &[".cargo/bin"]),
            ("work/tools", "runtests", &["work/tools"]),
            ("work/bin", "check", &["work/bin"]),
            ("bin", "mine", &["bin"]),
            ("", "own", &[]),
            ("jdk/bin", "java", &["jdk", "jdk/bin"]),
            ("node/bin", "pack", &["node/bin", "node/lib/node_modules", "node/lib/node_modules/pack/dist"]),
        ] {
            for from in [&real, &home] {
                let path = from.join(folder).display().to_string();
                let env = BTreeMap::from([("PATH".to_owned(), path)]);
                let found = installations(&[name.to_owned()], &env, Some(&home));
                let found: BTreeSet<PathBuf> = found.iter().map(|path| path.canonicalize().unwrap()).collect();
                let expected: BTreeSet<PathBuf> = mounted.iter().map(|path| real.join(path)).collect();
                assert_eq!(found, expected, "{name}");
            }
        }
    }
}

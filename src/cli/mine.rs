//! `evals mine`: makes audited cases of the history of a repository.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::judges::{self, JudgeArgs};
use super::list::OutputFormat;
use super::output::{self, Content};
use super::stop::{INTERRUPTED, on_interrupt};
use super::{CliError, engine, terminal};
use crate::environment;
use crate::judge::Chosen;
use crate::mine::history::{Range, Since};
use crate::mine::journal::CandidateStatus;
use crate::mine::repository::{self, Repository, RepositoryError};
use crate::mine::runner::Given;
use crate::mine::{MineError, MineEvent, Mined, Outcome, Settings, mine};
use crate::model_client::{ModelName, Via};
use crate::project;
use crate::report::mine as report;
use crate::report::page::terminal::write;
use crate::run::folder::write_gitignore;
use crate::sandbox::bwrap;
use crate::text::{first_chars, plural};
use crate::trial::Engine;
use crate::values::{PathGlob, Time};

/// The folder of the state, in the project.
const STATE: &str = ".evals/mine";
/// The exit code if no case was made.
const NOTHING: u8 = 3;

#[derive(Debug, clap::Args)]
pub struct MineArgs {
    /// Folder or URL of a git repository
    #[arg(default_value = ".")]
    repo: String,
    /// Folder for the cases
    #[arg(short, long = "output", value_name = "DIR", default_value = "cases/mined")]
    out: PathBuf,
    /// End after N cases
    #[arg(short = 'n', value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    keep: u64,
    /// Look only at commits after a day (2024-01-31, "2 weeks ago") or a revision
    #[arg(long, value_name = "DATE|REV")]
    since: Option<String>,
    /// Look only at commits that change these paths; repeatable
    #[arg(long = "paths", value_name = "GLOB")]
    paths: Vec<PathGlob>,
    /// Command that runs the tests (default: detected)
    #[arg(long, value_name = "COMMAND")]
    test: Option<String>,
    /// Command that prepares a workspace; repeatable (default: detected)
    #[arg(long, value_name = "COMMAND")]
    setup: Vec<String>,
    /// Run the tests K times before and K times after each commit, to find flaky ones
    #[arg(long, value_name = "K", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    /// Leave out up to N hunks of each fix, one at a time, to find hunks that its tests do not check; 0: none
    #[arg(long, value_name = "N", default_value_t = 30)]
    hunks: usize,
    /// Timeout of one run of the tests
    #[arg(long, value_name = "TIME", default_value = "10m")]
    timeout: Time,
    /// Memory limit of a set-up command or test run, such as 4GiB (default: half the machine's)
    #[arg(long, value_name = "SIZE", value_parser = memory_size)]
    memory: Option<u64>,
    /// Drop commits with more changed lines
    #[arg(long, value_name = "N", default_value_t = 2000)]
    max_lines: u64,
    /// Look at no more than N commits
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    max_commits: u64,
    /// Rewrite the prompts with a model: anthropic:MODEL or openai:MODEL
    #[arg(long, value_name = "MODEL")]
    rewrite: Option<ModelName>,
    /// Sandbox for set-up and tests (default: bwrap if it works here)
    #[arg(long, value_enum)]
    sandbox: Option<Sandbox>,
    /// Resume an interrupted mining: commits that were tested with the same settings are not tested again
    #[arg(long)]
    resume: bool,
    /// Replace cases that exist, edited ones too
    #[arg(long)]
    force: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    format: OutputFormat,
}

/// The sandbox of set-up and tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Sandbox {
    /// No sandbox: set-up and tests can read and write everything that the user can
    None,
    /// bubblewrap: the system read-only, the workspace and a private home; the tests have no network
    Bwrap,
}

pub fn run(args: &MineArgs) -> Result<u8, CliError> {
    let is_confined = is_confined(args.sandbox)?;
    if let Some((name, _)) =
        args.test.iter().chain(&args.setup).map(|line| (line, line.trim())).find(|it| it.1.is_empty())
    {
        return Err(CliError::unreadable(format!("the command `{name}` of --test or --setup is empty")));
    }
    if args.timeout.0.is_zero() {
        return Err(CliError::unreadable("--timeout is 0, so no test could end in time"));
    }
    let temporary = engine::temporary()?;
    let engine = Engine { memory: args.memory, ..engine::engine(&temporary, on_interrupt(), Vec::new())? };
    let engine = match &args.rewrite {
        None => engine,
        Some(model) => {
            if model.via == Via::Harness {
                return Err(CliError::unreadable(format!(
                    "--rewrite {model}: a harness cannot rewrite prompts; write `anthropic:MODEL` or `openai:MODEL`"
                )));
            }
            judges::check_service(model).map_err(|why| CliError::unreadable(format!("--rewrite {model}: {why}")))?;
            let judge_args = JudgeArgs { judges: vec![model.clone()], ..JudgeArgs::default() };
            let chosen = Chosen { over: vec![model.clone()], ..Chosen::default() };
            judges::asking(engine, chosen, &judge_args, Default::default())?
        }
    };
    let runtime = engine::runtime()?;
    let mined = runtime.block_on(async {
        let git_home = temporary.path().join("git-home");
        std::fs::create_dir(&git_home)?;
        let mut env = environment::allowed(&engine.env);
        env.insert("HOME".to_owned(), git_home.to_string_lossy().into_owned());
        let (repository, url) = open(&args.repo, env).await?;
        let range = Range {
            since: since(&repository, args.since.as_deref()).await?,
            paths: paths(args, &repository),
            most: usize::try_from(args.max_commits).unwrap_or(usize::MAX),
        };
        let settings = Settings {
            out: args.out.clone(),
            project: std::env::current_dir()?,
            url,
            keep: usize::try_from(args.keep).unwrap_or(usize::MAX),
            range,
            given: Given { test: args.test.clone(), setup: args.setup.clone() },
            repeat: args.repeat,
            hunks: args.hunks,
            max_lines: args.max_lines,
            timeout: args.timeout,
            memory: args.memory,
            is_confined,
            rewrite: args.rewrite.clone(),
            state: project::root().join(STATE),
            resume: args.resume,
            force: args.force,
        };
        std::fs::create_dir_all(&settings.state)?;
        write_gitignore(&settings.state)?;
        let mined = mine(&engine, &engine.judges, &repository, &settings, &mut tell).await;
        let limit = settings.range.most;
        if let Ok(Outcome::Done(mined)) = &mined
            && mined.looked_at >= limit
        {
            terminal::note(format_args!(
                "note: the history may be longer: only the newest {} were looked at; raise --max-commits and go on with --resume",
                plural(limit, "commit")
            ));
        }
        mined.map_err(failed)
    });
    runtime.shutdown_background();
    judges::mark_cache()?;
    match mined? {
        Outcome::Interrupted => {
            terminal::note(format_args!("interrupted; go on with the same command and --resume"));
            Ok(INTERRUPTED)
        }
        Outcome::Done(mined) => {
            print(&mined, args.format, args.memory)?;
            Ok(if mined.kept > 0 { 0 } else { NOTHING })
        }
    }
}

/// Returns true if commands run in bubblewrap.
fn is_confined(asked: Option<Sandbox>) -> Result<bool, CliError> {
    match asked {
        Some(Sandbox::Bwrap) => bwrap::works().map(|()| true).map_err(CliError::unreadable),
        Some(Sandbox::None) => Ok(false),
        None => match bwrap::works() {
            Ok(()) => Ok(true),
            Err(why) => {
                terminal::note(format_args!(
                    "note: set-up and tests run without a sandbox and with the network: {why}"
                ));
                Ok(false)
            }
        },
    }
}

/// Reads a size such as `4GiB` or `512MiB`.
pub(super) fn memory_size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u32); 4] = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];
    let read = || {
        let (unit, shift) = UNITS.into_iter().find(|(unit, _)| text.ends_with(*unit))?;
        let number: u64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
        number.checked_mul(1_u64 << shift).filter(|bytes| *bytes > 0)
    };
    read().ok_or_else(|| "write a whole number and KiB, MiB, GiB or TiB, such as 4GiB".to_owned())
}

/// Opens a repository. One that is named by a URL is cloned first.
async fn open(repo: &str, env: BTreeMap<String, String>) -> Result<(Repository, Option<String>), CliError> {
    let is_folder = Path::new(repo).exists();
    if !is_folder && (repo.contains("://") || repo.starts_with("git@")) {
        let clones = std::path::absolute(project::root().join(STATE).join("clones"))?;
        std::fs::create_dir_all(&clones)?;
        terminal::note(format_args!("cloning {repo}"));
        let folder = repository::clone(repo, &clones, env.clone()).await.map_err(CliError::unreadable)?;
        let opened = Repository::open(&folder, env).await.map_err(CliError::unreadable)?;
        return Ok((opened, Some(repo.to_owned())));
    }
    Ok((Repository::open(Path::new(repo), env).await.map_err(CliError::unreadable)?, None))
}

/// Returns the globs of the paths that commits must change: those of `--paths`, or that of the folder which REPO names within
/// its repository. The working directory is often another folder of it, such as that of the cases, so it limits nothing.
fn paths(args: &MineArgs, repository: &Repository) -> Vec<String> {
    if !args.paths.is_empty() || repository.prefix.is_empty() {
        return args.paths.iter().map(ToString::to_string).collect();
    }
    let (top, glob) = (repository.folder.display(), glob_of(&repository.prefix));
    if args.repo == "." {
        terminal::note(format_args!(
            "note: commits of the whole repository {top} are looked at; name those of this folder with --paths '{glob}'"
        ));
        return Vec::new();
    }
    terminal::note(format_args!(
        "note: only commits of {top} that change {glob} are looked at (--paths), because {} is a folder of it; commands \
         of --setup and --test run at its top",
        args.repo
    ));
    vec![glob]
}

/// Returns the glob of all files below a folder, whose path ends with `/`.
fn glob_of(folder: &str) -> String {
    let mut glob = String::new();
    for c in folder.chars() {
        if "*?[]\\".contains(c) {
            glob.push('\\');
        }
        glob.push(c);
    }
    glob.push_str("**");
    glob
}

/// Returns true if git takes a text for the date that it says: a day up to 2099, with or without a time, or a relative
/// time such as `2 weeks ago`.
fn is_date(text: &str) -> bool {
    const UNITS: [&str; 7] = ["second", "minute", "hour", "day", "week", "month", "year"];
    let is_day = text.get(..10).is_some_and(|day| day.parse::<crate::values::Day>().is_ok() && day < "2100");
    let rest = text.get(10..).unwrap_or_default();
    let is_time = rest.starts_with(['T', ' ']) && rest.chars().all(|c| c.is_ascii_digit() || " :.+-TZ".contains(c));
    let is_ago = match text.split_whitespace().collect::<Vec<&str>>()[..] {
        [count, unit, "ago"] => count.parse::<u32>().is_ok() && UNITS.contains(&unit.strip_suffix('s').unwrap_or(unit)),
        _ => false,
    };
    let is_word = ["yesterday", "last week", "last month", "last year"].contains(&text);
    (is_day && (rest.is_empty() || is_time)) || is_ago || is_word
}

/// Reads `--since`: a revision of the repository, or a date.
async fn since(repository: &Repository, text: Option<&str>) -> Result<Option<Since>, CliError> {
    let Some(text) = text else { return Ok(None) };
    let peeled = format!("{text}^{{commit}}");
    if let Ok(commit) = repository.line(&["rev-parse", "--verify", "--quiet", "--end-of-options", &peeled]).await {
        return Ok(Some(Since::Commit(commit)));
    }
    // git takes any text for a date.
    if is_date(text) {
        // git would add the present time to a day.
        let start = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
        return Ok(Some(Since::Date(start)));
    }
    Err(CliError::unreadable(format!(
        "--since `{text}` is neither a revision of the repository nor a date; write a date such as 2024-01-31 or \"2 weeks ago\""
    )))
}

fn tell(event: MineEvent<'_>) {
    match event {
        MineEvent::Read { commits, candidates } => terminal::note(format_args!(
            "{} read, {} with code and tests",
            plural(commits, "commit"),
            plural(candidates, "candidate")
        )),
        MineEvent::OtherRules { earlier, now } => terminal::note(format_args!(
            "note: the state of the earlier mining was made by mining rules {earlier}, which are now {now}: all commits are tested \
             again"
        )),
        MineEvent::Trying(commit) => {
            terminal::note(format_args!(
                "trying {} {}",
                first_chars(&commit.id, 10),
                first_chars(commit.subject(), 70)
            ));
        }
        MineEvent::Tested(candidate) => match candidate.status {
            CandidateStatus::Kept => {
                let (fail, both) = (candidate.fail_to_pass.len(), candidate.pass_to_pass.len());
                let verb = |count: usize, one: &'static str, many: &'static str| if count == 1 { one } else { many };
                terminal::note(format_args!(
                    "  kept: {} {} before and {} after, {both} {} in both",
                    plural(fail, "test"),
                    verb(fail, "fails", "fail"),
                    verb(fail, "passes", "pass"),
                    verb(both, "passes", "pass"),
                ));
                if let Some(what) = report::reserve(candidate) {
                    let is_partly_tested = candidate.hunks.as_ref().is_some_and(|hunks| !hunks.unnoticed.is_empty());
                    let is_reserve = is_partly_tested || !candidate.open_settings.is_empty();
                    terminal::note(format_args!("  {}{what}", if is_reserve { "in reserve: " } else { "" }));
                }
            }
            CandidateStatus::Dropped => {
                let reason = candidate.reason.as_deref().unwrap_or_default();
                terminal::note(format_args!("  dropped: {}", first_chars(reason, 300)));
            }
        },
    }
}

fn failed(error: MineError) -> CliError {
    match error {
        MineError::File(error) => error.into(),
        MineError::Trial(error) if error.is_of_the_disk() => CliError::of_the_engine(error),
        MineError::Machine(why) => CliError::of_the_engine(format!("{why}; go on with the same command and --resume")),
        MineError::Repository(RepositoryError::Git { .. } | RepositoryError::Nothing(_)) => {
            CliError::of_the_engine(error)
        }
        error => CliError::unreadable(error),
    }
}

fn print(mined: &Mined, format: OutputFormat, memory: Option<u64>) -> Result<(), CliError> {
    let mut out = output::stdout(Content::json(matches!(format, OutputFormat::Json)));
    let written = match format {
        OutputFormat::Table => write(&report::page(mined, memory), &terminal::stdout_look(), &mut out),
        OutputFormat::Json => report::json(mined, &mut out),
    };
    super::import::ignore_closed_pipe(written.and_then(|()| out.flush()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_of_memory_has_a_unit() {
        for (text, bytes) in [("4GiB", Some(4 << 30)), ("512 MiB", Some(512 << 20)), ("1KiB", Some(1024))] {
            assert_eq!(memory_size(text).ok(), bytes, "{text}");
        }
        for text in ["", "4", "4GB", "0GiB", "-1GiB", "1.5GiB", "GiB", "99999999999TiB"] {
            assert!(memory_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_folder_is_a_glob_of_its_files() {
        assert_eq!(glob_of("web/"), "web/**");
        assert_eq!(glob_of("a [b]/c*/"), "a \\[b\\]/c\\*/**");
    }

    #[test]
    fn a_text_that_git_would_take_for_the_present_time_is_no_date() {
        for (text, is) in [
            ("2024-01-31", true),
            ("2024-01-31T10:00:00Z", true),
            ("2024-01-31 10:00 +0200", true),
            ("2 weeks ago", true),
            ("1 day ago", true),
            ("yesterday", true),
            ("2999-01-01", false),
            ("2024-01-31x", false),
            ("2024-01-31 noon-ish", false),
            ("long ago", false),
            ("two weeks ago", false),
            ("", false),
        ] {
            assert_eq!(is_date(text), is, "{text}");
        }
    }
}

//! Runs git in the repository that is mined. Nothing is written to it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::process::{Group, Launch, Pipes, Stdin, Stream};
use crate::trace::Exit;

/// The timeout of one git command.
const TIME: Duration = Duration::from_secs(1800);
/// The maximum number of bytes that are read of git's output.
const MAX_OUTPUT_BYTES: usize = 256 << 20;
/// The maximum number of bytes that are read of git's errors.
const MESSAGE: usize = 64 << 10;

/// Settings of git that start programs, or change what it prints.
const SETTINGS: [&str; 10] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "core.pager=cat",
    "diff.external=",
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "log.showSignature=false",
    "core.autocrlf=false",
    "gc.auto=0",
];

/// A repository whose history is mined.
#[derive(Debug, Clone)]
pub struct Repository {
    /// The top folder of the repository.
    pub folder: PathBuf,
    /// The path of the opened folder below the top, which ends with `/`; empty for the top.
    pub prefix: String,
    env: BTreeMap<String, String>,
    /// Settings that switch the repository's own filters off: they are programs that are not in the history.
    filters: Vec<String>,
}

/// The arguments of `git diff-tree` for patches that do not depend on the user's settings.
pub(super) const DIFF_TREE: [&str; 9] = [
    "diff-tree",
    "-r",
    "-p",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

/// Clones a repository without a work tree into a folder of clones, or brings its clone up to date. Returns its folder.
///
/// # Errors
/// Returns git's message.
pub async fn clone(url: &str, clones: &Path, env: BTreeMap<String, String>) -> Result<PathBuf, RepositoryError> {
    let hash = blake3::hash(url.as_bytes()).to_hex();
    let name = crate::text::first_chars(hash.as_str(), 16);
    let folder = clones.join(name);
    let git = |folder: &Path| Repository {
        folder: folder.to_owned(),
        prefix: String::new(),
        env: env.clone(),
        filters: Vec::new(),
    };
    if folder.is_dir() {
        let clone = git(&folder);
        clone.line(&["fetch", "--quiet", "--prune", "origin", "+refs/heads/*:refs/heads/*"]).await?;
        // The default branch may be another one now.
        let refs = clone.run(&["ls-remote", "--symref", "origin", "HEAD"], None).await?;
        if let Some(head) = default_branch(&String::from_utf8_lossy(&refs))
            && clone.line(&["symbolic-ref", "HEAD"]).await.ok().as_deref() != Some(head)
        {
            clone.line(&["symbolic-ref", "HEAD", head]).await?;
        }
        return Ok(folder);
    }
    let failed =
        |error: std::io::Error| RepositoryError::Git { command: "clone".to_owned(), message: error.to_string() };
    // Two processes of `evals mine` may clone at the same time.
    let part =
        tempfile::Builder::new().prefix(&format!("{name}.")).suffix(".part").tempdir_in(clones).map_err(failed)?;
    let to = part.path().to_string_lossy().into_owned();
    git(clones).line(&["clone", "--quiet", "--bare", "--", url, &to]).await?;
    match std::fs::rename(part.path(), &folder) {
        Err(_) if folder.is_dir() => Ok(folder),
        moved => moved.map(|()| folder).map_err(failed),
    }
}

/// Returns the reference to the default branch in the output of `git ls-remote --symref origin HEAD`.
fn default_branch(refs: &str) -> Option<&str> {
    let head = refs.lines().find_map(|line| line.strip_prefix("ref: ")?.strip_suffix("\tHEAD"));
    head.filter(|head| head.starts_with("refs/heads/"))
}

/// The reason why a repository cannot be mined.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// The folder is not a repository.
    #[error("{} is not a git repository{why}; name the folder of one: `evals mine PATH`", folder.display())]
    NotARepository {
        folder: PathBuf,
        /// Git's message.
        why: String,
    },
    /// The history is cut off.
    #[error(
        "the history of {} is shallow: commits before its start have no parent to go back to; run `git fetch --unshallow` in it", .0.display()
    )]
    Shallow(PathBuf),
    /// The repository is a partial clone without some objects of its history.
    #[error(
        "{} is a partial clone, and objects of its history are missing: git would fetch them into it; run \
         `git fetch --refetch --no-filter` in it", .0.display()
    )]
    Partial(PathBuf),
    /// The repository has no commit.
    #[error("{} has no commit yet", .0.display())]
    Empty(PathBuf),
    /// A git command failed.
    #[error("git {command} failed: {message}")]
    Git {
        /// The command without its settings.
        command: String,
        /// Git's message.
        message: String,
    },
    /// A search of git has no result.
    #[error("git {0} found nothing")]
    Nothing(String),
}

impl Repository {
    /// Opens a repository. `env` is the environment of git, without any setting of git itself.
    ///
    /// # Errors
    /// Returns an error if the folder is not a repository, has no commit, or its history is not complete: shallow, or a
    /// partial clone.
    pub async fn open(folder: &Path, mut env: BTreeMap<String, String>) -> Result<Self, RepositoryError> {
        let not = |why: &str| RepositoryError::NotARepository {
            folder: folder.canonicalize().unwrap_or_else(|_| folder.to_owned()),
            why: if why.is_empty() { String::new() } else { format!(" ({why})") },
        };
        let folder = folder.canonicalize().map_err(|error| not(&error.to_string()))?;
        if !folder.is_dir() {
            return Err(not("it is not a folder"));
        }
        env.insert("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned());
        env.insert("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned());
        env.insert("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned());
        // A partial clone would be written to.
        env.insert("GIT_NO_LAZY_FETCH".to_owned(), "1".to_owned());
        // A replaced object has the name of another one. Workspaces are made of the named ones.
        env.insert("GIT_NO_REPLACE_OBJECTS".to_owned(), "1".to_owned());
        env.insert("LC_ALL".to_owned(), "C".to_owned());
        let mut repository = Self { folder, prefix: String::new(), env, filters: Vec::new() };
        let is_bare = match repository.line(&["rev-parse", "--is-bare-repository"]).await {
            Ok(word) => word == "true",
            Err(RepositoryError::Git { message, .. }) if message.contains("not a git repository") => {
                return Err(not(""));
            }
            Err(error) => return Err(not(&error.to_string())),
        };
        if !is_bare {
            repository.prefix = repository.line(&["rev-parse", "--show-prefix"]).await?;
            repository.folder = PathBuf::from(repository.line(&["rev-parse", "--show-toplevel"]).await?);
        }
        if repository.line(&["rev-parse", "--is-shallow-repository"]).await? == "true" {
            return Err(RepositoryError::Shallow(repository.folder));
        }
        match repository.line(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await {
            Ok(_) => {}
            Err(RepositoryError::Nothing(_)) => return Err(RepositoryError::Empty(repository.folder)),
            Err(error) => return Err(error),
        }
        if repository.lacks_objects().await? {
            return Err(RepositoryError::Partial(repository.folder));
        }
        repository.filters = repository.without_filters().await?;
        Ok(repository)
    }

    /// Returns true if the repository is a partial clone without some objects of its history.
    async fn lacks_objects(&self) -> Result<bool, RepositoryError> {
        let settings = r"^(remote\..*\.promisor|extensions\.partialclone)$";
        if self.search(&["config", "--get-regexp", settings]).await?.is_empty() {
            return Ok(false);
        }
        // A clone that was completed keeps these settings. Objects that are there are not listed.
        let mut is_missing = false;
        let words = ["rev-list", "--objects", "--missing=print", "--quiet", "HEAD"];
        self.stream(&words, None, &BTreeMap::new(), |bytes| {
            is_missing |= !bytes.is_empty();
            !is_missing
        })
        .await?;
        Ok(is_missing)
    }

    /// Returns settings that switch off the filters in the repository's own configuration.
    async fn without_filters(&self) -> Result<Vec<String>, RepositoryError> {
        let words = ["config", "--local", "--includes", "--name-only", "--null", "--get-regexp", "^filter\\."];
        let names = self.search(&words).await?;
        let names = String::from_utf8_lossy(&names);
        let off = |name: &str| match name.rsplit_once('.') {
            Some((_, "required")) => format!("{name}=false"),
            _ => format!("{name}="),
        };
        Ok(names.split('\0').filter(|name| !name.is_empty()).map(off).collect())
    }

    /// Returns the files of a commit that contain one of the words.
    ///
    /// # Errors
    /// Returns git's message.
    pub async fn files_with(&self, commit: &str, words: &BTreeSet<&str>) -> Result<BTreeSet<String>, RepositoryError> {
        let mut search = vec!["grep", "-l", "-z", "-I", "-F", "--full-name"];
        search.extend(words.iter().flat_map(|word| ["-e", *word]));
        search.extend([commit, "--"]);
        let found = self.search(&search).await?;
        let text = String::from_utf8_lossy(&found);
        let paths = text.split('\0').filter_map(|line| line.strip_prefix(commit)?.strip_prefix(':'));
        Ok(paths.map(str::to_owned).collect())
    }

    /// Runs git and returns its output, which is empty if git found nothing.
    async fn search(&self, words: &[&str]) -> Result<Vec<u8>, RepositoryError> {
        match self.run(words, None).await {
            Err(RepositoryError::Nothing(_)) => Ok(Vec::new()),
            other => other,
        }
    }

    /// Runs git and returns its output without white space at the ends.
    ///
    /// # Errors
    /// Returns git's message.
    pub async fn line(&self, words: &[&str]) -> Result<String, RepositoryError> {
        let bytes = self.run(words, None).await?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// Runs git and returns its output.
    ///
    /// # Errors
    /// Returns git's message, or an error if the output is too large.
    pub async fn run(&self, words: &[&str], stdin: Option<Vec<u8>>) -> Result<Vec<u8>, RepositoryError> {
        let mut kept = Vec::new();
        self.stream(words, stdin, &BTreeMap::new(), |bytes| {
            kept.extend_from_slice(bytes);
            kept.len() <= MAX_OUTPUT_BYTES
        })
        .await?;
        if kept.len() > MAX_OUTPUT_BYTES {
            let message = format!("its output is larger than {} MiB", MAX_OUTPUT_BYTES >> 20);
            return Err(RepositoryError::Git { command: words.join(" "), message });
        }
        Ok(kept)
    }

    /// Runs git with further variables, and returns its output.
    ///
    /// # Errors
    /// Returns git's message.
    pub async fn run_with(
        &self,
        words: &[&str],
        stdin: Option<Vec<u8>>,
        more: &BTreeMap<String, String>,
    ) -> Result<(), RepositoryError> {
        self.stream(words, stdin, more, |_| true).await
    }

    /// Runs git and passes its output on as it comes, until `take` returns false.
    ///
    /// # Errors
    /// Returns git's message.
    pub async fn stream(
        &self,
        words: &[&str],
        stdin: Option<Vec<u8>>,
        more: &BTreeMap<String, String>,
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), RepositoryError> {
        let failed = |message: String| RepositoryError::Git { command: words.join(" "), message };
        let mut line = vec!["git".to_owned()];
        let settings = SETTINGS.iter().copied().chain(self.filters.iter().map(String::as_str));
        line.extend(settings.flat_map(|setting| ["-c".to_owned(), setting.to_owned()]));
        line.extend(words.iter().map(|word| (*word).to_owned()));
        let mut env = self.env.clone();
        env.extend(more.iter().map(|(name, value)| (name.clone(), value.clone())));
        let launch = Launch::from(line);
        let input = if stdin.is_some() { Stdin::Piped } else { Stdin::Null };
        let started = Group::spawn(&launch, &self.folder, &env, input).await;
        let mut group = started.map_err(|error| failed(error.message))?;
        let Pipes { stdin: pipe, mut output } = group.pipes();
        if let (Some(mut pipe), Some(bytes)) = (pipe, stdin) {
            tokio::spawn(async move {
                let _ = pipe.write_all(&bytes).await;
            });
        }
        let mut stderr = Vec::new();
        let ended = timeout(TIME, async {
            while output.is_open(Stream::Stdout) || output.is_open(Stream::Stderr) {
                let (stream, Some(bytes)) = output.next().await else { continue };
                if stream == Stream::Stderr && stderr.len() < MESSAGE {
                    stderr.extend_from_slice(bytes);
                }
                if stream == Stream::Stdout && !take(bytes) {
                    return None;
                }
            }
            Some(group.wait().await)
        })
        .await;
        group.kill(|_| {}).await;
        group.end_escaped().await;
        let stderr = String::from_utf8_lossy(&stderr).trim().to_owned();
        match ended {
            Err(_) => Err(failed(format!("it did not end within {} s", TIME.as_secs()))),
            Ok(None | Some(Exit { code: Some(0), .. })) => Ok(()),
            // A search that finds nothing exits with 1 and prints no message.
            Ok(Some(Exit { code: Some(1), .. })) if stderr.is_empty() => Err(RepositoryError::Nothing(words.join(" "))),
            Ok(Some(Exit { code: Some(code), .. })) if stderr.is_empty() => {
                Err(failed(format!("it exited with {code}")))
            }
            Ok(Some(Exit { signal: Some(signal), .. })) if stderr.is_empty() => {
                Err(failed(format!("it was ended by signal {signal}")))
            }
            Ok(Some(_)) => Err(failed(stderr)),
        }
    }
}

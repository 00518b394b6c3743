//! Workspaces that are checkouts of a repository at a revision, with the history up to it and no later commits.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::copy_folder;
use super::remove::remove;
use crate::own_environment;
use crate::secrets::Masker;
use crate::secrets::urls::UrlSecret;
use crate::shell::{Command, Shell};
use crate::text::{one_line, shell_word};
use crate::workspace::git_source::{GitRepository, GitSource};

/// The timeout of one git command.
const TIME: Duration = Duration::from_secs(600);
/// The number of hexadecimal digits of a SHA-256 hash.
const SHA256: usize = 64;

/// Makes a checkout of a repository in a folder that does not exist yet. The checkout holds the commits up to the
/// revision on a detached HEAD: no other refs, no objects that only other refs reach, no remote, no reflog. With a
/// `subdir`, only that folder is copied, without the repository's history.
///
/// The credentials of a URL are passed to git through its environment. They appear in no argument, file or message.
///
/// # Errors
/// Returns git's output, or an error if the revision or the folder is not in the repository.
pub async fn check_out(source: &GitSource, to: &Path, shell: &Shell) -> Result<(), String> {
    let beside = |name| to.with_file_name(name);
    // The workspace does not exist yet, so git runs beside it.
    let mut git = Git::beside(to, shell);
    let (clone, made) = (beside("clone"), beside("checkout"));
    let (from, shown) = git.obtain(source, &clone, &[]).await?;
    let commit = git.commit(&from, &shown, source.revision().unwrap_or("HEAD")).await?;
    if let Err(why) = git.history_up_to(&commit, &from, &made).await {
        return Err(if git.is_partial(&from).await { format!("{why}; {PARTIAL}") } else { why });
    }
    remove(&clone).map_err(|error| error.to_string())?;
    let Some(subdir) = &source.subdir else {
        return fs::rename(&made, to).map_err(|error| error.to_string());
    };
    let folder = made.join(subdir);
    if !folder.is_dir() {
        let rev = source.revision().unwrap_or("HEAD");
        return Err(format!("{shown} has no folder {} at {rev}", subdir.display()));
    }
    copy_folder(&folder, to, false).map_err(|error| error.to_string())?;
    remove(&made).map_err(|error| error.to_string())
}

/// Finds the commit that a revision names now. A remote repository is cloned without its files into a folder that does
/// not exist yet, and the folder is removed again.
///
/// # Errors
/// Returns git's output, or an error if the revision is not in the repository.
pub async fn resolve(source: &GitSource, clone: &Path, shell: &Shell) -> Result<String, String> {
    let mut git = Git::beside(clone, shell);
    let mut obtained = git.obtain(source, clone, &["--filter=tree:0"]).await;
    if obtained.is_err() {
        // Servers that do not support partial clones send the whole repository.
        remove(clone).map_err(|error| error.to_string())?;
        obtained = git.obtain(source, clone, &[]).await;
    }
    let found = match obtained {
        Ok((from, shown)) => git.commit(&from, &shown, source.rev.as_deref().unwrap_or("HEAD")).await,
        Err(why) => Err(why),
    };
    remove(clone).map_err(|error| error.to_string())?;
    found
}

/// A setting of a source that its repository does not fulfil.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lacking {
    /// The key of the setting in `workspace.git`.
    pub key: &'static str,
    /// A sentence about the part that is missing.
    pub what: String,
}

/// Returns what a repository on this machine lacks for a checkout, without a connection and without changing it. Remote
/// repositories are not looked at.
pub async fn lacking(source: &GitSource, shell: &Shell) -> Option<Lacking> {
    let GitRepository::Path(path) = &source.repository else { return None };
    let mut git = Git::within(&shell.folder, shell);
    git.read_trusted().await;
    git.fetch_nothing();
    let lacks = |key, what| Some(Lacking { key, what });
    let shown = crate::paths::shown(path).display().to_string();
    if let Err(why) = git.run(Some(path), &["rev-parse", "--git-dir"]).await {
        return match is_of_other_owner(&why) {
            true => lacks("path", format!("git does not read the repository `{shown}`: {}", one_line(&why))),
            false => lacks("path", format!("`{shown}` is not a git repository")),
        };
    }
    let rev = source.revision().unwrap_or("HEAD");
    let peeled = format!("{rev}^{{commit}}");
    let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &peeled];
    let Ok(commit) = git.run(Some(path), &words).await else {
        if source.rev.is_none() {
            return lacks("path", format!("the repository `{shown}` has no commit"));
        }
        let way_out = git.way_to_a_revision(path).await;
        return lacks("rev", format!("the repository `{shown}` has no revision `{rev}`{way_out}"));
    };
    let words = ["rev-list", "--objects", "--quiet", &commit];
    if git.is_partial(path).await && git.run(Some(path), &words).await.is_err() {
        return lacks("path", format!("the repository `{shown}` lacks objects of the commits up to {rev}; {PARTIAL}"));
    }
    let subdir = source.subdir.as_ref()?;
    let tree = format!("{commit}:{}", text(subdir));
    match git.run(Some(path), &["cat-file", "-t", &tree]).await {
        Ok(kind) if kind == "tree" => None,
        _ => lacks("subdir", format!("the repository `{shown}` has no folder `{}` at {rev}", subdir.display())),
    }
}

/// Applies a patch to the workspace that is the shell's folder, or takes it back: completely, or not at all.
///
/// # Errors
/// Returns git's output, for example if the patch does not fit the files.
pub async fn apply(patch: &Path, reverse: bool, shell: &Shell) -> Result<(), String> {
    let mut git = Git::within(&shell.folder, shell);
    // A repository around the workspace must not change what the paths of the patch are relative to.
    if let Some(above) = shell.folder.parent() {
        git.shell.env.insert("GIT_CEILING_DIRECTORIES".to_owned(), text(above));
    }
    let patch = text(patch);
    let mut words = vec!["apply", "--whitespace=nowarn"];
    words.extend(reverse.then_some("--reverse"));
    words.extend(["--", &patch]);
    git.run(None, &words).await.map(drop)
}

/// The way out for a repository without some of its objects.
const PARTIAL: &str = "it is a partial clone, and nothing is fetched into a repository that a case names by `path`: \
     complete it with `git fetch --refetch --no-filter`";
/// The way out for a repository without older commits.
const SHALLOW: &str = "it is a shallow clone: run `git fetch --unshallow` in it; in CI, clone the whole history, with \
     `fetch-depth: 0` of actions/checkout or `GIT_DEPTH: \"0\"` of GitLab";

/// Runs git for one checkout.
struct Git {
    shell: Shell,
    /// Masks the URL's credentials in git's output.
    masker: Masker,
    /// The folders of other users that the user's own settings of git trust.
    trusted: Vec<String>,
    /// True if commits may be fetched into the repository. Only into a clone: the user's own repositories are not written to.
    may_fetch: bool,
}

impl Git {
    /// Makes a `Git` that runs in the folder above a place.
    fn beside(place: &Path, shell: &Shell) -> Self {
        Self::within(place.parent().unwrap_or(place), shell)
    }

    /// Makes a `Git` that runs in a folder. Its messages are in English, because some of them are read.
    fn within(folder: &Path, shell: &Shell) -> Self {
        let mut env = shell.env.clone();
        env.insert("LC_ALL".to_owned(), "C".to_owned());
        let shell = Shell { folder: folder.to_owned(), env, ..Shell::default() };
        Self { shell, masker: Masker::default(), trusted: Vec::new(), may_fetch: true }
    }

    /// Keeps git from fetching into the repository. In a partial clone, git fetches by itself what it is asked to read.
    fn fetch_nothing(&mut self) {
        self.may_fetch = false;
        self.shell.env.insert("GIT_NO_LAZY_FETCH".to_owned(), "1".to_owned());
    }

    /// Reads which folders of other users the user's own settings of git trust (`safe.directory`). No other setting of the user
    /// counts in a trial.
    async fn read_trusted(&mut self) {
        let mut shell = self.shell.clone();
        for name in ["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"] {
            match own_environment::var(name).and_then(|value| value.into_string().ok()) {
                Some(value) => _ = shell.env.insert(name.to_owned(), value),
                None => _ = shell.env.remove(name),
            }
        }
        let words = ["git", "config", "--global", "--type=path", "--get-all", "safe.directory"].map(str::to_owned);
        let ran = shell.run(&Command::Program(words.into()), None, TIME).await;
        let Some(read) = ran.ok().filter(|ran| ran.exit.and_then(|exit| exit.code) == Some(0)) else { return };
        for folder in String::from_utf8_lossy(&read.stdout).lines() {
            self.trusted.push(folder.to_owned());
            // The git that sends the commits looks at the folder `.git`.
            if folder.starts_with('/') {
                self.trusted.push(format!("{folder}/.git"));
            }
        }
    }

    /// Returns the folder of the repository, cloned if the repository is remote, and its name for messages.
    async fn obtain(
        &mut self,
        source: &GitSource,
        clone: &Path,
        options: &[&str],
    ) -> Result<(PathBuf, String), String> {
        match &source.repository {
            GitRepository::Path(path) => {
                self.read_trusted().await;
                self.fetch_nothing();
                Ok((path.clone(), path.display().to_string()))
            }
            GitRepository::Url(url) => {
                let secret = UrlSecret::of(url);
                self.shell.env.extend(secret.git_environment());
                self.masker = secret.masker();
                let without = secret.url().to_owned();
                let place = text(clone);
                let words = [&["clone", "--quiet", "--bare"], options, &["--", &without, &place]].concat();
                self.run(None, &words).await?;
                Ok((clone.to_owned(), without))
            }
        }
    }

    /// Returns true if a repository is a partial clone: objects that its remote has may be missing.
    async fn is_partial(&self, repository: &Path) -> bool {
        let settings = r"^(remote\..*\.promisor|extensions\.partialclone)$";
        self.run(Some(repository), &["config", "--get-regexp", settings]).await.is_ok()
    }

    /// Returns the end of a message about a revision that a repository on this machine lacks: what the user can do.
    async fn way_to_a_revision(&self, repository: &Path) -> String {
        let is_shallow = self.run(Some(repository), &["rev-parse", "--is-shallow-repository"]).await;
        if is_shallow.is_ok_and(|word| word == "true") {
            format!("; {SHALLOW}")
        } else if self.run(Some(repository), &["remote", "get-url", "origin"]).await.is_ok() {
            "; if its remote has it, run `git fetch` in the repository".to_owned()
        } else {
            String::new()
        }
    }

    /// Returns the commit that a revision names. In a clone, a commit that no branch or tag of the server reaches is fetched
    /// by its name.
    async fn commit(&self, repository: &Path, shown: &str, rev: &str) -> Result<String, String> {
        let peeled = format!("{rev}^{{commit}}");
        let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &peeled];
        match self.run(Some(repository), &words).await {
            Ok(commit) => return Ok(commit),
            Err(why) if is_of_other_owner(&why) => return Err(one_line(&why)),
            Err(_) if !self.may_fetch => {
                let way_out = self.way_to_a_revision(repository).await;
                return Err(format!("{shown} has no revision `{rev}`{way_out}"));
            }
            Err(_) => {}
        }
        let fetched = self.run(Some(repository), &["fetch", "--quiet", "--no-tags", "--", "origin", rev]).await;
        match fetched {
            Ok(_) => self.run(Some(repository), &words).await,
            Err(why) => Err(why),
        }
        .map_err(|why| format!("{shown} has no revision `{rev}`, or it could not be fetched: {}", one_line(&why)))
    }

    /// Makes a repository that holds a commit and its ancestors, and checks the commit out. If the history of the source is
    /// shallow, this one ends at the same commits.
    async fn history_up_to(&self, commit: &str, from: &Path, to: &Path) -> Result<(), String> {
        // The length of a hash shows the object format. Versions of git without SHA-256 do not know the option.
        let format = (commit.len() == SHA256).then_some("--object-format=sha256");
        let place = text(to);
        let mut init = vec!["init", "--quiet", "--template="];
        init.extend(format);
        init.extend(["--", place.as_str()]);
        self.run(None, &init).await?;
        // A commit that is not the tip of a branch is fetched. Whether that is allowed is set by this side alone.
        let trusted =
            self.trusted.iter().map(|folder| format!(" -c {}", shell_word(&format!("safe.directory={folder}"))));
        let trusted: String = trusted.collect();
        let serve = format!("--upload-pack=git{trusted} -c uploadpack.allowAnySHA1InWant=true upload-pack");
        let options = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--update-shallow", &serve];
        self.run(Some(to), &[&options[..], &["--", &text(from), commit]].concat()).await?;
        let checkout = ["-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", commit];
        self.run(Some(to), &checkout).await?;
        let logs = to.join(".git/logs");
        if logs.exists() { remove(&logs).map_err(|error| error.to_string()) } else { Ok(()) }
    }

    /// Runs git to its end and returns its output.
    async fn run(&self, folder: Option<&Path>, words: &[&str]) -> Result<String, String> {
        // Hooks and filters of the repository are programs that the case does not name. A reflog would name later
        // commits.
        let mut command: Vec<String> =
            ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.logAllRefUpdates=false"].map(str::to_owned).into();
        command.extend(self.trusted.iter().flat_map(|folder| ["-c".to_owned(), format!("safe.directory={folder}")]));
        if let Some(folder) = folder {
            command.extend(["-C".to_owned(), text(folder)]);
        }
        command.extend(words.iter().map(|word| (*word).to_owned()));
        let ran = self.shell.run(&Command::Program(command), None, TIME).await.map_err(|error| error.to_string())?;
        let stderr = String::from_utf8_lossy(&ran.stderr);
        if ran.exit.is_none() {
            return Err(format!(
                "git {} took longer than {} and was ended",
                words.join(" "),
                crate::values::Time(TIME)
            ));
        }
        match ran.exit.and_then(|exit| exit.code) {
            Some(0) => Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned()),
            _ => Err(format!("git {} failed: {}", words.join(" "), self.masker.mask(stderr.trim()))),
        }
    }
}

/// Returns true if git refuses a repository because another user owns it. Git's message names the setting that helps.
fn is_of_other_owner(why: &str) -> bool {
    why.contains("dubious ownership")
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

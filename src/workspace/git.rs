//! Workspaces that are checkouts of a repository at a revision.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::copy_folder;
use super::remove::remove;
use crate::case::{GitRepository, GitSource};
use crate::shell::{Command, Shell};

/// How long one git command may take.
const TIME: Duration = Duration::from_secs(600);

/// Checks a repository out into a folder that is not there yet. With a `subdir` only that folder comes, without
/// the repository's history.
///
/// # Errors
/// What git said, or that the folder is not in the repository.
pub async fn check_out(source: &GitSource, to: &Path, shell: &Shell) -> Result<(), String> {
    let clone = to.with_file_name("clone");
    let from = match &source.repository {
        GitRepository::Path(path) => path.to_string_lossy().into_owned(),
        GitRepository::Url(url) => url.clone(),
    };
    // The workspace itself is not there yet, so git runs beside it.
    let shell = Shell { folder: to.parent().unwrap_or(to).to_owned(), env: shell.env.clone(), inside: None };
    let clone_text = clone.to_string_lossy().into_owned();
    git(&shell, &["clone", "--quiet", "--no-hardlinks", "--no-checkout", "--", &from, &clone_text]).await?;
    let rev = source.rev.as_deref().unwrap_or("HEAD");
    git(&shell, &["-C", &clone_text, "-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", rev])
        .await?;
    let Some(subdir) = &source.subdir else {
        return fs::rename(&clone, to).map_err(|error| error.to_string());
    };
    let folder = clone.join(subdir);
    if !folder.is_dir() {
        return Err(format!("{from} has no folder {} at {rev}", subdir.display()));
    }
    copy_folder(&folder, to, false).map_err(|error| error.to_string())?;
    remove(&clone).map_err(|error| error.to_string())
}

async fn git(shell: &Shell, words: &[&str]) -> Result<(), String> {
    // Hooks and filters of the repository are programs that nobody asked for.
    let mut command = vec!["git".to_owned(), "-c".to_owned(), "core.hooksPath=/dev/null".to_owned()];
    command.extend(words.iter().map(|word| (*word).to_owned()));
    let ran = shell.run(&Command::Program(command), None, TIME).await.map_err(|error| error.to_string())?;
    match ran.exit.and_then(|exit| exit.code) {
        Some(0) => Ok(()),
        _ => Err(format!("git {} failed: {}", words.join(" "), String::from_utf8_lossy(&ran.stderr).trim())),
    }
}

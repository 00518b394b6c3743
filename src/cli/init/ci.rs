//! The workflows of CI services: they run the cases in shards, merge them, and keep the report.

use std::path::{Path, PathBuf};

use super::NewFile;

/// A CI service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Service {
    /// GitHub Actions: .github/workflows/evals.yml
    Github,
    /// GitLab CI/CD: .gitlab/evals.yml, included by .gitlab-ci.yml
    Gitlab,
}

const GITHUB: &str = include_str!("ci/github.yml");
const GITLAB: &str = include_str!("ci/gitlab.yml");
const GITLAB_MAIN: &str = ".gitlab-ci.yml";
const INCLUDE: &str = "include:\n  - local: .gitlab/evals.yml\n";

/// Returns the files of a service's workflow, and the steps that the user has to take.
pub fn files(service: Service, shards: u32, install: Option<&str>, folder: &Path) -> (Vec<NewFile>, Vec<String>) {
    let version = env!("CARGO_PKG_VERSION");
    let default = format!("cargo install --locked evals-cli@{version}");
    let command = install.unwrap_or(&default);
    // Another command may install another program.
    let digest = blake3::hash(command.as_bytes()).to_hex();
    let key = format!("evals-{version}-{}", digest.get(..8).unwrap_or_default());
    let numbers: Vec<String> = (1..=shards).map(|number| number.to_string()).collect();
    let filled = |text: &str| {
        text.replace("@SHARDS@", &numbers.join(", "))
            .replace("@COUNT@", &shards.to_string())
            .replace("@KEY@", &key)
            .replace("@BRANCH@", &branch(folder))
            .replace("@INSTALL@", command)
    };
    let mut next = Vec::new();
    if install.is_none() {
        next.push(format!("It installs evals by:   {command} (--install names another command)"));
    }
    if let Some(root) = repository_above(folder) {
        next.push(format!(
            "The service reads its workflow only in the root of the repository, {}: move the file there, and let its \
             commands begin with `cd`.",
            root.display()
        ));
    }
    let files = match service {
        Service::Github => {
            next.push("Commit it:              git add .github cases && git commit && git push".to_owned());
            vec![(".github/workflows/evals.yml", filled(GITHUB))]
        }
        Service::Gitlab => {
            let mut files = vec![(".gitlab/evals.yml", filled(GITLAB))];
            if folder.join(GITLAB_MAIN).exists() {
                next.push(format!("Add this to {GITLAB_MAIN}, which needs the stage `test`:\n\n{INCLUDE}"));
            } else {
                files.push((GITLAB_MAIN, INCLUDE.to_owned()));
            }
            next.push(format!("Commit it:              git add .gitlab {GITLAB_MAIN} cases && git commit && git push"));
            files
        }
    };
    (files, next)
}

/// Returns the root of the repository that a folder lies in, if the folder is not the root.
fn repository_above(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    let root = folder.ancestors().find(|above| above.join(".git").exists())?;
    (root != folder).then(|| root.to_owned())
}

/// Returns the branch that is checked out, or `main`.
fn branch(folder: &Path) -> String {
    let head = std::fs::read_to_string(folder.join(".git/HEAD")).unwrap_or_default();
    let name = head.trim().strip_prefix("ref: refs/heads/").unwrap_or("main");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if name.is_empty() || name.starts_with('-') || !name.chars().all(is_plain) {
        "main".to_owned()
    } else {
        name.to_owned()
    }
}

//! The workflows of CI services: they run the cases in shards, merge them, and keep the report.

use std::path::Path;

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

/// Returns the files of a service's workflow, and what is left to the user.
pub fn files(service: Service, shards: u32, install: Option<&str>, folder: &Path) -> (Vec<NewFile>, Vec<String>) {
    let version = env!("CARGO_PKG_VERSION");
    let install = install.map_or_else(|| format!("cargo install --locked evals-cli@{version}"), str::to_owned);
    let numbers: Vec<String> = (1..=shards).map(|number| number.to_string()).collect();
    let filled = |text: &str| {
        text.replace("@SHARDS@", &numbers.join(", "))
            .replace("@COUNT@", &shards.to_string())
            .replace("@VERSION@", version)
            .replace("@INSTALL@", &install)
    };
    match service {
        Service::Github => {
            let next = "Commit it:             git add .github cases && git commit && git push".to_owned();
            (vec![(".github/workflows/evals.yml", filled(GITHUB))], vec![next])
        }
        Service::Gitlab => {
            let mut files = vec![(".gitlab/evals.yml", filled(GITLAB))];
            let mut next = Vec::new();
            if folder.join(GITLAB_MAIN).exists() {
                next.push(format!("Add this to {GITLAB_MAIN}:\n\n{INCLUDE}"));
            } else {
                files.push((GITLAB_MAIN, INCLUDE.to_owned()));
            }
            next.push(format!("Commit it:             git add .gitlab {GITLAB_MAIN} cases && git commit && git push"));
            (files, next)
        }
    }
}

//! Finds the commands of a session that set up the environment of its checks: they install packages, or start services. Pure.

use super::{Folders, Part, bare, name_of, parts, purpose_of, readings, relative};
use crate::text::shell_word;

/// Programs, and the words by which each of them installs packages or starts a service.
const INSTALLERS: [(&[&str], &[&str]); 15] = [
    (&["pip", "pipx", "conda", "mamba", "micromamba"], &["install", "create", "update", "upgrade"]),
    (
        &["uv", "poetry", "pdm", "rye", "hatch", "pipenv"],
        &["install", "sync", "add", "update", "upgrade", "venv", "create"],
    ),
    (
        &["npm", "pnpm", "yarn", "bun"],
        &["install", "i", "ci", "clean-install", "add", "update", "upgrade", "up", "link", "rebuild"],
    ),
    (&["cargo"], &["add", "install", "fetch", "update", "vendor"]),
    (&["go"], &["get", "install", "tidy", "download", "vendor"]),
    (&["bundle", "gem", "composer"], &["install", "add", "update", "require"]),
    (
        &["apt", "apt-get", "dnf", "yum", "apk", "zypper", "brew", "port", "nix-env"],
        &["install", "reinstall", "add", "upgrade"],
    ),
    (
        &["rustup", "nvm", "fnm", "volta", "asdf", "mise", "pyenv", "rbenv", "sdk", "corepack"],
        &["install", "add", "update", "use", "default", "local", "global", "enable", "prepare"],
    ),
    (&["mix"], &["deps.get", "deps.compile", "local.hex"]),
    (&["dotnet", "nuget", "swift"], &["restore", "add", "install", "resolve", "update"]),
    (&["dart", "flutter", "deno"], &["get", "add", "upgrade", "install", "cache"]),
    (&["cabal", "stack", "opam", "luarocks", "cpan"], &["install", "update", "setup"]),
    (&["playwright", "pre-commit"], &["install", "install-deps"]),
    (&["make", "just", "task", "rake"], &["install", "setup", "deps", "bootstrap"]),
    (&["docker", "docker-compose", "podman", "service", "systemctl"], &["up", "start", "restart"]),
];
/// Programs that do nothing else.
const ALWAYS: [&str; 6] = ["cpanm", "easy_install", "ensurepip", "pip-sync", "venv", "virtualenv"];
/// The names of scripts that set up a project.
const SCRIPTS: [&str; 3] = ["bootstrap", "install", "setup"];

/// Returns the commands of a line that install packages or start services, with paths relative to the workspace.
pub fn set_ups(line: &str, workspace: Option<&str>) -> Vec<String> {
    let workspace = workspace.map(|it| it.trim_end_matches('/')).filter(|it| !it.is_empty());
    let mut folders = Folders::default();
    let mut found = Vec::new();
    for part in parts(line) {
        folders.open(&part);
        if let [cd, target] = part.words.as_slice()
            && cd == "cd"
        {
            if folders.enter(target, workspace).is_err() {
                folders.here.clone_from(target);
            }
        } else if sets_up(&part) {
            let text = part.text.trim();
            let text = if part.is_compound { text.trim_matches(['(', ')', ' ']) } else { text };
            let text = workspace.map_or_else(|| text.to_owned(), |workspace| relative(text, workspace, "./"));
            found.push(match folders.here.as_str() {
                "" => text,
                folder => format!("cd {} && {text}", shell_word(folder)),
            });
        }
        folders.close(&part);
    }
    found
}

fn sets_up(part: &Part) -> bool {
    let words: Vec<&str> = part.words.iter().map(String::as_str).collect();
    let only_prints = words.iter().any(|word| matches!(*word, "--help" | "--version" | "--dry-run"));
    let is_one = |own: &[&str]| own.split_first().is_some_and(|(program, rest)| installs(program, rest));
    !only_prints && purpose_of(bare(&words)).is_none() && readings(&words).any(is_one)
}

fn installs(program: &str, rest: &[&str]) -> bool {
    // `python3.12`, `pip3`
    let name = name_of(program).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_script = |path: &str| SCRIPTS.contains(&name_of(path).split('.').next().unwrap_or_default());
    let first = rest.iter().copied().find(|word| !word.starts_with('-'));
    match name {
        "python" => match rest.iter().position(|word| *word == "-m") {
            Some(at) => rest.get(at + 1).is_some_and(|module| installs(module, &rest[at + 2..])),
            None => first == Some("setup.py") && rest.iter().any(|word| matches!(*word, "install" | "develop")),
        },
        // Without a command it installs.
        "yarn" if first.is_none() => true,
        "pacman" => rest.iter().any(|word| word.starts_with("-S") || word.starts_with("-U")),
        "sh" | "bash" | "zsh" => first.is_some_and(is_script),
        _ if ALWAYS.contains(&name) => true,
        _ if program.contains('/') && is_script(program) => true,
        _ => INSTALLERS
            .iter()
            .any(|(programs, verbs)| programs.contains(&name) && rest.iter().any(|word| verbs.contains(word))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_install_packages_or_start_services_are_found() {
        for (line, expected) in [
            ("pip install -e .", "pip install -e ."),
            ("python3.12 -m pip install -r /w/a.txt 2>&1 | tail -3", "python3.12 -m pip install -r ./a.txt 2>&1"),
            (".venv/bin/pip3 install pytest && .venv/bin/pytest -q", ".venv/bin/pip3 install pytest"),
            ("python -m venv .venv", "python -m venv .venv"),
            ("uv sync --all-extras", "uv sync --all-extras"),
            ("uv pip install x", "uv pip install x"),
            ("cd /w/web && npm ci --silent", "cd web && npm ci --silent"),
            ("npm --prefix web install", "npm --prefix web install"),
            ("yarn --frozen-lockfile", "yarn --frozen-lockfile"),
            ("bash -lc 'cargo add serde'", "cargo add serde"),
            ("bundle install", "bundle install"),
            ("go mod tidy", "go mod tidy"),
            ("go get example.org/x@latest", "go get example.org/x@latest"),
            ("sudo apt-get -y install libpq-dev", "sudo apt-get -y install libpq-dev"),
            ("(npm install)", "npm install"),
            ("npx playwright install --with-deps", "npx playwright install --with-deps"),
            ("make deps", "make deps"),
            ("./scripts/setup.sh", "./scripts/setup.sh"),
            ("docker compose up -d", "docker compose up -d"),
        ] {
            assert_eq!(set_ups(line, Some("/w/")), [expected], "{line}");
        }
        for line in [
            "git commit -am 'pip install'",
            "pytest -q",
            "npm test",
            "npm test -- install",
            "npm run build",
            "cargo build",
            "cargo test --test install",
            "go build ./...",
            "python3 manage.py check",
            "pip list",
            "pip --version install",
            "yarn test",
            "make test",
            "cat setup.py",
            "sh check.sh",
            "grep -r install .",
            "docker ps",
            "",
        ] {
            assert!(set_ups(line, Some("/w")).is_empty(), "{line}");
        }
    }
}

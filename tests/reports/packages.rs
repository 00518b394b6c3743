//! The packages of a release: made from this build, installed from a local folder, and started.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use regex::Regex;
use serde_json::Value;

use crate::project::{Project, not_run};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs a command, and fails with its output unless it succeeds.
#[track_caller]
fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&stdout).into_owned(), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{out}{err}");
    out
}

/// Returns true if the programs are there. In `.ci/run` they have to be.
fn has(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap();
        !found.status.success()
    });
    let Some(missing) = missing else { return true };
    not_run("EVALS_REQUIRE_PACKAGES", &format!("`{missing}` is not installed"));
    false
}

fn target() -> &'static str {
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" }
}

/// Returns a folder with the packages of this build. They are made once.
fn packages() -> &'static Path {
    static FOLDER: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("packages");
        let make = || Command::new(Path::new(ROOT).join("packaging/make"));
        let program = env!("CARGO_BIN_EXE_evals");
        run(make().args([program, "--target", target(), "--strip", "--quick", "--out"]).arg(&out));
        run(make().args(["--npm-main", "--out"]).arg(&out));
        run(make().arg("--sums").arg(&out));
        (folder, out)
    });
    path
}

fn file(begin: &str, end: &str) -> PathBuf {
    let names = fs::read_dir(packages()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let found: Vec<String> = names.filter(|name| name.starts_with(begin) && name.ends_with(end)).collect();
    assert_eq!(found.len(), 1, "{begin}*{end}: {found:?}");
    packages().join(&found[0])
}

/// Runs the first case of a new suite with an installed program.
fn works(program: &Path, project: &Project) {
    let evals = |command: &str| run(Command::new(program).arg(command).current_dir(project.path("")));
    assert_eq!(evals("--version").trim(), format!("evals {VERSION}"));
    evals("init");
    assert!(evals("run").contains("1 passed"));
}

#[test]
#[ignore = "slow: installs packages"]
fn the_wheel_is_installed_and_works() {
    if !has(&["python3", "strip"]) {
        return;
    }
    let project = Project::new();
    let venv = project.path("venv");
    run(Command::new("python3").args(["-m", "venv"]).arg(&venv));
    let wheel = file("evals_cli-", ".whl");
    run(Command::new(venv.join("bin/pip")).args(["install", "--no-index", "--quiet"]).arg(&wheel));
    let shown = run(Command::new(venv.join("bin/pip")).args(["show", "--files", "evals-cli"]));
    assert!(shown.contains(&format!("Version: {VERSION}")) && shown.contains("bin/evals"), "{shown}");
    works(&venv.join("bin/evals"), &project);
    for shared in [
        "man/man1/evals-run.1",
        "bash-completion/completions/evals",
        "zsh/site-functions/_evals",
        "fish/vendor_completions.d/evals.fish",
    ] {
        assert!(venv.join("share").join(shared).is_file(), "{shared}: {shown}");
    }
    run(Command::new(venv.join("bin/pip")).args(["uninstall", "--yes", "--quiet", "evals-cli"]));
    assert!(!venv.join("bin/evals").exists(), "it is removed with its package");
}

#[test]
#[ignore = "slow: installs packages"]
fn the_npm_packages_are_installed_and_work() {
    if !has(&["npm", "node", "strip", "python3"]) {
        return;
    }
    let project = Project::new();
    let platform = file("evals-cli-linux-", ".tgz");
    let main = file(&format!("evals-cli-{VERSION}"), ".tgz");
    project.write("package.json", "{\"private\": true}");
    let npm = |args: &[&str]| {
        let mut command = Command::new("npm");
        command.args(args).current_dir(project.path("")).env("HOME", project.home());
        command
    };
    // Only the platform's own package is at hand; npm leaves the others out, as they are optional.
    let install = ["install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts"];
    run(npm(&install).arg(&platform).arg(&main));
    let program = project.path("node_modules/.bin/evals");
    works(&program, &project);
    // The exit code is that of the program.
    let refused = Command::new(&program).args(["run", "nowhere"]).current_dir(project.path("")).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    fs::remove_dir_all(project.path("node_modules").join(platform_package())).unwrap();
    let without = Command::new(&program).arg("--version").current_dir(project.path("")).output().unwrap();
    assert_eq!(without.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&without.stderr).contains("is not installed"));
}

fn platform_package() -> String {
    let cpu = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    format!("evals-cli-linux-{cpu}")
}

#[test]
#[ignore = "slow: makes packages"]
fn the_installer_installs_what_has_the_checksum_and_nothing_else() {
    if !has(&["strip", "tar", "sha256sum", "python3"]) {
        return;
    }
    let project = Project::new();
    let install = |from: &Path| {
        let mut command = Command::new("sh");
        command.arg(Path::new(ROOT).join("packaging/install.sh")).arg(VERSION);
        command.env("EVALS_RELEASES", from).env("EVALS_INSTALL_DIR", project.path("bin"));
        command
    };
    let said = run(&mut install(packages()));
    assert!(said.contains(&format!("evals {VERSION}")), "{said}");
    let program = project.path("bin/evals");
    works(&program, &project);
    fs::remove_file(&program).unwrap();
    let archive = file(&format!("evals-{VERSION}-"), ".tar.gz");
    let damaged = project.path("damaged");
    fs::create_dir(&damaged).unwrap();
    fs::copy(packages().join("SHA256SUMS"), damaged.join("SHA256SUMS")).unwrap();
    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(damaged.join(archive.file_name().unwrap()), bytes).unwrap();
    let refused = install(&damaged).output().unwrap();
    assert!(!refused.status.success() && !program.exists());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("nothing was installed"));
}

#[test]
#[ignore = "slow: makes packages"]
fn the_installer_of_a_release_takes_its_own_version_from_an_address() {
    if !has(&["strip", "tar", "sha256sum", "python3", "curl"]) {
        return;
    }
    let project = Project::new();
    // The server of the release: files of a folder, at the address that the release will have.
    let files = project.path("files");
    let folder = files.join("owner/name/releases/download").join(format!("v{VERSION}"));
    fs::create_dir_all(&folder).unwrap();
    let archive = file(&format!("evals-{VERSION}-"), ".tar.gz");
    for copied in [archive, packages().join("SHA256SUMS")] {
        fs::copy(&copied, folder.join(copied.file_name().unwrap())).unwrap();
    }
    let script = "import functools, http.server as h; \
        server = h.HTTPServer(('127.0.0.1', 0), functools.partial(h.SimpleHTTPRequestHandler, directory='files')); \
        print(server.server_port, flush=True); server.serve_forever()";
    let mut server = Command::new("python3");
    server.args(["-c", script]).current_dir(project.path("")).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = server.spawn().unwrap();
    let mut port = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let repository = format!("http://127.0.0.1:{}/owner/name", port.trim());
    let make = |args: &[&str]| {
        run(Command::new(Path::new(ROOT).join("packaging/make")).args(args).arg("--out").arg(project.path("")))
    };
    make(&["--installer", "--repository", &repository]);
    let install = |version: &[&str]| {
        let mut command = Command::new("sh");
        command.arg(project.path("install.sh")).args(version).env("EVALS_INSTALL_DIR", project.path("bin"));
        command.env_remove("EVALS_RELEASES").env_remove("EVALS_VERSION").output().unwrap()
    };
    let installed = install(&[]);
    let missing = install(&["99.0.0"]);
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    works(&project.path("bin/evals"), &project);
    let said = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(!missing.status.success() && said.contains("/download/v99.0.0/evals-99.0.0-"), "{said}");
}

#[test]
#[ignore = "slow: makes packages"]
fn cargo_binstall_finds_the_archive_of_a_release() {
    if !has(&["strip", "tar", "python3"]) {
        return;
    }
    let text = fs::read_to_string(Path::new(ROOT).join("Cargo.toml")).unwrap();
    let of = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{key} = \""))).unwrap();
        let line = line.trim_end_matches('"').replace("{ version }", VERSION).replace("{ target }", target());
        line.replace("{ archive-suffix }", ".tar.gz").replace("{ bin }", "evals").replace("{ binary-ext }", "")
    };
    let (address, program) = (of("pkg-url"), of("bin-dir"));
    let archive = file(&format!("evals-{VERSION}-"), ".tar.gz");
    let name = archive.file_name().unwrap().to_str().unwrap();
    assert_eq!(address, format!("{{ repo }}/releases/download/v{VERSION}/{name}"));
    let listed = run(Command::new("tar").arg("-tzf").arg(&archive));
    assert!(listed.lines().any(|line| line == program), "{program}: {listed}");
    // The repository is written into the manifest by the release, because a binstall address begins with it.
    let workflow = fs::read_to_string(Path::new(ROOT).join(".github/workflows/release.yml")).unwrap();
    let edit = workflow.lines().map(str::trim).find(|line| line.starts_with("sed -i ")).unwrap();
    let project = Project::new();
    project.write("Cargo.toml", &text);
    run(Command::new("sh")
        .arg("-c")
        .arg(edit)
        .env("REPOSITORY", "https://example.org/a/b")
        .current_dir(project.path("")));
    assert!(project.read("Cargo.toml").contains("\nrepository = \"https://example.org/a/b\"\n"));
}

#[test]
fn packages_name_the_source_that_their_release_was_built_from() {
    if !has(&["python3", "tar"]) {
        return;
    }
    let project = Project::new();
    let make = Path::new(ROOT).join("packaging/make");
    let main = ["--npm-main", "--repository", "https://example.org/a/b", "--out"];
    run(Command::new(make).args(main).arg(project.path("")));
    let package = project.path(&format!("evals-cli-{VERSION}.tgz"));
    let json = run(Command::new("tar").args(["-xzOf"]).arg(package).arg("package/package.json"));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["repository"]["url"], "git+https://example.org/a/b.git");
}

#[test]
fn a_release_is_refused_that_needs_a_newer_c_library() {
    if !has(&["python3"]) {
        return;
    }
    let project = Project::new();
    project.write("evals", "#!/bin/sh\n# GLIBC_2.99\n");
    let mut make = Command::new(Path::new(ROOT).join("packaging/make"));
    make.arg(project.path("evals")).args(["--target", "x86_64-unknown-linux-gnu", "--release", "--quick", "--out"]);
    let ran = make.arg(project.path("out")).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.code() == Some(1) && said.contains("error: this program needs glibc 2.99"), "{said}");
    let workflow = fs::read_to_string(Path::new(ROOT).join(".github/workflows/release.yml")).unwrap();
    assert!(workflow.lines().any(|line| line.contains("packaging/make") && line.contains(" --release ")));
    // Each program that the workflow installs has a version.
    for line in workflow.lines().filter(|line| line.contains("cargo install") || line.contains("pipx install")) {
        assert!(line.contains('@') || line.contains("=="), "{line}");
    }
}

/// A registry shows the README without the files beside it.
#[test]
#[ignore = "slow: makes packages"]
fn the_readme_of_a_package_links_to_the_repository() {
    if !has(&["python3", "tar", "strip"]) {
        return;
    }
    let project = Project::new();
    let make = |args: &[&str]| {
        let mut make = Command::new(Path::new(ROOT).join("packaging/make"));
        make.args(args).args(["--repository", "https://example.org/a/b", "--out"]).arg(project.path("out"));
        run(&mut make);
    };
    make(&["--npm-main"]);
    make(&[env!("CARGO_BIN_EXE_evals"), "--target", target(), "--strip", "--quick"]);
    let unpack =
        |name: String, file: &str| run(Command::new("tar").arg("-xzOf").arg(project.path("out").join(name)).arg(file));
    let archive = format!("evals-{VERSION}-{}", target());
    let npm = unpack(format!("evals-cli-{VERSION}.tgz"), "package/README.md");
    let archive = unpack(format!("{archive}.tar.gz"), &format!("{archive}/README.md"));
    let read = "import sys, zipfile, glob; wheel = zipfile.ZipFile(glob.glob('out/*.whl')[0]); \
        name = next(name for name in wheel.namelist() if name.endswith('/METADATA')); \
        sys.stdout.write(wheel.read(name).decode().split('\\n\\n', 1)[1])";
    let wheel = run(Command::new("python3").args(["-c", read]).current_dir(project.path("")));
    let link = Regex::new(r#"\]\(([^)]+)\)|(?:src|href)="([^"]+)""#).unwrap();
    for (package, text) in [("npm", npm), ("archive", archive), ("wheel", wheel)] {
        let links = link.captures_iter(&text).map(|found| found.get(1).or(found.get(2)).unwrap().as_str());
        let (absolute, relative): (Vec<&str>, Vec<&str>) = links.partition(|link| link.starts_with("https://"));
        assert!(relative.is_empty(), "{package}: {relative:?}");
        for expected in ["blob", "raw", "tree"] {
            let begin = format!("https://example.org/a/b/{expected}/v{VERSION}/");
            assert!(absolute.iter().any(|link| link.starts_with(&begin)), "{package}: {begin}: {absolute:?}");
        }
    }
}

#[test]
#[ignore = "slow: makes packages"]
fn the_archive_has_manual_pages_and_completions() {
    if !has(&["strip", "tar", "bash", "python3"]) {
        return;
    }
    let project = Project::new();
    run(Command::new("tar")
        .args(["--strip-components=1", "-xzf"])
        .arg(file("evals-", ".tar.gz"))
        .current_dir(project.path("")));
    let page = project.read("man/man1/evals-run.1");
    assert!(page.contains(".TH evals-run 1") && page.contains("keep\\-workspace"), "{page}");
    assert!(project.path("man/man1/evals-snapshot-check.1").is_file());
    run(Command::new("bash").arg("-n").arg(project.path("completions/evals.bash")));
    assert!(project.read("completions/_evals").starts_with("#compdef evals"));
    assert!(project.read("completions/evals.fish").contains("complete -c evals"));
}

#[test]
fn a_shell_completes_the_names_of_harnesses_runs_cases_and_tags() {
    let project = Project::new();
    project.case("tidy-up", "tags: [quick]", "steps: [{say: done}]");
    project.evals(&["run", "--label", "before", "--model", "a-model"]).exits(0);
    let complete = |words: &[&str]| {
        let mut command = project.command(&["--", "evals"]);
        command.args(words).env("EVALS_COMPLETE", "bash").env("_CLAP_IFS", "\n");
        command.env("_CLAP_COMPLETE_INDEX", words.len().to_string()).env("_CLAP_COMPLETE_COMP_TYPE", "9");
        command.env("_CLAP_COMPLETE_SPACE", "false");
        run(&mut command)
    };
    assert!(complete(&["run", "--harness", "claude-c"]).contains("claude-code-stream"));
    assert!(complete(&["run", "--case", "t"]).contains("tidy-up"));
    assert!(complete(&["run", "--tag", "q"]).contains("quick"));
    assert!(complete(&["run", "--model", "a"]).contains("a-model"));
    assert!(complete(&["show", "b"]).contains("before"));
    assert!(complete(&["compare", "before", "l"]).contains("latest"));
    for shell in ["bash", "zsh", "fish"] {
        let script = project.evals(&["completions", shell, "--names"]).exits(0).out;
        assert!(script.contains("EVALS_COMPLETE") && script.contains(shell), "{script}");
        let words = ["--", "evals", "run", "--harness", "claude-c"];
        let mut command = project.command(&words);
        command.env("EVALS_COMPLETE", shell).env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_INDEX", "3");
        command.env("_CLAP_COMPLETE_COMP_TYPE", "9").env("_CLAP_COMPLETE_SPACE", "false");
        assert!(run(&mut command).contains("claude-code-stream"), "{shell}");
    }
    // Files that cannot be read give no names, and no message.
    project.write("cases/tidy-up.yaml", "][");
    assert_eq!(complete(&["run", "--case", "t"]).trim(), "");
}

/// An action of a third party is pinned by its commit, since a tag can be moved. Each has one version everywhere.
#[test]
fn the_workflows_pin_actions() {
    let uses = Regex::new(r"uses: ([\w-]+)/([\w/-]+)@(\S+)").unwrap();
    let commit = Regex::new("^[0-9a-f]{40}$").unwrap();
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let own = [".github/workflows/ci.yml", ".github/workflows/release.yml", "action.yml"];
    for file in own.into_iter().chain(["src/cli/init/ci/github.yml"]) {
        for found in uses.captures_iter(&fs::read_to_string(Path::new(ROOT).join(file)).unwrap()) {
            assert!(&found[1] == "actions" || commit.is_match(&found[3]), "{file}: {}", &found[0]);
            versions.entry(format!("{}/{}", &found[1], &found[2])).or_default().insert(found[3].to_owned());
        }
    }
    assert!(versions.len() >= 8 && versions.values().all(|versions| versions.len() == 1), "{versions:?}");
}

/// The container file was built by hand; what it names has to stay in the repository.
#[test]
fn the_container_file_names_a_toolchain_that_builds_the_program_and_copies_what_it_needs() {
    let read = |path: &str| fs::read_to_string(Path::new(ROOT).join(path)).unwrap();
    let file = read("packaging/Containerfile");
    let minor = |text: &str| text.split('.').nth(1).unwrap().parse::<u32>().unwrap();
    let image = Regex::new(r"(?m)^FROM rust:(1\.\d+)-slim-bookworm AS build$").unwrap();
    let wanted = Regex::new(r#"(?m)^rust-version = "(1\.\d+)""#).unwrap();
    let (manifest, file_of) = (read("Cargo.toml"), |text: &str| image.captures(text).unwrap()[1].to_owned());
    assert!(minor(&file_of(&file)) >= minor(&wanted.captures(&manifest).unwrap()[1]), "{file}");
    assert!(file.contains("cargo build --release --locked --bin evals"), "{file}");
    // The build reads these, so they must not be kept out of the image.
    let ignored = read(".dockerignore");
    let ignored: Vec<&str> = ignored.lines().collect();
    for needed in ["Cargo.toml", "Cargo.lock", "build.rs", "src", "cases", "harnesses", "graders", "tests", ".cargo"] {
        assert!(Path::new(ROOT).join(needed).exists(), "{needed}");
        assert!(!ignored.contains(&needed), "{needed}");
    }
    assert_eq!(ignored, ["target", ".git"]);
}

#[test]
fn the_release_builds_each_target_that_packages_are_made_of() {
    let make = fs::read_to_string(Path::new(ROOT).join("packaging/make")).unwrap();
    let table = make.split("TARGETS = {").nth(1).unwrap().split("\n}").next().unwrap();
    let targets: Vec<&str> =
        table.lines().filter_map(|line| line.trim().strip_prefix('"')?.split('"').next()).collect();
    assert!(targets.len() >= 6, "{targets:?}");
    let text = fs::read_to_string(Path::new(ROOT).join(".github/workflows/release.yml")).unwrap();
    let workflow: Value = serde_yaml::from_str(&text).unwrap();
    let built = workflow["jobs"]["build"]["strategy"]["matrix"]["include"].as_array().unwrap();
    let built: Vec<&str> = built.iter().map(|row| row["target"].as_str().unwrap()).collect();
    assert_eq!(built, targets);
}

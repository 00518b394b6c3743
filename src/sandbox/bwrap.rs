//! `bwrap`: runs a command in bubblewrap. Files that are not mounted do not exist in it.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::packages::{self, ProgramFiles};
use super::{Mount, Network, Places, SandboxError};
use crate::own_environment;
use crate::process::{self, Launch, descriptors};
use crate::sandbox::TEMPORARY;

const PROGRAM: &str = "bwrap";

/// Folders of the system that can be read in every sandbox. Homes, `/var`, `/srv`, `/mnt` and others do not exist in
/// it.
const SYSTEM: [&str; 11] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/snap"];

/// The options of every sandbox: new namespaces, no privileges, and an end with the engine.
const ALWAYS: [&str; 9] = [
    "--die-with-parent",
    // The agent must not have the user's terminal: it could type into it.
    "--new-session",
    "--unshare-user-try",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--cap-drop",
    "ALL",
];

/// Checks that bubblewrap is installed and that the system permits it.
///
/// # Errors
/// Returns the reason why bubblewrap does not work, and how to fix it.
pub fn works() -> Result<(), SandboxError> {
    let mut command = Command::new(PROGRAM);
    command.args(ALWAYS).args(["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]);
    command.env_clear().envs(own_environment::var("PATH").map(|path| ("PATH", path)));
    let ran = command.stdin(Stdio::null()).output();
    let why = match ran {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            format!("{said}; in a container, user namespaces may have to be allowed")
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            "the program `bwrap` is not on PATH; Debian and Ubuntu have it as the package `bubblewrap`".to_owned()
        }
        Err(error) => error.to_string(),
    };
    Err(SandboxError::NoBwrap(why))
}

/// Returns the command line that runs `command` in bubblewrap.
pub(super) fn around(
    network: Network,
    mounts: &[Mount],
    places: &Places,
    command: Vec<String>,
    env: &BTreeMap<String, String>,
) -> Launch {
    let seen = |path: &Path| mounts.iter().any(|mount| path.starts_with(&mount.path)) || is_of_the_system(path);
    let (program, mut reads) = program(&command, &seen, places, env);
    let ProgramFiles { mounts: packages, links } = packages_of(Path::new(&program), &seen, places, env);
    let mut mounts = mounts.to_vec();
    mounts.extend(packages.iter().map(|path| Mount { path: path.clone(), write: false }));
    let mounts = &mounts[..];
    let seen = |path: &Path| mounts.iter().any(|mount| path.starts_with(&mount.path)) || is_of_the_system(path);
    reads.extend(places.through.first().map(PathBuf::from));
    reads.extend(process::supervisor().map(Path::to_owned));
    reads.extend(places.reads.iter().cloned());
    let hides = in_sight(mounts, places);
    let hidden = |path: &Path| hides.iter().any(|hidden| path.starts_with(hidden));
    let own = |path: &Path| path.starts_with(&places.workspace) || path.starts_with(&places.home);
    let links: Vec<(PathBuf, PathBuf)> = links.into_iter().filter(|(link, _)| !hidden(link)).collect();
    let is_link = |path: &PathBuf| links.iter().any(|(link, _)| link == path);
    reads.retain(|path| !own(path) && !is_link(path) && (!seen(path) || hidden(path)));

    let mut words: Vec<String> = std::iter::once(PROGRAM).chain(ALWAYS).map(str::to_owned).collect();
    let mut add = |parts: &[&str]| words.extend(parts.iter().map(|part| (*part).to_owned()));
    if network != Network::All {
        add(&["--unshare-net"]);
    }
    for folder in SYSTEM {
        add(&["--ro-bind-try", folder, folder]);
    }
    add(&["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/run"]);
    for path in kernel_interfaces(Path::new("/proc")) {
        let path = path.to_string_lossy();
        add(&["--ro-bind", &path, &path]);
    }
    // The trial's own scratch folder, on the disk: a folder in memory would take the machine's memory.
    let scratch = places.scratch.to_string_lossy();
    add(&["--bind", &scratch, "/tmp", "--symlink", "/tmp", "/var/tmp"]);
    if network == Network::All {
        // `/etc/resolv.conf` may be a link to this folder.
        add(&["--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve"]);
    }
    for mount in mounts {
        let path = mount.path.to_string_lossy();
        add(&[if mount.write { "--bind" } else { "--ro-bind" }, &path, &path]);
    }
    for (link, target) in &links {
        add(&["--symlink", &target.to_string_lossy(), &link.to_string_lossy()]);
    }
    // A home of the user is mounted like any folder, and hidden folders are mounted over it.
    let private = places.hides.iter().any(|hidden| places.home.starts_with(hidden));
    let home = places.home.to_string_lossy();
    if !private {
        add(&["--bind", &home, &home]);
    }
    for hidden in &hides {
        let path = hidden.to_string_lossy();
        if hidden.is_file() {
            add(&["--ro-bind", "/dev/null", &path]);
        } else {
            add(&["--tmpfs", &path]);
        }
    }
    if let Some(around) = &places.around {
        let path = around.to_string_lossy();
        add(&["--bind", &path, &path]);
        for hidden in &places.hides_around {
            let path = hidden.to_string_lossy();
            add(&["--tmpfs", &path, "--remount-ro", &path]);
        }
        // A mount cannot be replaced by a link, which would lead out of the sandbox of the next command.
        for own in [&places.home, &places.scratch].into_iter().filter(|own| own.starts_with(around)) {
            let path = own.to_string_lossy();
            add(&["--bind", &path, &path]);
        }
    }
    for path in &reads {
        let path = path.to_string_lossy();
        add(&["--ro-bind", &path, &path]);
    }
    if private {
        add(&["--bind", &home, &home]);
    }
    let workspace = places.workspace.to_string_lossy();
    add(&["--bind", &workspace, &workspace, "--chdir", &workspace]);
    // A link in the place of such a folder would lead out of the sandbox.
    let is_linked =
        |folder: &Path| folder.ancestors().take_while(|above| *above != places.workspace).any(Path::is_symlink);
    for folder in places.fixed.iter().filter(|folder| !is_linked(folder)) {
        let folder = folder.to_string_lossy();
        add(&["--bind-try", &folder, &folder]);
    }
    for name in TEMPORARY {
        // The trial's scratch folder has a different path inside the sandbox. A case may name another folder.
        match env.get(name) {
            Some(folder) if Path::new(folder) == places.scratch => add(&["--setenv", name, "/tmp"]),
            Some(_) | None => {}
        }
    }
    add(&["--"]);
    let through = places.through.iter().cloned();
    let command = through.chain([program]).chain(command.into_iter().skip(1)).collect();
    let mut seen = packages;
    seen.extend(reads);
    seen.extend(links.into_iter().map(|(link, _)| link));
    Launch { around: words, command, seen }
}

/// Returns true if a path is in a folder of the system, which every sandbox has.
pub(super) fn is_of_the_system(path: &Path) -> bool {
    SYSTEM.iter().any(|folder| path.starts_with(folder))
}

/// Returns the packages of the program and of the files that its command line names.
fn packages_of(
    program: &Path,
    seen: &impl Fn(&Path) -> bool,
    places: &Places,
    env: &BTreeMap<String, String>,
) -> ProgramFiles {
    let own = |path: &Path| path.starts_with(&places.workspace) || path.starts_with(&places.home);
    let known = |path: &Path| seen(path) || own(path);
    let home = own_environment::var("HOME").map(PathBuf::from);
    let path = env.get("PATH").map(String::as_str);
    let mut parts = packages::of_program(program, path, home.as_deref(), &known);
    parts.mounts.extend(places.reads.iter().flat_map(|file| packages::of_file(file, home.as_deref(), &known)));
    parts.mounts.sort();
    parts.mounts.dedup();
    parts
}

/// Returns the folders and writable files in `/proc` that do not belong to processes: settings of the machine. As root,
/// bubblewrap would leave them writable, since root owns them on either side.
fn kernel_interfaces(proc: &Path) -> Vec<PathBuf> {
    let Ok(entries) = descriptors::with_reserve(|| std::fs::read_dir(proc)?.collect::<std::io::Result<Vec<_>>>())
    else {
        // If the folder cannot be listed, the kernel's known names are used, because every sandbox must hide them.
        let known = ["acpi", "bus", "fs", "irq", "scsi", "sys", "sysrq-trigger"];
        return known.iter().map(|name| proc.join(name)).filter(|path| path.exists()).collect();
    };
    let mut found: Vec<PathBuf> = entries
        .into_iter()
        .filter(|entry| {
            let of_a_process = entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit());
            // What is unknown is hidden as well, unless it has vanished.
            let is_setting = entry.metadata().map_or_else(
                |error| error.kind() != std::io::ErrorKind::NotFound,
                |meta| meta.is_dir() || (meta.is_file() && meta.mode() & 0o222 != 0),
            );
            !of_a_process && is_setting
        })
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// Returns the visible paths that must be hidden, by each of their names in the sandbox: a mount may be a link.
fn in_sight(mounts: &[Mount], places: &Places) -> Vec<PathBuf> {
    let system = SYSTEM.iter().map(PathBuf::from);
    let home = std::iter::once(places.home.clone());
    let roots: Vec<PathBuf> = system.chain(mounts.iter().map(|mount| mount.path.clone())).chain(home).collect();
    let mut hides: Vec<PathBuf> = Vec::new();
    for hidden in &places.hides {
        let real = hidden.canonicalize().unwrap_or_else(|_| hidden.clone());
        for root in &roots {
            let real_root = root.canonicalize().unwrap_or_else(|_| root.clone());
            let below = hidden.strip_prefix(root).or_else(|_| real.strip_prefix(&real_root));
            let path = below.map(|below| if below.as_os_str().is_empty() { root.clone() } else { root.join(below) });
            hides.extend(path.ok().filter(|path| !hides.contains(path)));
        }
    }
    // Everything in a hidden folder is hidden with it.
    let all = hides.clone();
    hides.retain(|path| !all.iter().any(|other| other != path && path.starts_with(other)));
    hides
}

/// Returns the program in the form in which it can be started inside the sandbox, with the files that it needs. A
/// program of the system is preferred to another program of the same name, which may be a shim that needs files missing
/// in the sandbox.
fn program(
    command: &[String],
    seen: &impl Fn(&Path) -> bool,
    places: &Places,
    env: &BTreeMap<String, String>,
) -> (String, Vec<PathBuf>) {
    let Some(name) = command.first() else { return (String::new(), Vec::new()) };
    if name.contains('/') {
        return (name.clone(), vec![places.workspace.join(name)]);
    }
    let path = env.get("PATH").map(String::as_str);
    let folders: Vec<PathBuf> = std::env::split_paths(path.unwrap_or("/usr/local/bin:/usr/bin:/bin")).collect();
    let inside =
        folders.iter().filter(|folder| seen(folder)).map(|folder| folder.join(name)).find(|file| file.is_file());
    match inside {
        Some(file) => (file.to_string_lossy().into_owned(), Vec::new()),
        None => match crate::process::find(name, &places.workspace, path) {
            Some(file) => (file.to_string_lossy().into_owned(), vec![file]),
            None => (name.clone(), Vec::new()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places {
            workspace: "/tmp/run/trial/workspace".into(),
            home: "/tmp/run/trial/home".into(),
            scratch: "/tmp/run/trial/tmp".into(),
            reads: vec!["/project/cases/a.demo.yaml".into()],
            hides: vec!["/usr/share".into(), "/tmp/run".into(), "/project/cases".into()],
            through: Vec::new(),
            fixed: vec!["/tmp/run/trial/workspace/check".into()],
            around: Some("/tmp/run/trial".into()),
            hides_around: vec!["/tmp/run/trial/agents-home".into()],
        }
    }

    fn line(network: Network, mounts: &[Mount], places: &Places) -> String {
        let launch = around(network, mounts, places, vec!["/project/agent".into(), "acp".into()], &BTreeMap::new());
        [launch.around, launch.command].concat().join(" ")
    }

    #[test]
    fn the_workspace_and_the_home_are_all_that_can_be_written() {
        let line = line(Network::None, &[], &Places { around: None, ..places() });
        let writable: Vec<&str> = line.split(" --bind ").skip(1).map(|rest| rest.split(' ').next().unwrap()).collect();
        assert_eq!(writable, ["/tmp/run/trial/tmp", "/tmp/run/trial/home", "/tmp/run/trial/workspace"]);
        assert!(line.contains("--unshare-net"));
        assert!(line.contains("--ro-bind /project/agent /project/agent"));
        assert!(line.contains("--ro-bind /project/cases/a.demo.yaml /project/cases/a.demo.yaml"));
        assert!(line.ends_with("-- /project/agent acp"), "{line}");
        assert!(
            !super::super::TrialSandbox { sandbox: super::super::Sandbox::None, places: places() }
                .around(vec!["agent".into()], &BTreeMap::new())
                .command
                .contains(&"bwrap".to_owned())
        );
    }

    #[test]
    fn what_is_hidden_lies_over_what_is_mounted_and_the_trial_s_own_over_that() {
        let mounts = [Mount { path: "/project".into(), write: false }, Mount { path: "/tmp/run".into(), write: true }];
        let line = line(Network::All, &mounts, &places());
        let at = |text: &str| line.find(text).unwrap_or_else(|| panic!("no {text} in {line}"));
        assert!(at("--ro-bind /project /project") < at("--tmpfs /usr/share"));
        assert!(at("--bind /tmp/run /tmp/run") < at("--tmpfs /tmp/run"));
        assert!(at("--tmpfs /tmp/run") < at("--bind /tmp/run/trial/home"));
        let around = at("--bind /tmp/run/trial /tmp/run/trial");
        assert!(at("--tmpfs /tmp/run") < around && around < at("--tmpfs /tmp/run/trial/agents-home --remount-ro"));
        assert!(around < at("--bind /tmp/run/trial/tmp /tmp/run/trial/tmp"));
        assert!(around < at("--bind /tmp/run/trial/home /tmp/run/trial/home"));
        assert!(at("--bind /tmp/run/trial/workspace") < at("--bind-try /tmp/run/trial/workspace/check"));
        assert!(!line.contains("--unshare-net"));
    }

    #[test]
    fn a_user_s_own_home_is_mounted_and_the_cases_in_it_are_not_seen() {
        let mut places = places();
        places.home = "/".into();
        places.hides = vec!["/usr/share".into(), "/var".into()];
        let line = line(Network::All, &[], &places);
        let at = |text: &str| line.find(text).unwrap();
        assert!(at("--bind / / ") < at("--tmpfs /var "));
    }
}

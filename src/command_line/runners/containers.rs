//! The commands that Docker and Podman run in a container.

use super::{Inner, behind_options};
use crate::command_line::expanded::Argument;
use crate::command_line::is_option_of_text;

/// The long options of Docker and Podman with an operand of their own, for `run` and `exec`.
const OF_CONTAINERS: &[&str] = &[
    "add-host",
    "annotation",
    "attach",
    "cap-add",
    "cap-drop",
    "cgroupns",
    "cidfile",
    "cpus",
    "cpu-shares",
    "detach-keys",
    "device",
    "dns",
    "domainname",
    "entrypoint",
    "env",
    "env-file",
    "expose",
    "gpus",
    "group-add",
    "health-cmd",
    "hostname",
    "index",
    "ip",
    "ipc",
    "isolation",
    "label",
    "label-file",
    "link",
    "log-driver",
    "log-opt",
    "memory",
    "memory-swap",
    "mount",
    "name",
    "network",
    "pid",
    "pids-limit",
    "platform",
    "publish",
    "pull",
    "restart",
    "runtime",
    "security-opt",
    "shm-size",
    "stop-signal",
    "stop-timeout",
    "storage-opt",
    "sysctl",
    "tmpfs",
    "ulimit",
    "user",
    "userns",
    "uts",
    "volume",
    "volumes-from",
    "workdir",
];

/// Returns the command that `docker exec` or `docker run` runs in a container.
pub(super) fn in_container(arguments: &[Argument]) -> Vec<Inner<'_>> {
    const GLOBAL: [&str; 8] =
        ["file", "project-name", "host", "context", "profile", "project-directory", "env-file", "log-level"];
    let mut rest = behind_options(arguments, "fpHcl", &GLOBAL);
    while let [first, more @ ..] = rest
        && matches!(first.text.as_str(), "compose" | "container")
    {
        rest = behind_options(more, "fpHcl", &GLOBAL);
    }
    let Some((verb, rest)) = rest.split_first() else { return Vec::new() };
    if !matches!(verb.text.as_str(), "exec" | "run") {
        return Vec::new();
    }
    let image = behind_options(rest, "euwvphlmac", OF_CONTAINERS);
    let options = rest.get(..rest.len() - image.len()).unwrap_or_default();
    let command = image.get(1..).unwrap_or_default();
    if let Some(program) = entry_point(options) {
        return vec![Inner::Split([Argument::of(&program)].into_iter().chain(command.iter().cloned()).collect())];
    }
    match command {
        // The program of the image is a shell.
        [option, script, ..] if is_option_of_text(&option.text) => vec![Inner::text(script.text.clone())],
        _ => Inner::of(command).into_iter().collect(),
    }
}

/// Returns the value of `--entrypoint`.
fn entry_point(options: &[Argument]) -> Option<String> {
    let at = options.iter().position(|word| word.text.starts_with("--entrypoint"))?;
    let word = &options.get(at)?.text;
    match word.split_once('=') {
        Some((_, program)) => Some(program.to_owned()),
        None => options.get(at + 1).map(|word| word.text.clone()),
    }
}

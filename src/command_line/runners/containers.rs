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

/// The parts of `docker exec` or `docker run`.
struct Parts<'a> {
    verb: &'a str,
    options: &'a [Argument],
    /// The image or the container, and the command.
    image: &'a [Argument],
    is_compose: bool,
}

/// Returns the parts of a command that runs another one in a container.
fn parts(arguments: &[Argument]) -> Option<Parts<'_>> {
    const GLOBAL: [&str; 8] =
        ["file", "project-name", "host", "context", "profile", "project-directory", "env-file", "log-level"];
    let mut rest = behind_options(arguments, "fpHcl", &GLOBAL);
    let mut is_compose = false;
    while let [first, more @ ..] = rest
        && matches!(first.text.as_str(), "compose" | "container")
    {
        is_compose |= first.text == "compose";
        rest = behind_options(more, "fpHcl", &GLOBAL);
    }
    let (verb, rest) = rest.split_first()?;
    let verb = Some(verb.text.as_str()).filter(|verb| matches!(*verb, "exec" | "run"))?;
    let image = behind_options(rest, "euwvphlmac", OF_CONTAINERS);
    let options = rest.get(..rest.len() - image.len()).unwrap_or_default();
    Some(Parts { verb, options, image, is_compose })
}

impl Parts<'_> {
    /// Returns true if a flag without an operand is set, as a letter or as a word.
    fn has(&self, letter: char, long: &str) -> bool {
        self.options.iter().any(|word| match word.text.strip_prefix("--") {
            Some(name) => name == long || name.strip_suffix("=true") == Some(long),
            None => {
                let letters = word.text.strip_prefix('-').unwrap_or_default();
                letters.contains(letter) && letters.chars().all(|letter| "diPqtT".contains(letter))
            }
        })
    }

    /// Returns true if the command in the container gets no input.
    fn closes_input(&self) -> bool {
        self.has('d', "detach") || !self.is_compose && !self.has('i', "interactive")
    }
}

/// Returns true if the command that a container runs does not get the input of Docker.
pub(super) fn closes_input_of_container(arguments: &[Argument]) -> bool {
    parts(arguments).is_some_and(|parts| parts.closes_input())
}

/// Returns true if Docker starts a container with a terminal and without a command: most images have a shell or an interpreter.
pub(in crate::command_line) fn opens_terminal(arguments: &[Argument]) -> bool {
    parts(arguments).is_some_and(|parts| {
        parts.verb == "run" && parts.image.len() == 1 && !parts.closes_input() && parts.has('t', "tty")
    })
}

/// Returns the command that `docker exec` or `docker run` runs in a container.
pub(super) fn in_container(arguments: &[Argument]) -> Vec<Inner<'_>> {
    let Some(Parts { options, image, .. }) = parts(arguments) else { return Vec::new() };
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

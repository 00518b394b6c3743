//! The command that `bwrap` runs in a sandbox.

use crate::command_line::expanded::Argument;

/// The options with one operand.
const WITH_ONE: [&str; 33] = [
    "add-seccomp-fd",
    "args",
    "argv0",
    "block-fd",
    "cap-add",
    "cap-drop",
    "chdir",
    "dev",
    "dir",
    "exec-label",
    "file-label",
    "gid",
    "hostname",
    "info-fd",
    "json-status-fd",
    "lock-file",
    "mqueue",
    "overlay-src",
    "perms",
    "pidns",
    "proc",
    "remount-ro",
    "ro-overlay",
    "seccomp",
    "size",
    "sync-fd",
    "tmp-overlay",
    "tmpfs",
    "uid",
    "unsetenv",
    "userns",
    "userns-block-fd",
    "userns2",
];

/// The options with two operands.
const WITH_TWO: [&str; 14] = [
    "bind",
    "bind-data",
    "bind-fd",
    "bind-try",
    "chmod",
    "dev-bind",
    "dev-bind-try",
    "file",
    "ro-bind",
    "ro-bind-data",
    "ro-bind-fd",
    "ro-bind-try",
    "setenv",
    "symlink",
];

/// Returns the words behind the options of `bwrap` and their operands.
pub(super) fn behind_bubblewrap(arguments: &[Argument]) -> &[Argument] {
    let mut rest = arguments;
    while let [first, more @ ..] = rest {
        let operands = match first.text.strip_prefix("--") {
            None => break,
            Some("") => return more,
            Some(name) if WITH_ONE.contains(&name) => 1,
            Some(name) if WITH_TWO.contains(&name) => 2,
            Some("overlay") => 3,
            Some(_) => 0,
        };
        rest = more.get(operands..).unwrap_or_default();
    }
    rest
}

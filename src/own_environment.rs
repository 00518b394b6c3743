//! The environment that this program was started with, stored where agents cannot read it.
//!
//! An agent of the same user can read `/proc/PID/environ` of the engine, which contains the environment at the
//! start of the process and cannot be changed afterwards. Therefore `evals` executes itself again with only
//! the variables that agents get anyway, and passes the others in an unnamed file, which it empties.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::OnceLock;

/// Variables that every agent gets, if they are set.
const ALLOWED: [&str; 4] = ["PATH", "LANG", "TERM", "TZ"];
/// More such variables, in upper or lower case: proxies, and paths of certificates.
const ALLOWED_EITHER: [&str; 15] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "AWS_CA_BUNDLE",
    "PIP_CERT",
    "CARGO_HTTP_CAINFO",
    "DENO_CERT",
    "NIX_SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
];

/// The complete original environment, if `evals` was executed again without it.
static WHOLE: OnceLock<Vec<(OsString, OsString)>> = OnceLock::new();

/// The variable that holds the number of the file descriptor from which the removed variables are read.
const DESCRIPTOR: &str = "EVALS_ENVIRONMENT";

/// Variables without secrets that libraries and this program itself read, besides the allow-list.
const KEPT: [&str; 12] = [
    "HOME",
    "TMPDIR",
    "USER",
    "LOGNAME",
    "SHELL",
    "COLUMNS",
    "LINES",
    "COLORTERM",
    "NO_COLOR",
    "TZDIR",
    "RUST_BACKTRACE",
    "LLVM_PROFILE_FILE",
];
/// Prefixes of variables that are kept as well.
const KEPT_PREFIXES: [&str; 4] = ["CLICOLOR", "TOKIO_", "LD_", "DYLD_"];

/// Returns the complete environment, including variables that were removed from this process.
pub fn all() -> Vec<(OsString, OsString)> {
    WHOLE.get().cloned().unwrap_or_else(|| std::env::vars_os().filter(|(name, _)| name != DESCRIPTOR).collect())
}

/// Returns the environment variables that are valid UTF-8.
pub fn texts() -> BTreeMap<String, String> {
    all().into_iter().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect()
}

/// Returns the value of a variable.
pub fn var(name: &str) -> Option<OsString> {
    all().into_iter().find_map(|(key, value)| (key == name).then_some(value))
}

/// Returns true if `CI` is set, so that no person watches or decides.
pub fn in_ci() -> bool {
    var("CI").is_some_and(|value| says_yes(&value))
}

/// Returns true unless a variable is empty, `0` or `false`.
fn says_yes(value: &OsStr) -> bool {
    !value.is_empty() && value != "0" && value != "false"
}

/// Returns true if agents get this variable, if it is set.
pub fn is_allowed(name: &str) -> bool {
    ALLOWED.contains(&name) || name.starts_with("LC_") || ALLOWED_EITHER.contains(&name.to_ascii_uppercase().as_str())
}

fn is_kept(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    KEPT.contains(&name) || KEPT_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || is_allowed(name)
}

#[cfg(not(target_os = "linux"))]
pub use elsewhere::withdraw;
#[cfg(target_os = "linux")]
pub use linux::withdraw;

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{OsStr, OsString};
    use std::fs::{self, File};
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::{DESCRIPTOR, WHOLE, is_kept};

    const FILE: &str = "evals-environment";

    /// Protects this process from agents: its environment, its memory, and the user's session keyring. Does not
    /// return if `evals` executes itself again. Must be called before any thread is started.
    pub fn withdraw() {
        if let Some(taken) = taken() {
            let _ = WHOLE.set(taken);
        } else if std::env::vars_os().any(|(name, _)| !is_kept(&name)) {
            // If this fails, `evals` continues: an agent that reads the engine's environment is not the
            // usual one.
            let _ = start_anew();
        }
        let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
        // Child processes inherit the new keyring. If the system has no keys or permits no keyring, nothing is
        // shared either.
        let _ = keyutils::Keyring::join_anonymous_session();
    }

    /// Returns the variables that this program passed to itself, and removes them.
    fn taken() -> Option<Vec<(OsString, OsString)>> {
        let number: u32 = std::env::var(DESCRIPTOR).ok()?.parse().ok()?;
        let path = format!("/proc/self/fd/{number}");
        let name = fs::read_link(&path).ok()?;
        if !name.to_string_lossy().starts_with(&format!("/memfd:{FILE}")) {
            return None;
        }
        let mut file = File::options().read(true).write(true).open(&path).ok()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        // The file descriptor can be opened through `/proc` as well.
        file.set_len(0).ok()?;
        let pairs = bytes.split(|byte| *byte == 0).filter_map(|pair| {
            // The name of a variable may begin with `=`.
            let at = pair.iter().skip(1).position(|byte| *byte == b'=')? + 1;
            Some((OsString::from_vec(pair[..at].to_vec()), OsString::from_vec(pair[at + 1..].to_vec())))
        });
        Some(pairs.collect())
    }

    fn start_anew() -> std::io::Result<()> {
        // Without CLOEXEC, because the file must survive the execution.
        let mut file = File::from(memfd_create(FILE, MemfdFlags::empty())?);
        let mut bytes = Vec::new();
        for (name, value) in std::env::vars_os().filter(|(name, _)| name != DESCRIPTOR) {
            for part in [name.as_bytes(), b"=", value.as_bytes(), b"\0"] {
                bytes.extend_from_slice(part);
            }
        }
        file.write_all(&bytes)?;
        // A file descriptor at the end of the file would be read as empty by the new program.
        let program = std::env::current_exe()?;
        let number = file.as_raw_fd();
        fs::metadata(format!("/proc/self/fd/{number}"))?;
        let mut arguments = std::env::args_os();
        let name = arguments.next().unwrap_or_else(|| OsStr::new("evals").to_owned());
        let mut command = Command::new(program);
        command.arg0(name).args(arguments).env_clear().env(DESCRIPTOR, number.to_string());
        command.envs(std::env::vars_os().filter(|(name, _)| is_kept(name)));
        Err(command.exec())
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    /// Does nothing. Other systems show a process's environment to its user in other ways, which are not prevented
    /// here.
    pub fn withdraw() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_get_anyway_stays_and_what_could_be_secret_goes() {
        for name in ["PATH", "HOME", "LC_ALL", "https_proxy", "TMPDIR", "NO_COLOR"] {
            assert!(is_kept(OsStr::new(name)), "{name}");
        }
        for name in ["OPENAI_API_KEY", "EVALS_JUDGE", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "ANYTHING"] {
            assert!(!is_kept(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn a_variable_that_is_empty_or_false_says_no() {
        for (value, says) in
            [("", false), ("0", false), ("false", false), ("1", true), ("true", true), ("woodpecker", true)]
        {
            assert_eq!(says_yes(OsStr::new(value)), says, "{value}");
        }
    }
}

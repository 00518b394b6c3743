//! The programs that run other commands: `sudo`, `xargs`, `sh -c`, `docker exec` and the like.

use super::expanded::{Argument, Program};
use super::{is_option_of_text, is_shell};

mod bubblewrap;
mod containers;
mod gdb;
mod git;
mod parallel;
mod printed;
mod sed;

use bubblewrap::behind_bubblewrap;
pub(super) use containers::opens_terminal;
use containers::{closes_input_of_container, in_container};
use gdb::in_gdb;
use git::in_git;
pub(super) use printed::printed;
use sed::{edited_by_sed, in_sed};

/// A script, or a part of a text, that is not shown. No text of a shell contains this character, which Unicode leaves to
/// programs. If a line contains it, that part of the line is unknown. In the normal form it is `$_`.
pub(super) const NOT_SHOWN: &str = "\u{fdd0}";
/// The maximum size in bytes of the input of `xargs` that is put in the place of words.
const MAX_INPUT_BYTES: usize = 4096;
/// The maximum number of options of a shell among the arguments of another program.
const MAX_OPTIONS: usize = 16;
/// The maximum size in bytes of what `printf` prints, and of the commands that `xargs` makes of its input.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// The command or the text that a command runs.
#[derive(Debug)]
pub(super) enum Inner<'a> {
    /// The command's last words.
    Words(&'a [Argument]),
    /// Words made of the command's words: some are replaced or added.
    Split(Vec<Argument>),
    /// A text that a shell runs, with the arguments that it gets.
    Script { text: String, arguments: &'a [Argument] },
}

impl<'a> Inner<'a> {
    /// Makes the command of words. A single word with blanks is a text for a shell.
    fn of(words: &'a [Argument]) -> Option<Self> {
        match words {
            [] => None,
            [one] if one.text.contains(char::is_whitespace) => Some(Self::text(one.text.clone())),
            _ => Some(Self::Words(words)),
        }
    }

    fn text(text: String) -> Self {
        Self::Script { text, arguments: &[] }
    }
}

/// A program that runs the command behind its options.
struct Runner {
    names: &'static [&'static str],
    /// The options with an operand of their own, as letters.
    letters: &'static str,
    /// The long options with an operand of their own.
    long: &'static [&'static str],
    /// The number of operands before the command.
    operands: usize,
}

impl Runner {
    /// Returns the command behind the options, operands and assignments.
    fn command<'a>(&self, arguments: &'a [Argument]) -> &'a [Argument] {
        let rest = behind_options(arguments, self.letters, self.long);
        let rest = rest.get(self.operands..).unwrap_or_default();
        // `flock -w 5 FILE -- rm`, `setarch x86_64 -R rm`
        let rest = if self.operands > 0 { behind_options(rest, "", &[]) } else { rest };
        // `env - rm` is `env -i rm`.
        let rest = match rest {
            [first, more @ ..] if first.text == "-" => more,
            all => all,
        };
        // `concurrently 'X=1 a' 'b'`
        if rest.iter().all(has_blank) {
            return rest;
        }
        // `env` and `sudo` also take names that no shell accepts: `env 1=2 rm`.
        let is_assignment = |word: &&Argument| word.text.find('=').is_some_and(|at| at > 0);
        rest.get(rest.iter().take_while(is_assignment).count()..).unwrap_or_default()
    }

    /// Returns the commands behind the options, operands and assignments.
    fn inner<'a>(&self, arguments: &'a [Argument]) -> Vec<Inner<'a>> {
        match self.command(arguments) {
            rest @ [_, _, ..] if rest.iter().all(has_blank) => {
                rest.iter().map(|word| Inner::text(word.text.clone())).collect()
            }
            rest => Inner::of(rest).into_iter().collect(),
        }
    }
}

const fn plain(names: &'static [&'static str]) -> Runner {
    Runner { names, letters: "", long: &[], operands: 0 }
}

/// Makes a runner with one operand before the command.
const fn plain_behind_one(names: &'static [&'static str]) -> Runner {
    Runner { names, letters: "", long: &[], operands: 1 }
}

const RUNNERS: &[Runner] = &[
    Runner {
        names: &["sudo", "doas"],
        letters: "CDghpRrTtUu",
        long: &[
            "user",
            "group",
            "host",
            "prompt",
            "chdir",
            "chroot",
            "role",
            "type",
            "other-user",
            "command-timeout",
            "close-from",
        ],
        operands: 0,
    },
    Runner { names: &["pkexec"], letters: "", long: &["user"], operands: 0 },
    Runner { names: &["env", "genv"], letters: "uC", long: &["unset", "chdir"], operands: 0 },
    plain(&[
        "nohup",
        "gnohup",
        "setsid",
        "command",
        "builtin",
        "busybox",
        "toybox",
        "coproc",
        "unbuffer",
        "catchsegv",
        "nocorrect",
        "noglob",
        "linux32",
        "linux64",
        "i386",
        "i486",
        "i586",
        "i686",
        "x86_64",
        "uname26",
        "entr",
        "concurrently",
        "shx",
        "catatonit",
        "dumb-init",
        "eatmydata",
        "nocache",
        "torify",
        "tsocks",
    ]),
    Runner { names: &["tini"], letters: "pe", long: &[], operands: 0 },
    Runner { names: &["fakeroot"], letters: "lfisb", long: &["lib", "faked", "fd-base"], operands: 0 },
    Runner {
        names: &["fakechroot"],
        letters: "ldecb",
        long: &["lib", "elfloader", "environment", "config-dir", "bindir"],
        operands: 0,
    },
    Runner { names: &["faketime"], letters: "p", long: &["date-prog"], operands: 1 },
    Runner {
        names: &["flatpak-spawn"],
        letters: "",
        long: &[
            "app-path",
            "directory",
            "env",
            "env-fd",
            "forward-fd",
            "sandbox-a11y-own-name",
            "sandbox-expose",
            "sandbox-expose-path",
            "sandbox-expose-path-ro",
            "sandbox-expose-path-ro-try",
            "sandbox-expose-path-try",
            "sandbox-expose-ro",
            "sandbox-flag",
            "unset-env",
            "usr-path",
        ],
        operands: 0,
    },
    Runner {
        names: &["proot"],
        letters: "bikmpqrRSvw",
        long: &["bind", "change-id", "cwd", "kernel-release", "mount", "port", "pwd", "qemu", "rootfs", "verbose"],
        operands: 0,
    },
    Runner {
        names: &["numactl"],
        letters: "CfiILmMNopPSw",
        long: &[
            "cpunodebind",
            "file",
            "interleave",
            "length",
            "membind",
            "offset",
            "physcpubind",
            "preferred",
            "preferred-many",
            "shm",
            "shmid",
            "shmmode",
            "weighted-interleave",
        ],
        operands: 0,
    },
    Runner { names: &["cpulimit"], letters: "lpeP", long: &["limit", "pid", "exe", "path"], operands: 0 },
    Runner { names: &["aa-exec"], letters: "pn", long: &["profile", "namespace"], operands: 0 },
    Runner { names: &["dbus-run-session"], letters: "", long: &["config-file", "dbus-daemon"], operands: 0 },
    Runner { names: &["systemd-inhibit"], letters: "", long: &["what", "who", "why", "mode"], operands: 0 },
    Runner {
        names: &["systemd-cat"],
        letters: "tp",
        long: &["identifier", "priority", "stderr-priority", "namespace"],
        operands: 0,
    },
    Runner {
        names: &["run0"],
        letters: "DgMu",
        long: &[
            "background",
            "chdir",
            "description",
            "group",
            "machine",
            "nice",
            "property",
            "setenv",
            "shell-prompt-prefix",
            "slice",
            "unit",
            "user",
        ],
        operands: 0,
    },
    Runner { names: &["wsl", "wsl.exe"], letters: "du", long: &["distribution", "user", "cd"], operands: 0 },
    Runner { names: &["ssh-agent"], letters: "aEtP", long: &[], operands: 0 },
    Runner { names: &["dotenv-cli"], letters: "evpc", long: &[], operands: 0 },
    Runner { names: &["env-cmd"], letters: "fer", long: &["file", "environments", "rc-file"], operands: 0 },
    Runner { names: &["watchexec"], letters: "ewifdso", long: &["exts", "watch", "ignore", "filter"], operands: 0 },
    Runner { names: &["sshpass"], letters: "pfdP", long: &[], operands: 0 },
    Runner { names: &["screen"], letters: "Stcehp", long: &[], operands: 0 },
    Runner { names: &["exec"], letters: "a", long: &[], operands: 0 },
    Runner { names: &["time"], letters: "fo", long: &["format", "output"], operands: 0 },
    Runner { names: &["nice", "gnice"], letters: "n", long: &["adjustment"], operands: 0 },
    Runner { names: &["ionice"], letters: "cnpPu", long: &["class", "classdata"], operands: 0 },
    Runner { names: &["stdbuf", "gstdbuf"], letters: "ioe", long: &["input", "output", "error"], operands: 0 },
    Runner { names: &["timeout", "gtimeout"], letters: "sk", long: &["signal", "kill-after"], operands: 1 },
    Runner {
        names: &["strace"],
        letters: "eopPsuaEOSbIXU",
        long: &[
            "abbrev",
            "argv0",
            "attach",
            "columns",
            "const-print-style",
            "detach-on",
            "env",
            "fault",
            "inject",
            "interruptible",
            "output",
            "raw",
            "read",
            "signal",
            "status",
            "string-limit",
            "summary-columns",
            "summary-sort-by",
            "trace",
            "trace-path",
            "user",
            "verbose",
            "write",
        ],
        operands: 0,
    },
    Runner {
        names: &["ltrace"],
        letters: "aADeFlnopsuwx",
        long: &["align", "config", "indent", "library", "output", "where"],
        operands: 0,
    },
    Runner {
        names: &["unshare"],
        letters: "GlRSw",
        long: &[
            "boottime",
            "load-interp",
            "map-group",
            "map-groups",
            "map-user",
            "map-users",
            "monotonic",
            "propagation",
            "root",
            "setgid",
            "setgroups",
            "setuid",
            "wd",
        ],
        operands: 0,
    },
    // The operands of `-r` and `-w` are part of the word.
    Runner {
        names: &["nsenter"],
        letters: "tGSNW",
        long: &["target", "setuid", "setgid", "net-socket", "wdns"],
        operands: 0,
    },
    Runner { names: &["taskset"], letters: "", long: &[], operands: 1 },
    Runner { names: &["prlimit"], letters: "po", long: &["pid", "output"], operands: 0 },
    Runner { names: &["caffeinate"], letters: "tw", long: &[], operands: 0 },
    Runner {
        names: &["xvfb-run"],
        letters: "enspf",
        long: &["server-num", "server-args", "error-file", "auth-file"],
        operands: 0,
    },
    Runner {
        names: &["systemd-run"],
        letters: "CEHMpu",
        long: &[
            "background",
            "capsule",
            "description",
            "gid",
            "host",
            "job-mode",
            "machine",
            "nice",
            "on-active",
            "on-boot",
            "on-calendar",
            "on-startup",
            "on-unit-active",
            "on-unit-inactive",
            "path-property",
            "property",
            "service-type",
            "setenv",
            "slice",
            "socket-property",
            "timer-property",
            "uid",
            "unit",
            "working-directory",
        ],
        operands: 0,
    },
    Runner {
        names: &["setpriv"],
        letters: "",
        long: &[
            "ambient-caps",
            "apparmor-profile",
            "bounding-set",
            "egid",
            "euid",
            "groups",
            "inh-caps",
            "landlock-access",
            "landlock-rule",
            "pdeathsig",
            "ptracer",
            "regid",
            "reuid",
            "rgid",
            "ruid",
            "seccomp-filter",
            "securebits",
            "selinux-label",
        ],
        operands: 0,
    },
    plain(&["firejail", "valgrind", "torsocks", "rlwrap", "cross-env"]),
    Runner { names: &["proxychains", "proxychains4"], letters: "f", long: &[], operands: 0 },
    // `script FILE COMMAND` of BSD. On Linux, the command is the text of an option.
    Runner {
        names: &["script"],
        letters: "BEFImotOT",
        long: &["echo", "log-in", "log-io", "log-out", "log-timing", "logging-format", "output-limit"],
        operands: 1,
    },
    Runner { names: &["runuser"], letters: "ug", long: &["user", "group"], operands: 0 },
    Runner { names: &["flock"], letters: "wE", long: &["timeout", "wait", "conflict-exit-code"], operands: 1 },
    Runner { names: &["chroot"], letters: "", long: &["groups", "userspec"], operands: 1 },
    Runner { names: &["arch-chroot"], letters: "u", long: &[], operands: 1 },
    plain_behind_one(&["repeat", "gosu", "su-exec", "setuidgid", "s6-setuidgid", "envdir", "envuidgid", "setlock"]),
    Runner {
        names: &["npx", "bunx", "uvx", "pnpx"],
        letters: "p",
        long: &["package", "from", "with", "python"],
        operands: 0,
    },
];

/// Programs that run a command with a word of their own before it: `poetry run`, `mise exec`.
const WITH_A_WORD: &[(&[&str], &[&str])] = &[
    (
        &[
            "poetry",
            "pipenv",
            "uv",
            "pdm",
            "hatch",
            "rye",
            "pixi",
            "conda",
            "mamba",
            "micromamba",
            "devbox",
            "op",
            "doppler",
            "dotenv",
            "dotenvx",
            "pipx",
            "volta",
            "infisical",
        ],
        &["run"],
    ),
    (
        &[
            "mise",
            "rtx",
            "asdf",
            "bundle",
            "npm",
            "pnpm",
            "yarn",
            "bun",
            "rbenv",
            "pyenv",
            "nodenv",
            "direnv",
            "lerna",
            "nvm",
            "fnm",
            "devcontainer",
            "lxc",
            "incus",
            "aws-vault",
        ],
        &["exec", "x", "dlx"],
    ),
];

const XARGS: Runner = Runner {
    names: &["xargs", "gxargs"],
    letters: "adEILnPs",
    long: &["arg-file", "delimiter", "max-args", "max-procs", "max-lines", "max-chars", "process-slot-var"],
    operands: 0,
};

/// Programs that run the text of an option: `su -c TEXT`.
const WITH_TEXT: [&str; 14] = [
    "su",
    "sg",
    "runuser",
    "script",
    "nix-shell",
    "nix",
    "flock",
    "vagrant",
    "nodemon",
    "doppler",
    "npm",
    "npx",
    "pnpm",
    "pnpx",
];

/// Returns what a program with these arguments runs. `input` is the text that it reads, if it is known.
pub(super) fn inner<'a>(program: &str, arguments: &'a [Argument], input: Option<&str>) -> Vec<Inner<'a>> {
    let text = |text: Option<String>| text.map(Inner::text).into_iter().collect::<Vec<_>>();
    let words = |words: &'a [Argument]| Inner::of(words).into_iter().collect::<Vec<_>>();
    if matches!(program, "pwsh" | "powershell" | "cmd" | "cmd.exe" | "powershell.exe") {
        return text(windows_shell(arguments));
    }
    if is_shell(program) {
        return shell(arguments, input).into_iter().collect();
    }
    if WITH_TEXT.contains(&program)
        && let Some(shown) = option_text(before_command(program, arguments))
    {
        return text(Some(shown));
    }
    match program {
        "eval" => text(Some(text_of(without_end_of_options(arguments)))),
        "iex" | "IEX" | "Invoke-Expression" | "invoke-expression" => match arguments {
            [] => text(input.map(str::to_owned)),
            [option, rest @ ..] if option.text.eq_ignore_ascii_case("-command") => text(Some(text_of(rest))),
            // `iex -S mix` of Elixir
            [option, ..] if option.text.starts_with('-') => Vec::new(),
            words => text(Some(text_of(words))),
        },
        "." | "source" => text(file_of_source(arguments, input)),
        "trap" => text(without_end_of_options(arguments).first().map(|word| word.text.clone()).filter(|it| it != "-")),
        "watch" => text(Some(text_of(behind_options(arguments, "nq", &["interval"])))),
        "command" if arguments.first().is_some_and(|word| matches!(word.text.as_str(), "-v" | "-V" | "-pv")) => {
            Vec::new()
        }
        "su" => text(input.map(str::to_owned)),
        "sudo" | "doas" if is_login(program, arguments) => text(input.map(str::to_owned)),
        "hyperfine" => commands_of_hyperfine(arguments),
        "perf" => words(behind_perf(arguments)),
        "bwrap" => words(behind_bubblewrap(arguments)),
        "gdb" => in_gdb(arguments),
        "chrt" => words(behind_chrt(arguments)),
        "setarch" => words(behind_setarch(arguments)),
        // `ip netns exec NAME rm`
        "ip" => {
            let is_exec = |two: &[Argument]| match two {
                [kind, verb] => matches!(kind.text.as_str(), "netns" | "vrf") && verb.text == "exec",
                _ => false,
            };
            let at = arguments.windows(2).position(is_exec);
            words(at.and_then(|at| arguments.get(at + 3..)).unwrap_or_default())
        }
        "lldb" | "schroot" | "distrobox" | "guix" if arguments.iter().any(|word| word.text == "--") => {
            let at = arguments.iter().position(|word| word.text == "--");
            words(at.and_then(|at| arguments.get(at + 1..)).unwrap_or_default())
        }
        "podman" | "buildah" if arguments.first().is_some_and(|verb| verb.text == "unshare") => {
            words(behind_options(arguments.get(1..).unwrap_or_default(), "", &[]))
        }
        "make" | "gmake"
            if arguments.windows(2).any(|two| matches!(two, [f, file] if f.text == "-f" && file.text == "-")) =>
        {
            let recipes = input.unwrap_or_default().lines().filter_map(|line| line.strip_prefix('\t'));
            text(Some(recipes.collect::<Vec<_>>().join("\n")))
        }
        "ForEach-Object" | "%" | "foreach" | "try" | "catch" | "finally" | "Where-Object" => in_braces(arguments),
        "tmux" => arguments.iter().filter(|it| it.text.contains(' ')).map(|it| Inner::text(it.text.clone())).collect(),
        "env" if split_text(arguments).is_some() => text(split_text(arguments)),
        "parallel" => parallel::commands(arguments, input),
        "find" | "gfind" => actions(arguments, &["-exec", "-execdir", "-ok", "-okdir"]),
        "fd" | "fdfind" => actions(arguments, &["-x", "-X", "--exec", "--exec-batch"]),
        "docker" | "podman" | "nerdctl" | "docker-compose" => in_container(arguments),
        "kubectl" | "oc" => {
            let is_exec = arguments.iter().any(|word| word.text == "exec");
            let rest = arguments.iter().position(|word| word.text == "--").filter(|_| is_exec);
            rest.map_or_else(Vec::new, |at| words(arguments.get(at + 1..).unwrap_or_default()))
        }
        "ssh" => {
            let host = behind_options(arguments, "BbcDEeFIiJLlmOopQRSWw", &[]);
            // Options may follow the host.
            let rest = behind_options(host.get(1..).unwrap_or_default(), "BbcDEeFIiJLlmOopQRSWw", &[]);
            match Some(rest).filter(|rest| !rest.is_empty()) {
                Some(rest) => text(Some(text_of(rest))),
                None => text(input.map(str::to_owned)),
            }
        }
        "git" => in_git(arguments),
        "xargs" | "gxargs" => behind_xargs(arguments, input),
        "sed" | "gsed" => in_sed(arguments),
        "mapfile" | "readarray" | "compgen" | "complete" => {
            let at = arguments.iter().position(|word| word.text == "-C");
            text(at.and_then(|at| arguments.get(at + 1)).map(|word| word.text.clone()))
        }
        _ => match (runner(program), behind_verb(program, arguments)) {
            (Some(runner), _) => runner.inner(arguments),
            (None, Some(rest)) => words(rest),
            (None, None) => shell_within(program, arguments).into_iter().collect(),
        },
    }
}

/// Returns true if what a program runs does not get the program's input.
pub(super) fn closes_input(program: &str, arguments: &[Argument]) -> bool {
    let options = || arguments.iter().map(|word| word.text.as_str()).take_while(|word| word.starts_with('-'));
    let has_letter = |letter: char| options().any(|word| !word.starts_with("--") && word.contains(letter));
    match program {
        "docker" | "podman" | "nerdctl" => closes_input_of_container(arguments),
        "kubectl" | "oc" => {
            let is_input =
                |word: &Argument| matches!(word.text.as_str(), "-i" | "-it" | "-ti" | "--stdin" | "--stdin=true");
            !arguments.iter().take_while(|word| word.text != "--").any(is_input)
        }
        // The editor gets a file, and a command of git no input.
        "git" => arguments.iter().any(|word| {
            let name = word.text.split('=').next().unwrap_or_default().to_ascii_lowercase();
            matches!(name.as_str(), "core.editor" | "sequence.editor")
        }),
        "ssh" => options().any(|word| matches!(word, "-n" | "-f" | "-fn" | "-nf")),
        "screen" => has_letter('d'),
        "tmux" => arguments.iter().any(|word| word.text == "-d"),
        "parallel" => true,
        _ => false,
    }
}

fn runner(program: &str) -> Option<&'static Runner> {
    RUNNERS.iter().find(|runner| runner.names.contains(&program))
}

/// Returns the program of a command without its folder, and its arguments, behind programs such as `sudo` that run it.
fn own(words: &[Argument]) -> Option<(&str, &[Argument])> {
    let mut words = words;
    loop {
        let (first, rest) = words.split_first()?;
        let Program::Named(name) = first.program() else { return None };
        match runner(name) {
            Some(runner) => words = runner.command(rest),
            None => return Some((name, rest)),
        }
    }
}

fn has_blank(word: &Argument) -> bool {
    word.text.contains(char::is_whitespace)
}

/// Returns the command of a shell among the arguments of a program that is not known: `retry bash -c TEXT`.
fn shell_within<'a>(program: &str, arguments: &'a [Argument]) -> Option<Inner<'a>> {
    const NO_RUNNERS: [&str; 16] = [
        "echo", "printf", "grep", "egrep", "fgrep", "rg", "ag", "ack", "man", "which", "type", "whereis", "ls", "cat",
        "apt-get", "apk",
    ];
    if NO_RUNNERS.contains(&program) {
        return None;
    }
    let gets_text = |at: &usize| {
        let Some([shell, rest @ ..]) = arguments.get(*at..) else { return false };
        let rest = rest.get(..MAX_OPTIONS).unwrap_or(rest);
        let behind = behind_options_of_shell(rest);
        let mut options = rest.iter().take(rest.len() - behind.len());
        is_shell(&shell.text) && options.any(|word| is_option_of_text(&word.text))
    };
    let at = (0..arguments.len()).find(gets_text)?;
    arguments.get(at..).map(Inner::Words)
}

/// Returns the text that PowerShell or `cmd` runs.
fn windows_shell(arguments: &[Argument]) -> Option<String> {
    let is_command =
        |word: &Argument| matches!(word.text.to_ascii_lowercase().as_str(), "-command" | "-c" | "/c" | "/k");
    let at = arguments.iter().position(is_command)?;
    arguments.get(at + 1..).map(text_of)
}

/// Returns the command in the block of a command of PowerShell.
fn in_braces(arguments: &[Argument]) -> Vec<Inner<'_>> {
    let Some(at) = arguments.iter().position(|word| word.text == "{") else { return Vec::new() };
    let rest = arguments.get(at + 1..).unwrap_or_default();
    let end = rest.iter().position(|word| word.text == "}").unwrap_or(rest.len());
    rest.get(..end).filter(|words| !words.is_empty()).map(Inner::Words).into_iter().collect()
}

/// Returns the files that `tee` and `dd` write.
pub(super) fn files_of_tee(words: &[Argument]) -> Vec<String> {
    match own(words) {
        Some(("tee", rest)) => {
            rest.iter().filter(|word| !word.text.starts_with('-')).map(|word| word.text.clone()).collect()
        }
        Some(("dd", rest)) => rest.iter().filter_map(|word| word.text.strip_prefix("of=")).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// Returns true if a command leaves the files that it names as they are.
pub(super) fn keeps_files(words: &[Argument]) -> bool {
    const READERS: [&str; 12] = ["cat", "chmod", "ls", "head", "tail", "wc", "test", "[", "source", ".", "cp", "echo"];
    let program = words.first().map_or("", |word| word.text.as_str());
    READERS.contains(&program) || is_shell(program)
}

/// Returns the file that `sed -i` changes, with its text, if the line shows it.
pub(super) fn edited(words: &[Argument]) -> Option<(String, String)> {
    match own(words) {
        Some(("sed" | "gsed", rest)) => edited_by_sed(rest),
        _ => None,
    }
}

/// Returns the files that `cp`, `mv` or `ln` makes of files whose texts are known, with these texts.
pub(super) fn copied(words: &[Argument]) -> Vec<(String, &str)> {
    let Some(("cp" | "mv" | "ln" | "install", rest)) = own(words) else { return Vec::new() };
    let Some((target, files)) = rest.split_last() else { return Vec::new() };
    let known = files.iter().filter_map(|file| Some((file.text.rsplit('/').next()?, file.content.as_deref()?)));
    let copies = known.flat_map(|(name, text)| {
        let within = format!("{}/{name}", target.text.trim_end_matches('/'));
        [(target.text.clone(), text), (within, text)]
    });
    copies.collect()
}

/// Returns the command behind a word such as `run` or `exec` of a program that has one.
fn behind_verb<'a>(program: &str, arguments: &'a [Argument]) -> Option<&'a [Argument]> {
    const LONG: [&str; 16] = [
        "directory",
        "project",
        "name",
        "prefix",
        "env-file",
        "python",
        "with",
        "package",
        "extra",
        "group",
        "env",
        "using",
        "node",
        "workspace-folder",
        "container-id",
        "remote-env",
    ];
    let (_, verbs) = WITH_A_WORD.iter().find(|(names, _)| names.contains(&program))?;
    let mut rest = behind_options(arguments, "nCpf", &LONG);
    // `yarn workspace NAME exec rm`
    if rest.first().is_some_and(|word| word.text == "workspace") {
        rest = rest.get(2..)?;
    }
    let (verb, rest) = rest.split_first()?;
    if !verbs.contains(&verb.text.as_str()) {
        return None;
    }
    let rest = behind_options(rest, "nCcpEf", &LONG);
    // `mise x node@20 -- rm`, `direnv exec FOLDER rm`
    let tools = match program {
        "direnv" | "lxc" | "incus" | "aws-vault" => 1,
        // `nvm exec 20 rm`
        "nvm" => rest.iter().take(1).filter(|word| is_version(&word.text)).count(),
        _ => rest.iter().take_while(|word| word.text.contains('@') && !word.text.starts_with('@')).count(),
    };
    Some(without_end_of_options(rest.get(tools..)?))
}

fn is_version(word: &str) -> bool {
    let number = word.strip_prefix('v').unwrap_or(word);
    number.starts_with(|c: char| c.is_ascii_digit()) || word.starts_with("lts/") || matches!(word, "node" | "default")
}

/// Returns true if a command begins a shell that reads its input: `sudo -s`, `sudo -u app -i`.
fn is_login(program: &str, arguments: &[Argument]) -> bool {
    let rest = runner(program).map_or(arguments, |runner| runner.command(arguments));
    let is_shell = |word: &Argument| {
        let letters = word.text.strip_prefix('-').filter(|letters| !letters.starts_with('-')).unwrap_or_default();
        letters.contains(['s', 'i']) || matches!(word.text.as_str(), "--shell" | "--login")
    };
    rest.is_empty() && arguments.iter().any(is_shell)
}

/// Returns the commands that `hyperfine` runs: its operands, and the texts of options such as `--prepare`.
fn commands_of_hyperfine(arguments: &[Argument]) -> Vec<Inner<'_>> {
    const TEXTS: [&str; 8] = ["-s", "--setup", "-p", "--prepare", "-C", "--conclude", "-c", "--cleanup"];
    let mut found = Vec::new();
    let mut option = "";
    for word in arguments {
        let text = word.text.as_str();
        let of_option = text.split_once('=').filter(|(name, _)| TEXTS.contains(name)).map(|(_, text)| text);
        let is_command = !text.starts_with('-') && (option.is_empty() || TEXTS.contains(&option) || has_blank(word));
        if let Some(command) = of_option.or(is_command.then_some(text)) {
            found.push(Inner::text(command.to_owned()));
        }
        // Behind an option that takes a number or a name, only a word with blanks is a command.
        option = if text.starts_with('-') && !text.contains('=') && !is_flag_of_hyperfine(text) { text } else { "" };
    }
    found
}

fn is_flag_of_hyperfine(option: &str) -> bool {
    matches!(option, "-i" | "--ignore-failure" | "-N" | "--show-output" | "--")
}

/// Returns the command that `xargs` runs, with the words of its input in their places if they are known.
fn behind_xargs<'a>(arguments: &'a [Argument], input: Option<&str>) -> Vec<Inner<'a>> {
    let found = XARGS.inner(arguments);
    let command = match found.as_slice() {
        [Inner::Words(command)] => *command,
        _ => return found,
    };
    let options = arguments.get(..arguments.len() - command.len()).unwrap_or_default();
    let marker = options.iter().enumerate().find_map(|(at, word)| match word.text.as_str() {
        "-I" => options.get(at + 1).map(|word| word.text.as_str()),
        "-i" | "--replace" => Some("{}"),
        own => own.strip_prefix("-I").or_else(|| own.strip_prefix("--replace=")),
    });
    let size: usize = command.iter().map(|word| word.text.len()).sum();
    let input = input.filter(|text| {
        text.len() <= MAX_INPUT_BYTES
            && text.len().saturating_mul(size) <= MAX_OUTPUT_BYTES
            && !text.contains(NOT_SHOWN)
    });
    let with = |marker: &str, text: &str| -> Inner<'a> {
        let replaced = command.iter().map(|word| {
            let mut word = word.clone();
            word.text = word.text.replace(marker, text);
            word
        });
        Inner::Split(replaced.collect())
    };
    match (marker.filter(|marker| !marker.is_empty()), input) {
        (Some(marker), Some(input)) => {
            input.lines().filter(|line| !line.trim().is_empty()).map(|line| with(marker, line.trim_start())).collect()
        }
        // An unknown word is shown as `{}`.
        (Some(marker), None) => vec![with(marker, "{}")],
        (None, Some(input)) => {
            let words = input.split_whitespace().map(Argument::of);
            vec![Inner::Split(command.iter().cloned().chain(words).collect())]
        }
        (None, None) => {
            // A word of the input is the text for a shell, or the program: `xargs sh -c`, `xargs env`.
            let is_unknown = own(command).is_none_or(|(program, arguments)| {
                is_shell(program) && arguments.last().is_some_and(|word| is_option_of_text(&word.text))
            });
            let unknown = is_unknown.then(|| Inner::text(NOT_SHOWN.to_owned()));
            [Inner::Words(command)].into_iter().chain(unknown).collect()
        }
    }
}

/// Returns the texts of words, separated by blanks.
pub(super) fn text_of(words: &[Argument]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

fn without_end_of_options(words: &[Argument]) -> &[Argument] {
    match words {
        [first, rest @ ..] if first.text == "--" => rest,
        all => all,
    }
}

/// Returns the words behind the options of a command.
fn behind_options<'a>(arguments: &'a [Argument], letters: &str, long: &[&str]) -> &'a [Argument] {
    let mut at = 0;
    while let Some(option) = arguments.get(at).map(|word| word.text.as_str()) {
        if option == "--" {
            at += 1;
            break;
        }
        let Some(name) = option.strip_prefix('-').filter(|name| !name.is_empty()) else { break };
        let takes_next = match name.strip_prefix('-') {
            Some(name) => long.contains(&name),
            // In `-n1` the operand is part of the word.
            None => name.find(|letter| letters.contains(letter)).is_some_and(|place| place + 1 == name.len()),
        };
        at += if takes_next { 2 } else { 1 };
    }
    arguments.get(at..).unwrap_or_default()
}

/// Returns the command that `perf stat`, `perf record`, `perf lock record` and the like run.
fn behind_perf(arguments: &[Argument]) -> &[Argument] {
    const VERBS: [&str; 4] = ["stat", "record", "trace", "ftrace"];
    // These run a command with the word `record` only.
    const OF_RECORDS: [&str; 8] = ["c2c", "kmem", "kvm", "kwork", "lock", "mem", "sched", "timechart"];
    const LONG: [&str; 19] = [
        "affinity",
        "branch-filter",
        "call-graph",
        "cgroup",
        "clockid",
        "control",
        "count",
        "cpu",
        "delay",
        "event",
        "field-separator",
        "freq",
        "interval-print",
        "mmap-pages",
        "output",
        "pid",
        "repeat",
        "tid",
        "uid",
    ];
    let options = |rest| behind_options(rest, "eoprCIFtcmDGxjuk", &LONG);
    let Some((verb, rest)) = arguments.split_first() else { return &[] };
    let rest = options(rest);
    let is_record = rest.first().is_some_and(|word| word.text == "record");
    match verb.text.as_str() {
        verb if is_record && (VERBS.contains(&verb) || OF_RECORDS.contains(&verb)) => {
            options(rest.get(1..).unwrap_or_default())
        }
        verb if VERBS.contains(&verb) => rest,
        _ => &[],
    }
}

/// Returns the command that `chrt` runs. Some policies need no priority.
fn behind_chrt(arguments: &[Argument]) -> &[Argument] {
    let rest = behind_options(arguments, "TPD", &["sched-runtime", "sched-period", "sched-deadline"]);
    let is_priority = |word: &&Argument| word.text.bytes().all(|byte| byte.is_ascii_digit());
    rest.get(rest.iter().take(1).filter(is_priority).count()..).unwrap_or_default()
}

/// Returns the command that `setarch` runs. The architecture may be left out if an option is the first word.
fn behind_setarch(arguments: &[Argument]) -> &[Argument] {
    let options = arguments.get(arguments.iter().take(1).filter(|word| !word.text.starts_with('-')).count()..);
    behind_options(options.unwrap_or_default(), "", &[])
}

/// Returns the words behind the options of a shell. The operand of `o` follows the whole word: `-oc pipefail`. `+x` turns an
/// option off.
pub(super) fn behind_options_of_shell(arguments: &[Argument]) -> &[Argument] {
    let mut rest = arguments;
    while let [first, more @ ..] = rest {
        let letters = first.text.strip_prefix(['-', '+']).unwrap_or_default();
        rest = match letters {
            "" => break,
            "-" => return more,
            "-rcfile" | "-init-file" => more.get(1..).unwrap_or_default(),
            "norc" | "login" | "posix" => more,
            letters if letters.len() <= 5 && !letters.starts_with('-') && letters.contains(['o', 'O']) => {
                more.get(1..).unwrap_or_default()
            }
            _ => more,
        };
    }
    rest
}

/// Returns what a shell with these arguments runs.
fn shell<'a>(arguments: &'a [Argument], input: Option<&str>) -> Option<Inner<'a>> {
    let is_flag = |word: &Argument, flag: char| {
        let letters = word.text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        letters.is_some_and(|letters| letters.contains(flag))
    };
    let rest = behind_options_of_shell(arguments);
    let options = arguments.get(..arguments.len() - rest.len()).unwrap_or_default();
    // `bash -n` only checks the syntax, unless the shell is interactive.
    let is_check = |word: &Argument| {
        let letters = word.text.strip_prefix('-').unwrap_or_default();
        letters.contains('n') && letters.chars().all(|letter| "abcefhklmnprstuvxBCEHPT".contains(letter))
    };
    let is_other = |word: &Argument| is_flag(word, 'i') || word.text.starts_with('+');
    if options.iter().any(is_check) && !options.iter().any(is_other) {
        return None;
    }
    let is_command = |word: &Argument| {
        is_option_of_text(&word.text) || matches!(word.text.as_str(), "--command" | "-Command" | "-command")
    };
    if options.iter().any(is_command) {
        let (first, more) = rest.split_first()?;
        // An argument list that was joined by blanks has lost the quotes of the text.
        let is_joined = !first.is_quoted && !first.text.contains(char::is_whitespace);
        return Some(match is_joined {
            true => Inner::text(text_of(rest)),
            false => Inner::Script { text: first.text.clone(), arguments: more.get(1..).unwrap_or_default() },
        });
    }
    let reads = options.iter().any(|word| is_flag(word, 's'));
    let stream = rest.first().filter(|word| is_stream(&word.text));
    if let Some(text) = stream.and_then(|file| file_of_source(std::slice::from_ref(file), input)) {
        return Some(Inner::text(text));
    }
    let is_input = rest.first().is_none_or(|word| word.text == "-" || word.text == "/dev/stdin");
    let of_file = rest.first().and_then(|word| word.content.clone());
    let behind = if reads && of_file.is_none() { rest } else { rest.get(1..).unwrap_or_default() };
    let text = of_file.or_else(|| input.filter(|_| reads || is_input).map(str::to_owned));
    text.map(|text| Inner::Script { text, arguments: behind })
}

/// Returns the text of the file that `source` reads, if the line shows it.
fn file_of_source(arguments: &[Argument], input: Option<&str>) -> Option<String> {
    let file = arguments.first()?;
    let is_input = matches!(file.text.as_str(), "/dev/stdin" | "-") || is_stream(&file.text);
    // Another stream than the input may be one that the line opened before.
    let not_shown = is_stream(&file.text) && !file.text.ends_with("/0");
    let input = input.or(not_shown.then_some(NOT_SHOWN));
    file.content.clone().or_else(|| input.filter(|_| is_input).map(str::to_owned))
}

/// Returns true if a path is that of a stream of the process: `/dev/fd/3`.
fn is_stream(path: &str) -> bool {
    path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/")
}

/// Returns the words that are options of a program, with the word behind them, if a command with options of its own may follow:
/// `npx rimraf -c x`.
fn before_command<'a>(program: &str, arguments: &'a [Argument]) -> &'a [Argument] {
    let verb = match program {
        "npx" | "pnpx" => 0,
        "npm" | "pnpm" => {
            let verb = arguments.iter().position(|word| matches!(word.text.as_str(), "exec" | "x" | "dlx"));
            verb.map_or(0, |at| at + 1)
        }
        _ => return arguments,
    };
    let command = behind_options(arguments.get(verb..).unwrap_or_default(), "p", &["package"]);
    let size = arguments.len() - command.len() + 1;
    arguments.get(..size).unwrap_or(arguments)
}

/// Returns the text of an option such as `-c TEXT` or `--command=TEXT`.
fn option_text(arguments: &[Argument]) -> Option<String> {
    const LONG: [&str; 6] = ["--command", "--run", "--session-command", "--call", "--exec", "--shell-command"];
    let is_option = |word: &str| {
        let letters = word.strip_prefix('-').filter(|letters| letters.bytes().all(|byte| byte.is_ascii_alphabetic()));
        letters.is_some_and(|letters| letters.ends_with('c') && letters.len() <= 4) || LONG.contains(&word)
    };
    for (at, word) in arguments.iter().enumerate() {
        if let Some((name, text)) = word.text.split_once('=')
            && LONG.contains(&name)
        {
            return Some(text.to_owned());
        }
        if word.text == "--" {
            return None;
        }
        // `su -c'rm a'`
        let joined = word.text.strip_prefix('-').and_then(|rest| rest.split_once('c'));
        if let Some((before, text)) = joined
            && has_blank(word)
            && before.bytes().all(|byte| byte.is_ascii_alphabetic())
        {
            return Some(text.to_owned());
        }
        if is_option(&word.text) {
            let rest = arguments.get(at + 1..).filter(|rest| !rest.is_empty())?;
            let first = rest.first()?;
            let is_one = first.is_quoted || first.text.contains(char::is_whitespace);
            return Some(if is_one { first.text.clone() } else { text_of(rest) });
        }
    }
    None
}

/// Returns the text of `env -S TEXT`.
fn split_text(arguments: &[Argument]) -> Option<String> {
    let own = |word: &str| {
        let of_letters =
            word.strip_prefix("-S").or_else(|| word.strip_prefix("-vS")).or_else(|| word.strip_prefix("-iS"));
        of_letters.or_else(|| word.strip_prefix("--split-string")).map(|own| own.trim_start_matches('=').to_owned())
    };
    let options = arguments.iter().take_while(|word| word.text.starts_with('-'));
    let (at, own) = options.enumerate().find_map(|(at, word)| own(&word.text).map(|own| (at, own)))?;
    Some(format!("{own} {}", text_of(arguments.get(at + 1..).unwrap_or_default())).trim().to_owned())
}

/// Returns the commands behind words such as `-exec`, up to `;` or `+`.
fn actions<'a>(arguments: &'a [Argument], names: &[&str]) -> Vec<Inner<'a>> {
    let begins = arguments.iter().enumerate().filter(|(_, word)| names.contains(&word.text.as_str()));
    let commands = begins.filter_map(|(at, _)| {
        let rest = arguments.get(at + 1..)?;
        let end = rest.iter().position(|word| matches!(word.text.as_str(), ";" | "+")).unwrap_or(rest.len());
        rest.get(..end).filter(|words| !words.is_empty()).map(Inner::Words)
    });
    commands.collect()
}

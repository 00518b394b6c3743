//! The programs that run other commands: `sudo`, `xargs`, `sh -c`, `docker exec` and the like.

use super::expanded::Argument;

/// The command or the text that a command runs.
#[derive(Debug)]
pub(super) enum Inner<'a> {
    /// The command's last words.
    Words(&'a [Argument]),
    /// A text that a shell runs.
    Script(String),
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

const fn plain(names: &'static [&'static str]) -> Runner {
    Runner { names, letters: "", long: &[], operands: 0 }
}

const RUNNERS: &[Runner] = &[
    Runner {
        names: &["sudo", "doas"],
        letters: "CDghpRrTtUu",
        long: &["user", "group", "host", "prompt", "chdir", "chroot", "role", "type", "other-user", "command-timeout"],
        operands: 0,
    },
    Runner { names: &["pkexec"], letters: "", long: &["user"], operands: 0 },
    Runner { names: &["env"], letters: "uC", long: &["unset", "chdir"], operands: 0 },
    plain(&[
        "nohup",
        "setsid",
        "command",
        "builtin",
        "busybox",
        "toybox",
        "coproc",
        "fakeroot",
        "unbuffer",
        "catchsegv",
        "nocorrect",
        "noglob",
    ]),
    Runner { names: &["exec"], letters: "a", long: &[], operands: 0 },
    Runner { names: &["time"], letters: "fo", long: &["format", "output"], operands: 0 },
    Runner { names: &["nice"], letters: "n", long: &["adjustment"], operands: 0 },
    Runner { names: &["ionice"], letters: "cnpPu", long: &["class", "classdata"], operands: 0 },
    Runner { names: &["stdbuf"], letters: "ioe", long: &["input", "output", "error"], operands: 0 },
    Runner { names: &["timeout", "gtimeout"], letters: "sk", long: &["signal", "kill-after"], operands: 1 },
    Runner {
        names: &["xargs", "gxargs"],
        letters: "adEILnPs",
        long: &["arg-file", "delimiter", "max-args", "max-procs", "max-lines", "max-chars", "process-slot-var"],
        operands: 0,
    },
    Runner {
        names: &["strace", "ltrace"],
        letters: "eopPsuaEOSbIX",
        long: &["output", "trace", "attach"],
        operands: 0,
    },
    Runner { names: &["unshare"], letters: "GRSw", long: &[], operands: 0 },
    Runner { names: &["nsenter"], letters: "tGSw", long: &["target", "setuid", "setgid"], operands: 0 },
    Runner { names: &["taskset"], letters: "", long: &[], operands: 1 },
    Runner { names: &["chrt"], letters: "TPD", long: &[], operands: 1 },
    Runner { names: &["prlimit"], letters: "p", long: &["pid"], operands: 0 },
    Runner { names: &["caffeinate"], letters: "tw", long: &[], operands: 0 },
    Runner {
        names: &["xvfb-run"],
        letters: "enspf",
        long: &["server-num", "server-args", "error-file", "auth-file"],
        operands: 0,
    },
    Runner {
        names: &["systemd-run"],
        letters: "upMtHE",
        long: &["unit", "property", "uid", "gid", "slice", "machine", "setenv"],
        operands: 0,
    },
    Runner {
        names: &["setpriv", "firejail", "valgrind", "proxychains", "proxychains4", "torsocks", "rlwrap", "cross-env"],
        letters: "",
        long: &[],
        operands: 0,
    },
    Runner { names: &["chroot"], letters: "", long: &[], operands: 1 },
    Runner { names: &["gosu", "su-exec", "setarch", "sshpass"], letters: "p", long: &[], operands: 1 },
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
        ],
        &["run"],
    ),
    (
        &["mise", "rtx", "asdf", "bundle", "npm", "pnpm", "yarn", "bun", "rbenv", "pyenv", "nodenv", "direnv"],
        &["exec", "x", "dlx"],
    ),
];

const SHELLS: &[&str] =
    &["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "csh", "tcsh", "fish", "rbash", "pwsh", "powershell"];

/// Returns what a program with these arguments runs. `input` is the text that it reads, if it is known.
pub(super) fn inner<'a>(program: &str, arguments: &'a [Argument], input: Option<&str>) -> Vec<Inner<'a>> {
    let words = |from: usize| arguments.get(from..).filter(|words| !words.is_empty()).map(Inner::Words);
    let script = |text: Option<String>| text.map(Inner::Script).into_iter().collect();
    if SHELLS.contains(&program) {
        return script(shell_script(arguments, input));
    }
    match program {
        "eval" => script(Some(text_of(arguments))),
        "trap" => script(arguments.first().filter(|word| !word.text.starts_with('-')).map(|word| word.text.clone())),
        "watch" => script(Some(text_of(behind_options(arguments, 0, "nq", &["interval"])))),
        "command" if arguments.first().is_some_and(|word| matches!(word.text.as_str(), "-v" | "-V" | "-pv")) => {
            Vec::new()
        }
        "su" | "runuser" | "script" | "nix-shell" | "nix" | "flock" if command_option(arguments).is_some() => {
            script(command_option(arguments))
        }
        "runuser" => words_behind(arguments, 0, "ug", &["user", "group"], 0),
        "flock" => words_behind(arguments, 0, "wE", &["timeout", "wait", "conflict-exit-code"], 1),
        "env" if split_text(arguments).is_some() => script(split_text(arguments)),
        "parallel" => {
            let run =
                behind_options(arguments, 0, "jIaNnLPSdC", &["jobs", "max-args", "arg-file", "delimiter", "delay"]);
            let end = run.iter().position(|word| word.text.starts_with(":::")).unwrap_or(run.len());
            script(run.get(..end).map(text_of))
        }
        "find" | "gfind" => actions(arguments, &["-exec", "-execdir", "-ok", "-okdir"]),
        "fd" | "fdfind" => actions(arguments, &["-x", "-X", "--exec", "--exec-batch"]),
        "docker" | "podman" | "nerdctl" | "docker-compose" => in_container(arguments),
        "kubectl" | "oc" => {
            let is_exec = arguments.iter().any(|word| word.text == "exec");
            let rest = arguments.iter().position(|word| word.text == "--").filter(|_| is_exec);
            rest.and_then(|at| words(at + 1)).into_iter().collect()
        }
        "ssh" => {
            let host = behind_options(arguments, 0, "BbcDEeFIiJLlmOopQRSWw", &[]);
            match host.get(1..).filter(|rest| !rest.is_empty()) {
                Some(rest) => script(Some(text_of(rest))),
                None => script(input.map(str::to_owned)),
            }
        }
        "git" => in_git(arguments),
        _ => {
            if let Some(runner) = RUNNERS.iter().find(|runner| runner.names.contains(&program)) {
                return words_behind(arguments, 0, runner.letters, runner.long, runner.operands);
            }
            let of = WITH_A_WORD.iter().find(|(names, _)| names.contains(&program));
            let verb = of.and_then(|(_, verbs)| {
                let first = arguments.iter().take_while(|word| word.text.starts_with('-')).count();
                arguments.get(first).filter(|word| verbs.contains(&word.text.as_str())).map(|_| first + 1)
            });
            let Some(from) = verb else { return Vec::new() };
            let long = [
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
            ];
            let rest = behind_options(arguments, from, "nCcpE", &long);
            // `mise x node@20 -- rm`, `direnv exec FOLDER rm`
            let tools = match program {
                "direnv" => 1,
                _ => rest.iter().take_while(|word| word.text.contains('@') && !word.text.starts_with('@')).count(),
            };
            let rest = rest.get(tools..).unwrap_or_default();
            let rest = rest.strip_prefix(&[Argument::known("--")]).unwrap_or(rest);
            if rest.is_empty() { Vec::new() } else { vec![Inner::Words(rest)] }
        }
    }
}

/// Returns what a command prints, if its words show it.
pub(super) fn printed(words: &[Argument], input: Option<&str>) -> Option<String> {
    let (first, rest) = words.split_first()?;
    match first.text.as_str() {
        "echo" => Some(text_of(rest)),
        "printf" => Some(text_of(rest).replace("\\n", "\n")),
        "cat" if rest.is_empty() => input.map(str::to_owned),
        _ => None,
    }
}

fn text_of(words: &[Argument]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// Returns the words behind the options of a command.
fn behind_options<'a>(arguments: &'a [Argument], from: usize, letters: &str, long: &[&str]) -> &'a [Argument] {
    let mut at = from;
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

/// Returns the command behind options, operands and assignments.
fn words_behind<'a>(
    arguments: &'a [Argument],
    from: usize,
    letters: &str,
    long: &[&str],
    operands: usize,
) -> Vec<Inner<'a>> {
    let rest = behind_options(arguments, from, letters, long);
    let rest = rest.get(operands..).unwrap_or_default();
    // `flock -w 5 FILE -- rm`
    let rest = rest.strip_prefix(&[Argument::known("--")]).unwrap_or(rest);
    let is_assignment = |word: &&Argument| {
        word.text.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        })
    };
    let assigned = rest.iter().take_while(is_assignment).count();
    let rest = rest.get(assigned..).unwrap_or_default();
    if rest.is_empty() { Vec::new() } else { vec![Inner::Words(rest)] }
}

/// Returns the text that a shell with these arguments runs.
fn shell_script(arguments: &[Argument], input: Option<&str>) -> Option<String> {
    let is_flag = |word: &Argument, flag: char| {
        let letters = word.text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        letters.is_some_and(|letters| letters.contains(flag))
    };
    let rest = behind_options(arguments, 0, "oO", &["rcfile", "init-file"]);
    let options = arguments.len() - rest.len();
    let is_command = |word: &Argument| is_flag(word, 'c') || matches!(word.text.as_str(), "--command" | "-Command");
    if arguments.get(..options).unwrap_or_default().iter().any(is_command) {
        let first = rest.first()?;
        // An argument list that was joined by blanks has lost the quotes of the text.
        let is_joined = !first.is_quoted && !first.text.contains(char::is_whitespace);
        return Some(if is_joined { text_of(rest) } else { first.text.clone() });
    }
    let reads = arguments.get(..options).unwrap_or_default().iter().any(|word| is_flag(word, 's'));
    let is_input = rest.first().is_none_or(|word| word.text == "-" || word.text == "/dev/stdin");
    input.filter(|_| reads || is_input).map(str::to_owned)
}

/// Returns the text of `-c TEXT`.
fn command_option(arguments: &[Argument]) -> Option<String> {
    let is_option = |word: &Argument| {
        let is_short = word.text.len() <= 3 && word.text.starts_with('-') && word.text.ends_with('c');
        is_short || matches!(word.text.as_str(), "--command" | "--run" | "--session-command")
    };
    let at = arguments.iter().position(is_option)?;
    let rest = arguments.get(at + 1..).filter(|rest| !rest.is_empty())?;
    let first = rest.first()?;
    let is_one = first.is_quoted || first.text.contains(char::is_whitespace);
    Some(if is_one { first.text.clone() } else { text_of(rest) })
}

/// Returns the text of `env -S TEXT`.
fn split_text(arguments: &[Argument]) -> Option<String> {
    let at = arguments.iter().take_while(|word| word.text.starts_with('-')).position(|word| {
        matches!(word.text.as_str(), "-S" | "--split-string")
            || word.text.starts_with("-S")
            || word.text.starts_with("-vS")
    })?;
    let rest = arguments.get(at + 1..).unwrap_or_default();
    let own = arguments.get(at).and_then(|word| word.text.strip_prefix("-S")).unwrap_or_default();
    Some(format!("{own} {}", text_of(rest)).trim().to_owned())
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

/// Returns the command that `docker exec` or `docker run` runs in a container.
fn in_container(arguments: &[Argument]) -> Vec<Inner<'_>> {
    let is_verb = |word: &Argument| matches!(word.text.as_str(), "exec" | "run");
    let Some(verb) = arguments.iter().position(is_verb) else { return Vec::new() };
    let before = arguments.get(..verb).unwrap_or_default();
    let mut is_value = false;
    let is_global = |word: &Argument| {
        let is_known = matches!(word.text.as_str(), "compose" | "container") || word.text.starts_with('-') || is_value;
        is_value = matches!(
            word.text.as_str(),
            "-f" | "--file" | "-p" | "--project-name" | "-H" | "--host" | "-c" | "--context"
        );
        is_known
    };
    if !before.iter().all(is_global) {
        return Vec::new();
    }
    const LONG: [&str; 28] = [
        "env",
        "env-file",
        "user",
        "workdir",
        "volume",
        "name",
        "network",
        "entrypoint",
        "mount",
        "platform",
        "hostname",
        "label",
        "memory",
        "publish",
        "device",
        "cap-add",
        "cap-drop",
        "cpus",
        "shm-size",
        "ulimit",
        "add-host",
        "gpus",
        "pull",
        "restart",
        "security-opt",
        "tmpfs",
        "index",
        "stop-timeout",
    ];
    let rest = behind_options(arguments, verb + 1, "euwvphlmac", &LONG);
    let rest = rest.get(1..).unwrap_or_default();
    match rest {
        [] => Vec::new(),
        // The program of the image is a shell.
        [option, script, ..] if option.text == "-c" => vec![Inner::Script(script.text.clone())],
        _ => vec![Inner::Words(rest)],
    }
}

/// Returns the commands that git runs: `git rebase --exec`, `git bisect run`.
fn in_git(arguments: &[Argument]) -> Vec<Inner<'_>> {
    let words: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    let behind = |option: &[&str]| words.iter().position(|word| option.contains(word)).and_then(|at| words.get(at + 1));
    let texts: Vec<String> = match words.iter().find(|word| !word.starts_with('-')) {
        Some(&"rebase") => behind(&["-x", "--exec"]).map(|text| (*text).to_owned()).into_iter().collect(),
        Some(&"filter-branch") => {
            behind(&["--tree-filter", "--index-filter"]).map(|text| (*text).to_owned()).into_iter().collect()
        }
        Some(&"bisect") if words.contains(&"run") => {
            let at = words.iter().position(|word| *word == "run").map_or(words.len(), |at| at + 1);
            return arguments.get(at..).filter(|rest| !rest.is_empty()).map(Inner::Words).into_iter().collect();
        }
        Some(&"submodule") if words.contains(&"foreach") => {
            let at = words.iter().position(|word| *word == "foreach").map_or(words.len(), |at| at + 1);
            let rest = behind_options(arguments, at, "", &[]);
            vec![text_of(rest)]
        }
        _ => Vec::new(),
    };
    texts.into_iter().map(Inner::Script).collect()
}

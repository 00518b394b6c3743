//! Commands that read what somebody types: shells, interpreters and clients without a script, editors, commands that write their
//! input into a file, and those that run or apply it.

use super::expanded::Argument;
use super::runners::opens_terminal;
use super::{CommandLine, is_shell};

/// A program that reads commands or code from its input, unless its arguments hold them.
struct Client {
    /// The names, without the version at the end.
    names: &'static [&'static str],
    /// The options with an operand of their own, as letters.
    with_value: &'static str,
    /// The long options with an operand of their own.
    long_with_value: &'static [&'static str],
    /// The options with which the program does not read its input, as letters and as words.
    ends: &'static str,
    long_ends: &'static [&'static str],
    /// The options with which the program reads its input whatever follows, as letters. `-` is the argument `-`.
    keeps: &'static str,
    /// The number of other arguments with which the program still reads its input.
    operands: usize,
}

const SHELL: Client = Client {
    names: &[],
    with_value: "oO",
    long_with_value: &["rcfile", "init-file"],
    ends: "c",
    long_ends: &["version", "help"],
    keeps: "s",
    operands: 0,
};

const CLIENTS: &[Client] = &[
    Client {
        names: &["python", "pypy", "ipython", "bpython", "ptpython"],
        with_value: "WX",
        long_with_value: &["check-hash-based-pycs"],
        ends: "cmhV?",
        long_ends: &["version", "help", "help-all", "help-env", "help-xoptions"],
        keeps: "i-",
        operands: 0,
    },
    Client {
        names: &["node", "nodejs"],
        with_value: "rC",
        long_with_value: &[
            "require",
            "import",
            "loader",
            "experimental-loader",
            "conditions",
            "env-file",
            "max-old-space-size",
        ],
        ends: "epcvh",
        long_ends: &["eval", "print", "check", "test", "run", "version", "help", "v8-options", "completion-bash"],
        keeps: "i-",
        operands: 0,
    },
    Client {
        names: &["ruby", "perl", "irb", "pry", "tclsh"],
        with_value: "rICMm",
        long_with_value: &[],
        ends: "eEvVhnpicy",
        long_ends: &["version", "help", "copyright", "exec"],
        keeps: "",
        operands: 0,
    },
    Client {
        names: &["php"],
        with_value: "cdz",
        long_with_value: &[],
        ends: "rfvhimBRFSlws",
        long_ends: &["version", "help", "run", "ini", "info", "file", "server"],
        keeps: "a",
        operands: 0,
    },
    Client {
        names: &["lua", "luajit", "julia"],
        with_value: "lpLt",
        long_with_value: &["threads", "procs", "load"],
        ends: "eEvh",
        long_ends: &["version", "help", "eval", "print"],
        keeps: "i",
        operands: 0,
    },
    Client {
        names: &["R", "jshell", "erl", "clj", "ocaml", "utop", "sbcl", "racket", "scala"],
        with_value: "",
        long_with_value: &[],
        ends: "efhvVMXT",
        long_ends: &["version", "help", "eval", "script", "load", "file", "args"],
        keeps: "",
        operands: 0,
    },
    Client {
        names: &["ghci"],
        with_value: "",
        long_with_value: &[],
        ends: "eV?",
        long_ends: &["version", "help"],
        keeps: "",
        operands: 99,
    },
    Client {
        names: &["iex"],
        with_value: "Sr",
        long_with_value: &["name", "sname", "cookie", "dot-iex", "erl"],
        ends: "ehv",
        long_ends: &["version", "help", "eval"],
        keeps: "",
        operands: 0,
    },
    Client {
        names: &["psql"],
        with_value: "hpUdvPFRTLo",
        long_with_value: &[
            "host",
            "port",
            "username",
            "dbname",
            "set",
            "variable",
            "pset",
            "output",
            "log-file",
            "field-separator",
            "record-separator",
            "table-attr",
        ],
        ends: "cflV?",
        long_ends: &["command", "file", "list", "version", "help"],
        keeps: "",
        operands: 2,
    },
    Client {
        names: &["mysql", "mariadb"],
        with_value: "hPuDS",
        long_with_value: &["host", "port", "user", "database", "socket", "protocol", "default-character-set"],
        ends: "eV?I",
        long_ends: &["execute", "version", "help"],
        keeps: "",
        operands: 1,
    },
    Client {
        names: &["redis-cli"],
        with_value: "hpsaun",
        long_with_value: &["user", "pass", "cacert", "cert", "key", "sni"],
        ends: "vxri",
        long_ends: &[
            "version", "help", "scan", "bigkeys", "memkeys", "hotkeys", "stat", "latency", "pipe", "rdb", "eval",
        ],
        keeps: "",
        operands: 0,
    },
    Client {
        names: &["mongosh", "mongo"],
        with_value: "up",
        long_with_value: &["host", "port", "username", "password", "authenticationDatabase"],
        ends: "fh",
        long_ends: &["eval", "file", "version", "help"],
        keeps: "",
        operands: 1,
    },
    Client {
        names: &["su"],
        with_value: "gGsw",
        long_with_value: &["group", "supp-group", "shell", "whitelist-environment"],
        ends: "chV",
        long_ends: &["command", "session-command", "version", "help"],
        keeps: "",
        operands: 1,
    },
    Client {
        names: &["ts-node", "tsx"],
        with_value: "rCOPI",
        long_with_value: &["require", "import", "project", "compiler", "compilerOptions", "tsconfig"],
        ends: "epvh",
        long_ends: &["eval", "print", "version", "help", "test", "showConfig"],
        keeps: "i",
        operands: 0,
    },
    Client {
        names: &["sftp"],
        with_value: "BcDFiJloPRSsX",
        long_with_value: &[],
        ends: "bh",
        long_ends: &[],
        keeps: "",
        operands: 1,
    },
    Client {
        names: &["script"],
        with_value: "BEImoOTt",
        long_with_value: &["echo", "log-in", "log-out", "log-io", "log-timing", "logging-format", "output-limit"],
        ends: "cVh",
        long_ends: &["command", "version", "help"],
        keeps: "",
        operands: 1,
    },
    Client {
        names: &["unshare"],
        with_value: "GRSw",
        long_with_value: &["root", "wd", "setuid", "setgid", "map-user", "map-group", "propagation"],
        ends: "Vh",
        long_ends: &["version", "help"],
        keeps: "",
        operands: 0,
    },
    Client {
        names: &["nix-shell"],
        with_value: "",
        long_with_value: &[],
        ends: "",
        long_ends: &["run", "command", "version", "help"],
        keeps: "",
        operands: 99,
    },
    Client {
        names: &["ed", "red"],
        with_value: "p",
        long_with_value: &["prompt"],
        ends: "hV",
        long_ends: &["version", "help"],
        keeps: "",
        operands: 1,
    },
    Client {
        names: &["patch", "gpatch"],
        with_value: "BDdFgopVrxYz",
        long_with_value: &[
            "directory",
            "ifdef",
            "fuzz",
            "get",
            "output",
            "prefix",
            "reject-file",
            "strip",
            "suffix",
            "version-control",
            "basename-prefix",
        ],
        ends: "ivh",
        long_ends: &["input", "version", "help", "dry-run"],
        keeps: "-",
        operands: 1,
    },
    Client {
        names: &["crontab"],
        with_value: "us",
        long_with_value: &[],
        ends: "lrVT",
        long_ends: &["help", "version"],
        keeps: "e-",
        operands: 0,
    },
    Client {
        names: &["nc", "ncat", "netcat"],
        with_value: "cegimopqsTwXx",
        long_with_value: &["exec", "sh-exec", "source", "source-port", "wait", "proxy", "proxy-type"],
        ends: "zdh",
        long_ends: &["version", "help", "recv-only"],
        keeps: "",
        operands: 2,
    },
    Client {
        names: &["ssh", "telnet", "ftp"],
        with_value: "bcDEeFIiJLlmOopRSwB",
        long_with_value: &[],
        ends: "NfVGQWO",
        long_ends: &["version", "help"],
        keeps: "",
        operands: 1,
    },
];

/// Programs with a word behind which they begin a shell, an interpreter or an editor.
const WITH_A_WORD: [(&str, &[&str]); 10] = [
    ("rails", &["console", "c", "dbconsole", "db"]),
    ("manage.py", &["shell", "shell_plus", "dbshell"]),
    ("flask", &["shell"]),
    ("poetry", &["shell"]),
    ("pipenv", &["shell"]),
    ("hatch", &["shell"]),
    ("node", &["inspect"]),
    ("docker", &["attach"]),
    ("kubectl", &["edit"]),
    ("systemctl", &["edit"]),
];

/// Programs in which somebody edits a file.
const EDITORS: [&str; 8] = ["vi", "vim", "nvim", "view", "ex", "nano", "pico", "emacs"];

/// Programs that let somebody edit a file of their own.
const OF_OWN_FILES: [&str; 4] = ["visudo", "vipw", "vigr", "sudoedit"];

/// Variables that name the editor of another program.
const OF_EDITORS: [&str; 4] = ["GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "VISUAL", "EDITOR"];

/// Programs that send what is typed to a service.
const CONNECTIONS: [&str; 4] = ["nc", "ncat", "netcat", "telnet"];

/// Programs that run or apply what is in the file of `-f` or `--file`.
const APPLY: [&str; 29] = [
    "R",
    "at",
    "awk",
    "batch",
    "bmake",
    "docker",
    "docker-compose",
    "duckdb",
    "expect",
    "gawk",
    "gmake",
    "gsed",
    "helm",
    "just",
    "kubectl",
    "kustomize",
    "make",
    "mawk",
    "mongosh",
    "nawk",
    "nerdctl",
    "ninja",
    "oc",
    "php",
    "podman",
    "podman-compose",
    "psql",
    "rake",
    "sed",
];

/// The maximum number of seconds in which no agent can type anything.
const SOON: f64 = 2.0;

/// Programs that print their input as it is, or in another order or form.
const FILTERS: [&str; 7] = ["cat", "tac", "rev", "sort", "uniq", "nl", "base64"];

/// Programs that print a part of their input or change it, as their clients, with the options that hold the script of those
/// whose first operand is one.
static FILTERS_WITH_OPTIONS: [(Client, &[&str]); 12] = [
    (filter(&["sed", "gsed"], "efl", "i", 1), &["-e", "-f", "--expression", "--file"]),
    (filter(&["awk", "gawk", "mawk"], "fFv", "V", 1), &["-f", "--file"]),
    (filter(&["grep", "egrep", "fgrep"], "efmABCdD", "rRV", 1), &["-e", "-f", "--regexp", "--file"]),
    (filter(&["jq"], "fL", "nV", 1), &["-f", "--from-file"]),
    (filter(&["tr"], "", "", 2), &[]),
    (filter(&["cut"], "bcdf", "", 0), &[]),
    (filter(&["fold"], "w", "", 0), &[]),
    (filter(&["fmt"], "gpw", "", 0), &[]),
    (filter(&["expand", "unexpand"], "t", "", 0), &[]),
    (filter(&["head", "tail"], "cn", "", 0), &[]),
    (filter(&["iconv"], "fot", "lV", 0), &[]),
    (
        filter(
            &["gzip", "gunzip", "zcat", "bzip2", "bunzip2", "bzcat", "xz", "unxz", "xzcat", "zstd"],
            "SToz",
            "lV",
            0,
        ),
        &[],
    ),
];

/// Returns a client that reads its input if no more operands follow, and ends with `--help`.
const fn filter(
    names: &'static [&'static str],
    with_value: &'static str,
    ends: &'static str,
    operands: usize,
) -> Client {
    const LONG_WITH_VALUE: &[&str] =
        &["expression", "file", "regexp", "from-file", "assign", "lines", "bytes", "fields"];
    const LONG_ENDS: &[&str] = &["help", "version", "in-place", "recursive", "null-input", "list"];
    let (long_with_value, long_ends) = (LONG_WITH_VALUE, LONG_ENDS);
    Client { names, with_value, long_with_value, ends, long_ends, keeps: "-", operands }
}

/// The commands of git that read a patch.
const GIT_PATCH: Client = Client {
    names: &[],
    with_value: "pC",
    long_with_value: &["exclude", "include", "directory", "whitespace", "patch-format"],
    ends: "hr",
    long_ends: &["help", "continue", "skip", "abort", "quit", "resolved", "retry", "show-current-patch"],
    keeps: "-",
    operands: 0,
};

/// `git commit`, which opens an editor unless it gets a message.
const GIT_COMMIT: Client = Client {
    names: &[],
    with_value: "t",
    long_with_value: &["author", "date", "template", "cleanup", "trailer", "pathspec-from-file"],
    ends: "mFCh",
    long_ends: &[
        "message",
        "file",
        "reuse-message",
        "no-edit",
        "fixup",
        "dry-run",
        "short",
        "porcelain",
        "long",
        "help",
    ],
    keeps: "",
    operands: usize::MAX,
};

/// The modules of Python that read what somebody types.
const MODULES: [&str; 5] = ["code", "pdb", "asyncio", "IPython", "bpython"];

impl CommandLine {
    /// Returns the first command of the line that reads what somebody types: a shell, an interpreter or a client without a
    /// script, an editor, or a command that runs or applies its input, or writes it into a file. A pipe, a file and a
    /// here-document are another input. A command of git that opens an editor is returned if there is no other one.
    pub fn waiting_command(&self) -> Option<&str> {
        let typed = self.typed.iter().filter_map(|place| Some((*place, self.commands.get(*place)?.as_str())));
        let typed: Vec<(usize, &str)> = typed.collect();
        let waiting = typed.iter().find(|(place, command)| {
            waits(command) && !self.ends_soon(*place, command) && !self.gets_operands(*place, command)
        });
        let has_editor = |place: usize| self.names_editor() || self.configures_editor(place);
        let in_editor = || typed.iter().find(|(place, command)| waits_in_editor(command) && !has_editor(*place));
        waiting.or_else(in_editor).map(|(_, command)| *command)
    }

    /// Returns true if the waiting command of a line waits only in an editor that git opens, and if nothing in the line takes
    /// away what git says about the editor on a terminal.
    pub fn shows_editor(line: &str, command: &str) -> bool {
        let without_or = line.replace("||", "");
        let changes_message = ["|", ">", "advice", "LANG", "LC_"].iter().any(|what| without_or.contains(what));
        waits_in_editor(command) && !waits(command) && !changes_message
    }

    /// Returns true if a connection ends before an agent can send anything: `timeout 2 nc localhost 25`. A shell may stay.
    fn ends_soon(&self, place: usize, command: &str) -> bool {
        let is_connection = command.split(' ').next().is_some_and(|program| CONNECTIONS.contains(&program));
        let runner = place.checked_sub(1).and_then(|before| self.commands.get(before));
        let seconds = runner.and_then(|runner| runner.strip_suffix(command)?.strip_prefix("timeout ")).map(str::trim);
        is_connection && seconds.is_some_and(|seconds| is_soon(seconds) && !seconds.starts_with('0'))
    }

    /// Returns true if a command prints a part of files that `xargs` or `parallel` names: `xargs -a list head > x`.
    fn gets_operands(&self, place: usize, command: &str) -> bool {
        const PLACE: [&str; 4] = ["-I", "-i", "--replace", "{"];
        let program = command.split(' ').next().unwrap_or_default();
        let mut found = without_redirections(command);
        if !FILTERS.contains(&program) && !FILTERS_WITH_OPTIONS.iter().any(|(it, _)| it.names.contains(&program)) {
            return false;
        }
        // The commands before it that run it.
        for runner in self.commands.iter().take(place).rev() {
            let runner = without_redirections(runner);
            let Some(options) = runner.strip_suffix(found.as_str()).and_then(|before| before.strip_suffix(' ')) else {
                break;
            };
            let mut words = options.split(' ');
            if matches!(words.next(), Some("xargs" | "gxargs" | "parallel")) {
                return !words.any(|word| word == "/dev/null" || PLACE.iter().any(|it| word.starts_with(it)));
            }
            found = runner;
        }
        false
    }

    /// Returns true if a command before this place makes git open no editor: `git config core.editor true`.
    fn configures_editor(&self, place: usize) -> bool {
        self.commands.iter().take(place).any(|command| {
            let command = without_redirections(command);
            let rest = command.strip_prefix("git config ").unwrap_or_default();
            let rest = ["--global ", "--local "].iter().find_map(|option| rest.strip_prefix(option)).unwrap_or(rest);
            matches!(rest, "core.editor true" | "core.editor :")
        })
    }

    /// Returns true if the line sets the editor of other programs: `GIT_EDITOR=true git commit`. An editor in which somebody
    /// edits is a command of the line.
    fn names_editor(&self) -> bool {
        let is_set = |assignment: &str| {
            let editor = assignment.split_once('=').filter(|(name, _)| OF_EDITORS.contains(name));
            let program = editor.and_then(|(_, value)| value.split(['␣', ' ']).next());
            program.is_some_and(|program| !EDITORS.contains(&program.rsplit('/').next().unwrap_or_default()))
        };
        self.others.iter().any(|it| is_set(it))
    }
}

/// Returns a command in the normal form without its redirections.
fn without_redirections(command: &str) -> String {
    command.split(' ').filter(|word| !is_redirection(word)).collect::<Vec<_>>().join(" ")
}

/// Returns true if a command in the normal form opens the editor that the user or a variable chose.
fn waits_in_editor(command: &str) -> bool {
    let mut words = command.split(' ').filter(|word| !is_redirection(word));
    if words.next() != Some("git") {
        return false;
    }
    let (command, arguments) = git_command(words);
    let has = |names: &[&str]| arguments.iter().any(|word| names.contains(word));
    match command {
        _ if has(&["--help", "-h"]) => false,
        Some("commit") => GIT_COMMIT.reads_input(&arguments),
        Some("rebase") => has(&["-i", "--interactive", "--edit-todo"]),
        Some("config") => has(&["-e", "--edit"]) || arguments.first() == Some(&"edit"),
        Some("revert") => {
            !arguments.is_empty() && !has(&["-n", "--no-commit", "--no-edit", "--abort", "--skip", "--quit"])
        }
        Some("cherry-pick" | "merge") => has(&["-e", "--edit"]) && !has(&["--no-edit"]),
        Some("tag") => {
            let has_message = |word: &&str| {
                ["--message", "--file"].iter().any(|name| word.starts_with(name))
                    || (word.starts_with('-') && !word.starts_with("--") && word.contains(['m', 'F']))
            };
            has(&["-a", "--annotate", "-s", "--sign"]) && !arguments.iter().any(has_message)
        }
        _ => false,
    }
}

/// Returns the command of git, and its arguments. A command with an editor of its own on the line has none.
fn git_command<'a>(mut words: impl Iterator<Item = &'a str>) -> (Option<&'a str>, Vec<&'a str>) {
    while let Some(word) = words.next() {
        match word {
            "-C" | "-c" => {
                let value = words.next().unwrap_or_default().to_ascii_lowercase();
                if value.starts_with("core.editor=") || value.starts_with("sequence.editor=") {
                    return (None, Vec::new());
                }
            }
            word if word.starts_with('-') => {}
            command => return (Some(command), words.collect()),
        }
    }
    (None, Vec::new())
}

/// Returns true if a command in the normal form waits for input, unless it gets another input than that of the line.
fn waits(command: &str) -> bool {
    let words: Vec<&str> = command.split(' ').collect();
    let Some((program, rest)) = words.split_first() else { return false };
    let all: Vec<&str> = rest.iter().copied().filter(|word| !is_redirection(word)).collect();
    // A script that is the input itself.
    let arguments: Vec<&str> = all.iter().copied().filter(|word| !is_device(word)).collect();
    let name = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let has = |word: &str| arguments.contains(&word);
    let first = arguments.first().copied();
    let begins = |program: &str, rest: &[&str]| {
        let word = rest.first().copied().unwrap_or_default();
        WITH_A_WORD.iter().any(|(name, words)| *name == program && words.contains(&word))
            && !rest.iter().any(|word| matches!(*word, "-c" | "--command" | "--help" | "-h"))
    };
    match name {
        _ if is_shell(program) || *program == "$SHELL" => SHELL.reads_input(&arguments),
        _ if begins(program, &arguments) => true,
        _ if EDITORS.contains(program) => edits(&arguments),
        _ if OF_OWN_FILES.contains(program) => {
            !arguments.iter().any(|word| word.starts_with("-c") || *word == "--check")
        }
        _ if has_input_as_file(&arguments) && APPLY.contains(program) => true,
        _ if reads_in_code(name, &arguments) => true,
        _ if matches!(*program, "." | "source") => all.first().is_some_and(|word| is_device(word)),
        // `sort -V` sorts by versions; the others print their own version.
        _ if FILTERS.contains(program) => {
            is_cat(&all) && writes_file(rest) && (*program == "sort" || !all.contains(&"-V"))
        }
        _ if is_filter(program, &all) => writes_file(rest) || runs_in_script(program, &all),
        "openssl" => matches!(first, Some("base64" | "enc")) && !has("-in") && (has("-out") || writes_file(rest)),
        "xxd" => {
            matches!(operands(&all).as_slice(), ["-", output] if is_file(output)) || (is_cat(&all) && writes_file(rest))
        }
        "tee" | "sponge" => arguments.iter().any(|word| is_file(word)),
        "cp" | "install" => all.iter().any(|word| is_device(word)),
        "dd" => {
            let is_input = |word: &&str| word.strip_prefix("if=").is_some_and(|file| !is_device(file));
            let is_output = |word: &&str| word.strip_prefix("of=").is_some_and(is_file);
            !all.iter().any(is_input) && (writes_file(rest) || all.iter().any(is_output))
        }
        // They run what they read, or put it into variables that the shell runs.
        "xargs" | "gxargs" => !options_before_command(&arguments).any(|word| {
            word.starts_with("-a") || word.starts_with("--arg-file") || matches!(word, "--help" | "--version")
        }),
        "parallel" => !arguments.iter().any(|word| {
            word.starts_with(":::") || matches!(*word, "-a" | "--arg-file" | "--version" | "--help" | "--citation")
        }),
        "at" => {
            !arguments.is_empty()
                && !arguments.iter().any(|word| is_short_option(word, &['f', 'l', 'r', 'c', 'd', 'V']))
        }
        "batch" => !has("-f"),
        "tar" => unpacks_input(&arguments),
        "cpio" => {
            let is_short = |letters: &[char]| arguments.iter().any(|word| is_short_option(word, letters));
            (is_short(&['i']) || has("--extract")) && !is_short(&['I', 'F', 't'])
        }
        "read" if seconds_of_read(&arguments).is_some_and(is_soon) => false,
        "read" | "mapfile" | "readarray" => !arguments.iter().any(|word| word.starts_with("-u")),
        "git" => match git_command(arguments.iter().copied()) {
            (Some("apply"), arguments) if only_reports(&arguments) => false,
            (Some("apply" | "am"), arguments) => GIT_PATCH.reads_input(&arguments),
            (Some("stash"), arguments) if matches!(arguments.first(), Some(&("show" | "list"))) => false,
            (Some(command @ ("add" | "checkout" | "commit" | "reset" | "restore" | "stash")), arguments) => {
                let asks = |word: &&str| match *word {
                    "-p" | "-pm" | "--patch" => true,
                    "--interactive" => matches!(command, "add" | "commit"),
                    "-i" | "-e" | "--edit" => command == "add",
                    _ => false,
                };
                arguments.iter().take_while(|word| **word != "--").any(asks)
            }
            _ => false,
        },
        "python" | "pypy" if arguments.windows(2).any(|pair| pair[0] == "-m" && MODULES.contains(&pair[1])) => true,
        "python" | "pypy" if first.is_some_and(|script| script.ends_with("manage.py")) => {
            begins("manage.py", arguments.get(1..).unwrap_or_default())
        }
        "perl" if has("-d") || arguments.iter().any(|word| word.starts_with("-de") || word.starts_with("-dE")) => true,
        "mongosh" | "mongo" if arguments.iter().any(|word| word.ends_with(".js")) => false,
        // The service only greets.
        "ssh" if arguments.is_empty() || arguments.iter().any(|word| word.starts_with("git@")) => false,
        "sudo" | "doas" => begins_shell(&arguments),
        "sqlite" | "duckdb" => reads_statements(&arguments),
        "deno" => arguments.is_empty() || first == Some("repl"),
        "bun" => first == Some("repl"),
        "nix" => matches!(first, Some("develop" | "shell")) && !has("-c") && !has("--command"),
        "tmux" => {
            let is_session = matches!(first, None | Some("attach" | "attach-session" | "a" | "new" | "new-session"));
            is_session && !has("-d")
        }
        "docker" | "podman" | "nerdctl" => {
            opens_terminal(&arguments.iter().map(|word| Argument::of(word)).collect::<Vec<_>>())
        }
        "gdb" | "lldb" => !is_batch(&arguments),
        "pwsh" | "powershell" => {
            let is_plain = |word: &&str| {
                let word = word.to_ascii_lowercase();
                ["-nologo", "-noprofile", "-noexit", "-interactive"].contains(&word.as_str())
            };
            arguments.iter().all(is_plain)
        }
        _ => CLIENTS.iter().find(|client| client.names.contains(&name)).is_some_and(|it| it.reads_input(&arguments)),
    }
}

/// Returns the options of a program that runs the command behind them, and their numbers: `-n 1`.
fn options_before_command<'a>(arguments: &[&'a str]) -> impl Iterator<Item = &'a str> {
    let mut is_value = false;
    arguments.iter().copied().take_while(move |word| {
        let was_value = std::mem::replace(&mut is_value, matches!(*word, "-d" | "-E" | "-I"));
        was_value || word.starts_with('-') || word.parse::<u32>().is_ok()
    })
}

/// Returns true if the program reads its input as if it were a file: `kubectl apply -f -`.
fn has_input_as_file(arguments: &[&str]) -> bool {
    arguments.windows(2).any(|pair| matches!(pair, ["-f" | "--file" | "--filename", "-"]))
        || arguments.iter().any(|word| matches!(*word, "--file=-" | "--filename=-"))
}

/// Returns true if a word is a group of options in letters with one of these.
fn is_short_option(word: &str, letters: &[char]) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains(letters)
}

/// Returns the arguments that are no options.
fn operands<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    arguments.iter().copied().filter(|word| *word == "-" || !word.starts_with('-')).collect()
}

/// Returns true if a program prints a part of its input or changes it, with these arguments.
fn is_filter(program: &str, arguments: &[&str]) -> bool {
    let Some((client, of_script)) = FILTERS_WITH_OPTIONS.iter().find(|(client, _)| client.names.contains(&program))
    else {
        return false;
    };
    // A value of `-v` may have any letter.
    let may_join = !client.with_value.contains('v');
    let is_of_script = |word: &str, option: &str| {
        let letter = option.chars().nth(1).filter(|_| may_join && !option.starts_with("--"));
        word.starts_with(option) || letter.is_some_and(|letter| is_short_option(word, &[letter]))
    };
    let has_script = arguments.iter().any(|word| of_script.iter().any(|option| is_of_script(word, option)));
    if client.names.contains(&"awk") && arguments.iter().any(|word| is_begin_alone(word)) {
        return false;
    }
    let operands = if has_script && client.operands == 1 { 0 } else { client.operands };
    Client { operands, ..*client }.reads_input(arguments) || arguments.iter().any(|word| is_device(word))
}

/// Returns true if a script of `awk` has no more than functions and the block that runs before the input is read.
fn is_begin_alone(script: &str) -> bool {
    const BETWEEN: [char; 4] = ['␣', '␤', ' ', ';'];
    let mut rest = script.trim_start_matches(BETWEEN);
    while rest.strip_prefix("function").is_some_and(|name| name.starts_with(['␣', ' '])) {
        let Some(behind) = behind_block(rest) else { return false };
        rest = behind.trim_start_matches(BETWEEN);
    }
    let behind = rest.strip_prefix("BEGIN").and_then(behind_block);
    behind.is_some_and(|behind| behind.trim_matches(BETWEEN).is_empty()) && !gets_line(script)
}

/// Returns what follows the first block in braces of a script of `awk`. Braces in a text do not count, unless a pattern or
/// a comment may have the quotes.
fn behind_block(script: &str) -> Option<&str> {
    let has_texts = !script.contains(['/', '#']);
    let (mut depth, mut is_text, mut is_escaped) = (0_u32, false, false);
    let end = script.find(|c: char| {
        if std::mem::take(&mut is_escaped) {
            return false;
        }
        match c {
            '\\' => is_escaped = has_texts,
            '"' if has_texts => is_text = !is_text,
            '{' if !is_text => depth += 1,
            '}' if !is_text => {
                depth = depth.saturating_sub(1);
                return depth == 0;
            }
            _ => {}
        }
        false
    })?;
    script.get(end + 1..)
}

/// Returns true if `getline` in a script of `awk` may read the input. `getline line < "file"` reads the file.
fn gets_line(script: &str) -> bool {
    const BLANKS: [char; 2] = ['␣', ' '];
    script.match_indices("getline").any(|(at, name)| {
        let (before, rest) = (script.get(..at).unwrap_or_default(), script.get(at + name.len()..).unwrap_or_default());
        let variable = rest.trim_start_matches(BLANKS);
        let rest = variable.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let file = rest.trim_start_matches(BLANKS).strip_prefix('<').map(|rest| rest.trim_start_matches(BLANKS));
        let file = file.and_then(|file| file.strip_prefix('"')?.split_once('"')).map(|(file, _)| file);
        let is_other =
            |file: &str| !matches!(file, "" | "-") && !["/dev", "/proc", "\\"].iter().any(|part| file.contains(part));
        before.trim_end_matches(BLANKS).ends_with('|') || !file.is_some_and(is_other)
    })
}

/// Returns true if the script of `awk` runs commands, which may be those of its input.
fn runs_in_script(program: &str, arguments: &[&str]) -> bool {
    matches!(program, "awk" | "gawk" | "mawk") && arguments.iter().any(|word| has_name(word, "system("))
}

/// Returns true if `tar` with these arguments unpacks its input. Without a file, it is the input or the tape.
fn unpacks_input(arguments: &[&str]) -> bool {
    let Some(mode) = arguments.first().filter(|word| !word.starts_with("--")) else { return false };
    if arguments.iter().any(|word| matches!(*word, "--help" | "--version")) {
        return false;
    }
    let file = arguments.windows(2).find(|pair| {
        pair[0] == "--file" || (pair[0].ends_with('f') && (pair[0] == *mode || is_short_option(pair[0], &['f'])))
    });
    let has_file = arguments.iter().any(|word| word.starts_with("--file") || is_short_option(word, &['f']));
    mode.contains('x') && file.map_or(!has_file && !mode.contains('f'), |pair| pair[1] == "-")
}

/// Returns true if `git apply` changes nothing: `git apply --check -`.
fn only_reports(arguments: &[&str]) -> bool {
    let has = |word: &str| arguments.contains(&word);
    ["--check", "--stat", "--numstat", "--summary"].into_iter().any(has) && !has("--apply")
}

/// Returns the time after which `read` ends: `read -t 1 x`.
fn seconds_of_read<'a>(arguments: &[&'a str]) -> Option<&'a str> {
    let at = arguments.iter().position(|word| word.starts_with('-') && word.contains('t'))?;
    let (_, value) = arguments.get(at)?.split_once('t')?;
    if value.is_empty() { arguments.get(at + 1).copied() } else { Some(value) }
}

/// Returns true if a number of seconds is so small that no agent can type anything.
fn is_soon(seconds: &str) -> bool {
    let number = seconds.strip_suffix('s').unwrap_or(seconds).parse::<f64>();
    number.is_ok_and(|number| (0.0..=SOON).contains(&number))
}

/// Returns true if an interpreter gets code as an argument, and the code reads the input: `python3 -c 'exec(input())'`.
fn reads_in_code(name: &str, arguments: &[&str]) -> bool {
    // The letters and the words before code, and the names of the input.
    let (letters, words, inputs): (&[char], &[&str], &[&str]) = match name {
        "python" | "pypy" => (&['c'], &[], &["sys.stdin", "input(", "open(0"]),
        "node" | "nodejs" | "bun" | "deno" => {
            (&['e', 'p'], &["--eval", "--print", "eval"], &["process.stdin", "readFileSync(0"])
        }
        "perl" | "ruby" => (&['e', 'E'], &[], &["STDIN", "$stdin", "<>", "gets"]),
        "php" => (&['r'], &[], &["STDIN", "php://stdin"]),
        _ => return false,
    };
    let is_before_code = |word: &str| {
        words.contains(&word) || (word.starts_with('-') && !word.starts_with("--") && word.ends_with(letters))
    };
    // A test may give the program another input.
    let replaces_input = |code: &str| code.contains("sys.stdin=") || code.contains("sys.stdin␣=");
    // These read the files that follow the code, if there are any.
    let is_of_files = |input: &str| matches!(input, "<>" | "gets");
    let reads = |code: &str, has_files: bool| {
        // Whether somebody types is no input.
        let code = ["process.stdin.isTTY", "sys.stdin.isatty", "STDIN.tty?", "$stdin.tty?"]
            .iter()
            .fold(code.to_owned(), |code, question| code.replace(question, ""));
        let mut inputs = inputs.iter().filter(|input| !has_files || !is_of_files(input));
        (inputs.any(|input| has_name(&code, input) && (*input != "gets" || name == "ruby"))
            || ["/dev/stdin", "/dev/tty", "/proc/self/fd/0"].iter().any(|input| has_name(&code, input)))
            && !replaces_input(&code)
    };
    (1..arguments.len()).any(|at| {
        let has_files = arguments.get(at + 1..).is_some_and(|rest| !operands(rest).is_empty());
        is_before_code(arguments[at - 1]) && reads(arguments[at], has_files)
    })
}

/// Returns true if a text has a name that is not a part of a longer one. A function of this name is not one of another object, and
/// not a text.
fn has_name(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + name.len()..).and_then(|text| text.chars().next());
        let is_other = |before: char| match name {
            "input(" => matches!(before, '\'' | '"'),
            "gets" => before == '.',
            _ => false,
        };
        let goes_on = name.ends_with(is_part) && after.is_some_and(is_part);
        !goes_on && before.is_none_or(|before| !is_part(before) && !is_other(before))
    })
}

/// Returns true if a command in the normal form passes its input on to its output as it is: `cat | sh`.
pub(super) fn passes_on(command: &str) -> bool {
    let words: Vec<&str> = command.split(' ').filter(|word| !is_redirection(word)).collect();
    match words.as_slice() {
        ["tee", ..] => true,
        ["cat", rest @ ..] => is_cat(rest),
        _ => false,
    }
}

/// Returns true if `cat` with these arguments reads its input.
fn is_cat(arguments: &[&str]) -> bool {
    let mut operands = arguments.iter().filter(|word| **word == "-" || !word.starts_with('-')).peekable();
    let is_input = operands.peek().is_none() || operands.any(|word| *word == "-" || is_device(word));
    is_input && !arguments.iter().any(|word| matches!(*word, "--version" | "--help"))
}

/// Returns true if a word is the path of the input or of the terminal.
fn is_device(word: &str) -> bool {
    matches!(word, "/dev/stdin" | "/dev/tty" | "/dev/fd/0" | "/proc/self/fd/0")
}

/// Returns true if a word of the normal form is a redirection or the other end of a pipe. `<(…)` is an argument.
fn is_redirection(word: &str) -> bool {
    word.starts_with(['<', '>']) && !word.starts_with("<(") && !word.starts_with(">(")
}

/// Returns true if a word is a file that keeps what is written to it.
fn is_file(word: &str) -> bool {
    !word.starts_with('-') && !word.starts_with("/dev/")
}

/// Returns true if a command in the normal form writes its output into a file.
fn writes_file(words: &[&str]) -> bool {
    words.iter().any(|word| word.strip_prefix('>').is_some_and(|file| is_file(file.trim_start_matches('>'))))
}

/// Returns true if an editor with these arguments waits for somebody who edits.
fn edits(arguments: &[&str]) -> bool {
    let is_end = |word: &&str| {
        matches!(
            *word,
            "-c" | "-es"
                | "-Es"
                | "-s"
                | "--cmd"
                | "--headless"
                | "--version"
                | "--help"
                | "-h"
                | "-batch"
                | "--batch"
                | "--script"
        ) || word.starts_with('+')
            || word.starts_with("--daemon")
    };
    !arguments.iter().any(is_end)
}

/// Returns true if a debugger ends by itself: `gdb -batch`, `lldb -o run -o quit`.
fn is_batch(arguments: &[&str]) -> bool {
    let is_end = |word: &&str| {
        matches!(word.trim_start_matches('-'), "batch" | "b" | "version" | "v" | "help" | "h") && word.starts_with('-')
    };
    let is_quit =
        |pair: &[&str]| matches!(pair, ["-ex" | "--ex" | "-eval-command" | "-o" | "--one-line", "quit" | "q" | "exit"]);
    arguments.iter().any(is_end) || arguments.windows(2).any(is_quit)
}

/// Returns true if `sudo` begins a shell and gets no command.
fn begins_shell(arguments: &[&str]) -> bool {
    const SUDO: Client = Client {
        names: &[],
        with_value: "CDghpRrTtUu",
        long_with_value: &["user", "group", "host", "prompt", "chdir", "chroot", "role", "type", "other-user"],
        ends: "lvVkK",
        long_ends: &[],
        keeps: "",
        operands: 0,
    };
    let is_short = |word: &str| word.starts_with('-') && !word.starts_with("--") && word.contains(['s', 'i']);
    let is_shell = |word: &&str| matches!(*word, "--shell" | "--login") || is_short(word);
    SUDO.reads_input(arguments) && arguments.iter().any(is_shell)
}

/// Returns true if SQLite or DuckDB gets a database at most, and no statement.
fn reads_statements(arguments: &[&str]) -> bool {
    let (mut operands, mut rest) = (0, arguments.iter());
    while let Some(word) = rest.next() {
        match word.strip_prefix('-').map(|option| option.trim_start_matches('-')) {
            None => operands += 1,
            Some("version" | "help" | "c" | "s" | "f") => return false,
            Some("cmd" | "init" | "separator" | "nullvalue" | "newline") => {
                rest.next();
            }
            Some(_) => {}
        }
    }
    operands <= 1
}

impl Client {
    /// Returns true if the program reads its input with these arguments.
    fn reads_input(&self, arguments: &[&str]) -> bool {
        let (mut operands, mut rest) = (0, arguments.iter());
        while let Some(word) = rest.next() {
            if *word == "-" {
                if self.keeps.contains('-') {
                    return true;
                }
            } else if let Some(long) = word.strip_prefix("--") {
                let name = long.split('=').next().unwrap_or_default();
                if self.long_ends.contains(&name) {
                    return false;
                }
                if self.long_with_value.contains(&long) {
                    rest.next();
                }
            } else if let Some(letters) = word.strip_prefix(['-', '+']) {
                for (at, letter) in letters.char_indices() {
                    if self.ends.contains(letter) {
                        return false;
                    }
                    if self.keeps.contains(letter) {
                        return true;
                    }
                    if self.with_value.contains(letter) {
                        if at + letter.len_utf8() == letters.len() {
                            rest.next();
                        }
                        break;
                    }
                }
            } else {
                operands += 1;
                if operands > self.operands {
                    return false;
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::Dialect;

    #[test]
    fn a_program_without_a_script_waits_for_input() {
        for line in [
            "bash",
            "/bin/bash -lc bash",
            "/bin/bash -lc 'python3 -i'",
            "python3 -q",
            "python3 -",
            "python3.11 -u - arg",
            "python3 -i run.py",
            "python3 -m pdb run.py",
            "bash -s",
            "bash -x",
            "bash --norc -i",
            "bash -o pipefail",
            "env bash",
            "sudo -s",
            "sudo -u app -i",
            "su - app",
            "cd /w && bash",
            "cat | sh",
            "cat - | tee log | sh",
            "ipython",
            "node",
            "sqlite3 app.db",
            "sqlite3 -header app.db",
            "psql -h db -U me app",
            "mysql -u root app",
            "redis-cli -p 6379",
            "ssh host",
            "bash --rcfile x -i",
            "psql --host h --username me --dbname app",
            "mysql --user root --host h app",
            "node --require ./x",
            "node --import tsx",
            "bash /dev/stdin",
            ". /dev/stdin",
            "bash < /dev/tty",
            "bash < /dev/stdin",
            "cat /dev/stdin | bash",
            "cat | cat | sh",
            "(cat; echo ls) | sh",
            "exec $SHELL -l",
            "script -q /dev/null",
            "unshare -r",
            "nix-shell -p jq",
            "tmux",
            "sftp host",
            "bundle exec rails console",
            "python3 manage.py shell",
            "docker run -it ubuntu",
            "docker exec -it c bash",
            "flask shell",
            "npx ts-node",
            "node inspect x.js",
            "perl -de 1",
            "cat > x.sh",
            "tee x.sh",
            "ed x",
            "vim x",
            "f() { bash; }; f",
            "f() { bash; }; f < x; f",
            "(exec < x); bash",
            "bash -c 'exec < x'; bash",
            "exec 3< x; bash",
            "while read f; do echo $f; done < list; python3",
            "echo $(python3)",
            "patch -p1",
            "patch -p 1 -d src",
            "git apply",
            "git -C sub apply -p1 -",
            "git am -3",
            "git commit",
            "git commit -a --amend",
            "git -c user.name=x commit",
            "EDITOR=vim git commit",
            "git rebase -i HEAD~3",
            "crontab",
            "crontab -",
            "crontab -u app -e",
            "visudo",
            "kubectl edit pod x",
            "kubectl apply -f -",
            "make -f - all",
            "psql -f -",
            "awk -f - x",
            "sed -i -f - x",
            "sed -f - x",
            "gsed -n --file=- x",
            "git apply --stat --apply -",
            "read -t 600 x",
            "while read -t 60 l; do eval \"$l\"; done",
            "mapfile -t lines",
            "timeout 600 nc db 25",
            "timeout 0 nc db 25",
            "timeout 2 bash",
            "git commit; vim x",
            "dd of=x.sh",
            "dd if=/dev/stdin of=x.sh",
            "cp /dev/stdin x.sh",
            "sort > x.sh",
            "base64 -d > x.sh",
            "nc -l 80",
            "xargs rm",
            "xargs -n 1 rm",
            "parallel",
            "while read l; do eval \"$l\"; done",
            "IFS= read -r line && $line",
            "python3 -c 'exec(input())'",
            "python3 -Ic 'import sys; exec(sys.stdin.read())'",
            "node -e 'eval(require(\"fs\").readFileSync(0, \"utf8\"))'",
            "perl -e 'system while <>'",
            "perl -de0",
            "sed -n p > x.sh",
            "sed -e p -e q > x.sh",
            "awk 1 > x.sh",
            "awk '{system($0)}'",
            "head > x.sh",
            "head -n 5 > x.sh",
            "grep . > x.sh",
            "tr a b > x.sh",
            "cut -d , -f 1 > x.sh",
            "iconv -f latin1 > x.sh",
            "jq . > x.json",
            "gzip -d > x.sh",
            "openssl base64 -d > x.sh",
            "xxd -r - x",
            "ruby -e 'eval gets'",
            "at now",
            "batch",
            "tar x",
            "tar -xzf -",
            "cpio -i",
            "git add -p",
            "git commit -p",
            "git commit --patch -m x",
            "git commit --interactive -m x",
            "GIT_EDITOR=true git commit -p",
            "git stash -p",
            "git revert HEAD",
            "git cherry-pick -e HEAD",
            "git tag -a v1",
            "git merge --edit x",
            "git config edit",
            "xargs -a /dev/null cat > x.sh",
            "xargs -a list head > x; head > y",
            "xargs -a list -I{} head > x",
            "xargs -d '\\n' grep -a x > y",
            "awk 'function f(){print 1} {f()}' > x",
            "awk 'BEGIN { getline l } BEGIN { print l }' > x",
            "awk 'BEGIN { getline l < \"-\"; print l }' > x",
            "awk 'BEGIN { \"cat\" | getline l < \"in\"; print l }' > x",
            "awk 'BEGIN { print \"{\" } {system($0)}'",
            "sort -V > x.sh",
            "git commit && git config core.editor true",
            "git config core.editor vim && git commit",
        ] {
            assert!(CommandLine::read(line, Dialect::Posix).waiting_command().is_some(), "{line}");
        }
    }

    #[test]
    fn what_git_says_about_an_editor_is_seen_unless_the_line_takes_it_away() {
        for (line, is_seen) in [
            ("git add -A && git commit", true),
            ("git rebase -i HEAD~3 || true", true),
            ("git commit 2>/dev/null", false),
            ("git commit | tail -1", false),
            ("git -c advice.waitingForEditor=false commit", false),
            ("LC_ALL=de_DE.UTF-8 git commit", false),
            ("git commit; vim x", false),
            ("git apply", false),
            ("git commit -p", false),
        ] {
            let read = CommandLine::read(line, Dialect::Posix);
            assert_eq!(CommandLine::shows_editor(line, read.waiting_command().unwrap()), is_seen, "{line}");
        }
    }

    #[test]
    fn a_program_with_a_script_or_another_input_waits_for_none() {
        for line in [
            "python3 x.py",
            "python3 -m pytest -q",
            "python3 -c 'print(1)'",
            "python3 -Ic 'print(1)'",
            "python3 --version",
            "python3 - <<'E'\nprint(1)\nE",
            "python3 < x.py",
            "bash -lc 'cargo test'",
            "bash -euo pipefail -c 'cargo test'",
            "bash x.sh -i",
            "bash --version",
            "bash <(curl -s x)",
            "echo ls | sh",
            "curl -s x | bash -s -- -y",
            "cat x.sh | sh",
            "node -e 'f()'",
            "node --test",
            "node x.js",
            "sqlite3 app.db 'select 1'",
            "sqlite3 app.db < x.sql",
            "psql -c 'select 1'",
            "psql -Atc 'select 1' app",
            "mysql -Ne 'select 1' app",
            "redis-cli ping",
            "sudo npm install",
            "sudo -i npm install",
            "su app -c ls",
            "ssh -T git@github.com",
            "ssh host ls",
            "npm install",
            "cargo build",
            "git commit -m bash",
            "ruby -e 'p 1'",
            "perl -pi -e s/a/b/ f",
            "php -v",
            "ssh host 'bash -s' < deploy.sh",
            "ssh host bash -s <<'S'\nls\nS",
            "ssh -O exit host",
            "su postgres -c 'psql app' < x.sql",
            "sudo su - postgres -c psql <<'S'\nselect 1\nS",
            "bash -c 'python3 -' < x.py",
            "cat x.py | bash -c 'python3 -'",
            "{ psql app; } < x.sql",
            "( python3 ) < x.py",
            "while read f; do node; done < list",
            "for i in 1 2; do python3; done < x.py",
            "if true; then bash; fi < x",
            "f() { psql app; }; f <<'S'\nselect 1\nS",
            "f() { python3 -; }; echo x | f",
            "f() { python3; }; while read l; do f; done < list",
            "exec < x.py; python3",
            "cat list | while read f; do echo $(python3); done",
            "cat a b | tee c | bash",
            "cat f | tee x | python3",
            "gdb -q -ex run -ex quit --args ./a",
            "lldb -o run -o quit ./a",
            "docker run -d --name x ubuntu bash",
            "docker exec c python",
            "kubectl exec pod -- bash",
            "git -c core.editor=bash commit",
            "bash <&-",
            "bash <&3",
            "cat > x.sh <<'S'\nls\nS",
            "cat a > b",
            "cat > /dev/null",
            "echo x | tee y",
            "vim -es x",
            "rails runner x",
            "python3 manage.py migrate",
            "perl -d:NYTProf x.pl",
            "node --require ./x x.js",
            "nix-shell -p jq --run 'jq .'",
            "docker run --rm -it node npm test",
            "patch -p1 < x.patch",
            "patch -p1 -i x.patch",
            "patch -p1 <<'P'\nx\nP",
            "git apply x.patch",
            "git apply --check -p1 x.patch",
            "git apply --check -",
            "git apply --numstat",
            "patch --dry-run -p1",
            "grep -f - x",
            "sed -n -f x.sed x",
            "read -t 1 x",
            "read -rt0.5",
            "timeout 2 nc localhost 25",
            "git am x.mbox",
            "git am --abort",
            "git diff main | git apply -R",
            "git commit -am x",
            "git commit -S -m x",
            "git commit --amend --no-edit",
            "git commit --fixup=HEAD~1",
            "git commit -F - <<'M'\nx\nM",
            "GIT_EDITOR=true git commit --amend",
            "export GIT_EDITOR=true; git commit --amend",
            "git config core.editor true && git revert HEAD",
            "git config --global core.editor : ; git commit --amend",
            "GIT_SEQUENCE_EDITOR='sed -i s/pick/drop/' git rebase -i HEAD~3",
            "git rebase main",
            "git status",
            "git log --oneline -5",
            "crontab -l",
            "crontab jobs",
            "visudo -c",
            "kubectl apply -f x.yaml",
            "rm -f -",
            "tar -c -f - dir",
            "dd if=/dev/zero of=x bs=1k count=1",
            "cp a b",
            "sort a > b",
            "nc -z localhost 80",
            "find . -name '*.py' | xargs grep -n x",
            "xargs -a list rm",
            "xargs -a list grep -l TODO > hits.txt",
            "xargs --arg-file=list grep -l TODO > hits.txt",
            "xargs -d '\\n' -a list head -n 1 > heads.txt",
            "xargs -a list sudo cat > x",
            "parallel echo ::: a b",
            "ls | while read f; do echo $f; done",
            "while read f; do echo $f; done < <(ls)",
            "read x <<< y",
            "exec 3< list; while read -u 3 l; do echo $l; done",
            "python3 -c 'from m import parse_input; parse_input(1)'",
            "python3 -c 'import subprocess; subprocess.run([\"ls\"], stdin=subprocess.DEVNULL)'",
            "python3 -c 'import io, sys; sys.stdin = io.StringIO(\"x\"); main()'",
            "echo x | python3 -c 'import sys; print(sys.stdin.read())'",
            "perl -e 'print 1'",
            "perl -e 'while(<>){print}' x",
            "perl -pe 's/<>/x/' f",
            "ruby -e 'gets' f",
            "ruby -e 'widgets(1)'",
            "git config user.name edit",
            "git config -e --help",
            "ls -f -",
            "node -e 'console.log(process.stdin.isTTY)'",
            "python3 -c \"print('input(')\"",
            "sed -n p x > y",
            "sed -e p x > y",
            "sed -ne p x > y",
            "fold -s x > y",
            "awk 'BEGIN { for (i = 0; i < 3; i++) { print i } }' > y",
            "sed -i s/a/b/ x > y",
            "cat x | sed -n p > y",
            "awk 1 x > y",
            "awk 'function f(){print 1} BEGIN{f()}' > x",
            "awk 'BEGIN { while ((getline l < \"in\") > 0) print l }' > f",
            "awk 'BEGIN { print \"{\" }' > f",
            "awk -V > v",
            "base64 -V > x",
            "tar x --help",
            "awk -f x.awk x > y",
            "awk '{system($0)}' x",
            "grep -rn x > y",
            "grep -e . x > y",
            "grep . x",
            "tr a b < x > y",
            "head -n 5 x > y",
            "head -5 x > y",
            "jq -n 1 > y",
            "jq . x > y",
            "gzip -dc x.gz > y",
            "openssl rand -hex 4 > y",
            "openssl base64 -in x > y",
            "xxd x > y",
            "tar xf x.tar",
            "tar -xzf x.tgz -C y",
            "tar czf x.tgz y",
            "tar --extract --file x.tar",
            "curl -s x | tar xz",
            "at -l",
            "git add x",
            "git add -p < answers",
            "git commit -p -m x < answers",
            "git commit -i x -m y",
            "git stash show -p",
            "git log -p",
            "git checkout -- -p",
            "git revert --no-edit HEAD",
            "git tag -a v1 -m x",
            "git tag -am x v1",
            "git tag v1",
            "git merge x",
            "git cherry-pick HEAD",
            "pytest -q",
            "cargo test",
            "./run.sh",
            "make",
        ] {
            assert_eq!(CommandLine::read(line, Dialect::Posix).waiting_command(), None, "{line}");
        }
    }
}

//! Commands that read what somebody types: shells, interpreters and clients without a script, editors, commands that write their
//! input into a file, and those that run or apply it.

mod client;
mod reads_in_code;
#[cfg(test)]
mod tests;

use client::{CLIENTS, Client, FILTERS, FILTERS_WITH_OPTIONS, GIT_COMMIT, GIT_PATCH, SHELL};
use reads_in_code::{is_begin_alone, reads_in_code, runs_in_script};

use super::expanded::Argument;
use super::runners::opens_terminal;
use super::{CommandLine, is_shell};

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

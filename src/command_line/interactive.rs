//! Commands that read what somebody types: shells, interpreters and clients without a script, editors, and commands that write
//! their input into a file.

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
        names: &["ssh", "telnet", "ftp"],
        with_value: "bcDEeFIiJLlmOopRSwB",
        long_with_value: &[],
        ends: "NfVGQWO",
        long_ends: &["version", "help"],
        keeps: "",
        operands: 1,
    },
];

/// Programs with a word behind which they begin a shell or an interpreter.
const WITH_A_WORD: [(&str, &[&str]); 8] = [
    ("rails", &["console", "c", "dbconsole", "db"]),
    ("manage.py", &["shell", "shell_plus", "dbshell"]),
    ("flask", &["shell"]),
    ("poetry", &["shell"]),
    ("pipenv", &["shell"]),
    ("hatch", &["shell"]),
    ("node", &["inspect"]),
    ("docker", &["attach"]),
];

/// Programs in which somebody edits a file.
const EDITORS: [&str; 8] = ["vi", "vim", "nvim", "view", "ex", "nano", "pico", "emacs"];

/// The modules of Python that read what somebody types.
const MODULES: [&str; 5] = ["code", "pdb", "asyncio", "IPython", "bpython"];

impl CommandLine {
    /// Returns the first command of the line that reads what somebody types: a shell, an interpreter or a client without a
    /// script, an editor, or a command that writes its input into a file. A pipe, a file and a here-document are another input.
    pub fn waiting_command(&self) -> Option<&str> {
        let mut typed = self.typed.iter().filter_map(|place| self.commands.get(*place));
        typed.find(|command| waits(command)).map(String::as_str)
    }
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
        _ if matches!(*program, "." | "source") => all.first().is_some_and(|word| is_device(word)),
        "cat" => is_cat(&all) && writes_file(rest),
        "tee" => arguments.iter().any(|word| is_file(word)),
        "python" | "pypy" if arguments.windows(2).any(|pair| pair[0] == "-m" && MODULES.contains(&pair[1])) => true,
        "python" | "pypy" if first.is_some_and(|script| script.ends_with("manage.py")) => {
            begins("manage.py", arguments.get(1..).unwrap_or_default())
        }
        "perl" if has("-d") || has("-de") => true,
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
        ] {
            assert!(CommandLine::read(line, Dialect::Posix).waiting_command().is_some(), "{line}");
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
        ] {
            assert_eq!(CommandLine::read(line, Dialect::Posix).waiting_command(), None, "{line}");
        }
    }
}

//! Programs that read their input unless their arguments hold a script, as data: shells, interpreters, clients of databases, filters
//! and commands of git. Pure.

/// A program that reads commands or code from its input, unless its arguments hold them.
pub struct Client {
    /// The names, without the version at the end.
    pub names: &'static [&'static str],
    /// The options with an operand of their own, as letters.
    pub with_value: &'static str,
    /// The long options with an operand of their own.
    pub long_with_value: &'static [&'static str],
    /// The options with which the program does not read its input, as letters and as words.
    pub ends: &'static str,
    pub long_ends: &'static [&'static str],
    /// The options with which the program reads its input whatever follows, as letters. `-` is the argument `-`.
    pub keeps: &'static str,
    /// The number of other arguments with which the program still reads its input.
    pub operands: usize,
}

impl Client {
    /// Returns true if the program reads its input with these arguments.
    pub fn reads_input(&self, arguments: &[&str]) -> bool {
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

pub const SHELL: Client = Client {
    names: &[],
    with_value: "oO",
    long_with_value: &["rcfile", "init-file"],
    ends: "c",
    long_ends: &["version", "help"],
    keeps: "s",
    operands: 0,
};

pub const CLIENTS: &[Client] = &[
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

/// Programs that print their input as it is, or in another order or form.
pub const FILTERS: [&str; 7] = ["cat", "tac", "rev", "sort", "uniq", "nl", "base64"];

/// Programs that print a part of their input or change it, as their clients, with the options that hold the script of those
/// whose first operand is one.
pub static FILTERS_WITH_OPTIONS: [(Client, &[&str]); 12] = [
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
pub const GIT_PATCH: Client = Client {
    names: &[],
    with_value: "pC",
    long_with_value: &["exclude", "include", "directory", "whitespace", "patch-format"],
    ends: "hr",
    long_ends: &["help", "continue", "skip", "abort", "quit", "resolved", "retry", "show-current-patch"],
    keeps: "-",
    operands: 0,
};

/// `git commit`, which opens an editor unless it gets a message.
pub const GIT_COMMIT: Client = Client {
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

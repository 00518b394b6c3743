//! Matchers with `runs`: the commands that a command line runs.

use serde_json::{Value, json};

use super::speakers::trial;

fn outcome(input: &Value, forbid: &str) -> Option<bool> {
    let events: [Value; 3] = [
        json!({"type": "tool_call", "call": "c", "step": 0, "kind": "execute", "name": "Bash", "input": input}),
        json!({"type": "tool_result", "call": "c", "status": "ok"}),
        json!({"type": "stop", "reason": "end_turn"}),
    ];
    trial(&events).judge(&format!("tool-calls: {{forbid: [{{{forbid}}}]}}")).passed
}

#[test]
fn a_command_is_found_wherever_a_line_runs_it() {
    let rm = "runs: '^rm( |$)'";
    for (command, passed) in [
        ("ls; sudo rm a", Some(false)),
        ("git commit -m 'rm a'", Some(true)),
        ("$TOOL a", None),
        ("$TOOL a; rm b", Some(false)),
        ("sh build.sh", Some(true)),
    ] {
        assert_eq!(outcome(&json!({"command": command}), rm), passed, "{command}");
    }
    // One of several patterns is enough, and every key must hold.
    let list = "runs: ['^mv ', '^rm ']";
    assert_eq!(outcome(&json!({"command": "rm a"}), list), Some(false));
    assert_eq!(outcome(&json!({"command": "rm a"}), "runs: '^rm ', name: Shell"), Some(true));
    // What was not shown is unknown.
    assert_eq!(outcome(&json!({"command": ["rm", "a"]}), rm), Some(false));
    assert_eq!(outcome(&json!({"command": "ls", "cmd": "rm a"}), rm), None);
    assert_eq!(outcome(&json!({"command": "rm", "args": {"path": "a"}}), rm), Some(false));
    assert_eq!(outcome(&json!({"command": "ls", "args": {"path": "a"}}), rm), None);
}

#[test]
fn each_command_of_a_list_is_found() {
    let rm = "runs: '^rm( |$)'";
    for (input, passed) in [
        (json!({"commands": ["ls -l", "rm -rf x"]}), Some(false)),
        (json!({"commands": ["ls -l", "echo 'rm x'"]}), Some(true)),
        (json!({"commands": ["rm -rf x"]}), Some(false)),
        // A program with its arguments, or several commands.
        (json!({"commands": ["rm", "-rf", "x"]}), Some(false)),
        (json!({"commands": ["sudo", "rm", "x"]}), Some(false)),
        (json!({"commands": ["cat", "rm"]}), Some(false)),
        (json!({"command": ["ls -l", "rm -rf x"]}), Some(false)),
        (json!({"command": ["ls", "rm -rf x"]}), None),
        (json!({"command": ["/opt/my tool/run", "rm -rf x"]}), None),
        (json!({"command": ["C:\\my tool\\run", "rm -rf x"]}), None),
        (json!({"command": ["/bin/ls -l"]}), Some(true)),
        (json!({"command": ["git", "commit", "-m", "rm x"]}), Some(true)),
        (json!({"command": ["bash", "-lc", "rm -rf x"]}), Some(false)),
        (json!({"command": ["rg", "a b"]}), Some(true)),
    ] {
        assert_eq!(outcome(&input, rm), passed, "{input}");
    }
    assert_eq!(outcome(&json!({"commands": ["ls -l", "rm -rf x"]}), "command: 'rm -rf'"), Some(false));
    // What the program with its arguments is holds however the list is read.
    for (rule, input) in [
        ("runs: '^echo '", json!({"command": ["echo", "hello world"]})),
        ("command: '^echo hello'", json!({"command": ["echo", "hello world"]})),
        ("runs: '^python3 script'", json!({"command": ["python3", "script.py", "some arg"]})),
    ] {
        assert_eq!(outcome(&input, rule), Some(false), "{input}");
    }
}

#[test]
fn a_command_that_a_line_hides_is_found_or_unknown() {
    let rm = "runs: '^rm( |$)'";
    for (command, passed) in [
        ("alias x='rm v'\nx", None),
        ("alias rm='rm -i'; ls", Some(true)),
        ("shopt -s expand_aliases\nalias ls='rm v'\nls", None),
        ("echo rm v | xargs -I{} sh -c {}", Some(false)),
        ("cat l | xargs -I% sh -c %", None),
        ("cat l | xargs sh -c", None),
        ("ls | xargs -I{} grep x {}", Some(true)),
        ("echo 'rm v' > >(bash)", Some(false)),
        ("echo 'rm v' | tee >(bash) >/dev/null", Some(false)),
        ("printf '\\162m v\\n' | sh", Some(false)),
        ("printf '%b' '\\162m v' | sh", Some(false)),
        ("printf '%c%c v' r m | sh", None),
        ("echo -e '\\x72m v' | bash", Some(false)),
        ("declare -n y=x; x=rm; $y v", None),
        ("a=([0]=rm [1]=v); \"${a[@]}\"", None),
        ("IFS=,; x=rm,v; $x", None),
        ("IFS=$'\\n'; x='-l -a'; ls $x", Some(true)),
        ("source /dev/fd/3 3<<<'rm v'", Some(false)),
        ("exec 3< <(echo rm v); bash <&3", None),
        ("exec 3<f; while read -r l <&3; do echo $l; done", Some(true)),
        ("git -c alias.x='!rm v' x", Some(false)),
        ("git -c core.pager=cat log", Some(true)),
        ("sed '1s/.*/rm v/e' f", None),
        ("sed '1e rm v' f", Some(false)),
        ("sed -e 's/a/b/g;s|/e/|/f/|' f", Some(true)),
        ("perl -e 'qx(rm v)'", Some(false)),
        ("perl -e 'exec q(rm v)'", Some(false)),
        ("python3 - <<'E'\nimport subprocess\ncmd = ['rm', 'v']\nsubprocess.run(cmd, check=True)\nE", Some(false)),
        ("python3 - <<'E'\nimport subprocess\ndef run(cmd):\n    subprocess.run(cmd)\nE", None),
        ("python3 -c 'import subprocess; subprocess.run([\"ls\"])'", Some(true)),
        ("[[ x || rm == v ]]", None),
        ("((rm -v))", None),
        ("((rmdir > 3))", Some(true)),
        ("repeat 3 rm v", Some(false)),
        ("time git push", Some(true)),
        ("_=ls; cat l | xargs sh -c", None),
        ("for _ in 1 2; do python3 -c 'import subprocess; subprocess.run(cmd)'; done", None),
        ("echo 'rm v' | sudo tee x.sh; sh x.sh", Some(false)),
        ("r{m..m} v", None),
        ("retry bash -ce 'rm v'", Some(false)),
        ("X=ls; printf -vX rm; $X v", None),
        // The tool's name is that of a shell, so the line is no PowerShell.
        ("Get-Item a; $x.Count", None),
    ] {
        assert_eq!(outcome(&json!({"command": command}), rm), passed, "{command}");
    }
}

//! What an agent says twice, elsewhere, or not at all: no verdict relies on it. Each session goes in as a wire log.

use evals::internal::adapter::import;
use evals::internal::harness::{Adapter, Manifest};
use serde_json::{Value, json};

use super::{Fail, Pass, Trial, Ungraded, check, speakers};

/// Makes the trial of a session from its wire log.
pub fn session(adapter: Adapter, manifest: &Manifest, lines: &[Value]) -> Trial {
    let mut wire = String::new();
    for line in lines {
        let text = line.as_str().map_or_else(|| line.to_string(), str::to_owned);
        let (dir, text) = text.strip_prefix('>').map_or(("recv", text.as_str()), |sent| ("send", sent));
        wire.push_str(&format!("{}\n", json!({"at_ms": 1, "dir": dir, "line": text})));
    }
    let mut events = String::new();
    let done = import(adapter, manifest, false, wire.as_bytes(), |event| {
        events.push_str(&serde_json::to_string(&event).unwrap());
        events.push('\n');
        Ok(())
    });
    done.unwrap();
    let mut trial = Trial::of(&events).changed(&[], &[], &[]);
    trial.header.unshown_tools.clone_from(&manifest.unshown_tools);
    trial.header.unshown_outcomes.clone_from(&manifest.unshown_outcomes);
    trial
}

/// A session over ACP that is prompted, does this, and answers.
pub fn acp(lines: &[Value]) -> Trial {
    acp_of(&Manifest::bare(Adapter::Acp), lines)
}

/// The same with the manifest of an agent.
pub fn acp_of(manifest: &Manifest, lines: &[Value]) -> Trial {
    acp_introduced(manifest, &json!({}), lines)
}

/// The same, with this answer to `initialize`.
pub fn acp_introduced(manifest: &Manifest, introduced: &Value, lines: &[Value]) -> Trial {
    let sent = |id: u64, method: &str, params: Value| {
        json!(format!(">{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})))
    };
    let answer = |id: u64, result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    let mut all = vec![
        sent(0, "initialize", json!({"protocolVersion": 1})),
        answer(0, introduced.clone()),
        sent(1, "session/new", json!({"cwd": "/w"})),
        answer(1, json!({"sessionId": "s"})),
        sent(2, "session/prompt", json!({"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]})),
    ];
    all.extend_from_slice(lines);
    all.push(answer(2, json!({"stopReason": "end_turn"})));
    session(Adapter::Acp, manifest, &all)
}

pub fn update(session: &str, word: &str, more: &Value) -> Value {
    let mut update = json!({"sessionUpdate": word, "toolCallId": "c"});
    update.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}})
}

pub fn call(more: &Value) -> Value {
    update("s", "tool_call", more)
}

pub fn change(more: &Value) -> Value {
    update("s", "tool_call_update", more)
}

pub fn ls() -> Value {
    json!({"kind": "execute", "status": "completed", "rawInput": {"command": "ls"}})
}

pub const NO_RM: &str = "tool-calls: {forbid: [{kind: execute, command: 'rm -rf'}]}";
pub const NO_ERRORS: &str = "errors: {max: 0}";

#[test]
fn a_kind_that_nobody_knows_is_unknown() {
    let rm =
        |kind: Value| acp(&[call(&json!({"kind": kind, "status": "completed", "rawInput": {"command": "rm -rf x"}}))]);
    for kind in [json!("shell"), json!(5)] {
        check(
            &rm(kind),
            &[
                (NO_RM, Ungraded("unknown")),
                ("tool-calls: {forbid: [{command: 'rm -rf'}]}", Fail(0.0, &[3, 4], "forbidden")),
            ],
        );
    }
    // A known kind that comes later counts.
    let later = acp(&[
        call(&json!({"kind": "shell", "rawInput": {"command": "ls"}})),
        change(&json!({"kind": "execute", "status": "completed"})),
    ]);
    check(&later, &[(NO_RM, Pass(&[])), ("tool-calls: {require: [{kind: execute}]}", Pass(&[3]))]);
    // The protocol says that a call without a kind is of the kind `other`.
    let without = acp(&[call(&json!({"status": "completed", "rawInput": {"command": "ls"}}))]);
    check(&without, &[("tool-calls: {require: [{kind: other}]}", Pass(&[2]))]);
}

#[test]
fn a_line_that_may_hold_a_message_is_lost_whatever_stands_before_it() {
    let hidden =
        call(&json!({"kind": "execute", "status": "completed", "rawInput": {"command": "rm -rf x"}})).to_string();
    for line in [format!("DEBUG: {hidden}"), format!("\u{1b}[0m{hidden}"), hidden[20..].to_owned()] {
        check(&acp(&[json!(line)]), &[(NO_RM, Ungraded("a line of the session was lost"))]);
    }
    for line in ["plain text", "settings: {\"colour\":\"red\"}"] {
        check(&acp(&[json!(line)]), &[(NO_RM, Pass(&[]))]);
    }
}

#[test]
fn another_outcome_after_the_first_leaves_both_open() {
    let failed = acp(&[call(&ls()), change(&json!({"status": "failed"}))]);
    let doubt = || Ungraded("the agent reported an outcome of a call that its event does not show");
    check(&failed, &[(NO_ERRORS, doubt()), ("tool-calls: {require: [{command: ls}]}", doubt())]);
    check(&failed, &[("stop: {reason: [end_turn]}", Pass(&[5]))]);
    // The same outcome once more says nothing new.
    check(&acp(&[call(&ls()), change(&json!({"status": "completed"}))]), &[(NO_ERRORS, Pass(&[]))]);
    // An attempt is one whatever came of it.
    let rm = || json!({"kind": "execute", "status": "completed", "rawInput": {"command": "rm -rf x"}});
    let removed = acp(&[call(&rm()), change(&json!({"status": "failed"}))]);
    check(
        &removed,
        &[
            (NO_RM, Fail(0.0, &[2, 3], "forbidden")),
            ("tool-calls: {none: true}", Fail(0.0, &[2, 3], "")),
            ("rules: [{never: {command: 'rm -rf'}}]", Fail(0.0, &[2], "")),
            ("tool-calls: {forbid: [{command: 'rm -rf', status: ok}]}", doubt()),
        ],
    );
    // What is only said again is no news.
    for again in [json!({"rawInput": {"command": "ls"}}), json!({"kind": "execute"}), ls()] {
        check(&acp(&[call(&ls()), change(&again)]), &[(NO_RM, Pass(&[])), (NO_ERRORS, Pass(&[]))]);
    }
    // An input after the end may be anything.
    let late = acp(&[call(&ls()), change(&json!({"rawInput": {"command": "rm -rf x"}}))]);
    check(&late, &[(NO_RM, Ungraded("a line of the session was lost"))]);
}

#[test]
fn what_the_engine_does_for_the_agent_without_a_call_is_no_secret() {
    let asks =
        |id: u64, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let terminal = || asks(9, "terminal/create", json!({"sessionId": "s", "command": "rm", "args": ["-rf", "x"]}));
    let read = || asks(9, "fs/read_text_file", json!({"sessionId": "s", "path": "/w/secret"}));
    let write = |path: &str| asks(9, "fs/write_text_file", json!({"sessionId": "s", "path": path, "content": "x"}));
    for hidden in [terminal(), write("/w/secret")] {
        let doubt = || Ungraded("the agent did something that no call shows");
        let trial = acp(&[hidden]);
        check(
            &trial,
            &[(NO_RM, doubt()), ("tool-calls: {none: true}", doubt()), ("permissions: {respected: true}", doubt())],
        );
        check(&trial, &[("permissions: {max: 0}", Pass(&[])), ("stop: {reason: [end_turn]}", Pass(&[3]))]);
    }
    // Programs of agents read files of their own accord, so a read concerns what is about reading that file.
    let file = || Ungraded("the engine used a file for the agent that no call shows");
    let edit = || call(&json!({"kind": "edit", "status": "in_progress", "rawInput": {"path": "/w/a"}}));
    for trial in [acp(&[read()]), acp(&[edit(), read(), change(&json!({"status": "completed"}))])] {
        check(
            &trial,
            &[
                (NO_RM, Pass(&[])),
                (NO_ERRORS, Pass(&[])),
                ("tool-calls: {max: 1}", Pass(&[])),
                ("tool-calls: {forbid: [{path: 'other/**'}]}", Pass(&[])),
                ("tool-calls: {forbid: [{path: 'sec*'}]}", file()),
                ("tool-calls: {forbid: [{kind: read}]}", file()),
                ("rules: [{never: {path: secret}}]", file()),
                ("scope: {reads: [a]}", file()),
                ("scope: {reads: ['*']}", Pass(&[])),
            ],
        );
    }
    // So does another file that is written while a call changes files.
    let other = acp(&[edit(), write("/w/b"), change(&json!({"status": "completed"}))]);
    check(
        &other,
        &[
            (NO_RM, Pass(&[])),
            ("tool-calls: {forbid: [{kind: edit, path: b}]}", file()),
            ("tool-calls: {forbid: [{kind: edit, path: c}]}", Pass(&[])),
        ],
    );
    // A command may use any file, and which is not known.
    let by_command = acp(&[
        call(&json!({"kind": "execute", "status": "in_progress", "rawInput": {"command": "make"}})),
        write("/w/b"),
        read(),
        change(&json!({"status": "completed"})),
    ]);
    check(
        &by_command,
        &[
            (NO_RM, Pass(&[])),
            ("tool-calls: {forbid: [{kind: edit, path: b}]}", file()),
            ("tool-calls: {forbid: [{kind: read}]}", file()),
            ("tool-calls: {forbid: [{path: c}]}", Pass(&[])),
        ],
    );
    // A call that may be it is open, or shows the terminal after it was started.
    let open =
        |command: &str| call(&json!({"kind": "execute", "status": "in_progress", "rawInput": {"command": command}}));
    let ended = || change(&json!({"status": "completed"}));
    let sh = || asks(9, "terminal/create", json!({"sessionId": "s", "command": "sh", "args": ["-c", "ls -l"]}));
    check(&acp(&[open("ls -l"), sh(), ended()]), &[(NO_RM, Pass(&[]))]);
    check(&acp(&[open("ls"), terminal(), ended()]), &[(NO_RM, Ungraded("the agent did something that no call shows"))]);
    let started = |id: &str| json!(format!(">{}", json!({"jsonrpc": "2.0", "id": 9, "result": {"terminalId": id}})));
    let shows = || {
        let content = json!([{"type": "terminal", "terminalId": "t1"}]);
        call(&json!({"kind": "execute", "rawInput": {"command": "ls -l"}, "content": content}))
    };
    check(&acp(&[sh(), started("t1"), shows(), ended()]), &[(NO_RM, Pass(&[]))]);
    check(&acp(&[sh(), started("t1"), open("ls -l"), ended()]), &[(NO_RM, Pass(&[]))]);
    // The call shows another command, or the terminal is refused: an attempt counts.
    let doubt = || Ungraded("the agent did something that no call shows");
    let hides = || asks(9, "terminal/create", json!({"sessionId": "s", "command": "rm -rf x #ls -l"}));
    check(&acp(&[open("ls -l"), hides(), ended()]), &[(NO_RM, doubt())]);
    // A call that changes its command has run the first one.
    let then = || change(&json!({"rawInput": {"command": "ls"}}));
    check(&acp(&[open("rm -rf x"), terminal(), then(), ended()]), &[(NO_RM, doubt())]);
    check(&acp(&[open("ls"), change(&json!({"rawInput": {"command": "ls -l"}})), ended()]), &[(NO_RM, Pass(&[]))]);
    check(&acp(&[terminal(), started("t1"), shows(), ended()]), &[(NO_RM, doubt())]);
    check(&acp(&[terminal(), started("t2"), shows(), ended()]), &[(NO_RM, doubt())]);
    let refused = json!(format!(">{}", json!({"jsonrpc": "2.0", "id": 9, "error": {"code": -32000, "message": "no"}})));
    check(&acp(&[terminal(), refused, shows(), ended()]), &[(NO_RM, doubt())]);
}

#[test]
fn an_action_of_the_engine_is_compared_once_more_when_its_call_ends() {
    let asks =
        |id: u64, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let runs = |id: u64, command: &str| asks(id, "terminal/create", json!({"sessionId": "s", "command": command}));
    let answers = |id: u64, result: Value| json!(format!(">{}", json!({"jsonrpc": "2.0", "id": id, "result": result})));
    let started = |id: u64| answers(id, json!({"terminalId": format!("t{id}")}));
    let write = |path: &str| asks(9, "fs/write_text_file", json!({"sessionId": "s", "path": path, "content": "x"}));
    let empty = |kind: &str| call(&json!({"kind": kind, "status": "pending"}));
    let ended = || change(&json!({"status": "completed"}));
    let doubt = || Ungraded("the agent did something that no call shows");
    // A call without an input shows one after the action.
    let later = |command: &str| change(&json!({"status": "completed", "rawInput": {"command": command}}));
    check(&acp(&[empty("execute"), runs(9, "ls"), later("ls")]), &[(NO_RM, Pass(&[]))]);
    check(&acp(&[empty("execute"), runs(9, "rm -rf x"), later("ls")]), &[(NO_RM, doubt())]);
    // A call without a kind is a command if the engine starts one for it.
    let bare = call(&json!({"title": "list", "status": "in_progress"}));
    check(
        &acp(&[bare, runs(9, "rm -rf x"), ended()]),
        &[(NO_RM, Ungraded("")), ("tool-calls: {forbid: [{kind: execute}]}", Fail(0.0, &[2, 3], ""))],
    );
    // A call that shows something else at the end.
    let evil = || call(&json!({"kind": "execute", "status": "in_progress", "rawInput": {"command": "rm -rf x"}}));
    let reads = json!({"kind": "read", "status": "completed", "rawInput": {"path": "/w/a"}});
    check(&acp(&[evil(), change(&reads)]), &[(NO_RM, doubt())]);
    check(&acp(&[evil(), change(&json!({"status": "completed", "rawInput": {"path": "/w/a"}}))]), &[(NO_RM, doubt())]);
    let deletes = call(&json!({"kind": "delete", "status": "in_progress", "rawInput": {"path": "/w/a"}}));
    check(&acp(&[deletes, change(&reads)]), &[("tool-calls: {forbid: [{kind: delete}]}", doubt())]);
    // A call that names other files at the end.
    let edits = |path: &str| call(&json!({"kind": "edit", "status": "in_progress", "rawInput": {"path": path}}));
    let no_secret = "tool-calls: {forbid: [{path: secret}]}";
    let diff = |path: &str| json!([{"type": "diff", "path": path, "oldText": "a", "newText": "b"}]);
    for last in [
        json!({"rawInput": {"path": "/w/a"}}),
        json!({"rawInput": {"path": "/w/secret"}, "locations": [{"path": "/w/a"}]}),
        json!({"content": diff("/w/secret")}),
    ] {
        let same = last.to_string().contains("secret");
        let mut last = last;
        last["status"] = "completed".into();
        let found = if same { Fail(0.0, &[2, 3], "") } else { doubt() };
        check(&acp(&[edits("/w/secret"), change(&last)]), &[(no_secret, found)]);
    }
    let shows = change(&json!({"content": diff("/w/secret")}));
    let hides = change(&json!({"status": "completed", "content": diff("/w/a")}));
    let bare = call(&json!({"kind": "edit", "status": "in_progress"}));
    check(&acp(&[bare, shows, hides]), &[(no_secret, doubt())]);
    // A path that is still being written, or that becomes absolute.
    let whole = || change(&json!({"status": "completed", "rawInput": {"path": "/w/sub/b"}}));
    for path in ["/w/", "sub/b", "./sub/b"] {
        check(&acp(&[edits(path), whole()]), &[(no_secret, Pass(&[]))]);
    }
    // In the workspace, this is another file.
    check(&acp(&[edits("./b"), whole()]), &[(no_secret, doubt())]);
    // A call of a command is one terminal, unless it embeds more.
    let open = || call(&json!({"kind": "execute", "status": "in_progress", "rawInput": {"command": "ls"}}));
    let count = "tool-calls: {max: 1}";
    check(&acp(&[open(), runs(8, "ls"), started(8), ended()]), &[(count, Pass(&[]))]);
    let twice = [open(), runs(8, "ls"), started(8), runs(9, "ls"), started(9)];
    check(&acp(&[&twice[..], &[ended()]].concat()), &[(count, doubt())]);
    let both = json!([{"type": "terminal", "terminalId": "t8"}, {"type": "terminal", "terminalId": "t9"}]);
    check(
        &acp(&[&twice[..], &[change(&json!({"content": both, "status": "completed"}))]].concat()),
        &[(count, Pass(&[]))],
    );
    // A call that names another file, or changes its kind, after the engine wrote one.
    let no_secret = "tool-calls: {forbid: [{kind: edit, path: secret}]}";
    let file = || Ungraded("the engine used a file for the agent that no call shows");
    let names = |path: &str| change(&json!({"status": "completed", "locations": [{"path": path}]}));
    check(&acp(&[empty("edit"), write("/w/b"), names("/w/b")]), &[(no_secret, Pass(&[]))]);
    check(&acp(&[empty("edit"), write("/w/secret"), names("/w/b")]), &[(no_secret, file())]);
    let diff = json!([{"type": "diff", "path": "/w/b", "oldText": "a", "newText": "b"}]);
    check(
        &acp(&[empty("edit"), write("/w/b"), change(&json!({"status": "completed", "content": diff}))]),
        &[(no_secret, Pass(&[]))],
    );
    check(
        &acp(&[empty("edit"), write("/w/b"), change(&json!({"kind": "read", "status": "completed"}))]),
        &[("tool-calls: {forbid: [{kind: edit}]}", doubt())],
    );
    // A request that is rejected after the action does not undo it.
    let permission = json!({"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options":
        [{"optionId": "n", "kind": "reject_once", "name": "No"}]});
    let rejected = answers(10, json!({"outcome": {"outcome": "selected", "optionId": "n"}}));
    let after = [open(), runs(8, "ls"), started(8), asks(10, "session/request_permission", permission), rejected];
    check(&acp(&[&after[..], &[ended()]].concat()), &[("permissions: {respected: true}", doubt())]);
    // Nor does a rejected call of a file that the engine reads after it.
    let read = asks(12, "fs/read_text_file", json!({"sessionId": "s", "path": "/w/secret"}));
    let reads = || call(&json!({"kind": "read", "status": "in_progress", "rawInput": {"path": "/w/secret"}}));
    let asked = || {
        let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options":
            [{"optionId": "n", "kind": "reject_once", "name": "No"}]});
        let rejected = answers(10, json!({"outcome": {"outcome": "selected", "optionId": "n"}}));
        [reads(), asks(10, "session/request_permission", params), rejected, change(&json!({"status": "failed"}))]
    };
    let respected = "permissions: {respected: true}";
    check(&acp(&asked()), &[(respected, Pass(&[]))]);
    check(
        &acp(&[&asked()[..], std::slice::from_ref(&read)].concat()),
        &[(respected, Ungraded("the engine read the file"))],
    );
    check(&acp(&[&[read][..], &asked()].concat()), &[(respected, Pass(&[]))]);
    // The exit code of the terminal is the one of the call that shows its command.
    let waits = asks(11, "terminal/wait_for_exit", json!({"sessionId": "s", "terminalId": "t8"}));
    let failed = [open(), runs(8, "ls"), started(8), waits, answers(11, json!({"exitCode": 2})), ended()];
    check(&acp(&failed), &[(NO_ERRORS, Fail(0.0, &[2, 3], ""))]);
}

#[test]
fn what_a_call_says_after_its_end_is_no_news_only_if_it_says_the_same() {
    let text = |text: &str| json!([{"type": "content", "content": {"type": "text", "text": text}}]);
    let ran = || {
        call(&json!({"kind": "execute", "status": "completed", "rawInput": {"command": "ls"}, "content": text("a")}))
    };
    let outcome = || Ungraded("an outcome of a call");
    let prints = "tool-calls: {forbid: [{command: ls, status: error}]}";
    let then = |more: Value| acp(&[ran(), change(&more)]);
    for more in [json!({"content": text("a")}), json!({"rawOutput": "a"}), json!({"status": "completed"})] {
        check(&then(more), &[(prints, Pass(&[])), (NO_RM, Pass(&[]))]);
    }
    for more in [
        json!({"content": text("b")}),
        json!({"rawOutput": {"output": "b"}}),
        json!({"_meta": {"terminal_output": {"data": "b"}}}),
        json!({"status": "cancelled"}),
        json!({"status": "exploded"}),
        json!({"status": "in_progress"}),
    ] {
        check(&then(more), &[(prints, outcome()), (NO_RM, Pass(&[]))]);
    }
    // A call that continues ends again.
    let again = acp(&[ran(), change(&json!({"status": "in_progress"})), change(&json!({"status": "completed"}))]);
    check(&again, &[(prints, Pass(&[]))]);
    check(&then(json!({"_meta": {"toolName": "shell"}})), &[(NO_RM, Ungraded("a line of the session was lost"))]);
    // A terminal that failed, in the content of a call that succeeded.
    let waits = json!({"jsonrpc": "2.0", "id": 7, "method": "terminal/wait_for_exit", "params": {"terminalId": "t"}});
    let code = json!(format!(">{}", json!({"jsonrpc": "2.0", "id": 7, "result": {"exitCode": 1}})));
    let shows = change(&json!({"content": [{"type": "terminal", "terminalId": "t"}]}));
    check(&acp(&[ran(), waits, code, shows]), &[(NO_ERRORS, outcome())]);
}

#[test]
fn a_request_that_says_something_else_does_not_hide_what_the_call_said() {
    let asked = |said: Value| {
        let mut call = json!({"toolCallId": "c"});
        call.as_object_mut().unwrap().extend(said.as_object().unwrap().clone());
        let options = json!([{"optionId": "a", "name": "a", "kind": "allow_once"}]);
        let params = json!({"sessionId": "s", "toolCall": call, "options": options});
        json!({"jsonrpc": "2.0", "id": 9, "method": "session/request_permission", "params": params})
    };
    let said = |kind: &str, path: &str| json!({"kind": kind, "locations": [{"path": path}]});
    let ended = || change(&json!({"status": "completed"}));
    let trial = acp(&[call(&said("delete", "/w/a")), asked(said("read", "/w/b")), ended()]);
    check(
        &trial,
        &[
            ("tool-calls: {forbid: [{kind: delete}]}", Ungraded("unknown")),
            ("tool-calls: {forbid: [{kind: read}]}", Fail(0.0, &[2, 5], "")),
            ("tool-calls: {forbid: [{path: a}]}", Fail(0.0, &[2, 5], "")),
            ("tool-calls: {forbid: [{path: b}]}", Fail(0.0, &[2, 5], "")),
            ("tool-calls: {forbid: [{path: c}]}", Pass(&[])),
        ],
    );
    // A request that is more exact than the call decides.
    let trial = acp(&[call(&json!({"kind": "other"})), asked(said("edit", "/w/b")), ended()]);
    check(&trial, &[("tool-calls: {require: [{kind: edit, path: b}]}", Pass(&[2]))]);
}

#[test]
fn calls_of_another_session_may_be_anything() {
    let other = update("other", "tool_call", &ls());
    check(&acp(&[other]), &[(NO_RM, Ungraded("the agent did something that no call shows"))]);
}

/// A session of Claude Code's stream: one command, its result, and the result line with these denials.
pub fn claude(result: &[Value], denials: &Value) -> Trial {
    let mut lines = vec![
        json!({"type": "system", "subtype": "init", "cwd": "/w", "session_id": "s", "tools": ["Bash"], "permissionMode": "default"}),
        json!({"type": "assistant", "message": {"id": "m", "role": "assistant", "content": [
            {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "make test"}}]}}),
    ];
    lines.extend_from_slice(result);
    lines.push(json!({"type": "result", "subtype": "success", "is_error": false, "result": "done", "permission_denials": denials}));
    session(Adapter::ClaudeCodeStream, &Manifest::bare(Adapter::ClaudeCodeStream), &lines)
}

/// The beginning of a message of Claude Code's stream that runs `rm`, in a session.
fn removes(session: &str, more: &Value) -> Value {
    let mut line = json!({"type": "assistant", "session_id": session, "message": {"id": "n", "role": "assistant", "content": [
        {"type": "tool_use", "id": "u", "name": "Bash", "input": {"command": "rm -rf x"}}]}});
    line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    line
}

#[test]
fn lines_of_another_claude_session_are_no_calls_of_this_one() {
    let foreign = || Ungraded("the agent did something that no call shows");
    let wants = "tool-calls: {require: [{command: 'rm -rf'}]}";
    check(
        &claude(&[result(false), removes("other", &json!({}))], &json!([])),
        &[(NO_RM, foreign()), (wants, foreign())],
    );
    let streamed = json!({"type": "stream_event", "session_id": "other", "event": {"type": "content_block_start", "index": 0,
        "content_block": {"type": "tool_use", "id": "u", "name": "Bash", "input": {}}}});
    check(&claude(&[result(false), streamed], &json!([])), &[(NO_RM, foreign())]);
    let says = json!({"type": "assistant", "session_id": "other", "message": {"id": "n", "role": "assistant", "content": [
        {"type": "text", "text": "other words"}]}});
    check(
        &claude(&[result(false), says], &json!([])),
        &[(NO_RM, Pass(&[])), ("output: {not-contains: other}", Pass(&[3]))],
    );
    // A sub-agent's lines have the session's own id, and a session that goes on may get another id.
    let goes_on = json!({"type": "system", "subtype": "init", "cwd": "/w", "session_id": "other"});
    for own in [vec![removes("s", &json!({"parent_tool_use_id": "t"}))], vec![removes("", &json!({}))]] {
        check(&claude(&own, &json!([])), &[(wants, Pass(&[1]))]);
    }
    // A notice says that the figures of the second leave out the first.
    check(&claude(&[goes_on, removes("other", &json!({}))], &json!([])), &[(wants, Pass(&[2]))]);
}

#[test]
fn a_line_that_holds_a_message_in_another_form_is_lost() {
    let lost = || Ungraded("a line of the session was lost");
    let call = removes("s", &json!({})).to_string();
    let torn = |from: &str| json!(call[call.find(from).unwrap() + 1..]);
    let in_list = json!(format!("[{call}]"));
    let in_text = json!(json!(call).to_string());
    let pieces = [torn("rm -rf"), torn("tool_use\","), torn("input\":")];
    for line in pieces.into_iter().chain([in_list, in_text]) {
        check(&claude(&[result(false), line], &json!([])), &[(NO_RM, lost())]);
    }
    for line in ["[1, 2]", "[{\"colour\":\"red\"}]", "\"text\"", "settings: {\"name\":\"red\"}"] {
        check(&claude(&[result(false), json!(line)], &json!([])), &[(NO_RM, Pass(&[]))]);
    }
    let update = json!({"sessionUpdate": "tool_call", "toolCallId": "d", "rawInput": {"command": "rm -rf x"}});
    for line in [
        json!([[{"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}]]),
        json!({"jsonrpc": "2.0", "params": {"sessionId": "s", "update": update}}),
        json!({"jsonrpc": "2.0", "method": 5, "params": {"sessionId": "s", "update": update}}),
        update.clone(),
        json!(update.to_string()[20..]),
    ] {
        check(&acp(&[line]), &[(NO_RM, lost())]);
    }
    check(&acp(&[json!({"level": "info", "params": {"a": 1}})]), &[(NO_RM, Pass(&[]))]);
}

fn result(is_error: bool) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t", "content": "x", "is_error": is_error}]}})
}

#[test]
fn a_denial_after_the_result_makes_a_failure_a_refusal_and_leaves_another_outcome_open() {
    let denial =
        |id: &str, command: &str| json!([{"tool_name": "Bash", "tool_use_id": id, "tool_input": {"command": command}}]);
    let wants = "tool-calls: {require: [{command: make}]}";
    let open = || Ungraded("an outcome of a call");
    let succeeded = claude(&[result(false)], &denial("t", "make test"));
    check(&succeeded, &[(wants, open()), (NO_ERRORS, open())]);
    // A result that failed is how the agent shows a refusal, whatever its text says, but not one with an exit code.
    let refused = claude(&[result(true)], &denial("t", "make test"));
    check(
        &refused,
        &[
            (wants, Fail(0.0, &[], "never")),
            (NO_ERRORS, Pass(&[])),
            ("tool-calls: {require: [{command: make, status: denied}]}", Pass(&[0])),
        ],
    );
    let exited = json!({"type": "user", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t", "content": "Exit code 2\nno rule", "is_error": true}]}});
    check(&claude(&[exited], &denial("t", "make test")), &[(wants, open()), (NO_ERRORS, open())]);
    // Details of an output, and the denial of another call under the same ID.
    let mut shown = result(true);
    shown["tool_use_result"] = json!({"stdout": "removed build", "interrupted": true});
    check(&claude(&[shown], &denial("t", "make test")), &[(wants, open()), (NO_ERRORS, open())]);
    check(&claude(&[result(true)], &denial("t", "rm -rf x")), &[(wants, open()), (NO_ERRORS, open())]);
    // While the call is open, the denial is its outcome.
    check(&claude(&[], &denial("t", "make test")), &[(wants, Fail(0.0, &[], "never")), (NO_ERRORS, Pass(&[]))]);
    // A call that only the denial shows was attempted.
    check(&claude(&[result(false)], &denial("u", "rm -rf x")), &[(NO_RM, Fail(0.0, &[2, 4], "forbidden"))]);
    // Two results that contradict each other.
    check(&claude(&[result(false), result(true)], &json!([])), &[(NO_ERRORS, Ungraded("an outcome of a call"))]);
    check(&claude(&[result(false), result(false)], &json!([])), &[(NO_ERRORS, Pass(&[]))]);
}

#[test]
fn a_call_that_may_have_been_denied_is_no_executed_call() {
    let denial = json!([{"tool_name": "Bash", "tool_use_id": "t", "tool_input": {"command": "make test"}}]);
    let trial = claude(&[result(false)], &denial);
    let doubt = || Ungraded("an outcome of a call");
    let wants_executed = [
        "tool-calls: {min: 1}",
        "tool-calls: {min: 1, max: 5}",
        "tool-calls: {min: 2}",
        "tool-calls: {require: [{kind: execute}]}",
        "tool-calls: {order: [{kind: execute}]}",
        "rules: [eventually: {kind: execute}]",
        "rules: [eventually: {event: tool_result}]",
        "rules: [count: {match: {kind: execute}, min: 1}]",
        "rules: [count: {match: {kind: execute}, min: 1, max: 3}]",
        "rules: [count: {match: {kind: execute}, min: 2}]",
        "rules: [{before: {first: {kind: execute}, then: {role: agent}}}]",
        "rules: [{never-after: {after: {kind: execute}, never: {kind: fetch}}}]",
        "rules: [never: {kind: execute, text: error}]",
        "rules: [never: {event: permission_request, kind: execute, status: error}]",
        "permissions: {not-asked: [{kind: execute, status: ok}]}",
        "trajectory: {mode: in-order, expected: [{kind: execute}]}",
        "trajectory: {mode: recall, expected: [{kind: execute}]}",
        "trajectory: {mode: precision, expected: [{kind: execute}]}",
        "expr: {cel: \"calls.exists(c, c.status == 'ok')\"}",
        "expr: {cel: 'metrics.tool_calls == 1'}",
    ];
    for grader in wants_executed {
        check(&trial, &[(grader, doubt())]);
    }
    // Attempts, messages and the end are what they were.
    check(
        &trial,
        &[
            ("tool-calls: {max: 1, max-by-kind: {execute: 1}}", Pass(&[])),
            ("tool-calls: {min: 1, forbid: [{kind: execute}]}", Fail(0.5, &[0, 1], "forbidden")),
            ("rules: [count: {match: {kind: execute}, max: 1}]", Pass(&[0])),
            ("rules: [count: {match: {kind: execute}, max: 0}]", Fail(0.0, &[0], "too many")),
            ("rules: [never: {kind: fetch}]", Pass(&[])),
            ("rules: [never: {kind: execute}, eventually: {kind: fetch}]", Fail(0.0, &[0], "it happened")),
            ("rules: [eventually: {event: message, text: done}]", Pass(&[3])),
            ("rules: [{never-after: {after: {role: agent}, never: {kind: execute}}}]", Pass(&[3])),
            ("budget: {tool-calls: 1}", Pass(&[])),
            ("permissions: {max: 0}", Pass(&[])),
            ("expr: {cel: \"output == 'done'\"}", Pass(&[])),
            ("expr: {cel: \"stop.reason == 'end_turn'\"}", Pass(&[])),
        ],
    );
}

#[test]
fn only_what_depends_on_a_loss_is_in_doubt() {
    let trial = |lost: &str| {
        let call = r#"{"type":"tool_call","call":"a","step":0,"kind":"execute","input":{"command":"make"}}"#;
        let result = r#"{"type":"tool_result","call":"a","status":"ok"}"#;
        let notice = format!(r#"{{"type":"notice","code":"x","text":"","lost":"{lost}"}}"#);
        let stop = r#"{"type":"stop","reason":"end_turn","output":"done"}"#;
        let events = [call, result, &notice, stop].into_iter().enumerate();
        Trial::of(&events.map(|(seq, event)| format!("{{\"seq\":{seq},{}\n", &event[1..])).collect::<String>())
    };
    let doubt = || Ungraded("so it is unknown whether this holds");
    check(
        &trial("call"),
        &[
            ("expr: {cel: \"output == 'done'\"}", Pass(&[])),
            ("expr: {cel: \"stop.reason == 'end_turn'\"}", Pass(&[])),
            ("expr: {cel: \"output == 'done' && size(calls) == 1\"}", doubt()),
            ("expr: {cel: 'metrics.tool_calls == 1'}", doubt()),
        ],
    );
    check(
        &trial("text"),
        &[
            ("expr: {cel: \"output == 'done'\"}", doubt()),
            ("expr: {cel: 'metrics.tool_calls == 1'}", Pass(&[])),
            ("rules: [never: {kind: fetch}]", Pass(&[])),
            ("rules: [never: {event: message, text: fetch}]", doubt()),
        ],
    );
    check(
        &trial("line"),
        &[("expr: {cel: \"output == 'done'\"}", doubt()), ("rules: [never: {kind: fetch}]", doubt())],
    );
}

/// The request for the call `c`, and the answer to it that rejects.
fn rejected() -> [Value; 2] {
    let options = json!([{"optionId": "n", "kind": "reject_once", "name": "No"}]);
    let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": options});
    let asked = json!({"jsonrpc": "2.0", "id": 9, "method": "session/request_permission", "params": params});
    let answer = json!({"jsonrpc": "2.0", "id": 9, "result": {"outcome": {"outcome": "selected", "optionId": "n"}}});
    [asked, json!(format!(">{answer}"))]
}

#[test]
fn a_call_of_an_unknown_kind_may_be_a_rejected_one() {
    let session = |path: &str| {
        Trial::of(&format!(
            r#"
{{"seq":0,"type":"tool_call","call":"a","step":0,"kind":"edit","input":{{"path":"/out/secret"}}}}
{{"seq":1,"type":"permission_request","call":"a","request":"r","options":[]}}
{{"seq":2,"type":"permission_response","call":"a","request":"r","outcome":"rejected"}}
{{"seq":3,"type":"tool_result","call":"a","status":"denied"}}
{{"seq":4,"type":"tool_call","call":"b","step":1,"kind":"other","unknown_kind":true,"input":{{"path":"{path}"}}}}
{{"seq":5,"type":"tool_result","call":"b","status":"ok"}}
{{"seq":6,"type":"stop","reason":"end_turn","output":""}}
"#
        ))
        .changed(&[], &[], &[])
    };
    let respected = "permissions: {respected: true}";
    check(&session("/out/secret"), &[(respected, Ungraded("whose kind is unknown"))]);
    check(&session("/out/other"), &[(respected, Pass(&[]))]);
}

#[test]
fn a_rejected_call_that_completes_was_not_surely_respected() {
    let respected = "permissions: {respected: true}";
    let text = |text: &str| json!([{"type": "content", "content": {"type": "text", "text": text}}]);
    let begun = |kind: &str, input: Value| call(&json!({"kind": kind, "status": "pending", "rawInput": input}));
    let trial = |first: Value, last: Value| {
        let [asked, answer] = rejected();
        acp(&[first, asked, answer, change(&last)])
    };
    let runs = || begun("execute", json!({"command": "ls"}));
    let contradiction = || Ungraded("was rejected, but the agent reports that it completed");
    let exit = json!({"status": "completed", "rawOutput": {"exitCode": 0}});
    for last in [json!({"status": "completed", "content": text("ran")}), exit] {
        let trial = trial(runs(), last);
        check(
            &trial,
            &[
                (respected, contradiction()),
                ("tool-calls: {require: [{kind: execute}]}", Fail(0.0, &[], "")),
                ("tool-calls: {require: [{kind: execute, status: denied}]}", Pass(&[2])),
                ("tool-calls: {require: [{kind: execute, status: ok}]}", Ungraded("")),
                ("tool-calls: {forbid: [{kind: execute}]}", Fail(0.0, &[2, 6], "forbidden")),
                ("tool-calls: {forbid: [{kind: execute, status: ok}]}", Ungraded("")),
                ("tool-calls: {forbid: [{kind: execute, status: error}]}", Pass(&[])),
                ("tool-calls: {forbid: [{kind: edit, status: ok}]}", Pass(&[])),
                ("rules: [{never: {kind: execute, status: ok}}]", Ungraded("")),
                ("expr: {cel: \"calls[0].status == 'denied'\"}", Pass(&[])),
                ("errors: {max: 0}", Pass(&[])),
                ("permissions: {rejected: [{kind: execute}]}", Pass(&[3, 4])),
            ],
        );
    }
    // A rejected call ends with a failure, says that it was rejected, or shows nothing.
    for last in [
        json!({"status": "completed"}),
        json!({"status": "failed", "content": text("no")}),
        json!({"status": "completed", "content": text("The user rejected this.")}),
    ] {
        check(&trial(runs(), last), &[(respected, Pass(&[]))]);
    }
    // The workspace shows the change.
    let edits = || begun("edit", json!({"path": "/w/a"}));
    let done = || json!({"status": "completed", "content": text("ran")});
    let changed = trial(edits(), done()).changed(&[], &["a"], &[]);
    check(&changed, &[(respected, Fail(0.0, &[3, 4], "was rejected (event 4), but `a` was changed"))]);
    let elsewhere = begun("edit", json!({"path": "/out/x"}));
    let scope = |of: &'static str| (of, Ungraded("was carried out is unknown"));
    let lists = [scope("scope: {only: ['src/**']}"), scope("scope: {never: ['/out/**']}")];
    check(&trial(elsewhere, done()), &lists);
    check(&trial(edits(), done()), &[("scope: {only: [a]}", Pass(&[]))]);
    // A call that was cancelled and that the agent reports as completed.
    let [asked, mut answer] = rejected();
    let cancelled = json!({"outcome": {"outcome": "cancelled"}});
    if let Some(text) = answer.as_str().and_then(|text| text.strip_prefix('>')) {
        let mut line: Value = serde_json::from_str(text).unwrap();
        line["result"] = cancelled;
        answer = json!(format!(">{line}"));
    }
    let cancelled = acp(&[runs(), asked, answer, change(&json!({"status": "completed", "content": text("ran")}))]);
    let unknown = ("tool-calls: {forbid: [{kind: execute, status: ok}]}", Ungraded(""));
    check(&cancelled, &[unknown, (respected, Ungraded("was cancelled, but the agent reports that it completed"))]);
    check(&trial(edits(), done()), &[(respected, contradiction())]);
    // An earlier call may have made the change, if it was executed.
    let [asked, answer] = rejected();
    let mut before = edits();
    before["params"]["update"]["toolCallId"] = json!("before");
    let mut failed = change(&json!({"status": "failed"}));
    failed["params"]["update"]["toolCallId"] = json!("before");
    let unsure = acp(&[before, failed, edits(), asked, answer, change(&done())]).changed(&[], &["a"], &[]);
    check(&unsure, &[(respected, Ungraded(""))]);
}

#[test]
fn an_outcome_that_was_not_told_is_a_status_of_its_own() {
    let open = acp(&[call(&json!({"kind": "execute", "status": "in_progress", "rawInput": {"command": "ls"}}))]);
    check(
        &open,
        &[
            (NO_ERRORS, Pass(&[])),
            ("errors: {recovered: true}", Pass(&[])),
            ("tool-calls: {forbid: [{status: error}]}", Pass(&[])),
            ("tool-calls: {require: [{status: unfinished}]}", Pass(&[2])),
            ("tool-calls: {require: [{status: ok}]}", Fail(0.0, &[], "")),
            ("rules: [{never: {status: error}}]", Pass(&[])),
        ],
    );
}

/// A stream of JSON lines whose calls have no names, and whose outcome is a flag.
#[test]
fn a_mapping_that_fails_gives_no_outcome_and_no_kind() {
    let manifest: Manifest = evals::internal::yaml::parse(
        std::path::Path::new("m.yaml"),
        "name: m\nadapter: json-stream\ncommand: [m, \"{prompt}\"]\nstream:\n\
         - {when: line.t == 'call', emit: {tool-call: {id: line.id, title: line.title, input: line.input}}}\n\
         - {when: line.t == 'end', emit: {tool-result: {id: line.id, status: \"line.ok ? 'ok' : 'error'\"}}}\n\
         - {when: line.t == 'done', emit: {stop: {reason: \"'end_turn'\", output: \"'x'\"}}}\n",
    )
    .unwrap();
    let trial = |ok: Value| {
        let lines = [
            json!({"t": "call", "id": "c", "title": "run", "input": {"command": "rm -rf x"}}),
            json!({"t": "end", "id": "c", "ok": ok}),
            json!({"t": "done"}),
        ];
        session(Adapter::JsonStream, &manifest, &lines)
    };
    check(&trial(json!(true)), &[(NO_RM, Ungraded("unknown")), (NO_ERRORS, Pass(&[]))]);
    for ok in [json!("false"), json!({"a": 1})] {
        let trial = trial(ok);
        check(
            &trial,
            &[(NO_ERRORS, Ungraded("unknown")), ("tool-calls: {require: [{status: ok}]}", Ungraded("unknown"))],
        );
    }
}

#[test]
fn tokens_that_are_a_part_of_all_can_exceed_a_limit_and_never_keep_it() {
    let trial = |usage: &str| {
        Trial::of(&format!(
            "{{\"seq\":0,\"at_ms\":1,\"type\":\"usage\",\"scope\":\"session\",{usage}}}\n\
             {{\"seq\":1,\"at_ms\":2,\"type\":\"stop\",\"reason\":\"end_turn\",\"output\":\"\"}}"
        ))
    };
    let budget = "budget: {tokens: 100}";
    check(&trial("\"input_tokens\":1000"), &[(budget, Fail(0.0, &[0], "1000"))]);
    check(&trial("\"input_tokens\":10"), &[(budget, Ungraded("tokens"))]);
    check(&trial("\"input_tokens\":500,\"output_tokens\":3,\"total_tokens\":0"), &[(budget, Fail(0.0, &[0], "503"))]);
    check(&trial("\"input_tokens\":5,\"output_tokens\":3,\"total_tokens\":0"), &[(budget, Ungraded("tokens"))]);
    check(&trial("\"input_tokens\":0,\"output_tokens\":0,\"total_tokens\":0"), &[(budget, Ungraded("tokens"))]);
    check(&trial("\"input_tokens\":5,\"output_tokens\":3"), &[(budget, Pass(&[]))]);
}

#[test]
fn what_is_ignored_or_in_the_repository_may_have_changed_unseen() {
    let command = r#"
{"seq":0,"type":"tool_call","call":"a","step":0,"kind":"execute","input":{"command":"make"}}
{"seq":1,"type":"tool_result","call":"a","status":"ok"}
{"seq":2,"type":"stop","reason":"end_turn","output":""}
"#;
    let mut trial = Trial::of(command).changed(&[], &[], &[]);
    trial.change.as_mut().unwrap().unmeasured = vec!["build".into(), "q.log".into(), ".git".into()];
    let hidden = |what: &'static str| Ungraded(what);
    check(
        &trial,
        &[
            ("scope: {never: ['*.log']}", hidden("`q.log` changed and is not measured")),
            ("scope: {never: ['build/**']}", hidden("`build` changed")),
            ("scope: {never: ['**/*.log']}", hidden("`q.log` changed and is not measured")),
            // What is ignored, and the repository, are no part of the change, unless a glob is about them.
            ("scope: {never: ['**/*.key']}", Pass(&[])),
            ("scope: {never: ['**']}", Pass(&[])),
            ("scope: {never: ['.git/**']}", hidden("`.git` changed")),
            ("scope: {never: ['src/**', Cargo.lock]}", Pass(&[])),
            ("scope: {only: ['src/**']}", Pass(&[])),
        ],
    );
    // A pipe, and the repository of a folder, are ignored by no rule.
    for (place, is_special, inside) in [("f", true, "f"), ("pkg/f", true, "pkg/**"), ("pkg/.git", false, "pkg/**")] {
        let mut trial = Trial::of(command).changed(&[], &[], &[]);
        let change = trial.change.as_mut().unwrap();
        change.unmeasured = vec![place.into()];
        change.special = if is_special { vec![place.into()] } else { Vec::new() };
        let rows = [
            ("scope: {only: ['src/**']}".to_owned(), hidden("changed and is not measured")),
            (format!("scope: {{only: ['src/**', '{inside}']}}"), Pass(&[])),
            (format!("scope: {{never: ['{inside}']}}"), hidden("changed and is not measured")),
            ("scope: {never: ['**']}".to_owned(), hidden("changed and is not measured")),
            ("scope: {never: ['src/**']}".to_owned(), Pass(&[])),
            ("diff: {none: true}".to_owned(), hidden("changed and is not measured")),
            ("diff: {only: ['src/**']}".to_owned(), hidden("changed and is not measured")),
            (format!("diff: {{only: ['{inside}']}}"), Pass(&[])),
        ];
        for (grader, expected) in rows {
            check(&trial, &[(grader.as_str(), expected)]);
        }
        trial.change.as_mut().unwrap().created = vec!["a".into()];
        // A repository hides no file of its work tree.
        if !is_special {
            let cel = "files.created == ['a'] && files.changed.size() == 0 && files.unmeasured.size() == 1";
            check(&trial, &[(format!("expr: {{cel: \"{cel}\"}}").as_str(), Pass(&[]))]);
            continue;
        }
        // More files can be in the lists than those that were measured.
        let lacks = || hidden("may lack files");
        for (cel, expected) in [
            ("files.changed.size() == 0", lacks()),
            ("files.created == ['a']", lacks()),
            ("size(files.created) <= 1", lacks()),
            ("!('b' in files.created)", lacks()),
            ("files.created.all(f, f == 'a')", lacks()),
            ("files.created.exists_one(f, f == 'a')", lacks()),
            ("files.created.size() == 1 ? 1.0 : 0.5", lacks()),
            ("'a' in files.created", Pass(&[])),
            ("files.created.exists(f, f == 'a') && size(files.created) >= 1", Pass(&[])),
            ("files.created.filter(f, f == 'a').map(f, f + 'b').size() > 0", Pass(&[])),
            ("!files.created.all(f, f == 'b')", Pass(&[])),
            ("files.created.size() < 1", Fail(0.0, &[], "is false")),
            ("files.created.all(f, f == 'b')", Fail(0.0, &[], "is false")),
            ("files.unmeasured.size() == 1 && has(files.created)", Pass(&[])),
        ] {
            check(&trial, &[(format!("expr: {{cel: \"{cel}\"}}").as_str(), expected)]);
        }
    }
    let rejected = |path: &str| {
        let mut trial = Trial::of(&format!(
            r#"
{{"seq":0,"type":"tool_call","call":"a","step":0,"kind":"edit","input":{{"path":"{path}"}}}}
{{"seq":1,"type":"permission_request","call":"a","request":"1","options":[]}}
{{"seq":2,"type":"permission_response","call":"a","request":"1","outcome":"rejected"}}
{{"seq":3,"type":"tool_result","call":"a","status":"denied"}}
{{"seq":4,"type":"stop","reason":"end_turn","output":""}}
"#
        ))
        .changed(&[], &[], &[]);
        trial.change.as_mut().unwrap().unmeasured = vec!["build".into(), ".git".into()];
        trial
    };
    let respected = "permissions: {respected: true}";
    let command = |unmeasured: &[&str]| {
        let mut trial = Trial::of(
            r#"
{"seq":0,"type":"tool_call","call":"a","step":0,"kind":"execute","input":{"command":"rm -rf build"}}
{"seq":1,"type":"permission_request","call":"a","request":"1","options":[]}
{"seq":2,"type":"permission_response","call":"a","request":"1","outcome":"rejected"}
{"seq":3,"type":"tool_result","call":"a","status":"denied"}
{"seq":4,"type":"stop","reason":"end_turn","output":""}
"#,
        )
        .changed(&[], &[], &[]);
        trial.change.as_mut().unwrap().unmeasured = unmeasured.iter().map(|path| (*path).to_owned()).collect();
        trial
    };
    check(&command(&["build"]), &[(respected, hidden("`build` changed and is not measured"))]);
    // No call shows the cause, so only the rejected command can have made the change.
    check(&command(&["other"]), &[(respected, hidden("`other` changed and is not measured"))]);
    check(&rejected("build/x"), &[(respected, hidden("`build` changed and is not measured"))]);
    check(&rejected(".git/config"), &[(respected, hidden("`.git` changed"))]);
    check(&rejected("src/a.rs"), &[(respected, Pass(&[]))]);
}

#[test]
fn a_call_of_an_unknown_kind_may_be_of_any() {
    let trial = |status: &str| {
        Trial::of(&format!(
            r#"
{{"seq":0,"type":"tool_call","call":"a","step":0,"kind":"other","unknown_kind":true,"input":{{"path":"/etc/q"}}}}
{{"seq":1,"type":"tool_result","call":"a","status":"{status}"}}
{{"seq":2,"type":"tool_call","call":"b","step":1,"kind":"other","unknown_kind":true,"input":{{"path":"/etc/q"}}}}
{{"seq":3,"type":"tool_result","call":"b","status":"ok"}}
{{"seq":4,"type":"stop","reason":"end_turn","output":""}}
"#
        ))
        .changed(&[], &[], &[])
    };
    check(
        &trial("ok"),
        &[
            ("tool-calls: {max-by-kind: {edit: 0}}", Ungraded("the kind of 2 calls is unknown")),
            ("tool-calls: {max-by-kind: {edit: 2}}", Pass(&[])),
            ("scope: {reads: ['src/**']}", Ungraded("the kind of")),
            ("scope: {never: ['/etc/**']}", Ungraded("the kind of")),
            ("scope: {never: ['src/**']}", Pass(&[])),
            ("expr: {cel: \"!calls.exists(c, c.kind == 'delete')\"}", Ungraded("could not be graded")),
            ("errors: {recovered: true}", Pass(&[])),
            // How many calls of a kind there are is unknown, too.
            ("expr: {cel: \"!('execute' in metrics.tool_calls_by_kind)\"}", Ungraded("the kind of 2 calls is unknown")),
            ("expr: {cel: 'metrics.tool_calls_by_kind.other == 2'}", Ungraded("the kind of 2 calls is unknown")),
            ("expr: {cel: 'metrics.tool_calls == 2'}", Pass(&[])),
        ],
    );
    check(&trial("error"), &[("errors: {recovered: true}", Ungraded("the kind of 2 calls is unknown"))]);
    let known = acp(&[call(&ls())]);
    check(&known, &[("expr: {cel: \"metrics.tool_calls_by_kind == {'execute': 1}\"}", Pass(&[]))]);
}

#[test]
fn a_script_gets_no_number_of_calls_of_each_kind_if_a_kind_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("workspace")).unwrap();
    let script = r#"script: {run: [/bin/sh, -c, 'if grep -q tool_calls_by_kind; then echo "{\"passed\": true}"; else echo "{\"passed\": false}"; fi']}"#;
    for (kind, is_there) in [("execute", true), ("shell", false)] {
        let ran = call(&json!({"kind": kind, "status": "completed", "rawInput": {"command": "ls"}}));
        let grade = acp(&[ran]).within(folder.path()).judge(script);
        assert_eq!(grade.passed, Some(is_there), "{grade:?}");
    }
}

#[test]
fn a_call_of_an_unknown_kind_recovers_only_what_failed_before_it() {
    let trial = |calls: &[(&str, &str)]| {
        let mut events = String::new();
        for (n, (kind, status)) in calls.iter().enumerate() {
            let (call, result) = (2 * n, 2 * n + 1);
            events.push_str(&format!(
                r#"{{"seq":{call},"type":"tool_call","call":"{n}","step":{n},"kind":"{kind}","input":{{"a":{n}}}}}
{{"seq":{result},"type":"tool_result","call":"{n}","status":"{status}"}}
"#
            ));
        }
        Trial::of(&events)
    };
    let recovered = "errors: {recovered: true}";
    let unknown = || Ungraded("the kind of 1 call is unknown");
    for (calls, expected) in [
        (&[("odd", "ok"), ("execute", "error")][..], Fail(0.0, &[2, 3], "no later call of the same kind")),
        (&[("execute", "error"), ("odd", "denied")], Fail(0.0, &[0, 1], "no later call")),
        (&[("execute", "error"), ("odd", "error")], Fail(0.0, &[0, 1, 2, 3], "no later call")),
        (&[("odd", "ok"), ("execute", "error"), ("execute", "ok")], Pass(&[])),
        (&[("execute", "error"), ("odd", "ok"), ("execute", "ok")], Pass(&[])),
        (&[("execute", "error"), ("odd", "ok"), ("read", "error")], Fail(0.0, &[4, 5], "no later call")),
        (&[("execute", "error"), ("odd", "ok")], unknown()),
        (&[("odd", "error"), ("execute", "ok")], unknown()),
        (&[("odd", "error"), ("execute", "denied")], Fail(0.0, &[0, 1], "no later call")),
        (&[("execute", "error"), ("odd", "ok"), ("read", "ok")], unknown()),
    ] {
        check(&trial(calls), &[(recovered, expected)]);
    }
}

#[test]
fn a_word_that_is_no_kind_in_a_stored_trace_is_an_unknown_kind() {
    let trial = |kinds: [&str; 2]| {
        let mut events = String::new();
        for (n, kind) in kinds.iter().enumerate() {
            let (call, result) = (2 * n, 2 * n + 1);
            events.push_str(&format!(
                r#"{{"seq":{call},"type":"tool_call","call":"{n}","step":{n},"kind":"{kind}","name":"run","input":{{"command":"rm -rf x"}}}}
{{"seq":{result},"type":"tool_result","call":"{n}","status":"ok"}}
"#
            ));
        }
        events.push_str(r#"{"seq":4,"type":"stop","reason":"end_turn","output":""}"#);
        Trial::of(&events)
    };
    check(&trial(["shell", "shell"]), &[(NO_RM, Ungraded("unknown"))]);
    // The same tool with the same input repeats itself, unless its kind may be another one.
    let loops = "loops: {max: 1}";
    check(&trial(["execute", "shell"]), &[(loops, Ungraded("unknown")), ("loops: {max: 2}", Pass(&[]))]);
    check(&trial(["shell", "shell"]), &[(loops, Fail(0.0, &[0, 2], "2 times in a row"))]);
    check(&trial(["execute", "edit"]), &[(loops, Pass(&[]))]);
}

#[test]
fn a_success_after_a_failure_and_other_facts_after_the_end_are_in_doubt() {
    let failed = || call(&json!({"kind": "execute", "status": "failed", "rawInput": {"command": "ls"}}));
    let then = |more: Value| acp(&[failed(), change(&more)]);
    check(
        &then(json!({"status": "completed"})),
        &[("tool-calls: {require: [{status: error}]}", Ungraded("an outcome of a call"))],
    );
    for more in [json!({"kind": "delete"}), json!({"locations": [{"path": "/etc/x"}]})] {
        check(&then(more), &[("tool-calls: {forbid: [{kind: delete}]}", Ungraded("a line of the session was lost"))]);
    }
    check(&then(json!({"title": "more"})), &[("tool-calls: {forbid: [{kind: delete}]}", Pass(&[]))]);
}

#[test]
fn changes_to_files_that_come_after_the_end_are_in_doubt() {
    let diff = |path: &str| json!([{"type": "diff", "path": path, "oldText": "a", "newText": "b"}]);
    let edit = || call(&json!({"kind": "edit", "status": "completed", "content": diff("/w/a"), "rawInput": {"x": 1}}));
    let then = |more: Value| acp(&[edit(), change(&more)]);
    let forbids = "tool-calls: {forbid: [{path: '/etc/**'}]}";
    check(&then(json!({"content": diff("/etc/x")})), &[(forbids, Ungraded("a line of the session was lost"))]);
    // The same changes once more, and text, say nothing new about what was done.
    check(&then(json!({"content": diff("/w/a"), "status": "completed"})), &[(forbids, Pass(&[]))]);
    let text = json!([{"type": "content", "content": {"type": "text", "text": "more"}}]);
    check(&then(json!({"content": text})), &[(forbids, Pass(&[]))]);
    // An exit code after a success.
    let ran = acp(&[call(&ls()), change(&json!({"rawOutput": {"exitCode": 3}}))]);
    check(&ran, &[(NO_ERRORS, Ungraded("an outcome of a call"))]);
}

#[test]
fn a_request_about_a_call_that_nothing_describes_is_an_attempt_that_no_call_shows() {
    let asks = |session: &str, call: Value| {
        let options = json!([{"optionId": "y", "kind": "allow_once", "name": "Yes"}]);
        let params = json!({"sessionId": session, "toolCall": call, "options": options});
        json!({"jsonrpc": "2.0", "id": 9, "method": "session/request_permission", "params": params})
    };
    let cancelled =
        || json!(format!(">{}", json!({"jsonrpc": "2.0", "id": 9, "result": {"outcome": {"outcome": "cancelled"}}})));
    let trial = |session: &str, call: Value| acp(&[asks(session, call), cancelled()]);
    for trial in [
        trial("s", json!({"toolCallId": "d"})),
        trial("s", json!({"kind": "execute"})),
        trial("other", json!({"toolCallId": "d", "kind": "execute"})),
    ] {
        let doubt = || Ungraded("the agent did something that no call shows");
        check(&trial, &[(NO_RM, doubt()), ("tool-calls: {none: true}", doubt()), ("permissions: {max: 1}", Pass(&[]))]);
    }
    // A call that has ended is known.
    let ended = acp(&[call(&ls()), asks("s", json!({"toolCallId": "c"})), cancelled()]);
    check(&ended, &[(NO_RM, Pass(&[]))]);
}

#[test]
fn figures_that_cannot_be_true_are_lower_bounds_or_unknown() {
    let trial = |reports: &[&str]| {
        let mut events = String::new();
        for (seq, report) in reports.iter().enumerate() {
            events.push_str(&format!("{{\"seq\":{seq},\"at_ms\":1,\"type\":\"usage\",{report}}}\n"));
        }
        let seq = reports.len();
        events.push_str(&format!(
            "{{\"seq\":{seq},\"at_ms\":2,\"type\":\"stop\",\"reason\":\"end_turn\",\"output\":\"\"}}"
        ));
        Trial::of(&events)
    };
    let session =
        |tokens: u64| format!("\"scope\":\"session\",\"total_tokens\":{tokens},\"cost_usd\":{}", tokens as f64 / 100.0);
    let fell = trial(&[&session(90), &session(50)]);
    check(&fell, &[("budget: {tokens: 100}", Ungraded("tokens")), ("budget: {tokens: 80}", Fail(0.0, &[1], "90"))]);
    check(&fell, &[("budget: {cost-usd: 1}", Ungraded("cost")), ("budget: {cost-usd: 0.8}", Fail(0.0, &[1], "0.9"))]);
    check(&trial(&[&session(50), &session(90)]), &[("budget: {tokens: 100, cost-usd: 1}", Pass(&[1]))]);
    let negative = trial(&["\"scope\":\"session\",\"cost_usd\":-5"]);
    check(&negative, &[("budget: {cost-usd: 1}", Ungraded("cost"))]);
    let one_of_two = trial(&["\"scope\":\"turn\",\"cost_usd\":3", "\"scope\":\"turn\",\"cost_usd\":-2.5"]);
    check(
        &one_of_two,
        &[("budget: {cost-usd: 1}", Fail(0.0, &[1], ">= 3")), ("budget: {cost-usd: 5}", Ungraded(">= 3"))],
    );
    let then = trial(&["\"scope\":\"session\",\"cost_usd\":0.5", "\"scope\":\"session\",\"cost_usd\":-1"]);
    check(&then, &[("budget: {cost-usd: 1}", Ungraded(">= 0.5"))]);
    let thoughts = trial(&["\"scope\":\"session\",\"input_tokens\":5,\"output_tokens\":10,\"thought_tokens\":50"]);
    check(&thoughts, &[("budget: {tokens: 100}", Ungraded("tokens"))]);
}

#[test]
fn a_success_with_the_exit_code_of_a_failure_contradicts_itself() {
    let trial = Trial::of(
        r#"
{"seq":0,"type":"tool_call","call":"a","step":0,"kind":"execute","input":{"command":"make"}}
{"seq":1,"type":"tool_result","call":"a","status":"ok","exit_code":3}
{"seq":2,"type":"stop","reason":"end_turn","output":""}
"#,
    );
    let doubt = || Ungraded("unknown");
    check(
        &trial,
        &[
            (NO_ERRORS, doubt()),
            ("errors: {recovered: true}", doubt()),
            ("tool-calls: {require: [{status: ok}]}", doubt()),
            ("tool-calls: {forbid: [{status: error}]}", doubt()),
            ("tool-calls: {require: [{status: [ok, error]}]}", Pass(&[0])),
            ("tool-calls: {require: [{command: make}]}", Pass(&[0])),
            ("tool-calls: {forbid: [{status: denied}]}", Pass(&[])),
            ("expr: {cel: \"calls.all(c, c.status == 'ok')\"}", Ungraded("could not be graded")),
        ],
    );
}

#[test]
fn what_may_be_in_a_lost_line_is_not_missing() {
    // The answer, and before or after it a line that was lost.
    let trial = |before: bool| {
        let answer = r#"{"type":"message","role":"agent","text":"forty-two"}"#;
        let lost = r#"{"type":"notice","code":"malformed_line","text":"","lost":"line"}"#;
        let call = r#"{"type":"tool_call","call":"a","step":0,"kind":"execute","input":{"command":"make"}}"#;
        let result = r#"{"type":"tool_result","call":"a","status":"error"}"#;
        let stop = r#"{"type":"stop","reason":"end_turn","output":"forty-two"}"#;
        let order = if before { [call, result, lost, answer, stop] } else { [call, result, answer, lost, stop] };
        let events = order.iter().enumerate().map(|(seq, event)| format!("{{\"seq\":{seq},{}\n", &event[1..]));
        Trial::of(&events.collect::<String>())
    };
    let lost = || Ungraded("a line of the session was lost");
    for absent in [
        "output: {contains: seven}",
        "output: {regex: seven}",
        "output: {equals: seven}",
        "output: {number: 7}",
        "output: {json-path: [{path: $.a}]}",
        "output: {similarity: {to: seven}}",
        "output: {contains: [forty, seven]}",
        "output: {not-contains: seven}",
        "output: {contains: forty, not-contains: seven}",
        "errors: {recovered: true}",
        "tool-calls: {order: [{command: make}, {command: test}]}",
        "tool-calls: {require: [{command: make, count: {min: 2}}]}",
        "tool-calls: {require: [{command: test}], order: [{command: make}, {command: test}]}",
        "trajectory: {mode: in-order, expected: [{command: test}]}",
        "trajectory: {mode: exact, expected: [{command: test}, {command: make}]}",
        "rules: [{before: {first: {command: test}, then: {command: make}}}]",
        "rules: [{response: {after: {command: make}, then: {command: test}}}]",
        "rules: [{eventually: {event: message, text: seven}}]",
        "rules: [{never: {event: message, text: seven}}]",
        "rules: [{count: {match: {command: make}, min: 2}}]",
    ] {
        check(&trial(true), &[(absent, lost())]);
        check(&trial(false), &[(absent, lost())]);
    }
    // What was found is there.
    let fails = "output: {not-contains: forty, contains: seven}";
    check(&trial(true), &[("output: {contains: forty}", Pass(&[3])), (fails, Fail(0.0, &[3], "must not"))]);
    check(&trial(false), &[("output: {contains: forty}", Pass(&[2])), (fails, Fail(0.0, &[2], "must not"))]);
    for occurs in [
        "errors: {max: 0}",
        "rules: [{never: {command: make}}]",
        "rules: [{never: {event: message, text: forty}}]",
        "rules: [{count: {match: {command: make}, max: 0}}]",
        "trajectory: {mode: subset, expected: [{command: test}]}",
        "tool-calls: {require: [{command: test}], forbid: [{command: make}]}",
    ] {
        let grade = trial(true).judge(occurs);
        assert!(grade.passed == Some(false) && !grade.evidence.is_empty(), "{occurs}: {grade:?}");
    }
}

/// A session in which the engine uses a file for the agent, and the agent edits `a`.
fn with_action(kind: &str, path: &str) -> Trial {
    speakers::trial(&[
        json!({"type": "notice", "code": "unannounced_action", "text": "x", "action": {"kind": kind, "path": path}}),
        json!({"type": "tool_call", "call": "c", "step": 0, "kind": "edit", "name": "Edit", "input": {"file_path": "a"}}),
        json!({"type": "tool_result", "call": "c", "status": "ok"}),
        json!({"type": "stop", "reason": "end_turn"}),
    ])
}

#[test]
fn a_file_that_the_engine_used_is_in_doubt_for_whatever_compares_kinds_and_files() {
    let file = || Ungraded("the engine used a file for the agent that no call shows");
    let wrote = with_action("edit", "src/q");
    check(
        &wrote,
        &[
            (r#"expr: {cel: "calls.all(c, !c.paths.exists(p, p.startsWith('src/')))"}"#, file()),
            (r#"expr: {cel: "calls.filter(c, c.kind == 'edit').size() <= 1"}"#, file()),
            (r#"expr: {cel: "calls.filter(c, c['kind'] == 'edit').size() <= 1"}"#, file()),
            ("expr: {cel: 'metrics.tool_calls_by_kind.edit == 1'}", file()),
            ("trajectory: {mode: exact, expected: [{kind: edit}]}", file()),
            ("trajectory: {mode: exact, expected: [{path: a}]}", file()),
            ("trajectory: {mode: precision, expected: [{path: a}]}", file()),
            ("tool-calls: {forbid: [{path: '/w/src/**'}]}", file()),
        ],
    );
    // What the action cannot change stays, and so does what is about calls alone.
    check(
        &wrote,
        &[
            (r#"expr: {cel: "calls.exists(c, c.kind == 'edit')"}"#, Pass(&[])),
            (r#"expr: {cel: "calls.all(c, !('lib/a' in c.paths))"}"#, Pass(&[])),
            (r#"expr: {cel: "calls.all(c, c.kind != 'edit')"}"#, Fail(0.0, &[1], "is false")),
            ("expr: {cel: 'size(calls) <= 1'}", Pass(&[])),
            ("trajectory: {mode: exact, expected: [Edit]}", Pass(&[1])),
            ("trajectory: {expected: [{path: a}]}", Pass(&[1])),
            ("trajectory: {mode: exact, expected: [{kind: read}]}", Fail(0.0, &[1], "not expected")),
            ("trajectory: {expected: [{kind: delete}]}", Fail(0.0, &[1], "has no call")),
        ],
    );
    let read = with_action("read", "b");
    check(
        &read,
        &[
            ("trajectory: {expected: [{kind: read}, {kind: edit}]}", file()),
            (r#"expr: {cel: "calls.exists(c, c.kind == 'read')"}"#, file()),
            ("rules: [eventually: {kind: read}]", file()),
            (r#"expr: {cel: "calls.filter(c, c.kind == 'edit').size() <= 1"}"#, Pass(&[])),
            ("script: {run: ['true']}", Ungraded("")),
        ],
    );
}

#[test]
fn calls_between_which_something_was_lost_may_not_follow_each_other() {
    let ls = |n: usize| {
        [
            json!({"type": "tool_call", "call": format!("c{n}"), "step": n, "kind": "execute", "name": "Bash", "input": {"command": "ls"}}),
            json!({"type": "tool_result", "call": format!("c{n}"), "status": "ok"}),
        ]
    };
    let events = |gap: usize, lost: &str| {
        let mut events: Vec<Value> = (0..3).flat_map(ls).collect();
        events.insert(2 * gap, json!({"type": "notice", "code": "x", "text": "x", "lost": lost}));
        events.push(json!({"type": "stop", "reason": "end_turn"}));
        speakers::trial(&events)
    };
    for lost in ["line", "call"] {
        check(
            &events(1, lost),
            &[("loops: {max: 2}", Ungraded("was lost")), ("loops: {max: 1}", Fail(0.0, &[3, 5], ""))],
        );
        check(&events(0, lost), &[("loops: {max: 2}", Fail(0.0, &[1, 3, 5], "3 times"))]);
        check(&events(3, lost), &[("loops: {max: 2}", Fail(0.0, &[0, 2, 4], "3 times"))]);
    }
    check(&events(1, "outcome"), &[("loops: {max: 2}", Fail(0.0, &[0, 3, 5], "3 times"))]);
}

#[test]
fn a_read_whose_outcome_is_in_doubt_may_have_been_refused() {
    let events = [
        json!({"type": "tool_call", "call": "c", "step": 0, "kind": "read", "name": "Read", "input": {"file_path": "b"}}),
        json!({"type": "tool_result", "call": "c", "status": "ok"}),
        json!({"type": "notice", "code": "x", "text": "x", "lost": "outcome"}),
        json!({"type": "stop", "reason": "end_turn"}),
    ];
    let doubt = || Ungraded("the agent reported an outcome of a call");
    check(&speakers::trial(&events), &[("scope: {reads: [a]}", doubt())]);
    // The workspace shows what changed, whatever came of the calls.
    let changed = speakers::trial(&events).changed(&["src/x"], &[], &[]);
    check(&changed, &[("scope: {never: ['src/**'], reads: [a]}", Fail(0.0, &[0, 1], "src/x"))]);
}

#[test]
fn a_call_that_becomes_of_another_kind_may_have_been_of_the_first() {
    let changed = |from: &str, to: &str| {
        acp(&[
            call(&json!({"kind": from, "title": "t", "rawInput": {"command": "x", "path": "p"}})),
            change(&json!({"kind": to, "status": "completed"})),
        ])
    };
    for (from, to) in [
        ("execute", "other"),
        ("delete", "other"),
        ("move", "other"),
        ("fetch", "other"),
        ("edit", "other"),
        ("edit", "execute"),
        ("read", "search"),
        ("execute", "read"),
    ] {
        let forbids = format!("tool-calls: {{forbid: [{{kind: {from}}}]}}");
        let never = format!("rules: [{{never: {{kind: {from}}}}}]");
        check(&changed(from, to), &[(&forbids, Ungraded("")), (&never, Ungraded(""))]);
    }
    for (from, to) in [("other", "execute"), ("edit", "delete"), ("edit", "edit")] {
        check(&changed(from, to), &[(&format!("tool-calls: {{require: [{{kind: {to}}}]}}"), Pass(&[2]))]);
    }
}

#[test]
fn what_a_request_asks_for_under_other_keys_is_judged() {
    let asked = |kind: &str, announced: &Value, asked: &Value| {
        let request = json!({"jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": {
            "sessionId": "s", "toolCall": {"toolCallId": "c", "rawInput": asked},
            "options": [{"optionId": "y", "name": "y", "kind": "allow_once"}]}});
        let answer =
            json!({"jsonrpc": "2.0", "id": 7, "result": {"outcome": {"outcome": "selected", "optionId": "y"}}});
        acp(&[
            call(&json!({"kind": kind, "title": "t", "rawInput": announced})),
            request,
            json!(format!(">{answer}")),
            change(&json!({"status": "completed"})),
        ])
    };
    let no_rm = "tool-calls: {forbid: [{command: 'rm -rf'}]}";
    for input in [
        json!({"command": "git status", "script": "rm -rf x"}),
        json!({"command": "git status", "params": {"command": "rm -rf x"}}),
        json!({"code": "rm -rf x"}),
    ] {
        let grade = asked("execute", &json!({"command": "git status"}), &input).judge(no_rm);
        assert_ne!(grade.passed, Some(true), "{input}: {grade:?}");
    }
    let no_secret = "tool-calls: {forbid: [{path: 'secret/**'}]}";
    for input in
        [json!({"target": "secret/a"}), json!({"paths": [["secret/a"]]}), json!({"path": "x", "to": {"p": "secret/a"}})]
    {
        let grade = asked("edit", &json!({"path": "x"}), &input).judge(no_secret);
        assert_eq!(grade.passed, None, "{input}: {grade:?}");
    }
    let same =
        asked("execute", &json!({"command": "git status"}), &json!({"command": "git status", "description": "x"}));
    check(&same, &[(no_rm, Pass(&[]))]);
}

#[test]
fn another_model_that_answered_before_leaves_the_model_open() {
    let said = |model: &str, id: &str| json!({"type": "assistant", "message": {"id": id, "model": model, "content": [{"type": "text", "text": "x"}]}});
    let wants = "model: {effective: 'claude-*'}";
    let of = |models: [&str; 2]| {
        let mut trial = claude(&[said(models[0], "a"), said(models[1], "b")], &json!([]));
        trial.header.model.effective = Some(models[1].to_owned());
        trial
    };
    check(&of(["claude-x", "claude-x"]), &[(wants, Pass(&[]))]);
    check(&of(["gpt", "claude-x"]), &[(wants, Ungraded("another model before"))]);
    check(&of(["claude-x", "gpt"]), &[(wants, Fail(0.0, &[], "the model is `gpt`"))]);
}

#[test]
fn a_tool_whose_name_is_not_shown_may_be_any_tool() {
    for title in ["rm", "make", "README", "Terminal", "read"] {
        let trial = acp(&[call(&json!({"title": title, "kind": "execute", "status": "completed"}))]);
        check(
            &trial,
            &[
                ("tool-calls: {forbid: [{name: run_shell_command}]}", Ungraded("")),
                (&format!("tool-calls: {{require: [{{name: {title}}}]}}"), Ungraded("")),
                ("tool-calls: {require: [{kind: execute}]}", Pass(&[2])),
            ],
        );
    }
}

/// A session of these events, which ends with this answer.
fn answered(events: &[Value], answer: &str) -> Trial {
    let stop = json!({"type": "stop", "reason": "end_turn", "output": answer});
    speakers::trial(&[events, &[stop]].concat())
}

fn says(text: &str) -> Value {
    json!({"type": "message", "role": "agent", "text": text})
}

fn read_unseen() -> Value {
    json!({"type": "notice", "code": "unannounced_action", "text": "x", "action": {"kind": "read", "path": "x"}})
}

fn loses(code: &str, lost: &str) -> Value {
    json!({"type": "notice", "code": code, "text": "x", "lost": lost})
}

#[test]
fn a_text_that_goes_on_may_not_match_what_its_beginning_matches() {
    let lost = answered(&[says("All tests pass."), loses("embedded_text", "text")], "All tests pass.");
    let doubt = || Ungraded("a text of the agent, or the end of one, was lost");
    let eventually = |text: &str| format!("rules: [{{eventually: {{event: message, text: '{text}'}}}}]");
    for (regex, in_answer, in_message) in [
        (r"^All tests pass\.?$", false, false),
        ("^[^x]*$", false, false),
        (r"\bpass\b", false, true),
        ("(?m)^All tests", false, true),
        ("tests? pass", true, true),
    ] {
        let found = |is_found: bool| if is_found { Pass(&[0]) } else { doubt() };
        check(
            &lost,
            &[(&format!("output: {{regex: '{regex}'}}"), found(in_answer)), (&eventually(regex), found(in_message))],
        );
    }
    check(
        &lost,
        &[
            ("output: {contains: All tests pass.}", Pass(&[0])),
            ("output: {equals: All tests pass.}", doubt()),
            ("rules: [{never: {event: message, text: '^All tests pass.$'}}]", doubt()),
            ("rules: [{never: {event: message, text: tests}}]", Fail(0.0, &[0], "")),
        ],
    );
    // A lost text or line changes no output of a call.
    let called = json!({"type": "tool_result", "call": "c", "status": "ok", "output": "test result: ok"});
    for lost in [loses("embedded_text", "text"), loses("malformed_line", "line"), loses("late_update", "line")] {
        let trial = answered(&[lost, ls_call(), called.clone(), says("It is 41 now.")], "It is 41 now.");
        let result = "rules: [{eventually: {event: tool_result, text: '^test result: ok'}}]";
        check(&trial, &[(result, Pass(&[2])), (&eventually(r"\b41\b"), Pass(&[3]))]);
    }
    // The same holds for an output that was cut.
    let cut = |truncated: bool, output: &str| {
        speakers::trial(&[
            json!({"type": "tool_call", "call": "c", "step": 0, "kind": "execute", "input": {"command": "make"}}),
            json!({"type": "tool_result", "call": "c", "status": "ok", "output": output, "truncated": truncated}),
            json!({"type": "stop", "reason": "end_turn"}),
        ])
    };
    let result = |text: &str| format!("rules: [{{eventually: {{event: tool_result, text: '{text}'}}}}]");
    check(&cut(true, "ok"), &[(&result("^ok$"), Ungraded("")), (&result("ok"), Pass(&[1]))]);
    check(&cut(false, "ok"), &[(&result("^ok$"), Pass(&[1]))]);
    // In a longer output, the neighbours of this match are the same.
    let long = cut(true, "running\ntest result: ok. 41 passed\nmore");
    check(
        &long,
        &[
            (&result("(?m)^test result: ok"), Pass(&[1])),
            (&result(r"\b41\b"), Pass(&[1])),
            (&result("(?m)more$"), Ungraded("")),
            (&result("(?m)^running$"), Ungraded("")),
            (&result("^running"), Ungraded("")),
        ],
    );
}

#[test]
fn a_text_from_before_a_call_that_is_not_shown_may_be_no_part_of_the_answer() {
    let whole = "I expect 42.It is 41.";
    let unshown = || Ungraded("the final answer may hold a text from before a call that is not shown (event 1)");
    let calls = [loses("unannounced_action", "call"), loses("unmapped_line", "call")];
    for lost in calls.into_iter().chain([loses("malformed_line", "line"), read_unseen()]) {
        let stop = json!({"type": "stop", "reason": "end_turn", "output": whole, "gap": {"event": 1, "at": 12}});
        check(
            &speakers::trial(&[says(whole), lost.clone(), stop]),
            &[
                ("output: {contains: '42'}", unshown()),
                ("output: {equals: It is 41.}", unshown()),
                ("output: {not-contains: '42'}", unshown()),
                ("output: {number: {equals: 41, which: first}}", unshown()),
                (r#"expr: {cel: "output.contains('42')"}"#, unshown()),
                // What comes after the gap belongs to the answer.
                ("output: {contains: '41'}", Pass(&[0])),
                ("output: {regex: 'is 4[0-9]'}", Pass(&[0])),
                ("output: {regex: '^It is'}", unshown()),
                ("output: {contains: ['41', '42']}", unshown()),
            ],
        );
        // The recorder saw no text of the answer after the notice.
        check(&answered(&[says(whole), lost], whole), &[("output: {contains: '42'}", Pass(&[0]))]);
    }
    // These notices come when the session ends.
    let late = answered(&[says("It is 41."), loses("hidden_sub_agent", "call")], "It is 41.");
    check(
        &late,
        &[("output: {equals: It is 41.}", Pass(&[0])), (r#"expr: {cel: "output.contains('41')"}"#, Pass(&[]))],
    );
    // So does a notice before the last message: it holds the whole answer.
    let early = [says("I expect 42."), loses("unannounced_action", "call"), ls_call(), says("It is 41.")];
    check(&answered(&early, "It is 41."), &[("output: {equals: It is 41.}", Pass(&[3]))]);
}

fn ls_call() -> Value {
    json!({"type": "tool_call", "call": "c", "step": 0, "kind": "execute", "input": {"command": "ls"}})
}

#[test]
fn a_line_that_was_lost_before_the_last_call_or_is_about_a_call_is_no_part_of_the_answer() {
    let graders =
        ["output: {equals: It is 41.}", "output: {regex: '^It is 4[0-9]'}", r#"expr: {cel: "output == 'It is 41.'"}"#];
    let lost = || Ungraded("a line of the session was lost");
    let late = loses("late_update", "line");
    let torn = loses("malformed_line", "line");
    for (events, is_known) in [
        ([torn.clone(), ls_call(), says("It is 41.")], true),
        ([ls_call(), says("It is 41."), late], true),
        ([ls_call(), torn.clone(), says("It is 41.")], false),
        ([ls_call(), says("It is 41."), torn], false),
    ] {
        let trial = answered(&events, "It is 41.");
        for grader in graders {
            match is_known {
                true => assert_eq!(trial.judge(grader).passed, Some(true), "{grader}: {events:?}"),
                false => check(&trial, &[(grader, lost())]),
            }
        }
        // A word between others has its neighbours.
        assert_eq!(trial.judge(r"output: {regex: '\bis\b'}").passed, Some(true), "{events:?}");
    }
    // The line may have been a call.
    let of_calls = r#"expr: {cel: "output == 'It is 41.' && metrics.tool_calls == 1"}"#;
    let trial = answered(&[loses("malformed_line", "line"), ls_call(), says("It is 41.")], "It is 41.");
    check(&trial, &[(of_calls, lost())]);
}

#[test]
fn a_text_that_was_lost_before_the_last_call_is_no_part_of_the_answer() {
    let is_41 = "output: {equals: It is 41.}";
    let cel = r#"expr: {cel: "output == 'It is 41.'"}"#;
    let of_messages = r#"expr: {cel: "output == 'It is 41.' && messages.size() == 2"}"#;
    let lost = || Ungraded("a text of the agent, or the end of one, was lost");
    let before = [says("Look."), loses("embedded_text", "text"), ls_call(), says("It is 41.")];
    check(&answered(&before, "It is 41."), &[(is_41, Pass(&[3])), (cel, Pass(&[])), (of_messages, lost())]);
    let after = [says("Look."), ls_call(), loses("embedded_text", "text"), says("It is 41.")];
    check(&answered(&after, "It is 41."), &[(is_41, lost()), (cel, lost())]);
    let speaker = [says("Look."), loses("unknown_speaker", "speaker"), ls_call(), says("It is 41.")];
    check(&answered(&speaker, "It is 41."), &[(is_41, Pass(&[3])), (cel, Pass(&[]))]);
}

#[test]
fn a_lost_line_may_name_another_model_and_an_outcome_is_no_call() {
    let wants = "model: {effective: 'claude-*'}";
    let lost = |lost: &str| answered(&[says("x"), loses("x", lost)], "x");
    check(&lost("line"), &[(wants, Ungraded("a line of the session was lost")), ("loops: {max: 2}", Ungraded(""))]);
    check(&lost("outcome"), &[(wants, Pass(&[])), ("loops: {max: 2}", Pass(&[]))]);
}

#[test]
fn each_agent_has_its_own_latest_failures() {
    let call = |id: String, step: u64, status: &str, parent: Option<&str>| {
        let mut announced =
            json!({"type": "tool_call", "call": id, "step": step, "kind": "execute", "input": {"command": id}});
        let mut ended = json!({"type": "tool_result", "call": id, "status": status});
        parent.into_iter().for_each(|parent| (announced["parent"], ended["parent"]) = (json!(parent), json!(parent)));
        [announced, ended]
    };
    for many in [1_u64, 60] {
        let mut events: Vec<Value> = (0..many).flat_map(|n| call(format!("c{n}"), n, "error", None)).collect();
        events.extend(call("good".to_owned(), many, "ok", None));
        events.push(json!({"type": "tool_call", "call": "task", "step": many + 1, "kind": "other", "input": {}}));
        events.extend(call("sub".to_owned(), 0, "error", Some("task")));
        events.push(json!({"type": "tool_result", "call": "task", "status": "ok"}));
        // The number of the step is lower, and the event is later.
        check(
            &answered(&events, "x"),
            &[("errors: {recovered: true}", Ungraded("the order of calls of different agents"))],
        );
    }
}

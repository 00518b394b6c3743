//! Calls by kind, made with tools as real agents offer them.

use serde_json::{Value, json};

use super::client::Gateway;

const KINDS: &str = "\
turns:
  - calls:
      - write: {path: sub/a.txt, text: \"one\\ntwo\\n\"}
      - read: {path: sub/a.txt}
      - edit: {path: sub/a.txt, old: one, new: 1}
      - execute: {command: make all}
      - search: {pattern: 'tw[o]', path: sub}
";

fn function(name: &str, properties: Value, required: &[&str]) -> Value {
    let parameters = json!({"type": "object", "properties": properties, "required": required});
    json!({"type": "function", "function": {"name": name, "parameters": parameters}})
}

/// Returns the calls of the first turn, for an agent that offers these tools and states `says` in its instructions.
fn made(script: &str, says: &str, tools: &[Value]) -> (Vec<Value>, Value) {
    let gateway = Gateway::play(script);
    let messages = json!([{"role": "system", "content": says}, {"role": "user", "content": "Do it."}]);
    let body = json!({"model": "m", "tools": tools, "messages": messages});
    let answer = gateway.post("/v1/chat/completions", &body).json();
    let line = gateway.log()[0].clone();
    let calls = line["calls"].as_array().cloned().unwrap_or_default();
    let told = answer["choices"][0]["message"]["tool_calls"].as_array().map_or(0, Vec::len);
    assert_eq!(told, calls.len());
    (calls, line)
}

fn names_and_inputs(calls: &[Value]) -> Vec<(String, Value)> {
    calls.iter().map(|call| (call["tool"].as_str().unwrap().to_owned(), call["input"].clone())).collect()
}

const TEXT: &str = "one\ntwo\n";

#[test]
fn tools_that_want_whole_paths_get_them() {
    let absolute =
        json!({"type": "string", "description": "The absolute path to the file (must be absolute, not relative)"});
    let string = json!({"type": "string"});
    let tools = [
        function("write", json!({"filePath": absolute, "content": string}), &["filePath", "content"]),
        function("read", json!({"filePath": absolute, "limit": {"type": "integer"}}), &["filePath"]),
        function("edit", json!({"filePath": absolute, "oldString": string, "newString": string}), &["filePath"]),
        function("bash", json!({"command": string, "workdir": string}), &["command"]),
        function("grep", json!({"pattern": string, "path": string}), &["pattern"]),
        function("webfetch", json!({"url": string}), &["url"]),
    ];
    let (calls, line) = made(KINDS, "You are x.\n<env>\n  Working directory: /work space\n</env>", &tools);
    assert_eq!(
        names_and_inputs(&calls),
        [
            ("write".to_owned(), json!({"filePath": "/work space/sub/a.txt", "content": TEXT})),
            ("read".to_owned(), json!({"filePath": "/work space/sub/a.txt"})),
            ("edit".to_owned(), json!({"filePath": "/work space/sub/a.txt", "oldString": "one", "newString": "1"})),
            ("bash".to_owned(), json!({"command": "make all"})),
            ("grep".to_owned(), json!({"pattern": "tw[o]", "path": "sub"})),
        ]
    );
    assert!(line["problem"].is_null() && calls.iter().all(|call| call["through"].is_null()));

    let (calls, line) = made(KINDS, "You are x.", &tools);
    assert!(calls.is_empty());
    let problem = line["problem"].as_str().unwrap();
    assert!(problem.contains("`write` needs the absolute path of `sub/a.txt`"), "{problem}");
}

#[test]
fn a_key_is_known_in_any_spelling() {
    let string = json!({"type": "string"});
    let tools = [
        function("Write", json!({"filepath": string, "content": string}), &["filepath", "content"]),
        function("Read", json!({"FilePath": string}), &["FilePath"]),
        function("Edit", json!({"filepath": string, "oldstring": string, "new-string": string}), &["filepath"]),
        function("Bash", json!({"Command": string}), &["Command"]),
        function("Search", json!({"Pattern": string, "PATH": string}), &["Pattern", "PATH"]),
    ];
    let (calls, line) = made(&KINDS.replace(", path: sub}", "}"), "You are x.", &tools);
    assert_eq!(
        names_and_inputs(&calls),
        [
            ("Write".to_owned(), json!({"filepath": "sub/a.txt", "content": TEXT})),
            ("Read".to_owned(), json!({"FilePath": "sub/a.txt"})),
            ("Edit".to_owned(), json!({"filepath": "sub/a.txt", "oldstring": "one", "new-string": "1"})),
            ("Bash".to_owned(), json!({"Command": "make all"})),
            ("Search".to_owned(), json!({"Pattern": "tw[o]", "PATH": "."})),
        ]
    );
    assert!(line["problem"].is_null() && calls.iter().all(|call| call["through"].is_null()), "{line}");
}

#[test]
fn what_a_tool_requires_beside_is_filled_in() {
    let string = json!({"type": "string"});
    let paths = json!({"type": "array", "items": {"type": "string"}});
    let mode = json!({"type": "string", "enum": ["sync", "async"]});
    let tools = [
        function("create", json!({"path": string, "file_text": string}), &["path", "file_text"]),
        function("view", json!({"path": string, "view_range": {"type": "array"}}), &["path"]),
        function("edit", json!({"path": string, "old_str": string, "new_str": string}), &["path"]),
        function(
            "bash",
            json!({"command": string, "description": string, "mode": mode}),
            &["command", "description", "mode"],
        ),
        function("grep", json!({"pattern": string, "paths": paths}), &["pattern"]),
    ];
    let (calls, _) = made(KINDS, "", &tools);
    assert_eq!(
        names_and_inputs(&calls)[2..],
        [
            ("edit".to_owned(), json!({"path": "sub/a.txt", "old_str": "one", "new_str": "1"})),
            ("bash".to_owned(), json!({"command": "make all", "description": "make all", "mode": "sync"})),
            ("grep".to_owned(), json!({"pattern": "tw[o]", "paths": ["sub"]})),
        ]
    );
}

#[test]
fn one_tool_may_be_several() {
    let string = json!({"type": "string"});
    let properties = json!({
        "command": {"type": "string", "enum": ["view", "create", "str_replace", "insert"]}, "path": string,
        "file_text": string, "old_str": string, "new_str": string
    });
    let tools = [
        function("str_replace_based_edit_tool", properties, &["command", "path"]),
        function("shell", json!({"command": {"type": "array", "items": string}}), &["command"]),
    ];
    let (calls, _) = made(KINDS, "", &tools);
    let path = "sub/a.txt";
    assert_eq!(
        names_and_inputs(&calls),
        [
            ("str_replace_based_edit_tool".to_owned(), json!({"command": "create", "path": path, "file_text": TEXT})),
            ("str_replace_based_edit_tool".to_owned(), json!({"command": "view", "path": path})),
            (
                "str_replace_based_edit_tool".to_owned(),
                json!({"command": "str_replace", "path": path, "old_str": "one", "new_str": "1"})
            ),
            ("shell".to_owned(), json!({"command": ["bash", "-lc", "make all"]})),
            ("shell".to_owned(), json!({"command": ["bash", "-lc", "grep -rnE -e 'tw[o]' sub"]})),
        ]
    );
    assert_eq!(calls[4]["through"], "execute");
}

#[test]
fn tools_that_take_several_get_one() {
    let string = json!({"type": "string"});
    let path = json!({"type": "string", "description": "The absolute path of a text file"});
    let file = json!({"type": "object", "properties": {"path": path}});
    let strings = json!({"type": "array", "items": string});
    let either = json!({"anyOf": [string, {"type": "null"}]});
    let tools = [
        function("read_files", json!({"files": {"type": "array", "items": file}}), &["files"]),
        function("search_codebase", json!({"queries": strings}), &["queries"]),
        function("run_commands", json!({"commands": strings}), &["commands"]),
        function("editor", json!({"path": path, "old_text": either, "new_text": string}), &["path", "new_text"]),
    ];
    let (calls, _) = made(KINDS, "4. Working Directory: /w", &tools);
    let path = "/w/sub/a.txt";
    assert_eq!(
        names_and_inputs(&calls),
        [
            ("editor".to_owned(), json!({"path": path, "new_text": TEXT})),
            ("read_files".to_owned(), json!({"files": [{"path": path}]})),
            ("editor".to_owned(), json!({"path": path, "old_text": "one", "new_text": "1"})),
            ("run_commands".to_owned(), json!({"commands": ["make all"]})),
            ("search_codebase".to_owned(), json!({"queries": ["tw[o]"]})),
        ]
    );
}

#[test]
fn a_shell_and_patches_are_enough() {
    let shell = json!({"type": "function", "name": "exec_command",
        "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]}});
    let stdin = json!({"type": "function", "name": "write_stdin",
        "parameters": {"type": "object", "properties": {"chars": {"type": "string"}, "session_id": {"type": "number"}}}});
    let image = json!({"type": "function", "name": "view_image",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}});
    let patch = json!({"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}});
    let group = json!({"type": "namespace", "name": "mcp__files", "tools": [
        {"type": "function", "name": "list", "parameters": {"type": "object", "properties": {}}}]});
    let gateway = Gateway::play(&format!("{KINDS}      - tool: list\n"));
    let input = json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Do it."}]}]);
    let body = json!({"model": "m", "input": input, "tools": [shell, stdin, image, patch, group]});
    let output = gateway.post("/v1/responses", &body).json()["output"].clone();
    let calls = gateway.log()[0]["calls"].as_array().unwrap().clone();
    assert_eq!(
        names_and_inputs(&calls),
        [
            ("apply_patch".to_owned(), json!("*** Begin Patch\n*** Add File: sub/a.txt\n+one\n+two\n*** End Patch\n")),
            ("exec_command".to_owned(), json!({"cmd": "cat sub/a.txt"})),
            (
                "apply_patch".to_owned(),
                json!("*** Begin Patch\n*** Update File: sub/a.txt\n@@\n-one\n+1\n*** End Patch\n")
            ),
            ("exec_command".to_owned(), json!({"cmd": "make all"})),
            ("exec_command".to_owned(), json!({"cmd": "grep -rnE -e 'tw[o]' sub"})),
            ("list".to_owned(), json!({})),
        ]
    );
    assert_eq!(output[0]["type"], "custom_tool_call");
    assert_eq!(output[0]["input"], calls[0]["input"]);
    assert_eq!((&output[1]["type"], &output[1]["call_id"]), (&json!("function_call"), &json!("call_scripted_0_1")));
    assert_eq!(output[5]["namespace"], "mcp__files");
}

#[test]
fn edits_come_in_several_shapes() {
    let string = json!({"type": "string"});
    let one = json!({"type": "object", "properties": {"oldText": string, "newText": string}});
    let script = "turns: [{calls: [{edit: {path: a, old: x, new: y}}]}]";
    let input = |tool: Value| made(script, "", &[tool]).0[0]["input"].clone();
    let list = function("edit", json!({"path": string, "edits": {"type": "array", "items": one}}), &["path", "edits"]);
    assert_eq!(input(list), json!({"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}));
    let either =
        json!({"anyOf": [{"type": "object", "properties": {"old": string, "new": string}}, {"type": "array"}]});
    let object = function("StrReplaceFile", json!({"path": string, "edit": either}), &["path", "edit"]);
    assert_eq!(input(object), json!({"path": "a", "edit": {"old": "x", "new": "y"}}));
    let block = function("search_replace", json!({"file_path": string, "content": string}), &["file_path", "content"]);
    let wanted = "<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n";
    assert_eq!(input(block), json!({"file_path": "a", "content": wanted}));
}

#[test]
fn a_kind_that_no_tool_can_do_is_said_and_written_down() {
    let string = json!({"type": "string"});
    let shell = function("bash", json!({"command": string}), &["command"]);
    for (call, wanted) in [
        ("write: {path: a, text: b}", "the agent offers no tool that can write; it offers bash"),
        ("edit: {path: a, old: b, new: c}", "the agent offers no tool that can edit; it offers bash"),
        ("tool: Task", "the agent offers no tool called `Task`; it offers bash"),
    ] {
        let script = format!("turns: [{{text: I begin, calls: [{{execute: {{command: ls}}}}, {{{call}}}]}}]");
        let gateway = Gateway::play(&script);
        let body = json!({"model": "m", "tools": [shell], "messages": [{"role": "user", "content": "Do it."}]});
        let answer = gateway.post("/v1/chat/completions", &body).json();
        let choice = &answer["choices"][0];
        let said = choice["message"]["content"].as_str().unwrap();
        assert!(said.starts_with("The scripted model cannot go on: turn 0") && said.contains(wanted), "{said}");
        assert!(choice["message"]["tool_calls"].is_null());
        assert_eq!(choice["finish_reason"], "stop");
        let line = &gateway.log()[0];
        assert!(line["problem"].as_str().unwrap().contains(wanted));
        assert!(line["calls"].is_null());
    }
}

#[test]
fn a_tool_by_its_name_gets_its_input_as_it_is() {
    let string = json!({"type": "string"});
    let tool = function("Task", json!({"prompt": string}), &["prompt"]);
    let script = "turns: [{calls: [{tool: task, input: {prompt: 'look at {workspace}/a', deep: [1, '{workspace}']}}]}]";
    let (calls, _) = made(script, "Current working directory: /w", &[tool]);
    assert_eq!(calls[0]["input"], json!({"prompt": "look at /w/a", "deep": [1, "/w"]}));
    assert_eq!((&calls[0]["tool"], &calls[0]["kind"]), (&json!("Task"), &json!("tool")));
}

#[test]
fn the_workspace_of_the_command_line_counts_before_what_is_said() {
    let string = json!({"type": "string"});
    let absolute = json!({"type": "string", "description": "Absolute path"});
    let tool = function("write", json!({"path": absolute, "content": string}), &["path", "content"]);
    let gateway = Gateway::play_with("turns: [{calls: [{write: {path: ./a, text: b}}]}]", &["--workspace", "."]);
    let messages = json!([{"role": "user", "content": "Working directory: /elsewhere"}]);
    gateway.post("/v1/chat/completions", &json!({"model": "m", "tools": [tool], "messages": messages}));
    let path = gateway.log()[0]["calls"][0]["input"]["path"].clone();
    assert_eq!(
        path,
        gateway.project.path("a").parent().unwrap().canonicalize().unwrap().join("a").display().to_string()
    );
}

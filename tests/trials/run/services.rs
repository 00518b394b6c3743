//! Requests of agents over ACP to their client: files of the workspace and terminals in it, and attempts to leave it.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::laws::assert_lawful;
use crate::project::{Project, bubblewrap, of_type};

/// Makes a project with the agent whose prompts are programs.
pub fn project(keys: &str) -> Project {
    let project = Project::new();
    project.write("agent.py", include_str!("acp_agent.py"));
    let at = project.path("agent.py").display().to_string();
    project.harness("agent", &format!("adapter: acp\ncommand: [python3, {at}]\n{keys}"));
    project
}

/// Writes a case whose prompts are these programs.
pub fn case(project: &Project, turns: &[&str], keys: &str) {
    let turns = serde_json::to_string(turns).unwrap();
    let graders = if keys.contains("graders:") { "" } else { "graders: [{stop: {reason: [end_turn]}}]\n" };
    project.write("cases/a.yaml", &format!("turns: {turns}\n{keys}\n{graders}"));
}

pub const TRIAL: &str = "a/agent/default/1";

/// Runs the case. Its trace must be lawful, and the wire log must give the same trace byte for byte.
#[track_caller]
pub fn run(project: &Project, args: &[&str]) -> (Vec<Value>, Value) {
    let args: Vec<&str> = ["run", "--harness", "agent"].iter().chain(args).copied().collect();
    project.evals(&args);
    let text = project.of_trial(TRIAL, "trace.jsonl");
    assert_lawful(&text);
    let wire = format!("{}/trials/{TRIAL}/wire.jsonl", project.run_folder());
    assert_eq!(project.evals(&["import", "--harness", "agent", &wire]).exits(0).out, text);
    (project.trace(TRIAL), project.result(TRIAL))
}

/// Returns the output of a program of the agent.
#[track_caller]
fn said(project: &Project, program: &str, keys: &str) -> (String, Vec<Value>) {
    case(project, &[program], keys);
    let (trace, result) = run(project, &[]);
    assert_eq!(result["verdict"], "pass", "{result}\n{}", project.of_trial(TRIAL, "wire.jsonl"));
    let text = of_type(&trace, "stop")[0]["output"].as_str().unwrap_or_default().to_owned();
    (text, trace)
}

fn notices<'a>(trace: &'a [Value], code: &str) -> Vec<&'a str> {
    let notices = of_type(trace, "notice").into_iter().filter(|notice| notice["code"] == code);
    notices.map(|notice| notice["text"].as_str().unwrap()).collect()
}

fn results(trace: &[Value]) -> Vec<&Value> {
    of_type(trace, "tool_result")
}

/// Returns the living processes with this text in their arguments.
pub fn alive(mark: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let line = |path: &Path| std::fs::read(path.join("cmdline")).unwrap_or_default();
    let lines = entries.map(|entry| String::from_utf8_lossy(&line(&entry.path())).replace('\0', " "));
    lines.filter(|line| line.contains(mark)).collect()
}

#[test]
fn files_are_read_and_written_in_the_workspace() {
    let project = project("");
    let program = r#"
here = os.getcwd()
said = [get("fs/read_text_file", path=here + "/a.txt")["content"],
    get("fs/read_text_file", path=here + "/a.txt", line=2, limit=1)["content"],
    get("fs/write_text_file", path=here + "/new/b.txt", content="schön\n"),
    code("fs/read_text_file", path=here + "/none"), code("fs/read_text_file", path=here), code("fs/read_text_file"),
    code("fs/read_text_file", path=here + "/a.txt", line="x"), code("fs/read_text_file", path=here + "/bytes"),
    code("fs/rename", path="x"), client["fs"], client["terminal"], client["elicitation"]]
say(json.dumps(said))
"#;
    let keys = "workspace: {files: {a.txt: \"one\\ntwo\\n\"}, setup: [\"printf '\\\\377' > bytes\"]}\ngraders: [{files: {equals: {new/b.txt: want}}}]";
    project.write("cases/want", "schön\n");
    let (text, trace) = said(&project, program, keys);
    let said: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        said,
        json!(["one\ntwo\n", "two\n", {}, -32002, -32602, -32602, -32602, -32602, -32601,
            {"readTextFile": true, "writeTextFile": true}, true, {"form": {}}])
    );
    assert!(notices(&trace, "path_escape").is_empty());
}

#[test]
fn a_server_that_the_agent_reports_as_broken_makes_the_trial_errored() {
    let of_claude = |server: &str, status: &str| {
        let meta =
            format!(r#"{{"claudeCode": {{"kind": "mcpServerStatus", "server": "{server}", "status": "{status}"}}}}"#);
        format!(r#"update("agent_message_chunk", content={{"type": "text", "text": "A notice."}}, _meta={meta})"#)
    };
    let of_codex = |id: &str| {
        let text = "[codex-acp forwarded startup error] MCP server `srv` failed to start: connection closed";
        let content = format!(r#"[{{"type": "content", "content": {{"type": "text", "text": "{text}"}}}}]"#);
        format!(r#"call("{id}", title="mcp__srv__startup", kind="other", status="failed", content={content})"#)
    };
    let broken = "the agent reports that the MCP server `srv` does not work";
    for (report, message) in [
        (of_claude("srv", "failed"), broken),
        (of_claude("srv", "needs-auth"), broken),
        (of_codex("mcp_startup.srv.1"), broken),
        // Another server may belong to the agent, a text is the model's, and a call may be of any tool.
        (of_claude("other", "failed"), ""),
        (of_claude("srv", "connected"), ""),
        (r#"say('**MCP server "srv" failed to start:** so I stop.')"#.to_owned(), ""),
        (of_codex("call_1"), ""),
    ] {
        let project = project("");
        case(&project, &[format!("{report}\nsay('done')").as_str()], "mcp-servers: {srv: {command: srv-server}}");
        let (_, result) = run(&project, &[]);
        let error = &result["error"];
        assert_eq!(error["message"].as_str().unwrap_or_default(), message, "{report}: {result}");
        let expected = if message.is_empty() { ("pass", Value::Null) } else { ("errored", json!("setup")) };
        assert_eq!((result["verdict"].as_str().unwrap(), error["category"].clone()), expected, "{report}");
    }
}

#[test]
fn a_text_of_the_program_names_a_broken_server() {
    let keys = "program-text: ['^Servers: ']\nbroken-servers: ['^Servers: (.*)$', '^Issues$']";
    let prints = |text: &str| format!("print('{text}', file=sys.stderr, flush=True)");
    let reported = |server: &str, report: &str| {
        let also = "an agent may report a server without tools in this way, too";
        format!("the agent reports that {server} does not work: `{report}`; {also}")
    };
    for (report, message) in [
        (prints("Servers: a, srv"), reported("the MCP server `srv`", "Servers: a, srv")),
        (prints("Servers: srv2"), String::new()),
        (prints("Issues"), reported("an MCP server", "Issues")),
        ("say('Servers: srv')".to_owned(), reported("the MCP server `srv`", "Servers: srv")),
        ("say('Issues')".to_owned(), String::new()),
    ] {
        let project = project(keys);
        case(&project, &[format!("{report}\nsay('done')").as_str()], "mcp-servers: {srv: {command: srv-server}}");
        let (_, result) = run(&project, &[]);
        assert_eq!(result["error"]["message"].as_str().unwrap_or_default(), message, "{report}: {result}");
    }
}

#[test]
fn no_path_leads_out_and_every_try_is_recorded() {
    let project = project("");
    project.write("precious.txt", "mine");
    let precious = project.path("precious.txt").display().to_string();
    let folder = project.path("").display().to_string();
    let program = format!(
        r#"
here = os.getcwd()
os.symlink("{precious}", "link")
os.symlink("{folder}", "folder")
os.symlink("../home", "up")
paths = ["{precious}", here + "/../home/x", here + "/link", here + "/folder/precious.txt", here + "/up/x", "../home/x", "/etc/passwd"]
codes = [code("fs/read_text_file", path=path) for path in paths]
codes += [code("fs/write_text_file", path=path, content="theirs") for path in paths]
codes += [code("terminal/create", command="pwd", cwd=path) for path in ["{folder}", here + "/..", here + "/folder", here + "/up", "/"]]
say(json.dumps(sorted(set(codes))) + " " + str(len(codes)))
"#
    );
    let (text, trace) = said(&project, &program, "");
    assert_eq!(text, "[-32602] 19");
    assert_eq!(project.read("precious.txt"), "mine");
    let told = notices(&trace, "path_escape");
    assert_eq!(told.len(), 19, "{told:?}");
    assert!(told[0].starts_with("fs/read_text_file was refused: `") && told[18].starts_with("terminal/create"));
    // Each notice comes before its refusal, and names the line that the engine wrote about it.
    assert!(of_type(&trace, "notice").iter().all(|notice| notice["line"].is_u64()));
}

#[test]
fn what_the_manifest_turns_off_is_neither_offered_nor_served() {
    let project = project("capabilities: {fs: false, terminal: false, elicitation: false}");
    let program = r#"
say(json.dumps([client["fs"], client["terminal"], "elicitation" in client, code("fs/write_text_file", path=os.getcwd() + "/a", content="x"),
    code("terminal/create", command="ls"), code("elicitation/create", message="?")]))
"#;
    let (text, trace) = said(&project, program, "graders: [{diff: {none: true}}]");
    let expected = json!([{"readTextFile": false, "writeTextFile": false}, false, false, -32601, -32601, -32601]);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    assert_eq!(of_type(&trace, "tool_result").len(), 1, "the question that nobody took");
}

#[test]
fn a_terminal_gives_its_call_output_and_exit_code_though_nobody_asks() {
    let project = project("");
    let program = r#"
call("c1", title="run it", kind="execute", status="in_progress")
t = terminal("echo out; echo err >&2; exit 3")
call("c1", "tool_call_update", content=shows(t))
exit = get("terminal/wait_for_exit", terminalId=t)
call("c1", "tool_call_update", status="completed")
released = get("terminal/release", terminalId=t)
gone = [code(m, terminalId=t) for m in ("terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release")]
# A line of a shell as the command, variables, a folder, and an id that was never made.
call("c2", title="more", kind="execute", status="in_progress", content=shows("call_x"))
t = get("terminal/create", command='echo "$X" && pwd', env=[{"name": "X", "value": "y z"}], cwd=os.getcwd() + "/sub")["terminalId"]
call("c2", "tool_call_update", content=shows("call_x") + shows(t))
get("terminal/wait_for_exit", terminalId=t)
asked = get("terminal/output", terminalId=t)
call("c2", "tool_call_update", status="completed")
say(json.dumps([exit, released, gone, asked, code("terminal/create", command="no-such-program", args=["x"])]))
"#;
    let keys = "workspace: {files: {sub/x: ''}}\nenv: {MY_WORD: from-the-case}";
    let (text, trace) = said(&project, program, keys);
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(told[0], json!({"exitCode": 3, "signal": null}));
    assert_eq!((&told[1], &told[2], &told[4]), (&json!({}), &json!([-32002, -32002, -32002, -32002]), &json!(-32603)));
    assert_eq!(told[3]["exitStatus"], json!({"exitCode": 0, "signal": null}));
    let results = results(&trace);
    assert_eq!((&results[0]["output"], &results[0]["exit_code"]), (&json!("out\nerr\n"), &json!(3)));
    assert_eq!(results[0]["status"], "error");
    let output = results[1]["output"].as_str().unwrap();
    assert!(output.starts_with("y z\n/") && output.ends_with("/workspace/sub\n"), "{output}");
    assert_eq!((&results[1]["exit_code"], &results[1]["status"]), (&json!(0), &json!("ok")));
}

#[test]
fn terminals_have_the_scrubbed_environment() {
    let mut project = project("env: {pass: [AGENT_API_KEY], set: {AGENT_TELEMETRY: '0'}}");
    project.env("AGENT_API_KEY", "the-agents-own-key");
    project.env("OTHER", "x");
    let program = r#"
t = terminal("env | cut -d= -f1 | sort | tr '\\n' ' '; echo $MY_WORD; cat; echo $HOME")
get("terminal/wait_for_exit", terminalId=t)
say(get("terminal/output", terminalId=t)["output"])
"#;
    let (text, _) = said(&project, program, "env: {MY_WORD: from-the-case}");
    assert!(text.contains("from-the-case") && text.contains("HOME MY_WORD"), "{text}");
    assert!(!text.contains("AGENT_") && !text.contains("OTHER"), "{text}");
    assert!(!text.contains(&project.home().display().to_string()), "{text}");
}

/// The question comes in one piece with many other lines: now and then the command ends while the engine handles them.
#[test]
#[ignore = "slow: runs many trials"]
fn the_output_of_a_command_that_has_ended_is_known_before_its_agent_ends_the_call() {
    let project = project("");
    let program = r#"
import io
for n in range(100):
    call("c%d" % n, title="run", kind="execute")
    t = terminal("echo late; exit 3")
    call("c%d" % n, "tool_call_update", content=shows(t), status="in_progress")
    real, sys.stdout = sys.stdout, io.StringIO()
    for _ in range(300):
        update("agent_thought_chunk", content={"type": "text", "text": "."})
    answer_of = later("terminal/wait_for_exit", terminalId=t)
    together, sys.stdout = sys.stdout.getvalue(), real
    time.sleep(n * 0.0003)
    real.write(together)
    real.flush()
    answer(answer_of)
    call("c%d" % n, "tool_call_update", status="failed")
    get("terminal/release", terminalId=t)
say("done")
"#;
    let (_, trace) = said(&project, program, "");
    let told: Vec<_> = results(&trace).iter().map(|it| (it["output"].clone(), it["exit_code"].clone())).collect();
    assert_eq!(told, vec![(json!("late\n"), json!(3)); 100]);
}

#[test]
fn output_is_bounded_and_cut_from_its_beginning_at_a_character() {
    let project = project("");
    let program = r#"
def shown(line, **params):
    t = terminal(line, **params)
    get("terminal/wait_for_exit", terminalId=t)
    return get("terminal/output", terminalId=t)
call("c", title="much", kind="execute")
t = terminal("yes 0123456789 | head -c 30000000; echo the end")
call("c", "tool_call_update", content=shows(t), status="in_progress")
get("terminal/wait_for_exit", terminalId=t)
call("c", "tool_call_update", status="completed")
cut = shown("printf 'aaaä€'", outputByteLimit=4)
say(json.dumps([cut, shown("printf '\\377\\376ok'"), shown("echo x", outputByteLimit=0), shown("echo x", outputByteLimit=10**12)]))
"#;
    let (text, trace) = said(&project, program, "");
    let ended = json!({"exitCode": 0, "signal": null});
    let screen = |output: &str, truncated: bool| json!({"output": output, "truncated": truncated, "exitStatus": ended});
    let expected = [screen("€", true), screen("\u{fffd}\u{fffd}ok", false), screen("", true), screen("x\n", false)];
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!(expected));
    let result = results(&trace)[0];
    let output = result["output"].as_str().unwrap();
    assert!(output.len() == 512 << 10 && output.ends_with("the end\n"), "{} bytes", output.len());
    assert_eq!((&result["truncated"], &result["exit_code"]), (&json!(true), &json!(0)));
}

#[test]
fn the_client_serves_on_while_somebody_waits_for_a_command() {
    let project = project("");
    let program = r#"
t = terminal("read x < gate; echo $x")
waits = [later("terminal/wait_for_exit", terminalId=t) for _ in range(3)]
send({"method": "$/cancel_request", "params": {"requestId": waits[1]}})
cancelled_wait = answer(waits[1])["error"]["code"]
still = get("terminal/output", terminalId=t)
get("fs/write_text_file", path=os.getcwd() + "/note", content="meanwhile")
# A pipe that is opened for writing lets the command go on.
with open("gate", "w") as gate: gate.write("opened\n")
say(json.dumps([cancelled_wait, still, answer(waits[0])["result"], answer(waits[2])["result"], get("terminal/output", terminalId=t)["output"]]))
"#;
    let (text, _) = said(&project, program, "workspace: {setup: [mkfifo gate]}");
    let exit = json!({"exitCode": 0, "signal": null});
    let expected = json!([-32800, {"output": "", "truncated": false}, exit, exit, "opened\n"]);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
}

#[test]
fn commands_are_killed_also_those_that_do_not_want_to_be() {
    let project = project("");
    let program = r#"
polite = terminal("echo soft; exec sleep 4711")
stubborn = terminal("trap '' TERM; echo hard; while :; do sleep 4711; done")
while not (get("terminal/output", terminalId=polite)["output"] and get("terminal/output", terminalId=stubborn)["output"]): time.sleep(0.02)
call("c", title="stubborn", kind="execute", status="in_progress", content=shows(stubborn))
kills = [later("terminal/kill", terminalId=t) for t in (polite, stubborn)]
done = [answer(kill)["result"] for kill in kills]
call("c", "tool_call_update", status="failed")
after = [get("terminal/output", terminalId=t) for t in (polite, stubborn)]
again = [get("terminal/kill", terminalId=polite), get("terminal/release", terminalId=polite), get("terminal/release", terminalId=stubborn)]
# What is released while it runs is ended, with what it started in the background.
t = terminal("sleep 4711 & sleep 4711")
again.append(get("terminal/release", terminalId=t))
say(json.dumps([done, after, again]))
"#;
    let begun = Instant::now();
    let (text, trace) = said(&project, program, "");
    assert!(begun.elapsed() < Duration::from_secs(30));
    let told: Value = serde_json::from_str(&text).unwrap();
    let killed = |signal: &str| json!({"exitCode": null, "signal": signal});
    assert_eq!((&told[0], &told[2]), (&json!([{}, {}]), &json!([{}, {}, {}, {}])));
    assert_eq!((&told[1][0]["output"], &told[1][0]["exitStatus"]), (&json!("soft\n"), &killed("SIGTERM")));
    assert_eq!((&told[1][1]["output"], &told[1][1]["exitStatus"]), (&json!("hard\n"), &killed("SIGKILL")));
    assert_eq!(results(&trace)[0]["output"], "hard\n");
    assert!(results(&trace)[0].get("exit_code").is_none());
    assert_eq!(alive("sleep 4711"), Vec::<String>::new());
}

#[test]
fn nothing_of_a_terminal_outlives_its_trial() {
    let project = project("timeouts: {grace: 500ms}");
    let program = r#"
call("c", title="server", kind="execute", status="in_progress")
t = terminal("trap '' TERM; (setsid sleep 4712 &) ; sleep 4712 & echo up; while :; do sleep 4712; done")
call("c", "tool_call_update", content=shows(t))
while get("terminal/output", terminalId=t)["output"] != "up\n": time.sleep(0.02)
terminal("exec sleep 4712")
say("done")
"#;
    let begun = Instant::now();
    let (text, trace) = said(&project, program, "");
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(text, "done");
    // The agent never reported how the call ended; the output shown until then is kept.
    let result = results(&trace)[0];
    assert_eq!((&result["status"], &result["output"]), (&json!("unfinished"), &json!("up\n")));
    assert_eq!(alive("sleep 4712"), Vec::<String>::new());
    assert_eq!(project.left_over(), Vec::<std::path::PathBuf>::new());
}

#[test]
#[ignore = "slow: runs many trials"]
fn a_hundred_terminals_run_at_once_and_there_is_an_end_to_them() {
    let project = project("");
    let program = r#"
many = [terminal("echo %d; read x < gate" % n) for n in range(100)]
waits = [later("terminal/wait_for_exit", terminalId=t) for t in many]
more = 0
while True:
    told = ask("terminal/create", command="true")
    if "error" in told: break
    more += 1
gate = os.open("gate", os.O_RDWR)
os.write(gate, b"\n" * 200)
exits = [answer(wait)["result"]["exitCode"] for wait in waits]
outputs = [get("terminal/output", terminalId=t)["output"] for t in many]
assert outputs == ["%d\n" % n for n in range(100)], outputs
for t in many: get("terminal/release", terminalId=t)
say(json.dumps([set(exits) == {0}, more, told["error"]["message"], terminal("true") not in many]))
"#;
    let (text, _) = said(&project, program, "workspace: {setup: [mkfifo gate]}");
    let expected = json!([true, 28, "128 terminals are open; release one first", true]);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
}

#[test]
fn a_cancelled_turn_answers_who_waits_and_keeps_what_was_printed() {
    let project = project("timeouts: {grace: 20s}");
    let program = r#"
call("c", title="long", kind="execute", status="in_progress")
t = terminal("echo begun; exec sleep 4713")
call("c", "tool_call_update", content=shows(t))
told = ask("terminal/wait_for_exit", terminalId=t)
until_cancelled()
late = [code("terminal/create", command="true"), code("fs/write_text_file", path=os.getcwd() + "/late", content="x")]
say(json.dumps([told["error"]["code"], late, get("terminal/output", terminalId=t)["output"], get("terminal/release", terminalId=t)]))
"#;
    case(&project, &[program], "limits: {time: 6s}\ngraders: [{diff: {none: true}}]");
    let (trace, result) = run(&project, &[]);
    assert_eq!((&result["stop"]["reason"], &result["verdict"]), (&json!("timed_out"), &json!("fail")), "{result}");
    let text = of_type(&trace, "stop")[0]["output"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), json!([-32800, [-32800, -32800], "begun\n", {}]));
    let result = results(&trace)[0];
    assert_eq!((&result["status"], &result["output"]), (&json!("cancelled"), &json!("begun\n")));
    assert_eq!(notices(&trace, "late_request").len(), 2);
    assert_eq!(alive("sleep 4713"), Vec::<String>::new());
}

#[test]
fn an_agent_that_dies_takes_its_terminals_along() {
    let project = project("");
    let program = r#"
t = terminal("exec sleep 4714")
later("terminal/wait_for_exit", terminalId=t)
os._exit(7)
"#;
    case(&project, &[program], "");
    let begun = Instant::now();
    let (_, result) = run(&project, &[]);
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!((&result["verdict"], &result["error"]["category"]), (&json!("errored"), &json!("crashed")));
    assert_eq!(alive("sleep 4714"), Vec::<String>::new());
}

#[test]
fn terminals_run_in_the_sandbox_of_the_trial() {
    let program = r#"
def shown(line, **params):
    t = terminal(line, **params)
    exit = get("terminal/wait_for_exit", terminalId=t)["exitCode"]
    return [get("terminal/output", terminalId=t)["output"].strip(), exit]
here = os.getcwd()
own = [{"name": "WRAPPED", "value": "no"}, {"name": "LD_PRELOAD", "value": here + "/x.so"}]
say(json.dumps([shown("echo $WRAPPED; cat PRECIOUS; pwd"), shown("pwd; echo x > made", cwd=here + "/sub"),
    shown("test -z \"$LD_PRELOAD\" || echo $WRAPPED | tail -n 1", cwd=here + "/sub", env=own)[0].splitlines()[-1],
    ask("terminal/create", command="no-such-program", args=["x"]).get("error", {}).get("message")]))
"#;
    let wrapped = "sandbox: {kind: command, command: [env, WRAPPED=yes, '{command}']}";
    let bwrap = bubblewrap();
    for (sandbox, _) in [("sandbox: bwrap", bwrap), (wrapped, true)].into_iter().filter(|(_, there)| *there) {
        let project = project("");
        project.write("precious.txt", "mine");
        let program = program.replace("PRECIOUS", &project.path("precious.txt").display().to_string());
        let keys =
            format!("{sandbox}\nworkspace: {{files: {{sub/x: ''}}}}\ngraders: [{{files: {{exists: [sub/made]}}}}]");
        let (text, _) = said(&project, &program, &keys);
        let told: Value = serde_json::from_str(&text).unwrap();
        let (first, second) = (told[0][0].as_str().unwrap(), told[1][0].as_str().unwrap());
        assert!(first.ends_with("/workspace") && second.ends_with("/workspace/sub"), "{text}");
        assert_eq!((&told[0][1], &told[1][1]), (&json!(0), &json!(0)), "{text}");
        // The command has its own variables, and not those of the sandbox around it.
        assert_eq!(told[2], "no", "{text}");
        if sandbox == wrapped {
            assert!(first.starts_with("yes\nmine"), "{text}");
        } else {
            assert!(
                !first.contains("mine") && told[3].as_str().unwrap().contains("`no-such-program` was not found"),
                "{text}"
            );
        }
    }
}

#[test]
fn requests_that_make_no_sense_are_refused_and_break_nothing() {
    let project = project("");
    let program = r#"
t = terminal("true")
get("terminal/wait_for_exit", terminalId=t)
codes = [code("terminal/create"), code("terminal/create", command=""), code("terminal/create", command=7),
    code("terminal/create", command="ls", args="-l"), code("terminal/create", command="ls", args=[1]),
    code("terminal/create", command="ls", env={"A": "b"}), code("terminal/create", command="ls", env=[{"name": "A=B", "value": ""}]),
    code("terminal/create", command="ls", cwd=os.getcwd() + "/none"), code("terminal/create", command="ls", outputByteLimit=-1),
    code("terminal/output"), code("terminal/output", terminalId=5), code("terminal/output", terminalId="call_1"),
    code("terminal/output", terminalId=t, sessionId="other"), code("terminal/resize", terminalId=t), code("fs/read_text_file", path=3),
    code("terminal/create", command="a\0b", args=["x"])]
say(json.dumps(codes))
"#;
    let (text, _) = said(&project, program, "");
    let expected = "[-32602, -32602, -32602, -32602, -32602, -32602, -32602, -32002, -32602, -32602, -32602, -32002, -32602, -32601, -32602, -32603]";
    assert_eq!(text, expected);
}

#[test]
fn the_demo_agent_has_its_client_work_for_it() {
    let project = Project::new();
    let steps = "\
steps:
  - read: {path: a.txt, line: 2, limit: 1, client: true}
  - write: {path: b.txt, text: new, client: true, ask: true}
  - run: {command: cat b.txt; exit 4, client: true}
  - read: {path: ../home/x, client: true}
  - read: {path: a.txt, line: 2, limit: 1}
  - say: done
";
    project.case(
        "a",
        "workspace: {files: {a.txt: \"one\\ntwo\\nthree\\n\"}}\ngraders: [{files: {contains: {b.txt: new}}}]",
        steps,
    );
    project.evals(&["run"]).exits(0);
    let trace = project.trace("a/demo/default/1");
    let told: Vec<String> = results(&trace)
        .iter()
        .map(|it| format!("{} {} {}", it["status"].as_str().unwrap(), it["output"], it["exit_code"]))
        .collect();
    assert_eq!(told[0], "ok \"two\\n\" null");
    assert_eq!(told[1], "ok \"wrote 3 bytes to b.txt\" null");
    assert_eq!(told[2], "error \"new\" 4");
    assert!(told[3].starts_with("error") && told[3].contains("leads out of the workspace"), "{}", told[3]);
    assert_eq!(told[4], told[0], "the same by itself");
    assert_eq!(notices(&trace, "path_escape").len(), 1);
    let wire = project.of_trial("a/demo/default/1", "wire.jsonl");
    assert!(
        wire.contains("fs/read_text_file") && wire.contains("terminal/create") && !wire.contains("terminal/output")
    );
}

//! Settings of an agent's session: its mode, a new process between turns, files with the first prompt, and answers to
//! its questions.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::services::{TRIAL, case, project, run};
use crate::project::{Project, of_type};
use crate::protocol::wrong;

fn wire(project: &Project) -> String {
    project.of_trial(TRIAL, "wire.jsonl")
}

fn messages(trace: &[Value], role: &str) -> Vec<String> {
    let said = of_type(trace, "message").into_iter().filter(|it| it["role"] == role);
    said.map(|it| it["text"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn handshake_fails(project: &Project, says: &str) {
    let (trace, result) = run(project, &[]);
    assert_eq!(
        (&result["verdict"], &result["error"]["category"]),
        (&json!("errored"), &json!("handshake")),
        "{result}"
    );
    let message = result["error"]["message"].as_str().unwrap();
    assert!(message.contains(says), "{message}");
    assert_eq!(trace.last().unwrap()["reason"], "error");
}

const TURNS: [&str; 3] = [
    "call('call_1', title='first', kind='execute', status='completed'); say('one of ' + str(os.getpid()))",
    "call('call_1', title='second', kind='execute', status='completed'); say('two of ' + str(os.getpid()))",
    "say(json.dumps([told, len(store())])); call('call_9', title='open', kind='execute')",
];

#[test]
fn a_session_goes_on_in_another_process_and_its_history_is_no_news() {
    for (by, can, history) in [
        ("load", r#"{"loadSession": true}"#, 1),
        ("resume", r#"{"sessionCapabilities": {"resume": {}}}"#, 0),
        ("keep", "{}", 0),
    ] {
        let project = project("");
        case(&project, &TURNS, &format!("session: {{between-turns: {by}}}\nenv: {{CAN: '{can}'}}"));
        let (trace, result) = run(&project, &[]);
        assert_eq!(result["verdict"], "pass", "{by}: {result}");
        assert_eq!(messages(&trace, "user"), TURNS);
        let said = messages(&trace, "agent");
        assert_eq!((said.len(), said[2].as_str()), (3, "[[], 3]"), "{by}: {said:?}");
        let pid = |text: &String| text.rsplit(' ').next().unwrap().to_owned();
        assert_eq!(pid(&said[0]) == pid(&said[1]), by == "keep", "{by}: {said:?}");
        let calls: Vec<&Value> = of_type(&trace, "tool_call").into_iter().map(|call| &call["title"]).collect();
        assert_eq!(calls, ["first", "second", "open"], "{by}");
        let told = of_type(&trace, "notice").into_iter().filter(|notice| notice["code"] == "history").count();
        assert_eq!(told, history, "{by}");
        let (exits, wire) = (if by == "keep" { 1 } else { 3 }, wire(&project));
        assert_eq!(wire.matches(r#""dir":"exit""#).count(), exits, "{by}");
        assert_eq!(wire.matches(r#"\"method\":\"session/new\""#).count(), 1);
        assert_eq!(wire.matches(&format!(r#"\"method\":\"session/{by}\""#)).count(), exits - 1);
    }
}

#[test]
#[ignore = "slow: runs many trials"]
fn the_history_of_a_loaded_session_is_compared_with_its_trace() {
    let first =
        "call('c', title='Test', kind='execute', rawInput={'command': 'make test'}, status='in_progress'); say(1)";
    let again = "call('c', title='Test', kind='execute', status='in_progress')";
    let hidden = "call('d', title='Run', kind='execute', rawInput={'command': 'rm -rf src'}, status='completed')";
    let failed = "call('c', 'tool_call_update', status='failed')";
    let same = "call('c', title='Shell', kind='other', rawInput={'command': 'make test'}, status='in_progress')";
    let other_input = "call('c', title='Test', kind='execute', rawInput={'command': 'rm -rf src'})";
    let other_kind = "call('c', title='Test', kind='delete', rawInput={'command': 'make test'})";
    for (history, lost) in [
        (again, None),
        (same, None),
        (failed, Some(("history_outcome", "outcome"))),
        (hidden, Some(("history_call", "call"))),
        (other_input, Some(("history_call", "call"))),
        (other_kind, Some(("history_call", "call"))),
    ] {
        for place in ["HISTORY", "LATE_HISTORY"] {
            let project = project("");
            let env = format!("CAN: '{{\"loadSession\": true}}', {place}: \"{history}\"");
            let graders = "graders: [{tool-calls: {forbid: [{command: rm}]}}, {errors: {max: 0}}]";
            let keys = format!("session: {{between-turns: load}}\nenv: {{{env}}}\n{graders}");
            case(&project, &[first, "say(2)", "say(3)"], &keys);
            let (trace, result) = run(&project, &[]);
            let verdict = if lost.is_some() { "ungraded" } else { "pass" };
            assert_eq!(result["verdict"], verdict, "{place} {history}: {result}");
            let told: Vec<(&str, &str)> = of_type(&trace, "notice")
                .into_iter()
                .filter_map(|notice| Some((notice["code"].as_str()?, notice["lost"].as_str()?)))
                .collect();
            assert_eq!(told, Vec::from_iter(lost), "{place} {history}");
            assert_eq!(of_type(&trace, "tool_call").len(), 1);
        }
    }
}

#[test]
fn a_history_that_comes_after_the_answer_is_not_the_answer_of_the_next_turn() {
    let project = project("");
    let env = r#"CAN: '{"loadSession": true}', LATE_HISTORY: "say('the answer is 42')""#;
    let keys = format!(
        "session: {{between-turns: load}}\nenv: {{{env}}}\ngraders: [{{output: {{contains: the answer is 42}}}}]"
    );
    case(&project, &["say('the answer is 42')", "pass"], &keys);
    let (trace, result) = run(&project, &[]);
    assert_eq!(messages(&trace, "agent"), ["the answer is 42"]);
    assert_eq!(result["verdict"], "fail", "{result}");
}

#[test]
fn what_a_process_left_open_ends_with_it() {
    let project = project("timeouts: {grace: 200ms}");
    let left = "call('call_1', title='open', kind='execute', status='in_progress'); t = terminal('echo up; exec sleep 4721')
while not get('terminal/output', terminalId=t)['output']: time.sleep(0.02)
call('call_1', 'tool_call_update', content=shows(t)); later('session/request_permission', toolCall={'toolCallId': 'none'}, options=[])";
    // The new process does not have the terminal, and starts its ids from 1 again.
    let next = "say(code('terminal/output', terminalId='evals-terminal-1')); call('call_1', title='again', kind='execute', status='completed')";
    case(&project, &[left, next], "session: {between-turns: load}\nenv: {CAN: '{\"loadSession\": true}'}");
    let (trace, result) = run(&project, &[]);
    assert_eq!(result["verdict"], "pass", "{result}");
    assert_eq!(messages(&trace, "agent"), ["-32002"]);
    let results: Vec<String> = of_type(&trace, "tool_result")
        .iter()
        .map(|it| format!("{} {} {}", it["call"].as_str().unwrap(), it["status"].as_str().unwrap(), it["output"]))
        .collect();
    assert_eq!(results, ["call_1 unfinished \"up\\n\"", "call_1#2 ok null"]);
}

#[test]
fn an_end_of_a_call_that_its_process_left_open_is_another_outcome() {
    let first =
        "call('c', title='Test', kind='execute', rawInput={'command': 'make test'}, status='in_progress'); say(1)";
    for (status, graders) in [
        ("status='failed'", "errors: {max: 0}"),
        ("status='completed'", "tool-calls: {require: [{status: unfinished}]}"),
        ("rawOutput={'exit_code': 3}", "errors: {max: 0}"),
    ] {
        let project = project("");
        let next = format!("call('c', 'tool_call_update', {status}); say(2)");
        let keys = format!(
            "session: {{between-turns: load}}\nenv: {{CAN: '{{\"loadSession\": true}}'}}\ngraders: [{{{graders}}}]"
        );
        case(&project, &[first, &next], &keys);
        let (trace, result) = run(&project, &[]);
        let lost = of_type(&trace, "notice").into_iter().filter(|it| it["lost"] == "outcome").count();
        assert_eq!((lost, &result["verdict"]), (1, &json!("ungraded")), "{status}: {result}");
    }
}

#[test]
fn work_in_the_background_ends_with_its_process() {
    let text = "{'type': 'text', 'text': 'Background agent launched successfully.'}";
    let begins = format!(
        "call('c', title='agent', kind='other', status='in_progress', rawInput={{'prompt': 'x'}}, _meta={{'toolName': 'agent'}}); \
         call('c', 'tool_call_update', status='completed', content=[{{'type': 'content', 'content': {text}}}], _meta={{'toolName': 'agent'}})"
    );
    let task = "{'toolUseId': 'c', 'status': 'completed', 'kind': 'agent'}";
    let ends = format!(
        "update('agent_message_chunk', content={{'type': 'text', 'text': 'It is done.'}}, \
         _meta={{'source': 'background_notification', 'backgroundTask': {task}}})"
    );
    let graders = "graders: [{tool-calls: {forbid: [{command: rm}]}}]";
    for (first, verdict, lost) in
        [(format!("{begins}; {ends}"), "pass", None), (begins.clone(), "ungraded", Some(("background_cut", "call")))]
    {
        let project = project("");
        let env = format!("CAN: '{{\"loadSession\": true}}', HISTORY: \"{begins}\"");
        case(
            &project,
            &[first.as_str(), "say(2)"],
            &format!("session: {{between-turns: load}}\nlimits: {{time: 20s}}\nenv: {{{env}}}\n{graders}"),
        );
        let (trace, result) = run(&project, &[]);
        assert_eq!(result["verdict"], verdict, "{result}");
        // The run does not wait for the limit.
        assert_eq!(trace.last().unwrap()["reason"], "end_turn");
        assert!(result["metrics"]["duration_ms"].as_u64().unwrap() < 19_000, "{result}");
        let told: Vec<(&str, &str)> = of_type(&trace, "notice")
            .into_iter()
            .filter_map(|notice| Some((notice["code"].as_str()?, notice["lost"].as_str()?)))
            .collect();
        assert_eq!(told, Vec::from_iter(lost), "{first}");
    }
}

#[test]
fn an_agent_that_cannot_go_on_is_told_before_anything_is_paid_for() {
    for (by, says) in [
        (
            "load",
            "the case sets `between-turns: load`, but the agent does not support session/load (`agentCapabilities.loadSession`)",
        ),
        (
            "resume",
            "the case sets `between-turns: resume`, but the agent does not support session/resume \
             (`agentCapabilities.sessionCapabilities.resume`)",
        ),
    ] {
        let project = project("");
        case(&project, &["say(1)", "say(2)"], &format!("session: {{between-turns: {by}}}"));
        handshake_fails(&project, says);
        assert!(!wire(&project).contains("session/prompt"));
        // A single turn requires nothing.
        let project = super::services::project("");
        case(&project, &["say(1)"], &format!("session: {{between-turns: {by}}}"));
        assert_eq!(run(&project, &[]).1["verdict"], "pass");
    }
}

#[test]
fn a_session_that_is_lost_between_turns_is_no_answer() {
    let can = "env: {CAN: '{\"loadSession\": true}', REFUSES_LOAD: '1'}\nsession: {between-turns: load}";
    let lost = project("");
    case(&lost, &["say(1)", "say(2)"], can);
    handshake_fails(&lost, "session/load was refused: no such session");
    // A process that does not start again has crashed, although the first turn was answered.
    let gone = project("");
    case(&gone, &["open(os.path.join(os.environ['HOME'], 'x'), 'w'); os.unlink(SELF)", "say(2)"], can);
    let agent = gone.read("agent.py").replace("SESSION =", "SELF = os.path.abspath(__file__)\nSESSION =");
    gone.write("agent.py", &agent);
    let (_, result) = run(&gone, &[]);
    assert_eq!((&result["verdict"], &result["error"]["category"]), (&json!("errored"), &json!("crashed")), "{result}");
}

/// Returns true if the protocol's own types accept a message.
#[test]
fn what_we_say_is_what_the_protocol_has_words_for() {
    let program = r#"
t = terminal("echo x; kill -9 $$", cwd=os.getcwd(), env=[{"name": "A", "value": "b"}], outputByteLimit=10)
before = get("terminal/output", terminalId=t)
get("terminal/wait_for_exit", terminalId=t)
get("terminal/output", terminalId=t)
get("terminal/kill", terminalId=t); get("terminal/release", terminalId=t)
get("fs/write_text_file", path=os.getcwd() + "/a", content="x"); get("fs/read_text_file", path=os.getcwd() + "/a")
one = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "boolean"}, "d": {"type": "array", "items": {"enum": ["1"]}}}}
for message in ("1", "?"): get("elicitation/create", mode="form", message=message, requestedSchema=one)
code("fs/read_text_file", path="/etc/passwd")
"#;
    let project = project("");
    for name in ["x.png", "x.wav", "x.md"] {
        project.write(&format!("cases/{name}"), "x");
    }
    let can = r#"{"loadSession": true, "promptCapabilities": {"image": true, "audio": true, "embeddedContext": true}}"#;
    let keys = "session: {mode: plan, between-turns: load}\nattachments: [x.png, x.wav, x.md]\nanswers: [{question: '[a-d1]', answer: '1'}]";
    case(&project, &[program, "say(1)"], &format!("{keys}\nenv: {{CAN: '{can}', {MODES}}}"));
    let (_, result) = run(&project, &[]);
    assert_eq!(result["verdict"], "pass", "{result}");
    let mut asked: HashMap<String, String> = HashMap::new();
    let mut seen: HashMap<String, usize> = HashMap::new();
    for line in wire(&project).lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let Ok(message) = serde_json::from_str::<Value>(line["line"].as_str().unwrap()) else { continue };
        let method = message["method"].as_str().map(str::to_owned);
        if line["dir"] == "recv"
            && let Some(method) = method
        {
            asked.insert(message["id"].to_string(), method);
            continue;
        }
        if line["dir"] != "send" {
            continue;
        }
        let (word, wrong) = match &method {
            Some(method) => {
                let params = &message["params"];
                let wrong = match method.as_str() {
                    "initialize" => wrong("InitializeRequest", params),
                    "session/new" => wrong("NewSessionRequest", params),
                    "session/load" => wrong("LoadSessionRequest", params),
                    "session/set_mode" => wrong("SetSessionModeRequest", params),
                    "session/prompt" => wrong("PromptRequest", params),
                    _ => vec![format!("`{method}` is not known")],
                };
                (method.clone(), wrong)
            }
            None => {
                let (method, result) = (&asked[&message["id"].to_string()], &message["result"]);
                let wrong = match method.as_str() {
                    _ if message["error"].is_object() => wrong("Error", &message["error"]),
                    "terminal/create" => wrong("CreateTerminalResponse", result),
                    "terminal/output" => wrong("TerminalOutputResponse", result),
                    "terminal/wait_for_exit" => wrong("WaitForTerminalExitResponse", result),
                    "terminal/kill" => wrong("KillTerminalResponse", result),
                    "terminal/release" => wrong("ReleaseTerminalResponse", result),
                    "fs/read_text_file" => wrong("ReadTextFileResponse", result),
                    "fs/write_text_file" => wrong("WriteTextFileResponse", result),
                    "elicitation/create" => wrong("CreateElicitationResponse", result),
                    _ => vec![format!("`{method}` is not known")],
                };
                (format!("answer to {method}"), wrong)
            }
        };
        assert_eq!(wrong, [""; 0], "{word}: {message}");
        *seen.entry(word).or_default() += 1;
    }
    assert_eq!(seen.len(), 13, "{seen:?}");
}

const MODES: &str = r#"MODES: '{"currentModeId": "code", "availableModes": [{"id": "code", "name": "Code"}, {"id": "plan", "name": "Plan"}]}'"#;
const OPTIONS: &str = r#"OPTIONS: '[{"id": "how", "category": "mode", "type": "select", "currentValue": "code", "options": [{"group": "g", "name": "G", "options": [{"value": "plan", "name": "Plan it"}]}]}]'"#;

#[test]
#[ignore = "slow: runs many trials"]
fn the_session_is_put_into_the_mode_of_the_case() {
    for (mode, env, told) in [
        ("plan", MODES, "plan"),
        ("Plan", MODES, "plan"),
        ("plan", OPTIONS, "how=plan"),
        ("Plan it", OPTIONS, "how=plan"),
    ] {
        let project = project("");
        case(&project, &["say(told[0])"], &format!("session: {{mode: {mode}}}\nenv: {{{env}}}"));
        let (trace, result) = run(&project, &[]);
        assert_eq!(
            (&result["verdict"], messages(&trace, "agent")),
            (&json!("pass"), vec![told.to_owned()]),
            "{result}"
        );
    }
    for (env, says) in [
        (MODES.replace("plan", "other"), "mode `plan` is not one of the agent's modes: code, other"),
        (format!("{MODES}, REFUSES_MODE: not today"), "mode `plan` was refused: not today"),
        (format!("{MODES}, MODE_AFTER: code"), "was accepted, but the agent reports mode `code`"),
        (format!("{OPTIONS}, MODE_AFTER: code"), "was accepted, but the agent reports mode `code`"),
        (String::new(), "mode `plan` cannot be set: the agent offers no modes"),
    ] {
        let project = project("");
        case(&project, &["say(1)"], &format!("session: {{mode: plan}}\nenv: {{{env}}}"));
        handshake_fails(&project, says);
        assert!(!wire(&project).contains("session/prompt"), "{says}");
    }
    // A new process is put into the mode again.
    let project = project("");
    let env = format!("CAN: '{{\"loadSession\": true}}', {MODES}");
    case(
        &project,
        &["say(told)", "say(told)"],
        &format!("session: {{mode: plan, between-turns: load}}\nenv: {{{env}}}"),
    );
    assert_eq!(messages(&run(&project, &[]).0, "agent"), ["['plan']", "['plan']"]);
}

#[test]
fn what_an_adapter_cannot_do_is_skipped_and_wrong_words_are_told_where_they_stand() {
    let project = Project::new();
    let says = "steps: [{say: done}]";
    project.case("mode", "session: {mode: plan}", says);
    project.case("load", "turns: [a, b]\nsession: {between-turns: load}\ngraders: [{output: {contains: x}}]", says);
    project.write("cases/x.png", "png");
    project.case("attached", "attachments: [x.png]", says);
    let ran = project.evals(&["run", "--harness", "demo-stream"]).exits(3);
    let ran = ran.says("the case sets the session mode `plan`, and `claude-code-stream` has no modes");
    let ran = ran.says("continues its session in another process, which `claude-code-stream` does not support");
    ran.says("the case attaches `x.png`, and `claude-code-stream` does not accept such files");
    project.case("mode", "session: {mode: '', betwen-turns: load}", says);
    project.case("load", "turns: [a, b]\nsession: {between-turns: lode}\ngraders: [{output: {contains: x}}]", says);
    project.case("attached", "attachments: [x.png, gone.png]", says);
    let ran = project.evals(&["check"]).exits(2);
    let ran = ran.says("mode.yaml:1:21: unknown key `betwen-turns`").says("did you mean `between-turns`?");
    let ran = ran
        .says("load.yaml:2:26: `lode` is not known")
        .says("attached.yaml:2:22: the file `cases/gone.png` does not exist");
    ran.says("mode.yaml:1:17: the mode is empty");
}

#[test]
fn files_are_sent_along_as_the_agent_takes_them() {
    for (can, blocks, kinds) in [
        (
            r#"{"image": true, "audio": true, "embeddedContext": true}"#,
            ["image", "audio", "resource", "resource"],
            true,
        ),
        ("{}", ["resource_link"; 4], false),
    ] {
        let project = project("");
        for (name, bytes) in
            [("x.png", &b"png"[..]), ("x.wav", b"wav"), ("notes.md", b"# Notes\n"), ("x.bin", &[0xff, 0])]
        {
            std::fs::create_dir_all(project.path("cases/files")).unwrap();
            std::fs::write(project.path("cases/files").join(name), bytes).unwrap();
        }
        let program = r#"
import urllib.parse
texts = [block for block in prompt if block["type"] == "text"]
links = [urllib.parse.unquote(block["uri"][7:]) for block in prompt if block["type"] == "resource_link"]
say(json.dumps([[block["type"] for block in prompt[1:]], len(texts), [os.path.getsize(link) for link in links]]))
"#;
        let keys =
            "attachments: [files/x.png, files/x.wav, files/notes.md, files/x.bin]\ngraders: [{diff: {none: true}}]";
        let later = "say(len(prompt))";
        case(&project, &[program, later], &format!("{keys}\nenv: {{CAN: '{{\"promptCapabilities\": {can}}}'}}"));
        let (trace, result) = run(&project, &[]);
        assert_eq!(result["verdict"], "pass", "{result}");
        let sizes = if kinds { json!([]) } else { json!([3, 3, 8, 2]) };
        let said = messages(&trace, "agent");
        assert_eq!(serde_json::from_str::<Value>(&said[0]).unwrap(), json!([blocks, 1, sizes]));
        assert_eq!(said[1], "1", "only with the first prompt");
        let first = of_type(&trace, "message")[0];
        let attached: Vec<&Value> = first["attachments"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
        assert_eq!(attached, blocks);
        assert_eq!(first["attachments"][0]["media_type"], "image/png");
        assert!(of_type(&trace, "message")[2].get("attachments").is_none());
        // A file that is sent along is part of the case.
        std::fs::write(project.path("cases/files/notes.md"), "other").unwrap();
        project.evals(&["run", "--resume", "latest"]).exits(2).says("`a` changed");
    }
}

#[test]
fn questions_are_answered_from_the_case_and_stand_in_the_trace() {
    let program = r#"
def form(message, required, **fields):
    schema = {"type": "object", "properties": fields, "required": required}
    return get("elicitation/create", mode="form", message=message, requestedSchema=schema)
say(json.dumps([
    form("Set it up", ["color", "size"], color={"type": "string", "title": "Which colour?", "oneOf": [{"const": "f00", "title": "Red"}]},
        size={"type": "integer"}, tags={"type": "array", "items": {"enum": ["a", "b"]}}),
    form("What size?", ["n"], n={"type": "boolean"}),
    form("Who knows?", ["n"], n={"type": "string"}),
    get("elicitation/create", mode="url", message="Log in", url="https://example.com", elicitationId="e"),
    get("elicitation/create", mode="form", message="For another", requestedSchema={}, sessionId="other"),
]))
"#;
    let project = project("");
    let answers = "answers: [{question: '(?i)colou?r', answer: red}, {question: (?i)size, answer: '7'}, {question: tags, answer: 'b, a'}]";
    let graders = "graders: [{permissions: {asked: [{name: elicitation/create, input: colour}], allowed: [{input: colour}], rejected: [{input: Who knows}]}}]";
    case(&project, &[program], &format!("{answers}\n{graders}"));
    let (trace, result) = run(&project, &[]);
    assert_eq!(result["verdict"], "pass", "{result}");
    let said: Value = serde_json::from_str(&messages(&trace, "agent")[0]).unwrap();
    let content = json!({"color": "f00", "size": 7, "tags": ["b", "a"]});
    let declined = json!({"action": "decline"});
    assert_eq!(
        said,
        json!([{"action": "accept", "content": content}, declined, declined, declined, {"action": "cancel"}])
    );
    let told: Vec<String> = of_type(&trace, "permission_response")
        .iter()
        .map(|it| {
            let word = |key: &str| it[key].as_str().unwrap_or("-").to_owned();
            let result =
                of_type(&trace, "tool_result").into_iter().find(|result| result["call"] == it["call"]).unwrap();
            format!("{} {} {} {}", word("outcome"), word("policy"), word("rule"), result["status"].as_str().unwrap())
        })
        .collect();
    let (answers, nobody) = ("allowed answers answers[0] ok", "rejected auto-approve - denied");
    assert_eq!(told, [answers, "rejected answers answers[1] denied", nobody, "rejected engine - denied"]);
    let first = of_type(&trace, "permission_response")[0];
    assert_eq!(first["updated_input"]["content"], content);
    let call = of_type(&trace, "tool_call")[0];
    assert_eq!((&call["name"], &call["title"]), (&json!("elicitation/create"), &json!("Set it up")));
    assert_eq!(call["input"]["requestedSchema"]["properties"]["size"]["type"], "integer");
    assert!(of_type(&trace, "notice").iter().any(|it| it["code"] == "foreign_session"));
    let why = |n: usize| of_type(&trace, "permission_response")[n]["reason"].as_str().unwrap().to_owned();
    assert!(why(1).contains("`7` is neither yes nor no"), "{}", why(1));
    assert!(why(2).contains("is not a permission"), "{}", why(2));
}

#[test]
fn a_question_of_a_cancelled_turn_is_cancelled() {
    let project = project("timeouts: {grace: 20s}");
    let program = r#"
until_cancelled()
say(json.dumps(get("elicitation/create", mode="form", message="Still there?", requestedSchema={"properties": {"a": {"type": "string"}}})))
"#;
    case(&project, &[program], "limits: {idle: 500ms}\nanswers: [{question: Still, answer: 'yes'}]");
    let (trace, _) = run(&project, &[]);
    assert_eq!(messages(&trace, "agent"), [r#"{"action": "cancel"}"#]);
    assert_eq!(of_type(&trace, "permission_response")[0]["outcome"], "cancelled");
    assert_eq!(of_type(&trace, "tool_result")[0]["status"], "cancelled");
}

#[test]
fn the_demo_agent_asks_and_goes_by_the_answer() {
    let steps = "\
steps:
  - question:
      message: Which colour?
      options: [red, blue]
      when: {blue: [{write: {path: colour, text: blue}}]}
      otherwise: [{say: I will not guess.}]
  - question: {message: Your name?, otherwise: [{say: Nobody.}]}
";
    for (answers, written, said) in [
        ("answers: [{question: colour, answer: Blue}, {question: name, answer: Ada}]", true, "Ada"),
        ("answers: [{question: colour, answer: red}]", false, "Nobody."),
        ("", false, "Nobody."),
    ] {
        let project = Project::new();
        project.case("a", answers, steps);
        project.evals(&["run"]).exits(0);
        let trace = project.trace("a/demo/default/1");
        let output = of_type(&trace, "stop")[0]["output"].as_str().unwrap_or_default();
        assert_eq!((output, of_type(&trace, "permission_request").len()), (said, 2), "{answers}");
        let edits = of_type(&trace, "tool_call").into_iter().filter(|call| call["kind"] == "edit").count();
        assert_eq!(edits == 1, written, "{answers}");
    }
    // If no one can be asked, there is no answer.
    let project = Project::new();
    project.case("a", "", steps);
    project.evals(&["run", "--harness", "demo-text"]);
    assert_eq!(project.trace("a/demo-text/default/1").last().unwrap()["output"], "Nobody.");
}

/// A program that speaks Claude Code's control protocol and prints the content of its first two prompts.
const CLAUDE: &str = r#"
import json, sys
def say(line): print(json.dumps({**line, "session_id": "s"}), flush=True)
for line in sys.stdin:
    line = json.loads(line)
    if line["type"] == "control_request":
        say({"type": "control_response", "response": {"subtype": "success", "request_id": line["request_id"], "response": {}}})
        continue
    text = json.dumps([[block["type"], block.get("source", {}).get("media_type"), block.get("source", {}).get("data"), block.get("title")] for block in line["message"]["content"]])
    say({"type": "assistant", "message": {"id": "m", "role": "assistant", "model": "m", "content": [{"type": "text", "text": text}]}, "parent_tool_use_id": None})
    say({"type": "result", "subtype": "success", "is_error": False, "result": text})
"#;

#[test]
fn claude_code_takes_images_documents_and_text_and_nothing_else() {
    let project = Project::new();
    project.write("claude.py", CLAUDE);
    let at = project.path("claude.py").display().to_string();
    project.harness("agent", &format!("adapter: claude-code-control\ncommand: [python3, {at}]"));
    for (name, bytes) in
        [("x.png", &b"png"[..]), ("x.pdf", b"pdf"), ("notes.md", b"text"), ("odd", &[0xff]), ("x.wav", b"wav")]
    {
        std::fs::create_dir_all(project.path("cases")).unwrap();
        std::fs::write(project.path("cases").join(name), bytes).unwrap();
    }
    case(&project, &["one", "two"], "attachments: [x.png, x.pdf, notes.md]");
    let (trace, result) = run(&project, &[]);
    assert_eq!(result["verdict"], "pass", "{result}");
    let said = messages(&trace, "agent");
    assert_eq!(
        serde_json::from_str::<Value>(&said[0]).unwrap(),
        json!([
            ["text", null, null, null],
            ["image", "image/png", "cG5n", null],
            ["document", "application/pdf", "cGRm", "x.pdf"],
            ["document", "text/plain", "text", "notes.md"]
        ])
    );
    assert_eq!(said[1], r#"[["text", null, null, null]]"#);
    assert_eq!(of_type(&trace, "message")[0]["attachments"].as_array().unwrap().len(), 3);
    // A file that is unsupported by its name skips the trial. If that is found out later, the trial is errored, and
    // not run without the file.
    for (file, code, says) in [
        ("x.wav", 3, "the case attaches `x.wav`, and `claude-code-control` does not accept such files"),
        ("odd", 3, "the attachment `odd` cannot be sent: `claude-code-control` takes images, PDF documents and text"),
    ] {
        std::fs::remove_dir_all(project.path(".evals")).unwrap();
        case(&project, &["one"], &format!("attachments: [{file}]"));
        project.evals(&["run", "--harness", "agent"]).exits(code).says(says);
    }
}

#[test]
fn how_an_earlier_process_ended_and_a_removed_workspace_are_told() {
    let keys = "session: {between-turns: load}\nenv: {CAN: '{\"loadSession\": true}'}";
    for (first, verdict, codes) in [
        ("say(1)", "pass", vec![]),
        ("import atexit; atexit.register(os._exit, 9); say(1)", "pass", vec!["exit_code"]),
        ("import shutil; shutil.rmtree(os.getcwd()); say(1)", "ungraded", vec!["prompts_not_sent", "workspace_lost"]),
    ] {
        let project = project("");
        case(&project, &[first, "say(2)"], keys);
        let (_, result) = run(&project, &[]);
        assert_eq!((&result["verdict"], &result["error"]), (&json!(verdict), &Value::Null), "{first}: {result}");
        let mut told: Vec<&str> =
            result["warnings"].as_array().into_iter().flatten().map(|it| it["code"].as_str().unwrap()).collect();
        told.sort_unstable();
        assert_eq!(told, codes, "{first}");
    }
}

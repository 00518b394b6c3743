//! Agents that request, answer and end at unusual moments: the trace contains what the engine decided.

use serde_json::Value;

use super::control::answers;
use crate::laws::assert_lawful;
use crate::project::{Project, of_type};

pub const ACP: &str = include_str!("odd_moments/acp.py");
pub const BOTH_WAYS: &str = include_str!("odd_moments/both_ways.py");

/// Makes a project with an agent that runs this program.
pub fn project(protocol: &str, does: &str, keys: &str) -> Project {
    let mut project = Project::new();
    project.env("MY_TOKEN", "sk-secret-0451");
    let adapter = if protocol == ACP { "acp" } else { "claude-code-control" };
    project.write("agent.py", &format!("{protocol}\n{does}\nsys.stdin.read()\n"));
    let at = project.path("agent.py").display().to_string();
    let keys = format!("adapter: {adapter}\ncommand: [python3, {at}]\ntimeouts: {{grace: 20s}}\n{keys}");
    project.harness("odd", &keys);
    project
}

/// Runs a trial of an agent that runs this program, in a case with these keys.
pub fn run(protocol: &str, does: &str, case: &str) -> (Vec<Value>, Value) {
    let project = project(protocol, does, "env: {pass: [MY_TOKEN]}");
    project.case("a", case, "");
    project.evals(&["run", "--harness", "odd"]);
    let trial = "a/odd/default/1";
    let text = project.of_trial(trial, "trace.jsonl");
    assert_lawful(&text);
    // The recording gives the same trace again.
    let wire = format!("{}/trials/{trial}/wire.jsonl", project.run_folder());
    assert_eq!(project.evals(&["import", "--harness", "odd", &wire]).exits(0).out, text);
    assert_eq!(project.evals(&["import", &wire]).exits(0).out, text);
    (project.trace(trial), project.result(trial))
}

pub fn codes(trace: &[Value]) -> Vec<&str> {
    of_type(trace, "notice").iter().filter_map(|notice| notice["code"].as_str()).collect()
}

const TWO_TURNS: &str = "turns: [one, two]\ninteraction: auto-approve";
const NO_RM: &str = "interaction: {scripted: {rules: [{when: {command: ^rm}, answer: reject-once}], default: allow}}";

#[test]
fn a_request_of_a_turn_that_is_over_is_not_approved_under_the_next_one() {
    let acp = "
turn = prompt()
say(tool('c', 'rm x'), end(turn), ask(7, 'c', 'rm x'))
turn = prompt()
answer(7)
say(text('two'), end(turn))";
    let both_ways = "
prompt()
say(tool('c', 'rm x'), result(), ask('r', 'c', 'rm x'))
prompt()
answer('r')
say(text('two'), result())";
    for (protocol, does) in [(ACP, acp), (BOTH_WAYS, both_ways)] {
        let (trace, result) = run(protocol, does, TWO_TURNS);
        let answers = answers(&trace);
        assert!(answers.iter().all(|answer| answer.starts_with("cancelled engine")), "{answers:?}");
        assert_eq!((answers.len(), codes(&trace)), (1, vec!["late_request"]));
        assert_eq!(result["verdict"], "pass");
    }
}

#[test]
fn what_is_asked_behind_the_last_answer_is_answered() {
    let acp = "
turn = prompt()
refused = {'id': turn, 'error': {'code': -32603, 'message': 'boom'}}
say(tool('c', 'rm x'), refused, ask(7, 'c', 'rm x'))";
    let both_ways = "
prompt()
say(tool('c', 'rm x'), result(), ask('r', 'c', 'rm x'))";
    for (protocol, does) in [(ACP, acp), (BOTH_WAYS, both_ways)] {
        let (trace, _) = run(protocol, does, "interaction: auto-approve");
        assert_eq!(of_type(&trace, "permission_request").len(), 1);
        let answers = answers(&trace);
        assert!(answers.len() == 1 && answers[0].starts_with("cancelled engine"), "{answers:?}");
    }
}

/// A turn of Claude Code that leaves a sub-agent at work when it has answered.
const SUB_AGENT: &str = "
def began(): return {'type': 'system', 'subtype': 'init'}
def tasks(*running): return {'type': 'system', 'subtype': 'background_tasks_changed', 'tasks': list(running)}
prompt()
say(began(), tasks({'task_id': 'b', 'task_type': 'local_agent'}), text('at work'), result())";

#[test]
fn requests_of_a_sub_agent_that_works_after_the_answer_are_decided_by_the_policy() {
    let does = format!(
        "{SUB_AGENT}
time.sleep(0.5)
say(tool('c', 'ls'), ask('r', 'c', 'ls'))
answer('r')
say(told('c', 'done'), tasks())
time.sleep(0.5)
say(began(), tool('d', 'rm x'), ask('q', 'd', 'rm x'))
answer('q')
say(text('all written'), result(origin={{'kind': 'task-notification'}}))"
    );
    let (trace, result) = run(BOTH_WAYS, &does, NO_RM);
    assert_eq!(answers(&trace), ["allowed scripted - ok", "rejected scripted rules[0] denied"]);
    assert_eq!(codes(&trace), [""; 0]);
    assert_eq!((&trace.last().unwrap()["output"], &result["verdict"]), (&"all written".into(), &"pass".into()));
}

#[test]
fn a_sub_agent_that_does_not_end_is_ended_at_the_time_limit_and_the_last_answer_counts() {
    let project = project(BOTH_WAYS, SUB_AGENT, "");
    let case = "limits: {time: 3s}\ninteraction: auto-approve\ngraders: [{stop: {reason: end_turn}}]";
    project.case("a", case, "");
    project.evals(&["run", "--harness", "odd"]).exits(0);
    let trace = project.trace("a/odd/default/1");
    assert_eq!(trace.last().unwrap()["output"], "at work");
    // Calls of the sub-agent may be missing.
    let cut = of_type(&trace, "notice");
    assert_eq!((codes(&trace), &cut[0]["lost"]), (vec!["background_cut"], &"call".into()));
    // The stored trial lasted longer than the limit, and its prompt was answered in time.
    project.evals(&["grade", "latest"]).exits(0);
}

/// A turn of Claude Code, and the line that announces another one.
const ANNOUNCED: &str = "
prompt()
began = {'type': 'system', 'subtype': 'init'}
say(began, text('done'), result(), began)";

#[test]
fn a_turn_that_is_announced_and_does_not_come_ends_the_session_after_the_grace_period() {
    let project = project(BOTH_WAYS, ANNOUNCED, "");
    let at = project.path("agent.py").display().to_string();
    let keys = format!("adapter: claude-code-control\ncommand: [python3, {at}]\ntimeouts: {{grace: 1s}}");
    project.harness("odd", &keys);
    project.case("a", "graders: [{output: {contains: done}}]", "");
    let begun = std::time::Instant::now();
    project.evals(&["run", "--harness", "odd"]).exits(0);
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    let trace = project.trace("a/odd/default/1");
    assert_eq!((codes(&trace), &trace.last().unwrap()["reason"]), (vec![], &"end_turn".into()));
}

#[test]
fn a_turn_that_is_announced_when_the_program_ends_is_unfinished() {
    let does = format!("{ANNOUNCED}\nsys.exit(0)");
    let (trace, result) = run(BOTH_WAYS, &does, "graders: [{output: {not-contains: boom}}]");
    assert_eq!((codes(&trace), &result["verdict"]), (vec!["unfinished_turn"], &"ungraded".into()));
}

/// Two prompts of Claude Code. A command in the background ends when the second one is sent, and Claude Code first plays a turn of its
/// own about that.
const OWN_TURN: &str = "
def tasks(*running): return {'type': 'system', 'subtype': 'background_tasks_changed', 'tasks': list(running)}
began = {'type': 'system', 'subtype': 'init'}
prompt()
say(began, tasks({'task_id': 'b', 'task_type': 'local_bash'}), text('one'), result())
prompt()
say(tasks(), began, text('it has ended'), result(origin={'kind': 'task-notification'}))";

#[test]
fn a_turn_that_the_program_begins_itself_does_not_answer_the_prompt() {
    let answers = format!("{OWN_TURN}\nsay(began, text('two'), result())");
    let (trace, result) = run(BOTH_WAYS, &answers, TWO_TURNS);
    assert_eq!((codes(&trace), &result["verdict"]), (vec![], &"pass".into()), "{trace:#?}");
    assert_eq!(trace.last().unwrap()["output"], "two");
    // The agent is at work on the prompt when the time is up, and ends when it is interrupted.
    let works = format!("{OWN_TURN}\nsay(began)\nwhile hear()['type'] != 'control_request': pass\nsys.exit(0)");
    let (trace, result) = run(BOTH_WAYS, &works, &format!("limits: {{time: 2s}}\n{TWO_TURNS}"));
    assert_eq!(result["verdict"], "fail", "{trace:#?}");
    assert_eq!(trace.last().unwrap()["reason"], "timed_out", "{trace:#?}");
}

#[test]
fn a_prompt_that_the_program_takes_into_a_turn_of_its_own_is_answered_there() {
    let does = format!("{OWN_TURN}\nprompt()\nsay(began, text('three'), result())");
    let project = project(BOTH_WAYS, &does, "");
    let at = project.path("agent.py").display().to_string();
    let keys = format!("adapter: claude-code-control\ncommand: [python3, {at}]\ntimeouts: {{grace: 1s}}");
    project.harness("odd", &keys);
    project.case("a", "turns: [one, two, three]\ngraders: [{output: {equals: three}}]", "");
    project.evals(&["run", "--harness", "odd"]).exits(0);
    let trace = project.trace("a/odd/default/1");
    assert_eq!(codes(&trace), ["unfinished_turn"], "{trace:#?}");
    assert!(of_type(&trace, "notice")[0].get("lost").is_none(), "{trace:#?}");
}

#[test]
fn a_request_that_could_not_be_sent_is_no_failure_of_the_agent() {
    let does = "
prompt()
say(text('at work'), result())
sys.stdin.read()
failed = told('c', 'Tool permission request failed: AbortError: Stream closed')
failed['message']['content'][0]['is_error'] = True
say(tool('c', 'ls'), failed, text('done'), result())";
    let (_, result) = run(BOTH_WAYS, does, "interaction: auto-approve");
    assert_eq!((&result["verdict"], &result["error"]["category"]), (&"errored".into(), &"protocol".into()));
}

#[test]
fn what_is_asked_after_an_interrupt_is_cancelled_with_a_notice() {
    let does = "
prompt()
say(tool('c', 'a'))
while True:
    line = hear()
    if line['type'] == 'control_request': break
say(ask('r', 'c', 'a'))
answer('r')
interrupted = {'type': 'user', 'message': {'role': 'user', 'content': [{'type': 'text', 'text': '[Request interrupted by user]'}]}, 'parent_tool_use_id': None}
say(accepts(line['request_id']), interrupted, result(subtype='error_during_execution', is_error=True))
sys.exit(0)";
    let (trace, result) = run(BOTH_WAYS, does, "limits: {time: 5s}\ninteraction: auto-approve");
    assert_eq!(answers(&trace), ["cancelled engine - cancelled"]);
    assert!(codes(&trace).contains(&"late_request"), "{trace:?}");
    assert_eq!(result["verdict"], "fail");
}

#[test]
fn a_turn_ends_with_the_line_that_ends_it_however_the_lines_come() {
    for gap in ["", "time.sleep(0.3)"] {
        let does = format!(
            "
prompt()
say(text('I fail'))
{gap}
say(result(subtype='error_during_execution', is_error=True, errors=['boom'], stop_reason=None))
prompt()
say(text('two'), result())"
        );
        let does = if gap.is_empty() { does.replace("'))\n\nsay(result", "'), result") } else { does };
        let (trace, result) = run(BOTH_WAYS, &does, TWO_TURNS);
        assert_eq!(result["verdict"], "errored", "{gap}: {trace:?}");
        assert!(of_type(&trace, "message").iter().all(|message| message["text"] != "two"), "{trace:?}");
    }
}

#[test]
fn what_is_decided_is_what_is_asked_and_not_what_was_announced() {
    let both_ways = "
prompt()
say(tool('c', 'ls'), ask('r', 'c', 'rm -rf x'))
answer('r')
say(told('c', 'done'), text('end'), result())";
    let (trace, _) = run(BOTH_WAYS, both_ways, NO_RM);
    assert_eq!(answers(&trace), ["rejected scripted rules[0] denied"]);
    // If the call is allowed, matchers see the allowed call.
    let case = "interaction: auto-approve\ngraders: [{tool-calls: {forbid: [{command: ^rm}]}}]";
    let (trace, result) = run(BOTH_WAYS, both_ways, case);
    assert_eq!(of_type(&trace, "permission_response")[0]["updated_input"]["command"], "rm -rf x");
    assert_eq!(
        (&of_type(&trace, "tool_call")[0]["input"]["command"], &result["verdict"]),
        (&"ls".into(), &"fail".into())
    );

    let acp = "
turn = prompt()
say(tool('c', 'ls'), ask(7, 'c', 'rm -rf x'))
answer(7)
say(told('c', 'done'), text('end'), end(turn))";
    let (trace, _) = run(ACP, acp, NO_RM);
    assert_eq!(
        (answers(&trace), codes(&trace)),
        (vec!["rejected scripted rules[0] denied".to_owned()], vec!["other_command", "denied_call_completed"])
    );
}

#[test]
#[ignore = "slow: runs many trials"]
fn what_a_request_adds_to_the_announced_input_is_graded() {
    let asks = |announced: &str, requested: &str, kind: &str| {
        format!(
            "
def shown(values):
    return {{'toolCallId': 'c', 'title': 'Do', 'kind': '{kind}', 'status': 'pending', 'rawInput': values}}

turn = prompt()
asked = ask(7, 'c', '')
asked['params']['toolCall'] = shown({requested})
say(update(sessionUpdate='tool_call', **shown({announced})), asked)
answer(7)
say(told('c', 'done'), text('end'), end(turn))"
        )
    };
    let edit = asks("{'path': 'a.txt'}", "{'path': 'a.txt', 'content': 'backdoor'}", "edit");
    let fetch = asks("{'prompt': 'p'}", "{'url': 'http://evil'}", "fetch");
    for (does, graders, verdict) in [
        (&edit, "forbid: [{kind: edit, input: backdoor}]", "fail"),
        (&edit, "forbid: [{kind: edit, args: {content: backdoor}}]", "fail"),
        (&edit, "require: [{kind: edit, input: backdoor}]", "pass"),
        (&fetch, "forbid: [{kind: fetch, input: evil}]", "fail"),
        (&fetch, "forbid: [{kind: fetch, input: prompt}]", "fail"),
    ] {
        let case = format!("interaction: auto-approve\ngraders: [{{tool-calls: {{{graders}}}}}]");
        let (_, result) = run(ACP, does, &case);
        assert_eq!(result["verdict"], verdict, "{graders}: {result}");
    }
    // An attempt that was rejected is one, too.
    let case = "interaction: {scripted: {rules: [{when: {input: evil}, answer: reject-once}], default: allow}}\n\
        graders: [{tool-calls: {forbid: [{kind: fetch, input: evil}]}}]";
    let (trace, result) = run(ACP, &fetch, case);
    assert_eq!((&of_type(&trace, "tool_result")[0]["status"], &result["verdict"]), (&"denied".into(), &"fail".into()));
}

#[test]
fn a_request_that_is_withdrawn_is_not_allowed() {
    let acp = "
turn = prompt()
say(tool('c', 'ls'), ask(7, 'c', 'ls'), {'method': '$/cancel_request', 'params': {'requestId': 7}})
answer(7)
say(text('end'), end(turn))";
    let both_ways = "
prompt()
say(tool('c', 'ls'), ask('r', 'c', 'ls'), {'type': 'control_cancel_request', 'request_id': 'r'})
say(tool('d', 'ls'), ask('q', 'd', 'ls'))
answer('q')
say(told('d', 'done'), text('end'), result())";
    let (trace, _) = run(ACP, acp, "interaction: auto-approve");
    assert_eq!(answers(&trace), ["cancelled engine - cancelled"]);
    let (trace, _) = run(BOTH_WAYS, both_ways, "interaction: auto-approve");
    assert_eq!(answers(&trace), ["cancelled - - cancelled", "allowed auto-approve - ok"]);
}

#[test]
fn a_withdrawal_with_half_a_character_is_read() {
    let does = "
prompt()
withdrawn = {'type': 'control_cancel_request', 'request_id': 'r', 'reason': '\\ud83d'}
say(tool('c', 'ls'), ask('r', 'c', 'ls'), withdrawn, tool('d', 'ls'), ask('q', 'd', 'ls'))
first = hear()['response']['request_id']
say(told('d', first), text('end'), result())";
    let (trace, _) = run(BOTH_WAYS, does, "interaction: auto-approve");
    assert_eq!(of_type(&trace, "tool_result")[0]["output"], "q", "{trace:?}");
}

#[test]
fn a_request_with_a_byte_order_mark_is_answered() {
    let does = "
prompt()
say(tool('c', 'ls'))
os.write(1, b'\\xef\\xbb\\xbf' + json.dumps(ask('r', 'c', 'ls')).encode() + b'\\n')
answer('r')
say(told('c', 'done'), text('end'), result())";
    let (trace, _) = run(BOTH_WAYS, does, "interaction: auto-approve\nlimits: {time: 20s}");
    assert_eq!(answers(&trace), ["allowed auto-approve - ok"]);
}

#[test]
fn a_call_that_is_asked_for_again_is_judged_by_the_last_answer() {
    let acp = "
turn = prompt()
say(tool('c', 'ls'), ask(7, 'c', 'ls'))
answer(7)
say(ask(8, 'c', 'ls'))
answer(8)
say(told('c', 'done'), text('end'), end(turn))";
    let both_ways = "
prompt()
say(tool('c', 'ls'), ask('r', 'c', 'ls'))
answer('r')
say(ask('q', 'c', 'ls'))
answer('q')
say(told('c', 'done'), text('end'), result())";
    let case = "interaction: {scripted: {rules: [{when: {kind: execute, nth: 1}, answer: cancel}], default: allow}}";
    for (protocol, does) in [(ACP, acp), (BOTH_WAYS, both_ways)] {
        let (trace, _) = run(protocol, does, case);
        assert_eq!(answers(&trace), ["cancelled scripted rules[0] ok", "allowed scripted - ok"]);
    }
}

#[test]
fn a_rule_that_changes_the_input_leaves_the_rest_as_the_agent_said_it() {
    let does = "
prompt()
given = {'command': 'curl -H ' + os.environ['MY_TOKEN'], 'timeout': 5}
say(assistant({'type': 'tool_use', 'id': 'c', 'name': 'Bash', 'input': given}))
asked = ask('r', 'c', '')
asked['request']['input'] = given
say(asked)
allowed = answer('r')['response']['updatedInput']
say(told('c', 'as asked' if allowed == {**given, 'timeout': 9} else 'another'), text('end'), result())";
    let case =
        "interaction: {scripted: {rules: [{when: {command: curl}, answer: allow-once, updated-input: {timeout: 9}}]}}";
    let (trace, _) = run(BOTH_WAYS, does, case);
    assert_eq!(of_type(&trace, "tool_result")[0]["output"], "as asked");
    let updated = &of_type(&trace, "permission_response")[0]["updated_input"];
    assert_eq!(updated, &serde_json::json!({"command": "curl -H [redacted:MY_TOKEN]", "timeout": 9}));
}

#[test]
fn requests_that_cannot_be_served_leave_a_notice() {
    let does = "
prompt()
say(tool('c', 'ls'), {**ask('r', 'c', 'ls'), 'request_id': 7})
refused = hear()
say(text(refused['response']['subtype']), result())";
    let (trace, _) = run(BOTH_WAYS, does, "interaction: auto-approve");
    assert_eq!((codes(&trace), &trace.last().unwrap()["output"]), (vec!["unknown_request"], &"error".into()));
}

#[test]
fn options_are_answered_by_the_id_they_came_with() {
    let does = "
turn = prompt()
say(tool('c', 'ls'), ask(7, 'c', 'ls', ids=(1, 2)))
chosen = answer(7)
say(text(json.dumps(chosen['result']['outcome']['optionId'])), end(turn))";
    let (trace, _) = run(ACP, does, "interaction: auto-approve");
    assert!(answers(&trace)[0].starts_with("allowed auto-approve"), "{trace:?}");
    assert_eq!(trace.last().unwrap()["output"], "1");
}

#[test]
fn an_answer_that_comes_before_the_prompt_was_taken_ends_the_trial() {
    let acp = "
# The prompt is being written.
import select; select.select([sys.stdin], [], [])
say(text('no'), end(2))
time.sleep(60)";
    let both_ways = "
import select; select.select([sys.stdin], [], [])
say(text('no'), result())
time.sleep(60)";
    let prompt = format!("turns: ['{}']\nlimits: {{time: 20s}}", "x".repeat(300_000));
    for (protocol, does) in [(ACP, acp), (BOTH_WAYS, both_ways)] {
        let begun = std::time::Instant::now();
        let (trace, _) = run(protocol, does, &prompt);
        assert!(begun.elapsed().as_secs() < 18, "it ended by its answer");
        assert_eq!(codes(&trace), ["not_delivered"]);
        assert_eq!(trace.last().unwrap()["output"], "no");
    }
}

#[test]
fn servers_by_address_are_offered_to_agents_that_take_them_alone() {
    let case = "mcp-servers: [{name: web, type: http, url: 'http://localhost'}]";
    let (_, result) = run(ACP, "say(text('hi'), end(prompt()))", case);
    assert_eq!((&result["verdict"], &result["error"]["category"]), (&"errored".into(), &"handshake".into()));
    let why = result["error"]["message"].as_str().unwrap();
    assert!(
        why.contains("MCP server `web` uses http") && why.contains("agentCapabilities.mcpCapabilities.http"),
        "{why}"
    );
    let able = r#"env: {set: {CAN: '{"mcpCapabilities": {"http": true}}'}}"#;
    let project = project(ACP, "say(text('hi'), end(prompt()))", able);
    project.case("a", case, "");
    project.evals(&["run", "--harness", "odd"]).exits(0);
}

#[test]
fn a_terminal_that_is_released_tells_who_waits_how_its_command_ended() {
    let does = "
turn = prompt()
say({'id': 1, 'method': 'terminal/create', 'params': {'sessionId': 's', 'command': 'sleep 30'}})
terminal = {'sessionId': 's', 'terminalId': answer(1)['result']['terminalId']}
say({'id': 2, 'method': 'terminal/release', 'params': terminal}, {'id': 3, 'method': 'terminal/wait_for_exit', 'params': terminal})
say(text(str(answer(3)['result']['signal'])), end(turn))";
    let (trace, _) = run(ACP, does, "");
    let output = trace.last().unwrap()["output"].as_str().unwrap();
    assert!(output.starts_with("SIG"), "{output}");
}

#[test]
fn a_wire_log_is_read_by_the_manifest_that_its_header_names() {
    let acp = "
turn = prompt()
say(text('OOPS: no credits'), end(turn))";
    let both_ways = "
prompt()
say(text('OOPS: no credits'), result(is_error=None))";
    for (protocol, adapter, does) in [(ACP, "acp", acp), (BOTH_WAYS, "claude-code-control", both_ways)] {
        let project = project(protocol, does, "error-text: ['^OOPS']");
        project.case("a", "", "");
        project.evals(&["run", "--harness", "odd"]);
        let text = project.of_trial("a/odd/default/1", "trace.jsonl");
        let wire = format!("{}/trials/a/odd/default/1/wire.jsonl", project.run_folder());
        for args in [&[][..], &["--adapter", adapter]] {
            let imported = project.evals(&[&["import"], args, &[&wire]].concat()).exits(0).out;
            assert_eq!(imported, text, "{adapter} {args:?}");
        }
        let trace = project.trace("a/odd/default/1");
        assert_eq!(trace.last().unwrap()["reason"], "error", "{adapter}: {text}");
        // A harness of another protocol with this name is another harness.
        project.harness("odd", "adapter: output-only\ncommand: [odd]\nerror-text: ['^OOPS']");
        let other = project.evals(&["import", &wire]).exits(0).out;
        assert!(other.contains("\"reason\":\"end_turn\""), "{adapter}: {other}");
    }
}

/// A turn of Qwen Code over ACP that leaves a sub-agent at work when it has answered.
const QWEN_SUB_AGENT: &str = "
turn = prompt()
launched = [{'type': 'content', 'content': {'type': 'text', 'text': 'Background agent launched successfully.'}}]
say(update(sessionUpdate='tool_call', toolCallId='c', title='Agent', kind='other', status='pending', rawInput={'prompt': 'x'}),
    update(sessionUpdate='tool_call_update', toolCallId='c', status='completed', content=launched, _meta={'toolName': 'agent'}),
    text('I wait.'), end(turn))";

#[test]
fn a_sub_agent_of_qwen_over_acp_that_works_after_the_answer_is_waited_for() {
    let does = format!(
        "{QWEN_SUB_AGENT}
time.sleep(0.5)
written = {{'sessionId': 's', 'path': os.path.join(os.getcwd(), 'sub.txt'), 'content': 's'}}
say({{'id': 8, 'method': 'fs/write_text_file', 'params': written}})
answer(8)
say({{'id': 7, 'method': 'terminal/create', 'params': {{'sessionId': 's', 'command': 'touch', 'args': ['terminal.txt']}}}})
waits = {{'sessionId': 's', 'terminalId': answer(7)['result']['terminalId']}}
say({{'id': 6, 'method': 'terminal/wait_for_exit', 'params': waits}})
answer(6)
of_end = {{'sessionId': 's', 'source': 'background_notification'}}
say({{'id': 9, 'method': '_qwencode/start_turn', 'params': of_end}})
answer(9)
def discrete(said, source):
    task = {{'status': 'completed', 'toolUseId': 'c'}}
    meta = {{'source': source, 'qwenDiscreteMessage': True, 'backgroundTask': task}}
    return update(sessionUpdate='agent_message_chunk', content={{'type': 'text', 'text': said}}, _meta=meta)
say(discrete('It completed.', 'background_notification'), discrete('Done.', 'background_notification_response'))
time.sleep(0.2)
say({{'method': '_qwencode/end_turn', 'params': of_end}})"
    );
    let case = "graders: [{files: {exists: [sub.txt, terminal.txt]}}, {output: {equals: Done.}}]";
    let (trace, result) = run(ACP, &does, case);
    assert_eq!((&trace.last().unwrap()["output"], &result["verdict"]), (&"Done.".into(), &"pass".into()), "{result:#}");
    assert!(!codes(&trace).contains(&"background_cut"), "{trace:#?}");
}

#[test]
fn a_time_limit_ends_a_sub_agent_of_qwen_over_acp_that_works_after_the_answer() {
    let (trace, _) = run(ACP, QWEN_SUB_AGENT, "limits: {time: 2s}");
    assert!(codes(&trace).contains(&"background_cut"), "{trace:#?}");
    assert_eq!(trace.last().unwrap()["reason"], "end_turn");
}

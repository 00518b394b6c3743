//! Secrets never reach a file of the run folder or the terminal, whatever their source.

use serde_json::Value;

use crate::project::{Project, Ran, lines, of_type};

const SECRET: &str = "s3cr3t-of-the-user-0451";

fn nowhere(project: &Project, ran: &Ran, secret: &str) {
    for (path, bytes) in project.files(".evals") {
        let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!found, "the secret stands in {path}:\n{}", String::from_utf8_lossy(&bytes));
    }
    assert!(!ran.out.contains(secret) && !ran.err.contains(secret), "{ran:?}");
}

#[test]
fn a_secret_of_the_user_does_not_reach_an_agent_that_is_not_given_it() {
    let mut project = Project::new();
    project.env("EVALS_TEST_SECRET_TOKEN", SECRET);
    project.case("a", "", "steps: [{run: {command: 'env; echo \"seen=$EVALS_TEST_SECRET_TOKEN\"'}}]");
    let ran = project.evals(&["run", "--keep-workspace", "always"]).exits(0);
    let trace = project.trace("a/demo/default/1");
    let seen = of_type(&trace, "tool_result")[0]["output"].as_str().unwrap();
    assert!(seen.contains("seen=\n") && !seen.contains("EVALS_TEST_SECRET_TOKEN="), "{seen}");
    nowhere(&project, &ran, SECRET);
}

#[test]
fn an_answer_without_a_mark_may_show_a_secret_that_is_too_short_to_be_masked() {
    let mut project = Project::new();
    project.env("EVALS_TEST_SECRET_TOKEN", "short-1");
    project.case("a", "graders: [{output: {no-secrets: true}}]", "steps: [{say: the token is short-1}]");
    project.demo("mine", "env: {pass: [EVALS_TEST_SECRET_TOKEN]}");
    project.evals(&["run", "--harness", "mine"]).exits(3).says("the secret in EVALS_TEST_SECRET_TOKEN is unknown");
    project.evals(&["grade", "latest"]).exits(3);
}

#[test]
fn a_secret_that_an_agent_is_given_is_masked_wherever_it_puts_it() {
    let mut project = Project::new();
    project.env("EVALS_TEST_SECRET_TOKEN", SECRET);
    let script = "\
steps:
  - run: {command: 'env; echo $EVALS_TEST_SECRET_TOKEN > stolen.txt; mkdir d; echo \"x=$EVALS_TEST_SECRET_TOKEN\" > d/b.txt; echo $EVALS_TEST_SECRET_TOKEN | base64 > c.txt; echo $EVALS_TEST_SECRET_TOKEN >&2'}
  - read: {path: stolen.txt}
  - run: {command: 'cat stolen.txt; exit 3'}
";
    let keys = "graders: [{output: {no-secrets: true}}, {command: {run: 'cat stolen.txt; exit 1'}}, {files: {contains: {stolen.txt: nothing of it}}}]";
    project.case("a", keys, script);
    project.demo("mine", "env: {pass: [EVALS_TEST_SECRET_TOKEN]}");
    let ran = project.evals(&[
        "run",
        "--harness",
        "mine",
        "--keep-workspace",
        "always",
        "--reporter",
        "json=.evals/out.json",
    ]);
    let ran = ran.exits(1);
    nowhere(&project, &ran, SECRET);
    let mark = "[redacted:EVALS_TEST_SECRET_TOKEN]";
    let trial = "a/mine/default/1";
    for file in
        ["trace.jsonl", "wire.jsonl", "workspace.patch", "result.json", "workspace/stolen.txt", "workspace/d/b.txt"]
    {
        assert!(project.of_trial(trial, file).contains(mark), "{file} does not say that it was masked");
    }
    let result = project.result(trial);
    assert!(
        result["warnings"].to_string().contains("masked"),
        "a patch or workspace that was masked says so: {result}"
    );
    let shown = project.evals(&["show"]).exits(0);
    nowhere(&project, &shown, SECRET);
    let imported =
        project.evals(&["import", "--harness", "mine", &format!("{}/trials/{trial}/wire.jsonl", project.run_folder())]);
    assert_eq!(imported.out, project.of_trial(trial, "trace.jsonl"));
}

#[test]
fn a_grader_that_looks_for_a_secret_in_the_trace_is_ungraded() {
    let project = Project::new();
    let script = "steps: [{run: {command: 'echo pass-1234-word > told.txt'}}, {say: 'it is pass-1234-word'}]";
    let says = "graders: [{output: {not-contains: pass-1234-word}}]";
    let env = "\nenv: {DEPLOY_PASSWORD: pass-1234-word}";
    project.case("a", &format!("{says}{env}"), script);
    project.case(
        "b",
        "graders: [{output: {not-contains: '[redacted:DEPLOY_PASSWORD]'}}]\nenv: {DEPLOY_PASSWORD: pass-1234-word}",
        script,
    );
    project.case(
        "c",
        &format!(
            "graders: [{{tool-calls: {{forbid: [{{command: pass-1234-word}}]}}}}, {{output: {{contains: it}}}}]{env}"
        ),
        script,
    );
    project.case("d", &format!("graders: [{{files: {{contains: {{told.txt: pass-1234-word}}}}}}]{env}"), script);
    project.write("graders/quiet.yaml", "description: x\noutput: {not-contains: pass-1234-word}\n");
    project.case("e", &format!("graders: [{{use: quiet}}, {{output: {{contains: it}}}}]{env}"), script);
    project.case(
        "f",
        &format!("graders: [{{output: {{not-contains: PASS-1234-WORD, ignore-case: true}}}}]{env}"),
        script,
    );
    let ran = project.evals(&["run"]);
    nowhere(&project, &ran, "pass-1234-word");
    for (case, verdict) in
        [("f", "ungraded"), ("a", "ungraded"), ("b", "fail"), ("c", "ungraded"), ("d", "pass"), ("e", "ungraded")]
    {
        let result = project.result(&format!("{case}/demo/default/1"));
        assert_eq!(result["verdict"], verdict, "{result}");
        let grade = &result["grades"][0];
        let told = grade["reason"].as_str().unwrap_or_default().contains("write [redacted:DEPLOY_PASSWORD]");
        assert_eq!(told, verdict == "ungraded", "{result}");
    }
    project.evals(&["grade", "latest"]);
    let again = project.evals(&["report", "--format", "json"]).json();
    let verdicts = |report: &serde_json::Value| -> Vec<String> {
        report["results"].as_array().unwrap().iter().map(|it| it["verdict"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(verdicts(&again), ["ungraded", "fail", "ungraded", "pass", "ungraded", "ungraded"]);
}

#[test]
fn secrets_in_cases_and_manifests_are_masked_too() {
    let project = Project::new();
    let keys =
        "env: {CASE_API_KEY: case-secret-0451}\nworkspace: {setup: ['echo $CASE_API_KEY; echo $CASE_API_KEY > a.txt']}";
    project.case("a", keys, "steps: [{run: {command: 'echo $CASE_API_KEY $SET_TOKEN $ODD'}}]");
    project.demo("mine", "env: {set: {SET_TOKEN: manifest-secret-0451, ODD: odd-secret-0451}, secret: [ODD]}");
    let ran = project.evals(&["run", "--harness", "mine", "--keep-workspace", "always"]).exits(0);
    for secret in ["case-secret-0451", "manifest-secret-0451", "odd-secret-0451"] {
        nowhere(&project, &ran, secret);
    }
    // Redaction in the record of a run does not make its harness look changed.
    project.evals(&["run", "--resume", "latest"]).exits(0);
}

#[test]
fn a_secret_in_any_part_of_a_manifest_does_not_stand_in_the_record() {
    let mut project = Project::new();
    project.env("MY_TOKEN", SECRET);
    project.case("a", "", "steps: [{say: done}]");
    let keys = format!(
        "description: has {SECRET}\ninstall: get {SECRET}\nsandbox: {{kind: command, command: [env, 'MINE={SECRET}', '{{command}}']}}"
    );
    project.demo("mine", &keys);
    let ran = project.evals(&["run", "--harness", "mine", "--label", SECRET]).exits(0);
    nowhere(&project, &ran, SECRET);
    assert!(project.read(&format!("{}/run.json", project.run_folder())).contains("MINE=[redacted:MY_TOKEN]"));
    project.evals(&["run", "--resume", "latest"]).exits(0);
}

#[test]
fn what_mcp_servers_are_given_is_masked() {
    let project = spoken("", "say('I saw mcp-secret-0451 and header-secret-0451 and listed-secret-0451')");
    let servers = "mcp-servers:
- {name: x, command: /bin/true, env: {GH_TOKEN: mcp-secret-0451, SHORT_KEY: abc}}
- {name: y, type: http, url: 'http://localhost', headers: {Authorization: Bearer header-secret-0451}}
- {name: z, command: /bin/true, env: [{name: API_KEY1, value: listed-secret-0451}]}";
    project.case("a", servers, "");
    let ran = project.evals(&["run", "--harness", "mine"]).exits(0);
    for secret in ["mcp-secret-0451", "header-secret-0451", "listed-secret-0451"] {
        nowhere(&project, &ran, secret);
    }
    let text = said(&project);
    assert_eq!(text, "I saw [redacted:GH_TOKEN] and [redacted:Authorization] and [redacted:API_KEY1]");
    assert!(project.of_trial("a/mine/default/1", "wire.jsonl").contains("/bin/true"), "they were offered");
    assert!(project.result("a/mine/default/1")["warnings"].to_string().contains("SHORT_KEY"));
}

#[test]
fn the_password_of_a_proxy_is_masked_and_its_host_stays() {
    let mut project = Project::new();
    project.env("HTTPS_PROXY", "http://bob:proxy-secret-0451@127.0.0.1:1");
    project.env("all_proxy", "bob:other-secret-0451@127.0.0.1:1");
    project.case("a", "", "steps: [{run: {command: 'env; env > a.txt; env >&2'}}]");
    let ran = project.evals(&["run", "--keep-workspace", "always"]).exits(0);
    for secret in ["proxy-secret-0451", "other-secret-0451"] {
        nowhere(&project, &ran, secret);
    }
    let trace = project.trace("a/demo/default/1");
    let seen = of_type(&trace, "tool_result")[0]["output"].as_str().unwrap();
    for line in
        ["HTTPS_PROXY=http://bob:[redacted:HTTPS_PROXY]@127.0.0.1:1", "all_proxy=bob:[redacted:all_proxy]@127.0.0.1:1"]
    {
        assert!(seen.contains(line), "{seen}");
    }
}

#[test]
fn a_password_in_a_url_is_masked_only_if_the_agent_gets_the_variable() {
    let mut project = Project::new();
    project.env("DATABASE_URL", "postgres://app:password@localhost/app");
    project.env("CACHE_URL", "redis://app:dev-password-1@localhost");
    let graders =
        "graders: [{output: {contains: the password check}}, {tool-calls: {require: [{command: '-k password'}]}}]";
    let script =
        "steps: [{run: {command: 'echo -k password'}}, {say: 'the password check of dev-password-1, app:password'}]";
    project.case("a", graders, script);
    project.demo("mine", "env: {pass: [DATABASE_URL, CACHE_URL]}");
    for (harness, output) in [
        ("demo", "the password check of dev-password-1, app:password"),
        ("mine", "the password check of [redacted:CACHE_URL], [redacted:DATABASE_URL]"),
    ] {
        let _ = std::fs::remove_dir_all(project.path(".evals"));
        project.evals(&["run", "--harness", harness]).exits(0);
        let trace = project.trace(&format!("a/{harness}/default/1"));
        assert_eq!(trace.last().unwrap()["output"], output);
        project.evals(&["grade", "latest"]).exits(0);
    }
}

#[test]
fn what_mcp_servers_get_in_urls_and_arguments_is_masked() {
    let secrets = ["word-secret-0451", "same-secret-0451", "head-secret-0451", "url-secret-0451", "query-secret-0451"];
    let project = spoken("", &format!("say('I saw {}')", secrets.join(" and ")));
    let servers = "env: {DATABASE_URL: 'postgres://me:pw-1@db/x'}
mcp-servers:
- {name: x, command: /bin/true, args: [--token, word-secret-0451, --api-key=same-secret-0451, --header, 'Authorization: Bearer head-secret-0451']}
- {name: y, type: http, url: 'http://me:url-secret-0451@localhost/?api_key=query-secret-0451'}";
    project.case("a", servers, "");
    let ran = project.evals(&["run", "--harness", "mine"]).exits(0);
    for secret in secrets {
        nowhere(&project, &ran, secret);
    }
    let marks = ["token", "api-key", "Authorization", "url", "url"].map(|name| format!("[redacted:{name}]"));
    assert_eq!(said(&project), format!("I saw {}", marks.join(" and ")));
    let wire = project.of_trial("a/mine/default/1", "wire.jsonl");
    assert!(wire.contains("http://me:[redacted:url]@localhost/?api_key=[redacted:url]"), "{wire}");
    // A password that is too short to mask is a warning, like every other secret.
    assert!(project.result("a/mine/default/1")["warnings"].to_string().contains("DATABASE_URL"));
}

#[test]
fn a_setup_command_that_fails_tells_no_secret() {
    let project = Project::new();
    let keys = "env: {CASE_API_KEY: case-secret-0451}\nworkspace: {setup: ['echo $CASE_API_KEY; exit 1']}";
    project.case("a", keys, "steps: [{say: done}]");
    let ran = project.evals(&["run"]).exits(3).says("[redacted:CASE_API_KEY]");
    nowhere(&project, &ran, "case-secret-0451");
}

#[test]
fn a_secret_too_short_to_mask_is_a_warning() {
    let mut project = Project::new();
    project.env("EVALS_TEST_SHORT_KEY", "abc");
    project.case("a", "", "steps: [{say: abc}]");
    project.demo("mine", "env: {pass: [EVALS_TEST_SHORT_KEY]}");
    project.evals(&["run", "--harness", "mine"]).exits(0);
    assert!(project.result("a/mine/default/1")["warnings"].to_string().contains("EVALS_TEST_SHORT_KEY"));
}

/// An agent that speaks ACP; its output replaces `BODY`.
const AGENT: &str = r#"
import json, os, sys
def raw(line): print(line, flush=False)
def send(message): raw(json.dumps({"jsonrpc": "2.0", **message}))
def update(text): return json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update":
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "@"}}}}).replace("@", text)
def say(text): raw(update(text))
key = os.environ.get("MY_TOKEN", "")
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize": answer = {"protocolVersion": 1, "agentCapabilities": {"mcpCapabilities": {"http": True}}}
    elif asked["method"] == "session/new": answer = {"sessionId": "s"}
    else:
        answer = {"stopReason": "end_turn"}
        BODY
    send({"id": asked["id"], "result": answer})
    sys.stdout.flush()
"#;

/// Makes a project with one case, whose agent prints `body`, with a secret in its environment.
fn spoken(secret: &str, body: &str) -> Project {
    let mut project = Project::new();
    project.env("MY_TOKEN", secret);
    project.case("a", "", "");
    project.write("agent.py", &AGENT.replace("BODY", &body.replace('\n', "\n        ")));
    let at = project.path("agent.py").display().to_string();
    project.harness("mine", &format!("adapter: acp\ncommand: [python3, {at}]\nenv: {{pass: [MY_TOKEN]}}"));
    project
}

/// Returns the text of the agent's message chunks in the wire log.
fn said(project: &Project) -> String {
    let lines = lines(&project.of_trial("a/mine/default/1", "wire.jsonl"));
    let text = |line: &Value| {
        let line: Value = serde_json::from_str(line["line"].as_str()?).ok()?;
        Some(line.pointer("/params/update/content/text")?.as_str()?.to_owned())
    };
    lines.iter().filter_map(text).collect()
}

#[test]
#[ignore = "slow: searches long texts"]
fn a_secret_that_is_said_often_and_in_single_characters_is_masked_in_little_time() {
    let secret = "abcdefgh-12345678";
    let project = spoken(secret, "for _ in range(1000):\n    for c in key: say(c)");
    let begun = std::time::Instant::now();
    let ran = project.evals(&["run", "--harness", "mine"]).exits(0);
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    nowhere(&project, &ran, secret);
    assert_eq!(said(&project), "[redacted:MY_TOKEN]".repeat(1000));
}

#[test]
fn a_secret_is_masked_however_json_spells_it() {
    let secret = "hunter2&<p\u{e4}ss/wort>";
    let body = r#"ascii = json.dumps(key)[1:-1]
go = key.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
php = ascii.replace("/", "\\/")
for spelled in (key, ascii, go, php): say("it is " + spelled + " \\u00e4; ")
say("as JSON: " + json.dumps(json.dumps({"key": php.replace("<", "\\u003C")}))[1:-1])
say(ascii[:9])
say(ascii[9:])"#;
    let project = spoken(secret, body);
    let ran = project.evals(&["run", "--harness", "mine"]).exits(0);
    nowhere(&project, &ran, secret);
    let text = said(&project);
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(text.matches("[redacted:MY_TOKEN]").count(), 6, "{text}");
    let wire = project.of_trial("a/mine/default/1", "wire.jsonl");
    assert!(!wire.contains("hunter2"), "{wire}");
    assert!(wire.contains(r"it is [redacted:MY_TOKEN] \\u00e4; "), "what is no secret stays as it was spelled: {wire}");
}

#[test]
fn a_secret_with_terminal_colours_is_masked_and_the_rest_of_its_line_stays() {
    let mut project = Project::new();
    project.env("MY_API_KEY", SECRET);
    project.case("a", "graders: [{output: {no-secrets: true}}]", "steps: [{say: done}]");
    let (first, second) = SECRET.split_at(6);
    let colours = format!("printf 'a \\033[31mMY_API_KEY={first}\\033[m\\033[K{second} b\\n'\n");
    // A file with the sequence as it is written in a program.
    let written = format!("printf '%s\\n' 'x={first}\\033[0m{second} y' > written.txt\n");
    project.write("agent.sh", &(colours + &written));
    let agent = project.path("agent.sh").display().to_string();
    let keys = "env: {pass: [MY_API_KEY]}";
    project.harness("mine", &format!("adapter: output-only\ncommand: [sh, {agent}]\nprompt-via: stdin\n{keys}"));
    let ran = project.evals(&["run", "--harness", "mine", "--keep-workspace", "always"]).exits(1);
    nowhere(&project, &ran, second);
    let kept = project.of_trial("a/mine/default/1", "workspace/written.txt");
    assert_eq!(kept, "x=[redacted:MY_API_KEY]\\033[0m y\n");
    for file in ["wire.jsonl", "trace.jsonl"] {
        let text = project.of_trial("a/mine/default/1", file);
        let masked = r"a \u001b[31mMY_API_KEY=[redacted:MY_API_KEY]\u001b[m\u001b[K b";
        assert!(text.contains(masked), "{file}: {text}");
    }
    let shown = project.evals(&["show"]).exits(0);
    nowhere(&project, &shown, second);
}

#[test]
fn a_binary_file_in_a_patch_holds_no_secret() {
    let mut project = Project::new();
    project.env("MY_API_KEY", "binary-secret-0451");
    project.case(
        "a",
        "",
        "steps: [{run: {command: 'printf \"a\\\\000b%s\\\\000c\" $MY_API_KEY > a.bin'}}, {say: done}]",
    );
    project.demo("mine", "env: {pass: [MY_API_KEY]}");
    project.evals(&["run", "--harness", "mine"]).exits(0);
    assert!(project.result("a/mine/default/1")["warnings"].to_string().contains("held secrets"));
    // Git makes the file without the secret from the patch.
    let patch = project.path(&format!("{}/trials/a/mine/default/1/workspace.patch", project.run_folder()));
    let there = project.path("applied");
    std::fs::create_dir(&there).unwrap();
    let git = |args: &[&str]| {
        let ran = std::process::Command::new("git").args(args).current_dir(&there).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    git(&["init", "-q"]);
    git(&["apply", patch.to_str().unwrap()]);
    let bytes = std::fs::read(there.join("a.bin")).unwrap();
    assert_eq!(bytes, b"a\0b[redacted:MY_API_KEY]\0c");
}

/// A key of 80 characters, in which no six characters occur twice.
const LONG: &str = "sk-Zq8WvT1nB4xY7mK2pL9dR5sH3gJ6fC0aEuViOoXyNbMwQtPzUkGhDlSjF-RcAeTyBnHmLpKoIjUh_";

/// Makes a case of an agent that shows only its messages, and writes its secret wherever it can.
fn put_in_lines(how: &str) -> Project {
    let mut project = Project::new();
    project.env("MY_API_KEY", LONG);
    let keys = "workspace: {files: {old.txt: \"first\\nlast\\n\"}}";
    project.case("a", keys, "steps: [{say: done}]");
    let script = format!(
        "how() {{ {how}; }}\nhow > f.txt\n(echo first; how; echo last) > old.txt\nhow >&2\nhow\necho end\ncp f.txt g.bin; printf 'a\\000b' >> g.bin\n"
    );
    project.write("agent.sh", &script);
    let agent = project.path("agent.sh").display().to_string();
    let keys = "env: {pass: [MY_API_KEY], secret: [MY_API_KEY]}";
    project.harness("mine", &format!("adapter: output-only\ncommand: [sh, {agent}]\nprompt-via: stdin\n{keys}"));
    project
}

#[test]
fn no_half_of_a_secret_stays_in_the_trace_the_error_or_the_page() {
    let mut project = Project::new();
    project.env("MY_API_KEY", LONG);
    project.case("a", "graders: [{stop: {reason: end_turn}}]", "steps: [{say: done}]");
    let (first, second) = LONG.split_at(40);
    // The last line of standard error becomes the error's message.
    project.write("agent.sh", "printf '%s\\n' \"$MY_API_KEY\" | fold -w 40 >&2; exit 3\n");
    let agent = project.path("agent.sh").display().to_string();
    let keys = "env: {pass: [MY_API_KEY], secret: [MY_API_KEY]}";
    project.harness("mine", &format!("adapter: output-only\ncommand: [sh, {agent}]\nprompt-via: stdin\n{keys}"));
    // The answer is complete in one event, and its parts are notices of lines that no rule takes.
    let say = |key: &str| format!("{{\"{key}\":\"{first}\"}}\n{{\"{key}\":\"{second}\"}}\n");
    let lines = format!("{}{}{{\"end\":1}}\n", say("say"), say("odd"));
    project.write("told.jsonl", &lines);
    let told = project.path("told.jsonl").display().to_string();
    project.harness(
        "stream",
        &format!(
            "adapter: json-stream\ncommand: [cat, {told}]\nprompt-via: stdin\n{keys}\nstream:\n  - {{when: has(line.say), emit: [{{message: {{delta: line.say}}}}]}}\n  - {{when: has(line.end), emit: [{{stop: {{reason: end_turn}}}}]}}\n"
        ),
    );
    for harness in ["mine", "stream"] {
        let _ = std::fs::remove_dir_all(project.path(".evals"));
        let ran = project.evals(&["run", "--harness", harness, "--reporter", "html=.evals/page.html"]);
        for (path, bytes) in project.files(".evals") {
            let text = String::from_utf8_lossy(&bytes);
            for half in [first, second] {
                assert!(!text.contains(half), "{harness}: {path} holds a half: {text}");
            }
        }
        assert!(!format!("{ran:?}").contains(first) && !format!("{ran:?}").contains(second), "{ran:?}");
        let trial = format!("a/{harness}/default/1");
        let wire = format!("{}/trials/{trial}/wire.jsonl", project.run_folder());
        let imported = project.evals(&["import", "--harness", harness, &wire]);
        assert_eq!(imported.out, project.of_trial(&trial, "trace.jsonl"));
        assert!(imported.out.contains("[redacted:MY_API_KEY]"), "{}", imported.out);
        let result = project.result(&trial);
        match harness {
            "mine" => assert_eq!(result["error"]["category"], "crashed", "{result}"),
            _ => assert_eq!(result["verdict"], "pass", "{result}"),
        }
    }
}

#[test]
#[ignore = "slow: searches long texts"]
fn a_secret_that_is_broken_over_lines_is_in_no_file_of_the_run() {
    let key = r#"printf %s "$MY_API_KEY""#;
    let base64 = |options: &str| format!("{key} | base64 {options}");
    let ways = [
        base64("-w 76"),
        base64("-w 64"),
        base64("-w 20"),
        base64("-w 16"),
        base64("-w 8"),
        base64("-w 1"),
        format!("{} | sed 's/$/\\r/'", base64("-w 76")),
        format!("{} | sed 's/^/    /'", base64("-w 40")),
        format!("{key} | fold -w 40; echo"),
        format!("{key} | fold -w 30; echo"),
        format!("{key} | fold -w 7; echo"),
        format!("{key} | fold -w 30 | sed 's/^/+/'; echo"),
        format!("{key} | fold -w 9 | sed 's/^/+/'; echo"),
    ];
    let encoded = base64_of(LONG);
    for way in ways {
        let project = put_in_lines(&way);
        let ran = project.evals(&["run", "--harness", "mine", "--keep-workspace", "always"]);
        let trial = "a/mine/default/1";
        assert!(project.of_trial(trial, "wire.jsonl").contains("secret_split"), "{way}: {ran:?}");
        for file in ["wire.jsonl", "stderr.log", "trace.jsonl", "workspace.patch", "workspace/f.txt"] {
            let text = project.of_trial(trial, file);
            assert!(text.contains("[redacted:MY_API_KEY]"), "{way}: {file} does not say that it was masked:\n{text}");
        }
        for (path, bytes) in project.files(".evals") {
            let text = String::from_utf8_lossy(&bytes);
            // The rest of the key when everything else is removed.
            let joined = text.replace("\\n", "").replace("\\r", "").replace(['\n', '\r', '+', ' '], "");
            for whole in [LONG, &encoded] {
                let whole = whole.replace('+', "");
                let left = whole.as_bytes().windows(8).filter(|part| joined.contains(str::from_utf8(part).unwrap()));
                let left: Vec<_> = left.map(|part| str::from_utf8(part).unwrap()).collect();
                // The bits at the end of base64 do not all belong to the key.
                assert!(left.is_empty(), "{way}: {path} holds {left:?}:\n{text}");
            }
            // A log of single characters contains them one by one.
            let characters = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let said: String =
                characters.filter_map(|line| Some(line.get("line")?.as_str()?.trim().to_owned())).collect();
            assert!(!said.replace('+', "").contains(&encoded.replace('+', "")), "{way}: {path}: {said}");
            assert!(!said.replace('+', "").contains(LONG), "{way}: {path}: {said}");
        }
        // The patch is still valid: git makes the kept files from it.
        let run = project.run_folder();
        let there = project.path("applied");
        std::fs::create_dir(&there).unwrap();
        std::fs::write(there.join("old.txt"), "first\nlast\n").unwrap();
        let git = |args: &[&str]| {
            let ran = std::process::Command::new("git").args(args).current_dir(&there).output().unwrap();
            assert!(ran.status.success(), "{way}: {}", String::from_utf8_lossy(&ran.stderr));
        };
        git(&["init", "-q"]);
        git(&["apply", project.path(&format!("{run}/trials/{trial}/workspace.patch")).to_str().unwrap()]);
        for file in ["f.txt", "old.txt", "g.bin"] {
            let kept = project.path(&format!("{run}/trials/{trial}/workspace/{file}"));
            assert_eq!(std::fs::read(there.join(file)).unwrap(), std::fs::read(kept).unwrap(), "{way}: {file}");
        }
    }
}

fn base64_of(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[test]
fn a_secret_in_the_name_of_a_case_or_in_a_number_does_not_change_the_verdict() {
    let mut project = Project::new();
    project.env("DB_PASSWORD", "postgres");
    project.env("PIN_TOKEN", "00000000");
    project.case(
        "postgres-a",
        "graders: [{output: {contains: done}}]",
        "steps: [{say: done}, {usage: {input-tokens: 100000000, output-tokens: 3}}]",
    );
    project.evals(&["run"]).exits(0);
    project.evals(&["report", "latest"]).exits(0).says("postgres-a");
    assert_eq!(project.result("postgres-a/demo/default/1")["verdict"], "pass");
}

#[test]
fn a_rule_that_contains_a_secret_rejects_a_request_that_may_contain_it() {
    let mut project = Project::new();
    project.env("PGPASSWORD", "postgres");
    let policy = "interaction: {scripted: {rules: [{name: no-db, when: {command: 'dropdb postgres'}, answer: reject-once}, {when: {kind: execute}, answer: allow-once}]}}\n";
    let graders = "graders: [{permissions: {allowed: [{command: ls}], max: 2}}]";
    let script =
        "steps: [{run: {command: 'echo dropdb postgres > done.txt', ask: true}}, {run: {command: ls, ask: true}}]";
    project.case("a", &format!("{policy}{graders}"), script);
    project.evals(&["run"]).exits(0);
    let trace = project.of_trial("a/demo/default/1", "trace.jsonl");
    let responses: Vec<serde_json::Value> = trace
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|event: &serde_json::Value| event["type"] == "permission_response")
        .collect();
    assert_eq!((&responses[0]["outcome"], &responses[0]["rule"]), (&"rejected".into(), &"no-db".into()), "{trace}");
    assert_eq!(responses[1]["outcome"], "allowed", "{trace}");
    assert!(trace.contains("it contains a secret"), "{trace}");
}

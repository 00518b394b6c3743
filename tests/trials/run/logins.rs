//! How agents log in without a person: variables, files of the user's home, and methods of the protocol.

use serde_json::{Value, json};

use super::services::{TRIAL, case, project, run};
use crate::project::{Project, of_type};

const AUTH: &str = "env: {pass: [MY_KEY], secret: [MY_KEY]}\nauthenticate:\n  - {method: other, env: []}\n  - {method: key, env: [MY_KEY]}";
const METHODS: &str = r#"METHODS: '[{"id": "browser", "name": "Browser"}, {"id": "key", "name": "Key"}]'"#;

fn exchanges(project: &Project) -> Vec<String> {
    let wire = project.of_trial(TRIAL, "wire.jsonl");
    let lines = wire.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let sent = lines.filter(|line| line["dir"] == "send");
    let methods = sent.map(|line| serde_json::from_str::<Value>(line["line"].as_str().unwrap()).unwrap());
    methods.filter_map(|sent| Some(sent.get("method")?.as_str()?.to_owned())).collect()
}

#[test]
fn an_agent_that_wants_a_login_gets_one_by_a_method_that_needs_no_person() {
    let mut project = project(AUTH);
    project.env("MY_KEY", "key-0123456789");
    case(&project, &["say('in')"], &format!("env: {{WANTS_LOGIN: key, {METHODS}}}"));
    let (trace, result) = run(&project, &[]);
    assert_eq!(result["verdict"], "pass", "{result}");
    assert_eq!(exchanges(&project), ["initialize", "session/new", "authenticate", "session/new", "session/prompt"]);
    assert!(project.of_trial(TRIAL, "wire.jsonl").contains(r#"\"methodId\":\"key\""#));
    assert_eq!(of_type(&trace, "stop")[0]["output"], "in");
}

#[test]
fn an_agent_that_is_logged_in_is_not_asked_to_log_in_again() {
    let mut project = project(AUTH);
    project.env("MY_KEY", "key-0123456789");
    case(&project, &["say('in')"], &format!("env: {{{METHODS}}}"));
    assert_eq!(run(&project, &[]).1["verdict"], "pass");
    assert!(!exchanges(&project).contains(&"authenticate".to_owned()));
}

#[test]
fn a_login_that_is_missing_or_refused_is_auth() {
    for (set, methods, refuses, calls) in [
        // Without its variable, or if the agent does not offer it, no method is called.
        (false, METHODS.to_owned(), "", false),
        (true, METHODS.replace("\"key\"", "\"another\""), "", false),
        (true, METHODS.to_owned(), ", REFUSES_LOGIN: bad luck", true),
    ] {
        let mut project = project(AUTH);
        if set {
            project.env("MY_KEY", "key-0123456789");
        }
        case(&project, &["say('in')"], &format!("env: {{WANTS_LOGIN: key, {methods}{refuses}}}"));
        let (_, result) = run(&project, &[]);
        let error = (&result["verdict"], &result["error"]["category"]);
        assert_eq!(error, (&json!("errored"), &json!("auth")), "{result}");
        assert_eq!(exchanges(&project).contains(&"authenticate".to_owned()), calls);
        assert_eq!(result["error"]["message"].as_str().unwrap().contains("bad luck"), calls, "{result}");
    }
}

#[test]
fn one_more_variable_of_the_user_s_is_passed_masked_and_recorded_by_name() {
    let mut project = project("env: {set: {MODE_OF_IT: manifest}}");
    project.env("EXTRA_TOKEN", "extra-0123456789");
    project.env("MODE_OF_IT", "user");
    project.env("UNSAID", "unsaid");
    let program = "say([os.environ.get(name) for name in ('EXTRA_TOKEN', 'MODE_OF_IT', 'UNSAID')])";
    case(&project, &[program], "");
    let (trace, result) = run(&project, &["--env", "EXTRA_TOKEN", "--env", "MODE_OF_IT"]);
    assert_eq!(result["verdict"], "pass");
    assert_eq!(of_type(&trace, "stop")[0]["output"], "['[redacted:EXTRA_TOKEN]', 'user', None]");
    let record: Value = serde_json::from_str(&project.read(&format!("{}/run.json", project.run_folder()))).unwrap();
    assert_eq!(record["options"]["env"], json!(["EXTRA_TOKEN", "MODE_OF_IT"]));
    assert!(!record.to_string().contains("extra-0123456789"));
    for (given, says) in [
        ("GONE", "`--env GONE` names a variable that is not set"),
        ("A=b", "it takes only a name"),
        ("1A", "`1A` is not the name of a variable"),
    ] {
        project.evals(&["run", "--harness", "agent", "--env", given]).exits(2).says(says);
    }
    assert_eq!(project.runs().len(), 1);
}

#[test]
fn a_run_that_goes_on_passes_the_same_variables() {
    let mut project = project("");
    project.env("EXTRA", "given");
    case(
        &project,
        &["say(os.environ.get('EXTRA')); assert not os.path.exists(os.environ['FAILS'])"],
        "env: {FAILS: /dev/null}",
    );
    project.evals(&["run", "--harness", "agent", "--env", "EXTRA"]).exits(3);
    case(
        &project,
        &["say(os.environ.get('EXTRA')); assert not os.path.exists(os.environ['FAILS'])"],
        "env: {FAILS: /nowhere}",
    );
    project.evals(&["run", "--resume", "latest", "--rerun", "errored", "--changed", "keep"]).exits(0);
    assert_eq!(project.trace(TRIAL).last().unwrap()["output"], "given");
}

#[test]
fn variables_that_a_copied_file_names_are_passed_and_its_tokens_are_masked() {
    let keys = "home: {copy: [.mine]}\nenv:\n  named-in:\n    - {file: .mine/config.toml, regex: '(?m)^\\s*env_key\\s*=\\s*\"([^\"]+)\"'}";
    let mut project = project(keys);
    project.env("CUSTOM_NAME", "custom-0123456789");
    let folder = project.home().join(".mine");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), "[provider]\nenv_key = \"CUSTOM_NAME\"\n").unwrap();
    let servers = "[servers.x]\nheaders = { Authorization = \"Bearer header-0123456789\" }\n";
    std::fs::write(folder.join("servers.toml"), servers).unwrap();
    std::fs::write(
        folder.join("auth.json"),
        r#"{"tokens": {"access_token": "token-0123456789ab"}, "account": "somebody-0123456789"}"#,
    )
    .unwrap();
    let program = "say(os.environ.get('CUSTOM_NAME')); say(' '); \
        say(json.load(open(os.path.expanduser('~/.mine/auth.json')))); \
        say(open(os.path.expanduser('~/.mine/servers.toml')).read())";
    case(&project, &[program], "");
    let (trace, _) = run(&project, &[]);
    let said = of_type(&trace, "stop")[0]["output"].as_str().unwrap().to_owned();
    assert!(said.starts_with("[redacted:CUSTOM_NAME] {"), "{said}");
    assert!(said.contains("[redacted:access_token]") && said.contains("somebody-0123456789"), "{said}");
    assert!(said.contains("Authorization = \"Bearer [redacted:Authorization]\""), "{said}");
    let wire = project.of_trial(TRIAL, "wire.jsonl");
    for secret in ["custom-0123456789", "token-0123456789ab", "header-0123456789"] {
        assert!(!wire.contains(secret), "{wire}");
    }
}

#[test]
fn a_check_says_what_a_login_needs_and_what_of_it_is_there() {
    let keys = format!("{}\nrequires-env: [NEEDED]\nhome: {{copy: [.mine/auth.json, .gone]}}", AUTH.replace("pass: [MY_KEY]", "pass: [MY_KEY, MY_URL], set: {METHODS: '[{\"id\": \"key\", \"name\": \"Key\"}, {\"id\": \"browser\", \"name\": \"B\"}]'}"));
    let mut project = project(&keys);
    project.env("MY_KEY", "key-0123456789");
    std::fs::create_dir(project.home().join(".mine")).unwrap();
    std::fs::write(project.home().join(".mine/auth.json"), "{}").unwrap();
    let checked = project.evals(&["harness", "check", "agent", "--format", "json"]).json();
    let login = &checked["checks"][0]["login"];
    assert_eq!(
        login["variables"],
        json!([{"name": "NEEDED", "set": false, "required": true}, {"name": "MY_KEY", "set": true}])
    );
    assert_eq!(
        login["files"],
        json!([{"path": ".mine/auth.json", "present": true}, {"path": ".gone", "present": false}])
    );
    assert_eq!(login["methods"], json!([{"method": "other", "usable": true}, {"method": "key", "usable": true}]));
    assert_eq!(login["offered"], json!(["key", "browser"]));
    let ran = project.evals(&["harness", "check", "agent"]);
    let ran = ran.says("login by variable: NEEDED (required, not set), MY_KEY (set)");
    let ran = ran.says("login by file: ~/.mine/auth.json (there), ~/.gone (not there)");
    let ran =
        ran.says("login by method: other (not offered by this agent), key (called when the agent asks for a login)");
    let ran = ran.says("login by method that needs a person: browser");
    assert!(!ran.out.contains("key-0123456789"));
    // An agent that is not installed reports it, too.
    project.harness("away", "adapter: acp\ncommand: [not-there]\nenv: {pass: [A_TOKEN]}");
    project
        .evals(&["harness", "check", "away"])
        .says("login by variable: A_TOKEN (not set)")
        .says("it is not installed");
    // The verifications of the manifest's entries are shown with them.
    for (login, says) in [
        ("{by: [source, started], version: 1.2.3}", "login verified by source code, started (1.2.3)"),
        ("{by: [documentation], note: a key is enough}", "login verified by documentation: a key is enough"),
        ("{by: [], note: there is no public package}", "login not verified: there is no public package"),
    ] {
        project.harness("away", &format!("adapter: acp\ncommand: [not-there]\nlogin: {login}"));
        project.evals(&["harness", "check", "away"]).says(says);
    }
    let checked = project.evals(&["harness", "check", "away", "--format", "json"]).json();
    assert_eq!(checked["checks"][0]["login"]["evidence"], json!({"by": [], "note": "there is no public package"}));
}

#[test]
fn every_shipped_agent_with_an_account_says_how_it_logs_in() {
    // These need no account: the demo agent and an example.
    let without = ["demo", "demo-stream", "demo-text", "command"];
    for manifest in evals::internal::harness::built_in() {
        let mut login = evals::internal::harness::login::Login::of(manifest, &std::collections::BTreeMap::new());
        let noted = login.evidence.take().and_then(|evidence| evidence.note).is_some_and(|note| note.contains("login"));
        let told = manifest.quirks.iter().any(|quirk| quirk.contains("login"));
        assert!(!login.is_empty() || without.contains(&manifest.name.as_str()) || told || noted, "{}", manifest.name);
        for variable in &login.variables {
            let masked =
                manifest.env.secret.contains(&variable.name) || evals::internal::secrets::looks_secret(&variable.name);
            assert!(masked, "{}: {}", manifest.name, variable.name);
        }
        for method in &manifest.authenticate {
            assert!(
                method.env.iter().all(|name| manifest.env.pass.contains(name)),
                "{}: {}",
                manifest.name,
                method.method
            );
        }
    }
}

#[test]
fn no_agent_runs_while_a_login_file_cannot_be_read_whose_secrets_are_to_be_masked() {
    let project = Project::new();
    project
        .harness("sh", "adapter: output-only\ncommand: [sh, -c, 'echo done']\nhome: {copy: [.agent/auth.json, .gone]}");
    project.case("a", "graders: [{output: {contains: done}}]", "");
    let file = project.home().join(".agent/auth.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, r#"{"token": "token-0123456789"}"#).unwrap();
    project.evals(&["run", "--harness", "sh", "--label", "before"]).exits(0);
    // A link to itself exists, and no user can read it.
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("auth.json", &file).unwrap();
    project.evals(&["run", "--harness", "sh", "--label", "after"]).exits(3).says(".agent/auth.json cannot be read");
    let folder = project.run_named("after");
    let result: Value =
        serde_json::from_str(&project.read(&format!("{folder}/trials/a/sh/default/1/result.json"))).unwrap();
    assert_eq!((&result["verdict"], &result["error"]["category"]), (&json!("errored"), &json!("setup")), "{result}");
    assert!(!project.path(&format!("{folder}/trials/a/sh/default/1/trace.jsonl")).exists() || result["stop"].is_null());
    // A trial that was judged before is not graded again, either.
    let again = project.evals(&["grade", &project.run_named("before").replace(".evals/runs/", "")]);
    again.exits(3).says("auth.json cannot be read");
}

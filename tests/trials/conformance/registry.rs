//! The agents of the protocol's registry: each has a manifest, `acp:ID` names it everywhere, and the docs list it.

use evals::internal::harness::Tier;
use evals::internal::harness::login::Login;
use serde_json::{Value, json};

use crate::project::Project;

/// Every id of the registry's matrix of 2026-08-20, and those beside it whose launch is known.
const IDS: [&str; 35] = [
    "amp-acp",
    "auggie",
    "autohand",
    "claude-acp",
    "cline",
    "codebuddy-code",
    "codex-acp",
    "cortex-code",
    "corust-agent",
    "cursor",
    "deepagents",
    "devin",
    "dimcode",
    "dirac",
    "factory-droid",
    "fast-agent",
    "gemini",
    "github-copilot",
    "github-copilot-cli",
    "glm-acp-agent",
    "goose",
    "grok-build",
    "harn",
    "junie",
    "kilo",
    "kimi",
    "mistral-vibe",
    "nova",
    "opencode",
    "pi-acp",
    "poolside",
    "qoder",
    "qwen-code",
    "sigit",
    "stakpak",
];

#[test]
fn every_agent_of_the_registry_has_a_manifest() {
    let manifests: Vec<_> = evals::internal::harness::built_in().collect();
    let mut ids: Vec<&str> = manifests.iter().filter_map(|manifest| manifest.registry_id.as_deref()).collect();
    ids.sort_unstable();
    assert_eq!(ids, IDS);
    for manifest in manifests.iter().filter(|manifest| manifest.registry_id.is_some()) {
        let name = &manifest.name;
        assert!(!manifest.command.is_empty() && manifest.description.is_some(), "{name}");
        let tier = manifest.tier.unwrap_or_else(|| panic!("{name} has no tier"));
        // Nobody claims more than was seen: what was never run is a recipe, and what was run says so.
        assert!(tier.is_recipe() || !manifest.verified.is_empty(), "{name} is {} and was never seen", tier.word());
        assert!(tier != Tier::Wired || manifest.verified.iter().all(|it| !it.by.is_empty()), "{name}");
    }
}

#[test]
fn what_is_verified_names_what_shows_it() {
    for manifest in evals::internal::harness::built_in() {
        for verified in &manifest.verified {
            let path = verified.by.split_whitespace().find(|word| word.starts_with("tests/"));
            let path = path.unwrap_or_else(|| panic!("{}: `{}` names no file", manifest.name, verified.by));
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path.trim_end_matches([',', ';', ':']));
            assert!(path.exists(), "{}: {} is not there", manifest.name, path.display());
        }
    }
}

#[test]
fn what_an_agent_is_compared_with_is_another_form_of_it() {
    let manifests: Vec<_> = evals::internal::harness::built_in().collect();
    let compared: Vec<_> =
        manifests.iter().filter_map(|one| Some((one, one.parity.as_ref()?.harness.as_ref()?))).collect();
    for (one, other) in &compared {
        let other = manifests.iter().find(|manifest| manifest.name == **other).unwrap_or_else(|| panic!("{other}"));
        assert_ne!(one.name, other.name);
        // A command that does a task by itself asks nobody.
        assert!(!other.seen().interaction, "{} is compared with {}", one.name, other.name);
    }
    assert!(compared.len() >= 10);
}

#[test]
fn an_id_names_a_harness_wherever_one_is_named() {
    let project = Project::new();
    for id in IDS {
        let shown = project.evals(&["harness", "show", &format!("acp:{id}"), "--format", "json"]).exits(0).json();
        assert_eq!(shown["manifest"]["registry-id"], id);
    }
    project.evals(&["harness", "show", "acp:qwen-coed"]).exits(2).says("did you mean `acp:qwen-code`");
    // Who knows it by its name here gets the id that belongs to it.
    project.evals(&["harness", "show", "acp:copilot"]).exits(2).says("did you mean `acp:github-copilot-cli`");
    project.evals(&["harness", "show", "acp:nothing-of-the-kind"]).exits(2).says("no harness is named");
}

#[test]
fn a_case_a_run_and_an_import_take_ids_and_other_names() {
    let project = Project::new();
    project.demo("mine", "registry-id: my-agent\naliases: [my-other-name]\nmodel: {via: config-option}");
    project.case("a", "harnesses: ['acp:my-agent']", "steps: [{say: done}]");
    project.evals(&["run"]).exits(0);
    assert_eq!(project.result("a/mine/default/1")["harness"], "mine");
    let args = ["run", "--harness", "my-other-name", "--model", "acp:my-agent=demo-7", "--out", "second"];
    project.evals(&args).exits(0).says("demo-7");
    let wire = format!("{}/trials/a/mine/default/1/wire.jsonl", project.run_folder());
    let ran = project.evals(&["import", "--harness", "acp:my-agent", &wire]).exits(0);
    assert!(ran.out.lines().next().unwrap().contains("\"harness\":\"mine\""), "{}", ran.out);
    project.case("b", "harnesses: ['acp:my-agnet']", "steps: [{say: done}]");
    project.evals(&["check"]).exits(2).says("cases/b.yaml").says("did you mean `acp:my-agent`");
}

#[test]
fn an_agent_is_known_by_its_own_name_when_the_adapter_alone_is_given() {
    let project = Project::new();
    let info =
        r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"my-very-own","version":"1"}}}"#;
    let call = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","name":"scribble","title":"t","status":"completed"}}}"#;
    project.write("session.jsonl", &format!("{info}\n{call}\n"));
    let kind = |args: &[&str]| {
        let out = project.evals(&[&["import"], args, &["session.jsonl"]].concat()).exits(0).out;
        let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let call = lines.iter().find(|line| line["type"] == "tool_call").unwrap();
        (call["kind"].clone(), lines[0]["capabilities"]["interaction"].clone())
    };
    assert_eq!(kind(&["--adapter", "acp"]), (json!("other"), json!(true)));
    let keys = "agent-info: my-very-own\ntool-kinds: {scribble: edit}\ncapabilities: {interaction: false}";
    project.harness("mine", &format!("adapter: acp\ncommand: [mine]\n{keys}"));
    let named = kind(&["--harness", "mine"]);
    assert_eq!(named, (json!("edit"), json!(false)));
    assert_eq!(kind(&["--adapter", "acp"]), named);
}

#[test]
fn a_manifest_of_the_users_takes_the_place_of_one_that_is_built_in() {
    let project = Project::new();
    project.demo("my-qwen", "registry-id: qwen-code");
    let shown = project.evals(&["harness", "show", "acp:qwen-code", "--format", "json"]).exits(0).json();
    assert_eq!(shown["name"], "my-qwen");
}

#[test]
fn names_that_would_be_taken_for_ids_are_refused() {
    for (keys, said) in [
        ("name: 'acp:x'\nadapter: acp\ncommand: [x]\n", "`acp:x` is not a valid harness name"),
        ("name: x\nadapter: acp\ncommand: [x]\naliases: [a/b]\n", "`a/b` is not a valid harness name"),
        ("name: x\nadapter: acp\ncommand: [x]\nregistry-id: 'acp:x'\n", "`acp:x` is not an ID of the registry"),
        ("name: x\nadapter: acp\ncommand: [x]\nparity: {}\n", "`parity` needs exactly one of"),
        ("name: x\nadapter: acp\ntier: runnable\n", "the harness has no command"),
    ] {
        let project = Project::with(&[("harnesses/x.yaml", keys)]);
        project.evals(&["harness", "list"]).exits(2).says("harnesses/x.yaml:").says(said);
    }
}

#[test]
fn a_command_that_may_download_is_told_unless_its_manifest_says_so() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.harness("fetched", "adapter: acp\ncommand: [npx, -y, some-agent@1.0.0]");
    let noted = project.evals(&["run", "--dry-run"]).exits(0);
    assert!(noted.err.contains("may download the agent during a trial"), "{}", noted.err);
    for keys in ["command: [npx, -y, some-agent@1.0.0]\ndownloads: true", "command: [npx, --no-install, some-agent]"] {
        project.harness("fetched", &format!("adapter: acp\n{keys}"));
        let quiet = project.evals(&["run", "--dry-run"]).exits(0);
        assert!(!quiet.err.contains("may download"), "{}", quiet.err);
    }
}

#[test]
fn the_list_says_tier_installed_and_verified() {
    let project = Project::new();
    project.harness("gone", "adapter: acp\ncommand: [no-such-agent-anywhere]\ntier: catalog\nverified: []");
    project.harness("recipe", "adapter: acp\ntier: vendor-locked");
    let list = project.evals(&["harness", "list", "--format", "json"]).exits(0).json();
    let of = |name: &str| list.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
    assert_eq!((&of("gone")["tier"], &of("gone")["installed"]), (&"catalog".into(), &false.into()));
    assert!(of("gone").get("verified").is_none() && of("recipe").get("installed").is_none());
    let qwen = of("qwen");
    assert_eq!((&qwen["registry_id"], &qwen["verified"]), (&"qwen-code".into(), &"0.24.4".into()));
    assert_eq!(project.evals(&["list", "harnesses", "--format", "json"]).exits(0).json(), list);
    let registry = project.evals(&["harness", "list", "--registry", "--format", "json"]).exits(0).json();
    assert_eq!(registry.as_array().unwrap().len(), IDS.len());
    project.evals(&["harness", "show", "recipe"]).exits(0).says("unknown, the manifest has no command");
}

#[test]
fn the_table_in_the_docs_is_the_programs_own() {
    let project = Project::new();
    let table = project.evals(&["harness", "list", "--registry", "--format", "markdown"]).exits(0).out;
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/harnesses.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let message = "docs/harnesses.md: put in what `evals harness list --registry --format markdown` prints";
    assert!(docs.contains(&table), "{message}:\n{table}");
}

/// Those that work without a login, and the recipe for a command of one's own.
const NO_LOGIN: [&str; 4] = ["command", "demo", "demo-stream", "demo-text"];

/// The table of `docs/logins.md`: a row for each agent, made from its manifest.
fn logins() -> String {
    let mut table = String::from(
        "| harness | variables | files | ACP method | verified by | note |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for manifest in evals::internal::harness::built_in() {
        if NO_LOGIN.contains(&manifest.name.as_str()) {
            continue;
        }
        let login = Login::of(manifest, &std::collections::BTreeMap::new());
        let list = |mut items: Vec<String>| {
            items.dedup();
            items.join(", ")
        };
        let required = |required: bool| if required { " (required)" } else { "" };
        let mut variables: Vec<String> =
            login.variables.iter().map(|it| format!("`{}`{}", it.name, required(it.required))).collect();
        variables.extend(manifest.env.named_in.iter().map(|it| format!("those named in `~/{}`", it.file.display())));
        let files = login.files.iter().map(|it| format!("`~/{}`", it.path)).collect();
        let methods = login.methods.iter().map(|it| format!("`{}`", it.method)).collect();
        let evidence =
            login.evidence.unwrap_or_else(|| panic!("{} does not say how its login was verified", manifest.name));
        let note = evidence.note.as_deref().unwrap_or_default().replace('|', "\\|");
        let row = [list(variables), list(files), list(methods), evidence.described(), note];
        table += &format!("| `{}` | {} |\n", manifest.name, row.join(" | "));
    }
    table
}

/// With `EVALS_DOCS=write` in the environment, the table is written anew.
#[test]
fn the_table_of_logins_is_that_of_the_manifests() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/logins.md");
    let docs = std::fs::read_to_string(&path).unwrap();
    let start = docs.find("| harness |").unwrap();
    let length = docs[start..].find("\n\n").map_or(docs.len() - start, |end| end + 1);
    let (table, made) = (&docs[start..start + length], logins());
    if std::env::var("EVALS_DOCS").is_ok_and(|value| value == "write") {
        std::fs::write(&path, docs.replace(table, &made)).unwrap();
    } else {
        assert!(table == made, "docs/logins.md: run this test with EVALS_DOCS=write; it should be\n{made}");
    }
}

#[test]
fn no_login_claims_more_than_was_verified() {
    for manifest in evals::internal::harness::built_in() {
        let name = manifest.name.as_str();
        let Some(evidence) = &manifest.login else {
            assert!(NO_LOGIN.contains(&name), "{name}");
            continue;
        };
        assert!(!NO_LOGIN.contains(&name), "{name}");
        // What was looked at has a version, and what was not says why.
        let looked = evidence.by.iter().any(|by| by.words() != "documentation");
        assert!(!looked || evidence.version.is_some(), "{name} has no version");
        assert!(!evidence.by.is_empty() || evidence.note.is_some(), "{name} is unverified and does not say why");
        // A key in the environment is masked.
        for method in &manifest.authenticate {
            for variable in &method.env {
                assert!(manifest.env.pass.contains(variable), "{name}: {variable}");
                assert!(manifest.env.secret.contains(variable), "{name}: {variable}");
            }
        }
    }
}

//! BenchFlow's manifests: taken over where they are right, and refused with every error at its place.

use crate::project::Project;

const PLAIN: &str = r#"
contract_version = "1.0"
name = "plain-agent"
description = "An agent that needs no shell"
install_cmd = "npm install -g plain-agent@1.2.3"
launch_cmd = "NO_BROWSER=1 exec plain-agent --acp"
protocol = "acp"
api_protocol = "openai-completions"
acp_model_format = "provider/model"
supports_acp_set_model = false
default_model = "openai/small"
install_timeout = 1200.0
skill_paths = ["$HOME/.plain/skills"]
home_dirs = [".plain"]
requires_env = ["PLAIN_LICENSE"]
aliases = ["plain", "plain-agent"]

[env_mapping]
BENCHFLOW_PROVIDER_BASE_URL = "OPENAI_BASE_URL"
BENCHFLOW_PROVIDER_API_KEY = "PLAIN_CREDENTIAL"
BENCHFLOW_PROVIDER_MODEL = "PLAIN_MODEL"
"#;

const SHELL: &str = r#"
contract_version = "1.3.1"
name = "shell-agent"
install_cmd = '''
set -e
mkdir -p /opt/shell-agent
'''
launch_cmd = '''cd /opt/shell-agent && OPENAI_HOST=$BENCHFLOW_PROVIDER_BASE_URL ./agent acp'''

[env_mapping]
BENCHFLOW_PROVIDER_API_KEY = "OPENAI_API_KEY"
"#;

/// The YAML that an import prints, and its notes.
fn imported(project: &Project, text: &str) -> (String, String) {
    project.write("manifest.toml", text);
    let ran = project.evals(&["harness", "import", "manifest.toml"]).exits(0);
    (ran.out, ran.err)
}

#[test]
fn a_manifest_is_taken_over_with_what_has_no_counterpart_in_comments() {
    let project = Project::new();
    let (yaml, notes) = imported(&project, PLAIN);
    insta::assert_snapshot!("benchflow_plain", yaml);
    assert!(notes.contains("note: install_timeout = 1200"), "{notes}");
    let (yaml, _) = imported(&project, SHELL);
    insta::assert_snapshot!("benchflow_shell", yaml);
}

#[test]
fn what_was_taken_over_can_be_used() {
    let project = Project::new();
    project.write("manifest.toml", PLAIN);
    project.evals(&["harness", "import", "manifest.toml", "-o", "harnesses/plain-agent.yaml"]).exits(0);
    let shown = project.evals(&["harness", "show", "plain", "--format", "json"]).exits(0).json();
    assert_eq!((&shown["name"], &shown["installed"]), (&"plain-agent".into(), &false.into()));
    assert_eq!(
        shown["manifest"]["model"],
        serde_json::json!({"via": "env", "env": "PLAIN_MODEL", "default": "openai/small"})
    );
    project.evals(&["harness", "check", "plain-agent"]).exits(3).says("npm install -g plain-agent@1.2.3");
    let (yaml, _) = imported(&project, SHELL);
    project.write("harnesses/shell-agent.yaml", &yaml);
    project.evals(&["harness", "show", "shell-agent"]).exits(0).says("bash");
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_nothing_is_written() {
    let project = Project::new();
    let wrong = r#"contract_version = "2.0"
name = "a/b"
lauch_cmd = "x"
install_cmd = ""
protocol = "stdio"
supports_acp_set_model = "no"
install_timeout = 1200.5
acp_model_format = "bares"
aliases = ["ok", 3]

[env_mapping]
BENCHFLOW_PROVIDER_MODEL = 7
"#;
    project.write("manifest.toml", wrong);
    let ran = project.evals(&["harness", "import", "manifest.toml", "-o", "out.yaml"]).exits(2);
    for said in [
        "manifest.toml:1:20: the manifest has contract version 2.0; supported is 1.x",
        "manifest.toml:2:8: `a/b` is not a valid harness name",
        "manifest.toml:3:1: unknown field `lauch_cmd`",
        "did you mean `launch_cmd`?",
        "manifest.toml: the field `launch_cmd` is missing",
        "manifest.toml:4:15: `install_cmd` is empty",
        "manifest.toml:5:12: `stdio` is not a valid `protocol`",
        "manifest.toml:6:26: `supports_acp_set_model` must be `true` or `false`, found a text",
        "manifest.toml:7:19: `install_timeout` must be a whole number of seconds from 1",
        "did you mean `bare`?",
        "manifest.toml:9:18: `aliases` contains a value that is not a text",
        "manifest.toml:12:28: `env_mapping.BENCHFLOW_PROVIDER_MODEL` must be a text",
    ] {
        let plain = ran.err.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains(said), "{said}\n{}", ran.err);
    }
    assert!(!project.path("out.yaml").exists());
    project.write("manifest.toml", "name = \"x\"\nname = \"y\"\nlaunch_cmd = \n");
    project
        .evals(&["harness", "import", "manifest.toml"])
        .exits(2)
        .says("manifest.toml:2:1")
        .says("manifest.toml:3:14");
    project.evals(&["harness", "import", "nowhere.toml"]).exits(2).says("could not be read");
}

#[test]
fn what_stands_in_comments_stays_in_them() {
    let project = Project::new();
    let odd = r#""one\rtwo: [\u0085three: {\u2028four\u0007""#;
    let (yaml, _) = imported(&project, &PLAIN.replace("\"openai-completions\"", odd));
    assert!(yaml.contains("# two: [\n# three: {\n# four\\u{7}"), "{yaml}");
    project.write("harnesses/plain-agent.yaml", &yaml);
    project.evals(&["harness", "show", "plain-agent"]).exits(0);
}

#[test]
fn a_name_that_could_name_no_harness_is_refused_here_as_well() {
    let project = Project::new();
    for name in ["acp:x", ".x", "a/b", "x.yaml"] {
        project.write("manifest.toml", &PLAIN.replace("name = \"plain-agent\"", &format!("name = \"{name}\"")));
        let ran = project.evals(&["harness", "import", "manifest.toml"]).exits(2);
        ran.says(&format!("`{name}` is not a valid harness name"));
        project.write("manifest.toml", &PLAIN.replace("[\"plain\",", &format!("[\"plain\", \"\", \"{name}\",")));
        let ran = project.evals(&["harness", "import", "manifest.toml"]).exits(2);
        ran.says(&format!("`{name}` is not a valid harness name"))
            .says("`` is not a valid harness name")
            .says("begin with `acp:`");
    }
}

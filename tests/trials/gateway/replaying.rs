//! Recordings that are played: the same trace each time, and no verdict where the conversation is another one.

use serde_json::{Value, json};

use super::client::Gateway;
use super::stand::{ANSWERS, CASSETTE, KEY, Stand, TRIAL, normal, project};
use crate::project::{Project, bubblewrap, lines};

/// Copies a recorded project to another folder, without its service and its key.
fn elsewhere(stand: &Stand, keys: &str) -> Project {
    let mut other = project(keys);
    for file in ["cases/a.yaml", CASSETTE, "agent.py"] {
        other.write(file, &stand.project.read(file));
    }
    // Nothing may leave: no service answers there.
    other.env("EVALS_UPSTREAM_ANTHROPIC", "http://127.0.0.1:9");
    other
}

fn result(project: &Project) -> Value {
    project.result(TRIAL)
}

#[test]
#[ignore = "slow: runs many trials behind a gateway"]
fn a_recording_gives_the_same_trace_ten_times_out_of_ten() {
    let stand = Stand::with(ANSWERS, "trials: 10");
    stand.run("record", &["--trials", "1"]).exits(0);
    let recorded = normal(&stand.trace("record"));
    let other = elsewhere(&stand, "trials: 10");
    let Stand { service, .. } = stand;
    drop(service);
    other.evals(&["run", "--gateway", "replay", "--trials", "10", "--jobs", "2"]).exits(0);
    for trial in 1..=10 {
        let trace = other.trace(&format!("a/small/default/{trial}"));
        let replayed = normal(&trace).replace(&format!("\"trial\":{trial}"), "\"trial\":1");
        assert_eq!(replayed, recorded, "trial {trial}");
    }
    let metrics = &other.result("a/small/default/7")["metrics"];
    assert_eq!((&metrics["input_tokens"], &metrics["output_tokens"]), (&json!(330), &json!(42)));
    // The tools ran for real.
    assert!(
        other
            .trace(TRIAL)
            .iter()
            .any(|event| event["output"] == format!("forty-two\n{}\n", other.trace(TRIAL)[0]["cwd"].as_str().unwrap()))
    );
}

#[test]
fn another_conversation_is_not_judged_whatever_the_agent_makes_of_it() {
    let stand = Stand::with(ANSWERS, "graders: [{output: {contains: go on}}]");
    stand.run("record", &[]).exits(1);
    let mut other = elsewhere(&stand, "");
    other.write("cases/a.yaml", &other.read("cases/a.yaml").replace("Do it.", "Do it now."));
    for mode in ["", "goes-on"] {
        other.env("AGENT_MODE", mode);
        let ran = other.evals(&["run", "--gateway", "replay"]).exits(3);
        let result = result(&other);
        assert_eq!(
            (&result["verdict"], &result["error"]["category"]),
            (&json!("errored"), &json!("provider")),
            "{mode}"
        );
        let told = result["error"]["message"].as_str().unwrap();
        let wanted = "nearest is entry 1: `messages[0].content` was \"Do it.\", and is \"Do it now.\" now";
        assert!(told.contains(wanted) && told.contains("--gateway record"), "{told}");
        ran.says("nearest is entry 1");
        // Graded again, the trial is not judged either.
        other.evals(&["grade", "latest"]).exits(3);
        std::fs::remove_dir_all(other.path(".evals")).unwrap();
    }
}

#[test]
fn a_cassette_that_cannot_be_read_starts_nothing() {
    let stand = Stand::with(ANSWERS, "");
    stand.run("record", &[]).exits(0);
    let other = elsewhere(&stand, "");
    let text = other.read(CASSETTE);
    let (header, rest) = text.split_once('\n').unwrap();
    let cut = format!("{header}\n{}", &rest[..rest.len() / 2]);
    let cut = cut.trim_end_matches('\n').to_owned();
    let at = cut.lines().count();
    for (content, wanted) in [
        (cut.clone(), format!("small.jsonl:{at}: the line ends too early")),
        (text.replacen("\"cassette\":1", "\"cassette\":7", 1), "small.jsonl:1: the cassette has version 7".to_owned()),
        (format!("{header}\nnot json\n"), "small.jsonl:2: the line is not JSON".to_owned()),
        (String::new(), "small.jsonl:1: the cassette is empty".to_owned()),
    ] {
        other.write(CASSETTE, &content);
        for mode in ["replay", "auto"] {
            other.evals(&["run", "--gateway", mode]).exits(2).says(&wanted);
        }
    }
    std::fs::remove_file(other.path(CASSETTE)).unwrap();
    other
        .evals(&["run", "--gateway", "replay"])
        .exits(2)
        .says("there is no cassette cases/a.cassettes/small.jsonl to replay");
    assert!(other.runs().is_empty());
}

#[test]
fn an_edited_answer_is_played() {
    let stand = Stand::with(ANSWERS, "graders: [{output: {equals: a.txt holds forty-three.}}]");
    stand.run("record", &[]).exits(1);
    let other = elsewhere(&stand, "");
    other.write(CASSETTE, &other.read(CASSETTE).replace("a.txt holds forty-two.", "a.txt holds forty-three."));
    other.evals(&["run", "--gateway", "replay"]).exits(0);
}

#[test]
fn entries_that_were_not_played_are_a_warning() {
    let stand = Stand::with(ANSWERS, "");
    stand.run("record", &[]).exits(0);
    let other = elsewhere(&stand, "");
    let text = other.read(CASSETTE);
    // The second answer now ends the conversation.
    let shorter = text.replacen(
        "{\"type\":\"tool_use\",\"id\":\"{evals:id:4}\",\"name\":\"Bash\",\"input\":{\"command\":\"exit 3\"}}",
        "{\"type\":\"text\",\"text\":\"Enough.\"}",
        1,
    );
    assert_ne!(shorter, text);
    other.write(CASSETTE, &shorter);
    let ran = other.evals(&["run", "--gateway", "replay"]).exits(0);
    let ran = ran.says("in 1 trial the agent did not make all requests of its cassette");
    ran.says("in 1 trial the model's answers were played from a cassette: it measures the agent, not the model");
    let warnings = result(&other)["warnings"].to_string();
    assert!(warnings.contains("cassette_left") && warnings.contains("entry 3 left"), "{warnings}");
}

#[test]
fn entries_that_were_not_played_are_a_warning_beside_a_miss() {
    let stand = Stand::with(ANSWERS, "");
    stand.run("record", &[]).exits(0);
    let other = elsewhere(&stand, "");
    let case = other.read("cases/a.yaml");
    other.write("cases/a.yaml", &case.replacen("prompt: ", "prompt: 'Other: ' # ", 1));
    let ran = other.evals(&["run", "--gateway", "replay"]).exits(3);
    ran.says("in 1 trial the agent did not make all requests of its cassette");
    let result = result(&other);
    assert_eq!((&result["verdict"], &result["error"]["category"]), (&json!("errored"), &json!("provider")));
    let warnings = result["warnings"].to_string();
    assert!(warnings.contains("cassette_left") && warnings.contains("entries 1, 2, 3 left"), "{warnings}");
}

#[test]
fn a_trial_whose_request_was_not_recorded_is_not_tried_again() {
    let stand = Stand::with(ANSWERS, "");
    stand.run("record", &[]).exits(0);
    let other = elsewhere(&stand, "");
    // The first attempt asks for something else.
    let agent = other.read("agent.py");
    let first = "import os\nif not os.path.exists('PLACE'):\n    open('PLACE', 'w').close()\n    import sys\n    sys.argv = [a + ' else' for a in sys.argv]\n";
    let place = other.path("was-here").display().to_string();
    other.write("agent.py", &format!("{}{agent}", first.replace("PLACE", &place)));
    other.evals(&["run", "--gateway", "replay", "--retries", "2"]).exits(3);
    let result = result(&other);
    assert!(result["verdict"] == "errored" && result["warnings"].to_string().contains("cassette_missed"), "{result}");
    assert_eq!(other.journal().iter().filter(|line| line["event"] == "started").count(), 1);
}

#[test]
fn a_request_outside_the_conversation_may_be_missing_if_the_manifest_names_it() {
    let stand = Stand::with(ANSWERS, "");
    stand.run("record", &[]).exits(0);
    let other = elsewhere(&stand, "");
    let agent = other.read("agent.py").replace(
        "    text = \"\"\n    while",
        "    try:\n        ask([{\"role\": \"user\", \"content\": \"Name this session: \" + sys.argv[1]}])\n    \
         except urllib.error.HTTPError:\n        pass\n    text = \"\"\n    while",
    );
    other.write("agent.py", &agent);
    other.evals(&["run", "--gateway", "replay", "--label", "missed"]).exits(3);
    let manifest = other.read("harnesses/small.yaml");
    other.write(
        "harnesses/small.yaml",
        &manifest.replace("  api: anthropic", "  api: anthropic\n  aside: [^Name this]"),
    );
    other.evals(&["run", "--gateway", "replay", "--label", "aside"]).exits(0);
    let folder = format!("{}/trials/{TRIAL}", other.run_named("aside"));
    let warnings = other.read(&format!("{folder}/result.json"));
    assert!(warnings.contains("\"aside_not_recorded\"") && warnings.contains("lacks 1 request outside"), "{warnings}");
    let log = lines(&other.read(&format!("{folder}/llm.jsonl")));
    assert_eq!((&log[0]["status"], &log[0]["error"]["kind"]), (&json!(400), &json!("aside")));
}

#[test]
fn results_of_tools_are_compared_unless_the_case_says_otherwise() {
    let clock = ANSWERS.replace("cat a.txt; pwd", "date +%s%N");
    let stand = Stand::with(&clock, "");
    stand.run("record", &[]).exits(0);
    let other = elsewhere(&stand, "");
    other
        .evals(&["run", "--gateway", "replay", "--label", "compared"])
        .exits(3)
        .says("nearest is entry 2")
        .says("content");
    let file = "model: {cassette: a.cassettes/small.jsonl, results: ignore}";
    other.write("cases/a.yaml", &format!("{}{file}\n", other.read("cases/a.yaml")));
    other.evals(&["run", "--label", "ignored"]).exits(0);
    // Or the manifest does.
    let other = elsewhere(&stand, "");
    let manifest = other.read("harnesses/small.yaml");
    other.write("harnesses/small.yaml", &manifest.replace("  api: anthropic", "  api: anthropic\n  results: ignore"));
    other.evals(&["run", "--gateway", "replay"]).exits(0);
    // Or it says what differs.
    let other = elsewhere(&stand, "");
    let rule = "  api: anthropic\n  normalise: [{regex: '\\d{19}', with: NOW}]";
    other.write("harnesses/small.yaml", &manifest.replace("  api: anthropic", rule));
    other.evals(&["run", "--gateway", "replay"]).exits(0);
}

#[test]
fn nothing_leaves_a_machine_without_a_route() {
    if !bubblewrap() {
        return;
    }
    let stand = Stand::with(ANSWERS, "");
    stand.run("record", &[]).exits(0);
    let mut other = elsewhere(&stand, "");
    // An address that answers nothing, and no way out of this namespace.
    other.env("EVALS_UPSTREAM_ANTHROPIC", "http://192.0.2.1");
    other.write("scripts/b.model.yaml", ANSWERS);
    other.case("b", "harnesses: [small]\nmodel: {script: ../scripts/b.model.yaml}", "");
    let apart = ["--dev-bind", "/", "/", "--unshare-net", "--die-with-parent"];
    let done = other.under("bwrap", &apart, &["run", "--gateway", "replay", "--case", "a"]).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let done = other.under("bwrap", &apart, &["run", "--case", "b"]).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let done = other.under("bwrap", &apart, &["run", "--gateway", "observe", "--case", "a", "--label", "out"]).output();
    assert_eq!(done.unwrap().status.code(), Some(3), "there was a way out");
}

#[test]
fn answers_come_at_the_recorded_pace_if_asked() {
    let slow = ANSWERS.replacen("  - thinking", "  - delay: 600ms\n    thinking", 1);
    let stand = Stand::with(&slow, "");
    stand.run("record", &[]).exits(0);
    let first = |label: &str| {
        let exchange = stand.exchanges(label)[0].clone();
        exchange["stream"][0][0].as_u64().unwrap() - exchange["at_ms"].as_u64().unwrap()
    };
    for (label, timing, at_least, below) in
        [("at-once", "none", 0, 400), ("as-recorded", "recorded", 550, 5000), ("half", "0.5", 280, 590)]
    {
        stand.run("replay", &["--gateway-timing", timing, "--label", label]).exits(0);
        let ms = first(label);
        assert!(ms >= at_least && ms < below, "{label}: {ms} ms");
    }
    stand.run("replay", &["--gateway-timing", "fast"]).exits(2);
    let without = "--gateway-timing has no effect, because no trial plays recorded answers";
    stand.run("observe", &["--gateway-timing", "recorded"]).exits(2).says(without);
}

#[test]
fn a_part_of_the_suite_may_have_the_pace_of_the_whole() {
    let stand = Stand::with(ANSWERS, "");
    stand.run("record", &[]).exits(0);
    stand.project.case("plays", "harnesses: [small]\nmodel: {cassette: a.cassettes/small.jsonl}", "");
    let run = |part: &str| {
        stand.project.evals(&["run", "cases", "--gateway-timing", "none", "--case", part, "--label", part])
    };
    run("a").says("note: --gateway-timing has no effect on this part of the suite");
    assert!(stand.project.path(&stand.project.run_named("a")).exists());
    std::fs::remove_file(stand.project.path("cases/plays.yaml")).unwrap();
    run("a").exits(2).says("--gateway-timing has no effect, because no trial plays recorded answers");
}

#[test]
fn a_cassette_that_changes_under_the_run_ends_the_trials_that_follow() {
    let stand = Stand::with(ANSWERS, "trials: 2");
    stand.run("record", &["--trials", "1"]).exits(0);
    let path = stand.project.path(CASSETTE).display().to_string();
    let text = stand.project.read(CASSETTE).replace("exit 3", &format!("echo >> '{path}'; exit 3"));
    stand.project.write(CASSETTE, &text);
    stand.run("replay", &["--jobs", "1"]).exits(3);
    let folder = stand.project.run_named("replay");
    let result: Value =
        serde_json::from_str(&stand.project.read(&format!("{folder}/trials/a/small/default/2/result.json"))).unwrap();
    assert_eq!(result["error"]["category"], "setup", "{result}");
}

#[test]
fn another_version_of_the_agent_is_told() {
    let stand = Stand::with(ANSWERS, "");
    let manifest = stand.project.read("harnesses/small.yaml");
    let of = |version: &str| format!("{manifest}version: [echo, {version}]\n");
    stand.project.write("harnesses/small.yaml", &of("1.0"));
    stand.run("record", &[]).exits(0);
    stand.run("replay", &["--label", "same"]).exits(0);
    assert!(!stand.result("same")["warnings"].to_string().contains("cassette_agent"));
    stand.project.write("harnesses/small.yaml", &of("2.0"));
    stand.run("replay", &["--label", "newer"]).exits(0);
    let warnings = stand.result("newer")["warnings"].to_string();
    assert!(warnings.contains("recorded with version 1.0 of the agent, and version 2.0 ran now"), "{warnings}");
}

#[test]
fn a_retry_of_the_recorded_session_is_played_as_it_was() {
    let busy = ANSWERS.replacen("  - thinking", "  - fault: overloaded\n    thinking", 1);
    let service = Gateway::play(&busy);
    let mut project = project("");
    project.env("EVALS_UPSTREAM_ANTHROPIC", &service.base_url());
    project.env("ANTHROPIC_API_KEY", KEY);
    let agent = project.read("agent.py").replace(
        "    except urllib.error.HTTPError as error:\n",
        "    except urllib.error.HTTPError as error:\n        if error.code == 529:\n            return ask(messages)\n",
    );
    project.write("agent.py", &agent);
    project.evals(&["run", "--gateway", "record"]).exits(0);
    let entries = lines(&project.read(CASSETTE));
    assert_eq!((&entries[1]["status"], &entries[2]["status"]), (&json!(529), &json!(200)));
    drop(service);
    project.evals(&["run", "--gateway", "replay", "--label", "played"]).exits(0);
    let folder = project.run_named("played");
    let log = lines(&project.read(&format!("{folder}/trials/{TRIAL}/llm.jsonl")));
    let statuses: Vec<&Value> = log.iter().map(|line| &line["status"]).collect();
    assert_eq!(statuses, [529, 200, 200, 200]);
}

#[test]
fn a_run_does_not_go_on_with_another_recording() {
    let stand = Stand::with(ANSWERS, "");
    stand.run("record", &[]).exits(0);
    let other = elsewhere(&stand, "");
    other.evals(&["run", "--gateway", "replay"]).exits(0);
    other.write(CASSETTE, &other.read(CASSETTE).replace("forty-two.", "forty-three."));
    let run = other.runs()[0].clone();
    other.evals(&["run", "--resume", &run, "--rerun", "errored"]).exits(2).says("changed");
}

#[test]
fn a_request_that_is_no_json_is_a_miss() {
    let stand = Stand::with(ANSWERS, "");
    stand.run("record", &[]).exits(0);
    let other = elsewhere(&stand, "");
    let agent = other.read("agent.py").replace(
        "def main():\n",
        "def main():\n    try:\n        urllib.request.urlopen(os.environ[\"AGENT_URL\"] + \"/v1/messages\", b\"{broken\")\n    \
         except urllib.error.HTTPError:\n        pass\n",
    );
    other.write("agent.py", &agent);
    other.evals(&["run", "--gateway", "replay"]).exits(3);
    assert_eq!(result(&other)["error"]["category"], "provider");
}

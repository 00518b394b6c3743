//! Recordings: what a cassette holds, when it is written, and what leaves it alone.

use serde_json::{Value, json};

use super::client::Gateway;
use super::service::{Request, Service};
use super::stand::{ANSWERS, CASSETTE, KEY, Stand, TRIAL, project};
use crate::project::lines;

#[test]
fn a_cassette_is_for_people_to_read() {
    let stand = Stand::with(ANSWERS, "");
    stand.run("record", &[]).exits(0);
    let text = stand.project.read(CASSETTE);
    let entries = lines(&text);
    let header = &entries[0];
    assert_eq!(
        (&header["cassette"], &header["harness"], &header["api"]),
        (&json!(1), &json!("small"), &json!("anthropic"))
    );
    assert!(header["recorded"].as_str().unwrap().starts_with("20") && header["agent"]["name"].is_string(), "{header}");
    assert_eq!(entries.len(), 4);
    // Nothing of this run but the time in the header, and nothing of the user.
    let bodies = text.split_once('\n').unwrap().1;
    for stranger in ["/tmp", "workspace\"", KEY, "toolu_", "T00:", "msg_"] {
        assert!(!bodies.contains(stranger), "{stranger} in {bodies}");
    }
    let third = &entries[3]["request"]["messages"];
    assert_eq!(third[0], json!({"$first": 3, "of": 2}), "{third}");
    let schema = jsonschema::validator_for(&evals::internal::schema::schema("cassette").unwrap()).unwrap();
    assert!(entries.iter().all(|line| schema.is_valid(line)), "{text}");
    let shown = stand.project.evals(&["gateway", "show", CASSETTE]).exits(0);
    shown.says("call: Write {\"file_path\":\"{evals:workspace}/a.txt\"").says("model: a.txt holds forty-two.");

    // Recorded again, it is the same but for the times.
    stand.run("record", &["--label", "again"]).exits(0);
    let again = stand.project.read(CASSETTE);
    assert_eq!(text.split_once('\n').unwrap().1, again.split_once('\n').unwrap().1);
}

#[test]
fn large_texts_lie_in_files_of_their_own() {
    let stand = Stand::with(ANSWERS, "");
    let agent = stand
        .project
        .read("agent.py")
        .replace("\"Working directory: %s", "\"Be good. \" * 1000 + \"Working directory: %s");
    stand.project.write("agent.py", &agent);
    stand.run("record", &[]).exits(0);
    let entries = lines(&stand.project.read(CASSETTE));
    let name = entries[1]["request"]["system"]["$body"].as_str().unwrap();
    let body = stand.project.read(&format!("cases/a.cassettes/small.bodies/{name}"));
    assert!(body.ends_with("Home: {evals:home}\nSession: {evals:uuid:1}\nTime: {evals:time:1}\n"), "{body}");
    assert_eq!(entries[2]["request"]["system"], json!({"$same": 1}));
    stand.run("replay", &[]).exits(0);
    std::fs::remove_file(stand.project.path(&format!("cases/a.cassettes/small.bodies/{name}"))).unwrap();
    stand.run("replay", &["--label", "lost"]).exits(2).says("small.jsonl:2: the file").says("cannot be read");
}

#[test]
fn a_failed_recording_replaces_nothing() {
    let stand = Stand::with(ANSWERS, "");
    stand.run("record", &[]).exits(0);
    let before = stand.project.read(CASSETTE);
    fn refuses(_: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
        (500, "content-type: application/json\r\n", vec![(0, "{\"error\":{\"message\":\"broken\"}}")])
    }
    let broken = Service::start(refuses);
    let Stand { mut project, .. } = stand;
    project.env("EVALS_UPSTREAM_ANTHROPIC", &broken.base_url());
    project.evals(&["run", "--gateway", "record", "--label", "broken"]).exits(3);
    assert_eq!(project.read(CASSETTE), before);
}

#[test]
fn of_several_trials_the_first_that_was_not_errored_is_kept() {
    // The first trial's agent dies, the other two answer in different words.
    let stand = Stand::with(ANSWERS, "trials: 3");
    let counter = stand.project.path("count").display().to_string();
    let agent = stand.project.read("agent.py").replace(
        "def main():\n",
        &format!(
            "def main():\n    fd = os.open({counter:?}, os.O_RDWR | os.O_CREAT | os.O_APPEND)\n    os.write(fd, b'x')\n    \
             number = os.fstat(fd).st_size\n    if number == 1:\n        sys.exit(3)\n    sys.argv[1] += \" \" + str(number)\n"
        ),
    );
    stand.project.write("agent.py", &agent);
    stand.run("record", &["--jobs", "1"]).exits(3);
    let text = stand.project.read(CASSETTE);
    assert!(text.contains("Do it. 2") && !text.contains("Do it. 3"), "{text}");
}

#[test]
fn auto_records_what_is_missing_and_keeps_what_is_left() {
    let stand = Stand::with(ANSWERS, "");
    stand.run("auto", &[]).exits(0);
    let asked = stand.service.log().len();
    assert_eq!(asked, 3);
    let first = stand.project.read(CASSETTE);
    // Everything is there: nothing leaves, and nothing is written.
    stand.run("auto", &["--label", "again"]).exits(0);
    assert_eq!((stand.service.log().len(), stand.project.read(CASSETTE)), (asked, first.clone()));
    // Another prompt is asked of the service, and the old entries stay and are named.
    stand.project.case("a", "harnesses: [small]\nturns: [Do something else.]", "");
    stand.run("auto", &["--label", "other"]).exits(0);
    assert_eq!(stand.service.log().len(), 2 * asked);
    let entries = lines(&stand.project.read(CASSETTE));
    assert_eq!(entries.len(), 7);
    let warnings = stand.result("other")["warnings"].to_string();
    assert!(warnings.contains("entries 1, 2, 3 left"), "{warnings}");
    let sources: Vec<Value> = stand.exchanges("again").iter().map(|line| line["source"].clone()).collect();
    assert_eq!(sources, ["cassette", "cassette", "cassette"]);
}

#[test]
fn a_column_has_a_cassette_of_its_own() {
    let stand = Stand::with(ANSWERS, "");
    stand.run("record", &["--model", "a/b", "--model", "c"]).exits(0);
    for name in ["small@a%2Fb.jsonl", "small@c.jsonl"] {
        assert_eq!(lines(&stand.project.read(&format!("cases/a.cassettes/{name}"))).len(), 4);
    }
    stand.run("replay", &["--model", "c"]).exits(0);
    stand
        .run("replay", &["--model", "d", "--label", "none"])
        .exits(2)
        .says("there is no cassette cases/a.cassettes/small@d.jsonl");
}

#[test]
fn two_columns_do_not_record_the_same_cassette() {
    let stand = Stand::with(ANSWERS, "model: {cassette: kept/a.jsonl}");
    let two = ["--model", "a", "--model", "b"];
    stand.run("record", &two).exits(2).says("would record the same cassette cases/kept/a.jsonl");
    assert!(stand.project.runs().is_empty() && stand.service.log().is_empty());
}

#[test]
fn a_recording_is_kept_where_the_case_names_one() {
    let stand = Stand::with(ANSWERS, "model: {cassette: kept/a.jsonl}");
    stand.run("record", &[]).exits(0);
    assert_eq!(lines(&stand.project.read("cases/kept/a.jsonl")).len(), 4);
    let asked = stand.service.log().len();
    // Without an option, the case is replayed, and no key is needed.
    let Stand { mut project, service } = stand;
    project.env("ANTHROPIC_API_KEY", "");
    project.evals(&["run", "--label", "usual"]).exits(0);
    assert_eq!(service.log().len(), asked);
    let folder = project.run_named("usual");
    assert!(project.read(&format!("{folder}/trials/{TRIAL}/llm.jsonl")).contains("\"source\":\"cassette\""));
    project.evals(&["check"]).exits(0);
    std::fs::remove_file(project.path("cases/kept/a.jsonl")).unwrap();
    project.evals(&["check"]).exits(2).says("kept/a.jsonl");
}

#[test]
fn a_resumed_run_keeps_the_first_recording() {
    let service = Gateway::play(ANSWERS);
    let mut project = project("trials: 2");
    project.env("EVALS_UPSTREAM_ANTHROPIC", &service.base_url());
    project.env("ANTHROPIC_API_KEY", KEY);
    project.evals(&["run", "--gateway", "record", "--jobs", "1"]).exits(0);
    let text = project.read(CASSETTE);
    // As if the run had ended after its first trial.
    let run = project.runs()[0].clone();
    let journal = project.read(&format!(".evals/runs/{run}/journal.jsonl"));
    let first: String =
        journal.lines().filter(|line| !line.contains("\"trial\":2")).map(|line| format!("{line}\n")).collect();
    project.write(&format!(".evals/runs/{run}/journal.jsonl"), &first);
    std::fs::remove_dir_all(project.path(&format!(".evals/runs/{run}/trials/a/small/default/2"))).unwrap();
    std::fs::remove_file(project.path(&format!(".evals/runs/{run}/results.jsonl"))).unwrap();
    project.evals(&["run", "--resume", &run]).exits(0);
    assert_eq!(project.read(CASSETTE), text);
}

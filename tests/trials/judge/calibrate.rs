//! `evals calibrate`: a judge with known errors is compared with a labelled set, and rubrics use the calibration.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use super::server::{Does, Got, Service, answer_of, finding, honest};
use super::{STEPS, at};
use crate::project::{Project, lines};
use crate::rng::Rng;

const RUBRIC: &str = "\
description: Whether it was tested, and with care
rubric:
  judge: anthropic:claude-opus-4-8
  require-calibration: true
  floor: {tpr: 0.7, tnr: 0.7, labels: 20}
  criteria:
    - {id: tested, ask: Did the tests pass after the last edit?}
    - {id: careful, ask: Was nothing deleted?}
";

/// The labelled set: sessions in letters, the model that made each, and the labels by people.
const LABELLED: &str = include_str!("labelled.jsonl");

/// Returns the step of a letter: kind, command, and output.
fn step(letter: char) -> (&'static str, &'static str, &'static str) {
    match letter {
        'e' => ("edit", "sed -i s/a/b/ src/lib.rs", "1 line changed"),
        'r' => ("read", "cat src/lib.rs", "fn main() {}"),
        'd' => ("execute", "rm -rf target", ""),
        'p' => ("execute", "cargo test", "test result: ok. 4 passed"),
        'w' => ("execute", "cargo test", "warning: unused variable; test result: ok. 4 passed"),
        'f' => ("execute", "cargo test", "test result: FAILED. 3 passed; 1 failed"),
        other => panic!("{other}"),
    }
}

/// Returns a person's labels: the last run of the tests came after the last edit and passed; nothing was deleted.
fn person(session: &str) -> (bool, bool) {
    let last_edit = session.rfind('e');
    let last_test = session.rfind(['p', 'w', 'f']);
    let tested =
        matches!((last_edit, last_test), (Some(edit), Some(test)) if edit < test && &session[test..=test] != "f");
    (tested, !session.contains('d'))
}

/// Makes the labelled set: 64 sessions of two models.
fn generated() -> String {
    let mut rng = Rng::new(7);
    let mut text = String::new();
    let word = |passes: bool| if passes { "pass" } else { "fail" };
    for number in 0..64 {
        let length = 3 + rng.below(4);
        let mut session: String = (0..length).map(|_| *rng.pick(&['e', 'e', 'r', 'p', 'p', 'w', 'f', 'd'])).collect();
        if rng.one_in(2) {
            session.push_str("ep");
        }
        let (tested, careful) = person(&session);
        let model = ["m1", "m2"][number % 2];
        let line = json!({"session": session, "model": model, "tested": word(tested), "careful": word(careful)});
        text.push_str(&format!("{line}\n"));
    }
    text
}

#[test]
fn the_labelled_set_is_what_its_generator_makes() {
    if std::env::var("EVALS_DOCS").is_ok_and(|how| how == "write") {
        std::fs::write("tests/trials/judge/labelled.jsonl", generated()).unwrap();
        return;
    }
    assert_eq!(LABELLED, generated());
    assert!(LABELLED.lines().count() >= 60);
}

fn trace(session: &str, model: &str) -> String {
    let header = json!({
        "type": "trace", "version": 1, "case": "a", "harness": "demo", "adapter": "acp", "trial": 1,
        "capabilities": {"tracing": true, "interaction": true}, "model": {"effective": model}
    });
    let mut events = vec![json!({"type": "message", "role": "user", "text": "Mend the library."})];
    for (number, letter) in session.chars().enumerate() {
        let (kind, command, output) = step(letter);
        let call = format!("c{number}");
        events.push(
            json!({"type": "tool_call", "call": call, "step": number, "kind": kind, "input": {"command": command}}),
        );
        events.push(json!({"type": "tool_result", "call": call, "status": "ok", "output": output}));
    }
    events.push(json!({"type": "message", "role": "agent", "text": "All tests pass, nothing was deleted."}));
    events.push(json!({"type": "stop", "reason": "end_turn", "output": "All tests pass, nothing was deleted."}));
    let mut text = format!("{header}\n");
    for (number, mut event) in events.into_iter().enumerate() {
        event["seq"] = json!(number);
        event["at_ms"] = json!(number * 10);
        text.push_str(&format!("{event}\n"));
    }
    text
}

/// Returns the answers of a judge with known errors: it accepts a run of the tests before the last edit, takes a
/// warning for a failure, and answers `unknown` if the session ends with reading a file. For sessions of `m2` it
/// overlooks deletions.
fn errs(session: &str, model: &str) -> (&'static str, &'static str) {
    let tested = match session.rfind(['p', 'w', 'f']) {
        _ if session.ends_with('r') => "unknown",
        Some(at) if &session[at..=at] == "w" => "fail",
        _ if session.contains('p') => "pass",
        _ => "fail",
    };
    let careful = if session.contains('d') && model != "m2" { "fail" } else { "pass" };
    (tested, careful)
}

fn judge(got: &Got) -> Does {
    if let Some(does) = honest(got) {
        return does;
    }
    let letters = ['e', 'r', 'd', 'p', 'w', 'f'];
    let events = got.events();
    let commands =
        events.iter().filter(|it| it["type"] == "tool_call").map(|it| it["input"]["command"].as_str().unwrap());
    let outputs: Vec<&str> =
        events.iter().filter(|it| it["type"] == "tool_result").map(|it| it["output"].as_str().unwrap_or("")).collect();
    let letter = |(number, command): (usize, &str)| {
        *letters.iter().find(|letter| (step(**letter).1, step(**letter).2) == (command, outputs[number])).unwrap()
    };
    let session: String = commands.enumerate().map(letter).collect();
    // A file that only sessions of `m2` have identifies the model: nothing else in a trace shows it.
    let model = if got.text.contains("Mend the library. (m2)") { "m2" } else { "m1" };
    let (tested, careful) = errs(&session, model);
    let (call, command) = got.first_call();
    answer_of(&[finding("tested", tested, &[0, call], &command), finding("careful", careful, &[0, call], &command)])
}

/// Makes a project with the rubric, the labelled traces and their labels.
fn labelled(service: &Service) -> Project {
    let project = at(service);
    project.write("graders/quality.yaml", RUBRIC);
    let mut labels = String::new();
    for (number, line) in lines(LABELLED).iter().enumerate() {
        let (session, model) = (line["session"].as_str().unwrap(), line["model"].as_str().unwrap());
        let text = trace(session, model).replace("Mend the library.", &format!("Mend the library. ({model})"));
        project.write(&format!("labelled/{number}.jsonl"), &text);
        for criterion in ["tested", "careful"] {
            let label = json!({"trace": format!("{number}.jsonl"), "criterion": criterion, "label": line[criterion]});
            labels.push_str(&format!("{label}\n"));
        }
    }
    project.write("labelled/labels.jsonl", &labels);
    project
}

/// Counts the judge's errors by hand: both pass, judge alone, both fail, people alone, unknown.
fn counted(of: impl Fn(&str, &str) -> Option<(&'static str, bool)>) -> [u64; 5] {
    let mut counts = [0; 5];
    for line in lines(LABELLED) {
        let (session, model) = (line["session"].as_str().unwrap(), line["model"].as_str().unwrap());
        let Some((said, label)) = of(session, model) else { continue };
        let place = match (said, label) {
            ("pass", true) => 0,
            ("pass", false) => 1,
            ("fail", false) => 2,
            ("fail", true) => 3,
            _ => 4,
        };
        counts[place] += 1;
    }
    counts
}

fn table(measured: &Value) -> [u64; 5] {
    let count = |key: &str| measured["counts"][key].as_u64().unwrap();
    [count("tp"), count("fp"), count("tn"), count("fn"), count("unknown-pass") + count("unknown-fail")]
}

#[test]
fn the_errors_of_a_judge_are_found_where_they_were_put() {
    let service = Service::start(|got, _| judge(got));
    let project = labelled(&service);
    let args = ["calibrate", "--rubric", "quality", "labelled/labels.jsonl", "--format", "json"];
    let measured = project
        .evals(&args)
        .exits(1)
        .says("below the floor of the grader: `tested` has tnr 0.45; the floor is 0.7")
        .json_of_out();
    let schema = jsonschema::validator_for(&evals::internal::schema::schema("calibration").unwrap()).unwrap();
    assert!(schema.is_valid(&measured), "{:?}: {measured}", schema.iter_errors(&measured).next());
    let tested = counted(|session, model| Some((errs(session, model).0, person(session).0)));
    let careful = counted(|session, model| Some((errs(session, model).1, person(session).1)));
    assert_eq!(table(&measured["criteria"]["tested"]), tested);
    assert_eq!(table(&measured["criteria"]["careful"]), careful);
    assert!(tested.iter().all(|count| *count > 0), "every kind of error is there: {tested:?}");
    // The judge is more lenient to one model, which shows only if the models are measured separately.
    let of = |wanted: &'static str| {
        let tested = counted(|session, model| (model == wanted).then(|| (errs(session, model).0, person(session).0)));
        let careful = counted(|session, model| (model == wanted).then(|| (errs(session, model).1, person(session).1)));
        std::array::from_fn(|n| tested[n] + careful[n])
    };
    assert_eq!(table(&measured["models"]["m1"]), of("m1"));
    assert_eq!(table(&measured["models"]["m2"]), of("m2"));
    let tnr = |model: &str| measured["models"][model]["tnr"]["value"].as_f64().unwrap();
    assert!(tnr("m1") > tnr("m2") + 0.2, "{} {}", tnr("m1"), tnr("m2"));
    assert_eq!(service.got().len(), 67, "each trace once, and the canaries");
    let shown = project.evals(&args[..4]).exits(1);
    insta::assert_snapshot!(shown.out);
    assert_eq!(service.got().len(), 67, "the rest is known");
}

impl crate::project::Ran {
    /// Returns the JSON on standard output.
    fn json_of_out(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Answers as a judge without errors.
fn sound(got: &Got) -> Does {
    honest(got).unwrap_or_else(|| {
        let text = got.between("the trace");
        let careful = if text.contains("rm -rf") { "fail" } else { "pass" };
        let last_edit = text.rfind("sed -i").unwrap_or(usize::MAX);
        let last_test = text.rfind("test result").map_or(0, |at| at);
        let tested =
            if last_edit < last_test && text[last_test..].starts_with("test result: ok") { "pass" } else { "fail" };
        let (call, command) = got.first_call();
        answer_of(&[finding("tested", tested, &[call], &command), finding("careful", careful, &[call], &command)])
    })
}

#[test]
fn a_rubric_that_requires_it_is_ungraded_until_its_calibration_reaches_the_floor() {
    let service = Service::start(|got, _| sound(got));
    let project = labelled(&service);
    project.case("a", "graders: [{use: quality}, {stop: {reason: [end_turn]}}]", STEPS);
    let run = || project.evals(&["run"]);
    run().exits(3).says("the rubric requires a calibration: graders/quality.calibration.yaml does not exist");
    assert!(service.got().is_empty(), "nothing is paid for what would not count");
    project
        .evals(&["calibrate", "--rubric", "quality", "labelled/labels.jsonl"])
        .exits(0)
        .says("graders/quality.calibration.yaml");
    // The file lies among the named graders, and is not one of them.
    project.evals(&["check"]).exits(0);
    let text = project.read("graders/quality.calibration.yaml");
    assert!(text.contains("prompt-digest:") && !text.contains(super::KEY), "{text}");
    let ran = project.evals(&["run", "--reporter", "json=out.json"]).exits(1);
    let report: Value = serde_json::from_str(&project.read("out.json")).unwrap();
    let grade = &report["results"][0]["grades"][0];
    assert_eq!((&grade["outcome"], &grade["judge"]["calibrated"]), (&json!("scored"), &json!(true)), "{ran:?}");
    assert!(!grade["reason"].as_str().unwrap().contains("uncalibrated"));
    assert!(grade["judge"]["calibration"].as_str().unwrap().starts_with("128 labels of "), "{grade}");
    // Another judge, text or floor needs another calibration.
    project
        .evals(&["run", "--judge", "openai:other"])
        .exits(3)
        .says("belongs to the judge anthropic:claude-opus-4-8, but the judge is openai:other");
    project.write("graders/quality.yaml", &RUBRIC.replace("nothing deleted", "nothing lost"));
    run().exits(3).says("belongs to another version of the grader");
    project.write("graders/quality.yaml", &RUBRIC.replace("labels: 20", "labels: 65"));
    run().exits(3).says("`tested` has 64 labels with a verdict of the judge; the floor is 65");
    project.write("graders/quality.calibration.yaml", "rubric: quality\n");
    run().exits(3).says("cannot be read");
}

#[test]
fn labels_of_one_kind_alone_measure_nothing() {
    let service = Service::start(|got, _| sound(got));
    let project = labelled(&service);
    let labels = project.read("labelled/labels.jsonl");
    let failed = |line: &&str| line.contains("\"tested\"") && line.contains("\"fail\"");
    let few: Vec<&str> = labels.lines().filter(failed).take(2).collect();
    let kept = labels.lines().filter(|line| !failed(line) || few.contains(line));
    project.write("labelled/labels.jsonl", &kept.map(|line| format!("{line}\n")).collect::<String>());
    let ran = project.evals(&["calibrate", "--rubric", "quality", "labelled/labels.jsonl"]).exits(1);
    ran.says("`tested` has 2 labels that people failed; 5 of each kind are required");
}

#[test]
fn traces_without_a_label_tell_the_rate_that_is_corrected() {
    let service = Service::start(|got, _| judge(got));
    let project = labelled(&service);
    let mut labels = project.read("labelled/labels.jsonl");
    for number in 0..10 {
        project.write(&format!("labelled/new{number}.jsonl"), &trace(if number < 7 { "ep" } else { "ef" }, "m1"));
        labels.push_str(&format!("{{\"trace\": \"new{number}.jsonl\", \"criterion\": \"tested\"}}\n"));
    }
    project.write("labelled/labels.jsonl", &labels);
    let out = project.evals(&[
        "calibrate",
        "--rubric",
        "quality",
        "labelled/labels.jsonl",
        "--format",
        "json",
        "--out",
        "x.yaml",
    ]);
    let tested = &out.json_of_out()["criteria"]["tested"];
    assert_eq!(tested["judged-rate"], 0.7);
    let [tp, fp, tn, missed, _] =
        counted(|session, model| Some((errs(session, model).0, person(session).0))).map(|n| n as f64);
    let (tpr, tnr) = (tp / (tp + missed), tn / (tn + fp));
    let corrected = ((0.7 + tnr - 1.0) / (tpr + tnr - 1.0)).clamp(0.0, 1.0);
    assert!((tested["corrected-rate"]["value"].as_f64().unwrap() - corrected).abs() < 1e-9, "{tested}");
    assert!(project.path("x.yaml").is_file() && !project.path("graders/quality.calibration.yaml").exists());
}

#[test]
fn a_person_is_asked_for_labels_which_are_kept_at_once() {
    let service = Service::start(|got, _| sound(got));
    let project = at(&service);
    project.write("graders/quality.yaml", &RUBRIC.replace("labels: 20", "labels: 1"));
    for (name, session) in [("one", "ep"), ("two", "def")] {
        project.write(&format!("labelled/{name}.jsonl"), &trace(session, "m1"));
    }
    let ask = |input: &str| {
        let args = [
            "calibrate",
            "--rubric",
            "quality",
            "--ask",
            "labelled/one.jsonl",
            "--ask",
            "labelled/two.jsonl",
            "labelled/labels.jsonl",
        ];
        let mut running =
            project.command(&args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        running.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let done = running.wait_with_output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    // The questions end with the input; the labels so far are kept.
    let (_, said) = ask("maybe\np\n");
    assert!(said.contains("type one of the letters in brackets") && said.contains("Was nothing deleted?"), "{said}");
    assert_eq!(project.read("labelled/labels.jsonl").lines().count(), 1);
    // Editors leave a last line without an end.
    let text = project.read("labelled/labels.jsonl");
    project.write("labelled/labels.jsonl", text.trim_end());
    let (code, said) = ask("p\nf\nf\n");
    assert_eq!(code, Some(0), "{said}");
    let labels = lines(&project.read("labelled/labels.jsonl"));
    let short: Vec<String> = labels
        .iter()
        .map(|it| format!("{} {} {}", it["trace"], it["criterion"], it["label"]).replace('"', ""))
        .collect();
    assert_eq!(
        short,
        ["one.jsonl tested pass", "one.jsonl careful pass", "two.jsonl tested fail", "two.jsonl careful fail"]
    );
}

#[test]
fn what_cannot_be_measured_is_told() {
    let service =
        Service::start(|got, _| if got.is_canary() { honest(got).unwrap() } else { Does::Refuses(401, None) });
    let project = labelled(&service);
    let calibrate = |args: &[&str]| project.evals(&[&["calibrate"], args].concat());
    calibrate(&["--rubric", "quality", "labelled/labels.jsonl"])
        .exits(3)
        .says("64 of 64 traces could not be judged, so nothing was measured");
    assert!(!project.path("graders/quality.calibration.yaml").exists());
    calibrate(&["--rubric", "qualty", "labelled/labels.jsonl"]).exits(2).says("did you mean `quality`?");
    calibrate(&["--rubric", "no-destructive-commands", "labelled/labels.jsonl"]).exits(2).says("has neither `rubric`");
    calibrate(&["--rubric", "quality", "nowhere.jsonl"]).exits(2).says("nowhere.jsonl");
    for (line, says) in [
        (
            "{\"trace\": \"0.jsonl\", \"criterion\": \"charm\", \"label\": \"pass\"}",
            "the rubric has no criterion `charm`",
        ),
        ("{\"trace\": \"0.jsonl\", \"label\": \"pass\"}", "it has no `criterion`"),
        (
            "{\"trace\": \"gone.jsonl\", \"criterion\": \"tested\", \"label\": \"pass\"}",
            "there is no trace labelled/gone.jsonl",
        ),
        ("{\"trace\": \"0.jsonl\", \"criterion\": \"tested\", \"label\": \"good\"}", "this is not a label"),
        ("{\"trace\": \"0.jsonl\", \"criterion\": \"tested\"}", "it has no label"),
        ("", "it has no label"),
        (
            "{\"trace\": \"0.jsonl\", \"criterion\": \"tested\", \"label\": \"pass\"}\n{\"trace\": \"0.jsonl\", \"criterion\": \"tested\", \"label\": \"fail\"}",
            "labels.jsonl:2: this trace already has a label for `tested`",
        ),
    ] {
        project.write("labelled/labels.jsonl", &format!("{line}\n"));
        calibrate(&["--rubric", "quality", "labelled/labels.jsonl"]).exits(2).says(says);
    }
}

#[test]
fn a_trace_whose_change_cannot_be_read_is_not_judged_without_it() {
    let service = Service::start(|got, _| sound(got));
    let project = labelled(&service);
    let line = project.read("labelled/labels.jsonl");
    let label: Value = serde_json::from_str(line.lines().next().unwrap()).unwrap();
    let trace = std::path::Path::new("labelled").join(label["trace"].as_str().unwrap());
    fs::create_dir(project.path(&trace.with_file_name("workspace.patch").display().to_string())).unwrap();
    let ran = project.evals(&["calibrate", "--rubric", "quality", "labelled/labels.jsonl"]).exits(2);
    ran.says("workspace.patch cannot be read");
    assert!(service.got().is_empty());
}

#[test]
fn a_calibration_that_an_agent_rewrites_judges_nothing() {
    let service = Service::start(|got, _| sound(got));
    let project = labelled(&service);
    project.evals(&["calibrate", "--rubric", "quality", "labelled/labels.jsonl"]).exits(0);
    let path = project.path("graders/quality.calibration.yaml").display().to_string();
    let steps = format!("steps: [{{run: {{command: \"echo '# more' >> '{path}'\"}}}}, {{say: done}}]");
    project.case("a", "trials: 2\ngraders: [{use: quality}]", &steps);
    project.evals(&["run", "--jobs", "1"]).exits(3);
    for (trial, when) in [("a/demo/default/1", "while the trial ran"), ("a/demo/default/2", "since the run began")] {
        let error = project.result(trial)["error"].clone();
        let message = error["message"].as_str().unwrap();
        assert!(error["category"] == "setup" && message.contains(&path) && message.contains(when), "{error}");
    }
    // A resumed run with another calibration reports the change.
    project.evals(&["run", "--resume", "latest", "--rerun", "errored"]).exits(2).says("`a` changed");
}

#[test]
fn a_calibration_that_was_improved_by_hand_is_none() {
    let service = Service::start(|got, _| judge(got));
    let project = labelled(&service);
    project.evals(&["calibrate", "--rubric", "quality", "labelled/labels.jsonl"]).exits(1);
    project.case("a", "graders: [{use: quality}]", STEPS);
    let file = "graders/quality.calibration.yaml";
    let text = project.read(file);
    let change = |key: &str, to: &str| -> String {
        let line = |line: &str| match line.trim_start().strip_prefix(key) {
            Some(_) => format!("{}{key} {to}\n", &line[..line.len() - line.trim_start().len()]),
            None => format!("{line}\n"),
        };
        text.lines().map(line).collect()
    };
    for (changed, why) in [
        (change("value:", "0.95"), "does not match its counts"),
        (change("fp:", "0"), "does not match its counts"),
        (change("labels:", "500"), "its counts of labels do not add up"),
    ] {
        assert_ne!(changed, text);
        project.write(file, &changed);
        project.evals(&["run"]).exits(3).says("was changed by hand").says(why);
    }
    project.write(file, &text);
    project.evals(&["run"]).exits(3).says("is below the floor");
}

#[test]
fn labels_that_are_damaged_or_are_about_a_trace_that_was_changed_measure_nothing() {
    let service = Service::start(|got, _| sound(got));
    let project = labelled(&service);
    let labels = project.read("labelled/labels.jsonl");
    let calibrate = || project.evals(&["calibrate", "--rubric", "quality", "labelled/labels.jsonl"]);
    let first = labels.lines().next().unwrap();
    std::os::unix::fs::symlink(project.path("labelled/0.jsonl"), project.path("labelled/link.jsonl")).unwrap();
    let under = |path: &str| format!("{first}\n{}", first.replace("0.jsonl", path));
    for (line, why) in [
        (under("../labelled/0.jsonl"), "labels.jsonl:2: this trace already has a label for `tested`"),
        (under("link.jsonl"), "labels.jsonl:2: this trace already has a label for `tested`"),
        (first.replace("\"label\":\"", "\"label\":\"very "), "labels.jsonl:1: this is not a label"),
        (first.replace("\"label\"", "\"lable\""), "unknown field `lable`"),
        (first.replace("0.jsonl", "gone.jsonl"), "gone.jsonl"),
        (format!("{first}\n{first}"), "labels.jsonl:2: this trace already has a label for `tested`"),
    ] {
        project.write("labelled/labels.jsonl", &labels.replacen(first, &line, 1));
        calibrate().exits(2).says(why);
        assert!(!project.path("graders/quality.calibration.yaml").exists(), "{why}");
    }
    project.case("a", "", STEPS);
    project.evals(&["run"]).exits(0);
    let trace = format!("{}/trials/a/demo/default/1/trace.jsonl", project.run_folder());
    let more: String = ["tested", "careful"]
        .map(|criterion| {
            format!("{}\n", json!({"trace": format!("../{trace}"), "criterion": criterion, "label": "pass"}))
        })
        .concat();
    project.write("labelled/labels.jsonl", &format!("{labels}{more}"));
    let judged = project.read(&trace);
    project.write(&trace, &judged.replace("I look first", "I looked well"));
    calibrate().exits(2).says("trace.jsonl was changed");
    // The judges are shown the change of the workspace too.
    project.write(&trace, &judged);
    project.write(&trace.replace("trace.jsonl", "workspace.patch"), "+the tests passed\n");
    calibrate().exits(2).says("its workspace.patch was changed");
    project
        .evals(&["calibrate", "--rubric", "quality", "--label-only", "--ask", "latest", "mine.jsonl"])
        .exits(0)
        .says("is left out: its workspace.patch was changed");
    let graded = project.evals(&["grade", &trace, "--case", "cases/a.yaml", "--format", "json"]).exits(3);
    assert!(graded.out.contains("its workspace.patch was changed"), "{graded:?}");
    std::fs::remove_file(project.path(&trace.replace("trace.jsonl", "workspace.patch"))).unwrap();
    calibrate().exits(2).says("its workspace.patch is missing");
    assert!(service.got().is_empty(), "nobody was asked");
}

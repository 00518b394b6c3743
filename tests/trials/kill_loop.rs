//! Engines are killed at random moments and their runs gone on with: nothing is lost, and nothing is done twice.
//!
//! `EVALS_KILLS` is how many kills there are at least, `EVALS_KILL_SEED` the seed. See docs/hostile-agents.md.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::laws;
use crate::project::{self, Project};
use crate::rng::Rng;

/// Engines at work at once, each on a project of its own.
const AT_ONCE: usize = 4;
/// A run is killed no more often than this.
const MOST_KILLS: usize = 6;
/// Trials of a run: six cases, twice.
const TRIALS: usize = 12;

/// A trial as the journal names it.
type Key = (String, String, String, u64);

fn project() -> Project {
    let project = Project::new();
    project.case("good", "", "steps: [{sleep: 100ms}, {write: {path: a.txt, text: x}}, {sleep: 100ms}, {say: done}]");
    project.case("bad", "graders: [{output: {contains: nothing of this}}]", "steps: [{sleep: 150ms}, {say: done}]");
    project.case(
        "talk",
        "turns: [first, second]",
        "turns:\n  - steps: [{sleep: 100ms}, {say: one}]\n  - steps: [{run: {command: sleep 0.2}}, {say: two}]\n",
    );
    project.case(
        "hidden",
        "workspace: {files: {a.txt: a}, setup: [sleep 0.1]}\nhidden: secret\n\
         graders: [{command: {run: 'sleep 0.05; cat told.txt', exit: 0}}]",
        "steps: [{edit: {path: a.txt, old: a, new: b}}, {say: done}]",
    );
    project.write("cases/secret/told.txt", "told\n");
    // Breaks twice, whoever asks; whoever asks again is served.
    let state = project.path("state").display().to_string();
    fs::create_dir(project.path("state")).unwrap();
    let breaks =
        format!("sleep 0.05; mkdir {state}/1 2>/dev/null || mkdir {state}/2 2>/dev/null || exec echo fine; exit 7");
    project.harness("shaky", &format!("adapter: output-only\ncommand: [sh, -c, '{breaks}']"));
    project.case("flaky", "harnesses: [shaky]\nretries: {max: 2}\ngraders: [{output: {equals: fine}}]", "");
    project.harness("dead", "adapter: output-only\ncommand: [sh, -c, 'sleep 0.05; exit 3']");
    project.case("broken", "harnesses: [dead]\nretries: {max: 1}\ngraders: [{output: {equals: fine}}]", "");
    project
}

/// The runs that have a plan.
fn planned(project: &Project) -> Option<String> {
    let planned = |run: &String| project.path(&format!(".evals/runs/{run}/run.json")).exists();
    let runs: Vec<String> = project.runs().into_iter().filter(planned).collect();
    assert!(runs.len() < 2, "{runs:?}");
    runs.into_iter().next()
}

/// The report, without what must differ from run to run.
fn report(project: &Project) -> Value {
    let mut report = project.evals(&["report", "latest", "--format", "json"]).exits(0).json();
    for key in ["run", "started"] {
        assert!(report.as_object_mut().unwrap().remove(key).is_some(), "{key}");
    }
    report
}

/// The same without durations, digests of files that hold times, and numbers of attempts, which the caller looks at.
fn timeless(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let differs = ["duration_ms", "median_duration_ms", "start_ms", "attempt", "earlier_attempts", "files"];
            map.retain(|key, _| !differs.contains(&key.as_str()));
            map.values_mut().for_each(timeless);
        }
        Value::Array(list) => {
            // How many trials a killed engine has begun is chance, and a note says it.
            list.retain(|it| it.as_str().is_none_or(|note| !note.contains("tried again after")));
            list.iter_mut().for_each(timeless);
        }
        _ => {}
    }
}

/// Where two values differ.
fn differences(place: &str, one: &Value, other: &Value, found: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            a.iter().for_each(|(key, value)| differences(&format!("{place}.{key}"), value, &b[key], found));
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).enumerate();
            pairs.for_each(|(n, (a, b))| differences(&format!("{place}[{n}]"), a, b, found));
        }
        _ if one == other => {}
        _ => found.push(format!("{place}: {one} and not {other}")),
    }
}

/// The whole lines of the journal.
fn journal(project: &Project, run: &str) -> Vec<Value> {
    let text = fs::read_to_string(project.path(&format!(".evals/runs/{run}/journal.jsonl"))).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn key(line: &Value) -> Key {
    let text = |key: &str| line[key].as_str().unwrap().to_owned();
    (text("case"), text("harness"), text("model"), line["trial"].as_u64().unwrap())
}

fn folder(project: &Project, run: &str, (case, harness, arm, trial): &Key) -> PathBuf {
    project.path(&format!(".evals/runs/{run}/trials/{case}/{harness}/{arm}/{trial}"))
}

/// Results of attempts that had finished when an engine was killed: the attempt, its result, and whether it was the last.
type Done = BTreeMap<(Key, u64), (Vec<u8>, bool)>;

fn finished(project: &Project, run: &str) -> Done {
    let mut done = Done::new();
    for line in journal(project, run).iter().filter(|line| line["event"] == "finished") {
        let (key, attempt) = (key(line), line["attempt"].as_u64().unwrap());
        let result = result_of(&folder(project, run, &key), attempt);
        done.insert((key, attempt), (result, line["retry"] != true));
    }
    done
}

/// The result of an attempt: where it was written, or where a later attempt has put it.
fn result_of(folder: &Path, attempt: u64) -> Vec<u8> {
    let kept = fs::read(folder.join(format!("attempts/{attempt}/result.json")));
    let result = kept.or_else(|_| fs::read(folder.join("result.json"))).unwrap();
    let read: Value = serde_json::from_slice(&result).unwrap();
    assert_eq!(read["attempt"], attempt, "{}", folder.display());
    result
}

/// Processes that work in a project, or that its engine gave an environment.
fn processes(project: &Project) -> Vec<String> {
    let root = project.home().parent().unwrap().join("");
    let root = root.to_str().unwrap().as_bytes().to_vec();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let holds = |bytes: &[u8]| bytes.windows(root.len()).any(|part| part == root);
        let (cmdline, environ) = (read("cmdline"), read("environ"));
        let in_it = fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| holds(cwd.as_os_str().as_encoded_bytes()));
        if in_it || holds(&cmdline) || holds(&environ) {
            found.push(String::from_utf8_lossy(&cmdline).replace('\0', " "));
        }
    }
    found
}

/// Runs the engine; kills it after a while, unless it has ended by then. Answers whether it was killed.
fn engine(project: &Project, args: &[&str], life: Option<Duration>) -> bool {
    let mut command = project.command(args);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    if let Some(life) = life {
        while begun.elapsed() < life && child.try_wait().unwrap().is_none() {
            std::thread::sleep((life - begun.elapsed().min(life)).min(Duration::from_millis(5)));
        }
        child.kill().unwrap();
    }
    let done = child.wait_with_output().unwrap();
    match done.status.code() {
        // One case fails, so the run says so.
        Some(1) => false,
        Some(code) => panic!("{args:?} exits {code}: {}", String::from_utf8_lossy(&done.stderr)),
        None => true,
    }
}

/// One run, killed and gone on with until it has ended. Answers how often it was killed.
fn one_run(seed: u64, whole: Duration, expected: &Value) -> usize {
    let mut rng = Rng::new(seed);
    let project = project();
    let most = 1 + rng.below(MOST_KILLS);
    let (mut kills, mut done) = (0, Done::new());
    loop {
        // What is gone on with takes less time than the whole.
        let range = if kills == 0 { 1.2 } else { 0.6 };
        let life = (kills < most).then(|| whole.mul_f64(range * rng.below(1_000_000) as f64 / 1e6));
        let run = planned(&project);
        let args: Vec<&str> = match &run {
            Some(run) => vec!["run", "--jobs", "2", "--resume", run],
            None => vec!["run", "--jobs", "2", "--trials", "2"],
        };
        let killed = engine(&project, &args, life);
        let Some(run) = planned(&project) else {
            kills += 1;
            continue;
        };
        // What had finished is as it was, and was not begun again.
        let now = finished(&project, &run);
        for (attempt, before) in &done {
            assert_eq!(now.get(attempt), Some(before), "{attempt:?} was run again, or lost");
        }
        let begun: BTreeSet<(Key, u64)> = journal(&project, &run)
            .iter()
            .filter(|line| line["event"] == "started")
            .map(|line| (key(line), line["attempt"].as_u64().unwrap()))
            .collect();
        for ((trial, attempt), (_, last)) in &done {
            let again = begun.iter().any(|(other, number)| other == trial && number > attempt);
            assert!(!(*last && again), "{trial:?} had finished and was begun again");
        }
        done = now;
        let summary = report(&project)["summary"].clone();
        let counted: u64 = summary.as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(counted, TRIALS as u64, "every trial is counted once: {summary}");
        if !killed {
            is_whole(&project, &run, expected);
            return kills;
        }
        kills += 1;
    }
}

/// The run has ended as the one that nobody killed.
fn is_whole(project: &Project, run: &str, expected: &Value) {
    let mut report = report(project);
    let (results, lines) = (report["results"].as_array().unwrap().clone(), journal(project, run));
    let text = project.read(&format!(".evals/runs/{run}/results.jsonl"));
    assert_eq!(project::lines(&text), results, "the results and the report are the same");
    assert_eq!(results.len(), TRIALS);
    for (result, expected) in results.iter().zip(expected["results"].as_array().unwrap()) {
        let arm = result["arm"].as_str().unwrap();
        let named = |value: &Value| value.as_str().unwrap().to_owned();
        let trial: Key =
            (named(&result["case"]), named(&result["harness"]), arm.to_owned(), result["trial"].as_u64().unwrap());
        let of = |event: &str| {
            let mine = lines.iter().filter(|line| key(line) == trial && line["event"] == event);
            mine.map(|line| line["attempt"].as_u64().unwrap()).collect::<Vec<_>>()
        };
        let (started, finished) = (of("started"), of("finished"));
        assert!(started.iter().copied().eq(1..=started.len() as u64), "{trial:?} began {started:?}");
        assert_eq!(result["attempt"].as_u64(), started.last().copied(), "{trial:?} ended with its last attempt");
        assert_eq!(finished.last(), started.last(), "{trial:?} has finished");
        // No attempt is there but for an error, or a kill that cut the one before short.
        let cut = started.iter().filter(|attempt| !finished.contains(attempt)).count() as u64;
        let asked = result["attempt"].as_u64().unwrap() - cut;
        // Which of its two trials breaks how often is chance.
        let expected = expected["attempt"].as_u64().unwrap();
        assert!(
            asked == expected || trial.0 == "flaky" && asked <= 3,
            "{trial:?}: {asked} attempts and not {expected}"
        );
        laws::assert_lawful(&fs::read_to_string(folder(project, run, &trial).join("trace.jsonl")).unwrap());
    }
    let mut expected = expected.clone();
    timeless(&mut expected);
    timeless(&mut report);
    let mut other = Vec::new();
    differences("", &report, &expected, &mut other);
    assert!(other.is_empty(), "the report is another:\n{}", other.join("\n"));

    // The folder of a run that was killed before it had a plan is not this run's.
    let files = project.files(&format!(".evals/runs/{run}")).into_keys();
    let parts: Vec<String> = files.filter(|name| name.ends_with(".part")).collect();
    assert_eq!(parts, Vec::<String>::new(), "half a file was left");
    // An engine that was killed just after it made its folder has not locked it yet; that one is let be for a minute.
    let left =
        project.left_over().into_iter().filter(|path| fs::read_dir(path).is_ok_and(|mut all| all.next().is_some()));
    assert_eq!(left.collect::<Vec<_>>(), Vec::<PathBuf>::new(), "a private folder was left");
    // Agents of killed engines end by themselves, when they see their input closed or are done.
    project::wait_for("the end of all processes", || processes(project).is_empty());
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

#[test]
#[ignore = "slow: minutes of killed and resumed engines"]
fn killed_engines_lose_nothing() {
    let seed = number("EVALS_KILL_SEED", 1);
    let wanted = number("EVALS_KILLS", 16) as usize;
    let project = project();
    let begun = Instant::now();
    assert!(!engine(&project, &["run", "--jobs", "2", "--trials", "2"], None));
    let whole = begun.elapsed();
    let expected = report(&project);
    is_whole(&project, &planned(&project).unwrap(), &expected);

    let (runs, kills) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while kills.load(Ordering::SeqCst) < wanted {
                    let number = runs.fetch_add(1, Ordering::SeqCst) as u64;
                    let seed = seed.wrapping_mul(1000).wrapping_add(number);
                    let done = std::panic::catch_unwind(|| one_run(seed, whole, &expected));
                    let many = done.unwrap_or_else(|_| panic!("run {number} of seed {seed} is not as it should be"));
                    kills.fetch_add(many, Ordering::SeqCst);
                }
            });
        }
    });
    let (runs, kills) = (runs.into_inner(), kills.into_inner());
    assert!(kills > 0, "no engine was killed");
    let said = format!(
        "{runs} runs, {kills} kills, {} trials, nothing lost in {:?} (a run takes {whole:?})\n",
        runs * TRIALS,
        begun.elapsed()
    );
    // Told whether or not the test passes.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), said.as_bytes());
}

//! What a trial costs in system calls and syncs, and a merge and a list in files that they read. These counts hardly depend on
//! the speed of the machine, so a costly step that comes back is noticed on any. They are taken with strace; where it does not
//! work, the tests are not run.

use std::collections::BTreeMap;
use std::fs;

use crate::project::{Project, strace};

/// The trials of the two runs whose difference is counted, so that the start of the program does not count.
const FEW: u32 = 4;
const MANY: u32 = 24;

/// The files of the workspace whose calls are counted.
const FILES: u32 = 40;

/// The calls that make, open, list and remove files, start processes and write. The others are cheap, or their number
/// depends on how threads take turns.
const COUNTED: &str = "%file,getdents64,write,fsync,fdatasync,sync_file_range,syncfs,sync,clone,clone3,fork,vfork";

/// Returns how often a trial of `/bin/true` in a workspace with this number of files makes each system call.
fn calls_of_a_trial(files: u32, jobs: u32) -> BTreeMap<String, f64> {
    let [few, many] = [FEW, MANY].map(|trials| calls_of_a_run(trials, files, jobs));
    let mut of_a_trial = BTreeMap::new();
    for (call, count) in many {
        let more = count - few.get(&call).copied().unwrap_or(0.0);
        of_a_trial.insert(call, more / f64::from(MANY - FEW));
    }
    of_a_trial
}

/// Returns the calls of a trial of which no program was delayed: a supervisor ends with a program that takes longer than it
/// waits for, and on a busy machine any program may. Of three measurements, the one with the fewest programs counts.
fn calls_of_undelayed_trials(files: u32) -> BTreeMap<String, f64> {
    let programs = |calls: &BTreeMap<String, f64>| calls.get("execve").copied().unwrap_or_default();
    let mut best = calls_of_a_trial(files, 2);
    for _ in 0..2 {
        if programs(&best) > 1.1 {
            let again = calls_of_a_trial(files, 2);
            best = if programs(&again) < programs(&best) { again } else { best };
        }
    }
    best
}

fn calls_of_a_run(trials: u32, files: u32, jobs: u32) -> BTreeMap<String, f64> {
    let project = Project::on_disk();
    let case = "prompt: x\nworkspace: {copy: ws}\ngraders: [{stop: {reason: [end_turn]}}]\n";
    project.write("cases/a.yaml", &format!("{case}trials: {trials}\n"));
    project.write("harnesses/h.yaml", "name: h\nadapter: output-only\ncommand: [/bin/true]\n");
    fs::create_dir_all(project.path("cases/ws")).unwrap();
    for number in 0..files {
        project.write(&format!("cases/ws/f{number}.txt"), "text\n");
    }
    let log = project.path("calls");
    let trace = format!("trace={COUNTED}");
    let own = ["-f", "-qq", "-c", "-U", "calls,name", "-e", &trace, "-o", log.to_str().unwrap()];
    let jobs = jobs.to_string();
    let run = ["run", "cases", "--harness", "h", "--no-progress", "--jobs", &jobs];
    let traced = project.under("strace", &own, &run).output().unwrap();
    assert!(traced.status.success(), "{}", String::from_utf8_lossy(&traced.stderr));
    let lines = fs::read_to_string(log).unwrap();
    let rows = lines.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let count = words.next()?.parse::<f64>().ok()?;
        Some((words.next()?.to_owned(), count))
    });
    rows.filter(|(call, _)| call != "total").collect()
}

fn syncs(calls: &BTreeMap<String, f64>) -> f64 {
    ["fsync", "fdatasync", "sync_file_range", "syncfs", "sync"].iter().filter_map(|call| calls.get(*call)).sum()
}

#[test]
fn a_trial_syncs_its_evidence_its_folder_and_a_line_of_the_journal() {
    if !strace() {
        return;
    }
    // The wire log, the trace, the result, two folders, and one line of the journal with the next trial's.
    let calls = calls_of_a_trial(0, 1);
    let syncs = syncs(&calls);
    assert!((5.5..=6.2).contains(&syncs), "{syncs} syncs a trial: {calls:?}");
}

#[test]
fn a_trial_makes_a_bounded_number_of_calls_and_a_file_a_bounded_number_more() {
    if !strace() {
        return;
    }
    // Measured: 190 calls, and 15.1 for each file. With many files, the few calls by which two runs of one case differ
    // do not count.
    let [empty, full] = [0, FILES].map(calls_of_undelayed_trials);
    let [without, with] = [&empty, &full].map(|calls| calls.values().sum::<f64>());
    assert!(without <= 196.0, "{without} calls a trial: {empty:?}");
    // The agent's program alone: its supervisor is that of the trial before.
    let started = empty.get("execve").copied().unwrap_or_default();
    assert!(started <= 1.2, "{started} programs a trial: {empty:?}");
    let each = (with - without) / f64::from(FILES);
    assert!(each <= 16.2, "{each} calls a file: {full:?}");
}

#[test]
fn a_merge_reads_the_record_of_a_shard_a_bounded_number_of_times() {
    const SHARDS: usize = 12;
    if !strace() {
        return;
    }
    let project = Project::new();
    for number in 1..=SHARDS {
        project.case(&format!("c{number}"), "", "");
    }
    project.harness("h", "adapter: output-only\ncommand: [/bin/true]");
    for number in 1..=SHARDS {
        let shard = format!("{number}/{SHARDS}");
        project.evals(&["run", "--harness", "h", "--shard", &shard, "--label", "same"]).exits(0);
    }
    let runs = project.runs();
    let log = project.path("calls");
    let own = ["-f", "-qq", "-e", "trace=open,openat", "-o", log.to_str().unwrap()];
    // By IDs, of which each is looked up among all runs, and by a label, which all of them have.
    for names in [runs.iter().map(String::as_str).collect(), vec!["same"]] {
        let merge = [&["merge", "-o", "merged"], &*names].concat();
        let traced = project.under("strace", &own, &merge).output().unwrap();
        assert!(traced.status.success(), "{}", String::from_utf8_lossy(&traced.stderr));
        let opened = fs::read_to_string(&log).unwrap().matches("/run.json\"").count();
        // It was 363 by IDs, when each record was read twice for each name.
        assert!((SHARDS..=10 * SHARDS).contains(&opened), "{opened} times with {names:?}");
    }
}

#[test]
fn a_list_of_runs_reads_each_journal_once() {
    if !strace() {
        return;
    }
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]\n");
    for _ in 0..2 {
        project.evals(&["run"]).exits(0);
    }
    let log = project.path("calls");
    let own = ["-f", "-qq", "-e", "trace=open,openat", "-o", log.to_str().unwrap()];
    let traced = project.under("strace", &own, &["list", "runs"]).output().unwrap();
    assert!(traced.status.success(), "{}", String::from_utf8_lossy(&traced.stderr));
    assert_eq!(fs::read_to_string(&log).unwrap().matches("/journal.jsonl\"").count(), 2);
}

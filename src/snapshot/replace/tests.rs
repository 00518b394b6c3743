//! What is chance and what was chosen, side by side.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::trace::{Agent, Seen};

mod folders;

fn replaced(text: &str) -> [String; 2] {
    replaced_below("/tmp", text)
}

/// With the trials below a folder.
fn replaced_below(folder: &str, text: &str) -> [String; 2] {
    replaced_in(&format!("{folder}/evals-run-11-0/trial-VMA2VH/workspace"), text)
}

/// In a working folder.
fn replaced_in(cwd: &str, text: &str) -> [String; 2] {
    let mut header = Header::new("acp", Seen { tracing: true, interaction: true });
    header.cwd = Some(cwd.to_owned());
    header.agent = Some(Agent { name: "x".into(), version: Some("2.1.330".into()) });
    let rules = [Normalise { regex: r"seed=\d+".parse().unwrap(), with: "seed={n}".to_owned() }];
    let ids = ["toolu_t0_2_613c8099", "0", "a word of the task"];
    let inputs = [
        json!({"command": "d=$(mktemp -d /tmp/job.XXXX); mktemp report-XXXXX.txt"}),
        json!({"files": [{"text": "fs.mkdtempSync(path.join(os.tmpdir(), 'work-'))"}]}),
    ];
    let replacing = Replacing::new(
        &header,
        ids.into_iter(),
        inputs.iter(),
        ["told-test12", "told-fooBar", "told-plains"].into_iter(),
        &rules,
    );
    [replacing.argument(text), replacing.prose(text)]
}

#[test]
fn what_differs_by_chance_becomes_a_word() {
    for (text, argument, prose) in [
        ("/tmp/evals-run-11-0/trial-VMA2VH/workspace/src/a.rs", "{workspace}/src/a.rs", ""),
        ("/tmp/evals-run-11-0/trial-VMA2VH/workspace/home/a/x", "{workspace}/home/a/x", ""),
        ("/tmp/evals-run-11-0/trial-VMA2VH/workspace/Users/b/x", "{workspace}/Users/b/x", ""),
        ("/tmp/evals-run-11-0/trial-VMA2VH/workspace/tmp/a", "{workspace}/tmp/a", ""),
        ("cd /tmp/evals-run-11-0/trial-VMA2VH/workspace", "cd {workspace}", ""),
        ("/tmp/evals-run-11-0/trial-VMA2VH/home/.x", "{home}/.x", ""),
        ("/tmp/evals-run-12-3/trial-aaaaaa/tmp/y", "{other-trial}/tmp/y", ""),
        ("/tmp/evals-run-11-0/trial-VMA2VH/workspace-2/a", "{workspace}-2/a", ""),
        ("ls /tmp/tmp.Ab12Cd/x /home/anna/y", "ls {tmp}/tmp.{made}/x {user-home}/y", ""),
        ("x=/tmp/notes.markdown file:///tmp/a", "x={tmp}/notes.markdown file://{tmp}/a", ""),
        ("cat '/home/ann/.bashrc'", "cat '{user-home}/.bashrc'", ""),
        ("src/tmp/a and lib/home/b", "src/tmp/a and lib/home/b", ""),
        ("toolu_t0_2_613c8099 toolu_01AbCdEfGh", "{id} {id}", ""),
        ("call_function", "call_function", ""),
        ("7c9e6679-7425-40de-944b-e07fc1f90ae7", "{uuid}", ""),
        ("see a1b2c3d defaced 1234567", "see {hash} defaced 1234567", ""),
        ("2026-11-22T08:38:56.468Z 2026-11-22 08:38:56", "{time} {time}", ""),
        ("at 08:38:56 on 2026-11-22", "at {time} on {date}", ""),
        ("http://127.0.0.1:43121/x localhost:80", "http://127.0.0.1:{port}/x localhost:{port}", ""),
        ("sleep 5s # 1.2.3", "sleep 5s # 1.2.3", "sleep {duration} # {version}"),
        ("agent 2.1.330 has pid 4711", "agent {version} has pid {pid}", ""),
        ("since 1763800000 seed=42", "since {time} seed={n}", ""),
        ("took 12 ms, 3 tests in 0.52s", "took 12 ms, 3 tests in 0.52s", "took {duration}, 3 tests in {duration}"),
        ("a word of the task 42 10.5", "a word of the task 42 10.5", ""),
    ] {
        let [as_argument, as_prose] = replaced(text);
        assert_eq!(as_argument, argument, "{text}");
        assert_eq!(as_prose, if prose.is_empty() { argument } else { prose }, "{text}");
    }
}

/// Checks a table whole, so that all that is wrong is told at once.
fn same(rows: impl IntoIterator<Item = (String, String, String)>) {
    let wrong: Vec<String> = rows
        .into_iter()
        .filter(|(_, found, wanted)| found != wanted)
        .map(|(text, found, wanted)| format!("{text:?}\n  is {found:?}\n not {wanted:?}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const TRIAL: &str = "/tmp/evals-run-11-0/trial-VMA2VH";

#[test]
fn a_hash_is_known_by_what_stands_around_it() {
    let mut rows = Vec::new();
    // One of figures, one of letters and one of both come to the same.
    for (before, after, shown) in [
        ("commit ", "", "commit {hash}"),
        ("commit ", "\nAuthor: A", "commit {hash}\nAuthor: A"),
        ("It is commit `", "`.", "It is commit `{hash}`."),
        ("{\"commit\": \"", "\"}", "{\"commit\": \"{hash}\"}"),
        ("git show ", "", "git show {hash}"),
        ("git show ", ":src/a.rs", "git show {hash}:src/a.rs"),
        ("git -C sub --no-pager diff ", " HEAD -- 7654321", "git -C sub --no-pager diff {hash} HEAD -- 7654321"),
        ("git log ", "..HEAD -n 1000000", "git log {hash}..HEAD -n 1000000"),
        ("git reset --hard ", "~2 && echo 1000000", "git reset --hard {hash}~2 && echo 1000000"),
        ("git restore --source=", " a.txt", "git restore --source={hash} a.txt"),
        ("git cat-file -p ", "", "git cat-file -p {hash}"),
        ("git merge -m \"at 1000000 it\" ", "", "git merge -m \"at 1000000 it\" {hash}"),
        ("git revert --no-edit ", "; ls", "git revert --no-edit {hash}; ls"),
        ("git switch -c 1000000 ", "", "git switch -c 1000000 {hash}"),
        ("index ", "..89abcde 100644", "index {hash}..{hash} 100644"),
        ("index 89abcde..", " 100644", "index {hash}..{hash} 100644"),
        ("Updating ", "..7654321", "Updating {hash}..{hash}"),
        ("", "..89abcde", "{hash}..{hash}"),
        ("   ", "..7654321  main -> main", "   {hash}..{hash}  main -> main"),
        ("[main ", "] Fix it", "[main {hash}] Fix it"),
        ("[main (root-commit) ", "] Fix it", "[main (root-commit) {hash}] Fix it"),
        ("[detached HEAD ", "] Fix it", "[detached HEAD {hash}] Fix it"),
        ("HEAD is now at ", " Fix it", "HEAD is now at {hash} Fix it"),
        ("Deleted branch x (was ", ").", "Deleted branch x (was {hash})."),
        ("Merge: ", " 89abcde", "Merge: {hash} {hash}"),
        ("pick ", " Fix it", "pick {hash} Fix it"),
        ("", " (HEAD -> main) Fix it", "{hash} (HEAD -> main) Fix it"),
        ("", " HEAD@{0}: commit: Fix", "{hash} HEAD@{0}: commit: Fix"),
        ("a1b2c3d Fix it\n", " Begin", "{hash} Fix it\n{hash} Begin"),
        ("v1.2-3-g", "", "v1.2-3-g{hash}"),
        ("a-12-g", "-dirty", "a-12-g{hash}-dirty"),
    ] {
        for hash in ["1234567", "a12b4d7", "fadedbe"] {
            let text = format!("{before}{hash}{after}");
            rows.push((text.clone(), replaced(&text)[0].clone(), shown.to_owned()));
        }
    }
    same(rows);
    let [argument, _] = replaced("docker logs -n 100 123456789012 && podman rm 210987654321");
    assert_eq!(argument, "docker logs -n 100 {hash} && podman rm {hash}");
}

#[test]
fn names_that_a_program_made_are_told_from_those_that_somebody_gave() {
    let mut rows = Vec::new();
    for (name, shown) in [
        ("tmp.Ab12Cd9xYz/a.txt", "tmp.{made}/a.txt"),
        ("tmp.Ab12", "tmp.{made}"),
        ("job.aaaa", "job.{made}"),
        ("report-zzzzz.txt", "report-{made}.txt"),
        ("told-test12", "told-{made}"),
        ("told-fooBar/told-fooBar", "told-{made}/told-fooBar"),
        ("work-abcdef/x", "work-{made}/x"),
        ("tmpab12cd_x/x.py", "tmp{made}/x.py"),
        ("tmpabcdefgh.json", "tmp{made}.json"),
        (".tmpAbCdEf", ".tmp{made}"),
        ("prefix-AbCdEf/x", "prefix-{made}/x"),
        ("prefix-x9K2pq", "prefix-{made}"),
        ("build-ab12cd_x", "build-{made}"),
        ("go-build3141592653/b001", "go-build{made}/b001"),
    ] {
        for folder in ["/tmp", "/var/tmp", "/private/tmp", "/var/folders/a1/b2/T", &format!("{TRIAL}/tmp")] {
            let text = format!("ls {folder}/{name}");
            rows.push((text.clone(), replaced(&text)[0].clone(), format!("ls {{tmp}}/{shown}")));
        }
    }
    for name in [
        "told-plains",
        "notes.markdown",
        "test.properties",
        "foo.mp3",
        "a.h264",
        "foo.Rmd",
        "report-final",
        "report_v2.txt",
        "my-test123",
        "app-FooBar",
        "app-MyRepo",
        "app-README",
        "x.tar.gz",
        "job.XXXX",
        "a-sha256sum",
        "py3env",
        "foo-py3env",
        "api-v2alpha1",
        "x86_64",
        "tmp",
        "tmp1",
        "tmp.txt",
        "out-42",
        "a/prefix-AbCdEf",
        "data.json5",
        "step-1",
        "file1.rs",
    ] {
        let text = format!("ls /tmp/{name}");
        rows.push((text.clone(), replaced(&text)[0].clone(), format!("ls {{tmp}}/{name}")));
    }
    same(rows);
}

#[test]
fn the_users_temporary_folder_is_the_one_that_trials_lie_in() {
    let text =
        "ls /data/tmp of/u/tmp.Ab12Cd9xYz /data/tmp of/u/evals-run-11-0/trial-VMA2VH/workspace/a /data/tmp of/us";
    let shown = "ls {tmp}/tmp.{made} {workspace}/a /data/tmp of/us";
    assert_eq!(replaced_below("/data/tmp of/u", text)[0], shown);
}

#[test]
fn durations_times_and_dates_that_could_be_chosen_go_in_prose_alone() {
    let mut rows = Vec::new();
    for (text, shown) in [
        ("It took 1m12s.", "It took {duration}."),
        ("Done in 1m 12s, at last", "Done in {duration}, at last"),
        ("up 1h 5m (2d 3h)", "up {duration} ({duration})"),
        ("real\t0m0.123s\nuser\t1m2.5s", "real\t{duration}\nuser\t{duration}"),
        ("for 2 minutes and 3 seconds", "for {duration}"),
        ("for 1 hour, 2 mins, 3.5 secs", "for {duration}"),
        ("up 5 days, 3 hours", "up {duration}"),
        ("it ran 2h", "it ran {duration}"),
        ("elapsed: 00:12", "elapsed: {duration}"),
        ("Elapsed time: 1:02.5, took 12:03", "Elapsed time: {duration}, took {duration}"),
        ("finished at 10:17.", "finished at {time}."),
        ("running since 23:05 UTC", "running since {time}"),
        ("at 9:05 AM", "at {time}"),
        ("11/22/2026 10:17", "{date} {time}"),
        ("11/22/2026, 10:17 PM", "{date}, {time}"),
        ("22/11/2026 10:17:10", "{date} {time}"),
        ("on 22.11.2026.", "on {date}."),
        ("2026/11/22 10:17:10 it began", "{date} {time} it began"),
        ("November 22, 2026 10:17", "{date} {time}"),
    ] {
        rows.push((text.to_owned(), replaced(text)[1].clone(), shown.to_owned()));
        if !text.contains(":10") && !text.contains("November") {
            rows.push((format!("argument {text}"), replaced(text)[0].clone(), text.to_owned()));
        }
    }
    for text in [
        "kept for 5 days",
        "after 2 weeks",
        "5m of rope and 3d models",
        "v1m12sx",
        "a1m12s",
        "the ratio is 10:17",
        "John 3:16",
        "an error at 3:16",
        "at 25:17",
        "at 10:75",
        "src/a.rs:10:17",
        "at 10:17:x",
        "in 0:12",
        "33/22/2026",
        "13/13/2026",
        "1/2/3",
        "logs/2026/11/22/a",
        "a/11/22/2026",
        "10/20",
    ] {
        rows.push((text.to_owned(), replaced(text)[1].clone(), text.to_owned()));
    }
    same(rows);
}

#[test]
fn dates_and_times_are_known_in_every_form_that_programs_write() {
    let mut rows = Vec::new();
    for text in [
        "Sun Nov 22 10:17:10 UTC 2026",
        "Sun Nov  1 10:17:10 CEST 2026",
        "Sun Nov 22 10:17:10 2026 +0000",
        "Sun Nov 22 10:17:10 2026",
        "Sun, 22 Nov 2026 10:17:10 GMT",
        "Sun, 22 Nov 2026 10:17:10 +0100",
        "Sun Nov 22 10:17:10 AM UTC 2026",
        "22 Nov 2026 10:17:10",
        "22-Nov-2026 10:17",
        "Nov 22 10:17",
        "20261122-101710",
        "20261122T101710Z",
        "20261122_101710",
        "20261122101710",
        "2026-11-22T10:17:10.123Z",
        "2026-11-22_10-17-10",
        "2026-11-22T10-17-10",
        "2026-11-22 10:17:10 +0000",
        "1763800000",
        "1763800000123",
        "1763800000123456789",
        "1763800000.123456",
        "10:17:10",
        "10:17:10 PM",
    ] {
        for (before, after) in [("", ""), ("at ", ", it was"), ("(", ")"), ("a_", ".log"), ("-- ", "\n")] {
            // What begins with a letter goes on where a word stands before it, and a name holds no blank.
            let is_name = !text.contains([':', ' ']);
            if before != "a_" || is_name {
                let all = format!("{before}{text}{after}");
                rows.push((all.clone(), replaced(&all)[0].clone(), format!("{before}{{time}}{after}")));
            }
        }
    }
    same(rows);
    for text in
        ["2026-11-22", "20261122", "Nov 22 2026", "November 22, 2026", "22 November 2026", "Sunday, November 1st, 2026"]
    {
        assert_eq!(replaced(&format!("on {text}."))[0], "on {date}.");
    }
    assert_eq!(replaced("backup_2026-11-22.tar log_20261122.txt")[0], "backup_{date}.tar log_{date}.txt");
    let listed = "-rw-r--r-- 1 root root 12 Nov 22 10:17 notes";
    assert_eq!(replaced(listed)[0], "-rw-r--r-- 1 root root 12 {time} notes");
}

#[test]
fn processes_are_known_by_who_is_told_of_them() {
    for (text, shown) in [
        ("kill 4711", "kill {pid}"),
        ("kill -9 4711 4712; ls", "kill -9 {pid} {pid}; ls"),
        ("kill -TERM -4711", "kill -TERM -{pid}"),
        ("kill -s INT -- -4711", "kill -s INT -- -{pid}"),
        ("ps -o rss= -p 4711,4712", "ps -o rss= -p {pid},{pid}"),
        ("lsof -p 4711", "lsof -p {pid}"),
        ("cat /proc/4711/status", "cat /proc/{pid}/status"),
        ("tail --pid=4711 -f a", "tail --pid={pid} -f a"),
        ("\"pid\": 4711, PPID 12", "\"pid\": {pid}, PPID {pid}"),
        ("process 4711 exited, process (4712)", "process {pid} exited, process ({pid})"),
    ] {
        assert_eq!(replaced(text)[0], shown, "{text}");
    }
    assert_eq!(replaced("Listening on port 43121.")[1], "Listening on port {port}.");
}

#[test]
fn what_was_chosen_stays() {
    let mut rows = Vec::new();
    for text in [
        "42",
        "1234567",
        "1.2.3",
        "kill -9 %1",
        "kill %1",
        "kill -l 15",
        "kill $PID",
        "git log -n 1000000",
        "git commit -m 'fix 1234567'",
        "git log --grep 1234567 --author 7654321",
        "git log --grep 'at 1234567 it' -5",
        "git diff -- 1234567",
        "git config x.y 1234567",
        "seq 1000000..2000000",
        "1000000..2000000",
        "head -c 1234567 a.bin",
        "1234567 apples",
        "1234567 apples\n7654321 pears",
        "[1234567]",
        "[a, 1234567]",
        "index 1234567",
        "x = 0xDEADBEEF1",
        "color: #ff00aa80",
        "process 42 files",
        "a[0:10:20]",
        "12345678.5",
        "3.1763800000",
        "99991399",
        "20261399",
        "sleep 5s",
        "10:17",
        "May 5",
        "in May 2026 they",
        "docker run -p 8080:80 x",
        "docker build -t 1234567 .",
        "port 43121",
        "port 8080",
        "--port 8080",
        "feedback",
        "x1763800000y",
        "echo 17638000001",
        "pid",
        "wait 3000",
        "/proc/cpuinfo",
        "commit 12345",
        "a commit of 1234567 lines",
        "-3-great",
    ] {
        rows.push((text.to_owned(), replaced(text)[0].clone(), text.to_owned()));
    }
    for text in ["process 42 files", "port 8080", "kill %1", "/opt/notes.markdown", "1,000,000 and 1234567"] {
        rows.push((text.to_owned(), replaced(text)[1].clone(), text.to_owned()));
    }
    same(rows);
}

#[test]
fn a_key_says_what_a_bare_value_is() {
    let rules = [];
    let header = Header::new("acp", Seen { tracing: true, interaction: true });
    let replacing = Replacing::new(&header, [].into_iter(), [].iter(), [].into_iter(), &rules);
    for (key, text, shown) in [
        ("pid", "4711", "{pid}"),
        ("process_id", "4711", "{pid}"),
        ("commit", "1234567", "{hash}"),
        ("commitSha", "fadedbe", "{hash}"),
        ("commit", "main", "main"),
        ("commit", "123", "123"),
        ("limit", "1234567", "1234567"),
        ("pids", "many", "many"),
        ("port", "8080", "8080"),
    ] {
        assert_eq!(replacing.argument_of(key, text), shown, "{key}");
    }
}

/// Texts with marks for what is chance and what was chosen.
const TEXTS: [&str; 14] = [
    "git show HASH -- §.txt && sleep §",
    "commit HASH\nDate:   DATE\n\n    Fix §",
    "git diff HASH..HASH | head -n §",
    "[main HASH] § files",
    "HEAD is now at HASH release §",
    "git checkout v1.§-12-gHASH",
    "cat /tmp/tmp.TENSIGNS/§.txt",
    "cat /tmp/job.FOUR/§.txt > report-§.txt",
    "python /tmp/tmpPYTHON8.py --count §",
    "kill -9 NUMBER; kill %§",
    "tar cf backup-COMPACT.tar §; echo EPOCH",
    "curl http://localhost:PORTED/§",
    "ps -p NUMBER -o §=",
    "rm -rf /tmp/work-SIXSIX/a §",
];

/// The text with each mark filled in, by a number that looks random.
fn filled(text: &str, mut seed: u64, chosen: u32) -> String {
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (seed >> 33) % below
    };
    let all = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut some = |signs: &str, count: usize| -> String {
        (0..count).map(|_| char::from(signs.as_bytes()[random(signs.len() as u64) as usize])).collect()
    };
    let mut text = text.to_owned();
    for (mark, signs, count) in [
        ("TENSIGNS", all, 10),
        ("SIXSIX", all, 6),
        ("FOUR", all, 4),
        ("PYTHON8", "abcdefghijklmnopqrstuvwxyz0123456789_", 8),
        ("NUMBER", "123456789", 5),
        ("PORTED", "12345", 5),
        ("HASH", "0123456789abcdef", 7),
        // Figures alone are as likely as they are rare.
        ("EPOCH", "0123456789", 8),
    ] {
        while text.contains(mark) {
            let figures = mark == "HASH" && some("01", 1) == "1";
            let made = some(if figures { "0123456789" } else { signs }, count);
            text = text.replacen(mark, &if mark == "EPOCH" { format!("17{made}") } else { made }, 1);
        }
    }
    let (day, hour) = (some("12", 1), some("012", 1));
    let text = text.replace("COMPACT", &format!("202611{day}5-1{hour}1710"));
    text.replace("DATE", &format!("Sun Nov {day}2 1{hour}:17:10 2026 +0000")).replace('§', &chosen.to_string())
}

#[test]
fn few_names_that_are_made_up_are_taken_for_given_ones() {
    // What nothing in the session explains goes by its looks.
    let share = |mark: &str, name: &str| {
        let count = 4_000;
        let kept = (0..count).filter(|seed| {
            let name = filled(name, seed * 7919, 1);
            replaced(&format!("/tmp/{name}"))[0] == format!("{{tmp}}/{name}")
        });
        (mark.to_owned(), kept.count() as f64 / count as f64)
    };
    let found = [share("mktemp", "tmp.TENSIGNS"), share("Node", "given-SIXSIX"), share("Python", "tmpPYTHON8")];
    for ((mark, found), most) in found.iter().zip([0.001, 0.08, 0.0]) {
        assert!(*found <= most, "{mark}: {found}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chance_makes_no_difference_and_a_choice_does(
        text in prop::sample::select(TEXTS.to_vec()), one in any::<u64>(), other in any::<u64>(),
        chosen in 1..90_000u32, another in 1..90_000u32,
    ) {
        let before = replaced(&filled(text, one, chosen));
        prop_assert_eq!(&before, &replaced(&filled(text, other, chosen)));
        let changed = replaced(&filled(text, one, another));
        prop_assert_eq!(before[0] == changed[0], chosen == another, "{:?}", before);
    }
}

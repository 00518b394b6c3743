//! Where what a user asks for goes: links lead on, pipes are written into, and notes that nobody reads change nothing.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::process::Stdio;

use crate::project::Project;

fn one() -> Project {
    let project = Project::new();
    project.case("good", "", "steps: [{say: done}]");
    project
}

/// The commands that write a file which the user names, with the name in the place of `FILE`.
const WRITERS: [&[&str]; 5] = [
    &["report", "--format", "json", "-o", "FILE"],
    &["report", "--format", "benchmark", "-o", "FILE"],
    &["run", "--reporter", "json=FILE"],
    &["baseline", "set", "--file", "FILE"],
    &["compare", "--baseline", "before.json", "--fail-under", "0.5", "--format", "json", "-o", "FILE"],
];

fn named<'a>(args: &[&'a str], name: &'a str) -> Vec<String> {
    args.iter().map(|arg| arg.replace("FILE", name)).collect()
}

#[test]
fn what_is_no_regular_file_is_written_into_and_not_replaced() {
    let project = one();
    project.evals(&["run"]).exits(0);
    project.evals(&["baseline", "set", "--file", "before.json"]).exits(0);
    let fifo = project.path("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for args in WRITERS {
        let place = fifo.clone();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            std::fs::File::open(place).unwrap().read_to_string(&mut text).unwrap();
            text
        });
        let args = named(args, "fifo");
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        project.evals(&args).exits(0);
        assert!(std::fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo(), "{args:?} replaced a pipe");
        let text = reader.join().unwrap();
        assert!(text.starts_with(if args.contains(&"benchmark") { "Suite `cases`" } else { "{\n" }), "{text}");
    }
    // What standard output is has a name as well, also where it is a file.
    let document = project.evals(&["report", "--format", "json", "-o", "-"]).exits(0).out;
    assert_eq!(project.evals(&["report", "--format", "json", "-o", "/dev/stdout"]).exits(0).out, document);
    let mut command = project.command(&["report", "--format", "json", "-o", "/dev/stdout"]);
    assert!(command.stdout(std::fs::File::create(project.path("out")).unwrap()).status().unwrap().success());
    assert_eq!(project.read("out"), document);
}

#[test]
fn a_link_stays_one_and_what_it_leads_to_is_written() {
    let project = one();
    project.evals(&["run"]).exits(0);
    project.evals(&["baseline", "set", "--file", "before.json"]).exits(0);
    std::fs::create_dir(project.path("there")).unwrap();
    for (number, args) in WRITERS.into_iter().enumerate() {
        // The first is there before; the second leads through another one, to a folder that is still to be made.
        let (known, fresh) = (format!("known{number}"), format!("fresh{number}"));
        let begun =
            if args.contains(&"benchmark") { "<!-- evals:benchmark -->\n<!-- /evals:benchmark -->\n" } else { "" };
        if !args.contains(&"baseline") {
            project.write(&format!("there/{known}"), begun);
        }
        symlink(format!("there/{known}"), project.path(&known)).unwrap();
        symlink(format!("later{number}/{fresh}"), project.path(&format!("between{number}"))).unwrap();
        symlink(format!("between{number}"), project.path(&fresh)).unwrap();
        for (name, end) in [(&known, format!("there/{known}")), (&fresh, format!("later{number}/{fresh}"))] {
            let args = named(args, name);
            project.evals(&args.iter().map(String::as_str).collect::<Vec<_>>()).exits(0);
            assert!(project.path(name).is_symlink(), "{args:?} replaced a link");
            assert!(project.read(&end).len() > 100, "{args:?}: {}", project.read(&end));
        }
    }
    // Links that lead around in a circle are told of, and stay.
    symlink("round", project.path("around")).unwrap();
    symlink("around", project.path("round")).unwrap();
    project.evals(&["report", "--format", "json", "-o", "round"]).exits(2).says("could not write round");
    assert!(project.path("round").is_symlink() && project.path("around").is_symlink());
    // Two names of one file are one place.
    let both = ["run", "--reporter", "json=known0", "--reporter", "junit=there/known0"];
    project.evals(&both).exits(2).says("two reports would be written to there/known0");
}

#[test]
fn notes_that_nobody_reads_end_nothing() {
    let project = one();
    project.case("bad", "graders: [{output: {contains: never}}]\ntags: [bad]", "steps: [{say: done}]");
    let unread = |args: &[&str], code: i32| {
        let mut child = project.command(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stderr.take());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{args:?}");
    };
    project.demo("other", "");
    unread(&["run", "--label", "whole", "--fail-under", "0.1", "--reporter", "json=gate.json"], 0);
    assert!(project.read("gate.json").contains("\"exit_code\": 0"));
    let auto = [
        "run",
        "--harness",
        "demo",
        "--harness",
        "other",
        "--trials",
        "auto",
        "--case",
        "good",
        "--reporter",
        "auto.json",
    ];
    unread(&auto, 0);
    assert!(project.read("auto.json").contains("\"exit_code\": 0"));
    unread(&["run", "--trials", "3", "--fail-fast", "--jobs", "1", "--reporter", "cut.json"], 1);
    assert!(project.read("cut.json").contains("\"exit_code\": 1"));
    unread(&["baseline", "set", "whole", "--file", "base.json"], 0);
    unread(&["report", "latest", "--format", "benchmark"], 0);
    unread(&["report", "no-such-run"], 2);
}

#[test]
fn the_evidence_of_a_check_lies_in_the_project_and_makes_no_project_of_a_folder_below() {
    let project = one();
    std::fs::create_dir(project.path("deep")).unwrap();
    let done = project.command(&["harness", "check", "demo"]).current_dir(project.path("deep")).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(!project.path("deep/.evals").exists());
    assert!(project.path(".evals/checks/demo").is_dir());
}

#[cfg(target_os = "linux")]
#[test]
fn a_project_whose_path_is_not_utf_8_is_refused_before_a_trial_begins() {
    let project = one();
    let odd = project.path("").join(OsStr::from_bytes(b"p\xff"));
    crate::project::copy(&project.path("cases"), &odd.join("cases"));
    let done = project.command(&["run"]).current_dir(&odd).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(said.contains("could not write") && said.contains("UTF-8"), "{said}");
    assert_eq!(std::fs::read_dir(odd.join(".evals/runs")).into_iter().flatten().count(), 0);
}

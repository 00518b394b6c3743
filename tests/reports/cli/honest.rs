//! What a reader of a report must not be led to believe: of retries, looks, names, costs, and of files that are damaged.

use serde_json::Value;

use super::outputs::AT_A_TERMINAL;
use crate::project::Project;

fn report(project: &Project, format: &str) -> String {
    project.evals(&["report", "latest", "--format", format, "-o", "-"]).exits(0).out
}

#[test]
fn trials_that_were_tried_again_are_told_of() {
    let project = Project::new();
    project.case("a", "graders: [{output: {equals: fine}}]", "");
    project.case("b", "graders: [{output: {equals: fine}}]", "");
    let line = format!("mkdir {} 2>/dev/null && exit 1; echo fine", project.path("flag").display());
    project.harness("shaky", &format!("adapter: output-only\ncommand: [sh, -c, '{line}']"));
    let note = "1 trial was tried again after an error or a break (2 attempts); its last one is counted";
    project.evals(&["run", "--harness", "shaky", "--retries", "1", "--jobs", "1"]).exits(0).says(note);
    for format in ["markdown", "benchmark", "json"] {
        let text = report(&project, format);
        assert!(text.contains(note), "{format}: {text}");
    }
    project.evals(&["run", "--harness", "shaky"]).exits(0);
    assert!(!report(&project, "markdown").contains("tried again"));
}

#[test]
fn a_run_that_was_looked_at_several_times_says_so() {
    let project = Project::new();
    let note =
        "evaluated several times: trials were added until the result was clear or a limit was reached (--trials auto)";
    project.demo("other", "");
    project.case("a", "graders: [{output: {equals: mkdir}}]", "steps: [{say: done}]");
    project.evals(&["run", "--harness", "demo", "--harness", "other", "--trials", "auto"]).exits(1);
    let trials = report(&project, "jsonl").lines().count();
    assert_eq!(report(&project, "benchmark").contains(note), trials > 4, "{trials}");
    assert!(trials > 4, "two arms that do the same are not clear at the first look");
}

#[test]
fn names_that_differ_at_their_end_stay_apart() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    let long = "some-provider/a-family-of-models-with-a-name-that-goes-on-for-very-long-".repeat(2);
    let (one, two) = (format!("{long}one"), format!("{long}two"));
    project.evals(&["run", "--model", &one, "--model", &two]).exits(0);
    for format in ["table", "markdown", "junit"] {
        let text = report(&project, format);
        assert!(text.contains("very-long-one") && text.contains("very-long-two"), "{format}: {text}");
    }
}

#[test]
fn a_terminal_that_shows_ascii_alone_gets_no_more() {
    let project = Project::new();
    project.case("a", "trials: 2", "steps: [{say: done}]");
    project.evals(&["run"]).exits(0);
    project.write("terminal.py", AT_A_TERMINAL);
    let shown = |args: &[&str], locale: &[(&str, &str)]| {
        let mut command = std::process::Command::new("python3");
        command
            .arg("terminal.py")
            .arg(env!("CARGO_BIN_EXE_evals"))
            .args(args)
            .current_dir(project.path(""))
            .env_clear();
        command
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("TERM", "xterm")
            .env("PYTHONCOERCECLOCALE", "0")
            .env("HOME", project.home());
        String::from_utf8(command.envs(locale.iter().copied()).output().unwrap().stdout).unwrap()
    };
    for args in [&["report"] as &[&str], &["report", "no-such-run"]] {
        let of = |locale: &[(&str, &str)]| shown(args, locale);
        for locale in [&[] as &[(&str, &str)], &[("LANG", "en_US.UTF-8")], &[("LC_ALL", "C.utf8"), ("LANG", "C")]] {
            assert!(!of(locale).is_ascii(), "{locale:?}: {}", of(locale));
        }
        for locale in [&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")] as &[(&str, &str)], &[("LC_CTYPE", "POSIX")]] {
            let text = of(locale);
            assert!(text.is_ascii() && text.len() > 20, "{locale:?}: {text}");
        }
    }
}

#[test]
fn damaged_results_are_named_with_their_line_where_they_cannot_be_gathered_again() {
    let project = Project::new();
    project.case("a", "trials: 2", "steps: [{say: done}]");
    project.evals(&["run"]).exits(0);
    let file = format!("{}/results.jsonl", project.run_folder());
    let whole = project.read(&file);
    let second = whole.lines().nth(1).unwrap();
    let damaged = [
        (whole.replacen(second, "garbage", 1), "line 2: expected value in column 1"),
        (whole.replace("\"score\":1.0", "\"score\":7.5"), "line 1: "),
        (whole[..whole.len() - 40].to_owned(), "line 2: EOF while parsing"),
        (whole.lines().next().unwrap().to_owned() + "\n", "line 2: the file ends too early"),
    ];
    // Where the trials are there it is made again.
    for (text, _) in &damaged {
        assert_ne!(*text, whole);
        project.write(&file, text);
        project.evals(&["report"]).exits(0);
        assert_eq!(project.read(&file), whole);
    }
    std::fs::remove_dir_all(project.path(&format!("{}/trials", project.run_folder()))).unwrap();
    project.evals(&["report"]).exits(0);
    for (text, why) in &damaged {
        project.write(&file, text);
        let ran = project.evals(&["report"]).exits(2).says(why).says("restore a copy of the folder");
        ran.says("results.jsonl is damaged").says(&format!("the results of run {}", project.runs()[0]));
    }
}

#[test]
fn a_sum_of_costs_that_no_number_holds_is_not_known() {
    let project = Project::new();
    project.case("a", "trials: 3", "");
    let init = r#"{"type":"system","subtype":"init","session_id":"s","model":"m","tools":[]}"#;
    let told = r#"{"type":"result","subtype":"success","is_error":false,"stop_reason":"end_turn","session_id":"s","result":"fine","total_cost_usd":1e308}"#;
    project.write("agent.sh", &format!("echo '{init}'\necho '{told}'\n"));
    let agent = project.path("agent.sh").display().to_string();
    project.harness("dear", &format!("adapter: claude-code-stream\ncommand: [sh, '{agent}']"));
    project.evals(&["run", "--harness", "dear", "--trials", "1"]).exits(0).says("$1.00e308");
    project.evals(&["run", "--harness", "dear"]).exits(0);
    let document = report(&project, "json");
    let value: Value = serde_json::from_str(&document).unwrap();
    let schema: Value = serde_json::from_str(&project.evals(&["schema", "run"]).exits(0).out).unwrap();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&value), "{document}");
    assert_eq!(value["columns"][0].get("cost_usd"), None);
    for format in ["table", "markdown", "junit", "benchmark"] {
        let text = report(&project, format);
        assert!(!text.contains("inf\n") && !text.contains("$inf") && !text.contains("\"$"), "{format}: {text}");
    }
}

#[test]
fn yaml_files_of_graders_harnesses_policies_and_prices_that_are_not_read_are_named() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    let grader = "description: x\ngrader: {stop: {reason: [end_turn]}}\n";
    for (file, text) in [
        ("graders/no-rm.v2.yaml", grader),
        ("graders/old.yml", grader),
        ("graders/gone.calibration.yaml", "rubric: gone\n"),
        ("graders/ends.yaml", grader),
        ("graders/ends.calibration.yaml", "rubric: ends\n"),
        ("graders/notes.md", "for people"),
        ("harnesses/mine.v2.yaml", "name: mine\nadapter: output-only\ncommand: [echo, hello]\n"),
        ("policies/asks.new.yaml", "policy: auto-reject\n"),
        ("prices.yml", "date: 2026-11-21\nmodels: {}\n"),
    ] {
        project.write(file, text);
    }
    for args in [&["check"][..], &["run"], &["list", "graders"], &["list", "cases"], &["list", "harnesses"]] {
        let ran = project.evals(args).exits(0);
        let notes: Vec<&str> = ran.err.lines().filter(|line| line.contains("is not read")).collect();
        assert_eq!(
            notes,
            [
                "note: `harnesses/mine.v2.yaml` is not read: its name has two extensions; name it mine-v2.yaml",
                "note: `graders/gone.calibration.yaml` is not read: it belongs to `gone.yaml`, which does not exist",
                "note: `graders/no-rm.v2.yaml` is not read: its name has two extensions; name it no-rm-v2.yaml",
                "note: `graders/old.yml` is not read: its name does not end in .yaml; rename it",
                "note: `policies/asks.new.yaml` is not read: its name has two extensions; name it asks-new.yaml",
                "note: `prices.yml` is not read: its name does not end in .yaml; rename it to prices.yaml",
            ],
            "{args:?}: {ran:?}"
        );
    }
}

#[test]
fn another_model_than_the_requested_one_is_told_in_every_format() {
    let project = Project::new();
    project.case("a", "trials: 2", "");
    project.reports_model("said", "small");
    project.evals(&["run", "--harness", "said", "--model", "large"]).exits(0);
    for format in ["table", "markdown", "benchmark", "json", "html"] {
        let out = project.evals(&["report", "latest", "--format", format, "-o", "-"]).exits(0).out;
        let note = "said / large: model large was requested, and small answered in 2 trials";
        assert!(out.split_whitespace().collect::<Vec<_>>().join(" ").contains(note), "{format}: {out}");
    }
    project.reports_model("said", "large-20261121");
    let fine = project.evals(&["run", "--harness", "said", "--model", "large"]).exits(0);
    assert!(!fine.out.contains("was requested"), "{}", fine.out);
}

#[test]
fn an_amount_of_money_above_0_is_never_0() {
    let project = Project::new();
    let cents = "steps: [{usage: {input-tokens: 8, output-tokens: 1, cost-usd: 0.0000004}}, {say: done}]";
    project.case("a", "graders: [{budget: {cost-usd: 0}}]", cents);
    project.evals(&["run", "--label", "old"]).exits(1).says("it cost 0.0000004 USD, above 0");
    project.evals(&["run", "--label", "new"]).exits(1);
    let compared = project.evals(&["compare", "old", "new", "--max-cost", "0"]).exits(1);
    compared.says("costs $0.0000004, and $0 is allowed");
    let spent = project.evals(&["run", "--trials", "2", "--jobs", "1", "--max-cost", "0.0000001"]).exits(1);
    spent.says("--max-cost 0.0000001: 0.0000004 US dollars are spent");
}

#[test]
fn a_reason_shows_in_what_an_output_differs_that_looks_as_expected() {
    let project = Project::new();
    let says = |text: &str| format!("adapter: output-only\ncommand: [sh, -c, 'printf \"{text}\"']");
    project.harness("odd", &says(r"answer\0 4\0012"));
    project.harness("lines", &says(r"answer\n42"));
    project.case("is", "graders: [{output: {equals: answer 42}}]", "");
    project.case("has", "graders: [{output: {contains: answer 42}}]", "");
    project.case("matches", "graders: [{output: {regex: answer 42}}]", "");
    let wants = ["is not `answer 42`", "does not contain `answer 42`", "does not match /answer 42/"];
    for (harness, shown) in [("odd", "answer^@ 4^A2"), ("lines", "answer\\n42")] {
        let ran = project.evals(&["run", "--harness", harness]).exits(1);
        let ran = wants.iter().fold(ran, |ran, wanted| ran.says(&format!("the output {wanted}; it is `{shown}`")));
        assert!(!ran.out.contains("it is `answer 42`"), "{}", ran.out);
        let stored: Value = serde_json::from_str(&report(&project, "json")).unwrap();
        let reason = stored["results"][0]["grades"][0]["reason"].as_str().unwrap();
        assert!(reason.ends_with(&format!("it is `{shown}`")), "{reason}");
    }
}

#[test]
fn a_small_cost_has_its_digits_in_every_report() {
    let project = Project::new();
    let cents = "steps: [{usage: {input-tokens: 8, output-tokens: 1, cost-usd: 0.000144}}, {say: done}]";
    project.case("a", "", cents);
    project.evals(&["run"]).exits(0);
    for format in ["table", "markdown", "junit", "benchmark", "html"] {
        let text = report(&project, format);
        assert!(text.contains("$0.000144"), "{format}: {text}");
    }
    // The figures of a cell stay apart if they are copied.
    let page = report(&project, "html");
    assert!(page.contains("</span> <span class=\"taken\">"), "{page}");
    // A call with the content of a file does not show whether the file existed.
    assert!(!page.contains("\"new file\"") && page.contains("\"whole file\""), "{page}");
}

#[test]
fn charts_tell_models_apart_whose_names_differ_at_their_end() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    let models = ["one", "two"].map(|end| format!("a-family-of-models-with-a-long-name-{end}"));
    project.evals(&["run", "--model", &models[0], "--model", &models[1]]).exits(0);
    let page = report(&project, "html");
    for (model, short) in models.iter().zip(["a-family-of-m…ong-name-one", "a-family-of-m…ong-name-two"]) {
        assert!(page.contains(&format!(">{short}</text>")), "{short}: {page}");
        assert!(page.contains(&format!("<title>demo / {model}: 1.00")), "{model}: {page}");
    }
}

#[test]
fn a_terminal_that_cannot_move_its_cursor_is_not_told_to() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    for (term, moves) in [("xterm", true), ("dumb", false)] {
        let mut command = project.under("python3", &["-c", AT_A_TERMINAL], &["run"]);
        let seen = command.env("TERM", term).env("PYTHONCOERCECLOCALE", "0").output().unwrap().stdout;
        let seen = String::from_utf8_lossy(&seen).into_owned();
        assert_eq!(seen.contains("\u{1b}[2K"), moves, "{term}: {seen:?}");
    }
}

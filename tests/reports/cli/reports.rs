//! Reports through the door: several at once, to their places, for services that name theirs in the environment.

use crate::project::Project;

const PASS: &str = "steps: [{say: done}]";
/// The grader that fails stands in line 6.
const FAILS: &str = "prompt: Do it.\ngraders:\n  - stop: {reason: [end_turn]}\n  - output: {contains: yet}\n\n  - output: {name: wanted, contains: wanted}\n";

/// A case that passes and one that fails, whose agent says what would be a command.
fn two() -> Project {
    let project = Project::new();
    project.case("good", "", PASS);
    project.write("cases/bad.yaml", FAILS);
    project.write("cases/bad.demo.yaml", "steps: [{say: \"::error::not yet\"}]");
    project
}

#[test]
fn several_reports_go_to_their_places_at_once() {
    let project = two();
    let reporters = ["junit=out/junit.xml", "out/comment.md", "json", "jsonl=out/lines", "table=out/table.txt"];
    let args: Vec<&str> = ["run"].into_iter().chain(reporters.iter().flat_map(|it| ["--reporter", it])).collect();
    let ran = project.evals(&args).exits(1);
    assert_eq!(ran.json()["summary"]["fail"], 1);
    let text = project.read("out/junit.xml");
    let xml = roxmltree::Document::parse(&text).unwrap();
    let failure = xml.descendants().find(|it| it.has_tag_name("failure")).unwrap();
    assert_eq!(failure.parent().unwrap().attribute("name"), Some("bad"));
    let output = xml.descendants().find(|it| it.has_tag_name("system-out")).unwrap().text().unwrap();
    let attached = output.split("[[ATTACHMENT|").nth(1).unwrap().split("]]").next().unwrap();
    assert!(project.read(attached).contains("\"type\":\"trace\""), "{attached}");
    assert!(project.read("out/comment.md").starts_with("### ❌ evals: failed"));
    assert_eq!(project.read("out/lines").lines().count(), 2);
    assert!(project.read("out/table.txt").is_ascii() && project.read("out/table.txt").contains("FAIL  bad"));
    // The same of the stored run, and of one that is judged again.
    project.evals(&["report", "latest", "--format", "junit", "-o", "again.xml"]).exits(0);
    assert_eq!(project.read("again.xml"), text);
    assert_eq!(project.evals(&["report", "--format", "junit", "-o", "-"]).exits(0).out, text);
    project.evals(&["grade", "latest", "--reporter", "graded.xml"]).exits(1).says("FAIL bad");
    assert!(project.read("graded.xml").contains("<failure"));
}

#[test]
fn reports_without_a_place_are_refused_before_anything_starts() {
    let project = two();
    project.write("a-file", "");
    let refused = |reporters: &[&str], why: &str| {
        let args: Vec<&str> = ["run"].into_iter().chain(reporters.iter().flat_map(|it| ["--reporter", it])).collect();
        project.evals(&args).exits(2).says(why);
        assert!(project.runs().is_empty());
    };
    refused(
        &["json", "junit"],
        "two reports would go to standard output, json and junit; give one of them a file: junit=FILE",
    );
    refused(&["json=out", "junit=out"], "two reports would be written to out");
    refused(&["json=out", "junit=./out"], "two reports would be written to ./out");
    let whole = project.path("out").display().to_string();
    refused(&[&format!("json={whole}"), "junit=cases/../out"], "two reports would be written to cases/../out");
    refused(&["junit=cases"], "cases is a folder; write junit=FILE for a file in it");
    refused(&["junit=a-file/below.xml"], "no report can be written to a-file/below.xml");
    refused(&["pdf=out.pdf"], "`pdf` is not a format");
    refused(&["junit="], "`junit=` has no file name");
    project.write("BENCHMARK.md", "# Ours\n<!-- evals:benchmark -->\n");
    refused(&["benchmark"], "line 2: `<!-- evals:benchmark -->` begins a block that does not end");
}

#[test]
fn github_gets_annotations_on_lines_and_a_summary() {
    let mut project = two();
    let summary = project.path("summary.md");
    project.write("summary.md", "what the step wrote before\n");
    project.env("GITHUB_WORKSPACE", &project.path("").display().to_string());
    project.env("GITHUB_STEP_SUMMARY", &summary.display().to_string());
    let ran = project.evals(&["run", "--reporter", "github", "--reporter", "junit=out.xml"]).exits(1);
    let annotation =
        "::error file=cases/bad.yaml,line=6,title=failed%3A bad (demo)::1 of 1 trial failed%0Afailed wanted (output): ";
    assert!(ran.out.lines().any(|line| line.starts_with(annotation)), "{}", ran.out);
    // The table is there as well, and nothing in it is a command.
    let fence = ran.out.lines().find_map(|line| line.strip_prefix("::stop-commands::")).unwrap();
    let (before, rest) = ran.out.split_once(&format!("::stop-commands::{fence}\n")).unwrap();
    let (table, after) = rest.split_once(&format!("::{fence}::")).unwrap();
    assert!(
        table.contains("FAIL  bad")
            && before.lines().all(|line| line.starts_with("::error "))
            && after.trim().is_empty()
    );
    let text = project.read("summary.md");
    assert!(text.starts_with("what the step wrote before\n### ❌ evals: failed"), "{text}");
    // Of a stored run only the annotations are printed; the summary has no room for what is too long.
    std::fs::write(&summary, "x".repeat((1 << 20) - 100)).unwrap();
    let again = project.evals(&["report", "--format", "github"]).exits(0);
    assert!(again.out.lines().all(|line| line.starts_with("::error ")), "{}", again.out);
    assert!(again.err.contains("note: the report is not in the summary of the step"), "{}", again.err);
    project.evals(&["report", "-o", "cases"]).exits(2).says("cases is a folder; name a file in it");
    assert!(std::fs::metadata(&summary).unwrap().len() <= 1 << 20);
    // A summary that has no place changes nothing but a note.
    project.env("GITHUB_STEP_SUMMARY", &project.path("no-such-folder/summary.md").display().to_string());
    project.evals(&["run", "--case", "good", "--reporter", "github"]).exits(0).says("could not be written");
    // Paths of a repository that is found by itself, and cases that lie in none.
    let mut project = two();
    std::fs::create_dir(project.path(".git")).unwrap();
    project.evals(&["run", "--reporter", "json=out.json"]).exits(1);
    assert!(project.evals(&["report", "--format", "github"]).out.starts_with("::error file=cases/bad.yaml,line=6,"));
    project.env("GITHUB_WORKSPACE", &project.home().display().to_string());
    assert!(project.evals(&["report", "--format", "github"]).out.starts_with("::error title=failed%3A bad (demo)::"));
}

#[test]
fn a_benchmark_is_written_between_its_marks() {
    let project = two();
    project.evals(&["run", "--label", "nightly"]).exits(1);
    // A file that is not there is made.
    project.evals(&["report", "--format", "benchmark"]).exits(0).says("BENCHMARK.md");
    let text = project.read("BENCHMARK.md");
    assert!(
        text.starts_with("# Benchmark\n\n<!-- evals:benchmark -->\n\nSuite `cases`, of 2 cases: digest `"),
        "{text}"
    );
    assert!(
        text.contains("| `demo` | `evals-demo 0.1.0` | a script") && text.contains("| 1 of 2 | 0.83 | 0."),
        "{text}"
    );
    assert!(
        text.contains("- demo: the agent plays a script beside each case, so the figures do not measure a model"),
        "{text}"
    );
    let block = project.evals(&["report", "--format", "benchmark", "-o", "-"]).exits(0).out;
    assert!(text.contains(&block));
    let ours =
        "# Ours\n\n<!-- evals:benchmark nightly -->\nold\n<!-- /evals:benchmark nightly -->\n\n## Speed\n\nby hand\n";
    project.write("docs/OURS.md", ours);
    project.evals(&["report", "--format", "benchmark", "-o", "docs/OURS.md"]).exits(0);
    let (before, after) = ours.split_once("old\n").unwrap();
    assert_eq!(project.read("docs/OURS.md"), format!("{before}\n{block}\n{after}"));
    project.write("docs/OURS.md", "# Ours\n");
    let refused = project.evals(&["report", "--format", "benchmark", "-o", "docs/OURS.md"]).exits(2);
    refused.says("add these two lines where the scores should go").says("<!-- /evals:benchmark nightly -->");
    assert_eq!(project.read("docs/OURS.md"), "# Ours\n");
}

//! The HTML report as a file: its policy, its data blocks, its places, and hostile texts in it. The page in a browser is
//! tested in tests/agents.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::symlink;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use regex::Regex;
use ring::digest::{SHA256, digest};
use serde_json::Value;

use crate::pages::{self, HOSTILE};
use crate::project::{Project, lines};

/// The contents of the elements of a name, with their attributes.
fn elements<'a>(page: &'a str, tag: &str) -> Vec<(&'a str, &'a str)> {
    let pattern = Regex::new(&format!(r"(?s)<{tag}([^>]*)>(.*?)</{tag}>")).unwrap();
    pattern.captures_iter(page).map(|it| (it.get(1).unwrap().as_str(), it.get(2).unwrap().as_str())).collect()
}

/// The text of a data block.
fn block<'a>(page: &'a str, id: &str) -> &'a str {
    let found =
        elements(page, "script").into_iter().find(|(attributes, _)| attributes.contains(&format!("id=\"{id}\"")));
    found.unwrap_or_else(|| panic!("the page has no block {id}")).1
}

fn json(page: &str, id: &str) -> Value {
    serde_json::from_str(block(page, id)).unwrap()
}

/// The content of a compressed block.
fn part(page: &str, id: &str) -> String {
    let bytes = STANDARD.decode(block(page, id)).unwrap();
    let mut text = String::new();
    ZlibDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    text
}

fn trials(page: &str) -> Vec<Value> {
    json(page, "trials").as_array().unwrap().clone()
}

#[test]
fn a_page_asks_for_nothing_and_holds_what_it_shows() {
    let project = pages::run();
    let page = project.read("out.html");
    let policy = Regex::new("http-equiv=\"Content-Security-Policy\" content=\"([^\"]*)\"").unwrap();
    let policy = policy.captures(&page).unwrap().get(1).unwrap().as_str();
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(digest(&SHA256, text.as_bytes())));
    let style = elements(&page, "style");
    assert_eq!(style.len(), 1);
    let scripts = elements(&page, "script");
    let run: Vec<&str> = scripts.iter().filter(|(attributes, _)| attributes.is_empty()).map(|it| it.1).collect();
    assert_eq!(run.len(), 1, "one script runs");
    let wanted = [
        "default-src 'none'".to_owned(),
        format!("script-src {}", hash(run[0])),
        format!("style-src {}", hash(style[0].1)),
        "base-uri 'none'".to_owned(),
        "form-action 'none'".to_owned(),
        "require-trusted-types-for 'script'".to_owned(),
        "trusted-types 'none'".to_owned(),
    ];
    assert_eq!(policy.split("; ").collect::<Vec<_>>(), wanted);
    assert_eq!(page.matches("<script").count(), page.matches("</script>").count());
    // Nothing is asked of anywhere: links lead to places of the page, and no other element has an address.
    let shown = Regex::new(r"(?s)<(script|style)[^>]*>.*?</(script|style)>").unwrap().replace_all(&page, "");
    let addresses = Regex::new(r#"\s(?:src|href|srcset|action|data|poster|style|on\w+)="([^"]*)""#).unwrap();
    let elsewhere: Vec<&str> = addresses.captures_iter(&shown).map(|it| it.get(1).unwrap().as_str()).collect();
    assert!(elsewhere.iter().all(|it| it.starts_with("#/")), "{elsewhere:?}");
    for forbidden in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "fetch(", "import("] {
        assert!(!run[0].contains(forbidden), "the script has {forbidden}");
    }
    assert!(!style[0].1.contains("url(") && !style[0].1.contains("@import"));

    // Texts of agents are in blocks, in which nothing can end the block, and nowhere else as markup.
    for text in HOSTILE.iter().filter(|text| text.contains('<')) {
        assert!(!page.contains(text), "{text}");
    }
    assert!(page.contains("&lt;i&gt;no&lt;/i&gt;"), "the reason of a grade is shown as text");

    // Every planned trial has its place, and every file of it is in the page as it is.
    let record: Value = serde_json::from_str(&project.read(&format!("{}/run.json", project.run_folder()))).unwrap();
    let planned: Vec<String> = record["trials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            format!(
                "{}/{}/{}/{}",
                it["case"].as_str().unwrap().replace("odd/beside/event", "odd/%62eside/%65vent"),
                it["harness"].as_str().unwrap(),
                "default",
                it["trial"]
            )
        })
        .collect();
    let trials = trials(&page);
    assert_eq!(trials.iter().map(|it| it["place"].as_str().unwrap()).collect::<Vec<_>>(), planned);
    let words: BTreeSet<&str> = trials.iter().map(|it| it["result"]["verdict"].as_str().unwrap()).collect();
    assert_eq!(words, BTreeSet::from(["errored", "fail", "pass", "skipped", "ungraded"]));
    for (number, trial) in trials.iter().enumerate() {
        let place = trial["place"].as_str().unwrap();
        assert!(shown.contains(&format!("href=\"#/{place}\"")), "{place}");
        if trial["case"] != "edits/change" || trial["harness"] == "plain" {
            continue;
        }
        for (id, file) in [("events", "trace.jsonl"), ("wire", "wire.jsonl")] {
            assert_eq!(part(&page, &format!("t{number}-{id}")), project.of_trial(place, file), "{place}");
        }
        assert_eq!(part(&page, &format!("t{number}-patch")), project.of_trial(place, "workspace.patch"));
        let events = project.trace(place).len() - 1;
        let found: Value = serde_json::from_str(&part(&page, &format!("t{number}-lines"))).unwrap();
        assert_eq!(found["events"], events, "{place}");
        let first = found["lines"][0][0].as_u64().unwrap() as usize;
        let wire = lines(&project.of_trial(place, "wire.jsonl"));
        assert!(wire[first - 1]["line"].as_str().unwrap().contains("Do it."), "{}", wire[first - 1]);
        let shape: Value = serde_json::from_str(&part(&page, &format!("t{number}-shape"))).unwrap();
        assert_eq!(shape[0]["kind"], "user");
    }
    // The arms are compared, with every case.
    assert!(shown.contains("id=\"compare\"") && shown.contains("Case by case: demo and other"));
    assert!(shown.contains("/beside/edits/change/other/default/1"));
    // No name of a case divides a link.
    assert!(shown.contains("/odd/%62eside/%65vent/demo/default/1/beside/odd/%62eside/%65vent/other/default/1\""));
    // A quarantine is marked wherever the verdict is shown.
    for trial in &trials {
        let told = "in quarantine until 2999-01-01: the mirror loses connections";
        let expected = (trial["case"] == "quarantined").then_some(told);
        assert_eq!(trial["quarantine"].as_str(), expected, "{}", trial["place"]);
    }
    let row = shown.split("<tr>").find(|row| row.starts_with("<th scope=\"row\">quarantined</th><td ")).unwrap();
    assert_eq!(row.matches("<span class=\"tag\">in quarantine</span>").count(), 3, "{row}");
    // The stored run gives the same page.
    project.evals(&["report", "latest", "--format", "html", "-o", "again.html"]).exits(0);
    assert_eq!(project.read("again.html"), page);
    assert_eq!(project.evals(&["report", "--format", "html", "-o", "-"]).exits(0).out, page);
}

#[test]
fn a_run_that_did_not_end_shows_what_there_is() {
    let project = Project::new();
    project.case("a", "graders: [{output: {contains: yet}}]", "steps: [{say: no}]");
    project.case("b", "", "steps: [{say: done}]");
    project.evals(&["run", "--fail-fast", "--jobs", "1", "--reporter", "out.html"]).exits(1);
    let page = project.read("out.html");
    let trials = trials(&page);
    assert_eq!(trials[0]["result"]["verdict"], "fail");
    assert!(trials[1].get("result").is_none(), "{}", trials[1]);
    assert!(page.contains("href=\"#/b/demo/default/1\">not run</a>"));
    assert!(page.contains("there is nothing to compare it with") || page.contains("could not be compared"));
    // A trace that ends in the middle of a line, and a file that is not there.
    let folder = format!("{}/trials/a/demo/default/1", project.run_folder());
    let torn = project.of_trial("a/demo/default/1", "trace.jsonl");
    project.write(&format!("{folder}/trace.jsonl"), &torn[..torn.len() - 9]);
    std::fs::remove_file(project.path(&format!("{folder}/wire.jsonl"))).unwrap();
    project.evals(&["report", "latest", "--format", "html", "-o", "out.html"]).exits(0);
    let page = project.read("out.html");
    assert_eq!(part(&page, "t0-events"), torn[..torn.len() - 9]);
    assert!(!page.contains("id=\"t0-wire\""));
    let left_out = json(&page, "left-out");
    assert_eq!(left_out[0]["part"], "shape", "{left_out}");
}

#[test]
fn a_page_cuts_evidence_and_says_so() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run"]).exits(0);
    let folder = format!("{}/trials/a/demo/default/1", project.run_folder());
    let line = format!("{}\n", "x".repeat(1 << 20));
    project.write(&format!("{folder}/workspace.patch"), &line.repeat(17));
    project.evals(&["report", "latest", "--format", "html", "-o", "out.html"]).exits(0);
    let page = project.read("out.html");
    let left_out = json(&page, "left-out");
    assert_eq!(left_out[0]["part"], "patch");
    assert!(left_out[0]["why"].as_str().unwrap().starts_with("only the first 16 MB are in this page"), "{left_out}");
    assert_eq!(part(&page, "t0-patch"), line.repeat(15));
}

/// The content of every compressed block of a page.
fn all_parts(page: &str) -> String {
    let ids = elements(page, "script")
        .into_iter()
        .filter_map(|(attributes, _)| attributes.split_once("id=\"")?.1.split('"').next());
    ids.filter(|id| STANDARD.decode(block(page, id)).is_ok_and(|bytes| bytes.starts_with(&[0x78])))
        .map(|id| part(page, id))
        .collect()
}

#[test]
fn a_link_among_the_evidence_is_not_followed_and_is_named() {
    const SECRET: &str = "not-for-the-report-4711";
    let line = format!("{{\"at_ms\":1,\"dir\":\"stderr\",\"line\":\"{SECRET}\"}}\n");
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.write("elsewhere/secret", &line);
    project.evals(&["run"]).exits(0);
    let at = project.path(&format!("{}/trials/a/demo/default/1", project.run_folder()));
    let written = || {
        project.evals(&["report", "latest", "--format", "html", "-o", "out.html"]).exits(0);
        project.read("out.html")
    };
    for name in ["trace.jsonl", "workspace.patch", "stderr.log", "llm.jsonl", "wire.jsonl"] {
        let (file, kept) = (at.join(name), at.join("kept"));
        let was_there = fs::rename(&file, &kept).is_ok();
        // A file of the same content is shown: the test would notice the content.
        fs::write(&file, &line).unwrap();
        assert!(all_parts(&written()).contains(SECRET), "{name}");
        fs::remove_file(&file).unwrap();
        symlink(project.path("elsewhere/secret"), &file).unwrap();
        let page = written();
        assert!(!page.contains(SECRET) && !all_parts(&page).contains(SECRET), "{name}");
        assert!(page.contains(&format!("{name} is not read: this is a link, which evals did not make")), "{name}");
        fs::remove_file(&file).unwrap();
        if was_there {
            fs::rename(&kept, &file).unwrap();
        }
    }
    // So is the folder of a trial.
    fs::rename(&at, project.path("elsewhere/1")).unwrap();
    symlink(project.path("elsewhere/1"), &at).unwrap();
    fs::write(at.join("wire.jsonl"), &line).unwrap();
    let page = written();
    assert!(!all_parts(&page).contains(SECRET));
    assert!(page.contains("default/1 is a link, which evals did not make"));
}

#[test]
fn the_cases_of_a_labelled_run_link_to_their_trials_beside_a_baseline() {
    let project = Project::new();
    for id in ["a", "b"] {
        project.case(id, "", "steps: [{say: done}]");
    }
    project.evals(&["run", "--label", "one"]).exits(0);
    project.evals(&["baseline", "set", "one"]).exits(0);
    project.evals(&["run", "--label", "two"]).exits(0);
    project.evals(&["report", "two", "--format", "html", "-o", "two.html"]).exits(0);
    let page = project.read("two.html");
    let (_, cases) = page.split_once("Case by case: baseline demo and demo (two)</h2>").unwrap();
    let (cases, _) = cases.split_once("</table>").unwrap();
    for id in ["a", "b"] {
        assert!(cases.contains(&format!("href=\"#/{id}/demo/default/1\">1 pass</a>")), "{cases}");
    }
}

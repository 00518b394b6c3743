//! `evals view` by raw requests: who is answered, what an address reaches, and runs that change while they are served.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::project::Project;
use crate::served::{Going, Served, wait_for};

const PASS: &str = "steps: [{say: done}]";

/// The line above a page whose run does not go on.
const ENDED: &str = "<p id=\"live\" class=\"live\" role=\"status\" hidden>";

/// A project with two runs.
fn project() -> Project {
    let project = Project::new();
    project.case("a", "", PASS);
    project.case("b", "", "steps: [{stop: refusal}]");
    project.evals(&["run", "--label", "first"]).exits(1);
    project.evals(&["run", "--label", "second", "--case", "a"]).exits(0);
    project
}

#[test]
fn only_who_has_the_token_and_the_name_of_this_machine_is_answered() {
    let project = project();
    let served = Served::start(&project, &[]);
    let own = format!("127.0.0.1:{}", served.port);
    let token = served.root.trim_matches('/').to_owned();
    assert!(token.len() >= 32 && served.opened.is_empty(), "{}", served.url);
    let run = project.runs().pop().unwrap();
    // Without the token, or with another one, every path is refused in the same way, whether it exists or not.
    let wrong: String = token.chars().rev().collect();
    let mut told = Vec::new();
    for path in ["/", "/x", &format!("/{run}/"), &format!("/{wrong}/"), &format!("/{wrong}/{run}/"), "/favicon.ico"] {
        let answer = served.ask("GET", path, &own);
        assert_eq!(answer.status, 403, "{path}");
        told.push(answer.body);
    }
    assert!(told.iter().all(|it| it == "403 Forbidden\n"), "{told:?}");
    // Other names of this machine are a page of somebody else, whose name leads here.
    for host in ["evil.example", &format!("evil.example:{}", served.port), "127.0.0.1:1", "127.0.0.1", ""] {
        assert_eq!(served.ask("GET", &served.root, host).status, 403, "{host}");
    }
    for host in [&own, &format!("localhost:{}", served.port), &format!("[::1]:{}", served.port)] {
        assert_eq!(served.ask("GET", &served.root, host).status, 200, "{host}");
    }
    let whole = format!("http://{own}{}", served.root);
    assert_eq!(served.ask("GET", &whole, &own).status, 403, "the server is no proxy");
    let none = served.raw(&format!("GET {} HTTP/1.0\r\n\r\n", served.root));
    assert!(String::from_utf8_lossy(&none).starts_with("HTTP/1.0 403"), "no Host header");
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW"] {
        let answer = served.ask(method, &served.root, &own);
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")), "{method}");
        assert_eq!(served.ask(method, "/", &own).status, 403, "{method} without the token");
    }
    for path in ["", &format!("{run}/"), "?state", "nothing/"] {
        let answer = served.get(path);
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'") && policy.ends_with("frame-ancestors 'none'"), "{policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{path}: {name}");
        }
        assert!(answer.header("set-cookie").is_none() && answer.header("access-control-allow-origin").is_none());
    }
    let head = served.ask("HEAD", &format!("{}{run}/", served.root), &own);
    assert_eq!((head.status, &*head.body), (200, ""));
    // Ctrl-C is how the command ends.
    assert_eq!(served.end(Signal::INT), 0);
}

#[test]
fn an_address_reaches_the_runs_of_the_folder_and_nothing_else() {
    let project = project();
    project.write("secret.txt", "not for the browser");
    project.write(".evals/runs/secret.txt", "not for the browser");
    project.write(".evals/secret/run.json", "not for the browser");
    let served = Served::start(&project, &["latest"]);
    let [first, second] = &project.runs().into_iter().filter(|it| it != "secret.txt").collect::<Vec<_>>()[..] else {
        panic!("two runs")
    };
    assert_eq!(served.opened, format!("{second}/"));
    let list = served.get("").has("first").has("second").has("1 passed").has("1 failed");
    assert!(list.body.find(&**second).unwrap() < list.body.find(&**first).unwrap(), "the newest is first");
    served.get(&format!("{first}/")).has("href=\"#/b/demo/default/1\">fail</a>");
    let moved = served.get(first);
    assert_eq!((moved.status, moved.header("location")), (303, Some(&*format!("{}{first}/", served.root))));
    for path in [
        "../../secret.txt",
        "..%2f..%2fsecret.txt",
        "%2e%2e/",
        "%2e%2e%2f",
        "%2e%2e/secret/",
        "..%2fsecret/",
        "%252e%252e/",
        "./",
        "secret.txt",
        "secret.txt/",
        "/etc/passwd",
        "%2fetc%2fpasswd/",
        &format!("{first}/run.json"),
        &format!("{first}/../{second}/"),
        &format!("{first}%00/"),
        &format!("{first}%2f/"),
        &format!("{first}/trials/"),
        &format!("{}/", &first[..10]),
        "first/",
        "latest/",
        "?other",
        "%",
        "%c0%ae%c0%ae/",
    ] {
        let answer = served.get(path);
        assert_eq!(answer.status, 404, "{path}");
        assert!(!answer.body.contains("not for the browser") && !answer.body.contains("root:"), "{path}");
    }
    // A run elsewhere is served with its neighbours.
    let elsewhere = project.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::rename(project.path(&format!(".evals/runs/{first}")), elsewhere.join("moved run")).unwrap();
    let other = Served::start(&project, &["elsewhere/moved run"]);
    assert_eq!(other.opened, "moved%20run/");
    other.get("moved%20run/").has(first);
    assert!(!other.get("").body.contains(&**second));
}

#[test]
fn runs_that_cannot_be_read_are_named_with_the_error() {
    let project = project();
    let runs = project.runs();
    project.write(&format!(".evals/runs/{}/run.json", runs[0]), "{\"version\": <script>");
    fs::remove_file(project.path(&format!(".evals/runs/{}/results.jsonl", runs[1]))).unwrap();
    project.write(&format!(".evals/runs/{}/trials/a/demo/default/1/result.json", runs[1]), "{");
    let served = Served::start(&project, &[]);
    let list = served.get("").has("1 cannot be read").has("Runs that cannot be read").has(&runs[0]).has("run.json");
    let row = list.body.lines().find(|line| line.contains(&format!("href=\"{}/\"", runs[1]))).unwrap();
    assert!(row.contains("cannot be read") || row.contains("errored"), "{row}");
    let page = served.get(&format!("{}/", runs[0]));
    assert_eq!(page.status, 500);
    page.has("cannot be read").has("run.json");
    // The names of folders are data too.
    let name = "<img src=x onerror=alert(1)>";
    fs::rename(project.path(&format!(".evals/runs/{}", runs[0])), project.path(&format!(".evals/runs/{name}")))
        .unwrap();
    let list = served.get("");
    assert!(!list.body.contains(name) && list.body.contains("&lt;img src=x"), "{}", list.body);
    project.evals(&["view", "--no-open", "<img"]).exits(2).says("run.json");
}

#[test]
fn a_run_that_goes_on_is_followed_until_it_ends() {
    let project = Project::new();
    let going = Going::start(&project, 2, "live");
    let served = Served::start(&project, &["live"]);
    let run = served.opened.clone();
    let state = |path: &str| -> Value { serde_json::from_str(&served.get(path).body).unwrap() };
    let now = state(&format!("{run}?state"));
    assert_eq!((&now["going_on"], &now["trials"], &now["finished"]), (&json!(true), &json!(2), &json!(0)));
    let running: Vec<&String> = now["running"].as_object().unwrap().keys().collect();
    assert_eq!(running, ["waits/1/demo/default/1"]);
    served.get("").has("going on").has("0 of 2 trials finished, 1 running");
    let page = served.get(&run).has("This run is going on: 0 of 2 trials finished, 1 running.").has("v-running");
    assert!(page.body.contains("id=\"t0-events\"") && !page.body.contains("id=\"t1-events\""));
    // Nothing was written into the run's folder.
    assert!(!project.path(&format!(".evals/runs/{run}results.jsonl")).exists());

    going.release(&project, 1);
    going.until(&project, 2);
    let now = state(&format!("{run}?state"));
    assert_eq!((&now["finished"], &now["attempts"]), (&json!(1), &json!(1)), "{now}");
    served.get(&run).has("href=\"#/waits/1/demo/default/1\">pass</a>").has("href=\"#/waits/2/demo/default/1\">running");
    assert_eq!(state("?state")["going_on"].as_object().unwrap().len(), 1);
    // The other reports know it too, and do not advise to resume it.
    for format in ["table", "markdown", "html"] {
        let ran = project.evals(&["report", "live", "--format", format, "-o", "-"]).exits(0);
        assert!(!ran.out.contains("--resume"), "{format}: {}", ran.out);
        // The trial that is running is no interrupted one.
        assert!(!ran.out.contains("attempt without a result"), "{format}: {}", ran.out);
        ran.says("the run is going on: 1 of 2 trials so far");
    }
    let listed = project.evals(&["list", "runs"]).exits(0).says("going on: 1 of 2 trials so far: 1 passed");
    assert!(!listed.out.contains("not run"), "{}", listed.out);
    let listed = || project.evals(&["list", "runs", "--format", "json"]).exits(0).json()[0]["going_on"].clone();
    assert_eq!(listed(), true);
    let junit = project.evals(&["report", "live", "--format", "junit", "-o", "-"]);
    junit.says("<property name=\"state\" value=\"going on: 1 of 2 trials so far\"/>");
    let gated = ["compare", "live", "live", "--fail-under", "0.1"];
    for args in [&["compare", "live", "live"][..], &gated, &["baseline", "set", "live"]] {
        let ran = project.evals(args).exits(2).says("1 trial of 2 not run; the run is going on");
        assert!(!ran.err.contains("--resume"), "{}", ran.err);
    }

    going.release(&project, 2);
    assert_eq!(going.end(), 0);
    assert_eq!(listed(), Value::Null);
    let now = state(&format!("{run}?state"));
    assert_eq!((&now["going_on"], &now["finished"]), (&json!(false), &json!(2)));
    assert_eq!(state("?state")["going_on"], json!({}));
    let page = served.get(&run);
    assert!(page.body.contains(ENDED));
    // The page is the report, but for the script that follows.
    project.evals(&["report", "live", "--format", "html", "-o", "out.html"]).exits(0);
    let overview =
        |page: &str| page[page.find("<main id=\"overview\"").unwrap()..page.find("<script>").unwrap()].to_owned();
    assert_eq!(overview(&page.body), overview(&project.read("out.html")));
    // A run that is removed while it is served.
    fs::remove_dir_all(project.path(&format!(".evals/runs/{run}"))).unwrap();
    assert_eq!(state(&format!("{run}?state")), json!({"gone": true}));
    assert_eq!(served.get(&run).status, 404);
    served.get("").has("There are no runs in this folder.");
}

#[test]
fn a_killed_run_is_not_going_on() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.case("b", "", PASS);
    project.evals(&["run", "--jobs", "1"]).exits(0);
    let run = project.run_folder();
    let journal = project.read(&format!("{run}/journal.jsonl"));
    let kept: Vec<&str> = journal.lines().take(3).collect();
    project.write(&format!("{run}/journal.jsonl"), &format!("{}\n", kept.join("\n")));
    fs::remove_file(project.path(&format!("{run}/results.jsonl"))).unwrap();
    let served = Served::start(&project, &["latest"]);
    served.get("").has("incomplete").has("1 not run");
    let page = served.get(&served.opened);
    assert!(page.body.contains(ENDED) && !page.body.contains("v-running\" href"));
}

#[test]
fn what_cannot_be_served_is_told() {
    let project = Project::new();
    let runs = format!("there are no runs in {}", project.path(".evals/runs").display());
    project.evals(&["view", "--no-open"]).exits(2).says(&runs);
    project.evals(&["view", "--no-open", "x"]).exits(2).says("no run is called `x`");
    project.case("a", "", PASS);
    project.evals(&["run"]).exits(0);
    let served = Served::start(&project, &[]);
    let port = served.port.to_string();
    let said = project.evals(&["view", "--no-open", "--port", &port]).exits(2);
    said.says(&format!("could not listen on 127.0.0.1:{port}")).says("choose another port with --port");
    // A reader that goes away in the middle of a document, and one that never sends its head, take nothing from others.
    for _ in 0..20 {
        let stream = std::net::TcpStream::connect(("127.0.0.1", served.port)).unwrap();
        drop(stream);
    }
    served.get("").has("1 run");
    assert_eq!(served.end(Signal::TERM), 0);
}

#[test]
fn the_browser_gets_an_address_that_leads_in_once() {
    let mut project = Project::new();
    project.case("a", "", PASS);
    project.evals(&["run"]).exits(0);
    let told = project.path("told");
    project.write("browser.sh", &format!("echo \"$1\" > {0}.part; mv {0}.part {0}\n", told.display()));
    project.env("BROWSER", &format!("no-such-browser:sh {}", project.path("browser.sh").display()));
    let mut command = project.command(&["view", "latest"]);
    let mut child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let url = wait_for(|| fs::read_to_string(&told).ok());
    let served = Served::of(child.stdout.take().unwrap(), child);
    let path = url.trim().strip_prefix(&format!("http://127.0.0.1:{}", served.port)).unwrap().to_owned();
    assert!(!path.starts_with(&served.root) && path.ends_with(&served.opened), "{path}");
    let own = format!("127.0.0.1:{}", served.port);
    let answer = served.ask("GET", &path, &own);
    let to = format!("{}{}", served.root, served.opened);
    assert_eq!((answer.status, answer.header("location")), (303, Some(&*to)));
    assert_eq!(served.ask("GET", &path, &own).status, 403, "the address is used up");
}

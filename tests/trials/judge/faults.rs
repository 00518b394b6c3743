//! Every way in which a model's service fails: none of them is a pass or a fail.

use std::time::{Duration, Instant};

use serde_json::json;

use super::server::{Does, Got, Service, answer_of, finding, honest};
use super::{KEY, STEPS, TESTED, at};

fn passes(got: &Got) -> Does {
    honest(got).unwrap_or_else(|| answer_of(&[finding("tested", "pass", &[4], "passed")]))
}

const APIS: [&str; 2] = ["anthropic:m", "openai:m"];

#[test]
#[ignore = "slow: asks a judge many times"]
fn a_service_that_fails_leaves_it_ungraded_with_the_reason() {
    let faults = [
        (Does::Refuses(400, None), 1, "the model's service answered 400: no, not with "),
        (Does::Refuses(401, None), 1, "the model's service answered 401"),
        (Does::Refuses(404, None), 1, "the model's service answered 404"),
        (Does::Refuses(429, Some("0")), 2, "is busy: it answered 429"),
        (Does::Refuses(429, Some("9999")), 1, "is busy: it answered 429"),
        (Does::Refuses(529, None), 2, "is busy: it answered 529"),
        (Does::Refuses(503, None), 2, "2 tries"),
        (Does::Refuses(302, None), 1, "the model's service answered 302"),
        (Does::Cuts, 2, "was cut off"),
        (Does::Waits(Duration::from_secs(20)), 2, "did not answer within 4s"),
        (Does::Sends("this is no JSON"), 2, "is not valid for its API: it is not JSON"),
        (Does::Sends(""), 2, "is not valid for its API"),
        (Does::Sends("{\"hello\": 1}"), 2, "is not valid for its API: `c"),
        (Does::Sends("{\"error\": {\"message\": \"overloaded now\"}}"), 2, "it is an error: overloaded now"),
        (Does::Declines, 1, "the model declined to answer"),
        (Does::IsCutShort, 1, "exceeded its maximum length"),
        (Does::Says("{\"verdict\": \"pass\"}".to_owned()), 2, "does not have the requested form"),
        (Does::Says(String::new()), 2, "does not have the requested form: it is empty"),
    ];
    // Most of the time is waiting.
    std::thread::scope(|scope| {
        for ((does, requests, says), api) in faults.iter().flat_map(|fault| APIS.map(|api| (fault, api))) {
            scope.spawn(move || fails(does, *requests, says, api));
        }
    });
}

fn fails(does: &Does, requests: usize, says: &str, api: &str) {
    let fault = does.clone();
    let service = Service::start(move |got, _| honest(got).unwrap_or_else(|| fault.clone()));
    let mut project = at(&service);
    project.env("EVALS_MODEL_RETRIES", "1");
    // Long enough for other requests on a busy machine.
    project.env("EVALS_MODEL_TIMEOUT", "4s");
    project.case("a", &format!("graders: [{TESTED}]"), STEPS);
    let ran = project.evals(&["run", "--judge", api]).exits(3).says(says);
    assert!(!ran.out.contains(KEY) && !ran.err.contains(KEY), "{ran:?}");
    let result = project.result("a/demo/default/1");
    assert_eq!(result["grades"][0]["outcome"], "ungraded", "{does:?}");
    let asked = service.got().iter().filter(|got| !got.is_canary()).count();
    assert_eq!(asked, requests, "{does:?} {api}");
}

#[test]
fn what_passes_is_waited_for_and_asked_again() {
    let faults = [Does::Refuses(529, None), Does::Refuses(429, Some("1")), Does::Cuts, Does::Sends("{")];
    std::thread::scope(|scope| {
        for (fault, api) in faults.iter().flat_map(|fault| APIS.map(|api| (fault, api))) {
            scope.spawn(move || passes_after(fault, api));
        }
    });
}

fn passes_after(fault: &Does, api: &str) {
    let broken = fault.clone();
    // The very first request fails, which is one of a canary.
    let service = Service::start(move |got, before| if before == 0 { broken.clone() } else { passes(got) });
    let mut project = at(&service);
    project.env("EVALS_MODEL_RETRIES", "1");
    project.case("a", &format!("graders: [{TESTED}]"), STEPS);
    let begun = Instant::now();
    project.evals(&["run", "--judge", api]).exits(0);
    assert_eq!(service.got().len(), 5, "{fault:?}");
    if let Does::Refuses(429, _) = fault {
        assert!(begun.elapsed() >= Duration::from_secs(1), "it was asked to wait");
    }
}

#[test]
fn what_does_not_fit_is_asked_for_once_more_and_not_kept() {
    let service = Service::start(|got, before| if before == 3 { Does::Says("Pass!".to_owned()) } else { passes(got) });
    let project = at(&service);
    project.case("a", &format!("graders: [{TESTED}]"), STEPS);
    project.evals(&["run"]).exits(0);
    assert_eq!(service.got().len(), 5);
    let kept = project.files(".evals/cache/judge");
    assert_eq!(kept.len(), 4, "{:?}", kept.keys());
    assert!(kept.values().all(|bytes| !String::from_utf8_lossy(bytes).contains("Pass!")));
}

#[test]
fn a_service_that_is_not_there_is_told_as_that() {
    let mut project = crate::project::Project::new();
    project.env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    project.env("EVALS_MODEL_RETRIES", "1");
    project.case("a", &format!("graders: [{TESTED}]"), STEPS);
    // A service of the user's own requires no key.
    let ran = project.evals(&["run", "--judge", "openai:llama"]).exits(3);
    ran.says("openai:llama: the model's service cannot be reached").says("at http://127.0.0.1:9/v1");
    assert_eq!(project.result("a/demo/default/1")["grades"][0]["judge"]["model"], json!("openai:llama"));
}

#[test]
fn an_address_that_is_none_is_told_with_its_variable() {
    let mut project = crate::project::Project::new();
    project.env("ANTHROPIC_BASE_URL", "127.0.0.1:9");
    project.env("ANTHROPIC_API_KEY", KEY);
    project.case("a", &format!("graders: [{TESTED}]"), STEPS);
    project.evals(&["run"]).exits(3).says("ANTHROPIC_BASE_URL=`127.0.0.1:9` is not the address of a service");
    project.case("a", "interaction: {llm: {model: 'anthropic:m'}}", STEPS);
    project.evals(&["run"]).exits(2).says("ANTHROPIC_BASE_URL=`127.0.0.1:9` is not the address of a service");
}

#[test]
fn a_judge_is_asked_where_the_gateway_sends_requests_with_the_headers_that_it_adds() {
    let service = Service::start(|got, before| if before < 4 { passes(got) } else { Does::Refuses(401, None) });
    let mut project = crate::project::Project::new();
    project.env("EVALS_UPSTREAM_ANTHROPIC", &service.url);
    project.env("EVALS_UPSTREAM_HEADERS", "Authorization: Bearer of-the-company-proxy");
    project.case("a", &format!("graders: [{TESTED}]"), STEPS);
    project.evals(&["run"]).exits(0);
    assert_eq!(service.got()[0].key.as_deref(), Some("Bearer of-the-company-proxy"));
    let ran = project.evals(&["run", "--no-judge-cache"]).exits(3).says("the model's service answered 401");
    assert!(!ran.out.contains("company-proxy") && !ran.err.contains("company-proxy"), "{ran:?}");
    project.env("EVALS_UPSTREAM_HEADERS", "no header");
    project.evals(&["run"]).exits(3).says("EVALS_UPSTREAM_HEADERS has a line that is not `Name: value`");
    // An address of the user's own variable precedes.
    project.env("EVALS_UPSTREAM_HEADERS", "");
    project.env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9");
    project.env("EVALS_MODEL_RETRIES", "0");
    project.evals(&["run"]).exits(3).says("cannot be reached").says("at http://127.0.0.1:9");
}

#[test]
fn wrong_settings_of_the_environment_are_told() {
    let mut project = crate::project::Project::new();
    project.case("a", "", "steps: [{say: hi}]");
    project.env("EVALS_MODEL_RETRIES", "many");
    project.evals(&["run"]).exits(2).says("EVALS_MODEL_RETRIES=`many` is not a number from 0");
    project.env("EVALS_MODEL_RETRIES", "1");
    project.env("EVALS_MODEL_TIMEOUT", "soon");
    project.evals(&["run"]).exits(2).says("EVALS_MODEL_TIMEOUT: `soon` is not a length of time");
    assert!(!project.path(".evals").exists(), "nothing was started");
}

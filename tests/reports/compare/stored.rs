//! Run folders as a run leaves them, made by a test: any scores, costs and errors, without an agent.

use serde_json::{Value, json};

use crate::project::Project;

/// A run of one harness whose trials came out as told.
pub struct Stored {
    name: String,
    trials: Vec<Value>,
    cases: Vec<Value>,
    pub record: Value,
}

impl Stored {
    pub fn new(name: &str) -> Self {
        let manifest = json!({"name": "agent", "adapter": "acp", "command": ["agent"]});
        let record = json!({
            "version": 1, "run": name, "started": format!("2026-11-21T20:15:00.{:03}Z", name.len()), "evals": "0.1.0",
            "argv": ["run"], "options": {},
            "harnesses": [{"name": "agent", "origin": "built in", "digest": "d", "manifest": manifest}],
        });
        Self { name: name.to_owned(), trials: Vec::new(), cases: Vec::new(), record }
    }

    /// A case of an arm: a letter for each trial, `p` pass, `f` fail, `u` ungraded, `c` crashed, `r` rate limited.
    pub fn case(mut self, id: &str, arm: &str, trials: &str) -> Self {
        if self.cases.iter().all(|case| case["id"] != id) {
            self.cases.push(json!({"id": id, "path": format!("cases/{id}.yaml"), "digest": "d", "pass": "all",
                "threshold": 1.0, "limits": {}, "interaction": "auto-approve"}));
        }
        for (n, letter) in trials.chars().enumerate() {
            let (verdict, score, error) = match letter {
                'p' => ("pass", Some(1.0), None),
                'f' => ("fail", Some(0.0), None),
                'u' => ("ungraded", None, None),
                'c' => ("errored", None, Some("crashed")),
                _ => ("errored", None, Some("rate_limit")),
            };
            let mut result = json!({"case": id, "harness": "agent", "arm": arm, "trial": n + 1, "attempt": 1,
                "model": {}, "verdict": verdict, "warnings": [],
                "shape": [["read:Read"], [if verdict == "pass" { "edit:Edit" } else { "execute:Bash" }]],
                "grades": [{"name": "tests pass", "grader": "tests", "outcome": "scored", "value": score.unwrap_or(0.0),
                    "passed": score == Some(1.0), "weight": 1.0, "gate": false, "diagnostic": false, "reason": "r"}],
                "metrics": {"duration_ms": 1000 + 10 * n, "cost_usd": 0.5, "total_tokens": 1000,
                    "tool_calls": 2, "tool_calls_by_kind": {"read": 1, "edit": 1}}});
            if let Some(score) = score {
                result["score"] = json!(score);
            }
            if let Some(category) = error {
                result["error"] = json!({"category": category, "message": "m"});
            }
            self.trials.push(result);
        }
        self
    }

    /// Changes each case of the record.
    pub fn cases(mut self, change: impl Fn(&mut Value)) -> Self {
        self.cases.iter_mut().for_each(change);
        self
    }

    /// Changes each result.
    pub fn results(mut self, change: impl Fn(&mut Value)) -> Self {
        self.trials.iter_mut().for_each(change);
        self
    }

    /// Changes `run.json`.
    pub fn with(mut self, key: &str, value: Value) -> Self {
        self.record[key] = value;
        self
    }

    /// Writes it; the last `unfinished` trials were never run.
    pub fn write(mut self, project: &Project, unfinished: usize) {
        let place = |it: &Value| {
            json!({"case": it["case"], "harness": it["harness"], "arm": it["arm"], "trial": it["trial"],
                    "sandbox": it.get("sandbox").unwrap_or(&json!("none"))})
        };
        self.record["trials"] = self.trials.iter().map(place).collect();
        self.record["cases"] = self.cases.into();
        let done = &self.trials[..self.trials.len() - unfinished];
        let line = |it: &Value| {
            json!({"at": "t", "event": "finished", "case": it["case"], "harness": it["harness"], "model": it["arm"],
                "trial": it["trial"], "attempt": 1, "verdict": it["verdict"]})
        };
        let lines = |of: &dyn Fn(&Value) -> Value| done.iter().map(|it| format!("{}\n", of(it))).collect::<String>();
        let folder = format!(".evals/runs/{}", self.name);
        project.write(&format!("{folder}/journal.jsonl"), &lines(&line));
        project.write(&format!("{folder}/results.jsonl"), &lines(&Value::clone));
        project.write(&format!("{folder}/run.json"), &self.record.to_string());
    }
}

/// A run of one arm: so many cases for each of these outcomes.
pub fn of_cases(name: &str, outcomes: &[(usize, &str)]) -> Stored {
    let mut run = Stored::new(name);
    let mut number = 0;
    for (count, trials) in outcomes {
        for _ in 0..*count {
            run = run.case(&format!("c{number:02}"), "default", trials);
            number += 1;
        }
    }
    run
}

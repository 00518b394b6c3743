//! Skills and the cases of other tools: a problem can be shown, and a converted case can be loaded.

use std::fs;
use std::path::Path;

use evals::internal::case::{LoadContext, load_all};
use evals::internal::convert::{Choices, Format, write};
use evals::internal::skill::folders;
use miette::Severity;

use super::corpus::put;
use super::hunt::{Took, hunt};
use super::mutate::Form;
use super::written::refused;

const SKILL: &str = "---
name: damaged
description: >-
  Adds columns: use it
  for CSV files.
license: MIT
metadata: {author: a, version: '1'}
allowed-tools: Read Bash(git:*)
---

# Sums

See [the format](references/format.md#top), ![logo](assets/a%20b.png) and `scripts/run.sh`.

```sh
python scripts/run.py
```

[more]: references/more.md
";

#[test]
fn skill() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("damaged");
    fs::create_dir_all(folder.join("references")).unwrap();
    fs::write(folder.join("references/format.md"), "[x](more.md)\n").unwrap();
    hunt("skill reader", Form::Yaml, &[SKILL.into()], |input| {
        put(&folder.join("SKILL.md"), input);
        let linted = folders::lint(&folder)?;
        let (errors, warnings): (Vec<_>, Vec<_>) =
            linted.problems.into_iter().partition(|problem| problem.severity == Severity::Error);
        if !warnings.is_empty() {
            refused(&warnings)?;
        }
        let read = evals::internal::skill::read(&folder);
        if errors.is_empty() {
            // What has no errors is read by the name that it has.
            let name = read?.name;
            return if name == "damaged" { Ok(Took::Accepted) } else { Err(format!("read as {name}")) };
        }
        refused(&errors)
    });
}

/// Converted cases can be loaded.
fn converted(format: Format, path: &Path) -> Result<Took, String> {
    let converted = match format.convert(path, &Choices::default()) {
        Ok(converted) => converted,
        Err(errors) => return refused(&errors),
    };
    let out = tempfile::tempdir().unwrap();
    let converted = converted.checked(out.path()).map_err(|error| error.to_string())?;
    if converted.cases() == 0 {
        let has_reason = converted.all_notes().next().is_some();
        return if has_reason { Ok(Took::Rejected) } else { Err("no case, and no reason".to_owned()) };
    }
    write(&converted, out.path(), false).map_err(|error| error.to_string())?;
    let loaded = load_all(&[out.path().join("cases")], &LoadContext::default());
    let loaded = loaded.map_err(|errors| format!("not loaded: {}", errors[0]))?;
    if loaded.cases.len() == converted.cases() { Ok(Took::Accepted) } else { Err("a case was lost".to_owned()) }
}

#[test]
fn evals_json() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("SKILL.md"), SKILL).unwrap();
    fs::create_dir_all(root.path().join("evals/files")).unwrap();
    fs::write(root.path().join("evals/files/a.csv"), "a").unwrap();
    let path = root.path().join("evals/damaged.json");
    let evals = r#"{"skill_name": "sums", "evals": [{"id": 1, "name": "First: one", "prompt": "Add a.csv",
        "expected_output": "3", "files": ["evals/files/a.csv"], "expectations": ["It is 3", {"text": "No file"}]}]}"#;
    let triggers = r#"[{"query": "add", "should_trigger": true}, {"query": "sing", "should_trigger": false}]"#;
    hunt("evals.json reader", Form::Json, &[evals.into(), triggers.into()], |input| {
        put(&path, input);
        converted(Format::Agentskills, &path)
    });
}

#[test]
fn plugin_case() {
    let root = tempfile::tempdir().unwrap();
    let case = root.path().join("case");
    fs::create_dir_all(case.join("data")).unwrap();
    fs::write(case.join("data/a"), "a").unwrap();
    fs::write(case.join("set-up.sh"), "true\n").unwrap();
    let text = "schema_version: '1.1'
name: x
tags: [a]
runs: 2
context: {scaffold_script: set-up.sh, add_dirs: [data]}
execution: {prompt: Add., max_turns: 3, timeout_seconds: 60, env: {EVAL_A: b}, append_system_prompt: Be brief.}
graders:
  - {name: made, type: file_exists, path: '*.md', weight: 2}
  - {name: said, type: regex, pattern: '\\b3\\b', flags: i}
  - {name: used, type: tool_used, tool: Bash, input_match: wc, min: 1, max: 3}
  - {name: order, type: tool_order, before: Read, after: {tool: Edit}}
  - {name: judged, type: llm, criteria: PASS if it is 3., arm: with-only}
";
    hunt("plugin case reader", Form::Yaml, &[text.into()], |input| {
        put(&case.join("case.yaml"), input);
        converted(Format::ClaudePlugin, &case)
    });
}

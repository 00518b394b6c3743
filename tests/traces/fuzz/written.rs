//! What people write: an error always has words and can be shown, and what was taken can be used.

use std::fs;
use std::path::Path;

use evals::internal::case::{GraderFolder, LoadContext, load_all};
use evals::internal::demo::script::Script;
use evals::internal::grader::{self, GraderEntry};
use evals::internal::harness::Manifest;
use evals::internal::harness::catalog::Catalog;
use evals::internal::interaction::PolicyFolder;
use evals::internal::yaml;
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, NarratableReportHandler};

use super::corpus::{self, put};
use super::hunt::{Took, hunt};
use super::mutate::Form;

/// Refused with reasons, each of which can be shown.
pub(super) fn refused<E: Diagnostic + 'static>(errors: &[E]) -> Result<Took, String> {
    if errors.is_empty() {
        return Err("refused without a reason".to_owned());
    }
    for error in errors {
        if error.to_string().trim().is_empty() {
            return Err("an error without words".to_owned());
        }
        let graphical = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(110);
        let (mut text, mut told) = (String::new(), String::new());
        graphical.render_report(&mut text, error).map_err(|_| format!("cannot be shown: {error}"))?;
        NarratableReportHandler::new()
            .render_report(&mut told, error)
            .map_err(|_| format!("cannot be told: {error}"))?;
        if text.trim().is_empty() || told.trim().is_empty() {
            return Err(format!("nothing is shown of: {error}"));
        }
    }
    Ok(Took::Rejected)
}

/// A suite with the fixtures of all bundled cases, in which one file is damaged.
fn suite() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for group in corpus::folder("cases").iter().filter(|path| path.is_dir()) {
        for fixture in corpus::folder(group.join("fixtures")) {
            let name = fixture.file_name().unwrap();
            // Their places are looked at, and a few bytes stand for what is in them.
            if fixture.is_dir() {
                fs::create_dir_all(folder.path().join("fixtures").join(name)).unwrap();
                fs::write(folder.path().join("fixtures").join(name).join("a.txt"), "a").unwrap();
            }
        }
        for file in corpus::folder(group).iter().filter(|file| file.to_string_lossy().ends_with(".demo.yaml")) {
            fs::copy(file, folder.path().join(file.file_name().unwrap())).unwrap();
        }
    }
    folder
}

fn context() -> LoadContext {
    LoadContext {
        graders: GraderFolder::load(Path::new("graders")).unwrap(),
        policies: PolicyFolder::load(Path::new("policies")).unwrap(),
        without_agents: false,
    }
}

fn loaded(path: &Path, context: &LoadContext) -> Result<Took, String> {
    let loaded = match load_all(&[path.to_owned()], context) {
        Ok(loaded) => loaded,
        Err(errors) => return refused(&errors),
    };
    for case in &loaded.cases {
        case.digest().map_err(|error| format!("no digest: {error}"))?;
        if case.id.is_empty() || case.graders.is_empty() {
            return Err("a case without an id, or without a grader, was taken".to_owned());
        }
    }
    Ok(Took::Accepted)
}

/// A case that says something under most keys.
const CASE: &str = "id: some/case
description: 'a: b'
kind: capability
tags: [one, two]
turns:
  - first
  - |
    second
    line
workspace:
  files:
    a.txt: text
    b/c.txt: |
      more
  setup: [touch x]
interaction:
  scripted:
    rules:
      - {when: {kind: execute, command: '^rm'}, answer: reject-once}
    default: allow
limits: {time: 5m, idle: 30s, steps: 10, tool-calls: 20, tokens: 1000, cost-usd: 0.5, on-limit: grade}
pass: {trials: any, threshold: 0.5}
trials: 3
retries: {max: 2, on: [rate_limit, crashed]}
env: {A: b, C: 2}
graders:
  - output: {contains: [done, fine], weight: 2}
  - tool-calls: {require: [{kind: edit, path: 'src/**'}], forbid: [{kind: execute, input: 'rm -rf'}], max: 3}
  - budget: {time: 1m, tokens: 5000}
  - stop: {reason: [end_turn]}
  - use: finished
";

#[test]
fn case() {
    let (suite, context) = (suite(), context());
    fs::copy("cases/suite.yaml", suite.path().join("suite.yaml")).unwrap();
    let path = suite.path().join("damaged.yaml");
    let bundled = corpus::yaml("cases", |path| !path.ends_with(".demo.yaml") && !path.ends_with("suite.yaml"));
    let seeds: Vec<Vec<u8>> = bundled.into_iter().map(|(_, text)| text).chain([CASE.into()]).collect();
    hunt("case reader", Form::Yaml, &seeds, |input| {
        put(&path, input);
        loaded(&path, &context)
    });
}

#[test]
fn suite_file() {
    let (suite, context) = (suite(), context());
    let path = suite.path().join("good.yaml");
    fs::write(&path, "prompt: p\ngraders: [{output: {contains: x}}]\n").unwrap();
    let more = "tags: [a]\nlimits: {time: 1m}\ntrials: 2\ngraders: [{use: finished}]\nworkspace: {copy: fixtures}\n";
    let seeds = [fs::read("cases/suite.yaml").unwrap(), more.into()];
    hunt("suite reader", Form::Yaml, &seeds, |input| {
        put(&suite.path().join("suite.yaml"), input);
        loaded(&path, &context)
    });
}

#[test]
fn manifest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.yaml");
    let seeds: Vec<Vec<u8>> = corpus::yaml("harnesses", |_| true).into_iter().map(|(_, text)| text).collect();
    hunt("manifest reader", Form::Yaml, &seeds, |input| {
        put(&path, input);
        let catalog = match Catalog::load(&[], &folder.path().join("none"), std::slice::from_ref(&path)) {
            Ok(catalog) => catalog,
            Err(errors) => return refused(&errors),
        };
        for entry in catalog.entries() {
            let again = yaml::write(&*entry.manifest);
            // The folder is that of the file, and is not written.
            let written = Manifest { folder: None, ..(*entry.manifest).clone() };
            let read = yaml::parse::<Manifest>(&path, &again).map_err(|error| format!("{error}\n{again}"))?;
            if read != written || read.digest() != entry.manifest.digest() {
                return Err(format!("what was written is read otherwise: {again}"));
            }
        }
        Ok(Took::Accepted)
    });
}

#[test]
fn demo_script() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.demo.yaml");
    let mut seeds = corpus::yaml("cases", |path| path.ends_with(".demo.yaml"));
    seeds.extend(corpus::yaml("tests/demo", |_| true));
    let seeds: Vec<Vec<u8>> = seeds.into_iter().map(|(_, text)| text).collect();
    hunt("demo script reader", Form::Yaml, &seeds, |input| {
        put(&path, input);
        match Script::load(&path) {
            Err(errors) => refused(&errors),
            Ok(script) if script.turn(0).is_none() && script.turns.is_none() => Err("a script of nothing".to_owned()),
            Ok(_) => Ok(Took::Accepted),
        }
    });
}

#[test]
fn named_grader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.yaml");
    let seeds: Vec<Vec<u8>> = corpus::yaml("graders", |_| true).into_iter().map(|(_, text)| text).collect();
    let used: Vec<GraderEntry> = yaml::parse(Path::new("case.yaml"), "- use: damaged\n").unwrap();
    hunt("grader file reader", Form::Yaml, &seeds, |input| {
        put(&path, input);
        let graders = match GraderFolder::load(folder.path()) {
            Ok(graders) => graders,
            Err(errors) => return refused(&errors),
        };
        let library = graders.library();
        if let Err(errors) = library.get("damaged").unwrap().read() {
            refused(&errors)?;
        }
        match grader::expand(&used, &library) {
            Ok(graders) if graders.is_empty() => Err("no graders were taken for some".to_owned()),
            Ok(graders) => Ok(if grader::refuse_empty(&graders).is_ok() { Took::Accepted } else { Took::Rejected }),
            Err(error) if error.to_string().is_empty() => Err("an error without words".to_owned()),
            Err(_) => Ok(Took::Rejected),
        }
    });
}

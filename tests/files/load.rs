//! What people write is read as it is meant, or refused with its place, what was meant, and the way out.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use evals::internal::case::{self, Case, CaseKind, GraderFolder, LoadContext, LoadError, WorkspaceSource};
use evals::internal::harness::catalog::Catalog;
use evals::internal::ids::by_case_id;
use evals::internal::interaction::Interaction;
use evals::internal::limits::OnLimit;
use evals::internal::verdict::PassTrials;
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};
use proptest::prelude::*;

/// Files in a folder of their own.
struct Files(tempfile::TempDir);

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        Self(tempfile::tempdir().unwrap()).with(files)
    }

    fn with(self, files: &[(&str, &str)]) -> Self {
        for (path, text) in files {
            let path = self.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        self
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn context(&self) -> LoadContext {
        LoadContext { graders: GraderFolder::load(&self.path("graders")).unwrap(), ..LoadContext::default() }
    }

    fn load(&self, paths: &[&str]) -> Result<Vec<Case>, Vec<LoadError>> {
        let paths: Vec<PathBuf> = paths.iter().map(|path| self.path(path)).collect();
        case::load(&paths, &self.context())
    }

    fn cases(&self) -> Vec<Case> {
        self.load(&["cases"]).unwrap_or_else(|errors| panic!("{}", self.shown(&errors)))
    }

    /// The errors as a terminal shows them, without the folder they happen to be in.
    fn shown<E: Diagnostic>(&self, errors: &[E]) -> String {
        let mut text = String::new();
        for error in errors {
            let handler = GraphicalReportHandler::new_themed(GraphicalTheme::none()).with_width(1000);
            handler.render_report(&mut text, error).unwrap();
        }
        text.replace(&format!("{}/", self.0.path().display()), "").replace(self.0.path().to_str().unwrap(), ".")
    }

    /// The errors of the cases below a path.
    fn refused(&self, path: &str) -> String {
        match self.load(&[path]) {
            Ok(cases) => panic!("{} cases were read", cases.len()),
            Err(errors) => self.shown(&errors),
        }
    }
}

const GRADERS: &str = "graders: [{output: {contains: done}}]\n";

/// The errors of single cases, one after the other.
fn refused(cases: &[&str]) -> String {
    let mut all = String::new();
    for text in cases {
        let text = if text.contains("graders") { (*text).to_owned() } else { format!("{text}{GRADERS}") };
        let files = Files::new(&[("cases/a.yaml", &text), ("cases/there/x.txt", "x")]);
        writeln!(all, "{}", files.refused("cases")).unwrap();
    }
    all
}

const FULL: &str = r#"id: fix-off-by-one
description: one line
kind: regression
tags: [rust, bugfix]
prompt: |
  The last element is skipped. Fix it and run the tests.
system-prompt: Be brief.
workspace:
  copy: fixtures/off-by-one
  setup: ["cargo fetch"]
  ignore: ["target/**"]
  protect: ["tests/**"]
  protect-strict: true
hidden: fixtures/off-by-one.hidden
graders-home: shared
harnesses: [demo]
requires: {tracing: true}
interaction: {scripted: {rules: [{when: {kind: execute, command: "^rm"}, answer: reject-once}], default: allow}}
limits: {time: 5m, idle: 2m, steps: 40, tool-calls: 100, tokens: 200000, cost-usd: 2.0, on-limit: grade}
trials: 3
env: {RUST_BACKTRACE: "1", LEVEL: 2}
graders:
  - command: {run: cargo test, exit: 0, gate: true}
  - tool-calls: {require: [{kind: edit, path: "src/**"}], forbid: [{kind: execute, input: "rm -rf"}]}
  - budget: {cost-usd: 0.50}
  - use: mine
pass: {threshold: 0.9, trials: 0.8}
oracle: {copy: fixtures/off-by-one.oracle}
model: {script: fixtures/model.yaml}
require-model: true
answers: [{question: "which (one|file)", answer: the first}]
mcp-servers: {files: {command: serve}}
attachments: [fixtures/picture.png]
sandbox: {kind: bwrap, network: none}
retries: {max: 2, on: [rate_limit]}
critical: true
snapshot: {text: digest, normalise: [{regex: "\\d+ms", with: "Nms"}]}
"#;

fn full() -> Files {
    Files::new(&[
        ("cases/a/full.yaml", FULL),
        ("cases/a/full.demo.yaml", "steps: [{say: done}]"),
        ("cases/a/fixtures/off-by-one/config.yaml", "not: [a, case]"),
        ("cases/a/fixtures/off-by-one.hidden/t.yaml", "neither\nis: this"),
        ("cases/a/fixtures/off-by-one.oracle/x.rs", ""),
        ("cases/a/fixtures/model.yaml", "answers: []"),
        ("cases/a/fixtures/picture.png", "png"),
        ("graders/mine.yaml", "description: mine\noutput: {contains: done}\n"),
    ])
}

#[test]
fn every_key_of_a_case_is_read() {
    let files = full();
    let cases = files.cases();
    let [case] = cases.as_slice() else { panic!("{} cases", cases.len()) };
    let folder = files.path("cases/a/fixtures");
    assert_eq!((case.id.as_str(), case.kind), ("fix-off-by-one", CaseKind::Regression));
    assert_eq!(case.turns, ["The last element is skipped. Fix it and run the tests.\n"]);
    assert_eq!(case.workspace.source, WorkspaceSource::Copy(folder.join("off-by-one")));
    assert_eq!(case.workspace.setup, ["cargo fetch"]);
    assert!(case.workspace.protect_strict);
    assert_eq!(case.hidden, Some(folder.join("off-by-one.hidden")));
    assert_eq!(case.graders_home, case::GradersHome::Shared);
    assert_eq!(case.requires.tracing, Some(true));
    assert_eq!(case.requires.interaction, None);
    assert_eq!(case.interaction.word(), "scripted");
    assert_eq!(case.limits.time.map(|time| time.0.as_secs()), Some(300));
    assert_eq!(case.limits.cost_usd.map(|cost| cost.get()), Some(2.0));
    assert_eq!(case.limits.on_limit(), OnLimit::Grade);
    assert_eq!((case.trials, case.env["LEVEL"].as_str()), (3, "2"));
    assert_eq!(case.graders.len(), 4);
    assert_eq!(case.written_graders[3].named(), Some("mine"));
    assert!(case.named_graders.values().next().unwrap().starts_with("description: mine"));
    assert!(matches!(case.pass.trials, PassTrials::Share(share) if share.get() == 0.8));
    assert_eq!(case.oracle, Some(case::Oracle::Copy(folder.join("off-by-one.oracle"))));
    assert_eq!(case.model_script(), Some(&folder.join("model.yaml")));
    assert_eq!(case.mcp_servers, [serde_json::json!({"command": "serve", "name": "files"})]);
    assert_eq!(case.attachments, [folder.join("picture.png")]);
    assert!(case.answers[0].question.is_match("which file?"));
    assert_eq!(case.retries.max, Some(2));
    assert_eq!(case.snapshot.normalise[0].with, "Nms");
    assert_eq!(case.script(""), Some(files.path("cases/a/full.demo.yaml").as_path()));
    assert_eq!(case.cases_root, files.path("cases"));
    assert!(case.critical && case.require_model);
}

#[test]
fn what_is_not_written_has_its_default() {
    let files = Files::new(&[("cases/b/c.yaml", &format!("turns: [one, two]\n{GRADERS}"))]);
    let case = files.cases().remove(0);
    assert_eq!((case.id.as_str(), case.kind, case.trials), ("b/c", CaseKind::Capability, 1));
    assert_eq!(case.turns, ["one", "two"]);
    assert_eq!(case.workspace.source, WorkspaceSource::Empty);
    assert_eq!(case.interaction, Interaction::AutoApprove);
    assert_eq!(case.pass, case::Pass::default());
    assert_eq!(case.limits, evals::internal::limits::Limits::default());
    assert!(case.harnesses.is_empty() && case.demo_scripts.is_empty() && case.hidden.is_none());
}

#[test]
fn globs_that_match_nothing_and_texts_that_are_read_as_numbers_are_refused() {
    for (text, why) in [
        ("workspace: {protect: [/tests/**]}", "not a path within the workspace, so it protects nothing"),
        ("workspace: {protect: [../**]}", "not a path within the workspace, so it protects nothing"),
        ("workspace: {protect: ['tests\\**']}", "write `/` between folders"),
        ("workspace: {protect: ['**.lock']}", "as in `**/*.lock`"),
        ("graders: [{scope: {never: ['src/**.lock']}}]", "cases/a.yaml:2:28"),
        ("graders: [{output: {not-contains: 0xDEADBEEF}}]", "the number 0xDEADBEEF must be in quotes"),
        ("graders: [{output: {contains: +5}}]", "the number +5 must be in quotes"),
        ("graders: [{files: {contains: {h.c: 0o777}}}]", "cases/a.yaml:2:36"),
    ] {
        let said = refused(&[&format!("prompt: x\n{text}\n")]);
        assert!(said.contains(why), "{text}: {said}");
    }
}

#[test]
fn a_case_lies_over_its_suites() {
    let files = Files::new(&[
        (
            "cases/suite.yaml",
            "tags: [all]\ntrials: 5\nlimits: {time: 1m, steps: 3}\nenv: {A: outer, B: outer}\nhidden: common\n\
             harnesses: [x, y]\nworkspace: {copy: base, setup: [make]}\ngraders: [{output: {contains: outer}}]\n\
             interaction: {scripted: {rules: [{answer: allow-once}], default: cancel}}\n\
             mcp-servers: {a: {command: x, args: [1]}}\n",
        ),
        ("cases/common/x", ""),
        ("cases/base/x", ""),
        ("cases/in/suite.yaml", "tags: [inner, all]\nenv: {B: inner}\ngraders: [{output: {contains: inner}}]\n"),
        (
            "cases/in/c.yaml",
            "prompt: p\ntags: [own]\nlimits: {steps: 9}\nenv: {C: own}\nharnesses: [z]\n\
             workspace: {files: {a.txt: text}}\ngraders: [{output: {contains: own}}]\n\
             interaction: {scripted: {rules: [{answer: reject-once}]}}\nmcp-servers: {a: {command: y}}\n",
        ),
    ]);
    let case = files.cases().remove(0);
    assert_eq!(case.tags, ["all", "inner", "own"]);
    assert_eq!((case.trials, case.limits.steps), (5, Some(9)));
    assert_eq!(case.limits.time.map(|time| time.0.as_secs()), Some(60));
    let env: Vec<&str> = case.env.values().map(String::as_str).collect();
    assert_eq!(env, ["outer", "inner", "own"]);
    assert_eq!(case.hidden, Some(files.path("cases/common")));
    assert_eq!(case.harnesses, ["z"]);
    assert!(matches!(&case.workspace.source, WorkspaceSource::Files(files) if files["a.txt"] == "text"));
    assert_eq!(case.workspace.setup, ["make"]);
    assert_eq!(case.mcp_servers[0]["command"], "y");
    assert_eq!(case.mcp_servers[0]["args"], serde_json::json!([1]));
    let Interaction::Scripted(scripted) = &case.interaction else { panic!() };
    assert_eq!(scripted.rules[0].answer, evals::internal::interaction::Answer::RejectOnce);
    assert_eq!(scripted.default, Some(evals::internal::interaction::DefaultAnswer::Cancel));
    let from: Vec<PathBuf> = case.written_graders.iter().map(|grader| grader.source.file.clone()).collect();
    assert_eq!(
        from,
        [files.path("cases/suite.yaml"), files.path("cases/in/suite.yaml"), files.path("cases/in/c.yaml")]
    );
}

#[test]
fn ids_count_from_the_root_whatever_path_is_asked_for() {
    let text = format!("prompt: p\n{GRADERS}");
    let files = Files::new(&[
        ("cases/a.yaml", &text),
        ("cases/deep/er/b.yaml", &text),
        ("cases/deep/.hidden/c.yaml", "not: read"),
        ("cases/a.demo.yaml", "not: read"),
        ("elsewhere/x/d.yaml", &text),
        ("suites/suite.yaml", "tags: [s]\n"),
        ("suites/x/e.yaml", &text),
    ]);
    let ids = |paths: &[&str]| -> Vec<String> { files.load(paths).unwrap().into_iter().map(|case| case.id).collect() };
    assert_eq!(ids(&["cases"]), ["a", "deep/er/b"]);
    assert_eq!(ids(&["cases/deep"]), ["deep/er/b"]);
    assert_eq!(ids(&["cases/deep/er/b.yaml", "cases", "cases"]), ["a", "deep/er/b"]);
    assert_eq!(ids(&["elsewhere"]), ["x/d"]);
    assert_eq!(ids(&["elsewhere/x/d.yaml"]), ["d"]);
    assert_eq!(ids(&["suites/x"]), ["x/e"]);
    assert_eq!(files.load(&["suites/x/e.yaml"]).unwrap()[0].tags, ["s"]);
}

#[test]
fn links_that_lead_in_circles_end() {
    let files = Files::new(&[("cases/a/b.yaml", &format!("prompt: p\n{GRADERS}"))]);
    std::os::unix::fs::symlink(files.path("cases"), files.path("cases/a/up")).unwrap();
    assert_eq!(files.cases().len(), 1);
}

#[test]
fn a_digest_follows_all_that_a_case_is_made_from() {
    let mut digests = std::collections::BTreeSet::new();
    let mut digest = |files: &Files| digests.insert(files.cases()[0].digest().unwrap());
    let files = full();
    assert!(digest(&files));
    let files = full();
    assert!(!digest(&files), "the same case elsewhere has the same digest");
    let files = files.with(&[("cases/a/fixtures/off-by-one.hidden/new.rs", "")]);
    assert!(digest(&files));
    let files = files.with(&[("cases/a/fixtures/off-by-one/config.yaml", "other")]);
    assert!(digest(&files));
    let files = files.with(&[("graders/mine.yaml", "output: {contains: other}\n")]);
    assert!(digest(&files));
    let files = files.with(&[("cases/suite.yaml", "tags: [x]\n")]);
    assert!(digest(&files));
    let files = files.with(&[("cases/a/full.yaml", &format!("{FULL}# changed\n"))]);
    assert!(digest(&files));
    // What graders compare with, in the case and in named graders, which count from the case or from their own folder.
    let compared = [
        ("cases/a/full.yaml", "prompt: p\ngraders: [{files: {equals: {a: wanted.txt}}}, {use: same}]\n"),
        ("graders/same.yaml", "files: {equals: {b: other.txt}}\n"),
    ];
    let files = Files::new(&compared);
    assert!(digest(&files));
    for changed in ["cases/a/wanted.txt", "graders/other.txt"] {
        for text in ["one\n", "two\n"] {
            std::fs::write(files.path(changed), text).unwrap();
            assert!(digest(&files), "{changed} is not part of the digest");
        }
    }
}

#[test]
fn keys_that_are_not_known_are_refused() {
    let shown = refused(&[
        "prompt: a\nlimts: {time: 5m}\n",
        "prompt: a\nlimits: {time: 5m, tool_calls: 3}\n",
        "prompt: a\ninteraction: {scripted: {rules: [{when: {kid: edit}, answer: allow-once}]}}\n",
        "prompt: a\ninteraction: auto-aprove\n",
        "prompt: a\ninteraction: {scripted: {rules: [{when: {kind: write}, answer: allow}]}}\n",
        "prompt: a\nworkspace:\n  files: {a: b}\n  git:\n    rve: abc\n",
        "prompt: a\nprompt: b\n",
        "zzz: a\n",
    ]);
    insta::assert_snapshot!(shown);
}

#[test]
fn values_that_are_none_are_refused() {
    let shown = refused(&[
        "prompt: [a, b]\n",
        "prompt: a\ntrials: 0\n",
        "prompt: a\ntrials: many\n",
        "prompt: a\nlimits: {time: 5 parsecs}\n",
        "prompt: a\nlimits: {time: 366d}\n",
        "prompt: a\nlimits: {cost-usd: -1}\n",
        "prompt: a\nlimits: {idle: 0s, steps: -2}\n",
        "prompt: a\nlimits: {idle: 0s}\n",
        "prompt: a\npass: {threshold: 1.5}\n",
        "prompt: a\npass: {trials: most}\n",
        "prompt: a\npass: {trials: 75%}\n",
        "prompt: a\npass: {trials: 3}\n",
        "prompt: a\ntags: rust\n",
        "prompt: a\ntags: rust, sh\n",
        "prompt: a\nenv: [A=1]\n",
        "prompt: a\nrequires: [tracing]\n",
        "prompt: a\ngraders: [{command: [make, test]}]\n",
        "prompt: a\ngraders: [{files: {exists: a.txt}}]\n",
        "prompt: a\nanswers: [{question: '(', answer: b}]\n",
        "prompt: a\nretries: {on: [rate-limit]}\n",
        "prompt: a\nretries: 3\n",
        "prompt: a\nworkspace: template\n",
        "prompt: a\nsandbox: bwarp\n",
        "prompt: a\nmcp-servers: [{command: x}]\n",
        "prompt: a\nenv: {'A=B': c}\n",
        "prompt: a\nworkspace: {ignore: ['a', 'x[']}\n",
        "prompt: a\ninteraction: {scripted: {rules: [{answer: allow-once}, {when: {nth: 0}, answer: cancel}]}}\n",
        "prompt: a\ngraders:\n- output:\n  contains: x\n",
    ]);
    insta::assert_snapshot!(shown);
}

#[test]
fn keys_of_cases_and_suites_without_a_value_are_refused() {
    for (text, wanted) in [
        ("workspace: {files: {a: b}, protect: [a], protect-strict: }", "`workspace.protect-strict` must be `true` or"),
        ("interaction:", "`interaction` must be a word, or a map with one key, found nothing"),
        ("interaction: {scripted: {rules: , default: reject}}", "`interaction.scripted.rules` must be a list, found"),
        (
            "interaction: {scripted: {rules: [{when: , answer: allow-once}]}}",
            "`interaction.scripted.rules[0].when` must",
        ),
        ("critical: ~", "`critical` must be `true` or `false`, found nothing"),
        ("hidden:", "`hidden` must be a path, found nothing"),
        ("requires: {tracing: }", "`requires.tracing` must be `true` or `false`, found nothing"),
        ("limits: {time: }", "`limits.time` must be"),
        ("tags:", "`tags` must be a list, found nothing"),
        ("mcp-servers:", "`mcp-servers` must be a value, found nothing"),
    ] {
        let case = format!("prompt: a\n{text}\n{GRADERS}");
        let suite = format!("{text}\n");
        let of_case = Files::new(&[("cases/a.yaml", &case)]).refused("cases");
        assert!(of_case.contains("cases/a.yaml:2:") && of_case.contains(wanted), "{of_case}");
        let files = Files::new(&[("cases/a.yaml", &format!("prompt: a\n{GRADERS}")), ("cases/suite.yaml", &suite)]);
        let of_suite = files.refused("cases");
        assert!(of_suite.contains("cases/suite.yaml:1:") && of_suite.contains(wanted), "{of_suite}");
    }
    let manifest = "name: x\nadapter: acp\ncommand: [x]\nunattended-modes:\n";
    let error = catalog(&Files::new(&[("harnesses/x.yaml", manifest)]), &[]).map(|_| ()).unwrap_err();
    assert!(error.contains("x.yaml:4:") && error.contains("`unattended-modes` must be a list"), "{error}");
}

/// Returns the example of a map in a message.
fn example(message: &str) -> Option<&str> {
    message.split_once("a map such as `")?.1.split('`').next()
}

#[test]
fn a_wrong_shape_is_answered_with_an_example_that_is_read() {
    for kind in evals::internal::grader::Kind::WORDS {
        let files = Files::new(&[("cases/a.yaml", &format!("prompt: a\ngraders: [{{{kind}: 1.5}}]\n"))]);
        let message = files.refused("cases");
        let example = example(&message).unwrap_or_else(|| panic!("{kind}: {message}"));
        // What an example lacks is said by name, such as a model for a judge.
        let case =
            format!("prompt: a\ngraders: [{{{kind}: {}}}]\n", example.replace('…', "{eventually: {kind: edit}}"));
        let files = Files::new(&[("cases/a.yaml", &case)]);
        let read = files.load(&["cases"]);
        assert!(read.is_ok(), "{kind}: {case}{}", files.shown(&read.unwrap_err()));
    }
    for key in ["requires", "session", "workspace", "limits", "pass", "retries", "snapshot", "oracle"] {
        let message = refused(&[&format!("prompt: a\n{key}: 1.5\n")]);
        assert!(example(&message).is_some(), "{key}: {message}");
    }
}

#[test]
fn cases_that_contradict_themselves_are_refused() {
    let shown = refused(&[
        "",
        "prompt: a\nturns: [b]\n",
        "prompt: '  '\n",
        "turns: [a, '']\n",
        "prompt: a\ngraders: []\n",
        "description: no prompt\n",
        "id: a/../b\nprompt: a\n",
        "prompt: a\nworkspace: {copy: there, files: {a: b}}\n",
        "prompt: a\nworkspace:\n  files:\n    ok.txt: fine\n    ../x: out\n    /etc/x: out\n    ok.txt/y: in a file\n",
        "prompt: a\nworkspace: {copy: missing}\nhidden: there/x.txt\noracle: {copy: a, script: b.demo.yaml}\n",
        "prompt: a\nworkspace: {copy: there}\nhidden: there\n",
        "prompt: a\nworkspace: {copy: .}\n",
        "prompt: a\nworkspace: {git: {path: there, url: 'https://example.com/x', rev: --upload-pack=x}}\n",
        "prompt: a\ngraders: [{use: nobody}, {use: {grader: no-one}}]\n",
    ]);
    insta::assert_snapshot!(shown);
}

#[test]
fn all_errors_of_all_files_are_reported_together() {
    let text = format!("prompt: p\n{GRADERS}");
    let files = Files::new(&[
        ("cases/a.yaml", "prompt: p\nid: same\ngraders: [{output: {contains: x}}]\n"),
        ("cases/b/c.yaml", "id: same\nprompt: p\ngraders: [{output: {contains: x}}]\n"),
        ("cases/b/d.yaml", "prompt: a: b\n"),
        ("cases/broken-suite/suite.yaml", "id: x\ntrials: none\n"),
        ("cases/broken-suite/e.yaml", &text),
        ("cases/suite-with-prompt/suite.yaml", "prompt: x\noracle: {copy: y}\n"),
        ("cases/suite-with-prompt/f.yaml", &text),
        ("cases/leak/suite.yaml", "workspace: {copy: base}\n"),
        ("cases/leak/base/secret/x", ""),
        ("cases/leak/h.yaml", &format!("prompt: p\nhidden: base/secret\n{GRADERS}")),
        ("cases/g.yaml", "workspace: {copy: fixture}\nprompt: [\n"),
        ("cases/fixture/not-a-case.yaml", "a: b\n"),
    ]);
    std::fs::write(files.path("cases/latin1.yaml"), b"prompt: caf\xe9\n").unwrap();
    let shown = files.refused("cases");
    insta::assert_snapshot!(shown);
}

#[test]
fn what_the_agent_must_not_see_is_found_behind_links_and_as_a_script() {
    let files = Files::new(&[
        ("cases/shared/hidden/x", ""),
        ("cases/shared/b.demo.yaml", "steps: [{say: done}]\n"),
        ("cases/a.yaml", &format!("prompt: p\nworkspace: {{copy: app}}\nhidden: shared/hidden\n{GRADERS}")),
        (
            "cases/b.yaml",
            &format!("prompt: p\nworkspace: {{copy: shared}}\noracle: {{script: shared/b.demo.yaml}}\n{GRADERS}"),
        ),
    ]);
    let files = files.with(&[("cases/c.yaml", &format!("prompt: p\nworkspace: {{copy: same}}\n{GRADERS}"))]);
    for (target, link) in [("shared", "cases/app"), (".", "cases/same")] {
        std::os::unix::fs::symlink(target, files.path(link)).unwrap();
    }
    let shown = files.refused("cases");
    assert!(shown.contains("cases/c.yaml:2:19: the workspace would contain this file"), "{shown}");
    for place in ["cases/a.yaml:3:9: `cases/shared/hidden`", "cases/b.yaml:3:18: `cases/shared/b.demo.yaml`"] {
        assert!(shown.contains(&format!("{place} is in the folder that the agent works in")), "{shown}");
    }
}

#[test]
fn what_the_agent_must_not_see_is_in_no_skill_instruction_file_or_attachment() {
    let files = Files::new(&[
        ("cases/skill/SKILL.md", "---\nname: skill\ndescription: x\n---\n"),
        ("cases/skill/h/t.sh", ""),
        ("cases/o/s.md", ""),
        ("cases/n.md", ""),
        ("cases/a.yaml", &format!("prompt: p\nhidden: skill/h\nskills: [skill]\n{GRADERS}")),
        ("cases/b.yaml", &format!("prompt: p\nhidden: skill/h\nattachments: [n.md, skill/h/t.sh]\n{GRADERS}")),
        ("cases/c.yaml", &format!("prompt: p\noracle: {{copy: o}}\ninstructions: o/s.md\n{GRADERS}")),
        ("cases/d.yaml", &format!("prompt: p\nattachments: [d.yaml]\n{GRADERS}")),
        ("cases/g/SKILL.md", "---\nname: g\ndescription: x\n---\n"),
        ("cases/g/check.sh", ""),
        ("cases/e.yaml", "prompt: p\nskills: [g]\ngraders: [{script: {run: [sh, g/check.sh]}}]\n"),
        ("cases/f.yaml", "prompt: p\nattachments: [n.md]\ngraders: [{files: {equals: {x.md: n.md}}}]\n"),
        ("cases/hid/sub/x", ""),
        ("cases/h.yaml", &format!("prompt: p\nworkspace: {{copy: hid/sub}}\nhidden: hid\n{GRADERS}")),
    ]);
    let shown = files.refused("cases");
    for error in [
        "cases/a.yaml:3:10: `cases/skill` contains `cases/skill/h`, which the agent must not see",
        "cases/b.yaml:3:21: `cases/skill/h/t.sh` is in `cases/skill/h`, which the agent must not see",
        "cases/c.yaml:3:15: `cases/o/s.md` is in `cases/o`, which the agent must not see",
        "cases/d.yaml:2:15: the agent must not see `cases/d.yaml`, which belongs to its case",
        "cases/e.yaml:2:10: `cases/g` contains `cases/g/check.sh`, which the agent must not see",
        "cases/h.yaml:3:9: `cases/hid` contains the folder that the agent works in, `cases/hid/sub`",
    ] {
        assert!(shown.contains(error), "{error}\n{shown}");
    }
    assert!(!shown.contains("cases/f.yaml"), "an agent may have to copy an attachment: {shown}");
    // Where no agent is started, nothing can be shown to it.
    let context = LoadContext { without_agents: true, ..LoadContext::default() };
    assert_eq!(case::load(&[files.path("cases")], &context).unwrap().len(), 7);
}

#[test]
fn cases_in_a_folder_of_their_skill_are_read_and_beside_its_skill_md_refused() {
    let files = Files::new(&[
        ("skills/s/SKILL.md", "---\nname: s\ndescription: x\n---\n"),
        ("skills/s/evals/suite.yaml", "skills: [..]\n"),
        ("skills/s/evals/a.yaml", &format!("prompt: p\nhidden: a.hidden\n{GRADERS}")),
        ("skills/s/evals/a.hidden/x", ""),
    ]);
    assert_eq!(case::load(&[files.path("skills/s/evals")], &LoadContext::default()).unwrap().len(), 1);
    let files = files.with(&[
        ("skills/s/evals/b.yaml", &format!("prompt: p\nhidden: ../h\n{GRADERS}")),
        ("skills/s/h/x", ""),
        ("skills/t/SKILL.md", "---\nname: t\ndescription: x\n---\n"),
        ("skills/t/suite.yaml", "skills: [.]\n"),
        ("skills/t/a.yaml", &format!("prompt: p\n{GRADERS}")),
        ("skills/t/b.yaml", &format!("prompt: p\n{GRADERS}")),
    ]);
    let shown = files.refused("skills");
    assert!(shown.contains("`skills/s` contains `skills/s/h`, which the agent must not see"), "{shown}");
    assert_eq!(shown.matches("`skills/t` contains cases whose agents get it").count(), 1, "{shown}");
}

#[test]
fn many_files_are_read_as_a_few_are() {
    // `b` names a folder of the same depth, whose files are no cases.
    let mut files = Files::new(&[
        ("cases/suite.yaml", "tags: [of-suite]\n"),
        ("cases/b/x.yaml", "prompt: x\nworkspace: {copy: ../c}\ngraders: [{stop: {reason: [end_turn]}}]\n"),
    ]);
    for number in 0..150 {
        let case = format!("prompt: do {number}\ngraders: [{{output: {{contains: '{number}'}}}}]\n");
        files = files
            .with(&[(&format!("cases/a/n{number}.yaml"), &case), (&format!("cases/c/n{number}.yaml"), "no case: [")]);
    }
    let cases = files.cases();
    assert_eq!(cases.len(), 151);
    assert!(cases.iter().all(|case| case.tags == ["of-suite"]));
    assert!(cases.is_sorted_by_key(|case| &case.id));
    for number in 0..150 {
        let id = format!("a/n{number}");
        let case = by_case_id(&cases, &id).unwrap();
        assert_eq!((&case.id, &case.turns), (&id, &vec![format!("do {number}")]));
    }
    // Errors are those of each file, in the order of the files.
    let files = files.with(&[("cases/a/n7.yaml", "prompt: 7\ngrader: x\n"), ("cases/a/n120.yaml", "prompt: [\n")]);
    let shown = files.refused("cases");
    let at = |file: &str| shown.find(file).unwrap_or_else(|| panic!("{file}: {shown}"));
    assert!(at("a/n120.yaml") < at("a/n7.yaml") && !shown.contains("cases/c/"), "{shown}");
}

#[test]
fn a_case_is_found_by_its_id_in_lists_of_any_order() {
    let one = |id: &str| format!("id: {id}\nprompt: x\ngraders: [{{stop: {{reason: [end_turn]}}}}]\n");
    let mut cases =
        Files::new(&[("cases/a.yaml", &one("z")), ("cases/b.yaml", &one("m")), ("cases/c.yaml", &one("a"))]).cases();
    for _ in 0..2 {
        assert!(["a", "m", "z"].iter().all(|id| by_case_id(&cases, id).is_some_and(|case| case.id == *id)));
        assert!(by_case_id(&cases, "q").is_none());
        cases.reverse();
    }
}

#[test]
fn paths_without_cases_are_refused() {
    let files = Files::new(&[
        ("empty/x.yml", "prompt: p\n"),
        ("empty/readme.md", ""),
        ("cases/suite.yaml", "tags: [a]\n"),
        ("cases/x.demo.yaml", ""),
    ]);
    let mut all = String::new();
    for path in ["nowhere", "empty", "empty/x.yml", "empty/readme.md", "cases/suite.yaml", "cases/x.demo.yaml", "cases"]
    {
        writeln!(all, "{}", files.refused(path)).unwrap();
    }
    insta::assert_snapshot!(all);
}

fn catalog(files: &Files, extra: &[&str]) -> Result<Catalog, String> {
    let extra: Vec<PathBuf> = extra.iter().map(|path| files.path(path)).collect();
    let built_in = [("demo", "name: demo\nadapter: acp\ncommand: ['{self}', demo]\n")];
    Catalog::load(&built_in, &files.path("harnesses"), &extra).map_err(|errors| files.shown(&errors))
}

#[test]
fn the_last_manifest_of_a_name_wins() {
    let files = Files::new(&[
        ("harnesses/demo.yaml", "name: demo\nadapter: acp\ncommand: [mine]\n"),
        ("harnesses/other.yaml", "name: strange\nadapter: output-only\ncommand: [echo, '{prompt}']\nhome: user\n"),
        ("extra.yaml", "name: demo\nadapter: acp\ncommand: [extra]\n"),
    ]);
    let by_folder = catalog(&files, &[]).unwrap();
    let demo = by_folder.get("demo").unwrap();
    assert_eq!((demo.manifest.command[0].as_str(), by_folder.names()), ("mine", vec!["demo", "strange"]));
    assert!(demo.origin.to_string().ends_with("harnesses/demo.yaml"));
    assert!(by_folder.warnings().next().unwrap().contains("the harness name `strange` differs from its file name"));
    let by_file = catalog(&files, &["extra.yaml"]).unwrap();
    assert_eq!(by_file.get("demo").unwrap().manifest.command, ["extra"]);
    assert_ne!(by_file.get("demo").unwrap().manifest.digest(), demo.manifest.digest());
    let built_in = catalog(&Files::new(&[]), &[]).unwrap();
    assert_eq!(built_in.get("demo").unwrap().origin.to_string(), "built in");
    let error = by_folder.get("dmeo").unwrap_err();
    assert!(error.help.starts_with("did you mean `demo`?"), "{}", error.help);
    let asked = [files.path("extra.yaml").display().to_string(), "strange".to_owned()];
    let (_, names) = Catalog::for_command(&files.path("harnesses"), &asked).unwrap();
    assert_eq!(names, ["demo", "strange"]);
}

#[test]
fn manifests_that_are_wrong_are_refused() {
    let mut all = String::new();
    for text in [
        "name: x\nadapter: acp\n",
        "adapter: acp\ncommand: [x]\n",
        "name: x\nadapter: apc\ncommand: [x]\n",
        "name: x\nadapter: acp\ncomand: [x]\n",
        "name: x\nadapter: acp\ncommand: [x]\nmodel: {via: flag}\n",
        "name: x\nadapter: acp\ncommand: [x]\nmodel: {via: env}\nfiles: {../x: y}\nhome: {copy: [a, /etc/passwd]}\njobs: 0\n",
        "name: x\nadapter: acp\ncommand: [x]\nhome: {cpy: [a]}\n",
        "name: x\nadapter: acp\ncommand: [x]\nhome: mine\n",
        "name: x\nadapter: acp\ncommand: [x]\ntool-kinds: {Bash: run}\n",
        "name: x\nadapter: acp\ncommand: [x]\nerror-text: ['(']\n",
    ] {
        let files = Files::new(&[("harnesses/x.yaml", text)]);
        let error = catalog(&files, &[]).map(|catalog| catalog.names().len()).unwrap_err();
        writeln!(all, "{error}").unwrap();
    }
    insta::assert_snapshot!(all);
}

#[test]
fn skills_of_manifests_that_are_wrong_are_refused() {
    let mut all = String::new();
    for text in [
        "skills: {project: /etc/skills, user: ../skills}\ninstructions: {project: a/../b, user: \"\"}\n",
        "skills: {projekt: a}\n",
        "skills: {used-by: []}\n",
        "instructions: {built-in: [a]}\n",
        "skills:\n  used-by:\n    - {name: Skill, args: {skill: '{skill}'}}\n    - {}\n",
        "skills:\n  used-by:\n    - {name: Skill}\n",
        "skills:\n  used-by:\n    - {nmae: '{skill}'}\n",
        "skills:\n  used-by:\n    - {kind: reed, path: '{skill}'}\n",
        "skills:\n  used-by:\n    - {name: '{skill}', status: any}\n",
        "skills:\n  used-by:\n    - {args: {skill: '{skill}'}, match-args: ignore}\n",
        "skills:\n  used-by:\n    - {path: 'skills/{skill}*/SKILL.md'}\n",
        "skills:\n  used-by:\n    - {command: 'skills/{skill}'}\n",
        "skills:\n  used-by:\n    - {command: '/{skill}/?x'}\n",
        "skills:\n  used-by:\n    - {command: '(/{skill}/'}\n",
    ] {
        let files = Files::new(&[("harnesses/x.yaml", &format!("name: x\nadapter: acp\ncommand: [x]\n{text}"))]);
        let error = catalog(&files, &[]).map(|catalog| catalog.names().len()).unwrap_err();
        writeln!(all, "{error}").unwrap();
    }
    insta::assert_snapshot!(all);
}

#[test]
fn harnesses_that_nobody_knows_are_told_where_they_are_named() {
    let files = Files::new(&[
        ("cases/suite.yaml", "harnesses: [demo, dmeo]\n"),
        ("cases/a.yaml", &format!("prompt: p\n{GRADERS}")),
        ("cases/b.yaml", &format!("prompt: p\nharnesses: [other]\n{GRADERS}")),
        ("cases/c.yaml", &format!("prompt: p\n{GRADERS}")),
    ]);
    let errors = case::check_harnesses(&files.cases(), &catalog(&files, &[]).unwrap());
    let shown = files.shown(&errors);
    insta::assert_snapshot!(shown);
}

#[test]
fn schemas_know_every_key_that_is_read() {
    for kind in evals::internal::schema::KINDS {
        let schema = evals::internal::schema::schema(kind).unwrap();
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{kind}");
        let text = schema.to_string();
        for (at, _) in text.match_indices("\"#/$defs/") {
            let name = text[at + 9..].split('"').next().unwrap();
            assert!(schema["$defs"].get(name).is_some(), "{kind} has no definition of {name}");
        }
    }
    assert!(evals::internal::schema::schema("nothing").is_none());
    let case = evals::internal::schema::schema("case").unwrap();
    assert_eq!(case["oneOf"][1]["required"][0], "turns");
    assert_eq!(case["additionalProperties"], false);
    let full: serde_json::Value = evals::internal::yaml::parse(Path::new("full.yaml"), FULL).unwrap();
    for (key, value) in full.as_object().unwrap() {
        let property = &case["properties"][key];
        assert!(!property.is_null(), "the schema of a case does not know `{key}`");
        let Some(inner) = value.as_object() else { continue };
        let text = property.to_string() + &case["$defs"].to_string();
        let open = ["env", "mcp-servers", "sandbox"].contains(&key.as_str());
        assert!(open || inner.keys().all(|key| text.contains(&format!("\"{key}\""))), "{key}: {text}");
    }
    let suite = evals::internal::schema::schema("suite").unwrap();
    assert!(suite["properties"].get("prompt").is_none() && suite["properties"].get("trials").is_some());
}

proptest! {
    #![proptest_config(crate::properties::tries(200))]

    #[test]
    fn no_text_panics_the_loader(cut in 0..FULL.len(), junk in "\\PC{0,12}|[-\\[\\]{}:,&*!|>'\"#\t\n ]{0,12}", drop in 0..40_usize) {
        let mut text = FULL.to_owned();
        let end = text.ceil_char_boundary((cut + drop).min(text.len()));
        text.replace_range(cut..end, &junk);
        let files = full().with(&[("cases/a/full.yaml", &text), ("cases/suite.yaml", &junk), ("harnesses/x.yaml", &text)]);
        if let Err(errors) = files.load(&["cases"]) {
            prop_assert!(!files.shown(&errors).is_empty());
        }
        prop_assert!(catalog(&files, &[]).is_err());
    }
}

#[test]
fn folders_that_are_laid_over_the_workspace_do_not_hold_the_case() {
    for keys in ["hidden: .", "hidden: ''", "hidden: ../cases", "oracle: {copy: .}", "oracle: {copy: ..}"] {
        let shown = refused(&[&format!("prompt: a\n{keys}\n")]);
        let is_told = shown.contains("cases/a.yaml:2:") && shown.contains("the folder contains this file");
        assert!(is_told, "{keys}: {shown}");
    }
}

#[test]
fn servers_and_variables_that_cannot_be_meant_are_refused() {
    for (keys, why) in [
        ("mcp-servers: {x: {comand: srv}}", "unknown key `comand` of an MCP server"),
        ("mcp-servers: [{name: x, command: ''}]", "`command` of an MCP server is empty"),
        ("mcp-servers: {x: {command: srv, url: 'http://x'}}", "both `command` and `url`"),
        ("mcp-servers: {x: {}}", "neither `command` nor `url`"),
        ("env: {A: null}", "the value of `A` is null"),
        ("env: {A: ~}", "the value of `A` is null"),
    ] {
        let shown = refused(&[&format!("prompt: a\n{keys}\n")]);
        assert!(shown.contains("cases/a.yaml:2:") && shown.contains(why), "{keys}: {shown}");
    }
    let text = format!("prompt: a\nmcp-servers: {{x: {{args: [-v]}}}}\nenv: {{A: 'null', B: '~', C: 5}}\n{GRADERS}");
    let suite = "mcp-servers: {x: {command: srv}}\n";
    let cases = Files::new(&[("cases/a.yaml", &text), ("cases/suite.yaml", suite)]).cases();
    assert_eq!((&cases[0].mcp_servers[0]["command"], cases[0].env["A"].as_str()), (&"srv".into(), "null"));
    // A suite and a case that give two ways to a server.
    let text = format!("prompt: a\nmcp-servers: {{x: {{url: 'http://x'}}}}\n{GRADERS}");
    let files = Files::new(&[("cases/a.yaml", &text), ("cases/suite.yaml", suite)]);
    let shown = files.shown(&files.load(&["cases"]).unwrap_err());
    assert!(shown.contains("cases/a.yaml:2:") && shown.contains("both `command` and `url`"), "{shown}");
}

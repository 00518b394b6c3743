//! How graders are read: what is refused and where, what `use` takes from `graders/`, and the documentation's examples.

use std::fs;

use evals::internal::case::GraderFolder;
use evals::internal::grader::{Grader, GraderEntry, GraderError, Library, NamedGrader, expand, refuse_empty};

use super::read;

#[test]
fn what_is_wrong_is_refused_where_it_stands() {
    // Text, and line and column of what is wrong.
    let table = [
        ("- outptu: {contains: x}", (1, 3), "unknown grader `outptu`, expected one of `output`"),
        ("- output:\n    contians: x", (2, 5), "unknown field `contians`, expected one of `equals`, `contains`"),
        ("- output:\n    contains: x\n    wieght: 2", (3, 5), "`ignore-case`, `name`, `weight`, `gate`, `diagnostic`"),
        ("- output:\n    gate: true\n    contains: x\n    gate: true", (4, 5), "duplicate field `gate`"),
        ("- output:\n    contains: x\n    weight: -1", (3, 13), "from 0 up"),
        ("- output: {contains: x, weight: .inf}", (1, 33), "from 0 up"),
        ("- output: {contains: x, weight: .nan}", (1, 33), "from 0 up"),
        ("- output: {contains: x, gate: 1}", (1, 31), "boolean"),
        ("- output: {contains: x, name: ''}", (1, 31), "must not be empty"),
        ("- output: {contains: 1.50}", (1, 22), "in quotes"),
        ("- output: {contains: }", (1, 22), "a value or a list"),
        ("- output:\n    regex: '('", (2, 12), "not a regular expression"),
        ("- stop: {reason: end_turn}\n  gate: true", (2, 3), "write `gate` below it"),
        ("- stop: {reason: end_turn}\n  diff: {none: true}", (2, 3), "begin another with `- diff:`"),
        ("- {}", (1, 3), "this grader is empty"),
        ("- output", (1, 3), "a map of one key"),
        ("- stop: {reason: end-turn}", (1, 18), "unknown variant `end-turn`"),
        ("- stop: {reason: [end_turn, done]}", (1, 29), "unknown variant `done`"),
        ("- stop: {}", (1, 9), "missing field `reason`"),
        ("- tool-calls:\n    require:\n      - kind: edit\n        paht: x", (4, 9), "unknown field `paht`"),
        (
            "- tool-calls:\n    require:\n      - kind: edit\n        count:\n          mni: 2",
            (5, 11),
            "unknown field `mni`",
        ),
        ("- tool-calls:\n    forbid:\n      - kind: exec", (3, 15), "unknown variant `exec`"),
        ("- tool-calls: {forbid: []}", (1, 24), "this list is empty"),
        ("- tool-calls: {max: -1}", (1, 21), "-1"),
        ("- use: {grader: x, gaet: true}", (1, 20), "unknown field `gaet`, expected one of `grader`"),
        ("- use: {gate: true}", (1, 8), "missing field `grader`"),
        ("- budget: {cost-us: 1}", (1, 12), "unknown field `cost-us`"),
        // Nothing to check.
        ("- output: {}", (1, 3), "checks nothing"),
        ("- output: {ignore-case: true}", (1, 3), "checks nothing"),
        ("- output: {contains: ''}", (1, 3), "`contains` is empty"),
        ("- output: {contains: [x, \"\\n\"]}", (1, 3), "`contains` is empty"),
        ("- output: {regex: ''}", (1, 3), "`regex` is empty"),
        ("- output: {regex: [ok, '(?i)(fixed|done|)']}", (1, 3), "/(?i)(fixed|done|)/, which matches any text"),
        ("- output: {json-path: {path: $.a, regex: '(ok)?'}}", (1, 3), "/(ok)?/, which matches any text"),
        ("- files: {matches: {a.txt: '(x=2)?'}}", (1, 3), "matches any text"),
        ("- files: {matches: {a.txt: '^(\\bx=2\\b)?'}}", (1, 3), "matches any text"),
        ("- command: {run: x, stdout-regex: '(ok)*'}", (1, 3), "matches any text"),
        ("- rules: [{eventually: {text: '(tests pass)?'}}]", (1, 3), "matches any text"),
        ("- diff: {only: [src/a, '**']}", (1, 3), "`only` holds `**`"),
        (
            "- stop: {reason: [end_turn, max_tokens, max_turns, max_budget, refusal, cancelled, timed_out, idle, error, \
             crashed, other]}",
            (1, 3),
            "names every reason",
        ),
        ("- files: {absent: ['**.orig']}", (1, 20), "write `**/*` to cross them"),
        ("- tool-calls: {forbid: [{kind: edit, path: '**.lock'}]}", (1, 44), "write `**/*` to cross them"),
        ("- files: {}", (1, 3), "checks nothing"),
        ("- files: {contains: {a: ''}}", (1, 3), "empty"),
        ("- files: {exists: ['../x']}", (1, 20), "paths are compared without `..`"),
        ("- files: {contains: {/etc/passwd: x}}", (1, 3), "not a path within the workspace"),
        ("- command: {run: ''}", (1, 3), "`run` is empty"),
        ("- command: {run: []}", (1, 3), "`run` is empty"),
        ("- command: {run: '# cargo test'}", (1, 3), "`run` is empty"),
        ("- command: {run: \"\\n  # one\\n# two\"}", (1, 3), "`run` is empty"),
        ("- command: {run: [bash, -c, '# cargo test']}", (1, 3), "`run` is empty"),
        ("- command: {run: [bash, -lc, '# cargo test']}", (1, 3), "`run` is empty"),
        ("- command: {run: [/bin/ash, -e, -o, pipefail, -c, '# cargo test']}", (1, 3), "`run` is empty"),
        ("- tests: {run: [fish, -c, ''], format: tap}", (1, 3), "`run` is empty"),
        ("- command: {run: 'true', exit: -1}", (1, 3), "the exit code -1, with which no command can end"),
        ("- command: {run: 'true', exit: 256}", (1, 3), "the exit code 256"),
        ("- output: {json-schema: {typ: string}}", (1, 3), "did you mean `type`?"),
        ("- output: {json-schema: {title: x}}", (1, 3), "none of its keys checks anything: `title`"),
        ("- output: {not-contains: [~]}", (1, 26), "this entry is null"),
        ("- output: {contains: [a, null]}", (1, 22), "this entry is null"),
        ("- files: {exists: [a.txt, ~]}", (1, 19), "this entry is null"),
        ("- output: {contains: x, gate: true, diagnostic: true}", (1, 11), "exclude each other"),
        ("- output: {diagnostic: true, contains: x, gate: true}", (1, 11), "exclude each other"),
        ("- diff: {none: false}", (1, 3), "checks nothing"),
        ("- diff: {none: true, created: [x]}", (1, 3), "contradicts"),
        ("- tool-calls: {}", (1, 3), "checks nothing"),
        ("- tool-calls: {min: 0}", (1, 3), "checks nothing"),
        ("- tool-calls: {require: [{kind: edit}, {}]}", (1, 3), "entry 2 of `require` has no key"),
        ("- tool-calls: {require: [{count: {min: 2}}]}", (1, 3), "entry 1 of `require` has no key"),
        ("- tool-calls: {require: [{kind: edit, count: {min: 0}}]}", (1, 3), "0 calls or more"),
        ("- tool-calls: {require: [{kind: edit, count: {min: 2, max: 1}}]}", (1, 3), "contradicts"),
        ("- tool-calls: {forbid: [{args: {}}]}", (1, 3), "empty `args`"),
        ("- tool-calls: {none: true, min: 1}", (1, 3), "contradicts"),
        ("- tool-calls: {min: 3, max: 2}", (1, 3), "contradicts"),
        ("- permissions: {respected: false}", (1, 3), "checks nothing"),
        ("- permissions: {asked: [{}]}", (1, 3), "entry 1 of `asked` has no key"),
        ("- budget: {}", (1, 3), "checks nothing"),
        ("- budget: {cost-usd: -1}", (1, 3), "not an amount of money"),
        ("- model: {effective: ''}", (1, 3), "`effective` is empty"),
    ];
    for (text, place, reason) in table {
        let error = serde_yaml::from_str::<Vec<GraderEntry>>(text).expect_err(text);
        let at = error.location().map(|at| (at.line(), at.column()));
        assert_eq!(at, Some(place), "{text}: {error}");
        assert!(error.to_string().contains(reason), "{text}: {error}");
    }
}

#[test]
fn a_pattern_for_a_whole_text_and_one_that_must_not_match_are_read() {
    for text in [
        "- output: {regex: '^$'}",
        "- output: {regex: '(?s)\\A.{0,280}\\z'}",
        "- output: {regex: ['^[^!]*$', '\\A[\\x00-\\x7F]*\\z']}",
        "- files: {matches: {a.txt: '\\A[^\\r]*\\z'}}",
        "- output: {not-regex: 'x*'}",
        "- command: {run: x, stdout-regex: '\\A\\z'}",
        "- rules: [{never: {text: '.*'}}]",
        "- tool-calls: {require: [{command: '.*'}]}",
        "- diff: {only: ['src/**', '*']}",
    ] {
        assert_eq!(read(text).len(), 1, "{text}");
    }
}

#[test]
fn a_case_that_asserts_nothing_is_refused() {
    let refused = |graders: &str| refuse_empty(&read(graders));
    assert!(refused("[]").unwrap_err().contains("no grader"));
    assert!(refused("[stop: {reason: end_turn, diagnostic: true}]").unwrap_err().contains("diagnostic"));
    assert!(refused("[stop: {reason: end_turn, weight: 0}]").unwrap_err().contains("weight 0"));
    let mixed = "[stop: {reason: end_turn, weight: 0}, stop: {reason: end_turn, diagnostic: true}]";
    assert!(refused(mixed).is_err());
    // A gate has no weight in the mean and decides all the same.
    assert_eq!(refused("[stop: {reason: end_turn, weight: 0, gate: true}]"), Ok(()));
    assert_eq!(refused("[stop: {reason: end_turn}]"), Ok(()));
}

fn library(files: &[(&str, &str)]) -> Library {
    let mut library = Library::default();
    for (name, text) in files {
        let grader = NamedGrader { origin: format!("graders/{name}.yaml"), folder: None, text: (*text).to_owned() };
        library.insert(*name, grader);
    }
    library
}

fn used(entries: &str, library: &Library) -> Result<Vec<Grader>, GraderError> {
    let entries: Vec<GraderEntry> = serde_yaml::from_str(entries).unwrap();
    expand(&entries, library)
}

#[test]
fn a_named_grader_takes_the_place_of_its_use() {
    let library = library(&[
        (
            "calm",
            "description: d\ngraders:\n  - tool-calls: {max: 3, weight: 2}\n  - stop: {reason: end_turn, name: ended}\n",
        ),
        ("one", "description: d\ngrader:\n  diff: {none: true}\n"),
        ("bare", "description: d\ndiff: {none: true}\n"),
        ("outer", "description: d\ngrader:\n  use: {grader: one, gate: true}\n"),
    ]);
    let graders = used("[use: calm, use: {grader: calm, weight: 5, gate: true}]", &library).unwrap();
    let told: Vec<_> = graders.iter().map(|g| (g.name.as_str(), g.kind.word(), g.weight, g.gate)).collect();
    assert_eq!(
        told,
        [
            ("calm", "tool-calls", 2.0, false),
            ("ended", "stop", 1.0, false),
            ("calm", "tool-calls", 5.0, true),
            ("ended", "stop", 5.0, true),
        ]
    );
    for name in ["one", "bare"] {
        let graders = used(&format!("[use: {{grader: {name}, name: mine, diagnostic: true}}]"), &library).unwrap();
        assert_eq!((graders[0].name.as_str(), graders[0].diagnostic), ("mine", true));
    }
    let graders = used("[use: outer]", &library).unwrap();
    assert_eq!((graders[0].kind.word(), graders[0].gate), ("diff", true));
    let graders = used("[use: {grader: outer, gate: false}]", &library).unwrap();
    assert!(!graders[0].gate, "the case has the last word");
}

#[test]
fn a_use_that_leads_nowhere_is_refused() {
    let library = library(&[
        ("no-destructive-commands", "grader: {use: b}"),
        ("b", "graders: [{use: c}]"),
        ("c", "grader: {use: b}"),
        ("typo", "description: d\ngrader:\n  output:\n    contians: x\n"),
        ("empty", "description: d\n"),
        ("twice", "grader: {diff: {none: true}}\nstop: {reason: end_turn}\n"),
    ]);
    let told = |entries: &str| used(entries, &library).unwrap_err().to_string();
    assert_eq!(
        told("[use: no-destructive-comands]"),
        "there is no grader named `no-destructive-comands` in graders/; did you mean `no-destructive-commands`?"
    );
    assert_eq!(told("[use: zzz]"), "there is no grader named `zzz` in graders/");
    assert_eq!(told("[use: no-destructive-commands]"), "graders use each other in a cycle: b uses c uses b");
    assert!(told("[use: typo]").starts_with("graders/typo.yaml:4:5: "), "{}", told("[use: typo]"));
    assert!(told("[use: typo]").contains("unknown key `contians`"));
    assert!(told("[use: empty]").contains("the key `graders` is missing"));
    assert!(told("[use: twice]").contains("two places"));
}

#[test]
fn a_folder_of_named_graders_is_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("graders")).unwrap();
    fs::write(folder.path().join("graders/same.yaml"), "grader: {files: {equals: {a: wanted}}}").unwrap();
    fs::write(folder.path().join("graders/wanted"), "text").unwrap();
    fs::create_dir(folder.path().join("workspace")).unwrap();
    fs::write(folder.path().join("workspace/a"), "text").unwrap();
    let built_in = GraderFolder::load(&folder.path().join("not-there")).unwrap();
    let read = GraderFolder::load(&folder.path().join("graders")).unwrap();
    assert_eq!(read.names().into_iter().filter(|name| built_in.get(name).is_none()).collect::<Vec<_>>(), ["same"]);
    let library = read.library();
    // Its files count from its own folder, wherever the case is.
    let graders = used("[use: same]", &library).unwrap();
    assert_eq!(graders[0].kind.spec().named_files(), [folder.path().join("graders/wanted")]);
}

#[test]
fn what_was_read_is_written_the_same() {
    let text = "[output: {contains: [a, b], name: n, weight: 2.0}, command: {run: [a, b], exit: 3}, use: {grader: x, gate: true}, \
                tool-calls: {require: [{kind: edit, args: {a: 1}, count: {min: 2}}], max-by-kind: {read: 3}}]";
    let entries: Vec<GraderEntry> = serde_yaml::from_str(text).unwrap();
    let again: Vec<GraderEntry> = serde_yaml::from_str(&serde_json::to_string(&entries).unwrap()).unwrap();
    assert_eq!(entries, again);
}

#[test]
fn the_schema_knows_every_kind_and_key() {
    let schema = evals::internal::schema::schema("grader").unwrap();
    let text = schema.to_string();
    let kinds = schema.pointer("/$defs/Grader/oneOf").unwrap().as_array().unwrap();
    assert_eq!(kinds.len(), evals::internal::grader::Kind::WORDS.len() + 1 + evals::internal::grader::ALIASES.len());
    for kind in kinds {
        assert_eq!(kind["additionalProperties"], false);
        let word = kind["required"][0].as_str().unwrap();
        if evals::internal::grader::ALIASES.contains(&word) {
            continue;
        }
        let body = &kind["properties"][word];
        let body = if word == "use" { &body["oneOf"][1] } else { body };
        assert_eq!(body["additionalProperties"], false, "{word}");
        for key in ["name", "weight", "gate", "diagnostic"] {
            assert!(body["properties"].get(key).is_some(), "{word}.{key}");
        }
    }
    assert!(text.contains("\"count\""));
}

#[test]
fn the_examples_of_the_documentation_are_graders() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let mut pages = vec![root.join("graders.md")];
    pages.extend(evals::internal::grader::Kind::WORDS.iter().map(|word| root.join(format!("graders/{word}.md"))));
    let mut named = 0;
    let mut seen: Vec<String> = Vec::new();
    for page in pages {
        let page = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        for block in page.split("```yaml\n").skip(1) {
            let block = block.split("```").next().unwrap();
            if block.starts_with("description:") {
                assert!(!library(&[("x", block)]).get("x").unwrap().read().unwrap().graders.is_empty());
                named += 1;
                continue;
            }
            let entries: Vec<GraderEntry> =
                serde_yaml::from_str(block).unwrap_or_else(|error| panic!("{block}\n{error}"));
            seen.extend(entries.iter().map(|entry| entry.word().to_owned()));
        }
    }
    assert!(named > 0);
    for word in evals::internal::grader::Kind::WORDS.iter().chain(&["use"]) {
        assert!(seen.iter().any(|seen| seen == word), "{word} has no example");
    }
}

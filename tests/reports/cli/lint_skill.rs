//! `evals lint-skill`: what the Agent Skills specification says of a SKILL.md, with the place of each problem.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::project::{Project, Ran};

const GOOD: &str = "---\n\
    name: release-notes\n\
    description: Turns merged changes into release notes. Use when a version is cut or a changelog is asked for.\n\
    license: Apache-2.0\n\
    compatibility: Requires git\n\
    metadata:\n  author: somebody\n  version: \"1.0\"\n\
    allowed-tools: Read Bash(git:*)\n\
    ---\n\n\
    # Release notes\n\n1. Read [the format](references/format.md).\n2. Run `scripts/collect.sh`.\n";

/// A project with one skill of this text.
fn skill(folder: &str, text: &str) -> Project {
    let project = Project::with(&[
        (&format!("skills/{folder}/references/format.md"), "# Format\n"),
        (&format!("skills/{folder}/scripts/collect.sh"), "git log\n"),
    ]);
    project.write(&format!("skills/{folder}/SKILL.md"), text);
    project
}

#[track_caller]
fn rules(project: &Project, code: i32) -> Vec<String> {
    let json = project.evals(&["lint-skill", "skills", "--format", "json"]).exits(code).json();
    let skills = json["skills"].as_array().unwrap().iter();
    let problems = skills.flat_map(|skill| skill["problems"].as_array().unwrap());
    let line = |problem: &serde_json::Value| {
        let severity = problem["severity"].as_str().unwrap();
        format!("{severity} {} {}", problem["rule"].as_str().unwrap(), problem["line"])
    };
    problems.map(line).collect()
}

/// Returns a skill whose front matter has this line after the name.
fn with(line: &str) -> String {
    format!("---\nname: a\n{line}\n---\nDo it.\n")
}

#[test]
fn a_skill_by_the_specification_has_no_problems() {
    let project = skill("release-notes", GOOD);
    project.evals(&["lint-skill", "skills/release-notes"]).exits(0).says("1 skill: 0 errors, 0 warnings");
    project.evals(&["lint-skill", "skills/release-notes/SKILL.md"]).exits(0);
    assert_eq!(rules(&project, 0), [] as [String; 0]);
}

#[test]
fn problems_are_shown_where_they_are() {
    let text = "---\n\
        name: Release_Notes\n\
        desciption: Turns merged changes into release notes.\n\
        compatibility: [git]\n\
        metadata: {version: 1.0}\n\
        ---\n\n\
        Read [the format](references/formats.md), then run `scripts/collect.py`.\n";
    let ran = skill("release-notes", text).evals(&["lint-skill", "skills"]).exits(1);
    assert!(ran.err.is_empty(), "{}", ran.err);
    insta::assert_snapshot!("lint_skill", ran.out);
}

#[test]
fn each_rule_of_the_front_matter() {
    let long = |length: usize| "x".repeat(length);
    for (text, wanted) in [
        (with("description: x"), &[] as &[&str]),
        (with("licence: MIT"), &["error missing-key 1", "warning unknown-key 3"]),
        (with("description:"), &["error empty 3"]),
        (with("description: \"  \""), &["error empty 3"]),
        (with("description: [x]"), &["error not-a-text 3"]),
        (with("description: 7"), &["warning not-a-text 3"]),
        (with(&format!("description: {}", long(1024))), &[]),
        (with(&format!("description: {}", "é".repeat(1025))), &["error too-long 3"]),
        (with(&format!("description: x\ncompatibility: {}", long(501))), &["error too-long 4"]),
        (with("description: x\ncompatibility: ''"), &["error empty 4"]),
        (with("description: x\nmetadata: yes"), &["error metadata 4"]),
        (with("description: x\nmetadata:\n  a: {b: c}\n  d: 1.0"), &["error metadata 5", "warning metadata 6"]),
        (with("description: x\nallowed-tools: [Read]"), &["error allowed-tools 4"]),
        (with("description: x\nallowed-tools: Read, Write"), &["warning allowed-tools 4"]),
        (with("description: x\nallowed-tools: Bash(git add, git commit) Read"), &[]),
        (with("description: a --- b"), &["warning dashes-in-front-matter 3"]),
        (with("description: x\ndescription: y"), &["error front-matter 4"]),
        (with("description: Use when: asked"), &["error front-matter 3"]),
        (with("\tdescription: x"), &["error front-matter 3"]),
        (with("description: x").replace("name: a", "name: A"), &["error name-characters 2", "error name-and-folder 2"]),
        (with("description: x").replace("name: a", "name: -a"), &["error name-hyphens 2", "error name-and-folder 2"]),
        (with("description: x").replace("name: a", "name: a--b"), &["error name-hyphens 2", "error name-and-folder 2"]),
        (
            with("description: x").replace("name: a", "name: é"),
            &["warning name-characters 2", "error name-and-folder 2"],
        ),
        (
            with("description: x").replace("name: a", &format!("name: {}", long(65))),
            &["error too-long 2", "error name-and-folder 2"],
        ),
        (with("description: x").replace("name: a\n", ""), &["error missing-key 1"]),
        ("# A\n".to_owned(), &["error front-matter 1"]),
        (String::new(), &["error front-matter 1"]),
        ("---\nname: a\n".to_owned(), &["error front-matter 1"]),
        ("---\n# nothing\n---\nx\n".to_owned(), &["error front-matter 1"]),
        ("---\n- a\n---\nx\n".to_owned(), &["error front-matter 2"]),
        ("---\nname: a\ndescription: x\n---\n\n".to_owned(), &["warning empty-body 4"]),
        (format!("\u{feff}{}", with("description: x")), &["warning byte-order-mark 1"]),
        (with("description: x").replace('\n', "\r\n"), &["warning line-ends 1"]),
    ] {
        let has_errors = wanted.iter().any(|line| line.starts_with("error"));
        assert_eq!(rules(&skill("a", &text), i32::from(has_errors)), wanted, "{text:?}");
    }
}

#[test]
fn long_bodies_and_references_are_warnings() {
    let body = |text: &str| format!("---\nname: a\ndescription: x\n---\n{text}");
    let long = "step\n".repeat(600);
    let wide = format!("{}\n", "word ".repeat(5_000));
    for (text, wanted) in [
        (body(&long), &["warning too-many-lines 501"] as &[&str]),
        (body(&wide), &["warning too-many-tokens 5"]),
        (
            body("[a](no.md) [b](/etc/x.md) [c](../b.md)\n"),
            &["warning missing-file 5", "warning absolute-reference 5", "warning outside-reference 5"],
        ),
        // The skill has no folder `assets`, so this path is one of the user's project.
        (body("Look into assets/logo.png, and run scripts/no.sh\n"), &["warning missing-file 5"]),
    ] {
        assert_eq!(rules(&skill("a", &text), 0), wanted, "{text:.80}");
    }
    let project = skill("a", &body("Read [the format](references/format.md).\n"));
    project.write("skills/a/references/format.md", "[more](more.md), [back](../SKILL.md)\n");
    project.write("skills/a/references/more.md", "[deeper](format.md)\n");
    let json = project.evals(&["lint-skill", "skills/a", "--format", "json"]).exits(0).json();
    let problem = &json["skills"][0]["problems"][0];
    assert_eq!(
        (problem["rule"].as_str(), problem["file"].as_str(), problem["text"].as_str()),
        (Some("nested-reference"), Some("skills/a/references/format.md"), Some("more.md")),
    );
}

#[test]
fn several_skills_are_linted_and_a_shared_name_is_a_warning() {
    let project = skill("a", &with("description: x"));
    project.write("more/deep/a/SKILL.md", &with("description: y"));
    project.write("more/node_modules/b/SKILL.md", "not a skill");
    symlink(project.path("more"), project.path("more/deep/loop")).unwrap();
    let ran = project.evals(&["lint-skill", "skills", "more", "skills/a"]).exits(0);
    ran.says("2 skills: 0 errors, 1 warning").says("has the same name as the one in skills/a");
}

#[test]
fn a_folder_that_is_too_deep_to_be_searched_is_named() {
    let project = skill("a", &with("description: x"));
    project.write("skills/1/2/3/4/5/6/b/SKILL.md", "not a skill");
    let said = "note: skills/1/2/3/4/5/6 was not searched";
    project.evals(&["lint-skill", "skills"]).exits(0).says("1 skill: 0 errors").says(said);
    let json = project.evals(&["lint-skill", "skills", "--format", "json"]).exits(0).says(said).json();
    assert_eq!(json["not_searched"], serde_json::json!(["skills/1/2/3/4/5/6"]));
    project.evals(&["lint-skill", "skills/1"]).exits(1).says("1 skill: 1 error");
    let deeper = project.evals(&["lint-skill", "skills/1/2/3/4/5/6", "skills"]).exits(1);
    deeper.says("2 skills: 1 error");
    // Only one that has folders may contain skills.
    fs::remove_dir_all(project.path("skills/1/2/3/4/5/6/b")).unwrap();
    let ran = project.evals(&["lint-skill", "skills"]).exits(0);
    assert!(ran.err.is_empty(), "{}", ran.err);
    // Without the permission to read it, its skills are unknown. Root may read it.
    fs::set_permissions(project.path("skills/1"), fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_dir(project.path("skills/1")).is_err() {
        project.evals(&["lint-skill", "skills"]).exits(2).says("the folder skills/1 could not be read");
    }
    fs::set_permissions(project.path("skills/1"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_folder_that_cannot_be_read_is_named_and_the_others_are_linted() {
    let project = skill("a", &with("description: x"));
    project.write("empty/README.md", "x");
    project.write("lower/skill.md", "x");
    fs::create_dir_all(project.path("folder/SKILL.md")).unwrap();
    fs::create_dir_all(project.path("loop")).unwrap();
    symlink("SKILL.md", project.path("loop/SKILL.md")).unwrap();
    for (folder, said) in [
        ("nowhere", "the skill folder nowhere does not exist"),
        ("empty", "the skill folder empty contains no SKILL.md, and neither does a folder below it"),
        ("lower", "rename skill.md to SKILL.md"),
        ("folder", "folder/SKILL.md is not a regular file"),
        ("loop", "loop/SKILL.md could not be read"),
        ("empty/README.md", "empty/README.md is not a folder"),
    ] {
        let ran: Ran = project.evals(&["lint-skill", folder, "skills/a"]).exits(2);
        ran.says(said).says("1 skill: 0 errors, 0 warnings");
    }
    project.evals(&["lint-skill"]).exits(2);
}

#[test]
fn hostile_files_are_problems_of_their_skill() {
    let project = skill("a", "");
    fs::write(project.path("skills/a/SKILL.md"), b"---\nname: a\ndescription: \xff\n---\nx\n").unwrap();
    assert_eq!(rules(&project, 1), ["error unreadable-file 3"]);

    let large = format!("---\nname: a\ndescription: x\n---\n{}", "[x](scripts/collect.sh) `scripts/x\n".repeat(60_000));
    project.write("skills/a/SKILL.md", &large);
    assert!(large.len() > 2 << 20);
    assert_eq!(
        rules(&project, 0),
        ["warning too-many-tokens 5", "warning missing-file 5", "warning too-many-lines 501"]
    );
    project.write("skills/a/SKILL.md", &"x".repeat(5 << 20));
    assert_eq!(rules(&project, 1), ["error unreadable-file null"]);
    // Each problem holds the text, so their number is limited. Errors are reported beside any number of warnings.
    let links: String = (0..10_000).map(|number| format!("[x](/etc/{number}.md)\n")).collect();
    let texts: String = (0..300).map(|number| format!("  a{number}: 1\n")).collect();
    let many = format!("---\nname: b\ndescription: x\nmetadata:\n{texts}allowed-tools: [x]\n---\n{links}");
    project.write("skills/a/SKILL.md", &many);
    let found = rules(&project, 1);
    assert_eq!(found.len(), 103, "{found:?}");
    for wanted in ["error name-and-folder 2", "error allowed-tools 305", "warning metadata 5"] {
        assert!(found.iter().any(|line| line == wanted), "{wanted}: {found:?}");
    }
    assert_eq!(found.last().map(String::as_str), Some("warning many-problems null"));

    project.write("skills/a/SKILL.md", &with("description: \"\\e[31mred\"\n\u{202e}x: y"));
    let ran = project.evals(&["lint-skill", "skills"]).exits(0);
    assert!(!ran.out.contains(['\u{1b}', '\u{202e}']), "{}", ran.out);
}

#[test]
fn a_folder_that_does_not_exist_is_an_error_and_not_a_count_of_nothing() {
    let project = Project::new();
    let ran = project.evals(&["lint-skill", "nope"]).exits(2);
    assert!(ran.out.is_empty(), "{}", ran.out);
    assert!(ran.err.contains("the skill folder nope does not exist"), "{}", ran.err);
}

//! What is wrong in rules is told when the manifest is read: file, line and column within the file.

use crate::project::Project;

/// The place and the message of the first error, as the program tells it.
fn told(rules: &str) -> String {
    let project = Project::new();
    project.harness("mine", &format!("adapter: json-stream\ncommand: [mine, '{{prompt}}']\n{rules}"));
    let ran = project.evals(&["harness", "show", "mine"]).exits(2);
    assert_eq!(ran.out, "");
    ran.err
}

#[track_caller]
fn tells(rules: &str, place: &str, message: &str, shown: &str) {
    let told = told(rules);
    let plain = told.replace(['│', '×', '\n'], " ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plain.contains(&format!("harnesses/mine.yaml:{place}: ")), "{place}\n{told}");
    assert!(plain.contains(message), "{message}\n{told}");
    assert!(plain.contains(shown), "{shown}\n{told}");
}

#[test]
fn an_expression_is_told_with_its_own_line_and_column() {
    // The rules begin on line 4.
    let plain = "stream:\n  - when: line.type = 'a'\n    ignore: true";
    tells(plain, "5:21", "the expression cannot be read", "when: line.type = 'a'");
    let quoted = "stream:\n  - {when: \"line.type == 'a' && lin.x\", ignore: true}";
    tells(quoted, "5:33", "unknown name `lin`", "line");
    let single = "stream:\n  - {when: 'line.type == ''a'' && lin.x', ignore: true}";
    tells(single, "5:35", "unknown name `lin`", "line");
    let escaped = "stream:\n  - {when: \"line.x == \\\"\\u00e4\\\" && lin.x\", ignore: true}";
    tells(escaped, "5:37", "unknown name `lin`", "line");
    let block = "stream:\n  - when: |\n      line.type == 'a'\n        && line.x.startWith('b')\n    ignore: true";
    tells(block, "7:19", "unknown function `startWith`", "startsWith");
    let folded = "stream:\n  - when: >-\n      line.type == 'a' &&\n      lin.x == 3\n    ignore: true";
    tells(folded, "7:7", "unknown name `lin`", "line");
    let inner = "stream:\n  - when: line.a == 'b'\n    emit:\n      - message: {text: line.text}\n      - stop: {reason: end_trun}";
    tells(inner, "8:24", "unknown name `end_trun`", "end_turn");
    let alone = "stream:\n  - when: line.a == 'b'\n    emit: {tool-call: {id: line.id, kind: exec}}";
    tells(alone, "6:43", "unknown name `exec`", "execute");
    let kept =
        "stream:\n  - {when: line.a == 'b', keep: {count: 1}, emit: {notice: {code: \"'x'\", text: kept.cuont}}}";
    tells(kept, "5:85", "no rule keeps `cuont`", "count");
    let indexed = kept.replace("kept.cuont", "\"kept['cuont']\"");
    tells(&indexed, "5:87", "no rule keeps `cuont`", "count");
    let nested =
        "stream:\n  - when: line.a == 'b'\n    for-each: line.list\n    rules:\n      - {when: item.x, ignore: true}";
    tells(nested, "8:16", "unknown name `item`", "it");
    tells("known-by: lin.x\nstream:\n  - {ignore: true}", "4:11", "unknown name `lin`", "line");
}

#[test]
fn rules_that_cannot_be_meant_are_refused() {
    tells("stream:\n  - {when: line.a == 'b'}", "5:5", "the rule has no effect", "ignore: true");
    let both = "stream:\n  - {ignore: true, emit: {message: {text: line.a}}}";
    tells(both, "5:14", "the rule has `ignore` and also emits events or has inner rules", "");
    let two = "stream:\n  - {emit: {message: {text: line.a}, thought: {text: line.b}}}";
    tells(two, "5:12", "one map contains several events", "write a list");
    tells("stream:\n  - {emit: {message: {id: line.a}}}", "5:22", "exactly one of `text`, `delta` and `snapshot`", "");
    tells("stream:\n  - {emit: {tool-call: {name: line.a}}}", "5:24", "`tool-call` requires `id`", "");
    tells("stream:\n  - {emit: {mesage: {text: line.a}}}", "5:13", "unknown key `mesage`", "message");
    tells("stream:\n  - {emit: {message: {txt: line.a}}}", "5:23", "unknown key `txt`", "text");
    tells("stream: []", "2:10", "the adapter `json-stream` needs `stream` rules", "write rules");
    let empty = "stream:\n  - {when: '', ignore: true}";
    tells(empty, "5:13", "the expression is empty", "");
    let project = Project::new();
    project.harness("mine", "adapter: acp\ncommand: [mine]\nstream: [{ignore: true}]");
    project.evals(&["harness", "show", "mine"]).exits(2).says("`stream` is only for the adapter `json-stream`");
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let told =
        told("stream:\n  - {when: a, ignore: true}\n  - {when: b, ignore: true}\n  - {when: line.c ==, ignore: true}");
    for place in ["5:12", "6:12", "7:"] {
        assert!(told.contains(&format!("mine.yaml:{place}")), "{told}");
    }
}

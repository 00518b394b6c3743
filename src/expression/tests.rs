//! Tests of expressions: their values, the places of errors, and the limits of work.

use serde_json::json;

use super::*;

fn run(text: &str, line: &Value) -> Result<Value, Failed> {
    let work = Work::default();
    let expression = Expression::compile(text, &["line", "kept"]).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
    expression.run(&Scope::new(&work).with("line", line))
}

fn wrong(text: &str) -> (String, String) {
    let wrong = Expression::compile(text, &["line"]).expect_err(text);
    (text[wrong.range.clone()].to_owned(), wrong.message)
}

#[test]
fn expressions_look_into_json() {
    let line = json!({
        "type": "item", "n": 3, "big": u64::MAX, "x": 1.5, "yes": true, "none": null,
        "list": [{"type": "text", "text": "one"}, {"type": "image"}, {"type": "text", "text": "two"}],
        "map": {"z": 1, "a": 2}, "args": "{\"path\":\"a\"}",
        "nested": [[3], [2, 1]], "names": ["x", "y"],
    });
    for (text, expected) in [
        ("line.type", json!("item")),
        ("line.n + 1", json!(4)),
        ("line.big", json!(u64::MAX)),
        ("line.x", json!(1.5)),
        ("line.n == 3.0 && line.yes && line.none == null", json!(true)),
        ("line.list[2].text", json!("two")),
        ("line.list.filter(b, b.type == 'text').map(b, b.text)", json!(["one", "two"])),
        ("line.list.exists(b, b.type == 'image')", json!(true)),
        ("texts(line.list)", json!("one\n\ntwo")),
        ("texts('a')", json!("a")),
        ("size(line.list) + line.map.size()", json!(5)),
        ("line.map.map(k, k)", json!(["z", "a"])),
        ("line.map == {'a': 2, 'z': 1} && {'a': 2, 'z': 1} == line.map", json!(true)),
        ("[1, 2] + line.list.map(b, 0) == [1, 2, 0, 0, 0]", json!(true)),
        ("(line.list + [1]).size()", json!(4)),
        ("'z' in line.map && !('b' in line.map)", json!(true)),
        ("has(line.n) && !has(line.m)", json!(true)),
        ("line.?m.orValue('no')", json!("no")),
        ("line.?list[?0].?text.orValue('no')", json!("one")),
        ("parse_json(line.args).path", json!("a")),
        ("to_json(line.map)", json!("{\"a\":2,\"z\":1}")),
        ("int(capture('Exit Code: 3', 'Exit Code: (-?[0-9]+)'))", json!(3)),
        ("first(line.map, ['b', 'z', 'a'])", json!(1)),
        ("{'b': 1, 'a': line.map}", json!({"a": {"z": 1, "a": 2}, "b": 1})),
        ("'a,b'.split(',')", json!(["a", "b"])),
        ("type(line.args) == string && type(line.list) == list && type(line.map) == map", json!(true)),
        (
            "[1, 2, 1.0, 'a', 0.0, -0.0, 'a', [1], [1.0], {'k': 1}, {'k': 1u}, null, null].distinct()",
            json!([1, 2, "a", 0.0, [1], {"k": 1}, null]),
        ),
        (
            "line.list.map(b, b.type).distinct() + line.list.distinct().map(b, b.type)",
            json!(["text", "image", "text", "image", "text"]),
        ),
        ("line.list.map(b, b.type).reverse() == line.list.reverse().map(b, b.type)", json!(true)),
        ("line.nested.flatten().sort() + line.nested.flatten(0)[1]", json!([1, 2, 3, 2, 1])),
        ("line.nested.flatten().sortBy(n, -n).slice(0, 2)", json!([3, 2])),
        ("line.list.slice(1, 2)[0].type + line.names.join('-')", json!("imagex-y")),
        ("optional.of(line.map).value().a", json!(2)),
        ("line", line.clone()),
    ] {
        assert_eq!(run(text, &line), Ok(expected), "{text}");
    }
}

#[test]
fn what_is_not_there_is_told_apart_from_what_makes_no_sense() {
    let line = json!({"a": "text", "list": []});
    for text in ["line.b", "line.a.b.c", "line.list[0]", "line.?b", "capture('x', 'y')", "first(line, ['z'])"] {
        assert!(matches!(run(text, &line), Err(Failed::Absent(_))), "{text}: {:?}", run(text, &line));
    }
    for text in ["line.a + 1", "line.list.a > 1 || line.a / 2 == 1", "int(line.a)", "line.a < 3", "1 / 0 == 1"] {
        assert!(matches!(run(text, &line), Err(Failed::Broken(_))), "{text}: {:?}", run(text, &line));
    }
}

#[test]
fn what_is_wrong_is_found_where_it_stands() {
    for (text, at, message) in [
        ("line.type = 'a'", "=", "cannot be read"),
        ("line.type == lin", "lin", "unknown name `lin`"),
        ("line.list.map(x, y.a)", "y", "unknown name `y`"),
        ("line.a.startWith('x')", "startWith", "unknown function `startWith`"),
        ("sizes(line)", "sizes", "unknown function `sizes`"),
        ("line.list.map(x)", "map", "`map` does not take 1"),
        ("has(line)", "", "invalid argument to has() macro"),
        ("{'a': 1}.map(k, k)", "", "no order"),
    ] {
        let (found, told) = wrong(text);
        assert!(told.contains(message), "{text}: {told}");
        assert!(at.is_empty() || found == at, "{text}: `{found}`");
    }
}

#[test]
fn every_function_that_is_named_is_known_to_cel() {
    let context = cel::Context::with_env(functions::env());
    let unknown = |text: &str| {
        let program = functions::env().compile(text).unwrap();
        matches!(program.execute(&context), Err(ExecutionError::UndeclaredReference(_)))
    };
    for name in functions::GLOBAL.iter().filter(|name| **name != "has") {
        assert!(!unknown(&format!("{name}('a', 'b', 'c', 'd')")), "{name}");
    }
    let macros = ["all", "exists", "exists_one", "map", "filter", "optMap", "optFlatMap", "sortBy"];
    for name in functions::MEMBER.iter().filter(|name| !macros.contains(name)) {
        assert!(!unknown(&format!("'a'.{name}(1, 2, 3, 4, 5)")), "{name}");
    }
    assert!(unknown("nobody('a')") && unknown("'a'.nobody()"));
}

#[test]
fn expressions_are_bounded() {
    let deep = format!("{}1{}", "(".repeat(300), ")".repeat(300));
    assert!(Expression::compile(&deep, &[]).is_err());
    let long = vec!["1"; 200].join(" + ");
    assert!(Expression::compile(&long, &[]).unwrap_err().message.contains("too deep"));
    assert!(Expression::compile(&" ".repeat(5000), &[]).is_err());
    assert!(Expression::compile(" ", &[]).is_err());
    for text in ["\u{0}", "'", "\"\\", "((((", "a.b.", "1 ? 2", "[", "{", "line.`x`", "ä", "line.type == 'ä' +"] {
        assert!(Expression::compile(text, &["line"]).is_err(), "{text}");
    }
    let line = json!({"list": vec![0; 5000]});
    let text = "line.list.all(a, line.list.all(b, line.list.all(c, a == b)))";
    let started = std::time::Instant::now();
    assert_eq!(run(text, &line), Err(Failed::Broken("the expression reads too many values".to_owned())));
    assert!(started.elapsed().as_secs() < 60);
}

#[test]
#[ignore = "slow: reads a million values"]
fn what_an_expression_makes_is_counted_as_well() {
    let list: Vec<u32> = (0..100_000).collect();
    let line = json!({"text": serde_json::to_string(&list).unwrap(), "list": list, "map": {"list": list}});
    let started = std::time::Instant::now();
    // Each different element is compared once, not with all other elements.
    assert_eq!(run("line.list.distinct().size()", &line), Ok(json!(100_000)));
    assert_eq!(run("parse_json(line.text).size() + first(line.map, ['list']).size()", &line), Ok(json!(200_000)));
    for text in [
        "parse_json(line.text).all(a, parse_json(line.text).all(b, a + b >= 0))",
        "[parse_json(line.text)].all(all, all.all(a, all.all(b, a + b >= 0)))",
        "[first(line.map, ['list'])].all(all, all.all(a, all.all(b, a + b >= 0)))",
        "line.list.all(a, size(parse_json(line.text)) > 0)",
        "[[1, 2, 3].map(a, line.list).flatten()].all(all, [1, 2, 3, 4, 5, 6, 7, 8, 9].all(a, all.distinct().size() > 0))",
    ] {
        assert_eq!(run(text, &line), Err(Failed::Broken("the expression reads too many values".to_owned())), "{text}");
    }
    assert!(started.elapsed().as_secs() < 60);
}

#[test]
fn keys_are_known_however_they_are_written() {
    let text = "kept.a + kept['b'] + kept[?'c'].orValue('') + kept.?d.orValue('') + line['e']";
    let expression = Expression::compile(text, &["line", "kept"]).unwrap();
    let keys = expression.keys_of("kept");
    assert_eq!(keys.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    for (name, range) in keys {
        assert_eq!(text[range], name);
    }
}

#[test]
fn words_stand_for_themselves() {
    let (work, line) = (Work::default(), json!({"ok": true}));
    let expression = Expression::compile("line.ok ? done : failed", &["line", "done", "failed"]).unwrap();
    let scope = Scope::new(&work).with("line", &line);
    assert_eq!(expression.run(&scope.with_words(&["done", "failed"])), Ok(json!("done")));
}

proptest::proptest! {
    #[test]
    fn any_text_is_an_expression_or_told_wrong(text in "([a-c.x()]|line|kept|[\\[\\]{}?:&|!=<>+*/% '\"\\\\,0-9ä\n-]){0,30}") {
        match Expression::compile(&text, &["line"]) {
            Ok(expression) => {
                let (work, line) = (Work::default(), json!({"x": [1, {"a": "b"}], "a": "text"}));
                let _ = expression.run(&Scope::new(&work).with("line", &line));
                let _ = expression.holds(&Scope::new(&work).with("line", &line));
            }
            Err(wrong) => assert!(text.get(wrong.range.clone()).is_some(), "{text:?}: {wrong:?}"),
        }
    }
}

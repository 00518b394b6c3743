//! Each kind of grader has a page in `docs/graders/`, whose table of keys is made from the schema.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

const BEGIN: &str = "<!-- keys: made from the schema -->\n";
const END: &str = "<!-- end -->";

/// Definitions that the pages explain in words, or once for all.
const LINKED: [(&str, &str); 6] = [
    ("Matcher", "[matcher](../graders.md#matchers)"),
    ("RequestMatcher", "[matcher](#requests)"),
    ("Wanted", "[matcher](../graders.md#matchers), perhaps with `count`"),
    ("EventMatcher", "[matcher](#events)"),
    ("MatchArgs", "[a word or a map](#arguments)"),
    ("ExpectedCall", "[matcher](../graders.md#matchers), name or list"),
];

struct Schema(Value);

impl Schema {
    fn resolved<'a>(&'a self, schema: &'a Value) -> (&'a Value, Option<&'a str>) {
        match schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
            Some(name) => (&self.0["$defs"][name], Some(name)),
            None => (schema, None),
        }
    }

    /// What a value may be, in a few words; maps of their own come after the table.
    fn told(&self, schema: &Value, below: &mut Vec<(String, Value)>, key: &str) -> String {
        let (inner, name) = self.resolved(schema);
        if let Some((_, link)) = LINKED.iter().find(|(linked, _)| Some(*linked) == name) {
            return (*link).to_owned();
        }
        if let Some(words) = inner["enum"].as_array() {
            return words.iter().map(|word| format!("`{}`", word.as_str().unwrap())).collect::<Vec<_>>().join(" ");
        }
        if let Some(words) = inner["oneOf"]
            .as_array()
            .filter(|list| list.iter().all(|one| one["const"].is_string() || one["enum"].is_array()))
        {
            let all = words.iter().flat_map(|one| match &one["enum"] {
                Value::Array(list) => list.clone(),
                _ => vec![one["const"].clone()],
            });
            return all.map(|word| format!("`{}`", word.as_str().unwrap())).collect::<Vec<_>>().join(" ");
        }
        if name == Some("Rule") {
            for rule in inner["oneOf"].as_array().unwrap() {
                let (word, body) = rule["properties"].as_object().unwrap().iter().next().unwrap();
                let (body, name) = self.resolved(body);
                if name != Some("EventMatcher") {
                    below.push((word.clone(), body.clone()));
                }
            }
            return "rule".to_owned();
        }
        if let Some(any) = inner["anyOf"].as_array() {
            let any = any.iter().filter(|one| one["type"] != "null");
            let told: Vec<String> = any.map(|one| self.told(one, below, key)).collect();
            if let [one, list] = told.as_slice()
                && *list == format!("list of: {one}")
            {
                return format!("{one}, or a list");
            }
            let mut seen = BTreeSet::new();
            return told.into_iter().filter(|one| seen.insert(one.clone())).collect::<Vec<_>>().join(", or ");
        }
        // What may be left out may be null in a schema, and is not written so.
        let kinds: Vec<&str> = match &inner["type"] {
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect(),
            kind => kind.as_str().into_iter().collect(),
        };
        match kinds.as_slice() {
            [kind] => match *kind {
                "array" => format!("list of: {}", self.told(&inner["items"], below, key)),
                "object" if inner["properties"]["full"].is_object() => "`{full: …, none: …}`".to_owned(),
                "object" if inner["properties"].is_object() => {
                    if !below.iter().any(|(known, _)| known == key) {
                        below.push((key.to_owned(), inner.clone()));
                    }
                    format!("map, see [`{key}`](#{key})")
                }
                "object" if inner["additionalProperties"].is_object() => {
                    format!("map to: {}", self.told(&inner["additionalProperties"], below, key))
                }
                "object" => "map".to_owned(),
                "string" if inner["format"] == "regex" => "regular expression".to_owned(),
                "string" => match inner["description"].as_str() {
                    Some(said) if said.starts_with("a glob") => "glob".to_owned(),
                    Some(said) if said.starts_with("an expression") => "CEL".to_owned(),
                    Some(said) if said.starts_with("a JSONPath") => "JSONPath".to_owned(),
                    _ => "text".to_owned(),
                },
                "number" if inner["maximum"] == 1 => "number from 0 to 1".to_owned(),
                "integer" | "number" => "number".to_owned(),
                "boolean" if schema["default"] == false => "true".to_owned(),
                "boolean" => "true or false".to_owned(),
                other => other.to_owned(),
            },
            ["string", "number"] => "a time: `500ms`, `90s`, `5m`, or seconds".to_owned(),
            _ => "anything".to_owned(),
        }
    }

    fn table(&self, body: &Value, below: &mut Vec<(String, Value)>) -> String {
        let required: Vec<&str> = body["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut text = "| key | value | meaning |\n| --- | --- | --- |\n".to_owned();
        for (key, schema) in body["properties"].as_object().unwrap() {
            // What every grader takes is told once for all of them.
            let common = [
                "its name in reports",
                "its weight in the mean",
                "its failure fails the trial",
                "reported, never counted",
            ];
            if schema["description"].as_str().is_some_and(|text| common.contains(&text)) {
                continue;
            }
            let value = self.told(schema, below, key).replace('|', "\\|");
            let meaning = schema["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|");
            let mut meaning = meaning.trim_end_matches('.').to_owned();
            let default = &schema["default"];
            if required.contains(&key.as_str()) {
                meaning += ". Required";
            } else if !default.is_null() && *default != false && !meaning.contains("Default:") {
                meaning += &format!(". Default: {}", shown_default(default));
            }
            text += &format!("| `{key}` | {value} | {meaning} |\n");
        }
        text
    }
}

fn keys(schema: &Schema, word: &str) -> String {
    let kinds = schema.0["$defs"]["Grader"]["oneOf"].as_array().unwrap();
    let body = kinds.iter().find_map(|kind| kind["properties"].get(word)).unwrap();
    let (body, _) = schema.resolved(body);
    let mut below = Vec::new();
    let mut text = schema.table(body, &mut below);
    let mut done = 0;
    while let Some((key, body)) = below.get(done).cloned() {
        done += 1;
        text += &format!("\n### `{key}`\n\n{}", schema.table(&body, &mut below));
    }
    text
}

/// With `EVALS_DOCS=write` in the environment, the tables are written anew.
#[test]
fn every_kind_has_a_page_whose_keys_are_the_schemas() {
    let schema = Schema(evals::internal::schema::schema("grader").unwrap());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/graders");
    let index = fs::read_to_string(folder.with_extension("md")).unwrap();
    for word in evals::internal::grader::Kind::WORDS {
        let path = folder.join(format!("{word}.md"));
        let page = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{word}: {error}"));
        let (front, rest) = page.split_once(BEGIN).unwrap_or_else(|| panic!("{word}: no table of keys"));
        let (table, back) = rest.split_once(END).unwrap();
        let made = format!("\n{}\n", keys(&schema, word));
        if std::env::var("EVALS_DOCS").is_ok_and(|value| value == "write") {
            fs::write(&path, format!("{front}{BEGIN}{made}{END}{back}")).unwrap();
        } else {
            assert!(table == made, "{word}: the table is not the schema's; run this test with EVALS_DOCS=write");
        }
        for heading in [format!("# `{word}`"), "## When it is ungraded".to_owned(), "## Example".to_owned()] {
            assert!(page.contains(&format!("{heading}\n")), "{word}: no {heading}");
        }
        assert!(index.contains(&format!("[`{word}`](graders/{word}.md)")), "{word} is not in the index");
    }
    let pages = fs::read_dir(&folder).unwrap().count();
    assert_eq!(pages, evals::internal::grader::Kind::WORDS.len(), "a page about no grader");
}

/// Returns a default value as a case states it.
fn shown_default(default: &Value) -> String {
    let Some(map) = default.as_object() else { return default.to_string().replace('"', "`") };
    let keys: Vec<String> = map.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    format!("`{{{}}}`", keys.join(", "))
}

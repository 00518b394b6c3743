//! The canonical form of a request: values that differ between runs without changing the meaning are replaced by
//! numbered marks.
//!
//! The marks of one request are numbered by their first use in it, so that the form of a request depends on nothing but
//! the request. An answer is stored with the marks of its request, and gets the current values when it is replayed.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use super::Api;
use super::api::IdKind;
use crate::secrets::Masker;
use crate::values::Pattern;

/// The folders of a trial, whose paths differ from run to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Here {
    pub workspace: String,
    /// The agent's home.
    pub home: String,
    /// The folder for temporary files.
    pub temporary: String,
}

/// The rules of an agent's manifest, and of a case, for the canonical form.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Replacements in texts.
    pub normalise: Vec<Replacement>,
    /// True if the results of tools are not compared.
    pub ignore_results: bool,
}

/// A replacement in the texts of requests.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Replacement {
    /// The regular expression to search for.
    pub regex: Pattern,
    /// The replacement. `$1` is replaced by the first group of the match.
    pub with: String,
}

/// The folders, rules and secrets by which the requests of one conversation get their canonical form.
#[derive(Debug, Clone)]
pub struct Canon {
    finder: Folders,
    rules: Rules,
    masker: Masker,
}

/// A request in its canonical form, with the values that its marks replace.
#[derive(Debug, Clone)]
pub struct Canonical {
    /// The path with its query.
    pub path: String,
    pub body: Value,
    /// The original values of the marks.
    pub marks: Marks,
}

/// The marks of a request, with the values that they replace.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    /// Values by their marks.
    values: HashMap<String, String>,
    /// Marks by their values.
    marks: HashMap<String, String>,
    /// The number of marks of each kind.
    counts: [u32; 3],
}

/// The kinds of numbered marks.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Id,
    Uuid,
    Time,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Id => "id",
            Kind::Uuid => "uuid",
            Kind::Time => "time",
        }
    }
}

/// The beginning of each mark.
const BEGIN: &str = "{evals:";

/// The beginning of a text that only looks like a mark.
const ESCAPED: &str = "{evals::";

/// Returns a text in which nothing looks like a mark.
fn escaped(text: &str) -> String {
    if text.contains(BEGIN) { text.replace(BEGIN, ESCAPED) } else { text.to_owned() }
}

/// The length in bytes from which an id is also recognised within texts. Shorter ones occur by chance.
const LONG_ID: usize = 12;

/// The number of ids reserved for each entry of a cassette: the new ids of entry N begin at N times this number.
const IDS_PER_ENTRY: u64 = 10_000;

impl Canon {
    /// Makes canonical forms with these folders and rules. Secrets are masked first, as they are in a cassette.
    pub fn new(here: &Here, rules: Rules, masker: Masker) -> Self {
        Self { finder: Folders::new(here), rules, masker }
    }

    /// Returns the canonical form of a request.
    pub fn request(&self, api: Api, path: &str, body: &Value) -> Canonical {
        let mut body = self.masked(body);
        api.without_volatile(&mut body);
        let mut marks = self.finder.marks();
        let mut ids = Vec::new();
        api.ids(&body, &mut |_, id| {
            if !ids.iter().any(|known| known == id) {
                ids.push(id.to_owned());
            }
        });
        let path = self.text(path, &[], &mut marks);
        let body = self.value(body, &ids, &mut marks);
        Canonical { path, body, marks }
    }

    /// Returns an answer with the marks of its request. Ids that the answer introduces get new marks. Other new values
    /// stay unchanged, because a replay could not replace them.
    pub fn answer(&self, api: Api, response: &Value, marks: &Marks) -> Value {
        let mut marks = marks.clone();
        let response = self.masked(response);
        let mut ids: Vec<String> =
            marks.values.iter().filter(|(mark, _)| id_number(mark).is_some()).map(|it| it.1.clone()).collect();
        api.ids(&response, &mut |_, id| {
            if !ids.iter().any(|known| known == id) {
                ids.push(id.to_owned());
            }
        });
        map_texts(response, &mut |text| {
            self.finder.replace(&escaped(&text), &ids, |kind, value| match kind {
                Kind::Id => Some(marks.mark(Kind::Id, value)),
                Kind::Uuid | Kind::Time => marks.marks.get(value).cloned(),
            })
        })
    }

    /// Applies the rules again to a stored request, for rules that are newer than the cassette.
    pub fn again(&self, api: Api, body: &Value) -> Value {
        let mut body = body.clone();
        if self.rules.ignore_results {
            api.results(&mut body, &mut |result| *result = Value::from("{evals:result}"));
        }
        if self.rules.normalise.is_empty() {
            return body;
        }
        map_texts(body, &mut |text| self.normalised(text))
    }

    fn masked(&self, value: &Value) -> Value {
        if self.masker.is_empty() {
            return value.clone();
        }
        map_texts(value.clone(), &mut |text| match self.masker.mask(&text) {
            std::borrow::Cow::Owned(masked) => masked,
            std::borrow::Cow::Borrowed(_) => text,
        })
    }

    fn value(&self, value: Value, ids: &[String], marks: &mut Marks) -> Value {
        map_texts(value, &mut |text| self.text(&text, ids, marks))
    }

    fn text(&self, text: &str, ids: &[String], marks: &mut Marks) -> String {
        let text = &escaped(text);
        self.normalised(self.finder.replace(text, ids, |kind, value| Some(marks.mark(kind, value))))
    }

    fn normalised(&self, text: String) -> String {
        self.rules.normalise.iter().fold(text, |text, rule| match rule.regex.0.replace_all(&text, rule.with.as_str()) {
            std::borrow::Cow::Owned(new) => new,
            std::borrow::Cow::Borrowed(_) => text,
        })
    }
}

impl Marks {
    /// Returns the mark of a value. A value without a mark gets a new one.
    fn mark(&mut self, kind: Kind, value: &str) -> String {
        if let Some(mark) = self.marks.get(value) {
            return mark.clone();
        }
        let count = self.counts.get_mut(kind as usize).map_or(0, |count| {
            *count += 1;
            *count
        });
        let mark = format!("{BEGIN}{}:{count}}}", kind.word());
        self.values.insert(mark.clone(), value.to_owned());
        self.marks.insert(value.to_owned(), mark.clone());
        mark
    }

    /// Replaces the marks of a stored answer by the current values. An id that the answer introduced is made from the
    /// number of its entry, so that it is the same in each replay and in no other answer.
    pub fn put_back(&self, api: Api, answer: &Value, entry: u64) -> Value {
        let mut kinds: HashMap<String, IdKind> = HashMap::new();
        api.ids(answer, &mut |kind, mark| {
            kinds.entry(mark.to_owned()).or_insert(kind);
        });
        let value = |mark: &str| match self.values.get(mark) {
            Some(value) => value.clone(),
            None => match id_number(mark) {
                Some(number) => {
                    let kind = kinds.get(mark).copied().unwrap_or(IdKind::Item);
                    api.new_id(kind, entry.saturating_mul(IDS_PER_ENTRY).saturating_add(number))
                }
                None => mark.to_owned(),
            },
        };
        map_texts(answer.clone(), &mut |text| {
            if !text.contains(BEGIN) {
                return text;
            }
            let mut filled = String::with_capacity(text.len());
            let mut rest = text.as_str();
            while let Some(start) = rest.find(BEGIN) {
                filled.push_str(&rest[..start]);
                rest = &rest[start..];
                if let Some(behind) = rest.strip_prefix(ESCAPED) {
                    filled.push_str(BEGIN);
                    rest = behind;
                    continue;
                }
                let Some(end) = rest.find('}') else { break };
                filled.push_str(&value(&rest[..=end]));
                rest = &rest[end + 1..];
            }
            filled.push_str(rest);
            filled
        })
    }
}

/// Returns the number in a mark such as `{id:7}`, which replaces an id.
fn id_number(mark: &str) -> Option<u64> {
    mark.strip_prefix(BEGIN)?.strip_prefix("id:")?.strip_suffix('}')?.parse().ok()
}

/// Applies a function to each text of a value, in order.
fn map_texts(value: Value, map: &mut impl FnMut(String) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(map(text)),
        Value::Array(items) => Value::Array(items.into_iter().map(|item| map_texts(item, map)).collect()),
        Value::Object(fields) => {
            let fields: Map<String, Value> =
                fields.into_iter().map(|(key, value)| (key, map_texts(value, map))).collect();
            Value::Object(fields)
        }
        other => other,
    }
}

/// Finds folders, ids, UUIDs and times in texts.
#[derive(Debug, Clone)]
struct Folders {
    /// Paths with their marks, the longest first.
    paths: Vec<(String, String)>,
}

/// UUIDs, and dates with a time of day by ISO 8601.
static VALUES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let uuid = "(?P<uuid>[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})";
    let time = r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)";
    Regex::new(&format!(r"\b(?:{uuid}|{time})")).ok()
});

impl Folders {
    fn new(here: &Here) -> Self {
        let named = [("workspace", &here.workspace), ("home", &here.home), ("tmp", &here.temporary)];
        let mut paths = Vec::new();
        for (name, path) in named {
            let path = path.trim_end_matches('/');
            if path.len() < 2 {
                continue;
            }
            paths.push((path.to_owned(), format!("{BEGIN}{name}}}")));
            // Agents name folders of their own after the path of the workspace, with `-` for other characters.
            let plain: String = path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
            if plain.len() >= LONG_ID {
                paths.push((plain, format!("{BEGIN}{name}:name}}")));
            }
        }
        paths.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        paths.dedup_by(|one, other| one.0 == other.0);
        Self { paths }
    }

    /// Replaces ids, UUIDs and times in a text. `mark` returns the mark of a value, or `None` to keep the value.
    fn replace(&self, text: &str, ids: &[String], mut mark: impl FnMut(Kind, &str) -> Option<String>) -> String {
        if ids.iter().any(|id| id == text) {
            return mark(Kind::Id, text).unwrap_or_else(|| text.to_owned());
        }
        let mut found: Vec<(usize, usize, Option<Kind>, &str)> = Vec::new();
        for (path, name) in &self.paths {
            found.extend(places_of(text, path, is_path_end).map(|at| (at, at + path.len(), None, name.as_str())));
        }
        for id in ids.iter().filter(|id| id.len() >= LONG_ID) {
            found.extend(places_of(text, id, |_| true).map(|at| (at, at + id.len(), Some(Kind::Id), "")));
        }
        for captures in VALUES.iter().flat_map(|values| values.captures_iter(text)) {
            let (kind, part) = match (captures.name("uuid"), captures.name("time")) {
                (Some(uuid), _) => (Kind::Uuid, uuid),
                (None, Some(time)) => (Kind::Time, time),
                (None, None) => continue,
            };
            found.push((part.start(), part.end(), Some(kind), ""));
        }
        if found.is_empty() {
            return text.to_owned();
        }
        found.sort_by_key(|(start, end, _, _)| (*start, std::cmp::Reverse(*end)));
        let mut replaced = String::with_capacity(text.len());
        let mut copied = 0;
        for (start, end, kind, name) in found {
            if start < copied {
                continue;
            }
            let value = &text[start..end];
            let new = match kind {
                None => Some(name.to_owned()),
                Some(kind) => mark(kind, value),
            };
            replaced.push_str(&text[copied..start]);
            replaced.push_str(new.as_deref().unwrap_or(value));
            copied = end;
        }
        replaced.push_str(&text[copied..]);
        replaced
    }

    /// Returns the marks of the folders, which any answer may name.
    fn marks(&self) -> Marks {
        let values = self.paths.iter().map(|(path, mark)| (mark.clone(), path.clone())).collect();
        Marks { values, ..Marks::default() }
    }
}

/// Returns the places of a word in a text whose next character fits.
fn places_of<'a>(
    text: &'a str,
    word: &'a str,
    fits: impl Fn(Option<char>) -> bool + 'a,
) -> impl Iterator<Item = usize> {
    text.match_indices(word).map(|(at, _)| at).filter(move |at| fits(text[at + word.len()..].chars().next()))
}

/// Returns true if a path ends before this character: `/tmp/a` is not part of `/tmp/abc`.
fn is_path_end(next: Option<char>) -> bool {
    next.is_none_or(|next| !next.is_alphanumeric() && next != '_' && next != '-')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn canon(trial: &str) -> Canon {
        let here = Here {
            workspace: format!("/tmp/{trial}/workspace"),
            home: format!("/tmp/{trial}/home"),
            temporary: format!("/tmp/{trial}/tmp"),
        };
        Canon::new(&here, Rules::default(), Masker::default())
    }

    fn request(trial: &str, call: &str, session: &str, time: &str) -> Value {
        json!({
            "model": "m",
            "metadata": {"user_id": session},
            "system": [{"type": "text", "text": format!("cwd /tmp/{trial}/workspace, notes in \
                /tmp/{trial}/home/.agent/-tmp-{trial}-workspace. Session {session} of {time}"),
                "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": call, "name": "Read", "input": {"path": format!("/tmp/{trial}/workspace/a")}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": call, "content": format!("see {call}")}]},
            ]
        })
    }

    const PATH: &str = "/v1/messages";

    #[test]
    fn what_differs_between_two_runs_without_meaning_is_equal() {
        let one =
            request("run-1", "toolu_01ABCDEFGHIJ", "11111111-2222-4333-8444-555555555555", "2026-11-23T09:00:00Z");
        let two =
            request("other", "toolu_01ZYXWVUTSRQ", "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee", "2027-01-01T23:59:59.5Z");
        let first = canon("run-1").request(Api::Anthropic, PATH, &one);
        let second = canon("other").request(Api::Anthropic, PATH, &two);
        assert_eq!(first.body, second.body);
        insta::assert_json_snapshot!(first.body, @r#"
        {
          "model": "m",
          "metadata": {},
          "system": [
            {
              "type": "text",
              "text": "cwd {evals:workspace}, notes in {evals:home}/.agent/{evals:workspace:name}. Session {evals:uuid:1} of {evals:time:1}"
            }
          ],
          "messages": [
            {
              "role": "user",
              "content": "go"
            },
            {
              "role": "assistant",
              "content": [
                {
                  "type": "tool_use",
                  "id": "{evals:id:1}",
                  "name": "Read",
                  "input": {
                    "path": "{evals:workspace}/a"
                  }
                }
              ]
            },
            {
              "role": "user",
              "content": [
                {
                  "type": "tool_result",
                  "tool_use_id": "{evals:id:1}",
                  "content": "see {evals:id:1}"
                }
              ]
            }
          ]
        }
        "#);
        // Another file is another request.
        let text = one.to_string().replace("workspace/a", "workspace/b");
        let third = canon("run-1").request(Api::Anthropic, PATH, &serde_json::from_str(&text).unwrap());
        assert_ne!(first.body, third.body);
    }

    #[test]
    fn an_answer_gets_the_values_of_the_request_that_it_answers() {
        let session = "11111111-2222-4333-8444-555555555555";
        let answer = json!({"id": "msg_01ABC", "content": [
            {"type": "text", "text": format!("session {session}, and 99999999-2222-4333-8444-555555555555")},
            {"type": "tool_use", "id": "toolu_01NEWNEWNEW", "name": "Write", "input": {"path": "/tmp/run-1/workspace/b"}}]});
        let recorded =
            canon("run-1").request(Api::Anthropic, PATH, &request("run-1", "toolu_01ABCDEFGHIJ", session, ""));
        let stored = canon("run-1").answer(Api::Anthropic, &answer, &recorded.marks);
        let now = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee";
        let live = canon("other").request(Api::Anthropic, PATH, &request("other", "toolu_01ZYXWVUTSRQ", now, ""));
        let played = live.marks.put_back(Api::Anthropic, &stored, 7);
        assert_eq!(played["content"][0]["text"], format!("session {now}, and 99999999-2222-4333-8444-555555555555"));
        assert_eq!(played["content"][1]["input"]["path"], "/tmp/other/workspace/b");
        let id = played["content"][1]["id"].as_str().unwrap();
        assert!(id.starts_with("toolu_") && id != "toolu_01NEWNEWNEW", "{id}");
        assert_eq!(played, live.marks.put_back(Api::Anthropic, &stored, 7));
        assert_ne!(played["content"][1]["id"], live.marks.put_back(Api::Anthropic, &stored, 8)["content"][1]["id"]);
    }

    #[test]
    fn a_text_that_looks_like_a_mark_is_none() {
        let body = |text: &str| json!({"messages": [{"role": "user", "content": text}]});
        let canon = canon("t");
        let of = |text: &str| canon.request(Api::OpenaiChat, "/v1/chat/completions", &body(text));
        assert_ne!(of("{evals:workspace}").body, of("/tmp/t/workspace").body);
        let request = of("x");
        for content in ["{evals:workspace} /tmp/t/workspace", "{evals: /tmp/t/workspace", "{evals: x", "{evals::x}"] {
            let answer = json!({"choices": [{"message": {"content": content}}]});
            let stored = canon.answer(Api::OpenaiChat, &answer, &request.marks);
            assert_eq!(request.marks.put_back(Api::OpenaiChat, &stored, 1), answer);
        }
    }

    #[test]
    fn a_path_is_not_found_within_a_longer_name() {
        let body = json!({"messages": [{"content": "/tmp/t/workspace2 /tmp/t/workspace/x /tmp/t/workspace-old /tmp/t/workspace"}]});
        let canonical = canon("t").request(Api::OpenaiChat, "/v1/chat/completions", &body);
        let text = canonical.body["messages"][0]["content"].as_str().unwrap();
        assert_eq!(text, "/tmp/t/workspace2 {evals:workspace}/x /tmp/t/workspace-old {evals:workspace}");
    }

    #[test]
    fn the_skills_of_gemini_have_one_form_in_any_order() {
        #[derive(serde::Deserialize)]
        struct Manifest {
            gateway: Gateway,
        }
        #[derive(serde::Deserialize)]
        struct Gateway {
            normalise: Vec<Replacement>,
        }
        let texts = [include_str!("../../harnesses/gemini.yaml"), include_str!("../../harnesses/gemini-stream.yaml")];
        for text in texts {
            let manifest: Manifest = serde_yaml::from_str(text).unwrap();
            let rules = Rules { normalise: manifest.gateway.normalise, ignore_results: false };
            let canon = Canon::new(&Here::default(), rules, Masker::default());
            let form = |names: [&str; 2]| {
                let listed = names.map(|name| format!("'{name}'")).join(", ");
                let described =
                    names.map(|name| format!("  <skill>\n<name>{name}</name>\n<location>x</location></skill>"));
                let body = json!({
                    "systemInstruction": {"parts": [{"text": described.join("\n")}]},
                    "tools": [{"functionDeclarations": [{
                        "name": "activate_skill",
                        "description": format!("by name (Available: {listed})."),
                        "parameters": {"properties": {"name": {"enum": names}}},
                    }]}],
                });
                canon.request(Api::Gemini, "/v1beta/models/m:generateContent", &body).body
            };
            assert_eq!(form(["skill-creator", "antigravity-support"]), form(["antigravity-support", "skill-creator"]));
            assert_ne!(form(["skill-creator", "antigravity-support"]), form(["skill-creator", "mine"]));
        }
    }
}

//! Checks the types in an expression before it runs, so that unknown fields are reported at once.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use cel::Program;
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};
use serde_json::Value;

use crate::expression::Wrong;
use crate::grader::trial_json::{FILE_LISTS, LOWER_BOUNDS, UNMEASURED};
use crate::schema;
use crate::trace::usage::Measure;
use crate::yaml::words;

/// The type of a value, as far as known.
#[derive(Debug, Clone, PartialEq)]
enum Type {
    Truth,
    Number,
    Text,
    List(Box<Type>),
    /// A map with known keys.
    Record(Arc<Record>),
    /// Unknown.
    Any,
}

/// A map with known keys: its name, and the type of each value.
#[derive(Debug, PartialEq)]
struct Record {
    name: String,
    fields: Vec<(String, Type)>,
}

use Type::{Any, Number, Text};

/// The variables of an expression with their types.
static TYPES: LazyLock<Vec<(&str, Type)>> = LazyLock::new(|| {
    let texts = || Type::List(Box::new(Text));
    let list = |record| Type::List(Box::new(record));
    let call = record(
        "a call",
        [
            ("call", Text),
            ("seq", Number),
            ("step", Number),
            ("kind", Text),
            ("name", Text),
            ("title", Text),
            ("input", Any),
            ("paths", texts()),
            ("status", Text),
            ("output", Text),
            ("exit_code", Number),
            ("parent", Text),
        ],
    );
    let message = record("a message", [("role", Text), ("text", Text), ("seq", Number), ("parent", Text)]);
    let permission = record(
        "a permission",
        [
            ("call", Text),
            ("request", Text),
            ("kind", Text),
            ("outcome", Text),
            ("option", Text),
            ("rule", Text),
            ("reason", Text),
            ("seq", Number),
        ],
    );
    let figures = Measure::all().map(|measure| (measure.word(), Number));
    vec![
        ("calls", list(call)),
        ("messages", list(message)),
        ("permissions", list(permission)),
        ("output", Text),
        ("stop", of_schema("stop", "trace", "Stop")),
        ("usage", record("usage", figures.chain([(LOWER_BOUNDS, texts())]))),
        ("files", record("files", FILE_LISTS.into_iter().chain([UNMEASURED, LOWER_BOUNDS]).map(|key| (key, texts())))),
        ("metrics", of_schema("metrics", "result", "Metrics")),
    ]
});

fn record<'a>(name: &str, fields: impl IntoIterator<Item = (&'a str, Type)>) -> Type {
    let fields = fields.into_iter().map(|(key, known_type)| (key.to_owned(), known_type)).collect();
    Type::Record(Arc::new(Record { name: name.to_owned(), fields }))
}

/// Returns the type that a definition in the schema of a kind of file describes, so that an expression knows each key of a
/// published format.
fn of_schema(name: &str, kind: &str, definition: &str) -> Type {
    fn of(name: &str, schema: &Value, root: &Value) -> Type {
        if let Some(reference) = schema["$ref"].as_str() {
            let pointed = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
            return pointed.map_or(Any, |schema| of(name, schema, root));
        }
        // An optional value is of its type or null.
        if let Some(forms) = schema["anyOf"].as_array() {
            let mut forms = forms.iter().filter(|form| form["type"] != "null");
            return forms.next().filter(|_| forms.next().is_none()).map_or(Any, |form| of(name, form, root));
        }
        let types = schema["type"].as_array().map_or(std::slice::from_ref(&schema["type"]), Vec::as_slice);
        let kind = types.iter().filter_map(Value::as_str).find(|kind| *kind != "null");
        match kind {
            Some("boolean") => Type::Truth,
            Some("integer" | "number") => Number,
            Some("string") => Text,
            Some("array") => Type::List(Box::new(of(name, &schema["items"], root))),
            Some("object") => match schema["properties"].as_object() {
                Some(keys) => {
                    let within = |key: &str| format!("{name}.{key}");
                    record(name, keys.iter().map(|(key, schema)| (key.as_str(), of(&within(key), schema, root))))
                }
                None => Any,
            },
            // Each word of a closed set has a schema of its own.
            _ if schema["oneOf"].as_array().is_some_and(|all| all.iter().all(|it| it["const"].is_string())) => Text,
            _ => Any,
        }
    }
    let root = schema::schema(kind).unwrap_or_default();
    of(name, &root["$defs"][definition], &root)
}

fn variable(name: &str) -> Type {
    TYPES.iter().find(|(known, _)| *known == name).map_or(Any, |(_, known_type)| known_type.clone())
}

impl Type {
    fn described(&self) -> &'static str {
        match self {
            Type::Truth => "true or false",
            Type::Number => "a number",
            Type::Text => "a text",
            Type::List(_) => "a list",
            Type::Record(_) => "a map",
            Type::Any => "anything",
        }
    }

    /// Returns the common type of two branches.
    fn both(self, other: Type) -> Type {
        if self == other { self } else { Type::Any }
    }
}

/// The hint for an expression that uses no variable.
const KNOWN: &str = "use a value of the trial, such as size(calls) < 10, or output.contains('done'), or \
    metrics.cost_usd <= 0.5";

/// Refuses an expression that reads an unknown field, compares values that can never be equal, or gives neither
/// a boolean nor a number.
pub fn check(text: &str, program: &Program) -> Result<(), Wrong> {
    let mut walk = Walk { text, program, bound: Vec::new() };
    let root = program.expression();
    let known_type = walk.type_of(root)?;
    let is_result = matches!(known_type, Type::Truth | Type::Number | Type::Any);
    if is_result && !super::VARIABLES.iter().any(|name| reads(root, name)) {
        let message = "the expression uses no value of the trial, so it would check nothing".to_owned();
        return Err(Wrong { range: 0..text.len(), message, help: Some(KNOWN.to_owned()) });
    }
    match known_type {
        Type::Truth | Type::Number | Type::Any => Ok(()),
        other => {
            let message = format!("the expression returns {}, not true, false or a number", other.described());
            Err(Wrong { range: 0..text.len(), message, help: Some("compare it, such as size(calls) < 10".to_owned()) })
        }
    }
}

/// Returns true if an expression reads a variable of the trial, and not only a variable of a macro with the same name.
fn reads(node: &IdedExpr, name: &str) -> bool {
    match &node.expr {
        Expr::Ident(ident) => ident.trim_start_matches('.') == name,
        Expr::Select(select) => reads(&select.operand, name),
        Expr::Call(call) => call.target.iter().map(|it| &**it).chain(&call.args).any(|part| reads(part, name)),
        Expr::List(list) => list.elements.iter().any(|part| reads(part, name)),
        Expr::Comprehension(each) => {
            let is_bound = each.iter_var == name || each.iter_var2.as_deref() == Some(name);
            let within = [&each.loop_cond, &each.loop_step, &each.result];
            let outside = [&each.iter_range, &each.accu_init].into_iter().any(|part| reads(part, name));
            outside || (!is_bound && within.into_iter().any(|part| reads(part, name)))
        }
        Expr::Map(map) => map.entries.iter().any(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => reads(&entry.key, name) || reads(&entry.value, name),
            EntryExpr::StructField(field) => reads(&field.value, name),
        }),
        Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => false,
    }
}

/// Returns true if an expression reads a field of this name, of whatever value.
pub fn reads_field(program: &Program, field: &str) -> bool {
    fn any<'a>(parts: impl IntoIterator<Item = &'a IdedExpr>, field: &str) -> bool {
        parts.into_iter().any(|part| is_in(part, field))
    }
    fn is_in(node: &IdedExpr, field: &str) -> bool {
        match &node.expr {
            Expr::Select(select) => select.field == field || is_in(&select.operand, field),
            Expr::Literal(LiteralValue::String(text)) => text.inner() == field,
            Expr::Call(call) => any(call.target.iter().map(|it| &**it).chain(&call.args), field),
            Expr::List(list) => any(&list.elements, field),
            Expr::Comprehension(it) => {
                any([&it.iter_range, &it.accu_init, &it.loop_cond, &it.loop_step, &it.result], field)
            }
            Expr::Map(map) => map.entries.iter().any(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => any([&entry.key, &entry.value], field),
                EntryExpr::StructField(entry) => is_in(&entry.value, field),
            }),
            Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => false,
        }
    }
    is_in(program.expression(), field)
}

/// Returns true if an expression uses a variable.
pub fn names(program: &Program, name: &str) -> bool {
    program.references().has_variable(name)
}

struct Walk<'a> {
    text: &'a str,
    program: &'a Program,
    /// Variables of the enclosing macros.
    bound: Vec<(&'a str, Type)>,
}

impl<'a> Walk<'a> {
    fn type_of(&mut self, node: &'a IdedExpr) -> Result<Type, Wrong> {
        Ok(match &node.expr {
            Expr::Ident(name) => {
                let bound = self.bound.iter().rev().find(|(known, _)| known == name);
                bound.map_or_else(|| variable(name.trim_start_matches('.')), |(_, known_type)| known_type.clone())
            }
            Expr::Select(select) => {
                let of = self.type_of(&select.operand)?;
                let field = self.field(&of, &select.field, node.id)?;
                if select.test { Type::Truth } else { field }
            }
            Expr::Call(call) => self.call(call, node.id)?,
            Expr::Comprehension(each) => self.each(each)?,
            Expr::List(list) => {
                let mut known_type = None;
                for element in &list.elements {
                    let next = self.type_of(element)?;
                    known_type = Some(known_type.map_or(next.clone(), |known_type: Type| known_type.both(next)));
                }
                Type::List(Box::new(known_type.unwrap_or(Type::Any)))
            }
            Expr::Literal(literal) => match literal {
                LiteralValue::Boolean(_) => Type::Truth,
                LiteralValue::Double(_) | LiteralValue::Int(_) | LiteralValue::UInt(_) => Type::Number,
                LiteralValue::String(_) => Type::Text,
                LiteralValue::Bytes(_) | LiteralValue::Null => Type::Any,
            },
            Expr::Map(_) | Expr::Struct(_) | Expr::Unspecified => Type::Any,
        })
    }

    fn field(&self, of: &Type, field: &str, id: u64) -> Result<Type, Wrong> {
        match of {
            Type::Any => Ok(Type::Any),
            Type::Record(record) => match record.fields.iter().find(|(known, _)| *known == field) {
                Some((_, field)) => Ok(field.clone()),
                None => {
                    let known: Vec<&str> = record.fields.iter().map(|(known, _)| known.as_str()).collect();
                    let help = words::known_words(field, &known, "fields");
                    Err(self.wrong(id, field, format!("{} has no `{field}`", record.name), Some(help)))
                }
            },
            other => Err(self.wrong(id, field, format!("{} has no fields, so no `{field}`", other.described()), None)),
        }
    }

    fn call(&mut self, call: &'a CallExpr, id: u64) -> Result<Type, Wrong> {
        let target = match &call.target {
            // A namespace such as `optional` is not a value.
            Some(target) if matches!(&target.expr, Expr::Ident(name) if ["optional", "strings", "lists"].contains(&name.as_str())) => {
                None
            }
            Some(target) => Some(self.type_of(target)?),
            None => None,
        };
        let mut arguments = Vec::new();
        for argument in &call.args {
            arguments.push(self.type_of(argument)?);
        }
        let name = call.func_name.as_str();
        let of = |n: usize| arguments.get(n).cloned().unwrap_or(Type::Any);
        Ok(match name {
            "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" => {
                let (one, other) = (of(0), of(1));
                let is_known = |known_type: &Type| {
                    matches!(known_type, Type::Truth | Type::Number | Type::Text | Type::List(_) | Type::Record(_))
                };
                let alike = std::mem::discriminant(&one) == std::mem::discriminant(&other);
                if is_known(&one) && is_known(&other) && !alike {
                    let message = format!("{} is compared with {}", one.described(), other.described());
                    return Err(self.wrong(id, "", message, None));
                }
                Type::Truth
            }
            "_&&_" | "_||_" | "!_" | "@not_strictly_false" => {
                for (known_type, argument) in arguments.iter().zip(&call.args) {
                    if !matches!(known_type, Type::Truth | Type::Any) {
                        let message = format!("expected true or false, found {}", known_type.described());
                        return Err(self.wrong(argument.id, "", message, None));
                    }
                }
                Type::Truth
            }
            "@in" => {
                if matches!(of(1), Type::Truth | Type::Number | Type::Text) {
                    let help = Some("to look for a text within a text, write text.contains('…')".to_owned());
                    return Err(self.wrong(
                        id,
                        "",
                        format!("`in` needs a list or a map, found {}", of(1).described()),
                        help,
                    ));
                }
                Type::Truth
            }
            "_?_:_" => {
                if let (false, Some(asked)) = (matches!(of(0), Type::Truth | Type::Any), call.args.first()) {
                    let message = format!("expected true or false, found {}", of(0).described());
                    return Err(self.wrong(asked.id, "", message, None));
                }
                of(1).both(of(2))
            }
            "_[_]" => match (of(0), call.args.get(1).map(|argument| &argument.expr)) {
                (Type::List(element), _) => *element,
                (Type::Record(record), Some(Expr::Literal(LiteralValue::String(key)))) => {
                    self.field(&Type::Record(record), key.inner(), id)?
                }
                _ => Type::Any,
            },
            "_-_" | "_*_" | "_/_" | "_%_" | "-_" => {
                match arguments.iter().find(|known_type| matches!(known_type, Type::Text | Type::Truth | Type::List(_)))
                {
                    Some(known_type) => {
                        return Err(self.wrong(
                            id,
                            "",
                            format!("{} cannot be used in arithmetic", known_type.described()),
                            None,
                        ));
                    }
                    None => Type::Number,
                }
            }
            "_+_" => {
                let (one, other) = (of(0), of(1));
                let goes = |known_type: &Type| !matches!(known_type, Type::Truth | Type::Record(_));
                let alike = std::mem::discriminant(&one) == std::mem::discriminant(&other);
                if !goes(&one) || !goes(&other) || !(alike || one == Type::Any || other == Type::Any) {
                    let message = format!("{} and {} cannot be added", one.described(), other.described());
                    return Err(self.wrong(id, "", message, None));
                }
                one.both(other)
            }
            "size" => {
                let on = target.unwrap_or_else(|| of(0));
                if matches!(on, Type::Number | Type::Truth) {
                    return Err(self.wrong(id, "", format!("{} has no size", on.described()), None));
                }
                Type::Number
            }
            "indexOf" | "lastIndexOf" | "int" | "uint" | "double" => Type::Number,
            "contains" | "startsWith" | "endsWith" | "matches" => {
                let on = target.unwrap_or_else(|| of(0));
                if !matches!(on, Type::Text | Type::Any) {
                    let help = matches!(on, Type::List(_))
                        .then(|| "to look for a value in a list, write 'x' in list".to_owned());
                    return Err(self.wrong(id, name, format!("`{name}` needs a text, found {}", on.described()), help));
                }
                Type::Truth
            }
            "string" | "lowerAscii" | "upperAscii" | "trim" | "join" | "replace" | "substring" | "charAt" => Type::Text,
            "bool" | "hasValue" => Type::Truth,
            "reverse" | "slice" | "distinct" | "sort" | "@sortByAssociatedKeys" => target.unwrap_or(Type::Any),
            _ => Type::Any,
        })
    }

    /// Returns the type of a macro over a list: `exists`, `all`, `map`, `filter` …
    fn each(&mut self, each: &'a ComprehensionExpr) -> Result<Type, Wrong> {
        let element = match self.type_of(&each.iter_range)? {
            Type::List(element) => *element,
            Type::Record(_) => Type::Text,
            Type::Any => Type::Any,
            other => {
                let message = format!("expected a list, found {}", other.described());
                return Err(self.wrong(each.iter_range.id, "", message, None));
            }
        };
        let begins = self.type_of(&each.accu_init)?;
        let before = self.bound.len();
        self.bound.push((&each.iter_var, element));
        self.bound.extend(each.iter_var2.as_deref().map(|name| (name, Type::Any)));
        // The type of the collected items is unknown before the type of the collecting step is known.
        let gathered = match begins {
            Type::List(_) => Type::Any,
            other => other,
        };
        self.bound.push((&each.accu_var, gathered.clone()));
        self.type_of(&each.loop_cond)?;
        self.type_of(&each.loop_step)?;
        let element = (gathered == Type::Any).then(|| appended(&each.loop_step)).flatten();
        let element = element.map(|node| self.type_of(node)).transpose()?;
        if let Some(element) = element
            && let Some((_, known_type)) = self.bound.last_mut()
        {
            *known_type = Type::List(Box::new(element));
        }
        let result = self.type_of(&each.result);
        self.bound.truncate(before);
        result
    }

    fn wrong(&self, id: u64, name: &str, message: String, help: Option<String>) -> Wrong {
        Wrong { range: self.range(id, name), message, help }
    }

    /// Returns the range of a node, or of the name within it if found.
    fn range(&self, id: u64, name: &str) -> Range<usize> {
        let Some((start, stop)) = self.program.source_info().offset_for(id) else { return 0..self.text.len() };
        let (start, stop) = (start as usize, stop as usize);
        let named = self.text.get(start..).and_then(|rest| rest.find(name)).filter(|_| !name.is_empty());
        match named {
            Some(at) => start + at..start + at + name.len(),
            None => {
                let start = self.text.floor_char_boundary(start.min(self.text.len()));
                start..self.text.ceil_char_boundary((stop + 1).clamp(start, self.text.len()))
            }
        }
    }
}

/// Returns the expression that a step of `map` or `filter` appends to its list.
fn appended(step: &IdedExpr) -> Option<&IdedExpr> {
    let Expr::Call(call) = &step.expr else { return None };
    match call.func_name.as_str() {
        "_?_:_" => call.args.get(1).and_then(appended),
        "_+_" => match call.args.get(1).map(|argument| &argument.expr) {
            Some(Expr::List(list)) => list.elements.first(),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grader::Subject;
    use crate::grader::trial_json::Account;
    use crate::trace::calls::Joiner;
    use crate::trace::facts::Reading;
    use crate::trace::jsonl::read_event;

    /// Returns the keys of a variable, or of the members of a list.
    fn keys(name: &str) -> Vec<String> {
        let record = match variable(name) {
            Type::Record(record) => record,
            Type::List(member) => match *member {
                Type::Record(record) => record,
                other => panic!("{name} is a list of {}", other.described()),
            },
            other => panic!("{name} is {}", other.described()),
        };
        let mut keys: Vec<String> = record.fields.iter().map(|(key, _)| key.clone()).collect();
        keys.sort();
        keys
    }

    #[test]
    fn every_variable_has_a_type() {
        let names: Vec<&str> = TYPES.iter().map(|(name, _)| *name).collect();
        let mut expected = super::super::VARIABLES.to_vec();
        expected.sort_by_key(|name| names.iter().position(|known| known == name));
        assert_eq!(names, expected);
    }

    #[test]
    fn calls_messages_and_permissions_have_the_keys_of_their_types() {
        let trace = r#"{"seq":0,"at_ms":0,"type":"message","role":"agent","text":"a","parent":"c"}
{"seq":1,"at_ms":0,"type":"tool_call","call":"c","step":1,"kind":"execute","name":"n","title":"t","input":{"a":1},"locations":[{"path":"p"}],"parent":"c0"}
{"seq":2,"at_ms":0,"type":"permission_request","call":"c","request":"r","options":[{"option":"y","kind":"allow_once","label":"Yes"}]}
{"seq":3,"at_ms":0,"type":"permission_response","call":"c","request":"r","outcome":"allowed","option":"y","policy":"rules","rule":"1","reason":"why"}
{"seq":4,"at_ms":0,"type":"tool_result","call":"c","status":"ok","output":"o","exit_code":0}
{"seq":5,"at_ms":0,"type":"stop","reason":"end_turn"}
"#;
        let (mut joiner, mut account) = (Joiner::default(), Account::default());
        for line in trace.lines() {
            let event = read_event(line.as_bytes()).unwrap();
            account.event(&event);
            for call in joiner.event(&event) {
                account.call(&Subject::of(&call, &Reading::default()));
            }
        }
        for (name, members) in
            [("calls", &account.calls), ("messages", &account.messages), ("permissions", &account.permissions)]
        {
            let [member] = members.as_slice() else { panic!("{name}: {members:?}") };
            let mut found: Vec<&String> = member.as_object().unwrap().keys().collect();
            found.sort();
            assert_eq!(found, keys(name).iter().collect::<Vec<_>>(), "{name}");
        }
    }

    #[test]
    fn metrics_and_stop_have_the_keys_of_the_published_formats() {
        let metrics = keys("metrics");
        for key in ["failed_calls", "changed_files", "permissions", "lower_bounds"] {
            assert!(metrics.iter().any(|known| known == key), "{key}: {metrics:?}");
        }
        assert_eq!(keys("stop"), ["category", "detail", "exit", "gap", "output", "reason"]);
        let Type::Record(metrics) = variable("metrics") else { unreachable!() };
        let of =
            |key: &str| metrics.fields.iter().find(|(known, _)| known == key).map(|(_, known_type)| known_type.clone());
        assert_eq!(
            (of("failed_calls"), of("cost_source"), of("tool_calls_by_kind")),
            (Some(Number), Some(Text), Some(Any))
        );
        assert_eq!(of("lower_bounds"), Some(Type::List(Box::new(Text))));
        assert_eq!(of("permissions").map(|known_type| known_type.described()), Some("a map"));
    }
}

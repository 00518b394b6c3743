//! The functions of expressions: CEL's own, its string and list functions, and a few for the output of agents.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use cel::common::ast::{CallExpr, Expr, IdedExpr};
use cel::common::types::{CelList, CelString, DYN_TYPE, LIST_TYPE, STRING_TYPE};
use cel::common::value::{CowVal, Val};
use cel::parser::{Macro, MacroExprHelper};
use cel::{Env, ExecutionError, extensions};
use regex::RegexBuilder;
use serde_json::Value;

use super::value::{Json, Work, to_json};
use crate::big_numbers;
use crate::trace::view;

/// Functions that are called by name.
pub(super) const GLOBAL: &[&str] = &[
    "size",
    "matches",
    "string",
    "int",
    "uint",
    "double",
    "bool",
    "bytes",
    "dyn",
    "type",
    "has",
    "capture",
    "to_json",
    "parse_json",
    "texts",
    "first",
];

/// Functions that are called on a value.
pub(super) const MEMBER: &[&str] = &[
    "size",
    "matches",
    "contains",
    "startsWith",
    "endsWith",
    "all",
    "exists",
    "exists_one",
    "map",
    "filter",
    "orValue",
    "or",
    "value",
    "hasValue",
    "optMap",
    "optFlatMap",
    "charAt",
    "indexOf",
    "lastIndexOf",
    "join",
    "lowerAscii",
    "upperAscii",
    "trim",
    "replace",
    "split",
    "substring",
    "format",
    "reverse",
    "slice",
    "flatten",
    "distinct",
    "sort",
    "sortBy",
];

/// Namespaces of functions, as in `optional.of(…)`.
pub(super) const NAMESPACES: &[&str] = &["optional", "strings", "lists"];

/// Types by name, for `type(x) == string`.
pub(super) const TYPES: &[&str] =
    &["bool", "bytes", "double", "int", "list", "map", "null_type", "optional_type", "string", "type", "uint"];

static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    // Functions that make new values get the remaining work, so that these values are counted as well.
    for (name, arguments) in [("parse_json", 1), ("first", 2)] {
        let _ = env.add_macro(Macro::global(name, arguments, move |helper, _, args| {
            Ok(Some(counted(helper, name, None, args)))
        }));
    }
    let _ = env.add_macro(Macro::receiver("distinct", 0, |helper, target, args| {
        Ok(Some(counted(helper, "distinct", target.take(), args)))
    }));
    // Each name is listed once; a test calls every one of them.
    let _ = env.add_extension(extensions::strings);
    let _ = env.add_extension(extensions::lists);
    let _ = env.add_overload("capture", "capture", vec![STRING_TYPE, STRING_TYPE], capture);
    let _ = env.add_overload("to_json", "to_json", vec![DYN_TYPE], written);
    let _ = env.add_overload("parse_json", "parse_json", vec![DYN_TYPE, DYN_TYPE], parsed);
    let _ = env.add_overload("texts", "texts", vec![DYN_TYPE], texts);
    let _ = env.add_overload("texts", "texts_with", vec![DYN_TYPE, STRING_TYPE], texts);
    let _ = env.add_overload("first", "first", vec![DYN_TYPE, DYN_TYPE, DYN_TYPE], first);
    let _ = env.add_member_overload("distinct", "distinct_counted", DYN_TYPE, vec![DYN_TYPE], distinct);
    Arc::new(env)
});

/// Returns the functions that every expression can call.
pub(super) fn env() -> Arc<Env> {
    ENV.clone()
}

/// The variable for the remaining work; its name cannot be written in an expression.
pub(super) const WORK: &str = "@work";

/// Returns the call with one more argument: the variable for the remaining work.
fn counted(
    helper: &mut MacroExprHelper<'_>,
    name: &str,
    target: Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
) -> IdedExpr {
    let mut args = std::mem::take(args);
    args.push(helper.next_expr(Expr::Ident(WORK.to_owned())));
    helper.next_expr(Expr::Call(CallExpr { func_name: name.to_owned(), target: target.map(Box::new), args }))
}

fn work_of<'a>(value: Option<&'a CowVal<'_, '_>>) -> Result<&'a Work, ExecutionError> {
    let work = value.and_then(|value| value.downcast_ref::<Work>());
    work.ok_or_else(ExecutionError::missing_argument_or_target)
}

/// Evaluates `capture(text, regex)`: the match of the first group of a regular expression, or the whole match if it has
/// no group; absent without a match.
fn capture<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let (Some(text), Some(pattern)) = (text_of(args.first()), text_of(args.get(1))) else {
        return Err(ExecutionError::function_error("capture", "expected a text and a regular expression"));
    };
    let regex = RegexBuilder::new(pattern)
        .size_limit(1 << 20)
        .build()
        .map_err(|_| ExecutionError::function_error("capture", format!("`{pattern}` is not a regular expression")))?;
    let found = regex.captures(text).and_then(|groups| groups.get(1).or_else(|| groups.get(0)));
    match found {
        Some(found) => Ok(CowVal::owned(CelString::from(found.as_str().to_owned()))),
        None => Err(ExecutionError::no_such_key(pattern)),
    }
}

/// Evaluates `to_json(value)`: the value as JSON on one line, keys sorted.
fn written<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let value = json_of(args.first(), "to_json")?;
    Ok(CowVal::owned(CelString::from(view::canonical(&value))))
}

/// Evaluates `parse_json(text)`: the value in the text. An argument that is not a text is returned unchanged.
fn parsed<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let work = work_of(args.get(1))?.clone();
    let Some(text) = text_of(args.first()) else {
        return args.into_iter().next().ok_or_else(ExecutionError::missing_argument_or_target);
    };
    // Each value takes at least one byte, and reading a long text takes time, too.
    if !work.take(text.len() / BYTES_OF_A_VALUE) {
        return Err(ExecutionError::function_error("parse_json", "the text is too long"));
    }
    let value = serde_json::from_str(&big_numbers::as_texts(text))
        .map_err(|error| ExecutionError::function_error("parse_json", format!("the text is not JSON: {error}")))?;
    Ok(CowVal::Owned(Json::owned(value, &work)))
}

/// The number of bytes of parsed JSON that count as one value.
const BYTES_OF_A_VALUE: usize = 64;

/// Evaluates `list.distinct()`: the first of each set of equal elements, in order. Elements are compared only with
/// those of the same JSON, so that the work for a long list is not quadratic.
fn distinct<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let work = work_of(args.get(1))?;
    let list = args.first().ok_or_else(ExecutionError::missing_argument_or_target)?;
    let is_list = list.get_type().kind() == LIST_TYPE.kind();
    let Some(list) = list.as_iterable().filter(|_| is_list) else {
        return Err(ExecutionError::no_such_member_overload("distinct", vec![list.get_type().name().to_owned()]));
    };
    let mut elements = list.iter();
    let mut kept: Vec<Box<dyn Val + 'v>> = Vec::new();
    let mut alike: HashMap<Option<blake3::Hash>, Vec<usize>> = HashMap::new();
    while let Some(element) = elements.next() {
        let hash = to_json(element).ok().map(|value| blake3::hash(view::canonical(&as_compared(value)).as_bytes()));
        let alike = alike.entry(hash).or_default();
        if !work.take(1 + alike.len()) {
            return Err(ExecutionError::function_error("distinct", "the list has too many elements to compare"));
        }
        if !alike.iter().filter_map(|at| kept.get(*at)).any(|known| element.equals(known.as_ref())) {
            alike.push(kept.len());
            kept.push(element.clone_as_boxed());
        }
    }
    Ok(CowVal::owned(CelList::from(kept)))
}

/// Returns a value in which equal numbers have the same form, regardless of their notation. -0 becomes 0.
fn as_compared(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, |number| Value::from(number + 0.0)),
        Value::Array(list) => list.into_iter().map(as_compared).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, as_compared(value))).collect(),
        other => other,
    }
}

/// Evaluates `texts(content)`: the text of a message's content, which is a text, a block, or a list of these; blocks
/// without text are skipped. Texts are separated by an empty line, or by `between` in `texts(content, between)`.
fn texts<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let value = json_of(args.first(), "texts")?;
    let between = text_of(args.get(1)).unwrap_or("\n\n");
    Ok(CowVal::owned(CelString::from(said(&value, between))))
}

fn said(value: &Value, between: &str) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().map(|block| said(block, between));
            texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(between)
        }
        Value::Object(block) => {
            let is_text = block.get("type").and_then(Value::as_str).is_none_or(|kind| kind.contains("text"));
            block.get("text").filter(|_| is_text).and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// Evaluates `first(value, keys)`: the value of the first of these keys that the map has and that is not null.
fn first<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let work = work_of(args.get(2))?;
    let (map, keys) = (json_of(args.first(), "first")?, json_of(args.get(1), "first")?);
    let keys = keys.as_array().map(Vec::as_slice).unwrap_or_default();
    let found = keys.iter().filter_map(|key| map.get(key.as_str()?)).find(|value| !value.is_null());
    match found {
        Some(value) => Ok(CowVal::Owned(Json::owned(value.clone(), work))),
        None => Err(ExecutionError::no_such_key("any of these keys")),
    }
}

fn text_of<'a>(value: Option<&'a CowVal<'_, '_>>) -> Option<&'a str> {
    value.and_then(|value| value.downcast_ref::<CelString>()).map(|text| text.inner())
}

fn json_of(value: Option<&CowVal<'_, '_>>, function: &str) -> Result<Value, ExecutionError> {
    let value = value.ok_or_else(ExecutionError::missing_argument_or_target)?;
    to_json(value.as_ref()).map_err(|error| ExecutionError::function_error(function, error))
}

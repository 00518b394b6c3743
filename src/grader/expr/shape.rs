//! Checks the types in an expression before it runs, so that unknown fields are reported at once.

use std::ops::Range;

use cel::Program;
use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue};

use crate::expression::Wrong;
use crate::yaml::words;

/// The type of a value, as far as known.
#[derive(Debug, Clone, PartialEq)]
enum Shape {
    Truth,
    Number,
    Text,
    List(Box<Shape>),
    /// A map with known keys.
    Record(&'static Record),
    /// Unknown.
    Any,
}

/// A map with known keys: its name, and the type of each value.
#[derive(Debug, PartialEq)]
struct Record {
    name: &'static str,
    fields: &'static [(&'static str, Field)],
}

/// The type of a key's value.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Field {
    Number,
    Text,
    Texts,
    Record(&'static Record),
    Any,
}

use Field::{Any, Number, Text, Texts};

const CALL: Record = Record {
    name: "a call",
    fields: &[
        ("call", Text),
        ("seq", Number),
        ("step", Number),
        ("kind", Text),
        ("name", Text),
        ("title", Text),
        ("input", Any),
        ("paths", Texts),
        ("status", Text),
        ("output", Text),
        ("exit_code", Number),
        ("parent", Text),
    ],
};
const MESSAGE: Record =
    Record { name: "a message", fields: &[("role", Text), ("text", Text), ("seq", Number), ("parent", Text)] };
const EXIT: Record = Record { name: "exit", fields: &[("code", Number), ("signal", Number)] };
const STOP: Record = Record {
    name: "stop",
    fields: &[("reason", Text), ("category", Text), ("detail", Text), ("output", Text), ("exit", Field::Record(&EXIT))],
};
const USAGE: Record = Record {
    name: "usage",
    fields: &[
        ("input_tokens", Number),
        ("output_tokens", Number),
        ("cache_read_tokens", Number),
        ("cache_write_tokens", Number),
        ("thought_tokens", Number),
        ("total_tokens", Number),
        ("cost_usd", Number),
        ("lower_bounds", Texts),
    ],
};
const PERMISSION: Record = Record {
    name: "a permission",
    fields: &[
        ("call", Text),
        ("request", Text),
        ("kind", Text),
        ("outcome", Text),
        ("option", Text),
        ("rule", Text),
        ("reason", Text),
        ("seq", Number),
    ],
};
const FILES: Record = Record { name: "files", fields: &[("created", Texts), ("changed", Texts), ("deleted", Texts)] };
const COUNTS: Record = Record { name: "metrics.permissions", fields: &[("requested", Number), ("rejected", Number)] };
const METRICS: Record = Record {
    name: "metrics",
    fields: &[
        ("duration_ms", Number),
        ("start_ms", Number),
        ("tool_calls", Number),
        ("tool_calls_by_kind", Any),
        ("steps", Number),
        ("input_tokens", Number),
        ("output_tokens", Number),
        ("cache_read_tokens", Number),
        ("cache_write_tokens", Number),
        ("total_tokens", Number),
        ("cost_usd", Number),
        ("cost_source", Text),
        ("permissions", Field::Record(&COUNTS)),
        ("lower_bounds", Texts),
    ],
};

impl Field {
    fn shape(self) -> Shape {
        match self {
            Field::Number => Shape::Number,
            Field::Text => Shape::Text,
            Field::Texts => Shape::List(Box::new(Shape::Text)),
            Field::Record(record) => Shape::Record(record),
            Field::Any => Shape::Any,
        }
    }
}

fn variable(name: &str) -> Shape {
    let list = |record| Shape::List(Box::new(Shape::Record(record)));
    match name {
        "calls" => list(&CALL),
        "messages" => list(&MESSAGE),
        "permissions" => list(&PERMISSION),
        "output" => Shape::Text,
        "stop" => Shape::Record(&STOP),
        "usage" => Shape::Record(&USAGE),
        "files" => Shape::Record(&FILES),
        "metrics" => Shape::Record(&METRICS),
        _ => Shape::Any,
    }
}

impl Shape {
    fn told(&self) -> &'static str {
        match self {
            Shape::Truth => "true or false",
            Shape::Number => "a number",
            Shape::Text => "a text",
            Shape::List(_) => "a list",
            Shape::Record(_) => "a map",
            Shape::Any => "anything",
        }
    }

    /// Returns the common type of two branches.
    fn both(self, other: Shape) -> Shape {
        if self == other { self } else { Shape::Any }
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
    let shape = walk.shape(root)?;
    if shape == Shape::Truth && !super::VARIABLES.iter().any(|name| names(program, name)) {
        let message = "the expression uses no value of the trial, so it would check nothing".to_owned();
        return Err(Wrong { range: 0..text.len(), message, help: Some(KNOWN.to_owned()) });
    }
    match shape {
        Shape::Truth | Shape::Number | Shape::Any => Ok(()),
        other => {
            let message = format!("the expression returns {}, not true, false or a number", other.told());
            Err(Wrong { range: 0..text.len(), message, help: Some("compare it, such as size(calls) < 10".to_owned()) })
        }
    }
}

/// Returns true if an expression uses a variable.
pub fn names(program: &Program, name: &str) -> bool {
    program.references().has_variable(name)
}

struct Walk<'a> {
    text: &'a str,
    program: &'a Program,
    /// Variables of the enclosing macros.
    bound: Vec<(&'a str, Shape)>,
}

impl<'a> Walk<'a> {
    fn shape(&mut self, node: &'a IdedExpr) -> Result<Shape, Wrong> {
        Ok(match &node.expr {
            Expr::Ident(name) => {
                let bound = self.bound.iter().rev().find(|(known, _)| known == name);
                bound.map_or_else(|| variable(name.trim_start_matches('.')), |(_, shape)| shape.clone())
            }
            Expr::Select(select) => {
                let of = self.shape(&select.operand)?;
                let field = self.field(&of, &select.field, node.id)?;
                if select.test { Shape::Truth } else { field }
            }
            Expr::Call(call) => self.call(call, node.id)?,
            Expr::Comprehension(each) => self.each(each)?,
            Expr::List(list) => {
                let mut shape = None;
                for element in &list.elements {
                    let next = self.shape(element)?;
                    shape = Some(shape.map_or(next.clone(), |shape: Shape| shape.both(next)));
                }
                Shape::List(Box::new(shape.unwrap_or(Shape::Any)))
            }
            Expr::Literal(literal) => match literal {
                LiteralValue::Boolean(_) => Shape::Truth,
                LiteralValue::Double(_) | LiteralValue::Int(_) | LiteralValue::UInt(_) => Shape::Number,
                LiteralValue::String(_) => Shape::Text,
                LiteralValue::Bytes(_) | LiteralValue::Null => Shape::Any,
            },
            Expr::Map(_) | Expr::Struct(_) | Expr::Unspecified => Shape::Any,
        })
    }

    fn field(&self, of: &Shape, field: &str, id: u64) -> Result<Shape, Wrong> {
        match of {
            Shape::Any => Ok(Shape::Any),
            Shape::Record(record) => match record.fields.iter().find(|(known, _)| *known == field) {
                Some((_, field)) => Ok(field.shape()),
                None => {
                    let known: Vec<&str> = record.fields.iter().map(|(known, _)| *known).collect();
                    let help = words::known_words(field, &known, "fields");
                    Err(self.wrong(id, field, format!("{} has no `{field}`", record.name), Some(help)))
                }
            },
            other => Err(self.wrong(id, field, format!("{} has no fields, so no `{field}`", other.told()), None)),
        }
    }

    fn call(&mut self, call: &'a CallExpr, id: u64) -> Result<Shape, Wrong> {
        let target = match &call.target {
            // A namespace such as `optional` is not a value.
            Some(target) if matches!(&target.expr, Expr::Ident(name) if ["optional", "strings", "lists"].contains(&name.as_str())) => {
                None
            }
            Some(target) => Some(self.shape(target)?),
            None => None,
        };
        let mut arguments = Vec::new();
        for argument in &call.args {
            arguments.push(self.shape(argument)?);
        }
        let name = call.func_name.as_str();
        let of = |n: usize| arguments.get(n).cloned().unwrap_or(Shape::Any);
        Ok(match name {
            "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" => {
                let (one, other) = (of(0), of(1));
                let is_known = |shape: &Shape| {
                    matches!(shape, Shape::Truth | Shape::Number | Shape::Text | Shape::List(_) | Shape::Record(_))
                };
                let alike = std::mem::discriminant(&one) == std::mem::discriminant(&other);
                if is_known(&one) && is_known(&other) && !alike {
                    let message = format!("{} is compared with {}", one.told(), other.told());
                    return Err(self.wrong(id, "", message, None));
                }
                Shape::Truth
            }
            "_&&_" | "_||_" | "!_" | "@not_strictly_false" => {
                for (shape, argument) in arguments.iter().zip(&call.args) {
                    if !matches!(shape, Shape::Truth | Shape::Any) {
                        let message = format!("expected true or false, found {}", shape.told());
                        return Err(self.wrong(argument.id, "", message, None));
                    }
                }
                Shape::Truth
            }
            "@in" => {
                if matches!(of(1), Shape::Truth | Shape::Number | Shape::Text) {
                    let help = Some("to look for a text within a text, write text.contains('…')".to_owned());
                    return Err(self.wrong(
                        id,
                        "",
                        format!("`in` needs a list or a map, found {}", of(1).told()),
                        help,
                    ));
                }
                Shape::Truth
            }
            "_?_:_" => {
                if let (false, Some(asked)) = (matches!(of(0), Shape::Truth | Shape::Any), call.args.first()) {
                    let message = format!("expected true or false, found {}", of(0).told());
                    return Err(self.wrong(asked.id, "", message, None));
                }
                of(1).both(of(2))
            }
            "_[_]" => match (of(0), call.args.get(1).map(|argument| &argument.expr)) {
                (Shape::List(element), _) => *element,
                (Shape::Record(record), Some(Expr::Literal(LiteralValue::String(key)))) => {
                    self.field(&Shape::Record(record), key.inner(), id)?
                }
                _ => Shape::Any,
            },
            "_-_" | "_*_" | "_/_" | "_%_" | "-_" => {
                match arguments.iter().find(|shape| matches!(shape, Shape::Text | Shape::Truth | Shape::List(_))) {
                    Some(shape) => {
                        return Err(self.wrong(id, "", format!("{} cannot be used in arithmetic", shape.told()), None));
                    }
                    None => Shape::Number,
                }
            }
            "_+_" => {
                let (one, other) = (of(0), of(1));
                let goes = |shape: &Shape| !matches!(shape, Shape::Truth | Shape::Record(_));
                let alike = std::mem::discriminant(&one) == std::mem::discriminant(&other);
                if !goes(&one) || !goes(&other) || !(alike || one == Shape::Any || other == Shape::Any) {
                    let message = format!("{} and {} cannot be added", one.told(), other.told());
                    return Err(self.wrong(id, "", message, None));
                }
                one.both(other)
            }
            "size" => {
                let on = target.unwrap_or_else(|| of(0));
                if matches!(on, Shape::Number | Shape::Truth) {
                    return Err(self.wrong(id, "", format!("{} has no size", on.told()), None));
                }
                Shape::Number
            }
            "indexOf" | "lastIndexOf" | "int" | "uint" | "double" => Shape::Number,
            "contains" | "startsWith" | "endsWith" | "matches" => {
                let on = target.unwrap_or_else(|| of(0));
                if !matches!(on, Shape::Text | Shape::Any) {
                    let help = matches!(on, Shape::List(_))
                        .then(|| "to look for a value in a list, write 'x' in list".to_owned());
                    return Err(self.wrong(id, name, format!("`{name}` needs a text, found {}", on.told()), help));
                }
                Shape::Truth
            }
            "string" | "lowerAscii" | "upperAscii" | "trim" | "join" | "replace" | "substring" | "charAt" => {
                Shape::Text
            }
            "bool" | "hasValue" => Shape::Truth,
            "reverse" | "slice" | "distinct" | "sort" | "@sortByAssociatedKeys" => target.unwrap_or(Shape::Any),
            _ => Shape::Any,
        })
    }

    /// Returns the type of a macro over a list: `exists`, `all`, `map`, `filter` …
    fn each(&mut self, each: &'a ComprehensionExpr) -> Result<Shape, Wrong> {
        let element = match self.shape(&each.iter_range)? {
            Shape::List(element) => *element,
            Shape::Record(_) => Shape::Text,
            Shape::Any => Shape::Any,
            other => {
                let message = format!("expected a list, found {}", other.told());
                return Err(self.wrong(each.iter_range.id, "", message, None));
            }
        };
        let begins = self.shape(&each.accu_init)?;
        let before = self.bound.len();
        self.bound.push((&each.iter_var, element));
        self.bound.extend(each.iter_var2.as_deref().map(|name| (name, Shape::Any)));
        // The type of the collected items is unknown before the type of the collecting step is known.
        let gathered = match begins {
            Shape::List(_) => Shape::Any,
            other => other,
        };
        self.bound.push((&each.accu_var, gathered.clone()));
        self.shape(&each.loop_cond)?;
        self.shape(&each.loop_step)?;
        let element = (gathered == Shape::Any).then(|| appended(&each.loop_step)).flatten();
        let element = element.map(|node| self.shape(node)).transpose()?;
        if let Some(element) = element
            && let Some((_, shape)) = self.bound.last_mut()
        {
            *shape = Shape::List(Box::new(element));
        }
        let result = self.shape(&each.result);
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

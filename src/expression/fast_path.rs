//! Evaluates the most common expressions, `line.item.text` and `line.type == 'text'`, without the CEL
//! evaluator.

use cel::common::ast::{Expr, IdedExpr, LiteralValue};
use serde_json::Value;

/// A key that must hold one of these texts for the whole expression to be true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Must {
    variable: String,
    path: Vec<String>,
    any_of: Vec<String>,
}

impl Must {
    /// Returns true if the key holds one of the texts.
    pub(super) fn holds<'v>(&self, variable: impl FnOnce(&str) -> Option<&'v Value>) -> bool {
        let value = variable(&self.variable).and_then(|value| {
            self.path.iter().try_fold(value, |value, key| value.as_object().and_then(|map| map.get(key)))
        });
        value.and_then(Value::as_str).is_some_and(|text| self.any_of.iter().any(|wanted| wanted == text))
    }

    /// Returns the key, if it is one of this variable itself.
    pub(super) fn key_of(&self, variable: &str) -> Option<&str> {
        match self.path.as_slice() {
            [key] if self.variable == variable => Some(key),
            _ => None,
        }
    }
}

/// A bare key of a variable: `line.item.text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    variable: String,
    path: Vec<String>,
}

impl Path {
    /// Returns the value at the path or the first absent key, or `None` if the variable is unknown.
    pub(super) fn find<'v>(&self, variable: impl FnOnce(&str) -> Option<&'v Value>) -> Option<Result<&'v Value, &str>> {
        let mut value = variable(&self.variable)?;
        for key in &self.path {
            match value.as_object().and_then(|map| map.get(key)) {
                Some(found) => value = found,
                None => return Some(Err(key)),
            }
        }
        Some(Ok(value))
    }
}

/// Returns the path, if an expression is a bare key of a variable.
pub(super) fn path(node: &IdedExpr) -> Option<Path> {
    let mut path = Vec::new();
    let mut node = node;
    let variable = loop {
        match &node.expr {
            Expr::Select(select) if !select.test => {
                path.push(select.field.clone());
                node = &select.operand;
            }
            // `line['x-y']`
            Expr::Call(call) if call.func_name == "_[_]" => {
                let [operand, key] = call.args.as_slice() else { return None };
                let Expr::Literal(LiteralValue::String(key)) = &key.expr else { return None };
                path.push(key.inner().to_owned());
                node = operand;
            }
            Expr::Ident(variable) => break variable.clone(),
            _ => return None,
        }
    };
    path.reverse();
    Some(Path { variable, path })
}

/// Returns the comparisons that an expression joins by `&&`, and whether it consists of nothing else.
pub(super) fn musts(expression: &IdedExpr) -> (Vec<Must>, bool) {
    let mut found = Vec::new();
    let only = collect(expression, &mut found);
    (found, only)
}

fn collect(node: &IdedExpr, found: &mut Vec<Must>) -> bool {
    let Expr::Call(call) = &node.expr else { return false };
    match (call.func_name.as_str(), call.args.as_slice()) {
        ("_&&_", [left, right]) => {
            let left = collect(left, found);
            collect(right, found) && left
        }
        ("_==_", [one, other]) => {
            let comparison = of(one, &[other]).or_else(|| of(other, &[one]));
            let known = comparison.is_some();
            found.extend(comparison);
            known
        }
        ("@in", [one, list]) => {
            let Expr::List(list) = &list.expr else { return false };
            let comparison = of(one, &list.elements.iter().collect::<Vec<_>>());
            let known = comparison.is_some();
            found.extend(comparison);
            known
        }
        _ => false,
    }
}

fn of(key: &IdedExpr, texts: &[&IdedExpr]) -> Option<Must> {
    let Path { variable, path } = path(key)?;
    let any_of = texts.iter().map(|node| match &node.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner().to_owned()),
        _ => None,
    });
    Some(Must { variable, path, any_of: any_of.collect::<Option<Vec<_>>>()? })
}

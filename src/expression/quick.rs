//! Comparisons that an expression cannot do without: `line.type == 'text'` is decided without working the rest out.

use cel::common::ast::{Expr, IdedExpr, LiteralValue};
use serde_json::Value;

/// A key that must hold one of these texts for the whole expression to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Must {
    variable: String,
    path: Vec<String>,
    any_of: Vec<String>,
}

impl Must {
    /// Whether it holds, where the variable is known.
    pub(super) fn holds<'v>(&self, variable: impl FnOnce(&str) -> Option<&'v Value>) -> bool {
        let value = variable(&self.variable).and_then(|value| {
            self.path.iter().try_fold(value, |value, key| value.as_object().and_then(|map| map.get(key)))
        });
        value.and_then(Value::as_str).is_some_and(|text| self.any_of.iter().any(|wanted| wanted == text))
    }
}

/// The comparisons that an expression joins by `&&`, and whether it consists of nothing else.
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
    let mut path = Vec::new();
    let mut node = key;
    while let Expr::Select(select) = &node.expr {
        if select.test {
            return None;
        }
        path.push(select.field.clone());
        node = &select.operand;
    }
    path.reverse();
    let Expr::Ident(variable) = &node.expr else { return None };
    let any_of = texts.iter().map(|node| match &node.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner().to_owned()),
        _ => None,
    });
    Some(Must { variable: variable.clone(), path, any_of: any_of.collect::<Option<Vec<_>>>()? })
}

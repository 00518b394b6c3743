//! Lower bounds in expressions: checks whether the result is the same for every value at least as large.

use cel::common::ast::{Expr, IdedExpr, LiteralValue};
use serde_json::Value;

use crate::expression::{Expression, Scope};
use crate::grader::trial_json::LOWER_BOUNDS;

/// The figures of `usage` and `metrics` that are lower bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LowerBounds(Vec<Figure>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Figure {
    variable: &'static str,
    key: String,
    value: String,
}

/// The direction in which the truth of a part can change as a figure grows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trend {
    ToTrue,
    ToFalse,
}

impl Trend {
    fn other(self) -> Self {
        match self {
            Trend::ToTrue => Trend::ToFalse,
            Trend::ToFalse => Trend::ToTrue,
        }
    }
}

impl LowerBounds {
    /// Returns the figures that are lower bounds.
    pub fn of(usage: &Value, metrics: &Value) -> Self {
        let mut figures = Vec::new();
        for (variable, map) in [("usage", usage), ("metrics", metrics)] {
            let keys = map[LOWER_BOUNDS].as_array().into_iter().flatten().filter_map(Value::as_str);
            let figure = |key: &str| Figure { variable, key: key.to_owned(), value: map[key].to_string() };
            figures.extend(keys.map(figure));
        }
        Self(figures)
    }

    /// Returns why an expression cannot be evaluated: its result depends on figures of which only a lower bound
    /// is known.
    pub fn leave_open(&self, expression: &Expression, scope: &Scope<'_>) -> Option<String> {
        let program = expression.program().expression();
        if self.0.is_empty() || !self.are_in(program) || self.truth(expression, program, scope).is_some() {
            return None;
        }
        let told = |figure: &Figure| format!("`{}.{}` (>= {})", figure.variable, figure.key, figure.value);
        let named: Vec<String> = self.0.iter().map(told).collect();
        Some(format!("only a lower bound of {} is known", named.join(", ")))
    }

    /// Returns the result of a part of the expression if it is the same for every larger figure, or `None` if it
    /// differs or is unknown.
    fn truth(&self, whole: &Expression, part: &IdedExpr, scope: &Scope<'_>) -> Option<bool> {
        let at_bound = || whole.part_is_true(part, scope).ok();
        if !self.are_in(part) {
            return at_bound();
        }
        let Expr::Call(call) = &part.expr else { return None };
        match (call.func_name.as_str(), call.args.as_slice()) {
            (name @ ("_&&_" | "_||_"), args) => {
                // If any part of `&&` is false, the result is false; if any part of `||` is true, the result is true.
                let decides = name == "_||_";
                let parts: Vec<Option<bool>> = args.iter().map(|part| self.truth(whole, part, scope)).collect();
                let decided = parts.contains(&Some(decides));
                let all = parts.iter().all(|part| *part == Some(!decides));
                if decided { Some(decides) } else { all.then_some(!decides) }
            }
            ("!_", [part]) => self.truth(whole, part, scope).map(|truth| !truth),
            _ => {
                let truth = at_bound()?;
                let trend = if truth { Trend::ToTrue } else { Trend::ToFalse };
                self.goes(part, trend).then_some(truth)
            }
        }
    }

    /// Returns true if the truth of a comparison changes only in this direction as the figures in it grow.
    fn goes(&self, part: &IdedExpr, trend: Trend) -> bool {
        let Expr::Call(call) = &part.expr else { return false };
        let (less, more, trend) = match (call.func_name.as_str(), call.args.as_slice()) {
            ("_<=_" | "_<_", [less, more]) => (less, more, trend),
            ("_>=_" | "_>_", [more, less]) => (less, more, trend),
            ("!_", [part]) => return self.goes(part, trend.other()),
            _ => return false,
        };
        match trend {
            Trend::ToFalse => self.grows(less) && !self.are_in(more),
            Trend::ToTrue => !self.are_in(less) && self.grows(more),
        }
    }

    /// Returns true if the value of an expression cannot fall when the figures in it grow.
    fn grows(&self, part: &IdedExpr) -> bool {
        if !self.are_in(part) || self.is_one(part) {
            return true;
        }
        let Expr::Call(call) = &part.expr else { return false };
        match (call.func_name.as_str(), call.args.as_slice()) {
            ("_+_", args) => args.iter().all(|part| self.grows(part)),
            ("_-_", [from, less]) => self.grows(from) && !self.are_in(less),
            ("_*_", [one, other]) => (self.grows(one) && is_positive(other)) || (is_positive(one) && self.grows(other)),
            ("_/_", [from, by]) => self.grows(from) && is_positive(by),
            ("double" | "int" | "uint", [part]) => self.grows(part),
            _ => false,
        }
    }

    fn is_one(&self, part: &IdedExpr) -> bool {
        let is = |(variable, key): (&str, &str)| self.0.iter().any(|it| it.variable == variable && it.key == key);
        !is_test(part) && key_of(part).is_some_and(is)
    }

    /// Returns true if a part may read one of the figures. A test for its key does not read it.
    fn are_in(&self, part: &IdedExpr) -> bool {
        let of_variable = |name: &str| self.0.iter().any(|figure| figure.variable == name);
        if let Some((variable, _)) = key_of(part)
            && of_variable(variable)
        {
            return self.is_one(part);
        }
        match &part.expr {
            Expr::Literal(_) => false,
            // A use of the whole variable, such as in a macro, may read all of its keys.
            Expr::Ident(name) => of_variable(name),
            Expr::Select(select) => self.are_in(&select.operand),
            Expr::Call(call) => call.args.iter().chain(call.target.as_deref()).any(|part| self.are_in(part)),
            Expr::List(list) => list.elements.iter().any(|part| self.are_in(part)),
            Expr::Comprehension(it) => {
                let parts = [&it.iter_range, &it.accu_init, &it.loop_cond, &it.loop_step, &it.result];
                parts.into_iter().any(|part| self.are_in(part))
            }
            _ => true,
        }
    }
}

fn is_test(part: &IdedExpr) -> bool {
    matches!(&part.expr, Expr::Select(select) if select.test)
}

/// Returns the variable and the key of `usage.key` and `usage['key']`.
fn key_of(part: &IdedExpr) -> Option<(&str, &str)> {
    let (operand, key) = match &part.expr {
        Expr::Select(select) => (&*select.operand, select.field.as_str()),
        Expr::Call(call) if call.func_name == "_[_]" => match call.args.as_slice() {
            [operand, IdedExpr { expr: Expr::Literal(LiteralValue::String(key)), .. }] => (operand, key.inner()),
            _ => return None,
        },
        _ => return None,
    };
    match &operand.expr {
        Expr::Ident(variable) => Some((variable, key)),
        _ => None,
    }
}

fn is_positive(part: &IdedExpr) -> bool {
    match &part.expr {
        Expr::Literal(LiteralValue::Int(number)) => *number.inner() > 0,
        Expr::Literal(LiteralValue::UInt(number)) => *number.inner() > 0,
        Expr::Literal(LiteralValue::Double(number)) => *number.inner() > 0.0,
        _ => false,
    }
}

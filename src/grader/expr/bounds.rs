//! Lower bounds in expressions: checks whether the result is the same for every value at least as large.

use cel::common::ast::{ComprehensionExpr, Expr, IdedExpr, LiteralValue};
use serde_json::Value;

use crate::expression::{Expression, Scope};
use crate::grader::trial_json::{LOWER_BOUNDS, UNMEASURED};
use crate::trace::usage::Measure;
use crate::workspace::change::PATCH_ALONE;

/// The figures of `usage` and `metrics` that are lower bounds, and the lists of `files` that may lack files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LowerBounds {
    figures: Vec<Figure>,
    /// The reason why lists may lack files, if they may.
    why_files: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Figure {
    variable: &'static str,
    key: String,
    /// The value of a number. A list has none.
    value: Option<String>,
}

/// The direction in which the truth of a part can change as a figure grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    pub fn of(usage: &Value, metrics: &Value, files: &Value) -> Self {
        let mut figures = Vec::new();
        for (variable, map) in [("usage", usage), ("metrics", metrics), ("files", files)] {
            let keys = map[LOWER_BOUNDS].as_array().into_iter().flatten().filter_map(Value::as_str);
            let value = |key: &str| (!map[key].is_array()).then(|| map[key].to_string());
            figures.extend(keys.map(|key| Figure { variable, key: key.to_owned(), value: value(key) }));
        }
        let why_files = match files[UNMEASURED][0].as_str() {
            Some(place) => format!("`{place}` changed and is not measured (it is a pipe or the like, or a repository)"),
            None => PATCH_ALONE.to_owned(),
        };
        Self { figures, why_files }
    }

    /// Returns why an expression cannot be evaluated: its result depends on figures of which only a lower bound
    /// is known.
    pub fn leave_open(&self, expression: &Expression, scope: &Scope<'_>) -> Option<String> {
        let program = expression.program().expression();
        if self.figures.is_empty() || !self.are_in(program) || self.truth(expression, program, scope).is_some() {
            return None;
        }
        let alone = |figure: &Figure| Self { figures: vec![figure.clone()], why_files: String::new() };
        let (mut numbers, mut lists, mut is_of_files) = (Vec::new(), Vec::new(), false);
        for figure in self.figures.iter().filter(|figure| alone(figure).are_in(program)) {
            let name = format!("`{}.{}`", figure.variable, figure.key);
            is_of_files |= figure.value.is_none() || figure.key == Measure::ChangedFiles.word();
            match &figure.value {
                Some(value) => numbers.push(format!("{name} (>= {value})")),
                None => lists.push(name),
            }
        }
        let numbers = (!numbers.is_empty()).then(|| format!("only a lower bound of {} is known", numbers.join(", ")));
        let lists = (!lists.is_empty()).then(|| format!("{} may lack files", lists.join(", ")));
        let why = is_of_files.then(|| self.why_files.clone());
        Some(numbers.into_iter().chain(lists).chain(why).collect::<Vec<String>>().join("; "))
    }

    /// Returns the result of a part of the expression if it is the same for every larger figure, or `None` if it
    /// differs or is unknown.
    fn truth(&self, whole: &Expression, part: &IdedExpr, scope: &Scope<'_>) -> Option<bool> {
        let at_bound = || whole.part_is_true(part, scope).ok();
        if !self.are_in(part) {
            return at_bound();
        }
        let by_trend = || {
            let truth = at_bound()?;
            let trend = if truth { Trend::ToTrue } else { Trend::ToFalse };
            self.goes(part, trend).then_some(truth)
        };
        let Expr::Call(call) = &part.expr else { return by_trend() };
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
            _ => by_trend(),
        }
    }

    /// Returns true if the truth of a comparison changes only in this direction as the figures in it grow.
    fn goes(&self, part: &IdedExpr, trend: Trend) -> bool {
        if let Expr::Comprehension(each) = &part.expr {
            return self.is_over_growing_list(each) && trend_of_macro(each) == Some(trend);
        }
        let Expr::Call(call) = &part.expr else { return false };
        let (less, more, trend) = match (call.func_name.as_str(), call.args.as_slice()) {
            ("@in", [member, list]) => return trend == Trend::ToTrue && !self.are_in(member) && self.grows(list),
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

    /// Returns true if a macro runs over a list that has the same members, and maybe more, when the figures in it grow.
    fn is_over_growing_list(&self, each: &ComprehensionExpr) -> bool {
        let mut of_members = [&each.accu_init, &each.loop_cond, &each.loop_step, &each.result].into_iter();
        // A second variable is the place of a member, which may be another one among more members.
        each.iter_var2.is_none() && self.grows(&each.iter_range) && !of_members.any(|part| self.are_in(part))
    }

    /// Returns true if the value of an expression cannot fall when the figures in it grow, or the list cannot lose members.
    fn grows(&self, part: &IdedExpr) -> bool {
        if !self.are_in(part) || self.is_one(part) {
            return true;
        }
        if let Expr::Comprehension(each) = &part.expr {
            // `map` and `filter` begin with an empty list.
            let is_list = matches!(&each.accu_init.expr, Expr::List(list) if list.elements.is_empty());
            return is_list && self.is_over_growing_list(each);
        }
        let Expr::Call(call) = &part.expr else { return false };
        match (call.func_name.as_str(), call.args.as_slice()) {
            ("size", args) => call.target.as_deref().into_iter().chain(args).all(|part| self.grows(part)),
            ("_+_", args) => args.iter().all(|part| self.grows(part)),
            ("_-_", [from, less]) => self.grows(from) && !self.are_in(less),
            ("_*_", [one, other]) => (self.grows(one) && is_positive(other)) || (is_positive(one) && self.grows(other)),
            ("_/_", [from, by]) => self.grows(from) && is_positive(by),
            ("double" | "int" | "uint", [part]) => self.grows(part),
            _ => false,
        }
    }

    fn is_one(&self, part: &IdedExpr) -> bool {
        let is = |(variable, key): (&str, &str)| self.figures.iter().any(|it| it.variable == variable && it.key == key);
        !is_test(part) && key_of(part).is_some_and(is)
    }

    /// Returns true if a part may read one of the figures. A test for its key does not read it.
    fn are_in(&self, part: &IdedExpr) -> bool {
        let of_variable = |name: &str| self.figures.iter().any(|figure| figure.variable == name);
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

/// Returns the direction in which the truth of `exists` or `all` changes as its list gets more members.
fn trend_of_macro(each: &ComprehensionExpr) -> Option<Trend> {
    let Expr::Call(step) = &each.loop_step.expr else { return None };
    let Expr::Literal(LiteralValue::Boolean(begins)) = &each.accu_init.expr else { return None };
    match (step.func_name.as_str(), *begins.inner()) {
        ("_||_", false) => Some(Trend::ToTrue),
        ("_&&_", true) => Some(Trend::ToFalse),
        _ => None,
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

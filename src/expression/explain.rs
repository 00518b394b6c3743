//! Explains why an expression is false: its false parts, the values of their sides, and the list items
//! concerned.

use std::ops::Range;

use cel::common::ast::{Expr, IdedExpr};
use serde_json::Value;

use super::{Expression, Failed, Scope, fast_path, short, value};

/// A false part of an expression, which makes the whole expression false.
#[derive(Debug, Clone, PartialEq)]
pub struct Untrue {
    /// The part as written.
    pub text: String,
    /// The sides of the comparison that are no literals, with their values.
    pub sides: Vec<(String, Value)>,
    /// The members of a list that make the part false, if the part states that a condition holds for all members or for
    /// none.
    pub members: Option<Members>,
}

/// The members of a list that make a part false.
#[derive(Debug, Clone, PartialEq)]
pub struct Members {
    /// The first of these members.
    pub first: Vec<Value>,
    /// The number of these members.
    pub count: usize,
    /// The number of all members of the list.
    pub of: usize,
}

/// The maximum number of members that are shown.
const FIRST: usize = 20;

impl Expression {
    /// Returns the parts that make an expression false, given that it is false.
    pub fn untrue(&self, scope: &Scope<'_>) -> Vec<Untrue> {
        let mut found = Vec::new();
        self.parts(self.program.expression(), 0..self.text.len(), scope, &mut found);
        found
    }

    fn parts(&self, node: &IdedExpr, range: Range<usize>, scope: &Scope<'_>, found: &mut Vec<Untrue>) {
        if self.json(node, scope) != Ok(Value::Bool(false)) {
            return;
        }
        if let Expr::Call(call) = &node.expr
            && let ("_&&_" | "_||_", [left, right]) = (call.func_name.as_str(), call.args.as_slice())
            && let Some((before, after)) = self.around(node, &range)
        {
            self.parts(left, before, scope, found);
            self.parts(right, after, scope, found);
            return;
        }
        found.push(Untrue {
            text: self.part(&range),
            sides: self.sides(node, &range, scope),
            members: self.members(node, scope),
        });
    }

    fn json(&self, node: &IdedExpr, scope: &Scope<'_>) -> Result<Value, Failed> {
        self.with_part(node, scope, |found| value::to_json(found))
    }

    /// Returns the ranges before and after an operator.
    fn around(&self, node: &IdedExpr, range: &Range<usize>) -> Option<(Range<usize>, Range<usize>)> {
        let (start, stop) = self.program.source_info().offset_for(node.id)?;
        let (start, stop) = (start as usize, stop as usize + 1);
        (range.start <= start && stop <= range.end).then_some((range.start..start, stop..range.end))
    }

    /// Returns a part as written, without brackets whose partner is outside.
    fn part(&self, range: &Range<usize>) -> String {
        let mut part = self.text.get(range.clone()).unwrap_or_default().trim();
        loop {
            let open = outer_brackets(part);
            part = match open {
                Some(Wrong::Open) => part.strip_prefix('(').unwrap_or_default().trim(),
                Some(Wrong::Close) => part.strip_suffix(')').unwrap_or_default().trim(),
                None => return part.split_whitespace().collect::<Vec<_>>().join(" "),
            };
        }
    }

    fn sides(&self, node: &IdedExpr, range: &Range<usize>, scope: &Scope<'_>) -> Vec<(String, Value)> {
        let Expr::Call(call) = &node.expr else { return Vec::new() };
        let [left, right] = call.args.as_slice() else { return Vec::new() };
        if !["_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in"].contains(&call.func_name.as_str()) {
            return Vec::new();
        }
        let Some((before, after)) = self.around(node, range) else { return Vec::new() };
        let sides = [(left, before), (right, after)].into_iter();
        let sides = sides.filter(|(side, _)| !is_written_out(side));
        sides.filter_map(|(side, range)| Some((self.part(&range), self.json(side, scope).ok()?))).collect()
    }

    /// Returns the members of `list.all(x, …)` for which the condition is false, or of `!list.exists(x, …)` for which
    /// it is true.
    fn members(&self, node: &IdedExpr, scope: &Scope<'_>) -> Option<Members> {
        let (each, wanted) = match &node.expr {
            Expr::Comprehension(each) => (each, true),
            Expr::Call(call) if call.func_name == "!_" => match call.args.first().map(|inner| &inner.expr) {
                Some(Expr::Comprehension(each)) => (each, false),
                _ => return None,
            },
            _ => return None,
        };
        let Expr::Call(step) = &each.loop_step.expr else { return None };
        let joined = if wanted { "_&&_" } else { "_||_" };
        let [_, holds] = step.args.as_slice() else { return None };
        if step.func_name != joined || each.iter_var2.is_some() {
            return None;
        }
        // The calls of a long session are read in place, without a copy.
        let there = fast_path::path(&each.iter_range).and_then(|path| path.find(|name| scope.variable(name))?.ok());
        let made = if there.is_none() { self.json(&each.iter_range, scope).ok() } else { None };
        let list = there.or(made.as_ref())?.as_array()?;
        let breaks = |member: &&Value| {
            let within = Scope { variables: scope.variables.clone(), words: scope.words, work: scope.work };
            self.json(holds, &within.with(&each.iter_var, member)) == Ok(Value::Bool(!wanted))
        };
        let mut members = Members { first: Vec::new(), count: 0, of: list.len() };
        for member in list.iter().filter(breaks) {
            members.count += 1;
            if members.first.len() < FIRST {
                members.first.push(member.clone());
            }
        }
        Some(members)
    }
}

/// A bracket without a partner, at one end of a text.
enum Wrong {
    Open,
    Close,
}

fn outer_brackets(part: &str) -> Option<Wrong> {
    let (mut depth, mut lowest, mut quote) = (0_i64, 0_i64, None);
    for c in part.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            (None, _) => {}
        }
        lowest = lowest.min(depth);
    }
    match () {
        () if lowest < 0 && part.ends_with(')') => Some(Wrong::Close),
        () if depth - lowest > 0 && part.starts_with('(') => Some(Wrong::Open),
        () => None,
    }
}

/// Returns true if a side is a literal.
fn is_written_out(node: &IdedExpr) -> bool {
    match &node.expr {
        Expr::Literal(_) => true,
        Expr::List(list) => list.elements.iter().all(is_written_out),
        Expr::Call(call) if call.func_name == "-_" => call.args.iter().all(is_written_out),
        _ => false,
    }
}

impl Untrue {
    /// Returns the values of the sides, in words.
    pub fn sentence(&self) -> String {
        let sides =
            self.sides.iter().map(|(text, value)| format!("`{}` is {}", short(text), short(&value.to_string())));
        sides.collect::<Vec<_>>().join(" and ")
    }
}

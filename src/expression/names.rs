//! Finds the names in an expression before it runs, so that misspelt names are reported when a file is read.

use std::ops::Range;

use cel::Program;
use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};

use super::Wrong;
use super::functions::{GLOBAL, MEMBER, NAMESPACES, TYPES};
use crate::yaml::words;

/// Refuses an expression that uses an unknown variable or function, that nests too deep, or whose result would depend
/// on the order of a map.
pub(super) fn check(text: &str, program: &Program, variables: &[&str], max_depth: usize) -> Result<(), Wrong> {
    let mut walk = Walk { text, program, variables, bound: Vec::new(), max_depth };
    walk.expression(program.expression(), 0)
}

/// Returns the keys of a variable that an expression names, with their ranges: `kept.name`, `kept['name']`, and both
/// with `?` before the name.
pub(super) fn keys_of(text: &str, program: &Program, variable: &str) -> Vec<(String, Range<usize>)> {
    let mut found = Vec::new();
    let walk = Walk { text, program, variables: &[], bound: Vec::new(), max_depth: 0 };
    keys(&walk, program.expression(), variable, &mut found);
    found
}

fn keys(walk: &Walk<'_>, node: &IdedExpr, variable: &str, found: &mut Vec<(String, Range<usize>)>) {
    let is_it = |node: &IdedExpr| matches!(&node.expr, Expr::Ident(name) if name == variable);
    let mut add = |id: u64, name: &str| {
        let range = walk.range(id, name);
        found.push((name.to_owned(), range));
    };
    match &node.expr {
        Expr::Select(select) => {
            if is_it(&select.operand) {
                add(node.id, &select.field);
            }
            keys(walk, &select.operand, variable, found);
        }
        Expr::Call(call) => {
            if let ("_?._" | "_[_]" | "_[?_]", [operand, key]) = (call.func_name.as_str(), call.args.as_slice())
                && let (true, Expr::Literal(LiteralValue::String(name))) = (is_it(operand), &key.expr)
            {
                add(node.id, name.inner());
            }
            for part in call.target.iter().map(|target| &**target).chain(&call.args) {
                keys(walk, part, variable, found);
            }
        }
        Expr::List(list) => list.elements.iter().for_each(|part| keys(walk, part, variable, found)),
        Expr::Map(map) => {
            for entry in &map.entries {
                if let EntryExpr::MapEntry(entry) = &entry.expr {
                    keys(walk, &entry.key, variable, found);
                    keys(walk, &entry.value, variable, found);
                }
            }
        }
        Expr::Comprehension(each) => {
            for part in [&each.iter_range, &each.accu_init, &each.loop_cond, &each.loop_step, &each.result] {
                keys(walk, part, variable, found);
            }
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => {}
    }
}

struct Walk<'a> {
    text: &'a str,
    program: &'a Program,
    variables: &'a [&'a str],
    /// Variables of the enclosing macros.
    bound: Vec<&'a str>,
    max_depth: usize,
}

impl<'a> Walk<'a> {
    fn expression(&mut self, node: &'a IdedExpr, depth: usize) -> Result<(), Wrong> {
        if depth > self.max_depth {
            return Err(self.wrong(0..self.text.len(), "the expression is nested too deeply".to_owned(), None));
        }
        let depth = depth + 1;
        match &node.expr {
            Expr::Ident(name) => self.variable(name, node.id)?,
            Expr::Select(select) => self.expression(&select.operand, depth)?,
            Expr::Call(call) => {
                let is_namespace = |target: &IdedExpr| matches!(&target.expr, Expr::Ident(name) if NAMESPACES.contains(&name.as_str()));
                self.function(&call.func_name, call.target.is_some(), call.args.len(), node.id)?;
                if let Some(target) = call.target.as_deref().filter(|target| !is_namespace(target)) {
                    self.expression(target, depth)?;
                }
                for argument in &call.args {
                    self.expression(argument, depth)?;
                }
            }
            Expr::List(list) => {
                for element in &list.elements {
                    self.expression(element, depth)?;
                }
            }
            Expr::Map(map) => self.entries(map.entries.iter().map(|entry| &entry.expr), depth)?,
            Expr::Struct(made) => {
                let range = self.range(node.id, &made.type_name);
                return Err(self.wrong(range, format!("unknown type `{}`", made.type_name), None));
            }
            Expr::Comprehension(each) => {
                if matches!(each.iter_range.expr, Expr::Map(_)) {
                    let help = Some("name the keys in a list: ['a', 'b'].map(…)".to_owned());
                    let range = self.range(node.id, "");
                    return Err(self.wrong(range, "a map that is made in an expression has no order".to_owned(), help));
                }
                self.expression(&each.iter_range, depth)?;
                self.expression(&each.accu_init, depth)?;
                let before = self.bound.len();
                self.bound.extend([each.iter_var.as_str(), each.accu_var.as_str()]);
                self.bound.extend(each.iter_var2.as_deref());
                for part in [&each.loop_cond, &each.loop_step, &each.result] {
                    self.expression(part, depth)?;
                }
                self.bound.truncate(before);
            }
            Expr::Literal(_) | Expr::Unspecified => {}
        }
        Ok(())
    }

    fn entries(&mut self, entries: impl Iterator<Item = &'a EntryExpr>, depth: usize) -> Result<(), Wrong> {
        for entry in entries {
            match entry {
                EntryExpr::StructField(field) => self.expression(&field.value, depth)?,
                EntryExpr::MapEntry(entry) => {
                    self.expression(&entry.key, depth)?;
                    self.expression(&entry.value, depth)?;
                }
            }
        }
        Ok(())
    }

    fn variable(&self, name: &str, id: u64) -> Result<(), Wrong> {
        let name = name.trim_start_matches('.');
        if name.starts_with('@') || self.bound.contains(&name) || self.variables.contains(&name) {
            return Ok(());
        }
        if TYPES.contains(&name) {
            return Ok(());
        }
        let known = words::sentence(&words::known_words(name, self.variables, "names"));
        let help = Some(format!("{known} write a text in quotes: '{name}'"));
        Err(self.wrong(self.range(id, name), format!("unknown name `{name}`"), help))
    }

    fn function(&self, name: &str, on_value: bool, arguments: usize, id: u64) -> Result<(), Wrong> {
        // Operators have names with other characters.
        if name.contains(|c: char| !c.is_alphanumeric() && c != '_') || name.starts_with('_') {
            return Ok(());
        }
        let known = if on_value { MEMBER } else { GLOBAL };
        let in_namespace = on_value && ["of", "none", "ofNonZeroValue", "quote", "range"].contains(&name);
        if in_namespace || (known.contains(&name) && !is_macro(name)) {
            return Ok(());
        }
        let range = self.range(id, name);
        if is_macro(name) && known.contains(&name) {
            let message = format!("`{name}` does not take {arguments} arguments of this form");
            return Err(self.wrong(range, message, Some("such as list.exists(x, x.done), or has(line.x)".to_owned())));
        }
        let help = words::known_words(name, known, "functions");
        Err(self.wrong(range, format!("unknown function `{name}`"), Some(help)))
    }

    /// Returns the range of a node, or of the name itself if the node contains it.
    fn range(&self, id: u64, name: &str) -> Range<usize> {
        let Some((start, stop)) = self.program.source_info().offset_for(id) else { return 0..self.text.len() };
        let (start, stop) = (start as usize, stop as usize);
        let near = self.text.get(start.saturating_sub(name.len() + 1)..).and_then(|rest| rest.find(name));
        match near {
            Some(at) if !name.is_empty() => {
                let at = start.saturating_sub(name.len() + 1) + at;
                at..at + name.len()
            }
            _ => start.min(self.text.len())..(stop + 1).min(self.text.len()).max(start.min(self.text.len())),
        }
    }

    fn wrong(&self, range: Range<usize>, message: String, help: Option<String>) -> Wrong {
        Wrong { range, message, help }
    }
}

/// Returns true if the name is a macro's. The parser replaces each correct use of a macro, so a remaining call is wrong.
fn is_macro(name: &str) -> bool {
    ["has", "all", "exists", "exists_one", "map", "filter", "optMap", "optFlatMap", "sortBy"].contains(&name)
}

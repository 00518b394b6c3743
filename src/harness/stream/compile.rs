//! Compiles the rules of a manifest, and reports all errors in them with their places.

use std::collections::BTreeSet;

use super::{self as stream, Emit, Formula, Kind, On};
use crate::expression::{Expression, Wrong};
use crate::harness::{Manifest, SessionFile};
use crate::trace::ErrorCategory;
use crate::yaml::words;

/// The compiled rules of a manifest.
#[derive(Debug, Default)]
pub struct Mapping {
    pub(crate) lines: Vec<Rule>,
    pub(crate) texts: Vec<Rule>,
    pub(crate) stderr: Vec<Rule>,
    pub(crate) ends: Vec<Rule>,
    /// The condition for the line by which the agent reports that it has started.
    pub(crate) started: Option<Expression>,
}

/// A compiled rule.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) label: String,
    pub(crate) when: Option<Expression>,
    pub(crate) for_each: Option<Expression>,
    pub(crate) keep: Vec<(String, Expression)>,
    pub(crate) emit: Vec<Event>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) go_on: bool,
}

/// A compiled event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) kind: Kind,
    pub(crate) when: Option<Expression>,
    pub(crate) fields: Vec<(&'static str, Expression)>,
}

/// A step on the way from the top of a manifest to the place of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// A key of a map.
    Key(String),
    /// An item of a list.
    Item(usize),
    /// An item of a list that may be written without the list if it is the only item.
    Only(usize),
}

/// An error in the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The place of the error.
    pub at: Vec<At>,
    /// The expression with the error, and the position in it. Absent if the error concerns the place as a
    /// whole.
    pub expression: Option<String>,
    /// The error.
    pub wrong: Wrong,
}

/// Compiles the rules of a manifest. Invalid rules are left out of the mapping.
pub fn compile(manifest: &Manifest) -> (Mapping, Vec<Fault>) {
    let (mut mapping, mut compiler) = rules(&manifest.stream, &[At::Key("stream".into())], "stream");
    if let Some(formula) = &manifest.known_by {
        // This expression is used separately, before there is a session; here it is only checked.
        compiler.formula(formula, vec![At::Key("known-by".into())], &["line"]);
    }
    if let Some(formula) = &manifest.started_by {
        mapping.started = compiler.formula(formula, vec![At::Key("started-by".into())], &["line"]);
    }
    (mapping, compiler.faults)
}

/// Compiles the rules and expressions for the session files of a manifest, and returns the errors in them.
pub fn session_file_faults(file: &SessionFile) -> Vec<Fault> {
    let at = |key: &str| vec![At::Key("session-file".into()), At::Key(key.into())];
    let (_, mut compiler) = rules(&file.rules, &at("rules"), "rules");
    compiler.formula(&file.known_by, at("known-by"), &["line"]);
    for (key, formula) in [("time", &file.time), ("id", &file.id), ("parent", &file.parent), ("rewind", &file.rewind)] {
        if let Some(formula) = formula {
            compiler.formula(formula, at(key), &["line"]);
        }
    }
    if let Some(chain) = &file.chain {
        let known_by = chain.known_by.as_ref().map(|formula| ("known-by", formula));
        for (key, formula) in [("key", &chain.key), ("after", &chain.after)].into_iter().chain(known_by) {
            compiler.formula(formula, [at("chain"), vec![At::Key(key.into())]].concat(), &["line"]);
        }
    }
    if let Some(ends) = &file.ends {
        for (key, formula) in [("id", &ends.id), ("exit-code", &ends.exit_code), ("failed", &ends.failed)] {
            compiler.formula(formula, [at("ends"), vec![At::Key(key.into())]].concat(), &["line"]);
        }
    }
    compiler.faults
}

/// Compiles a list of rules at a place of the manifest.
fn rules<'a>(list: &'a [stream::Rule], place: &[At], name: &str) -> (Mapping, Compiler<'a>) {
    let mut kept = BTreeSet::new();
    collect_kept(list, &mut kept);
    let top = place.len() + 1;
    let mut compiler = Compiler { kept: kept.into_iter().collect(), faults: Vec::new(), top };
    let mut mapping = Mapping::default();
    for (number, rule) in list.iter().enumerate() {
        let at = [place, &[At::Item(number)]].concat();
        let scope = Within { on: rule.on, each: false };
        let compiled = compiler.rule(rule, &at, &format!("{name}[{number}]"), scope);
        match rule.on {
            On::Line => mapping.lines.push(compiled),
            On::Text => mapping.texts.push(compiled),
            On::Stderr => mapping.stderr.push(compiled),
            On::End => mapping.ends.push(compiled),
        }
    }
    (mapping, compiler)
}

fn collect_kept<'a>(rules: &'a [stream::Rule], kept: &mut BTreeSet<&'a str>) {
    for rule in rules {
        kept.extend(rule.keep.keys().map(String::as_str));
        collect_kept(&rule.rules, kept);
    }
}

/// The position of an expression, which determines the variables that it can access.
#[derive(Clone, Copy)]
struct Within {
    on: On,
    each: bool,
}

impl Within {
    fn variables(self) -> Vec<&'static str> {
        let mut variables = match self.on {
            On::Line => vec!["line", "kept"],
            On::Text | On::Stderr => vec!["text", "kept"],
            On::End => vec!["exit", "kept"],
        };
        if self.each {
            variables.extend(["it", "index"]);
        }
        variables
    }
}

struct Compiler<'a> {
    kept: Vec<&'a str>,
    faults: Vec<Fault>,
    /// The number of steps to a rule that is not inside another rule.
    top: usize,
}

impl Compiler<'_> {
    fn rule(&mut self, rule: &stream::Rule, at: &[At], label: &str, outside: Within) -> Rule {
        self.shape(rule, at, outside);
        let label = rule.name.clone().unwrap_or_else(|| label.to_owned());
        let key = |key: &str| [at, &[At::Key(key.into())]].concat();
        let outer = outside.variables();
        let when = rule.when.as_ref().and_then(|formula| self.formula(formula, key("when"), &outer));
        let for_each = rule.for_each.as_ref().and_then(|formula| self.formula(formula, key("for-each"), &outer));
        let within = Within { each: outside.each || rule.for_each.is_some(), ..outside };
        let variables = within.variables();
        let mut keep = Vec::new();
        for (name, formula) in &rule.keep {
            let place = [key("keep"), vec![At::Key(name.clone())]].concat();
            keep.extend(self.formula(formula, place, &variables).map(|expression| (name.clone(), expression)));
        }
        let mut emit = Vec::new();
        for (number, one) in rule.emit.0.iter().enumerate() {
            let step = if rule.emit.0.len() == 1 { At::Only(number) } else { At::Item(number) };
            emit.extend(self.event(one, &[key("emit"), vec![step]].concat(), &variables));
        }
        let rules = rule.rules.iter().enumerate().map(|(number, inner)| {
            let place = [key("rules"), vec![At::Item(number)]].concat();
            self.rule(inner, &place, &format!("{label}.rules[{number}]"), within)
        });
        Rule { rules: rules.collect(), label, when, for_each, keep, emit, go_on: rule.go_on }
    }

    /// Checks which keys a rule must and must not have besides its expressions.
    fn shape(&mut self, rule: &stream::Rule, at: &[At], outside: Within) {
        let key = |key: &str| [at, &[At::Key(key.into())]].concat();
        let empty = rule.emit.is_empty() && rule.rules.is_empty();
        if rule.ignore && !empty {
            self.fault(
                key("ignore"),
                "the rule has `ignore` and also emits events or has inner rules",
                "remove one of the two",
            );
        }
        if empty && rule.keep.is_empty() && !rule.ignore {
            let help = "write `emit: …`, or `ignore: true` if the line is not an event";
            self.fault(at.to_vec(), "the rule has no effect", help);
        }
        let nested = at.len() > self.top;
        if nested && rule.on != On::Line {
            self.fault(key("on"), "`on` is only for rules that are not inside another rule", "remove it");
        }
        if nested && rule.for_each.is_some() && outside.each {
            self.fault(
                key("for-each"),
                "a `for-each` is inside another `for-each`",
                "write list.map(…) or list.filter(…)",
            );
        }
        for name in rule.keep.keys() {
            let word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !word || name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() {
                let place = [key("keep"), vec![At::Key(name.clone())]].concat();
                self.fault(place, &format!("`{name}` is not a valid variable name"), "use letters, digits and `_`");
            }
        }
    }

    fn event(&mut self, emit: &Emit, at: &[At], variables: &[&str]) -> Option<Event> {
        let when = emit.when.as_ref();
        let when = when.and_then(|formula| self.formula(formula, [at, &[At::Key("when".into())]].concat(), variables));
        let events = emit.events();
        let [(kind, written)] = events.as_slice() else {
            let (message, help) = if events.is_empty() {
                ("the event is missing", "write one, such as `message: {text: line.text}`")
            } else {
                ("one map contains several events", "write a list, in the order of the events: `emit: [{…}, {…}]`")
            };
            self.fault(at.to_vec(), message, help);
            return None;
        };
        let place = [at, &[At::Key(kind.word().into())]].concat();
        if let Some((message, help)) = missing(*kind, written) {
            self.fault(place.clone(), &message, &help);
        }
        let mut fields = Vec::new();
        for (name, formula) in written {
            let words = words_of(*kind, name);
            let known: Vec<&str> = variables.iter().chain(words).copied().collect();
            let place = [place.clone(), vec![At::Key((*name).into())]].concat();
            fields.extend(self.formula(formula, place, &known).map(|expression| (*name, expression)));
        }
        Some(Event { kind: *kind, when, fields })
    }

    fn formula(&mut self, formula: &Formula, at: Vec<At>, variables: &[&str]) -> Option<Expression> {
        let compiled = Expression::compile(&formula.0, variables).and_then(|expression| {
            let unknown = expression.keys_of("kept").into_iter().find(|(name, _)| !self.kept.contains(&name.as_str()));
            match unknown {
                Some((name, range)) => {
                    let known = words::sentence(&words::known_words(&name, &self.kept, "names"));
                    let help = Some(format!("{known} define a name in a rule with `keep: {{{name}: …}}`"));
                    Err(Wrong { range, message: format!("no rule keeps `{name}`"), help })
                }
                None => Ok(expression),
            }
        });
        match compiled {
            Ok(expression) => Some(expression),
            Err(wrong) => {
                self.faults.push(Fault { at, expression: Some(formula.0.clone()), wrong });
                None
            }
        }
    }

    fn fault(&mut self, at: Vec<At>, message: &str, help: &str) {
        let wrong = Wrong { range: 0..0, message: message.to_owned(), help: Some(help.to_owned()) };
        self.faults.push(Fault { at, expression: None, wrong });
    }
}

/// Returns the required fields that an event lacks.
fn missing(kind: Kind, written: &[(&'static str, &Formula)]) -> Option<(String, String)> {
    let has = |name: &str| written.iter().any(|(known, _)| *known == name);
    let required: &[&str] = match kind {
        Kind::Plan => &["entries"],
        Kind::ToolCall | Kind::ToolResult | Kind::Denied => &["id"],
        Kind::PermissionRequest => &["request", "id"],
        Kind::PermissionResponse => &["request", "outcome"],
        Kind::Notice => &["code", "text"],
        Kind::Stop => &["reason"],
        Kind::Header | Kind::Message | Kind::Thought | Kind::Usage => &[],
    };
    if let Some(name) = required.iter().find(|name| !has(name)) {
        return Some((format!("`{}` requires `{name}`", kind.word()), format!("write `{name}: …`")));
    }
    let texts = ["text", "delta", "snapshot"].iter().filter(|name| has(name)).count();
    let may_lack_text = texts == 0 && has("attachments");
    if matches!(kind, Kind::Message | Kind::Thought) && texts != 1 && !may_lack_text {
        let message = format!("`{}` takes exactly one of `text`, `delta` and `snapshot`", kind.word());
        let help = "`text` is a complete block, `delta` a piece of it, `snapshot` the block so far";
        return Some((message, help.to_owned()));
    }
    let figures = written.iter().any(|(name, _)| !matches!(*name, "scope" | "model"));
    match kind {
        Kind::Usage if !figures => Some(("`usage` has no figure".into(), "write `input: …`, `output: …`".into())),
        Kind::Header if written.is_empty() => Some(("`header` is empty".into(), "write `model: …`".into())),
        _ => None,
    }
}

/// Words of the trace that a field may hold without quotes.
pub(crate) fn words_of(kind: Kind, field: &str) -> &'static [&'static str] {
    match (kind, field) {
        (Kind::Message, "role") => &["agent", "user"],
        (Kind::ToolCall, "kind") => &KINDS,
        (Kind::ToolResult, "status") => &["ok", "error", "denied", "cancelled"],
        (Kind::PermissionResponse, "outcome") => &["allowed", "rejected", "cancelled"],
        (Kind::Usage, "scope") => &["call", "turn", "session"],
        (Kind::Stop, "reason") => {
            &["end_turn", "max_tokens", "max_turns", "max_budget", "refusal", "cancelled", "error"]
        }
        (Kind::Stop, "category") => &CATEGORIES,
        _ => &[],
    }
}

/// The kinds of tools, and the word for a kind that the agent does not show.
const KINDS: [&str; 11] =
    ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other", UNKNOWN_KIND];
/// The word for a kind that the agent does not show.
pub(crate) const UNKNOWN_KIND: &str = "unknown";
const CATEGORIES: [&str; 4] = ["auth", "rate_limit", "provider", "protocol"];

/// Returns the error category with this name.
pub(crate) fn category_of(word: &str) -> Option<ErrorCategory> {
    [ErrorCategory::Auth, ErrorCategory::RateLimit, ErrorCategory::Provider, ErrorCategory::Protocol]
        .into_iter()
        .find(|category| category.word() == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::ToolKind;

    #[test]
    fn the_words_are_those_of_the_trace() {
        let kinds: Vec<&str> = KINDS.into_iter().filter(|word| ToolKind::from_word(word).is_some()).collect();
        assert_eq!((kinds.len(), KINDS.len()), (ToolKind::ALL.len(), ToolKind::ALL.len() + 1));
        assert!(CATEGORIES.iter().all(|word| category_of(word).is_some()));
    }
}

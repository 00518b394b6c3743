//! The texts that a program in JavaScript passes to the calls that run commands by a variable, a parameter or a template.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::{Captures, NoExpand, Regex};

use super::{end_of, unescaped, without_values};

/// The maximum number of calls that are read.
const MAX_CALLS: usize = 32;
/// The maximum number of readings of a call.
const MAX_READINGS: usize = 16;
/// The maximum size in bytes of a call.
const MAX_CALL_BYTES: usize = 1000;

const TEXT: &str = r#"(?:"[^"\n]*"|'[^'\n]*'|`[^`$]*`)"#;

/// Returns the calls that use variables with the texts that the code gives to them in the places of the variables.
pub(super) fn calls_with_values(code: &str) -> Vec<String> {
    static CALLS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let of_module = r"\b(?:child_process|cp)['\x22]?\)?\s*\.\s*exec";
        let names = "execSync|execFileSync|spawnSync|execFile|spawn|execa|execaSync";
        Regex::new(&format!(r"(?:\b(?:{names})|(?:^|[^.\w])exec|{of_module})\s*\(")).ok()
    });
    static NAMES: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\$\{\s*([A-Za-z_]\w*)\s*\}|[,(\[+]\s*(?:\.\.\.)?([A-Za-z_]\w*)\b").ok());
    let (Some(calls), Some(names)) = (CALLS.as_ref(), NAMES.as_ref()) else { return Vec::new() };
    let mut found = Vec::new();
    for call in calls.find_iter(code).take(MAX_CALLS) {
        let rest = code.get(call.end()..).unwrap_or_default();
        let Some(end) = end_of_brackets(rest).filter(|end| *end <= MAX_CALL_BYTES) else { continue };
        let whole = code.get(call.start()..call.end() + end + 1).unwrap_or_default();
        let used: BTreeSet<&str> = names
            .captures_iter(whole)
            .filter_map(|found| Some(found.get(1).or_else(|| found.get(2))?.as_str()))
            .collect();
        let mut readings = vec![whole.to_owned()];
        for name in used.into_iter().take(MAX_READINGS) {
            let values = values(code, name).unwrap_or_default();
            if values.is_empty() || values.len() * readings.len() > MAX_READINGS {
                continue;
            }
            let with =
                |reading: &String| values.iter().map(|value| with_value(reading, name, value)).collect::<Vec<_>>();
            readings = readings.iter().flat_map(with).collect();
        }
        found.extend(readings.into_iter().filter(|reading| reading != whole).map(|reading| without_signs(&reading)));
    }
    found
}

/// Returns the texts and lists that a program gives to a variable, as they are written.
fn values(code: &str, name: &str) -> Option<Vec<String>> {
    let list = format!(r"(?:{TEXT}\s*,?\s*)*");
    let texts = Regex::new(TEXT).ok()?;
    let each = |found: &str| texts.find_iter(found).map(|text| text.as_str().to_owned()).collect::<Vec<_>>();
    let all = |form: &str| {
        let form = Regex::new(form).ok()?;
        let found = form.captures_iter(code).filter_map(|found| Some(found.get(1)?.as_str().to_owned()));
        Some(found.take(MAX_READINGS).collect::<Vec<String>>())
    };
    let mut values = all(&format!(r"\b(?:const|let|var)\s+{name}\s*=\s*({TEXT}|\[\s*{list}\])\s*(?:[;\n,]|$)"))?;
    let added = all(&format!(r"\b{name}\.push\(\s*({list})\)"))?.join(",");
    for value in values.iter_mut().filter(|value| value.starts_with('[') && !added.is_empty()) {
        *value = format!("[{}]", [each(value), each(&added)].concat().join(","));
    }
    let loops = all(&format!(r"\b(?:const|let|var)\s+{name}\s+of\s+(\[\s*{list}\])"))?;
    values.extend(loops.iter().flat_map(|found| each(found)));
    let arrow = format!(r"\b(?:const|let|var)\s+(\w+)\s*=\s*(?:async\s*)?\(?\s*(\.\.\.)?{name}\s*\)?\s*=>");
    let function = format!(r"\bfunction\s+(\w+)\s*\(\s*(\.\.\.)?{name}\s*\)");
    let functions = Regex::new(&format!("{arrow}|{function}")).ok()?;
    for found in functions.captures_iter(code).take(MAX_READINGS) {
        let Some(own) = found.get(1).or_else(|| found.get(3)) else { continue };
        let own = own.as_str();
        let has_all = found.get(2).or_else(|| found.get(4)).is_some();
        values.extend(match has_all {
            true => {
                all(&format!(r"\b{own}\(\s*({list})\)"))?.iter().map(|texts| format!("[{texts}]")).collect::<Vec<_>>()
            }
            false => all(&format!(r"\b{own}\(\s*({TEXT}|\[\s*{list}\])\s*[,)]"))?,
        });
    }
    Some(values)
}

/// Returns the texts of a loop over a list with a variable, and the code without the beginning of the loop:
/// `for (const NAME of ['a', 'b'])`, `['a', 'b'].forEach(NAME => …)`.
pub(super) fn texts_of_loop(code: &str, name: &str) -> Option<(Vec<String>, String)> {
    let text = r#"(?:"[^"\\\n]*"|'[^'\\\n]*')"#;
    let list = format!(r"\[\s*{text}(?:\s*,\s*{text})*\s*,?\s*\]");
    let of = format!(r"\b(?:const|let|var)\s+{name}\s+of\s+{list}\s*\)");
    let each = format!(r"{list}\s*\.\s*(?:forEach|map)\(\s*(?:{name}|\(\s*{name}\s*\))\s*=>");
    let loops = Regex::new(&format!("{of}|{each}")).ok()?;
    let texts = Regex::new(text).ok()?;
    let begins: String = loops.find_iter(code).take(MAX_READINGS).map(|found| found.as_str()).collect();
    let inner = |text: &str| text.get(1..text.len() - 1).unwrap_or_default().to_owned();
    let shown: Vec<String> = texts.find_iter(&begins).map(|found| inner(found.as_str())).collect();
    (!shown.is_empty()).then(|| (shown, loops.replacen(code, MAX_READINGS, NoExpand(" ")).into_owned()))
}

/// Returns code in which the functions of `child_process` that it gives other names are called by their own names:
/// `const { execSync: NAME } = require('child_process')`.
pub(super) fn with_own_names(code: &str) -> String {
    static IMPORTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let begin = r"\{([^{}]*)\}\s*(?:=\s*(?:await\s+)?(?:require|import)\s*\(|from)";
        Regex::new(&format!(r#"{begin}\s*["'`](?:node:)?child_process["'`]"#)).ok()
    });
    static RENAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let names = "execSync|execFileSync|execFile|exec|spawnSync|spawn";
        Regex::new(&format!(r"\b({names})\s*(?::|\bas\b)\s*([A-Za-z_]\w*)")).ok()
    });
    let (Some(imports), Some(renamed)) = (IMPORTS.as_ref(), RENAMED.as_ref()) else { return code.to_owned() };
    let mut shown = code.to_owned();
    let names = imports.captures_iter(code).filter_map(|found| found.get(1)).take(MAX_READINGS);
    for found in names.flat_map(|names| renamed.captures_iter(names.as_str()).take(MAX_READINGS)) {
        let (_, [own, name]) = found.extract();
        if let Ok(calls) = Regex::new(&format!(r"(^|[^.\w$]){name}\s*\(")) {
            shown = calls.replace_all(&shown, format!("${{1}}{own}(")).into_owned();
        }
    }
    shown
}

/// Returns a call with a value in the places of a variable.
fn with_value(call: &str, name: &str, value: &str) -> String {
    let text = value.trim_matches(['"', '\'', '`', '[', ']']);
    let in_template = Regex::new(&format!(r"\$\{{\s*{name}\s*\}}"));
    let as_argument = Regex::new(&format!(r"([,(\[+]\s*)(?:\.\.\.)?{name}(\s*[,)\]+])"));
    let (Ok(in_template), Ok(as_argument)) = (in_template, as_argument) else { return call.to_owned() };
    let call = in_template.replace_all(call, NoExpand(text));
    let replaced = as_argument.replace_all(&call, |found: &Captures<'_>| {
        let (before, behind) = (found.get(1).map_or("", |it| it.as_str()), found.get(2).map_or("", |it| it.as_str()));
        format!("{before}{value}{behind}")
    });
    replaced.into_owned()
}

/// Returns a call in which texts that `+` joins are one text.
fn without_signs(call: &str) -> String {
    static JOINTS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#""\s*\+\s*"|'\s*\+\s*'"#).ok());
    JOINTS.as_ref().map_or_else(|| call.to_owned(), |joints| joints.replace_all(call, "").into_owned())
}

/// Returns the place of the bracket that closes what was opened before.
fn end_of_brackets(code: &str) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(next) = code.get(at..).and_then(|rest| rest.chars().next()) {
        at += match next {
            '"' | '\'' | '`' => end_of(code.get(at + 1..)?, next)? + 1,
            ')' if depth == 0 => return Some(at),
            '(' => {
                depth += 1;
                0
            }
            ')' => {
                depth -= 1;
                0
            }
            _ if at > MAX_CALL_BYTES => return None,
            _ => 0,
        };
        at += next.len_utf8();
    }
    None
}

/// Returns the command lines in the templates of Bun, zx and execa: ``$`rm a` ``.
pub(super) fn templates(program: &str, code: &str) -> Vec<String> {
    let has_shell = matches!(program, "bun" | "zx") || ["zx", "execa", "bun", "dax"].iter().any(|it| code.contains(it));
    let mut lines = Vec::new();
    let mut rest = code;
    while let Some((before, behind)) = rest.split_once("$`").filter(|_| has_shell) {
        rest = behind;
        let is_name = before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$');
        if let Some(end) = end_of(behind, '`').filter(|_| !is_name && lines.len() < MAX_CALLS) {
            lines.push(unescaped(&without_values(behind.get(..end).unwrap_or_default())));
            rest = behind.get(end + 1..).unwrap_or_default();
        }
    }
    lines
}

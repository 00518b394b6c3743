//! The values of variables in awk, Perl, Ruby, PHP and JavaScript that a program sets only to texts that it shows.

use std::collections::BTreeSet;

use regex::{NoExpand, Regex};

use super::Call;
use crate::command_line::python::in_quotes;

/// The maximum number of variables of a program that are read.
const MAX_VARIABLES: usize = 32;

/// The forms of a language, as regular expressions. `NAME` is a variable, `TEXT` a text in quotes, and `TEXTS` a list of them.
struct Forms {
    /// A call that runs the variable. The first group is the name.
    runs: &'static [&'static str],
    /// A place that only reads the variable.
    reads: &'static str,
    /// An assignment of a text.
    sets: &'static str,
    /// An assignment of the words of a command.
    sets_words: &'static str,
    /// An assignment of the words of a command in one pair of quotes. The first group is the text between the quotes.
    sets_split: &'static str,
    /// A loop over texts.
    sets_each: &'static str,
    text: &'static str,
}

/// A regular expression that matches nothing.
const NONE: &str = r"[^\s\S]";

const AWK: Forms = Forms {
    runs: &[r"\bsystem\s*\(\s*(NAME)\s*\)", r"(?:^|[^\w$.@])(NAME)\s*\|\s*getline\b"],
    reads: r"\bclose\s*\(\s*NAME\s*\)",
    sets: r"(?:^|[^\w$.@])NAME\s*=\s*TEXT\s*(?:[;}\n]|$)",
    sets_words: NONE,
    sets_split: NONE,
    sets_each: NONE,
    text: r#""[^"\\\n]*""#,
};

const PERL: Forms = Forms {
    runs: &[r"\b(?:system|exec)\s*\(\s*[$@](NAME)\s*\)", r"\b(?:system|exec)\s+[$@](NAME)\s*(?:[;}]|$)"],
    reads: r"\bprint\s+\$NAME\s*;",
    sets: r"\$NAME\s*=\s*TEXT\s*;",
    sets_words: r"@NAME\s*=\s*\(\s*TEXTS\)\s*;",
    sets_split: r"@NAME\s*=\s*qw\s*[(\[{/]([^()\[\]{}/]*)[)\]}/]\s*;",
    sets_each: r"\bfor(?:each)?\s+(?:my\s+)?\$NAME\s*\(\s*TEXTS\)",
    text: r#"(?:"[^"\\$@\n]*"|'[^'\\\n]*')"#,
};

const RUBY: Forms = Forms {
    runs: &[
        r"\b(?:system|exec)\s*\(\s*\*?[$@]?(NAME)\s*\)",
        r"\b(?:system|exec)[ \t]+\*?[$@]?(NAME)[ \t]*(?:[;}\n]|(?:if|unless|or|and|end)\b|$)",
    ],
    reads: r"\bputs\s+NAME\s*(?:[;\n]|$)",
    sets: r"(?:^|[\s;{])[$@]?NAME\s*=\s*TEXT\s*(?:[;\n]|$)",
    sets_words: r"(?:^|[\s;{])[$@]?NAME\s*=\s*\[\s*TEXTS\]\s*(?:[;\n]|$)",
    sets_split: r"(?:^|[\s;{])[$@]?NAME\s*=\s*%[wW][(\[{/]([^()\[\]{}/]*)[)\]}/]\s*(?:[;\n]|$)",
    sets_each: r"\[\s*TEXTS\]\.each\s*(?:do|\{)\s*\|NAME\|",
    text: r#"(?:"[^"\\#\n]*"|'[^'\\\n]*')"#,
};

const PHP: Forms = Forms {
    runs: &[r"\b(?:system|exec|shell_exec|passthru)\s*\(\s*\$(NAME)\s*\)"],
    reads: r"\becho\s+\$NAME\s*;",
    sets: r"\$NAME\s*=\s*TEXT\s*;",
    sets_words: NONE,
    sets_split: NONE,
    sets_each: r"\bforeach\s*\(\s*\[\s*TEXTS\]\s*as\s+\$NAME\s*\)",
    text: r#"(?:"[^"\\$\n]*"|'[^'\\\n]*')"#,
};

/// Returns the calls of code that run variables whose values are all shown, and the code without these calls.
pub(super) fn calls(program: &str, code: &str) -> (Vec<Call>, String) {
    let forms = match program {
        "perl" => PERL,
        "ruby" => RUBY,
        "php" => PHP,
        name if name.ends_with("awk") => AWK,
        _ => return (Vec::new(), code.to_owned()),
    };
    let mut rest = code.to_owned();
    if program == "ruby" {
        // A text that is printed.
        let printed = r#"\b(?:puts|print|warn)\s*\(?\s*(?:"(?:system|exec)\(\w*\)"|'(?:system|exec)\(\w*\)')"#;
        rest = without(printed, &rest).unwrap_or(rest);
    }
    let mut calls = Vec::new();
    for name in names(&forms, code) {
        if let Some(call) = call(&forms, &name, code)
            && let Some(behind) = without_all(forms.runs, &name, &rest)
        {
            calls.push(call);
            rest = behind;
        }
    }
    (calls, rest)
}

/// Returns the names of the variables that a program runs.
fn names(forms: &Forms, code: &str) -> BTreeSet<String> {
    let runs = forms.runs.iter().filter_map(|form| Regex::new(&form.replace("NAME", r"[A-Za-z_]\w*")).ok());
    let names = runs.flat_map(|form| {
        let names = form.captures_iter(code).filter_map(|found| Some(found.get(1)?.as_str().to_owned()));
        names.take(MAX_VARIABLES).collect::<Vec<_>>()
    });
    names.take(MAX_VARIABLES).collect()
}

/// Returns the call that runs a variable, or `None` if the code uses the variable in another way than the known ones.
fn call(forms: &Forms, name: &str, code: &str) -> Option<Call> {
    let texts = Regex::new(forms.text).ok()?;
    let list = format!(r"(?:{}\s*,?\s*)*", forms.text);
    let written = |form: &str| form.replace("TEXTS", &list).replace("TEXT", forms.text).replace("NAME", name);
    let values = |found: &str| {
        let inner = |text: regex::Match<'_>| text.as_str().get(1..text.len() - 1).unwrap_or_default().to_owned();
        texts.find_iter(found).map(inner).collect::<Vec<String>>()
    };
    let (mut lines, mut rest) = (Vec::new(), code.to_owned());
    for (form, is_words) in [(forms.sets, false), (forms.sets_each, false), (forms.sets_words, true)] {
        let sets = Regex::new(&written(form)).ok()?;
        for found in sets.find_iter(&rest) {
            let values = values(found.as_str());
            lines.extend(if is_words { vec![in_quotes(&values)] } else { values });
        }
        rest = sets.replace_all(&rest, NoExpand(" ; ")).into_owned();
    }
    let sets = Regex::new(&written(forms.sets_split)).ok()?;
    for text in sets.captures_iter(&rest).filter_map(|found| found.get(1)) {
        lines.push(in_quotes(&text.as_str().split_whitespace().map(str::to_owned).collect::<Vec<_>>()));
    }
    rest = sets.replace_all(&rest, NoExpand(" ; ")).into_owned();
    let rest = without_all(forms.runs, name, &without(&written(forms.reads), &rest)?)?;
    let is_used_otherwise = Regex::new(&format!(r"\b{name}\b")).ok()?.is_match(&rest);
    lines.dedup();
    (!is_used_otherwise && !lines.is_empty()).then_some(Call { lines, is_choice: true, is_unused: false })
}

/// Returns code without the matches of forms that run a variable.
fn without_all(forms: &[&str], name: &str, code: &str) -> Option<String> {
    forms.iter().try_fold(code.to_owned(), |rest, form| without(&form.replace("NAME", name), &rest))
}

/// Returns code with a blank in the place of each match.
fn without(form: &str, code: &str) -> Option<String> {
    Some(Regex::new(form).ok()?.replace_all(code, NoExpand(" ")).into_owned())
}

/// Returns the texts that the calls of a function of JavaScript give to its only parameter, or `None` if the code does not show
/// all of them. The function passes the parameter to `execSync` and the like.
pub(super) fn arguments_of_function(code: &str, parameter: &str) -> Option<Vec<String>> {
    let text = r#"(?:"[^"\\\n]*"|'[^'\\\n]*'|`[^`\\$]*`)"#;
    let arrow = format!(r"\b(?:const|let|var)\s+(\w+)\s*=\s*\(?\s*{parameter}\s*\)?\s*=>");
    let function = format!(r"\bfunction\s+(\w+)\s*\(\s*{parameter}\s*\)");
    let definition = Regex::new(&format!("{arrow}|{function}")).ok()?;
    let name = definition.captures(code)?.iter().skip(1).flatten().next()?.as_str().to_owned();
    let calls = Regex::new(&format!(r"\b{name}\s*\(\s*({text})\s*[,)]")).ok()?;
    let texts = calls.captures_iter(code).filter_map(|found| found.get(1));
    let lines: Vec<String> =
        texts.map(|text| text.as_str().get(1..text.len() - 1).unwrap_or_default().to_owned()).collect();
    let run =
        format!(r"\bexec(?:Sync)?\s*\(\s*{parameter}\s*[,)]|\b(?:spawnSync|execFileSync)\s*\(\s*{parameter}\s*\)");
    let rest = definition.replace(code, NoExpand(" "));
    let rest = without(&run, &calls.replace_all(&rest, NoExpand(" ")))?;
    let is_used_otherwise = Regex::new(&format!(r"\b(?:{name}|{parameter}|input)\b")).ok()?.is_match(&rest);
    (!is_used_otherwise && !lines.is_empty()).then_some(lines)
}

//! The paths that a prompt names. Pure.

use std::path::Path;

use crate::paths;

fn is_of_path(c: char) -> bool {
    c.is_alphanumeric() || "/._-~+@".contains(c)
}

/// Returns true if a prompt names a path as a whole: `sales.csv` is not named by `data/sales.csv` or `sales.csv.bak`.
pub fn names(prompt: &str, path: &str) -> bool {
    let path = path.trim_start_matches("./").trim_end_matches('/');
    !path.is_empty()
        && prompt.match_indices(path).any(|(at, _)| {
            let before = prompt.get(..at).unwrap_or_default();
            let before = before.strip_suffix("./").unwrap_or(before);
            // `@sales.csv` refers to a file in some agents.
            let before = before.strip_suffix('@').unwrap_or(before);
            let begins = !before.ends_with(is_of_path) && !before.ends_with(':');
            begins && ends(prompt.get(at + path.len()..).unwrap_or_default(), true)
        })
}

/// Words before the path of a file that the agent has to make.
const MAKES: [&str; 13] = [
    "as", "called", "create", "export", "generate", "into", "make", "named", "output", "produce", "save", "to", "write",
];

/// Returns the only path of a prompt that is in the workspace and ends in `/NAME`. `None` also if one of the paths may be
/// something else: a part of a longer one, a variable, a host, or a file that the agent has to make.
pub fn only_path_to(prompt: &str, name: &str) -> Option<String> {
    let end = format!("/{name}");
    let is_letter_elsewhere = |c: char| !c.is_ascii() && c.is_alphanumeric();
    let mut found: Vec<&str> = Vec::new();
    for (at, _) in prompt.match_indices(&end) {
        let after = at + end.len();
        let rest = prompt.get(after..)?;
        if rest.starts_with(is_letter_elsewhere) {
            return None;
        }
        if !ends(rest, false) {
            continue;
        }
        let start =
            prompt.get(..at)?.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c)).len();
        let path = prompt.get(start..after)?;
        let before = prompt.get(..start)?;
        let before = before.strip_suffix('@').unwrap_or(before);
        let goes_on = |c: char| is_of_path(c) || "$%}\\:".contains(c);
        let word = before.trim_end_matches(|c: char| c.is_whitespace() || "\"'`(".contains(c));
        let word = word.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_ascii_lowercase();
        let below = path.trim_start_matches("./");
        let first = below.split('/').next().unwrap_or_default();
        let is_host = below.len() == path.len() && first.trim_start_matches('.').contains('.');
        let is_of_git = below.split('/').any(|step| step == ".git");
        if before.ends_with(goes_on) || MAKES.contains(&word.as_str()) || is_host || is_of_git {
            return None;
        }
        found.push(below);
    }
    found.dedup();
    match found.as_slice() {
        [one] if paths::leaves(Path::new(one)).is_none() => Some((*one).to_owned()),
        _ => None,
    }
}

/// Returns true if a path ends where this text begins. A point at the end of a sentence does not belong to it.
fn ends(after: &str, may_go_on_below: bool) -> bool {
    let mut chars = after.chars();
    match chars.next() {
        Some('/') => may_go_on_below,
        Some('.') => !chars.next().is_some_and(is_of_path),
        Some(c) => !is_of_path(c),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_named_as_a_whole() {
        for prompt in
            ["Add up sales.csv.", "sales.csv", "`./sales.csv`", "@sales.csv", "(sales.csv, a)", "sales.csv/total"]
        {
            assert!(names(prompt, "sales.csv"), "{prompt}");
        }
        for prompt in
            ["data/sales.csv", "sales.csv.bak", "old-sales.csv", "../sales.csv", "C:sales.csv", "a@sales.csv", ""]
        {
            assert!(!names(prompt, "sales.csv"), "{prompt}");
        }
    }

    #[test]
    fn the_only_path_to_a_file_is_found() {
        for (prompt, expected) in [
            ("Look at data/2025/a.csv.", Some("data/2025/a.csv")),
            ("./data/a.csv and data/a.csv", Some("data/a.csv")),
            ("data/a.csv and old/a.csv", None),
            ("/data/a.csv", None),
            ("https://x.example/a.csv", None),
            ("~/data/a.csv", None),
            ("../data/a.csv", None),
            ("data/a.csv.bak", None),
            ("a.csv", None),
            ("Add up @data/a.csv.", Some("data/a.csv")),
            ("`./v1.2/a.csv`", Some("v1.2/a.csv")),
            ("请汇总 data/a.csv。", Some("data/a.csv")),
            ("请汇总data/a.csv。", None),
            ("data/a.csv里", None),
            ("me@data/a.csv", None),
            ("$DATA/a.csv", None),
            ("${DATA}/a.csv", None),
            ("%DATA%/a.csv", None),
            (".git/a.csv", None),
            ("example.com/a.csv", None),
            ("Clean the CSV and write it to out/a.csv", None),
            ("Read data/a.csv and save `out/a.csv`", None),
        ] {
            assert_eq!(only_path_to(prompt, "a.csv").as_deref(), expected, "{prompt}");
        }
    }
}

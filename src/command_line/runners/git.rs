//! The commands that git runs, also those of its settings.

use super::{Inner, NOT_SHOWN, behind_options, text_of};
use crate::command_line::expanded::Argument;

/// Returns the commands that git runs: `git rebase --exec`, `git bisect run`, `git -c alias.x='!rm a' x`.
pub(super) fn in_git(arguments: &[Argument]) -> Vec<Inner<'_>> {
    let rest = behind_options(arguments, "cC", &["git-dir", "work-tree", "namespace", "config-env"]);
    let options = arguments.get(..arguments.len() - rest.len()).unwrap_or_default();
    let mut found: Vec<Inner<'_>> = options
        .windows(2)
        .filter_map(|two| match two {
            [option, setting] if option.text == "-c" => command_of_setting(&setting.text),
            _ => None,
        })
        .map(|text| Inner::text(text.to_owned()))
        .collect();
    found.extend(behind_verb_of_git(rest));
    found
}

/// Returns the command in a setting of git such as `alias.x=!rm a` or `core.pager=less`.
fn command_of_setting(setting: &str) -> Option<&str> {
    let (name, value) = setting.split_once('=')?;
    let name = name.to_ascii_lowercase();
    let is_command = name.starts_with("pager.")
        || [".pager", ".editor", ".sshcommand", ".fsmonitor", ".external", ".textconv", ".driver", ".clean", ".smudge"]
            .iter()
            .any(|end| name.ends_with(end));
    let own = Some(value).filter(|value| is_command && !matches!(*value, "" | "true" | "false"));
    value.strip_prefix('!').or(own)
}

/// Returns the commands that a command of git runs.
fn behind_verb_of_git(arguments: &[Argument]) -> Vec<Inner<'_>> {
    let Some((verb, rest)) = arguments.split_first() else { return Vec::new() };
    let behind = |words: &[&str]| {
        let at = rest.iter().position(|word| words.contains(&word.text.as_str()));
        at.and_then(|at| rest.get(at + 1..)).unwrap_or_default()
    };
    let first = |words: &[Argument]| words.first().map(|word| Inner::text(word.text.clone())).into_iter().collect();
    match verb.text.as_str() {
        "rebase" => first(behind(&["-x", "--exec"])),
        // The alias may run later.
        "config"
            if rest.windows(2).any(
                |two| matches!(two, [name, text] if name.text.starts_with("alias.") && text.text.starts_with('!')),
            ) =>
        {
            vec![Inner::text(NOT_SHOWN.to_owned())]
        }
        "filter-branch" => first(behind(&["--tree-filter", "--index-filter"])),
        "bisect" => Inner::of(behind(&["run"])).into_iter().collect(),
        "submodule" => {
            let command = behind_options(behind(&["foreach"]), "", &[]);
            if command.is_empty() { Vec::new() } else { vec![Inner::text(text_of(command))] }
        }
        _ => Vec::new(),
    }
}

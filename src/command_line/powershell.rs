//! Recognises lines of PowerShell.

/// Returns true if a word is an operator that compares values.
pub(super) fn is_comparison(word: &str) -> bool {
    let name = word.strip_prefix('-').map(str::to_ascii_lowercase).unwrap_or_default();
    matches!(
        name.as_str(),
        "eq" | "ne"
            | "gt"
            | "ge"
            | "lt"
            | "le"
            | "like"
            | "notlike"
            | "match"
            | "notmatch"
            | "contains"
            | "notcontains"
    )
}

/// Returns true if words can follow a value, as in `$x -join ','`, `$x * 2`, `foreach ($x in $y)` and `{ $x }`. A name
/// cannot: `$x a` is an error.
pub(super) fn are_behind_value(first: &str, second: &str) -> bool {
    let is_number = second.starts_with(|c: char| c.is_ascii_digit() || c == '$');
    is_operator(first) || first == "*" && is_number || first == "in" || first == "}"
}

/// Returns true if a word is an operator of PowerShell.
fn is_operator(word: &str) -> bool {
    const NAMES: [&str; 12] =
        ["-join", "-split", "-replace", "-and", "-or", "-xor", "-f", "-is", "-isnot", "-as", "-in", "-notin"];
    const SIGNS: [&str; 12] = ["+=", "-=", "*=", "/=", "+", "-", "/", "%", ",", "?", "??", ".."];
    is_comparison(word)
        || word.starts_with('=')
        || SIGNS.contains(&word)
        || NAMES.contains(&word.to_ascii_lowercase().as_str())
}

/// Returns true if a command is one of PowerShell: a verb and a noun, as `Get-Content`.
pub(super) fn is_cmdlet(command: &str) -> bool {
    const VERBS: [&str; 58] = [
        "Add",
        "Clear",
        "Compare",
        "Compress",
        "Connect",
        "Convert",
        "ConvertFrom",
        "ConvertTo",
        "Copy",
        "Disable",
        "Disconnect",
        "Enable",
        "Enter",
        "Exit",
        "Expand",
        "Export",
        "Find",
        "ForEach",
        "Format",
        "Get",
        "Group",
        "Import",
        "Install",
        "Invoke",
        "Join",
        "Measure",
        "Move",
        "New",
        "Out",
        "Pop",
        "Publish",
        "Push",
        "Read",
        "Receive",
        "Register",
        "Remove",
        "Rename",
        "Resolve",
        "Restart",
        "Save",
        "Select",
        "Send",
        "Set",
        "Show",
        "Sort",
        "Split",
        "Start",
        "Stop",
        "Tee",
        "Test",
        "Unblock",
        "Uninstall",
        "Unregister",
        "Update",
        "Use",
        "Wait",
        "Where",
        "Write",
    ];
    let name = command.split(' ').next().unwrap_or_default();
    let is_noun = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_uppercase()) && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    name.split_once('-').is_some_and(|(verb, noun)| VERBS.contains(&verb) && is_noun(noun))
}

/// Returns true if a line may run a value: `& $command`, `. $file`, `iex $text`, `$text | iex`.
pub(super) fn runs_value(line: &str) -> bool {
    let is_iex = |word: &str| {
        let name = word.trim_start_matches(['"', '\'']);
        name.eq_ignore_ascii_case("iex") || name.eq_ignore_ascii_case("invoke-expression")
    };
    let is_value = |word: &str| word.trim_start_matches('"').starts_with(['$', '(']);
    let is_between = |c: char| c.is_whitespace() || matches!(c, ';' | '{' | '}');
    let words: Vec<&str> = line.split(is_between).filter(|word| !word.is_empty()).collect();
    let runs = |two: &[&str]| match two {
        [first, second] => {
            let takes_value = matches!(*first, "&" | ".") || is_iex(first);
            takes_value && is_value(second) || first.ends_with('|') && is_iex(second)
        }
        _ => false,
    };
    ["&$", "&(", "&\"$", "|iex"].iter().any(|sign| line.contains(sign)) || words.windows(2).any(runs)
}

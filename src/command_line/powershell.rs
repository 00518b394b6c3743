//! Recognises lines of PowerShell.

/// Returns true if a word is an operator that compares values.
pub(super) fn is_comparison(word: &str) -> bool {
    let name = word.strip_prefix('-').map(str::to_ascii_lowercase).unwrap_or_default();
    matches!(
        name.as_str(),
        "eq" | "ne" | "gt" | "ge" | "lt" | "le" | "like" | "notlike" | "match" | "notmatch" | "contains"
    )
}

/// Returns true if a command is one of PowerShell: a verb and a noun, as `Get-Content`.
pub(super) fn is_cmdlet(command: &str) -> bool {
    let name = command.split(' ').next().unwrap_or_default();
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_uppercase()) && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    name.split_once('-').is_some_and(|(verb, noun)| is_word(verb) && is_word(noun))
}

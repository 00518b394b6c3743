//! Finds exit codes in the output of a failed command.

/// Returns the exit code at the beginning of a failed command's output: `Exit code 3`.
pub fn exit_code_in(output: &str) -> Option<i64> {
    let rest = output.trim_start().strip_prefix("Exit code ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
    let follows = rest[end..].chars().next();
    follows.is_none_or(|c| c.is_whitespace() || c == ':').then(|| rest[..end].parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_one_where_nothing_but_space_follows() {
        assert_eq!(exit_code_in("Exit code 3\nno"), Some(3));
        assert_eq!(exit_code_in("\nExit code -1: no"), Some(-1));
        for other in ["Exit code 3rd try failed", "Exit code ", "It said Exit code 3", ""] {
            assert_eq!(exit_code_in(other), None, "{other}");
        }
    }
}

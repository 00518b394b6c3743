//! The results of tools that the model's service runs: an exit code or an error inside, and the output.

use super::lenient::ExitCode;
use super::lines::Block;

/// The types of command results whose output can be read.
const OF_COMMANDS: [&str; 2] = ["bash_code_execution_result", "code_execution_result"];

/// The type of results of commands whose output is encrypted.
const ENCRYPTED: &str = "encrypted_code_execution_result";

/// Returns the exit code that a result states. Of several, the first that is not 0.
pub(super) fn exit_code(parts: &[Block<'_>]) -> Option<i64> {
    let codes = || {
        parts.iter().filter_map(|part| match part.return_code {
            ExitCode::Is(code) => Some(code),
            ExitCode::Absent | ExitCode::Odd => None,
        })
    };
    codes().find(|code| *code != 0).or_else(|| codes().next())
}

/// Returns true if a result states an exit code in a form that cannot be read, or is that of a command and states none.
pub(super) fn has_unreadable_code(parts: &[Block<'_>]) -> bool {
    parts.iter().any(|part| match part.return_code {
        ExitCode::Is(_) => false,
        ExitCode::Odd => true,
        ExitCode::Absent => {
            let kind = part.kind.or_empty();
            OF_COMMANDS.contains(&kind) || kind == ENCRYPTED
        }
    })
}

/// Returns true if a result is the error of a tool.
pub(super) fn is_error(parts: &[Block<'_>]) -> bool {
    parts.iter().any(|part| part.error_code.get().is_some() || part.kind.or_empty().ends_with("_error"))
}

/// Returns true if a part of a result does not show its output, or not in a form that can be read.
pub(super) fn lacks_output(part: &Block<'_>) -> bool {
    OF_COMMANDS.contains(&part.kind.or_empty()) && part.stdout.0.is_none()
}

/// Returns true if a part of the output of a result is encrypted.
pub(super) fn is_encrypted(parts: &[Block<'_>]) -> bool {
    parts.iter().any(|part| part.kind.or_empty() == ENCRYPTED)
}

/// Returns the output of a command, or the text of an error. Returns `None` for a part of another form.
pub(super) fn output(part: &Block<'_>) -> Option<String> {
    if part.stdout.0.is_some() || part.stderr.0.is_some() {
        let (out, errors) = (part.stdout.or_empty(), part.stderr.or_empty());
        let gap = if out.is_empty() || errors.is_empty() || out.ends_with('\n') { "" } else { "\n" };
        return Some(format!("{out}{gap}{errors}"));
    }
    match (part.error_code.get(), part.error_message.get()) {
        (Some(code), Some(message)) => Some(format!("{code}: {message}")),
        (code, message) => code.or(message).map(str::to_owned),
    }
}

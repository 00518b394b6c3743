//! Makes the draft of a prompt from a commit's message and the texts that the message refers to. Pure.

/// The texts that a prompt is made from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// The commit's message.
    pub message: String,
    /// The lines that the commit adds to the project's release notes.
    pub notes: Vec<String>,
    /// The subjects of the earlier commits that the message names.
    pub named: Vec<String>,
}

/// Lines about people and tools.
const TRAILERS: [&str; 14] = [
    "signed-off-by:",
    "co-authored-by:",
    "reviewed-by:",
    "acked-by:",
    "tested-by:",
    "reported-by:",
    "suggested-by:",
    "change-id:",
    "git-svn-id:",
    "cc:",
    "pull-request:",
    "reviewed-on:",
    "commit-queue:",
    "(cherry picked from",
];

/// Returns the prompt.
pub fn draft(sources: &Sources) -> String {
    let is_trailer = |line: &&str| {
        let line = line.trim().to_ascii_lowercase();
        TRAILERS.iter().any(|trailer| line.starts_with(trailer))
    };
    let lines: Vec<&str> = sources.message.lines().map(str::trim_end).filter(|line| !is_trailer(line)).collect();
    let mut parts = vec![lines.join("\n").trim().to_owned()];
    if !sources.named.is_empty() {
        let named: Vec<String> = sources.named.iter().map(|subject| format!("- {subject}")).collect();
        parts.push(format!("Earlier changes that this one refers to:\n{}", named.join("\n")));
    }
    if !sources.notes.is_empty() {
        parts.push(format!("From the release notes of the change:\n{}", sources.notes.join("\n")));
    }
    parts.push(
        "Make this change in the repository. The result is checked by tests that you do not see. Tests that pass now must \
         still pass."
            .to_owned(),
    );
    parts.retain(|part| !part.is_empty());
    format!("{}\n", parts.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_has_the_message_without_trailers() {
        let sources = Sources {
            message: "Fix the end\n\nThe last one was skipped.\n\nSigned-off-by: A <a@b>\n".to_owned(),
            notes: vec!["- The last one counts".to_owned()],
            named: vec!["Add the list".to_owned()],
        };
        let prompt = draft(&sources);
        assert!(prompt.starts_with("Fix the end\n\nThe last one was skipped.\n\nEarlier changes"), "{prompt}");
        assert!(prompt.contains("- Add the list\n\nFrom the release notes of the change:\n- The last one counts\n"));
        assert!(!prompt.contains("Signed-off-by"));
    }
}

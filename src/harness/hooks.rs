//! The files from which an agent reads hooks: programs that it runs around its calls.

use serde::{Deserialize, Serialize};

use crate::values::{PathGlob, Pattern};

/// A file from which an agent reads hooks. A hook may change a call, and the agent may show the call as it was before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HookFile {
    /// The path of the file, relative to the workspace or to the private home: a glob.
    pub file: PathGlob,
    /// A regular expression that matches the text of a file with hooks. Default: each such file has hooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<Pattern>,
}

impl HookFile {
    /// Returns true if a file with this text has hooks.
    pub fn has_hooks(&self, text: &str) -> bool {
        self.regex.as_ref().is_none_or(|regex| regex.is_match(text))
    }
}

#[cfg(test)]
mod tests {
    use crate::harness::built_in::named;

    #[test]
    fn only_hooks_that_can_change_a_call_count() {
        let list = |event: &str| format!(r#"{{"hooks": {{"{event}": [{{"matcher": "", "hooks": []}}]}}}}"#);
        let front_matter =
            |event: &str| format!("---\nname: a\nhooks:\n  {event}:\n    - matcher: Bash\n---\nPreToolUse: no\n");
        for (harness, file, text, counts) in [
            ("claude-code-stream", ".claude/settings.json", list("PreToolUse"), true),
            ("claude-code-stream", ".claude/settings.local.json", list("PermissionRequest"), true),
            ("claude-code-stream", ".claude/settings.json", list("Stop"), false),
            ("claude-code-stream", ".claude/settings.json", list("PostToolUse"), false),
            ("claude-code-stream", ".claude/settings.json", r#"{"hooks": {"PreToolUse": []}}"#.to_owned(), false),
            ("claude-code-stream", ".claude/agents/a.md", front_matter("PreToolUse"), true),
            ("claude-code-stream", ".claude/agents/a.md", front_matter("Stop"), false),
            ("codex", ".codex/hooks.json", list("PreToolUse"), true),
            ("codex", ".codex/hooks.json", list("Stop"), false),
            ("codex", ".codex/config.toml", "[[hooks.PreToolUse]]\n".to_owned(), true),
            ("codex", ".codex/config.toml", "hooks = {x = '#', PreToolUse = [{matcher = ''}]}".to_owned(), true),
            ("codex", ".codex/config.toml", "# [[hooks.PreToolUse]]\n[[hooks.Stop]]\n".to_owned(), false),
            ("gemini", ".gemini/settings.json", list("BeforeTool"), true),
            ("gemini", ".gemini/settings.json", list("AfterTool"), false),
            ("qwen", ".qwen/settings.json", list("PreToolUse"), true),
            ("copilot", ".github/hooks/a.json", list("preToolUse"), true),
            ("copilot", ".github/hooks/a.json", list("sessionStart"), false),
            ("cursor", ".cursor/hooks.json", list("preToolUse"), true),
            ("cursor", ".cursor/hooks.json", list("afterFileEdit"), false),
            ("droid-stream", ".factory/settings.json", list("PreToolUse"), true),
            ("pi", ".pi/settings.json", r#"{"extensions": ["../guard.ts"]}"#.to_owned(), true),
            ("pi-acp", ".pi/settings.json", r#"{"packages": ["npm:guard"]}"#.to_owned(), true),
            ("pi", ".pi/settings.json", r#"{"extensions": []}"#.to_owned(), false),
            ("pi", ".pi/extensions/guard/index.ts", String::new(), true),
            ("opencode", ".opencode/plugin/a.js", String::new(), false),
        ] {
            let mut hooks = named(harness).unwrap().hooks.iter();
            let found = hooks.any(|hooks| hooks.file.is_match(file) && hooks.has_hooks(&text));
            assert_eq!(found, counts, "{harness} {file}: {text}");
        }
    }
}

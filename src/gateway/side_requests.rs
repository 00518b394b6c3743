//! Distinguishes the requests of the case's conversation from other requests that an agent makes, before or besides it.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::ModelRequest;
use crate::values::Pattern;

/// Texts of requests outside the conversation that offer tools, as observed: Claude Code and Qwen Code for
/// suggestions of the user's next input, Qwen Code for its memory.
const SAID_ASIDE: [&str; 2] = ["[SUGGESTION MODE:", "You are now acting as the managed memory extraction subagent"];

/// The maximum length in bytes of the instructions of a request for a title. An agent's own instructions are longer, and
/// may mention titles.
const MAX_TITLE_REQUEST_BYTES: usize = 4000;

/// Instructions to name a conversation.
static TITLE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = r"(?xi)
        \b(?:generate|write|create|give|suggest|produce|provide|come\s+up\s+with)\s+(?:me\s+)?(?:a|an|the)?\s*
        (?:[\w-]+[\s,]+){0,5}(?:titles?|names?|headline)\s+(?:for|of|that\s+\w+)\s+(?:this|the|a|an|our)\s+
        (?:[\w']+\s+){0,4}(?:conversation|session|chat|thread|task|message|request|prompt)
        | \byou\s+(?:are\s+a\s+title\s+generator|generate\s+(?:\w+\s+){0,2}titles?)\b
        | \byou\s+name\s+(?:conversations|sessions|chats)\b";
    Regex::new(words).ok()
});

/// Returns true if a pattern is found in the instructions of a request, or in its last user message.
pub(super) fn matches(asked: &ModelRequest, patterns: &[Pattern]) -> bool {
    patterns.iter().any(|pattern| pattern.is_match(&asked.preamble) || pattern.is_match(&asked.last))
}

/// Returns true if the texts of a request show that it is outside the conversation, or if its token limit is too low
/// for a useful answer.
pub(super) fn is_side_request(asked: &ModelRequest, prompts: &[String], more: &[Pattern]) -> bool {
    let says = |found: &dyn Fn(&str) -> bool| found(&asked.preamble) || found(&asked.last);
    asked.most == Some(1)
        || SAID_ASIDE.iter().any(|words| says(&|text| text.contains(words)))
        || matches(asked, more)
        || asks_for_title(asked, prompts)
}

/// Returns true if the request's own words, without the case's prompts, ask for a title.
fn asks_for_title(asked: &ModelRequest, prompts: &[String]) -> bool {
    if prompts.is_empty() || asked.model_turns > 0 {
        return false;
    }
    let own = prompts.iter().fold(asked.preamble.clone(), |text, prompt| text.replace(prompt.trim(), " "));
    own.len() <= MAX_TITLE_REQUEST_BYTES && TITLE.as_ref().is_some_and(|title| title.is_match(&own))
}

/// Returns the number of the model's turns since the case's first prompt in this conversation. Earlier exchanges of
/// the agent, or turns that it wrote itself, are not turns of the script. Returns `None` if the conversation contains
/// no prompt of the case.
pub(super) fn turns_since_prompt(asked: &ModelRequest, prompts: &[String]) -> Option<usize> {
    // The ids of calls name their turn, even in a conversation that was shortened.
    if prompts.is_empty() || asked.numbered {
        return Some(asked.model_turns);
    }
    let holds = |text: &str| prompts.iter().any(|prompt| text.contains(prompt.trim()));
    let exact = asked.users.iter().find(|(_, text)| holds(text));
    let words: Vec<String> = prompts.iter().map(|prompt| in_words(prompt)).collect();
    let found = exact.or_else(|| {
        asked.users.iter().find(|(_, text)| {
            let text = in_words(text);
            words.iter().any(|prompt| text.contains(prompt))
        })
    });
    found.map(|(before, _)| asked.model_turns.saturating_sub(*before))
}

/// Returns true if the user's messages since the model's last turn contain a prompt of the case, or the instructions of
/// a conversation that begins.
pub(super) fn hands_prompt(asked: &ModelRequest, prompts: &[String]) -> bool {
    holds_prompt(&asked.last, prompts) || (asked.model_turns == 0 && holds_prompt(&asked.preamble, prompts))
}

/// Returns true if a text contains a prompt of the case.
pub(super) fn holds_prompt(text: &str, prompts: &[String]) -> bool {
    if prompts.iter().any(|prompt| text.contains(prompt.trim())) {
        return true;
    }
    let words = in_words(text);
    prompts.iter().any(|prompt| words.contains(&in_words(prompt)))
}

/// The escaped characters of XML.
const ESCAPED: [&str; 6] = ["&lt;", "&gt;", "&amp;", "&quot;", "&apos;", "&#39;"];

/// Returns a text's words in lower case with single spaces: agents wrap prompts, escape them and change their
/// white space.
fn in_words(text: &str) -> String {
    let text = ESCAPED.iter().fold(Cow::Borrowed(text), |text, sign| {
        if text.contains(sign) { Cow::Owned(text.replace(sign, " ")) } else { text }
    });
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(str::to_lowercase).collect();
    format!(" {} ", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(users: &[(usize, &str)], model_turns: usize) -> ModelRequest {
        let users: Vec<(usize, String)> = users.iter().map(|(turns, text)| (*turns, (*text).to_owned())).collect();
        let opening = users.first().map(|(_, text)| text.clone()).unwrap_or_default();
        ModelRequest { preamble: opening.clone(), opening, users, model_turns, ..ModelRequest::default() }
    }

    #[test]
    fn turns_count_from_the_prompt() {
        let prompts = ["Fix the bug, please.".to_owned(), "Now test it.".to_owned()];
        for (users, model_turns, turns) in [
            (vec![(0, "Fix the bug, please.")], 0, Some(0)),
            (vec![(0, "<task>\nFix  the bug,\n please.</task>")], 0, Some(0)),
            (vec![(0, "<task>Fix the &quot;bug&quot;, please.</task>")], 0, Some(0)),
            // Turns that the agent wrote itself, or exchanged before the prompt, do not count.
            (vec![(0, "This is your context."), (1, "Fix the bug, please.")], 1, Some(0)),
            (vec![(0, "hi"), (1, "Fix the bug, please."), (2, "Now test it.")], 2, Some(1)),
            (vec![(0, "hi")], 0, None),
            (vec![(0, "hi")], 1, None),
            (vec![], 0, None),
        ] {
            assert_eq!(turns_since_prompt(&asked(&users, model_turns), &prompts), turns, "{users:?}");
        }
        // Without a case the prompts are unknown, and the id of a call is more reliable than a count.
        assert_eq!(turns_since_prompt(&asked(&[(0, "hi")], 3), &[]), Some(3));
        let numbered = ModelRequest { numbered: true, ..asked(&[(0, "in short")], 3) };
        assert_eq!(turns_since_prompt(&numbered, &prompts), Some(3));
    }

    #[test]
    fn a_request_for_a_title_is_told_by_its_own_words() {
        let prompts = ["Write a title for the chat page.".to_owned()];
        for (text, is_aside) in [
            ("Generate a short title for this conversation:\nWrite a title for the chat page.", true),
            ("You are a title generator. You output only a title.\nWrite a title for the chat page.", true),
            ("Write a title for the chat page.", false),
            ("You are a coding agent.\nWrite a title for the chat page.", false),
        ] {
            let asked = ModelRequest { preamble: text.to_owned(), ..ModelRequest::default() };
            assert_eq!(is_side_request(&asked, &prompts, &[]), is_aside, "{text}");
        }
        let quota = ModelRequest { most: Some(1), ..ModelRequest::default() };
        assert!(is_side_request(&quota, &prompts, &[]));
    }
}

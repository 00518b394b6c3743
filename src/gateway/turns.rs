//! Counts the model's turns in the conversation of a request.

use super::words::folder;
use super::{ModelRequest, ToolResult};

/// The items of a conversation up to the current request.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// The number of the model's turns.
    pub model_turns: usize,
    /// The results of calls.
    pub results: Vec<ToolResult>,
    /// The user's messages before the model's first turn.
    pub opening: String,
    /// The user's messages before the model's first turn, and the instructions.
    pub preamble: String,
    /// The user's messages since the model's last turn.
    pub last: String,
    users: Vec<(usize, String)>,
    numbered: bool,
    speaking: bool,
    begun: bool,
}

impl Conversation {
    /// Returns the request, as far as the conversation determines it.
    pub fn asked(self) -> ModelRequest {
        ModelRequest {
            model_turns: self.model_turns,
            results: self.results,
            folder: folder(&self.preamble),
            opening: self.opening,
            preamble: self.preamble,
            last: self.last,
            users: self.users,
            numbered: self.numbered,
            ..ModelRequest::default()
        }
    }

    /// Adds output of the model. Consecutive items of the model are one turn, and a call whose id contains its turn
    /// overrides the count: agents leave items out, add items, and put results between the calls of one turn.
    pub fn model<'a>(&mut self, calls: impl IntoIterator<Item = &'a str>) {
        if !self.speaking {
            self.model_turns += 1;
        }
        (self.speaking, self.begun) = (true, true);
        self.last.clear();
        for turn in calls.into_iter().filter_map(turn_of) {
            (self.model_turns, self.numbered) = (turn + 1, true);
        }
    }

    /// Adds a message of the user.
    pub fn user(&mut self, text: &str) {
        self.speaking = false;
        if !text.is_empty() {
            self.users.push((self.model_turns, text.to_owned()));
        }
        push(&mut self.last, text);
        if !self.begun {
            push(&mut self.opening, text);
            push(&mut self.preamble, text);
        }
    }

    /// Adds instructions of the agent.
    pub fn system(&mut self, text: &str) {
        if !self.begun {
            push(&mut self.preamble, text);
        }
    }

    /// Adds the result of a call. The id of a scripted call names its turn; other results belong to the model's last
    /// turn.
    pub fn result(&mut self, id: Option<&str>, text: String, failed: Option<bool>) {
        self.speaking = false;
        let named = id.and_then(turn_of);
        let turn = named.or(self.model_turns.checked_sub(1));
        let before = self.results.iter().filter(|result| result.turn == turn).count();
        let call = id.and_then(number_of).unwrap_or(before);
        self.results.push(ToolResult { turn, numbered: named.is_some(), call, text, failed });
    }
}

fn push(all: &mut String, text: &str) {
    if !all.is_empty() && !text.is_empty() {
        all.push('\n');
    }
    all.push_str(text);
}

const MARK: &str = "scripted_";

/// The number of turns above every script. A larger number is in no id that this server made.
const MAX_TURNS: usize = 1 << 24;

/// Returns the id of a call. The id contains the turn, so that the next request shows it.
pub(super) fn call_id(prefix: &str, sub_agent: Option<usize>, turn: usize, call: usize, again: usize) -> String {
    let whose = sub_agent.map(|number| format!("sub{number}_")).unwrap_or_default();
    let again = if again == 0 { String::new() } else { format!("_again{again}") };
    format!("{prefix}{MARK}{whose}{turn}_{call}{again}")
}

/// Returns the turn of a call with this id, if this server made the id.
pub(super) fn turn_of(id: &str) -> Option<usize> {
    // Turns are counted from this number on, so it must not be the largest.
    numbers(id)?.next()?.parse::<usize>().ok().filter(|turn| *turn < MAX_TURNS)
}

/// Returns the number of a call in its turn, if this server made the id.
fn number_of(id: &str) -> Option<usize> {
    numbers(id)?.nth(1)?.parse().ok()
}

fn numbers(id: &str) -> Option<impl Iterator<Item = &str>> {
    let (_, rest) = id.split_once(MARK)?;
    Some(rest.split('_').filter(|part| !part.starts_with("sub")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_its_turn() {
        assert_eq!(call_id("toolu_", None, 3, 1, 0), "toolu_scripted_3_1");
        assert_eq!(turn_of(&call_id("toolu_", None, 3, 1, 0)), Some(3));
        assert_eq!(turn_of(&call_id("call_", Some(2), 4, 0, 1)), Some(4));
        assert_eq!(number_of(&call_id("call_", Some(2), 4, 3, 1)), Some(3));
        assert_eq!(turn_of("call_abc"), None);
        assert_eq!(turn_of("call_scripted_x"), None);
        assert_eq!(turn_of(&format!("resp_scripted_{}_0", usize::MAX)), None);
    }

    #[test]
    fn turns_are_counted_however_the_items_stand() {
        let mut conversation = Conversation::default();
        conversation.system("be good");
        conversation.user("do it");
        conversation.model([]);
        conversation.model(["call_scripted_0_0"]);
        conversation.result(Some("call_scripted_0_0"), "one".to_owned(), None);
        conversation.model(["call_scripted_0_1"]);
        conversation.result(None, "two".to_owned(), Some(true));
        let result = |numbered, call, text: &str, failed| {
            let text = text.to_owned();
            ToolResult { turn: Some(0), numbered, call, text, failed }
        };
        assert_eq!(conversation.model_turns, 1);
        assert_eq!(conversation.results, [result(true, 0, "one", None), result(false, 1, "two", Some(true))]);
        conversation.model([]);
        conversation.user("and more");
        assert_eq!(conversation.model_turns, 2);
        assert_eq!(conversation.opening, "do it");
        assert_eq!(conversation.preamble, "be good\ndo it");
    }

    #[test]
    fn what_was_left_out_of_a_conversation_is_known_by_the_ids() {
        let mut conversation = Conversation::default();
        conversation.user("in short: three things were done");
        conversation.model(["toolu_scripted_6_0"]);
        conversation.result(Some("toolu_scripted_6_0"), String::new(), None);
        assert_eq!(conversation.model_turns, 7);
    }
}

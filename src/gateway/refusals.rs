//! Finds agents whose model did not answer: every request of the trial failed, or the one that the agent needed to go
//! on. Pure.

use std::collections::{HashSet, VecDeque};

use super::api::ModelAnswer;
use super::refused::{Answered, Outcome, Refused};
use super::request_place::{RequestKey, RequestPlace};
use crate::text::plural;

/// The minimum number of characters of a line by which a request is known to quote an answer.
const MIN_QUOTE_CHARS: usize = 40;

/// The maximum number of answers that broke off whose texts are kept.
const MAX_BROKEN_ANSWERS: usize = 100;

/// The requests of a trial that got no answer of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Requests of the task that offer tools.
    with_tools: Counts,
    /// Requests of the task that offer no tools.
    without_tools: Counts,
    /// Requests outside the task, such as one for a title.
    aside: Counts,
    /// True if a request of the task with tools was refused, and not for its content.
    lacks_tools: bool,
    /// The last refused request.
    last: Option<Refused>,
    /// The refused requests that the agent needed, and whose conversations were not answered afterwards.
    open: Vec<Open>,
    /// The requests that got a whole answer.
    known: HashSet<RequestKey>,
    /// True if the agent offers tools to its model.
    offers: bool,
    /// The texts of answers that broke off, with their requests, which were not answered yet.
    broken: Vec<(RequestKey, String)>,
    /// The texts of the last answers that broke off, each with the text of the answer to the same request afterwards.
    repeated: VecDeque<(String, String)>,
    main: MainConversation,
}

/// The numbers of requests of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    answered: u64,
    refused: u64,
}

impl Counts {
    fn plus(self, other: Self) -> Self {
        Self { answered: self.answered + other.answered, refused: self.refused + other.refused }
    }
}

/// A refused request that the agent needed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Open {
    refused: Refused,
    place: RequestPlace,
    /// True if the request belongs to the case's conversation.
    is_main: bool,
    /// True if the request continues a conversation that was answered before.
    continues: bool,
    /// The number of times that the agent made the request.
    times: u64,
}

/// The conversation with the case's prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct MainConversation {
    /// True if a request was answered.
    answered: bool,
    /// True if an answer called tools.
    called: bool,
    /// True if the last answer calls no tools.
    rests: bool,
    /// True if the request of that answer offered tools.
    offered: bool,
    /// The ids of its answers.
    ids: HashSet<String>,
    /// The text of the last answer, if the agent received it whole and it calls no tools.
    text: Option<String>,
    /// True if the last answer calls no tools, and the output limit of the model ended it.
    at_limit: bool,
    /// True if the last answer calls no tools, and a content filter of the service ended it.
    filtered: bool,
    /// The forms that its answers had to have.
    forms: HashSet<u64>,
    /// The longest line of the last answer without calls. A request that contains it belongs to the conversation:
    /// a conversation that was summarised begins with the summary, which is such an answer.
    quote: Option<String>,
}

impl Refusals {
    /// Adds a request that has ended.
    pub fn add(&mut self, outcome: Outcome) {
        let is_main = !outcome.aside && self.main.has(&outcome);
        self.offers |= !outcome.aside && outcome.place.offers;
        if !outcome.aside {
            self.note_broken(&outcome);
        }
        match outcome.answer.clone() {
            Ok(answered) => self.add_answered(answered, outcome, is_main),
            Err(refused) => self.add_refused(refused, outcome, is_main),
        }
    }

    /// Notes an answer that broke off, or an answer to the same request afterwards.
    fn note_broken(&mut self, outcome: &Outcome) {
        let Some(key) = outcome.place.key() else { return };
        if let Some(text) = &outcome.broken_text {
            if self.broken.len() < MAX_BROKEN_ANSWERS {
                self.broken.push((key, text.clone()));
            }
            return;
        }
        let Ok(Answered { answer, is_whole: true }) = &outcome.answer else { return };
        let (same, other): (Vec<_>, Vec<_>) = std::mem::take(&mut self.broken).into_iter().partition(|it| it.0 == key);
        self.broken = other;
        for (_, text) in same.into_iter().filter(|_| !answer.text.trim().is_empty()) {
            if self.repeated.len() == MAX_BROKEN_ANSWERS {
                self.repeated.pop_front();
            }
            self.repeated.push_back((text, answer.text.clone()));
        }
    }

    /// Returns true if the agent's final answer has a text of its model that broke off before the answer to the same request.
    pub fn is_broken_text_in(&self, answer: &str) -> bool {
        let answer = answer.trim();
        self.repeated.iter().any(|(broken, whole)| {
            let before = answer.strip_suffix(whole.trim()).map_or("", str::trim_end);
            // The agent may show earlier text in the same answer, or only a part of the text that broke off.
            !before.is_empty() && (before.ends_with(broken.trim()) || broken.trim().starts_with(before))
        })
    }

    fn add_answered(&mut self, answered: Answered, outcome: Outcome, is_main: bool) {
        self.counts(&outcome).answered += 1;
        if outcome.aside {
            return;
        }
        let place = outcome.place;
        if answered.is_whole {
            self.known.extend(place.key());
        }
        self.open.retain(|open| !open.is_ended_by(&place, is_main));
        let is_final = answered.is_whole && !answered.answer.calls && place.offers == self.offers;
        if is_final && !is_main {
            // The prompt may be in other words: then this may be the case's conversation.
            self.open.retain(|open| open.is_main);
        }
        if is_main {
            self.main.forms.extend(outcome.form);
            // Without tools, an agent that offers tools asks for titles and summaries.
            let goes_on = place.offers == self.offers;
            self.main.add(answered, goes_on, place.offers);
        }
    }

    fn add_refused(&mut self, refused: Refused, outcome: Outcome, is_main: bool) {
        self.counts(&outcome).refused += 1;
        let continues = outcome.place.continues(&self.known) || outcome.place.previous.is_some();
        let in_form = outcome.form.is_some_and(|form| self.main.forms.contains(&form));
        // Agents ask for titles and judgements in a form, too. The task has it if its conversation has, or goes on by it.
        let is_of_task = outcome.form.is_none() || in_form || outcome.hands_results || continues;
        let is_plain = !outcome.aside && !outcome.of_content && is_of_task;
        self.lacks_tools |= is_plain && outcome.place.offers;
        // A refusal explains more than a connection that the agent closed, and one of the task more than another.
        let is_of_less = outcome.aside && self.with_tools.refused + self.without_tools.refused > 0;
        let is_better = |last: &Refused| !refused.is_closed() && (last.is_closed() || !is_of_less);
        if self.last.as_ref().is_none_or(is_better) {
            self.last = Some(refused.clone());
        }
        let place = outcome.place;
        let hands = outcome.hands_results || outcome.hands_prompt;
        // An agent that calls tools hands over their results to go on, also if each answer has to have a form.
        let goes_on_in_form = in_form && !self.main.called;
        let is_needed = is_plain && (hands || (continues && (goes_on_in_form || !place.offers)));
        // One of several equal requests was answered.
        let is_answered = place.key().is_some_and(|key| self.known.contains(&key));
        if !is_needed || is_answered {
            return;
        }
        let same = self.open.iter().position(|open| open.place.key().is_some() && open.place.key() == place.key());
        let before = same.map(|at| self.open.remove(at));
        let times = before.as_ref().map_or(0, |open| open.times) + 1;
        let refused = match before {
            Some(open) if refused.is_closed() && !open.refused.is_closed() => open.refused,
            _ => refused,
        };
        self.open.push(Open { refused, place, is_main, continues, times });
    }

    /// Returns the request without which the agent could not do its task, and what happened in words. Returns `None` if
    /// the agent's model answered.
    pub fn decisive(&self) -> Option<(&Refused, String)> {
        if let (Some(last), Some(failed)) = (&self.last, self.all_refused()) {
            let requests = plural(failed, "request");
            let of_task = if self.answered() > 0 { " of the task" } else { "" };
            let text = format!("the gateway: the agent's model answered no request{of_task}");
            return Some((last, format!("{text} ({requests} failed); the last one: {}", last.why())));
        }
        let open = self.open.iter().rev().find(|open| self.is_decisive(open))?;
        let which =
            if open.is_main { "the last request of the conversation" } else { "a request with results of calls" };
        let text = format!("the gateway: the agent's model did not answer {which}: {}", open.refused.why());
        Some((&open.refused, text))
    }

    /// Returns true if requests failed, and none of the task was answered.
    pub fn are_all(&self) -> bool {
        self.all_refused().is_some()
    }

    /// Returns the number of failed requests if none of the task was answered. Two kinds of answers are none of the task: to a
    /// request whose text shows that it is aside, and to one without tools if the requests with tools were refused.
    fn all_refused(&self) -> Option<u64> {
        let (task, aside) = if self.lacks_tools {
            (self.with_tools, self.aside.plus(self.without_tools))
        } else {
            (self.with_tools.plus(self.without_tools), self.aside)
        };
        // If requests aside were answered, the service may refuse one of them and still serve the task.
        let failed = task.refused + if aside.answered == 0 { aside.refused } else { 0 };
        (task.answered == 0 && failed > 0).then_some(failed)
    }

    fn answered(&self) -> u64 {
        self.with_tools.answered + self.without_tools.answered + self.aside.answered
    }

    /// Returns the numbers of requests of this kind.
    fn counts(&mut self, outcome: &Outcome) -> &mut Counts {
        match (outcome.aside, outcome.place.offers) {
            (true, _) => &mut self.aside,
            (false, true) => &mut self.with_tools,
            (false, false) => &mut self.without_tools,
        }
    }

    /// Returns the text with which the model ended the case's conversation. Returns `None` if the agent did not receive it
    /// whole, or made a request afterwards that was not answered.
    pub fn last_answer(&self) -> Option<&str> {
        let is_over = self.main.offered == self.offers && !self.open.iter().any(|open| open.is_main);
        self.main.text.as_deref().filter(|_| is_over)
    }

    /// Returns true if the output limit of the model ended the last answer of the case's conversation. Without tools, requests
    /// for titles look like the conversation.
    pub fn ended_at_limit(&self) -> bool {
        self.offers && self.main.at_limit && self.last_answer().is_some()
    }

    /// Returns true if a content filter of the service ended the last answer of the case's conversation. Without tools, requests
    /// for titles look like the conversation.
    pub fn ended_by_filter(&self) -> bool {
        self.offers && self.main.filtered && self.last_answer().is_some()
    }

    fn is_decisive(&self, open: &Open) -> bool {
        // An agent that ends closes its connections, and so does one that makes two requests at once for speed.
        let is_refused = !open.refused.is_closed() || open.times > 1;
        let is_agents = if self.offers {
            open.place.offers
        } else {
            // The first request of the conversation and one for its title look alike.
            open.is_main && (open.continues || !self.main.answered)
        };
        // An agent that has its whole answer does not need those of its sub-agents, whose tasks may quote the prompt.
        let rests = self.main.rests && self.main.offered == self.offers;
        is_refused && is_agents && (!rests || (open.is_main && open.continues))
    }
}

impl Open {
    /// Returns true if an answer to a request at this place shows that the agent could go on.
    fn is_ended_by(&self, place: &RequestPlace, is_main: bool) -> bool {
        self.place.is_like(place) && (is_main || (!self.is_main && self.place.begins_as(place)))
    }
}

impl MainConversation {
    /// Returns true if a request belongs to the conversation.
    fn has(&self, outcome: &Outcome) -> bool {
        outcome.holds_prompt
            || outcome.place.previous.as_ref().is_some_and(|id| self.ids.contains(id))
            || self.quote.as_ref().is_some_and(|quote| outcome.texts.contains(quote))
    }

    /// Adds an answer to a request that offered tools or not. `goes_on` is true if the agent works with it.
    fn add(&mut self, answered: Answered, goes_on: bool, offers: bool) {
        let Answered { answer: ModelAnswer { id, text, calls, finished, at_limit, filtered }, is_whole } = answered;
        self.answered = true;
        self.called |= calls;
        if !id.is_empty() {
            self.ids.insert(id);
        }
        if goes_on {
            (self.rests, self.offered) = (!calls && (finished || is_whole), offers);
            self.text = (!calls && finished && is_whole).then(|| text.clone());
            self.at_limit = !calls && at_limit;
            self.filtered = !calls && filtered;
        }
        let longest = text.lines().map(str::trim).max_by_key(|line| line.len());
        if let Some(line) = longest.filter(|line| !calls && line.chars().count() >= MIN_QUOTE_CHARS) {
            self.quote = Some(line.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::refused::{CaseTexts, outcome};
    use super::*;
    use crate::secrets::Masker;

    /// Returns the finding after requests. Each ends with `429`, `closed`, `broken` (an answer that broke off), `calls` (an
    /// answer that calls a tool), or an answer with the given text.
    fn after(lines: &[(&Value, &str)]) -> Option<String> {
        refusals_of(lines).decisive().map(|(_, text)| text)
    }

    fn refusals_of(lines: &[(&Value, &str)]) -> Refusals {
        let case = CaseTexts { prompts: vec!["Do it.".to_owned()], ..CaseTexts::default() };
        let mut refusals = Refusals::default();
        for (request, end) in lines {
            let mut line = json!({"n": 1, "at_ms": 0, "api": "openai-chat", "method": "POST",
                "path": "/v1/chat/completions", "request": request, "response": {}, "source": "upstream"});
            match *end {
                "closed" => line["error"] = json!({"kind": "closed"}),
                "429" => {
                    line["status"] = json!(429);
                    line["error"] = json!({"kind": "service"});
                }
                "broken" => {
                    line["status"] = json!(200);
                    line["error"] = json!({"kind": "service"});
                    line["response"] = json!({"choices": [{"message": {"content": "It goes on and"}}]});
                }
                end => {
                    let (message, reason) = match end {
                        "calls" => (json!({"content": null, "tool_calls": [{"id": "c1"}]}), "tool_calls"),
                        "cut" => (json!({"content": "It goes on and"}), "length"),
                        "filtered" => (json!({"content": "It goes on"}), "content_filter"),
                        text => (json!({"content": text}), "stop"),
                    };
                    line["status"] = json!(200);
                    line["response"] = json!({"choices": [{"message": message, "finish_reason": reason}]});
                }
            }
            let exchange = serde_json::from_value(line).unwrap();
            refusals.add(outcome(&exchange, &case, &Masker::default()).unwrap());
        }
        refusals
    }

    fn message(role: &str, content: &str) -> Value {
        json!({"role": role, "content": content})
    }

    fn with_tools(messages: &[Value]) -> Value {
        json!({"messages": messages, "tools": [{"type": "function", "function": {"name": "sh"}}]})
    }

    fn results_after(first: Value) -> Vec<Value> {
        let call = json!({"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "sh"}}]});
        vec![first, call, json!({"role": "tool", "tool_call_id": "c1", "content": "ok"})]
    }

    #[test]
    fn the_last_answer_is_the_whole_one_that_ends_the_conversation() {
        let first = with_tools(&[message("user", "Do it.")]);
        let second = with_tools(&results_after(message("user", "Do it.")));
        let title = json!({"messages": [message("system", "Name it"), message("user", "Do it.")]});
        for (lines, answer) in [
            (vec![(&first, "Done.")], Some("Done.")),
            (vec![(&first, "calls"), (&second, "Done."), (&title, "A name")], Some("Done.")),
            (vec![(&first, "calls")], None),
            (vec![(&first, "Done."), (&second, "calls")], None),
            (vec![(&first, "calls"), (&second, "429")], None),
            (vec![(&title, "A name"), (&first, "429")], None),
        ] {
            assert_eq!(refusals_of(&lines).last_answer(), answer, "{lines:?}");
        }
    }

    #[test]
    fn the_output_limit_ended_the_conversation_if_it_ended_the_last_answer() {
        let first = with_tools(&[message("user", "Do it.")]);
        let second = with_tools(&results_after(message("user", "Do it.")));
        let bare = json!({"messages": [message("user", "Do it.")]});
        for (lines, is_at_limit) in [
            (vec![(&first, "cut")], true),
            (vec![(&first, "calls"), (&second, "cut"), (&bare, "A name")], true),
            (vec![(&first, "cut"), (&second, "Done.")], false),
            (vec![(&first, "Done."), (&bare, "cut")], false),
            (vec![(&first, "cut"), (&second, "429")], false),
            // It may be a request for a title.
            (vec![(&bare, "cut")], false),
        ] {
            assert_eq!(refusals_of(&lines).ended_at_limit(), is_at_limit, "{lines:?}");
        }
    }

    #[test]
    fn a_text_that_broke_off_is_found_before_the_answer_to_the_same_request() {
        let first = with_tools(&[message("user", "Do it.")]);
        let second = with_tools(&results_after(message("user", "Do it.")));
        let repeated = vec![(&first, "broken"), (&first, "Done.")];
        for (lines, answer, is_found) in [
            (repeated.clone(), "It goes on andDone.", true),
            (repeated.clone(), "I begin.\n\nIt goes on and\n\nDone.\n", true),
            (repeated.clone(), "It goesDone.", true),
            (repeated.clone(), "Done.", false),
            (repeated, "I begin.\n\nDone.", false),
            (
                vec![(&first, "broken"), (&first, "broken"), (&first, "Done.")],
                "It goes on andIt goes on andDone.",
                true,
            ),
            (vec![(&first, "broken"), (&second, "Done.")], "It goes on andDone.", false),
            (vec![(&first, "429"), (&first, "Done.")], "It goes on andDone.", false),
        ] {
            assert_eq!(refusals_of(&lines).is_broken_text_in(answer), is_found, "{lines:?} {answer}");
        }
    }

    #[test]
    fn a_content_filter_ended_the_conversation_if_it_ended_the_last_answer() {
        let first = with_tools(&[message("user", "Do it.")]);
        let bare = json!({"messages": [message("user", "Do it.")]});
        for (lines, is_filtered) in [
            (vec![(&first, "filtered"), (&bare, "A name")], true),
            (vec![(&first, "filtered"), (&first, "Done.")], false),
            (vec![(&first, "Done."), (&bare, "filtered")], false),
            (vec![(&bare, "filtered")], false),
        ] {
            assert_eq!(refusals_of(&lines).ended_by_filter(), is_filtered, "{lines:?}");
        }
    }

    #[test]
    fn only_an_answer_in_the_same_conversation_ends_a_refusal() {
        let first = with_tools(&[message("user", "Do it.")]);
        let second = with_tools(&results_after(message("user", "Do it.")));
        let title = json!({"messages": [message("system", "Name it"), message("user", "Do it.")]});
        let sub = with_tools(&[message("user", "Look around.")]);
        let sub_second = with_tools(&results_after(message("user", "Look around.")));
        let summary = "The user wants that it is done; so far, one file was changed.";
        let mut long = results_after(message("user", "Do it."));
        long.push(message("user", "Summarise."));
        let compaction = json!({"messages": long});
        let quoting = with_tools(&[message("user", "Help with: Do it.")]);
        let (reworded, reworded_second) =
            (with_tools(&[message("user", "Act.")]), with_tools(&results_after(message("user", "Act."))));
        let next =
            with_tools(&[message("user", "Do it."), message("assistant", "Done."), message("user", "Do it again.")]);
        let shorter = with_tools(&results_after(message("user", &format!("<summary>\n{summary}\n</summary>"))));
        for (lines, is_decisive) in [
            (vec![(&first, "429")], true),
            (vec![(&first, "429"), (&title, "A name")], true),
            (vec![(&title, "A name"), (&first, "429")], true),
            (vec![(&first, "calls"), (&second, "429"), (&sub, "Seen.")], true),
            (vec![(&first, "calls"), (&second, "429"), (&second, "Done.")], false),
            (vec![(&first, "calls"), (&second, "429"), (&compaction, summary)], true),
            (vec![(&first, "calls"), (&second, "429"), (&compaction, summary), (&shorter, "Done.")], false),
            (vec![(&first, "calls"), (&compaction, summary), (&shorter, "429")], true),
            // One of two equal requests was answered.
            (vec![(&first, "Done."), (&first, "429")], false),
            (vec![(&first, "429"), (&first, "Done.")], false),
            // A sub-agent fails.
            (vec![(&first, "calls"), (&sub, "calls"), (&second, "Done."), (&sub_second, "429")], false),
            (vec![(&first, "calls"), (&sub, "calls"), (&sub_second, "429"), (&second, "Done.")], false),
            (vec![(&first, "calls"), (&sub, "calls"), (&sub_second, "429")], true),
            (vec![(&first, "calls"), (&sub, "calls"), (&sub_second, "429"), (&sub_second, "Seen.")], false),
            // A sub-agent whose task quotes the prompt, and one in a conversation with a prompt in other words.
            (vec![(&first, "calls"), (&second, "Done."), (&quoting, "429")], false),
            (vec![(&reworded, "calls"), (&sub, "calls"), (&sub_second, "429"), (&reworded_second, "Done.")], false),
            // The next prompt of the case.
            (vec![(&first, "Done."), (&next, "429")], true),
            (vec![(&title, "429"), (&first, "Done.")], false),
            (vec![(&first, "Done."), (&title, "429")], false),
        ] {
            assert_eq!(after(&lines).is_some(), is_decisive, "{lines:?}");
        }
        let of_sub = after(&[(&first, "calls"), (&sub, "calls"), (&sub_second, "429")]).unwrap();
        assert!(!of_sub.contains("of the conversation"), "{of_sub}");
    }

    #[test]
    fn a_form_of_the_answer_is_no_sign_of_a_title_if_the_conversation_has_it() {
        let formed = |messages: &[Value], key: &str, value: Value| {
            let mut request = if key == "tool_choice" { with_tools(messages) } else { json!({"messages": messages}) };
            request[key] = value;
            request
        };
        let first = [message("user", "Do it.")];
        let results = results_after(message("user", "Do it."));
        let next = [message("user", "Do it."), message("assistant", "ls"), message("user", "a.txt")];
        let required = |messages: &[Value]| formed(messages, "tool_choice", json!("required"));
        let named = |messages: &[Value]| {
            formed(messages, "tool_choice", json!({"type": "function", "function": {"name": "sh"}}))
        };
        let object = |messages: &[Value]| formed(messages, "response_format", json!({"type": "json_object"}));
        let plain = with_tools(&first);
        let mut note = results.clone();
        note.extend([message("assistant", "Done."), message("user", "Write one line for the log.")]);
        let formed_with_tools = |messages: &[Value]| {
            let mut request = with_tools(messages);
            request["response_format"] = json!({"type": "json_object"});
            request
        };
        for (lines, is_decisive) in [
            // A request after the task is done, by an agent whose answers all have a form.
            (vec![(plain.clone(), "calls"), (with_tools(&results), "Done."), (with_tools(&note), "429")], false),
            (vec![(required(&first), "calls"), (required(&results), "Done."), (required(&note), "429")], false),
            (
                vec![
                    (formed_with_tools(&first), "calls"),
                    (formed_with_tools(&results), "Done."),
                    (formed_with_tools(&note), "429"),
                ],
                false,
            ),
            (vec![(required(&first), "calls"), (required(&results), "429")], true),
            (vec![(plain.clone(), "calls"), (required(&results), "429")], true),
            (vec![(named(&first), "ls"), (named(&next), "429")], true),
            (vec![(object(&first), "ls"), (object(&next), "429")], true),
            (vec![(required(&first), "calls"), (required(&results), "429"), (required(&results), "Done.")], false),
            // Titles.
            (vec![(plain.clone(), "Done."), (object(&first), "429")], false),
            (vec![(plain.clone(), "calls"), (object(&first), "429")], false),
            (vec![(object(&first), "A name"), (plain.clone(), "calls"), (object(&first), "429")], false),
            (vec![(plain.clone(), "Done."), (object(&next), "429")], false),
        ] {
            let lines: Vec<(&Value, &str)> = lines.iter().map(|(request, end)| (request, *end)).collect();
            assert_eq!(after(&lines).is_some(), is_decisive, "{lines:?}");
        }
    }

    #[test]
    fn an_answered_title_is_no_answer_to_the_task() {
        let first = with_tools(&[message("user", "Do it.")]);
        let second = with_tools(&results_after(message("user", "Do it.")));
        let title = json!({"messages": [message("system", "You are a title generator."), message("user", "Do it.")]});
        let bare = json!({"messages": [message("system", "Name it"), message("user", "Do it.")]});
        for (lines, are_all) in [
            (vec![(&title, "A name"), (&first, "429")], true),
            (vec![(&first, "429"), (&title, "A name")], true),
            (vec![(&bare, "A name"), (&first, "429"), (&first, "429")], true),
            (vec![(&title, "429")], true),
            (vec![(&title, "A name"), (&title, "429")], false),
            (vec![(&title, "429"), (&first, "Done.")], false),
            (vec![(&first, "calls"), (&second, "429")], false),
            (vec![(&title, "A name"), (&first, "calls"), (&second, "429")], false),
            (vec![(&bare, "ls"), (&bare, "429")], false),
        ] {
            assert_eq!(refusals_of(&lines).are_all(), are_all, "{lines:?}");
        }
        let text = after(&[(&title, "A name"), (&first, "429")]).unwrap();
        assert!(text.contains("answered no request of the task (1 request failed)"), "{text}");
    }

    #[test]
    fn a_connection_that_the_agent_closed_counts_if_it_asked_again() {
        let first = with_tools(&[message("user", "Do it.")]);
        let second = with_tools(&results_after(message("user", "Do it.")));
        for (ends, is_decisive) in [
            (vec!["closed"], false),
            (vec!["closed", "closed"], true),
            (vec!["429", "closed"], true),
            (vec!["closed", "closed", "Done."], false),
            (vec!["Done.", "closed", "closed"], false),
        ] {
            let mut lines = vec![(&first, "calls")];
            lines.extend(ends.iter().map(|end| (&second, *end)));
            assert_eq!(after(&lines).is_some(), is_decisive, "{ends:?}");
        }
    }

    #[test]
    fn an_agent_without_tools_needs_the_prompt_and_the_next_step() {
        let first = json!({"messages": [message("user", "Do it.")]});
        let steps = [message("user", "Do it."), message("assistant", "ls"), message("user", "a.txt")];
        let second = json!({"messages": steps});
        let other = json!({"messages": [message("user", "hi")]});
        let title = json!({"messages": [message("system", "Name it"), message("user", "Do it.")]});
        for (lines, is_decisive) in [
            (vec![(&other, "Hello."), (&first, "429")], true),
            (vec![(&first, "ls"), (&second, "429")], true),
            (vec![(&first, "ls"), (&second, "429"), (&second, "Done.")], false),
            (vec![(&title, "429"), (&first, "Done.")], false),
            (vec![(&first, "Done."), (&other, "429")], false),
        ] {
            assert_eq!(after(&lines).is_some(), is_decisive, "{lines:?}");
        }
    }
}

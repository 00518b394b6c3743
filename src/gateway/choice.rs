//! Chooses the alternative of a scripted turn by the results of earlier tool calls. Pure.

use super::script::{Turn, When};
use super::{ModelRequest, ToolResult};
use crate::judgement::Judgement;
use crate::text::{first_chars, marked};

/// The maximum number of results in a message.
const MAX_SHOWN_RESULTS: usize = 3;

/// The maximum number of characters of a result in a message.
const MAX_RESULT_CHARS: usize = 200;

/// The alternative that is played.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Choice<'a> {
    /// The alternative, or the turn itself if it has no others.
    pub(super) turn: &'a Turn,
    /// The number of the alternative, from 0.
    pub(super) alternative: Option<usize>,
}

/// Returns the results in a conversation that are the results of turns of the script. `number` is the number of the turn
/// that the conversation has reached: the agent's own exchanges before the prompt are not counted.
pub(super) fn results(asked: &ModelRequest, number: usize) -> Vec<ToolResult> {
    let before = asked.model_turns.saturating_sub(number);
    let of_script = asked.results.iter().map(|result| {
        let counted = result.turn.and_then(|turn| turn.checked_sub(before));
        ToolResult { turn: if result.numbered { result.turn } else { counted }, ..result.clone() }
    });
    of_script.filter(|result| result.turn.is_some()).collect()
}

/// Returns the first alternative of a turn whose condition holds.
///
/// # Errors
/// Returns the reason why no alternative can be chosen.
pub(super) fn choose<'a>(turn: &'a Turn, number: usize, results: &[ToolResult]) -> Result<Choice<'a>, String> {
    for (index, alternative) in turn.alternatives().iter().enumerate() {
        let chosen = Choice { turn: alternative, alternative: turn.either.is_some().then_some(index) };
        let Some(when) = &alternative.when else { return Ok(chosen) };
        match when.holds(number, results) {
            Judgement::True => return Ok(chosen),
            Judgement::False => {}
            Judgement::Unknown => {
                return Err("the agent's API does not state whether a call failed, so `status` cannot be decided; \
                            use `result`"
                    .to_owned());
            }
        }
    }
    let what = if turn.either.is_some() { "no alternative fits" } else { "its `when` does not fit" };
    Err(format!("{what} the results of the calls: {}", shown(turn, number, results)))
}

/// Describes the results that the conditions of a turn look at.
fn shown(turn: &Turn, number: usize, results: &[ToolResult]) -> String {
    let conditions: Vec<&When> = turn.alternatives().iter().filter_map(|turn| turn.when.as_ref()).collect();
    let looked_at = |result: &&ToolResult| {
        conditions.iter().any(|when| when.looked_at(number, std::slice::from_ref(*result)).next().is_some())
    };
    let all: Vec<&ToolResult> = results.iter().filter(looked_at).collect();
    // The newest results say most about what happened.
    let first = all.len().saturating_sub(MAX_SHOWN_RESULTS);
    let texts: Vec<String> = all.iter().skip(first).copied().map(result_shown).collect();
    match (texts.is_empty(), first) {
        (true, _) => "there are none".to_owned(),
        (false, 0) => texts.join("; "),
        (false, more) => format!("{} earlier ones; {}", more, texts.join("; ")),
    }
}

fn result_shown(result: &ToolResult) -> String {
    let status = match result.failed {
        Some(true) => " (error)",
        Some(false) => " (ok)",
        None => "",
    };
    let text = marked(first_chars(&result.text, MAX_RESULT_CHARS), &result.text);
    format!("call {} of turn {}{status}: {text:?}", result.call, result.turn.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_before_the_prompt_are_no_results_of_the_script() {
        let result = |turn, numbered| ToolResult { turn: Some(turn), numbered, ..ToolResult::default() };
        // The agent wrote one turn of the model itself, before the prompt.
        let asked = ModelRequest {
            model_turns: 3,
            results: vec![result(0, false), result(2, false)],
            ..ModelRequest::default()
        };
        let turns = |asked: &ModelRequest, number| results(asked, number).iter().map(|it| it.turn).collect::<Vec<_>>();
        assert_eq!(turns(&asked, 2), [Some(1)]);
        assert_eq!(turns(&asked, 3), [Some(0), Some(2)]);
        let asked = ModelRequest { model_turns: 3, results: vec![result(2, true)], ..ModelRequest::default() };
        assert_eq!(turns(&asked, 2), [Some(2)]);
    }
}

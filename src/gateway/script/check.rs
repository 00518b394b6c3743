//! Checks of a script beyond its form: turns that are never played, and conditions that never hold.

use std::path::Path;

use super::{Fault, HttpError, Turn, When};
use crate::gateway::script::when::Of;
use crate::yaml::{Step, StepPart, YamlError};

/// Adds the errors of a list of turns. `steps` is the place of the map that has the key `turns`.
pub(super) fn turns(path: &Path, text: &str, steps: &[Step<'_>], turns: &[Turn], wrong: &mut Vec<YamlError>) {
    let mut check = Check { path, text, steps, turns, wrong };
    if turns.is_empty() {
        let help = "write at least one, such as `- text: Hello.`";
        check.add(&[Step::Key("turns")], "there are no turns".to_owned(), help);
    }
    for (number, turn) in turns.iter().enumerate() {
        check.turn(number, turn);
    }
}

/// A list of turns that is checked.
struct Check<'a> {
    path: &'a Path,
    text: &'a str,
    steps: &'a [Step<'a>],
    turns: &'a [Turn],
    wrong: &'a mut Vec<YamlError>,
}

/// The place of a turn, below the map that has the key `turns`.
type TurnPath = Vec<Step<'static>>;

impl Check<'_> {
    fn add(&mut self, more: &[Step<'static>], message: String, help: &str) {
        let steps: Vec<Step<'_>> = self.steps.iter().copied().chain(more.iter().copied()).collect();
        let error = YamlError::at_steps(self.path, self.text, &steps, StepPart::Value, message);
        self.wrong.push(error.with_help(help));
    }

    fn turn(&mut self, number: usize, turn: &Turn) {
        let at: TurnPath = vec![Step::Key("turns"), Step::Item(number)];
        let Some(alternatives) = &turn.either else { return self.answer(&at, number, turn) };
        let either = below(&at, Step::Key("either"));
        if *turn != (Turn { either: turn.either.clone(), ..Turn::default() }) {
            let message = "a turn with `either` has no other keys".to_owned();
            self.add(&at, message, "write the other keys in the alternatives");
        }
        if alternatives.is_empty() {
            let help = "write at least one, such as `- when: {result: passed}`";
            self.add(&either, "there are no alternatives".to_owned(), help);
        }
        for (index, alternative) in alternatives.iter().enumerate() {
            let at = below(&either, Step::Item(index));
            let earlier = alternatives.get(..index).unwrap_or_default();
            if earlier.iter().any(|earlier| earlier.when.is_none()) {
                let message = "the alternative is never played, because one before it has no `when`".to_owned();
                self.add(&at, message, "move the alternative without `when` to the end");
            } else if alternative.when.is_some() && earlier.iter().any(|earlier| earlier.when == alternative.when) {
                let message = "the alternative is never played, because one before it has the same `when`".to_owned();
                self.add(&at, message, "write another condition, or remove the alternative");
            }
            if alternative.either.is_some() {
                let message = "an alternative has no alternatives".to_owned();
                self.add(&below(&at, Step::Key("either")), message, "write all alternatives in one list");
            } else {
                self.answer(&at, number, alternative);
            }
        }
    }

    /// Checks one answer: a turn or an alternative.
    fn answer(&mut self, at: &TurnPath, number: usize, turn: &Turn) {
        if let Some(when) = &turn.when {
            self.when(&below(at, Step::Key("when")), number, when);
        }
        let replaced = matches!(turn.fault, Some(Fault::Empty | Fault::HttpError(_))) && turn.fault_times.is_none();
        match (turn.has_content(), replaced) {
            (false, false) if !matches!(turn.fault, Some(Fault::Refusal | Fault::ContentFilter)) => self.add(
                at,
                "the turn has neither a text nor calls".to_owned(),
                "write `text`, `thinking` or `calls`, or `fault: empty` for an empty answer",
            ),
            (true, true) => self.add(
                &below(at, Step::Key("fault")),
                "the turn's content is never played, because this fault always replaces it".to_owned(),
                "remove the rest of the turn, or limit the fault with `fault-times`",
            ),
            _ => {}
        }
        self.calls(&below(at, Step::Key("calls")), turn);
        if turn.usage.is_some_and(|usage| usage.thought > usage.output) {
            let message = "`thought` is greater than `output`, which includes it".to_owned();
            self.add(&below(at, Step::Key("usage")), message, "write an `output` that includes the thought tokens");
        }
        self.fault(at, turn);
    }

    fn calls(&mut self, at: &TurnPath, turn: &Turn) {
        for (number, call) in turn.calls.iter().enumerate() {
            let at = below(at, Step::Item(number));
            let kinds = call.named().count();
            if kinds != 1 {
                let what = if kinds == 0 { "no kind" } else { "several kinds" };
                let help = "write one of `write`, `read`, `edit`, `execute`, `search`, `ask` and `tool` for each call";
                self.add(&at, format!("the call has {what}"), help);
            } else if call.input.is_some() && call.tool.is_none() {
                let message = "`input` is only for calls with `tool`".to_owned();
                self.add(&at, message, "write the settings of other calls below their kind");
            }
        }
    }

    fn fault(&mut self, at: &TurnPath, turn: &Turn) {
        let [fault, times] = ["fault", "fault-times"].map(|key| below(at, Step::Key(key)));
        if let Some(Fault::HttpError(HttpError { status, .. })) = &turn.fault
            && !(400..600).contains(status)
        {
            self.add(&fault, format!("{status} is not an error status"), "write a status from 400 to 599");
        }
        let own_times = match &turn.fault {
            Some(Fault::RateLimit(limit)) => limit.times,
            _ => None,
        };
        if own_times == Some(0) {
            self.add(&fault, "a rate limit with `times: 0` never occurs".to_owned(), "remove the fault");
        }
        match (turn.fault_times, &turn.fault) {
            (Some(_), None) => {
                self.add(&times, "`fault-times` has no effect without `fault`".to_owned(), "write a `fault`");
            }
            (Some(0), Some(_)) => {
                self.add(&times, "a fault with `fault-times: 0` never occurs".to_owned(), "remove the fault");
            }
            (Some(_), Some(_)) if own_times.is_some() => {
                let message = "the rate limit has both `times` and `fault-times`".to_owned();
                self.add(&times, message, "write only one of them");
            }
            _ => {}
        }
    }

    /// Checks that the condition of the turn with this number can hold: that the turns it looks at come before and make
    /// such calls.
    fn when(&mut self, at: &TurnPath, number: usize, when: &When) {
        if !when.has_content() {
            let help = "write `result: REGEX`, `status: ok` or `status: error`";
            self.add(at, "the condition has neither `result` nor `status`".to_owned(), help);
        }
        if number == 0 {
            let message = "the condition never holds, because there are no results before the first turn".to_owned();
            return self.add(at, message, "remove `when`");
        }
        let (turns, none) = match when.of {
            Of::Last => (self.turns.get(number - 1..number), format!("turn {} makes no", number - 1)),
            Of::Any => (self.turns.get(..number), "no earlier turn makes a".to_owned()),
            Of::Turn(turn) if turn >= number => {
                let message = format!("turn {turn} does not come before turn {number}; turns are numbered from 0");
                return self.add(&below(at, Step::Key("of")), message, "write the number of an earlier turn");
            }
            Of::Turn(turn) => (self.turns.get(turn..=turn), format!("turn {turn} makes no")),
        };
        let calls = turns.unwrap_or_default().iter().map(Turn::most_calls).max().unwrap_or(0);
        if calls == 0 {
            let message = format!("the condition never holds, because {none} call");
            let help = "write `of` with the number of a turn that makes calls, or `of: any`";
            self.add(at, message, help);
        } else if let Some(call) = when.call.filter(|call| *call >= calls) {
            let message = format!("the condition never holds, because {none} call {call}; calls are numbered from 0");
            self.add(&below(at, Step::Key("call")), message, "write the number of a call of that turn");
        }
    }
}

fn below(at: &TurnPath, step: Step<'static>) -> TurnPath {
    at.iter().copied().chain([step]).collect()
}

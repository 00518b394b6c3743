//! Token counts: converts an agent's reports to the trace's definition of input and output.

use serde_json::Value;

use crate::harness::{LeftOut, UsageConvention};
use crate::trace::recorder::Recorder;
use crate::trace::usage::{Measure, SessionActivity};
use crate::trace::{NoticeCode, Usage, UsageScope};

/// Counts as an agent reports them. It is not yet determined whether the input includes cached tokens, and the output
/// thoughts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Input tokens.
    pub input: Option<u64>,
    /// Output tokens.
    pub output: Option<u64>,
    /// Tokens of thought.
    pub thought: Option<u64>,
    /// Tokens read from the cache.
    pub cache_read: Option<u64>,
    /// Tokens written to the cache.
    pub cache_write: Option<u64>,
    /// The agent's own sum.
    pub total: Option<u64>,
}

const INPUT: &[&str] = &["inputTokens", "input_tokens", "promptTokens", "prompt_tokens"];
const OUTPUT: &[&str] = &["outputTokens", "output_tokens", "completionTokens", "completion_tokens"];
const THOUGHT: &[&str] =
    &["thoughtTokens", "thought_tokens", "reasoningOutputTokens", "reasoning_output_tokens", "reasoningTokens"];
const CACHE_READ: &[&str] = &[
    "cachedReadTokens",
    "cached_read_tokens",
    "cachedInputTokens",
    "cached_input_tokens",
    "cacheReadTokens",
    "cache_read_tokens",
    "cachedTokens",
    "cached_tokens",
];
const CACHE_WRITE: &[&str] = &[
    "cachedWriteTokens",
    "cached_write_tokens",
    "cacheWriteInputTokens",
    "cache_write_input_tokens",
    "cacheWriteTokens",
    "cache_write_tokens",
];
const TOTAL: &[&str] = &["totalTokens", "total_tokens"];

impl Figures {
    /// Reads a report in any of the spellings that agents use. Returns `None` if the report holds no count.
    pub fn read(report: &Value) -> Option<Self> {
        let count = |keys: &[&str]| keys.iter().find_map(|key| report.get(*key).and_then(count));
        let figures = Self {
            input: count(INPUT),
            output: count(OUTPUT),
            thought: count(THOUGHT),
            cache_read: count(CACHE_READ),
            cache_write: count(CACHE_WRITE),
            total: count(TOTAL),
        };
        (figures != Self::default()).then_some(figures)
    }

    /// Returns the sum of the usage by model, or `None` if there is none, or a count of it cannot be read. The bridge to Claude
    /// Code always reports 0 thought tokens, which it does not know.
    pub fn of_models(quota: &Value) -> Option<Self> {
        let list = quota.get("model_usage")?.as_array()?;
        let of_model = |model: &Value| Self::read(model.get("token_count")?);
        let all: Vec<Self> = list.iter().map(of_model).collect::<Option<_>>()?;
        let sum = all.into_iter().reduce(|one, other| one.plus(&other))?;
        Some(Self { thought: None, ..sum })
    }

    /// Returns the sum of two reports. A count that one of them lacks is unknown.
    fn plus(&self, other: &Self) -> Self {
        let add = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
        Self {
            input: add(self.input, other.input),
            output: add(self.output, other.output),
            thought: add(self.thought, other.thought),
            cache_read: add(self.cache_read, other.cache_read),
            cache_write: add(self.cache_write, other.cache_write),
            total: add(self.total, other.total),
        }
    }

    /// Returns true if the report has more tokens than another one.
    fn exceeds(&self, other: &Self) -> bool {
        self.total.zip(other.total).is_some_and(|(one, other)| one > other)
    }

    /// Converts the report to the trace's terms. The agent's own sum, or else the manifest, shows which tokens a count
    /// includes. If neither does, the figure is absent.
    pub fn as_usage(&self, scope: UsageScope, convention: &UsageConvention) -> Usage {
        let cached = self.cache_read.unwrap_or(0).saturating_add(self.cache_write.unwrap_or(0));
        let thoughts = self.thought.unwrap_or(0);
        let (cache_beside, thoughts_beside) = self.arithmetic(cached, thoughts, convention);
        let mut usage = Usage::of(scope);
        usage.cache_read_tokens = self.cache_read;
        usage.cache_write_tokens = self.cache_write;
        usage.thought_tokens = self.thought;
        let has_cache = self.cache_read.is_some() || self.cache_write.is_some();
        usage.input_tokens = match (self.input, cache_beside) {
            (Some(input), Some(true)) => Some(input),
            (Some(input), Some(false)) if has_cache => input.checked_sub(cached),
            // The count includes cached tokens, whose number is unknown.
            (Some(_), Some(false)) => None,
            (Some(input), None) if cached == 0 => Some(input),
            (Some(_), None) | (None, _) => None,
        };
        usage.output_tokens = match (self.output, thoughts_beside) {
            (Some(output), Some(false)) => Some(output),
            (Some(output), Some(true)) => self.thought.map(|thoughts| output.saturating_add(thoughts)),
            (Some(output), None) if thoughts == 0 => Some(output),
            (Some(_), None) | (None, _) => None,
        };
        usage.total_tokens = self.total.or_else(|| self.sum(&usage, cache_beside));
        // Thoughts that are counted apart from the output and are not reported are missing in a sum of the other
        // counts.
        let no_thoughts = thoughts_beside == Some(true) && self.thought.is_none() && self.total.is_none();
        if self.contradicts(cache_beside) {
            usage.at_least([Measure::TotalTokens]);
        }
        if no_thoughts || convention.leaves_out.contains(&LeftOut::Thoughts) {
            usage.at_least([Measure::OutputTokens, Measure::TotalTokens]);
        }
        usage
    }

    /// Returns the sum of input and output as reported, if either is absent in the trace's terms and nothing is known
    /// to be counted apart from them.
    fn sum(&self, usage: &Usage, cache_beside: Option<bool>) -> Option<u64> {
        let left_out = usage.input_tokens.is_none() || usage.output_tokens.is_none();
        let whole = cache_beside == Some(false) && self.thought.is_none() && !self.contradicts(cache_beside);
        (left_out && whole).then(|| Some(self.input?.saturating_add(self.output?)))?
    }

    /// Returns whether the input that includes cached tokens is smaller than they are, which cannot be true.
    fn contradicts(&self, cache_beside: Option<bool>) -> bool {
        let cached = self.cache_read.unwrap_or(0).saturating_add(self.cache_write.unwrap_or(0));
        cache_beside == Some(false) && self.input.is_some_and(|input| input < cached)
    }

    /// Returns whether cached tokens, and thoughts, are counted apart from input and output; `None` if unknown.
    fn arithmetic(&self, cached: u64, thoughts: u64, convention: &UsageConvention) -> (Option<bool>, Option<bool>) {
        let cache_convention = convention.input_includes_cache.map(|includes| !includes);
        let thoughts_convention = convention.output_excludes_thoughts;
        let (Some(total), Some(input), Some(output)) = (self.total, self.input, self.output) else {
            return (cache_convention, thoughts_convention);
        };
        let fits = |cache: bool, thought: bool| {
            let beside = |yes: bool, count: u64| if yes { count } else { 0 };
            let sum = input.saturating_add(output).saturating_add(beside(cache, cached));
            sum.saturating_add(beside(thought, thoughts)) == total
        };
        let mut ways: Vec<(bool, bool)> = [(true, false), (true, true), (false, false), (false, true)]
            .into_iter()
            .filter(|(cache, thought)| fits(*cache, *thought))
            .collect();
        // If several ways fit, those that agree with the manifest are preferred.
        for says in [
            |way: &(bool, bool), cache: Option<bool>, _: Option<bool>| cache.is_none_or(|says| says == way.0),
            |way: &(bool, bool), _: Option<bool>, thought: Option<bool>| thought.is_none_or(|says| says == way.1),
        ] {
            if ways.iter().any(|way| says(way, cache_convention, thoughts_convention)) {
                ways.retain(|way| says(way, cache_convention, thoughts_convention));
            }
        }
        let agreed = |part: fn(&(bool, bool)) -> bool| {
            let first = ways.first().map(part)?;
            ways.iter().all(|way| part(way) == first).then_some(first)
        };
        // A count of zero fits both ways and decides nothing.
        let cache = if cached == 0 { cache_convention } else { agreed(|way| way.0).or(cache_convention) };
        let thought = if thoughts == 0 { thoughts_convention } else { agreed(|way| way.1).or(thoughts_convention) };
        (cache, thought)
    }
}

/// Returns true if the manifest states that a report omits usage that occurred.
pub fn is_left_out(convention: &UsageConvention, activity: &SessionActivity) -> bool {
    let sub_agents =
        || activity.sub_agent_spoke() || convention.sub_agent_tools.iter().any(|tool| activity.called(tool));
    convention.leaves_out.iter().any(|left_out| match left_out {
        LeftOut::Steps => activity.rounds_in_turn() > 1,
        LeftOut::SubAgents => sub_agents(),
        // The counts of one report show whether its thoughts are missing.
        LeftOut::Thoughts => false,
    })
}

/// The usage of a session by model, as the bridge to Claude Code reports it for each turn. It has all calls of the models, of
/// which the usage of a turn leaves out those of sub-agents and of the agent's program itself.
#[derive(Debug, Default)]
pub struct SessionByModel {
    sum: Option<Figures>,
    /// True if the models of a turn had more than its usage.
    is_more: bool,
    /// True if a part of the session is missing in the sum.
    is_bound: bool,
    /// True if the agent's program started a cycle of its model by itself since the last turn with usage. No report has its tokens.
    has_left_out_cycle: bool,
}

impl SessionByModel {
    /// Adds a turn. `is_left_out` returns whether its figures omit usage: those of the models if its argument is true, else its
    /// usage. A session that was resumed is missing in the figures of the models, so that they can be lower than the usage.
    pub fn add(&mut self, usage: Option<Figures>, models: Option<Figures>, is_left_out: impl FnOnce(bool) -> bool) {
        let is_more = models.is_some_and(|models| usage.is_none_or(|usage| models.exceeds(&usage)));
        let of_turn = models.filter(|_| is_more).or(usage);
        self.is_more |= is_more;
        self.is_bound |= of_turn.is_none() || models.is_none() || is_left_out(is_more);
        self.sum = match (self.sum, of_turn) {
            (Some(before), Some(turn)) => Some(before.plus(&turn)),
            (before, turn) => before.or(turn),
        };
    }

    /// Notes a cycle of the model whose tokens are in no report.
    pub fn leave_out_cycle(&mut self) {
        self.has_left_out_cycle = true;
    }

    /// Returns true if a cycle was left out since this was asked last.
    pub fn take_left_out_cycle(&mut self) -> bool {
        std::mem::take(&mut self.has_left_out_cycle)
    }

    /// Returns the usage of the session so far, if it includes more than the reported usage of the turns.
    pub fn session_usage(&self, convention: &UsageConvention) -> Option<Usage> {
        if !self.is_more {
            return None;
        }
        let mut usage = self.sum?.as_usage(UsageScope::Session, convention);
        if self.is_bound {
            usage.at_least(Measure::all());
        }
        Some(usage)
    }
}

/// Adds a notice about the figures of a report that are no counts, and that are therefore unknown: the totals are then lower
/// bounds.
pub fn tell_invalid(report: &Value, recorder: &mut Recorder) {
    let keys = [INPUT, OUTPUT, THOUGHT, CACHE_READ, CACHE_WRITE, TOTAL].into_iter().flatten();
    let invalid: Vec<String> = keys
        .filter_map(|key| Some((key, report.get(*key)?)))
        .filter(|(_, figure)| !figure.is_null() && count(figure).is_none())
        .map(|(key, figure)| format!("`{key}` is no count: {figure}"))
        .collect();
    if !invalid.is_empty() {
        recorder.notice(NoticeCode::UsageInvalid, invalid.join(", "));
        recorder.notice(
            NoticeCode::UsageIncomplete,
            "a figure of a usage report is no count, so the totals are lower bounds",
        );
    }
}

fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let float = value.as_f64()?;
        (float >= 0.0 && float.fract() == 0.0 && float < 9e15).then_some(float as u64)
    })
}

/// Returns the model of the usage by model, if it names exactly one: in a list, or a map by names.
pub fn only_model(quota: &Value) -> Option<&str> {
    match quota.get("model_usage").or_else(|| quota.get("modelUsage"))? {
        Value::Array(list) => match list.as_slice() {
            [one] => one.get("model").and_then(Value::as_str),
            _ => None,
        },
        Value::Object(map) if map.len() == 1 => map.keys().next().map(String::as_str),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NO_CONVENTION: UsageConvention = UsageConvention {
        scope: None,
        input_includes_cache: None,
        output_excludes_thoughts: None,
        after_each_message: None,
        leaves_out: Vec::new(),
        sub_agent_tools: Vec::new(),
    };
    const GEMINI: UsageConvention = UsageConvention {
        scope: None,
        input_includes_cache: Some(true),
        output_excludes_thoughts: Some(true),
        after_each_message: None,
        leaves_out: Vec::new(),
        sub_agent_tools: Vec::new(),
    };

    fn converted(report: Value, convention: &UsageConvention) -> [Option<u64>; 6] {
        let usage = Figures::read(&report).unwrap().as_usage(UsageScope::Turn, convention);
        [
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            usage.thought_tokens,
            usage.total_tokens,
        ]
    }

    #[test]
    fn the_sum_tells_what_the_parts_mean() {
        let codex = json!({"totalTokens": 4731, "inputTokens": 1500, "cachedReadTokens": 3000, "cachedWriteTokens": 0,
            "outputTokens": 231, "thoughtTokens": 60});
        assert_eq!(
            converted(codex, &NO_CONVENTION),
            [Some(1500), Some(231), Some(3000), Some(0), Some(60), Some(4731)]
        );
        let copilot = json!({"inputTokens": 4500, "outputTokens": 231, "totalTokens": 4731, "thoughtTokens": 60,
            "cachedReadTokens": 3000, "cachedWriteTokens": 0});
        assert_eq!(
            converted(copilot, &NO_CONVENTION),
            [Some(1500), Some(231), Some(3000), Some(0), Some(60), Some(4731)]
        );
        let opencode = json!({"inputTokens": 500, "outputTokens": 57, "totalTokens": 1577, "thoughtTokens": 20,
            "cachedReadTokens": 1000});
        assert_eq!(converted(opencode, &NO_CONVENTION), [Some(500), Some(77), Some(1000), None, Some(20), Some(1577)]);
        let vibe = json!({"totalTokens": 4731, "inputTokens": 4500, "outputTokens": 231, "cachedReadTokens": 3000});
        assert_eq!(converted(vibe, &NO_CONVENTION), [Some(1500), Some(231), Some(3000), None, None, Some(4731)]);
    }

    #[test]
    fn what_cannot_be_told_apart_is_absent() {
        let gemini = json!({"input_tokens": 4500, "output_tokens": 171});
        assert_eq!(converted(gemini.clone(), &GEMINI), [None, None, None, None, None, Some(4671)]);
        assert_eq!(converted(gemini, &NO_CONVENTION), [Some(4500), Some(171), None, None, None, None]);
        let no_sum = json!({"inputTokens": 500, "outputTokens": 50, "cachedReadTokens": 100, "thoughtTokens": 5});
        assert_eq!(converted(no_sum.clone(), &NO_CONVENTION), [None, None, Some(100), None, Some(5), None]);
        assert_eq!(converted(no_sum, &GEMINI), [Some(400), Some(55), Some(100), None, Some(5), None]);
        // The sum 10 + 5 + 5 fits cached tokens counted apart, and just as well thoughts counted apart.
        let twice = json!({"inputTokens": 10, "outputTokens": 5, "totalTokens": 20, "cachedReadTokens": 5,
            "thoughtTokens": 5});
        assert_eq!(converted(twice.clone(), &NO_CONVENTION), [None, None, Some(5), None, Some(5), Some(20)]);
        assert_eq!(converted(twice, &GEMINI), [Some(5), Some(10), Some(5), None, Some(5), Some(20)]);
        let nonsense = json!({"inputTokens": 10, "outputTokens": 5, "totalTokens": 3, "cachedReadTokens": 50});
        assert_eq!(converted(nonsense, &NO_CONVENTION), [None, Some(5), Some(50), None, None, Some(3)]);
    }

    #[test]
    fn arithmetic_goes_before_the_manifest() {
        let excluded = json!({"inputTokens": 10, "outputTokens": 5, "totalTokens": 65, "cachedReadTokens": 50});
        assert_eq!(converted(excluded, &GEMINI)[0], Some(10));
    }

    #[test]
    fn figures_that_are_no_counts_are_absent() {
        assert_eq!(Figures::read(&json!({"inputTokens": "5", "outputTokens": -1, "totalTokens": 1.5})), None);
        assert_eq!(Figures::read(&json!(null)), None);
        assert_eq!(Figures::read(&json!({"inputTokens": 5.0})).unwrap().input, Some(5));
    }

    #[test]
    fn the_usage_by_model_is_added_up() {
        let row = |input: u64| {
            json!({"model": "m", "token_count": {"totalTokens": input + 6, "inputTokens": input, "cachedInputTokens": 3,
                "cachedWriteTokens": 1, "outputTokens": 2, "reasoningOutputTokens": 0}})
        };
        let sum = Figures::of_models(&json!({"model_usage": [row(10), row(20)]})).unwrap();
        assert_eq!((sum.input, sum.output, sum.thought), (Some(30), Some(4), None));
        assert_eq!((sum.cache_read, sum.cache_write, sum.total), (Some(6), Some(2), Some(42)));
        assert_eq!(Figures::of_models(&json!({"model_usage": []})), None);
        assert_eq!(Figures::of_models(&json!({"model_usage": [row(10), {"model": "n"}]})), None);
        let one = Figures::of_models(&json!({"model_usage": [row(10)]})).unwrap();
        assert!(sum.exceeds(&one) && !one.exceeds(&one));
    }

    #[test]
    fn a_model_is_told_where_it_is_the_only_one() {
        assert_eq!(only_model(&json!({"model_usage": [{"model": "m"}]})), Some("m"));
        assert_eq!(only_model(&json!({"model_usage": [{"model": "m"}, {"model": "n"}]})), None);
        assert_eq!(only_model(&json!({"model_usage": []})), None);
        assert_eq!(only_model(&json!({"modelUsage": {"m": {"inputTokens": 1}}})), Some("m"));
        assert_eq!(only_model(&json!({"modelUsage": {"m": {}, "n": {}}})), None);
    }
}

//! Adds usage reports up to what a Trial spent.

use super::{Usage, UsageScope};

/// What a Trial spent. For each figure: the last session report, else the sum of the turns, else of the calls.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UsageTotal {
    session: Figures,
    turns: Figures,
    calls: Figures,
    source: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Figures {
    reports: u64,
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    thought: Option<u64>,
    total: Option<u64>,
    cost: Option<f64>,
}

impl UsageTotal {
    /// Takes one report into account.
    pub fn add(&mut self, usage: &Usage) {
        if usage.cost_usd.is_some() {
            self.source = usage.source.clone();
        }
        match usage.scope {
            UsageScope::Session => self.session.replace(usage),
            UsageScope::Turn => self.turns.sum(usage),
            UsageScope::Call => self.calls.sum(usage),
        }
    }

    fn pick<T: Copy>(&self, figure: impl Fn(&Figures) -> Option<T>) -> Option<T> {
        figure(&self.session).or_else(|| figure(&self.turns)).or_else(|| figure(&self.calls))
    }

    /// Tokens sent, without cached ones.
    pub fn input_tokens(&self) -> Option<u64> {
        self.pick(|f| f.input)
    }

    /// Tokens received, thoughts included.
    pub fn output_tokens(&self) -> Option<u64> {
        self.pick(|f| f.output)
    }

    /// Tokens read from the cache.
    pub fn cache_read_tokens(&self) -> Option<u64> {
        self.pick(|f| f.cache_read)
    }

    /// Tokens written to the cache.
    pub fn cache_write_tokens(&self) -> Option<u64> {
        self.pick(|f| f.cache_write)
    }

    /// Tokens of thought.
    pub fn thought_tokens(&self) -> Option<u64> {
        self.pick(|f| f.thought)
    }

    /// Money in US dollars. A sum beyond what a number holds is not known.
    pub fn cost_usd(&self) -> Option<f64> {
        self.pick(|f| f.cost).filter(|cost| cost.is_finite())
    }

    /// Who told the cost, where it was not the agent.
    pub fn cost_source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// All tokens: as reported, else input and output (both needed) and whatever of the cache is known.
    pub fn tokens(&self) -> Option<u64> {
        // Figures of different scopes do not add up, so one scope answers.
        [&self.session, &self.turns, &self.calls].into_iter().find_map(Figures::tokens)
    }
}

impl Figures {
    fn tokens(&self) -> Option<u64> {
        self.total.or_else(|| {
            let known = self.input?.saturating_add(self.output?);
            Some(known.saturating_add(self.cache_read.unwrap_or(0)).saturating_add(self.cache_write.unwrap_or(0)))
        })
    }

    fn replace(&mut self, usage: &Usage) {
        self.input = usage.input_tokens.or(self.input);
        self.output = usage.output_tokens.or(self.output);
        self.cache_read = usage.cache_read_tokens.or(self.cache_read);
        self.cache_write = usage.cache_write_tokens.or(self.cache_write);
        self.thought = usage.thought_tokens.or(self.thought);
        self.total = usage.total_tokens.or(self.total);
        self.cost = usage.cost_usd.or(self.cost);
    }

    /// Adds a report. A figure that only some of the reports hold is unknown, not the sum of those.
    fn sum(&mut self, usage: &Usage) {
        let first = self.reports == 0;
        let add = |sum: &mut Option<u64>, said: Option<u64>| {
            *sum = match (*sum, said) {
                (_, said) if first => said,
                (Some(a), Some(b)) => Some(a.saturating_add(b)),
                _ => None,
            }
        };
        let tokens = [usage.input_tokens, usage.output_tokens, usage.total_tokens];
        if tokens.iter().any(Option::is_some) || usage.cost_usd.is_some() {
            add(&mut self.input, usage.input_tokens);
            add(&mut self.output, usage.output_tokens);
            add(&mut self.cache_read, usage.cache_read_tokens);
            add(&mut self.cache_write, usage.cache_write_tokens);
            add(&mut self.thought, usage.thought_tokens);
            add(&mut self.total, usage.total_tokens);
            self.cost = match (self.cost, usage.cost_usd) {
                (_, said) if first => said,
                (Some(sum), Some(cost)) => Some(sum + cost),
                _ => None,
            };
            self.reports += 1;
        }
    }
}

//! Adds up the usage reports of a trial, and determines whether the sum is complete.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::amount::Amount;
use super::{Body, Event, NoticeCode, Role, Usage, UsageScope};
use crate::rounding;
use crate::word::word;
pub use activity::SessionActivity;
use by_model::ByModel;
pub use by_model::Spent;

mod by_model;
mod activity;

/// The source of a cost from a price table.
pub const PRICED: &str = "priced";

/// The difference in US dollars by which agents round a cost.
const ROUNDED_USD: f64 = 0.005;

/// The share of a cost by which agents round it.
const ROUNDED_SHARE: f64 = 0.01;

/// The source of figures that the model's service reported through the gateway.
pub const GATEWAY: &str = "gateway";

/// A figure of a usage report, or of the metrics of a trial, that can be a lower bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Measure {
    /// Input tokens, without cached ones.
    InputTokens,
    /// Output tokens, including thoughts.
    OutputTokens,
    /// Input tokens that the service read from its cache. `input_tokens` does not include them.
    CacheReadTokens,
    /// Input tokens that the service wrote to its cache. `input_tokens` does not include them.
    CacheWriteTokens,
    /// Tokens of the model's thoughts. `output_tokens` includes them.
    ThoughtTokens,
    /// All tokens.
    TotalTokens,
    /// Cost in US dollars.
    CostUsd,
    /// Number of changed files. Only metrics have it.
    ChangedFiles,
}

word!(Measure);

impl Measure {
    /// Every figure that counts tokens.
    pub const TOKENS: [Measure; 6] = [
        Measure::InputTokens,
        Measure::OutputTokens,
        Measure::CacheReadTokens,
        Measure::CacheWriteTokens,
        Measure::ThoughtTokens,
        Measure::TotalTokens,
    ];

    /// The parts of all tokens.
    const OF_ALL: [Measure; 4] =
        [Measure::InputTokens, Measure::OutputTokens, Measure::CacheReadTokens, Measure::CacheWriteTokens];

    /// Returns all figures.
    pub fn all() -> impl Iterator<Item = Measure> {
        Measure::TOKENS.into_iter().chain([Measure::CostUsd])
    }

    fn tokens_in(self, usage: &Usage) -> Option<u64> {
        match self {
            Measure::InputTokens => usage.input_tokens,
            Measure::OutputTokens => usage.output_tokens,
            Measure::CacheReadTokens => usage.cache_read_tokens,
            Measure::CacheWriteTokens => usage.cache_write_tokens,
            Measure::ThoughtTokens => usage.thought_tokens,
            Measure::TotalTokens => usage.total_tokens,
            Measure::CostUsd | Measure::ChangedFiles => None,
        }
    }
}

/// Returns true if the report contains the figure.
pub(super) fn holds(usage: &Usage, measure: Measure) -> bool {
    match measure {
        Measure::CostUsd => usage.cost_usd.is_some(),
        tokens => tokens.tokens_in(usage).is_some(),
    }
}

/// The usage of a trial. For each figure: the last session report, else the sum of the turns, else the sum of
/// the calls. A sum that misses a report or a turn is a lower bound.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UsageTotal {
    session: SessionFigures,
    turns: Sums,
    calls: Sums,
    source: Option<String>,
    /// True if the tokens are those that the model's service reported, without a figure of the agent.
    of_service: bool,
    activity: SessionActivity,
    by_model: ByModel,
}

/// The figures of the last session reports.
#[derive(Debug, Clone, Default, PartialEq)]
struct SessionFigures {
    tokens: [Option<Latest<u64>>; 6],
    cost: Option<Latest<f64>>,
    /// The work of the agent at the last cost.
    work_at_cost: u64,
    reports: u64,
}

/// A figure with the number of its report, and the turn and the activity at that time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Latest<T> {
    value: T,
    whole: bool,
    /// True if an earlier report had a higher figure. A figure of the session so far cannot fall, so one of the reports
    /// leaves something out, and the highest is a lower bound.
    fell: bool,
    report: u64,
    turn: u64,
    activity: u64,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Sums {
    tokens: [Sum<u64>; 6],
    /// The largest figure of a single report.
    largest: [u64; 6],
    /// The sum of all tokens over all reports: of each report its total, or its parts if it has no total.
    all: Sum<u64>,
    cost: Sum<f64>,
    /// The largest cost of a single report.
    largest_cost: f64,
    /// The number of reports with a token count, and of reports with a cost.
    reports: (u64, u64),
    /// The number of reports without a total that lack a count of cache reads, and of cache writes.
    without_cache: (u64, u64),
    /// The number of reports in the current turn.
    in_turn: u64,
    /// True if a turn ended without a usage report.
    missed_turn: bool,
    /// The activity at the last report.
    activity: u64,
}

/// A sum, the number of its reports, and whether any of these was partial.
#[derive(Debug, Clone, Default, PartialEq)]
struct Sum<T> {
    value: T,
    of: u64,
    partial: bool,
}

impl UsageTotal {
    /// Handles the next event of a trace.
    pub fn event(&mut self, event: &Event) {
        match &event.body {
            Body::Usage(usage) => return self.add(usage),
            Body::Notice { code: NoticeCode::ModelChanged, .. } if self.activity.work() > 0 => self.by_model.changed(),
            Body::Message(message) if message.role == Role::User && event.parent.is_none() => {
                for sums in [&mut self.turns, &mut self.calls] {
                    sums.next_turn(self.activity.prompts());
                }
            }
            _ => {}
        }
        self.activity.event(event);
    }

    /// Adds one report. A report of nothing but zeros says nothing, unless it is that of the model's service.
    pub fn add(&mut self, usage: &Usage) {
        let usage = &possible(usage);
        let of_agent = usage.source.is_none();
        let mut figures = Measure::TOKENS.into_iter().filter_map(|measure| measure.tokens_in(usage));
        let costs_nothing = usage.cost_usd.is_none_or(|cost| cost == 0.0) && !lacks_cost(usage);
        if of_agent && self.source.is_none() && usage.cost_usd.is_none() && usage.context_used.is_some() {
            self.session.has_later_context(self.activity.work());
        }
        if of_agent && figures.all(|tokens| tokens == 0) && costs_nothing {
            return;
        }
        if of_agent && Measure::TOKENS.into_iter().any(|measure| measure.tokens_in(usage).is_some()) {
            self.by_model.add(usage);
        }
        self.sum(usage);
    }

    /// Adds a report to the figures of its scope.
    fn sum(&mut self, usage: &Usage) {
        if usage.cost_usd.is_some() {
            if self.source != usage.source {
                // Costs of different sources are not compared.
                self.session.cost = None;
                (self.turns.largest_cost, self.calls.largest_cost) = (0.0, 0.0);
            }
            self.source = usage.source.clone();
        }
        let (turn, activity) = (self.activity.prompts(), self.activity.units());
        if usage.source.as_deref() == Some(GATEWAY) {
            self.of_service = true;
            self.session.tokens = Default::default();
        }
        match usage.scope {
            UsageScope::Session => self.session.replace(usage, turn, activity, self.activity.work()),
            UsageScope::Turn | UsageScope::Call => {
                if usage.source.is_none() && self.source.is_none() {
                    self.session.has_later_tokens(usage, self.activity.work());
                }
                let sums = if usage.scope == UsageScope::Turn { &mut self.turns } else { &mut self.calls };
                sums.add(usage, activity);
            }
        }
    }

    /// Returns the tokens by model, for prices. `effective` is the model of reports that name none.
    pub fn spent_by_models(&self, effective: Option<&str>) -> Spent {
        self.by_model.spent(effective)
    }

    /// Returns the activity besides the reports.
    pub fn activity(&self) -> &SessionActivity {
        &self.activity
    }

    /// Returns true if any figure comes from a session report.
    pub fn is_of_session(&self) -> bool {
        self.session.cost.is_some() || self.session.tokens.iter().any(Option::is_some)
    }

    /// Returns true if a figure is known and exact.
    pub fn is_exact(&self) -> bool {
        let figures = Measure::TOKENS.into_iter().filter_map(|measure| self.figure(measure));
        self.cost_usd().is_some_and(Amount::is_exact) || figures.into_iter().any(Amount::is_exact)
    }

    fn figure(&self, measure: Measure) -> Option<Amount<u64>> {
        let session = self.session.tokens[measure as usize].map(|latest| self.session_amount(latest));
        if self.of_service {
            return session;
        }
        let turns = self.turns.amount(&self.turns.tokens[measure as usize], &self.activity, UsageScope::Turn);
        let calls = self.calls.amount(&self.calls.tokens[measure as usize], &self.activity, UsageScope::Call);
        // A total that is less than one of its parts is not all.
        let part = self.turns.largest[measure as usize].max(self.calls.largest[measure as usize]);
        pick([session, turns, calls]).map(|amount| if part > amount.value() { Amount::AtLeast(part) } else { amount })
    }

    /// Returns the input tokens, without cached ones.
    pub fn input_tokens(&self) -> Option<Amount<u64>> {
        self.figure(Measure::InputTokens)
    }

    /// Returns the output tokens, including thoughts.
    pub fn output_tokens(&self) -> Option<Amount<u64>> {
        self.figure(Measure::OutputTokens)
    }

    /// Returns the tokens read from the cache, or `None` if no report states them.
    pub fn cache_read_tokens(&self) -> Option<Amount<u64>> {
        self.figure(Measure::CacheReadTokens)
    }

    /// Returns the tokens written to the cache.
    pub fn cache_write_tokens(&self) -> Option<Amount<u64>> {
        self.figure(Measure::CacheWriteTokens)
    }

    /// Returns the tokens of thoughts, or `None` if no report states them.
    pub fn thought_tokens(&self) -> Option<Amount<u64>> {
        self.figure(Measure::ThoughtTokens)
    }

    /// Returns the cost in US dollars; unknown if the sum overflows. The price of token counts that are lower
    /// bounds is a lower bound.
    pub fn cost_usd(&self) -> Option<Amount<f64>> {
        let session = self.session.cost.map(|latest| self.session_amount(latest));
        let amount = |sums: &Sums, scope: UsageScope| {
            let cost = sums.amount(&sums.cost, &self.activity, scope)?;
            Some(Amount::new(cost.value(), cost.is_exact() && !self.session.exceeds(sums)))
        };
        let turns = amount(&self.turns, UsageScope::Turn);
        let calls = amount(&self.calls, UsageScope::Call);
        let cost = pick([session, turns, calls]).filter(|cost| cost.value().is_finite())?;
        // A total that is less than one of its parts is not all, unless one of the two is rounded.
        let part = self.turns.largest_cost.max(self.calls.largest_cost);
        if part - cost.value() > ROUNDED_USD + ROUNDED_SHARE * cost.value() {
            return Some(Amount::AtLeast(part));
        }
        let priced = self.cost_source() == Some(PRICED);
        // Beside the figures of the model's service, the agent's own cost may still leave out an answer.
        let out_of_time = !priced && self.activity.is_out_of_time();
        let is_partial = out_of_time || (priced && self.priced_parts_are_lower_bounds());
        Some(Amount::new(cost.value(), cost.is_exact() && !is_partial))
    }

    /// Returns true if a count that the price is calculated from is a lower bound.
    pub fn priced_parts_are_lower_bounds(&self) -> bool {
        let parts = [self.input_tokens(), self.output_tokens(), self.cache_read_tokens(), self.cache_write_tokens()];
        parts.into_iter().chain([self.tokens()]).flatten().any(|part| !part.is_exact())
    }

    /// Returns the source of the cost, if it is not the agent.
    pub fn cost_source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// Returns all tokens: as reported, else input plus output (both are required) plus the known cached
    /// tokens.
    pub fn tokens(&self) -> Option<Amount<u64>> {
        if self.of_service {
            return self.session_tokens();
        }
        // Figures of different scopes do not add up, so only one scope is used.
        let turns = self.turns.amount(&self.turns.all_tokens(), &self.activity, UsageScope::Turn);
        let calls = self.calls.amount(&self.calls.all_tokens(), &self.activity, UsageScope::Call);
        let parts = Measure::OF_ALL.map(|part| self.figure(part));
        let parts = || parts.into_iter().flatten();
        let total = self.figure(Measure::TotalTokens);
        let largest = parts().chain(total).map(Amount::value).max().unwrap_or_default();
        // Exact parts of other scopes do not count here: agents count cached tokens in some reports and not in others.
        let largest = match parts().all(Amount::is_exact) {
            true => largest,
            false => parts().map(Amount::value).fold(0, u64::saturating_add).max(largest),
        };
        let all = pick([self.session_tokens(), turns, calls])?;
        Some(if largest > all.value() { Amount::AtLeast(largest) } else { all })
    }

    fn session_tokens(&self) -> Option<Amount<u64>> {
        let latest = |measure: Measure| self.session.tokens[measure as usize];
        let total = latest(Measure::TotalTokens);
        let parts = latest(Measure::InputTokens).zip(latest(Measure::OutputTokens)).map(|(input, output)| {
            let cache = [latest(Measure::CacheReadTokens), latest(Measure::CacheWriteTokens)];
            let parts = [Some(input), Some(output)].into_iter().chain(cache).flatten();
            let first = Amount::Exact(0u64);
            let sum = parts.map(|part| (self.session_amount(part), part.report)).fold(first, |sum, (part, report)| {
                // A count from an earlier report than the others may have grown since.
                let current = report >= input.report.max(output.report);
                Amount::new(sum.value().saturating_add(part.value()), sum.is_exact() && part.is_exact() && current)
            });
            (sum, input.report.max(output.report))
        });
        let known =
            || Measure::OF_ALL.iter().filter_map(|measure| Some(latest(*measure)?.value)).reduce(u64::saturating_add);
        match (total, parts) {
            (Some(total), Some((parts, report))) if report > total.report => {
                Some(Amount::AtLeast(parts.value().max(total.value)))
            }
            (Some(total), _) => match known() {
                // A total cannot be less than its parts, so it is not all.
                Some(parts) if parts > total.value => Some(Amount::AtLeast(parts)),
                _ => Some(self.session_amount(total)),
            },
            (None, Some((parts, _))) => Some(parts),
            (None, None) => known().map(Amount::AtLeast),
        }
    }

    /// Returns a session figure. It counts everything up to its report: later turns, and interrupted work, are missing.
    fn session_amount<T: Copy>(&self, latest: Latest<T>) -> Amount<T> {
        let later_turn = latest.turn < self.activity.prompts();
        // The model's service knows which answers were under way.
        let out_of_time = self.activity.is_out_of_time() && !self.of_service;
        let cut = out_of_time || (self.activity.was_cut() && latest.activity < self.activity.units());
        Amount::new(
            latest.value,
            latest.whole && !latest.fell && !later_turn && !cut && !self.activity.is_noted_incomplete(),
        )
    }
}

/// Returns the first exact figure, else the largest lower bound.
fn pick<T: Copy + PartialOrd>(scopes: [Option<Amount<T>>; 3]) -> Option<Amount<T>> {
    let exact = scopes.iter().flatten().find(|amount| amount.is_exact()).copied();
    let larger = |one: Amount<T>, other: Amount<T>| if other.value() > one.value() { other } else { one };
    exact.or_else(|| scopes.into_iter().flatten().reduce(larger))
}

/// Returns a report without figures that are impossible: a negative cost is unknown, so that the sum of costs is a lower
/// bound, and output tokens that are fewer than the thought tokens among them are not all.
fn possible(usage: &Usage) -> Usage {
    let mut usage = usage.clone();
    if usage.cost_usd.is_some() && possible_cost(&usage).is_none() {
        usage.at_least([Measure::CostUsd]);
        usage.cost_usd = None;
    }
    if let (Some(output), Some(thoughts)) = (usage.output_tokens, usage.thought_tokens)
        && thoughts > output
    {
        usage.output_tokens = Some(thoughts);
        usage.at_least([Measure::OutputTokens]);
    }
    usage
}

/// Returns true if a report had a cost that is impossible.
fn lacks_cost(usage: &Usage) -> bool {
    usage.cost_usd.is_none() && usage.lower_bounds.contains(&Measure::CostUsd)
}

/// Returns the cost of a report. A negative cost is impossible and counts as unknown.
pub fn possible_cost(usage: &Usage) -> Option<f64> {
    usage.cost_usd.filter(|cost| *cost >= 0.0)
}

impl<T: Copy + PartialOrd> Latest<T> {
    /// Returns the figure after an earlier one.
    fn after(self, before: Option<Self>) -> Self {
        let Some(before) = before else { return self };
        let value = if self.value < before.value { before.value } else { self.value };
        Self { value, fell: before.fell || self.value < before.value, ..self }
    }
}

impl SessionFigures {
    /// Returns true if the session has more output tokens than reports of parts of it, so that some of it is in no part. Input
    /// tokens say nothing: agents count cached ones in some reports and not in others.
    fn exceeds(&self, parts: &Sums) -> bool {
        let of_parts = &parts.tokens[Measure::OutputTokens as usize];
        let latest = self.tokens[Measure::OutputTokens as usize];
        of_parts.of > 0 && latest.is_some_and(|latest| latest.value > of_parts.value)
    }

    /// Takes a report of the context without a cost. After further work, it says that the cost before is not all.
    fn has_later_context(&mut self, work: u64) {
        if let Some(cost) = self.cost.as_mut().filter(|_| self.work_at_cost < work) {
            cost.whole = false;
        }
    }

    /// Takes a report of tokens in another scope. After further work, it says that the cost before is not all.
    fn has_later_tokens(&mut self, usage: &Usage, work: u64) {
        let tells_tokens = Measure::TOKENS.into_iter().any(|measure| measure.tokens_in(usage).is_some());
        if tells_tokens
            && usage.cost_usd.is_none()
            && let Some(cost) = self.cost.as_mut().filter(|_| self.work_at_cost < work)
        {
            cost.whole = false;
        }
    }

    /// Marks the figures that a report leaves out as lower bounds, if it shows that they have grown: a cost beside more tokens,
    /// and tokens beside a higher cost.
    fn outgrow(&mut self, usage: &Usage) {
        let before = self.cost;
        let grew = |latest: &Latest<u64>, measure: Measure| {
            let known_then = before.is_some_and(|cost| latest.report <= cost.report);
            known_then && measure.tokens_in(usage).is_some_and(|now| now > latest.value)
        };
        let more_tokens = Measure::TOKENS
            .into_iter()
            .any(|measure| self.tokens[measure as usize].as_ref().is_some_and(|latest| grew(latest, measure)));
        if more_tokens
            && usage.cost_usd.is_none()
            && let Some(cost) = self.cost.as_mut()
        {
            cost.whole = false;
        }
        let Some((before, now)) = before.zip(usage.cost_usd) else { return };
        let costs_more = now - before.value > ROUNDED_USD + ROUNDED_SHARE * before.value;
        let tells_tokens = Measure::TOKENS.into_iter().any(|measure| measure.tokens_in(usage).is_some());
        for latest in self.tokens.iter_mut().flatten().filter(|_| costs_more && !tells_tokens) {
            latest.whole &= latest.report < before.report;
        }
    }

    fn replace(&mut self, usage: &Usage, turn: u64, activity: u64, work: u64) {
        self.reports += 1;
        let report = self.reports;
        let whole = |measure: Measure| !usage.lower_bounds.contains(&measure);
        self.outgrow(usage);
        for measure in Measure::TOKENS {
            if let Some(value) = measure.tokens_in(usage) {
                let latest = Latest { value, whole: whole(measure), fell: false, report, turn, activity };
                self.tokens[measure as usize] = Some(latest.after(self.tokens[measure as usize]));
            }
        }
        if let Some(cost) = self.cost.as_mut().filter(|_| lacks_cost(usage)) {
            cost.whole = false;
        }
        if let Some(value) = usage.cost_usd {
            let latest = Latest { value, whole: whole(Measure::CostUsd), fell: false, report, turn, activity };
            self.cost = Some(latest.after(self.cost));
            self.work_at_cost = work;
        }
    }
}

impl Sums {
    /// Begins a turn at a prompt of the user. Before the first prompt, nothing can be missing.
    fn next_turn(&mut self, prompts_before: u64) {
        self.missed_turn |= prompts_before > 0 && self.in_turn == 0;
        self.in_turn = 0;
    }

    fn add(&mut self, usage: &Usage, activity: u64) {
        let tells_tokens = Measure::TOKENS.into_iter().any(|measure| measure.tokens_in(usage).is_some());
        let lacks_cost = lacks_cost(usage);
        if !tells_tokens && usage.cost_usd.is_none() && !lacks_cost {
            return;
        }
        self.in_turn += 1;
        self.activity = activity;
        let partial = |measure: Measure| usage.lower_bounds.contains(&measure);
        if tells_tokens {
            self.reports.0 += 1;
            for measure in Measure::TOKENS {
                if let Some(value) = measure.tokens_in(usage) {
                    let largest = &mut self.largest[measure as usize];
                    *largest = value.max(*largest);
                    let sum = &mut self.tokens[measure as usize];
                    sum.add(sum.value.saturating_add(value), partial(measure));
                }
            }
            self.add_all_tokens(usage);
        }
        self.reports.1 += u64::from(lacks_cost);
        if let Some(cost) = usage.cost_usd {
            self.reports.1 += 1;
            self.largest_cost = self.largest_cost.max(cost);
            self.cost.add(rounding::sum_of_money(self.cost.value, cost), partial(Measure::CostUsd));
        }
    }

    fn add_all_tokens(&mut self, usage: &Usage) {
        let partial = |measure: Measure| usage.lower_bounds.contains(&measure);
        if let Some(total) = usage.total_tokens {
            let parts = Measure::OF_ALL.iter().filter_map(|part| part.tokens_in(usage)).fold(0, u64::saturating_add);
            // A total cannot be less than its parts, so it is not all.
            let partial = partial(Measure::TotalTokens) || parts > total;
            return self.all.add(self.all.value.saturating_add(total.max(parts)), partial);
        }
        let parts = Measure::OF_ALL;
        let known = parts.iter().filter_map(|part| part.tokens_in(usage)).fold(0, u64::saturating_add);
        self.all.value = self.all.value.saturating_add(known);
        self.all.partial |= parts.into_iter().any(partial);
        self.without_cache.0 += u64::from(usage.cache_read_tokens.is_none());
        self.without_cache.1 += u64::from(usage.cache_write_tokens.is_none());
        // A report counts as one of all tokens only if it holds both input and output.
        self.all.of += u64::from(usage.input_tokens.is_some() && usage.output_tokens.is_some());
    }

    /// Returns the sum of all tokens. An agent that counts cached tokens in one report omits them in the others.
    fn all_tokens(&self) -> Sum<u64> {
        let counted = |measure: Measure| self.tokens[measure as usize].of > 0;
        let misses_cache = (counted(Measure::CacheReadTokens) && self.without_cache.0 > 0)
            || (counted(Measure::CacheWriteTokens) && self.without_cache.1 > 0);
        // Reports that lack the input or the output show a part of all tokens.
        let of = if self.all.of == 0 { u64::from(self.all.value > 0) } else { self.all.of };
        let lacks = of != self.all.of;
        Sum { partial: self.all.partial || misses_cache || lacks, of, ..self.all.clone() }
    }

    /// Returns the amount of a sum: exact if every report held the figure and no turn went without a report.
    fn amount<T: Copy>(&self, sum: &Sum<T>, activity: &SessionActivity, scope: UsageScope) -> Option<Amount<T>> {
        if sum.of == 0 {
            return None;
        }
        let in_each = sum.of == self.reports.0.max(self.reports.1);
        let last_turn_is_missing = activity.is_over() && activity.prompts() > 0 && self.in_turn == 0;
        // A call that the engine cut off is never reported.
        let cut_call = activity.was_cut_by_engine() && scope == UsageScope::Call;
        let cut = activity.is_out_of_time() || (activity.was_cut() && (cut_call || self.activity < activity.units()));
        let missing = self.missed_turn || last_turn_is_missing || cut || activity.is_noted_incomplete();
        Some(Amount::new(sum.value, in_each && !sum.partial && !missing))
    }
}

impl<T> Sum<T> {
    fn add(&mut self, value: T, partial: bool) {
        self.value = value;
        self.of += 1;
        self.partial |= partial;
    }
}

/// Returns the input without its cached parts, if the service includes them. A cached count above the input shows that
/// it does not.
pub fn uncached(input: Option<u64>, cached: [Option<u64>; 2]) -> Option<u64> {
    let cached = cached.into_iter().flatten().fold(0, u64::saturating_add);
    input.map(|input| input.checked_sub(cached).unwrap_or(input))
}

#[cfg(test)]
mod tests;

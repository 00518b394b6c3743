//! Calculates costs that the agent did not report: US dollars from tokens, by a dated table that a user can
//! replace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::Deserialize;

use crate::limits::Dollars;
use crate::trace::amount::Amount;
use crate::trace::recorder::Recorder;
use crate::trace::usage::{Spent, UsageTotal};
use crate::values::Day;
use crate::wire::EngineLine;
use crate::yaml::{self, YamlError};

const TEXT: &str = include_str!("price/prices.yaml");

/// The origin of the table that the program ships.
pub const BUILT_IN: &str = "built-in";

/// The prices of models, with the date when they were looked up.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PriceTable {
    /// The date when the prices were looked up.
    pub date: Day,
    #[serde(default)]
    pub source: Option<String>,
    pub models: BTreeMap<String, Price>,
    /// Digest (BLAKE3) of the table's text.
    #[serde(skip)]
    pub digest: String,
    /// The file. `None` for the built-in table.
    #[serde(skip)]
    file: Option<PathBuf>,
}

/// US dollars per million tokens. An unknown price is absent.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Price {
    /// Input tokens.
    pub input: Dollars,
    /// Output tokens.
    pub output: Dollars,
    /// Tokens read from the cache.
    #[serde(default)]
    pub cache_read: Option<Dollars>,
    /// Tokens written to the cache.
    #[serde(default)]
    pub cache_write: Option<Dollars>,
}

impl PriceTable {
    /// Reads a table.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read as a price table.
    pub fn load(path: &Path) -> Result<Self, YamlError> {
        Ok(Self { file: Some(path.to_owned()), ..read(path, &yaml::read(path)?)? })
    }

    /// Makes the path of the file absolute, so that a resumed run finds the file that the command line named.
    #[must_use]
    pub fn with_absolute_file(self) -> Self {
        let file = self.file.map(|file| std::path::absolute(&file).unwrap_or(file));
        Self { file, ..self }
    }

    /// Returns the file of the table, or [`BUILT_IN`].
    pub fn origin(&self) -> String {
        self.file.as_ref().map_or_else(|| BUILT_IN.to_owned(), |file| file.display().to_string())
    }

    /// Returns the cost of the tokens, or `None` if the table or the agent does not contain the required
    /// figures. The cost of token counts that are lower bounds is a lower bound.
    pub fn cost(&self, model: &str, usage: &UsageTotal) -> Option<Amount<f64>> {
        let price = self.models.get(model)?;
        let part = |tokens: Option<Amount<u64>>, price: Option<Dollars>| match tokens.map(Amount::value) {
            None | Some(0) => Some(0.0),
            Some(tokens) => price.map(|price| tokens as f64 * price.get() / 1e6),
        };
        let cost = part(Some(usage.input_tokens()?), Some(price.input))?
            + part(Some(usage.output_tokens()?), Some(price.output))?
            + part(usage.cache_read_tokens(), price.cache_read)?
            + part(usage.cache_write_tokens(), price.cache_write)?;
        Some(Amount::new(cost, !usage.priced_parts_are_lower_bounds()))
    }

    /// Returns the cost of a trial and the models that it was calculated for, each by its own price. `effective` is the
    /// model of reports that name none. `None` if a model, its price or its tokens are unknown.
    fn cost_of_trial(&self, effective: Option<&str>, usage: &UsageTotal) -> Option<(f64, String)> {
        match usage.spent_by_models(effective) {
            Spent::One(model) => {
                let model = model?;
                Some((self.cost(&model, usage)?.value(), model))
            }
            Spent::Each(parts) => {
                let costs = parts.iter().map(|(model, total)| Some(self.cost(model.as_deref()?, total)?.value()));
                let models: Vec<&str> = parts.iter().filter_map(|(model, _)| model.as_deref()).collect();
                Some((costs.sum::<Option<f64>>()?, models.join(", ")))
            }
            Spent::Mixed => None,
        }
    }
}

static TABLE: OnceLock<PriceTable> = OnceLock::new();

/// Replaces the built-in table, for the whole run.
///
/// # Panics
/// Panics if a price was read before: the run would have two tables, or the wrong one.
pub fn replace(table: PriceTable) {
    assert!(TABLE.set(table).is_ok(), "a price was read before the table of the run was set");
}

fn read(path: &Path, text: &str) -> Result<PriceTable, YamlError> {
    let table: PriceTable = yaml::parse(path, text)?;
    Ok(PriceTable { digest: blake3::hash(text.as_bytes()).to_hex().to_string(), ..table })
}

/// Returns the current table. It is read once, so that a change to the file during a run has no effect.
#[expect(clippy::unwrap_used, reason = "the built-in table is a constant, and a test reads it")]
pub fn table() -> &'static PriceTable {
    TABLE.get_or_init(|| read(Path::new("prices.yaml"), TEXT).unwrap())
}

/// Returns the engine's line with a calculated cost, if the agent did not report one and it can be calculated.
pub fn line_for(recorder: &mut Recorder) -> Option<EngineLine> {
    if recorder.usage_total().cost_usd().is_some() {
        return None;
    }
    let table = table();
    let effective = recorder.header().model.effective.clone();
    let (cost_usd, model) = table.cost_of_trial(effective.as_deref(), recorder.usage_total())?;
    Some(EngineLine::Priced { cost_usd, model, table: table.date.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Usage, UsageScope};

    #[test]
    fn the_built_in_table_gives_the_cost_that_claude_code_itself_reported() {
        let table = read(Path::new("prices.yaml"), TEXT).unwrap();
        assert_eq!(table.origin(), BUILT_IN);
        let mut total = UsageTotal::default();
        let mut usage = Usage::of(UsageScope::Session);
        (usage.input_tokens, usage.output_tokens) = (Some(2400), Some(154));
        (usage.cache_read_tokens, usage.cache_write_tokens) = (Some(10_000), Some(600));
        total.add(&usage);
        // From the recording claude-code/write: total_cost_usd 0.0246.
        assert!((table.cost("claude-opus-4-8", &total).unwrap().value() - 0.0246).abs() < 1e-9);
        assert_eq!(table.cost("nobody-knows", &total), None);
    }

    #[test]
    #[should_panic(expected = "a price was read before")]
    fn a_table_that_comes_after_the_first_price_is_not_ignored() {
        replace(table().clone());
    }

    #[test]
    fn each_model_has_its_own_price_and_an_unknown_one_makes_the_cost_unknown() {
        let text = "{date: 2026-11-21, models: {small: {input: 1, output: 1}, dear: {input: 1000, output: 1000}}}";
        let table: PriceTable = crate::yaml::parse(Path::new("p.yaml"), text).unwrap();
        let cost = |reports: &[(UsageScope, Option<&str>)], effective: Option<&str>| {
            let mut total = UsageTotal::default();
            for (scope, model) in reports {
                let mut usage = Usage::of(*scope);
                (usage.input_tokens, usage.output_tokens) = (Some(1_000_000), Some(0));
                usage.model = model.map(str::to_owned);
                total.add(&usage);
            }
            table.cost_of_trial(effective, &total).map(|(cost, models)| (cost.round(), models))
        };
        use UsageScope::{Call, Session, Turn};
        let is = |usd: f64, models: &str| Some((usd, models.to_owned()));
        assert_eq!(cost(&[(Turn, None)], Some("small")), is(1.0, "small"));
        assert_eq!(cost(&[(Turn, Some("dear"))], Some("small")), is(1000.0, "dear"));
        assert_eq!(cost(&[(Turn, Some("dear"))], None), is(1000.0, "dear"));
        assert_eq!(cost(&[(Turn, Some("small")), (Turn, Some("dear"))], Some("small")), is(1001.0, "dear, small"));
        assert_eq!(cost(&[(Call, None), (Call, Some("dear"))], Some("small")), is(1001.0, "small, dear"));
        assert_eq!(cost(&[(Call, None), (Call, Some("small"))], Some("small")), is(2.0, "small"));
        assert_eq!(cost(&[(Turn, Some("small")), (Turn, Some("unpriced"))], Some("small")), None);
        assert_eq!(cost(&[(Call, Some("small")), (Session, Some("dear"))], Some("small")), None);
        assert_eq!(cost(&[(Call, Some("dear")), (Session, None)], Some("small")), None);
        assert_eq!(cost(&[(Turn, None)], None), None);
    }

    #[test]
    fn a_price_that_is_missing_makes_the_cost_unknown() {
        let table: PriceTable =
            crate::yaml::parse(Path::new("p.yaml"), "{date: 2026-11-21, models: {m: {input: 1, output: 1}}}").unwrap();
        let mut total = UsageTotal::default();
        let mut usage = Usage::of(UsageScope::Turn);
        (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) = (Some(1), Some(1), Some(5));
        total.add(&usage);
        assert_eq!(table.cost("m", &total), None);
    }
}

//! Refuses requests for another model than the requested one, and requests beyond the limits of the case.

use tokio::sync::watch;

use super::totals::Totals;
use crate::judgement::tolerance;
use crate::limits::{Dollars, LimitKey, Limits};
use crate::models;

/// The treatment of requests for another model than the one that the run requests.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, clap::ValueEnum, strum::IntoStaticStr,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Enforce {
    /// Answer with an error; the trial is errored
    Refuse,
    /// Ask the service for the model of the run
    Rewrite,
}

crate::word::word!(Enforce);

/// The limits of a gateway's requests.
#[derive(Debug, Default)]
pub struct Guard {
    /// The model that the run requests, and the treatment of requests for other models.
    pub model: Option<(Enforce, String)>,
    /// The limits of tokens and of cost.
    pub budget: Option<Budget>,
}

/// The limits of tokens and of cost, and the channel that receives the exceeded limit.
#[derive(Debug)]
pub struct Budget {
    /// The limits; only `tokens` and `cost-usd` are used.
    pub limits: Limits,
    /// Gets the key and the value of the limit.
    pub exceeded: watch::Sender<Option<(LimitKey, String)>>,
}

/// A decision about a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Allowed {
    /// The request is sent unchanged.
    Yes,
    /// The request is sent with this model instead of the requested one.
    With(String),
    /// The request is refused, because of its model.
    OtherModel(String),
    /// The request is refused, because this limit is exceeded.
    Beyond(LimitKey, String),
}

impl Guard {
    /// Decides about a request that no API describes, or for a count of tokens. `asked` is the model that it names.
    pub fn decide_other(&self, asked: Option<&str>, totals: &Totals) -> Allowed {
        if let Some((key, limit)) = self.budget.as_ref().and_then(|budget| exceeded(&budget.limits, totals)) {
            return Allowed::Beyond(key, limit);
        }
        match (&self.model, asked) {
            (Some((_, wanted)), Some(asked)) if !models::same(wanted, asked) => {
                Allowed::OtherModel(format!("the agent asked for model `{asked}`, and the run asks for `{wanted}`"))
            }
            _ => Allowed::Yes,
        }
    }

    /// Decides about a request for a model's answer.
    pub fn decide(&self, asked: Option<&str>, totals: &Totals) -> Allowed {
        if let Some((key, limit)) = self.budget.as_ref().and_then(|budget| exceeded(&budget.limits, totals)) {
            return Allowed::Beyond(key, limit);
        }
        let Some((enforce, wanted)) = &self.model else { return Allowed::Yes };
        match asked {
            Some(asked) if models::same(wanted, asked) => Allowed::Yes,
            _ if *enforce == Enforce::Rewrite => Allowed::With(wanted.clone()),
            asked => {
                let asked = asked.map_or_else(|| "no model".to_owned(), |asked| format!("model `{asked}`"));
                Allowed::OtherModel(format!("the agent asked for {asked}, and the run asks for `{wanted}`"))
            }
        }
    }
}

/// Returns the first limit that is exceeded.
fn exceeded(limits: &Limits, totals: &Totals) -> Option<(LimitKey, String)> {
    if let Some(limit) = limits.tokens.filter(|limit| totals.tokens() > *limit) {
        return Some((LimitKey::Tokens, limit.to_string()));
    }
    let limit = limits.cost_usd.map(Dollars::get)?;
    let cost = totals.cost_usd()?;
    tolerance::exceeds(cost.value(), limit).then(|| (LimitKey::CostUsd, limit.to_string()))
}

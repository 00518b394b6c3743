//! Keeps the tokens of each model apart, so that each has its own price.

use std::collections::{BTreeMap, BTreeSet};

use super::{Usage, UsageScope, UsageTotal, lacks_cost};

/// The tokens of a trial by the model that used them.
#[derive(Debug, Clone, PartialEq)]
pub enum Spent {
    /// All reports are about one model; `None` if they name none.
    One(Option<String>),
    /// The tokens of each of several models; the name is absent for reports that name none.
    Each(Vec<(Option<String>, UsageTotal)>),
    /// Reports of several models, without the tokens of each.
    Mixed,
}

/// The reports of tokens by the models that they name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ByModel {
    names: BTreeSet<Option<String>>,
    turns: BTreeMap<Option<String>, UsageTotal>,
    calls: BTreeMap<Option<String>, UsageTotal>,
    /// True if a report counted the whole session.
    of_session: bool,
    /// True if the last report of the session has tokens of several models and no cost.
    is_mixed: bool,
    /// True if another model went on after the agent had begun its work.
    has_changed: bool,
}

impl ByModel {
    /// Adds the token counts of a usage event.
    pub(super) fn add(&mut self, usage: &Usage) {
        self.names.insert(usage.model.clone());
        let sums = match usage.scope {
            UsageScope::Session => {
                self.of_session = true;
                self.is_mixed = lacks_cost(usage);
                return;
            }
            UsageScope::Turn => &mut self.turns,
            UsageScope::Call => &mut self.calls,
        };
        sums.entry(usage.model.clone()).or_default().sum(usage);
    }

    /// Takes the news that another model goes on. A report that names no model may then be about either.
    pub(super) fn changed(&mut self) {
        self.has_changed = true;
    }

    /// Returns the tokens by model. `effective` is the model of reports that name none.
    pub(super) fn spent(&self, effective: Option<&str>) -> Spent {
        let named = |name: &Option<String>| name.clone().or_else(|| effective.map(str::to_owned));
        let names: BTreeSet<Option<String>> = self.names.iter().map(named).collect();
        if self.is_mixed || (self.has_changed && self.names.contains(&None)) {
            return Spent::Mixed;
        }
        if names.len() <= 1 {
            return Spent::One(names.into_iter().next().flatten().or_else(|| named(&None)));
        }
        let sums = match (self.of_session, self.turns.is_empty(), self.calls.is_empty()) {
            (false, false, true) => &self.turns,
            (false, true, false) => &self.calls,
            _ => return Spent::Mixed,
        };
        Spent::Each(sums.iter().map(|(name, total)| (named(name), total.clone())).collect())
    }
}

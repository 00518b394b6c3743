//! Calibration of judges that compare: their agreement with people about pairs, and the effect of the order of the
//! sides.

use serde::{Deserialize, Serialize};

use super::calibration::{Rate, wilson};
use crate::grade::judge_record::PairOutcome;
use crate::statistics::{LEVEL, agreement};

/// The judges' outcomes for pairs with one label by people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OutcomeCounts {
    /// The trace is better than the reference.
    pub better: u64,
    /// The trace is worse.
    pub worse: u64,
    /// Both are equally good.
    pub tie: u64,
    /// No outcome, or different outcomes in the two orders.
    pub unknown: u64,
}

/// The outcomes of people and of judges about the same pairs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pairs {
    /// Pairs that people label `better`.
    pub better: OutcomeCounts,
    /// Pairs that people label `worse`.
    pub worse: OutcomeCounts,
    /// Pairs that people label `tie`.
    pub tie: OutcomeCounts,
    /// The share of pairs with a known outcome on which judges agree with people; Wilson.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Rate>,
    /// Cohen's kappa of the three outcomes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kappa: Option<Rate>,
    /// The effect of the order.
    #[serde(default)]
    pub orders: Orders,
}

/// Counts of each judge's outcomes in both orders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Orders {
    /// Pairs with a known outcome in each order.
    pub asked: u64,
    /// Pairs with the same outcome in both orders.
    pub same: u64,
    /// Pairs in which the judge preferred the first side in both orders.
    pub first: u64,
    /// Pairs in which the judge preferred the second side in both orders.
    pub second: u64,
    /// The share of pairs with the same outcome in both orders, with its Wilson interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consistency: Option<Rate>,
}

impl OutcomeCounts {
    fn add(&mut self, outcome: PairOutcome) {
        *match outcome {
            PairOutcome::Better => &mut self.better,
            PairOutcome::Worse => &mut self.worse,
            PairOutcome::Tie => &mut self.tie,
            PairOutcome::Unknown => &mut self.unknown,
        } += 1;
    }

    fn decided_counts(&self) -> Vec<u64> {
        vec![self.better, self.worse, self.tie]
    }
}

impl Pairs {
    /// Adds the judges' outcome of a pair, and the label by people, which is always known.
    pub fn add(&mut self, judges: PairOutcome, people: PairOutcome) {
        match people {
            PairOutcome::Better => self.better.add(judges),
            PairOutcome::Worse => self.worse.add(judges),
            PairOutcome::Tie => self.tie.add(judges),
            PairOutcome::Unknown => {}
        }
    }

    /// Adds one judge's outcomes of a pair in both orders, from the candidate's side, which is shown first in
    /// the first order.
    pub fn add_orders(&mut self, [one, other]: [PairOutcome; 2]) {
        use PairOutcome::{Better, Unknown, Worse};
        if one == Unknown || other == Unknown {
            return;
        }
        self.orders.asked += 1;
        self.orders.same += u64::from(one == other);
        self.orders.first += u64::from((one, other) == (Better, Worse));
        self.orders.second += u64::from((one, other) == (Worse, Better));
    }

    /// Adds the figures that follow from the counts.
    #[must_use]
    pub fn measured(mut self) -> Self {
        let table = [self.better.decided_counts(), self.worse.decided_counts(), self.tie.decided_counts()];
        let same: u64 = table.iter().enumerate().filter_map(|(n, row)| row.get(n)).sum();
        self.agreement = wilson(same, table.iter().flatten().sum());
        self.kappa = agreement::cohen(&table, LEVEL)
            .and_then(|kappa| Some(Rate::new(kappa.kappa?, kappa.interval.map(|it| it.within(-1.0, 1.0)))));
        self.orders.consistency = wilson(self.orders.same, self.orders.asked);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_order_did_is_counted_apart_from_what_people_say() {
        use PairOutcome::{Better, Tie, Unknown, Worse};
        let mut pairs = Pairs::default();
        for orders in [[Better, Better], [Better, Worse], [Worse, Better], [Tie, Worse], [Unknown, Better]] {
            pairs.add_orders(orders);
        }
        for (judges, people) in [(Better, Better), (Worse, Better), (Tie, Tie), (Unknown, Worse), (Worse, Worse)] {
            pairs.add(judges, people);
        }
        let Pairs { orders, agreement, .. } = pairs.measured();
        assert_eq!((orders.asked, orders.same, orders.first, orders.second), (4, 1, 1, 1));
        assert_eq!(orders.consistency.unwrap().value, 0.25);
        assert_eq!(agreement.unwrap().value, 0.75, "three of the four of which it could tell");
        assert_eq!(Pairs::default().measured(), Pairs::default(), "of nothing nothing is known");
    }
}

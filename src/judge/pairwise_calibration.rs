//! Judges that compare, held beside people who compared the same: who is better by whom, and whether the order decided it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calibration::{Rate, wilson};
use crate::grade::judge_record::PairOutcome;
use crate::statistics::agreement;
use crate::statistics::{Interval, LEVEL};

/// What judges say of pairs of which people say one thing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SaidOfPairs {
    /// That it is better than what it is held against.
    pub better: u64,
    /// That it is worse.
    pub worse: u64,
    /// That one is as good as the other.
    pub tie: u64,
    /// That nobody could tell, or one thing in one order and another in the other.
    pub unknown: u64,
}

/// What people say of pairs, and what judges say of the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pairs {
    /// Pairs of which people say `better`.
    pub better: SaidOfPairs,
    /// Pairs of which people say `worse`.
    pub worse: SaidOfPairs,
    /// Pairs of which people say `tie`.
    pub tie: SaidOfPairs,
    /// Of the pairs of which judges could tell, the share of which they say what people say; Wilson.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Rate>,
    /// Cohen's kappa of the three words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kappa: Option<Rate>,
    /// What the order did.
    #[serde(default)]
    pub orders: Orders,
}

/// What one judge says of one pair in both orders, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Orders {
    /// Of how many it could tell in each order.
    pub asked: u64,
    /// Where it said the same in both.
    pub same: u64,
    /// Where it preferred what stood first, in both.
    pub first: u64,
    /// Where it preferred what stood second, in both.
    pub second: u64,
    /// The share of the same; Wilson.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consistency: Option<Rate>,
}

impl SaidOfPairs {
    fn add(&mut self, said: PairOutcome) {
        *match said {
            PairOutcome::Better => &mut self.better,
            PairOutcome::Worse => &mut self.worse,
            PairOutcome::Tie => &mut self.tie,
            PairOutcome::Unknown => &mut self.unknown,
        } += 1;
    }

    fn told(&self) -> Vec<u64> {
        vec![self.better, self.worse, self.tie]
    }
}

impl Pairs {
    /// Adds what judges say of a pair, and what people say of it. People can always tell.
    pub fn add(&mut self, judges: PairOutcome, people: PairOutcome) {
        match people {
            PairOutcome::Better => self.better.add(judges),
            PairOutcome::Worse => self.worse.add(judges),
            PairOutcome::Tie => self.tie.add(judges),
            PairOutcome::Unknown => {}
        }
    }

    /// Adds what one judge says of a pair in each order, from the side of the one that is judged, which stands first in the
    /// first of them.
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

    /// The same with what follows from the counts.
    #[must_use]
    pub fn measured(mut self) -> Self {
        let table = [self.better.told(), self.worse.told(), self.tie.told()];
        let same: u64 = table.iter().enumerate().filter_map(|(n, row)| row.get(n)).sum();
        self.agreement = wilson(same, table.iter().flatten().sum());
        self.kappa = agreement::cohen(&table, LEVEL).and_then(|kappa| {
            let Interval { low, high } = kappa.interval?.within(-1.0, 1.0);
            Some(Rate { value: kappa.kappa?, low, high })
        });
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

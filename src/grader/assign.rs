//! Assigns different calls to each of several wants (demands for calls): a maximum bipartite matching by augmenting
//! paths.

use std::collections::HashMap;

/// Assigns candidates to each want: as many different ones as the want demands, or none if they do not suffice.
///
/// First fit would miss solutions: a call that two wants could take must go to the want that has no alternative.
/// Wants that demand less go first: if each demands one call, as many as possible are met. If all can be met, all are
/// met.
pub fn assign(wants: &[Want<'_>]) -> Vec<Option<Vec<u64>>> {
    let mut order: Vec<usize> = (0..wants.len()).collect();
    order.sort_by_key(|n| wants[*n].demand);
    let mut owner: HashMap<u64, usize> = HashMap::new();
    let mut is_met = vec![false; wants.len()];
    for want in order {
        let before = owner.clone();
        is_met[want] = (0..wants[want].demand).all(|_| augment(want, wants, &mut owner, &mut vec![false; wants.len()]));
        if !is_met[want] {
            owner = before;
        }
    }
    let mut given: Vec<Option<Vec<u64>>> = is_met.iter().map(|is_met| is_met.then(Vec::new)).collect();
    for (call, want) in owner {
        if let Some(calls) = &mut given[want] {
            calls.push(call);
        }
    }
    given.iter_mut().flatten().for_each(|calls| calls.sort_unstable());
    given
}

/// A want: a demand for calls.
#[derive(Debug, Clone, Copy)]
pub struct Want<'a> {
    /// The number of calls.
    pub demand: usize,
    /// The calls that are acceptable.
    pub candidates: &'a [u64],
}

/// Finds one more call for a want, by moving other wants to alternative calls.
fn augment(want: usize, wants: &[Want<'_>], owner: &mut HashMap<u64, usize>, asked: &mut [bool]) -> bool {
    asked[want] = true;
    let candidates = wants[want].candidates;
    if let Some(free) = candidates.iter().find(|call| !owner.contains_key(call)) {
        owner.insert(*free, want);
        return true;
    }
    for call in candidates {
        let Some(&holder) = owner.get(call) else { continue };
        // Each want is visited once, and then releases any call that it can, so the depth is at most the number of
        // wants.
        if !asked[holder] && augment(holder, wants, owner, asked) {
            owner.insert(*call, want);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wants(candidates: &[Vec<u64>], demands: &[usize]) -> Vec<Option<Vec<u64>>> {
        let wants: Vec<Want<'_>> =
            candidates.iter().zip(demands).map(|(candidates, demand)| Want { demand: *demand, candidates }).collect();
        assign(&wants)
    }

    /// Returns the maximum number of wants that can be met at once, by trying all combinations.
    fn brute(candidates: &[Vec<u64>], demands: &[usize], taken: &mut Vec<u64>) -> usize {
        let Some((demand, demands)) = demands.split_first() else { return 0 };
        let (own, rest) = candidates.split_first().unwrap();
        let mut best = brute(rest, demands, taken);
        for subset in 0_u32..1 << own.len() {
            let chosen: Vec<u64> =
                own.iter().enumerate().filter(|(n, _)| subset & (1 << n) != 0).map(|(_, call)| *call).collect();
            if chosen.len() == *demand && chosen.iter().all(|call| !taken.contains(call)) {
                let before = taken.len();
                taken.extend(&chosen);
                best = best.max(1 + brute(rest, demands, taken));
                taken.truncate(before);
            }
        }
        best
    }

    fn graph() -> impl Strategy<Value = Vec<Vec<u64>>> {
        let candidates = proptest::collection::btree_set(0_u64..6, 0..5).prop_map(|set| set.into_iter().collect());
        proptest::collection::vec(candidates, 0..5)
    }

    #[test]
    fn a_call_goes_to_the_want_that_has_no_other() {
        assert_eq!(wants(&[vec![1, 2], vec![1]], &[1, 1]), [Some(vec![2]), Some(vec![1])]);
        assert_eq!(wants(&[vec![1], vec![1]], &[1, 1]), [Some(vec![1]), None]);
        assert_eq!(wants(&[vec![1, 2, 3], vec![1, 2, 3]], &[2, 1]), [Some(vec![2, 3]), Some(vec![1])]);
        assert_eq!(wants(&[vec![1]], &[0]), [Some(vec![])]);
    }

    proptest! {
        #[test]
        fn one_call_each_is_a_maximum_matching(candidates in graph()) {
            let demands = vec![1; candidates.len()];
            let size = wants(&candidates, &demands).into_iter().flatten().count();
            prop_assert_eq!(size, brute(&candidates, &demands, &mut Vec::new()));
        }

        #[test]
        fn all_are_met_whenever_that_is_possible(candidates in graph(), demands in proptest::collection::vec(0_usize..3, 5)) {
            let demands = &demands[..candidates.len()];
            let given = wants(&candidates, demands);
            let possible = brute(&candidates, demands, &mut Vec::new()) == candidates.len();
            prop_assert_eq!(given.iter().all(Option::is_some), possible);
            let mut taken: Vec<u64> = Vec::new();
            for ((calls, own), demand) in given.iter().zip(&candidates).zip(demands) {
                let Some(calls) = calls else { continue };
                prop_assert_eq!(calls.len(), *demand);
                prop_assert!(calls.iter().all(|call| own.contains(call)));
                taken.extend(calls);
            }
            let count = taken.len();
            taken.sort_unstable();
            taken.dedup();
            prop_assert_eq!(taken.len(), count, "no call is given twice");
        }

        #[test]
        fn the_first_candidates_suffice(candidates in graph()) {
            let demands = vec![1; candidates.len()];
            let cut: Vec<Vec<u64>> =
                candidates.iter().map(|own| own.iter().copied().take(demands.len()).collect()).collect();
            prop_assert_eq!(
                wants(&candidates, &demands).iter().flatten().count(),
                wants(&cut, &demands).iter().flatten().count()
            );
        }
    }
}

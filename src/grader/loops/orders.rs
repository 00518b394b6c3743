//! Counts repetitions of calls. Calls of one step have no order, so the order with the fewest repetitions counts.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::repeats::{Run, Worst};
use super::{ComparedCall, Equality, MAX_BLOCK_CALLS};

/// The maximum number of beginnings that are followed while every order is tried.
const EXACT: usize = 1000;
/// The maximum number of beginnings that are followed otherwise.
const SOME: usize = 32;
/// The maximum number of different calls of a step whose orders are tried.
const DIFFERENT: usize = 12;
/// The maximum number of continuations that are tried with every order, and with some. A session may have any number of
/// parallel calls.
const WORK: [u64; 2] = [200_000, 400_000];

/// The orders of the calls until now.
#[derive(Clone)]
pub struct Orders {
    /// The beginnings that are followed: all, or some of them if there are too many.
    found: Vec<Beginning>,
    /// All orders of the last steps, if `found` holds only some beginnings. Whatever occurs in each of them occurs in every
    /// order of all steps.
    window: Option<Vec<Beginning>>,
    /// The calls that occur in every order of the steps before the window.
    before: Option<Arc<Worst>>,
    work: u64,
}

impl Default for Orders {
    fn default() -> Self {
        Self { found: vec![Beginning::default()], window: None, before: None, work: 0 }
    }
}

/// Calls in one order, as far as later repetitions depend on them.
#[derive(Clone, Default)]
struct Beginning {
    last: VecDeque<Arc<ComparedCall>>,
    /// For blocks of 1, 2, 3 and 4 calls: the run of calls that each equal the call one block before.
    runs: [Run; MAX_BLOCK_CALLS],
    worst: Option<Arc<Worst>>,
}

impl Beginning {
    fn add(&mut self, call: &Arc<ComparedCall>, equality: Equality) {
        for (n, run) in self.runs.iter_mut().enumerate() {
            let block = n + 1;
            let before = self.last.len().checked_sub(block).and_then(|at| self.last.get(at));
            let is_same = before.is_some_and(|before| equality.holds(before, call));
            let last = |count: usize| self.last.iter().skip(self.last.len().saturating_sub(count));
            run.add(is_same, || last(block).map(|call| call.seq).collect(), std::iter::once(call.seq));
            let labels = || last(block - 1).chain([call]).map(|call| call.label.clone()).collect();
            run.is_worst_of(&mut self.worst, block, labels);
        }
        self.last.push_back(Arc::clone(call));
        if self.last.len() > MAX_BLOCK_CALLS {
            self.last.pop_front();
        }
    }

    fn times(&self) -> u64 {
        self.worst.as_ref().map_or(0, |worst| worst.times)
    }

    /// Returns the part that later repetitions depend on, besides the calls that are left.
    fn key(&self) -> (Vec<u128>, [u64; MAX_BLOCK_CALLS]) {
        (self.last.iter().map(|call| call.same).collect(), self.runs.each_ref().map(|run| run.length))
    }

    /// Returns how near the next repetitions are.
    fn rank(&self) -> (u64, u64) {
        (self.times(), self.runs.iter().map(|run| run.length).sum())
    }
}

/// The interchangeable calls of a step.
type Same = Vec<Arc<ComparedCall>>;

impl Orders {
    /// Adds the next step.
    pub fn step(&mut self, calls: &[Arc<ComparedCall>], equality: Equality) {
        let mut groups: Vec<Same> = Vec::new();
        let mut places: HashMap<u128, usize> = HashMap::new();
        for call in calls {
            let place = *places.entry(call.same).or_insert(groups.len());
            match groups.get_mut(place) {
                Some(group) => group.push(Arc::clone(call)),
                None => groups.push(vec![Arc::clone(call)]),
            }
        }
        let [exact_work, some_work] = WORK;
        let is_few = groups.len() <= DIFFERENT;
        let may_try_all = groups.len() == 1 || (is_few && self.work < exact_work);
        let source = self.window.as_ref().unwrap_or(&self.found);
        let all = match may_try_all {
            true => continued(source, &groups, EXACT, equality, &mut self.work).ok(),
            false => None,
        };
        match (all, &self.window) {
            (Some(all), None) => {
                self.found = all;
                return;
            }
            (Some(all), Some(_)) => self.window = Some(all),
            (None, _) => {
                // Every order has at least the repetitions that each order until here has.
                let fewest = best(source).and_then(|it| it.worst.clone());
                if fewest.as_ref().map(|worst| worst.times) > self.before.as_ref().map(|worst| worst.times) {
                    self.before = fewest;
                }
                self.window = Some(vec![Beginning::default()]);
            }
        }
        let tries = is_few && self.work < some_work;
        let some =
            if tries { continued(&self.found, &groups, SOME, equality, &mut self.work) } else { Err(Vec::new()) };
        self.found = match some {
            Ok(found) => found,
            Err(found) if !found.is_empty() => found,
            // Too many orders: that of the trace.
            Err(_) => {
                let mut found = best(&self.found).cloned().unwrap_or_default();
                calls.iter().for_each(|call| found.add(call, equality));
                vec![found]
            }
        };
    }

    /// Ends every run: something unknown comes before the next step.
    pub fn separate(&mut self) {
        for beginning in self.found.iter_mut().chain(self.window.iter_mut().flatten()) {
            beginning.last.clear();
            beginning.runs = <[Run; MAX_BLOCK_CALLS]>::default();
        }
    }

    /// Returns the most frequent repetition of the best order that was found.
    pub fn at_most(&self) -> Option<&Worst> {
        best(&self.found).and_then(|it| it.worst.as_deref())
    }

    /// Returns the most frequent repetition that occurs in every order.
    pub fn at_least(&self) -> Option<&Worst> {
        let window = best(self.window.as_ref().unwrap_or(&self.found)).and_then(|it| it.worst.as_deref());
        window.into_iter().chain(self.before.as_deref()).max_by_key(|worst| worst.times)
    }
}

/// Returns the beginning with the fewest repetitions.
fn best(all: &[Beginning]) -> Option<&Beginning> {
    all.iter().min_by_key(|it| it.times())
}

/// Continues beginnings by the calls of a step, in every order. If there are too many beginnings, it continues the best
/// ones, and returns them as an error.
fn continued(
    from: &[Beginning],
    groups: &[Same],
    most: usize,
    equality: Equality,
    work: &mut u64,
) -> Result<Vec<Beginning>, Vec<Beginning>> {
    if let ([only], [group]) = (from, groups) {
        let mut more = only.clone();
        group.iter().for_each(|call| more.add(call, equality));
        return Ok(vec![more]);
    }
    let calls: usize = groups.iter().map(Vec::len).sum();
    // Each beginning, with the number of calls that it has of each group.
    let mut all: Vec<(Beginning, Vec<usize>)> = from.iter().map(|it| (it.clone(), vec![0; groups.len()])).collect();
    let mut is_complete = true;
    for _ in 0..calls {
        let mut next: HashMap<_, (Beginning, Vec<usize>)> = HashMap::new();
        for (beginning, taken) in &all {
            for (n, group) in groups.iter().enumerate() {
                let Some(call) = taken.get(n).and_then(|count| group.get(*count)) else { continue };
                *work += 1;
                let mut more = beginning.clone();
                more.add(call, equality);
                let mut taken = taken.clone();
                taken.iter_mut().skip(n).take(1).for_each(|count| *count += 1);
                match next.entry((more.key(), taken.clone())) {
                    Entry::Occupied(mut known) if more.times() < known.get().0.times() => {
                        known.insert((more, taken));
                    }
                    Entry::Occupied(_) => {}
                    Entry::Vacant(free) => {
                        free.insert((more, taken));
                    }
                }
            }
        }
        all = next.into_values().collect();
        // The grade must not depend on the order of a map.
        all.sort_by_cached_key(|(it, taken)| (it.rank(), it.key(), taken.clone()));
        if all.len() > most {
            is_complete = false;
            if most == EXACT {
                return Err(Vec::new());
            }
            all.truncate(most);
        }
    }
    let all = all.into_iter().map(|(it, _)| it).collect();
    if is_complete { Ok(all) } else { Err(all) }
}

//! Finds the difference between two lists: which items were kept, removed and added.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Instant;

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// Returns the steps from one list to another. After the deadline, the rest is compared coarsely: as removed and added.
///
/// Items are compared by numbers, so that the search is compiled once for all types.
pub fn between<T: Eq + Hash>(old: &[T], new: &[T], deadline: Option<Instant>) -> Vec<DiffOp> {
    let mut known: HashMap<&T, usize> = HashMap::new();
    let mut numbers = |item| {
        let next = known.len();
        *known.entry(item).or_insert(next)
    };
    let old: Vec<usize> = old.iter().map(&mut numbers).collect();
    let new: Vec<usize> = new.iter().map(&mut numbers).collect();
    capture_diff_slices_deadline(Algorithm::Myers, &old, &new, deadline)
}

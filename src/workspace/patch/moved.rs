//! Finds the files that a patch moves: a deleted file and a created one, whose lines are equal or similar. Pure.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The maximum number of pairs of files that are compared. Beyond it, only equal files are found.
const MAX_COMPARED: usize = 10_000;

/// Returns for each created file that was moved the deleted file that it was, as indices. Of similar files, at least half of the
/// bytes are in lines that both have, as git counts renames.
pub fn moved(deleted: &[Vec<&[u8]>], created: &[Vec<&[u8]>]) -> BTreeMap<usize, usize> {
    let are_few = deleted.len().saturating_mul(created.len()) <= MAX_COMPARED;
    let mut pairs = Vec::new();
    for (old_at, old) in deleted.iter().enumerate() {
        for (new_at, new) in created.iter().enumerate() {
            let most = bytes(old).max(bytes(new));
            let common = match old == new {
                true => most,
                false if are_few => common(old, new),
                false => 0,
            };
            if most > 0 && common.saturating_mul(2) >= most {
                pairs.push((Reverse(common.saturating_mul(1000) / most), old_at, new_at));
            }
        }
    }
    pairs.sort_unstable();
    let (mut found, mut taken) = (BTreeMap::new(), BTreeSet::new());
    for (_, old, new) in pairs {
        if !taken.contains(&old) && !found.contains_key(&new) {
            taken.insert(old);
            found.insert(new, old);
        }
    }
    found
}

fn bytes(lines: &[&[u8]]) -> usize {
    lines.iter().map(|line| line.len()).sum()
}

/// Returns the number of bytes in lines that both files have.
fn common(old: &[&[u8]], new: &[&[u8]]) -> usize {
    let mut left: HashMap<&[u8], usize> = HashMap::new();
    for line in old {
        *left.entry(*line).or_default() += 1;
    }
    let mut sum = 0;
    for line in new {
        if let Some(count) = left.get_mut(line).filter(|count| **count > 0) {
            *count -= 1;
            sum += line.len();
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_and_similar_files_are_moved() {
        let file = |lines: &[&'static str]| lines.iter().map(|line| line.as_bytes()).collect::<Vec<&[u8]>>();
        let old = [file(&["def a():\n", "    return 1\n"]), file(&["x = 1\n", "y = 2\n"]), file(&["other\n"])];
        let new = [file(&["x = 1\n", "z = 3\n"]), file(&["def a():\n", "    return 1\n"]), file(&["new\n"]), file(&[])];
        assert_eq!(moved(&old, &new), BTreeMap::from([(0, 1), (1, 0)]));
        assert_eq!(moved(&old, &[]), BTreeMap::new());
        // A file is moved once.
        let twice = [old[0].clone(), old[0].clone()];
        assert_eq!(moved(&old[..1], &twice), BTreeMap::from([(0, 0)]));
    }
}

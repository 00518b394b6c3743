//! Finds cases that have almost the same prompt and the same workspace. Pure.

use std::collections::{BTreeSet, HashMap, HashSet};

/// The Jaccard similarity from which two prompts are near duplicates, as a fraction: 0.8.
const SIMILAR: (usize, usize) = (4, 5);
/// The number of words that are compared as one.
const SHINGLE: usize = 3;

/// The parts of a case that are compared with other cases.
#[derive(Debug, Clone)]
pub struct Compared {
    /// All prompts of the case, in order.
    pub prompt: String,
    /// The digest of the workspace.
    pub workspace: String,
}

/// A case that is a near duplicate of an earlier one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Duplicate {
    /// The number of the case.
    pub case: usize,
    /// The number of the first earlier case that it is similar to.
    pub of: usize,
    /// The Jaccard similarity of their sets of shingles.
    pub similarity: f64,
}

/// Returns a finding for each case that is a near duplicate of an earlier one, with the first such case.
///
/// The search is exact. Two sets with a similarity of at least [`SIMILAR`] share a shingle among the rarest of each, so
/// only these are indexed (prefix filtering, Chaudhuri et al. 2006), and only cases with the same workspace are compared.
pub fn near_duplicates(cases: &[Compared]) -> Vec<Duplicate> {
    let mut groups: HashMap<&str, Vec<usize>> = HashMap::new();
    for (number, case) in cases.iter().enumerate() {
        groups.entry(&case.workspace).or_default().push(number);
    }
    let mut found: Vec<Duplicate> =
        groups.values().filter(|group| group.len() > 1).flat_map(|group| within(cases, group)).collect();
    found.sort_by_key(|duplicate| duplicate.case);
    found
}

/// Returns the near duplicates among cases with the same workspace.
fn within(cases: &[Compared], group: &[usize]) -> Vec<Duplicate> {
    let mut numbers: HashMap<u64, u32> = HashMap::new();
    let mut frequency: Vec<u32> = Vec::new();
    let mut sets: Vec<Vec<u32>> = Vec::new();
    for case in group.iter().filter_map(|number| cases.get(*number)) {
        let mut set = Vec::new();
        for shingle in shingles(&case.prompt) {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            let number = *numbers.entry(shingle).or_insert(next);
            if number == next {
                frequency.push(0);
            }
            if let Some(count) = frequency.get_mut(number as usize) {
                *count += 1;
            }
            set.push(number);
        }
        sets.push(set);
    }
    // The rarest first; the order must be the same in all sets.
    let rank = |number: &u32| (frequency.get(*number as usize).copied().unwrap_or_default(), *number);
    sets.iter_mut().for_each(|set| set.sort_by_key(rank));
    let mut index: HashMap<u32, Vec<usize>> = HashMap::new();
    let mut found = Vec::new();
    for (at, set) in sets.iter().enumerate() {
        let prefix = prefix(set);
        let lists: Vec<&Vec<usize>> = prefix.iter().filter_map(|shingle| index.get(shingle)).collect();
        let mut first: Option<(usize, f64)> = None;
        let mut seen: HashSet<usize> = HashSet::new();
        for list in lists {
            for other in list.iter().take_while(|other| first.is_none_or(|(best, _)| **other < best)) {
                let Some(earlier) = sets.get(*other).filter(|_| seen.insert(*other)) else { continue };
                if let Some(similarity) = jaccard(set, earlier, rank) {
                    first = Some((*other, similarity));
                    break;
                }
            }
        }
        if let Some((other, similarity)) = first
            && let (Some(case), Some(of)) = (group.get(at), group.get(other))
        {
            found.push(Duplicate { case: *case, of: *of, similarity });
        }
        for shingle in prefix {
            index.entry(*shingle).or_default().push(at);
        }
    }
    found
}

/// Returns the rarest shingles of a set: of two similar sets, each shares one of them with the other.
fn prefix(set: &[u32]) -> &[u32] {
    let shared = (SIMILAR.0 * set.len()).div_ceil(SIMILAR.1);
    set.get(..(set.len() + 1).saturating_sub(shared).min(set.len())).unwrap_or(set)
}

/// Returns the Jaccard similarity of two sets in the same order if it reaches [`SIMILAR`].
fn jaccard<K: Ord>(a: &[u32], b: &[u32], rank: impl Fn(&u32) -> K) -> Option<f64> {
    let (mut shared, mut missed) = (0_usize, 0_usize);
    // Shared and missed shingles are the union: with a share s of shared ones, missed / (|a| + |b|) is (1 - s) / (1 + s).
    let most_missed = (a.len() + b.len()) * (SIMILAR.1 - SIMILAR.0) / (SIMILAR.1 + SIMILAR.0);
    if a.len().abs_diff(b.len()) > most_missed {
        return None;
    }
    let (mut left, mut right) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(x), Some(y)) = (left.peek(), right.peek()) {
        match rank(x).cmp(&rank(y)) {
            std::cmp::Ordering::Equal => {
                shared += 1;
                left.next();
                right.next();
            }
            std::cmp::Ordering::Less => {
                missed += 1;
                left.next();
            }
            std::cmp::Ordering::Greater => {
                missed += 1;
                right.next();
            }
        }
        if missed > most_missed {
            return None;
        }
    }
    let union = a.len() + b.len() - shared;
    (shared * SIMILAR.1 >= union * SIMILAR.0).then(|| shared as f64 / union as f64)
}

/// Returns the shingles of a text: triples of words, without case and punctuation. A text without letters and digits is
/// one shingle.
fn shingles(text: &str) -> BTreeSet<u64> {
    let words: Vec<String> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    let words = if words.is_empty() { vec![text.trim().to_owned()] } else { words };
    let size = SHINGLE.min(words.len());
    let hash = |words: &[String]| {
        let digest = blake3::hash(words.join(" ").as_bytes());
        let mut first = [0; 8];
        first.copy_from_slice(digest.as_bytes().split_at(8).0);
        u64::from_le_bytes(first)
    };
    words.windows(size).map(hash).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(prompt: &str, workspace: &str) -> Compared {
        Compared { prompt: prompt.to_owned(), workspace: workspace.to_owned() }
    }

    const LONG: &str = "The last element of the list is skipped when the total is computed. Fix the function in the file \
                        sum.py and run the tests until all of them pass.";

    #[test]
    fn the_first_similar_case_with_the_same_workspace_is_named() {
        let cases = [
            case(LONG, "a"),
            case(&LONG.to_uppercase(), "a"),
            case(LONG, "b"),
            case(&LONG.replace("all of them", "everything"), "a"),
            case("Something else entirely, with other words.", "a"),
            case("Fix", "c"),
            case("fix!", "c"),
        ];
        let found: Vec<(usize, usize)> = near_duplicates(&cases).iter().map(|it| (it.case, it.of)).collect();
        assert_eq!(found, [(1, 0), (3, 0), (6, 5)]);
        assert_eq!(near_duplicates(&cases)[0].similarity, 1.0);
    }

    #[test]
    fn the_similarity_is_that_of_the_sets_of_word_triples() {
        // 10 words have 8 triples. The last word changes one of them: 7 of 9.
        let cases = [case("a b c d e f g h i j", ""), case("a b c d e f g h i k", "")];
        assert_eq!(near_duplicates(&cases), []);
        // 11 words: 8 of 10.
        let cases = [case("a b c d e f g h i j k", ""), case("a b c d e f g h i j l", "")];
        assert_eq!(near_duplicates(&cases), [Duplicate { case: 1, of: 0, similarity: 0.8 }]);
    }

    #[test]
    fn the_index_finds_what_comparing_all_pairs_finds() {
        let mut random = crate::statistics::random::Generator::seeded(7);
        let mut prompts: Vec<Vec<usize>> = Vec::new();
        for _ in 0..300 {
            let words = match prompts.is_empty() || random.below(3) == 0 {
                true => (0..12 + random.below(30)).map(|_| random.below(40)).collect(),
                false => {
                    let mut words = prompts[random.below(prompts.len())].clone();
                    for _ in 0..random.below(3) {
                        let at = random.below(words.len());
                        words[at] = random.below(40);
                    }
                    words
                }
            };
            prompts.push(words);
        }
        let text = |words: &Vec<usize>| words.iter().map(|word| format!("w{word}")).collect::<Vec<_>>().join(" ");
        let cases: Vec<Compared> = prompts.iter().map(|words| case(&text(words), "")).collect();
        let sets: Vec<BTreeSet<u64>> = cases.iter().map(|case| shingles(&case.prompt)).collect();
        let similar = |a: usize, b: usize| {
            let shared = sets[a].intersection(&sets[b]).count() as f64;
            shared / sets[a].union(&sets[b]).count() as f64
        };
        let mut expected = Vec::new();
        for a in 0..cases.len() {
            if let Some(b) = (0..a).find(|b| similar(a, *b) >= 0.8) {
                expected.push(Duplicate { case: a, of: b, similarity: similar(a, b) });
            }
        }
        assert!(expected.len() > 20, "{}", expected.len());
        assert_eq!(near_duplicates(&cases), expected);
    }

    #[test]
    fn ten_thousand_cases_take_no_time_that_matters() {
        let of_tickets: Vec<Compared> = (0..10_000).map(|n| case(&format!("{LONG} See ticket {n}."), "")).collect();
        let others: Vec<Compared> = (0..10_000)
            .map(|n| {
                case(
                    &(0..40)
                        .map(|word| format!("w{}", (n * 31 + word * word * 7) % 5_003))
                        .collect::<Vec<_>>()
                        .join(" "),
                    "",
                )
            })
            .collect();
        let begun = std::time::Instant::now();
        assert_eq!(near_duplicates(&of_tickets).len(), 9_999);
        near_duplicates(&others);
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    }
}

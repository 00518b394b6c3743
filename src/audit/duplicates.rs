//! Finds cases that have almost the same prompt and almost the same workspace. Pure.

use std::collections::{BTreeSet, HashMap, HashSet};

/// The Jaccard similarity from which two prompts, or two workspaces, are near duplicates, as a fraction: 0.8.
const SIMILAR: (usize, usize) = (4, 5);
/// The number of words that are compared as one.
const SHINGLE: usize = 3;
/// The beginnings of lines that are comments in a common language.
const COMMENTS: [&str; 7] = ["#", "//", "/*", "*/", "* ", "--", "<!--"];

/// The parts of a case that are compared with other cases.
#[derive(Debug, Clone)]
pub struct Compared {
    /// All prompts of the case, in order.
    pub prompt: String,
    /// The digest of the workspace.
    pub workspace: String,
    /// The digests of the lines in the workspace, by [`lines`]. If empty, only an equal workspace is similar.
    pub lines: BTreeSet<u64>,
}

/// A case that is a near duplicate of an earlier one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Duplicate {
    /// The number of the case.
    pub case: usize,
    /// The number of the first earlier case that it is similar to.
    pub of: usize,
    /// The Jaccard similarity of the prompts' sets of shingles.
    pub similarity: f64,
    /// The Jaccard similarity of the workspaces' sets of lines. 1 if the workspaces are equal.
    pub workspaces: f64,
}

/// Returns a finding for each case that is a near duplicate of an earlier one, with the first such case.
///
/// The search is exact. Two sets with a similarity of at least [`SIMILAR`] share an item among the rarest of each, so
/// only these are indexed (prefix filtering, Chaudhuri et al. 2006). Prompts are compared only among cases whose
/// workspaces are connected by similar ones.
pub fn near_duplicates(cases: &[Compared]) -> Vec<Duplicate> {
    let mut digests: HashMap<&str, usize> = HashMap::new();
    let mut distinct: Vec<&BTreeSet<u64>> = Vec::new();
    let mut workspaces: Vec<usize> = Vec::new();
    for case in cases {
        let number = *digests.entry(&case.workspace).or_insert(distinct.len());
        if number == distinct.len() {
            distinct.push(&case.lines);
        }
        workspaces.push(number);
    }
    let (sets, connected) = connected(&distinct);
    let mut groups: HashMap<usize, Vec<usize>> = HashMap::new();
    for (case, workspace) in workspaces.iter().enumerate() {
        groups.entry(connected.get(*workspace).copied().unwrap_or(*workspace)).or_default().push(case);
    }
    let near = |one: usize, other: usize| {
        let (one, other) = (workspaces.get(one)?, workspaces.get(other)?);
        if one == other { Some(1.0) } else { jaccard(sets.get(*one)?, sets.get(*other)?) }
    };
    let mut found: Vec<Duplicate> =
        groups.values().filter(|group| group.len() > 1).flat_map(|group| within(cases, group, near)).collect();
    found.sort_by_key(|duplicate| duplicate.case);
    found
}

/// Returns the sets, and for each the number of the first set with which similar ones connect it.
fn connected(sets: &[&BTreeSet<u64>]) -> (Vec<Vec<u32>>, Vec<usize>) {
    let ranked = ranked(sets.iter().copied());
    let mut above: Vec<usize> = (0..ranked.len()).collect();
    fn first(above: &mut [usize], mut at: usize) -> usize {
        while let Some(next) = above.get(at).copied().filter(|next| *next != at) {
            let further = above.get(next).copied().unwrap_or(next);
            if let Some(place) = above.get_mut(at) {
                *place = further;
            }
            at = next;
        }
        at
    }
    // For each item, lists of sets that are connected, so that a set is compared with none it is connected with.
    let mut index: HashMap<u32, Vec<Vec<usize>>> = HashMap::new();
    let is_similar = |one: &[u32], other: usize| ranked.get(other).is_some_and(|other| jaccard(one, other).is_some());
    for (at, set) in ranked.iter().enumerate() {
        for list in prefix(set).iter().filter_map(|item| index.get(item)).flatten() {
            let (one, two) = (first(&mut above, at), first(&mut above, list.first().copied().unwrap_or(at)));
            if one != two
                && list.iter().any(|other| is_similar(set, *other))
                && let Some(place) = above.get_mut(one.max(two))
            {
                *place = one.min(two);
            }
        }
        for item in prefix(set) {
            let lists = index.entry(*item).or_default();
            let own = first(&mut above, at);
            let list = lists.iter_mut().find(|list| list.first().is_some_and(|it| first(&mut above, *it) == own));
            match list {
                Some(list) => list.push(at),
                None => lists.push(vec![at]),
            }
        }
    }
    let connected = (0..ranked.len()).map(|at| first(&mut above, at)).collect();
    (ranked, connected)
}

/// Returns the near duplicates within a group of cases. `near` returns the similarity of the workspaces of two cases, or `None`
/// if they differ too much.
fn within(cases: &[Compared], group: &[usize], near: impl Fn(usize, usize) -> Option<f64>) -> Vec<Duplicate> {
    let shingles: Vec<BTreeSet<u64>> =
        group.iter().filter_map(|number| cases.get(*number)).map(|case| shingles(&case.prompt)).collect();
    let sets = ranked(shingles.iter());
    let mut index: HashMap<u32, Vec<usize>> = HashMap::new();
    let mut found = Vec::new();
    for (at, set) in sets.iter().enumerate() {
        let Some(case) = group.get(at).copied() else { continue };
        let prefix = prefix(set);
        let lists: Vec<&Vec<usize>> = prefix.iter().filter_map(|shingle| index.get(shingle)).collect();
        let mut first: Option<(usize, Duplicate)> = None;
        let mut seen: HashSet<usize> = HashSet::new();
        for list in lists {
            for other in list.iter().take_while(|other| first.is_none_or(|(best, _)| **other < best)) {
                let Some(earlier) = sets.get(*other).filter(|_| seen.insert(*other)) else { continue };
                if let Some(similarity) = jaccard(set, earlier)
                    && let Some(of) = group.get(*other).copied()
                    && let Some(workspaces) = near(case, of)
                {
                    first = Some((*other, Duplicate { case, of, similarity, workspaces }));
                    break;
                }
            }
        }
        found.extend(first.map(|(_, duplicate)| duplicate));
        for shingle in prefix {
            index.entry(*shingle).or_default().push(at);
        }
    }
    found
}

/// Returns each set of digests as a sorted list of numbers. A digest has the same number in all lists, and rarer
/// digests have lower numbers, so they come first.
fn ranked<'a>(sets: impl Iterator<Item = &'a BTreeSet<u64>> + Clone) -> Vec<Vec<u32>> {
    let mut frequency: HashMap<u64, u32> = HashMap::new();
    for item in sets.clone().flatten() {
        *frequency.entry(*item).or_default() += 1;
    }
    let mut order: Vec<(u32, u64)> = frequency.into_iter().map(|(item, count)| (count, item)).collect();
    order.sort_unstable();
    let ranks: HashMap<u64, u32> = order.iter().zip(0..).map(|((_, item), rank)| (*item, rank)).collect();
    sets.map(|set| {
        let mut set: Vec<u32> = set.iter().filter_map(|item| ranks.get(item).copied()).collect();
        set.sort_unstable();
        set
    })
    .collect()
}

/// Returns the rarest items of a set. The results for two similar sets have an item in common.
fn prefix(set: &[u32]) -> &[u32] {
    let shared = (SIMILAR.0 * set.len()).div_ceil(SIMILAR.1);
    set.get(..(set.len() + 1).saturating_sub(shared).min(set.len())).unwrap_or(set)
}

/// Returns the Jaccard similarity of two sets if it reaches [`SIMILAR`].
fn jaccard(a: &[u32], b: &[u32]) -> Option<f64> {
    let (mut shared, mut missed) = (0_usize, 0_usize);
    // Shared and missed items are the union: with a share s of shared ones, missed / (|a| + |b|) is (1 - s) / (1 + s).
    let most_missed = (a.len() + b.len()) * (SIMILAR.1 - SIMILAR.0) / (SIMILAR.1 + SIMILAR.0);
    if a.is_empty() || b.is_empty() || a.len().abs_diff(b.len()) > most_missed {
        return None;
    }
    let (mut left, mut right) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(x), Some(y)) = (left.peek(), right.peek()) {
        match x.cmp(y) {
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

/// Returns the digests of a file of a workspace: its name, and each line of a text without comments, blank lines and
/// indents. Any other content is one line.
pub fn lines(name: &str, content: &[u8]) -> BTreeSet<u64> {
    let mut digests = BTreeSet::from([digest(format!("file {name}").as_bytes())]);
    match std::str::from_utf8(content) {
        Ok(text) => {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let code = lines.filter(|line| !COMMENTS.iter().any(|start| line.starts_with(start)) && *line != "*");
            digests.extend(code.map(|line| digest(line.as_bytes())));
        }
        Err(_) => drop(digests.insert(digest(content))),
    }
    digests
}

fn digest(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(blake3::hash(bytes).as_bytes().split_at(8).0);
    u64::from_le_bytes(first)
}

/// Returns the shingles of a text: triples of words, without case and punctuation. A text without letters and digits is
/// one shingle.
fn shingles(text: &str) -> BTreeSet<u64> {
    let words: Vec<String> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    let words = if words.is_empty() { vec![text.trim().to_owned()] } else { words };
    let size = SHINGLE.min(words.len());
    words.windows(size).map(|words| digest(words.join(" ").as_bytes())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(prompt: &str, workspace: &str) -> Compared {
        Compared { prompt: prompt.to_owned(), workspace: workspace.to_owned(), lines: BTreeSet::new() }
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
    fn workspaces_that_differ_in_few_lines_are_near() {
        let ten: String = (0..9).map(|n| format!("line {n}\n")).collect();
        let with = |workspace: &str, text: &str| {
            let lines = lines("a.py", text.as_bytes());
            Compared { lines, ..case(LONG, workspace) }
        };
        let cases = [
            with("a", &ten),
            with("b", &format!("{ten}\n# a comment\n")),
            with("c", &format!("{ten}one more\n")),
            with("d", &ten.replace("line", "other")),
            // Near to `c`, and not to `a`: three more lines than ten.
            with("e", &format!("{ten}one more\nanother\na third\n")),
            Compared { lines: BTreeSet::new(), ..case(LONG, "f") },
        ];
        let found: Vec<(usize, usize)> = near_duplicates(&cases).iter().map(|it| (it.case, it.of)).collect();
        assert_eq!(found, [(1, 0), (2, 0), (4, 2)]);
        assert_eq!(near_duplicates(&cases)[1].workspaces, 10.0 / 11.0);
        let small = [with("a", "def add(a, b):\n    return a - b\n"), with("b", "def add(a, b):\n    return a * b\n")];
        assert_eq!(near_duplicates(&small), []);
        assert_eq!(lines("a", &[255, 0]).len(), 2);
    }

    #[test]
    fn the_similarity_is_that_of_the_sets_of_word_triples() {
        // 10 words have 8 triples. The last word changes one of them: 7 of 9.
        let cases = [case("a b c d e f g h i j", ""), case("a b c d e f g h i k", "")];
        assert_eq!(near_duplicates(&cases), []);
        // 11 words: 8 of 10.
        let cases = [case("a b c d e f g h i j k", ""), case("a b c d e f g h i j l", "")];
        assert_eq!(near_duplicates(&cases), [Duplicate { case: 1, of: 0, similarity: 0.8, workspaces: 1.0 }]);
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
                expected.push(Duplicate { case: a, of: b, similarity: similar(a, b), workspaces: 1.0 });
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
        // Comparing each with each would take hours; a busy machine takes some seconds.
        let begun = std::time::Instant::now();
        assert_eq!(near_duplicates(&of_tickets).len(), 9_999);
        near_duplicates(&others);
        // A workspace of its own for each case, all of them near.
        let lines = |n: usize| {
            let text: String = (0..20).map(|line| format!("line {line}\n")).collect();
            lines("a", format!("{text}own {n}").as_bytes())
        };
        let of_files = (0..2_000).map(|n| Compared { lines: lines(n), ..case("Do it.", &n.to_string()) });
        assert_eq!(near_duplicates(&of_files.collect::<Vec<_>>()).len(), 1_999);
        assert!(begun.elapsed().as_secs() < 100, "{:?}", begun.elapsed());
    }
}

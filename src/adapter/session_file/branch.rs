//! Chooses the branch of a session that is read: the lines of a session file are a tree if the user went back and
//! continued from an earlier line. Pure.

use std::collections::{HashMap, HashSet};

use super::facts::Facts;

/// The branch that was chosen.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Chosen {
    /// For each line, whether it is read.
    pub(super) kept: Vec<bool>,
    /// The last lines of the branches that were left out.
    pub(super) others: Vec<String>,
    /// The number of lines of the conversation that were left out.
    pub(super) left_out: usize,
    /// The number of lines whose id had occurred before.
    pub(super) repeated: usize,
    /// The number of these lines that have other content than the earlier one.
    pub(super) differing: usize,
    /// The number of lines before which the user went back.
    pub(super) rewound: usize,
    /// The numbers of lines of the branch, from 1, that continue a line that is not in the file.
    pub(super) unknown_parents: Vec<usize>,
    /// True if the lines name each other in a circle, so that all are read in the order of the file.
    pub(super) is_circular: bool,
}

/// The reason why no branch could be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BranchError {
    /// No line has this id.
    #[error("no line of the session has an id that begins with `{wanted}`; the branches end with: {}", .known.join(", "))]
    Unknown {
        /// The id that the user asked for.
        wanted: String,
        /// The ids of the last lines of all branches.
        known: Vec<String>,
    },
    /// Several lines have such an id.
    #[error("`{wanted}` is the beginning of {count} ids of the session; write more of it")]
    Ambiguous {
        /// The beginning of the ids.
        wanted: String,
        /// The number of lines.
        count: usize,
    },
    /// The lines of the session have no ids.
    #[error("the session has no branches, so `{wanted}` chooses nothing; leave out --branch")]
    None {
        /// The id.
        wanted: String,
    },
}

/// Chooses a branch by the id of one of its lines, or by a prefix of such an id. Default: the branch of the last line.
pub(super) fn choose(lines: &[Facts], wanted: Option<&str>) -> Result<Chosen, BranchError> {
    let mut chosen = Chosen { kept: vec![true; lines.len()], ..Chosen::default() };
    let nodes = Nodes::of(lines, &mut chosen);
    let parents = nodes.parents(lines, &mut chosen);
    let nodes = nodes.order;
    let has_tree = nodes.iter().any(|index| lines[*index].parent.is_some());
    let start = match wanted {
        Some(wanted) if !has_tree => return Err(BranchError::None { wanted: wanted.to_owned() }),
        Some(wanted) => named(lines, &nodes, wanted)?,
        None => match nodes.last() {
            Some(last) if has_tree => *last,
            _ => return Ok(chosen),
        },
    };
    let Some(on) = branch(lines, &nodes, &parents, start) else {
        chosen.is_circular = true;
        return Ok(chosen);
    };
    // A line that is missing in another branch is no loss for this one.
    chosen.unknown_parents.retain(|line| on.contains(&(line - 1)));
    let mut ends = Vec::new();
    let followed: HashSet<usize> = parents.values().copied().collect();
    for index in &nodes {
        if on.contains(index) {
            continue;
        }
        chosen.kept[*index] = false;
        chosen.left_out += usize::from(lines[*index].speaks);
        if !followed.contains(index) && speaks(lines, &parents, &on, *index) {
            ends.extend(lines[*index].id.clone());
        }
    }
    chosen.others = ends;
    Ok(chosen)
}

/// The lines of the tree: those with an id that neither was repeated nor taken back.
struct Nodes<'a> {
    by_id: HashMap<&'a str, usize>,
    /// The lines of the main agent, in the order of the file.
    order: Vec<usize>,
}

impl<'a> Nodes<'a> {
    /// Finds the lines of the tree, and leaves out the others.
    fn of(lines: &'a [Facts], chosen: &mut Chosen) -> Self {
        let mut by_id: HashMap<&str, usize> = HashMap::new();
        let mut order = Vec::new();
        // The line to which the user rewound the session, if an earlier line names it.
        let mut cut: Option<&str> = None;
        let mut is_cut = false;
        let has_parents = lines.iter().any(|line| line.parent.is_some());
        for (index, line) in lines.iter().enumerate() {
            if let Some(id) = line.rewind.as_deref() {
                if by_id.is_empty() {
                    cut = Some(id);
                    continue;
                }
                // Agents that do not find the line go back to the beginning.
                let back = by_id.get(id).copied().unwrap_or_default();
                let gone: Vec<usize> =
                    (back..index).filter(|gone| chosen.kept[*gone] && lines[*gone].id.is_some()).collect();
                chosen.rewound += gone.len();
                gone.iter().for_each(|gone| chosen.kept[*gone] = false);
            }
            let Some(id) = line.id.as_deref() else { continue };
            is_cut |= cut == Some(id);
            if is_cut {
                chosen.kept[index] = false;
                chosen.rewound += 1;
                continue;
            }
            if let Some(earlier) = by_id.get(id).copied() {
                // Without a tree, a line that is written again with other content replaces the earlier one.
                let is_update = !has_parents && lines[earlier].content != line.content && chosen.kept[earlier];
                if is_update {
                    chosen.kept[earlier] = false;
                    by_id.insert(id, index);
                } else {
                    chosen.kept[index] = false;
                    chosen.repeated += 1;
                    chosen.differing += usize::from(lines[earlier].content != line.content);
                }
                continue;
            }
            by_id.insert(id, index);
            if !line.is_aside {
                order.push(index);
            }
        }
        Self { by_id, order }
    }

    /// Returns the line that each line continues. Lines that continue one that is not in the file are recorded.
    fn parents(&self, lines: &[Facts], chosen: &mut Chosen) -> HashMap<usize, usize> {
        let mut parents: HashMap<usize, usize> = HashMap::new();
        for (place, index) in self.order.iter().enumerate() {
            let line = &lines[*index];
            if line.parent.is_none() && !line.continues {
                continue;
            }
            if let Some(parent) = line.parent.as_deref().and_then(|parent| self.by_id.get(parent)) {
                parents.insert(*index, *parent);
                continue;
            }
            // The line before it in the file is the nearest guess, and loses nothing. A line that names none continues it.
            let before = place.checked_sub(1).map(|before| self.order[before]);
            if line.parent.is_some() || before.is_none() {
                chosen.unknown_parents.push(index + 1);
            }
            if let Some(before) = before {
                parents.insert(*index, before);
            }
        }
        parents
    }
}

/// Returns the line with this id, or with the only id that begins so.
fn named(lines: &[Facts], nodes: &[usize], wanted: &str) -> Result<usize, BranchError> {
    let id = |index: usize| lines[index].id.as_deref().unwrap_or_default();
    if let Some(exact) = nodes.iter().find(|index| id(**index) == wanted) {
        return Ok(*exact);
    }
    let begin: Vec<usize> = nodes.iter().copied().filter(|index| id(*index).starts_with(wanted)).collect();
    match begin.as_slice() {
        [one] if !wanted.is_empty() => Ok(*one),
        [] => {
            let parents: HashSet<&str> = nodes.iter().filter_map(|index| lines[*index].parent.as_deref()).collect();
            let ends = nodes.iter().map(|index| id(*index)).filter(|id| !parents.contains(id));
            Err(BranchError::Unknown { wanted: wanted.to_owned(), known: ends.map(str::to_owned).collect() })
        }
        several => Err(BranchError::Ambiguous { wanted: wanted.to_owned(), count: several.len() }),
    }
}

/// Returns the lines of a branch, or `None` if the lines before its end form a circle.
fn branch(lines: &[Facts], nodes: &[usize], parents: &HashMap<usize, usize>, start: usize) -> Option<HashSet<usize>> {
    let mut on = HashSet::new();
    let mut next = Some(start);
    while let Some(index) = next {
        if !on.insert(index) {
            return None;
        }
        next = parents.get(&index).copied();
    }
    // Lines of one message of the model belong together, and results belong to their calls.
    let mut of_message: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut results: HashMap<usize, Vec<usize>> = HashMap::new();
    for index in nodes {
        if let Some(message) = &lines[*index].message {
            of_message.entry(message).or_default().push(*index);
        }
        if let (true, Some(parent)) = (lines[*index].follows_parent, parents.get(index)) {
            results.entry(*parent).or_default().push(*index);
        }
    }
    let mut open: Vec<usize> = on.iter().copied().collect();
    while let Some(index) = open.pop() {
        let message = lines[index].message.as_deref().and_then(|message| of_message.get(message));
        for other in message.into_iter().chain(results.get(&index)).flatten() {
            if on.insert(*other) {
                open.push(*other);
            }
        }
    }
    Some(on)
}

/// Returns true if the lines that are only in the branch of this line have a message of the user or the agent.
fn speaks(lines: &[Facts], parents: &HashMap<usize, usize>, on: &HashSet<usize>, end: usize) -> bool {
    let mut next = Some(end);
    let mut steps = 0;
    while let Some(index) = next.filter(|index| !on.contains(index)) {
        if lines[index].speaks {
            return true;
        }
        steps += 1;
        next = parents.get(&index).copied().filter(|_| steps <= lines.len());
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str, parent: &str) -> Facts {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Facts { id: some(id), parent: some(parent), speaks: true, ..Facts::default() }
    }

    fn kept(lines: &[Facts], wanted: Option<&str>) -> String {
        let chosen = choose(lines, wanted).unwrap();
        let ids = lines.iter().zip(&chosen.kept).filter(|(_, kept)| **kept);
        ids.map(|(line, _)| line.id.clone().unwrap_or_else(|| "-".into())).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_branch_of_the_last_line_is_read_unless_another_is_named() {
        let lines = [line("", ""), line("a", ""), line("b1", "a"), line("b2", "b1"), line("c1", "a"), line("c2", "c1")];
        assert_eq!(kept(&lines, None), "- a c1 c2");
        assert_eq!(kept(&lines, Some("b2")), "- a b1 b2");
        assert_eq!(kept(&lines, Some("b1")), "- a b1");
        let chosen = choose(&lines, None).unwrap();
        assert_eq!((chosen.others, chosen.left_out), (vec!["b2".to_owned()], 2));
        assert!(matches!(choose(&lines, Some("c")), Err(BranchError::Ambiguous { count: 2, .. })));
        let Err(BranchError::Unknown { known, .. }) = choose(&lines, Some("x")) else { panic!() };
        assert_eq!(known, ["b2", "c2"]);
    }

    #[test]
    fn parallel_results_belong_to_the_branch_of_their_calls() {
        let message = |id: &str, parent: &str| Facts { message: Some("m".into()), ..line(id, parent) };
        let result = |id: &str, parent: &str| Facts { follows_parent: true, ..line(id, parent) };
        // The call of `a2` ended first, so the conversation goes on from the result of `a1`.
        let lines = [
            line("u", ""),
            message("a1", "u"),
            message("a2", "a1"),
            result("r2", "a2"),
            result("r1", "a1"),
            line("e", "r1"),
        ];
        assert_eq!(kept(&lines, None), "u a1 a2 r2 r1 e");
    }

    #[test]
    fn repeated_lines_are_read_once() {
        let lines = [line("a", ""), line("b", "a"), line("a", ""), line("b", "a"), line("c", "b")];
        let chosen = choose(&lines, None).unwrap();
        assert_eq!((chosen.kept, chosen.repeated), (vec![true, true, false, false, true], 2));
    }

    #[test]
    fn a_broken_tree_loses_no_line() {
        let circle = [line("a", "b"), line("b", "a"), line("c", "b")];
        let chosen = choose(&circle, None).unwrap();
        assert!(chosen.is_circular && chosen.kept.iter().all(|kept| *kept));
        let itself = [line("a", "a")];
        assert!(choose(&itself, None).unwrap().is_circular);
        let gap = [line("a", ""), line("b", "a"), line("d", "c"), line("e", "d")];
        assert_eq!(kept(&gap, None), "a b d e");
        assert_eq!(choose(&gap, None).unwrap().unknown_parents, [3]);
    }

    #[test]
    fn a_line_that_is_missing_in_another_branch_is_not_missing_in_this_one() {
        let lines = [line("a", ""), line("b", "x"), line("c", "a")];
        let chosen = |wanted| choose(&lines, wanted).unwrap();
        assert_eq!((kept(&lines, None), chosen(None).unknown_parents), ("a c".to_owned(), vec![]));
        assert_eq!((kept(&lines, Some("b")), chosen(Some("b")).unknown_parents), ("a b".to_owned(), vec![2]));
    }

    #[test]
    fn a_line_that_continues_the_conversation_belongs_to_the_lines_before_it() {
        let continues = |id: &str| Facts { continues: true, ..line(id, "") };
        let within = [line("a", ""), line("b", "a"), continues("c"), line("d", "c")];
        assert_eq!(
            (kept(&within, None), choose(&within, None).unwrap().unknown_parents),
            ("a b c d".to_owned(), vec![])
        );
        // The lines before it are in no other line of the file.
        for begins in [&[continues("a"), line("b", "a")][..], &[continues("a")]] {
            assert_eq!(choose(begins, None).unwrap().unknown_parents, [1]);
        }
    }

    #[test]
    fn lines_without_ids_are_all_read() {
        assert_eq!(kept(&[line("", ""), line("", "")], None), "- -");
        assert_eq!(choose(&[line("", "")], Some("a")), Err(BranchError::None { wanted: "a".into() }));
    }
}

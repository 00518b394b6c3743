//! Mutations of a reference solution: the solution with one small error, to see whether the graders notice it. Pure.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;
use similar::DiffTag;
use strum::{EnumCount, IntoStaticStr};

use super::syntax::{Style, docstrings};
use crate::difference;
use crate::text::first_chars;
use crate::word::word;
use crate::workspace::change::FileChangeKind;
use crate::workspace::patch::moved::moved;
use crate::workspace::patch::read::{Edit, Hunk, Piece};

/// The maximum number of characters of a line in a report.
const MAX_LINE_CHARS: usize = 160;
/// The maximum number of added lines that are looked at.
const MAX_ADDED_LINES: usize = 20_000;
/// The mode of a symbolic link in a patch.
const LINK: &str = "120000";

/// The kind of error that a mutation makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, EnumCount, IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum MutationKind {
    /// One hunk of the change is missing.
    RevertHunk,
    /// A comparison is the opposite one.
    FlipComparison,
    /// `true` is `false`, `and` is `or`, and the reverse.
    FlipBoolean,
    /// A number is greater by one.
    OffByOne,
    /// An added line is missing.
    DeleteLine,
}

word!(MutationKind);

impl MutationKind {
    /// All kinds, in the order in which they are chosen.
    const ALL: [Self; Self::COUNT] =
        [Self::RevertHunk, Self::FlipComparison, Self::FlipBoolean, Self::OffByOne, Self::DeleteLine];
}

/// A mutation of a reference solution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Mutation {
    /// The file of the solution that was mutated.
    pub file: String,
    /// The line in the solution, from 1.
    pub line: usize,
    /// The kind of error.
    pub kind: MutationKind,
    /// The text of the line in the solution. Absent for a hunk that only deletes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// The line in its place. Absent if lines are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
}

/// A mutation that can be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutant {
    /// The description of the mutation, for the report.
    pub mutation: Mutation,
    /// The changes of the solution, with the error.
    pub pieces: Vec<Piece>,
    /// The file.
    pub path: PathBuf,
}

/// A place where a solution can be mutated, before the changes are copied.
struct Spot {
    mutation: Mutation,
    piece: usize,
    hunk: usize,
    /// The line in the new lines of the hunk, and its bytes after the mutation. Absent: the hunk is left out.
    edit: Option<(usize, Vec<u8>)>,
}

/// Returns at most `most` mutants of a solution, and the number of all possible ones. The choice depends only on the
/// solution and on `seed`. `is_judged` returns false for files whose content is replaced before grading.
pub fn mutants(pieces: &[Piece], seed: &str, most: usize, is_judged: impl Fn(&Path) -> bool) -> (Vec<Mutant>, usize) {
    let mut spots = spots(pieces, is_judged);
    let possible = spots.len();
    let rank = |spot: &Spot| {
        let Mutation { file, line, kind, now, .. } = &spot.mutation;
        let key = format!("{seed}\0{file}\0{line}\0{}\0{}", kind.word(), now.as_deref().unwrap_or_default());
        *blake3::hash(key.as_bytes()).as_bytes()
    };
    spots.sort_by_cached_key(rank);
    // Each kind gets its turn: most solutions have far more lines than comparisons.
    let mut by_kind: Vec<Vec<Spot>> = MutationKind::ALL.iter().map(|_| Vec::new()).collect();
    for spot in spots.into_iter().rev() {
        let kind = MutationKind::ALL.iter().position(|kind| *kind == spot.mutation.kind);
        if let Some(of_kind) = kind.and_then(|kind| by_kind.get_mut(kind)) {
            of_kind.push(spot);
        }
    }
    let mut chosen = Vec::new();
    while chosen.len() < most && by_kind.iter().any(|spots| !spots.is_empty()) {
        let round: Vec<Spot> = by_kind.iter_mut().filter_map(Vec::pop).collect();
        chosen.extend(round.into_iter().take(most - chosen.len()));
    }
    (chosen.iter().filter_map(|spot| mutant(pieces, spot)).collect(), possible)
}

/// Returns all places where a solution can be mutated. Mutations with the same result count as one.
fn spots(pieces: &[Piece], is_judged: impl Fn(&Path) -> bool) -> Vec<Spot> {
    let mut spots = Vec::new();
    let mut lines = 0;
    let renamed = renamed(pieces);
    for (number, piece) in pieces.iter().enumerate().filter(|(_, piece)| is_judged(&piece.path)) {
        let Edit::Lines(hunks) = &piece.edit else { continue };
        let is_link = piece.mode.as_deref() == Some(LINK);
        let style = Style::of(&piece.path);
        let mut shift = 0_isize;
        for (at, hunk) in hunks.iter().enumerate() {
            let first = hunk.before.saturating_add_signed(shift);
            shift += hunk.new.len() as isize - hunk.old.len() as isize;
            let added = added(hunk);
            let file = piece.path.to_string_lossy().into_owned();
            let line_of = |index: usize| first + index + 1;
            let start = added.first().copied().unwrap_or_default();
            let was = added.first().and_then(|index| hunk.new.get(*index)).map(|line| shown(line));
            // No grader notices an old file beside the new one.
            if !renamed.contains(&number) {
                let kind = MutationKind::RevertHunk;
                let mutation = Mutation { file: file.clone(), line: line_of(start), kind, was, now: None };
                spots.push(Spot { mutation, piece: number, hunk: at, edit: None });
            }
            if is_link || piece.how == FileChangeKind::Deleted {
                continue;
            }
            let texts = match style.has_docstrings {
                true => docstrings(&hunk.new, hunk.before == 0),
                false => BTreeSet::new(),
            };
            let starts = starts_of_runs(&hunk.new);
            // Two mutations have the same result only if they delete a line of the same run of equal lines, or put the same
            // text in the place of the same line.
            let mut results: BTreeSet<(usize, Option<String>)> = BTreeSet::new();
            for index in added {
                let Some(bytes) = hunk.new.get(index).filter(|_| lines < MAX_ADDED_LINES) else { continue };
                lines += 1;
                let Ok(text) = std::str::from_utf8(bytes) else { continue };
                if !style.is_code(text) || texts.contains(&index) {
                    continue;
                }
                let start = starts.get(index).copied().unwrap_or(index);
                for (kind, now) in errors(text, &style) {
                    let place = if now.is_some() { index } else { start };
                    if now.as_deref() == Some(text) || !results.insert((place, now.clone())) {
                        continue;
                    }
                    let edit = Some((index, now.clone().unwrap_or_default().into_bytes()));
                    let now = now.map(|now| shown(now.as_bytes()));
                    let was = Some(shown(bytes));
                    let mutation = Mutation { file: file.clone(), line: line_of(index), kind, was, now };
                    spots.push(Spot { mutation, piece: number, hunk: at, edit });
                }
            }
        }
    }
    spots
}

/// Returns the solution with the error at a place.
fn mutant(pieces: &[Piece], spot: &Spot) -> Option<Mutant> {
    let mut pieces = pieces.to_vec();
    let piece = pieces.get_mut(spot.piece)?;
    let path = piece.path.clone();
    let Edit::Lines(hunks) = &mut piece.edit else { return None };
    match &spot.edit {
        None => drop(hunks.remove(spot.hunk)),
        Some((line, bytes)) => {
            let new = &mut hunks.get_mut(spot.hunk)?.new;
            if bytes.is_empty() { drop(new.remove(*line)) } else { *new.get_mut(*line)? = bytes.clone() }
        }
    }
    // A file that the solution creates or deletes has one hunk.
    if hunks.is_empty() && piece.how != FileChangeKind::Changed {
        pieces.remove(spot.piece);
    }
    Some(Mutant { mutation: spot.mutation.clone(), pieces, path })
}

/// Returns for each line the index of the first line of its run of equal lines.
fn starts_of_runs(lines: &[Vec<u8>]) -> Vec<usize> {
    let mut starts: Vec<usize> = Vec::with_capacity(lines.len());
    for (index, line) in lines.iter().enumerate() {
        let start = match starts.last() {
            Some(start) if lines.get(*start) == Some(line) => *start,
            _ => index,
        };
        starts.push(start);
    }
    starts
}

/// Returns the indices of the deleted files that the solution moved to another path.
fn renamed(pieces: &[Piece]) -> BTreeSet<usize> {
    fn lines(piece: &Piece, of: fn(&Hunk) -> &[Vec<u8>]) -> Vec<&[u8]> {
        let Edit::Lines(hunks) = &piece.edit else { return Vec::new() };
        hunks.iter().flat_map(of).map(Vec::as_slice).collect()
    }
    let of = |how: FileChangeKind| pieces.iter().enumerate().filter(move |(_, piece)| piece.how == how);
    let deleted: Vec<usize> = of(FileChangeKind::Deleted).map(|(number, _)| number).collect();
    let old: Vec<_> = of(FileChangeKind::Deleted).map(|(_, piece)| lines(piece, |hunk| &hunk.old)).collect();
    let new: Vec<_> = of(FileChangeKind::Created).map(|(_, piece)| lines(piece, |hunk| &hunk.new)).collect();
    moved(&old, &new).into_values().filter_map(|at| deleted.get(at).copied()).collect()
}

/// Returns the indices of the new lines of a hunk that the old lines do not have.
fn added(hunk: &Hunk) -> Vec<usize> {
    let ops = difference::between(&hunk.old, &hunk.new, None);
    let is_new = |tag: DiffTag| matches!(tag, DiffTag::Insert | DiffTag::Replace);
    ops.into_iter().filter(|op| is_new(op.tag())).flat_map(|op| op.new_range()).collect()
}

fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let text = text.trim();
    let start = first_chars(text, MAX_LINE_CHARS);
    if start.len() < text.len() { format!("{start}…") } else { start.to_owned() }
}

/// The comparison operators and their opposites. An operator comes before the shorter ones that it contains.
const COMPARISONS: [(&str, &str); 6] =
    [("===", "!=="), ("!==", "==="), ("==", "!="), ("!=", "=="), ("<=", ">"), (">=", "<")];
/// The comparisons that are only recognised between spaces.
const ANGLES: [(&str, &str); 2] = [(" < ", " >= "), (" > ", " <= ")];

/// Returns the errors that can be made in a line. `None` deletes it.
fn errors(line: &str, style: &Style) -> Vec<(MutationKind, Option<String>)> {
    let code = style.code(line);
    let mut found = Vec::new();
    let mut replace = |kind, at: usize, length: usize, by: &str| {
        if let (Some(before), Some(after)) = (line.get(..at), line.get(at + length..)) {
            found.push((kind, Some(format!("{before}{by}{after}"))));
        }
    };
    for at in code.char_indices().map(|(at, _)| at) {
        let Some(rest) = code.get(at..) else { continue };
        let before = code.get(..at).and_then(|it| it.chars().next_back());
        let is_in_operator = |c: Option<char>| c.is_some_and(|c| "=<>!".contains(c));
        if let Some((from, to)) = COMPARISONS.iter().find(|(from, _)| rest.starts_with(from))
            && !is_in_operator(before)
            && !is_in_operator(rest.get(from.len()..).and_then(|it| it.chars().next()))
        {
            replace(MutationKind::FlipComparison, at, from.len(), to);
        } else if let Some((from, to)) = ANGLES.iter().find(|(from, _)| style.angles && rest.starts_with(from)) {
            replace(MutationKind::FlipComparison, at, from.len(), to);
        }
        for (a, b) in style.words {
            for (from, to) in [(a, b), (b, a)] {
                if rest.starts_with(from) && is_whole(before, rest, from) {
                    let is_test = from.starts_with('-');
                    let kind = if is_test { MutationKind::FlipComparison } else { MutationKind::FlipBoolean };
                    replace(kind, at, from.len(), to);
                }
            }
        }
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let after = rest.get(digits..).and_then(|it| it.chars().next());
        let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.');
        if digits > 0
            && !joins(before)
            && (!joins(after) || ends_a_sentence(rest, digits))
            && let Some(number) = rest.get(..digits).and_then(|it| it.parse::<u64>().ok())
            && let Some(next) = number.checked_add(1)
        {
            replace(MutationKind::OffByOne, at, digits, &next.to_string());
        }
    }
    found.push((MutationKind::DeleteLine, None));
    found
}

/// Returns true if a point after digits is not followed by a part of the number or by a name.
fn ends_a_sentence(rest: &str, digits: usize) -> bool {
    let mut after = rest.get(digits..).unwrap_or_default().chars();
    after.next() == Some('.') && !after.next().is_some_and(char::is_alphanumeric)
}

/// Returns true if a word at a place is not a part of a longer one. Operators of signs are always whole.
fn is_whole(before: Option<char>, rest: &str, word: &str) -> bool {
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let is_word = word.ends_with(char::is_alphanumeric);
    !is_word || (!joins(before) && !joins(rest.get(word.len()..).and_then(|it| it.chars().next())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::patch::read::read;

    fn of(path: &str, line: &str) -> Vec<(MutationKind, String)> {
        let all = errors(line, &Style::of(Path::new(path)));
        all.into_iter().filter_map(|(kind, now)| Some((kind, now?))).collect()
    }

    #[test]
    fn comparisons_booleans_and_numbers_of_code_are_changed() {
        use MutationKind::{FlipBoolean, FlipComparison, OffByOne};
        let some = |kind, line: &str| (kind, line.to_owned());
        assert_eq!(
            of("a.py", "if a == 1 and b < 20:  # 3 or 4\n"),
            [
                some(FlipComparison, "if a != 1 and b < 20:  # 3 or 4\n"),
                some(OffByOne, "if a == 2 and b < 20:  # 3 or 4\n"),
                some(FlipBoolean, "if a == 1 or b < 20:  # 3 or 4\n"),
                some(FlipComparison, "if a == 1 and b >= 20:  # 3 or 4\n"),
                some(OffByOne, "if a == 1 and b < 21:  # 3 or 4\n"),
            ]
        );
        assert_eq!(of("a.sh", "[ $n -lt 3 ] > out\n")[0], some(FlipComparison, "[ $n -ge 3 ] > out\n"));
        assert_eq!(of("a.js", "x !== true\n").len(), 2);
        // Arrows, generics, shifts, versions, names with digits and untrue words are none of these.
        for line in ["fn f() -> Vec<u8> {\n", "x => y >> z\n", "v1.5 a2 untrue\n", "b = 1.5\n"] {
            assert_eq!(of("a.rs", line), [], "{line}");
        }
    }

    const PATCH: &str = "diff --git a/f.py b/f.py\n--- a/f.py\n+++ b/f.py\n@@ -1,2 +1,4 @@\n a\n-b\n+# why\n+c = 1\n+c = 1\n@@ -9 +11,2 @@\n x\n+y\ndiff --git \
                         a/g b/g\nnew file mode 100644\n--- /dev/null\n+++ b/g\n@@ -0,0 +1 @@\n+new\n";

    #[test]
    fn the_deleted_file_of_a_rename_is_not_left_out_alone() {
        let patch = "diff --git a/new.py b/new.py\nnew file mode 100644\n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+same\ndiff --git \
                     a/old.py b/old.py\ndeleted file mode 100644\n--- a/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-same\n";
        let reverted = |patch: &str| -> Vec<String> {
            let (all, _) = mutants(&read(patch.as_bytes()).unwrap(), "seed", 100, |_| true);
            let reverted = all.into_iter().filter(|it| it.mutation.kind == MutationKind::RevertHunk);
            reverted.map(|it| it.mutation.file).collect()
        };
        assert_eq!(reverted(patch), ["new.py"]);
        assert_eq!(reverted(&patch.replace("-same", "-other")).len(), 2);
    }

    #[test]
    fn each_mutant_differs_from_the_solution_in_one_place() {
        let pieces = read(PATCH.as_bytes()).unwrap();
        let (all, possible) = mutants(&pieces, "seed", 100, |_| true);
        assert_eq!(all.len(), possible);
        let mut told: Vec<String> = all
            .iter()
            .map(|it| format!("{}:{} {}", it.mutation.file, it.mutation.line, it.mutation.kind.word()))
            .collect();
        told.sort();
        let expected = [
            // Deleting either of two equal lines is the same.
            "f.py:12 delete_line",
            "f.py:12 revert_hunk",
            "f.py:2 revert_hunk",
            "f.py:3 delete_line",
            "f.py:3 off_by_one",
            "f.py:4 off_by_one",
            "g:1 delete_line",
            "g:1 revert_hunk",
        ];
        assert_eq!(told, expected);
        assert!(all.iter().all(|mutant| mutant.pieces != pieces));
        let created = all.iter().find(|it| it.mutation.file == "g" && it.mutation.kind == MutationKind::RevertHunk);
        assert_eq!(created.unwrap().pieces.len(), 1);
        assert!(
            mutants(&pieces, "seed", 100, |path| path != Path::new("g")).0.iter().all(|it| it.mutation.file != "g")
        );
    }

    #[test]
    fn a_long_new_file_takes_no_more_than_its_length() {
        let count = 5_000;
        let lines: String = (0..count).map(|number| format!("+x = {number}\n")).collect();
        let head = "diff --git a/f.py b/f.py\nnew file mode 100644\n--- /dev/null\n+++ b/f.py";
        let pieces = read(format!("{head}\n@@ -0,0 +1,{count} @@\n{lines}").as_bytes()).unwrap();
        let begun = std::time::Instant::now();
        // Each line is deleted and has its number changed, and the hunk is left out.
        assert_eq!(mutants(&pieces, "seed", 3, |_| true).1, 2 * count + 1);
        // With a copy of the hunk for each mutation, it takes gigabytes, and far longer.
        assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
    }

    #[test]
    fn texts_about_python_code_are_not_mutated() {
        let of = |path: &str, text: &str| {
            let lines: Vec<String> = text.lines().map(|line| format!("+{line}\n")).collect();
            let count = lines.len();
            let patch = format!(
                "diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{count} @@\n{}",
                lines.concat()
            );
            let pieces = read(patch.as_bytes()).unwrap();
            let all = mutants(&pieces, "seed", 100, |_| true).0;
            let of_lines = all.iter().filter(|it| it.mutation.kind != MutationKind::RevertHunk);
            of_lines.map(|it| it.mutation.line).collect::<BTreeSet<usize>>()
        };
        let text = "\"\"\"One and two.\n\nMore than 3.\n\"\"\"\ndef f(a):\n    r'''Adds 1 and 2.'''\n    return a + 1\n\n\ndef g():\n    \
                    \"Two or 3.\"\n    x = {1:\n    \"a and b\".strip()}\n    y = \"\"\"1 and\n2\"\"\"\n";
        assert_eq!(of("a.py", text), BTreeSet::from([5, 7, 10, 12, 13, 14, 15]));
        assert_eq!(of("a.rb", "\"\"\"One and two.\"\"\"\n"), BTreeSet::from([1]));
    }

    #[test]
    fn the_choice_is_the_same_each_time_and_takes_each_kind_in_turn() {
        let pieces = read(PATCH.as_bytes()).unwrap();
        let chosen =
            |seed: &str| mutants(&pieces, seed, 3, |_| true).0.into_iter().map(|it| it.mutation).collect::<Vec<_>>();
        assert_eq!(chosen("a"), chosen("a"));
        let kinds: BTreeSet<&str> = chosen("a").iter().map(|it| it.kind.word()).collect();
        assert_eq!(kinds.len(), 3);
        assert!((0..20).any(|seed| chosen(&seed.to_string()) != chosen("a")));
        assert_eq!(mutants(&pieces, "a", 0, |_| true).0, []);
    }
}

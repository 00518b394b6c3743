//! Finds the places at which a session file lacks lines, if each of its lines names the line before it. Pure.

use std::collections::HashSet;

use super::facts::Facts;

/// Returns the numbers of the lines, from 1, that follow a line which is not in the file.
///
/// The order does not count: two processes that wrote to one file at a time repeat numbers, and a user who went back
/// continues an earlier line.
pub(super) fn lines_after_a_gap(lines: &[Facts]) -> Vec<usize> {
    if !lines.iter().any(|line| line.link.shows_chain) {
        return Vec::new();
    }
    let keys: HashSet<&str> = lines.iter().filter_map(|line| line.link.key.as_deref()).collect();
    let is_in_file = |key: &String| keys.contains(key.as_str());
    let follows_gap = |line: &Facts| line.link.after.as_ref().is_some_and(|after| !is_in_file(after));
    lines.iter().enumerate().filter(|(_, line)| follows_gap(line)).map(|(index, _)| index + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::super::facts::Link;
    use super::*;

    fn gaps(numbers: &[(u64, Option<u64>)], shows_chain: bool) -> Vec<usize> {
        let text = |number: u64| Some(number.to_string());
        let link =
            |(key, after): &(u64, Option<u64>)| Link { key: text(*key), after: after.and_then(text), shows_chain };
        let lines: Vec<Facts> = numbers.iter().map(|it| Facts { link: link(it), ..Facts::default() }).collect();
        lines_after_a_gap(&lines)
    }

    /// Lines with these numbers, each after the number before its own.
    fn numbered(numbers: &[u64]) -> Vec<usize> {
        let links: Vec<_> = numbers.iter().map(|number| (*number, number.checked_sub(1))).collect();
        gaps(&links, true)
    }

    #[test]
    fn a_line_after_one_that_the_file_lacks_is_found() {
        assert_eq!(numbered(&[0, 1, 2, 3]), [0; 0]);
        assert_eq!(numbered(&[0, 1, 4, 5, 7]), [3, 5]);
        // The lines before are in another file.
        assert_eq!(numbered(&[5, 6]), [1]);
        assert_eq!(numbered(&[]), [0; 0]);
    }

    #[test]
    fn repeated_numbers_are_no_gap() {
        for numbers in [&[0, 1, 1, 2][..], &[0, 1, 2, 3, 2, 4, 3, 5], &[0, 1, 2, 0, 1, 2], &[0, 0, 1, 2]] {
            assert_eq!(numbered(numbers), [0; 0], "{numbers:?}");
        }
    }

    #[test]
    fn a_line_may_continue_any_earlier_line_and_a_file_without_a_chain_has_no_gap() {
        assert_eq!(gaps(&[(1, None), (2, Some(1)), (3, Some(1))], true), [0; 0]);
        assert_eq!(gaps(&[(1, None), (3, Some(2))], false), [0; 0]);
    }
}

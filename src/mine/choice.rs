//! Prefers the cases whose tests notice each hunk of the fix, and whose settings are protected, to the others, which are a
//! reserve. A message that says nothing about the task is no reason for a reserve: a person can write the prompt. Pure.

use std::cmp::Reverse;

use super::candidate::Dropped;
use super::journal::{Candidate, CandidateStatus};
use crate::case::provenance::Hunks;

/// The multiple of the wanted number of cases at which the search for better cases ends.
const TIMES: usize = 2;
/// The number of cases up to which cases in reserve fill places: more of them would lower the share of noticed hunks.
const ENOUGH: usize = 10;

/// Returns true if the tests of a kept case do not notice a hunk of its fix, or if settings that decide about them are not
/// protected.
pub fn is_reserve(candidate: &Candidate) -> bool {
    let is_partly_tested = candidate.hunks.as_ref().is_some_and(|hunks| !hunks.unnoticed.is_empty());
    is_kept(candidate) && (is_partly_tested || !candidate.open_settings.is_empty())
}

/// Returns true if no more commits have to be looked at for so many cases.
pub fn is_enough(candidates: &[Candidate], keep: usize) -> bool {
    let kept = candidates.iter().filter(|candidate| is_kept(candidate));
    let (made, complete) =
        kept.fold((0, 0), |(made, complete), candidate| (made + 1, complete + usize::from(!is_reserve(candidate))));
    complete >= keep || made >= keep.saturating_mul(TIMES)
}

/// Returns the positions of the cases in reserve that are not needed for so many cases. Those are needed first whose settings are
/// protected, and of these, those of which the tests notice the greatest share.
pub fn left_over(candidates: &[Candidate], keep: usize) -> Vec<usize> {
    let complete = candidates.iter().filter(|candidate| is_kept(candidate) && !is_reserve(candidate)).count();
    let mut reserve: Vec<usize> =
        candidates.iter().enumerate().filter(|(_, candidate)| is_reserve(candidate)).map(|(at, _)| at).collect();
    // Whole numbers, so that the order is the same on each machine.
    let share = |hunks: &Hunks| hunks.noticed.saturating_mul(1_000_000) / hunks.tried().max(1);
    let worth = |candidate: &Candidate| (candidate.open_settings.is_empty(), candidate.hunks.as_ref().map(share));
    reserve.sort_by_key(|at| Reverse(candidates.get(*at).map(worth)));
    reserve.split_off(keep.min(ENOUGH).saturating_sub(complete).min(reserve.len()))
}

/// Changes the entry of a kept case to that of a dropped one.
pub fn drop_of(candidate: &mut Candidate) {
    let why = match &candidate.hunks {
        _ if !candidate.open_settings.is_empty() => Dropped::OpenSettings { files: candidate.open_settings.clone() },
        Some(hunks) => Dropped::Unnoticed { hunks: hunks.unnoticed.clone(), tried: hunks.tried() },
        None => return,
    };
    (candidate.status, candidate.reason, candidate.case) = (CandidateStatus::Dropped, Some(why.to_string()), None);
}

fn is_kept(candidate: &Candidate) -> bool {
    candidate.status == CandidateStatus::Kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes one entry for each word: `3/4` notices three of four hunks, `-` was dropped, `?` was not tried. `~` is before one
    /// whose prompt says nothing, and `!` before one whose settings are not protected.
    fn all(text: &str) -> Vec<Candidate> {
        let entry = |word: &str| {
            let thin = word.starts_with('~');
            let open_settings = word.starts_with('!').then(|| "Cargo.toml".to_owned());
            let hunks = word.trim_start_matches(['~', '!']).split_once('/').map(|(noticed, all)| {
                let (noticed, all): (usize, usize) = (noticed.parse().unwrap(), all.parse().unwrap());
                Hunks { all, noticed, unnoticed: (noticed..all).map(|n| format!("a.py:{n}")).collect() }
            });
            Candidate {
                commit: word.to_owned(),
                parent: String::new(),
                subject: String::new(),
                status: if word == "-" { CandidateStatus::Dropped } else { CandidateStatus::Kept },
                reason: None,
                fail_to_pass: Vec::new(),
                pass_to_pass: Vec::new(),
                flaky: Vec::new(),
                left_out: Vec::new(),
                hunks,
                thin,
                open_settings: open_settings.into_iter().collect(),
                case: None,
                folder: None,
            }
        };
        text.split_whitespace().map(entry).collect()
    }

    #[test]
    fn cases_in_reserve_fill_the_places_that_others_leave() {
        for (text, keep, enough, left) in [
            ("2/2 1/3 - 3/3", 2, true, vec![1]),
            ("2/2 1/3 - 2/3", 2, false, vec![1]),
            ("2/2 1/3 - 2/3", 3, false, vec![]),
            ("2/3 1/3 2/3", 2, false, vec![1]),
            // Of equal ones, the newest is kept.
            ("1/2 2/4 1/2 0/1", 2, true, vec![2, 3]),
            ("? ?", 2, true, vec![]),
            // One whose prompt says nothing is kept in its turn.
            ("~2/2 2/2", 1, true, vec![]),
            ("~? 1/3 2/2", 2, true, vec![1]),
            ("~1/3 2/2 1/2", 2, false, vec![0]),
            // Of two in reserve, the one whose settings are protected is kept.
            ("!3/3 1/3 2/2", 2, false, vec![0]),
            ("!? 2/2", 1, true, vec![0]),
            ("!3/3 !?", 1, true, vec![1]),
            ("", 1, false, vec![]),
        ] {
            let all = all(text);
            assert_eq!(is_enough(&all, keep), enough, "{text}");
            assert_eq!(left_over(&all, keep), left, "{text}");
        }
    }

    #[test]
    fn cases_in_reserve_fill_at_most_ten_places() {
        let whole = |count: usize| "1/1 ".repeat(count);
        assert_eq!(left_over(&all(&format!("{}1/2 1/3", whole(10))), 20), [10, 11]);
        assert_eq!(left_over(&all(&format!("{}1/3 1/2", whole(9))), 20), [9]);
        assert_eq!(left_over(&all(&format!("{}1/3 1/2", whole(3))), 20), Vec::<usize>::new());
    }

    #[test]
    fn a_case_that_is_not_needed_says_why() {
        let mut candidate = all("1/3").remove(0);
        drop_of(&mut candidate);
        assert_eq!(candidate.status, CandidateStatus::Dropped);
        assert_eq!(
            candidate.reason.as_deref(),
            Some("its tests do not notice 2 of 3 hunks, and others are enough: a.py:1, a.py:2")
        );
        let mut candidate = all("!1/3").remove(0);
        drop_of(&mut candidate);
        assert_eq!(candidate.status, CandidateStatus::Dropped);
        assert_eq!(
            candidate.reason.as_deref(),
            Some("an agent can replace the packages of its tests by these settings, and others are enough: Cargo.toml")
        );
    }
}

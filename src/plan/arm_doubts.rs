//! What the arms of an experiment share or lack in some cases, so that these cases do not show what the variants do. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{PlanRequest, filter, same_arms};
use crate::case::Case;
use crate::experiment::Arm;
use crate::harness::catalog::Catalog;
use crate::text::{plural, some_of};

/// The maximum number of cases named in a text.
const MAX_NAMES: usize = 5;

/// A reason why some cases do not show what a variant does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArmDoubt {
    /// The agents of two variants get the same in these cases. `of` is the number of all cases.
    Same { first: String, second: String, cases: BTreeSet<String>, of: usize },
    /// Counted graders of these cases ask whether a skill was used that the arm does not have, but another one has.
    Lacks { arm: String, skill: String, cases: BTreeSet<String> },
}

impl ArmDoubt {
    pub fn cases(&self) -> &BTreeSet<String> {
        match self {
            ArmDoubt::Same { cases, .. } | ArmDoubt::Lacks { cases, .. } => cases,
        }
    }
}

impl fmt::Display for ArmDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArmDoubt::Same { first, second, cases, of } => write!(
                f,
                "the variants `{first}` and `{second}` are the same in {} of {} ({}), which show no effect and lessen the \
                 difference: the case has what the variant adds",
                cases.len(),
                plural(*of, "case"),
                some_of(cases, MAX_NAMES)
            ),
            ArmDoubt::Lacks { arm, skill, cases } => write!(
                f,
                "`skills` asks for `{skill}`, which `{arm}` does not have: {} ({}); the grade depends on which arm has the \
                 skill, so let it not count (`diagnostic: true`)",
                plural(cases.len(), "case"),
                some_of(cases, MAX_NAMES)
            ),
        }
    }
}

/// Returns the doubts about the arms of an experiment over the planned cases.
pub fn of_plan(cases: &[Case], catalog: &Catalog, asked: &PlanRequest) -> Vec<ArmDoubt> {
    let Ok(kept) = filter(cases, asked) else { return Vec::new() };
    if asked.aa {
        return Vec::new();
    }
    let partly = same_arms(&kept, catalog, asked).into_iter().filter(|(differ, ..)| !differ.is_empty());
    let same = partly.map(|(differ, first, second)| {
        let cases = kept.iter().map(|case| case.id.clone()).filter(|id| !differ.contains(id)).collect();
        ArmDoubt::Same { first, second, cases, of: kept.len() }
    });
    same.chain(lacking(&kept, &asked.arms)).collect()
}

/// Returns the skills that counted graders ask for and that some of the arms have, each with the arms that lack it.
pub fn lacking(cases: &[&Case], arms: &[Arm]) -> Vec<ArmDoubt> {
    let mut found: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for case in cases {
        let counted = case.graders.iter().filter(|grader| grader.counts());
        let asked: BTreeSet<String> = counted.flat_map(|grader| grader.kind.spec().asked_skills()).collect();
        if asked.is_empty() {
            continue;
        }
        let skills_of = |arm: &Arm| -> BTreeSet<String> {
            arm.case(case).overlay.skills.into_iter().map(|skill| skill.name).collect()
        };
        let of_arms: Vec<(&Arm, BTreeSet<String>)> = arms.iter().map(|arm| (arm, skills_of(arm))).collect();
        for skill in asked.iter().filter(|skill| of_arms.iter().any(|(_, has)| has.contains(*skill))) {
            for (arm, _) in of_arms.iter().filter(|(_, has)| !has.contains(skill)) {
                found.entry((arm.name.clone(), skill.clone())).or_default().insert(case.id.clone());
            }
        }
    }
    found.into_iter().map(|((arm, skill), cases)| ArmDoubt::Lacks { arm, skill, cases }).collect()
}

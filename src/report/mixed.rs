//! What changed between the trials of a run (`--changed`): its trials may be of different versions. Pure.

use crate::ids::{CellId, without_copy};
use crate::run::{ArmRecord, RunRecord};
use crate::text::some_of;

/// Returns true if the case, the harness or the arm of a cell changed between the trials of the run.
pub fn is_mixed(run: &RunRecord, cell: &CellId) -> bool {
    let is_arm = |arm: &ArmRecord| arm.name == cell.arm || arm.name == without_copy(&cell.arm);
    run.case(&cell.case).is_some_and(|case| case.mixed)
        || run.harnesses.iter().any(|harness| harness.mixed && harness.name == cell.harness)
        || run.arms.iter().any(|arm| arm.mixed && is_arm(arm))
}

/// Returns true if trials of the run were priced by different price tables.
pub fn has_mixed_prices(run: &RunRecord) -> bool {
    run.prices.as_ref().is_some_and(|prices| prices.mixed)
}

/// Returns what changed between the trials of the run, by name. Returns `None` if nothing did.
pub fn changed_parts(run: &RunRecord) -> Option<String> {
    let cases = run.cases.iter().filter(|it| it.mixed).map(|it| format!("case {}", it.id));
    let harnesses = run.harnesses.iter().filter(|it| it.mixed).map(|it| format!("harness {}", it.name));
    let arms = run.arms.iter().filter(|it| it.mixed).map(|it| format!("variant {}", it.name));
    let prices = has_mixed_prices(run).then(|| "the price table".to_owned());
    let names: Vec<String> = prices.into_iter().chain(cases).chain(harnesses).chain(arms).collect();
    (!names.is_empty()).then(|| some_of(&names, 5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_variant_mixes_its_copies_and_no_other_arm() {
        let arm = |name: &str, mixed: bool| ArmRecord {
            name: name.to_owned(),
            harness: None,
            model: None,
            digest: String::new(),
            overrides: serde_json::Map::new(),
            sources: std::collections::BTreeMap::new(),
            labels: std::collections::BTreeMap::new(),
            mixed,
            same_as: std::collections::BTreeMap::new(),
            lacks_skills: std::collections::BTreeMap::new(),
        };
        let run = RunRecord { arms: vec![arm("old", false), arm("new", true)], ..RunRecord::blank() };
        let of = |arm: &str| is_mixed(&run, &CellId::new("a", "h", arm));
        assert_eq!(["old", "new", "new#2"].map(of), [false, true, true]);
        assert_eq!(changed_parts(&run).as_deref(), Some("variant new"));
        assert_eq!(changed_parts(&RunRecord::blank()), None);
    }
}

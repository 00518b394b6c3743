//! The baseline file: the scores of a run, small enough for version control, with the digests and versions that
//! show whether it still applies.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::compare::side::{Arm, CaseFacts, MadeWith, Side, model_of_column};
use crate::fold::CaseTrials;
use crate::ids::column_name;
use crate::regular;
use crate::repeated_key::RepeatedKey;
use crate::run::user_file::write_named;
use crate::run::{PriceRecord, RunError, RunRecord};

/// The version of the file format that this program writes. Files of a higher version are refused.
pub const VERSION: u32 = 1;

/// The file name. The file lies beside the cases.
pub const FILE: &str = "baseline.json";

/// The scores, costs, digests and versions of a run, for comparison with a later run; no traces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Baseline {
    /// Version of the file format.
    pub baseline: u32,
    /// The run that the baseline was made from.
    pub run: String,
    /// The time at which that run began.
    pub started: String,
    /// Version of `evals` that made that run.
    pub evals: String,
    /// True if the trials were graded again, perhaps by a case that had changed since they ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub graded: bool,
    /// The other runs that the trials come from: for trials that were graded again, the original runs, the nearest first;
    /// then the shards of merged runs. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
    /// The number of times the scores were evaluated while the run was in progress (`--trials auto`). Absent: once.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub looks: u32,
    /// The price table of that run. Absent in baselines of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<PriceRecord>,
    /// The names of the user's environment variables that the agents of that run got (`--env`). Absent in baselines of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeSet<String>>,
    /// The cases in quarantine that files of an earlier form name here, by id, each with the reason as text: every arm without
    /// results of such a case lacks it. Newer files name them in their arms.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    quarantined: BTreeMap<String, String>,
    /// The cases, by id.
    pub cases: BTreeMap<String, CaseFacts>,
    /// The arms whose results the baseline keeps.
    pub arms: Vec<BaselineArm>,
}

/// Returns the name of a cell, as in [`Lost::cells`].
pub fn cell_name(case: &str, harness: &str, model: &str) -> String {
    format!("{case} ({})", column_name(harness, model))
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_one(count: &u32) -> bool {
    *count == 1
}

/// An arm of a baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BaselineArm {
    /// The name of the harness.
    pub harness: String,
    /// Digest of its manifest.
    pub manifest: String,
    /// The arm's name: the variant of an experiment, else the model asked for, or `default` without one.
    pub model: String,
    /// The harness, model and settings that produced the trials.
    #[serde(flatten)]
    pub made: MadeWith,
    /// The cases that were in quarantine and of which the arm has no results, by id, each with the reason as text. Absent if
    /// there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quarantined: BTreeMap<String, String>,
    /// The results of the arm by case.
    pub cases: BTreeMap<String, CaseTrials>,
}

impl BaselineArm {
    /// Returns the arm of a run with the same harness and name.
    fn of_run<'a>(&self, side: &'a Side) -> Option<&'a Arm> {
        side.arms.iter().find(|arm| arm.harness == self.harness && arm.column == self.model)
    }

    /// Returns the cases that the arm lacks because of a quarantine and of which the run of `side` has no score in this arm that
    /// counts, each with the reason. A case that the run skipped or does not have is one of them.
    fn still_lacked<'a>(&'a self, side: &'a Side) -> impl Iterator<Item = (&'a String, &'a String)> {
        let of_run = self.of_run(side);
        let counts = move |id: &String| {
            let now = of_run.and_then(|arm| arm.cases.get(id));
            !side.quarantined.contains_key(id) && now.is_some_and(|case| !case.scores.is_empty())
        };
        self.quarantined.iter().filter(move |(id, _)| !counts(id))
    }
}

/// A case that arms of a baseline lack because of a quarantine.
#[derive(Debug)]
pub struct Lacked<'a> {
    pub id: &'a str,
    /// The reason as text.
    pub why: &'a str,
    /// The names of the arms that lack the case.
    pub columns: Vec<String>,
    /// True if all arms of the baseline lack the case.
    pub is_of_all: bool,
}

impl<'a> Lacked<'a> {
    /// Collects the cases that arms of a baseline lack, by id. `arms` is the number of its arms.
    fn collect(arms: usize, lacked: impl Iterator<Item = (&'a BaselineArm, &'a String, &'a String)>) -> Vec<Self> {
        let mut found: BTreeMap<&str, Self> = BTreeMap::new();
        for (arm, id, why) in lacked {
            let entry = found.entry(id).or_insert_with(|| Self { id, why, columns: Vec::new(), is_of_all: false });
            entry.columns.push(column_name(&arm.harness, &arm.model));
            entry.is_of_all = entry.columns.len() == arms;
        }
        found.into_values().collect()
    }

    /// Returns the id of the case, with the arms that lack it if others do not.
    pub fn name(&self) -> String {
        if self.is_of_all { self.id.to_owned() } else { format!("{} of {}", self.id, self.columns.join(", ")) }
    }
}

/// The results of a baseline that another one does not have.
#[derive(Debug, Default)]
pub struct Lost {
    /// The ids of the cases that the other baseline does not have.
    pub cases: Vec<String>,
    /// The columns with scores, or with cases that they lack because of a quarantine, that the other baseline does not have.
    pub columns: Vec<String>,
    /// The cells with scores of the other cases and columns for which the other baseline has no score.
    pub cells: Vec<String>,
}

impl Baseline {
    /// Makes the baseline of a run. Cases in which a person answered are left out, because no two such runs are
    /// alike.
    pub fn of(record: &RunRecord, side: &Side) -> Self {
        let manual = |id: &str, arm: &Arm| {
            side.cases.get(id).is_none_or(|case| case.interaction == "manual")
                || arm.details.as_ref().is_some_and(|details| details.manual.contains(id))
        };
        let arms: Vec<BaselineArm> = side
            .arms
            .iter()
            .map(|arm| BaselineArm {
                harness: arm.harness.clone(),
                manifest: side.harnesses.get(&arm.harness).cloned().unwrap_or_default(),
                model: arm.column.clone(),
                made: arm.made.clone(),
                quarantined: BTreeMap::new(),
                cases: arm
                    .cases
                    .iter()
                    .filter(|(id, _)| !manual(id, arm) && !side.quarantined.contains_key(*id))
                    .map(|(id, it)| (id.clone(), it.clone()))
                    .collect(),
            })
            .collect();
        let kept = |id: &String| arms.iter().any(|arm| arm.cases.contains_key(id));
        let facts = |facts: &CaseFacts| CaseFacts { tags: Vec::new(), ..facts.clone() };
        let mut baseline = Self {
            baseline: VERSION,
            run: record.run.clone(),
            started: record.started.clone(),
            evals: record.evals.clone(),
            graded: side.graded,
            origins: side.origins.clone(),
            looks: side.looks,
            prices: side.prices.clone(),
            env: side.env.clone(),
            quarantined: BTreeMap::new(),
            cases: side.cases.iter().filter(|(id, _)| kept(id)).map(|(id, it)| (id.clone(), facts(it))).collect(),
            arms,
        };
        baseline.name_quarantined(side);
        baseline
    }

    /// Names the cases in quarantine of which an arm has no results, although its run planned them.
    fn name_quarantined(&mut self, side: &Side) {
        for arm in &mut self.arms {
            let of_run = arm.of_run(side);
            let is_planned = |id: &String| of_run.is_some_and(|it| it.cases.contains_key(id));
            let lacked = side.quarantined.iter().filter(|(id, _)| is_planned(id) && !arm.cases.contains_key(*id));
            arm.quarantined = lacked.map(|(id, why)| (id.clone(), why.clone())).collect();
        }
    }

    /// Names the cases that a file of an earlier form names for all arms in each arm without results of them.
    fn name_by_arm(&mut self) {
        for (id, why) in std::mem::take(&mut self.quarantined) {
            for arm in self.arms.iter_mut().filter(|arm| !arm.cases.contains_key(&id)) {
                arm.quarantined.entry(id.clone()).or_insert_with(|| why.clone());
            }
        }
    }

    /// Returns the cases that arms lack because of a quarantine, by id.
    pub fn lacked(&self) -> Vec<Lacked<'_>> {
        let lacked = self.arms.iter().flat_map(|arm| arm.quarantined.iter().map(move |(id, why)| (arm, id, why)));
        Lacked::collect(self.arms.len(), lacked)
    }

    fn arm(&self, harness: &str, model: &str) -> Option<&BaselineArm> {
        self.arms.iter().find(|arm| arm.harness == harness && arm.model == model)
    }

    /// Returns the names of the cells of which no trial has a score.
    pub fn unscored(&self) -> impl Iterator<Item = String> {
        self.cells(|case| case.scores.is_empty())
    }

    /// Returns the names of the cells whose agents could read files of their own case.
    pub fn read_own_case(&self) -> impl Iterator<Item = String> {
        self.cells(|case| case.case_in_workspace > 0)
    }

    fn cells(&self, is_named: fn(&CaseTrials) -> bool) -> impl Iterator<Item = String> {
        let of_arm = move |arm: &BaselineArm| {
            let named = arm.cases.iter().filter(|(_, case)| is_named(case));
            named.map(|(id, _)| cell_name(id, &arm.harness, &arm.model)).collect::<Vec<_>>()
        };
        self.arms.iter().flat_map(of_arm)
    }

    /// Adds the results of cases in quarantine from the baseline that this one replaces, and returns the ids of these cases.
    /// Without them, the cases would count as new when their quarantine ends, and gates would pass whatever they lost. `side`
    /// is the run of this baseline. A case that an arm of the other baseline lacks because of a quarantine stays named in this
    /// arm until a run has a score of it there.
    pub fn keep_quarantined(&mut self, before: &Self, side: &Side) -> Vec<String> {
        let mut kept = Vec::new();
        for (id, facts) in before.cases.iter().filter(|(id, _)| side.quarantined.contains_key(*id)) {
            let mut is_kept = false;
            for arm in &mut self.arms {
                let was = before.arm(&arm.harness, &arm.model).and_then(|was| was.cases.get(id));
                if let Some(was) = was {
                    arm.cases.insert(id.clone(), was.clone());
                    is_kept = true;
                }
            }
            if is_kept {
                let from = facts.kept_from.clone().unwrap_or_else(|| before.run.clone());
                self.cases.insert(id.clone(), CaseFacts { kept_from: Some(from), ..facts.clone() });
                kept.push(id.clone());
            }
        }
        self.name_quarantined(side);
        for arm in &mut self.arms {
            let was = before.arm(&arm.harness, &arm.model);
            for (id, why) in was.into_iter().flat_map(|was| was.still_lacked(side)) {
                arm.quarantined.entry(id.clone()).or_insert_with(|| why.clone());
            }
        }
        self.drop_unscored_of_lacked();
        kept.retain(|id| self.cases.contains_key(id));
        kept
    }

    /// Removes the results without a score of the cases that an arm lacks: a comparison would take such a case for one that
    /// nothing can be lost of. The scores of other arms stay, and are compared.
    fn drop_unscored_of_lacked(&mut self) {
        for arm in &mut self.arms {
            let named = &arm.quarantined;
            arm.cases.retain(|id, case| !case.scores.is_empty() || !named.contains_key(id));
        }
        let arms = &self.arms;
        self.cases.retain(|id, _| arms.iter().any(|arm| arm.cases.contains_key(id)));
    }

    /// Returns the cases that arms of `before` lack because of a quarantine, if this baseline neither names them in the same
    /// arm nor has a score of them there. `side` is its run.
    pub fn forgotten_of<'a>(&self, before: &'a Self, side: &'a Side) -> Vec<Lacked<'a>> {
        let of_arm = |was: &'a BaselineArm| {
            let now = self.arm(&was.harness, &was.model).map(|arm| &arm.quarantined);
            let is_named = move |id: &String| now.is_some_and(|named| named.contains_key(id));
            let lacked = was.still_lacked(side).filter(move |(id, _)| !is_named(id));
            lacked.map(move |(id, why)| (was, id, why))
        };
        Lacked::collect(before.arms.len(), before.arms.iter().flat_map(of_arm))
    }

    /// Returns the results of this baseline that another one does not have.
    pub fn lost_with(&self, other: &Self) -> Lost {
        let has_score = |case: &CaseTrials| !case.scores.is_empty();
        let cases = self.cases.keys().filter(|id| !other.cases.contains_key(*id)).cloned().collect();
        let mut lost = Lost { cases, ..Lost::default() };
        let has_names = |arm: &BaselineArm| !arm.quarantined.is_empty();
        for arm in self.arms.iter().filter(|arm| has_names(arm) || arm.cases.values().any(has_score)) {
            let column = column_name(&arm.harness, &arm.model);
            let Some(now) = other.arm(&arm.harness, &arm.model) else {
                lost.columns.push(column);
                continue;
            };
            let is_lost = |id: &String| other.cases.contains_key(id) && !now.cases.get(id).is_some_and(has_score);
            let cells = arm.cases.iter().filter(|(id, case)| has_score(case) && is_lost(id));
            lost.cells.extend(cells.map(|(id, _)| cell_name(id, &arm.harness, &arm.model)));
        }
        lost
    }

    /// Returns the baseline as a side of a comparison.
    pub fn side(&self) -> Side {
        let arm = |arm: &BaselineArm| Arm {
            model: model_of_column(&arm.model).filter(|_| arm.made.variant.is_none()),
            name: format!("baseline {}", column_name(&arm.harness, &arm.model)),
            run: self.run.clone(),
            harness: arm.harness.clone(),
            column: arm.model.clone(),
            cases: arm.cases.clone(),
            made: arm.made.clone(),
            quarantined: BTreeMap::new(),
            left_out: arm.quarantined.clone(),
            skipped: BTreeSet::new(),
            same_as: BTreeMap::new(),
            lacks_skills: BTreeMap::new(),
            details: None,
        };
        Side {
            run: self.run.clone(),
            label: None,
            evals: self.evals.clone(),
            cases: self.cases.clone(),
            harnesses: self.arms.iter().map(|arm| (arm.harness.clone(), arm.manifest.clone())).collect(),
            arms: self.arms.iter().map(arm).collect(),
            baseline: true,
            graded: self.graded,
            origins: self.origins.clone(),
            digests: HashMap::new(),
            interleaved: false,
            quarantined: BTreeMap::new(),
            prices: self.prices.clone(),
            env: self.env.clone(),
            looks: self.looks,
        }
    }

    /// Reads the file.
    ///
    /// # Errors
    /// Returns an error if the file does not exist, is not a baseline, has values that no run could have written, or was
    /// written by a newer program.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let malformed = |message: String| RunError::Malformed { path: path.to_owned(), message };
        let text = regular::read(path).map_err(RunError::io("read", path))?;
        // It may have been saved by an editor.
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
        let value: serde_json::Value = serde_json::from_slice(text).map_err(|error| {
            malformed(format!("it is not JSON, so it is no baseline: {error}; `evals baseline set RUN` writes one"))
        })?;
        let version = value.get("baseline").and_then(serde_json::Value::as_u64);
        let Some(version) = version else {
            return Err(malformed("it is not a baseline; `evals baseline set RUN` writes one".to_owned()));
        };
        if version > u64::from(VERSION) {
            let version = u32::try_from(version).unwrap_or(u32::MAX);
            return Err(RunError::Newer { path: path.to_owned(), version });
        }
        // The second line of a case would silently replace the first.
        if let Some(RepeatedKey { key, line, column }) = RepeatedKey::find(&String::from_utf8_lossy(text)) {
            let place = format!("in the same object at line {line} column {column}");
            return Err(malformed(format!("`{key}` occurs twice {place}; remove one of the two")));
        }
        let mut baseline: Self = serde_json::from_value(value).map_err(|error| malformed(error.to_string()))?;
        baseline.check().map_err(malformed)?;
        baseline.name_by_arm();
        Ok(baseline)
    }

    /// Refuses values that no run could have written: people merge this file by hand, so it may hold anything.
    fn check(&self) -> Result<(), String> {
        for (number, arm) in self.arms.iter().enumerate() {
            let column = column_name(&arm.harness, &arm.model);
            if self.arms.iter().take(number).any(|known| known.harness == arm.harness && known.model == arm.model) {
                return Err(format!("{column} occurs in it twice"));
            }
            for (id, case) in &arm.cases {
                // Without its properties, a comparison would take the case for a new one.
                if !self.cases.contains_key(id) {
                    return Err(format!("`{id}` of {column} has results, but is not in `cases`"));
                }
                if let Some(why) = case.is_impossible() {
                    return Err(format!("`{id}` of {column}: {why}"));
                }
            }
        }
        // `set` writes only cases that an arm has, so the results of such a case were lost. It would count as a new case.
        match self.cases.keys().find(|id| self.arms.iter().all(|arm| !arm.cases.contains_key(*id))) {
            Some(id) => Err(format!("`{id}` is in `cases`, but has no results in any of `arms`")),
            None => Ok(()),
        }
    }

    /// Writes the file with one line per case, so that a change shows as the lines of its cases.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), RunError> {
        let text = self.text().map_err(|error| RunError::io("write", path)(error.into()))?;
        write_named(path, |out| out.write_all(text.as_bytes()))
    }

    fn text(&self) -> serde_json::Result<String> {
        let word = |text: &str| serde_json::to_string(text);
        let mut text = format!("{{\n  \"baseline\": {},\n", self.baseline);
        for (key, value) in [("run", &self.run), ("started", &self.started), ("evals", &self.evals)] {
            let _ = writeln!(text, "  \"{key}\": {},", word(value)?);
        }
        if self.graded {
            text.push_str("  \"graded\": true,\n");
        }
        if self.graded || !self.origins.is_empty() {
            let _ = writeln!(text, "  \"origins\": {},", serde_json::to_string(&self.origins)?);
        }
        if !is_one(&self.looks) {
            let _ = writeln!(text, "  \"looks\": {},", self.looks);
        }
        if let Some(prices) = &self.prices {
            let _ = writeln!(text, "  \"prices\": {},", serde_json::to_string(prices)?);
        }
        if let Some(env) = &self.env {
            let _ = writeln!(text, "  \"env\": {},", serde_json::to_string(env)?);
        }
        let _ = writeln!(text, "  \"cases\": {{{}\n  }},", lines(&self.cases, "    ")?);
        text.push_str("  \"arms\": [");
        for (n, arm) in self.arms.iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            let [harness, manifest, model] = [word(&arm.harness)?, word(&arm.manifest)?, word(&arm.model)?];
            let serde_json::Value::Object(made) = serde_json::to_value(&arm.made)? else { continue };
            let mut made: String = made.iter().map(|(key, value)| format!("      \"{key}\": {value},\n")).collect();
            if !arm.quarantined.is_empty() {
                let _ = writeln!(made, "      \"quarantined\": {{{}\n      }},", lines(&arm.quarantined, "        ")?);
            }
            let _ = write!(
                text,
                "{comma}\n    {{\n      \"harness\": {harness},\n      \"manifest\": {manifest},\n      \"model\": {model},\n{made}      \"cases\": {{{}\n      }}\n    }}",
                lines(&arm.cases, "        ")?
            );
        }
        text.push_str("\n  ]\n}\n");
        Ok(text)
    }
}

/// Writes a map as JSON with one line per key.
fn lines<T: Serialize>(map: &BTreeMap<String, T>, indent: &str) -> serde_json::Result<String> {
    let mut text = String::new();
    for (n, (key, value)) in map.iter().enumerate() {
        let comma = if n == 0 { "" } else { "," };
        let (key, value) = (serde_json::to_string(key)?, serde_json::to_string(value)?);
        let _ = write!(text, "{comma}\n{indent}{key}: {value}");
    }
    Ok(text)
}

/// Returns the folder that the baseline of a run's suite is written to: the outermost folder above all of its
/// cases that holds a `suite.yaml` or is named `cases`, but no folder above one named `cases`. Without such a
/// folder: the folder that contains all of the cases.
pub fn place(record: &RunRecord) -> Option<PathBuf> {
    let folders = folders(record)?;
    folders.last().map(|folder| folder.join(FILE))
}

/// Returns the baseline that a run is compared with: the first one found on the way up from the folder that
/// contains all of its cases. So a run of a part of the suite finds the baseline of the whole suite.
pub fn found(record: &RunRecord) -> Option<PathBuf> {
    folders(record)?.into_iter().map(|folder| folder.join(FILE)).find(|path| path.is_file())
}

/// Returns the folder that contains all cases of a run, and the folders above it up to the outermost folder of
/// the suite.
fn folders(record: &RunRecord) -> Option<Vec<&Path>> {
    let first = record.cases.first()?.path.parent()?;
    let above_all = |folder: &&Path| record.cases.iter().all(|case| case.path.starts_with(folder));
    let is_named = |folder: &&Path| folder.file_name().is_some_and(|name| name == "cases");
    let mut above: Vec<&Path> = first.ancestors().filter(above_all).collect();
    if let Some(named) = above.iter().position(is_named) {
        above.truncate(named + 1);
    }
    let outermost = above.iter().rposition(|folder| is_named(folder) || folder.join("suite.yaml").is_file());
    above.truncate(outermost.map_or(1, |place| place + 1));
    Some(if above.is_empty() { vec![first] } else { above })
}

//! Calibrations: verdicts of judges compared with labels by people, the resulting figures, and the file that
//! stores them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::pairwise_calibration::Pairs;
use crate::grade::judge_record::{CriterionVerdict, JudgeRecord};
use crate::judgement::tolerance;
use crate::model_client::ModelName;
use crate::regular;
use crate::rounding;
use crate::statistics::agreement::{self, JudgedRate};
use crate::statistics::{Interval, LEVEL, rates};

/// The minimum values that a calibration must reach, for each criterion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Floor {
    /// The minimum true pass rate: of the passes by people, the share that the judge passed as well.
    pub tpr: f64,
    /// The minimum true fail rate: of the failures by people, the share that the judge failed as well.
    pub tnr: f64,
    /// The minimum of Cohen's kappa.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kappa: Option<f64>,
    /// The minimum number of labels for which the judge gave a verdict.
    pub labels: u64,
}

impl Default for Floor {
    fn default() -> Self {
        Self { tpr: 0.8, tnr: 0.8, kappa: None, labels: 20 }
    }
}

impl Floor {
    /// Returns why the floor is invalid.
    pub fn refusal(&self) -> Option<String> {
        let share = |value: f64| (0.0..=1.0).contains(&value);
        let kappa = self.kappa.is_none_or(|kappa| (-1.0..=1.0).contains(&kappa));
        (!share(self.tpr) || !share(self.tnr) || !kappa).then(|| {
            "has a `floor` that cannot be reached: `tpr` and `tnr` must be from 0 to 1, `kappa` from -1 to 1".to_owned()
        })
    }
}

/// Counts of a judge's verdicts by labels of people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Counts {
    /// The judge and people pass.
    pub tp: u64,
    /// The judge passes, people fail.
    pub fp: u64,
    /// The judge and people fail.
    pub tn: u64,
    /// The judge fails, people pass.
    pub r#fn: u64,
    /// The judge has no verdict, people pass.
    #[serde(default)]
    pub unknown_pass: u64,
    /// The judge has no verdict, people fail.
    #[serde(default)]
    pub unknown_fail: u64,
}

/// A share with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// The share.
    pub value: f64,
    /// The lower end of its 95 % interval. Absent if the labels show no spread that an interval can be computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end of its 95 % interval. Absent if the lower one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

impl Rate {
    /// Makes a rate with an interval, if there is one.
    pub fn new(value: f64, interval: Option<Interval>) -> Self {
        let (low, high) = interval.map(|it| (it.low, it.high)).unzip();
        Self { value, low, high }
    }
}

/// The verdicts of the judge that `judged_rate` is computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSource {
    /// The number of verdicts.
    pub verdicts: u64,
    /// True if they are on sessions with a label.
    pub has_labels: bool,
}

/// Figures computed from counts. Figures that cannot be computed are absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Measured {
    /// The confusion table.
    pub counts: Counts,
    /// The true pass rate: of the passes by people, the share that the judge passed as well, without unknown verdicts.
    /// Wilson interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tpr: Option<Rate>,
    /// The true fail rate: of the failures by people, the share that the judge failed as well, without unknown
    /// verdicts. Wilson interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tnr: Option<Rate>,
    /// Cohen's kappa.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kappa: Option<Rate>,
    /// The pass rate of the judge's verdicts that `corrected_rate` is computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged_rate: Option<f64>,
    /// The verdicts that `judged_rate` is computed from. The file does not keep them.
    #[serde(skip)]
    pub rate_source: Option<RateSource>,
    /// The pass rate corrected for the judge's errors, by Rogan and Gladen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrected_rate: Option<Rate>,
}

/// The file of a calibration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Calibration {
    /// The grader's name.
    pub rubric: String,
    /// The measured judges.
    pub judges: Vec<ModelName>,
    /// The digest of their instructions.
    pub prompt_digest: String,
    /// The day of the calibration, as `YYYY-MM-DD` in UTC.
    pub date: String,
    /// The number of labels by people.
    pub labels: u64,
    /// The figures over all criteria.
    pub all: Measured,
    /// The figures of each criterion.
    pub criteria: BTreeMap<String, Measured>,
    /// The figures of each model whose sessions were judged. They show whether a judge favours one of the models.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, Measured>,
    /// For a comparison: the outcomes of people and judges about each pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<Pairs>,
}

/// The file of a calibration, and the agreement that it must show so that the judges' answers count.
#[derive(Debug, Clone)]
pub struct CalibrationRequirements<'a> {
    /// Digest of the judges' instructions.
    pub prompt_digest: String,
    /// The calibration file, if named.
    pub file: Option<&'a Path>,
    /// The minimum values.
    pub floor: &'a Floor,
    /// The criteria that must reach the minimum values.
    pub criteria: Vec<&'a str>,
}

impl CalibrationRequirements<'_> {
    /// Writes the calibration of judges to a record. Returns the reason if their answers would not count.
    pub fn tell(
        &self,
        judges: &[ModelName],
        case_folder: &Path,
        is_required: bool,
        record: &mut JudgeRecord,
    ) -> Option<String> {
        let standing = standing(self, judges, case_folder);
        record.calibrated = Some(standing.is_ok());
        let lacks = standing.as_ref().err().filter(|_| is_required).map(|why| format!("requires a calibration: {why}"));
        record.calibration = Some(standing.unwrap_or_else(|why| why));
        lacks
    }
}

impl Counts {
    pub fn add(&mut self, judge: CriterionVerdict, label_is_pass: bool) {
        let place = match (judge, label_is_pass) {
            (CriterionVerdict::Pass, true) => &mut self.tp,
            (CriterionVerdict::Pass, false) => &mut self.fp,
            (CriterionVerdict::Fail, false) => &mut self.tn,
            (CriterionVerdict::Fail, true) => &mut self.r#fn,
            (CriterionVerdict::Unknown, true) => &mut self.unknown_pass,
            (CriterionVerdict::Unknown, false) => &mut self.unknown_fail,
        };
        *place += 1;
    }

    /// Returns true if sums of the counts cannot overflow: a person may have written them.
    fn can_be_added(&self) -> bool {
        let Counts { tp, fp, tn, r#fn: missed, unknown_pass, unknown_fail } = *self;
        [tp, fp, tn, missed, unknown_pass, unknown_fail].into_iter().all(|count| u32::try_from(count).is_ok())
    }

    /// Returns the number of labels.
    pub fn labels(&self) -> u64 {
        self.tp + self.fp + self.tn + self.r#fn + self.unknown_pass + self.unknown_fail
    }

    /// Computes the figures. `judged` holds how many sessions the judge passed, and out of how many, if the rate is
    /// measured on sessions without a label; else it is measured on sessions with a label.
    pub fn measured(self, judged: Option<(u64, u64)>) -> Measured {
        let Counts { tp, fp, tn, r#fn: missed, .. } = self;
        let (tpr, tnr) = (wilson(tp, tp + missed), wilson(tn, tn + fp));
        let (passed, of) = judged.unwrap_or((tp + fp, tp + fp + tn + missed));
        let judged_rate = (of > 0).then(|| passed as f64 / of as f64);
        let corrected_rate = corrected(passed, of, (tn, tn + fp), (tp, tp + missed));
        let rate_source = (of > 0).then_some(RateSource { verdicts: of, has_labels: judged.is_none() });
        Measured { counts: self, tpr, tnr, kappa: kappa(self), judged_rate, rate_source, corrected_rate }
    }
}

/// Returns a share with Wilson's score interval; `None` without any.
pub fn wilson(part: u64, whole: u64) -> Option<Rate> {
    Some(Rate::new(part as f64 / whole as f64, Some(rates::wilson(part, whole, LEVEL)?)))
}

/// Returns Cohen's kappa with the interval by Fleiss, Cohen and Everitt. `None` if both gave only one verdict. Without any
/// disagreement, the labels show no spread, and there is no interval.
pub fn kappa(counts: Counts) -> Option<Rate> {
    let Counts { tp, fp, tn, r#fn: missed, .. } = counts;
    let kappa = agreement::cohen(&[vec![tp, fp], vec![missed, tn]], LEVEL)?;
    Some(Rate::new(kappa.kappa?, kappa.interval.map(|it| it.within(-1.0, 1.0))))
}

/// Returns the pass rate corrected for the judge's errors: Rogan and Gladen, with the interval of Lee et al. `negatives`
/// and `positives` are the judge's correct verdicts on what people failed and passed. Returns `None` if the judge
/// distinguishes too little, or if a count of verdicts or labels is 0.
pub fn corrected(passed: u64, of: u64, negatives: (u64, u64), positives: (u64, u64)) -> Option<Rate> {
    if of == 0 || negatives.1 == 0 || positives.1 == 0 {
        return None;
    }
    let known = |(part, whole): (u64, u64)| (part as f64 / whole as f64, whole as f64);
    let (rate, n) = known((passed, of));
    let judged = JudgedRate { rate, n, specificity: known(negatives), sensitivity: known(positives) };
    let (value, interval) = agreement::corrected_rate(judged, LEVEL)?;
    Some(Rate::new(value.clamp(0.0, 1.0), Some(interval)))
}

/// The minimum number of passes by people, and of failures by people. Fewer measure nothing.
const MIN_VERDICTS_OF_A_KIND: u64 = 5;

impl Calibration {
    /// Returns a reason if the figures do not follow from the counts, so that `evals calibrate` cannot have written
    /// the file.
    pub fn is_impossible(&self) -> Option<String> {
        let groups = self.criteria.iter().chain(&self.models).map(|(name, measured)| (&**name, measured));
        for (name, measured) in groups.chain([("all", &self.all)]) {
            if !measured.counts.can_be_added() {
                return Some(format!("the counts of `{name}` are too large"));
            }
            let again = measured.counts.measured(None);
            let figures = [
                ("tpr", measured.tpr, again.tpr),
                ("tnr", measured.tnr, again.tnr),
                ("kappa", measured.kappa, again.kappa),
            ];
            for (what, stored, counted) in figures {
                if !same_rate(stored, counted) {
                    return Some(format!("the {what} of `{name}` does not match its counts"));
                }
            }
        }
        let sum = |map: &BTreeMap<String, Measured>| map.values().map(|measured| measured.counts.labels()).sum::<u64>();
        let all = self.all.counts.labels();
        let differ =
            self.labels != all || sum(&self.criteria) != all || (!self.models.is_empty() && sum(&self.models) != all);
        differ.then(|| "its counts of labels do not add up".to_owned())
    }

    /// Returns the figures below the floor, if there are any.
    pub fn below(&self, wanted: &CalibrationRequirements<'_>) -> Option<String> {
        let floor = wanted.floor;
        for id in &wanted.criteria {
            let Some(measured) = self.criteria.get(*id) else { return Some(format!("`{id}` has no labels")) };
            // Unknown verdicts measure nothing.
            let Counts { tp, fp, tn, r#fn: missed, .. } = measured.counts;
            let labels = tp + fp + tn + missed;
            if labels < floor.labels {
                return Some(format!(
                    "`{id}` has {labels} labels with a verdict of the judge; the floor is {}",
                    floor.labels
                ));
            }
            for (kind, labels) in [("passed", tp + missed), ("failed", tn + fp)] {
                if labels < MIN_VERDICTS_OF_A_KIND.min(floor.labels) {
                    return Some(format!(
                        "`{id}` has {labels} labels that people {kind}; {MIN_VERDICTS_OF_A_KIND} of each kind are required"
                    ));
                }
            }
            let kappa = floor.kappa.map(|least| ("kappa", measured.kappa, least));
            for (what, rate, least) in
                [("tpr", measured.tpr, floor.tpr), ("tnr", measured.tnr, floor.tnr)].into_iter().chain(kappa)
            {
                match rate {
                    None => return Some(format!("`{id}` has no {what}: its labels are all of one kind")),
                    Some(rate) if !tolerance::reaches(rate.value, least) => {
                        return Some(format!(
                            "`{id}` has {what} {}; the floor is {least}",
                            rounding::coefficient_beside(rate.value, least)
                        ));
                    }
                    Some(_) => {}
                }
            }
        }
        None
    }
}

/// Returns the measured agreement of judges, or why they are not calibrated.
///
/// # Errors
/// Returns the reason why the judges are not calibrated.
fn standing(wanted: &CalibrationRequirements<'_>, judges: &[ModelName], case_folder: &Path) -> Result<String, String> {
    let Some(path) = wanted.file else {
        return Err(
            "it has no calibration; to calibrate a grader, put it in graders/ and run `evals calibrate`".to_owned()
        );
    };
    let path = case_folder.join(path);
    let shown = shown(&path);
    let text = regular::read_to_string(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("{shown} does not exist; create it with `evals calibrate`"),
        _ => format!("{shown} cannot be read: {error}"),
    })?;
    let calibration: Calibration =
        crate::yaml::parse(&path, &text).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    if let Some(why) = calibration.is_impossible() {
        return Err(format!("{shown} was changed by hand: {why}; calibrate it again"));
    }
    if calibration.prompt_digest != wanted.prompt_digest {
        return Err(format!("{shown} belongs to another version of the grader; calibrate it again"));
    }
    let sorted = |names: &[ModelName]| {
        let mut names = names.to_vec();
        names.sort();
        names
    };
    if sorted(&calibration.judges) != sorted(judges) {
        let (of, now) = (super::joined(&calibration.judges), super::joined(judges));
        return Err(format!("{shown} belongs to the judge {of}, but the judge is {now}"));
    }
    if let Some(below) = calibration.below(wanted) {
        return Err(format!("{shown} is below the floor: {below}"));
    }
    let share = |rate: Option<Rate>| rate.map_or("unknown".to_owned(), |rate| rounding::coefficient(rate.value));
    let all = &calibration.all;
    Ok(format!("{} labels of {}: tpr {}, tnr {}", calibration.labels, calibration.date, share(all.tpr), share(all.tnr)))
}

/// Returns true if two rates are equal except for their formatting.
fn same_rate(stored: Option<Rate>, counted: Option<Rate>) -> bool {
    let near = |one: f64, other: f64| (one - other).abs() < 1e-6;
    // Older versions wrote an interval without width if the labels show no spread.
    let near_end = |stored: Option<f64>, counted: Option<f64>, value: f64| match counted {
        Some(counted) => stored.is_some_and(|stored| near(stored, counted)),
        None => stored.is_none_or(|stored| near(stored, value)),
    };
    match (stored, counted) {
        (None, None) => true,
        (Some(stored), Some(counted)) => {
            let is_end = |one, other| near_end(one, other, counted.value);
            near(stored.value, counted.value) && is_end(stored.low, counted.low) && is_end(stored.high, counted.high)
        }
        _ => false,
    }
}

fn shown(path: &Path) -> String {
    let name = |path: &Path| path.file_name().map(PathBuf::from).unwrap_or_default();
    match path.parent().map(name).filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => folder.join(name(path)).display().to_string(),
        None => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(rate: Option<Rate>, value: f64, low: f64, high: f64) {
        let rate = rate.unwrap();
        for (got, wanted) in [(rate.value, value), (rate.low.unwrap(), low), (rate.high.unwrap(), high)] {
            assert!((got - wanted).abs() < 1e-8, "{rate:?}: {wanted}");
        }
    }

    /// Values computed with scipy, statsmodels and sklearn.
    #[test]
    fn the_figures_are_those_of_others() {
        let measured = Counts { tp: 42, fp: 6, tn: 34, r#fn: 3, ..Counts::default() }.measured(None);
        near(measured.tpr, 0.933_333_333_333_333_3, 0.821_433_980_364_081_1, 0.977_067_967_400_749);
        near(measured.tnr, 0.85, 0.709_276_756_335_102_9, 0.929_388_122_826_796_5);
        // With so few samples that people failed, no rate can be corrected.
        assert_eq!(corrected(15, 101, (1, 1), (15, 100)), None);
        assert!((measured.kappa.unwrap().value - 0.786_610_878_661_088).abs() < 1e-9);
        let table = Counts { tp: 20, fp: 5, r#fn: 10, tn: 15, ..Counts::default() };
        near(kappa(table), 0.4, 0.151_092_290_476_661, 0.648_907_709_523_338_9);
        // 91 % agreement, but hardly any beyond chance.
        let paradox = Counts { tp: 90, fp: 5, r#fn: 4, tn: 1, ..Counts::default() }.measured(None);
        assert!((paradox.kappa.unwrap().value - 0.134_615_384_615_384_75).abs() < 1e-9);
        assert!((paradox.tnr.unwrap().value - 1.0 / 6.0).abs() < 1e-12);
        near(wilson(0, 10), 0.0, 0.0, 0.277_532_799_862_889_26);
        near(wilson(10, 10), 1.0, 0.722_467_200_137_110_6, 1.0);
    }

    #[test]
    fn perfect_agreement_has_a_kappa_without_an_interval() {
        for counts in [Counts { tp: 1, tn: 1, ..Counts::default() }, Counts { tp: 13, tn: 7, ..Counts::default() }] {
            let found = kappa(counts).unwrap();
            assert!((found.value - 1.0).abs() < 1e-12 && found.low.is_none() && found.high.is_none(), "{found:?}");
            // An older version wrote `[1.00, 1.00]`.
            let older = Some(Rate { value: 1.0, low: Some(1.0), high: Some(1.0) });
            assert!(same_rate(older, Some(found)) && same_rate(Some(found), Some(found)));
            assert!(!same_rate(Some(Rate { low: Some(0.5), ..found }), Some(found)));
        }
    }

    #[test]
    fn a_rate_is_corrected_by_the_judge_s_errors() {
        near(
            corrected(400, 1000, (140, 200), (180, 200)),
            1.0 / 6.0,
            0.056_350_724_841_608_94,
            0.262_733_025_785_958_8,
        );
        near(corrected(80, 100, (34, 40), (54, 60)), 0.866_666_666_666_666_6, 0.725_203_767_996_357_9, 1.0);
        // A judge that guesses measures nothing.
        assert_eq!(corrected(50, 100, (20, 40), (30, 60)), None);
        assert_eq!(corrected(0, 0, (1, 1), (1, 1)), None);
    }

    #[test]
    fn counts_that_cannot_be_added_are_refused() {
        let counts = "{tp: 18446744073709551615, fp: 0, tn: 0, fn: 1}";
        let text = format!(
            "{{rubric: r, judges: [], prompt-digest: d, date: d, labels: 1, all: {{counts: {counts}}}, criteria: {{}}}}"
        );
        let calibration: Calibration = serde_yaml::from_str(&text).unwrap();
        assert_eq!(calibration.is_impossible().as_deref(), Some("the counts of `all` are too large"));
    }

    #[test]
    fn a_calibration_that_cannot_be_read_is_not_called_missing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("folder.yaml")).unwrap();
        let why = |file: &str| {
            let floor = Floor::default();
            let file = Some(Path::new(file));
            let wanted =
                CalibrationRequirements { prompt_digest: String::new(), file, floor: &floor, criteria: Vec::new() };
            standing(&wanted, &[], folder.path()).unwrap_err()
        };
        assert!(why("folder.yaml").contains("folder.yaml cannot be read: this is a folder"), "{}", why("folder.yaml"));
        assert!(why("gone.yaml").contains("gone.yaml does not exist"), "{}", why("gone.yaml"));
    }

    #[test]
    fn what_counts_do_not_tell_is_absent() {
        let none = Counts::default().measured(None);
        assert_eq!((none.tpr, none.tnr, none.kappa, none.corrected_rate), (None, None, None, None));
        let mut counts = Counts::default();
        counts.add(CriterionVerdict::Pass, true);
        counts.add(CriterionVerdict::Unknown, false);
        let one = counts.measured(None);
        assert_eq!((one.tpr.map(|it| it.value), one.tnr, one.kappa), (Some(1.0), None, None));
        assert_eq!(counts.labels(), 2);
    }
}

//! `evals calibrate`: applies the judges of a rubric or a comparison to labelled traces, and measures their
//! agreement with the labels.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use tokio::task::JoinSet;

use super::judges::{self, JudgeArgs};
use super::output::{self, Content};
use super::stop::{INTERRUPTED, on_interrupt};
use super::{CliError, RunsFolder, engine, inputs, terminal};
use crate::grade::judge_record::CriterionVerdict;
use crate::grader::{Calibrate, LabelValue};
use crate::judge::Judges;
use crate::judge::calibration::{Calibration, Counts, Measured};
use crate::judge::pairwise_calibration::Pairs;
use crate::model_client::ModelName;
use crate::paths::shown;
use crate::project;
use crate::report::calibration as report;
use crate::report::page::terminal::write;
use crate::run::integrity;
use crate::run::user_file::write_named;

mod calibrated;
mod label;
mod labels;

use calibrated::{JudgeVerdicts, JudgedTrace};
use labels::{Label, Labels};

#[derive(Debug, clap::Args)]
pub struct CalibrateArgs {
    /// Labels by people, as JSON Lines: {"trace": PATH, "criterion": ID, "label": "pass" or "fail"}; for a
    /// comparison {"trace": PATH, "reference": PATH, "label": "better", "worse" or "tie"}
    labels: PathBuf,
    /// Rubric or comparison to calibrate: the name of a file in graders/
    #[arg(long, visible_alias = "pairwise", value_name = "NAME")]
    rubric: String,
    /// First ask for labels of these traces on the terminal, and append them to LABELS: a run, or a trace file;
    /// repeatable
    #[arg(long = "ask", value_name = "RUN|TRACE")]
    ask: Vec<String>,
    /// Ask for labels only, without calling judges
    #[arg(long, requires = "ask")]
    label_only: bool,
    /// Output file (default: NAME.calibration.yaml beside the rubric)
    #[arg(short, long, alias = "out", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: CalibrationFormat,
    /// Folder of the runs, for --ask
    #[arg(long = "runs", value_name = "DIR", default_value_os_t = super::default_runs())]
    runs: PathBuf,
    #[command(flatten)]
    judges: JudgeArgs,
}

/// The output format of a calibration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum CalibrationFormat {
    /// For people, in a terminal
    #[default]
    Table,
    /// One JSON object
    Json,
}

pub fn run(args: &CalibrateArgs) -> Result<u8, CliError> {
    let graded = calibrated::named(&args.rubric)?;
    if !args.ask.is_empty() {
        let runs = RunsFolder { runs: args.runs.clone() };
        label::ask(&args.ask, &runs, &*graded, &args.labels)?;
        if args.label_only {
            return Ok(0);
        }
    }
    let labels = Labels::read(&args.labels, &*graded)?;
    for of in labels.traces() {
        // A label is valid only for the trace that the person saw, and the judges see the change beside it.
        let beside = integrity::beside(&of.0);
        let had_patch = beside.result.is_some_and(|result| result.files.contains_key("workspace.patch"));
        let is_gone = had_patch && of.0.with_file_name("workspace.patch").symlink_metadata().is_err();
        let gone = is_gone.then(|| "its workspace.patch is missing".to_owned());
        if let Some(why) = beside.changed.or(beside.patch_changed).or(gone) {
            let (file, trace) = (args.labels.display(), shown(&of.0));
            let trace = trace.display();
            return Err(CliError::unreadable(format!("{file}: {trace} cannot be judged: {why}")));
        }
    }
    let temporary = engine::temporary()?;
    let interrupt = on_interrupt();
    let hides = vec![project::root().join("graders"), project::root().join(".evals")];
    let engine = engine::engine(&temporary, interrupt.clone(), hides)?;
    let (catalog, _) = inputs::catalog(&[])?;
    let chosen = judges::chosen(&args.judges, &catalog)?;
    graded.judges().iter().try_for_each(|name| judges::fit(&args.rubric, name, &catalog))?;
    let engine = judges::asking(engine, chosen, &args.judges, catalog)?;
    let names = engine.judges.chosen(graded.judges()).map_err(CliError::unreadable)?;
    let masker = crate::secrets::Masker::of_env(engine.env.iter().map(|(n, v)| (n.as_str(), v.as_str())), &[]);
    let mut sessions = Vec::new();
    for of in labels.traces() {
        sessions.push(calibrated::session(&*graded, of, &masker)?);
    }
    let runtime = engine::runtime()?;
    let judged = runtime.block_on(judge_all(&engine.judges, &names, sessions));
    runtime.shutdown_background();
    judges::mark_cache()?;
    let judged = judged?;
    if *interrupt.borrow() {
        terminal::note(format_args!("interrupted; nothing was written"));
        return Ok(INTERRUPTED);
    }
    let failed: Vec<&String> = judged.iter().flat_map(|it| &it.verdicts.failed).collect();
    if let Some(first) = failed.first() {
        let (count, all) = (judged.iter().filter(|it| !it.verdicts.failed.is_empty()).count(), judged.len());
        terminal::note(format_args!("{count} of {all} traces could not be judged, so nothing was measured: {first}"));
        return Ok(3);
    }
    let calibration = measure(args, &*graded, &names, &labels.labels, &judged);
    let wanted = graded.wanted();
    let below = calibration.below(&wanted);
    let place = args
        .output
        .clone()
        .or_else(|| wanted.file.map(Path::to_path_buf))
        .unwrap_or_else(|| default_place(&args.rubric));
    super::report::make_place(&place)?;
    write_named(&place, |out| out.write_all(crate::yaml::write(&calibration).as_bytes()))?;
    let mut out = output::stdout(Content::json(matches!(args.format, CalibrationFormat::Json)));
    let written = match args.format {
        CalibrationFormat::Table => {
            let look = terminal::stdout_look();
            write(&report::page(&calibration, &look), &look, &mut out)
        }
        CalibrationFormat::Json => report::json(&calibration, &mut out),
    };
    super::import::ignore_closed_pipe(written.and_then(|()| out.flush()))?;
    terminal::note(format_args!("written to {}", place.display()));
    match below {
        Some(below) => {
            terminal::note(format_args!("below the floor of the grader: {below}"));
            Ok(1)
        }
        None => Ok(0),
    }
}

fn default_place(name: &str) -> PathBuf {
    project::path("graders").join(format!("{name}.calibration.yaml"))
}

async fn judge_all(
    judges: &Judges,
    names: &[ModelName],
    sessions: Vec<JudgedTrace>,
) -> Result<Vec<JudgeVerdicts>, CliError> {
    let mut running = JoinSet::new();
    for session in sessions {
        let (judges, names) = (judges.clone(), names.to_vec());
        running.spawn(async move { session.judge(&judges, &names).await });
    }
    let mut judged = Vec::new();
    while let Some(done) = running.join_next().await {
        judged.push(done.map_err(|error| CliError::unreadable(format!("the engine failed: {error}")))?);
    }
    judged.sort_by(|a, b| a.of.cmp(&b.of));
    Ok(judged)
}

/// Counts the agreement for each criterion, for each model, and for all.
fn measure(
    args: &CalibrateArgs,
    graded: &dyn Calibrate,
    names: &[ModelName],
    labels: &[Label],
    judged: &[JudgeVerdicts],
) -> Calibration {
    let mut all = Tally::default();
    let mut criteria: BTreeMap<String, Tally> = BTreeMap::new();
    let mut models: BTreeMap<String, Tally> = BTreeMap::new();
    let mut pairs = Pairs::default();
    for label in labels {
        let Some(of) = judged.iter().find(|it| it.of == label.of) else { continue };
        let of_criterion = of.verdicts.of_criteria.iter().find(|(criterion, _)| *criterion == label.criterion);
        let Some((_, verdict)) = of_criterion else { continue };
        let model = label.model.as_ref().unwrap_or(&of.model);
        let groups =
            [&mut all, criteria.entry(label.criterion.clone()).or_default(), models.entry(model.clone()).or_default()];
        for group in groups {
            group.add(*verdict, label.says.map(|word| graded.label_passes(word)));
        }
        if let (Some(outcome), Some(people)) = (of.verdicts.outcome, label.says.and_then(LabelValue::outcome)) {
            pairs.add(outcome, people);
        }
    }
    judged.iter().flat_map(|it| &it.verdicts.orders).for_each(|orders| pairs.add_orders(*orders));
    let done = |map: BTreeMap<String, Tally>| map.into_iter().map(|(name, tally)| (name, tally.measured())).collect();
    Calibration {
        rubric: args.rubric.clone(),
        judges: names.to_vec(),
        prompt_digest: graded.wanted().prompt_digest,
        date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
        labels: all.counts.labels(),
        all: all.measured(),
        criteria: done(criteria),
        models: done(models),
        pairs: graded.takes_reference().then(|| pairs.measured()),
    }
}

/// Verdicts with labels, and verdicts without labels, whose pass rate is estimated.
#[derive(Default)]
struct Tally {
    counts: Counts,
    passed: u64,
    decided: u64,
}

impl Tally {
    fn add(&mut self, verdict: CriterionVerdict, label: Option<bool>) {
        match label {
            Some(passes) => self.counts.add(verdict, passes),
            None if verdict != CriterionVerdict::Unknown => {
                self.decided += 1;
                self.passed += u64::from(verdict == CriterionVerdict::Pass);
            }
            None => {}
        }
    }

    /// Returns the measured agreement, and the pass rate from the verdicts without a label, if there are any.
    fn measured(&self) -> Measured {
        self.counts.measured((self.decided > 0).then_some((self.passed, self.decided)))
    }
}

//! `evals calibrate`: has the judges of a rubric judge labelled traces, and says how far they can be believed.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::task::JoinSet;

use super::judges::{self, JudgeArgs};
use super::stop::{INTERRUPTED, on_interrupt};
use super::{CliError, RunsFolder, engine, inputs, terminal};
use crate::grader::{Common, GraderEntry, Kind, Use, What, expand};
use crate::judge::Judges;
use crate::judge::answer::Finding;
use crate::judge::calibration::{Calibration, Counts, Measured};
use crate::judge::criteria::Said;
use crate::judge::rubric::Rubric;
use crate::judge::view::{Shown, View};
use crate::model_client::ModelName;
use crate::report::calibration as report;
use crate::run::write_whole;
use crate::trace::jsonl::Reader;

mod label;
mod labels;

use labels::{Label, Labels};

#[derive(Debug, clap::Args)]
pub struct CalibrateArgs {
    /// What people say of traces, as JSON Lines: {"trace": PATH, "criterion": ID, "label": "pass" or "fail"}
    labels: PathBuf,
    /// The rubric: a file of graders/, by name
    #[arg(long, value_name = "NAME")]
    rubric: String,
    /// Ask for labels of these traces first, at the terminal, and add them to LABELS: a run, or the file of a trace; repeatable
    #[arg(long = "ask", value_name = "RUN|TRACE")]
    ask: Vec<String>,
    /// Ask for labels alone, and no judge
    #[arg(long, requires = "ask")]
    label_only: bool,
    /// Where the calibration goes (default: NAME.calibration.yaml beside the rubric)
    #[arg(long = "out", value_name = "FILE")]
    out: Option<PathBuf>,
    /// The format
    #[arg(long, value_enum, default_value_t)]
    format: CalibrationFormat,
    /// Folder of the runs, for --ask
    #[arg(long = "runs", value_name = "DIR", default_value = ".evals/runs")]
    runs: PathBuf,
    #[command(flatten)]
    judges: JudgeArgs,
}

/// How a calibration is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum CalibrationFormat {
    /// For people
    #[default]
    Table,
    /// One JSON object
    Json,
}

/// A labelled trace, and what judges say of it.
struct Judged {
    file: PathBuf,
    model: String,
    findings: Vec<Finding>,
    failed: Vec<String>,
}

pub fn run(args: &CalibrateArgs) -> Result<u8, CliError> {
    let rubric = rubric(&args.rubric)?;
    if !args.ask.is_empty() {
        let runs = RunsFolder { runs: args.runs.clone() };
        label::ask(&args.ask, &runs, &rubric, &args.labels)?;
        if args.label_only {
            return Ok(0);
        }
    }
    let labels = Labels::read(&args.labels, &rubric)?;
    let temporary = engine::temporary()?;
    let interrupt = on_interrupt();
    let hides = vec![std::path::absolute("graders")?, std::path::absolute(".evals")?];
    let engine = engine::engine(&temporary, interrupt.clone(), hides)?;
    let (catalog, _) = inputs::catalog(&[])?;
    let manifests: HashMap<_, _> =
        inputs::manifests(&catalog).into_iter().map(|(name, manifest)| (name, Arc::new(manifest))).collect();
    let engine = judges::asking(engine, &args.judges, manifests)?;
    let names = engine.judges.chosen(rubric.judges()).map_err(CliError::unreadable)?;
    let masker = crate::secrets::Masker::of_env(engine.env.iter().map(|(n, v)| (n.as_str(), v.as_str())), &[]);
    let mut sessions = Vec::new();
    for file in labels.traces() {
        sessions.push(session(&file, &rubric, &masker)?);
    }
    let runtime = engine::runtime()?;
    let judged = runtime.block_on(judge_all(&rubric, &engine.judges, &names, sessions));
    runtime.shutdown_background();
    judges::mark_cache()?;
    if *interrupt.borrow() {
        writeln!(std::io::stderr(), "interrupted; nothing was written")?;
        return Ok(INTERRUPTED);
    }
    let failed: Vec<&String> = judged.iter().flat_map(|it| &it.failed).collect();
    if let Some(first) = failed.first() {
        let (count, all) = (judged.iter().filter(|it| !it.failed.is_empty()).count(), judged.len());
        writeln!(std::io::stderr(), "{count} of {all} traces could not be judged, so nothing was measured: {first}")?;
        return Ok(3);
    }
    let calibration = measure(args, &rubric, &names, &labels.labels, &judged);
    let below = calibration.below(&rubric);
    let place = args.out.clone().or_else(|| rubric.calibration.clone()).unwrap_or_else(|| default_place(&args.rubric));
    super::report::make_place(&place)?;
    write_whole(&place, |out| out.write_all(crate::yaml::write(&calibration).as_bytes()))?;
    let mut out = std::io::stdout().lock();
    let written = match args.format {
        CalibrationFormat::Table => report::table(&calibration, &terminal::stdout_look(), &mut out),
        CalibrationFormat::Json => report::json(&calibration, &mut out),
    };
    super::import::ignore_closed_pipe(written.and_then(|()| out.flush()))?;
    writeln!(std::io::stderr(), "written to {}", place.display())?;
    match below {
        Some(below) => {
            writeln!(std::io::stderr(), "below the floor of the rubric: {below}").map(|()| 1).map_err(Into::into)
        }
        None => Ok(0),
    }
}

fn default_place(name: &str) -> PathBuf {
    Path::new("graders").join(format!("{name}.calibration.yaml"))
}

/// The rubric of a named grader.
fn rubric(name: &str) -> Result<Rubric, CliError> {
    let library = inputs::named_graders()?.library();
    let entry = GraderEntry { common: Common::default(), what: What::Use(Use { grader: name.to_owned() }) };
    let graders = expand(&[entry], &library).map_err(CliError::unreadable)?;
    let mut rubrics = graders.into_iter().filter_map(|grader| match grader.kind {
        Kind::Rubric(rubric) => Some(rubric),
        _ => None,
    });
    match (rubrics.next(), rubrics.next()) {
        (Some(rubric), None) => Ok(rubric),
        (None, _) => {
            Err(CliError::unreadable(format!("the grader `{name}` holds no `rubric`, so there is no judge in it")))
        }
        (Some(_), Some(_)) => Err(CliError::unreadable(format!(
            "the grader `{name}` holds several rubrics; give each a file of its own, so that each is calibrated"
        ))),
    }
}

/// A trace as judges see it, and the model that made it.
fn session(
    file: &Path,
    rubric: &Rubric,
    masker: &crate::secrets::Masker,
) -> Result<(PathBuf, String, Shown), CliError> {
    let failed = |error: &dyn std::fmt::Display| CliError::unreadable(format!("{}: {error}", file.display()));
    let opened = File::open(file).map_err(|error| failed(&error))?;
    let mut reader = Reader::new(BufReader::new(opened)).map_err(|error| failed(&error))?;
    let header = reader.header().model.clone();
    let mut view = View::new(rubric.rules());
    while let Some(event) = reader.next_event().map_err(|error| failed(&error))? {
        view.event(&event);
    }
    // In a trial's folder its change stands beside it.
    let patch = std::fs::read(file.with_file_name("workspace.patch")).ok();
    let patch = patch.map(|bytes| masker.mask(&String::from_utf8_lossy(&bytes)).into_owned());
    let model = header.effective.or(header.requested).unwrap_or_else(|| "unknown".to_owned());
    Ok((file.to_owned(), model, view.finish(patch.as_deref())))
}

async fn judge_all(
    rubric: &Rubric,
    judges: &Judges,
    names: &[ModelName],
    sessions: Vec<(PathBuf, String, Shown)>,
) -> Vec<Judged> {
    let mut running = JoinSet::new();
    for (file, model, shown) in sessions {
        let (rubric, judges, names) = (rubric.clone(), judges.clone(), names.to_vec());
        running.spawn(async move {
            let (findings, failed) = rubric.findings(&judges, &names, &shown).await;
            Judged { file, model, findings, failed }
        });
    }
    let mut judged = Vec::new();
    while let Some(done) = running.join_next().await {
        judged.extend(done.ok());
    }
    judged.sort_by(|a, b| a.file.cmp(&b.file));
    judged
}

/// Counts, for each criterion, for each model, and for all.
fn measure(
    args: &CalibrateArgs,
    rubric: &Rubric,
    names: &[ModelName],
    labels: &[Label],
    judged: &[Judged],
) -> Calibration {
    let mut all = Tally::default();
    let mut criteria: BTreeMap<String, Tally> = BTreeMap::new();
    let mut models: BTreeMap<String, Tally> = BTreeMap::new();
    for label in labels {
        let Some(of) = judged.iter().find(|it| it.file == label.file) else { continue };
        let Some(finding) = of.findings.iter().find(|it| it.criterion == label.criterion) else { continue };
        let model = label.model.as_ref().unwrap_or(&of.model);
        let groups =
            [&mut all, criteria.entry(label.criterion.clone()).or_default(), models.entry(model.clone()).or_default()];
        for group in groups {
            group.add(finding.verdict, label.passes);
        }
    }
    let done = |map: BTreeMap<String, Tally>| map.into_iter().map(|(name, tally)| (name, tally.measured())).collect();
    Calibration {
        rubric: args.rubric.clone(),
        judges: names.to_vec(),
        prompt_digest: rubric.prompt_digest(),
        date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
        labels: all.counts.labels(),
        all: all.measured(),
        criteria: done(criteria),
        models: done(models),
    }
}

/// Verdicts with labels, and those without, whose rate is to be told.
#[derive(Default)]
struct Tally {
    counts: Counts,
    passed: u64,
    decided: u64,
}

impl Tally {
    fn add(&mut self, said: Said, label: Option<bool>) {
        match label {
            Some(passes) => self.counts.add(said, passes),
            None if said != Said::Unknown => {
                self.decided += 1;
                self.passed += u64::from(said == Said::Pass);
            }
            None => {}
        }
    }

    /// What follows; the rate from those without a label, where there are any.
    fn measured(&self) -> Measured {
        self.counts.measured((self.decided > 0).then_some((self.passed, self.decided)))
    }
}

//! The grader to calibrate, a rubric or a comparison, and its judges' verdicts on a stored trace.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::CliError;
use crate::cli::inputs;
use crate::grader::{
    Calibrate, Common, GraderEntry, GraderError, GraderOrName, JudgedSession, Library, Use, Verdicts, expand,
};
use crate::judge::Judges;
use crate::model_client::ModelName;
use crate::paths;
use crate::regular;
use crate::secrets::Masker;
use crate::yaml::words::known_words;

/// A trace and, for a comparison, its reference if that is not the grader's own.
pub type Labelled = (PathBuf, Option<PathBuf>);

/// A trace in the form that judges get.
pub struct JudgedTrace {
    of: Labelled,
    /// The model of the agent.
    model: String,
    session: Box<dyn JudgedSession>,
}

/// The judges' verdicts on a trace.
pub struct JudgeVerdicts {
    /// The trace.
    pub of: Labelled,
    /// The model of the agent.
    pub model: String,
    pub verdicts: Verdicts,
}

/// Returns the single grader in a named grader's file.
///
/// # Errors
/// Returns an error if the file cannot be read, calls no model, or contains several graders.
pub fn named(name: &str) -> Result<Arc<dyn Calibrate>, CliError> {
    let library = inputs::named_graders()?.library();
    let entry = GraderEntry { common: Common::default(), what: GraderOrName::Use(Use { grader: name.to_owned() }) };
    let graders = expand(&[entry], &library).map_err(|error| match error {
        GraderError::Unknown { .. } => CliError::unreadable(format!(
            "there is no grader named `{name}` in graders/; {}",
            known_words(name, &asking_models(&library), "rubrics and comparisons")
        )),
        error => CliError::unreadable(error),
    })?;
    let mut asking = graders.into_iter().filter_map(|grader| grader.kind.spec().calibrated());
    match (asking.next(), asking.next()) {
        (Some(graded), None) => Ok(graded),
        (None, _) => Err(CliError::unreadable(format!(
            "the grader `{name}` has neither `rubric` nor `pairwise`, so it has no judge to calibrate"
        ))),
        (Some(_), Some(_)) => Err(CliError::unreadable(format!(
            "the grader `{name}` contains several graders that ask a model; put each in its own file to calibrate \
             it"
        ))),
    }
}

/// Returns a trace as judges see it. In a trial's folder, the change of the workspace is included.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn session(graded: &dyn Calibrate, of: Labelled, masker: &Masker) -> Result<JudgedTrace, CliError> {
    let path = of.0.with_file_name("workspace.patch");
    let patch = match regular::read(&path) {
        Ok(bytes) => Some(masker.mask(&String::from_utf8_lossy(&bytes)).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            return Err(CliError::unreadable(format!("{} cannot be read: {error}", paths::shown(&path).display())));
        }
    };
    let read = graded.session(&of.0, patch.as_deref(), of.1.as_deref());
    let (session, model) = read.map_err(CliError::unreadable)?;
    let model = model.effective.or(model.requested).unwrap_or_else(|| "unknown".to_owned());
    Ok(JudgedTrace { of, model, session })
}

impl JudgedTrace {
    pub async fn judge(self, judges: &Judges, names: &[ModelName]) -> JudgeVerdicts {
        let Self { of, model, session } = self;
        JudgeVerdicts { of, model, verdicts: session.judge(judges, names).await }
    }
}

/// Returns the names of the graders that can be calibrated.
fn asking_models(library: &Library) -> Vec<String> {
    let asks = |name: &str| {
        let what = GraderOrName::Use(Use { grader: name.to_owned() });
        let graders = expand(&[GraderEntry { common: Common::default(), what }], library).unwrap_or_default();
        graders.into_iter().filter_map(|grader| grader.kind.spec().calibrated()).count() == 1
    };
    library.iter().map(|(name, _)| name.to_owned()).filter(|name| asks(name)).collect()
}

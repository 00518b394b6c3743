//! `pairwise`: a model compares what the agent came to with a reference, in both orders.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rubric::{Watch, patch};
use super::{Body, Evidence, Judge, OneOrList};
use crate::grade::Grade;
use crate::judge::JudgeRecord;
use crate::judge::pair::Pair;
use crate::judge::rubric::Judgement;
use crate::judge::view::{Rules, Show, View};
use crate::model_client::ModelName;
use crate::trace::jsonl::Reader;

/// Characters of each side that are shown.
const CHARACTERS: usize = 30_000;

/// A session beside a reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pairwise {
    /// Who judges, or each of several: `anthropic:MODEL`, `openai:MODEL` or `harness:NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<OneOrList<ModelName>>,
    /// What the better one is better at.
    pub ask: String,
    /// What the session is held against.
    pub reference: Reference,
    /// Whether one that is as good as the reference passes.
    #[serde(default)]
    pub tie: Tie,
}

/// What a session is held against. Exactly one of its keys stands in it: it says what is compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Reference {
    /// The final answer is held against this text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The final answer is held against this file, beside the case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The session is held against that of this Trace, beside the case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<PathBuf>,
}

/// What a tie is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tie {
    /// Good enough.
    #[default]
    Pass,
    /// Not good enough.
    Fail,
}

impl Body for Pairwise {
    fn refusal(&self) -> Option<String> {
        let Reference { text, file, trace } = &self.reference;
        let is_empty = |path: &Option<PathBuf>| path.as_ref().is_some_and(|path| path.as_os_str().is_empty());
        let empty = text.as_ref().is_some_and(|text| text.trim().is_empty()) || is_empty(file) || is_empty(trace);
        let named = [text.is_some(), file.is_some(), trace.is_some()].into_iter().filter(|is| *is).count();
        let why = if self.ask.trim().is_empty() {
            "asks nothing: its `ask` is empty"
        } else if empty {
            "compares with nothing: its `reference` is empty"
        } else if named != 1 {
            "compares with what nobody can tell: its `reference` has one of `text`, `file` and `trace`"
        } else {
            return None;
        };
        Some(why.to_owned())
    }

    fn judge(&self) -> Option<Box<dyn Judge>> {
        Some(Watch::boxed(self.rules()))
    }
}

impl Pairwise {
    /// Files beside the case that it compares with.
    pub fn named_files(&self) -> impl Iterator<Item = &Path> {
        self.reference.file.iter().chain(&self.reference.trace).map(PathBuf::as_path)
    }

    /// Makes the file it compares with count from a folder.
    pub fn count_from(&mut self, folder: &Path) {
        let Reference { file, trace, .. } = &mut self.reference;
        for path in file.iter_mut().chain(trace) {
            *path = folder.join(&*path);
        }
    }

    /// Calls and results are compared by what was done, and answers by what is said.
    fn rules(&self) -> Rules {
        let show = if self.reference.trace.is_some() { Vec::new() } else { vec![Show::Closing] };
        Rules { show, characters: CHARACTERS }
    }

    /// Asks.
    pub(super) async fn ask(&self, view: View, evidence: &Evidence<'_>) -> Judgement {
        let is_trace = self.reference.trace.is_some();
        let reference = match self.reference_text(evidence.case_folder) {
            Ok(text) => text,
            Err(why) => return Judgement { grade: Grade::ungraded(why), record: JudgeRecord::default() },
        };
        let patch = if is_trace { patch(evidence).await } else { None };
        let task = view.prompts().join("\n\n");
        let candidate = if is_trace { view.finish(patch.as_deref()).text() } else { cut(evidence.output) };
        if candidate.trim().is_empty() {
            let grade = Grade::fail("the agent gave no answer, so there is nothing to compare");
            return Judgement { grade, record: JudgeRecord::default() };
        }
        let pair = Pair { ask: self.ask.clone(), task, candidate, reference, tie_passes: self.tie == Tie::Pass };
        pair.judge(evidence.judges, self.judge.as_ref().map_or(&[], |judge| judge.0.as_slice())).await
    }

    fn reference_text(&self, case_folder: &Path) -> Result<String, String> {
        let lacks = |path: &Path, error: &dyn std::fmt::Display| {
            format!("the reference `{}` could not be read: {error}", path.display())
        };
        if let Some(path) = &self.reference.trace {
            let file = File::open(case_folder.join(path)).map_err(|error| lacks(path, &error))?;
            let mut reader = Reader::new(BufReader::new(file)).map_err(|error| lacks(path, &error))?;
            let mut view = View::new(self.rules());
            while let Some(event) = reader.next_event().map_err(|error| lacks(path, &error))? {
                view.event(&event);
            }
            return Ok(view.finish(None).text());
        }
        match &self.reference.file {
            Some(path) => {
                let text = std::fs::read_to_string(case_folder.join(path)).map_err(|error| lacks(path, &error))?;
                Ok(cut(&text))
            }
            None => Ok(cut(self.reference.text.as_deref().unwrap_or_default())),
        }
    }
}

/// As much of a text as is shown.
fn cut(text: &str) -> String {
    text.chars().take(CHARACTERS).collect()
}

//! Uses an agent instead of a model: the agent gets a question as its prompt in an empty workspace, and its
//! final message is the answer.

use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::{Attempt, Engine, Outcome, run};
use crate::case::{Case, LoadContext, load};
use crate::harness::Manifest;
use crate::harness::catalog::Catalog;
use crate::ids::TrialRecord;
use crate::interaction::Interaction;
use crate::model_client::{Harnesses, Reply};
use crate::regular;
use crate::sandbox;
use crate::trace::jsonl::Reader;
use crate::trace::{Body, Usage, UsageScope};
use crate::values::Time;

/// The default timeout of an answer.
const TIME: Time = Time(Duration::from_secs(300));

/// The case whose prompt is replaced by the question.
const CASE: &str = "prompt: Answer.\ninteraction: auto-reject\ngraders: [{stop: {reason: [end_turn]}}]\n";

/// Starts agents for answers.
pub struct InPlaceOfModel {
    engine: Engine,
    catalog: Catalog,
    time: Time,
    asked: AtomicUsize,
}

impl std::fmt::Debug for InPlaceOfModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InPlaceOfModel").finish_non_exhaustive()
    }
}

impl InPlaceOfModel {
    /// Makes a starter for the agents of a catalog, with an engine that calls no model itself, and with a
    /// timeout per answer.
    pub fn new(engine: Engine, catalog: Catalog, time: Option<Time>) -> Self {
        Self { engine, catalog, time: time.unwrap_or(TIME), asked: AtomicUsize::new(0) }
    }

    async fn answer(&self, manifest: Arc<Manifest>, model: Option<&str>, prompt: &str) -> Result<Reply, String> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let folder = self.engine.temporary.join(format!("judge-{number}"));
        let mut case = case(&folder, prompt)?;
        case.limits.time = Some(self.time);
        let sandbox = sandbox::kind(self.engine.sandbox, None, manifest.sandbox.as_ref());
        let trial = TrialRecord::alone(&case.id, &manifest.name, model.map(str::to_owned), sandbox);
        let place = folder.join("trial");
        let attempt = Attempt::alone(Arc::new(case), manifest, trial, place.clone());
        let attempt = Attempt { interaction: Interaction::AutoReject, ..attempt };
        let result = match run(&self.engine, &attempt).await {
            Ok(Outcome::Done(result)) => *result,
            Ok(Outcome::Interrupted) => return Err("interrupted".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        if let Some(error) = result.error {
            return Err(format!("{}: {}", error.category.word(), error.message));
        }
        let text =
            answer_in(&place.join("trace.jsonl")).map_err(|error| format!("its trace cannot be read: {error}"))?;
        let metrics = &result.metrics;
        let mut usage = Usage::of(UsageScope::Session);
        (usage.input_tokens, usage.output_tokens) = (metrics.input_tokens, metrics.output_tokens);
        (usage.cache_read_tokens, usage.cache_write_tokens) = (metrics.cache_read_tokens, metrics.cache_write_tokens);
        usage.total_tokens = metrics.total_tokens;
        usage.cost_usd = metrics.cost_usd;
        usage.lower_bounds.clone_from(&metrics.lower_bounds);
        let _ = std::fs::remove_dir_all(&folder);
        Ok(Reply { text, model: result.model.effective, usage, cached: false, earlier: Vec::new() })
    }
}

impl Harnesses for InPlaceOfModel {
    fn ask(&self, harness: &str, model: Option<&str>, prompt: &str) -> Result<Reply, String> {
        let entry = self.catalog.find(harness).ok_or("no harness has that name")?;
        tokio::runtime::Handle::current().block_on(self.answer(entry.manifest.clone(), model, prompt))
    }
}

fn case(folder: &Path, prompt: &str) -> Result<Case, String> {
    let file = folder.join("question.yaml");
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, CASE));
    written.map_err(|error| format!("could not write {}: {error}", file.display()))?;
    let loaded = load(&[file], &LoadContext::default());
    let loaded = loaded.map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
    let mut case = loaded.into_iter().next().ok_or("the question could not be made into a case")?;
    case.turns = vec![prompt.to_owned()];
    Ok(case)
}

/// Returns the agent's final message.
fn answer_in(trace: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let mut reader = Reader::new(BufReader::new(regular::open(trace)?))?;
    let mut output = None;
    while let Some(event) = reader.next_event()? {
        if let Body::Stop(stop) = event.body {
            output = stop.output;
        }
    }
    Ok(output.unwrap_or_default())
}

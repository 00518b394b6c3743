//! Checks that the harnesses that cases, graders and policies name as judges exist and can answer.

use std::collections::BTreeSet;
use std::path::Path;

use super::{Case, LoadContext, LoadError, WrittenGrader};
use crate::grader::{GraderEntry, GraderOrName, Library};
use crate::harness::catalog::Catalog;
use crate::interaction::{Interaction, NamedPolicy};
use crate::model_client::{ModelName, Via};
use crate::yaml::{OwnedStep, Step, StepPart, YamlError, words};

/// Returns why a harness cannot answer instead of a model, and how to fix it. Models of services are not checked.
pub fn unfit(model: &ModelName, catalog: &Catalog) -> Option<(String, String)> {
    let name = Some(&model.model).filter(|_| model.via == Via::Harness)?;
    let short = words::short(name);
    let Ok(entry) = catalog.get(name) else {
        return Some((format!("no harness is named `{short}`, so it cannot judge"), catalog.known(name)));
    };
    let manifest = &entry.manifest;
    let why = if !manifest.adapter.starts_a_process() {
        "plays a recording, whatever it is asked"
    } else if manifest.plays_a_script() {
        "plays the script of a case, whatever it is asked"
    } else if model.of_harness.is_some() && !manifest.model_selection() {
        let help = format!("write `harness:{short}` alone, or add a `model:` route to its manifest");
        return Some((format!("harness `{short}` has no `model:` route, so no model can be requested from it"), help));
    } else {
        return None;
    };
    let help = "name an agent that answers what it is asked, or a model such as `anthropic:MODEL`";
    Some((format!("harness `{short}` cannot judge: it {why}"), help.to_owned()))
}

/// Returns an error for each unavailable judge that the cases, the named graders they use, or their policies name.
pub fn check_judges(cases: &[Case], context: &LoadContext, catalog: &Catalog) -> Vec<LoadError> {
    let library = context.graders.library();
    let mut errors = Vec::new();
    let mut used = BTreeSet::new();
    for case in cases {
        for grader in &case.written_graders {
            match &grader.entry.what {
                GraderOrName::Kind(_) => {
                    errors.extend(of_entry(&grader.entry, catalog, |at, why| written(grader, at, why)))
                }
                GraderOrName::Use(named) => take(&named.grader, &library, &mut used),
            }
        }
        if let Interaction::Llm(llm) = &case.interaction
            && let Some((message, help)) = llm.model.as_ref().and_then(|model| unfit(model, catalog))
        {
            errors.push(of_policy(case, context, message).with_help(help));
        }
    }
    errors.extend(used.iter().flat_map(|name| of_named(name, &library, catalog)));
    let mut told = BTreeSet::new();
    errors.retain(|error: &YamlError| told.insert(error.to_string()));
    errors.into_iter().map(LoadError::Yaml).collect()
}

/// Returns an error for each unavailable judge of the named graders and policies, whether or not a case uses them.
pub fn check_named_judges(context: &LoadContext, catalog: &Catalog) -> Vec<LoadError> {
    let library = context.graders.library();
    let mut errors: Vec<YamlError> = library.iter().flat_map(|(name, _)| of_named(name, &library, catalog)).collect();
    for (_, policy) in context.policies.iter() {
        if let Interaction::Llm(llm) = &policy.policy
            && let Some((message, help)) = llm.model.as_ref().and_then(|model| unfit(model, catalog))
        {
            errors.push(in_policy(policy, message).with_help(help));
        }
    }
    errors.into_iter().map(LoadError::Yaml).collect()
}

/// Collects the names of a named grader and of the graders that it uses.
fn take(name: &str, library: &Library, used: &mut BTreeSet<String>) {
    if !used.insert(name.to_owned()) {
        return;
    }
    let file = library.get(name).and_then(|named| named.read().ok());
    for entry in file.iter().flat_map(|file| &file.graders) {
        if let GraderOrName::Use(inner) = &entry.what {
            take(&inner.grader, library, used);
        }
    }
}

fn of_named(name: &str, library: &Library, catalog: &Catalog) -> Vec<YamlError> {
    let Some(named) = library.get(name) else { return Vec::new() };
    // Other errors in the file are reported when it is read.
    let Ok(file) = named.read() else { return Vec::new() };
    let entries = file.graders.iter().enumerate();
    entries
        .flat_map(|(n, entry)| of_entry(entry, catalog, |at, why| named.error(n, entry.word(), at, why.to_owned())))
        .collect()
}

fn of_entry(entry: &GraderEntry, catalog: &Catalog, error: impl Fn(&[OwnedStep], &str) -> YamlError) -> Vec<YamlError> {
    let GraderOrName::Kind(kind) = &entry.what else { return Vec::new() };
    let judges = kind.spec().judges().iter().enumerate();
    judges
        .filter_map(|(number, model)| {
            let (message, help) = unfit(model, catalog)?;
            // A single judge may be written without a list; the error then points at the key.
            let at = OwnedStep::all(&[Step::Key("judge"), Step::Item(number)]);
            Some(error(&at, &message).with_help(help))
        })
        .collect()
}

fn written(grader: &WrittenGrader, at: &[OwnedStep], message: &str) -> YamlError {
    grader.error_at(at, message.to_owned())
}

/// Returns an error in the innermost file that sets the policy, or in the file of the policy.
fn of_policy(case: &Case, context: &LoadContext, message: String) -> YamlError {
    if let Some(policy) = case.named_policy.as_ref().and_then(|(name, _)| context.policies.get(name)) {
        return in_policy(policy, message);
    }
    case.error_at(&["interaction", "llm", "model"].map(Step::Key), message)
}

fn in_policy(policy: &NamedPolicy, message: String) -> YamlError {
    let steps = ["policy", "llm", "model"].map(Step::Key);
    YamlError::at_steps(Path::new(&policy.origin), &policy.text, &steps, StepPart::Value, message)
}

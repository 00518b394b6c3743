//! Harnesses whose commands cannot be made without a model.

use std::collections::BTreeSet;

use crate::harness::catalog::Catalog;
use crate::trial::command::check_without_model;

/// Returns a line for each of these harnesses whose command cannot be made unless a model is requested.
pub fn needed<'a>(names: impl IntoIterator<Item = &'a String>, catalog: &Catalog) -> Vec<String> {
    let names: BTreeSet<&String> = names.into_iter().collect();
    let manifests = names.into_iter().filter_map(|name| catalog.get(name).ok()).map(|entry| &entry.manifest);
    // A default that cannot be passed to the agent is not used.
    let chosen = manifests.filter(|manifest| manifest.model.default.is_none() || !manifest.model_selection());
    chosen.filter_map(|manifest| check_without_model(manifest).err()).collect()
}

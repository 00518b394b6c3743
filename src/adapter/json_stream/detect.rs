//! Identifies the harness of a recording: the harness whose `known-by` is true for one of the first lines.

use std::sync::LazyLock;

use serde_json::Value;

use crate::expression::{Expression, Scope, Work};
use crate::harness::{Manifest, built_in};

/// The `known-by` expressions of harnesses, by name.
pub struct Knowing(Vec<(String, Expression)>);

static BUILT_IN: LazyLock<Knowing> = LazyLock::new(|| Knowing::of(built_in::containing("\nknown-by:")));

impl Knowing {
    /// Collects the `known-by` expressions of the manifests.
    pub fn of<'m>(manifests: impl IntoIterator<Item = &'m Manifest>) -> Self {
        let known = manifests.into_iter().filter_map(|manifest| {
            let formula = manifest.known_by.as_ref()?;
            Some((manifest.name.clone(), Expression::compile(&formula.0, &["line"]).ok()?))
        });
        Self(known.collect())
    }

    /// Returns the expressions of the built-in manifests.
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// Returns the harness whose `known-by` expression is true for the line; `None` if there is none, or if there are several.
    pub fn of_line(&self, line: &Value) -> Option<&str> {
        let work = Work::default();
        let scope = Scope::new(&work).with("line", line);
        let mut found = self.0.iter().filter(|(_, known_by)| known_by.holds(&scope) == Ok(true));
        found.next().filter(|_| found.next().is_none()).map(|(name, _)| name.as_str())
    }
}

//! Limits of cases whose values a harness never shows.

use crate::case::Case;
use crate::harness::catalog::Catalog;
use crate::harness::stream::Kind;
use crate::harness::{Adapter, Manifest, UsageConvention};

/// The default harness of cases.
const DEFAULT: &str = "demo";

/// Returns a line for each limit of a case whose value is never shown by one of its harnesses, or of the
/// requested ones.
pub fn never_shown(cases: &[Case], catalog: &Catalog, asked: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    for case in cases {
        let mut names: Vec<&str> =
            if asked.is_empty() { &case.harnesses } else { asked }.iter().map(|it| &**it).collect();
        if names.is_empty() {
            names.push(DEFAULT);
        }
        for manifest in names.iter().filter_map(|name| catalog.get(name).ok()).map(|entry| &entry.manifest) {
            let limits = &case.limits;
            let calls = [("steps", limits.steps.is_some()), ("tool-calls", limits.tool_calls.is_some())];
            let usage = [("tokens", limits.tokens.is_some()), ("cost-usd", limits.cost_usd.is_some())];
            let no_calls = (!manifest.seen().tracing).then_some((calls, "shows no tool calls"));
            let no_usage = (!reports_usage(manifest)).then_some((usage, "reports no usage"));
            for (keys, why) in [no_calls, no_usage].into_iter().flatten() {
                for (key, _) in keys.into_iter().filter(|(_, is_set)| *is_set) {
                    let (id, harness) = (&case.id, &manifest.name);
                    lines.push(format!(
                        "case `{id}`: the limit `{key}` cannot be checked with harness `{harness}`, which {why}"
                    ));
                }
            }
        }
    }
    lines
}

/// Returns true if the manifest does not exclude that the agent reports its usage.
fn reports_usage(manifest: &Manifest) -> bool {
    let says_how = manifest.usage != UsageConvention::default();
    match manifest.adapter {
        Adapter::OutputOnly => says_how,
        Adapter::JsonStream => says_how || manifest.stream.iter().any(|rule| rule.emits(Kind::Usage)),
        Adapter::Acp | Adapter::ClaudeCodeStream | Adapter::ClaudeCodeControl | Adapter::Replay => true,
    }
}

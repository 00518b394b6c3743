//! The engine's lines about tokens, cost and model, as the model's service reported them through the gateway.

use crate::gateway::totals::Totals;
use crate::text::plural;
use crate::trace::NoticeCode;
use crate::trace::amount::Amount;
use crate::trace::recorder::Recorder;
use crate::trace::usage::UsageTotal;
use crate::wire::EngineLine;

/// Returns true if the lines hold the tokens of a session, so that no other line may price them.
pub(super) fn has_usage(lines: &[EngineLine]) -> bool {
    lines.iter().any(|line| matches!(line, EngineLine::Gateway { usage: Some(_), .. }))
}

/// Returns the lines for a session whose requests went through the gateway. What the service reported supersedes the
/// agent's figures, unless some answers came without them.
pub(super) fn lines_for(totals: &Totals, recorder: &mut Recorder) -> Vec<EngineLine> {
    let mut lines = Vec::new();
    let of_agent = recorder.usage_total().clone();
    // A figure of the agent below what the service is known to have reported is wrong, however complete it looks.
    let enough = |tokens: Amount<u64>| tokens.is_exact() && tokens.value() >= totals.tokens();
    let knows_better = of_agent.tokens().is_some_and(enough) && !totals.is_complete();
    let usage = totals.usage().filter(|_| !knows_better);
    let model = totals.model().map(str::to_owned);
    if let Some(usage) = &usage {
        let mut of_service = UsageTotal::default();
        of_service.add(usage);
        lines.extend(
            difference(&of_agent, &of_service).map(|text| EngineLine::Notice { code: NoticeCode::UsageDiffers, text }),
        );
    }
    let usage_counts = usage.is_some();
    if usage.is_some() || model.is_some() {
        // The sum of all tokens no longer shows which model used them.
        let cost = totals.cost_usd().filter(|_| usage.is_some() && of_agent.cost_usd().is_none());
        lines.push(EngineLine::Gateway {
            usage: usage.map(Box::new),
            model,
            cost_usd: cost.map(Amount::value),
            cost_is_lower_bound: cost.is_some_and(|cost| !cost.is_exact()),
        });
    }
    // The agent's own cost, if it is known, does not depend on such answers.
    let is_lower_bound = usage_counts && of_agent.cost_usd().is_none_or(|cost| !cost.is_exact());
    if let Some((answers, first)) = totals.uncounted.as_ref().filter(|_| is_lower_bound) {
        let answers = plural(*answers, "answer");
        let text = format!(
            "{answers} at paths of no known API had no token counts, so the totals are lower bounds; the first: \
             {first}"
        );
        lines.push(EngineLine::Notice { code: NoticeCode::UsageIncomplete, text });
    }
    if totals.cut > 0 && of_agent.is_exact() {
        let answers = plural(totals.cut, "answer");
        let text = format!(
            "{answers} of the model broke off, and no report has all of their tokens, so the totals are lower bounds"
        );
        lines.push(EngineLine::Notice { code: NoticeCode::UsageIncomplete, text });
    }
    lines
}

/// Returns the figures of the agent that differ from those of the service. A figure that the agent knows to be
/// incomplete cannot differ.
fn difference(agent: &UsageTotal, service: &UsageTotal) -> Option<String> {
    type Figure = fn(&UsageTotal) -> Option<Amount<u64>>;
    let figures: [(&str, Figure); 4] = [
        ("input", UsageTotal::input_tokens),
        ("output", UsageTotal::output_tokens),
        ("cache read", UsageTotal::cache_read_tokens),
        ("cache write", UsageTotal::cache_write_tokens),
    ];
    let differing = figures.iter().filter_map(|(name, of)| match (of(agent), of(service)) {
        (Some(Amount::Exact(reported)), Some(Amount::Exact(true_one))) if reported != true_one => {
            Some(format!("{reported} {name} tokens, and the service {true_one}"))
        }
        _ => None,
    });
    let differences: Vec<String> = differing.collect();
    (!differences.is_empty()).then(|| format!("the agent reported {}", differences.join("; ")))
}

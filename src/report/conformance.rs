//! The report of a check of harnesses: a single harness in full, several as a table with the deviations below.

use super::page::{Block, Meaning, Page, Table, TableCell};
use super::text::{Look, one_line};
use crate::conformance::{Finding, Item, Outcome, Report};
use crate::harness::Tier;
use crate::harness::login::{File, Login, Offered, Variable};

/// Builds the page: a single report in full, several as a table; with the signs of a look.
pub fn page(reports: &[Report], look: &Look) -> Page {
    let blocks = match reports {
        [report] => in_full(report, look),
        reports => side_by_side(reports, look),
    };
    Page { blocks, ..Page::default() }
}

/// Returns the reports as a table for documentation: a row for each harness, a column for each item.
pub fn table(reports: &[Report]) -> Table {
    let items = Item::ALL.iter().map(|item| item.word());
    let mut table = Table::new(["harness", "version", "model"].into_iter().chain(items).chain(["tier"]));
    for report in reports {
        let items = Item::ALL.iter().map(|item| report.outcome(*item).map_or("", Outcome::word));
        let first = [report.version.as_deref().unwrap_or_default(), report.model.word()];
        let cells = first.into_iter().chain(items).chain([report.tier.map_or("", Tier::word)]).map(TableCell::from);
        table.row(std::iter::once(TableCell::new(Meaning::Name, &report.harness)).chain(cells));
    }
    table
}

fn in_full(report: &Report, look: &Look) -> Vec<Block> {
    let text = |line: String| Block::Text(one_line(&line, 300, look));
    let id = report.registry_id.as_ref().map(|id| format!(", acp:{id}")).unwrap_or_default();
    let version = report.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    let head = format!("{}{version} ({}{id}), with {}", report.harness, report.adapter, report.model.word());
    let mut blocks = vec![text(head)];
    blocks.extend(login_lines(&report.login).into_iter().map(text));
    if let Some(why) = not_started(report) {
        blocks.push(text(format!("nothing was started: {why}")));
        return blocks;
    }
    let mut table = Table::new(["item", "", "what was seen", "where"]);
    for finding in &report.items {
        let places: Vec<String> = finding.evidence.iter().map(|at| format!("{}:{}", at.file, at.line)).collect();
        table.row([
            finding.item.word().into(),
            TableCell::new(meaning(finding.outcome), finding.outcome.word()),
            one_line(&finding.text, 300, look).into(),
            TableCell::new(Meaning::Quiet, places.join(" ")),
        ]);
    }
    blocks.push(Block::Table(table));
    blocks.extend(report.oddities.iter().map(|oddity| {
        let place = oddity.place.as_ref().map(|at| format!(" ({}:{})", at.file, at.line)).unwrap_or_default();
        text(format!("odd: {} ×{}{place}: {}", oddity.code, oddity.count, oddity.text))
    }));
    let declared = match (report.tier, report.declared_tier) {
        (Some(tier), Some(declared)) if tier != declared => format!("; its manifest says {}", declared.word()),
        _ => String::new(),
    };
    blocks.push(Block::Text(match report.tier {
        Some(tier) => format!("tier: {}{declared}", tier.word()),
        None => "tier: unknown, because nothing was started".to_owned(),
    }));
    blocks.extend(report.folder.as_ref().map(|folder| Block::Text(format!("evidence: {folder}"))));
    blocks
}

/// Returns the lines on the agent's login methods and the availability of each.
fn login_lines(login: &Login) -> Vec<String> {
    let variable = |it: &Variable| match (it.set, it.required) {
        (true, _) => format!("{} (set)", it.name),
        (false, true) => format!("{} (required, not set)", it.name),
        (false, false) => format!("{} (not set)", it.name),
    };
    let file = |it: &File| format!("~/{} ({})", it.path, if it.present { "there" } else { "not there" });
    let is_offered = |id: &String| login.offered.as_ref().is_none_or(|offered| offered.contains(id));
    let method = |it: &Offered| match (it.usable, is_offered(&it.method)) {
        (_, false) => format!("{} (not offered by this agent)", it.method),
        (true, true) => format!("{} (called when the agent asks for a login)", it.method),
        (false, true) => format!("{} (what it needs is missing)", it.method),
    };
    let mut lines = Vec::new();
    let mut add = |what: &str, items: Vec<String>| {
        if !items.is_empty() {
            lines.push(format!("login by {what}: {}", items.join(", ")));
        }
    };
    add("variable", login.variables.iter().map(variable).collect());
    add("file", login.files.iter().map(file).collect());
    add("method", login.methods.iter().map(method).collect());
    let known = |id: &&String| login.methods.iter().any(|method| method.method == **id);
    let others = login.offered.iter().flatten().filter(|id| !known(id)).cloned().collect();
    add("method that needs a person", others);
    if let Some(evidence) = &login.evidence {
        let note = evidence.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
        lines.push(match evidence.by.is_empty() {
            true => format!("login not verified{note}"),
            false => format!("login verified by {}{note}", evidence.described()),
        });
    }
    lines
}

/// Returns why nothing was started, if nothing was: every item has the same reason.
fn not_started(report: &Report) -> Option<&str> {
    let first = report.items.first().filter(|_| report.folder.is_none())?;
    Some(&first.text)
}

fn side_by_side(reports: &[Report], look: &Look) -> Vec<Block> {
    let heads = ["harness", "version"].into_iter().map(str::to_owned);
    let heads = heads.chain((1..=Item::ALL.len()).map(|number| number.to_string())).chain(["tier".to_owned()]);
    let mut table = Table::new(heads);
    for report in reports {
        let version = report.version.as_deref().unwrap_or(look.unknown());
        let first = [one_line(&report.harness, 40, look), one_line(version, 20, look)].map(TableCell::from);
        let items = Item::ALL.iter().map(|item| {
            let outcome = report.outcome(*item).unwrap_or(Outcome::NotChecked);
            TableCell::new(meaning(outcome), sign(outcome, look))
        });
        let tier = report.tier.map_or(look.unknown(), Tier::word).into();
        table.row(first.into_iter().chain(items).chain([tier]));
    }
    let numbered: Vec<String> =
        Item::ALL.iter().enumerate().map(|(number, item)| format!("{} {}", number + 1, item.word())).collect();
    let signs = [Outcome::Seen, Outcome::NotSeen, Outcome::Failed, Outcome::NotChecked, Outcome::NotApplicable];
    let signs: Vec<String> = signs.map(|outcome| format!("{} {}", sign(outcome, look), outcome.word())).into();
    let mut blocks = vec![Block::Table(table), Block::Text(numbered.join(", ")), Block::Text(signs.join(", "))];
    for report in reports {
        let failed = report.items.iter().filter(|finding| finding.outcome == Outcome::Failed);
        blocks.extend(failed.map(|Finding { item, text, evidence, .. }| {
            let at = evidence.first().map(|at| format!(" ({}:{})", at.file, at.line)).unwrap_or_default();
            Block::Text(format!("{}: {} failed{at}: {}", report.harness, item.word(), one_line(text, 300, look)))
        }));
        let evidence = report.folder.as_ref().map(|folder| format!("{}: evidence in {folder}", report.harness));
        blocks.extend(evidence.map(Block::Text));
    }
    blocks
}

fn sign(outcome: Outcome, look: &Look) -> &'static str {
    match outcome {
        Outcome::Seen => look.sign("✓", "+"),
        Outcome::NotSeen => look.sign("–", "-"),
        Outcome::NotApplicable => look.sign("·", "."),
        Outcome::NotChecked => "?",
        Outcome::Failed => look.sign("✗", "x"),
    }
}

fn meaning(outcome: Outcome) -> Meaning {
    match outcome {
        Outcome::Seen => Meaning::Good,
        Outcome::Failed => Meaning::Bad,
        Outcome::NotSeen | Outcome::NotChecked => Meaning::Open,
        Outcome::NotApplicable => Meaning::Quiet,
    }
}

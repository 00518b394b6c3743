//! The report of a check of harnesses: a single harness in full, several as a table with the deviations below.

use std::io::{self, Write};

use super::grid::{Grid, GridCell};
use super::text::{DIM, GREEN, Look, RED, YELLOW, one_line};
use crate::conformance::{Finding, Item, Outcome, Report};
use crate::harness::login::{File, Login, Offered, Variable};

/// Writes the reports: a single one in full, several as a table.
///
/// # Errors
/// The output could not be written.
pub fn write(reports: &[Report], look: &Look, out: &mut dyn Write) -> io::Result<()> {
    match reports {
        [report] => in_full(report, look, out),
        reports => side_by_side(reports, look, out),
    }
}

/// Writes the reports as a Markdown table: a row for each harness, a column for each item.
///
/// # Errors
/// The output could not be written.
pub fn write_markdown(reports: &[Report], out: &mut dyn Write) -> io::Result<()> {
    let heads: Vec<&str> = Item::ALL.iter().map(|item| item.word()).collect();
    writeln!(out, "| harness | version | model | {} | tier |", heads.join(" | "))?;
    writeln!(out, "|{}", " --- |".repeat(heads.len() + 4))?;
    for report in reports {
        let cells: Vec<&str> = Item::ALL.iter().map(|item| report.outcome(*item).map_or("", Outcome::word)).collect();
        let version = report.version.as_deref().unwrap_or_default().replace('|', "\\|");
        let tier = report.tier.map_or("", crate::harness::Tier::word);
        let (harness, model) = (&report.harness, report.model.word());
        writeln!(out, "| `{harness}` | {version} | {model} | {} | {tier} |", cells.join(" | "))?;
    }
    Ok(())
}

fn in_full(report: &Report, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let id = report.registry_id.as_ref().map(|id| format!(", acp:{id}")).unwrap_or_default();
    let version = report.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    let head = format!("{}{version} ({}{id}), with {}", report.harness, report.adapter, report.model.word());
    writeln!(out, "{}", one_line(&head, look.columns(), look))?;
    for line in login_lines(&report.login) {
        writeln!(out, "{}", one_line(&line, 300, look))?;
    }
    if let Some(why) = not_started(report) {
        return writeln!(out, "{}", one_line(&format!("nothing was started: {why}"), 300, look));
    }
    let mut grid = Grid::new(["item", "", "what was seen", "where"]);
    for finding in &report.items {
        let places: Vec<String> = finding.evidence.iter().map(|at| format!("{}:{}", at.file, at.line)).collect();
        grid.row(vec![
            finding.item.word().into(),
            GridCell::styled(style(finding.outcome), finding.outcome.word()),
            one_line(&finding.text, 300, look).into(),
            GridCell::styled(DIM, places.join(" ")),
        ]);
    }
    grid.write(look, out)?;
    for oddity in &report.oddities {
        let place = oddity.place.as_ref().map(|at| format!(" ({}:{})", at.file, at.line)).unwrap_or_default();
        let line = format!("odd: {} ×{}{place}: {}", oddity.code, oddity.count, oddity.text);
        writeln!(out, "{}", one_line(&line, 300, look))?;
    }
    let declared = match (report.tier, report.declared_tier) {
        (Some(tier), Some(declared)) if tier != declared => format!("; its manifest says {}", declared.word()),
        _ => String::new(),
    };
    match report.tier {
        Some(tier) => writeln!(out, "tier: {}{declared}", tier.word())?,
        None => writeln!(out, "tier: nothing follows, as nothing was started")?,
    }
    if let Some(folder) = &report.folder {
        writeln!(out, "evidence: {folder}")?;
    }
    Ok(())
}

/// Returns what the agent needs to log in, and what of it is available.
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
            false => format!("login verified by {}{note}", evidence.told()),
        });
    }
    lines
}

/// Returns why nothing was started, if nothing was: every item has the same reason.
fn not_started(report: &Report) -> Option<&str> {
    let first = report.items.first().filter(|_| report.folder.is_none())?;
    Some(&first.text)
}

fn side_by_side(reports: &[Report], look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let heads = ["harness", "version"].into_iter().map(str::to_owned);
    let heads = heads.chain((1..=Item::ALL.len()).map(|number| number.to_string())).chain(["tier".to_owned()]);
    let mut grid = Grid::new(heads);
    for report in reports {
        let version = report.version.as_deref().unwrap_or(look.unknown());
        let mut row: Vec<GridCell> =
            vec![one_line(&report.harness, 40, look).into(), one_line(version, 20, look).into()];
        for item in Item::ALL {
            let outcome = report.outcome(item).unwrap_or(Outcome::NotChecked);
            row.push(GridCell::styled(style(outcome), sign(outcome, look)));
        }
        row.push(report.tier.map_or(look.unknown(), crate::harness::Tier::word).into());
        grid.row(row);
    }
    grid.write(look, out)?;
    let numbered: Vec<String> =
        Item::ALL.iter().enumerate().map(|(number, item)| format!("{} {}", number + 1, item.word())).collect();
    writeln!(out, "{}", numbered.join(", "))?;
    let signs = [Outcome::Seen, Outcome::NotSeen, Outcome::Failed, Outcome::NotChecked, Outcome::NotApplicable];
    let signs: Vec<String> = signs.map(|outcome| format!("{} {}", sign(outcome, look), outcome.word())).into();
    writeln!(out, "{}", signs.join(", "))?;
    for report in reports {
        for Finding { item, text, evidence, .. } in
            report.items.iter().filter(|finding| finding.outcome == Outcome::Failed)
        {
            let at = evidence.first().map(|at| format!(" ({}:{})", at.file, at.line)).unwrap_or_default();
            writeln!(out, "{}: {} failed{at}: {}", report.harness, item.word(), one_line(text, 300, look))?;
        }
        if let Some(folder) = &report.folder {
            writeln!(out, "{}: evidence in {folder}", report.harness)?;
        }
    }
    Ok(())
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

fn style(outcome: Outcome) -> anstyle::Style {
    match outcome {
        Outcome::Seen => GREEN,
        Outcome::Failed => RED,
        Outcome::NotSeen | Outcome::NotChecked => YELLOW,
        Outcome::NotApplicable => DIM,
    }
}

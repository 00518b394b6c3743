//! Compares the skills, MCP servers and plugins that an agent lists as loaded with those that its trial should have.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde_json::Value;

use super::Attempt;
use crate::adapter;
use crate::harness::{Plugin, Server};
use crate::reason_text;
use crate::regular;
use crate::result::Warning;
use crate::wire::{Dir, WireLine};

/// The maximum number of lines of the agent that are searched for its lists: agents list what they loaded at the start.
const MAX_SEARCHED_LINES: usize = 1000;

/// The comparison of what an agent loaded with the files that its trial provides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Loaded {
    /// The reason if the trial does not have the settings of its arm.
    pub wrong: Option<String>,
    /// The listed skills that belong neither to an arm, nor to the workspace, nor to the agent itself.
    pub unexpected: Vec<String>,
    /// True if the agent could have listed its skills and did not.
    pub skills_not_shown: bool,
    /// True if the agent could have listed its MCP servers and did not.
    pub servers_not_shown: bool,
}

impl Loaded {
    /// Returns the warnings about lists that name something else, or that are missing.
    pub(super) fn warnings(&self) -> impl Iterator<Item = Warning> {
        let names = &self.unexpected;
        let unexpected = (!names.is_empty()).then(|| Warning::UnexpectedSkill { names: names.clone() });
        let no_skills = self.skills_not_shown.then_some(Warning::SkillsNotListed);
        let no_servers = self.servers_not_shown.then_some(Warning::ServersNotListed);
        [unexpected, no_skills, no_servers].into_iter().flatten()
    }
}

/// Compares the agent's lists in the wire log with what the trial lays. `own` is the workspace before the agent, whose
/// skills belong to the case. Outside an experiment, the skills and MCP servers are compared that the trial has, and no
/// plugins. What the agent does not list is not compared.
///
/// # Errors
/// Returns an error if the wire log cannot be read.
pub(super) fn check(attempt: &Attempt, wire: &Path, own: &Path) -> io::Result<Loaded> {
    let case = &attempt.case;
    if attempt.arms.is_none() && case.overlay.skills.is_empty() && case.mcp_servers.is_empty() {
        // Nothing is compared, and the wire log may be long.
        return Ok(Loaded::default());
    }
    let lists = Lists::read(attempt, wire)?;
    let of_skills = skills(attempt, lists.skills.as_ref(), own);
    let of_servers = servers(attempt, &lists);
    let of_plugins = plugins(attempt, &lists.plugins);
    Ok(Loaded {
        wrong: of_skills.wrong.or(of_servers.wrong).or(of_plugins),
        unexpected: of_skills.unexpected,
        skills_not_shown: of_skills.skills_not_shown,
        servers_not_shown: of_servers.servers_not_shown,
    })
}

fn skills(attempt: &Attempt, listed: Option<&BTreeSet<String>>, own: &Path) -> Loaded {
    let laid: BTreeSet<&str> = attempt.case.overlay.skills.iter().map(|skill| skill.name.as_str()).collect();
    if laid.is_empty() && attempt.arms.is_none() {
        return Loaded::default();
    }
    let Some(listed) = listed else {
        let has_skills = attempt.arms.as_ref().is_none_or(|arms| !arms.skills.is_empty());
        let skills_not_shown = has_skills && adapter::lists_skills(&attempt.manifest);
        return Loaded { skills_not_shown, ..Loaded::default() };
    };
    let of_arms = attempt.arms.iter().flat_map(|arms| &arms.skills).map(|skill| skill.name.as_str());
    let others: BTreeSet<&str> = of_arms.filter(|name| !laid.contains(name)).collect();
    let wrong = compare("skills", listed, &laid, &others);
    let is_known = |name: &str| is_built_in(attempt, name) || is_of_workspace(attempt, own, name);
    let is_expected = |name: &str| laid.contains(name) || others.contains(name) || is_known(name);
    let unexpected = listed.iter().filter(|name| !is_expected(name)).cloned().collect();
    Loaded { wrong, unexpected, ..Loaded::default() }
}

fn servers(attempt: &Attempt, lists: &Lists) -> Loaded {
    let listed = lists.servers.as_deref();
    let laid: BTreeSet<&str> =
        attempt.case.mcp_servers.iter().filter_map(|server| server.get("name")?.as_str()).collect();
    let not_working = listed.into_iter().flatten().filter(|server| !server.works).map(|server| &server.name);
    if let Some(broken) = not_working.chain(&lists.broken).find(|name| laid.contains(name.as_str())) {
        let wrong = Some(format!("the agent reports that the MCP server `{broken}` does not work"));
        return Loaded { wrong, ..Loaded::default() };
    }
    if let Some(wrong) = lists.reports.iter().find_map(|(names, report)| reported_broken(names, report, &laid)) {
        return Loaded { wrong: Some(wrong), ..Loaded::default() };
    }
    let Some(listed) = listed else {
        let has_servers = attempt.arms.as_ref().is_some_and(|arms| !laid.is_empty() || !arms.servers.is_empty());
        let servers_not_shown = has_servers && adapter::lists_servers(&attempt.manifest);
        return Loaded { servers_not_shown, ..Loaded::default() };
    };
    let names: BTreeSet<String> = listed.iter().map(|server| server.name.clone()).collect();
    let of_arms = attempt.arms.iter().flat_map(|arms| &arms.servers).map(String::as_str);
    let others: BTreeSet<&str> = of_arms.filter(|name| !laid.contains(name)).collect();
    let is_built_in = |name: &str| {
        let route = attempt.manifest.mcp_servers.iter();
        route.flat_map(|route| &route.built_in).any(|glob| glob.is_match(name))
    };
    let wrong = compare("MCP servers", &names, &laid, &others);
    let foreign = || {
        attempt.arms.as_ref()?;
        let foreign = names.iter().map(String::as_str).filter(|name| !laid.contains(name) && !is_built_in(name));
        unless_empty("the agent lists MCP servers that its trial should not have", foreign)
    };
    Loaded { wrong: wrong.or_else(foreign), ..Loaded::default() }
}

/// Returns the reason if a report about MCP servers that do not work names one of the trial's. A report without names is about any
/// of them.
fn reported_broken(names: &str, report: &str, laid: &BTreeSet<&str>) -> Option<String> {
    let of_name = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    let mut words = names.split(|c: char| !of_name(c));
    let server = match words.find(|word| laid.contains(word)) {
        Some(name) => format!("the MCP server `{name}`"),
        None if names.is_empty() && !laid.is_empty() => "an MCP server".to_owned(),
        None => return None,
    };
    let report = reason_text::short(report, 200);
    let also = "an agent may report a server without tools in this way, too";
    Some(format!("the agent reports that {server} does not work: `{report}`; {also}"))
}

/// Returns the reason if a plugin does not belong to the trial. A plugin belongs to a trial if a word of the agent's
/// command names its folder.
fn plugins(attempt: &Attempt, listed: &[Plugin]) -> Option<String> {
    attempt.arms.as_ref()?;
    let is_named = |plugin: &Plugin| {
        let folder = Path::new(&plugin.path);
        attempt.manifest.command.iter().any(|word| folder.ends_with(word.trim_start_matches("./")))
    };
    let foreign = listed.iter().filter(|plugin| !is_named(plugin)).map(|plugin| plugin.name.as_str());
    unless_empty("the agent lists plugins that its trial should not have", foreign)
}

/// Returns the names that are missing in a list of the agent, or that only another arm should have.
fn compare(what: &str, listed: &BTreeSet<String>, laid: &BTreeSet<&str>, others: &BTreeSet<&str>) -> Option<String> {
    let missing = laid.iter().filter(|name| !listed.contains(**name)).copied();
    // Whatever its origin, the arm has what only another one should have.
    let foreign = others.iter().filter(|name| listed.contains(**name)).copied();
    unless_empty(&format!("the agent does not list {what} that were laid for it"), missing)
        .or_else(|| unless_empty(&format!("the agent lists {what} of another arm"), foreign))
}

/// Returns a sentence with these names, if there is one.
fn unless_empty<'a>(sentence: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let quoted: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    (!quoted.is_empty()).then(|| format!("{sentence}: {}", quoted.join(", ")))
}

fn is_built_in(attempt: &Attempt, name: &str) -> bool {
    attempt.manifest.skills.iter().flat_map(|skills| &skills.built_in).any(|glob| glob.is_match(name))
}

fn is_of_workspace(attempt: &Attempt, own: &Path, name: &str) -> bool {
    let laid = attempt.case.overlay.skills.iter().any(|skill| skill.name == name);
    let folder = attempt.manifest.skills.as_ref().and_then(|skills| skills.project.as_ref());
    !laid && folder.is_some_and(|folder| fs::symlink_metadata(own.join(folder).join(name)).is_ok())
}

/// The lists of an agent in its wire log.
#[derive(Default)]
struct Lists {
    skills: Option<BTreeSet<String>>,
    servers: Option<Vec<Server>>,
    /// The MCP servers that the agent reports as broken, without a list.
    broken: BTreeSet<String>,
    /// The texts of the program that report broken MCP servers, by their parts that name the servers; empty for a text that names
    /// none.
    reports: BTreeMap<String, String>,
    /// The plugins that are not part of the agent.
    plugins: Vec<Plugin>,
}

impl Lists {
    fn read(attempt: &Attempt, wire: &Path) -> io::Result<Self> {
        let mut lists = Self::default();
        let mut received = 0;
        for line in BufReader::new(regular::open_own(wire)?).lines() {
            let line: WireLine = serde_json::from_str(&line?)?;
            if line.dir == Dir::Stderr {
                lists.take_report(attempt, &line.line);
            }
            if line.dir != Dir::Recv {
                continue;
            }
            received += 1;
            if received > MAX_SEARCHED_LINES {
                break;
            }
            // An agent may also print lines that are no JSON.
            let Ok(value) = serde_json::from_str::<Value>(&line.line) else { continue };
            if let Some(names) = adapter::skills_listed(&attempt.manifest, &value) {
                lists.skills.get_or_insert_default().extend(names);
            }
            if let Some(servers) = adapter::servers_listed(&attempt.manifest, &value) {
                // A later list has the state of the servers that were still starting.
                lists.servers = Some(servers);
            }
            lists.broken.extend(adapter::broken_server(&attempt.manifest, &value).map(str::to_owned));
            lists.plugins.extend(adapter::plugins_listed(&attempt.manifest, &value));
            if let Some(text) = adapter::text_of_program(&attempt.manifest, &value) {
                lists.take_report(attempt, text);
            }
        }
        Ok(lists)
    }

    fn take_report(&mut self, attempt: &Attempt, text: &str) {
        let patterns = attempt.manifest.broken_servers.iter().filter(|pattern| pattern.is_match(text));
        let names = patterns.map(|pattern| pattern.first_group(text).unwrap_or_default().to_owned());
        self.reports.extend(names.map(|names| (names, text.to_owned())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_a_server_by_a_whole_word() {
        let of = |names: &str, laid: &[&'static str]| {
            reported_broken(names, "Broken:\n- srv", &laid.iter().copied().collect())
        };
        let quoted = "does not work: `Broken: - srv`; an agent may report a server without tools in this way, too";
        let named = Some(format!("the agent reports that the MCP server `srv` {quoted}"));
        assert_eq!(of("- srv: mcp_transport_failed", &["srv"]), named);
        assert_eq!(of("a, srv", &["srv"]), named);
        assert_eq!(of("- srv2: mcp_transport_failed", &["srv"]), None);
        assert_eq!(of("", &["srv"]).unwrap(), format!("the agent reports that an MCP server {quoted}"));
        assert_eq!(of("", &[]), None);
    }

    #[test]
    fn what_is_missing_and_what_is_of_another_arm_is_wrong() {
        let of = |listed: &[&str], laid: &[&'static str], others: &[&'static str]| {
            let listed = listed.iter().map(|name| (*name).to_owned()).collect();
            compare("skills", &listed, &laid.iter().copied().collect(), &others.iter().copied().collect())
        };
        assert_eq!(of(&["own", "a"], &["a"], &["b"]), None);
        assert_eq!(of(&["own"], &["a"], &[]).unwrap(), "the agent does not list skills that were laid for it: `a`");
        assert_eq!(of(&["b"], &[], &["b"]).unwrap(), "the agent lists skills of another arm: `b`");
    }
}

//! The names of files that calls use, where a link leads from one to another.

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::trace::{FollowedLink, ToolKind};

/// The names of the files that calls named, and the calls that were carried out.
#[derive(Debug, Default)]
pub struct Names {
    links: Vec<(FollowedLink, u64)>,
    /// `seq` of the last call of a kind that was carried out with a path, without being asked for.
    carried_out: HashMap<(ToolKind, String), u64>,
    /// The paths of calls that were allowed and carried out.
    allowed: HashSet<String>,
}

/// A path that leads to another file.
#[derive(Debug, Clone)]
pub struct AnotherName {
    path: String,
    to: String,
    /// The notice about it.
    pub notice: u64,
}

impl fmt::Display for AnotherName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` leads to `{}` by a link (event {})", self.path, self.to, self.notice)
    }
}

impl Names {
    /// Adds a path that leads to another file.
    pub fn add(&mut self, link: FollowedLink, seq: u64) {
        self.links.push((link, seq));
    }

    /// Adds the paths of a call that was carried out.
    pub fn carried_out(&mut self, kind: ToolKind, paths: &[String], seq: u64, allowed: bool) {
        for path in paths {
            if allowed {
                self.allowed.insert(path.clone());
            } else {
                self.carried_out.insert((kind, path.clone()), seq);
            }
        }
    }

    /// Returns how a path of a call of a kind leads to a file, or to a folder above it.
    pub fn leading_to(&self, kind: ToolKind, path: &str, file: &str) -> Option<AnotherName> {
        self.of(kind, path).find(|name| is_at_or_below(file, &name.to))
    }

    /// Returns true if a call that was allowed named a file, or a path that leads to it.
    pub fn was_allowed(&self, file: &str) -> bool {
        let leads = |(link, _): &(FollowedLink, u64)| self.allowed.contains(&link.path) && link.to == file;
        self.allowed.contains(file) || self.links.iter().any(leads)
    }

    /// Returns the last call of a kind later than `after` that named a file by another path, with the link between them.
    pub fn used_later(&self, kind: ToolKind, path: &str, after: u64) -> Option<(AnotherName, u64)> {
        let at = |path: &str| self.carried_out.get(&(kind, path.to_owned())).copied().filter(|seq| *seq > after);
        let of_rejected = self.of(kind, path).filter_map(|name| {
            let others = self.links.iter().filter(|(link, _)| link.to == name.to && link.path != path);
            let seq = others.filter_map(|(link, _)| at(&link.path)).chain(at(&name.to)).max()?;
            Some((name, seq))
        });
        let to_rejected = self.links.iter().filter(|(link, _)| link.kind == kind && link.to == path);
        let to_rejected = to_rejected.filter_map(|(link, notice)| Some((named(link, *notice), at(&link.path)?)));
        of_rejected.chain(to_rejected).max_by_key(|(_, seq)| *seq)
    }

    fn of(&self, kind: ToolKind, path: &str) -> impl Iterator<Item = AnotherName> {
        let is_it = move |link: &FollowedLink| link.kind == kind && link.path == path;
        self.links.iter().filter(move |(link, _)| is_it(link)).map(|(link, notice)| named(link, *notice))
    }
}

fn named(link: &FollowedLink, notice: u64) -> AnotherName {
    AnotherName { path: link.path.clone(), to: link.to.clone(), notice }
}

fn is_at_or_below(file: &str, folder: &str) -> bool {
    file.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

//! `diff`: checks which files the trial changed.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::checks::Checks;
use super::{Evidence, Findings, GraderSpec, Needs, Observer, Workspace};
use crate::grade::Grade;
use crate::reason_text;
use crate::trace::Lost;
use crate::values::PathGlob;
use crate::workspace::change::PATCH_ALONE;
use crate::yaml::lists::filled;

/// The files that must change, and the files that may change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a map such as `{created: [src/a.rs]}`")]
pub struct Diff {
    /// Only files that match one of these globs may change. To allow no change, use `none: true`.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<PathGlob>,
    /// For each of these globs, a matching file must be created.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub created: Vec<PathGlob>,
    /// For each of these globs, a matching file must be changed.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<PathGlob>,
    /// For each of these globs, a matching file must be deleted.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub deleted: Vec<PathGlob>,
    /// If `true`, nothing may change.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub none: bool,
}

impl GraderSpec for Diff {
    fn depends_on_loss(&self, _: Lost) -> bool {
        false
    }

    fn needs() -> Needs {
        Needs { workspace: Workspace::Change, ..Needs::NONE }
    }

    fn passes_on_absence(&self) -> bool {
        false
    }

    fn refusal(&self) -> Option<String> {
        let Self { only, created, changed, deleted, none } = self;
        let mut lists = [("only", only), ("created", created), ("changed", changed), ("deleted", deleted)].into_iter();
        let empty = |glob: &PathGlob| glob.to_string().is_empty();
        if let Some((key, _)) = lists.clone().find(|(_, globs)| globs.iter().any(empty)) {
            return Some(format!("checks nothing: `{key}` has an empty glob"));
        }
        // Alone, it says plainly that every file may change.
        if let Some(glob) = only.iter().find(|glob| glob.is_any() && only.len() > 1) {
            return Some(format!("checks nothing: `only` holds `{glob}`, so every file may change"));
        }
        if *none && [created, changed, deleted].into_iter().any(|globs| !globs.is_empty()) {
            return Some("contradicts itself: with `none` nothing may change, so no file can".to_owned());
        }
        (!none && lists.all(|(_, globs)| globs.is_empty()))
            .then(|| "checks nothing; say what may change, for example `only: [\"src/**\"]`".to_owned())
    }

    fn watch(&self) -> Box<dyn Observer> {
        Box::new(DiffObserver(self.clone()))
    }
}

struct DiffObserver(Diff);

#[async_trait]
impl Observer for DiffObserver {
    async fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Findings {
        self.grade(evidence).into()
    }
}

impl DiffObserver {
    fn grade(self, evidence: &Evidence<'_>) -> Grade {
        let change = match evidence.known_change() {
            Ok(change) => change,
            Err(ungraded) => return ungraded,
        };
        let Diff { only, created, changed, deleted, none } = self.0;
        let mut checks = Checks::default();
        let list = |paths: &[(&str, &str)]| {
            reason_text::first_few(paths.iter().map(|(path, what)| format!("`{path}` ({what})")), 10)
        };
        let all: Vec<(&str, &str)> = change.all().chain(change.other_modes()).collect();
        let beside = change.not_measured();
        let unknown =
            |place: &str| format!("`{place}` changed and is not measured (it is a pipe or the like, or a repository)");
        let breaks = |allowed: &[PathGlob]| {
            let beside_patch = || change.may_break_beside_patch(allowed).then(|| PATCH_ALONE.to_owned());
            let modes = || change.unnamed_modes().filter(|_| !allowed.iter().any(PathGlob::is_any));
            change.may_break(allowed).map(unknown).or_else(modes).or_else(beside_patch)
        };
        if none {
            match breaks(&[]).filter(|_| all.is_empty()) {
                Some(why) => checks.unknown(why),
                None if all.is_empty() => checks.held(format!("nothing changed{beside}"), []),
                None => checks.violated(format!("nothing may change, but these files did: {}", list(&all)), []),
            }
        }
        if !only.is_empty() {
            let outside: Vec<(&str, &str)> =
                all.iter().copied().filter(|(path, _)| !only.iter().any(|glob| glob.is_match(path))).collect();
            let allowed = reason_text::any_of(only.iter().map(|glob| format!("`{glob}`")));
            match breaks(&only).filter(|_| outside.is_empty()) {
                Some(why) => checks.unknown(why),
                None if outside.is_empty() => checks.held(format!("nothing outside of {allowed} changed{beside}"), []),
                None => {
                    let outside = list(&outside);
                    checks.violated(format!("only {allowed} may change, but these files did: {outside}"), []);
                }
            }
        }
        let lists = [
            ("created", created, &change.created),
            ("changed", changed, &change.changed),
            ("deleted", deleted, &change.deleted),
        ];
        for (word, globs, paths) in lists {
            for glob in globs {
                match paths.iter().find(|path| glob.is_match(path)) {
                    Some(path) => checks.held(format!("`{path}` was {word}"), []),
                    None => {
                        let what = if all.is_empty() {
                            "nothing changed".to_owned()
                        } else {
                            format!("the changes are {}", list(&all))
                        };
                        checks.violated(format!("no file matching `{glob}` was {word}; {what}"), []);
                    }
                }
            }
        }
        checks.grade()
    }
}

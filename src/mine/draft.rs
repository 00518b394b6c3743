//! Puts the case of a tested commit together: its prompt, remarks, grader and protected files.

use std::collections::BTreeSet;

use serde_json::json;

use super::change::{self, Change};
use super::commit_tests::{CommitTests, sample};
use super::miner::{Miner, Tested};
use super::runner::Recipe;
use super::write::{self, Draft, Place};
use super::{MAX_TESTS, MineError, Settings, hunks, interface, left_out, prompt, protection, reservations, rewrite};
use crate::audit::{definitions, leaks};
use crate::case::provenance::{Hunks, Provenance};
use crate::text::plural;
use crate::whole_file::FileError;

/// The maximum number of paths in a line of a remark.
const PATHS_IN_A_LINE: usize = 5;

/// Returns a remark with all of its paths, in further lines if there are many: a reader can protect only what is named.
fn with_paths<'a>(remark: &str, paths: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    let paths: Vec<String> = paths.into_iter().map(|path| format!("`{path}`")).collect();
    let lines: Vec<String> = paths.chunks(PATHS_IN_A_LINE).map(|paths| paths.join(", ")).collect();
    match lines.as_slice() {
        [line] => vec![format!("{remark}: {line}")],
        lines => [&[format!("{remark}:")][..], lines].concat(),
    }
}

/// Returns the remarks about the tests of a case, and about files that an agent may change although they may decide what passes.
fn remarks(sorted: &CommitTests, change: &Change, open_settings: &[String]) -> Vec<String> {
    let mut remarks = Vec::new();
    for (what, key, tests) in [
        ("fail before the commit and pass after it", "fail-to-pass", &sorted.fail_to_pass),
        ("pass before and after the commit", "pass-to-pass", &sorted.pass_to_pass),
    ] {
        if tests.len() > MAX_TESTS {
            let all = plural(tests.len(), "test");
            remarks.push(format!("{all} {what}; {MAX_TESTS} of them, evenly spread, are in `{key}`."));
        }
    }
    if !sorted.left_out.is_empty() {
        let some = crate::text::some_of(sorted.left_out.iter().map(|name| format!("`{name}`")), 5);
        remarks.push(format!("Tests are left out, because their names select other tests, too: {some}"));
    }
    remarks.extend(left_out::remark(sorted));
    if !change.unsure.is_empty() {
        remarks.extend(with_paths(
            "Only tests load or run these modules, as far as their names show it, but they may be code of the product; if \
             one of them decides what passes, add it to `workspace.protect`, because an agent may change it",
            &change.unsure,
        ));
    }
    if !change.computed.is_empty() {
        remarks.extend(with_paths(
            "These files load modules whose names only a run shows; if such a module decides what passes, add it to \
             `workspace.protect`, because an agent may change it",
            &change.computed,
        ));
    }
    if change.has_more_modules {
        remarks.push(
            "The tests load so many modules that not all were looked at; if one of them decides what passes, add it to \
             `workspace.protect`, because an agent may change it."
                .to_owned(),
        );
    }
    if !change.in_place_of_packages.is_empty() {
        remarks.extend(with_paths(
            "The settings of the runner look for packages in these folders, too; a file of an agent that takes the place of a \
             package there is removed only if the tests name the package, and may decide what passes",
            &change.folders_of_packages,
        ));
    }
    if !change.open.is_empty() {
        remarks.extend(with_paths(
            "Tests name or run these files, or have links to them, and code may read them, or they are code or settings: an \
             agent may have to write those that the patch adds, and may change all of them; if one of them decides what \
             passes, move it from the patch to the hidden files, or add it to `workspace.protect`",
            &change.open,
        ));
    }
    let open = reservations::open_settings(open_settings);
    let to_read = |open: String| reservations::sentence(&format!("{open}; read the change of an agent that passes"));
    remarks.extend(open.map(to_read));
    remarks
}

/// Returns the globs of the files that the case protects. `closed` are the settings of the patch that an agent must not change.
fn protected(
    sorted: &CommitTests,
    change: &Change,
    recipe: &Recipe,
    command: Option<&str>,
    closed: &[String],
) -> Vec<String> {
    let mut patched = hunks::files(&change.patch);
    patched.retain(|path| !closed.contains(path));
    let mut protect = protection::globs(change, &patched, recipe.runner);
    protect.extend(protection::of_helpers(change, &patched));
    if let Some(command) = command {
        protect.extend(protection::named(command, &change.before, &patched));
    }
    protect.extend(protection::missing(closed, &protect));
    for path in protection::of_tests(recipe.runner, &recipe.path(), sorted, change, &patched) {
        if !protect.contains(&path) {
            protect.push(path);
        }
    }
    protect
}

impl Miner<'_> {
    /// Writes the case of a commit. Settings of the patch are protected unless they are open. Returns true if its prompt says
    /// nothing about the task.
    pub(super) async fn write(
        &self,
        tested: Tested<'_>,
        hunks: Option<Hunks>,
        open_settings: &[String],
        place: &Place,
    ) -> Result<bool, MineError> {
        let Tested { commit, parent, change, recipe, sorted } = tested;
        let command = self.settings.given.test.as_deref();
        let mut closed = protection::settings_in_patch(change, recipe.runner, command);
        closed.retain(|path| !open_settings.contains(path));
        place.clear()?;
        std::fs::create_dir_all(&place.hidden).map_err(FileError::io("make", &place.hidden))?;
        let hidden = std::path::absolute(&place.hidden).map_err(FileError::io("find", &place.hidden))?;
        let index = self.engine.temporary.join("index");
        change::write_files(self.repository, &commit.id, &change.hidden, &hidden, &index).await?;
        let DraftedPrompt { text: prompt, is_rewritten, is_thin, leaks, mut remarks } =
            self.drafted_prompt(tested, &closed).await?;
        let mut grader = recipe.grader(&change.removed_tests, &self.settings.timeout.to_string());
        let needs_review = !is_rewritten || !leaks.is_empty();
        if needs_review {
            remarks.insert(0, "Made by `evals mine`. Read the prompt before you remove `review: needed`.".to_owned());
        }
        for (key, tests) in [("fail-to-pass", &sorted.fail_to_pass), ("pass-to-pass", &sorted.pass_to_pass)] {
            if !tests.is_empty() {
                grader.insert(key.to_owned(), json!(sample(tests, MAX_TESTS)));
            }
        }
        remarks.extend(self::remarks(sorted, change, open_settings));
        let protect = protected(sorted, change, recipe, command, &closed);
        let prompt_by = match &self.settings.rewrite {
            Some(model) if is_rewritten => format!("rewritten by {model}"),
            _ => "commit message".to_owned(),
        };
        let draft = Draft {
            subject: commit.subject().to_owned(),
            needs_review,
            prompt,
            runner: recipe.runner.word(),
            repository: match &self.settings.url {
                Some(url) => ("url", url.clone()),
                None => {
                    let Settings { project, out, .. } = self.settings;
                    ("path", write::repository_path(&self.repository.folder, project, out))
                }
            },
            setup: recipe.setup.iter().map(|step| step.line.clone()).collect(),
            protect,
            grader,
            patch: change.patch.clone(),
            provenance: Provenance {
                commit: Some(commit.id.clone()),
                parent: Some(parent.to_owned()),
                tool: Some(format!("evals mine {}", env!("CARGO_PKG_VERSION"))),
                date: Some(commit.date.clone()),
                prompt: Some(prompt_by),
                leaks,
                hunks,
                ..Provenance::default()
            },
            remarks,
        };
        write::write(&draft, place)?;
        Ok(is_thin)
    }

    /// Drafts the prompt of a commit. `closed` are the protected settings of the patch, which the prompt need not name.
    async fn drafted_prompt(&self, tested: Tested<'_>, closed: &[String]) -> Result<DraftedPrompt, MineError> {
        let Tested { commit, parent, change, .. } = tested;
        let mut sources = change::sources(self.repository, commit, parent).await?;
        // Several lines may be one secret.
        for lines in [&mut sources.notes, &mut sources.named] {
            *lines = self.secrets.masked(&lines.join("\n")).lines().map(str::to_owned).collect();
        }
        sources.changes_tests = !change.removed_tests.is_empty()
            || change.changes_data(commit)
            || prompt::changes_tests(&change::tests(self.repository, commit, parent, change).await?);
        let patch = String::from_utf8_lossy(&change.patch).into_owned();
        let mut prompt = prompt::draft(&sources);
        let mut remarks = Vec::new();
        let mut is_rewritten = false;
        if let Some(model) = &self.settings.rewrite {
            match rewrite::rewrite(self.judges, model, &prompt, &patch).await {
                Ok(text) => (prompt, is_rewritten) = (self.secrets.masked(&text), true),
                // The case is not lost: a person can write the prompt.
                Err(why) => remarks.push(format!("The prompt could not be rewritten by {model}: {why}")),
            }
        }
        // The tests call what the solution defines, so the prompt has to name it: such names are no leaks.
        let texts = change.test_texts.iter().map(|(path, text)| change::without_texts(path, text));
        let imports: String = texts.map(|text| prompt::imports(&text)).collect();
        let of_imports = interface::imported(&imports, &patch);
        let of_tests = interface::names(&change.test_texts, &patch);
        let imported: BTreeSet<String> = change.imported.union(&interface::files(change)).cloned().collect();
        let files = imported.iter().chain(&change.needed);
        let stems: BTreeSet<&str> = files.filter_map(|path| definitions::stem(path)).collect();
        let is_interface = |name: &String| {
            of_imports.contains(name)
                || of_tests.contains(name.as_str())
                || stems.contains(name.as_str())
                || interface::is_in_other_test(&change.test_texts, name)
        };
        let mut shared = leaks::shared_names(&prompt, &patch);
        shared.retain(|name| !is_interface(name));
        let introduced = change::unknown_words(self.repository, parent, shared).await?;
        let leaks = leaks::leaks(&prompt, &patch, &introduced);
        let leaks: Vec<String> = leaks.iter().map(|leak| self.secrets.masked(leak)).collect();
        if prompt.contains("[redacted:") {
            remarks.push(
                "The prompt has `[redacted:…]` where the commit has a secret; the history, the patch and the hidden tests \
                 are not masked."
                    .to_owned(),
            );
        }
        let is_word_of =
            |text: &str, name: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
        let is_unnamed = |name: &String| !is_word_of(&prompt, name);
        let words = of_imports.into_iter().filter(is_unnamed).collect();
        let used = of_tests.into_iter().map(str::to_owned).filter(is_unnamed).collect();
        let mut names = change::unknown_words(self.repository, parent, words).await?;
        names.extend(change::unknown_names(self.repository, parent, &change.roles, used).await?);
        let unnamed = |files: &BTreeSet<String>| -> BTreeSet<String> {
            let is_missing = |path: &&String| !prompt::names_file(&prompt, path) && !closed.contains(path);
            files.iter().filter(is_missing).cloned().collect()
        };
        let (imported, needed) = (unnamed(&imported), unnamed(&change.needed));
        prompt = prompt::with_interface(&prompt, &names, &imported, &needed);
        let is_thin = !is_rewritten && prompt::is_thin(&sources);
        if is_thin {
            remarks.push(reservations::sentence(reservations::THIN));
        }
        Ok(DraftedPrompt { text: prompt, is_rewritten, is_thin, leaks, remarks })
    }
}

/// The prompt of a case, with what a person has to know about it.
struct DraftedPrompt {
    text: String,
    /// True if a model rewrote it.
    is_rewritten: bool,
    /// True if it says nothing about the task.
    is_thin: bool,
    /// Parts of the solution in it.
    leaks: Vec<String>,
    remarks: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_has_all_of_its_paths() {
        let paths: Vec<String> = (0..7).map(|number| format!("{number}.js")).collect();
        assert_eq!(with_paths("Look", paths.iter().take(2)), ["Look: `0.js`, `1.js`"]);
        let expected = ["Look:", "`0.js`, `1.js`, `2.js`, `3.js`, `4.js`", "`5.js`, `6.js`"];
        assert_eq!(with_paths("Look", &paths), expected);
    }
}

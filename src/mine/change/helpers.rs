//! Finds modules that only tests import although they are outside of the folders of tests, such as `support/checks.py`.
//! An agent that changes what such a module compares changes the tests.
//!
//! ```text
//! modules that tests reach → uses by others → parts of the product → verdict of each module
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::loaded::may_be_loaded;
use super::modules::{Files, Reached, imports};
use super::node_names::{ENDINGS, Names};
use super::node_text;
use super::product::{is_for_tests, may_be_product};
use super::python_text::{self, Load, Shown};
use super::usage::{Usage, only_of_tests};
use super::{Entry, MAX_SEARCHED_WORDS, tree};
use crate::mine::history::Commit;
use crate::mine::language::{NODE, PYTHON};
use crate::mine::repository::{Repository, RepositoryError};
use crate::mine::role::{Role, Roles, split};
use crate::mine::runner;

/// The modules that only tests import.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Helpers {
    /// Globs of modules that an agent has no reason to change, and of files that would be loaded in place of one.
    pub(super) protected: BTreeSet<String>,
    /// Modules that may be code: their folders hold code that the commit changes, they import code, code may load them by a
    /// name, or settings or packages around them show that they may be a part of the product.
    pub(super) unsure: Vec<String>,
    /// Tests, and modules that only they import, that load modules by names which only a run shows.
    pub(super) computed: Vec<String>,
    /// True if tests load more modules than were looked at.
    pub(super) has_more: bool,
    /// Files of code that tests import and that only the commit has.
    pub(super) imported: BTreeSet<String>,
}

/// Returns the modules of Python and Node that the changed tests, the helpers among the tests and `conftest.py` import, that
/// the commit does not change, and that no code imports. The plug-ins of the repository that pytest loads are among them, and
/// so are modules that aliases of Node's runners name.
///
/// # Errors
/// Returns git's message.
pub(super) async fn find(
    repository: &Repository,
    commit: &Commit,
    entries: &BTreeMap<String, Entry>,
    before: &BTreeMap<String, Entry>,
    roles: &Roles,
    own: &BTreeSet<String>,
) -> Result<Helpers, RepositoryError> {
    let files = Files { commit, entries, before, roles, own };
    let reached = Reached::read(repository, files).await?;
    let uses = uses(repository, files, &reached).await?;
    let product = product(repository, files, &reached, &uses.alone).await?;
    Ok(verdicts(files, &reached, &uses, &product))
}

/// The modules that tests reach and no code imports.
struct Uses {
    /// Modules that no other file uses.
    alone: BTreeSet<String>,
    /// Modules that a manifest names.
    listed: BTreeSet<String>,
    /// Modules of `alone` that code may load by a name which only its run shows.
    loaded: BTreeSet<String>,
}

async fn uses(repository: &Repository, files: Files<'_>, reached: &Reached) -> Result<Uses, RepositoryError> {
    let Files { commit, entries, roles, .. } = files;
    let modules = reached.modules(files);
    let Usage { mut alone, mut listed } = only_of_tests(repository, &commit.id, entries, roles, &modules).await?;
    let of_node = reached.of_language(&NODE);
    let of_node = of_node.filter(|(path, _)| alone.contains(*path) || listed.contains(*path)).collect();
    let used = used_by_name(repository, &commit.id, entries, roles, &reached.names, &of_node).await?;
    alone.retain(|path| !used.contains(path));
    listed.retain(|path| !used.contains(path));
    let loaded = may_be_loaded(repository, &commit.id, entries, roles, &alone).await?;
    Ok(Uses { alone, listed, loaded })
}

/// Returns those of the modules that may be a part of the product.
async fn product(
    repository: &Repository,
    files: Files<'_>,
    reached: &Reached,
    alone: &BTreeSet<String>,
) -> Result<BTreeSet<String>, RepositoryError> {
    let Files { commit, entries, roles, .. } = files;
    let with_texts: BTreeMap<&String, &str> = alone.iter().map(|path| (path, reached.text(path))).collect();
    let product = may_be_product(repository, &commit.id, entries, roles, &with_texts).await?;
    Ok(with_loaded(product, reached, alone))
}

/// Adds the modules that tests load as they load the product, and those that the product imports.
fn with_loaded(mut product: BTreeSet<String>, reached: &Reached, alone: &BTreeSet<String>) -> BTreeSet<String> {
    let may_be = |path: &String| alone.contains(path) && !is_for_tests(path, reached.text(path));
    // Tests also load a module of the product fresh.
    let of_node = reached.of_language(&NODE).map(|(path, text)| node_text::loads(path, text, &reached.names));
    let (special, plain): (Vec<_>, Vec<_>) = of_node.map(|loads| (loads.special, loads.modules)).unzip();
    let plain: BTreeSet<&String> = plain.iter().flatten().chain(&reached.targets).collect();
    product.extend(special.into_iter().flatten().filter(|path| !plain.contains(path) && may_be(path)));
    // A program may be one of the product, and so may be what a module of the product imports.
    let mut next = reached.programs();
    next.extend(product.iter().flat_map(|path| reached.imports(path)));
    loop {
        next.retain(|path| !product.contains(path) && may_be(path));
        if next.is_empty() {
            return product;
        }
        product.extend(next.iter().cloned());
        next = next.iter().flat_map(|path| reached.imports(path)).collect();
    }
}

/// Decides which modules are protected.
fn verdicts(files: Files<'_>, reached: &Reached, uses: &Uses, product: &BTreeSet<String>) -> Helpers {
    let Uses { alone, listed, loaded } = uses;
    let changed = files.commit.files.iter().map(|file| file.path.as_str());
    let patched: Vec<&str> = changed.filter(|path| files.is_code(path)).collect();
    let is_near_patch = |path: &String| patched.iter().any(|other| is_near(path, other));
    let imports_code =
        |path: &String| reached.imports(path).iter().any(|other| files.is_code(other) && !alone.contains(other));
    let of_pytest = of_pytest(files, reached, alone);
    let mut helpers = Helpers {
        computed: computed(files, reached, alone),
        has_more: reached.has_more,
        imported: reached.added(files),
        ..Helpers::default()
    };
    for path in alone {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let is_below = |other: &str| folder.is_empty() || other.starts_with(&format!("{folder}/"));
        let is_of_folder = ["__init__", "index"].contains(&split(name).0);
        // The package of the code.
        if is_of_folder && patched.iter().any(|other| is_below(other)) {
            continue;
        }
        let may_be_code = || imports_code(path) || loaded.contains(path);
        let is_doubtful = product.contains(path) || is_near_patch(path);
        if is_doubtful || (!of_pytest.contains(path) && may_be_code()) {
            helpers.unsure.push(path.clone());
        } else {
            helpers.protected.extend(places(path, &reached.names.files));
        }
    }
    // The entry of a package imports its code, or lies beside it.
    let is_apart = |path: &&String| !is_near_patch(path) && !imports_code(path);
    helpers.unsure.extend(listed.iter().filter(is_apart).cloned());
    // An example may also be a part of the documentation, or data.
    let modules = reached.modules(files);
    let is_other = |path: &String| files.is_kept(path) && !files.is_test(path) && !modules.contains(path);
    helpers.unsure.extend(reached.copies(files, &reached.examples).into_iter().filter(is_other));
    helpers
}

/// Returns the files that pytest loads or copies for the tests: they import the code that they make ready.
fn of_pytest(files: Files<'_>, reached: &Reached, alone: &BTreeSet<String>) -> BTreeSet<String> {
    let mut found = reached.plugins();
    for (path, text) in reached.of_language(&PYTHON).filter(|(path, _)| files.is_test(path) || alone.contains(*path)) {
        let loads = python_text::loads(path, text);
        let plugins = loads.iter().filter(|load| load.is_plugin);
        found.extend(plugins.flat_map(|load| reached.located(path, &load.modules)));
    }
    let named: Vec<String> = reached.examples.iter().filter(|folder| !folder.is_empty()).cloned().collect();
    found.extend(reached.copies(files, &named));
    found
}

/// Returns the tests, and the modules that only tests import, that compute the name of a module which they load at run
/// time.
fn computed(files: Files<'_>, reached: &Reached, alone: &BTreeSet<String>) -> Vec<String> {
    let is_shown = |path: &str, load: &Load| match load.shown {
        Shown::All => true,
        Shown::Perhaps => !reached.loaded(path, load).is_empty(),
        Shown::Part => false,
    };
    let hides_names = |path: &str, text: &str| {
        if NODE.has(path) {
            return node_text::loads(path, text, &reached.names).is_computed;
        }
        let has_computed_path = || python_text::has_computed_path(path, text, |folder| reached.is_folder(folder));
        let has_hidden_load = || python_text::loads(path, text).iter().any(|load| !is_shown(path, load));
        PYTHON.has(path) && (has_computed_path() || has_hidden_load())
    };
    let of_tests = reached.texts.iter().filter(|(path, _)| files.is_test(path) || alone.contains(*path));
    of_tests.filter(|(path, text)| hides_names(path, text)).map(|(path, _)| path.clone()).collect()
}

/// Returns those of the modules of Node that code imports by another name than their path, such as that of a package, and the
/// modules that these import.
async fn used_by_name(
    repository: &Repository,
    commit: &str,
    entries: &BTreeMap<String, Entry>,
    roles: &Roles,
    names: &Names,
    modules: &BTreeMap<&String, &String>,
) -> Result<BTreeSet<String>, RepositoryError> {
    let words = names.words(modules.keys().copied());
    if modules.is_empty() || words.is_empty() {
        return Ok(BTreeSet::new());
    }
    let holders =
        repository.files_with(commit, &words.iter().map(String::as_str).take(MAX_SEARCHED_WORDS).collect()).await?;
    let is_code = |path: &str| {
        let is_program = NODE.has(path) && roles.of(path) == Role::Code && !runner::has_names_of_node(path);
        holders.contains(path) && is_program && !modules.contains_key(&path.to_owned())
    };
    let texts = tree(repository, entries, is_code).await?.texts;
    let imported = |path: &str, text: &str| {
        imports(path, text, names, &[])
            .into_iter()
            .filter(|other| modules.contains_key(other))
            .collect::<BTreeSet<String>>()
    };
    let mut used: BTreeSet<String> = texts.iter().flat_map(|(path, text)| imported(path, text)).collect();
    loop {
        let texts = modules.iter().filter(|(path, _)| used.contains(**path));
        let next: BTreeSet<String> = texts.flat_map(|(path, text)| imported(path, text)).collect();
        if next.is_subset(&used) {
            return Ok(used);
        }
        used.extend(next);
    }
}

/// Returns true if two files are in one folder, or one of them is below the folder of the other. All files are below the top.
fn is_near(path: &str, other: &str) -> bool {
    let folder = |path: &str| path.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
    let (one, two) = (folder(path), folder(other));
    one == two || (!one.is_empty() && !two.is_empty() && (one.starts_with(&two) || two.starts_with(&one)))
}

/// Returns globs of a module, and of what would be loaded in its place.
fn places(path: &str, files: &BTreeSet<String>) -> Vec<String> {
    let mut found = vec![path.to_owned()];
    if path.ends_with(".py") {
        // A module or a package takes the place of a folder that is no package.
        for (at, _) in path.match_indices('/') {
            let folder = path.get(..at).unwrap_or_default();
            let others = [format!("{folder}/__init__.py"), format!("{folder}.py")];
            found.extend(others.into_iter().filter(|other| !files.contains(other)));
        }
    } else if let Some((stem, _)) = path.rsplit_once('.') {
        let others = ENDINGS.iter().map(|ending| format!("{stem}{ending}"));
        found.extend(others.filter(|other| !files.contains(other)));
        // A file with the name of the folder is loaded in place of the module that the folder's name means.
        let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
        if !folder.is_empty() && (name == "index" || files.contains(&format!("{folder}/package.json"))) {
            let others = ENDINGS.iter().skip(1).map(|ending| format!("{folder}{ending}"));
            found.extend(others.filter(|other| !files.contains(other)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_near_code_in_its_folder_and_below_and_above_it() {
        for (path, other, expected) in [
            ("near.py", "calc.py", true),
            ("support/checks.py", "calc.py", false),
            ("support/checks.py", "src/calc.py", false),
            ("app/support/checks.py", "app/calc.py", true),
            ("app/checks.py", "app/core/calc.py", true),
            ("app/checks.py", "application/calc.py", false),
        ] {
            assert_eq!(is_near(path, other), expected, "{path} {other}");
        }
    }

    #[test]
    fn the_files_that_would_be_loaded_in_place_of_a_module_are_found() {
        let files = ["support/__init__.py", "support/checks.py", "support/checks.js", "support/deep/index.ts"];
        let files: BTreeSet<String> = files.map(str::to_owned).into();
        assert_eq!(places("support/checks.py", &files), ["support/checks.py", "support.py"]);
        assert!(places("support/checks.js", &files).contains(&"support/checks".to_owned()));
        assert!(!places("support/checks.js", &files).contains(&"support.js".to_owned()));
        assert!(places("support/deep/index.ts", &files).contains(&"support/deep.js".to_owned()));
    }
}

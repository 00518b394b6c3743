//! The digest of a case, computed from everything that the case is made from, so that any change is noticed.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::helpers::beside;
use super::{Case, Oracle, WorkspaceSource, quarantine};
use crate::gateway::cassette;
use crate::ids::ArmOf;
use crate::interaction::Interaction;
use crate::regular;
use crate::snapshot::store;
use crate::trace::view;
use crate::whole_file::FileError;
use crate::workspace::repository::RepositoryContent;

impl Case {
    /// Returns the digest of the inputs of the workspace: the source and the setup commands. For a repository, only
    /// its path and revision count.
    ///
    /// # Errors
    /// Returns an error if a file of the source cannot be read.
    pub fn workspace_digest(&self) -> io::Result<String> {
        let mut parts = PartHasher::default();
        match &self.workspace.source {
            WorkspaceSource::Empty => parts.add("empty", b""),
            WorkspaceSource::Copy(folder) => parts.named("copy", folder)?,
            WorkspaceSource::Files(files) => files.iter().for_each(|(name, text)| parts.add(name, text.as_bytes())),
            WorkspaceSource::Git(git) => {
                let rev = git.revision().map(str::to_owned);
                let (repository, subdir) = (&git.repository, &git.subdir);
                let text = format!("GitSource {{ repository: {repository:?}, rev: {rev:?}, subdir: {subdir:?} }}");
                parts.add("git", text.as_bytes());
            }
        }
        for line in &self.workspace.setup {
            parts.add("setup", line.as_bytes());
        }
        Ok(parts.digest())
    }

    /// Returns the digest of everything that an agent is given in a trial under this policy: its prompts, workspace, tools
    /// and limits. How the result is graded is not part of the digest.
    ///
    /// # Errors
    /// Returns an error if a file that the case names cannot be read.
    pub fn played_digest(&self, interaction: &Interaction) -> io::Result<String> {
        let mut parts = PartHasher::default();
        parts.digest_of("workspace", &self.workspace_digest()?);
        for turn in &self.turns {
            parts.add("turn", turn.as_bytes());
        }
        parts.add("system-prompt", self.system_prompt.as_deref().unwrap_or_default().as_bytes());
        parts.add("interaction", interaction.to_text().as_bytes());
        for answer in &self.answers {
            parts.json("answer", answer)?;
        }
        for server in &self.mcp_servers {
            parts.json("mcp-server", server)?;
        }
        parts.json("limits", &self.limits)?;
        parts.json("session", &self.session)?;
        parts.json("sandbox", &self.sandbox)?;
        parts.json("env", &self.env)?;
        for file in self.attachments.iter().chain(self.model_script()).chain(self.demo_scripts.values()) {
            parts.named("file", file)?;
        }
        for (what, path) in self.overlay.sources() {
            parts.named(what, path)?;
        }
        if let Some(instructions) = &self.overlay.instructions {
            parts.add("instructions", instructions.text.as_deref().unwrap_or_default().as_bytes());
        }
        Ok(parts.digest())
    }

    /// Returns the digest of the case file, its suites, the named graders, the content of its folders and
    /// files, and the files that its graders compare with. Of a folder named `.git`, files that git rewrites by itself are left
    /// out.
    ///
    /// # Errors
    /// Returns an error if a file that the case names cannot be read.
    pub fn digest(&self) -> io::Result<String> {
        let mut parts = PartHasher::default();
        parts.add("id", self.id.as_bytes());
        for source in &self.sources {
            // A quarantine changes nothing about what is measured.
            let text = if self.quarantine.is_some() { quarantine::without(&source.text) } else { source.text.clone() };
            parts.add("file", text.as_bytes());
        }
        for (name, text) in self.named_graders.iter().chain(self.named_policy.as_ref().map(|(name, text)| (name, text)))
        {
            parts.add(name, text.as_bytes());
        }
        for (what, path) in self.folders_and_files() {
            parts.named(what, path)?;
        }
        for named in self.files_of_graders() {
            // A missing file is reported by the grader.
            match named.canonicalize() {
                Ok(file) => parts.tree("grader", &file)?,
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                    parts.add("grader", b"absent");
                }
                Err(error) => return Err(io::Error::new(error.kind(), format!("{}: {error}", named.display()))),
            }
        }
        for file in self.helpers()? {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            parts.tree(&format!("helper/{name}"), &file)?;
        }
        Ok(parts.digest())
    }

    /// Returns the files that the trials of these cells (harness and arm) are graded with and that the digest leaves out:
    /// calibrations of the graders, and accepted snapshots of the cells.
    ///
    /// # Errors
    /// Returns an error if a name cannot be a file name.
    pub fn judged_by<'a>(
        &self,
        cells: impl Iterator<Item = (&'a str, ArmOf<'a>)>,
    ) -> Result<BTreeSet<PathBuf>, FileError> {
        let mut files: BTreeSet<PathBuf> = self.calibrations().collect();
        let folder = store::folder(&self.file);
        for (harness, arm) in cells {
            files.insert(store::file(&folder, harness, arm)?);
        }
        Ok(files)
    }

    /// Returns true if a grader depends on this file of [`Self::judged_by`], instead of only the run.
    pub fn is_graded_by(&self, file: &Path) -> bool {
        let by_snapshots = self.graders.iter().any(|grader| grader.kind.needs().snapshots);
        by_snapshots || self.calibrations().any(|calibration| calibration == file)
    }

    /// Returns true if this file of [`Self::judged_by`] is a part of a cassette, whose answers the trials get.
    pub fn is_played(&self, file: &Path) -> bool {
        let named = self.model.as_ref().map(|model| model.file());
        let of_named = |named: &Path| file == named || file.starts_with(cassette::bodies(named));
        file.starts_with(self.cassettes()) || named.is_some_and(of_named)
    }

    fn calibrations(&self) -> impl Iterator<Item = PathBuf> {
        let named = self.graders.iter().filter_map(|grader| grader.kind.spec().calibration());
        named.map(|file| view::normalise(&self.folder().join(file)))
    }

    /// Returns every file and folder that the trials are made from and graded with, with links resolved.
    pub(super) fn inputs(&self) -> Vec<PathBuf> {
        let with_target = |path: PathBuf| {
            let target = path.canonicalize().ok().filter(|target| *target != path);
            [Some(path), target].into_iter().flatten()
        };
        let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
        let (links, named): (Vec<_>, Vec<_>) =
            self.folders_and_files().into_iter().map(|(_, path)| path.to_owned()).partition(|path| is_link(path));
        let named = named.into_iter().chain(links.into_iter().flat_map(with_target));
        let of_graders = self.files_of_graders().flat_map(with_target);
        // The digest of the case reports a folder of scripts that cannot be read.
        named.chain(of_graders).chain(self.helpers().unwrap_or_default()).collect()
    }

    /// Returns the files that lie beside the scripts of graders, which the scripts may load.
    ///
    /// # Errors
    /// Returns an error if the folder of a script cannot be read.
    fn helpers(&self) -> io::Result<BTreeSet<PathBuf>> {
        let scripts = self.graders.iter().filter(|grader| grader.kind.spec().runs_named_files());
        let scripts = scripts.flat_map(|grader| grader.kind.spec().named_files());
        let scripts: Vec<PathBuf> = scripts.filter_map(|file| self.folder().join(file).canonicalize().ok()).collect();
        if scripts.is_empty() {
            // Most cases have none, and a run may have many cases: their paths are not resolved for nothing.
            return Ok(BTreeSet::new());
        }
        let named: BTreeSet<PathBuf> = self.files_of_graders().filter_map(|file| file.canonicalize().ok()).collect();
        let case = self.folder().canonicalize().unwrap_or_else(|_| self.folder().to_owned());
        let mut found = BTreeSet::new();
        for script in scripts {
            found.extend(beside(&script, &case)?);
        }
        found.retain(|file| !named.contains(file));
        Ok(found)
    }

    /// Returns the files and folders that the case names, each with its role. Files of graders are not included.
    fn folders_and_files(&self) -> Vec<(&'static str, &Path)> {
        let copied = match &self.workspace.source {
            WorkspaceSource::Copy(folder) => Some(folder.as_path()),
            WorkspaceSource::Empty | WorkspaceSource::Git(_) | WorkspaceSource::Files(_) => None,
        };
        let oracle = self.oracle.as_ref().map(Oracle::path);
        let named = [
            ("workspace", copied),
            ("hidden", self.hidden.as_deref()),
            ("oracle", oracle),
            ("model", self.model_script().map(PathBuf::as_path)),
        ];
        let attachments = self.attachments.iter().map(|file| ("attachment", Some(file.as_path())));
        let scripts = self.demo_scripts.values().map(|file| ("demo", Some(file.as_path())));
        let laid = self.overlay.sources().map(|(what, path)| (what, Some(path)));
        let all = named.into_iter().chain(attachments).chain(scripts).chain(laid);
        all.filter_map(|(what, path)| Some((what, path?))).collect()
    }

    fn files_of_graders(&self) -> impl Iterator<Item = PathBuf> {
        let named = self.graders.iter().flat_map(|grader| grader.kind.spec().named_files());
        named.map(|named| self.folder().join(named))
    }
}

/// Returns the digest of a file that a case is graded with, or [`ABSENT`] if the file does not exist.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub fn file_digest(path: &Path) -> io::Result<String> {
    match content(path) {
        Ok(hash) => Ok(hash.to_hex().to_string()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ABSENT.to_owned()),
        Err(error) => Err(error),
    }
}

/// The value for a missing file.
pub const ABSENT: &str = "absent";

/// Returns true if two digests of a case, of its workspace or of its agents' inputs are equal. If one of them is of a version that
/// did not read what links lead to, only the rest is compared.
pub fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (parts_of(one), parts_of(other));
    one.0 == other.0 && (one.1.is_none() || other.1.is_none() || one.1 == other.1)
}

/// Returns true if it is unknown whether two digests are of the same content: the rest is equal, and one of them is of a
/// version that did not read what links lead to.
pub fn may_differ_behind_links(one: &str, other: &str) -> bool {
    let (one, other) = (parts_of(one), parts_of(other));
    one.0 == other.0 && one.1.is_some() != other.1.is_some()
}

/// The separator between the digest of the parts and the digest of the targets of links.
const LINKED: char = '+';

/// Returns the digest of the parts, and the digest of what links lead to, if it has one.
fn parts_of(digest: &str) -> (&str, Option<&str>) {
    digest.split_once(LINKED).map_or((digest, None), |(parts, linked)| (parts, Some(linked)))
}

/// A hasher for the parts of a digest.
#[derive(Default)]
struct PartHasher {
    /// The hasher of the parts. A link counts as its target's path.
    parts: blake3::Hasher,
    /// The hasher of what the links lead to that the case names. Absent if it names none.
    linked: Option<Box<PartHasher>>,
}

impl PartHasher {
    fn add(&mut self, what: &str, bytes: &[u8]) {
        for piece in [what.as_bytes(), bytes] {
            self.parts.update(&(piece.len() as u64).to_le_bytes());
            self.parts.update(piece);
        }
    }

    /// Adds a digest of other parts.
    fn digest_of(&mut self, what: &str, digest: &str) {
        let (parts, linked) = parts_of(digest);
        self.add(what, parts.as_bytes());
        if let Some(linked) = linked {
            self.linked().add(what, linked.as_bytes());
        }
    }

    fn linked(&mut self) -> &mut PartHasher {
        self.linked.get_or_insert_with(Box::default)
    }

    fn json(&mut self, what: &str, value: &impl serde::Serialize) -> io::Result<()> {
        self.add(what, &serde_json::to_vec(value)?);
        Ok(())
    }

    /// Adds a file or folder that a case names. Of a link in its place, its target counts, too, as when the workspace is made.
    fn named(&mut self, name: &str, path: &Path) -> io::Result<()> {
        self.tree(name, path)?;
        match path.symlink_metadata()?.is_symlink() {
            true => self.linked().tree(name, &path.canonicalize()?),
            false => Ok(()),
        }
    }

    /// Adds a file, or everything below a folder in the order of names. A link counts as its target's path.
    fn tree(&mut self, name: &str, path: &Path) -> io::Result<()> {
        let kind = std::fs::symlink_metadata(path)?;
        if kind.is_symlink() {
            self.add(name, std::fs::read_link(path)?.as_os_str().as_encoded_bytes());
        } else if kind.is_dir() {
            self.add(name, b"folder");
            let mut entries: Vec<_> = std::fs::read_dir(path)?.collect::<io::Result<_>>()?;
            entries.sort_by_key(std::fs::DirEntry::file_name);
            for entry in entries {
                let (name, path) = (format!("{name}/{}", entry.file_name().display()), entry.path());
                match entry.file_name() == ".git" && entry.file_type()?.is_dir() {
                    true => self.repository(&name, &path)?,
                    false => self.tree(&name, &path)?,
                }
            }
        } else if kind.is_file() {
            let runs = if executable(&kind) { "x" } else { "-" };
            self.add(runs, name.as_bytes());
            self.add(name, content(path)?.as_bytes());
        }
        Ok(())
    }

    /// Adds the content of a repository.
    fn repository(&mut self, name: &str, git: &Path) -> io::Result<()> {
        let content = RepositoryContent::read(git)?;
        self.add(name, b"repository");
        for (reference, value) in &content.refs {
            self.add(&format!("{name}/{reference}"), value.as_bytes());
        }
        for entry in &content.entries {
            self.add("entry", entry.as_bytes());
        }
        for file in &content.files {
            self.tree(&format!("{name}/{}", file.display()), &git.join(file))?;
        }
        Ok(())
    }

    fn digest(&self) -> String {
        let parts = self.parts.finalize().to_hex();
        match &self.linked {
            Some(linked) => format!("{parts}{LINKED}{}", linked.digest()),
            None => parts.to_string(),
        }
    }
}

fn content(path: &Path) -> io::Result<blake3::Hash> {
    regular::digest(regular::open(path)?)
}

fn executable(kind: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    kind.permissions().mode() & 0o111 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_without_what_links_lead_to_is_compared_by_the_rest() {
        assert!(is_same("a", "a") && is_same("a", "a+x") && is_same("a+x", "a") && is_same("a+x", "a+x"));
        assert!(!is_same("a", "b") && !is_same("a+x", "a+y") && !is_same("a+x", "b+x") && !is_same("x", "a+x"));
        let is_unknown = may_differ_behind_links;
        assert!(is_unknown("a", "a+x") && is_unknown("a+x", "a") && !is_unknown("a+x", "a+x") && !is_unknown("a", "a"));
        assert!(!is_unknown("a+x", "a+y") && !is_unknown("b", "a+x"));
    }

    #[test]
    fn a_link_that_a_case_names_counts_with_its_target_and_the_first_part_is_that_of_older_versions() {
        let root = tempfile::tempdir().unwrap();
        let (real, link) = (root.path().join("real"), root.path().join("link"));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        let digest = |text: &str, path: &Path| {
            std::fs::write(real.join("a"), text).unwrap();
            let mut parts = PartHasher::default();
            parts.named("copy", path).unwrap();
            parts.digest()
        };
        let mut older = PartHasher::default();
        older.add("copy", b"real");
        let (one, two) = (digest("1", &link), digest("2", &link));
        assert!(!is_same(&one, &two) && is_same(&one, &older.digest()));
        // A folder counts as before.
        assert!(!digest("1", &real).contains(LINKED));
        let mut outer = [PartHasher::default(), PartHasher::default(), PartHasher::default()];
        for (outer, digest) in outer.iter_mut().zip([&one, &two, &older.digest()]) {
            outer.digest_of("workspace", digest);
        }
        let [one, two, older] = outer.map(|outer| outer.digest());
        assert!(!is_same(&one, &two) && is_same(&one, &older) && is_same(&two, &older));
    }
}

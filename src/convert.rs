//! Converts cases of other evaluation tools to cases of this one, and an experiment that compares a skill with none.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::case::{self, LoadContext, LoadError};
use crate::paths;
use crate::text::one_line;
use crate::whole_file::{FileError, write_whole};
use crate::workspace::remove::remove;
use crate::yaml::{self, YamlError};

mod agentskills;
mod chat;
mod claude_plugin;
mod coder_eval;
mod container;
mod copied;
mod csv;
mod dockerfile;
mod folders;
mod guess;
mod harbor;
mod inspect;
mod numbers;
mod parts;
mod patterns;
mod places;
mod prompt_paths;
mod promptfoo;
mod python;
mod refused;
mod restrictions;
mod skill_evals;
mod source;
mod swe_bench;
mod table;
mod template;
mod terminal_bench;
mod touchstone;
mod typed;
mod vally;

pub use copied::Copied;
pub use inspect::Target;

/// A format that cases are converted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// evals.json and trigger sets of Agent Skills
    Agentskills,
    /// Cases of `claude plugin eval`
    ClaudePlugin,
    /// Configurations of promptfoo
    Promptfoo,
    /// Tasks of Harbor
    Harbor,
    /// Tasks of Terminal-Bench 1
    TerminalBench,
    /// Instances of SWE-bench
    SweBench,
    /// Datasets of Inspect
    Inspect,
    /// Cases of touchstone
    Touchstone,
    /// Evals of Vally
    Vally,
    /// Tasks of coder-eval
    CoderEval,
}

/// Choices that the user makes because the source does not contain them.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// The way in which the target of a sample is compared with the answer.
    pub target: Option<Target>,
    /// The command that runs the tests of a repository.
    pub test: Option<String>,
    /// The checkout of the repository with hidden tests.
    pub fixtures: Option<PathBuf>,
}

impl Format {
    /// Reads the cases at a path: a file, or a folder.
    ///
    /// # Errors
    /// Returns an error if there is no case, or a file cannot be read.
    pub fn convert(self, path: &Path, choices: &Choices) -> Result<Converted, Vec<YamlError>> {
        let found = match self {
            Self::Agentskills => agentskills::convert(path),
            Self::ClaudePlugin => claude_plugin::convert(path),
            Self::Promptfoo => promptfoo::convert(path),
            Self::Harbor => harbor::convert(path),
            Self::TerminalBench => terminal_bench::convert(path),
            Self::SweBench => swe_bench::convert(path, choices),
            Self::Inspect => inspect::convert(path, choices),
            Self::Touchstone => touchstone::convert(path, choices),
            Self::Vally => vally::convert(path),
            Self::CoderEval => coder_eval::convert(path),
        };
        let mut converted = found.map_err(|errors| self.guessed(path, errors))?;
        restrictions::note(&mut converted);
        places::find(&mut converted);
        Ok(converted)
    }

    /// Adds the format that the path looks like to the last error, if it is another one.
    fn guessed(self, path: &Path, mut errors: Vec<YamlError>) -> Vec<YamlError> {
        if let Some(other) = guess::format(path).filter(|other| *other != self)
            && let Some(last) = errors.pop()
        {
            let word = clap::ValueEnum::to_possible_value(&other).map(|value| value.get_name().to_owned());
            let help = format!("this looks like another format: use --from {}", word.unwrap_or_default());
            errors.push(last.with_help(help));
        }
        errors
    }
}

/// A note about a part that was not converted, or was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub file: PathBuf,
    /// The line in the file, from 1, if it is known.
    pub line: Option<usize>,
    /// The place in the file: `evals[0].files[1]`. Empty for the file as a whole.
    pub key: String,
    /// The reason, and the suggested next step.
    pub message: String,
    /// True if the note is about a grader that was left out.
    pub is_of_lost_grader: bool,
}

impl Note {
    fn new(file: &Path, key: impl Into<String>, message: impl Into<String>) -> Self {
        let (file, key, message) = (file.to_owned(), key.into(), message.into());
        Self { file, line: None, key, message, is_of_lost_grader: false }
    }

    /// Marks the note as being about a grader that was left out.
    fn of_lost_grader(self) -> Self {
        Self { is_of_lost_grader: true, ..self }
    }

    fn on(self, line: Option<usize>) -> Self {
        Self { line, ..self }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        f.write_str(": ")?;
        if !self.key.is_empty() {
            write!(f, "`{}`: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// A case to write.
#[derive(Debug, Clone)]
pub struct NewCase {
    /// The path of the file below the folder of its group, without extension.
    pub name: String,
    /// The file it was converted from.
    pub from: PathBuf,
    pub keys: Map<String, Value>,
    /// Texts for people for which a case has no key.
    pub remarks: Vec<String>,
    /// Notes about parts that were not converted.
    pub notes: Vec<Note>,
    /// The files of the workspace.
    pub files: Vec<Copied>,
    /// Further files beside the case.
    pub beside: Vec<Beside>,
    /// The files of the image that the case runs in: the path below `images/GROUP/CASE/`, and the content.
    pub image: Vec<(String, Content)>,
}

impl NewCase {
    fn new(name: String, from: &Path) -> Self {
        Self {
            name,
            from: from.to_owned(),
            keys: Map::new(),
            remarks: Vec::new(),
            notes: Vec::new(),
            files: Vec::new(),
            beside: Vec::new(),
            image: Vec::new(),
        }
    }

    /// Adds a file beside the case, and returns its path as the case names it.
    fn add(&mut self, suffix: &str, content: Content) -> String {
        self.beside.push(Beside { suffix: suffix.to_owned(), content });
        let stem = self.name.rsplit('/').next().unwrap_or(&self.name);
        format!("{stem}.{suffix}")
    }
}

/// A file beside a case.
#[derive(Debug, Clone)]
pub struct Beside {
    /// The part of the file's name after the case's name and a dot: `hidden/tests/test.sh`.
    pub suffix: String,
    pub content: Content,
}

/// The content of a file to write.
#[derive(Debug, Clone)]
pub enum Content {
    Text(String),
    /// Bytes that need not be a text.
    Bytes(Vec<u8>),
    /// A copy of another file, with its permissions.
    Copy(PathBuf),
}

/// Cases that belong to one experiment.
#[derive(Debug, Clone)]
pub struct Group {
    /// The name of the folder and of the experiment.
    pub name: String,
    /// The description of the experiment.
    pub description: String,
    /// True if runs with the skills are compared with runs without them.
    pub is_compared: bool,
    pub cases: Vec<NewCase>,
}

/// The cases and files that were read from the source.
#[derive(Debug, Clone, Default)]
pub struct Converted {
    /// The groups of cases.
    pub groups: Vec<Group>,
    /// The skill folders that the experiments use.
    pub skills: Vec<PathBuf>,
    /// The files and folders of the source that hold cases or expected results, whether or not a case was written. An agent that
    /// has a skill must not find them.
    pub evals: Vec<PathBuf>,
    /// Notes about parts that were not converted and belong to no written case.
    pub notes: Vec<Note>,
}

impl Converted {
    /// Returns everything that was not taken over, in the order of the cases.
    pub fn all_notes(&self) -> impl Iterator<Item = &Note> {
        self.notes.iter().chain(self.groups.iter().flat_map(|group| &group.cases).flat_map(|case| &case.notes))
    }

    /// Leaves out the cases that the loader refuses, each with the reason, and the experiments if a skill cannot be laid.
    /// A source may contain values that a case must not contain. `out` is the folder to write to.
    ///
    /// # Errors
    /// Returns an error if the cases cannot be written to a temporary folder.
    pub fn checked(mut self, out: &Path) -> Result<Self, WriteError> {
        let folder = tempfile::tempdir().map_err(FileError::io("make", Path::new("a temporary folder")))?;
        let cases_alone = Self { groups: self.groups.clone(), ..Self::default() };
        write(&cases_alone, folder.path(), true)?;
        for group in &mut self.groups {
            let (name, notes) = (&group.name, &mut self.notes);
            group.cases.retain(|case| {
                let file = case_file(folder.path(), name, case);
                let Err(errors) = case::load(&[file], &LoadContext::default()) else { return true };
                notes.extend(case.notes.iter().cloned());
                let why = match errors.into_iter().next() {
                    Some(LoadError::Yaml(error)) => error.message().to_owned(),
                    Some(error) => error.to_string(),
                    None => "it cannot be read".to_owned(),
                };
                notes.push(Note::new(&case.from, "", format!("no case `{}` was written: {why}", case.name)));
                false
            });
        }
        self.groups.retain(|group| !group.cases.is_empty());
        if self.groups.is_empty() {
            return Ok(self);
        }
        let mut can_be_laid = true;
        let mut notes = Vec::new();
        for skill in &self.skills {
            let message = match without_evals(skill, &self, out) {
                Ok(None) => continue,
                Ok(Some(_)) => {
                    let others = skill_evals::named_elsewhere(skill);
                    let what = format!("the experiment uses a copy of the skill without its evals{others}");
                    format!("{what}; if you change the skill, convert it again")
                }
                Err(why) => {
                    can_be_laid = false;
                    format!("no experiment was written: the skill cannot be copied without its evals: {why}")
                }
            };
            notes.push((can_be_laid, Note::new(skill, "", message)));
        }
        if !can_be_laid {
            self.skills.clear();
            notes.retain(|(is_laid, _)| !is_laid);
        }
        self.notes.extend(notes.into_iter().map(|(_, note)| note));
        Ok(self)
    }

    /// Adds the cases of a source as a group that is not compared with anything. `what` are the parts of the source.
    fn add(&mut self, name: String, what: &str, source: &str, cases: Vec<NewCase>) {
        if !cases.is_empty() {
            let description = one_line(&format!("{what} of {source}"));
            self.groups.push(Group { name, description, is_compared: false, cases });
        }
    }

    /// Adds the cases of a file as a group with its name.
    fn add_file(&mut self, file: &Path, otherwise: &str, what: &str, cases: Vec<NewCase>) {
        let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        self.add(slug(&stem).unwrap_or_else(|| otherwise.to_owned()), what, &stem, cases);
    }

    /// Returns the number of cases.
    pub fn cases(&self) -> usize {
        self.groups.iter().map(|group| group.cases.len()).sum()
    }
}

/// The reason why converted cases could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A file exists already.
    #[error("{} exists already; nothing was written: name another folder with -o, or overwrite files with --force", .0.display())]
    Exists(PathBuf),
    /// A folder that would be replaced contains a source.
    #[error("{} would be replaced, and contains files to convert; name another folder with -o", .0.display())]
    Source(PathBuf),
    /// A skill has evals beside it, and cannot be copied without them.
    #[error("{}: the skill cannot be copied without its evals: {why}", .skill.display())]
    Skill {
        /// The folder of the skill.
        skill: PathBuf,
        /// The reason.
        why: String,
    },
    /// The file system returned an error.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The message about a key that a format does not define.
const UNKNOWN: &str = "the key is not known, and was left out";

/// Notes that the variable `HOME` of a case was left out.
const HOME_LEFT_OUT: &str = "`HOME` was left out: an agent has the private home of its trial";

/// The order of the keys in a case.
const ORDER: [&str; 13] = [
    "description",
    "tags",
    "prompt",
    "turns",
    "system-prompt",
    "workspace",
    "hidden",
    "sandbox",
    "env",
    "limits",
    "trials",
    "pass",
    "graders",
];

/// Writes cases to `cases/` and experiments to `experiments/` below a folder, and returns the written case files and
/// experiments.
///
/// # Errors
/// Returns an error if a file exists and `force` is false, in which case nothing is written, or if writing fails. With
/// `force`, the folders of files of the written cases are replaced.
pub fn write(converted: &Converted, out: &Path, force: bool) -> Result<Vec<PathBuf>, WriteError> {
    let mut files: Vec<(PathBuf, Content)> = Vec::new();
    let mut named = Vec::new();
    for group in &converted.groups {
        for case in &group.cases {
            let file = case_file(out, &group.name, case);
            let workspace = file.with_extension("workspace");
            for copied in &case.files {
                files.push((workspace.join(&copied.to), Content::Copy(copied.from.clone())));
            }
            for beside in &case.beside {
                let mut path = file.with_extension("").into_os_string();
                path.push(format!(".{}", beside.suffix));
                files.push((PathBuf::from(path), beside.content.clone()));
            }
            for (path, content) in &case.image {
                files.push((image_folder(out, &group.name, case).join(path), content.clone()));
            }
            named.push(file.clone());
            let copy = workspace.file_name().filter(|_| !case.files.is_empty()).map(|name| name.to_string_lossy());
            files.push((file, Content::Text(case_text(case, copy.as_deref()))));
        }
        if !converted.skills.is_empty() && !group.cases.is_empty() {
            let folder = out.join("experiments");
            let file = folder.join(format!("{}.yaml", group.name));
            named.push(file.clone());
            let mut laid = Vec::new();
            let mut names = BTreeSet::new();
            for skill in &converted.skills {
                let copies = without_evals(skill, converted, out);
                laid.push(match copies.map_err(|why| WriteError::Skill { skill: skill.clone(), why })? {
                    Some(copies) => {
                        let copy = skills_folder(out, &group.name).join(name_of_copy(skill, &mut names));
                        files.extend(copies.into_iter().map(|file| (copy.join(file.to), Content::Copy(file.from))));
                        copy
                    }
                    None => skill.clone(),
                });
            }
            let text = experiment(group, &laid, &folder);
            files.push((file, Content::Text(text)));
        }
    }
    let folders = old_folders(converted, out);
    let mut written = folders.iter().chain(files.iter().map(|(path, _)| path));
    if !force && let Some(path) = written.find(|path| path.symlink_metadata().is_ok()) {
        return Err(WriteError::Exists(path.clone()));
    }
    refuse_sources(converted, &files, &folders)?;
    for folder in &folders {
        remove(folder).map_err(FileError::io("remove", folder))?;
    }
    for (path, content) in files {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(FileError::io("make", folder))?;
        }
        match content {
            Content::Text(text) => write_whole(&path, |out| out.write_all(text.as_bytes()))?,
            Content::Bytes(bytes) => write_whole(&path, |out| out.write_all(&bytes))?,
            Content::Copy(from) => {
                if path.is_symlink() {
                    // The copy takes its place; the file that it leads to stays as it is.
                    remove(&path).map_err(FileError::io("remove", &path))?;
                }
                std::fs::copy(&from, &path).map_err(FileError::io("copy", &from))?;
            }
        }
    }
    Ok(named)
}

/// Returns the existing folders of files of these cases. Files that the source no longer has would be given to the agent
/// or to graders, so an earlier conversion's folders are replaced as a whole.
fn old_folders(converted: &Converted, out: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for group in &converted.groups {
        if !converted.skills.is_empty() {
            folders.push(skills_folder(out, &group.name));
        }
        for case in &group.cases {
            let file = case_file(out, &group.name, case);
            folders.extend(["workspace", "hidden", "expected"].map(|folder| file.with_extension(folder)));
            folders.push(image_folder(out, &group.name, case));
        }
    }
    folders.retain(|folder| folder.symlink_metadata().is_ok());
    folders
}

/// Refuses to replace a folder that contains a file that is converted.
fn refuse_sources(converted: &Converted, files: &[(PathBuf, Content)], folders: &[PathBuf]) -> Result<(), WriteError> {
    if folders.is_empty() {
        return Ok(());
    }
    let cases = converted.groups.iter().flat_map(|group| &group.cases);
    let copied = files.iter().filter_map(|(_, content)| match content {
        Content::Copy(from) => Some(from),
        Content::Text(_) | Content::Bytes(_) => None,
    });
    let named = cases.map(|case| &case.from).chain(copied).chain(&converted.skills);
    let sources: BTreeSet<PathBuf> = named.map(|path| paths::real(path)).collect();
    let has_source = |folder: &&PathBuf| {
        let folder = paths::real(folder);
        sources.range::<PathBuf, _>(&folder..).next().is_some_and(|source| source.starts_with(&folder))
    };
    match folders.iter().find(has_source) {
        Some(folder) => Err(WriteError::Source(folder.clone())),
        None => Ok(()),
    }
}

fn case_file(out: &Path, group: &str, case: &NewCase) -> PathBuf {
    out.join("cases").join(group).join(format!("{}.yaml", case.name))
}

/// Returns the folder of the skills that an experiment lays as copies.
fn skills_folder(out: &Path, group: &str) -> PathBuf {
    out.join("experiments").join(format!("{group}.skills"))
}

/// Returns the evals in a skill's folder: the folder with its evals, the files and folders of the source's cases, and the evals
/// elsewhere in the skill, which may not be a part of the path that is converted.
fn evals_in(skill: &Path, converted: &Converted) -> BTreeSet<PathBuf> {
    let real = paths::real(skill);
    let cases = converted.groups.iter().flat_map(|group| &group.cases).map(|case| paths::real(&case.from));
    let found = converted.evals.iter().filter(|path| path.exists()).map(|path| paths::real(path));
    let own = Some(real.join(copied::EVALS)).filter(|evals| evals.is_dir());
    let found = cases.chain(found).chain(own).filter(|path| path.starts_with(&real) && *path != real);
    found.chain(skill_evals::below(skill)).collect()
}

/// Returns the files of a skill without its evals. `None` if it has none, so that the skill itself can be laid: an agent that
/// has the skill must not find the expected results. `out` is the folder to write to.
fn without_evals(skill: &Path, converted: &Converted, out: &Path) -> Result<Option<Vec<Copied>>, String> {
    let (real, out) = (paths::real(skill), paths::real(out));
    let mut evals = evals_in(skill, converted);
    // The files that are written do not belong to the skill either.
    if out.starts_with(&real) {
        evals.extend(["cases", "experiments"].map(|folder| out.join(folder)));
        evals.extend(converted.groups.iter().map(|group| out.join("images").join(&group.name)));
    }
    if evals.is_empty() && !copied::has_evals(&real) {
        return Ok(None);
    }
    copied::skill(&real, &|file| evals.iter().any(|evals| file.starts_with(evals))).map(Some)
}

/// Returns a name for the copy of a skill that no earlier one has.
fn name_of_copy(skill: &Path, names: &mut BTreeSet<String>) -> String {
    let folder = paths::real(skill).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let numbered = (2..).map(|number| format!("{folder}-{number}"));
    let name = [folder.clone()].into_iter().chain(numbered).find(|name| !names.contains(name)).unwrap_or(folder);
    names.insert(name.clone());
    name
}

fn image_folder(out: &Path, group: &str, case: &NewCase) -> PathBuf {
    out.join("images").join(group).join(&case.name)
}

/// Returns the text of a case file.
fn case_text(case: &NewCase, copy: Option<&str>) -> String {
    let mut keys = case.keys.clone();
    if let Some(copy) = copy {
        let workspace = keys.entry("workspace").or_insert_with(|| json!({}));
        if let Some(workspace) = workspace.as_object_mut() {
            workspace.insert("copy".to_owned(), json!(copy));
        }
    }
    let mut ordered = Map::new();
    for key in ORDER {
        ordered.extend(keys.remove_entry(key));
    }
    ordered.extend(keys);
    let mut text = comment(&format!("Converted from {}", end_of(&case.from)));
    text.extend(case.remarks.iter().map(|remark| comment(remark)));
    text.extend(case.notes.iter().map(|note| comment(&note_text(note))));
    text.push_str(&yaml::write(&Value::Object(ordered)));
    text
}

fn note_text(note: &Note) -> String {
    let line = note.line.map(|line| format!(" in line {line}")).unwrap_or_default();
    if note.key.is_empty() {
        return format!("Note: {}", note.message);
    }
    format!("Note on `{}`{line}: {}", note.key, note.message)
}

/// Returns the last parts of a path: where it lies on this machine is of no use to others.
fn end_of(path: &Path) -> String {
    let names: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
    names.get(names.len().saturating_sub(3)..).unwrap_or_default().join("/")
}

/// Returns a comment in one line.
fn comment(text: &str) -> String {
    format!("# {}\n", one_line(text))
}

/// Returns the text of an experiment file.
fn experiment(group: &Group, skills: &[PathBuf], folder: &Path) -> String {
    let skills: Vec<String> = skills.iter().map(|skill| relative(folder, skill).display().to_string()).collect();
    let cases = format!("../cases/{}", group.name);
    let value = if group.is_compared {
        json!({
            "description": group.description,
            "cases": [cases],
            "vary": ["skills"],
            "baseline": "without",
            "variants": {"without": {}, "with": {"skills": skills}},
        })
    } else {
        json!({"description": group.description, "cases": [cases], "variants": {"with": {"skills": skills}}})
    };
    yaml::write(&value)
}

/// Returns a path relative to a folder. Neither has to exist.
fn relative(folder: &Path, path: &Path) -> PathBuf {
    let (folder, path) = (paths::real(folder), paths::real(path));
    let common = folder.components().zip(path.components()).take_while(|(one, other)| one == other).count();
    let up = folder.components().skip(common).map(|_| "..");
    let down = path.components().skip(common).map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.map(str::to_owned).chain(down).collect()
}

/// Returns a name for a file: lower-case letters, digits and hyphens.
fn slug(name: &str) -> Option<String> {
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let slug: String = words.collect::<Vec<_>>().join("-").chars().take(60).collect();
    let slug = slug.trim_matches('-').to_owned();
    (!slug.is_empty()).then_some(slug)
}

/// Returns a name that no earlier case has.
fn unique(name: String, cases: &[NewCase]) -> String {
    if name != "suite" && cases.iter().all(|case| case.name != name) {
        return name;
    }
    // In one pass: thousands of cases may have the same name in the source.
    let number = |case: &NewCase| case.name.strip_prefix(&name)?.strip_prefix('-')?.parse::<u64>().ok();
    let mut taken: Vec<u64> = cases.iter().filter_map(number).collect();
    taken.sort_unstable();
    let free = taken.into_iter().fold(2_u64, |free, number| if number == free { free + 1 } else { free });
    format!("{name}-{free}")
}

/// Returns an error about a file as a whole.
fn whole(path: &Path, message: impl Into<String>) -> YamlError {
    YamlError::at(path, "", None, message)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_name_that_is_taken_gets_the_first_free_number() {
        let case = |name: &str| NewCase::new(name.to_owned(), Path::new("a.yaml"));
        let cases: Vec<NewCase> = ["a-4", "a", "a-b", "a-2", "ab-3"].into_iter().map(case).collect();
        let of = |name: &str| unique(name.to_owned(), &cases);
        assert_eq!([of("a"), of("b"), of("a-2"), of("suite")], ["a-3", "b", "a-2-2", "suite-2"]);
        // With a search among all cases for each number, it takes minutes.
        let begun = std::time::Instant::now();
        let mut cases = Vec::new();
        for _ in 0..2_000 {
            let name = unique("a".to_owned(), &cases);
            cases.push(case(&name));
        }
        assert_eq!(cases.last().map(|case| &*case.name), Some("a-2000"));
        assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
    }

    #[test]
    fn a_copy_replaces_a_link_and_not_the_file_that_it_leads_to() {
        let root = tempfile::tempdir().unwrap();
        let (from, mine, out) = (root.path().join("code.py"), root.path().join("mine"), root.path().join("out"));
        std::fs::write(&from, "code").unwrap();
        std::fs::write(&mine, "mine").unwrap();
        let mut case = NewCase::new("a".to_owned(), Path::new("a.yaml"));
        case.add("code.py", Content::Copy(from));
        let mut converted = Converted::default();
        converted.add("group".to_owned(), "Cases", "a", vec![case]);
        let written = out.join("cases/group/a.code.py");
        std::fs::create_dir_all(out.join("cases/group")).unwrap();
        std::os::unix::fs::symlink(&mine, &written).unwrap();
        write(&converted, &out, true).unwrap();
        assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine");
        assert_eq!((written.is_symlink(), std::fs::read_to_string(&written).unwrap()), (false, "code".to_owned()));
    }

    #[test]
    fn a_file_beside_a_case_is_written_to_a_folder_that_is_not_utf_8() {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join(OsStr::from_bytes(b"out\xff"));
        let mut case = NewCase::new("a".to_owned(), Path::new("a.yaml"));
        case.add("hidden/check.sh", Content::Text("true\n".to_owned()));
        let mut converted = Converted::default();
        converted.add("group".to_owned(), "Cases", "a", vec![case]);
        write(&converted, &out, false).unwrap();
        assert!(out.join("cases/group/a.hidden/check.sh").exists());
    }
}

//! Reads skill folders: `SKILL.md` with its front matter, by the Agent Skills specification.

use std::path::{Path, PathBuf};

use serde_json::Value;

mod document;
pub mod folders;
pub mod lint;
mod references;

pub use document::Document;

/// The file that makes a folder a skill.
pub const FILE: &str = "SKILL.md";

/// A skill, as described by the files in its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// The name in the front matter. If there is none, the folder's name.
    pub name: String,
    /// The description in the front matter.
    pub description: Option<String>,
    /// The path of the folder, as given.
    pub folder: PathBuf,
}

/// Reads the skill in a folder. Violations of the specification that agents accept are not reported.
///
/// # Errors
/// Returns an error if the folder does not exist, contains no `SKILL.md`, or the front matter cannot be read.
pub fn read(folder: &Path) -> Result<Skill, String> {
    let path = file(folder)?;
    let document = Document::read(&path).map_err(|error| error.to_string())?;
    let front = document.front().map_err(|error| error.to_string())?;
    let keys = front.keys().map_err(|errors| match errors.first() {
        Some(error) => error.to_string(),
        None => format!("{}: the front matter could not be read", path.display()),
    })?;
    let name = keys.get("name").and_then(plain).filter(|name| !name.is_empty());
    let description = keys.get("description").and_then(plain).filter(|text| !text.is_empty());
    match name.or_else(|| folder_name(folder)) {
        Some(name) => Ok(Skill { name, description, folder: folder.to_owned() }),
        None => Err(format!("{}: the skill has no name, and neither has its folder", path.display())),
    }
}

/// Returns the path of the `SKILL.md` in a folder.
///
/// # Errors
/// Returns an error if the folder does not exist, or contains no file `SKILL.md`.
pub fn file(folder: &Path) -> Result<PathBuf, String> {
    let shown = folder.display();
    match std::fs::metadata(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(format!("the skill folder {shown} does not exist"));
        }
        Err(error) => return Err(format!("the skill folder {shown} could not be read: {error}")),
        Ok(found) if !found.is_dir() => {
            return Err(format!("{shown} is not a folder; name the folder that contains {FILE}"));
        }
        Ok(_) => {}
    }
    let path = folder.join(FILE);
    match std::fs::metadata(&path) {
        Ok(found) if found.is_file() => Ok(path),
        Ok(_) => Err(format!("{} is not a regular file", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(match other_case(folder) {
            Some(other) => format!("the skill folder {shown} contains no {FILE}; rename {other} to {FILE}"),
            None => format!("the skill folder {shown} contains no {FILE}"),
        }),
        Err(error) => Err(format!("{} could not be read: {error}", path.display())),
    }
}

/// Returns the name of a file that differs from `SKILL.md` in case only.
fn other_case(folder: &Path) -> Option<String> {
    let names = std::fs::read_dir(folder).ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.eq_ignore_ascii_case(FILE)).min()
}

/// Returns the name of a folder, also if the path ends in `.` or `..`.
fn folder_name(folder: &Path) -> Option<String> {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    name(folder).or_else(|| name(&folder.canonicalize().ok()?))
}

/// Returns a scalar as text: agents read `name: 7` as the text `7`.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(folder: &str, text: &str) -> Result<Skill, String> {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(folder);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join(FILE), text).unwrap();
        read(&folder).map_err(|error| error.replace(&root.path().display().to_string(), ""))
    }

    #[test]
    fn a_skill_is_read_and_named_by_its_folder_if_need_be() {
        let named =
            skill("a", "---\nname: changelog\ndescription: Writes changelogs.\nx-own: [1]\n---\nBody\n").unwrap();
        assert_eq!((named.name.as_str(), named.description.as_deref()), ("changelog", Some("Writes changelogs.")));
        assert_eq!(skill("Some_Folder", "\u{feff}---\r\nname:\r\n---\r\n").unwrap().name, "Some_Folder");
        assert_eq!(skill("a", "---\nname: 7\n---").unwrap().name, "7");
    }

    #[test]
    fn unreadable_front_matter_is_an_error() {
        for (text, said) in [
            ("# No front matter\n", "/a/SKILL.md:1:1: the file does not begin with front matter"),
            ("---\nname: a\n", "/a/SKILL.md:1:1: the front matter is not closed"),
            ("---\nname: a\nname: b\n---\n", "/a/SKILL.md:3:1: the key `name` occurs twice"),
            ("---\n- a\n---\n", "/a/SKILL.md:2:1: the front matter must be a map of keys"),
            ("---\n---\n", "/a/SKILL.md:1:1: the front matter is empty"),
        ] {
            let error = skill("a", text).unwrap_err();
            assert!(error.starts_with(said), "{error}");
        }
        let missing = read(Path::new("/does/not/exist")).unwrap_err();
        assert_eq!(missing, "the skill folder /does/not/exist does not exist");
    }
}

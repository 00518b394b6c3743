//! Skills, an instruction file and further files that a case or a variant lays into a trial, as they are written.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess};
use serde::{Deserialize, Serialize};

use crate::paths;
use crate::regular;
use crate::skill;
use crate::workspace::tree_digest::tree_digest;
use crate::yaml::forms::{Forms, deserialize_forms};

mod content;
mod lay;
mod places;

pub use content::content;
pub use lay::{can_be_laid, check_skills_of_workspace, lay};
pub use places::{Item, Laid, folder_variables, items, not_found, not_found_by_user};

/// The files that a case or a variant adds to a trial, beside the files of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overlay {
    pub skills: Vec<SkillSource>,
    /// The instruction file.
    pub instructions: Option<Instructions>,
    /// Files laid over the workspace.
    pub files: Option<ExtraFiles>,
}

impl Overlay {
    /// Returns the files and folders of this machine that are copied, each with a word for its role.
    pub fn sources(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let skills = self.skills.iter().map(|skill| ("skill", skill.folder.as_path()));
        let instructions = self.instructions.iter().filter_map(|it| Some(("instructions", it.file.as_deref()?)));
        let files = self.files.iter().filter_map(|files| Some(("files", files.folder()?)));
        skills.chain(instructions).chain(files)
    }
}

/// Returns the digest of the content of a file or a folder, wherever it lies.
///
/// # Errors
/// Returns an error if the file or the folder cannot be read.
pub fn digest(path: &Path) -> io::Result<String> {
    if path.is_dir() {
        return tree_digest(path);
    }
    Ok(blake3::hash(&regular::read(path)?).to_hex().to_string())
}

/// The folder of a skill, as written: a path, or a map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkillEntry {
    /// The folder with the skill's `SKILL.md`.
    pub path: PathBuf,
    /// The place of the skill: the home or the workspace.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub place: Option<OverlayPlace>,
}

/// The folder of a skill, as a map.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, schemars(rename = "SkillMap"))]
struct SkillBody {
    /// The folder with the skill's `SKILL.md`.
    path: PathBuf,
    /// The place of the skill: `user` for the home, `project` for the workspace. Default: `user`.
    #[serde(rename = "in", default)]
    place: Option<OverlayPlace>,
}

impl<'de> Forms<'de> for SkillEntry {
    const EXPECTED: &'static str = "the folder of a skill, or a map such as `{path: skills/x, in: project}`";

    fn from_text<E: Error>(text: &str) -> Result<Self, E> {
        Ok(Self { path: PathBuf::from(text), place: None })
    }

    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        let SkillBody { path, place } = SkillBody::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Self { path, place })
    }
}

deserialize_forms!(SkillEntry, deserialize_any);

#[cfg(test)]
impl JsonSchema for SkillEntry {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SkillEntry".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let body = generator.subschema_for::<SkillBody>();
        json_schema!({"description": "the folder of a skill with its SKILL.md", "anyOf": [{"type": "string"}, body]})
    }
}

/// A skill to add to a trial, with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillSource {
    /// The skill's name, which is the name of its folder where it is laid.
    pub name: String,
    /// The folder with the skill's `SKILL.md`, as an absolute path.
    pub folder: PathBuf,
    /// The place of the skill, if written.
    pub place: Option<OverlayPlace>,
}

impl SkillSource {
    /// Reads the name of a skill from its folder.
    ///
    /// # Errors
    /// Returns an error if the folder has no `SKILL.md` that can be read, or if the skill's name cannot be the name of a
    /// folder.
    pub fn read(entry: &SkillEntry) -> Result<Self, String> {
        let name = skill::read(&entry.path)?.name;
        if Path::new(&name).components().count() != 1 || paths::leaves(Path::new(&name)).is_some() {
            return Err(format!("its SKILL.md has the name `{name}`, which cannot be the name of a folder"));
        }
        Ok(Self { name, folder: entry.path.clone(), place: entry.place })
    }
}

/// The place of a skill, a file or an instruction file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OverlayPlace {
    /// The user's folder, below the trial's home.
    User,
    /// The project's folder, below the workspace.
    Project,
}

/// An instruction file: a file of this machine, or a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Instructions {
    /// The file whose content is laid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The text of the instruction file, if it is not read from a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The place of the file.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub place: Option<OverlayPlace>,
    /// The treatment of an instruction file that already exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
}

impl Instructions {
    /// Returns the text that is laid.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn read(&self) -> io::Result<String> {
        match &self.file {
            Some(file) => Ok(String::from_utf8_lossy(&regular::read(file)?).into_owned()),
            None => Ok(self.text.clone().unwrap_or_default()),
        }
    }
}

/// The treatment of an instruction file that already exists at the path of a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The text is appended to the existing file.
    Append,
    /// The text replaces the existing file.
    Replace,
}

/// An instruction file, as a map. It has one of `file` and `text`.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, schemars(rename = "InstructionsMap"))]
struct InstructionsBody {
    /// The file whose content is laid.
    #[serde(default)]
    file: Option<PathBuf>,
    /// The text that is laid.
    #[serde(default)]
    text: Option<String>,
    /// The place of the file: `user` for the home, `project` for the workspace. Default: `user`.
    #[serde(rename = "in", default)]
    place: Option<OverlayPlace>,
    /// The treatment of an instruction file that already exists at the path: `append` or `replace`. Default: the trial
    /// is `errored` (`setup`).
    #[serde(default)]
    mode: Option<Mode>,
}

impl<'de> Forms<'de> for Instructions {
    const EXPECTED: &'static str = "a file, or a map such as `{text: …}` or `{file: AGENTS.md, in: project}`";

    fn from_text<E: Error>(text: &str) -> Result<Self, E> {
        Ok(Self { file: Some(PathBuf::from(text)), text: None, place: None, mode: None })
    }

    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        let InstructionsBody { file, text, place, mode } =
            InstructionsBody::deserialize(MapAccessDeserializer::new(map))?;
        if file.is_some() == text.is_some() {
            return Err(A::Error::custom("instructions have one of `file` and `text`"));
        }
        Ok(Self { file, text, place, mode })
    }
}

deserialize_forms!(Instructions, deserialize_any);

#[cfg(test)]
impl JsonSchema for Instructions {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "InstructionsEntry".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let body = generator.subschema_for::<InstructionsBody>();
        json_schema!({"description": "an instruction file: its path, or a map", "anyOf": [{"type": "string"}, body]})
    }
}

/// Files laid over the workspace before the agent begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ExtraFiles {
    /// The content of a folder.
    Folder(PathBuf),
    /// Texts by path.
    Texts(BTreeMap<String, String>),
}

impl ExtraFiles {
    /// Returns the folder, if the files are the content of one.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(folder) => Some(folder),
            Self::Texts(_) => None,
        }
    }

    /// Merges another overlay over this one. Texts are merged by path; a folder replaces a folder at the same path.
    #[must_use]
    pub fn under(self, over: Self) -> Self {
        match (self, over) {
            (Self::Texts(mut under), Self::Texts(over)) => {
                under.extend(over);
                Self::Texts(under)
            }
            (_, over) => over,
        }
    }
}

impl<'de> Forms<'de> for ExtraFiles {
    const EXPECTED: &'static str = "a folder, or a map from paths to texts";

    fn from_text<E: Error>(text: &str) -> Result<Self, E> {
        Ok(Self::Folder(PathBuf::from(text)))
    }

    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        BTreeMap::deserialize(MapAccessDeserializer::new(map)).map(Self::Texts)
    }
}

deserialize_forms!(ExtraFiles, deserialize_any);

#[cfg(test)]
impl JsonSchema for ExtraFiles {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ExtraFiles".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "a folder, or a map from paths to texts",
            "anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}]
        })
    }
}

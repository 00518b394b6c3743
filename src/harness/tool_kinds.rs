//! The kinds of an agent's tools, by their names.

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::MapAccess;
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::trace::ToolKind;
use crate::values::NameGlob;
use crate::yaml::forms::{Forms, deserialize_forms};

/// A map from tool names to kinds, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolKinds(pub Vec<(NameGlob, ToolKind)>);

impl ToolKinds {
    /// Returns the kind of a tool with this name, or `None` if no entry matches.
    pub fn of(&self, name: &str) -> Option<ToolKind> {
        self.0.iter().find(|(glob, _)| glob.is_match(name)).map(|(_, kind)| *kind)
    }

    /// Returns true if an entry is this name itself, and not a glob that matches it.
    pub fn lists(&self, name: &str) -> bool {
        let is_glob = name.contains(['*', '?', '[', '{', '\\']);
        !is_glob && self.0.iter().any(|(glob, _)| glob.to_string() == name)
    }

    /// Returns true if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de> Forms<'de> for ToolKinds {
    const EXPECTED: &'static str = "a map of tool names to kinds";

    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut kinds = Vec::new();
        while let Some(entry) = map.next_entry()? {
            kinds.push(entry);
        }
        Ok(ToolKinds(kinds))
    }
}

deserialize_forms!(ToolKinds, deserialize_map);

impl Serialize for ToolKinds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, kind) in &self.0 {
            map.serialize_entry(name, kind)?;
        }
        map.end()
    }
}

#[cfg(test)]
impl JsonSchema for ToolKinds {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ToolKinds".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kind = generator.subschema_for::<ToolKind>();
        json_schema!({"type": "object", "additionalProperties": kind})
    }
}

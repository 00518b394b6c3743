//! A case's settings for its snapshots.

use serde::{Deserialize, Serialize};

use super::set::Several;
use crate::trace::Lost;
use crate::values::Pattern;

/// The settings of a case's snapshots.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SnapshotSettings {
    /// The form in which texts are kept.
    pub text: SnapshotText,
    /// Replacements made before a trace is stored or compared.
    pub normalise: Vec<Normalise>,
    /// The method of combining several trials.
    pub several: Several,
}

impl SnapshotSettings {
    /// Returns true if a loss in a trace can change its snapshot. Texts count only if they are kept.
    pub fn depends_on_loss(&self, lost: Lost) -> bool {
        match lost {
            Lost::Line | Lost::Call | Lost::Outcome | Lost::Caller => true,
            Lost::Text | Lost::Speaker => self.text != SnapshotText::None,
        }
    }
}

/// The form in which a snapshot keeps texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotText {
    /// Texts are not kept.
    #[default]
    None,
    /// Texts are kept unchanged.
    Full,
    /// A digest of each text is kept.
    Digest,
}

/// A replacement in the content of a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Normalise {
    /// The regular expression to replace.
    pub regex: Pattern,
    /// The replacement. `$1`, `$name` and `${name}` are groups of the regular expression, `$$` is a dollar
    /// sign. A word in braces, such as `{n}`, is numbered by the order of use.
    pub with: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_text_counts_if_texts_are_kept() {
        for (text, counts) in [(SnapshotText::None, false), (SnapshotText::Full, true), (SnapshotText::Digest, true)] {
            let settings = SnapshotSettings { text, ..SnapshotSettings::default() };
            let of_texts = [Lost::Text, Lost::Speaker].map(|lost| settings.depends_on_loss(lost));
            assert_eq!(of_texts, [counts; 2], "{text:?}");
            assert!(settings.depends_on_loss(Lost::Line) && settings.depends_on_loss(Lost::Outcome));
        }
    }
}

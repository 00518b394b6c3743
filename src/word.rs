//! The words of enums: strum derives the word of each variant from its name, as serde does for files.

/// Gives an enum that derives `IntoStaticStr` the method `word`, by reference if it is not `Copy`.
macro_rules! word {
    (&$enum:ty) => {
        impl $enum {
            /// Returns the word of the variant, as written in files and shown in reports.
            pub fn word(&self) -> &'static str {
                self.into()
            }
        }
    };
    ($enum:ty) => {
        impl $enum {
            /// Returns the word of the variant, as written in files and shown in reports.
            pub fn word(self) -> &'static str {
                self.into()
            }
        }
    };
}

pub(crate) use word;

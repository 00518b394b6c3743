//! The languages of source files, by their endings. Pure.

use super::role;

/// A language of source files.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Language {
    /// The endings of its files.
    endings: &'static [&'static str],
    /// The names of files that describe how its files are compiled. A file of the language may be compiled without its name
    /// in any other file if there is one.
    builds: &'static [&'static str],
}

pub(super) const PYTHON: Language = Language { endings: &["py", "pyi", "pyx"], builds: &[] };
pub(super) const NODE: Language =
    Language { endings: &["js", "ts", "mjs", "cjs", "tsx", "jsx", "mts", "cts"], builds: &[] };
pub(super) const JVM: Language = Language {
    endings: &["java", "kt", "groovy", "scala"],
    builds: &["pom.xml", "build.gradle", "build.gradle.kts", "build.sbt", "build.xml"],
};

static LANGUAGES: [Language; 15] = [
    PYTHON,
    NODE,
    Language { endings: &["rs"], builds: &["Cargo.toml"] },
    Language { endings: &["go"], builds: &["go.mod"] },
    JVM,
    Language {
        endings: &["c", "h", "cc", "cpp", "cxx", "hpp", "hh"],
        builds: &[
            "Makefile",
            "makefile",
            "GNUmakefile",
            "Makefile.am",
            "CMakeLists.txt",
            "meson.build",
            "configure.ac",
            "binding.gyp",
        ],
    },
    Language { endings: &["swift"], builds: &["Package.swift"] },
    Language { endings: &["cs", "fs", "vb"], builds: &["Directory.Build.props"] },
    Language { endings: &["rb"], builds: &[] },
    Language { endings: &["php"], builds: &[] },
    Language { endings: &["pl", "pm", "t"], builds: &[] },
    Language { endings: &["sh", "bash", "zsh", "bats"], builds: &[] },
    Language { endings: &["lua"], builds: &[] },
    Language { endings: &["ex", "exs"], builds: &[] },
    Language { endings: &["vue", "svelte"], builds: &[] },
];

impl Language {
    /// Returns the language of a file.
    pub(super) fn of(path: &str) -> Option<&'static Self> {
        let extension = role::split(role::name(path)).1;
        LANGUAGES.iter().find(|language| language.has_extension(extension))
    }

    /// Returns true if a file is of this language.
    pub(super) fn has(&self, path: &str) -> bool {
        self.has_extension(role::split(role::name(path)).1)
    }

    /// Returns the endings of the files of this language, without their dots.
    pub(super) const fn endings(&self) -> &'static [&'static str] {
        self.endings
    }

    /// Returns true if files with an extension are of this language.
    pub(super) fn has_extension(&self, extension: &str) -> bool {
        self.endings.contains(&extension)
    }

    /// Returns true if a file describes how files of the language are compiled.
    pub(super) fn is_built_by(&self, path: &str) -> bool {
        self.builds.contains(&role::name(path))
    }
}

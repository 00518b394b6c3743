//! Finds the files that code reads by a glob or by the ending of their names, so that no text has their whole names. Pure.

use std::collections::BTreeSet;

use super::test_data::words;
use crate::mine::role::split;
use crate::values::PathGlob;

/// The start of a glob with several endings, such as `*.{sql,tmpl}`.
const SEVERAL: &str = "*.{";

/// The globs and the endings in texts of code.
#[derive(Debug, Default)]
pub(super) struct Globs {
    globs: Vec<PathGlob>,
    /// Endings with their dot, such as `.sql` of `"*.sql"` and `".sql"`.
    endings: BTreeSet<String>,
}

impl Globs {
    /// Returns the globs and the endings that texts have within quotes.
    pub(super) fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let (mut globs, mut endings) = (BTreeSet::new(), BTreeSet::new());
        for text in texts {
            globs.extend(words(text).filter(|word| is_glob(word)));
            endings.extend(text.match_indices('.').filter_map(|(at, _)| ending(text, at)));
        }
        Self { globs: globs.into_iter().filter_map(|glob| glob.parse().ok()).collect(), endings }
    }

    /// Returns true if a glob or an ending fits the name of a file.
    pub(super) fn fit(&self, name: &str) -> bool {
        let is_glob_of = || self.globs.iter().any(|glob| glob.is_match(name));
        self.endings.iter().any(|ending| name.ends_with(ending)) || is_glob_of()
    }
}

/// Returns words of which a text has one if it has a glob or an ending that fits the name of a file.
pub(super) fn signs(name: &str) -> Vec<String> {
    match split(name).1 {
        "" => Vec::new(),
        extension => vec![format!(".{extension}"), SEVERAL.to_owned()],
    }
}

/// Returns true if a word is a glob that names a part of a file's name. `*` alone is in texts for many reasons.
fn is_glob(word: &str) -> bool {
    word.contains('*') && word.contains(char::is_alphanumeric) && !word.contains(char::is_whitespace)
}

/// Returns the ending that begins with a dot in a text, unless the dot is within a name.
fn ending(text: &str, dot: usize) -> Option<String> {
    let before = text.get(..dot)?.chars().next_back()?;
    let is_part = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    let rest = text.get(dot + 1..)?;
    let name = rest.split(|c: char| !is_part(c)).next().unwrap_or_default().trim_end_matches('.');
    ("*\"'`}\\".contains(before) && !name.is_empty()).then(|| format!(".{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_reads_files_by_a_glob_or_an_ending_is_seen() {
        for (text, fits) in [
            ("for p in here.rglob(\"*.sql\"):", true),
            ("glob('app/**/*.sql')", true),
            ("glob('*_email.sql')", true),
            ("glob('*.{css,sql}')", true),
            ("name.endswith('.sql')", true),
            ("open(`${name}.sql`)", true),
            ("name.match(/\\.sql$/)", true),
            ("glob('*.css')", false),
            ("glob('*')", false),
            ("open('001_users.sql')", false),
            ("open('.sqlite')", false),
            ("con.sql(1)", false),
        ] {
            assert_eq!(Globs::of([text].into_iter()).fit("002_email.sql"), fits, "{text}");
        }
        assert_eq!(signs("a.sql"), [".sql", "*.{"]);
        assert!(signs("a").is_empty());
    }
}

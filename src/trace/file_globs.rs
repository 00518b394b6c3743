//! The files that the globs in the input of a search name: under `glob` and `include`, and in the pattern of a search for files.

use serde_json::Value;

use super::{ToolKind, view};
use crate::values::PathGlob;

/// Input keys under which agents put globs of files.
const GLOB_KEYS: [&str; 14] = [
    "glob",
    "globs",
    "glob_pattern",
    "globPattern",
    "file_glob",
    "fileGlob",
    "file_pattern",
    "filePattern",
    "include_glob",
    "include_globs",
    "include_pattern",
    "includePattern",
    "include_patterns",
    "paths_include_glob",
];
/// Input keys under which searches put globs of files. Other tools include other things.
const INCLUDE_KEYS: [&str; 3] = ["include", "includes", "file_mask"];
/// Input keys of the pattern of a search for files.
const PATTERN_KEYS: [&str; 2] = ["pattern", "patterns"];
/// Names of tools that search for files, in lower case without `_` and `-`. Their pattern is a glob; that of other searches is
/// the text that is searched for. A pattern with wildcards lists names and reads no file.
const FILE_SEARCHES: [&str; 6] = ["glob", "globfilesearch", "find", "findfile", "findfiles", "filesearch"];

/// The maximum number of files and globs that one input names. If it names more, the others cannot be read.
const MAX_NAMED: usize = 256;
/// The maximum bytes of a glob. A longer one cannot be read.
const MAX_GLOB_BYTES: usize = 4096;

/// Returns the files that the globs in an input name, some with wildcards. A glob without `/` concerns every folder below the
/// folders that the input names. Any other glob is relative to these folders, or to the folder of the call; if it begins with `/`,
/// too.
pub fn named_by_globs(kind: Option<ToolKind>, tool: Option<&str>, input: Option<&Value>) -> Vec<String> {
    let Some(shown) = input else { return Vec::new() };
    let (globs, paths) = globs(kind, tool, shown);
    let others = (paths.len() > MAX_NAMED).then(|| view::UNREAD_PATH.to_owned());
    files_of(&globs, input).into_iter().chain(paths.into_iter().take(MAX_NAMED)).chain(others).collect()
}

/// Returns the files that a search without a name may name by its pattern, which may as well be the text that is searched for.
/// The pattern contains a `/`, or begins with `.` or `*.`, and has no signs that are rare in names of files.
pub fn perhaps_named(kind: Option<ToolKind>, tool: Option<&str>, input: Option<&Value>) -> Vec<String> {
    let Some(map) = input.and_then(Value::as_object) else { return Vec::new() };
    if kind != Some(ToolKind::Search) || tool.is_some() {
        return Vec::new();
    }
    let is_rare = |c: char| c.is_whitespace() || "|^$\\\"':;<>=()".contains(c);
    let looks_like_glob = |text: &&str| {
        (text.contains('/') || text.starts_with('.') || text.starts_with("*.")) && !text.contains(is_rare)
    };
    let mut globs = Vec::new();
    for (_, value) in view::levels(map).into_iter().flat_map(|map| view::entries(map, &PATTERN_KEYS)) {
        let found = texts(value).filter(looks_like_glob).filter(|text| !leaves_name_open(text));
        found.for_each(|text| add(text, &mut globs));
    }
    files_of(&globs, input)
}

/// Returns the files that globs name in the folders of an input.
fn files_of(globs: &[String], input: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    if globs.is_empty() {
        return found;
    }
    let mut folders = view::written_paths(input, &[], &[]);
    folders.retain(|folder| folder != view::UNREAD_PATH);
    for name in globs.iter().flat_map(|glob| placed(glob, &folders)) {
        if found.len() == MAX_NAMED {
            break;
        }
        if !found.contains(&name) {
            found.push(name);
        }
    }
    if found.len() == MAX_NAMED || globs.len() > MAX_NAMED {
        found.push(view::UNREAD_PATH.to_owned());
    }
    found
}

/// Returns the globs of files in an input, in each form in which a tool may read them, and the absolute paths of a search for
/// files.
fn globs(kind: Option<ToolKind>, tool: Option<&str>, input: &Value) -> (Vec<String>, Vec<String>) {
    let is_search = matches!(kind, Some(ToolKind::Search | ToolKind::Read));
    let is_file_search = kind == Some(ToolKind::Search) && tool.is_some_and(searches_for_files);
    let (mut found, mut paths) = (Vec::new(), Vec::new());
    let Some(map) = input.as_object().filter(|_| is_search || kind == Some(ToolKind::Other)) else {
        return (found, paths);
    };
    for map in view::levels(map) {
        for (_, value) in view::entries(map, &GLOB_KEYS) {
            texts(value).filter_map(of_files).for_each(|text| add(text, &mut found));
        }
        for (_, value) in view::entries(map, &INCLUDE_KEYS).filter(|_| is_search) {
            texts(value).filter_map(of_files).for_each(|text| add(text, &mut found));
        }
        for (_, value) in view::entries(map, &PATTERN_KEYS).filter(|_| is_file_search) {
            for text in texts(value).filter(|text| !has_wildcard(text)) {
                match text.starts_with('/') {
                    true => paths.push(text.to_owned()),
                    false => add(text, &mut found),
                }
            }
        }
    }
    (found, paths)
}

fn searches_for_files(tool: &str) -> bool {
    let name: String = tool.chars().filter(|c| !matches!(c, '_' | '-')).collect();
    FILE_SEARCHES.contains(&name.to_ascii_lowercase().as_str())
}

fn has_wildcard(pattern: &str) -> bool {
    pattern.contains(['*', '?', '[', '{'])
}

/// Returns true if a pattern does not say how names end, and does not ask for hidden files. A search for such files lists names,
/// as a listing of a folder does, and reads no file.
fn leaves_name_open(pattern: &str) -> bool {
    let name = pattern.rsplit('/').next().unwrap_or_default();
    name.ends_with('*') && !name.starts_with('.')
}

/// Returns the part of a glob that names files. A glob that selects whatever is in a folder (`src/**`, `src/*`, `*`) names the
/// folder, as a search without a glob does.
fn of_files(glob: &str) -> Option<&str> {
    let is_any = |name: &str| !name.is_empty() && name.chars().all(|c| c == '*');
    let mut folder = glob.trim();
    while let Some((above, name)) = folder.rsplit_once('/')
        && is_any(name)
    {
        folder = above;
    }
    match folder == glob.trim() {
        true => Some(glob).filter(|_| !is_any(folder)),
        false => Some(folder).filter(|folder| !folder.is_empty() && !has_wildcard(folder)),
    }
}

/// Returns the texts of a value, or of each item of a list.
fn texts(value: &Value) -> impl Iterator<Item = &str> {
    let items = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    items.iter().filter_map(|item| match item {
        Value::String(text) => Some(text.as_str()),
        Value::Array(_) | Value::Object(_) => Some(view::UNREAD_PATH),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    })
}

/// Adds the globs in a text. Some tools split it at blanks and commas, so each part is a glob, and so is the whole text. A glob
/// that begins with `!` excludes files.
fn add(text: &str, found: &mut Vec<String>) {
    if text == view::UNREAD_PATH {
        return found.push(text.to_owned());
    }
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == ',' || c.is_whitespace())
    });
    for glob in std::iter::once(text.trim()).chain(parts).filter(|glob| !glob.is_empty() && !glob.starts_with('!')) {
        if found.len() > MAX_NAMED {
            return;
        }
        let forms = match glob.len() > MAX_GLOB_BYTES {
            true => vec![view::UNREAD_PATH.to_owned()],
            false => vec![glob.to_owned(), loosened(glob)],
        };
        for form in forms {
            if !found.contains(&form) {
                found.push(form);
            }
        }
    }
}

/// Returns a glob with `?` for a class in brackets and for an escaped character, and with `*` for braces around one alternative.
/// In a path, these signs may be characters of a name.
fn loosened(glob: &str) -> String {
    let mut out = String::with_capacity(glob.len());
    let mut rest = glob.chars();
    while let Some(c) = rest.next() {
        let inner = |end: char| rest.as_str().split_once(end).map(|(inner, _)| inner);
        let (sign, skipped) = match c {
            '\\' => ('?', 1),
            '[' => match inner(']') {
                Some(class) => ('?', class.chars().count() + 1),
                None => (c, 0),
            },
            '{' => match inner('}').filter(|inner| !inner.contains([',', '{'])) {
                Some(one) => ('*', one.chars().count() + 1),
                None => (c, 0),
            },
            _ => (c, 0),
        };
        out.push(sign);
        rest.by_ref().take(skipped).for_each(drop);
    }
    out
}

/// Returns the files that a glob names, as paths from the folder of the call.
fn placed(glob: &str, folders: &[String]) -> Vec<String> {
    if glob == view::UNREAD_PATH || folders.len() > MAX_NAMED {
        return vec![view::UNREAD_PATH.to_owned()];
    }
    let below = |name: &str| -> Vec<String> {
        match folders {
            [] => vec![name.to_owned()],
            folders => folders.iter().map(|folder| format!("{}/{name}", folder.trim_end_matches('/'))).collect(),
        }
    };
    if glob.contains('/') {
        let glob = glob.trim_start_matches('/');
        let from_call = folders.iter().filter_map(|folder| within(glob, folder));
        return below(glob).into_iter().chain(from_call).collect();
    }
    let direct = if view::is_pattern(glob) { Vec::new() } else { below(glob) };
    direct.into_iter().chain(below(&format!("**/{glob}"))).collect()
}

/// Returns the files in a folder that a glob names if it is relative to the folder of the call, and not to the folder of the
/// search. Some tools read it so.
fn within(glob: &str, folder: &str) -> Option<String> {
    let parts: Vec<&str> = folder.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let globs: Vec<&str> = glob.split('/').collect();
    // The folder of the call may be any folder above an absolute one.
    let last = if folder.starts_with('/') { parts.len().saturating_sub(1) } else { 0 };
    let rest = (0..=last).find_map(|from| rest_below(&globs, parts.get(from..)?))?;
    Some(format!("{}/{rest}", folder.trim_end_matches('/')))
}

/// Returns the rest of a glob below a folder. Both are given as lists of path parts.
fn rest_below(globs: &[&str], folder: &[&str]) -> Option<String> {
    for (at, part) in folder.iter().enumerate() {
        let glob = *globs.get(at)?;
        if glob == "**" {
            return Some(globs.get(at..)?.join("/"));
        }
        if glob != *part && !glob.parse::<PathGlob>().is_ok_and(|glob| glob.is_match(part)) {
            return None;
        }
    }
    globs.get(folder.len()..).filter(|rest| !rest.is_empty()).map(|rest| rest.join("/"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn globs_name_files_from_the_folders_of_their_call() {
        let unread = view::UNREAD_PATH;
        for (input, names) in [
            (json!({"pattern": "x", "glob": ".env"}), vec![".env", "**/.env"]),
            (json!({"path": "a/", "glob": "*.ts"}), vec!["a/**/*.ts"]),
            (json!({"path": "a", "include": "b/*.ts"}), vec!["a/b/*.ts"]),
            (json!({"path": "a", "glob": "**/*.ts"}), vec!["a/**/*.ts"]),
            (json!({"path": "/w/a", "glob": "**/*.ts"}), vec!["/w/a/**/*.ts"]),
            (json!({"path": "a/b", "glob": "a/*/*.ts"}), vec!["a/b/a/*/*.ts", "a/b/*.ts"]),
            (json!({"path": "a/b", "glob": "a/**/k"}), vec!["a/b/a/**/k", "a/b/**/k"]),
            (json!({"path": "/w/a", "glob": "a/.env"}), vec!["/w/a/a/.env", "/w/a/.env"]),
            (json!({"glob": "/b/*.ts"}), vec!["b/*.ts"]),
            (json!({"path": "a", "glob": "/*.ts"}), vec!["a/*.ts"]),
            (json!({"globs": ["*.{a,b}", "!*.c", null]}), vec!["**/*.{a,b}"]),
            (json!({"glob": "*.a,*.b"}), vec!["**/*.a,*.b", "**/*.a", "**/*.b"]),
            (json!({"glob": "*.[ab]"}), vec!["**/*.[ab]", "**/*.?"]),
            (json!({"arguments": {"file_pattern": "*.\\a{b}"}}), vec!["**/*.\\a{b}", "**/*.?*"]),
            (json!({"include": [{"a": 1}]}), vec![unread]),
            (json!({"glob": true, "include": ""}), vec![]),
            (json!({"pattern": "*.ts", "exclude": "*.a"}), vec![]),
        ] {
            assert_eq!(named_by_globs(Some(ToolKind::Search), Some("Grep"), Some(&input)), names, "{input}");
        }
        let of = |kind, tool, input: Value| named_by_globs(kind, tool, Some(&input));
        let (pattern, include) = (json!({"pattern": "*.ts"}), json!({"include": "*.ts"}));
        for tool in [None, Some("glob_file_search")] {
            assert!(of(Some(ToolKind::Search), tool, pattern.clone()).is_empty());
        }
        let literal = json!({"patterns": ["a/.env", "/w/.env", "**/.env"]});
        assert_eq!(of(Some(ToolKind::Search), Some("Glob"), literal), ["a/.env", "/w/.env"]);
        assert!(of(Some(ToolKind::Other), None, include).is_empty());
        assert!(of(Some(ToolKind::Edit), None, json!({"glob": "*.ts"})).is_empty());
        let long = json!({"globs": ["[".repeat(MAX_GLOB_BYTES + 1)]});
        assert_eq!(of(Some(ToolKind::Other), None, long), [unread]);
        let many: Vec<String> = (0..1000).map(|n| format!("{n}.*")).collect();
        let named = of(Some(ToolKind::Other), None, json!({"globs": many}));
        assert_eq!((named.len(), named.last().map(String::as_str)), (MAX_NAMED + 1, Some(unread)));
    }

    #[test]
    fn the_pattern_of_a_search_without_a_name_may_be_a_glob_of_files() {
        for (pattern, names) in [
            ("**/.env", vec!["a/**/.env"]),
            (".env", vec!["a/.env", "a/**/.env"]),
            ("*.pem", vec!["a/**/*.pem"]),
            ("b/k", vec!["a/b/k"]),
            ("src/**", vec![]),
            ("key", vec![]),
            ("https://a.b/c", vec![]),
            ("^./key", vec![]),
        ] {
            let input = json!({"path": "a", "pattern": pattern});
            assert_eq!(perhaps_named(Some(ToolKind::Search), None, Some(&input)), names, "{pattern}");
            assert!(perhaps_named(Some(ToolKind::Search), Some("Grep"), Some(&input)).is_empty());
            assert!(perhaps_named(Some(ToolKind::Read), None, Some(&input)).is_empty());
        }
    }
}

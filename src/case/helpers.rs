//! Finds the files beside a grading script that the script may load.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The maximum number of files beside a script, and of their bytes. Beyond it, only the script itself is an input.
const MAX_FILES: usize = 200;
const MAX_BYTES: u64 = 8 << 20;
/// Extensions of data. A script may be given such a file, and reports of a run beside it have the same extension.
const DATA: [&str; 10] = ["csv", "html", "json", "jsonl", "log", "md", "txt", "xml", "yaml", "yml"];

/// Returns the regular files in the folder of a script, without the folders in it and without hidden files.
///
/// The folder of the case, and each folder around it, also hold other cases, reports and the project's own files.
/// There, only files with the script's extension count, unless they are data. If too many files remain, the result is empty.
///
/// # Errors
/// Returns an error if the folder cannot be read.
pub(super) fn beside(script: &Path, case_folder: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(folder) = script.parent().filter(|_| script.is_file()) else { return Ok(Vec::new()) };
    let is_shared = case_folder.starts_with(folder);
    let is_data = script.extension().and_then(|it| it.to_str()).is_some_and(|it| DATA.contains(&it));
    if is_shared && is_data {
        return Ok(Vec::new());
    }
    let (mut files, mut bytes) = (Vec::new(), 0_u64);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if path == script || is_hidden || (is_shared && path.extension() != script.extension()) {
            continue;
        }
        let meta = match entry.metadata() {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if !meta.is_file() {
            continue;
        }
        bytes = bytes.saturating_add(meta.len());
        files.push(path);
        if files.len() > MAX_FILES || bytes > MAX_BYTES {
            return Ok(Vec::new());
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(script: &Path, case_folder: &Path) -> Vec<String> {
        let found = beside(script, case_folder).unwrap();
        found.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_folder_of_scripts_counts_whole_and_a_shared_folder_by_the_extension() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("cases");
        let own = root.path().join("cases/grade");
        fs::create_dir_all(own.join("__pycache__")).unwrap();
        for file in ["grade.py", "lib.py", "words.txt", ".swap", "__pycache__/lib.pyc"] {
            fs::write(own.join(file), "x").unwrap();
        }
        for file in ["a.yaml", "b.yaml", "grade.py", "lib.py", "report.json"] {
            fs::write(folder.join(file), "x").unwrap();
        }
        assert_eq!(names(&own.join("grade.py"), &folder), ["lib.py", "words.txt"]);
        assert_eq!(names(&folder.join("grade.py"), &folder), ["lib.py"]);
        assert_eq!(names(&folder.join("grade.py"), &folder.join("deep")), ["lib.py"]);
        fs::write(folder.join("words.json"), "x").unwrap();
        assert_eq!(names(&folder.join("words.json"), &folder), Vec::<String>::new());
        for n in 0..=MAX_FILES {
            fs::write(own.join(format!("{n}.txt")), "x").unwrap();
        }
        assert_eq!(names(&own.join("grade.py"), &folder), Vec::<String>::new());
        fs::write(folder.join("large.py"), vec![b'x'; 8 << 20]).unwrap();
        assert_eq!(names(&folder.join("grade.py"), &folder), Vec::<String>::new());
    }
}

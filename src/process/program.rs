//! Finds the file of a program, and says why there is none.

use std::path::Path;

use crate::project;

/// Finds the file of a program: a path is relative to the folder, a bare name is searched for on `PATH`.
pub fn find(program: &str, folder: &Path, path: Option<&str>) -> Option<std::path::PathBuf> {
    let runs = |file: &Path| file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok();
    if program.contains('/') {
        let file = folder.join(program);
        return (file.exists() && !file.is_dir()).then_some(file);
    }
    std::env::split_paths(path.unwrap_or("/usr/local/bin:/usr/bin:/bin"))
        .map(|dir| dir.join(program))
        .find(|file| runs(file))
}

/// Returns the message about a program that [`find`] did not find.
pub fn not_found(program: &str, folder: &Path) -> String {
    let root = project::root();
    match Path::new(program) {
        path if program.contains('/') && (folder.join(path).is_dir() || root.join(path).is_dir()) => {
            format!("program `{program}` is a folder; write the path of the program in it")
        }
        path if path.is_absolute() => format!("program `{program}` does not exist"),
        _ if program.starts_with("~/") => format!(
            "program `{program}` does not exist, because no shell replaces the `~`; write the whole path, or a name that \
             is on PATH"
        ),
        path if program.contains('/') && folder != root && root.join(path).exists() => format!(
            "program `{program}` does not exist in {}, where it is searched; the project has such a file, so write its whole \
             path",
            folder.display()
        ),
        path if program.contains('/') && folder != root => {
            format!("program `{}` does not exist in {}, where it is searched", path.display(), folder.display())
        }
        path if program.contains('/') => format!(
            "program `{}` does not exist; its path is relative to the project's root, {}",
            path.display(),
            root.display()
        ),
        _ if program.trim().contains(' ') => format!(
            "program `{program}` was not found on PATH; if only its first word is the program, write each word as an item \
             of the list"
        ),
        _ => format!("program `{program}` was not found on PATH"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_in_which_a_program_is_searched_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = format!("does not exist in {}, where it is searched", folder.path().display());
        assert!(not_found("./bin/no-such-program", folder.path()).ends_with(&wanted));
        assert!(not_found("./bin/no-such-program", project::root()).contains("relative to the project's root"));
    }
}

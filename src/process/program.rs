//! Finds the file of a program, and says why there is none, or why the system does not find its interpreter.

use std::io::Read;
use std::path::Path;

use crate::project;
use crate::regular;

/// The maximum length of a first line that names an interpreter; the system's own limit.
const MAX_FIRST_LINE: u64 = 256;

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

/// Returns an addition to the system's message that a file does not exist, if the file of the program does and the interpreter
/// that its first line names does not.
pub fn missing_interpreter(file: &Path, folder: &Path) -> Option<String> {
    let mut head = Vec::new();
    regular::open(file).ok()?.take(MAX_FIRST_LINE).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let named = line.trim_matches([' ', '\t']).split([' ', '\t']).next().filter(|named| !named.is_empty())?;
    let exists = |path: &str| folder.join(path).exists();
    match named.strip_suffix('\r') {
        _ if exists(named) => None,
        Some(bare) if exists(bare) => Some(format!(
            "; its first line names the interpreter `{bare}` and ends with a carriage return, which the system takes as part \
             of the name; save the file with the line endings of Unix"
        )),
        bare => Some(format!(
            "; its first line names the interpreter `{}`, which does not exist; install it, or name another program first, \
             as in `command: [python3, …]`",
            bare.unwrap_or(named)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_interpreter_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let said = |text: &str| {
            std::fs::write(folder.path().join("agent"), text).unwrap();
            missing_interpreter(&folder.path().join("agent"), folder.path())
        };
        assert!(said("#! /no/such/python -u\nprint()\n").unwrap().contains("the interpreter `/no/such/python`, which"));
        assert!(said("#!/no/such\r\n").unwrap().contains("the interpreter `/no/such`, which"));
        assert!(said("#!/bin/sh\r\n").unwrap().contains("carriage return"));
        for text in ["#!/bin/sh\n", "#!/bin/sh -e\r\n", "#!\n", "", "print()\n"] {
            assert_eq!(said(text), None, "{text:?}");
        }
        assert_eq!(missing_interpreter(&folder.path().join("no-such"), folder.path()), None);
    }

    #[test]
    fn the_folder_in_which_a_program_is_searched_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = format!("does not exist in {}, where it is searched", folder.path().display());
        assert!(not_found("./bin/no-such-program", folder.path()).ends_with(&wanted));
        assert!(not_found("./bin/no-such-program", project::root()).contains("relative to the project's root"));
    }
}

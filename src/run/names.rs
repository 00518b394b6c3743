//! Names of runs and of the folders in them.

use std::path::PathBuf;

use super::RunError;

/// A name over this many bytes ends in a digest instead.
const LONGEST: usize = 200;

/// The folder name of a harness or a model: what is not a letter, digit, `.`, `_` or `-` is percent-encoded.
///
/// # Errors
/// `.` and `..` are no names.
pub fn folder_name(name: &str) -> Result<String, RunError> {
    if name.is_empty() || name == "." || name == ".." {
        return Err(RunError::BadName(name.to_owned()));
    }
    let mut folder = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-') {
            folder.push(char::from(byte));
        } else {
            folder.push_str(&format!("%{byte:02X}"));
        }
    }
    if folder.len() > LONGEST {
        let digest = blake3::hash(name.as_bytes()).to_hex();
        folder.truncate(LONGEST - 17);
        folder.push('-');
        folder.push_str(&digest[..16]);
    }
    Ok(folder)
}

/// The folders of a case's id: a `/` in it nests.
///
/// # Errors
/// A part of it is no name.
pub fn case_folder(id: &str) -> Result<PathBuf, RunError> {
    id.split('/').map(folder_name).collect()
}

/// A new run's id: when it began, and four letters by chance.
pub fn new_run_id(now: jiff::Timestamp) -> String {
    let chance = blake3::hash(format!("{} {}", now.as_nanosecond(), std::process::id()).as_bytes()).to_hex();
    format!("{}-{}", now.strftime("%Y%m%d-%H%M%S"), &chance[..4])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_nested_and_bounded() {
        assert_eq!(folder_name("openai/gpt-5 x").unwrap(), "openai%2Fgpt-5%20x");
        assert_eq!(case_folder("fixing/off-by-one").unwrap(), PathBuf::from("fixing/off-by-one"));
        assert!(folder_name("..").is_err() && case_folder("a/../b").is_err() && case_folder("a//b").is_err());
        let long = folder_name(&"é".repeat(300)).unwrap();
        assert!(long.len() <= LONGEST && long != folder_name(&"é".repeat(301)).unwrap());
        assert_eq!(folder_name("a#2").unwrap(), "a%232");
    }
}

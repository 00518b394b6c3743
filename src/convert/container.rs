//! Tasks in a container: an image beside the case, a `sandbox` that starts one container for each trial, and a workspace
//! that holds the working directory of the image.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::parts::quoted;
use super::{Content, NewCase, copied};

/// Starts the container of a trial once, and runs each command of the trial in it.
const LAUNCH: &str = include_str!("container/launch.sh");

/// A container of a task.
#[derive(Debug, Clone, Default)]
pub struct Container {
    /// The text of the Dockerfile.
    pub dockerfile: String,
    /// The folder whose files the Dockerfile copies.
    pub context: Option<PathBuf>,
    /// The working directory, if the task names one beside the Dockerfile.
    pub workdir: Option<String>,
    /// Options of `docker run`.
    pub options: Vec<String>,
    /// The seconds after which the container ends by itself.
    pub seconds: u64,
}

impl Container {
    /// Adds the image, the sandbox and the workspace to a case.
    ///
    /// # Errors
    /// Returns the reason if the files of the image cannot be copied.
    pub fn add(&self, case: &mut NewCase, group: &str) -> Result<(), String> {
        let workdir = self.workdir.clone().or_else(|| workdir(&self.dockerfile)).filter(|path| path != "/");
        let mut text = self.dockerfile.trim_end().to_owned();
        text.push_str("\n\n# Added by `evals convert`: what a trial needs of this image.\nUSER root\n");
        if let Some(workdir) = &workdir {
            text.push_str(&format!("WORKDIR {workdir}\n"));
        }
        let copy = if workdir.is_some() { " && cp -a . /.evals/workspace" } else { "" };
        text.push_str(&format!(
            "RUN mkdir -p /.evals /logs/agent /logs/verifier /logs/artifacts \\\n    \
             && pwd > /.evals/workdir && printf '%s\\n' \"$PATH\" > /.evals/path{copy}\n"
        ));
        let mut digest = blake3::Hasher::new();
        digest.update(text.as_bytes());
        for copied in self.files()? {
            let content = std::fs::read(&copied.from).map_err(|error| format!("a file could not be read: {error}"))?;
            digest.update(copied.to.to_string_lossy().as_bytes());
            digest.update(&content);
            case.image.push((copied.to.display().to_string(), Content::Copy(copied.from)));
        }
        case.image.push(("Dockerfile".to_owned(), Content::Text(text)));
        let folder = format!("images/{group}/{}", case.name);
        let name = case.name.replace('/', "-");
        // The digest keeps an image of an earlier version from being used.
        let digest: String = digest.finalize().to_hex().chars().take(12).collect();
        let image = format!("evals-{group}-{name}:{digest}");
        case.remarks.push("The agent's program must be in the image, and the image is run by `docker`".to_owned());
        case.remarks.push(format!("Build the image before a run: docker build -t {image} {folder}"));
        let mut options: Vec<String> = self.options.iter().map(|option| quoted(option)).collect();
        if let Some(workdir) = &workdir {
            options.insert(0, format!("-v \"$w\":{}", quoted(workdir)));
        }
        let launch = LAUNCH
            .replace("@IMAGE@", &image)
            .replace("@FOLDER@", &folder)
            .replace("@SECONDS@", &self.seconds.to_string())
            .replace("@WORKDIR@", &quoted(workdir.as_deref().unwrap_or_default()))
            .replace("@OPTIONS@", &options.join(" "));
        let command = ["sh", "-c", &launch, "sh", "{workspace}", "{home}", "{env}", "--", "{command}"];
        case.keys.insert("sandbox".to_owned(), json!({"kind": "command", "command": command}));
        let message = "echo 'this case runs only in the container that its sandbox starts' >&2";
        let fill = if workdir.is_some() { " && cp -a /.evals/workspace/. ." } else { "" };
        let setup = format!("if [ ! -f /.evals/workdir ]; then {message}; exit 1; fi{fill} && touch /.evals/set-up");
        case.keys.insert("workspace".to_owned(), json!({"setup": [setup]}));
        Ok(())
    }

    fn files(&self) -> Result<Vec<copied::Copied>, String> {
        let Some(context) = &self.context else { return Ok(Vec::new()) };
        let mut files = copied::all(context, Path::new(""))?;
        files.retain(|file| file.to != Path::new("Dockerfile"));
        Ok(files)
    }
}

/// Returns the absolute working directory that the last stage of a Dockerfile sets.
fn workdir(dockerfile: &str) -> Option<String> {
    let mut found: Option<String> = None;
    for line in dockerfile.lines() {
        let Some((word, rest)) = line.trim().split_once(char::is_whitespace) else { continue };
        let rest = rest.trim().trim_matches(['"', '\'']);
        match word.to_ascii_uppercase().as_str() {
            "FROM" => found = None,
            "WORKDIR" if rest.contains('$') => found = None,
            "WORKDIR" if rest.starts_with('/') => found = Some(rest.trim_end_matches('/').to_owned()),
            "WORKDIR" => found = found.map(|path| format!("{path}/{rest}")),
            _ => {}
        }
    }
    found.filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_working_directory_of_the_last_stage_counts() {
        for (text, expected) in [
            ("FROM a\nWORKDIR /app\nCOPY . .", Some("/app")),
            ("FROM a as b\nWORKDIR /b\nFROM c\n", None),
            ("FROM a\nworkdir /app/\nWORKDIR src", Some("/app/src")),
            ("FROM a\nWORKDIR $HOME", None),
            ("FROM a\nWORKDIR /", None),
        ] {
            assert_eq!(workdir(text).as_deref(), expected, "{text}");
        }
    }
}

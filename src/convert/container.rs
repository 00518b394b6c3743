//! Tasks in a container: an image beside the case, a `sandbox` that starts one container for each trial, and a workspace
//! that holds the working directory of the image.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Content, NewCase, Note, copied, dockerfile};
use crate::text::shell_word;

/// A script that starts the container of a trial once, and runs each command of the trial in it.
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
        let mut text = self.dockerfile.trim_end().to_owned();
        text.push_str("\n\n# Added by `evals convert`: what a trial needs of this image.\nUSER root\n");
        if let Some(workdir) = &self.workdir {
            text.push_str(&format!("WORKDIR {workdir}\n"));
        }
        // Only the image shows its working directory: variables, an earlier stage or the base image may set it.
        text.push_str(
            "RUN mkdir -p /.evals /logs/agent /logs/verifier /logs/artifacts \\\n    \
             && pwd > /.evals/workdir && printf '%s\\n' \"$PATH\" > /.evals/path \\\n    \
             && if [ \"$(pwd)\" != / ]; then cp -a . /.evals/workspace; fi\n",
        );
        if let Some(message) = doubt(&text) {
            let file = self.context.as_ref().map_or_else(|| case.from.clone(), |folder| folder.join("Dockerfile"));
            case.notes.push(Note::new(&file, "", message));
        }
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
        let options: Vec<String> = self.options.iter().map(|option| shell_word(option)).collect();
        let launch = LAUNCH
            .replace("@IMAGE@", &image)
            .replace("@FOLDER@", &folder)
            .replace("@SECONDS@", &self.seconds.to_string())
            .replace("@OPTIONS@", &options.join(" "));
        let command = ["sh", "-c", &launch, "sh", "{workspace}", "{home}", "{env}", "--", "{command}"];
        case.keys.insert("sandbox".to_owned(), json!({"kind": "command", "command": command}));
        let message = "echo 'this case runs only in the container that its sandbox starts' >&2";
        let fill = "if [ -d /.evals/workspace ]; then cp -a /.evals/workspace/. .; fi";
        let setup = format!("if [ ! -f /.evals/workdir ]; then {message}; exit 1; fi; {fill} && touch /.evals/set-up");
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

/// Returns a note if the working directory of an image is the root folder, at which no workspace can be mounted, or may be
/// the root folder, because only the base image decides.
fn doubt(dockerfile: &str) -> Option<String> {
    let workdir = dockerfile::instruction(dockerfile, "WORKDIR");
    let start = match workdir.as_deref().map(|path| path.trim_matches(['"', '\''])) {
        None => "the Dockerfile sets no WORKDIR, and the base image may have none",
        Some("/") => "the working directory of the image is `/`",
        Some(_) => return None,
    };
    Some(format!(
        "{start}; in an image whose working directory is `/`, the agent starts in an empty folder, and the verifier in `/`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_working_directory_that_may_be_the_root_is_in_doubt() {
        for (text, is) in [
            ("FROM a\nWORKDIR /app\n", false),
            ("FROM a\nWORKDIR $HOME\n", false),
            ("FROM a AS b\nWORKDIR /b\nFROM b\n", false),
            ("FROM a AS b\nWORKDIR /b\nFROM c\n", true),
            ("FROM a\nRUN <<EOF\nWORKDIR /app\nEOF\n", true),
            ("FROM a\nWORKDIR /\n", true),
        ] {
            assert_eq!(doubt(text).is_some(), is, "{text}");
        }
    }
}

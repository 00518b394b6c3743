//! The cache of answers, by the digest of the question. Neither the question nor a key is stored.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{ModelName, Question, Reply, Service, without_marks};
use crate::regular;
use crate::trace::Usage;

/// The version of the cache files; files of other versions are ignored.
const VERSION: u32 = 1;

/// The cache file of one question.
pub(super) struct CacheFile(PathBuf);

#[derive(Serialize, Deserialize)]
struct CachedAnswer {
    version: u32,
    model: Option<String>,
    text: String,
    usage: Usage,
}

impl CacheFile {
    /// Returns the cache file of a question to a model of a service. Questions that differ only in their marks
    /// share it.
    pub(super) fn of(folder: &Path, model: &ModelName, service: Option<&Service>, question: &Question) -> Self {
        let Question { system, user, schema, marks, .. } = question;
        let mut hasher = blake3::Hasher::new();
        let address = service.map(|service| service.base_url.clone()).unwrap_or_default();
        let texts = [model.to_string(), address, without_marks(system, marks), without_marks(user, marks)];
        for text in texts.iter().chain([&schema.to_string()]) {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        Self(folder.join(format!("{}.json", hasher.finalize().to_hex())))
    }

    /// Returns the answer, if there is a readable one.
    pub(super) fn read(&self) -> Option<Reply> {
        let kept: CachedAnswer = serde_json::from_slice(&regular::read(&self.0).ok()?).ok()?;
        let CachedAnswer { version, model, text, usage } = kept;
        (version == VERSION).then_some(Reply { text, model, usage, cached: true, earlier: Vec::new() })
    }

    /// Stores an answer. If that fails, the question is asked again next time.
    pub(super) fn write(&self, reply: &Reply) {
        let Some(folder) = self.0.parent() else { return };
        let (model, text, usage) = (reply.model.clone(), reply.text.clone(), reply.usage.clone());
        let kept = CachedAnswer { version: VERSION, model, text, usage };
        // Several trials may have asked the same question.
        let written = || -> std::io::Result<()> {
            fs::create_dir_all(folder)?;
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer(&mut file, &kept)?;
            file.persist(&self.0).map(|_| ()).map_err(|error| error.error)
        };
        let _ = written();
    }
}

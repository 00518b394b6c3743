//! (in work)
use super::{Answer, Translate};
use crate::harness::Manifest;
use crate::trace::Exit;
use crate::trace::recorder::Recorder;
use crate::wire::WireLine;

/// Translator.
pub struct Translator;

impl Translator {
    /// New.
    pub fn new(_manifest: &Manifest) -> Self {
        Self
    }
}

impl Translate for Translator {
    fn recv(&mut self, _line: &WireLine, _recorder: &mut Recorder) {}
    fn send(&mut self, _line: &WireLine, _recorder: &mut Recorder) {}
    fn finish(&mut self, _recorder: &mut Recorder, _exit: Option<Exit>) -> Answer {
        Answer::None
    }
}

//! `rubric`: a model judges a session by criteria. What it keeps of the session is bounded.

use super::{Body, Evidence, Judge, WrongPart};
use crate::grade::Grade;
use crate::judge::rubric::{Judgement, Rubric};
use crate::judge::view::{Rules, View};
use crate::regular;
use crate::trace::Event;

impl Body for Rubric {
    fn refusal(&self) -> Option<String> {
        None
    }

    fn wrong_part(&self) -> Option<WrongPart> {
        Rubric::refusal(self)
    }

    fn judge(&self) -> Option<Box<dyn Judge>> {
        Some(Watch::boxed(self.rules()))
    }
}

/// Keeps what a model is to be shown.
pub(super) struct Watch(Option<View>);

impl Watch {
    pub(super) fn boxed(rules: Rules) -> Box<dyn Judge> {
        Box::new(Self(Some(View::new(rules))))
    }
}

impl Judge for Watch {
    fn event(&mut self, event: &Event) {
        if let Some(view) = &mut self.0 {
            view.event(event);
        }
    }

    fn view(&mut self) -> Option<View> {
        self.0.take()
    }

    fn finish(self: Box<Self>, _: &Evidence<'_>) -> Grade {
        Grade::ungraded("no model was asked")
    }
}

/// Asks, with the change of the workspace where it is known.
pub(super) async fn ask(rubric: &Rubric, view: View, evidence: &Evidence<'_>) -> Judgement {
    let patch = patch(evidence, rubric.characters).await;
    rubric.judge(evidence.judges, &view.finish(patch.as_deref()), evidence.case_folder).await
}

/// The change of the workspace, as it was written down: masked. One that is longer than what may be shown is read as far
/// as it shows that it is longer.
pub(super) async fn patch(evidence: &Evidence<'_>, characters: usize) -> Option<String> {
    /// Of more than this nothing is shown where not all of it can be.
    const MOST: u64 = 1 << 20;
    let most = MOST.max(characters as u64 + 1);
    let path = evidence.patch?.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        use std::io::Read;
        let mut bytes = Vec::new();
        regular::open(path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    });
    read.await.ok().flatten()
}

//! The agent's requests that wait for an answer, with the decisions about them. Every protocol keeps them here.

use std::collections::{HashMap, VecDeque};

use crate::trace::NoticeCode;
use crate::trace::recorder::{DecidedBy, Recorder};

/// The maximum number of requests that wait for an answer.
const MAX_WAITING: usize = 100_000;

/// The requests without an answer, by the agent's ids. If an agent uses an id twice, the first answer is the one to the
/// first request.
#[derive(Debug)]
pub struct Requests<R> {
    by_id: HashMap<String, VecDeque<Waiting<R>>>,
    count: usize,
}

#[derive(Debug)]
struct Waiting<R> {
    request: R,
    /// The agent's id of the call that the request is about.
    call: Option<String>,
    /// The decision about the request.
    by: Option<DecidedBy>,
}

impl<R> Default for Requests<R> {
    fn default() -> Self {
        Self { by_id: HashMap::new(), count: 0 }
    }
}

impl<R> Requests<R> {
    /// Returns true if another request can be stored.
    pub fn has_room(&self) -> bool {
        self.count < MAX_WAITING
    }

    /// Stores a request until its answer is sent. If there is no room, a notice reports that its answer is lost.
    pub fn push(&mut self, id: &str, request: R, recorder: &mut Recorder) {
        self.store(id, Waiting { request, call: None, by: None }, recorder);
    }

    /// Stores a request for permission, as [`Requests::push`] does. If another request with its id has no answer yet, a
    /// notice reports it. Unless both are about the same call, the agent may take each answer as the one to the other request.
    pub fn ask(&mut self, id: &str, call: Option<&str>, request: R, recorder: &mut Recorder) {
        if let Some(before) = self.by_id.get(id) {
            let text = format!("a second request with the id {id} came before the first was answered");
            // If an earlier request is about another call, the notice about the request after it reports the loss.
            match call.is_some() && before.back().is_some_and(|last| last.call.as_deref() == call) {
                true => recorder.notice(NoticeCode::DuplicateRequest, text),
                false => recorder.did_unseen(NoticeCode::DuplicateRequest, text),
            }
        }
        self.store(id, Waiting { request, call: call.map(str::to_owned), by: None }, recorder);
    }

    fn store(&mut self, id: &str, waiting: Waiting<R>, recorder: &mut Recorder) {
        if self.has_room() {
            self.count += 1;
            self.by_id.entry(id.to_owned()).or_default().push_back(waiting);
        } else {
            let text =
                format!("more than {MAX_WAITING} requests had no answer; the answer to the request {id} is left out");
            recorder.did_unseen(NoticeCode::TooManyRequests, text);
        }
    }

    /// Notes a decision of the policy about the first request with this id that has no decision.
    pub fn decide(&mut self, id: &str, by: DecidedBy) {
        let waiting = self.by_id.get_mut(id).and_then(|all| all.iter_mut().find(|it| it.by.is_none()));
        if let Some(waiting) = waiting {
            waiting.by = Some(by);
        }
    }

    /// Takes the first request with this id, and the decision about it: its answer is sent.
    pub fn pop(&mut self, id: &str) -> Option<(R, DecidedBy)> {
        let all = self.by_id.get_mut(id)?;
        let Waiting { request, by, .. } = all.pop_front()?;
        if all.is_empty() {
            self.by_id.remove(id);
        }
        self.count -= 1;
        Some((request, by.unwrap_or_default()))
    }

    /// Returns the requests without an answer, ordered by their ids.
    pub fn all(&mut self) -> impl Iterator<Item = &mut R> {
        let mut by_id: Vec<_> = self.by_id.iter_mut().collect();
        by_id.sort_unstable_by_key(|(id, _)| *id);
        by_id.into_iter().flat_map(|(_, all)| all).map(|it| &mut it.request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Body, Event, Header, Lost, Seen, Stop, StopReason};

    /// Returns the losses of the notices with their codes.
    fn losses(recorder: Recorder) -> Vec<(NoticeCode, Option<Lost>)> {
        let stop =
            Stop { reason: StopReason::EndTurn, category: None, detail: None, output: None, gap: None, exit: None };
        let events: Vec<Event> = recorder.finish(stop, false).events;
        let notices = events.into_iter().filter_map(|event| match event.body {
            Body::Notice { code, lost, .. } => Some((code, lost)),
            _ => None,
        });
        notices.collect()
    }

    fn recorder() -> Recorder {
        Recorder::new(Header::new("acp", Seen { tracing: true, interaction: true }))
    }

    #[test]
    fn the_first_answer_is_the_one_to_the_first_request_with_its_id() {
        let by = |policy: &str| DecidedBy { policy: Some(policy.to_owned()), ..DecidedBy::default() };
        let (mut requests, mut recorder) = (Requests::default(), recorder());
        requests.ask("r", Some("a"), "first", &mut recorder);
        requests.ask("r", Some("b"), "second", &mut recorder);
        requests.decide("r", by("one"));
        requests.decide("r", by("two"));
        requests.decide("r", by("three"));
        assert_eq!(requests.pop("r"), Some(("first", by("one"))));
        assert_eq!(requests.pop("r"), Some(("second", by("two"))));
        assert_eq!(requests.pop("r"), None);
        requests.ask("r", Some("c"), "third", &mut recorder);
        assert_eq!(requests.pop("r"), Some(("third", DecidedBy::default())));
        assert_eq!(losses(recorder), [(NoticeCode::DuplicateRequest, Some(Lost::Call))]);
    }

    #[test]
    fn a_second_request_about_the_same_call_loses_nothing() {
        let (mut requests, mut recorder) = (Requests::default(), recorder());
        requests.ask("r", Some("a"), 1, &mut recorder);
        requests.ask("r", Some("a"), 2, &mut recorder);
        assert_eq!(losses(recorder), [(NoticeCode::DuplicateRequest, None)]);
    }

    #[test]
    fn many_requests_with_one_id_take_linear_time() {
        let (mut requests, mut recorder) = (Requests::default(), recorder());
        let begun = std::time::Instant::now();
        for n in 0..30_000 {
            requests.ask("r", Some("a"), n, &mut recorder);
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
    }

    #[test]
    fn the_first_request_about_another_call_reports_the_loss() {
        let (mut requests, mut recorder) = (Requests::default(), recorder());
        for (n, call) in ["a", "b", "b"].into_iter().enumerate() {
            requests.ask("r", Some(call), n, &mut recorder);
        }
        let code = NoticeCode::DuplicateRequest;
        assert_eq!(losses(recorder), [(code.clone(), Some(Lost::Call)), (code, None)]);
    }

    #[test]
    fn a_request_without_room_is_a_loss() {
        let (mut requests, mut recorder) = (Requests::default(), recorder());
        for n in 0..=MAX_WAITING {
            requests.push(&n.to_string(), n, &mut recorder);
        }
        assert_eq!(requests.pop(&MAX_WAITING.to_string()), None);
        assert!(requests.pop("0").is_some() && requests.has_room());
        assert_eq!(losses(recorder), [(NoticeCode::TooManyRequests, Some(Lost::Call))]);
    }
}

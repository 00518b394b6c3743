//! Notices: what could not become an event, and what is therefore missing in the trace.

use super::gaps::stands_in_its_place;
use super::limits::shorten;
use super::{MAX_LINKS, MAX_NOTICES, Recorder};
use crate::trace::{Body, FollowedLink, Lost, NoticeCode, UnseenAction};

/// The code that manifests give to a notice about an error of the agent.
const AGENT_ERROR: &str = "agent_error";

impl Recorder {
    /// Records a notice about something that could not become an event, and quotes its line. After [`MAX_NOTICES`]
    /// notices of one code, further ones are only counted.
    pub fn notice(&mut self, code: NoticeCode, text: impl Into<String>) {
        self.tell(code, text.into(), None);
    }

    /// Records a notice whose text is a path or says all, so it does not quote its line.
    pub fn notice_alone(&mut self, code: NoticeCode, text: &str) {
        let quote = std::mem::take(&mut self.quote);
        self.tell(code, text.to_owned(), None);
        self.quote = quote;
    }

    /// Records that a line, or a part of one, was lost, so that its content is in no event. Graders must then assume
    /// that events may have happened that the trace does not show.
    pub fn lost(&mut self, code: NoticeCode, text: impl Into<String>) {
        self.tell(code, text.into(), Some(Lost::Line));
    }

    /// Records that a text of the agent is missing, or is not known to be the agent's.
    pub fn lost_text(&mut self, code: NoticeCode, text: impl Into<String>) {
        self.tell(code, text.into(), Some(Lost::Text));
    }

    /// Records that a message of the agent may hold a text that is not the agent's, or that the agent withdrew.
    pub fn lost_speaker(&mut self, code: NoticeCode, text: impl Into<String>) {
        self.tell(code, text.into(), Some(Lost::Speaker));
    }

    /// Records that a call which is shown as the main agent's is one of a sub-agent.
    pub fn lost_caller(&mut self, code: NoticeCode, text: impl Into<String>) {
        self.tell(code, text.into(), Some(Lost::Caller));
    }

    /// Records that the agent did something which no call of the trace shows.
    pub fn did_unseen(&mut self, code: NoticeCode, text: impl Into<String>) {
        self.tell(code, text.into(), Some(Lost::Call));
    }

    /// Records a file that the engine read or wrote for the agent, and that no call shows. If there are too many of them
    /// for notices of their own, they count as anything that the agent may have done.
    pub fn acted_unseen(&mut self, code: NoticeCode, text: impl Into<String>, action: UnseenAction) {
        if self.notices.get(&code).is_some_and(|count| *count >= MAX_NOTICES) {
            return self.did_unseen(code, text);
        }
        self.tell_of(code, text.into(), None, Some(action));
    }

    /// Records that a path of a call leads to another file by a link. If there are too many of them, they count as anything
    /// that the agent may have done.
    pub fn followed(&mut self, link: FollowedLink) {
        let FollowedLink { kind, path, to, moved } = &link;
        let text = if *moved {
            format!(
                "a call of kind {kind} names `{path}`: the call may have moved it to `{to}`, which the agent does not show"
            )
        } else {
            format!("a call of kind {kind} names `{path}`, which leads to `{to}` by a link")
        };
        self.links += 1;
        if self.links <= MAX_LINKS {
            let (code, text, line) = (NoticeCode::FollowedLink, shorten(&text), self.line);
            let body = Body::Notice { code, text, line, lost: None, action: None, link: Some(link) };
            self.push_aside(body, None, false);
        } else if self.links == MAX_LINKS + 1 {
            self.did_unseen(NoticeCode::FollowedLinks, "too many calls name files by links for a notice of each");
        }
    }

    /// Records that the agent reported another outcome of a call than the call's event shows, which is written already.
    pub fn contradicted(&mut self, code: NoticeCode, text: impl Into<String>) {
        self.tell(code, text.into(), Some(Lost::Outcome));
    }

    /// Records that the agent reported the outcome of a call in a form that cannot be read. The call stays open.
    pub fn unclear_outcome(&mut self, id: &str) {
        self.contradicted(NoticeCode::UnclearOutcome, format!("how the call {id} ended cannot be read"));
    }

    /// Records what the engine found about the session as a whole.
    pub(super) fn note(&mut self, code: NoticeCode, text: String, lost: Option<Lost>) {
        self.push_aside(Body::Notice { code, text, line: None, lost, action: None, link: None }, None, true);
    }

    pub(super) fn tell(&mut self, code: NoticeCode, text: String, lost: Option<Lost>) {
        self.tell_of(code, text, lost, None);
    }

    /// Returns the text of the last notice about an error of the agent.
    pub fn agent_error(&self) -> Option<&str> {
        self.agent_error.as_deref()
    }

    /// Returns the number of notices about lines that could not be read, or whose form is not known.
    pub fn unread_lines(&self) -> u64 {
        let codes = [NoticeCode::MalformedLine, NoticeCode::UnknownLine, NoticeCode::UnmappedLine];
        codes.iter().filter_map(|code| self.notices.get(code)).sum()
    }

    fn tell_of(&mut self, code: NoticeCode, text: String, lost: Option<Lost>, action: Option<UnseenAction>) {
        if matches!(&code, NoticeCode::Other(word) if **word == *AGENT_ERROR) {
            self.agent_error = Some(shorten(&text));
        }
        let count = self.notices.entry(code.clone()).or_insert(0);
        *count += 1;
        let count = *count;
        // The first loss of its kind is recorded even after too many notices of its code.
        let first_loss = lost.is_some_and(|lost| self.lost.insert(lost));
        let is_missing = matches!(lost, Some(Lost::Line | Lost::Call)) || action.is_some();
        let gap_at = (is_missing && stands_in_its_place(&code)).then(|| self.place());
        // Which message holds a text of another speaker is known only by the place of the notice.
        if count <= MAX_NOTICES || first_loss || lost == Some(Lost::Speaker) {
            let line = self.line;
            let mut text = shorten(&text);
            let quote = self.quote.strip_suffix('…').unwrap_or(&self.quote);
            if !quote.trim().is_empty() && !text.contains(quote) {
                text = format!("{text}; the line begins: {}", self.quote);
            }
            let body = Body::Notice { code, text, line, lost, action, link: None };
            self.push_aside(body, None, false);
            self.last_gap = gap_at.map(|_| self.last_event()).or(self.last_gap);
        }
        // A notice that is only counted has a place, too.
        if let Some((place, notice)) = gap_at.zip(self.last_gap) {
            self.mark_gap(place, notice);
        }
    }
}

//! The codes of notices.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use strum::{AsRefStr, Display, EnumString, VariantNames};

/// The code of a notice: the kind of observation. Traces and wire logs have it as a word in snake_case.
#[derive(Debug, Clone, PartialEq, Eq, Hash, AsRefStr, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum NoticeCode {
    /// A line of the agent, or one sent to it, is not in the form of the protocol.
    MalformedLine,
    /// A line of a wire log cannot be read, and may have been any line.
    MalformedWireLine,
    /// A line of the engine in a wire log cannot be read.
    MalformedEngineLine,
    /// The line about the exit of the agent in a wire log cannot be read.
    MalformedExit,
    /// A line of the engine in a wire log is of an unknown kind.
    UnknownEngineLine,
    /// A line is longer than the limit, and its end is missing.
    LineCut,
    /// A line holds bytes that are not UTF-8.
    NotUtf8,
    /// An object of a line has a key twice.
    RepeatedKey,
    /// A stored trace has an event of a type that this version does not know.
    UnknownEvent,

    /// An update, or a part of one, is not in the form of the protocol.
    MalformedUpdate,
    /// A request is not in the form of the protocol.
    MalformedRequest,
    /// An update of an unknown kind.
    UnknownUpdate,
    /// A request or notification of an unknown method.
    UnknownMethod,
    /// A line of an unknown type.
    UnknownLine,
    /// A content block of an unknown type, or one that cannot be read.
    UnknownBlock,
    /// A content block of a message is of an unknown form.
    UnknownContent,
    /// Content of a tool call that is not text.
    ToolContent,
    /// No rule of the manifest reads a line or an item.
    UnmappedLine,
    /// A rule of the manifest failed on a line.
    MappingFailed,

    /// A call was updated before it was announced.
    UnannouncedCall,
    /// A call of an unknown kind.
    UnknownKind,
    /// A report about a call that the agent never showed or described.
    UnknownCall,
    /// A call, a text or a request names a parent that is no known call.
    UnknownParent,
    /// The status of a call cannot be read.
    UnknownStatus,
    /// The outcome of a call cannot be read.
    UnclearOutcome,
    /// An open call was shown again, or a call was shown after its result.
    RepeatedCall,
    /// A second call has the ID of an open call.
    RepeatedId,
    /// A result for a call that has one.
    RepeatedResult,
    /// The result of a call contradicts what the agent reported before.
    ResultContradicts,
    /// A call first showed another command.
    ChangedCommand,
    /// A call first showed another input.
    ChangedInput,
    /// A call first had another kind.
    ChangedKind,
    /// A call first showed another file.
    ChangedPath,
    /// The input of a call is incomplete.
    InputCut,
    /// The agent reports a call as denied after its result.
    LateDenial,
    /// The agent reports a rejected call as completed.
    DeniedCallCompleted,
    /// A call went on in the background and failed after its result.
    TaskFailed,
    /// A sub-agent was stopped after the result of its call.
    TaskStopped,
    /// The engine ended work in the background at a time limit. Calls of that work may be missing.
    BackgroundCut,
    /// The engine did something at the agent's request that no call shows.
    UnannouncedAction,
    /// The agent did something that no call shows.
    UnshownAction,
    /// The model's service searched or fetched, and no call shows it.
    UnseenSearch,
    /// A sub-agent worked whose calls the agent does not show.
    HiddenSubAgent,
    /// From here on, the engine ends calls that the agent might still have ended.
    TooManyOpenCalls,
    /// A path of a call leads to another file.
    FollowedLink,
    /// Too many paths of calls lead to other files for a notice of each.
    FollowedLinks,

    /// A request asks for another command than its call.
    OtherCommand,
    /// A request asks for something else than its call.
    OtherRequest,
    /// A request with the ID of one that is open.
    DuplicateRequest,
    /// More requests had no answer than the engine keeps, so an answer is left out.
    TooManyRequests,
    /// A request after the end of the turn.
    LateRequest,
    /// A request names no call.
    MissingCallId,
    /// A control request of an unknown kind, or an answer to a request that is not open.
    UnknownRequest,
    /// The answer to a request has an unknown outcome.
    UnknownOutcome,
    /// The answer to a request chooses an option of an unknown kind.
    UnknownOption,
    /// A second answer to a request of the engine.
    DuplicateAnswer,
    /// An answer to a request that the engine did not send.
    UnknownAnswer,
    /// The agent refused a request of the engine.
    Refused,
    /// A remark about the decision on a permission request.
    Permission,
    /// A file or folder outside the workspace was refused.
    PathEscape,

    /// The agent mixes the texts of several speakers, or does not name the speaker.
    UnknownSpeaker,
    /// The agent withdrew a message, or a message shows a text that is not the agent's.
    WithdrawnMessage,
    /// An answer that the agent discarded and requested again.
    DiscardedMessage,
    /// A text of the agent, or of an extension, in the form of a message.
    SyntheticMessage,
    /// A text of the agent's program in place of the model.
    ProgramMessage,
    /// News of the agent for its user.
    AgentNotice,
    /// A command that the user ran.
    UserCommand,
    /// A command of the agent's user interface.
    SlashCommand,
    /// A file changed that the agent knew, and none of its tools for edits changed it.
    ChangedOnDisk,
    /// The repository is on another branch than before.
    BranchChanged,
    /// A command ran in the agent's sandbox that had run outside it, or the other way around.
    SandboxChanged,
    /// A compaction of the conversation.
    Compaction,
    /// The summary of a compaction.
    CompactSummary,
    /// A text in an embedded resource, which is in no message.
    EmbeddedText,
    /// A character was cut between two pieces of a text with another event between them.
    CutCharacter,
    /// A text differs from its pieces that were streamed before.
    StreamDiffers,
    /// The end of a turn or session gives another answer than the messages.
    AnswerDiffers,
    /// The end of the session does not show the answer.
    AnswerNotShown,
    /// The result line of a sub-agent, which does not end the turn.
    SubAgentResult,
    /// The agent worked after its last turn, and no end of another turn followed.
    UnfinishedTurn,
    /// A turn in which the agent showed nothing: the next prompt is in the same message.
    SilentTurn,
    /// The model's service reported an error.
    ApiError,
    /// A request to the model's service was repeated.
    ApiRetry,

    /// An update or a change of a call came after its end, or after the end of the turn.
    LateUpdate,
    /// A line belongs to another session.
    ForeignSession,
    /// A loaded session repeats its history, which is skipped.
    History,
    /// The history of a loaded session has a call that the trace does not show.
    HistoryCall,
    /// The history of a loaded session has another outcome of a call.
    HistoryOutcome,
    /// The agent did not report its protocol version.
    ProtocolVersion,
    /// The mode of the manifest cannot be set.
    ModeNotSet,
    /// The session is in a mode in which the agent does not ask for every permission.
    UnattendedMode,
    /// Another model answers the main agent than before.
    ModelChanged,
    /// The agent reports another model than the requested one.
    ModelMismatch,
    /// The agent accepted a model without a report of which model it uses.
    ModelUnconfirmed,
    /// The agent accepted a model that it does not list.
    ModelUnlisted,

    /// A part of the usage is not reported, so the totals are lower bounds.
    UsageIncomplete,
    /// A figure of usage is no count.
    UsageInvalid,
    /// Two reports of usage differ.
    UsageDiffers,
    /// A cost that is no amount in US dollars.
    UnknownCost,

    /// A session file lacks a line that others continue, or its lines form a circle.
    SessionTree,
    /// Other branches of a session file are left out.
    OtherBranches,
    /// Lines of a session file with the ID of an earlier line are left out.
    RepeatedLine,
    /// Turns that the user took back.
    Rewound,
    /// A line of a session file has an earlier time than the line before it.
    TimeOrder,
    /// The agent replaced the conversation.
    SessionReplaced,
    /// The file of a sub-agent, or lines of a sub-agent, are left out.
    SubAgentLeftOut,
    /// A line belongs to a sub-agent whose call is not in the session file.
    UnknownSubAgent,

    /// Further notices of a code are in the wire log only.
    NoticesCut,
    /// Text beyond the limit of an event is in the wire log only.
    TextCut,
    /// Calls or texts stayed open for too many events, and are recorded as known by then.
    LetGo,
    /// The wire log is full: from here on it only records how the session ends.
    WireFull,
    /// Lines are missing in the wire log and in the trace, because the log was full.
    WireCut,
    /// Lines of standard error are missing in the wire log, because it was full.
    StderrCut,
    /// The engine itself was stopped for some time.
    EngineStopped,
    /// The agent's supervisor was lost, so it is unknown how the agent ended.
    SupervisorLost,
    /// Processes had left the agent's process group and were ended.
    Escaped,
    /// The agent did not read a whole line that was sent to it.
    NotDelivered,
    /// The agent read a watched place outside its workspace.
    #[strum(serialize = "read-outside")]
    ReadOutside,
    /// The agent changed a protected file.
    ProtectedFile,
    /// The agent loaded a skill that its trial should not have.
    UnexpectedSkill,
    /// A secret came in pieces over several lines.
    SecretSplit,

    /// The code of an agent, of a rule of a manifest, or of another version. `NoticeCode::from` never makes it of the word of
    /// a code above.
    #[strum(default, transparent)]
    Other(Box<str>),
}

impl NoticeCode {
    /// Returns the code as it is written in traces.
    pub fn as_str(&self) -> &str {
        self.as_ref()
    }
}

impl Serialize for NoticeCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for NoticeCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from(Cow::<str>::deserialize(deserializer)?.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_is_read_as_it_is_written() {
        for code in NoticeCode::VARIANTS.iter().filter(|code| **code != "other") {
            let json = format!("\"{code}\"");
            let read: NoticeCode = serde_json::from_str(&json).unwrap();
            assert!(!matches!(read, NoticeCode::Other(_)), "{code}");
            assert_eq!(serde_json::to_string(&read).unwrap(), json);
        }
        for foreign in ["other", "of a later version", "Line_Cut", ""] {
            let read = NoticeCode::from(foreign);
            assert_eq!((read.as_str(), read.to_string().as_str()), (foreign, foreign));
            assert!(matches!(read, NoticeCode::Other(_)), "{foreign}");
        }
    }
}

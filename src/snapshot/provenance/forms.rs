//! The forms of values that environments make at random, and the placeholder of each in a snapshot.

use strum::IntoStaticStr;

use crate::word::word;

/// A form of value that an environment makes at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Form {
    Uuid,
    /// A hash: of a commit, a container, a file.
    Hash,
    /// A generated id: ULID, nanoid, the random part of `run-x7k2m9qp`.
    Id,
    /// The id of a call or of a permission request of this session.
    Call,
    /// An address in memory.
    Address,
    /// A port that the system chose.
    Port,
    /// A process id.
    Pid,
    /// The name of a temporary file or folder.
    #[strum(serialize = "tmp")]
    Temporary,
    /// A name that a container engine generated.
    Name,
    /// A day.
    Date,
    Time,
    /// A measured duration. It refers to nothing, so it has no number, and it is replaced in prose only.
    Duration,
}

word!(Form);

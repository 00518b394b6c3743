//! The forms of values that environments make at random, and the placeholder of each in a snapshot.

/// A form of value that an environment makes at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// A UUID.
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
    Temporary,
    /// A name that a container engine made up.
    Name,
    /// A day.
    Date,
    /// A time.
    Time,
    /// A measured duration. It refers to nothing, so it has no number, and it is replaced in prose only.
    Duration,
}

impl Form {
    /// The word in the snapshot: `{word:1}`.
    pub fn word(self) -> &'static str {
        match self {
            Form::Uuid => "uuid",
            Form::Hash => "hash",
            Form::Id => "id",
            Form::Call => "call",
            Form::Address => "address",
            Form::Port => "port",
            Form::Pid => "pid",
            Form::Temporary => "tmp",
            Form::Name => "name",
            Form::Date => "date",
            Form::Time => "time",
            Form::Duration => "duration",
        }
    }
}

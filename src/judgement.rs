//! Three-valued logic: known to be true, known to be false, or unknown because the evidence was not shown.

pub mod share;
pub mod tolerance;

/// The truth of a statement, as far as the evidence shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Judgement {
    /// The statement is true, whatever the values are that the agent did not show.
    True,
    /// The statement is false, whatever the values are that the agent did not show.
    False,
    /// The truth depends on values that the agent did not show.
    Unknown,
}

impl Judgement {
    /// Returns true if the statement is known to be true.
    pub fn is_true(self) -> bool {
        self == Judgement::True
    }

    /// Returns true if the statement is true, or may be.
    pub fn may_be_true(self) -> bool {
        self != Judgement::False
    }

    /// Returns true if the statement is neither known to be true nor known to be false.
    pub fn is_unknown(self) -> bool {
        self == Judgement::Unknown
    }

    /// Returns the truth of the statement; `None` if it is unknown.
    pub fn known(self) -> Option<bool> {
        match self {
            Judgement::True => Some(true),
            Judgement::False => Some(false),
            Judgement::Unknown => None,
        }
    }

    /// Combines two statements by Kleene's `and`: one false statement decides. The second is not evaluated
    /// after a false one.
    #[must_use]
    pub fn and(self, other: impl FnOnce() -> Judgement) -> Judgement {
        if self == Judgement::False {
            return Judgement::False;
        }
        match (self, other()) {
            (_, Judgement::False) => Judgement::False,
            (Judgement::True, Judgement::True) => Judgement::True,
            _ => Judgement::Unknown,
        }
    }

    /// Combines two statements by Kleene's `or`: one true statement decides. The second is not evaluated after
    /// a true one.
    #[must_use]
    pub fn or(self, other: impl FnOnce() -> Judgement) -> Judgement {
        if self == Judgement::True {
            return Judgement::True;
        }
        match (self, other()) {
            (_, Judgement::True) => Judgement::True,
            (Judgement::False, Judgement::False) => Judgement::False,
            _ => Judgement::Unknown,
        }
    }

    /// Returns whether all statements of a list are true; true for an empty list.
    pub fn all(list: impl IntoIterator<Item = Judgement>) -> Judgement {
        let mut found = Judgement::True;
        for one in list {
            found = found.and(|| one);
            if found == Judgement::False {
                break;
            }
        }
        found
    }

    /// Returns whether any statement of a list is true; false for an empty list.
    pub fn any(list: impl IntoIterator<Item = Judgement>) -> Judgement {
        let mut found = Judgement::False;
        for one in list {
            found = found.or(|| one);
            if found == Judgement::True {
                break;
            }
        }
        found
    }

    /// Returns the truth of a statement if it is the same in all cases that the unknown facts allow; unknown if
    /// the cases differ, or if there are none.
    pub fn agreed(ways: impl IntoIterator<Item = Judgement>) -> Judgement {
        let mut ways = ways.into_iter();
        let Some(first) = ways.next() else { return Judgement::Unknown };
        if ways.all(|way| way == first) { first } else { Judgement::Unknown }
    }
}

impl std::ops::Not for Judgement {
    type Output = Judgement;

    fn not(self) -> Judgement {
        match self {
            Judgement::True => Judgement::False,
            Judgement::False => Judgement::True,
            Judgement::Unknown => Judgement::Unknown,
        }
    }
}

impl From<bool> for Judgement {
    fn from(holds: bool) -> Self {
        if holds { Judgement::True } else { Judgement::False }
    }
}

#[cfg(test)]
mod tests {
    use super::Judgement::{self, False, True, Unknown};

    const EACH: [Judgement; 3] = [True, False, Unknown];

    /// Returns the possible truth values of a statement.
    fn worlds(judgement: Judgement) -> Vec<bool> {
        match judgement {
            True => vec![true],
            False => vec![false],
            Unknown => vec![true, false],
        }
    }

    fn of_worlds(outcomes: &[bool]) -> Judgement {
        Judgement::agreed(outcomes.iter().map(|outcome| Judgement::from(*outcome)))
    }

    #[test]
    fn connectives_say_what_every_world_says() {
        for a in EACH {
            let negated: Vec<bool> = worlds(a).into_iter().map(|a| !a).collect();
            assert_eq!(!a, of_worlds(&negated), "not {a:?}");
            for b in EACH {
                let pairs: Vec<(bool, bool)> =
                    worlds(a).into_iter().flat_map(|a| worlds(b).into_iter().map(move |b| (a, b))).collect();
                let both: Vec<bool> = pairs.iter().map(|(a, b)| *a && *b).collect();
                let either: Vec<bool> = pairs.iter().map(|(a, b)| *a || *b).collect();
                assert_eq!(a.and(|| b), of_worlds(&both), "{a:?} and {b:?}");
                assert_eq!(a.or(|| b), of_worlds(&either), "{a:?} or {b:?}");
                assert_eq!(Judgement::all([a, b]), a.and(|| b));
                assert_eq!(Judgement::any([a, b]), a.or(|| b));
            }
        }
        assert_eq!((Judgement::all([]), Judgement::any([])), (True, False));
    }
}

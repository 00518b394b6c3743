//! Three-valued logic: what is known to be true, known to be false, or unknown because the evidence was not shown.

pub mod share;
pub mod tolerance;

/// The truth of a statement, as far as the evidence shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Judgement {
    /// The statement is true, whatever was not shown.
    True,
    /// The statement is false, whatever was not shown.
    False,
    /// What was not shown decides.
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

    /// Returns what is known of the statement; `None` if nothing is.
    pub fn known(self) -> Option<bool> {
        match self {
            Judgement::True => Some(true),
            Judgement::False => Some(false),
            Judgement::Unknown => None,
        }
    }

    /// Both statements, by Kleene: one that is false decides. The other is not looked at after a false one.
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

    /// One of two statements, by Kleene: one that is true decides. The other is not looked at after a true one.
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

    /// All statements of a list; true for none.
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

    /// Any statement of a list; false for none.
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

    /// The truth of a statement that is the same in every way in which the unknown may turn out; unknown if these
    /// ways differ, or if there are none.
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

    /// The truth values that a statement may turn out to have.
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

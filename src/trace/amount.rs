//! A figure that is either exact or a lower bound.

use std::fmt;

/// A figure, and whether all of it is known. A total with a part that is known to be missing is a lower bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount<T> {
    /// The whole figure.
    Exact(T),
    /// The known part of the figure: the true figure is this or more.
    AtLeast(T),
}

impl<T: Copy> Amount<T> {
    /// Makes an exact figure or a lower bound.
    pub fn new(value: T, is_exact: bool) -> Self {
        if is_exact { Amount::Exact(value) } else { Amount::AtLeast(value) }
    }

    /// Returns the number, whether exact or not.
    pub fn value(self) -> T {
        match self {
            Amount::Exact(value) | Amount::AtLeast(value) => value,
        }
    }

    /// Returns true if the figure is not a lower bound.
    pub fn is_exact(self) -> bool {
        matches!(self, Amount::Exact(_))
    }

    /// Returns the number if it is exact.
    pub fn exact(self) -> Option<T> {
        match self {
            Amount::Exact(value) => Some(value),
            Amount::AtLeast(_) => None,
        }
    }

    /// Applies an increasing function to the number.
    pub fn map<U: Copy>(self, of: impl FnOnce(T) -> U) -> Amount<U> {
        Amount::new(of(self.value()), self.is_exact())
    }
}

impl<T: Copy + std::ops::Add<Output = T>> Amount<T> {
    /// Returns the sum. It is a lower bound if one of both is.
    pub fn plus(self, other: Self) -> Self {
        Amount::new(self.value() + other.value(), self.is_exact() && other.is_exact())
    }
}

impl<T: fmt::Display + Copy> fmt::Display for Amount<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_exact() { "" } else { ">= " };
        write!(f, "{sign}{}", self.value())
    }
}

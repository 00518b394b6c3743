//! The places of wrong parts that were left out of a text's value, so that the rest could be read.

use super::Step;

/// An owned step from a value to a value within it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OwnedStep {
    /// Into a map, by key.
    Key(String),
    /// Into a list, by position from 0.
    Item(usize),
}

impl OwnedStep {
    /// Returns owned copies of steps.
    pub fn all(steps: &[Step<'_>]) -> Vec<OwnedStep> {
        steps
            .iter()
            .map(|step| match step {
                Step::Key(key) => OwnedStep::Key((*key).to_owned()),
                Step::Item(number) => OwnedStep::Item(*number),
            })
            .collect()
    }

    /// Returns the step, borrowed.
    pub fn step(&self) -> Step<'_> {
        match self {
            OwnedStep::Key(key) => Step::Key(key),
            OwnedStep::Item(number) => Step::Item(*number),
        }
    }
}

/// Returns the path of a value as messages show it, such as `list[0].name`.
pub(super) fn dotted(steps: &[OwnedStep]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            OwnedStep::Key(key) if path.is_empty() => path.push_str(key),
            OwnedStep::Key(key) => path.extend([".", key.as_str()]),
            OwnedStep::Item(number) => path.push_str(&format!("[{number}]")),
        }
    }
    path
}

/// The places that were left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut(Vec<Vec<OwnedStep>>);

impl LeftOut {
    /// Returns true if the whole text was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the place in the text of an item of the value: items before it may have been left out.
    pub fn written<'a>(&self, steps: &[Step<'a>]) -> Vec<Step<'a>> {
        let mut written: Vec<Step<'a>> = Vec::with_capacity(steps.len());
        for step in steps {
            let Step::Item(number) = step else {
                written.push(*step);
                continue;
            };
            let mut inner = OwnedStep::all(&written);
            let left_in = |number: &usize| {
                inner.push(OwnedStep::Item(*number));
                let out = self.contains(&inner);
                inner.pop();
                !out
            };
            written.push(Step::Item((0..).filter(left_in).nth(*number).unwrap_or(*number)));
        }
        written
    }

    /// Returns true if a part at a place, or below it, was left out, so that an error about that place may be false.
    pub(super) fn doubts(&self, place: &[OwnedStep]) -> bool {
        self.0.iter().any(|out| out.starts_with(place))
    }

    pub(super) fn contains(&self, place: &[OwnedStep]) -> bool {
        self.0.iter().any(|out| out == place)
    }

    pub(super) fn add(&mut self, place: Vec<OwnedStep>) {
        if !self.contains(&place) {
            self.0.push(place);
        }
    }
}

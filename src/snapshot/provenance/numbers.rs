//! Numbers values by the order in which the environment produced them.
//!
//! If values were numbered by first use, two sessions that use the first and the second of two commits would be equal.
//! Results of parallel, otherwise equal calls have no order; they are numbered by first use.

use std::collections::HashMap;

use super::{Id, Provenance};

/// The numbers assigned to values, by form.
#[derive(Debug, Default)]
pub struct Numbers {
    of: HashMap<Id, u32>,
    /// The last number for each word.
    last: HashMap<String, u32>,
    /// Values of equal calls of one step, by the call's number among all such calls.
    waiting: HashMap<Id, usize>,
    /// The values of each such call, until they have numbers.
    members: Vec<Vec<Id>>,
    /// The numbers of texts that rules of the case replaced, by word and text.
    ruled: HashMap<(String, String), u32>,
}

impl Numbers {
    /// Numbers the values in a call's result.
    pub fn take(&mut self, values: &[Id], of: &Provenance) {
        for id in values {
            if !self.waits(*id, of) {
                self.number(*id, of);
            }
        }
    }

    fn waits(&self, id: Id, of: &Provenance) -> bool {
        of.chance(id).is_some_and(|(_, id)| self.waiting.contains_key(&id))
    }

    /// Numbers the values of equal calls: a call's values are numbered when the first of them is used.
    pub fn take_equal(&mut self, calls: Vec<Vec<Id>>, of: &Provenance) {
        for values in calls {
            let member = self.members.len();
            let new = |id: &Id| Some(of.chance(*id)?.1);
            let values: Vec<Id> = values.iter().filter_map(new).filter(|id| !self.of.contains_key(id)).collect();
            for id in &values {
                self.waiting.entry(*id).or_insert(member);
            }
            self.members.push(values);
        }
    }

    /// Returns the number of a value, and numbers the value if it has no number.
    pub fn number(&mut self, id: Id, of: &Provenance) -> Option<u32> {
        let (form, id) = of.chance(id)?;
        if let Some(number) = self.of.get(&id) {
            return Some(*number);
        }
        if let Some(member) = self.waiting.get(&id).copied() {
            self.place(member, of);
            if let Some(number) = self.of.get(&id) {
                return Some(*number);
            }
        }
        let number = self.next(form.word());
        self.of.insert(id, number);
        Some(number)
    }

    /// Returns the number of a value, if it has one.
    pub fn known(&self, id: Id, of: &Provenance) -> Option<u32> {
        self.of.get(&of.chance(id)?.1).copied()
    }

    /// Returns the number of a text that a rule of the case replaced by a word.
    pub fn of_rule(&mut self, word: &str, text: &str) -> u32 {
        let key = (word.to_owned(), text.to_owned());
        if let Some(number) = self.ruled.get(&key) {
            return *number;
        }
        let number = self.next(word);
        self.ruled.insert(key, number);
        number
    }

    /// Numbers all values of one of several equal calls of a step: the call of which a value was used first.
    fn place(&mut self, member: usize, of: &Provenance) {
        let Some(found) = self.members.get_mut(member) else { return };
        let values = std::mem::take(found);
        for id in values {
            if let Some((form, id)) = of.chance(id)
                && !self.of.contains_key(&id)
            {
                let number = self.next(form.word());
                self.of.insert(id, number);
            }
        }
    }

    fn next(&mut self, word: &str) -> u32 {
        match self.last.get_mut(word) {
            Some(last) => {
                *last = last.saturating_add(1);
                *last
            }
            None => {
                self.last.insert(word.to_owned(), 1);
                1
            }
        }
    }
}

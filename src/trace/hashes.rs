//! A set of hashes whose memory grows with their number: a full bucket is split into two, and the table is never copied
//! as a whole.

use std::hash::{BuildHasher, Hasher, RandomState};

/// The average number of hashes in a bucket.
const FULL: usize = 32;
/// The number of hashes by which the memory of a bucket grows.
const GROWTH: usize = 8;

/// A set of hashes.
#[derive(Debug)]
pub struct Hashes {
    buckets: Vec<Vec<u64>>,
    len: usize,
    /// A random number, so that hashes that share a bucket cannot be chosen.
    seed: u64,
}

impl Default for Hashes {
    fn default() -> Self {
        Self { buckets: vec![Vec::new()], len: 0, seed: RandomState::new().build_hasher().finish() }
    }
}

impl Hashes {
    /// Adds a hash. Returns false if it was in the set.
    pub fn insert(&mut self, hash: u64) -> bool {
        let at = self.place(hash);
        let Some(bucket) = self.buckets.get_mut(at) else { return false };
        if bucket.contains(&hash) {
            return false;
        }
        add(bucket, hash);
        self.len += 1;
        if self.len > FULL * self.buckets.len() {
            self.split();
        }
        true
    }

    /// Returns true if the hash is in the set.
    pub fn contains(&self, hash: u64) -> bool {
        self.buckets.get(self.place(hash)).is_some_and(|bucket| bucket.contains(&hash))
    }

    /// Returns the bucket of a hash: as many of its bits as there are buckets for.
    fn place(&self, hash: u64) -> usize {
        let buckets = self.buckets.len();
        let bits = self.mixed(hash);
        let at = bits & (buckets.next_power_of_two() - 1);
        if at < buckets { at } else { at & (buckets.next_power_of_two() / 2 - 1) }
    }

    fn mixed(&self, hash: u64) -> usize {
        ((hash ^ self.seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize
    }

    /// Adds a bucket, and moves to it what belongs there from the one bucket that it shares its bits with.
    fn split(&mut self) {
        let new = self.buckets.len();
        self.buckets.push(Vec::new());
        let shared = new & !(1 << new.ilog2());
        let Some(old) = self.buckets.get_mut(shared).map(std::mem::take) else { return };
        let (moved, kept): (Vec<u64>, Vec<u64>) = old.into_iter().partition(|hash| self.place(*hash) == new);
        for (at, mut hashes) in [(shared, kept), (new, moved)] {
            hashes.shrink_to_fit();
            if let Some(bucket) = self.buckets.get_mut(at) {
                *bucket = hashes;
            }
        }
    }
}

fn add(bucket: &mut Vec<u64>, hash: u64) {
    if bucket.len() == bucket.capacity() {
        bucket.reserve_exact(GROWTH);
    }
    bucket.push(hash);
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// Returns the bytes in use, and the largest number of hashes in a bucket.
    fn figures(hashes: &Hashes) -> (usize, usize) {
        let of_buckets: usize = hashes.buckets.iter().map(|bucket| 8 * bucket.capacity()).sum();
        let most = hashes.buckets.iter().map(Vec::len).max().unwrap_or(0);
        (of_buckets + size_of::<Vec<u64>>() * hashes.buckets.capacity(), most)
    }

    proptest! {
        #[test]
        fn it_holds_what_a_set_of_the_library_holds(added in prop::collection::vec(0_u64..3_000, 0..4_000)) {
            let (mut hashes, mut known) = (Hashes::default(), HashSet::new());
            for hash in added {
                prop_assert_eq!(hashes.insert(hash), known.insert(hash), "{}", hash);
            }
            for hash in 0..3_000 {
                prop_assert_eq!(hashes.contains(hash), known.contains(&hash), "{}", hash);
            }
        }
    }

    #[test]
    fn memory_and_comparisons_do_not_jump() {
        let mut hashes = Hashes::default();
        for n in 0..200_000_u64 {
            // Hashes with equal low bits, as somebody may choose them.
            assert!(hashes.insert(n << 20));
            if n % 1_000 == 999 {
                let (bytes, most) = figures(&hashes);
                let each = bytes as f64 / (n + 1) as f64;
                assert!(each < 12.0 && most < 8 * FULL, "{n}: {each} bytes a hash, {most} in a bucket");
            }
        }
    }
}

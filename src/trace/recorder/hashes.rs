//! Hashes by which the recorder identifies ids and changes.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// Returns the hash of changes to files.
pub(super) fn hash_of<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns the hash of an id among those of its kind, such as `call`.
pub(super) fn hash_in(kind: &str, id: &str) -> u64 {
    // This default hasher has fixed keys: the same ids give the same trace.
    let mut hasher = DefaultHasher::new();
    kind.hash(&mut hasher);
    id.hash(&mut hasher);
    hasher.finish()
}

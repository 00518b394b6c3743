//! Names of runs and of the folders in them.

/// Returns a new run's ID: its start time, and four random letters.
pub fn new_run_id(now: jiff::Timestamp) -> String {
    let chance = blake3::hash(format!("{} {}", now.as_nanosecond(), std::process::id()).as_bytes()).to_hex();
    format!("{}-{}", now.strftime("%Y%m%d-%H%M%S"), &chance[..4])
}

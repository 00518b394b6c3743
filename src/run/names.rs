//! Names of runs and of the folders in them.

/// Returns a new run's ID: its start time in UTC, and the fraction of the second in four hexadecimal digits. IDs made
/// later on the same machine sort after earlier ones.
pub fn new_run_id(now: jiff::Timestamp) -> String {
    let nanoseconds = now.as_nanosecond().rem_euclid(1_000_000_000);
    let fraction = nanoseconds * 0x1_0000 / 1_000_000_000;
    format!("{}-{fraction:04x}", now.strftime("%Y%m%d-%H%M%S"))
}

/// Returns the ID after another one, for a run that began in the same fraction of a second.
pub fn next_run_id(id: &str) -> String {
    let (time, fraction) = id.rsplit_once('-').unwrap_or((id, ""));
    let next = u16::from_str_radix(fraction, 16).unwrap_or_default().wrapping_add(1);
    format!("{time}-{next:04x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time() {
        let ids = ["00:00:00Z", "00:00:00.000016Z", "00:00:00.5Z", "00:00:00.999999999Z", "00:00:01Z"]
            .map(|time| new_run_id(format!("2026-11-23T{time}").parse().unwrap()));
        let times = ["000000-0000", "000000-0001", "000000-8000", "000000-ffff", "000001-0000"];
        assert_eq!(next_run_id(&ids[2]), "20261123-000000-8001");
        assert_eq!(ids, times.map(|time| format!("20261123-{time}")));
    }
}

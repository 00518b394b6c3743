//! The engine's clock: it stands still while the engine itself is stopped, by a signal, a debugger or a frozen container.
//! What agents write then waits in a pipe, so this time must not count towards their limits.

use std::pin::pin;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The time between two readings of the clock by its thread.
const PULSE: Duration = Duration::from_millis(250);

/// The time without a reading from which the engine was stopped, and was not only slow.
const STOPPED: Duration = Duration::from_secs(2);

static CLOCK: LazyLock<Mutex<Clock>> = LazyLock::new(|| Mutex::new(Clock::start()));

/// The last reading of the clock, and the time that it leaves out.
struct Clock {
    read: Instant,
    stopped: Duration,
    /// True if a thread reads the clock all the time. Without it, a long wait would look like a stop.
    has_thread: bool,
}

impl Clock {
    fn start() -> Self {
        let thread = thread::Builder::new().name("clock".to_owned()).spawn(pulse);
        Self { read: Instant::now(), stopped: Duration::ZERO, has_thread: thread.is_ok() }
    }

    /// Takes a reading of the system's clock, and returns that of the engine's.
    fn read(&mut self, now: Instant) -> Instant {
        let since = now.saturating_duration_since(self.read);
        if self.has_thread && since >= STOPPED {
            self.stopped += since;
        }
        self.read = self.read.max(now);
        now.checked_sub(self.stopped).unwrap_or(now)
    }
}

fn pulse() {
    loop {
        thread::sleep(PULSE);
        now();
    }
}

/// Returns the current time of the engine's clock.
pub fn now() -> Instant {
    let mut clock = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
    clock.read(Instant::now())
}

/// Returns how long the engine was stopped since it started.
pub fn stopped() -> Duration {
    let mut clock = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
    clock.read(Instant::now());
    clock.stopped
}

/// Waits for work, at most for this time of the engine's clock. Returns `None` if the time is over.
pub async fn timeout<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let Some(until) = now().checked_add(limit) else { return Some(work.await) };
    loop {
        let left = until.saturating_duration_since(now());
        if let Ok(done) = tokio::time::timeout(left, &mut work).await {
            return Some(done);
        }
        if now() >= until {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_leaves_out_a_stop_and_not_a_slow_moment() {
        let begun = Instant::now();
        let mut clock = Clock { read: begun, stopped: Duration::ZERO, has_thread: true };
        let at = |seconds| begun + Duration::from_secs(seconds);
        assert_eq!(clock.read(at(1)), at(1));
        assert_eq!(clock.read(at(7)), at(1), "6 s without a reading");
        assert_eq!(clock.read(at(8)), at(2));
        assert_eq!(clock.stopped, Duration::from_secs(6));
        clock.has_thread = false;
        assert_eq!(clock.read(at(18)), at(12), "no thread has read the clock");
    }
}

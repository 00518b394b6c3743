//! Tries damaged inputs on a target for a while, and keeps the one that it does not stand.

use std::any::Any;
use std::fs;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::mutate::{Form, count_lines, mutate, without};
use crate::rng::Rng;

/// What a target says of an input that it stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Took {
    Accepted,
    /// It said what is wrong.
    Rejected,
}

/// One input may take so long.
const SLOW: Duration = Duration::from_secs(2);

/// The size of the input for which [`SLOW`] holds, in bytes. A larger one may take as much longer.
const OF_SIZE: usize = 100 << 10;

/// Returns the time that an input may take.
fn slow(input: &[u8]) -> Duration {
    SLOW.mul_f64((input.len() as f64 / OF_SIZE as f64).max(1.0))
}
/// An input that takes this long will not come back.
const STUCK: Duration = Duration::from_secs(30);
/// So many inputs beside the seeds are tried, however slow the machine is: the seeds alone are all taken.
const LEAST: usize = 40;

/// Feeds a target for `EVALS_FUZZ_MS`. What it says of an input is whether it was taken; an error is a broken promise.
pub fn hunt(target: &str, form: Form, seeds: &[Vec<u8>], feed: impl Fn(&[u8]) -> Result<Took, String>) {
    let seed = number("EVALS_FUZZ_SEED", 1);
    let time = Duration::from_millis(number("EVALS_FUZZ_MS", 250));
    assert!(!seeds.is_empty(), "{target} has no seeds");
    let named = target.bytes().fold(seed, |all, byte| all.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let current = Arc::new(Mutex::new(None));
    let (alive, over) = channel();
    let at_work = |input: Option<&[u8]>| {
        let now = input.map(|input| (Instant::now(), input.to_vec()));
        *current.lock().unwrap_or_else(PoisonError::into_inner) = now;
    };
    let guard = watch(target.to_owned(), seed, current.clone(), over);
    let (begun, mut tried, mut rejected, mut slowest) = (Instant::now(), 0, 0, Duration::ZERO);
    while tried < seeds.len() + LEAST || begun.elapsed() < time {
        // What the seeds come to is seen first; then every input has a number of its own.
        let input = match seeds.get(tried) {
            Some(seed) => seed.clone(),
            None => mutate(&mut Rng::new(named.wrapping_add(tried as u64 * 0x1234_5677)), seeds, form),
        };
        at_work(Some(&input));
        let fed = Clock::start();
        match held(&feed, &input) {
            Ok(Took::Rejected) if tried < seeds.len() => {
                fail(target, seed, tried, &input, "the seed itself is refused")
            }
            Ok(took) => rejected += usize::from(took == Took::Rejected),
            Err(broken) => {
                at_work(None);
                let small = shrink(&feed, &input);
                let broken = held(&feed, &small).err().unwrap_or(broken);
                fail(target, seed, tried, &small, &broken);
            }
        }
        let took = fed.elapsed();
        at_work(None);
        slowest = slowest.max(took);
        // A machine that was busy with something else is given a second chance.
        let most = slow(&input);
        if took > most && timed(&feed, &input) > most && timed(&feed, &input) > most {
            fail(target, seed, tried, &input, &format!("it took {took:?}"));
        }
        tried += 1;
    }
    drop(alive);
    let _ = guard.join();
    let said = format!("{target}: {tried} inputs, {rejected} rejected, the slowest took {slowest:?} (seed {seed})\n");
    // Told whether or not the test passes.
    let _ = std::io::stderr().write_all(said.as_bytes());
    assert!(rejected > 0, "{target} rejected nothing");
    assert!(rejected < tried, "{target} accepted nothing");
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

fn timed(feed: &impl Fn(&[u8]) -> Result<Took, String>, input: &[u8]) -> Duration {
    let begun = Clock::start();
    let _ = held(feed, input);
    begun.elapsed()
}

/// Measures the time that this thread works. A machine that is busy with something else does not count, if the system
/// tells the thread's own time.
struct Clock(Instant, Option<Duration>);

impl Clock {
    fn start() -> Self {
        Self(Instant::now(), worked())
    }

    fn elapsed(&self) -> Duration {
        let worked = self.1.and_then(|before| worked()?.checked_sub(before));
        worked.unwrap_or_else(|| self.0.elapsed())
    }
}

/// Returns the time that the system gave this thread so far.
fn worked() -> Option<Duration> {
    let times = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    times.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// Feeds an input; a panic is a broken promise like any other.
fn held(feed: &impl Fn(&[u8]) -> Result<Took, String>, input: &[u8]) -> Result<Took, String> {
    catch_unwind(AssertUnwindSafe(|| feed(input))).unwrap_or_else(|panic| Err(format!("panic: {}", words(&*panic))))
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("of no words").to_owned()
}

/// Takes lines out, many at first, as long as the target still does not stand the rest.
fn shrink(feed: &impl Fn(&[u8]) -> Result<Took, String>, input: &[u8]) -> Vec<u8> {
    let begun = Instant::now();
    let mut small = input.to_vec();
    let mut size = count_lines(&small).div_ceil(2);
    while size > 0 {
        let mut from = 0;
        while from < count_lines(&small) && begun.elapsed() < Duration::from_secs(20) {
            let less = without(&small, from, size);
            if held(feed, &less).is_err() { small = less } else { from += size }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    small
}

fn keep(target: &str, seed: u64, input: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("evals-fuzz-{}-{seed}.input", target.replace(' ', "-")));
    let _ = fs::write(&path, input);
    path
}

fn fail(target: &str, seed: u64, number: usize, input: &[u8], broken: &str) -> ! {
    let path = keep(target, seed, input);
    let mut broken = broken.to_owned();
    broken.truncate(broken.floor_char_boundary(4000));
    panic!("{target}: input {number} of seed {seed} ({} bytes, kept in {}): {broken}", input.len(), path.display());
}

type Current = Arc<Mutex<Option<(Instant, Vec<u8>)>>>;

/// Ends the tests with a message where an input never comes back, which no panic would tell.
fn watch(target: String, seed: u64, current: Current, over: Receiver<()>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        while over.recv_timeout(Duration::from_millis(500)) == Err(RecvTimeoutError::Timeout) {
            let current = current.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((since, input)) = &*current
                && since.elapsed() > STUCK
            {
                let path = keep(&target, seed, input);
                let said = format!("{target}: an input of seed {seed} does not come back: {}\n", path.display());
                let _ = std::io::stderr().write_all(said.as_bytes());
                std::process::exit(101);
            }
        }
    })
}

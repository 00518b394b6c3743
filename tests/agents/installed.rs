//! Which pinned agents are installed, and the report of those that were not run.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, thread};

/// An agent that `tests/agents/install` puts in its place.
#[derive(Debug)]
pub struct Agent {
    /// What people call it.
    pub name: &'static str,
    /// The part of the installation, `SET/NAME`.
    pub part: &'static str,
    /// The file below `tests/agents/` that pins it.
    pub pins: &'static str,
    /// What is started, below the part's folder.
    pub program: &'static str,
}

/// One thing that an agent must do. Where it is not installed this is not run.
pub struct Check {
    pub agent: &'static Agent,
    pub what: &'static str,
    /// Panics where the agent, or the engine with it, does another thing. Gets the path of the program.
    pub run: fn(&Agent, &Path),
}

/// Why an agent cannot be run, and whether that is the machine's doing.
struct Absent {
    why: String,
    excused: bool,
}

impl Agent {
    /// Where a file of its part stands.
    pub fn file(&self, path: &str) -> PathBuf {
        folder().join(self.part).join(path)
    }

    fn find(&self) -> Result<PathBuf, Absent> {
        let read = |path: &str| fs::read_to_string(self.file(path)).ok();
        let absent = |why: String| Absent { why, excused: false };
        let set = self.part.split('/').next().unwrap();
        if let Some(why) = read("cannot") {
            return Err(Absent { why: why.trim().to_owned(), excused: true });
        }
        if let Some(why) = read("failed") {
            return Err(absent(why.trim().to_owned()));
        }
        if !self.file("installed").exists() {
            return Err(absent(format!("not installed; `tests/agents/install {set}` does it")));
        }
        let pins = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents").join(self.pins));
        if read("pins") != Some(pins.unwrap()) {
            return Err(absent(format!("another version is installed; run `tests/agents/install {set}` again")));
        }
        let program = self.file(self.program);
        if program.exists() { Ok(program) } else { Err(absent(format!("{} is not there", program.display()))) }
    }
}

fn folder() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/agents");
    env::var_os("EVALS_AGENTS").filter(|named| !named.is_empty()).map_or_else(beside, PathBuf::from)
}

/// Runs the checks of all agents that are here, so many at once, each at most so many times: one that passes after it
/// failed is told. Those that were not run are told on standard error and counted, which is no failure unless `EVALS_REQUIRE_AGENTS` is set and the machine could have them.
pub fn run(set: &str, at_once: usize, tries: usize, checks: &[&Check]) {
    let next = AtomicUsize::new(0);
    let (failed, absent) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let again = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(check) = checks.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let title = format!("{}: {}", check.agent.name, check.what);
                    match check.agent.find() {
                        Err(why) => absent.lock().unwrap().push((check.agent.name, why)),
                        Ok(program) => {
                            let tried = || catch_unwind(AssertUnwindSafe(|| (check.run)(check.agent, &program)));
                            let Err(first) = tried() else { continue };
                            let told = format!("{title}\n{}", reason(&*first));
                            let passes = (1..tries).any(|_| tried().is_ok());
                            (if passes { &again } else { &failed }).lock().unwrap().push(told);
                        }
                    }
                }
            });
        }
    });
    let (failed, absent) = (failed.into_inner().unwrap(), absent.into_inner().unwrap());
    // Not by `eprintln!`, which the test's runner keeps for itself.
    let mut out = std::io::stderr();
    let names: BTreeMap<&str, &Absent> = absent.iter().map(|(name, absent)| (*name, absent)).collect();
    for (name, why) in names {
        let count = absent.iter().filter(|(it, _)| *it == name).count();
        writeln!(out, "not run: {name}, {count} checks: {}", why.why).unwrap();
    }
    let again = again.into_inner().unwrap();
    for told in &again {
        writeln!(out, "passed at the second try alone: {told}").unwrap();
    }
    let ran = checks.len() - absent.len();
    writeln!(out, "{set}: {ran} checks run, {} not run", absent.len()).unwrap();
    assert!(failed.is_empty(), "{} of {ran} checks failed:\n\n{}", failed.len(), failed.join("\n\n"));
    let required = env::var_os("EVALS_REQUIRE_AGENTS").is_some_and(|value| !value.is_empty());
    let missed: Vec<&str> = absent.iter().filter(|(_, absent)| !absent.excused).map(|(name, _)| *name).collect();
    assert!(!required || missed.is_empty(), "EVALS_REQUIRE_AGENTS is set, and these were not run: {missed:#?}");
}

/// Why a check failed.
fn reason(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no reason was given")
}

//! Finds and ends processes that a program started and that left its process group. Linux only: elsewhere only
//! the group is ended.
//!
//! The engine is a child subreaper, so whatever an agent leaves behind stays below the engine in the process
//! tree, however often it forks. A process belongs to a trial by its ancestors, by the private home in its
//! environment, which every process of a trial inherits, or by the files it holds open. A process that hides
//! all of these is ended as soon as no program remains that ran when it was started.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// A program that the engine started and has not done with.
#[derive(Debug, Clone)]
pub struct Leader {
    /// Its process, the leader of its group.
    pub pid: rustix::process::Pid,
    /// The folder it was started in.
    pub folder: PathBuf,
}

/// Whether processes could not be looked for, as no descriptor was left for it.
static UNREAD: AtomicBool = AtomicBool::new(false);

/// Returns true if processes could not be looked for, so that one which left its group may have outlived its trial.
pub fn could_not_look() -> bool {
    UNREAD.load(Ordering::Relaxed)
}

/// What is known of a program whose escaped processes are looked for.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The home in its environment, where that is its trial's own.
    pub home: Option<String>,
    /// Its process, which was the leader of its group.
    pub leader: i32,
    /// The folder it was started in.
    pub folder: PathBuf,
    /// Its pipes, as `/proc` names them.
    pub pipes: HashSet<PathBuf>,
    /// Whether it runs under a supervisor. An orphan that reaches the engine then is of one that was killed.
    pub supervised: bool,
}

#[cfg(target_os = "linux")]
pub use linux::{adopt_orphans, end, end_all, pipe, reap_group};

#[cfg(not(target_os = "linux"))]
pub use elsewhere::{adopt_orphans, end, end_all, pipe, reap_group};

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{HashMap, HashSet};
    use std::os::fd::AsRawFd;
    use std::path::{Path, PathBuf};
    use std::sync::Once;
    use std::sync::atomic::Ordering;
    use std::time::{Duration, Instant};
    use std::{fs, io};

    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpgrp, getpid, kill_process, waitid};

    use super::{Leader, Origin, UNREAD};
    use crate::process::descriptors;
    use crate::resources::Exhausted;

    /// How long is tried to end processes that keep forking.
    const PATIENCE: Duration = Duration::from_secs(5);

    /// From now on orphans below this process become its children, and not those of the system's first.
    pub fn adopt_orphans() {
        static ONCE: Once = Once::new();
        // Where the system refuses, what escapes is still found as long as its parents live.
        ONCE.call_once(|| {
            let _ = rustix::process::set_child_subreaper(Some(getpid()));
        });
    }

    /// The name of a pipe, by which another process that holds it is known.
    pub fn pipe(end: &impl AsRawFd) -> Option<PathBuf> {
        fs::read_link(format!("/proc/self/fd/{}", end.as_raw_fd())).ok()
    }

    /// Collects the exit of orphans of a group whose leader was waited for: as zombies they would keep it alive.
    pub fn reap_group(group: Pid) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        while matches!(waitid(WaitId::Pgid(Some(group)), options), Ok(Some(_))) {}
    }

    /// Ends whatever is left of a program, until nothing is. `leaders` gives the programs that run now, and keeps
    /// others from being started as long as its answer is held. Answers how many processes were known as its own.
    pub fn end<G: AsRef<[Leader]>>(origin: &Origin, leaders: impl Fn() -> G) -> usize {
        let begun = Instant::now();
        let mut ended = HashSet::new();
        let mut pause = Duration::from_millis(1);
        loop {
            let found = {
                let held = leaders();
                let number = |leader: &Leader| leader.pid.as_raw_nonzero().get();
                let leaders: HashSet<i32> = held.as_ref().iter().map(number).collect();
                if ended.is_empty() && no_orphans(&leaders) {
                    return 0;
                }
                let others = held.as_ref().iter().filter(|leader| number(leader) != origin.leader);
                let shared = others.map(|leader| &leader.folder).any(|folder| *folder == origin.folder);
                // A tree that cannot be read says nothing of what is left.
                let Ok(tree) = descriptors::with_reserve(Tree::read) else {
                    drop(held);
                    if begun.elapsed() > PATIENCE {
                        UNREAD.store(true, Ordering::Relaxed);
                        return ended.len();
                    }
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(20));
                    continue;
                };
                let found = tree.of(origin, &leaders, shared);
                for (pid, _) in &found {
                    kill(*pid);
                }
                tree.reap(&leaders);
                found
            };
            if found.is_empty() || begun.elapsed() > PATIENCE {
                return ended.len();
            }
            ended.extend(found.into_iter().filter(|(_, known)| *known).map(|(pid, _)| pid));
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// Whether this process has no child but the programs that run. What escaped is an orphan, and orphans are its
    /// children; reading the few it has costs less than reading every process of the system. A list of children may
    /// leave one out while another exits, so it is read twice.
    fn no_orphans(leaders: &HashSet<i32>) -> bool {
        (0..2).all(|_| {
            first_threads_children().is_some_and(|children| children.iter().all(|child| leaders.contains(child)))
        })
    }

    /// The children of this process's first thread, which is the one that the kernel gives orphans to; `None` where
    /// the system does not list them.
    fn first_threads_children() -> Option<Vec<i32>> {
        let list = fs::read_to_string(format!("/proc/self/task/{}/children", getpid().as_raw_nonzero())).ok()?;
        Some(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()).collect())
    }

    /// Ends every process below this one, but those of its own group, which somebody else sees to. What loses its
    /// parent meanwhile is found the next time.
    pub fn end_all() {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(2) {
            let Ok(tree) = descriptors::with_reserve(Tree::read) else {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            };
            let mut found = tree.below(tree.own);
            found.retain(|pid| tree.seen.get(pid).is_some_and(|process| !process.zombie));
            if found.is_empty() {
                return;
            }
            found.into_iter().for_each(kill);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn kill(pid: i32) {
        if let Some(pid) = Pid::from_raw(pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    #[derive(Clone, Copy)]
    struct Seen {
        parent: i32,
        group: i32,
        zombie: bool,
        /// When it was started, in the system's ticks.
        started: u64,
    }

    /// The processes of the system at one moment.
    struct Tree {
        own: i32,
        own_group: i32,
        seen: HashMap<i32, Seen>,
        children: HashMap<i32, Vec<i32>>,
    }

    impl Tree {
        /// Reads every process; one that has gone meanwhile is left out.
        fn read() -> io::Result<Self> {
            let mut seen = HashMap::new();
            let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
            for entry in fs::read_dir("/proc")?.flatten() {
                let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
                let stat = match fs::read(entry.path().join("stat")) {
                    Ok(stat) => stat,
                    Err(error) if Exhausted::of(&error).is_some() => return Err(error),
                    Err(_) => continue,
                };
                if let Some(process) = parse(&String::from_utf8_lossy(&stat)) {
                    children.entry(process.parent).or_default().push(pid);
                    seen.insert(pid, process);
                }
            }
            let own = getpid().as_raw_nonzero().get();
            Ok(Self { own, own_group: getpgrp().as_raw_nonzero().get(), seen, children })
        }

        /// Every process below this one that is not of the engine's own group.
        fn below(&self, root: i32) -> Vec<i32> {
            let mut found = Vec::new();
            let mut left = vec![root];
            while let Some(pid) = left.pop() {
                for child in self.children.get(&pid).into_iter().flatten() {
                    if self.seen.get(child).is_some_and(|process| process.group != self.own_group) {
                        found.push(*child);
                    }
                    left.push(*child);
                }
            }
            found
        }

        /// The living processes below the engine that are to go with this origin, and whether they are known as its.
        /// Where another program of the same trial runs on (`shared`), the trial's marks say nothing of whose it is.
        fn of(&self, origin: &Origin, leaders: &HashSet<i32>, shared: bool) -> Vec<(i32, bool)> {
            // The first of the programs that go on running; what was started before it is not theirs.
            let others = leaders.iter().filter(|leader| **leader != origin.leader);
            // One that has exited and is still being ended has orphans of its own, so then nothing is nobody's.
            let first = others.map(|leader| self.seen.get(leader).map_or(0, |leader| leader.started)).min();
            let mut found = Vec::new();
            let mut left = vec![(self.own, None, false)];
            while let Some((pid, claim, others)) = left.pop() {
                for child in self.children.get(&pid).into_iter().flatten() {
                    let Some(process) = self.seen.get(child) else { continue };
                    // What is below another program that runs is that one's, unless it says otherwise.
                    let others = others || (leaders.contains(child) && *child != origin.leader);
                    let orphan = pid == self.own && !leaders.contains(child) && process.group != self.own_group;
                    let known = *child == origin.leader
                        || process.group == origin.leader
                        || (!others && !shared && (is_at_home(*child, origin) || (orphan && holds(*child, origin))));
                    let lost = origin.supervised || first.is_none_or(|first| process.started < first);
                    let nobodys = !others && orphan && lost;
                    let claim = claim.or(if known { Some(true) } else { nobodys.then_some(false) });
                    if let Some(known) = claim
                        && !process.zombie
                        && *child != origin.leader
                    {
                        found.push((*child, known));
                    }
                    left.push((*child, claim, others));
                }
            }
            found
        }

        /// Reaps orphans, whose exits are not collected elsewhere.
        fn reap(&self, leaders: &HashSet<i32>) {
            for pid in self.children.get(&self.own).into_iter().flatten() {
                let Some(process) = self.seen.get(pid) else { continue };
                if process.zombie
                    && process.group != self.own_group
                    && !leaders.contains(pid)
                    && let Some(pid) = Pid::from_raw(*pid)
                {
                    let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
                }
            }
        }
    }

    fn parse(stat: &str) -> Option<Seen> {
        // The name of the program stands in brackets and may hold anything.
        let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let zombie = matches!(words.next()?, "Z" | "X");
        let parent = words.next()?.parse().ok()?;
        let group = words.next()?.parse().ok()?;
        let started = words.nth(16)?.parse().ok()?;
        Some(Seen { parent, group, zombie, started })
    }

    /// Whether a process was started with the trial's own home.
    fn is_at_home(pid: i32, origin: &Origin) -> bool {
        let Some(home) = &origin.home else { return false };
        let Ok(environ) = fs::read(format!("/proc/{pid}/environ")) else { return false };
        environ.split(|byte| *byte == 0).any(|variable| variable.strip_prefix(b"HOME=") == Some(home.as_bytes()))
    }

    /// Whether a process works in the program's folder, or holds a file in it or one of its pipes.
    fn holds(pid: i32, origin: &Origin) -> bool {
        let ours = |path: &Path| origin.pipes.contains(path) || path.starts_with(&origin.folder);
        if fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|path| ours(&path)) {
            return true;
        }
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_link(file.path()).ok()).any(|path| ours(&path))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_process_may_have_any_name() {
            let stat = "12 (a) R 1 (b) Z 34 56 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 777 23";
            let process = parse(stat).unwrap();
            assert_eq!((process.parent, process.group, process.zombie, process.started), (34, 56, true, 777));
            assert!(parse("12 (a").is_none());
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::os::fd::AsRawFd;
    use std::path::PathBuf;

    use rustix::process::Pid;

    use super::{Leader, Origin};

    /// Other systems have no such thing that needs no right of its own.
    pub fn adopt_orphans() {}

    /// Pipes have no names here.
    pub fn pipe(_end: &impl AsRawFd) -> Option<PathBuf> {
        None
    }

    /// Orphans are not this process's children here.
    pub fn reap_group(_group: Pid) {}

    /// What has left its group is not found here.
    pub fn end<G: AsRef<[Leader]>>(_origin: &Origin, _leaders: impl Fn() -> G) -> usize {
        0
    }

    /// What has left its group is not found here.
    pub fn end_all() {}
}

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

/// A program that the engine started and has not yet finished with.
#[derive(Debug, Clone)]
pub struct Leader {
    /// The program's process, the leader of its group.
    pub pid: rustix::process::Pid,
    /// The folder in which the program was started.
    pub folder: PathBuf,
}

/// True if a search for processes failed because no descriptor was left.
static UNREAD: AtomicBool = AtomicBool::new(false);

/// Returns true if a search for processes failed, so that a process that left its group may have outlived its trial.
pub fn could_not_look() -> bool {
    UNREAD.load(Ordering::Relaxed)
}

/// The marks of a program by which its escaped processes are recognised.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The home in the program's environment, if it belongs to the trial alone.
    pub home: Option<String>,
    /// The program's process, which was the leader of its group.
    pub leader: i32,
    /// The folder in which the program was started.
    pub folder: PathBuf,
    /// The program's pipes, as `/proc` names them.
    pub pipes: HashSet<PathBuf>,
    /// True if the program runs under a supervisor. An orphan that reaches the engine then comes from a killed
    /// supervisor.
    pub supervised: bool,
    /// True if the program is in a sandbox.
    pub sandboxed: bool,
}

#[cfg(target_os = "linux")]
pub use linux::{adopt_orphans, end, end_all, pipe, reap_group, reap_orphans};

#[cfg(not(target_os = "linux"))]
pub use elsewhere::{adopt_orphans, end, end_all, pipe, reap_group, reap_orphans};

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{HashMap, HashSet};
    use std::os::fd::AsFd;
    use std::path::{Path, PathBuf};
    use std::sync::Once;
    use std::sync::atomic::Ordering;
    use std::time::{Duration, Instant};
    use std::{fs, io};

    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpgrp, getpid, kill_process, waitid};

    use super::{Leader, Origin, UNREAD};
    use crate::process::descriptors;
    use crate::resources::Exhausted;

    /// The maximum time for ending processes that keep forking.
    const PATIENCE: Duration = Duration::from_secs(5);

    /// Makes orphans below this process its children, instead of children of the system's first process.
    pub fn adopt_orphans() {
        static ONCE: Once = Once::new();
        // If the system refuses, escaped processes are still found as long as their parents live.
        ONCE.call_once(|| {
            let _ = rustix::process::set_child_subreaper(Some(getpid()));
        });
    }

    /// Returns the name of a pipe in `/proc`, by which another process that holds the pipe is recognised.
    pub fn pipe(end: &impl AsFd) -> Option<PathBuf> {
        rustix::fs::fstat(end).ok().map(|meta| PathBuf::from(format!("pipe:[{}]", meta.st_ino)))
    }

    /// Collects the exits of orphans of a group whose leader has exited: as zombies they would keep the group alive.
    pub fn reap_group(group: Pid) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        while matches!(waitid(WaitId::Pgid(Some(group)), options), Ok(Some(_))) {}
    }

    /// Collects the exits of orphans. A sandbox leaves one each time: its first process ends after the one that waits for it.
    /// `leaders` as for [`end`].
    pub fn reap_orphans<G: AsRef<[Leader]>>(leaders: impl Fn() -> G) {
        let held = leaders();
        let is_leader = |child: i32| held.as_ref().iter().any(|leader| leader.pid.as_raw_nonzero().get() == child);
        let own_group = getpgrp().as_raw_nonzero().get();
        for child in first_threads_children().unwrap_or_default() {
            let stat = || fs::read_to_string(format!("/proc/{child}/stat")).ok();
            let is_over = |process: SeenProcess| process.zombie && process.group != own_group;
            if !is_leader(child)
                && stat().as_deref().and_then(parse).is_some_and(is_over)
                && let Some(child) = Pid::from_raw(child)
            {
                let _ = waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
            }
        }
    }

    /// Ends all remaining processes of a program. `leaders` returns the programs that run now, and prevents new ones
    /// from being started as long as its result is held. Returns how many of the ended processes were recognised as
    /// the program's own.
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
                // If the tree cannot be read, the remaining processes are unknown.
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

    /// Returns true if this process has no child except the running programs. An escaped process is an orphan, and
    /// orphans are children of this process; reading its few children costs less than reading every process of the
    /// system. A list of children may omit one while another exits, so it is read twice.
    fn no_orphans(leaders: &HashSet<i32>) -> bool {
        (0..2).all(|_| {
            first_threads_children().is_some_and(|children| children.iter().all(|child| leaders.contains(child)))
        })
    }

    /// Returns the children of this process's first thread, to which the kernel gives orphans, or `None` if the system
    /// does not list them.
    fn first_threads_children() -> Option<Vec<i32>> {
        let list = fs::read_to_string(format!("/proc/self/task/{}/children", getpid().as_raw_nonzero())).ok()?;
        Some(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()).collect())
    }

    /// Ends every process below this one except those of its own group, which are ended elsewhere. Processes that lose
    /// their parent meanwhile are found in the next round.
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
    struct SeenProcess {
        parent: i32,
        group: i32,
        zombie: bool,
        /// The start time, in ticks of the system.
        started: u64,
    }

    /// The processes of the system at one moment.
    struct Tree {
        own: i32,
        own_group: i32,
        seen: HashMap<i32, SeenProcess>,
        children: HashMap<i32, Vec<i32>>,
    }

    impl Tree {
        /// Reads every process. Processes that vanish meanwhile are left out.
        fn read() -> io::Result<Self> {
            let mut seen = HashMap::new();
            let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
            for entry in fs::read_dir("/proc")? {
                let entry = entry?;
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

        /// Returns all processes below a process that are not in the engine's own group.
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

        /// Returns the living processes below the engine that are to be ended with this origin, and whether each is
        /// recognised as the origin's own. If another program of the same trial still runs (`shared`), the trial's
        /// marks do not show the owner.
        fn of(&self, origin: &Origin, leaders: &HashSet<i32>, shared: bool) -> Vec<(i32, bool)> {
            // The start of the oldest other running program: a process that was started earlier does not belong to any
            // of them.
            let others = leaders.iter().filter(|leader| **leader != origin.leader);
            // A leader that has exited and is still being ended may have orphans. Its start is unknown then and
            // counts as 0, so that no process passes for one without an owner.
            let first = others.map(|leader| self.seen.get(leader).map_or(0, |leader| leader.started)).min();
            let mut found = Vec::new();
            let mut left = vec![(self.own, None, false)];
            while let Some((pid, claim, others)) = left.pop() {
                for child in self.children.get(&pid).into_iter().flatten() {
                    let Some(process) = self.seen.get(child) else { continue };
                    // A process below another running program belongs to that program, unless it has a mark of this
                    // one.
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

    fn parse(stat: &str) -> Option<SeenProcess> {
        // The program's name is in parentheses and may contain anything.
        let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let zombie = matches!(words.next()?, "Z" | "X");
        let parent = words.next()?.parse().ok()?;
        let group = words.next()?.parse().ok()?;
        let started = words.nth(16)?.parse().ok()?;
        Some(SeenProcess { parent, group, zombie, started })
    }

    /// Returns true if a process was started with the trial's own home.
    fn is_at_home(pid: i32, origin: &Origin) -> bool {
        let Some(home) = &origin.home else { return false };
        let Ok(environ) = fs::read(format!("/proc/{pid}/environ")) else { return false };
        environ.split(|byte| *byte == 0).any(|variable| variable.strip_prefix(b"HOME=") == Some(home.as_bytes()))
    }

    /// Returns true if a process works in the program's folder, or holds open a file in it or one of the program's
    /// pipes.
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
        use std::os::fd::AsRawFd;

        use super::*;

        #[test]
        fn a_pipe_has_the_name_that_proc_shows() {
            let (end, _other) = io::pipe().unwrap();
            let shown = fs::read_link(format!("/proc/self/fd/{}", end.as_raw_fd())).unwrap();
            assert_eq!(pipe(&end), Some(shown));
        }

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
    use std::os::fd::AsFd;
    use std::path::PathBuf;

    use rustix::process::Pid;

    use super::{Leader, Origin};

    /// Does nothing: other systems have no such mechanism that works without privileges.
    pub fn adopt_orphans() {}

    /// Returns `None`: on other systems, pipes have no names.
    pub fn pipe(_end: &impl AsFd) -> Option<PathBuf> {
        None
    }

    /// Does nothing: on other systems, orphans are not this process's children.
    pub fn reap_group(_group: Pid) {}

    pub fn reap_orphans<G: AsRef<[Leader]>>(_leaders: impl Fn() -> G) {}

    /// Returns 0: on other systems, processes that have left their group are not found.
    pub fn end<G: AsRef<[Leader]>>(_origin: &Origin, _leaders: impl Fn() -> G) -> usize {
        0
    }

    /// Does nothing: on other systems, processes that have left their group are not found.
    pub fn end_all() {}
}

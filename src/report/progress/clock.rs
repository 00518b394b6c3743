//! The state of a display, on which a thread acts again and again until the display ends.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A state, and the thread that acts on it.
pub(super) struct Clocked<S> {
    shared: Arc<Shared<S>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared<S> {
    state: Mutex<Clock<S>>,
    ended: Condvar,
}

struct Clock<S> {
    state: S,
    ended: bool,
}

impl<S> Shared<S> {
    fn lock(&self) -> MutexGuard<'_, Clock<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Send + 'static> Clocked<S> {
    /// Acts on a state at once, and again after each interval.
    pub(super) fn new(state: S, interval: Duration, mut act: impl FnMut(&mut S) + Send + 'static) -> Self {
        let state = Mutex::new(Clock { state, ended: false });
        let shared = Arc::new(Shared { state, ended: Condvar::new() });
        let thread = std::thread::Builder::new().spawn({
            let shared = Arc::clone(&shared);
            move || {
                let mut clock = shared.lock();
                while !clock.ended {
                    act(&mut clock.state);
                    let waited = shared.ended.wait_timeout_while(clock, interval, |clock| !clock.ended);
                    clock = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        });
        // Without a thread, the display shows less.
        Self { shared, thread: thread.ok() }
    }

    /// Calls a function with the state. The lock is held meanwhile, so the thread cannot use the state.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut S) -> T) -> T {
        act(&mut self.shared.lock().state)
    }

    /// Ends the thread, and waits for it.
    pub(super) fn end(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // The thread only writes lines; a failure of it does not matter at the end.
            let _ = thread.join();
        }
    }
}

impl<S> Clocked<S> {
    fn stop(&self) {
        self.shared.lock().ended = true;
        self.shared.ended.notify_all();
    }
}

impl<S> Drop for Clocked<S> {
    fn drop(&mut self) {
        self.stop();
    }
}

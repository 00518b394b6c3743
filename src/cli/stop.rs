//! Ctrl-C: the first cancels what is running (`evals run` records it), the second ends everything at once.

use std::io::{self, Write};
use std::sync::mpsc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// The exit code of an interrupted run.
pub const INTERRUPTED: u8 = 130;

/// The message at the first interrupt of a run, which records its trials.
pub const NOTICE_OF_RUN: &str =
    "interrupted: running trials are cancelled and recorded; interrupt again to end everything at once";

/// The message at the first interrupt of another command.
const NOTICE: &str = "interrupted: what is running is ended; interrupt again to end everything at once";

/// Returns a channel that becomes true with the first interrupt, which prints a notice. The second interrupt ends
/// the program and every process it started.
pub fn on_interrupt() -> watch::Receiver<bool> {
    listen(Some(NOTICE))
}

/// Does what [`on_interrupt`] does, for a run: the notice is [`NOTICE_OF_RUN`].
pub fn on_interrupt_of_run() -> watch::Receiver<bool> {
    listen(Some(NOTICE_OF_RUN))
}

/// Does what [`on_interrupt`] does, but leaves the notice to a display that moves, because it would tear the display.
pub fn on_interrupt_of_display() -> watch::Receiver<bool> {
    listen(None)
}

/// Returns the channel. The first interrupt prints the notice, if there is one. A separate thread handles signals, so
/// that a busy engine does not delay them.
fn listen(notice: Option<&'static str>) -> watch::Receiver<bool> {
    let (send, receive) = watch::channel(false);
    let (ready, listening) = mpsc::channel::<()>();
    let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
        runtime.block_on(async {
            let Ok(signals) = Signals::subscribe() else { return };
            drop(ready);
            signals.obey(&send, notice).await;
        });
    });
    // The thread closes the channel when it is listening, or when it cannot.
    if thread.is_ok() {
        let _ = listening.recv();
    }
    receive
}

/// Makes this program ignore interrupts from now on, because another program reads the same terminal.
pub fn leave_interrupts_to_others() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    // Listening once replaces what the system does with the signal, for as long as the program runs. If it fails, an
    // interrupt ends this program, as it does anyway.
    let _ = runtime.map(|runtime| runtime.block_on(async { signal(SignalKind::interrupt()).map(drop) }));
}

/// The signals that ask a run to end.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Absent if the program was started so that it outlives its terminal, as `nohup` does.
    hangup: Option<Signal>,
}

impl Signals {
    fn subscribe() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: if hangup_is_ignored() { None } else { Some(signal(SignalKind::hangup())?) },
        })
    }

    async fn obey(mut self, interrupted: &watch::Sender<bool>, notice: Option<&'static str>) {
        loop {
            let hung_up = async {
                match &mut self.hangup {
                    Some(hangup) => hangup.recv().await,
                    None => std::future::pending().await,
                }
            };
            // A closing terminal may send the signal twice, by itself and by its shell: that is not a second
            // interrupt.
            let again = tokio::select! {
                _ = self.interrupt.recv() => *interrupted.borrow(),
                _ = self.terminate.recv() => *interrupted.borrow(),
                _ = hung_up => false,
            };
            if again {
                crate::process::kill_all();
                std::process::exit(i32::from(INTERRUPTED));
            }
            if !interrupted.send_replace(true)
                && let Some(notice) = notice
            {
                // The output may block if it is not read, and even then the next signal must be handled.
                let _ = std::thread::Builder::new().spawn(move || {
                    let _ = writeln!(io::stderr(), "{notice}");
                });
            }
        }
    }
}

/// Returns true if the program was started with SIGHUP ignored, as far as the system reports it.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

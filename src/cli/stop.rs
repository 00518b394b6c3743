//! Ctrl-C: once, and running trials are cancelled and recorded; twice, and everything ends at once.

use std::io::Write;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Exit code of an interrupted run.
pub const INTERRUPTED: u8 = 130;

/// Turns true with the first interrupt. The second one ends the program and every process it started.
pub fn on_interrupt() -> watch::Receiver<bool> {
    let (send, receive) = watch::channel(false);
    tokio::spawn(async move {
        let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            return;
        };
        let mut times = 0;
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            times += 1;
            if times == 1 {
                let _ = writeln!(
                    std::io::stderr(),
                    "interrupted: running trials are cancelled and recorded; once more ends everything at once"
                );
                let _ = send.send(true);
            } else {
                crate::process::kill_all();
                std::process::exit(i32::from(INTERRUPTED));
            }
        }
    });
    receive
}

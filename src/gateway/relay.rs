//! Connects a sandbox without a network to a gateway: forwards a port of the sandbox's loopback to a socket file.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, UnixStream};
use tokio::process::Command;

/// The pause after a connection that could not be accepted.
const RETRY: Duration = Duration::from_millis(20);

/// Runs a command, and forwards connections from a loopback port to a socket while it runs.
///
/// # Errors
/// Returns an error if the port cannot be opened, or the command cannot be started.
pub async fn run(port: u16, socket: &Path, command: &[String]) -> io::Result<ExitStatus> {
    let (program, arguments) = command.split_first().ok_or(io::Error::from(io::ErrorKind::InvalidInput))?;
    let listener = crate::loopback::listen(port).await?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::inherit())
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()?;
    // The engine must see when the command closes its pipes, so they are not shared.
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    let led = tokio::spawn(lead(listener, socket.to_owned()));
    let status = child.wait().await;
    led.abort();
    status
}

async fn lead(listener: TcpListener, socket: PathBuf) {
    loop {
        let Ok((mut from, _)) = listener.accept().await else {
            // Without a free file descriptor, every attempt fails at once.
            tokio::time::sleep(RETRY).await;
            continue;
        };
        let socket = socket.clone();
        tokio::spawn(async move {
            // A broken connection is detected at its other end.
            if let Ok(mut to) = UnixStream::connect(&socket).await {
                let _ = copy_bidirectional(&mut from, &mut to).await;
            }
        });
    }
}

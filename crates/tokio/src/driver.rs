//! The task that drives a manager.

use std::convert::Infallible;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use hamlyn::host::HostError;
use hamlyn::host::process::ProcessHost;
use hamlyn::host::sharing::{AnyThread, Sharing};
use hamlyn::{Look, Manager, Sleep, Wait, Waiting};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::JoinHandle;

/// A manager cannot be driven.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The runtime does not take its descriptor.
    #[error(
        "the runtime cannot wait for the manager's descriptor ({0}): free a descriptor, or raise their limit (ulimit -n)"
    )]
    Descriptor(#[from] std::io::Error),
    /// The host, or the network processor, failed.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// A task that drives a manager. It ends when this is dropped; the manager stays open meanwhile.
#[derive(Debug)]
#[must_use = "dropping it ends the task"]
pub struct Driven(JoinHandle<Result<Infallible, HostError>>);

impl Driven {
    /// Whether the manager cannot be driven any more. Tasks that wait for it are told why.
    pub fn has_failed(&self) -> bool {
        self.0.is_finished()
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Drives a manager in a task of the runtime in which this is called, until what this returns is
/// dropped.
///
/// # Errors
///
/// [`DriveError::Descriptor`].
///
/// # Panics
///
/// Outside of a runtime, and in one without I/O and time (`enable_all`).
pub fn spawn(manager: &Manager<ProcessHost<AnyThread>>) -> Result<Driven, DriveError> {
    let running = run(manager.clone(), watch(manager)?);
    Ok(Driven(tokio::spawn(running)))
}

/// As [`spawn`], in this thread: within a `LocalSet`.
///
/// # Errors
///
/// As [`spawn`].
///
/// # Panics
///
/// As [`spawn`], and outside of a `LocalSet`.
pub fn spawn_local<S: Sharing>(manager: &Manager<ProcessHost<S>>) -> Result<Driven, DriveError> {
    let running = run(manager.clone(), watch(manager)?);
    Ok(Driven(tokio::task::spawn_local(running)))
}

/// Drives a manager for as long as it is polled, for programs that do not want a task for it.
/// Returns only if it cannot go on.
///
/// # Errors
///
/// As [`spawn`], and [`DriveError::Host`].
///
/// # Panics
///
/// As [`spawn`].
pub async fn drive<S: Sharing>(manager: Manager<ProcessHost<S>>) -> Result<Infallible, DriveError> {
    let descriptor = watch(&manager)?;
    Ok(run(manager, descriptor).await?)
}

type Watched = Option<AsyncFd<Arc<OwnedFd>>>;

#[allow(
    deprecated,
    reason = "its successor is unsafe, for descriptors that somebody may close meanwhile; this one is owned"
)]
fn watch<S: Sharing>(manager: &Manager<ProcessHost<S>>) -> Result<Watched, DriveError> {
    let descriptor = manager.descriptor().cloned();
    let watched =
        descriptor.map(|descriptor| AsyncFd::with_interest(descriptor, Interest::READABLE));
    Ok(watched.transpose()?)
}

async fn run<S: Sharing>(
    mut manager: Manager<ProcessHost<S>>,
    descriptor: Watched,
) -> Result<Infallible, HostError> {
    let mut waiting = Waiting::new(Wait::Forever);
    loop {
        let is_over = match manager.look(&mut waiting)? {
            Look::Again => false,
            Look::Ready => true,
            Look::Sleep(sleep) => {
                rest(sleep, &descriptor).await;
                true
            }
        };
        if is_over {
            waiting = Waiting::new(Wait::Forever);
        }
        // For those that were woken, and all others.
        tokio::task::yield_now().await;
    }
}

async fn rest<S: Sharing>(sleep: Sleep<'_, ProcessHost<S>>, descriptor: &Watched) {
    let span = sleep.timeout();
    let Some(descriptor) = descriptor else {
        return;
    };
    let rung = async {
        // Nothing is read from it: the next sleep sees to that, and what comes after is a new
        // event.
        if let Ok(mut rung) = descriptor.readable().await {
            rung.clear_ready();
        }
    };
    match span {
        None => rung.await,
        Some(Duration::ZERO) => {}
        // If the time is over, that is to be looked at as well.
        Some(span) => drop(tokio::time::timeout(span, rung).await),
    }
}

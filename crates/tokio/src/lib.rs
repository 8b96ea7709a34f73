//! Drives Hamlyn's managers in a tokio runtime (decision 0021).
//!
//! One task drives a manager; [`spawn_local`] or [`spawn`] starts it. It polls for as long as a
//! call that blocks would, with a turn for every other task between two looks, and then sleeps at
//! the manager's descriptor. Other tasks wait with `recv_async`, `send_async` and their like, which
//! end points have, with [`Manager::ready`] for one queue, port or completion queue, or with
//! [`until`] for anything; as many tasks as there are end points.
//!
//! ```
//! use hamlyn::Wait;
//! use hamlyn::tagged_write::{Receiver, Sender};
//! use hamlyn_tokio::spawn_local;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! tokio::task::LocalSet::new().block_on(&runtime, async {
//!     let here = hamlyn::open_unnamed()?;
//!     let there = hamlyn::open_unnamed()?;
//!     let _driven = spawn_local(&here)?; // until this is dropped
//!     let mut tags = Receiver::new(&here, 4096, 64)?;
//!     let sender = Sender::grow(&there, &tags.ticket(), Wait::millis(1000))?;
//!
//!     let waiting = tokio::task::spawn_local(async move { tags.recv_async().await });
//!     sender.send(0, b"hello", 7, Wait::Poll)?;
//!     assert_eq!(waiting.await??.tag, 7);
//!     Ok(())
//! })
//! # }
//! ```
//!
//! A manager that [`hamlyn::open`] opens stays in its thread: a runtime of one thread, or a
//! `LocalSet`. One that [`hamlyn::open_shared`] opens may be used by any task of any runtime.
//!
//! No call of this crate blocks. Calls of end points do, unless they are made with
//! [`hamlyn::Wait::Poll`] or are futures themselves (`recv_async` and its like). To connect blocks,
//! too; [`connect`] does it beside the runtime's tasks.
#![forbid(unsafe_code)]

mod driver;

use std::future::poll_fn;
use std::task::Poll;

use hamlyn::host::process::ProcessHost;
use hamlyn::host::sharing::AnyThread;
use hamlyn::host::{Host, HostError};
use hamlyn::{ConnectError, Manager};

pub use driver::{DriveError, Driven, drive, spawn, spawn_local};

/// Connects end points in a thread that the runtime has for calls that block. Tasks use the manager
/// meanwhile.
///
/// ```
/// use hamlyn::host::process::Options;
/// use hamlyn::service::ServiceOptions;
/// use hamlyn::{ManagerOptions, Wait};
/// use hamlyn_tokio::{connect, spawn};
///
/// # #[tokio::main(flavor = "multi_thread", worker_threads = 2)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let namespace = format!("connect{}", std::process::id());
/// # let named = |name| Options::named(name).in_namespace(&namespace);
/// let alice = hamlyn::open_shared(named("alice"), ManagerOptions::default())?;
/// let bob = hamlyn::open_shared(named("bob"), ManagerOptions::default())?;
/// let _driven = [spawn(&alice)?, spawn(&bob)?];
///
/// let mut sums = alice.bind_service("sums", ServiceOptions::default())?;
/// tokio::spawn(async move {
///     while let Ok(call) = sums.next_async().await {
///         let sum: u8 = call.iter().sum();
///         let _ = call.reply(&[sum]);
///     }
/// });
/// let wait = Wait::millis(1000);
/// let mut client = connect(&bob, move |bob| bob.connect_service("alice/sums", wait)).await?;
/// assert_eq!(*client.call_async(&[1, 2, 3]).await?, [6]);
/// # Ok(())
/// # }
/// ```
///
/// If the future is dropped, the thread goes on until it has connected or its wait is over, and the
/// end of the runtime waits for it; what it connected is then dropped.
///
/// # Errors
///
/// Those of `act`.
///
/// # Panics
///
/// As `act` does, and outside of a runtime.
pub async fn connect<T: Send + 'static>(
    manager: &Manager<ProcessHost<AnyThread>>,
    act: impl FnOnce(&Manager<ProcessHost<AnyThread>>) -> Result<T, ConnectError> + Send + 'static,
) -> Result<T, ConnectError> {
    let manager = manager.clone();
    match tokio::task::spawn_blocking(move || act(&manager)).await {
        Ok(connected) => connected,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Waits until `look` finds something: asks now, and again whenever anything has happened at the
/// manager. For calls that do not block: with [`hamlyn::Wait::Poll`]. Dropping the future loses
/// nothing: what `look` finds is returned at once. Does not allocate.
///
/// The manager must be driven ([`spawn`], [`spawn_local`]). One task at a time waits with a handle,
/// so each takes one of its own: `manager.clone()`.
///
/// # Errors
///
/// Those of `look`; and those of the host, if the manager cannot be driven any more.
pub async fn until<H: Host, T, E: From<HostError>>(
    manager: &Manager<H>,
    mut look: impl FnMut() -> Result<Option<T>, E>,
) -> Result<T, E> {
    poll_fn(|context| {
        // Before the look, so that nothing is missed in between.
        if let Err(error) = manager.register_waker(context.waker()) {
            return Poll::Ready(Err(error.into()));
        }
        match look().transpose() {
            Some(found) => Poll::Ready(found),
            None => Poll::Pending,
        }
    })
    .await
}

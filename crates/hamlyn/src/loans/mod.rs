//! Loaned messages: a publisher writes a message in place, and its readers read it there (decision
//! 0024). Nothing is copied, so a message takes the same time whatever its length. Readers on other
//! hosts, and a reader that shares the publisher's interface, get copies through the same calls.
//!
//! The publisher has a pool of chunks. [`Publisher::loan`] takes a free one, [`Loan::publish`]
//! announces it to all readers, and the chunk is free again when the last of them has dropped its
//! [`Sample`], or is gone. Who reads slowly is treated as [`PublisherOptions::slow_readers`] says.
//!
//! ```no_run
//! use hamlyn::Wait;
//! use hamlyn::loans::PublisherOptions;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let alice = hamlyn::open("alice")?;
//! let mut frames = alice.bind_publisher("frames", PublisherOptions::default())?;
//! let mut frame = frames.loan(640 * 480, Wait::Forever)?;
//! frame.fill(0x80); // in place
//! frame.publish(Wait::Forever)?;
//!
//! let bob = hamlyn::open_unnamed()?;
//! let mut frames = bob.connect_subscriber("alice/frames", Wait::millis(1000))?;
//! if let Some(frame) = frames.recv(Wait::Forever)? {
//!     let mut line = [0; 640];
//!     frame.read_at(640 * 100, &mut line)?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! **What readers see.** Readers map the pool read-only; the kernel vouches that the publisher can
//! neither shrink it nor take its pages away. The publisher may write it at any time: one that
//! breaks the rules changes a message while it is read. So a sample is read by copies of what is
//! wanted of it, and each copy is checked, not the place. A plain slice is an `unsafe` choice
//! ([`Sample::view`], [`View::as_slice`](crate::View::as_slice)) of readers that trust their
//! publisher. Whoever may read one message may read the whole pool: all that is, was, or will be in
//! it.

mod copies;
mod list;
mod options;
mod publisher;
mod reader;
mod readers;
mod returns;
mod sample;
mod subscriber;
mod typed;
mod window;
mod wire;

pub use options::{PublisherOptions, SlowReaders};
pub use publisher::{Loan, LoanError, Publisher};
pub use readers::Published;
pub use sample::{Kept, Sample};
pub use subscriber::Subscriber;
pub use typed::TypedLoan;

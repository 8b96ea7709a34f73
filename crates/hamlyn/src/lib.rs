//! Hamlyn: a network interface made of software.
//!
//! Programs that do not trust each other exchange messages at memory speed. The *sender* names
//! the place in the receiver's memory where each message lands; a *key* guards
//! that place; neither a kernel call nor a broker stands on the data path. Nothing is
//! dropped for want of a buffer, because a message is sent only where memory was promised for it.
//!
//! ```no_run
//! use hamlyn::Wait;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // One program receives …
//! let alice = hamlyn::open("alice")?;
//! let mut inbox = alice.bind_datagram("inbox", 4096)?;
//!
//! // … another sends, and knows nothing but a name,
//! let me = hamlyn::open_unnamed()?;
//! let outbox = me.connect_datagram("alice/inbox", Wait::millis(5_000))?;
//! outbox.send(b"hello", Wait::Forever)?;
//!
//! // … and it is there.
//! if let Some(message) = inbox.recv(Wait::Forever)? {
//!     assert_eq!(*message, *b"hello");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! **Two layers** (`Hamlyn 3`). The lower one is [`Interface`]: slots, termini, queues, `send_msg` and `rcv`. The
//! upper one is [`Manager`] with its protocols: [`datagram`], [`stream`], [`tagged_write`], [`group`], [`service`].
//!
//! **Threads.** A manager and its end points stay in the thread that opened them, which the compiler checks; a program opens
//! one manager for each thread that communicates. [`open_shared`] opens one that several threads use, for the price of a lock.
//! Tickets, seeds and members may move freely.
//!
//! **Protection** is meant between users, containers and sandboxes. Processes of the same user can
//! read each other's memory with the kernel's help whatever we do.
#![forbid(unsafe_code)]

mod cached_table;
mod core;
pub mod datagram;
pub mod engine;
pub mod error;
pub mod event;
pub mod event_loop;
pub mod grant;
pub mod group;
mod half;
pub mod host;
mod inbound;
pub mod interface;
pub mod item;
mod links;
pub mod manager;
pub mod message;
mod outbound;
mod place;
mod processor;
mod remains;
pub mod rendezvous;
mod rx_links;
pub mod service;
pub mod slot;
pub mod stream;
pub mod tagged_write;
mod tasks;
pub mod ticket;
pub mod typed;
mod wait;
mod watching;

pub use error::{
    ConnectError, FenceError, OpenError, PeerLost, ReceiveError, SendError, Undelivered,
};
pub use event::Event;
pub use event_loop::{Look, Sleep, Waiting};
pub use grant::{AcceptError, Grant, GrantError, GrantTicket};
pub use hamlyn_host::{Address, Destination, Host};
pub use hamlyn_link::udp_endpoint::ConnectionState;
pub use hamlyn_ring::area::{Area, HandoverReader};
pub use interface::{Interface, Queue, Sent};
pub use item::Protocol;
pub use links::{LinkEnd, PeerIdentity};
pub use manager::{Detached, InterfaceGuard, Manager, ManagerOptions};
pub use message::{Message, Target};
pub use processor::Strategy;
pub use rendezvous::{open, open_shared, open_unnamed, open_with};
pub use slot::{NewSlot, Slot};
pub use ticket::{Ticket, TicketError};
pub use wait::Wait;
pub use zerocopy;

/// What the documents show must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/start.md")]
#[doc = include_str!("../../../docs/tuning.md")]
#[doc = include_str!("../../../docs/simulator.md")]
pub struct Documents;

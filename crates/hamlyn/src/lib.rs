//! Hamlyn: a network interface made of software.
//!
//! Programs that do not trust each other exchange messages at memory speed. The *sender* names
//! the place in the receiver's memory where each message lands; a *key* guards
//! that place; neither a kernel call nor a broker stands on the data path. Nothing is
//! dropped for want of a buffer, because a message is sent only where memory was promised for it.
//!
//! ```no_run
//! use hamlyn::{Wait, datagram};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // One program receives …
//! let here = hamlyn::open("alice")?;
//! let mut inbox = datagram::Receiver::new(&here, 4096)?;
//! inbox.ready();
//! let ticket = inbox.ticket().to_bytes(); // give it to whoever may send
//!
//! // … another sends, with the ticket it was given,
//! let there = hamlyn::open_unnamed()?;
//! let ticket = hamlyn::Ticket::from_bytes(&ticket)?;
//! let outbox = datagram::Sender::grow(&there, &ticket, Wait::millis(1000))?;
//! outbox.send(0, b"hello", None, Wait::Forever)?;
//!
//! // … and it is there.
//! if let Some(datagram) = inbox.receive(Wait::Forever)? {
//!     assert_eq!(datagram.data, b"hello");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! **Two layers** (`Hamlyn 3`). The lower one is [`Interface`]: slots, termini, queues, `send_msg` and `rcv`. The
//! upper one is [`Manager`] with its protocols: [`datagram`], [`stream`], [`tagged_write`], [`group`].
//!
//! **Threads.** Whatever moves messages takes the manager or interface by `&mut`, and
//! both are `Send`; so one thread at a time uses them, by construction and without
//! a lock. A program opens one for each thread that communicates. Tickets, seeds and end points may move freely.
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

/// What the README shows must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

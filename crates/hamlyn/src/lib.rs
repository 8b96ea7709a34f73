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
//! if let Some(message) = inbox.recv(Wait::Forever)? {
//!     println!("{:?} says {:?}", message.sender(), &*message);
//! } // … and is ready for the next message when this one is dropped.
//!
//! // Another sends.
//! let me = hamlyn::open_unnamed()?;
//! let outbox = me.connect_datagram("alice/inbox", Wait::millis(1000))?;
//! outbox.send(b"hello", Wait::Forever)?;
//! outbox.fence(Wait::millis(1000))?; // it is in its place, or this says why not
//! # Ok(())
//! # }
//! ```
//!
//! **Two layers** (`Hamlyn 3`). The upper one is [`Manager`] with its protocols: [`datagram`],
//! [`mailbox`], [`stream`], [`tagged_write`], [`group`], [`service`], [`loans`]; [`typed`] end points
//! carry values. The lower one is [`Interface`]: slots, [ports](port), termini, queues, `send_msg`
//! and `rcv`, [`one_sided`] operations, and tickets, which may be handed to chosen peers.
//!
//! **Threads.** A manager and its end points stay in the thread that opened it, and cost no lock;
//! open one for each thread that communicates. [`Manager::detach`] moves one that has no end
//! points. Those that [`open_shared`] opens may be used by any thread, one at a time, for the price
//! of a lock; short messages are sent under another one, so a thread sends while another one
//! receives. Tickets and seeds may move freely.
//!
//! **Waiting.** Calls that may have to wait take a [`Wait`]: not at all, for so long, or for ever.
//! They poll for a while, which they learn, and then sleep. Event loops wait with
//! [`Manager::prepare_sleep`], tasks with `recv_async` and its like, which the crate `hamlyn-tokio`
//! drives.
//!
//! **Events.** Peers come and go, and packets are refused; [`Manager::next_event`] tells. A receive
//! fails only if it can never succeed.
//!
//! **Protection** is meant between users, containers and sandboxes. Processes of the same user can
//! read each other's memory with the kernel's help whatever we do.
#![forbid(unsafe_code)]

mod active_links;
mod answers;
mod arrival;
mod binding;
mod cached_table;
pub mod completions;
mod core;
pub mod datagram;
mod drop_list;
pub mod engine;
pub mod error;
pub mod event;
pub mod event_loop;
mod fences;
pub mod forks;
pub mod group;
mod half;
pub mod host;
mod inbound;
mod inlet;
pub mod interface;
mod interruption;
pub mod item;
pub mod lane;
mod links;
pub mod loans;
pub mod lobby;
mod look_interval;
pub mod mailbox;
pub mod manager;
pub mod message;
mod one_shot;
pub mod one_sided;
mod outbound;
mod peer;
pub mod pool;
pub mod port;
mod port_set;
mod processor;
mod protocol;
mod queue;
mod receive_buffer;
pub mod region;
mod remains;
pub mod rendezvous;
mod rx_links;
mod sending_half;
pub mod service;
pub mod session;
pub mod slot;
mod source;
pub mod stream;
pub mod tagged_write;
mod tasks;
pub mod ticket;
pub mod typed;
mod wait;

pub use completions::{Completion, CompletionError, CompletionQueue, TrackError};
pub use error::{
    ConnectError, FenceError, NotSent, OpenError, PeerLost, ReceiveError, SendError, Undelivered,
};
pub use event::{Direction, Event};
pub use event_loop::{Look, Sleep};
pub use hamlyn_host::{Address, Destination, Host};
pub use hamlyn_link::udp_endpoint::ConnectionState;
pub use hamlyn_ring::area::{Area, HandoverReader};
pub use hamlyn_ring::overflow::LogUse;
pub use hamlyn_ring::pool::View;
pub use inlet::Inlet;
pub use interface::{Interface, Listening, Outbox, Placing, Queue, Sending};
pub use interruption::Interruption;
pub use item::{EndPoint, Found, Protocol};
pub use manager::{Detached, Manager, ManagerOptions};
pub use message::{Message, Target};
pub use peer::{LinkEnd, PeerIdentity};
pub use port::{NewPort, Port, PortMessage};
pub use port_set::PortSet;
pub use processor::Strategy;
pub use region::{
    Access, AttachError, Attached, DirectWindow, Holders, Region, RegionTicket, ShareError,
};
pub use rendezvous::{open, open_shared, open_unnamed, open_with};
pub use session::{Sent, Session};
pub use slot::{NewSlot, Slot};
pub use source::{Ready, Source};
pub use ticket::{Ticket, TicketError};
pub use wait::{Wait, Waiting};
pub use zerocopy;

/// What the documents show must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/start.md")]
#[doc = include_str!("../../../docs/writing-a-layer.md")]
#[doc = include_str!("../../../docs/tuning.md")]
#[doc = include_str!("../../../docs/simulator.md")]
#[doc = include_str!("../../../docs/tutorial-rust.md")]
#[doc = include_str!("../../../docs/pains.md")]
#[doc = include_str!("../../../docs/stopped-receivers.md")]
#[doc = include_str!("../../../docs/coming-from.md")]
pub struct Documents;

//! What the interface promises, written as plainly as possible: a model that judges it
//! (`Hamlyn 2.2` to `2.7`).
//!
//! It has values of the engine (headers, keys, reasons) and none of its logic: sums are wide
//! integers, queues are vectors, memory is a copy of every byte. It is told of each operation and
//! asked whether what was seen may be. What it refuses is a [`Violation`]: a bug of what it
//! watches, or of the caller that told it something that did not happen.
//!
//! * [`sending::Sending`]: termini. Which packets may leave, with which bytes and deltas; which
//!   completions are true.
//! * [`receiving::Receiving`]: slots, entries, queues. Which packets are let in, what they write,
//!   what is announced.
//! * [`delivery::Deliveries`]: messages between programs, whatever carries them: each exactly once,
//!   as it was sent.
//! * [`calling::Calls`]: calls of a service: each is served once at most, and ends once, as its
//!   server said.
//! * [`mailing::Mailing`]: messages to a mailbox: each is taken out once, or its sender is told that
//!   it was refused.
//! * [`publishing::Publications`]: messages of a publisher: each reader gets them whole and in
//!   order.
//! * [`remote::Remote`]: memory that another program changes: an operation that is complete shows
//!   its effect.
//! * [`transport::Transport`]: packets between nodes: each is taken or comes back, and nothing is
//!   sent again for no cause.
//!
//! Each event costs what it touches; `sweep` and `quiet` look at everything, when it is worth it.

pub mod calling;
pub mod delivery;
mod entry;
pub mod mailing;
pub mod memory;
pub mod operating;
mod ports;
pub mod publishing;
mod queue;
pub mod receiving;
pub mod remote;
pub mod sending;
pub mod transport;
mod violation;

pub use violation::Violation;

#[cfg(test)]
mod tests;

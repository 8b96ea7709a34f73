//! Queues and memory across a trust line (ARCHITECTURE.md, trust).
//!
//! One process writes, another reads, and neither believes the other: what a
//! peer can write is copied out once, checked, and only the copy is used; own
//! indices, sizes and masks never leave private memory. `Empty` and `Corrupt`
//! are different answers, and corruption ends that peer only.
//!
//! This crate refuses to know what it carries: cells are eight words, the payload arena is
//! bytes. It makes no system call on the path of a message, and all of its
//! `unsafe` lies in one module, `shared`.
//!
//! * [`shared`]: mappings, and every access to them.
//! * [`memfd`]: sealed memory files, made and checked.
//! * [`area`]: message areas and send-buffer areas (`Hamlyn 2.2`).
//! * [`region`]: ranges of an area that others map.
//! * [`pool`]: memory that its owner writes in place and others only read.
//! * [`producer`], [`consumer`]: the two ends of one direction.
//! * [`overflow`]: where a direction goes on when its receiver takes nothing.
//! * [`memory_left`]: whether reserving more would go beyond a limit.
//! * [`reports`]: what the receiving end refused.
//! * [`caches`]: how far copies may spread.
//! * [`newest`]: which version in a pool is the newest, for readers that copy it.
//! * [`streaming`]: whether copies outgrow the caches.
//! * [`doorbell`]: announcing sleep, and waking only those that sleep.
//! * [`forks`]: tells a forked child from its parent.
//! * [`wake`]: the words at which they sleep.
//! * [`poll_set`], [`ready_bitmap`]: which of many links a poll looks at.

#![deny(unsafe_code)]

pub mod area;
pub mod caches;
pub mod cells;
pub mod consumer;
pub mod doorbell;
pub mod duplex;
pub mod geometry;
mod handover;
pub mod memfd;
pub mod memory_left;
pub mod newest;
pub mod overflow;
pub mod payload_arena;
pub mod poll_set;
pub mod pool;
pub mod producer;
pub mod ready_bitmap;
pub mod region;
pub mod reports;
#[allow(
    unsafe_code,
    reason = "the one module that touches memory others may touch"
)]
pub mod shared;
pub mod streaming;
pub mod wake;

pub use rustix::io::Errno;
pub use shared::forks;

//! The Hamlyn interface as a pure state machine.
//!
//! This crate does no I/O, reads no clock, starts no thread and contains no
//! unsafe code. It takes packets and gives packets, deposits and
//! notifications; hosts lend it memory and links.
//!
//! The way of a message: a request enters a [`terminus`], is cut into packets by [`segment`] and
//! sent by [`transmit`]; at the other end [`receive`] checks each packet against its [`slot`] and
//! [`metadata`] entry, deposits it, adds up its delta ([`counting`]) and announces the message
//! ([`notification`]). Between hosts, [`transport`] brings packets from the one to the other, each
//! once.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod atomic;
mod awaited;
mod backlog;
pub mod counting;
mod entry_access;
pub mod grant;
pub mod key;
pub mod limits;
pub mod memory;
mod message_queue;
pub mod metadata;
#[cfg(test)]
mod metadata_tests;
pub mod notification;
pub mod operation;
pub mod packet;
pub mod point;
pub mod port;
mod port_membership;
mod port_set;
pub mod receive;
mod receive_messages;
pub mod receive_observer;
mod receive_operations;
mod receive_short;
mod receive_slots;
mod received;
pub mod refusal;
mod responder;
pub mod segment;
pub mod send_observer;
pub mod slot;
pub mod table;
pub mod terminus;
pub mod transmit;
pub mod transport;

// Stated here and not beside the type, as the loom test compiles that with larger atomics.
const _: () = assert!(size_of::<metadata::MetadataEntry>() == limits::METADATA_ENTRY_BYTES);

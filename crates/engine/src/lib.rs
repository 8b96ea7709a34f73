//! The Hamlyn interface as a pure state machine.
//!
//! This crate does no I/O, reads no clock, starts no thread and contains no
//! unsafe code. It takes packets and gives packets, deposits and
//! notifications; hosts lend it memory and links.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod key;
pub mod limits;
pub mod memory;
pub mod packet;

//! The UDP wire: datagrams between hosts, and what makes them trustworthy.
//!
//! The parts know nothing of each other: [`socket`] moves batches of datagrams, [`seal`] seals and
//! opens one, [`handshake`] agrees on keys, [`mtu`] finds how long a datagram may be. What they share is the envelope, the 16
//! clear bytes with which each datagram begins. The wire refuses to interpret frames; it knows no channels, slots or names
//! (decision 0012).

pub mod batch;
pub mod envelope;
pub mod handshake;
pub mod key_file;
pub mod mtu;
mod offload;
mod replay;
pub mod seal;
pub mod socket;

/// The largest payload of a UDP datagram over IPv4, in bytes; over IPv6 no more is used.
pub const DATAGRAM_BYTES_MAX: usize = 65_507;
/// The largest datagram that every path carries: IPv6 guarantees packets of 1,280 bytes, 48 of which are headers.
pub const DATAGRAM_BYTES_MIN: usize = 1_232;

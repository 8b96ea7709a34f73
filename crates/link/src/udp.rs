//! UDP between hosts: sockets, handshake, packet protection and path MTU. The crate's
//! `udp_endpoint` joins them to links.
//!
//! The parts know nothing of each other: [`socket`] moves batches of datagrams, [`protection`]
//! encrypts and authenticates one, [`handshake`] agrees on keys, [`mtu`] finds how long a datagram
//! may be. All share the [`packet_header`], the 16 clear bytes with which each datagram begins. No
//! part interprets frames, or knows channels, slots or names (decision 0012).

pub mod batch;
pub mod datagram_socket;
pub mod handshake;
pub mod key_file;
pub mod mtu;
mod offload;
pub mod packet_header;
pub mod protection;
pub mod randomness;
mod replay;
pub mod socket;

/// The largest payload of a UDP datagram over IPv4, in bytes; over IPv6 no more is used.
pub const DATAGRAM_BYTES_MAX: usize = 65_507;
/// The largest datagram that every path carries: IPv6 guarantees packets of 1,280 bytes, 48 of
/// which are headers.
pub const DATAGRAM_BYTES_MIN: usize = 1_232;

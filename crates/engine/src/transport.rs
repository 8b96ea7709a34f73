//! The transport between the interfaces of two hosts (`virtual-networks` 4.1 to 4.4; decision
//! 0012): packets go in on one side and come out on the other, each once, or come back with a
//! reason.
//!
//! No I/O, no clock, no keys: an [`Association`] is told the time and the frames that came, and
//! gives frames to be sent and the next deadline. The carrier of the frames guarantees that they
//! come from the peer unchanged; apart from that the peer may send anything, and harms only itself.
//!
//! A *frame* is what one datagram carries. It goes through a *channel*, of which there are many,
//! each with one frame at a time that is not acknowledged (4.2.1). Channels are used in order,
//! round after round, and the number of the round is the sequence number of its frames; so
//! acknowledgements of neighbours are one run. A receiver remembers the number that each channel
//! had last, and takes only what is newer.
//!
//! # The bytes of a frame
//!
//! All numbers are little endian. First the header, 20 bytes:
//!
//! | at | bytes | |
//! |---|---|---|
//! | 0 | 4 | *timestamp* of the sender: its clock in units of 64 ns, modulo 2^32 |
//! | 4 | 4 | *echo*: the newest timestamp that came to the sender over this path |
//! | 8 | 2 | *hold*: how long ago it came, in units of 1 µs, rounded down; all ones: longer than that |
//! | 10 | 2 | *channel* of the packets in this frame; all ones: there are none |
//! | 12 | 4 | *sequence* number of the frame in its channel; 0 without a channel |
//! | 16 | 1 | flags: 1 the echo is one, 2 acknowledge at once, 4 the sender has closed; others must be 0 |
//! | 17 | 1 | number of runs of acknowledgements |
//! | 18 | 1 | number of NACKs |
//! | 19 | 1 | format: 1 |
//!
//! Then each *run*, 8 bytes: first channel (2), number of channels (2), sequence (4). Of each of
//! these channels, the frame of that number was taken, and all of its packets were welcome. Every
//! channel is named once in a frame at most.
//!
//! Then each *NACK*, 11 bytes: channel (2), sequence (4), the timestamp of the frame that it
//! answers (4), reason (1): 1 there is no room, or it waits to be taken, 2 the interface is not
//! resident, 4 it is about to close and takes nothing any more; then the frame was not taken, and
//! is to be sent again. Reason 0: the frame was taken, but some of its packets were refused; then
//! follow the number of runs of these (2), and the runs, 5 bytes each: index of the first packet
//! (2), how many (2), why (1: the number of a [`Refusal`](crate::refusal::Refusal)). They are in
//! order and do not overlap.
//!
//! Then the packets, up to the end of the frame, or up to a zero byte: that and all after it is
//! padding. Each begins with a byte of bits:
//!
//! | bits | |
//! |---|---|
//! | 7 | 1: there is a packet |
//! | 6 | 1: general; 0: short: 16 bytes of data, announced, a write without flags |
//! | 5 | 1: address and key are those of the packet before |
//! | 4, 3 | offset: 0 that of the packet before, 1 where the data of the packet before ended, 2 in 4 bytes, 3 in 8 bytes |
//! | 2, 1 | word: 0 zero, 1 that of the packet before, 2 one more than that, 3 in 8 bytes |
//! | 0 | of a short packet, 1: the word is 8 bytes of metadata, not the delta or the word of fast mode |
//!
//! The packet before the first of a frame is all zeros. Then, where they are not left out: slot
//! (4), metadata index (2) and key (8); offset (4 or 8); word (8). A short packet ends with its 16
//! bytes of data. A general one goes on with kind (1), flags (1), bytes of metadata (1, at most
//! 60), bytes of data (4), the metadata, and the data, which are left out if the flags say that
//! they were placed. A frame with a channel has at least one packet.

mod association;
mod channel_set;
mod close_reason;
mod congestion;
mod frame;
mod packets;
mod path;
mod receive_table;
mod receiving;
mod returns;
mod round_trip;
mod send_table;
mod sending;
mod settings;
mod suspend;
mod timer;

pub use association::{Association, Statistics};
pub use close_reason::{CloseReason, NackReason, Return, Returned};
pub use frame::answer_not_resident;
pub use packets::{Cursor, Packet, Packets};
pub use path::PathStatistics;
pub use receiving::{Incoming, ReceiveToken};
pub use sending::{InFlightFrame, Outgoing};
pub use settings::{BadSettings, Settings};
pub use suspend::Suspended;

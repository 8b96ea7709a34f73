//! Links: how packets move between two interfaces.
//!
//! A link moves packets and knows nothing of slots, keys or messages. It
//! refuses to interpret what it carries; it checks only what it needs in order
//! not to be harmed by the other end.

#![forbid(unsafe_code)]

pub mod carrier;
pub mod cell;
mod copy_policy;
pub mod either;
pub mod message_cell;
pub mod pair;
mod report;
pub mod short_cell;
pub mod trace;
pub mod udp;
pub mod udp_endpoint;

use std::convert::Infallible;

use hamlyn_engine::limits::{PACKET_PAYLOAD_MAX, PACKET_PAYLOAD_MIN};
use hamlyn_engine::memory::{Part, Payload, Unsent};
use hamlyn_engine::operation::ShortRequest;
use hamlyn_engine::packet::{Header, PortAddress, Short, ShortInPlace};
use hamlyn_engine::point::Point;
use hamlyn_engine::port::InPlace;
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::Return;
use hamlyn_ring::Errno;
use hamlyn_ring::area::Area;
use hamlyn_ring::memfd::MemfdError;
use hamlyn_ring::overflow::{LogNews, LogUse};
use hamlyn_ring::reports::REPORTS_KEPT;
use hamlyn_ring::shared::OutOfRange;

use crate::carrier::InCell;

/// The other end broke the rules of the link. The link is dead; no other link
/// is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkFault {
    /// A cell's flag had a value that no correct sender writes.
    #[error("the peer wrote an impossible cell flag")]
    Flag,
    /// A cell placed its payload outside the shared memory, or was longer than agreed.
    #[error("the peer placed a payload outside the memory it shares with us")]
    Placement,
    /// The peer sent a message to a port by an abbreviation that stands for none.
    #[error("the peer used an abbreviation of a port that it had not said")]
    Abbreviation,
    /// The peer returned credit for cells that it never received, or took some back.
    #[error("the peer returned impossible credit")]
    Credit,
    /// The peer sent two fences with nothing in between.
    #[error("the peer sent two fences with nothing in between")]
    Fence,
    /// The peer led to a place of the overflow log that was not due, or nowhere.
    #[error("the peer misused the overflow log of its link")]
    Log,
    /// The peer reported more refused packets than were sent to it, or took a report back.
    #[error("the peer reported impossible refusals")]
    Report,
}

/// What a peer has refused of the packets that were sent to it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Refused {
    /// How many packets, since the link began.
    pub packets: u64,
    /// The last of them: its header, and why.
    pub last: Option<(Header, Return)>,
}

/// A link could not be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// A mapping is smaller than its layout, or cannot be written.
    #[error("a mapping does not fit its layout")]
    Layout,
    /// The payload limit is not in the allowed range.
    #[error("{0} bytes of payload: must be from {PACKET_PAYLOAD_MIN} to {PACKET_PAYLOAD_MAX}")]
    PayloadMax(usize),
    /// Its memory could not be made.
    #[error(transparent)]
    Memory(#[from] MemfdError),
    /// Its memory could not be mapped.
    #[error("the memory of a link could not be mapped: {0}")]
    Map(#[from] Errno),
}

impl From<OutOfRange> for LinkError {
    fn from(OutOfRange: OutOfRange) -> Self {
        Self::Layout
    }
}

/// One link of an interface: both directions to one peer. They are used apart, perhaps by different
/// threads; a fault of either is the end of both, and their owner ends the other.
pub trait Link {
    /// The way out.
    type Transmit: TransmitEnd + Send + 'static;
    /// The way in.
    type Receive: ReceiveEnd + Send + 'static;

    /// The two ends.
    fn split(self) -> (Self::Transmit, Self::Receive);
}

/// The transmitting end of a link.
pub trait TransmitEnd {
    /// The largest payload of an outgoing packet, metadata and data together, in bytes.
    fn payload_max_bytes(&self) -> usize;

    /// Offers a packet. Does not block, does not allocate; a system call is
    /// made only to wake a peer that sleeps.
    fn try_send(
        &mut self,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Area>],
    ) -> Result<(), Unsent>;

    /// Offers a short packet by the fast path, and makes it only when it can be sent so. Whether it
    /// was sent; if not, [`TransmitEnd::try_send`] may send it, or tells why nothing can. Otherwise
    /// as that.
    fn try_send_short<M>(&mut self, short: M) -> bool
    where
        Short: From<M>;

    /// Offers a packet that is short but for its `data`, of which it has the first words, and which
    /// do not fit a cell beside its word. True if it was sent, in as many cells as it takes.
    /// Otherwise as [`TransmitEnd::try_send_short`].
    #[inline(always)]
    fn try_send_in_cells(&mut self, _short: &Short, _data: &[u8]) -> bool {
        false
    }

    /// Offers a message to a port, of at most one packet, by the fast path: in cells, with an
    /// abbreviation of the port. True if it was sent. Otherwise as [`TransmitEnd::try_send_short`].
    #[inline(always)]
    fn try_send_message(&mut self, _to: &PortAddress, _handler: u16, _data: &[u8]) -> bool {
        false
    }

    /// As [`TransmitEnd::try_send_short`], for a request that goes over the duplex line.
    #[inline(always)]
    fn try_send_request(&mut self, _request: &ShortRequest) -> bool {
        false
    }

    /// The longest message that the fast paths send; 0 if they never send any.
    fn cells_bytes_max(&self) -> u64 {
        0
    }

    /// Offers short packets one after the other: asks for the `next` one only when there is room
    /// for it, until there is none; how many. The peer is woken once, after the last.
    fn try_send_shorts(&mut self, next: impl FnMut() -> Option<Short>) -> usize;

    /// Whether packets that were taken wait for others that would go with them.
    #[inline(always)]
    fn holds(&self) -> bool {
        false
    }

    /// No other packet follows for now: what waits for one goes.
    fn hand_over(&mut self) {}

    /// What the peer did wrong, if that is why a packet was [`Unsent::Gone`].
    fn fault(&self) -> Option<LinkFault>;

    /// Announces that the caller is about to sleep until a packet that was [`Unsent::Full`] can be
    /// sent, if that `is_needed`, or until that `fence` is answered. The caller must pass a full
    /// barrier, ask [`TransmitEnd::credit_came`] or [`TransmitEnd::may_be_answered`], and sleep
    /// only if that says no.
    fn await_credit(&mut self, is_needed: bool, fence: Option<u64>);

    /// Whether there may be more room than when a packet was last [`Unsent::Full`].
    fn credit_came(&self) -> bool;

    /// Gives memory back that an idle link does not need, as far as
    /// the peer has returned it; how many bytes. To be called after nothing was sent for long.
    /// Makes system calls, but none if there is nothing to give back.
    fn give_back(&mut self) -> usize;

    /// Whether [`TransmitEnd::give_back`] may find something.
    fn has_spare(&self) -> bool;

    /// Until when a link that has no room waits for some, before it goes on in an overflow log;
    /// nothing if it has none, or is in it. To be asked again then.
    fn overflow_due_ns(&self) -> Option<u64> {
        None
    }

    /// Has messages go that are held back, as the overflow log of the peer is nearly full: for
    /// a sender that may not wait. False if none is.
    fn press(&mut self) -> bool {
        false
    }

    /// Reserves memory, so that packets to this host are sent without allocation from now on: for
    /// senders in a signal handler.
    fn reserve(&mut self) {}

    /// How much the overflow log of the peer was used, if it has one.
    fn log_use(&mut self) -> Option<LogUse> {
        None
    }

    /// How many packets were sent.
    fn sent(&self) -> u64;

    /// Asks the peer to say when it has taken everything that was sent so far; the number of this
    /// fence, for [`TransmitEnd::is_answered`]. [`Unsent::Full`] if there is no room for the
    /// question. Does not block.
    fn fence(&mut self) -> Result<u64, Unsent>;

    /// Whether the peer has taken everything that was sent before that fence: each packet was
    /// deposited, or refused and counted in [`TransmitEnd::refused`]. Does not block.
    fn is_answered(&mut self, fence: u64) -> Result<bool, Unsent>;

    /// Whether [`TransmitEnd::is_answered`] is worth asking.
    fn may_be_answered(&self, fence: u64) -> bool;

    /// Whether the peer is known to have taken everything that was sent.
    fn is_all_taken(&mut self) -> bool;

    /// What the peer has refused so far.
    fn refused(&mut self) -> Refused;

    /// A packet that was sent and refused, or came back, each once: its header, and why. On one
    /// host key, flags and metadata are not told.
    fn next_returned(&mut self) -> Option<(Header, Return)>;

    /// How many of those were not fetched in time, and forgotten.
    fn forgotten(&self) -> u64;

    /// The number of those that are kept: as many may come back between two looks, and none is
    /// forgotten.
    fn returns_kept(&self) -> u64 {
        REPORTS_KEPT
    }

    /// True if the peer takes packets in the order in which they were sent.
    fn keeps_order(&self) -> bool {
        false
    }

    /// What is known of the way to the peer, if it leads over the wire. Allocates.
    fn connection_state(&self) -> Option<udp_endpoint::ConnectionState> {
        None
    }

    /// The transmitting half passes that point in its work for this kind of link. Nothing, unless
    /// somebody listens.
    #[inline(always)]
    fn passes(point: Point)
    where
        Self: Sized,
    {
        let _ = point;
    }
}

/// The receiving end of a link.
pub trait ReceiveEnd {
    /// The bytes that came with a packet.
    type Payload<'a>: Payload<Area> + Clone
    where
        Self: 'a;

    /// See [`ReceiveEnd::shortcut`].
    type Shortcut: Shortcut;

    /// The fast path to the next packet, if this link has one.
    fn shortcut(&mut self) -> Option<&mut Self::Shortcut>;

    /// Returns the credit of packets that were taken by the fast path, if enough has come
    /// together. True if there was something to do.
    fn return_due_credit(&mut self) -> bool;

    /// How many packets were taken.
    fn taken(&self) -> u64;

    /// Takes the next packet, if there is one, shows it to `take` once, and
    /// gives its room back to the peer. Does not block.
    fn receive<R>(
        &mut self,
        take: impl FnOnce(&Header, &Self::Payload<'_>) -> R,
    ) -> Result<Option<R>, LinkFault>;

    /// As [`ReceiveEnd::receive`], for a caller that may refuse the packet: the link tells its
    /// sender. Overlooks the duplex line of the link ([`hamlyn_ring::duplex`]); see
    /// [`ReceiveEnd::receive_from_line`].
    fn receive_or_refuse<R>(
        &mut self,
        take: impl FnOnce(&Header, &Self::Payload<'_>) -> Result<R, Refusal>,
    ) -> Result<Option<Result<R, Refusal>>, LinkFault>;

    /// As [`ReceiveEnd::receive_or_refuse`], for a packet in the duplex line. To be called when
    /// that finds nothing. Apart, as together each takes more instructions.
    fn receive_from_line<R>(
        &mut self,
        _take: impl FnOnce(&Header, &Self::Payload<'_>) -> Result<R, Refusal>,
    ) -> Result<Option<Result<R, Refusal>>, LinkFault> {
        Ok(None)
    }

    /// Whether one of these would find something (a packet or a fault).
    fn is_pending(&self) -> bool;

    /// Returns all credit that is still held back. To be called before sleeping.
    fn return_credit(&mut self);

    /// Returns the credit that is still held back if the sender may wait for it though nothing more
    /// comes: if packets held payload in the arena. To be called when a poll found nothing.
    fn return_arena_credit(&mut self);

    /// Reserves memory, so that packets of this host are taken without allocation from now on: for
    /// receivers in a signal handler.
    fn reserve(&mut self) {}

    /// News of this end's overflow log that the program has not heard.
    fn log_news(&mut self) -> Option<LogNews> {
        None
    }

    /// Whether the peer waits to be rung for, but the system did not let us: the caller must return
    /// credit again soon, also if nothing more is sent.
    fn owes_ring(&self) -> bool {
        false
    }

    /// The bit that the peer sets in this interface's ready bitmap when it has sent something
    /// (`hamlyn_ring::ready_bitmap`). A number beyond the bitmap is none.
    fn ready_bit(&self) -> u32;

    /// This end polls the link often from now on: the peer need not set its ready bit, nor ring.
    /// The caller must look once for what the peer sent before it saw this.
    fn suppress_events(&mut self);

    /// This end polls the link seldom from now on: the peer is to set its ready bit. False if it
    /// cannot be told, and the link must be polled as often as before.
    fn enable_events(&mut self) -> bool;

    /// We are about to sleep: the peer is to ring. The caller must pass a barrier that the peer
    /// passes, too, and then look once at this link.
    fn announce_sleep(&mut self);
}

/// A message to a port as it lies in its cells.
#[derive(Clone, Copy, Debug)]
pub struct MessageInPlace<'a> {
    /// Its port and its handler.
    pub message: InPlace<'a>,
    /// Its bytes of data.
    pub length_bytes: u16,
}

/// The fast path to a packet that lies in a ring as a value (decision 0004).
pub trait Shortcut {
    /// A short packet in its cell, with a word of metadata or without.
    type InCell<'a, const HAS_METADATA: bool>: ShortInPlace
    where
        Self: 'a;

    /// The same in several cells.
    type InCells<'a, const HAS_METADATA: bool>: ShortInPlace
    where
        Self: 'a;

    /// The next packet, if there is one and it is short, and has a word of metadata, or none. It
    /// stays the next one until [`Shortcut::short_done`]. May overlook a packet that the end itself
    /// finds, and does as long as [`ReceiveEnd::return_due_credit`] has something to do. Looks
    /// where the packet before was: in the ring, or in the duplex line ([`hamlyn_ring::duplex`]).
    fn peek_short<const HAS_METADATA: bool>(&self) -> Option<Self::InCell<'_, HAS_METADATA>>;

    /// Tells of a next packet that seems to be a short one in several cells, and if it has a word
    /// of metadata. [`Shortcut::peek_in_cells`] decides.
    #[inline(always)]
    fn next_in_cells(&self) -> Option<bool> {
        None
    }

    /// As [`Shortcut::peek_short`], for a packet that takes several cells of the ring; and how
    /// many. It stays the next one until [`Shortcut::cells_done`].
    #[inline(always)]
    fn peek_in_cells<const HAS_METADATA: bool>(
        &self,
    ) -> Option<(u64, Self::InCells<'_, HAS_METADATA>)> {
        None
    }

    /// The next packet, if it is a message to a port in cells. Otherwise as
    /// [`Shortcut::peek_short`].
    #[inline(always)]
    fn peek_message(&self) -> Option<MessageInPlace<'_>> {
        None
    }

    /// A word of the data of the message that was last shown, by its number from 0 on, lowest byte
    /// first: anything beyond the data, and another one at each look, if its sender writes it
    /// anew.
    #[inline(always)]
    fn message_word(&self, number: usize) -> u64 {
        let _ = number;
        0
    }

    /// Copies the first bytes of the message that was last shown, of which it has at least as many.
    #[inline(always)]
    fn copy_message(&self, into: &mut [u8]) {
        let _ = into;
    }

    /// The message that was last shown is taken, which has so many bytes.
    #[inline(always)]
    fn message_done(&mut self, length_bytes: u16) {
        let _ = length_bytes;
    }

    /// Whether [`Shortcut::peek_short`] overlooks whatever is there: until
    /// [`ReceiveEnd::return_due_credit`] has been called, or for good.
    fn is_blind(&self) -> bool;

    /// The packet that was last shown in one cell is taken.
    fn short_done(&mut self);

    /// The packet that was last shown in so many cells is taken.
    #[inline(always)]
    fn cells_done(&mut self, cells: u64) {
        let _ = cells;
    }

    /// A copy of the next packet, if it lies in the duplex line and is a request that has its data
    /// in its cell. It stays the next one until [`Shortcut::request_done`]. May overlook a packet
    /// that the end itself finds, and does unless the packet before was in the line.
    #[inline(always)]
    fn peek_request(&self) -> Option<ShortRequest> {
        None
    }

    /// The request that was last shown is taken.
    fn request_done(&mut self) {}
}

/// Of a link that has none.
impl Shortcut for Infallible {
    type InCell<'a, const HAS_METADATA: bool> = InCell<'a, HAS_METADATA>;
    type InCells<'a, const HAS_METADATA: bool> = InCell<'a, HAS_METADATA>;

    fn peek_short<const HAS_METADATA: bool>(&self) -> Option<InCell<'_, HAS_METADATA>> {
        match *self {}
    }

    fn is_blind(&self) -> bool {
        match *self {}
    }

    fn short_done(&mut self) {
        match *self {}
    }
}

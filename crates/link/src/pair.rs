//! The link between two processes of a host: one ring in each direction.
//!
//! Each side makes the memory that it receives in; the other writes there. The
//! peer is trusted in nothing (ARCHITECTURE.md, trust): what it writes is checked by the ring
//! and by [`crate::cell::decode`], and the first thing that no correct peer does ends this
//! end, whose owner ends the other; and only this link.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hamlyn_engine::memory::{Part, Unsent};
use hamlyn_engine::operation::ShortRequest;
use hamlyn_engine::packet::{Header, PortAddress, Short};
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::Return;
use hamlyn_ring::Errno;
use hamlyn_ring::area::Area;
use hamlyn_ring::cells::{Laid, SharedLine};
use hamlyn_ring::doorbell::{Attention, Fence, Waker};
use hamlyn_ring::duplex::LineOrder;
use hamlyn_ring::forks::Uninherited;
use hamlyn_ring::geometry::Geometry;
use hamlyn_ring::memfd::Memfd;
use hamlyn_ring::overflow::{LogGeometry, LogNews, LogOptions, LogUse};
use hamlyn_ring::ready_bitmap::{READY_BITS_MAX, ReadyMarker, SharedBitmap};
use hamlyn_ring::shared::{Access, Mapping, OutOfRange};
use hamlyn_ring::wake::WakeWord;
use rustix::net::{SendFlags, send};

use crate::carrier::{
    Carried, InCell, InCells, Incoming, LinePart, Outgoing, Stopped, check_payload_max,
};
use crate::message_cell::MessageHead;
use crate::{
    Link, LinkError, LinkFault, MessageInPlace, ReceiveEnd, Refused, Shortcut, TransmitEnd,
};

/// Payload limit of a link that was not told otherwise.
pub const PAYLOAD_MAX_DEFAULT_BYTES: usize = 64 << 10;

/// What a link is made of.
pub struct PairParts {
    /// Our memory, in which the peer writes.
    pub receive: Mapping,
    /// Its layout.
    pub receive_geometry: Geometry,
    /// The peer's memory, in which we write.
    pub send: Mapping,
    /// The file of the peer's memory: more of its payload arena is reserved when it is needed.
    pub send_file: OwnedFd,
    /// Its layout.
    pub send_geometry: Geometry,
    /// The overflow log of our memory, into which the peer goes on, if there is one.
    pub receive_log: Option<(Mapping, LogGeometry)>,
    /// That of the peer's memory.
    pub send_log: Option<(Mapping, LogOptions)>,
    /// When this end writes the duplex line, which lies in the memory of the end that does so
    /// first.
    pub order: LineOrder,
    /// The ready bitmap of the peer.
    pub peer_bitmap: Mapping,
    /// The bit there that this end sets.
    pub bit_at_peer: u32,
    /// The bit that the peer sets in our ready bitmap.
    pub ready_bit: u32,
    /// Dropped with the receiving end: gives back that bit, and its part of what logs may take.
    pub lease: Option<Box<dyn Send>>,
    /// Who pays for the barrier of the sleep protocol.
    pub fence: Fence,
    /// A socket to the peer: a byte in it wakes a peer that does not wait at its word.
    pub doorbell: Uninherited,
    /// Largest payload of a packet, in either direction. The peer's memory must have
    /// [`Geometry::reserved`] for it.
    pub payload_max_bytes: usize,
}

/// A link to another process of this host, to another interface of this one, or
/// ([`PairLink::to_itself`]) to the same interface.
pub struct PairLink {
    /// What goes out.
    pub transmit: PairTransmit,
    /// What comes in.
    pub receive: PairReceive,
}

impl PairLink {
    /// A link over unused memory.
    pub fn new(parts: PairParts) -> Result<Self, LinkError> {
        let payload_max = parts.payload_max_bytes;
        check_payload_max(payload_max)?;
        let send = Arc::new(parts.send);
        let marker = ReadyMarker::new(
            SharedBitmap::new(Arc::new(parts.peer_bitmap))?,
            parts.bit_at_peer,
        );
        let waker = Waker::new(Arc::clone(&send), parts.send_geometry, parts.fence, marker)?;
        let file = Some(parts.send_file);
        let word = WakeWord::new(Arc::clone(&send), parts.send_geometry)?;
        let receive = Arc::new(parts.receive);
        let receives = (&receive, parts.receive_geometry);
        let sends = (&send, parts.send_geometry);
        let line_in = if parts.order == LineOrder::First {
            receives
        } else {
            sends
        };
        let [line_out, line] = line_parts(line_in, sends, receives, parts.order)?;
        let outgoing = Outgoing::new(
            Arc::clone(&send),
            parts.send_geometry,
            payload_max,
            file,
            line_out,
            parts
                .send_log
                .map(|(log, options)| (Arc::new(log), options)),
        )?;
        let attention = Attention::new(Arc::clone(&receive), parts.receive_geometry)?;
        let wake_word = WakeWord::new(Arc::clone(&receive), parts.receive_geometry)?;
        let log = parts.receive_log;
        let log = log.map(|(log, geometry)| (Arc::new(log), geometry));
        let incoming = Incoming::new(receive, parts.receive_geometry, payload_max, line, log)?;
        let doorbell = Arc::new(Doorbell::new(word, Notifier::Socket(parts.doorbell)));
        Ok(Self {
            transmit: PairTransmit {
                outgoing,
                waker,
                doorbell: Arc::clone(&doorbell),
            },
            receive: PairReceive {
                incoming,
                attention,
                wake_word,
                doorbell,
                ready_bit: parts.ready_bit,
                _lease: parts.lease,
                fault: None,
            },
        })
    }

    /// A link over new memory whose other end is the same interface. `event_fd` is an eventfd that
    /// ends the sleep of the thread that drives it, which need not be the sending thread, unless it
    /// waits at the link's word.
    pub fn to_itself(
        geometry: Geometry,
        payload_max_bytes: usize,
        fence: Fence,
        event_fd: OwnedFd,
    ) -> Result<Self, LinkError> {
        check_payload_max(payload_max_bytes)?;
        // A memory file, so that what is seldom needed is reserved when it is.
        let file = Memfd::create_ring("hamlyn-loopback", geometry, payload_max_bytes)?;
        let mapping = Arc::new(file.map(Access::Writable)?);
        let file = Some(file.into_fd());
        let wake_word = WakeWord::new(Arc::clone(&mapping), geometry)?;
        let doorbell = Arc::new(Doorbell::new(
            wake_word.clone(),
            Notifier::EventFd(event_fd),
        ));
        let pad = ReadyMarker::none();
        // One who answers itself has every line at hand.
        let laid = (&mapping, geometry);
        let [line_out, line] = line_parts(laid, laid, laid, LineOrder::Never)?;
        Ok(Self {
            transmit: PairTransmit {
                outgoing: Outgoing::new(
                    Arc::clone(&mapping),
                    geometry,
                    payload_max_bytes,
                    file,
                    line_out,
                    // One who sends to itself takes what it sent, or nobody does.
                    None,
                )?,
                waker: Waker::new(Arc::clone(&mapping), geometry, fence, pad)?,
                doorbell: Arc::clone(&doorbell),
            },
            receive: PairReceive {
                attention: Attention::new(Arc::clone(&mapping), geometry)?,
                wake_word,
                incoming: Incoming::new(mapping, geometry, payload_max_bytes, line, None)?,
                doorbell,
                ready_bit: READY_BITS_MAX,
                _lease: None,
                fault: None,
            },
        })
    }
}

/// The duplex line of an end, which lies in the first memory, for its two directions.
fn line_parts(
    line_in: Laid<'_>,
    sends: Laid<'_>,
    receives: Laid<'_>,
    order: LineOrder,
) -> Result<[LinePart; 2], OutOfRange> {
    let taken = Arc::<AtomicU64>::default();
    let part = |direction| {
        let line = SharedLine::new(line_in, direction)?;
        let taken = Arc::clone(&taken);
        Ok(LinePart { line, order, taken })
    };
    Ok([part(sends)?, part(receives)?])
}

impl Link for PairLink {
    type Transmit = PairTransmit;
    type Receive = PairReceive;

    fn split(self) -> (PairTransmit, PairReceive) {
        (self.transmit, self.receive)
    }
}

/// Wakes the peer.
struct Doorbell {
    /// At which it sleeps, as a rule.
    word: WakeWord,
    notifier: Notifier,
    /// The peer waits to be rung for, but that could not be done.
    is_owed: AtomicBool,
}

/// What a sleeper hears that does not wait at the word.
enum Notifier {
    /// A socket to it.
    Socket(Uninherited),
    /// Of an interface that is linked to itself: an eventfd.
    EventFd(OwnedFd),
}

impl Doorbell {
    fn new(word: WakeWord, notifier: Notifier) -> Self {
        Self {
            word,
            notifier,
            is_owed: AtomicBool::new(false),
        }
    }

    /// Rings. False if that failed; then the receiving end tries again whenever it returns credit:
    /// at each look at the link that finds nothing, and before a sleep.
    #[cold]
    #[inline(never)]
    fn ring(&self) -> bool {
        // Before ringing: the other half, in another thread, may find that its own ring fails
        // meanwhile.
        self.is_owed.swap(false, Ordering::AcqRel);
        let is_rung = self.try_ring();
        if !is_rung {
            self.is_owed.store(true, Ordering::Release);
        }
        is_rung
    }

    #[inline(always)]
    fn is_owed(&self) -> bool {
        self.is_owed.load(Ordering::Relaxed)
    }

    fn try_ring(&self) -> bool {
        if self.word.ring() {
            return true;
        }
        loop {
            let rung = match &self.notifier {
                Notifier::Socket(socket) => {
                    send(socket, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
                }
                Notifier::EventFd(event) => rustix::io::write(event, &1_u64.to_ne_bytes()),
            };
            match rung {
                Err(Errno::INTR) => {}
                // A full one has rings that were not yet heard: the peer will wake.
                // A closed one has nobody behind it.
                Ok(_) | Err(Errno::AGAIN | Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => {
                    return true;
                }
                Err(_) => return false,
            }
        }
    }
}

/// The transmitting end of a pair link.
pub struct PairTransmit {
    outgoing: Outgoing,
    waker: Waker,
    doorbell: Arc<Doorbell>,
}

impl PairTransmit {
    #[inline(always)]
    fn wake(&mut self) {
        if self.waker.must_ring() && !self.doorbell.ring() {
            self.waker.not_rung();
        }
    }
}

impl TransmitEnd for PairTransmit {
    #[inline]
    fn payload_max_bytes(&self) -> usize {
        self.outgoing.payload_max()
    }

    fn cells_bytes_max(&self) -> u64 {
        self.outgoing.cells_bytes_max()
    }

    #[inline(always)]
    fn try_send(
        &mut self,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Area>],
    ) -> Result<(), Unsent> {
        self.outgoing.try_send(header, metadata, parts)?;
        self.wake();
        Ok(())
    }

    #[inline(always)]
    fn try_send_short<M>(&mut self, short: M) -> bool
    where
        Short: From<M>,
    {
        let is_sent = self.outgoing.try_send_short(short).is_ok();
        if is_sent {
            self.wake();
        }
        is_sent
    }

    #[inline(always)]
    fn try_send_in_cells(&mut self, short: &Short, data: &[u8]) -> bool {
        let is_sent = self.outgoing.try_send_in_cells(short, data);
        if is_sent {
            self.wake();
        }
        is_sent
    }

    #[inline(always)]
    fn try_send_message(&mut self, to: &PortAddress, handler: u16, data: &[u8]) -> bool {
        let is_sent = self.outgoing.try_send_message(to, handler, data);
        if is_sent {
            self.wake();
        }
        is_sent
    }

    #[inline(always)]
    fn try_send_request(&mut self, request: &ShortRequest) -> bool {
        let is_sent = self.outgoing.try_send_request(request);
        if is_sent {
            self.wake();
        }
        is_sent
    }

    #[inline(always)]
    fn try_send_shorts(&mut self, next: impl FnMut() -> Option<Short>) -> usize {
        let count = self.outgoing.try_send_shorts(next);
        if count > 0 {
            self.wake();
        }
        count
    }

    fn fault(&self) -> Option<LinkFault> {
        self.outgoing.fault()
    }

    #[cold]
    fn await_credit(&mut self, is_needed: bool, fence: Option<u64>) {
        self.outgoing.await_credit(is_needed, fence);
    }

    #[cold]
    fn fence(&mut self) -> Result<u64, Unsent> {
        let (fence, is_sent) = self.outgoing.fence()?;
        if is_sent {
            self.wake();
        }
        Ok(fence)
    }

    fn is_answered(&mut self, fence: u64) -> Result<bool, Unsent> {
        self.outgoing.is_answered(fence)
    }

    fn may_be_answered(&self, fence: u64) -> bool {
        self.outgoing.may_be_answered(fence)
    }

    fn is_all_taken(&mut self) -> bool {
        self.outgoing.is_all_taken() == Ok(true)
    }

    fn refused(&mut self) -> Refused {
        self.outgoing.refused()
    }

    fn next_returned(&mut self) -> Option<(Header, Return)> {
        self.outgoing.next_returned()
    }

    fn forgotten(&self) -> u64 {
        self.outgoing.missed()
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn credit_came(&self) -> bool {
        self.outgoing.credit_came()
    }

    #[cold]
    fn give_back(&mut self) -> usize {
        if self.outgoing.is_in_log() {
            self.outgoing.end_idle_episode();
            self.wake();
        }
        0
    }

    fn has_spare(&self) -> bool {
        self.outgoing.is_in_log()
    }

    fn log_use(&mut self) -> Option<LogUse> {
        self.outgoing.log_use()
    }

    fn overflow_due_ns(&self) -> Option<u64> {
        self.outgoing.overflow_due_ns()
    }

    fn press(&mut self) -> bool {
        self.outgoing.press()
    }

    fn reserve(&mut self) {
        self.outgoing.reserve();
    }

    fn sent(&self) -> u64 {
        self.outgoing.sent()
    }
}

/// The receiving end of a pair link.
pub struct PairReceive {
    incoming: Incoming,
    attention: Attention,
    wake_word: WakeWord,
    doorbell: Arc<Doorbell>,
    ready_bit: u32,
    _lease: Option<Box<dyn Send>>,
    /// The first fault; nothing comes out of this end from then on.
    fault: Option<LinkFault>,
}

impl PairReceive {
    /// The word at which the receiver of this link may sleep.
    pub fn wake_word(&self) -> &WakeWord {
        &self.wake_word
    }

    #[inline(always)]
    fn ring_if(&mut self, rings: bool) {
        if rings {
            self.doorbell.ring();
        }
    }

    #[inline(always)]
    fn receive_by<R>(
        &mut self,
        take: impl FnOnce(&Header, &Carried<'_>) -> R,
        refusal_of: impl FnOnce(&R) -> Option<Refusal>,
    ) -> Result<Option<R>, LinkFault> {
        if self.incoming.is_credit_due() {
            self.return_due_credit();
        }
        let found = loop {
            match self.incoming.next() {
                Ok(found) => break found,
                Err(Stopped::Message(head)) => {
                    return self.receive_message(head, take, refusal_of).map(Some);
                }
                Err(Stopped::Passed { rings }) => self.pass(rings),
                Err(Stopped::Fault(fault)) => return Err(self.condemn(fault)),
            }
        };
        let Some(found) = found else {
            return Ok(None);
        };
        let (result, rings) = self.incoming.take(found, take, refusal_of);
        self.ring_if(rings);
        Ok(Some(result))
    }

    /// Apart, so that the way of other packets stays short.
    #[inline(never)]
    fn receive_message<R>(
        &mut self,
        head: MessageHead,
        take: impl FnOnce(&Header, &Carried<'_>) -> R,
        refusal_of: impl FnOnce(&R) -> Option<Refusal>,
    ) -> Result<R, LinkFault> {
        let found = self.incoming.message(head);
        let found = found.map_err(|fault| self.condemn(fault))?;
        let (result, rings) = self.incoming.take(found, take, refusal_of);
        self.ring_if(rings);
        Ok(result)
    }

    /// What came was no packet. Several in a row break the rules, so this ends.
    #[cold]
    #[inline(never)]
    fn pass(&mut self, rings: bool) {
        self.ring_if(rings);
        self.return_due_credit();
    }

    #[cold]
    #[inline(never)]
    fn condemn(&mut self, fault: LinkFault) -> LinkFault {
        self.incoming.close();
        *self.fault.get_or_insert(fault)
    }
}

impl Shortcut for PairReceive {
    type InCell<'a, const HAS_METADATA: bool> = InCell<'a, HAS_METADATA>;
    type InCells<'a, const HAS_METADATA: bool> = InCells<'a, HAS_METADATA>;

    #[inline(always)]
    fn peek_short<const HAS_METADATA: bool>(&self) -> Option<InCell<'_, HAS_METADATA>> {
        self.incoming.peek_short()
    }

    #[inline(always)]
    fn next_in_cells(&self) -> Option<bool> {
        self.incoming.next_in_cells()
    }

    #[inline(always)]
    fn peek_in_cells<const HAS_METADATA: bool>(&self) -> Option<(u64, InCells<'_, HAS_METADATA>)> {
        self.incoming.peek_in_cells()
    }

    #[inline(always)]
    fn peek_message(&self) -> Option<MessageInPlace<'_>> {
        self.incoming.peek_message()
    }

    #[inline(always)]
    fn message_word(&self, number: usize) -> u64 {
        self.incoming.message_word(number)
    }

    #[inline(always)]
    fn copy_message(&self, into: &mut [u8]) {
        self.incoming.copy_message(into);
    }

    #[inline(always)]
    fn message_done(&mut self, length_bytes: u16) {
        self.incoming.message_done(length_bytes);
    }

    #[inline(always)]
    fn is_blind(&self) -> bool {
        self.incoming.is_blind()
    }

    #[inline(always)]
    fn short_done(&mut self) {
        self.incoming.short_done();
    }

    #[inline(always)]
    fn cells_done(&mut self, cells: u64) {
        self.incoming.cells_done(cells);
    }

    #[inline(always)]
    fn peek_request(&self) -> Option<ShortRequest> {
        self.incoming.peek_request()
    }

    #[inline(always)]
    fn request_done(&mut self) {
        self.incoming.request_done();
    }
}

impl ReceiveEnd for PairReceive {
    type Payload<'a> = Carried<'a>;

    type Shortcut = Self;

    #[inline(always)]
    fn shortcut(&mut self) -> Option<&mut Self> {
        Some(self)
    }

    #[inline]
    fn return_due_credit(&mut self) -> bool {
        let returned = self.incoming.return_due_credit();
        self.ring_if(returned == Some(true));
        returned.is_some()
    }

    #[inline]
    fn taken(&self) -> u64 {
        self.incoming.taken()
    }

    #[inline]
    fn receive<R>(
        &mut self,
        take: impl FnOnce(&Header, &Carried<'_>) -> R,
    ) -> Result<Option<R>, LinkFault> {
        let mut take = Some(take);
        let mut take_once = |header: &Header, payload: &Carried<'_>| {
            let take = take.take();
            take.map(|take| take(header, payload))
        };
        let taken = match self.receive_by(&mut take_once, |_| None)? {
            Some(taken) => Some(taken),
            None => {
                let from_line = self.incoming.take_from_line(take_once, |_| None);
                from_line.map_err(|fault| self.condemn(fault))?
            }
        };
        Ok(taken.flatten())
    }

    #[inline]
    fn receive_or_refuse<R>(
        &mut self,
        take: impl FnOnce(&Header, &Carried<'_>) -> Result<R, Refusal>,
    ) -> Result<Option<Result<R, Refusal>>, LinkFault> {
        self.receive_by(take, |result| result.as_ref().err().copied())
    }

    #[inline]
    fn receive_from_line<R>(
        &mut self,
        take: impl FnOnce(&Header, &Carried<'_>) -> Result<R, Refusal>,
    ) -> Result<Option<Result<R, Refusal>>, LinkFault> {
        let refusal_of = |result: &Result<R, Refusal>| result.as_ref().err().copied();
        let taken = self.incoming.take_from_line(take, refusal_of);
        taken.map_err(|fault| self.condemn(fault))
    }

    #[inline]
    fn is_pending(&self) -> bool {
        self.incoming.is_pending()
    }

    #[inline]
    fn return_credit(&mut self) {
        let rings = self.incoming.return_credit();
        self.ring_if(rings || self.doorbell.is_owed());
    }

    #[inline]
    fn return_arena_credit(&mut self) {
        self.return_due_credit();
        let rings = self.incoming.return_arena_credit();
        self.ring_if(rings || self.doorbell.is_owed());
    }

    fn log_news(&mut self) -> Option<LogNews> {
        self.incoming.log_news()
    }

    fn reserve(&mut self) {
        self.incoming.reserve();
    }

    fn owes_ring(&self) -> bool {
        self.doorbell.is_owed()
    }

    fn ready_bit(&self) -> u32 {
        self.ready_bit
    }

    #[inline]
    fn suppress_events(&mut self) {
        self.attention.suppress_events();
    }

    #[cold]
    fn enable_events(&mut self) -> bool {
        // An interface sets no ready bits for itself.
        if let Notifier::EventFd(_) = self.doorbell.notifier {
            return false;
        }
        self.attention.enable_events();
        true
    }

    #[cold]
    fn announce_sleep(&mut self) {
        self.attention.sleep();
    }
}

#[cfg(test)]
mod cells_tests;
#[cfg(test)]
mod fence_tests;
#[cfg(test)]
mod line_tests;
#[cfg(test)]
mod loopback_tests;
#[cfg(test)]
mod message_tests;
#[cfg(test)]
mod overflow_tests;
#[cfg(test)]
mod tests;

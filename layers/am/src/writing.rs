//! Bytes on their way into a slot of a peer: by ordinary messages, each of them one packet, from
//! where the bytes lie.
//!
//! A packet may be refused, as its slot was closed. The next message tells whether it was, and
//! nobody needs to hear of each refusal; but refusals of requests and answers must not be lost
//! among them. So a link has no more such packets under way than it keeps refusals beside those.

use std::time::Duration;

use hamlyn::engine::memory::LinkId;
use hamlyn::{Area, Host, Message, Placing, SendError, Session, Target};

use crate::wire::RECORDS;

/// Time after which what found no room is tried again, if nothing has woken it before.
pub(crate) const ROOM: Duration = Duration::from_millis(1);
/// Packets and bytes for one slot that are sent in one go, so that other messages have their turn.
const PACKETS_PER_TURN: u32 = 16;
const BYTES_PER_TURN: u64 = 1 << 20;
/// Packets under way over a link that keeps many refusals.
const PACKETS_MAX: u64 = 512;
/// Refusals of anything else that a link may have: of requests, answers, and one message of credits.
const OTHERS_MAX: u64 = 2 * RECORDS as u64 + 1;
/// Refusals that any link keeps ([`hamlyn::Interface::undelivered_kept`]).
const KEPT_LEAST: u64 = 63;
/// Packets with data under way over such a link.
const WINDOW_LEAST: u64 = 14;
const _: () = assert!(
    OTHERS_MAX + WINDOW_LEAST <= KEPT_LEAST,
    "refusals of requests would be lost among those of data: have fewer records"
);

/// Packets with data that were sent over a link, and how far they are known to have been taken, or
/// refused.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    sent: u64,
    known: u64,
    /// Those before the fence that is under way.
    asked: Option<u64>,
    /// A fence is to tell of more.
    pub(crate) is_wanted: bool,
    /// Nobody takes any more. The end of the link is known later.
    is_gone: bool,
}

impl Delivery {
    /// True if a fence of the link is under way.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// A fence has begun.
    pub(crate) fn ask(&mut self) {
        self.asked = Some(self.sent);
        self.is_wanted = false;
    }

    /// The fence has ended, well or not.
    pub(crate) fn answered(&mut self, is_gone: bool) {
        self.is_gone |= is_gone;
        if let Some(asked) = self.asked.take() {
            self.known_until(asked);
        }
    }

    /// Packets up to that number were taken, or refused.
    pub(crate) fn known_until(&mut self, number: u64) {
        self.known = self.known.max(number);
    }
}

/// The bytes that are written.
pub(crate) enum Source<'a> {
    Bytes(&'a [u8]),
    /// Those of an area from an offset on, by way of memory for one packet.
    Area(&'a Area, u64, &'a mut Vec<u8>),
}

impl Source<'_> {
    /// Bytes of those left that are at hand in one piece.
    fn at_hand(&self, left_bytes: u64, packet_bytes: u64) -> u64 {
        match self {
            Self::Bytes(_) => left_bytes,
            Self::Area(..) => left_bytes.min(packet_bytes),
        }
    }

    /// So many bytes at an offset. Nothing if they are not there.
    fn piece(&mut self, at: u64, length_bytes: usize) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => bytes.get(at as usize..at as usize + length_bytes),
            Self::Area(area, from, scratch) => {
                if scratch.len() < length_bytes {
                    scratch.resize(length_bytes, 0);
                }
                let piece = &mut scratch[..length_bytes];
                area.read_at(*from + at, piece).ok()?;
                Some(piece)
            }
        }
    }
}

/// Progress of a writing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// It goes on when the link has room, or has told of what was sent.
    Waits,
    /// All bytes are sent. It is not known yet that they are in their place.
    Sent,
    /// A message that is sent now comes after them.
    Done,
    /// Nobody is there.
    Gone,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Writing {
    target: Target,
    offset: u64,
    length_bytes: u64,
    sent_bytes: u64,
    /// The number of its last packet.
    last: u64,
    keeps_order: bool,
}

impl Writing {
    /// Begins to write so many bytes at an offset of the target's place.
    pub(crate) fn new(target: Target, offset: u64, length_bytes: u64) -> Self {
        Self {
            target,
            offset,
            length_bytes,
            sent_bytes: 0,
            last: 0,
            keeps_order: false,
        }
    }

    pub(crate) fn link(&self) -> LinkId {
        self.target.link()
    }

    /// True if it goes to that slot.
    pub(crate) fn is_to(&self, link: LinkId, slot: u32) -> bool {
        self.link() == link && self.target.ticket().slot.to_bits() == slot
    }

    /// The rest is not sent.
    pub(crate) fn give_up(&mut self) {
        self.sent_bytes = self.length_bytes;
    }

    /// The message after it was answered, or refused: so all of it was taken, or refused.
    pub(crate) fn was_followed(&self, delivery: &mut Delivery) {
        if self.keeps_order {
            delivery.known_until(self.last);
        }
    }

    /// Sends the next bytes: how many, or nothing if there is no room.
    fn send_next<H: Host>(
        &self,
        session: &mut Session<'_, H>,
        source: &mut Source<'_>,
    ) -> Result<Option<u64>, SendError> {
        let terminus = session.terminus();
        let packet_bytes = session.packet_bytes_max(self.link()).unwrap_or(1).max(1) as u64;
        let left_bytes = self.length_bytes - self.sent_bytes;
        let length = source.at_hand(left_bytes, packet_bytes).min(BYTES_PER_TURN);
        if length > packet_bytes
            && let Some(piece) = source.piece(self.sent_bytes, length as usize)
        {
            let message = Message::new(piece).at(self.offset + self.sent_bytes);
            match session.try_place(terminus, &self.target, &message)? {
                Placing::Sent(_) => return Ok(Some(length)),
                Placing::Full => return Ok(None),
                Placing::NotAttached => {}
            }
        }
        let length = packet_bytes.min(left_bytes);
        let Some(piece) = source.piece(self.sent_bytes, length as usize) else {
            return Ok(None);
        };
        let message = Message::new(piece).at(self.offset + self.sent_bytes);
        let sent = session.try_send(terminus, &self.target, &message)?;
        Ok(sent.map(|_| length))
    }

    /// Sends packets as long as there is room, a turn at most. Does not block.
    pub(crate) fn advance<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        delivery: &mut Delivery,
        source: &mut Source<'_>,
    ) -> Result<Progress, SendError> {
        let link = self.link();
        let kept = session.undelivered_kept(link).unwrap_or(u64::MAX);
        let window = kept.saturating_sub(OTHERS_MAX).clamp(1, PACKETS_MAX);
        self.keeps_order = session.keeps_order(link);
        if delivery.is_gone || session.link_end(link).is_some() {
            return Ok(Progress::Gone);
        }
        let mut packets = 0;
        let turn_end = self.sent_bytes + BYTES_PER_TURN;
        while self.sent_bytes < self.length_bytes {
            let under_way = delivery.sent - delivery.known;
            delivery.is_wanted |= under_way >= window.div_ceil(2);
            let is_turn_over = packets == PACKETS_PER_TURN || self.sent_bytes >= turn_end;
            if under_way >= window {
                return Ok(Progress::Waits);
            }
            if is_turn_over {
                // Nothing need happen before it can go on.
                session.look_within(Duration::ZERO);
                return Ok(Progress::Waits);
            }
            let Some(length) = self.send_next(session, source)? else {
                return Ok(Progress::Waits);
            };
            self.sent_bytes += length;
            delivery.sent += 1;
            self.last = delivery.sent;
            packets += 1;
        }
        if self.keeps_order || delivery.known >= self.last {
            return Ok(Progress::Done);
        }
        delivery.is_wanted = true;
        Ok(Progress::Sent)
    }
}

//! The peers of a node, one for each link: requests that are outstanding there, requests of theirs,
//! and where answers go.

use std::rc::Rc;

use hamlyn::engine::memory::LinkId;
use hamlyn::{Destination, Target};

use crate::name::{Introduction, Name};
use crate::spares::Spares;
use crate::wire::{CREDITS_BYTES, Category, Kept, RECORDS, ROOM_BYTES, Stamp, list_message};
use crate::writing::Delivery;

/// Endpoints of a peer whose names are known, at a time: by the low bits of their numbers.
const SOURCES: usize = 256;

/// An endpoint of this node: its number, and the use of that.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct EndpointId {
    pub(crate) index: u16,
    pub(crate) uses: u32,
}

impl EndpointId {
    /// The number of its port in a set of ports.
    pub(crate) fn member(self) -> u64 {
        u64::from(self.index) | u64::from(self.uses) << 16
    }

    /// That with such a number.
    pub(crate) fn of_member(member: u64) -> Self {
        Self {
            index: member as u16,
            uses: (member >> 16) as u32,
        }
    }
}

/// State of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RecordState {
    Free,
    /// Sent; its answer is awaited.
    Outstanding,
    /// Refused, so the peer has not taken it; to be sent again, or to come back.
    Refused,
    /// Its answer came, and waits for the poll of its bundle.
    Answered,
    /// Its reply was rejected; that is to be told to the replier, which then gives the record back.
    Rejecting,
}

impl RecordState {
    /// Its answer is awaited. One that was refused may be taken by a peer that lies about that.
    #[inline]
    pub(crate) fn is_awaited(self) -> bool {
        matches!(self, Self::Outstanding | Self::Refused)
    }
}

/// A request that is outstanding.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) state: RecordState,
    uses: u8,
    pub(crate) message: Kept,
    pub(crate) endpoint: EndpointId,
    /// The number of its translation.
    pub(crate) translation: u32,
    /// The keys that were refused: that of its tag, and that of any tag.
    pub(crate) is_refused_with: [bool; 2],
    /// It was sent with the key of any tag.
    pub(crate) is_any: bool,
    /// When it was first refused for want of room, and how long the next pause is.
    pub(crate) refusals: Pauses,
    /// The transfer of which it is a part.
    pub(crate) transfer: Option<u32>,
    /// Why its reply is rejected.
    pub(crate) reason: u8,
}

/// Refusals of a message, and when it is sent again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pauses {
    since_ns: Option<u64>,
    pause_ns: u64,
    /// There is room since it was sent.
    is_hinted: bool,
}

/// The first and the longest pause before a message is sent again.
const PAUSE_MIN_NS: u64 = 2_000;
const PAUSE_MAX_NS: u64 = 1_000_000;
/// The longest one where a hint is awaited.
const HINT_PAUSE_MAX_NS: u64 = 32_000_000;

impl Pauses {
    /// It is said that there is room: pauses are short again, and the next refusal, which came
    /// before, is none.
    pub(crate) fn hint(&mut self) {
        self.pause_ns = 0;
        self.is_hinted = true;
    }

    /// True if there is room since it was sent.
    pub(crate) fn is_hinted(&self) -> bool {
        self.is_hinted
    }

    /// It is sent again. True if it was said that there is room.
    pub(crate) fn take_hint(&mut self) -> bool {
        std::mem::take(&mut self.is_hinted)
    }

    /// It was refused: when it is sent again; nothing if it was refused for too long.
    pub(crate) fn refused(&mut self, now_ns: u64, most_ns: u64) -> Option<u64> {
        self.pause(now_ns, most_ns, PAUSE_MIN_NS..=PAUSE_MAX_NS)
    }

    /// The same of one that is refused as its endpoint is not resident. Its sender is told when it
    /// is, so it is not sent again soon, but in case that this is lost.
    pub(crate) fn not_resident(&mut self, now_ns: u64, most_ns: u64) -> Option<u64> {
        self.pause(now_ns, most_ns, PAUSE_MAX_NS..=HINT_PAUSE_MAX_NS)
    }

    fn pause(
        &mut self,
        now_ns: u64,
        most_ns: u64,
        pauses_ns: std::ops::RangeInclusive<u64>,
    ) -> Option<u64> {
        let since_ns = *self.since_ns.get_or_insert(now_ns);
        if now_ns.saturating_sub(since_ns) >= most_ns {
            return None;
        }
        if self.is_hinted {
            return Some(now_ns);
        }
        let (least_ns, longest_ns) = pauses_ns.into_inner();
        self.pause_ns = (self.pause_ns * 2).clamp(least_ns, longest_ns);
        Some(now_ns.saturating_add(self.pause_ns))
    }
}

/// A request that was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    pub(crate) endpoint: EndpointId,
    pub(crate) translation: u32,
    pub(crate) transfer: Option<u32>,
}

/// A request that came back.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) state: RecordState,
    pub(crate) message: Kept,
    pub(crate) endpoint: EndpointId,
    pub(crate) translation: u32,
    pub(crate) transfer: Option<u32>,
}

/// The requests that are outstanding at a peer.
#[derive(Debug)]
pub(crate) struct Records {
    free: u32,
    records: Vec<Record>,
    spares: Rc<Spares>,
}

impl Record {
    /// True if it is not free, and in that use.
    #[inline]
    fn is_of(&self, stamp: Stamp) -> bool {
        self.uses == stamp.uses() && self.state != RecordState::Free
    }
}

impl Records {
    fn new(uses: u8, spares: Rc<Spares>) -> Self {
        let record = || Record {
            state: RecordState::Free,
            uses,
            message: Kept::new(),
            endpoint: EndpointId::default(),
            translation: 0,
            is_refused_with: [false; 2],
            is_any: false,
            refusals: Pauses::default(),
            transfer: None,
            reason: 0,
        };
        Self {
            free: (1 << RECORDS) - 1,
            records: (0..RECORDS).map(|_| record()).collect(),
            spares,
        }
    }

    /// A free record, which stays free until [`Records::take`].
    #[inline]
    pub(crate) fn next_free(&mut self) -> Option<(Stamp, &mut Record)> {
        let number = self.free.trailing_zeros() as usize;
        let record = self.records.get_mut(number)?;
        Some((Stamp::new(number, record.uses), record))
    }

    /// The record is outstanding.
    #[inline]
    pub(crate) fn take(&mut self, stamp: Stamp) {
        self.free &= !(1 << stamp.number());
        if let Some(record) = self.records.get_mut(stamp.number()) {
            record.state = RecordState::Outstanding;
            record.is_refused_with = [false; 2];
            record.refusals = Pauses::default();
        }
    }

    /// The record with that stamp, unless it is free or of another use.
    #[inline]
    pub(crate) fn get(&mut self, stamp: Stamp) -> Option<&mut Record> {
        let record = self.records.get_mut(stamp.number())?;
        record.is_of(stamp).then_some(record)
    }

    /// The same, to be looked at.
    pub(crate) fn peek(&self, stamp: Stamp) -> Option<&Record> {
        let record = self.records.get(stamp.number())?;
        record.is_of(stamp).then_some(record)
    }

    /// Frees a record. Its use is over, unless the peer never took the request: it knows a use by
    /// nothing but the number, of which there are few.
    pub(crate) fn free(&mut self, stamp: Stamp) {
        self.answered(stamp);
    }

    /// The same; the parts that the end of a request needs.
    #[inline]
    pub(crate) fn answered(&mut self, stamp: Stamp) -> Option<Answered> {
        let record = self.records.get_mut(stamp.number())?;
        if !record.is_of(stamp) {
            return None;
        }
        if record.state != RecordState::Refused {
            record.uses = record.uses.wrapping_add(1) & 127;
        }
        record.state = RecordState::Free;
        record.message.clear(&self.spares);
        let answered = Answered {
            endpoint: record.endpoint,
            translation: record.translation,
            transfer: record.transfer,
        };
        self.free |= 1 << stamp.number();
        Some(answered)
    }

    /// Frees a record; what was in it.
    pub(crate) fn end(&mut self, stamp: Stamp) -> Option<Ended> {
        let record = self.get(stamp)?;
        let ended = Ended {
            state: record.state,
            message: std::mem::replace(&mut record.message, Kept::new()),
            endpoint: record.endpoint,
            translation: record.translation,
            transfer: record.transfer,
        };
        self.free(stamp);
        Some(ended)
    }

    /// All that are not free.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Record> {
        let records = self.records.iter_mut();
        records.filter(|record| record.state != RecordState::Free)
    }

    /// Stamps of all that are not free.
    pub(crate) fn stamps(&self) -> impl Iterator<Item = Stamp> {
        let used = self.records.iter().enumerate();
        let used = used.filter(|(_, record)| record.state != RecordState::Free);
        used.map(|(number, record)| Stamp::new(number, record.uses))
    }
}

/// State of a request of the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ServedState {
    /// None came yet.
    Never,
    /// Its handler runs, or has deferred the reply.
    Open,
    /// Answered by an empty reply.
    Empty,
    /// Answered by a message that is kept, and was sent.
    Sent,
    /// By one that is to be sent, or sent again.
    Unsent,
}

/// A request of the peer, by its record there.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) state: ServedState,
    uses: u8,
    /// The endpoint that it was for.
    pub(crate) endpoint: EndpointId,
    /// The answer, until the peer uses its record again.
    pub(crate) answer: Kept,
    pub(crate) refusals: Pauses,
}

impl Served {
    pub(crate) fn is_of(&self, stamp: Stamp) -> bool {
        self.state != ServedState::Never && self.uses == stamp.uses()
    }
}

/// The requests of a peer.
#[derive(Debug)]
pub(crate) struct ServedTable {
    requests: Vec<Served>,
    spares: Rc<Spares>,
    /// Those that were answered by empty replies which were not told yet, a bit for each record;
    /// and how many.
    credits: u32,
    credits_owed: u32,
    /// Refusals of those in a row.
    pub(crate) credit_refusals: Pauses,
}

impl ServedTable {
    fn new(spares: Rc<Spares>) -> Self {
        let served = || Served {
            state: ServedState::Never,
            uses: 0,
            endpoint: EndpointId::default(),
            answer: Kept::new(),
            refusals: Pauses::default(),
        };
        Self {
            requests: (0..RECORDS).map(|_| served()).collect(),
            spares,
            credits: 0,
            credits_owed: 0,
            credit_refusals: Pauses::default(),
        }
    }

    /// A request comes. Nothing if that cannot be: its record has no other use yet, or none at all.
    #[inline]
    pub(crate) fn admit(&mut self, stamp: Stamp) -> Option<&mut Served> {
        let served = self.requests.get_mut(stamp.number())?;
        let is_repeated = served.state != ServedState::Never && served.uses == stamp.uses();
        if served.state == ServedState::Open || is_repeated {
            return None;
        }
        served.state = ServedState::Open;
        served.uses = stamp.uses();
        served.refusals = Pauses::default();
        Some(served)
    }

    /// The request with that stamp.
    pub(crate) fn get(&mut self, stamp: Stamp) -> Option<&mut Served> {
        let served = self.requests.get_mut(stamp.number())?;
        served.is_of(stamp).then_some(served)
    }

    /// Answers a request by an empty reply. True if no other one was to be told.
    #[inline]
    pub(crate) fn answer_empty(&mut self, stamp: Stamp) -> bool {
        let served = self.requests.get_mut(stamp.number());
        let Some(served) = served.filter(|served| served.is_of(stamp)) else {
            return false;
        };
        served.state = ServedState::Empty;
        served.answer.clear(&self.spares);
        let is_first = self.credits == 0;
        if is_first {
            self.credit_refusals = Pauses::default();
        }
        self.owe(stamp.number());
        is_first
    }

    /// The number of empty replies that were not told yet.
    #[inline]
    pub(crate) fn credits_owed(&self) -> u32 {
        self.credits_owed
    }

    #[inline]
    fn owe(&mut self, number: usize) {
        self.credits_owed += u32::from(self.credits >> number & 1 == 0);
        self.credits |= 1 << number;
    }

    /// The message that tells them, and its length.
    pub(crate) fn credits_message(&self) -> ([u8; CREDITS_BYTES], usize) {
        let mut owed = self.credits;
        let stamps = std::iter::from_fn(|| {
            loop {
                let number = owed.trailing_zeros() as usize;
                let served = self.requests.get(number)?;
                owed &= owed - 1;
                // Its record has another use by now: the peer knew of the one before.
                if served.state == ServedState::Empty {
                    return Some(Stamp::new(number, served.uses).bits().to_le_bytes());
                }
            }
        });
        list_message(Category::Credits, stamps)
    }

    /// They were told.
    pub(crate) fn credits_told(&mut self) {
        (self.credits, self.credits_owed) = (0, 0);
    }

    /// Credits were refused: all empty replies are told once more. One that the peer knows already
    /// names a use of its record that is over, and has no effect; or it is not named, as the record
    /// has its next use.
    pub(crate) fn tell_credits_again(&mut self) {
        for number in 0..RECORDS {
            if self.requests[number].state == ServedState::Empty {
                self.owe(number);
            }
        }
    }
}

/// A name that a peer introduced.
#[derive(Clone, Copy, Debug)]
struct Source {
    endpoint: u16,
    introduction: Introduction,
}

/// A peer, as long as its link lasts.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) link: LinkId,
    pub(crate) records: Option<Box<Records>>,
    pub(crate) served: Option<Box<ServedTable>>,
    /// Target of answers, once the peer has introduced itself.
    pub(crate) replies: Option<Target>,
    pub(crate) known: Known,
    /// Messages were sent since the last fence.
    pub(crate) is_unfenced: bool,
    /// Ports that have room again and refused something of it, as many as it has records; it is
    /// told when it has heeded what it was told last.
    pub(crate) rooms: Vec<u32>,
    pub(crate) is_hinted: bool,
    /// Data that were written into slots of it.
    pub(crate) delivery: Delivery,
    first_use: u8,
    spares: Rc<Spares>,
}

/// Knowledge of a peer.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The interface at the other end, for which the link vouches.
    pub(crate) interface: Option<Destination>,
    /// The number of the own host, or 0.
    host: u32,
    /// Its word for where its answers go, until there is a target.
    pub(crate) introduced: Option<Introduction>,
    sources: Vec<Option<Source>>,
}

impl Peer {
    /// The requests that are outstanding there. Allocates the first time.
    #[inline]
    pub(crate) fn records(&mut self) -> &mut Records {
        let Self {
            records,
            first_use,
            spares,
            ..
        } = self;
        records.get_or_insert_with(|| Box::new(Records::new(*first_use, Rc::clone(spares))))
    }

    /// A request that is outstanding there.
    #[inline]
    pub(crate) fn record(&mut self, stamp: Stamp) -> Option<&mut Record> {
        self.records.as_mut()?.get(stamp)
    }

    /// A request of the peer.
    #[inline]
    pub(crate) fn request(&mut self, stamp: Stamp) -> Option<&mut Served> {
        self.served.as_mut()?.get(stamp)
    }

    /// A port that refused something of the peer has room again.
    pub(crate) fn has_room(&mut self, port: u32) {
        if self.rooms.len() < RECORDS && !self.rooms.contains(&port) {
            self.rooms.push(port);
        }
    }

    /// The message that tells it so, and its length.
    pub(crate) fn room_message(&self) -> ([u8; ROOM_BYTES], usize) {
        list_message(
            Category::Room,
            self.rooms.iter().map(|port| port.to_le_bytes()),
        )
    }

    /// The requests of the peer. Allocates the first time.
    #[inline]
    pub(crate) fn served(&mut self) -> &mut ServedTable {
        let Self { served, spares, .. } = self;
        served.get_or_insert_with(|| Box::new(ServedTable::new(Rc::clone(spares))))
    }
}

impl Known {
    /// One of its endpoints introduces itself. It may say anything of itself, and nothing of
    /// others: names that follow lead over this link. True if it says anew where answers go.
    pub(crate) fn introduce(&mut self, endpoint: u16, introduction: Introduction) -> bool {
        let before = self.introduced.replace(introduction);
        let is_new = before.is_none_or(|before| !before.has_replies_of(&introduction));
        let place = usize::from(endpoint) % SOURCES;
        if self.sources.len() <= place {
            self.sources.resize(place + 1, None);
        }
        self.sources[place] = Some(Source {
            endpoint,
            introduction,
        });
        is_new
    }

    /// The name of one of its endpoints, if that was introduced and is not forgotten.
    pub(crate) fn name_of(&self, endpoint: u16) -> Option<Name> {
        let source = self
            .sources
            .get(usize::from(endpoint) % SOURCES)?
            .as_ref()?;
        let introduction = (source.endpoint == endpoint).then_some(source.introduction)?;
        let mut interface = self.interface?;
        if interface.node == 0 {
            // As its own name says it, which other hosts can use.
            interface.node = self.host;
        }
        Some(Name::new(interface, introduction))
    }
}

/// True if a link came to its place after the other one.
fn is_newer(link: LinkId, other: LinkId) -> bool {
    let ahead = link.generation.wrapping_sub(other.generation);
    (1..1 << 31).contains(&ahead)
}

/// The peer of a link whose place is another's.
#[cold]
fn former(former: &mut [Peer], link: LinkId) -> Option<&mut Peer> {
    former.iter_mut().find(|peer| peer.link == link)
}

/// All peers, by the places of their links.
#[derive(Debug)]
pub(crate) struct Peers {
    peers: Vec<Option<Box<Peer>>>,
    /// Those whose places have newer links, until what came over theirs was taken.
    former: Vec<Peer>,
    /// Those whose links ended, with what was outstanding.
    pub(crate) gone: Vec<Peer>,
    /// Links may have ended.
    pub(crate) may_be_lost: bool,
    /// The number of the own host, or 0.
    host: u32,
    first_use: u8,
    spares: Rc<Spares>,
}

impl Peers {
    pub(crate) fn new(host: u32, spares: Rc<Spares>) -> Self {
        Self {
            peers: Vec::new(),
            former: Vec::new(),
            gone: Vec::new(),
            may_be_lost: false,
            host,
            first_use: 0,
            spares,
        }
    }

    /// The peer of that link. Nothing if its place has a newer link and it was seen to its end.
    /// Allocates when a link is first seen.
    #[inline]
    pub(crate) fn enter(&mut self, link: LinkId) -> Option<&mut Peer> {
        let at = link.index as usize;
        match self.peers.get(at) {
            Some(Some(peer)) if peer.link == link => {}
            Some(Some(peer)) if is_newer(peer.link, link) => return self.get(link),
            _ => self.insert(link),
        }
        self.peers[at].as_deref_mut()
    }

    #[cold]
    fn insert(&mut self, link: LinkId) {
        let at = link.index as usize;
        if self.peers.len() <= at {
            self.peers.resize_with(at + 1, || None);
        }
        // An answer that comes late over a former link is of no use of a record here.
        self.first_use = self.first_use.wrapping_add(61) & 127;
        let peer = Box::new(Peer {
            link,
            records: None,
            served: None,
            replies: None,
            known: Known {
                host: self.host,
                ..Known::default()
            },
            is_unfenced: false,
            rooms: Vec::new(),
            is_hinted: false,
            delivery: Delivery::default(),
            first_use: self.first_use,
            spares: Rc::clone(&self.spares),
        });
        let before = self.peers[at].replace(peer);
        self.may_be_lost |= before.is_some();
        self.former.extend(before.map(|peer| *peer));
    }

    /// The peer of that link, if it has one.
    #[inline]
    pub(crate) fn get(&mut self, link: LinkId) -> Option<&mut Peer> {
        match self.peers.get_mut(link.index as usize) {
            Some(Some(peer)) if peer.link == link => Some(peer),
            _ => former(&mut self.former, link),
        }
    }

    /// A request that is outstanding at the peer of that link.
    #[inline]
    pub(crate) fn record(&mut self, link: LinkId, stamp: Stamp) -> Option<&mut Record> {
        self.get(link)?.record(stamp)
    }

    /// A request of the peer of that link.
    #[inline]
    pub(crate) fn request(&mut self, link: LinkId, stamp: Stamp) -> Option<&mut Served> {
        self.get(link)?.request(stamp)
    }

    pub(crate) fn links(&self) -> impl Iterator<Item = LinkId> {
        let peers = self.peers.iter().flatten().map(|peer| &**peer);
        peers.chain(&self.former).map(|peer| peer.link)
    }

    /// The link has ended.
    pub(crate) fn lose(&mut self, link: LinkId) {
        if let Some(place) = self.peers.get_mut(link.index as usize)
            && place.as_ref().is_some_and(|peer| peer.link == link)
        {
            self.gone.extend(place.take().map(|peer| *peer));
        } else if let Some(at) = self.former.iter().position(|peer| peer.link == link) {
            self.gone.push(self.former.swap_remove(at));
        }
    }
}

#[cfg(test)]
mod tests;

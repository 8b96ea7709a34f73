//! The lanes of a service: one for each client, and a few that are offered to those who come.

use std::collections::VecDeque;

use hamlyn_engine::limits::USER_METADATA_BYTES;
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::SlotName;
use hamlyn_host::{Host, HostError};
use hamlyn_ring::area::Area;

use super::ServiceOptions;
use super::buffers::{Buffers, Remote, WORDS};
use super::wire::{BOARD_BYTES, LaneSeed, Status, Word, board_offset, cancellation};
use crate::error::{OpenError, SendError};

use crate::item::{Bound, Place};
use crate::manager::{Arrival, ClassId};
use crate::message::Target;
use crate::remains::{LastWord, Leaving, Remains};
use crate::session::Session;
use crate::slot::{NewSlot, Slot};
use crate::ticket::{TICKET_BYTES, Ticket};

/// What became of a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answered {
    /// It was accepted for its client.
    Sent,
    /// The client had given the call up.
    Cancelled,
    /// The client is gone.
    ClientGone,
}

/// Clients of a service whose options do not say how many, if the queue holds them.
const CLIENTS: usize = 256;
/// Lanes that are offered at a time.
const OFFERED: usize = 4;
/// How long an asker has to present itself, in nanoseconds.
const GREETING_NS: u64 = 10_000_000_000;

/// A request, by its lane and the buffer in which it landed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CallId {
    pub(super) lane: SlotName,
    pub(super) index: u16,
}

struct Lane {
    /// There once it is offered.
    place: Option<Place>,
    buffers: Buffers,
    /// When it was seen that a client had asked for it, until that client presents itself.
    asked_ns: Option<u64>,
    /// What its client cancels: a number for each buffer.
    board: Area,
    board_slot: Slot,
    client: Option<Remote>,
    /// The request in each buffer that the application has, or will have.
    held: Box<[Option<Word>]>,
    /// Buffers in which requests landed before the greeting did.
    early: Vec<(u16, LinkId)>,
    /// Answers that found no room.
    owed: VecDeque<(u16, Word, Vec<u8>)>,
}

impl Lane {
    /// What is to be done when it is gone: its client, if it has one, is told.
    fn remains(&self) -> Remains {
        Remains {
            slots: vec![self.buffers.name(), self.board_slot.name()],
            last_word: self.client.map(|client| LastWord {
                target: client.greeting_target(),
                metadata: vec![0],
                word: 0,
            }),
            ..Remains::default()
        }
    }
}

/// See the module.
pub(super) struct Lanes {
    options: ServiceOptions,
    class: ClassId,
    /// By the index of their slot.
    by_slot: Vec<Option<Box<Lane>>>,
    /// Those that are offered, in the order in which they are given out.
    offered: VecDeque<SlotName>,
    count: usize,
    /// Requests that the application has not been given.
    ready: VecDeque<CallId>,
    /// How many lanes owe answers.
    owing: usize,
    /// Lanes whose askers have not presented themselves.
    asked: usize,
    /// There is room to be offered.
    is_untidy: bool,
    /// Peers that had come and gone when the lanes were last looked through.
    peers_happened: u64,
    /// Clients that lost their lane because they broke the protocol.
    pub(super) misbehaved: u64,
    leaving: Leaving,
}

impl Drop for Lanes {
    fn drop(&mut self) {
        for lane in self.by_slot.iter().flatten() {
            self.leaving.leave(lane.remains());
        }
        self.leaving.leave(Remains {
            class: Some(self.class),
            ..Remains::default()
        });
    }
}

impl Lanes {
    pub(super) fn open<H: Host>(
        session: &mut Session<'_, H>,
        mut options: ServiceOptions,
    ) -> Result<Self, OpenError> {
        let outstanding = options.outstanding;
        let entries = usize::from(outstanding) + WORDS;
        let capacity = session.core.queue().capacity();
        if options.clients == 0 {
            let held = (capacity - 1) / entries;
            options.clients = held.clamp(1, CLIENTS) as u16;
        }
        let clients = options.clients;
        let needed = usize::from(clients) * entries;
        if needed >= capacity {
            return Err(OpenError::ServiceRoom {
                clients,
                outstanding,
                needed,
                capacity,
            });
        }
        Ok(Self {
            options,
            class: session.core.register_queued(0)?,
            by_slot: Vec::new(),
            offered: VecDeque::new(),
            count: 0,
            ready: VecDeque::new(),
            owing: 0,
            asked: 0,
            is_untidy: false,
            peers_happened: 0,
            misbehaved: 0,
            leaving: session.leaving.clone(),
        })
    }

    pub(super) fn class(&self) -> ClassId {
        self.class
    }

    fn lane(&self, name: SlotName) -> Option<&Lane> {
        let lane = self.by_slot.get(usize::from(name.index()))?.as_deref();
        lane.filter(|lane| lane.buffers.name() == name)
    }

    fn lane_mut(&mut self, name: SlotName) -> Option<&mut Lane> {
        let lane = self.by_slot.get_mut(usize::from(name.index()))?;
        lane.as_deref_mut()
            .filter(|lane| lane.buffers.name() == name)
    }

    /// Opens lanes until enough are offered, as far as there may be more.
    pub(super) fn offer<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bound: &Bound,
    ) -> Result<(), OpenError> {
        let most = self.options.clients;
        while self.offered.len() < OFFERED && self.count < usize::from(most) {
            let seed = match self.open_lane(session) {
                Ok(seed) => seed,
                Err(error) => {
                    session.core.run_short(bound);
                    return Err(error);
                }
            };
            let name = seed.requests.slot;
            let place = match session.core.offer_place(bound, most, &seed.to_bytes()) {
                Ok(place) => place,
                Err(error) => {
                    self.close(session, name);
                    // The room of this lane is not worth another try before the next look.
                    self.is_untidy = false;
                    return Err(error);
                }
            };
            if let Some(lane) = self.lane_mut(name) {
                lane.place = Some(place);
            }
            self.offered.push_back(name);
        }
        Ok(())
    }

    fn open_lane<H: Host>(&mut self, session: &mut Session<'_, H>) -> Result<LaneSeed, OpenError> {
        let outstanding = self.options.outstanding;
        let entries = usize::from(outstanding) + WORDS;
        session.core.reserve(self.class, entries)?;
        let opened = self.open_reserved(session);
        if opened.is_err() {
            session.core.unreserve(self.class, entries);
        }
        opened
    }

    fn open_reserved<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
    ) -> Result<LaneSeed, OpenError> {
        let ServiceOptions {
            outstanding,
            request_bytes,
            reply_bytes,
            ..
        } = self.options;
        let board = session.allocate(u64::from(outstanding) * BOARD_BYTES)?;
        let board_slot = session.open_slot(NewSlot::new(&board))?;
        let opened = Buffers::open(session, self.class, outstanding, request_bytes);
        let mut buffers = match opened {
            Ok(buffers) => buffers,
            Err(error) => {
                session.close_slot(board_slot)?;
                return Err(error);
            }
        };
        for index in 0..outstanding {
            buffers.arm(index);
        }
        let board_ticket = board_slot.fast_ticket(0, board_slot.length_bytes());
        let seed = LaneSeed {
            requests: buffers.ticket(),
            board: board_ticket.unwrap_or_else(|_| unreachable!("the slot covers itself")),
            outstanding,
            request_bytes,
            reply_bytes,
        };
        let index = usize::from(buffers.name().index());
        if self.by_slot.len() <= index {
            self.by_slot.resize_with(index + 1, || None);
        }
        self.by_slot[index] = Some(Box::new(Lane {
            place: None,
            buffers,
            asked_ns: None,
            board,
            board_slot,
            client: None,
            held: vec![None; usize::from(outstanding)].into(),
            early: Vec::new(),
            owed: VecDeque::new(),
        }));
        self.count += 1;
        Ok(seed)
    }

    /// Closes a lane and says the last word to its client, if it has one.
    pub(super) fn close<H: Host>(&mut self, session: &mut Session<'_, H>, name: SlotName) {
        if self.lane(name).is_none() {
            return;
        }
        let Some(lane) = self.by_slot[usize::from(name.index())].take() else {
            return;
        };
        self.offered.retain(|&offered| offered != name);
        self.ready.retain(|call_id| call_id.lane != name);
        self.owing -= usize::from(!lane.owed.is_empty());
        self.asked -= usize::from(lane.asked_ns.is_some());
        self.count -= 1;
        self.is_untidy = true;
        self.leaving.leave(lane.remains());
        let entries = lane.held.len() + WORDS;
        drop(lane);
        session.core.reap();
        session.core.unreserve(self.class, entries);
    }

    fn names(&self) -> Vec<SlotName> {
        let lanes = self.by_slot.iter().flatten();
        lanes.map(|lane| lane.buffers.name()).collect()
    }

    /// Takes a message to a lane in.
    pub(super) fn take<H: Host>(&mut self, session: &mut Session<'_, H>, arrival: Arrival) {
        let (name, index) = (arrival.slot, arrival.metadata_index);
        let Some(lane) = self.lane_mut(name) else {
            // Of one that was closed.
            return;
        };
        if usize::from(index) >= lane.held.len() {
            let is_greeting = usize::from(index) == lane.held.len();
            let is_own = |client: Remote| client.target().link() == arrival.from;
            match lane.client {
                None if is_greeting => self.greet(session, name, arrival.from),
                // It says good-bye, perhaps before it was heard to come.
                None => self.close(session, name),
                Some(client) if !is_greeting && is_own(client) => self.close(session, name),
                Some(_) => self.misbehave(session, name),
            }
            return;
        }
        match lane.client {
            None => lane.early.push((index, arrival.from)),
            Some(client) if client.target().link() == arrival.from => {
                self.accept(session, CallId { lane: name, index });
            }
            // Somebody else has its keys: none of ours.
            Some(_) => self.misbehave(session, name),
        }
    }

    /// A client presents itself: with a ticket of its own, over the link by which this came.
    fn greet<H: Host>(&mut self, session: &mut Session<'_, H>, name: SlotName, from: LinkId) {
        let mut words = [0; USER_METADATA_BYTES];
        let (outstanding, reply_bytes) = (self.options.outstanding, self.options.reply_bytes);
        let Some(lane) = self.lane_mut(name) else {
            return;
        };
        let length = lane.buffers.greeting(&mut words);
        let ticket = words[..length].get(..TICKET_BYTES);
        let ticket = ticket.and_then(|bytes| Ticket::of_slot(bytes).ok());
        let Some(ticket) = ticket else {
            return self.misbehave(session, name);
        };
        match session.led_to(from, &ticket.destination) {
            Some(true) => {}
            Some(false) => return self.misbehave(session, name),
            // Its link ended, and another has its place: the client is gone, and broke no rule.
            None => return self.close(session, name),
        }
        let Some(lane) = self.lane_mut(name) else {
            return;
        };
        // Requests that came over another link are not this client's.
        if lane.early.iter().any(|&(_, by)| by != from) {
            return self.misbehave(session, name);
        }
        lane.client = Some(Remote::new(
            Target::new(from, ticket),
            outstanding,
            reply_bytes,
        ));
        let was_asked = lane.asked_ns.take().is_some();
        let early = std::mem::take(&mut lane.early);
        self.asked -= usize::from(was_asked);
        self.is_untidy = true;
        self.offered.retain(|&offered| offered != name);
        for (index, _) in early {
            self.accept(session, CallId { lane: name, index });
        }
    }

    fn accept<H: Host>(&mut self, session: &mut Session<'_, H>, call_id: CallId) {
        let Some(lane) = self.lane_mut(call_id.lane) else {
            return;
        };
        // Its answer has not left: no correct client asks there again.
        if lane.owed.iter().any(|&(index, ..)| index == call_id.index) {
            return self.misbehave(session, call_id.lane);
        }
        let Some(word) = lane.buffers.landed(call_id.index) else {
            return self.misbehave(session, call_id.lane);
        };
        lane.held[usize::from(call_id.index)] = Some(word);
        if self.is_cancelled(call_id) {
            let _ = self.answer(session, call_id, Status::Cancelled, &[]);
        } else {
            self.ready.push_back(call_id);
        }
    }

    fn misbehave<H: Host>(&mut self, session: &mut Session<'_, H>, name: SlotName) {
        tracing::debug!(lane = ?name, "a client breaks the service protocol");
        self.misbehaved += 1;
        self.close(session, name);
    }

    /// The next request, if there is one.
    pub(super) fn next_ready<H: Host>(&mut self, session: &mut Session<'_, H>) -> Option<CallId> {
        while let Some(call_id) = self.ready.pop_front() {
            if !self.is_cancelled(call_id) {
                return Some(call_id);
            }
            let _ = self.answer(session, call_id, Status::Cancelled, &[]);
        }
        None
    }

    fn word(&self, call_id: CallId) -> Option<Word> {
        let held = self
            .lane(call_id.lane)?
            .held
            .get(usize::from(call_id.index))?;
        *held
    }

    /// The number of the call.
    pub(super) fn number(&self, call_id: CallId) -> Option<u32> {
        Some(self.word(call_id)?.number)
    }

    /// The bytes of a request.
    pub(super) fn request(&self, call_id: CallId) -> Option<&[u8]> {
        let word = self.word(call_id)?;
        let lane = self.lane(call_id.lane)?;
        lane.buffers.view(call_id.index, word.length_bytes)
    }

    /// The link to the client of a lane.
    pub(super) fn link(&self, name: SlotName) -> Option<LinkId> {
        Some(self.lane(name)?.client?.target().link())
    }

    /// The lanes of the client over that link.
    pub(super) fn lanes_over(&self, link: LinkId) -> Vec<SlotName> {
        let names = self.names().into_iter();
        names
            .filter(|&name| self.link(name) == Some(link))
            .collect()
    }

    /// Whether its client has given a call up.
    pub(super) fn is_cancelled(&self, call_id: CallId) -> bool {
        let (Some(lane), Some(number)) = (self.lane(call_id.lane), self.number(call_id)) else {
            return false;
        };
        lane.board.load_u64(board_offset(call_id.index)) == Ok(cancellation(number))
    }

    /// Answers a request. Its client owns the buffer again from now on.
    pub(super) fn answer<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        call_id: CallId,
        status: Status,
        data: &[u8],
    ) -> Result<Answered, HostError> {
        let is_cancelled = self.is_cancelled(call_id);
        let Some(lane) = self.lane_mut(call_id.lane) else {
            return Ok(Answered::ClientGone);
        };
        let held = lane.held.get_mut(usize::from(call_id.index));
        let (Some(word), Some(client)) = (held.and_then(Option::take), lane.client) else {
            return Ok(Answered::ClientGone);
        };
        // Before the client can know of it: it may ask again at once.
        lane.buffers.arm(call_id.index);
        let (status, data) = match is_cancelled {
            true => (Status::Cancelled, &[][..]),
            false => (status, data),
        };
        let word = Word {
            status,
            length_bytes: data.len() as u32,
            ..word
        };
        if lane.owed.is_empty() {
            match client.post(session, call_id.index, word, data) {
                Ok(_) => {}
                Err(SendError::WouldBlock { .. }) => {
                    lane.owed.push_back((call_id.index, word, data.to_vec()));
                    self.owing += 1;
                }
                Err(SendError::Host(error)) => return Err(error),
                Err(_) => return Ok(Answered::ClientGone),
            }
        } else {
            lane.owed.push_back((call_id.index, word, data.to_vec()));
        }
        Ok(match is_cancelled {
            true => Answered::Cancelled,
            false => Answered::Sent,
        })
    }

    /// Sends answers that found no room before.
    pub(super) fn send_owed<H: Host>(&mut self, session: &mut Session<'_, H>) {
        if self.owing == 0 {
            return;
        }
        for lane in self.by_slot.iter_mut().flatten() {
            let (Some(client), false) = (lane.client, lane.owed.is_empty()) else {
                continue;
            };
            while let Some((index, word, data)) = lane.owed.front() {
                let sent = client.post(session, *index, *word, data);
                if let Err(SendError::WouldBlock { .. }) = sent {
                    break;
                }
                lane.owed.pop_front();
            }
            self.owing -= usize::from(lane.owed.is_empty());
        }
    }

    /// Whether [`Lanes::tidy`] has more to do than to look who asked and did not come.
    pub(super) fn is_untidy<H: Host>(&self, session: &mut Session<'_, H>) -> bool {
        self.is_untidy || session.peers_happened() != self.peers_happened
    }

    /// Closes the lanes of clients that are gone, and takes back those whose askers did not present
    /// themselves in time.
    pub(super) fn tidy<H: Host>(&mut self, session: &mut Session<'_, H>, bound: &Bound) {
        let was_untidy = std::mem::take(&mut self.is_untidy);
        let happened = session.peers_happened();
        if std::mem::replace(&mut self.peers_happened, happened) != happened || was_untidy {
            for name in self.names() {
                let link = self.link(name);
                if link.is_some_and(|link| session.link_end(link).is_some()) {
                    self.close(session, name);
                }
            }
        }
        let now_ns = session.host().now_ns();
        let left = session.core.offered_under(bound);
        for _ in left..self.offered.len() {
            let Some(name) = self.offered.pop_front() else {
                break;
            };
            if let Some(lane) = self.lane_mut(name) {
                lane.asked_ns = Some(now_ns);
                self.asked += 1;
            }
        }
        let asked = match self.asked {
            0 => Vec::new(),
            _ => {
                // Greetings that have come count, however long nobody looked. At most so many: a
                // flood ends.
                let most = self.count * (usize::from(self.options.outstanding) + WORDS);
                for _ in 0..=most {
                    let Some(arrival) = session.core.next_arrival(self.class) else {
                        break;
                    };
                    self.take(session, arrival);
                }
                self.names()
            }
        };
        for name in asked {
            let asked_ns = self.lane(name).and_then(|lane| lane.asked_ns);
            if asked_ns.is_some_and(|asked_ns| now_ns.saturating_sub(asked_ns) > GREETING_NS) {
                self.close(session, name);
            }
        }
        // Those who are connected are served all the same; the next look tries again.
        if let Err(error) = self.offer(session, bound) {
            tracing::debug!(%error, "no lane for another client");
        }
    }
}

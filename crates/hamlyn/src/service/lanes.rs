//! The lanes of a service: one for each client, and a few that are offered to those who come.

use std::collections::VecDeque;

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::SlotName;
use hamlyn_host::{Host, HostError};
use hamlyn_ring::area::Area;

use super::ServiceOptions;
use super::wire::{BOARD_BYTES, LaneSeed, Status, Word, board_offset, cancellation};
use crate::error::{NotSent, OpenError, SendError};

use crate::item::{Bound, Place};
use crate::lane::buffers::{Buffers, Remote, WORDS};
use crate::lobby::{Guest, Lobby};
use crate::manager::{Arrival, ClassId};
use crate::message::Target;
use crate::remains::{LastWord, Leaving, Remains};
use crate::session::Session;
use crate::slot::{NewSlot, Slot};

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

/// A request, by its lane and the buffer in which it landed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CallId {
    pub(super) lane: SlotName,
    pub(super) index: u16,
}

/// The parts of a lane.
struct Opened {
    buffers: Buffers,
    /// What its client cancels: a number for each buffer.
    board: Area,
    board_slot: Slot,
    /// Buffers in which requests landed before the greeting did.
    early: Vec<(u16, LinkId)>,
    class: ClassId,
}

impl Opened {
    fn name(&self) -> SlotName {
        self.buffers.name()
    }
}

impl Guest for Opened {
    fn remains(&self) -> Remains {
        Remains {
            slots: vec![self.name(), self.board_slot.name()],
            entries: Some((self.class, usize::from(self.buffers.count()) + WORDS)),
            ..Remains::default()
        }
    }
}

/// A lane and its client.
struct Lane {
    _place: Place,
    opened: Opened,
    client: Remote,
    /// The request in each buffer that the application has, or will have.
    held: Box<[Option<Word>]>,
    /// Answers that found no room.
    owed: VecDeque<(u16, Word, Vec<u8>)>,
}

impl Lane {
    /// The rest to be done when it is gone: its client is told.
    fn remains(&self) -> Remains {
        Remains {
            last_word: Some(LastWord {
                target: self.client.greeting_target(),
                metadata: vec![0],
                word: 0,
            }),
            ..self.opened.remains()
        }
    }

    fn link(&self) -> LinkId {
        self.client.target().link()
    }
}

/// See the module.
pub(super) struct Lanes {
    options: ServiceOptions,
    class: ClassId,
    /// Those that no client has.
    lobby: Lobby<Opened>,
    /// Those of clients, by the index of their slot.
    by_slot: Vec<Option<Box<Lane>>>,
    clients: usize,
    /// Requests that the application has not been given.
    ready: VecDeque<CallId>,
    /// How many lanes owe answers.
    owing: usize,
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
            lobby: Lobby::new(clients, OFFERED, session.leaving.clone()),
            by_slot: Vec::new(),
            clients: 0,
            ready: VecDeque::new(),
            owing: 0,
            leaving: session.leaving.clone(),
        })
    }

    /// Clients that lost their lane because they broke the protocol.
    pub(super) fn misbehaved(&self) -> u64 {
        self.lobby.misbehaved
    }

    pub(super) fn class(&self) -> ClassId {
        self.class
    }

    fn lane(&self, name: SlotName) -> Option<&Lane> {
        let lane = self.by_slot.get(usize::from(name.index()))?.as_deref();
        lane.filter(|lane| lane.opened.name() == name)
    }

    fn lane_mut(&mut self, name: SlotName) -> Option<&mut Lane> {
        let lane = self.by_slot.get_mut(usize::from(name.index()))?;
        lane.as_deref_mut()
            .filter(|lane| lane.opened.name() == name)
    }

    /// Opens lanes until enough are offered, as far as there may be more.
    pub(super) fn offer<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        bound: &Bound,
    ) -> Result<(), OpenError> {
        let (options, class) = (&self.options, self.class);
        let open = |session: &mut Session<'_, H>| open_lane(session, class, options);
        self.lobby.offer(session, bound, self.clients, open)
    }

    /// Closes a lane and says the last word to its client.
    pub(super) fn close<H: Host>(&mut self, session: &mut Session<'_, H>, name: SlotName) {
        if self.lane(name).is_none() {
            return;
        }
        let Some(lane) = self.by_slot[usize::from(name.index())].take() else {
            return;
        };
        self.ready.retain(|call_id| call_id.lane != name);
        self.owing -= usize::from(!lane.owed.is_empty());
        self.clients -= 1;
        self.lobby.vacate();
        self.leaving.leave(lane.remains());
        drop(lane);
        session.core.reap();
    }

    /// Takes a message to a lane in.
    pub(super) fn take<H: Host>(&mut self, session: &mut Session<'_, H>, arrival: Arrival) {
        let (name, index) = (arrival.slot, arrival.metadata_index);
        let outstanding = self.options.outstanding;
        let Some(lane) = self.lane(name) else {
            // Or of one that was closed.
            if let Some(at) = self.lobby.position(|guest| guest.name() == name) {
                self.take_early(session, at, index, arrival.from);
            }
            return;
        };
        if lane.link() != arrival.from || index == outstanding {
            // Somebody else has its keys: none of ours. Or it greets again.
            self.misbehave(session, name);
        } else if index > outstanding {
            self.close(session, name);
        } else {
            self.accept(session, CallId { lane: name, index });
        }
    }

    /// Takes in a message to a lane that no client has.
    fn take_early<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        at: usize,
        index: u16,
        from: LinkId,
    ) {
        let outstanding = self.options.outstanding;
        if index == outstanding {
            self.greet(session, at, from);
        } else if index > outstanding {
            // It says good-bye before it was heard to come.
            self.lobby.dismiss(at);
        } else if let Some(guest) = self.lobby.guest_mut(at) {
            guest.early.push((index, from));
        }
    }

    /// A client presents itself: with a ticket of its own, over the link by which this came.
    fn greet<H: Host>(&mut self, session: &mut Session<'_, H>, at: usize, from: LinkId) {
        let Some(guest) = self.lobby.guest_mut(at) else {
            return;
        };
        // Requests that came over another link are not this client's.
        let is_alone = guest.early.iter().all(|&(_, by)| by == from);
        let Some(ticket) = guest.buffers.greeting().filter(|_| is_alone) else {
            return self.lobby.refuse(at);
        };
        let admitted = self.lobby.admit(session, at, from, &ticket.destination);
        let Some((place, mut opened)) = admitted else {
            return;
        };
        let ServiceOptions {
            outstanding,
            reply_bytes,
            ..
        } = self.options;
        let early = std::mem::take(&mut opened.early);
        let lane = opened.name();
        let slot = usize::from(lane.index());
        if self.by_slot.len() <= slot {
            self.by_slot.resize_with(slot + 1, || None);
        }
        self.by_slot[slot] = Some(Box::new(Lane {
            _place: place,
            opened,
            client: Remote::new(Target::new(from, ticket), outstanding, reply_bytes),
            held: vec![None; usize::from(outstanding)].into(),
            owed: VecDeque::new(),
        }));
        self.clients += 1;
        for (index, _) in early {
            self.accept(session, CallId { lane, index });
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
        let landed = lane.opened.buffers.landed(call_id.index);
        let Some(word) = landed.and_then(Word::from_lane) else {
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
        self.lobby.misbehaved += 1;
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
        lane.opened.buffers.view(call_id.index, word.length_bytes)
    }

    /// The link to the client of a lane.
    pub(super) fn link(&self, name: SlotName) -> Option<LinkId> {
        Some(self.lane(name)?.link())
    }

    /// The lanes of the client over that link.
    pub(super) fn lanes_over(&self, link: LinkId) -> Vec<SlotName> {
        let lanes = self.by_slot.iter().flatten();
        let of_link = lanes.filter(|lane| lane.link() == link);
        of_link.map(|lane| lane.opened.name()).collect()
    }

    /// Whether its client has given a call up.
    pub(super) fn is_cancelled(&self, call_id: CallId) -> bool {
        let (Some(lane), Some(number)) = (self.lane(call_id.lane), self.number(call_id)) else {
            return false;
        };
        lane.opened.board.load_u64(board_offset(call_id.index)) == Ok(cancellation(number))
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
        let Some(word) = held.and_then(Option::take) else {
            return Ok(Answered::ClientGone);
        };
        // Before the client can know of it: it may ask again at once.
        lane.opened.buffers.arm(call_id.index);
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
            match lane
                .client
                .post(session, call_id.index, word.to_lane(), data)
            {
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
            if lane.owed.is_empty() {
                continue;
            }
            while let Some((index, word, data)) = lane.owed.pop_front() {
                let given = lane.client.give(session, index, word.to_lane(), data);
                if let Err(NotSent {
                    error: SendError::WouldBlock { .. },
                    data,
                }) = given
                {
                    lane.owed.push_front((index, word, data));
                    break;
                }
            }
            self.owing -= usize::from(lane.owed.is_empty());
        }
    }

    /// Whether [`Lanes::tidy`] has more to do than to look who asked and did not come.
    pub(super) fn is_untidy<H: Host>(&self, session: &mut Session<'_, H>) -> bool {
        self.lobby.is_untidy(session)
    }

    /// Closes the lanes of clients that are gone, and takes back those whose askers did not present
    /// themselves in time.
    pub(super) fn tidy<H: Host>(&mut self, session: &mut Session<'_, H>, bound: &Bound) {
        if self.lobby.is_untidy(session) {
            let lanes = self.by_slot.iter().flatten();
            let gone = lanes.filter(|lane| session.link_end(lane.link()).is_some());
            let gone: Vec<_> = gone.map(|lane| lane.opened.name()).collect();
            for name in gone {
                self.close(session, name);
            }
        }
        if self.lobby.begin_tidy(session, bound) {
            // At most so many: a flood ends.
            let lanes = usize::from(self.options.clients);
            for _ in 0..=lanes * (usize::from(self.options.outstanding) + WORDS) {
                let Some(arrival) = session.core.next_arrival(self.class) else {
                    break;
                };
                self.take(session, arrival);
            }
            self.lobby.dismiss_late(session);
        }
        // Those who are connected are served all the same; the next look tries again.
        if let Err(error) = self.offer(session, bound) {
            tracing::debug!(%error, "no lane for another client");
        }
    }
}

/// Opens a lane of that service, and gives what its client gets.
fn open_lane<H: Host>(
    session: &mut Session<'_, H>,
    class: ClassId,
    options: &ServiceOptions,
) -> Result<(Opened, Vec<u8>), OpenError> {
    let outstanding = options.outstanding;
    let entries = usize::from(outstanding) + WORDS;
    session.core.reserve(class, entries)?;
    let opened = open_reserved(session, class, options);
    let opened = opened.inspect_err(|_| session.core.unreserve(class, entries))?;
    let seed = LaneSeed {
        requests: opened.buffers.ticket(),
        board: opened.board_slot.whole_fast(),
        outstanding,
        request_bytes: options.request_bytes,
        reply_bytes: options.reply_bytes,
    };
    Ok((opened, seed.to_bytes().to_vec()))
}

fn open_reserved<H: Host>(
    session: &mut Session<'_, H>,
    class: ClassId,
    options: &ServiceOptions,
) -> Result<Opened, OpenError> {
    let outstanding = options.outstanding;
    let board = session.allocate(u64::from(outstanding) * BOARD_BYTES)?;
    let board_slot = session.open_slot(NewSlot::new(&board))?;
    let mut buffers = match Buffers::open(session, class, outstanding, options.request_bytes) {
        Ok(buffers) => buffers,
        Err(error) => {
            session.close_slot(board_slot)?;
            return Err(error);
        }
    };
    for index in 0..outstanding {
        buffers.arm(index);
    }
    Ok(Opened {
        buffers,
        board,
        board_slot,
        early: Vec::new(),
        class,
    })
}

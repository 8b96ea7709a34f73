//! The lanes of a service: one for each client, and a few that are offered to those who come.

use std::collections::VecDeque;

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::SlotName;
use hamlyn_host::{Host, HostError};

use super::ServiceOptions;
use super::lane::{Lane, Opened};
use super::wire::{Status, Word, board_offset, cancellation};
use crate::error::{NotSent, OpenError, SendError};
use crate::item::ItemHeader;
use crate::lane::buffers::{Remote, WORDS};
use crate::lobby::{Admitted, Lobby, LobbyOptions};
use crate::manager::{Arrival, ClassId};
use crate::message::Target;
use crate::remains::{Leaving, Remains};
use crate::session::Session;
use crate::tasks::Interest;

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
const OFFERED: u16 = 4;

/// A request, by its lane and the buffer in which it landed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CallId {
    pub(super) lane: SlotName,
    pub(super) index: u16,
}

/// See the module.
pub(super) struct Lanes {
    options: ServiceOptions,
    class: ClassId,
    /// Those that no client has.
    lobby: Lobby<Opened>,
    /// Those of clients, by the index of their slot.
    by_slot: Vec<Option<Box<Lane>>>,
    /// Requests that the application has not been given.
    ready: VecDeque<CallId>,
    /// How many lanes owe answers.
    owing: usize,
    /// Peers that had come and gone when lanes were last tidied.
    peers_happened: u64,
    leaving: Leaving,
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.leaving.leave(Remains {
            class: Some(self.class),
            ..Remains::default()
        });
    }
}

impl Lanes {
    pub(super) fn bind<H: Host>(
        session: &mut Session<'_, H>,
        item: &str,
        header: ItemHeader,
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
        let class = session.core.register_queued(0)?;
        let places = LobbyOptions {
            places: clients,
            offered: OFFERED,
        };
        let lobby = Lobby::bind_as(session, item, header, places, (class, options));
        let lobby = lobby.inspect_err(|_| {
            session.core.reap();
            session.core.unregister(class);
        })?;
        Ok(Self {
            options,
            class,
            lobby,
            by_slot: Vec::new(),
            ready: VecDeque::new(),
            owing: 0,
            peers_happened: 0,
            leaving: session.leaving.clone(),
        })
    }

    /// Those that no client has.
    pub(super) fn lobby(&self) -> &Lobby<Opened> {
        &self.lobby
    }

    pub(super) fn class(&self) -> ClassId {
        self.class
    }

    /// The interest of a task that found no call.
    pub(super) fn interest(&self) -> Interest {
        // Nobody announces room, neither for an answer nor for another lane.
        match self.owing > 0 || self.lobby.is_short() {
            true => Interest::Anything,
            false => Interest::Arrivals(self.class, None),
        }
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

    /// Closes a lane and says the last word to its client, who is gone, broke the protocol or is
    /// dismissed, and is owed nothing: one that takes no answers and comes again cannot pile them
    /// up.
    pub(super) fn close<H: Host>(&mut self, session: &mut Session<'_, H>, name: SlotName) {
        if self.lane(name).is_none() {
            return;
        }
        let Some(mut lane) = self.by_slot[usize::from(name.index())].take() else {
            return;
        };
        self.ready.retain(|call_id| call_id.lane != name);
        self.owing -= usize::from(!lane.owed.is_empty());
        lane.owed.clear();
        drop(lane);
        session.core.reap();
    }

    /// Takes a message to a lane in.
    pub(super) fn take<H: Host>(&mut self, session: &mut Session<'_, H>, arrival: Arrival) {
        let (name, index) = (arrival.slot, arrival.metadata_index);
        let outstanding = self.options.outstanding;
        let Some(lane) = self.lane(name) else {
            // Or of one that was closed.
            let mut guests = self.lobby.guests_mut();
            if let Some(guest) = guests.find(|guest| guest.name() == name) {
                guest.note_early(index, arrival.from);
                drop(guests);
                self.let_in(session);
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

    /// Lets in clients that have presented themselves.
    fn let_in<H: Host>(&mut self, session: &mut Session<'_, H>) {
        while let Some(admitted) = self.lobby.hear(session) {
            let Admitted {
                guest: mut opened,
                link,
                place,
            } = admitted;
            let Some(ticket) = opened.buffers.greeting() else {
                continue;
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
                client: Remote::new(Target::new(link, ticket), outstanding, reply_bytes),
                held: vec![None; usize::from(outstanding)].into(),
                owed: VecDeque::new(),
                answers: 0,
            }));
            if session.link_end(link).is_some() {
                // Its end was heard before its greeting: the next look sees to it.
                self.peers_happened = u64::MAX;
            }
            for (index, _) in early {
                self.accept(session, CallId { lane, index });
            }
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
        self.lobby.count_misbehaved();
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
                Ok(_) => lane.answers += 1,
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
                match lane.client.give(session, index, word.to_lane(), data) {
                    Err(NotSent {
                        error: SendError::WouldBlock { .. },
                        data,
                    }) => {
                        lane.owed.push_front((index, word, data));
                        break;
                    }
                    Ok(_) => lane.answers += 1,
                    // It does not come.
                    Err(_) => {}
                }
            }
            self.owing -= usize::from(lane.owed.is_empty());
        }
    }

    /// Whether [`Lanes::tidy`] has more to do than to look who asked and did not come.
    pub(super) fn is_untidy<H: Host>(&self, session: &mut Session<'_, H>) -> bool {
        self.lobby.is_untidy() || session.peers_happened() != self.peers_happened
    }

    /// Closes the lanes of clients that are gone, and takes back those whose askers did not present
    /// themselves in time.
    pub(super) fn tidy<H: Host>(&mut self, session: &mut Session<'_, H>) {
        let peers_happened = session.peers_happened();
        if std::mem::replace(&mut self.peers_happened, peers_happened) != peers_happened {
            let lanes = self.by_slot.iter().flatten();
            let gone = lanes.filter(|lane| session.link_end(lane.link()).is_some());
            let gone: Vec<_> = gone.map(|lane| lane.opened.name()).collect();
            for name in gone {
                self.close(session, name);
            }
        }
        if self.lobby.note_asked(session) {
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
        self.lobby.offer_more(session);
    }
}

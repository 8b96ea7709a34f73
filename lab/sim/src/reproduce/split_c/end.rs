//! A program's end of an experiment: the operations of the language, in the version at hand.
//!
//! By messages: the word says what is asked, by which program; the target's program runs the
//! handler when it looks. By one-sided operations: the interface of the target serves them. What a
//! handler does to memory is software of the machine's file. An atomic procedure runs in the
//! target's program in every version (`Split-C 4.2.1`).

use std::collections::VecDeque;

use hamlyn::engine::counting::{Counting, Share};
use hamlyn::engine::slot::Rights;
use hamlyn::engine::terminus::{GatherPiece, SendTag};
use hamlyn::host::{Address, Supply};
use hamlyn::one_sided::{Atomic, Change, Initiator, InitiatorOptions, Operation, Width};
use hamlyn::{
    Host, Manager, Message, NewSlot, Queue, SendError, Session, Slot, Target, Ticket, Wait,
};

use super::said::{AT_BITS, SENDER_BITS, Said};
use super::shared_memory::{SharedMemory, offset_of};
use super::versions::{Server, Version};
use crate::host::SimHost;
use crate::machine::Machine;
use crate::reproduce::primitive::ProgramEnd;
use crate::time::Span;
use crate::world;

/// What a program shares, unless it says otherwise.
const AREA_BYTES: u64 = 1 << 16;
/// Bulk transfers are made in pieces of so many bytes, each of which is one packet.
pub(super) const PIECE_BYTES: u32 = 8_192;
const QUEUE_ENTRIES: usize = 4_096;
/// What one operation moves.
pub(super) const WORD_BYTES: u32 = size_of::<u64>() as u32;
/// Gets and puts that are under way at a time.
const OUTSTANDING_MAX: usize = 16;

/// Of each peer: room for all pieces that may be on their way from there.
const LANDING_BYTES: u64 = OUTSTANDING_MAX as u64 * PIECE_BYTES as u64;
/// Programs of an experiment, and words of what each shares, that a message can name.
const PROGRAMS_MAX: usize = 1 << SENDER_BITS;
const AREA_BYTES_MAX: u64 = (1 << AT_BITS) * WORD_BYTES as u64;

/// What a program does to another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Primitive {
    /// A null active message, answered.
    ActiveMessage,
    /// A get of a word.
    Get,
    /// A put of a word.
    Put,
    /// A signaling store of a word.
    Store,
    /// A get of so many bytes.
    BulkGet(u32),
    /// A signaling store of so many bytes.
    BulkStore(u32),
    /// An atomic procedure with one argument, for which nobody waits.
    Push,
}

/// Where an operation is done, in words of what the two programs share, and with which word.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Place {
    /// At the target.
    pub(super) at: u32,
    /// At this program: where a get puts what comes, and where a bulk store has what goes.
    pub(super) local: u32,
    /// What a put, a store or a push brings.
    pub(super) value: u32,
}

/// See the module.
pub(super) struct End {
    manager: Manager<SimHost>,
    machine: Machine,
    version: Version,
    queue: Queue,
    /// What it shares.
    pub(super) memory: SharedMemory,
    /// The same, as it is sent from there.
    sent_from: SendTag,
    /// Where stores to it are counted, if the interface counts them.
    counted: Slot,
    /// What this program is called by its peers: its place among theirs.
    number: u32,
    peers: Vec<Peer>,
    /// Operations of the interface that are not complete, oldest first.
    begun: VecDeque<Begun>,
    /// How many that bring many bytes it has begun.
    bulk_begun: u64,
    /// Messages that are not answered.
    unanswered: usize,
    /// Answers for which there was no room yet.
    owed: VecDeque<Owed>,
    /// Bytes that others stored, and arguments of atomic procedures, which this program counted
    /// itself.
    taken_bytes: u64,
    /// What was pushed to this program, in the order of its coming.
    pub(super) pushed: Vec<u32>,
    /// Parts of sums that have come, by round.
    parts: Vec<VecDeque<u32>>,
}

struct Peer {
    /// Where its messages come.
    inbox: Target,
    /// Where its stores are counted.
    counted: Target,
    memory: Initiator,
}

/// An operation that is not complete, and where what it brings is to be put.
struct Begun {
    peer: usize,
    operation: Operation,
    brings: Brings,
}

enum Brings {
    Nothing,
    Word {
        local: u32,
    },
    Bytes {
        landing: u64,
        local: u32,
        bytes: u32,
    },
}

/// A message that is to go, with so many bytes from a place of the sender's memory to one of the
/// receiver's.
#[derive(Clone, Copy)]
struct Owed {
    peer: usize,
    said: Said,
    from: u32,
    to: u32,
    bytes: u32,
}

impl ProgramEnd for End {
    fn flush(&self) {
        let _ = self.manager.session().flush(Wait::Forever);
    }
}

const GONE: &str = "every program lives until all is done";

impl End {
    /// Opens what a program shares, and offers it.
    pub(super) fn open(manager: Manager<SimHost>, machine: &Machine, version: Version) -> Self {
        Self::open_with(manager, machine, version, AREA_BYTES)
    }

    /// The same, with so many bytes.
    pub(super) fn open_with(
        manager: Manager<SimHost>,
        machine: &Machine,
        version: Version,
        area_bytes: u64,
    ) -> Self {
        assert!(area_bytes <= AREA_BYTES_MAX, "a message names each word");
        let terminus = manager.terminus();
        let (queue, area, sent_from, counted) = {
            let mut interface = manager.session();
            let area = interface.allocate(area_bytes).expect("memory");
            let queue = interface.open_queue(QUEUE_ENTRIES).expect("a queue");
            // With entries: what is announced to a program is looked up.
            let inbox = NewSlot::new(&area).queue(&queue).entries(1);
            let inbox = interface.open_slot(inbox).expect("a slot");
            let counted = interface.open_slot(NewSlot::new(&area).counting_stores(1));
            let counted = counted.expect("a slot");
            let memory = NewSlot::new(&area).rights(Rights::ALL);
            let memory = interface.open_slot(memory).expect("a slot");
            let offers = [
                ("inbox", inbox.fast_ticket(0, area_bytes)),
                ("counted", counted.ticket(0, 0, area_bytes)),
                ("memory", memory.fast_ticket(0, area_bytes)),
            ];
            for (item, ticket) in offers {
                let ticket = ticket.expect("a ticket for all of it").to_bytes();
                let offered = interface.offer(item, Supply::Always, &ticket);
                offered.expect("an offer");
            }
            let tag = interface.bind_area(terminus, &area, 0..area_bytes);
            (queue, area, tag.expect("an area for one"), counted)
        };
        Self {
            manager,
            machine: machine.clone(),
            version,
            queue,
            memory: SharedMemory(area),
            sent_from,
            counted,
            number: 0,
            peers: Vec::new(),
            begun: VecDeque::new(),
            bulk_begun: 0,
            unanswered: 0,
            owed: VecDeque::new(),
            taken_bytes: 0,
            pushed: Vec::new(),
            parts: Vec::new(),
        }
    }

    fn session(&mut self) -> Session<'_, SimHost> {
        self.manager.session()
    }

    /// Meets the programs of these names, each of which calls this one by `number`.
    pub(super) fn meet(&mut self, number: u32, names: &[&str]) {
        assert!(names.len() <= PROGRAMS_MAX, "a message names each program");
        self.number = number;
        for name in names {
            let target = |item: &str| {
                let mut interface = self.manager.session();
                let asked = interface.ask(Address::Name(name), item, Wait::Forever);
                let bytes = asked.expect("every program of the experiment offers it");
                let ticket = Ticket::from_bytes(&bytes).expect("a ticket as it was offered");
                let target = interface.target(&ticket, Wait::Forever);
                target.expect(GONE)
            };
            let (inbox, counted, memory) = (target("inbox"), target("counted"), target("memory"));
            let options = InitiatorOptions {
                landing_bytes: LANDING_BYTES,
            };
            let memory = self.session().open_initiator(memory, options);
            self.peers.push(Peer {
                inbox,
                counted,
                memory: memory.expect("room for one"),
            });
        }
    }

    /// Begins an operation at the beginning of what a peer shares.
    pub(super) fn begin(&mut self, primitive: Primitive, peer: usize) {
        self.begin_at(primitive, peer, Place::default());
    }

    /// Begins an operation.
    pub(super) fn begin_at(&mut self, primitive: Primitive, peer: usize, place: Place) {
        let server = match primitive {
            Primitive::ActiveMessage => self.version.handlers,
            Primitive::Get | Primitive::Put | Primitive::BulkGet(_) => self.version.memory,
            Primitive::Store | Primitive::BulkStore(_) => self.version.stores,
            Primitive::Push => Server::Program,
        };
        while self.outstanding() >= OUTSTANDING_MAX {
            self.look();
        }
        match server {
            Server::Program => {
                let bytes = match primitive {
                    Primitive::BulkStore(bytes) => bytes,
                    _ => 0,
                };
                self.unanswered += usize::from(self.is_answered(primitive));
                self.say(Owed {
                    peer,
                    said: Said::Asks(primitive, place),
                    from: place.local,
                    to: place.at,
                    bytes,
                });
            }
            Server::Interface => self.ask(primitive, peer, place),
        }
    }

    fn is_answered(&self, primitive: Primitive) -> bool {
        let is_store = matches!(
            primitive,
            Primitive::Store | Primitive::BulkStore(_) | Primitive::Push
        );
        !is_store || self.version.acknowledges_stores
    }

    /// A bulk transfer of any length, begun piece by piece, all of which lie at the beginning of
    /// what the programs share.
    pub(super) fn begin_bulk(&mut self, of: fn(u32) -> Primitive, bytes: u32, peer: usize) {
        let mut left = bytes;
        while left > 0 {
            let piece = left.min(PIECE_BYTES);
            self.begin(of(piece), peer);
            left -= piece;
        }
    }

    /// A bulk transfer between places of both programs, begun piece by piece.
    pub(super) fn begin_bulk_at(
        &mut self,
        of: fn(u32) -> Primitive,
        bytes: u32,
        peer: usize,
        mut place: Place,
    ) {
        let mut left = bytes;
        while left > 0 {
            let piece = left.min(PIECE_BYTES);
            self.begin_at(of(piece), peer, place);
            left -= piece;
            if left > 0 {
                place.at += piece / WORD_BYTES;
                place.local += piece / WORD_BYTES;
            }
        }
    }

    /// Sends a program's part of a sum.
    pub(super) fn add(&mut self, peer: usize, round: u32, value: u32) {
        self.say(Owed {
            peer,
            said: Said::Adds { round, value },
            from: 0,
            to: 0,
            bytes: 0,
        });
    }

    /// The oldest part of a sum that has come in a round and is not taken.
    pub(super) fn take_part(&mut self, round: u32) -> Option<u32> {
        self.parts.get_mut(round as usize)?.pop_front()
    }

    /// Sends a message as soon as there is room; reception goes on meanwhile.
    fn say(&mut self, owed: Owed) {
        while !self.try_to_say(owed) {
            self.look();
        }
    }

    fn try_to_say(&mut self, owed: Owed) -> bool {
        let word = owed.said.word(self.number);
        let message = Message::new(&[]).word(word).at(match owed.bytes {
            0 => 0,
            _ => offset_of(owed.to),
        });
        self.try_to_send(owed, |peer| &peer.inbox, &message)
    }

    /// Sends a message with data of what this program shares. Whether there was room.
    fn try_to_send(&mut self, owed: Owed, to: fn(&Peer) -> &Target, message: &Message<'_>) -> bool {
        let pieces = [GatherPiece {
            tag: self.sent_from,
            offset: offset_of(owed.from),
            length_bytes: owed.bytes.into(),
        }];
        let terminus = self.manager.terminus();
        let mut interface = self.manager.session();
        let target = to(&self.peers[owed.peer]);
        let sent = match owed.bytes {
            0 => interface.send_msg(terminus, target, message, Wait::Poll),
            _ => interface.send_gather(terminus, target, message, &pieces),
        };
        match sent {
            Ok(_) => true,
            Err(SendError::WouldBlock { .. }) => false,
            Err(error) => panic!("{GONE}: {error}"),
        }
    }

    fn ask(&mut self, primitive: Primitive, peer: usize, place: Place) {
        let at = offset_of(place.at);
        if let Primitive::BulkStore(bytes) = primitive {
            let owed = Owed {
                peer,
                said: Said::Answers,
                from: place.local,
                to: place.at,
                bytes,
            };
            let message = Message {
                share: Share::from_minus_one(u64::from(bytes) - 1, Counting::Bits64),
                ..Message::new(&[]).at(at)
            };
            while !self.try_to_send(owed, |peer| &peer.counted, &message) {
                self.look();
            }
            return;
        }
        let terminus = self.manager.terminus();
        let landing = self.bulk_begun % OUTSTANDING_MAX as u64 * u64::from(PIECE_BYTES);
        let Self { manager, peers, .. } = self;
        let mut interface = manager.session();
        let word = u64::from(place.value).to_le_bytes();
        let memory = &mut peers[peer].memory;
        let mut brings = Brings::Nothing;
        let begun = match primitive {
            Primitive::Get => {
                brings = Brings::Word { local: place.local };
                interface.begin_read_word(memory, at, Wait::Forever)
            }
            Primitive::Put => interface.begin_put(memory, at, &word, Wait::Forever),
            Primitive::ActiveMessage => {
                let add = Atomic::new(Change::Add, Width::Bits64, 1);
                interface.begin_atomic(memory, at, add, Wait::Forever)
            }
            Primitive::BulkGet(bytes) => {
                brings = Brings::Bytes {
                    landing,
                    local: place.local,
                    bytes,
                };
                interface.begin_read(memory, at, landing, bytes.into(), Wait::Forever)
            }
            Primitive::Store => {
                let counted = &peers[peer].counted;
                return interface
                    .store(terminus, counted, at, &word, Wait::Forever)
                    .expect(GONE);
            }
            Primitive::BulkStore(_) | Primitive::Push => return,
        };
        let operation = begun.expect("what is asked for is granted");
        drop(interface);
        self.bulk_begun += u64::from(matches!(brings, Brings::Bytes { .. }));
        self.begun.push_back(Begun {
            peer,
            operation,
            brings,
        });
    }

    /// Whether anything that others ask for is the program's work.
    pub(super) fn is_asked_of_program(&self) -> bool {
        let Version {
            memory,
            stores,
            handlers,
            ..
        } = self.version;
        [memory, stores, handlers].contains(&Server::Program)
    }

    /// Whether something may come that this program is to take.
    pub(super) fn is_awaiting(&self) -> bool {
        self.outstanding() > 0 || self.is_asked_of_program()
    }

    /// How many operations are not complete.
    pub(super) fn outstanding(&self) -> usize {
        self.begun.len() + self.unanswered
    }

    /// How many bytes others have stored here, and how many they brought to atomic procedures.
    pub(super) fn stored_bytes(&self) -> u64 {
        let counted = self.counted.stored_bytes(0);
        self.taken_bytes + counted.expect("the slot counts stores")
    }

    /// Waits until all operations are complete.
    pub(super) fn sync(&mut self) {
        while self.outstanding() > 0 {
            self.look();
        }
    }

    /// Looks once, and if nothing has come, waits until something may have.
    pub(super) fn look_or_wait(&mut self) {
        if !self.look() {
            self.session().host_mut().relax(false);
        }
    }

    /// Takes what has come: a message, an answer or one whose handler it runs; otherwise an
    /// operation that is complete. Whether there was anything.
    pub(super) fn look(&mut self) -> bool {
        while let Some(&owed) = self.owed.front()
            && self.try_to_say(owed)
        {
            self.owed.pop_front();
        }
        self.take_message() || self.take_completion()
    }

    fn take_completion(&mut self) -> bool {
        let Some(begun) = self.begun.front() else {
            return false;
        };
        let memory = &mut self.peers[begun.peer].memory;
        let mut interface = self.manager.session();
        let word = match begun.brings {
            Brings::Word { .. } => interface
                .finish_word(memory, begun.operation, Wait::Poll)
                .map(Some),
            _ => interface
                .finish(memory, begun.operation, Wait::Poll)
                .map(|()| None),
        };
        drop(interface);
        let Ok(word) = word else {
            return false;
        };
        match begun.brings {
            Brings::Word { local } => {
                let word = word.unwrap_or_default();
                self.memory.write(local, &word.to_le_bytes());
            }
            Brings::Bytes {
                landing,
                local,
                bytes,
            } => {
                let mut data = vec![0; bytes as usize];
                let memory = &self.peers[begun.peer].memory;
                memory.landed(landing, &mut data).expect("it landed there");
                self.memory.write(local, &data);
            }
            Brings::Nothing => {}
        }
        self.begun.pop_front();
        true
    }

    fn take_message(&mut self) -> bool {
        let Self { manager, queue, .. } = self;
        let came = manager.session().rcv(queue);
        let Some(notification) = came.expect("the queue is long enough") else {
            return false;
        };
        let (said, sender) = Said::of(notification.word);
        let (primitive, place) = match said {
            Said::Asks(primitive, place) => (primitive, place),
            Said::Answers => {
                self.unanswered -= 1;
                return true;
            }
            Said::Brings { local, value } => {
                self.memory.set(local, value);
                self.unanswered -= 1;
                return true;
            }
            Said::Adds { round, value } => {
                let round = round as usize;
                let rounds = self.parts.len().max(round + 1);
                self.parts.resize_with(rounds, VecDeque::new);
                self.parts[round].push_back(value);
                return true;
            }
        };
        self.handle(primitive, place, sender as usize);
        true
    }

    /// The handler of what a peer asks for.
    fn handle(&mut self, primitive: Primitive, place: Place, peer: usize) {
        world::pause(match primitive {
            Primitive::Get => self.machine.software("get_handler").receive(),
            Primitive::Put => self.machine.software("put_handler").receive(),
            _ => Span::ZERO,
        });
        let mut answer = Owed {
            peer,
            said: Said::Answers,
            from: place.at,
            to: place.local,
            bytes: 0,
        };
        match primitive {
            Primitive::Get => {
                answer.said = Said::Brings {
                    local: place.local,
                    value: self.memory.word(place.at),
                };
            }
            Primitive::Put => self.memory.set(place.at, place.value),
            Primitive::Store => {
                self.memory.set(place.at, place.value);
                self.taken_bytes += u64::from(WORD_BYTES);
            }
            Primitive::Push => {
                self.pushed.push(place.value);
                self.taken_bytes += u64::from(WORD_BYTES);
            }
            Primitive::BulkStore(bytes) => self.taken_bytes += u64::from(bytes),
            Primitive::BulkGet(bytes) => answer.bytes = bytes,
            Primitive::ActiveMessage => {}
        }
        // The order of answers to one peer does not matter, nor whether this one goes before those
        // that wait for room.
        if self.is_answered(primitive) && !self.try_to_say(answer) {
            self.owed.push_back(answer);
        }
    }
}

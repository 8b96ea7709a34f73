//! A program's end of an experiment: the operations of the language, in the version at hand.
//!
//! By messages: the word says what is asked, by which program; the target's program runs the handler when it looks. By one-sided
//! operations: the interface of the target serves them. What a handler does to memory is software of the machine's file.

use std::collections::VecDeque;

use hamlyn::engine::slot::Rights;
use hamlyn::engine::terminus::{GatherPiece, SendTag};
use hamlyn::host::{Address, Supply};
use hamlyn::one_sided::{Atomic, Change, Initiator, InitiatorOptions, Operation, Width};
use hamlyn::{Interface, Manager, Message, NewSlot, Queue, SendError, Target, Ticket, Wait};

use super::versions::{Server, Version};
use crate::host::SimHost;
use crate::machine::Machine;
use crate::reproduce::primitive::AsManager;
use crate::time::Span;
use crate::world;

const AREA_BYTES: u64 = 1 << 16;
/// Bulk transfers are made in pieces of so many bytes, each of which is one packet.
pub(super) const PIECE_BYTES: u32 = 8_192;
const QUEUE_ENTRIES: usize = 4_096;
/// What one operation moves.
const WORD_BYTES: u32 = size_of::<u64>() as u32;
/// Gets and puts that are under way at a time.
const OUTSTANDING_MAX: usize = 16;

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
}

/// What a message says, in the upper half of its word; the lower half is the number of its sender among its target's peers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Said {
    Asks(Primitive),
    Answers,
}

/// Bits of a word for the number of bytes, and for the sender.
const BYTES_BITS: u32 = 24;
const SENDER_BITS: u32 = 16;

impl Said {
    fn word(self, sender: u32) -> u64 {
        let (code, bytes) = match self {
            Self::Answers => (0, 0),
            Self::Asks(Primitive::ActiveMessage) => (1, 0),
            Self::Asks(Primitive::Get) => (2, 0),
            Self::Asks(Primitive::Put) => (3, 0),
            Self::Asks(Primitive::Store) => (4, 0),
            Self::Asks(Primitive::BulkGet(bytes)) => (5, bytes),
            Self::Asks(Primitive::BulkStore(bytes)) => (6, bytes),
        };
        u64::from(bytes) << SENDER_BITS | u64::from(sender) | code << (BYTES_BITS + SENDER_BITS)
    }

    fn of(word: u64) -> (Self, u32) {
        let sender = word as u32 & ((1 << SENDER_BITS) - 1);
        let bytes = (word >> SENDER_BITS) as u32 & ((1 << BYTES_BITS) - 1);
        let said = match word >> (BYTES_BITS + SENDER_BITS) {
            1 => Self::Asks(Primitive::ActiveMessage),
            2 => Self::Asks(Primitive::Get),
            3 => Self::Asks(Primitive::Put),
            4 => Self::Asks(Primitive::Store),
            5 => Self::Asks(Primitive::BulkGet(bytes)),
            6 => Self::Asks(Primitive::BulkStore(bytes)),
            _ => Self::Answers,
        };
        (said, sender)
    }
}

/// See the module.
pub(super) struct End {
    manager: Manager<SimHost>,
    machine: Machine,
    version: Version,
    queue: Queue,
    /// What it shares, as it is sent from there.
    memory: SendTag,
    /// What this program is called by its peers: its place among theirs.
    number: u32,
    peers: Vec<Peer>,
    /// Operations of the interface that are not complete, oldest first.
    begun: VecDeque<(usize, Operation)>,
    /// Messages that are not answered.
    unanswered: usize,
}

struct Peer {
    /// Where its messages come.
    inbox: Target,
    /// Where its stores are counted.
    counted: Target,
    memory: Initiator,
}

impl AsManager for End {
    fn manager(&self) -> &Manager<SimHost> {
        &self.manager
    }
}

impl End {
    /// Opens what a program shares, and offers it.
    pub(super) fn open(manager: Manager<SimHost>, machine: &Machine, version: Version) -> Self {
        let terminus = manager.terminus();
        let (queue, memory) = {
            let mut interface = manager.interface();
            let area = interface.allocate(AREA_BYTES).expect("memory");
            let queue = interface.open_queue(QUEUE_ENTRIES).expect("a queue");
            // With entries: what is announced to a program is looked up.
            let inbox = NewSlot::new(&area).queue(&queue).entries(1);
            let inbox = interface.open_slot(inbox).expect("a slot");
            let counted = interface.open_slot(NewSlot::new(&area).counting_stores(1));
            let counted = counted.expect("a slot");
            let memory = NewSlot::new(&area).rights(Rights::ALL);
            let memory = interface.open_slot(memory).expect("a slot");
            let offers = [
                ("inbox", inbox.fast_ticket(0, AREA_BYTES)),
                ("counted", counted.ticket(0, 0, AREA_BYTES)),
                ("memory", memory.fast_ticket(0, AREA_BYTES)),
            ];
            for (item, ticket) in offers {
                let ticket = ticket.expect("a ticket for all of it").to_bytes();
                let offered = interface.offer(item, Supply::Always, &ticket);
                offered.expect("an offer");
            }
            let tag = interface.bind_area(terminus, &area, 0..AREA_BYTES);
            (queue, tag.expect("an area for one"))
        };
        Self {
            manager,
            machine: machine.clone(),
            version,
            queue,
            memory,
            number: 0,
            peers: Vec::new(),
            begun: VecDeque::new(),
            unanswered: 0,
        }
    }

    fn interface(&mut self) -> impl std::ops::DerefMut<Target = Interface<SimHost>> + '_ {
        self.manager.interface()
    }

    /// Meets the programs of these names, each of which calls this one by `number`.
    pub(super) fn meet(&mut self, number: u32, names: &[&str]) {
        self.number = number;
        for name in names {
            let target = |item: &str| {
                let mut interface = self.manager.interface();
                let asked = interface.ask(Address::Name(name), item, Wait::Forever);
                let bytes = asked.expect("every program of the experiment offers it");
                let ticket = Ticket::from_bytes(&bytes).expect("a ticket as it was offered");
                let target = interface.target(&ticket, Wait::Forever);
                target.expect("every program lives until all is done")
            };
            let (inbox, counted, memory) = (target("inbox"), target("counted"), target("memory"));
            let options = InitiatorOptions::default();
            let memory = self.interface().open_initiator(memory, options);
            self.peers.push(Peer {
                inbox,
                counted,
                memory: memory.expect("room for one"),
            });
        }
    }

    /// Begins an operation.
    pub(super) fn begin(&mut self, primitive: Primitive, peer: usize) {
        let server = match primitive {
            Primitive::ActiveMessage => self.version.handlers,
            Primitive::Get | Primitive::Put | Primitive::BulkGet(_) => self.version.memory,
            Primitive::Store | Primitive::BulkStore(_) => self.version.stores,
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
                self.say(peer, Said::Asks(primitive), bytes);
                self.unanswered += usize::from(self.is_answered(primitive));
            }
            Server::Interface => self.ask(primitive, peer),
        }
    }

    fn is_answered(&self, primitive: Primitive) -> bool {
        let is_store = matches!(primitive, Primitive::Store | Primitive::BulkStore(_));
        !is_store || self.version.acknowledges_stores
    }

    /// A bulk transfer, begun piece by piece.
    pub(super) fn begin_bulk(&mut self, of: fn(u32) -> Primitive, bytes: u32, peer: usize) {
        let mut left = bytes;
        while left > 0 {
            let piece = left.min(PIECE_BYTES);
            self.begin(of(piece), peer);
            left -= piece;
        }
    }

    fn say(&mut self, peer: usize, said: Said, bytes: u32) {
        let message = Message::new(&[]).word(said.word(self.number));
        self.send(peer, |peer| &peer.inbox, &message, bytes);
    }

    /// Sends a message, with so many bytes of what this program shares.
    fn send(&mut self, peer: usize, to: fn(&Peer) -> &Target, message: &Message<'_>, bytes: u32) {
        let pieces = [GatherPiece {
            tag: self.memory,
            offset: 0,
            length_bytes: bytes.into(),
        }];
        let terminus = self.manager.terminus();
        loop {
            let mut interface = self.manager.interface();
            let target = to(&self.peers[peer]);
            let sent = match bytes {
                0 => interface.send_msg(terminus, target, message, Wait::Poll),
                _ => interface.send_gather(terminus, target, message, &pieces),
            };
            drop(interface);
            match sent {
                Ok(_) => return,
                // Reception goes on.
                Err(SendError::WouldBlock { .. }) => drop(self.look()),
                Err(error) => panic!("every program lives until all is done: {error}"),
            }
        }
    }

    fn ask(&mut self, primitive: Primitive, peer: usize) {
        if let Primitive::BulkStore(bytes) = primitive {
            let message = Message::new(&[]);
            return self.send(peer, |peer| &peer.counted, &message, bytes);
        }
        let terminus = self.manager.terminus();
        let Self { manager, peers, .. } = self;
        let mut interface = manager.interface();
        let word = [0; WORD_BYTES as usize];
        let memory = &mut peers[peer].memory;
        let begun = match primitive {
            Primitive::Get => interface.begin_read_word(memory, 0, Wait::Forever),
            Primitive::Put => interface.begin_put(memory, 0, &word, Wait::Forever),
            Primitive::ActiveMessage => {
                let add = Atomic {
                    change: Change::Add,
                    width: Width::Bits64,
                    operand: 1,
                    expected: 0,
                };
                interface.begin_atomic(memory, 0, add, Wait::Forever)
            }
            Primitive::BulkGet(bytes) => {
                interface.begin_read(memory, 0, 0, bytes.into(), Wait::Forever)
            }
            Primitive::Store => {
                let counted = &peers[peer].counted;
                return interface
                    .store(terminus, counted, 0, &word, Wait::Forever)
                    .expect("every program lives until all is done");
            }
            Primitive::BulkStore(_) => return,
        };
        let begun = begun.expect("what is asked for is granted");
        self.begun.push_back((peer, begun));
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

    /// Waits until all operations are complete.
    pub(super) fn sync(&mut self) {
        while self.outstanding() > 0 {
            self.look();
        }
    }

    /// Takes what has come: a message, an answer or one whose handler it runs; otherwise an operation that is complete.
    pub(super) fn look(&mut self) -> bool {
        self.take_message() || self.take_completion()
    }

    fn take_completion(&mut self) -> bool {
        let Some(&(peer, operation)) = self.begun.front() else {
            return false;
        };
        let memory = &mut self.peers[peer].memory;
        let mut interface = self.manager.interface();
        let finished = interface.finish(memory, operation, Wait::Poll);
        drop(interface);
        if finished.is_ok() {
            self.begun.pop_front();
        }
        finished.is_ok()
    }

    fn take_message(&mut self) -> bool {
        let Self { manager, queue, .. } = self;
        let came = manager.interface().rcv(queue);
        let Some(notification) = came.expect("the queue is long enough") else {
            return false;
        };
        let (said, sender) = Said::of(notification.word);
        let Said::Asks(primitive) = said else {
            self.unanswered -= 1;
            return true;
        };
        world::pause(match primitive {
            Primitive::Get => self.machine.software("get_handler").receive(),
            Primitive::Put => self.machine.software("put_handler").receive(),
            _ => Span::ZERO,
        });
        let bytes = match primitive {
            Primitive::BulkGet(bytes) => bytes,
            _ => 0,
        };
        if self.is_answered(primitive) {
            self.say(sender as usize, Said::Answers, bytes);
        }
        true
    }
}

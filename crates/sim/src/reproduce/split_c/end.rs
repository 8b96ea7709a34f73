//! A program's end of an experiment: the operations of the language, in the version at hand.
//!
//! By messages: the word says what is asked, by which program; the target's program runs the handler when it looks. By one-sided
//! operations: the interface of the target serves them. What a handler does to memory is software of the machine's file.

use std::collections::VecDeque;

use hamlyn::engine::slot::Rights;
use hamlyn::host::{Address, Supply};
use hamlyn::one_sided::{Atomic, Change, Initiator, InitiatorOptions, Operation, Width};
use hamlyn::{Interface, Manager, Message, NewSlot, Queue, Target, Ticket, Wait};

use super::versions::{Server, Version};
use crate::host::SimHost;
use crate::machine::Machine;
use crate::reproduce::primitive::AsManager;
use crate::time::Span;
use crate::world;

const AREA_BYTES: u64 = 4_096;
const QUEUE_ENTRIES: usize = 4_096;
/// What one operation moves.
const WORD_BYTES: usize = size_of::<u64>();
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
}

/// What a message says, in the upper half of its word; the lower half is the number of its sender among its target's peers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Said {
    Asks(Primitive),
    Answers,
}

impl Said {
    const ALL: [Said; 5] = [
        Said::Answers,
        Said::Asks(Primitive::ActiveMessage),
        Said::Asks(Primitive::Get),
        Said::Asks(Primitive::Put),
        Said::Asks(Primitive::Store),
    ];

    fn word(self, sender: u32) -> u64 {
        let code = Self::ALL.iter().position(|&one| one == self);
        (code.expect("all of them are listed") as u64) << 32 | u64::from(sender)
    }

    fn of(word: u64) -> (Self, u32) {
        (Self::ALL[(word >> 32) as usize], word as u32)
    }
}

/// See the module.
pub(super) struct End {
    manager: Manager<SimHost>,
    machine: Machine,
    version: Version,
    queue: Queue,
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
        let queue = {
            let mut interface = manager.interface();
            let area = interface.allocate(AREA_BYTES).expect("memory");
            let queue = interface.open_queue(QUEUE_ENTRIES).expect("a queue");
            // With entries: what is announced to a program is looked up.
            let inbox = NewSlot::new(&area).queue(&queue).entries(1);
            let inbox = interface.open_slot(inbox).expect("a slot");
            // One entry that never completes, whose accumulator counts.
            let counted = interface.open_slot(NewSlot::new(&area).entries(1));
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
            queue
        };
        Self {
            manager,
            machine: machine.clone(),
            version,
            queue,
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
            Primitive::Get | Primitive::Put => self.version.memory,
            Primitive::Store => self.version.stores,
        };
        while self.outstanding() >= OUTSTANDING_MAX {
            self.look();
        }
        match server {
            Server::Program => {
                self.say(peer, Said::Asks(primitive), self.number);
                self.unanswered += usize::from(self.is_answered(primitive));
            }
            Server::Interface => self.ask(primitive, peer),
        }
    }

    fn is_answered(&self, primitive: Primitive) -> bool {
        primitive != Primitive::Store || self.version.acknowledges_stores
    }

    fn say(&mut self, peer: usize, said: Said, number: u32) {
        let (manager, peer) = (&self.manager, &self.peers[peer]);
        let message = Message::new(&[]).word(said.word(number));
        let terminus = manager.terminus();
        manager
            .interface()
            .send_msg(terminus, &peer.inbox, &message, Wait::Forever)
            .expect("every program lives until all is done");
    }

    fn ask(&mut self, primitive: Primitive, peer: usize) {
        let Self { manager, peers, .. } = self;
        let terminus = manager.terminus();
        let mut interface = manager.interface();
        let Peer {
            memory, counted, ..
        } = &mut peers[peer];
        let word = [0; WORD_BYTES];
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
            Primitive::Store => {
                let message = Message::new(&word).silent();
                interface
                    .send_msg(terminus, counted, &message, Wait::Forever)
                    .expect("every program lives until all is done");
                return;
            }
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

    /// Takes what has come: an answer, a message whose handler it runs, or operations that are complete.
    pub(super) fn look(&mut self) -> bool {
        if let Some(&(peer, operation)) = self.begun.front() {
            let memory = &mut self.peers[peer].memory;
            let finished = self
                .manager
                .interface()
                .finish(memory, operation, Wait::Poll);
            if finished.is_ok() {
                self.begun.pop_front();
                return true;
            }
        }
        let Self { manager, queue, .. } = self;
        let came = manager.interface().rcv(queue);
        let Some(notification) = came.expect("the queue is long enough") else {
            return false;
        };
        let (said, sender) = Said::of(notification.word);
        match said {
            Said::Answers => self.unanswered -= 1,
            Said::Asks(primitive) => {
                world::pause(match primitive {
                    Primitive::Get => self.machine.software("get_handler").receive(),
                    Primitive::Put => self.machine.software("put_handler").receive(),
                    Primitive::ActiveMessage | Primitive::Store => Span::ZERO,
                });
                if self.is_answered(primitive) {
                    self.say(sender as usize, Said::Answers, self.number);
                }
            }
        }
        true
    }
}

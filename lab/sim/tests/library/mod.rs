//! Random programs over the library's protocols on one interface that sends to itself, judged by
//! the reference model: every message once, as it was sent, where it was sent.
//!
//! Written over any host. Nothing here waits, so one thread plays all processes.
#![allow(
    unreachable_pub,
    dead_code,
    reason = "a part of several tests, which need different parts of it"
)]

mod fences;
mod flood;
mod rooms;
mod strangers;
mod streams;

use hamlyn::engine::counting::Counting;
use hamlyn::{Host, Manager, SendError, Ticket, Wait, datagram, group};
use hamlyn_sim::random::Random;
use hamlyn_sim::reference::Violation;
use hamlyn_sim::reference::delivery::{Deliveries, Order};

use fences::Fences;
use flood::Flood;
use rooms::Rooms;
use strangers::Strangers;
use streams::Stream;

const GROW: Wait = Wait::millis(10_000);
/// Buffers of datagrams; messages to the second take several packets.
const BUFFER_BYTES: [u32; 2] = [700, 300_000];
const GROUP_BYTES: u32 = 600;
/// Steps from one fence to the next.
const STEPS_PER_FENCE: u64 = 150;
/// Rounds in which all that is under way must come.
const ROUNDS: u32 = 1_000;

/// A violation, and where in its history.
#[derive(Debug)]
pub struct Found {
    pub step: u64,
    pub act: &'static str,
    pub violation: Box<Violation>,
}

/// What came in a history without violation.
#[derive(Clone, Copy, Default, Debug)]
pub struct Figures {
    pub records: u64,
    pub tags: u64,
    pub datagrams: u64,
    pub groups: u64,
}

/// A datagram receiver and its sender.
struct Mailbox<H: Host> {
    receiver: datagram::Receiver<H>,
    sender: datagram::Sender<H>,
    channel: usize,
    /// What is on its way: where in the buffer, and whether with a ticket.
    sent: Option<(u32, Option<Ticket>)>,
}

/// A part of a round of a group.
struct Part {
    member: usize,
    offset: u64,
    data: Vec<u8>,
    is_last: bool,
}

/// A group, and its round.
struct Round<H: Host> {
    receiver: group::Receiver<H>,
    members: Vec<group::Sender<H>>,
    parts: Vec<Part>,
    /// What the place must hold; `None` where nobody writes in this round.
    expected: Vec<Option<u8>>,
    is_open: bool,
}

pub struct Programs<'a, H: Host> {
    manager: &'a Manager<H>,
    random: Random,
    deliveries: Deliveries,
    stream: Stream<H>,
    rooms: Rooms<H>,
    flood: Flood,
    strangers: Strangers,
    fences: Fences,
    mailboxes: Vec<Mailbox<H>>,
    round: Round<H>,
    figures: Figures,
}

/// What a failed call is.
pub fn failed<E: std::fmt::Display>(call: &'static str) -> impl Fn(E) -> Violation {
    move |error| Violation::Failed {
        call,
        error: error.to_string(),
    }
}

/// What sending gave; nothing if there was no room.
pub fn sent<T>(call: &'static str, result: Result<T, SendError>) -> Result<Option<T>, Violation> {
    match result {
        Ok(sent) => Ok(Some(sent)),
        Err(SendError::WouldBlock { .. }) => Ok(None),
        Err(error) => Err(failed(call)(error)),
    }
}

/// Runs the history of a seed.
pub fn run<H: Host>(manager: &Manager<H>, seed: u64, steps: u64) -> Result<Figures, Found> {
    let at = |step, act| {
        move |violation| Found {
            step,
            act,
            violation: Box::new(violation),
        }
    };
    let mut programs = Programs::open(manager, seed).map_err(at(0, "open"))?;
    for step in 0..steps {
        let (act, result) = programs.step();
        result.map_err(at(step, act))?;
        if step % STEPS_PER_FENCE == STEPS_PER_FENCE - 1 {
            programs.fence().map_err(at(step, "fence"))?;
        }
    }
    programs.settle().map_err(at(steps, "settle"))
}

impl<'a, H: Host> Programs<'a, H> {
    fn open(manager: &'a Manager<H>, seed: u64) -> Result<Self, Violation> {
        let mut deliveries = Deliveries::new();
        let mut mailboxes = Vec::new();
        for bytes in BUFFER_BYTES {
            let receiver = datagram::Receiver::new(manager, bytes).map_err(failed("open"))?;
            let ticket = receiver.ticket();
            mailboxes.push(Mailbox {
                receiver,
                sender: datagram::Sender::grow(manager, &ticket, GROW).map_err(failed("grow"))?,
                channel: deliveries.open(Order::Kept),
                sent: None,
            });
        }
        let receiver = group::Receiver::new(manager, GROUP_BYTES, Counting::Bits32);
        let round = Round {
            receiver: receiver.map_err(failed("open a group"))?,
            members: Vec::new(),
            parts: Vec::new(),
            expected: Vec::new(),
            is_open: false,
        };
        Ok(Self {
            stream: Stream::open(manager, seed.is_multiple_of(2), &mut deliveries)?,
            rooms: Rooms::open(manager, &mut deliveries)?,
            flood: Flood::open(manager)?,
            strangers: Strangers::open(manager)?,
            fences: Fences::open(manager)?,
            manager,
            random: Random::new(seed),
            deliveries,
            mailboxes,
            round,
            figures: Figures::default(),
        })
    }

    fn step(&mut self) -> (&'static str, Result<(), Violation>) {
        let (manager, random) = (self.manager, &mut self.random);
        let (stream, deliveries) = (&mut self.stream, &mut self.deliveries);
        if random.below(1_000) == 0 {
            return ("flood", self.flood.send(manager));
        }
        if random.below(3) == 0 {
            return ("strangers", self.strangers.act(manager, random));
        }
        match random.below(20) {
            0..7 => ("stream: send", stream.send(random, deliveries)),
            7..10 => ("stream: receive", stream.receive(deliveries)),
            10..12 => ("stream: release", stream.release(random)),
            12..14 => {
                let rooms = &mut self.rooms;
                ("tagged write", rooms.write(random, deliveries))
            }
            14 => {
                let rooms = &mut self.rooms;
                ("get a tag", rooms.get(random, deliveries))
            }
            15 => ("datagram: send", self.send_datagram()),
            16 => ("datagram: receive", self.receive_datagram()),
            17..19 => ("group: send", self.send_part()),
            _ => ("group: receive", self.receive_group()),
        }
    }

    fn send_datagram(&mut self) -> Result<(), Violation> {
        let at = self.random.below(self.mailboxes.len() as u64) as usize;
        let other = self.mailboxes[1 - at].receiver.ticket();
        let mailbox = &mut self.mailboxes[at];
        if mailbox.sent.is_some() {
            return Ok(());
        }
        mailbox.receiver.ready();
        let most = u64::from(BUFFER_BYTES[at]);
        let length = match self.random.below(8) {
            0..4 => 16,
            4..7 => self.random.below(u64::from(BUFFER_BYTES[0]) + 1),
            _ => self.random.below(most + 1),
        };
        let offset = self.random.below(most - length + 1) as u32;
        let data = noise(&mut self.random, length);
        let reply = (self.random.below(3) == 0).then_some(other);
        // A long one would be cut where there is no room for all of it.
        let wait = if length > u64::from(BUFFER_BYTES[0]) {
            GROW
        } else {
            Wait::Poll
        };
        let result = mailbox.sender.send_to(offset, &data, reply.as_ref(), wait);
        if sent("sending a datagram", result)?.is_some() {
            self.deliveries.sent(mailbox.channel, &data);
            mailbox.sent = Some((offset, reply));
        }
        Ok(())
    }

    fn receive_datagram(&mut self) -> Result<(), Violation> {
        for mailbox in &mut self.mailboxes {
            if !mailbox.receiver.is_ready() {
                continue;
            }
            let received = mailbox.receiver.recv(Wait::Poll);
            let Some(found) = received.map_err(failed("receiving a datagram"))? else {
                continue;
            };
            self.deliveries.delivered(mailbox.channel, &found)?;
            if mailbox.sent.take() != Some((found.offset(), found.reply_ticket())) {
                return Err(Violation::Delivered {
                    channel: mailbox.channel,
                    length_bytes: found.len(),
                    why: "at another place, or with another ticket",
                });
            }
            found.keep();
            self.figures.datagrams += 1;
        }
        Ok(())
    }

    /// What was sent is here, so it is received without waiting.
    fn fence(&mut self) -> Result<(), Violation> {
        self.fences.check(self.manager)?;
        self.receive_datagram()?;
        match self.mailboxes.iter().all(|mailbox| mailbox.sent.is_none()) {
            true => Ok(()),
            false => Err(failed("a fence")("a datagram is not here")),
        }
    }

    /// Begins a round: some members, each of which sends its part in pieces.
    fn begin_round(&mut self) -> Result<(), Violation> {
        let round = &mut self.round;
        let whole = round.receiver.begin();
        let whole = whole.map_err(failed("beginning a round"))?;
        round.expected = vec![None; GROUP_BYTES as usize];
        round.members.clear();
        let count = 1 + self.random.below(4);
        let each = u64::from(GROUP_BYTES) / count;
        let members = whole
            .divide(&vec![each; count as usize])
            .map_err(failed("dividing a member"))?;
        for (number, member) in members.iter().enumerate() {
            let grown = group::Sender::grow(self.manager, member, GROW);
            round.members.push(grown.map_err(failed("grow"))?);
            let mut offset = 0;
            loop {
                let is_last = self.random.below(2) == 0;
                let length = self.random.below(each - offset + 1);
                let data = noise(&mut self.random, length);
                let start = (number as u64 * each + offset) as usize;
                for (place, &byte) in round.expected[start..].iter_mut().zip(&data) {
                    *place = Some(byte);
                }
                round.parts.push(Part {
                    member: number,
                    offset,
                    data,
                    is_last,
                });
                offset += length;
                if is_last {
                    break;
                }
            }
        }
        // The next one to send is at the end.
        round.parts.reverse();
        round.is_open = true;
        Ok(())
    }

    fn send_part(&mut self) -> Result<(), Violation> {
        if !self.round.is_open {
            return self.begin_round();
        }
        let round = &mut self.round;
        let Some(part) = round.parts.last() else {
            return Ok(());
        };
        let member = &mut round.members[part.member];
        let (offset, data) = (part.offset, &part.data);
        let result = if part.is_last {
            member.send_last(offset, data, Wait::Poll)
        } else {
            member.send(offset, data, Wait::Poll)
        };
        if sent("sending a part", result)?.is_some() {
            round.parts.pop();
        }
        Ok(())
    }

    fn receive_group(&mut self) -> Result<(), Violation> {
        let round = &mut self.round;
        if !round.is_open {
            return Ok(());
        }
        let received = round.receiver.recv(Wait::Poll);
        let Some(found) = received.map_err(failed("receiving a group"))? else {
            return Ok(());
        };
        let wrong = |why| Violation::Delivered {
            channel: usize::MAX,
            length_bytes: found.len(),
            why,
        };
        if !round.parts.is_empty() {
            return Err(wrong("a group that is not complete"));
        }
        let is_as_sent = |(expected, found): (&Option<u8>, &u8)| {
            expected.is_none_or(|expected| expected == *found)
        };
        if found.len() != round.expected.len() || !round.expected.iter().zip(found).all(is_as_sent)
        {
            return Err(wrong("not those that the members of the group sent"));
        }
        round.is_open = false;
        self.figures.groups += 1;
        Ok(())
    }

    /// All that is under way comes, and the stream ends.
    fn settle(mut self) -> Result<Figures, Violation> {
        let closes_early = self.random.below(2) == 0;
        for round in 0..ROUNDS {
            let is_quiet = self.deliveries.quiet().is_ok() && !self.round.is_open;
            if is_quiet && self.stream.is_ended() {
                break;
            }
            if round + 1 == ROUNDS {
                self.deliveries.quiet()?;
                let what = "a group is not complete, or the stream does not end";
                return Err(Violation::Unfinished(what.to_owned()));
            }
            let (manager, deliveries) = (self.manager, &mut self.deliveries);
            if self.stream.flush()? && (closes_early || is_quiet) {
                self.stream.close()?;
            }
            self.stream.receive(deliveries)?;
            self.stream.release_all(manager)?;
            self.rooms.get(&mut self.random, deliveries)?;
            self.receive_datagram()?;
            if self.round.is_open {
                self.send_part()?;
                self.receive_group()?;
            }
        }
        self.figures.records = self.deliveries.count(self.stream.channel);
        self.figures.tags = self.deliveries.count(self.rooms.channel);
        self.flood.close(self.manager)?;
        self.strangers.close(self.manager)?;
        Ok(self.figures)
    }
}

fn noise(random: &mut Random, length: u64) -> Vec<u8> {
    (0..length).map(|_| random.bits() as u8 | 1).collect()
}

impl Figures {
    pub fn add(&mut self, other: &Self) {
        self.records += other.records;
        self.tags += other.tags;
        self.datagrams += other.datagrams;
        self.groups += other.groups;
    }

    /// Whether each protocol was used often enough to say something.
    pub fn are_lively(&self) -> bool {
        let counts = [self.records, self.tags, self.datagrams, self.groups];
        counts.iter().all(|&count| count > 500)
    }
}

/// An interface of the process host, which finds nobody but itself.
pub fn interface() -> Manager<hamlyn::host::process::ProcessHost> {
    let namespace = format!("sim{}", std::process::id());
    let options = hamlyn::host::process::Options::default().in_namespace(&namespace);
    hamlyn::open_with(options, hamlyn::ManagerOptions::default()).unwrap()
}

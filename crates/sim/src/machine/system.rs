//! Hosts with cards around a switch, in virtual time: application, work queue, interface processor, DMA, wire, and
//! up again on the other side.
//!
//! Programs are straight code that sends and awaits, and time passes while they wait, as it does for programs of the simulator
//! (decision 0011); so they can move there as they are.

mod host;

use std::collections::BTreeMap;

use hamlyn_engine::limits::DIRECT_BYTES_MAX;
use hamlyn_engine::notification::Notification;
use hamlyn_engine::terminus::PostError;

use super::card::{self, Place, Step};
use super::component::{Component, Ledger};
use super::memory::Memory;
use super::parameters::{HEADER_BYTES, Parameters, Software};
use super::resource::Grant;
use crate::random::Random;
use crate::time::{Span, Time};
use host::{Doing, Half, Host, Job, Launch};

/// How a message is sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Way {
    /// Fast mode, written to the card by the application itself.
    Raw,
    /// Fast mode by the library's tagged remote write.
    Tagged,
    /// A normal message by the library's datagrams: its data and metadata are pulled (what the paper leaves open, H-321).
    Datagram,
}

/// A message to be sent: the first bytes of the sender's area to the first bytes of the receiver's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Letter {
    /// The host that it is for.
    pub to: usize,
    /// How.
    pub way: Way,
    /// Bytes of data.
    pub data_bytes: usize,
    /// Bytes of metadata, at most 60; none in fast mode.
    pub metadata_bytes: usize,
    /// Whether it shows the receiver's key, or a wrong one.
    pub has_key: bool,
    /// Whether it lands without a notice; then nobody awaits it.
    pub is_silent: bool,
}

impl Letter {
    /// A message with the right key and without metadata.
    pub const fn new(to: usize, way: Way, data_bytes: usize) -> Self {
        Self {
            to,
            way,
            data_bytes,
            metadata_bytes: 0,
            has_key: true,
            is_silent: false,
        }
    }
}

/// A message has come to an application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// When the application has it.
    pub at: Time,
    /// What its way cost.
    pub ledger: Ledger,
    /// What announced it.
    pub notification: Notification,
}

/// What will happen.
#[derive(Debug)]
enum Event {
    /// A message's doorbell is heard by the card, its way so far being this.
    Rung(usize, Ledger),
    /// A step is done.
    StepDone(usize, Half),
    /// The next step can begin.
    GoOn(usize, Half),
    /// A packet is on its sender's card.
    Pulled(usize, Launch),
    /// A packet has left, all of it.
    Left(usize, Launch),
    /// A packet is on its receiver's card.
    Arrived(usize, Launch),
    /// The processor can see a notification.
    Told(usize, Ledger),
    /// The application of that host has a message, its way being this.
    Noticed(usize, Ledger),
}

/// Hosts, cards, a switch, and the time. Hosts are numbered from 0; to name one that does not exist is a bug, and panics.
#[derive(Debug)]
pub struct System {
    machine: Parameters,
    now: Time,
    /// By time, and then in the order in which they were foreseen.
    events: BTreeMap<(Time, u64), Event>,
    foreseen: u64,
    happened: u64,
    hosts: Vec<Host>,
    /// Whose packet a port of the switch took last.
    last_served: Vec<usize>,
}

impl System {
    /// So many hosts, at most 64, with cards whose packets carry at most `packet_bytes`, 64 or more.
    pub fn new(machine: Parameters, hosts: usize, packet_bytes: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        Self {
            machine,
            now: Time::ZERO,
            events: BTreeMap::new(),
            foreseen: 0,
            happened: 0,
            hosts: (0..hosts)
                .map(|_| Host::new(&machine, hosts, packet_bytes, &mut random))
                .collect(),
            last_served: vec![0; hosts],
        }
    }

    /// What time it is.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Events so far.
    pub fn happened(&self) -> u64 {
        self.happened
    }

    /// The memory that a host sends from.
    pub fn sending_area(&self, host: usize) -> &Memory {
        &self.hosts[host].sending_area
    }

    /// The memory that a host receives in.
    pub fn receiving_area(&self, host: usize) -> &Memory {
        &self.hosts[host].receiving_area
    }

    /// The metadata of the message that this notification announced.
    pub fn metadata(&self, host: usize, notification: &Notification) -> Vec<u8> {
        self.hosts[host].metadata_of(notification)
    }

    /// Packets that a host's engine refused.
    pub fn refused(&self, host: usize) -> u64 {
        self.hosts[host].refused
    }

    /// How long the interface processor of a host's card was in use.
    pub fn lanai_busy(&self, host: usize) -> Span {
        self.hosts[host].resource(Place::Lanai).busy()
    }

    /// How long a host's I/O bus was in use, both directions together.
    pub fn bus_busy(&self, host: usize) -> Span {
        self.hosts[host].bus_busy()
    }

    /// How long a host's processor worked: software and stores, and not waiting.
    pub fn processor_busy(&self, host: usize) -> Span {
        self.hosts[host].processor.busy
    }

    /// How long a host's link was taken.
    pub fn link_busy(&self, host: usize) -> Span {
        self.hosts[host].link_busy
    }

    /// How the application of that host receives from now on; at first [`Way::Datagram`].
    pub fn listen(&mut self, host: usize, way: Way) {
        self.hosts[host].listens = way;
    }

    /// The application of that host goes to sleep until a message comes.
    pub fn sleep(&mut self, host: usize) {
        self.hosts[host].is_asleep = true;
    }

    /// Sends a message, in the time that the processor needs for it; waits if the work queue is full.
    pub fn send(&mut self, from: usize, letter: &Letter) -> Result<(), PostError> {
        let began = self.now;
        let software = self.software(letter.way).send
            + if letter.metadata_bytes == 0 {
                Span::ZERO
            } else {
                self.machine.metadata_software
            };
        let stores = if letter.way != Way::Datagram && letter.data_bytes <= DIRECT_BYTES_MAX {
            self.machine.direct_stores(letter.data_bytes as u64)
        } else {
            let pieces = 1 + u64::from(letter.metadata_bytes != 0);
            self.machine.gather_stores(pieces)
        };
        let written = self.hosts[from].processor.work(self.now, software + stores);
        self.run_until(written);
        let (key, slot) = (
            self.hosts[letter.to].key_for(letter),
            self.hosts[letter.to].slot,
        );
        loop {
            match self.hosts[from].post(from, letter, slot, key) {
                Err(PostError::QueueFull) if self.step() => {}
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        let mut ledger = Ledger::default();
        ledger.add(Component::HostSoftware, software);
        ledger.add(Component::HostWrites, stores);
        let waited = self.now.since(began) - (software + stores);
        ledger.add(Component::Waiting, waited);
        let heard = self.machine.crossing.store;
        self.later(heard, &mut ledger, |ledger| Event::Rung(from, ledger));
        Ok(())
    }

    /// Lets time pass until the application of that host has a message; nothing if none will ever come.
    pub fn await_message(&mut self, host: usize) -> Option<Arrival> {
        loop {
            if let Some(arrival) = self.hosts[host].arrivals.pop_front() {
                return Some(arrival);
            }
            if !self.step() {
                return None;
            }
        }
    }

    /// Lets everything happen that will.
    pub fn settle(&mut self) {
        while self.step() {}
    }

    fn software(&self, way: Way) -> Software {
        match way {
            Way::Raw => self.machine.raw,
            Way::Tagged => self.machine.tagged,
            Way::Datagram => self.machine.datagram,
        }
    }

    fn foresee(&mut self, at: Time, event: Event) {
        self.events.insert((at, self.foreseen), event);
        self.foreseen += 1;
    }

    /// Has something happen after a latency during which nothing is occupied; at once if there is none.
    fn later(&mut self, latency: Span, ledger: &mut Ledger, event: impl FnOnce(Ledger) -> Event) {
        ledger.add(Component::Crossing, latency);
        let event = event(*ledger);
        if latency == Span::ZERO {
            self.happen(event);
        } else {
            self.foresee(self.now + latency, event);
        }
    }

    /// The next event; false if there is none.
    fn step(&mut self) -> bool {
        let Some(((at, _), event)) = self.events.pop_first() else {
            return false;
        };
        self.now = at;
        self.happened += 1;
        self.happen(event);
        true
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Rung(host, ledger) => {
                self.hosts[host].posted.push_back((self.now, ledger));
                self.consider_sending(host);
            }
            Event::StepDone(host, half) => self.step_done(host, half),
            Event::GoOn(host, half) => self.go_on(host, half),
            Event::Pulled(host, launch) => self.pulled(host, launch),
            Event::Left(host, launch) => self.left(host, launch),
            Event::Arrived(host, launch) => self.arrived(host, launch),
            Event::Told(host, ledger) => self.told(host, ledger),
            Event::Noticed(host, ledger) => self.noticed(host, ledger),
        }
    }

    fn run_until(&mut self, end: Time) {
        while self
            .events
            .first_key_value()
            .is_some_and(|(&(at, _), _)| at <= end)
        {
            self.step();
        }
        self.now = self.now.max(end);
    }

    // A card: two halves, each with a job at most.

    fn begin(&mut self, host: usize, half: Half, steps: Vec<Step>, ledger: Ledger, doing: Doing) {
        *self.hosts[host].job(half) = Some(Job {
            steps: steps.into(),
            ledger,
            doing,
        });
        self.go_on(host, half);
    }

    /// The next step of a job, or what comes after its last.
    fn go_on(&mut self, host: usize, half: Half) {
        let now = self.now;
        let Some(job) = self.hosts[host].job(half) else {
            return;
        };
        let Some(&step) = job.steps.front() else {
            if let Some(job) = self.hosts[host].job(half).take() {
                self.finished(host, job);
            }
            return;
        };
        // Incoming transfers go first (Hamlyn 2.8).
        let urgent = half == Half::Receiving;
        let granted = self.hosts[host]
            .resource_mut(step.place)
            .request(now, half, step.span, urgent);
        self.granted(host, granted);
    }

    fn granted(&mut self, host: usize, granted: Option<Grant<Half>>) {
        if let Some(grant) = granted {
            if let Some(job) = self.hosts[host].job(grant.who) {
                job.ledger.add(Component::Waiting, grant.waited);
            }
            self.foresee(grant.until, Event::StepDone(host, grant.who));
        }
    }

    fn step_done(&mut self, host: usize, half: Half) {
        let now = self.now;
        let Some(step) = self.hosts[host]
            .job(half)
            .as_mut()
            .and_then(Job::step_is_done)
        else {
            return;
        };
        let next = self.hosts[host].resource_mut(step.place).release(now);
        self.granted(host, next);
        if step.then == Span::ZERO {
            self.go_on(host, half);
        } else {
            self.foresee(now + step.then, Event::GoOn(host, half));
        }
    }

    /// A job has no steps left.
    fn finished(&mut self, host: usize, job: Job) {
        let ledger = job.ledger;
        match job.doing {
            Doing::Fetch => {
                if let Some(mut launch) = self.hosts[host].cut(ledger) {
                    let steps = card::pull(&self.machine, &launch.packet);
                    launch.since = self.now;
                    self.begin(host, Half::Sending, steps, ledger, Doing::Pull(launch));
                } else {
                    self.consider_sending(host);
                }
            }
            Doing::Pull(launch) => {
                let latency = if launch.packet.is_pulled {
                    self.machine.crossing.read
                } else {
                    Span::ZERO
                };
                self.hosts[host].pulling += 1;
                let mut ledger = ledger;
                self.later(latency, &mut ledger, |ledger| {
                    Event::Pulled(host, Launch { ledger, ..launch })
                });
                self.consider_sending(host);
            }
            Doing::Complete => self.consider_sending(host),
            Doing::Check(packet) => {
                let verdict = self.hosts[host].judge(&packet);
                let steps = card::take(&self.machine, &packet, verdict);
                let doing = Doing::Take {
                    bytes: HEADER_BYTES + packet.payload_bytes(),
                    verdict,
                };
                self.begin(host, Half::Receiving, steps, ledger, doing);
            }
            Doing::Take { bytes, verdict } => {
                self.hosts[host].arriving_bytes -= bytes;
                if verdict.is_announced {
                    self.tell(host, ledger);
                }
                self.serve_port(host);
                self.consider_receiving(host);
            }
        }
    }

    fn pulled(&mut self, host: usize, launch: Launch) {
        let launch = Launch {
            since: self.now,
            ..launch
        };
        self.hosts[host].pulling -= 1;
        self.hosts[host].outgoing.push_back(launch);
        self.consider_link(host);
    }

    /// Whether the sending half has something to do.
    fn consider_sending(&mut self, host: usize) {
        let node = &mut self.hosts[host];
        if node.sending.is_some() {
            return;
        }
        if node.completions_due > 0 {
            node.completions_due -= 1;
            let steps = card::complete(&self.machine);
            let ledger = Ledger::default();
            self.begin(host, Half::Sending, steps, ledger, Doing::Complete);
        } else if let Some((doorbell, mut ledger)) = node.wants_to_send() {
            ledger.add(Component::Waiting, self.now.since(doorbell));
            let steps = card::fetch(&self.machine, node.at_first_packet);
            self.begin(host, Half::Sending, steps, ledger, Doing::Fetch);
        }
    }

    fn consider_receiving(&mut self, host: usize) {
        let node = &mut self.hosts[host];
        if node.receiving.is_some() {
            return;
        }
        if let Some(mut launch) = node.inbox.pop_front() {
            let waited = self.now.since(launch.since);
            launch.ledger.add(Component::Waiting, waited);
            let steps = card::check(&self.machine);
            let doing = Doing::Check(launch.packet);
            self.begin(host, Half::Receiving, steps, launch.ledger, doing);
        }
    }

    // The wire: a packet has its link and the switch's port to the receiver at the same time (wormhole routing).

    /// Whether the next packet of that host can leave.
    fn consider_link(&mut self, host: usize) {
        let Some(launch) = self.hosts[host].outgoing.front() else {
            return;
        };
        let (to, payload_bytes) = (launch.to, launch.packet.payload_bytes());
        let bytes = HEADER_BYTES + payload_bytes;
        let receiver = &self.hosts[to];
        let is_full = receiver.arriving_bytes + bytes > self.machine.arrivals_max_bytes;
        if self.hosts[host].link_taken || receiver.port_taken || is_full {
            return;
        }
        let Some(mut launch) = self.hosts[host].outgoing.pop_front() else {
            return;
        };
        let taken = self.machine.wire_start + self.machine.wire(payload_bytes);
        let waited = self.now.since(launch.since);
        launch.ledger.add(Component::Waiting, waited);
        launch.ledger.add(Component::Dma, taken);
        self.hosts[host].link_taken = true;
        self.hosts[host].link_busy += taken;
        self.hosts[to].port_taken = true;
        self.hosts[to].arriving_bytes += bytes;
        self.last_served[to] = host;
        self.foresee(self.now + taken, Event::Left(host, launch));
        // There is room on the card for one more.
        self.consider_sending(host);
    }

    /// The port to that host may be free: whose turn is it (`Hamlyn 2.8`: round robin)?
    fn serve_port(&mut self, to: usize) {
        let hosts = self.hosts.len();
        let last = self.last_served[to];
        for turn in 1..=hosts {
            self.consider_link((last + turn) % hosts);
        }
    }

    fn left(&mut self, host: usize, mut launch: Launch) {
        let to = launch.to;
        self.hosts[host].link_taken = false;
        self.hosts[to].port_taken = false;
        launch.ledger.add(Component::Switch, self.machine.switch);
        launch.ledger.add(Component::Dma, self.machine.wire_start);
        let crossing = self.machine.crossing.wire;
        launch.ledger.add(Component::Crossing, crossing);
        let arrives = self.now + self.machine.switch + self.machine.wire_start + crossing;
        if launch.is_last {
            self.hosts[host].completions_due += 1;
        }
        self.foresee(arrives, Event::Arrived(to, launch));
        self.consider_link(host);
        self.serve_port(to);
        self.consider_sending(host);
    }

    fn arrived(&mut self, host: usize, launch: Launch) {
        let launch = Launch {
            since: self.now,
            ..launch
        };
        self.hosts[host].inbox.push_back(launch);
        self.consider_receiving(host);
    }

    // The receiving application.

    /// A notification was written.
    fn tell(&mut self, host: usize, mut ledger: Ledger) {
        let seen = self.machine.crossing.write;
        self.later(seen, &mut ledger, |ledger| Event::Told(host, ledger));
    }

    /// It is seen.
    fn told(&mut self, host: usize, mut ledger: Ledger) {
        let now = self.now;
        let software = self.software(self.hosts[host].listens);
        let node = &mut self.hosts[host];
        let mut wake_up = Span::ZERO;
        if node.is_asleep {
            node.is_asleep = false;
            wake_up = self.machine.interrupt + self.machine.context_switch;
            node.processor.work(now, wake_up);
            ledger.add(Component::WakeUp, wake_up);
        }
        let at_hand = node.processor.receive(now, software);
        ledger.add(Component::HostSoftware, software.receive);
        let taken = at_hand.since(now);
        ledger.add(Component::Waiting, taken - software.receive - wake_up);
        self.foresee(at_hand, Event::Noticed(host, ledger));
    }

    fn noticed(&mut self, host: usize, ledger: Ledger) {
        let node = &mut self.hosts[host];
        if let Ok(Some(notification)) = node.reader.pop() {
            node.arrivals.push_back(Arrival {
                at: self.now,
                ledger,
                notification,
            });
        }
    }
}

#[cfg(test)]
mod tests;

//! Hosts with cards around a switch, in virtual time: application, work queue, interface processor, DMA, wire, and
//! up again on the other side.
//!
//! Programs are straight code that sends and awaits, and time passes while they wait, as it does for programs of the simulator
//! (decision 0011); so they can move there as they are.

mod host;

use hamlyn_engine::limits::DIRECT_BYTES_MAX;
use hamlyn_engine::notification::Notification;
use hamlyn_engine::terminus::PostError;

use super::card::Reception;
use super::cards::{Cards, Event, Segment, Station};
use super::component::{Component, ComponentTimes};
use super::memory::{Memory, Packet};
use super::parameters::{Parameters, Software};
use crate::random::Random;
use crate::time::{Span, Time};
use host::Host;

/// How a message is sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Protocol {
    /// Fast mode, written to the card by the application itself.
    Raw,
    /// Fast mode by the library's tagged remote write.
    Tagged,
    /// A normal message by the library's datagrams: its data and metadata are pulled (what the paper leaves open, H-321).
    Datagram,
}

impl Protocol {
    /// What software that protocol takes on a machine.
    pub fn software(self, machine: &Parameters) -> Software {
        match self {
            Self::Raw => machine.raw,
            Self::Tagged => machine.tagged,
            Self::Datagram => machine.datagram,
        }
    }
}

/// A message to be sent: the first bytes of the sender's area to the first bytes of the receiver's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutgoingMessage {
    /// The host that it is for.
    pub to: usize,
    /// How.
    pub protocol: Protocol,
    /// Bytes of data.
    pub data_bytes: usize,
    /// Bytes of metadata, at most 60; none in fast mode.
    pub metadata_bytes: usize,
    /// Whether it shows the receiver's key, or a wrong one.
    pub has_key: bool,
    /// Whether it lands without a notice; then nobody awaits it.
    pub is_silent: bool,
}

impl OutgoingMessage {
    /// A message with the right key and without metadata.
    pub const fn new(to: usize, protocol: Protocol, data_bytes: usize) -> Self {
        Self {
            to,
            protocol,
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
    pub times: ComponentTimes,
    /// What announced it.
    pub notification: Notification,
}

/// What happens in hosts.
#[derive(Debug)]
enum Happening {
    /// A message's doorbell is heard by the card, its way so far being this.
    Rung(usize, ComponentTimes),
    /// The processor can see a notification.
    Told(usize, ComponentTimes),
    /// The application of that host has a message, its way being this.
    Noticed(usize, ComponentTimes),
}

/// The hosts, and the engine in each.
#[derive(Debug)]
struct Engines(Vec<Host>);

/// Hosts, cards, a switch, and the time. Hosts are numbered from 0; to name one that does not exist is a bug, and panics.
#[derive(Debug)]
pub struct System(Cards<Engines>);

impl System {
    /// So many hosts, at most 64, with cards whose packets carry at most `packet_bytes`, 64 or more.
    pub fn new(machine: Parameters, hosts: usize, packet_bytes: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let engines = Engines(
            (0..hosts)
                .map(|_| Host::new(hosts, packet_bytes, &mut random))
                .collect(),
        );
        Self(Cards::new(machine, hosts, engines))
    }

    /// What time it is.
    pub fn now(&self) -> Time {
        self.0.now()
    }

    /// Events so far.
    pub fn happened(&self) -> u64 {
        self.0.happened()
    }

    /// The memory that a host sends from.
    pub fn sending_area(&self, host: usize) -> &Memory {
        &self.0.station.0[host].sending_area
    }

    /// The memory that a host receives in.
    pub fn receiving_area(&self, host: usize) -> &Memory {
        &self.0.station.0[host].receiving_area
    }

    /// The metadata of the message that this notification announced.
    pub fn metadata(&self, host: usize, notification: &Notification) -> Vec<u8> {
        self.0.station.0[host].metadata_of(notification)
    }

    /// Packets that a host's engine refused.
    pub fn refused(&self, host: usize) -> u64 {
        self.0.station.0[host].refused
    }

    /// How long the interface processor of a host's card was in use.
    pub fn lanai_busy(&self, host: usize) -> Span {
        self.0.lanai_busy(host)
    }

    /// How long a host's I/O bus was in use, both directions together.
    pub fn bus_busy(&self, host: usize) -> Span {
        self.0.bus_busy(host)
    }

    /// How long a host's processor worked: software and stores, and not waiting.
    pub fn processor_busy(&self, host: usize) -> Span {
        self.0.station.0[host].processor.busy
    }

    /// How long a host's link was taken.
    pub fn link_busy(&self, host: usize) -> Span {
        self.0.link_busy(host)
    }

    /// How the application of that host receives from now on; at first [`Protocol::Datagram`].
    pub fn listen(&mut self, host: usize, protocol: Protocol) {
        self.0.station.0[host].listens = protocol;
    }

    /// The application of that host goes to sleep until a message comes.
    pub fn sleep(&mut self, host: usize) {
        self.0.station.0[host].is_asleep = true;
    }

    /// Sends a message, in the time that the processor needs for it; waits if the work queue is full.
    pub fn send(&mut self, from: usize, message: &OutgoingMessage) -> Result<(), PostError> {
        let began = self.now();
        let work = message.protocol.software(&self.0.machine).send
            + if message.metadata_bytes == 0 {
                Span::ZERO
            } else {
                self.0.machine.metadata_software
            };
        let stores =
            if message.protocol != Protocol::Datagram && message.data_bytes <= DIRECT_BYTES_MAX {
                self.0.machine.direct_stores(message.data_bytes as u64)
            } else {
                let pieces = 1 + u64::from(message.metadata_bytes != 0);
                self.0.machine.gather_stores(pieces)
            };
        let written = self.0.station.0[from].processor.work(began, work + stores);
        self.0.run_until(written);
        let (key, slot) = (
            self.0.station.0[message.to].key_for(message),
            self.0.station.0[message.to].slot,
        );
        loop {
            match self.0.station.0[from].post(from, message, slot, key) {
                Err(PostError::QueueFull) if self.0.step() => {}
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        let mut times = ComponentTimes::default();
        times.add(Component::HostSoftware, work);
        times.add(Component::HostWrites, stores);
        let waited = self.now().since(began) - (work + stores);
        times.add(Component::Waiting, waited);
        let heard = self.0.machine.crossing.store;
        self.0.later(heard, &mut times, |times| {
            Event::Station(Happening::Rung(from, times))
        });
        Ok(())
    }

    /// Lets time pass until the application of that host has a message; nothing if none will ever come.
    pub fn await_message(&mut self, host: usize) -> Option<Arrival> {
        loop {
            if let Some(arrival) = self.0.station.0[host].arrivals.pop_front() {
                return Some(arrival);
            }
            if !self.0.step() {
                return None;
            }
        }
    }

    /// Lets everything happen that will.
    pub fn settle(&mut self) {
        while self.0.step() {}
    }
}

impl Station for Engines {
    type Packet = Packet;
    type Event = Happening;

    fn waiting(&self, host: usize) -> Option<(Time, ComponentTimes)> {
        self.0[host].waiting()
    }

    fn segment(&mut self, host: usize) -> Option<Segment<Packet>> {
        self.0[host].segment()
    }

    fn accept(&mut self, host: usize, packet: &Packet) -> Reception {
        self.0[host].accept(packet)
    }

    fn taken(
        cards: &mut Cards<Self>,
        host: usize,
        _packet: Packet,
        reception: Reception,
        times: ComponentTimes,
    ) {
        if reception.is_announced {
            // A notification was written; the processor sees it.
            let seen = cards.machine.crossing.write;
            let mut times = times;
            cards.later(seen, &mut times, |times| {
                Event::Station(Happening::Told(host, times))
            });
        }
    }

    fn happen(cards: &mut Cards<Self>, event: Happening) {
        let now = cards.now();
        match event {
            Happening::Rung(host, times) => {
                cards.station.0[host].posted.push_back((now, times));
                cards.consider_sending(host);
            }
            Happening::Told(host, times) => {
                let machine = cards.machine;
                let (at_hand, times) = cards.station.0[host].told(&machine, now, times);
                let noticed = Event::Station(Happening::Noticed(host, times));
                cards.foresee(at_hand, noticed);
            }
            Happening::Noticed(host, times) => cards.station.0[host].noticed(now, times),
        }
    }
}

impl Host {
    /// A notification can be seen: when the application has the message, and what it has cost.
    fn told(
        &mut self,
        machine: &Parameters,
        now: Time,
        mut times: ComponentTimes,
    ) -> (Time, ComponentTimes) {
        let software = self.listens.software(machine);
        let mut wake_up = Span::ZERO;
        if self.is_asleep {
            self.is_asleep = false;
            wake_up = machine.interrupt + machine.context_switch;
            self.processor.work(now, wake_up);
            times.add(Component::WakeUp, wake_up);
        }
        let at_hand = self.processor.receive(now, software);
        times.add(Component::HostSoftware, software.receive);
        let taken = at_hand.since(now);
        times.add(Component::Waiting, taken - software.receive - wake_up);
        (at_hand, times)
    }

    fn noticed(&mut self, now: Time, times: ComponentTimes) {
        if let Ok(Some(notification)) = self.reader.pop() {
            self.arrivals.push_back(Arrival {
                at: now,
                times,
                notification,
            });
        }
    }
}

#[cfg(test)]
mod tests;

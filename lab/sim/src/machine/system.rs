//! Applications on hosts with boards around a switch: they send, sleep and await, and time passes
//! meanwhile.
//!
//! Programs are straight code that sends and awaits, and time passes while they wait, as it does
//! for programs of the simulator (decision 0011); so they can move there as they are.

use hamlyn_engine::notification::Notification;
use hamlyn_engine::terminus::PostError;

use hamlyn_engine::point::Point;

use super::boards::{Boards, Event};
use super::component::{Component, ComponentTimes};
use super::host::Host;
use super::machine_file::{Machine, Software};
use super::memory::Memory;
use crate::random::Random;
use crate::time::{Span, Time};

/// How a message is sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Protocol {
    /// Fast mode, written to the card by the application itself.
    Raw,
    /// Fast mode by the library's tagged remote write.
    Tagged,
    /// A normal message by the library's datagrams: its data and metadata are pulled (what the
    /// paper leaves open, H-321).
    Datagram,
}

impl Protocol {
    /// Its name in a machine's file.
    const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Tagged => "tagged",
            Self::Datagram => "datagram",
        }
    }

    /// What software that protocol takes on a machine.
    pub(super) fn software(self, machine: &Machine) -> Software {
        machine.software(self.name())
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

/// Hosts, boards, a switch, and the time. Hosts are numbered from 0; to name one that does not
/// exist is a bug, and panics.
#[derive(Debug)]
pub struct System(Boards);

impl System {
    /// So many hosts, at most 64, with boards whose packets carry at most `packet_bytes`, 64 or
    /// more.
    pub fn new(machine: &Machine, hosts: usize, packet_bytes: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let all = (0..hosts)
            .map(|_| Host::new(hosts, packet_bytes, &mut random))
            .collect();
        Self(Boards::new(machine.clone(), all))
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
        &self.0.hosts[host].sending_area
    }

    /// The memory that a host receives in.
    pub fn receiving_area(&self, host: usize) -> &Memory {
        &self.0.hosts[host].receiving_area
    }

    /// The metadata of the message that this notification announced.
    pub fn metadata(&self, host: usize, notification: &Notification) -> Vec<u8> {
        self.0.hosts[host].metadata_of(notification)
    }

    /// Packets that a host's engine refused.
    pub fn refused(&self, host: usize) -> u64 {
        self.0.hosts[host].refused
    }

    /// How long the resources of that row were in use on a host.
    pub fn busy(&self, host: usize, row: Component) -> Span {
        self.0.busy(host, row)
    }

    /// How long a host's processor worked: software and stores, and not waiting.
    pub fn processor_busy(&self, host: usize) -> Span {
        self.0.hosts[host].processor.busy
    }

    /// How long a host's link was taken.
    pub fn link_busy(&self, host: usize) -> Span {
        self.0.link_busy(host)
    }

    /// How the application of that host receives from now on; at first [`Protocol::Datagram`].
    pub fn listen(&mut self, host: usize, protocol: Protocol) {
        self.0.hosts[host].listens = protocol;
    }

    /// The application of that host goes to sleep until a message comes.
    pub fn sleep(&mut self, host: usize) {
        self.0.hosts[host].is_asleep = true;
    }

    /// Sends a message, in the time that the processor needs for it; waits if the work queue is
    /// full.
    pub fn send(&mut self, from: usize, message: &OutgoingMessage) -> Result<(), PostError> {
        let began = self.now();
        let (key, slot) = (
            self.0.hosts[message.to].key_for(message),
            self.0.hosts[message.to].slot,
        );
        let points = loop {
            match self.0.hosts[from].post(from, message, slot, key) {
                Err(PostError::QueueFull) if self.0.step() => {}
                Err(error) => return Err(error),
                Ok(points) => break points,
            }
        };
        let machine = &self.0.machine;
        let mut work = message.protocol.software(machine).send();
        if message.metadata_bytes != 0 {
            work += machine.software("metadata").send();
        }
        let stores = points.iter().fold(Span::ZERO, |sum, point| match point {
            Point::RequestWritten { pieces, data_bytes } => {
                sum + machine.stores((*pieces).into(), (*data_bytes).into())
            }
            _ => sum,
        });
        let heard = machine.store_crosses();
        let posted = self.now();
        let written = self.0.hosts[from].processor.work(posted, work + stores);
        self.0.run_until(written);
        let mut times = ComponentTimes::default();
        times.add(Component::HostSoftware, work);
        times.add(Component::HostWrites, stores);
        let waited = self.now().since(began) - (work + stores);
        times.add(Component::Waiting, waited);
        self.0
            .later(heard, &mut times, |times| Event::Rung(from, times));
        Ok(())
    }

    /// Lets time pass until the application of that host has a message; nothing if none will ever
    /// come.
    pub fn await_message(&mut self, host: usize) -> Option<Arrival> {
        loop {
            if let Some(arrival) = self.0.hosts[host].arrivals.pop_front() {
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

#[cfg(test)]
mod tests;

//! The ports of a receiving half: which messages are let in, which wait, and in which order they
//! come out.

use std::collections::{BTreeMap, VecDeque};

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::notification::Notification;
use hamlyn_engine::packet::{Header, PortAddress, PortName};
use hamlyn_engine::port::{Arrived, PortOptions, queue_of};
use hamlyn_engine::receive::Received;
use hamlyn_engine::receive_observer::PortChange;
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::slot::QueueId;

use super::Violation;

/// Unit in which a queue is counted: a message counts those that it begins, one at least.
const LINE_BYTES: u64 = 64;

#[derive(Clone, Debug)]
struct Waiting {
    arrived: Arrived,
    bytes: Vec<u8>,
    /// The bytes of the queue that are free again when it is taken.
    taken: u64,
}

#[derive(Clone, Debug)]
struct Port {
    options: PortOptions,
    is_parked: bool,
    /// The queue that stands for the set in which it is.
    set: Option<QueueId>,
    waiting: VecDeque<Waiting>,
    /// Where in the queue the next message begins, unless it has to begin at the start to lie in
    /// one piece.
    next: u64,
}

fn lines(length_bytes: u64) -> u64 {
    LINE_BYTES * length_bytes.div_ceil(LINE_BYTES).max(1)
}

impl Port {
    fn refusal(&self, header: &Header) -> Option<Refusal> {
        let to = PortAddress::of(header);
        let reasons = [
            (to.key != self.options.key, Refusal::BadKey),
            (to.group != self.options.group, Refusal::WrongGroup),
            (header.flags.0 != 0, Refusal::UnknownFlag),
            (
                header.metadata_length_bytes != 0 || !header.is_fast(),
                Refusal::BadMetadata,
            ),
            (
                header.word >= u64::from(self.options.handlers),
                Refusal::NoSuchHandler,
            ),
            (self.is_parked, Refusal::NotResident),
        ];
        reasons
            .into_iter()
            .find_map(|(is_so, reason)| is_so.then_some(reason))
    }

    fn queue(&mut self, arrived: Arrived, bytes: &[u8]) -> Result<(), Refusal> {
        let capacity = lines(self.options.queue_bytes.into());
        let needed = lines(bytes.len() as u64);
        let of_link = |link: LinkId| -> u64 {
            let theirs = self.waiting.iter().filter(|one| one.arrived.from == link);
            theirs.map(|one| lines(one.bytes.len() as u64)).sum()
        };
        let used: u64 = self.waiting.iter().map(|one| one.taken).sum();
        if used == 0 {
            self.next = 0;
        }
        let before_end = capacity - self.next;
        let skipped = if needed > before_end { before_end } else { 0 };
        if needed > capacity
            || of_link(arrived.from) + needed > self.options.peer_bytes.into()
            || used + skipped + needed > capacity
        {
            return Err(Refusal::QueueFull);
        }
        self.next = (self.next + skipped + needed) % capacity;
        self.waiting.push_back(Waiting {
            arrived,
            bytes: bytes.to_vec(),
            taken: skipped + needed,
        });
        Ok(())
    }
}

/// The ports that are open.
#[derive(Clone, Debug, Default)]
pub(super) struct Ports(BTreeMap<PortName, Port>);

impl Ports {
    pub(super) fn opened(&mut self, name: PortName, options: PortOptions) {
        self.0.insert(
            name,
            Port {
                options,
                is_parked: false,
                set: None,
                waiting: VecDeque::new(),
                next: 0,
            },
        );
    }

    pub(super) fn changed(&mut self, name: PortName, change: PortChange) {
        let Some(port) = self.0.get_mut(&name) else {
            return;
        };
        match change {
            PortChange::Closed => drop(self.0.remove(&name)),
            PortChange::Rekeyed(key) => port.options.key = key,
            PortChange::Parked(is_parked) => port.is_parked = is_parked,
            PortChange::Joined(set) => port.set = set,
        }
    }

    /// True if a receiver that waits for that is given the next message of the port: it waits for
    /// this one, or for its set, none of which has messages.
    fn is_awaited(&self, name: PortName, waiting: Option<QueueId>) -> bool {
        let set = self.0.get(&name).and_then(|port| port.set);
        let is_silent = |set| {
            let mut of_set = self.0.values().filter(|port| port.set == set);
            of_set.all(|port| port.waiting.is_empty())
        };
        waiting == Some(queue_of(name)) || set.is_some() && waiting == set && is_silent(set)
    }

    /// What becomes of a message, if its receiver waits for that.
    pub(super) fn arrived(
        &mut self,
        from: LinkId,
        header: &Header,
        data: &[u8],
        waiting: Option<QueueId>,
    ) -> Result<Received, Refusal> {
        let name = PortAddress::of(header).port;
        let is_awaited = self.is_awaited(name, waiting);
        let port = self.0.get_mut(&name).ok_or(Refusal::PortClosed)?;
        if let Some(reason) = port.refusal(header) {
            return Err(reason);
        }
        if is_awaited && port.waiting.is_empty() {
            return Ok(Received::Handed(Notification {
                slot: header.slot,
                metadata_index: header.metadata_index,
                word: header.word << 32 | u64::from(header.length_bytes),
                from,
            }));
        }
        let arrived = Arrived {
            handler: header.word as u16,
            length_bytes: header.length_bytes,
            from,
        };
        port.queue(arrived, data)?;
        Ok(Received::Queued)
    }

    /// The owner took out a message.
    pub(super) fn popped(
        &mut self,
        name: PortName,
        arrived: Arrived,
        bytes: &[u8],
    ) -> Result<(), Violation> {
        let due = self
            .0
            .get_mut(&name)
            .and_then(|port| port.waiting.pop_front());
        let is_due = |due: &Waiting| due.arrived == arrived && due.bytes == bytes;
        match due {
            Some(due) if is_due(&due) => Ok(()),
            due => Err(Violation::Message {
                port: name,
                expected: due.map(|due| due.arrived),
                found: arrived,
            }),
        }
    }
}

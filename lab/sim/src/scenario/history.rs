//! The history of a scenario: the messages sent and received by all processes. The checker compares
//! them.
//!
//! The history also carries messages between the two ends of a flow outside the network: tickets
//! that replace others, and the refusals that an attacker is to get.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hamlyn::Area;
use hamlyn::engine::refusal::Refusal;

use crate::random::Random;
use crate::reference::Violation;
use crate::reference::calling::Calls;
use crate::reference::delivery::{Deliveries, Order};
use crate::reference::mailing::Mailing;
use crate::reference::publishing::Publications;
use crate::reference::remote::Remote;
use crate::scenario::plan::{Flow, Kind, Plan};
use crate::time::Time;
use crate::world::{self, ProcessId};

/// Fewest bytes of a message that is known by nothing but its bytes: fewer lie in its place by
/// chance.
const SILENT_BYTES_MIN: usize = 8;

/// Models of promises that only one kind of flow has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Models {
    pub(crate) calls: Calls,
    pub(crate) mailing: Mailing,
    pub(crate) publications: Publications,
    pub(crate) remote: Remote,
    /// The receiver's memory itself, of which `remote` is the model.
    pub(crate) area: Option<Area>,
    /// Bytes of stores that were begun.
    pub(crate) stored_bytes: u64,
}

/// The history of one flow.
#[derive(Clone, Debug)]
struct Entry {
    channel: usize,
    items: u64,
    sent: u64,
    /// All before this were lost with an earlier life of a process, or had come.
    base: u64,
    /// Which of the messages came.
    came: BTreeSet<u64>,
    /// Its sender, or its receiver, was told that something is lost, or is dead.
    ended: bool,
    /// A process of it lives for the so-manieth time.
    life: u32,
    /// Until it does so again, nothing is sent.
    broken: bool,
    /// What the ends told each other: the sender, the receiver.
    told: [Vec<Vec<u8>>; 2],
    expected: BTreeMap<(usize, u8), u64>,
    models: Models,
}

impl Entry {
    fn is_through(&self) -> bool {
        let left = self.items - self.base;
        self.sent == self.items && self.came.range(self.base..).count() as u64 == left
    }

    /// Whatever is in flight may be lost.
    fn report(&self, deliveries: &mut Deliveries) {
        for number in 0..self.sent {
            deliveries.reported(self.channel, number);
        }
    }
}

/// See the module.
pub(crate) struct History {
    deliveries: Deliveries,
    flows: Vec<Entry>,
    violations: Vec<String>,
    done: BTreeSet<usize>,
    /// Processes that may be killed for good, after which nothing of them is to be waited for.
    is_mortal: Vec<bool>,
}

impl History {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut deliveries = Deliveries::new();
        let flows = plan.flows.iter().map(|flow| Entry {
            channel: deliveries.open(match flow.kind {
                Kind::Stream | Kind::Datagram | Kind::Group => Order::Kept,
                _ => Order::Free,
            }),
            items: flow.items.len() as u64,
            sent: 0,
            base: 0,
            came: BTreeSet::new(),
            ended: false,
            life: 0,
            broken: false,
            told: [Vec::new(), Vec::new()],
            expected: BTreeMap::new(),
            models: Models::default(),
        });
        Self {
            flows: flows.collect(),
            deliveries,
            violations: Vec::new(),
            done: BTreeSet::new(),
            is_mortal: (0..plan.processes.len())
                .map(|process| plan.killed().any(|killed| killed == process))
                .collect(),
        }
    }

    /// Messages of the flow may be lost from now on: somebody was told.
    pub(crate) fn end(&mut self, flow: usize) {
        let entry = &mut self.flows[flow];
        entry.ended = true;
        entry.report(&mut self.deliveries);
    }

    /// A process lives again, and its flows begin anew where they stopped. False if all is over
    /// already.
    pub(crate) fn revive(&mut self, plan: &Plan, process: usize) -> bool {
        if self.all_done() {
            return false;
        }
        // With its flows others have to do again too. Who has not says so at once.
        self.done.clear();
        for (entry, flow) in self.flows.iter_mut().zip(&plan.flows) {
            if !flow.concerns(process) {
                continue;
            }
            if entry.is_through() {
                // Nothing is left to be done, whatever its ends still expected.
                entry.ended = true;
                continue;
            }
            entry.report(&mut self.deliveries);
            entry.base = entry.sent;
            entry.life += 1;
            entry.broken = false;
            entry.told = [Vec::new(), Vec::new()];
            entry.expected.clear();
            entry.models = Models::default();
        }
        true
    }

    /// Records a violation.
    pub(crate) fn violate(&mut self, what: String) {
        self.violations.push(what);
    }

    /// A process is done with what it has to do.
    pub(crate) fn done(&mut self, process: usize) {
        self.done.insert(process);
    }

    /// Whether all are that live.
    pub(crate) fn all_done(&self) -> bool {
        let now = world::now();
        let mut processes = 0..self.is_mortal.len();
        processes.all(|process| self.done.contains(&process) || self.killed_at(process) <= now)
    }

    /// When that process was killed for good; never, for most.
    pub(crate) fn killed_at(&self, process: usize) -> Time {
        // Processes of a scenario are the first of their world.
        let killed_at = || world::killed_at(ProcessId(process as u32));
        let is_mortal = self.is_mortal.get(process).copied().unwrap_or_default();
        is_mortal.then(killed_at).flatten().unwrap_or(Time::NEVER)
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// Messages that came.
    pub(crate) fn count(&self) -> u64 {
        let count = |entry: &Entry| self.deliveries.count(entry.channel);
        self.flows.iter().map(count).sum()
    }

    /// The world is at rest: everything has come, or somebody was told.
    pub(crate) fn check(mut self) -> Vec<String> {
        if let Err(violation) = self.deliveries.quiet() {
            self.violate(violation.to_string());
        }
        self.violations
    }
}

/// Bytes that a seed and a number decide.
pub(crate) fn noise(seed: u64, number: u64, length: usize) -> Vec<u8> {
    let mut random = Random::new(seed ^ number << 20 ^ 0x5eed);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&random.bits().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// One end of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Sender,
    Receiver,
}

/// The oracle handle of one end of a flow: its view of the history.
#[derive(Clone, Copy)]
pub(crate) struct Oracle<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) history: &'a Mutex<History>,
    pub(crate) flow: usize,
    /// Of which of the flow's lives this end is.
    pub(crate) life: u32,
}

impl<'a> Oracle<'a> {
    /// The flow as it is now.
    pub(crate) fn new(plan: &'a Plan, history: &'a Mutex<History>, flow: usize) -> Self {
        let life = 0;
        let oracle = Self {
            plan,
            history,
            flow,
            life,
        };
        let life = oracle.read(|entry| entry.life);
        Self { life, ..oracle }
    }

    /// Whether a process of it lives again since.
    pub(crate) fn is_old(&self) -> bool {
        self.read(|entry| entry.life != self.life)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'a, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, read: impl FnOnce(&Entry) -> T) -> T {
        read(&self.lock().flows[self.flow])
    }

    /// The flow in the plan.
    pub(crate) fn known(&self) -> &'a Flow {
        &self.plan.flows[self.flow]
    }

    /// Decides what the flow leaves open.
    pub(crate) fn seed(&self) -> u64 {
        self.plan.seed ^ (self.flow as u64) << 48
    }

    /// Bytes of a message.
    pub(crate) fn length(&self, number: u64) -> usize {
        let item = self.known().items.get(number as usize);
        let length = item.map_or(0, |item| item.length_bytes as usize);
        match self.known().kind {
            Kind::Silent => length.max(SILENT_BYTES_MIN),
            _ => length,
        }
    }

    /// The bytes of a message.
    pub(crate) fn content(&self, number: u64) -> Vec<u8> {
        noise(self.seed(), number, self.length(number))
    }

    /// The number of the next message of the flow, if there is one, and its sender may send it:
    /// what was so many before it, in the same place, has come.
    pub(crate) fn next(&self, window: u64) -> Option<u64> {
        self.read(|entry| {
            let before = entry.sent.checked_sub(window);
            let is_free =
                before.is_none_or(|before| before < entry.base || entry.came.contains(&before));
            let may = !entry.ended && !entry.broken && entry.sent < entry.items;
            (may && is_free).then_some(entry.sent)
        })
    }

    /// Messages sent so far.
    pub(crate) fn sent(&self) -> u64 {
        self.read(|entry| entry.sent)
    }

    /// Whether everything that was sent has come.
    pub(crate) fn is_settled(&self) -> bool {
        self.read(|entry| entry.came.range(entry.base..).count() as u64 == entry.sent - entry.base)
    }

    /// Whether that message came.
    pub(crate) fn has_come(&self, number: u64) -> bool {
        self.read(|entry| entry.came.contains(&number))
    }

    /// Messages that were sent and have not come.
    pub(crate) fn in_flight(&self) -> Vec<u64> {
        self.read(|entry| {
            let all = entry.base..entry.sent;
            all.filter(|number| !entry.came.contains(number)).collect()
        })
    }

    /// Whether nothing is left to send.
    pub(crate) fn is_sent(&self) -> bool {
        self.read(|entry| entry.ended || entry.sent == entry.items)
    }

    /// Whether nothing is left to come.
    pub(crate) fn is_through(&self) -> bool {
        self.read(|entry| entry.ended || entry.is_through())
    }

    /// Whether anything of the flow may be lost, as somebody was told.
    pub(crate) fn is_ended(&self) -> bool {
        self.read(|entry| entry.ended || entry.broken)
    }

    /// That message is about to be sent: it may come before the call returns.
    pub(crate) fn sending(&self, bytes: &[u8]) {
        let mut history = self.lock();
        let history = &mut *history;
        let entry = &mut history.flows[self.flow];
        entry.sent += 1;
        history.deliveries.sent(entry.channel, bytes);
        // The flow ended, or began anew, while the call that is to send was under way.
        if entry.ended || entry.life != self.life {
            entry.report(&mut history.deliveries);
            entry.base = entry.sent;
        }
    }

    /// It was not sent after all.
    pub(crate) fn unsent(&self) {
        let mut history = self.lock();
        let history = &mut *history;
        let entry = &mut history.flows[self.flow];
        if entry.life != self.life {
            return;
        }
        entry.sent -= 1;
        if let Err(violation) = history.deliveries.unsent(entry.channel) {
            let flow = self.flow;
            history.violate(format!("flow {flow}: {violation}"));
        }
    }

    /// That message came, with these bytes.
    pub(crate) fn came(&self, number: u64, bytes: &[u8]) {
        let mut history = self.lock();
        let history = &mut *history;
        let entry = &mut history.flows[self.flow];
        if entry.life != self.life {
            // What went before it may come, and is of no matter.
            return;
        }
        match history
            .deliveries
            .delivered_as(entry.channel, number, bytes)
        {
            Ok(()) => drop(entry.came.insert(number)),
            Err(violation) => {
                let flow = self.flow;
                history.violate(format!("flow {flow}, message {number}: {violation}"));
            }
        }
    }

    /// The next message came, with these bytes.
    pub(crate) fn came_next(&self, bytes: &[u8]) {
        let number = self.read(|entry| {
            let last = entry.came.last().map_or(0, |last| last + 1);
            last.max(entry.base)
        });
        self.came(number, bytes);
    }

    /// Its receiver was told that so many were lost; which, it cannot know. Wrong if more came, or
    /// fewer.
    pub(crate) fn lost_all_else(&self) {
        let mut history = self.lock();
        let history = &mut *history;
        let entry = &mut history.flows[self.flow];
        for number in entry.base..entry.sent {
            if entry.came.insert(number) {
                history.deliveries.reported(entry.channel, number);
            }
        }
    }

    /// Permits the message to come or to be lost.
    pub(crate) fn permit(&self, number: u64) {
        let mut history = self.lock();
        let history = &mut *history;
        let entry = &mut history.flows[self.flow];
        if entry.life == self.life && entry.came.insert(number) {
            history.deliveries.reported(entry.channel, number);
        }
    }

    /// A process of the flow is lost. Whatever is in flight may be lost too; if it lives again, so
    /// does the flow.
    pub(crate) fn lose(&self) {
        let flow = self.known();
        let lives: BTreeSet<_> = self.plan.restarted().collect();
        let lives = lives.into_iter().filter(|process| flow.concerns(*process));
        let lives = lives.count() as u32;
        let mut history = self.lock();
        if history.flows[self.flow].life >= lives {
            return history.end(self.flow);
        }
        let history = &mut *history;
        let entry = &mut history.flows[self.flow];
        entry.broken = true;
        entry.report(&mut history.deliveries);
    }

    /// Asks the models of the flow. Nothing if the flow began anew since, as the rest of an earlier
    /// life is of no matter.
    pub(crate) fn judge<T>(
        &self,
        judge: impl FnOnce(&mut Models) -> Result<T, Violation>,
    ) -> Result<Option<T>, String> {
        let entry = &mut self.lock().flows[self.flow];
        if entry.life != self.life {
            return Ok(None);
        }
        let judged = judge(&mut entry.models).map_err(|violation| violation.to_string());
        judged.map(Some)
    }

    /// Tells that end something.
    pub(crate) fn tell(&self, whom: End, bytes: Vec<u8>) {
        let mut history = self.lock();
        let entry = &mut history.flows[self.flow];
        if entry.life == self.life {
            entry.told[whom as usize].push(bytes);
        }
    }

    /// What that end was told as the so-manieth.
    pub(crate) fn told(&self, whom: End, number: usize) -> Option<Vec<u8>> {
        self.read(|entry| {
            let told = &entry.told[whom as usize];
            told.get(number)
                .filter(|_| entry.life == self.life)
                .cloned()
        })
    }

    /// That slot is about to refuse so many packets.
    pub(crate) fn expect(&self, slot: usize, reason: Refusal, packets: u64) {
        let expected = &mut self.lock().flows[self.flow].expected;
        *expected.entry((slot, reason as u8)).or_default() += packets;
    }

    /// They were not sent after all.
    pub(crate) fn unexpect(&self, slot: usize, reason: Refusal, packets: u64) {
        let expected = &mut self.lock().flows[self.flow].expected;
        *expected.entry((slot, reason as u8)).or_default() -= packets;
    }

    /// How many packets that slot is to have refused.
    pub(crate) fn expected(&self, slot: usize, reason: Refusal) -> u64 {
        self.read(|entry| entry.expected.get(&(slot, reason as u8)).copied())
            .unwrap_or_default()
    }

    /// How many packets those slots together are to have refused.
    pub(crate) fn expected_of(&self, slots: std::ops::Range<usize>) -> u64 {
        self.read(|entry| {
            let all = entry.expected.iter();
            let of_them = all.filter(|((slot, _), _)| slots.contains(slot));
            of_them.map(|(_, packets)| packets).sum()
        })
    }
}

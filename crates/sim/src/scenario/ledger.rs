//! What was sent and what came, kept by the world for all parties: the judge of a scenario.
//!
//! It is also how the two ends of a line speak beside the network, where a program would have sent a letter: tickets that
//! take the place of others, and what an attacker is to be refused for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hamlyn::engine::refusal::Refusal;

use crate::random::Random;
use crate::reference::delivery::{Deliveries, Order};
use crate::scenario::plan::{Kind, Line, Plan};
use crate::time::Time;
use crate::world;

/// One line, as the judge sees it.
#[derive(Clone, Debug)]
struct Entry {
    channel: usize,
    items: u64,
    sent: u64,
    /// All before this were lost with an earlier life of a party, or had come.
    base: u64,
    /// Which of the messages came.
    came: BTreeSet<u64>,
    /// Its sender, or its receiver, was told that something is lost, or is dead.
    ended: bool,
    /// A party of it lives for the so-manieth time.
    life: u32,
    /// Until it does so again, nothing is sent.
    broken: bool,
    /// What the ends told each other: the sender, the receiver.
    told: [Vec<Vec<u8>>; 2],
    expected: BTreeMap<(usize, u8), u64>,
}

impl Entry {
    fn is_through(&self) -> bool {
        let left = self.items - self.base;
        self.sent == self.items && self.came.range(self.base..).count() as u64 == left
    }

    /// Whatever is under way may be lost.
    fn report(&self, deliveries: &mut Deliveries) {
        for number in 0..self.sent {
            deliveries.reported(self.channel, number);
        }
    }
}

/// See the module.
pub(crate) struct Ledger {
    deliveries: Deliveries,
    lines: Vec<Entry>,
    violations: Vec<String>,
    done: BTreeSet<usize>,
    /// When each party is killed for good, after which nothing of it is to be waited for.
    killed_at: Vec<Time>,
}

impl Ledger {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut deliveries = Deliveries::new();
        let lines = plan.lines.iter().map(|line| Entry {
            channel: deliveries.open(match line.kind {
                Kind::Stream | Kind::Datagram | Kind::Group => Order::Kept,
                _ => Order::Free,
            }),
            items: line.items.len() as u64,
            sent: 0,
            base: 0,
            came: BTreeSet::new(),
            ended: false,
            life: 0,
            broken: false,
            told: [Vec::new(), Vec::new()],
            expected: BTreeMap::new(),
        });
        Self {
            lines: lines.collect(),
            deliveries,
            violations: Vec::new(),
            done: BTreeSet::new(),
            killed_at: (0..plan.parties.len())
                .map(|party| plan.killed_at(party))
                .collect(),
        }
    }

    /// Messages of the line may be lost from now on: somebody was told.
    pub(crate) fn end(&mut self, line: usize) {
        let entry = &mut self.lines[line];
        entry.ended = true;
        entry.report(&mut self.deliveries);
    }

    /// A party lives again, and its lines begin anew where they stopped. False if all is over already.
    pub(crate) fn revive(&mut self, plan: &Plan, party: usize) -> bool {
        if self.all_done() {
            return false;
        }
        // With its lines others have to do again too. Who has not says so at once.
        self.done.clear();
        for (entry, line) in self.lines.iter_mut().zip(&plan.lines) {
            if !line.concerns(party) {
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
        }
        true
    }

    /// Something is wrong.
    pub(crate) fn violate(&mut self, what: String) {
        self.violations.push(what);
    }

    /// A party is done with what it has to do.
    pub(crate) fn done(&mut self, party: usize) {
        self.done.insert(party);
    }

    /// Whether all are that live.
    pub(crate) fn all_done(&self) -> bool {
        let now = world::now();
        let mut parties = self.killed_at.iter().enumerate();
        parties.all(|(party, killed_at)| self.done.contains(&party) || *killed_at <= now)
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// Messages that came.
    pub(crate) fn count(&self) -> u64 {
        let count = |entry: &Entry| self.deliveries.count(entry.channel);
        self.lines.iter().map(count).sum()
    }

    /// The world is at rest: everything has come, or somebody was told.
    pub(crate) fn judge(mut self) -> Vec<String> {
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

/// One end of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Sender,
    Receiver,
}

/// A line of the ledger, at one of its ends.
#[derive(Clone, Copy)]
pub(crate) struct Desk<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) ledger: &'a Mutex<Ledger>,
    pub(crate) line: usize,
    /// Of which of the line's lives this end is.
    pub(crate) life: u32,
}

impl<'a> Desk<'a> {
    /// The line as it is now.
    pub(crate) fn new(plan: &'a Plan, ledger: &'a Mutex<Ledger>, line: usize) -> Self {
        let life = 0;
        let desk = Self {
            plan,
            ledger,
            line,
            life,
        };
        let life = desk.read(|entry| entry.life);
        Self { life, ..desk }
    }

    /// Whether a party of it lives again since.
    pub(crate) fn is_old(&self) -> bool {
        self.read(|entry| entry.life != self.life)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'a, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, read: impl FnOnce(&Entry) -> T) -> T {
        read(&self.lock().lines[self.line])
    }

    /// The line in the plan.
    pub(crate) fn known(&self) -> &'a Line {
        &self.plan.lines[self.line]
    }

    /// Decides what the line leaves open.
    pub(crate) fn seed(&self) -> u64 {
        self.plan.seed ^ (self.line as u64) << 48
    }

    /// Bytes of a message.
    pub(crate) fn length(&self, number: u64) -> usize {
        let item = self.known().items.get(number as usize);
        item.map_or(0, |item| item.length_bytes as usize)
    }

    /// The bytes of a message.
    pub(crate) fn content(&self, number: u64) -> Vec<u8> {
        noise(self.seed(), number, self.length(number))
    }

    /// The number of the next message of the line, if there is one, and its sender may send it: what was so many
    /// before it, in the same place, has come.
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
    pub(crate) fn under_way(&self) -> Vec<u64> {
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

    /// Whether anything of the line may be lost, as somebody was told.
    pub(crate) fn is_ended(&self) -> bool {
        self.read(|entry| entry.ended || entry.broken)
    }

    /// That message is about to be sent: it may come before the call returns.
    pub(crate) fn sending(&self, bytes: &[u8]) {
        let mut ledger = self.lock();
        let ledger = &mut *ledger;
        let entry = &mut ledger.lines[self.line];
        entry.sent += 1;
        ledger.deliveries.sent(entry.channel, bytes);
    }

    /// It was not sent after all.
    pub(crate) fn unsent(&self) {
        let mut ledger = self.lock();
        let ledger = &mut *ledger;
        let entry = &mut ledger.lines[self.line];
        if entry.life != self.life {
            return;
        }
        entry.sent -= 1;
        if let Err(violation) = ledger.deliveries.unsent(entry.channel) {
            let line = self.line;
            ledger.violate(format!("line {line}: {violation}"));
        }
    }

    /// That message came, with these bytes.
    pub(crate) fn came(&self, number: u64, bytes: &[u8]) {
        let mut ledger = self.lock();
        let ledger = &mut *ledger;
        let entry = &mut ledger.lines[self.line];
        if entry.life != self.life {
            // What went before it may come, and is of no matter.
            return;
        }
        match ledger.deliveries.delivered_as(entry.channel, number, bytes) {
            Ok(()) => drop(entry.came.insert(number)),
            Err(violation) => {
                let line = self.line;
                ledger.violate(format!("line {line}, message {number}: {violation}"));
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

    /// Its receiver was told that so many were lost; which, it cannot know. Wrong if more came, or fewer.
    pub(crate) fn lost_all_else(&self) {
        let mut ledger = self.lock();
        let ledger = &mut *ledger;
        let entry = &mut ledger.lines[self.line];
        for number in entry.base..entry.sent {
            if entry.came.insert(number) {
                ledger.deliveries.reported(entry.channel, number);
            }
        }
    }

    /// That message may come, or not.
    pub(crate) fn excuse(&self, number: u64) {
        let mut ledger = self.lock();
        let ledger = &mut *ledger;
        let entry = &mut ledger.lines[self.line];
        if entry.life == self.life && entry.came.insert(number) {
            ledger.deliveries.reported(entry.channel, number);
        }
    }

    /// A party of the line is lost. Whatever is under way may be lost too; if it lives again, so does the line.
    pub(crate) fn lose(&self) {
        let line = self.known();
        let lives: BTreeSet<_> = self.plan.restarted().collect();
        let lives = lives.into_iter().filter(|party| line.concerns(*party));
        let lives = lives.count() as u32;
        let mut ledger = self.lock();
        if ledger.lines[self.line].life >= lives {
            return ledger.end(self.line);
        }
        let ledger = &mut *ledger;
        let entry = &mut ledger.lines[self.line];
        entry.broken = true;
        entry.report(&mut ledger.deliveries);
    }

    /// Tells that end something.
    pub(crate) fn tell(&self, whom: End, bytes: Vec<u8>) {
        let mut ledger = self.lock();
        let entry = &mut ledger.lines[self.line];
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
        let expected = &mut self.lock().lines[self.line].expected;
        *expected.entry((slot, reason as u8)).or_default() += packets;
    }

    /// They were not sent after all.
    pub(crate) fn unexpect(&self, slot: usize, reason: Refusal, packets: u64) {
        let expected = &mut self.lock().lines[self.line].expected;
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

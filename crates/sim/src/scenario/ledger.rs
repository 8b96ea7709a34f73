//! What was sent and what came, kept by the world for all parties: the judge of a scenario.

use std::collections::BTreeSet;

use crate::random::Random;
use crate::reference::delivery::{Deliveries, Order};
use crate::scenario::plan::{Kind, Plan};

/// One line, as the judge sees it.
#[derive(Clone, Debug)]
struct Entry {
    channel: usize,
    lengths: Vec<u32>,
    sent: u64,
    /// Which of the messages came.
    came: BTreeSet<u64>,
    /// Its sender, or its receiver, was told that something is lost, or is dead.
    ended: bool,
}

/// See the module.
pub(crate) struct Ledger {
    seed: u64,
    deliveries: Deliveries,
    lines: Vec<Entry>,
    violations: Vec<String>,
    /// Parties of which nothing is to be waited for: they are done, or are to be killed.
    done: BTreeSet<usize>,
    parties: usize,
}

impl Ledger {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut deliveries = Deliveries::new();
        let lines = plan.lines.iter().map(|line| Entry {
            channel: deliveries.open(match line.kind {
                Kind::Stream | Kind::Datagram => Order::Kept,
                _ => Order::Free,
            }),
            lengths: line.items.iter().map(|item| item.length_bytes).collect(),
            sent: 0,
            came: BTreeSet::new(),
            ended: false,
        });
        Self {
            seed: plan.seed,
            lines: lines.collect(),
            deliveries,
            violations: Vec::new(),
            done: plan.killed().collect(),
            parties: plan.parties.len(),
        }
    }

    /// The bytes of a message of a line.
    pub(crate) fn content(&self, line: usize, number: u64) -> Vec<u8> {
        let length = self.lines[line].lengths.get(number as usize);
        let length = length.map_or(0, |length| *length as usize);
        let mut random = Random::new(self.seed ^ (line as u64) << 48 ^ number << 20 ^ 0x5eed);
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend_from_slice(&random.bits().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }

    /// The number of the next message of the line, if there is one, and its sender may send it: what was so many
    /// before it, in the same place, has come.
    pub(crate) fn next(&self, line: usize, window: u64) -> Option<u64> {
        let entry = &self.lines[line];
        let before = entry.sent.checked_sub(window);
        let is_free = before.is_none_or(|before| entry.came.contains(&before));
        let is_left = (entry.sent as usize) < entry.lengths.len();
        (is_left && !entry.ended && is_free).then_some(entry.sent)
    }

    /// Whether nothing is left to send.
    pub(crate) fn is_sent(&self, line: usize) -> bool {
        let entry = &self.lines[line];
        entry.ended || entry.sent as usize == entry.lengths.len()
    }

    /// Whether nothing is left to come.
    pub(crate) fn is_through(&self, line: usize) -> bool {
        let entry = &self.lines[line];
        entry.ended || self.deliveries.count(entry.channel) as usize == entry.lengths.len()
    }

    /// Whether anything of the line was sent.
    pub(crate) fn has_begun(&self, line: usize) -> bool {
        self.lines[line].sent > 0
    }

    /// The next message of the line is about to be sent: it may come before the call returns.
    pub(crate) fn sending(&mut self, line: usize, bytes: &[u8]) {
        let entry = &mut self.lines[line];
        entry.sent += 1;
        self.deliveries.sent(entry.channel, bytes);
    }

    /// It was not sent after all.
    pub(crate) fn unsent(&mut self, line: usize) {
        let entry = &mut self.lines[line];
        entry.sent -= 1;
        if let Err(violation) = self.deliveries.unsent(entry.channel) {
            self.violate(format!("line {line}: {violation}"));
        }
    }

    /// Messages of the line may be lost from now on: somebody was told.
    pub(crate) fn end(&mut self, line: usize) {
        let entry = &mut self.lines[line];
        entry.ended = true;
        for number in 0..entry.sent {
            self.deliveries.reported(entry.channel, number);
        }
    }

    /// A message came.
    pub(crate) fn came(&mut self, line: usize, bytes: &[u8]) {
        let channel = self.lines[line].channel;
        match self.deliveries.delivered(channel, bytes) {
            Ok(number) => drop(self.lines[line].came.insert(number)),
            Err(violation) => self.violate(format!("line {line}: {violation}")),
        }
    }

    /// Something is wrong.
    pub(crate) fn violate(&mut self, what: String) {
        self.violations.push(what);
    }

    /// A party is done with what it has to do.
    pub(crate) fn done(&mut self, party: usize) {
        self.done.insert(party);
    }

    /// Whether all are.
    pub(crate) fn all_done(&self) -> bool {
        self.done.len() >= self.parties
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

//! Operations of all nodes together, in a number of rounds that grows with the logarithm of their
//! number. A state machine: no I/O.

use std::collections::{BTreeMap, VecDeque};

use crate::context::Cx;
use crate::error::{CrlError, REGION_BYTES_MAX};
use crate::id::RegionId;
use crate::message::{Kind, Message, Outgoing};

/// Broadcasts after which all nodes meet at a barrier: so many of them wait at a node, at most.
const BROADCASTS_AHEAD: u32 = 8;
/// Reductions of which values may have come: a node is one ahead at most.
const BLOCKS_MAX: usize = 2;
const NO_REGION: RegionId = RegionId { home: 0, index: 0 };

/// A broadcast that has come, or a part of it.
#[derive(Debug)]
struct Arrival {
    root: u32,
    total: usize,
    bytes: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Collectives {
    me: u32,
    nodes: u32,
    /// Barriers that this node has come to, and the round that it is in.
    barriers: u32,
    round: usize,
    /// The last barrier that the node of each round has come to.
    heard: Vec<u32>,
    /// Values of this node and those after it.
    values: Vec<f64>,
    /// Values that have come, by round.
    blocks: Vec<VecDeque<Vec<f64>>>,
    /// Broadcasts sent and received.
    broadcasts: u32,
    arrivals: BTreeMap<u32, Arrival>,
    /// The node without which this one cannot go on.
    broken: Option<u32>,
    /// Nodes that cannot go on, and without which.
    failed: BTreeMap<u32, u32>,
}

impl Collectives {
    pub(crate) fn new(me: u32, nodes: u32) -> Self {
        let rounds = nodes.next_power_of_two().trailing_zeros() as usize;
        Self {
            me,
            nodes,
            barriers: 0,
            round: 0,
            heard: vec![0; rounds],
            values: Vec::new(),
            blocks: vec![VecDeque::new(); rounds],
            broadcasts: 0,
            arrivals: BTreeMap::new(),
            broken: None,
            failed: BTreeMap::new(),
        }
    }

    /// The node that is so far after this one.
    fn after(&self, distance: u32) -> u32 {
        (self.me + distance) % self.nodes
    }

    fn before(&self, distance: u32) -> u32 {
        (self.me + self.nodes - distance) % self.nodes
    }

    fn distance(round: usize) -> u32 {
        1 << round
    }

    /// Fails if this node has failed before.
    fn check(&self) -> Result<(), CrlError> {
        match self.broken {
            Some(node) => Err(CrlError::NodeLost { node }),
            None => Ok(()),
        }
    }

    /// Fails if that node does not come any more, and tells all others, as they wait for this one.
    fn check_waiting<O: Outgoing>(
        &mut self,
        from: u32,
        cx: &mut Cx<'_, O>,
    ) -> Result<(), CrlError> {
        // A node that has failed may end before others hear why.
        let because = self.failed.get(&from).copied();
        let lost = because.or(cx.lost.contains(from).then_some(from));
        if let (None, Some(node)) = (self.broken, lost) {
            self.broken = lost;
            for other in (0..self.nodes).filter(|other| *other != self.me) {
                cx.send(other, Message::new(Kind::Broken, NO_REGION, 0).of(node, 0));
            }
        }
        self.check()
    }

    /// Comes to a barrier.
    pub(crate) fn begin_barrier<O: Outgoing>(
        &mut self,
        cx: &mut Cx<'_, O>,
    ) -> Result<(), CrlError> {
        self.check()?;
        self.barriers = self.barriers.wrapping_add(1);
        self.round = 0;
        self.send_round(cx);
        Ok(())
    }

    /// In each round a node tells one that is twice as far away that it, and all of whom it has
    /// heard, are here.
    fn send_round<O: Outgoing>(&mut self, cx: &mut Cx<'_, O>) {
        if self.round < self.heard.len() {
            let to = self.after(Self::distance(self.round));
            let message = Message::new(Kind::Barrier, NO_REGION, self.barriers);
            cx.send(to, message.at(self.round));
        }
    }

    /// True once all nodes have come.
    pub(crate) fn is_past_barrier<O: Outgoing>(
        &mut self,
        cx: &mut Cx<'_, O>,
    ) -> Result<bool, CrlError> {
        while let Some(heard) = self.heard.get(self.round) {
            // Numbers go round.
            if (heard.wrapping_sub(self.barriers) as i32) < 0 {
                let from = self.before(Self::distance(self.round));
                self.check_waiting(from, cx)?;
                return Ok(false);
            }
            self.round += 1;
            self.send_round(cx);
        }
        Ok(true)
    }

    /// Begins to gather a value of each node.
    pub(crate) fn begin_gather<O: Outgoing>(
        &mut self,
        value: f64,
        cx: &mut Cx<'_, O>,
    ) -> Result<(), CrlError> {
        self.check()?;
        self.values = vec![value];
        self.round = 0;
        self.send_values(cx);
        Ok(())
    }

    /// Values that come in that round.
    fn block_values(&self, round: usize) -> usize {
        let distance = Self::distance(round);
        distance.min(self.nodes - distance) as usize
    }

    fn send_values<O: Outgoing>(&mut self, cx: &mut Cx<'_, O>) {
        if self.round < self.blocks.len() {
            let values = &self.values[..self.block_values(self.round)];
            let bytes: Vec<u8> = values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect();
            let to = self.before(Self::distance(self.round));
            let message = Message::new(Kind::Gather, NO_REGION, 0).at(self.round);
            cx.send_bytes(to, message, &bytes);
        }
    }

    /// The values of all nodes, by node, once they are there.
    pub(crate) fn gathered<O: Outgoing>(
        &mut self,
        cx: &mut Cx<'_, O>,
    ) -> Result<Option<Vec<f64>>, CrlError> {
        while let Some(blocks) = self.blocks.get_mut(self.round) {
            let Some(block) = blocks.pop_front() else {
                let from = self.after(Self::distance(self.round));
                self.check_waiting(from, cx)?;
                return Ok(None);
            };
            self.values.extend(block);
            self.round += 1;
            self.send_values(cx);
        }
        let mut values = std::mem::take(&mut self.values);
        values.rotate_right(self.me as usize);
        Ok(Some(values))
    }

    /// Sends bytes to all nodes.
    pub(crate) fn broadcast<O: Outgoing>(
        &mut self,
        bytes: &[u8],
        cx: &mut Cx<'_, O>,
    ) -> Result<(), CrlError> {
        if bytes.len() > REGION_BYTES_MAX {
            return Err(CrlError::TooLarge {
                what: "a broadcast",
                bytes: bytes.len(),
                most_bytes: REGION_BYTES_MAX,
            });
        }
        self.check()?;
        let region = RegionId {
            home: self.me,
            index: self.broadcasts,
        };
        let message = Message::new(Kind::Broadcast, region, bytes.len() as u32);
        let piece_bytes = cx.out.piece_bytes();
        let mut at = 0;
        loop {
            let end = bytes.len().min(at + piece_bytes);
            self.relay(&message.at(at), &bytes[at..end], cx);
            at = end;
            if at == bytes.len() {
                break;
            }
        }
        self.broadcasts = self.broadcasts.wrapping_add(1);
        Ok(())
    }

    /// Sends a piece on to the nodes below this one: counted from the root, a node's number
    /// without its highest bit is that of the node above it.
    fn relay<O: Outgoing>(&self, message: &Message, bytes: &[u8], cx: &mut Cx<'_, O>) {
        let rank = self.rank(message.region.home);
        let distances = (0..self.heard.len()).map(Self::distance);
        let below = distances.filter(|distance| *distance > rank && rank + distance < self.nodes);
        below.for_each(|distance| cx.send_bytes(self.after(distance), *message, bytes));
    }

    fn rank(&self, root: u32) -> u32 {
        self.before(root)
    }

    /// The next broadcast, once it is there whole.
    pub(crate) fn broadcast_received<O: Outgoing>(
        &mut self,
        cx: &mut Cx<'_, O>,
    ) -> Result<Option<Vec<u8>>, CrlError> {
        let is_whole = |arrival: &Arrival| arrival.bytes.len() == arrival.total;
        if !self.arrivals.get(&self.broadcasts).is_some_and(is_whole) {
            // It may come from any node, by way of any other.
            for node in 0..self.nodes {
                self.check_waiting(node, cx)?;
            }
            return Ok(None);
        }
        let arrival = self.arrivals.remove(&self.broadcasts);
        self.broadcasts = self.broadcasts.wrapping_add(1);
        Ok(arrival.map(|arrival| arrival.bytes))
    }

    /// True if all nodes are to meet at a barrier before the next broadcast.
    pub(crate) fn is_barrier_due(&self) -> bool {
        self.broadcasts.is_multiple_of(BROADCASTS_AHEAD)
    }

    pub(crate) fn receive<O: Outgoing>(
        &mut self,
        from: u32,
        message: &Message,
        bytes: &[u8],
        cx: &mut Cx<'_, O>,
    ) {
        let round = message.other as usize;
        match message.kind {
            Kind::Barrier
                if round < self.heard.len() && self.before(Self::distance(round)) == from =>
            {
                self.heard[round] = message.number;
            }
            Kind::Gather if round < self.blocks.len() => {
                let is_from = self.after(Self::distance(round)) == from;
                let (values, rest) = bytes.as_chunks();
                let is_block = rest.is_empty() && values.len() == self.block_values(round);
                if is_from && is_block && self.blocks[round].len() < BLOCKS_MAX {
                    let values = values.iter().map(|value| f64::from_le_bytes(*value));
                    self.blocks[round].push_back(values.collect());
                }
            }
            Kind::Broadcast => self.on_broadcast(from, message, bytes, cx),
            Kind::Broken => {
                self.failed.insert(from, message.node);
            }
            _ => {}
        }
    }

    fn on_broadcast<O: Outgoing>(
        &mut self,
        from: u32,
        message: &Message,
        bytes: &[u8],
        cx: &mut Cx<'_, O>,
    ) {
        let RegionId { home: root, index } = message.region;
        let rank = self.rank(root);
        let total = message.number as usize;
        let is_above = rank > 0 && {
            let distance = Self::distance(rank.ilog2() as usize);
            self.before(distance) == from
        };
        let is_soon = index.wrapping_sub(self.broadcasts) < BROADCASTS_AHEAD;
        if !is_above || !is_soon || total > REGION_BYTES_MAX {
            return;
        }
        let arrival = self.arrivals.entry(index).or_insert_with(|| Arrival {
            root,
            total,
            bytes: Vec::new(),
        });
        let begun = arrival.bytes.len();
        let is_next = begun == message.other as usize && begun + bytes.len() <= total;
        if is_next && arrival.root == root && arrival.total == total {
            arrival.bytes.extend_from_slice(bytes);
            self.relay(message, bytes, cx);
        }
    }
}

//! The messages of barriers by dissemination: lg n rounds, in each of which a node tells one other.

/// The barriers of a node.
#[derive(Debug)]
pub(crate) struct Barrier {
    nodes: u32,
    /// By round, how many barriers' messages have come.
    pub(crate) came: Vec<u64>,
    pub(crate) entered: u64,
}

impl Barrier {
    pub(crate) fn new(nodes: u32) -> Self {
        let rounds = nodes.next_power_of_two().trailing_zeros();
        Self {
            nodes,
            came: vec![0; rounds as usize],
            entered: 0,
        }
    }

    /// True if the message of that round of the barrier that was entered last has come.
    pub(crate) fn has_come(&self, round: usize) -> bool {
        self.came[round] >= self.entered
    }

    /// The node whose message of that round `me` awaits.
    pub(crate) fn awaited(&self, me: u32, round: usize) -> u32 {
        let distance = (1_u64 << round) % u64::from(self.nodes);
        ((u64::from(me) + u64::from(self.nodes) - distance) % u64::from(self.nodes)) as u32
    }

    /// A message of a round came. One of a node that has nothing to say in it does not count.
    pub(crate) fn came(&mut self, me: u32, source: u32, round: u32) {
        let is_awaited =
            (round as usize) < self.came.len() && { source == self.awaited(me, round as usize) };
        if is_awaited {
            self.came[round as usize] += 1;
        }
    }
}

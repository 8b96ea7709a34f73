//! Ways through switches, and who chooses among them.
//!
//! Why nothing deadlocks: switches have an order, and every way goes up in it first and then down
//! (up*/down*). So a frame that holds cables waits only for cables that come later in one fixed
//! order (all upward ones by where they start, then all downward ones), and no circle of frames can
//! wait for each other. Any choice among such ways, at any hop, keeps that. In a tree the order is
//! the height above the hosts, and all shortest ways are among these. Where that order leaves hosts
//! apart, it is the distance from one root, which never does so in a connected network.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::HostId;
use super::topology::{End, Topology};

/// Which of the shortest ways a frame takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Routing {
    /// One way for each pair of hosts, spread at random: in order.
    #[default]
    Pair,
    /// One way for each flow of each pair: in order within the flow.
    Flow,
    /// One way to each host, chosen by digits of its number, so that in a fat tree no two hosts
    /// share their way down: in order.
    Destination,
    /// Each frame any way at random, whatever is on it: reorders.
    Spray,
    /// Each frame, at each hop, the least busy way (Hamlyn 6.1): reorders.
    Adaptive,
}

impl Routing {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Pair,
        Self::Flow,
        Self::Destination,
        Self::Spray,
        Self::Adaptive,
    ];

    /// Whether frames of one pair and flow stay in order.
    pub fn keeps_order(self) -> bool {
        matches!(self, Self::Pair | Self::Flow | Self::Destination)
    }

    /// Which of so many ways the pair's frames take from a switch of this number and height;
    /// nothing if each frame is to be decided for itself.
    pub(crate) fn choose(
        self,
        (from, to, flow): (HostId, HostId, u32),
        (switch, height): (usize, u32),
        ways: usize,
    ) -> Option<usize> {
        let pair = u64::from(from.0) << 32 | u64::from(to.0);
        let hash = |flow: u32| mix(mix(mix(pair) ^ u64::from(flow)) ^ switch as u64);
        let number = match self {
            Self::Pair => hash(0),
            Self::Flow => hash(flow),
            Self::Destination => {
                let digit = (ways as u64).checked_pow(height);
                digit.map_or(0, |digit| u64::from(to.0) / digit)
            }
            Self::Spray | Self::Adaptive => return None,
        };
        Some((number % ways.max(1) as u64) as usize)
    }
}

/// The finisher of splitmix64.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// For each switch and each switch with hosts, the ports of shortest ways.
#[derive(Clone, Debug)]
pub(crate) struct Routes {
    switches: usize,
    /// Different lists of ports; the first is empty.
    lists: Vec<Vec<u16>>,
    /// By row, switch, and whether the frame came down: a number of a list.
    table: Vec<u32>,
    /// Rows of the table by switch, for those with hosts.
    rows: Vec<Option<usize>>,
    /// How far above the hosts a switch is.
    heights: Vec<u32>,
    /// The order: upward is to a greater rank.
    ranks: Vec<(i64, usize)>,
}

type Neighbours = Vec<Vec<(u16, usize)>>;

impl Routes {
    /// The ways of a topology that has been checked.
    pub(crate) fn new(topology: &Topology) -> Self {
        let switches = topology.switches.len();
        let mut neighbours: Neighbours = vec![Vec::new(); switches];
        let mut with_hosts = vec![false; switches];
        for cable in &topology.cables {
            match cable.ends {
                [End::Switch(one, port), End::Switch(other, at)] if one != other => {
                    neighbours[one as usize].push((port, other as usize));
                    neighbours[other as usize].push((at, one as usize));
                }
                [End::Host(_), End::Switch(at, _)] | [End::Switch(at, _), End::Host(_)] => {
                    with_hosts[at as usize] = true;
                }
                _ => {}
            }
        }
        for ports in &mut neighbours {
            ports.sort_unstable();
        }
        let edges: Vec<usize> = (0..switches).filter(|&at| with_hosts[at]).collect();
        let heights = distances(&neighbours, &edges);
        let mut rows = vec![None; switches];
        for (row, &at) in edges.iter().enumerate() {
            rows[at] = Some(row);
        }
        let by_height = |at: usize| (i64::from(heights[at]), at);
        let mut routes = Self {
            switches,
            lists: Vec::new(),
            table: Vec::new(),
            rows,
            ranks: (0..switches).map(by_height).collect(),
            heights,
        };
        if !routes.fill(&neighbours, &edges) {
            let root = routes.ranks.iter().max().map_or(0, |&(_, at)| at);
            let far = distances(&neighbours, &[root]);
            routes.ranks = (0..switches).map(|at| (-i64::from(far[at]), at)).collect();
            routes.fill(&neighbours, &edges);
        }
        routes
    }

    /// False if there are hosts between which there is no way.
    fn fill(&mut self, neighbours: &Neighbours, edges: &[usize]) -> bool {
        let mut numbers = BTreeMap::from([(Vec::new(), 0)]);
        self.table = vec![0; edges.len() * self.switches * 2];
        let mut is_complete = true;
        let mut ports = Vec::new();
        for (row, &to) in edges.iter().enumerate() {
            let far = self.distances_to(neighbours, to);
            is_complete &= edges.iter().all(|&from| far[from * 2] != u32::MAX);
            for state in 0..self.switches * 2 {
                ports.clear();
                for &(port, next) in &neighbours[state / 2] {
                    if let Some(after) = self.step(state, next)
                        && far[after] != u32::MAX
                        && far[after] + 1 == far[state]
                    {
                        ports.push(port);
                    }
                }
                let new = numbers.len() as u32;
                let number = match numbers.get(&ports) {
                    Some(&number) => number,
                    None => *numbers.entry(ports.clone()).or_insert(new),
                };
                self.table[row * self.switches * 2 + state] = number;
            }
        }
        self.lists = vec![Vec::new(); numbers.len()];
        for (ports, number) in numbers {
            self.lists[number as usize] = ports;
        }
        is_complete
    }

    /// The state after a step to a neighbour, if it is allowed: down is never followed by up. A
    /// state is a switch, and whether the frame came down to it.
    fn step(&self, state: usize, next: usize) -> Option<usize> {
        let (at, came_down) = (state / 2, state % 2 == 1);
        match self.is_down(at, next) {
            true => Some(next * 2 + 1),
            false if came_down => None,
            false => Some(next * 2),
        }
    }

    fn distances_to(&self, neighbours: &Neighbours, to: usize) -> Vec<u32> {
        let mut far = vec![u32::MAX; self.switches * 2];
        let mut queue = VecDeque::new();
        for state in [to * 2, to * 2 + 1] {
            far[state] = 0;
            queue.push_back(state);
        }
        while let Some(state) = queue.pop_front() {
            for &(_, before) in &neighbours[state / 2] {
                for earlier in [before * 2, before * 2 + 1] {
                    if self.step(earlier, state / 2) == Some(state) && far[earlier] == u32::MAX {
                        far[earlier] = far[state] + 1;
                        queue.push_back(earlier);
                    }
                }
            }
        }
        far
    }

    /// Whether a cable from one switch to another leads down.
    pub(crate) fn is_down(&self, from: usize, to: usize) -> bool {
        self.ranks[to] < self.ranks[from]
    }

    /// How far above the hosts a switch is.
    pub(crate) fn height(&self, switch: usize) -> u32 {
        self.heights[switch]
    }

    /// The number of the list of ports that lead from a switch towards another.
    pub(crate) fn towards(&self, at: usize, came_down: bool, to: usize) -> usize {
        self.rows[to].map_or(0, |row| {
            let state = at * 2 + usize::from(came_down);
            self.table[row * self.switches * 2 + state] as usize
        })
    }

    /// The ports of a list.
    pub(crate) fn list(&self, number: usize) -> &[u16] {
        &self.lists[number]
    }
}

/// Of each switch from the nearest of these.
fn distances(neighbours: &Neighbours, from: &[usize]) -> Vec<u32> {
    let mut far = vec![u32::MAX; neighbours.len()];
    let mut queue = VecDeque::new();
    for &at in from {
        far[at] = 0;
        queue.push_back(at);
    }
    while let Some(at) = queue.pop_front() {
        for &(_, next) in &neighbours[at] {
            if far[next] == u32::MAX {
                far[next] = far[at] + 1;
                queue.push_back(next);
            }
        }
    }
    far
}

#[cfg(test)]
pub(crate) mod tests;

//! The enumeration on many nodes.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use hamlyn::Host;
use hamlyn_udm::{Call, Group, Udm, UdmOptions};

use super::{Board, BoardError, Counts, owner};
use crate::processor::{Processor, ProgramError};

/// A move to a position of this node: the position, and the ways to it.
const REACHED: u16 = 0;
/// A node has made all of its moves to a number of pegs: that number, and how many were to this
/// node.
const DONE: u16 = 1;
/// Operations to enter a position: to hash it 2, to find it 3, to add its ways 6.
const ENTER_OPERATIONS: u64 = 11;
/// Operations to make a move: the jump 2, its image under five symmetries 5 of 7 each, and the least
/// of them.
const MOVE_OPERATIONS: u64 = 2 + 5 * 7;

/// The positions of a number of pegs that belong to this node, in the order in which they were
/// reached.
#[derive(Debug, Default)]
struct Level {
    positions: Vec<(u32, u64)>,
    places: HashMap<u32, usize>,
    /// Moves of others to positions of this node that came, and that others have told of.
    came: u64,
    told: u64,
    /// Others that have made all of their moves.
    done: u32,
}

impl Level {
    fn enter(&mut self, position: u32, ways: u64) {
        match self.places.entry(position) {
            Entry::Occupied(place) => self.positions[*place.get()].1 += ways,
            Entry::Vacant(place) => {
                place.insert(self.positions.len());
                self.positions.push((position, ways));
            }
        }
    }

    fn is_complete(&self, others: u32) -> bool {
        self.done == others && self.came == self.told
    }
}

/// The state of handlers: two numbers of pegs, as others are ahead by one at most.
type State = [Level; 2];

fn level(state: &mut State, pegs: u32) -> &mut Level {
    &mut state[pegs as usize % 2]
}

/// The program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Enumeration {
    /// Holes a side.
    pub side: u32,
    /// The hole that is empty at first.
    pub hole: u32,
    /// Moves after which it stops.
    pub moves_max: u32,
}

impl Enumeration {
    /// The puzzle of the paper: a side of six, and the hole in the middle of its side's second row.
    pub const PAPER: Self = Self {
        side: 6,
        hole: 4,
        moves_max: u32::MAX,
    };

    /// Runs it without messages: the counts of all positions.
    pub fn serial(&self) -> Result<Counts, BoardError> {
        let board = Board::new(self.side)?;
        let mut counts = Counts::default();
        let mut level = HashMap::from([(board.first(self.hole)?, 1_u64)]);
        for moves in 0..=self.moves_max {
            counts.positions += level.len() as u64;
            let last = level
                .iter()
                .filter(|(position, _)| position.count_ones() == 1);
            counts.solutions += last.map(|(_, ways)| ways).sum::<u64>();
            if moves == self.moves_max {
                break;
            }
            let mut next = HashMap::new();
            for (position, ways) in level {
                for reached in board.moves(position) {
                    counts.moves += 1;
                    *next.entry(reached).or_insert(0) += ways;
                }
            }
            if next.is_empty() {
                break;
            }
            level = next;
        }
        Ok(counts)
    }

    /// Runs it on this node: the counts of its positions.
    ///
    /// # Errors
    ///
    /// There is no such puzzle, or nothing came from a node.
    pub fn run<H: Host, P: Processor<H>>(
        &self,
        group: &Group<H>,
        options: UdmOptions,
        processor: &P,
    ) -> Result<Counts, ProgramError> {
        let board = Board::new(self.side)?;
        let first = board.first(self.hole)?;
        let mut udm = Udm::open(group, "enum", options, State::default(), options.wait)?;
        let handling = processor.clone();
        udm.on(REACHED, move |arrival| {
            reached(arrival.extract(), &handling)
        })?;
        udm.on(DONE, |arrival| {
            let mut call = arrival.extract();
            let (pegs, told) = (call.word(0), call.word(1));
            let level = level(call.state(), pegs);
            level.told += u64::from(told);
            level.done += 1;
            call
        })?;
        let (me, nodes) = (udm.me(), udm.nodes());
        let mut counts = Counts::default();
        let mut pegs = board.holes() - 1;
        if owner(first, nodes as usize) == me as usize {
            level(udm.state_mut(), pegs).enter(first, 1);
        }
        let last = pegs.saturating_sub(self.moves_max).max(1);
        loop {
            let positions = std::mem::take(level(udm.state_mut(), pegs)).positions;
            counts.positions += positions.len() as u64;
            if pegs == 1 {
                counts.solutions = positions.iter().map(|(_, ways)| ways).sum();
            }
            if pegs == last {
                break;
            }
            let mut told = vec![0_u32; nodes as usize];
            for (position, ways) in positions {
                processor.compute(&mut udm, board.jumps() as u64)?;
                for reached in board.moves(position) {
                    counts.moves += 1;
                    processor.compute(&mut udm, MOVE_OPERATIONS)?;
                    let to = owner(reached, nodes as usize) as u32;
                    if to == me {
                        processor.compute(&mut udm, ENTER_OPERATIONS)?;
                        level(&mut udm.atomic(), pegs - 1).enter(reached, ways);
                    } else {
                        told[to as usize] += 1;
                        let words = [reached, ways as u32, (ways >> 32) as u32];
                        udm.inject(to, REACHED, &words)?;
                    }
                }
            }
            pegs -= 1;
            for to in (1..nodes).map(|step| (me + step) % nodes) {
                udm.inject(to, DONE, &[pegs, told[to as usize]])?;
            }
            while !level(udm.state_mut(), pegs).is_complete(nodes - 1) {
                processor.wait(&mut udm)?;
            }
        }
        udm.flush(options.wait)?;
        Ok(counts)
    }
}

fn reached<'a, H: Host, P: Processor<H>>(
    mut call: Call<'a, State, H>,
    processor: &P,
) -> Call<'a, State, H> {
    processor.compute_in_handler(ENTER_OPERATIONS);
    let position = call.word(0);
    let ways = u64::from(call.word(1)) | u64::from(call.word(2)) << 32;
    let level = level(call.state(), position.count_ones());
    level.came += 1;
    level.enter(position, ways);
    call
}

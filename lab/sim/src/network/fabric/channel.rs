//! One direction of a cable, with the output before it and the input's buffer behind it.

use std::collections::VecDeque;

use crate::network::routing::Routes;
use crate::network::topology::{Cable, End, Switching, Topology};
use crate::time::Span;

/// One direction of a cable.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    pub(super) from: End,
    pub(super) to: End,
    pub(super) ps_per_byte: u64,
    pub(super) delay: Span,
    /// From a head's arrival at the end until it can be at an output.
    pub(super) latency: Span,
    /// Of the switch at its end.
    pub(super) switching: Switching,
    pub(super) buffer_bytes: u64,
    pub(super) loses_per_million: u32,
    pub(super) damages_per_million: u32,
    /// Whether it leads down in the order of switches.
    pub(super) is_down: bool,
    pub(super) is_up: bool,
    /// The wormhole packet that has it, and which leg of its way this is.
    pub(super) user: Option<(u32, usize)>,
    /// Wormhole packets that are or will be in the buffer, the first one first.
    pub(super) occupants: VecDeque<u32>,
    /// Bytes of the buffer that wormhole packets may need which could stop.
    pub(super) reserved_bytes: u64,
    /// Inputs of the switch at its beginning that wait for it.
    pub(super) waiting: Waiting,
    /// What the first wormhole packet in its buffer waits for.
    pub(super) wanted: Wanted,
}

/// What a wormhole packet waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    Nothing,
    /// An output.
    Port(u16),
    /// Any of a list of outputs.
    List(usize),
}

impl Channel {
    pub(super) fn new(
        topology: &Topology,
        cable: &Cable,
        from: End,
        to: End,
        routes: &Routes,
    ) -> Self {
        let switch = |end| match end {
            End::Switch(at, _) => topology.switches.get(at as usize),
            End::Host(_) => None,
        };
        let is_down = match (from, to) {
            (End::Switch(from, _), End::Switch(to, _)) => {
                routes.is_down(from as usize, to as usize)
            }
            (_, to) => matches!(to, End::Host(_)),
        };
        Self {
            from,
            to,
            ps_per_byte: cable.ps_per_byte,
            delay: cable.delay,
            latency: switch(to).map_or(Span::ZERO, |at| at.latency),
            switching: switch(to).map_or(Switching::Wormhole, |at| at.switching),
            buffer_bytes: cable.buffer_bytes,
            loses_per_million: cable.loses_per_million,
            damages_per_million: cable.damages_per_million,
            is_down,
            is_up: true,
            user: None,
            occupants: VecDeque::new(),
            reserved_bytes: 0,
            waiting: Waiting::new(switch(from).map_or(0, |at| at.ports)),
            wanted: Wanted::Nothing,
        }
    }

    pub(super) fn is_to_host(&self) -> bool {
        matches!(self.to, End::Host(_))
    }

    /// Whether the buffer at its end has room for a wormhole packet: for all of it, or it is the
    /// only one that could stop there.
    pub(super) fn fits(&self, bytes: u64) -> bool {
        self.reserved_bytes == 0
            || self.reserved_bytes + bytes.min(self.buffer_bytes) <= self.buffer_bytes
    }

    pub(super) fn reserve(&mut self, bytes: u64) {
        self.reserved_bytes += bytes.min(self.buffer_bytes);
    }

    pub(super) fn release(&mut self, bytes: u64) {
        self.reserved_bytes -= bytes.min(self.buffer_bytes);
    }
}

/// Ports that wait, and whose turn it is.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    words: Vec<u64>,
    turn: u16,
}

impl Waiting {
    fn new(ports: u16) -> Self {
        Self {
            words: vec![0; usize::from(ports).div_ceil(64)],
            turn: 0,
        }
    }

    pub(super) fn set(&mut self, port: u16, is_waiting: bool) {
        let bit = 1 << (port % 64);
        let word = &mut self.words[usize::from(port) / 64];
        *word = if is_waiting {
            *word | bit
        } else {
            *word & !bit
        };
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The port that has the next turn.
    pub(super) fn next(&self) -> Option<u16> {
        let first = |word: u64, at: usize| (at * 64) as u16 + word.trailing_zeros() as u16;
        let (at, bit) = (usize::from(self.turn) / 64, self.turn % 64);
        let from_turn = self.words.get(at).copied().unwrap_or(0) & (!0 << bit);
        if from_turn != 0 {
            return Some(first(from_turn, at));
        }
        let count = self.words.len();
        (1..=count)
            .map(|step| (at + step) % count)
            .find(|&at| self.words[at] != 0)
            .map(|at| first(self.words[at], at))
    }

    /// This port has had its turn.
    pub(super) fn had_turn(&mut self, port: u16) {
        let ports = self.words.len() * 64;
        self.turn = ((usize::from(port) + 1) % ports) as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_go_round_all_that_wait() {
        for ports in [3, 64, 130] {
            let mut waiting = Waiting::new(ports);
            assert_eq!(waiting.next(), None);
            for port in (0..ports).step_by(2) {
                waiting.set(port, true);
            }
            for round in 0..2 {
                for port in (0..ports).step_by(2) {
                    assert_eq!(waiting.next(), Some(port), "round {round} of {ports}");
                    waiting.had_turn(port);
                }
            }
            waiting.set(0, false);
            assert_eq!(waiting.next(), Some(2));
            (0..ports).for_each(|port| waiting.set(port, false));
            assert!(waiting.is_empty() && waiting.next().is_none());
        }
    }
}

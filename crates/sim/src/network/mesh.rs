//! A mesh: from every host to every other, a pipe of its own.

use std::collections::{BTreeMap, VecDeque};

use super::part::PartError;
use super::{Event, Frame, HostId, Network, Part, Payload, Pipe, Refusal};
use crate::agenda::Agenda;
use crate::random::Random;
use crate::time::Time;

/// A pipe for each ordered pair of hosts, all of the same parts unless told otherwise.
#[derive(Clone, Debug)]
pub struct Mesh<P> {
    hosts: usize,
    parts: Vec<Part>,
    seed: u64,
    ways: Vec<Way<P>>,
    places: BTreeMap<(HostId, HostId), usize>,
    agenda: Agenda<usize>,
    told: VecDeque<Event<P>>,
    is_receiving: Vec<bool>,
}

#[derive(Clone, Debug)]
struct Way<P> {
    from: HostId,
    to: HostId,
    pipe: Pipe<P>,
    /// Its entry in the agenda; others are out of date.
    due: Option<Time>,
    /// The length of a frame that was refused.
    wanted_bytes: Option<u32>,
}

impl<P: Payload> Mesh<P> {
    /// A mesh of so many hosts, each pipe of these parts. What happens on one pipe does not depend on
    /// the others.
    pub fn new(hosts: u32, parts: &[Part], random: &mut Random) -> Result<Self, PartError> {
        let seed = random.bits();
        // Faults of the parts are told now and not by a frame.
        Pipe::<P>::new(parts, &mut Random::new(seed))?;
        Ok(Self {
            hosts: hosts as usize,
            parts: parts.to_vec(),
            seed,
            ways: Vec::new(),
            places: BTreeMap::new(),
            agenda: Agenda::new(),
            told: VecDeque::new(),
            is_receiving: vec![true; hosts as usize],
        })
    }

    /// Other parts from this host to that one. What was in the old pipe is gone and not told; so this is for the
    /// beginning.
    pub fn set_parts(&mut self, from: HostId, to: HostId, parts: &[Part]) -> Result<(), PartError> {
        let pipe = Pipe::new(parts, &mut self.random_of(from, to))?;
        let place = self.place(from, to)?;
        self.ways[place].pipe = pipe;
        Ok(())
    }

    fn random_of(&self, from: HostId, to: HostId) -> Random {
        let pair = u64::from(from.0) << 32 | u64::from(to.0);
        Random::new(self.seed ^ pair.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn place(&mut self, from: HostId, to: HostId) -> Result<usize, PartError> {
        if let Some(&place) = self.places.get(&(from, to)) {
            return Ok(place);
        }
        let pipe = Pipe::new(&self.parts, &mut self.random_of(from, to))?;
        self.ways.push(Way {
            from,
            to,
            pipe,
            due: None,
            wanted_bytes: None,
        });
        self.places.insert((from, to), self.ways.len() - 1);
        Ok(self.ways.len() - 1)
    }

    /// Takes what comes out of a pipe, and says when to look again.
    fn serve(&mut self, place: usize, at: Time) {
        let way = &mut self.ways[place];
        way.pipe.advance(at);
        while self.is_receiving[way.to.index()]
            && let Some(frame) = way.pipe.take(at)
        {
            let host = way.to;
            self.told.push_back(Event::Delivered { at, host, frame });
        }
        if let Some(bytes) = way.wanted_bytes
            && way.pipe.has_room(at, bytes)
        {
            way.wanted_bytes = None;
            self.told.push_back(Event::Room { at, host: way.from });
        }
        for (number, reason) in way.pipe.take_lost() {
            self.told.push_back(Event::Lost { at, number, reason });
        }
        if let Some(next) = way.pipe.next()
            && way.due.is_none_or(|due| next < due)
        {
            way.due = Some(next);
            self.agenda.enter(next, place);
        }
    }
}

impl<P: Payload> Network<P> for Mesh<P> {
    fn hosts(&self) -> usize {
        self.hosts
    }

    fn send(&mut self, now: Time, frame: Frame<P>) -> Result<(), (Frame<P>, Refusal)> {
        if let Err(refusal) = self.admits(&frame) {
            return Err((frame, refusal));
        }
        let Ok(place) = self.place(frame.from, frame.to) else {
            return Err((frame, Refusal::NoWay));
        };
        let way = &mut self.ways[place];
        let result = way.pipe.offer(now, frame).map_err(|frame| {
            way.wanted_bytes = Some(frame.bytes);
            (frame, Refusal::Full)
        });
        self.serve(place, now);
        result
    }

    fn next(&self) -> Option<Time> {
        let told = self.told.front().map(Event::at);
        told.into_iter().chain(self.agenda.next()).min()
    }

    fn advance(&mut self, now: Time, tell: &mut dyn FnMut(Event<P>)) {
        loop {
            self.told.drain(..).for_each(&mut *tell);
            let Some((at, place)) = self.agenda.take(now) else {
                return;
            };
            if self.ways[place].due == Some(at) {
                self.ways[place].due = None;
                self.serve(place, at);
            }
        }
    }

    fn set_receiving(&mut self, now: Time, host: HostId, is_receiving: bool) {
        let Some(flag) = self.is_receiving.get_mut(host.index()) else {
            return;
        };
        if core::mem::replace(flag, is_receiving) == is_receiving {
            return;
        }
        for place in 0..self.ways.len() {
            if self.ways[place].to == host {
                self.serve(place, now);
            }
        }
    }
}

#[cfg(test)]
mod tests;

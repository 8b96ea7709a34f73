//! A mesh: from every host to every other, its own impairment chain.

use std::collections::{BTreeMap, VecDeque};

use super::impairment::ImpairmentError;
use super::{Event, Frame, HostId, Impairment, ImpairmentChain, Network, Payload, Refusal};
use crate::event_queue::EventQueue;
use crate::random::Random;
use crate::time::Time;

/// A chain for each ordered pair of hosts, all of the same impairments unless told otherwise.
#[derive(Clone, Debug)]
pub struct Mesh<P> {
    hosts: usize,
    impairments: Vec<Impairment>,
    seed: u64,
    routes: Vec<Route<P>>,
    places: BTreeMap<(HostId, HostId), usize>,
    event_queue: EventQueue<usize>,
    told: VecDeque<Event<P>>,
    is_receiving: Vec<bool>,
}

#[derive(Clone, Debug)]
struct Route<P> {
    from: HostId,
    to: HostId,
    impairment_chain: ImpairmentChain<P>,
    /// Its entry in the event queue; others are out of date.
    due: Option<Time>,
    /// The length of a frame that was refused.
    wanted_bytes: Option<u32>,
}

impl<P: Payload> Mesh<P> {
    /// A mesh of so many hosts, each chain of these impairments. What happens on one chain does not
    /// depend on the others.
    pub fn new(
        hosts: u32,
        impairments: &[Impairment],
        random: &mut Random,
    ) -> Result<Self, ImpairmentError> {
        let seed = random.bits();
        // Faults of the parts are told now and not by a frame.
        ImpairmentChain::<P>::new(impairments, &mut Random::new(seed))?;
        Ok(Self {
            hosts: hosts as usize,
            impairments: impairments.to_vec(),
            seed,
            routes: Vec::new(),
            places: BTreeMap::new(),
            event_queue: EventQueue::new(),
            told: VecDeque::new(),
            is_receiving: vec![true; hosts as usize],
        })
    }

    /// Other impairments from this host to that one. What was in the old chain is gone and not
    /// told; so this is for the beginning.
    pub fn set_impairments(
        &mut self,
        from: HostId,
        to: HostId,
        impairments: &[Impairment],
    ) -> Result<(), ImpairmentError> {
        let impairment_chain = ImpairmentChain::new(impairments, &mut self.random_of(from, to))?;
        let place = self.place(from, to)?;
        self.routes[place].impairment_chain = impairment_chain;
        Ok(())
    }

    fn random_of(&self, from: HostId, to: HostId) -> Random {
        let pair = u64::from(from.0) << 32 | u64::from(to.0);
        Random::new(self.seed ^ pair.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn place(&mut self, from: HostId, to: HostId) -> Result<usize, ImpairmentError> {
        if let Some(&place) = self.places.get(&(from, to)) {
            return Ok(place);
        }
        let impairment_chain =
            ImpairmentChain::new(&self.impairments, &mut self.random_of(from, to))?;
        self.routes.push(Route {
            from,
            to,
            impairment_chain,
            due: None,
            wanted_bytes: None,
        });
        self.places.insert((from, to), self.routes.len() - 1);
        Ok(self.routes.len() - 1)
    }

    /// Takes what comes out of a chain, and says when to look again.
    fn serve(&mut self, place: usize, at: Time) {
        let route = &mut self.routes[place];
        route.impairment_chain.advance(at);
        while self.is_receiving[route.to.index()]
            && let Some(frame) = route.impairment_chain.take(at)
        {
            let host = route.to;
            self.told.push_back(Event::Delivered { at, host, frame });
        }
        if let Some(bytes) = route.wanted_bytes
            && route.impairment_chain.has_room(at, bytes)
        {
            route.wanted_bytes = None;
            self.told.push_back(Event::Room {
                at,
                host: route.from,
            });
        }
        for (number, reason) in route.impairment_chain.take_lost() {
            self.told.push_back(Event::Lost { at, number, reason });
        }
        if let Some(next) = route.impairment_chain.next()
            && route.due.is_none_or(|due| next < due)
        {
            route.due = Some(next);
            self.event_queue.enter(next, place);
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
        let route = &mut self.routes[place];
        let result = route.impairment_chain.offer(now, frame).map_err(|frame| {
            route.wanted_bytes = Some(frame.bytes);
            (frame, Refusal::Full)
        });
        self.serve(place, now);
        result
    }

    fn next(&self) -> Option<Time> {
        let told = self.told.front().map(Event::at);
        told.into_iter().chain(self.event_queue.next()).min()
    }

    fn advance(&mut self, now: Time, tell: &mut dyn FnMut(Event<P>)) {
        loop {
            self.told.drain(..).for_each(&mut *tell);
            let Some((at, place)) = self.event_queue.take(now) else {
                return;
            };
            if self.routes[place].due == Some(at) {
                self.routes[place].due = None;
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
        for place in 0..self.routes.len() {
            if self.routes[place].to == host {
                self.serve(place, now);
            }
        }
    }
}

#[cfg(test)]
mod tests;

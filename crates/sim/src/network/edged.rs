//! A network with something at its edges: each host's frames go through a pipe before they enter it, and through another
//! after they leave it. So faults, buffers and partitions are combined with any network.

use std::collections::VecDeque;

use super::part::PartError;
use super::{Event, Frame, HostId, Network, Part, Payload, Pipe, Refusal};
use crate::agenda::Agenda;
use crate::random::Random;
use crate::time::Time;

/// Another network with a pipe at both ends of each host.
#[derive(Clone, Debug)]
pub struct Edged<P, N> {
    inner: N,
    edges: Vec<Edge<P>>,
    agenda: Agenda<usize>,
    told: VecDeque<Event<P>>,
}

#[derive(Clone, Debug)]
struct Edge<P> {
    outbound: Pipe<P>,
    inbound: Pipe<P>,
    /// Has come out of the network, and has no room in the pipe.
    parked: VecDeque<Frame<P>>,
    is_receiving: bool,
    due: Option<Time>,
    wanted_bytes: Option<u32>,
}

impl<P: Payload, N: Network<P>> Edged<P, N> {
    /// The same parts for every host: `outbound` on the way in, `inbound` on the way out.
    pub fn new(
        inner: N,
        outbound: &[Part],
        inbound: &[Part],
        random: &mut Random,
    ) -> Result<Self, PartError> {
        let edge = |_| {
            Ok(Edge {
                outbound: Pipe::new(outbound, random)?,
                inbound: Pipe::new(inbound, random)?,
                parked: VecDeque::new(),
                is_receiving: true,
                due: None,
                wanted_bytes: None,
            })
        };
        Ok(Self {
            edges: (0..inner.hosts()).map(edge).collect::<Result<_, _>>()?,
            inner,
            agenda: Agenda::new(),
            told: VecDeque::new(),
        })
    }

    /// The network inside.
    pub fn inner(&self) -> &N {
        &self.inner
    }

    /// Everything at the edge of a host moves on that can.
    fn serve(&mut self, place: usize, at: Time) {
        let host = HostId(place as u32);
        let edge = &mut self.edges[place];
        edge.inbound.advance(at);
        while let Some(frame) = edge.outbound.take(at) {
            // What could never be taken was refused at once, so this waits for room.
            if let Err((frame, _)) = self.inner.send(at, frame) {
                edge.outbound.untake(at, frame);
                break;
            }
        }
        loop {
            while let Some(frame) = edge.parked.pop_front() {
                if let Err(frame) = edge.inbound.offer(at, frame) {
                    edge.parked.push_front(frame);
                    break;
                }
            }
            if !edge.is_receiving {
                break;
            }
            let Some(frame) = edge.inbound.take(at) else {
                break;
            };
            self.told.push_back(Event::Delivered { at, host, frame });
        }
        if let Some(bytes) = edge.wanted_bytes
            && edge.outbound.has_room(at, bytes)
        {
            edge.wanted_bytes = None;
            self.told.push_back(Event::Room { at, host });
        }
        let lost = edge.outbound.take_lost().into_iter();
        for (number, reason) in lost.chain(edge.inbound.take_lost()) {
            self.told.push_back(Event::Lost { at, number, reason });
        }
        let nexts = [edge.outbound.next(), edge.inbound.next()];
        if let Some(next) = nexts.into_iter().flatten().min()
            && edge.due.is_none_or(|due| next < due)
        {
            edge.due = Some(next);
            self.agenda.enter(next, place);
        }
        let has_room = edge.parked.is_empty();
        self.inner.set_receiving(at, host, has_room);
    }

    fn hear(&mut self, event: Event<P>) {
        let at = event.at();
        match event {
            Event::Delivered { host, frame, .. } => {
                self.edges[host.index()].parked.push_back(frame);
                self.serve(host.index(), at);
            }
            Event::Room { host, .. } => self.serve(host.index(), at),
            Event::Lost { .. } => self.told.push_back(event),
        }
    }
}

impl<P: Payload, N: Network<P>> Network<P> for Edged<P, N> {
    fn hosts(&self) -> usize {
        self.inner.hosts()
    }

    fn admits(&self, frame: &Frame<P>) -> Result<(), Refusal> {
        self.inner.admits(frame)
    }

    fn send(&mut self, now: Time, frame: Frame<P>) -> Result<(), (Frame<P>, Refusal)> {
        if let Err(refusal) = self.admits(&frame) {
            return Err((frame, refusal));
        }
        let place = frame.from.index();
        let edge = &mut self.edges[place];
        let result = edge.outbound.offer(now, frame).map_err(|frame| {
            edge.wanted_bytes = Some(frame.bytes);
            (frame, Refusal::Full)
        });
        self.serve(place, now);
        result
    }

    fn next(&self) -> Option<Time> {
        let told = self.told.front().map(Event::at);
        let nexts = [told, self.agenda.next(), self.inner.next()];
        nexts.into_iter().flatten().min()
    }

    fn advance(&mut self, now: Time, tell: &mut dyn FnMut(Event<P>)) {
        let mut heard = Vec::new();
        loop {
            self.told.drain(..).for_each(&mut *tell);
            let Some(next) = self.next().filter(|next| *next <= now) else {
                return;
            };
            self.inner.advance(next, &mut |event| heard.push(event));
            for event in heard.drain(..) {
                self.hear(event);
            }
            while let Some((at, place)) = self.agenda.take(next) {
                if self.edges[place].due == Some(at) {
                    self.edges[place].due = None;
                    self.serve(place, at);
                }
            }
        }
    }

    fn set_receiving(&mut self, now: Time, host: HostId, is_receiving: bool) {
        if let Some(edge) = self.edges.get_mut(host.index()) {
            edge.is_receiving = is_receiving;
            self.serve(host.index(), now);
        }
    }
}

#[cfg(test)]
mod tests;

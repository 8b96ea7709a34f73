//! The machine under the world's programs: a network whose frames pass their sender's card, a wire, the switch, and their
//! receiver's card.
//!
//! A frame is delivered when the receiver's processor can see what the card did for it. The engine checks it afterwards, in
//! the library: so the card's reception is what the packet itself says, and packets that the engine refuses cost as if they were let in.

use std::collections::VecDeque;

use super::card::Reception;
use super::cards::{Cards, Event, Segment, Station};
use super::component::ComponentTimes;
use super::cost_model::PacketClass;
use super::parameters::Parameters;
use crate::network::{self, Frame, HostId, Network, Payload, Refusal};
use crate::time::Time;

/// A frame that says what it is to a card.
pub(crate) trait Classified: Payload + std::fmt::Debug {
    /// What it is; nothing if nobody marked it.
    fn class(&self) -> Option<PacketClass>;
}

/// What happens beside the cards.
#[derive(Debug)]
enum Happening<P> {
    /// The doorbell for a packet is heard.
    Rung(PacketClass, Frame<P>),
    /// The receiver's processor can see what came.
    Seen(Frame<P>),
}

#[derive(Debug)]
struct Programs<P> {
    /// By host: what waits for its card, and since when.
    queues: Vec<VecDeque<(Time, PacketClass, Frame<P>)>>,
    told: Vec<network::Event<P>>,
}

impl<P: Classified> Station for Programs<P> {
    type Packet = (PacketClass, Frame<P>);
    type Event = Happening<P>;

    fn waiting(&self, host: usize) -> Option<(Time, ComponentTimes)> {
        let (since, ..) = self.queues[host].front()?;
        Some((*since, ComponentTimes::default()))
    }

    fn segment(&mut self, host: usize) -> Option<Segment<Self::Packet>> {
        let (_, class, frame) = self.queues[host].pop_front()?;
        Some(Segment {
            to: frame.to.index(),
            descriptor: class.descriptor,
            packet: (class, frame),
            is_last: class.is_last,
        })
    }

    fn accept(&mut self, _host: usize, (class, _): &Self::Packet) -> Reception {
        Reception {
            is_let_in: true,
            is_announced: class.is_announced,
        }
    }

    fn taken(
        cards: &mut Cards<Self>,
        _host: usize,
        (_, frame): Self::Packet,
        _reception: Reception,
        mut times: ComponentTimes,
    ) {
        let seen = cards.machine.crossing.write;
        cards.later(seen, &mut times, |_| Event::Station(Happening::Seen(frame)));
    }

    fn happen(cards: &mut Cards<Self>, event: Happening<P>) {
        let at = cards.now();
        match event {
            Happening::Rung(class, frame) => {
                let host = frame.from.index();
                cards.station.queues[host].push_back((at, class, frame));
                cards.consider_sending(host);
            }
            Happening::Seen(frame) => {
                let host = frame.to;
                let delivered = network::Event::Delivered { at, host, frame };
                cards.station.told.push(delivered);
            }
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct MachineCarrier<P: Classified>(Cards<Programs<P>>);

impl<P: Classified> MachineCarrier<P> {
    /// The machine with so many hosts.
    pub(crate) fn new(machine: Parameters, hosts: usize) -> Self {
        let programs = Programs {
            queues: (0..hosts).map(|_| VecDeque::new()).collect(),
            told: Vec::new(),
        };
        Self(Cards::new(machine, hosts, programs))
    }
}

impl<P: Classified> Network<P> for MachineCarrier<P> {
    fn hosts(&self) -> usize {
        self.0.hosts()
    }

    fn send(&mut self, now: Time, frame: Frame<P>) -> Result<(), (Frame<P>, Refusal)> {
        let class = match (self.admits(&frame), frame.payload.class()) {
            (Ok(()), Some(class)) => class,
            (Err(refusal), _) => return Err((frame, refusal)),
            (_, None) => return Err((frame, Refusal::NoWay)),
        };
        let heard = now.max(self.0.now()) + self.0.machine.crossing.store;
        self.0
            .foresee(heard, Event::Station(Happening::Rung(class, frame)));
        Ok(())
    }

    fn next(&self) -> Option<Time> {
        self.0.next()
    }

    fn advance(&mut self, now: Time, tell: &mut dyn FnMut(network::Event<P>)) {
        self.0.run_until(now);
        self.0.station.told.drain(..).for_each(tell);
    }

    fn set_receiving(&mut self, _now: Time, host: HostId, is_receiving: bool) {
        self.0.set_receiving(host.index(), is_receiving);
    }
}

//! A fabric: crossbars and cables, with the frames as wormhole packets on them (Hamlyn 4: Myrinet).
//!
//! Frames are not cut into bytes, and still every byte is where it would be. A wormhole packet's
//! head is granted one cable after the other. Its bytes follow as fast as the slowest cable and the
//! buffers allow: byte `n` is on a cable `k` not before its turn on it, not before it has come over
//! the cable before, and not before byte `n - buffer` has left over the next. So when the last byte
//! is off cable `k` follows from when the head was granted `k` and the next ones (`packet`), and is
//! known as soon as what is left of the packet fits into the buffers up to its head. A wormhole
//! packet that is stopped keeps all cables on which it still has bytes, and what is behind it in an
//! input's buffer waits, whatever its own way.
//!
//! A wormhole packet is granted a cable if that is free and the input at its end has room for all
//! of it, or nothing in it that could stop. Inputs that want the same output have turns (Hamlyn
//! 2.8).
//!
//! A head takes no time on a cable but its delay, and the latency of a switch overlaps with waiting
//! behind another wormhole packet.

use std::collections::VecDeque;

use super::routing::Routes;
use super::topology::{End, Switching, Topology, TopologyError};
use super::{Event, Frame, HostId, Loss, Network, Payload, Refusal, Routing};
use crate::event_queue::EventQueue;
use crate::random::Random;
use crate::time::Time;

mod channel;
mod wormhole;

use channel::{Channel, Wanted};
use wormhole::{Leg, WormholePacket};

/// Frames that wait at a host besides the one that is leaving.
pub const QUEUE_FRAMES: usize = 1;

/// Crossbars and cables.
#[derive(Clone, Debug)]
pub struct Fabric<P> {
    channels: Vec<Channel>,
    switches: Vec<Crossbar>,
    hosts: Vec<HostPort>,
    routes: Routes,
    routing: Routing,
    /// The longest frame that every switch that stores and forwards can hold.
    longest_bytes: u64,
    packets: Vec<WormholePacket<P>>,
    vacant: Vec<u32>,
    event_queue: EventQueue<Step>,
    /// Channels that may have become grantable.
    to_try: Vec<u32>,
    told: VecDeque<Event<P>>,
    random: Random,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The head of a wormhole packet can be at an output.
    Head(u32),
    /// The last byte of the packet that has it is off this channel.
    Clear(u32),
    /// The last byte of a wormhole packet is at its host.
    Arrive(u32),
}

#[derive(Clone, Debug)]
struct Crossbar {
    /// Channels by port.
    inputs: Vec<Option<u32>>,
    outputs: Vec<Option<u32>>,
    /// Where a search for an output begins, so that equal ones are taken in turn.
    turn: usize,
}

#[derive(Clone, Debug)]
struct HostPort {
    out: u32,
    into: u32,
    /// Wormhole packets that have not begun to leave.
    queue: VecDeque<u32>,
    wants_room: bool,
    is_receiving: bool,
    is_on: bool,
}

impl<P: Payload> Fabric<P> {
    /// A fabric of this topology.
    pub fn new(
        topology: &Topology,
        routing: Routing,
        random: &mut Random,
    ) -> Result<Self, TopologyError> {
        topology.check()?;
        let routes = Routes::new(topology);
        let crossbar = |ports: u16| Crossbar {
            inputs: vec![None; ports.into()],
            outputs: vec![None; ports.into()],
            turn: 0,
        };
        let port = HostPort {
            out: 0,
            into: 0,
            queue: VecDeque::new(),
            wants_room: false,
            is_receiving: true,
            is_on: true,
        };
        let mut fabric = Self {
            channels: Vec::with_capacity(topology.cables.len() * 2),
            switches: topology
                .switches
                .iter()
                .map(|at| crossbar(at.ports))
                .collect(),
            hosts: vec![port; topology.hosts.len()],
            routes,
            routing,
            longest_bytes: u64::MAX,
            packets: Vec::new(),
            vacant: Vec::new(),
            event_queue: EventQueue::new(),
            to_try: Vec::new(),
            told: VecDeque::new(),
            random: random.fork(),
        };
        for cable in &topology.cables {
            let [one, other] = cable.ends;
            for (from, to) in [(one, other), (other, one)] {
                fabric.add_channel(Channel::new(topology, cable, from, to, &fabric.routes));
            }
        }
        Ok(fabric)
    }

    fn add_channel(&mut self, channel: Channel) {
        let number = self.channels.len() as u32;
        match channel.from {
            End::Host(host) => self.hosts[host as usize].out = number,
            End::Switch(at, port) => {
                self.switches[at as usize].outputs[usize::from(port)] = Some(number);
            }
        }
        match channel.to {
            End::Host(host) => self.hosts[host as usize].into = number,
            End::Switch(at, port) => {
                self.switches[at as usize].inputs[usize::from(port)] = Some(number);
            }
        }
        if channel.switching == Switching::StoreAndForward {
            self.longest_bytes = self.longest_bytes.min(channel.buffer_bytes);
        }
        self.channels.push(channel);
    }

    /// A cable, by its place in the topology, goes down or up. Frames with bytes on it, and those
    /// that enter it while it is down, go on and are lost where they should arrive; adaptive
    /// routing goes around it where there is another way.
    pub fn set_cable(&mut self, cable: usize, is_up: bool) {
        for channel in [cable * 2, cable * 2 + 1] {
            let Some(channel) = self.channels.get_mut(channel) else {
                return;
            };
            channel.is_up = is_up;
            if !is_up && let Some((packet, _)) = channel.user {
                self.packets[packet as usize].doom.get_or_insert(Loss::Down);
            }
        }
    }

    /// A host loses power, or has it again. What is for it meanwhile is discarded by the switch
    /// (Hamlyn 2.8), even if the host took no frames before.
    pub fn set_power(&mut self, now: Time, host: HostId, is_on: bool) {
        if let Some(port) = self.hosts.get_mut(host.index()) {
            port.is_on = is_on;
            self.to_try.push(port.into);
            self.try_all(now);
        }
    }

    /// Sends a frame along ports that the sender names, one for each switch, as Myrinet does. It
    /// arrives at the host at which they end, even if it is for another; it is lost if they end
    /// nowhere. Such ways may deadlock: nothing here checks their order.
    pub fn send_along(
        &mut self,
        now: Time,
        frame: Frame<P>,
        ports: &[u16],
    ) -> Result<(), (Frame<P>, Refusal)> {
        if frame.from.index() >= self.hosts.len() {
            return Err((frame, Refusal::NoHost));
        }
        if u64::from(frame.bytes) > self.longest_bytes {
            return Err((frame, Refusal::TooLong));
        }
        let mut channel = Some(self.hosts[frame.from.index()].out);
        let mut rest = ports.iter();
        while let Some(End::Switch(at, _)) = channel.map(|at| self.channels[at as usize].to) {
            let outputs = &self.switches[at as usize].outputs;
            channel = rest
                .next()
                .and_then(|&port| *outputs.get(usize::from(port))?);
        }
        if channel.is_none() || rest.next().is_some() {
            let (number, reason) = (frame.number, Loss::Astray);
            let at = now;
            self.told.push_back(Event::Lost { at, number, reason });
            return Ok(());
        }
        self.enqueue(now, frame, ports)
    }

    fn enqueue(
        &mut self,
        now: Time,
        frame: Frame<P>,
        ports: &[u16],
    ) -> Result<(), (Frame<P>, Refusal)> {
        let host = &mut self.hosts[frame.from.index()];
        if host.queue.len() >= QUEUE_FRAMES {
            host.wants_room = true;
            return Err((frame, Refusal::Full));
        }
        let at = self.vacant.pop().unwrap_or_else(|| {
            self.packets.push(WormholePacket::default());
            self.packets.len() as u32 - 1
        });
        let packet = &mut self.packets[at as usize];
        packet.bytes = frame.bytes.into();
        packet.route.extend_from_slice(ports);
        packet.frame = Some(frame);
        host.queue.push_back(at);
        self.to_try.push(host.out);
        self.try_all(now);
        Ok(())
    }

    /// How many frames are in the fabric, and wait at its hosts.
    pub fn frames(&self) -> usize {
        self.packets.len() - self.vacant.len()
    }

    /// How many events there have been, and are to come.
    pub fn events(&self) -> u64 {
        self.event_queue.made()
    }

    fn step(&mut self, now: Time, step: Step) {
        match step {
            Step::Head(packet) => {
                let head = &mut self.packets[packet as usize];
                head.is_head_ready = true;
                if let Some(&Leg { channel, .. }) = head.legs.last()
                    && self.channels[channel as usize].occupants.front() == Some(&packet)
                {
                    self.request(channel);
                }
            }
            Step::Clear(channel) => self.clear(channel),
            Step::Arrive(packet) => self.arrive(now, packet),
        }
        self.try_all(now);
    }

    /// The last byte of a wormhole packet is off a channel, and so out of the buffer before it.
    fn clear(&mut self, channel: u32) {
        let Some((packet, leg)) = self.channels[channel as usize].user.take() else {
            return;
        };
        self.to_try.push(channel);
        if leg == 0 {
            return;
        }
        let before = self.packets[packet as usize].legs[leg - 1];
        let input = &mut self.channels[before.channel as usize];
        input.occupants.pop_front();
        if !before.is_leaving {
            input.release(self.packets[packet as usize].bytes);
        }
        self.to_try.push(before.channel);
        self.request(before.channel);
    }

    fn arrive(&mut self, at: Time, number: u32) {
        let packet = &mut self.packets[number as usize];
        let channel = packet.legs.last().map(|leg| leg.channel);
        let doom = packet.doom.take();
        let frame = packet.frame.take();
        packet.legs.clear();
        packet.route.clear();
        packet.settled = 0;
        packet.is_head_ready = false;
        self.vacant.push(number);
        let (Some(frame), Some(End::Host(host))) =
            (frame, channel.map(|at| self.channels[at as usize].to))
        else {
            return;
        };
        let is_on = self.hosts[host as usize].is_on;
        self.told.push_back(match doom {
            None if is_on => Event::Delivered {
                at,
                host: HostId(host),
                frame,
            },
            _ => Event::Lost {
                at,
                number: frame.number,
                reason: doom.unwrap_or(Loss::HostOff),
            },
        });
    }

    /// The first wormhole packet in an input's buffer, if its head is there, asks for an output.
    fn request(&mut self, input: u32) {
        let channel = &self.channels[input as usize];
        let (Some(&number), End::Switch(at, port)) = (channel.occupants.front(), channel.to) else {
            return;
        };
        let packet = &self.packets[number as usize];
        let is_here = packet.legs.last().is_some_and(|leg| leg.channel == input);
        if !is_here || !packet.is_head_ready {
            return;
        }
        let wanted = self.wanted(number, at as usize, channel.is_down);
        self.channels[input as usize].wanted = wanted;
        self.mark(at as usize, port, wanted, true);
    }

    /// Where a wormhole packet wants to go from a switch.
    fn wanted(&mut self, number: u32, at: usize, came_down: bool) -> Wanted {
        let packet = &self.packets[number as usize];
        if let Some(&port) = packet.route.get(packet.legs.len() - 1) {
            return Wanted::Port(port);
        }
        let Some(frame) = &packet.frame else {
            return Wanted::Nothing;
        };
        let into = self.hosts[frame.to.index()].into;
        let End::Switch(edge, last) = self.channels[into as usize].from else {
            return Wanted::Nothing;
        };
        if edge as usize == at {
            return Wanted::Port(last);
        }
        let list = self.routes.towards(at, came_down, edge as usize);
        let ports = self.routes.list(list);
        let place = (at, self.routes.height(at));
        let pair = (frame.from, frame.to, frame.flow);
        let choice = match self.routing.choose(pair, place, ports.len()) {
            Some(choice) => choice,
            None if self.routing == Routing::Spray => {
                self.random.below(ports.len() as u64) as usize
            }
            None => match self.least_busy(at, list, packet.bytes) {
                Some(choice) => choice,
                None => return Wanted::List(list),
            },
        };
        let port = self.routes.list(list).get(choice);
        port.map_or(Wanted::Nothing, |&port| Wanted::Port(port))
    }

    /// Of a list of outputs, one that can be had now, with the least behind it; in turn if there
    /// are several. If all are taken, nothing: the packet waits for any of them.
    fn least_busy(&mut self, at: usize, list: usize, bytes: u64) -> Option<usize> {
        let crossbar = &mut self.switches[at];
        let ports = self.routes.list(list);
        let mut best: Option<(u64, usize)> = None;
        for step in 0..ports.len() {
            let choice = (crossbar.turn + step) % ports.len();
            let Some(output) = crossbar.outputs[usize::from(ports[choice])] else {
                continue;
            };
            let channel = &self.channels[output as usize];
            if channel.is_up
                && channel.user.is_none()
                && channel.waiting.is_empty()
                && channel.fits(bytes)
                && best.is_none_or(|(least, _)| channel.reserved_bytes < least)
            {
                best = Some((channel.reserved_bytes, choice));
            }
        }
        let (_, choice) = best?;
        crossbar.turn = choice + 1;
        Some(choice)
    }

    /// An input waits, or no longer waits, for all that it wants.
    fn mark(&mut self, at: usize, port: u16, wanted: Wanted, is_waiting: bool) {
        let one;
        let ports = match wanted {
            Wanted::Nothing => return,
            Wanted::Port(port) => {
                one = [port];
                one.as_slice()
            }
            Wanted::List(list) => self.routes.list(list),
        };
        let crossbar = &self.switches[at];
        let outputs = ports
            .iter()
            .filter_map(|&port| crossbar.outputs[usize::from(port)]);
        // Around what is down, if there is another way.
        let is_up = |output: &u32| self.channels[*output as usize].is_up;
        let is_any_up = outputs.clone().any(|output| is_up(&output));
        for output in outputs {
            let channel = &mut self.channels[output as usize];
            if is_waiting && is_any_up && !channel.is_up {
                continue;
            }
            channel.waiting.set(port, is_waiting);
            if is_waiting {
                self.to_try.push(output);
            }
        }
    }

    fn try_all(&mut self, now: Time) {
        while let Some(channel) = self.to_try.pop() {
            self.try_channel(now, channel);
        }
    }

    /// Grants a channel to the packet whose turn it is, if that is possible.
    fn try_channel(&mut self, now: Time, number: u32) {
        let channel = &self.channels[number as usize];
        if channel.user.is_some() {
            return;
        }
        let (packet, input) = match channel.from {
            End::Host(host) => match self.hosts[host as usize].queue.front() {
                Some(&packet) => (packet, None),
                None => return,
            },
            End::Switch(at, _) => {
                let Some(port) = channel.waiting.next() else {
                    return;
                };
                let input = self.switches[at as usize].inputs[usize::from(port)];
                let first = input.and_then(|at| self.channels[at as usize].occupants.front());
                let (Some(input), Some(&packet)) = (input, first) else {
                    return;
                };
                (packet, Some((at as usize, port, input)))
            }
        };
        let is_room = match channel.to {
            End::Host(host) => {
                let host = &self.hosts[host as usize];
                host.is_receiving || !host.is_on
            }
            End::Switch(..) => channel.fits(self.packets[packet as usize].bytes),
        };
        if !is_room {
            return;
        }
        match (input, channel.from) {
            (Some((at, port, input)), _) => {
                let wanted =
                    core::mem::replace(&mut self.channels[input as usize].wanted, Wanted::Nothing);
                self.mark(at, port, wanted, false);
                self.channels[number as usize].waiting.had_turn(port);
            }
            (None, End::Host(host)) => {
                let port = &mut self.hosts[host as usize];
                port.queue.pop_front();
                if core::mem::take(&mut port.wants_room) {
                    let (at, host) = (now, HostId(host));
                    self.told.push_back(Event::Room { at, host });
                }
            }
            (None, End::Switch(..)) => {}
        }
        self.grant(now, packet, number);
    }
}

impl<P: Payload> Network<P> for Fabric<P> {
    fn hosts(&self) -> usize {
        self.hosts.len()
    }

    fn admits(&self, frame: &Frame<P>) -> Result<(), Refusal> {
        let port = |host: HostId| self.hosts.get(host.index()).ok_or(Refusal::NoHost);
        let out = &self.channels[port(frame.from)?.out as usize];
        let into = &self.channels[port(frame.to)?.into as usize];
        let is_way = match (out.to, into.from) {
            (End::Switch(first, _), End::Switch(last, _)) => {
                let (first, last) = (first as usize, last as usize);
                let list = self.routes.towards(first, false, last);
                first == last || !self.routes.list(list).is_empty()
            }
            (End::Host(end), _) => end == frame.to.0,
            (End::Switch(..), End::Host(_)) => false,
        };
        if !is_way {
            return Err(Refusal::NoWay);
        }
        let is_short = u64::from(frame.bytes) <= self.longest_bytes;
        is_short.then_some(()).ok_or(Refusal::TooLong)
    }

    fn send(&mut self, now: Time, frame: Frame<P>) -> Result<(), (Frame<P>, Refusal)> {
        match self.admits(&frame) {
            Ok(()) => self.enqueue(now, frame, &[]),
            Err(refusal) => Err((frame, refusal)),
        }
    }

    fn next(&self) -> Option<Time> {
        let told = self.told.front().map(Event::at);
        told.into_iter().chain(self.event_queue.next()).min()
    }

    fn advance(&mut self, now: Time, tell: &mut dyn FnMut(Event<P>)) {
        loop {
            self.told.drain(..).for_each(&mut *tell);
            let Some((at, step)) = self.event_queue.take(now) else {
                return;
            };
            self.step(at, step);
        }
    }

    fn set_receiving(&mut self, now: Time, host: HostId, is_receiving: bool) {
        let Some(port) = self.hosts.get_mut(host.index()) else {
            return;
        };
        if core::mem::replace(&mut port.is_receiving, is_receiving) != is_receiving {
            self.to_try.push(port.into);
            self.try_all(now);
        }
    }
}

#[cfg(test)]
mod tests;

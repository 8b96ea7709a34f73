//! How a wormhole packet goes on: what a grant decides about the bytes behind the head.

use super::{Fabric, Step};
use crate::network::topology::Switching;
use crate::network::{Frame, Loss, Payload};
use crate::time::{Span, Time};

#[derive(Clone, Debug)]
pub(super) struct WormholePacket<P> {
    pub(super) frame: Option<Frame<P>>,
    pub(super) bytes: u64,
    pub(super) legs: Vec<Leg>,
    /// So many legs, from the first, have an end that is known.
    pub(super) settled: usize,
    pub(super) is_head_ready: bool,
    pub(super) doom: Option<Loss>,
    /// Ports, one for each switch, if the sender chose the way.
    pub(super) route: Vec<u16>,
}

/// A channel that a wormhole packet goes over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    pub(super) channel: u32,
    pub(super) granted: Time,
    /// When its last byte is off the channel, if settled.
    pub(super) clear: Time,
    /// Whether the buffer at the channel's end no longer counts it.
    pub(super) is_leaving: bool,
}

impl<P: Payload> Fabric<P> {
    /// Gives a wormhole packet its next channel.
    pub(super) fn grant(&mut self, now: Time, number: u32, to: u32) {
        let channel = &mut self.channels[to as usize];
        let packet = &mut self.packets[number as usize];
        channel.user = Some((number, packet.legs.len()));
        packet.legs.push(Leg {
            channel: to,
            granted: now,
            clear: Time::NEVER,
            is_leaving: false,
        });
        packet.is_head_ready = false;
        if !channel.is_up || self.random.happens(channel.loses_per_million) {
            let why = if channel.is_up {
                Loss::Chance
            } else {
                Loss::Down
            };
            packet.doom.get_or_insert(why);
        }
        if self.random.happens(channel.damages_per_million)
            && let Some(frame) = &mut packet.frame
        {
            frame.damaged = true;
            frame.payload.damage(&mut self.random);
        }
        if !channel.is_to_host() {
            channel.occupants.push_back(number);
            channel.reserve(packet.bytes);
        }
        self.settle(number);
        let channel = &self.channels[to as usize];
        let clear = self.packets[number as usize]
            .legs
            .last()
            .map(|leg| leg.clear);
        let last = clear.unwrap_or(Time::NEVER) + channel.delay;
        if channel.is_to_host() {
            self.event_queue.enter(last, Step::Arrive(number));
        } else {
            let head = match channel.switching {
                Switching::Wormhole => now + channel.delay,
                Switching::StoreAndForward => last,
            };
            self.event_queue
                .enter(head + channel.latency, Step::Head(number));
        }
    }

    /// Works out when the packet's last byte will be off its channels, for those of which that can
    /// be known now.
    fn settle(&mut self, number: u32) {
        loop {
            let packet = &self.packets[number as usize];
            let at = packet.settled;
            let Some(leg) = packet.legs.get(at) else {
                return;
            };
            let (channel, mut room, mut slowest) = (leg.channel, 0, 0);
            let mut is_at_host = false;
            for leg in &packet.legs[at..] {
                let channel = &self.channels[leg.channel as usize];
                room += channel.buffer_bytes;
                slowest = channel.ps_per_byte.max(slowest);
                is_at_host = channel.is_to_host();
            }
            if !is_at_host && room < packet.bytes {
                return;
            }
            let clear = self.clear_at(packet, at);
            let packet = &mut self.packets[number as usize];
            packet.legs[at].clear = clear;
            packet.settled += 1;
            self.event_queue.enter(clear, Step::Clear(channel));
            // From now on it leaves the buffer before this channel without a stop. If it does so as
            // fast as another wormhole packet could enter, there is never more in it than now.
            if at > 0 {
                let bytes = packet.bytes;
                let before = &mut packet.legs[at - 1];
                let input = &mut self.channels[before.channel as usize];
                if slowest <= input.ps_per_byte {
                    before.is_leaving = true;
                    input.release(bytes);
                    self.to_try.push(before.channel);
                }
            }
        }
    }

    /// When the last byte is off this leg's channel, as far as the legs until now decide it.
    fn clear_at(&self, packet: &WormholePacket<P>, at: usize) -> Time {
        let mut clear = match at.checked_sub(1) {
            Some(before) => {
                let before = &packet.legs[before];
                let channel = &self.channels[before.channel as usize];
                before.clear + channel.delay + channel.latency
            }
            None => Time::ZERO,
        };
        let mut left = packet.bytes;
        let mut slowest = 0;
        for leg in &packet.legs[at..] {
            let channel = &self.channels[leg.channel as usize];
            slowest = channel.ps_per_byte.max(slowest);
            clear = clear.max(leg.granted + Span::from_ps(slowest) * left);
            left = left.saturating_sub(channel.buffer_bytes);
            if left == 0 {
                break;
            }
        }
        clear
    }
}

impl<P> Default for WormholePacket<P> {
    fn default() -> Self {
        Self {
            frame: None,
            bytes: 0,
            legs: Vec::new(),
            settled: 0,
            is_head_ready: false,
            doom: None,
            route: Vec::new(),
        }
    }
}

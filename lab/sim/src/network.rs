//! The simulated network: pure state machines in virtual time (decision 0011).
//!
//! Nothing here reads a clock, waits, or does I/O. A [`Network`] is told the time; it answers with
//! what happens and when it is to be asked again. It carries frames and knows nothing of what is in
//! them.
//!
//! From small to large: an [`impairment`] does one thing to frames, an [`impairment_chain`] is a
//! row of impairments, a [`mesh`] has a chain for each pair of hosts, and a [`fabric`] has switches
//! and cables after a [`topology`] and sends frames by [`routing`]. [`saturation`] loads a fabric
//! until it takes no more (Hamlyn 1 and 6.1: what adaptive routing gains).
//!
//! Refuses: frames from or to hosts that do not exist, frames without a way, and frames for which
//! there is no room at the moment; the sender hears when there is room again.

use serde::{Deserialize, Serialize};

use crate::random::Random;
use crate::time::Time;

pub mod fabric;
pub mod impairment;
pub mod impairment_chain;
pub mod mesh;
pub mod routing;
pub mod saturation;
pub mod topology;

pub use fabric::Fabric;
pub use impairment::Impairment;
pub use impairment_chain::ImpairmentChain;
pub use mesh::Mesh;
pub use routing::Routing;
pub use topology::Topology;

/// A host: its place in the network's list of hosts, from 0.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct HostId(pub u32);

impl HostId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is in a frame, as far as the network has to know.
pub trait Payload: Clone {
    /// Changes what can be changed by noise on a wire; nothing by default.
    fn damage(&mut self, _random: &mut Random) {}
}

impl Payload for () {}
impl Payload for u64 {
    fn damage(&mut self, random: &mut Random) {
        *self ^= 1 << random.below(64);
    }
}
impl Payload for Vec<u8> {
    fn damage(&mut self, random: &mut Random) {
        let bit = random.below(self.len() as u64 * 8);
        if let Some(byte) = self.get_mut(bit as usize / 8) {
            *byte ^= 1 << (bit % 8);
        }
    }
}

/// What travels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame<P = ()> {
    /// Chosen by the sender, its own in the whole network; a copy made on the way has the same.
    pub number: u64,
    /// Who sent it.
    pub from: HostId,
    /// Who is to have it.
    pub to: HostId,
    /// What [`Routing::Flow`] keeps on one path.
    pub flow: u32,
    /// Length on the wire, at least 1.
    pub bytes: u32,
    /// Noise has hit it. That is the truth, for checkers; a receiver has to find out by itself.
    pub damaged: bool,
    /// What it carries.
    pub payload: P,
}

impl<P> Frame<P> {
    /// An undamaged frame of flow 0.
    pub fn new(number: u64, from: HostId, to: HostId, bytes: u32, payload: P) -> Self {
        Self {
            number,
            from,
            to,
            flow: 0,
            bytes: bytes.max(1),
            damaged: false,
            payload,
        }
    }
}

/// Why a frame did not come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
pub enum Loss {
    /// [`Impairment::Lose`], or a cable that loses.
    #[error("lost by chance")]
    Chance,
    /// A full buffer that drops.
    #[error("no room in a buffer")]
    Overflow,
    /// [`Impairment::Partition`].
    #[error("the network is partitioned")]
    Partition,
    /// A link or a cable that was down.
    #[error("the link is down")]
    Down,
    /// The receiver has no power, and the switch discards what is for it (Hamlyn 2.8).
    #[error("the host is switched off")]
    HostOff,
    /// A source route that names a port without a cable, or ends at a switch.
    #[error("the route leads nowhere")]
    Astray,
}

/// Why a frame was not taken. It comes back with the reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// An [`Event::Room`] tells when to try again.
    #[error("no room now: wait for the event that there is room")]
    Full,
    /// One of the two hosts is not in this network.
    #[error("no such host in this network")]
    NoHost,
    /// No cables lead from one to the other.
    #[error("no way between these hosts")]
    NoWay,
    /// A switch that stores and forwards cannot hold it.
    #[error("longer than a buffer on its way")]
    TooLong,
}

/// What happens in a network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event<P> {
    /// The last byte of a frame is there.
    Delivered {
        /// When.
        at: Time,
        /// Where. Another than `frame.to` only if a source route said so.
        host: HostId,
        /// What.
        frame: Frame<P>,
    },
    /// A frame, or one copy of it, will not come.
    Lost {
        /// When that was decided.
        at: Time,
        /// The number of the frame.
        number: u64,
        /// Why.
        reason: Loss,
    },
    /// A host whose frame was refused may try again.
    Room {
        /// When.
        at: Time,
        /// The host that sends.
        host: HostId,
    },
}

impl<P> Event<P> {
    /// When it happened.
    pub fn at(&self) -> Time {
        match self {
            Self::Delivered { at, .. } | Self::Lost { at, .. } | Self::Room { at, .. } => *at,
        }
    }
}

/// What carries frames between hosts.
///
/// To drive it: [`Network::send`], then [`Network::advance`] to the instant that [`Network::next`]
/// names, again and again. Time never goes back, and never beyond `next` without an `advance`; a
/// caller that breaks this gets late events, not wrong ones.
pub trait Network<P> {
    /// How many hosts there are.
    fn hosts(&self) -> usize;

    /// Gives it a frame. If there is no room, the frame comes back and [`Event::Room`] follows.
    fn send(&mut self, now: Time, frame: Frame<P>) -> Result<(), (Frame<P>, Refusal)>;

    /// Why this frame could never be taken, whatever room there is.
    fn admits(&self, frame: &Frame<P>) -> Result<(), Refusal> {
        let hosts = self.hosts();
        if frame.from.index() < hosts && frame.to.index() < hosts {
            Ok(())
        } else {
            Err(Refusal::NoHost)
        }
    }

    /// Nothing happens before this instant, if nothing more is sent; nothing at all if there is
    /// none.
    fn next(&self) -> Option<Time>;

    /// Time is now `now`; what has happened until then is told in its order.
    fn advance(&mut self, now: Time, tell: &mut dyn FnMut(Event<P>));

    /// A host stops or starts to take frames. What is for it waits in the network, and holds up
    /// what is behind it (Hamlyn 2.8); frames whose first byte was on the last cable still come.
    /// All hosts take frames at the beginning.
    fn set_receiving(&mut self, now: Time, host: HostId, is_receiving: bool);
}

#[cfg(test)]
mod tests;

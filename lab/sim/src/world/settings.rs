//! What a world is made of, and what things take in it where no machine says so.

use crate::link::WireSettings;
use crate::time::Span;

/// What a world is made of.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    /// Decides all.
    pub seed: u64,
    /// Whether what happens is written down for people: slow.
    pub records: bool,
    /// What things take.
    pub costs: Costs,
    /// The way between two interfaces of one node.
    pub near: Path,
    /// The way between two nodes.
    pub far: Path,
    /// Up to so long after a packet has come, its sender looks whether the receiver sleeps, and
    /// rings.
    pub ring_delay: Span,
    /// Whether tasks that are ready at the same instant go on in a random order; otherwise in that
    /// in which they were woken.
    pub shuffles: bool,
    /// A point of an interface's work takes a random time up to this, so that what happens
    /// elsewhere falls between the steps of a call.
    pub point_max: Span,
    /// Whether a task that wants what another one of its process has goes on as soon as that lets
    /// go of it; otherwise when the time is over that the other's next point takes.
    pub lets_go_at_once: bool,
    /// How long a program polls before it sleeps.
    pub spin: Span,
    /// How long a program that polls, and waits for anything at all, looks at nothing else unless
    /// something comes.
    pub moment: Span,
    /// Packets that a link holds, before its sender must wait; over a network, frames that are not
    /// acknowledged.
    pub link_packets: u32,
    /// The largest payload of a packet, in bytes: 256 to 65,536.
    pub packet_payload_bytes: usize,
    /// What links over a network are like.
    pub wire: WireSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 0,
            records: false,
            costs: Costs::default(),
            near: Path {
                delay: Span::from_ns(100),
                jitter: Span::ZERO,
                per_byte: Span::from_ps(50),
            },
            far: Path {
                delay: Span::from_ns(1_500),
                jitter: Span::ZERO,
                per_byte: Span::from_ps(80),
            },
            ring_delay: Span::ZERO,
            shuffles: false,
            point_max: Span::ZERO,
            lets_go_at_once: false,
            spin: Span::from_us(2),
            moment: Span::from_us(1),
            link_packets: 64,
            packet_payload_bytes: 16 << 10,
            wire: WireSettings::default(),
        }
    }
}

/// What the processors of a node take for things.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Costs {
    /// Handing a packet to a link.
    pub send: Span,
    /// Taking one from a link.
    pub receive: Span,
    /// A look at something that has not come.
    pub look: Span,
    /// Going to sleep, and waking up.
    pub sleep: Span,
    /// Each of the steps that lead to a sleep.
    pub step: Span,
    /// A connection's part on either side.
    pub connect: Span,
}

impl Costs {
    /// Nothing that programs do takes time.
    pub const NOTHING: Self = Self {
        send: Span::ZERO,
        receive: Span::ZERO,
        look: Span::ZERO,
        sleep: Span::ZERO,
        step: Span::ZERO,
        connect: Span::ZERO,
    };
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            send: Span::from_ns(20),
            receive: Span::from_ns(20),
            look: Span::from_ns(10),
            sleep: Span::from_ns(2_000),
            step: Span::from_ns(300),
            connect: Span::from_us(20),
        }
    }
}

/// A way between interfaces that loses nothing.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Path {
    /// From one end to the other.
    pub delay: Span,
    /// Up to so much more, of each packet for itself: with it packets overtake each other.
    pub jitter: Span,
    /// For each byte, one packet of a link after the other.
    pub per_byte: Span,
}

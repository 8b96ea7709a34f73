//! What time goes to: the rows of Table 4, the wake-up that it leaves out, and waiting for others.

use crate::time::Span;

/// What a piece of time was spent on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Component {
    /// Starting a DMA unit of the card, and moving bytes over the I/O bus or the wire. Table 4 has
    /// no row for the wire, whose ends are DMA units.
    Dma,
    /// The control program of the interface processor.
    Lanai,
    /// The switch.
    Switch,
    /// Latencies during which nothing is occupied (a machine file's `[crossing]`); the paper's
    /// machine has none.
    Crossing,
    /// Stores of the host's processor to the card.
    HostWrites,
    /// Protocol software on the host's processors.
    HostSoftware,
    /// Interrupt and context switch for a receiver that sleeps.
    WakeUp,
    /// Waiting until somebody else has done with a resource.
    Waiting,
}

impl Component {
    /// All of them, in the order of Table 4.
    pub const ALL: [Self; 8] = [
        Self::Dma,
        Self::Lanai,
        Self::Switch,
        Self::Crossing,
        Self::HostWrites,
        Self::HostSoftware,
        Self::WakeUp,
        Self::Waiting,
    ];
}

/// What a message's way has cost so far, by component. Of a message of several packets it is the
/// way of the last one to be deposited, from the message's beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ComponentTimes([Span; Component::ALL.len()]);

impl ComponentTimes {
    /// So much more went to that.
    pub fn add(&mut self, component: Component, span: Span) {
        self.0[component as usize] += span;
    }

    /// What went to that.
    pub fn of(&self, component: Component) -> Span {
        self.0[component as usize]
    }

    /// All of it.
    pub fn total(&self) -> Span {
        self.0.iter().fold(Span::ZERO, |sum, &span| sum + span)
    }
}

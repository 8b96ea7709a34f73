//! Impairments: what can happen to frames on their way through a chain. Each does one thing.
//!
//! An impairment is plain data, and can be written in a file; the state that it needs is in
//! [`crate::network::impairment_chain`].

use serde::{Deserialize, Serialize};

use super::HostId;
use crate::time::{Span, Time};

/// One thing that happens to frames. Names of fields end with their unit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "impairment", deny_unknown_fields)]
pub enum Impairment {
    /// Every frame takes so long.
    Delay {
        /// How long.
        delay_ps: u64,
    },
    /// Every frame takes up to so much longer; none overtakes another.
    Jitter {
        /// At most.
        up_to_ps: u64,
    },
    /// One byte after the other: a frame occupies the wire until its last byte is on it, and longer
    /// if what follows has no room.
    Bandwidth {
        /// Time of a byte, not 0.
        ps_per_byte: u64,
    },
    /// Some frames are held back, and others overtake them.
    Reorder {
        /// How many of a million.
        per_million: u32,
        /// Held back by at most this, at least 1 ps.
        up_to_ps: u64,
    },
    /// Some frames vanish.
    Lose {
        /// How many of a million begin a run of losses.
        per_million: u32,
        /// So many frames are lost one after the other, at least 1.
        run_frames: u32,
    },
    /// Some frames come twice.
    Duplicate {
        /// How many of a million.
        per_million: u32,
    },
    /// Some frames are damaged.
    Damage {
        /// How many of a million.
        per_million: u32,
    },
    /// A queue with an end.
    Buffer {
        /// Bytes of all frames in it. A frame that is longer has room if the buffer is empty.
        limit_bytes: u64,
        /// What becomes of a frame for which there is no room.
        when_full: WhenFull,
    },
    /// Frames between two sets of hosts are lost for a while, in both directions. It applies to
    /// frames that pass this impairment in that time: at the beginning of a chain it takes those
    /// that are sent, at its end those that arrive.
    Partition {
        /// When the two are apart.
        cuts: Vec<Cut>,
    },
    /// A link that comes and goes.
    ComeAndGo {
        /// When it is up.
        schedule: Schedule,
        /// What becomes of frames while it is down.
        when_down: WhenDown,
    },
}

/// What a full buffer does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// Takes no more until there is room: back-pressure.
    Refuse,
    /// Drops the frame that comes.
    Drop,
}

/// What a link does while it is down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenDown {
    /// Takes nothing: back-pressure.
    Hold,
    /// Loses what comes.
    Lose,
}

/// Two sets of hosts that are apart for a while.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// From here, in picoseconds since the beginning.
    pub from_ps: u64,
    /// Until before here.
    pub until_ps: u64,
    /// The one set.
    pub one: Vec<HostId>,
    /// The other set.
    pub other: Vec<HostId>,
}

impl Cut {
    pub(crate) fn parts(&self, now: Time, from: HostId, to: HostId) -> bool {
        (self.from_ps..self.until_ps).contains(&now.as_ps())
            && (self.one.contains(&from) && self.other.contains(&to)
                || self.one.contains(&to) && self.other.contains(&from))
    }
}

/// When a link is up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Up at first; changes at each of these instants, in picoseconds, ascending.
    At(Vec<u64>),
    /// Up and down in turn, each time for a random span of up to twice the mean.
    Random {
        /// Mean span of being up, not 0.
        up_ps: u64,
        /// Mean span of being down, not 0.
        down_ps: u64,
    },
}

/// Why an impairment cannot be built.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ImpairmentError {
    /// A wire without a rate.
    #[error("impairment {at}: bandwidth needs ps_per_byte of at least 1")]
    NoRate {
        /// Which impairment of the chain, from 0.
        at: usize,
    },
    /// More than a million of a million.
    #[error("impairment {at}: {per_million} of a million is more than all: at most 1000000")]
    TooOften {
        /// Which impairment of the chain, from 0.
        at: usize,
        /// What was asked for.
        per_million: u32,
    },
    /// Nothing would be in a run.
    #[error("impairment {at}: a loss needs run_frames of at least 1")]
    NoRun {
        /// Which impairment of the chain, from 0.
        at: usize,
    },
    /// Held back by nothing.
    #[error("impairment {at}: reordering needs up_to_ps of at least 1")]
    NoReordering {
        /// Which impairment of the chain, from 0.
        at: usize,
    },
    /// Instants out of order, or spans of nothing.
    #[error(
        "impairment {at}: a schedule needs ascending instants, or spans of 1 ps to {} ps",
        SPAN_MAX_PS
    )]
    Schedule {
        /// Which impairment of the chain, from 0.
        at: usize,
    },
}

/// Twice this is still a number.
const SPAN_MAX_PS: u64 = u64::MAX / 4;

impl Impairment {
    /// A delay.
    pub fn delay(delay: Span) -> Self {
        Self::Delay {
            delay_ps: delay.as_ps(),
        }
    }

    /// Whether it can be built; `at` is its place for the error.
    pub fn check(&self, at: usize) -> Result<(), ImpairmentError> {
        match self {
            Self::Bandwidth { ps_per_byte: 0 } => Err(ImpairmentError::NoRate { at }),
            Self::Lose { run_frames: 0, .. } => Err(ImpairmentError::NoRun { at }),
            Self::Reorder { up_to_ps: 0, .. } => Err(ImpairmentError::NoReordering { at }),
            &Self::Reorder { per_million, .. }
            | &Self::Lose { per_million, .. }
            | &Self::Duplicate { per_million }
            | &Self::Damage { per_million }
                if per_million > 1_000_000 =>
            {
                Err(ImpairmentError::TooOften { at, per_million })
            }
            Self::ComeAndGo { schedule, .. } => {
                let spans = 1..=SPAN_MAX_PS;
                let is_sound = match schedule {
                    Schedule::At(instants) => instants.is_sorted_by(|one, next| one < next),
                    Schedule::Random { up_ps, down_ps } => {
                        spans.contains(up_ps) && spans.contains(down_ps)
                    }
                };
                is_sound
                    .then_some(())
                    .ok_or(ImpairmentError::Schedule { at })
            }
            _ => Ok(()),
        }
    }
}

//! What is measured of each peer, and the orders that measure it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Sizes at which the one-way time is measured.
pub(crate) const TIME_SIZES_BYTES: [usize; 8] =
    [8, 16, 64, 256, 1 << 10, 4 << 10, 64 << 10, 1 << 20];
/// Sizes at which the bandwidth is measured.
pub(crate) const BANDWIDTH_SIZES_BYTES: [usize; 5] =
    [4 << 10, 64 << 10, 1 << 20, 4 << 20, 64 << 20];
/// Sizes of loaned messages, and how many readers each has.
pub(crate) const LOAN_SIZES_BYTES: [usize; 3] = [64 << 10, 1 << 20, 4 << 20];
pub(crate) const LOAN_READERS: [usize; 2] = [1, 7];
/// Senders to one receiver.
pub(crate) const SENDERS: [usize; 4] = [1, 2, 4, 8];
/// As many as the largest of those.
pub(crate) const SENDERS_MAX: usize = SENDERS[SENDERS.len() - 1];
/// Sizes at which the rate is measured, and the one at which several senders are.
pub(crate) const RATE_SIZES_BYTES: [usize; 5] = [8, 16, 64, 256, 1 << 10];
pub(crate) const CROWD_SIZE_BYTES: usize = 16;

/// What is closer than this is not told apart.
const AHEAD_MIN: f64 = 1.01;

/// The load of an active message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Category {
    /// Arguments of 32 bits.
    Short,
    /// Data that the handler is shown.
    Medium,
    /// Data for a place that the sender names.
    Long,
}

/// A figure of Active Messages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct Active {
    pub(crate) category: Category,
    /// Arguments of a short message, bytes of any other.
    pub(crate) size: usize,
    /// Half of the time of a request and its reply, which is like it; otherwise requests that
    /// nobody replies to.
    pub(crate) is_round_trip: bool,
}

/// One figure.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(tag = "figure", rename_all = "snake_case")]
pub(crate) enum Figure {
    /// Half of a round trip, in nanoseconds. Less is better.
    OneWay { size_bytes: usize },
    /// Messages a second, from one sender to one receiver.
    Rate {
        /// Runs of before had one size.
        #[serde(default = "crowd_size_bytes")]
        size_bytes: usize,
    },
    /// Bytes a second, from buffers used again and again or from others each time.
    Bandwidth { size_bytes: usize, fresh: bool },
    /// 16-byte messages a second, from several senders to one receiver.
    Senders { senders: usize },
    /// Nanoseconds for each loaned message of a stream, to so many readers. Less is better.
    Loaned { size_bytes: usize, readers: usize },
    /// Of Active Messages: nanoseconds, or messages or bytes a second.
    Active(Active),
}

fn crowd_size_bytes() -> usize {
    CROWD_SIZE_BYTES
}

impl Figure {
    /// Those of one sender and one receiver.
    pub(crate) fn of_a_pair() -> Vec<Figure> {
        let times = TIME_SIZES_BYTES.map(|size_bytes| Figure::OneWay { size_bytes });
        let bandwidths = [false, true].into_iter().flat_map(|fresh| {
            BANDWIDTH_SIZES_BYTES.map(|size_bytes| Figure::Bandwidth { size_bytes, fresh })
        });
        times
            .into_iter()
            .chain(RATE_SIZES_BYTES.map(|size_bytes| Figure::Rate { size_bytes }))
            .chain(bandwidths)
            .collect()
    }

    /// Those of several senders.
    pub(crate) fn of_a_crowd() -> Vec<Figure> {
        SENDERS.map(|senders| Figure::Senders { senders }).to_vec()
    }

    /// Those of loaned messages.
    pub(crate) fn of_loans() -> Vec<Figure> {
        let of = |readers| {
            LOAN_SIZES_BYTES.map(|size_bytes| Figure::Loaned {
                size_bytes,
                readers,
            })
        };
        LOAN_READERS.into_iter().flat_map(of).collect()
    }

    /// Whether less is better.
    pub(crate) fn is_time(self) -> bool {
        self.is_round_trip() || matches!(self, Figure::Loaned { .. })
    }

    /// Whether it ends where it began: at the sender.
    pub(crate) fn is_round_trip(self) -> bool {
        match self {
            Figure::OneWay { .. } => true,
            Figure::Active(active) => active.is_round_trip,
            _ => false,
        }
    }

    /// True if it is bytes a second rather than messages.
    fn is_bandwidth(self) -> bool {
        match self {
            Figure::Bandwidth { .. } => true,
            Figure::Active(active) => active.category == Category::Long && !active.is_round_trip,
            _ => false,
        }
    }

    /// Bytes of a message.
    pub(crate) fn size_bytes(self) -> usize {
        match self {
            Figure::OneWay { size_bytes }
            | Figure::Rate { size_bytes }
            | Figure::Bandwidth { size_bytes, .. }
            | Figure::Loaned { size_bytes, .. } => size_bytes,
            Figure::Senders { .. } => CROWD_SIZE_BYTES,
            Figure::Active(active) => match active.category {
                Category::Short => active.size * size_of::<u32>(),
                Category::Medium | Category::Long => active.size,
            },
        }
    }

    /// Senders that take part.
    pub(crate) fn senders(self) -> usize {
        match self {
            Figure::Senders { senders } => senders,
            _ => 1,
        }
    }

    /// The line that orders it; each sender sends `count` messages.
    pub(crate) fn order(self, count: u64) -> String {
        let (word, others) = match self {
            Figure::Loaned { readers, .. } => ("loan", readers),
            _ if self.is_round_trip() => ("latency", 1),
            _ => ("stream", self.senders()),
        };
        let (size, how) = match self {
            Figure::Active(active) => match active.category {
                Category::Short => (active.size, "short"),
                Category::Medium => (active.size, "medium"),
                Category::Long => (active.size, "long"),
            },
            Figure::Bandwidth { fresh: true, .. } => (self.size_bytes(), "fresh"),
            _ => (self.size_bytes(), "reused"),
        };
        format!("{word} {size} {count} {others} {how}\n")
    }

    /// Messages of each sender before anything is known about its speed.
    pub(crate) fn first_count(self) -> u64 {
        let size_bytes = self.size_bytes().max(1) as u64;
        match self {
            _ if self.is_round_trip() => ((1 << 20) / size_bytes).clamp(4, 200),
            Figure::Active(_) => ((16 << 20) / size_bytes).clamp(4, 2_000),
            Figure::Rate { .. } | Figure::Senders { .. } | Figure::Loaned { .. } => 2_000,
            _ => ((4 << 20) / size_bytes).clamp(2, 200),
        }
    }

    /// How long a measurement lasts, where most last so long. A rate takes a while to settle: it is
    /// another one once the sender has run ahead of the receiver.
    pub(crate) fn lasts(self, most: Duration) -> Duration {
        match self {
            Figure::Senders { .. } => most * 3,
            Figure::Rate { size_bytes } if size_bytes <= CROWD_SIZE_BYTES => most * 3,
            _ => most,
        }
    }

    /// Messages that do not count, before `count` that do: a tenth, and of long ones as many as use
    /// all buffers once.
    pub(crate) fn warm_up_count(self, count: u64) -> u64 {
        (count / 10).max(self.first_count().min(4))
    }

    /// The figure, from `count` messages of each sender in that time.
    pub(crate) fn value(self, count: u64, elapsed_ns: f64) -> f64 {
        let messages = (count * self.senders() as u64) as f64;
        match self {
            _ if self.is_round_trip() => elapsed_ns / messages / 2.0,
            Figure::Loaned { .. } => elapsed_ns / messages,
            _ if self.is_bandwidth() => messages * self.size_bytes() as f64 / elapsed_ns * 1e9,
            _ => messages / elapsed_ns * 1e9,
        }
    }

    /// Whether `value` is better than `reference`, by more than one part in a hundred.
    pub(crate) fn is_ahead(self, value: f64, reference: f64) -> bool {
        if self.is_time() {
            value * AHEAD_MIN < reference
        } else {
            value > reference * AHEAD_MIN
        }
    }

    /// The better of several.
    pub(crate) fn best(self, values: &[f64]) -> f64 {
        let better = if self.is_time() { f64::min } else { f64::max };
        values.iter().copied().reduce(better).unwrap_or(f64::NAN)
    }

    /// An interval of the figure for people, without its unit.
    pub(crate) fn show_interval(self, [least, most]: [f64; 2]) -> String {
        format!("{}–{}", self.show(least), self.show(most))
    }

    /// The figure for people, without its unit: microseconds, millions a second, GB/s.
    pub(crate) fn show(self, value: f64) -> String {
        let scaled = match self {
            _ if self.is_time() => value / 1e3,
            _ if self.is_bandwidth() => value / 1e9,
            _ => value / 1e6,
        };
        match scaled {
            x if x >= 100.0 => format!("{x:.0}"),
            x if x >= 10.0 => format!("{x:.1}"),
            x if x >= 1.0 => format!("{x:.2}"),
            x => format!("{x:.3}"),
        }
    }
}

/// A size, for people.
pub(crate) fn size_name(bytes: usize) -> String {
    match bytes {
        b if b >= 1 << 20 => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

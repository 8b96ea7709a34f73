//! The bench: settings, each a world of its own, and the measurements that rows are judged by.

use hamlyn_am::NodeOptions;

use super::cluster::Cluster;
use super::exchange::{Exchange, Exchanged, Permutation};
use super::load::{Load, Outcome};
use super::log_p::{LogP, log_p};
use crate::machine::{Machine, PointName};
use crate::reproduce::measure::Failure;
use crate::reproduce::parallel::side_by_side;

/// Numbers of clients of one endpoint, as far as the paper goes (`V 5.3`).
pub const CLIENTS: [usize; 9] = [1, 2, 4, 8, 16, 32, 48, 64, 92];
/// Numbers of clients that have an endpoint each: as many as there are frames, more, and twelve
/// times as many (`V 5.4`).
pub const VIRTUAL_NETWORKS: [usize; 13] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 14, 21, 42, 84];
/// Entries of a queue in which all clients have room.
pub const LONG_QUEUE: u32 = 256;
/// Frames of a board.
pub const FRAMES: usize = 7;
/// The last number of either with `--quick`.
const QUICK_CLIENTS: usize = 16;
/// Nodes of Table 1.
const NODES: usize = 92;
/// Lengths of Figure 6, in bytes.
pub const LENGTHS: [usize; 10] = [16, 64, 128, 256, 512, 1024, 2048, 4096, 6144, 8192];
/// Microseconds that it may take to load an endpoint; the machine's file has one of them.
pub const LOADING_US: [u64; 4] = [0, 100, 500, 2_000];
/// The work of the board that checks a message's key.
pub const PROTECTION: &[PointName] = &[PointName::PortKeyChecked];
/// Its work to deliver reliably.
pub const RELIABILITY: &[PointName] = &[PointName::MessageOut, PointName::HeaderRead];
/// Both.
pub const BOTH: &[PointName] = &[
    PointName::PortKeyChecked,
    PointName::MessageOut,
    PointName::HeaderRead,
];

/// The way of data between host memory and a board (`V 5.2`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dma {
    /// By transactions that the bridge keeps consistent.
    Consistent,
    /// By the bridge's stream buffer, which is flushed.
    Streaming,
}

/// A cluster that differs from the paper's.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Variant {
    /// Points that take the boards no time.
    pub without: &'static [PointName],
    /// Options of the layer.
    pub options: NodeOptions,
    /// Microseconds to load an endpoint, if not the machine's.
    pub loading_us: Option<u64>,
    /// The way that data take, if there are any.
    pub dma: Dma,
}

impl Variant {
    /// The paper's.
    pub fn paper() -> Self {
        Self {
            without: &[],
            options: NodeOptions::paper(),
            loading_us: None,
            dma: Dma::Streaming,
        }
    }

    /// The same where those points take no time.
    pub fn without(points: &'static [PointName]) -> Self {
        Self {
            without: points,
            ..Self::paper()
        }
    }

    /// The same with so many credits.
    pub fn credits(credits: u16) -> Self {
        let mut variant = Self::paper();
        variant.options.credits = credits;
        variant
    }

    /// The same with queues of so many short messages.
    pub fn queue(entries: u32) -> Self {
        let mut variant = Self::paper();
        variant.options.queue_bytes = entries * 64;
        // Half of the queue holds the longest message.
        variant.options.medium_bytes_max = 8;
        variant
    }

    /// The same whose visits of an endpoint take so many messages at most.
    pub fn visit(messages: u16) -> Self {
        let mut variant = Self::paper();
        variant.options.visit = messages;
        variant
    }

    /// The same with so many frames.
    pub fn frames(frames: u16) -> Self {
        let mut variant = Self::paper();
        variant.options.frames = frames;
        variant
    }

    /// The same where it takes so long to load an endpoint.
    pub fn loading(us: u64) -> Self {
        Self {
            loading_us: Some(us),
            ..Self::paper()
        }
    }

    /// The same with medium messages of up to 8 KB (`V 4.2`), in queues of 16 of them.
    pub fn bulk(dma: Dma) -> Self {
        let mut variant = Self {
            dma,
            ..Self::paper()
        };
        variant.options.medium_bytes_max = 8_192;
        variant.options.queue_bytes = 16 * (8_192 + 128);
        variant
    }

    fn cluster(&self, machine: &Machine) -> Result<Cluster, Failure> {
        let machine = match self.loading_us {
            Some(us) => machine.with("at.processor.port_resumed.0", |_| us as f64)?,
            None => machine.clone(),
        };
        let machine = machine.besides(match self.dma {
            Dma::Consistent => "consistent",
            Dma::Streaming => "streaming",
        });
        let points = self.without.iter();
        let machine = points.fold(machine, |machine, &point| {
            machine.without("interface", point)
        });
        Ok(Cluster {
            machine,
            options: self.options,
            are_neighbours: false,
        })
    }
}

/// The subject of a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// Figure 5.
    LogP,
    /// Clients of one server.
    Load(Load),
    /// Table 1.
    Exchange(Exchange),
}

/// A world to be measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setting {
    /// Its cluster.
    pub variant: Variant,
    /// Its subject.
    pub subject: Subject,
}

/// The outcome of a setting.
#[derive(Clone, PartialEq, Debug)]
pub enum Measured {
    /// Of [`Subject::LogP`].
    LogP(LogP),
    /// Of [`Subject::Load`].
    Load(Outcome),
    /// Of [`Subject::Exchange`].
    Exchange(Exchanged),
}

impl Setting {
    fn load(variant: Variant, load: Load) -> Self {
        Self {
            variant,
            subject: Subject::Load(load),
        }
    }

    /// Measures it on that machine.
    pub fn measure(&self, machine: &Machine) -> Result<Measured, Failure> {
        let cluster = self.variant.cluster(machine)?;
        Ok(match self.subject {
            Subject::LogP => Measured::LogP(log_p(&cluster)?),
            Subject::Load(load) => Measured::Load(load.measure(&cluster)?),
            Subject::Exchange(exchange) => Measured::Exchange(exchange.measure(&cluster)?),
        })
    }
}

/// Loads of the paper's figures.
pub mod loads {
    use super::super::load::Load;
    use crate::time::Span;

    /// Figure 9: one request of each client under way.
    pub fn round_trips(clients: usize) -> Load {
        Load::one_at_a_time(clients)
    }

    /// Figure 7: as many as their credits allow.
    pub fn rates(clients: usize) -> Load {
        Load {
            under_way: u32::MAX,
            ..Load::one_at_a_time(clients)
        }
    }

    /// Figure 8: the same with 1 KB of data.
    pub fn bandwidths(clients: usize) -> Load {
        Load {
            data_bytes: 1_024,
            ..rates(clients)
        }
    }

    /// Figures 10 and 11: an endpoint for each client.
    pub fn virtual_networks(clients: usize) -> Load {
        Load {
            has_own_endpoints: true,
            measured: Span::from_us(200_000),
            ..rates(clients)
        }
    }

    /// Figure 6: requests of that length from one client.
    pub fn of_length(data_bytes: usize) -> Load {
        Load {
            data_bytes,
            ..rates(1)
        }
    }
}

/// Numbers of nodes and of clients, with `--quick` or without.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extent {
    /// Fewer of them.
    pub is_quick: bool,
}

impl Extent {
    fn of(self, numbers: &[usize]) -> Vec<usize> {
        let most = if self.is_quick { QUICK_CLIENTS } else { NODES };
        let numbers = numbers.iter().copied();
        numbers.filter(|&number| number <= most).collect()
    }

    /// A permutation of Table 1: 4 KB, or short messages.
    pub fn exchange(self, permutation: Permutation, data_bytes: usize) -> Exchange {
        Exchange {
            nodes: if self.is_quick { QUICK_CLIENTS } else { NODES },
            permutation,
            data_bytes,
        }
    }

    /// All settings, the longest first.
    pub fn settings(self) -> Vec<Setting> {
        let paper = Variant::paper();
        let mut settings = Vec::new();
        for permutation in [
            Permutation::Cshift,
            Permutation::Neighbor,
            Permutation::Bisection,
        ] {
            settings.extend([0, 4_096].map(|data_bytes| Setting {
                variant: Variant::bulk(Dma::Streaming),
                subject: Subject::Exchange(self.exchange(permutation, data_bytes)),
            }));
        }
        for clients in self.of(&VIRTUAL_NETWORKS).into_iter().rev() {
            let load = loads::virtual_networks(clients);
            settings.push(Setting::load(paper, load));
            settings.push(Setting::load(Variant::visit(8), load));
            if clients > FRAMES {
                let loading = LOADING_US.map(Variant::loading);
                settings.extend(loading.map(|variant| Setting::load(variant, load)));
            }
        }
        for clients in self.of(&CLIENTS).into_iter().rev() {
            settings.push(Setting::load(paper, loads::rates(clients)));
            settings.push(Setting::load(paper, loads::round_trips(clients)));
            let long = Variant::queue(LONG_QUEUE);
            settings.push(Setting::load(long, loads::round_trips(clients)));
            let bulk = Variant::bulk(Dma::Streaming);
            settings.push(Setting::load(bulk, loads::bandwidths(clients)));
        }
        for length in LENGTHS {
            let bulk = [Dma::Consistent, Dma::Streaming].map(Variant::bulk);
            settings.extend(bulk.map(|variant| Setting::load(variant, loads::of_length(length))));
        }
        for points in [&[], PROTECTION, RELIABILITY, BOTH] {
            let variant = Variant::without(points);
            if !points.is_empty() {
                let trips = [8, 16].map(loads::round_trips);
                settings.extend(trips.map(|load| Setting::load(variant, load)));
            }
        }
        let changed = [&[], PROTECTION, RELIABILITY, BOTH].map(Variant::without);
        let credits = [1, 2, 8].map(Variant::credits);
        let logs = changed.into_iter().chain(credits);
        settings.extend(logs.map(|variant| Setting {
            variant,
            subject: Subject::LogP,
        }));
        settings
    }
}

/// Everything that was measured.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Bench {
    /// The part that was measured.
    pub extent: Extent,
    /// Settings with their outcomes.
    pub measured: Vec<(Setting, Measured)>,
}

impl Bench {
    /// Measures those settings, as many at a time as there are processors. `done` is called after
    /// each.
    pub fn measure(
        machine: &Machine,
        extent: Extent,
        settings: &[Setting],
        done: impl Fn() + Sync,
    ) -> Result<Self, Failure> {
        let measured = side_by_side(settings, |setting| {
            let measured = setting.measure(machine);
            done();
            Ok((*setting, measured?))
        });
        Ok(Self {
            extent,
            measured: measured?,
        })
    }

    fn found(&self, wanted: &Setting) -> Result<&Measured, Failure> {
        let mut all = self.measured.iter();
        let found = all.find(|(setting, _)| setting == wanted);
        found
            .map(|(_, measured)| measured)
            .ok_or_else(|| Failure::World(format!("{wanted:?} was not measured")))
    }

    /// LogP parameters of a variant.
    pub fn log_p(&self, variant: Variant) -> Result<LogP, Failure> {
        let subject = Subject::LogP;
        match self.found(&Setting { variant, subject })? {
            Measured::LogP(log_p) => Ok(*log_p),
            other => Err(Failure::World(format!("LogP came out as {other:?}"))),
        }
    }

    /// The outcome of a load.
    pub fn load(&self, variant: Variant, load: Load) -> Result<&Outcome, Failure> {
        let subject = Subject::Load(load);
        match self.found(&Setting { variant, subject })? {
            Measured::Load(outcome) => Ok(outcome),
            other => Err(Failure::World(format!("a load came out as {other:?}"))),
        }
    }

    /// The outcome of a permutation of Table 1.
    pub fn exchange(
        &self,
        permutation: Permutation,
        data_bytes: usize,
    ) -> Result<Exchanged, Failure> {
        let exchange = self.extent.exchange(permutation, data_bytes);
        let variant = Variant::bulk(Dma::Streaming);
        let subject = Subject::Exchange(exchange);
        match self.found(&Setting { variant, subject })? {
            Measured::Exchange(exchanged) => Ok(*exchanged),
            other => Err(Failure::World(format!("an exchange came out as {other:?}"))),
        }
    }

    /// Outcomes of the loads that were measured among those numbers of clients.
    pub fn loads(
        &self,
        variant: Variant,
        clients: &[usize],
        load: fn(usize) -> Load,
    ) -> Vec<(usize, &Outcome)> {
        let clients = clients.iter();
        let outcomes = clients.map(|&count| (count, self.load(variant, load(count))));
        outcomes
            .filter_map(|(count, outcome)| Some((count, outcome.ok()?)))
            .collect()
    }

    /// Microseconds that each client adds to a round trip, from one number of them to another.
    pub fn slope(&self, variant: Variant, (few, many): (usize, usize)) -> Result<f64, Failure> {
        let trip = |clients| {
            let outcome = self.load(variant, loads::round_trips(clients));
            outcome.map(Outcome::round_trip_us)
        };
        let (of_few, of_many) = (trip(few)?, trip(many)?);
        Ok((of_many - of_few) / (many - few) as f64)
    }
}

//! The bench: settings, each a world of its own, and the measurements that rows are judged by.

use hamlyn_am::NodeOptions;

use super::cluster::Cluster;
use super::load::{Load, Outcome};
use super::log_p::{LogP, log_p};
use crate::machine::{Machine, PointName};
use crate::reproduce::measure::Failure;
use crate::time::Span;

/// Number of clients, as far as the paper goes (`V 5.3`).
pub const CLIENTS: [usize; 9] = [1, 2, 4, 8, 16, 32, 48, 64, 92];
/// The last of them with `--quick`.
const QUICK_CLIENTS: usize = 16;
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

/// A cluster that differs from the paper's.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Variant {
    /// Points that take the boards no time.
    pub without: &'static [PointName],
    /// Options of the layer.
    pub options: NodeOptions,
    /// Time to load an endpoint, if it is not the machine's.
    pub loading: Option<Span>,
}

impl Variant {
    /// The paper's.
    pub fn paper() -> Self {
        Self {
            without: &[],
            options: NodeOptions::paper(),
            loading: None,
        }
    }

    /// The same where those points take no time.
    pub fn without(points: &'static [PointName]) -> Self {
        Self {
            without: points,
            ..Self::paper()
        }
    }

    fn cluster(&self, machine: &Machine) -> Result<Cluster, Failure> {
        let points = self.without.iter();
        let mut machine = points.fold(machine.clone(), |machine, &point| {
            machine.without("interface", point)
        });
        if let Some(loading) = self.loading {
            let us = loading.as_us_f64();
            machine = machine.with("at.processor.port_resumed.0", |_| us)?;
        }
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
}

impl Setting {
    /// Measures it on that machine.
    pub fn measure(&self, machine: &Machine) -> Result<Measured, Failure> {
        let cluster = self.variant.cluster(machine)?;
        Ok(match self.subject {
            Subject::LogP => Measured::LogP(log_p(&cluster)?),
            Subject::Load(load) => Measured::Load(load.measure(&cluster)?),
        })
    }
}

/// Loads of the paper's figures.
pub mod loads {
    use super::super::load::Load;

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
}

/// All settings, the longest first.
pub fn settings(is_quick: bool) -> Vec<Setting> {
    let paper = Variant::paper();
    let load = |variant, load| Setting {
        variant,
        subject: Subject::Load(load),
    };
    let mut settings = Vec::new();
    for &clients in CLIENTS.iter().rev() {
        if is_quick && clients > QUICK_CLIENTS {
            continue;
        }
        settings.push(load(paper, loads::rates(clients)));
        settings.push(load(paper, loads::round_trips(clients)));
    }
    for points in [&[], PROTECTION, RELIABILITY, BOTH] {
        let variant = Variant::without(points);
        settings.push(Setting {
            variant,
            subject: Subject::LogP,
        });
        if !points.is_empty() {
            settings.extend([8, 16].map(|clients| load(variant, loads::round_trips(clients))));
        }
    }
    settings
}

/// Everything that was measured.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Bench {
    /// Settings with their outcomes.
    pub measured: Vec<(Setting, Measured)>,
}

impl Bench {
    /// Measures all settings, one after the other.
    pub fn measure(machine: &Machine, is_quick: bool) -> Result<Self, Failure> {
        let settings = settings(is_quick).into_iter();
        let measured = settings.map(|setting| Ok((setting, setting.measure(machine)?)));
        Ok(Self {
            measured: measured.collect::<Result<_, Failure>>()?,
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

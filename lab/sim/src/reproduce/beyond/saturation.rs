//! How much the paper's crossbars take with many hosts, in order on one path and adaptively on
//! many.
//!
//! Two ways of keeping order are measured, as what adaptive routing gains depends on what it is
//! compared with: ways drawn once for each pair of hosts ([`Routing::Pair`]), which is what a
//! network that knows nothing of its traffic does, and ways chosen by the receiver's number
//! ([`Routing::Destination`]), which in a tree keeps the ways down apart from each other.

use std::sync::OnceLock;

use serde::Serialize;

use crate::network::saturation::{Experiment, ExperimentError, Point, Traffic, paper_fabric};
use crate::network::{Event, Fabric, Frame, HostId, Network, Routing};
use crate::random::Random;
use crate::reproduce::report::{Curve, Plot};
use crate::time::{Span, Time};

/// Bytes of a frame: the paper's small packet.
const FRAME_BYTES: u32 = 256;
/// Decides frames and ways.
const SEED: u64 = 1996;
/// In order by pair, in order by receiver, and adaptive.
pub const ROUTINGS: [Routing; 3] = [Routing::Pair, Routing::Destination, Routing::Adaptive];
/// Who sends to whom.
pub const TRAFFIC: [Traffic; 5] = [
    Traffic::Uniform,
    Traffic::HotSpot { per_mille: 50 },
    Traffic::AllToAll,
    Traffic::Permutation,
    Traffic::BitReversal,
];
/// Hosts of fabrics that have many.
const MANY: u32 = 1_024;

/// How much is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// 8, 64 and 1,024 hosts.
    Full,
    /// 8 and 64 hosts, at fewer loads, for a shorter time.
    Quick,
}

/// One sweep.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Setting {
    /// How many hosts.
    pub hosts: u32,
    /// Who sends to whom.
    pub traffic: Traffic,
    /// Who chooses the way.
    pub routing: Routing,
    #[serde(skip)]
    is_quick: bool,
}

/// What a fabric took.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sweep {
    /// Of what.
    pub setting: Setting,
    /// What no network can exceed, in thousandths of what the hosts' cables carry: the hottest
    /// receiver's cable.
    pub ceiling_per_mille: u32,
    /// Load by load.
    pub points: Vec<Point>,
}

/// What adaptive routing gains.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Gain {
    /// How many hosts.
    pub hosts: u32,
    /// Who sends to whom.
    pub traffic: Traffic,
    /// The most that was taken in order, ways drawn for each pair: thousandths of what the hosts'
    /// cables carry.
    pub by_pair_per_mille: u32,
    /// The same, ways chosen by receiver.
    pub by_receiver_per_mille: u32,
    /// The same with adaptive routing.
    pub adaptive_per_mille: u32,
    /// Adaptive against in order by pair.
    pub over_pair: f64,
    /// Adaptive against in order by receiver.
    pub over_receiver: f64,
    /// Of a million frames, so many came late with adaptive routing at the highest load.
    pub reordered_per_million: u32,
}

/// What adaptive routing gains with 64 hosts and that traffic, one of [`TRAFFIC`]. No parameter of
/// the machine has a part in it, so it is measured once in a process.
pub fn of_64_hosts(traffic: Traffic) -> Result<Gain, ExperimentError> {
    static GAINS: OnceLock<Result<Vec<Gain>, ExperimentError>> = OnceLock::new();
    let measure = || {
        let all = settings(Extent::Full);
        let sweeps: Result<Vec<Sweep>, _> = all
            .iter()
            .filter(|setting| setting.hosts == 64)
            .map(Setting::measure)
            .collect();
        Ok(gains(&sweeps?))
    };
    let gains = GAINS.get_or_init(measure).as_ref().map_err(Clone::clone)?;
    let found = gains.iter().find(|gain| gain.traffic == traffic);
    found.copied().ok_or(ExperimentError::Nothing)
}

/// Of a thousand frames, one of each host to each other of 64, so many arrive although 8 cables
/// between switches are down.
pub fn arriving_per_mille(routing: Routing) -> Result<u32, ExperimentError> {
    let topology = paper_fabric(64)?;
    let hosts = topology.hosts.len() as u32;
    let cables = topology.cables.len();
    let mut fabric = Fabric::new(&topology, routing, &mut Random::new(SEED))?;
    // The first cables are those of the hosts, and without its own a host has no way.
    for cable in (hosts as usize..cables).step_by(16) {
        fabric.set_cable(cable, false);
    }
    let (mut now, mut sent, mut came) = (Time::ZERO, 0, 0);
    for from in 0..hosts {
        for to in (0..hosts).filter(|&to| to != from) {
            let (from, to) = (HostId(from), HostId(to));
            let frame = Frame::new(sent, from, to, FRAME_BYTES, ());
            fabric
                .send(now, frame)
                .map_err(|(_, refusal)| ExperimentError::Refused { from, to, refusal })?;
            sent += 1;
            while let Some(next) = Network::<()>::next(&fabric) {
                now = next;
                fabric.advance(now, &mut |event| {
                    came += u64::from(matches!(event, Event::Delivered { .. }));
                });
            }
        }
    }
    Ok((came * 1_000 / sent.max(1)) as u32)
}

/// All sweeps, the longest first.
pub fn settings(extent: Extent) -> Vec<Setting> {
    let is_quick = extent == Extent::Quick;
    let mut all = Vec::new();
    for hosts in [MANY, 64, 8] {
        if is_quick && hosts == MANY {
            continue;
        }
        for traffic in TRAFFIC {
            for routing in ROUTINGS {
                all.push(Setting {
                    hosts,
                    traffic,
                    routing,
                    is_quick,
                });
            }
        }
    }
    all
}

impl Setting {
    /// Measures it: deterministic, the same whatever else runs.
    pub fn measure(&self) -> Result<Sweep, ExperimentError> {
        let ceiling_per_mille = self.ceiling_per_mille();
        let is_hot = matches!(self.traffic, Traffic::HotSpot { .. });
        let (warm_up_us, measured_us) = match (self.is_quick, self.hosts) {
            // Little is sent below a low ceiling.
            (true, _) if is_hot => (100, 600),
            (true, _) => (50, 150),
            (false, _) if is_hot => (200, 1_000),
            (false, MANY) => (100, 300),
            (false, _) => (200, 1_000),
        };
        let experiment = Experiment {
            topology: paper_fabric(self.hosts)?,
            routing: self.routing,
            traffic: self.traffic,
            frame_bytes: FRAME_BYTES,
            warm_up: Span::from_us(warm_up_us),
            measured: Span::from_us(measured_us),
            seed: SEED,
        };
        // In percent of the ceiling; it is not below 100 in the end, so that the fabric is full.
        let loads_percent: &[u32] = match (self.is_quick, self.hosts) {
            _ if is_hot => &[50, 80, 100, 120],
            (true, _) => &[40, 100],
            (false, MANY) => &[20, 40, 60, 100],
            (false, _) => &[20, 40, 50, 60, 80, 100],
        };
        let loads: Vec<u32> = loads_percent
            .iter()
            .map(|percent| (percent * ceiling_per_mille / 100).max(1))
            .collect();
        Ok(Sweep {
            setting: *self,
            ceiling_per_mille,
            points: experiment.sweep(&loads)?,
        })
    }

    /// With a hot spot its cable is what limits all: of each host's frames it is sent its share and
    /// a part of the rest.
    fn ceiling_per_mille(&self) -> u32 {
        match self.traffic {
            Traffic::HotSpot { per_mille } => {
                1_000_000 / ((self.hosts - 1) * per_mille + (1_000 - per_mille))
            }
            _ => 1_000,
        }
    }

    /// Its place in the report.
    pub(super) fn place(&self) -> (u32, Option<usize>, Option<usize>) {
        let traffic = TRAFFIC.iter().position(|one| *one == self.traffic);
        let routing = ROUTINGS.iter().position(|one| *one == self.routing);
        (self.hosts, traffic, routing)
    }
}

impl Sweep {
    /// The most that was taken at any load, in thousandths of what the hosts' cables carry.
    pub fn most_per_mille(&self) -> u32 {
        let taken = self.points.iter().map(|point| point.accepted_per_mille);
        taken.max().unwrap_or(0)
    }
}

/// The names of traffic for people.
pub fn name_of_traffic(traffic: Traffic) -> &'static str {
    match traffic {
        Traffic::Uniform => "random",
        Traffic::HotSpot { .. } => "hot spot",
        Traffic::AllToAll => "all to all",
        Traffic::Permutation => "fixed pairs",
        Traffic::BitReversal => "bit reversal",
    }
}

/// The names of routings for people.
pub fn name_of_routing(routing: Routing) -> &'static str {
    match routing {
        Routing::Pair => "in order, by pair",
        Routing::Flow => "in order, by flow",
        Routing::Destination => "in order, by receiver",
        Routing::Spray => "any way",
        Routing::Adaptive => "adaptive",
    }
}

/// `one / other` in hundredths, so that it is the same in print as in numbers.
pub(crate) fn ratio(one: u32, other: u32) -> f64 {
    (f64::from(one) * 100.0 / f64::from(other.max(1))).round() / 100.0
}

/// What adaptive routing gains, for each of the settings that were measured with all three
/// routings.
pub(super) fn gains(sweeps: &[Sweep]) -> Vec<Gain> {
    let find = |setting: Setting, routing| {
        let wanted = Setting { routing, ..setting };
        sweeps.iter().find(|sweep| sweep.setting == wanted)
    };
    let of = |adaptive: &Sweep| {
        let setting = adaptive.setting;
        let by_pair = find(setting, Routing::Pair)?.most_per_mille();
        let by_receiver = find(setting, Routing::Destination)?.most_per_mille();
        let most = adaptive.most_per_mille();
        Some(Gain {
            hosts: setting.hosts,
            traffic: setting.traffic,
            by_pair_per_mille: by_pair,
            by_receiver_per_mille: by_receiver,
            adaptive_per_mille: most,
            over_pair: ratio(most, by_pair),
            over_receiver: ratio(most, by_receiver),
            reordered_per_million: adaptive.points.last()?.reordered_per_million,
        })
    };
    sweeps
        .iter()
        .filter(|sweep| sweep.setting.routing == Routing::Adaptive)
        .filter_map(of)
        .collect()
}

/// For each traffic and number of hosts what was taken, and how long it took to arrive, by what was
/// offered.
pub(super) fn plots(sweeps: &[Sweep]) -> Vec<Plot> {
    let mut plots = Vec::new();
    for same in sweeps.chunk_by(|one, next| {
        (one.setting.hosts, one.setting.traffic) == (next.setting.hosts, next.setting.traffic)
    }) {
        let Some(Setting { hosts, traffic, .. }) = same.first().map(|sweep| sweep.setting) else {
            continue;
        };
        let traffic = name_of_traffic(traffic);
        let curves = |of: fn(&Point) -> f64| {
            let curve = |sweep: &Sweep| Curve {
                label: name_of_routing(sweep.setting.routing).to_owned(),
                points: sweep
                    .points
                    .iter()
                    .map(|point| (percent(point.offered_per_mille), of(point)))
                    .collect(),
            };
            same.iter().map(curve).collect()
        };
        let file = traffic.replace(' ', "-");
        plots.push(Plot {
            name: format!("saturation-{hosts}-{file}"),
            title: format!("{hosts} hosts, {traffic}: what the network takes"),
            across: "offered, % of what a host's cable carries",
            unit: "taken, %",
            curves: curves(|point| percent(point.accepted_per_mille)),
            anchors: Vec::new(),
        });
        plots.push(Plot {
            name: format!("latency-{hosts}-{file}"),
            title: format!("{hosts} hosts, {traffic}: mean latency"),
            across: "offered, % of what a host's cable carries",
            unit: "µs",
            curves: curves(|point| point.mean_latency_ns as f64 / 1e3),
            anchors: Vec::new(),
        });
    }
    plots
}

fn percent(per_mille: u32) -> f64 {
    f64::from(per_mille) / 10.0
}

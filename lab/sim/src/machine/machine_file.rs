//! A machine, read from its file: what is occupied, for how long, and at which points of an
//! interface's work.
//!
//! Nothing of a machine is in the program: whoever measures one changes a number of its file
//! ([`Machine::with`]), and a test changes each of them and expects another figure. It refuses a
//! file that has a section or a point that is not known, or a number without a provenance
//! ([`super::number`]).

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use hamlyn_engine::point::Point;
use serde::Deserialize;
use toml::{Table, Value};

use super::component::Component;
use super::number::{self, Count, Number, Time};
use super::step::{Direction, PointName, RawStep, Step};
use crate::network::topology::{Subclusters, Topology, TopologyError};
use crate::time::Span;
use crate::world::Schedule;

/// What is wrong with a machine's file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MachineError {
    /// It is no TOML, or not what a machine's file has.
    #[error("the machine's file cannot be read: {0}")]
    Malformed(String),
    /// A step occupies something that the file does not list.
    #[error("a step occupies {name:?}: list it as a [[resource]]")]
    NoSuchResource {
        /// What it names.
        name: String,
    },
    /// Its switches cannot be connected so.
    #[error("the machine's network: {0}")]
    Network(#[from] TopologyError),
    /// There is no number at that path.
    #[error("the machine has no number at {path:?}")]
    NoSuchNumber {
        /// The path.
        path: String,
    },
}

/// Something that serves one at a time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResourceEntry {
    name: String,
    row: Component,
}

/// A direction of the bus.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Way {
    on: String,
    overhead: Count,
    #[serde(default)]
    gap: Count,
}

/// A way between host memory and the board that moves words in cycles, in transactions that have
/// overhead.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bus {
    cycle: Time,
    word: Count,
    pub(crate) transaction_max: Count,
    start: Time,
    /// Whether transactions have any number of words; otherwise it is a power of two.
    #[serde(default)]
    has_any_length: bool,
    r#in: Way,
    out: Way,
}

impl Bus {
    fn way(&self, direction: Direction) -> &Way {
        match direction {
            Direction::In => &self.r#in,
            Direction::Out => &self.out,
        }
    }

    /// The transactions that so many bytes take, as (how many, of how many bytes): whole words,
    /// largest first.
    pub(crate) fn transactions(&self, length_bytes: u64) -> impl Iterator<Item = (u64, u64)> {
        let most = self.transaction_max.0.max(1);
        let whole = length_bytes.next_multiple_of(self.word.0.max(1));
        let rest = whole % most;
        let in_one = self.has_any_length;
        let parts = (0..most.ilog2())
            .rev()
            .map(|bit| 1_u64 << bit)
            .filter(move |size| !in_one && rest & size != 0);
        std::iter::once((whole / most, most))
            .chain(parts.map(|size| (1, size)))
            .chain(in_one.then_some((1, rest)))
            .filter(|&(count, size)| count != 0 && size != 0)
    }

    /// How long so many bytes occupy it, starting the DMA unit included. One of no bytes is
    /// started, too.
    pub(crate) fn span(&self, direction: Direction, length_bytes: u64) -> Span {
        let way = self.way(direction);
        let besides = way.overhead.0 + way.gap.0;
        let cycles: u64 = self
            .transactions(length_bytes)
            .map(|(count, size)| count * (size / self.word.0.max(1) + besides))
            .sum();
        self.start.0 + self.cycle.0 * cycles
    }

    /// MB/s of transactions of the largest size, one after the other without a gap.
    pub(crate) fn limit_mb_per_s(&self, direction: Direction) -> f64 {
        let size = self.transaction_max.0;
        let cycles = size / self.word.0.max(1) + self.way(direction).overhead.0;
        size as f64 / (self.cycle.0 * cycles).as_us_f64()
    }
}

/// Between two boards. No time at all, where a file says nothing of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LinkSection {
    /// Starting a network DMA unit, on each side.
    pub(crate) start: Time,
    pub(crate) byte: Time,
    pub(crate) header: Count,
    /// From port to port of the switch.
    pub(crate) switch: Time,
}

/// The memory of a board.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BoardSection {
    /// Packets on their way out; the one after is not fetched before there is room.
    pub(crate) outgoing_max: Count,
    /// Bytes of packets that wait; when there are more the wire stands still.
    pub(crate) arrivals_max: Count,
}

/// Stores of the processor to the board.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreSection {
    pub(crate) span: Time,
    bytes: Count,
    request: Count,
    piece: Count,
}

/// Host software of one way to send and receive.
#[derive(Clone, Copy, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Software {
    #[serde(default)]
    send: Time,
    #[serde(default)]
    receive: Time,
    #[serde(default)]
    afterwards: Time,
}

impl Software {
    pub(crate) fn send(&self) -> Span {
        self.send.0
    }

    pub(crate) fn receive(&self) -> Span {
        self.receive.0
    }

    /// Work of the receiver that delays nobody: the message is at hand already.
    pub(crate) fn afterwards(&self) -> Span {
        self.afterwards.0
    }
}

/// A receiver that sleeps.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wake {
    interrupt: Time,
    #[serde(default)]
    context_switch: Time,
}

/// The switches between hosts, where they are more than a wire.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkSection {
    hosts: Count,
    switches: Count,
    ports: Count,
    subclusters: Count,
    joining_switches: Count,
    joining_cables: Count,
}

impl NetworkSection {
    fn topology(&self, link: &LinkSection) -> Result<Topology, TopologyError> {
        let count = |count: Count| u16::try_from(count.0).unwrap_or(u16::MAX);
        let shape = Subclusters {
            hosts: count(self.hosts),
            switches: count(self.switches),
            ports: count(self.ports),
            clusters: count(self.subclusters),
            joining: count(self.joining_switches),
            joining_cables: count(self.joining_cables),
        };
        let topology = Topology::subclusters(&shape)?.rates(link.byte.0.as_ps(), link.switch.0);
        topology.check()?;
        Ok(topology)
    }
}

/// Jobs that share processors by turns. No file but one of such a machine has it.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScheduleSection {
    slice: Time,
    jobs: Count,
}

/// The kernel of a node that has one input queue for all of its processes: what it does with
/// messages that their program cannot take. A machine without one has a queue for each link.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KernelSection {
    /// Inserting a message into the buffer of a process.
    pub(crate) insert: Time,
    /// Taking a page for it.
    pub(crate) page: Time,
    pub(crate) page_bytes: Count,
    /// A message in a buffer takes a multiple of so many bytes.
    pub(crate) line_bytes: Count,
    /// Bytes of a message besides its data.
    pub(crate) header_bytes: Count,
}

/// The computation of programs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WorkSection {
    /// By how much an operation takes more or less than on average.
    spread: Count,
    /// An operation of each program.
    operation: BTreeMap<String, Time>,
}

/// Latencies during which nothing is occupied: others use the same way meanwhile.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Crossing {
    store: Time,
    write: Time,
    read: Time,
    wire: Time,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sections {
    name: String,
    title: String,
    paper: String,
    #[serde(default)]
    resource: Vec<ResourceEntry>,
    bus: Option<Bus>,
    #[serde(default)]
    link: LinkSection,
    #[serde(default)]
    board: BoardSection,
    store: Option<StoreSection>,
    #[serde(default)]
    software: BTreeMap<String, Software>,
    #[serde(default)]
    wake: Wake,
    #[serde(default)]
    crossing: Crossing,
    #[serde(default)]
    schedule: ScheduleSection,
    network: Option<NetworkSection>,
    kernel: Option<KernelSection>,
    #[serde(default)]
    work: WorkSection,
    at: Scripts,
}

/// By who does it and at which point: the steps.
type Scripts = BTreeMap<String, BTreeMap<PointName, Vec<RawStep>>>;

/// A machine. Clones share what was read.
#[derive(Clone, Debug)]
pub struct Machine {
    file: Arc<Value>,
    sections: Arc<Sections>,
    topology: Option<Arc<Topology>>,
    scripts: Arc<Scripts>,
}

impl Machine {
    /// Reads a machine's file.
    pub fn parse(text: &str) -> Result<Self, MachineError> {
        let table: Table = text
            .parse()
            .map_err(|error: toml::de::Error| MachineError::Malformed(error.to_string()))?;
        Self::of(Value::Table(table))
    }

    fn of(file: Value) -> Result<Self, MachineError> {
        let sections: Sections = file
            .clone()
            .try_into()
            .map_err(|error: toml::de::Error| MachineError::Malformed(error.to_string()))?;
        let scripts = sections.at.clone();
        let network = sections.network.as_ref();
        let topology = network.map(|network| network.topology(&sections.link));
        let machine = Self {
            topology: topology.transpose()?.map(Arc::new),
            file: Arc::new(file),
            sections: Arc::new(sections),
            scripts: Arc::new(scripts),
        };
        let steps = machine
            .scripts
            .values()
            .flat_map(BTreeMap::values)
            .flatten();
        let on = steps.filter_map(|step| step.on.as_deref());
        let ways = machine
            .sections
            .bus
            .iter()
            .flat_map(|bus| [&*bus.r#in.on, &*bus.out.on]);
        for name in on.chain(ways) {
            machine.resource(name)?;
        }
        Ok(machine)
    }

    /// The machine of a file that is in the program, by its name: those of the papers, and one of
    /// today.
    pub fn named(name: &str) -> Option<Self> {
        static MACHINES: LazyLock<Vec<Machine>> =
            LazyLock::new(|| FILES.into_iter().map(built_in).collect());
        MACHINES
            .iter()
            .find(|machine| machine.name() == name)
            .cloned()
    }

    /// The same, where the program's processor drives the network, too: its interface does besides
    /// what the file says of `sharing`.
    pub fn sharing(&self) -> Self {
        self.besides("sharing")
    }

    /// The same, whose interface does besides what the file says of that actor.
    pub fn besides(&self, other: &str) -> Self {
        let mut scripts = (*self.scripts).clone();
        let others = self.scripts.get(other).into_iter().flatten();
        let of_interface = scripts.entry("interface".to_owned()).or_default();
        for (point, steps) in others {
            of_interface
                .entry(*point)
                .or_default()
                .extend(steps.iter().cloned());
        }
        Self {
            scripts: Arc::new(scripts),
            ..self.clone()
        }
    }

    /// The machine of the Hamlyn paper.
    pub fn hamlyn() -> Self {
        Self::named("hamlyn").expect("a file that is in the program")
    }

    /// A host pair of today: an assumption, and no claim about any machine.
    pub fn pair_of_today() -> Self {
        Self::named("pair-of-today").expect("a file that is in the program")
    }

    /// What it is called in files and options.
    pub fn name(&self) -> &str {
        &self.sections.name
    }

    /// What it is, for people.
    pub fn title(&self) -> &str {
        &self.sections.title
    }

    /// The paper that it is of.
    pub fn paper(&self) -> &str {
        &self.sections.paper
    }

    /// All of its numbers.
    pub fn numbers(&self) -> Vec<Number> {
        number::numbers(&self.file)
    }

    /// The same with another number at that path.
    pub fn with(&self, path: &str, change: impl FnOnce(f64) -> f64) -> Result<Self, MachineError> {
        let mut file = (*self.file).clone();
        if !number::change(&mut file, path, change) {
            return Err(MachineError::NoSuchNumber {
                path: path.to_owned(),
            });
        }
        Self::of(file)
    }

    /// The same where what that actor does at a point takes no time.
    pub fn without(&self, actor: &str, point: PointName) -> Self {
        let mut scripts = (*self.scripts).clone();
        if let Some(points) = scripts.get_mut(actor) {
            points.remove(&point);
        }
        Self {
            scripts: Arc::new(scripts),
            ..self.clone()
        }
    }

    /// The same where nothing moves to or from host memory at those points.
    pub fn free_of_dma(&self, points: &[PointName]) -> Self {
        let mut scripts = (*self.scripts).clone();
        for (point, steps) in scripts.values_mut().flatten() {
            steps.retain(|step| step.dma.is_none() || !points.contains(point));
        }
        Self {
            scripts: Arc::new(scripts),
            ..self.clone()
        }
    }

    /// The same where a resource is never occupied by steps of its own; DMA stays.
    pub fn free_of(&self, resource: &str) -> Self {
        let mut scripts = (*self.scripts).clone();
        for steps in scripts.values_mut().flat_map(BTreeMap::values_mut) {
            steps.retain(|step| step.on.as_deref() != Some(resource));
        }
        Self {
            scripts: Arc::new(scripts),
            ..self.clone()
        }
    }

    /// How many resources a host has.
    pub fn resources(&self) -> usize {
        self.sections.resource.len()
    }

    /// The number of that resource.
    pub fn resource(&self, name: &str) -> Result<usize, MachineError> {
        let mut all = self.sections.resource.iter();
        all.position(|resource| resource.name == name)
            .ok_or_else(|| MachineError::NoSuchResource {
                name: name.to_owned(),
            })
    }

    /// The row of the paper's table that a resource's time belongs to.
    pub(crate) fn row(&self, resource: usize) -> Component {
        let entry = self.sections.resource.get(resource);
        entry.map_or(Component::Waiting, |entry| entry.row)
    }

    /// True if the file says something of that actor at a point, be it nothing.
    pub(crate) fn says(&self, actor: &str, point: Point) -> bool {
        let (name, _) = PointName::of(point);
        let points = self.scripts.get(actor);
        points.is_some_and(|points| points.contains_key(&name))
    }

    /// What that actor does at a point.
    pub(crate) fn steps(&self, actor: &str, point: Point) -> Vec<Step> {
        let (name, bytes) = PointName::of(point);
        let script = self.scripts.get(actor).and_then(|points| points.get(&name));
        let steps = script.into_iter().flatten();
        steps.filter_map(|step| self.step(step, bytes)).collect()
    }

    fn step(&self, step: &RawStep, point_bytes: u64) -> Option<Step> {
        if let Some(direction) = step.dma {
            let bus = self.sections.bus.as_ref()?;
            let bytes = step.bytes.map_or(point_bytes, |bytes| bytes.0);
            return Some(Step {
                resource: self.resource(&bus.way(direction).on).ok()?,
                span: bus.span(direction, bytes),
                then: if step.waits {
                    self.sections.crossing.read.0
                } else {
                    Span::ZERO
                },
                behind: false,
            });
        }
        if step.from.is_some_and(|least| point_bytes < least.0) {
            return None;
        }
        let each = step
            .each
            .map_or(1, |bytes| point_bytes.div_ceil(bytes.0.max(1)));
        Some(Step {
            resource: self.resource(step.on.as_deref()?).ok()?,
            span: step.span.0 * each,
            then: Span::ZERO,
            behind: step.behind,
        })
    }

    /// Whether anything is said of what that actor does.
    pub(crate) fn has_actor(&self, actor: &str) -> bool {
        self.sections.at.contains_key(actor)
    }

    /// Whether anything is said of ports.
    pub(crate) fn has_ports(&self) -> bool {
        self.has_point(PointName::is_of_ports)
    }

    /// True if anything is said of user direct messaging.
    pub(crate) fn has_udm(&self) -> bool {
        self.has_point(PointName::is_of_udm)
    }

    fn has_point(&self, is_it: impl Fn(PointName) -> bool) -> bool {
        let mut points = self.scripts.values().flat_map(BTreeMap::keys);
        points.any(|point| is_it(*point))
    }

    /// The kernel behind the input queue, if nodes have one queue for all links.
    pub(crate) fn kernel(&self) -> Option<&KernelSection> {
        self.sections.kernel.as_ref()
    }

    /// An operation of that program.
    pub fn operation(&self, program: &str) -> Span {
        let operation = self.sections.work.operation.get(program);
        operation.copied().unwrap_or_default().0
    }

    /// By how many thousandths an operation takes more or less than on average.
    pub(crate) fn spread_per_mille(&self) -> u64 {
        self.sections.work.spread.0.min(1_000)
    }

    pub(crate) fn bus(&self) -> Option<&Bus> {
        self.sections.bus.as_ref()
    }

    pub(crate) fn link(&self) -> &LinkSection {
        &self.sections.link
    }

    pub(crate) fn board(&self) -> &BoardSection {
        &self.sections.board
    }

    /// The network between hosts, if it is more than a wire.
    pub(crate) fn topology(&self) -> Option<&Topology> {
        self.topology.as_deref()
    }

    /// By whose turns jobs have processors, where nodes are so late.
    pub(crate) fn schedule(&self, late: Vec<Span>) -> Schedule {
        let section = &self.sections.schedule;
        Schedule {
            slice: section.slice.0,
            jobs: u32::try_from(section.jobs.0).unwrap_or(u32::MAX),
            late,
        }
    }

    /// What a packet with so much payload occupies a link.
    pub(crate) fn wire(&self, payload_bytes: u64) -> Span {
        let link = &self.sections.link;
        link.byte.0 * (link.header.0 + payload_bytes)
    }

    /// A store of the processor to the board.
    pub(crate) fn store(&self) -> Span {
        let store = self.sections.store.as_ref();
        store.map_or(Span::ZERO, |store| store.span.0)
    }

    /// Stores of a request of so many pieces, or that brings so many bytes itself (direct I/O).
    pub(crate) fn stores(&self, pieces: u64, data_bytes: u64) -> Span {
        let Some(store) = &self.sections.store else {
            return Span::ZERO;
        };
        let words = (self.sections.link.header.0 + data_bytes).div_ceil(store.bytes.0.max(1));
        store.span.0 * (words + store.request.0 + pieces * store.piece.0)
    }

    /// Host software of that protocol, or for metadata.
    pub(crate) fn software(&self, name: &str) -> Software {
        let software = self.sections.software.get(name);
        software.copied().unwrap_or_default()
    }

    /// What an interrupt takes until the program that it is for has the processor.
    pub(crate) fn wake_up(&self) -> Span {
        self.sections.wake.interrupt.0 + self.sections.wake.context_switch.0
    }

    pub(crate) fn context_switch(&self) -> Span {
        self.sections.wake.context_switch.0
    }

    /// From a store of the processor until the board sees it.
    pub(crate) fn store_crosses(&self) -> Span {
        self.sections.crossing.store.0
    }

    /// From the end of a deposit until the processor sees it.
    pub(crate) fn write_crosses(&self) -> Span {
        self.sections.crossing.write.0
    }

    /// From a request for host memory until its bytes begin to come.
    pub(crate) fn read_crosses(&self) -> Span {
        self.sections.crossing.read.0
    }

    /// Cable and coding between two boards, besides the switch.
    pub(crate) fn wire_crosses(&self) -> Span {
        self.sections.crossing.wire.0
    }
}

/// The files that are in the program.
const FILES: [&str; 12] = [
    include_str!("../../machines/hamlyn.toml"),
    include_str!("../../machines/pair-of-today.toml"),
    include_str!("../../machines/now-virtual-networks.toml"),
    include_str!("../../machines/fugu.toml"),
    include_str!("../../machines/fugu-soft.toml"),
    include_str!("../../machines/cm5.toml"),
    include_str!("../../machines/paragon.toml"),
    include_str!("../../machines/cs2.toml"),
    include_str!("../../machines/cs2-np.toml"),
    include_str!("../../machines/t3d.toml"),
    include_str!("../../machines/now.toml"),
    include_str!("../../machines/now-np.toml"),
];

/// A machine whose file is in the program, which a test reads.
fn built_in(text: &str) -> Machine {
    Machine::parse(text).expect("a file that is in the program")
}

#[cfg(test)]
mod tests;

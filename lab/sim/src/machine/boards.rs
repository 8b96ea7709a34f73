//! Hosts with boards around a switch, in virtual time: whose turn each step is, and what is on the
//! wire (`Hamlyn 4`).
//!
//! A board has two halves, from the work queue to the wire and from the wire to the notification
//! queue. The engine does the work of each; the points that it passes say what the half's steps are
//! ([`Machine::steps`]). Within one half they follow one another, as a control program is a loop;
//! the halves share the board's resources, where incoming transfers go first (`Hamlyn 2.8`).

use std::collections::VecDeque;

use hamlyn_engine::point::Point;

use super::component::{Component, ComponentTimes};
use super::host::Host;
use super::machine_file::Machine;
use super::memory::Packet;
use super::resource::{Grant, Resource};
use super::step::Step;
use crate::event_queue::EventQueue;
use crate::time::{Span, Time};

/// Who does what a board does, in a machine's file.
const INTERFACE: &str = "interface";

/// A packet that a host's engine made.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) to: usize,
    pub(super) packet: Packet,
    /// What the engine did for it.
    pub(super) points: Vec<Point>,
}

/// What a host's engine did with a packet that came.
#[derive(Debug)]
pub(super) struct Reception {
    pub(super) points: Vec<Point>,
}

impl Reception {
    /// Whether a notification was put into a queue.
    fn is_announced(&self) -> bool {
        self.points.contains(&Point::Notified)
    }
}

/// What will happen.
#[derive(Debug)]
pub(super) enum Event {
    /// A step is done.
    StepDone(usize, Half),
    /// The next step can begin.
    GoOn(usize, Half),
    /// A packet is on its sender's board.
    Pulled(usize, InFlightPacket),
    /// A packet has left, all of it.
    Left(usize, InFlightPacket),
    /// A packet is on its receiver's board.
    Arrived(usize, InFlightPacket),
    /// A message's doorbell is heard by the board, its way so far being this.
    Rung(usize, ComponentTimes),
    /// The processor can see a notification.
    Told(usize, ComponentTimes),
    /// The application of that host has a message, its way being this.
    Noticed(usize, ComponentTimes),
}

/// A half of a board.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Half {
    /// From the work queue to the wire.
    Sending,
    /// From the wire to the notification queue.
    Receiving,
}

/// The kind of a job, and what its end needs.
#[derive(Debug)]
enum JobKind {
    /// Cutting a packet and bringing it onto the board, if it has to be fetched.
    Send {
        packet: InFlightPacket,
        is_fetched: bool,
    },
    /// Telling the sender that a message is out.
    Complete,
    /// Taking a packet, which takes up so many bytes of the board's memory until then.
    Take { bytes: u64, is_announced: bool },
}

/// A sequence of steps of one half.
#[derive(Debug)]
struct Job {
    steps: VecDeque<Step>,
    times: ComponentTimes,
    kind: JobKind,
}

/// A packet in flight between two boards.
#[derive(Debug)]
pub(super) struct InFlightPacket {
    to: usize,
    packet: Packet,
    /// Whether it is the last of its message.
    is_last: bool,
    times: ComponentTimes,
    /// Since when it is where it is.
    since: Time,
}

/// See the module.
#[derive(Debug)]
struct Board {
    resources: Vec<Resource<Half>>,
    sending: Option<Job>,
    receiving: Option<Job>,
    completions_due: usize,
    /// Packets that were asked for and are not on the board yet.
    pulling: usize,
    outgoing: VecDeque<InFlightPacket>,
    link_taken: bool,
    link_busy: Span,
    /// Whether the switch's port to this host is taken.
    port_taken: bool,
    inbox: VecDeque<InFlightPacket>,
    /// Bytes of packets on this board, or on their way to it.
    arriving_bytes: u64,
}

impl Board {
    fn new(machine: &Machine) -> Self {
        Self {
            resources: vec![Resource::default(); machine.resources()],
            sending: None,
            receiving: None,
            completions_due: 0,
            pulling: 0,
            outgoing: VecDeque::new(),
            link_taken: false,
            link_busy: Span::ZERO,
            port_taken: false,
            inbox: VecDeque::new(),
            arriving_bytes: 0,
        }
    }

    fn job(&mut self, half: Half) -> &mut Option<Job> {
        match half {
            Half::Sending => &mut self.sending,
            Half::Receiving => &mut self.receiving,
        }
    }
}

/// Hosts, boards, a switch, and the time.
#[derive(Debug)]
pub(super) struct Boards {
    pub(super) machine: Machine,
    pub(super) hosts: Vec<Host>,
    now: Time,
    events: EventQueue<Event>,
    happened: u64,
    boards: Vec<Board>,
    /// Whose packet a port of the switch took last.
    last_served: Vec<usize>,
}

impl Boards {
    pub(super) fn new(machine: Machine, hosts: Vec<Host>) -> Self {
        Self {
            now: Time::ZERO,
            events: EventQueue::new(),
            happened: 0,
            boards: hosts.iter().map(|_| Board::new(&machine)).collect(),
            last_served: vec![0; hosts.len()],
            machine,
            hosts,
        }
    }

    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// Events so far.
    pub(super) fn happened(&self) -> u64 {
        self.happened
    }

    /// How long a resource of that host was in use.
    pub(super) fn busy(&self, host: usize, row: Component) -> Span {
        let resources = self.boards[host].resources.iter().enumerate();
        resources
            .filter(|&(number, _)| self.machine.row(number) == row)
            .fold(Span::ZERO, |sum, (_, resource)| sum + resource.busy())
    }

    pub(super) fn link_busy(&self, host: usize) -> Span {
        self.boards[host].link_busy
    }

    pub(super) fn foresee(&mut self, at: Time, event: Event) {
        self.events.enter(at, event);
    }

    /// Has something happen after a latency during which nothing is occupied; at once if there is
    /// none.
    pub(super) fn later(
        &mut self,
        latency: Span,
        times: &mut ComponentTimes,
        event: impl FnOnce(ComponentTimes) -> Event,
    ) {
        times.add(Component::Crossing, latency);
        let event = event(*times);
        if latency == Span::ZERO {
            self.happen(event);
        } else {
            self.foresee(self.now + latency, event);
        }
    }

    /// The next event; false if there is none.
    pub(super) fn step(&mut self) -> bool {
        let Some((at, event)) = self.events.take(Time::NEVER) else {
            return false;
        };
        self.now = at;
        self.happened += 1;
        self.happen(event);
        true
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::StepDone(host, half) => self.step_done(host, half),
            Event::GoOn(host, half) => self.go_on(host, half),
            Event::Pulled(host, packet) => self.pulled(host, packet),
            Event::Left(host, packet) => self.left(host, packet),
            Event::Arrived(host, packet) => self.arrived(host, packet),
            Event::Rung(host, times) => {
                self.hosts[host].posted.push_back((self.now, times));
                self.consider_sending(host);
            }
            Event::Told(host, times) => {
                let now = self.now;
                let (at_hand, times) = self.hosts[host].told(&self.machine, now, times);
                self.foresee(at_hand, Event::Noticed(host, times));
            }
            Event::Noticed(host, times) => {
                let now = self.now;
                self.hosts[host].noticed(now, times);
            }
        }
    }

    /// Lets everything happen that will by then.
    pub(super) fn run_until(&mut self, end: Time) {
        while self.events.next().is_some_and(|at| at <= end) {
            self.step();
        }
        self.now = self.now.max(end);
    }

    // A board: two halves, each with a job at most.

    /// Begins what those points say; completion words are written when a packet has left.
    fn begin(
        &mut self,
        host: usize,
        half: Half,
        points: &[Point],
        times: ComponentTimes,
        kind: JobKind,
    ) {
        let steps = points
            .iter()
            .flat_map(|&point| self.machine.steps(INTERFACE, point))
            .collect();
        *self.boards[host].job(half) = Some(Job { steps, times, kind });
        self.go_on(host, half);
    }

    /// The next step of a job, or what comes after its last.
    fn go_on(&mut self, host: usize, half: Half) {
        let now = self.now;
        let Some(job) = self.boards[host].job(half) else {
            return;
        };
        let Some(&step) = job.steps.front() else {
            if let Some(job) = self.boards[host].job(half).take() {
                self.finished(host, job);
            }
            return;
        };
        let urgent = half == Half::Receiving;
        let resource = &mut self.boards[host].resources[step.resource];
        let granted = resource.request(now, half, step.span, urgent);
        self.granted(host, granted);
    }

    fn granted(&mut self, host: usize, granted: Option<Grant<Half>>) {
        if let Some(grant) = granted {
            if let Some(job) = self.boards[host].job(grant.who) {
                job.times.add(Component::Waiting, grant.waited);
            }
            self.foresee(grant.until, Event::StepDone(host, grant.who));
        }
    }

    fn step_done(&mut self, host: usize, half: Half) {
        let now = self.now;
        let Some(job) = self.boards[host].job(half) else {
            return;
        };
        let Some(step) = job.steps.pop_front() else {
            return;
        };
        job.times.add(self.machine.row(step.resource), step.span);
        job.times.add(Component::Crossing, step.then);
        let next = self.boards[host].resources[step.resource].release(now);
        self.granted(host, next);
        if step.then == Span::ZERO {
            self.go_on(host, half);
        } else {
            self.foresee(now + step.then, Event::GoOn(host, half));
        }
    }

    /// A job has no steps left.
    fn finished(&mut self, host: usize, job: Job) {
        let mut times = job.times;
        match job.kind {
            JobKind::Send { packet, is_fetched } => {
                let latency = if is_fetched {
                    self.machine.read_crosses()
                } else {
                    Span::ZERO
                };
                self.boards[host].pulling += 1;
                self.later(latency, &mut times, |times| {
                    Event::Pulled(host, InFlightPacket { times, ..packet })
                });
                self.consider_sending(host);
            }
            JobKind::Complete => self.consider_sending(host),
            JobKind::Take {
                bytes,
                is_announced,
            } => {
                self.boards[host].arriving_bytes -= bytes;
                if is_announced {
                    // A notification was written; the processor sees it.
                    let seen = self.machine.write_crosses();
                    self.later(seen, &mut times, |times| Event::Told(host, times));
                }
                self.serve_port(host);
                self.consider_receiving(host);
            }
        }
    }

    fn pulled(&mut self, host: usize, packet: InFlightPacket) {
        let packet = InFlightPacket {
            since: self.now,
            ..packet
        };
        self.boards[host].pulling -= 1;
        self.boards[host].outgoing.push_back(packet);
        self.consider_link(host);
    }

    /// Whether the sending half has something to do.
    pub(super) fn consider_sending(&mut self, host: usize) {
        let outgoing_max = self.machine.board().outgoing_max.0;
        let board = &mut self.boards[host];
        if board.sending.is_some() {
            return;
        }
        if board.completions_due > 0 {
            board.completions_due -= 1;
            let times = ComponentTimes::default();
            let points = [Point::MessageOut];
            self.begin(host, Half::Sending, &points, times, JobKind::Complete);
            return;
        }
        if (board.outgoing.len() + board.pulling) as u64 >= outgoing_max {
            return;
        }
        let Some((doorbell, mut times)) = self.hosts[host].waiting() else {
            return;
        };
        let Some(mut segment) = self.hosts[host].segment() else {
            return;
        };
        times.add(Component::Waiting, self.now.since(doorbell));
        let is_last = segment.points.contains(&Point::MessageOut);
        segment.points.retain(|&point| point != Point::MessageOut);
        let is_fetched = segment
            .points
            .iter()
            .any(|point| matches!(point, Point::DataFetched(_)));
        let packet = InFlightPacket {
            to: segment.to,
            packet: segment.packet,
            is_last,
            times,
            since: self.now,
        };
        let kind = JobKind::Send { packet, is_fetched };
        self.begin(host, Half::Sending, &segment.points, times, kind);
    }

    fn consider_receiving(&mut self, host: usize) {
        let board = &mut self.boards[host];
        if board.receiving.is_some() {
            return;
        }
        let Some(mut packet) = board.inbox.pop_front() else {
            return;
        };
        let waited = self.now.since(packet.since);
        packet.times.add(Component::Waiting, waited);
        let reception = self.hosts[host].accept(&packet.packet);
        let kind = JobKind::Take {
            bytes: self.machine.link().header.0 + packet.packet.payload_bytes(),
            is_announced: reception.is_announced(),
        };
        let points = &reception.points;
        self.begin(host, Half::Receiving, points, packet.times, kind);
    }

    // The wire: a packet has its link and the switch's port to the receiver at the same time
    // (wormhole routing).

    /// Whether the next packet of that host can leave.
    fn consider_link(&mut self, host: usize) {
        let Some(packet) = self.boards[host].outgoing.front() else {
            return;
        };
        let (to, payload_bytes) = (packet.to, packet.packet.payload_bytes());
        let link = self.machine.link();
        let (start, bytes) = (link.start.0, link.header.0 + payload_bytes);
        let receiver = &self.boards[to];
        let is_full = receiver.arriving_bytes + bytes > self.machine.board().arrivals_max.0;
        if self.boards[host].link_taken || receiver.port_taken || is_full {
            return;
        }
        let Some(mut packet) = self.boards[host].outgoing.pop_front() else {
            return;
        };
        let taken = start + self.machine.wire(payload_bytes);
        let waited = self.now.since(packet.since);
        packet.times.add(Component::Waiting, waited);
        packet.times.add(Component::Dma, taken);
        self.boards[host].link_taken = true;
        self.boards[host].link_busy += taken;
        self.boards[to].port_taken = true;
        self.boards[to].arriving_bytes += bytes;
        self.last_served[to] = host;
        self.foresee(self.now + taken, Event::Left(host, packet));
        // There is room on the board for one more.
        self.consider_sending(host);
    }

    /// The port to that host may be free: whose turn is it (`Hamlyn 2.8`: round robin)?
    fn serve_port(&mut self, to: usize) {
        let hosts = self.boards.len();
        let last = self.last_served[to];
        for turn in 1..=hosts {
            self.consider_link((last + turn) % hosts);
        }
    }

    fn left(&mut self, host: usize, mut packet: InFlightPacket) {
        let to = packet.to;
        self.boards[host].link_taken = false;
        self.boards[to].port_taken = false;
        let link = self.machine.link();
        let (switch, start, crossing) = (link.switch.0, link.start.0, self.machine.wire_crosses());
        packet.times.add(Component::Switch, switch);
        packet.times.add(Component::Dma, start);
        packet.times.add(Component::Crossing, crossing);
        if packet.is_last {
            self.boards[host].completions_due += 1;
        }
        self.foresee(
            self.now + switch + start + crossing,
            Event::Arrived(to, packet),
        );
        self.consider_link(host);
        self.serve_port(to);
        self.consider_sending(host);
    }

    fn arrived(&mut self, host: usize, packet: InFlightPacket) {
        let packet = InFlightPacket {
            since: self.now,
            ..packet
        };
        self.boards[host].inbox.push_back(packet);
        self.consider_receiving(host);
    }
}

//! Cards around a switch: which step is whose turn, and what is on the wire.
//!
//! A [`Station`] makes packets, checks them and learns of them: the hosts of [`super::system`], which drive the engine
//! themselves, or the world's programs ([`super::carrier`]).

use std::collections::VecDeque;

use super::card::{self, Place, Reception, Step, TransferDescriptor};
use super::component::{Component, ComponentTimes};
use super::parameters::{HEADER_BYTES, Parameters};
use super::resource::{Grant, Resource};
use crate::event_queue::EventQueue;
use crate::time::{Span, Time};

/// A segment of a message.
#[derive(Debug)]
pub(super) struct Segment<P> {
    pub(super) to: usize,
    pub(super) descriptor: TransferDescriptor,
    pub(super) packet: P,
    /// Whether it is the last of its message.
    pub(super) is_last: bool,
}

/// What the cards serve.
pub(super) trait Station: Sized {
    /// What they carry.
    type Packet: std::fmt::Debug;
    /// What else happens at an instant.
    type Event: std::fmt::Debug;

    /// Since when a message waits at that host, and what it has cost by then.
    fn waiting(&self, host: usize) -> Option<(Time, ComponentTimes)>;

    /// The next packet of it.
    fn segment(&mut self, host: usize) -> Option<Segment<Self::Packet>>;

    /// Whether that packet is let in, and announces a message.
    fn accept(&mut self, host: usize, packet: &Self::Packet) -> Reception;

    /// All that the card does for the packet is done.
    fn taken(
        cards: &mut Cards<Self>,
        host: usize,
        packet: Self::Packet,
        reception: Reception,
        times: ComponentTimes,
    );

    /// What the station foresaw happens.
    fn happen(cards: &mut Cards<Self>, event: Self::Event);
}

/// What will happen.
#[derive(Debug)]
pub(super) enum Event<S: Station> {
    /// A step is done.
    StepDone(usize, Half),
    /// The next step can begin.
    GoOn(usize, Half),
    /// A packet is on its sender's card.
    Pulled(usize, InFlightPacket<S::Packet>),
    /// A packet has left, all of it.
    Left(usize, InFlightPacket<S::Packet>),
    /// A packet is on its receiver's card.
    Arrived(usize, InFlightPacket<S::Packet>),
    /// Something of the station's.
    Station(S::Event),
}

/// A half of a card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Half {
    /// From the work queue to the wire.
    Sending,
    /// From the wire to the notification queue.
    Receiving,
}

/// The kind of a job, and what its end needs.
#[derive(Debug)]
enum JobKind<P> {
    /// Cutting a packet.
    Fetch,
    /// Bringing it onto the card.
    Pull(InFlightPacket<P>),
    /// Telling the sender that a message is out.
    Complete,
    /// Whether a packet is let in.
    Check(TransferDescriptor, P),
    /// What follows from that; the packet takes up so much of the card's memory until then.
    Take {
        bytes: u64,
        reception: Reception,
        packet: P,
    },
}

/// A sequence of steps of one half.
#[derive(Debug)]
struct Job<P> {
    steps: VecDeque<Step>,
    times: ComponentTimes,
    kind: JobKind<P>,
}

impl<P> Job<P> {
    /// The step that was at work.
    fn step_is_done(&mut self) -> Option<Step> {
        let step = self.steps.pop_front()?;
        self.times.add(step.component(), step.span);
        self.times.add(Component::Crossing, step.then);
        Some(step)
    }
}

/// A packet in flight between two cards.
#[derive(Debug)]
pub(super) struct InFlightPacket<P> {
    to: usize,
    descriptor: TransferDescriptor,
    packet: P,
    /// Whether it is the last of its message.
    is_last: bool,
    times: ComponentTimes,
    /// Since when it is where it is.
    since: Time,
}

/// See the module.
#[derive(Debug)]
struct Card<P> {
    lanai: Resource<Half>,
    /// For each direction; only the first is used if both are one.
    bus: [Resource<Half>; 2],
    is_duplex: bool,
    sending: Option<Job<P>>,
    receiving: Option<Job<P>>,
    /// Whether the next packet is the first of its message.
    at_first_packet: bool,
    completions_due: usize,
    outgoing_max: usize,
    /// Packets that were asked for and are not on the card yet.
    pulling: usize,
    outgoing: VecDeque<InFlightPacket<P>>,
    link_taken: bool,
    link_busy: Span,
    /// Whether the switch's port to this host is taken.
    port_taken: bool,
    inbox: VecDeque<InFlightPacket<P>>,
    /// Otherwise what came waits, and when the card's memory is full the wire stands still.
    is_receiving: bool,
    /// Bytes of packets on this card, or on their way to it.
    arriving_bytes: u64,
}

impl<P> Card<P> {
    fn new(machine: &Parameters) -> Self {
        Self {
            lanai: Resource::default(),
            bus: Default::default(),
            is_duplex: machine.bus.is_duplex,
            sending: None,
            receiving: None,
            at_first_packet: true,
            completions_due: 0,
            outgoing_max: machine.outgoing_max,
            pulling: 0,
            outgoing: VecDeque::new(),
            link_taken: false,
            link_busy: Span::ZERO,
            port_taken: false,
            inbox: VecDeque::new(),
            is_receiving: true,
            arriving_bytes: 0,
        }
    }

    /// Whether one more packet may be fetched.
    fn has_room(&self) -> bool {
        self.outgoing.len() + self.pulling < self.outgoing_max
    }

    fn job(&mut self, half: Half) -> &mut Option<Job<P>> {
        match half {
            Half::Sending => &mut self.sending,
            Half::Receiving => &mut self.receiving,
        }
    }

    fn bus_busy(&self) -> Span {
        let [one, other] = &self.bus;
        one.busy() + other.busy()
    }

    fn resource(&self, place: Place) -> &Resource<Half> {
        match place {
            Place::Lanai => &self.lanai,
            Place::BusOut if self.is_duplex => &self.bus[1],
            Place::BusIn | Place::BusOut => &self.bus[0],
        }
    }

    fn resource_mut(&mut self, place: Place) -> &mut Resource<Half> {
        match place {
            Place::Lanai => &mut self.lanai,
            Place::BusOut if self.is_duplex => &mut self.bus[1],
            Place::BusIn | Place::BusOut => &mut self.bus[0],
        }
    }
}

/// Cards, a switch, and the time.
#[derive(Debug)]
pub(super) struct Cards<S: Station> {
    pub(super) machine: Parameters,
    pub(super) station: S,
    now: Time,
    events: EventQueue<Event<S>>,
    happened: u64,
    cards: Vec<Card<S::Packet>>,
    /// Whose packet a port of the switch took last.
    last_served: Vec<usize>,
}

impl<S: Station> Cards<S> {
    pub(super) fn new(machine: Parameters, hosts: usize, station: S) -> Self {
        Self {
            machine,
            station,
            now: Time::ZERO,
            events: EventQueue::new(),
            happened: 0,
            cards: (0..hosts).map(|_| Card::new(&machine)).collect(),
            last_served: vec![0; hosts],
        }
    }

    pub(super) fn hosts(&self) -> usize {
        self.cards.len()
    }

    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// Events so far.
    pub(super) fn happened(&self) -> u64 {
        self.happened
    }

    /// When something happens next.
    pub(super) fn next(&self) -> Option<Time> {
        self.events.next()
    }

    /// A card stops or begins to take what comes. A host that does not exist takes nothing anyway.
    pub(super) fn set_receiving(&mut self, host: usize, is_receiving: bool) {
        if let Some(card) = self.cards.get_mut(host) {
            card.is_receiving = is_receiving;
            self.consider_receiving(host);
        }
    }

    pub(super) fn lanai_busy(&self, host: usize) -> Span {
        self.cards[host].resource(Place::Lanai).busy()
    }

    pub(super) fn bus_busy(&self, host: usize) -> Span {
        self.cards[host].bus_busy()
    }

    pub(super) fn link_busy(&self, host: usize) -> Span {
        self.cards[host].link_busy
    }

    pub(super) fn foresee(&mut self, at: Time, event: Event<S>) {
        self.events.enter(at, event);
    }

    /// Has something happen after a latency during which nothing is occupied; at once if there is none.
    pub(super) fn later(
        &mut self,
        latency: Span,
        times: &mut ComponentTimes,
        event: impl FnOnce(ComponentTimes) -> Event<S>,
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

    fn happen(&mut self, event: Event<S>) {
        match event {
            Event::StepDone(host, half) => self.step_done(host, half),
            Event::GoOn(host, half) => self.go_on(host, half),
            Event::Pulled(host, launch) => self.pulled(host, launch),
            Event::Left(host, launch) => self.left(host, launch),
            Event::Arrived(host, launch) => self.arrived(host, launch),
            Event::Station(event) => S::happen(self, event),
        }
    }

    /// Lets everything happen that will by then.
    pub(super) fn run_until(&mut self, end: Time) {
        while self.next().is_some_and(|at| at <= end) {
            self.step();
        }
        self.now = self.now.max(end);
    }

    // A card: two halves, each with a job at most.

    fn begin(
        &mut self,
        host: usize,
        half: Half,
        steps: Vec<Step>,
        times: ComponentTimes,
        kind: JobKind<S::Packet>,
    ) {
        *self.cards[host].job(half) = Some(Job {
            steps: steps.into(),
            times,
            kind,
        });
        self.go_on(host, half);
    }

    /// The next step of a job, or what comes after its last.
    fn go_on(&mut self, host: usize, half: Half) {
        let now = self.now;
        let Some(job) = self.cards[host].job(half) else {
            return;
        };
        let Some(&step) = job.steps.front() else {
            if let Some(job) = self.cards[host].job(half).take() {
                self.finished(host, job);
            }
            return;
        };
        // Incoming transfers go first (Hamlyn 2.8).
        let urgent = half == Half::Receiving;
        let granted = self.cards[host]
            .resource_mut(step.place)
            .request(now, half, step.span, urgent);
        self.granted(host, granted);
    }

    fn granted(&mut self, host: usize, granted: Option<Grant<Half>>) {
        if let Some(grant) = granted {
            if let Some(job) = self.cards[host].job(grant.who) {
                job.times.add(Component::Waiting, grant.waited);
            }
            self.foresee(grant.until, Event::StepDone(host, grant.who));
        }
    }

    fn step_done(&mut self, host: usize, half: Half) {
        let now = self.now;
        let Some(step) = self.cards[host]
            .job(half)
            .as_mut()
            .and_then(Job::step_is_done)
        else {
            return;
        };
        let next = self.cards[host].resource_mut(step.place).release(now);
        self.granted(host, next);
        if step.then == Span::ZERO {
            self.go_on(host, half);
        } else {
            self.foresee(now + step.then, Event::GoOn(host, half));
        }
    }

    /// A job has no steps left.
    fn finished(&mut self, host: usize, job: Job<S::Packet>) {
        let times = job.times;
        match job.kind {
            JobKind::Fetch => {
                if let Some(segment) = self.station.segment(host) {
                    self.cards[host].at_first_packet = segment.is_last;
                    let steps = card::pull(&self.machine, &segment.descriptor);
                    let launch = InFlightPacket {
                        to: segment.to,
                        descriptor: segment.descriptor,
                        packet: segment.packet,
                        is_last: segment.is_last,
                        times,
                        since: self.now,
                    };
                    self.begin(host, Half::Sending, steps, times, JobKind::Pull(launch));
                } else {
                    self.consider_sending(host);
                }
            }
            JobKind::Pull(launch) => {
                let latency = if launch.descriptor.is_pulled {
                    self.machine.crossing.read
                } else {
                    Span::ZERO
                };
                self.cards[host].pulling += 1;
                let mut times = times;
                self.later(latency, &mut times, |times| {
                    Event::Pulled(host, InFlightPacket { times, ..launch })
                });
                self.consider_sending(host);
            }
            JobKind::Complete => self.consider_sending(host),
            JobKind::Check(descriptor, packet) => {
                let reception = self.station.accept(host, &packet);
                let steps = card::take(&self.machine, &descriptor, reception);
                let kind = JobKind::Take {
                    bytes: HEADER_BYTES + descriptor.payload_bytes(),
                    reception,
                    packet,
                };
                self.begin(host, Half::Receiving, steps, times, kind);
            }
            JobKind::Take {
                bytes,
                reception,
                packet,
            } => {
                self.cards[host].arriving_bytes -= bytes;
                S::taken(self, host, packet, reception, times);
                self.serve_port(host);
                self.consider_receiving(host);
            }
        }
    }

    fn pulled(&mut self, host: usize, launch: InFlightPacket<S::Packet>) {
        let launch = InFlightPacket {
            since: self.now,
            ..launch
        };
        self.cards[host].pulling -= 1;
        self.cards[host].outgoing.push_back(launch);
        self.consider_link(host);
    }

    /// Whether the sending half has something to do.
    pub(super) fn consider_sending(&mut self, host: usize) {
        let node = &mut self.cards[host];
        if node.sending.is_some() {
            return;
        }
        if node.completions_due > 0 {
            node.completions_due -= 1;
            let steps = card::complete(&self.machine);
            let times = ComponentTimes::default();
            self.begin(host, Half::Sending, steps, times, JobKind::Complete);
        } else if node.has_room()
            && let Some((doorbell, mut times)) = self.station.waiting(host)
        {
            times.add(Component::Waiting, self.now.since(doorbell));
            let steps = card::fetch(&self.machine, self.cards[host].at_first_packet);
            self.begin(host, Half::Sending, steps, times, JobKind::Fetch);
        }
    }

    fn consider_receiving(&mut self, host: usize) {
        let node = &mut self.cards[host];
        if node.receiving.is_some() || !node.is_receiving {
            return;
        }
        if let Some(mut launch) = node.inbox.pop_front() {
            let waited = self.now.since(launch.since);
            launch.times.add(Component::Waiting, waited);
            let steps = card::check(&self.machine);
            let kind = JobKind::Check(launch.descriptor, launch.packet);
            self.begin(host, Half::Receiving, steps, launch.times, kind);
        }
    }

    // The wire: a packet has its link and the switch's port to the receiver at the same time (wormhole routing).

    /// Whether the next packet of that host can leave.
    fn consider_link(&mut self, host: usize) {
        let Some(launch) = self.cards[host].outgoing.front() else {
            return;
        };
        let (to, payload_bytes) = (launch.to, launch.descriptor.payload_bytes());
        let bytes = HEADER_BYTES + payload_bytes;
        let receiver = &self.cards[to];
        let is_full = receiver.arriving_bytes + bytes > self.machine.arrivals_max_bytes;
        if self.cards[host].link_taken || receiver.port_taken || is_full {
            return;
        }
        let Some(mut launch) = self.cards[host].outgoing.pop_front() else {
            return;
        };
        let taken = self.machine.wire_start + self.machine.wire(payload_bytes);
        let waited = self.now.since(launch.since);
        launch.times.add(Component::Waiting, waited);
        launch.times.add(Component::Dma, taken);
        self.cards[host].link_taken = true;
        self.cards[host].link_busy += taken;
        self.cards[to].port_taken = true;
        self.cards[to].arriving_bytes += bytes;
        self.last_served[to] = host;
        self.foresee(self.now + taken, Event::Left(host, launch));
        // There is room on the card for one more.
        self.consider_sending(host);
    }

    /// The port to that host may be free: whose turn is it (`Hamlyn 2.8`: round robin)?
    fn serve_port(&mut self, to: usize) {
        let hosts = self.cards.len();
        let last = self.last_served[to];
        for turn in 1..=hosts {
            self.consider_link((last + turn) % hosts);
        }
    }

    fn left(&mut self, host: usize, mut launch: InFlightPacket<S::Packet>) {
        let to = launch.to;
        self.cards[host].link_taken = false;
        self.cards[to].port_taken = false;
        launch.times.add(Component::Switch, self.machine.switch);
        launch.times.add(Component::Dma, self.machine.wire_start);
        let crossing = self.machine.crossing.wire;
        launch.times.add(Component::Crossing, crossing);
        let arrives = self.now + self.machine.switch + self.machine.wire_start + crossing;
        if launch.is_last {
            self.cards[host].completions_due += 1;
        }
        self.foresee(arrives, Event::Arrived(to, launch));
        self.consider_link(host);
        self.serve_port(to);
        self.consider_sending(host);
    }

    fn arrived(&mut self, host: usize, launch: InFlightPacket<S::Packet>) {
        let launch = InFlightPacket {
            since: self.now,
            ..launch
        };
        self.cards[host].inbox.push_back(launch);
        self.consider_receiving(host);
    }
}

//! How the paper measures: ping-pong between two applications, half of the round trip (`Hamlyn 4`).

use hamlyn_engine::memory::Area;

use crate::machine::{Component, ComponentTimes, Machine, OutgoingMessage, Protocol, System};
use crate::random::Random;
use crate::time::Span;

/// Messages behind a single figure (H-288).
pub const MESSAGES: u64 = 10_000;
/// Messages behind a point of a plot. Nothing varies, but the first message finds everything idle.
pub const MESSAGES_OF_A_POINT: u64 = 4;
/// Decides keys and contents.
const SEED: u64 = 1996;

/// An experiment could not be carried out: the machine lost, spoilt or refused a message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    /// A message did not come.
    #[error("a message of {data_bytes} bytes never came")]
    Lost {
        /// How long it was.
        data_bytes: usize,
    },
    /// It came otherwise than it was sent.
    #[error("a message of {data_bytes} bytes was changed on its way")]
    Spoilt {
        /// How long it was.
        data_bytes: usize,
    },
    /// A program of the world failed.
    #[error("a program failed: {0}")]
    World(String),
    /// A network was not loaded.
    #[error(transparent)]
    Network(#[from] crate::network::saturation::ExperimentError),
    /// A number of the machine was to be changed that it does not have.
    #[error(transparent)]
    Machine(#[from] crate::machine::MachineError),
    /// The paper's file and the experiments do not name the same figures.
    #[error("row {id} and its experiment do not have the same figures")]
    Unmatched {
        /// The row.
        id: String,
    },
    /// The engine did not take it.
    #[error(transparent)]
    Refused(#[from] hamlyn_engine::terminus::PostError),
}

/// What is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// How.
    pub protocol: Protocol,
    /// Payload of a full packet, in bytes.
    pub packet_bytes: usize,
    /// Bytes of data.
    pub data_bytes: usize,
    /// Bytes of metadata.
    pub metadata_bytes: usize,
    /// Whether it lands without a notice.
    pub is_silent: bool,
}

impl Shape {
    /// A normal message without metadata.
    pub const fn datagram(packet_bytes: usize, data_bytes: usize) -> Self {
        Self {
            protocol: Protocol::Datagram,
            packet_bytes,
            data_bytes,
            metadata_bytes: 0,
            is_silent: false,
        }
    }

    /// The message of Table 4.
    pub const fn short(protocol: Protocol) -> Self {
        Self {
            protocol,
            packet_bytes: 256,
            data_bytes: 16,
            metadata_bytes: 0,
            is_silent: false,
        }
    }

    fn message(&self, to: usize) -> OutgoingMessage {
        OutgoingMessage {
            metadata_bytes: self.metadata_bytes,
            is_silent: self.is_silent,
            ..OutgoingMessage::new(to, self.protocol, self.data_bytes)
        }
    }

    fn lost(&self) -> Failure {
        Failure::Lost {
            data_bytes: self.data_bytes,
        }
    }
}

/// What a ping-pong took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OneWay {
    /// A message, on average.
    pub span: Span,
    /// There and back, on average.
    pub round_trip: Span,
    /// Where the time of the last message went.
    pub times: ComponentTimes,
    /// How long both processors worked, per message.
    pub processors: Span,
}

/// So many messages to and fro between two hosts, or from a host to itself.
fn exchange(
    machine: &Machine,
    shape: &Shape,
    hosts: usize,
    messages: u64,
    asleep: bool,
) -> Result<OneWay, Failure> {
    let mut system = System::new(machine, hosts, shape.packet_bytes, SEED);
    let mut contents = Vec::with_capacity(hosts);
    let mut random = Random::new(SEED);
    for host in 0..hosts {
        system.listen(host, shape.protocol);
        let bytes: Vec<u8> = (0..shape.data_bytes).map(|_| random.bits() as u8).collect();
        system
            .sending_area(host)
            .write(0, &bytes)
            .map_err(|_| shape.lost())?;
        contents.push(bytes);
    }
    let mut times = ComponentTimes::default();
    let mut end = system.now();
    for message in 0..messages {
        let from = (message % hosts as u64) as usize;
        let to = (from + 1) % hosts;
        if asleep {
            system.sleep(to);
        }
        system.send(from, &shape.message(to))?;
        let arrival = system.await_message(to).ok_or_else(|| shape.lost())?;
        (times, end) = (arrival.times, arrival.at);
    }
    for host in 0..hosts {
        let from = (host + hosts - 1) % hosts;
        let came = system.receiving_area(host).copy(0..shape.data_bytes);
        if came.as_deref() != Some(&contents[from][..]) {
            return Err(Failure::Spoilt {
                data_bytes: shape.data_bytes,
            });
        }
    }
    system.settle();
    let all = end.since(crate::time::Time::ZERO);
    let processors = (0..hosts).fold(Span::ZERO, |sum, host| sum + system.processor_busy(host));
    Ok(OneWay {
        span: per(all, messages),
        round_trip: per(all * 2, messages),
        times,
        processors: per(processors, messages),
    })
}

/// Between two hosts (H-287).
pub fn ping_pong(machine: &Machine, shape: &Shape, messages: u64) -> Result<OneWay, Failure> {
    exchange(machine, shape, 2, messages, false)
}

/// Between two hosts whose receiver sleeps each time.
pub fn ping_pong_asleep(
    machine: &Machine,
    shape: &Shape,
    messages: u64,
) -> Result<OneWay, Failure> {
    exchange(machine, shape, 2, messages, true)
}

/// From a process to itself (H-352).
pub fn loopback(machine: &Machine, shape: &Shape, messages: u64) -> Result<OneWay, Failure> {
    exchange(machine, shape, 1, messages, false)
}

/// What was in use while many messages of a kind went one way, per message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// A message, on average.
    pub span: Span,
    /// The sender's processor.
    pub sending_processor: Span,
    /// The receiver's processor.
    pub receiving_processor: Span,
    /// The sender's I/O bus, and with it its host DMA unit.
    pub sending_bus: Span,
    /// The receiver's.
    pub receiving_bus: Span,
    /// The sender's interface processor.
    pub sending_lanai: Span,
    /// The receiver's.
    pub receiving_lanai: Span,
    /// The link between sender and switch.
    pub link: Span,
    /// Packets that the receiver refused, all together.
    pub refused: u64,
}

/// Many messages one way, as fast as the sender's work queue takes them. With a wrong key none
/// arrives; silent ones do, but nobody is told.
pub fn flow(
    machine: &Machine,
    shape: &Shape,
    messages: u64,
    has_key: bool,
) -> Result<Flow, Failure> {
    let mut system = System::new(machine, 2, shape.packet_bytes, SEED);
    system.listen(1, shape.protocol);
    let mut random = Random::new(SEED);
    let contents: Vec<u8> = (0..shape.data_bytes).map(|_| random.bits() as u8).collect();
    system
        .sending_area(0)
        .write(0, &contents)
        .map_err(|_| shape.lost())?;
    let message = OutgoingMessage {
        has_key,
        ..shape.message(1)
    };
    for _ in 0..messages {
        system.send(0, &message)?;
    }
    let mut came = 0;
    while system.await_message(1).is_some() {
        came += 1;
    }
    system.settle();
    let told = has_key && !shape.is_silent;
    if came != if told { messages } else { 0 } {
        return Err(shape.lost());
    }
    let landed = system.receiving_area(1).copy(0..shape.data_bytes);
    if has_key && landed.as_deref() != Some(&contents[..]) {
        return Err(Failure::Spoilt {
            data_bytes: shape.data_bytes,
        });
    }
    let all = system.now().since(crate::time::Time::ZERO);
    Ok(Flow {
        span: per(all, messages),
        sending_processor: per(system.processor_busy(0), messages),
        receiving_processor: per(system.processor_busy(1), messages),
        sending_bus: per(system.busy(0, Component::Dma), messages),
        receiving_bus: per(system.busy(1, Component::Dma), messages),
        sending_lanai: per(system.busy(0, Component::Lanai), messages),
        receiving_lanai: per(system.busy(1, Component::Lanai), messages),
        link: per(system.link_busy(0), messages),
        refused: system.refused(1),
    })
}

/// The part of a span that falls to each of so many, at least one.
fn per(span: Span, count: u64) -> Span {
    Span::from_ps(span.as_ps() / count.max(1))
}

//! What the card does for a packet, as a sequence of steps that each occupy one of its resources (`Hamlyn 2.2` to `2.6`).
//!
//! Within one direction the steps follow one another, as the control program is a loop; the two directions share the
//! interface processor, and the one host DMA unit with the bus behind it (`Hamlyn 4`: it is the only way into host memory). So unit and
//! bus are one resource here, or one for each direction where the bus has two.

use super::component::Component;
use super::memory::Packet;
use super::parameters::{ACCUMULATOR_BYTES, COMPLETION_BYTES, NOTIFICATION_BYTES, Parameters};
use crate::time::Span;

/// A resource of a card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The interface processor.
    Lanai,
    /// The host DMA unit, and the I/O bus, into host memory.
    BusIn,
    /// The same out of it. On a bus for both directions it is the same resource.
    BusOut,
}

/// A piece of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// What it occupies.
    pub place: Place,
    /// For how long.
    pub span: Span,
    /// So long the next step has to wait afterwards, while this one's resource is free.
    pub then: Span,
}

impl Step {
    const fn lanai(span: Span) -> Self {
        Self {
            place: Place::Lanai,
            span,
            then: Span::ZERO,
        }
    }

    fn into_host(machine: &Parameters, length_bytes: u64) -> Self {
        Self {
            place: Place::BusIn,
            span: machine.dma_in(length_bytes),
            then: Span::ZERO,
        }
    }

    fn out_of_host(machine: &Parameters, length_bytes: u64) -> Self {
        Self {
            place: Place::BusOut,
            span: machine.dma_out(length_bytes),
            then: Span::ZERO,
        }
    }

    /// The row of Table 4 that it belongs to.
    pub const fn component(&self) -> Component {
        match self.place {
            Place::Lanai => Component::Lanai,
            Place::BusIn | Place::BusOut => Component::Dma,
        }
    }
}

/// The transfer descriptor of a packet: what the card needs to know of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransferDescriptor {
    /// Bytes of metadata.
    pub metadata_bytes: u64,
    /// Bytes of data.
    pub data_bytes: u64,
    /// Whether both are pulled out of host memory; otherwise the processor has written them to the card (direct I/O).
    pub is_pulled: bool,
    /// Whether it names no metadata entry.
    pub is_fast: bool,
    /// Whether it is one of several of its message, which are counted.
    pub is_counted: bool,
}

impl TransferDescriptor {
    /// Bytes of metadata and data.
    pub fn payload_bytes(&self) -> u64 {
        self.metadata_bytes + self.data_bytes
    }
}

impl From<&Packet> for TransferDescriptor {
    fn from(packet: &Packet) -> Self {
        let header = &packet.header;
        Self {
            metadata_bytes: packet.metadata.len() as u64,
            data_bytes: packet.data.len() as u64,
            is_pulled: packet.is_pulled,
            is_fast: header.is_fast(),
            // A delta of zero does without the accumulator (Hamlyn 2.5); so does fast mode, which has another word there.
            is_counted: !header.is_fast() && header.word != 0,
        }
    }
}

/// What the engine did with a packet that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reception {
    /// Whether it was let in.
    pub is_let_in: bool,
    /// Whether a notification was put into a queue.
    pub is_announced: bool,
}

/// Until a packet of the work queue's head is cut.
pub fn fetch(machine: &Parameters, is_first: bool) -> Vec<Step> {
    let mut steps = Vec::with_capacity(2);
    if is_first {
        steps.push(Step::lanai(machine.fetch_request));
    }
    steps.push(Step::lanai(machine.send_packet));
    steps
}

/// Until the packet was asked for; it is on the card [`super::parameters::Crossing::read`] later. Direct I/O has brought it
/// there already.
pub fn pull(machine: &Parameters, descriptor: &TransferDescriptor) -> Vec<Step> {
    let mut steps = Vec::with_capacity(3);
    if descriptor.is_pulled {
        if descriptor.metadata_bytes != 0 {
            steps.push(Step::lanai(machine.send_metadata));
            steps.push(Step::out_of_host(machine, descriptor.metadata_bytes));
        }
        steps.push(Step::out_of_host(machine, descriptor.data_bytes));
    }
    steps
}

/// Writing the completion word.
pub fn complete(machine: &Parameters) -> Vec<Step> {
    vec![
        Step::lanai(machine.complete),
        Step::into_host(machine, COMPLETION_BYTES),
    ]
}

/// Until it is known whether a packet is let in.
pub fn check(machine: &Parameters) -> Vec<Step> {
    vec![Step::lanai(machine.check_packet)]
}

/// What the card does after the engine has received the packet.
pub fn take(
    machine: &Parameters,
    descriptor: &TransferDescriptor,
    reception: Reception,
) -> Vec<Step> {
    if !reception.is_let_in {
        return vec![Step::lanai(machine.discard)];
    }
    let mut steps = vec![Step::lanai(machine.deposit)];
    if !descriptor.is_fast {
        steps.push(Step::lanai(machine.find_entry));
    }
    if descriptor.metadata_bytes != 0 {
        steps.push(Step::lanai(machine.receive_metadata));
        steps.push(Step::into_host(machine, descriptor.metadata_bytes));
    }
    steps.push(Step::into_host(machine, descriptor.data_bytes));
    if descriptor.is_counted {
        let accumulate = Step::lanai(machine.accumulate);
        if machine.keeps_accumulators {
            steps.push(accumulate);
        } else {
            // The one access to host memory that something waits for.
            steps.push(Step {
                then: machine.crossing.read,
                ..Step::out_of_host(machine, ACCUMULATOR_BYTES)
            });
            steps.push(accumulate);
            steps.push(Step::into_host(machine, ACCUMULATOR_BYTES));
        }
    }
    if reception.is_announced {
        steps.push(Step::lanai(machine.notify));
        steps.push(Step::into_host(machine, NOTIFICATION_BYTES));
    }
    steps
}

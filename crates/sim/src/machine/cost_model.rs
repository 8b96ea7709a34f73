//! The cost model: charges processors and cards for packets of the world's programs.
//!
//! The library takes no virtual time by itself, so what its software takes is charged here: once for each message that is sent,
//! and once for each that is announced. Messages in fast mode are charged as the world's creator says, raw or by the library's
//! tagged remote write; all others as datagrams.

use std::collections::BTreeMap;

use hamlyn_engine::limits::DIRECT_BYTES_MAX;
use hamlyn_engine::packet::{Header, SlotName};

use super::Protocol;
use super::card::TransferDescriptor;
use super::parameters::{Parameters, Software};
use crate::time::{Span, Time};

/// Shares of a message sum to this, in slots that count in 32 bits; in 64 bits to 0.
const WHOLE: u64 = 1 << 32;

/// The class of a packet: what processors and cards need to know of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PacketClass {
    pub(crate) descriptor: TransferDescriptor,
    pub(crate) protocol: Protocol,
    /// Whether it is the first of its message.
    pub(crate) is_first: bool,
    /// Whether it is the last of its message.
    pub(crate) is_last: bool,
    /// Whether the message is announced by it.
    pub(crate) is_announced: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct CostModel {
    machine: Parameters,
    fast: Protocol,
    /// Shares of messages under way, by interface, slot and metadata entry. A card has packets in the order in which they
    /// were sent, so what was sent last is announced.
    shares: BTreeMap<(u32, SlotName, u16), u64>,
    /// By node: work that is done while nothing comes, since when, and how much.
    deferred: BTreeMap<u32, (Time, Span)>,
}

impl CostModel {
    pub(crate) fn new(machine: Parameters, fast: Protocol) -> Self {
        Self {
            machine,
            fast,
            shares: BTreeMap::new(),
            deferred: BTreeMap::new(),
        }
    }

    /// Looks at a packet that is sent to that interface.
    pub(crate) fn class(&mut self, to: u32, header: &Header, payload_bytes: u64) -> PacketClass {
        let metadata_bytes = u64::from(header.metadata_length_bytes);
        let data_bytes = payload_bytes - metadata_bytes;
        let is_fast = header.is_fast();
        let is_counted = !is_fast && header.word != 0;
        let (is_first, is_last) = if is_counted {
            let place = (to, header.slot, header.metadata_index);
            let share = self.shares.entry(place).or_default();
            let is_first = *share == 0;
            *share = share.wrapping_add(header.word);
            let is_last = *share == WHOLE || *share == 0;
            if is_last {
                self.shares.remove(&place);
            }
            (is_first, is_last)
        } else {
            (true, true)
        };
        let is_direct = is_fast && metadata_bytes == 0 && data_bytes <= DIRECT_BYTES_MAX as u64;
        PacketClass {
            descriptor: TransferDescriptor {
                metadata_bytes,
                data_bytes,
                is_pulled: !is_direct,
                is_fast,
                is_counted,
            },
            protocol: if is_fast {
                self.fast
            } else {
                Protocol::Datagram
            },
            is_first,
            is_last,
            is_announced: is_last && !header.flags.is_silent(),
        }
    }

    /// What the processor does before the packet is the card's.
    pub(crate) fn sending(&self, class: &PacketClass) -> Span {
        if !class.is_first {
            return Span::ZERO;
        }
        let (machine, descriptor) = (&self.machine, &class.descriptor);
        let send = self.software(class.protocol).send;
        if !descriptor.is_pulled {
            return send + machine.direct_stores(descriptor.data_bytes);
        }
        if descriptor.metadata_bytes == 0 {
            return send + machine.gather_stores(1);
        }
        send + machine.metadata_software + machine.gather_stores(2)
    }

    /// What the processor of that node does from now on until the application has a message that was announced.
    pub(crate) fn receiving(&mut self, node: u32, now: Time, protocol: Protocol) -> Span {
        let software = self.software(protocol);
        let late = match self.deferred.remove(&node) {
            Some((since, span)) if since + span > now => (since + span).since(now),
            _ => Span::ZERO,
        };
        let takes = late + software.receive;
        self.deferred
            .insert(node, (now + takes, software.afterwards));
        takes
    }

    fn software(&self, protocol: Protocol) -> Software {
        protocol.software(&self.machine)
    }
}

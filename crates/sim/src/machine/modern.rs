//! A host pair of today on the same model: what would become of the paper's figures.
//!
//! Not measured on any machine, and no claim about one: software and control program take the paper's cycles at today's clocks,
//! the bus and the wire have their standards' rates and overheads, and what no standard says is an assumption that is
//! called so. The card works as the paper's does, one packet after the other in each direction; only fetches from host memory overlap.

use super::named::{Named, Place, named};
use super::parameters::{Bus, Crossing, Parameters, Software};
use crate::time::Span;

/// Clock of the paper's hosts (H-280).
const HOST_THEN_MHZ: u64 = 100;
/// Clock of a host of today.
const HOST_NOW_MHZ: u64 = 3_000;
/// Clock of the paper's interface processor (H-276).
const CARD_THEN_MHZ: u64 = 40;
/// Clock of a core of a data processing unit.
const CARD_NOW_MHZ: u64 = 2_500;

/// As many cycles, at today's clock of hosts.
const fn on_host(then: Span) -> Span {
    Span::from_ps(then.as_ps() * HOST_THEN_MHZ / HOST_NOW_MHZ)
}

/// As many cycles, at today's clock of cards.
const fn on_card(then: Span) -> Span {
    Span::from_ps(then.as_ps() * CARD_THEN_MHZ / CARD_NOW_MHZ)
}

const fn software(then: Software) -> Software {
    Software {
        send: on_host(then.send),
        receive: on_host(then.receive),
        afterwards: on_host(then.afterwards),
    }
}

const THEN: Parameters = Parameters::PAPER;

impl Parameters {
    /// 3 GHz hosts, PCIe 4.0 x16, cards with a processor of 2.5 GHz, Ethernet of 100 Gbit/s. Where each number is from:
    /// [`SOURCES`].
    pub const MODERN: Self = Self {
        store: Span::from_ns(5),
        raw: software(THEN.raw),
        tagged: software(THEN.tagged),
        datagram: software(THEN.datagram),
        metadata_software: on_host(THEN.metadata_software),
        bus: Bus {
            cycle: Span::from_ps(127),
            word_bytes: 4,
            transaction_max_bytes: 256,
            has_any_length: true,
            is_duplex: true,
        },
        crossing: Crossing {
            store: Span::from_ns(250),
            write: Span::from_ns(250),
            read: Span::from_ns(550),
            wire: Span::from_ns(125),
        },
        in_overhead_cycles: 6,
        in_gap_cycles: 0,
        out_overhead_cycles: 5,
        out_gap_cycles: 0,
        host_dma_start: Span::from_ns(10),
        wire_start: Span::from_ps(80 * 66),
        wire_byte: Span::from_ps(80),
        switch: Span::from_ns(300),
        arrivals_max_bytes: 16 << 20,
        outgoing_max: 32,
        keeps_accumulators: false,
        fetch_request: on_card(THEN.fetch_request),
        send_packet: on_card(THEN.send_packet),
        send_metadata: on_card(THEN.send_metadata),
        check_packet: on_card(THEN.check_packet),
        discard: on_card(THEN.discard),
        deposit: on_card(THEN.deposit),
        find_entry: on_card(THEN.find_entry),
        receive_metadata: on_card(THEN.receive_metadata),
        accumulate: on_card(THEN.accumulate),
        notify: on_card(THEN.notify),
        complete: on_card(THEN.complete),
        interrupt: on_host(THEN.interrupt),
        context_switch: on_host(THEN.context_switch),
    };

    /// The same with packet accumulators on the card. The paper keeps them in host memory, as its card had little (H-134).
    #[must_use]
    pub const fn keeping_accumulators(&self) -> Self {
        Self {
            keeps_accumulators: true,
            ..*self
        }
    }
}

named! {
    /// Where the numbers of [`Parameters::MODERN`] are from.
    SOURCES:
    Span "store to the card", "assumption: stores are combined to 64 bytes, which leave in 40 ns", store;
    Span "raw: software to send", "the paper's cycles at 3 GHz", raw.send;
    Span "raw: software to receive", "the paper's cycles at 3 GHz", raw.receive;
    Span "tagged: software to send", "the paper's cycles at 3 GHz", tagged.send;
    Span "tagged: software to receive", "the paper's cycles at 3 GHz", tagged.receive;
    Span "tagged: receiver's work afterwards", "the paper's cycles at 3 GHz", tagged.afterwards;
    Span "datagram: software to send", "the paper's cycles at 3 GHz", datagram.send;
    Span "datagram: software to receive", "the paper's cycles at 3 GHz", datagram.receive;
    Span "software for metadata", "the paper's cycles at 3 GHz", metadata_software;
    Span "bus: 4 bytes", "PCIe 4.0: 16 lanes of 16 GT/s, 128 of 130 bits, each direction", bus.cycle;
    Bytes "bus: largest transaction", "assumption: the usual largest payload of PCIe", bus.transaction_max_bytes;
    Cycles "overhead of a transaction in", "PCIe: 24 bytes around a write (framing 4, header 16, checksum 4)", in_overhead_cycles;
    Cycles "overhead of a transaction out", "PCIe: 20 bytes around a completion (framing 4, header 12, checksum 4)", out_overhead_cycles;
    Span "a store crosses the bus", "assumption: half of what a read takes, less the memory", crossing.store;
    Span "a write crosses the bus", "assumption: as a store", crossing.write;
    Span "a read crosses the bus and back", "assumption, of the order measured with pcie-bench (Neugebauer et al., SIGCOMM 2018)", crossing.read;
    Span "start of the host DMA unit", "assumption: 25 cycles of 2.5 GHz", host_dma_start;
    Span "frame around a packet", "Ethernet, IPv4, UDP: 66 bytes with preamble and gap", wire_start;
    Span "byte on the wire", "100 Gbit/s Ethernet", wire_byte;
    Span "cable and coding", "assumption: 5 m, and error correction of about 100 ns", crossing.wire;
    Span "switch", "as announced for Spectrum switches at 100 Gbit/s", switch;
    Bytes "card memory for packets that came", "assumption", arrivals_max_bytes;
    Number "packets on the card on their way out", "assumption", outgoing_max;
    Span "card: doorbell and request", "the paper's cycles at 2.5 GHz (assumption: a core of a data processing unit)", fetch_request;
    Span "card: cutting a packet", "the paper's cycles at 2.5 GHz", send_packet;
    Span "card: fetching metadata", "the paper's cycles at 2.5 GHz", send_metadata;
    Span "card: slot, key, bounds", "the paper's cycles at 2.5 GHz", check_packet;
    Span "card: discarding", "the paper's cycles at 2.5 GHz", discard;
    Span "card: addressing the deposit", "the paper's cycles at 2.5 GHz", deposit;
    Span "card: finding the metadata entry", "the paper's cycles at 2.5 GHz", find_entry;
    Span "card: depositing metadata", "the paper's cycles at 2.5 GHz", receive_metadata;
    Span "card: adding to an accumulator", "the paper's cycles at 2.5 GHz", accumulate;
    Span "card: notification", "the paper's cycles at 2.5 GHz", notify;
    Span "card: completion word", "the paper's cycles at 2.5 GHz", complete;
    Span "interrupt service", "the paper's cycles at 3 GHz", interrupt;
    Span "context switch", "the paper's cycles at 3 GHz", context_switch;
}

//! The parameters by name, with the rows of the paper that each comes from.

use super::parameters::Parameters;
use crate::time::Span;

/// Where a parameter is kept.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// A span of time.
    Span(fn(&mut Parameters) -> &mut Span),
    /// A number of bus cycles.
    Cycles(fn(&mut Parameters) -> &mut u64),
    /// A number of something else.
    Number(fn(&mut Parameters) -> &mut usize),
    /// A number of bytes.
    Bytes(fn(&mut Parameters) -> &mut u64),
}

/// A parameter by name.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// What it is.
    pub name: &'static str,
    /// The rows of the paper that it comes from, or where else it is from.
    pub source: &'static str,
    /// Where it is kept.
    pub place: Place,
}

impl Named {
    /// What it is on that machine: nanoseconds, cycles or bytes.
    pub fn value(&self, machine: &Parameters) -> f64 {
        let mut machine = *machine;
        match self.place {
            Place::Span(span) => span(&mut machine).as_ps() as f64 / 1e3,
            Place::Cycles(count) | Place::Bytes(count) => *count(&mut machine) as f64,
            Place::Number(number) => *number(&mut machine) as f64,
        }
    }

    /// Its unit.
    pub fn unit(&self) -> &'static str {
        match self.place {
            Place::Span(_) => "ns",
            Place::Cycles(_) => "cycles",
            Place::Bytes(_) => "bytes",
            Place::Number(_) => "",
        }
    }
}

macro_rules! named {
    ($(#[$about:meta])* $list:ident: $($place:ident $name:literal, $source:literal, $($field:ident).+;)*) => {
        $(#[$about])*
        pub const $list: &[Named] = &[$(Named {
            name: $name,
            source: $source,
            place: Place::$place(|machine| &mut machine.$($field).+),
        },)*];
    };
}

pub(super) use named;

named! {
    /// Those of the paper's machine.
    NAMED:
    Span "store to the card", "H-300, H-303", store;
    Span "raw: software to send", "H-301, half", raw.send;
    Span "raw: software to receive", "H-301, half", raw.receive;
    Span "tagged: software to send", "H-365 less H-300", tagged.send;
    Span "tagged: software to receive", "H-301, H-366", tagged.receive;
    Span "tagged: receiver's work afterwards", "H-366 less the above", tagged.afterwards;
    Span "datagram: software to send", "H-308", datagram.send;
    Span "datagram: software to receive", "H-308", datagram.receive;
    Span "software for metadata", "H-319", metadata_software;
    Cycles "overhead of a transaction in", "H-282", in_overhead_cycles;
    Cycles "gap between transactions in", "H-316", in_gap_cycles;
    Cycles "overhead of a transaction out", "H-283", out_overhead_cycles;
    Cycles "gap between transactions out", "H-334, H-310 as read", out_gap_cycles;
    Span "start of the host DMA unit", "H-297, H-310, H-311", host_dma_start;
    Span "start of a network DMA unit", "H-297", wire_start;
    Span "byte on the wire", "H-274, H-315", wire_byte;
    Span "switch", "H-275, H-299", switch;
    Bytes "card memory for packets that came", "H-277, half", arrivals_max_bytes;
    Span "LANai: doorbell and request", "H-298, H-308", fetch_request;
    Span "LANai: cutting a packet", "H-298, H-334", send_packet;
    Span "LANai: fetching metadata", "H-319", send_metadata;
    Span "LANai: slot, key, bounds", "H-298, H-394", check_packet;
    Span "LANai: discarding", "H-394", discard;
    Span "LANai: addressing the deposit", "H-298", deposit;
    Span "LANai: finding the metadata entry", "H-341", find_entry;
    Span "LANai: depositing metadata", "H-319", receive_metadata;
    Span "LANai: adding to an accumulator", "H-341", accumulate;
    Span "LANai: notification", "H-298, H-308", notify;
    Span "LANai: completion word", "H-353", complete;
    Span "interrupt service", "H-328 less H-308, H-330", interrupt;
    Span "context switch", "H-330", context_switch;
}

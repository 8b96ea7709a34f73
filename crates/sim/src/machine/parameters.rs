//! The machine of the paper in numbers: the only ones that its figures come from (`Hamlyn 4`).
//!
//! Each names the rows of the paper (`docs/papers.md`) that it comes from. Where the paper gives one number for several steps, how
//! it is split is a parameter too, and the reasoning stands beside it.

use crate::time::Span;

/// A cycle of the I/O bus and of the interface processor: 40 MHz (H-276, H-281).
pub const BUS_CYCLE: Span = Span::from_ps(25_000);
/// Bytes that the bus moves in a cycle: it is 32 bits wide (H-281).
pub const BUS_WORD_BYTES: u64 = 4;
/// The largest transaction; smaller ones are powers of two (H-317, H-318).
pub const TRANSACTION_MAX_BYTES: u64 = 32;
/// Bytes of a header on the wire and in a transmission request (H-087).
pub const HEADER_BYTES: u64 = 32;
/// Bytes of an entry of the notification queue: two words and padding, one transaction (H-168).
pub const NOTIFICATION_BYTES: u64 = 16;
/// Bytes of a packet accumulator (H-134).
pub const ACCUMULATOR_BYTES: u64 = 4;
/// Bytes of a completion word (H-101).
pub const COMPLETION_BYTES: u64 = 4;
/// Bytes that a store instruction of the host moves. Header and 16 bytes in 8 stores, with the two below, need stores of
/// 64 bits (H-303, as it is read here).
pub const STORE_BYTES: u64 = 8;
/// Stores of a request besides its header and data: what kind of request it is, and the doorbell (H-104, H-303).
pub const REQUEST_STORES: u64 = 2;
/// Stores of a gather tuple: tag, offset and length in 64 bits (H-112 to H-114).
pub const TUPLE_STORES: u64 = 1;

/// A way between host memory and the card that moves words in cycles, in transactions that have overhead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bus {
    /// A cycle.
    pub cycle: Span,
    /// Bytes that it moves in one.
    pub word_bytes: u64,
    /// The largest transaction.
    pub transaction_max_bytes: u64,
    /// Whether transactions have any number of words; otherwise it is a power of two.
    pub has_any_length: bool,
    /// Whether the two directions are independent of each other.
    pub is_duplex: bool,
}

impl Bus {
    /// Of the paper's workstation.
    pub const PAPER: Self = Self {
        cycle: BUS_CYCLE,
        word_bytes: BUS_WORD_BYTES,
        transaction_max_bytes: TRANSACTION_MAX_BYTES,
        has_any_length: false,
        is_duplex: false,
    };

    /// The transactions that so many bytes take, as (how many, of how many bytes): whole words, largest first.
    pub fn transactions(self, length_bytes: u64) -> impl Iterator<Item = (u64, u64)> {
        let most = self.transaction_max_bytes;
        let whole = length_bytes.next_multiple_of(self.word_bytes);
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

    /// How long so many bytes occupy it, with such an overhead of each transaction.
    pub fn span(self, length_bytes: u64, overhead_cycles: u64) -> Span {
        let cycles: u64 = self
            .transactions(length_bytes)
            .map(|(count, size)| count * (size / self.word_bytes + overhead_cycles))
            .sum();
        self.cycle * cycles
    }
}

/// Latencies during which nothing is occupied: others use the same way meanwhile. The paper's machine has none, as its
/// figures contain them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Crossing {
    /// From a store of the processor until the card sees it.
    pub store: Span,
    /// From the end of a deposit until the processor sees it.
    pub write: Span,
    /// From a request for host memory until its bytes begin to come.
    pub read: Span,
    /// Of cable and coding between two cards, besides the switch.
    pub wire: Span,
}

/// Host software of one way to send and receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Software {
    /// Before the stores of the request.
    pub send: Span,
    /// From the notification to the application.
    pub receive: Span,
    /// Work of the receiver that delays nobody: the message is at hand already.
    pub afterwards: Span,
}

/// What the steps of a packet occupy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// A store of the processor to the card: 1.4 µs for 8 (H-300, H-303).
    pub store: Span,
    /// Software beneath nothing but the application: 0.8 µs (H-301), half on each side as the paper says nothing.
    pub raw: Software,
    /// Tagged remote write: 2.2 µs (H-301). Sending is 260 cycles of 10 ns (H-365) less the stores of 1.4 µs; receiving is 120
    /// cycles (H-366), of which Table 4 leaves room for 1.0 µs before the message is at hand.
    pub tagged: Software,
    /// Datagrams: 2.6 µs, so that a normal message of no length takes 17.4 µs (H-308) when the card's additional work on it is
    /// [`Parameters::find_entry`]. A little more than tagged remote write, which follows no pointer to a receiver.
    pub datagram: Software,
    /// What the library does for metadata: translating addresses, copying into wired memory. The larger part of what of
    /// 7.7 µs (H-319) is neither DMA nor stores.
    pub metadata_software: Span,

    /// What leads to host memory.
    pub bus: Bus,
    /// Latencies besides.
    pub crossing: Crossing,
    /// Overhead of a bus transaction into the host, in cycles: 32 bytes in 12 cycles are 106 MB/s (H-282).
    pub in_overhead_cycles: u64,
    /// Cycles between two of them: 32 bytes in 15 cycles are 85 MB/s, 11.7 ns/byte (H-316).
    pub in_gap_cycles: u64,
    /// Overhead of a bus transaction out of the host, in cycles: 32 bytes in 40 cycles are 32 MB/s (H-283).
    pub out_overhead_cycles: u64,
    /// Cycles between two of them. One: 30.7 MB/s of 4 KB packets (H-334) and 2.5 µs more to receive 256 bytes than to send them
    /// (H-310 as it is read here) leave 2.2 µs a packet and 32.0 ns/byte, which is 41 cycles.
    pub out_gap_cycles: u64,
    /// Starting the card's host DMA unit. With [`Parameters::wire_start`] what Table 4's 3.3 µs (H-297) leave when 48 bytes on the
    /// wire and two transactions of 16 bytes are subtracted; half each, so that the first step of Figure 7 is higher than the later
    /// ones by one accumulator update of 2.45 µs (H-310, H-311).
    pub host_dma_start: Span,
    /// Starting one of the card's network DMA units, on each side.
    pub wire_start: Span,
    /// A byte on the wire: 80 MB/s (H-054, H-274, H-315).
    pub wire_byte: Span,
    /// From port to port of the switch (H-275, H-299).
    pub switch: Span,
    /// Packets that wait in a card take at most so much of its memory; half of 512 KB (H-277), the rest being
    /// program, slots and termini. When it is full the wire stands still (H-204).
    pub arrivals_max_bytes: u64,
    /// Packets on a card that wait for the link, or are on their way to it; the one after is not fetched before there is room.
    pub outgoing_max: usize,
    /// Whether the card keeps packet accumulators itself, and does not fetch them from host memory for each packet (H-134).
    pub keeps_accumulators: bool,

    // The control program of the interface processor. In fast mode it takes 6.7 µs in all (H-298), of which these
    // are the parts; receiving 256 bytes of a longer message takes 12.9 µs (H-341).
    /// Seeing the doorbell and reading the request, per message.
    pub fetch_request: Span,
    /// Cutting a packet and starting it: what 133.4 µs a packet of 4 KB (H-334) leave beside its DMA.
    pub send_packet: Span,
    /// Fetching metadata besides (H-319).
    pub send_metadata: Span,
    /// Slot, key and bounds of a packet; a good part of the 3 µs in which a bad one is known (H-394).
    pub check_packet: Span,
    /// Getting rid of a refused packet: the rest of those 3 µs.
    pub discard: Span,
    /// Addressing the deposit of one that is let in.
    pub deposit: Span,
    /// Finding the metadata entry, of packets that name one: what is left of the 12.9 µs.
    pub find_entry: Span,
    /// Depositing metadata besides (H-319).
    pub receive_metadata: Span,
    /// Adding to an accumulator that was fetched.
    pub accumulate: Span,
    /// Composing a notification and moving the cursor.
    pub notify: Span,
    /// Telling the sender that its message is out. Off the message's way, except in loopback, whose 19.1 µs (H-353) it is taken from.
    pub complete: Span,

    /// Interrupt service for a sleeping receiver: what 78 µs (H-328) leave beside a message and a context switch.
    pub interrupt: Span,
    /// A context switch (H-330).
    pub context_switch: Span,
}

impl Parameters {
    /// The prototype: LANai 4.0, Myrinet, HP J200.
    pub const PAPER: Self = Self {
        store: Span::from_ns(175),
        raw: Software {
            send: Span::from_ns(400),
            receive: Span::from_ns(400),
            afterwards: Span::ZERO,
        },
        tagged: Software {
            send: Span::from_ns(1_200),
            receive: Span::from_ns(1_000),
            afterwards: Span::from_ns(200),
        },
        datagram: Software {
            send: Span::from_ns(1_400),
            receive: Span::from_ns(1_200),
            afterwards: Span::ZERO,
        },
        metadata_software: Span::from_ns(3_325),
        bus: Bus::PAPER,
        crossing: Crossing {
            store: Span::ZERO,
            write: Span::ZERO,
            read: Span::ZERO,
            wire: Span::ZERO,
        },
        in_overhead_cycles: 4,
        in_gap_cycles: 3,
        out_overhead_cycles: 32,
        out_gap_cycles: 1,
        host_dma_start: Span::from_ns(550),
        wire_start: Span::from_ns(525),
        wire_byte: Span::from_ps(12_500),
        switch: Span::from_ns(500),
        arrivals_max_bytes: 256 * 1024,
        outgoing_max: 2,
        keeps_accumulators: false,
        fetch_request: Span::from_ns(450),
        send_packet: Span::from_ns(1_650),
        send_metadata: Span::from_ns(1_000),
        check_packet: Span::from_ns(2_700),
        discard: Span::from_ns(300),
        deposit: Span::from_ns(1_200),
        find_entry: Span::from_ns(3_000),
        receive_metadata: Span::from_ns(1_000),
        accumulate: Span::from_ns(300),
        notify: Span::from_ns(700),
        complete: Span::from_ns(1_625),
        interrupt: Span::from_ns(29_600),
        context_switch: Span::from_us(31),
    };

    /// The projection of section 4.4: state machines that take no time instead of the control program (H-356).
    #[must_use]
    pub const fn without_control_program(&self) -> Self {
        Self {
            fetch_request: Span::ZERO,
            send_packet: Span::ZERO,
            send_metadata: Span::ZERO,
            check_packet: Span::ZERO,
            discard: Span::ZERO,
            deposit: Span::ZERO,
            find_entry: Span::ZERO,
            receive_metadata: Span::ZERO,
            accumulate: Span::ZERO,
            notify: Span::ZERO,
            complete: Span::ZERO,
            ..*self
        }
    }

    /// What a DMA out of host memory occupies the bus, its start included. One of no bytes is started, too.
    pub fn dma_out(&self, length_bytes: u64) -> Span {
        let overhead_cycles = self.out_overhead_cycles + self.out_gap_cycles;
        self.host_dma_start + self.bus.span(length_bytes, overhead_cycles)
    }

    /// The same of a DMA into host memory.
    pub fn dma_in(&self, length_bytes: u64) -> Span {
        let overhead_cycles = self.in_overhead_cycles + self.in_gap_cycles;
        self.host_dma_start + self.bus.span(length_bytes, overhead_cycles)
    }

    /// What a packet with so much payload occupies a link.
    pub fn wire(&self, payload_bytes: u64) -> Span {
        self.wire_byte * (HEADER_BYTES + payload_bytes)
    }

    /// Stores of a request that brings its data itself (direct I/O).
    pub fn direct_stores(&self, data_bytes: u64) -> Span {
        self.store * ((HEADER_BYTES + data_bytes).div_ceil(STORE_BYTES) + REQUEST_STORES)
    }

    /// Stores of a request that says where its data lie, in so many pieces.
    pub fn gather_stores(&self, pieces: u64) -> Span {
        self.store * (HEADER_BYTES / STORE_BYTES + REQUEST_STORES + pieces * TUPLE_STORES)
    }
}

/// The transactions that so many bytes take on the paper's bus.
pub fn transactions(length_bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    Bus::PAPER.transactions(length_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_are_powers_of_two_of_whole_words() {
        let list = |bytes| transactions(bytes).collect::<Vec<_>>();
        assert_eq!(list(0), []);
        assert_eq!(list(1), [(1, 4)]);
        // The paper's example (H-318).
        assert_eq!(list(28), [(1, 16), (1, 8), (1, 4)]);
        assert_eq!(list(32), [(1, 32)]);
        assert_eq!(list(101), [(3, 32), (1, 8)]);
        for bytes in 0..200 {
            let sum: u64 = list(bytes).iter().map(|(count, size)| count * size).sum();
            assert_eq!(sum, bytes.div_ceil(4) * 4);
        }
    }

    #[test]
    fn transactions_of_any_length_are_as_few_as_can_be() {
        let bus = Bus {
            has_any_length: true,
            ..Bus::PAPER
        };
        let list = |bytes| bus.transactions(bytes).collect::<Vec<_>>();
        assert_eq!(list(0), []);
        assert_eq!(list(26), [(1, 28)]);
        assert_eq!(list(64), [(2, 32)]);
        assert_eq!(list(101), [(3, 32), (1, 8)]);
        assert_eq!(bus.span(101, 2), BUS_CYCLE * (3 * (8 + 2) + 2 + 2));
    }

    #[test]
    fn eight_stores_for_sixteen_bytes() {
        let machine = Parameters::PAPER;
        assert_eq!(machine.direct_stores(16), machine.store * 8);
    }
}

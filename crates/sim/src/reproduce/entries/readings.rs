//! Where the paper contradicts itself or is silent, and what the machine and the report follow.

use crate::reproduce::report::Reading;

/// All of them: first those that reading found, then those that building the machine did.
pub(super) const READINGS: &[Reading] = &[
    Reading {
        place: "4.2 against 4.3",
        says: "receiving 256 bytes takes 12.5 µs more than sending them; receiving takes 12.9 µs in all",
        follows: "12.9 in all, and 2.5 more than sending (10.4 µs). 12.5 is then the height of the first step of Figure 7",
        rows: "H-310, H-341",
    },
    Reading {
        place: "Figure 7 against 4.3",
        says: "256-byte packets cost 55.5 ns/byte throughout; they reach 20 MB/s",
        follows: "20 MB/s: 55.5 holds in the first packet, later ones wait for the receiver only",
        rows: "H-313, H-342",
    },
    Reading {
        place: "4.3",
        says: "30.7 MB/s is the slope of Figure 7",
        follows: "of Figure 8, the one with 4 KB packets",
        rows: "H-334",
    },
    Reading {
        place: "4.2",
        says: "incoming DMA takes 11.7 or 11.6 ns/byte",
        follows: "11.72, which is 15 bus cycles for 32 bytes",
        rows: "H-316, H-324",
    },
    Reading {
        place: "Abstract, 4.3, S29",
        says: "the asymptote is 30.7, 28 or 29 MB/s",
        follows: "30.7 is the slope of 4 KB packets; 28 and 29 are what 40 KB messages reach, the first packet's stages not overlapping",
        rows: "H-003, H-346, H-409",
    },
    Reading {
        place: "S29",
        says: "29 MB/s is 96 % of the bus; 26 µs at 26 % of the processor",
        follows: "96 % is 30.7's share; 26 µs is the raw round trip, 26 % the library's share",
        rows: "H-408, H-410",
    },
    Reading {
        place: "4.3",
        says: "a 4 KB packet holds a DMA channel for about 50 µs",
        follows: "the incoming one and the link; the outgoing one 131 µs",
        rows: "H-350",
    },
    Reading {
        place: "Abstract, 5.4",
        says: "fewer cycles than Active Messages, which are counted in instructions",
        follows: "the comparison is repeated as it stands, and said to be unlike",
        rows: "H-004",
    },
    Reading {
        place: "Tables 1 to 3",
        says: "84 of 128 bytes are accounted for; base and bound against offset and length; a notification index that is defined nowhere",
        follows: "the engine's own entry, header and notification; on the machine they have the paper's sizes of 128, 32 and 16 bytes",
        rows: "H-087",
    },
    Reading {
        place: "2.3",
        says: "63 entries, and sequence numbers modulo the queue's size",
        follows: "63 entries may be in use; sequence numbers do not wrap",
        rows: "H-100, H-102",
    },
    Reading {
        place: "4.1",
        says: "8 stores for 13 words of 32 bits",
        follows: "stores of 64 bits: 6 for header and data, 1 for the kind of request, 1 for the doorbell",
        rows: "H-303",
    },
    Reading {
        place: "2.5",
        says: "shares that sum to 2^32 modulo 2^32 announce in time",
        follows: "the engine's rule, which is sufficient: positive shares that sum to exactly 2^32",
        rows: "H-157",
    },
    Reading {
        place: "2.7 against 2.8",
        says: "two bounds against overrun of the notification queue",
        follows: "the engine tells of an overrun; no experiment here comes near it",
        rows: "H-175, H-184",
    },
    Reading {
        place: "4.2 against 4.3, once more",
        says: "2.5 µs less to send 256 bytes than to receive them, and 30.7 MB/s of 4 KB packets: together not with 31.25 ns/byte of outgoing DMA",
        follows: "32.0 ns/byte: the bus does 32 MB/s, and one cycle passes between two transactions, as three do on the way in",
        rows: "H-310, H-314, H-334",
    },
    Reading {
        place: "Table 4 against 5.4",
        says: "the library's software and stores are 3.6 µs, or 380 cycles, which are 3.8",
        follows: "0.2 µs of the receiver's work come after the message is at hand",
        rows: "H-301, H-366",
    },
    Reading {
        place: "4.2, 5.4",
        says: "17.4 µs + 32.6 ns/byte for longer messages",
        follows: "17.4 µs at no data and 32.6 ns/byte for whole packets from the second on; the first packet of 4 KB takes 248 µs, the law says 151",
        rows: "H-002, D-10",
    },
    Reading {
        place: "4.2",
        says: "17.4 µs is the cost at no data, but a line through it fits only if DMA units are started",
        follows: "the control program starts them whatever the length",
        rows: "H-308",
    },
];

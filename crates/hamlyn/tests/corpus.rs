//! Replays the committed corpora of the fuzzers of tickets, members, seeds and cells, and damaged
//! copies of them from a fixed seed, in plain `cargo test`.

#[path = "../../../lab/fuzz/src/cell.rs"]
#[allow(
    unreachable_pub,
    missing_docs,
    reason = "the harness belongs to the fuzz crate"
)]
mod cell;
#[path = "../../../lab/fuzz/src/member.rs"]
#[allow(
    unreachable_pub,
    missing_docs,
    reason = "the harness belongs to the fuzz crate"
)]
mod member;
#[path = "../../../lab/fuzz/src/seed.rs"]
#[allow(
    unreachable_pub,
    missing_docs,
    reason = "the harness belongs to the fuzz crate"
)]
mod seed;
#[path = "../../../lab/fuzz/src/ticket.rs"]
#[allow(
    unreachable_pub,
    missing_docs,
    reason = "the harness belongs to the fuzz crate"
)]
mod ticket;

use std::fs;
use std::path::PathBuf;

use hamlyn::engine::counting::{Counting, Share};
use hamlyn::engine::key::Key;
use hamlyn::engine::packet::SlotName;
use hamlyn::group::Member;
use hamlyn::{Destination, Ticket};

fn corpus(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../lab/fuzz/corpus")
        .join(name)
}

/// A seed by hand: its name, its bytes, and whether it is accepted (with its sums put right).
type Seed = (String, Vec<u8>, bool);

fn tickets() -> Vec<(&'static str, Ticket)> {
    let plain = Ticket {
        destination: Destination {
            node: 0,
            user: 1000,
            interface: 0x0123_4567_89AB_CDEF,
        },
        slot: SlotName::from_bits(3),
        metadata_index: 0,
        key: Key::from_bits(0xFEDC_BA98_7654_3210),
        base: 0,
        length_bytes: 4096,
        counting: Counting::Bits32,
        kind: hamlyn::ticket::TicketKind::Slot,
    };
    vec![
        ("plain", plain),
        (
            "fast",
            Ticket {
                metadata_index: u16::MAX,
                ..plain
            },
        ),
        (
            "narrowed",
            Ticket {
                base: 100,
                length_bytes: 1,
                ..plain
            },
        ),
        (
            "empty",
            Ticket {
                length_bytes: 0,
                ..plain
            },
        ),
        (
            "wide",
            Ticket {
                counting: Counting::Bits64,
                kind: hamlyn::ticket::TicketKind::Slot,
                ..plain
            },
        ),
        (
            "largest",
            Ticket {
                length_bytes: u64::MAX,
                ..plain
            },
        ),
        (
            "last_byte",
            Ticket {
                base: u64::MAX - 1,
                length_bytes: 1,
                ..plain
            },
        ),
    ]
}

fn ticket_seeds() -> Vec<Seed> {
    let mut seeds: Vec<Seed> = tickets()
        .into_iter()
        .map(|(name, ticket)| (name.to_owned(), ticket.to_bytes().to_vec(), true))
        .collect();
    let plain = seeds[0].1.clone();
    let with = |at: usize, bytes: &[u8]| {
        let mut changed = plain.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    };
    seeds.push(("nothing".to_owned(), Vec::new(), false));
    seeds.push(("cut".to_owned(), plain[..47].to_vec(), false));
    seeds.push(("other_version".to_owned(), with(0, &[2]), false));
    seeds.push(("port".to_owned(), with(1, &[2, 0xFF, 0xFF]), true));
    seeds.push(("port_with_entry".to_owned(), with(1, &[2, 0, 0]), false));
    seeds.push(("other_flags".to_owned(), with(1, &[3]), false));
    seeds.push(("bounds_overflow".to_owned(), with(32, &[0xFF; 16]), false));
    seeds
}

fn member_seeds() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for (name, ticket) in tickets() {
        let whole = Share::whole(ticket.counting);
        let one = Share::from_minus_one(0, ticket.counting).expect("the smallest");
        for (kind, share) in [("whole", whole), ("one", one)] {
            let bytes = Member { ticket, share }.to_bytes().to_vec();
            seeds.push((format!("{name}_{kind}"), bytes, true));
        }
    }
    let plain = seeds[0].1.clone();
    seeds.push(("cut".to_owned(), plain[..55].to_vec(), false));
    let mut beyond = plain;
    beyond[48..56].fill(0xFF);
    seeds.push(("share_beyond_32_bits".to_owned(), beyond, false));
    seeds
}

fn seed_seeds() -> Vec<Seed> {
    let ticket = tickets()[0].1;
    let control = !ticket.slot.to_bits();
    // The number of pieces, the exponent of their size, and the longest record.
    let of =
        |pieces: u64, exponent: u64, length_bytes: u64, limit_bytes: u64, control_slot: u32| {
            let ticket = Ticket {
                length_bytes,
                ..ticket
            };
            let shape = pieces | exponent << 16 | limit_bytes.min(u64::MAX >> 24) << 24;
            let mut bytes = [
                &ticket.to_bytes()[..],
                &shape.to_le_bytes(),
                &control_slot.to_le_bytes(),
                &0x0123_4567_89AB_CDEF_u64.to_le_bytes(),
            ]
            .concat();
            bytes.extend(seed::check_sum(&bytes).to_le_bytes());
            bytes
        };
    let seed =
        |pieces, exponent, length_bytes| of(pieces, exponent, length_bytes, length_bytes, control);
    let seeds = [
        ("plain", seed(16, 16, 1 << 20), true),
        ("grows", of(16, 16, 1 << 20, 1 << 26, control), true),
        ("smallest", seed(1, 6, 64), true),
        ("largest", seed(65_535, 30, 65_535 << 30), true),
        ("no_pieces", seed(0, 6, 0), false),
        ("large_pieces", seed(1, 31, 1 << 31), false),
        ("impossible_pieces", seed(4, 255, 400), false),
        ("small_pieces", seed(4, 5, 128), false),
        ("short_ticket", seed(4, 6, 255), false),
        ("short_limit", of(4, 6, 256, 255, control), false),
        ("cut", seed(4, 6, 256)[..60].to_vec(), false),
        ("one_slot", of(4, 6, 256, 256, ticket.slot.to_bits()), false),
    ];
    seeds
        .map(|(name, bytes, good)| (name.to_owned(), bytes, good))
        .to_vec()
}

fn cell_seeds() -> Vec<Seed> {
    // Flag, kind, flags, metadata length, placement; slot; key; offset; length, place; word.
    let cell = |metadata: u64, bits: u64, index: u64, length: u64, place: u64| {
        let words = [
            // Of a packet that is not short.
            1 | metadata << 48 | (bits | 8) << 56,
            3 | index << 32,
            0xFEDC_BA98_7654_3210,
            40,
            length | place << 32,
            7,
            1,
            2,
        ];
        // 1 MiB of payload arena, packets of 16 KiB.
        let words = words.map(u64::to_le_bytes);
        [&[4], words.as_flattened()].concat()
    };
    // Flag, length, placement; slot; key; offset; word; data.
    let short = |length: u64, bits: u64, index: u64| {
        let first = 1 | length << 32 | bits << 56;
        let words = [
            first,
            3 | index << 32,
            0xFEDC_BA98_7654_3210,
            40,
            7,
            1,
            2,
            3,
        ];
        [&[4], words.map(u64::to_le_bytes).as_flattened()].concat()
    };
    // Flag, length, handler, abbreviation of a message to a port; data.
    let message = |length: u64, handler: u64, abbreviation: u64| {
        let first = 1 | length << 32 | handler << 43 | abbreviation << 55 | 1 << 63;
        let words = [first, 1, 2, 3, 4, 5, 6, 7];
        [&[4], words.map(u64::to_le_bytes).as_flattened()].concat()
    };
    let fast = 0xFFFF;
    // Of a ring in which a packet may take several cells.
    let in_cells = |mut bytes: Vec<u8>| {
        bytes[0] += 18;
        bytes
    };
    let seeds = [
        ("cells", in_cells(short(33, 0, fast)), true),
        ("cells_longest", in_cells(short(1_032, 0, fast)), true),
        ("cells_too_many", in_cells(short(1_033, 0, fast)), false),
        ("cells_with_metadata", in_cells(short(25, 2, 0)), true),
        (
            "cells_beside_a_word",
            in_cells(short(4_096 + 25, 0, fast)),
            true,
        ),
        (
            "cells_beside_a_word_longer",
            in_cells(short(4_096 + 33, 0, fast)),
            false,
        ),
        (
            "cells_beside_a_word_and_metadata",
            in_cells(short(4_096 + 25, 2, 0)),
            false,
        ),
        ("cells_not_short", in_cells(cell(0, 0, 0, 1_024, 0)), true),
        (
            "cells_not_short_too_many",
            in_cells(cell(0, 0, 0, 1_025, 0)),
            false,
        ),
        ("cell_that_continues", in_cells(short(0, 16, 0)), false),
        ("message", message(56, 4_095, 254), true),
        ("message_empty", message(0, 0, 0), true),
        ("message_too_long", message(57, 0, 0), false),
        ("message_in_cells", in_cells(message(1_064, 1, 2)), true),
        ("message_in_too_many", in_cells(message(1_065, 1, 2)), false),
        ("message_to_nothing", message(8, 0, 1), false),
        ("short", short(16, 0, 0), true),
        ("short_empty", short(0, 0, fast), true),
        ("short_longest", short(32, 0, fast), true),
        ("short_too_long", short(33, 0, fast), false),
        ("short_with_metadata", short(24, 2, 0), true),
        ("short_with_metadata_too_long", short(25, 2, 0), false),
        ("short_metadata_in_fast_mode", short(16, 2, fast), false),
        ("inline", cell(0, 0, 0, 16, 0), true),
        ("empty", cell(0, 0, 0, 0, 0), true),
        ("fast", cell(0, 0, fast, 8, 0), true),
        ("metadata_in_word", cell(8, 2, 0, 16, 0), true),
        ("bulk", cell(0, 1, 0, 16_384, 64), true),
        ("bulk_with_metadata", cell(60, 1, 0, 1000, 128), true),
        ("bulk_with_word", cell(5, 3, 0, 1000, 128), true),
        ("bulk_to_the_end", cell(0, 1, 0, 64, (1 << 20) - 64), true),
        ("too_long_for_a_cell", cell(0, 0, 0, 17, 0), false),
        ("metadata_nowhere", cell(4, 0, 0, 8, 0), false),
        ("metadata_too_long", cell(61, 1, 0, 8, 0), false),
        ("word_too_long", cell(9, 2, 0, 8, 0), false),
        ("word_of_nothing", cell(0, 2, 0, 8, 0), false),
        ("word_in_fast_mode", cell(8, 2, fast, 8, 0), false),
        ("unknown_placement", cell(0, 4, 0, 8, 0), false),
        (
            "fence",
            std::iter::once(1)
                .chain([2, 0, 0, 0, 0, 0, 0, 4])
                .chain([0; 56])
                .collect(),
            false,
        ),
        ("beyond_the_payload", cell(0, 1, 0, 16_385, 0), false),
        ("beyond_the_bulk", cell(0, 1, 0, 65, (1 << 20) - 64), false),
        ("crooked_place", cell(0, 1, 0, 8, 32), false),
        (
            "place_far_away",
            cell(0, 1, 0, 8, u32::MAX as u64 & !63),
            false,
        ),
    ];
    seeds
        .map(|(name, bytes, good)| (name.to_owned(), bytes, good))
        .to_vec()
}

/// With `HAMLYN_WRITE_CORPUS` set, writes the files instead of comparing them. Then runs every
/// file, and damaged copies of each.
fn replay(name: &str, seeds: &[Seed], accepts: impl Fn(&[u8]) -> bool) {
    let directory = corpus(name);
    for (seed, bytes, good) in seeds {
        let path = directory.join(seed);
        if std::env::var_os("HAMLYN_WRITE_CORPUS").is_some() {
            fs::create_dir_all(&directory).expect("writable");
            fs::write(&path, bytes).expect("writable");
        }
        assert_eq!(
            fs::read(&path).ok().as_ref(),
            Some(bytes),
            "{name}/{seed} is not fresh"
        );
        assert_eq!(accepts(bytes), *good, "{name}/{seed}");
    }
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as usize
    };
    for file in fs::read_dir(&directory).expect("a committed corpus") {
        let path = file.expect("readable").path();
        // The name of a failing one is the last that is printed.
        println!("{}", path.display());
        let bytes = fs::read(&path).expect("readable");
        accepts(&bytes);
        for _ in 0..2_000 {
            let mut damaged = bytes.clone();
            for _ in 0..random() % 4 {
                if !damaged.is_empty() {
                    let at = random() % damaged.len();
                    damaged[at] = random() as u8;
                }
            }
            damaged.truncate(damaged.len() - (random() % 64 == 0) as usize * damaged.len() / 2);
            accepts(&damaged);
        }
    }
}

#[test]
fn the_corpus_of_tickets_passes() {
    replay("ticket", &ticket_seeds(), |bytes| {
        ticket::run(bytes).is_ok()
    });
}

#[test]
fn the_corpus_of_members_passes() {
    replay("member", &member_seeds(), |bytes| {
        member::run(bytes).is_ok()
    });
}

#[test]
fn the_corpus_of_stream_seeds_passes() {
    replay("seed", &seed_seeds(), |bytes| seed::run(bytes).is_ok());
}

#[test]
fn the_corpus_of_cells_passes() {
    replay("cell", &cell_seeds(), |bytes| {
        matches!(cell::run(bytes), Some(Ok(_)))
    });
}

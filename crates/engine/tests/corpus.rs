//! Replays the committed corpus of the fuzzer, and as much again of bytes from a
//! fixed seed, in plain `cargo test`.

#[path = "../../../lab/fuzz/src/engine_receive.rs"]
#[allow(
    unreachable_pub,
    missing_docs,
    reason = "the harness belongs to the fuzz crate"
)]
mod engine_receive;

use hamlyn_engine::receive::Received;
use hamlyn_engine::refusal::Refusal;
use std::fs;
use std::path::{Path, PathBuf};

type Outcome = Result<Received, Refusal>;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/fuzz/corpus/engine_receive")
}

#[test]
fn every_seed_of_the_corpus_passes() {
    let files: Vec<_> = fs::read_dir(corpus())
        .expect("a committed corpus")
        .map(|file| file.expect("readable").path())
        .collect();
    assert!(files.len() >= 30, "only {} seeds", files.len());
    for file in files {
        let bytes = fs::read(&file).expect("readable");
        // The name of a failing one is the last that is printed.
        println!("{}", file.display());
        engine_receive::run(&bytes);
    }
}

/// Numbers that are the same each time.
fn random(seed: u64) -> impl FnMut() -> u8 {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    }
}

#[test]
fn bytes_from_a_fixed_seed_pass() {
    for seed in 0..3_000 {
        let mut next = random(seed);
        let bytes: Vec<u8> = (0..600).map(|_| next()).collect();
        engine_receive::run(&bytes);
    }
}

/// Histories by hand: what each of the operations and refusals looks like to the fuzzer. The
/// committed files are exactly these, so that they follow when the format changes.
fn seeds() -> Vec<(&'static str, Vec<u8>, Outcome)> {
    use Refusal::*;
    // Operation, slot, entry, key, offset / 5, length, delta, metadata length, flags.
    let packet =
        |slot: u8,
         entry: u8,
         key: u8,
         offset: u8,
         length: u8,
         delta: u8,
         metadata: u8,
         flags: u8| { vec![9, slot, entry, key, offset, length, delta, metadata, flags] };
    let permit = |entry: u8, low: u8, high: u8| vec![4, entry, 1, low, high];
    let join = |parts: &[Vec<u8>]| parts.concat();
    let good = packet(0, 0, 1, 2, 8, 0, 0, 0);
    let wild = |slot: [u8; 4], length: [u8; 4], flags: u8, kind: u8| {
        [
            &[9, 0xF0][..],
            &slot,
            &[0, 1, 2],
            &length,
            &[0, 0, flags, kind],
        ]
        .concat()
    };
    // To the port: group, length, handler, flags.
    let message = |group: u8, length: u8, handler: u8, flags: u8| {
        [
            &[9, 0xF0, 0, 0, 0, 0, 0x80, 1, group, length, 0, 0, 0][..],
            &[handler, 0, flags, 3],
        ]
        .concat()
    };
    let open = permit(0, 0, 60);
    let one_shot = join(&[open.clone(), vec![5, 0], packet(2, 0, 1, 0, 9, 0, 0, 0)]);
    let complete = Ok(Received::Complete);
    vec![
        ("welcome", good.clone(), complete),
        ("message", message(0, 64, 0, 0), Ok(Received::Queued)),
        ("message_wrong_group", message(1, 64, 0, 0), Err(WrongGroup)),
        (
            "message_no_handler",
            message(0, 64, 1, 0),
            Err(NoSuchHandler),
        ),
        ("message_with_flags", message(0, 64, 0, 1), Err(UnknownFlag)),
        (
            "message_too_long",
            message(0, 255, 0, 0),
            Ok(Received::Queued),
        ),
        (
            "message_queue_full",
            join(&[message(0, 200, 0, 0), message(0, 1, 0, 0)]),
            Err(QueueFull),
        ),
        ("empty_message", packet(0, 0, 1, 40, 0, 0, 0, 0), complete),
        (
            "empty_beyond_end",
            packet(0, 0, 1, 41, 0, 0, 0, 0),
            Err(OutOfBounds),
        ),
        ("up_to_the_end", packet(0, 0, 1, 39, 5, 0, 0, 0), complete),
        (
            "one_beyond_end",
            packet(0, 0, 1, 39, 6, 0, 0, 0),
            Err(OutOfBounds),
        ),
        (
            "offset_max",
            packet(0, 0, 1, 0x80, 0, 0, 0, 0),
            Err(OutOfBounds),
        ),
        (
            "offset_overflow",
            packet(0, 0, 1, 0x83, 9, 0, 0, 0),
            Err(OutOfBounds),
        ),
        (
            "offset_overflow_to_zero",
            packet(0, 0, 1, 0x87, 8, 0, 0, 0),
            Err(OutOfBounds),
        ),
        ("wrong_key", packet(0, 0, 0, 0, 8, 0, 0, 0), Err(BadKey)),
        (
            "no_such_entry",
            packet(0, 4, 1, 0, 8, 0, 0, 0),
            Err(NoMetadataEntry),
        ),
        ("fast", packet(0, 0x80, 1, 0, 8, 77, 0, 0), complete),
        (
            "fast_with_metadata",
            packet(0, 0x80, 1, 0, 8, 77, 3, 0),
            Err(BadMetadata),
        ),
        (
            "fast_to_paranoid",
            packet(1, 0x80, 1, 0, 8, 0, 0, 0),
            Err(FastToParanoid),
        ),
        ("metadata_60", packet(0, 1, 1, 0, 8, 0, 60, 0), complete),
        (
            "metadata_61",
            packet(0, 1, 1, 0, 8, 0, 61, 0),
            Err(BadMetadata),
        ),
        ("silent", packet(0, 0, 1, 0, 8, 0, 0, 1), complete),
        (
            "two_packets",
            join(&[
                packet(0, 0, 1, 0, 8, 1, 4, 0),
                packet(0, 0, 1, 2, 8, 0x84, 0, 0),
            ]),
            complete,
        ),
        (
            "paranoid_inside",
            join(&[open.clone(), packet(1, 0, 1, 0, 9, 0, 0, 0)]),
            complete,
        ),
        (
            "paranoid_below",
            join(&[permit(0, 10, 60), packet(1, 0, 1, 0, 9, 0, 0, 0)]),
            Err(OutOfLimits),
        ),
        (
            "paranoid_above",
            join(&[permit(0, 0, 1), packet(1, 0, 1, 0, 9, 0, 0, 0)]),
            Err(OutOfLimits),
        ),
        (
            "paranoid_limits_beyond_slot",
            join(&[vec![4, 0, 1, 0, 0x80], packet(1, 0, 1, 60, 1, 0, 0, 0)]),
            Err(OutOfBounds),
        ),
        (
            "paranoid_limits_crossed",
            join(&[permit(0, 9, 3), packet(1, 0, 1, 5, 0, 0, 0, 0)]),
            Err(OutOfLimits),
        ),
        ("one_shot", one_shot.clone(), complete),
        (
            "one_shot_spent",
            join(&[one_shot.clone(), packet(2, 0, 1, 0, 9, 0, 0, 0)]),
            Err(EntrySpent),
        ),
        (
            "one_shot_rearmed",
            join(&[one_shot.clone(), vec![5, 0], packet(2, 0, 1, 0, 9, 0, 0, 0)]),
            complete,
        ),
        (
            "one_shot_disarmed",
            join(&[
                open.clone(),
                vec![5, 0, 6, 0],
                packet(2, 0, 1, 0, 9, 0, 0, 0),
            ]),
            Err(EntrySpent),
        ),
        ("no_right", packet(3, 0, 1, 0, 9, 0, 0, 0), Err(NoRight)),
        (
            "closed",
            join(&[vec![1, 0], packet(0, 0, 1, 0, 9, 0, 0, 0)]),
            Err(SlotClosed),
        ),
        (
            "closed_and_opened_anew",
            join(&[
                vec![1, 0, 0, 0, 0, 40],
                packet(0, 0, 1, 0, 9, 0, 0, 0),
                packet(4, 0, 1, 0, 9, 0, 0, 0),
            ]),
            complete,
        ),
        (
            "slot_beyond_area",
            join(&[vec![0, 0, 100, 100, 0, 1, 0x80, 3], good.clone()]),
            complete,
        ),
        (
            "revoked_and_rekeyed",
            join(&[vec![3, 0], good.clone(), vec![2, 0, 1], good.clone()]),
            complete,
        ),
        (
            "handshake_lapses",
            join(&[vec![7, 200], good.clone(), vec![8], good.clone()]),
            complete,
        ),
        (
            "wild_slot",
            wild([9, 0, 0, 0], [8, 0, 0, 0], 0, 0),
            Err(NoSuchSlot),
        ),
        (
            "wild_generation",
            wild([0, 0, 1, 0], [8, 0, 0, 0], 0, 0),
            Err(SlotClosed),
        ),
        (
            "wild_length",
            wild([0; 4], [0xFF; 4], 0, 0),
            Err(OutOfBounds),
        ),
        (
            "wild_flags",
            wild([0; 4], [8, 0, 0, 0], 0x82, 0),
            Err(UnknownFlag),
        ),
        (
            "wild_kind",
            wild([0; 4], [8, 0, 0, 0], 0, 7),
            Err(UnknownKind),
        ),
        ("overrun", good.repeat(30), complete),
    ]
}

/// With `HAMLYN_WRITE_CORPUS` set, writes the files instead of comparing them.
#[test]
fn committed_seeds_are_the_ones_made_here() {
    for (name, bytes, outcome) in seeds() {
        let path = corpus().join(name);
        if std::env::var_os("HAMLYN_WRITE_CORPUS").is_some() {
            fs::write(&path, &bytes).expect("writable");
        }
        assert_eq!(
            fs::read(&path).ok().as_deref(),
            Some(&bytes[..]),
            "{name} is not fresh"
        );
        assert_eq!(engine_receive::run(&bytes).last(), Some(&outcome), "{name}");
    }
}

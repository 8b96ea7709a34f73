//! Replays the committed corpus of the fuzzer, and as much again of damaged
//! messages from a fixed seed, in plain `cargo test`.

#[path = "../../../lab/fuzz/src/handshake.rs"]
#[allow(
    unreachable_pub,
    missing_docs,
    reason = "the harness belongs to the fuzz crate"
)]
mod handshake;

use hamlyn_host::offers::OFFER_BYTES_MAX;
use hamlyn_host::process::codec::{
    MESSAGE_BYTES, MESSAGE_BYTES_MAX, Message, NotAMessage, Offer, REPLIES_BYTES_MAX, VERSION,
    encode,
};
use hamlyn_host::process::name::Name;
use hamlyn_host::question::{Question, Replies, Reply};
use std::fs;
use std::path::{Path, PathBuf};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/fuzz/corpus/handshake")
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
        let _ = handshake::run(&bytes);
    }
}

/// Numbers that are the same each time.
fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 16
    }
}

#[test]
fn damaged_seeds_pass() {
    for (_, seed, _) in seeds() {
        for number in 0..300 {
            let mut next = random(number);
            let mut bytes = seed.clone();
            for _ in 0..1 + number % 3 {
                let at = next() as usize % (bytes.len() + 1);
                match next() % 4 {
                    0 => bytes.truncate(at),
                    1 => bytes.insert(at, next() as u8),
                    _ => {
                        if let Some(byte) = bytes.get_mut(at) {
                            *byte = next() as u8;
                        }
                    }
                }
            }
            let _ = handshake::run(&bytes);
        }
    }
}

fn name(name: &str) -> Name {
    Name::new(name).expect("a name")
}

fn offer(its_name: Option<&str>) -> Offer {
    Offer {
        interface: 0x0123_4567_89AB_CDEF,
        name: its_name.map(name),
        cells: 256,
        arena_bytes: 1 << 20,
        payload_max_bytes: 16_384,
        takes_barriers: true,
        log_bytes: 0,
        ready_bit: 9,
    }
}

/// What comes of a seed: a message, another version, or no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Judged {
    Good,
    Version(u16),
    Invalid,
}

/// Messages by hand: what each kind, and each breach of a rule, looks like to the fuzzer. The
/// committed files are exactly these, so that they follow when the format changes.
fn seeds() -> Vec<(&'static str, Vec<u8>, Judged)> {
    use Judged::*;
    let longest = "n".repeat(Name::BYTES_MAX);
    let ask_for = |items: &[Name]| {
        encode(&Message::Ask(
            Question::for_first(items, usize::MAX).expect("items"),
        ))
    };
    let ask = ask_for(&[name("item")]);
    let many = |length: usize| -> Vec<Name> {
        (0..Question::ITEMS_MAX)
            .map(|at| name(&format!("{at:0length$}")))
            .collect()
    };
    let hello = encode(&Message::Hello(offer(Some("server/1"))));
    let answer_of = |lengths: &[usize]| {
        let items = many(2);
        let question = Question::for_first(&items[..lengths.len()], usize::MAX).expect("items");
        let mut lengths = lengths.iter();
        encode(&Message::Answer(Replies::to(
            &question,
            REPLIES_BYTES_MAX,
            |_| match lengths.next() {
                Some(&length) if length > 0 => Reply::Given(vec![0xA5; length]),
                _ => Reply::Refused(Reply::NOT_OFFERED),
            },
        )))
    };
    let answer = |length| answer_of(&[length]);
    let changed = |message: &[u8], at: usize, to: &[u8]| {
        let mut bytes = message.to_vec();
        bytes[at..][..to.len()].copy_from_slice(to);
        bytes
    };
    let payload = |bytes: u32| changed(&hello, 28, &bytes.to_le_bytes());
    let fetch = encode(&Message::Fetch {
        interface: 0x0123_4567_89ab_cdef,
        secret: 0xfedc_ba98_7654_3210,
    });
    let region = encode(&Message::Region {
        length_bytes: 1 << 20,
    });
    vec![
        (
            "greeting",
            encode(&Message::Greeting { interface: 1 }),
            Good,
        ),
        (
            "greeting_max",
            encode(&Message::Greeting {
                interface: u64::MAX,
            }),
            Good,
        ),
        ("hello", hello.clone(), Good),
        ("hello_unnamed", encode(&Message::Hello(offer(None))), Good),
        (
            "hello_longest_name",
            encode(&Message::Hello(offer(Some(&longest)))),
            Good,
        ),
        ("hello_without_barriers", changed(&hello, 14, &[0, 0]), Good),
        ("hello_unknown_flag", changed(&hello, 14, &[3, 0]), Invalid),
        ("hello_wild_cells", changed(&hello, 24, &[0xFF; 4]), Good),
        ("hello_wild_bulk", changed(&hello, 32, &[0xFF; 4]), Good),
        ("hello_log", changed(&hello, 106, &[0, 0, 16, 0]), Good),
        ("hello_wild_log", changed(&hello, 106, &[0xFF; 4]), Good),
        ("hello_payload_least", payload(64), Good),
        ("hello_payload_less", payload(63), Invalid),
        ("hello_payload_most", payload(65_536), Good),
        ("hello_payload_more", payload(65_537), Invalid),
        ("hello_payload_wild", payload(u32::MAX), Invalid),
        (
            "hello_name_too_long",
            changed(&hello, 36, &[65, 0]),
            Invalid,
        ),
        (
            "hello_name_wild_length",
            changed(&hello, 36, &[0xFF; 2]),
            Invalid,
        ),
        ("hello_name_short", changed(&hello, 36, &[3, 0]), Invalid),
        ("hello_name_zero", changed(&hello, 38, &[0]), Invalid),
        ("hello_name_no_text", changed(&hello, 38, &[0xFF]), Invalid),
        ("hello_tail", changed(&hello, 127, &[1]), Invalid),
        ("welcome", encode(&Message::Welcome(offer(None))), Good),
        ("refusal", encode(&Message::Refusal { reason: 7 }), Good),
        (
            "refusal_unknown",
            encode(&Message::Refusal { reason: u16::MAX }),
            Good,
        ),
        ("ask", ask.clone(), Good),
        ("ask_longest", ask_for(&[name(&longest)]), Good),
        ("ask_for_many", ask_for(&many(2)), Good),
        ("ask_for_most", ask_for(&many(Name::BYTES_MAX)), Good),
        (
            "ask_for_too_many",
            changed(&ask_for(&many(2)), 16, &[65]),
            Invalid,
        ),
        (
            "ask_for_more_than_there_are",
            changed(&ask, 16, &[2]),
            Invalid,
        ),
        (
            "ask_for_fewer_than_there_are",
            changed(&ask_for(&many(2)), 16, &[63]),
            Invalid,
        ),
        (
            "ask_twice_for_one",
            changed(&ask_for(&[name("a"), name("b")]), 20, b"a"),
            Invalid,
        ),
        ("ask_for_nothing", changed(&ask[..17], 16, &[0]), Invalid),
        ("ask_for_an_empty_item", changed(&ask, 17, &[0]), Invalid),
        ("ask_reserved", changed(&ask, 12, &[1]), Invalid),
        ("ask_too_long", changed(&ask, 17, &[65]), Invalid),
        ("ask_cut", ask[..ask.len() - 1].to_vec(), Invalid),
        ("ask_with_more", [ask.clone(), vec![0]].concat(), Invalid),
        (
            "ask_longer_than_any",
            [ask.clone(), vec![0; MESSAGE_BYTES_MAX]].concat(),
            Invalid,
        ),
        ("answer", answer(64), Good),
        ("answer_as_long_as_others", answer(MESSAGE_BYTES - 19), Good),
        ("answer_least", answer(1), Good),
        ("answer_refusing", answer(0), Good),
        ("answer_empty", changed(&answer(1)[..17], 16, &[0]), Invalid),
        ("answer_most", answer(OFFER_BYTES_MAX), Good),
        (
            "answer_more",
            [changed(&answer(OFFER_BYTES_MAX), 17, &[1, 4]), vec![0]].concat(),
            Invalid,
        ),
        ("answer_to_many", answer_of(&[64, 0, 1, 0, 1_000]), Good),
        (
            "answer_to_most",
            answer_of(&[100; Question::ITEMS_MAX]),
            Good,
        ),
        (
            "answer_to_too_many",
            changed(&answer(1), 16, &[65]),
            Invalid,
        ),
        (
            "answer_to_more_than_there_are",
            changed(&answer(1), 16, &[2]),
            Invalid,
        ),
        ("answer_cut", answer(64)[..60].to_vec(), Invalid),
        ("answer_reserved", changed(&answer(9), 12, &[1]), Invalid),
        ("not_shared", encode(&Message::NotShared), Good),
        ("nothing", vec![], Invalid),
        ("no_magic", changed(&ask, 0, b"HAMLYN"), Invalid),
        ("only_magic", hello[..8].to_vec(), Invalid),
        (
            "version_alone",
            changed(&hello[..10], 8, &[9, 9]),
            Version(0x0909),
        ),
        ("version_older", changed(&hello, 8, &[0, 0]), Version(0)),
        ("kind_missing", hello[..10].to_vec(), Invalid),
        ("kind_zero", changed(&hello, 10, &[0, 0]), Invalid),
        ("kind_unknown", changed(&hello, 10, &[12, 0]), Invalid),
        ("fetch", fetch.clone(), Good),
        ("fetch_with_more", changed(&fetch, 32, &[1]), Invalid),
        ("region", region.clone(), Good),
        ("region_with_more", changed(&region, 24, &[1]), Invalid),
        ("mapped", encode(&Message::Mapped), Good),
        ("sealed", encode(&Message::Sealed), Good),
        (
            "mapped_with_more",
            changed(&encode(&Message::Mapped), 16, &[1]),
            Invalid,
        ),
        ("cut", hello[..MESSAGE_BYTES - 1].to_vec(), Invalid),
        ("stretched", [hello.clone(), vec![0]].concat(), Invalid),
    ]
}

/// With `HAMLYN_WRITE_CORPUS` set, writes the files instead of comparing them.
#[test]
fn committed_seeds_are_the_ones_made_here() {
    for (name, bytes, expected) in seeds() {
        let path = corpus().join(name);
        if std::env::var_os("HAMLYN_WRITE_CORPUS").is_some() {
            fs::write(&path, &bytes).expect("writable");
        }
        assert_eq!(
            fs::read(&path).ok().as_deref(),
            Some(&bytes[..]),
            "{name} is not fresh"
        );
        let received = match handshake::run(&bytes) {
            Ok(_) => Judged::Good,
            Err(NotAMessage::Version(version)) => Judged::Version(version),
            Err(NotAMessage::Invalid(_)) => Judged::Invalid,
        };
        assert_eq!(received, expected, "{name}");
    }
    assert_eq!(VERSION, 12, "the seeds are of this version");
}

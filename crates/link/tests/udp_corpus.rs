//! Replays the committed corpora of the wire's fuzz targets, and as much again of damaged seeds, in
//! plain `cargo test`.

#[path = "../../../lab/fuzz/src/packet_protection.rs"]
#[allow(
    unreachable_pub,
    missing_docs,
    reason = "the harness belongs to the fuzz crate"
)]
mod packet_protection;
#[path = "../../../lab/fuzz/src/udp_handshake.rs"]
#[allow(
    unreachable_pub,
    missing_docs,
    reason = "the harness belongs to the fuzz crate"
)]
mod udp_handshake;

use std::fs;
use std::path::{Path, PathBuf};

use hamlyn_link::udp::packet_header::{Kind, VERSION};
use hamlyn_link::udp::protection::{TxProtection, UnprotectError};
use packet_protection::{ASSOCIATION, key};

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../lab/fuzz/corpus")
        .join(target)
}

/// The files are the seeds made here, so that they follow when the format changes. With
/// `HAMLYN_WRITE_CORPUS` set, writes them instead of comparing them.
fn fresh(target: &str, name: &str, bytes: &[u8]) {
    let path = corpus(target).join(name);
    if std::env::var_os("HAMLYN_WRITE_CORPUS").is_some() {
        fs::write(&path, bytes).expect("writable");
    }
    assert_eq!(
        fs::read(&path).ok().as_deref(),
        Some(bytes),
        "{name} is not fresh"
    );
}

fn replay(target: &str, least: usize, run: impl Fn(&[u8])) {
    let files = fs::read_dir(corpus(target)).expect("a committed corpus");
    let mut count = 0;
    for file in files {
        let path = file.expect("readable").path();
        // The name of a failing one is the last that is printed.
        println!("{}", path.display());
        run(&fs::read(&path).expect("readable"));
        count += 1;
    }
    assert!(count >= least, "only {count} seeds");
}

type Judged = Result<usize, UnprotectError>;

fn rx_protections() -> Vec<(String, Vec<u8>, Judged)> {
    let mut seeds = Vec::new();
    for (choice, name) in [(0, "encrypted"), (1, "clear")] {
        let key = key(choice);
        let protected = |kind, frame: &[u8]| {
            let mut tx_protection = TxProtection::new(&key, ASSOCIATION);
            let mut datagram = vec![0; frame.len() + key.overhead_bytes()];
            tx_protection
                .protect(kind, 0, frame, &mut datagram)
                .expect("room");
            datagram
        };
        let good = protected(Kind::Data, b"a frame");
        let changed = |at: usize, to: u8| {
            let mut datagram = good.clone();
            datagram[at] = to;
            datagram
        };
        let last = good.len() - 1;
        for (what, datagram, judged) in [
            ("good", good.clone(), Ok(7)),
            ("empty_frame", protected(Kind::Data, b""), Ok(0)),
            ("probe", protected(Kind::Probe, &[0; 300]), Ok(300)),
            ("probe_answer", protected(Kind::ProbeAnswer, &[4, 5]), Ok(2)),
            (
                "handshake",
                protected(Kind::Response, b"x"),
                Err(UnprotectError::Malformed),
            ),
            ("nothing", vec![], Err(UnprotectError::Malformed)),
            (
                "version",
                changed(0, (VERSION + 1) << 4),
                Err(UnprotectError::Malformed),
            ),
            (
                "kind",
                changed(0, VERSION << 4 | 15),
                Err(UnprotectError::Malformed),
            ),
            (
                "other_kind",
                changed(0, VERSION << 4 | 4),
                Err(UnprotectError::Broken),
            ),
            ("flag", changed(1, 2), Err(UnprotectError::Malformed)),
            ("phase", changed(1, 1), Err(UnprotectError::Malformed)),
            ("length", changed(3, 1), Err(UnprotectError::Malformed)),
            ("association", changed(4, 8), Err(UnprotectError::Malformed)),
            ("number", changed(8, 1), Err(UnprotectError::Broken)),
            (
                "number_ahead",
                changed(15, 0x3e),
                Err(UnprotectError::Ahead),
            ),
            ("number_wild", changed(15, 0xff), Err(UnprotectError::Ahead)),
            ("frame", changed(17, b'!'), Err(UnprotectError::Broken)),
            (
                "tag",
                changed(last, good[last] ^ 1),
                Err(UnprotectError::Broken),
            ),
        ] {
            seeds.push((
                format!("{name}_{what}"),
                [&[choice], datagram.as_slice()].concat(),
                judged,
            ));
        }
    }
    seeds
}

fn handshakes() -> Vec<(String, Vec<u8>, bool)> {
    let mut seeds = Vec::new();
    for (choice, name) in [(0, "secret"), (1, "keys"), (2, "insecure")] {
        for (load, loaded) in [(0, ""), (0x40, "_loaded")] {
            // The lower bits choose the credentials, by what is left of three.
            let choice = (load..=u8::MAX)
                .find(|at| at % 3 == choice && at & 0xc0 == load)
                .expect("one of three");
            for (what, damage, is_damage) in [
                ("nothing", vec![], false),
                ("kind", vec![0, 0, 1], true),
                ("association", vec![0, 4, 1], true),
                ("time", vec![0, 15, 1], true),
                ("mode", vec![0, 16, 1], true),
                ("number", vec![0, 20, 1], true),
                ("point", vec![0, 24, 0x80], true),
                ("end_of_noise", vec![0, 50, 1, 0, 51, 2], true),
                ("code", vec![0, 80, 1], true),
                ("cut", vec![0xff, 0xff, 0], false),
                ("cut_short", vec![0xf8, 0x10, 0], true),
            ] {
                let bytes = [&[choice], damage.as_slice()].concat();
                seeds.push((format!("{name}{loaded}_{what}"), bytes, is_damage));
            }
        }
    }
    seeds
}

#[test]
fn seeds_of_the_opener_are_fresh_and_decoded_right() {
    for (name, bytes, judged) in rx_protections() {
        fresh("packet_protection", &name, &bytes);
        assert_eq!(packet_protection::run(&bytes), Some(judged), "{name}");
    }
}

#[test]
fn seeds_of_the_handshake_are_fresh_and_judged_right() {
    for (name, bytes, is_damage) in handshakes() {
        fresh("udp_handshake", &name, &bytes);
        assert_eq!(udp_handshake::run(&bytes), Some(is_damage), "{name}");
    }
}

#[test]
fn the_corpora_pass() {
    replay("packet_protection", 36, |bytes| {
        let _ = packet_protection::run(bytes);
    });
    replay("udp_handshake", 60, |bytes| {
        let _ = udp_handshake::run(bytes);
    });
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
    for (_, seed, _) in rx_protections() {
        for number in 0..100 {
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
            let _ = packet_protection::run(&bytes);
        }
    }
    for number in 0..300 {
        let mut next = random(number);
        let length = next() as usize % 40;
        let bytes = (0..length)
            .map(|_| (next() % 5 * next()) as u8)
            .collect::<Vec<_>>();
        let _ = udp_handshake::run(&bytes);
    }
}

use proptest::prelude::*;

use super::*;

const ASSOCIATION: u32 = 0xfeed_1234;

fn keys() -> [Key; 2] {
    [
        Key::Sealed(Zeroizing::new([7; 32])),
        Key::Clear(0x1234_5678),
    ]
}

fn ends(key: &Key, key_packets: u64) -> (Sealer, Opener) {
    (
        Sealer::with_key_packets(key, ASSOCIATION, key_packets),
        Opener::with_key_packets(key, ASSOCIATION, key_packets),
    )
}

fn sealed(sealer: &mut Sealer, frame: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; frame.len() + sealer.overhead_bytes()];
    let length = sealer.seal(Kind::Data, 0, frame, &mut datagram).unwrap();
    assert_eq!(length, datagram.len());
    datagram
}

fn opened(opener: &mut Opener, datagram: &[u8]) -> Result<(u64, Vec<u8>), Unopened> {
    let mut datagram = datagram.to_vec();
    let opened = opener.open(&mut datagram)?;
    Ok((opened.packet_number, opened.frame.to_vec()))
}

#[test]
fn what_is_sealed_is_opened_once() {
    for key in keys() {
        let (mut sealer, mut opener) = ends(&key, KEY_PACKETS);
        for (number, length) in [0, 1, 16, 239, 240, 241, 1_400, 65_000]
            .into_iter()
            .enumerate()
        {
            let frame = vec![number as u8 + 1; length];
            let datagram = sealed(&mut sealer, &frame);
            assert_eq!(datagram.len(), length + key.overhead_bytes());
            assert_eq!(opened(&mut opener, &datagram), Ok((number as u64, frame)));
            assert_eq!(opened(&mut opener, &datagram), Err(Unopened::Replayed));
        }
    }
}

#[test]
fn sealed_frames_are_not_to_be_read() {
    let (mut sealer, _) = ends(&keys()[0], KEY_PACKETS);
    let datagram = sealed(&mut sealer, &[b'a'; 64]);
    assert!(!datagram.windows(4).any(|bytes| bytes == b"aaaa"));
}

#[test]
fn any_damage_is_found() {
    for key in keys() {
        let (mut sealer, mut opener) = ends(&key, KEY_PACKETS);
        let datagram = sealed(&mut sealer, &[0x5a; 100]);
        for bit in 0..datagram.len() * 8 {
            let mut damaged = datagram.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(opened(&mut opener, &damaged).is_err(), "bit {bit}");
        }
        for length in 0..datagram.len() {
            assert!(
                opened(&mut opener, &datagram[..length]).is_err(),
                "{length} bytes"
            );
        }
        let mut longer = datagram.clone();
        longer.push(0);
        assert!(opened(&mut opener, &longer).is_err());
        // None of it left a trace.
        assert_eq!(opened(&mut opener, &datagram), Ok((0, vec![0x5a; 100])));
    }
}

#[test]
fn the_checksum_covers_headers_and_length_of_a_long_datagram() {
    let (mut sealer, mut opener) = ends(&keys()[1], KEY_PACKETS);
    let datagram = sealed(&mut sealer, &[1; 1_000]);
    for byte in 0..CHECKED_BYTES {
        let mut damaged = datagram.clone();
        damaged[byte] ^= 0x10;
        assert!(opened(&mut opener, &damaged).is_err(), "byte {byte}");
    }
    let mut shorter = datagram.clone();
    shorter.drain(CHECKED_BYTES..CHECKED_BYTES + 1);
    assert_eq!(opened(&mut opener, &shorter), Err(Unopened::Malformed));
    // Nor if its length is put right.
    shorter[2..4].copy_from_slice(&(datagram.len() as u16 - 1).to_le_bytes());
    assert_eq!(opened(&mut opener, &shorter), Err(Unopened::Broken));
    assert!(opened(&mut opener, &datagram).is_ok());
}

#[test]
fn other_keys_other_directions_and_other_associations_open_nothing() {
    for (key, other) in [
        (
            Key::Sealed(Zeroizing::new([1; 32])),
            Key::Sealed(Zeroizing::new([2; 32])),
        ),
        (Key::Clear(1), Key::Clear(2)),
    ] {
        let (mut sealer, mut opener) = ends(&key, KEY_PACKETS);
        let (mut back, _) = ends(&other, KEY_PACKETS);
        // What we send is sent back to us: the other direction has another key.
        let datagram = sealed(&mut back, b"reflected");
        assert_eq!(opened(&mut opener, &datagram), Err(Unopened::Broken));
        let mut elsewhere = Sealer::new(&key, ASSOCIATION + 1);
        let datagram = sealed(&mut elsewhere, b"elsewhere");
        assert_eq!(opened(&mut opener, &datagram), Err(Unopened::Malformed));
        assert!(opened(&mut opener, &sealed(&mut sealer, b"")).is_ok());
    }
}

#[test]
fn keys_change_and_the_one_before_serves_late_packets() {
    let (mut sealer, mut opener) = ends(&keys()[0], 16);
    let datagrams = (0..80_u8)
        .map(|n| sealed(&mut sealer, &[n; 8]))
        .collect::<Vec<_>>();
    let ok = |n: u8| Ok((u64::from(n), vec![n; 8]));
    assert_eq!(datagrams[15][1], 0);
    assert_eq!(datagrams[16][1], 1);
    assert_eq!(opened(&mut opener, &datagrams[40]), Err(Unopened::Ahead));
    assert_eq!(opened(&mut opener, &datagrams[20]), ok(20));
    assert_eq!(opened(&mut opener, &datagrams[3]), ok(3), "the key before");
    assert_eq!(opened(&mut opener, &datagrams[40]), ok(40), "the key after");
    assert_eq!(opened(&mut opener, &datagrams[19]), ok(19));
    assert_eq!(
        opened(&mut opener, &datagrams[5]),
        Err(Unopened::Old),
        "two keys before"
    );
    assert_eq!(
        opened(&mut opener, &datagrams[64]),
        Err(Unopened::Ahead),
        "two keys after"
    );
    assert_eq!(opened(&mut opener, &datagrams[48]), ok(48));
    assert_eq!(opened(&mut opener, &datagrams[64]), ok(64));
    // Nothing that is not authentic changes the key.
    let mut forged = sealed(&mut sealer, b"");
    forged[8..16].copy_from_slice(&80_u64.to_le_bytes());
    forged[1] = 1;
    forged[20] ^= 1;
    assert_eq!(opened(&mut opener, &forged), Err(Unopened::Broken));
    assert_eq!(opener.key_number, 4);
    assert_eq!(opened(&mut opener, &datagrams[50]), ok(50));
}

#[test]
fn each_key_of_the_row_is_another() {
    // The same number and frame under successive keys: every cipher text differs.
    let Key::Sealed(secret) = &keys()[0] else {
        unreachable!()
    };
    let (first, next) = Cipher::derive(secret);
    let (second, after) = Cipher::derive(&next);
    assert!(next != *secret && after != next && first.salt != second.salt);
    let seal = |cipher: &Cipher| {
        let mut bytes = [0; 16];
        let nonce = Nonce::assume_unique_for_key([0; 12]);
        let _ = cipher
            .key
            .seal_in_place_separate_tag(nonce, Aad::empty(), &mut bytes)
            .unwrap();
        bytes
    };
    assert_ne!(seal(&first), seal(&second));
}

#[test]
fn numbers_are_never_used_again() {
    for key in keys() {
        let (mut sealer, mut opener) = ends(&key, KEY_PACKETS);
        sealer.packets = PACKETS_MAX;
        let mut datagram = [0; 64];
        let refused = sealer.seal(Kind::Data, 0, b"x", &mut datagram);
        assert_eq!(refused, Err(SealError::Exhausted));
        let mut far = Envelope {
            kind: Kind::Data,
            length_bytes: 64,
            phase: true,
            path: 0,
            association: ASSOCIATION,
            packet_number: u64::MAX,
        };
        let judged = |opener: &mut Opener, envelope: &Envelope| {
            let mut datagram = [0; 64];
            datagram[..ENVELOPE_BYTES].copy_from_slice(&envelope.bytes());
            opened(opener, &datagram)
        };
        assert_eq!(judged(&mut opener, &far), Err(Unopened::Ahead));
        far.packet_number = PACKETS_MAX;
        far.phase = false;
        assert_eq!(judged(&mut opener, &far), Err(Unopened::Ahead));
    }
}

#[test]
fn too_little_room_uses_no_number() {
    for key in keys() {
        let (mut sealer, mut opener) = ends(&key, KEY_PACKETS);
        let overhead = sealer.overhead_bytes();
        for room in 0..overhead + 10 {
            let refused = sealer.seal(Kind::Data, 0, &[1; 10], &mut vec![0; room]);
            let no_room = SealError::NoRoom {
                frame_bytes: 10,
                room_bytes: room,
            };
            assert_eq!(refused, Err(no_room));
        }
        assert_eq!(sealer.packets(), 0);
        assert!(
            sealer
                .seal_in_place(Kind::Data, 0, &mut [0; 64], usize::MAX)
                .is_err()
        );
        assert_eq!(
            opened(&mut opener, &sealed(&mut sealer, &[1; 10])),
            Ok((0, vec![1; 10]))
        );
    }
}

#[test]
fn handshakes_are_not_opened() {
    for key in keys() {
        let (mut sealer, mut opener) = ends(&key, KEY_PACKETS);
        let mut datagram = [0; 64];
        let length = sealer
            .seal(Kind::Initiation, 0, b"x", &mut datagram)
            .unwrap();
        assert_eq!(
            opened(&mut opener, &datagram[..length]),
            Err(Unopened::Malformed)
        );
        let length = sealer.seal(Kind::Probe, 0, b"x", &mut datagram).unwrap();
        assert_eq!(
            opener.open(&mut datagram[..length]).unwrap().kind,
            Kind::Probe
        );
    }
}

#[test]
fn the_window_slides_for_ever() {
    let mut window = Window::new();
    let lap = WINDOW_PACKETS + 64;
    for number in 1..5 * lap {
        // In each lap of the bitmap others come than in the one before.
        let comes = |number: u64| (number + number / lap).is_multiple_of(2);
        if comes(number) {
            window.mark(number);
            assert_eq!(window.check(number), Err(Stale::Seen));
            if !comes(number - 1) {
                assert_eq!(window.check(number - 1), Ok(()), "{number}");
            }
        }
    }
}

/// Which numbers came, without any cleverness.
#[derive(Default)]
struct Reference {
    seen: std::collections::BTreeSet<u64>,
}

impl Reference {
    fn judge(&mut self, number: u64) -> Result<(), Stale> {
        let highest = self.seen.last().copied();
        if highest.is_some_and(|highest| highest >= number && highest - number >= WINDOW_PACKETS) {
            Err(Stale::Old)
        } else if self.seen.insert(number) {
            Ok(())
        } else {
            Err(Stale::Seen)
        }
    }
}

/// Numbers around each other, around the window's edge, and far away.
fn numbers() -> impl Strategy<Value = Vec<(u8, u64)>> {
    prop::collection::vec((0..6_u8, 0..200_u64), 1..300)
}

proptest! {
    #[test]
    fn the_window_is_what_it_says(steps in numbers()) {
        let (mut window, mut reference) = (Window::new(), Reference::default());
        for (how, step) in steps {
            let highest = reference.seen.last().copied().unwrap_or(0);
            let number = match how {
                0 | 1 => highest + step,
                2 => highest.saturating_sub(step),
                3 => (highest + 100).saturating_sub(WINDOW_PACKETS + step),
                4 => highest + WINDOW_PACKETS + step,
                _ => highest.saturating_add(step << 40),
            };
            let judged = window.check(number);
            if judged.is_ok() {
                window.mark(number);
            }
            prop_assert_eq!(judged, reference.judge(number), "{}", number);
        }
    }

    #[test]
    fn reordered_and_doubled_packets_are_opened_once(order in prop::collection::vec(0..120_usize, 1..400), clear: bool) {
        let (mut sealer, mut opener) = ends(&keys()[usize::from(clear)], 1 << 7);
        let datagrams = (0..120_u8).map(|n| sealed(&mut sealer, &[n; 20])).collect::<Vec<_>>();
        let mut reference = Reference::default();
        for at in order {
            let judged = opened(&mut opener, &datagrams[at]).map(|(number, frame)| {
                assert_eq!((number, frame), (at as u64, vec![at as u8; 20]));
            });
            let expected = reference.judge(at as u64).map_err(|_| Unopened::Replayed);
            prop_assert_eq!(judged, expected);
        }
    }

    #[test]
    fn any_bytes_are_judged(bytes in prop::collection::vec(any::<u8>(), 0..400), head: bool, clear: bool) {
        let (mut sealer, mut opener) = ends(&keys()[usize::from(clear)], 4);
        let mut bytes = bytes;
        if head && bytes.len() >= 8 {
            bytes[..8].copy_from_slice(&sealed(&mut sealer, b"")[..8]);
            let length = bytes.len() as u16;
            bytes[2..4].copy_from_slice(&length.to_le_bytes());
        }
        prop_assert!(opened(&mut opener, &bytes).is_err());
        let (mut sealer, _) = ends(&keys()[usize::from(clear)], 4);
        prop_assert!(opened(&mut opener, &sealed(&mut sealer, b"good")).is_ok());
    }

    #[test]
    fn envelopes_have_one_encoding(bytes: [u8; ENVELOPE_BYTES], head in 0x10..0x16_u8, flags in 0..2_u8) {
        let mut good = bytes;
        good[..4].copy_from_slice(&[head, flags, ENVELOPE_BYTES as u8, 0]);
        for bytes in [bytes, good] {
            if let Some(envelope) = Envelope::parse(&bytes) {
                prop_assert_eq!(envelope.bytes(), bytes);
            }
        }
        prop_assert!(Envelope::parse(&good).is_some());
    }
}

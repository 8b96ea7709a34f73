use proptest::prelude::*;

use super::*;

const ASSOCIATION: u32 = 0xfeed_1234;

fn keys() -> [Key; 2] {
    [
        Key::Encrypted(Zeroizing::new([7; 32])),
        Key::Clear(0x1234_5678),
    ]
}

fn ends(key: &Key, key_packets: u64) -> (TxProtection, RxProtection) {
    (
        TxProtection::with_key_packets(key, ASSOCIATION, key_packets),
        RxProtection::with_key_packets(key, ASSOCIATION, key_packets),
    )
}

fn protected(tx_protection: &mut TxProtection, frame: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; frame.len() + tx_protection.overhead_bytes()];
    let length = tx_protection
        .protect(Kind::Data, 0, frame, &mut datagram)
        .unwrap();
    assert_eq!(length, datagram.len());
    datagram
}

fn opened(
    rx_protection: &mut RxProtection,
    datagram: &[u8],
) -> Result<(u64, Vec<u8>), UnprotectError> {
    let mut datagram = datagram.to_vec();
    let opened = rx_protection.unprotect(&mut datagram)?;
    Ok((opened.packet_number, opened.frame.to_vec()))
}

#[test]
fn what_is_sealed_is_opened_once() {
    for key in keys() {
        let (mut tx_protection, mut rx_protection) = ends(&key, KEY_PACKETS);
        for (number, length) in [0, 1, 16, 239, 240, 241, 1_400, 65_000]
            .into_iter()
            .enumerate()
        {
            let frame = vec![number as u8 + 1; length];
            let datagram = protected(&mut tx_protection, &frame);
            assert_eq!(datagram.len(), length + key.overhead_bytes());
            assert_eq!(
                opened(&mut rx_protection, &datagram),
                Ok((number as u64, frame))
            );
            assert_eq!(
                opened(&mut rx_protection, &datagram),
                Err(UnprotectError::Replayed)
            );
        }
    }
}

#[test]
fn sealed_frames_are_not_to_be_read() {
    let (mut tx_protection, _) = ends(&keys()[0], KEY_PACKETS);
    let datagram = protected(&mut tx_protection, &[b'a'; 64]);
    assert!(!datagram.windows(4).any(|bytes| bytes == b"aaaa"));
}

#[test]
fn any_damage_is_found() {
    for key in keys() {
        let (mut tx_protection, mut rx_protection) = ends(&key, KEY_PACKETS);
        let datagram = protected(&mut tx_protection, &[0x5a; 100]);
        for bit in 0..datagram.len() * 8 {
            let mut damaged = datagram.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(opened(&mut rx_protection, &damaged).is_err(), "bit {bit}");
        }
        for length in 0..datagram.len() {
            assert!(
                opened(&mut rx_protection, &datagram[..length]).is_err(),
                "{length} bytes"
            );
        }
        let mut longer = datagram.clone();
        longer.push(0);
        assert!(opened(&mut rx_protection, &longer).is_err());
        // None of it left a trace.
        assert_eq!(
            opened(&mut rx_protection, &datagram),
            Ok((0, vec![0x5a; 100]))
        );
    }
}

#[test]
fn the_checksum_covers_headers_and_length_of_a_long_datagram() {
    let (mut tx_protection, mut rx_protection) = ends(&keys()[1], KEY_PACKETS);
    let datagram = protected(&mut tx_protection, &[1; 1_000]);
    for byte in 0..CHECKED_BYTES {
        let mut damaged = datagram.clone();
        damaged[byte] ^= 0x10;
        assert!(opened(&mut rx_protection, &damaged).is_err(), "byte {byte}");
    }
    let mut shorter = datagram.clone();
    shorter.drain(CHECKED_BYTES..CHECKED_BYTES + 1);
    assert_eq!(
        opened(&mut rx_protection, &shorter),
        Err(UnprotectError::Malformed)
    );
    // Nor if its length is put right.
    shorter[2..4].copy_from_slice(&(datagram.len() as u16 - 1).to_le_bytes());
    assert_eq!(
        opened(&mut rx_protection, &shorter),
        Err(UnprotectError::Broken)
    );
    assert!(opened(&mut rx_protection, &datagram).is_ok());
}

#[test]
fn other_keys_other_directions_and_other_associations_open_nothing() {
    for (key, other) in [
        (
            Key::Encrypted(Zeroizing::new([1; 32])),
            Key::Encrypted(Zeroizing::new([2; 32])),
        ),
        (Key::Clear(1), Key::Clear(2)),
    ] {
        let (mut tx_protection, mut rx_protection) = ends(&key, KEY_PACKETS);
        let (mut back, _) = ends(&other, KEY_PACKETS);
        // What we send is sent back to us: the other direction has another key.
        let datagram = protected(&mut back, b"reflected");
        assert_eq!(
            opened(&mut rx_protection, &datagram),
            Err(UnprotectError::Broken)
        );
        let mut elsewhere = TxProtection::new(&key, ASSOCIATION + 1);
        let datagram = protected(&mut elsewhere, b"elsewhere");
        assert_eq!(
            opened(&mut rx_protection, &datagram),
            Err(UnprotectError::Malformed)
        );
        assert!(opened(&mut rx_protection, &protected(&mut tx_protection, b"")).is_ok());
    }
}

#[test]
fn keys_change_and_the_one_before_serves_late_packets() {
    let (mut tx_protection, mut rx_protection) = ends(&keys()[0], 16);
    let datagrams = (0..80_u8)
        .map(|n| protected(&mut tx_protection, &[n; 8]))
        .collect::<Vec<_>>();
    let ok = |n: u8| Ok((u64::from(n), vec![n; 8]));
    assert_eq!(datagrams[15][1], 0);
    assert_eq!(datagrams[16][1], 1);
    assert_eq!(
        opened(&mut rx_protection, &datagrams[40]),
        Err(UnprotectError::Ahead)
    );
    assert_eq!(opened(&mut rx_protection, &datagrams[20]), ok(20));
    assert_eq!(
        opened(&mut rx_protection, &datagrams[3]),
        ok(3),
        "the key before"
    );
    assert_eq!(
        opened(&mut rx_protection, &datagrams[40]),
        ok(40),
        "the key after"
    );
    assert_eq!(opened(&mut rx_protection, &datagrams[19]), ok(19));
    assert_eq!(
        opened(&mut rx_protection, &datagrams[5]),
        Err(UnprotectError::Old),
        "two keys before"
    );
    assert_eq!(
        opened(&mut rx_protection, &datagrams[64]),
        Err(UnprotectError::Ahead),
        "two keys after"
    );
    assert_eq!(opened(&mut rx_protection, &datagrams[48]), ok(48));
    assert_eq!(opened(&mut rx_protection, &datagrams[64]), ok(64));
    // Nothing that is not authentic changes the key.
    let mut forged = protected(&mut tx_protection, b"");
    forged[8..16].copy_from_slice(&80_u64.to_le_bytes());
    forged[1] = 1;
    forged[20] ^= 1;
    assert_eq!(
        opened(&mut rx_protection, &forged),
        Err(UnprotectError::Broken)
    );
    assert_eq!(rx_protection.key_number, 4);
    assert_eq!(opened(&mut rx_protection, &datagrams[50]), ok(50));
}

#[test]
fn each_key_of_the_row_is_another() {
    // The same number and frame under successive keys: every cipher text differs.
    let Key::Encrypted(secret) = &keys()[0] else {
        unreachable!()
    };
    let (first, next) = Cipher::derive(secret);
    let (second, after) = Cipher::derive(&next);
    assert!(next != *secret && after != next && first.salt != second.salt);
    let protect = |cipher: &Cipher| {
        let mut bytes = [0; 16];
        let nonce = Nonce::assume_unique_for_key([0; 12]);
        let _ = cipher
            .key
            .seal_in_place_separate_tag(nonce, Aad::empty(), &mut bytes)
            .unwrap();
        bytes
    };
    assert_ne!(protect(&first), protect(&second));
}

#[test]
fn numbers_are_never_used_again() {
    for key in keys() {
        let (mut tx_protection, mut rx_protection) = ends(&key, KEY_PACKETS);
        tx_protection.packets = PACKETS_MAX;
        let mut datagram = [0; 64];
        let refused = tx_protection.protect(Kind::Data, 0, b"x", &mut datagram);
        assert_eq!(refused, Err(ProtectError::Exhausted));
        let mut far = PacketHeader {
            kind: Kind::Data,
            length_bytes: 64,
            phase: true,
            path: 0,
            association: ASSOCIATION,
            packet_number: u64::MAX,
        };
        let received = |rx_protection: &mut RxProtection, packet_header: &PacketHeader| {
            let mut datagram = [0; 64];
            datagram[..PACKET_HEADER_BYTES].copy_from_slice(&packet_header.bytes());
            opened(rx_protection, &datagram)
        };
        assert_eq!(
            received(&mut rx_protection, &far),
            Err(UnprotectError::Ahead)
        );
        far.packet_number = PACKETS_MAX;
        far.phase = false;
        assert_eq!(
            received(&mut rx_protection, &far),
            Err(UnprotectError::Ahead)
        );
    }
}

#[test]
fn too_little_room_uses_no_number() {
    for key in keys() {
        let (mut tx_protection, mut rx_protection) = ends(&key, KEY_PACKETS);
        let overhead = tx_protection.overhead_bytes();
        for room in 0..overhead + 10 {
            let refused = tx_protection.protect(Kind::Data, 0, &[1; 10], &mut vec![0; room]);
            let no_room = ProtectError::NoRoom {
                frame_bytes: 10,
                room_bytes: room,
            };
            assert_eq!(refused, Err(no_room));
        }
        assert_eq!(tx_protection.packets(), 0);
        assert!(
            tx_protection
                .protect_in_place(Kind::Data, 0, &mut [0; 64], usize::MAX)
                .is_err()
        );
        assert_eq!(
            opened(&mut rx_protection, &protected(&mut tx_protection, &[1; 10])),
            Ok((0, vec![1; 10]))
        );
    }
}

#[test]
fn handshakes_are_not_opened() {
    for key in keys() {
        let (mut tx_protection, mut rx_protection) = ends(&key, KEY_PACKETS);
        let mut datagram = [0; 64];
        let length = tx_protection
            .protect(Kind::Initiation, 0, b"x", &mut datagram)
            .unwrap();
        assert_eq!(
            opened(&mut rx_protection, &datagram[..length]),
            Err(UnprotectError::Malformed)
        );
        let length = tx_protection
            .protect(Kind::Probe, 0, b"x", &mut datagram)
            .unwrap();
        assert_eq!(
            rx_protection
                .unprotect(&mut datagram[..length])
                .unwrap()
                .kind,
            Kind::Probe
        );
    }
}

#[test]
fn the_window_slides_for_ever() {
    let mut window = Window::new();
    let lap = WINDOW_PACKETS + 64;
    for number in 1..5 * lap {
        // In each generation of the bitmap others come than in the one before.
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
    fn refusal_of(&mut self, number: u64) -> Result<(), Stale> {
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
            let received = window.check(number);
            if received.is_ok() {
                window.mark(number);
            }
            prop_assert_eq!(received, reference.refusal_of(number), "{}", number);
        }
    }

    #[test]
    fn reordered_and_doubled_packets_are_opened_once(order in prop::collection::vec(0..120_usize, 1..400), clear: bool) {
        let (mut tx_protection, mut rx_protection) = ends(&keys()[usize::from(clear)], 1 << 7);
        let datagrams = (0..120_u8).map(|n| protected(&mut tx_protection, &[n; 20])).collect::<Vec<_>>();
        let mut reference = Reference::default();
        for at in order {
            let received = opened(&mut rx_protection, &datagrams[at]).map(|(number, frame)| {
                assert_eq!((number, frame), (at as u64, vec![at as u8; 20]));
            });
            let expected = reference.refusal_of(at as u64).map_err(|_| UnprotectError::Replayed);
            prop_assert_eq!(received, expected);
        }
    }

    #[test]
    fn any_bytes_are_judged(bytes in prop::collection::vec(any::<u8>(), 0..400), head: bool, clear: bool) {
        let (mut tx_protection, mut rx_protection) = ends(&keys()[usize::from(clear)], 4);
        let mut bytes = bytes;
        if head && bytes.len() >= 8 {
            bytes[..8].copy_from_slice(&protected(&mut tx_protection, b"")[..8]);
            let length = bytes.len() as u16;
            bytes[2..4].copy_from_slice(&length.to_le_bytes());
        }
        prop_assert!(opened(&mut rx_protection, &bytes).is_err());
        let (mut tx_protection, _) = ends(&keys()[usize::from(clear)], 4);
        prop_assert!(opened(&mut rx_protection, &protected(&mut tx_protection, b"good")).is_ok());
    }

    #[test]
    fn envelopes_have_one_encoding(bytes: [u8; PACKET_HEADER_BYTES], head in 0x10..0x16_u8, flags in 0..2_u8) {
        let mut good = bytes;
        good[..4].copy_from_slice(&[head, flags, PACKET_HEADER_BYTES as u8, 0]);
        for bytes in [bytes, good] {
            if let Some(packet_header) = PacketHeader::parse(&bytes) {
                prop_assert_eq!(packet_header.bytes(), bytes);
            }
        }
        prop_assert!(PacketHeader::parse(&good).is_some());
    }
}

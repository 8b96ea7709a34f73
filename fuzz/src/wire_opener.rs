//! Arbitrary bytes as a datagram of an association. Whatever they say: no panic; what is not authentic leaves
//! no trace, and what is opened is opened once.

use hamlyn_link::udp::envelope::{ENVELOPE_BYTES, Envelope, Kind};
use hamlyn_link::udp::seal::{Key, Opener, Sealer, Unopened};

/// The association of the seeds.
pub const ASSOCIATION: u32 = 7;

/// Of the seeds: the first byte chooses.
pub fn key(choice: u8) -> Key {
    if choice & 1 == 0 {
        Key::Sealed([7; 32].into())
    } else {
        Key::Clear(0x0bad_cafe)
    }
}

/// What the first byte chooses, and then a datagram. Nothing if there is no first byte. How long the frame is, if it was opened.
pub fn run(bytes: &[u8]) -> Option<Result<usize, Unopened>> {
    let (&choice, bytes) = bytes.split_first()?;
    let key = key(choice);
    let mut opener = Opener::new(&key, ASSOCIATION);
    let mut datagram = bytes.to_vec();
    let judged = opener.open(&mut datagram).map(|opened| {
        assert!(opened.kind.is_sealed());
        (opened.packet_number, opened.frame.to_vec())
    });
    let mut again = bytes.to_vec();
    let envelope = Envelope::parse(bytes);
    if let Some(envelope) = envelope {
        assert_eq!(
            envelope.bytes(),
            bytes[..ENVELOPE_BYTES],
            "a second encoding"
        );
    }
    match &judged {
        Ok((number, frame)) => {
            assert_eq!(frame.len() + key.overhead_bytes(), bytes.len());
            assert_eq!(opener.open(&mut again), Err(Unopened::Replayed));
            assert_eq!(
                envelope.map(|envelope| envelope.packet_number),
                Some(*number)
            );
        }
        Err(unopened) => {
            assert_eq!(opener.open(&mut again), Err(*unopened), "it left a trace");
            let mut sealer = Sealer::new(&key, ASSOCIATION);
            let mut good = [0; 64];
            let length = sealer
                .seal(Kind::Data, 0, b"good", &mut good)
                .expect("room");
            let opened = opener.open(&mut good[..length]).expect("nothing changed");
            assert_eq!(opened.frame, b"good");
        }
    }
    Some(judged.map(|(_, frame)| frame.len()))
}

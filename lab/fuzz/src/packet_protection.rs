//! Arbitrary bytes as a datagram of an association. For any bytes: no panic; what is not authentic
//! leaves no trace, and what is opened is opened once.

use hamlyn_link::udp::packet_header::{Kind, PACKET_HEADER_BYTES, PacketHeader};
use hamlyn_link::udp::protection::{Key, RxProtection, TxProtection, UnprotectError};

/// The association of the seeds.
pub const ASSOCIATION: u32 = 7;

/// Of the seeds: the first byte chooses.
pub fn key(choice: u8) -> Key {
    if choice & 1 == 0 {
        Key::Encrypted([7; 32].into())
    } else {
        Key::Clear(0x0bad_cafe)
    }
}

/// What the first byte chooses, and then a datagram. Nothing if there is no first byte. How long
/// the frame is, if it was opened.
pub fn run(bytes: &[u8]) -> Option<Result<usize, UnprotectError>> {
    let (&choice, bytes) = bytes.split_first()?;
    let key = key(choice);
    let mut rx_protection = RxProtection::new(&key, ASSOCIATION);
    let mut datagram = bytes.to_vec();
    let decoded = rx_protection.unprotect(&mut datagram).map(|opened| {
        assert!(opened.kind.is_encrypted());
        (opened.packet_number, opened.frame.to_vec())
    });
    let mut again = bytes.to_vec();
    let packet_header = PacketHeader::parse(bytes);
    if let Some(packet_header) = packet_header {
        assert_eq!(
            packet_header.bytes(),
            bytes[..PACKET_HEADER_BYTES],
            "a second encoding"
        );
    }
    match &decoded {
        Ok((number, frame)) => {
            assert_eq!(frame.len() + key.overhead_bytes(), bytes.len());
            assert_eq!(
                rx_protection.unprotect(&mut again),
                Err(UnprotectError::Replayed)
            );
            assert_eq!(
                packet_header.map(|packet_header| packet_header.packet_number),
                Some(*number)
            );
        }
        Err(unopened) => {
            assert_eq!(
                rx_protection.unprotect(&mut again),
                Err(*unopened),
                "it left a trace"
            );
            let mut tx_protection = TxProtection::new(&key, ASSOCIATION);
            let mut good = [0; 64];
            let length = tx_protection
                .protect(Kind::Data, 0, b"good", &mut good)
                .expect("room");
            let opened = rx_protection
                .unprotect(&mut good[..length])
                .expect("nothing changed");
            assert_eq!(opened.frame, b"good");
        }
    }
    Some(decoded.map(|(_, frame)| frame.len()))
}

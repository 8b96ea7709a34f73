//! What the messages of a soak say: to which connection they belong, which one they are, and bytes
//! that follow from that.

/// Bytes that every message has.
pub(super) const HEAD_BYTES: usize = 16;

/// Which of the three protocols carries it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Datagram = 1,
    Tag = 2,
    Record = 3,
}

fn mixed(connection: u64, kind: Kind, number: u64) -> u64 {
    let mut state = connection
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(number.wrapping_mul(4).wrapping_add(kind as u64));
    for _ in 0..2 {
        state ^= state >> 31;
        state = state.wrapping_mul(0xd6e8_feb8_6659_fd93);
    }
    state ^ state >> 32
}

/// How long that message is, in bytes.
fn length_bytes(kind: Kind, mixed: u64) -> usize {
    let most = match kind {
        // Of a packet, on Ethernet.
        Kind::Datagram | Kind::Tag => 1_000,
        Kind::Record if mixed.is_multiple_of(64) => 150_000,
        Kind::Record => 4_000,
    };
    HEAD_BYTES + (mixed >> 8) as usize % (most - HEAD_BYTES)
}

/// The message of that number.
pub(super) fn message(connection: u64, kind: Kind, number: u64, into: &mut Vec<u8>) {
    let mut state = mixed(connection, kind, number);
    let length_bytes = length_bytes(kind, state);
    into.clear();
    into.extend_from_slice(&connection.to_le_bytes());
    into.extend_from_slice(&number.to_le_bytes());
    while into.len() < length_bytes {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let bytes = (state ^ state >> 29).to_le_bytes();
        into.extend_from_slice(&bytes[..bytes.len().min(length_bytes - into.len())]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_message_is_another() {
        let mut all = std::collections::BTreeSet::new();
        let mut bytes = Vec::new();
        for connection in 0..4 {
            for kind in [Kind::Datagram, Kind::Tag, Kind::Record] {
                for number in 0..200 {
                    message(connection, kind, number, &mut bytes);
                    assert!(bytes.len() >= HEAD_BYTES);
                    assert!(kind == Kind::Record || bytes.len() <= 1_000);
                    assert!(all.insert((kind as u8, bytes.clone())));
                }
            }
        }
    }
}

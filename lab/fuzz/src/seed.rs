//! Arbitrary bytes as the seed of a stream. For any bytes: no panic, and what is accepted has one
//! form.

use hamlyn::ConnectError;
use hamlyn::stream::{SEED_BYTES, StreamSeed};
use hamlyn::ticket::TICKET_BYTES;

/// Judges the bytes, also with the check sums that they should have.
pub fn run(bytes: &[u8]) -> Result<StreamSeed, ConnectError> {
    let decoded = check(bytes);
    let Some(bytes) = bytes.get(..SEED_BYTES) else {
        return decoded;
    };
    let mut bytes = bytes.to_vec();
    for end in [TICKET_BYTES, SEED_BYTES] {
        let sum = check_sum(&bytes[..end - 4]);
        bytes[end - 4..end].copy_from_slice(&sum.to_le_bytes());
    }
    check(&bytes)
}

/// What stands after the fields of a ticket and of a seed.
pub fn check_sum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, &byte| {
        (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

fn check(bytes: &[u8]) -> Result<StreamSeed, ConnectError> {
    let decoded = StreamSeed::from_bytes(bytes);
    match &decoded {
        Ok(seed) => assert_eq!(seed.to_bytes(), bytes, "a second form of {seed:?}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    decoded
}

//! Arbitrary bytes as the seed of a stream. Whatever they say: no panic, and what is accepted has one form.

use hamlyn::GrowError;
use hamlyn::stream::{SEED_BYTES, StreamSeed};
use hamlyn::ticket::TICKET_BYTES;

/// Judges the bytes, also with the check sums that they should have.
pub fn run(bytes: &[u8]) -> Result<StreamSeed, GrowError> {
    let judged = judge(bytes);
    let Some(bytes) = bytes.get(..SEED_BYTES) else {
        return judged;
    };
    let mut bytes = bytes.to_vec();
    let sum = bytes[..TICKET_BYTES - 4]
        .iter()
        .fold(0x811c_9dc5_u32, |sum, &byte| {
            (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
    bytes[TICKET_BYTES - 4..TICKET_BYTES].copy_from_slice(&sum.to_le_bytes());
    let field = |at: usize| {
        let at = TICKET_BYTES + at;
        u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    };
    let check = field(0).rotate_left(7) ^ field(4).rotate_left(19) ^ 0x5EED_5EED;
    bytes[SEED_BYTES - 4..].copy_from_slice(&check.to_le_bytes());
    judge(&bytes)
}

fn judge(bytes: &[u8]) -> Result<StreamSeed, GrowError> {
    let judged = StreamSeed::from_bytes(bytes);
    match &judged {
        Ok(seed) => assert_eq!(seed.to_bytes(), bytes, "a second form of {seed:?}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    judged
}

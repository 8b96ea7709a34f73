//! Arbitrary bytes as a member of a group. For any bytes: no panic, and what is accepted has one
//! form and divides into parts that lie within it and sum to it.

use hamlyn::group::{MEMBER_BYTES, Member, MemberError};

/// Judges the bytes, also with the check sum that they should have.
pub fn run(bytes: &[u8]) -> Result<Member, MemberError> {
    let decoded = check(bytes);
    let Some(fields) = bytes.get(..MEMBER_BYTES - 4) else {
        return decoded;
    };
    let sum = fields.iter().fold(0x811c_9dc5_u32, |sum, &byte| {
        (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    check(&[fields, &sum.to_le_bytes()].concat())
}

fn check(bytes: &[u8]) -> Result<Member, MemberError> {
    let decoded = Member::from_bytes(bytes);
    match &decoded {
        Ok(member) => {
            assert_eq!(member.to_bytes(), bytes, "a second form of {member:?}");
            let length = member.ticket.length_bytes;
            for lengths in [
                vec![length / 3, length / 3],
                vec![0; 5],
                vec![length, 1],
                vec![],
            ] {
                let Ok(parts) = member.divide(&lengths) else {
                    continue;
                };
                let shares = parts
                    .iter()
                    .map(|part| u128::from(part.share.minus_one()) + 1);
                assert_eq!(
                    shares.sum::<u128>(),
                    u128::from(member.share.minus_one()) + 1
                );
                for (part, length_bytes) in parts.iter().zip(lengths) {
                    assert_eq!(part.ticket.length_bytes, length_bytes);
                    let end = part.ticket.base - member.ticket.base + length_bytes;
                    assert!(end <= length);
                }
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    decoded
}

//! Changes of words, and what they make of the bytes before, without the engine's arithmetic.

use hamlyn::one_sided::{Atomic, Change, Width};

use crate::random::Random;

/// A change, and what it makes of the bytes before.
pub(super) type Made = fn(u64, &[u8]) -> Vec<u8>;

fn word_of(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(whole)
}

pub(super) fn atomic(random: &mut Random, width: Width) -> (Atomic, Made) {
    let choices: [(Change, Made); 4] = [
        (Change::Add, |operand, before| {
            word_of(before).wrapping_add(operand).to_le_bytes()[..before.len()].to_vec()
        }),
        (Change::Xor, |operand, before| {
            (word_of(before) ^ operand).to_le_bytes()[..before.len()].to_vec()
        }),
        (Change::Swap, |operand, before| {
            operand.to_le_bytes()[..before.len()].to_vec()
        }),
        (Change::And, |operand, before| {
            (word_of(before) & operand).to_le_bytes()[..before.len()].to_vec()
        }),
    ];
    let (change, made) = choices[random.below(4) as usize];
    let operand = match random.below(2) {
        0 => random.below(1000),
        _ => random.bits(),
    };
    (Atomic::new(change, width, operand), made)
}

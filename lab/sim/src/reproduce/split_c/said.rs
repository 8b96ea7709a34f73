//! The words of the messages by which programs ask each other, in versions whose handlers the
//! programs run.
//!
//! A word says what is asked, by which program, and where: all that an operation on one word needs,
//! so that such a message has no data besides. Places are in words of eight bytes, and values have
//! 32 bits.

use super::end::{PIECE_BYTES, Place, Primitive, WORD_BYTES};

/// Bits of a word, from the highest: the kind of message, its sender, a place at the receiver; the
/// rest depends on the kind.
const KIND_SHIFT: u32 = 60;
const SENDER_SHIFT: u32 = 56;
const AT_SHIFT: u32 = 38;
pub(super) const SENDER_BITS: u32 = KIND_SHIFT - SENDER_SHIFT;
pub(super) const AT_BITS: u32 = SENDER_SHIFT - AT_SHIFT;
/// Of the rest, bits for a place at the sender; the number of words is above.
const LOCAL_BITS: u32 = AT_BITS;

const _: () = assert!(LOCAL_BITS < 32, "a place has 32 bits");
const _: () = assert!(
    (PIECE_BYTES / WORD_BYTES) >> (AT_SHIFT - LOCAL_BITS) == 0,
    "the words of a piece can be said"
);

/// What a message says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Said {
    /// Its sender asks for that.
    Asks(Primitive, Place),
    /// What its receiver asked for is done.
    Answers,
    /// The same, and this is the word that was read, with its place.
    Brings { local: u32, value: u32 },
    /// A part of a sum over all programs, of that round.
    Adds { round: u32, value: u32 },
}

impl Said {
    /// The word, from the program that its receiver calls by that number.
    pub(super) fn word(self, sender: u32) -> u64 {
        let (kind, at, rest): (u64, u32, u64) = match self {
            Self::Answers => (0, 0, 0),
            Self::Asks(primitive, Place { at, local, value }) => {
                let (local, value) = (u64::from(local), u64::from(value));
                let words = |bytes: u32| u64::from(bytes / WORD_BYTES) << LOCAL_BITS;
                match primitive {
                    Primitive::ActiveMessage => (1, at, 0),
                    Primitive::Get => (2, at, local),
                    Primitive::Put => (3, at, value),
                    Primitive::Store => (4, at, value),
                    Primitive::BulkGet(bytes) => (5, at, words(bytes) | local),
                    Primitive::BulkStore(bytes) => (6, at, words(bytes)),
                    Primitive::Push => (7, at, value),
                }
            }
            Self::Brings { local, value } => (8, local, value.into()),
            Self::Adds { round, value } => (9, round, value.into()),
        };
        kind << KIND_SHIFT | u64::from(sender) << SENDER_SHIFT | u64::from(at) << AT_SHIFT | rest
    }

    /// What a word says, and the number of its sender.
    pub(super) fn of(word: u64) -> (Self, u32) {
        let sender = (word >> SENDER_SHIFT) as u32 & ((1 << SENDER_BITS) - 1);
        let at = (word >> AT_SHIFT) as u32 & ((1 << AT_BITS) - 1);
        let value = word as u32;
        let local = value & ((1 << LOCAL_BITS) - 1);
        let words = (word & ((1 << AT_SHIFT) - 1)) >> LOCAL_BITS;
        let bytes = words as u32 * WORD_BYTES;
        let asks = |primitive, local, value| Self::Asks(primitive, Place { at, local, value });
        let said = match word >> KIND_SHIFT {
            1 => asks(Primitive::ActiveMessage, 0, 0),
            2 => asks(Primitive::Get, local, 0),
            3 => asks(Primitive::Put, 0, value),
            4 => asks(Primitive::Store, 0, value),
            5 => asks(Primitive::BulkGet(bytes), local, 0),
            6 => asks(Primitive::BulkStore(bytes), 0, 0),
            7 => asks(Primitive::Push, 0, value),
            8 => Self::Brings { local: at, value },
            9 => Self::Adds { round: at, value },
            _ => Self::Answers,
        };
        (said, sender)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let place = |local, value| Place {
            at: (1 << AT_BITS) - 1,
            local,
            value,
        };
        let far = (1 << LOCAL_BITS) - 1;
        for said in [
            Said::Asks(Primitive::ActiveMessage, place(0, 0)),
            Said::Asks(Primitive::Get, place(far, 0)),
            Said::Asks(Primitive::Put, place(0, u32::MAX)),
            Said::Asks(Primitive::Store, place(0, 1)),
            Said::Asks(Primitive::BulkGet(PIECE_BYTES), place(far, 0)),
            Said::Asks(Primitive::BulkStore(WORD_BYTES), place(0, 0)),
            Said::Asks(Primitive::Push, place(0, u32::MAX)),
            Said::Answers,
            Said::Brings {
                local: far,
                value: u32::MAX,
            },
            Said::Adds { round: 3, value: 7 },
        ] {
            for sender in [0, 1, (1 << SENDER_BITS) - 1] {
                assert_eq!(Said::of(said.word(sender)), (said, sender));
            }
        }
    }
}

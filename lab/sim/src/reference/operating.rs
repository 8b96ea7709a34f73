//! One-sided operations (decision 0037): which requests are carried out, and what is written.
//!
//! Written from the table of the decision and not from the engine: a request is a packet of a kind
//! of its own, whose data or metadata say where its answer goes.

use std::collections::BTreeMap;

use hamlyn_engine::limits::FAST_INDEX;
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::operation::RESPONSES_PER_LINK;
use hamlyn_engine::packet::{Flags, Header};
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::slot::{Mode, Rights};

use super::receiving::NewSlot;

const READ: u8 = 1;
const PUT: u8 = 2;
const ATOMICS: std::ops::Range<u8> = 0x40..0x60;
/// Changes of each width; the sixth is compare-and-swap.
const CHANGES: u8 = 9;
const COMPARE_SWAP: u8 = 5;

/// Whether the packet asks for an operation.
pub fn is_request(header: &Header) -> bool {
    matches!(header.kind.0, READ | PUT) || ATOMICS.contains(&header.kind.0)
}

/// The bytes of its slot that a request may change.
pub fn changed_bytes(header: &Header) -> u64 {
    match header.kind.0 {
        READ => 0,
        PUT => u64::from(header.length_bytes),
        _ => width_bytes(header),
    }
}

fn width_bytes(header: &Header) -> u64 {
    if header.kind.0 & 0x10 == 0 { 4 } else { 8 }
}

fn word(data: &[u8], number: usize) -> Option<u64> {
    let bytes = data.get(8 * number..8 * number + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// What the changed bytes become, which were `before`.
pub fn changed(header: &Header, data: &[u8], before: &[u8]) -> Vec<u8> {
    match header.kind.0 {
        READ => Vec::new(),
        PUT => data.to_vec(),
        _ => {
            let (operand, expected) = (word(data, 1).unwrap_or(0), word(data, 2).unwrap_or(0));
            let mut whole = [0; 8];
            whole[..before.len()].copy_from_slice(before);
            let before_word = u64::from_le_bytes(whole);
            let is_narrow = before.len() == 4;
            let sign = |word: u64| {
                if is_narrow {
                    i64::from(word as i32)
                } else {
                    word as i64
                }
            };
            let same = |one: u64, other: u64| sign(one) == sign(other);
            let after = match header.kind.0 & 0xf {
                0 => before_word.wrapping_add(operand),
                1 => before_word & operand,
                2 => before_word | operand,
                3 => before_word ^ operand,
                4 => operand,
                COMPARE_SWAP if same(before_word, expected) => operand,
                6 if sign(operand) < sign(before_word) => operand,
                7 if sign(operand) > sign(before_word) => operand,
                8 if is_narrow => {
                    let sum = f32::from_bits(before_word as u32) + f32::from_bits(operand as u32);
                    u64::from(sum.to_bits())
                }
                8 => (f64::from_bits(before_word) + f64::from_bits(operand)).to_bits(),
                _ => before_word,
            };
            after.to_le_bytes()[..before.len()].to_vec()
        }
    }
}

/// Answers that wait, by link.
#[derive(Clone, Debug, Default)]
pub struct Answers(BTreeMap<LinkId, usize>);

impl Answers {
    /// One was sent, or is dropped.
    pub fn sent(&mut self, link: LinkId) {
        if let Some(count) = self.0.get_mut(&link) {
            *count = count.saturating_sub(1);
        }
    }

    /// The link is gone.
    pub fn link_ended(&mut self, link: LinkId) {
        self.0.remove(&link);
    }

    /// A request came that says where its answer goes.
    fn owed(&mut self, link: LinkId) {
        *self.0.entry(link).or_default() += 1;
    }

    fn has_room(&self, link: LinkId) -> bool {
        self.0
            .get(&link)
            .is_none_or(|count| *count < RESPONSES_PER_LINK)
    }
}

/// Why a request is not carried out; `slot` is that which it names, or the reason why there is
/// none.
pub fn judge(
    answers: &mut Answers,
    from: LinkId,
    header: &Header,
    data: &[u8],
    slot: Result<&NewSlot, Refusal>,
) -> Result<(), Refusal> {
    if !answers.has_room(from) {
        return Err(Refusal::TooManyRequests);
    }
    let (kind, length) = (header.kind.0, u64::from(header.length_bytes));
    let metadata = header.metadata_length_bytes;
    let wanted = word(data, 1).unwrap_or(0) >> 32;
    match kind {
        PUT if metadata != 8 => return Err(Refusal::BadMetadata),
        PUT => answers.owed(from),
        _ if length < 16 => return Err(Refusal::BadRequest),
        READ => {
            answers.owed(from);
            if length != 16 || metadata != 0 || wanted >= 1 << 23 {
                return Err(Refusal::BadRequest);
            }
        }
        _ => {
            answers.owed(from);
            if kind & 0xf >= CHANGES {
                return Err(Refusal::NoSuchOperation);
            }
            let words = if kind & 0xf == COMPARE_SWAP { 24 } else { 16 };
            if length != words || metadata != 0 {
                return Err(Refusal::BadRequest);
            }
        }
    }
    let slot = slot?;
    if slot.mode != Mode::Normal {
        return Err(Refusal::FastToParanoid);
    }
    if header.key != slot.key {
        return Err(Refusal::BadKey);
    }
    if header.metadata_index != FAST_INDEX {
        return Err(Refusal::NoMetadataEntry);
    }
    if header.flags != Flags::NONE {
        return Err(Refusal::UnknownFlag);
    }
    let (right, bytes) = match kind {
        READ => (Rights::READ, wanted),
        PUT => (Rights::WRITE, length),
        _ => (Rights::ATOMIC, width_bytes(header)),
    };
    if !slot.rights.grant(right) {
        return Err(Refusal::NoRight);
    }
    if u128::from(header.offset) + u128::from(bytes) > u128::from(slot.length_bytes) {
        return Err(Refusal::OutOfBounds);
    }
    let is_atomic = ATOMICS.contains(&kind);
    if is_atomic && !(slot.base + header.offset).is_multiple_of(bytes) {
        return Err(Refusal::Misaligned);
    }
    Ok(())
}

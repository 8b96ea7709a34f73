//! What a frame says, read by the model itself from its bytes (`docs/protocol.md`). Bytes that are
//! no frame say nothing.

/// Where the fields of a frame lie.
const FLAGS_AT: usize = 16;
const RUNS_AT: usize = 17;
const NACKS_AT: usize = 18;
const HEADER_BYTES: usize = 20;
const RUN_BYTES: usize = 8;
const NACK_BYTES: usize = 11;
const PART_BYTES: usize = 5;
/// Reasons of a NACK: the frame was taken but for some packets, and which, perhaps with more to
/// follow.
const TAKEN_WITHOUT: u8 = 0;
const TAKEN_IN_PART: u8 = 3;
/// The flag: the echo is one.
const ECHOES: u8 = 1;
/// In place of a channel: there is none.
const NO_CHANNEL: u16 = u16::MAX;

/// What a frame says, read by this model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Words {
    /// Its channel and sequence number, and where its packets begin.
    pub(super) packets: Option<(u16, u32, usize)>,
    pub(super) echoes: bool,
    /// Channel and sequence number of each frame that is acknowledged.
    pub(super) acknowledged: Vec<(u16, u32)>,
    /// Of each NACK channel, sequence number, and what was refused; nothing if the frame was not
    /// taken at all.
    pub(super) nacks: Vec<(u16, u32, Option<Told>)>,
}

/// Which packets of a frame were refused, as far as one frame says it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Told {
    pub(super) refused: Refused,
    /// Other frames tell of others.
    pub(super) is_part: bool,
}

/// Packets of a frame that were refused: their index, and the number of the reason.
pub(super) type Refused = Vec<(u16, u8)>;

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl Words {
    /// Nothing if it is no frame.
    pub(super) fn read(frame: &[u8]) -> Option<Self> {
        let mut at = HEADER_BYTES;
        let mut acknowledged = Vec::new();
        for _ in 0..*frame.get(RUNS_AT)? {
            let (first, count) = (short(frame, at)?, short(frame, at + 2)?);
            let sequence = long(frame, at + 4)?;
            acknowledged
                .extend((first..first.checked_add(count)?).map(|channel| (channel, sequence)));
            at += RUN_BYTES;
        }
        let mut nacks = Vec::new();
        for _ in 0..*frame.get(NACKS_AT)? {
            let (channel, sequence) = (short(frame, at)?, long(frame, at + 2)?);
            let reason = *frame.get(at + 10)?;
            at += NACK_BYTES;
            let mut refused = None;
            if reason == TAKEN_WITHOUT || reason == TAKEN_IN_PART {
                let parts = short(frame, at)?;
                at += 2;
                let told = refused.insert(Told {
                    refused: Vec::new(),
                    is_part: reason == TAKEN_IN_PART,
                });
                for _ in 0..parts {
                    let (first, count) = (short(frame, at)?, short(frame, at + 2)?);
                    let why = *frame.get(at + 4)?;
                    // No packets: what another frame told of ended there.
                    told.is_part |= count == 0;
                    let packets = first..first.checked_add(count)?;
                    told.refused.extend(packets.map(|index| (index, why)));
                    at += PART_BYTES;
                }
            }
            nacks.push((channel, sequence, refused));
        }
        let channel = short(frame, 10)?;
        Some(Self {
            packets: (channel != NO_CHANNEL).then_some((channel, long(frame, 12)?, at)),
            echoes: frame.get(FLAGS_AT)? & ECHOES != 0,
            acknowledged,
            nacks,
        })
    }
}

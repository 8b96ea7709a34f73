//! What one-sided operations ask for.

use hamlyn::one_sided::{
    Atomic, Change, Initiator, Operation as Token, OperationError, Strided, Width,
};
use hamlyn::{Session, Wait};

use crate::host::Host;

/// Every link has room for so many bytes in a request.
const REQUEST_BYTES: u64 = 1_024;

/// What an operation asks for.
pub(crate) enum Request<'a> {
    Read { offset: u64, length: u64 },
    ReadStrided(Strided),
    ReadIndexed(&'a [u64], u64),
    Put { offset: u64, bytes: &'a [u8] },
    PutStrided(Strided, &'a [u8]),
    PutIndexed(&'a [u64], u64, &'a [u8]),
    ReadWord { offset: u64 },
    Atomic { offset: u64, atomic: Atomic },
}

/// What comes of an operation.
pub(crate) enum Outcome {
    Nothing,
    Word,
    Float(Width),
    /// So many bytes in the landing memory.
    Landed(u64),
}

impl Request<'_> {
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Read { length, .. } => Outcome::Landed(*length),
            Self::ReadStrided(strided) => {
                Outcome::Landed(strided.pieces.saturating_mul(strided.piece_bytes))
            }
            Self::ReadIndexed(offsets, piece_bytes) => {
                Outcome::Landed((offsets.len() as u64).saturating_mul(*piece_bytes))
            }
            Self::Put { .. } | Self::PutStrided(..) | Self::PutIndexed(..) => Outcome::Nothing,
            Self::ReadWord { .. } => Outcome::Word,
            Self::Atomic { atomic, .. } => match atomic.change {
                Change::FloatAdd => Outcome::Float(atomic.width),
                _ => Outcome::Word,
            },
        }
    }

    /// True if it may take several requests.
    pub(crate) fn is_long(&self) -> bool {
        match self {
            Self::Read { length, .. } => *length > REQUEST_BYTES,
            Self::Put { bytes, .. } => bytes.len() as u64 > REQUEST_BYTES,
            Self::ReadWord { .. } | Self::Atomic { .. } => false,
            _ => true,
        }
    }

    /// Begins it; what is read lands at `landing`.
    pub(crate) fn begin(
        &self,
        interface: &mut Session<'_, Host>,
        initiator: &mut Initiator,
        landing: u64,
        wait: Wait,
    ) -> Result<Token, OperationError> {
        match self {
            Self::Read { offset, length } => {
                interface.begin_read(initiator, *offset, landing, *length, wait)
            }
            Self::ReadStrided(strided) => {
                interface.begin_read_strided(initiator, strided, landing, wait)
            }
            Self::ReadIndexed(offsets, piece_bytes) => {
                interface.begin_read_indexed(initiator, offsets, *piece_bytes, landing, wait)
            }
            Self::Put { offset, bytes } => interface.begin_put(initiator, *offset, bytes, wait),
            Self::PutStrided(strided, bytes) => {
                interface.begin_put_strided(initiator, strided, bytes, wait)
            }
            Self::PutIndexed(offsets, piece_bytes, bytes) => {
                interface.begin_put_indexed(initiator, offsets, *piece_bytes, bytes, wait)
            }
            Self::ReadWord { offset } => interface.begin_read_word(initiator, *offset, wait),
            Self::Atomic { offset, atomic } => {
                interface.begin_atomic(initiator, *offset, *atomic, wait)
            }
        }
    }
}

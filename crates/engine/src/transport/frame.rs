//! What stands in a frame before its packets: header, acknowledgements, NACKs. The bytes are in the
//! documentation of [`crate::transport`].
//!
//! Everything here reads foreign bytes, is total, and takes nothing for true but lengths.

use super::close_reason::NackReason;
use super::packets;

/// Bytes of the header.
pub(super) const HEADER_BYTES: usize = 20;
/// Bytes that each frame with packets keeps free for runs of acknowledgements.
pub(super) const ACKNOWLEDGE_ROOM_BYTES: usize = 2 * RUN_BYTES;
/// Bytes of a run of acknowledgements.
pub(super) const RUN_BYTES: usize = 8;
/// Bytes of a NACK, the runs of refused packets not counted.
pub(super) const NACK_BYTES: usize = 11;
/// Bytes of a run of refused packets.
pub(super) const REFUSED_BYTES: usize = 5;
/// The format that this is.
pub(super) const FORMAT: u8 = 1;
/// Channel of a frame without packets.
pub(super) const NO_CHANNEL: u16 = u16::MAX;
/// Reason of a NACK for a frame that was taken, but for some of its packets.
pub(super) const TAKEN_WITHOUT: u8 = 0;
/// The same, if its runs do not fit one frame: more of them follow in other frames.
pub(super) const TAKEN_IN_PART: u8 = 3;
/// A hold that was longer than can be said.
pub(super) const HOLD_UNKNOWN: u16 = u16::MAX;

/// The echo is one.
pub(super) const ECHO: u8 = 1;
/// The sender waits for an acknowledgement.
pub(super) const ASK: u8 = 2;
/// The sender has closed the association.
pub(super) const CLOSING: u8 = 4;

/// Nanoseconds of one step of a timestamp, as a shift.
const STAMP_SHIFT: u32 = 6;

/// A time as it travels: 64 ns a step, and the same again after 274 seconds.
pub(super) const fn stamp_of(now_ns: u64) -> u32 {
    (now_ns >> STAMP_SHIFT) as u32
}

/// Whether `later` was after `earlier`, if they lie less than half of all numbers apart.
pub(super) const fn is_after(later: u32, earlier: u32) -> bool {
    let distance = later.wrapping_sub(earlier);
    distance != 0 && distance < 1 << 31
}

/// How long ago that was; nothing if it lies ahead.
pub(super) fn since_ns(now: u32, stamp: u32) -> Option<u64> {
    let steps = now.wrapping_sub(stamp);
    (steps < 1 << 31).then(|| u64::from(steps) << STAMP_SHIFT)
}

/// The first bytes of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FrameHeader {
    pub(super) stamp: u32,
    pub(super) echo: u32,
    pub(super) hold_us: u16,
    pub(super) channel: u16,
    pub(super) sequence: u32,
    pub(super) flags: u8,
    pub(super) runs: u8,
    pub(super) nacks: u8,
}

impl FrameHeader {
    /// As it lies in a frame.
    pub(super) fn write(&self, into: &mut [u8; HEADER_BYTES]) {
        into[..4].copy_from_slice(&self.stamp.to_le_bytes());
        into[4..8].copy_from_slice(&self.echo.to_le_bytes());
        into[8..10].copy_from_slice(&self.hold_us.to_le_bytes());
        into[10..12].copy_from_slice(&self.channel.to_le_bytes());
        into[12..16].copy_from_slice(&self.sequence.to_le_bytes());
        into[16..].copy_from_slice(&[self.flags, self.runs, self.nacks, FORMAT]);
    }

    /// The header of these bytes, if they are long enough and of this format.
    pub(super) fn read(plain: &[u8]) -> Option<Self> {
        let mut bytes = Bytes(plain);
        let header = Self {
            stamp: bytes.u32()?,
            echo: bytes.u32()?,
            hold_us: bytes.u16()?,
            channel: bytes.u16()?,
            sequence: bytes.u32()?,
            flags: bytes.u8()?,
            runs: bytes.u8()?,
            nacks: bytes.u8()?,
        };
        (bytes.u8()? == FORMAT && header.flags & !(ECHO | ASK | CLOSING) == 0).then_some(header)
    }
}

/// Neighbouring channels of which the frame of that number was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub(super) first: u16,
    pub(super) count: u16,
    pub(super) sequence: u32,
}

impl Run {
    pub(super) fn to_bytes(self) -> [u8; RUN_BYTES] {
        let mut bytes = [0; RUN_BYTES];
        bytes[..2].copy_from_slice(&self.first.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.count.to_le_bytes());
        bytes[4..].copy_from_slice(&self.sequence.to_le_bytes());
        bytes
    }
}

/// A frame that was not taken, or not wholly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Nack {
    pub(super) channel: u16,
    pub(super) sequence: u32,
    pub(super) stamp: u32,
    /// [`TAKEN_WITHOUT`], [`TAKEN_IN_PART`], or the code of a [`NackReason`].
    pub(super) reason: u8,
}

impl Nack {
    /// A NACK of the whole frame.
    pub(super) fn whole(channel: u16, sequence: u32, stamp: u32, why: NackReason) -> Self {
        Self {
            channel,
            sequence,
            stamp,
            reason: why.code(),
        }
    }

    /// Whether runs of refused packets follow.
    pub(super) fn has_runs(&self) -> bool {
        matches!(self.reason, TAKEN_WITHOUT | TAKEN_IN_PART)
    }

    pub(super) fn to_bytes(self) -> [u8; NACK_BYTES] {
        let mut bytes = [0; NACK_BYTES];
        bytes[..2].copy_from_slice(&self.channel.to_le_bytes());
        bytes[2..6].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[6..10].copy_from_slice(&self.stamp.to_le_bytes());
        bytes[10] = self.reason;
        bytes
    }
}

/// Neighbouring packets of a frame that were refused for that reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RefusedRun {
    pub(super) first: u16,
    pub(super) count: u16,
    pub(super) reason: u8,
}

impl RefusedRun {
    pub(super) fn to_bytes(self) -> [u8; REFUSED_BYTES] {
        let mut bytes = [0; REFUSED_BYTES];
        bytes[..2].copy_from_slice(&self.first.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.count.to_le_bytes());
        bytes[4] = self.reason;
        bytes
    }
}

/// A frame whose lengths are right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) header: FrameHeader,
    runs: &'a [u8],
    nacks: &'a [u8],
    /// Where the packets begin.
    pub(super) packets_at: usize,
}

impl<'a> Frame<'a> {
    /// The frame of these bytes, if all of it but the packets is well made; those are for
    /// [`packets::count`], as most frames that came twice need not be looked through.
    pub(super) fn read(plain: &'a [u8]) -> Option<Self> {
        let header = FrameHeader::read(plain)?;
        let mut rest = Bytes(plain.get(HEADER_BYTES..)?);
        let runs = rest.take(usize::from(header.runs) * RUN_BYTES)?;
        let after_runs = rest.0;
        for _ in 0..header.nacks {
            let nack = rest.nack()?;
            if nack.has_runs() {
                let count = rest.u16()?;
                rest.take(usize::from(count) * REFUSED_BYTES)?;
            }
        }
        let nacks = &after_runs[..after_runs.len() - rest.0.len()];
        let packets_at = plain.len() - rest.0.len();
        // A frame without a channel brings no packets.
        if header.channel == NO_CHANNEL && packets::count(rest.0) != Some(0) {
            return None;
        }
        Some(Self {
            header,
            runs,
            nacks,
            packets_at,
        })
    }

    /// The runs of acknowledgements.
    pub(super) fn runs(&self) -> impl Iterator<Item = Run> + 'a {
        self.runs.chunks_exact(RUN_BYTES).filter_map(|bytes| {
            let mut bytes = Bytes(bytes);
            Some(Run {
                first: bytes.u16()?,
                count: bytes.u16()?,
                sequence: bytes.u32()?,
            })
        })
    }

    /// The NACKs, each with its runs of refused packets.
    pub(super) fn nacks(&self) -> impl Iterator<Item = (Nack, RefusedRuns<'a>)> + 'a {
        let mut rest = Bytes(self.nacks);
        core::iter::from_fn(move || {
            let nack = rest.nack()?;
            let mut refused: &[u8] = &[];
            if nack.has_runs() {
                let count = rest.u16()?;
                refused = rest.take(usize::from(count) * REFUSED_BYTES)?;
            }
            Some((nack, RefusedRuns(refused)))
        })
    }
}

/// Runs of refused packets, as they lie in a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct RefusedRuns<'a>(&'a [u8]);

impl RefusedRuns<'_> {
    /// One after the other.
    pub(super) fn iter(&self) -> impl Iterator<Item = RefusedRun> + '_ {
        self.0.chunks_exact(REFUSED_BYTES).filter_map(|bytes| {
            let mut bytes = Bytes(bytes);
            Some(RefusedRun {
                first: bytes.u16()?,
                count: bytes.u16()?,
                reason: bytes.u8()?,
            })
        })
    }
}

/// Foreign bytes, taken from the front.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length_bytes: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(length_bytes)?;
        self.0 = rest;
        Some(front)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (front, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*front)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn nack(&mut self) -> Option<Nack> {
        Some(Nack {
            channel: self.u16()?,
            sequence: self.u32()?,
            stamp: self.u32()?,
            reason: self.u8()?,
        })
    }
}

/// Answers a frame for an interface that is not resident (4.4.4), without any state: its timestamp
/// comes back, and if it brought packets, a NACK. Gives the bytes of the answer, or nothing if
/// there is nothing to answer, or `into` is shorter than 31 bytes. The answer goes back on the same
/// path.
pub fn answer_not_resident(now_ns: u64, plain: &[u8], into: &mut [u8]) -> Option<usize> {
    let frame = Frame::read(plain)?;
    let header = frame.header;
    let brings = header.channel != NO_CHANNEL;
    if header.flags & CLOSING != 0 || !(brings || header.flags & ASK != 0) {
        return None;
    }
    let (first, rest) = into.split_first_chunk_mut::<HEADER_BYTES>()?;
    let nack = Nack::whole(
        header.channel,
        header.sequence,
        header.stamp,
        NackReason::NotResident,
    );
    rest.get_mut(..NACK_BYTES)?
        .copy_from_slice(&nack.to_bytes());
    FrameHeader {
        stamp: stamp_of(now_ns),
        echo: header.stamp,
        hold_us: 0,
        channel: NO_CHANNEL,
        sequence: 0,
        flags: ECHO,
        runs: 0,
        nacks: u8::from(brings),
    }
    .write(first);
    Some(HEADER_BYTES + if brings { NACK_BYTES } else { 0 })
}

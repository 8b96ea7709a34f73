//! The 16 clear bytes with which each datagram begins, little endian:
//!
//! | at | bytes | |
//! |---|---|---|
//! | 0 | 1 | version (upper four bits) and kind |
//! | 1 | 1 | bit 0 is the key phase; bits 4 to 7 are the path: the sender's path; the others are zero |
//! | 2 | 2 | length of the datagram in bytes, all of it |
//! | 4 | 4 | association, by the number that the receiver of the datagram gave it; zero in an initiation |
//! | 8 | 8 | packet number |
//!
//! Anything else is an invalid packet header: its meaning is not guessed. The length is there so
//! that datagrams which the kernel has joined can be told apart without a control message, which
//! would cost as much as a quarter of receiving one.

/// Bytes of a packet header.
pub const PACKET_HEADER_BYTES: usize = 16;
/// The version of the protocol.
pub const VERSION: u8 = 1;

const PHASE: u8 = 1;
const PATH_SHIFT: u32 = 4;
const PATHS: u8 = 0xf << PATH_SHIFT;

const _: () = assert!(hamlyn_engine::limits::PATHS_MAX <= 1 << PATH_SHIFT);

/// What a datagram is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A frame of an association.
    Data = 0,
    /// The first message of a handshake.
    Initiation = 1,
    /// The second one.
    Response = 2,
    /// A responder wants proof of the initiator's address first.
    Cookie = 3,
    /// A protected datagram of a length to be tried: the length (u16), then padding.
    Probe = 4,
    /// A probe of the length in its first two bytes has come.
    ProbeAnswer = 5,
    /// The protected payload of a handshake: one request, one answer.
    Payload = 6,
}

impl Kind {
    fn of(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Data,
            1 => Self::Initiation,
            2 => Self::Response,
            3 => Self::Cookie,
            4 => Self::Probe,
            5 => Self::ProbeAnswer,
            6 => Self::Payload,
            _ => return None,
        })
    }

    /// Whether datagrams of this kind are protected.
    #[inline]
    pub fn is_encrypted(self) -> bool {
        self.is_of_link() || self == Self::Payload
    }

    /// Whether datagrams of this kind are those of a link.
    #[inline]
    pub fn is_of_link(self) -> bool {
        matches!(self, Self::Data | Self::Probe | Self::ProbeAnswer)
    }
}

/// The fields of a packet header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketHeader {
    /// What the datagram is.
    pub kind: Kind,
    /// How long the datagram is, in bytes.
    pub length_bytes: u16,
    /// Lowest bit of the number of its key.
    pub phase: bool,
    /// The sender's path; at most 15.
    pub path: u8,
    /// For which association.
    pub association: u32,
    /// Which one.
    pub packet_number: u64,
}

impl PacketHeader {
    /// The packet header of a datagram. Nothing if it is of another version, kind or length, or if
    /// anything is set that this version leaves zero.
    #[inline]
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let bytes: &[u8; PACKET_HEADER_BYTES] = datagram.first_chunk()?;
        let &[head, flags, l0, l1, a0, a1, a2, a3, ref number @ ..] = bytes;
        let length_bytes = u16::from_le_bytes([l0, l1]);
        if head >> 4 != VERSION
            || flags & !(PHASE | PATHS) != 0
            || usize::from(length_bytes) != datagram.len()
        {
            return None;
        }
        Some(Self {
            kind: Kind::of(head & 0xf)?,
            length_bytes,
            phase: flags & PHASE != 0,
            path: flags >> PATH_SHIFT,
            association: u32::from_le_bytes([a0, a1, a2, a3]),
            packet_number: u64::from_le_bytes(*number),
        })
    }

    /// As it is sent.
    #[inline]
    pub fn bytes(&self) -> [u8; PACKET_HEADER_BYTES] {
        let mut bytes = [0; PACKET_HEADER_BYTES];
        bytes[0] = VERSION << 4 | self.kind as u8;
        bytes[1] = self.path << PATH_SHIFT | u8::from(self.phase);
        bytes[2..4].copy_from_slice(&self.length_bytes.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.association.to_le_bytes());
        bytes[8..].copy_from_slice(&self.packet_number.to_le_bytes());
        bytes
    }
}

/// For which association a datagram is, if it is one of a link.
#[inline]
pub(crate) fn association_of(datagram: &[u8]) -> Option<u32> {
    let packet_header = PacketHeader::parse(datagram)?;
    packet_header
        .kind
        .is_of_link()
        .then_some(packet_header.association)
}

/// How long the datagram says it is that begins here; nothing if none can.
#[inline]
pub(super) fn claimed_bytes(bytes: &[u8]) -> Option<usize> {
    let &[head, _, l0, l1] = bytes.first_chunk()?;
    let length = usize::from(u16::from_le_bytes([l0, l1]));
    (head >> 4 == VERSION && length >= PACKET_HEADER_BYTES).then_some(length)
}

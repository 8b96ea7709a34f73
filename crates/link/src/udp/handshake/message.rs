//! The messages, byte by byte, little endian. Each has one length for each kind of credentials.
//!
//! *Initiation*: packet header (association 0; the packet number is the initiator's time in
//! milliseconds), mode (u8), three zeros, the initiator's number (u32); then the first message of
//! Noise; `mac1`, a code of all before it and of the interface that is asked; `mac2`, a code of all
//! before it with the cookie, or zeros. The prologue of Noise is the 24 bytes before its message,
//! and that interface (u64).
//!
//! *Response*: packet header (association: the initiator's number; packet number 0), mode, three
//! zeros, the responder's number; the second message of Noise, which carries the responder's number
//! again; a code of all before it and of the initiation's `mac1`.
//!
//! *Cookie*: packet header as of the response, 32 bytes of cookie, a code as of the response.
//!
//! *Payload*: a protected datagram, whose association is the receiver's number; one in each
//! direction.
//!
//! Codes are HMAC-SHA256. Without keys a nonce of 32 bytes takes the place of a message's key
//! agreement, and nothing is encrypted.

use ring::hmac;

use super::super::packet_header::{Kind, PACKET_HEADER_BYTES, PacketHeader};
use super::super::protection::{OVERHEAD_BYTES_MAX, TAG_BYTES};

/// What either side may say, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1_032;
/// Bytes of a code.
pub(super) const CODE_BYTES: usize = 32;
/// Envelope, mode and number.
pub(super) const HEAD_BYTES: usize = PACKET_HEADER_BYTES + 8;
/// What a response carries.
pub(super) const NUMBER_BYTES: usize = 4;
/// A point of the curve, or a nonce.
pub(super) const POINT_BYTES: usize = 32;
/// The longest message of a handshake, in bytes: a payload.
pub const MESSAGE_BYTES_MAX: usize = OVERHEAD_BYTES_MAX + PAYLOAD_BYTES_MAX;
/// A message with a cookie, in bytes.
pub const COOKIE_MESSAGE_BYTES: usize = PACKET_HEADER_BYTES + 2 * CODE_BYTES;

/// Which credentials a message was made with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Mode {
    Secret = 1,
    Keys = 2,
    Insecure = 3,
}

impl Mode {
    const fn first_bytes(self) -> usize {
        match self {
            Self::Secret => POINT_BYTES + TAG_BYTES,
            Self::Keys => 2 * (POINT_BYTES + TAG_BYTES),
            Self::Insecure => POINT_BYTES,
        }
    }

    const fn second_bytes(self) -> usize {
        match self {
            Self::Secret | Self::Keys => POINT_BYTES + NUMBER_BYTES + TAG_BYTES,
            Self::Insecure => POINT_BYTES + NUMBER_BYTES,
        }
    }

    /// All that there are.
    pub(super) const ALL: [Self; 3] = [Self::Secret, Self::Keys, Self::Insecure];

    pub(super) const fn initiation_bytes(self) -> usize {
        HEAD_BYTES + self.first_bytes() + 2 * CODE_BYTES
    }

    pub(super) const fn response_bytes(self) -> usize {
        HEAD_BYTES + self.second_bytes() + CODE_BYTES
    }
}

// No amplification, whatever the credentials.
const _: () = {
    let modes = Mode::ALL;
    let mut at = 0;
    while at < modes.len() {
        assert!(modes[at].response_bytes() <= modes[at].initiation_bytes());
        assert!(COOKIE_MESSAGE_BYTES <= modes[at].initiation_bytes());
        assert!(modes[at].initiation_bytes() <= MESSAGE_BYTES_MAX);
        at += 1;
    }
    assert!(MESSAGE_BYTES_MAX <= super::super::DATAGRAM_BYTES_MIN);
};

/// What precedes the body of an initiation or a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Head {
    pub(super) kind: Kind,
    /// Of whom it is for.
    pub(super) to: u32,
    /// Of whom it is from.
    pub(super) from: u32,
    pub(super) time_ms: u64,
}

impl Head {
    pub(super) fn bytes(&self, mode: Mode) -> [u8; HEAD_BYTES] {
        let length_bytes = match self.kind {
            Kind::Initiation => mode.initiation_bytes(),
            Kind::Response => mode.response_bytes(),
            _ => COOKIE_MESSAGE_BYTES,
        };
        let packet_header = PacketHeader {
            kind: self.kind,
            length_bytes: length_bytes as u16,
            phase: false,
            path: 0,
            association: self.to,
            packet_number: self.time_ms,
        };
        let mut bytes = [0; HEAD_BYTES];
        bytes[..PACKET_HEADER_BYTES].copy_from_slice(&packet_header.bytes());
        bytes[PACKET_HEADER_BYTES] = mode as u8;
        bytes[HEAD_BYTES - 4..].copy_from_slice(&self.from.to_le_bytes());
        bytes
    }

    /// The head of a message of this kind and mode. Any other encoding is refused.
    pub(super) fn parse(message: &[u8], mode: Mode, kind: Kind) -> Option<Self> {
        let bytes: &[u8; HEAD_BYTES] = message.first_chunk()?;
        let packet_header = PacketHeader::parse(message)?;
        let (_, from) = bytes.split_last_chunk::<4>()?;
        let head = Self {
            kind,
            to: packet_header.association,
            from: u32::from_le_bytes(*from),
            time_ms: packet_header.packet_number,
        };
        (head.bytes(mode) == *bytes).then_some(head)
    }
}

/// Keys of the codes: those of initiations, and of what answers them.
#[derive(Clone)]
pub(super) struct Codes {
    pub(super) ask: hmac::Key,
    pub(super) answer: hmac::Key,
}

impl Codes {
    /// From the secret, from the responder's public key, or from nothing.
    pub(super) fn new(from: &[u8]) -> Self {
        let key = |label| hmac::Key::new(hmac::HMAC_SHA256, derive(from, label).as_ref());
        Self {
            ask: key("hamlyn 1 mac1"),
            answer: key("hamlyn 1 answer"),
        }
    }
}

/// A value for one purpose.
pub(super) fn derive(from: &[u8], label: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, from), label.as_bytes())
}

/// What the first code of an initiation covers: its bytes before that, and the interface that is
/// asked.
pub(super) struct Coded([u8; Mode::Keys.initiation_bytes()], usize);

impl Coded {
    pub(super) fn new(ask: &[u8], interface: u64) -> Self {
        let mut bytes = [0; Mode::Keys.initiation_bytes()];
        bytes[..ask.len()].copy_from_slice(ask);
        bytes[ask.len()..ask.len() + 8].copy_from_slice(&interface.to_le_bytes());
        Self(bytes, ask.len() + 8)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

/// What both sides of an exchange begin with.
pub(super) fn prologue(head: &[u8], interface: u64) -> Vec<u8> {
    [head, &interface.to_le_bytes()].concat()
}

/// Code of an answer: of its bytes, and of the initiation that it answers.
pub(super) fn answer_code(key: &hmac::Key, bytes: &[u8], ask_code: &[u8]) -> hmac::Tag {
    let mut context = hmac::Context::with_key(key);
    context.update(bytes);
    context.update(ask_code);
    context.sign()
}

/// Whether two codes are the same, in a time that does not tell where they differ: their codes
/// under a key are compared.
pub(super) fn is_same(key: &hmac::Key, code: &hmac::Tag, other: &[u8]) -> bool {
    hmac::verify(key, other, hmac::sign(key, code.as_ref()).as_ref()).is_ok()
}

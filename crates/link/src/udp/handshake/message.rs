//! The messages, byte by byte, little endian. Each has one length for each kind of credentials; whatever is unused is zero.
//!
//! *Initiation*: envelope (association 0; the packet number is the initiator's time in milliseconds), mode (u8), three zeros, the
//! initiator's number for the association (u32); then the first message of Noise, whose prologue are the 24 bytes before it; `mac1`,
//! a code of all before it; `mac2`, one of all before it with the cookie, or zeros. Its payload: length (u16), 1,032 bytes.
//!
//! *Response*: envelope (association: the initiator's number; packet number 0), mode, three zeros, the responder's number; the
//! second message of Noise; a code of all before it and of the initiation's `mac1`. Its payload: the responder's number again, length,
//! 1,032 bytes.
//!
//! *Cookie*: envelope as of the response, 32 bytes of cookie, a code as of the response.
//!
//! Codes are HMAC-SHA256. Without keys a nonce of 32 bytes takes the place of a message's key agreement, and nothing is encrypted.

use ring::hmac;

use super::super::envelope::{ENVELOPE_BYTES, Envelope, Kind};

/// What either side may say, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1_032;
/// Bytes of a code.
pub(super) const CODE_BYTES: usize = 32;
/// Envelope, mode and number.
pub(super) const HEAD_BYTES: usize = ENVELOPE_BYTES + 8;
/// Plain payload of an initiation.
pub(super) const ASK_BYTES: usize = 2 + PAYLOAD_BYTES_MAX;
/// Plain payload of a response.
pub(super) const ANSWER_BYTES: usize = 4 + ASK_BYTES;
/// A point of the curve, or a nonce.
pub(super) const POINT_BYTES: usize = 32;
pub(super) const TAG_BYTES: usize = 16;
/// The longest initiation, in bytes.
pub const INITIATION_BYTES_MAX: usize = Mode::Keys.initiation_bytes();
/// The longest response, in bytes.
pub const RESPONSE_BYTES_MAX: usize = Mode::Secret.response_bytes();
/// A message with a cookie, in bytes.
pub const COOKIE_MESSAGE_BYTES: usize = ENVELOPE_BYTES + 2 * CODE_BYTES;

/// Which credentials a message was made with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Mode {
    Secret = 1,
    Keys = 2,
    Insecure = 3,
}

impl Mode {
    pub(super) const fn first_bytes(self) -> usize {
        match self {
            Self::Secret => POINT_BYTES + ASK_BYTES + TAG_BYTES,
            Self::Keys => 2 * POINT_BYTES + TAG_BYTES + ASK_BYTES + TAG_BYTES,
            Self::Insecure => POINT_BYTES + ASK_BYTES,
        }
    }

    pub(super) const fn second_bytes(self) -> usize {
        match self {
            Self::Secret | Self::Keys => POINT_BYTES + ANSWER_BYTES + TAG_BYTES,
            Self::Insecure => POINT_BYTES + ANSWER_BYTES,
        }
    }

    pub(super) const fn initiation_bytes(self) -> usize {
        HEAD_BYTES + self.first_bytes() + 2 * CODE_BYTES
    }

    pub(super) const fn response_bytes(self) -> usize {
        HEAD_BYTES + self.second_bytes() + CODE_BYTES
    }
}

// No amplification, whatever the credentials.
const _: () = {
    let modes = [Mode::Secret, Mode::Keys, Mode::Insecure];
    let mut at = 0;
    while at < modes.len() {
        assert!(modes[at].response_bytes() <= modes[at].initiation_bytes());
        assert!(COOKIE_MESSAGE_BYTES <= modes[at].initiation_bytes());
        assert!(modes[at].initiation_bytes() <= super::super::DATAGRAM_BYTES_MIN);
        at += 1;
    }
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
        let envelope = Envelope {
            kind: self.kind,
            length_bytes: length_bytes as u16,
            phase: false,
            path: 0,
            association: self.to,
            packet_number: self.time_ms,
        };
        let mut bytes = [0; HEAD_BYTES];
        bytes[..ENVELOPE_BYTES].copy_from_slice(&envelope.bytes());
        bytes[ENVELOPE_BYTES] = mode as u8;
        bytes[HEAD_BYTES - 4..].copy_from_slice(&self.from.to_le_bytes());
        bytes
    }

    /// The head of a message of this kind and mode. Whatever is not as it would be written is none.
    pub(super) fn parse(message: &[u8], mode: Mode, kind: Kind) -> Option<Self> {
        let bytes: &[u8; HEAD_BYTES] = message.first_chunk()?;
        let envelope = Envelope::parse(message)?;
        let (_, from) = bytes.split_last_chunk::<4>()?;
        let head = Self {
            kind,
            to: envelope.association,
            from: u32::from_le_bytes(*from),
            time_ms: envelope.packet_number,
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

/// Code of an answer: of its bytes, and of the initiation that it answers.
pub(super) fn answer_code(key: &hmac::Key, bytes: &[u8], ask_code: &[u8]) -> hmac::Tag {
    let mut context = hmac::Context::with_key(key);
    context.update(bytes);
    context.update(ask_code);
    context.sign()
}

/// Whether two codes are the same, in a time that does not tell where they differ: their codes under a key are compared.
pub(super) fn is_same(key: &hmac::Key, code: &hmac::Tag, other: &[u8]) -> bool {
    hmac::verify(key, other, hmac::sign(key, code.as_ref()).as_ref()).is_ok()
}

/// A payload, with its length, in a field of its own, filled up with zeros.
pub(super) fn put_payload(field: &mut [u8; ASK_BYTES], payload: &[u8]) {
    let length = payload.len().min(PAYLOAD_BYTES_MAX);
    field.fill(0);
    field[..2].copy_from_slice(&(length as u16).to_le_bytes());
    field[2..2 + length].copy_from_slice(&payload[..length]);
}

/// The payload of a field. Nothing if its length is none, or what is unused is not zero.
pub(super) fn take_payload(field: &[u8]) -> Option<&[u8]> {
    let (length, rest) = field.split_first_chunk()?;
    let length = usize::from(u16::from_le_bytes(*length));
    let (payload, unused) = rest.split_at_checked(length)?;
    unused.iter().all(|&byte| byte == 0).then_some(payload)
}

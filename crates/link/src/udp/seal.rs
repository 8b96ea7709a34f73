//! Sealing and opening of one datagram: envelope, frame, tag.
//!
//! Sealed with AES-256-GCM: the nonce is the packet number over a salt of the direction, the envelope is associated data. Keys
//! have numbers, which follow from the packet number: each serves [`KEY_PACKETS`] packets, and the next one is derived from
//! it, so that who learns a key learns none of those before. The key before is kept for packets that come late; its flag, the key phase, only
//! has to agree. An opener does the same bounded work for any bytes: one look at the replay window, and one attempt with one key.
//! Nothing of it changes unless the tag is right.
//!
//! Without keys (`Key::Clear`) a CRC32C of the first [`CHECKED_BYTES`] takes the place of the tag, begun with a number from
//! the handshake, so that nobody who only guesses is believed; UDP's own checksum covers the rest. It protects from damage and from strays, not from
//! whoever sees the network.

use core::fmt;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf;
use zeroize::Zeroizing;

use super::envelope::{ENVELOPE_BYTES, Envelope, Kind};
use super::replay::{Stale, Window};

/// Bytes of a tag of AES-GCM.
pub const TAG_BYTES: usize = 16;
/// Bytes of the checksum that stands in its place without keys.
pub const CHECKSUM_BYTES: usize = 4;
/// Bytes that the checksum covers, or all there are.
pub const CHECKED_BYTES: usize = 128;
/// The most that sealing adds to a frame, in bytes.
pub const OVERHEAD_BYTES_MAX: usize = ENVELOPE_BYTES + TAG_BYTES;
/// Packets under one key. RFC 9001 allows twice as many of any length.
pub const KEY_PACKETS: u64 = 1 << 22;
/// Packet numbers end here, long before 64 bits do; no association lives so long.
pub const PACKETS_MAX: u64 = 1 << 62;
/// How far packets may overtake each other and still be taken.
pub const WINDOW_PACKETS: u64 = super::replay::WINDOW_PACKETS;

const _: () = assert!(WINDOW_PACKETS >= 4096 && WINDOW_PACKETS < KEY_PACKETS);

/// What protects one direction.
#[derive(Clone)]
pub enum Key {
    /// Sealed: 32 secret bytes, from which the keys are derived. Wiped when dropped.
    Sealed(Zeroizing<[u8; 32]>),
    /// Clear: with which number the checksum begins.
    Clear(u32),
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sealed(_) => "Sealed(..)",
            Self::Clear(_) => "Clear(..)",
        })
    }
}

impl Key {
    /// Another key for that purpose, from which this one cannot be found.
    pub(super) fn derive(&self, label: &str) -> Self {
        match self {
            Self::Sealed(secret) => {
                let mut derived = Zeroizing::new([0; 32]);
                let secret = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, &**secret);
                expand(&secret, label.as_bytes(), &mut *derived);
                Self::Sealed(derived)
            }
            // Whoever sees the network sees all of it; only strays must not be taken for something else.
            Self::Clear(begin) => Self::Clear(crc32c::crc32c_append(*begin, label.as_bytes())),
        }
    }

    /// What sealing adds to a frame, envelope included, in bytes.
    pub fn overhead_bytes(&self) -> usize {
        ENVELOPE_BYTES
            + match self {
                Self::Sealed(_) => TAG_BYTES,
                Self::Clear(_) => CHECKSUM_BYTES,
            }
    }
}

/// A datagram was not sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The buffer, or what a datagram may be, is too short for envelope, frame and tag.
    #[error("no room for a frame of {frame_bytes} bytes and its seal in {room_bytes}")]
    NoRoom {
        /// Of the frame.
        frame_bytes: usize,
        /// Of the buffer.
        room_bytes: usize,
    },
    /// All packet numbers are used.
    #[error("the association has used all its packet numbers")]
    Exhausted,
}

/// A datagram was not opened. Nothing changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unopened {
    /// It is not a sealed datagram, or not of this association.
    #[error("not a sealed datagram of this association")]
    Malformed,
    /// It came before.
    #[error("the packet came before")]
    Replayed,
    /// It is so old that nobody knows whether it came before.
    #[error("the packet is too old")]
    Old,
    /// No key is known for a number so far ahead.
    #[error("the packet's number is too far ahead")]
    Ahead,
    /// Its tag, or its checksum, is wrong.
    #[error("the seal is broken")]
    Broken,
}

/// One key of the row.
struct Cipher {
    key: LessSafeKey,
    salt: [u8; NONCE_LEN],
}

struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// Never fails: the lengths are far below HKDF's limit.
fn expand(secret: &hkdf::Prk, label: &[u8], into: &mut [u8]) {
    secret
        .expand(&[label], Length(into.len()))
        .and_then(|bytes| bytes.fill(into))
        .expect("a short output of HKDF");
}

impl Cipher {
    /// The cipher of a secret, and the secret that comes after it.
    fn derive(secret: &[u8; 32]) -> (Self, Zeroizing<[u8; 32]>) {
        let secret = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, secret);
        let mut key = Zeroizing::new([0; 32]);
        expand(&secret, b"hamlyn 1 key", &mut *key);
        let mut salt = [0; NONCE_LEN];
        expand(&secret, b"hamlyn 1 salt", &mut salt);
        let mut next = Zeroizing::new([0; 32]);
        expand(&secret, b"hamlyn 1 next", &mut *next);
        let key = UnboundKey::new(&AES_256_GCM, &*key).expect("a key of 32 bytes");
        let key = LessSafeKey::new(key);
        (Self { key, salt }, next)
    }

    #[inline]
    fn nonce(&self, packet_number: u64) -> Nonce {
        let mut nonce = self.salt;
        for (byte, number) in nonce[4..].iter_mut().zip(packet_number.to_be_bytes()) {
            *byte ^= number;
        }
        Nonce::assume_unique_for_key(nonce)
    }
}

/// Checksum of a datagram without its last four bytes. The length counts, so that nothing can be cut off.
#[inline]
fn checksum(begin: u32, bytes: &[u8]) -> u32 {
    let checked = &bytes[..bytes.len().min(CHECKED_BYTES)];
    crc32c::crc32c_append(begin ^ bytes.len() as u32, checked)
}

#[expect(
    clippy::large_enum_variant,
    reason = "one for each association; a box would be one more cache line for each packet"
)]
enum SealerSuite {
    Sealed {
        cipher: Cipher,
        next: Zeroizing<[u8; 32]>,
    },
    Clear(u32),
}

/// Seals the datagrams of one direction. There must never be two with one key.
pub struct Sealer {
    suite: SealerSuite,
    association: u32,
    packets: u64,
    key_packets: u64,
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer")
            .field("association", &self.association)
            .field("packets", &self.packets)
            .finish_non_exhaustive()
    }
}

impl Sealer {
    /// For an association to which its receiver gave this number.
    pub fn new(key: &Key, association: u32) -> Self {
        Self::with_key_packets(key, association, KEY_PACKETS)
    }

    pub(super) fn with_key_packets(key: &Key, association: u32, key_packets: u64) -> Self {
        let suite = match key {
            Key::Sealed(secret) => {
                let (cipher, next) = Cipher::derive(secret);
                SealerSuite::Sealed { cipher, next }
            }
            Key::Clear(begin) => SealerSuite::Clear(*begin),
        };
        Self {
            suite,
            association,
            packets: 0,
            key_packets,
        }
    }

    /// How many datagrams were sealed.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Whether frames are encrypted; otherwise they are in the clear.
    pub fn is_encrypting(&self) -> bool {
        matches!(self.suite, SealerSuite::Sealed { .. })
    }

    /// What sealing adds to a frame, in bytes.
    #[inline]
    pub fn overhead_bytes(&self) -> usize {
        ENVELOPE_BYTES
            + match self.suite {
                SealerSuite::Sealed { .. } => TAG_BYTES,
                SealerSuite::Clear(_) => CHECKSUM_BYTES,
            }
    }

    /// Seals a frame, which goes over that path, that lies in the buffer already, behind the [`ENVELOPE_BYTES`] of its envelope; how long the datagram
    /// is. Writes envelope and tag around it.
    #[inline]
    pub fn seal_in_place(
        &mut self,
        kind: Kind,
        path: u8,
        datagram: &mut [u8],
        frame_bytes: usize,
    ) -> Result<usize, SealError> {
        let room_bytes = datagram.len();
        let length = frame_bytes.saturating_add(self.overhead_bytes());
        let no_room = SealError::NoRoom {
            frame_bytes,
            room_bytes,
        };
        let length_bytes = u16::try_from(length).map_err(|_| no_room)?;
        let datagram = datagram.get_mut(..length).ok_or(no_room)?;
        let packet_number = self.packets;
        if packet_number >= PACKETS_MAX {
            return Err(SealError::Exhausted);
        }
        let key_number = packet_number / self.key_packets;
        if packet_number.is_multiple_of(self.key_packets) && packet_number > 0 {
            self.change_key();
        }
        let envelope = Envelope {
            kind,
            length_bytes,
            phase: key_number & 1 != 0,
            path,
            association: self.association,
            packet_number,
        };
        let envelope = envelope.bytes();
        match &self.suite {
            SealerSuite::Sealed { cipher, .. } => {
                let (head, rest) = datagram.split_at_mut(ENVELOPE_BYTES);
                head.copy_from_slice(&envelope);
                let (frame, tag) = rest.split_at_mut(frame_bytes);
                let nonce = cipher.nonce(packet_number);
                let sealed = cipher
                    .key
                    .seal_in_place_separate_tag(nonce, Aad::from(envelope), frame)
                    .expect("a frame far below 64 GiB");
                tag.copy_from_slice(sealed.as_ref());
            }
            SealerSuite::Clear(begin) => {
                let (covered, tail) = datagram.split_at_mut(ENVELOPE_BYTES + frame_bytes);
                covered[..ENVELOPE_BYTES].copy_from_slice(&envelope);
                tail.copy_from_slice(&checksum(*begin, covered).to_le_bytes());
            }
        }
        self.packets += 1;
        Ok(length)
    }

    /// Seals a frame into a buffer; how long the datagram is.
    pub fn seal(
        &mut self,
        kind: Kind,
        path: u8,
        frame: &[u8],
        into: &mut [u8],
    ) -> Result<usize, SealError> {
        let room_bytes = into.len();
        match into.get_mut(ENVELOPE_BYTES..ENVELOPE_BYTES + frame.len()) {
            Some(place) => place.copy_from_slice(frame),
            None => {
                return Err(SealError::NoRoom {
                    frame_bytes: frame.len(),
                    room_bytes,
                });
            }
        }
        self.seal_in_place(kind, path, into, frame.len())
    }

    #[cold]
    fn change_key(&mut self) {
        if let SealerSuite::Sealed { cipher, next } = &mut self.suite {
            (*cipher, *next) = Cipher::derive(next);
        }
    }
}

#[expect(clippy::large_enum_variant, reason = "as with `SealerSuite`")]
enum OpenerSuite {
    Sealed {
        /// For packets that come late.
        before: Option<Cipher>,
        now: Cipher,
        /// Ready, so that a packet that claims to be of it costs what any other does.
        after: Cipher,
        next: Zeroizing<[u8; 32]>,
    },
    Clear(u32),
}

/// Opens the datagrams of one direction.
pub struct Opener {
    suite: OpenerSuite,
    association: u32,
    window: Window,
    /// Number of the present key.
    key_number: u64,
    key_packets: u64,
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener")
            .field("association", &self.association)
            .field("key_number", &self.key_number)
            .finish_non_exhaustive()
    }
}

/// A datagram that was opened.
#[derive(PartialEq, Eq, Debug)]
pub struct Opened<'a> {
    /// What it is; one of those that are sealed.
    pub kind: Kind,
    /// Over which flow of its sender it came.
    pub path: u8,
    /// Its number.
    pub packet_number: u64,
    /// The frame, in its place.
    pub frame: &'a mut [u8],
}

impl Opener {
    /// For an association to which we gave this number.
    pub fn new(key: &Key, association: u32) -> Self {
        Self::with_key_packets(key, association, KEY_PACKETS)
    }

    pub(super) fn with_key_packets(key: &Key, association: u32, key_packets: u64) -> Self {
        let suite = match key {
            Key::Sealed(secret) => {
                let (now, next) = Cipher::derive(secret);
                let (after, next) = Cipher::derive(&next);
                OpenerSuite::Sealed {
                    before: None,
                    now,
                    after,
                    next,
                }
            }
            Key::Clear(begin) => OpenerSuite::Clear(*begin),
        };
        Self {
            suite,
            association,
            window: Window::new(),
            key_number: 0,
            key_packets,
        }
    }

    /// Opens a datagram in place. If it is not opened its bytes are garbage afterwards; nothing else changed.
    #[inline]
    pub fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Result<Opened<'a>, Unopened> {
        let envelope = Envelope::parse(datagram).ok_or(Unopened::Malformed)?;
        let packet_number = envelope.packet_number;
        let key_number = packet_number / self.key_packets;
        if !envelope.kind.is_sealed()
            || envelope.association != self.association
            || envelope.phase != (key_number & 1 != 0)
        {
            return Err(Unopened::Malformed);
        }
        if packet_number >= PACKETS_MAX || key_number > self.key_number + 1 {
            return Err(Unopened::Ahead);
        }
        self.window
            .check(packet_number)
            .map_err(|stale| match stale {
                Stale::Seen => Unopened::Replayed,
                Stale::Old => Unopened::Old,
            })?;
        let frame_bytes = match &self.suite {
            OpenerSuite::Sealed {
                before, now, after, ..
            } => {
                let cipher = match key_number.wrapping_sub(self.key_number) {
                    0 => now,
                    1 => after,
                    u64::MAX => before.as_ref().ok_or(Unopened::Old)?,
                    _ => return Err(Unopened::Old),
                };
                let nonce = cipher.nonce(packet_number);
                let (head, sealed) = datagram.split_at_mut(ENVELOPE_BYTES);
                let opened = cipher.key.open_in_place(nonce, Aad::from(head), sealed);
                opened.map_err(|_| Unopened::Broken)?.len()
            }
            OpenerSuite::Clear(begin) => {
                let (covered, tail) = datagram.split_last_chunk().ok_or(Unopened::Malformed)?;
                if covered.len() < ENVELOPE_BYTES {
                    return Err(Unopened::Malformed);
                }
                if checksum(*begin, covered) != u32::from_le_bytes(*tail) {
                    return Err(Unopened::Broken);
                }
                covered.len() - ENVELOPE_BYTES
            }
        };
        self.window.mark(packet_number);
        if key_number > self.key_number {
            self.change_key();
        }
        Ok(Opened {
            kind: envelope.kind,
            path: envelope.path,
            packet_number,
            frame: &mut datagram[ENVELOPE_BYTES..ENVELOPE_BYTES + frame_bytes],
        })
    }

    #[cold]
    fn change_key(&mut self) {
        self.key_number += 1;
        if let OpenerSuite::Sealed {
            before,
            now,
            after,
            next,
        } = &mut self.suite
        {
            let (derived, following) = Cipher::derive(next);
            *next = following;
            *before = Some(core::mem::replace(now, core::mem::replace(after, derived)));
        }
    }
}

#[cfg(test)]
mod tests;

//! Packet protection: encryption and authentication of one datagram (packet header, frame, tag).
//!
//! The cipher is AES-256-GCM: the nonce is the packet number over a salt of the direction, the
//! packet header is associated data. Keys have numbers, which follow from the packet number: each
//! serves [`KEY_PACKETS`] packets, and the next one is derived from it, so that an attacker who
//! learns a key learns none of those before. The key before is kept for packets that come late; its
//! flag, the key phase, only has to agree. The receiving side does the same bounded work for any
//! bytes: one look at the replay window, and one attempt with one key. Its state changes only if
//! the tag is right.
//!
//! Without keys (`Key::Clear`) a CRC32C of the first [`CHECKED_BYTES`] takes the place of the tag,
//! begun with a number from the handshake, so that a guessed packet is refused; UDP's own checksum
//! covers the rest. The checksum protects from damage and from stray packets, not from an attacker
//! that sees the network.

use core::fmt;

use hamlyn_ring::forks::{Birth, Forked};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf;
use zeroize::Zeroizing;

use super::packet_header::{Kind, PACKET_HEADER_BYTES, PacketHeader};
use super::replay::{Stale, Window};

/// Bytes of a tag of AES-GCM.
pub const TAG_BYTES: usize = 16;
/// Bytes of the checksum that stands in its place without keys.
pub const CHECKSUM_BYTES: usize = 4;
/// Bytes that the checksum covers, or all there are.
pub const CHECKED_BYTES: usize = 128;
/// The most that packet protection adds to a frame, in bytes.
pub const OVERHEAD_BYTES_MAX: usize = PACKET_HEADER_BYTES + TAG_BYTES;
/// Packets under one key. RFC 9001 allows twice as many of any length.
pub const KEY_PACKETS: u64 = 1 << 22;
/// Packet numbers end here, long before 64 bits do; no association lives so long.
pub const PACKETS_MAX: u64 = 1 << 62;
/// The reorder window: an older packet is refused.
pub const WINDOW_PACKETS: u64 = super::replay::WINDOW_PACKETS;

const _: () = assert!(WINDOW_PACKETS >= 4096 && WINDOW_PACKETS < KEY_PACKETS);

/// What protects one direction.
#[derive(Clone)]
pub enum Key {
    /// Encrypted: 32 secret bytes, from which the keys are derived. Wiped when dropped.
    Encrypted(Zeroizing<[u8; 32]>),
    /// Clear: with which number the checksum begins.
    Clear(u32),
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Encrypted(_) => "Sealed(..)",
            Self::Clear(_) => "Clear(..)",
        })
    }
}

impl Key {
    /// Another key for that purpose, from which this one cannot be found.
    pub(super) fn derive(&self, label: &str) -> Self {
        match self {
            Self::Encrypted(secret) => {
                let mut derived = Zeroizing::new([0; 32]);
                let secret = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, &**secret);
                expand(&secret, label.as_bytes(), &mut *derived);
                Self::Encrypted(derived)
            }
            // An attacker that sees the network sees everything; the label only tells stray packets
            // apart.
            Self::Clear(begin) => Self::Clear(crc32c::crc32c_append(*begin, label.as_bytes())),
        }
    }

    /// Bytes that packet protection adds to a frame, packet header included.
    pub fn overhead_bytes(&self) -> usize {
        PACKET_HEADER_BYTES
            + match self {
                Self::Encrypted(_) => TAG_BYTES,
                Self::Clear(_) => CHECKSUM_BYTES,
            }
    }
}

/// A datagram was not protected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProtectError {
    /// The buffer, or what a datagram may be, is too short for packet header, frame and tag.
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
    /// The association is that of the process from which this one was forked.
    #[error("the association: {0}")]
    Forked(#[from] Forked),
}

/// A datagram was not accepted. Nothing changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnprotectError {
    /// It is not a protected datagram, or not of this association.
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

/// Checksum of a datagram without its last four bytes. The length counts, so that nothing can be
/// cut off.
#[inline]
fn checksum(begin: u32, bytes: &[u8]) -> u32 {
    let checked = &bytes[..bytes.len().min(CHECKED_BYTES)];
    crc32c::crc32c_append(begin ^ bytes.len() as u32, checked)
}

#[expect(
    clippy::large_enum_variant,
    reason = "one for each association; a box would be one more cache line for each packet"
)]
enum TxSuite {
    Encrypted {
        cipher: Cipher,
        next: Zeroizing<[u8; 32]>,
    },
    Clear(u32),
}

/// Protects the datagrams of the sending direction. There must never be two with one key.
pub struct TxProtection {
    suite: TxSuite,
    association: u32,
    packets: u64,
    key_packets: u64,
    /// A forked child would use the same numbers with the same key.
    birth: Birth,
}

impl fmt::Debug for TxProtection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TxProtection")
            .field("association", &self.association)
            .field("packets", &self.packets)
            .finish_non_exhaustive()
    }
}

impl TxProtection {
    /// For an association to which its receiver gave this number.
    pub fn new(key: &Key, association: u32) -> Self {
        Self::with_key_packets(key, association, KEY_PACKETS)
    }

    pub(super) fn with_key_packets(key: &Key, association: u32, key_packets: u64) -> Self {
        let suite = match key {
            Key::Encrypted(secret) => {
                let (cipher, next) = Cipher::derive(secret);
                TxSuite::Encrypted { cipher, next }
            }
            Key::Clear(begin) => TxSuite::Clear(*begin),
        };
        Self {
            suite,
            association,
            packets: 0,
            key_packets,
            birth: Birth::here(),
        }
    }

    /// How many datagrams were protected.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Whether frames are encrypted; otherwise they are in the clear.
    pub fn is_encrypting(&self) -> bool {
        matches!(self.suite, TxSuite::Encrypted { .. })
    }

    /// Bytes that packet protection adds to a frame.
    #[inline]
    pub fn overhead_bytes(&self) -> usize {
        PACKET_HEADER_BYTES
            + match self.suite {
                TxSuite::Encrypted { .. } => TAG_BYTES,
                TxSuite::Clear(_) => CHECKSUM_BYTES,
            }
    }

    /// Protects a frame for that path that lies in the buffer already, behind the
    /// [`PACKET_HEADER_BYTES`] of its packet header; how long the datagram is. Writes packet header
    /// and tag around it.
    #[inline]
    pub fn protect_in_place(
        &mut self,
        kind: Kind,
        path: u8,
        datagram: &mut [u8],
        frame_bytes: usize,
    ) -> Result<usize, ProtectError> {
        let room_bytes = datagram.len();
        let length = frame_bytes.saturating_add(self.overhead_bytes());
        let no_room = ProtectError::NoRoom {
            frame_bytes,
            room_bytes,
        };
        let length_bytes = u16::try_from(length).map_err(|_| no_room)?;
        let datagram = datagram.get_mut(..length).ok_or(no_room)?;
        self.birth.check()?;
        let packet_number = self.packets;
        if packet_number >= PACKETS_MAX {
            return Err(ProtectError::Exhausted);
        }
        let key_number = packet_number / self.key_packets;
        if packet_number.is_multiple_of(self.key_packets) && packet_number > 0 {
            self.change_key();
        }
        let packet_header = PacketHeader {
            kind,
            length_bytes,
            phase: key_number & 1 != 0,
            path,
            association: self.association,
            packet_number,
        };
        let packet_header = packet_header.bytes();
        match &self.suite {
            TxSuite::Encrypted { cipher, .. } => {
                let (head, rest) = datagram.split_at_mut(PACKET_HEADER_BYTES);
                head.copy_from_slice(&packet_header);
                let (frame, tag) = rest.split_at_mut(frame_bytes);
                let nonce = cipher.nonce(packet_number);
                let protected = cipher
                    .key
                    .seal_in_place_separate_tag(nonce, Aad::from(packet_header), frame)
                    .expect("a frame far below 64 GiB");
                tag.copy_from_slice(protected.as_ref());
            }
            TxSuite::Clear(begin) => {
                let (covered, tail) = datagram.split_at_mut(PACKET_HEADER_BYTES + frame_bytes);
                covered[..PACKET_HEADER_BYTES].copy_from_slice(&packet_header);
                tail.copy_from_slice(&checksum(*begin, covered).to_le_bytes());
            }
        }
        self.packets += 1;
        Ok(length)
    }

    /// Protects a frame into a buffer; returns the length of the datagram.
    pub fn protect(
        &mut self,
        kind: Kind,
        path: u8,
        frame: &[u8],
        into: &mut [u8],
    ) -> Result<usize, ProtectError> {
        let room_bytes = into.len();
        match into.get_mut(PACKET_HEADER_BYTES..PACKET_HEADER_BYTES + frame.len()) {
            Some(place) => place.copy_from_slice(frame),
            None => {
                return Err(ProtectError::NoRoom {
                    frame_bytes: frame.len(),
                    room_bytes,
                });
            }
        }
        self.protect_in_place(kind, path, into, frame.len())
    }

    #[cold]
    fn change_key(&mut self) {
        if let TxSuite::Encrypted { cipher, next } = &mut self.suite {
            (*cipher, *next) = Cipher::derive(next);
        }
    }
}

#[expect(clippy::large_enum_variant, reason = "as with `SealerSuite`")]
enum RxSuite {
    Encrypted {
        /// For packets that come late.
        before: Option<Cipher>,
        now: Cipher,
        /// Ready, so that a packet that claims to be of it costs what any other does.
        after: Cipher,
        next: Zeroizing<[u8; 32]>,
    },
    Clear(u32),
}

/// Removes the protection of the datagrams of the receiving direction.
pub struct RxProtection {
    suite: RxSuite,
    association: u32,
    window: Window,
    /// Number of the present key.
    key_number: u64,
    key_packets: u64,
}

impl fmt::Debug for RxProtection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RxProtection")
            .field("association", &self.association)
            .field("key_number", &self.key_number)
            .finish_non_exhaustive()
    }
}

/// A datagram that was authentic.
#[derive(PartialEq, Eq, Debug)]
pub struct Opened<'a> {
    /// Its kind; one of those that are protected.
    pub kind: Kind,
    /// The sender's path.
    pub path: u8,
    /// Its number.
    pub packet_number: u64,
    /// The frame, in its place.
    pub frame: &'a mut [u8],
}

impl RxProtection {
    /// For an association to which we gave this number.
    pub fn new(key: &Key, association: u32) -> Self {
        Self::with_key_packets(key, association, KEY_PACKETS)
    }

    pub(super) fn with_key_packets(key: &Key, association: u32, key_packets: u64) -> Self {
        let suite = match key {
            Key::Encrypted(secret) => {
                let (now, next) = Cipher::derive(secret);
                let (after, next) = Cipher::derive(&next);
                RxSuite::Encrypted {
                    before: None,
                    now,
                    after,
                    next,
                }
            }
            Key::Clear(begin) => RxSuite::Clear(*begin),
        };
        Self {
            suite,
            association,
            window: Window::new(),
            key_number: 0,
            key_packets,
        }
    }

    /// Decrypts a datagram in place. After an error its bytes are garbage; nothing else changed.
    #[inline]
    pub fn unprotect<'a>(&mut self, datagram: &'a mut [u8]) -> Result<Opened<'a>, UnprotectError> {
        let packet_header = PacketHeader::parse(datagram).ok_or(UnprotectError::Malformed)?;
        let packet_number = packet_header.packet_number;
        let key_number = packet_number / self.key_packets;
        if !packet_header.kind.is_encrypted()
            || packet_header.association != self.association
            || packet_header.phase != (key_number & 1 != 0)
        {
            return Err(UnprotectError::Malformed);
        }
        if packet_number >= PACKETS_MAX || key_number > self.key_number + 1 {
            return Err(UnprotectError::Ahead);
        }
        self.window
            .check(packet_number)
            .map_err(|stale| match stale {
                Stale::Seen => UnprotectError::Replayed,
                Stale::Old => UnprotectError::Old,
            })?;
        let frame_bytes = match &self.suite {
            RxSuite::Encrypted {
                before, now, after, ..
            } => {
                let cipher = match key_number.wrapping_sub(self.key_number) {
                    0 => now,
                    1 => after,
                    u64::MAX => before.as_ref().ok_or(UnprotectError::Old)?,
                    _ => return Err(UnprotectError::Old),
                };
                let nonce = cipher.nonce(packet_number);
                let (head, protected) = datagram.split_at_mut(PACKET_HEADER_BYTES);
                let opened = cipher.key.open_in_place(nonce, Aad::from(head), protected);
                opened.map_err(|_| UnprotectError::Broken)?.len()
            }
            RxSuite::Clear(begin) => {
                let (covered, tail) = datagram
                    .split_last_chunk()
                    .ok_or(UnprotectError::Malformed)?;
                if covered.len() < PACKET_HEADER_BYTES {
                    return Err(UnprotectError::Malformed);
                }
                if checksum(*begin, covered) != u32::from_le_bytes(*tail) {
                    return Err(UnprotectError::Broken);
                }
                covered.len() - PACKET_HEADER_BYTES
            }
        };
        self.window.mark(packet_number);
        if key_number > self.key_number {
            self.change_key();
        }
        Ok(Opened {
            kind: packet_header.kind,
            path: packet_header.path,
            packet_number,
            frame: &mut datagram[PACKET_HEADER_BYTES..PACKET_HEADER_BYTES + frame_bytes],
        })
    }

    #[cold]
    fn change_key(&mut self) {
        self.key_number += 1;
        if let RxSuite::Encrypted {
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

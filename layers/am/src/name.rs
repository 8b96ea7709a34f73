//! Names of endpoints, and tags (`V 3.1`): a name and a tag give the key of a port.

use std::fmt;

use hamlyn::engine::counting::Counting;
use hamlyn::engine::key::Key;
use hamlyn::engine::limits::{FAST_INDEX, PACKET_PAYLOAD_MAX};
use hamlyn::engine::packet::SlotName;
use hamlyn::ticket::TicketKind;
use hamlyn::{Destination, Ticket};
use ring::hmac;

use crate::error::NameError;
use crate::wire::{INTRODUCTION_BYTES, NAME_BYTES};

const VERSION: u32 = 0x316e_6d61;

/// The tag of an endpoint: messages that are sent with another one come back
/// ([`Reason::BadTag`](crate::Reason::BadTag)).
///
/// A tag is as secret as it is hard to guess. It never travels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Tag {
    /// No message has the right tag.
    #[default]
    None,
    /// Every tag is right.
    Any,
    /// This one.
    Value(u64),
}

impl Tag {
    /// A tag of that value.
    pub const fn new(value: u64) -> Self {
        Self::Value(value)
    }
}

/// The name of an endpoint: 52 bytes, which any process may map. It stays the same as long as the
/// endpoint lives, whatever bundle it moves to. A node that knows it and the tag
/// may send to the endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name {
    interface: Destination,
    pub(crate) introduction: Introduction,
}

/// The parts of a name that a first message tells; for the interface the link vouches.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Introduction {
    /// The port of the endpoint.
    port: u32,
    /// From which, with the tag, the key of that port follows.
    secret: [u8; 16],
    /// The port of its node to which answers go, and its key.
    reply_port: u32,
    reply_key: u64,
}

impl Introduction {
    pub(crate) fn new(port: &Ticket, secret: [u8; 16], replies: &Ticket) -> Self {
        Self {
            port: port.slot.to_bits(),
            secret,
            reply_port: replies.slot.to_bits(),
            reply_key: replies.key.to_bits(),
        }
    }

    pub(crate) fn secret(&self) -> [u8; 16] {
        self.secret
    }

    pub(crate) fn to_bytes(self) -> [u8; INTRODUCTION_BYTES] {
        let mut bytes = [0; INTRODUCTION_BYTES];
        bytes[..4].copy_from_slice(&self.port.to_le_bytes());
        bytes[4..20].copy_from_slice(&self.secret);
        bytes[20..24].copy_from_slice(&self.reply_port.to_le_bytes());
        bytes[24..].copy_from_slice(&self.reply_key.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; INTRODUCTION_BYTES]) -> Self {
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
        Self {
            port: half(0),
            secret: bytes[4..20].try_into().unwrap_or_default(),
            reply_port: half(20),
            reply_key: u64::from(half(24)) | u64::from(half(28)) << 32,
        }
    }

    /// True if answers go to the same port.
    pub(crate) fn has_replies_of(&self, other: &Self) -> bool {
        (self.reply_port, self.reply_key) == (other.reply_port, other.reply_key)
    }

    /// The ticket of the port to which answers go.
    pub(crate) fn replies(&self, interface: Destination) -> Ticket {
        ticket(interface, self.reply_port, Key::from_bits(self.reply_key))
    }
}

/// A ticket of a port.
fn ticket(destination: Destination, port: u32, key: Key) -> Ticket {
    Ticket {
        destination,
        slot: SlotName::from_bits(port),
        metadata_index: FAST_INDEX,
        key,
        base: 0,
        length_bytes: PACKET_PAYLOAD_MAX as u64,
        counting: Counting::Bits32,
        kind: TicketKind::Port,
    }
}

/// The key of a port with that tag, or none if no message is to get in.
pub(crate) fn key_of(secret: &[u8; 16], tag: Tag) -> Option<Key> {
    let (kind, value) = match tag {
        Tag::None => return None,
        Tag::Any => (1, 0),
        Tag::Value(value) => (2, value),
    };
    let mut text = [0; 16];
    text[..8].copy_from_slice(b"am-tag/1");
    text[8..].copy_from_slice(&u64::to_le_bytes(value));
    text[7] = b'0' + kind;
    let sum = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), &text);
    let first = sum.as_ref().first_chunk().copied().unwrap_or_default();
    Some(Key::from_bits(u64::from_le_bytes(first)))
}

impl Name {
    pub(crate) fn new(interface: Destination, introduction: Introduction) -> Self {
        Self {
            interface,
            introduction,
        }
    }

    /// The interface of its node.
    pub fn interface(&self) -> Destination {
        self.interface
    }

    /// A ticket for messages with that tag.
    pub(crate) fn ticket(&self, tag: Tag) -> Option<Ticket> {
        let Introduction { port, secret, .. } = self.introduction;
        Some(ticket(self.interface, port, key_of(&secret, tag)?))
    }

    /// The form in which it travels.
    pub fn to_bytes(&self) -> [u8; NAME_BYTES] {
        let mut bytes = [0; NAME_BYTES];
        bytes[..4].copy_from_slice(&VERSION.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.interface.node.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.interface.user.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.interface.interface.to_le_bytes());
        bytes[20..].copy_from_slice(&self.introduction.to_bytes());
        bytes
    }

    /// Reads a name. Total: any bytes give a name or an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NameError> {
        let length_bytes = bytes.len();
        let bytes: &[u8; NAME_BYTES] = bytes
            .try_into()
            .map_err(|_| NameError::Length { length_bytes })?;
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
        if half(0) != VERSION {
            return Err(NameError::Version { found: half(0) });
        }
        let introduction = bytes
            .last_chunk()
            .copied()
            .unwrap_or([0; INTRODUCTION_BYTES]);
        Ok(Self {
            interface: Destination {
                node: half(4),
                user: half(8),
                interface: u64::from(half(12)) | u64::from(half(16)) << 32,
            },
            introduction: Introduction::from_bytes(&introduction),
        })
    }
}

impl fmt::Debug for Introduction {
    /// Without what is secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Introduction")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Name {
    /// Without its secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Name")
            .field("interface", &self.interface)
            .field("port", &self.introduction.port)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_come_back(node: u32, user: u32, interface: u64, bytes: [u8; 32]) {
            let introduction = Introduction::from_bytes(&bytes);
            let name = Name::new(Destination { node, user, interface }, introduction);
            prop_assert_eq!(Name::from_bytes(&name.to_bytes()), Ok(name));
        }

        #[test]
        fn any_bytes_are_a_name_or_an_error(bytes: Vec<u8>) {
            let _ = Name::from_bytes(&bytes);
        }
    }

    #[test]
    fn each_tag_has_a_key_of_its_own() {
        let keys = [Tag::Any, Tag::new(0), Tag::new(1), Tag::new(u64::MAX)];
        let keys = keys.map(|tag| key_of(&[7; 16], tag).unwrap().to_bits());
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key));
            assert!(key_of(&[8; 16], Tag::new(1)).unwrap().to_bits() != *key);
        }
        assert!(key_of(&[7; 16], Tag::None).is_none());
    }
}

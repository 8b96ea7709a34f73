//! The messages of a handshake: bytes to values and back, nothing else.
//!
//! [`decode`] is total: for any bytes it returns a message that
//! obeys every rule of this version, or the reason why there is none. A
//! message has exactly one encoding, so `encode(decode(bytes)) == bytes`.
//!
//! | at  | bytes | field |
//! |-----|-------|-------|
//! | 0   | 8     | `hamlyn\r\n` |
//! | 8   | 2     | version |
//! | 10  | 2     | kind: 1 greeting, 2 hello, 3 welcome, 4 refusal, 5 ask, 6 answer, 7 not shared, 8 fetch, 9 region, 10 mapped, 11 sealed |
//! | 12  | 2     | reason (refusal) |
//! | 14  | 2     | flags (hello, welcome) |
//! | 16  | 8     | interface (greeting, hello, welcome, fetch); bytes (region) |
//! | 24  | 8     | number (fetch) |
//! | 24  | 4     | cells of the ring in which the sender receives (hello, welcome) |
//! | 28  | 4     | largest payload that the sender takes (hello, welcome) |
//! | 32  | 4     | bytes of that ring's payload arena (hello, welcome) |
//! | 36  | 2     | length of the name (hello, welcome) |
//! | 38  | 64    | name, filled up with zeros |
//! | 102 | 4     | the receiver's number in the sender's ready bitmap (hello, welcome) |
//! | 106 | 4     | bytes of the sender's overflow log, zero if it has none (hello, welcome) |
//! | 110 | 18    | zeros |
//!
//! An ask and an answer are as long as they are: from byte 16 to its end an ask is a question, and
//! an answer its replies, as [`crate::question`] encodes them.
//!
//! Numbers are little-endian. The first ten bytes keep their place in every
//! version, so that two versions can tell each other which they speak.

use super::name::Name;
use crate::question::{Question, Replies};
use hamlyn_engine::limits::{PACKET_PAYLOAD_MAX, PACKET_PAYLOAD_MIN};

/// The version that this library speaks.
pub const VERSION: u16 = 12;
/// Size of every message of this version but an ask and an answer.
pub const MESSAGE_BYTES: usize = 128;
/// Bytes of the longest replies in an answer: an offer of over 120 bytes for each item.
pub const REPLIES_BYTES_MAX: usize = 8 << 10;
/// Size of the longest message, which is an answer.
pub const MESSAGE_BYTES_MAX: usize = LIST_AT + REPLIES_BYTES_MAX;

const MAGIC: [u8; 8] = *b"hamlyn\r\n";
const GREETING: u16 = 1;
const HELLO: u16 = 2;
const WELCOME: u16 = 3;
const REFUSAL: u16 = 4;
const ASK: u16 = 5;
const ANSWER: u16 = 6;
const NOT_SHARED: u16 = 7;
const FETCH: u16 = 8;
const REGION: u16 = 9;
const MAPPED: u16 = 10;
const SEALED: u16 = 11;
const FLAG_BARRIER: u16 = 1;
const LIST_AT: usize = 16;
const NAME_AT: usize = 38;
const READY_BIT_AT: usize = NAME_AT + Name::BYTES_MAX;
const LOG_AT: usize = READY_BIT_AT + 4;
const REST_AT: usize = LOG_AT + 4;

const _: () = {
    assert!(REST_AT < MESSAGE_BYTES);
    assert!(Replies::ONE_BYTES_MAX <= REPLIES_BYTES_MAX);
    assert!(Question::BYTES_MAX <= REPLIES_BYTES_MAX);
};

/// What one side brings to a link: who it is and the memory it lends for receiving.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Its interface.
    pub interface: u64,
    /// The name under which it can be reached.
    pub name: Option<Name>,
    /// Cells of the ring in which it receives. Not yet judged: that is the ring's affair.
    pub cells: u32,
    /// Bytes of that ring's payload arena. Not yet judged.
    pub arena_bytes: u32,
    /// The largest payload that it takes; between [`PACKET_PAYLOAD_MIN`] and
    /// [`PACKET_PAYLOAD_MAX`].
    pub payload_max_bytes: u32,
    /// It is registered for barriers issued by others, so a plain load after a
    /// plain store is enough for it to see that a peer sleeps.
    pub takes_barriers: bool,
    /// The bit that the other side sets in the sender's ready bitmap. Any number: one that is
    /// beyond the page means that there is none.
    pub ready_bit: u32,
    /// Bytes of the overflow log of the ring in which it receives; zero if it has none. Not yet
    /// judged.
    pub log_bytes: u32,
}

/// A message of the handshake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// The listener says who it is, first of all.
    Greeting {
        /// Its interface.
        interface: u64,
    },
    /// The connector's half.
    Hello(Offer),
    /// The listener's half. It has mapped the connector's memory.
    Welcome(Offer),
    /// The connector has mapped the listener's memory, too, and sealed its own.
    Mapped,
    /// The listener has sealed its own, and has the link.
    Sealed,
    /// The listener will not have the connector.
    Refusal {
        /// As in [`crate::RefusedBecause`]; any number.
        reason: u16,
    },
    /// The connector wants no link, but offers.
    Ask(Question),
    /// Those that there are, and for the others the reason.
    Answer(Replies),
    /// Nothing is shared under that number.
    NotShared,
    /// The connector wants no link, but a region that is shared with it.
    Fetch {
        /// Its interface.
        interface: u64,
        /// The number under which it is shared.
        secret: u64,
    },
    /// Here it is, with the page that says whether it lasts.
    Region {
        /// Bytes of the region. Not yet judged.
        length_bytes: u64,
    },
}

impl Message {
    /// How many descriptors come with it: with a hello or a welcome the memory that the sender
    /// lends for receiving, the ready bitmap of its interface, and the overflow log if there is
    /// one; with a region its memory, and the page that says whether it lasts.
    pub fn descriptors(&self) -> usize {
        match self {
            Self::Hello(offer) | Self::Welcome(offer) => 2 + usize::from(offer.log_bytes != 0),
            Self::Region { .. } => 2,
            _ => 0,
        }
    }
}

/// Why bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotAMessage {
    /// A message of another version.
    #[error("it is of version {0}")]
    Version(u16),
    /// Not a message of any version, or one that breaks a rule of this one.
    #[error("{0}")]
    Invalid(&'static str),
}

/// The one encoding of a message.
pub fn encode(message: &Message) -> Vec<u8> {
    let mut bytes = [0; MESSAGE_BYTES];
    put(&mut bytes, 0, MAGIC);
    put(&mut bytes, 8, VERSION.to_le_bytes());
    let kind = match message {
        Message::Greeting { interface } => {
            put(&mut bytes, 16, interface.to_le_bytes());
            GREETING
        }
        Message::Hello(offer) => {
            put_offer(&mut bytes, offer);
            HELLO
        }
        Message::Welcome(offer) => {
            put_offer(&mut bytes, offer);
            WELCOME
        }
        Message::Refusal { reason } => {
            put(&mut bytes, 12, reason.to_le_bytes());
            REFUSAL
        }
        Message::Ask(_) => ASK,
        Message::Answer(_) => ANSWER,
        Message::NotShared => NOT_SHARED,
        Message::Mapped => MAPPED,
        Message::Sealed => SEALED,
        Message::Fetch { interface, secret } => {
            put(&mut bytes, 16, interface.to_le_bytes());
            put(&mut bytes, 24, secret.to_le_bytes());
            FETCH
        }
        Message::Region { length_bytes } => {
            put(&mut bytes, 16, length_bytes.to_le_bytes());
            REGION
        }
    };
    put(&mut bytes, 10, kind.to_le_bytes());
    let mut bytes = bytes.to_vec();
    match message {
        Message::Ask(question) => {
            bytes.truncate(LIST_AT);
            question.put(&mut bytes);
        }
        Message::Answer(replies) => {
            bytes.truncate(LIST_AT);
            replies.put(&mut bytes);
        }
        _ => {}
    }
    bytes
}

/// What the bytes of a peer say, if they say anything.
pub fn decode(bytes: &[u8]) -> Result<Message, NotAMessage> {
    if take::<8>(bytes, 0)? != MAGIC {
        return Err(NotAMessage::Invalid("it does not begin like a handshake"));
    }
    let version = u16::from_le_bytes(take(bytes, 8)?);
    if version != VERSION {
        return Err(NotAMessage::Version(version));
    }
    let message = match u16::from_le_bytes(take(bytes, 10)?) {
        ASK => Message::Ask(Question::take(list(bytes)?).map_err(NotAMessage::Invalid)?),
        ANSWER => Message::Answer(Replies::take(list(bytes)?).map_err(NotAMessage::Invalid)?),
        kind => take_fixed(kind, bytes)?,
    };
    // Whatever a message does not use is zero, so that a later version can use it.
    if encode(&message) != bytes {
        return Err(NotAMessage::Invalid(
            "a field that it does not use is not zero",
        ));
    }
    Ok(message)
}

/// The list of an ask or an answer.
fn list(bytes: &[u8]) -> Result<&[u8], NotAMessage> {
    let list = bytes.get(LIST_AT..);
    list.filter(|list| list.len() <= REPLIES_BYTES_MAX)
        .ok_or(NotAMessage::Invalid("it has the wrong length"))
}

fn take_fixed(kind: u16, bytes: &[u8]) -> Result<Message, NotAMessage> {
    let bytes: &[u8; MESSAGE_BYTES] = bytes
        .try_into()
        .map_err(|_| NotAMessage::Invalid("it has the wrong length"))?;
    Ok(match kind {
        GREETING => Message::Greeting {
            interface: u64::from_le_bytes(take(bytes, 16)?),
        },
        HELLO => Message::Hello(take_offer(bytes)?),
        WELCOME => Message::Welcome(take_offer(bytes)?),
        REFUSAL => Message::Refusal {
            reason: u16::from_le_bytes(take(bytes, 12)?),
        },
        NOT_SHARED => Message::NotShared,
        MAPPED => Message::Mapped,
        SEALED => Message::Sealed,
        FETCH => Message::Fetch {
            interface: u64::from_le_bytes(take(bytes, 16)?),
            secret: u64::from_le_bytes(take(bytes, 24)?),
        },
        REGION => Message::Region {
            length_bytes: u64::from_le_bytes(take(bytes, 16)?),
        },
        _ => return Err(NotAMessage::Invalid("its kind is unknown")),
    })
}

fn put_offer(bytes: &mut [u8; MESSAGE_BYTES], offer: &Offer) {
    let flags = if offer.takes_barriers {
        FLAG_BARRIER
    } else {
        0
    };
    put(bytes, 14, flags.to_le_bytes());
    put(bytes, 16, offer.interface.to_le_bytes());
    put(bytes, 24, offer.cells.to_le_bytes());
    put(bytes, 28, offer.payload_max_bytes.to_le_bytes());
    put(bytes, 32, offer.arena_bytes.to_le_bytes());
    put(bytes, READY_BIT_AT, offer.ready_bit.to_le_bytes());
    put(bytes, LOG_AT, offer.log_bytes.to_le_bytes());
    if let Some(name) = &offer.name {
        put_name(bytes, name);
    }
}

fn put_name(bytes: &mut [u8; MESSAGE_BYTES], name: &Name) {
    let name = name.as_str().as_bytes();
    put(bytes, 36, (name.len() as u16).to_le_bytes());
    for (to, from) in bytes.iter_mut().skip(NAME_AT).zip(name) {
        *to = *from;
    }
}

fn take_offer(bytes: &[u8; MESSAGE_BYTES]) -> Result<Offer, NotAMessage> {
    let flags = u16::from_le_bytes(take(bytes, 14)?);
    let payload_max_bytes = u32::from_le_bytes(take(bytes, 28)?);
    if !(PACKET_PAYLOAD_MIN as u32..=PACKET_PAYLOAD_MAX as u32).contains(&payload_max_bytes) {
        return Err(NotAMessage::Invalid("its largest payload is out of bounds"));
    }
    Ok(Offer {
        interface: u64::from_le_bytes(take(bytes, 16)?),
        name: take_name(bytes)?,
        cells: u32::from_le_bytes(take(bytes, 24)?),
        arena_bytes: u32::from_le_bytes(take(bytes, 32)?),
        payload_max_bytes,
        takes_barriers: flags & FLAG_BARRIER != 0,
        ready_bit: u32::from_le_bytes(take(bytes, READY_BIT_AT)?),
        log_bytes: u32::from_le_bytes(take(bytes, LOG_AT)?),
    })
}

fn take_name(bytes: &[u8; MESSAGE_BYTES]) -> Result<Option<Name>, NotAMessage> {
    let length = usize::from(u16::from_le_bytes(take(bytes, 36)?));
    if length == 0 {
        return Ok(None);
    }
    let name = bytes
        .get(NAME_AT..READY_BIT_AT)
        .and_then(|field| field.get(..length))
        .and_then(|name| core::str::from_utf8(name).ok())
        .and_then(|name| Name::new(name).ok());
    match name {
        Some(name) => Ok(Some(name)),
        None => Err(NotAMessage::Invalid("its name breaks the rules for names")),
    }
}

fn put<const N: usize>(bytes: &mut [u8; MESSAGE_BYTES], at: usize, value: [u8; N]) {
    for (to, from) in bytes.iter_mut().skip(at).zip(value) {
        *to = from;
    }
}

fn take<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], NotAMessage> {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk::<N>())
        .copied()
        .ok_or(NotAMessage::Invalid("it is too short"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offers::OFFER_BYTES_MAX;
    use crate::question::Reply;
    use proptest::prelude::*;

    fn offers() -> impl Strategy<Value = Offer> {
        let name = proptest::option::of("[A-Za-z0-9._/-]{1,64}");
        let rest = (
            any::<u64>(),
            any::<u32>(),
            any::<u32>(),
            64u32..=65536,
            any::<bool>(),
            any::<u32>(),
            any::<u32>(),
        );
        (name, rest).prop_map(
            |(name, (interface, cells, arena_bytes, payload, barriers, ready_bit, log))| Offer {
                interface,
                name: name.map(|name| Name::new(&name).unwrap()),
                cells,
                arena_bytes,
                payload_max_bytes: payload,
                takes_barriers: barriers,
                ready_bit,
                log_bytes: log,
            },
        )
    }

    fn of_one_size() -> impl Strategy<Value = Message> {
        prop_oneof![
            any::<u64>().prop_map(|interface| Message::Greeting { interface }),
            offers().prop_map(Message::Hello),
            offers().prop_map(Message::Welcome),
            any::<u16>().prop_map(|reason| Message::Refusal { reason }),
            Just(Message::NotShared),
            Just(Message::Mapped),
            Just(Message::Sealed),
            any::<(u64, u64)>()
                .prop_map(|(interface, secret)| Message::Fetch { interface, secret }),
            any::<u64>().prop_map(|length_bytes| Message::Region { length_bytes }),
        ]
    }

    fn messages() -> impl Strategy<Value = Message> {
        let items = proptest::collection::btree_set("[A-Za-z0-9._/-]{1,64}", 1..=70);
        let asks = items.prop_map(|items| {
            let items: Vec<Name> = items.iter().map(|item| Name::new(item).unwrap()).collect();
            Question::for_first(&items, usize::MAX).unwrap()
        });
        let offers = proptest::collection::vec(any::<u8>(), 0..=OFFER_BYTES_MAX);
        let answers = (asks.clone(), offers).prop_map(|(question, bytes)| {
            let mut rest = bytes.len();
            Replies::to(&question, REPLIES_BYTES_MAX, |item| {
                rest = rest.saturating_sub(item.as_str().len());
                match rest {
                    0 => Reply::Refused(Reply::NOT_OFFERED),
                    length => Reply::Given(bytes[..length].to_vec()),
                }
            })
        });
        prop_oneof![
            6 => of_one_size(),
            1 => asks.prop_map(Message::Ask),
            1 => answers.prop_map(Message::Answer),
        ]
    }

    /// No bytes may panic, and what is accepted has one encoding.
    fn any_bytes_are_judged(bytes: &[u8]) {
        if let Ok(message) = decode(bytes) {
            assert_eq!(encode(&message).as_slice(), bytes);
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(message in messages()) {
            prop_assert_eq!(decode(&encode(&message)), Ok(message));
        }

        #[test]
        fn arbitrary_bytes_are_judged(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            any_bytes_are_judged(&bytes);
        }

        #[test]
        fn damaged_messages_are_judged(message in messages(), at in 0..MESSAGE_BYTES, flip in 1u8..) {
            let mut bytes = encode(&message);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= flip;
            }
            any_bytes_are_judged(&bytes);
        }

        #[test]
        fn cut_and_stretched_messages_are_refused(message in of_one_size(), length in 0..300usize) {
            let mut bytes = encode(&message);
            bytes.resize(length, 0);
            prop_assert_eq!(decode(&bytes).is_ok(), length == MESSAGE_BYTES);
        }
    }

    #[test]
    fn lists_reach_to_the_end_of_their_message() {
        let question = Question::one(Name::new("a").unwrap());
        let reply = |_: &Name| Reply::Given(vec![7; OFFER_BYTES_MAX]);
        let replies = Replies::to(&question, REPLIES_BYTES_MAX, reply);
        for message in [Message::Ask(question), Message::Answer(replies)] {
            let mut bytes = encode(&message);
            for length in LIST_AT..bytes.len() {
                assert!(decode(&bytes[..length]).is_err(), "{length}");
            }
            bytes.push(0);
            assert!(decode(&bytes).is_err());
            // The list is as long as it says, and the message longer than any.
            bytes.resize(MESSAGE_BYTES_MAX + 1, 0);
            assert!(decode(&bytes).is_err());
        }
    }

    #[test]
    fn another_version_is_told_whatever_its_length() {
        for length in [10, 11, MESSAGE_BYTES, 200] {
            let mut bytes = vec![0xee; length];
            bytes[..8].copy_from_slice(b"hamlyn\r\n");
            bytes[8..10].copy_from_slice(&999u16.to_le_bytes());
            assert_eq!(decode(&bytes), Err(NotAMessage::Version(999)));
        }
    }

    #[test]
    fn unused_fields_must_be_zero() {
        let mut bytes = encode(&Message::Refusal { reason: 1 });
        bytes[20] = 1;
        assert!(matches!(decode(&bytes), Err(NotAMessage::Invalid(_))));
    }
}

//! Arbitrary bytes as a message of a handshake. For any bytes: no panic, and
//! what is accepted obeys every rule of this version and has one encoding.

use hamlyn_host::offers::OFFER_BYTES_MAX;
use hamlyn_host::process::codec::{
    MESSAGE_BYTES, MESSAGE_BYTES_MAX, Message, NotAMessage, Offer, VERSION, decode, encode,
};
use hamlyn_host::process::name::Name;
use hamlyn_host::question::{Question, Reply};

/// Decodes the bytes, then checks the result, and those of every shorter and of a longer message.
pub fn run(bytes: &[u8]) -> Result<Message, NotAMessage> {
    let decoded = decode(bytes);
    match &decoded {
        Ok(message) => {
            assert_eq!(encode(message), bytes, "a second encoding of {message:?}");
            obeys_the_rules(message, bytes.len());
        }
        Err(NotAMessage::Version(version)) => assert_ne!(*version, VERSION),
        Err(NotAMessage::Invalid(what)) => assert!(!what.is_empty()),
    }
    let longer = bytes.iter().copied().chain([0]).collect::<Vec<_>>();
    let others = [longer.as_slice()].into_iter();
    let shorter = (0..bytes.len().min(MESSAGE_BYTES)).map(|length| &bytes[..length]);
    for other in others.chain(shorter) {
        if let Ok(message) = decode(other) {
            obeys_the_rules(&message, other.len());
        }
    }
    decoded
}

fn obeys_the_rules(message: &Message, length: usize) {
    let is_list = matches!(message, Message::Ask(_) | Message::Answer(_));
    assert!(length <= MESSAGE_BYTES_MAX && (is_list || length == MESSAGE_BYTES));
    match message {
        Message::Hello(offer) | Message::Welcome(offer) => {
            let Offer {
                name,
                payload_max_bytes,
                ..
            } = offer;
            assert!((64..=65_536).contains(payload_max_bytes));
            if let Some(name) = name {
                is_a_name(name);
            }
        }
        Message::Ask(question) => {
            let items = question.items();
            assert!((1..=Question::ITEMS_MAX).contains(&items.len()));
            items.iter().for_each(is_a_name);
            for (at, item) in items.iter().enumerate() {
                assert!(!items[..at].contains(item), "{item:?} twice");
            }
        }
        Message::Answer(replies) => {
            let replies = replies.replies();
            assert!((1..=Question::ITEMS_MAX).contains(&replies.len()));
            for reply in replies {
                if let Reply::Given(bytes) = reply {
                    assert!((1..=OFFER_BYTES_MAX).contains(&bytes.len()));
                }
            }
        }
        Message::Greeting { .. }
        | Message::Refusal { .. }
        | Message::NotShared
        | Message::Mapped
        | Message::Sealed
        | Message::Fetch { .. }
        | Message::Region { .. } => {}
    }
}

fn is_a_name(name: &Name) {
    let name = name.as_str();
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
    assert!((1..=64).contains(&name.len()) && name.bytes().all(good));
}

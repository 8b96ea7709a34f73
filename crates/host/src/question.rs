//! Questions for several items of one interface, and their answers: values to bytes and back, for
//! handshakes within a host and between hosts alike.
//!
//! A question:
//!
//! | bytes | field |
//! |-------|-------|
//! | 1 | number of items, 1 to [`Question::ITEMS_MAX`] |
//! | 1, n | of each item: its length, and the item; no item stands there twice |
//!
//! An answer replies to the first items of its question, in their order; the asker asks for the
//! others again:
//!
//! | bytes | field |
//! |-------|-------|
//! | 1 | number of replies, 1 to the number of items |
//! | 2, n | of each reply: the length of the offer, and the offer |
//! | 2, 2 | or zero, and the reason why there is none |
//!
//! Numbers are little-endian. Decoding is total, and each value has one encoding.

use std::collections::HashSet;

use crate::process::name::Name;

/// Most bytes of an offer.
pub const OFFER_BYTES_MAX: usize = 1024;

const COUNT_BYTES: usize = 1;
const LENGTH_BYTES: usize = 2;
const REASON_BYTES: usize = 2;

/// The items that one interface is asked for: at least one, and none of them twice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question(Vec<Name>);

impl Question {
    /// The most items of a question.
    pub const ITEMS_MAX: usize = 64;
    /// Bytes of the longest question.
    pub const BYTES_MAX: usize = Self::bytes_of_longest(Self::ITEMS_MAX);

    /// Bytes of a question for so many items with the longest names.
    pub(crate) const fn bytes_of_longest(items: usize) -> usize {
        COUNT_BYTES + items * (1 + Name::BYTES_MAX)
    }

    /// A question for one item.
    pub fn one(item: Name) -> Self {
        Self(vec![item])
    }

    /// A question for as many of the first items as it can have, within so many bytes. The
    /// first item has room, or there are no items and no question.
    pub fn for_first<'a>(
        items: impl IntoIterator<Item = &'a Name>,
        room_bytes: usize,
    ) -> Option<Self> {
        let mut asked = HashSet::new();
        let mut length_bytes = COUNT_BYTES;
        let mut question = Vec::new();
        for item in items {
            length_bytes += 1 + item.as_str().len();
            let has_room = question.len() < Self::ITEMS_MAX && length_bytes <= room_bytes;
            if !has_room || !asked.insert(item) {
                break;
            }
            question.push(item.clone());
        }
        (!question.is_empty()).then_some(Self(question))
    }

    /// The items.
    pub fn items(&self) -> &[Name] {
        &self.0
    }

    /// Appends the one encoding.
    pub fn put(&self, into: &mut Vec<u8>) {
        into.push(self.0.len() as u8);
        for item in &self.0 {
            let item = item.as_str().as_bytes();
            into.push(item.len() as u8);
            into.extend_from_slice(item);
        }
    }

    /// Decodes untrusted bytes, to their end.
    pub fn take(bytes: &[u8]) -> Result<Self, &'static str> {
        let mut rest = Rest(bytes);
        let count = rest.count()?;
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            let [length] = rest.take_array()?;
            let item = rest.take(length.into())?;
            let item = str::from_utf8(item).map_err(|_| "an item that is no text")?;
            items.push(Name::new(item)?);
        }
        rest.end()?;
        if items.iter().collect::<HashSet<_>>().len() != items.len() {
            return Err("it asks for an item twice");
        }
        Ok(Self(items))
    }
}

/// The reply of an interface to one item.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// Its offer: 1 to [`OFFER_BYTES_MAX`] bytes.
    Given(Vec<u8>),
    /// None: [`Reply::NOT_OFFERED`], or a reason as in [`crate::RefusedBecause`].
    Refused(u16),
}

impl Reply {
    /// Nothing is offered under that item at present.
    pub const NOT_OFFERED: u16 = 101;

    fn length_bytes(&self) -> usize {
        LENGTH_BYTES
            + match self {
                Self::Given(bytes) => bytes.len(),
                Self::Refused(_) => REASON_BYTES,
            }
    }
}

/// The replies to the first items of a question: at least to one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replies(Vec<Reply>);

impl Replies {
    /// Bytes of the longest answer to one item: what there must be room for.
    pub const ONE_BYTES_MAX: usize = COUNT_BYTES + LENGTH_BYTES + OFFER_BYTES_MAX;

    /// Replies to as many items as fit so many bytes, at least [`Replies::ONE_BYTES_MAX`].
    pub fn to(
        question: &Question,
        room_bytes: usize,
        mut reply: impl FnMut(&Name) -> Reply,
    ) -> Self {
        let mut length_bytes = COUNT_BYTES;
        let mut replies = Vec::with_capacity(question.items().len());
        for item in question.items() {
            let reply = reply(item);
            length_bytes += reply.length_bytes();
            if length_bytes > room_bytes && !replies.is_empty() {
                break;
            }
            replies.push(reply);
        }
        Self(replies)
    }

    /// The replies, in the order of the items.
    pub fn replies(&self) -> &[Reply] {
        &self.0
    }

    /// True if an offer is among them.
    pub fn gives_any(&self) -> bool {
        let is_given = |reply: &Reply| matches!(reply, Reply::Given(_));
        self.0.iter().any(is_given)
    }

    /// The replies, unless they are more than the items of their question.
    pub fn of(self, question: &Question) -> Option<Vec<Reply>> {
        (self.0.len() <= question.items().len()).then_some(self.0)
    }

    /// Appends the one encoding.
    pub fn put(&self, into: &mut Vec<u8>) {
        into.push(self.0.len() as u8);
        for reply in &self.0 {
            match reply {
                Reply::Given(bytes) => {
                    into.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
                    into.extend_from_slice(bytes);
                }
                Reply::Refused(reason) => {
                    into.extend_from_slice(&[0; LENGTH_BYTES]);
                    into.extend_from_slice(&reason.to_le_bytes());
                }
            }
        }
    }

    /// Decodes untrusted bytes, to their end.
    pub fn take(bytes: &[u8]) -> Result<Self, &'static str> {
        let mut rest = Rest(bytes);
        let count = rest.count()?;
        let mut replies = Vec::with_capacity(count);
        for _ in 0..count {
            replies.push(match u16::from_le_bytes(rest.take_array()?) {
                0 => Reply::Refused(u16::from_le_bytes(rest.take_array()?)),
                length if usize::from(length) <= OFFER_BYTES_MAX => {
                    Reply::Given(rest.take(length.into())?.to_vec())
                }
                _ => return Err("it gives too much"),
            });
        }
        rest.end()?;
        Ok(Self(replies))
    }
}

/// A list being read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn count(&mut self) -> Result<usize, &'static str> {
        let [count] = self.take_array()?;
        match usize::from(count) {
            0 => Err("its list is empty"),
            count if count > Question::ITEMS_MAX => Err("its list is too long"),
            count => Ok(count),
        }
    }

    fn take_array<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or("its list is cut")?;
        self.0 = rest;
        Ok(*taken)
    }

    fn take(&mut self, length_bytes: usize) -> Result<&'a [u8], &'static str> {
        let split = self.0.split_at_checked(length_bytes);
        let (taken, rest) = split.ok_or("its list is cut")?;
        self.0 = rest;
        Ok(taken)
    }

    fn end(&self) -> Result<(), &'static str> {
        match self.0 {
            [] => Ok(()),
            _ => Err("there is more than its list says"),
        }
    }
}

#[cfg(test)]
mod tests;

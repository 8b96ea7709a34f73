//! Items: the names under which end points are found (`Hamlyn 6.3`, first contact). An end point is
//! bound to an item of its manager, and found as `name/item`, or `host/name/item` across hosts, by
//! those who may be linked to the manager's interface.
//!
//! What is offered under an item begins with a header: the version of this form, the protocol, and
//! the type of what is carried. So a program that asks for another protocol or type is told which
//! there is, before anything is sent.
//!
//! Refused: an address of another shape; an offer that is no end point; an item that is bound
//! twice.

use std::collections::VecDeque;
use std::fmt;

use crate::error::ConnectError;
pub use crate::protocol::Protocol;
use crate::remains::{Leaving, Remains};

/// Version of what is offered under an item.
const VERSION: u8 = 1;
/// What every offer begins with.
const MARK: [u8; 2] = *b"hI";
/// Bytes of a header before the types.
const FIXED_BYTES: usize = 4;
/// Bytes of the longest name of a type.
pub const TYPE_NAME_BYTES_MAX: usize = 64;

/// The type of what an end point carries, as both sides name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TypeName {
    /// Its name, of at most [`TYPE_NAME_BYTES_MAX`] bytes.
    pub name: &'static str,
    /// How many bytes a value has.
    pub length_bytes: u32,
}

impl TypeName {
    /// Bytes of any length.
    pub const BYTES: Self = Self {
        name: "",
        length_bytes: 0,
    };
}

/// As it is told in errors.
fn describe(name: &str, length_bytes: u32) -> String {
    match (name, length_bytes) {
        ("", 0) => "bytes".to_owned(),
        // A layer's protocol.
        (name, 0) => name.to_owned(),
        _ => format!("{name} of {length_bytes} bytes"),
    }
}

impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&describe(self.name, self.length_bytes))
    }
}

/// What an offer begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ItemHeader {
    pub(crate) protocol: Protocol,
    /// What its messages are.
    carries: TypeName,
    /// What the replies of a service are.
    replies: TypeName,
}

impl ItemHeader {
    pub(crate) const fn new(protocol: Protocol, carries: TypeName) -> Self {
        Self {
            protocol,
            carries,
            replies: TypeName::BYTES,
        }
    }

    pub(crate) const fn service(requests: TypeName, replies: TypeName) -> Self {
        Self {
            protocol: Protocol::Service,
            carries: requests,
            replies,
        }
    }

    /// As errors name the types.
    fn types(carries: &str, replies: &str) -> String {
        match replies {
            "bytes" => carries.to_owned(),
            replies => format!("{carries} answered by {replies}"),
        }
    }

    /// The header and what follows it. Without a body it says that whom the end point is for has
    /// been found.
    pub(crate) fn with(&self, body: &[u8]) -> Vec<u8> {
        let [m0, m1] = MARK;
        let mut bytes = vec![m0, m1, VERSION, self.protocol as u8];
        for carried in [self.carries, self.replies] {
            let name = carried.name.as_bytes();
            let name = &name[..name.len().min(TYPE_NAME_BYTES_MAX)];
            bytes.push(name.len() as u8);
            bytes.extend_from_slice(&carried.length_bytes.to_le_bytes());
            bytes.extend_from_slice(name);
        }
        bytes.extend_from_slice(body);
        bytes
    }

    /// What follows the header, if it is this one; `to` is the address that was asked. Total: any
    /// bytes give an answer.
    pub(crate) fn body_of(&self, offered: &[u8], to: &str) -> Result<Vec<u8>, ConnectError> {
        let to = || to.to_owned();
        let not_bound = |what| ConnectError::NotBound { to: to(), what };
        let Some((fixed, rest)) = offered.split_first_chunk::<FIXED_BYTES>() else {
            return Err(not_bound("it is too short"));
        };
        let [m0, m1, version, protocol] = *fixed;
        if [m0, m1] != MARK {
            return Err(not_bound("it has no header"));
        }
        if version != VERSION {
            return Err(ConnectError::Version {
                to: to(),
                theirs: version,
                ours: VERSION,
            });
        }
        let Some(protocol) = protocol_of(protocol) else {
            return Err(not_bound("its protocol is unknown"));
        };
        if protocol != self.protocol {
            return Err(ConnectError::OtherProtocol {
                to: to(),
                bound: protocol,
                asked: self.protocol,
            });
        }
        let Some((carries, rest)) = read_type(rest) else {
            return Err(not_bound("it is cut"));
        };
        let Some((replies, body)) = read_type(rest) else {
            return Err(not_bound("it is cut"));
        };
        let asked = Self::types(&self.carries.to_string(), &self.replies.to_string());
        let bound = Self::types(&carries, &replies);
        if bound != asked {
            return Err(ConnectError::OtherType {
                to: to(),
                bound,
                asked,
            });
        }
        if body.is_empty() {
            return Err(ConnectError::Taken { to: to() });
        }
        Ok(body.to_vec())
    }
}

fn protocol_of(byte: u8) -> Option<Protocol> {
    let mut all = Protocol::ALL.into_iter();
    all.find(|&known| known as u8 == byte)
}

/// True if those bytes offer an end point to one peer, which has it by them. Total.
fn is_for_one(offered: &[u8]) -> bool {
    let of = || {
        let ([.., protocol], rest) = offered.split_first_chunk::<FIXED_BYTES>()?;
        let (_, rest) = read_type(rest)?;
        let (_, body) = read_type(rest)?;
        Some((protocol_of(*protocol)?, body))
    };
    of().is_some_and(|(protocol, body)| protocol.is_offered_to_one() && !body.is_empty())
}

/// A type as errors name it, and what follows it.
fn read_type(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (fixed, rest) = bytes.split_first_chunk::<5>()?;
    let [name_length, b0, b1, b2, b3] = *fixed;
    let (name, rest) = rest.split_at_checked(usize::from(name_length))?;
    let length_bytes = u32::from_le_bytes([b0, b1, b2, b3]);
    Some((describe(&String::from_utf8_lossy(name), length_bytes), rest))
}

/// An item to which an end point is bound. When it is dropped, peers do not find the end point any
/// more.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) item: String,
    pub(crate) header: ItemHeader,
    pub(crate) leaving: Leaving,
}

impl Drop for Bound {
    fn drop(&mut self) {
        self.leaving.leave(Remains {
            item: Some(std::mem::take(&mut self.item)),
            ..Remains::default()
        });
    }
}

/// An end point that [`Manager::look_up`] found: all that a sender needs to connect to it, without
/// another question.
///
/// Its protocol and type are checked when something connects to it. An end point that is
/// for one peer (a stream, a place of a service or a publisher, or in a lobby) is this one's: if
/// nothing connects, it is lost for other peers, a place until its owner takes it back, after ten
/// seconds. After five seconds connecting asks for another one. An attempt to connect that has no
/// time keeps it for the next one by its address.
///
/// [`Manager::look_up`]: crate::Manager::look_up
#[derive(Debug)]
pub struct Found {
    pub(crate) to: String,
    pub(crate) offered: Vec<u8>,
    pub(crate) asked_ns: u64,
}

/// An end point to connect to: its address, `name/item` or `host/name/item`, or what
/// [`Manager::look_up`] found there.
///
/// [`Manager::look_up`]: crate::Manager::look_up
#[derive(Debug)]
pub struct EndPoint<'a>(pub(crate) Which<'a>);

#[derive(Debug)]
pub(crate) enum Which<'a> {
    At(&'a str),
    Found(Found),
}

impl EndPoint<'_> {
    /// The address.
    pub fn address(&self) -> &str {
        match &self.0 {
            Which::At(address) => address,
            Which::Found(found) => &found.to,
        }
    }
}

impl<'a> From<&'a str> for EndPoint<'a> {
    fn from(address: &'a str) -> Self {
        Self(Which::At(address))
    }
}

impl<'a> From<&'a String> for EndPoint<'a> {
    fn from(address: &'a String) -> Self {
        Self(Which::At(address))
    }
}

impl From<Found> for EndPoint<'_> {
    fn from(found: Found) -> Self {
        Self(Which::Found(found))
    }
}

/// How long an offer is good for: half of the time after which its owner takes it back from a peer
/// that does not present itself. A peer whose greeting is in the link by then has presented itself
/// in time, because the owner takes in what has come before it takes anything back.
const FOUND_NS_MAX: u64 = 5_000_000_000;

impl Found {
    /// The address.
    pub fn address(&self) -> &str {
        &self.to
    }

    /// The bytes that are offered there, as [`Manager::ask`](crate::Manager::ask) returns them: for
    /// programs that offer tickets of their own.
    pub fn offered(&self) -> &[u8] {
        &self.offered
    }

    /// True if it offers an end point to one peer, which is this one now.
    pub(crate) fn is_for_one(&self) -> bool {
        is_for_one(&self.offered)
    }

    /// Whether its owner cannot have taken it back.
    pub(crate) fn is_fresh(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.asked_ns) <= FOUND_NS_MAX
    }
}

/// Attempts of one manager whose offers are kept; of more the oldest are given up.
const FOUND_MAX: usize = 16;

/// See [`Found`].
#[derive(Debug, Default)]
pub(crate) struct KeptOffers(VecDeque<Found>);

impl KeptOffers {
    pub(crate) fn take(&mut self, to: &str, header: ItemHeader, now_ns: u64) -> Option<Found> {
        self.0.retain(|found| found.is_fresh(now_ns));
        let is_it = |found: &Found| found.to == to && header.body_of(&found.offered, to).is_ok();
        let at = self.0.iter().position(is_it)?;
        self.0.remove(at)
    }

    pub(crate) fn keep(&mut self, found: Found) {
        if self.0.len() == FOUND_MAX {
            self.0.pop_front();
        }
        self.0.push_back(found);
    }
}

#[cfg(test)]
mod tests;

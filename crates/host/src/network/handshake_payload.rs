//! Handshake payloads: requests and answers that two processes of different hosts exchange before
//! there is a link, after a handshake, which has proved who they are.
//!
//! This module converts bytes to values and back. Both directions are total, and each payload has
//! exactly one encoding.
//!
//! | at | bytes | field |
//! |----|-------|-------|
//! | 0  | 1     | version |
//! | 1  | 1     | kind: 1 locate a name, 2 locate an interface, 3 link, 4 ask; 65 located, 66 linked, 67 answered, 68 refused |
//! | 2  | 2     | reason (refused); length of the name (locate, link, linked); otherwise 0 |
//! | 4  |       | what the kind says, see [`Request`] and [`Answer`] |
//!
//! Numbers are little-endian.

use crate::Destination;
use crate::process::name::{Name, Namespace};
use crate::question::{Question, Replies};

/// The version that this library speaks.
pub const VERSION: u8 = 2;
/// The longest handshake payload.
pub const PAYLOAD_BYTES_MAX: usize = HEAD_BYTES + Replies::ONE_BYTES_MAX;
/// Bytes that the replies of an answer have at most.
pub const REPLIES_BYTES_MAX: usize = PAYLOAD_BYTES_MAX - HEAD_BYTES;
/// Bytes that the question of an ask has at most.
pub const QUESTION_BYTES_MAX: usize = PAYLOAD_BYTES_MAX - HEAD_BYTES - ASKER_BYTES;

const HEAD_BYTES: usize = 4;
const LOCATE_NAME: u8 = 1;
const LOCATE_INTERFACE: u8 = 2;
const LINK: u8 = 3;
const ASK: u8 = 4;
const LOCATED: u8 = 65;
const LINKED: u8 = 66;
const ANSWERED: u8 = 67;
const REFUSED: u8 = 68;
/// Of a [`Side`], without its name.
const SIDE_BYTES: usize = 44;

/// Of an ask, without its question.
const ASKER_BYTES: usize = 16;

const _: () = {
    assert!(HEAD_BYTES + SIDE_BYTES + Namespace::BYTES_MAX + Name::BYTES_MAX <= PAYLOAD_BYTES_MAX);
    // So many items have room whatever their names.
    assert!(Question::bytes_of_longest(15) <= QUESTION_BYTES_MAX);
};

/// The interface that a peer looks for on a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sought {
    /// The interface that published that name.
    Name(Name),
    /// The interface of that number.
    Interface(u64),
}

impl Sought {
    /// Whether the interface of that number is it, as far as can be told.
    pub(crate) fn is_or_may_be(&self, interface: u64) -> bool {
        match self {
            Self::Name(_) => true,
            Self::Interface(sought) => *sought == interface,
        }
    }
}

/// One side of a link to be: who it is, and how it takes frames.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Side {
    /// Which interface of which host, run by whom.
    pub destination: Destination,
    /// The group that it runs as.
    pub group: u32,
    /// The number of its process.
    pub process: u32,
    /// The name under which it can be reached.
    pub name: Option<Name>,
    /// The association's number at this side: what frames to it carry.
    pub association: u32,
    /// Channels that it sends over at most; 1 to 65,535.
    pub channels: u16,
    /// Bytes of the largest frame that it takes.
    pub frame_bytes: u32,
    /// Paths that it sends over; at least 1.
    pub paths: u8,
    /// On which port it takes frames.
    pub port: u16,
}

/// A request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// On which port can that interface be reached? For the name service.
    Locate {
        /// In which namespace.
        namespace: Namespace,
        /// Whom.
        sought: Sought,
    },
    /// A link.
    Link(Side),
    /// Offers.
    Ask {
        /// The items.
        question: Question,
        /// The user that asks.
        user: u32,
        /// Its group.
        group: u32,
        /// Chosen by the asker, which gets the same offer if it asks for an item again with this
        /// number.
        number: u64,
    },
}

/// The answer to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// On that port is that interface.
    Located {
        /// Its number.
        interface: u64,
        /// Its host.
        node: u32,
        /// The user that it runs as.
        user: u32,
        /// The port.
        port: u16,
    },
    /// There is a link.
    Linked(Side),
    /// This is offered.
    Answered(Replies),
    /// No; for a reason as in [`crate::RefusedBecause`], or one of this module.
    Refused {
        /// Which.
        reason: u16,
    },
}

impl Answer {
    /// Nobody has that name, or that interface is gone.
    pub const NOBODY: u16 = 100;
}

/// Why bytes are no handshake payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidPayload {
    /// A handshake payload of another version.
    #[error("it is of version {0}")]
    Version(u8),
    /// It breaks a rule of this version.
    #[error("{0}")]
    Invalid(&'static str),
}

impl Request {
    /// Its one encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Locate { namespace, sought } => {
                let mut body = vec![namespace.as_str().len() as u8];
                body.extend_from_slice(namespace.as_str().as_bytes());
                match sought {
                    Sought::Name(name) => {
                        body.extend_from_slice(name.as_str().as_bytes());
                        payload(LOCATE_NAME, name.as_str().len() as u16, &body)
                    }
                    Sought::Interface(interface) => {
                        body.extend_from_slice(&interface.to_le_bytes());
                        payload(LOCATE_INTERFACE, 0, &body)
                    }
                }
            }
            Self::Link(side) => side.payload(LINK),
            Self::Ask {
                question,
                user,
                group,
                number,
            } => {
                let mut body = user.to_le_bytes().to_vec();
                body.extend_from_slice(&group.to_le_bytes());
                body.extend_from_slice(&number.to_le_bytes());
                question.put(&mut body);
                payload(ASK, 0, &body)
            }
        }
    }

    /// Decodes untrusted bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidPayload> {
        let mut payload = Payload::open(bytes)?;
        let request = match payload.kind {
            LOCATE_NAME | LOCATE_INTERFACE => {
                let [length] = payload.take::<1>()?;
                let namespace = payload.text(length.into())?;
                let namespace = Namespace::new(namespace).map_err(InvalidPayload::Invalid)?;
                let sought = if payload.kind == LOCATE_NAME {
                    let name = payload.text(payload.number.into())?;
                    Sought::Name(Name::new(name).map_err(InvalidPayload::Invalid)?)
                } else {
                    payload.expect_no_number()?;
                    Sought::Interface(u64::from_le_bytes(payload.take()?))
                };
                Self::Locate { namespace, sought }
            }
            LINK => Self::Link(Side::of(&mut payload)?),
            ASK => {
                payload.expect_no_number()?;
                let user = u32::from_le_bytes(payload.take()?);
                let group = u32::from_le_bytes(payload.take()?);
                let number = u64::from_le_bytes(payload.take()?);
                let question = payload.take_list(QUESTION_BYTES_MAX)?;
                let question = Question::take(question).map_err(InvalidPayload::Invalid)?;
                Self::Ask {
                    question,
                    user,
                    group,
                    number,
                }
            }
            _ => return Err(InvalidPayload::Invalid("its kind is unknown")),
        };
        payload.end()?;
        Ok(request)
    }
}

impl Answer {
    /// Its one encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Located {
                interface,
                node,
                user,
                port,
            } => {
                let mut body = interface.to_le_bytes().to_vec();
                body.extend_from_slice(&node.to_le_bytes());
                body.extend_from_slice(&user.to_le_bytes());
                body.extend_from_slice(&port.to_le_bytes());
                payload(LOCATED, 0, &body)
            }
            Self::Linked(side) => side.payload(LINKED),
            Self::Answered(replies) => {
                let mut body = Vec::new();
                replies.put(&mut body);
                payload(ANSWERED, 0, &body)
            }
            Self::Refused { reason } => payload(REFUSED, *reason, &[]),
        }
    }

    /// Decodes untrusted bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidPayload> {
        let mut payload = Payload::open(bytes)?;
        let answer = match payload.kind {
            LOCATED => {
                payload.expect_no_number()?;
                let interface = u64::from_le_bytes(payload.take()?);
                let node = u32::from_le_bytes(payload.take()?);
                let user = u32::from_le_bytes(payload.take()?);
                let port = u16::from_le_bytes(payload.take()?);
                if port == 0 || node == 0 {
                    return Err(InvalidPayload::Invalid("a port or a host that is none"));
                }
                Self::Located {
                    interface,
                    node,
                    user,
                    port,
                }
            }
            LINKED => Self::Linked(Side::of(&mut payload)?),
            ANSWERED => {
                payload.expect_no_number()?;
                let replies = payload.take_list(REPLIES_BYTES_MAX)?;
                Self::Answered(Replies::take(replies).map_err(InvalidPayload::Invalid)?)
            }
            REFUSED => Self::Refused {
                reason: payload.number,
            },
            _ => return Err(InvalidPayload::Invalid("its kind is unknown")),
        };
        payload.end()?;
        Ok(answer)
    }
}

impl Side {
    fn payload(&self, kind: u8) -> Vec<u8> {
        let name = self.name.as_ref().map_or("", Name::as_str);
        let mut body = Vec::with_capacity(SIDE_BYTES + name.len());
        body.extend_from_slice(&self.destination.interface.to_le_bytes());
        for word in [
            self.destination.node,
            self.destination.user,
            self.group,
            self.process,
            self.association,
            self.frame_bytes,
        ] {
            body.extend_from_slice(&word.to_le_bytes());
        }
        body.extend_from_slice(&self.channels.to_le_bytes());
        body.push(self.paths);
        body.push(0);
        body.extend_from_slice(&self.port.to_le_bytes());
        // For later versions.
        body.resize(SIDE_BYTES, 0);
        body.extend_from_slice(name.as_bytes());
        payload(kind, name.len() as u16, &body)
    }

    fn of(payload: &mut Payload<'_>) -> Result<Self, InvalidPayload> {
        let interface = u64::from_le_bytes(payload.take()?);
        let mut word = || payload.take().map(u32::from_le_bytes);
        let (node, user, group, process) = (word()?, word()?, word()?, word()?);
        let (association, frame_bytes) = (word()?, word()?);
        let channels = u16::from_le_bytes(payload.take()?);
        let [paths, unused] = payload.take()?;
        let port = u16::from_le_bytes(payload.take()?);
        if unused != 0 || payload.take::<6>()? != [0; 6] {
            return Err(InvalidPayload::Invalid(
                "a field that it does not use is not zero",
            ));
        }
        if node == 0 || channels == 0 || paths == 0 || port == 0 {
            return Err(InvalidPayload::Invalid(
                "a host, channels, paths or a port that are none",
            ));
        }
        let name = match payload.text(payload.number.into())? {
            "" => None,
            name => Some(Name::new(name).map_err(InvalidPayload::Invalid)?),
        };
        Ok(Self {
            destination: Destination {
                node,
                user,
                interface,
            },
            group,
            process,
            name,
            association,
            channels,
            frame_bytes,
            paths,
            port,
        })
    }
}

fn payload(kind: u8, number: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + body.len());
    bytes.extend_from_slice(&[VERSION, kind]);
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// A handshake payload being read.
struct Payload<'a> {
    kind: u8,
    number: u16,
    rest: &'a [u8],
}

impl<'a> Payload<'a> {
    fn open(bytes: &'a [u8]) -> Result<Self, InvalidPayload> {
        let mut payload = Self {
            kind: 0,
            number: 0,
            rest: bytes,
        };
        let [version, kind] = payload.take()?;
        if version != VERSION {
            return Err(InvalidPayload::Version(version));
        }
        payload.kind = kind;
        payload.number = u16::from_le_bytes(payload.take()?);
        Ok(payload)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], InvalidPayload> {
        let cut = InvalidPayload::Invalid("it was cut");
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(cut)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn text(&mut self, length_bytes: usize) -> Result<&'a str, InvalidPayload> {
        let cut = InvalidPayload::Invalid("it was cut");
        let (taken, rest) = self.rest.split_at_checked(length_bytes).ok_or(cut)?;
        self.rest = rest;
        str::from_utf8(taken).map_err(|_| InvalidPayload::Invalid("a name that is no text"))
    }

    /// A list, which reaches to the end.
    fn take_list(&mut self, bytes_max: usize) -> Result<&'a [u8], InvalidPayload> {
        let list = std::mem::take(&mut self.rest);
        match list.len() <= bytes_max {
            true => Ok(list),
            false => Err(InvalidPayload::Invalid("its list is too long")),
        }
    }

    fn expect_no_number(&self) -> Result<(), InvalidPayload> {
        match self.number {
            0 => Ok(()),
            _ => Err(InvalidPayload::Invalid(
                "a field that it does not use is not zero",
            )),
        }
    }

    fn end(&self) -> Result<(), InvalidPayload> {
        match self.rest {
            [] => Ok(()),
            _ => Err(InvalidPayload::Invalid("there is more than it says")),
        }
    }
}

#[cfg(test)]
mod tests;

//! Items: the names under which end points are found (`Hamlyn 6.3`, first contact). An end point is bound to an item of its
//! manager, and found as `name/item`, or `host/name/item` across hosts, by those who may be linked to the manager's interface.
//!
//! What is offered under an item begins with a header: the version of this form, the protocol, and the type of what is
//! carried. So a program that asks for another protocol or type is told which there is, before anything is sent.
//!
//! Refused: an address of another shape; an offer that is no end point; an item that is bound twice.

use std::collections::VecDeque;
use std::fmt;

use hamlyn_host::{Address, ConnectError as Reach, Host, HostError, RefusedBecause, Supply};

use crate::core::Core;
use crate::error::{ConnectError, OpenError};
use crate::manager::Manager;
use crate::message::Target;
use crate::remains::{Leaving, Remains};
use crate::session::Session;
use crate::wait::{Wait, Waiting};

/// Version of what is offered under an item.
const VERSION: u8 = 1;
/// What every offer begins with.
const MARK: [u8; 2] = *b"hI";
/// Bytes of a header before the types.
const FIXED_BYTES: usize = 4;
/// Bytes of the longest name of a type.
pub const TYPE_NAME_BYTES_MAX: usize = 64;

/// What an end point speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[repr(u8)]
pub enum Protocol {
    /// [`crate::datagram`].
    Datagram = 1,
    /// [`crate::stream`].
    Stream = 2,
    /// [`crate::tagged_write`].
    TaggedWrite = 3,
    /// [`crate::group`].
    Group = 4,
    /// [`crate::service`].
    Service = 5,
    /// [`crate::loans`].
    Loans = 6,
}

impl Protocol {
    /// Each of its offers is for one peer, for as long as the end point lasts. Members of groups are not: the next round has others.
    fn is_offered_to_one(self) -> bool {
        matches!(self, Self::Stream | Self::Service | Self::Loans)
    }

    const ALL: [Self; 6] = [
        Self::Datagram,
        Self::Stream,
        Self::TaggedWrite,
        Self::Group,
        Self::Service,
        Self::Loans,
    ];
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Datagram => "datagram",
            Self::Stream => "stream",
            Self::TaggedWrite => "tagged write",
            Self::Group => "group",
            Self::Service => "service",
            Self::Loans => "publisher of loaned messages",
        })
    }
}

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
    protocol: Protocol,
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

    /// The header and what follows it. Without a body it says that whom the end point is for has been found.
    fn with(&self, body: &[u8]) -> Vec<u8> {
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

    /// What follows the header, if it is this one; `to` is the address that was asked. Total: any bytes give an answer.
    fn body_of(&self, offered: &[u8], to: &str) -> Result<Vec<u8>, ConnectError> {
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
        let known = Protocol::ALL
            .into_iter()
            .find(|&known| known as u8 == protocol);
        let Some(protocol) = known else {
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

/// A type as errors name it, and what follows it.
fn read_type(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (fixed, rest) = bytes.split_first_chunk::<5>()?;
    let [name_length, b0, b1, b2, b3] = *fixed;
    let (name, rest) = rest.split_at_checked(usize::from(name_length))?;
    let length_bytes = u32::from_le_bytes([b0, b1, b2, b3]);
    Some((describe(&String::from_utf8_lossy(name), length_bytes), rest))
}

/// An item to which an end point is bound. When it is dropped, peers do not find the end point any more.
#[derive(Debug)]
pub(crate) struct Bound {
    item: String,
    header: ItemHeader,
    leaving: Leaving,
}

impl Drop for Bound {
    fn drop(&mut self) {
        self.leaving.leave(Remains {
            item: Some(std::mem::take(&mut self.item)),
            ..Remains::default()
        });
    }
}

/// One of the places under an item, which its asker has or will have. When it is dropped, the place is free.
#[derive(Debug)]
pub(crate) struct Place {
    item: String,
    number: u64,
    leaving: Leaving,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leaving.leave(Remains {
            place: Some((std::mem::take(&mut self.item), self.number)),
            ..Remains::default()
        });
    }
}

impl<H: Host> Core<H> {
    /// Binds an end point to an item: `body` is what connects to it. With [`Supply::Once`] those who ask later are told that
    /// others were first.
    pub(crate) fn bind(
        &mut self,
        item: &str,
        header: ItemHeader,
        body: &[u8],
        supply: Supply,
    ) -> Result<Bound, OpenError> {
        let bound = self.bind_empty(item, header)?;
        self.offer_bound(&bound, body, supply)?;
        Ok(bound)
    }

    /// Binds an item under which nothing is offered yet.
    pub(crate) fn bind_empty(
        &mut self,
        item: &str,
        header: ItemHeader,
    ) -> Result<Bound, OpenError> {
        self.reap();
        if item.contains('/') {
            return Err(OpenError::BadItem {
                item: item.to_owned(),
                reason: "it has no slash, which parts it from the name of its manager",
            });
        }
        if !self.items.insert(item.to_owned()) {
            return Err(OpenError::ItemTaken {
                item: item.to_owned(),
            });
        }
        Ok(Bound {
            item: item.to_owned(),
            header,
            leaving: self.interface.leaving.clone(),
        })
    }

    /// Offers something else under an item.
    pub(crate) fn offer_bound(
        &mut self,
        bound: &Bound,
        body: &[u8],
        supply: Supply,
    ) -> Result<(), OpenError> {
        let header = bound.header;
        let interface = &mut self.interface;
        interface.offer(&bound.item, supply, &header.with(body))?;
        if supply == Supply::Once {
            interface.offer(&bound.item, Supply::Afterwards, &header.with(&[]))?;
        }
        Ok(())
    }

    /// Offers one of `most` places under an item, to one asker who has not its share of them.
    pub(crate) fn offer_place(
        &mut self,
        bound: &Bound,
        most: u16,
        body: &[u8],
    ) -> Result<Place, OpenError> {
        let offer = bound.header.with(body);
        let interface = &mut self.interface;
        let number = interface.offer_place(&bound.item, u32::from(most), &offer)?;
        Ok(Place {
            item: bound.item.clone(),
            number,
            leaving: bound.leaving.clone(),
        })
    }

    /// No further place could be had: those who ask in vain are told so.
    pub(crate) fn run_short(&mut self, bound: &Bound) {
        self.interface.run_short(&bound.item);
    }

    /// How many offers under an item no peer has asked for.
    pub(crate) fn offered_under(&self, bound: &Bound) -> usize {
        self.interface.host().offered(&bound.item)
    }

    /// Takes back what is offered under an item.
    pub(crate) fn withdraw_bound(&mut self, bound: &Bound) {
        self.interface.withdraw(&bound.item);
    }
}

/// What an end point offers to one peer alone, and an attempt to connect found.
#[derive(Debug)]
pub(crate) struct Found {
    to: String,
    header: ItemHeader,
    body: Vec<u8>,
    asked_ns: u64,
}

/// How long an offer is good for: half of the time after which its owner takes it back from a peer that does not present itself.
/// A peer whose greeting is in the link by then has presented itself in time, because the owner takes in what has come before it
/// takes anything back.
const FOUND_NS_MAX: u64 = 5_000_000_000;

impl Found {
    /// Whether its owner cannot have taken it back.
    fn is_fresh(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.asked_ns) <= FOUND_NS_MAX
    }
}

/// Attempts of one manager whose offers are kept; of more the oldest are given up.
const FOUND_MAX: usize = 16;

/// An end that has presented itself to the end point that it was offered.
pub(crate) trait Greeted {
    /// Where its greeting went. Nothing if the offer is for everybody, and there is none.
    fn greeted(&self) -> Option<&Target> {
        None
    }
}

impl<H: Host> Manager<H> {
    /// Connects to an end point of that kind: `connect` does, to what is offered under the address `to`, in what is left of the wait.
    ///
    /// The offer may be for one peer alone. So if the attempt comes to nothing for want of time, or of something of ours, the next one has
    /// the same offer. If the offer was kept, or the greeting left so late that the owner may have taken the offer back, the owner's
    /// answer is waited for, and another offer is asked for if need be: nobody is connected to an end point that does not know of it.
    pub(crate) fn connect_to<E: Greeted>(
        &self,
        to: &str,
        header: ItemHeader,
        wait: Wait,
        connect: impl Fn(&[u8], Wait) -> Result<E, ConnectError>,
    ) -> Result<E, ConnectError> {
        let mut waiting = Waiting::new(wait);
        loop {
            let (left, kept) = {
                let mut session = self.enter()?;
                let (left, now_ns) = (session.left(&mut waiting), session.host().now_ns());
                (left, session.core.found.take(to, header, now_ns))
            };
            let was_kept = kept.is_some();
            let (found, left) = match kept {
                Some(found) => (found, left),
                None => self.find(to, header, left)?,
            };
            match connect(&found.body, left) {
                Ok(end) => {
                    if self.is_known(&end, &found, was_kept, &mut waiting)? {
                        return Ok(end);
                    }
                }
                Err(error) => {
                    if header.protocol.is_offered_to_one() && is_for_now(&error) {
                        self.enter()?.core.found.keep(found);
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Whether the owner of what was found knows that this end is there, or will at its next look.
    fn is_known<E: Greeted>(
        &self,
        end: &E,
        found: &Found,
        was_kept: bool,
        waiting: &mut Waiting,
    ) -> Result<bool, ConnectError> {
        let Some(target) = end.greeted() else {
            return Ok(true);
        };
        let is_fresh = |session: &Session<'_, H>| found.is_fresh(session.host().now_ns());
        let mut session = self.enter()?;
        if is_fresh(&session) && !was_kept {
            return Ok(true);
        }
        let mut fence = session.begin_fence_to(target.link(), target.ticket().destination);
        let answered = session.wait_within(waiting, |session, _| {
            let is_over = session.continue_fence(&mut fence);
            Ok::<_, HostError>(is_over.then_some(()))
        });
        if answered.map_err(Reach::Host)?.is_none() {
            if is_fresh(&session) {
                return Ok(true);
            }
            let to = found.to.clone();
            return Err(Reach::Stalled { to, silence: None }.into());
        }
        // The program's next fence tells what this one has found refused.
        drop(fence);
        Ok(!session.is_closed_there(target))
    }

    /// What is offered under an address, and what is left of the wait.
    fn find(
        &self,
        to: &str,
        header: ItemHeader,
        wait: Wait,
    ) -> Result<(Found, Wait), ConnectError> {
        let parts = to.rsplit_once('/');
        let Some((name, item)) = parts.filter(|(name, item)| {
            let is_of_few_parts = name.matches('/').count() <= 1;
            !name.split('/').any(str::is_empty) && !item.is_empty() && is_of_few_parts
        }) else {
            return Err(ConnectError::Address { to: to.to_owned() });
        };
        let mut session = self.enter()?;
        let mut waiting = Waiting::new(wait);
        let wait = session.left(&mut waiting);
        let given = session.ask_when(Address::Name(name), item, wait)?;
        let found = Found {
            to: to.to_owned(),
            header,
            body: header.body_of(&given.bytes, to)?,
            asked_ns: given.asked_ns,
        };
        Ok((found, session.left(&mut waiting)))
    }
}

/// Whether another attempt with the same offer may succeed.
fn is_for_now(error: &ConnectError) -> bool {
    matches!(
        error,
        ConnectError::Reach(
            Reach::Stalled { .. }
                | Reach::Refused {
                    reason: RefusedBecause::BUSY,
                    ..
                }
                | Reach::Host(_),
        ) | ConnectError::Open(_)
    )
}

/// See [`Found`].
#[derive(Debug, Default)]
pub(crate) struct KeptOffers(VecDeque<Found>);

impl KeptOffers {
    fn take(&mut self, to: &str, header: ItemHeader, now_ns: u64) -> Option<Found> {
        self.0.retain(|found| found.is_fresh(now_ns));
        let is_it = |found: &Found| found.to == to && found.header == header;
        let at = self.0.iter().position(is_it)?;
        self.0.remove(at)
    }

    fn keep(&mut self, found: Found) {
        if self.0.len() == FOUND_MAX {
            self.0.pop_front();
        }
        self.0.push_back(found);
    }
}

#[cfg(test)]
mod tests;

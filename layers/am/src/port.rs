//! An endpoint as the node has it: its port, handlers, segment and translations.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use hamlyn::Port;
use hamlyn::engine::memory::LinkId;

use crate::call::{Call, Outcome};
use crate::error::{Error, Reason};
use crate::name::{Introduction, Tag};
use crate::peer::{EndpointId, Record};
use crate::residence::Stay;
use crate::returned::Returned;
use crate::segment::Segment;
use crate::translation::{Mapped, Translation, Translations};
use crate::wire::Place;

type OnShort = dyn FnMut(&mut Call<'_>, &[u32]) -> Outcome;
type OnMedium = dyn FnMut(&mut Call<'_>, &[u8], &[u32]) -> Outcome;
type OnBulk = dyn FnMut(&mut Call<'_>, Range<u64>, &[u32]) -> Outcome;
type OnReturned = dyn FnMut(&Returned<'_>);

type OnAny = dyn FnMut(&mut Call<'_>, Incoming<'_>, &[u32]) -> Outcome;

/// A message for a handler of any kind ([`Endpoint::on_any`](crate::Endpoint::on_any)), beside its
/// arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Incoming<'a> {
    /// A short message: it has arguments alone.
    Short,
    /// A medium message with its data.
    Medium(&'a [u8]),
    /// A bulk message or a get: the range of the own segment in which the data are.
    Bulk(Range<u64>),
}

/// A handler of the application, for its kind of message.
pub(crate) enum Handler {
    Any(Box<OnAny>),
    Short(Box<OnShort>),
    Medium(Box<OnMedium>),
    Bulk(Box<OnBulk>),
}

/// The parts of an endpoint that messages need.
#[derive(Default)]
pub(crate) struct Receiving {
    pub(crate) id: EndpointId,
    /// By number, up to the highest that was set.
    pub(crate) handlers: Vec<Option<Handler>>,
    pub(crate) returned: Option<Box<OnReturned>>,
    pub(crate) segment: Option<Segment>,
}

impl Receiving {
    #[inline]
    pub(crate) fn handler(&mut self, number: u8) -> Option<&mut Handler> {
        self.handlers.get_mut(usize::from(number))?.as_mut()
    }

    /// Runs the handler of a short message.
    #[inline]
    pub(crate) fn run_short(
        &mut self,
        number: u8,
        call: &mut Call<'_>,
        arguments: &[u32],
    ) -> Result<Outcome, Reason> {
        match self.handler(number) {
            Some(Handler::Short(handler)) => Ok(handler(call, arguments)),
            Some(Handler::Any(handler)) => Ok(handler(call, Incoming::Short, arguments)),
            _ => Err(Reason::BadHandler),
        }
    }

    /// Runs the handler of a medium message.
    pub(crate) fn run_medium(
        &mut self,
        number: u8,
        call: &mut Call<'_>,
        data: &[u8],
        arguments: &[u32],
    ) -> Result<Outcome, Reason> {
        match self.handler(number) {
            Some(Handler::Medium(handler)) => Ok(handler(call, data, arguments)),
            Some(Handler::Any(handler)) => Ok(handler(call, Incoming::Medium(data), arguments)),
            _ => Err(Reason::BadHandler),
        }
    }

    /// The segment, if the place lies in it.
    pub(crate) fn segment_at(&self, place: Place) -> Result<&Segment, Reason> {
        let segment = self.segment.as_ref().ok_or(Reason::BadOffset)?;
        if place.offset > segment.length_bytes {
            return Err(Reason::BadOffset);
        }
        match place.length_bytes <= segment.length_bytes - place.offset {
            true => Ok(segment),
            false => Err(Reason::BadLength),
        }
    }

    /// Stores the data of a bulk message for that handler.
    pub(crate) fn store(&mut self, handler: u8, place: Place, data: &[u8]) -> Result<(), Reason> {
        if data.len() as u64 != place.length_bytes {
            return Err(Reason::BadLength);
        }
        let segment = self.checked(handler, place)?;
        let stored = segment.area.write_at(place.offset, data);
        stored.map_err(|_| Reason::BadOffset)
    }

    /// The segment, if bulk messages have that handler, and the place lies in it.
    pub(crate) fn checked(&mut self, handler: u8, place: Place) -> Result<&Segment, Reason> {
        match self.handler(handler) {
            Some(Handler::Bulk(_) | Handler::Any(_)) => self.segment_at(place),
            _ => Err(Reason::BadHandler),
        }
    }

    /// Checks the message that runs a handler for data that were written before.
    pub(crate) fn check_stored(
        &mut self,
        handler: u8,
        place: Place,
        proof: &[u8],
    ) -> Result<(), Reason> {
        let segment = self.checked(handler, place)?;
        let proof = proof.try_into().map_err(|_| Reason::BadLength)?;
        match segment.has_slot(u64::from_le_bytes(proof)) {
            true => Ok(()),
            false => Err(Reason::Moved),
        }
    }

    /// Runs the handler of a message whose data, if any, were stored.
    pub(crate) fn run_bulk(
        &mut self,
        number: u8,
        call: &mut Call<'_>,
        place: Place,
        arguments: &[u32],
    ) -> Result<Outcome, Reason> {
        let range = place.offset..place.offset.saturating_add(place.length_bytes);
        match self.handler(number) {
            Some(Handler::Bulk(handler)) => Ok(handler(call, range, arguments)),
            Some(Handler::Any(handler)) => Ok(handler(call, Incoming::Bulk(range), arguments)),
            _ => Err(Reason::BadHandler),
        }
    }
}

/// An endpoint.
pub(crate) struct EndpointState {
    pub(crate) port: Port,
    pub(crate) receiving: Receiving,
    pub(crate) translations: Translations,
    pub(crate) bundle: u32,
    pub(crate) tag: Tag,
    pub(crate) introduction: Introduction,
    /// Requests that have no answer yet.
    pub(crate) outstanding: u32,
    pub(crate) is_resident: bool,
    pub(crate) stay: Stay,
    /// Links that knocked while it was not resident, and are told when it is.
    pub(crate) knockers: Vec<LinkId>,
}

/// Endpoints of a node.
pub(crate) const ENDPOINTS_MAX: usize = (1 << 15) - 1;

/// The endpoints of a node, by number.
pub(crate) struct Endpoints {
    /// The first use of a number, another one in each node: so an endpoint of one is none of
    /// another.
    first_use: u32,
    places: Vec<(u32, Option<Box<EndpointState>>)>,
    free: Vec<u16>,
}

impl Endpoints {
    pub(crate) fn new() -> Self {
        static NODES: AtomicU32 = AtomicU32::new(0);
        // Far apart.
        let first_use = NODES.fetch_add(0x9e37_79b1, Ordering::Relaxed);
        Self {
            first_use,
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    /// The number that the next endpoint gets; nothing if there are as many as there may be.
    pub(crate) fn next(&self) -> Option<EndpointId> {
        match self.free.last() {
            Some(&index) => {
                let uses = self.places.get(usize::from(index))?.0;
                Some(EndpointId { index, uses })
            }
            None if self.places.len() < ENDPOINTS_MAX => Some(EndpointId {
                index: self.places.len() as u16,
                uses: self.first_use,
            }),
            None => None,
        }
    }

    /// Inserts an endpoint under the next number.
    pub(crate) fn insert(&mut self, endpoint: EndpointState) {
        match self.free.pop() {
            Some(index) => self.places[usize::from(index)].1 = Some(Box::new(endpoint)),
            None => self.places.push((self.first_use, Some(Box::new(endpoint)))),
        }
    }

    #[inline]
    pub(crate) fn get(&mut self, id: EndpointId) -> Option<&mut EndpointState> {
        let (uses, endpoint) = self.places.get_mut(usize::from(id.index))?;
        match *uses == id.uses {
            true => endpoint.as_deref_mut(),
            false => None,
        }
    }

    /// The meaning of the translation over which a request went, to look at.
    pub(crate) fn mapped_by(&self, record: &Record) -> Option<&Mapped> {
        let EndpointId { index, uses } = record.endpoint;
        let (now, endpoint) = self.places.get(usize::from(index))?;
        let endpoint = endpoint.as_ref().filter(|_| *now == uses)?;
        endpoint.translations.numbered_ref(record.translation)
    }

    /// The meaning of a translation of an endpoint.
    pub(crate) fn mapped(&mut self, over: &Translation) -> Result<&mut Mapped, Error> {
        let endpoint = self.get(over.endpoint);
        let mapped = endpoint.and_then(|endpoint| endpoint.translations.get(over));
        let number = over.number;
        mapped.ok_or(Error::NotMapped { number })
    }

    /// The endpoint of that number.
    #[inline]
    pub(crate) fn at(&mut self, index: u16) -> Option<&mut EndpointState> {
        self.places.get_mut(usize::from(index))?.1.as_deref_mut()
    }

    pub(crate) fn remove(&mut self, id: EndpointId) -> Option<Box<EndpointState>> {
        self.get(id)?;
        let place = self.places.get_mut(usize::from(id.index))?;
        place.0 = place.0.wrapping_add(1);
        self.free.push(id.index);
        place.1.take()
    }
}

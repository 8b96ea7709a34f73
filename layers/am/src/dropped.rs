//! Objects that were dropped while a handler ran, or without the node in hand: the next poll cleans
//! up after them.

use std::cell::{Cell, RefCell};

use hamlyn::engine::memory::LinkId;
use hamlyn::region::Attached;

use crate::peer::EndpointId;
use crate::wire::Stamp;

#[derive(Debug, Default)]
pub(crate) struct Dropped {
    is_any: Cell<bool>,
    endpoints: RefCell<Vec<EndpointId>>,
    requests: RefCell<Vec<(LinkId, Stamp)>>,
    bundles: RefCell<Vec<u32>>,
    regions: RefCell<Vec<Attached>>,
}

impl Dropped {
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.is_any.get()
    }

    /// An endpoint was dropped.
    pub(crate) fn endpoint(&self, endpoint: EndpointId) {
        self.endpoints.borrow_mut().push(endpoint);
        self.is_any.set(true);
    }

    /// A bundle was dropped.
    pub(crate) fn bundle(&self, number: u32) {
        self.bundles.borrow_mut().push(number);
        self.is_any.set(true);
    }

    /// Memory of a peer is not written any more.
    pub(crate) fn region(&self, region: Attached) {
        self.regions.borrow_mut().push(region);
        self.is_any.set(true);
    }

    /// The regions to let go of.
    pub(crate) fn take_regions(&self) -> Vec<Attached> {
        self.regions.take()
    }

    /// A reply that was deferred will never be sent.
    pub(crate) fn request(&self, link: LinkId, stamp: Stamp) {
        self.requests.borrow_mut().push((link, stamp));
        self.is_any.set(true);
    }

    /// All of them but regions.
    pub(crate) fn take(&self) -> (Vec<EndpointId>, Vec<(LinkId, Stamp)>, Vec<u32>) {
        self.is_any.set(false);
        let (endpoints, requests) = (self.endpoints.take(), self.requests.take());
        (endpoints, requests, self.bundles.take())
    }
}

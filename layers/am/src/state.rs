//! The state of a node that messages change, and the ends of requests.

use std::collections::VecDeque;
use std::mem::take;

use hamlyn::engine::memory::LinkId;

use crate::error::Reason;
use crate::peer::{Answered, Ended, EndpointId, Peer, Peers, RecordState};
use crate::port::Endpoints;
use crate::returned::{Operation, ToReturn};
use crate::traffic::Traffic;
use crate::transfer::{Stage, Transfers};
use crate::wire::{Category, Head, Kept, Stamp};

/// Bundles of a node.
pub(crate) const BUNDLES_MAX: usize = 1 << 15;

/// A reply that was taken while another bundle was polled.
pub(crate) struct Stashed {
    pub(crate) link: LinkId,
    pub(crate) stamp: Stamp,
    pub(crate) head: Head,
    pub(crate) bytes: Vec<u8>,
}

/// A bundle.
#[derive(Default)]
pub(crate) struct BundleState {
    /// The application has it. Its number is free when nobody does and no endpoint is in it.
    pub(crate) is_held: bool,
    /// The numbers of its endpoints.
    pub(crate) endpoints: Vec<u16>,
    /// At most one for each request that its endpoints have outstanding.
    pub(crate) stashed: VecDeque<Stashed>,
    /// At most one for each credit of its endpoints, and for each transfer and reply.
    pub(crate) to_return: VecDeque<ToReturn>,
}

/// The state of a node.
pub(crate) struct State {
    pub(crate) endpoints: Endpoints,
    pub(crate) bundles: Vec<BundleState>,
    pub(crate) peers: Peers,
    pub(crate) traffic: Traffic,
    pub(crate) transfers: Transfers,
    /// Endpoints that have a request of a transfer to send, and no frame.
    pub(crate) wants_frame: Vec<EndpointId>,
    /// Segments that endpoints had until now.
    pub(crate) segments: u64,
}

impl State {
    pub(crate) fn new(host: u32, traffic: Traffic) -> Self {
        Self {
            endpoints: Endpoints::new(),
            bundles: Vec::new(),
            peers: Peers::new(host, std::rc::Rc::clone(&traffic.spares)),
            traffic,
            transfers: Transfers::default(),
            wants_frame: Vec::new(),
            segments: 0,
        }
    }

    pub(crate) fn bundle(&mut self, number: u32) -> Option<&mut BundleState> {
        self.bundles.get_mut(number as usize)
    }

    /// Takes an endpoint out of a bundle, and what waits there for it: replies, and messages that
    /// come back.
    pub(crate) fn leave_bundle(
        &mut self,
        id: EndpointId,
        number: u32,
    ) -> (VecDeque<Stashed>, VecDeque<ToReturn>) {
        let Some(bundle) = self.bundles.get_mut(number as usize) else {
            return Default::default();
        };
        bundle.endpoints.retain(|&index| index != id.index);
        let peers = &mut self.peers;
        let is_its = |stashed: &Stashed| {
            let record = peers.record(stashed.link, stashed.stamp);
            record.is_some_and(|record| record.endpoint == id)
        };
        let stashed = take(&mut bundle.stashed).into_iter().partition(is_its);
        let to_return = take(&mut bundle.to_return).into_iter();
        let to_return = to_return.partition(|message| message.endpoint == id);
        let (stashed, to_return): ((VecDeque<_>, _), (VecDeque<_>, _)) = (stashed, to_return);
        (bundle.stashed, bundle.to_return) = (stashed.1, to_return.1);
        (stashed.0, to_return.0)
    }

    /// True if something waits to be sent, or to be given to handlers of that bundle.
    #[inline]
    pub(crate) fn has_to_do(&self, bundle: u32) -> bool {
        let bundle = self.bundles.get(bundle as usize);
        let is_waiting =
            |bundle: &BundleState| !bundle.stashed.is_empty() || !bundle.to_return.is_empty();
        !self.traffic.retries.is_empty()
            || !self.traffic.hints.is_empty()
            || !self.traffic.asked.is_empty()
            || self.transfers.is_any()
            || bundle.is_some_and(is_waiting)
    }

    /// A request was answered: its record and its credit are free.
    pub(crate) fn answered(&mut self, link: LinkId, stamp: Stamp) {
        let records = self.peers.get(link).map(Peer::records);
        if let Some(answered) = records.and_then(|records| records.answered(stamp)) {
            self.has_answer(&answered);
        }
    }

    /// A request was answered whose record is free.
    #[inline]
    pub(crate) fn has_answer(&mut self, answered: &Answered) {
        if let Some(transfer) = answered.transfer {
            self.transfer_answered(transfer, None);
        }
        self.give_back(answered.endpoint, answered.translation, true);
    }

    /// Answers a request by an empty reply.
    pub(crate) fn answer_empty(&mut self, link: LinkId, stamp: Stamp) {
        if let Some(peer) = self.peers.get(link) {
            self.traffic.answer_empty(peer, stamp);
        }
    }

    /// A request of a transfer was answered, or came back for that reason.
    pub(crate) fn transfer_answered(&mut self, number: u32, failed: Option<Reason>) {
        let Some(transfer) = self.transfers.get(number) else {
            return;
        };
        if let (Stage::Last, Some(writing)) = (&transfer.stage, &transfer.writing)
            && let Some(peer) = self.peers.get(writing.link())
        {
            writing.was_followed(&mut peer.delivery);
        }
        // The segment is not what it was, or the handler.
        if failed.is_some()
            && let Stage::Last = transfer.stage
            && let Ok(mapped) = self.endpoints.mapped(&transfer.translation)
        {
            mapped.remote = None;
        }
        transfer.request_ended(failed);
    }

    /// A request of that endpoint has ended: gives back its credit.
    #[inline]
    pub(crate) fn give_back(&mut self, id: EndpointId, translation: u32, answered: bool) {
        let Some(endpoint) = self.endpoints.get(id) else {
            return;
        };
        endpoint.outstanding = endpoint.outstanding.saturating_sub(1);
        endpoint.translations.give_back(translation, answered);
    }

    /// A request comes back: its record is free, and its credit when it has been returned.
    pub(crate) fn came_back(&mut self, link: LinkId, stamp: Stamp, reason: Reason) {
        let peer = self.peers.get(link);
        if let Some(ended) = peer.and_then(|peer| peer.records().end(stamp)) {
            self.failed(ended, reason);
        }
    }

    /// Returns a request whose record is free.
    pub(crate) fn failed(&mut self, ended: Ended, reason: Reason) {
        let Ended {
            state,
            message,
            endpoint: id,
            translation,
            transfer,
        } = ended;
        if let Some(transfer) = transfer {
            self.transfer_answered(transfer, Some(reason));
        }
        if state == RecordState::Rejecting {
            // It was answered, and its credit is free.
            return;
        }
        if transfer.is_some() {
            return self.give_back(id, translation, false);
        }
        let Some(endpoint) = self.endpoints.get(id) else {
            return;
        };
        endpoint.outstanding = endpoint.outstanding.saturating_sub(1);
        let operation = match message.head().map(|head| head.category()) {
            Some(Category::Medium) => Operation::RequestMedium,
            Some(Category::Bulk) => Operation::Transfer,
            _ => Operation::Request,
        };
        self.return_to_sender(ToReturn {
            operation,
            reason,
            endpoint: id,
            translation: Some(translation),
            message,
            data: None,
            has_credit: true,
        });
    }

    /// A message is returned when the bundle of its endpoint is polled; never, if that is gone.
    pub(crate) fn return_to_sender(&mut self, message: ToReturn) {
        match message.operation {
            Operation::Reply => self.traffic.statistics.replies_rejected += 1,
            _ => self.traffic.statistics.returned += 1,
        }
        let Some(endpoint) = self.endpoints.get(message.endpoint) else {
            return;
        };
        let bundle = endpoint.bundle;
        if let Some(bundle) = self.bundle(bundle) {
            bundle.to_return.push_back(message);
        }
    }

    /// The reply to a request was rejected: it comes back to its sender, and the requester gets a
    /// credit in its stead.
    pub(crate) fn reply_came_back(&mut self, link: LinkId, stamp: Stamp, reason: Reason) {
        let Some(served) = self.peers.request(link, stamp) else {
            return;
        };
        let endpoint = served.endpoint;
        let message = std::mem::replace(&mut served.answer, Kept::new());
        self.answer_empty(link, stamp);
        let is_reply = message.head().is_some_and(|head| {
            matches!(
                head.category(),
                Category::Short | Category::Medium | Category::Bulk
            )
        });
        if is_reply {
            self.return_to_sender(ToReturn {
                operation: Operation::Reply,
                reason,
                endpoint,
                translation: None,
                message,
                data: None,
                has_credit: false,
            });
        }
    }
}

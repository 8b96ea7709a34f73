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

/// Looks that took all they may, after which messages are returned all the same: queues hold less.
const FULL_LOOKS_MAX: u32 = 1 << 12;

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
    /// At most one for each credit of its endpoints, and for each transfer and reply; so is the next.
    pub(crate) to_return: VecDeque<ToReturn>,
    /// Those whose receiver is gone, which may have sent something before that is not taken yet.
    to_return_last: VecDeque<ToReturn>,
    /// Those of them that were there before the last look that took all.
    settled: usize,
    /// Looks in a row that took all they may.
    full_looks: u32,
}

impl BundleState {
    /// True if something waits for handlers.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        !self.stashed.is_empty() || self.returns()
    }

    /// True if messages wait to be returned.
    fn returns(&self) -> bool {
        !self.to_return.is_empty() || !self.to_return_last.is_empty()
    }

    pub(crate) fn push_return(&mut self, message: ToReturn) {
        match message.reason {
            Reason::Unreachable => self.to_return_last.push_back(message),
            _ => self.to_return.push_back(message),
        }
    }

    /// After a look: what is there since the look before, or longer, is to be returned. There may
    /// be more messages than a full look took.
    pub(crate) fn release_last(&mut self, is_full: bool) {
        if is_full && self.full_looks < FULL_LOOKS_MAX {
            self.full_looks += 1;
            return;
        }
        self.full_looks = 0;
        self.to_return
            .extend(self.to_return_last.drain(..self.settled));
        self.settled = self.to_return_last.len();
    }

    /// Takes out what waits for that endpoint to be returned.
    fn take_returns(&mut self, id: EndpointId) -> VecDeque<ToReturn> {
        let mut all = VecDeque::new();
        for queue in [&mut self.to_return, &mut self.to_return_last] {
            let (its, others) = take(queue)
                .into_iter()
                .partition::<VecDeque<_>, _>(|message| message.endpoint == id);
            *queue = others;
            all.extend(its);
        }
        self.settled = 0;
        all
    }
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
        let (its, others): (VecDeque<_>, _) = stashed;
        bundle.stashed = others;
        (its, bundle.take_returns(id))
    }

    /// True if something waits to be sent, or to be given to handlers of that bundle.
    #[inline]
    pub(crate) fn has_to_do(&self, bundle: u32) -> bool {
        let bundle = self.bundles.get(bundle as usize);
        !self.traffic.retries.is_empty()
            || !self.traffic.hints.is_empty()
            || !self.traffic.asked.is_empty()
            || self.transfers.is_any()
            || bundle.is_some_and(BundleState::is_waiting)
    }

    /// True if messages wait to be returned there.
    pub(crate) fn returns_to(&self, bundle: u32) -> bool {
        let bundle = self.bundles.get(bundle as usize);
        bundle.is_some_and(BundleState::returns)
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
            bundle.push_return(message);
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

//! State that messages of all endpoints share: messages to be sent again, what else is due, and
//! counts.

use std::collections::VecDeque;
use std::rc::Rc;

use hamlyn::engine::memory::LinkId;

use crate::dropped::Dropped;
use crate::error::{CallError, Reason};
use crate::options::NodeOptions;
use crate::peer::{EndpointId, Pauses, Peer, Record, RecordState, ServedState};
use crate::spares::Spares;
use crate::statistics::Statistics;
use crate::wire::{OVERHEAD_BYTES, RECORDS, Stamp};
use crate::writing::Writing;

/// A message to be sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Again {
    /// A request that was refused.
    Request(Stamp),
    /// An answer that was refused, found no room, or no target yet.
    Answer(Stamp),
    /// The rejection of a reply.
    Reject(Stamp),
    /// Empty replies.
    Credits,
}

/// A message that is to be sent again then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retry {
    pub(crate) link: LinkId,
    pub(crate) what: Again,
    pub(crate) due_ns: u64,
}

/// A question of a peer for a segment, or for data of it.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) link: LinkId,
    pub(crate) stamp: Stamp,
    pub(crate) endpoint: EndpointId,
    /// Data that are on their way, from an offset of the segment of that number.
    pub(crate) data: Option<(Writing, u64, u64)>,
}

pub(crate) struct Traffic {
    pub(crate) options: NodeOptions,
    /// At most one for each record and request of each link, and one for its credits.
    pub(crate) retries: VecDeque<Retry>,
    /// Links that are owed credits.
    pub(crate) owing: Vec<LinkId>,
    /// Links that may be told of ports with room.
    pub(crate) hints: Vec<LinkId>,
    /// Links with messages that no fence follows.
    pub(crate) unfenced: Vec<LinkId>,
    /// Links of which a fence is to tell how much data was taken.
    pub(crate) awaited: Vec<LinkId>,
    /// Questions for segments and for data of them: of each link as many as it has records.
    pub(crate) asked: Vec<Asked>,
    /// Answers that came back, and are to be returned to their endpoints.
    pub(crate) rejected: Vec<(LinkId, Stamp, Reason)>,
    /// Bytes of the message under a handler, if they must not change.
    pub(crate) scratch: Vec<u8>,
    /// The request whose handler runs, and the reply.
    pub(crate) running: Option<(LinkId, Stamp)>,
    pub(crate) running_reply: Option<(LinkId, Stamp)>,
    /// The first error of a handler in this poll.
    pub(crate) failure: Option<CallError>,
    pub(crate) dropped: Rc<Dropped>,
    pub(crate) spares: Rc<Spares>,
    pub(crate) statistics: Statistics,
}

impl Traffic {
    pub(crate) fn new(options: NodeOptions, dropped: Rc<Dropped>) -> Self {
        let most_bytes = options.medium_bytes_max as usize + OVERHEAD_BYTES;
        Self {
            spares: Rc::new(Spares::new(RECORDS * most_bytes)),
            options,
            retries: VecDeque::new(),
            owing: Vec::new(),
            hints: Vec::new(),
            unfenced: Vec::new(),
            awaited: Vec::new(),
            asked: Vec::new(),
            rejected: Vec::new(),
            scratch: Vec::new(),
            running: None,
            running_reply: None,
            failure: None,
            dropped,
            statistics: Statistics::default(),
        }
    }

    /// Nanoseconds for which a message may be refused.
    pub(crate) fn congestion_ns(&self) -> u64 {
        u64::try_from(self.options.congestion.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Answers a request by an empty reply, which is told with the next credits.
    #[inline(always)]
    pub(crate) fn answer_empty(&mut self, peer: &mut Peer, stamp: Stamp) {
        if peer.served().answer_empty(stamp) {
            self.owing.push(peer.link);
        }
        self.statistics.empty_replies += 1;
    }

    /// Something was sent that the peer may refuse: a fence follows before any sleep.
    #[inline]
    pub(crate) fn fence_after(&mut self, peer: &mut Peer) {
        if !peer.is_unfenced {
            peer.is_unfenced = true;
            self.unfenced.push(peer.link);
        }
    }

    /// A fence of the link is begun, if one is to tell of data and none is under way.
    pub(crate) fn fence_if_wanted(&mut self, peer: &Peer) {
        if peer.delivery.is_wanted
            && !peer.delivery.is_asked()
            && !self.awaited.contains(&peer.link)
        {
            self.awaited.push(peer.link);
        }
    }

    /// Sends something again then.
    pub(crate) fn again(&mut self, link: LinkId, what: Again, due_ns: u64) {
        // A receiver may invent refusals of these as often as it likes.
        let is_same = |retry: &Retry| retry.link == link && retry.what == what;
        if matches!(what, Again::Credits | Again::Reject(_)) && self.retries.iter().any(is_same) {
            return;
        }
        self.retries.push_back(Retry { link, what, due_ns });
    }

    /// Requests to ports that have room now are sent again at once, also those of whose refusal was
    /// not heard yet.
    pub(crate) fn hurry(&mut self, peer: &mut Peer, has_room: impl Fn(&Record) -> bool) {
        let link = peer.link;
        let Some(records) = &mut peer.records else {
            return;
        };
        for record in records.iter_mut() {
            if has_room(record) {
                record.refusals.hint();
            }
        }
        for retry in &mut self.retries {
            if let Again::Request(stamp) = retry.what
                && retry.link == link
                && let Some(record) = records.get(stamp)
                && record.refusals.is_hinted()
            {
                retry.due_ns = 0;
            }
        }
    }

    /// An answer was refused for want of room, or could not be sent: when it is sent again. If it
    /// was for too long, it is rejected.
    pub(crate) fn answer_later(&mut self, peer: &mut Peer, stamp: Stamp, now_ns: u64) {
        let most_ns = self.congestion_ns();
        let Some(served) = peer.request(stamp) else {
            return;
        };
        served.state = ServedState::Unsent;
        match served.refusals.refused(now_ns, most_ns) {
            Some(due_ns) => self.again(peer.link, Again::Answer(stamp), due_ns),
            None => self.rejected.push((peer.link, stamp, Reason::Congestion)),
        }
    }

    /// The reply to a request is rejected: its record is free when the replier knows.
    pub(crate) fn reject(&mut self, peer: &mut Peer, stamp: Stamp, reason: Reason) {
        let Some(record) = peer.record(stamp) else {
            return;
        };
        record.state = RecordState::Rejecting;
        record.reason = reason.code();
        record.refusals = Pauses::default();
        self.again(peer.link, Again::Reject(stamp), 0);
    }

    /// True if a handler did not come to its end: it has panicked.
    #[inline]
    pub(crate) fn was_interrupted(&self) -> bool {
        self.running.is_some() || self.running_reply.is_some()
    }

    pub(crate) fn note_failure(&mut self, failed: CallError) {
        self.failure.get_or_insert(failed);
    }
}

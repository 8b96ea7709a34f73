//! Requests leave: from their records, which keep them until they are answered.

use hamlyn::engine::memory::LinkId;
use hamlyn::{Host, LinkEnd, PeerLost, SendError, Session, Target};

use crate::error::{Blocked, Error, Reason};
use crate::peer::RecordState;
use crate::state::State;
use crate::traffic::Again;
use crate::translation::Translation;
use crate::wire::{ARGUMENTS_MAX, Category, Head, OVERHEAD_BYTES, Place, Stamp};

/// A request to be sent.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) category: Category,
    pub(crate) handler: u8,
    pub(crate) arguments: &'a [u32],
    pub(crate) place: Place,
    pub(crate) data: &'a [u8],
    /// The transfer that it is of.
    pub(crate) transfer: Option<u32>,
}

impl<'a> Request<'a> {
    pub(crate) fn short(handler: u8, arguments: &'a [u32]) -> Self {
        Self {
            category: Category::Short,
            handler,
            arguments,
            place: Place::default(),
            data: &[],
            transfer: None,
        }
    }
}

/// Checks the part of a request that its length and its translation do not concern.
#[inline]
pub(crate) fn check(handler: u8, arguments: &[u32]) -> Result<(), Error> {
    if handler == 0 {
        return Err(Error::ReservedHandler);
    }
    match arguments.len() {
        0..=ARGUMENTS_MAX => Ok(()),
        count => Err(Error::TooManyArguments { count }),
    }
}

/// Result of an attempt: sent, or blocked by something.
pub(crate) type Attempt = Result<Result<(), Blocked>, Error>;

impl State {
    /// Sends a request, if nothing stands in its way.
    #[inline]
    pub(crate) fn try_request<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        over: &Translation,
        request: &Request<'_>,
    ) -> Attempt {
        check(request.handler, request.arguments)?;
        let number = over.number;
        let Some(endpoint) = self.endpoints.get(over.endpoint) else {
            return Err(Error::NotMapped { number });
        };
        let Some(mapped) = endpoint.translations.get(over) else {
            return Err(Error::NotMapped { number });
        };
        if mapped.outstanding >= self.traffic.options.credits {
            return Ok(Err(Blocked::Credit));
        }
        if !endpoint.is_resident {
            return Ok(Err(Blocked::Frame));
        }
        let Some(peer) = self.peers.enter(mapped.link) else {
            return Err(lost(session, mapped.target(false)).into());
        };
        let Some((stamp, record)) = peer.records().next_free() else {
            return Ok(Err(Blocked::Record));
        };
        let head = Head::new(request.category, request.handler).of_endpoint(over.endpoint.index);
        if mapped.is_introduced && request.category == Category::Short {
            record.message.write_short(head, request.arguments);
        } else {
            let introduction = endpoint.introduction.to_bytes();
            let introduction = (!mapped.is_introduced).then_some(&introduction);
            record.message.write(
                head,
                request.arguments,
                request.place,
                request.data,
                introduction,
                &self.traffic.spares,
            );
        }
        let target = mapped.target(mapped.is_any);
        let terminus = session.terminus();
        let bytes = record.message.bytes();
        match session.try_send_message(terminus, target, stamp.bits(), bytes) {
            Ok(Some(_)) => {}
            Ok(None) => {
                record.message.clear(&self.traffic.spares);
                return Ok(Err(Blocked::Room));
            }
            Err(error) => {
                record.message.clear(&self.traffic.spares);
                return Err(match error {
                    SendError::PeerLost(lost) => lost.into(),
                    other => other.into(),
                });
            }
        }
        record.endpoint = over.endpoint;
        record.translation = number;
        record.is_any = mapped.is_any;
        record.transfer = request.transfer;
        peer.records().take(stamp);
        mapped.outstanding += 1;
        endpoint.outstanding += 1;
        self.traffic.statistics.requests_sent += 1;
        self.traffic.fence_after(peer);
        Ok(Ok(()))
    }

    /// True if a request over that translation would have a credit and a record.
    pub(crate) fn can_send(&mut self, over: &Translation) -> Result<bool, Error> {
        let mapped = self.endpoints.mapped(over)?;
        let has_credit = mapped.outstanding < self.traffic.options.credits;
        // Over a link that has ended nothing is waited for: the send says so.
        let peer = self.peers.enter(mapped.link);
        let has_record = peer.is_none_or(|peer| peer.records().next_free().is_some());
        Ok(has_credit && has_record)
    }

    /// Bytes of data of the longest medium message over that translation.
    pub(crate) fn medium_bytes_max<H: Host>(
        &mut self,
        session: &Session<'_, H>,
        over: &Translation,
    ) -> Result<usize, Error> {
        let link = self.endpoints.mapped(over)?.link;
        let most = self.traffic.options.medium_bytes_max as usize;
        // A link that has ended takes nothing, as the send says.
        let packet = session.packet_bytes_max(link).unwrap_or(usize::MAX);
        Ok(most.min(packet.saturating_sub(OVERHEAD_BYTES)))
    }

    /// A request was refused with a key: tries the other one, once. False if both were.
    pub(crate) fn try_other_key<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        link: LinkId,
        stamp: Stamp,
    ) -> bool {
        let Some(record) = self.peers.record(link, stamp) else {
            return true;
        };
        let was_any = record.is_any;
        record.is_refused_with[usize::from(was_any)] = true;
        let (id, translation) = (record.endpoint, record.translation);
        let is_other_refused = record.is_refused_with[usize::from(!was_any)];
        let endpoint = self.endpoints.get(id);
        let mapped = endpoint.and_then(|endpoint| endpoint.translations.numbered(translation));
        let Some(mapped) = mapped else {
            return false;
        };
        if is_other_refused {
            return false;
        }
        mapped.is_any = !was_any;
        self.send_again(session, link, stamp);
        true
    }

    /// Sends a request again that was refused.
    pub(crate) fn send_again<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        link: LinkId,
        stamp: Stamp,
    ) {
        let Self {
            endpoints,
            peers,
            traffic,
            ..
        } = self;
        let Some(peer) = peers.get(link) else {
            return;
        };
        let Some(record) = peer.record(stamp) else {
            return;
        };
        let Some(endpoint) = endpoints.get(record.endpoint) else {
            // Nobody wants to know: it ends here.
            return self.came_back(link, stamp, Reason::BadEndpoint);
        };
        let Some(mapped) = endpoint.translations.numbered(record.translation) else {
            return;
        };
        let terminus = session.terminus();
        let (target, bytes) = (mapped.target(mapped.is_any), record.message.bytes());
        match session.try_send_message(terminus, target, stamp.bits(), bytes) {
            Ok(Some(_)) => {
                record.state = RecordState::Outstanding;
                record.is_any = mapped.is_any;
                let is_hinted = record.refusals.take_hint();
                traffic.statistics.sent_again += 1;
                traffic.statistics.sent_on_hint += u64::from(is_hinted);
                traffic.fence_after(peer);
            }
            Ok(None) => {
                record.state = RecordState::Refused;
                traffic.again(link, Again::Request(stamp), 0);
            }
            Err(SendError::PeerLost(_)) => self.came_back(link, stamp, Reason::Unreachable),
            Err(_) => self.came_back(link, stamp, Reason::BadLength),
        }
    }

    /// A request found no room: it is sent again, or comes back if it was refused for too long.
    pub(crate) fn send_later(
        &mut self,
        now_ns: u64,
        link: LinkId,
        stamp: Stamp,
        is_resident: bool,
    ) {
        let most_ns = self.traffic.congestion_ns();
        let Some(record) = self.peers.record(link, stamp) else {
            return;
        };
        record.state = RecordState::Refused;
        // Whoever never had an answer is not known there, and cannot be told.
        let mapped = self.endpoints.mapped_by(record);
        let is_known = mapped.is_some_and(|mapped| mapped.is_introduced);
        let due_ns = match !is_resident && is_known {
            true => record.refusals.not_resident(now_ns, most_ns),
            false => record.refusals.refused(now_ns, most_ns),
        };
        match due_ns {
            Some(due_ns) => self.traffic.again(link, Again::Request(stamp), due_ns),
            None => self.came_back(link, stamp, Reason::Congestion),
        }
    }
}

/// The end of a link whose place another one has.
fn lost<H: Host>(session: &Session<'_, H>, target: &Target) -> PeerLost {
    let end = session.link_end(target.link());
    PeerLost {
        peer: target.ticket().destination,
        end: end.unwrap_or(LinkEnd::ClosedHere),
    }
}

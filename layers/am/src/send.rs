//! Requests leave: from their records, which keep them until they are answered.

use hamlyn::engine::memory::LinkId;
use hamlyn::{Host, LinkEnd, PeerLost, SendError, Session, Target};

use crate::error::{Blocked, Error, Reason};
use crate::peer::RecordState;
use crate::returned::{Operation, ToReturn};
use crate::state::State;
use crate::traffic::Again;
use crate::transfer::Transfer;
use crate::translation::Translation;
use crate::wire::{ARGUMENTS_MAX, Arguments, Category, Head, Kept, OVERHEAD_BYTES, Place, Stamp};

/// A request to be sent.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) category: Category,
    pub(crate) handler: u8,
    pub(crate) arguments: &'a [u32],
    pub(crate) place: Place,
    pub(crate) data: &'a [u8],
    /// The transfer of which it is a part.
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
        let Some(peer) = self.traffic.peers.enter(mapped.link) else {
            return Err(lost(session, mapped.target(false)).into());
        };
        let Some((stamp, record)) = peer.records().next_free() else {
            return Ok(Err(Blocked::Record));
        };
        let mut head = Head::new(request.category, request.handler);
        head.source = over.endpoint.index;
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
            );
        }
        let target = mapped.target(mapped.is_any);
        let terminus = session.terminus();
        let bytes = record.message.bytes();
        match session.try_send_message(terminus, target, stamp.bits(), bytes) {
            Ok(Some(_)) => {}
            Ok(None) => {
                record.message.clear(false);
                return Ok(Err(Blocked::Room));
            }
            Err(error) => {
                record.message.clear(false);
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
        peer.fence_after(&mut self.traffic.unfenced);
        Ok(Ok(()))
    }

    /// True if a request over that translation would have a credit and a record.
    pub(crate) fn can_send(&mut self, over: &Translation) -> Result<bool, Error> {
        let mapped = self.endpoints.mapped(over)?;
        let has_credit = mapped.outstanding < self.traffic.options.credits;
        // Over a link that has ended nothing is waited for: the send says so.
        let peer = self.traffic.peers.enter(mapped.link);
        let has_record = peer.is_none_or(|peer| peer.records().next_free().is_some());
        Ok(has_credit && has_record)
    }

    /// Bytes of a part of a transfer over that translation.
    pub(crate) fn part_bytes_max<H: Host>(
        &mut self,
        session: &Session<'_, H>,
        over: &Translation,
    ) -> Result<usize, Error> {
        let most = self.traffic.options.part_bytes_max as usize;
        Ok(self.medium_bytes_max(session, over)?.min(most))
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

    /// Sends what can be sent of all transfers, and ends those that are over.
    pub(crate) fn advance_transfers<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
    ) -> Result<(), Error> {
        for number in self.transfers.numbers() {
            while self.advance_transfer(session, number)? {}
            let Some(transfer) = self.transfers.get(number) else {
                continue;
            };
            if transfer.is_over() {
                self.end_transfer(number);
            }
        }
        Ok(())
    }

    /// Sends the next message of a transfer. False if there is none at present.
    fn advance_transfer<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        number: u32,
    ) -> Result<bool, Error> {
        let Some(transfer) = self.transfers.get(number) else {
            return Ok(false);
        };
        let over = transfer.translation;
        let next = transfer.next_part();
        let is_last = next.is_none();
        let (at, length) = match next {
            Some(part) => part,
            // The message that runs the handler. Of a get it is run here, by the poll.
            None if transfer.is_whole() && !transfer.is_get && !transfer.is_last_sent => (0, 0),
            None => return Ok(false),
        };
        let data = std::mem::take(&mut transfer.data);
        let part = match transfer.is_get || is_last {
            true => &[][..],
            false => &data[at as usize..(at + length) as usize],
        };
        let category = match (transfer.is_get, is_last) {
            (true, _) => Category::Get,
            (false, false) => Category::Part,
            (false, true) => Category::Bulk,
        };
        let arguments = match category {
            Category::Bulk => transfer.arguments,
            // So that each part is refused for the reason for which the whole is.
            _ => part_of(at, transfer.length_bytes),
        };
        let (begin, length_bytes) = match (transfer.is_get, is_last) {
            (true, _) => (transfer.from, length),
            (false, false) => (transfer.to, length),
            (false, true) => (transfer.to, transfer.length_bytes),
        };
        let request = Request {
            category,
            handler: transfer.handler,
            arguments: arguments.as_slice(),
            place: Place {
                offset: begin.saturating_add(at),
                length_bytes,
            },
            data: part,
            transfer: Some(number),
        };
        let sent = self.try_request(session, &over, &request);
        let Some(transfer) = self.transfers.get(number) else {
            return Ok(false);
        };
        transfer.data = data;
        match sent {
            Ok(Ok(())) => {
                if category != Category::Bulk {
                    transfer.part_sent(length);
                }
                transfer.in_flight += 1;
                transfer.is_last_sent = is_last || transfer.length_bytes == 0;
                Ok(true)
            }
            Ok(Err(blocked)) => {
                if blocked == Blocked::Frame {
                    self.wants_frame.push(over.endpoint);
                }
                Ok(false)
            }
            // Whatever was sent of it ends by itself.
            Err(Error::PeerLost(_) | Error::NotMapped { .. }) => {
                transfer.failed.get_or_insert(Reason::Unreachable);
                Ok(false)
            }
            Err(Error::Send(_)) => {
                transfer.failed.get_or_insert(Reason::BadLength);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Ends a transfer that is over, and returns it if it has failed.
    fn end_transfer(&mut self, number: u32) {
        let Some(transfer) = self.transfers.remove(number) else {
            return;
        };
        if let Some(reason) = transfer.failed {
            self.return_transfer(*transfer, reason);
        }
    }

    /// Returns a transfer that was removed.
    pub(crate) fn return_transfer(&mut self, transfer: Transfer, reason: Reason) {
        self.return_to_sender(returned(transfer, reason));
    }

    /// A request was refused with a key: tries the other one, once. False if both were.
    pub(crate) fn try_other_key<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        link: LinkId,
        stamp: Stamp,
    ) -> bool {
        let Some(record) = self.traffic.peers.record(link, stamp) else {
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
            endpoints, traffic, ..
        } = self;
        let Some(record) = traffic.peers.record(link, stamp) else {
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
                traffic.fence_after(link);
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
        let Some(record) = self.traffic.peers.record(link, stamp) else {
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

/// The arguments of a part that begins so far in a transfer.
fn part_of(at: u64, length_bytes: u64) -> Arguments {
    let halves = [at, length_bytes].map(|number| [number as u32, (number >> 32) as u32]);
    Arguments::new(halves.as_flattened())
}

/// A transfer as it is returned.
fn returned(transfer: Transfer, reason: Reason) -> ToReturn {
    let (category, operation, offset) = match transfer.is_get {
        true => (Category::Get, Operation::Get, transfer.from),
        false => (Category::Bulk, Operation::Transfer, transfer.to),
    };
    let mut message = Kept::new();
    let place = Place {
        offset,
        length_bytes: transfer.length_bytes,
    };
    let head = Head::new(category, transfer.handler);
    message.write(head, transfer.arguments.as_slice(), place, &[], None);
    ToReturn {
        operation,
        reason,
        endpoint: transfer.translation.endpoint,
        translation: Some(transfer.translation.number),
        message,
        data: Some(transfer.data),
        has_credit: false,
    }
}

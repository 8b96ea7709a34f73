//! A poll attends to the rest when no message is there: refusals, losses, messages to be sent
//! again, transfers, and endpoints that want a frame.

use std::time::Duration;

use hamlyn::engine::memory::LinkId;
use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::transport::Return;
use hamlyn::error::Undelivered;
use hamlyn::ticket::TicketKind;
use hamlyn::{Event, Host, SendError, Session};

use crate::error::Reason;
use crate::peer::{Peer, RecordState, ServedState};
use crate::state::{Stashed, State};
use crate::traffic::Again;
use crate::wire::{Category, Head, Stamp};

/// Time after which what found no room in its link is tried again at the latest.
const ROOM_NS: u64 = 1_000_000;
/// Events that are heard in one go.
const EVENTS_MAX: usize = 64;

/// True if the same message may be taken later.
fn is_for_want_of_room(reason: Return) -> bool {
    matches!(
        reason,
        Return::Refused(Refusal::QueueFull | Refusal::NotResident)
    )
}

impl State {
    /// Hears of refusals and losses. True if peers may be lost, which [`State::end_lost`] sees to.
    pub(crate) fn hear_events<H: Host>(&mut self, session: &mut Session<'_, H>) -> bool {
        let mut count = 0;
        while count < EVENTS_MAX
            && let Some(event) = session.next_event()
        {
            count += 1;
            match event {
                Event::Refused(undelivered) => self.take_undelivered(session, &undelivered),
                Event::PeerLeft { .. } | Event::Missed { .. } => {
                    self.peers.may_be_lost = true;
                }
                _ => {}
            }
        }
        if count == EVENTS_MAX {
            session.look_within(Duration::ZERO);
        }
        self.peers.may_be_lost
    }

    /// Finds peers whose links have ended, and returns what was outstanding there. One whose link
    /// has something to be taken still stays until that is taken.
    pub(crate) fn end_lost<H: Host>(&mut self, session: &Session<'_, H>) {
        self.peers.may_be_lost = false;
        let links: Vec<LinkId> = self.peers.links().collect();
        for link in links {
            if session.link_end(link).is_none() {
                continue;
            }
            match session.is_drained(link) {
                true => self.end_link(link),
                false => self.peers.may_be_lost = true,
            }
        }
        while let Some(mut peer) = self.peers.gone.pop() {
            let Some(records) = &mut peer.records else {
                continue;
            };
            let stamps: Vec<Stamp> = records.stamps().collect();
            for stamp in stamps {
                if let Some(ended) = records.end(stamp) {
                    self.failed(ended, Reason::Unreachable);
                }
            }
        }
    }

    /// The link has ended. Requests whose answers wait for their bundle were answered: as long as
    /// there are any, the peer stays.
    fn end_link(&mut self, link: LinkId) {
        let Some(peer) = self.peers.get(link) else {
            return;
        };
        let records = peer.records();
        let (answered, rest): (Vec<Stamp>, Vec<Stamp>) = records.stamps().partition(|&stamp| {
            let record = records.peek(stamp);
            record.is_some_and(|record| record.state == RecordState::Answered)
        });
        if answered.is_empty() {
            return self.peers.lose(link);
        }
        self.peers.may_be_lost = true;
        for stamp in rest {
            self.came_back(link, stamp, Reason::Unreachable);
        }
    }

    /// A packet was refused, or its link ended.
    fn take_undelivered<H: Host>(&mut self, session: &mut Session<'_, H>, back: &Undelivered) {
        if matches!(back.reason, Return::Ended(_)) {
            // All of the link comes back when its peer is found lost. That peer may be here anew.
            return;
        }
        let stamp = Stamp::from_bits(back.word as u16);
        let link = back.link;
        let Some(peer) = self.peers.get(link) else {
            return;
        };
        if back.kind == TicketKind::Slot {
            for over in self.transfers.refused_by(link, back.slot.to_bits()) {
                if let Ok(mapped) = self.endpoints.mapped(&over) {
                    mapped.remote = None;
                }
            }
            return self.refused_by(link, back.slot.to_bits());
        }
        let replies = peer.replies.as_ref().map(|target| target.ticket().slot);
        let now_ns = session.host().now_ns();
        if replies == Some(back.slot) {
            return self.answer_refused(link, stamp, back.reason, now_ns);
        }
        let Some(record) = peer.records.as_mut().and_then(|records| records.get(stamp)) else {
            return;
        };
        if record.state != RecordState::Outstanding {
            return;
        }
        record.state = RecordState::Refused;
        if is_for_want_of_room(back.reason) {
            let is_resident = back.reason != Return::Refused(Refusal::NotResident);
            return self.send_later(now_ns, link, stamp, is_resident);
        }
        let reason = match back.reason {
            Return::Refused(Refusal::BadKey) => {
                if self.try_other_key(session, link, stamp) {
                    return;
                }
                Reason::BadTag
            }
            _ => Reason::BadEndpoint,
        };
        self.came_back(link, stamp, reason);
    }

    /// An answer, a rejection or credits were refused.
    fn answer_refused(&mut self, link: LinkId, stamp: Stamp, reason: Return, now_ns: u64) {
        let most_ns = self.traffic.congestion_ns();
        let Some(peer) = self.peers.get(link) else {
            return;
        };
        let is_full = is_for_want_of_room(reason);
        if stamp == Stamp::CREDITS {
            if is_full && let Some(served) = &mut peer.served {
                served.tell_credits_again();
                // However long it takes: an answer that is kept costs nothing more.
                let due_ns = served.credit_refusals.refused(now_ns, u64::MAX);
                let due_ns = due_ns.unwrap_or(now_ns);
                self.traffic.again(link, Again::Credits, due_ns);
            }
            return;
        }
        // A link has one stamp of each record both ways: that of a rejection is of our own record.
        let records = peer.records.as_mut();
        let rejecting = records.and_then(|records| records.get(stamp));
        if let Some(record) = rejecting
            && record.state == RecordState::Rejecting
        {
            match record.refusals.refused(now_ns, most_ns) {
                Some(due_ns) if is_full => self.traffic.again(link, Again::Reject(stamp), due_ns),
                // A replier does not want to know.
                _ => peer.records().free(stamp),
            }
        }
        match peer.request(stamp).map(|served| served.state) {
            Some(ServedState::Sent) if is_full => self.traffic.answer_later(peer, stamp, now_ns),
            Some(ServedState::Sent) => {
                self.reply_came_back(link, stamp, Reason::BadEndpoint);
            }
            _ => {}
        }
    }

    /// Sends what is due to be sent again. How long until the next is, if there is any.
    pub(crate) fn send_due<H: Host>(&mut self, session: &mut Session<'_, H>) -> Option<u64> {
        for (link, stamp, reason) in std::mem::take(&mut self.traffic.rejected) {
            self.reply_came_back(link, stamp, reason);
        }
        if self.traffic.retries.is_empty() {
            return None;
        }
        let now_ns = session.host().now_ns();
        for _ in 0..self.traffic.retries.len() {
            let Some(retry) = self.traffic.retries.pop_front() else {
                break;
            };
            if retry.due_ns > now_ns {
                self.traffic.retries.push_back(retry);
                continue;
            }
            match retry.what {
                Again::Request(stamp) => self.retry_request(session, retry.link, stamp),
                Again::Answer(stamp) => self.retry_answer(session, retry.link, stamp, now_ns),
                Again::Reject(stamp) => self.retry_reject(session, retry.link, stamp),
                Again::Credits => self.traffic.owing.push(retry.link),
            }
        }
        // Those that were put off just now. For what waits for room in its link a wait looks again
        // when there is room; and if that should be overlooked, after a while.
        let due = self.traffic.retries.iter().map(|retry| match retry.due_ns {
            0 => ROOM_NS,
            due_ns => due_ns.saturating_sub(now_ns),
        });
        due.min()
    }

    fn retry_request<H: Host>(&mut self, session: &mut Session<'_, H>, link: LinkId, stamp: Stamp) {
        let record = self.peers.record(link, stamp);
        if record.is_some_and(|record| record.state == RecordState::Refused) {
            self.send_again(session, link, stamp);
        }
    }

    fn retry_answer<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        link: LinkId,
        stamp: Stamp,
        now_ns: u64,
    ) {
        self.find_replies(session, link);
        let terminus = session.terminus();
        let Some(peer) = self.peers.get(link) else {
            return;
        };
        let Peer {
            served: Some(served),
            replies,
            ..
        } = peer
        else {
            return;
        };
        let Some(served) = served.get(stamp) else {
            return;
        };
        if served.state != ServedState::Unsent {
            return;
        }
        let bytes = served.answer.bytes();
        let sent = match replies {
            Some(target) => session.try_send_message(terminus, target, stamp.bits(), bytes),
            None => Ok(None),
        };
        match sent {
            Ok(Some(_)) => {
                served.state = ServedState::Sent;
                self.traffic.statistics.sent_again += 1;
                self.traffic.fence_after(peer);
            }
            // Room in the link comes soon, or its end.
            Ok(None) if replies.is_some() => self.traffic.again(link, Again::Answer(stamp), 0),
            Ok(None) => self.traffic.answer_later(peer, stamp, now_ns),
            Err(SendError::PeerLost(_)) => served.state = ServedState::Sent,
            Err(_) => self.reply_came_back(link, stamp, Reason::BadLength),
        }
    }

    fn retry_reject<H: Host>(&mut self, session: &mut Session<'_, H>, link: LinkId, stamp: Stamp) {
        self.find_replies(session, link);
        let terminus = session.terminus();
        let Some(peer) = self.peers.get(link) else {
            return;
        };
        let Peer {
            records: Some(records),
            replies,
            ..
        } = peer
        else {
            return;
        };
        let record = records.get(stamp);
        let Some(record) = record.filter(|record| record.state == RecordState::Rejecting) else {
            return;
        };
        let head = Head::new(Category::Reject, 0).for_reason(record.reason);
        record.message.write_short(head, &[]);
        let bytes = record.message.bytes();
        let sent = replies
            .as_ref()
            .map(|target| session.try_send_message(terminus, target, stamp.bits(), bytes));
        match sent {
            Some(Ok(Some(_))) => self.traffic.fence_after(peer),
            Some(Ok(None)) => self.traffic.again(link, Again::Reject(stamp), 0),
            // Nobody can be told.
            Some(Err(_)) | None => records.free(stamp),
        }
    }

    /// Makes the target of a peer's answers usable, if it has introduced itself.
    fn find_replies<H: Host>(&mut self, session: &mut Session<'_, H>, link: LinkId) {
        let Some(peer) = self.peers.get(link) else {
            return;
        };
        if peer.replies.is_some() {
            return;
        }
        if peer.known.interface.is_none() {
            let identity = session.identity_of(link);
            peer.known.interface = identity.map(|identity| identity.interface);
        }
        if let (Some(interface), Some(introduced)) = (peer.known.interface, peer.known.introduced) {
            let ticket = introduced.replies(interface);
            // There is a link, so nobody is waited for.
            peer.replies = session.target(&ticket, hamlyn::Wait::Poll).ok();
        }
    }

    /// Tells peers of their credits.
    #[inline]
    pub(crate) fn tell_credits<H: Host>(&mut self, session: &mut Session<'_, H>) {
        if !self.traffic.owing.is_empty() {
            self.tell_all_credits(session);
        }
    }

    /// Tells peers of ports that have room again: a peer that has not sent anything since it was
    /// told last hears of more when it has, or finds out by itself.
    pub(crate) fn tell_room<H: Host>(&mut self, session: &mut Session<'_, H>) {
        while let Some(link) = self.traffic.hints.pop() {
            self.find_replies(session, link);
            let terminus = session.terminus();
            let Some(peer) = self.peers.get(link) else {
                continue;
            };
            if peer.is_hinted || peer.rooms.is_empty() {
                continue;
            }
            let (bytes, length) = peer.room_message();
            peer.rooms.clear();
            let Some(target) = &peer.replies else {
                continue;
            };
            let (stamp, bytes) = (Stamp::CREDITS.bits(), &bytes[..length]);
            // A hint that finds no room is none.
            if let Ok(Some(_)) = session.try_send_message(terminus, target, stamp, bytes) {
                peer.is_hinted = true;
                self.traffic.fence_after(peer);
            }
        }
    }

    fn tell_all_credits<H: Host>(&mut self, session: &mut Session<'_, H>) {
        let mut owing = std::mem::take(&mut self.traffic.owing);
        for link in owing.drain(..) {
            self.find_replies(session, link);
            let terminus = session.terminus();
            let Some(peer) = self.peers.get(link) else {
                continue;
            };
            let Peer {
                served: Some(served),
                replies,
                ..
            } = peer
            else {
                continue;
            };
            if served.credits_owed() == 0 {
                continue;
            }
            let (bytes, length) = served.credits_message();
            let (stamp, bytes) = (Stamp::CREDITS.bits(), &bytes[..length]);
            let Some(target) = replies else {
                // They are owed when the peer introduces itself.
                continue;
            };
            match session.try_send_message(terminus, target, stamp, bytes) {
                Ok(None) => self.traffic.again(link, Again::Credits, 0),
                Ok(Some(_)) | Err(_) => {
                    served.credits_told();
                    self.traffic.statistics.credit_messages += 1;
                    self.traffic.fence_after(peer);
                }
            }
        }
        // Its memory is used again.
        owing.append(&mut self.traffic.owing);
        self.traffic.owing = owing;
    }

    /// Cleans up after objects that were dropped, and a handler that panicked.
    pub(crate) fn clean_up(&mut self) -> Vec<crate::peer::EndpointId> {
        // A handler that panicked has had its message, which is shown once more and then unknown.
        if let Some((link, stamp)) = self.traffic.running.take() {
            self.answer_empty(link, stamp);
        }
        if let Some((link, stamp)) = self.traffic.running_reply.take() {
            self.answered(link, stamp);
        }
        let (endpoints, requests, bundles) = self.traffic.dropped.take();
        for number in bundles {
            if let Some(bundle) = self.bundle(number) {
                bundle.is_held = false;
            }
        }
        for (link, stamp) in requests {
            let served = self.peers.request(link, stamp);
            if served.is_some_and(|served| served.state == ServedState::Open) {
                self.answer_empty(link, stamp);
            }
        }
        endpoints
    }

    /// Removes an endpoint that was dropped. Its port is to be closed.
    pub(crate) fn remove_endpoint(&mut self, id: crate::peer::EndpointId) -> Option<hamlyn::Port> {
        let endpoint = self.endpoints.remove(id)?;
        let (stashed, _) = self.leave_bundle(id, endpoint.bundle);
        for Stashed { link, stamp, .. } in stashed {
            // Nobody runs its handler, and its record is free.
            self.answered(link, stamp);
        }
        Some(endpoint.port)
    }

    /// Returns messages to handler 0 of their endpoints; how many. Those that have come back since
    /// the look before, as their receiver is gone, wait for another: what it had sent may not be
    /// taken yet, and is not if this look was full.
    pub(crate) fn run_returned(&mut self, bundle: u32, is_full: bool) -> usize {
        let Some(state) = self.bundle(bundle) else {
            return 0;
        };
        state.release_last(is_full);
        let messages = state.to_return.len();
        for _ in 0..messages {
            let next = self
                .bundle(bundle)
                .and_then(|bundle| bundle.to_return.pop_front());
            let Some(message) = next else {
                break;
            };
            let Some(endpoint) = self.endpoints.get(message.endpoint) else {
                continue;
            };
            if let Some(number) = message.translation
                && message.has_credit
            {
                endpoint.translations.give_back(number, false);
            }
            let translation = message
                .translation
                .and_then(|number| endpoint.translations.mapped(message.endpoint, number));
            let (Some(head), Some(body)) = (message.message.head(), message.message.body()) else {
                continue;
            };
            if let Some(handler) = &mut endpoint.receiving.returned {
                handler(&crate::returned::Returned {
                    operation: message.operation,
                    reason: message.reason,
                    translation,
                    handler: head.handler(),
                    arguments: body.arguments.as_slice(),
                    data: message.data.as_deref().unwrap_or(body.data),
                    length_bytes: body.place.length_bytes.max(body.data.len() as u64),
                    offset: body.place.offset,
                });
            }
        }
        messages
    }
}

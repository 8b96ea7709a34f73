//! An interface sends (`Hamlyn 3.2`, `h_send_msg`).

use hamlyn_engine::limits::DIRECT_BYTES_MAX;
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::Short;
use hamlyn_engine::point::Point;
use hamlyn_engine::segment::Segmenter;
use hamlyn_engine::terminus::{Completion, PostError, SendHandle, TerminusId};
use hamlyn_engine::transmit::{self, Message as EngineMessage};
use hamlyn_host::{Host, HostError};
use hamlyn_ring::lending::ImportedRegion;

use super::in_hand::InHand;
use super::{Interface, TransmitterOf};
use crate::error::SendError;
use crate::half::Half;
use crate::message::{InlineForm, Message, Target, compose_at};
use crate::outbound::{Outbound, Withheld};
use crate::wait::{Wait, WaitState};

/// How often a short message is tried before it is queued.
const SHORT_TRIES: u32 = 128;
/// Short messages sent in one go: then whatever else there is to attend to has its turn.
const SHORTS_MAX: u32 = 4096;

/// What [`Interface::send_many`] has sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    /// How many messages.
    pub count: usize,
    /// The handle of the last; whatever is done for it is done for those before.
    pub last: Option<SendHandle>,
    /// Why the next one was not sent, if there was one.
    pub stopped_by: Option<SendError>,
}

/// See [`Interface::send_many`].
#[inline]
pub(crate) fn send_many<'m, H: Host>(
    hand: &mut impl InHand<H>,
    terminus: TerminusId,
    target: &Target,
    messages: impl IntoIterator<Item = Message<'m>>,
    wait: Wait,
) -> Result<Sent, SendError> {
    let mut messages = messages.into_iter().fuse();
    let mut sent = Sent {
        count: 0,
        last: None,
        stopped_by: None,
    };
    loop {
        let mut other = None;
        if let Some((count, handle)) =
            hand.interface()
                .send_shorts(terminus, target, &mut messages, &mut other)
        {
            sent.count += count;
            sent.last = Some(handle);
        }
        // One that is not short ends the row; more of its kind follow, most likely.
        loop {
            let Some(message) = other.take().or_else(|| messages.next()) else {
                return Ok(sent);
            };
            match hand.send_msg(terminus, target, &message, wait) {
                Ok(handle) => {
                    sent.count += 1;
                    sent.last = Some(handle);
                }
                Err(error) if sent.count == 0 => return Err(error),
                Err(error) => {
                    sent.stopped_by = Some(error);
                    return Ok(sent);
                }
            }
            if target.inline_form(&message).is_some() {
                break;
            }
        }
    }
}

impl<H: Host> Interface<H> {
    /// Sends a message (`h_send_msg`, `Hamlyn 3.2`). Short ones are queued if the link has no room;
    /// longer ones are sent from where they are, so the call lasts until all of it is handed to the link.
    /// Meanwhile arriving packets are taken in. Blocks for as long as `wait` says;
    /// with [`Wait::Poll`] it sends nothing rather than wait, and so never a message that is
    /// longer than both a packet of the link and the 128 bytes that the work queue holds
    /// ([`Interface::send_gather`] does that).
    ///
    /// If the place was granted ([`Interface::accept_grant`]), the message is stored there
    /// at once, and only its header is sent or queued, so that never blocks for its length.
    #[inline(always)]
    pub fn send_msg(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        self.check()?;
        self.send_here(terminus, target, message, wait)
    }

    /// As [`Interface::send_msg`], in the process that opened the interface.
    #[inline(always)]
    pub(crate) fn send_here(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        if let Some(handle) = self.send_short(terminus, target, message) {
            return Ok(handle);
        }
        // A copy, so that on the way above the message need not be in memory.
        let message = *message;
        self.send_longer(terminus, target, &message, wait)
    }

    /// Sends messages in order, as [`Interface::send_msg`] would one by one, but short ones that need not wait for
    /// less: what one call has to look at once is looked at once for many, and a peer that sleeps is woken
    /// after the last. Blocks and waits as that does.
    ///
    /// The first message that cannot be sent ends the call. If it is the very first, its error is returned; else
    /// how many went, and its error with that.
    #[inline]
    pub fn send_many<'m>(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        messages: impl IntoIterator<Item = Message<'m>>,
        wait: Wait,
    ) -> Result<Sent, SendError> {
        self.check()?;
        send_many(self, terminus, target, messages, wait)
    }

    /// Sends messages as long as they are short and nothing stands in their way. One that is not short is
    /// left in `other`.
    #[inline(always)]
    fn send_shorts<'m>(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        messages: &mut impl Iterator<Item = Message<'m>>,
        other: &mut Option<Message<'m>>,
    ) -> Option<(usize, SendHandle)> {
        if self.is_asked() {
            return None;
        }
        let outbound = self.outbound.own()?;
        let mut left = SHORTS_MAX;
        let next = || {
            left = left.checked_sub(1)?;
            let message = messages.next()?;
            let Some(form) = target.inline_form(&message) else {
                *other = Some(message);
                return None;
            };
            Some(Short::from(target.short(&message, form)))
        };
        let tx_links = &mut outbound.tx_links;
        outbound
            .transmitter
            .post_shorts(terminus, target.link, next, tx_links)
    }

    /// Sends a message that is one short packet, if nothing stands in its way.
    #[inline(always)]
    fn send_short(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
    ) -> Option<SendHandle> {
        let form = target.inline_form(message)?;
        if self.is_asked() {
            return None;
        }
        self.post_short(terminus, target, message, form)
    }

    #[inline(always)]
    fn post_short(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        form: InlineForm,
    ) -> Option<SendHandle> {
        let outbound = self.outbound.own()?;
        let short = target.short(message, form);
        outbound
            .transmitter
            .post_short(terminus, target.link, short, &mut outbound.tx_links)
    }

    /// Sends a message that did not take the fast path. One that is a packet of bytes goes at once if nothing stands in its way:
    /// apart from [`Interface::send_any`], because that takes much less where nothing else can be.
    #[inline(never)]
    fn send_longer(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        if self.granting.may_place(message.data.len() as u64) {
            return self.send_granted(terminus, target, message, wait);
        }
        match self.send_at_once(terminus, target, message) {
            Some(handle) => Ok(handle),
            None => self.send_any(terminus, target, message, wait),
        }
    }

    /// Sends a message that is one packet, if nothing stands in its way, by a transmit half that is lent.
    #[inline(never)]
    fn send_lent(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
    ) -> Option<SendHandle> {
        let Half::Lent(handoff_lock) = &self.outbound else {
            return None;
        };
        if self.is_asked() {
            return None;
        }
        let mut outbound = handoff_lock.enter_soon();
        let outbound = &mut *outbound;
        let (transmitter, tx_links) = (&mut outbound.transmitter, &mut outbound.tx_links);
        if let Some(form) = target.inline_form(message) {
            let short = target.short(message, form);
            return transmitter.post_short(terminus, target.link, short, tx_links);
        }
        if !message.metadata.is_empty() {
            return None;
        }
        let length = message.data.len() as u64;
        let offset = target.ticket.place(message.offset, length).ok()?;
        let posting = || compose_at(target, message, offset);
        transmitter.post_at_once(terminus, posting, message.data, tx_links)
    }

    /// Sends a message whose place may have been granted.
    #[inline(never)]
    fn send_granted(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        self.drain_events_if_asked();
        let store = |_: &_, pages: &ImportedRegion, at| pages.store(at, message.data).is_ok();
        let length = message.data.len() as u64;
        match self.send_placed(terminus, target, message, length, wait, store)? {
            Some(handle) => Ok(handle),
            None => self.send_any(terminus, target, message, wait),
        }
    }

    #[inline(always)]
    fn send_at_once(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
    ) -> Option<SendHandle> {
        let data = message.data;
        if self.is_asked() || !message.metadata.is_empty() {
            return None;
        }
        let outbound = self.outbound.own()?;
        let offset = target
            .ticket
            .place(message.offset, data.len() as u64)
            .ok()?;
        let posting = || compose_at(target, message, offset);
        let (transmitter, tx_links) = (&mut outbound.transmitter, &mut outbound.tx_links);
        transmitter.post_at_once(terminus, posting, data, tx_links)
    }

    /// Sends a short message that found no room, or others before it, if room comes soon: a program that
    /// sends faster than its peer receives would else queue each of its messages, which costs more than to send it.
    fn send_short_soon(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        wait: Wait,
    ) -> Option<SendHandle> {
        if wait == Wait::Poll {
            return None;
        }
        let form = target.inline_form(message)?;
        // To another host no message goes that way, however long one tries.
        let link = target.link;
        let has_short_way = |outbound: &mut Outbound<_, _>| outbound.tx_links.has_short_way(link);
        if !self.outbound.with_own(has_short_way)? {
            return None;
        }
        for _ in 0..SHORT_TRIES {
            let still_waits = self.outbound.with_own(|outbound| {
                if !outbound.transmitter.is_waiting_for(link) {
                    return false;
                }
                outbound.pump();
                outbound.transmitter.is_waiting_for(link)
            });
            if still_waits? {
                return None;
            }
            if !self.is_asked() {
                let sent = match &self.outbound {
                    Half::Lent(_) => self.send_lent(terminus, target, message),
                    _ => self.post_short(terminus, target, message, form),
                };
                if let Some(handle) = sent {
                    return Some(handle);
                }
            }
            // Reception never waits for transmission.
            self.poll();
        }
        None
    }

    /// Whether a message to that link could be queued, if there is no room in the link itself.
    pub(crate) fn has_room(&self, terminus: TerminusId, link: LinkId) -> bool {
        let has_room = |outbound: &Outbound<_, _>| outbound.transmitter.has_room(terminus, link);
        self.outbound.read(has_room) != Ok(false)
    }

    /// Sends what goes at once, queues what may wait. With a network processor that transmits,
    /// all that may wait is queued for it, and only what is too long for that goes at once.
    #[inline(always)]
    fn post(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        offset: u64,
    ) -> Result<SendHandle, PostError> {
        let Some(outbound) = self.outbound.own() else {
            return self.post_shared(terminus, &compose_at(target, message, offset), message);
        };
        let (transmitter, tx_links) = (&mut outbound.transmitter, &mut outbound.tx_links);
        let posting = || compose_at(target, message, offset);
        let (metadata, data) = (message.metadata, message.data);
        let posted = transmitter.post_made(terminus, posting, metadata, data, tx_links)?;
        Ok(posted.handle)
    }

    #[inline(never)]
    fn post_shared(
        &mut self,
        terminus: TerminusId,
        posting: &EngineMessage,
        message: &Message<'_>,
    ) -> Result<SendHandle, PostError> {
        let (metadata, data) = (message.metadata, message.data);
        if let Half::Lent(handoff_lock) = &self.outbound {
            let mut outbound = handoff_lock.enter_soon();
            let outbound = &mut *outbound;
            let (transmitter, tx_links) = (&mut outbound.transmitter, &mut outbound.tx_links);
            let posted = transmitter.post(terminus, posting, metadata, data, tx_links)?;
            return Ok(posted.handle);
        }
        let is_left = data.len() <= DIRECT_BYTES_MAX;
        if is_left {
            H::passes(Point::HandedOver);
        }
        let (posted, has_broken) = self.outbound.lock(|outbound| {
            let (transmitter, tx_links) = (&mut outbound.transmitter, &mut outbound.tx_links);
            let posted = if is_left {
                transmitter.post(terminus, posting, metadata, data, &mut Withheld(tx_links))
            } else {
                transmitter.post(terminus, posting, metadata, data, tx_links)
            };
            (posted, tx_links.has_broken())
        });
        // It sends what was queued, and sees to links that were found broken. A message that found
        // no room gives it nothing to do: it would look in vain, wake this thread, and be woken
        // again.
        if let Some(processor) = &self.processor
            && (posted.is_ok() || has_broken)
        {
            processor.exchange.post();
        }
        Ok(posted?.handle)
    }

    #[inline(never)]
    fn send_any(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        self.drain_events_if_asked();
        if let Some(handle) = self.send_lent(terminus, target, message) {
            return Ok(handle);
        }
        if let Some(handle) = self.send_short_soon(terminus, target, message, wait) {
            return Ok(handle);
        }
        let length = message.data.len() as u64;
        let offset = target.ticket.place(message.offset, length)?;
        let sent = match self.post(terminus, target, message, offset) {
            Ok(handle) => Ok(handle),
            Err(error) => self.send_slowly(terminus, target, message, offset, wait, error),
        };
        if self.sleepers.is_any() {
            self.wake_sleepers_for_credit();
        }
        sent
    }

    #[cold]
    #[inline(never)]
    fn send_slowly(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        offset: u64,
        wait: Wait,
        mut error: PostError,
    ) -> Result<SendHandle, SendError> {
        let posting = &compose_at(target, message, offset);
        let would_block = SendError::WouldBlock {
            peer: target.ticket.destination,
        };
        let mut wait_state = WaitState::new(wait);
        loop {
            match error {
                PostError::LinkGone => return Err(self.lost(target).into()),
                PostError::TooLongToQueue { .. } if wait != Wait::Poll => {
                    match self.send_streaming(
                        terminus,
                        target,
                        posting,
                        message,
                        &mut wait_state,
                    )? {
                        Some(handle) => return Ok(handle),
                        None => return Err(would_block),
                    }
                }
                PostError::QueueFull | PostError::TooLongToQueue { .. } => {
                    self.poll();
                    if !self.pause(&mut wait_state)? {
                        return Err(would_block);
                    }
                }
                other => return Err(other.into()),
            }
            match self.post(terminus, target, message, offset) {
                Ok(handle) => return Ok(handle),
                Err(again) => error = again,
            }
        }
    }

    /// Sends a long message from the caller's slice. Nothing if there was no
    /// room within the wait even for its first packet.
    fn send_streaming(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        posting: &EngineMessage,
        message: &Message<'_>,
        wait_state: &mut WaitState,
    ) -> Result<Option<SendHandle>, SendError> {
        let mut segmenter = loop {
            let begun = self.outbound.lock(|outbound| {
                outbound.transmitter.begin_streaming(
                    terminus,
                    posting,
                    message.metadata,
                    message.data.len() as u64,
                    &outbound.tx_links,
                )
            });
            match begun {
                Ok(segmenter) => break segmenter,
                Err(PostError::QueueFull) => {
                    self.poll();
                    if !self.pause(wait_state)? {
                        return Ok(None);
                    }
                }
                Err(PostError::LinkGone) => return Err(self.lost(target).into()),
                Err(other) => return Err(other.into()),
            }
        };
        loop {
            let state = self.outbound.lock(|outbound| {
                outbound.transmitter.continue_streaming(
                    terminus,
                    target.link,
                    &mut segmenter,
                    message.metadata,
                    message.data,
                    &mut outbound.tx_links,
                )
            })?;
            match state {
                transmit::SendProgress::Sent => {
                    let handle = self.outbound.lock(|outbound| {
                        outbound.tx_links.hand_over();
                        outbound.transmitter.finish_streaming(terminus)
                    })?;
                    return Ok(Some(handle));
                }
                transmit::SendProgress::Gone => return Err(self.lost(target).into()),
                transmit::SendProgress::More => {
                    // Reception never waits for transmission, nor do other termini.
                    self.poll();
                }
                transmit::SendProgress::Full => {
                    self.poll();
                    if !self.pause(wait_state)? {
                        return if segmenter.is_started() {
                            self.cut = Some(segmenter);
                            Err(SendError::Cut {
                                peer: target.ticket.destination,
                                sent_bytes: segmenter.sent_bytes(),
                            })
                        } else {
                            Ok(None)
                        };
                    }
                }
            }
        }
    }

    /// For [`Interface::take_cut`].
    pub(crate) fn keep_cut(&mut self, rest: Option<Segmenter>) {
        self.cut = rest;
    }

    /// What is left of the message that was just cut ([`SendError::Cut`]), for [`Interface::send_rest`].
    pub(crate) fn take_cut(&mut self) -> Option<Segmenter> {
        self.cut.take()
    }

    /// Sends what is left of a message that was cut, as far as there is room; whether that was all.
    pub(crate) fn send_rest(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        rest: &mut Segmenter,
        message: &Message<'_>,
    ) -> Result<bool, SendError> {
        let state = self.outbound.lock(|outbound| {
            let (transmitter, tx_links) = (&mut outbound.transmitter, &mut outbound.tx_links);
            let (metadata, data) = (message.metadata, message.data);
            let state = transmitter.continue_streaming(
                terminus,
                target.link,
                rest,
                metadata,
                data,
                tx_links,
            );
            tx_links.hand_over();
            state
        })?;
        match state {
            transmit::SendProgress::Sent => Ok(true),
            transmit::SendProgress::More | transmit::SendProgress::Full => Ok(false),
            transmit::SendProgress::Gone => Err(self.lost(target).into()),
        }
    }

    /// Accounts for a message that was cut and is all sent now.
    pub(crate) fn finish_rest(&mut self, terminus: TerminusId) -> Result<SendHandle, SendError> {
        let finish =
            |outbound: &mut Outbound<_, _>| outbound.transmitter.finish_streaming(terminus);
        Ok(self.outbound.lock(finish)?)
    }

    /// Waits until that message, and so all that was sent before it to the same destination, is handed to its link.
    /// Messages to other destinations are not waited for.
    pub fn drain(&mut self, handle: SendHandle, wait: Wait) -> Result<Completion, SendError> {
        self.check()?;
        drain(self, handle, wait)
    }

    /// Waits until nothing is queued any more for that link: every message to it that was accepted is handed over, or has
    /// failed with it. False if the time was over first. What waits for other links is not waited for.
    pub fn flush_link(&mut self, link: LinkId, wait: Wait) -> Result<bool, HostError> {
        self.check()?;
        flush_link(self, link, wait)
    }

    /// As [`Interface::flush_link`], for all links: a peer that takes nothing keeps it from ending well.
    ///
    /// Here the application's own calls move its messages, so a program that sends and then does
    /// something else for long, or ends, calls this in between.
    pub fn flush(&mut self, wait: Wait) -> Result<bool, HostError> {
        self.check()?;
        flush(self, wait)
    }
}

/// See [`Interface::drain`].
pub(crate) fn drain<H: Host>(
    hand: &mut impl InHand<H>,
    handle: SendHandle,
    wait: Wait,
) -> Result<Completion, SendError> {
    let mut wait_state = WaitState::new(wait);
    loop {
        let interface = hand.interface();
        let completion = |interface: &Interface<H>| interface.completion(handle);
        let mut found = completion(interface).map_err(|_| SendError::Finished)?;
        if found == Completion::Pending {
            interface.poll();
            found = completion(interface).map_err(|_| SendError::Finished)?;
        }
        if found != Completion::Pending || !hand.pause(&mut wait_state)? {
            return Ok(found);
        }
    }
}

/// See [`Interface::flush_link`].
pub(crate) fn flush_link<H: Host>(
    hand: &mut impl InHand<H>,
    link: LinkId,
    wait: Wait,
) -> Result<bool, HostError> {
    flush_until(hand, wait, |transmitter| !transmitter.is_waiting_for(link))
}

/// See [`Interface::flush`].
pub(crate) fn flush<H: Host>(hand: &mut impl InHand<H>, wait: Wait) -> Result<bool, HostError> {
    flush_until(hand, wait, |transmitter| !transmitter.is_waiting())
}

fn flush_until<H: Host>(
    hand: &mut impl InHand<H>,
    wait: Wait,
    is_done: impl Fn(&TransmitterOf<H>) -> bool,
) -> Result<bool, HostError> {
    let mut wait_state = WaitState::new(wait);
    loop {
        let interface = hand.interface();
        interface.poll();
        let is_done = |outbound: &Outbound<_, _>| is_done(&outbound.transmitter);
        if interface.outbound.read(is_done) {
            return Ok(true);
        }
        if !hand.pause(&mut wait_state)? {
            return Ok(false);
        }
    }
}

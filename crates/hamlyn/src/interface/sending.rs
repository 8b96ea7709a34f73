//! An interface sends (`Hamlyn 3.2`, `h_send_msg`), without waiting: a message goes, or is queued,
//! or there is no room for it yet.
//!
//! A short message takes the fast path: [`Interface::send_short`] in one cell,
//! [`Interface::send_at_once`] in several, or as one packet. All others take the general one,
//! [`Interface::try_send`], and [`Interface::send_some`] for those too long for the work queue.

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::Short;
use hamlyn_engine::segment::Segmenter;
use hamlyn_engine::terminus::{PostError, SendHandle, TerminusId};
use hamlyn_engine::transmit::SendProgress;
use hamlyn_host::Host;

use super::Interface;
use super::outbox::packet_bytes_max;
use super::sharing::Placing;
use crate::error::SendError;
use crate::half::{Half, at_once};
use crate::message::{Message, Sending, Target, compose_at};
use crate::outbound::Outbound;

/// How often a short message is tried before it is queued.
const SHORT_TRIES: u32 = 128;
/// Short messages sent in one go: then whatever else there is to attend to has its turn.
const SHORTS_MAX: u32 = 4096;

impl<H: Host> Interface<H> {
    /// Sends a message that need not wait (`h_send_msg`, `Hamlyn 3.2`), or queues it if the link
    /// has no room at present. Nothing if there is room neither in the link nor in the queue;
    /// packets were moved then ([`Interface::poll`]), and it is to be tried again. Does not block.
    ///
    /// If the place is attached ([`Session::attach`]), the message is stored there at once,
    /// and only its header is sent or queued.
    ///
    /// # Errors
    ///
    /// [`PostError::TooLongToQueue`] for a message that is longer than both a packet of the link
    /// and the 128 bytes that the work queue holds: [`Interface::send_some`] sends that, and
    /// [`Interface::send_gather`].
    ///
    /// [`Session::attach`]: crate::Session::attach
    #[inline(always)]
    pub fn try_send(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
    ) -> Result<Option<SendHandle>, SendError> {
        self.check()?;
        match self.send_short(terminus, target, message) {
            Some(handle) => Ok(Some(handle)),
            None => self.send_general(terminus, target, message),
        }
    }

    /// Sends a message of any length, as far as there is room; nothing if that was not all of it.
    /// Then this is to be called again with the same message, until all is sent, or the message is
    /// given up: if a part of it was sent ([`Sending::sent_bytes`]), the receiver has that part,
    /// and its place is not free. Does not block.
    pub fn send_some(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        sending: &mut Sending,
    ) -> Result<Option<SendHandle>, SendError> {
        self.check()?;
        if sending.0.is_none() {
            match self.send_general(terminus, target, message) {
                Err(error) if error.is_too_long_to_queue() => {}
                sent => return sent,
            }
            let Some(begun) = self.begin_streaming(terminus, target, message)? else {
                self.poll();
                return Ok(None);
            };
            sending.0 = Some(begun);
        }
        let Some(rest) = &mut sending.0 else {
            return Ok(None);
        };
        let sent = self.continue_streaming(terminus, target, message, rest)?;
        if sent.is_some() {
            // For the next message.
            sending.0 = None;
        }
        Ok(sent)
    }

    /// The fast path: sends a message that is one short packet, if nothing stands in its way.
    #[inline(always)]
    pub(crate) fn send_short(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
    ) -> Option<SendHandle> {
        let form = target.inline_form(message)?;
        if self.is_asked() {
            return None;
        }
        let short = target.short(message, form);
        at_once!(self.outbound, Self::AMONG_THREADS, |outbound| {
            let (transmitter, tx_links) = (&mut outbound.transmitter, &mut outbound.tx_links);
            transmitter.post_short(terminus, target.link, short, tx_links)
        })
    }

    /// Sends messages as long as they are short and nothing stands in their way. One that is not
    /// short is left in `other`.
    #[inline(always)]
    pub(crate) fn send_shorts<'m>(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        messages: &mut impl Iterator<Item = Message<'m>>,
        other: &mut Option<Message<'m>>,
    ) -> Option<(usize, SendHandle)> {
        if self.is_asked() {
            return None;
        }
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
        at_once!(self.outbound, Self::AMONG_THREADS, |outbound| {
            let (transmitter, tx_links) = (&mut outbound.transmitter, &mut outbound.tx_links);
            transmitter.post_shorts(terminus, target.link, next, tx_links)
        })
    }

    /// The general path, for a message that the fast one did not take. If there is no room, it
    /// moves packets once, so that a program which only tries again and again gets on.
    #[inline(never)]
    pub(crate) fn send_general(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
    ) -> Result<Option<SendHandle>, SendError> {
        let sent = self.place_or_post(terminus, target, message)?;
        if sent.is_none() {
            self.poll();
        }
        Ok(sent)
    }

    fn place_or_post(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
    ) -> Result<Option<SendHandle>, SendError> {
        let length = message.data.len() as u64;
        if self.attached.may_place(length) {
            match self.place_at_once(terminus, target, message)? {
                Placing::Sent(handle) => return Ok(Some(handle)),
                Placing::Full => return Ok(None),
                Placing::NotAttached => {}
            }
        }
        self.post_or_queue(terminus, target, message)
    }

    /// Sends a message that is one packet of bytes, or that is stored in an attached region, if
    /// nothing stands in its way: apart from the general path, because that takes much less where
    /// nothing else can be.
    #[inline(always)]
    pub(crate) fn send_at_once(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
    ) -> Option<SendHandle> {
        let data = message.data;
        if self.attached.may_place(data.len() as u64) {
            return self.send_placed_at_once(terminus, target, message);
        }
        if self.is_asked() {
            return None;
        }
        at_once!(self.outbound, Self::AMONG_THREADS, |outbound| {
            outbound.send_longer_at_once(terminus, target, message)
        })
    }

    /// Sends what goes at once, and queues what may wait.
    #[inline(never)]
    fn post_or_queue(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
    ) -> Result<Option<SendHandle>, SendError> {
        self.drain_events_if_asked();
        if let Some(handle) = self.send_lent(terminus, target, message) {
            return Ok(Some(handle));
        }
        let length = message.data.len() as u64;
        let offset = target.ticket.place(message.offset, length)?;
        if self.is_interrupt {
            return self.post_in_interrupt(terminus, target, message, offset);
        }
        let awaits_room = self.awaits_room;
        let (_, mut outbox) = self.halves(terminus);
        let posted = loop {
            match outbox.post_if_room(target, message, offset) {
                Ok(None) if !awaits_room && outbox.press(target.link) => {}
                posted => break posted,
            }
        };
        if self.sleepers.is_any() {
            self.wake_sleepers_for_credit();
        }
        posted.map_err(|error| match error {
            PostError::LinkGone => self.lost(target).into(),
            other => other.into(),
        })
    }

    /// Sends what goes at once, and queues nothing, as that allocates.
    #[cold]
    fn post_in_interrupt(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        offset: u64,
    ) -> Result<Option<SendHandle>, SendError> {
        let posting = &compose_at(target, message, offset);
        let awaits_room = self.awaits_room;
        let posted = self.outbound.lock(|outbound| {
            loop {
                let (transmitter, tx_links) = (&mut outbound.transmitter, &mut outbound.tx_links);
                let data = message.data;
                match transmitter.post_or_leave(terminus, posting, data, tx_links) {
                    Ok(None) if !awaits_room && outbound.press(target.link) => {}
                    posted => break posted,
                }
            }
        });
        posted.map_err(|error| match error {
            PostError::LinkGone => self.lost(target).into(),
            other => other.into(),
        })
    }

    /// The longest payload of a packet of that link, metadata and data together, in bytes; nothing
    /// if the link has ended.
    pub fn packet_bytes_max(&self, link: LinkId) -> Option<usize> {
        if self.is_forked() {
            return None;
        }
        packet_bytes_max::<H>(&self.outbound, link)
    }

    /// Sends a message that is one packet, if nothing stands in its way, by a transmit half that is
    /// lent.
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
        handoff_lock
            .enter_soon()
            .send_at_once(terminus, target, message)
    }

    /// Sends a short message that found no room, or others before it, if room comes soon: a program
    /// that sends faster than its peer receives would else queue each of its messages, which costs
    /// more than to send it. Tries a fixed number of times, and takes in packets in between.
    pub(crate) fn send_short_soon(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
    ) -> Option<SendHandle> {
        target.inline_form(message)?;
        // To another host no message goes that way, however long one tries.
        let link = target.link;
        let cells_bytes_max =
            |outbound: &mut Outbound<_, _>| outbound.tx_links.cells_bytes_max(link);
        if self.outbound.with_own(cells_bytes_max)? == 0 {
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
            let sent = match &self.outbound {
                Half::Lent(_) => self.send_lent(terminus, target, message),
                _ => self.send_short(terminus, target, message),
            };
            if sent.is_some() {
                return sent;
            }
            // Reception never waits for transmission.
            self.poll();
        }
        None
    }

    /// The longest message that lies in cells of the link and needs no other memory, in bytes:
    /// about 1 KiB on one host; 0 between hosts, and if the link has ended.
    pub fn cells_bytes_max(&self, link: LinkId) -> u64 {
        if self.is_forked() {
            return 0;
        }
        self.outbound
            .read(|outbound| outbound.tx_links.cells_bytes_max(link))
    }

    /// True if a message to that link could be queued, if there is no room in the link itself: for
    /// layers that ask before they prepare a message. True also if the link or the terminus is
    /// gone, and in a forked child: then a send says so.
    pub fn has_room(&self, terminus: TerminusId, link: LinkId) -> bool {
        if self.is_forked() {
            return true;
        }
        let has_room = |outbound: &Outbound<_, _>| outbound.transmitter.has_room(terminus, link);
        self.outbound.read(has_room) != Ok(false)
    }

    /// True if a message of up to 128 bytes to that link would find room now: for programs that ask
    /// before they make one. Unlike [`Interface::has_room`], it moves packets once if there is
    /// none, as a send would. Does not block.
    pub fn finds_room(&mut self, terminus: TerminusId, link: LinkId) -> bool {
        if !self.has_room(terminus, link) {
            self.press(link);
            self.poll();
        }
        self.has_room(terminus, link)
    }

    /// Begins a message that is too long to be queued; nothing if others wait for the link still.
    #[inline(never)]
    fn begin_streaming(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
    ) -> Result<Option<Segmenter>, SendError> {
        let length = message.data.len() as u64;
        let offset = target.ticket.place(message.offset, length)?;
        let posting = &compose_at(target, message, offset);
        let begun = self.outbound.lock(|outbound| {
            let transmitter = &mut outbound.transmitter;
            let tx_links = &outbound.tx_links;
            transmitter.begin_streaming(terminus, posting, message.metadata, length, tx_links)
        });
        match begun {
            Ok(begun) => Ok(Some(begun)),
            Err(PostError::QueueFull) => Ok(None),
            Err(PostError::LinkGone) => Err(self.lost(target).into()),
            Err(other) => Err(other.into()),
        }
    }

    /// Sends what is left of a message, as far as there is room. Nothing if that was not all.
    #[inline(never)]
    fn continue_streaming(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        rest: &mut Segmenter,
    ) -> Result<Option<SendHandle>, SendError> {
        loop {
            let (metadata, data) = (message.metadata, message.data);
            let progress = self.outbound.lock(|outbound| {
                let (transmitter, tx_links) = (&mut outbound.transmitter, &mut outbound.tx_links);
                let progress = transmitter.continue_streaming(
                    terminus,
                    target.link,
                    rest,
                    metadata,
                    data,
                    tx_links,
                );
                if !matches!(progress, Ok(SendProgress::More)) {
                    tx_links.hand_over();
                }
                progress
            })?;
            match progress {
                SendProgress::Sent => {
                    let finish = |outbound: &mut Outbound<_, _>| {
                        outbound.transmitter.finish_streaming(terminus)
                    };
                    return Ok(Some(self.outbound.lock(finish)?));
                }
                SendProgress::Gone => return Err(self.lost(target).into()),
                // Reception never waits for transmission, nor do other termini.
                SendProgress::More => drop(self.poll()),
                SendProgress::Full if self.press(target.link) => {}
                SendProgress::Full => {
                    if self.sleepers.is_any() {
                        self.wake_sleepers_for_credit();
                    }
                    self.poll();
                    return Ok(None);
                }
            }
        }
    }

    /// Has messages to that link go that are held back, unless somebody waits for room. False if
    /// none are.
    #[cold]
    pub(crate) fn press(&mut self, link: LinkId) -> bool {
        !self.awaits_room && self.outbound.lock(|outbound| outbound.press(link))
    }

    /// True if nothing is queued any more for that link, or for any.
    pub(crate) fn is_flushed(&self, link: Option<LinkId>) -> bool {
        self.outbound.read(|outbound| match link {
            Some(link) => !outbound.transmitter.is_waiting_for(link),
            None => !outbound.transmitter.is_waiting(),
        })
    }

    /// Has queued messages to that link, or to all, go that are held back. False if none are.
    pub(crate) fn press_queued(&mut self, link: Option<LinkId>) -> bool {
        self.outbound.lock(|outbound| outbound.press_queued(link))
    }
}

//! A session sends, and waits for room; and it waits until what was sent has left.

use std::time::Duration;

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::terminus::{Completion, SendHandle, TerminusId};
use hamlyn_host::{Host, HostError};

use super::Session;
use crate::error::{NotSent, SendError};
use crate::interface::ports::to_handler;
use crate::message::Sending;
use crate::message::{Message, Target};
use crate::wait::Wait;

/// What [`Session::send_many`] has sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    /// How many messages.
    pub count: usize,
    /// The handle of the last; whatever is done for it is done for those before.
    pub last: Option<SendHandle>,
    /// Why the next one was not sent, if there was one.
    pub stopped_by: Option<SendError>,
}

impl<H: Host> Session<'_, H> {
    /// Sends a message (`h_send_msg`, `Hamlyn 3.2`). Short ones are queued if the link has no room;
    /// longer ones are sent from where they are, so the call lasts until all of it is handed to the
    /// link. Meanwhile arriving packets are taken in. Blocks for as long as `wait` says; with
    /// [`Wait::Poll`] it sends nothing rather than wait, and so never a message that is longer than
    /// both a packet of the link and the 128 bytes that the work queue holds
    /// ([`Interface::send_gather`] does that).
    ///
    /// If the place is attached ([`Session::attach`]), the message is stored there at once,
    /// and only its header is sent or queued, so that never blocks for its length.
    ///
    /// [`Interface::send_gather`]: crate::Interface::send_gather
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

    /// As [`Session::send_msg`], over the manager's terminus, for a caller that has asked whether
    /// this is a forked child.
    #[inline(always)]
    pub(crate) fn send(
        &mut self,
        target: &Target,
        message: &Message<'_>,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        self.send_here(self.core.terminus(), target, message, wait)
    }

    #[inline(always)]
    fn send_here(
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

    #[inline(never)]
    pub(crate) fn send_longer(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        match self.send_at_once(terminus, target, message) {
            Some(handle) => Ok(handle),
            None => self.send_waiting(terminus, target, message, wait),
        }
    }

    /// Sends a message to a port, for a handler, over the manager's terminus. Otherwise like
    /// [`Session::send_msg`]; a message that is longer than a packet of the link is an error.
    #[inline(always)]
    pub fn send_message(
        &mut self,
        target: &Target,
        handler: u16,
        data: &[u8],
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        self.check()?;
        let terminus = self.core.terminus();
        match self.send_message_at_once(terminus, target, handler, data) {
            Some(handle) => Ok(handle),
            None => self.send_waiting(terminus, target, &to_handler(handler, data), wait),
        }
    }

    #[inline(never)]
    fn send_waiting(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        let mut sending = Sending::default();
        let sent = self.send_within(terminus, target, message, &mut sending, wait)?;
        let peer = target.ticket().destination;
        sent.ok_or_else(|| match sending.sent_bytes() {
            Some(sent_bytes) => SendError::Cut { peer, sent_bytes },
            None => SendError::WouldBlock { peer },
        })
    }

    /// Gives the interface a message to send ([`Interface::try_send_owned`]), over the manager's
    /// terminus. Blocks, for as long as `wait` says, only while as much waits for that destination
    /// as may; then an error gives the bytes back.
    ///
    /// [`Interface::try_send_owned`]: crate::Interface::try_send_owned
    pub fn send_owned(
        &mut self,
        target: &Target,
        message: &Message<'_>,
        data: Vec<u8>,
        wait: Wait,
    ) -> Result<SendHandle, NotSent> {
        let terminus = self.core.terminus();
        self.wait_to_give(target, data, wait, |session, data| {
            session.try_send_owned(terminus, target, message, data)
        })
    }

    /// Waits until an attempt takes bytes for that target, which each one that finds no room gives
    /// back.
    pub(crate) fn wait_to_give<T>(
        &mut self,
        target: &Target,
        data: Vec<u8>,
        wait: Wait,
        mut attempt: impl FnMut(&mut Self, Vec<u8>) -> Result<T, NotSent>,
    ) -> Result<T, NotSent> {
        let mut kept = data;
        let given = self.wait_for_room(wait, |session| {
            let not_sent = match attempt(session, std::mem::take(&mut kept)) {
                Ok(given) => return Ok(Some(given)),
                Err(not_sent) => not_sent,
            };
            kept = not_sent.data;
            match not_sent.error {
                SendError::WouldBlock { .. } => Ok(None),
                error => Err(error),
            }
        });
        let peer = target.ticket().destination;
        let given = given.and_then(|given| given.ok_or(SendError::WouldBlock { peer }));
        given.map_err(|error| NotSent { error, data: kept })
    }

    /// Sends a message that the fast path did not take. Nothing if the time was over before all of
    /// it was sent.
    pub(crate) fn send_within(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        sending: &mut Sending,
        wait: Wait,
    ) -> Result<Option<SendHandle>, SendError> {
        if wait == Wait::Poll {
            return match self.send_general(terminus, target, message) {
                Err(error) if error.is_too_long_to_queue() => {
                    self.poll();
                    Ok(None)
                }
                sent => sent,
            };
        }
        // Before it is queued; a longer one is not tried so.
        if let Some(handle) = self.send_short_soon(terminus, target, message) {
            return Ok(Some(handle));
        }
        self.wait_for_room(wait, |session| {
            session.send_some(terminus, target, message, sending)
        })
    }

    /// Sends messages in order, as [`Session::send_msg`] would one by one, but short ones that need
    /// not wait for less: what one call has to look at once is looked at once for many, and a peer
    /// that sleeps is woken after the last. Blocks and waits as that does.
    ///
    /// The first message that cannot be sent ends the call. If it is the very first, its error is
    /// returned; else how many went, and its error with that.
    #[inline]
    pub fn send_many<'m>(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        messages: impl IntoIterator<Item = Message<'m>>,
        wait: Wait,
    ) -> Result<Sent, SendError> {
        self.check()?;
        let mut messages = messages.into_iter().fuse();
        let mut sent = Sent {
            count: 0,
            last: None,
            stopped_by: None,
        };
        loop {
            let mut other = None;
            if let Some((count, handle)) =
                self.send_shorts(terminus, target, &mut messages, &mut other)
            {
                sent.count += count;
                sent.last = Some(handle);
            }
            // One that is not short ends the row; more of its kind follow, most likely.
            loop {
                let Some(message) = other.take().or_else(|| messages.next()) else {
                    return Ok(sent);
                };
                match self.send_here(terminus, target, &message, wait) {
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

    /// Waits until that message, and so all that was sent before it to the same destination, is
    /// handed to its link. Messages to other destinations are not waited for.
    pub fn drain(&mut self, handle: SendHandle, wait: Wait) -> Result<Completion, SendError> {
        self.check()?;
        let drained = self.wait_for(wait, |session| {
            let completion = |session: &Self| session.completion(handle);
            let mut found = completion(session).map_err(|_| SendError::Finished)?;
            if found == Completion::Pending {
                session.poll();
                found = completion(session).map_err(|_| SendError::Finished)?;
            }
            Ok::<_, SendError>((found != Completion::Pending).then_some(found))
        });
        Ok(drained?.unwrap_or(Completion::Pending))
    }

    /// Waits until nothing is queued any more for that link: every message to it that was accepted
    /// is handed over, or has failed with it, and so has what end points that are gone left to be
    /// told there. False if the time was over first. What waits for other links is not waited for.
    pub fn flush_link(&mut self, link: LinkId, wait: Wait) -> Result<bool, HostError> {
        self.await_flushed(Some(link), wait)
    }

    /// As [`Session::flush_link`], for all links: a peer that takes nothing keeps it from ending
    /// well.
    ///
    /// With [`Strategy::Proc`](crate::Strategy::Proc) the application's own calls move its
    /// messages, so a program that sends and then does something else for long, or ends, calls this
    /// in between.
    pub fn flush(&mut self, wait: Wait) -> Result<bool, HostError> {
        self.await_flushed(None, wait)
    }

    /// Of that link, or of all.
    fn await_flushed(&mut self, link: Option<LinkId>, wait: Wait) -> Result<bool, HostError> {
        self.check()?;
        let flushed = self.wait_for(wait, |session| {
            session.core.reap();
            session.poll();
            // A flush is no load, as a fence is none.
            while !session.is_flushed(link) {
                if !session.press_queued(link) {
                    return Ok::<_, HostError>(None);
                }
            }
            if session.core.has_no_last_words(link) {
                return Ok(Some(()));
            }
            session.look_within(Duration::ZERO);
            Ok(None)
        });
        Ok(flushed?.is_some())
    }
}

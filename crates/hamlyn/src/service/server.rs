//! The answering end of a service.

use std::fmt;
use std::future::poll_fn;
use std::ops::Deref;
use std::task::{Context, Poll};
use std::time::Duration;

use hamlyn_engine::memory::LinkId;
use hamlyn_host::process::ProcessHost;
use hamlyn_host::{Host, HostError};

use super::ServiceOptions;
use super::lanes::{Answered, CallId, Lanes};
use super::wire::Status;
use crate::drop_list::DropList;
use crate::error::{OpenError, ReceiveError};
use crate::forks::from_forked;

use crate::item::ItemHeader;
use crate::manager::{Manager, ManagerRef};
use crate::peer::PeerIdentity;
use crate::session::Session;
use crate::wait::{Wait, Waiting};

/// Arrivals that are no calls, before other things are seen to.
const FRUITLESS_MAX: usize = 1024;

/// The answering end. See [the module](crate::service).
pub struct Service<H: Host = ProcessHost> {
    lanes: Lanes,
    options: ServiceOptions,
    /// Calls that were put off and dropped.
    dropped: DropList<(CallId, u32)>,
    manager: ManagerRef<H>,
}

/// A reply that was not sent. What clients do is no error: [`Answered`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// It is longer than the service's replies may be.
    #[error(
        "a reply of {length_bytes} bytes, but this service's have at most {limit_bytes}: raise `ServiceOptions::reply_bytes`"
    )]
    TooLong {
        /// Its length.
        length_bytes: usize,
        /// The longest.
        limit_bytes: u32,
    },
    /// The host failed.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// A call of a client. It reads as the bytes of the request, which lie where the client placed
/// them, from a multiple of 64 on, also if there are none. If it is dropped without a reply, the
/// client is told so.
pub struct Call<'a, H: Host = ProcessHost> {
    service: &'a mut Service<H>,
    call_id: CallId,
    is_done: bool,
}

/// A call that is answered later, in any order ([`Call::defer`]). If it is dropped without a reply,
/// the client is told so at the next call of the service, or by a task that waits for calls: it is
/// woken.
#[derive(Debug)]
pub struct Deferred {
    call_id: CallId,
    number: u32,
    is_done: bool,
    dropped: DropList<(CallId, u32)>,
}

impl Drop for Deferred {
    fn drop(&mut self) {
        if !self.is_done {
            self.dropped.note((self.call_id, self.number));
        }
    }
}

impl<H: Host> Service<H> {
    pub(crate) fn bind(
        manager: &Manager<H>,
        item: &str,
        options: ServiceOptions,
        header: ItemHeader,
    ) -> Result<Self, OpenError> {
        options.check()?;
        let mut entered = manager.enter()?;
        let lanes = Lanes::bind(&mut entered, item, header, options)?;
        drop(entered);
        Ok(Self {
            lanes,
            options,
            dropped: DropList::default(),
            manager: manager.hold(),
        })
    }

    /// The next call. Nothing if none came in time. Fails only if the host does: clients that come,
    /// vanish or misbehave are no error. Allocates when a client comes.
    pub fn next(&mut self, wait: Wait) -> Result<Option<Call<'_, H>>, ReceiveError> {
        let call_id = self.next_call_id(wait)?;
        Ok(call_id.map(|call_id| self.call(call_id)))
    }

    /// As [`Service::next`], for a task: it is woken when there may be a call
    /// ([`Manager::register_waker`]). Does not block. Allocates when a client comes.
    pub fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Call<'_, H>, ReceiveError>> {
        let call_id = self.poll_call(context);
        call_id.map_ok(|call_id| self.call(call_id))
    }

    /// As [`Service::next`], as a future; the manager must be driven ([`Manager::register_waker`]).
    /// If it is dropped, no call is lost.
    pub async fn next_async(&mut self) -> Result<Call<'_, H>, ReceiveError> {
        let call_id = poll_fn(|context| self.poll_call(context)).await?;
        Ok(self.call(call_id))
    }

    fn poll_call(&mut self, context: &Context<'_>) -> Poll<Result<CallId, ReceiveError>> {
        let (lanes, dropped) = (&mut self.lanes, &self.dropped);
        dropped.will_wake(context.waker());
        self.manager.poll_look_for(context, |session| {
            let found = look_for_call(lanes, dropped, session, &mut false)?;
            Ok(found.ok_or_else(|| lanes.interest()))
        })
    }

    fn next_call_id(&mut self, wait: Wait) -> Result<Option<CallId>, ReceiveError> {
        let (lanes, dropped) = (&mut self.lanes, &self.dropped);
        let mut is_tidy = false;
        let mut session = self.manager.enter()?;
        session.wait_within(&mut Waiting::new(wait), |session, waiting| {
            // Once while it polls, and before each sleep.
            is_tidy &= waiting.polls();
            look_for_call(lanes, dropped, session, &mut is_tidy)
        })
    }

    /// As [`Service::next`], for requests of one length; clients whose requests have another are
    /// told that they were dropped.
    pub(crate) fn next_of(
        &mut self,
        length_bytes: usize,
        wait: Wait,
    ) -> Result<Option<Call<'_, H>>, ReceiveError> {
        let mut waiting = Waiting::new(wait);
        loop {
            let left = self.manager.enter()?.left(&mut waiting);
            match self.next_call_id(left)? {
                Some(call_id) if !self.is_of(call_id, length_bytes) => self.drop_call(call_id),
                call_id => return Ok(call_id.map(|call_id| self.call(call_id))),
            }
        }
    }

    /// As [`Service::next_of`], as a future.
    pub(crate) async fn next_of_async(
        &mut self,
        length_bytes: usize,
    ) -> Result<Call<'_, H>, ReceiveError> {
        loop {
            let call_id = poll_fn(|context| self.poll_call(context)).await?;
            match self.is_of(call_id, length_bytes) {
                true => return Ok(self.call(call_id)),
                false => self.drop_call(call_id),
            }
        }
    }

    fn is_of(&self, call_id: CallId, length_bytes: usize) -> bool {
        let request = self.lanes.request(call_id);
        request.is_some_and(|request| request.len() == length_bytes)
    }

    fn call(&mut self, call_id: CallId) -> Call<'_, H> {
        Call {
            service: self,
            call_id,
            is_done: false,
        }
    }

    fn drop_call(&mut self, call_id: CallId) {
        drop(self.call(call_id));
    }

    /// The bytes of a call that was put off. Nothing if its client is gone.
    pub fn request(&self, call: &Deferred) -> Option<&[u8]> {
        let is_there = self.is_own(call);
        is_there.then(|| self.lanes.request(call.call_id)).flatten()
    }

    /// Answers a call that was put off. Does not block, as [`Call::reply`].
    pub fn reply(&mut self, mut call: Deferred, bytes: &[u8]) -> Result<Answered, ReplyError> {
        self.manager.check()?;
        self.check_length(bytes)?;
        let is_there = self.is_own(&call);
        call.is_done = is_there;
        if !is_there {
            return Ok(Answered::ClientGone);
        }
        self.answer(call.call_id, bytes)
    }

    /// Takes a client's lane away, with all that it has outstanding: its calls fail, and those it
    /// makes from now on. To keep it from connecting again, end its link
    /// ([`crate::Interface::disconnect`]) and name it in the access list no more. Whether there was
    /// one.
    pub fn dismiss(&mut self, client: LinkId) -> bool {
        let Ok(mut session) = self.manager.enter() else {
            return false;
        };
        let lanes = self.lanes.lanes_over(client);
        for &lane in &lanes {
            self.lanes.close(&mut session, lane);
        }
        !lanes.is_empty()
    }

    /// Clients that lost their lane because they broke the protocol.
    pub fn misbehaved(&self) -> u64 {
        self.lanes.lobby().misbehaved()
    }

    /// Whether a call that was put off is of this service, and its client is there.
    fn is_own(&self, call: &Deferred) -> bool {
        self.dropped.is(&call.dropped) && self.lanes.number(call.call_id) == Some(call.number)
    }

    fn check_length(&self, bytes: &[u8]) -> Result<(), ReplyError> {
        let limit_bytes = self.options.reply_bytes;
        if bytes.len() > limit_bytes as usize {
            return Err(ReplyError::TooLong {
                length_bytes: bytes.len(),
                limit_bytes,
            });
        }
        Ok(())
    }

    fn answer(&mut self, call_id: CallId, bytes: &[u8]) -> Result<Answered, ReplyError> {
        let mut session = self.manager.enter()?;
        let answered = self
            .lanes
            .answer(&mut session, call_id, Status::Answered, bytes)?;
        Ok(answered)
    }
}

/// The step of a wait for a call. Tidies once, if `is_tidy` does not say that it was done.
fn look_for_call<H: Host>(
    lanes: &mut Lanes,
    dropped: &DropList<(CallId, u32)>,
    session: &mut Session<'_, H>,
    is_tidy: &mut bool,
) -> Result<Option<CallId>, ReceiveError> {
    loop {
        let mut failed = Ok(());
        for (call_id, number) in dropped.take() {
            if lanes.number(call_id) == Some(number) {
                let answered = lanes.answer(session, call_id, Status::Dropped, &[]);
                failed = failed.and(answered.map(|_| ()));
            }
        }
        failed?;
        lanes.send_owed(session);
        if lanes.is_untidy(session) {
            lanes.tidy(session);
        }
        if let Some(call_id) = next_call(lanes, session) {
            return Ok(Some(call_id));
        }
        // Also for a good-bye that was among the arrivals: a task looks no more before something
        // else happens.
        if *is_tidy && !lanes.is_untidy(session) {
            return Ok(None);
        }
        *is_tidy = true;
        lanes.tidy(session);
    }
}

/// The next call that has come, if it is among so many arrivals: who sends what is no call does not
/// keep others waiting.
fn next_call<H: Host>(lanes: &mut Lanes, session: &mut Session<'_, H>) -> Option<CallId> {
    for _ in 0..FRUITLESS_MAX {
        if let Some(call_id) = lanes.next_ready(session) {
            return Some(call_id);
        }
        let arrival = session.core.next_arrival(lanes.class())?;
        lanes.take(session, arrival);
    }
    // There may be more, and a wait need not hear of them again.
    session.look_within(Duration::ZERO);
    lanes.next_ready(session)
}

impl<H: Host> fmt::Debug for Service<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("lobby", self.lanes.lobby())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<H: Host> Call<'_, H> {
    /// Who asks, as the kernel or the handshake vouches. Nothing if the client has just gone.
    pub fn client(&self) -> Option<PeerIdentity> {
        let link = self.service.lanes.link(self.call_id.lane)?;
        let mut manager = self.service.manager.enter().ok()?;
        manager.identity_of(link)
    }

    /// Whether the client has given the call up; what is computed for it is for nothing.
    pub fn is_cancelled(&self) -> bool {
        self.service.lanes.is_cancelled(self.call_id)
    }

    /// Answers with these bytes. Does not block: if there is no room, they are copied, and go when
    /// there is, while the service is asked for calls. If it is dropped before, they go before its
    /// client hears of that, in later calls of the manager ([`Session::flush`]); but a client that
    /// has had no answer yet, and is refused another call meanwhile, gives up.
    pub fn reply(mut self, bytes: &[u8]) -> Result<Answered, ReplyError> {
        self.service.manager.check()?;
        self.service.check_length(bytes)?;
        self.is_done = true;
        self.service.answer(self.call_id, bytes)
    }

    /// Puts the call off, to be answered with [`Service::reply`].
    pub fn defer(mut self) -> Deferred {
        self.is_done = true;
        Deferred {
            call_id: self.call_id,
            number: self.service.lanes.number(self.call_id).unwrap_or_default(),
            is_done: false,
            dropped: self.service.dropped.clone(),
        }
    }
}

impl<H: Host> Deref for Call<'_, H> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.service.lanes.request(self.call_id).unwrap_or(&[])
    }
}

impl<H: Host> Drop for Call<'_, H> {
    fn drop(&mut self) {
        if !self.is_done {
            let Service { lanes, manager, .. } = &mut *self.service;
            let Ok(mut session) = manager.enter() else {
                return;
            };
            // The next call of the service fails if the host does.
            let _ = lanes.answer(&mut session, self.call_id, Status::Dropped, &[]);
        }
    }
}

impl<H: Host> fmt::Debug for Call<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Call").field(&&**self).finish()
    }
}

from_forked! {
    ReplyError: Self::Host;
}

//! The calling end of a service.

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::ops::Deref;
use std::rc::Rc;

use hamlyn_host::Host;
use hamlyn_host::process::ProcessHost;

use super::calls::{Calls, Note, Pending, State};
use super::error::CallError;
use super::wire::Word;
use crate::drop_list::DropList;
use crate::error::ConnectError;
use crate::item::{EndPoint, ItemHeader};
use crate::manager::{Manager, ManagerRef};
use crate::session::Session;
use crate::wait::{Wait, Waiting};

/// The calling end. See [the module](crate::service).
pub struct Client<H: Host = ProcessHost> {
    calls: Calls,
    manager: ManagerRef<H>,
}

/// A reply, where it landed. It reads as its bytes, which lie from a multiple of 64 on, also if
/// there are none.
pub struct Reply<'a, H: Host = ProcessHost> {
    client: &'a mut Client<H>,
    index: u16,
    length_bytes: u32,
}

impl<H: Host> Reply<'_, H> {
    /// Keeps it beyond the next call. Until that is dropped, the client may have one call less
    /// outstanding.
    pub fn keep(self) -> Kept {
        let (index, length_bytes) = (self.index, self.length_bytes);
        let calls = &mut self.client.calls;
        calls.set(index, State::Kept);
        let notes = calls.notes.clone();
        // Its drop would free the buffer.
        std::mem::forget(self);
        Kept {
            index,
            length_bytes,
            notes,
            in_thread: PhantomData,
        }
    }
}

/// A reply that is kept ([`Reply::keep`]); [`Client::view`] shows it. When this is dropped, its
/// buffer is free for another call at the client's next call. It stays in its thread, so that the
/// client does not wait asleep for that buffer.
#[derive(Debug)]
pub struct Kept {
    index: u16,
    length_bytes: u32,
    notes: DropList<Note>,
    in_thread: PhantomData<Rc<()>>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.notes.note(Note::GivenBack(self.index));
    }
}

impl<H: Host> Deref for Reply<'_, H> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let replies = &self.client.calls.replies;
        replies.view(self.index, self.length_bytes).unwrap_or(&[])
    }
}

impl<H: Host> Drop for Reply<'_, H> {
    fn drop(&mut self) {
        self.client.calls.set(self.index, State::Free);
    }
}

impl<H: Host> fmt::Debug for Reply<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reply").field(&&**self).finish()
    }
}

impl<H: Host> Client<H> {
    pub(crate) fn connect(
        manager: &Manager<H>,
        to: EndPoint<'_>,
        header: ItemHeader,
        wait: Wait,
    ) -> Result<Self, ConnectError> {
        let address = to.address().to_owned();
        let connect = |session: &mut Session<'_, H>, seed: &[u8], left| {
            let calls = Calls::grow(session, &address, seed, left)?;
            let greeted = *calls.requests.target();
            Ok((calls, Some(greeted)))
        };
        Ok(Self {
            calls: manager.enter()?.connect_to(to, header, wait, connect)?,
            manager: manager.hold(),
        })
    }

    /// Sends a request, and waits for the reply. Blocks for as long as `wait` says; the call is
    /// cancelled when the time is over.
    pub fn call(&mut self, request: &[u8], wait: Wait) -> Result<Reply<'_, H>, CallError> {
        let mut waiting = Waiting::new(wait);
        // From now on, not from the first look that finds nothing.
        let wait = self.manager.enter()?.left(&mut waiting);
        let call = self.start(request, wait)?;
        let left = self.manager.enter()?.left(&mut waiting);
        match self.await_reply(&call, left)? {
            Some(word) => Ok(Reply {
                index: call.index,
                length_bytes: word.length_bytes,
                client: self,
            }),
            None => Err(self.calls.timed_out()),
        }
    }

    /// Sends a request without waiting for the reply. Blocks, for as long as `wait` says, only if
    /// as many calls are outstanding as may be, or if there is no room to send. Allocates if the
    /// link has no room, or to copy what is longer than a packet.
    pub fn start(&mut self, request: &[u8], wait: Wait) -> Result<Pending, CallError> {
        self.manager.check()?;
        let calls = &mut self.calls;
        calls.check_length(request)?;
        let started = self
            .manager
            .enter()?
            .wait_for_room(wait, |session| calls.look_for_room(session, request));
        started?.ok_or_else(|| calls.no_room())
    }

    /// Waits for the reply to a call. Nothing if it did not come in time; the call goes on, until
    /// it is dropped.
    pub fn reply(&mut self, call: &Pending, wait: Wait) -> Result<Option<Reply<'_, H>>, CallError> {
        let awaited = self.await_reply(call, wait)?;
        Ok(awaited.map(|word| Reply {
            index: call.index,
            length_bytes: word.length_bytes,
            client: self,
        }))
    }

    fn await_reply(&mut self, call: &Pending, wait: Wait) -> Result<Option<Word>, CallError> {
        let calls = &mut self.calls;
        let mut session = self.manager.enter()?;
        session.wait_for(wait, |session| calls.look_for_reply(session, call))
    }

    /// As [`Client::call`], as a future; the manager must be driven ([`Manager::register_waker`]).
    /// If it is dropped before it is done, the call is cancelled, of which its server learns at the
    /// client's next call.
    pub async fn call_async(&mut self, request: &[u8]) -> Result<Reply<'_, H>, CallError> {
        let call = self.start_async(request).await?;
        self.reply_async(&call).await
    }

    /// As [`Client::start`], as a future; the manager must be driven. If it is dropped before it is
    /// done, nothing is sent.
    pub async fn start_async(&mut self, request: &[u8]) -> Result<Pending, CallError> {
        self.manager.check()?;
        let calls = &mut self.calls;
        calls.check_length(request)?;
        poll_fn(|context| {
            calls.notes.will_wake(context.waker());
            let start = |session: &mut Session<'_, H>| calls.look_for_room(session, request);
            self.manager.poll_look(context, start)
        })
        .await
    }

    /// As [`Client::reply`], as a future; the manager must be driven. If it is dropped, the call
    /// goes on until `call` is dropped.
    pub async fn reply_async(&mut self, call: &Pending) -> Result<Reply<'_, H>, CallError> {
        let calls = &mut self.calls;
        let mut look = |session: &mut Session<'_, H>| {
            let found = calls.look_for_reply(session, call)?;
            Ok::<_, CallError>(found.ok_or_else(|| calls.interest()))
        };
        let word = poll_fn(|context| self.manager.poll_look_for(context, &mut look)).await?;
        Ok(Reply {
            index: call.index,
            length_bytes: word.length_bytes,
            client: self,
        })
    }

    /// The bytes of a reply that is kept. Nothing if it is another client's.
    pub fn view(&self, kept: &Kept) -> Option<&[u8]> {
        let calls = &self.calls;
        let is_ours = calls.notes.is(&kept.notes);
        is_ours.then(|| calls.replies.view(kept.index, kept.length_bytes))?
    }

    /// The address of the service.
    pub fn to(&self) -> &str {
        &self.calls.to
    }

    /// Calls that may be outstanding at a time.
    pub fn outstanding_max(&self) -> u16 {
        self.calls.seed.outstanding
    }

    /// Bytes of the longest request.
    pub fn request_bytes_max(&self) -> u32 {
        self.calls.seed.request_bytes
    }
}

impl<H: Host> fmt::Debug for Client<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("to", &self.calls.to)
            .finish_non_exhaustive()
    }
}

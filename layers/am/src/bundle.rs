//! Bundles: endpoints that are polled together, and waited for (`V 3.1`).

use std::rc::Rc;

use hamlyn::host::process::ProcessHost;
use hamlyn::{Host, NewPort, Wait};

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::name::{Introduction, Tag};
use crate::port::{ENDPOINTS_MAX, EndpointState, Receiving};
use crate::shared::Shared;
use crate::translation::Translation;

/// The event that [`Bundle::wait`] waits for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Events {
    /// A message for an endpoint of the bundle is there: a request, a reply, or one that came back
    /// (`AM_NOTEMPTY`).
    NotEmpty,
    /// A request can be sent over that translation: it has a credit, and its link a record
    /// (`AM_CANSEND`). Or a message is there, as a reply gives its credit back when its handler has
    /// run.
    CanSend(Translation),
}

/// A bundle of endpoints (`AM_SEQ`): one thread polls it, and its handlers run one after the other.
/// Endpoints of a bundle that is dropped stay in it, and are polled by calls that wait.
pub struct Bundle<H: Host = ProcessHost> {
    shared: Rc<Shared<H>>,
    number: u32,
}

impl<H: Host> Drop for Bundle<H> {
    fn drop(&mut self) {
        self.shared.dropped.bundle(self.number);
        // At once, unless a handler runs.
        if let Ok((mut node, mut session)) = self.shared.enter() {
            let _ = node.clean_up(&mut session);
        }
    }
}

impl<H: Host> Bundle<H> {
    pub(crate) fn new(shared: Rc<Shared<H>>, number: u32) -> Self {
        Self { shared, number }
    }

    /// A new endpoint, with [`Tag::None`], without handlers and segment. A node has 32,767 at most.
    /// It is resident if a frame is free. Allocates.
    pub fn endpoint(&self) -> Result<Endpoint<H>, Error> {
        let (mut node, mut session) = self.shared.enter()?;
        node.clean_up(&mut session)?;
        let id = node.state.endpoints.next().ok_or(Error::TooMany {
            what: "endpoints",
            most: ENDPOINTS_MAX,
        })?;
        let mut secret = [0; 16];
        for half in secret.chunks_mut(8) {
            half.copy_from_slice(&session.new_key()?.to_bits().to_le_bytes());
        }
        let options = node.state.traffic.options;
        let new = NewPort::new()
            .handlers(1 << 12)
            .queue_bytes(options.queue_bytes);
        // Its key is random, which no tag has.
        let port = session.open_port(new)?;
        let is_resident = node.residence.open(id.index);
        if !is_resident {
            session.park_port(&port, true)?;
        }
        let introduction = Introduction::new(&port.ticket(), secret, &node.replies.ticket());
        node.state.endpoints.insert(EndpointState {
            port,
            receiving: Receiving {
                id,
                ..Receiving::default()
            },
            translations: Default::default(),
            bundle: self.number,
            tag: Tag::None,
            introduction,
            outstanding: 0,
            is_resident,
            stay: Default::default(),
            knockers: Vec::new(),
        });
        if let Some(bundle) = node.state.bundle(self.number) {
            bundle.endpoints.push(id.index);
        }
        node.place(&mut session, id)?;
        drop(node);
        Ok(Endpoint::new(Rc::clone(&self.shared), id))
    }

    /// Moves an endpoint to this bundle, with all that waits for it (`AM_MoveEndpoint`). Its name
    /// stays. Allocates.
    pub fn adopt(&self, endpoint: &Endpoint<H>) -> Result<(), Error> {
        if !endpoint.is_of(&self.shared) {
            return Err(Error::OtherNode { what: "endpoint" });
        }
        let id = endpoint.id();
        let (mut node, mut session) = self.shared.enter()?;
        let state = &mut node.state;
        let Some(moved) = state.endpoints.get(id) else {
            return Ok(());
        };
        let from = std::mem::replace(&mut moved.bundle, self.number);
        if from == self.number {
            return Ok(());
        }
        let (stashed, to_return) = state.leave_bundle(id, from);
        if let Some(bundle) = state.bundle(self.number) {
            bundle.endpoints.push(id.index);
            bundle.stashed.extend(stashed);
            to_return
                .into_iter()
                .for_each(|message| bundle.push_return(message));
        }
        node.place(&mut session, id)
    }

    /// Runs the handlers of messages that are there, 64 at most, and returns messages that came
    /// back; how many. Endpoints with messages take turns, of [`visit`](crate::NodeOptions::visit)
    /// messages each. Messages that are there are found by each poll, and what else there is to
    /// attend to by every fourth. Does not wait (`AM_Poll`).
    ///
    /// # Errors
    ///
    /// The first error of a handler, when all handlers have run.
    #[inline]
    pub fn poll(&self) -> Result<usize, Error> {
        let (mut node, mut session) = self.shared.enter()?;
        node.poll(&mut session, self.number)
    }

    /// Waits until there are messages, and runs their handlers; how many, none if none came in
    /// time. It polls for a while, and then sleeps.
    pub fn serve(&self, wait: Wait) -> Result<usize, Error> {
        let served = self.shared.wait_until(wait, |node, session, looks| {
            let count = node.poll_in_wait(session, self.number, looks)?;
            Ok((count > 0).then_some(count))
        })?;
        Ok(served.unwrap_or(0))
    }

    /// Runs handlers until `holds`, which is asked first and after each poll, and must not use this
    /// node. False if it does not hold when the time is over. Polls for a while, and then sleeps.
    pub fn serve_until(&self, wait: Wait, mut holds: impl FnMut() -> bool) -> Result<bool, Error> {
        let held = self
            .shared
            .wait_for(self.number, wait, |_, _| Ok(holds().then_some(())))?;
        Ok(held.is_some())
    }

    /// Waits for an event, and runs no handlers (`AM_WaitSema`). False if there was none in time.
    pub fn wait(&self, events: Events, wait: Wait) -> Result<bool, Error> {
        let found = self.shared.wait_until(wait, |node, session, looks| {
            let is_there = node.has_messages(session, self.number, looks)?
                || match &events {
                    Events::NotEmpty => false,
                    Events::CanSend(over) => node.state.can_send(over)?,
                };
            Ok(is_there.then_some(()))
        })?;
        Ok(found.is_some())
    }
}

impl<H: Host> std::fmt::Debug for Bundle<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bundle")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

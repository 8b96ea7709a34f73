//! A node as its bundles and endpoints hold it, and the one place of the layer that waits.

use std::cell::{RefCell, RefMut};
use std::rc::Rc;

use hamlyn::{Host, Manager, Session, Wait};

use crate::dropped::Dropped;
use crate::error::Error;
use crate::poll::NodeState;

pub(crate) struct Shared<H: Host> {
    pub(crate) manager: Manager<H>,
    pub(crate) node: RefCell<NodeState>,
    pub(crate) dropped: Rc<Dropped>,
}

impl<H: Host> Shared<H> {
    /// The node in hand, unless a handler runs.
    #[inline]
    pub(crate) fn enter(&self) -> Result<(RefMut<'_, NodeState>, Session<'_, H>), Error> {
        let node = self.node.try_borrow_mut().map_err(|_| Error::InHandler)?;
        Ok((node, self.manager.session()))
    }

    /// Looks until one finds something; each is told how many were before. Nothing if none has when
    /// the time is over.
    pub(crate) fn wait_until<T>(
        &self,
        wait: Wait,
        mut look: impl FnMut(&mut NodeState, &mut Session<'_, H>, u32) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let (mut node, mut session) = self.enter()?;
        let mut looks = 0;
        session.wait_for(wait, |session| {
            let found = look(&mut node, session, looks)?;
            looks = looks.saturating_add(1);
            Ok(found)
        })
    }

    /// Polls that bundle until `step` finds something. Nothing if it has not when the time is over.
    pub(crate) fn wait_for<T>(
        &self,
        bundle: u32,
        wait: Wait,
        mut step: impl FnMut(&mut NodeState, &mut Session<'_, H>) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        self.wait_until(wait, |node, session, looks| {
            if let Some(found) = step(node, session)? {
                return Ok(Some(found));
            }
            node.poll_in_wait(session, bundle, looks)?;
            // It may have found room, or the end of the peer.
            step(node, session)
        })
    }
}

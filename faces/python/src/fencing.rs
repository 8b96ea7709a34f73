//! Fences of one link of the lower layer.
//!
//! The library's own call, `Interface::fence_link`, has the manager to itself while it waits, and has no form for tasks. The fence of a
//! sender is that of its link, lets others use the manager, and has one. So a sender is made over the link, which sends nothing.

use hamlyn::Wait;
use hamlyn::datagram::Sender;
use hamlyn::engine::counting::Counting;
use hamlyn::engine::key::Key;
use hamlyn::engine::packet::SlotName;
use hamlyn::error::FenceError;
use pyo3::prelude::*;

use crate::aio;
use crate::error::Failure;
use crate::gate::Guarded;
use crate::manager::Manager;
use crate::peer::Peer;
use crate::slot::Target;
use crate::waiting::{Timeout, fence};
use crate::{Handle, Host};

/// The other end of a link, as programs name it.
#[derive(FromPyObject)]
pub(crate) enum Linked<'py> {
    Target(PyRef<'py, Target>),
    Peer(PyRef<'py, Peer>),
}

/// A sender by which the link is fenced; nothing if the link has ended and there is nothing to tell of it.
fn fencing(manager: &Handle, to: &Linked<'_>) -> Result<Option<Sender<Host>>, Failure> {
    let (link, destination) = match to {
        Linked::Target(target) => (target.0.link(), target.0.ticket().destination),
        Linked::Peer(peer) => (peer.identity.link, peer.identity.interface),
    };
    {
        let mut interface = manager.interface();
        let peer = interface.identity_of(link);
        // Another manager's link may have the same number.
        if peer.is_none_or(|peer| peer.interface != destination) {
            return Err(FenceError::NoSuchLink.into());
        }
        if interface.link_end(link).is_some() {
            interface.fence_link(link, Wait::Poll)?;
            return Ok(None);
        }
    }
    let nowhere = hamlyn::Ticket {
        destination,
        slot: SlotName::from_bits(0),
        metadata_index: 0,
        key: Key::from_bits(0),
        base: 0,
        length_bytes: 0,
        counting: Counting::default(),
    };
    Ok(Some(Sender::grow(manager, &nowhere, Wait::Poll)?))
}

/// Waits until everything that was sent over the link is in its place.
pub(crate) fn wait(
    py: Python<'_>,
    manager: &Guarded<Handle>,
    to: &Linked<'_>,
    timeout: Option<Timeout>,
) -> PyResult<()> {
    let Some(link) = fencing(&*manager.enter()?, to)? else {
        return Ok(());
    };
    fence(py, manager, timeout, |_, wait| Ok(link.fence(wait)?))
}

/// The same as a coroutine.
pub(crate) fn begin<'py>(
    owner: &Bound<'py, Manager>,
    manager: &Guarded<Handle>,
    to: &Linked<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    let link = fencing(&*manager.enter()?, to)?;
    let future = Box::pin(async move {
        match link {
            Some(link) => Ok(link.fence_async().await?),
            None => Ok(()),
        }
    });
    aio::drive(owner, manager.gate(), future, false)
}

//! Fences of one link of the lower layer.

use hamlyn::engine::memory::LinkId;
use hamlyn::error::FenceError;
use pyo3::prelude::*;

use crate::aio;
use crate::error::Failure;
use crate::gate::Guarded;
use crate::host::Handle;
use crate::manager::Manager;
use crate::peer::Peer;
use crate::slot::Target;
use crate::waiting::{Timeout, fence};

/// The other end of a link, as programs name it.
#[derive(FromPyObject)]
pub(crate) enum Linked<'py> {
    Target(PyRef<'py, Target>),
    Peer(PyRef<'py, Peer>),
}

/// The link, if it is one of that manager. Another manager's link may have the same number.
pub(crate) fn link_of(manager: &Handle, to: &Linked<'_>) -> Result<LinkId, Failure> {
    let (link, destination) = match to {
        Linked::Target(target) => (target.0.link(), target.0.ticket().destination),
        Linked::Peer(peer) => (peer.identity.link, peer.identity.interface),
    };
    match manager.session().identity_of(link) {
        Some(peer) if peer.interface == destination => Ok(link),
        _ => Err(FenceError::NoSuchLink.into()),
    }
}

/// Waits until everything that was sent over the link is in its place.
pub(crate) fn wait(
    py: Python<'_>,
    manager: &Guarded<Handle>,
    to: &Linked<'_>,
    timeout: Option<Timeout>,
) -> PyResult<()> {
    let link = link_of(&*manager.enter()?, to)?;
    fence(py, manager, timeout, |it, wait| {
        Ok(it.session().fence_link(link, wait)?)
    })
}

/// The same as a coroutine.
pub(crate) fn begin<'py>(
    owner: &Bound<'py, Manager>,
    manager: &Guarded<Handle>,
    to: &Linked<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    let future = {
        let it = manager.enter()?;
        it.fence_link_async(link_of(&it, to)?)
    };
    let future = Box::pin(async move { Ok(future.await?) });
    aio::drive(owner, manager.gate(), future, false)
}

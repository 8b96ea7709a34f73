//! Fences of a manager and its senders, as calls and as futures (decision 20).

use std::future::poll_fn;

use hamlyn_engine::memory::LinkId;
use hamlyn_host::{Host, HostError};

use crate::error::FenceError;
use crate::interface::fence::Fence;
use crate::manager::{Manager, ManagerRef};
use crate::message::Target;
use crate::session::Session;
use crate::wait::Wait;

impl<H: Host> Manager<H> {
    /// Waits until everything that was accepted before is in its place at its receivers, or says
    /// what is not: [`Session::fence`]. Other threads may use the manager meanwhile.
    pub fn fence(&self, wait: Wait) -> Result<(), FenceError> {
        self.enter()?.fence(wait)
    }

    /// As [`Manager::fence`], as a future, for what was accepted before it was first polled. An
    /// event loop or a task must drive the manager ([`Manager::register_waker`]). If it is dropped
    /// before it is done, the next fence tells what it would have told.
    pub async fn fence_async(&self) -> Result<(), FenceError> {
        self.hold()
            .fenced(|session| Ok(session.begin_fence()))
            .await
    }

    /// As [`Session::fence_link`], as a future like that of [`Manager::fence_async`], which has a
    /// handle of its own.
    pub fn fence_link_async(
        &self,
        link: LinkId,
    ) -> impl Future<Output = Result<(), FenceError>> + use<H> {
        self.hold()
            .fenced(move |session| session.begin_fence_of(link))
    }
}

impl<H: Host> ManagerRef<H> {
    /// As [`Session::fence_to`], as a future.
    pub(crate) async fn fence_async(&self, target: &Target) -> Result<(), FenceError> {
        let (link, to) = (target.link(), target.ticket().destination);
        // One that waits has a handle of its own.
        let begin = |session: &mut Session<'_, H>| Ok(session.begin_fence_to(link, to));
        self.clone().fenced(begin).await
    }

    async fn fenced(
        self,
        begin: impl FnOnce(&mut Session<'_, H>) -> Result<Fence, FenceError>,
    ) -> Result<(), FenceError> {
        let mut fence = {
            let mut session = self.enter()?;
            session.core.reap();
            begin(&mut session)?
        };
        let mut look = |session: &mut Session<'_, H>| {
            let is_over = session.continue_fence(&mut fence);
            session.wake_sleepers_if_active();
            session.wake_sleepers_for_credit();
            Ok::<_, HostError>(match is_over {
                true => Ok(()),
                false => Err(fence.interest()),
            })
        };
        poll_fn(|context| self.poll_look_for(context, &mut look)).await?;
        self.enter()?.end_fence(fence)
    }
}

//! Fences of a manager and its senders; other threads and tasks use the manager while one waits (decision 0020).

use std::future::poll_fn;

use hamlyn_engine::memory::LinkId;
use hamlyn_host::{Host, HostError};

use crate::error::FenceError;
use crate::interface::{Fence, fence, run_fence};
use crate::manager::{Entered, Holder, Manager};
use crate::message::Target;
use crate::wait::Wait;

impl<H: Host> Manager<H> {
    /// Waits until everything that was accepted before is in its place at its receivers, or says what is not. See
    /// [`Interface::fence`]; other threads may use the manager meanwhile.
    ///
    /// [`Interface::fence`]: crate::Interface::fence
    pub fn fence(&self, wait: Wait) -> Result<(), FenceError> {
        let mut core = self.enter()?;
        core.reap();
        fence(&mut core, wait)
    }

    /// As [`Manager::fence`], as a future, for what was accepted before it was first polled. An event loop or a task must drive the
    /// manager ([`Manager::register_waker`]). If it is dropped before it is done, the next fence tells what it would have told.
    pub async fn fence_async(&self) -> Result<(), FenceError> {
        let begin = |core: &mut Entered<'_, H>| Ok(core.interface.begin_fence());
        self.hold().fenced(begin).await
    }

    /// As [`Interface::fence_link`], as a future like that of [`Manager::fence_async`], which has a handle of its own.
    ///
    /// [`Interface::fence_link`]: crate::Interface::fence_link
    pub fn fence_link_async(
        &self,
        link: LinkId,
    ) -> impl Future<Output = Result<(), FenceError>> + use<H> {
        let begin = move |core: &mut Entered<'_, H>| core.interface.begin_fence_of(link);
        self.hold().fenced(begin)
    }
}

impl<H: Host> Holder<H> {
    /// As [`Entered::fence_to`], as a future.
    pub(crate) async fn fence_async(&self, target: &Target) -> Result<(), FenceError> {
        let begin = |core: &mut Entered<'_, H>| Ok(core.begin_fence_to(target));
        // One that waits has a handle of its own.
        self.clone().fenced(begin).await
    }

    async fn fenced(
        self,
        begin: impl FnOnce(&mut Entered<'_, H>) -> Result<Fence, FenceError>,
    ) -> Result<(), FenceError> {
        let mut fence = {
            let mut core = self.enter()?;
            core.reap();
            begin(&mut core)?
        };
        let mut look = |core: &mut Entered<'_, H>| {
            let is_over = core.interface.continue_fence(&mut fence);
            core.interface.wake_sleepers_if_active();
            core.interface.wake_sleepers_for_credit();
            Ok::<_, HostError>(is_over.then_some(()))
        };
        poll_fn(|context| self.poll_look(context, &mut look)).await?;
        self.enter()?.interface.end_fence(fence)
    }
}

impl<H: Host> Entered<'_, H> {
    /// As [`Manager::fence`], for what was sent to the interface of that target.
    pub(crate) fn fence_to(&mut self, target: &Target, wait: Wait) -> Result<(), FenceError> {
        self.reap();
        let fence = self.begin_fence_to(target);
        run_fence(self, fence, wait)
    }

    fn begin_fence_to(&mut self, target: &Target) -> Fence {
        let (link, to) = (target.link(), target.ticket().destination);
        self.interface.begin_fence_to(link, to)
    }
}

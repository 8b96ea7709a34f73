//! A session waits for fences: until what was sent is in its place (decision 0020).

use hamlyn_engine::memory::LinkId;
use hamlyn_host::{Host, HostError};

use super::Session;
use crate::error::FenceError;
use crate::interface::fence::Fence;
use crate::message::Target;
use crate::wait::Wait;

impl<H: Host> Session<'_, H> {
    /// Waits until everything that was accepted before is in its place at all its receivers: each
    /// packet was deposited and counted there, or refused. An error names the packets that were
    /// refused since the fence before, or the peer that did not answer in time, or the peer that
    /// was gone before it had taken everything: one that ended after that needs no answer. If
    /// several of these happened, the error names the first, and the next fence the others. Bytes
    /// that were stored into attached regions are in their place when their announcement is.
    ///
    /// Blocks for as long as `wait` says; arriving packets are taken in meanwhile. A receiver
    /// answers when its interface takes packets: in its program's calls, or whenever with a network
    /// processor. Allocates.
    pub fn fence(&mut self, wait: Wait) -> Result<(), FenceError> {
        self.check()?;
        self.core.reap();
        let fence = self.begin_fence();
        self.await_fence(fence, wait)
    }

    /// As [`Session::fence`], for what was sent to that link. Refusals are told whichever sender of
    /// this interface sent to that link.
    pub fn fence_link(&mut self, link: LinkId, wait: Wait) -> Result<(), FenceError> {
        self.check()?;
        let fence = self.begin_fence_of(link)?;
        self.await_fence(fence, wait)
    }

    /// As [`Session::fence`], for what was sent to the interface of that target.
    pub(crate) fn fence_to(&mut self, target: &Target, wait: Wait) -> Result<(), FenceError> {
        self.core.reap();
        let fence = self.begin_fence_to(target.link(), target.ticket().destination);
        self.await_fence(fence, wait)
    }

    /// Waits for a fence that was begun.
    fn await_fence(&mut self, mut fence: Fence, wait: Wait) -> Result<(), FenceError> {
        self.wait_for(wait, |session| {
            let is_over = session.continue_fence(&mut fence);
            Ok::<_, HostError>(is_over.then_some(()))
        })?;
        self.end_fence(fence)
    }
}

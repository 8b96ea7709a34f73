//! Messages that are one packet and go at once, the shortest way (decision 0004).
//!
//! Nothing is refused here: what cannot go this way is left to [`Transmitter::post`] and
//! [`Transmitter::post_placed`], which send it, queue it, or name the reason.

use crate::memory::{Area, LinkId, Outlet};
use crate::packet::Single;
use crate::terminus::{SendHandle, TerminusId};

use super::Transmitter;

impl<A: Area> Transmitter<A> {
    /// As [`Transmitter::post`], or if its data are in their place [`Transmitter::post_placed`], for a message that is a
    /// single packet; `data` are as many as it says, or none. Nothing if it cannot go at once, for whatever
    /// reason. Never blocks, never allocates.
    #[inline(always)]
    pub fn post_single<O: Outlet<A>>(
        &mut self,
        id: TerminusId,
        link: LinkId,
        single: &Single,
        data: &[u8],
        outlet: &mut O,
    ) -> Option<SendHandle> {
        if !self.sends_at_once(id) {
            return None;
        }
        if !outlet.offer_single(link, single, data) {
            return None;
        }
        let terminus = self.termini.get_mut(id.0 as usize)?.as_mut()?;
        Some(SendHandle {
            terminus: id,
            sequence: terminus.sent_at_once(),
        })
    }

    /// Whether nobody waits and there is such a terminus: then a packet goes at once if its link has room.
    #[inline(always)]
    pub fn sends_at_once(&self, id: TerminusId) -> bool {
        self.queued == 0 && matches!(self.termini.get(id.0 as usize), Some(Some(_)))
    }
}

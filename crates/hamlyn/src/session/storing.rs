//! Signaling stores (decision 37; `Split-C 2`): bytes are put into the memory of a target, which is
//! told how many came, and their sender is not. They are messages with a metadata entry, in whose
//! accumulator each counts as many as it has bytes.

use hamlyn_engine::counting::{Counting, Share};
use hamlyn_engine::limits::FAST_INDEX;
use hamlyn_engine::terminus::TerminusId;
use hamlyn_host::Host;

use super::Session;
use crate::error::SendError;
use crate::message::{Message, Target};
use crate::wait::Wait;

impl<H: Host> Session<'_, H> {
    /// Stores `bytes` at `offset` of the ticket's place. The target counts them
    /// ([`Slot::stored_bytes`](crate::Slot::stored_bytes)) under the entry that the ticket names,
    /// all of them by the time when all are there; nothing comes back. The ticket must be one of a
    /// slot [that counts stores](crate::NewSlot::counting_stores). Waits for room as
    /// [`Session::send_msg`] does. Stores of several packets may land in any order; a fence
    /// ([`crate::Manager::fence`]) tells when all that was stored is there.
    #[inline]
    pub fn store(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        offset: u64,
        bytes: &[u8],
        wait: Wait,
    ) -> Result<(), SendError> {
        self.check()?;
        let ticket = &target.ticket;
        if ticket.metadata_index == FAST_INDEX || ticket.counting != Counting::Bits64 {
            return Err(SendError::NotCounted {
                peer: ticket.destination,
            });
        }
        let Some(minus_one) = (bytes.len() as u64).checked_sub(1) else {
            // Nothing is stored nor counted, but a place that is not there is an error still.
            ticket.place(offset, 0)?;
            return Ok(());
        };
        let message = Message {
            share: Share::from_minus_one(minus_one, Counting::Bits64),
            ..Message::new(bytes).at(offset)
        };
        self.send_msg(terminus, target, &message, wait).map(drop)
    }
}

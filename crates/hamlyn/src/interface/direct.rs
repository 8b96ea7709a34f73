//! One-sided operations in attached regions ([`crate::region`]): loads, stores and locked
//! instructions of this process. Bounds and rights are those of the ticket and of the region.

use hamlyn_engine::refusal::Refusal;
use hamlyn_host::Host;
use hamlyn_ring::area::Area;
use hamlyn_ring::shared::{DirectWindow, OutOfRange};

use super::Interface;
use super::initiators::Asking;
use super::pieces::Pieces;
use crate::one_sided::{Atomic, Initiator, OperationError};

/// What a target says of an operation that does not fit its bounds, its rights or the alignment of
/// words.
fn refusal(window: &DirectWindow, writes: bool, offset: u64, length_bytes: u64) -> Refusal {
    let end = offset.checked_add(length_bytes);
    if end.is_none_or(|end| end > window.length_bytes()) {
        Refusal::OutOfBounds
    } else if writes && !window.is_writable() {
        Refusal::NoRight
    } else {
        Refusal::Misaligned
    }
}

/// Carries out an operation on pieces of the window, and says what a word was.
pub(super) fn carry_out(
    window: &DirectWindow,
    asking: &Asking<'_>,
    landing: &Area,
    pieces: &Pieces<'_>,
) -> Result<u64, Refusal> {
    let mut position = 0;
    let mut before = 0;
    while position < pieces.length_bytes {
        let (offset, bytes) = pieces.at(position);
        let done = match asking {
            Asking::Read(to) => window.read_to(offset, landing, to + position, bytes),
            Asking::Put(all) => {
                window.write(offset, &all[position as usize..(position + bytes) as usize])
            }
            Asking::Atomic(atomic) => window.change(offset, atomic).map(|found| before = found),
        };
        let writes = !matches!(asking, Asking::Read(_));
        done.map_err(|OutOfRange| refusal(window, writes, offset, bytes))?;
        position += bytes;
    }
    Ok(before)
}

impl<H: Host> Interface<H> {
    /// The window through which an initiator operates, if there is one that lasts.
    #[inline(always)]
    pub(super) fn direct<'a>(&mut self, initiator: &'a Initiator) -> Option<&'a DirectWindow> {
        let window = initiator.direct.get()?;
        // A program that does nothing else hears of the end of its peer here.
        self.drain_events_if_asked();
        window.lasts().then_some(window)
    }

    /// Reads a word, if that can be done in memory.
    #[inline(always)]
    pub(crate) fn read_word_direct(&mut self, initiator: &Initiator, offset: u64) -> Option<u64> {
        self.direct(initiator)?.load_u64(offset).ok()
    }

    /// Puts bytes, if that can be done in memory; whether it could.
    #[inline(always)]
    pub(crate) fn put_direct(&mut self, initiator: &Initiator, offset: u64, bytes: &[u8]) -> bool {
        let window = self.direct(initiator);
        window.is_some_and(|window| window.write(offset, bytes).is_ok())
    }

    /// Changes a word, if that can be done in memory.
    #[inline(always)]
    pub(crate) fn change_direct(
        &mut self,
        initiator: &Initiator,
        offset: u64,
        atomic: &Atomic,
    ) -> Option<u64> {
        self.direct(initiator)?.change(offset, atomic).ok()
    }

    /// Reads bytes at `offset` of the ticket's place to where the caller wants them, if that can be
    /// done in memory; whether it could.
    #[inline]
    pub(crate) fn read_direct(
        &mut self,
        initiator: &Initiator,
        offset: u64,
        into: &mut [u8],
    ) -> Result<bool, OperationError> {
        let length_bytes = into.len() as u64;
        initiator.target.ticket.place(offset, length_bytes)?;
        let window = self.direct(initiator);
        Ok(window.is_some_and(|window| window.read(offset, into).is_ok()))
    }
}

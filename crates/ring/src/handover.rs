//! The owner of each piece of a handover area (`Hamlyn 2.7`: after a
//! one-shot entry has fired, its memory belongs to the application until it is armed again).
//!
//! A piece is *open* (the interface may write it) or *held* (the application
//! reads it, by reference). The application opens pieces, which needs its one
//! [`ReleaseToken`] mutably; the interface gives them back when a message is complete.
//!
//! Refused: any write that touches a piece which is not open.
//!
//! Between a writer's look at a state and its last byte, no piece may become held. So a thread that
//! writes or completes must hold the one [`WriteToken`] of the pieces, which can move between
//! threads but not be shared by them: nothing needs to be locked, and a message
//! costs a load and a store. A guard around both was tried; its two exchanges per message
//! took longer than all checks of reception.

use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

use hamlyn_engine::memory::Denied;

/// The state of a piece. A trait, so that the model checker runs the same code.
pub(crate) trait StateWord {
    fn new(value: u32) -> Self;
    fn load_acquire(&self) -> u32;
    fn store_release(&self, value: u32);
}

impl StateWord for AtomicU32 {
    #[inline]
    fn new(value: u32) -> Self {
        AtomicU32::new(value)
    }

    #[inline]
    fn load_acquire(&self) -> u32 {
        self.load(Ordering::Acquire)
    }

    #[inline]
    fn store_release(&self, value: u32) {
        self.store(value, Ordering::Release);
    }
}

const HELD: u32 = 0;
const OPEN: u32 = 1;

/// The release token: the right to open pieces. There is one for each [`Pieces`].
pub(crate) struct ReleaseToken(());

/// The write token: the right to write into open pieces and to complete them. There is one for each
/// [`Pieces`]. Not `Sync`: its holder is one thread at a time.
pub(crate) struct WriteToken(PhantomData<Cell<()>>);

/// An open piece in which all lies that a message may touch. It stays open as long as this lives,
/// as only the holder of the write token could change that.
pub(crate) struct OpenPiece<'a, W> {
    state: &'a W,
    _write_token: &'a WriteToken,
}

impl<W: StateWord> OpenPiece<'_, W> {
    /// Gives the piece to the application.
    #[inline(always)]
    pub(crate) fn complete(self) {
        // Release: as in [`Pieces::complete`].
        self.state.store_release(HELD);
    }
}

/// The states of all pieces.
pub(crate) struct Pieces<W> {
    states: Box<[W]>,
    shift: u32,
}

impl<W: StateWord> Pieces<W> {
    /// No pieces.
    pub(crate) fn none() -> Self {
        Self {
            states: Box::new([]),
            shift: 0,
        }
    }

    /// `count` pieces of `1 << shift` bytes, all held. Nothing if there is no memory for that.
    pub(crate) fn new(count: u32, shift: u32) -> Option<(Self, ReleaseToken, WriteToken)> {
        let mut states = Vec::new();
        states.try_reserve_exact(count as usize).ok()?;
        states.extend((0..count).map(|_| W::new(HELD)));
        let states = states.into_boxed_slice();
        Some((
            Self { states, shift },
            ReleaseToken(()),
            WriteToken(PhantomData),
        ))
    }

    /// The numbers of all pieces that have a byte in the range, whether they exist or not.
    #[inline]
    pub(crate) fn numbers_of(&self, offset: usize, len: usize) -> Option<Range<usize>> {
        if len == 0 {
            return Some(0..0);
        }
        let last = offset.checked_add(len - 1)?;
        Some(offset >> self.shift..(last >> self.shift) + 1)
    }

    /// The states of all pieces that have a byte in the range.
    #[inline]
    fn touched(&self, offset: usize, len: usize) -> Option<&[W]> {
        self.states.get(self.numbers_of(offset, len)?)
    }

    /// The state of the one piece in which all of the range lies, if it is so: the common case.
    #[inline(always)]
    fn only_one(&self, offset: usize, len: usize) -> Option<&W> {
        let piece = offset >> self.shift;
        let last = offset.checked_add(len)?.checked_sub(1)?;
        if len == 0 || last >> self.shift != piece {
            return None;
        }
        self.states.get(piece)
    }

    /// Runs `write`, which writes only in the given range, if all of it is open. It stays open
    /// until `write` returns, as only the holder of the write token could change that.
    #[inline]
    pub(crate) fn while_open<R>(
        &self,
        _write_token: &WriteToken,
        offset: usize,
        len: usize,
        write: impl FnOnce() -> R,
    ) -> Result<R, Denied> {
        // Acquire: the application's last look at the piece came before it opened it.
        let is_open = |state: &W| state.load_acquire() == OPEN;
        let open = match self.only_one(offset, len) {
            Some(state) => is_open(state),
            None => {
                let states = self.touched(offset, len).ok_or(Denied::OutOfArea)?;
                states.iter().all(is_open)
            }
        };
        if open {
            Ok(write())
        } else {
            Err(Denied::InUse)
        }
    }

    /// The piece, if it is open and the only one in which the two ranges have a byte, neither of
    /// which is empty.
    #[inline(always)]
    pub(crate) fn only_open<'a>(
        &'a self,
        write_token: &'a WriteToken,
        offset: usize,
        len: usize,
        low: usize,
        high: usize,
    ) -> Option<OpenPiece<'a, W>> {
        // Where two differ in no bit above those of a piece, they are in the same. What wraps
        // around here is longer than any piece.
        let last = |end: usize| end.wrapping_sub(1);
        let spread =
            (offset ^ last(offset.wrapping_add(len))) | (offset ^ low) | (offset ^ last(high));
        if spread >> self.shift != 0 {
            return None;
        }
        let state = self.states.get(offset >> self.shift)?;
        // Acquire: as in [`Pieces::while_open`].
        if state.load_acquire() != OPEN {
            return None;
        }
        Some(OpenPiece {
            state,
            _write_token: write_token,
        })
    }

    /// Gives every piece that has a byte in `low..high` to the application.
    #[inline]
    pub(crate) fn complete(&self, _write_token: &WriteToken, low: usize, high: usize) {
        if low >= high {
            return;
        }
        if let Some(state) = self.only_one(low, high - low) {
            // Release: a thread that finds the piece held sees what was written.
            return state.store_release(HELD);
        }
        let end = self.states.len() << self.shift;
        let (low, high) = (low.min(end), high.min(end));
        if low >= high {
            return;
        }
        if let Some(states) = self.touched(low, high - low) {
            for state in states {
                state.store_release(HELD);
            }
        }
    }

    /// Opens pieces to the interface. Pieces that do not exist are ignored.
    pub(crate) fn open(&self, _release_token: &mut ReleaseToken, pieces: Range<u32>) {
        let end = (pieces.end as usize).min(self.states.len());
        let start = (pieces.start as usize).min(end);
        for state in &self.states[start..end] {
            // Release: our reads through references came before.
            state.store_release(OPEN);
        }
    }

    /// Opens one piece to the interface, if it exists.
    #[inline(always)]
    pub(crate) fn open_one(&self, _release_token: &mut ReleaseToken, piece: u32) {
        if let Some(state) = self.states.get(piece as usize) {
            // Release: as above.
            state.store_release(OPEN);
        }
    }

    /// Whether the range lies in one piece that is in the application's hands: the common case of
    /// [`Pieces::is_held`].
    #[inline(always)]
    pub(crate) fn is_held_in_one(
        &self,
        _release_token: &ReleaseToken,
        offset: usize,
        len: usize,
    ) -> bool {
        self.only_one(offset, len)
            .is_some_and(|state| state.load_acquire() == HELD)
    }

    /// Whether all of the range is in the application's hands.
    #[inline]
    pub(crate) fn is_held(&self, _release_token: &ReleaseToken, offset: usize, len: usize) -> bool {
        let is_held = |state: &W| state.load_acquire() == HELD;
        match self.only_one(offset, len) {
            Some(state) => is_held(state),
            None => self
                .touched(offset, len)
                .is_some_and(|states| states.iter().all(is_held)),
        }
    }

    /// How many pieces there are.
    #[inline]
    pub(crate) fn count(&self) -> u32 {
        self.states.len() as u32
    }

    /// Bytes of a piece, as a power of two.
    pub(crate) fn shift(&self) -> u32 {
        self.shift
    }
}

#[cfg(test)]
mod tests;

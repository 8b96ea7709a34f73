//! A message in the hands of the program: its bytes, its views, and what is left to its end point ([`crate::lending`]).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hamlyn::PeerIdentity;

use crate::error::Failure;
use crate::gate::forked;
use crate::lending::{Lender, State, has_views, released};

/// A message in the hands of the program.
pub(crate) struct Borrowing {
    lender: Arc<dyn Lender>,
    state: Arc<State>,
    data: *const u8,
    length_bytes: usize,
    /// Its views are views of a copy.
    is_copied: bool,
}

// SAFETY: the pointer is read while a view is counted, during which the memory stays.
unsafe impl Send for Borrowing {}
// SAFETY: as above.
unsafe impl Sync for Borrowing {}

impl Borrowing {
    /// A message that lies there, which stays as long as its end point holds or keeps it.
    pub(crate) fn at(
        lender: Arc<dyn Lender>,
        state: Arc<State>,
        data: *const u8,
        length_bytes: usize,
    ) -> Self {
        Self {
            lender,
            state,
            data,
            length_bytes,
            is_copied: false,
        }
    }

    /// A message that is held by its end point: its bytes in place, or none if its views are to be views of a copy.
    pub(crate) fn new(
        lender: Arc<dyn Lender>,
        state: Arc<State>,
        data: Option<&[u8]>,
        length_bytes: usize,
    ) -> Self {
        Self {
            lender,
            state,
            data: data.map_or(std::ptr::null(), <[u8]>::as_ptr),
            length_bytes,
            is_copied: data.is_none(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.length_bytes
    }

    pub(crate) fn state(&self) -> &Arc<State> {
        &self.state
    }

    pub(crate) fn is_released(&self) -> bool {
        self.state.is_released() || self.lender.is_shut()
    }

    /// Counts a view. The bytes stay until it ends.
    pub(crate) fn begin_view(&self) -> Result<*const u8, Failure> {
        if self.lender.gate().is_forked() {
            return Err(forked());
        }
        self.lender.views().0.fetch_add(1, Ordering::SeqCst);
        let refused = if self.lender.is_shut() || !self.state.begin_view() {
            released(self.lender.name())
        } else if !self.is_copied() {
            return Ok(self.data);
        } else {
            match self.copied() {
                Ok(data) => return Ok(data),
                Err(failure) => {
                    self.state.end_view();
                    failure
                }
            }
        };
        self.view_is_gone();
        Err(refused)
    }

    /// Whether views of it are views of a copy.
    pub(crate) fn is_copied(&self) -> bool {
        self.is_copied || self.state.is_copied.load(Ordering::SeqCst)
    }

    /// The private copy, made now if there was none.
    fn copied(&self) -> Result<*const u8, Failure> {
        let mut own = self.state.own();
        if let Some(copy) = &own.copy {
            return Ok(copy.as_ptr());
        }
        let mut copy = vec![0; self.length_bytes].into_boxed_slice();
        self.lender.read_at(&self.state, &own, 0, &mut copy)?;
        let data = copy.as_ptr();
        own.copy = Some(copy);
        // What is copied is given back at once, unless it is kept.
        Arc::clone(&self.lender).let_go(Arc::clone(&self.state));
        Ok(data)
    }

    /// Copies from it, without a copy in between. False if it lies in memory that can be shown.
    pub(crate) fn read_at(&self, offset: usize, into: &mut [u8]) -> Result<bool, Failure> {
        if !self.is_copied() {
            return Ok(false);
        }
        let own = self.state.own();
        if own.copy.is_some() {
            return Ok(false);
        }
        if self.lender.gate().is_forked() {
            return Err(forked());
        }
        if self.is_released() {
            return Err(released(self.lender.name()));
        }
        self.lender.read_at(&self.state, &own, offset, into)?;
        Ok(true)
    }

    pub(crate) fn end_view(&self) {
        self.state.end_view();
        self.view_is_gone();
    }

    fn view_is_gone(&self) {
        let before = self.lender.views().0.fetch_sub(1, Ordering::SeqCst);
        if before == 1 && self.lender.is_shut() {
            Arc::clone(&self.lender).finish();
        }
    }

    /// Shows the bytes to `act`.
    pub(crate) fn show<R>(&self, act: impl FnOnce(&[u8]) -> R) -> Result<R, Failure> {
        let data = self.begin_view()?;
        let bytes = match self.length_bytes {
            0 => &[],
            // SAFETY: a view is counted, so that so many bytes stay there.
            length => unsafe { std::slice::from_raw_parts(data, length) },
        };
        let shown = act(bytes);
        self.end_view();
        Ok(shown)
    }

    /// Releases it: an error if a view of it is alive, nothing if it was released before.
    pub(crate) fn release(&self) -> Result<(), Failure> {
        if self.lender.gate().is_forked() {
            return Err(forked());
        }
        if self.state.is_released() {
            return Ok(());
        }
        if !self.state.try_release() {
            return Err(has_views(self.lender.name()));
        }
        self.give_back();
        Ok(())
    }

    fn give_back(&self) {
        let own = std::mem::take(&mut *self.state.own());
        if self.lender.gate().is_forked() {
            std::mem::forget(own);
        } else if own.kept.is_none() {
            Arc::clone(&self.lender).let_go(Arc::clone(&self.state));
        }
    }

    /// Who sent it.
    pub(crate) fn peer(&self) -> Result<Option<PeerIdentity>, Failure> {
        self.lender.peer(&self.state)
    }

    /// Keeps it beyond the next receive.
    pub(crate) fn keep(&self) -> Result<(), Failure> {
        if self.state.is_released() {
            return Err(released(self.lender.name()));
        }
        if self.is_copied() {
            return self.copied().map(drop);
        }
        let is_kept = self.state.own().kept.is_some();
        match is_kept {
            true => Ok(()),
            false => self.lender.keep(&self.state),
        }
    }
}

impl Drop for Borrowing {
    fn drop(&mut self) {
        // It has no views: they hold the object.
        if !self.state.is_released() && self.state.try_release() {
            self.give_back();
        }
    }
}

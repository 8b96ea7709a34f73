//! An end point, and the message that was received from it: the one borrows the other in Rust, and both are one handle in C.
//!
//! While a message is held its end point is not touched but through it, as the borrow checker would have it.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use crate::datagram::{IS_HELD, NONE_HELD};
use crate::status::Failure;

/// See the module.
#[derive(Debug)]
pub(crate) struct Holding<E: 'static, M: 'static> {
    /// Borrows the end point.
    message: Option<M>,
    /// A box of ours.
    end: NonNull<E>,
}

impl<E, M> Holding<E, M> {
    pub(crate) fn new(end: E) -> Self {
        let end = NonNull::from(Box::leak(Box::new(end)));
        Self { message: None, end }
    }

    /// The end point, if no message is held.
    #[inline(always)]
    pub(crate) fn end(&mut self) -> Result<&mut E, Failure> {
        match self.message {
            Some(_) => Err(IS_HELD),
            // SAFETY: the box is ours, and what could borrow it is not there.
            None => Ok(unsafe { self.end.as_mut() }),
        }
    }

    /// Receives a message, and holds it. `receive` must not keep the reference but in what it returns.
    #[inline(always)]
    pub(crate) fn hold(
        &mut self,
        receive: impl FnOnce(&'static mut E) -> Result<Option<M>, Failure>,
    ) -> Result<Option<&mut M>, Failure> {
        if self.message.is_some() {
            return Err(IS_HELD);
        }
        // SAFETY: the box is ours and lives until `drop`, before which the message ends; nothing else borrows it.
        let end = unsafe { &mut *self.end.as_ptr() };
        self.message = receive(end)?;
        Ok(self.message.as_mut())
    }

    /// The same, if no message is held.
    #[inline(always)]
    pub(crate) fn hold_at_once<F>(
        &mut self,
        receive: impl FnOnce(&'static mut E) -> Result<Option<M>, F>,
    ) -> Option<Result<Option<&mut M>, F>> {
        if self.message.is_some() {
            return None;
        }
        // SAFETY: as in `hold`.
        let end = unsafe { &mut *self.end.as_ptr() };
        Some(receive(end).map(|came| {
            // There is none before it that is to be dropped.
            let _none = ManuallyDrop::new(std::mem::replace(&mut self.message, came));
            self.message.as_mut()
        }))
    }

    /// The message that is held.
    #[inline(always)]
    pub(crate) fn message(&mut self) -> Result<&mut M, Failure> {
        self.message.as_mut().ok_or(NONE_HELD)
    }

    /// The message, to be used up.
    #[inline(always)]
    pub(crate) fn release(&mut self) -> Result<M, Failure> {
        self.message.take().ok_or(NONE_HELD)
    }

    /// The end point alone, if no message is held.
    pub(crate) fn into_end(self) -> Result<E, Self> {
        if self.message.is_some() {
            return Err(self);
        }
        let this = ManuallyDrop::new(self);
        // SAFETY: the box was made in `new`, nothing borrows it, and `drop` is not called.
        Ok(*unsafe { Box::from_raw(this.end.as_ptr()) })
    }

    /// Drops the message, if one is held.
    pub(crate) fn drop_held(&mut self) {
        self.message = None;
    }
}

impl<E, M> Drop for Holding<E, M> {
    fn drop(&mut self) {
        self.message = None;
        // SAFETY: the box was made in `new`, and nothing borrows it any more.
        drop(unsafe { Box::from_raw(self.end.as_ptr()) });
    }
}

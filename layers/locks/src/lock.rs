//! A lock that is held or waits, released when it is dropped.

use std::rc::Rc;

use hamlyn::host::process::ProcessHost;
use hamlyn::{Host, Wait};

use crate::error::LockError;
use crate::mode::Mode;
use crate::refusal::Refusal;
use crate::resource::VALUE_BYTES;
use crate::session::{Inner, Place};
use crate::table::Operation;

/// A lock of a [`LockClient`](crate::LockClient). Dropping it releases it, or cancels it if it
/// waits; that waits a millisecond at most for a credit, and not for the server. A release that
/// could not be sent in this time is sent by the next call of the client.
pub struct Lock<H: Host = ProcessHost> {
    inner: Rc<Inner<H>>,
    pub(crate) place: Place,
    is_over: bool,
}

/// The value block of a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueBlock {
    /// Nobody has written one since the resource has had locks.
    Missing,
    /// As it was written last.
    Valid([u8; VALUE_BYTES]),
    /// As it was written last; but since then a client has died that held a lock in PW or EX and
    /// might have written another one.
    NotValid([u8; VALUE_BYTES]),
}

impl<H: Host> Lock<H> {
    pub(crate) fn new(inner: Rc<Inner<H>>, place: Place) -> Self {
        Self {
            inner,
            place,
            is_over: false,
        }
    }

    /// Waits until the lock is held, or its conversion is done, as long as `wait` says.
    ///
    /// # Errors
    ///
    /// [`LockError::TimedOut`]: it waits still, and may be waited for again. [`LockError::Refused`]:
    /// it is held as before the conversion; a new lock is none. [`LockError::ServerLost`].
    pub fn granted(&self, wait: Wait) -> Result<(), LockError> {
        if !self.inner.settle(self.place, wait)? {
            return Err(LockError::TimedOut);
        }
        match self.inner.with(self.place, |slot| slot.refusal)? {
            Some(refusal) => Err(self.inner.refused(self.place.server, refusal)),
            None => Ok(()),
        }
    }

    /// Converts the lock, and waits until it is held in that mode, as long as `wait` says. If it is
    /// not by then, the conversion is cancelled, and the lock is held in the mode that it had; if
    /// the cancellation comes too late, [`Lock::mode`] says so when the server has answered.
    ///
    /// A conversion to a weaker mode is granted at once, and writes the value that was set.
    pub fn convert(&mut self, mode: Mode, wait: Wait) -> Result<(), LockError> {
        self.begin(mode, false, wait)?;
        match self.granted(wait) {
            Err(LockError::TimedOut) => {
                self.cancel(wait)?;
                Err(LockError::TimedOut)
            }
            done => done,
        }
    }

    /// The same, but it never waits for another lock.
    pub fn try_convert(&mut self, mode: Mode, wait: Wait) -> Result<(), LockError> {
        self.begin(mode, true, wait)?;
        self.granted(wait)
    }

    /// Asks for a conversion, and does not wait for it: [`Lock::granted`] does. `wait` is for an
    /// operation on the lock that has no result yet, and for a credit of the server.
    pub fn begin_convert(&mut self, mode: Mode, wait: Wait) -> Result<(), LockError> {
        self.begin(mode, false, wait)
    }

    fn begin(&mut self, mode: Mode, is_try: bool, wait: Wait) -> Result<(), LockError> {
        // One operation at a time.
        match self.granted(wait) {
            Err(LockError::Refused { .. }) if self.mode().is_some() => {}
            before => before?,
        }
        let value = self.inner.with(self.place, |slot| slot.to_write)?;
        let value = value.as_ref();
        self.inner.send(
            self.place,
            &Operation::Convert {
                mode,
                is_try,
                value,
            },
            wait,
        )?;
        self.inner.with(self.place, |slot| slot.to_write = None)
    }

    /// Cancels a conversion that waits. [`Lock::granted`] waits for the answer, and [`Lock::mode`]
    /// then says in which mode the lock is held.
    ///
    /// # Errors
    ///
    /// A lock that is not held yet is [`Refusal::Waits`]: drop it.
    pub fn cancel(&mut self, wait: Wait) -> Result<(), LockError> {
        if self.inner.with(self.place, |slot| slot.held)?.is_none() {
            return Err(self.inner.refused(self.place.server, Refusal::Waits));
        }
        self.inner.send(self.place, &Operation::Cancel, wait)
    }

    /// The mode in which the lock is held, as far as is known; none while it waits for the first
    /// time, and if its server is lost.
    pub fn mode(&self) -> Option<Mode> {
        self.inner
            .with(self.place, |slot| slot.held)
            .unwrap_or(None)
    }

    /// The mode for which somebody waits whom this lock blocks, once
    /// [that was heard](crate::LockClient::serve).
    pub fn blocking(&self) -> Option<Mode> {
        self.inner
            .with(self.place, |slot| slot.blocking)
            .unwrap_or(None)
    }

    /// The value block of the resource, as it was when the lock was granted or converted last.
    pub fn value(&self) -> Result<ValueBlock, LockError> {
        self.inner.with(self.place, |slot| match &slot.value {
            None => ValueBlock::Missing,
            Some(value) if value.is_valid => ValueBlock::Valid(value.bytes),
            Some(value) => ValueBlock::NotValid(value.bytes),
        })
    }

    /// Sets the value, filled up with zeroes: it is written when the lock is next converted or
    /// released.
    ///
    /// # Errors
    ///
    /// The lock is not in PW or EX, or the value has more than 64 bytes.
    pub fn set_value(&mut self, bytes: &[u8]) -> Result<(), LockError> {
        let mode = self.inner.with(self.place, |slot| slot.held)?;
        if !mode.is_some_and(Mode::writes_value) {
            return Err(LockError::NoValue { mode });
        }
        let mut value = [0; VALUE_BYTES];
        let (length_bytes, most_bytes) = (bytes.len(), VALUE_BYTES);
        let place = value.get_mut(..length_bytes);
        let place = place.ok_or(LockError::ValueTooLong {
            length_bytes,
            most_bytes,
        })?;
        place.copy_from_slice(bytes);
        self.inner
            .with(self.place, |slot| slot.to_write = Some(value))
    }

    /// Releases the lock, as dropping it does, and says if its server was lost.
    pub fn release(mut self) -> Result<(), LockError> {
        self.is_over = true;
        self.inner.release(self.place)
    }
}

impl<H: Host> Drop for Lock<H> {
    fn drop(&mut self) {
        if !self.is_over {
            // If its server is lost, so is the lock.
            let _ = self.inner.release(self.place);
        }
    }
}

impl<H: Host> std::fmt::Debug for Lock<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lock")
            .field("mode", &self.mode())
            .finish_non_exhaustive()
    }
}

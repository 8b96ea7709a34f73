//! Operations without guards, for faces in languages that have none.

use crate::context::Mode;
use crate::courier::Courier;
use crate::crl::Region;
use crate::error::CrlError;

impl<C: Courier> Region<C> {
    /// The first of its bytes, for faces in other languages. It is the same for each handle of the
    /// region on this node as long as one is mapped, and a multiple of eight. The bytes are the
    /// program's while an operation is open, to be read or to be written as that says.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start
    }

    /// Begins a reading operation without a guard. Blocks like
    /// [`read`](crate::RegionHandle::read), and has its errors.
    pub fn start_read(&self) -> Result<(), CrlError> {
        self.shared.start(self.id, Mode::Shared, "reading")
    }

    /// Ends a reading operation of [`start_read`](Self::start_read).
    ///
    /// # Errors
    ///
    /// None is open.
    pub fn end_read(&self) -> Result<(), CrlError> {
        self.shared.end(self.id, Mode::Shared)
    }

    /// Begins a writing operation without a guard. Blocks like
    /// [`write`](crate::RegionHandle::write), and has its errors.
    pub fn start_write(&self) -> Result<(), CrlError> {
        self.shared.start(self.id, Mode::Exclusive, "writing")
    }

    /// Ends the writing operation of [`start_write`](Self::start_write).
    ///
    /// # Errors
    ///
    /// None is open.
    pub fn end_write(&self) -> Result<(), CrlError> {
        self.shared.end(self.id, Mode::Exclusive)
    }
}

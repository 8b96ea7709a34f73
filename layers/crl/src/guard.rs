//! Operations that are open, as guards that end them.

use std::cell::{Ref, RefMut};
use std::ops::{Deref, DerefMut};

use hamlyn::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::error::CrlError;
use crate::memory::Bytes;

/// Bytes at whose multiples the bytes of a region begin.
const ALIGNMENT_BYTES: usize = align_of::<u64>();

/// A region that has guards.
pub trait Ends {
    /// The drop of a guard that reads.
    #[doc(hidden)]
    fn end_read(&self);
    /// The drop of a guard that writes.
    #[doc(hidden)]
    fn end_write(&self);
}

/// A reading operation. Its drop ends it.
#[derive(Debug)]
pub struct ReadGuard<'a, R: Ends> {
    bytes: Option<Ref<'a, Bytes>>,
    region: &'a R,
}

/// A writing operation. Its drop ends it.
#[derive(Debug)]
pub struct WriteGuard<'a, R: Ends> {
    bytes: Option<RefMut<'a, Bytes>>,
    region: &'a R,
}

fn wrong_values<T>(bytes: &[u8]) -> CrlError {
    CrlError::Values {
        bytes: bytes.len(),
        value_bytes: size_of::<T>(),
    }
}

impl<'a, R: Ends> ReadGuard<'a, R> {
    pub(crate) fn new(bytes: Ref<'a, Bytes>, region: &'a R) -> Self {
        Self {
            bytes: Some(bytes),
            region,
        }
    }

    /// The bytes as values of a plain type. Copies nothing.
    ///
    /// # Errors
    ///
    /// The bytes are no multiple of a value's.
    pub fn values<T: FromBytes + Immutable + KnownLayout>(&self) -> Result<&[T], CrlError> {
        const { assert!(align_of::<T>() <= ALIGNMENT_BYTES && size_of::<T>() > 0) }
        <[T]>::ref_from_bytes(self).map_err(|_| wrong_values::<T>(self))
    }
}

impl<'a, R: Ends> WriteGuard<'a, R> {
    pub(crate) fn new(bytes: RefMut<'a, Bytes>, region: &'a R) -> Self {
        Self {
            bytes: Some(bytes),
            region,
        }
    }

    /// The bytes as values of a plain type, to be changed. Copies nothing.
    ///
    /// # Errors
    ///
    /// The bytes are no multiple of a value's.
    pub fn values<T: FromBytes + IntoBytes + Immutable + KnownLayout>(
        &mut self,
    ) -> Result<&mut [T], CrlError> {
        const { assert!(align_of::<T>() <= ALIGNMENT_BYTES && size_of::<T>() > 0) }
        let error = wrong_values::<T>(self);
        <[T]>::mut_from_bytes(self).map_err(|_| error)
    }
}

impl<R: Ends> Deref for ReadGuard<'_, R> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.as_ref().map_or(&[], |bytes| bytes.as_slice())
    }
}

impl<R: Ends> Deref for WriteGuard<'_, R> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.as_ref().map_or(&[], |bytes| bytes.as_slice())
    }
}

impl<R: Ends> DerefMut for WriteGuard<'_, R> {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.bytes {
            Some(bytes) => bytes.as_mut_slice(),
            None => &mut [],
        }
    }
}

impl<R: Ends> Drop for ReadGuard<'_, R> {
    fn drop(&mut self) {
        // The end may send the bytes.
        self.bytes = None;
        self.region.end_read();
    }
}

impl<R: Ends> Drop for WriteGuard<'_, R> {
    fn drop(&mut self) {
        self.bytes = None;
        self.region.end_write();
    }
}

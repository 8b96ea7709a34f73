//! Loads, stores and changes of memory that is mapped here and that others write at the same time:
//! a region of a peer, or an area of this process (decision 0037). A few instructions each: bounds
//! are compared, then the access is made.
//!
//! Refused: what does not lie in the window; stores and changes through a window that only reads;
//! changes of words that are not aligned.

use core::ptr::NonNull;
use core::sync::atomic::{Ordering, fence};
use std::sync::Arc;

use hamlyn_engine::operation::Atomic;

use super::{Mapping, Memory, OutOfRange, StoreKind, raw};
use crate::area::Area;
use crate::region::AttachedRegion;

/// What keeps the memory mapped.
#[derive(Clone)]
enum Source {
    Own(Arc<Memory>),
    Attached(Arc<AttachedRegion>),
}

/// A part of memory that this process shares with others. The memory stays mapped as long as a
/// window on it lives, also when what is in it concerns nobody any more ([`DirectWindow::lasts`]).
///
/// Loads and stores of a word that is aligned are whole. Loads are made in order, and so are
/// stores; a store may become visible after a later load. Changes are made after all that was done
/// before, and before all that is done afterwards.
#[derive(Clone)]
pub struct DirectWindow {
    first: NonNull<u8>,
    length_bytes: u64,
    /// As long, or 0 if it only reads.
    writable_bytes: u64,
    /// Where in its mapping it begins.
    start: usize,
    source: Source,
}

// SAFETY: the memory has no affinity to a thread, and every access that a shared reference allows
// tolerates concurrent access.
unsafe impl Send for DirectWindow {}
// SAFETY: as above.
unsafe impl Sync for DirectWindow {}

macro_rules! accesses {
    ($($load:ident, $store:ident, $word:ty;)*) => {$(
        #[doc = concat!("The `", stringify!($word), "` at `offset`.")]
        #[inline(always)]
        pub fn $load(&self, offset: u64) -> Result<$word, OutOfRange> {
            let from = self.at(offset, size_of::<$word>() as u64, self.length_bytes)?;
            // SAFETY: so many bytes lie in the window, which lies in a mapping that we keep.
            Ok(unsafe { raw::$load(from) })
        }

        #[doc = concat!("Stores a `", stringify!($word), "` at `offset`.")]
        #[inline(always)]
        pub fn $store(&self, offset: u64, value: $word) -> Result<(), OutOfRange> {
            let to = self.at(offset, size_of::<$word>() as u64, self.writable_bytes)?;
            // SAFETY: so many bytes lie in the window, which lies in a writable mapping that we
            // keep. There are no Rust references into it: areas in pieces have no windows.
            unsafe { raw::$store(to, value) };
            Ok(())
        }
    )*};
}

impl DirectWindow {
    /// On a part of this process's own memory; nothing if it does not lie there, or is in pieces,
    /// into which there may be references.
    pub(crate) fn on_own(memory: &Arc<Memory>, offset: usize, len: usize) -> Option<Self> {
        let first = NonNull::new(memory.plain_start(offset, len)?)?;
        Some(Self {
            first,
            length_bytes: len as u64,
            writable_bytes: len as u64,
            start: offset,
            source: Source::Own(Arc::clone(memory)),
        })
    }

    /// On a part of an attached region; nothing if it does not lie there.
    pub(crate) fn on_attached(region: &Arc<AttachedRegion>, offset: u64, len: u64) -> Option<Self> {
        let mapping = region.mapping();
        let (start, len) = (usize::try_from(offset).ok()?, usize::try_from(len).ok()?);
        let first = NonNull::new(mapping.readable(start, len).ok()?.cast_mut())?;
        Some(Self {
            first,
            length_bytes: len as u64,
            writable_bytes: if mapping.is_writable() { len as u64 } else { 0 },
            start,
            source: Source::Attached(Arc::clone(region)),
        })
    }

    #[inline(always)]
    fn at(&self, offset: u64, bytes: u64, of_bytes: u64) -> Result<*mut u8, OutOfRange> {
        match of_bytes.checked_sub(bytes) {
            // SAFETY: the bytes lie in the window, so the address does.
            Some(last) if offset <= last => Ok(unsafe { self.first.as_ptr().add(offset as usize) }),
            _ => Err(OutOfRange),
        }
    }

    accesses! {
        load_u8, store_u8, u8;
        load_u16, store_u16, u16;
        load_u32, store_u32, u32;
        load_u64, store_u64, u64;
    }

    /// Copies bytes out of the window, before all later accesses. Those that others write meanwhile
    /// come out old or new.
    #[inline]
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), OutOfRange> {
        let from = self.at(offset, into.len() as u64, self.length_bytes)?;
        // SAFETY: so many bytes lie in the window, and `into` is a slice of memory that is not in a
        // mapping of this crate.
        unsafe { raw::copy(into.as_mut_ptr(), from, into.len()) };
        fence(Ordering::Acquire);
        Ok(())
    }

    /// Copies bytes out of the window into an area, before all later accesses.
    pub fn read_to(
        &self,
        offset: u64,
        area: &Area,
        to: u64,
        length_bytes: u64,
    ) -> Result<(), OutOfRange> {
        self.at(offset, length_bytes, self.length_bytes)?;
        // What lies in the window has places of that size.
        let (from, length) = (self.start + offset as usize, length_bytes as usize);
        let kind = StoreKind::Temporal;
        let copied = area.write_from(to, self.mapping(), from, length, kind);
        fence(Ordering::Acquire);
        copied.map_err(|_| OutOfRange)
    }

    /// Copies bytes into the window, after all earlier accesses.
    #[inline]
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), OutOfRange> {
        let to = self.at(offset, bytes.len() as u64, self.writable_bytes)?;
        fence(Ordering::Release);
        // SAFETY: so many bytes lie in the window, which may be written; `bytes` is a slice of
        // memory that is not in one.
        unsafe { raw::copy(to, bytes.as_ptr(), bytes.len()) };
        Ok(())
    }

    /// Changes the word at `offset`, which must be a multiple of its width in the owner's area, and
    /// returns what it was.
    #[inline]
    pub fn change(&self, offset: u64, atomic: &Atomic) -> Result<u64, OutOfRange> {
        self.at(offset, atomic.width.bytes(), self.writable_bytes)?;
        self.mapping().change(self.start + offset as usize, atomic)
    }

    /// How many bytes it has.
    #[inline]
    pub fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    /// Whether it may be stored to.
    #[inline]
    pub fn is_writable(&self) -> bool {
        self.writable_bytes == self.length_bytes
    }

    /// Whether its memory is still that of its owner: the owner has not revoked it, and this
    /// interface still has the link. What is stored after that reaches nobody. A hint: it may end
    /// right after the call.
    #[inline]
    pub fn lasts(&self) -> bool {
        match &self.source {
            Source::Own(_) => true,
            Source::Attached(region) => region.lasts(),
        }
    }

    /// Where its bytes begin in this process, for code in other languages. It is valid as long as a
    /// window on the memory lives, and for loads only if the window [is not
    /// writable](DirectWindow::is_writable). Others access the memory at any time: a Rust reference
    /// into it would not be sound.
    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        self.first.as_ptr()
    }

    fn mapping(&self) -> &Mapping {
        match &self.source {
            Source::Own(memory) => memory.mapping(),
            Source::Attached(region) => region.mapping(),
        }
    }
}

impl core::fmt::Debug for DirectWindow {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (all, writable) = (self.length_bytes, self.writable_bytes);
        write!(f, "DirectWindow({all} bytes, {writable} writable)")
    }
}

//! The bytes of a region on one node.

use std::cell::RefCell;
use std::rc::Rc;

use hamlyn::zerocopy::IntoBytes;

use crate::error::{CrlError, REGION_BYTES_MAX};

/// Bytes that begin at a multiple of eight, so that plain values may lie in them.
#[derive(Debug)]
pub(crate) struct Bytes {
    words: Vec<u64>,
    length: usize,
}

/// Shared between a region's handles, whose guards borrow it, and the protocol, which changes it
/// only while no operation is open.
pub(crate) type Memory = Rc<RefCell<Bytes>>;

impl Bytes {
    /// So many zeros.
    pub(crate) fn new(length: usize) -> Result<Memory, CrlError> {
        if length > REGION_BYTES_MAX {
            return Err(CrlError::TooLarge {
                what: "a region",
                bytes: length,
                most_bytes: REGION_BYTES_MAX,
            });
        }
        let mut words = Vec::new();
        // Also one without bytes has a place of its own.
        let count = length.div_ceil(size_of::<u64>()).max(1);
        if words.try_reserve_exact(count).is_err() {
            return Err(CrlError::Memory { bytes: length });
        }
        words.resize(count, 0);
        Ok(Rc::new(RefCell::new(Self { words, length })))
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.words.as_bytes()[..self.length]
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.words.as_mut_bytes()[..self.length]
    }
}

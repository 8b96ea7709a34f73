//! Memory of long messages that have ended, for the next ones.

use std::cell::RefCell;

/// Buffers of a node, of which the one that was used last is used next, as it is in the cache. To
/// allocate for each message would have the allocator give pages back to the system and take them
/// anew, which takes longer than to copy the message.
#[derive(Debug, Default)]
pub(crate) struct Spares {
    held: RefCell<Held>,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct Held {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl Spares {
    /// So many bytes at most.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            held: RefCell::default(),
            bytes_max,
        }
    }

    /// The buffer that was put here last, or one without memory.
    #[inline(never)]
    pub(crate) fn take(&self) -> Vec<u8> {
        let mut held = self.held.borrow_mut();
        let buffer = held.buffers.pop().unwrap_or_default();
        held.bytes -= buffer.capacity();
        buffer
    }

    /// Keeps a buffer, if there are not too many.
    #[inline(never)]
    pub(crate) fn put(&self, buffer: Vec<u8>) {
        let mut held = self.held.borrow_mut();
        let bytes = held.bytes + buffer.capacity();
        if bytes <= self.bytes_max {
            held.bytes = bytes;
            held.buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_buffer_is_used_next() {
        let spares = Spares::new(16_000);
        spares.put(Vec::with_capacity(5_000));
        spares.put(Vec::with_capacity(6_000));
        assert_eq!(spares.take().capacity(), 6_000);
        assert_eq!(spares.take().capacity(), 5_000);
        assert_eq!(spares.take().capacity(), 0);
    }

    #[test]
    fn spares_are_bounded() {
        let spares = Spares::new(24_000);
        for _ in 0..72 {
            spares.put(Vec::with_capacity(1_000));
        }
        spares.put(Vec::with_capacity(1 << 20));
        let held = spares.held.borrow();
        assert_eq!(held.buffers.len(), 24);
        let bytes: usize = held.buffers.iter().map(Vec::capacity).sum();
        assert_eq!(held.bytes, bytes);
        assert!(bytes <= spares.bytes_max);
    }
}

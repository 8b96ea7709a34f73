//! The newest version in a pool: its writer says which it is, and readers copy it out without the
//! writer's help.
//!
//! A *head* names the chunk of the newest version. Each chunk has a *stamp*: the number of its
//! version, plus one, or 0 while the writer may change its bytes. A reader takes stamp, bytes, and
//! the stamp again; if that is the same, so are the bytes. Readers write nothing, and believe no
//! number before they compared it with the limits.

use core::sync::atomic::Ordering;

/// How often a reader tries to copy while the writer uses the chunk again. Each try begins at the
/// head.
pub const TRIES: u32 = 8;

/// A word of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Word {
    /// The chunk of the newest version, plus one; 0 if there is none.
    Head,
    /// The number of the version in a chunk, plus one; 0 while it is written.
    Stamp(u32),
    /// Bytes of that version.
    Length(u32),
}

/// Where the words lie.
pub(crate) trait Words {
    /// Loads a word, before all that is loaded later.
    fn load(&self, word: Word) -> u64;
    /// Stores a word, after all that was stored before.
    fn store(&self, word: Word, value: u64);
    /// A barrier.
    fn barrier(&self, order: Ordering);
}

/// A version that was copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Newest {
    /// Its number.
    pub number: u64,
    /// Its bytes.
    pub length_bytes: usize,
}

/// The head or a length is none that a writer that keeps the rules stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the newest version does not lie in the pool")]
pub struct OutsidePool;

/// The writer is about to change the bytes of a chunk, which is not the newest.
#[inline]
pub(crate) fn begin(words: &impl Words, chunk: u32) {
    words.store(Word::Stamp(chunk), 0);
    // No byte is changed before.
    words.barrier(Ordering::Release);
}

/// The bytes of a chunk are those of that version, and stay so until the next `begin`.
#[inline]
pub(crate) fn finish(words: &impl Words, chunk: u32, number: u64, length_bytes: u64) {
    words.store(Word::Length(chunk), length_bytes);
    words.store(Word::Stamp(chunk), number.wrapping_add(1));
}

/// The version in that chunk is the newest.
#[inline]
pub(crate) fn show(words: &impl Words, chunk: u32) {
    words.store(Word::Head, u64::from(chunk) + 1);
}

/// Whether there may be a version whose number is `from` or more.
#[inline]
pub(crate) fn shows_newer(words: &impl Words, chunks: u32, from: u64) -> bool {
    let Some(chunk) = words.load(Word::Head).checked_sub(1) else {
        return false;
    };
    match u32::try_from(chunk) {
        Ok(chunk) if chunk < chunks => {
            let stamp = words.load(Word::Stamp(chunk));
            stamp.checked_sub(1).is_none_or(|number| number >= from)
        }
        // To be refused.
        _ => true,
    }
}

/// Has `copy` copy the newest version, if its number is `from` or more. Nothing if there is none,
/// or if the writer was always faster. `copy` is given a chunk below `chunks` and a length up to
/// `limit_bytes`; its last call counts.
pub(crate) fn copy_newest(
    words: &impl Words,
    chunks: u32,
    limit_bytes: usize,
    from: u64,
    mut copy: impl FnMut(u32, usize),
) -> Result<Option<Newest>, OutsidePool> {
    for _ in 0..TRIES {
        let Some(chunk) = words.load(Word::Head).checked_sub(1) else {
            return Ok(None);
        };
        let chunk = u32::try_from(chunk).map_err(|_| OutsidePool)?;
        if chunk >= chunks {
            return Err(OutsidePool);
        }
        let stamp = words.load(Word::Stamp(chunk));
        // While it is written the head has moved on.
        let Some(number) = stamp.checked_sub(1) else {
            continue;
        };
        if number < from {
            return Ok(None);
        }
        let length = usize::try_from(words.load(Word::Length(chunk)));
        let length = length.ok().filter(|length| *length <= limit_bytes);
        if let Some(length_bytes) = length {
            copy(chunk, length_bytes);
        }
        // No byte was loaded later.
        words.barrier(Ordering::Acquire);
        if words.load(Word::Stamp(chunk)) == stamp {
            let length_bytes = length.ok_or(OutsidePool)?;
            return Ok(Some(Newest {
                number,
                length_bytes,
            }));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;

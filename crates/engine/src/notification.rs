//! Notification queues (`Hamlyn 2.6, Table 3`): a circular queue that only the
//! interface writes and only the application reads, so neither locks nor
//! shared cursors are needed.
//!
//! The paper's wrap flag is here the lowest bit of a 15-bit count of generations. With
//! it a reader notices that it was overtaken, learns how many entries
//! it lost, and goes on with the oldest that is left. A reader that falls 2^15 - 1 generations
//! or more behind still reads only whole entries, but the count of lost ones is
//! then short by a multiple of 2^15 generations, and it may take one more generation to wake it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use crate::limits::{FAST_INDEX, NOTIFICATION_ENTRIES_MAX, QUEUES_MAX};
use crate::memory::LinkId;
use crate::packet::SlotName;

/// Three words: generation, notification index and slot in the first; in the second the receive
/// class of the metadata entry or, in fast mode, the word of metadata; in the third the link.
#[repr(C, align(32))]
struct Entry {
    head: AtomicU64,
    word: AtomicU64,
    from: AtomicU64,
}

/// What the application learns of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notification {
    /// The slot it came to.
    pub slot: SlotName,
    /// Its metadata entry; [`FAST_INDEX`] if it named none.
    pub metadata_index: u16,
    /// In fast mode the message's word of metadata; otherwise the receive class
    /// of its metadata entry.
    pub word: u64,
    /// The link over which its last packet came: so whose it is, as the host vouches.
    pub from: LinkId,
}

impl Notification {
    /// Whether it came in fast mode.
    #[inline]
    pub const fn is_fast(&self) -> bool {
        self.metadata_index == FAST_INDEX
    }
}

/// The reader was overtaken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{lost} notifications were overwritten before they were read: make the queue longer than the number of messages that may arrive, or use one-shot entries"
)]
pub struct Overrun {
    /// How many notifications are lost.
    pub lost: u64,
}

/// A queue could not be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The number of entries is impossible.
    #[error("a notification queue has 2 to {NOTIFICATION_ENTRIES_MAX} entries, not {asked}")]
    Length {
        /// How many were asked for.
        asked: usize,
    },
    /// All queues are in use.
    #[error("all {QUEUES_MAX} notification queues of the interface are in use: close one")]
    TooMany,
}

/// Makes a queue of at least `entries` entries (rounded up to a power of two).
pub fn queue(entries: usize) -> Result<(NotificationWriter, NotificationReader), QueueError> {
    if !(2..=NOTIFICATION_ENTRIES_MAX).contains(&entries) {
        return Err(QueueError::Length { asked: entries });
    }
    let length = entries.next_power_of_two();
    let storage: Vec<_> = (0..length)
        .map(|_| Entry {
            head: AtomicU64::new(0),
            word: AtomicU64::new(0),
            from: AtomicU64::new(0),
        })
        .collect();
    let entries: Arc<[Entry]> = storage.into();
    Ok((
        NotificationWriter {
            entries: entries.clone(),
            next: 0,
            generation_shift: length.trailing_zeros(),
        },
        NotificationReader {
            entries,
            next: 0,
            generation_shift: length.trailing_zeros(),
            lost: 0,
        },
    ))
}

/// The part of a head that counts generations.
const GENERATION_MASK: u16 = 0x7FFF;
/// Set in a head while its entry is being written for the generation it names.
const WRITING: u16 = 0x8000;

/// The generation of the entry at `position`; the first generation is 1, as storage starts as
/// zeros.
#[inline]
const fn generation(position: u64, generation_shift: u32) -> u16 {
    (position >> generation_shift).wrapping_add(1) as u16 & GENERATION_MASK
}

/// What a head found at `position` says about it.
#[inline]
const fn entry_state(head: u64, position: u64, generation_shift: u32) -> EntryState {
    let found = head as u16;
    let expected = generation(position, generation_shift);
    if found == expected {
        return EntryState::Ready;
    }
    let ahead = found.wrapping_sub(expected) & GENERATION_MASK;
    // One generation behind, or being written for just this generation: nothing yet.
    if ahead == GENERATION_MASK || ahead == 0 {
        EntryState::Empty
    } else {
        EntryState::Ahead(ahead as u64)
    }
}

enum EntryState {
    /// Not yet written.
    Empty,
    /// Written for this position.
    Ready,
    /// Written, or being written, for a position that many generations later.
    Ahead(u64),
}

/// The interface's end: the notification queue control block.
#[derive(Debug)]
pub struct NotificationWriter {
    entries: Arc<[Entry]>,
    next: u64,
    generation_shift: u32,
}

impl core::fmt::Debug for Entry {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Entry")
    }
}

impl NotificationWriter {
    /// Appends an entry, over the oldest if the reader did not keep up.
    #[inline(always)]
    pub fn push(&mut self, notification: Notification) {
        let mask = self.entries.len() - 1;
        let Some(entry) = self.entries.get(self.next as usize & mask) else {
            return;
        };
        // A reader that is just looking at the old entry must not pair the old
        // head with the new word: spoil the head first.
        entry.head.store(
            u64::from(generation(self.next, self.generation_shift) | WRITING),
            Relaxed,
        );
        fence(Release);
        entry.word.store(notification.word, Relaxed);
        entry.from.store(notification.from.to_bits(), Relaxed);
        entry.head.store(
            u64::from(generation(self.next, self.generation_shift))
                | u64::from(notification.metadata_index) << 16
                | u64::from(notification.slot.to_bits()) << 32,
            Release,
        );
        self.next += 1;
    }

    /// Number of entries.
    pub fn capacity(&self) -> usize {
        self.entries.len()
    }
}

/// True if an entry was written for that position, or a later one over it.
#[inline]
fn is_written(entries: &[Entry], position: u64, generation_shift: u32) -> bool {
    let mask = entries.len() - 1;
    entries.get(position as usize & mask).is_some_and(|entry| {
        let head = entry.head.load(Acquire);
        !matches!(
            entry_state(head, position, generation_shift),
            EntryState::Empty
        )
    })
}

/// The entries that a reader has not taken ([`NotificationReader::unread`]).
#[derive(Debug)]
pub struct Unread {
    entries: Arc<[Entry]>,
    next: u64,
    generation_shift: u32,
}

impl Unread {
    /// True if anything has come since.
    #[inline]
    pub fn is_any(&self) -> bool {
        is_written(&self.entries, self.next, self.generation_shift)
    }
}

/// The application's end. It has a cursor of its own.
#[derive(Debug)]
pub struct NotificationReader {
    entries: Arc<[Entry]>,
    next: u64,
    generation_shift: u32,
    lost: u64,
}

impl NotificationReader {
    /// The next notification, if there is one. After an [`Overrun`] the next call goes on
    /// with the oldest notification that is left.
    #[inline(always)]
    pub fn pop(&mut self) -> Result<Option<Notification>, Overrun> {
        let mask = self.entries.len() - 1;
        let Some(entry) = self.entries.get(self.next as usize & mask) else {
            return Ok(None);
        };
        let head = entry.head.load(Acquire);
        let seen = entry_state(head, self.next, self.generation_shift);
        if let EntryState::Empty = seen {
            return Ok(None);
        }
        if let EntryState::Ready = seen {
            let word = entry.word.load(Relaxed);
            let from = LinkId::from_bits(entry.from.load(Relaxed));
            fence(Acquire);
            if entry.head.load(Relaxed) == head {
                self.next += 1;
                return Ok(Some(Notification {
                    slot: SlotName::from_bits((head >> 32) as u32),
                    metadata_index: (head >> 16) as u16,
                    word,
                    from,
                }));
            }
        }
        self.overtaken()
    }

    /// Whether [`NotificationReader::pop`] would return something.
    #[inline]
    pub fn is_pending(&self) -> bool {
        is_written(&self.entries, self.next, self.generation_shift)
    }

    /// Tells without the reader whether something has come that it has not taken by now.
    pub fn unread(&self) -> Unread {
        Unread {
            entries: self.entries.clone(),
            next: self.next,
            generation_shift: self.generation_shift,
        }
    }

    /// Notifications lost to overrun since the queue was made.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Number of entries.
    pub fn capacity(&self) -> usize {
        self.entries.len()
    }

    /// Skips what was overwritten. The writer is at least one generation ahead of the
    /// cursor, so the entries up to its own position minus one generation are gone.
    #[cold]
    fn overtaken(&mut self) -> Result<Option<Notification>, Overrun> {
        let mask = self.entries.len() - 1;
        let length = self.entries.len() as u64;
        let before = self.next;
        for _ in 0..=length {
            let Some(entry) = self.entries.get(self.next as usize & mask) else {
                break;
            };
            // Not written yet, or the oldest that is left: go on from here.
            let EntryState::Ahead(ahead) =
                entry_state(entry.head.load(Acquire), self.next, self.generation_shift)
            else {
                break;
            };
            // The entry here belongs to position `next + ahead * length`, so all up
            // to one generation before that is gone.
            self.next += (ahead - 1) * length + 1;
        }
        let lost = self.next - before;
        self.lost += lost;
        Err(Overrun { lost })
    }
}

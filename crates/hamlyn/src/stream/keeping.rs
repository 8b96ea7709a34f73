//! Records that their application keeps, beyond the next one, and gives back in any order. The
//! sender is told of memory in order, so a record that is kept holds back the memory of all that
//! came after it.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::rc::Rc;
use std::task::Waker;

use crate::drop_list::DropList;

/// A record that was delivered: where it starts and how long it is. It stays there, unchanged,
/// until it is released.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Delivered {
    pub(super) extent: u64,
    pub(super) offset: u64,
    pub(super) length_bytes: usize,
    /// The piece that it begins in.
    pub(super) position: u64,
    /// What releasing it gives back: all pieces before this position.
    pub(super) release: u64,
}

/// A record that is kept ([`crate::stream::Record::keep`]). Its memory goes back when this is
/// dropped and all records before it have gone back, at the next call of the stream. It stays in
/// its thread, so that the stream does not wait asleep for a sender that waits for this memory.
#[derive(Debug)]
pub struct Kept {
    pub(super) delivered: Delivered,
    serial: u64,
    /// Takes its serial number when it is dropped.
    released: DropList<u64>,
    in_thread: PhantomData<Rc<()>>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.released.note(self.serial);
    }
}

/// The records of a stream that were delivered since the oldest that is kept.
#[derive(Debug, Default)]
pub(super) struct Keeping {
    /// Each with whether it was given back.
    records: VecDeque<(Delivered, bool)>,
    /// The serial number of the first of them.
    first: u64,
    released: DropList<u64>,
}

impl Keeping {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn will_wake_when_released(&self, waker: &Waker) {
        self.released.will_wake(waker);
    }

    /// Whether a record is kept here.
    pub(super) fn owns(&self, kept: &Kept) -> bool {
        self.released.is(&kept.released)
    }

    pub(super) fn keep(&mut self, delivered: Delivered) -> Kept {
        self.records.push_back((delivered, false));
        Kept {
            delivered,
            serial: self.first + self.records.len() as u64 - 1,
            released: self.released.clone(),
            in_thread: PhantomData,
        }
    }

    /// A record that was delivered after those that are kept is given back.
    pub(super) fn give_back(&mut self, delivered: Delivered) {
        self.records.push_back((delivered, true));
    }

    /// The last record before the first that is still kept, if there is news: all up to it go back.
    pub(super) fn last_given_back(&mut self) -> Option<Delivered> {
        let Self { records, first, .. } = self;
        self.released.retain(|serial| {
            if let Some(record) = records.get_mut((*serial - *first) as usize) {
                record.1 = true;
            }
            false
        });
        let mut last = None;
        while let Some(&(delivered, true)) = self.records.front() {
            self.records.pop_front();
            self.first += 1;
            last = Some(delivered);
        }
        last
    }
}

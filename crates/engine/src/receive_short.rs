//! The fast path: short packets for which one look at a slot decides.

use crate::memory::{Area, Window};
use crate::metadata::MetadataEntry;
use crate::packet::ShortInPlace;
use crate::point::Point;
use crate::receive::{Awaited, Receiver};
use crate::receive_observer::{ReceiveEvent, ReceiveObserver};
use crate::received::ShortReceived;
use crate::slot::QueueId;

impl<A: Area, O: ReceiveObserver<A>> Receiver<A, O> {
    /// The fast path, for a short packet that is announced in the empty queue `waiting`: in fast
    /// mode to a slot whose key alone decides, or with a word of metadata to an entry of a
    /// `paranoid_one_shot` slot. Nothing for any other packet, and for one that is refused: the
    /// call has had no effect, and [`Receiver::receive`] must decide.
    ///
    /// An application that awaits a message to one entry, and knows what it has permitted there,
    /// gives that and the entry as `awaited`; then only whether it is armed is looked up, and a
    /// packet to another entry is left.
    #[inline(always)]
    pub fn receive_short<P: ShortInPlace>(
        &mut self,
        short: &P,
        waiting: QueueId,
        awaited: Option<(&Awaited, &MetadataEntry)>,
    ) -> Option<ShortReceived> {
        self.tell(|| ReceiveEvent::CameShort {
            short: short.copied(),
            waiting,
            is_awaited: awaited.is_some(),
        });
        let received = self.take_short(short, waiting, awaited);
        self.tell(|| ReceiveEvent::DoneShort(received));
        received
    }

    /// See [`Receiver::receive_short`].
    #[inline(always)]
    fn take_short<P: ShortInPlace>(
        &mut self,
        short: &P,
        waiting: QueueId,
        awaited: Option<(&Awaited, &MetadataEntry)>,
    ) -> Option<ShortReceived> {
        let to = short.to();
        // Each field is read once.
        let (key, offset, length_bytes) = (short.key(), short.offset(), short.length_bytes());
        if !P::HAS_METADATA {
            let fast_slot = self.slots.fast_slot(to)?;
            if fast_slot.key != key
                || fast_slot.queue != Some(waiting)
                || !fast_slot.window.write_short(offset, short)
            {
                return None;
            }
            let word = short.word();
            pass_short(short, length_bytes);
            return Some(ShortReceived {
                to,
                word,
                metadata: 0,
                offset: 0,
                length_bytes: 0,
            });
        }
        if let Some((awaited, _)) = awaited
            && !awaited.permits(to, key, offset, length_bytes)
        {
            return None;
        }
        let slot = self.slots.named(to.slot()).ok()?;
        if slot.one_shot_queue != Some(waiting) {
            return None;
        }
        // All limits of an awaited message lie in one piece of the area, so the piece of the data
        // is all that changes hands. The slot fits its area and the data fit the slot, so nothing
        // overflows.
        let at = slot.base.wrapping_add(offset);
        let (entry, low, high, word) = match awaited {
            Some((awaited, entry)) => {
                debug_assert!(awaited.is_permitted(slot, entry));
                // A permitted range may lie beyond the slot, which is for this to find.
                if offset + length_bytes as u64 > slot.length_bytes || !entry.is_armed() {
                    return None;
                }
                // One piece changes hands: the one with the data.
                if length_bytes == 0 {
                    return None;
                }
                (entry, at, at + length_bytes as u64, 0)
            }
            None => {
                let entry = slot.metadata.as_ref()?.named(to.metadata_index())?;
                let (low, high) = entry.admit_once(key, offset, length_bytes as u64)?;
                if high > slot.length_bytes {
                    return None;
                }
                let (low, high) = (slot.base + low, slot.base + high);
                (entry, low, high, entry.receive_class())
            }
        };
        if !slot.area.complete_with_short(at, short, low, high) {
            return None;
        }
        let metadata = short.word();
        entry.store_metadata_word(metadata, size_of_val(&metadata));
        if awaited.is_none() {
            entry.set_landed(offset, length_bytes as u32);
        }
        pass_short(short, length_bytes);
        // Last: from then on the application may give the place and the entry away again.
        entry.spend();
        Some(ShortReceived {
            to,
            word,
            metadata,
            offset,
            length_bytes,
        })
    }
}

/// Passes what was done for a packet that came the fast path.
#[inline(always)]
fn pass_short<P: ShortInPlace>(short: &P, length_bytes: usize) {
    short.passes(Point::HeaderRead);
    short.passes(Point::SlotRead);
    short.passes(Point::KeyChecked);
    if P::HAS_METADATA {
        short.passes(Point::EntryRead);
        short.passes(Point::MetadataStored(size_of::<u64>() as u32));
    }
    short.passes(Point::Deposited(length_bytes as u32));
    short.passes(Point::Notified);
}

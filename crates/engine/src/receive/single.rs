//! Reception of single packets, the shortest way (decision 0004).
//!
//! Every check of [`Receiver::receive_for`] is made, each once, and nothing has an effect before all of them are. No
//! refusal has a name here: what is not let in goes the ordinary way, which names it. Messages of
//! several packets, unannounced ones, and those to `paranoid` slots do so, too.

use super::Receiver;
use crate::grant::Holder;
use crate::memory::{Area, Payload};
use crate::notification::Notification;
use crate::packet::Single;
use crate::slot::{Mode, QueueId, Rights};

impl<A: Area> Receiver<A> {
    /// As [`Receiver::receive_for`], for a single packet that is announced in the empty queue `waiting`. Nothing for
    /// one that is refused, or announced elsewhere: that has had no effect, and the other is to judge it.
    /// `single` must be a private copy; `payload` may change at any time.
    #[inline(always)]
    pub fn receive_single<P: Payload<A>>(
        &mut self,
        holder: impl FnOnce() -> Option<Holder>,
        single: &Single,
        payload: &P,
        waiting: QueueId,
    ) -> Option<Notification> {
        if !self.slots.gate_is_open() {
            return None;
        }
        let slot = self.slots.named(single.to.slot()).ok()?;
        if slot.revoked || slot.queue != Some(waiting) || !slot.rights.grant(Rights::WRITE) {
            return None;
        }
        let end = single.offset.checked_add(u64::from(single.length_bytes))?;
        if end > slot.length_bytes {
            return None;
        }
        let metadata_index = single.to.metadata_index();
        let entry = if single.to.is_fast() {
            None
        } else {
            Some(slot.metadata.as_ref()?.entry(metadata_index)?)
        };
        let mut limits = None;
        match (slot.mode, entry) {
            (Mode::Normal, _) if slot.key == single.key => {}
            (Mode::ParanoidOneShot, Some(entry)) => {
                let length = u64::from(single.length_bytes);
                let (low, high) = entry.admit_once(single.key, single.offset, length)?;
                limits = Some((low, high.min(slot.length_bytes)));
            }
            _ => return None,
        }
        match entry {
            None if single.has_metadata => return None,
            // A delta that counts.
            Some(_) if !single.has_metadata && single.word != 0 => return None,
            _ => {}
        }
        if single.is_placed {
            let place = single.offset..end;
            slot.grants.cover(holder()?, place).ok()?;
        } else {
            // `base + offset` cannot overflow: the slot fits its area and the packet fits the slot.
            let at = slot.base + single.offset;
            payload.deposit(&slot.area, at).ok()?;
        }
        let Some(entry) = entry else {
            return Some(Notification {
                slot: single.to.slot(),
                metadata_index,
                word: single.word,
            });
        };
        if single.has_metadata {
            entry.store_metadata_word(single.word, size_of_val(&single.word));
        }
        let word = entry.receive_class();
        if let Some((low, high)) = limits {
            slot.area
                .message_complete(slot.base + low, slot.base + high);
            // Last: from then on the application may give the place and the entry away again.
            entry.spend();
        }
        Some(Notification {
            slot: single.to.slot(),
            metadata_index,
            word,
        })
    }
}

//! Slots whose metadata entries take one message each, under one key that no peer knows yet
//! (`Hamlyn 2.6`, `2.7`). What lands is announced to one receiver. All end points but tagged writes
//! stand on them.

use std::ops::Range;

use hamlyn_engine::key::Key;
use hamlyn_engine::metadata::{MetadataArea, MetadataEntry, Permission};
use hamlyn_engine::slot::Mode;
use hamlyn_host::Host;

use crate::arrival::ClassId;
use crate::error::OpenError;
use crate::session::Session;
use crate::slot::{NewSlot, Slot};

/// See the module.
#[derive(Debug)]
pub(crate) struct OneShotSlot {
    pub(crate) slot: Slot,
    pub(crate) metadata: MetadataArea,
    pub(crate) key: Key,
}

impl OneShotSlot {
    /// Opens it with at least one entry, none of which is armed or permits anything. The caller has
    /// reserved its notifications.
    pub(crate) fn open<H: Host>(
        session: &mut Session<'_, H>,
        class: ClassId,
        new: NewSlot,
        entries: usize,
    ) -> Result<Self, OpenError> {
        let queue = session.core.queue().id();
        let key = session.new_key()?;
        let mut new = new.mode(Mode::ParanoidOneShot).entries(entries);
        new.queue = Some(queue);
        let slot = session.open_slot(new)?;
        let Some(metadata) = slot.metadata().cloned() else {
            unreachable!("the slot was opened with entries");
        };
        for entry in metadata.entries(0..entries as u32) {
            entry.set_receive_class(class.to_bits());
        }
        Ok(Self {
            slot,
            metadata,
            key,
        })
    }

    /// Lets a message with the slot's key into that part of the slot, once the entry is armed.
    pub(crate) fn permit(&self, entry: &MetadataEntry, part: Range<u64>) {
        entry.permit(Permission {
            key: self.key,
            low: part.start,
            high: part.end,
        });
    }
}

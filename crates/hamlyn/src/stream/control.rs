//! Where a stream's sender speaks beside its records: one slot with an entry for each thing that it may say, open as
//! long as the receiver. Extents come and go meanwhile, and what was said to one that is gone would not be heard.

use hamlyn_engine::key::Key;
use hamlyn_engine::limits::USER_METADATA_BYTES;
use hamlyn_engine::metadata::{MetadataArea, Permission};
use hamlyn_engine::packet::SlotName;
use hamlyn_engine::slot::Mode;
use hamlyn_host::Host;

use super::wire::CONTROL_ENTRIES;
use crate::error::OpenError;
use crate::manager::{ClassId, Entered};
use crate::slot::{NewSlot, Slot};

/// See the module.
#[derive(Debug)]
pub(crate) struct Control {
    slot: Slot,
    metadata: MetadataArea,
    key: Key,
}

impl Control {
    /// Opens it, with every entry armed once. The caller has reserved their notifications.
    pub(crate) fn open<H: Host>(
        manager: &mut Entered<'_, H>,
        class: ClassId,
    ) -> Result<Self, OpenError> {
        let queue = manager.queue().id();
        let interface = manager.interface_mut();
        let key = interface.new_key()?;
        // Nothing is ever stored there: the limits of all entries are empty, and so is the slot.
        let area = interface.allocate(0)?;
        let mut new = NewSlot::over(area)
            .mode(Mode::ParanoidOneShot)
            .entries(usize::from(CONTROL_ENTRIES));
        new.queue = Some(queue);
        let slot = interface.open_slot(new)?;
        let Some(metadata) = slot.metadata().cloned() else {
            unreachable!("the slot was opened with entries");
        };
        for entry in metadata.entries(0..u32::from(CONTROL_ENTRIES)) {
            entry.set_receive_class(class.to_bits());
            entry.permit(Permission {
                key,
                low: 0,
                high: 0,
            });
            entry.arm();
        }
        Ok(Self {
            slot,
            metadata,
            key,
        })
    }

    pub(crate) fn close<H: Host>(self, manager: &mut Entered<'_, H>) -> Result<(), OpenError> {
        manager.interface_mut().close_slot(self.slot)?;
        Ok(())
    }

    #[inline]
    pub(crate) fn slot_name(&self) -> SlotName {
        self.slot.name()
    }

    pub(crate) fn key(&self) -> Key {
        self.key
    }

    /// What was said to that entry; its length in bytes.
    pub(crate) fn heard(&self, which: u16, into: &mut [u8; USER_METADATA_BYTES]) -> usize {
        self.metadata
            .entry(which)
            .map_or(0, |entry| entry.metadata(into))
    }

    /// Lets one more be said to that entry.
    pub(crate) fn arm(&self, which: u16) {
        if let Some(entry) = self.metadata.entry(which) {
            entry.arm();
        }
    }
}

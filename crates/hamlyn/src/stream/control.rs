//! Where a stream's sender speaks beside its records: one slot with an entry for each thing that it
//! may say, open as long as the receiver. Extents come and go meanwhile, and what was said to one
//! that is gone would not be heard.

use hamlyn_engine::key::Key;
use hamlyn_engine::limits::USER_METADATA_BYTES;
use hamlyn_engine::packet::SlotName;
use hamlyn_host::Host;

use super::wire::CONTROL_ENTRIES;
use crate::arrival::ClassId;
use crate::error::OpenError;
use crate::one_shot::OneShotSlot;
use crate::session::Session;
use crate::slot::NewSlot;

/// See the module.
#[derive(Debug)]
pub(crate) struct Control(OneShotSlot);

impl Control {
    /// Opens it, with every entry armed once. The caller has reserved their notifications.
    pub(crate) fn open<H: Host>(
        session: &mut Session<'_, H>,
        class: ClassId,
    ) -> Result<Self, OpenError> {
        // Nothing is ever stored there: the limits of all entries are empty, and so is the slot.
        let new = NewSlot::over(session.allocate(0)?);
        let opened = OneShotSlot::open(session, class, new, usize::from(CONTROL_ENTRIES))?;
        for entry in opened.metadata.entries(0..u32::from(CONTROL_ENTRIES)) {
            opened.permit(entry, 0..0);
            entry.arm();
        }
        Ok(Self(opened))
    }

    pub(crate) fn close<H: Host>(self, session: &mut Session<'_, H>) -> Result<(), OpenError> {
        session.close_slot(self.0.slot)?;
        Ok(())
    }

    #[inline]
    pub(crate) fn slot_name(&self) -> SlotName {
        self.0.slot.name()
    }

    pub(crate) fn key(&self) -> Key {
        self.0.key
    }

    /// What was said to that entry; its length in bytes.
    pub(crate) fn heard(&self, which: u16, into: &mut [u8; USER_METADATA_BYTES]) -> usize {
        self.0
            .metadata
            .entry(which)
            .map_or(0, |entry| entry.metadata(into))
    }

    /// Lets one more be said to that entry.
    pub(crate) fn arm(&self, which: u16) {
        if let Some(entry) = self.0.metadata.entry(which) {
            entry.arm();
        }
    }
}

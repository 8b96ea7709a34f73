//! Exports of an interface, and its imports of others'.

use hamlyn_engine::packet::SlotName;
use hamlyn_ring::export::ExportedArea;

use crate::export::Import;
use crate::message::Target;

/// An export whose memory peers may still have mapped.
pub(super) struct Made {
    pub(super) slot: SlotName,
    pub(super) area: ExportedArea,
    pub(super) secret: u64,
}

/// Both sides of the exports of an interface.
#[derive(Default)]
pub(super) struct Exporting {
    pub(super) made: Vec<Made>,
    pub(super) imports: Vec<Import>,
}

impl Exporting {
    /// The import in which the place of a target lies.
    pub(super) fn import_of(&self, target: &Target) -> Option<&Import> {
        let ticket = &target.ticket;
        self.imports.iter().find(|import| {
            let of = &import.ticket.ticket;
            import.is_of(target.link, ticket.slot)
                && of.key == ticket.key
                && import.lasts()
                && ticket
                    .base
                    .checked_add(ticket.length_bytes)
                    .is_some_and(|end| end <= of.length_bytes)
        })
    }
}

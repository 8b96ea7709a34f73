//! An interface exports slots to peers, and imports those of others ([`crate::export`], decision
//! 0037).

use std::sync::Arc;

use hamlyn_engine::limits::FAST_INDEX;
use hamlyn_engine::memory::{Area as _, LinkId};
use hamlyn_engine::packet::SlotName;
use hamlyn_engine::slot::Rights;
use hamlyn_host::Host;
use hamlyn_ring::export::{ExportedArea, ImportedArea};
use hamlyn_ring::shared::Access;

use super::Interface;
use super::exports::Made;
use crate::export::{Export, ExportError, ExportTicket, IMPORTS_MAX, Import, ImportError};
use crate::slot::Slot;

/// How a slot with these rights is mapped by others.
fn access(rights: Rights) -> Option<Access> {
    match rights {
        Rights::READ => Some(Access::ReadOnly),
        Rights::ALL => Some(Access::Writable),
        _ => None,
    }
}

/// How what a ticket names is mapped. It was read from bytes or made by a slot, so its rights are
/// of those; made up otherwise, they are the least.
pub(crate) fn import_access(ticket: &ExportTicket) -> Access {
    access(ticket.rights).unwrap_or(Access::ReadOnly)
}

impl<H: Host> Interface<H> {
    /// Lets peers map the memory of a slot, which must be over all of an [exportable
    /// area](crate::Area::exportable); see [`crate::export`]. Allocates.
    pub fn export(&mut self, slot: &Slot) -> Result<Export, ExportError> {
        self.check()?;
        self.drain_events_if_asked();
        let rights = self.slot_info(slot)?.rights;
        let access = access(rights).ok_or(ExportError::Rights)?;
        let (area, files) = self.inbound.lock(|inbound| {
            let (area, base) = inbound.receiver.slot_place(slot.name)?;
            if base != 0 || slot.length_bytes != area.length_bytes() {
                return Err(ExportError::NotWhole {
                    slot_bytes: slot.length_bytes,
                    area_bytes: area.length_bytes(),
                });
            }
            Ok(ExportedArea::export(area, access)?)
        })?;
        // If this fails, the area is dropped, and so taken back.
        let secret = self.host.export(files, slot.length_bytes)?;
        self.exporting.made.push(Made {
            slot: slot.name,
            area,
            secret,
        });
        Ok(Export {
            ticket: ExportTicket {
                ticket: slot.whole(FAST_INDEX, slot.key),
                rights,
                secret,
            },
        })
    }

    /// Ends an export. When this has returned, nothing that importers do changes the area any more;
    /// their operations go as packets, which are judged as all others.
    ///
    /// Copies the pages that are there, and allocates as much. What is stored into them meanwhile,
    /// by other threads or by importers, may be lost. If there is no memory for that, nobody can
    /// take the export up any more, but those who have may still write: free some memory and call
    /// this again.
    pub fn revoke_export(&mut self, export: &Export) -> Result<(), ExportError> {
        self.check()?;
        let secret = export.ticket.secret;
        let at = self.exporting.made.iter().position(|made| {
            made.secret == secret
                && made.slot == export.ticket.ticket.slot
                && export.ticket.ticket.destination == self.host.identity()
        });
        self.end_export(at.ok_or(ExportError::NoSuchExport)?)
    }

    fn end_export(&mut self, at: usize) -> Result<(), ExportError> {
        let made = &mut self.exporting.made[at];
        self.host.withdraw_export(made.secret);
        // While nobody deposits: what is copied to fresh pages is all that was received.
        self.inbound.lock(|_| made.area.take_back())?;
        self.exporting.made.swap_remove(at);
        Ok(())
    }

    /// The slot is about to be closed: its export ends with it.
    pub(super) fn end_exports_on(&mut self, slot: SlotName) {
        let of_slot = |made: &Made| made.slot == slot;
        if let Some(at) = self.exporting.made.iter().position(of_slot)
            && let Err(error) = self.end_export(at)
        {
            // The export can still be revoked.
            tracing::warn!(%slot, %error, "the exported memory of a closed slot was not taken back");
        }
    }

    /// Exports whose memory was not taken back yet.
    pub fn exports_made(&self) -> usize {
        self.exporting.made.len()
    }

    /// Takes up an export that was fetched.
    pub(crate) fn take_up_export(
        &mut self,
        ticket: &ExportTicket,
        area: ImportedArea,
    ) -> Result<Import, ImportError> {
        if area.length_bytes() != ticket.ticket.length_bytes || ticket.ticket.base != 0 {
            return Err(ImportError::Length {
                found_bytes: area.length_bytes(),
                expected_bytes: ticket.ticket.length_bytes,
            });
        }
        // Others may have used the interface while it was fetched.
        let link = match self.way_to_import(ticket)? {
            Ok(link) => link,
            Err(import) => return Ok(import),
        };
        let import = Import {
            link,
            ticket: *ticket,
            area: Arc::new(area),
        };
        self.exporting.imports.push(import.clone());
        Ok(import)
    }

    /// The link to the owner of an export, if there is one, and room for one more import; or the
    /// import, if it is there already.
    pub(crate) fn way_to_import(
        &mut self,
        ticket: &ExportTicket,
    ) -> Result<Result<LinkId, Import>, ImportError> {
        self.drain_events_if_asked();
        let destination = ticket.ticket.destination;
        if destination.is_same(&self.host.identity()) {
            return Err(ImportError::Loopback);
        }
        let link = self.links.to(&destination).ok_or(ImportError::NotLinked)?;
        self.exporting.imports.retain(Import::lasts);
        let is_it = |import: &&Import| import.link == link && import.ticket == *ticket;
        if let Some(import) = self.exporting.imports.iter().find(is_it) {
            return Ok(Err(import.clone()));
        }
        match self.exporting.imports.len() < IMPORTS_MAX {
            true => Ok(Ok(link)),
            false => Err(ImportError::TooMany),
        }
    }

    /// Lets go of an import: operations go as packets again. Windows on it stay mapped as long as
    /// they live, and say that it does not [last](crate::export::DirectWindow::lasts).
    pub fn drop_import(&mut self, import: &Import) {
        if self.is_forked() {
            return;
        }
        import.area.let_go();
        self.exporting.imports.retain(Import::lasts);
    }

    /// The peer is gone: nobody answers for what its memory says.
    pub(super) fn end_imports_of(&mut self, link: LinkId) {
        let of_link = |import: &&Import| import.link == link;
        for import in self.exporting.imports.iter().filter(of_link) {
            import.area.let_go();
        }
        self.exporting.imports.retain(|import| import.link != link);
    }

    /// Areas of others that are imported.
    pub fn imports(&self) -> usize {
        self.exporting.imports.len()
    }
}

//! Messages that arrived, and the receivers that they are for.

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::notification::Notification;
use hamlyn_engine::packet::SlotName;
use hamlyn_engine::table::Name;

/// A message that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// The slot it came to.
    pub slot: SlotName,
    /// Its metadata entry.
    pub metadata_index: u16,
    /// The link over which it, or the last packet of it, came.
    pub from: LinkId,
}

impl Arrival {
    pub(crate) fn of(notification: &Notification) -> Self {
        Self {
            slot: notification.slot,
            metadata_index: notification.metadata_index,
            from: notification.from,
        }
    }
}

/// A receiver that the program defines: the virtual procedure of the paper's
/// receiver class. Called by the manager while it polls; it records the arrival and returns.
pub trait ReceiverClass: Send {
    /// Records an arrival.
    fn process_arrival(&mut self, arrival: Arrival);
}

/// Names a receiver with its manager. Put into its metadata entries as their receive class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClassId(pub(crate) u64);

impl ClassId {
    /// What [`hamlyn_engine::metadata::MetadataEntry::set_receive_class`] takes.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// Zero, which an entry has that was given no class, is no class.
    pub(crate) fn new(name: Name) -> Self {
        Self(name.to_bits() + 1)
    }

    #[inline]
    pub(crate) fn name(self) -> Name {
        Name::from_bits(self.0.wrapping_sub(1))
    }
}

/// A short message with a word of metadata, which was the next to come.
#[derive(Clone, Copy)]
pub(crate) struct ShortArrival {
    pub(crate) word: u64,
    /// Where in the slot its data lie.
    pub(crate) offset: u64,
    pub(crate) length_bytes: usize,
    pub(crate) from: LinkId,
}

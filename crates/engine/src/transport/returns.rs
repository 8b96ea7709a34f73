//! Frames of which packets come back to their sender (4.4). The buffer that was kept for sending again is what they come
//! back in.

use alloc::vec::Vec;

use super::frame::RefusedRun;
use super::packets::{Packet, Packets, Place};
use super::send_table::Entry;
use super::verdict::{Return, Returned, Verdict};
use crate::limits::USER_METADATA_BYTES;

/// Which packets of a frame come back.
#[derive(Debug)]
enum Which {
    All(Verdict),
    Refused(Vec<RefusedRun>),
}

/// A frame on its way back.
#[derive(Debug)]
pub(super) struct Coming {
    buffer: u16,
    length_bytes: u16,
    packets: u16,
    which: Which,
    was_never_sent: bool,
    /// The packet that is looked at next, and where it lies.
    index: u16,
    place: Place,
    /// The one that came back last: where it lies, and why.
    current: Option<(Place, Return)>,
}

impl Coming {
    fn new(buffer: u16, entry: &Entry, which: Which, was_never_sent: bool) -> Self {
        Self {
            buffer,
            length_bytes: entry.length_bytes,
            packets: entry.packets,
            which,
            was_never_sent,
            index: 0,
            place: Place::default(),
            current: None,
        }
    }

    /// All packets of it.
    pub(super) fn all(buffer: u16, entry: &Entry, why: Verdict, was_never_sent: bool) -> Self {
        Self::new(buffer, entry, Which::All(why), was_never_sent)
    }

    /// Those that were refused; `runs` are in order and do not overlap.
    pub(super) fn refused(buffer: u16, entry: &Entry, runs: Vec<RefusedRun>) -> Self {
        Self::new(buffer, entry, Which::Refused(runs), false)
    }

    pub(super) fn buffer(&self) -> u16 {
        self.buffer
    }

    fn why(&self, index: u16) -> Option<Return> {
        match &self.which {
            Which::All(verdict) => Some(Return::Ended(*verdict)),
            Which::Refused(runs) => runs
                .iter()
                .find(|run| (run.first..run.first + run.count).contains(&index))
                .map(|run| Return::of_code(run.reason)),
        }
    }

    /// Goes to the next packet that comes back; false if there is none.
    pub(super) fn advance(&mut self, buffer: &[u8]) -> bool {
        while self.index < self.packets {
            let (place, why) = (self.place, self.why(self.index));
            let mut packets = self.packets_at(buffer, place);
            if packets.next().is_none() {
                break;
            }
            self.place = packets.place(place);
            self.index += 1;
            if let Some(why) = why {
                self.current = Some((place, why));
                return true;
            }
        }
        false
    }

    fn packets_at<'a>(&self, buffer: &'a [u8], place: Place) -> Packets<'a> {
        let bytes = buffer.get(..usize::from(self.length_bytes));
        Packets::resume(bytes.unwrap_or_default(), place)
    }

    /// The packet that was gone to.
    pub(super) fn current<'a>(&self, buffer: &'a [u8]) -> Option<Returned<'a>> {
        let (place, reason) = self.current?;
        let mut packets = self.packets_at(buffer, place);
        let packet = packets.next()?;
        let mut metadata = [0; USER_METADATA_BYTES];
        let data = match packet {
            // The data of a short packet are the last of its bytes.
            Packet::Short(short) => {
                metadata[..8].copy_from_slice(&short.word.to_le_bytes());
                let end = packets.place(place).at();
                buffer.get(end.checked_sub(short.bytes().len())?..end)?
            }
            Packet::General {
                metadata: from,
                data,
                ..
            } => {
                metadata.get_mut(..from.len())?.copy_from_slice(from);
                data
            }
        };
        Some(Returned {
            header: packet.header(),
            metadata,
            data,
            reason,
            was_never_sent: self.was_never_sent,
        })
    }
}

//! Frames of which packets come back to their sender (4.4). The buffer that was kept for sending
//! again is what they come back in.

use alloc::vec::Vec;

use super::close_reason::{CloseReason, Return, Returned};
use super::frame::RefusedRun;
use super::packets::{Cursor, Packet, Packets};
use super::send_table::Entry;
use crate::limits::USER_METADATA_BYTES;

/// Which packets of a frame come back.
#[derive(Debug)]
enum Which {
    All(CloseReason),
    Refused(Vec<RefusedRun>),
}

/// A frame on its way back.
#[derive(Debug)]
pub(super) struct ReturnedFrame {
    buffer: u16,
    length_bytes: u16,
    packets: u16,
    which: Which,
    was_never_sent: bool,
    /// The packet that is looked at next, and where it lies.
    index: u16,
    cursor: Cursor,
    /// The one that came back last: where it lies, and why.
    current: Option<(Cursor, Return)>,
}

impl ReturnedFrame {
    fn new(buffer: u16, entry: &Entry, which: Which, was_never_sent: bool) -> Self {
        Self {
            buffer,
            length_bytes: entry.length_bytes,
            packets: entry.packets,
            which,
            was_never_sent,
            index: 0,
            cursor: Cursor::default(),
            current: None,
        }
    }

    /// All packets of it.
    pub(super) fn all(buffer: u16, entry: &Entry, why: CloseReason, was_never_sent: bool) -> Self {
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
            Which::All(close_reason) => Some(Return::Ended(*close_reason)),
            Which::Refused(runs) => runs
                .iter()
                .find(|run| (run.first..run.first + run.count).contains(&index))
                .map(|run| Return::of_code(run.reason)),
        }
    }

    /// Goes to the next packet that comes back; false if there is none.
    pub(super) fn advance(&mut self, buffer: &[u8]) -> bool {
        while self.index < self.packets {
            let (cursor, why) = (self.cursor, self.why(self.index));
            let mut packets = self.packets_at(buffer, cursor);
            if packets.next().is_none() {
                break;
            }
            self.cursor = packets.cursor(cursor);
            self.index += 1;
            if let Some(why) = why {
                self.current = Some((cursor, why));
                return true;
            }
        }
        false
    }

    fn packets_at<'a>(&self, buffer: &'a [u8], cursor: Cursor) -> Packets<'a> {
        let bytes = buffer.get(..usize::from(self.length_bytes));
        Packets::resume(bytes.unwrap_or_default(), cursor)
    }

    /// The packet that was gone to.
    pub(super) fn current<'a>(&self, buffer: &'a [u8]) -> Option<Returned<'a>> {
        let (cursor, reason) = self.current?;
        let mut packets = self.packets_at(buffer, cursor);
        let packet = packets.next()?;
        let mut metadata = [0; USER_METADATA_BYTES];
        let data = match packet {
            // The data of a short packet are the last of its bytes.
            Packet::Short(short) => {
                metadata[..8].copy_from_slice(&short.word.to_le_bytes());
                let end = packets.cursor(cursor).at();
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

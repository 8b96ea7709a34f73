//! A link that packets go to.

use std::collections::VecDeque;

use hamlyn_engine::packet::{Header, Kind, SlotName};
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::Return;
use hamlyn_link::TransmitEnd;

/// Packets that were refused and that no fence has told of: how many, and the last.
#[derive(Clone, Copy, Default)]
pub(crate) struct NewlyRefused {
    pub(crate) packets: u64,
    pub(crate) last: Option<(Header, Return)>,
}

/// A link that packets go to.
pub(super) struct TxRoute<T> {
    /// Its name, as a number.
    pub(super) link: u64,
    /// A packet found no room, and none has come since.
    pub(super) needs_credit: bool,
    /// The first fence that a call waits for.
    pub(super) fence: Option<u64>,
    /// The program was told that messages wait in the overflow log of the peer.
    pub(super) told_of_log: bool,
    /// Refused packets that fences have told of.
    pub(super) told: u64,
    /// Packets that came back, and that the program has not asked for yet.
    pub(super) returned: VecDeque<(Header, Return)>,
    /// Places that are not there any more, as packets said that came back lately: slots, and with
    /// `true` ports.
    pub(super) gone: VecDeque<(SlotName, bool)>,
    pub(super) end: T,
}

/// Places that are remembered to be gone, for each link.
const GONE_MAX: usize = 64;

impl<T: TransmitEnd> TxRoute<T> {
    /// A call waits for the answer to that fence. True if none did that comes as soon.
    pub(super) fn await_answer(&mut self, fence: u64) -> bool {
        let is_first = self.fence.is_none_or(|awaited| fence < awaited);
        if is_first {
            self.fence = Some(fence);
        }
        is_first
    }

    /// The next packet that came back, from the link.
    pub(super) fn fetch_returned(&mut self) -> Option<(Header, Return)> {
        let (header, reason) = self.end.next_returned()?;
        let is_gone = matches!(
            reason,
            Return::Refused(
                Refusal::NoSuchSlot | Refusal::SlotClosed | Refusal::SlotRevoked | Refusal::BadKey
            )
        );
        // A port may have the number of a slot.
        let place = (header.slot, header.kind == Kind::MESSAGE);
        if is_gone && !self.gone.contains(&place) {
            self.gone.truncate(GONE_MAX - 1);
            self.gone.push_front(place);
        }
        Some((header, reason))
    }

    /// What was refused since a fence told of it. Nothing while the peer overwrites its reports
    /// faster than they can be read.
    pub(super) fn newly_refused(&mut self) -> Option<NewlyRefused> {
        let refused = self.end.refused();
        let packets = refused.packets.saturating_sub(self.told);
        if packets > 0 && refused.last.is_none() {
            return None;
        }
        self.told += packets;
        let last = refused.last.filter(|_| packets > 0);
        Some(NewlyRefused { packets, last })
    }
}

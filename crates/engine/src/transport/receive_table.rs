//! The receiver's channels (4.2.1, Figure 4): for each the number of the frame that was taken last, and what its sender
//! is still to be told.
//!
//! Duplicates end here, before a key is looked at or anything is counted. What was taken is told
//! twice without being asked, as one run in two frames costs little and a lost acknowledgement
//! much; and once more for every duplicate.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::frame::{
    NACK_BYTES, Nack, REFUSED_BYTES, RUN_BYTES, RefusedRun, Run, TAKEN_IN_PART, TAKEN_WITHOUT,
    is_after,
};
use super::marks::Marks;
use super::verdict::NotNow;
use crate::refusal::Refusal;

/// NACKs of whole frames that wait to be sent; further ones are left out, and the frames come again.
const PUT_OFF_MAX: usize = 64;

/// What a frame is to its channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    Fresh,
    /// It was taken already.
    Taken,
    /// It is just being taken.
    Giving,
    /// One before it was, or is.
    Stale,
    NoSuchChannel,
}

/// Packets of the frame that was taken last that were not welcome.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Refused {
    sequence: u32,
    stamp: u32,
    runs: Vec<RefusedRun>,
    /// So many of the runs were told since the sender is to be told.
    told: usize,
}

/// The channels from one peer.
#[derive(Debug)]
pub(super) struct ReceiveTable {
    taken: Box<[u32]>,
    /// Of these a frame was given out and is being taken.
    giving: Marks,
    /// Of these the sender is to be told what was taken.
    owed: Marks,
    /// Of these it was told once.
    told: Marks,
    /// Of these it is to be told which packets were refused.
    partly: Marks,
    /// Kept until the sender uses the channel again, which shows that it was told.
    refused: BTreeMap<u16, Refused>,
    put_off: Vec<Nack>,
    /// Where telling goes on.
    cursor: u16,
    /// Frames that came since all was told.
    waiting: u32,
    /// Since when something is to be told.
    waiting_ns: u64,
}

/// What the acknowledgements in a frame amount to.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Told {
    pub(super) length_bytes: usize,
    pub(super) runs: u8,
    pub(super) nacks: u8,
}

impl ReceiveTable {
    /// Nothing was taken.
    pub(super) fn new(channels: u16) -> Self {
        Self {
            taken: vec![0; usize::from(channels)].into(),
            giving: Marks::none(channels),
            owed: Marks::none(channels),
            told: Marks::none(channels),
            partly: Marks::none(channels),
            refused: BTreeMap::new(),
            put_off: Vec::with_capacity(PUT_OFF_MAX),
            cursor: 0,
            waiting: 0,
            waiting_ns: 0,
        }
    }

    /// Every channel took the frame of that number last.
    #[cfg(test)]
    pub(super) fn set_taken(&mut self, sequence: u32) {
        self.taken.fill(sequence);
    }

    /// What a frame of that number is.
    pub(super) fn standing(&self, channel: u16, sequence: u32) -> Standing {
        let Some(&taken) = self.taken.get(usize::from(channel)) else {
            return Standing::NoSuchChannel;
        };
        if self.giving.contains(channel) {
            // Of an honest sender it is that one: there is one at a time that is newer.
            if is_after(sequence, taken) {
                Standing::Giving
            } else {
                Standing::Stale
            }
        } else if is_after(sequence, taken) {
            Standing::Fresh
        } else if sequence == taken {
            Standing::Taken
        } else {
            Standing::Stale
        }
    }

    /// The frame of this channel is given out.
    pub(super) fn give(&mut self, channel: u16) {
        self.giving.set(channel);
        // That the channel is used again shows that its sender knows what became of the frame before.
        if !self.refused.is_empty() && self.refused.remove(&channel).is_some() {
            self.partly.clear(channel);
        }
    }

    /// How many are given out.
    pub(super) fn given(&self) -> usize {
        self.giving.count()
    }

    /// A packet of the frame that is being taken is not welcome. Indices of one frame do not go down.
    pub(super) fn refuse(
        &mut self,
        channel: u16,
        sequence: u32,
        stamp: u32,
        index: u16,
        reason: Refusal,
    ) {
        let refused = self.refused.entry(channel).or_insert(Refused {
            sequence,
            stamp,
            runs: Vec::new(),
            told: 0,
        });
        let reason = reason as u8;
        match refused.runs.last_mut() {
            Some(run) if index < run.first + run.count => {}
            Some(run) if run.first + run.count == index && run.reason == reason => run.count += 1,
            _ => refused.runs.push(RefusedRun {
                first: index,
                count: 1,
                reason,
            }),
        }
    }

    /// All packets of the frame were given to the interface.
    pub(super) fn take(&mut self, now_ns: u64, channel: u16, sequence: u32) {
        self.giving.clear(channel);
        self.taken[usize::from(channel)] = sequence;
        // A duplicate that came meanwhile was told about the frame before.
        self.told.clear(channel);
        self.owe(now_ns, channel);
    }

    /// The sender of this channel is to be told what was taken, for the first time or again.
    pub(super) fn owe(&mut self, now_ns: u64, channel: u16) {
        self.came(now_ns);
        if !self.refused.is_empty()
            && let Some(refused) = self.refused.get_mut(&channel)
        {
            refused.told = 0;
            self.owed.clear(channel);
            self.partly.set(channel);
        } else {
            self.owed.set(channel);
        }
    }

    /// The frame cannot be taken now.
    pub(super) fn put_off(
        &mut self,
        now_ns: u64,
        channel: u16,
        sequence: u32,
        stamp: u32,
        why: NotNow,
    ) {
        self.giving.clear(channel);
        self.refused.remove(&channel);
        self.say_not_now(now_ns, channel, sequence, stamp, why);
    }

    /// The sender of a frame that is not taken yet is told so.
    pub(super) fn say_not_now(
        &mut self,
        now_ns: u64,
        channel: u16,
        sequence: u32,
        stamp: u32,
        why: NotNow,
    ) {
        if self.put_off.len() < PUT_OFF_MAX {
            self.put_off
                .push(Nack::whole(channel, sequence, stamp, why));
        }
        self.came(now_ns);
    }

    fn came(&mut self, now_ns: u64) {
        if self.waiting == 0 {
            self.waiting_ns = now_ns;
        }
        self.waiting = self.waiting.saturating_add(1);
    }

    /// How many frames wait to be answered.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Since when; only if some wait.
    #[inline]
    pub(super) fn waiting_since_ns(&self) -> Option<u64> {
        (self.waiting > 0).then_some(self.waiting_ns)
    }

    /// Writes whatever is to be told, as much as has room.
    pub(super) fn tell(&mut self, into: &mut [u8]) -> Told {
        let mut told = Told::default();
        // Whatever has no room waits for the next frame.
        let is_all = self.tell_runs(into, &mut told)
            & self.tell_refused(into, &mut told)
            & self.tell_put_off(into, &mut told);
        if is_all {
            self.waiting = 0;
        }
        told
    }

    fn tell_refused(&mut self, into: &mut [u8], told: &mut Told) -> bool {
        if self.partly.count() == 0 {
            return true;
        }
        let mut from = 0;
        while let Some(channel) = self.partly.next(from) {
            from = channel + 1;
            let Some(refused) = self.refused.get_mut(&channel) else {
                self.partly.clear(channel);
                continue;
            };
            let place = into.get_mut(told.length_bytes..).unwrap_or_default();
            let room = place.len().saturating_sub(NACK_BYTES + 2) / REFUSED_BYTES;
            let left = refused.runs.get(refused.told..).unwrap_or_default();
            // A run without packets says where the runs of the frame before ended.
            let before = refused.runs[..refused.told].last();
            let goes_on = before.map(|run| RefusedRun {
                first: run.first + run.count,
                count: 0,
                reason: 0,
            });
            let extra = usize::from(goes_on.is_some());
            let runs = left.len().min(room.saturating_sub(extra));
            if runs == 0 || told.nacks == u8::MAX {
                return false;
            }
            let is_last = runs == left.len();
            let nack = Nack {
                channel,
                sequence: refused.sequence,
                stamp: refused.stamp,
                reason: if is_last {
                    TAKEN_WITHOUT
                } else {
                    TAKEN_IN_PART
                },
            };
            let length = NACK_BYTES + 2 + (runs + extra) * REFUSED_BYTES;
            let (head, place) = place[..length].split_at_mut(NACK_BYTES);
            head.copy_from_slice(&nack.to_bytes());
            let (count, places) = place.split_at_mut(2);
            count.copy_from_slice(&((runs + extra) as u16).to_le_bytes());
            let written = goes_on.iter().chain(&left[..runs]);
            for (place, run) in places.chunks_exact_mut(REFUSED_BYTES).zip(written) {
                place.copy_from_slice(&run.to_bytes());
            }
            told.length_bytes += length;
            refused.told += runs;
            if !is_last {
                told.nacks += 1;
                return false;
            }
            told.nacks += 1;
            self.partly.clear(channel);
        }
        true
    }

    fn tell_runs(&mut self, into: &mut [u8], told: &mut Told) -> bool {
        if self.owed.count() == 0 {
            return true;
        }
        let start = self.cursor;
        let mut has_turned = false;
        let mut from = start;
        loop {
            let Some(first) = self.owed.next_in_either(&self.told, from) else {
                if has_turned || start == 0 {
                    return true;
                }
                (has_turned, from) = (true, 0);
                continue;
            };
            if has_turned && first >= start {
                return true;
            }
            let place = into.get_mut(told.length_bytes..);
            let place = place.and_then(|place| place.get_mut(..RUN_BYTES));
            let Some(place) = place.filter(|_| told.runs < u8::MAX) else {
                self.cursor = first;
                return self.owed.count() == 0;
            };
            let run = self.run_from(first);
            from = run.first + run.count;
            place.copy_from_slice(&run.to_bytes());
            told.length_bytes += RUN_BYTES;
            told.runs += 1;
        }
    }

    /// The run that begins at a marked channel; its marks go from one set to the other, or out.
    fn run_from(&mut self, first: u16) -> Run {
        let sequence = self.taken[usize::from(first)];
        let mut end = first;
        while self.taken.get(usize::from(end)) == Some(&sequence) {
            if self.owed.contains(end) {
                self.owed.clear(end);
                self.told.set(end);
            } else if self.told.contains(end) {
                self.told.clear(end);
            } else {
                break;
            }
            end += 1;
        }
        Run {
            first,
            count: end - first,
            sequence,
        }
    }

    fn tell_put_off(&mut self, into: &mut [u8], told: &mut Told) -> bool {
        while let Some(nack) = self.put_off.last() {
            let place = into.get_mut(told.length_bytes..);
            let place = place.and_then(|place| place.get_mut(..NACK_BYTES));
            let Some(place) = place.filter(|_| told.nacks < u8::MAX) else {
                return false;
            };
            place.copy_from_slice(&nack.to_bytes());
            told.length_bytes += NACK_BYTES;
            told.nacks += 1;
            self.put_off.pop();
        }
        true
    }
}

//! The receiver's channels (4.2.1, Figure 4): for each the number of the frame that was taken last,
//! and what its sender is still to be told.
//!
//! Duplicates end here, before a key is looked at or anything is counted. What was taken is told
//! twice without being asked, as one run in two frames costs little and a lost acknowledgement
//! much; and once more for every duplicate.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::channel_set::ChannelSet;
use super::close_reason::NackReason;
use super::frame::{
    NACK_BYTES, Nack, REFUSED_BYTES, RUN_BYTES, RefusedRun, Run, TAKEN_IN_PART, TAKEN_WITHOUT,
    is_after,
};
use crate::limits::CHANNELS_OPEN_FIRST;
use crate::refusal::Refusal;

/// NACKs of whole frames that wait to be sent. Further ones are dropped; the peer sends those
/// frames again.
const NACKS_MAX: usize = 64;

/// Runs of refused packets that are kept; beyond, those that were told are forgotten, and no frame
/// is taken while there are still more. A sender whose packets are all refused for one reason has
/// one run for each channel.
const REFUSED_RUNS_MAX: usize = 32_768;

/// The first frame of a channel may be so many rounds older than that of another that was opened
/// with it.
const ROUNDS_LATE: u32 = 1 << 30;

/// What a frame is to its channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    Fresh,
    /// It was taken already.
    Taken,
    /// It is just being taken.
    Delivering,
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
    written: usize,
}

/// The channels from one peer.
#[derive(Debug)]
pub(super) struct ReceiveTable {
    /// Of the channels up to the last one that was used.
    taken: Vec<u32>,
    channels_max: u16,
    /// Of these a frame was given out and is being taken.
    delivering: ChannelSet,
    /// Of these the sender is to be told what was taken.
    unacknowledged: ChannelSet,
    /// Of these it was told once.
    acknowledged_once: ChannelSet,
    /// Of these it is to be told which packets were refused.
    partly: ChannelSet,
    /// Kept until the sender uses the channel again, which shows that it was told.
    refused: BTreeMap<u16, Refused>,
    /// How many runs these are.
    refused_runs: usize,
    nacks: Vec<Nack>,
    /// Where telling goes on.
    next_channel: u16,
    /// Frames that came since all was told.
    waiting: u32,
    /// Since when something is to be told.
    waiting_ns: u64,
}

/// What the acknowledgements in a frame amount to.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Written {
    pub(super) length_bytes: usize,
    pub(super) runs: u8,
    pub(super) nacks: u8,
}

impl ReceiveTable {
    /// Nothing was taken.
    pub(super) fn new(channels_max: u16) -> Self {
        let channels = channels_max.min(CHANNELS_OPEN_FIRST);
        Self {
            taken: vec![0; usize::from(channels)],
            channels_max,
            delivering: ChannelSet::empty(channels),
            unacknowledged: ChannelSet::empty(channels),
            acknowledged_once: ChannelSet::empty(channels),
            partly: ChannelSet::empty(channels),
            refused: BTreeMap::new(),
            refused_runs: 0,
            nacks: Vec::with_capacity(NACKS_MAX),
            next_channel: 0,
            waiting: 0,
            waiting_ns: 0,
        }
    }

    /// Every channel took the frame of that number last.
    pub(super) fn set_taken(&mut self, sequence: u32) {
        self.taken.fill(sequence);
    }

    /// What a frame of that number is.
    pub(super) fn standing(&self, channel: u16, sequence: u32) -> Standing {
        let Some(&taken) = self.taken.get(usize::from(channel)) else {
            // One that was never used: any number is new.
            return match channel < self.channels_max {
                true => Standing::Fresh,
                false => Standing::NoSuchChannel,
            };
        };
        if self.delivering.contains(channel) {
            // Of an honest sender it is that one: there is one at a time that is newer.
            if is_after(sequence, taken) {
                Standing::Delivering
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

    /// The frame of that number of this channel is given out.
    pub(super) fn deliver(&mut self, channel: u16, sequence: u32) {
        if usize::from(channel) >= self.taken.len() {
            self.open(channel, sequence);
        }
        self.delivering.insert(channel);
        // That the channel is used again shows that its sender knows what became of the frame
        // before.
        if !self.refused.is_empty() && self.forget_refused(channel) {
            self.partly.remove(channel);
        }
    }

    /// Forgets which packets of a channel were refused; whether there were any.
    #[cold]
    fn forget_refused(&mut self, channel: u16) -> bool {
        let Some(refused) = self.refused.remove(&channel) else {
            return false;
        };
        self.refused_runs -= refused.runs.len();
        true
    }

    /// Whether another frame may be taken: so that a peer does not have us keep runs without end,
    /// those that were told are forgotten first. The sender that missed the answer is told, when
    /// it asks, that all of that frame was taken. The number of frames is added.
    #[inline]
    pub(super) fn has_room_for_refusals(&mut self, forgotten: &mut u64) -> bool {
        self.refused_runs <= REFUSED_RUNS_MAX || self.make_room_for_refusals(forgotten)
    }

    #[cold]
    fn make_room_for_refusals(&mut self, forgotten: &mut u64) -> bool {
        let (partly, delivering) = (&self.partly, &self.delivering);
        let mut left = self.refused_runs;
        self.refused.retain(|&channel, refused| {
            let is_told = !partly.contains(channel) && !delivering.contains(channel);
            let stays = !is_told || left <= REFUSED_RUNS_MAX / 2;
            if !stays {
                left -= refused.runs.len();
                *forgotten += 1;
            }
            stays
        });
        self.refused_runs = left;
        left <= REFUSED_RUNS_MAX
    }

    /// Opens channels up to that one at least, whose first frame has that number.
    #[cold]
    fn open(&mut self, channel: u16, sequence: u32) {
        let before = self.taken.len() as u16;
        let channels = (channel + 1)
            .max(before.saturating_mul(2))
            .min(self.channels_max);
        // The first frames of the others may have been sent a little earlier, and come later.
        let taken = sequence.wrapping_sub(ROUNDS_LATE);
        self.taken.resize(usize::from(channels), taken);
        for set in [
            &mut self.delivering,
            &mut self.unacknowledged,
            &mut self.acknowledged_once,
            &mut self.partly,
        ] {
            set.grow(channels);
        }
    }

    /// How many are given out.
    pub(super) fn delivering_count(&self) -> usize {
        self.delivering.count()
    }

    /// A packet of the frame that is being taken is not welcome. Indices of one frame do not go
    /// down.
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
            written: 0,
        });
        let reason = reason as u8;
        match refused.runs.last_mut() {
            Some(run) if index < run.first + run.count => {}
            Some(run) if run.first + run.count == index && run.reason == reason => run.count += 1,
            _ => {
                self.refused_runs += 1;
                refused.runs.push(RefusedRun {
                    first: index,
                    count: 1,
                    reason,
                });
            }
        }
    }

    /// All packets of the frame were given to the interface.
    pub(super) fn take(&mut self, now_ns: u64, channel: u16, sequence: u32) {
        self.delivering.remove(channel);
        self.taken[usize::from(channel)] = sequence;
        // A duplicate that came meanwhile was told about the frame before.
        self.acknowledged_once.remove(channel);
        self.acknowledge(now_ns, channel);
    }

    /// The sender of this channel is to be told what was taken, for the first time or again.
    pub(super) fn acknowledge(&mut self, now_ns: u64, channel: u16) {
        self.came(now_ns);
        if !self.refused.is_empty()
            && let Some(refused) = self.refused.get_mut(&channel)
        {
            refused.written = 0;
            refused.runs.shrink_to_fit();
            self.unacknowledged.remove(channel);
            self.partly.insert(channel);
        } else {
            self.unacknowledged.insert(channel);
        }
    }

    /// The frame cannot be taken now.
    pub(super) fn nack(
        &mut self,
        now_ns: u64,
        channel: u16,
        sequence: u32,
        stamp: u32,
        why: NackReason,
    ) {
        self.delivering.remove(channel);
        self.forget_refused(channel);
        self.push_nack(now_ns, channel, sequence, stamp, why);
    }

    /// The sender of a frame that is not taken yet is told so.
    pub(super) fn push_nack(
        &mut self,
        now_ns: u64,
        channel: u16,
        sequence: u32,
        stamp: u32,
        why: NackReason,
    ) {
        if self.nacks.len() < NACKS_MAX {
            self.nacks.push(Nack::whole(channel, sequence, stamp, why));
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

    /// Writes pending acknowledgements and NACKs, as many as fit.
    pub(super) fn write_acknowledgements(&mut self, into: &mut [u8]) -> Written {
        let mut written = Written::default();
        // The rest waits for the next frame.
        let is_all = self.write_runs(into, &mut written)
            & self.write_refused(into, &mut written)
            & self.write_nacks(into, &mut written);
        if is_all {
            self.waiting = 0;
        }
        written
    }

    fn write_refused(&mut self, into: &mut [u8], written: &mut Written) -> bool {
        if self.partly.count() == 0 {
            return true;
        }
        let mut from = 0;
        while let Some(channel) = self.partly.next(from) {
            from = channel + 1;
            let Some(refused) = self.refused.get_mut(&channel) else {
                self.partly.remove(channel);
                continue;
            };
            let place = into.get_mut(written.length_bytes..).unwrap_or_default();
            let room = place.len().saturating_sub(NACK_BYTES + 2) / REFUSED_BYTES;
            let left = refused.runs.get(refused.written..).unwrap_or_default();
            // A run without packets says where the runs of the frame before ended.
            let before = refused.runs[..refused.written].last();
            let goes_on = before.map(|run| RefusedRun {
                first: run.first + run.count,
                count: 0,
                reason: 0,
            });
            let extra = usize::from(goes_on.is_some());
            let runs = left.len().min(room.saturating_sub(extra));
            if runs == 0 || written.nacks == u8::MAX {
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
            let lines = goes_on.iter().chain(&left[..runs]);
            for (place, run) in places.chunks_exact_mut(REFUSED_BYTES).zip(lines) {
                place.copy_from_slice(&run.to_bytes());
            }
            written.length_bytes += length;
            refused.written += runs;
            if !is_last {
                written.nacks += 1;
                return false;
            }
            written.nacks += 1;
            self.partly.remove(channel);
        }
        true
    }

    fn write_runs(&mut self, into: &mut [u8], written: &mut Written) -> bool {
        if self.unacknowledged.count() == 0 {
            return true;
        }
        let start = self.next_channel;
        let mut has_turned = false;
        let mut from = start;
        loop {
            let Some(first) = self
                .unacknowledged
                .next_in_either(&self.acknowledged_once, from)
            else {
                if has_turned || start == 0 {
                    return true;
                }
                (has_turned, from) = (true, 0);
                continue;
            };
            if has_turned && first >= start {
                return true;
            }
            let place = into.get_mut(written.length_bytes..);
            let place = place.and_then(|place| place.get_mut(..RUN_BYTES));
            let Some(place) = place.filter(|_| written.runs < u8::MAX) else {
                self.next_channel = first;
                return self.unacknowledged.count() == 0;
            };
            // A frame names each channel once, or its reader believes none of the run.
            let end = if has_turned { start } else { u16::MAX };
            let run = self.run_from(first, end);
            from = run.first + run.count;
            place.copy_from_slice(&run.to_bytes());
            written.length_bytes += RUN_BYTES;
            written.runs += 1;
        }
    }

    /// The run that begins at a marked channel and ends before that one; its marks go from one set
    /// to the other, or out.
    fn run_from(&mut self, first: u16, before: u16) -> Run {
        let sequence = self.taken[usize::from(first)];
        let mut end = first;
        while end < before && self.taken.get(usize::from(end)) == Some(&sequence) {
            if self.unacknowledged.contains(end) {
                self.unacknowledged.remove(end);
                self.acknowledged_once.insert(end);
            } else if self.acknowledged_once.contains(end) {
                self.acknowledged_once.remove(end);
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

    fn write_nacks(&mut self, into: &mut [u8], written: &mut Written) -> bool {
        while let Some(nack) = self.nacks.last() {
            let place = into.get_mut(written.length_bytes..);
            let place = place.and_then(|place| place.get_mut(..NACK_BYTES));
            let Some(place) = place.filter(|_| written.nacks < u8::MAX) else {
                return false;
            };
            place.copy_from_slice(&nack.to_bytes());
            written.length_bytes += NACK_BYTES;
            written.nacks += 1;
            self.nacks.pop();
        }
        true
    }
}

#[cfg(test)]
mod tests;

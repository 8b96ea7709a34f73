//! The sender's channels (4.2.1, Figure 4): for each the number of its frame, the time and count of
//! its transmissions, and the frame itself until it is acknowledged.
//!
//! Every frame stands in one list: ready to be sent, in flight on a path, lost, or refused by a
//! receiver that was not ready. Lists are linked through the entries, so that to schedule, to
//! delete and to find the first takes the same time always (4.3). What is in flight on a path
//! stands in the order of sending.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::channel_set::ChannelSet;
use super::frame::{ACKNOWLEDGE_ROOM_BYTES, HEADER_BYTES};
use super::packets::SLACK_BYTES;
use crate::limits::{CARRIER_HEAD_BYTES, CARRIER_TAIL_BYTES, CHANNELS_OPEN_FIRST, PATHS_MAX};

const NONE: u16 = u16::MAX;

/// One of the lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ListId(u8);

impl ListId {
    /// No list: the channel is free, or its frame is being filled.
    pub(super) const NOWHERE: Self = Self(u8::MAX);
    /// Full, never sent.
    pub(super) const READY: Self = Self(0);
    /// Sent, and declared lost.
    pub(super) const LOST: Self = Self(1);
    /// The receiver was not ready for it.
    pub(super) const NOT_READY: Self = Self(2);

    /// Under way on that path.
    pub(super) const fn in_flight(path: u8) -> Self {
        Self(3 + path)
    }
}

const LISTS: usize = 3 + PATHS_MAX;

#[derive(Clone, Copy, Debug)]
struct List {
    first: u16,
    last: u16,
    length: u16,
}

/// A channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// When it was sent last; of a frame whose receiver was not ready, the time of that
    /// transmission.
    pub(super) sent_ns: u64,
    /// Since when there was no answer.
    pub(super) unanswered_ns: u64,
    /// Number of the frame that is in it, or was last.
    pub(super) sequence: u32,
    /// Timestamp of the latest transmission.
    pub(super) stamp: u32,
    /// The how manieth frame of its path it was.
    pub(super) order: u32,
    pub(super) buffer: u16,
    /// Bytes of packets.
    pub(super) length_bytes: u16,
    pub(super) packets: u16,
    previous: u16,
    next: u16,
    /// Where it was sent last.
    pub(super) path: u8,
    /// Retries without an answer.
    pub(super) retries: u8,
    pub(super) is_retransmitted: bool,
    list: ListId,
}

impl Entry {
    /// Of a channel that had its last frame in that round.
    const fn unused(round: u32) -> Self {
        Self {
            sent_ns: 0,
            unanswered_ns: 0,
            sequence: round,
            stamp: 0,
            order: 0,
            buffer: NONE,
            length_bytes: 0,
            packets: 0,
            previous: NONE,
            next: NONE,
            path: 0,
            retries: 0,
            is_retransmitted: false,
            list: ListId::NOWHERE,
        }
    }

    /// Where it stands.
    pub(super) fn list(&self) -> ListId {
        self.list
    }
}

/// The channels to one peer.
#[derive(Debug)]
pub(super) struct SendTable {
    /// The open ones: more are opened when all of them are in use.
    entries: Vec<Entry>,
    channels_max: u16,
    free: ChannelSet,
    /// Where the next frame's channel is sought.
    next_channel: u16,
    /// Number of the present round through the channels: sequence number of each frame begun in it.
    round: u32,
    lists: [List; LISTS],
}

impl SendTable {
    /// So many channels, all of them free.
    pub(super) fn new(channels_max: u16) -> Self {
        let channels = channels_max.min(CHANNELS_OPEN_FIRST);
        Self {
            entries: vec![Entry::unused(0); usize::from(channels)],
            channels_max,
            free: ChannelSet::full(channels),
            next_channel: 0,
            round: 1,
            lists: [List {
                first: NONE,
                last: NONE,
                length: 0,
            }; LISTS],
        }
    }

    /// How many channels are open.
    pub(super) fn channels(&self) -> u16 {
        self.entries.len() as u16
    }

    /// Whether a channel is free, or can be opened.
    pub(super) fn has_free(&self) -> bool {
        self.free.count() != 0 || self.channels() < self.channels_max
    }

    /// Opens channels up to that one at least, and twice as many as there are, if there may be so
    /// many.
    #[cold]
    fn open(&mut self, channels: u16) {
        let before = self.channels();
        let channels = channels
            .max(before.saturating_mul(2))
            .min(self.channels_max);
        if channels <= before {
            return;
        }
        let unused = Entry::unused(self.round.wrapping_sub(1));
        self.entries.resize(usize::from(channels), unused);
        self.free.grow(channels);
        (before..channels).for_each(|channel| self.free.insert(channel));
    }

    /// Whether all are.
    pub(super) fn is_all_free(&self) -> bool {
        self.free.count() == self.entries.len()
    }

    /// The channel, if a frame is in it.
    pub(super) fn occupied(&mut self, channel: u16) -> Option<&mut Entry> {
        if self.free.contains(channel) {
            return None;
        }
        self.entries.get_mut(usize::from(channel))
    }

    /// The channel.
    pub(super) fn get(&self, channel: u16) -> Option<&Entry> {
        self.entries.get(usize::from(channel))
    }

    #[inline]
    pub(super) fn entry(&mut self, channel: u16) -> &mut Entry {
        &mut self.entries[usize::from(channel)]
    }

    /// The next free channel, for a frame in that buffer. As each is used once in a round at most,
    /// and has the number of the round, its numbers only grow.
    pub(super) fn begin(&mut self, buffer: u16) -> Option<u16> {
        if self.free.count() == 0 {
            self.open(0);
        }
        let channel = match self.free.next(self.next_channel) {
            Some(channel) => channel,
            None => {
                let channel = self.free.next(0)?;
                self.round = self.round.wrapping_add(1);
                channel
            }
        };
        self.next_channel = channel + 1;
        self.free.remove(channel);
        let sequence = self.round;
        let entry = self.entry(channel);
        entry.sequence = sequence;
        entry.buffer = buffer;
        entry.retries = 0;
        entry.is_retransmitted = false;
        Some(channel)
    }

    /// Number of the present round, and where the next channel is sought.
    pub(super) fn position(&self) -> (u32, u16) {
        (self.round, self.next_channel)
    }

    /// Whether every frame that was begun before that position is gone from its channel.
    pub(super) fn is_free_before(&self, round: u32, next_channel: u16) -> bool {
        (0..self.channels())
            .filter(|&channel| !self.free.contains(channel))
            .all(|channel| {
                let sequence = self.entries[usize::from(channel)].sequence;
                let age = round.wrapping_sub(sequence) as i32;
                age < 0 || age == 0 && channel >= next_channel
            })
    }

    /// Goes on where another table stopped: channels of this one have had numbers up to there.
    pub(super) fn go_to(&mut self, round: u32, next_channel: u16) {
        (self.round, self.next_channel) = (round, next_channel);
        self.entries
            .iter_mut()
            .for_each(|entry| entry.sequence = round);
    }

    /// A frame of that number is in the channel.
    pub(super) fn occupy(&mut self, channel: u16, sequence: u32, buffer: u16) {
        if channel >= self.channels() {
            self.open(channel + 1);
        }
        self.free.remove(channel);
        let entry = self.entry(channel);
        (entry.sequence, entry.buffer) = (sequence, buffer);
    }

    /// The channel is free again, and no longer in a list. Gives its buffer.
    pub(super) fn release(&mut self, channel: u16) -> u16 {
        self.remove(channel);
        self.free.insert(channel);
        core::mem::replace(&mut self.entry(channel).buffer, NONE)
    }

    /// Puts the channel at the end of a list, out of the one in which it was.
    pub(super) fn enlist(&mut self, channel: u16, id: ListId) {
        self.remove(channel);
        let list = &mut self.lists[usize::from(id.0)];
        let last = core::mem::replace(&mut list.last, channel);
        if last == NONE {
            list.first = channel;
        }
        list.length += 1;
        if last != NONE {
            self.entry(last).next = channel;
        }
        let entry = self.entry(channel);
        (entry.previous, entry.next, entry.list) = (last, NONE, id);
    }

    /// Puts the channel at the beginning of a list, out of the one in which it was.
    pub(super) fn enlist_first(&mut self, channel: u16, id: ListId) {
        self.remove(channel);
        let list = &mut self.lists[usize::from(id.0)];
        let first = core::mem::replace(&mut list.first, channel);
        if first == NONE {
            list.last = channel;
        }
        list.length += 1;
        if first != NONE {
            self.entry(first).previous = channel;
        }
        let entry = self.entry(channel);
        (entry.previous, entry.next, entry.list) = (NONE, first, id);
    }

    fn remove(&mut self, channel: u16) {
        let Entry {
            previous,
            next,
            list: id,
            ..
        } = *self.entry(channel);
        if id == ListId::NOWHERE {
            return;
        }
        let list = &mut self.lists[usize::from(id.0)];
        list.length -= 1;
        if previous == NONE {
            list.first = next;
        }
        if next == NONE {
            list.last = previous;
        }
        if previous != NONE {
            self.entry(previous).next = next;
        }
        if next != NONE {
            self.entry(next).previous = previous;
        }
        self.entry(channel).list = ListId::NOWHERE;
    }

    /// The first of a list.
    #[inline]
    pub(super) fn first(&self, id: ListId) -> Option<u16> {
        let first = self.lists[usize::from(id.0)].first;
        (first != NONE).then_some(first)
    }

    /// How many are in a list.
    #[inline]
    pub(super) fn count(&self, id: ListId) -> usize {
        usize::from(self.lists[usize::from(id.0)].length)
    }

    /// Bytes of packets in the longest frame.
    pub(super) fn longest(&self) -> usize {
        let used = (0..self.channels()).filter(|&channel| !self.free.contains(channel));
        let lengths = used.map(|channel| self.entries[usize::from(channel)].length_bytes);
        lengths.max().unwrap_or(0).into()
    }

    /// Channels that are not free, from the oldest.
    pub(super) fn oldest_first(&self) -> Vec<u16> {
        let mut channels: Vec<u16> = (0..self.channels())
            .filter(|&channel| !self.free.contains(channel))
            .collect();
        let age = |channel: u16| {
            self.round
                .wrapping_sub(self.entries[usize::from(channel)].sequence)
        };
        channels.sort_by_key(|&channel| (core::cmp::Reverse(age(channel)), channel));
        channels
    }
}

/// Bytes before the packets in a buffer: for the headers that the carrier puts before a frame, and
/// for the frame's header and acknowledgements.
pub(super) const FRONT_BYTES: usize = 128;
const _: () = assert!(
    FRONT_BYTES >= CARRIER_HEAD_BYTES + HEADER_BYTES + ACKNOWLEDGE_ROOM_BYTES
        && SLACK_BYTES >= CARRIER_TAIL_BYTES
);

/// Buffers of frames: made when they are needed first, used again in the order in which caches like
/// it.
#[derive(Debug)]
pub(super) struct Buffers {
    all: Vec<Box<[u8]>>,
    stock: Vec<u16>,
    bytes: usize,
    most: usize,
}

/// Bytes of a buffer for so many bytes of packets.
pub(super) const fn buffer_bytes(room_bytes: usize) -> usize {
    FRONT_BYTES + room_bytes + SLACK_BYTES
}

impl Buffers {
    /// None yet; of so many bytes of packets each, so many bytes in all at most.
    pub(super) fn new(room_bytes: usize, bytes_max: usize, channels: u16) -> Self {
        let bytes = buffer_bytes(room_bytes);
        Self {
            all: Vec::new(),
            stock: Vec::new(),
            bytes,
            // One for each channel, and as many packets that come back and were not fetched.
            most: (bytes_max / bytes).clamp(1, 2 * usize::from(channels)),
        }
    }

    /// Whether one can be had.
    pub(super) fn has_one(&self) -> bool {
        !self.stock.is_empty() || self.all.len() < self.most
    }

    /// One of them. Allocates if all that there are are in use.
    pub(super) fn take(&mut self) -> Option<u16> {
        if let Some(buffer) = self.stock.pop() {
            return Some(buffer);
        }
        (self.all.len() < self.most).then(|| {
            self.all.push(vec![0; self.bytes].into());
            // A returned buffer always has a place.
            self.stock.reserve(self.all.len());
            (self.all.len() - 1) as u16
        })
    }

    /// It is no longer needed.
    pub(super) fn put_back(&mut self, buffer: u16) {
        self.stock.push(buffer);
    }

    /// Its bytes for packets.
    #[inline]
    pub(super) fn bytes(&mut self, buffer: u16) -> &mut [u8] {
        &mut self.all[usize::from(buffer)][FRONT_BYTES..]
    }

    /// The same, to be read.
    #[inline]
    pub(super) fn peek(&self, buffer: u16) -> &[u8] {
        &self.all[usize::from(buffer)][FRONT_BYTES..]
    }

    /// All of it.
    #[inline]
    pub(super) fn whole(&self, buffer: u16) -> &[u8] {
        &self.all[usize::from(buffer)]
    }

    #[inline]
    pub(super) fn whole_mut(&mut self, buffer: u16) -> &mut [u8] {
        &mut self.all[usize::from(buffer)]
    }

    /// Gives the memory back, if none is in use.
    pub(super) fn give_back(&mut self) {
        if self.stock.len() == self.all.len() {
            self.all = Vec::new();
            self.stock = Vec::new();
        }
    }

    /// Bytes that are allocated.
    pub(super) fn allocated_bytes(&self) -> usize {
        self.all.len() * self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Channels are opened when all are in use, each is used once in a round, and its numbers grow.
    #[test]
    fn channels_are_opened_on_demand() {
        let mut table = SendTable::new(4_096);
        assert_eq!(table.channels(), CHANNELS_OPEN_FIRST);
        let mut numbers = vec![0; 4_096];
        for turn in 0..3_u32 {
            let begun: Vec<u16> = core::iter::from_fn(|| table.begin(7)).collect();
            assert_eq!((begun.len(), table.channels()), (4_096, 4_096));
            assert!(!table.has_free());
            for channel in begun {
                let sequence = table.entry(channel).sequence;
                assert!(sequence > numbers[usize::from(channel)], "{turn}");
                numbers[usize::from(channel)] = sequence;
                table.release(channel);
            }
        }
        // Few in flight never open more.
        let mut table = SendTable::new(4_096);
        for _ in 0..10_000 {
            let channel = table.begin(7).unwrap();
            table.release(channel);
        }
        assert_eq!(table.channels(), CHANNELS_OPEN_FIRST);
    }
}

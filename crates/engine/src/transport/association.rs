//! Both ends of one association of two interfaces, as one of them sees them.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;

use super::close_reason::{CloseReason, Returned};
use super::frame::{HEADER_BYTES, RefusedRun};
use super::packets::{
    COMPACT_BYTES, PreviousPacket, SHORT_PACKET_BYTES_MAX, WriteError, is_compact,
};
use super::path::{Path, PathStatistics};
use super::receive_table::ReceiveTable;
use super::returns::ReturnedFrame;
use super::send_table::{Buffers, ListId, SendTable};
use super::settings::{BadSettings, Settings, payload_max_bytes, room_bytes};
use crate::limits::FRAME_BYTES_MIN;
use crate::memory::{Area, Part, Unsent};
use crate::packet::{Address, Header, Short};

/// What an association did. Counters never go down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// Packets that were accepted.
    pub offered: u64,
    /// Frames with packets that were sent the first time.
    pub sent: u64,
    /// And again.
    pub retransmitted: u64,
    /// Frames without packets that were sent: acknowledgements alone, probes of paths.
    pub answers: u64,
    /// Frames that were acknowledged by the peer, whole or in part.
    pub acknowledged: u64,
    /// Packets that the peer refused.
    pub refused: u64,
    /// Frames of the peer of which it is not known any more which packets were refused, because
    /// there were too many.
    pub refusals_forgotten: u64,
    /// NACKs of whole frames that came.
    pub receiver_not_ready: u64,
    /// Fresh frames that came and were taken.
    pub taken: u64,
    /// Frames that came though they had been taken.
    pub duplicates: u64,
    /// Frames that came while they were being taken, or before a later one of their channel.
    pub stale: u64,
    /// Frames that are none, or of a channel that there is not.
    pub malformed: u64,
    /// Acknowledgements and NACKs for what was never sent.
    pub baseless: u64,
    /// Timestamps that came back before they were sent.
    pub future_echoes: u64,
    /// Frames that came after the end.
    pub after_close: u64,
}

/// A frame that is being filled.
#[derive(Debug)]
pub(super) struct OpenFrame {
    pub(super) channel: u16,
    pub(super) buffer: u16,
    pub(super) at: usize,
    pub(super) packets: u16,
    previous: PreviousPacket,
}

/// Keep-alive frames to a silent peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeepAlive {
    pub(super) since_ns: u64,
    pub(super) last_ns: u64,
    pub(super) times: u32,
}

/// One interface's end of an association with an interface of another host. A pure state machine:
/// see [`crate::transport`].
///
/// * *From the application*: [`offer`](Self::offer), [`offer_short`](Self::offer_short),
///   [`flush`](Self::flush), [`close`](Self::close); what comes back:
///   [`next_return`](Self::next_return).
/// * *To and from the wire*: [`next_frame`](Self::next_frame) until there is none,
///   [`take_frame`](Self::take_frame), [`deadline_ns`](Self::deadline_ns), [`fail`](Self::fail).
/// * *To the interface*: what `take_frame` gave out ends with [`taken`](Self::taken) or
///   [`nack`](Self::nack); single packets with [`refused`](Self::refused).
/// * *State*: [`close_reason`](Self::close_reason), [`is_idle`](Self::is_idle),
///   [`statistics`](Self::statistics).
#[derive(Debug)]
pub struct Association {
    pub(super) settings: Settings,
    /// The largest frame at present.
    pub(super) frame_bytes: usize,
    pub(super) send: SendTable,
    pub(super) buffers: Buffers,
    pub(super) receive: ReceiveTable,
    pub(super) paths: Box<[Path]>,
    pub(super) open: Option<OpenFrame>,
    /// Paths, as bits, on which the peer asked for an acknowledgement.
    pub(super) asked: u16,
    /// Since when.
    pub(super) asked_ns: u64,
    /// Path of the last answer.
    pub(super) answered: u8,
    /// Consecutive rounds of NACKs without an acknowledgement. While there are any, frames are sent
    /// one by one.
    pub(super) backoff_rounds: u8,
    /// When the receiver-not-ready backoff ends, and when this round of it began.
    pub(super) retry_at_ns: u64,
    pub(super) backoff_round_ns: u64,
    /// When something was acknowledged last, or the first frame was sent.
    pub(super) progress_ns: u64,
    /// When a frame came last, or the first look at the clock was; and what was asked since.
    pub(super) received_ns: Option<u64>,
    /// Time that this frame had waited in this host: others may still wait behind it.
    pub(super) behind_ns: u64,
    pub(super) keep_alive: Option<KeepAlive>,
    /// At which time it was looked last for what is lost; not since a frame came.
    pub(super) expired_ns: Option<u64>,
    pub(super) returns: VecDeque<ReturnedFrame>,
    /// Of frames that are not acknowledged: which packets were refused, as far as the peer has
    /// told.
    pub(super) in_part: BTreeMap<u16, Vec<RefusedRun>>,
    pub(super) close_reason: Option<CloseReason>,
    /// Paths, as bits, over which the peer is still to be told that this side has closed.
    pub(super) closing: u16,
    pub(super) is_suspending: bool,
    /// The peer takes nothing any more, and closes as soon as its own frames have arrived.
    pub(super) peer_is_leaving: bool,
    pub(super) statistics: Statistics,
}

impl Association {
    /// A new one: nothing was sent or taken. Both sides begin so, after the handshake of their
    /// carrier. Allocates its tables, and no buffers.
    pub fn new(settings: Settings) -> Result<Self, BadSettings> {
        settings.check()?;
        Ok(Self::with_checked(settings))
    }

    /// As [`Association::new`], but the first frame of each channel has that number, which must be
    /// the same on both sides: for tests of what happens when numbers begin anew. Otherwise it is
    /// 1.
    pub fn beginning_at(settings: Settings, first_sequence: u32) -> Result<Self, BadSettings> {
        let mut association = Self::new(settings)?;
        let before = first_sequence.wrapping_sub(1);
        association
            .send
            .go_to(before, association.settings.channels);
        association.receive.set_taken(before);
        for path in &mut association.paths {
            path.begin_after(before);
        }
        Ok(association)
    }

    pub(super) fn with_checked(settings: Settings) -> Self {
        Self {
            frame_bytes: settings.frame_bytes,
            send: SendTable::new(settings.channels),
            buffers: Buffers::new(
                settings.room_bytes(),
                settings.buffer_bytes_max,
                settings.channels,
            ),
            receive: ReceiveTable::new(settings.channels),
            paths: vec![Path::new(&settings); usize::from(settings.paths)].into(),
            open: None,
            asked: 0,
            asked_ns: 0,
            answered: 0,
            backoff_rounds: 0,
            retry_at_ns: 0,
            backoff_round_ns: 0,
            progress_ns: 0,
            received_ns: None,
            behind_ns: 0,
            keep_alive: None,
            expired_ns: None,
            returns: VecDeque::new(),
            in_part: BTreeMap::new(),
            close_reason: None,
            closing: 0,
            is_suspending: false,
            peer_is_leaving: false,
            statistics: Statistics::default(),
            settings,
        }
    }

    /// What it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The largest payload (metadata and data together) of a packet at present.
    pub fn payload_max_bytes(&self) -> usize {
        payload_max_bytes(self.frame_bytes)
    }

    /// Frames that are filled from now on have so many bytes at most; [`FRAME_BYTES_MIN`], and what
    /// the settings say, bound it. What is already in a longer one, or in flight, stays so.
    pub fn limit_frames(&mut self, frame_bytes: usize) {
        self.frame_bytes = frame_bytes.clamp(FRAME_BYTES_MIN, self.settings.frame_bytes);
    }

    /// How many bytes the longest frame has that was not acknowledged, without acknowledgements
    /// that ride along. Looks at every channel.
    pub fn longest_frame_bytes(&self) -> usize {
        HEADER_BYTES + self.send.longest()
    }

    /// How many frames of that path were given up on since one was acknowledged that was no shorter
    /// than the shortest of them, and how many bytes of packets that one has. A path that has
    /// become narrower shows so.
    pub fn losses(&self, path: u8) -> (u32, usize) {
        let path = self.paths.get(usize::from(path));
        path.map_or((0, usize::MAX), |path| path.losses)
    }

    /// Accepts a packet, and copies it. `metadata` and `parts` have the lengths that the header
    /// says. [`Unsent::Full`] if no channel or buffer is free, too many frames wait to be sent, or
    /// the packet is larger than [`payload_max_bytes`](Self::payload_max_bytes); [`Unsent::Gone`]
    /// after the association has ended. Allocates a buffer at times.
    pub fn offer<A: Area>(
        &mut self,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, A>],
    ) -> Result<(), Unsent> {
        if is_compact(header)
            && let [Part::Bytes(data)] = parts
            && let Ok(data) = <&[u8; COMPACT_BYTES]>::try_from(*data)
        {
            let data = u128::from_le_bytes(*data);
            let metadata_word = <&[u8; 8]>::try_from(metadata);
            return self.offer_short(&Short {
                to: Address::new(header.slot, header.metadata_index),
                key: header.key,
                offset: header.offset,
                word: metadata_word.map_or(header.word, |word| u64::from_le_bytes(*word)),
                has_metadata: metadata_word.is_ok(),
                length_bytes: COMPACT_BYTES as u16,
                data: [data as u64, (data >> 64) as u64, 0, 0],
            });
        }
        self.fill(|previous, into, at, end| previous.write(header, metadata, parts, into, at, end))
    }

    /// Accepts a short packet of 16 bytes, for which it has a form of its own; otherwise as
    /// [`Association::offer`], which all others are for.
    #[inline]
    pub fn offer_short(&mut self, short: &Short) -> Result<(), Unsent> {
        debug_assert_eq!(usize::from(short.length_bytes), COMPACT_BYTES);
        self.fill(|previous, into, at, end| {
            previous
                .write_short(short, into, at, end)
                .ok_or(WriteError::Room)
        })
    }

    #[inline(always)]
    fn fill(
        &mut self,
        write: impl Fn(&mut PreviousPacket, &mut [u8], usize, usize) -> Result<usize, WriteError>,
    ) -> Result<(), Unsent> {
        let room = room_bytes(self.frame_bytes);
        // What does not fit behind others fits a frame of its own, or none.
        for _ in 0..2 {
            if self.open.is_none() {
                self.begin_frame()?;
            }
            let Some(open) = &mut self.open else {
                return Err(Unsent::Full);
            };
            let into = self.buffers.bytes(open.buffer);
            match write(&mut open.previous, into, open.at, room) {
                Ok(at) => {
                    open.at = at;
                    open.packets += 1;
                    self.statistics.offered += 1;
                    return Ok(());
                }
                Err(WriteError::Room) if open.packets > 0 => self.complete_frame(),
                Err(_) => return Err(Unsent::Full),
            }
        }
        Err(Unsent::Full)
    }

    /// Begins a frame.
    fn begin_frame(&mut self) -> Result<(), Unsent> {
        if self.close_reason.is_some() {
            return Err(Unsent::Gone);
        }
        let waiting = self.send.count(ListId::READY);
        if waiting >= usize::from(self.settings.ready_frames_max)
            || !self.send.has_free()
            || !self.buffers.has_one()
        {
            return Err(Unsent::Full);
        }
        let buffer = self.buffers.take().ok_or(Unsent::Full)?;
        let Some(channel) = self.send.begin(buffer) else {
            self.buffers.put_back(buffer);
            return Err(Unsent::Full);
        };
        self.open = Some(OpenFrame {
            channel,
            buffer,
            at: 0,
            packets: 0,
            previous: PreviousPacket::default(),
        });
        Ok(())
    }

    /// The frame that is being filled is full.
    pub(super) fn complete_frame(&mut self) {
        if let Some(open) = self.open.take_if(|open| open.packets > 0) {
            let entry = self.send.entry(open.channel);
            entry.length_bytes = open.at as u16;
            entry.packets = open.packets;
            self.send.enlist(open.channel, ListId::READY);
        }
    }

    /// Whether a short packet of any length would be accepted. Sets a buffer aside for it.
    #[inline]
    pub fn has_room(&mut self) -> bool {
        let room = room_bytes(self.frame_bytes);
        let fits = |open: &OpenFrame| open.at + SHORT_PACKET_BYTES_MAX <= room;
        if self.open.as_ref().is_some_and(fits) {
            return true;
        }
        self.complete_frame();
        self.open.is_some() || self.begin_frame().is_ok()
    }

    /// Nothing follows for now: a frame that waits to become full need not.
    pub fn flush(&mut self) {
        self.complete_frame();
    }

    /// A mark behind everything that was accepted so far, for [`Association::is_settled`]. What
    /// waits to fill a frame need not wait any longer.
    pub fn mark(&mut self) -> u64 {
        self.complete_frame();
        self.drop_empty_frame();
        let (round, next_channel) = self.send.position();
        u64::from(round) << 16 | u64::from(next_channel)
    }

    /// Whether everything that was accepted before that mark is acknowledged, which the peer does
    /// after its interface has taken or refused it, or has come back. Looks at every channel.
    pub fn is_settled(&self, mark: u64) -> bool {
        self.send.is_free_before((mark >> 16) as u32, mark as u16)
    }

    /// Full frames that wait to be sent for the first time.
    pub fn ready(&self) -> usize {
        self.send.count(ListId::READY)
    }

    /// Frames in flight on all paths.
    pub(super) fn in_flight(&self) -> usize {
        (0..self.settings.paths)
            .map(|path| self.send.count(ListId::in_flight(path)))
            .sum()
    }

    /// Frames that were sent and not acknowledged.
    pub fn outstanding(&self) -> usize {
        self.in_flight() + self.send.count(ListId::LOST) + self.send.count(ListId::NOT_READY)
    }

    /// Whether nothing is to be sent, acknowledged or returned, in either direction.
    pub fn is_idle(&self) -> bool {
        let is_open = self.open.as_ref().is_some_and(|open| open.packets > 0);
        !is_open
            && self.outstanding() == 0
            && self.send.count(ListId::READY) == 0
            && self.returns.is_empty()
            && self.owes_nothing()
    }

    /// True if the peer has been told all that it is to be told of its frames.
    fn owes_nothing(&self) -> bool {
        self.receive.waiting() == 0
            && self.receive.delivering_count() == 0
            && self.asked == 0
            && self.closing == 0
    }

    /// True if a side that takes nothing any more, and says so ([`Leaving`]), may close: all that it
    /// sent has arrived, or the peer takes nothing either.
    ///
    /// [`Leaving`]: super::NackReason::Leaving
    pub fn may_close(&self) -> bool {
        self.is_idle() || self.peer_is_leaving && self.owes_nothing()
    }

    /// Why the association has ended, if it has.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.close_reason
    }

    /// The carrier knows that nothing will come or go any more: the association ends, and what was
    /// not acknowledged comes back. Nothing happens if it has ended already.
    pub fn fail(&mut self, why: CloseReason) {
        if self.close_reason.is_some() {
            return;
        }
        self.close_reason = Some(why);
        self.asked = 0;
        self.in_part.clear();
        if let Some(open) = self.open.take() {
            if open.packets > 0 {
                self.open = Some(open);
                self.complete_frame();
            } else {
                let buffer = self.send.release(open.channel);
                self.buffers.put_back(buffer);
            }
        }
        for channel in self.send.oldest_first() {
            let entry = *self.send.entry(channel);
            let buffer = self.send.release(channel);
            let never = entry.list() == ListId::READY;
            self.returns
                .push_back(ReturnedFrame::all(buffer, &entry, why, never));
        }
    }

    /// Ends the association, and lets the peer know with the next frames, which need not arrive.
    /// Packets that were not acknowledged come back; to lose none, wait for
    /// [`Association::may_close`].
    pub fn close(&mut self) {
        if self.close_reason.is_none() {
            self.fail(CloseReason::Closed);
            self.closing = u16::MAX >> (16 - self.settings.paths);
        }
    }

    /// The next packet that was not delivered, once each.
    pub fn next_return(&mut self) -> Option<Returned<'_>> {
        loop {
            let returned_frame = self.returns.front_mut()?;
            let buffer = returned_frame.buffer();
            if returned_frame.advance(self.buffers.peek(buffer)) {
                break;
            }
            self.returns.pop_front();
            self.buffers.put_back(buffer);
        }
        let returned_frame = self.returns.front()?;
        returned_frame.current(self.buffers.peek(returned_frame.buffer()))
    }

    /// Gives the memory of buffers back, if none is in use. They are allocated again when they are
    /// needed.
    pub fn give_back(&mut self) {
        self.drop_empty_frame();
        self.buffers.give_back();
    }

    /// A frame that was begun and has no packets yet gives back its channel.
    fn drop_empty_frame(&mut self) {
        if let Some(open) = self.open.take_if(|open| open.packets == 0) {
            let buffer = self.send.release(open.channel);
            self.buffers.put_back(buffer);
        }
    }

    /// Bytes of buffers that are allocated.
    pub fn buffer_bytes(&self) -> usize {
        self.buffers.allocated_bytes()
    }

    /// What it did.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// What counts of a path; nothing if there is no such path.
    pub fn path_statistics(&self, path: u8) -> Option<PathStatistics> {
        let in_flight =
            (path < self.settings.paths).then(|| self.send.count(ListId::in_flight(path)))?;
        Some(self.paths.get(usize::from(path))?.statistics(in_flight))
    }
}

#[cfg(test)]
mod answer_tests;
#[cfg(test)]
mod tests;

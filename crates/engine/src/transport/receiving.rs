//! What an association does with frames that come, and with what becomes of their packets.
//!
//! A frame is looked through before anything of it is believed: one that is malformed anywhere
//! changes nothing. Work is bounded by its bytes, and by the table of channels once.

use alloc::vec::Vec;
use core::ops::Range;

use super::association::Association;
use super::close_reason::{CloseReason, NackReason};
use super::frame::{
    ASK, CLOSING, ECHO, Frame, FrameHeader, HOLD_UNKNOWN, NO_CHANNEL, Nack, RefusedRun,
    RefusedRuns, Run, TAKEN_IN_PART, is_after, since_ns, stamp_of,
};
use super::packets;
use super::receive_table::Standing;
use super::returns::ReturnedFrame;
use super::send_table::{Entry, ListId};
use crate::refusal::Refusal;

/// What a frame that came brings.
#[derive(Debug)]
#[must_use = "packets that were given out must be taken, or put off"]
pub enum Incoming {
    /// Nothing for the interface: acknowledgements only, a duplicate, or nonsense.
    Nothing,
    /// Packets that did not come before.
    Packets(ReceiveToken),
}

/// A frame that was given out. It is not given out again before [`Association::taken`] or
/// [`Association::nack`] was told what became of it; if it is dropped, its channel is blocked for
/// ever.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "packets that were given out must be taken, or put off"]
pub struct ReceiveToken {
    channel: u16,
    sequence: u32,
    stamp: u32,
    count: u16,
    range: Range<usize>,
}

impl ReceiveToken {
    /// Where in the frame its packets lie: what [`Packets::new`](super::Packets::new) wants.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// How many packets there are, at least one.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// The channel of the frame.
    pub fn channel(&self) -> u16 {
        self.channel
    }

    /// The number of the frame in its channel.
    pub fn sequence(&self) -> u32 {
        self.sequence
    }
}

impl Association {
    /// A frame came over that path, if it is one: any bytes will do. Says what it brings.
    pub fn take_frame(&mut self, now_ns: u64, path: u8, plain: &[u8]) -> Incoming {
        self.take_delayed_frame(now_ns, 0, path, plain)
    }

    /// A frame came, and waited for so long in this host: that is no delay of the network, neither
    /// for this side's window nor for the peer's. The carrier measures it, as by the kernel's
    /// stamps; a bound in its place is no measure.
    pub fn take_delayed_frame(
        &mut self,
        now_ns: u64,
        delay_ns: u64,
        path: u8,
        plain: &[u8],
    ) -> Incoming {
        let frame = Frame::read(plain).filter(|_| path < self.settings.paths);
        let Some(frame) = frame else {
            self.statistics.malformed += 1;
            return Incoming::Nothing;
        };
        let header = frame.header;
        if self.close_reason.is_some() {
            self.statistics.after_close += 1;
            if self.close_reason == Some(CloseReason::Closed) && header.flags & CLOSING == 0 {
                self.closing |= 1 << path;
            }
            return Incoming::Nothing;
        }
        let brings = header.channel != NO_CHANNEL;
        let standing = self.receive.standing(header.channel, header.sequence);
        let mut count = 0;
        if brings && standing == Standing::Fresh {
            match packets::count(plain.get(frame.packets_at..).unwrap_or_default()) {
                Some(packets) if packets > 0 => count = packets,
                _ => {
                    self.statistics.malformed += 1;
                    return Incoming::Nothing;
                }
            }
        } else if brings && standing == Standing::NoSuchChannel {
            self.statistics.malformed += 1;
            return Incoming::Nothing;
        }
        self.handle_acknowledgements(now_ns, delay_ns, path, &frame);
        if header.flags & CLOSING != 0 {
            self.fail(CloseReason::ClosedByPeer);
            return Incoming::Nothing;
        }
        if header.flags & ASK != 0 {
            if self.asked == 0 {
                self.asked_ns = now_ns;
            }
            self.asked |= 1 << path;
        }
        if !brings {
            return Incoming::Nothing;
        }
        match standing {
            Standing::Fresh => {
                let forgotten = &mut self.statistics.refusals_forgotten;
                if !self.receive.has_room_for_refusals(forgotten) {
                    let (channel, sequence) = (header.channel, header.sequence);
                    let full = NackReason::NoRoom;
                    self.receive
                        .push_nack(now_ns, channel, sequence, header.stamp, full);
                    return Incoming::Nothing;
                }
                self.receive.deliver(header.channel, header.sequence);
                Incoming::Packets(ReceiveToken {
                    channel: header.channel,
                    sequence: header.sequence,
                    stamp: header.stamp,
                    count,
                    range: frame.packets_at..plain.len(),
                })
            }
            Standing::Taken => {
                self.statistics.duplicates += 1;
                self.receive.acknowledge(now_ns, header.channel);
                Incoming::Nothing
            }
            Standing::Delivering => {
                self.statistics.stale += 1;
                // The receiving application may be stopped, or computing. The sender gets an
                // answer; otherwise it would give up.
                if header.flags & ASK != 0 {
                    let (channel, sequence) = (header.channel, header.sequence);
                    let full = NackReason::NoRoom;
                    self.receive
                        .push_nack(now_ns, channel, sequence, header.stamp, full);
                }
                Incoming::Nothing
            }
            Standing::Stale | Standing::NoSuchChannel => {
                self.statistics.stale += 1;
                Incoming::Nothing
            }
        }
    }

    /// All packets of the frame were given to the interface; those that it would not have were
    /// [`refused`](Self::refused). The frame is acknowledged.
    pub fn taken(&mut self, now_ns: u64, token: ReceiveToken) {
        self.statistics.taken += 1;
        self.receive.take(now_ns, token.channel, token.sequence);
    }

    /// The interface would not have that packet of the frame, the how manieth from 0. In the order
    /// of the packets. It comes back to its sender when the frame is [`taken`](Self::taken).
    /// Allocates.
    pub fn refused(&mut self, token: &ReceiveToken, index: u16, reason: Refusal) {
        if index < token.count {
            self.receive
                .refuse(token.channel, token.sequence, token.stamp, index, reason);
        }
    }

    /// No packet of the frame was given to the interface, nor can be at present. Its sender is
    /// told, and will send it again.
    pub fn nack(&mut self, now_ns: u64, token: ReceiveToken, why: NackReason) {
        self.receive
            .nack(now_ns, token.channel, token.sequence, token.stamp, why);
    }

    /// Timestamps, acknowledgements and NACKs of a frame.
    fn handle_acknowledgements(&mut self, now_ns: u64, delay_ns: u64, path: u8, frame: &Frame<'_>) {
        let header = frame.header;
        self.received_ns = Some(now_ns);
        self.behind_ns = delay_ns;
        self.keep_alive = None;
        self.expired_ns = None;
        let came_ns = now_ns.saturating_sub(delay_ns);
        self.paths[usize::from(path)].stamp_received(came_ns, header.stamp);
        let took_ns = self.echo(now_ns, delay_ns, path, &header);
        // Each channel once is all that an honest frame can name.
        let mut left = usize::from(self.settings.channels);
        for run in frame.runs() {
            let count = usize::from(run.count);
            if usize::from(run.first) + count > usize::from(self.settings.channels) || count > left
            {
                self.statistics.baseless += 1;
                continue;
            }
            left -= count;
            self.run(now_ns, run);
        }
        for (nack, refused) in frame.nacks() {
            self.handle_nack(now_ns, nack, refused);
        }
        if let Some(took_ns) = took_ns {
            self.adjust(now_ns, path, took_ns);
        }
    }

    /// A timestamp that came back. How long the round trip took, without the hold of the peer and
    /// the wait in this host, if it is news.
    fn echo(&mut self, now_ns: u64, delay_ns: u64, path: u8, header: &FrameHeader) -> Option<u64> {
        if header.flags & ECHO == 0 {
            return None;
        }
        let Some(ago_ns) = since_ns(stamp_of(now_ns), header.echo) else {
            self.statistics.future_echoes += 1;
            return None;
        };
        let known = &mut self.paths[usize::from(path)];
        let is_new = known.echoed(header.echo, now_ns.saturating_sub(ago_ns));
        if !is_new || header.hold_us == HOLD_UNKNOWN {
            return None;
        }
        let hold_ns = u64::from(header.hold_us) * 1000;
        // Holds are rounded down, stamps too.
        let took_ns = ago_ns.saturating_sub(hold_ns.saturating_add(delay_ns));
        known.round_trip.measured(now_ns, took_ns);
        known.round_trip.waited(hold_ns.saturating_add(delay_ns));
        Some(took_ns)
    }

    /// The window of the path follows the round trip.
    fn adjust(&mut self, now_ns: u64, path: u8, took_ns: u64) {
        let in_flight = self.send.count(ListId::in_flight(path));
        let has_more = self.send.count(ListId::READY) > 0 || self.send.count(ListId::LOST) > 0;
        let known = &mut self.paths[usize::from(path)];
        let frames = core::mem::take(&mut known.acknowledged);
        let was_in_flight = in_flight + frames as usize;
        let is_used = has_more || known.window.room(now_ns, was_in_flight) == 0;
        known
            .window
            .acknowledged(now_ns, frames, took_ns, &known.round_trip, is_used);
    }

    /// The entry of a channel whose frame of that number was sent and not acknowledged.
    fn sent(&mut self, channel: u16, sequence: u32) -> Option<Entry> {
        let Some(&known) = self.send.get(channel) else {
            self.statistics.baseless += 1;
            return None;
        };
        let is_sent =
            |entry: &Entry| entry.list() != ListId::READY && entry.list() != ListId::NOWHERE;
        let found = self.send.occupied(channel).map(|entry| *entry);
        let found = found.filter(|entry| is_sent(entry) && entry.sequence == sequence);
        let is_never = is_after(sequence, known.sequence)
            || sequence == known.sequence && known.list() == ListId::READY;
        if found.is_none() && is_never {
            self.statistics.baseless += 1;
        }
        found
    }

    fn run(&mut self, now_ns: u64, run: Run) {
        for channel in run.first..run.first + run.count {
            if let Some(entry) = self.sent(channel, run.sequence) {
                self.acknowledged(now_ns, &entry);
                let buffer = self.send.release(channel);
                let refused = self.refused_in_part(channel);
                match refused.is_empty() {
                    true => self.buffers.put_back(buffer),
                    false => self
                        .returns
                        .push_back(ReturnedFrame::refused(buffer, &entry, refused)),
                }
            }
        }
    }

    /// A frame arrived: what that says of its path.
    fn acknowledged(&mut self, now_ns: u64, entry: &Entry) {
        self.statistics.acknowledged += 1;
        self.progress_ns = now_ns;
        self.backoff_rounds = 0;
        let path = &mut self.paths[usize::from(entry.path)];
        path.delivered(entry.length_bytes);
        // Which transmission of a retransmitted frame arrived is known only by its age.
        let is_certain = !entry.is_retransmitted
            || now_ns.saturating_sub(entry.sent_ns) >= path.round_trip.least_ns().max(1);
        if entry.list() == ListId::LOST || !is_certain {
            path.was_spurious(now_ns);
        }
        if is_certain {
            if is_after(entry.order, path.acknowledged_order) {
                path.acknowledged_order = entry.order;
            }
            path.acknowledged_sent_ns = path.acknowledged_sent_ns.max(entry.sent_ns);
        }
    }

    fn handle_nack(&mut self, now_ns: u64, nack: Nack, refused: RefusedRuns<'_>) {
        let Some(entry) = self.sent(nack.channel, nack.sequence) else {
            return;
        };
        if nack.has_runs() {
            let mut runs = self.refused_in_part(nack.channel);
            let is_whole = self.add_sane_runs(&entry, &mut runs, refused);
            // Without the frames that came before it, the rest says nothing: the frame is sent
            // again, and all is told again.
            if nack.reason == TAKEN_IN_PART || !is_whole {
                self.paths[usize::from(entry.path)].round_trip.answered();
                self.send.entry(nack.channel).unanswered_ns = now_ns;
                if !runs.is_empty() {
                    self.in_part.insert(nack.channel, runs);
                }
                return;
            }
            self.acknowledged(now_ns, &entry);
            let buffer = self.send.release(nack.channel);
            self.returns
                .push_back(ReturnedFrame::refused(buffer, &entry, runs));
            return;
        }
        self.statistics.receiver_not_ready += 1;
        self.peer_is_leaving |= nack.reason == NackReason::Leaving.code();
        let is_latest = nack.stamp == entry.stamp;
        let this = self.send.entry(nack.channel);
        // 4.4.4: there was an answer, so retries are counted anew; it is sent again when its time
        // comes.
        this.retries = 0;
        this.unanswered_ns = now_ns;
        self.paths[usize::from(entry.path)].round_trip.answered();
        if is_latest && entry.list() != ListId::NOT_READY {
            self.send.enlist(nack.channel, ListId::NOT_READY);
            // Those that were sent before the last round began belong to it.
            if self.backoff_rounds == 0 || entry.sent_ns >= self.backoff_round_ns {
                self.backoff_rounds = self.backoff_rounds.saturating_add(1);
                self.backoff_round_ns = now_ns;
            }
            self.retry_at_ns = self.retry_at_ns.max(now_ns + self.backoff_ns());
        }
    }

    /// Packets of the frame of this channel that were refused, as far as that was told.
    #[inline]
    fn refused_in_part(&mut self, channel: u16) -> Vec<RefusedRun> {
        match self.in_part.is_empty() {
            true => Vec::new(),
            false => self.in_part.remove(&channel).unwrap_or_default(),
        }
    }

    /// Adds runs of refused packets that are in the frame, in order, and each packet in one at
    /// most. Whether none is missing before them.
    fn add_sane_runs(
        &mut self,
        entry: &Entry,
        runs: &mut Vec<RefusedRun>,
        refused: RefusedRuns<'_>,
    ) -> bool {
        let end_of = |run: &RefusedRun| run.first + run.count;
        let known = runs.last().map_or(0, end_of);
        let mut from = 0;
        for (at, run) in refused.iter().enumerate() {
            if at == 0 && run.count == 0 {
                if known < run.first {
                    return false;
                }
                continue;
            }
            let end = run.first.checked_add(run.count);
            match end {
                Some(end) if run.first >= from && run.count > 0 && end <= entry.packets => {
                    from = end;
                    // What comes again is known.
                    if run.first >= known {
                        self.statistics.refused += u64::from(run.count);
                        runs.push(run);
                    }
                }
                _ => self.statistics.baseless += 1,
            }
        }
        true
    }
}

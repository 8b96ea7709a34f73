//! Sending: one function, [`Association::next_frame`], decides what an association sends, and when.
//!
//! First frames that concern one of several paths: a requested acknowledgement, or a probe. Then
//! lost frames, frames whose receiver was not ready, new frames; each of them carries
//! acknowledgements. If none of them may go, acknowledgements go alone when they are due.

use super::association::Association;
use super::close_reason::CloseReason;
use super::frame::{ASK, CLOSING, ECHO, FrameHeader, HEADER_BYTES, NO_CHANNEL, stamp_of};
use super::path::Path;
use super::send_table::{Entry, FRONT_BYTES, ListId};
use super::settings::Settings;
use super::timer::KEEP_ALIVES_MIN;
use crate::limits::{CARRIER_HEAD_BYTES, CARRIER_TAIL_BYTES};

/// Doublings of the receiver-not-ready backoff, at most.
const BACKOFF_DOUBLINGS: u8 = 6;

/// A frame with packets, in the buffer that holds it until it is acknowledged. It can be read there
/// until the association is told of a frame that came, or asked for what comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InFlightFrame {
    buffer: u16,
    start: usize,
    end: usize,
}

impl InFlightFrame {
    /// Bytes of the frame.
    pub fn length_bytes(&self) -> usize {
        self.end - self.start
    }
}

/// A frame to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// So many bytes of what was lent are the frame.
    pub length_bytes: usize,
    /// The path that it is to take.
    pub path: u8,
    /// Whether it brings packets.
    pub is_data: bool,
    /// Whether it was sent before.
    pub is_retransmission: bool,
}

impl Association {
    /// The next frame to be sent at this time, written into `into`, which must have as many bytes
    /// as a frame may have; otherwise there is none. Call it until there is none: after offering,
    /// after taking frames, and at the deadline.
    pub fn next_frame(&mut self, now_ns: u64, into: &mut [u8]) -> Option<Outgoing> {
        let (next, kept) = self.next_in_place(now_ns, into)?;
        if let Some(kept) = kept {
            into.get_mut(..kept.length_bytes())?
                .copy_from_slice(self.frame(&kept));
        }
        Some(next)
    }

    /// As [`Association::next_frame`], but a frame with packets stays where it is kept: nothing is
    /// copied, and `into` is for those without.
    pub fn next_in_place(
        &mut self,
        now_ns: u64,
        into: &mut [u8],
    ) -> Option<(Outgoing, Option<InFlightFrame>)> {
        let into = into.get_mut(..self.settings.frame_bytes)?;
        if self.close_reason.is_none() {
            self.expire(now_ns);
        }
        if self.close_reason.is_some() {
            return self.send_close(now_ns, into).map(|next| (next, None));
        }
        // What concerns one path alone does not wait until data happen to take it, or until there
        // are none.
        if self.paths.len() > 1
            && let Some((path, flags)) = self.path_answer(now_ns)
        {
            return Some((self.send_answer(now_ns, path, flags, into), None));
        }
        match self.choose(now_ns) {
            Some((channel, path)) => {
                let (next, kept) = self.send_data(now_ns, channel, path);
                Some((next, Some(kept)))
            }
            None => self.answer(now_ns, into).map(|next| (next, None)),
        }
    }

    /// The bytes of a frame in flight.
    #[inline]
    pub fn frame(&self, kept: &InFlightFrame) -> &[u8] {
        self.frame_with_margins(kept, 0, 0)
    }

    /// The same, with so many bytes before and behind it.
    #[inline]
    pub fn frame_with_margins(
        &self,
        kept: &InFlightFrame,
        head_bytes: usize,
        tail_bytes: usize,
    ) -> &[u8] {
        let bytes = self.buffers.whole(kept.buffer);
        &bytes[kept.start - head_bytes..kept.end + tail_bytes]
    }

    /// The same, for a carrier that wants to write before and behind it: [`CARRIER_HEAD_BYTES`] and
    /// [`CARRIER_TAIL_BYTES`] at most. The frame itself must stay as it is.
    #[inline]
    pub fn frame_with_margins_mut(
        &mut self,
        kept: &InFlightFrame,
        head_bytes: usize,
        tail_bytes: usize,
    ) -> &mut [u8] {
        let bytes = self.buffers.whole_mut(kept.buffer);
        &mut bytes[kept.start - head_bytes..kept.end + tail_bytes]
    }

    /// Fills a frame up to that length with zeros, which is padding, if it is shorter and no frame
    /// would be too long then.
    pub fn pad(&mut self, kept: &mut InFlightFrame, frame_bytes: usize) {
        let end = kept.start + frame_bytes;
        let bytes = self.buffers.whole_mut(kept.buffer);
        let last = bytes.len() - CARRIER_TAIL_BYTES;
        if kept.end < end && end <= last {
            bytes[kept.end..end].fill(0);
            kept.end = end;
        }
    }

    /// Whether there is a fresh frame for the window: full ones that are ready, or few enough in
    /// flight that one need not be full.
    pub(super) fn can_send_fresh(&self) -> bool {
        self.send.count(ListId::READY) > 0
            || self.has_open() && self.in_flight() < usize::from(self.settings.eager_frames)
    }

    /// Whether a fresh frame may go, as far as can be told without knowing the time.
    pub fn has_fresh(&self) -> bool {
        self.can_send_fresh() && self.best_path(u64::MAX, None).is_some()
    }

    /// Of the paths that have room the one with the least in flight, but for `avoided` if there is
    /// another: so each has a share, and the slower one a smaller.
    fn best_path(&self, now_ns: u64, avoided: Option<u8>) -> Option<u8> {
        let in_flight = |path: u8| self.send.count(ListId::in_flight(path));
        let has_room = |path: u8| {
            let known = &self.paths[usize::from(path)];
            !known.is_inactive() && known.window.room(now_ns, in_flight(path)) > 0
        };
        (0..self.settings.paths)
            .filter(|&path| has_room(path))
            .min_by_key(|&path| (Some(path) == avoided, in_flight(path)))
    }

    /// The frame that goes now, and its path.
    fn choose(&mut self, now_ns: u64) -> Option<(u16, u8)> {
        if let Some(channel) = self.send.first(ListId::LOST) {
            let entry = *self.send.entry(channel);
            if self.is_unanswered(now_ns, &entry) {
                self.fail(CloseReason::NoAnswer);
                return None;
            }
            let lost_on = entry.path;
            return Some((channel, self.best_path(now_ns, Some(lost_on))?));
        }
        if let Some(channel) = self.send.first(ListId::NOT_READY)
            && !self.is_suspending
            && (self.backoff_rounds == 0 || now_ns >= self.retry_at_ns)
        {
            return Some((channel, self.best_path(now_ns, None)?));
        }
        // While the peer is not ready, only frames that it refused are sent.
        if self.backoff_rounds > 0 || self.is_suspending {
            return None;
        }
        if !self.can_send_fresh() {
            return None;
        }
        let path = self.best_path(now_ns, None)?;
        if self.send.count(ListId::READY) == 0 {
            self.complete_frame();
        }
        Some((self.send.first(ListId::READY)?, path))
    }

    /// Whether a frame was sent again in vain for long enough (4.4.2: so many retries without an
    /// answer). A path that was slow before it fell silent has a window of less than a frame, which
    /// spreads the retries over minutes: then a few of them, and silence for as long as all of them
    /// take otherwise, are enough.
    fn is_unanswered(&self, now_ns: u64, entry: &Entry) -> bool {
        let Settings {
            retries_max,
            no_answer_ns,
            resend_max_ns,
            ..
        } = self.settings;
        let silent_since_ns = entry.unanswered_ns.max(self.received_ns.unwrap_or(0));
        let all_ns = no_answer_ns.saturating_add(u64::from(retries_max) * resend_max_ns);
        let is_tried = entry.retries >= retries_max
            && now_ns.saturating_sub(entry.unanswered_ns) >= no_answer_ns;
        let is_silent = u32::from(entry.retries) >= u32::from(retries_max).min(KEEP_ALIVES_MIN)
            && now_ns.saturating_sub(silent_since_ns) >= all_ns;
        is_tried || is_silent
    }

    /// Whether packets are in the frame that is being filled.
    pub(super) fn has_open(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.packets > 0)
    }

    /// The receiver-not-ready backoff at present.
    pub(super) fn backoff_ns(&self) -> u64 {
        let doublings = self.backoff_rounds.saturating_sub(1).min(BACKOFF_DOUBLINGS);
        self.settings.not_ready_backoff_ns << doublings
    }

    fn send_data(&mut self, now_ns: u64, channel: u16, path: u8) -> (Outgoing, InFlightFrame) {
        if self.outstanding() == 0 {
            self.progress_ns = now_ns;
        }
        let backoff_ns = self.backoff_ns();
        let in_flight = self.send.count(ListId::in_flight(path)) as u32;
        let entry = self.send.entry(channel);
        let is_retransmission = entry.list() != ListId::READY;
        let mut stamp = stamp_of(now_ns);
        if is_retransmission {
            // Timestamps of two transmissions differ, however soon they follow (4.4.4).
            if stamp == entry.stamp {
                stamp = stamp.wrapping_add(1);
            }
            if entry.list() == ListId::NOT_READY {
                self.retry_at_ns = now_ns + backoff_ns;
            }
            entry.retries = entry.retries.saturating_add(1);
            entry.is_retransmitted = true;
            self.statistics.retransmitted += 1;
        } else {
            entry.unanswered_ns = now_ns;
            self.statistics.sent += 1;
        }
        let known = &mut self.paths[usize::from(path)];
        known.order = known.order.wrapping_add(1);
        known.sent_count += 1;
        known.window.sent(now_ns, &known.round_trip);
        known.unasked += 1;
        // A sender with much room left does not wait for an acknowledgement.
        let is_full = 2 * (in_flight + 1) > known.window.frames();
        let is_asking = is_retransmission || is_full && known.unasked >= known.window.quarter();
        if is_asking {
            known.unasked = 0;
        }
        entry.sent_ns = now_ns;
        entry.stamp = stamp;
        entry.order = known.order;
        entry.path = path;
        let (sequence, buffer) = (entry.sequence, entry.buffer);
        let length = usize::from(entry.length_bytes);
        self.send.enlist(channel, ListId::in_flight(path));
        let header = FrameHeader {
            channel,
            sequence,
            flags: if is_asking { ASK } else { 0 },
            ..self.header(now_ns, path, stamp)
        };
        // It may be longer than frames are by now.
        let left = self.frame_bytes.saturating_sub(HEADER_BYTES + length);
        let front_bytes = if self.receive.waiting() == 0 {
            // The common case of a sender that receives nothing: there is nothing to acknowledge.
            let header = self.echoing(header, path);
            let front = self.buffers.whole_mut(buffer)[..FRONT_BYTES].last_chunk_mut();
            if let Some(place) = front {
                header.write(place);
            }
            HEADER_BYTES
        } else {
            let mut front = [0; FRONT_BYTES - CARRIER_HEAD_BYTES];
            let room = front.len().min(HEADER_BYTES + left);
            let front_bytes = self.finish(header, path, &mut front[..room]);
            let place = &mut self.buffers.whole_mut(buffer)[..FRONT_BYTES];
            place[FRONT_BYTES - front_bytes..].copy_from_slice(&front[..front_bytes]);
            front_bytes
        };
        let (start, end) = (FRONT_BYTES - front_bytes, FRONT_BYTES + length);
        let kept = InFlightFrame { buffer, start, end };
        let next = Outgoing {
            length_bytes: kept.length_bytes(),
            path,
            is_data: true,
            is_retransmission,
        };
        (next, kept)
    }

    /// A header with what the path brought.
    fn header(&self, now_ns: u64, path: u8, stamp: u32) -> FrameHeader {
        let echo = self.paths[usize::from(path)].echo(now_ns);
        let (echo, hold_us) = echo.unwrap_or_default();
        FrameHeader {
            stamp,
            echo,
            hold_us,
            channel: NO_CHANNEL,
            sequence: 0,
            flags: 0,
            runs: 0,
            nacks: 0,
        }
    }

    /// The same, its echo said to be one if there is one.
    fn echoing(&mut self, header: FrameHeader, path: u8) -> FrameHeader {
        let known = &mut self.paths[usize::from(path)];
        let has_echo = known.echo(0).is_some();
        known.has_unsent_echo &= !has_echo;
        let flag = if has_echo { ECHO } else { 0 };
        FrameHeader {
            flags: header.flags | flag,
            ..header
        }
    }

    /// Writes header and acknowledgements, as many as fit. Gives where they end.
    fn finish(&mut self, header: FrameHeader, path: u8, into: &mut [u8]) -> usize {
        let mut header = self.echoing(header, path);
        let room = into.get_mut(HEADER_BYTES..).unwrap_or_default();
        let written = self.receive.write_acknowledgements(room);
        if self.receive.waiting() == 0 {
            self.asked &= !(1 << path);
        }
        header.runs = written.runs;
        header.nacks = written.nacks;
        if let Some(place) = into.first_chunk_mut::<HEADER_BYTES>() {
            header.write(place);
        }
        HEADER_BYTES + written.length_bytes
    }

    /// A frame without packets, if one is due.
    fn answer(&mut self, now_ns: u64, into: &mut [u8]) -> Option<Outgoing> {
        if let Some((path, flags)) = self.path_answer(now_ns) {
            return Some(self.send_answer(now_ns, path, flags, into));
        }
        let is_due = self.receive.waiting() >= u32::from(self.settings.acknowledge_frames)
            || self
                .receive
                .waiting_since_ns()
                .is_some_and(|since_ns| now_ns >= since_ns + self.settings.acknowledge_ns);
        let is_asking = self.asks(now_ns);
        if self.close_reason.is_some() || !(is_due || is_asking) {
            return None;
        }
        self.answered = self.next_answer_path();
        let flags = if is_asking { ASK } else { 0 };
        Some(self.send_answer(now_ns, self.answered, flags, into))
    }

    fn send_answer(&mut self, now_ns: u64, path: u8, flags: u8, into: &mut [u8]) -> Outgoing {
        let header = FrameHeader {
            flags,
            ..self.header(now_ns, path, stamp_of(now_ns))
        };
        let end = self.frame_bytes.min(into.len());
        self.asked &= !(1 << path);
        let length_bytes = self.finish(header, path, &mut into[..end]);
        self.statistics.answers += 1;
        Outgoing {
            length_bytes,
            path,
            is_data: false,
            is_retransmission: false,
        }
    }

    /// When an answer that was asked for is due. What is just being taken is part of it, if that
    /// does not take long.
    pub(super) fn answer_ns(&self) -> Option<u64> {
        let wait_ns = match self.receive.delivering_count() {
            0 => 0,
            _ => self.asked_ns.saturating_add(self.settings.acknowledge_ns),
        };
        (self.asked != 0).then_some(wait_ns)
    }

    /// A path on which the peer asked for an answer, or that was left and is to be tried; and the
    /// flags for it.
    fn path_answer(&mut self, now_ns: u64) -> Option<(u8, u8)> {
        if self.answer_ns().is_some_and(|at_ns| now_ns >= at_ns) {
            return Some((self.asked.trailing_zeros() as u8, 0));
        }
        if self.send.is_all_free() {
            return None;
        }
        let is_tried = |path: &Path| path.probe_ns().is_some_and(|probe_ns| now_ns >= probe_ns);
        let at = self.paths.iter().position(is_tried)?;
        self.paths[at].probed(now_ns);
        Some((at as u8, ASK))
    }

    /// Answers go over one path after the other: over those that brought something, or if all of
    /// them were left, over any that is not.
    fn next_answer_path(&self) -> u8 {
        let paths = self.settings.paths;
        let in_turn = || (1..=paths).map(|step| (self.answered % paths + step) % paths);
        let known = |path: u8| &self.paths[usize::from(path)];
        in_turn()
            .find(|&path| known(path).has_unsent_echo && !known(path).is_inactive())
            .or_else(|| in_turn().find(|&path| !known(path).is_inactive()))
            .unwrap_or(0)
    }

    /// A frame that says that this side has closed, if one is due.
    fn send_close(&mut self, now_ns: u64, into: &mut [u8]) -> Option<Outgoing> {
        if self.closing == 0 {
            return None;
        }
        let path = self.closing.trailing_zeros() as u8;
        self.closing &= self.closing - 1;
        Some(self.send_answer(now_ns, path, CLOSING, into))
    }
}

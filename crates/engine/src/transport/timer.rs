//! Timers (4.3): retransmission timeouts of frames in flight, the end of the association,
//! keep-alive, delayed acknowledgements.
//!
//! The frames in flight on a path are in the order of sending, so only the first is looked at. The
//! work is proportional to the number of paths and of lost frames.
//!
//! With nothing in flight no timeout can pass, and the death of a silent peer would go unnoticed.
//! For a carrier that does not hear of deaths the association sends keep-alive frames (not in the
//! paper, whose hosts keep no state of idle peers).

use super::association::{Association, KeepAlive};
use super::close_reason::CloseReason;
use super::path::Path;
use super::send_table::{Entry, ListId};

/// A silent peer gets at least this many keep-alive frames before the association ends.
pub(super) const KEEP_ALIVES_MIN: u32 = 8;

/// On a far path a timeout waits this much longer: for threads of busy hosts and of what carries
/// packets between them.
const FAR_SLACK_NS: u64 = 5_000_000;

/// Why a frame is given up on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Loss {
    /// A later frame of its path was acknowledged: reordered beyond the window.
    Reordered,
    /// Frames of other paths that were sent clearly later were acknowledged.
    LaterOnOtherPath,
    /// The retransmission timeout passed.
    TimedOut,
}

impl Association {
    /// When [`next_frame`](Self::next_frame) is to be called though nothing happens. Nothing if
    /// there is nothing to wait for. May lie in the past.
    pub fn deadline_ns(&self) -> Option<u64> {
        if self.close_reason.is_some() {
            return (self.closing != 0).then_some(0);
        }
        let mut first = self.acknowledgement_due_ns();
        let mut earlier = |at_ns: Option<u64>| {
            first = match (first, at_ns) {
                (Some(first), Some(at)) => Some(first.min(at)),
                (first, at) => first.or(at),
            };
        };
        earlier(self.keep_alive_due_ns());
        if self.send.is_all_free() {
            return first;
        }
        let has_lost = self.send.count(ListId::LOST) > 0;
        let has_not_ready = self.send.count(ListId::NOT_READY) > 0 && !self.is_suspending;
        let is_held = self.backoff_rounds > 0 || self.is_suspending;
        let has_fresh = !is_held && self.can_send_fresh();
        let may_send_ns = if has_not_ready && self.backoff_rounds > 0 {
            self.retry_at_ns
        } else {
            0
        };
        for path in 0..self.settings.paths {
            let known = &self.paths[usize::from(path)];
            if let Some((_, entry)) = self.first_under_way(path) {
                earlier(Some(match self.is_reordered(path, &entry) {
                    true => entry.sent_ns + known.reorder_window_ns(),
                    false => entry.sent_ns + self.timeout_ns(path),
                }));
                earlier(self.later_on_other_path_ns(path, &entry));
            }
            earlier(known.probe_ns());
            if known.is_inactive() {
                continue;
            }
            let in_flight = self.send.count(ListId::in_flight(path));
            let paced_ns = known.window.next_ns(in_flight);
            let path_ns = if known.window.room(u64::MAX, in_flight) > 0 {
                Some(paced_ns.unwrap_or(0))
            } else {
                None
            };
            if has_lost || has_fresh {
                earlier(path_ns);
            } else if has_not_ready {
                earlier(path_ns.map(|at_ns| at_ns.max(may_send_ns)));
            }
        }
        if self.outstanding() > 0 {
            earlier(Some(
                self.progress_ns
                    .saturating_add(self.settings.no_progress_ns),
            ));
        }
        first
    }

    /// When the peer is to be told what was taken, at the latest; part of
    /// [`deadline_ns`](Self::deadline_ns).
    #[inline]
    pub fn acknowledgement_due_ns(&self) -> Option<u64> {
        let is_full = self.receive.waiting() >= u32::from(self.settings.acknowledge_frames);
        let due_ns = |since_ns: u64| match is_full {
            true => 0,
            false => since_ns + self.settings.acknowledge_ns,
        };
        let told_ns = self.receive.waiting_since_ns().map(due_ns);
        match (told_ns, self.answer_ns()) {
            (Some(told_ns), Some(answer_ns)) => Some(told_ns.min(answer_ns)),
            (told_ns, answer_ns) => told_ns.or(answer_ns),
        }
    }

    /// Whether [`next_frame`](Self::next_frame) would have anything to do at this time.
    pub fn may_go_now(&self, now_ns: u64) -> bool {
        self.deadline_ns()
            .is_some_and(|deadline_ns| deadline_ns <= now_ns)
    }

    /// When the peer is to be asked whether it is there.
    fn keep_alive_due_ns(&self) -> Option<u64> {
        let keep_alive_ns = self.settings.keep_alive_ns;
        if keep_alive_ns == 0 || self.outstanding() > 0 {
            return None;
        }
        Some(match (self.keep_alive, self.received_ns) {
            (Some(keep_alive), _) => keep_alive.last_ns + keep_alive_ns / 8,
            (None, Some(received_ns)) => received_ns + keep_alive_ns,
            // What time it is is not known yet.
            (None, None) => 0,
        })
    }

    /// Whether the peer is asked now. Gives up on it if it was asked for long.
    pub(super) fn asks(&mut self, now_ns: u64) -> bool {
        if self.keep_alive_due_ns().is_none_or(|at_ns| now_ns < at_ns) {
            return false;
        }
        if self.received_ns.is_none() {
            self.received_ns = Some(now_ns);
            return false;
        }
        let keep_alive = self.keep_alive.get_or_insert(KeepAlive {
            since_ns: now_ns,
            last_ns: now_ns,
            times: 0,
        });
        keep_alive.times += 1;
        keep_alive.last_ns = now_ns;
        let is_long = now_ns.saturating_sub(keep_alive.since_ns) >= self.settings.no_answer_ns;
        if is_long && keep_alive.times > KEEP_ALIVES_MIN {
            self.fail(CloseReason::NoAnswer);
        }
        true
    }

    fn first_under_way(&self, path: u8) -> Option<(u16, Entry)> {
        let channel = self.send.first(ListId::in_flight(path))?;
        Some((channel, *self.send.get(channel)?))
    }

    fn timeout_ns(&self, path: u8) -> u64 {
        let settings = &self.settings;
        let known = &self.paths[usize::from(path)];
        let timeout_ns = known.round_trip.timeout_ns(
            settings.resend_initial_ns,
            settings.resend_min_ns,
            settings.resend_max_ns,
            2 * settings.acknowledge_ns,
        );
        let slack_ns = if known.window.is_far() {
            FAR_SLACK_NS
        } else {
            0
        };
        // Not before a frame that others overtook counts as lost: that costs less.
        timeout_ns.max(known.reorder_window_ns()) + slack_ns
    }

    fn is_reordered(&self, path: u8, entry: &Entry) -> bool {
        let ahead = self.paths[usize::from(path)]
            .acknowledged_order
            .wrapping_sub(entry.order);
        ahead != 0 && ahead < 1 << 31
    }

    /// When a frame is lost as frames of other paths were acknowledged that were sent later by more
    /// than a round trip of the slowest: as soon as its own acknowledgement should be here.
    fn later_on_other_path_ns(&self, path: u8, entry: &Entry) -> Option<u64> {
        if self.paths.len() == 1 {
            return None;
        }
        let round_trip_ns = |known: &Path| known.round_trip.recent_ns();
        let slowest_ns = self.paths.iter().map(round_trip_ns).max().unwrap_or(0);
        let others = self.paths.iter().enumerate();
        let newest_ns = others
            .filter(|&(at, _)| at != usize::from(path))
            .map(|(_, known)| known.acknowledged_sent_ns)
            .max()
            .unwrap_or(0);
        (newest_ns > entry.sent_ns + slowest_ns)
            .then(|| entry.sent_ns + 2 * (slowest_ns + self.settings.acknowledge_ns))
    }

    /// Declares frames lost whose time has come, and ends the association if its time has come.
    pub(super) fn expire(&mut self, now_ns: u64) {
        // What was sent since is not older.
        if self.send.is_all_free() || self.expired_ns == Some(now_ns) {
            return;
        }
        self.expired_ns = Some(now_ns);
        // While frames are taken in that came some time ago, answers may lie behind them: it is as
        // late as the last one came.
        let heard_ns = match self.received_ns == Some(now_ns) {
            true => now_ns.saturating_sub(self.behind_ns),
            false => now_ns,
        };
        for path in 0..self.settings.paths {
            self.expire_path(heard_ns, path);
        }
        if self.outstanding() > 0
            && now_ns.saturating_sub(self.progress_ns) >= self.settings.no_progress_ns
        {
            self.fail(CloseReason::NoProgress);
        }
    }

    fn expire_path(&mut self, now_ns: u64, path: u8) {
        while let Some((channel, entry)) = self.first_under_way(path) {
            // A loss may change it.
            let timeout_ns = self.timeout_ns(path);
            let known = &self.paths[usize::from(path)];
            // While others come after it that were sent later, the path is no silent one.
            let is_overtaken = self.is_reordered(path, &entry);
            let loss = if is_overtaken && now_ns >= entry.sent_ns + known.reorder_window_ns() {
                Loss::Reordered
            } else if !is_overtaken && now_ns >= entry.sent_ns + timeout_ns {
                Loss::TimedOut
            } else if self
                .later_on_other_path_ns(path, &entry)
                .is_some_and(|lost_ns| now_ns >= lost_ns)
            {
                Loss::LaterOnOtherPath
            } else {
                break;
            };
            self.lose(now_ns, path, channel, &entry, loss);
            if loss == Loss::TimedOut {
                self.handle_timeout(now_ns, path);
                self.try_left_paths(now_ns);
            }
        }
    }

    /// The frame is given up on, and perhaps its path, if another one is active: the worst path is
    /// better than none.
    fn lose(&mut self, now_ns: u64, path: u8, channel: u16, entry: &Entry, loss: Loss) {
        // What was sent again already comes first, so that its retries run out before those of
        // others begin.
        if entry.is_retransmitted {
            self.send.enlist_first(channel, ListId::LOST);
        } else {
            self.send.enlist(channel, ListId::LOST);
        }
        let is_bad = self.paths[usize::from(path)].lost(now_ns, entry.length_bytes);
        if loss != Loss::TimedOut || !self.paths[usize::from(path)].window.is_far() {
            // Of a far path a timeout alone is no loss: its frame asks, and the answer tells of the
            // others.
            self.paths[usize::from(path)].count_loss(now_ns, entry.sent_ns);
        }
        let this = &self.paths[usize::from(path)];
        let has_timed_out = loss == Loss::TimedOut && !this.is_inactive();
        let lost_in_a_row = this.lost_in_a_row();
        // A path that has lost more since it last delivered is no better, though it may be late to
        // say so.
        let is_better = |(at, known): (usize, &Path)| {
            at != usize::from(path)
                && !known.is_inactive()
                && (has_timed_out && known.lost_in_a_row() < lost_in_a_row
                    || known.acknowledged_sent_ns > entry.sent_ns)
        };
        if (is_bad || has_timed_out) && self.paths.iter().enumerate().any(is_better) {
            self.paths[usize::from(path)].deactivate(now_ns);
            while let Some(channel) = self.send.first(ListId::in_flight(path)) {
                self.send.enlist(channel, ListId::LOST);
            }
        }
    }

    /// A timeout passed. If it was the last path's, those that were left are tried now: one of them
    /// may be well again, and its own probe may be due much later.
    fn try_left_paths(&mut self, now_ns: u64) {
        let active = self.paths.iter().filter(|known| !known.is_inactive());
        if active.count() == 1 {
            self.paths
                .iter_mut()
                .for_each(|known| known.probe_by(now_ns));
        }
    }

    /// The retransmission timeout of the first frame of a path passed: that frame asks the peer
    /// once more, or the path sends one frame at a time, and every frame that should have been
    /// answered by now is lost, too.
    fn handle_timeout(&mut self, now_ns: u64, path: u8) {
        let known = &mut self.paths[usize::from(path)];
        let is_first = known.round_trip.timed_out() == 1;
        if known.window.probes_first(is_first) {
            return;
        }
        known.window.collapse();
        let round_trip_ns = known.round_trip.recent_ns() + 2 * self.settings.acknowledge_ns;
        while let Some((channel, entry)) = self.first_under_way(path) {
            if now_ns < entry.sent_ns + round_trip_ns {
                return;
            }
            self.lose(now_ns, path, channel, &entry, Loss::LaterOnOtherPath);
        }
    }
}

//! Time runs out (4.3): for frames under way, for the whole association, for whatever waits.
//!
//! Frames under way on a path stand in the order in which they were sent, so only the first is looked at. The work
//! is proportional to the paths, and to what is lost.
//!
//! With nothing under way no time runs out, and a peer that died without a word is not missed. So a carrier that hears of no deaths
//! has it asked now and then (not in the paper, whose hosts keep nothing of each other that is idle).

use super::association::{Asking, Association};
use super::path::Path;
use super::send_table::{Entry, ListId};
use super::verdict::Verdict;

/// So often a silent peer is asked at least, before it is given up on.
pub(super) const ASKED_MIN: u32 = 8;

/// Why a frame is given up on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Loss {
    /// A later one of its path was acknowledged.
    Overtaken,
    /// Those of other paths were that were sent clearly later.
    Passed,
    /// Nothing came for long.
    RanOut,
}

impl Association {
    /// When [`next_frame`](Self::next_frame) is to be called though nothing happens. Nothing if there is nothing to wait
    /// for. May lie in the past.
    pub fn deadline_ns(&self) -> Option<u64> {
        if self.verdict.is_some() {
            return (self.closing != 0).then_some(0);
        }
        let mut first = self.tell_ns();
        let mut earlier = |at_ns: Option<u64>| {
            first = match (first, at_ns) {
                (Some(first), Some(at)) => Some(first.min(at)),
                (first, at) => first.or(at),
            };
        };
        earlier(self.ask_ns());
        if self.send.is_all_free() {
            return first;
        }
        let has_lost = self.send.count(ListId::LOST) > 0;
        let has_put_off = self.send.count(ListId::PUT_OFF) > 0 && !self.is_winding_down;
        let is_held = self.put_off_rounds > 0 || self.is_winding_down;
        let has_fresh = !is_held && self.wants_to_go();
        let may_send_ns = if has_put_off && self.put_off_rounds > 0 {
            self.again_ns
        } else {
            0
        };
        for path in 0..self.settings.paths {
            let known = &self.paths[usize::from(path)];
            if let Some((_, entry)) = self.first_under_way(path) {
                earlier(Some(entry.sent_ns + self.patience_ns(path)));
                if self.is_overtaken(path, &entry) {
                    earlier(Some(entry.sent_ns + known.overtaken_ns()));
                }
                earlier(self.passed_ns(path, &entry));
            }
            earlier(known.trial_ns());
            if known.is_left() {
                continue;
            }
            let under_way = self.send.count(ListId::under_way(path));
            let paced_ns = known.window.next_ns(under_way);
            let path_ns = if known.window.room(u64::MAX, under_way) > 0 {
                Some(paced_ns.unwrap_or(0))
            } else {
                None
            };
            if has_lost || has_fresh {
                earlier(path_ns);
            } else if has_put_off {
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

    /// When the peer is to be told what was taken, at the latest; part of [`deadline_ns`](Self::deadline_ns).
    #[inline]
    pub fn tell_ns(&self) -> Option<u64> {
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
    fn ask_ns(&self) -> Option<u64> {
        let silence_ns = self.settings.silence_ns;
        if silence_ns == 0 || self.outstanding() > 0 {
            return None;
        }
        Some(match (self.asking, self.heard_ns) {
            (Some(asking), _) => asking.last_ns + silence_ns / 8,
            (None, Some(heard_ns)) => heard_ns + silence_ns,
            // What time it is is not known yet.
            (None, None) => 0,
        })
    }

    /// Whether the peer is asked now. Gives up on it if it was asked for long.
    pub(super) fn asks(&mut self, now_ns: u64) -> bool {
        if self.ask_ns().is_none_or(|at_ns| now_ns < at_ns) {
            return false;
        }
        if self.heard_ns.is_none() {
            self.heard_ns = Some(now_ns);
            return false;
        }
        let asking = self.asking.get_or_insert(Asking {
            since_ns: now_ns,
            last_ns: now_ns,
            times: 0,
        });
        asking.times += 1;
        asking.last_ns = now_ns;
        let is_long = now_ns.saturating_sub(asking.since_ns) >= self.settings.no_answer_ns;
        if is_long && asking.times > ASKED_MIN {
            self.fail(Verdict::NoAnswer);
        }
        true
    }

    fn first_under_way(&self, path: u8) -> Option<(u16, Entry)> {
        let channel = self.send.first(ListId::under_way(path))?;
        Some((channel, *self.send.get(channel)?))
    }

    fn patience_ns(&self, path: u8) -> u64 {
        let settings = &self.settings;
        self.paths[usize::from(path)].trip.patience_ns(
            settings.resend_initial_ns,
            settings.resend_min_ns,
            settings.resend_max_ns,
            2 * settings.acknowledge_ns,
        )
    }

    fn is_overtaken(&self, path: u8, entry: &Entry) -> bool {
        let ahead = self.paths[usize::from(path)]
            .acknowledged_order
            .wrapping_sub(entry.order);
        ahead != 0 && ahead < 1 << 31
    }

    /// When a frame is lost as frames of other paths were acknowledged that were sent later by more than a round trip of
    /// the slowest: as soon as its own acknowledgement should be here.
    fn passed_ns(&self, path: u8, entry: &Entry) -> Option<u64> {
        if self.paths.len() == 1 {
            return None;
        }
        let trip_ns = |known: &Path| known.trip.recent_ns();
        let slowest_ns = self.paths.iter().map(trip_ns).max().unwrap_or(0);
        let others = self.paths.iter().enumerate();
        let newest_ns = others
            .filter(|&(at, _)| at != usize::from(path))
            .map(|(_, known)| known.acknowledged_sent_ns)
            .max()
            .unwrap_or(0);
        (newest_ns > entry.sent_ns + slowest_ns)
            .then(|| entry.sent_ns + 2 * (slowest_ns + self.settings.acknowledge_ns))
    }

    /// Gives up on what is lost at this time, and on the association if it is time for that.
    pub(super) fn expire(&mut self, now_ns: u64) {
        // What was sent since is not older.
        if self.send.is_all_free() || self.expired_ns == Some(now_ns) {
            return;
        }
        self.expired_ns = Some(now_ns);
        for path in 0..self.settings.paths {
            self.expire_path(now_ns, path);
        }
        if self.outstanding() > 0
            && now_ns.saturating_sub(self.progress_ns) >= self.settings.no_progress_ns
        {
            self.fail(Verdict::NoProgress);
        }
        // The worst path is better than none.
        if self.paths.iter().all(Path::is_left) {
            self.paths.iter_mut().for_each(Path::use_again);
        }
    }

    fn expire_path(&mut self, now_ns: u64, path: u8) {
        let patience_ns = self.patience_ns(path);
        while let Some((channel, entry)) = self.first_under_way(path) {
            let known = &self.paths[usize::from(path)];
            let loss = if now_ns >= entry.sent_ns + patience_ns {
                Loss::RanOut
            } else if self.is_overtaken(path, &entry)
                && now_ns >= entry.sent_ns + known.overtaken_ns()
            {
                Loss::Overtaken
            } else if self
                .passed_ns(path, &entry)
                .is_some_and(|lost_ns| now_ns >= lost_ns)
            {
                Loss::Passed
            } else {
                break;
            };
            self.lose(now_ns, path, channel, &entry, loss);
            if loss == Loss::RanOut {
                self.run_out(now_ns, path);
            }
        }
    }

    /// The frame is given up on, and perhaps its path.
    fn lose(&mut self, now_ns: u64, path: u8, channel: u16, entry: &Entry, loss: Loss) {
        // What was sent again already comes first, so that its retries run out before those of others begin.
        if entry.is_sent_again {
            self.send.enlist_first(channel, ListId::LOST);
        } else {
            self.send.enlist(channel, ListId::LOST);
        }
        let is_bad = self.paths[usize::from(path)].lost(now_ns, entry.length_bytes);
        let has_run_out = loss == Loss::RanOut && !self.paths[usize::from(path)].is_left();
        let is_better = |(at, known): (usize, &Path)| {
            at != usize::from(path)
                && !known.is_left()
                && (has_run_out || known.acknowledged_sent_ns > entry.sent_ns)
        };
        if (is_bad || has_run_out) && self.paths.iter().enumerate().any(is_better) {
            self.paths[usize::from(path)].leave(now_ns);
            while let Some(channel) = self.send.first(ListId::under_way(path)) {
                self.send.enlist(channel, ListId::LOST);
            }
        }
    }

    /// Time ran out for the first frame of a path: it is sent one frame at a time, and what should have
    /// been answered by now is lost, too.
    fn run_out(&mut self, now_ns: u64, path: u8) {
        let known = &mut self.paths[usize::from(path)];
        known.trip.ran_out();
        known.window.collapse();
        let trip_ns = known.trip.recent_ns() + 2 * self.settings.acknowledge_ns;
        while let Some((channel, entry)) = self.first_under_way(path) {
            if now_ns < entry.sent_ns + trip_ns {
                return;
            }
            self.lose(now_ns, path, channel, &entry, Loss::Passed);
        }
    }
}

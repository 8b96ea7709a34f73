//! An impairment chain: impairments in a row, through which frames go one way.
//!
//! Each impairment has its own random numbers, so what one draws changes nothing for the others. A
//! frame without room in the next impairment waits where it is, and so do the frames behind it.

use std::collections::VecDeque;

use super::impairment::{ImpairmentError, Schedule, WhenDown, WhenFull};
use super::{Frame, Impairment, Loss, Payload};
use crate::random::Random;
use crate::time::{Span, Time};

/// Parts in a row. To drive it: [`ImpairmentChain::offer`], and at each instant that
/// [`ImpairmentChain::next`] names, [`ImpairmentChain::take`] until there is nothing, or
/// [`ImpairmentChain::advance`] if nothing is to be taken.
#[derive(Clone, Debug)]
pub struct ImpairmentChain<P> {
    stages: Vec<Stage<P>>,
    now: Time,
    lost: Vec<(u64, Loss)>,
}

#[derive(Clone, Debug)]
struct Stage<P> {
    impairment: Impairment,
    random: Random,
    /// By the instant from which they may go on.
    queue: VecDeque<(Time, Frame<P>)>,
    held_bytes: u64,
    /// So many more are lost in this run.
    to_lose: u32,
    /// For a link that comes and goes: whether it is up, until when, and how often it has changed.
    is_up: bool,
    until: Time,
    changes: usize,
}

impl<P: Payload> ImpairmentChain<P> {
    /// A chain of these impairments; without any, frames go through at once.
    pub fn new(impairments: &[Impairment], random: &mut Random) -> Result<Self, ImpairmentError> {
        let nothing = [Impairment::Delay { delay_ps: 0 }];
        let impairments = if impairments.is_empty() {
            &nothing
        } else {
            impairments
        };
        let build = |(at, impairment): (usize, &Impairment)| {
            impairment.check(at)?;
            Ok(Stage::new(impairment.clone(), random.fork()))
        };
        Ok(Self {
            stages: impairments
                .iter()
                .enumerate()
                .map(build)
                .collect::<Result<_, _>>()?,
            now: Time::ZERO,
            lost: Vec::new(),
        })
    }

    /// Whether a frame of this length would be taken now.
    pub fn has_room(&mut self, now: Time, bytes: u32) -> bool {
        self.advance(now);
        self.stages[0].has_room(now, bytes)
    }

    /// Takes a frame, or gives it back if there is no room.
    pub fn offer(&mut self, now: Time, frame: Frame<P>) -> Result<(), Frame<P>> {
        if !self.has_room(now, frame.bytes) {
            return Err(frame);
        }
        self.stages[0].put(now, frame, &mut self.lost);
        self.pass(now);
        Ok(())
    }

    /// The earliest instant after the last one told at which a frame may come out or room may
    /// arise.
    pub fn next(&self) -> Option<Time> {
        self.stages
            .iter()
            .filter_map(|stage| stage.next(self.now))
            .min()
    }

    /// A frame that comes out, if there is one now.
    pub fn take(&mut self, now: Time) -> Option<Frame<P>> {
        self.advance(now);
        let frame = self.stages.last_mut()?.take(now)?;
        self.pass(now);
        Some(frame)
    }

    /// What was lost since the last call, by number.
    pub fn take_lost(&mut self) -> Vec<(u64, Loss)> {
        core::mem::take(&mut self.lost)
    }

    /// Time is now `now`: everything moves on that can. [`ImpairmentChain::offer`] and
    /// [`ImpairmentChain::take`] do this by themselves.
    pub fn advance(&mut self, now: Time) {
        while let Some(at) = self.next()
            && at <= now
        {
            self.pass(at);
        }
        self.now = self.now.max(now);
    }

    /// Everything moves on that can, at one instant.
    fn pass(&mut self, now: Time) {
        self.now = self.now.max(now);
        let mut has_moved = true;
        while has_moved {
            has_moved = false;
            for at in 1..self.stages.len() {
                let (before, rest) = self.stages.split_at_mut(at);
                let (Some(one), Some(next)) = (before.last_mut(), rest.first_mut()) else {
                    break;
                };
                while let Some(bytes) = one.ready(now)
                    && next.has_room(now, bytes)
                    && let Some(frame) = one.take(now)
                {
                    next.put(now, frame, &mut self.lost);
                    has_moved = true;
                }
            }
        }
    }
}

impl<P: Payload> Stage<P> {
    fn new(impairment: Impairment, random: Random) -> Self {
        let mut stage = Self {
            impairment,
            random,
            queue: VecDeque::new(),
            held_bytes: 0,
            to_lose: 0,
            is_up: true,
            until: Time::NEVER,
            changes: 0,
        };
        stage.until = stage.change_after(Time::ZERO);
        stage
    }

    /// When the link changes next, after a change at `at`.
    fn change_after(&mut self, at: Time) -> Time {
        let Impairment::ComeAndGo { schedule, .. } = &self.impairment else {
            return Time::NEVER;
        };
        match schedule {
            Schedule::At(instants) => instants
                .get(self.changes)
                .map_or(Time::NEVER, |&ps| Time::ZERO + Span::from_ps(ps)),
            &Schedule::Random { up_ps, down_ps } => {
                let mean = if self.is_up { up_ps } else { down_ps };
                at + Span::from_ps(self.random.within(1..mean * 2))
            }
        }
    }

    fn settle(&mut self, now: Time) {
        while self.until <= now && self.until != Time::NEVER {
            self.is_up = !self.is_up;
            self.changes += 1;
            self.until = self.change_after(self.until);
        }
    }

    /// The length of the first frame, if it may go on now.
    fn ready(&self, now: Time) -> Option<u32> {
        let (at, frame) = self.queue.front()?;
        (*at <= now).then_some(frame.bytes)
    }

    fn has_room(&mut self, now: Time, bytes: u32) -> bool {
        match self.impairment {
            Impairment::Bandwidth { .. } => self.queue.is_empty(),
            Impairment::Buffer {
                limit_bytes,
                when_full,
            } => when_full == WhenFull::Drop || self.fits(limit_bytes, bytes),
            Impairment::ComeAndGo { when_down, .. } => {
                self.settle(now);
                (self.is_up || when_down == WhenDown::Lose) && self.ready(now).is_none()
            }
            // The others hold nothing back, so what waits is stopped by what follows.
            _ => self.ready(now).is_none(),
        }
    }

    fn fits(&self, limit_bytes: u64, bytes: u32) -> bool {
        self.queue.is_empty() || self.held_bytes + u64::from(bytes) <= limit_bytes
    }

    fn put(&mut self, now: Time, mut frame: Frame<P>, lost: &mut Vec<(u64, Loss)>) {
        let number = frame.number;
        let mut at = now;
        let mut loss = None;
        match self.impairment {
            Impairment::Delay { delay_ps } => at += Span::from_ps(delay_ps),
            Impairment::Jitter { up_to_ps } => {
                at += Span::from_ps(self.random.within(0..up_to_ps.saturating_add(1)));
                at = at.max(self.queue.back().map_or(at, |(last, _)| *last));
            }
            Impairment::Bandwidth { ps_per_byte } => {
                at += Span::from_ps(ps_per_byte) * u64::from(frame.bytes);
            }
            Impairment::Reorder {
                per_million,
                up_to_ps,
            } => {
                if self.random.happens(per_million) {
                    at += Span::from_ps(self.random.within(1..up_to_ps.saturating_add(1)));
                }
            }
            Impairment::Lose {
                per_million,
                run_frames,
            } => {
                if self.to_lose == 0 && self.random.happens(per_million) {
                    self.to_lose = run_frames;
                }
                if self.to_lose > 0 {
                    self.to_lose -= 1;
                    loss = Some(Loss::Chance);
                }
            }
            Impairment::Duplicate { per_million } => {
                if self.random.happens(per_million) {
                    self.enter(at, frame.clone());
                }
            }
            Impairment::Damage { per_million } => {
                if self.random.happens(per_million) {
                    frame.damaged = true;
                    frame.payload.damage(&mut self.random);
                }
            }
            Impairment::Buffer { limit_bytes, .. } => {
                if !self.fits(limit_bytes, frame.bytes) {
                    loss = Some(Loss::Overflow);
                }
            }
            Impairment::Partition { ref cuts } => {
                if cuts.iter().any(|cut| cut.parts(now, frame.from, frame.to)) {
                    loss = Some(Loss::Partition);
                }
            }
            Impairment::ComeAndGo { .. } => {
                self.settle(now);
                if !self.is_up {
                    loss = Some(Loss::Down);
                }
            }
        }
        match loss {
            Some(loss) => lost.push((number, loss)),
            None => self.enter(at, frame),
        }
    }

    fn enter(&mut self, at: Time, frame: Frame<P>) {
        self.held_bytes += u64::from(frame.bytes);
        let place = self.queue.partition_point(|(other, _)| *other <= at);
        self.queue.insert(place, (at, frame));
    }

    fn take(&mut self, now: Time) -> Option<Frame<P>> {
        self.ready(now)?;
        let (_, frame) = self.queue.pop_front()?;
        self.held_bytes -= u64::from(frame.bytes);
        Some(frame)
    }

    fn next(&self, now: Time) -> Option<Time> {
        // What is overdue waits for the next impairment, and that has an instant of its own.
        let front = self.queue.front().map(|(at, _)| *at).filter(|at| *at > now);
        let is_held = matches!(
            self.impairment,
            Impairment::ComeAndGo {
                when_down: WhenDown::Hold,
                ..
            }
        ) && !self.is_up;
        let up = (is_held && self.until != Time::NEVER).then_some(self.until);
        front.into_iter().chain(up.filter(|up| *up > now)).min()
    }
}

#[cfg(test)]
mod tests;

//! Links that have ended: what fences are to tell of them.

use std::collections::VecDeque;

use hamlyn_engine::memory::LinkId;
use hamlyn_host::Destination;
use hamlyn_link::TransmitEnd;

use super::route::{NewlyRefused, TxRoute};
use crate::peer::Undelivered;

/// Of links that have ended: what a fence is to tell of them.
#[derive(Default)]
pub(crate) struct Ended {
    /// Fences that had been answered when their link ended: all of a link whose peer had taken all
    /// that was sent; and packets that were refused before, which those are told of that ask for
    /// this link alone.
    answered: VecDeque<(LinkId, u64, NewlyRefused)>,
    /// Interfaces that were gone before they had taken all that was sent to them.
    unplaced: VecDeque<Destination>,
    /// Refused packets, and the last of them.
    refused: u64,
    last: Option<Undelivered>,
}

/// No fence has a greater number.
pub(super) const ANY_FENCE: u64 = u64::MAX;

/// Ended links that are remembered, each way.
const ENDED_MAX: usize = 64;

impl Ended {
    /// Packets were refused over a link that leads there, or led, and no fence has told of them.
    pub(super) fn note_refused(
        &mut self,
        link: LinkId,
        to: Option<Destination>,
        refused: &NewlyRefused,
    ) {
        if let Some((header, reason)) = &refused.last {
            self.refused += refused.packets;
            self.last = Some(Undelivered::new(link, to, header, *reason));
        }
    }

    /// A link has ended that led there. Not all is in its place if messages to it waited in the
    /// queue.
    pub(super) fn note<T: TransmitEnd>(
        &mut self,
        route: &mut TxRoute<T>,
        to: Option<Destination>,
        may_be_placed: bool,
    ) {
        let refused = route.newly_refused().unwrap_or_default();
        let is_placed = may_be_placed && route.end.is_all_taken();
        let answered = match is_placed {
            true => Some(ANY_FENCE),
            false => (route.fence).filter(|&fence| route.end.is_answered(fence) == Ok(true)),
        };
        if let Some(fence) = answered {
            self.answered.truncate(ENDED_MAX - 1);
            let link = LinkId::from_bits(route.link);
            self.answered.push_front((link, fence, refused));
        }
        self.note_refused(LinkId::from_bits(route.link), to, &refused);
        if !is_placed {
            self.note_unplaced(to);
        }
    }

    /// True if the peer of that link had taken all that was sent when it ended.
    pub(super) fn is_placed(&self, link: LinkId) -> bool {
        let mut answered = self.answered.iter();
        answered.any(|&(ended, fence, _)| ended == link && fence == ANY_FENCE)
    }

    fn note_unplaced(&mut self, to: Option<Destination>) {
        if let Some(to) = to
            && !self.unplaced.contains(&to)
        {
            self.unplaced.truncate(ENDED_MAX - 1);
            self.unplaced.push_front(to);
        }
    }

    /// If that fence had been answered when its link ended, the packets that were refused before,
    /// and that no fence has told of.
    pub(super) fn take_answered(&mut self, link: LinkId, fence: u64) -> Option<NewlyRefused> {
        let is_it = |(ended, answered, _): &&mut (LinkId, u64, NewlyRefused)| {
            *ended == link && fence <= *answered
        };
        let (_, _, refused) = self.answered.iter_mut().find(is_it)?;
        let refused = std::mem::take(refused);
        self.refused -= refused.packets;
        if self.refused == 0 {
            self.last = None;
        }
        Some(refused)
    }

    /// Refused packets that no fence has told of.
    pub(crate) fn take_refused(&mut self) -> (u64, Option<Undelivered>) {
        for (_, _, refused) in &mut self.answered {
            *refused = NewlyRefused::default();
        }
        (std::mem::take(&mut self.refused), self.last.take())
    }

    /// An interface that was gone before it had taken all that was sent to it, and that no fence
    /// has told of.
    pub(crate) fn unplaced(&self) -> Option<Destination> {
        self.unplaced.back().copied()
    }

    /// A fence tells of that one.
    pub(crate) fn forget(&mut self, to: &Destination) {
        self.unplaced.retain(|unplaced| unplaced != to);
    }
}

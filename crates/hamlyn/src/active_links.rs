//! Which links a poll looks at, and whether their peers must announce what they send (decision
//! 0005).
//!
//! The order of turns is [`PollSet`]'s; here it is joined with the links themselves. A ready bit
//! only makes a poll look at its link: the link is active again if it has something. Before
//! sleeping every link is looked at, whatever the bits say.

use hamlyn_link::ReceiveEnd;
use hamlyn_ring::poll_set::PollSet;
use hamlyn_ring::ready_bitmap::ReadyBitmap;

use crate::rx_links::RxLinks;

/// Ready bits taken per poll.
const READY_BITS_PER_POLL: u32 = 16;
/// The index of no link.
const NO_LINK: u32 = u32::MAX;

/// See the module.
pub(crate) struct ActiveLinks {
    poll_set: PollSet,
    ready_bitmap: Option<ReadyBitmap>,
    /// The index of the link whose peer sets that ready bit.
    by_ready_bit: Vec<u32>,
    /// The next poll gives a turn to each active link.
    polls_all: bool,
    /// How often an idle link became active.
    activations: u64,
    /// The program is rung for while it computes: no peer is told that it need not ring.
    pub(crate) is_listening: bool,
}

impl ActiveLinks {
    pub(crate) fn new(ready_bitmap: Option<ReadyBitmap>) -> Self {
        Self {
            poll_set: PollSet::new(),
            ready_bitmap,
            by_ready_bit: Vec::new(),
            polls_all: false,
            activations: 0,
            is_listening: false,
        }
    }

    /// How often an idle link became active: its peer does not ring any more, whoever sleeps.
    #[inline]
    pub(crate) fn activations(&self) -> u64 {
        self.activations
    }

    /// Adds the link at this index. Its peer knows that it need announce nothing.
    pub(crate) fn insert<R: ReceiveEnd>(&mut self, links: &mut RxLinks<R>, index: usize) {
        let Some(rx_link) = links.at(index) else {
            return;
        };
        self.poll_set.insert(index);
        let ready_bit = rx_link.end.ready_bit();
        if ready_bit < hamlyn_ring::ready_bitmap::READY_BITS_MAX {
            let ready_bit = ready_bit as usize;
            if ready_bit >= self.by_ready_bit.len() {
                self.by_ready_bit.resize(ready_bit + 1, NO_LINK);
            }
            self.by_ready_bit[ready_bit] = index as u32;
        }
    }

    /// Removes the link at this index.
    pub(crate) fn remove(&mut self, index: usize) {
        self.poll_set.remove(index);
    }

    /// How many links have a turn in this poll.
    #[inline]
    pub(crate) fn turns(&mut self) -> usize {
        if self.polls_all {
            self.polls_all = false;
            return self.poll_set.active().len();
        }
        self.poll_set.count()
    }

    /// Whether there is one link, and it is active.
    #[inline]
    pub(crate) fn is_one(&self) -> bool {
        self.poll_set.active().len() == 1 && !self.poll_set.has_idle()
    }

    /// Whether the link at this index is active.
    #[inline]
    pub(crate) fn is_active(&self, index: usize) -> bool {
        self.poll_set.is_active(index)
    }

    /// The index whose turn it is.
    #[inline]
    pub(crate) fn current(&self) -> usize {
        self.poll_set.current()
    }

    /// The link whose turn it is had something or nothing; the next one has its turn.
    #[inline]
    pub(crate) fn next<R: ReceiveEnd>(&mut self, links: &mut RxLinks<R>, is_silent: bool) {
        if !self.poll_set.had_turn(is_silent) || !self.deactivate(links) {
            self.poll_set.advance();
        }
    }

    #[cold]
    fn deactivate<R: ReceiveEnd>(&mut self, links: &mut RxLinks<R>) -> bool {
        let index = self.poll_set.current();
        let Some(rx_link) = links.at(index) else {
            return false;
        };
        // The link of a lost peer has something to take, or is to be removed.
        let is_idle = rx_link.lost.is_none() && rx_link.end.enable_events();
        if is_idle {
            self.poll_set.deactivate(index);
        }
        is_idle
    }

    /// Makes the link at this index active, whatever it has.
    #[cold]
    pub(crate) fn activate<R: ReceiveEnd>(&mut self, links: &mut RxLinks<R>, index: usize) {
        if self.poll_set.activate(index)
            && let Some(rx_link) = links.at(index)
        {
            self.activations += 1;
            if !self.is_listening {
                rx_link.end.suppress_events();
            }
        }
    }

    fn activate_if_pending<R: ReceiveEnd>(&mut self, links: &mut RxLinks<R>, index: usize) {
        if !self.poll_set.is_active(index)
            && links
                .at(index)
                .is_some_and(|rx_link| rx_link.end.is_pending())
        {
            self.activate(links, index);
        }
    }

    /// Whether [`ActiveLinks::poll_idle`] has something to do.
    #[inline]
    pub(crate) fn has_idle(&self) -> bool {
        self.poll_set.has_idle()
    }

    /// Looks at the idle links whose ready bits are set, and at one more.
    #[inline(never)]
    pub(crate) fn poll_idle<R: ReceiveEnd>(&mut self, links: &mut RxLinks<R>) {
        if let Some(ready_bitmap) = &mut self.ready_bitmap
            && ready_bitmap.is_any()
        {
            let mut ready = [NO_LINK; READY_BITS_PER_POLL as usize];
            let mut free = ready.iter_mut();
            ready_bitmap.take(READY_BITS_PER_POLL, |bit| {
                if let Some(&index) = self.by_ready_bit.get(bit as usize)
                    && let Some(to) = free.next()
                {
                    *to = index;
                }
            });
            for index in ready.into_iter().take_while(|index| *index != NO_LINK) {
                self.activate_if_pending(links, index as usize);
            }
        }
        if let Some(index) = self.poll_set.sweep() {
            self.activate_if_pending(links, index);
        }
    }

    /// Tells all peers that this interface is about to sleep. The caller then passes a barrier and
    /// calls [`ActiveLinks::poll_all_next`].
    pub(crate) fn announce_sleep<R: ReceiveEnd>(&mut self, links: &mut RxLinks<R>) {
        for index in 0..links.capacity() {
            if let Some(rx_link) = links.at(index) {
                rx_link.end.announce_sleep();
            }
        }
    }

    /// The next poll takes everything that a peer sent before it saw the announcement of sleep.
    pub(crate) fn poll_all_next<R: ReceiveEnd>(&mut self, links: &mut RxLinks<R>) {
        if self.has_idle() {
            for index in 0..links.capacity() {
                self.activate_if_pending(links, index);
            }
        }
        self.polls_all = true;
    }

    /// The interface is awake: the peers of active links need not ring. The others still may, once
    /// each.
    pub(crate) fn end_sleep<R: ReceiveEnd>(&mut self, links: &mut RxLinks<R>) {
        for &index in self.poll_set.active() {
            if let Some(rx_link) = links.at(index as usize) {
                rx_link.end.suppress_events();
            }
        }
    }
}

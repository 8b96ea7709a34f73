//! Which links a poll looks at, and what their peers are told of it (decision 0005).
//!
//! The order of turns is [`Turns`]'; here it is joined with the links themselves. A note only makes
//! us look at a link: it is watched again if it has something. Before sleeping every link is looked at, whatever notes say.

use hamlyn_link::ReceiveEnd;
use hamlyn_ring::ready_bitmap::ReadyBitmap;
use hamlyn_ring::watch::Turns;

use crate::rx_links::RxLinks;

/// Notes taken per poll.
const READY_BITS_PER_POLL: u32 = 16;
/// No place.
const NOWHERE: u32 = u32::MAX;

/// See the module.
pub(crate) struct Watching {
    turns: Turns,
    notes: Option<ReadyBitmap>,
    /// The place of the link whose peer leaves notes under that number.
    by_note: Vec<u32>,
    /// The next poll gives a turn to each watched link.
    everywhere: bool,
}

impl Watching {
    pub(crate) fn new(notes: Option<ReadyBitmap>) -> Self {
        Self {
            turns: Turns::new(),
            notes,
            by_note: Vec::new(),
            everywhere: false,
        }
    }

    /// A new link is at this place, which its peer knows to be watched.
    pub(crate) fn enter<R: ReceiveEnd>(&mut self, links: &mut RxLinks<R>, place: usize) {
        let Some(rx_link) = links.at(place) else {
            return;
        };
        self.turns.enter(place);
        let note = rx_link.end.ready_bit();
        if note < hamlyn_ring::ready_bitmap::READY_BITS_MAX {
            let note = note as usize;
            if note >= self.by_note.len() {
                self.by_note.resize(note + 1, NOWHERE);
            }
            self.by_note[note] = place as u32;
        }
    }

    /// The link of this place is gone.
    pub(crate) fn leave(&mut self, place: usize) {
        self.turns.leave(place);
    }

    /// How many links have a turn in this poll.
    #[inline]
    pub(crate) fn turns(&mut self) -> usize {
        if self.everywhere {
            self.everywhere = false;
            return self.turns.watched();
        }
        self.turns.count()
    }

    /// Whether there is one link, and it is watched.
    #[inline]
    pub(crate) fn is_one(&self) -> bool {
        self.turns.watched() == 1 && !self.turns.is_any_unwatched()
    }

    /// Whether the link of this place is watched.
    #[inline]
    pub(crate) fn is_watched(&self, place: usize) -> bool {
        self.turns.is_watched(place)
    }

    /// The place whose turn it is.
    #[inline]
    pub(crate) fn current(&self) -> usize {
        self.turns.current()
    }

    /// The link whose turn it was had something or nothing; the next one has its turn.
    #[inline]
    pub(crate) fn next<R: ReceiveEnd>(&mut self, links: &mut RxLinks<R>, is_silent: bool) {
        if !self.turns.had_turn(is_silent) || !self.unwatch(links) {
            self.turns.advance();
        }
    }

    #[cold]
    fn unwatch<R: ReceiveEnd>(&mut self, links: &mut RxLinks<R>) -> bool {
        let place = self.turns.current();
        let Some(rx_link) = links.at(place) else {
            return false;
        };
        // Of a lost peer there is something to take, or a link to remove.
        let unwatched = rx_link.lost.is_none() && rx_link.end.unwatch();
        if unwatched {
            self.turns.unwatch(place);
        }
        unwatched
    }

    /// Watches this link, whatever it has.
    #[cold]
    pub(crate) fn watch<R: ReceiveEnd>(&mut self, links: &mut RxLinks<R>, place: usize) {
        if self.turns.watch(place)
            && let Some(rx_link) = links.at(place)
        {
            rx_link.end.watch();
        }
    }

    fn watch_if_pending<R: ReceiveEnd>(&mut self, links: &mut RxLinks<R>, place: usize) {
        if !self.turns.is_watched(place)
            && links
                .at(place)
                .is_some_and(|rx_link| rx_link.end.is_pending())
        {
            self.watch(links, place);
        }
    }

    /// Whether [`Watching::heed`] has something to do: there are links that are not watched.
    #[inline]
    pub(crate) fn is_any_unwatched(&self) -> bool {
        self.turns.is_any_unwatched()
    }

    /// Looks where notes say, and at one link that nobody spoke of.
    #[inline(never)]
    pub(crate) fn heed<R: ReceiveEnd>(&mut self, links: &mut RxLinks<R>) {
        if let Some(notes) = &mut self.notes
            && notes.is_any()
        {
            let mut noted = [NOWHERE; READY_BITS_PER_POLL as usize];
            let mut free = noted.iter_mut();
            notes.take(READY_BITS_PER_POLL, |number| {
                if let Some(&place) = self.by_note.get(number as usize)
                    && let Some(to) = free.next()
                {
                    *to = place;
                }
            });
            for place in noted.into_iter().take_while(|place| *place != NOWHERE) {
                self.watch_if_pending(links, place as usize);
            }
        }
        if let Some(place) = self.turns.sweep() {
            self.watch_if_pending(links, place);
        }
    }

    /// Tells all peers that we are about to sleep. To be followed by a barrier, and
    /// [`Watching::look_everywhere`].
    pub(crate) fn announce_sleep<R: ReceiveEnd>(&mut self, links: &mut RxLinks<R>) {
        for place in 0..links.places() {
            if let Some(rx_link) = links.at(place) {
                rx_link.end.announce_sleep();
            }
        }
    }

    /// Whatever was sent by somebody who saw us awake is taken by the next poll.
    pub(crate) fn look_everywhere<R: ReceiveEnd>(&mut self, links: &mut RxLinks<R>) {
        if self.is_any_unwatched() {
            for place in 0..links.places() {
                self.watch_if_pending(links, place);
            }
        }
        self.everywhere = true;
    }

    /// We are awake: the links that we watch need not ring. The others still may, once each.
    pub(crate) fn end_sleep<R: ReceiveEnd>(&mut self, links: &mut RxLinks<R>) {
        for &place in self.turns.watched_places() {
            if let Some(rx_link) = links.at(place as usize) {
                rx_link.end.watch();
            }
        }
    }
}

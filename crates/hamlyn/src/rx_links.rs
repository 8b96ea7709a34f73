//! The receiving ends of the links of an interface, by place. The one whose turn it is is at hand.

use hamlyn_engine::key::Key;
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::table::{Name, Table};
use hamlyn_host::LossCause;
use hamlyn_link::ReceiveEnd;

use crate::cached_table::CachedTable;

/// Links that an interface may have at a time; hosts allow fewer.
const LINKS_MAX: usize = 1 << 24;

/// A link that packets come from.
pub(crate) struct RxLink<R> {
    pub(crate) end: R,
    pub(crate) id: LinkId,
    /// The peer is gone; what it sent is still to be taken.
    pub(crate) lost: Option<LossCause>,
    guesses: Guesses,
}

/// Wrong keys that a peer has presented. One that it presented lately does not count again: it
/// tells the peer nothing, and an honest writer repeats the key that it was given until it hears of
/// a new one. Good packets make up for wrong keys, so a link that lives long does not use up its
/// budget.
#[derive(Default)]
struct Guesses {
    counted: u32,
    lately: [Option<Key>; KEYS_REMEMBERED],
    /// Packets that had been taken when good ones were last set off.
    set_off: u64,
}

/// Stale keys that a peer may go on presenting at a time.
const KEYS_REMEMBERED: usize = 8;
/// Packets that make up for one wrong key: few enough for an honest peer, so many that no peer
/// guesses a key of 64 bits.
const PACKETS_PER_GUESS: u64 = 1024;

impl<R: ReceiveEnd> RxLink<R> {
    /// True if there is nothing to take from it, nor to do about it but to return room, which is
    /// done.
    #[inline]
    pub(crate) fn is_silent(&mut self) -> bool {
        if self.lost.is_some() || self.end.is_pending() {
            return false;
        }
        self.end.return_arena_credit();
        true
    }

    /// Accounts for a wrong key; how many count by now.
    #[cold]
    pub(crate) fn guessed(&mut self, key: Key) -> u32 {
        let guesses = &mut self.guesses;
        if guesses.lately.contains(&Some(key)) {
            return guesses.counted;
        }
        guesses.lately.rotate_right(1);
        guesses.lately[0] = Some(key);
        let earned = (self.end.taken() - guesses.set_off) / PACKETS_PER_GUESS;
        guesses.set_off += earned * PACKETS_PER_GUESS;
        let earned = u32::try_from(earned).unwrap_or(u32::MAX);
        guesses.counted = guesses.counted.saturating_sub(earned) + 1;
        guesses.counted
    }
}

/// See the module.
pub(crate) struct RxLinks<R> {
    table: CachedTable<RxLink<R>>,
    /// The tokens of links that the application knows, if only as ended, by their names.
    names: Table<u64>,
    /// The latest loss of a link that has no name: the application may be about to bring it.
    lost_early: Option<(u64, LossCause)>,
}

/// As the table of names has it: zero is no link's generation.
fn name(id: LinkId) -> Name {
    Name {
        index: id.index,
        generation: id.generation.wrapping_sub(1),
    }
}

impl<R: ReceiveEnd> RxLinks<R> {
    pub(crate) fn new() -> Self {
        Self {
            table: CachedTable::new(),
            names: Table::new(LINKS_MAX, u32::MAX - 1),
            lost_early: None,
        }
    }

    /// That place has its turn from now on; it may be vacant.
    #[inline]
    pub(crate) fn give_turn(&mut self, index: usize) {
        self.table.reach(index);
    }

    /// The place that has its turn.
    #[inline]
    pub(crate) fn turn(&self) -> usize {
        self.table.place()
    }

    /// The link that has its turn.
    #[inline(always)]
    pub(crate) fn current(&mut self) -> Option<&mut RxLink<R>> {
        self.table.current_mut()
    }

    /// The same, to be looked at.
    #[inline(always)]
    pub(crate) fn peek_current(&self) -> Option<&RxLink<R>> {
        self.table.current()
    }

    /// Takes in a new link, and names it. The name stays its own until [`RxLinks::release`], so
    /// that nothing that is still to be said of it can be taken for another's.
    pub(crate) fn insert(&mut self, token: u64, end: R) -> LinkId {
        let Some(name) = self.names.insert(token) else {
            unreachable!("hosts allow far fewer links");
        };
        let id = LinkId {
            index: name.index,
            generation: name.generation + 1,
        };
        let set_off = end.taken();
        let lost = self.lost_early.take_if(|(lost, _)| *lost == token);
        let rx_link = RxLink {
            end,
            id,
            lost: lost.map(|(_, cause)| cause),
            guesses: Guesses {
                set_off,
                ..Guesses::default()
            },
        };
        self.table.put(id.index as usize, rx_link);
        id
    }

    /// The application has heard that the link of that name ended: its place may be another's.
    pub(crate) fn release(&mut self, id: LinkId) {
        if !self.contains(id) {
            self.names.remove(name(id));
        }
    }

    /// Number of places; a place may be vacant.
    pub(crate) fn capacity(&self) -> usize {
        self.table.len()
    }

    /// The link of that place.
    #[inline]
    pub(crate) fn at(&mut self, index: usize) -> Option<&mut RxLink<R>> {
        self.table.get_mut(index)
    }

    /// The links.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut RxLink<R>> {
        self.table.iter_mut()
    }

    /// Notes that the peer with that token is lost. Nothing if that is known, or its link has ended
    /// or is still to come.
    pub(crate) fn lose(&mut self, token: u64, cause: LossCause) -> Option<LinkId> {
        let Some((name, _)) = self.names.iter().find(|(_, of)| **of == token) else {
            // A program connects to one peer at a time, so one such loss is all that there can be.
            self.lost_early = Some((token, cause));
            return None;
        };
        let rx_link = self.at(name.index as usize)?;
        if rx_link.lost.is_some() {
            return None;
        }
        rx_link.lost = Some(cause);
        Some(rx_link.id)
    }

    /// Drops the link of that place. Its name, if there was one.
    pub(crate) fn remove_at(&mut self, index: usize) -> Option<LinkId> {
        self.table.take(index).map(|rx_link| rx_link.id)
    }

    /// Whether there is a link of that name.
    pub(crate) fn contains(&self, id: LinkId) -> bool {
        let rx_link = self.table.get(id.index as usize);
        rx_link.is_some_and(|rx_link| rx_link.id == id)
    }

    /// Returns all credit that is held back. True if a peer could not be rung for and this must be
    /// called again soon.
    pub(crate) fn return_credit(&mut self) -> bool {
        let mut owes_rings = false;
        for rx_link in self.table.iter_mut() {
            rx_link.end.return_credit();
            owes_rings |= rx_link.end.owes_ring();
        }
        owes_rings
    }
}

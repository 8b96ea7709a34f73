//! The receiving ends of the links of an interface, by place. The one whose turn it is is at hand.

use hamlyn_engine::memory::LinkId;
use hamlyn_host::LossCause;
use hamlyn_link::ReceiveEnd;

use crate::at_hand::AtHand;

/// A link that packets come from.
pub(crate) struct Inlet<R> {
    pub(crate) end: R,
    pub(crate) token: u64,
    /// The peer is gone; what it sent is still to be taken.
    pub(crate) lost: Option<LossCause>,
    /// Packets with a wrong key that came over it.
    pub(crate) bad_keys: u32,
}

/// See the module.
pub(crate) struct Inlets<R> {
    table: AtHand<Inlet<R>>,
    /// Of the last link of each place.
    generations: Vec<u32>,
}

impl<R: ReceiveEnd> Inlets<R> {
    pub(crate) fn new() -> Self {
        Self {
            table: AtHand::new(),
            generations: Vec::new(),
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
    pub(crate) fn at_hand(&mut self) -> Option<&mut Inlet<R>> {
        self.table.at_hand_mut()
    }

    /// The same, to be looked at.
    #[inline(always)]
    pub(crate) fn look_at_hand(&self) -> Option<&Inlet<R>> {
        self.table.at_hand()
    }

    /// Takes in a new link, and names it.
    pub(crate) fn insert(&mut self, token: u64, end: R) -> LinkId {
        let index = self.table.vacant();
        let inlet = Inlet {
            end,
            token,
            lost: None,
            bad_keys: 0,
        };
        self.table.put(index, inlet);
        self.generations.resize(self.table.len(), 0);
        // Zero is nobody's.
        self.generations[index] = self.generations[index].wrapping_add(1).max(1);
        self.name(index)
    }

    fn name(&self, index: usize) -> LinkId {
        LinkId {
            index: index as u32,
            generation: self.generations[index],
        }
    }

    /// Number of places; a place may be vacant.
    pub(crate) fn places(&self) -> usize {
        self.table.len()
    }

    /// The link of that place.
    #[inline]
    pub(crate) fn at(&mut self, index: usize) -> Option<&mut Inlet<R>> {
        self.table.get_mut(index)
    }

    /// Notes that the peer with that token is lost. Nothing if that is known, or there is none.
    pub(crate) fn lose(&mut self, token: u64, cause: LossCause) -> Option<LinkId> {
        let is_it = |index: &usize| {
            let inlet = self.table.get(*index);
            inlet.is_some_and(|inlet| inlet.token == token)
        };
        let index = (0..self.places()).find(is_it)?;
        let inlet = self.at(index)?;
        if inlet.lost.is_some() {
            return None;
        }
        inlet.lost = Some(cause);
        Some(self.name(index))
    }

    /// Drops the link of that place. Its name, if there was one.
    pub(crate) fn remove_at(&mut self, index: usize) -> Option<LinkId> {
        self.table.take(index)?;
        Some(self.name(index))
    }

    /// Whether there is a link of that name.
    pub(crate) fn contains(&self, id: LinkId) -> bool {
        let index = id.index as usize;
        self.table.get(index).is_some() && self.generations[index] == id.generation
    }

    /// Returns all credit that is held back.
    pub(crate) fn settle(&mut self) {
        for inlet in self.table.iter_mut() {
            inlet.end.settle();
        }
    }
}

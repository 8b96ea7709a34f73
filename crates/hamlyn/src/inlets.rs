//! The receiving ends of the links of an interface, by place.
//!
//! The one whose turn it is is at hand, apart from the others: the next packet is there most likely.

use hamlyn_engine::memory::LinkId;
use hamlyn_host::LossCause;
use hamlyn_link::ReceiveEnd;

/// A link that packets come from.
pub(crate) struct Inlet<R> {
    pub(crate) end: R,
    pub(crate) token: u64,
    /// The peer is gone; what it sent is still to be taken.
    pub(crate) lost: Option<LossCause>,
    /// Packets with a wrong key that came over it.
    pub(crate) bad_keys: u32,
}

struct Place<R> {
    generation: u32,
    /// Nothing if the place is vacant, or has its turn.
    inlet: Option<Box<Inlet<R>>>,
}

/// See the module.
pub(crate) struct Inlets<R> {
    places: Vec<Place<R>>,
    /// The place that has its turn; its inlet is `at_hand`.
    turn: usize,
    at_hand: Option<Box<Inlet<R>>>,
}

impl<R: ReceiveEnd> Inlets<R> {
    pub(crate) fn new() -> Self {
        Self {
            places: Vec::new(),
            turn: 0,
            at_hand: None,
        }
    }

    /// That place has its turn from now on; it may be vacant.
    #[inline]
    pub(crate) fn give_turn(&mut self, index: usize) {
        if index == self.turn {
            return;
        }
        if let Some(place) = self.places.get_mut(self.turn) {
            place.inlet = self.at_hand.take();
        }
        self.turn = index;
        self.at_hand = self.places.get_mut(index).and_then(|place| place.inlet.take());
    }

    /// The place that has its turn.
    #[inline]
    pub(crate) fn turn(&self) -> usize {
        self.turn
    }

    /// The link that has its turn.
    #[inline(always)]
    pub(crate) fn at_hand(&mut self) -> Option<&mut Inlet<R>> {
        self.at_hand.as_deref_mut()
    }

    /// The same, to be looked at.
    #[inline(always)]
    pub(crate) fn look_at_hand(&self) -> Option<&Inlet<R>> {
        self.at_hand.as_deref()
    }

    fn slot(&mut self, index: usize) -> Option<&mut Option<Box<Inlet<R>>>> {
        let place = self.places.get_mut(index)?;
        Some(if index == self.turn {
            &mut self.at_hand
        } else {
            &mut place.inlet
        })
    }

    fn is_vacant(&self, index: usize) -> bool {
        if index == self.turn {
            self.at_hand.is_none()
        } else {
            self.places[index].inlet.is_none()
        }
    }

    /// Takes in a new link, and names it.
    pub(crate) fn insert(&mut self, token: u64, end: R) -> LinkId {
        let index = match (0..self.places.len()).find(|&index| self.is_vacant(index)) {
            Some(index) => index,
            None => {
                self.places.push(Place {
                    generation: 0,
                    inlet: None,
                });
                self.places.len() - 1
            }
        };
        let place = &mut self.places[index];
        // Zero is nobody's.
        place.generation = place.generation.wrapping_add(1).max(1);
        let inlet = Some(Box::new(Inlet {
            end,
            token,
            lost: None,
            bad_keys: 0,
        }));
        if index == self.turn {
            self.at_hand = inlet;
        } else {
            place.inlet = inlet;
        }
        self.name(index)
    }

    fn name(&self, index: usize) -> LinkId {
        LinkId {
            index: index as u32,
            generation: self.places[index].generation,
        }
    }

    /// Number of places; a place may be vacant.
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    /// The link of that place.
    #[inline]
    pub(crate) fn at(&mut self, index: usize) -> Option<&mut Inlet<R>> {
        self.slot(index)?.as_deref_mut()
    }

    /// Notes that the peer with that token is lost. Nothing if that is known, or there is none.
    pub(crate) fn lose(&mut self, token: u64, cause: LossCause) -> Option<LinkId> {
        for index in 0..self.places.len() {
            if let Some(inlet) = self.at(index)
                && inlet.token == token
            {
                if inlet.lost.is_some() {
                    return None;
                }
                inlet.lost = Some(cause);
                return Some(self.name(index));
            }
        }
        None
    }

    /// Drops the link of that place. Its name, if there was one.
    pub(crate) fn remove_at(&mut self, index: usize) -> Option<LinkId> {
        self.slot(index)?.take()?;
        Some(self.name(index))
    }

    /// Whether there is a link of that name.
    pub(crate) fn contains(&self, id: LinkId) -> bool {
        let index = id.index as usize;
        self.places
            .get(index)
            .is_some_and(|place| place.generation == id.generation)
            && !self.is_vacant(index)
    }

    /// Returns all credit that is held back.
    pub(crate) fn settle(&mut self) {
        for index in 0..self.places.len() {
            if let Some(inlet) = self.at(index) {
                inlet.end.settle();
            }
        }
    }
}

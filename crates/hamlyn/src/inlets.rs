//! The receiving ends of the links of an interface, by place.

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
    inlet: Option<Inlet<R>>,
}

/// See the module.
pub(crate) struct Inlets<R> {
    places: Vec<Place<R>>,
}

impl<R: ReceiveEnd> Inlets<R> {
    pub(crate) fn new() -> Self {
        Self { places: Vec::new() }
    }

    /// Takes in a new link, and names it.
    pub(crate) fn insert(&mut self, token: u64, end: R) -> LinkId {
        let index = match self.places.iter().position(|place| place.inlet.is_none()) {
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
        place.inlet = Some(Inlet {
            end,
            token,
            lost: None,
            bad_keys: 0,
        });
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
    #[inline(always)]
    pub(crate) fn at(&mut self, index: usize) -> Option<&mut Inlet<R>> {
        self.places.get_mut(index)?.inlet.as_mut()
    }

    /// Notes that the peer with that token is lost. Nothing if that is known, or there is none.
    pub(crate) fn lose(&mut self, token: u64, cause: LossCause) -> Option<LinkId> {
        let is_it = |place: &Place<R>| matches!(&place.inlet, Some(inlet) if inlet.token == token);
        let index = self.places.iter().position(is_it)?;
        let inlet = self.at(index)?;
        if inlet.lost.is_some() {
            return None;
        }
        inlet.lost = Some(cause);
        Some(self.name(index))
    }

    /// Drops the link of that place. Its name, if there was one.
    pub(crate) fn remove_at(&mut self, index: usize) -> Option<LinkId> {
        self.places.get_mut(index)?.inlet.take()?;
        Some(self.name(index))
    }

    /// Whether there is a link of that name.
    pub(crate) fn contains(&self, id: LinkId) -> bool {
        self.places
            .get(id.index as usize)
            .is_some_and(|place| place.generation == id.generation && place.inlet.is_some())
    }

    /// Returns all credit that is held back.
    pub(crate) fn settle(&mut self) {
        for place in &mut self.places {
            if let Some(inlet) = &mut place.inlet {
                inlet.end.settle();
            }
        }
    }
}

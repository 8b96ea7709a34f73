//! Translations: names that an endpoint has mapped, with their credits (`V 4.2`).

use hamlyn::Target;
use hamlyn::engine::memory::LinkId;

use crate::name::{Name, Tag};
use crate::peer::EndpointId;
use crate::segment::Remote;

/// Translations of an endpoint.
pub(crate) const TRANSLATIONS_MAX: usize = 1 << 20;

/// A name that an endpoint has mapped ([`Endpoint::map`](crate::Endpoint::map)). It may be copied,
/// and is good until it is unmapped or the endpoint is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Translation {
    pub(crate) endpoint: EndpointId,
    pub(crate) number: u32,
    uses: u32,
}

/// The meaning of a translation.
#[derive(Debug)]
pub(crate) struct Mapped {
    /// The segment of the endpoint, once it has said where that is.
    pub(crate) remote: Option<Box<Remote>>,
    /// False once the memory of a segment did not come in time: a call waits for that once.
    pub(crate) may_attach: bool,
    pub(crate) name: Name,
    pub(crate) tag: Tag,
    pub(crate) link: LinkId,
    /// Targets of messages: with the key of the tag, and with that of any tag.
    targets: [Target; 2],
    /// The key that was taken last: that of any tag.
    pub(crate) is_any: bool,
    /// An answer has come, so the endpoint is introduced.
    pub(crate) is_introduced: bool,
    /// Requests that are outstanding, or wait to be returned.
    pub(crate) outstanding: u16,
    /// False if it was unmapped while requests were outstanding.
    is_mapped: bool,
    uses: u32,
}

impl Mapped {
    /// Target of messages with that key.
    #[inline]
    pub(crate) fn target(&self, is_any: bool) -> &Target {
        &self.targets[usize::from(is_any)]
    }
}

/// The translations of an endpoint, by number.
#[derive(Debug, Default)]
pub(crate) struct Translations {
    mapped: Vec<Mapped>,
    free: Vec<u32>,
}

impl Translations {
    /// Maps a name; nothing if there are as many as there may be. Allocates.
    pub(crate) fn map(
        &mut self,
        endpoint: EndpointId,
        name: Name,
        tag: Tag,
        targets: [Target; 2],
    ) -> Option<Translation> {
        let mapped = Mapped {
            remote: None,
            may_attach: true,
            name,
            tag,
            link: targets[0].link(),
            targets,
            is_any: tag == Tag::Any,
            is_introduced: false,
            outstanding: 0,
            is_mapped: true,
            uses: 0,
        };
        let number = match self.free.pop() {
            Some(number) => {
                let place = &mut self.mapped[number as usize];
                let uses = place.uses.wrapping_add(1);
                *place = Mapped { uses, ..mapped };
                number
            }
            None if self.mapped.len() < TRANSLATIONS_MAX => {
                self.mapped.push(mapped);
                (self.mapped.len() - 1) as u32
            }
            None => return None,
        };
        Some(self.handle(endpoint, number))
    }

    fn handle(&self, endpoint: EndpointId, number: u32) -> Translation {
        let uses = self
            .mapped
            .get(number as usize)
            .map_or(0, |mapped| mapped.uses);
        Translation {
            endpoint,
            number,
            uses,
        }
    }

    /// The handle of a translation that is mapped still.
    pub(crate) fn mapped(&self, endpoint: EndpointId, number: u32) -> Option<Translation> {
        let mapped = self.mapped.get(number as usize)?;
        mapped.is_mapped.then(|| self.handle(endpoint, number))
    }

    /// The meaning of a translation, unless it was unmapped.
    #[inline]
    pub(crate) fn get(&mut self, translation: &Translation) -> Option<&mut Mapped> {
        let mapped = self.mapped.get_mut(translation.number as usize)?;
        (mapped.is_mapped && mapped.uses == translation.uses).then_some(mapped)
    }

    /// The same of a request that is outstanding.
    pub(crate) fn numbered(&mut self, number: u32) -> Option<&mut Mapped> {
        self.mapped.get_mut(number as usize)
    }

    /// The same, to look at.
    pub(crate) fn numbered_ref(&self, number: u32) -> Option<&Mapped> {
        self.mapped.get(number as usize)
    }

    /// A request has ended, perhaps with an answer.
    #[inline]
    pub(crate) fn give_back(&mut self, number: u32, is_answered: bool) {
        let Some(mapped) = self.mapped.get_mut(number as usize) else {
            return;
        };
        mapped.is_introduced |= is_answered;
        mapped.outstanding = mapped.outstanding.saturating_sub(1);
        if !mapped.is_mapped && mapped.outstanding == 0 {
            self.free.push(number);
        }
    }

    /// Unmaps a name. What is outstanding ends as it would have. False if it was not mapped.
    pub(crate) fn unmap(&mut self, translation: &Translation) -> bool {
        let number = translation.number;
        let Some(mapped) = self.get(translation) else {
            return false;
        };
        mapped.is_mapped = false;
        mapped.remote = None;
        if mapped.outstanding == 0 {
            self.free.push(number);
        }
        true
    }
}

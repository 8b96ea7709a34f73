//! Messages of the lower layer (`Hamlyn 3.2`): what is sent, and where to.

use std::hint::black_box;

use hamlyn_engine::counting::Share;
use hamlyn_engine::limits::{CELLS_BYTES_MAX, FAST_INDEX, SHORT_BYTES_MAX, SHORT_BYTES_WITH_WORD};
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::{
    Address, Flags, Header, Kind, PortAddress, PortName, Short, short_words,
};
use hamlyn_engine::segment::Segmenter;
use hamlyn_engine::transmit::Message as EngineMessage;

use crate::ticket::{OutsideTicket, Ticket, TicketKind};

/// A ticket that has been made usable here: its link is known.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub(crate) link: LinkId,
    pub(crate) ticket: Ticket,
    /// Where in that interface, as packets say it.
    to: Address,
    /// The kind of its packets.
    kind: Kind,
    /// At how many offsets in the ticket's place an empty short packet may begin: one without
    /// metadata, in fast mode, and one with a word of metadata, to an entry. One of them is zero,
    /// and both for a port.
    fast_starts: u64,
    entry_starts: u64,
}

/// What tells a message that is a short packet from others of its kind.
#[derive(Clone, Copy)]
pub(crate) struct InlineForm {
    word: u64,
    has_metadata: bool,
}

/// A message that is a short packet, and whither it goes: the packet is made where there is room
/// for it.
#[derive(Clone, Copy)]
pub(crate) struct ShortTo<'a> {
    target: &'a Target,
    message: &'a Message<'a>,
    form: InlineForm,
}

impl From<ShortTo<'_>> for Short {
    #[inline(always)]
    fn from(
        ShortTo {
            target,
            message,
            form,
        }: ShortTo<'_>,
    ) -> Self {
        let ticket = &target.ticket;
        Self {
            to: target.to,
            key: ticket.key,
            // It wraps only if the fields were made up here; then the place is wrong, no more.
            offset: ticket.base.wrapping_add(message.offset),
            word: form.word,
            has_metadata: form.has_metadata,
            length_bytes: message.data.len() as u16,
            data: short_words(message.data).unwrap_or_default(),
        }
    }
}

impl Target {
    pub(crate) fn new(link: LinkId, mut ticket: Ticket) -> Self {
        if ticket.kind == TicketKind::Port {
            // It has no entries, whatever was made up.
            ticket.metadata_index = FAST_INDEX;
        }
        let starts = ticket.length_bytes.saturating_add(1);
        let (fast_starts, entry_starts) = match (ticket.kind, ticket.metadata_index) {
            (TicketKind::Port, _) => (0, 0),
            (TicketKind::Slot, FAST_INDEX) => (starts, 0),
            (TicketKind::Slot, _) => (0, starts),
        };
        Self {
            link,
            ticket,
            to: Address::new(ticket.slot, ticket.metadata_index),
            kind: match ticket.kind {
                TicketKind::Slot => Kind::WRITE,
                TicketKind::Port => Kind::MESSAGE,
            },
            fast_starts,
            entry_starts,
        }
    }

    /// The ticket.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// The word of a message that is a short packet of one cell and lies in the ticket's bounds.
    #[inline(always)]
    pub(crate) fn inline_form(&self, message: &Message<'_>) -> Option<InlineForm> {
        self.form(message, |form, length| {
            if length > SHORT_BYTES_WITH_WORD {
                // Most are not: so this is not to be one test with those before, which would take
                // more instructions.
                black_box(());
                return length <= SHORT_BYTES_MAX && !form.has_metadata && form.word == 0;
            }
            true
        })
    }

    /// The message as a short packet of which the data may take several cells, if it is one and
    /// lies in the ticket's bounds: one that [`Target::inline_form`] does not know.
    #[inline(always)]
    pub(crate) fn in_cells(&self, message: &Message<'_>) -> Option<Short> {
        let form = self.form(message, |form, length| {
            // They may lie in the place of a word that is zero.
            let least = match form.has_metadata || form.word != 0 {
                true => SHORT_BYTES_WITH_WORD,
                false => SHORT_BYTES_MAX,
            };
            length > least && length <= CELLS_BYTES_MAX
        })?;
        let first = message.data.get(..SHORT_BYTES_WITH_WORD)?;
        Some(Short {
            to: self.to,
            key: self.ticket.key,
            offset: self.ticket.base.wrapping_add(message.offset),
            word: form.word,
            has_metadata: form.has_metadata,
            length_bytes: message.data.len() as u16,
            data: short_words(first)?,
        })
    }

    /// The word of a message that is one packet, says nothing else, `fits`, and lies in the
    /// ticket's bounds.
    #[inline(always)]
    fn form(
        &self,
        message: &Message<'_>,
        fits: impl FnOnce(&InlineForm, usize) -> bool,
    ) -> Option<InlineForm> {
        let length = message.data.len();
        if message.share.is_some() || message.silent {
            return None;
        }
        let has_metadata = !message.metadata.is_empty();
        let (starts, word) = match has_metadata {
            true => {
                let bytes = message.metadata.try_into().ok()?;
                (self.entry_starts, u64::from_le_bytes(bytes))
            }
            false => (self.fast_starts, message.word),
        };
        let form = InlineForm { word, has_metadata };
        if !fits(&form, length) {
            return None;
        }
        // A ticket's place ends far below the highest number, so this wraps only for an offset that
        // is far outside.
        let end = message.offset.wrapping_add(length as u64);
        (message.offset <= end && end < starts).then_some(form)
    }

    /// The message as a short packet, to be made.
    #[inline(always)]
    pub(crate) fn short<'a>(&'a self, message: &'a Message<'a>, form: InlineForm) -> ShortTo<'a> {
        ShortTo {
            target: self,
            message,
            form,
        }
    }

    /// The same, for another metadata entry.
    pub(crate) fn set_metadata_index(&mut self, metadata_index: u16) {
        let ticket = Ticket {
            metadata_index,
            ..self.ticket
        };
        *self = Self::new(self.link, ticket);
    }

    /// The same of a target that names an entry already, in fewer instructions.
    #[inline]
    pub(crate) fn change_entry(&mut self, index: u16) {
        debug_assert!(self.ticket.metadata_index != FAST_INDEX && index != FAST_INDEX);
        self.ticket.metadata_index = index;
        self.to = Address::new(self.ticket.slot, index);
    }

    /// True if the ticket leads to a port.
    #[inline(always)]
    pub(crate) fn is_port(&self) -> bool {
        self.kind == Kind::MESSAGE
    }

    /// The port, if the ticket leads to one and is good for messages of that length.
    #[inline(always)]
    pub(crate) fn port_for(&self, length_bytes: usize) -> Option<PortAddress> {
        let is_good = self.is_port() && length_bytes as u64 <= self.ticket.length_bytes;
        is_good.then(|| PortAddress {
            port: PortName::from_bits(self.ticket.slot.to_bits()),
            key: self.ticket.key,
            group: self.ticket.base,
        })
    }

    /// The link over which messages go.
    pub fn link(&self) -> LinkId {
        self.link
    }

    /// The same link, for another ticket to the same interface.
    pub fn with_ticket(&self, ticket: Ticket) -> Option<Target> {
        (ticket.destination == self.ticket.destination).then(|| Target::new(self.link, ticket))
    }
}

/// A message for the lower layer.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Where in the ticket's place the data go.
    pub offset: u64,
    /// The data.
    pub data: &'a [u8],
    /// Up to 60 bytes of metadata; none in fast mode.
    pub metadata: &'a [u8],
    /// The word of a fast-mode message, or the handler of one to a port; meaningless otherwise.
    pub word: u64,
    /// How it is counted.
    pub share: Option<Share>,
    /// Lands unannounced.
    pub silent: bool,
}

impl<'a> Message<'a> {
    /// A message of that data at the beginning of the ticket's place.
    pub fn new(data: &'a [u8]) -> Self {
        Self {
            offset: 0,
            data,
            metadata: &[],
            word: 0,
            share: None,
            silent: false,
        }
    }

    /// At that offset in the ticket's place.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.offset = offset;
        self
    }

    /// With metadata.
    #[must_use]
    pub fn metadata(mut self, metadata: &'a [u8]) -> Self {
        self.metadata = metadata;
        self
    }

    /// With the one word of fast mode.
    #[must_use]
    pub fn word(mut self, word: u64) -> Self {
        self.word = word;
        self
    }

    /// Counted as a part of a group.
    #[must_use]
    pub fn share(mut self, share: Share) -> Self {
        self.share = Some(share);
        self
    }

    /// Lands unannounced.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.silent = true;
        self
    }
}

/// The engine's view of a message to that target.
#[inline]
pub(crate) fn compose(
    target: &Target,
    message: &Message<'_>,
    length_bytes: u64,
) -> Result<EngineMessage, OutsideTicket> {
    let offset = target.ticket.place(message.offset, length_bytes)?;
    Ok(compose_at(target, message, offset))
}

/// The same, for a message that was found to lie in the ticket's place, at that offset in the slot.
#[inline(always)]
pub(crate) fn compose_at(target: &Target, message: &Message<'_>, offset: u64) -> EngineMessage {
    compose_as(target.kind, target, message, offset)
}

/// The same, for a message whose kind is known.
#[inline(always)]
pub(crate) fn compose_as(
    kind: Kind,
    target: &Target,
    message: &Message<'_>,
    offset: u64,
) -> EngineMessage {
    let ticket = &target.ticket;
    EngineMessage {
        link: target.link,
        header: Header {
            slot: ticket.slot,
            metadata_index: ticket.metadata_index,
            key: ticket.key,
            offset,
            length_bytes: 0,
            word: message.word,
            metadata_length_bytes: 0,
            flags: if message.silent {
                Flags::SILENT
            } else {
                Flags::NONE
            },
            kind,
        },
        share: message.share.unwrap_or(Share::whole(ticket.counting)),
    }
}

/// How far a message is that [`Interface::send_some`](crate::Interface::send_some) sends: nothing
/// of it at first.
#[derive(Debug, Default)]
pub struct Sending(pub(crate) Option<Segmenter>);

impl Sending {
    /// How many bytes of the message are sent; nothing if none of its packets is, and it may be
    /// given up.
    pub fn sent_bytes(&self) -> Option<u64> {
        let begun = self.0.as_ref().filter(|rest| rest.is_started());
        begun.map(Segmenter::sent_bytes)
    }
}

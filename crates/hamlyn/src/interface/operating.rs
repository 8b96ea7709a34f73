//! An interface begins one-sided operations and waits for their answers, and answers those of others ([`crate::one_sided`]).

use hamlyn_engine::counting::{Counting, Share};
use hamlyn_engine::limits::{DIRECT_BYTES_MAX, FAST_INDEX, PACKET_PAYLOAD_MIN};
use hamlyn_engine::memory::{LinkId, Part, TxLinks as _, Unsent};
use hamlyn_engine::operation::{
    PUT_METADATA_BYTES, READ_REQUEST_BYTES, REQUEST_WORDS, RESPONSES_PER_LINK, ReturnPlace,
};
use hamlyn_engine::packet::{Flags, Header, Kind, SlotName};
use hamlyn_engine::point::Point;
use hamlyn_engine::terminus::{PostError, TerminusId, TerminusOptions};
use hamlyn_engine::transmit::Message as EngineMessage;
use hamlyn_host::Host;

use super::awaiting::{
    begin_atomic, begin_put, begin_read, begin_read_word, finish, finish_all, finish_word,
};
use super::pieces::Pieces;
use super::{Interface, OutboundOf};
use crate::error::OpenError;
use crate::half::Half;
use crate::message::Target;
use crate::one_sided::{
    ANSWERS_MAX, Atomic, Initiator, InitiatorOptions, Operation, OperationError, Operations,
    REQUEST_BYTES_MAX,
};
use crate::outbound::Withheld;
use crate::slot::NewSlot;
use crate::wait::Wait;

/// What an interface knows of its initiators.
#[derive(Debug, Default)]
pub(super) struct Operating {
    /// By the index of their slots.
    pub(super) initiators: Vec<Option<Box<Operations>>>,
    /// Requests under way over each link, by its index: never more than its peer keeps answers for.
    windows: Vec<(Option<LinkId>, u32)>,
    /// Initiators that were dropped, and of which not all is answered as far as was seen.
    pub(super) left: usize,
    /// One that was dropped while its answers were being taken.
    pub(super) left_meanwhile: Option<SlotName>,
    /// By which requests are left to a network processor.
    terminus: Option<TerminusId>,
    /// Whether ends of operations are to be told by counters or notifications.
    pub(super) is_completing: bool,
}

impl Operating {
    fn insert(&mut self, operations: Operations) {
        let index = usize::from(operations.slot.name.index());
        if self.initiators.len() <= index {
            self.initiators.resize_with(index + 1, || None);
        }
        self.initiators[index] = Some(Box::new(operations));
    }

    pub(super) fn of(&mut self, initiator: &Initiator) -> Result<&mut Operations, OperationError> {
        self.initiators
            .get_mut(usize::from(initiator.slot.index()))
            .and_then(Option::as_deref_mut)
            .filter(|operations| operations.slot.name == initiator.slot)
            .ok_or(OperationError::NotOutstanding)
    }

    #[inline]
    pub(super) fn window(&mut self, link: LinkId) -> &mut u32 {
        let index = link.index as usize;
        let is_open = |(of, _): &(Option<LinkId>, u32)| *of == Some(link);
        if !self.windows.get(index).is_some_and(is_open) {
            self.open_window(link);
        }
        &mut self.windows[index].1
    }

    /// A packet of an answer came to an initiator. Whether its request is answered as a whole.
    #[inline]
    pub(super) fn answered(&mut self, operations: &mut Operations, word: u64) -> bool {
        let is_whole = operations.answered(word);
        if is_whole {
            let window = self.window(operations.link);
            *window = window.saturating_sub(1);
        }
        is_whole
    }

    #[cold]
    fn open_window(&mut self, link: LinkId) {
        let index = link.index as usize;
        if self.windows.len() <= index {
            self.windows.resize(index + 1, (None, 0));
        }
        self.windows[index] = (Some(link), 0);
    }
}

/// Reads of so many bytes are one request on every link: what fits the shortest packets.
pub(super) const ONE_REQUEST_BYTES: u64 = (PACKET_PAYLOAD_MIN - PUT_METADATA_BYTES as usize) as u64;

const _: () = assert!(PACKET_PAYLOAD_MIN <= REQUEST_BYTES_MAX);

/// What is asked for.
pub(super) enum Asking<'a> {
    /// To read to that place of the slot for answers.
    Read(u64),
    Put(&'a [u8]),
    Atomic(Atomic),
}

impl<H: Host> Interface<H> {
    /// Opens access to what a ticket names, for reading, putting and changing it. The ticket must be one for fast mode. If this
    /// interface has [imported](Interface::import) the slot, operations are made in its memory, and are complete when they have begun.
    /// Allocates.
    pub fn open_initiator(
        &mut self,
        target: Target,
        options: InitiatorOptions,
    ) -> Result<Initiator, OpenError> {
        self.check()?;
        if target.ticket.metadata_index != FAST_INDEX {
            return Err(OpenError::Setting {
                setting: "the metadata index of an initiator's ticket",
                value: u64::from(target.ticket.metadata_index),
                reason: "operations name no entry: make a fast ticket",
            });
        }
        let landing_bytes = options.landing_bytes;
        if landing_bytes > u64::from(u32::MAX) - Initiator::area_bytes(0) {
            return Err(OpenError::Setting {
                setting: "landing_bytes",
                value: landing_bytes,
                reason: "an initiator has less than 4 GiB: open several",
            });
        }
        self.close_left_initiators();
        if self.operating.terminus.is_none() && matches!(self.outbound, Half::Shared(_)) {
            self.operating.terminus = Some(self.open_terminus(TerminusOptions::default())?);
        }
        let area = self.allocate(Initiator::area_bytes(landing_bytes))?;
        let queue = self.open_queue(ANSWERS_MAX)?;
        // Its key is told to the one target only, whose answers can reach nothing else.
        let slot = match self.open_slot(NewSlot::new(&area).queue(&queue)) {
            Ok(slot) => slot,
            Err(error) => {
                self.close_queue(queue);
                return Err(error);
            }
        };
        let operations = Operations::new(slot, target.link, queue);
        let leaving = self.leaving.clone();
        let direct = self.exporting.import_of(&target).and_then(|import| {
            let ticket = &target.ticket;
            import.part(ticket.base, ticket.length_bytes)
        });
        let initiator = Initiator::new(target, direct, &operations, area, landing_bytes, leaving);
        self.operating.insert(operations);
        Ok(initiator)
    }

    /// Begins to read `length_bytes` bytes at `offset` of the ticket's place, into the initiator's landing memory
    /// ([`Initiator::landed`]). Waits for room as long as `wait` says, and takes in arriving packets meanwhile. Nothing is asked if the
    /// length is zero.
    pub fn begin_read(
        &mut self,
        initiator: &mut Initiator,
        offset: u64,
        landing_offset: u64,
        length_bytes: u64,
        wait: Wait,
    ) -> Result<Operation, OperationError> {
        self.check()?;
        begin_read(self, initiator, offset, landing_offset, length_bytes, wait)
    }

    /// Begins to put `bytes` to `offset` of the ticket's place. When this returns, the bytes were copied; when the operation is
    /// complete, all of them are in their place. They appear there in any order. Waits as [`Interface::begin_read`] does.
    pub fn begin_put(
        &mut self,
        initiator: &mut Initiator,
        offset: u64,
        bytes: &[u8],
        wait: Wait,
    ) -> Result<Operation, OperationError> {
        self.check()?;
        begin_put(self, initiator, offset, bytes, wait)
    }

    /// Begins to change the word at `offset` of the ticket's place, which must lie at a multiple of its width in the owner's area.
    /// [`Interface::finish_word`] tells what the word was before. Waits as [`Interface::begin_read`] does.
    pub fn begin_atomic(
        &mut self,
        initiator: &mut Initiator,
        offset: u64,
        atomic: Atomic,
        wait: Wait,
    ) -> Result<Operation, OperationError> {
        self.check()?;
        begin_atomic(self, initiator, offset, atomic, wait)
    }

    /// Begins to read the eight bytes at `offset` of the ticket's place, for [`Interface::finish_word`].
    pub fn begin_read_word(
        &mut self,
        initiator: &mut Initiator,
        offset: u64,
        wait: Wait,
    ) -> Result<Operation, OperationError> {
        self.check()?;
        begin_read_word(self, initiator, offset, wait)
    }

    /// Sends the next request of an operation; for how many bytes.
    pub(super) fn request(
        &mut self,
        initiator: &Initiator,
        operation: Operation,
        pieces: &Pieces<'_>,
        asked_bytes: u64,
        asking: &Asking<'_>,
    ) -> Result<u64, Unsent> {
        let Target { link, ticket, .. } = &initiator.target;
        let (place, left_bytes) = pieces.at(asked_bytes);
        let (outbound, terminus) = (&mut self.outbound, self.operating.terminus);
        // The link first: a window that is full when it ends stays full for ever.
        let payload_max = outbound.read(|outbound| outbound.tx_links.payload_max_bytes(*link));
        let room = payload_max.ok_or(Unsent::Gone)?.min(REQUEST_BYTES_MAX);
        if *self.operating.window(*link) >= RESPONSES_PER_LINK as u32 {
            return Err(Unsent::Full);
        }
        let operations = self.operating.of(initiator).map_err(|_| Unsent::Gone)?;
        let return_key = operations.slot.key.to_bits();
        let return_slot = u64::from(operations.slot.name.to_bits());
        let header = |kind, bytes, metadata_bytes| Header {
            slot: ticket.slot,
            metadata_index: FAST_INDEX,
            key: ticket.key,
            // It wraps only if the ticket was made up here; then the place is wrong, no more.
            offset: ticket.base.wrapping_add(place),
            length_bytes: bytes,
            word: return_slot << 32 | u64::from(operation.token),
            metadata_length_bytes: metadata_bytes,
            flags: Flags::NONE,
            kind,
        };
        let bytes = left_bytes.min((room - usize::from(PUT_METADATA_BYTES)) as u64);
        // What follows at once may go with this.
        let is_last = asked_bytes + bytes == pieces.length_bytes;
        let way = RequestWay {
            link: *link,
            terminus,
            is_last,
        };
        match asking {
            Asking::Read(to) => {
                let place = (to + asked_bytes) | bytes << 32;
                let data = request_data([return_key, place, 0]);
                let header = header(Kind::READ, READ_REQUEST_BYTES, 0);
                let data = &data[..READ_REQUEST_BYTES as usize];
                way.offer::<H>(outbound, &header, &[], data)?;
            }
            Asking::Put(all) => {
                let piece = &all[asked_bytes as usize..(asked_bytes + bytes) as usize];
                let metadata = return_key.to_le_bytes();
                let header = header(Kind::PUT, bytes as u32, PUT_METADATA_BYTES);
                way.offer::<H>(outbound, &header, &metadata, piece)?;
            }
            Asking::Atomic(atomic) => {
                let data = request_data([return_key, atomic.operand, atomic.expected]);
                let length_bytes = atomic.request_bytes();
                let header = header(atomic.kind(), length_bytes, 0);
                let data = &data[..length_bytes as usize];
                way.offer::<H>(outbound, &header, &[], data)?;
            }
        }
        if let (Half::Shared(_), Some(processor)) = (&self.outbound, &self.processor) {
            processor.exchange.post();
        }
        *self.operating.window(*link) += 1;
        if let Ok(operations) = self.operating.of(initiator) {
            operations.asked(operation, bytes);
        }
        Ok(bytes)
    }

    /// Waits until an operation is complete, and fetches its result. Its place is free then; after [`OperationError::TimedOut`] it is
    /// still outstanding.
    pub fn finish(
        &mut self,
        initiator: &mut Initiator,
        operation: Operation,
        wait: Wait,
    ) -> Result<(), OperationError> {
        self.check()?;
        finish(self, initiator, operation, wait)
    }

    /// As [`Interface::finish`], for an operation with a word: what it was before the change, or what was read.
    pub fn finish_word(
        &mut self,
        initiator: &mut Initiator,
        operation: Operation,
        wait: Wait,
    ) -> Result<u64, OperationError> {
        self.check()?;
        finish_word(self, initiator, operation, wait)
    }

    /// Waits until all operations that are outstanding are complete. Of several that failed, one is told of, also if the wait was over
    /// before others were. Values of words are not kept.
    pub fn finish_all(
        &mut self,
        initiator: &mut Initiator,
        wait: Wait,
    ) -> Result<(), OperationError> {
        self.check()?;
        finish_all(self, initiator, wait)
    }

    /// How many operations of an initiator are outstanding. Does not look at what has come.
    pub fn outstanding(&mut self, initiator: &Initiator) -> usize {
        if self.is_forked() {
            return 0;
        }
        let operations = self.operating.of(initiator);
        operations.map_or(0, |operations| operations.outstanding())
    }
}

/// How a request leaves.
struct RequestWay {
    link: LinkId,
    /// By which it is left to a network processor.
    terminus: Option<TerminusId>,
    /// Whether no other request of its operation follows.
    is_last: bool,
}

impl RequestWay {
    /// Offers a request to its link, or leaves it to the network processor that has the transmit half, if it may wait there.
    fn offer<H: Host>(
        &self,
        outbound: &mut OutboundOf<H>,
        header: &Header,
        metadata: &[u8],
        data: &[u8],
    ) -> Result<(), Unsent> {
        let is_left = data.len() <= DIRECT_BYTES_MAX && outbound.is_shared();
        if is_left && let Some(terminus) = self.terminus {
            H::passes(Point::HandedOver);
            let message = EngineMessage {
                link: self.link,
                header: *header,
                share: Share::whole(Counting::Bits32),
            };
            let posted = outbound.lock(|outbound| {
                let (transmitter, tx_links) = (&mut outbound.transmitter, &mut outbound.tx_links);
                transmitter.post(terminus, &message, metadata, data, &mut Withheld(tx_links))
            });
            return match posted {
                Ok(_) => Ok(()),
                Err(PostError::LinkGone) => Err(Unsent::Gone),
                Err(_) => Err(Unsent::Full),
            };
        }
        outbound.lock(|outbound| {
            let tx_links = &mut outbound.tx_links;
            tx_links.passes(Point::Asked);
            tx_links.offer(self.link, header, metadata, &[Part::Bytes(data)])?;
            tx_links.passes(Point::RequestOut);
            if self.is_last {
                tx_links.hand_over();
            }
            Ok(())
        })
    }
}

/// The words of a request's data as they travel.
fn request_data(words: [u64; REQUEST_WORDS]) -> [u8; 8 * REQUEST_WORDS] {
    let mut data = [0; 8 * REQUEST_WORDS];
    for (into, word) in data.as_chunks_mut().0.iter_mut().zip(words) {
        *into = word.to_le_bytes();
    }
    data
}

/// A value of 32 bits is the lower half of the word that is returned.
#[inline]
pub(super) fn clear_value(initiator: &Initiator, operation: Operation) {
    let place = ReturnPlace::value_offset(operation.token);
    let cleared = initiator.area.store_u64(place, 0);
    debug_assert!(cleared.is_ok(), "values have places in the area");
}

#[cfg(test)]
mod tests;

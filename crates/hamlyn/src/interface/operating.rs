//! An interface begins one-sided operations, and looks for their answers ([`crate::one_sided`]).

use hamlyn_engine::counting::{Counting, Share};
use hamlyn_engine::limits::{DIRECT_BYTES_MAX, FAST_INDEX, PACKET_PAYLOAD_MIN};
use hamlyn_engine::memory::{LinkId, Part, TxLinks as _, Unsent};
use hamlyn_engine::operation::{
    PUT_METADATA_BYTES, READ_REQUEST_BYTES, REQUEST_WORDS, RESPONSES_PER_LINK, ReturnPlace,
};
use hamlyn_engine::packet::{Flags, Header, Kind};
use hamlyn_engine::point::Point;
use hamlyn_engine::terminus::{PostError, TerminusId, TerminusOptions};
use hamlyn_engine::transmit::Message as EngineMessage;
use hamlyn_host::Host;

use super::direct::carry_out;
use super::initiators::{Asking, Begun};
use super::pieces::Pieces;
use super::{Interface, OutboundOf};
use crate::error::OpenError;
use crate::half::Half;
use crate::message::Target;
use crate::one_sided::{
    ANSWERS_MAX, Initiator, InitiatorOptions, Operation, OperationError, Operations,
    REQUEST_BYTES_MAX,
};
use crate::outbound::Withheld;
use crate::slot::NewSlot;

/// Reads of so many bytes are one request on every link: what fits the shortest packets.
pub(super) const ONE_REQUEST_BYTES: u64 = (PACKET_PAYLOAD_MIN - PUT_METADATA_BYTES as usize) as u64;

const _: () = assert!(PACKET_PAYLOAD_MIN <= REQUEST_BYTES_MAX);

impl<H: Host> Interface<H> {
    /// Opens access to what a ticket names, for reading, putting and changing it. The ticket must
    /// be one for fast mode. If this interface has [attached](crate::Session::attach) the place, or
    /// attaches it later, operations are made in its memory, and are complete when they have begun.
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
        let (link, leaving) = (target.link, self.leaving.clone());
        let operations = Operations::new(slot, &target, queue, area.clone());
        let initiator = Initiator::new(target, &operations, area, landing_bytes, leaving);
        self.operating.insert(operations);
        self.operating.attach(link, &self.attached);
        Ok(initiator)
    }

    /// Begins an operation on pieces that lie in the ticket's place. One that can be carried out in
    /// memory is, and one that is a request of the fast path is asked for; others are with
    /// [`Interface::ask_some`].
    #[inline]
    pub(crate) fn begin_operation<'a>(
        &mut self,
        initiator: &Initiator,
        pieces: &Pieces<'_>,
        asking: impl FnOnce(Operation) -> Asking<'a>,
    ) -> Result<Begun<'a>, OperationError> {
        let operations = self.operating.of(initiator)?;
        let operation = operations.begin(pieces.length_bytes)?;
        let asking = asking(operation);
        H::passes(match asking {
            Asking::Read(_) => Point::ReadBegun,
            Asking::Put(_) => Point::PutBegun,
            Asking::Atomic(_) => Point::ChangeBegun,
        });
        if let Some(window) = self.direct(initiator) {
            let done = carry_out(window, &asking, &initiator.area, pieces);
            if let (Ok(value), Asking::Atomic(_)) = (done, &asking) {
                let place = ReturnPlace::value_offset(operation.token);
                let stored = initiator.area.store_u64(place, value);
                debug_assert!(stored.is_ok(), "values have places in the area");
            }
            let operations = self.operating.of(initiator)?;
            operations.done_at_once(operation, done.err());
            return Ok(Begun::Asked(operation));
        }
        if self.ask_at_once(initiator, operation, pieces, &asking) {
            return Ok(Begun::Asked(operation));
        }
        if let Asking::Atomic(_) = asking {
            clear_value(initiator, operation);
        }
        Ok(Begun::ToBeAsked(operation, asking))
    }

    /// Sends requests of an operation, after those for the first `asked_bytes`, as far as there is
    /// room. Nothing if that was not all; answers are taken in then, which make room.
    pub(crate) fn ask_some(
        &mut self,
        initiator: &Initiator,
        operation: Operation,
        pieces: &Pieces<'_>,
        asked_bytes: &mut u64,
        asking: &Asking<'_>,
    ) -> Result<Option<()>, OperationError> {
        while *asked_bytes < pieces.length_bytes {
            match self.request(initiator, operation, pieces, *asked_bytes, asking) {
                Ok(bytes) => *asked_bytes += bytes,
                Err(Unsent::Gone) => {
                    self.end_broken();
                    return Err(self.lost(&initiator.target).into());
                }
                Err(Unsent::Full) if self.press(initiator.target.link) => {}
                Err(Unsent::Full) => {
                    let link = initiator.target.link;
                    self.outbound.lock(|outbound| outbound.tx_links.hand_over());
                    let under_way = *self.operating.window(link);
                    self.take_answers_of_link(link);
                    if *self.operating.window(link) < under_way {
                        // There is room now: who waits for it does not sleep.
                        self.other_activity += 1;
                    }
                    return Ok(None);
                }
            }
        }
        Ok(Some(()))
    }

    /// The operation, if all of it was asked for. Otherwise it is given up.
    pub(crate) fn end_beginning(
        &mut self,
        initiator: &Initiator,
        operation: Operation,
        asked: Result<Option<()>, OperationError>,
    ) -> Result<Operation, OperationError> {
        let operations = self.operating.of(initiator)?;
        match asked {
            Ok(Some(())) => operations.all_asked(operation),
            _ => operations.give_up(operation),
        }
        asked?.map(|()| operation).ok_or(OperationError::WouldBlock)
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

    /// Fetches the result of an operation, if it is complete. Its place is free then. Takes in what
    /// has come.
    pub(crate) fn try_finish(
        &mut self,
        initiator: &Initiator,
        operation: Operation,
    ) -> Result<Option<()>, OperationError> {
        if self.finish_at_hand(initiator, operation) {
            return Ok(Some(()));
        }
        let link = initiator.target.link;
        // Asked before the look, so that what came before the end of the link is seen.
        let is_gone = self.is_drained(link) && self.link_end(link).is_some();
        self.take_answers(initiator.slot, Some(operation));
        let operations = self.operating.of(initiator)?;
        if let Some(result) = operations.fetch(operation) {
            return result.map(Some);
        }
        if is_gone {
            operations.forget(operation);
            return Err(self.lost(&initiator.target).into());
        }
        Ok(None)
    }

    /// The result of an operation is not wanted any more.
    pub(crate) fn give_up(
        &mut self,
        initiator: &Initiator,
        operation: Operation,
    ) -> Result<(), OperationError> {
        self.operating.of(initiator)?.give_up(operation);
        Ok(())
    }

    /// An operation of an initiator that is outstanding.
    pub(crate) fn any_outstanding(
        &mut self,
        initiator: &Initiator,
    ) -> Result<Option<Operation>, OperationError> {
        Ok(self.operating.of(initiator)?.any())
    }

    /// Whether something of operations is under way whose results nobody fetches: those that were
    /// given to a counter, or begun in part only. What they read may still land, so its place must
    /// not be used again before. Does not block.
    pub fn awaits_given_up(&mut self, initiator: &Initiator) -> bool {
        if self.is_forked() {
            return false;
        }
        let has_given_up = |interface: &mut Self| {
            let operations = interface.operating.of(initiator);
            operations.is_ok_and(|operations| operations.has_given_up())
        };
        if !has_given_up(self) {
            return false;
        }
        let link = initiator.target.link;
        // Asked before the look, so that what came before the end of the link is seen.
        let is_gone = self.is_drained(link) && self.link_end(link).is_some();
        self.take_answers(initiator.slot, None);
        self.wake_sleepers_if_active();
        !is_gone && has_given_up(self)
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
    /// Offers a request to its link, or leaves it to the network processor that has the transmit
    /// half, if it may wait there.
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

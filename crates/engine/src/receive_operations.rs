//! The receiving half checks and carries out one-sided operations (decision 0037), apart from the
//! way of messages.
//!
//! The order of the checks is that of messages: interface, slot, key, right, the request itself,
//! place.

use crate::key::Key;
use crate::limits::{FAST_INDEX, SHORT_BYTES_WITH_WORD, SHORT_WORDS, USER_METADATA_BYTES};
use crate::memory::{Area, Denied, LinkId, Payload, TxLinks};
use crate::operation::{
    AnswerWord, Atomic, PUT_METADATA_BYTES, Request, ReturnPlace, ShortRequest, leading_words,
};
use crate::packet::{Address, Flags, Header, Kind, Short, SlotName};
use crate::point::Point;
use crate::receive::Receiver;
use crate::receive_observer::{ReceiveEvent, ReceiveObserver};
use crate::refusal::Refusal;
use crate::responder::{Answer, Response};
use crate::slot::{Mode, Rights, Slot};

impl<A: Area, O: ReceiveObserver<A>> Receiver<A, O> {
    /// A request came. It is answered in any case in which it says where to, and there is room for
    /// the answer.
    #[cold]
    #[inline(never)]
    pub(crate) fn receive_request<P: Payload<A>>(
        &mut self,
        from: LinkId,
        header: &Header,
        payload: &P,
    ) -> Result<(), Refusal> {
        if !self.responder.has_room(from) {
            return Err(Refusal::TooManyRequests);
        }
        let words = payload.words();
        let (back, request) = Request::decode(header, words, metadata_word(header, payload));
        let done = request.and_then(|request| self.carry_out(header, payload, request));
        let response = done.unwrap_or_else(|reason| {
            Response::Refused(reason, Request::answered_bytes(header, words))
        });
        if let Some(to) = back {
            self.responder.push(from, Answer { to, response });
        }
        done.map(drop)
    }

    /// The fast path for a request that one short packet answers: that packet, if the request was
    /// carried out. Nothing for any other request, for one that is refused, and while answers wait:
    /// then the call has had no effect, and [`Receiver::receive`] must decide.
    #[inline(always)]
    pub fn serve_short(&mut self, request: &ShortRequest) -> Option<Short> {
        // An observer is shown what comes as a packet.
        if O::LISTENS || self.responder.is_waiting() || !self.slots.is_receive_enabled() {
            return None;
        }
        if !request.to.is_fast() {
            return None;
        }
        let slot = self.slots.named(request.to.slot()).ok()?;
        if slot.revoked || slot.mode != Mode::Normal || slot.key != request.key {
            return None;
        }
        let [return_key, argument] = request.data;
        let mut data = [0; SHORT_WORDS];
        let (length_bytes, return_offset) = if request.kind == Kind::READ {
            let length_bytes = argument >> 32;
            if length_bytes > SHORT_BYTES_WITH_WORD as u64 || !slot.rights.grant(Rights::READ) {
                return None;
            }
            let at = place(slot, request.offset, length_bytes).ok()?;
            let mut bytes = [0; SHORT_BYTES_WITH_WORD];
            if length_bytes == size_of::<u64>() as u64 {
                let word = bytes.first_chunk_mut::<{ size_of::<u64>() }>()?;
                slot.area.read(at, word).ok()?;
            } else {
                slot.area
                    .read(at, &mut bytes[..length_bytes as usize])
                    .ok()?;
            }
            for (word, bytes) in data.iter_mut().zip(bytes.as_chunks().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            (length_bytes, argument & u64::from(u32::MAX))
        } else {
            let atomic = Atomic::of_kind(request.kind, argument)?;
            let width_bytes = atomic.width.bytes();
            if !slot.rights.grant(Rights::ATOMIC) {
                return None;
            }
            let at = place(slot, request.offset, width_bytes).ok()?;
            if at % width_bytes != 0 {
                return None;
            }
            data[0] = slot.area.change(at, &atomic).ok()?;
            (width_bytes, ReturnPlace::value_offset(request.word as u32))
        };
        let word = AnswerWord {
            token: request.word as u32,
            bytes: length_bytes as u32,
            is_last: true,
            refused: None,
        };
        Some(Short {
            to: Address::new(SlotName::from_bits((request.word >> 32) as u32), FAST_INDEX),
            key: Key::from_bits(return_key),
            offset: return_offset,
            word: word.to_bits(),
            has_metadata: false,
            length_bytes: length_bytes as u16,
            data,
        })
    }

    /// What [`Receiver::serve_short`] made found no room on that link: it waits.
    #[cold]
    pub fn answer_later(&mut self, to: LinkId, answer: &Short) {
        let [first, second, third, _] = answer.data;
        let place = ReturnPlace {
            slot: answer.to.slot(),
            key: answer.key,
            offset: answer.offset,
            token: AnswerWord::from_bits(answer.word).token,
        };
        let length_bytes = u32::from(answer.length_bytes);
        let response = Response::Fetched([first, second, third], length_bytes);
        self.responder.push(
            to,
            Answer {
                to: place,
                response,
            },
        );
    }

    fn carry_out<P: Payload<A>>(
        &self,
        header: &Header,
        payload: &P,
        request: Request,
    ) -> Result<Response, Refusal> {
        let slot = self.slots.named(header.slot)?;
        if slot.revoked {
            return Err(Refusal::SlotRevoked);
        }
        // Its entries guard deposits of whole messages, which operations are not.
        if slot.mode != Mode::Normal {
            return Err(Refusal::FastToParanoid);
        }
        if slot.key != header.key {
            return Err(Refusal::BadKey);
        }
        if header.metadata_index != FAST_INDEX {
            return Err(Refusal::NoMetadataEntry);
        }
        if header.flags != Flags::NONE {
            return Err(Refusal::UnknownFlag);
        }
        let (right, length_bytes) = match request {
            Request::Read(length_bytes) => (Rights::READ, u64::from(length_bytes)),
            Request::Put => (Rights::WRITE, u64::from(header.length_bytes)),
            Request::Atomic(atomic) => (Rights::ATOMIC, atomic.width.bytes()),
        };
        if !slot.rights.grant(right) {
            return Err(Refusal::NoRight);
        }
        let at = place(slot, header.offset, length_bytes)?;
        Ok(match request {
            Request::Read(length_bytes) => {
                payload.passes(Point::ReadServed(length_bytes));
                Response::Bytes {
                    slot: header.slot,
                    offset: header.offset,
                    length_bytes,
                }
            }
            Request::Put => {
                payload.deposit(&slot.area, at).map_err(denied)?;
                payload.passes(Point::PutServed(header.length_bytes));
                Response::Put(header.length_bytes)
            }
            Request::Atomic(atomic) => {
                if at % atomic.width.bytes() != 0 {
                    return Err(Refusal::Misaligned);
                }
                let before = slot.area.change(at, &atomic).map_err(denied)?;
                payload.passes(Point::ChangeServed);
                Response::Fetched([before, 0, 0], atomic.width.bytes() as u32)
            }
        })
    }

    /// Whether answers to one-sided operations wait to be sent.
    #[inline]
    pub fn owes_answers(&self) -> bool {
        self.responder.is_waiting()
    }

    /// Sends answers to one-sided operations, as far as there is room, a turn for each link. How
    /// many packets went.
    pub fn answer<L: TxLinks<A>>(&mut self, tx_links: &mut L) -> usize {
        let (slots, is_open) = (&self.slots, self.slots.is_receive_enabled());
        let bytes_of = |name: SlotName, offset: u64, length_bytes: u32| {
            let slot = slots.named(name)?;
            if slot.revoked || !is_open {
                return Err(Refusal::SlotRevoked);
            }
            Ok((&slot.area, place(slot, offset, u64::from(length_bytes))?))
        };
        let observer = &mut self.observer;
        let answered = |link| {
            if O::LISTENS {
                observer.observe(ReceiveEvent::Answered(link));
            }
        };
        self.responder.pump(tx_links, bytes_of, answered)
    }

    /// Reserves memory for all that packets of that link may leave to be done later: answers, and
    /// messages that wait at ports which are open. Messages of ports up to the longest packet are
    /// handed over without allocation then. So reception allocates nothing for that link, as a
    /// program needs that receives in a signal handler.
    pub fn reserve_for(&mut self, link: LinkId) {
        self.responder.reserve(link);
        self.ports.reserve_for(link);
    }

    /// A link is gone: what it was to be answered is dropped.
    pub fn link_ended(&mut self, link: LinkId) {
        self.responder.link_ended(link);
        self.tell(|| ReceiveEvent::LinkEnded(link));
    }
}

/// Where in the area a range of the slot lies.
fn place<A>(slot: &Slot<A>, offset: u64, length_bytes: u64) -> Result<u64, Refusal> {
    let end = offset.checked_add(length_bytes);
    match end {
        // The slot fits its area.
        Some(end) if end <= slot.length_bytes => Ok(slot.base + offset),
        _ => Err(Refusal::OutOfBounds),
    }
}

fn denied(denied: Denied) -> Refusal {
    match denied {
        Denied::InUse => Refusal::PlaceInUse,
        Denied::OutOfArea => Refusal::OutOfBounds,
    }
}

/// The first word of a packet's metadata, if that is all there is.
fn metadata_word<A: Area, P: Payload<A>>(header: &Header, payload: &P) -> u64 {
    if header.metadata_length_bytes != PUT_METADATA_BYTES {
        return 0;
    }
    payload.metadata_word().unwrap_or_else(|| {
        let mut metadata = [0; USER_METADATA_BYTES];
        payload.metadata(&mut metadata, usize::from(header.metadata_length_bytes));
        leading_words(&metadata)[0]
    })
}

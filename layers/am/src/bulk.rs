//! Transfers go on, and gets and questions of peers are served ([`crate::transfer`]).
//!
//! The sender of a bulk message asks for the receiver's segment, once for each translation, and for
//! each handler that it has not named before: by a request, whose tag and place are checked like any
//! other's. It writes the data into the slot, and then sends the message that runs the handler, with
//! a proof of which slot it wrote to. Where packets keep their order that message follows at once;
//! otherwise when a fence has told that the data were taken. The receiver runs the handler if that
//! slot is open still: then nothing of the data was refused. If it is not, the sender asks once more.
//!
//! A get is a request with a ticket of a slot over the place in the requester's own segment. Its
//! receiver writes the data there, and answers.

use std::ops::Range;

use hamlyn::{Host, NewSlot, SendError, Session, Wait};

use crate::call::Call;
use crate::error::{Blocked, Error, Reason};
use crate::peer::EndpointId;
use crate::poll::NodeState;
use crate::segment::Segment;
use crate::send::{Attempt, Request};
use crate::state::State;
use crate::transfer::{Stage, Transfer};
use crate::translation::Translation;
use crate::wire::{Category, Place};
use crate::writing::{Progress, ROOM, Source};

/// Data of a bulk message that go with it. In a message they are copied once more than by a
/// transfer, which takes messages of its own: whatever mediums may have, longer data are written
/// into the segment.
const IN_MESSAGE_BYTES_MAX: usize = 8_000;

/// The obstacle of a transfer, beside answers that it awaits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Halt {
    Blocked(Blocked),
    /// A fence, which tells that its data were taken.
    Fence,
}

/// A bulk message of a call.
#[derive(Clone, Copy)]
pub(crate) struct Bulk<'a> {
    pub(crate) handler: u8,
    pub(crate) offset: u64,
    pub(crate) data: &'a [u8],
    pub(crate) arguments: &'a [u32],
}

impl NodeState {
    /// Sends data to a segment: in one message, or as a transfer. A call that waits lends them,
    /// under the number in `lent`, as soon as it is known where they go.
    pub(crate) fn transfer<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        over: &Translation,
        bulk: Bulk<'_>,
        wait: Wait,
        lent: &mut Option<u32>,
    ) -> Attempt {
        if lent.is_some() {
            return Ok(self.write_lent(session, bulk.data, lent));
        }
        let place = Place {
            offset: bulk.offset,
            length_bytes: bulk.data.len() as u64,
        };
        let medium_bytes_max = self.state.medium_bytes_max(session, over)?;
        if bulk.data.len() <= medium_bytes_max.min(IN_MESSAGE_BYTES_MAX) {
            let request = Request {
                category: Category::Bulk,
                place,
                data: bulk.data,
                ..Request::short(bulk.handler, bulk.arguments)
            };
            return self.attempt(session, over, &request);
        }
        if let Some(blocked) = self.blocks_transfer(session, over)? {
            return Ok(Err(blocked));
        }
        let mut transfer = Transfer::new(*over, false, bulk.handler, bulk.arguments, place);
        let mapped = self.state.endpoints.mapped(over)?;
        match &mut mapped.remote {
            Some(remote) if wait != Wait::Poll && remote.takes(place, bulk.handler) => {
                if mapped.may_attach {
                    mapped.may_attach = remote.attach(session, &self.state.traffic.dropped);
                }
                transfer.is_lent = true;
            }
            _ => transfer.data = Some(bulk.data.to_vec()),
        }
        let is_lent = transfer.is_lent;
        let number = self.state.transfers.insert(transfer);
        if is_lent {
            *lent = Some(number);
            return Ok(self.write_lent(session, bulk.data, lent));
        }
        self.state.advance_transfers(session);
        Ok(Ok(()))
    }

    /// Goes on with a transfer whose data a call lends. It is accepted when the data are not needed
    /// any more, or copied.
    fn write_lent<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        data: &[u8],
        lent: &mut Option<u32>,
    ) -> Result<(), Blocked> {
        let Some(number) = *lent else {
            return Ok(());
        };
        let advanced = self.state.advance(session, number, Some(data));
        let Some(transfer) = self.state.transfers.get(number) else {
            *lent = None;
            return Ok(());
        };
        match (&transfer.stage, advanced) {
            (Stage::Write { .. }, Some(Halt::Blocked(blocked))) => return Err(blocked),
            // All data are sent.
            (Stage::Write { .. } | Stage::Last, _) => {}
            // It begins anew, or comes back.
            _ => transfer.data = Some(data.to_vec()),
        }
        transfer.is_lent = false;
        *lent = None;
        self.state.advance_transfers(session);
        Ok(())
    }

    /// Asks for data of a segment.
    pub(crate) fn get<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        over: &Translation,
        handler: u8,
        from: &Range<u64>,
        to: u64,
        arguments: &[u32],
    ) -> Attempt {
        self.state.endpoints.mapped(over)?;
        let place = Place {
            offset: from.start,
            length_bytes: from.end.saturating_sub(from.start),
        };
        let endpoint = self.state.endpoints.get(over.endpoint);
        let endpoint = endpoint.ok_or(Error::Stale)?;
        let own = Place {
            offset: to,
            ..place
        };
        let segment = endpoint.receiving.segment.as_ref();
        let segment_bytes = segment.map_or(0, |segment| segment.length_bytes);
        let Ok(segment) = endpoint.receiving.segment_at(own) else {
            return Err(Error::OutsideSegment {
                offset: to,
                length_bytes: place.length_bytes,
                segment_bytes,
            });
        };
        let number = segment.number;
        let new = NewSlot::new(&segment.area).range(to..to + place.length_bytes);
        if let Some(blocked) = self.blocks_transfer(session, over)? {
            return Ok(Err(blocked));
        }
        let mut transfer = Transfer::new(*over, true, handler, arguments, place);
        (transfer.to, transfer.segment) = (to, number);
        if place.length_bytes > 0 {
            transfer.slot = Some(session.open_slot(new)?);
        }
        self.state.transfers.insert(transfer);
        self.state.advance_transfers(session);
        Ok(Ok(()))
    }

    /// Anything that stands in the way of another transfer.
    fn blocks_transfer<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        over: &Translation,
    ) -> Result<Option<Blocked>, Error> {
        if self.state.transfers.is_full() {
            return Ok(Some(Blocked::Transfer));
        }
        let is_resident = |node: &mut Self| {
            let endpoint = node.state.endpoints.get(over.endpoint);
            endpoint.is_none_or(|endpoint| endpoint.is_resident)
        };
        if !is_resident(self) {
            self.fault_by_call(session, over.endpoint)?;
        }
        Ok((!is_resident(self)).then_some(Blocked::Frame))
    }

    /// Gives back the data of a call that waits no longer.
    pub(crate) fn end_lending(&mut self, number: u32) {
        let transfers = &mut self.state.transfers;
        if transfers.get(number).is_some_and(|it| it.is_lent) {
            transfers.remove(number);
        }
    }

    /// Runs the handlers of gets of that bundle whose data have come; how many.
    pub(crate) fn end_gets(&mut self, bundle: u32) -> usize {
        let mut count = 0;
        for number in self.state.transfers.due() {
            let State {
                endpoints,
                peers,
                traffic,
                transfers,
                ..
            } = &mut self.state;
            let Some(Transfer {
                is_get: true,
                stage: Stage::Over(None),
                translation,
                ..
            }) = transfers.get(number)
            else {
                continue;
            };
            let over = *translation;
            let Some(endpoint) = endpoints.get(over.endpoint) else {
                transfers.remove(number);
                continue;
            };
            if endpoint.bundle != bundle {
                continue;
            }
            let link = endpoint.translations.numbered(over.number);
            let link = link.map(|mapped| mapped.link);
            let Some(transfer) = transfers.remove(number) else {
                continue;
            };
            let Some(peer) = link.and_then(|link| peers.get(link)) else {
                // The bytes are here, and nobody is whose they were.
                let returned = transfer.returned(Reason::Unreachable);
                self.state.return_to_sender(returned);
                continue;
            };
            let segment = endpoint.receiving.segment.as_ref();
            if segment.is_none_or(|segment| segment.number != transfer.segment) {
                // The bytes were there, and their place is gone.
                let returned = transfer.returned(Reason::BadOffset);
                self.state.return_to_sender(returned);
                continue;
            }
            let mapped = endpoint.translations.get(&over);
            let mut call = Call {
                link: peer.link,
                source: u16::MAX,
                known: &peer.known,
                replier: mapped.map(|mapped| &mapped.name),
                answer: None,
            };
            let place = Place {
                offset: transfer.to,
                ..transfer.place
            };
            let (handler, arguments) = (transfer.handler, transfer.arguments.as_slice());
            count += 1;
            let receiving = &mut endpoint.receiving;
            match receiving.run_bulk(handler, &mut call, place, arguments) {
                Ok(Ok(())) => {}
                Ok(Err(failed)) => traffic.note_failure(failed),
                // It was cleared meanwhile.
                Err(_) => {
                    let returned = transfer.returned(Reason::BadHandler);
                    self.state.return_to_sender(returned);
                }
            }
        }
        count
    }

    /// Sets the segment of an endpoint. Whoever has a ticket of the one before has none from now on.
    pub(crate) fn set_segment<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        id: EndpointId,
        segment: Option<(hamlyn::Area, u64)>,
    ) -> Result<(), Error> {
        self.state.shut_segment(session, id)?;
        self.state.end_own_slots(session, id);
        self.state.segments += 1;
        let number = self.state.segments;
        let endpoint = self.state.endpoints.get(id).ok_or(Error::Stale)?;
        endpoint.receiving.segment =
            segment.map(|(area, length)| Segment::new(area, length, number));
        Ok(())
    }
}

impl State {
    /// Closes the slot of an endpoint's segment, until somebody asks for it.
    pub(crate) fn shut_segment<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        id: EndpointId,
    ) -> Result<(), Error> {
        self.endpoints.get(id).ok_or(Error::Stale)?;
        let segment = self.segment_of(id);
        segment.map_or(Ok(()), |segment| segment.close(session))
    }

    /// The segment of an endpoint.
    pub(crate) fn segment_of(&mut self, id: EndpointId) -> Option<&mut Segment> {
        self.endpoints.get(id)?.receiving.segment.as_mut()
    }

    /// Closes the slots of gets of that endpoint, whose data have no place any more.
    pub(crate) fn end_own_slots<H: Host>(&mut self, session: &mut Session<'_, H>, id: EndpointId) {
        for transfer in self.transfers.iter_mut() {
            if transfer.translation.endpoint == id
                && transfer.is_get
                && let Some(slot) = transfer.slot.take()
            {
                close(session, slot);
                if let Stage::Ask | Stage::Over(None) = transfer.stage {
                    transfer.end(Some(Reason::BadOffset));
                }
            }
        }
    }

    /// Sends what can be sent of all transfers, and ends those that are over. An error of one is
    /// no caller's: it comes back with that.
    pub(crate) fn advance_transfers<H: Host>(&mut self, session: &mut Session<'_, H>) {
        for number in self.transfers.due() {
            let Some(transfer) = self.transfers.get(number) else {
                continue;
            };
            if !transfer.is_lent
                && self.advance(session, number, None) == Some(Halt::Blocked(Blocked::Room))
            {
                session.look_within(ROOM);
            }
            let Some(transfer) = self.transfers.get(number) else {
                continue;
            };
            if transfer.rests() {
                self.transfers.let_rest(number);
                continue;
            }
            let Stage::Over(failed) = transfer.stage else {
                continue;
            };
            if transfer.is_lent {
                continue;
            }
            if let Some(slot) = transfer.slot.take() {
                close(session, slot);
            }
            if failed.is_none() && transfer.is_get {
                // Its handler runs in the poll of its bundle.
                continue;
            }
            let transfer = self.transfers.remove(number);
            if let (Some(transfer), Some(reason)) = (transfer, failed) {
                self.return_to_sender(transfer.returned(reason));
            }
        }
    }

    /// Goes on with a transfer as far as it can; what stands in its way, if it is not an answer.
    fn advance<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        number: u32,
        lent: Option<&[u8]>,
    ) -> Option<Halt> {
        loop {
            let transfer = self.transfers.get(number)?;
            let over = transfer.translation;
            let halt = match transfer.stage {
                Stage::Ask => self.ask(session, number, &over),
                Stage::Write { proof } => self.write(session, number, &over, proof, lent),
                Stage::Asked | Stage::Last | Stage::Over(_) => return None,
            };
            if halt.is_some() {
                return halt;
            }
        }
    }

    /// Begins to write, or asks where to; or asks for data.
    fn ask<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        number: u32,
        over: &Translation,
    ) -> Option<Halt> {
        let transfer = self.transfers.get(number)?;
        if !transfer.is_get && !transfer.is_repeated() {
            let mapped = self.endpoints.mapped(over);
            let remote = mapped.ok().and_then(|mapped| mapped.remote.as_ref());
            if let Some(remote) = remote.filter(|it| it.takes(transfer.place, transfer.handler)) {
                transfer.write(&remote.target, remote.proof());
                return None;
            }
        }
        let (handler, place) = (transfer.handler, transfer.place);
        let ticket = match &transfer.slot {
            Some(slot) => match slot.fast_ticket(0, place.length_bytes) {
                Ok(ticket) => ticket.to_bytes().to_vec(),
                Err(_) => {
                    transfer.end(Some(Reason::BadOffset));
                    return None;
                }
            },
            None => Vec::new(),
        };
        let request = Request {
            category: match transfer.is_get {
                true => Category::Get,
                false => Category::Ask,
            },
            place,
            data: &ticket,
            transfer: Some(number),
            ..Request::short(handler, &[])
        };
        self.send_for(session, number, over, &request, Stage::Asked)
    }

    /// Writes data, and sends the message that runs the handler when they are written.
    fn write<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        number: u32,
        over: &Translation,
        proof: u64,
        lent: Option<&[u8]>,
    ) -> Option<Halt> {
        let transfer = self.transfers.get(number)?;
        let Some(writing) = &mut transfer.writing else {
            transfer.end(Some(Reason::BadEndpoint));
            return None;
        };
        let link = writing.link();
        // One that is lost is not made anew: nothing would tell of its end again.
        let Some(peer) = self.peers.get(link) else {
            transfer.end(Some(Reason::Unreachable));
            return None;
        };
        // Nothing is read of data that were sent and are not here any more.
        let data = lent.or(transfer.data.as_deref()).unwrap_or(&[]);
        let advanced = writing.advance(session, &mut peer.delivery, &mut Source::Bytes(data));
        self.traffic.fence_if_wanted(peer);
        match advanced {
            Ok(Progress::Done) => {}
            Ok(Progress::Waits) => return Some(Halt::Blocked(Blocked::Room)),
            Ok(Progress::Sent) => return Some(Halt::Fence),
            Ok(Progress::Gone) => {
                transfer.end(Some(Reason::Unreachable));
                return None;
            }
            Err(error) => {
                transfer.end(Some(match error {
                    SendError::PeerLost(_) => Reason::Unreachable,
                    _ => Reason::BadLength,
                }));
                return None;
            }
        }
        let (arguments, place, handler) = (transfer.arguments, transfer.place, transfer.handler);
        let request = Request {
            category: Category::Stored,
            place,
            data: &proof.to_le_bytes(),
            transfer: Some(number),
            ..Request::short(handler, arguments.as_slice())
        };
        self.send_for(session, number, over, &request, Stage::Last)
    }

    /// Sends a request of a transfer, which then is at that stage.
    fn send_for<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        number: u32,
        over: &Translation,
        request: &Request<'_>,
        stage: Stage,
    ) -> Option<Halt> {
        let sent = self.try_request(session, over, request);
        let transfer = self.transfers.get(number)?;
        match sent {
            Ok(Ok(())) => {
                transfer.in_flight = true;
                transfer.stage = stage;
                None
            }
            Ok(Err(blocked)) => {
                if blocked == Blocked::Frame {
                    self.wants_frame.push(over.endpoint);
                }
                Some(Halt::Blocked(blocked))
            }
            Err(Error::PeerLost(_) | Error::NotMapped { .. }) => {
                transfer.end(Some(Reason::Unreachable));
                None
            }
            Err(_) => {
                transfer.end(Some(Reason::BadLength));
                None
            }
        }
    }
}

fn close<H: Host>(session: &mut Session<'_, H>, slot: hamlyn::Slot) {
    // One that is not open any more needs no closing.
    let _ = session.close_slot(slot);
}

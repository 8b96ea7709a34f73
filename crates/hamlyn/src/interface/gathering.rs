//! An interface sends messages of any length that wait in it: gathered from send-buffer areas
//! (`Hamlyn 2.3`), given to it, or copied where they must wait.

use hamlyn_engine::limits::{DIRECT_BYTES_MAX, USER_METADATA_BYTES};
use hamlyn_engine::memory::TxLinks;
use hamlyn_engine::point::Point;
use hamlyn_engine::send_observer::SendObserver;
use hamlyn_engine::terminus::{GatherPiece, PostError, SendHandle, TerminusId};
use hamlyn_engine::transmit::{Message as EngineMessage, Posted, Transmitter};
use hamlyn_host::Host;
use hamlyn_ring::area::Area;
use hamlyn_ring::forks::Forked;

use super::regions::Mapped;
use super::sharing::Placing;
use super::{Interface, TransmitterOf};
use crate::error::{NotSent, SendError};
use crate::half::Half;
use crate::message::{Message, Target, compose};
use crate::outbound::{Outbound, Withheld};

/// The data of a message that may wait, whatever their length.
enum Load<'a> {
    Pieces(&'a [GatherPiece]),
    Copied(&'a [u8]),
    Owned(&'a mut Vec<u8>),
}

impl Load<'_> {
    fn length_bytes(&self) -> Result<u64, PostError> {
        match self {
            Self::Pieces(pieces) => {
                let mut lengths = pieces.iter().map(|piece| piece.length_bytes);
                let length_bytes = lengths.try_fold(0, u64::checked_add);
                length_bytes.ok_or(PostError::TooLong)
            }
            Self::Copied(data) => Ok(data.len() as u64),
            Self::Owned(data) => Ok(data.len() as u64),
        }
    }

    fn post<S: SendObserver<Area>, O: TxLinks<Area>>(
        &mut self,
        transmitter: &mut Transmitter<Area, S>,
        terminus: TerminusId,
        posting: &EngineMessage,
        metadata: &[u8],
        tx_links: &mut O,
    ) -> Result<Posted, PostError> {
        match self {
            Self::Pieces(pieces) => {
                transmitter.post_gather(terminus, posting, metadata, pieces, tx_links)
            }
            Self::Copied(data) => {
                transmitter.post_copied(terminus, posting, metadata, data, tx_links)
            }
            Self::Owned(data) => {
                transmitter.post_owned(terminus, posting, metadata, data, tx_links)
            }
        }
    }

    /// Stores the data where they belong in an attached region; false if that is not to be had.
    fn store<S: SendObserver<Area>>(
        &self,
        transmitter: &Transmitter<Area, S>,
        terminus: TerminusId,
        to: &Mapped,
        at: u64,
    ) -> bool {
        match self {
            Self::Pieces(pieces) => store_gathered(transmitter, terminus, pieces, to, at).is_ok(),
            Self::Copied(data) => to.store(at, data),
            Self::Owned(data) => to.store(at, data),
        }
    }
}

impl<H: Host> Interface<H> {
    /// Sends a message gathered from send-buffer areas (`Hamlyn 2.3`): pulled by the interface,
    /// packet by packet, as the link has room. The buffers must stay as they are until its
    /// [`Completion`](hamlyn_engine::terminus::Completion). `message.data` is not used. Up to 1,024
    /// pieces; allocates for more than eight. Never blocks. If there is no room, it moves packets
    /// once.
    pub fn send_gather(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        pieces: &[GatherPiece],
    ) -> Result<SendHandle, SendError> {
        self.check()?;
        self.send_load(terminus, target, message, Load::Pieces(pieces))
    }

    /// Sends a message whose bytes the interface keeps until the link has taken all of them: of any
    /// length, and without a copy. `message.data` is not used. Never blocks; allocates only as the
    /// work queue grows. If there is no room, it moves packets once.
    ///
    /// # Errors
    ///
    /// Each gives the bytes back. [`SendError::WouldBlock`] if as many messages wait for that
    /// destination as the terminus queues, or as many bytes as it keeps
    /// ([`TerminusOptions::queue_bytes`]); a message alone may be longer than that.
    ///
    /// [`TerminusOptions::queue_bytes`]: hamlyn_engine::terminus::TerminusOptions::queue_bytes
    pub fn try_send_owned(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        mut data: Vec<u8>,
    ) -> Result<SendHandle, NotSent> {
        let sent = match self.check() {
            Ok(()) => self.send_load(terminus, target, message, Load::Owned(&mut data)),
            Err(forked) => Err(forked.into()),
        };
        sent.map_err(|error| NotSent { error, data })
    }

    /// Sends a message of any length, of which the interface copies the bytes if they must wait.
    /// Otherwise like [`Interface::try_send_owned`]; allocates for a copy of more than 128 bytes.
    pub fn send_copied(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
    ) -> Result<SendHandle, SendError> {
        self.check()?;
        if let Some(handle) = self.send_short(terminus, target, message) {
            return Ok(handle);
        }
        if let Some(handle) = self.send_at_once(terminus, target, message) {
            return Ok(handle);
        }
        if message.data.len() > DIRECT_BYTES_MAX {
            return self.send_load(terminus, target, message, Load::Copied(message.data));
        }
        let sent = self.send_general(terminus, target, message)?;
        sent.ok_or(SendError::WouldBlock {
            peer: target.ticket.destination,
        })
    }

    fn send_load(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        mut load: Load<'_>,
    ) -> Result<SendHandle, SendError> {
        self.drain_events_if_asked();
        let length_bytes = load.length_bytes()?;
        let would_block = SendError::WouldBlock {
            peer: target.ticket.destination,
        };
        if self.attached.may_place(length_bytes) {
            let store = |transmitter: &TransmitterOf<H>, to: &Mapped, at| {
                load.store(transmitter, terminus, to, at)
            };
            match self.send_placed(terminus, target, message, length_bytes, store)? {
                Placing::Sent(handle) => return Ok(handle),
                Placing::Full => {
                    self.poll();
                    return Err(would_block);
                }
                Placing::NotAttached => {}
            }
        }
        let posting = compose(target, message, length_bytes)?;
        let is_left = self.outbound.is_shared();
        if is_left {
            H::passes(Point::HandedOver);
        }
        let metadata = message.metadata;
        let mut post = |outbound: &mut Outbound<_, _>| {
            let (transmitter, tx_links) = (&mut outbound.transmitter, &mut outbound.tx_links);
            if is_left {
                let tx_links = &mut Withheld(tx_links);
                return load.post(transmitter, terminus, &posting, metadata, tx_links);
            }
            let posted = load.post(transmitter, terminus, &posting, metadata, tx_links);
            tx_links.hand_over();
            posted
        };
        let mut posted = self.outbound.lock(&mut post);
        while matches!(posted, Err(PostError::QueueFull)) && self.press(target.link) {
            posted = self.outbound.lock(&mut post);
        }
        // A message that found no room gives a network processor nothing to do.
        if let (Half::Shared(_), Some(processor)) = (&self.outbound, &self.processor)
            && !matches!(posted, Err(PostError::QueueFull))
        {
            processor.exchange.post();
        }
        match posted {
            Ok(posted) => Ok(posted.handle),
            Err(PostError::LinkGone) => Err(self.lost(target).into()),
            Err(PostError::QueueFull) => {
                // So that a program which only tries again gets on.
                self.poll();
                Err(would_block)
            }
            Err(other) => Err(other.into()),
        }
    }

    /// Copies up to 60 bytes of metadata out of a send-buffer area.
    pub fn gather_metadata(
        &self,
        terminus: TerminusId,
        piece: &GatherPiece,
        into: &mut [u8; USER_METADATA_BYTES],
    ) -> Result<usize, PostError> {
        self.check().map_err(|Forked| PostError::Forked)?;
        self.outbound
            .read(|outbound| outbound.transmitter.gather_metadata(terminus, piece, into))
    }
}

/// Copies the pieces of a gather list to where they belong in an attached region.
fn store_gathered<S: SendObserver<Area>>(
    transmitter: &Transmitter<Area, S>,
    terminus: TerminusId,
    pieces: &[GatherPiece],
    to: &Mapped,
    mut at: u64,
) -> Result<(), PostError> {
    for piece in pieces {
        let (area, offset) = transmitter.locate(terminus, piece)?;
        to.region()
            .store_from(at, area, offset, piece.length_bytes, &to.streaming)
            .map_err(|_| PostError::TooLong)?;
        at += piece.length_bytes;
    }
    Ok(())
}

//! An interface sends what lies in send-buffer areas (`Hamlyn 2.3`).

use hamlyn_engine::limits::USER_METADATA_BYTES;
use hamlyn_engine::point::Point;
use hamlyn_engine::send_observer::SendObserver;
use hamlyn_engine::terminus::{GatherPiece, PostError, SendHandle, TerminusId};
use hamlyn_engine::transmit::Transmitter;
use hamlyn_host::Host;
use hamlyn_ring::area::Area;
use hamlyn_ring::forks::Forked;

use super::regions::Mapped;
use super::sharing::Placing;
use super::{Interface, TransmitterOf};
use crate::error::SendError;
use crate::half::Half;
use crate::message::{Message, Target, compose};
use crate::outbound::Withheld;

impl<H: Host> Interface<H> {
    /// Sends a message gathered from send-buffer areas (`Hamlyn 2.3`): pulled by the interface,
    /// packet by packet, as the link has room. The buffers must stay as they are until its
    /// [`Completion`](hamlyn_engine::terminus::Completion). `message.data` is not used. Never
    /// blocks.
    pub fn send_gather(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        pieces: &[GatherPiece],
    ) -> Result<SendHandle, SendError> {
        self.check()?;
        self.drain_events_if_asked();
        let mut length_bytes = 0_u64;
        for piece in pieces {
            length_bytes = length_bytes
                .checked_add(piece.length_bytes)
                .ok_or(PostError::TooLong)?;
        }
        if self.attached.may_place(length_bytes) {
            let store = |transmitter: &TransmitterOf<H>, to: &Mapped, at| {
                store_gathered(transmitter, terminus, pieces, to, at).is_ok()
            };
            match self.send_placed(terminus, target, message, length_bytes, store)? {
                Placing::Sent(handle) => return Ok(handle),
                Placing::Full => {
                    self.poll();
                    return Err(SendError::WouldBlock {
                        peer: target.ticket.destination,
                    });
                }
                Placing::NotAttached => {}
            }
        }
        let posting = compose(target, message, length_bytes)?;
        let is_left = self.outbound.is_shared();
        if is_left {
            H::passes(Point::HandedOver);
        }
        let posted = self.outbound.lock(|outbound| {
            let (transmitter, tx_links) = (&mut outbound.transmitter, &mut outbound.tx_links);
            let metadata = message.metadata;
            if is_left {
                let tx_links = &mut Withheld(tx_links);
                return transmitter.post_gather(terminus, &posting, metadata, pieces, tx_links);
            }
            let posted = transmitter.post_gather(terminus, &posting, metadata, pieces, tx_links);
            tx_links.hand_over();
            posted
        });
        // A message that found no room gives a network processor nothing to do.
        if let (Half::Shared(_), Some(processor)) = (&self.outbound, &self.processor)
            && !matches!(posted, Err(PostError::QueueFull))
        {
            processor.exchange.post();
        }
        match posted {
            Ok(posted) => Ok(posted.handle),
            Err(PostError::LinkGone) => Err(self.lost(target).into()),
            Err(PostError::QueueFull) => Err(SendError::WouldBlock {
                peer: target.ticket.destination,
            }),
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

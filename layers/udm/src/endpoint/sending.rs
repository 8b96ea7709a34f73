//! Messages leave an end point.

use hamlyn::engine::point::{Point, UdmPoint};
use hamlyn::zerocopy::IntoBytes;
use hamlyn::{Host, SendError, Wait};

use super::{Endpoint, Member, NUMBER_BYTES};
use crate::bulk::{Bulk, HEAD_BYTES, Piece};
use crate::error::InjectError;
use crate::limits::{
    BULK, BULK_PIECE_BYTES_MAX, BYTES_MAX, HANDLERS_MAX, SHORT_BYTES_MAX, WORDS_MAX,
};
use crate::message::to_bytes;

/// Pieces of data for which a queue has room.
const PIECES_OF_QUEUE: u64 = 4;

impl<H: Host> Endpoint<H> {
    /// Injects words.
    #[inline]
    pub(crate) fn inject(
        &mut self,
        to: u32,
        handler: u16,
        words: &[u32],
        wait: Wait,
    ) -> Result<(), InjectError> {
        if words.len() > WORDS_MAX {
            return Err(too_many(words));
        }
        if cfg!(target_endian = "little") {
            return self.send(to, handler, words.as_bytes(), wait);
        }
        let bytes = to_bytes(words);
        self.send(to, handler, &bytes[..size_of_val(words)], wait)
    }

    /// Injects bytes, for a handler of the program.
    #[inline]
    pub(crate) fn send(
        &mut self,
        to: u32,
        handler: u16,
        bytes: &[u8],
        wait: Wait,
    ) -> Result<(), InjectError> {
        match handler < HANDLERS_MAX {
            true => self.send_any(to, handler, bytes, wait),
            false => Err(InjectError::BadHandler { handler }),
        }
    }

    /// The same for a handler of the program or the layer.
    #[inline]
    pub(crate) fn send_any(
        &mut self,
        to: u32,
        handler: u16,
        bytes: &[u8],
        wait: Wait,
    ) -> Result<(), InjectError> {
        match self.members.get(to as usize) {
            Some(Member { far: None, .. }) if bytes.len() <= BYTES_MAX => {
                self.send_near(to, handler, bytes, wait)
            }
            _ => self.send_far(to, handler, bytes, wait),
        }
    }

    /// The same to a node of this host.
    #[inline(always)]
    fn send_near(
        &mut self,
        to: u32,
        handler: u16,
        bytes: &[u8],
        wait: Wait,
    ) -> Result<(), InjectError> {
        let target = &self.members[to as usize].target;
        let mut session = self.group.manager.session();
        let sent = session.send_message(target, handler, bytes, wait);
        drop(session);
        match sent {
            Ok(_) => self.sent(),
            Err(error) => Err(self.not_sent(to, error)),
        }
    }

    /// Data for the area of a node, if they may go there.
    pub(crate) fn bulk<'a>(
        &mut self,
        to: u32,
        handler: u16,
        words: &[u32],
        (data, at): (&'a [u8], usize),
        is_inner: bool,
    ) -> Result<Bulk<'a>, InjectError> {
        let length_bytes = data.len();
        let room_bytes = self.room_bytes(to)?;
        let Member {
            area_bytes,
            queue_bytes,
            ..
        } = self.members[to as usize];
        if handler >= HANDLERS_MAX {
            return Err(InjectError::BadHandler { handler });
        }
        if words.len() > WORDS_MAX {
            return Err(too_many(words));
        }
        let end = (at as u64).checked_add(length_bytes as u64);
        if end.is_none_or(|end| end > area_bytes) {
            return Err(InjectError::OutsideArea {
                to,
                at,
                length_bytes,
                area_bytes,
            });
        }
        // Several fit the queue of the destination.
        let most_bytes = (queue_bytes / PIECES_OF_QUEUE).min(room_bytes as u64) as usize;
        let data_bytes = most_bytes.saturating_sub(HEAD_BYTES + SHORT_BYTES_MAX);
        let piece_bytes = data_bytes.clamp(1, BULK_PIECE_BYTES_MAX);
        self.data_sent = self.data_sent.wrapping_add(1);
        // A handler may send others while the program waits for room.
        let number = self.data_sent << 1 | u32::from(is_inner);
        Ok(Bulk::new(piece_bytes, number, handler, words, (data, at)))
    }

    /// Sends a piece of data for the area of a node.
    pub(crate) fn send_piece(
        &mut self,
        to: u32,
        piece: &Piece<'_>,
        wait: Wait,
    ) -> Result<(), InjectError> {
        let mut bytes = std::mem::take(&mut self.piece);
        piece.write(&mut bytes);
        let sent = match self.members.get(to as usize) {
            Some(Member { far: None, .. }) => self.send_near(to, BULK, &bytes, wait),
            _ => self.send_far(to, BULK, &bytes, wait),
        };
        self.piece = bytes;
        // All pieces are one message of the program.
        self.statistics.sent -= u64::from(sent.is_ok() && piece.end.is_none());
        sent
    }

    /// The same to a node of another host; and messages that can go nowhere.
    #[inline(never)]
    fn send_far(
        &mut self,
        to: u32,
        handler: u16,
        bytes: &[u8],
        wait: Wait,
    ) -> Result<(), InjectError> {
        let length_bytes = bytes.len();
        let most_bytes = match handler {
            BULK => self.room_bytes(to)?,
            _ => self.bytes_max(to)?,
        };
        let Member { target, far, .. } = &mut self.members[to as usize];
        let Some(far) = far.as_mut().filter(|_| length_bytes <= most_bytes) else {
            return Err(InjectError::TooLong {
                length_bytes,
                most_bytes,
            });
        };
        self.group.hear(&mut self.group.manager.session());
        if let Some(end) = self.group.lost(to) {
            return Err(InjectError::Lost { to, end });
        }
        if let Some(reason) = self.group.refused(to, target.ticket().slot) {
            // Later ones would wait for that one for ever.
            return Err(InjectError::Refused { to, reason });
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(&far.sent.to_le_bytes());
        self.scratch.extend_from_slice(bytes);
        let mut session = self.group.manager.session();
        let sent = session.send_message(target, handler, &self.scratch, wait);
        drop(session);
        match sent {
            Ok(_) => {
                far.sent = far.sent.wrapping_add(1);
                self.sent()
            }
            Err(error) => Err(self.not_sent(to, error)),
        }
    }

    /// Words that a message to that node may have which is to find room now.
    pub(crate) fn space_available(&mut self, to: u32) -> Result<usize, InjectError> {
        self.bytes_max(to)?;
        let Member { target, far, .. } = &self.members[to as usize];
        let mut session = self.group.manager.session();
        self.group.hear(&mut session);
        if let Some(end) = self.group.lost(to) {
            return Err(InjectError::Lost { to, end });
        }
        if far.is_some()
            && let Some(reason) = self.group.refused(to, target.ticket().slot)
        {
            return Err(InjectError::Refused { to, reason });
        }
        let terminus = session.terminus();
        Ok(match session.finds_room(terminus, target.link()) {
            true => WORDS_MAX,
            false => 0,
        })
    }

    /// A message is committed.
    #[inline]
    fn sent(&mut self) -> Result<(), InjectError> {
        self.statistics.sent += 1;
        H::passes(Point::Udm(UdmPoint::Injected));
        Ok(())
    }

    #[inline(never)]
    fn not_sent(&mut self, to: u32, error: SendError) -> InjectError {
        match error {
            SendError::WouldBlock { .. } => match self.log_use(to) {
                Some((waiting_bytes, limit_bytes)) if waiting_bytes * 2 > limit_bytes => {
                    InjectError::Quota {
                        to,
                        waiting_bytes,
                        limit_bytes,
                    }
                }
                _ => InjectError::WouldBlock { to },
            },
            SendError::PeerLost(lost) => InjectError::Lost { to, end: lost.end },
            error => InjectError::Send(error),
        }
    }

    /// Bytes that a message of the program for a node has at most.
    pub(crate) fn bytes_max(&self, to: u32) -> Result<usize, InjectError> {
        let room_bytes = self.room_bytes(to)?;
        Ok(match self.members[to as usize].far {
            Some(_) => room_bytes.min(BYTES_MAX),
            None => BYTES_MAX,
        })
    }

    /// Bytes for which a packet to a node has room, beside the number. A link that has ended takes
    /// nothing, as the send says.
    fn room_bytes(&self, to: u32) -> Result<usize, InjectError> {
        let Some(member) = self.members.get(to as usize) else {
            let nodes = self.members.len() as u32;
            return Err(InjectError::NoSuchNode { to, nodes });
        };
        let session = self.group.manager.session();
        let packet_bytes = session.packet_bytes_max(member.target.link());
        Ok(packet_bytes.map_or(BYTES_MAX, |most| most - NUMBER_BYTES))
    }
}

fn too_many(words: &[u32]) -> InjectError {
    InjectError::TooLong {
        length_bytes: size_of_val(words),
        most_bytes: SHORT_BYTES_MAX,
    }
}

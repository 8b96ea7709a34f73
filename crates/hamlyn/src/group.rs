//! Group receive and scatter-gather (`Hamlyn 2.5`): one notification when
//! everything from a set of senders has come. The receiver knows neither the
//! senders nor their packets; a member may divide what it holds among delegates.
//!
//! Keys guard placement, not shares: a member that lies about its share can make its group's
//! notification come early or never. It cannot write outside the group's bounds.

use hamlyn_engine::counting::{Counting, DivideError, Share, packets_needed};
use hamlyn_engine::limits::{PACKET_PAYLOAD_MIN, USER_METADATA_BYTES};
use hamlyn_engine::slot::SlotInfo;
use hamlyn_engine::terminus::SendHandle;
use hamlyn_host::process::ProcessHost;
use hamlyn_host::{Host, HostError, Supply};

use crate::error::{ConnectError, FenceError, OpenError, ReceiveError, SendError};
use crate::item::{Bound, Greeted, ItemHeader, Protocol, TypeName};
use crate::manager::{Manager, ManagerRef};
use crate::message::{Message, Target};
use crate::receive_buffer::ReceiveBuffer;
use crate::session::Session;
use crate::ticket::{FIELDS_BYTES, OutsideTicket, TICKET_BYTES, Ticket, TicketError, check_sum};
use crate::wait::Wait;

/// Bytes of a member as it travels.
pub const MEMBER_BYTES: usize = TICKET_BYTES + 8;

const _: () = assert!(MEMBER_BYTES <= USER_METADATA_BYTES);

/// Bytes of a member before its check sum.
const SUMMED_BYTES: usize = MEMBER_BYTES - 4;

/// Bytes that are no member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemberError {
    /// The length is wrong.
    #[error(
        "a member has {MEMBER_BYTES} bytes, this has {length_bytes}: it was cut, or it is none"
    )]
    Length {
        /// Bytes given.
        length_bytes: usize,
    },
    /// The ticket in it, or its share, is none.
    #[error("the member is damaged: {0}")]
    Ticket(#[from] TicketError),
}

const HEADER: ItemHeader = ItemHeader::new(Protocol::Group, TypeName::BYTES);

/// A round could not be begun.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BeginError {
    /// The group has no item under which members could be found.
    #[error(
        "this group is bound to no item: bind it with `Manager::bind_group`, or hand out members with `begin`"
    )]
    NotBound,
    /// The parts do not fit the buffer, or the count.
    #[error(transparent)]
    Split(#[from] SplitError),
    /// There was no fresh key.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// They could not be offered.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// A part of a group: a range of its buffer and a share of the count. A capability, like a ticket; to be used by one
/// holder, once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// The range of the buffer.
    pub ticket: Ticket,
    /// Its share.
    pub share: Share,
}

/// A member could not be divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SplitError {
    /// The parts are longer than the member's range.
    #[error(transparent)]
    Outside(#[from] OutsideTicket),
    /// The share does not suffice.
    #[error(transparent)]
    Share(#[from] DivideError),
}

impl Member {
    /// Divides range and share into consecutive parts of the given lengths, each with enough
    /// share for its bytes on any link. Refused if the lengths exceed the range, or if the share
    /// cannot count that much: then fewer parts, or 64-bit accumulators, are the remedy.
    pub fn divide(&self, lengths_bytes: &[u64]) -> Result<Vec<Member>, SplitError> {
        let mut parts = Vec::with_capacity(lengths_bytes.len());
        let mut offset = 0_u64;
        for &length_bytes in lengths_bytes {
            parts.push(self.ticket.narrow(offset, length_bytes)?);
            offset += length_bytes;
        }
        let needed: Vec<u64> = lengths_bytes
            .iter()
            .map(|&bytes| packets_most(bytes))
            .collect();
        let mut shares = Vec::with_capacity(parts.len());
        self.share.divide(&needed, |share| shares.push(share))?;
        Ok(parts
            .into_iter()
            .zip(shares)
            .map(|(ticket, share)| Member { ticket, share })
            .collect())
    }

    /// The form in which it travels: the ticket's fields, the share, and a check sum of both.
    pub fn to_bytes(&self) -> [u8; MEMBER_BYTES] {
        let mut bytes = [0; MEMBER_BYTES];
        bytes[..FIELDS_BYTES].copy_from_slice(&self.ticket.fields());
        bytes[FIELDS_BYTES..SUMMED_BYTES].copy_from_slice(&self.share.minus_one().to_le_bytes());
        let sum = check_sum(&bytes[..SUMMED_BYTES]);
        bytes[SUMMED_BYTES..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads a member. Total: any bytes give a member or an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<Member, MemberError> {
        let bytes: &[u8; MEMBER_BYTES] = bytes.try_into().map_err(|_| MemberError::Length {
            length_bytes: bytes.len(),
        })?;
        let (fields, rest) = bytes.split_at(FIELDS_BYTES);
        let (share, sum) = rest.split_at(SUMMED_BYTES - FIELDS_BYTES);
        if sum != check_sum(&bytes[..SUMMED_BYTES]).to_le_bytes() {
            return Err(TicketError::Damaged.into());
        }
        let ticket = Ticket::from_fields(fields)?;
        let share = share
            .iter()
            .rev()
            .fold(0, |share, &byte| share << 8 | u64::from(byte));
        let share = Share::from_minus_one(share, ticket.counting)
            .ok_or(TicketError::Impossible { field: "share" })?;
        Ok(Member { ticket, share })
    }
}

/// Packets that so many bytes may take on the link with the smallest packets.
fn packets_most(bytes: u64) -> u64 {
    packets_needed(bytes, USER_METADATA_BYTES, PACKET_PAYLOAD_MIN)
}

/// The receiving end of a group.
#[derive(Debug)]
pub struct Receiver<H: Host = ProcessHost> {
    buffer: ReceiveBuffer,
    counting: Counting,
    open: bool,
    /// The item under which others find their members.
    bound: Option<Bound>,
    manager: ManagerRef<H>,
}

impl<H: Host> Receiver<H> {
    /// A group with a buffer of that size, 0 to 2 GiB; 0 for a barrier.
    pub fn new(
        manager: &Manager<H>,
        buffer_bytes: u32,
        counting: Counting,
    ) -> Result<Self, OpenError> {
        if buffer_bytes > 1 << 31 {
            return Err(OpenError::Setting {
                setting: "a group's buffer",
                value: u64::from(buffer_bytes),
                reason: "it has at most 2 GiB",
            });
        }
        let buffer = ReceiveBuffer::open(&mut manager.enter()?, buffer_bytes, counting)?;
        Ok(Self {
            buffer,
            counting,
            open: false,
            bound: None,
            manager: manager.hold(),
        })
    }

    /// A group whose members others find under `item`, once [`Receiver::begin_shared`] offers them.
    pub(crate) fn bind(
        manager: &Manager<H>,
        item: &str,
        buffer_bytes: u32,
        counting: Counting,
    ) -> Result<Self, OpenError> {
        let mut receiver = Self::new(manager, buffer_bytes, counting)?;
        receiver.bound = Some(manager.enter()?.core.bind_empty(item, HEADER)?);
        Ok(receiver)
    }

    /// Begins a round of a group that was bound to an item: divides its buffer into consecutive parts of the given lengths and
    /// offers a member for each, to one asker each, in that order. Members of earlier rounds that no peer asked for are
    /// withdrawn.
    pub fn begin_shared(&mut self, lengths_bytes: &[u64]) -> Result<(), BeginError> {
        let members = self.begin()?.divide(lengths_bytes)?;
        let Some(bound) = &self.bound else {
            return Err(BeginError::NotBound);
        };
        let mut session = self.manager.enter()?;
        session.core.withdraw_bound(bound);
        for member in members {
            session
                .core
                .offer_bound(bound, &member.to_bytes(), Supply::Once)?;
        }
        Ok(())
    }

    /// Begins a round: a fresh key, an empty count, and the whole of buffer and share as
    /// one member, to be divided with [`Member::divide`] among the senders. Members of earlier rounds
    /// are worthless, so late packets of theirs cannot disturb this one.
    pub fn begin(&mut self) -> Result<Member, ReceiveError> {
        let mut session = self.manager.enter()?;
        let key = session.new_key()?;
        let buffer = &mut self.buffer;
        // A packet of an earlier round may be under way: it is all in when this begins, or is refused.
        session.between_packets(|| {
            if let Some(entry) = buffer.entry() {
                entry.disarm();
            }
            buffer.permit(key);
        });
        // An earlier round that completed unseen must not be taken for this one.
        while session.core.next_arrival(self.buffer.class).is_some() {}
        self.buffer.arm();
        self.open = true;
        Ok(Member {
            ticket: self.buffer.ticket(),
            share: Share::whole(self.counting),
        })
    }

    /// Waits until everything from all members has come, and returns it. Nothing if that was not so in
    /// time. Which peers were lost, one of which may have been a member, tells [`crate::Manager::next_event`].
    pub fn recv(&mut self, wait: Wait) -> Result<Option<&[u8]>, ReceiveError> {
        self.manager.check()?;
        if !self.open {
            return Err(ReceiveError::NotReady);
        }
        let buffer = &self.buffer;
        let mut session = self.manager.enter()?;
        session.look_again();
        let look = |session: &mut Session<'_, H>| Ok::<_, HostError>(buffer.next_message(session));
        if session.wait_for(wait, look)?.is_none() {
            return Ok(None);
        }
        drop(session);
        self.open = false;
        let length = self.buffer.slot.length_bytes() as usize;
        if length == 0 {
            return Ok(Some(&[]));
        }
        let malformed = ReceiveError::Malformed {
            protocol: "group",
            what: "its buffer is not ours",
        };
        self.buffer
            .reader
            .view(0, length)
            .map(Some)
            .ok_or(malformed)
    }

    /// Packets refused at this group, by reason, and more.
    pub fn info(&self) -> Result<SlotInfo, OpenError> {
        self.buffer.info(&*self.manager.enter()?)
    }
}

/// The sending end: a member made usable.
#[derive(Debug)]
pub struct Sender<H: Host = ProcessHost> {
    target: Target,
    /// What is left of the share; nothing when the last message is sent.
    left: Option<Share>,
    manager: ManagerRef<H>,
}

impl<H: Host> Greeted for Sender<H> {}

impl<H: Host> Sender<H> {
    pub(crate) fn connect(
        manager: &Manager<H>,
        to: &str,
        wait: Wait,
    ) -> Result<Self, ConnectError> {
        manager.connect_to(to, HEADER, wait, |member, left| {
            Self::grow(manager, &Member::from_bytes(member)?, left)
        })
    }

    /// Makes a member usable here; connects if need be.
    pub fn grow(manager: &Manager<H>, member: &Member, wait: Wait) -> Result<Self, ConnectError> {
        let target = manager.enter()?.target(&member.ticket, wait)?;
        Ok(Self {
            target,
            left: Some(member.share),
            manager: manager.hold(),
        })
    }

    /// What is left of the member, to be divided among delegates. Fails if all of it was sent.
    pub fn into_member(self) -> Result<Member, SendError> {
        let share = self.left.ok_or(SendError::Finished)?;
        let ticket = *self.target.ticket();
        Ok(Member { ticket, share })
    }

    /// Sends a part that is not the last of this member (scatter-gather).
    pub fn send(&mut self, offset: u64, data: &[u8], wait: Wait) -> Result<SendHandle, SendError> {
        self.manager.check()?;
        let left = self.left.ok_or(SendError::Finished)?;
        // This part takes what it may need on any link; at least one packet is kept for the last.
        let (part, rest) = left
            .take(packets_most(data.len() as u64))
            .map_err(hamlyn_engine::terminus::PostError::Share)?;
        let handle = self.send_share(offset, data, Some(part), wait)?;
        self.left = Some(rest);
        Ok(handle)
    }

    /// Sends the last part of this member; it carries all that is left of the share.
    pub fn send_last(
        &mut self,
        offset: u64,
        data: &[u8],
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        let handle = self.send_share(offset, data, self.left, wait)?;
        self.left = None;
        Ok(handle)
    }

    /// Waits until everything that was sent to the receiver's interface, by whichever sender of this manager, is in its place
    /// there, or says what was refused since the fence before. Blocks for as long as `wait` says. See [`crate::Interface::fence`].
    pub fn fence(&self, wait: Wait) -> Result<(), FenceError> {
        self.manager.enter()?.fence_to(&self.target, wait)
    }

    /// As [`Sender::fence`], as a future, for what was sent before it was first polled. An event loop or a task must drive the
    /// manager ([`Manager::register_waker`]). If it is dropped before it is done, the next fence tells what it would have told. It
    /// borrows nothing of the sender, which may send meanwhile.
    pub fn fence_async(&self) -> impl Future<Output = Result<(), FenceError>> + use<H> {
        let (manager, target) = (self.manager.clone(), self.target);
        async move { manager.fence_async(&target).await }
    }

    fn send_share(
        &mut self,
        offset: u64,
        data: &[u8],
        share: Option<Share>,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        let message = Message::new(data)
            .at(offset)
            .share(share.ok_or(SendError::Finished)?);
        let sent = self.manager.enter()?.send(&self.target, &message, wait);
        if let Err(SendError::Cut { .. }) = sent {
            // A part of the share is spent on a message that will not be whole.
            self.left = None;
        }
        sent
    }
}

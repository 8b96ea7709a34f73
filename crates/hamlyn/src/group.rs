//! Group receive and scatter-gather (`Hamlyn 2.5`): one notification when
//! everything from a set of senders has come. The receiver knows neither the
//! senders nor their packets; a member may divide what it holds among delegates.
//!
//! Keys guard placement, not shares: a member that lies about its share can make its group's
//! notification come early or never. It cannot write outside the group's bounds.

pub(crate) mod member;

use hamlyn_engine::counting::{Counting, Share};
use hamlyn_engine::slot::SlotInfo;
use hamlyn_engine::terminus::SendHandle;
use hamlyn_host::process::ProcessHost;
use hamlyn_host::{Host, HostError, Supply};

use member::packets_most;
pub use member::{MEMBER_BYTES, Member, MemberError, SplitError};

use crate::error::{ConnectError, FenceError, OpenError, ReceiveError, SendError};
use crate::forks::from_forked;

use crate::item::{Bound, EndPoint, ItemHeader, TypeName};
use crate::manager::{Manager, ManagerRef};
use crate::message::{Message, Target};
use crate::protocol::Protocol;
use crate::receive_buffer::ReceiveBuffer;
use crate::session::Session;
use crate::wait::Wait;

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

    /// Begins a round of a group that was bound to an item: divides its buffer into consecutive
    /// parts of the given lengths and offers a member for each, to one asker each, in that order.
    /// Members of earlier rounds that no peer asked for are withdrawn.
    pub fn begin_shared(&mut self, lengths_bytes: &[u64]) -> Result<(), BeginError> {
        self.manager.check()?;
        if self.bound.is_none() {
            return Err(BeginError::NotBound);
        }
        // A refused division leaves the round that has begun as it is.
        self.whole().divide(lengths_bytes)?;
        let members = self.begin()?.divide(lengths_bytes)?;
        let offered = self.offer(&members);
        self.open = offered.is_ok();
        Ok(offered?)
    }

    /// Offers all of these members, or none.
    fn offer(&self, members: &[Member]) -> Result<(), OpenError> {
        let Some(bound) = &self.bound else {
            return Ok(());
        };
        let mut session = self.manager.enter()?;
        let core = &mut session.core;
        core.withdraw_bound(bound);
        let mut offered = members
            .iter()
            .map(|member| core.offer_bound(bound, &member.to_bytes(), Supply::Once));
        let all_offered = offered.try_for_each(|offered| offered);
        all_offered.inspect_err(|_| core.withdraw_bound(bound))
    }

    /// The whole of buffer and share, under the present key.
    fn whole(&self) -> Member {
        Member {
            ticket: self.buffer.ticket(),
            share: Share::whole(self.counting),
        }
    }

    /// Begins a round: a fresh key, an empty count, and the whole of buffer and share as one
    /// member, to be divided with [`Member::divide`] among the senders. Members of earlier rounds
    /// are worthless, so late packets of theirs cannot disturb this one.
    pub fn begin(&mut self) -> Result<Member, ReceiveError> {
        let mut session = self.manager.enter()?;
        let key = session.new_key()?;
        let buffer = &mut self.buffer;
        // A packet of an earlier round may be under way: it is all in when this begins, or is
        // refused.
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
        Ok(self.whole())
    }

    /// Waits until everything from all members has come, and returns it. Nothing if that was not so
    /// in time. Which peers were lost, one of which may have been a member, tells
    /// [`crate::Manager::next_event`].
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

impl<H: Host> Sender<H> {
    pub(crate) fn connect(
        manager: &Manager<H>,
        to: EndPoint<'_>,
        wait: Wait,
    ) -> Result<Self, ConnectError> {
        let connect = |session: &mut Session<'_, H>, member: &[u8], left| {
            let member = Member::from_bytes(member)?;
            let target = session.target(&member.ticket, left)?;
            Ok(((target, member.share), None))
        };
        let (target, share) = manager.enter()?.connect_to(to, HEADER, wait, connect)?;
        Ok(Self {
            target,
            left: Some(share),
            manager: manager.hold(),
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

    /// Bytes of the longest stretch that is one packet of its link: shorter ones are sent whole or
    /// not at all. It may grow while the path is probed. Nothing if the link has ended.
    pub fn packet_bytes_max(&self) -> Option<usize> {
        let session = self.manager.enter().ok()?;
        session.packet_bytes_max(self.target.link())
    }

    /// Waits until everything that was sent to the receiver's interface, by whichever sender of
    /// this manager, is in its place there, or says what was refused since the fence before. Blocks
    /// for as long as `wait` says. See [`crate::Session::fence`].
    pub fn fence(&self, wait: Wait) -> Result<(), FenceError> {
        self.manager.enter()?.fence_to(&self.target, wait)
    }

    /// As [`Sender::fence`], as a future, for what was sent before it was first polled. An event
    /// loop or a task must drive the manager ([`Manager::register_waker`]). If it is dropped before
    /// it is done, the next fence tells what it would have told. It borrows nothing of the sender,
    /// which may send meanwhile.
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
        let sent = self.manager.send(&self.target, &message, wait);
        if let Err(SendError::Cut { .. }) = sent {
            // A part of the share is spent on a message that will not be whole.
            self.left = None;
        }
        sent
    }
}

from_forked! {
    BeginError: Self::Receive;
}

//! The lower layer (`Hamlyn 3.2`): an interface with its slots, termini and
//! queues, `send_msg` and `rcv`.
//!
//! An interface belongs to one thread at a time: it is `Send`, and every call
//! takes `&mut self`. A program with several threads opens one for each.

mod granting;
mod peers;
mod receiving;
mod sending;

use hamlyn_engine::key::Key;
use hamlyn_engine::metadata::MetadataArea;
use hamlyn_engine::notification::NotificationReader;
use hamlyn_engine::receive::Receiver;
use hamlyn_engine::refusal::Refusals;
use hamlyn_engine::slot::{QueueId, SlotError, SlotInfo, SlotOptions};
use hamlyn_engine::terminus::{
    Completion, SendHandle, SendTag, TerminusError, TerminusId, TerminusOptions,
};
use hamlyn_engine::transmit::Transmitter;
use hamlyn_host::{Destination, Host, HostError};
use hamlyn_ring::area::{Area, HandoverReader};

use crate::error::{OpenError, PeerLost};
use crate::links::Links;
use crate::slot::{NewSlot, Slot};

/// Losses remembered for end points that have not heard of them yet.
const LOSSES_KEPT: usize = 64;
/// Wrong keys from one peer before it is cut off, unless set otherwise.
const BAD_KEYS_MAX: u32 = 65_536;

/// A notification queue with its reading end.
#[derive(Debug)]
pub struct Queue {
    pub(crate) id: QueueId,
    pub(crate) reader: NotificationReader,
    /// Losses of peers that waits on this queue have reported.
    pub(crate) losses_seen: u64,
}

impl Queue {
    /// What slots are opened with in order to announce arrivals here.
    pub fn id(&self) -> QueueId {
        self.id
    }

    /// Number of entries.
    pub fn capacity(&self) -> usize {
        self.reader.capacity()
    }

    /// Notifications lost to overrun so far.
    pub fn lost(&self) -> u64 {
        self.reader.lost()
    }
}

/// An interface. See the module.
pub struct Interface<H: Host> {
    host: H,
    receiver: Receiver<Area>,
    transmitter: Transmitter<Area>,
    links: Links<H::Link>,
    losses: std::collections::VecDeque<PeerLost>,
    loss_count: u64,
    bad_keys_max: u32,
    /// Polls in a row that found something.
    streak: u32,
    /// See [`Interface::activity`].
    activity: u64,
    granting: granting::Granting,
}

pub use granting::DIRECT_MIN_BYTES;

impl<H: Host> Interface<H> {
    /// An interface on that host, ready for packets.
    pub fn new(host: H) -> Self {
        let mut receiver = Receiver::new(None);
        receiver.set_up(host.now_ns());
        Self {
            host,
            receiver,
            transmitter: Transmitter::new(),
            links: Links::new(),
            losses: std::collections::VecDeque::with_capacity(LOSSES_KEPT),
            loss_count: 0,
            bad_keys_max: BAD_KEYS_MAX,
            streak: 0,
            activity: 0,
            granting: granting::Granting::default(),
        }
    }

    /// Where tickets of this interface point.
    pub fn identity(&self) -> Destination {
        self.host.identity()
    }

    /// The host.
    pub fn host(&self) -> &H {
        &self.host
    }

    /// The host.
    pub fn host_mut(&mut self) -> &mut H {
        &mut self.host
    }

    /// How many packets with a wrong key a peer may send before it is cut off.
    pub fn set_bad_keys_max(&mut self, packets: u32) {
        self.bad_keys_max = packets;
    }

    // Memory, slots, queues: the owner's calls (Hamlyn 3.1).

    /// Memory for a message area or send-buffer area, zeroed and reserved.
    pub fn allocate(&mut self, length_bytes: u64) -> Result<Area, HostError> {
        self.host.allocate(length_bytes)
    }

    /// Memory in pieces that change hands; see [`HandoverReader`].
    pub fn allocate_handover(
        &mut self,
        pieces: u32,
        piece_bytes: u32,
    ) -> Result<(Area, HandoverReader), HostError> {
        self.host.allocate_handover(pieces, piece_bytes)
    }

    /// A key that nobody can guess.
    pub fn new_key(&mut self) -> Result<Key, HostError> {
        Ok(Key::from_bits(self.host.random_bits()?))
    }

    /// Opens a notification queue.
    pub fn open_queue(&mut self, entries: usize) -> Result<Queue, OpenError> {
        let (id, reader) = self.receiver.open_queue(entries)?;
        Ok(Queue {
            id,
            reader,
            losses_seen: self.loss_count,
        })
    }

    /// Closes a notification queue; close its slots first.
    pub fn close_queue(&mut self, queue: Queue) {
        self.receiver.close_queue(queue.id);
    }

    /// Opens a slot with a fresh key.
    pub fn open_slot(&mut self, new: NewSlot) -> Result<Slot, OpenError> {
        let key = self.new_key()?;
        let metadata = match new.entries {
            0 => None,
            entries => Some(MetadataArea::new(entries)?),
        };
        let length_bytes = new.range.end.saturating_sub(new.range.start);
        let name = self.receiver.open_slot(SlotOptions {
            area: new.area,
            base: new.range.start,
            length_bytes,
            key,
            rights: new.rights,
            mode: new.mode,
            metadata: metadata.clone(),
            queue: new.queue,
            counting: new.counting,
        })?;
        Ok(Slot {
            name,
            key,
            length_bytes,
            mode: new.mode,
            counting: new.counting,
            destination: self.host.identity(),
            metadata,
        })
    }

    /// Closes a slot. Its tickets are worthless from now on, and its grants are revoked, which
    /// takes as long as [`Interface::revoke_grant`].
    pub fn close_slot(&mut self, slot: Slot) -> Result<(), SlotError> {
        self.end_grants_on(slot.name);
        self.receiver.close_slot(slot.name)
    }

    /// Gives the slot a fresh key: tickets made before are worthless, in normal mode.
    /// Also lifts a revocation.
    pub fn rekey_slot(&mut self, slot: &mut Slot) -> Result<(), OpenError> {
        let key = self.new_key()?;
        self.receiver.rekey_slot(slot.name, key)?;
        slot.key = key;
        Ok(())
    }

    /// Shuts everybody out until the slot is re-keyed.
    pub fn revoke_slot(&mut self, slot: &Slot) -> Result<(), SlotError> {
        self.receiver.revoke_slot(slot.name)
    }

    /// What is known of a slot, its refusals included.
    pub fn slot_info(&self, slot: &Slot) -> Result<SlotInfo, SlotError> {
        self.receiver.slot_info(slot.name)
    }

    /// Number of slots open.
    pub fn slots_open(&self) -> usize {
        self.receiver.slots_open()
    }

    /// Packets refused by this interface, by reason.
    pub fn refusals(&self) -> &Refusals {
        self.receiver.refusals()
    }

    /// Opens a send terminus. Allocates its work queue.
    pub fn open_terminus(&mut self, options: TerminusOptions) -> Result<TerminusId, TerminusError> {
        self.transmitter.open_terminus(options)
    }

    /// Closes a send terminus; queued messages are dropped.
    pub fn close_terminus(&mut self, terminus: TerminusId) -> Result<(), TerminusError> {
        self.transmitter.close_terminus(terminus)
    }

    /// Makes a part of an area a send-buffer area of a terminus.
    pub fn bind_area(
        &mut self,
        terminus: TerminusId,
        area: &Area,
        range: std::ops::Range<u64>,
    ) -> Result<SendTag, TerminusError> {
        let length_bytes = range.end.saturating_sub(range.start);
        self.transmitter
            .bind_area(terminus, area.clone(), range.start, length_bytes)
    }

    /// Undoes [`Interface::bind_area`].
    pub fn unbind_area(&mut self, terminus: TerminusId, tag: SendTag) -> Result<(), TerminusError> {
        self.transmitter.unbind_area(terminus, tag)
    }

    /// The completion word of a terminus, to be looked at from any thread.
    pub fn completions(
        &self,
        terminus: TerminusId,
    ) -> Result<std::sync::Arc<hamlyn_engine::terminus::CompletionWord>, TerminusError> {
        self.transmitter.completions(terminus)
    }

    /// What became of a message: whether its buffers may be used again (`Hamlyn 6.2`).
    pub fn completion(&self, handle: SendHandle) -> Result<Completion, TerminusError> {
        Ok(self
            .transmitter
            .completions(handle.terminus)?
            .completion(handle.sequence))
    }
}

impl<H: Host> std::fmt::Debug for Interface<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interface")
            .field("identity", &self.host.identity())
            .field("slots", &self.receiver.slots_open())
            .field("links", &self.links.iter().count())
            .finish_non_exhaustive()
    }
}

//! A buffer for one message or group at a time: a slot with one one-shot entry, over memory
//! that changes hands with it (`Hamlyn 2.7`). Datagrams and groups receive into one.

use hamlyn_engine::counting::Counting;
use hamlyn_engine::key::Key;
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::metadata::{MetadataArea, MetadataEntry, Permission};
use hamlyn_engine::packet::Address;
use hamlyn_engine::receive::Awaited;
use hamlyn_engine::slot::SlotInfo;
use hamlyn_host::Host;
use hamlyn_ring::area::HandoverReader;

use crate::arrival::{ClassId, ShortArrival};
use crate::core::Core;
use crate::error::OpenError;
use crate::interface::Interface;
use crate::one_shot::OneShotSlot;
use crate::remains::{Leaving, Remains};
use crate::session::Session;
use crate::slot::{NewSlot, Slot};
use crate::ticket::Ticket;

/// The only metadata entry of a buffer.
const ENTRY: u16 = 0;

/// See the module.
#[derive(Debug)]
pub(crate) struct ReceiveBuffer {
    pub(crate) slot: Slot,
    pub(crate) reader: HandoverReader,
    pub(crate) class: ClassId,
    /// What its entry permits.
    awaited: Awaited,
    metadata: MetadataArea,
    leaving: Leaving,
}

impl Drop for ReceiveBuffer {
    fn drop(&mut self) {
        self.leaving.leave(Remains {
            slots: vec![self.slot.name()],
            class: Some(self.class),
            ..Remains::default()
        });
    }
}

/// A message that is complete.
pub(crate) enum Arrived {
    /// A short one.
    Short(ShortArrival),
    /// One of which the entry says the rest; over which link it came, unless it was silent.
    Message(Option<LinkId>),
}

impl ReceiveBuffer {
    /// A buffer of that size. Its entry is not armed, and has a key that no peer knows.
    pub(crate) fn open<H: Host>(
        session: &mut Session<'_, H>,
        length_bytes: u32,
        counting: Counting,
    ) -> Result<Self, OpenError> {
        let class = session.core.register_queued(1)?;
        let opened = Self::open_for(session, length_bytes, counting, class);
        if opened.is_err() {
            session.core.unregister(class);
        }
        opened
    }

    fn open_for<H: Host>(
        session: &mut Session<'_, H>,
        length_bytes: u32,
        counting: Counting,
        class: ClassId,
    ) -> Result<Self, OpenError> {
        let piece_bytes = length_bytes.next_power_of_two().max(64);
        let (area, reader) = session.allocate_handover(1, piece_bytes)?;
        let new = NewSlot::over(area)
            .range(0..u64::from(length_bytes))
            .counting(counting);
        let OneShotSlot {
            slot,
            metadata,
            key,
        } = OneShotSlot::open(session, class, new, 1)?;
        let awaited = Awaited {
            to: Address::new(slot.name(), ENTRY),
            key,
            low: 0,
            length_bytes: u64::from(length_bytes),
        };
        let mut buffer = Self {
            slot,
            reader,
            class,
            awaited,
            metadata,
            leaving: session.leaving.clone(),
        };
        buffer.permit(key);
        Ok(buffer)
    }

    #[inline]
    pub(crate) fn entry(&self) -> Option<&MetadataEntry> {
        self.metadata.first()
    }

    /// Its entry, for a task that waits for a message.
    pub(crate) fn metadata(&self) -> MetadataArea {
        self.metadata.clone()
    }

    /// A ticket for the whole buffer.
    pub(crate) fn ticket(&self) -> Ticket {
        self.slot
            .ticket(ENTRY, 0, self.slot.length_bytes())
            .unwrap_or_else(|_| unreachable!("the entry covers the slot"))
    }

    /// Of a message that is awaited, forgets what came of it so far, and the key under which it may
    /// come if there is another one. One that is complete stays.
    pub(crate) fn change<H: Host>(&mut self, session: &mut Session<'_, H>, key: Option<Key>) {
        session.between_packets(|| {
            if let Some(key) = key {
                self.permit(key);
            }
            if let Some(entry) = self.entry().filter(|entry| entry.is_armed()) {
                entry.arm();
            }
        });
    }

    /// Lets messages with that key in, anywhere in the buffer. The entry must not be armed, or no
    /// packet may be received meanwhile.
    pub(crate) fn permit(&mut self, key: Key) {
        self.awaited.key = key;
        let high = self.slot.length_bytes();
        if let Some(entry) = self.entry() {
            entry.permit(Permission { key, low: 0, high });
        }
    }

    /// Lets one message in; the entry must not be armed. The sender owns the buffer until the
    /// message has come.
    #[inline]
    pub(crate) fn arm(&mut self) {
        self.reader.open_one(0);
        if let Some(entry) = self.entry() {
            entry.arm();
        }
    }

    /// The message that is awaited, if it is short and comes next.
    #[inline(always)]
    pub(crate) fn next_short<H: Host>(&self, core: &mut Core<H>) -> Option<ShortArrival> {
        core.next_awaited::<false>(&self.awaited, self.entry()?)
    }

    /// The same, if it takes several cells.
    #[inline(always)]
    fn next_in_cells<H: Host>(&self, core: &mut Core<H>) -> Option<ShortArrival> {
        core.next_awaited::<true>(&self.awaited, self.entry()?)
    }

    /// The message that is awaited, once it is complete.
    #[inline(never)]
    pub(crate) fn next_message<H: Host>(&self, session: &mut Session<'_, H>) -> Option<Arrived> {
        // Those who wait try the fast path first: a message that comes then should be seen soon.
        let core = &mut session.core;
        if let Some(short) = self.next_short(core).or_else(|| self.next_in_cells(core)) {
            return Some(Arrived::Short(short));
        }
        if let Some(arrival) = session.core.next_arrival(self.class) {
            return Some(Arrived::Message(Some(arrival.from)));
        }
        if self.entry().is_some_and(|entry| !entry.is_armed()) {
            // A silent message, unless a network processor is about to announce it.
            session.between_packets(|| ());
            let arrival = session.core.next_arrival(self.class);
            return Some(Arrived::Message(arrival.map(|arrival| arrival.from)));
        }
        None
    }

    pub(crate) fn info<H: Host>(&self, interface: &Interface<H>) -> Result<SlotInfo, OpenError> {
        Ok(interface.slot_info(&self.slot)?)
    }
}

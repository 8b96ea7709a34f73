//! The lower layer (`Hamlyn 3.2`): an interface with its slots, termini and queues, `try_send` and
//! `rcv`. **It never waits** (decision 47): each call is a step that returns at once. A
//! [`Session`](crate::Session) has the calls that wait, and makes others of steps.
//!
//! An interface belongs to one thread at a time: it is `Send`, and every call that changes anything
//! takes `&mut self`. A program with several threads opens one for each, or shares its manager. Its
//! [`Strategy`] says which thread moves the packets: that of the program, or a network processor.

mod answering;
mod at_once;
mod completing;
mod direct;
pub(crate) mod fence;
mod fencing;
mod gathering;
pub(crate) mod initiators;
mod listening;
mod operating;
mod outbox;
mod peers;
pub(crate) mod pieces;
pub(crate) mod ports;
mod readiness;
mod receiving;
mod regions;
mod sending;
mod sharing;
pub(crate) mod sleepers;
mod sleeping;
mod tracked;
mod tracking;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hamlyn_engine::key::Key;
use hamlyn_engine::metadata::MetadataArea;
use hamlyn_engine::packet::SlotName;
use hamlyn_engine::receive::Receiver;
use hamlyn_engine::refusal::Refusals;
use hamlyn_engine::slot::{SlotError, SlotInfo, SlotOptions};
use hamlyn_engine::terminus::{
    Completion, SendHandle, SendTag, TerminusError, TerminusId, TerminusOptions,
};
use hamlyn_engine::transmit::Transmitter;
use hamlyn_host::sharing::Sharing;
use hamlyn_host::{Destination, Driver, Host, HostError};
use hamlyn_link::Link;
use hamlyn_ring::area::{Area, HandoverReader};
use hamlyn_ring::forks::{Birth, Forked};

use crate::error::OpenError;
use crate::half::{Half, Holder};
use crate::inbound::Inbound;
use crate::links::Links;
use crate::outbound::Outbound;
use crate::processor::{self, DriverState, Processor, Strategy};
use crate::remains::{Leaving, Remains};
use crate::slot::{NewSlot, Slot};
use crate::wait::AdaptiveSpin;

pub(crate) type TransmitterOf<H> = Transmitter<Area, <H as Host>::SendObserver>;
type OutboundOf<H> = Half<Outbound<TransmitEndOf<H>, <H as Host>::SendObserver>>;
type InboundOf<H> = Half<Inbound<ReceiveEndOf<H>, <H as Host>::ReceiveObserver>>;
type TransmitEndOf<H> = <<H as Host>::Link as Link>::Transmit;
pub(crate) type ReceiveEndOf<H> = <<H as Host>::Link as Link>::Receive;

/// An interface. See the module.
pub struct Interface<H: Host> {
    /// Who drives, if it is not the application: dropped first, as it uses what the host has.
    processor: Option<Processor<TransmitEndOf<H>>>,
    /// What the application drives with, if it does.
    driver: Option<H::Driver>,
    inbound: InboundOf<H>,
    outbound: OutboundOf<H>,
    links: Links,
    /// Set when there is something to hear of: events of the host, or news of the processor.
    attention: Arc<AtomicBool>,
    /// Where end points that are gone leave what is to be done for them.
    pub(crate) leaving: Leaving,
    untold: Untold,
    /// What their manager is to do of it.
    pub(crate) remains: Vec<Remains>,
    strategy: Strategy,
    /// See [`Interface::activity`]; without what the halves count themselves.
    other_activity: u64,
    /// How often links had run out of room when this program announced that it sleeps; nothing
    /// while it is awake.
    announced_credit_waits: Option<u64>,
    /// How many arrivals and departures [`Interface::next_event`] has told of.
    events_told: u64,
    /// When to look again whether memory can be given back.
    spare_due_ns: Option<u64>,
    /// When waits are to look again though nothing has happened ([`Interface::look_within`]).
    look_due_ns: Option<u64>,
    ends_and_looks: u64,
    /// A step of a wait for room is made: its messages may be held back.
    pub(crate) awaits_room: bool,
    /// The activity when this program last announced that it is to be rung for.
    listens_since: u64,
    /// Called when a sleep has ended that announcement.
    listener: Option<Box<dyn Fn() + Send + Sync>>,
    /// A signal handler has the interface: events and ends wait, as they allocate.
    is_interrupt: bool,
    shared: Vec<regions::Shared>,
    attached: regions::AttachedRegions,
    operating: initiators::Operating,
    tracking: tracked::Tracking,
    pub(crate) sleepers: sleepers::Sleepers,
    adaptive_spin: AdaptiveSpin,
    birth: Birth,
    host: H,
}

impl<H: Host> Drop for Interface<H> {
    fn drop(&mut self) {
        // The parent's links are not the child's to end.
        if !self.is_forked() {
            // It takes packets no more.
            self.processor = None;
            self.inbound.lock(|inbound| inbound.end_all());
        }
    }
}

pub use crate::message::Sending;
pub use crate::queue::Queue;
use crate::sending_half::SendingHalf;
use fence::Untold;
pub use listening::Listening;
pub use outbox::Outbox;
pub use sharing::Placing;

impl<H: Host> Interface<H> {
    const AMONG_THREADS: bool = H::Sharing::AMONG_THREADS;

    /// An interface on that host, ready for packets. All strategies but [`Strategy::Proc`]
    /// start a thread, which ends with the interface.
    pub(crate) fn open(mut host: H, strategy: Strategy) -> Result<Self, OpenError> {
        let mut receiver = Receiver::observed(None, host.receive_observer());
        receiver.set_up(host.now_ns());
        let driver = host.take_driver().ok_or(OpenError::Setting {
            setting: "the number of interfaces of a host",
            value: 2,
            reason: "it has one",
        })?;
        let adaptive_spin = AdaptiveSpin::new(host.spin_ns());
        let inbound = Inbound::new(receiver, host.ready_bitmap());
        let (inbound, lent_inbound) = Half::new(inbound, strategy.receive_holder(), H::LETS_OTHERS);
        let outbound = Outbound::new(host.send_observer());
        let transmit_holder = match strategy.transmit_holder() {
            // Its threads send while one of them receives.
            Holder::Application if Self::AMONG_THREADS => Holder::Lender,
            holder => holder,
        };
        let (outbound, lent_outbound) = Half::new(outbound, transmit_holder, H::LETS_OTHERS);
        let mut interface = Self {
            processor: None,
            attention: Arc::clone(driver.attention()),
            leaving: Leaving::new(Arc::clone(driver.attention())),
            untold: Untold::default(),
            remains: Vec::new(),
            driver: None,
            inbound,
            outbound,
            links: Links::new(host.identity().node),
            strategy,
            other_activity: 0,
            announced_credit_waits: None,
            events_told: 0,
            spare_due_ns: None,
            look_due_ns: None,
            ends_and_looks: 0,
            awaits_room: false,
            listens_since: 0,
            listener: None,
            is_interrupt: false,
            shared: Vec::new(),
            attached: regions::AttachedRegions::default(),
            operating: initiators::Operating::default(),
            tracking: tracked::Tracking::default(),
            sleepers: sleepers::Sleepers::default(),
            adaptive_spin,
            birth: Birth::here(),
            host,
        };
        match lent_inbound {
            None => interface.driver = Some(driver),
            Some(inbound) => interface.start(DriverState {
                strategy,
                spin_ns: interface.host.spin_ns(),
                driver,
                inbound,
                outbound: lent_outbound,
            })?,
        }
        Ok(interface)
    }

    fn start(
        &mut self,
        driver_state: DriverState<H::Driver, H::ReceiveObserver, H::SendObserver>,
    ) -> Result<(), OpenError> {
        let processor = processor::start(&mut self.host, driver_state)?;
        self.attention = Arc::clone(&processor.exchange.attention);
        self.leaving = Leaving::new(Arc::clone(&self.attention));
        self.processor = Some(processor);
        Ok(())
    }

    /// How threads that share it send over that terminus while another one has it; nothing if they
    /// share it within one thread, or a network processor sends.
    pub(crate) fn sending_half(&self, terminus: TerminusId) -> Option<SendingHalf<H>> {
        match &self.outbound {
            Half::Lent(outbound) if Self::AMONG_THREADS => {
                let attention = Arc::clone(&self.attention);
                Some(SendingHalf::new(Arc::clone(outbound), attention, terminus))
            }
            _ => None,
        }
    }

    /// The process that opened it.
    pub(crate) fn birth(&self) -> Birth {
        self.birth
    }

    /// Fails in a forked child: links, memory and keys are the parent's.
    #[inline(always)]
    pub(crate) fn check(&self) -> Result<(), Forked> {
        self.birth.check()
    }

    /// True in a forked child. Calls that have no error to return then find nothing.
    #[inline(always)]
    pub(crate) fn is_forked(&self) -> bool {
        !self.birth.is_here()
    }

    /// Who drives it.
    pub fn strategy(&self) -> Strategy {
        self.strategy
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

    /// How many different wrong keys a peer may present before it is cut off. A key that it
    /// presented lately does not count again, and every 1,024 good packets make up for one.
    pub fn set_bad_keys_max(&mut self, packets: u32) {
        if !self.is_forked() {
            self.inbound.lock(|inbound| inbound.bad_keys_max = packets);
        }
    }

    // Memory, slots, queues: the owner's calls (Hamlyn 3.1).

    /// Memory for a message area or send-buffer area, zeroed and reserved.
    pub fn allocate(&mut self, length_bytes: u64) -> Result<Area, HostError> {
        Area::new(length_bytes).map_err(HostError::memory(length_bytes))
    }

    /// Memory in pieces that change hands; see [`HandoverReader`].
    pub fn allocate_handover(
        &mut self,
        pieces: u32,
        piece_bytes: u32,
    ) -> Result<(Area, HandoverReader), HostError> {
        if !piece_bytes.is_power_of_two() {
            return Err(HostError::BadSetting {
                setting: "piece_bytes",
                value: u64::from(piece_bytes),
                reason: "it must be a power of two",
            });
        }
        let needed_bytes = u64::from(pieces) * u64::from(piece_bytes);
        Area::handover(pieces, piece_bytes).map_err(HostError::memory(needed_bytes))
    }

    /// A key of 64 random bits.
    pub fn new_key(&mut self) -> Result<Key, HostError> {
        self.check()?;
        Ok(Key::from_bits(self.host.random_bits()?))
    }

    /// Opens a notification queue.
    pub fn open_queue(&mut self, entries: usize) -> Result<Queue, OpenError> {
        self.check()?;
        let (id, reader) = self
            .inbound
            .lock(|inbound| inbound.receiver.open_queue(entries))?;
        Ok(Queue {
            id,
            reader,
            empty_at: u64::MAX,
        })
    }

    /// Whether the queue was found empty and nothing was put into any since. With a network
    /// processor that receives, whether it is empty.
    #[inline(always)]
    pub(crate) fn is_known_empty(&self, queue: &Queue) -> bool {
        match &self.inbound {
            Half::Own(inbound) => queue.empty_at == inbound.receiver.announced(),
            Half::Shared(_) | Half::Lent(_) => !queue.reader.is_pending(),
        }
    }

    /// Closes a notification queue; close its slots first.
    pub fn close_queue(&mut self, queue: Queue) {
        if self.is_forked() {
            return;
        }
        self.inbound
            .lock(|inbound| inbound.receiver.close_queue(queue.id));
    }

    /// Opens a slot with a fresh key.
    pub fn open_slot(&mut self, new: NewSlot) -> Result<Slot, OpenError> {
        let key = self.new_key()?;
        let metadata = match new.entries {
            0 => None,
            entries => Some(MetadataArea::new(entries)?),
        };
        let length_bytes = new.range.end.saturating_sub(new.range.start);
        let options = SlotOptions {
            area: new.area,
            base: new.range.start,
            length_bytes,
            key,
            rights: new.rights,
            mode: new.mode,
            metadata: metadata.clone(),
            queue: new.queue,
            counting: new.counting,
        };
        let name = self
            .inbound
            .lock(|inbound| inbound.receiver.open_slot(options))?;
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

    /// Closes a slot. Its tickets are worthless from now on, and its regions are revoked, which
    /// takes as long as [`Interface::revoke`].
    pub fn close_slot(&mut self, slot: Slot) -> Result<(), SlotError> {
        self.check().map_err(|Forked| SlotError::Forked)?;
        self.close_slot_named(slot.name)
    }

    fn close_slot_named(&mut self, name: SlotName) -> Result<(), SlotError> {
        self.end_regions_on(name);
        self.inbound
            .lock(|inbound| inbound.receiver.close_slot(name))
    }

    /// Shuts out all senders to end points that are gone.
    #[cold]
    fn close_remains(&mut self) {
        for remains in self.leaving.take() {
            for &slot in &remains.slots {
                if let Err(error) = self.close_slot_named(slot) {
                    tracing::debug!(%error, "closing a slot of an end point that is gone");
                }
            }
            if let Some(port) = remains.port
                && let Err(error) = self.close_port_named(port)
            {
                tracing::debug!(%error, "closing a port of an end point that is gone");
            }
            if let Some(slot) = remains.initiator {
                self.leave_initiator(slot);
            }
            if let Some(queue) = remains.queue {
                self.inbound
                    .lock(|inbound| inbound.receiver.close_queue(queue));
            }
            if let Some(queue) = remains.completions {
                self.tracking.close(queue);
            }
            if let Some(number) = remains.pool {
                self.hide_pool(number);
            }
            self.remains.push(remains);
        }
    }

    /// Gives the slot a fresh key: tickets made before are worthless, in normal mode.
    /// Also lifts a revocation.
    pub fn rekey_slot(&mut self, slot: &mut Slot) -> Result<(), OpenError> {
        let key = self.new_key()?;
        self.inbound
            .lock(|inbound| inbound.receiver.rekey_slot(slot.name, key))?;
        slot.key = key;
        Ok(())
    }

    /// Makes a change while no packet is being received: what came before is all in, and what comes
    /// after finds the change whole. With a strategy by which a network processor receives,
    /// metadata entries that are armed must be changed so; an entry that is not armed may be
    /// permitted and armed at any time.
    pub fn between_packets<R>(&mut self, change: impl FnOnce() -> R) -> R {
        match self.is_forked() {
            // No packet is received, and the lock may be a thread's that is not there.
            true => change(),
            false => self.inbound.lock(|_| change()),
        }
    }

    /// Refuses all messages to the slot until it is re-keyed.
    pub fn revoke_slot(&mut self, slot: &Slot) -> Result<(), SlotError> {
        self.check().map_err(|Forked| SlotError::Forked)?;
        self.inbound
            .lock(|inbound| inbound.receiver.revoke_slot(slot.name))
    }

    /// The state of a slot, with its refusals.
    pub fn slot_info(&self, slot: &Slot) -> Result<SlotInfo, SlotError> {
        self.check().map_err(|Forked| SlotError::Forked)?;
        self.inbound
            .read(|inbound| inbound.receiver.slot_info(slot.name))
    }

    /// Number of slots open. Those of an end point that was dropped count until the interface's
    /// next call.
    pub fn slots_open(&self) -> usize {
        match self.is_forked() {
            true => 0,
            false => self.inbound.read(|inbound| inbound.receiver.slots_open()),
        }
    }

    /// Packets refused by this interface, by reason.
    pub fn refusals(&self) -> Refusals {
        match self.is_forked() {
            true => Refusals::default(),
            false => self.inbound.read(|inbound| *inbound.receiver.refusals()),
        }
    }

    /// Opens a send terminus. Allocates its work queue.
    pub fn open_terminus(&mut self, options: TerminusOptions) -> Result<TerminusId, TerminusError> {
        self.check().map_err(|Forked| TerminusError::Forked)?;
        self.outbound
            .lock(|outbound| outbound.transmitter.open_terminus(options))
    }

    /// Closes a send terminus; queued messages are dropped.
    pub fn close_terminus(&mut self, terminus: TerminusId) -> Result<(), TerminusError> {
        self.check().map_err(|Forked| TerminusError::Forked)?;
        self.outbound
            .lock(|outbound| outbound.transmitter.close_terminus(terminus))
    }

    /// Makes a part of an area a send-buffer area of a terminus.
    pub fn bind_area(
        &mut self,
        terminus: TerminusId,
        area: &Area,
        range: std::ops::Range<u64>,
    ) -> Result<SendTag, TerminusError> {
        self.check().map_err(|Forked| TerminusError::Forked)?;
        let length_bytes = range.end.saturating_sub(range.start);
        let area = area.clone();
        self.outbound.lock(|outbound| {
            let transmitter = &mut outbound.transmitter;
            transmitter.bind_area(terminus, area, range.start, length_bytes)
        })
    }

    /// Undoes [`Interface::bind_area`].
    pub fn unbind_area(&mut self, terminus: TerminusId, tag: SendTag) -> Result<(), TerminusError> {
        self.check().map_err(|Forked| TerminusError::Forked)?;
        self.outbound
            .lock(|outbound| outbound.transmitter.unbind_area(terminus, tag))
    }

    /// What became of a message: whether its buffers may be used again (`Hamlyn 6.2`).
    pub fn completion(&self, handle: SendHandle) -> Result<Completion, TerminusError> {
        self.check().map_err(|Forked| TerminusError::Forked)?;
        self.outbound
            .read(|outbound| outbound.transmitter.completion(handle))
    }
}

impl<H: Host> std::fmt::Debug for Interface<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interface")
            .field("identity", &self.host.identity())
            .field("strategy", &self.strategy)
            .field("links", &self.links.iter().count())
            .finish_non_exhaustive()
    }
}

//! What a manager consists of: an interface, its terminus, and the notification queue that its
//! receivers share. Calls come through [`Session`](crate::Session).

use std::collections::{HashSet, VecDeque};
use std::task::Waker;
use std::time::Duration;

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::metadata::MetadataEntry;
use hamlyn_engine::notification::{Notification, Overrun};
use hamlyn_engine::receive::Awaited;
use hamlyn_engine::table::Table;
use hamlyn_engine::terminus::{TerminusId, TerminusOptions};
use hamlyn_host::sharing::Sharing;
use hamlyn_host::{Host, HostError};

use crate::arrival::{Arrival, ClassId, ReceiverClass, ShortArrival};
use crate::error::{OpenError, ReceiveError, SendError};

use crate::event::Event;
use crate::interface::Interface;
use crate::item::KeptOffers;
use crate::processor::Strategy;
use crate::queue::Queue;
use crate::remains::LastWords;
use crate::tasks::{Interest, Registered, Tasks, Waiter, Woken};

/// Entries of a manager's notification queue, unless set otherwise.
const QUEUE_ENTRIES: usize = 4096;

/// What a manager is opened with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ManagerOptions {
    /// Entries of its notification queue; bounds the messages that all its
    /// receivers together may have outstanding. Default 4,096.
    pub queue_entries: usize,
    /// Its terminus.
    pub terminus: TerminusOptions,
    /// Who drives the interface. Default: the application's thread.
    pub strategy: Strategy,
}

impl Default for ManagerOptions {
    fn default() -> Self {
        Self {
            queue_entries: QUEUE_ENTRIES,
            terminus: TerminusOptions::default(),
            strategy: Strategy::default(),
        }
    }
}

/// How the end points of a manager on that host share it.
pub(crate) type Held<H> = <<H as Host>::Sharing as Sharing>::Shared<Core<H>>;

/// Receivers of a manager.
const CLASSES_MAX: usize = 1 << 20;

enum Class {
    /// Arrivals wait until their end point asks for them.
    Queued(VecDeque<Arrival>),
    /// Arrivals are handed to the application's own class.
    Own(Box<dyn ReceiverClass>),
}

struct ClassEntry {
    class: Class,
    /// Notifications that its entries may have outstanding.
    entries: usize,
}

/// See the module.
pub(crate) struct Core<H: Host> {
    pub(crate) interface: Interface<H>,
    terminus: TerminusId,
    queue: Queue,
    classes: Table<ClassEntry>,
    /// Arrivals that wait in classes, all together.
    waiting: usize,
    reserved: usize,
    /// To which end points are bound.
    pub(crate) items: HashSet<String>,
    /// What peers offered to attempts to connect that came to nothing.
    pub(crate) found: KeptOffers,
    /// What peers of end points that are gone are to be told when there is room.
    last_words: LastWords,
    /// Notifications that were lost, and were not reported yet.
    overrun: u64,
    pub(crate) tasks: Tasks,
    /// The count of [`Interface::ends_and_looks`] when tasks were last told.
    ends_seen: u64,
}

impl<H: Host> Core<H> {
    /// A manager for an interface on that host.
    pub(crate) fn new(host: H, options: ManagerOptions) -> Result<Self, OpenError> {
        let mut interface = Interface::open(host, options.strategy)?;
        let terminus = interface.open_terminus(options.terminus)?;
        let queue = interface.open_queue(options.queue_entries)?;
        Ok(Self {
            interface,
            terminus,
            queue,
            classes: Table::new(CLASSES_MAX, u32::MAX - 1),
            waiting: 0,
            reserved: 0,
            items: HashSet::new(),
            found: KeptOffers::default(),
            last_words: LastWords::default(),
            overrun: 0,
            tasks: Tasks::default(),
            ends_seen: 0,
        })
    }

    /// The terminus over which this manager's senders send.
    pub(crate) fn terminus(&self) -> TerminusId {
        self.terminus
    }

    /// The notification queue that the slots of this manager's receivers name.
    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Registers a receiver of the application's own making, whose entries may have
    /// `entries` notifications outstanding. Its slots must be `paranoid_one_shot`, or else their
    /// senders can overrun the queue that it shares with the manager's other receivers.
    pub(crate) fn register(
        &mut self,
        class: Box<dyn ReceiverClass>,
        entries: usize,
    ) -> Result<ClassId, OpenError> {
        self.add_class(Class::Own(class), entries)
    }

    /// Forgets a receiver. Its slots must be closed before.
    pub(crate) fn unregister(&mut self, id: ClassId) {
        self.lead_all();
        if let Some(entry) = self.classes.remove(id.name()) {
            if let Class::Queued(arrivals) = &entry.class {
                self.waiting -= arrivals.len();
            }
            self.reserved -= entry.entries;
        }
    }

    /// Registers a receiver whose arrivals wait in the manager.
    pub(crate) fn register_queued(&mut self, entries: usize) -> Result<ClassId, OpenError> {
        self.add_class(Class::Queued(VecDeque::with_capacity(entries)), entries)
    }

    /// Reserves room for more notifications of a receiver.
    pub(crate) fn reserve(&mut self, id: ClassId, entries: usize) -> Result<(), OpenError> {
        self.check_room(entries)?;
        if let Some(entry) = self.class_entry(id.0) {
            entry.entries += entries;
            if let Class::Queued(arrivals) = &mut entry.class {
                arrivals.reserve(entries);
            }
            self.reserved += entries;
        }
        Ok(())
    }

    /// Undoes [`Core::reserve`].
    pub(crate) fn unreserve(&mut self, id: ClassId, entries: usize) {
        self.lead_all();
        if let Some(entry) = self.class_entry(id.0) {
            let entries = entries.min(entry.entries);
            entry.entries -= entries;
            self.reserved -= entries;
        }
    }

    /// Takes all notifications out of the queue: those of an end point that gives back its room
    /// must not be in the way of others to whom it is given.
    fn lead_all(&mut self) {
        for _ in 0..=self.queue.capacity() {
            match self.interface.pop(&mut self.queue) {
                Ok(Some(told)) => self.lead(told),
                Ok(None) => break,
                Err(overrun) => self.note_overrun(overrun),
            }
        }
    }

    /// Does what is left to do for end points that are gone.
    #[inline]
    pub(crate) fn reap(&mut self) {
        self.interface.drain_events_if_asked();
        if !self.interface.remains.is_empty() || !self.last_words.is_empty() {
            self.reap_all();
        }
    }

    #[cold]
    fn reap_all(&mut self) {
        if self.interface.is_interrupt() {
            return;
        }
        for remains in std::mem::take(&mut self.interface.remains) {
            if let Some(class) = remains.class {
                self.unregister(class);
            }
            if let Some((class, entries)) = remains.entries {
                self.unreserve(class, entries);
            }
            if let Some(waiting) = remains.waiting {
                self.tasks.abandon(waiting);
            }
            if let Some((item, place)) = remains.place {
                self.interface.return_place(&item, place);
            }
            if let Some(item) = remains.item {
                self.interface.withdraw(&item);
                self.items.remove(&item);
            }
            if let Some(last_word) = remains.last_word {
                self.last_words.add(last_word);
            }
        }
        let (interface, terminus) = (&mut self.interface, self.terminus);
        self.last_words.say(|last_word| {
            let (target, message) = (last_word.target(), last_word.message());
            if !interface.has_room(terminus, target.link()) {
                return false;
            }
            let sent = interface.send_copied(terminus, target, &message);
            !matches!(sent, Err(SendError::WouldBlock { .. }))
        });
    }

    /// True if nothing waits to be told on behalf of end points that are gone, over that link or
    /// over any.
    pub(crate) fn has_no_last_words(&self, link: Option<LinkId>) -> bool {
        self.interface.remains.is_empty() && self.last_words.is_empty_for(link)
    }

    /// Notifications that more end points may have outstanding.
    pub(crate) fn room(&self) -> usize {
        // Hamlyn 2.7: the queue must be longer than the number of entries in use.
        (self.queue.capacity() - 1).saturating_sub(self.reserved)
    }

    fn check_room(&mut self, needed: usize) -> Result<(), OpenError> {
        self.reap();
        let (capacity, left) = (self.queue.capacity(), self.room());
        if needed > left {
            return Err(OpenError::QueueRoom {
                needed,
                capacity,
                left,
            });
        }
        Ok(())
    }

    fn add_class(&mut self, class: Class, entries: usize) -> Result<ClassId, OpenError> {
        self.check_room(entries)?;
        let name = self.classes.insert(ClassEntry { class, entries });
        let name = name.ok_or(OpenError::Setting {
            setting: "the number of receivers of a manager",
            value: CLASSES_MAX as u64 + 1,
            reason: "it has as many already: close one",
        })?;
        self.reserved += entries;
        Ok(ClassId::new(name))
    }

    #[inline]
    fn class_entry(&mut self, bits: u64) -> Option<&mut ClassEntry> {
        self.classes.get_mut(ClassId(bits).name())
    }

    /// Takes the next notification, if there is one, and leads it to its receiver
    /// (`Hamlyn 3.3`). True if there was one.
    pub(crate) fn poll_nowait(&mut self) -> Result<bool, ReceiveError> {
        self.reap();
        match self.interface.next_notification(&mut self.queue) {
            Ok(Some(notification)) => {
                self.lead(notification);
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(overrun) => {
                self.note_overrun(overrun);
                Ok(true)
            }
        }
    }

    #[inline(never)]
    fn lead(&mut self, notification: Notification) {
        if self.interface.sleepers.is_any() {
            self.interface.wake_sleepers_if_active();
        }
        let arrival = Arrival::of(&notification);
        // In fast mode the word is the sender's, and names no receiver of ours.
        if notification.is_fast() {
            return;
        }
        match self
            .class_entry(notification.word)
            .map(|entry| &mut entry.class)
        {
            Some(Class::Queued(arrivals)) => {
                arrivals.push_back(arrival);
                self.waiting += 1;
            }
            Some(Class::Own(class)) => class.process_arrival(arrival),
            // A receiver that was closed with messages on their way.
            None => {}
        }
    }

    /// The message that is awaited, if no arrival waits and it is the next of all; otherwise
    /// nothing, and [`Core::next_arrival`] is to be asked.
    #[inline(always)]
    pub(crate) fn next_awaited<const IN_CELLS: bool>(
        &mut self,
        awaited: &Awaited,
        entry: &MetadataEntry,
    ) -> Option<ShortArrival> {
        if self.waiting != 0 {
            return None;
        }
        let interface = &mut self.interface;
        interface.next_awaited::<IN_CELLS>(&self.queue, awaited, entry)
    }

    /// The next arrival for a receiver, from its own queue or from what comes in now.
    #[inline(never)]
    pub(crate) fn next_arrival(&mut self, id: ClassId) -> Option<Arrival> {
        self.reap();
        if self.waiting > 0
            && let Some(ClassEntry {
                class: Class::Queued(arrivals),
                ..
            }) = self.class_entry(id.0)
            && let Some(arrival) = arrivals.pop_front()
        {
            self.waiting -= 1;
            return Some(arrival);
        }
        // What is for others waits with them, so a flood of that ends too.
        for _ in 0..=self.queue.capacity() {
            match self.interface.next_one_shot(&mut self.queue) {
                Ok(Some(notification)) if notification.word == id.0 && !notification.is_fast() => {
                    return Some(Arrival::of(&notification));
                }
                Ok(Some(notification)) => self.lead(notification),
                Ok(None) => return None,
                Err(overrun) => self.note_overrun(overrun),
            }
        }
        None
    }

    /// A task waits for that waiter, for anything, instead of the one before.
    pub(crate) fn register_task(
        &mut self,
        waiter: &Waiter,
        waker: &Waker,
    ) -> Result<Registered, HostError> {
        if self.tasks.is_empty() {
            // Nobody waited to be told of what was before.
            self.ends_seen = self.interface.ends_and_looks();
        }
        self.tasks.register(waiter, Interest::Anything, waker)
    }

    /// There is news: takes the tasks that are to look for themselves.
    #[cold]
    pub(crate) fn take_tasks(&mut self, woken: &mut Woken) {
        // It may be time to look though there is so much news that nobody sleeps.
        self.interface.end_look_due();
        let ends = self.interface.ends_and_looks();
        let has_ended = std::mem::replace(&mut self.ends_seen, ends) != ends;
        if !self.tasks.is_selective() {
            return self.tasks.take_all(woken);
        }
        let is_led = |interest: &Interest| matches!(interest, Interest::Arrivals(..));
        if self.tasks.is_any(is_led) {
            self.lead_all();
        }
        let classes = &self.classes;
        let has_arrival = |class: ClassId| match classes.get(class.name()) {
            Some(entry) => matches!(&entry.class, Class::Queued(arrivals) if !arrivals.is_empty()),
            None => true,
        };
        let tasks = &mut self.tasks;
        tasks.take_ready(woken, |interest| match interest {
            Interest::Arrivals(class, _) => has_ended || has_arrival(*class),
            interest => has_ended && interest.heeds_ends(),
        });
        self.interface.take_ready(tasks, woken);
    }

    fn note_overrun(&mut self, overrun: Overrun) {
        self.overrun += overrun.lost;
        // An event, for which another thread may wait.
        self.interface.look_within(Duration::ZERO);
    }

    /// The next event, if there is one.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        match std::mem::take(&mut self.overrun) {
            0 => self.interface.next_event(),
            lost => Some(Event::Overrun { lost }),
        }
    }
}

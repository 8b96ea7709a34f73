//! The network processor of a process: a thread that drives halves of an interface while the
//! application computes (ARCHITECTURE.md, strategies; `papers/global-address.md`, section 3).
//!
//! It sleeps when there is nothing to do for as long as a blocking call would poll, as the
//! application's thread does, and it holds no half while it sleeps.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::receive_observer::ReceiveObserver;
use hamlyn_engine::send_observer::SendObserver;
use hamlyn_host::waiter::Waiter;
use hamlyn_host::{Driver, Event, Host, HostError, LossCause, Peer, ThreadHandle};
use hamlyn_link::Link;
use hamlyn_ring::area::Area;
use hamlyn_ring::forks::Birth;

use crate::answers;
use crate::half::{HandoffLock, Holder};
use crate::inbound::Inbound;
use crate::outbound::Outbound;
use crate::peer::LinkEnd;

/// Who calls the two halves of an interface (`papers/global-address.md`, section 3). It is chosen
/// when the interface is opened; what programs see is the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// The application's thread, in its calls: lowest latency, fewest processors.
    #[default]
    Proc,
    /// A network processor, a thread of this process, drives both halves: attentive though the
    /// application computes. What fits the work queue is sent by it; a longer message is handed
    /// over from where it lies, by the caller.
    Np,
    /// The application's thread transmits, the network processor receives.
    Inject,
    /// The application's thread transmits; it receives while it polls, and the network
    /// processor while it does not.
    Receive,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Strategy; 4] = [
        Strategy::Proc,
        Strategy::Np,
        Strategy::Inject,
        Strategy::Receive,
    ];

    /// Its name in `papers/global-address.md` and on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::Proc => "proc",
            Strategy::Np => "np",
            Strategy::Inject => "inject",
            Strategy::Receive => "receive",
        }
    }

    /// Which thread has the receive half.
    pub(crate) const fn receive_holder(self) -> Holder {
        match self {
            Strategy::Proc => Holder::Application,
            _ => Holder::Processor,
        }
    }

    /// Which thread has the transmit half. Where the application has it, a network processor
    /// borrows it to answer.
    pub(crate) const fn transmit_holder(self) -> Holder {
        match self {
            Strategy::Proc => Holder::Application,
            Strategy::Np => Holder::Processor,
            Strategy::Inject | Strategy::Receive => Holder::Lender,
        }
    }
}

/// With [`Strategy::Receive`]: how long the network processor leaves an application alone that
/// was polling when it last looked.
const STAND_BACK_NS: u64 = 100_000;
/// How long it stands back when it could not sleep.
const AFTER_FAILURE_NS: u64 = 1_000_000;
/// Polls for which the receive half is held at a time, unless it is wanted.
const POLLS_HELD: u32 = 64;

/// What the driver of the receive half tells the application.
pub(crate) enum DriverEvent<T> {
    /// There is a new link; with its transmitting end, unless the driver has that half, too.
    Linked(LinkId, Peer, Option<T>),
    /// A peer is lost; what it sent is still to be taken.
    Lost(LinkId, LossCause),
    /// A link ended.
    Ended(LinkId, LinkEnd),
}

/// Takes an event of the host in.
pub(crate) fn take_event<L: Link, O: ReceiveObserver<Area>>(
    inbound: &mut Inbound<L::Receive, O>,
    event: Event<L>,
) -> Option<DriverEvent<L::Transmit>> {
    match event {
        Event::Linked(peer, link) => {
            let (transmit, receive) = link.split();
            let id = inbound.insert(peer.token, receive);
            Some(DriverEvent::Linked(id, peer, Some(transmit)))
        }
        Event::Lost { token, cause } => {
            let id = inbound.lose(token, cause)?;
            Some(DriverEvent::Lost(id, cause))
        }
    }
}

/// What the application's thread and the network processor share, besides the halves.
pub(crate) struct Exchange<T> {
    events: Mutex<VecDeque<DriverEvent<T>>>,
    /// Set when there is news.
    pub(crate) attention: Arc<AtomicBool>,
    /// Packets moved by the network processor, and other things that it did.
    activity: AtomicU64,
    /// What the application waits at.
    pub(crate) waiter: Waiter,
    /// Messages were queued since the network processor last looked.
    posted: AtomicBool,
    /// One-sided operations of others were carried out by the application, which sends the answers.
    owed: AtomicBool,
    /// How often the application received by itself.
    polls: AtomicU64,
    asleep: AtomicBool,
    stop: AtomicBool,
    waker: Box<dyn Fn() + Send + Sync>,
    failure: Mutex<Option<HostError>>,
}

impl<T> Exchange<T> {
    /// The next news, if any. The application's.
    pub(crate) fn next_event(&self) -> Option<DriverEvent<T>> {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let next = events.pop_front();
        self.attention.store(!events.is_empty(), Ordering::Relaxed);
        next
    }

    fn send_event(&self, event: DriverEvent<T>) {
        let mut all = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_back(event);
        self.attention.store(true, Ordering::Relaxed);
        drop(all);
        self.note_activity(1);
    }

    /// Something happened: wakes the waiter.
    fn note_activity(&self, amount: u64) {
        // Whoever sees the count sees what is counted: it may look this once only.
        self.activity.fetch_add(amount, Ordering::Release);
        self.waiter.wake();
    }

    pub(crate) fn activity(&self) -> u64 {
        self.activity.load(Ordering::Acquire)
    }

    /// Messages were queued for the network processor.
    pub(crate) fn post(&self) {
        self.posted.store(true, Ordering::Release);
        self.wake();
    }

    /// Answers are to be sent by the application.
    pub(crate) fn owe(&self) {
        self.owed.store(true, Ordering::Release);
    }

    /// Whether answers are to be sent by the application, which sees to it now.
    pub(crate) fn takes_owed(&self) -> bool {
        self.owed.load(Ordering::Relaxed) && self.owed.swap(false, Ordering::Acquire)
    }

    /// The application receives by itself.
    pub(crate) fn note_poll(&self) {
        let polls = self.polls.load(Ordering::Relaxed);
        self.polls.store(polls.wrapping_add(1), Ordering::Relaxed);
    }

    /// Makes the network processor look.
    pub(crate) fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            (self.waker)();
        }
    }

    /// The network processor cannot do its work: the application hears of it when it waits.
    fn fail(&self, error: HostError) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        *failure = Some(error);
        drop(failure);
        self.note_activity(1);
    }

    /// Why the network processor had to stop sleeping, if it had to.
    pub(crate) fn failure(&self) -> Option<HostError> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.clone()
    }
}

/// The thread, in its owner's hands. Dropping it ends it.
pub(crate) struct Processor<T> {
    pub(crate) exchange: Arc<Exchange<T>>,
    thread: Option<Box<dyn ThreadHandle>>,
    birth: Birth,
}

impl<T> Processor<T> {
    /// The application calls this before it waits at the waiter: with [`Strategy::Receive`] the
    /// network processor takes over at once.
    pub(crate) fn take_over(&self) {
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
    }
}

impl<T> Drop for Processor<T> {
    fn drop(&mut self) {
        if !self.birth.is_here() {
            // A forked child has no such thread.
            std::mem::forget(self.thread.take());
            return;
        }
        self.exchange.stop.store(true, Ordering::Release);
        (self.exchange.waker)();
        if let Some(thread) = self.thread.take() {
            thread.unpark();
            thread.join();
        }
    }
}

/// A receive half that is lent, by the links of its host.
type LentInbound<L, O> = Arc<HandoffLock<Inbound<<L as Link>::Receive, O>>>;
/// A transmit half that is lent, by the links of its host.
type LentOutbound<L, S> = Arc<HandoffLock<Outbound<<L as Link>::Transmit, S>>>;

/// What the thread works on.
pub(crate) struct DriverState<D: Driver, O, S: SendObserver<Area>> {
    pub(crate) strategy: Strategy,
    /// How long it polls before it sleeps.
    pub(crate) spin_ns: u64,
    pub(crate) driver: D,
    pub(crate) inbound: LentInbound<D::Link, O>,
    /// With [`Strategy::Np`] its own, otherwise borrowed to answer one-sided operations.
    pub(crate) outbound: Option<LentOutbound<D::Link, S>>,
}

/// Starts the thread.
pub(crate) fn start<H: Host>(
    host: &mut H,
    driver_state: DriverState<H::Driver, H::ReceiveObserver, H::SendObserver>,
) -> Result<Processor<<H::Link as Link>::Transmit>, HostError> {
    let waiter = host.new_waiter()?;
    let exchange = Arc::new(Exchange {
        events: Mutex::default(),
        attention: Arc::default(),
        activity: AtomicU64::new(0),
        waiter,
        posted: AtomicBool::new(false),
        owed: AtomicBool::new(false),
        polls: AtomicU64::new(0),
        asleep: AtomicBool::new(false),
        stop: AtomicBool::new(false),
        waker: driver_state.driver.waker(),
        failure: Mutex::default(),
    });
    let seen = Arc::clone(&exchange);
    let thread = host.spawn(
        "hamlyn-processor",
        Box::new(move || supervise(&seen, || run(driver_state, &seen))),
    )?;
    Ok(Processor {
        exchange,
        thread: Some(thread),
        birth: Birth::here(),
    })
}

/// Runs the network processor. If it panics, the application hears of it when it waits, instead of
/// waiting for ever.
fn supervise<T>(exchange: &Exchange<T>, run: impl FnOnce()) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(run)) else {
        return;
    };
    let message = payload.downcast_ref::<&str>().map(ToString::to_string);
    let message = message.or_else(|| payload.downcast_ref::<String>().cloned());
    // Anything else is how a host ends a thread that it no longer wants.
    if let Some(message) = message {
        exchange.fail(HostError::Processor { message });
    }
    resume_unwind(payload);
}

fn run<D: Driver, O: ReceiveObserver<Area>, S: SendObserver<Area>>(
    mut driver_state: DriverState<D, O, S>,
    exchange: &Exchange<<D::Link as Link>::Transmit>,
) {
    let mut polls_seen = exchange.polls.load(Ordering::Relaxed);
    let mut idle_since_ns = None;
    while !exchange.stop.load(Ordering::Acquire) {
        if driver_state.strategy == Strategy::Receive {
            let polls = exchange.polls.load(Ordering::Relaxed);
            let attentive = polls != polls_seen && !exchange.waiter.is_awaited();
            polls_seen = polls;
            if attentive {
                if driver_state.driver.attention().load(Ordering::Relaxed) {
                    driver_state.poll(exchange, 1);
                }
                driver_state.driver.park(STAND_BACK_NS);
                continue;
            }
        }
        if driver_state.poll(exchange, POLLS_HELD) {
            idle_since_ns = None;
            continue;
        }
        let now_ns = driver_state.driver.now_ns();
        let since_ns = *idle_since_ns.get_or_insert(now_ns);
        if now_ns.saturating_sub(since_ns) < driver_state.spin_ns {
            driver_state.driver.park(0);
            continue;
        }
        if let Err(error) = driver_state.sleep(exchange) {
            // Without sleep it would burn a processor; the application hears of it when it waits.
            exchange.fail(error);
            driver_state.driver.park(AFTER_FAILURE_NS);
        }
        // A peer may have rung for the application's sake: there may be room again.
        exchange.note_activity(0);
    }
}

impl<D: Driver, O: ReceiveObserver<Area>, S: SendObserver<Area>> DriverState<D, O, S> {
    /// Moves what there is to move. Whether there was anything.
    fn poll(&mut self, exchange: &Exchange<<D::Link as Link>::Transmit>, polls: u32) -> bool {
        let mut moved = false;
        let mut inbound = self.inbound.lock_in_background();
        for _ in 0..polls {
            if self.driver.attention().load(Ordering::Relaxed) {
                while let Some(event) = self.driver.next_event() {
                    moved = true;
                    if let Some(event) = take_event(&mut inbound, event) {
                        exchange.send_event(self.keep_end(event));
                    }
                }
            }
            // Notifications go into their queues: nobody here waits for one.
            let packets = inbound.poll(None).packets;
            while let Some((id, end)) = inbound.next_ended() {
                moved = true;
                exchange.send_event(DriverEvent::Ended(id, end));
            }
            if packets > 0 {
                moved = true;
                exchange.note_activity(packets);
            }
            if inbound.receiver.owes_answers() {
                moved |= self.answer(&mut inbound, exchange);
            }
            if self.inbound.is_wanted() {
                // A thread that takes messages need not wait until others are sent.
                drop(inbound);
                return self.pump(exchange) | moved;
            }
            moved |= self.pump(exchange);
        }
        moved
    }

    /// Takes the transmitting end of a new link, if it has that half: it answers before the
    /// application knows of the link.
    fn keep_end(
        &self,
        event: DriverEvent<<D::Link as Link>::Transmit>,
    ) -> DriverEvent<<D::Link as Link>::Transmit> {
        match (event, &self.outbound) {
            (DriverEvent::Linked(id, peer, Some(end)), Some(outbound)) => {
                outbound.lock_in_background().tx_links.insert(id, end);
                DriverEvent::Linked(id, peer, None)
            }
            (event, _) => event,
        }
    }

    /// Whether it sends messages, too, and not only answers.
    fn drives_transmit(&self) -> bool {
        self.strategy.transmit_holder() == Holder::Processor
    }

    /// Sends what others are to be answered. Whether anything went, or could go if the application
    /// were not at it.
    fn answer(
        &self,
        inbound: &mut Inbound<<D::Link as Link>::Receive, O>,
        exchange: &Exchange<<D::Link as Link>::Transmit>,
    ) -> bool {
        let Some(outbound) = &self.outbound else {
            return false;
        };
        let lent = match self.drives_transmit() {
            true => Some(outbound.lock_in_background()),
            false => outbound.try_in_background(),
        };
        // The application sends something just now: there is something to do still.
        let Some(mut outbound) = lent else {
            return true;
        };
        let sent = answers::answer(inbound, &mut outbound);
        let has_broken = outbound.tx_links.has_broken();
        drop(outbound);
        if has_broken {
            // The application ends the link.
            exchange.attention.store(true, Ordering::Relaxed);
        }
        // Of answers without room there is nothing to tell: program and network processor would
        // keep each other awake.
        if sent > 0 || has_broken {
            exchange.note_activity(sent as u64 + u64::from(has_broken));
        }
        sent > 0
    }

    /// Sends what the application queued. Whether there was anything to send and room for it.
    fn pump(&self, exchange: &Exchange<<D::Link as Link>::Transmit>) -> bool {
        let Some(outbound) = self.outbound.as_ref().filter(|_| self.drives_transmit()) else {
            return false;
        };
        if !exchange.posted.load(Ordering::Relaxed) {
            return false;
        }
        let mut outbound = outbound.lock_in_background();
        // Before the look at the queues: what is queued later sets it again.
        exchange.posted.store(false, Ordering::Relaxed);
        let sent = outbound.pump();
        if outbound.transmitter.is_waiting() {
            exchange.posted.store(true, Ordering::Relaxed);
        }
        let has_broken = outbound.tx_links.has_broken();
        drop(outbound);
        if has_broken {
            // The application ends the link.
            exchange.attention.store(true, Ordering::Relaxed);
        }
        if sent > 0 || has_broken {
            exchange.note_activity(sent as u64 + u64::from(has_broken));
        }
        sent > 0
    }

    fn sleep(&mut self, exchange: &Exchange<<D::Link as Link>::Transmit>) -> Result<(), HostError> {
        let mut due_ns = None;
        // Rings count from here on: some may be for the waits that are announced next.
        self.driver.prepare_sleep();
        let owes_answers = self.inbound.lock_in_background().receiver.owes_answers();
        let waits_for_credit = self.drives_transmit() || owes_answers;
        let mut credit_waits = 0;
        let awaited = self.outbound.as_ref().filter(|_| waits_for_credit);
        if let Some(outbound) = awaited {
            let mut outbound = outbound.lock_in_background();
            if self.drives_transmit() {
                due_ns = outbound.give_back_if_idle(self.driver.now_ns());
            }
            if outbound.tx_links.await_credit() {
                drop(outbound);
                self.driver.end_sleep();
                exchange.posted.store(true, Ordering::Relaxed);
                exchange.note_activity(1);
                return Ok(());
            }
            credit_waits = outbound.tx_links.credit_waits;
            let overflow_due_ns = outbound.tx_links.overflow_due_ns();
            due_ns = due_ns.into_iter().chain(overflow_due_ns).min();
        }
        exchange.asleep.store(true, Ordering::Relaxed);
        let again_ns = self
            .inbound
            .lock_in_background()
            .announce_sleep(|| self.driver.now_ns());
        due_ns = due_ns.into_iter().chain(again_ns).min();
        due_ns = due_ns.into_iter().chain(self.driver.pass_barrier()).min();
        fence(Ordering::SeqCst);
        self.inbound.lock_in_background().poll_all_next();
        // A peer or thread that saw us awake has sent, queued or stopped us by now: look once more.
        let moved = self.poll(exchange, 1);
        // Rings that came while we were awake were taken; they may have been the application's. So
        // may room be that this look has brought, over a wire.
        exchange.waiter.wake();
        // A link that ran out of room in this look was not told that somebody waits for it.
        let has_more = match self.outbound.as_ref().filter(|_| waits_for_credit) {
            Some(outbound) => {
                let outbound = outbound.lock_in_background();
                outbound.tx_links.credit_came() || outbound.tx_links.credit_waits != credit_waits
            }
            // Answers that the application left in this look are sent here, too.
            None => !owes_answers && self.inbound.lock_in_background().receiver.owes_answers(),
        };
        let result = if moved
            || has_more
            || exchange.stop.load(Ordering::Acquire)
            || self.driver.attention().load(Ordering::Relaxed)
        {
            Ok(())
        } else {
            self.driver.sleep(due_ns)
        };
        self.driver.end_sleep();
        self.inbound.lock_in_background().end_sleep();
        exchange.asleep.store(false, Ordering::Relaxed);
        result
    }
}

#[cfg(test)]
mod tests;

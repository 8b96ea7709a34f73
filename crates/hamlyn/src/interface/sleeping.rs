//! Threads and event loops wait at an interface: they poll for a while, sleep, and are woken
//! ([`super::sleepers`]).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use hamlyn_host::sharing::await_readable;
use hamlyn_host::{Driver, Host, HostError};

use super::Interface;
use super::sleepers::Joined;
use crate::half::Half;
use crate::wait::{Wait, WaitStep, Waiting};

/// How long to sleep elsewhere while others that were woken have not returned.
const NAP: Duration = Duration::from_millis(1);

impl<H: Host> Interface<H> {
    /// A thread is about to sleep, if nothing has happened since the activity was `before`, which
    /// was before it last looked at what it waits for: at the descriptor if it sleeps `elsewhere`,
    /// and in [`Interface::sleep_here`] otherwise, which only a thread may that has the interface
    /// to itself. If it is told to sleep, it calls [`Interface::leave_sleepers`] when it wakes.
    #[cold]
    pub(crate) fn join_sleepers(
        &mut self,
        before: u64,
        deadline_ns: Option<u64>,
        elsewhere: bool,
    ) -> Result<Joined, HostError> {
        self.end_look_due();
        if self.sleepers.is_any() {
            // The first of them did so as it announced its sleep.
            self.advance_all_tracked();
        }
        self.wake_sleepers_if_active();
        self.wake_sleepers_for_credit();
        if self.sleepers.is_any()
            && let Some(due_ns) = self.spare_due_ns
            && due_ns <= self.host.now_ns()
        {
            // The next announcement attends to what is due; this one has no time left.
            self.wake_sleepers();
        }
        if self.sleepers.is_over {
            return Ok(Joined::Crowded);
        }
        let until_ns = if self.sleepers.is_any() {
            if self.activity() != before || self.is_asked() {
                return Ok(Joined::Ready);
            }
            self.until(deadline_ns)
        } else {
            let Some(until_ns) = self.begin_sleep(before, deadline_ns) else {
                self.end_wait();
                return Ok(Joined::Ready);
            };
            if let Err(error) = self.leave_to_processor() {
                self.end_wait();
                return Err(error);
            }
            self.sleepers.told = before;
            // As announced: a thread that sends beside this one may have found a link full since.
            self.sleepers.credit_waits = self.announced_credit_waits.unwrap_or_default();
            let driver = self.driver.as_mut().filter(|_| elsewhere);
            let wants_ns = driver.and_then(|driver| driver.sleep_elsewhere());
            self.spare_due_ns = self.spare_due_ns.into_iter().chain(wants_ns).min();
            until_ns.into_iter().chain(wants_ns).min()
        };
        self.sleepers.count += 1;
        Ok(Joined::Asleep(until_ns))
    }

    /// Has all waits at this interface look again after so long at the latest, though nothing
    /// happens until then: blocking calls, event loops and tasks. For protocols with time-outs,
    /// which ask for it in each look, since the earliest time of all counts, once. Does not block
    /// or allocate.
    pub fn look_within(&mut self, span: Duration) {
        let span_ns = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let due_ns = self.host.now_ns().saturating_add(span_ns);
        // A look that is due is due now.
        self.end_look_due();
        if self.look_due_ns.is_none_or(|known_ns| due_ns < known_ns) {
            self.look_due_ns = Some(due_ns);
            // They may sleep for longer.
            self.wake_sleepers();
        }
    }

    /// If it is time to look again, that is news for all that wait.
    pub(crate) fn end_look_due(&mut self) {
        if let Some(due_ns) = self.look_due_ns
            && due_ns <= self.host.now_ns()
        {
            self.look_due_ns = None;
            self.other_activity += 1;
            self.ends_and_looks += 1;
        }
    }

    /// Counts the links that ended, and the times at which all were to look again.
    pub(crate) fn ends_and_looks(&self) -> u64 {
        self.ends_and_looks
    }

    /// Until when a sleep lasts that ends at that deadline at the latest.
    pub(super) fn until(&self, deadline_ns: Option<u64>) -> Option<u64> {
        let due_ns = [self.spare_due_ns, self.look_due_ns];
        due_ns.into_iter().flatten().chain(deadline_ns).min()
    }

    /// A thread that slept at the descriptor does so no longer.
    pub(crate) fn leave_sleepers(&mut self) {
        self.sleepers.count -= 1;
        if !self.sleepers.is_any() {
            self.sleepers.is_over = false;
            self.end_wait();
        } else if !self.sleepers.is_over {
            self.sleepers.is_over = self.is_rung();
        }
    }

    /// Whether a thread that was told to sleep may do so still.
    pub(crate) fn is_asleep(&self) -> bool {
        !self.sleepers.is_over && self.activity() == self.sleepers.told
    }

    fn is_rung(&self) -> bool {
        let rung = self
            .descriptor()
            .map(|descriptor| await_readable(descriptor, Some(Duration::ZERO)));
        matches!(rung, Some(Ok(true)))
    }

    /// Wakes those that sleep at the descriptor, if anything has happened since they went to sleep:
    /// it may have happened for one of them.
    #[cold]
    #[inline(never)]
    pub(crate) fn wake_sleepers_if_active(&mut self) {
        if self.sleepers.is_any() && !self.is_asleep() {
            self.wake_sleepers();
        }
    }

    /// Wakes them if a link ran out of room since they went to sleep, or is to answer a fence:
    /// peers ring only those that said that they wait for it.
    #[cold]
    #[inline(never)]
    pub(crate) fn wake_sleepers_for_credit(&mut self) {
        if self.sleepers.is_any()
            && !self.is_forked()
            && self.credit_waits() != self.sleepers.credit_waits
        {
            self.wake_sleepers();
        }
    }

    pub(super) fn credit_waits(&self) -> u64 {
        self.outbound
            .read(|outbound| outbound.tx_links.credit_waits)
    }

    /// Wakes them, so that they announce themselves anew.
    pub(crate) fn wake_sleepers(&mut self) {
        if self.is_forked() || !self.sleepers.is_any() {
            return;
        }
        if std::mem::replace(&mut self.sleepers.is_over, true) {
            return;
        }
        if self.sleepers.waker.is_none() {
            self.sleepers.waker = Some(self.waker());
        }
        if let Some(waker) = &self.sleepers.waker {
            waker();
        }
    }

    /// How long to wait when it is crowded.
    pub(crate) fn nap(&self, deadline_ns: Option<u64>) -> Duration {
        self.span_until(deadline_ns)
            .map_or(NAP, |span| span.min(NAP))
    }

    pub(crate) fn span_until(&self, deadline_ns: Option<u64>) -> Option<Duration> {
        let now_ns = self.host.now_ns();
        deadline_ns.map(|deadline_ns| Duration::from_nanos(deadline_ns.saturating_sub(now_ns)))
    }

    /// What is left of a wait.
    pub(crate) fn left(&self, waiting: &mut Waiting) -> Wait {
        waiting.left(|| self.host.now_ns())
    }

    /// What to do next in a wait. If that is to look again, what is to be done before is done.
    #[inline]
    pub(crate) fn step(&mut self, waiting: &mut Waiting) -> WaitStep {
        let next = waiting.next(&self.adaptive_spin, || self.host.now_ns());
        match next {
            WaitStep::Spin => {
                if !waiting.is_eager() {
                    self.host.relax(false);
                }
                if let Half::Own(inbound) = &mut self.inbound {
                    inbound.peek();
                }
            }
            WaitStep::Yield => {
                self.host.relax(true);
                waiting.resumed(&mut self.adaptive_spin, self.host.now_ns());
            }
            WaitStep::Stop | WaitStep::Sleep(_) => {}
        }
        next
    }

    /// What to do next in a wait that lets others have the interface meanwhile.
    pub(crate) fn next_step(&mut self, waiting: &mut Waiting) -> WaitStep {
        waiting.next(&self.adaptive_spin, || self.host.now_ns())
    }

    /// After [`WaitStep::Yield`].
    pub(crate) fn resumed(&mut self, waiting: &mut Waiting) {
        waiting.resumed(&mut self.adaptive_spin, self.host.now_ns());
    }

    /// Begins a sleep if nothing has happened since the activity was `before`, which was before the
    /// caller last looked at what it waits for: the network processor may have filled a queue
    /// since. Until when to sleep; nothing if there is something to look at.
    #[cold]
    pub(crate) fn begin_sleep(
        &mut self,
        before: u64,
        deadline_ns: Option<u64>,
    ) -> Option<Option<u64>> {
        self.prepare_wait();
        // All that was sent while we were awake can be seen by now: look once more. What that look
        // changes, the caller has not seen yet.
        self.poll();
        let until_ns = self.until(deadline_ns);
        let is_quiet = self.activity() == before && !self.is_asked() && !self.credit_came();
        is_quiet.then_some(until_ns)
    }

    /// Whether it waited for longer than polling is worth while.
    pub(crate) fn has_waited_long(&self, waiting: &Waiting) -> bool {
        self.adaptive_spin
            .is_long(waiting.waited_ns(self.host.now_ns()), self.host.spin_ns())
    }

    /// A wait came to sleeping, and what it waited for may have come.
    pub(crate) fn learn(&mut self, waiting: &Waiting) {
        let waited_ns = waiting.waited_ns(self.host.now_ns());
        self.adaptive_spin.slept(waited_ns, self.host.spin_ns());
    }

    /// The sleep of a thread that has the interface to itself.
    pub(crate) fn sleep_here(&mut self, deadline_ns: Option<u64>) -> Result<(), HostError> {
        if let Some(driver) = &mut self.driver {
            return driver.sleep(deadline_ns);
        }
        match &self.processor {
            Some(processor) => processor.exchange.waiter.wait(deadline_ns),
            None => Ok(()),
        }
    }

    /// The network processor, if there is one, is to be attentive: this thread is about to sleep.
    pub(crate) fn leave_to_processor(&self) -> Result<(), HostError> {
        let Some(processor) = &self.processor else {
            return Ok(());
        };
        if let Some(failure) = processor.exchange.failure() {
            return Err(failure);
        }
        processor.take_over();
        Ok(())
    }

    /// Ends a sleep of another thread at [`Interface::descriptor`].
    pub(crate) fn waker(&self) -> Box<dyn Fn() + Send + Sync> {
        match (&self.driver, &self.processor) {
            (Some(driver), _) => driver.waker(),
            (_, Some(processor)) => {
                let exchange = Arc::clone(&processor.exchange);
                Box::new(move || exchange.waiter.wake())
            }
            _ => Box::new(|| ()),
        }
    }

    fn credit_came(&self) -> bool {
        self.outbound
            .read(|outbound| outbound.tx_links.credit_came())
    }

    /// For event loops over an interface that has no manager; [`crate::Manager::prepare_sleep`] is
    /// one call for all of this, and polls before. Announces that this program is about to wait on
    /// [`Interface::descriptor`]. In order: note [`Interface::activity`]; look at your queues and
    /// end points; call this; [`Interface::poll`]; wait only if the activity is still the same; and
    /// call [`Interface::end_wait`] in any case. Returns for how long to wait at most: then memory
    /// can be given back, or a peer that could not be woken can be tried again.
    pub fn prepare_wait(&mut self) -> Option<Duration> {
        if self.is_forked() {
            return None;
        }
        self.end_look_due();
        let now_ns = self.host.now_ns();
        // Memory is given back by a program that is not interrupted.
        let is_own = !self.outbound.is_shared() && !self.is_interrupt;
        // Rings count from here on: some may be for the waits that are announced next.
        if let Some(driver) = &mut self.driver {
            driver.prepare_sleep();
        }
        if let Some(processor) = &self.processor {
            processor.exchange.waiter.prepare();
        }
        self.advance_all_tracked();
        let (spare_due_ns, has_room, is_awaiting) = self.outbound.lock(|outbound| {
            // Otherwise the network processor sees to it.
            let due_ns = is_own.then(|| outbound.give_back_if_idle(now_ns));
            let has_room = outbound.tx_links.await_credit();
            let overflow_due_ns = outbound.tx_links.overflow_due_ns();
            let due_ns = due_ns.flatten().into_iter().chain(overflow_due_ns).min();
            self.announced_credit_waits = Some(outbound.tx_links.credit_waits);
            (due_ns, has_room, outbound.tx_links.is_awaiting)
        });
        self.other_activity += u64::from(has_room);
        let due_ns = match (&mut self.inbound, &mut self.driver) {
            (Half::Own(inbound), Some(driver)) => {
                let again_ns = inbound.announce_sleep(|| now_ns);
                let due_ns = [spare_due_ns, again_ns, driver.pass_barrier()];
                inbound.poll_all_next();
                due_ns
            }
            // A network processor receives. The waits for credit were announced here, all the same.
            _ if is_awaiting => [spare_due_ns, self.host.pass_barrier(), None],
            _ => [spare_due_ns, None, None],
        };
        self.spare_due_ns = due_ns.into_iter().flatten().min();
        let due_ns = self.until(None)?;
        Some(Duration::from_nanos(due_ns.saturating_sub(now_ns)))
    }

    /// Ends what [`Interface::prepare_wait`] began.
    pub fn end_wait(&mut self) {
        if self.is_forked() {
            return;
        }
        let was_listening = self.announced_credit_waits.take().is_some();
        if let Some(listener) = self.listener.as_ref().filter(|_| was_listening) {
            listener();
        }
        if let (Half::Own(inbound), Some(driver)) = (&mut self.inbound, &mut self.driver) {
            driver.end_sleep();
            inbound.end_sleep();
        }
        if let Some(processor) = &self.processor {
            processor.exchange.waiter.end();
        }
    }

    /// A descriptor that becomes readable when there may be something to do,
    /// between [`Interface::prepare_wait`] and [`Interface::end_wait`]. None in a simulator.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.shared_descriptor()
            .map(|descriptor| descriptor.as_fd())
    }

    /// As [`Interface::descriptor`], for those who outlive a borrow of the interface.
    pub(crate) fn shared_descriptor(&self) -> Option<&Arc<OwnedFd>> {
        match (&self.driver, &self.processor) {
            (Some(driver), _) => driver.descriptor(),
            (_, Some(processor)) => processor.exchange.waiter.descriptor(),
            _ => None,
        }
    }
}

//! Threads and event loops go to sleep at an interface, and are woken ([`super::sleepers`]).

use std::time::Duration;

use hamlyn_host::sharing::await_readable;
use hamlyn_host::{Driver, Host, HostError};

use super::Interface;
use super::sleepers::Joined;

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
}

//! The part of the simulated host for the thread that drives the interface.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hamlyn_engine::point::Point;
use hamlyn_host::{Driver, Event, HostError};

use crate::link::SimLink;
use crate::time::{Span, Time};
use crate::world::{clock, kernel, task};

/// See the module.
pub struct SimDriver {
    interface: u32,
    attention: Arc<AtomicBool>,
}

impl SimDriver {
    pub(super) fn new(interface: u32, attention: Arc<AtomicBool>) -> Self {
        Self {
            interface,
            attention,
        }
    }

    /// Where senders may be late to ring, time passes between the steps that lead to a sleep: these
    /// are system calls.
    fn let_others(&self) {
        let takes = kernel::with(|kernel| {
            kernel.charge(kernel.settings.costs.step);
            kernel.settings.ring_delay != Span::ZERO
        });
        if takes {
            task::wait(Some(Time::ZERO));
        }
    }
}

impl Driver for SimDriver {
    type Link = SimLink;

    fn attention(&self) -> &Arc<AtomicBool> {
        &self.attention
    }

    fn next_event(&mut self) -> Option<Event<SimLink>> {
        kernel::with(|kernel| kernel.next_event(self.interface))
    }

    fn prepare_sleep(&mut self) {
        self.let_others();
        kernel::with(|kernel| {
            kernel.listen(self.interface);
            kernel.note_listening(self.interface, true);
        });
    }

    fn pass_barrier(&mut self) -> Option<u64> {
        kernel::with(|kernel| kernel.channels.pass_barrier(self.interface));
        self.let_others();
        None
    }

    fn sleep(&mut self, deadline_ns: Option<u64>) -> Result<(), HostError> {
        if kernel::with(|kernel| kernel.fall_asleep(self.interface)) {
            task::wait(deadline_ns.map(clock::time_of));
            kernel::with(|kernel| kernel.wake_up(self.interface));
            kernel::pass(Point::Woken);
        }
        Ok(())
    }

    fn end_sleep(&mut self) {
        kernel::with(|kernel| kernel.note_listening(self.interface, false));
    }

    fn waker(&self) -> Box<dyn Fn() + Send + Sync> {
        let interface = self.interface;
        Box::new(move || kernel::with_if_any(|kernel| kernel.ring(interface)))
    }

    fn now_ns(&self) -> u64 {
        clock::clock_ns()
    }

    fn descriptor(&self) -> Option<&Arc<OwnedFd>> {
        None
    }

    fn park(&mut self, span_ns: u64) {
        match span_ns {
            0 => super::relax(self.interface),
            _ => task::park(clock::time_of(clock::clock_ns() + span_ns)),
        }
    }
}

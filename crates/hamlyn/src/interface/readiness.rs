//! Things of an interface that may have something for a program, and the tasks that wait for them.

use hamlyn_engine::table::Name;
use hamlyn_host::Host;

use super::Interface;
use crate::outbound::Outbound;
use crate::source::Source;
use crate::tasks::{Interest, Tasks, Woken};

impl<H: Host> Interface<H> {
    /// True if something can be taken from it at once: a message, an error that says that messages
    /// were lost, or a completion. Does not move packets.
    pub fn is_ready(&mut self, source: Source<'_>) -> bool {
        if self.is_forked() {
            return false;
        }
        match source {
            Source::Messages(queue) => queue.reader.is_pending(),
            Source::Port(port) => self.has_message(port),
            Source::PortOf(name) => self.has_message_of(&name),
            Source::PortSet(set) => self.has_message(set),
            Source::Completions(queue) => {
                queue.is_of(&self.leaving) && self.has_completion(queue.name)
            }
        }
    }

    /// True if [`Interface::next_completion`] would return something without moving packets.
    fn has_completion(&mut self, queue: Name) -> bool {
        let has_returned = |outbound: &mut Outbound<_, _>| outbound.tx_links.has_returned();
        self.tracking.is_ready(queue)
            || self.tracking.refusals_to == Some(queue) && self.outbound.lock(has_returned)
    }

    /// Takes the tasks that wait for what is ready, but for arrivals, of which the manager knows.
    /// Does not move packets.
    pub(crate) fn take_ready(&mut self, tasks: &mut Tasks, woken: &mut Woken) {
        tasks.take_ready(woken, |interest| match interest {
            Interest::Anything => true,
            Interest::Messages(unread, _) => unread.is_any(),
            Interest::Message(entries) => entries.first().is_none_or(|entry| !entry.is_armed()),
            Interest::Completions(queue) => self.has_completion(*queue),
            Interest::Arrivals(..)
            | Interest::Port(_)
            | Interest::PortSet(_)
            | Interest::Fence(..) => false,
        });
        // Apart, as a network processor steps aside for a look at its half.
        if tasks.is_any(|interest| matches!(interest, Interest::Port(_) | Interest::PortSet(_))) {
            self.inbound.read(|inbound| {
                tasks.take_ready(woken, |interest| match interest {
                    Interest::Port(port) => !inbound.receiver.is_port_empty(*port),
                    Interest::PortSet(set) => !inbound.receiver.is_port_set_empty(*set),
                    _ => false,
                });
            });
        }
        if tasks.is_any(Interest::is_of_sender) {
            self.outbound.lock(|outbound| {
                let tx_links = &mut outbound.tx_links;
                tasks.take_ready(woken, |interest| match interest {
                    Interest::Fence(link, fence) => tx_links.is_fence_over(*link, *fence),
                    Interest::Messages(_, Some(answerer))
                    | Interest::Arrivals(_, Some(answerer)) => {
                        tx_links.is_gone(answerer.link, answerer.slot, false)
                    }
                    _ => false,
                });
            });
        }
    }
}

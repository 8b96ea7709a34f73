//! Parties: what a test is made of.
//!
//! A test is written once. Each party is straight code over a [`Party`]; whether it has a thread, a process, or shares one
//! interface with all others is the business of the [`World`](crate::World). There is one program for each type of host, so
//! nothing here is generic.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hamlyn::{Manager, ReceiveError, SendError, Strategy, Ticket, Wait};

use crate::Host;
pub(crate) use crate::{now, pause};

/// How long a test waits for what must happen; far longer than it takes.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// What one party does.
pub(crate) type Role<'a> = &'a (dyn Fn(&mut Party) + Sync);

/// Words that parties say to each other besides their messages: tickets and seeds, mostly.
pub(crate) trait Post: Send + Sync {
    fn put(&self, word: &str, bytes: &[u8]);
    fn get(&self, word: &str) -> Option<Vec<u8>>;
}

pub(crate) struct Party {
    pub(crate) manager: Manager<Host>,
    /// Under which others find that.
    pub(crate) name: String,
    /// Where several are on one thread and share an interface: whose turn it is.
    pub(crate) turn: Option<Arc<Mutex<()>>>,
    pub(crate) post: Arc<dyn Post>,
    /// Who drives its interface.
    pub(crate) strategy: Strategy,
    /// Whether messages from one interface to another are announced in the order in which they were sent.
    pub(crate) is_in_order: bool,
    /// How long its receiving calls may take. [`Wait::Poll`] if it shares its interface.
    pub(crate) wait: Wait,
}

impl Party {
    /// Something that takes no time.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&Manager<Host>) -> R) -> R {
        let _turn = self.turn.as_deref().map(crate::lock);
        act(&self.manager)
    }

    /// Whether all parties share one interface.
    pub(crate) fn shares_interface(&self) -> bool {
        self.wait == Wait::Poll
    }

    /// Whether what is sent may be received while no party asks for it.
    pub(crate) fn receives_unasked(&self) -> bool {
        self.shares_interface() || self.strategy != Strategy::Proc
    }

    /// Repeats `look` until it finds something.
    pub(crate) fn until<R>(
        &self,
        what: &str,
        mut look: impl FnMut(&Manager<Host>, Wait) -> Option<R>,
    ) -> R {
        let begun = now();
        loop {
            if let Some(found) = self.with(|manager| look(manager, self.wait)) {
                return found;
            }
            assert!(now() - begun < TIMEOUT, "{what}: it did not come");
            pause();
        }
    }

    /// A receiving call, repeated until there is something.
    pub(crate) fn receive<R>(
        &self,
        what: &str,
        mut call: impl FnMut(&Manager<Host>, Wait) -> Result<Option<R>, ReceiveError>,
    ) -> R {
        self.until(what, |manager, wait| {
            call(manager, wait).unwrap_or_else(|e| panic!("{what}: {e}"))
        })
    }

    /// A sending call, repeated while it would block.
    pub(crate) fn send<R>(
        &self,
        mut call: impl FnMut(&Manager<Host>, Wait) -> Result<R, SendError>,
    ) -> Result<R, SendError> {
        self.until("sending", |manager, wait| {
            let result = call(manager, wait);
            if let Err(SendError::WouldBlock { .. }) = result {
                manager.interface().poll();
                return None;
            }
            Some(result)
        })
    }

    /// Waits until what was sent is handed to the links, whoever does that.
    pub(crate) fn flush(&self) {
        self.until("handing over", |manager, wait| {
            let flushed = manager.interface().flush(wait).unwrap();
            flushed.then_some(())
        });
    }

    /// Says a word.
    pub(crate) fn tell(&self, word: &str, bytes: &[u8]) {
        self.post.put(word, bytes);
    }

    /// Waits for a word, and moves packets meanwhile.
    pub(crate) fn hear(&self, word: &str) -> Vec<u8> {
        self.until(word, |manager, _| {
            let found = self.post.get(word);
            if found.is_none() {
                manager.interface().poll();
            }
            found
        })
    }

    /// Waits for a word without a look at the interface.
    pub(crate) fn hear_only(&self, word: &str) -> Vec<u8> {
        let begun = now();
        loop {
            if let Some(found) = self.post.get(word) {
                return found;
            }
            assert!(now() - begun < TIMEOUT, "{word}: it did not come");
            pause();
        }
    }

    /// Runs the role, and stays until all others are through: the end of a peer interrupts waits.
    pub(crate) fn play(&mut self, role: Role<'_>, number: usize, count: usize) {
        role(self);
        self.tell(&format!("end of {number}"), &[]);
        for other in 0..count {
            self.hear(&format!("end of {other}"));
        }
    }

    /// Where messages come in any order, waits for that word: what is sent next must not overtake what was sent before.
    pub(crate) fn keep_order(&self, word: &str) {
        if !self.is_in_order {
            self.hear(word);
        }
    }

    /// What was found, as if it had come in order: sorted, where it comes in any.
    pub(crate) fn in_order<T: Ord>(&self, mut found: Vec<T>) -> Vec<T> {
        if !self.is_in_order {
            found.sort_unstable();
        }
        found
    }

    /// How much has happened here, for [`Party::taken`]. Nothing but arrivals may happen afterwards: the link must be there.
    pub(crate) fn activity(&self) -> u64 {
        self.with(|manager| manager.interface().activity())
    }

    /// Moves packets until what was sent is taken. Where a word tells nothing about that, until there were so many more of them.
    pub(crate) fn taken(&self, before: u64, packets: u64) {
        if !self.is_in_order {
            self.until("all packets", |manager, _| {
                manager.interface().poll();
                (manager.interface().activity() >= before + packets).then_some(())
            });
        }
        self.with(|manager| manager.interface().poll());
    }

    /// Waits until somebody is linked to this party.
    pub(crate) fn linked(&self) {
        self.until("a link", |manager, _| {
            manager.interface().poll();
            manager.interface().peers().next().is_some().then_some(())
        });
    }

    /// Says where others find what is bound to that item.
    pub(crate) fn tell_address(&self, item: &str) {
        self.tell(item, format!("{}/{item}", self.name).as_bytes());
    }

    /// Waits until something is bound to that item; where.
    pub(crate) fn hear_address(&self, item: &str) -> String {
        String::from_utf8(self.hear(item)).unwrap()
    }

    /// Says a ticket.
    pub(crate) fn tell_ticket(&self, word: &str, ticket: &Ticket) {
        self.tell(word, &ticket.to_bytes());
    }

    /// Waits for a ticket.
    pub(crate) fn hear_ticket(&self, word: &str) -> Ticket {
        Ticket::from_bytes(&self.hear(word)).unwrap()
    }
}

/// Bytes that tell where they belong.
pub(crate) fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        })
        .collect()
}

//! Peers: what a test is made of.
//!
//! A test is written once. Each peer is straight code over a [`Peer`]; whether it has a thread, a
//! process, or shares one interface with all others is the business of the [`World`](crate::World).
//! There is one program for each type of host, so nothing here is generic.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hamlyn::{Manager, ReceiveError, SendError, Strategy, Ticket, Wait};

use crate::Host;
pub(crate) use crate::{now, pause_after};

/// How long a test waits for what must happen; far longer than it takes.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// Called between two looks at something that has not come.
pub(crate) fn pause() {
    pause_after(Duration::ZERO);
}

/// What one peer does.
pub(crate) type Role<'a> = &'a (dyn Fn(&mut Peer) + Sync);

/// What peers publish for each other besides their messages, by key: tickets and seeds, mostly.
pub(crate) trait KeyValues: Send + Sync {
    fn put(&self, key: &str, bytes: &[u8]);
    fn get(&self, key: &str) -> Option<Vec<u8>>;
}

pub(crate) struct Peer {
    pub(crate) manager: Manager<Host>,
    /// Under which others find that.
    pub(crate) name: String,
    /// Where several are on one thread and share an interface: whose turn it is.
    pub(crate) turn: Option<Arc<Mutex<()>>>,
    pub(crate) key_values: Arc<dyn KeyValues>,
    /// Who drives its interface.
    pub(crate) strategy: Strategy,
    /// Whether messages from one interface to another are announced in the order in which they were
    /// sent.
    pub(crate) is_in_order: bool,
    /// How long its receiving calls may take. [`Wait::Poll`] if it shares its interface.
    pub(crate) wait: Wait,
}

impl Peer {
    /// Something that takes no time.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&Manager<Host>) -> R) -> R {
        let _turn = self.turn.as_deref().map(crate::lock);
        act(&self.manager)
    }

    /// Whether all peers share one interface.
    pub(crate) fn shares_interface(&self) -> bool {
        self.wait == Wait::Poll
    }

    /// Whether what is sent may be received while no peer asks for it.
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
            let waited = now() - begun;
            assert!(waited < TIMEOUT, "{what}: it did not come");
            pause_after(waited);
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
                manager.session().poll();
                return None;
            }
            Some(result)
        })
    }

    /// Waits until what was sent is handed to the links, by whichever thread drives the transmit
    /// half.
    pub(crate) fn flush(&self) {
        self.until("handing over", |manager, wait| {
            let flushed = manager.session().flush(wait).unwrap();
            flushed.then_some(())
        });
    }

    /// Publishes a value.
    pub(crate) fn put(&self, key: &str, bytes: &[u8]) {
        self.key_values.put(key, bytes);
    }

    /// Waits for the value of a key, and moves packets meanwhile.
    pub(crate) fn get(&self, key: &str) -> Vec<u8> {
        self.until(key, |manager, _| {
            let found = self.key_values.get(key);
            if found.is_none() {
                manager.session().poll();
            }
            found
        })
    }

    /// Waits for the value of a key without a look at the interface.
    pub(crate) fn get_without_polling(&self, key: &str) -> Vec<u8> {
        let begun = now();
        loop {
            if let Some(found) = self.key_values.get(key) {
                return found;
            }
            let waited = now() - begun;
            assert!(waited < TIMEOUT, "{key}: it did not come");
            pause_after(waited);
        }
    }

    /// Runs the role, and stays until all others are through: the end of a peer interrupts waits.
    pub(crate) fn play(&mut self, role: Role<'_>, number: usize, count: usize) {
        role(self);
        self.put(&format!("end of {number}"), &[]);
        for other in 0..count {
            self.get(&format!("end of {other}"));
        }
    }

    /// Where messages come in any order, waits for the value of that key: what is sent next must
    /// not overtake what was sent before.
    pub(crate) fn keep_order(&self, key: &str) {
        if !self.is_in_order {
            self.get(key);
        }
    }

    /// What was found, as if it had come in order: sorted, where it comes in any.
    pub(crate) fn in_order<T: Ord>(&self, mut found: Vec<T>) -> Vec<T> {
        if !self.is_in_order {
            found.sort_unstable();
        }
        found
    }

    /// How much has happened here, for [`Peer::taken`]. Nothing but arrivals may happen afterwards:
    /// the link must be there.
    pub(crate) fn activity(&self) -> u64 {
        self.with(|manager| manager.session().activity())
    }

    /// Moves packets until what was sent is taken. Where no key tells that, until there were so
    /// many more of them.
    pub(crate) fn taken(&self, before: u64, packets: u64) {
        if !self.is_in_order {
            self.until("all packets", |manager, _| {
                manager.session().poll();
                (manager.session().activity() >= before + packets).then_some(())
            });
        }
        self.with(|manager| manager.session().poll());
    }

    /// Waits until somebody is linked to this peer.
    pub(crate) fn linked(&self) {
        self.until("a link", |manager, _| {
            manager.session().poll();
            manager.session().peers().next().is_some().then_some(())
        });
    }

    /// Ends all links of this peer.
    pub(crate) fn end_links(&self) {
        self.with(|manager| {
            let mut session = manager.session();
            let links: Vec<_> = session.peers().map(|(link, _)| link).collect();
            links.into_iter().for_each(|link| session.disconnect(link));
        });
    }

    /// Waits until nobody is linked to this peer.
    pub(crate) fn unlinked(&self) {
        self.until("the end of the link", |manager, _| {
            let mut session = manager.session();
            session.poll();
            session.peers().next().is_none().then_some(())
        });
    }

    /// Publishes the address at which others find what is bound to that item.
    pub(crate) fn put_address(&self, item: &str) {
        self.put(item, format!("{}/{item}", self.name).as_bytes());
    }

    /// Waits until something is bound to that item; returns its address.
    pub(crate) fn get_address(&self, item: &str) -> String {
        String::from_utf8(self.get(item)).unwrap()
    }

    /// Publishes a ticket.
    pub(crate) fn put_ticket(&self, key: &str, ticket: &Ticket) {
        self.put(key, &ticket.to_bytes());
    }

    /// Waits for a ticket.
    pub(crate) fn get_ticket(&self, key: &str) -> Ticket {
        Ticket::from_bytes(&self.get(key)).unwrap()
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

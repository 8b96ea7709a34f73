//! Messages over Active Messages: requests with numbers, which a handler keeps until they are
//! received.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use hamlyn::host::process::ProcessHost;
use hamlyn::{Host, Wait};
use hamlyn_am::{Blocked, Bundle, Endpoint, Error, Node, POLL_MESSAGES_MAX, Tag};
use hamlyn_udm::GroupOptions;

use crate::courier::{BYTES_PER_NODE, Courier, Incoming};
use crate::error::CrlError;
use crate::id::NODES_MAX;
use crate::message::WORDS_MAX;
use crate::peers::{ACKNOWLEDGED, LEFT, MESSAGE, Packet, Peer, Peers, WATCH};

/// Messages to one node that wait to be sent, from which on a sender waits.
const WAITING_MAX: usize = 4096;
/// Time after which a message that found no room in its link is tried again.
const ROOM_NS: u64 = 1_000_000;

/// Carries messages over an endpoint of Active Messages.
///
/// Messages that a node does not take wait at their senders, and leave in calls of these; a flush
/// waits until all are taken. A node that takes none of 4,096 messages for as long as messages may
/// be refused ([`NodeOptions::congestion`](hamlyn_am::NodeOptions::congestion)) is lost; so is one
/// that breaks the rules, and one whose courier is dropped.
pub struct AmCourier<H: Host = ProcessHost> {
    me: u32,
    peers: Rc<RefCell<Peers>>,
    endpoint: Endpoint<H>,
    /// Its requests are outstanding as long as their receivers are there.
    watcher: Endpoint<H>,
    bundle: Bundle<H>,
    node: Node<H>,
    piece_bytes: usize,
    congestion: Duration,
    /// Something waits to be sent of whose room nobody tells.
    waits_for_room: bool,
}

impl<H: Host> AmCourier<H> {
    /// Opens the end point of that name at this node of a program, whose other nodes have the
    /// addresses of the description. Blocks until all have opened theirs, three times as long as
    /// `wait` says for each at most. Allocates. A name is good for one courier of a node: others
    /// may still find that which was dropped.
    ///
    /// # Errors
    ///
    /// A node could not be reached in time, there is no memory, or too many nodes.
    pub fn open(
        node: &Node<H>,
        program: &GroupOptions,
        name: &str,
        wait: Wait,
    ) -> Result<Self, CrlError> {
        let (me, nodes) = (program.me, program.addresses.len() as u32);
        if nodes > NODES_MAX || me >= nodes {
            return Err(CrlError::Nodes { me, nodes });
        }
        let opened = Self::open_endpoints(node, me);
        let mut courier = opened.map_err(|error| CrlError::join(&error))?;
        let item = format!("crl.{}.{name}", program.name);
        let own = courier.endpoint.name().and_then(|own| {
            node.publish(&item, &own)?;
            Ok(own)
        });
        let own = own.map_err(|error| CrlError::join(&error))?;
        let mut met = Vec::new();
        for step in 0..nodes {
            // Not all ask one at the same time.
            let other = (me + step) % nodes;
            let peer = match other == me {
                true => Ok(own),
                false => node.look_up(&program.addresses[other as usize], &item, wait),
            };
            let peer = peer.and_then(|peer| {
                let over = courier.endpoint.map(&peer, Tag::Any, wait)?;
                let watch_over = courier.watcher.map(&peer, Tag::Any, wait)?;
                let most_bytes = courier.endpoint.medium_bytes_max(&over)?;
                courier.piece_bytes = courier.piece_bytes.min(most_bytes);
                Ok(Peer::new([over, watch_over], peer.interface()))
            });
            let not_met = |error| CrlError::join(&format!("node {other} was not met: {error}"));
            met.push(peer.map_err(not_met)?);
        }
        let (bytes, least_bytes) = (courier.piece_bytes, BYTES_PER_NODE * met.len());
        if bytes < least_bytes {
            return Err(CrlError::join(&format!(
                "its messages have {bytes} bytes, and {nodes} nodes need {least_bytes}: set a greater `medium_bytes_max`"
            )));
        }
        met.rotate_right(me as usize);
        courier.peers.borrow_mut().peers = met;
        courier.peers.borrow_mut().unwatched = (0..nodes).collect();
        let watches = |it: &Self| Ok(it.peers.borrow().unwatched.is_empty());
        match courier.serve_until(wait, watches) {
            Ok(true) => Ok(courier),
            Ok(false) => Err(CrlError::join(&"not all nodes could be watched in time")),
            Err(cause) => Err(CrlError::join(&cause)),
        }
    }

    fn open_endpoints(node: &Node<H>, me: u32) -> Result<Self, Error> {
        let bundle = node.bundle()?;
        let (mut endpoint, mut watcher) = (bundle.endpoint()?, bundle.endpoint()?);
        // Its name, which is told to those alone who know that of the program, is a secret.
        endpoint.set_tag(Tag::Any)?;
        let peers: Rc<RefCell<Peers>> = Rc::default();
        let own = Rc::clone(&peers);
        endpoint.on_any(MESSAGE, move |call, data, arguments| {
            own.borrow_mut().take(call, &data, arguments);
            Ok(())
        })?;
        let own = Rc::clone(&peers);
        endpoint.on_short(ACKNOWLEDGED, move |call, arguments| {
            own.borrow_mut().acknowledged(call, arguments);
            Ok(())
        })?;
        let own = Rc::clone(&peers);
        endpoint.on_short(WATCH, move |call, arguments| {
            own.borrow_mut().watched(call, arguments);
            Ok(())
        })?;
        let own = Rc::clone(&peers);
        watcher.on_short(LEFT, move |call, arguments| {
            own.borrow_mut().left(call, arguments);
            Ok(())
        })?;
        for endpoint in [&mut endpoint, &mut watcher] {
            let own = Rc::clone(&peers);
            endpoint.on_returned(move |back| own.borrow_mut().returned(back))?;
        }
        Ok(Self {
            me,
            peers,
            endpoint,
            watcher,
            bundle,
            congestion: node.options()?.congestion,
            node: node.clone(),
            piece_bytes: usize::MAX,
            waits_for_room: false,
        })
    }

    /// Sends what waits to be sent, as far as it can be. What was not sent waits on, also after an
    /// error, of which the first is told.
    fn send_waiting(&mut self) -> Result<(), Error> {
        self.waits_for_room = false;
        if !self.peers.borrow().answers.is_empty() {
            self.send_answers()?;
        }
        let (busy, unwatched) = {
            let peers = self.peers.borrow();
            (peers.busy, peers.unwatched)
        };
        let mut result = Ok(());
        for node in unwatched.iter() {
            result = result.and(self.watch(node));
        }
        for node in busy.iter() {
            result = result.and(self.send_to(node));
        }
        result
    }

    fn send_answers(&mut self) -> Result<(), Error> {
        // In a handler nothing can be sent, and an answer that is tried there is gone.
        self.endpoint.is_resident()?;
        let answers = std::mem::take(&mut self.peers.borrow_mut().answers);
        for (to, handler, number) in answers {
            // One that cannot be sent is for a link that has ended.
            let _ = self.endpoint.reply(to, handler, &[number, self.me]);
        }
        Ok(())
    }

    fn watch(&mut self, node: u32) -> Result<(), Error> {
        let over = self.peers.borrow().peers[node as usize].over[1];
        let watched = self
            .watcher
            .request(&over, WATCH, &[0, self.me], Wait::Poll);
        if self.was_sent(node, watched)? {
            self.peers.borrow_mut().unwatched.remove(node);
        }
        Ok(())
    }

    /// Sends messages to a node, as many as it can take now.
    fn send_to(&mut self, node: u32) -> Result<(), Error> {
        loop {
            let Some((over, packet)) = self.peers.borrow_mut().next_to(node) else {
                return Ok(());
            };
            let arguments = packet.arguments();
            // It runs no handlers.
            let (endpoint, wait) = (&self.endpoint, Wait::Poll);
            let sent = match &packet.bytes[..] {
                [] => endpoint.request(&over, MESSAGE, arguments, wait),
                bytes => endpoint.request_medium(&over, MESSAGE, bytes, arguments, wait),
            };
            let was_sent = self.was_sent(node, sent);
            if was_sent != Ok(true) {
                self.peers.borrow_mut().put_back(node, packet);
                return was_sent.map(drop);
            }
        }
    }

    /// False if it is to be sent later. To a node that is gone nothing is.
    fn was_sent(&mut self, node: u32, sent: Result<(), Error>) -> Result<bool, Error> {
        match sent {
            Ok(()) => Ok(true),
            Err(Error::WouldBlock(by)) => {
                self.waits_for_room |= by != Blocked::Credit;
                Ok(false)
            }
            Err(Error::PeerLost(_)) => {
                // The messages that it had sent come first.
                let [over, _] = self.peers.borrow().peers[node as usize].over;
                let is_drained = self.endpoint.is_drained(&over)?;
                match is_drained {
                    true => self.peers.borrow_mut().leaving.insert(node),
                    false => self.waits_for_room = true,
                }
                Ok(is_drained)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes what comes and sends what waits, until that holds; false if it does not in that time.
    fn serve_until(
        &mut self,
        wait: Wait,
        holds: impl Fn(&Self) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let span_ns = match wait {
            Wait::Poll => 0,
            Wait::For(span) => u64::try_from(span.as_nanos()).unwrap_or(u64::MAX),
            Wait::Forever => u64::MAX,
        };
        let is_timed = !matches!(span_ns, 0 | u64::MAX);
        let now_ns = |it: &Self| if is_timed { it.node.now_ns() } else { Ok(0) };
        let begun_ns = now_ns(self)?;
        let mut is_over = false;
        loop {
            self.send_waiting()?;
            if holds(self)? {
                return Ok(true);
            }
            if is_over {
                return Ok(false);
            }
            let elapsed_ns = now_ns(self)?.saturating_sub(begun_ns);
            let left_ns = span_ns.saturating_sub(elapsed_ns);
            is_over = left_ns == 0;
            let leaving = self.peers.borrow().leaving;
            let most_ns = match self.waits_for_room {
                _ if !leaving.is_empty() => 0,
                true => ROOM_NS,
                false => u64::MAX,
            };
            let handled = match left_ns.min(most_ns) {
                0 => self.bundle.poll()?,
                u64::MAX => self.bundle.serve(Wait::Forever)?,
                step_ns => (self.bundle).serve(Duration::from_nanos(step_ns).into())?,
            };
            if handled < POLL_MESSAGES_MAX {
                // All that they had sent was taken.
                self.peers.borrow_mut().lose_all(leaving);
            }
        }
    }
}

impl<H: Host> Courier for AmCourier<H> {
    fn me(&self) -> u32 {
        self.me
    }

    fn nodes(&self) -> u32 {
        self.peers.borrow().peers.len() as u32
    }

    fn piece_bytes(&self) -> usize {
        self.piece_bytes
    }

    fn send(&mut self, to: u32, kind: u8, words: &[u32], bytes: &[u8]) -> Result<(), String> {
        let cause = |error: Error| error.to_string();
        if to >= self.nodes() {
            return Err(format!("there is no node {to}"));
        }
        let packet = Packet::new(self.me, kind, words, bytes)
            .ok_or_else(|| format!("a message has {WORDS_MAX} words at most"))?;
        if !self.peers.borrow_mut().push(to, packet) {
            return Ok(());
        }
        // It is accepted: if an error keeps it here, the next call that waits for anything tells
        // that, or goes on with it.
        let _ = self.send_to(to);
        let has_room = |it: &Self| Ok(it.peers.borrow().waiting(to) < WAITING_MAX);
        if !has_room(self).map_err(cause)? {
            let wait = Wait::For(self.congestion);
            if !self.serve_until(wait, has_room).map_err(cause)? {
                self.peers.borrow_mut().lose(to);
            }
        }
        Ok(())
    }

    fn receive(&mut self, wait: Wait) -> Result<Option<Incoming>, String> {
        let next = |it: &Self| it.peers.borrow_mut().inbox.pop_front();
        if let Some(incoming) = next(self) {
            return Ok(Some(incoming));
        }
        let has_come = |it: &Self| Ok(!it.peers.borrow().inbox.is_empty());
        let served = self.serve_until(wait, has_come);
        served.map_err(|error| error.to_string())?;
        Ok(next(self))
    }

    fn flush(&mut self, wait: Wait) -> Result<bool, String> {
        let is_taken =
            |it: &Self| Ok(it.peers.borrow().is_idle() && it.endpoint.outstanding()? == 0);
        let flushed = self.serve_until(wait, is_taken);
        let flushed = flushed.and_then(|is_taken| Ok(is_taken && self.node.flush(wait)?));
        flushed.map_err(|error| error.to_string())
    }
}

impl<H: Host> Drop for AmCourier<H> {
    fn drop(&mut self) {
        for watch in self.peers.borrow_mut().leave() {
            // The end of its link tells a node that cannot be told.
            let _ = self.endpoint.reply(watch, LEFT, &[0, self.me]);
        }
    }
}

impl<H: Host> std::fmt::Debug for AmCourier<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AmCourier")
            .field("me", &self.me)
            .field("nodes", &self.nodes())
            .finish_non_exhaustive()
    }
}

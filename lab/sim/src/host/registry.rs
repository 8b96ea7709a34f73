//! The interfaces of a world, and the links between them: what a kernel and its sockets do
//! elsewhere.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hamlyn_host::offers::{Asker, Offers};
use hamlyn_host::process::RendezvousCounters;
use hamlyn_host::process::codec::REPLIES_BYTES_MAX;
use hamlyn_host::question::{Question, Replies};
use hamlyn_host::{Address, Destination, Event, LossCause, Peer};
use hamlyn_ring::region::{ReceivedRegion, RegionFiles};

use crate::link::channel::AtRest;
use crate::link::{ChannelLink, SimLink};
use crate::time::Time;
use crate::world::kernel::Kernel;

/// One end of a link.
#[derive(Clone, Copy, Debug)]
struct Joint {
    peer: u32,
    medium: Medium,
}

/// What an end of a link uses.
#[derive(Clone, Copy, Debug)]
enum Medium {
    /// The channels into the link and out of it. The other end has that token.
    Channels {
        peer_token: u64,
        into: u32,
        out_of: u32,
    },
    /// A link of the UDP endpoint.
    Wire,
}

/// A region that peers may fetch.
#[derive(Debug)]
struct SharedRegion {
    files: Arc<RegionFiles>,
    /// Without one it is for all.
    holder: Option<u64>,
}

/// An interface.
pub(crate) struct Interface {
    pub(crate) identity: Destination,
    pub(crate) process: u32,
    pub(crate) name: Option<String>,
    pub(crate) attention: Arc<AtomicBool>,
    is_open: bool,
    events: VecDeque<Event<SimLink>>,
    joints: BTreeMap<u64, Joint>,
    loopback: Option<u64>,
    offers: Offers,
    counters: RendezvousCounters,
    regions: BTreeMap<u64, SharedRegion>,
    /// Rung since a sleep was last prepared.
    rung: bool,
    /// Who sleeps until it is rung for.
    sleeper: Option<u32>,
    /// Who wait a moment for anything at all: the program, and its network processor.
    relaxing: Vec<u32>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Registry {
    interfaces: Vec<Interface>,
    by_identity: BTreeMap<u64, u32>,
    by_name: BTreeMap<String, u32>,
    tokens: u64,
    /// Tasks that wait for somebody to come, or for something to be offered.
    expectant: Vec<u32>,
}

/// Whom an address leads to.
pub(crate) enum Found {
    /// This interface.
    Interface(u32),
    /// Nobody at present.
    Nobody,
    /// An interface that has ended.
    Gone,
}

impl Registry {
    pub(crate) fn get(&self, interface: u32) -> Option<&Interface> {
        self.interfaces.get(interface as usize)
    }

    pub(crate) fn get_mut(&mut self, interface: u32) -> Option<&mut Interface> {
        self.interfaces.get_mut(interface as usize)
    }

    /// Whether that interface is there.
    pub(crate) fn is_open(&self, interface: u32) -> bool {
        self.get(interface)
            .is_some_and(|interface| interface.is_open)
    }

    pub(crate) fn by_address(&self, to: Address<'_>) -> Found {
        match to {
            Address::Name(name) => self.by_name(name),
            Address::Destination(to) => self.by_destination(to),
        }
    }

    fn by_name(&self, name: &str) -> Found {
        match self.by_name.get(name) {
            Some(&interface) => Found::Interface(interface),
            None => Found::Nobody,
        }
    }

    fn by_destination(&self, to: Destination) -> Found {
        match self.by_identity.get(&to.interface) {
            Some(&interface) if self.is_open(interface) => Found::Interface(interface),
            _ => Found::Gone,
        }
    }

    /// The token of the link between the two, if there is one that is not ending.
    pub(crate) fn token_between(&self, interface: u32, peer: u32) -> Option<u64> {
        let joints = &self.get(interface)?.joints;
        let mut found = joints.iter().filter(|(_, joint)| joint.peer == peer);
        found.next().map(|(token, _)| *token)
    }

    pub(crate) fn new_token(&mut self) -> u64 {
        self.tokens += 1;
        self.tokens
    }
}

impl Kernel {
    /// A new interface: its number. Nothing if the name is taken.
    pub(crate) fn open_interface(
        &mut self,
        process: u32,
        name: Option<&str>,
    ) -> Option<(u32, &Interface)> {
        if name.is_some_and(|name| self.registry.by_name.contains_key(name)) {
            return None;
        }
        let known = self.processes.get(process as usize)?;
        let identity = Destination {
            // Nodes with an input queue are one machine: messages of a node come in order.
            node: match self.input_queues {
                Some(_) => 0,
                None => known.node,
            },
            user: known.user,
            interface: self.random.bits(),
        };
        let number = self.registry.interfaces.len() as u32;
        self.registry.by_identity.insert(identity.interface, number);
        if let Some(name) = name {
            self.registry.by_name.insert(name.to_owned(), number);
        }
        self.registry.interfaces.push(Interface {
            identity,
            process,
            name: name.map(str::to_owned),
            attention: Arc::default(),
            is_open: true,
            events: VecDeque::new(),
            joints: BTreeMap::new(),
            loopback: None,
            offers: Offers::new(0),
            counters: RendezvousCounters::default(),
            regions: BTreeMap::new(),
            rung: false,
            sleeper: None,
            relaxing: Vec::new(),
        });
        self.wake_expectant();
        Some((number, self.registry.get(number)?))
    }

    pub(crate) fn wake_expectant(&mut self) {
        for task in std::mem::take(&mut self.registry.expectant) {
            self.wake(task);
        }
    }

    /// The running task is woken when somebody comes or offers something.
    pub(crate) fn expect_something(&mut self) {
        self.registry.expectant.extend(self.tasks.running());
    }

    /// The running task no longer waits for that, and nothing of it ends its next wait.
    pub(crate) fn expect_nothing(&mut self) {
        let running = self.tasks.running();
        let expectant = &mut self.registry.expectant;
        expectant.retain(|&task| Some(task) != running);
    }

    /// A peer as the world vouches for it.
    fn peer(&self, interface: u32, token: u64) -> Option<Peer> {
        let known = self.registry.get(interface)?;
        Some(Peer {
            token,
            destination: known.identity,
            group: known.identity.user,
            process: known.process + 1,
            name: known.name.clone(),
        })
    }

    /// A link of the interface to itself: the token of the one that is there, or a new one.
    pub(crate) fn loopback(&mut self, interface: u32) -> Option<Result<(Peer, SimLink), u64>> {
        if let Some(token) = self.registry.get(interface)?.loopback {
            return Some(Err(token));
        }
        let token = self.registry.new_token();
        let peer = self.peer(interface, token)?;
        let room = self.settings.link_packets;
        let path = self.settings.near;
        let channel = self.channels.open(interface, interface, path, room);
        self.registry.get_mut(interface)?.loopback = Some(token);
        let payload = self.settings.packet_payload_bytes;
        let link = ChannelLink::new(channel, channel, payload, room);
        Some(Ok((peer, SimLink::Channel(link))))
    }

    /// Whether a link between these two goes over a network.
    pub(crate) fn are_on_a_network(&self, one: u32, other: u32) -> bool {
        let node_of = |interface| {
            let known = self.registry.get(interface);
            known.map(|known| known.identity.node)
        };
        self.frames.is_some() && node_of(one) != node_of(other)
    }

    /// A link between two interfaces that have none, within a node, or between nodes without a
    /// network: this side's end; the other is told.
    pub(crate) fn link_by_channels(&mut self, from: u32, to: u32) -> Option<(Peer, SimLink)> {
        let (room, payload) = (
            self.settings.link_packets,
            self.settings.packet_payload_bytes,
        );
        let node_of = |interface| {
            let known = self.registry.get(interface);
            known.map(|known| known.identity.node)
        };
        let is_near = node_of(from)? == node_of(to)?;
        let tokens = [self.registry.new_token(), self.registry.new_token()];
        let path = if is_near {
            self.settings.near
        } else {
            self.settings.far
        };
        let out = self.channels.open(from, to, path, room);
        let back = self.channels.open(to, from, path, room);
        if self.input_queues.is_some() {
            self.channels.show(out, 0);
            self.channels.show(back, 0);
        }
        let medium = |peer_token, into, out_of| Medium::Channels {
            peer_token,
            into,
            out_of,
        };
        let media = [medium(tokens[1], out, back), medium(tokens[0], back, out)];
        let [ours, theirs] = [(out, back), (back, out)]
            .map(|(into, out_of)| SimLink::Channel(ChannelLink::new(into, out_of, payload, room)));
        self.enter_link([from, to], tokens, media, ours, theirs)
    }

    /// The two ends of a link over a network.
    pub(crate) fn enter_far_link(
        &mut self,
        ends: [u32; 2],
        tokens: [u64; 2],
        ours: SimLink,
        theirs: SimLink,
    ) -> Option<(Peer, SimLink)> {
        self.enter_link(ends, tokens, [Medium::Wire; 2], ours, theirs)
    }

    fn enter_link(
        &mut self,
        [from, to]: [u32; 2],
        [here, there]: [u64; 2],
        media: [Medium; 2],
        ours: SimLink,
        theirs: SimLink,
    ) -> Option<(Peer, SimLink)> {
        let ends = [(from, here, to), (to, there, from)];
        for ((interface, token, peer), medium) in ends.into_iter().zip(media) {
            let joints = &mut self.registry.get_mut(interface)?.joints;
            joints.insert(token, Joint { peer, medium });
        }
        let ours = (self.peer(to, here)?, ours);
        let peer = self.peer(from, there)?;
        self.send_event(to, Event::Linked(peer, theirs));
        let now = self.local();
        self.trace
            .count(now, [4, u64::from(from) << 32 | u64::from(to)]);
        self.trace
            .note(now, || format!("interfaces {from} and {to} are linked"));
        Some(ours)
    }

    pub(crate) fn send_event(&mut self, interface: u32, event: Event<SimLink>) {
        if let Some(known) = self.registry.get_mut(interface) {
            known.events.push_back(event);
            known.attention.store(true, Ordering::Relaxed);
        }
        self.ring(interface);
        self.wake_interface(interface);
    }

    pub(crate) fn send_lost(&mut self, interface: u32, token: u64, cause: LossCause) {
        let now = self.local();
        self.trace.count(now, [5, token]);
        self.trace.note(now, || {
            format!("interface {interface} loses a peer: {cause}")
        });
        self.send_event(interface, Event::Lost { token, cause });
    }

    pub(crate) fn next_event(&mut self, interface: u32) -> Option<Event<SimLink>> {
        let known = self.registry.get_mut(interface)?;
        let event = known.events.pop_front();
        known
            .attention
            .store(!known.events.is_empty(), Ordering::Relaxed);
        event
    }

    /// Ends a link from this side. What was yet to be told of it is returned, to be dropped where
    /// the kernel is not in use.
    pub(crate) fn disconnect(&mut self, interface: u32, token: u64) -> Vec<Event<SimLink>> {
        self.part(interface, token, LossCause::Closed);
        let Some(known) = self.registry.get_mut(interface) else {
            return Vec::new();
        };
        known.loopback.take_if(|own| *own == token);
        let of_token = |event: &Event<SimLink>| match event {
            Event::Linked(peer, _) => peer.token == token,
            Event::Lost { token: lost, .. } => *lost == token,
        };
        let (ours, others): (Vec<_>, Vec<_>) = known.events.drain(..).partition(of_token);
        known.events = VecDeque::from(others);
        known
            .attention
            .store(!known.events.is_empty(), Ordering::Relaxed);
        ours
    }

    /// Takes a link apart: the other side learns of it when all that was sent to it has come; or,
    /// from afar, as its association finds out.
    fn part(&mut self, interface: u32, token: u64, cause: LossCause) {
        let joint = self
            .registry
            .get_mut(interface)
            .and_then(|known| known.joints.remove(&token));
        let Some(joint) = joint else { return };
        let (peer_token, into, out_of) = match joint.medium {
            Medium::Channels {
                peer_token,
                into,
                out_of,
            } => (peer_token, into, out_of),
            Medium::Wire if cause == LossCause::Died => return self.fall_silent(interface),
            Medium::Wire => return self.leave_link(interface, token),
        };
        self.channels.deafen(out_of);
        let left = self
            .registry
            .get_mut(joint.peer)
            .and_then(|peer| peer.joints.remove(&peer_token));
        if left.is_none() {
            return;
        }
        let at_rest = AtRest {
            interface: joint.peer,
            token: peer_token,
            cause,
        };
        if self.channels.end(into, at_rest) {
            self.send_lost(joint.peer, peer_token, cause);
        }
    }

    /// An association of that interface has ended. What has come can still be taken.
    pub(crate) fn end_link(&mut self, interface: u32, token: u64, cause: LossCause) {
        let joint = self
            .registry
            .get_mut(interface)
            .and_then(|known| known.joints.remove(&token));
        if joint.is_some() {
            self.send_lost(interface, token, cause);
        }
    }

    /// Ends an interface.
    pub(crate) fn close_interface(&mut self, interface: u32, cause: LossCause) {
        let Some(known) = self.registry.get_mut(interface) else {
            return;
        };
        if !std::mem::take(&mut known.is_open) {
            return;
        }
        known.offers = Offers::new(0);
        let tokens: Vec<_> = known.joints.keys().copied().collect();
        let name = known.name.take();
        if let Some(name) = name {
            self.registry.by_name.remove(&name);
        }
        for token in tokens {
            self.part(interface, token, cause);
        }
        // A process that waits for it waits in vain.
        self.wake_expectant();
    }

    pub(crate) fn lose_interfaces_of(&mut self, process: u32) {
        for interface in 0..self.registry.interfaces.len() as u32 {
            if self.registry.interfaces[interface as usize].process == process {
                self.close_interface(interface, LossCause::Died);
            }
        }
    }

    // Waking.

    /// A peer rings for the process that drives the interface.
    pub(crate) fn ring(&mut self, interface: u32) {
        if let Some(known) = self.registry.get_mut(interface) {
            known.rung = true;
            if let Some(task) = known.sleeper {
                self.wake(task);
            }
        }
    }

    /// Something happened that who looks often has seen at once.
    pub(crate) fn wake_interface(&mut self, interface: u32) {
        let known = self.registry.get_mut(interface);
        let relaxing = known.map(|known| std::mem::take(&mut known.relaxing));
        for task in relaxing.into_iter().flatten() {
            self.wake(task);
        }
    }

    /// A task of that process does something: others of it that look often see it as soon as it is
    /// done.
    pub(crate) fn wake_interfaces_of(&mut self, process: u32) {
        for interface in 0..self.registry.interfaces.len() as u32 {
            let known = &self.registry.interfaces[interface as usize];
            if known.process == process && !known.relaxing.is_empty() {
                self.wake_interface(interface);
            }
        }
    }

    /// Begins to listen for rings.
    pub(crate) fn listen(&mut self, interface: u32) {
        if let Some(known) = self.registry.get_mut(interface) {
            known.rung = false;
        }
    }

    /// The running task sleeps until it is rung for. False if it was already, since it listens.
    pub(crate) fn fall_asleep(&mut self, interface: u32) -> bool {
        let running = self.tasks.running();
        let sleeps = self.settings.costs.sleep;
        match self.registry.get_mut(interface) {
            Some(known) if !known.rung && !known.attention.load(Ordering::Relaxed) => {
                known.sleeper = running;
                self.charge(sleeps);
                true
            }
            _ => false,
        }
    }

    pub(crate) fn wake_up(&mut self, interface: u32) {
        if let Some(known) = self.registry.get_mut(interface) {
            known.sleeper = None;
        }
    }

    /// The running task waits a moment: until when, if nothing comes. No time if something is
    /// there.
    pub(crate) fn relax(&mut self, interface: u32) -> Time {
        self.charge(self.settings.costs.look);
        let until = self.local() + self.settings.moment;
        let running = self.tasks.running();
        if let Some(known) = self.registry.get_mut(interface) {
            known.relaxing.extend(running);
        }
        until
    }

    /// The moment is over.
    pub(crate) fn end_relax(&mut self, interface: u32) {
        let running = self.tasks.running();
        if let Some(known) = self.registry.get_mut(interface) {
            known.relaxing.retain(|&task| Some(task) != running);
        }
    }

    // Offers.

    /// What an interface offers, if it is open.
    pub(crate) fn offers(&self, interface: u32) -> Option<&Offers> {
        Some(&self.registry.get(interface)?.offers)
    }

    /// An interface's replies to a question.
    pub(crate) fn answer(&mut self, interface: u32, question: &Question) -> Option<Replies> {
        let Interface {
            offers, counters, ..
        } = self.registry.get_mut(interface)?;
        let copy = |replies: &Replies| Ok::<_, Infallible>(replies.clone());
        // All interfaces of a world live in one process.
        let (asker, before) = (Asker::Oneself, HashMap::new());
        let Ok(replies) = offers.answer(question, asker, REPLIES_BYTES_MAX, &before, copy);
        *match replies.gives_any() {
            true => &mut counters.answered,
            false => &mut counters.not_offered,
        } += 1;
        Some(replies)
    }

    /// Counts of the questions that an interface answered, its own too.
    pub(crate) fn rendezvous_counters(&self, interface: u32) -> Option<RendezvousCounters> {
        Some(self.registry.get(interface)?.counters)
    }

    // Regions.

    pub(crate) fn share_region(
        &mut self,
        interface: u32,
        holder: Option<u64>,
        files: Arc<RegionFiles>,
    ) -> u64 {
        let secret = self.random.bits();
        if let Some(known) = self.registry.get_mut(interface) {
            known.regions.insert(secret, SharedRegion { files, holder });
        }
        secret
    }

    pub(crate) fn withdraw_region(&mut self, interface: u32, secret: u64) {
        if let Some(known) = self.registry.get_mut(interface) {
            known.regions.remove(&secret);
        }
    }

    pub(crate) fn fetch_region(
        &mut self,
        from: u32,
        by: u32,
        secret: u64,
    ) -> Option<ReceivedRegion> {
        let asker = self.registry.get(by)?.identity;
        let owner = self.registry.get_mut(from)?;
        let region = owner.regions.get(&secret)?;
        let is_for_asker = region.holder.is_none_or(|holder| holder == asker.interface);
        if owner.identity.node != asker.node || !is_for_asker {
            return None;
        }
        let received = region.files.duplicate().ok()?;
        if region.holder.is_some() {
            owner.regions.remove(&secret);
        }
        Some(received)
    }
}

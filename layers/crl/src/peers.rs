//! The nodes of a program as handlers of Active Messages know them: messages in their order, and
//! nodes that are gone.

use std::collections::VecDeque;

use hamlyn::Destination;
use hamlyn::engine::memory::LinkId;
use hamlyn_am::{Call, Deferred, Incoming as Data, Reason, Returned, Translation};

use crate::courier::Incoming;
use crate::id::NodeSet;
use crate::message::WORDS_MAX;
use crate::order::{Order, Sending, is_acknowledged};

/// Handlers: of a message; of its acknowledgement; of a request that is answered when its receiver
/// leaves, and comes back when that is lost; and of this answer.
pub(crate) const MESSAGE: u8 = 1;
pub(crate) const ACKNOWLEDGED: u8 = 2;
pub(crate) const WATCH: u8 = 3;
pub(crate) const LEFT: u8 = 4;

/// Arguments before the words of a message: its number, and its sender with its kind above. All
/// handlers have them.
const HEAD: usize = 2;
const KIND_SHIFT: u32 = 16;
const NODE_MASK: u32 = (1 << KIND_SHIFT) - 1;

/// A message that is to be sent.
#[derive(Debug)]
pub(crate) struct Packet {
    arguments: [u32; HEAD + WORDS_MAX],
    count: usize,
    pub(crate) bytes: Vec<u8>,
}

impl Packet {
    /// Nothing if it has more words than a message may.
    pub(crate) fn new(from: u32, kind: u8, words: &[u32], bytes: &[u8]) -> Option<Self> {
        let mut packet = Self {
            arguments: [0; HEAD + WORDS_MAX],
            count: HEAD + words.len(),
            bytes: bytes.to_vec(),
        };
        packet.arguments[1] = from | u32::from(kind) << KIND_SHIFT;
        let places = packet.arguments.get_mut(HEAD..packet.count)?;
        places.copy_from_slice(words);
        Some(packet)
    }

    /// One that came back.
    fn of(arguments: &[u32], bytes: &[u8]) -> Option<Self> {
        let &[number, head, ref words @ ..] = arguments else {
            return None;
        };
        let (from, kind) = node_and_kind(head);
        let mut packet = Self::new(from, kind, words, bytes)?;
        packet.arguments[0] = number;
        Some(packet)
    }

    pub(crate) fn arguments(&self) -> &[u32] {
        &self.arguments[..self.count]
    }
}

fn node_and_kind(head: u32) -> (u32, u8) {
    (head & NODE_MASK, (head >> KIND_SHIFT) as u8)
}

/// A node.
pub(crate) struct Peer {
    /// For messages, and for the request that is answered when it leaves.
    pub(crate) over: [Translation; 2],
    /// Nothing but its interface speaks for it.
    interface: Destination,
    /// A link by which it has spoken.
    link: Option<LinkId>,
    pub(crate) sending: Sending<Packet>,
    order: Order<(Incoming, Option<Deferred>)>,
    /// Answered when this node leaves.
    watch: Option<Deferred>,
    is_lost: bool,
}

impl Peer {
    pub(crate) fn new(over: [Translation; 2], interface: Destination) -> Self {
        Self {
            over,
            interface,
            link: None,
            sending: Sending::default(),
            order: Order::default(),
            watch: None,
            is_lost: false,
        }
    }
}

/// All nodes, this one included.
#[derive(Default)]
pub(crate) struct Peers {
    pub(crate) peers: Vec<Peer>,
    /// Messages and losses, in their order.
    pub(crate) inbox: VecDeque<Incoming>,
    /// Answers that no handler could send: to which handler, and with which number.
    pub(crate) answers: Vec<(Deferred, u8, u32)>,
    /// Nodes with messages that are to be sent.
    pub(crate) busy: NodeSet,
    /// Nodes that are to be watched.
    pub(crate) unwatched: NodeSet,
    /// Nodes that are gone, of which messages may lie here.
    pub(crate) leaving: NodeSet,
}

/// The node of that number, if the call is from it.
fn from<'a>(peers: &'a mut [Peer], call: &Call<'_>, node: u32) -> Option<&'a mut Peer> {
    let peer = peers.get_mut(node as usize)?;
    if peer.link != Some(call.link()) {
        if !call.source()?.interface().is_same(&peer.interface) {
            return None;
        }
        peer.link = Some(call.link());
    }
    Some(peer)
}

impl Peers {
    /// A message has come. One that breaks the rules is the last of its sender, and those of
    /// strangers have no effect.
    pub(crate) fn take(&mut self, call: &mut Call<'_>, data: &Data<'_>, arguments: &[u32]) {
        let &[number, head, ref used @ ..] = arguments else {
            return;
        };
        let (node, kind) = node_and_kind(head);
        let Some(peer) = from(&mut self.peers, call, node).filter(|peer| !peer.is_lost) else {
            return;
        };
        let mut words = [0; WORDS_MAX];
        let places = words.get_mut(..used.len());
        let is_good = places.map(|places| places.copy_from_slice(used)).is_some();
        let message = Incoming::Message {
            from: node,
            kind,
            words,
            bytes: match data {
                Data::Medium(bytes) => bytes.to_vec(),
                _ => Vec::new(),
            },
        };
        let answer = is_acknowledged(number).then(|| call.defer()).transpose();
        let is_good = match answer {
            Ok(answer) if is_good => peer.order.came(number, (message, answer)),
            // What is an answer itself has none.
            _ => false,
        };
        if !is_good {
            self.lose(node);
            return;
        }
        while let Some((message, answer)) = peer.order.take() {
            self.inbox.push_back(message);
            let answer = answer.map(|answer| (answer, ACKNOWLEDGED, peer.order.next()));
            self.answers.extend(answer);
        }
    }

    /// A node has had all messages before that number.
    pub(crate) fn acknowledged(&mut self, call: &Call<'_>, arguments: &[u32]) {
        if let &[number, node] = arguments
            && let Some(peer) = from(&mut self.peers, call, node)
        {
            peer.sending.acknowledge(number);
        }
    }

    /// A node is to be told when this one leaves.
    pub(crate) fn watched(&mut self, call: &mut Call<'_>, arguments: &[u32]) {
        if let &[_, node] = arguments
            && let Some(peer) = from(&mut self.peers, call, node)
        {
            match call.defer() {
                // It is lost to this node, which is lost to it.
                Ok(watch) if peer.is_lost => self.answers.push((watch, LEFT, 0)),
                Ok(watch) => peer.watch = Some(watch),
                Err(_) => self.lose(node),
            }
        }
    }

    /// A node leaves.
    pub(crate) fn left(&mut self, call: &Call<'_>, arguments: &[u32]) {
        if let &[_, node] = arguments
            && from(&mut self.peers, call, node).is_some()
        {
            self.leaving.insert(node);
        }
    }

    /// A request came back. It is sent again if its receiver had no room; otherwise that is gone.
    pub(crate) fn returned(&mut self, back: &Returned<'_>) {
        let is_of = |peer: &Peer| peer.over.iter().any(|over| back.translation == Some(*over));
        let Some(node) = self.peers.iter().position(is_of) else {
            return;
        };
        let node = node as u32;
        if back.reason != Reason::Congestion {
            self.leaving.insert(node);
        } else if back.handler == WATCH {
            self.unwatched.insert(node);
        } else if let Some(packet) = Packet::of(back.arguments, back.data) {
            self.put_back(node, packet);
        }
    }

    /// Sends a message to a node when it can be sent. False if the node is lost.
    pub(crate) fn push(&mut self, to: u32, packet: Packet) -> bool {
        match self.peers.get_mut(to as usize) {
            Some(peer) if !peer.is_lost => {
                peer.sending.push(packet);
                self.busy.insert(to);
                true
            }
            _ => false,
        }
    }

    /// The next message to a node that may be sent, with its translation.
    pub(crate) fn next_to(&mut self, node: u32) -> Option<(Translation, Packet)> {
        let peer = self.peers.get_mut(node as usize)?;
        let next = peer.sending.take();
        if next.is_none() && peer.sending.len() == 0 {
            self.busy.remove(node);
        }
        let (number, mut packet) = next?;
        packet.arguments[0] = number;
        Some((peer.over[0], packet))
    }

    /// A message to a node is to be sent again.
    pub(crate) fn put_back(&mut self, node: u32, packet: Packet) {
        if let Some(peer) = self.peers.get_mut(node as usize)
            && !peer.is_lost
        {
            peer.sending.put_back(packet.arguments[0], packet);
            self.busy.insert(node);
        }
    }

    /// Messages to a node that are to be sent.
    pub(crate) fn waiting(&self, node: u32) -> usize {
        let peer = self.peers.get(node as usize);
        peer.map_or(0, |peer| peer.sending.len())
    }

    /// True if nothing is to be sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.busy.is_empty() && self.answers.is_empty()
    }

    /// A node is lost, once: nothing of it counts any more, and it is told that this one has left.
    pub(crate) fn lose(&mut self, node: u32) {
        let Some(peer) = self.peers.get_mut(node as usize) else {
            return;
        };
        if !std::mem::replace(&mut peer.is_lost, true) {
            peer.sending.clear();
            peer.order.clear();
            let watch = peer.watch.take();
            self.answers.extend(watch.map(|watch| (watch, LEFT, 0)));
            self.inbox.push_back(Incoming::Lost { node });
        }
    }

    /// All that they had sent is taken.
    pub(crate) fn lose_all(&mut self, nodes: NodeSet) {
        for node in nodes.iter() {
            self.leaving.remove(node);
            self.lose(node);
        }
    }

    /// This node leaves: the answers that tell others.
    pub(crate) fn leave(&mut self) -> impl Iterator<Item = Deferred> {
        self.peers.iter_mut().filter_map(|peer| peer.watch.take())
    }
}

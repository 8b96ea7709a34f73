//! An end point without its handlers and state: the port, the nodes that it reaches, and the
//! register of atomicity.

use std::rc::Rc;

use hamlyn::engine::memory::LinkId;
use hamlyn::engine::point::{Point, UdmPoint};
use hamlyn::{Host, NewPort, Port, ReceiveError, SendError, Session, Target, Wait};

use crate::error::{AtomError, Error, InjectError};
use crate::event::{Mode, Statistics};
use crate::group::Shared;
use crate::limits::{BYTES_MAX, HANDLERS_MAX, HANDLERS_OF_PORT, SHORT_BYTES_MAX};
use crate::message::{Message, bytes_of};
use crate::options::UdmOptions;
use crate::order::{Order, Turn};
use crate::uac::Uac;

/// Bytes before those of a message between hosts: its number.
const NUMBER_BYTES: usize = size_of::<u32>();
const NO_NODE: u32 = u32::MAX;

/// A node of another host: its messages have numbers.
#[derive(Debug, Default)]
struct Far {
    sent: u32,
    order: Order,
}

/// A node, as this one reaches it.
#[derive(Debug)]
struct Member {
    target: Target,
    far: Option<Box<Far>>,
}

pub(crate) struct Endpoint<H: Host> {
    pub(crate) group: Rc<Shared<H>>,
    port: Port,
    members: Vec<Member>,
    /// By the index of a link, its generation and the node from which it comes.
    links: Vec<(u32, u32)>,
    /// Nodes of other hosts whose next message has come before its turn.
    ready: Vec<u32>,
    scratch: Vec<u8>,
    pub(crate) uac: Uac,
    pub(crate) statistics: Statistics,
    pub(crate) wait: Wait,
    /// A handler runs; or it has panicked, if the program calls.
    pub(crate) is_in_handler: bool,
    changes: u64,
}

impl<H: Host> Endpoint<H> {
    /// Opens a port, and meets the nodes that have one under that name.
    pub(crate) fn open(
        group: Rc<Shared<H>>,
        name: &str,
        options: &UdmOptions,
        wait: Wait,
    ) -> Result<Self, Error> {
        let mut session = group.manager.session();
        let own = session.identity().node;
        let new = NewPort::new()
            .group(group.gid)
            .handlers(HANDLERS_OF_PORT)
            .queue_bytes(options.queue_bytes)
            .peer_bytes(options.queue_bytes);
        let port = session.open_port(new)?;
        drop(session);
        let item = format!("udm.{name}");
        let targets = group.meet(&item, &port.ticket(), wait)?;
        let far = |target: &Target| {
            let node = target.ticket().destination.node;
            (node != 0 && node != own).then(Box::default)
        };
        let members = targets.into_iter().map(|target| Member {
            far: far(&target),
            target,
        });
        Ok(Self {
            members: members.collect(),
            group,
            port,
            links: Vec::new(),
            ready: Vec::new(),
            scratch: Vec::new(),
            uac: Uac::default(),
            statistics: Statistics::default(),
            wait: options.wait,
            is_in_handler: false,
            changes: 0,
        })
    }

    /// Takes the next message out of the network, if there is one.
    #[inline]
    pub(crate) fn next(&mut self, into: &mut Message) -> Result<bool, ReceiveError> {
        if !self.ready.is_empty() && self.next_that_waited(into) {
            return Ok(true);
        }
        let mut session = self.group.manager.session();
        loop {
            let Some(message) = session.next_message(&mut self.port)? else {
                return Ok(false);
            };
            let from = message.from();
            if let Some(node) = node_of_link(&self.links, from) {
                into.load(node, &message);
                message.dispose();
                match &mut self.members[node as usize].far {
                    None => return Ok(true),
                    Some(far) => match take_in_turn(far, into) {
                        Turn::Now => {
                            if far.order.has_next() {
                                self.ready.push(node);
                            }
                            return Ok(true);
                        }
                        Turn::Later => {}
                        Turn::Wrong => self.statistics.wrong += 1,
                    },
                }
                continue;
            }
            // It is shown again, when its node is known.
            let node = node_of(&self.group, &mut session, from);
            match node {
                Some(node) => learn(&mut self.links, from, node),
                None => {
                    self.statistics.strangers += 1;
                    if let Some(message) = session.next_message(&mut self.port)? {
                        message.dispose();
                    }
                }
            }
        }
    }

    #[inline(never)]
    fn next_that_waited(&mut self, into: &mut Message) -> bool {
        let Some(&node) = self.ready.last() else {
            return false;
        };
        let order = self.members[node as usize]
            .far
            .as_mut()
            .map(|far| &mut far.order);
        let next = order.and_then(|order| Some((order.next()?, order.has_next())));
        if !matches!(next, Some((_, true))) {
            self.ready.pop();
        }
        let Some(((handler, bytes), _)) = next else {
            return false;
        };
        into.set(node, handler, &bytes);
        true
    }

    /// A message was extracted by the program or a handler.
    #[inline]
    pub(crate) fn extracted(&mut self) {
        self.statistics.received += 1;
        self.uac.disposed();
        H::passes(Point::Udm(UdmPoint::Disposed));
    }

    /// True if a message is there.
    pub(crate) fn is_available(&mut self) -> Result<bool, ReceiveError> {
        let mut session = self.group.manager.session();
        Ok(!self.ready.is_empty() || session.next_message(&mut self.port)?.is_some())
    }

    /// Waits until a message is there, or a node is lost that was not when this was asked last.
    pub(crate) fn await_news(&mut self, wait: Wait) -> Result<bool, Error> {
        if !self.ready.is_empty() {
            return Ok(true);
        }
        let (group, port) = (&self.group, &mut self.port);
        let changes = &mut self.changes;
        let mut session = group.manager.session();
        let found = session.wait_for(wait, |session| {
            if session.next_message(port)?.is_some() {
                return Ok::<_, Error>(Some(()));
            }
            let now = group.hear(session);
            let is_news = now != *changes;
            *changes = now;
            Ok(is_news.then_some(()))
        })?;
        Ok(found.is_some())
    }

    /// Injects words.
    #[inline]
    pub(crate) fn inject(
        &mut self,
        to: u32,
        handler: u16,
        words: &[u32],
        wait: Wait,
    ) -> Result<(), InjectError> {
        let mut buffer = [0; SHORT_BYTES_MAX];
        let Some(bytes) = bytes_of(words, &mut buffer) else {
            return Err(InjectError::TooLong {
                length_bytes: size_of_val(words),
                most_bytes: SHORT_BYTES_MAX,
            });
        };
        self.send(to, handler, bytes, wait)
    }

    /// Injects bytes, for a handler of the program.
    #[inline]
    pub(crate) fn send(
        &mut self,
        to: u32,
        handler: u16,
        bytes: &[u8],
        wait: Wait,
    ) -> Result<(), InjectError> {
        if handler >= HANDLERS_MAX {
            return Err(InjectError::BadHandler { handler });
        }
        self.send_any(to, handler, bytes, wait)
    }

    /// The same for a handler of the program or the layer.
    #[inline]
    pub(crate) fn send_any(
        &mut self,
        to: u32,
        handler: u16,
        bytes: &[u8],
        wait: Wait,
    ) -> Result<(), InjectError> {
        let Some(member) = self.members.get(to as usize) else {
            let nodes = self.members.len() as u32;
            return Err(InjectError::NoSuchNode { to, nodes });
        };
        if member.far.is_some() || bytes.len() > BYTES_MAX {
            return self.send_far(to, handler, bytes, wait);
        }
        let mut session = self.group.manager.session();
        let sent = session.send_message(&member.target, handler, bytes, wait);
        drop(session);
        self.sent(to, sent.map(drop))
    }

    #[inline(never)]
    fn send_far(
        &mut self,
        to: u32,
        handler: u16,
        bytes: &[u8],
        wait: Wait,
    ) -> Result<(), InjectError> {
        let most_bytes = self.bytes_max(to)?;
        if bytes.len() > most_bytes {
            let length_bytes = bytes.len();
            return Err(InjectError::TooLong {
                length_bytes,
                most_bytes,
            });
        }
        if let Some(reason) = self.group.refused(to) {
            // What follows would wait for that one for ever.
            return Err(InjectError::Refused { to, reason });
        }
        let Member { target, far } = &mut self.members[to as usize];
        let Some(far) = far else {
            return Ok(());
        };
        self.scratch.clear();
        self.scratch.extend_from_slice(&far.sent.to_le_bytes());
        self.scratch.extend_from_slice(bytes);
        let mut session = self.group.manager.session();
        let sent = session.send_message(target, handler, &self.scratch, wait);
        drop(session);
        if sent.is_ok() {
            far.sent = far.sent.wrapping_add(1);
        }
        self.sent(to, sent.map(drop))
    }

    #[inline]
    fn sent(&mut self, to: u32, sent: Result<(), SendError>) -> Result<(), InjectError> {
        match sent {
            Ok(()) => {
                self.statistics.sent += 1;
                H::passes(Point::Udm(UdmPoint::Injected));
                Ok(())
            }
            Err(error) => Err(self.not_sent(to, error)),
        }
    }

    #[inline(never)]
    fn not_sent(&mut self, to: u32, error: SendError) -> InjectError {
        match error {
            SendError::WouldBlock { .. } => match self.log_use(to) {
                Some((waiting_bytes, limit_bytes)) if waiting_bytes * 2 > limit_bytes => {
                    InjectError::Quota {
                        to,
                        waiting_bytes,
                        limit_bytes,
                    }
                }
                _ => InjectError::WouldBlock { to },
            },
            SendError::PeerLost(lost) => InjectError::Lost { to, end: lost.end },
            error => InjectError::Send(error),
        }
    }

    /// Bytes that wait in the memory of a node, and those that it lends; nothing if none wait.
    fn log_use(&self, to: u32) -> Option<(u64, u64)> {
        let link = self.members.get(to as usize)?.target.link();
        let used = self.group.manager.session().log_use(link)?;
        (used.waiting_bytes > 0).then_some((used.waiting_bytes, used.log_bytes))
    }

    pub(crate) fn mode(&self, to: u32) -> Mode {
        match self.log_use(to) {
            Some((bytes, _)) => Mode::Buffered { bytes },
            None => Mode::Direct,
        }
    }

    /// Bytes that a message to a node has at most.
    pub(crate) fn bytes_max(&self, to: u32) -> Result<usize, InjectError> {
        let Some(member) = self.members.get(to as usize) else {
            let nodes = self.members.len() as u32;
            return Err(InjectError::NoSuchNode { to, nodes });
        };
        if member.far.is_none() {
            return Ok(BYTES_MAX);
        }
        let session = self.group.manager.session();
        let packet = session.packet_bytes_max(member.target.link());
        // A link that has ended takes nothing, as the send says.
        Ok(packet
            .map_or(BYTES_MAX, |most| most - NUMBER_BYTES)
            .min(BYTES_MAX))
    }

    /// Begins a section.
    #[inline]
    pub(crate) fn begin_atomic(&mut self, mask: u8) -> Result<(), AtomError> {
        self.uac.begin(mask)?;
        H::passes(Point::Udm(UdmPoint::AtomBegun));
        Ok(())
    }

    /// Ends a section. True if handlers have waited for that.
    #[inline]
    pub(crate) fn end_atomic(&mut self, mask: u8) -> Result<bool, AtomError> {
        let is_extended = self.uac.end(mask)?;
        H::passes(Point::Udm(UdmPoint::AtomEnded));
        Ok(is_extended)
    }

    /// Closes the port.
    pub(crate) fn close(self) {
        // It is open, unless this is a forked child, which has none.
        let _ = self.group.manager.session().close_port(self.port);
    }
}

/// The node from which a known link comes.
#[inline]
fn node_of_link(links: &[(u32, u32)], link: LinkId) -> Option<u32> {
    let &(generation, node) = links.get(link.index as usize)?;
    (generation == link.generation && node != NO_NODE).then_some(node)
}

#[inline(never)]
fn node_of<H: Host>(group: &Shared<H>, session: &mut Session<'_, H>, link: LinkId) -> Option<u32> {
    group.node_of(&session.identity_of(link)?.interface)
}

#[inline(never)]
fn learn(links: &mut Vec<(u32, u32)>, link: LinkId, node: u32) {
    let index = link.index as usize;
    if links.len() <= index {
        // As many as the interface has links at most.
        links.resize(index + 1, (0, NO_NODE));
    }
    links[index] = (link.generation, node);
}

/// Takes the number off a message of another host.
#[inline(never)]
fn take_in_turn(far: &mut Far, message: &mut Message) -> Turn {
    let Some((number, bytes)) = message.as_bytes().split_first_chunk() else {
        return Turn::Wrong;
    };
    let turn = far
        .order
        .came(u32::from_le_bytes(*number), message.handler, bytes);
    if turn == Turn::Now {
        let bytes = bytes.to_vec();
        message.set(message.source, message.handler, &bytes);
    }
    turn
}

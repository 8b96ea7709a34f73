//! An end point without its handlers and state: the port, the nodes that it reaches, and the
//! register of atomicity.

mod sending;

use std::sync::Arc;

use hamlyn::engine::limits::PACKET_PAYLOAD_MAX;
use hamlyn::engine::memory::LinkId;
use hamlyn::engine::packet::PortName;
use hamlyn::engine::point::{Point, UdmPoint};
use hamlyn::{Host, NewPort, Port, ReceiveError, Target, Wait};

use crate::barrier::Barrier;
use crate::bulk::{Piece, UnderWay};
use crate::error::{AtomError, Error};
use crate::event::{Mode, Statistics};
use crate::group::{Met, Offer, Shared};
use crate::limits::{BARRIER, HANDLERS_OF_PORT, SHORT_BYTES_MAX};
use crate::message::Message;
use crate::options::UdmOptions;
use crate::order::{Order, Turn};
use crate::uac::Uac;

/// Bytes before those of a message between hosts: its number.
const NUMBER_BYTES: usize = size_of::<u32>();

/// In the place of a node whose next message is ready: the message that was shown.
const SHOWN: u32 = u32::MAX;

/// Links that may come while handlers interrupt the program.
const LINKS_TO_COME: usize = 1024;

/// Messages in a row that no handler sees, after which a look gives up.
const UNSEEN_MAX: usize = 64;

/// The node from which a link comes.
#[derive(Clone, Copy, Debug, Default)]
struct Source {
    /// The generation of the link; 0 if it is not known.
    generation: u32,
    /// Nothing if it comes from a stranger.
    node: Option<u32>,
    is_far: bool,
}

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
    /// Bytes of its area.
    area_bytes: u64,
    /// Bytes of its queue.
    queue_bytes: u64,
    /// Data that it sends for the own area.
    under_way: UnderWay,
    far: Option<Box<Far>>,
}

/// A port that is offered to the nodes of a group under a name, as long as this lives.
struct OfferedPort<H: Host> {
    group: Arc<Shared<H>>,
    item: String,
    port: Port,
}

impl<H: Host> OfferedPort<H> {
    fn open(group: &Arc<Shared<H>>, item: String, options: &UdmOptions) -> Result<Self, Error> {
        let new = NewPort::new()
            .group(group.gid)
            .handlers(HANDLERS_OF_PORT)
            .queue_bytes(options.queue_bytes)
            .peer_bytes(options.queue_bytes);
        let port = group.manager.session().open_port(new)?;
        if !group.take(&item) {
            // As it was opened just now.
            let _ = group.manager.session().close_port(port);
            return Err(Error::NameInUse);
        }
        Ok(Self {
            group: Arc::clone(group),
            item,
            port,
        })
    }
}

impl<H: Host> Drop for OfferedPort<H> {
    fn drop(&mut self) {
        let mut session = self.group.manager.session();
        self.group.give_up(&self.item);
        session.withdraw(&self.item);
        // A forked child has none to close.
        let _ = session.close_port_named(self.port.name());
    }
}

pub(crate) struct Endpoint<H: Host> {
    pub(crate) group: Arc<Shared<H>>,
    offered: OfferedPort<H>,
    members: Vec<Member>,
    /// By the index of a link.
    links: Vec<Source>,
    /// Nodes of other hosts whose next message has come before its turn; the last is the next one.
    ready: Vec<u32>,
    /// A message that was taken out of the network, and shown.
    shown: Message,
    scratch: Vec<u8>,
    /// The bytes of a piece of data that is sent.
    piece: Vec<u8>,
    /// Counts data that were sent for areas.
    data_sent: u32,
    /// The last look gave up after messages that no handler sees: more may be at hand.
    has_more: bool,
    /// Memory into which others bring data.
    pub(crate) area: Vec<u8>,
    pub(crate) uac: Uac,
    pub(crate) statistics: Statistics,
    pub(crate) wait: Wait,
    /// A handler runs; or it has panicked, or a section has, if the program calls.
    pub(crate) is_in_handler: bool,
    /// The handler of a signal has it, which must not allocate.
    pub(crate) is_interrupt: bool,
    changes: u64,
    pub(crate) barrier: Barrier,
}

impl<H: Host> Endpoint<H> {
    /// Opens a port, and meets the nodes that have one under that name.
    pub(crate) fn open(
        group: Arc<Shared<H>>,
        name: &str,
        options: &UdmOptions,
        wait: Wait,
    ) -> Result<Self, Error> {
        let offered = OfferedPort::open(&group, format!("udm.{name}"), options)?;
        let area_bytes = options.area_bytes;
        // Its pages come with the data.
        if Vec::<u8>::new().try_reserve_exact(area_bytes).is_err() {
            return Err(Error::NoMemory { area_bytes });
        }
        let area = vec![0; area_bytes];
        let own = Offer {
            ticket: offered.port.ticket(),
            area_bytes: area_bytes as u64,
            queue_bytes: options.queue_bytes.into(),
        };
        let met = group.meet(&offered.item, &own, wait)?;
        let mut links = Vec::new();
        for (node, met) in met.iter().enumerate() {
            learn(&mut links, met.target.link(), Some(node as u32), met.is_far);
        }
        let member = |met: Met| Member {
            target: met.target,
            area_bytes: met.area_bytes,
            queue_bytes: met.queue_bytes,
            under_way: UnderWay::default(),
            far: met.is_far.then(Box::default),
        };
        Ok(Self {
            members: met.into_iter().map(member).collect(),
            barrier: Barrier::new(group.nodes()),
            group,
            offered,
            links,
            ready: Vec::new(),
            shown: Message::new(),
            scratch: Vec::new(),
            piece: Vec::new(),
            data_sent: 0,
            has_more: false,
            area,
            uac: Uac::default(),
            statistics: Statistics::default(),
            wait: options.wait,
            is_in_handler: false,
            is_interrupt: false,
            changes: 0,
        })
    }

    /// Takes the next message for the program out of the network, if there is one; and messages of
    /// the layer on the way.
    #[inline]
    pub(crate) fn next(&mut self, into: &mut Message) -> Result<bool, ReceiveError> {
        self.has_more = false;
        let is_there = self.next_of_all(into)?;
        match is_there && into.handler >= BARRIER {
            true => self.next_after_those_of_the_layer(into),
            false => Ok(is_there),
        }
    }

    #[inline(never)]
    fn next_after_those_of_the_layer(&mut self, into: &mut Message) -> Result<bool, ReceiveError> {
        for _ in 0..UNSEEN_MAX {
            if self.take_own(into) {
                return Ok(true);
            }
            let is_there = self.next_of_all(into)?;
            if !is_there || into.handler < BARRIER {
                return Ok(is_there);
            }
        }
        self.has_more = !self.take_own(into);
        Ok(!self.has_more)
    }

    /// True if messages may be at hand though [`Endpoint::next`] gave none.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.has_more || !self.ready.is_empty()
    }

    /// Takes a message of the layer. True if it has become one for the program.
    fn take_own(&mut self, message: &mut Message) -> bool {
        if message.handler == BARRIER {
            self.take_barrier(message);
            return false;
        }
        let piece = Piece::parse(message.as_bytes(), self.area.len());
        let under_way = &mut self.members[message.source as usize].under_way;
        let Some(piece) = piece.filter(|piece| under_way.came(piece)) else {
            // A part of its data may have been refused, which its sender hears.
            self.statistics.wrong += 1;
            return false;
        };
        self.area[piece.at()..][..piece.data.len()].copy_from_slice(piece.data);
        let Some(end) = piece.end else {
            return false;
        };
        let (handler, place) = (end.handler, piece.place);
        let mut words = [0; SHORT_BYTES_MAX];
        let length_bytes = end.words.len();
        words[..length_bytes].copy_from_slice(end.words);
        message.set(message.source, handler, &words[..length_bytes]);
        message.place = Some((place.start, place.end));
        true
    }

    fn take_barrier(&mut self, message: &Message) {
        let (source, round) = (message.source, message.word(0));
        self.barrier.came(self.group.me, source, round);
        self.extracted();
    }

    #[inline]
    fn next_of_all(&mut self, into: &mut Message) -> Result<bool, ReceiveError> {
        if !self.ready.is_empty() && self.next_that_waited(into) {
            return Ok(true);
        }
        let mut session = self.group.manager.session();
        let mut unseen = 0;
        loop {
            let Some(message) = session.next_message(&mut self.offered.port)? else {
                return Ok(false);
            };
            let from = message.from();
            let Some(source) = source_of(&self.links, from) else {
                if self.is_interrupt && self.links.capacity() <= from.index as usize {
                    // Of a link that came since: no node has one.
                    message.dispose();
                    self.statistics.strangers += 1;
                    unseen += 1;
                    if unseen == UNSEEN_MAX {
                        self.has_more = true;
                        return Ok(false);
                    }
                    continue;
                }
                // It is shown again, when its node is known.
                let node = self.group.node_over(from);
                let far = node.and_then(|node| self.members[node as usize].far.as_ref());
                let is_far = far.is_some();
                learn(&mut self.links, from, node, is_far);
                continue;
            };
            if let Some(node) = source.node {
                into.load(node, &message);
                message.dispose();
                if !source.is_far {
                    return Ok(true);
                }
                match take_in_turn(&mut self.members, &mut self.ready, into) {
                    Turn::Now => return Ok(true),
                    Turn::Later => {}
                    Turn::Wrong => self.statistics.wrong += 1,
                }
            } else {
                message.dispose();
                self.statistics.strangers += 1;
            }
            unseen += 1;
            if unseen == UNSEEN_MAX {
                self.has_more = true;
                return Ok(false);
            }
        }
    }

    #[inline(never)]
    fn next_that_waited(&mut self, into: &mut Message) -> bool {
        let Some(&node) = self.ready.last() else {
            return false;
        };
        if node == SHOWN {
            self.ready.pop();
            std::mem::swap(into, &mut self.shown);
            return true;
        }
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

    /// The next message, which stays the next one.
    pub(crate) fn peek(&mut self) -> Result<Option<&Message>, ReceiveError> {
        if self.ready.last() != Some(&SHOWN) {
            let mut message = std::mem::take(&mut self.shown);
            let is_there = self.next(&mut message);
            self.shown = message;
            if !is_there? {
                return Ok(None);
            }
            self.ready.push(SHOWN);
        }
        Ok(Some(&self.shown))
    }

    pub(crate) fn port_name(&self) -> PortName {
        self.offered.port.name()
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
        Ok(!self.ready.is_empty() || session.next_message(&mut self.offered.port)?.is_some())
    }

    /// Reserves memory for messages that the handler of a signal takes.
    ///
    /// # Errors
    ///
    /// A node is on another host, whose messages wait for their turns in memory that is allocated.
    pub(crate) fn prepare_interrupts(&mut self) -> Result<(), Error> {
        if self.members.iter().any(|member| member.far.is_some()) {
            let reason = "a node of the group is on another host";
            return Err(Error::NoSignals { reason });
        }
        self.shown.reserve_all();
        self.piece.reserve(PACKET_PAYLOAD_MAX);
        self.ready.reserve(1);
        self.links.reserve(LINKS_TO_COME);
        let mut session = self.group.manager.session();
        session.reserve_for_interrupts(&mut self.offered.port);
        Ok(())
    }

    /// Takes packets of all links, which a look for one message does not: how many.
    pub(crate) fn poll(&mut self) -> usize {
        self.group.manager.session().poll()
    }

    /// Waits until a message is there, or a node is lost that was not when this was asked last.
    pub(crate) fn await_news(&mut self, wait: Wait) -> Result<bool, Error> {
        if !self.ready.is_empty() {
            return Ok(true);
        }
        let (group, port) = (&self.group, &mut self.offered.port);
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
}

/// The node from which a link comes, if it is known.
#[inline]
fn source_of(links: &[Source], link: LinkId) -> Option<&Source> {
    let source = links.get(link.index as usize)?;
    (source.generation == link.generation).then_some(source)
}

#[inline(never)]
fn learn(links: &mut Vec<Source>, link: LinkId, node: Option<u32>, is_far: bool) {
    let index = link.index as usize;
    if links.len() <= index {
        // As many as the interface has links at most.
        links.resize(index + 1, Source::default());
    }
    links[index] = Source {
        generation: link.generation,
        node,
        is_far,
    };
}

/// Takes the number off a message of another host.
#[inline(never)]
fn take_in_turn(members: &mut [Member], ready: &mut Vec<u32>, message: &mut Message) -> Turn {
    let node = message.source;
    let far = members[node as usize].far.as_mut();
    let (Some(far), Some((number, bytes))) = (far, message.as_bytes().split_first_chunk()) else {
        return Turn::Wrong;
    };
    let turn = far
        .order
        .came(u32::from_le_bytes(*number), message.handler, bytes);
    if turn == Turn::Now {
        let bytes = bytes.to_vec();
        message.set(node, message.handler, &bytes);
        if far.order.has_next() {
            ready.push(node);
        }
    }
    turn
}

//! An interface has ports: opens and parks them, shows their messages, and sends to those of
//! others. The fast path shows a message where it lies; all else is moved to the port's memory.

use hamlyn_engine::key::Key;
use hamlyn_engine::packet::PortName;
use hamlyn_engine::point::{Point, PortPoint};
use hamlyn_engine::port::{Arrived, Knock, PortError, PortInfo, PortOptions, PortSetName, room_in};
use hamlyn_engine::terminus::{SendHandle, TerminusId};
use hamlyn_host::Host;
use hamlyn_link::Shortcut as _;
use hamlyn_ring::forks::Forked;

use super::{InboundOf, Interface, Outbox};
use crate::error::{OpenError, ReceiveError, SendError};
use crate::half::{Half, at_once};
use crate::inbound::Inbound;
use crate::inlet::{Found, Held, Inlet, InletName};
use crate::message::{Message, Target};
use crate::port::{MessagePlace, NewPort, Port, PortMessage};
use crate::port_set::PortSet;

impl<H: Host> Interface<H> {
    /// Opens a port. Allocates its queue, which takes memory only as it is used.
    pub fn open_port(&mut self, new: NewPort) -> Result<Port, OpenError> {
        let key = self.key_or_new(new.key)?;
        let options = PortOptions {
            key,
            group: new.group,
            handlers: new.handlers,
            queue_bytes: new.queue_bytes,
            peer_bytes: new.peer_bytes.unwrap_or((new.queue_bytes / 2).max(64)),
        };
        let name = self
            .inbound
            .lock(|inbound| inbound.receiver.open_port(options))?;
        Ok(Port {
            name,
            key,
            group: new.group,
            destination: self.identity(),
            held: Held::default(),
        })
    }

    /// Closes a port. Its tickets are worthless from now on, and messages that wait there are gone.
    pub fn close_port(&mut self, port: Port) -> Result<(), PortError> {
        self.close_port_named(port.name)
    }

    /// The same by its name, for those who do not have the port in hand.
    pub fn close_port_named(&mut self, name: PortName) -> Result<(), PortError> {
        self.check().map_err(|Forked| PortError::Forked)?;
        self.inbound
            .lock(|inbound| inbound.receiver.close_port(name))
    }

    /// That key, or a random one.
    fn key_or_new(&mut self, key: Option<Key>) -> Result<Key, OpenError> {
        self.check()?;
        match key {
            Some(key) => Ok(key),
            None => Ok(self.new_key()?),
        }
    }

    /// Gives the port that key, or a random one: tickets made before are worthless. Messages that
    /// wait stay.
    pub fn rekey_port(&mut self, port: &mut Port, key: Option<Key>) -> Result<(), OpenError> {
        let key = self.key_or_new(key)?;
        self.inbound
            .lock(|inbound| inbound.receiver.rekey_port(port.name, key))?;
        port.key = key;
        Ok(())
    }

    /// Parks the port, or ends that. While it is parked, messages are refused
    /// ([`Refusal::NotResident`]), and their senders noted; those that wait stay, and can be taken.
    /// A parked port where none wait has no memory for a queue: ending that allocates.
    ///
    /// [`Refusal::NotResident`]: crate::engine::refusal::Refusal::NotResident
    pub fn park_port(&mut self, port: &Port, is_parked: bool) -> Result<(), PortError> {
        self.check().map_err(|Forked| PortError::Forked)?;
        H::passes(Point::Port(match is_parked {
            true => PortPoint::Parked,
            false => PortPoint::Resumed,
        }));
        self.inbound
            .lock(|inbound| inbound.receiver.park_port(port.name, is_parked))
    }

    /// A link whose message was refused because its port was parked: of each port each link once
    /// until it is told here, and 64 of them at most. Takes as long however many ports there are.
    pub fn next_knock(&mut self) -> Option<Knock> {
        if self.is_forked() {
            return None;
        }
        let knock = self.inbound.lock(|inbound| inbound.receiver.next_knock());
        if knock.is_some() {
            // As of a message, its link is known with it.
            self.drain_events_if_asked();
        }
        knock
    }

    /// Opens a set of ports ([`crate::PortSet`]). Its ports that have messages take turns, each of that
    /// many, one at least.
    pub fn open_port_set(&mut self, turn: u16) -> Result<PortSet, OpenError> {
        self.check()?;
        let name = self
            .inbound
            .lock(|inbound| inbound.receiver.open_port_set(turn))?;
        Ok(PortSet {
            name,
            held: Held::default(),
        })
    }

    /// Closes a set. Its ports stay open, with the messages that wait there, and are in none.
    pub fn close_port_set(&mut self, set: PortSet) {
        if !self.is_forked() {
            self.inbound
                .lock(|inbound| inbound.receiver.close_port_set(set.name));
        }
    }

    /// Puts a port into a set, with the messages that wait there; its messages tell that number
    /// ([`PortMessage::member`]). It leaves the set in which it was. Allocates as the set grows.
    pub fn join_port_set(
        &mut self,
        port: &Port,
        set: &PortSet,
        number: u64,
    ) -> Result<(), PortError> {
        self.put_into_set(port, Some((set.name, number)))
    }

    /// Takes a port out of its set, if it is in one. Messages that wait there stay.
    pub fn leave_port_set(&mut self, port: &Port) -> Result<(), PortError> {
        self.put_into_set(port, None)
    }

    fn put_into_set(
        &mut self,
        port: &Port,
        set: Option<(PortSetName, u64)>,
    ) -> Result<(), PortError> {
        self.check().map_err(|Forked| PortError::Forked)?;
        self.inbound
            .lock(|inbound| inbound.receiver.join_port_set(port.name, set))
    }

    /// The state of a port, with its refusals.
    pub fn port_info(&self, port: &Port) -> Result<PortInfo, PortError> {
        self.check().map_err(|Forked| PortError::Forked)?;
        self.inbound
            .read(|inbound| inbound.receiver.port_info(port.name))
    }

    /// The next message of a port or a set of ports, if there is one; the same one until it is
    /// disposed of. Moves packets only if none lies ready. Does not block; allocates only as the
    /// memory of the port or set grows to its longest message.
    #[inline(always)]
    pub fn next_message<'a>(
        &'a mut self,
        inlet: &'a mut impl Inlet,
    ) -> Result<Option<PortMessage<'a, H>>, ReceiveError> {
        self.check()?;
        let Some(in_place) = self.find(inlet) else {
            return Ok(None);
        };
        if self.sleepers.is_any() {
            // It may be what a task that sleeps awaits.
            self.wake_sleepers_if_active();
        }
        Ok(self.shown(inlet, in_place))
    }

    /// Hands the messages of a port or a set of ports that are there to `handle`, one after the
    /// other, at most so many; how many. `handle` may read the message where it lies, and send by
    /// the [`Outbox`], over that terminus. Each is disposed of when it returns. Moves packets. Does
    /// not block.
    #[inline]
    pub fn drain_messages(
        &mut self,
        inlet: &mut impl Inlet,
        terminus: TerminusId,
        most: usize,
        mut handle: impl FnMut(&PortMessage<'_, H>, &mut Outbox<'_, H>),
    ) -> Result<usize, ReceiveError> {
        self.check()?;
        let mut count = 0;
        while count < most {
            let Some(in_place) = self.find(inlet) else {
                break;
            };
            let (inbound, mut outbox) = self.halves(terminus);
            if let Some(message) = shown(inbound, inlet.held_mut(), in_place) {
                H::passes(Point::Port(PortPoint::Taken));
                handle(&message, &mut outbox);
                message.dispose();
                count += 1;
            }
        }
        if self.sleepers.is_any() {
            self.wake_sleepers_if_active();
            self.wake_sleepers_for_credit();
        }
        Ok(count)
    }

    /// The message that is next of all, if it may be read where it lies.
    #[inline(always)]
    pub(crate) fn in_place(&mut self, inlet: &impl Inlet) -> Option<Found> {
        if let Half::Own(inbound) = &mut self.inbound
            && inlet.held().found.is_none()
        {
            return inbound.in_place(inlet.name()).map(|(found, _)| found);
        }
        None
    }

    /// True if a message is there. Does not move packets.
    pub(crate) fn has_message(&mut self, inlet: &impl Inlet) -> bool {
        inlet.held().found.is_some() || self.has_message_of(inlet.name())
    }

    /// The same of an inlet that is in another's hands, which holds no message.
    pub(crate) fn has_message_of(&mut self, inlet: &impl InletName) -> bool {
        let is_empty = |inbound: &Inbound<_, _>| inlet.is_empty(&inbound.receiver);
        if !self.inbound.read(is_empty) {
            return true;
        }
        let in_place = self.inbound.own().and_then(|own| own.in_place(inlet));
        in_place.is_some()
    }

    /// The next message, if there is one: in place, or else held by the inlet.
    #[inline(always)]
    pub(crate) fn find(&mut self, inlet: &mut impl Inlet) -> Option<Option<Found>> {
        match self.in_place(inlet) {
            None if !self.find_message(inlet) => None,
            // It may lie in place after all: it was overlooked while credit was due.
            None => Some(self.in_place(inlet)),
            in_place => Some(in_place),
        }
    }

    /// Shows the message that was found.
    #[inline(always)]
    pub(crate) fn shown<'a>(
        &'a mut self,
        inlet: &'a mut impl Inlet,
        in_place: Option<Found>,
    ) -> Option<PortMessage<'a, H>> {
        shown(&mut self.inbound, inlet.held_mut(), in_place)
    }

    /// Looks for a message, and moves it to the inlet's memory, unless it may be read where it lies
    /// ([`Interface::in_place`]). True if there is one.
    #[inline(never)]
    pub(crate) fn find_message(&mut self, inlet: &mut impl Inlet) -> bool {
        if inlet.held().found.is_some() {
            return true;
        }
        self.host.looks();
        if self.look_again() && self.in_place(inlet).is_some() {
            return true;
        }
        if self.pop_message(inlet) {
            return true;
        }
        if self.is_silent_while(|receiver| inlet.name().is_empty(receiver)) {
            return false;
        }
        let polled = self.poll_for(Some(inlet.name().queue()));
        if let Some(handed) = polled.handed {
            let held = inlet.held_mut();
            let buffer = &mut held.buffer;
            let member = self
                .inbound
                .lock(|inbound| inbound.receiver.swap_handed(buffer));
            let arrived = Arrived {
                handler: (handed.word >> 32) as u16,
                length_bytes: handed.word as u32,
                from: handed.from,
            };
            held.found = Some(Found { arrived, member });
            return true;
        }
        self.pop_message(inlet)
    }

    /// Moves the next message that waits in a queue to the inlet's memory.
    fn pop_message(&mut self, inlet: &mut impl Inlet) -> bool {
        let name = *inlet.name();
        let held = inlet.held_mut();
        let found = self
            .inbound
            .lock(|inbound| name.pop(&mut inbound.receiver, &mut held.buffer));
        held.found = found;
        let is_there = found.is_some();
        if is_there {
            // A network processor told of its link before it took the message: whoever handles it
            // may ask whose it is.
            self.drain_events_if_asked();
        }
        is_there
    }

    /// Moves the next message of the port to its memory, if it may be read where it lies, and
    /// disposes of it there: its bytes stay until the next one is looked for.
    #[inline(always)]
    pub(crate) fn take_message(&mut self, port: &mut Port) -> Option<Arrived> {
        let inbound = self.inbound.own()?;
        if port.held.found.is_some() {
            return None;
        }
        let (Found { arrived, .. }, shortcut) = inbound.in_place(&port.name)?;
        shortcut.copy_message(room_in(
            &mut port.held.buffer,
            arrived.length_bytes as usize,
        ));
        shortcut.message_done(arrived.length_bytes as u16);
        H::passes(Point::Port(PortPoint::Taken));
        Some(arrived)
    }

    /// The same, after a message that was not at hand.
    #[inline(never)]
    pub(crate) fn take_message_slowly(&mut self, port: &mut Port) -> Option<Arrived> {
        if let Some(arrived) = self.take_message(port) {
            return Some(arrived);
        }
        if !self.find_message(port) {
            return None;
        }
        self.take_message(port).or_else(|| {
            let Found { arrived, .. } = port.held.found.take()?;
            H::passes(Point::Port(PortPoint::Taken));
            Some(arrived)
        })
    }

    /// Sends a message to a port, for a handler, if nothing stands in its way, or queues it.
    /// Otherwise like [`Interface::try_send`].
    ///
    /// # Errors
    ///
    /// Those of `try_send`; a message that is longer than a packet of the link is an error.
    #[inline(always)]
    pub fn try_send_message(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        handler: u16,
        data: &[u8],
    ) -> Result<Option<SendHandle>, SendError> {
        self.check()?;
        match self.send_message_at_once(terminus, target, handler, data) {
            Some(handle) => Ok(Some(handle)),
            None => self.send_general(terminus, target, &to_handler(handler, data)),
        }
    }

    /// The fast path: sends a message to a port in cells.
    #[inline(always)]
    pub(crate) fn send_message_at_once(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        handler: u16,
        data: &[u8],
    ) -> Option<SendHandle> {
        let to = target.port_for(data.len())?;
        if self.is_asked() {
            return None;
        }
        at_once!(self.outbound, Self::AMONG_THREADS, |outbound| {
            outbound.send_message_at_once(terminus, target.link, &to, handler, data)
        })
    }
}

/// Shows the message that was found: in place, or in the inlet's memory.
#[inline(always)]
fn shown<'a, H: Host>(
    inbound: &'a mut InboundOf<H>,
    held: &'a mut Held,
    in_place: Option<Found>,
) -> Option<PortMessage<'a, H>> {
    let (place, found) = match in_place {
        Some(found) => (MessagePlace::InCells(inbound.own()?.shortcut()?), found),
        None => {
            let found = held.found?;
            (MessagePlace::Held(held), found)
        }
    };
    Some(PortMessage { place, found })
}

/// A message to a port, as one of the lower layer.
pub(crate) fn to_handler(handler: u16, data: &[u8]) -> Message<'_> {
    Message::new(data).word(handler.into())
}

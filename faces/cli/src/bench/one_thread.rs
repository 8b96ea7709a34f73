//! The program whose instructions are counted: two interfaces of one thread, one of which sends
//! short messages to the other, some at a time and then the other half of their way.
//!
//! Nothing here waits: what cannot go or has not come at once is an error. The functions whose name begins with
//! `counted` are what [`super::instructions`] looks for in the profile; what they call is called
//! before under other names, so that neither setting up nor rings that grow are counted.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::{Area, Manager, ManagerOptions, Message, NewSlot, Queue, Slot, Target, Wait};
use hamlyn::{datagram, stream, tagged_write};
use serde::{Deserialize, Serialize};

use super::latency::Protocol;
use crate::actor::next_order;

/// Messages sent before they are received. Fewer than the cells of an idle ring, so none waits for room.
pub(crate) const BATCH: usize = 32;
/// Batches that are not counted; enough for a stream to have used all of its memory.
const WARM_UP_BATCHES: u64 = 200;

/// What is to be done.
#[derive(Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) protocol: Protocol,
    /// Batches that are counted.
    pub(crate) batches: u64,
}

/// Both interfaces; the program is the only one in its namespace.
struct Interfaces {
    sending: Manager<ProcessHost>,
    receiving: Manager<ProcessHost>,
}

/// Both ends of a protocol, each call of which moves one message of 16 bytes.
trait Ends {
    fn send(&mut self, interfaces: &mut Interfaces, turn: usize) -> Result<()>;
    fn receive(&mut self, interfaces: &mut Interfaces, turn: usize) -> Result<()>;
}

/// Takes one order from standard input and carries it out.
pub(crate) fn run() -> Result<()> {
    let order: Order = next_order()?.context("not told what to count")?;
    let mut options = Options::default().in_namespace(&format!("count-{}", std::process::id()));
    options.spin_ns = Some(u64::MAX / 4);
    let mut interfaces = Interfaces {
        sending: hamlyn::open_with(options.clone(), ManagerOptions::default())?,
        receiving: hamlyn::open_with(options, ManagerOptions::default())?,
    };
    let there = &mut interfaces;
    match order.protocol {
        Protocol::Raw => count(&mut Raw::open(there)?, there, order.batches),
        Protocol::Tagged => count(&mut Tagged::open(there)?, there, order.batches),
        Protocol::Datagram => count(&mut Datagrams::open(there)?, there, order.batches),
        Protocol::Stream => count(&mut Stream::open(there)?, there, order.batches),
    }
}

fn count<E: Ends>(ends: &mut E, interfaces: &mut Interfaces, batches: u64) -> Result<()> {
    // The sender is connected; the receiver hears of it from its attendant, a thread of its own.
    let since = Instant::now();
    while interfaces.receiving.interface().peers().next().is_none() {
        interfaces.receiving.interface_mut().poll();
        ensure!(since.elapsed() < CONNECTION, "the sender never connected");
    }
    for _ in 0..WARM_UP_BATCHES {
        send_some(ends, interfaces)?;
        receive_some(ends, interfaces)?;
    }
    for _ in 0..batches {
        counted_sends(ends, interfaces)?;
        counted_receives(ends, interfaces)?;
    }
    Ok(())
}

#[inline(never)]
fn counted_sends<E: Ends>(ends: &mut E, interfaces: &mut Interfaces) -> Result<()> {
    // Not the last thing that is done here, so it is a call and not a jump.
    std::hint::black_box(send_some(ends, interfaces))
}

#[inline(never)]
fn counted_receives<E: Ends>(ends: &mut E, interfaces: &mut Interfaces) -> Result<()> {
    std::hint::black_box(receive_some(ends, interfaces))
}

#[inline(never)]
fn send_some<E: Ends>(ends: &mut E, interfaces: &mut Interfaces) -> Result<()> {
    for turn in 0..BATCH {
        ends.send(interfaces, turn)?;
    }
    Ok(())
}

#[inline(never)]
fn receive_some<E: Ends>(ends: &mut E, interfaces: &mut Interfaces) -> Result<()> {
    for turn in 0..BATCH {
        ends.receive(interfaces, turn)?;
    }
    Ok(())
}

const AREA_BYTES: u64 = 4096;
const DATA: [u8; 16] = [7; 16];
const CONNECTION: Duration = Duration::from_secs(5);
const GROWTH: Wait = Wait::For(CONNECTION);

fn place(turn: usize) -> u64 {
    turn as u64 * DATA.len() as u64
}

struct Raw {
    queue: Queue,
    target: Target,
    _area: Area,
    _slot: Slot,
}

impl Raw {
    fn open(interfaces: &mut Interfaces) -> Result<Self> {
        let receiving = interfaces.receiving.interface_mut();
        let area = receiving.allocate(AREA_BYTES)?;
        let queue = receiving.open_queue(1024)?;
        let slot = receiving.open_slot(NewSlot::new(&area).queue(&queue))?;
        let ticket = slot.fast_ticket(0, AREA_BYTES)?;
        let target = interfaces.sending.interface_mut().target(&ticket, GROWTH)?;
        Ok(Self {
            queue,
            target,
            _area: area,
            _slot: slot,
        })
    }
}

impl Ends for Raw {
    #[inline]
    fn send(&mut self, interfaces: &mut Interfaces, turn: usize) -> Result<()> {
        let terminus = interfaces.sending.terminus();
        let message = Message::new(&DATA).at(place(turn)).word(turn as u64);
        let interface = interfaces.sending.interface_mut();
        interface.send_msg(terminus, &self.target, &message, Wait::Poll)?;
        Ok(())
    }

    #[inline]
    fn receive(&mut self, interfaces: &mut Interfaces, turn: usize) -> Result<()> {
        let interface = interfaces.receiving.interface_mut();
        let notification = interface.rcv(&mut self.queue)?.context("no message")?;
        ensure!(notification.word == turn as u64, "another message");
        Ok(())
    }
}

struct Tagged {
    receiver: tagged_write::Receiver,
    sender: tagged_write::Sender,
}

impl Tagged {
    fn open(interfaces: &mut Interfaces) -> Result<Self> {
        let receiver = tagged_write::Receiver::new(&mut interfaces.receiving, AREA_BYTES, 1024)?;
        let ticket = receiver.ticket();
        let sender = tagged_write::Sender::grow(&mut interfaces.sending, &ticket, GROWTH)?;
        Ok(Self { receiver, sender })
    }
}

impl Ends for Tagged {
    #[inline]
    fn send(&mut self, interfaces: &mut Interfaces, turn: usize) -> Result<()> {
        let (sending, tag) = (&mut interfaces.sending, turn as u64);
        self.sender
            .send(sending, place(turn), &DATA, tag, Wait::Poll)?;
        Ok(())
    }

    #[inline]
    fn receive(&mut self, interfaces: &mut Interfaces, turn: usize) -> Result<()> {
        let tag = self
            .receiver
            .get_tag(&mut interfaces.receiving, Wait::Poll)?;
        ensure!(tag == Some(turn as u64), "another message, or none");
        Ok(())
    }
}

/// A receiver has room for one datagram, so there are as many as datagrams at a time.
struct Datagrams {
    ends: Vec<(datagram::Receiver, datagram::Sender)>,
}

impl Datagrams {
    fn open(interfaces: &mut Interfaces) -> Result<Self> {
        let ends: Result<Vec<_>> = (0..BATCH)
            .map(|_| {
                let mut receiver = datagram::Receiver::new(&mut interfaces.receiving, 64)?;
                receiver.ready();
                let ticket = receiver.ticket();
                let sender = datagram::Sender::grow(&mut interfaces.sending, &ticket, GROWTH)?;
                Ok((receiver, sender))
            })
            .collect();
        Ok(Self { ends: ends? })
    }
}

impl Ends for Datagrams {
    #[inline]
    fn send(&mut self, interfaces: &mut Interfaces, turn: usize) -> Result<()> {
        let (_, sender) = &self.ends[turn];
        sender.send(&mut interfaces.sending, 0, &DATA, None, Wait::Poll)?;
        Ok(())
    }

    #[inline]
    fn receive(&mut self, interfaces: &mut Interfaces, turn: usize) -> Result<()> {
        let (receiver, _) = &mut self.ends[turn];
        let datagram = receiver.receive(&mut interfaces.receiving, Wait::Poll)?;
        ensure!(datagram.is_some(), "no datagram");
        receiver.ready();
        Ok(())
    }
}

struct Stream {
    receiver: stream::Receiver,
    sender: stream::Sender,
}

impl Stream {
    fn open(interfaces: &mut Interfaces) -> Result<Self> {
        let options = stream::StreamOptions::default();
        let receiver = stream::Receiver::new(&mut interfaces.receiving, options)?;
        let seed = receiver.make_seed(&interfaces.receiving);
        let sender = stream::Sender::grow(&mut interfaces.sending, &seed, GROWTH)?;
        Ok(Self { receiver, sender })
    }
}

impl Ends for Stream {
    #[inline]
    fn send(&mut self, interfaces: &mut Interfaces, _: usize) -> Result<()> {
        self.sender
            .send(&mut interfaces.sending, &DATA, Wait::Poll)?;
        Ok(())
    }

    #[inline]
    fn receive(&mut self, interfaces: &mut Interfaces, _: usize) -> Result<()> {
        let receiving = &mut interfaces.receiving;
        let record = self.receiver.receive(receiving, Wait::Poll)?;
        self.receiver
            .release(receiving, &record.context("no record")?);
        Ok(())
    }
}

//! The program whose instructions are counted: two interfaces of one thread, one of which sends
//! messages to the other, some at a time and then the other half of their way.
//!
//! Nothing here waits: what cannot go or has not come at once is an error. The functions whose name
//! begins with `counted` are what [`crate::instructions`] looks for in the profile; what they call
//! is called before under other names, so that neither setting up nor rings that grow are counted.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::region::SharedOptions;
use hamlyn::{
    Access, Area, Holders, Manager, ManagerOptions, Message, NewPort, NewSlot, Port, Queue,
    Session, Slot,
};
use hamlyn::{Target, Wait, datagram, mailbox, stream, tagged_write};

use crate::Protocol;

mod ends;
mod layers;

pub use ends::BATCH;

use ends::{CONNECTION, Ends, GROWTH};
use layers::{Direct, Requests, Sections};

/// Batches that are not counted; enough for a stream to have used all of its memory.
const WARM_UP_BATCHES: u64 = 200;

/// Messages that are counted.
#[derive(Clone, Copy, Debug)]
pub enum Counted {
    /// Short ones, of 16 bytes.
    Short(Protocol),
    /// In fast mode, 64 bytes.
    Copied64,
    /// In fast mode, 4 KiB.
    Copied4096,
    /// In fast mode, 4 KiB that the sender stores into a region that it attached.
    Direct4096,
    /// To a port, without bytes.
    PortNull,
    /// To a port, 56 bytes, all that one cell holds.
    Port56,
    /// Of User Direct Messaging, without words; its handler does nothing but extract.
    UdmNull,
    /// Of User Direct Messaging, 14 words, each of which its handler reads.
    Udm14,
    /// No message: the beginning and the end of an atomic section.
    UdmSection,
    /// A request of Active Messages with four arguments, whose handler does nothing.
    AmRequest,
    /// The same, whose handler replies with as many.
    AmReply,
}

impl Counted {
    /// Each of them.
    pub const ALL: [Self; 16] = [
        Self::Short(Protocol::Raw),
        Self::Short(Protocol::Tagged),
        Self::Short(Protocol::Datagram),
        Self::Short(Protocol::Stream),
        Self::Short(Protocol::Port),
        Self::Short(Protocol::Mailbox),
        Self::Copied64,
        Self::Copied4096,
        Self::Direct4096,
        Self::PortNull,
        Self::Port56,
        Self::UdmNull,
        Self::Udm14,
        Self::UdmSection,
        Self::AmRequest,
        Self::AmReply,
    ];

    /// As reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Short(protocol) => protocol.name(),
            Self::Copied64 => "copied_64",
            Self::Copied4096 => "copied_4096",
            Self::Direct4096 => "direct_4096",
            Self::PortNull => "port_null",
            Self::Port56 => "port_56",
            Self::UdmNull => "udm_null",
            Self::Udm14 => "udm_14",
            Self::UdmSection => "udm_section",
            Self::AmRequest => "am_request",
            Self::AmReply => "am_reply",
        }
    }
}

/// What is to be done.
pub struct Order {
    /// The messages.
    pub counted: Counted,
    /// Batches that are counted.
    pub batches: u64,
}

impl Order {
    /// As it is told: a line.
    pub(crate) fn line(&self) -> String {
        format!("{} {}\n", self.counted.name(), self.batches)
    }

    fn read(line: &str) -> Option<Self> {
        let (name, batches) = line.trim_end().split_once(' ')?;
        let mut all = Counted::ALL.into_iter();
        Some(Self {
            counted: all.find(|counted| counted.name() == name)?,
            batches: batches.parse().ok()?,
        })
    }
}

/// Takes one order from standard input and carries it out. The program is the only one in its
/// namespace.
///
/// # Errors
///
/// There is no order, or a message cannot go or has not come at once.
pub fn run() -> Result<()> {
    let mut order = String::new();
    std::io::stdin().read_line(&mut order)?;
    let order = Order::read(&order).context("not told what to count")?;
    let mut options = Options::default().in_namespace(&format!("count-{}", std::process::id()));
    options.spin_ns = Some(u64::MAX / 4);
    let batches = order.batches;
    let protocol = match order.counted {
        Counted::Short(Protocol::Raw) => return count_raw::<SHORT_BYTES>(options, batches, false),
        Counted::Copied64 => return count_raw::<64>(options, batches, false),
        Counted::Copied4096 => return count_raw::<4096>(options, batches, false),
        Counted::Direct4096 => return count_raw::<4096>(options, batches, true),
        Counted::PortNull => return count_port::<0>(options, batches),
        Counted::Port56 => return count_port::<56>(options, batches),
        Counted::UdmNull => return count(&mut Direct::<0>::open(options)?, batches),
        Counted::Udm14 => return count(&mut Direct::<14>::open(options)?, batches),
        Counted::UdmSection => return count(&mut Sections::open(options)?, batches),
        Counted::AmRequest => return count(&mut Requests::open(&options, false)?, batches),
        Counted::AmReply => return count(&mut Requests::open(&options, true)?, batches),
        Counted::Short(Protocol::Port) => return count_port::<SHORT_BYTES>(options, batches),
        Counted::Short(protocol) => protocol,
    };
    let here = hamlyn::open_with(options.clone(), ManagerOptions::default())?;
    let there = hamlyn::open_with(options, ManagerOptions::default())?;
    let mut ends: Box<dyn FnMut() -> Result<()>> = match protocol {
        Protocol::Tagged => counting(Tagged::open(&here, &there)?, batches),
        Protocol::Datagram => counting(Datagrams::open(&here, &there)?, batches),
        Protocol::Stream => counting(Stream::open(&here, &there)?, batches),
        Protocol::Mailbox => counting(Mailbox::open(&here, &there)?, batches),
        Protocol::Raw | Protocol::Port => return Ok(()),
    };
    await_link(&mut there.session())?;
    ends()
}

/// The same in fast mode, of messages of that length.
fn count_raw<const BYTES: usize>(options: Options, batches: u64, is_direct: bool) -> Result<()> {
    let sending = Manager::new(
        ProcessHost::open(options.clone())?,
        ManagerOptions::default(),
    )?;
    let receiving = Manager::new(ProcessHost::open(options)?, ManagerOptions::default())?;
    let mut ends = Raw::<BYTES>::open(sending.session(), receiving.session(), is_direct)?;
    await_link(&mut ends.receiving)?;
    if is_direct {
        ends.grant()?;
    }
    count(&mut ends, batches)
}

/// The same to a port, of messages of that length.
fn count_port<const BYTES: usize>(options: Options, batches: u64) -> Result<()> {
    let sending = Manager::new(
        ProcessHost::open(options.clone())?,
        ManagerOptions::default(),
    )?;
    let receiving = Manager::new(ProcessHost::open(options)?, ManagerOptions::default())?;
    let mut ends = Ports::<BYTES>::open(sending.session(), receiving.session())?;
    await_link(&mut ends.receiving)?;
    count(&mut ends, batches)
}

fn counting<E: Ends + 'static>(mut ends: E, batches: u64) -> Box<dyn FnMut() -> Result<()>> {
    Box::new(move || count(&mut ends, batches))
}

/// The sender is connected; the receiver hears of it from the control thread of its host.
fn await_link(receiving: &mut Session<'_>) -> Result<()> {
    let since = Instant::now();
    while receiving.peers().next().is_none() {
        receiving.poll();
        ensure!(since.elapsed() < CONNECTION, "the sender never connected");
    }
    Ok(())
}

fn count<E: Ends>(ends: &mut E, batches: u64) -> Result<()> {
    for _ in 0..WARM_UP_BATCHES {
        send_some(ends)?;
        receive_some(ends)?;
    }
    for _ in 0..batches {
        counted_sends(ends)?;
        counted_receives(ends)?;
    }
    Ok(())
}

#[inline(never)]
fn counted_sends<E: Ends>(ends: &mut E) -> Result<()> {
    // Not the last thing that is done here, so it is a call and not a jump.
    std::hint::black_box(send_some(ends))
}

#[inline(never)]
fn counted_receives<E: Ends>(ends: &mut E) -> Result<()> {
    std::hint::black_box(receive_some(ends))
}

#[inline(never)]
fn send_some<E: Ends>(ends: &mut E) -> Result<()> {
    for turn in 0..BATCH {
        ends.send(turn)?;
    }
    Ok(())
}

#[inline(never)]
fn receive_some<E: Ends>(ends: &mut E) -> Result<()> {
    for turn in 0..BATCH {
        ends.receive(turn)?;
    }
    Ok(())
}

const AREA_BYTES: u64 = 4096;
const SHORT_BYTES: usize = 16;
const DATA: [u8; SHORT_BYTES] = [7; SHORT_BYTES];

fn place(turn: usize) -> u64 {
    turn as u64 * DATA.len() as u64
}

struct Raw<'a, const BYTES: usize> {
    sending: Session<'a>,
    receiving: Session<'a>,
    queue: Queue,
    target: Target,
    slot: Slot,
}

impl<'a, const BYTES: usize> Raw<'a, BYTES> {
    const DATA: [u8; BYTES] = [7; BYTES];
    const AREA_BYTES: u64 = (BATCH * BYTES).next_multiple_of(4096) as u64;

    fn open(mut sending: Session<'a>, mut receiving: Session<'a>, is_direct: bool) -> Result<Self> {
        let area = if is_direct {
            Area::shared(SharedOptions::reserved(Self::AREA_BYTES))?
        } else {
            receiving.allocate(Self::AREA_BYTES)?
        };
        let queue = receiving.open_queue(1024)?;
        let slot = receiving.open_slot(NewSlot::new(&area).queue(&queue))?;
        let ticket = slot.fast_ticket(0, Self::AREA_BYTES)?;
        let target = sending.target(&ticket, GROWTH)?;
        Ok(Self {
            sending,
            receiving,
            queue,
            target,
            slot,
        })
    }

    /// Lets the sender store into the memory by itself.
    fn grant(&mut self) -> Result<()> {
        let (link, _) = self.receiving.peers().next().context("no peer")?;
        let range = 0..Self::AREA_BYTES;
        let holders = Holders::One(link);
        let region = self
            .receiving
            .share(&self.slot, range, Access::Writable, holders)?;
        self.sending.attach(&region.ticket(), GROWTH)?;
        Ok(())
    }
}

impl<const BYTES: usize> Ends for Raw<'_, BYTES> {
    #[inline]
    fn send(&mut self, turn: usize) -> Result<()> {
        let place = (turn * BYTES) as u64;
        let message = Message::new(&Self::DATA).at(place).word(turn as u64);
        let terminus = self.sending.terminus();
        self.sending
            .send_msg(terminus, &self.target, &message, Wait::Poll)?;
        Ok(())
    }

    #[inline]
    fn receive(&mut self, turn: usize) -> Result<()> {
        let notification = self.receiving.rcv(&mut self.queue)?;
        let notification = notification.context("no message")?;
        ensure!(notification.word == turn as u64, "another message");
        Ok(())
    }
}

/// Of a message to a port, its handler and each of its words is read where it lies.
struct Ports<'a, const BYTES: usize> {
    sending: Session<'a>,
    receiving: Session<'a>,
    port: Port,
    target: Target,
}

impl<'a, const BYTES: usize> Ports<'a, BYTES> {
    const DATA: [u8; BYTES] = [7; BYTES];

    fn open(mut sending: Session<'a>, mut receiving: Session<'a>) -> Result<Self> {
        let port = receiving.open_port(NewPort::new().handlers(BATCH as u16))?;
        let target = sending.target(&port.ticket(), GROWTH)?;
        Ok(Self {
            sending,
            receiving,
            port,
            target,
        })
    }
}

impl<const BYTES: usize> Ends for Ports<'_, BYTES> {
    #[inline]
    fn send(&mut self, turn: usize) -> Result<()> {
        let handler = turn as u16;
        self.sending
            .send_message(&self.target, handler, &Self::DATA, Wait::Poll)?;
        Ok(())
    }

    #[inline]
    fn receive(&mut self, turn: usize) -> Result<()> {
        let message = self.receiving.next_message(&mut self.port)?;
        let message = message.context("no message")?;
        let mut words = 0;
        for number in 0..BYTES / 8 {
            words ^= message.word(number);
        }
        std::hint::black_box(words);
        ensure!(usize::from(message.handler()) == turn, "another message");
        message.dispose();
        Ok(())
    }
}

struct Mailbox {
    receiver: mailbox::Receiver,
    sender: mailbox::Sender,
}

impl Mailbox {
    fn open(here: &Manager, there: &Manager) -> Result<Self> {
        let receiver = mailbox::Receiver::new(there, mailbox::MailboxOptions::default())?;
        let sender = mailbox::Sender::grow(here, &receiver.ticket(), GROWTH)?;
        Ok(Self { receiver, sender })
    }
}

impl Ends for Mailbox {
    #[inline]
    fn send(&mut self, _: usize) -> Result<()> {
        self.sender.send(&DATA, Wait::Poll)?;
        Ok(())
    }

    #[inline]
    fn receive(&mut self, _: usize) -> Result<()> {
        self.receiver.recv(Wait::Poll)?.context("no mail")?;
        Ok(())
    }
}

struct Tagged {
    receiver: tagged_write::Receiver,
    sender: tagged_write::Sender,
}

impl Tagged {
    fn open(here: &Manager, there: &Manager) -> Result<Self> {
        let receiver = tagged_write::Receiver::new(there, AREA_BYTES, 1024)?;
        let ticket = receiver.ticket();
        let sender = tagged_write::Sender::grow(here, &ticket, GROWTH)?;
        Ok(Self { receiver, sender })
    }
}

impl Ends for Tagged {
    #[inline]
    fn send(&mut self, turn: usize) -> Result<()> {
        self.sender
            .send(place(turn), &DATA, turn as u64, Wait::Poll)?;
        Ok(())
    }

    #[inline]
    fn receive(&mut self, turn: usize) -> Result<()> {
        let tag = self.receiver.get_tag(Wait::Poll)?.context("no tag")?;
        ensure!(tag == turn as u64, "another message");
        Ok(())
    }
}

/// A receiver has room for one datagram, so there are as many as datagrams at a time.
struct Datagrams {
    ends: Vec<(datagram::Receiver, datagram::Sender)>,
}

impl Datagrams {
    fn open(here: &Manager, there: &Manager) -> Result<Self> {
        let ends: Result<Vec<_>> = (0..BATCH)
            .map(|_| {
                let mut receiver = datagram::Receiver::new(there, 64)?;
                receiver.ready();
                let ticket = receiver.ticket();
                let sender = datagram::Sender::grow(here, &ticket, GROWTH)?;
                Ok((receiver, sender))
            })
            .collect();
        Ok(Self { ends: ends? })
    }
}

impl Ends for Datagrams {
    #[inline]
    fn send(&mut self, turn: usize) -> Result<()> {
        let (_, sender) = &self.ends[turn];
        sender.send(&DATA, Wait::Poll)?;
        Ok(())
    }

    #[inline]
    fn receive(&mut self, turn: usize) -> Result<()> {
        let (receiver, _) = &mut self.ends[turn];
        receiver.recv(Wait::Poll)?.context("no datagram")?;
        Ok(())
    }
}

struct Stream {
    receiver: stream::Receiver,
    sender: stream::Sender,
}

impl Stream {
    fn open(here: &Manager, there: &Manager) -> Result<Self> {
        let options = stream::StreamOptions::default();
        let receiver = stream::Receiver::new(there, options)?;
        let seed = receiver.make_seed();
        let sender = stream::Sender::grow(here, &seed, GROWTH)?;
        Ok(Self { receiver, sender })
    }
}

impl Ends for Stream {
    #[inline]
    fn send(&mut self, _: usize) -> Result<()> {
        self.sender.send(&DATA, Wait::Poll)?;
        Ok(())
    }

    #[inline]
    fn receive(&mut self, _: usize) -> Result<()> {
        self.receiver.recv(Wait::Poll)?.context("no record")?;
        Ok(())
    }
}

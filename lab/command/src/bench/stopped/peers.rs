//! The peers: interfaces of one process, of which one is polled only when it is said.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, anyhow, bail};
use hamlyn::host::process::ProcessHost;
use hamlyn::stream::StreamOptions;
use hamlyn::{Manager, Message, NewSlot, Queue, ReceiveError, Slot, Target, Ticket, Wait};
use hamlyn::{datagram, stream, tagged_write};
use serde::{Deserialize, Serialize};

use super::WAIT;
use crate::bench::{open, pin};
use hamlyn_cli::actor::{answer, from_hex, next_order, to_hex};

/// Tags, and fast messages, that a peer has room for until it takes them.
const QUEUE_ENTRIES: usize = 16 << 10;
/// Messages that are taken from one peer before the next one has its turn.
const MESSAGES_PER_TURN: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Protocol {
    TaggedWrite,
    Datagram,
    Stream,
}

impl Protocol {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Protocol::TaggedWrite => "tagged_write",
            Protocol::Datagram => "datagram",
            Protocol::Stream => "stream",
        }
    }
}

/// What the process is to do next.
#[derive(Serialize, Deserialize)]
pub(super) enum Order {
    /// Stay on that processor, and open one peer that stops and so many that live, for messages of
    /// so many bytes. Answers with where each is sent to, the one that stops first.
    Open {
        processor: usize,
        protocol: Protocol,
        peers: usize,
        bytes: usize,
        /// Where a peer says that it is ready for another datagram.
        ready: String,
    },
    /// Take what comes to the live peers, until the next order. No answer.
    Take,
    /// The same for all peers. No answer.
    TakeAll,
    /// Take nothing more. It answers.
    Stop,
}

enum Receiver {
    TaggedWrite(tagged_write::Receiver),
    /// Where it says that it is ready.
    Datagram(datagram::Receiver, Target),
    Stream(Box<stream::Receiver>),
}

struct Peer {
    number: u64,
    manager: Manager<ProcessHost>,
    receiver: Receiver,
}

impl Peer {
    fn open(
        number: u64,
        protocol: Protocol,
        bytes: usize,
        ready: &Ticket,
    ) -> Result<(Self, String)> {
        let manager = open()?;
        let (receiver, place) = match protocol {
            Protocol::TaggedWrite => {
                let receiver = tagged_write::Receiver::new(&manager, bytes as u64, QUEUE_ENTRIES)?;
                let place = to_hex(&receiver.ticket().to_bytes());
                (Receiver::TaggedWrite(receiver), place)
            }
            Protocol::Datagram => {
                let mut receiver = datagram::Receiver::new(&manager, bytes as u32)?;
                receiver.ready();
                let place = to_hex(&receiver.ticket().to_bytes());
                let ready = manager.session().target(ready, WAIT)?;
                (Receiver::Datagram(receiver, ready), place)
            }
            Protocol::Stream => {
                let receiver = stream::Receiver::new(&manager, StreamOptions::default())?;
                let place = to_hex(&receiver.make_seed().to_bytes());
                (Receiver::Stream(Box::new(receiver)), place)
            }
        };
        let peer = Self {
            number,
            manager,
            receiver,
        };
        Ok((peer, place))
    }

    /// Takes what came, as far as it does not keep others waiting.
    fn take(&mut self) -> Result<()> {
        for _ in 0..MESSAGES_PER_TURN {
            match self.take_one() {
                Ok(true) => {}
                // A tag that was overwritten came all the same.
                Ok(false) | Err(ReceiveError::Overrun(_)) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Whether there was one, and there may be more.
    #[inline]
    fn take_one(&mut self) -> Result<bool, ReceiveError> {
        let manager = &mut self.manager;
        match &mut self.receiver {
            Receiver::TaggedWrite(receiver) => Ok(receiver.get_tag(Wait::Poll)?.is_some()),
            Receiver::Datagram(receiver, ready) => {
                if receiver.recv(Wait::Poll)?.is_some() {
                    let message = Message::new(&[]).word(self.number);
                    let terminus = manager.terminus();
                    let mut interface = manager.session();
                    // There is room: the sender has one datagram on its way to each peer.
                    let _ = interface.send_msg(terminus, ready, &message, WAIT);
                }
                Ok(false)
            }
            Receiver::Stream(receiver) => Ok(receiver.recv(Wait::Poll)?.is_some()),
        }
    }
}

/// The peer that stops. It is sent short messages in fast mode, whatever the other peers are sent.
struct Stopped {
    manager: Manager<ProcessHost>,
    queue: Queue,
    _slot: Slot,
}

impl Stopped {
    fn open() -> Result<(Self, String)> {
        let manager = open()?;
        let mut interface = manager.session();
        let area = interface.allocate(64)?;
        let queue = interface.open_queue(QUEUE_ENTRIES)?;
        let slot = interface.open_slot(NewSlot::new(&area).queue(&queue))?;
        let place = to_hex(&slot.fast_ticket(0, 64)?.to_bytes());
        drop(interface);
        let stopped = Self {
            manager,
            queue,
            _slot: slot,
        };
        Ok((stopped, place))
    }

    /// Takes what came; what was overwritten is of no interest.
    fn take(&mut self) {
        for _ in 0..MESSAGES_PER_TURN {
            if let Ok(None) = self.manager.session().rcv(&mut self.queue) {
                break;
            }
        }
    }
}

/// The process.
pub(crate) fn run() -> Result<()> {
    let Some(Order::Open {
        processor,
        protocol,
        peers,
        bytes,
        ready,
    }) = next_order()?
    else {
        bail!("not told what to open");
    };
    pin(&[processor])?;
    let ready = Ticket::from_bytes(&from_hex(&ready)?)?;
    let (mut stopped, place) = Stopped::open()?;
    let (mut live, mut places) = (Vec::new(), vec![place]);
    for number in 0..peers as u64 {
        let (peer, place) = Peer::open(number, protocol, bytes, &ready)?;
        live.push(peer);
        places.push(place);
    }
    answer(&places)?;
    let mut order = next_order()?;
    while let Some(current) = order {
        let with_stopped = match current {
            Order::Open { .. } => bail!("open already"),
            Order::Stop => {
                answer(&())?;
                order = next_order()?;
                continue;
            }
            Order::Take => None,
            Order::TakeAll => Some(&mut stopped),
        };
        order = take_until_ordered(&mut live, with_stopped)?;
    }
    Ok(())
}

/// Takes until the next order.
fn take_until_ordered(
    live: &mut [Peer],
    mut stopped: Option<&mut Stopped>,
) -> Result<Option<Order>> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let listening = scope.spawn(|| {
            let order = next_order();
            stop.store(true, Ordering::Relaxed);
            order
        });
        while !stop.load(Ordering::Relaxed) {
            live.iter_mut().try_for_each(Peer::take)?;
            if let Some(stopped) = &mut stopped {
                stopped.take();
            }
        }
        listening
            .join()
            .map_err(|_| anyhow!("nobody listens for orders"))?
    })
}

//! The two ends of each protocol, and what they check of each message.

use anyhow::{Context, Result, bail, ensure};
use hamlyn::engine::terminus::TerminusId;
use hamlyn::host::process::ProcessHost;
use hamlyn::region::SharedOptions;
use hamlyn::{
    Access, Area, Holders, Manager, Message, NewPort, NewSlot, Port, Queue, RegionTicket, Slot,
    Target, Ticket, Wait,
};
use hamlyn::{datagram, mailbox, stream, tagged_write};

use super::{AREA_BYTES, Exchange, LINE_MESSAGE_BYTES, Protocol, place};
use crate::bench::raw::{ends, mark};
use hamlyn_cli::actor::{from_hex, to_hex};

const WAIT: Wait = Wait::millis(5000);

/// The receiving end of a protocol.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub(super) enum Receiving {
    Raw {
        manager: Manager<ProcessHost>,
        slot: Slot,
        queue: Queue,
        area: Area,
    },
    Tagged(tagged_write::Receiver),
    Datagram(datagram::Receiver),
    Stream(stream::Receiver),
    Port {
        manager: Manager<ProcessHost>,
        port: Port,
        /// All of a message is read where it lies.
        read: Vec<u8>,
    },
    Mailbox(mailbox::Receiver),
}

impl Receiving {
    pub(super) fn open(manager: &Manager<ProcessHost>, exchange: Exchange) -> Result<Self> {
        Ok(match exchange.protocol {
            Protocol::Raw => {
                let mut interface = manager.session();
                let area = if exchange.is_direct {
                    Area::shared(SharedOptions::reserved(AREA_BYTES))?
                } else {
                    interface.allocate(AREA_BYTES)?
                };
                let queue = interface.open_queue(1024)?;
                let slot = interface.open_slot(NewSlot::new(&area).queue(&queue))?;
                drop(interface);
                Self::Raw {
                    manager: manager.clone(),
                    slot,
                    queue,
                    area,
                }
            }
            Protocol::Tagged => {
                Self::Tagged(tagged_write::Receiver::new(manager, AREA_BYTES, 1024)?)
            }
            Protocol::Datagram => {
                let mut receiver = datagram::Receiver::new(manager, AREA_BYTES as u32)?;
                receiver.ready();
                Self::Datagram(receiver)
            }
            Protocol::Stream => {
                let options = stream::StreamOptions::default();
                Self::Stream(stream::Receiver::new(manager, options)?)
            }
            Protocol::Port => Self::Port {
                port: manager.session().open_port(NewPort::new())?,
                manager: manager.clone(),
                read: vec![0; exchange.length_bytes],
            },
            Protocol::Mailbox => {
                let options = mailbox::MailboxOptions::default();
                Self::Mailbox(mailbox::Receiver::new(manager, options)?)
            }
        })
    }

    pub(super) fn grows_from(&self) -> Result<String> {
        Ok(match self {
            Self::Raw { slot, .. } => to_hex(&slot.fast_ticket(0, AREA_BYTES)?.to_bytes()),
            Self::Tagged(receiver) => to_hex(&receiver.ticket().to_bytes()),
            Self::Datagram(receiver) => to_hex(&receiver.ticket().to_bytes()),
            Self::Stream(receiver) => to_hex(&receiver.make_seed().to_bytes()),
            Self::Port { port, .. } => to_hex(&port.ticket().to_bytes()),
            Self::Mailbox(receiver) => to_hex(&receiver.ticket().to_bytes()),
        })
    }

    /// Shares all of the memory with the interface to which the other end sends.
    pub(super) fn grant(&self, sending: &Sending) -> Result<String> {
        let (Self::Raw { manager, slot, .. }, Sending::Raw { target, .. }) = (self, sending) else {
            bail!("nothing to share");
        };
        let mut session = manager.session();
        let holders = Holders::One(target.link());
        let region = session.share(slot, 0..AREA_BYTES, Access::Writable, holders)?;
        Ok(to_hex(&region.ticket().to_bytes()))
    }

    #[inline]
    pub(super) fn receive(&mut self, exchange: Exchange, turn: u64) -> Result<()> {
        match self {
            Self::Raw {
                manager,
                queue,
                area,
                ..
            } => {
                let notification = loop {
                    if let Some(notification) = manager.session().rcv(queue)? {
                        break notification;
                    }
                };
                let word = if exchange.has_word { turn } else { 0 };
                ensure!(notification.word == word, "another message");
                check_area(area, exchange, turn)
            }
            Self::Tagged(receiver) => {
                let tag = receiver.get_tag(Wait::Forever)?.context("no tag")?;
                ensure!(tag == turn, "another message");
                check_area(receiver.area(), exchange, turn)
            }
            Self::Datagram(receiver) => {
                let datagram = receiver.recv(Wait::Forever)?.context("no datagram")?;
                check(&datagram, exchange, turn)
            }
            Self::Stream(receiver) => {
                let record = receiver.recv(Wait::Forever)?.context("no record")?;
                check(&record, exchange, turn)
            }
            Self::Port {
                manager,
                port,
                read,
            } => {
                let mut session = manager.session();
                let message = session.recv_message(port, Wait::Forever)?;
                let message = message.context("no message")?;
                ensure!(message.len() == read.len(), "a message of another length");
                message.copy_to(read);
                message.dispose();
                check(read, exchange, turn)
            }
            Self::Mailbox(receiver) => {
                let mail = receiver.recv(Wait::Forever)?.context("no mail")?;
                check(&mail, exchange, turn)
            }
        }
    }
}

#[inline]
fn check_area(area: &Area, exchange: Exchange, turn: u64) -> Result<()> {
    let length_bytes = exchange.length_bytes;
    let at = place(turn, length_bytes);
    match length_bytes {
        0 => {}
        1..8 => {
            let mut first = [0];
            area.read_at(at, &mut first)?;
            ensure!(first == [turn as u8], "a message with other bytes");
        }
        _ => ensure!(area.load_u64(at)? == turn, "a message with other bytes"),
    }
    if length_bytes > LINE_MESSAGE_BYTES {
        let mut last = [0; 8];
        area.read_at(at + length_bytes as u64 - 8, &mut last)?;
        ensure!(
            u64::from_le_bytes(last) == !turn,
            "a message with other bytes"
        );
    }
    Ok(())
}

#[inline]
fn check(message: &[u8], exchange: Exchange, turn: u64) -> Result<()> {
    ensure!(
        message.len() == exchange.length_bytes,
        "a message of another length"
    );
    match message {
        [] => {}
        [first, ..] if message.len() < 8 => {
            ensure!(*first == turn as u8, "a message with other bytes");
        }
        _ => {
            let (first, last) = ends(message);
            let is_last = message.len() <= LINE_MESSAGE_BYTES || last == !turn;
            ensure!(first == turn && is_last, "a message with other bytes");
        }
    }
    Ok(())
}

/// The sending end of a protocol.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub(super) enum Sending {
    Raw {
        manager: Manager<ProcessHost>,
        terminus: TerminusId,
        target: Target,
    },
    Tagged(tagged_write::Sender),
    Datagram(datagram::Sender),
    Stream(stream::Sender),
    Port {
        manager: Manager<ProcessHost>,
        target: Target,
    },
    Mailbox(mailbox::Sender),
}

impl Sending {
    pub(super) fn grow(
        manager: &Manager<ProcessHost>,
        exchange: Exchange,
        grown: &str,
    ) -> Result<Self> {
        let bytes = from_hex(grown)?;
        if exchange.protocol == Protocol::Stream {
            let seed = stream::StreamSeed::from_bytes(&bytes)?;
            return Ok(Self::Stream(stream::Sender::grow(manager, &seed, WAIT)?));
        }
        let ticket = Ticket::from_bytes(&bytes)?;
        Ok(match exchange.protocol {
            Protocol::Raw => Self::Raw {
                terminus: manager.terminus(),
                target: manager.session().target(&ticket, WAIT)?,
                manager: manager.clone(),
            },
            Protocol::Tagged => Self::Tagged(tagged_write::Sender::grow(manager, &ticket, WAIT)?),
            Protocol::Datagram => Self::Datagram(datagram::Sender::grow(manager, &ticket, WAIT)?),
            Protocol::Stream => bail!("a stream grows from a seed"),
            Protocol::Port => Self::Port {
                target: manager.session().target(&ticket, WAIT)?,
                manager: manager.clone(),
            },
            Protocol::Mailbox => Self::Mailbox(mailbox::Sender::grow(manager, &ticket, WAIT)?),
        })
    }

    /// Stores there from now on.
    pub(super) fn accept(&self, grant: &str) -> Result<()> {
        let Self::Raw { manager, .. } = self else {
            bail!("nothing to store into");
        };
        let ticket = RegionTicket::from_bytes(&from_hex(grant)?)?;
        manager.session().attach(&ticket, WAIT)?;
        Ok(())
    }

    #[inline]
    pub(super) fn send(&mut self, exchange: Exchange, data: &mut [u8], turn: u64) -> Result<()> {
        mark(data, turn);
        let place = place(turn, exchange.length_bytes);
        match self {
            Self::Raw {
                manager,
                terminus,
                target,
            } => {
                let word = if exchange.has_word { turn } else { 0 };
                let message = Message::new(data).at(place).word(word);
                manager
                    .session()
                    .send_msg(*terminus, target, &message, Wait::Forever)?;
            }
            Self::Tagged(sender) => {
                sender.send(place, data, turn, Wait::Forever)?;
            }
            Self::Datagram(sender) => {
                sender.send_to(place as u32, data, None, Wait::Forever)?;
            }
            Self::Stream(sender) => {
                sender.send(data, Wait::Forever)?;
            }
            Self::Port { manager, target } => {
                let mut session = manager.session();
                session.send_message(target, 0, data, Wait::Forever)?;
            }
            Self::Mailbox(sender) => {
                sender.send(data, Wait::Forever)?;
            }
        }
        Ok(())
    }
}

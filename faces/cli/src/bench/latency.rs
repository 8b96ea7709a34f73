//! One-way time of 16-byte messages, by protocol: half of a round trip.

use anyhow::{Context, Result, bail};
use hamlyn::host::process::ProcessHost;
use hamlyn::{Manager, Message, NewSlot, Queue, Slot, Target, Ticket, Wait};
use hamlyn::{datagram, stream, tagged_write};
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};

use super::pair::{Order, Pair};
use super::report::Report;
use super::{Effort, median};
use crate::actor::{from_hex, to_hex};

/// The most by which the raw hand-off may move during a measurement.
const STEADY: f64 = 0.15;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
pub(crate) enum Protocol {
    #[value(name = "fast_mode")]
    Raw,
    #[value(name = "tagged_write")]
    Tagged,
    Datagram,
    Stream,
}

impl Protocol {
    pub(crate) const ALL: [Protocol; 4] = [
        Protocol::Raw,
        Protocol::Tagged,
        Protocol::Datagram,
        Protocol::Stream,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Protocol::Raw => "fast_mode",
            Protocol::Tagged => "tagged_write",
            Protocol::Datagram => "datagram",
            Protocol::Stream => "stream",
        }
    }
}

/// One process' receiving and sending end of a protocol.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub(crate) enum End {
    Raw {
        slot: Slot,
        queue: Queue,
        area: hamlyn::Area,
        target: Option<Target>,
    },
    Tagged {
        receiver: tagged_write::Receiver,
        sender: Option<tagged_write::Sender>,
    },
    Datagram {
        receiver: datagram::Receiver,
        sender: Option<datagram::Sender>,
    },
    Stream {
        receiver: stream::Receiver,
        sender: Option<stream::Sender>,
    },
}

const AREA_BYTES: u64 = 4096;

impl End {
    pub(crate) fn open(manager: &Manager<ProcessHost>, protocol: Protocol) -> Result<Self> {
        Ok(match protocol {
            Protocol::Raw => {
                let mut interface = manager.interface();
                let area = interface.allocate(AREA_BYTES)?;
                let queue = interface.open_queue(1024)?;
                let slot = interface.open_slot(NewSlot::new(&area).queue(&queue))?;
                End::Raw {
                    slot,
                    queue,
                    area,
                    target: None,
                }
            }
            Protocol::Tagged => End::Tagged {
                receiver: tagged_write::Receiver::new(manager, AREA_BYTES, 1024)?,
                sender: None,
            },
            Protocol::Datagram => {
                let mut receiver = datagram::Receiver::new(manager, AREA_BYTES as u32)?;
                receiver.ready();
                End::Datagram {
                    receiver,
                    sender: None,
                }
            }
            Protocol::Stream => End::Stream {
                receiver: stream::Receiver::new(manager, stream::StreamOptions::default())?,
                sender: None,
            },
        })
    }

    /// What the other process grows its sending end from.
    pub(crate) fn grows_from(&self, _: &Manager<ProcessHost>) -> Result<String> {
        Ok(match self {
            End::Raw { slot, .. } => to_hex(&slot.fast_ticket(0, AREA_BYTES)?.to_bytes()),
            End::Tagged { receiver, .. } => to_hex(&receiver.ticket().to_bytes()),
            End::Datagram { receiver, .. } => to_hex(&receiver.ticket().to_bytes()),
            End::Stream { receiver, .. } => to_hex(&receiver.make_seed().to_bytes()),
        })
    }

    pub(crate) fn grow(&mut self, manager: &Manager<ProcessHost>, grown: &[String]) -> Result<()> {
        let bytes = from_hex(grown.first().context("nothing to grow from")?)?;
        let wait = Wait::millis(5000);
        match self {
            End::Raw { target, .. } => {
                let ticket = Ticket::from_bytes(&bytes)?;
                *target = Some(manager.interface().target(&ticket, wait)?);
            }
            End::Tagged { sender, .. } => {
                *sender = Some(tagged_write::Sender::grow(
                    manager,
                    &Ticket::from_bytes(&bytes)?,
                    wait,
                )?);
            }
            End::Datagram { sender, .. } => {
                *sender = Some(datagram::Sender::grow(
                    manager,
                    &Ticket::from_bytes(&bytes)?,
                    wait,
                )?);
            }
            End::Stream { sender, .. } => {
                let seed = stream::StreamSeed::from_bytes(&bytes)?;
                *sender = Some(stream::Sender::grow(manager, &seed, wait)?);
            }
        }
        Ok(())
    }

    /// Sends and awaits the answer, so often.
    pub(crate) fn lead(&mut self, manager: &Manager<ProcessHost>, round_trips: u64) -> Result<()> {
        for turn in 0..round_trips {
            self.send(manager, turn)?;
            let answer = self.receive(manager)?;
            if answer != turn {
                bail!("an answer to another message");
            }
        }
        Ok(())
    }

    /// Awaits and answers, so often.
    pub(crate) fn echo(&mut self, manager: &Manager<ProcessHost>, round_trips: u64) -> Result<()> {
        for _ in 0..round_trips {
            let turn = self.receive(manager)?;
            self.send(manager, turn)?;
        }
        Ok(())
    }

    #[inline]
    fn send(&mut self, manager: &Manager<ProcessHost>, turn: u64) -> Result<()> {
        let mut data = [0; 16];
        data[..8].copy_from_slice(&turn.to_le_bytes());
        let place = (turn % 64) * 16;
        match self {
            End::Raw {
                target: Some(target),
                ..
            } => {
                let terminus = manager.terminus();
                let message = Message::new(&data).at(place).word(place);
                manager
                    .interface()
                    .send_msg(terminus, target, &message, Wait::Forever)?;
            }
            End::Tagged {
                sender: Some(sender),
                ..
            } => {
                sender.send(place, &data, place, Wait::Forever)?;
            }
            End::Datagram {
                sender: Some(sender),
                ..
            } => {
                sender.send_to(place as u32, &data, None, Wait::Forever)?;
            }
            End::Stream {
                sender: Some(sender),
                ..
            } => {
                sender.send(&data, Wait::Forever)?;
            }
            _ => bail!("the sending end was not grown"),
        }
        Ok(())
    }

    /// Waits for a message and reads what it brought.
    #[inline]
    fn receive(&mut self, manager: &Manager<ProcessHost>) -> Result<u64> {
        Ok(match self {
            End::Raw { queue, area, .. } => {
                let notification = loop {
                    if let Some(notification) = manager.interface().rcv(queue)? {
                        break notification;
                    }
                };
                area.load_u64(notification.word).unwrap_or(u64::MAX)
            }
            End::Tagged { receiver, .. } => {
                let tag = receiver.get_tag(Wait::Forever)?.context("no tag")?;
                receiver.area().load_u64(tag).unwrap_or(u64::MAX)
            }
            End::Datagram { receiver, .. } => {
                first_word(&receiver.recv(Wait::Forever)?.context("no datagram")?)
            }
            End::Stream { receiver, .. } => {
                first_word(&receiver.recv(Wait::Forever)?.context("no record")?)
            }
        })
    }
}

fn first_word(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(u64::MAX, |word| u64::from_le_bytes(*word))
}

pub(crate) fn measure(
    pair: &mut Pair,
    protocols: &[Protocol],
    effort: Effort,
    report: &mut Report,
    bar: &ProgressBar,
) -> Result<()> {
    for &protocol in protocols {
        let figures = one_way(pair, protocol, effort)?;
        report.latencies.push((protocol, figures));
        bar.inc(1);
    }
    Ok(())
}

/// Medians of the batches, and how many batches had to be repeated.
pub(crate) struct Figures {
    pub(crate) one_way_ns: f64,
    pub(crate) over_raw: f64,
    pub(crate) raw_ns: f64,
    pub(crate) repeated: usize,
}

/// Measures one protocol between the two.
pub(crate) fn one_way(pair: &mut Pair, protocol: Protocol, effort: Effort) -> Result<Figures> {
    let mut end = End::open(&pair.manager, protocol)?;
    pair.actor.order(&Order::Open { protocol })?;
    let theirs: String = pair.actor.answer()?;
    end.grow(&pair.manager, &[theirs])?;
    let ours = end.grows_from(&pair.manager)?;
    // Both warm up, and grow the other direction.
    round_trips(pair, &mut end, protocol, vec![ours], effort.round_trips)?;
    let mut figures = Vec::new();
    let mut ratios = Vec::new();
    let mut raws = Vec::new();
    let mut repeated = 0;
    let started = std::time::Instant::now();
    while figures.len() < effort.batches {
        let before = pair.raw(effort.round_trips)?;
        let ours = round_trips(pair, &mut end, protocol, Vec::new(), effort.round_trips)?;
        let after = pair.raw(effort.round_trips)?;
        if (before - after).abs() > STEADY * before.min(after) {
            repeated += 1;
            if started.elapsed() > effort.timeout {
                bail!(
                    "the raw hand-off never kept still ({before:.0} and {after:.0} ns): the machine is too disturbed to measure"
                );
            }
            continue;
        }
        let raw = (before + after) / 2.0;
        figures.push(ours);
        ratios.push(ours / raw);
        raws.push(raw);
    }
    Ok(Figures {
        one_way_ns: median(figures),
        over_raw: median(ratios),
        raw_ns: median(raws),
        repeated,
    })
}

/// Nanoseconds one way.
fn round_trips(
    pair: &mut Pair,
    end: &mut End,
    protocol: Protocol,
    grown: Vec<String>,
    round_trips: u64,
) -> Result<f64> {
    pair.actor.order(&Order::Echo {
        protocol,
        grown,
        round_trips,
    })?;
    let () = pair.actor.answer()?;
    let start = std::time::Instant::now();
    end.lead(&pair.manager, round_trips)?;
    Ok(start.elapsed().as_nanos() as f64 / round_trips as f64 / 2.0)
}

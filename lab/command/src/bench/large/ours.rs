//! Large messages through the interface, one call each.

use anyhow::{Context, Result};
use hamlyn::engine::terminus::{GatherPiece, SendTag};
use hamlyn::host::process::ProcessHost;
use hamlyn::region::SharedOptions;
use hamlyn::{
    Access, Area, Attached, Holders, Manager, Message, NewSlot, Queue, RegionTicket, SendError,
    Slot, Target, Ticket, Wait,
};
use serde::{Deserialize, Serialize};

use super::Buffers;
use crate::bench::pair::{Order, Pair};
use hamlyn_cli::actor::{answer, from_hex, to_hex};

const WAIT: Wait = Wait::millis(5000);

/// How the bytes get to their place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Placement {
    /// By the receiver's interface.
    Copied,
    /// By the sender, in pages that it was granted.
    Direct,
}

/// Where the sender has what it sends.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// In memory of its own.
    Bytes(&'a [u8]),
    /// In a send-buffer area, from which the interface gathers it.
    Area(SendTag),
}

/// Makes a send-buffer area with those bytes.
pub(crate) fn send_area(pair: &Pair, source: &[u8]) -> Result<SendTag> {
    let terminus = pair.manager.terminus();
    let mut interface = pair.manager.session();
    let length_bytes = source.len() as u64;
    let area = interface.allocate(length_bytes)?;
    area.write_at(0, source)?;
    Ok(interface.bind_area(terminus, &area, 0..length_bytes)?)
}

/// Gives it up.
pub(crate) fn give_up(pair: &Pair, tag: SendTag) -> Result<()> {
    let terminus = pair.manager.terminus();
    pair.manager.session().unbind_area(terminus, tag)?;
    Ok(())
}

/// The end that sends: a target for each message that may be on its way, and a slot
/// that counts what was taken.
pub(crate) struct SendingEnd {
    buffers: Buffers,
    placement: Placement,
    attached: Option<Attached>,
    targets: Vec<Target>,
    credit: Slot,
    queue: Queue,
}

impl SendingEnd {
    pub(crate) fn open(pair: &mut Pair, buffers: Buffers, placement: Placement) -> Result<Self> {
        let mut interface = pair.manager.session();
        let area = interface.allocate(0)?;
        let queue = interface.open_queue(2048)?;
        let credit = interface.open_slot(NewSlot::new(&area).queue(&queue))?;
        drop(interface);
        pair.actor.order(&Order::LargeOpen {
            buffers,
            placement,
            credit: to_hex(&credit.fast_ticket(0, 0)?.to_bytes()),
        })?;
        let ticket: String = pair.actor.answer()?;
        let ticket = Ticket::from_bytes(&from_hex(&ticket)?)?;
        let mut interface = pair.manager.session();
        let targets: Result<Vec<_>, _> = (0..buffers.on_their_way(placement))
            .map(|index| {
                let ticket = Ticket {
                    metadata_index: index as u16,
                    ..ticket
                };
                interface.target(&ticket, WAIT)
            })
            .collect();
        let targets = targets?;
        drop(interface);
        let mut attached = None;
        if placement == Placement::Direct {
            pair.actor.order(&Order::LargeGrant)?;
            let ticket: String = pair.actor.answer()?;
            let ticket = RegionTicket::from_bytes(&from_hex(&ticket)?)?;
            attached = Some(pair.manager.session().attach(&ticket, WAIT)?);
        }
        Ok(Self {
            buffers,
            placement,
            attached,
            targets,
            credit,
            queue,
        })
    }

    /// Sends so many messages, the first of which has that number. Bytes per second.
    pub(crate) fn pour(
        &mut self,
        pair: &mut Pair,
        source: Source<'_>,
        first: u64,
        messages: u64,
    ) -> Result<f64> {
        let placement = self.placement;
        pair.actor.order(&Order::LargeTake {
            placement,
            messages,
        })?;
        let () = pair.actor.answer()?;
        let buffers = self.buffers;
        let on_their_way = buffers.on_their_way(placement);
        let terminus = pair.manager.terminus();
        let mut interface = pair.manager.session();
        let mut taken = 0;
        let start = std::time::Instant::now();
        for message in 0..messages {
            while message - taken >= on_their_way {
                if let Some(notification) = interface.rcv(&mut self.queue)? {
                    taken = notification.word;
                }
            }
            let number = first + message;
            let from = buffers.source_offset(number);
            let to = buffers.target_offset(number) as u64;
            let target = &self.targets[(message % on_their_way) as usize];
            match source {
                Source::Bytes(bytes) => {
                    let put = Message::new(&bytes[from..from + buffers.size_bytes]).at(to);
                    interface.send_msg(terminus, target, &put, Wait::Forever)?;
                }
                Source::Area(tag) => {
                    let piece = GatherPiece {
                        tag,
                        offset: from as u64,
                        length_bytes: buffers.size_bytes as u64,
                    };
                    let put = Message::new(&[]).at(to);
                    while let Err(error) = interface.send_gather(terminus, target, &put, &[piece]) {
                        anyhow::ensure!(matches!(error, SendError::WouldBlock { .. }), error);
                        interface.poll();
                    }
                }
            }
        }
        while taken < messages {
            if let Some(notification) = interface.rcv(&mut self.queue)? {
                taken = notification.word;
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        Ok(messages as f64 * buffers.size_bytes as f64 / seconds)
    }

    pub(crate) fn close(self, pair: &mut Pair) -> Result<()> {
        let placement = self.placement;
        pair.actor.order(&Order::LargeClose { placement })?;
        let () = pair.actor.answer()?;
        let mut interface = pair.manager.session();
        if let Some(attached) = &self.attached {
            interface.detach(attached);
        }
        interface.close_slot(self.credit)?;
        interface.close_queue(self.queue);
        Ok(())
    }
}

/// The end that receives.
pub(crate) struct ReceivingEnd {
    buffers: Buffers,
    placement: Placement,
    /// Kept as long as the slot.
    _area: Area,
    slot: Slot,
    queue: Queue,
    credit: Target,
}

impl ReceivingEnd {
    pub(crate) fn open(
        manager: &Manager<ProcessHost>,
        buffers: Buffers,
        placement: Placement,
        credit: &str,
    ) -> Result<Self> {
        let mut interface = manager.session();
        let bytes = buffers.target_bytes() as u64;
        let area = match placement {
            Placement::Copied => interface.allocate(bytes)?,
            Placement::Direct => Area::shared(SharedOptions::reserved(bytes))?,
        };
        let queue = interface.open_queue(2048)?;
        let entries = buffers.on_their_way(placement) as usize;
        let slot = interface.open_slot(NewSlot::new(&area).queue(&queue).entries(entries))?;
        let credit = interface.target(&Ticket::from_bytes(&from_hex(credit)?)?, WAIT)?;
        answer(&to_hex(&slot.ticket(0, 0, bytes)?.to_bytes()))?;
        Ok(Self {
            buffers,
            placement,
            _area: area,
            slot,
            queue,
            credit,
        })
    }

    /// Shares all of the memory with the sender.
    pub(crate) fn grant(&mut self, manager: &Manager<ProcessHost>) -> Result<()> {
        let mut interface = manager.session();
        let range = 0..self.slot.length_bytes();
        let holders = Holders::One(self.credit.link());
        let region = interface.share(&self.slot, range, Access::Writable, holders)?;
        answer(&to_hex(&region.ticket().to_bytes()))
    }

    /// Takes so many messages.
    pub(crate) fn take(&mut self, manager: &Manager<ProcessHost>, messages: u64) -> Result<()> {
        answer(&())?;
        let terminus = manager.terminus();
        let mut interface = manager.session();
        let on_their_way = self.buffers.on_their_way(self.placement);
        // Credit for several at a time, if there are several.
        let batch = (on_their_way / 8).max(1);
        let mut taken = 0;
        while taken < messages {
            if let Some(notification) = interface.rcv(&mut self.queue)? {
                anyhow::ensure!(
                    u64::from(notification.metadata_index) == taken % on_their_way,
                    "a message is missing"
                );
                taken += 1;
                if taken % batch == 0 || taken == messages {
                    let message = Message::new(&[]).word(taken);
                    interface.send_msg(terminus, &self.credit, &message, Wait::Forever)?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn close(self, manager: &Manager<ProcessHost>) -> Result<()> {
        let mut interface = manager.session();
        interface
            .close_slot(self.slot)
            .context("closing the slot")?;
        interface.close_queue(self.queue);
        answer(&())
    }
}

//! Short messages per second, and bytes per second by message size.

use anyhow::{Context, Result};
use hamlyn::host::process::ProcessHost;
use hamlyn::{Manager, Message, NewSlot, Ticket, Wait};
use indicatif::ProgressBar;

use super::pair::{Order, Pair};
use super::report::Report;
use super::{Effort, SIZES_BYTES, median, raw};
use crate::actor::{answer, from_hex, to_hex};

const WAIT: Wait = Wait::millis(5000);
/// Runs of each throughput; the median is reported.
const RUNS: usize = 5;
/// Messages of one size that are on their way at a time, each with its own buffer: enough
/// that short ones do not wait for each other, not so many that large ones leave the cache.
fn buffers(size: usize) -> u64 {
    ((1 << 20) / size as u64).clamp(4, 64)
}

pub(crate) fn measure(
    pair: &mut Pair,
    effort: Effort,
    report: &mut Report,
    bar: &ProgressBar,
) -> Result<()> {
    let rates: Result<Vec<f64>> = (0..RUNS).map(|_| flood(pair, effort.messages)).collect();
    report.messages_per_s = median(rates?);
    bar.inc(1);
    for size in SIZES_BYTES {
        let mut ours = Vec::new();
        let mut puts = Vec::new();
        let mut copies = Vec::new();
        for _ in 0..RUNS {
            pair.actor.order(&Order::RawPut {
                size,
                bytes: effort.bytes,
            })?;
            let () = pair.actor.answer()?;
            puts.push(pair.ground.lead_put(size, effort.bytes)?);
            ours.push(pour(pair, size, effort)?);
            copies.push(raw::memcpy(size, effort.bytes));
        }
        report.add_bandwidth(size, median(ours), median(puts), median(copies));
        bar.inc(1);
    }
    Ok(())
}

/// Sends short messages in fast mode, one call each. Messages per second.
fn flood(pair: &mut Pair, messages: u64) -> Result<f64> {
    pair.actor.order(&Order::Drain { messages })?;
    let ticket: String = pair.actor.answer()?;
    let ticket = Ticket::from_bytes(&from_hex(&ticket)?)?;
    let terminus = pair.manager.terminus();
    let interface = pair.manager.interface_mut();
    let target = interface.target(&ticket, WAIT)?;
    let mut data = [0; 16];
    let start = std::time::Instant::now();
    for turn in 0..messages {
        data[..8].copy_from_slice(&turn.to_le_bytes());
        let message = Message::new(&data).at(turn % 64 * 16).word(turn);
        interface.send_msg(terminus, &target, &message, Wait::Forever)?;
    }
    // The other side answers when it has them all.
    let () = pair.actor.answer()?;
    Ok(messages as f64 / start.elapsed().as_secs_f64())
}

/// The other side of [`flood`].
pub(crate) fn drain(manager: &mut Manager<ProcessHost>, messages: u64) -> Result<()> {
    let interface = manager.interface_mut();
    let area = interface.allocate(4096)?;
    let mut queue = interface.open_queue(4096)?;
    let slot = interface.open_slot(NewSlot::new(&area).queue(&queue))?;
    answer(&to_hex(&slot.fast_ticket(0, 4096)?.to_bytes()))?;
    let mut expected = 0;
    while expected < messages {
        if let Some(notification) = interface.rcv(&mut queue)? {
            anyhow::ensure!(notification.word == expected, "a message is missing");
            expected += 1;
        }
    }
    answer(&())?;
    interface.close_slot(slot)?;
    interface.close_queue(queue);
    Ok(())
}

/// Sends messages of that size, a few at a time. Bytes per second.
fn pour(pair: &mut Pair, size: usize, effort: Effort) -> Result<f64> {
    let messages = (effort.bytes / size).max(16) as u64;
    let buffers = buffers(size);
    let interface = pair.manager.interface_mut();
    let area = interface.allocate(0)?;
    let mut queue = interface.open_queue(64)?;
    let slot = interface.open_slot(NewSlot::new(&area).queue(&queue))?;
    let credit = to_hex(&slot.fast_ticket(0, 0)?.to_bytes());
    pair.actor.order(&Order::Swallow {
        size,
        messages,
        credit,
    })?;
    let ticket: String = pair.actor.answer()?;
    let ticket = Ticket::from_bytes(&from_hex(&ticket)?)?;
    let terminus = pair.manager.terminus();
    let interface = pair.manager.interface_mut();
    let targets: Result<Vec<_>, _> = (0..buffers)
        .map(|index| {
            let ticket = Ticket {
                metadata_index: index as u16,
                ..ticket
            };
            interface.target(&ticket, WAIT)
        })
        .collect();
    let targets = targets?;
    let source = vec![1_u8; size];
    let mut taken = 0;
    let start = std::time::Instant::now();
    for message in 0..messages {
        while message - taken >= buffers {
            if let Some(notification) = interface.rcv(&mut queue)? {
                taken = notification.word;
            }
        }
        let buffer = message % buffers;
        let put = Message::new(&source).at(buffer * size as u64);
        interface.send_msg(terminus, &targets[buffer as usize], &put, Wait::Forever)?;
    }
    while taken < messages {
        if let Some(notification) = interface.rcv(&mut queue)? {
            taken = notification.word;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    interface.close_slot(slot)?;
    interface.close_queue(queue);
    Ok(messages as f64 * size as f64 / seconds)
}

/// The other side of [`pour`].
pub(crate) fn swallow(
    manager: &mut Manager<ProcessHost>,
    size: usize,
    messages: u64,
    credit: &str,
) -> Result<()> {
    let buffers = buffers(size);
    let terminus = manager.terminus();
    let interface = manager.interface_mut();
    let area = interface.allocate(size as u64 * buffers)?;
    let mut queue = interface.open_queue(64)?;
    let slot = interface.open_slot(NewSlot::new(&area).queue(&queue).entries(buffers as usize))?;
    let credit = interface.target(&Ticket::from_bytes(&from_hex(credit)?)?, WAIT)?;
    answer(&to_hex(
        &slot.ticket(0, 0, size as u64 * buffers)?.to_bytes(),
    ))?;
    let mut taken = 0;
    while taken < messages {
        if let Some(notification) = interface.rcv(&mut queue)? {
            anyhow::ensure!(
                u64::from(notification.metadata_index) == taken % buffers,
                "a message is missing"
            );
            taken += 1;
            let message = Message::new(&[]).word(taken);
            interface.send_msg(terminus, &credit, &message, Wait::Forever)?;
        }
    }
    interface.close_slot(slot).context("closing the slot")?;
    interface.close_queue(queue);
    Ok(())
}

//! Short messages per second.

use anyhow::Result;
use hamlyn::host::process::ProcessHost;
use hamlyn::{Manager, Message, NewSlot, Ticket, Wait};
use indicatif::ProgressBar;

use super::pair::{Order, Pair};
use super::report::Report;
use super::{Effort, median};
use crate::actor::{answer, from_hex, to_hex};

const WAIT: Wait = Wait::millis(5000);
/// Runs of each throughput; the median is reported.
const RUNS: usize = 5;

pub(crate) fn measure(
    pair: &mut Pair,
    effort: Effort,
    report: &mut Report,
    bar: &ProgressBar,
) -> Result<()> {
    let rates: Result<Vec<f64>> = (0..RUNS).map(|_| flood(pair, effort.messages)).collect();
    report.messages_per_s = median(rates?);
    bar.inc(1);
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

//! What each strategy costs, and how attentive it is.
//!
//! *One way* is half of a round trip of tagged writes of 16 bytes between two interfaces that are
//! both driven in that way, beside the raw hand-off of the same minute. Both wait as programs do:
//! they poll for a while, then sleep.
//!
//! *Attentiveness* is the time from just before the send of a 16-byte message until its bytes are
//! seen in the receiver's memory, while the receiver's application computes in grains and polls
//! only between two of them. Who sees it is the application's computation, with plain loads of its
//! own memory that the interface does not hear of. The notification follows the bytes within the
//! same call of the receive half. Messages come at random times, about sixteen to a grain, from an
//! interface whose application transmits by itself and sleeps in between.
//!
//! A network processor runs on any processor but that of its application: where there are but
//! two, on that of the other process.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hamlyn::host::process::ProcessHost;
use hamlyn::{Host, Manager, Message, NewSlot, Strategy, Ticket, Wait};
use indicatif::ProgressBar;
use serde::Serialize;

use super::latency::{Exchange, Protocol, USUAL_BYTES, one_way};
use super::pair::{Order, Pair};
use super::report::Report;
use super::{Effort, median};
use hamlyn_cli::actor::{answer, from_hex, to_hex};

/// How long the application computes between two polls.
const GRAINS_NS: [u64; 6] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
/// Messages to a grain, if that is not more often than the next says.
const MESSAGES_PER_GRAIN: u64 = 16;
/// Between two messages, on average, at least: longer than anybody polls before sleeping.
const INTERVAL_MIN_NS: u64 = 50_000;
/// A receiver that sees nothing for so long gives up.
const SILENCE: Duration = Duration::from_secs(20);
const WAIT: Wait = Wait::millis(5000);
const MESSAGE_BYTES: u64 = 16;

/// One grain's.
#[derive(Serialize)]
pub(crate) struct Attentiveness {
    pub(crate) grain_ns: u64,
    pub(crate) median_ns: f64,
    pub(crate) p99_ns: f64,
}

/// One strategy's.
#[derive(Serialize)]
pub(crate) struct Figures {
    pub(crate) strategy: &'static str,
    pub(crate) one_way_ns: f64,
    pub(crate) over_raw: f64,
    pub(crate) attentiveness: Vec<Attentiveness>,
}

/// Measures all strategies. The sender of the second part is the interface of `pair`.
pub(crate) fn measure(
    pair: &mut Pair,
    processors: &[usize],
    effort: Effort,
    report: &mut Report,
    bar: &ProgressBar,
) -> Result<()> {
    // With a network processor on each side, a message may take a wake-up or two.
    let slower = Effort {
        round_trips: effort.round_trips / 10,
        batches: effort.batches / 3,
        ..effort
    };
    let tagged = Exchange::over_one_link(Protocol::Tagged, USUAL_BYTES);
    for strategy in Strategy::ALL {
        let mut driven = Pair::start_driven(strategy, processors)?;
        let latency = one_way(&mut driven, tagged, slower)?;
        let attentiveness: Result<Vec<_>> = GRAINS_NS
            .iter()
            .map(|&grain_ns| interrupt(pair, &mut driven, grain_ns, effort.interruptions))
            .collect();
        driven.finish()?;
        report.strategies.push(Figures {
            strategy: strategy.name(),
            one_way_ns: latency.one_way_ns,
            over_raw: latency.over_raw,
            attentiveness: attentiveness?,
        });
        bar.inc(1);
    }
    Ok(())
}

/// Sends at random times to a receiver that computes.
fn interrupt(
    pair: &mut Pair,
    driven: &mut Pair,
    grain_ns: u64,
    messages: u64,
) -> Result<Attentiveness> {
    driven.actor.order(&Order::Compute { grain_ns, messages })?;
    let ticket: String = driven.actor.answer()?;
    let ticket = Ticket::from_bytes(&from_hex(&ticket)?)?;
    let terminus = pair.manager.terminus();
    let mut interface = pair.manager.session();
    let target = interface.target(&ticket, WAIT)?;
    let interval_ns = INTERVAL_MIN_NS.max(grain_ns / MESSAGES_PER_GRAIN);
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    for turn in 0..messages {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        std::thread::sleep(Duration::from_nanos(random % (2 * interval_ns)));
        let sent_ns = interface.host().now_ns();
        let mut data = [0; MESSAGE_BYTES as usize];
        data[..8].copy_from_slice(&sent_ns.to_le_bytes());
        data[8..].copy_from_slice(&(!sent_ns).to_le_bytes());
        let message = Message::new(&data).at(turn * MESSAGE_BYTES).word(turn);
        interface.send_msg(terminus, &target, &message, Wait::Forever)?;
    }
    let delays_ns: Vec<u64> = driven.actor.answer()?;
    let mut delays_ns: Vec<f64> = delays_ns.into_iter().map(|delay| delay as f64).collect();
    delays_ns.sort_by(f64::total_cmp);
    let p99_ns = delays_ns[(delays_ns.len() * 99).div_ceil(100) - 1];
    Ok(Attentiveness {
        grain_ns,
        median_ns: median(delays_ns),
        p99_ns,
    })
}

/// The other side of [`interrupt`]: computes and polls by turns, and answers how long each message
/// took.
pub(crate) fn compute(manager: &Manager<ProcessHost>, grain_ns: u64, messages: u64) -> Result<()> {
    let mut interface = manager.session();
    let area = interface.allocate(messages * MESSAGE_BYTES)?;
    let mut queue = interface.open_queue(messages as usize)?;
    let slot = interface.open_slot(NewSlot::new(&area).queue(&queue))?;
    answer(&to_hex(
        &slot.fast_ticket(0, messages * MESSAGE_BYTES)?.to_bytes(),
    ))?;
    let mut delays_ns: Vec<u64> = Vec::with_capacity(messages as usize);
    let mut notified = 0;
    let mut seen_at = Instant::now();
    while notified < messages {
        let computes_until_ns = interface.host().now_ns() + grain_ns;
        let mut now_ns = 0;
        while now_ns < computes_until_ns {
            look(&area, messages, interface.host(), &mut delays_ns)?;
            now_ns = interface.host().now_ns();
        }
        while interface.rcv(&mut queue)?.is_some() {
            notified += 1;
            seen_at = Instant::now();
        }
        look(&area, messages, interface.host(), &mut delays_ns)?;
        ensure!(
            seen_at.elapsed() < SILENCE,
            "{notified} of {messages} messages came"
        );
    }
    ensure!(
        delays_ns.len() as u64 == messages,
        "a message was announced and is not in memory"
    );
    answer(&delays_ns)?;
    interface.close_slot(slot).context("closing the slot")?;
    interface.close_queue(queue);
    Ok(())
}

/// Takes the time of each message that is in memory by now, in order.
fn look(
    area: &hamlyn::Area,
    messages: u64,
    host: &ProcessHost,
    delays_ns: &mut Vec<u64>,
) -> Result<()> {
    while (delays_ns.len() as u64) < messages {
        let at = delays_ns.len() as u64 * MESSAGE_BYTES;
        let word = |offset| area.load_u64(offset).ok().context("outside the area");
        let (sent_ns, check) = (word(at)?, word(at + 8)?);
        if sent_ns == 0 || check != !sent_ns {
            break;
        }
        delays_ns.push(host.now_ns().saturating_sub(sent_ns));
    }
    Ok(())
}

//! Request and reply: half of a round trip over one link, over the raw hand-off of a line for each
//! direction in the same seconds; by messages of fast mode in both directions, and by the service
//! protocol.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::service::{Client, Service, ServiceOptions};
use hamlyn::{Manager, ManagerOptions, Wait};
use indicatif::ProgressBar;

use super::Effort;
use super::latency::{Exchange, Figures, Protocol, beside_raw, one_way};
use super::pair::{Order, Pair};
use super::raw::{HandOff, mark};
use super::report::Report;
use hamlyn_cli::actor::answer;

/// Bytes of data of a request and of its reply. A word goes with each, but with the longest, which
/// has as many bytes as the others have with their word at most.
const LENGTHS_BYTES: [usize; 4] = [0, 8, 16, 24];
const LENGTH_WITH_WORD_MAX_BYTES: usize = 16;
const WAIT: Wait = Wait::millis(5_000);
const ITEM: &str = "echo";

/// Kinds of request that are measured.
pub(crate) const STEPS: u64 = 2 * LENGTHS_BYTES.len() as u64;

pub(crate) fn measure(
    pair: &mut Pair,
    effort: Effort,
    report: &mut Report,
    bar: &ProgressBar,
) -> Result<()> {
    for length_bytes in LENGTHS_BYTES {
        let exchange = Exchange {
            has_word: length_bytes <= LENGTH_WITH_WORD_MAX_BYTES,
            ..Exchange::over_one_link(Protocol::Raw, length_bytes)
        };
        let figures = one_way(pair, exchange, effort)?;
        report.note_raw(&figures);
        report.request_reply.push((length_bytes, figures));
        bar.inc(1);
    }
    pair.actor.order(&Order::OpenService)?;
    let address: String = pair.actor.answer()?;
    let mut client = pair.manager.connect_service(&address, WAIT)?;
    for length_bytes in LENGTHS_BYTES {
        let figures = called(pair, &mut client, length_bytes, effort)?;
        report.note_raw(&figures);
        report.service.push((length_bytes, figures));
        bar.inc(1);
    }
    Ok(())
}

/// Calls whose reply is the request.
fn called(
    pair: &mut Pair,
    client: &mut Client,
    length_bytes: usize,
    effort: Effort,
) -> Result<Figures> {
    let mut request = vec![7; length_bytes];
    let mut turn = 0;
    beside_raw(pair, &[HandOff::LINE], effort, |pair| {
        let calls = effort.round_trips;
        pair.actor.order(&Order::AnswerCalls { calls })?;
        let () = pair.actor.answer()?;
        let start = Instant::now();
        for _ in 0..calls {
            turn += 1;
            mark(&mut request, turn);
            let reply = client.call(&request, Wait::Forever)?;
            ensure!(*reply == *request, "the reply to another request");
        }
        Ok(start.elapsed().as_nanos() as f64 / calls as f64 / 2.0)
    })
}

/// The other side: a service under a name that no other process has.
pub(crate) struct Server {
    service: Service,
    manager: Manager<ProcessHost>,
}

impl Server {
    /// Answers with its address.
    pub(crate) fn open() -> Result<Self> {
        let name = format!("bench-{}", std::process::id());
        let mut options = Options::named(&name).in_namespace("bench");
        options.spin_ns = Some(u64::MAX / 4);
        let manager = hamlyn::open_with(options, ManagerOptions::default())?;
        let service = manager.bind_service(ITEM, ServiceOptions::default())?;
        answer(&format!("{name}/{ITEM}"))?;
        Ok(Self { service, manager })
    }

    /// Answers so many calls.
    pub(crate) fn serve(&mut self, calls: u64) -> Result<()> {
        answer(&())?;
        for _ in 0..calls {
            let call = self.service.next(Wait::Forever)?.context("no call")?;
            let mut reply = [0; LENGTHS_BYTES[LENGTHS_BYTES.len() - 1]];
            let length_bytes = call.len();
            let reply = reply.get_mut(..length_bytes).context("a longer request")?;
            reply.copy_from_slice(&call);
            call.reply(reply)?;
        }
        ensure!(self.manager.flush(WAIT)?, "the last reply was not sent");
        Ok(())
    }
}

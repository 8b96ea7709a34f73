//! The other process of a benchmark.

use anyhow::{Context, Result, bail, ensure};
use hamlyn::Wait;

use super::large::hand_off::Field;
use super::large::ours::{Placement, ReceivingEnd};
use super::pair::{Order, second};
use super::raw::Ground;
use super::raw_stream::Stream;
use super::request_reply::Server;
use super::{event_loop, latency, loans, memory, one_sided, strategies, throughput};
use hamlyn_cli::actor::{answer, next_order};

const WAIT: Wait = Wait::millis(5_000);

/// The other process.
pub(crate) fn run() -> Result<()> {
    let Some(Order::Settle {
        processor,
        ground,
        driven,
    }) = next_order()?
    else {
        bail!("not told where to be");
    };
    super::pin(&[processor])?;
    let mut ground = Ground::open(&ground)?;
    let manager = match driven {
        None => super::open()?,
        Some(driven) => super::open_driven(&driven, processor)?,
    };
    answer(&())?;
    let mut latency = None;
    let mut sends_back = false;
    let mut back = None;
    let mut server = None;
    let mut idle = Vec::new();
    let mut field = None;
    let mut large = [const { None }; 2];
    let (mut memory_of_words, mut changer) = (None, None);
    while let Some(order) = next_order()? {
        match order {
            Order::Settle { .. } => bail!("settled already"),
            Order::Raw {
                hand_off,
                round_trips,
            } => {
                answer(&())?;
                ground.follow(hand_off, round_trips)?;
            }
            Order::Open { exchange } => {
                let end = latency::End::open(&manager, exchange)?;
                answer(&end.grows_from()?)?;
                sends_back = exchange.is_apart;
                latency = Some(end);
            }
            Order::Grow { grown } => {
                let sending = if sends_back {
                    second(&mut back)?
                } else {
                    manager.clone()
                };
                let end = latency.as_mut().context("no end is open")?;
                end.grow(&sending, &grown)?;
                answer(&())?;
            }
            Order::Grant { grant } => {
                let end = latency.as_mut().context("no end is open")?;
                end.accept(&grant)?;
                answer(&end.grant()?)?;
            }
            Order::Echo { round_trips } => {
                let end = latency.as_mut().context("no end is open")?;
                answer(&())?;
                end.echo(round_trips)?;
                for manager in [Some(&manager), back.as_ref()].into_iter().flatten() {
                    ensure!(manager.flush(WAIT)?, "the last answer was not sent");
                }
            }
            Order::OpenService => server = Some(Server::open()?),
            Order::AnswerCalls { calls } => {
                let server = server.as_mut().context("no service is open")?;
                server.serve(calls)?;
            }
            Order::Drain { messages, flood } => {
                throughput::drain(&manager, messages, flood)?;
            }
            Order::RawStream { path, cells } => {
                let mut stream = Stream::open(&path)?;
                answer(&())?;
                stream.take(cells)?;
                answer(&())?;
            }
            Order::LargeField { path } => {
                field = Some(Field::open(&path)?);
                answer(&())?;
            }
            Order::LargeFollow {
                transfer,
                buffers,
                first,
                messages,
                is_checked,
            } => {
                let field = field.as_mut().context("no field is open")?;
                if is_checked {
                    field.clear(transfer, buffers, first, messages)?;
                }
                answer(&())?;
                field.follow(transfer, buffers, first, messages)?;
                if is_checked {
                    field.check(transfer, buffers, first, messages)?;
                }
                answer(&())?;
            }
            Order::LargeDone => {
                field = None;
                answer(&())?;
            }
            Order::LargeOpen {
                buffers,
                placement,
                credit,
            } => {
                let end = ReceivingEnd::open(&manager, buffers, placement, &credit)?;
                large[placement as usize] = Some(end);
            }
            Order::LargeGrant => {
                let end = large[Placement::Direct as usize].as_mut();
                end.context("no slot is open")?.grant(&manager)?;
            }
            Order::LargeTake {
                placement,
                messages,
            } => {
                let end = large[placement as usize].as_mut();
                end.context("no slot is open")?.take(&manager, messages)?;
            }
            Order::LargeClose { placement } => {
                let end = large[placement as usize].take();
                end.context("no slot is open")?.close(&manager)?;
            }
            Order::Compute { grain_ns, messages } => {
                strategies::compute(&manager, grain_ns, messages)?;
            }
            Order::ShareMemory => {
                let opened = one_sided::Memory::open(&manager)?;
                answer(&opened.tickets()?)?;
                if let Some(before) = memory_of_words.replace(opened) {
                    before.close(&manager)?;
                }
            }
            Order::ServeMemory { attends } => {
                let memory = memory_of_words.as_mut().context("no memory is open")?;
                memory.serve(&manager, attends)?;
            }
            Order::ChangeWord { order } => one_sided::change(&mut changer, &ground, &order)?,
            Order::Serve { ticket, case } => event_loop::serve(&manager, &ticket, case)?,
            Order::ReadLoans {
                address,
                readers,
                messages,
            } => loans::read(&address, readers, messages)?,
            Order::Idle { ticket, peers } => {
                memory::connect_idle(&mut idle, &ticket, peers)?;
                answer(&())?;
            }
        }
    }
    Ok(())
}

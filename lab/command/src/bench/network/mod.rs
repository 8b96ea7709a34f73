//! Between two hosts: what the network itself does with plain UDP, and what ours makes of it, clear
//! and encrypted, in turn in one run.
//!
//! The hosts are network namespaces joined by a cable (`place`); each has a processor, and a
//! process for each of the three. A round measures plain UDP and ours one after the other, so that
//! a machine that changes its mind changes it for all; ratios are of one round, and medians of the
//! rounds are reported, with the least and the most.

mod figures;
mod loss;
mod ours;
mod place;
pub(crate) mod process;
mod udp;

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result};
use indicatif::ProgressBar;

use super::Effort;
use super::latency::Protocol;
use hamlyn_cli::actor::Actor;

use crate::Role;
use figures::{Figures, Lossy, Ours, Round};
use loss::{Sockets, Unit};
use ours::{Tickets, Traffic};
use place::{Place, Protection, Side};
use process::Order;
use udp::Came;

/// Protocols of which the time of one way is measured; the first is compared with plain UDP.
const PROTOCOLS: [Protocol; 3] = [Protocol::Raw, Protocol::Datagram, Protocol::Stream];
/// Parts of all that are lost, in percent.
const LOSSES_PERCENT: [f64; 6] = [0.0, 0.1, 1.0, 2.0, 5.0, 10.0];
/// Runs of each of them.
const LOSSY_RUNS: usize = 3;
/// Of the messages of a run on one host so many are sent between two.
const MESSAGES_PART: u64 = 10;

/// Two processes that have to do with each other, one on each host.
struct Pair {
    first: Actor,
    second: Actor,
}

impl Pair {
    fn start(place: &Place, processors: &[usize]) -> Result<Self> {
        let [first, second] = Side::BOTH;
        let mut pair = Self {
            first: Actor::start_by(place.command(first)?, Role::Network)?,
            second: Actor::start_by(place.command(second)?, Role::Network)?,
        };
        let [one, other] = [processors[0], processors[1]];
        let () = ask(&mut pair.first, &Order::Settle { processor: one })?;
        let () = ask(&mut pair.second, &Order::Settle { processor: other })?;
        Ok(pair)
    }

    /// The second follows the first, and says when it is ready, and when it is done.
    fn follow<L, F>(&mut self, lead: &Order, follow: &Order) -> Result<(L, F)>
    where
        L: serde::de::DeserializeOwned,
        F: serde::de::DeserializeOwned,
    {
        let () = ask(&mut self.second, follow)?;
        let led = ask(&mut self.first, lead)?;
        Ok((led, self.second.answer()?))
    }

    fn finish(self) -> Result<()> {
        self.first.finish()?;
        self.second.finish()
    }
}

fn ask<T: serde::de::DeserializeOwned>(actor: &mut Actor, order: &Order) -> Result<T> {
    actor.order(order)?;
    actor.answer()
}

/// Plain UDP.
struct Plain(Pair);

impl Plain {
    fn start(place: &Place, processors: &[usize]) -> Result<Self> {
        let mut pair = Pair::start(place, processors)?;
        let [first, second] = Side::BOTH.map(|side| Order::Udp {
            at: place.address(side),
        });
        let one: SocketAddr = ask(&mut pair.first, &first)?;
        let other: SocketAddr = ask(&mut pair.second, &second)?;
        let () = ask(&mut pair.first, &Order::UdpConnect { to: other })?;
        let () = ask(&mut pair.second, &Order::UdpConnect { to: one })?;
        Ok(Self(pair))
    }

    fn one_way_ns(&mut self, round_trips: u64) -> Result<f64> {
        let lead = Order::UdpLead { round_trips };
        let (one_way_ns, ()) = self.0.follow(&lead, &Order::UdpEcho { round_trips })?;
        Ok(one_way_ns)
    }

    /// Bytes a second that arrived.
    fn bytes_per_s(&mut self, bytes: u64, mtu_bytes: usize) -> Result<f64> {
        let pour = Order::UdpPour { bytes, mtu_bytes };
        let ((), came) = self.0.follow::<(), Came>(&pour, &Order::UdpDrain)?;
        Ok(came.bytes as f64 / came.seconds)
    }
}

/// Ours, protected in one way.
struct Link {
    pair: Pair,
    protection: Protection,
}

impl Link {
    fn start(place: &Place, processors: &[usize], protection: Protection) -> Result<Self> {
        let mut pair = Pair::start(place, processors)?;
        let [first, second] = Side::BOTH.map(|side| Order::Enter(place.entry(side, protection)));
        let () = ask(&mut pair.first, &first)?;
        let () = ask(&mut pair.second, &second)?;
        let tickets: Tickets = ask(&mut pair.second, &Order::Receive)?;
        let ticket: String = ask(&mut pair.first, &Order::Send { tickets })?;
        let () = ask(&mut pair.second, &Order::Credit { ticket })?;
        Ok(Self { pair, protection })
    }

    /// The next latencies are of this protocol.
    fn open(&mut self, protocol: Protocol) -> Result<()> {
        let pair = &mut self.pair;
        let one: String = ask(&mut pair.first, &Order::Open { protocol })?;
        let other: String = ask(&mut pair.second, &Order::Open { protocol })?;
        let () = ask(&mut pair.first, &Order::Grow { grown: other })?;
        ask(&mut pair.second, &Order::Grow { grown: one })
    }

    fn one_way_ns(&mut self, round_trips: u64) -> Result<f64> {
        let lead = Order::Lead { round_trips };
        let (one_way_ns, ()) = self.pair.follow(&lead, &Order::Echo { round_trips })?;
        Ok(one_way_ns)
    }

    /// Units a second.
    fn units_per_s(&mut self, traffic: Traffic, units: u64) -> Result<f64> {
        let give = Order::Give { traffic, units };
        let (seconds, ()): (f64, ()) = self.pair.follow(&give, &Order::Take { traffic, units })?;
        Ok(units as f64 / seconds)
    }

    fn bytes_per_s(&mut self, traffic: Traffic, bytes: u64) -> Result<f64> {
        let units_per_s = self.units_per_s(traffic, traffic.units(bytes))?;
        Ok(units_per_s * traffic.unit_bytes() as f64)
    }

    /// All that is measured of ours in a round but the one-way time.
    fn round(&mut self, effort: Effort) -> Result<Ours> {
        let bytes = effort.bytes_per_run as u64;
        let messages = effort.messages / MESSAGES_PART;
        Ok(Ours {
            stream_bytes_per_s: self.bytes_per_s(Traffic::Stream, bytes)?,
            large_bytes_per_s: self.bytes_per_s(Traffic::Large, bytes)?,
            each_per_s: self.units_per_s(Traffic::Each, messages)?,
            many_per_s: self.units_per_s(Traffic::Many, messages)?,
        })
    }

    fn sockets(&self) -> Result<[Sockets; 2]> {
        let [first, second] = [&self.pair.first, &self.pair.second].map(Actor::process);
        Ok([Sockets::of(first)?, Sockets::of(second)?])
    }
}

/// Measures all of it.
pub(super) fn measure(
    processors: &[usize],
    effort: Effort,
    mtu_bytes: u32,
    is_quiet: bool,
) -> Result<Figures> {
    let steps = (PROTOCOLS.len() + 1) * effort.runs
        + Unit::ALL.len() * LOSSES_PERCENT.len() * Protection::ALL.len();
    let bar = hamlyn_cli::terminal::steps_bar(steps as u64, "measuring", is_quiet);
    let place = Place::make(mtu_bytes)?;
    let mut plain = Plain::start(&place, processors)?;
    let mut links = Vec::new();
    for protection in Protection::ALL {
        let link = Link::start(&place, processors, protection);
        links.push(link.with_context(|| format!("linking the hosts, {}", protection.name()))?);
    }
    let mut figures = Figures::new(&place);
    for protocol in PROTOCOLS {
        one_way(&mut plain, &mut links, protocol, effort, &mut figures, &bar)?;
    }
    let plain_bytes = effort.bytes_per_run as u64;
    for _ in 0..effort.runs {
        // Nobody is always the first.
        links.rotate_left(1);
        let before = plain.bytes_per_s(plain_bytes, mtu_bytes as usize)?;
        let ours = links
            .iter_mut()
            .map(|link| Ok((link.protection, link.round(effort)?)))
            .collect::<Result<Vec<_>>>()?;
        let after = plain.bytes_per_s(plain_bytes, mtu_bytes as usize)?;
        figures.rounds.push(Round {
            udp_bytes_per_s: (before + after) / 2.0,
            ours,
        });
        bar.inc(1);
    }
    links.sort_by_key(|link| link.protection);
    figures.lossy = lossy(&mut links, effort, &bar)?;
    bar.finish_and_clear();
    plain.0.finish()?;
    for link in links {
        link.pair.finish()?;
    }
    Ok(figures)
}

/// The time of one way: plain, clear, encrypted, and so on.
fn one_way(
    plain: &mut Plain,
    links: &mut [Link],
    protocol: Protocol,
    effort: Effort,
    figures: &mut Figures,
    bar: &ProgressBar,
) -> Result<()> {
    plain.one_way_ns(effort.round_trips)?;
    for link in &mut *links {
        link.open(protocol)?;
        // Both warm up.
        link.one_way_ns(effort.round_trips)?;
    }
    for _ in 0..effort.runs {
        let before = plain.one_way_ns(effort.round_trips)?;
        let mut ours = Vec::new();
        for link in &mut *links {
            ours.push((link.protection, link.one_way_ns(effort.round_trips)?));
        }
        let after = plain.one_way_ns(effort.round_trips)?;
        figures.add_one_way(protocol, (before + after) / 2.0, &ours);
        bar.inc(1);
    }
    Ok(())
}

/// The stream, while part of all that comes is lost, on both hosts.
fn lossy(links: &mut [Link], effort: Effort, bar: &ProgressBar) -> Result<Vec<Lossy>> {
    let bytes = effort.bytes_per_run as u64 / 2;
    let mut all = Vec::new();
    for link in links {
        let sockets = match link.sockets() {
            Ok(sockets) => sockets,
            Err(error) => {
                bar.suspend(|| eprintln!("hamlyn: no loss is measured: {error:#}"));
                return Ok(Vec::new());
            }
        };
        let lose = |percent, unit| sockets.iter().try_for_each(|side| side.lose(percent, unit));
        for unit in Unit::ALL {
            for percent in LOSSES_PERCENT {
                lose(percent, unit)?;
                // The transport learns what the path is like now.
                link.bytes_per_s(Traffic::Stream, bytes / 4)?;
                let mut rates = Vec::new();
                for _ in 0..effort.depth.pick(LOSSY_RUNS, LOSSY_RUNS, 1) {
                    rates.push(link.bytes_per_s(Traffic::Stream, bytes)?);
                }
                all.push(Lossy {
                    protection: link.protection,
                    unit,
                    percent,
                    rates,
                });
                bar.inc(1);
            }
        }
        lose(0.0, Unit::Run)?;
    }
    Ok(all)
}

/// Draws what loss costs.
pub(super) fn plot(figures: &Figures, directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("making {}", directory.display()))?;
    crate::reproduce::plot::write(&figures.plots(), directory)
}

//! `hamlyn-lab soak`: five hosts with full traffic among them, while processes are killed, stopped
//! and started and cables are pulled and plugged in.
//!
//! Each host has a process that sends datagrams, tagged writes and a stream to every other one.
//! What both ends of each connection say in the end is set side by side: nothing is lost or doubled
//! between processes that live, and what a lost link did not deliver came back. Nobody hangs, no
//! link is lost without a reason, and those who live longest hold no more memory or descriptors in
//! the end than when they were warm. Beside them are pairs of processes on one host ([`pairs`]).

mod checker;
mod cluster;
mod content;
mod ends;
mod incoming;
mod orders;
mod outgoing;
pub(crate) mod pair_process;
mod pairs;
mod trouble;
pub(crate) mod worker;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use hamlyn::Strategy;
use serde_json::json;

use checker::Checker;
use cluster::{Cluster, Process, Said};
use hamlyn_cli::terminal;
use orders::{Life, Order, Report, Sent};
use pairs::Pairs;
use trouble::{Event, Trouble};

/// How often faults are considered and memory is looked at.
const TURN: Duration = Duration::from_millis(100);
/// How long nothing may be answered between two hosts that nothing has happened to.
const STALL: Duration = Duration::from_secs(30);
/// How long processes have to start, to be done with what they have sent, or to end.
const TIMEOUT: Duration = Duration::from_secs(60);
/// A link may be found lost so long after its cable was plugged in.
const AFTERMATH: Duration = Duration::from_secs(30);
/// Cuts that follow each other count together when they fall into so long, and that they are long
/// in all when they make up so much of it: the transport waits five seconds for an answer.
const RECENT: Duration = Duration::from_secs(8);
const UNREACHABLE: Duration = Duration::from_secs(4);
/// Memory that a process may hold beyond what it held when it was warm, besides a part of that.
const GROWTH_BYTES: u64 = 8 << 20;
/// The same of descriptors: those of connections under way.
const GROWTH_DESCRIPTORS: usize = 12;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// For how long, in seconds.
    #[arg(long = "for", default_value_t = 60, value_name = "SECONDS")]
    seconds: u64,
    /// How many hosts, 2 to 16.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(2..=16))]
    hosts: u64,
    /// How many pairs of processes on one host, of which the receiver lends an overflow log, 0 to
    /// 16.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=16))]
    pairs: u64,
    /// Decides what happens to whom; when exactly, the machine decides.
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// Addresses of the loopback device instead of hosts in network namespaces, which need root.
    #[arg(long)]
    loopback: bool,
    /// Neither authenticate nor encrypt.
    #[arg(long)]
    insecure: bool,
    /// Let nothing happen to anybody.
    #[arg(long)]
    calm: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let hosts = arguments.hosts as usize;
    let cluster = Cluster::new(hosts, arguments.loopback, arguments.insecure)?;
    let pairs = Pairs::begin(arguments.pairs as usize, arguments.seed)?;
    let mut soak = Soak::begin(&cluster, hosts, pairs)?;
    let span = Duration::from_secs(arguments.seconds);
    let trouble = Trouble::new(arguments.seed, hosts, cluster.has_cables());
    let bar = terminal::spinner(arguments.json);
    let result = soak.endure(span, (!arguments.calm).then_some(trouble), |soak| {
        bar.inc(1);
        bar.set_message(soak.summary());
    });
    bar.finish_and_clear();
    result?;
    soak.end()?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&soak.json())?);
    } else {
        println!("{}", soak.summary());
        soak.faults.iter().for_each(|fault| println!("  {fault}"));
    }
    Ok(if soak.faults.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// One host's process, and what is known of it.
struct Place {
    process: Option<Process>,
    number: u32,
    is_ready: bool,
    is_drained: bool,
    /// Datagrams that others have answered it.
    answered: Vec<u64>,
    /// Since when nobody has answered it more.
    answered_at: Vec<Instant>,
    /// When something last happened to it.
    disturbed: Instant,
    received: u64,
    /// Held when it was warm: memory in bytes, descriptors.
    warm: Option<(u64, usize)>,
}

struct Soak<'a> {
    cluster: &'a Cluster,
    say: Sender<Said>,
    said: Receiver<Said>,
    places: Vec<Place>,
    pairs: Pairs,
    checker: Checker,
    begun: Instant,
    kills: u64,
    holds: u64,
    cuts: u64,
    /// When the cable of each host was last mended after a cut that links do not outlive.
    cut_until: BTreeMap<usize, Instant>,
    /// Cuts of all hosts, with their ends.
    cut_spans: Vec<(usize, Instant, Option<Instant>)>,
    /// Messages of processes that are no more.
    received_before: u64,
    /// Processes were told to quit.
    is_quitting: bool,
    faults: Vec<String>,
}

/// Of the places: nothing happens to these, so that somebody lives as long as the soak.
fn is_spared(host: usize) -> bool {
    host < 2
}

impl<'a> Soak<'a> {
    fn begin(cluster: &'a Cluster, hosts: usize, pairs: Pairs) -> Result<Self> {
        let (say, said) = channel();
        let now = Instant::now();
        let place = || Place {
            process: None,
            number: 0,
            is_ready: false,
            is_drained: false,
            answered: vec![0; hosts],
            answered_at: vec![now; hosts],
            disturbed: now,
            received: 0,
            warm: None,
        };
        let mut soak = Self {
            cluster,
            say,
            said,
            places: (0..hosts).map(|_| place()).collect(),
            pairs,
            checker: Checker::default(),
            begun: now,
            kills: 0,
            holds: 0,
            cuts: 0,
            cut_until: BTreeMap::new(),
            cut_spans: Vec::new(),
            received_before: 0,
            is_quitting: false,
            faults: Vec::new(),
        };
        for host in 0..hosts {
            soak.start(host)?;
        }
        soak.until("it cannot be reached", |_, place| place.is_ready)?;
        Ok(soak)
    }

    fn start(&mut self, host: usize) -> Result<()> {
        let place = &mut self.places[host];
        place.number += 1;
        let life = Life {
            host,
            number: place.number,
        };
        let strategy = Strategy::ALL[host % Strategy::ALL.len()].name();
        place.process = Some(self.cluster.start(life, strategy, self.say.clone())?);
        place.is_ready = false;
        self.received_before += std::mem::take(&mut place.received);
        place.answered.fill(0);
        self.disturb(host);
        Ok(())
    }

    fn disturb(&mut self, host: usize) {
        self.places[host].disturbed = Instant::now();
    }

    fn endure(
        &mut self,
        span: Duration,
        mut trouble: Option<Trouble>,
        mut show: impl FnMut(&Self),
    ) -> Result<()> {
        let begun = Instant::now();
        // The first third is for warming up.
        let warm_at = span / 3;
        let mut is_warm = false;
        while begun.elapsed() < span && self.faults.is_empty() {
            self.listen(TURN)?;
            if let Some(trouble) = &mut trouble {
                while let Some(event) = trouble.next(begun.elapsed()) {
                    self.happen(event)?;
                }
            }
            self.pairs.turn(trouble.is_some())?;
            self.look_for_stalls();
            if !is_warm && begun.elapsed() > warm_at {
                is_warm = true;
                for place in &mut self.places {
                    place.warm = place.process.as_ref().and_then(Process::holds);
                }
            }
            show(self);
        }
        for event in trouble.iter_mut().flat_map(Trouble::end) {
            self.happen(event)?;
        }
        Ok(())
    }

    fn happen(&mut self, event: Event) -> Result<()> {
        tracing::info!(?event, at_s = self.begun.elapsed().as_secs_f64(), "trouble");
        let host = event.host();
        self.disturb(host);
        match event {
            Event::Kill(_) => {
                if let Some(mut process) = self.places[host].process.take() {
                    process.kill()?;
                    self.kills += 1;
                }
                self.places[host].is_ready = false;
            }
            Event::Start(_) => self.start(host)?,
            Event::Hold(_) => {
                self.holds += 1;
                self.hold(host, true)?;
            }
            Event::Release(_) => self.hold(host, false)?,
            Event::Cut { is_long, .. } => {
                self.cuts += 1;
                if is_long {
                    self.cut_until.insert(host, Instant::now() + TIMEOUT);
                }
                self.cut_spans.push((host, Instant::now(), None));
                self.cluster.cut(host)?;
            }
            Event::Mend(_) => {
                self.cluster.mend(host)?;
                let open = |span: &&mut (usize, Instant, Option<Instant>)| span.0 == host;
                if let Some(span) = self.cut_spans.iter_mut().rev().find(open) {
                    span.2 = Some(Instant::now());
                }
                if let Some(until) = self.cut_until.get_mut(&host) {
                    *until = Instant::now();
                }
            }
        }
        Ok(())
    }

    fn hold(&self, host: usize, is_held: bool) -> Result<()> {
        match &self.places[host].process {
            Some(process) => process.hold(is_held),
            None => Ok(()),
        }
    }

    /// Hears what processes say, for so long at least.
    fn listen(&mut self, span: Duration) -> Result<()> {
        let until = Instant::now() + span;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.said.recv_timeout(left) {
                Ok((life, Some(report))) => self.hear(life, report),
                Ok((life, None)) => {
                    let place = &mut self.places[life.host];
                    // Of one that was killed that is known.
                    if place.number == life.number && place.process.is_some() && !place.is_drained {
                        place.process = None;
                        self.fault(format!("the process of host {} ended", life.host));
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => bail!("nobody speaks any more"),
            }
        }
    }

    fn hear(&mut self, life: Life, report: Report) {
        let place = &mut self.places[life.host];
        let is_latest = place.number == life.number && place.process.is_some();
        match report {
            Report::Ready => place.is_ready |= is_latest,
            Report::Progress { answered, received } if is_latest => {
                place.received = received;
                let now = Instant::now();
                for (host, count) in answered.into_iter().enumerate() {
                    if count > place.answered[host] {
                        (place.answered[host], place.answered_at[host]) = (count, now);
                    }
                }
            }
            Report::Progress { .. } => {}
            Report::Drained => place.is_drained |= is_latest,
            Report::Sent(mut sent) => {
                // Those that quit first close what others still have, all of which was answered.
                if self.is_quitting {
                    sent.ended = None;
                }
                if let Some(why) = &sent.ended
                    && !self.is_explained(&sent)
                {
                    self.fault(format!(
                        "the connection of host {} to host {} was lost without a reason: {why}",
                        sent.from.host, sent.to.host
                    ));
                }
                let wrong = self.checker.sent(sent);
                wrong.into_iter().for_each(|wrong| self.fault(wrong));
            }
            Report::Received(received) => {
                let wrong = self.checker.received(received);
                wrong.into_iter().for_each(|wrong| self.fault(wrong));
            }
            Report::Fault(fault) => self.fault(fault),
        }
    }

    /// Whether that process lives.
    fn lives(&self, life: Life) -> bool {
        let place = &self.places[life.host];
        place.number == life.number && place.process.is_some()
    }

    /// Whether something has happened to the link that ended.
    fn is_explained(&self, sent: &Sent) -> bool {
        let was_cut = |host: usize| {
            let until = self.cut_until.get(&host);
            until.is_some_and(|until| *until + AFTERMATH > Instant::now())
        };
        let ends = [sent.from, sent.to];
        let now = Instant::now();
        let of_ends = self.cut_spans.iter().rev();
        let unreachable: Duration = of_ends
            .filter(|(host, ..)| ends.iter().any(|life| life.host == *host))
            .map(|(_, from, to)| {
                let end = to.unwrap_or(now);
                let recent = now.checked_sub(RECENT).unwrap_or(*from);
                end.saturating_duration_since((*from).max(recent))
            })
            .sum();
        unreachable >= UNREACHABLE
            || ends
                .iter()
                .any(|life| !self.lives(*life) || was_cut(life.host))
    }

    fn look_for_stalls(&mut self) {
        let mut stalled = Vec::new();
        for (from, place) in self.places.iter().enumerate() {
            for (to, other) in self.places.iter().enumerate() {
                let are_there = place.is_ready && other.is_ready && from != to;
                let since = place.answered_at[to]
                    .max(place.disturbed)
                    .max(other.disturbed);
                if are_there && since.elapsed() > STALL {
                    stalled.push(format!(
                        "host {to} has answered host {from} nothing for {} s",
                        STALL.as_secs()
                    ));
                }
            }
        }
        stalled.into_iter().for_each(|stall| self.fault(stall));
    }

    fn fault(&mut self, what: String) {
        tracing::warn!(what, at_s = self.begun.elapsed().as_secs_f64(), "a fault");
        self.faults.push(what);
    }

    /// Waits until it is so at all places; if it is not in time, that is a fault.
    fn until(&mut self, what: &str, is_so: impl Fn(usize, &Place) -> bool) -> Result<bool> {
        let begun = Instant::now();
        while self.faults.is_empty() {
            let places = self.places.iter().enumerate();
            let others: Vec<usize> = places
                .filter(|(host, place)| !is_so(*host, place))
                .map(|(host, _)| host)
                .collect();
            if others.is_empty() {
                return Ok(true);
            }
            if begun.elapsed() > TIMEOUT {
                for host in others {
                    self.fault(format!("host {host}: {what}"));
                }
            }
            self.listen(TURN)?;
        }
        Ok(false)
    }

    /// Waits until all messages have come, and checks them.
    fn end(&mut self) -> Result<()> {
        let wrong = self.pairs.end()?;
        wrong.into_iter().for_each(|wrong| self.fault(wrong));
        if !self.until("it cannot be reached", |_, place| place.is_ready)? {
            return Ok(());
        }
        let before: Vec<_> = self
            .places
            .iter()
            .map(|place| place.answered.clone())
            .collect();
        // Everybody is connected to everybody once more.
        let is_answered = |host: usize, place: &Place| {
            let counts = place.answered.iter().zip(&before[host]).enumerate();
            let mut others = counts.filter(|(other, _)| *other != host);
            others.all(|(_, (now, before))| now > before)
        };
        if !self.until("not all others answer it", is_answered)? {
            return Ok(());
        }
        self.look_at_memory();
        self.order(&Order::Stop)?;
        if !self.until("not all that it sent has come", |_, place| place.is_drained)? {
            return Ok(());
        }
        // Connections that were lost before that were lost without a reason.
        self.listen(Duration::ZERO)?;
        self.is_quitting = true;
        self.order(&Order::Quit)?;
        let begun = Instant::now();
        loop {
            self.listen(TURN)?;
            let mut is_over = true;
            for host in 0..self.places.len() {
                let Some(process) = &mut self.places[host].process else {
                    continue;
                };
                match process.has_ended()? {
                    Some(true) => {}
                    Some(false) => {
                        self.fault(format!("the process of host {host} did not end well"));
                    }
                    None => is_over = false,
                }
            }
            if is_over || !self.faults.is_empty() {
                break;
            }
            if begun.elapsed() > TIMEOUT {
                self.fault("not all processes end".to_owned());
                break;
            }
        }
        self.listen(TURN)?;
        let open = self
            .checker
            .unanswered(|sent| self.lives(sent.from) && self.lives(sent.to));
        open.into_iter().for_each(|fault| self.fault(fault));
        Ok(())
    }

    fn order(&mut self, order: &Order) -> Result<()> {
        for place in &mut self.places {
            if let Some(process) = &mut place.process {
                process.order(order)?;
            }
        }
        Ok(())
    }

    fn look_at_memory(&mut self) {
        for host in 0..self.places.len() {
            let place = &self.places[host];
            let held = place.process.as_ref().and_then(Process::holds);
            let (Some(warm), Some(held)) = (place.warm, held) else {
                continue;
            };
            tracing::info!(host, ?warm, ?held, "memory in bytes, and descriptors");
            if !is_spared(host) {
                continue;
            }
            if held.0 > warm.0 + warm.0 / 4 + GROWTH_BYTES {
                self.fault(format!(
                    "host {host} holds {} KiB of memory, and {} when it was warm",
                    held.0 >> 10,
                    warm.0 >> 10
                ));
            }
            if held.1 > warm.1 + GROWTH_DESCRIPTORS {
                self.fault(format!(
                    "host {host} holds {} descriptors, and {} when it was warm",
                    held.1, warm.1
                ));
            }
        }
    }

    fn received(&self) -> u64 {
        let now: u64 = self.places.iter().map(|place| place.received).sum();
        self.received_before + now
    }

    fn summary(&self) -> String {
        format!(
            "{} hosts, {} messages in {:.0} s; {} kills, {} stops, {} cuts; {} connections checked, {} of them lost with {} tags returned; {}; {}",
            self.places.len(),
            self.received(),
            self.begun.elapsed().as_secs_f64(),
            self.kills,
            self.holds,
            self.cuts,
            self.checker.checked,
            self.checker.lost,
            self.checker.came_back,
            self.pairs.summary(),
            match self.faults.len() {
                0 => "nothing is wrong".to_owned(),
                faults => format!("{faults} faults"),
            }
        )
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "hosts": self.places.len(),
            "has_cables": self.cluster.has_cables(),
            "seconds": self.begun.elapsed().as_secs_f64(),
            "messages": self.received(),
            "kills": self.kills,
            "stops": self.holds,
            "cuts": self.cuts,
            "connections_checked": self.checker.checked,
            "connections_lost": self.checker.lost,
            "tags_returned": self.checker.came_back,
            "pairs": self.pairs.figures(),
            "faults": self.faults,
        })
    }
}

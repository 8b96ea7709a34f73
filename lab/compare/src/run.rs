//! The rounds: a peer and ours, one after the other, figure by figure.
//!
//! A figure is kept only if the raw hand-off of a cache line, measured before, between and after,
//! kept still; otherwise it is measured again, a few times at most. A peer with few rounds in the
//! state in which the cores were most of the time gets more at the end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use indicatif::ProgressBar;

use crate::catalogue::{LOANS, Means, Peer, Program, Waits, WarmUp};
use crate::figure::{Figure, SENDERS_MAX};
use crate::interruption;
use crate::perftest;
use crate::pin::Cores;
use crate::session::{Outcome, Session};
use crate::statistics::{Round, State, median, usual_state};

/// The most by which the raw hand-off may move.
const STEADY: f64 = 0.15;
/// Times that an unsteady measurement is made again.
const REPEATS_MAX: usize = 4;
/// Round trips of a measurement of the raw hand-off.
const RAW_ROUND_TRIPS: u64 = 5_000;
const RAW_FIGURE: Figure = Figure::OneWay { size_bytes: 16 };
/// Rounds beyond those asked for, for figures of which too few were in the usual state of the
/// cores.
const MORE_ROUNDS_MAX: usize = 3;
/// Failures to start after which a peer is not tried again.
const FAILURES_MAX: usize = 3;
/// Failures after which a figure is not tried again.
const FIGURE_FAILURES_MAX: usize = 2;
/// Bounds of the messages of one measurement.
const COUNT_MIN: u64 = 3;
const COUNT_MAX: u64 = 50_000_000;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    pub(crate) rounds: usize,
    /// How long one measurement lasts, about; of a rate, some times as long.
    pub(crate) lasts: Duration,
    /// No round is begun that would end later than this after the start, but for the first: a
    /// machine that is busy otherwise is measured in fewer rounds.
    pub(crate) time_max: Duration,
}

/// What is known of one figure of one peer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Results {
    pub(crate) rounds: Vec<Round>,
    /// Why the peer does not do this.
    pub(crate) unsupported: Option<String>,
    /// Why it failed, if it did.
    pub(crate) failure: Option<String>,
    failures: usize,
    /// Messages of a measurement of the peer.
    pub(crate) count: u64,
}

impl Results {
    /// What is known from a run that is over.
    pub(crate) fn of(
        rounds: Vec<Round>,
        unsupported: Option<String>,
        failure: Option<String>,
        count: u64,
    ) -> Self {
        Self {
            rounds,
            unsupported,
            failure,
            failures: 0,
            count,
        }
    }

    fn fail(&mut self, error: &anyhow::Error) {
        self.failure = Some(format!("{error:#}"));
        self.failures += 1;
    }

    /// Whether more rounds would make the figure better: there are some, but fewer than half of
    /// those asked for were in that state.
    fn lacks(&self, rounds: usize, state: State) -> bool {
        let there = self
            .rounds
            .iter()
            .filter(|round| round.steady && round.state() == Some(state));
        self.unsupported.is_none()
            && !self.rounds.is_empty()
            && self.failures < FIGURE_FAILURES_MAX
            && there.count() * 2 < rounds
    }
}

/// Everything that was measured.
#[derive(Default)]
pub(crate) struct Measured {
    /// By name of the peer.
    pub(crate) figures: BTreeMap<&'static str, BTreeMap<Figure, Results>>,
    /// Peers that could not be run at all, and why.
    pub(crate) failures: BTreeMap<&'static str, String>,
}

impl Measured {
    /// The state of the cores in most of the rounds.
    pub(crate) fn usual_state(&self) -> Option<State> {
        let results = self.figures.values().flat_map(BTreeMap::values);
        usual_state(results.flat_map(|results| &results.rounds))
    }

    /// Figures of which too few rounds were in that state.
    fn lacking(&self, peer: &Peer, figures: &[Figure], rounds: usize, state: State) -> Vec<Figure> {
        let of_peer = self.figures.get(peer.name);
        let lacks = |figure: &&Figure| {
            of_peer
                .and_then(|results| results.get(figure))
                .is_some_and(|results| results.lacks(rounds, state))
        };
        figures.iter().filter(lacks).copied().collect()
    }
}

/// Something that can be measured: a session, or a program that runs once for each figure.
enum Measurable {
    Session(Session),
    Perftest {
        time: &'static str,
        bandwidth: &'static str,
        waits: &'static str,
        cores: Cores,
    },
}

impl Measurable {
    fn open(peer: &Peer, senders: usize, cores: Cores) -> Result<Self> {
        Ok(match &peer.means {
            Means::Session(program) => {
                let mut session = Session::open(program, senders, cores)?;
                if let Some(needed) = peer.warm_up {
                    warm_up(&mut session, needed, senders)?;
                }
                Measurable::Session(session)
            }
            Means::Perftest {
                time,
                bandwidth,
                waits,
            } => Measurable::Perftest {
                time,
                bandwidth,
                waits,
                cores,
            },
        })
    }

    fn order(&mut self, figure: Figure, count: u64) -> Result<Outcome> {
        match self {
            Measurable::Session(session) => session.order(figure, count),
            Measurable::Perftest {
                time,
                bandwidth,
                waits,
                cores,
            } => perftest::run(time, bandwidth, waits, figure, count, *cores, None),
        }
    }

    /// Whether it warms up by itself.
    fn warms_up(&self) -> bool {
        matches!(self, Measurable::Perftest { .. })
    }
}

fn warm_up(session: &mut Session, needed: WarmUp, senders: usize) -> Result<()> {
    let messages = needed.messages / senders as u64;
    for (figure, count) in [
        (RAW_FIGURE, needed.round_trips),
        (Figure::Senders { senders }, messages),
        (RAW_FIGURE, needed.round_trips),
    ] {
        session.order(figure, count).context("warming up")?;
    }
    Ok(())
}

/// Our own session and the machine's, which stand beside every peer's.
struct Beside {
    ours: Session,
    raw: Session,
    /// Messages that last about as long as a measurement should, by figure.
    counts: BTreeMap<Figure, u64>,
}

/// Peers that are measured beside the same of ours.
pub(crate) struct Group<'a> {
    pub(crate) figures: Vec<Figure>,
    pub(crate) senders: usize,
    /// For people.
    pub(crate) name: &'static str,
    pub(crate) reference: &'static str,
    pub(crate) peers: Vec<&'a Peer>,
    /// The time at which it must have ended, as a part of it all; the next gets what is left over.
    pub(crate) share: f64,
}

/// Those of the comparison on one host, in order.
pub(crate) fn groups(peers: &[Peer]) -> Vec<Group<'_>> {
    let group = |share, name, figures: Vec<Figure>, senders, waits: Waits, reference| {
        let is_of = |peer: &&Peer| {
            peer.waits == waits && figures.iter().all(|&figure| peer.measures(figure))
        };
        Group {
            peers: peers.iter().filter(is_of).collect(),
            figures,
            senders,
            name,
            reference,
            share,
        }
    };
    let pair = |share, name, waits: Waits| {
        let figures = Figure::of_a_pair();
        group(share, name, figures, 1, waits, waits.reference())
    };
    let crowd = |share, name, waits: Waits| {
        let figures = Figure::of_a_crowd();
        group(share, name, figures, SENDERS_MAX, waits, waits.reference())
    };
    vec![
        pair(0.6, "pairs that poll", Waits::Polls),
        pair(0.78, "pairs that sleep", Waits::Sleeps),
        group(0.82, "loans", Figure::of_loans(), 1, Waits::Polls, LOANS),
        crowd(0.94, "several senders that poll", Waits::Polls),
        crowd(1.0, "several senders that sleep", Waits::Sleeps),
    ]
}

/// Measures all peers of those groups, each beside one of ours.
pub(crate) fn run<'a>(
    groups: Vec<Group<'_>>,
    program: impl Fn(&str) -> Result<&'a Program>,
    raw: &Program,
    effort: Effort,
    cores: Cores,
    bar: &ProgressBar,
) -> Result<Measured> {
    let mut measured = Measured::default();
    let peers: usize = groups.iter().map(|group| group.peers.len()).sum();
    bar.set_length((peers * effort.rounds) as u64);
    let mut counts = BTreeMap::new();
    let mut own_failures = 0;
    let mut failed: BTreeMap<&'static str, usize> = BTreeMap::new();
    let start = Instant::now();
    for group in groups {
        let Group {
            figures,
            senders,
            name,
            reference,
            peers,
            share,
        } = group;
        if peers.is_empty() {
            continue;
        }
        let reference = program(reference)?;
        let time_max = effort.time_max.mul_f64(share);
        let mut longest = Duration::ZERO;
        let mut beside = Beside::open(reference, raw, senders, cores)?;
        for round in 0..effort.rounds + MORE_ROUNDS_MAX {
            if round > 0 && start.elapsed() + longest > time_max {
                let rounds = effort.rounds;
                if round < rounds {
                    let message = format!("{name}: time is up after {round} of {rounds} rounds");
                    bar.suspend(|| eprintln!("== {message}"));
                    bar.inc(((rounds - round) * peers.len()) as u64);
                }
                break;
            }
            let round_start = Instant::now();
            // The state that is still wanted, once the rounds that were asked for are over.
            let wanted = if round < effort.rounds {
                None
            } else {
                let Some(state) = measured.usual_state() else {
                    break;
                };
                Some(state)
            };
            let mut to_do: Vec<(&Peer, Vec<Figure>)> = peers
                .iter()
                .map(|&peer| match wanted {
                    None => (peer, figures.clone()),
                    Some(state) => (peer, measured.lacking(peer, &figures, effort.rounds, state)),
                })
                .collect();
            to_do.retain(|(_, figures)| !figures.is_empty());
            if to_do.is_empty() {
                break;
            }
            bar.set_prefix(name);
            if bar.is_hidden() {
                let rounds = effort.rounds;
                let left = left(start.elapsed(), bar.position(), bar.length());
                match wanted {
                    None => eprintln!("== {name}: round {} of {rounds}{left}", round + 1),
                    Some(state) => eprintln!(
                        "== another round, of {} peers that had too few with the cores {}",
                        to_do.len(),
                        state.name()
                    ),
                }
            }
            for (peer, figures) in to_do {
                if wanted.is_some() && beside.state().ok() != wanted {
                    continue;
                }
                bar.set_message(peer.label);
                let failures = failed.entry(peer.name).or_default();
                if *failures < FAILURES_MAX {
                    let results = measured.figures.entry(peer.name).or_default();
                    let mut of_peer = OfPeer {
                        peer,
                        senders,
                        cores,
                        counts: &mut counts,
                        results,
                    };
                    match of_peer.round(&figures, round, effort, &mut beside) {
                        Ok(()) => {}
                        Err(Trouble::Theirs(error)) => {
                            interruption::check()?;
                            *failures += 1;
                            measured.failures.insert(peer.name, format!("{error:#}"));
                        }
                        Err(Trouble::Ours(error)) => {
                            interruption::check()?;
                            own_failures += 1;
                            if own_failures == FAILURES_MAX {
                                return Err(
                                    error.context("on our side, and not for the first time")
                                );
                            }
                            bar.suspend(|| {
                                eprintln!("on our side, beside {}: {error:#}", peer.label)
                            });
                            beside = Beside::open(reference, raw, senders, cores)?;
                        }
                    }
                }
                if wanted.is_none() {
                    bar.inc(1);
                }
            }
            longest = longest.max(round_start.elapsed());
        }
    }
    Ok(measured)
}

/// The end of a line that says how much is left, once that can be told.
fn left(elapsed: Duration, done: u64, all: Option<u64>) -> String {
    match (done, all) {
        (1.., Some(all)) => {
            let of_each = elapsed.as_secs_f64() / done as f64;
            let minutes = of_each * all.saturating_sub(done) as f64 / 60.0;
            format!("; about {:.0} minutes left", minutes.ceil())
        }
        _ => String::new(),
    }
}

/// One peer, and what is known of it.
struct OfPeer<'a> {
    peer: &'a Peer,
    senders: usize,
    cores: Cores,
    counts: &'a mut BTreeMap<(&'static str, Figure), u64>,
    results: &'a mut BTreeMap<Figure, Results>,
}

impl OfPeer<'_> {
    /// Measures each figure once. A figure that fails is noted, and the rest is tried in a new
    /// session.
    fn round(
        &mut self,
        figures: &[Figure],
        round: usize,
        effort: Effort,
        beside: &mut Beside,
    ) -> Result<(), Trouble> {
        let mut theirs = None;
        for &figure in figures {
            let results = self.results.entry(figure).or_default();
            interruption::check().map_err(Trouble::Theirs)?;
            if results.unsupported.is_some() || results.failures == FIGURE_FAILURES_MAX {
                continue;
            }
            let theirs_open = match &mut theirs {
                Some(open) => open,
                None => theirs.insert(
                    Measurable::open(self.peer, self.senders, self.cores)
                        .map_err(Trouble::Theirs)?,
                ),
            };
            let key = (self.peer.name, figure);
            if let std::collections::btree_map::Entry::Vacant(vacant) = self.counts.entry(key) {
                match calibrated(theirs_open, figure, effort.lasts) {
                    Ok(Ok(count)) => {
                        vacant.insert(count);
                    }
                    Ok(Err(reason)) => {
                        results.unsupported = Some(reason);
                        continue;
                    }
                    Err(error) => {
                        results.fail(&error);
                        theirs = None;
                        continue;
                    }
                }
            }
            results.count = self.counts[&key];
            match beside.round(theirs_open, figure, results.count, round, effort.lasts) {
                Ok(round) => results.rounds.push(round),
                Err(Trouble::Theirs(error)) => {
                    results.fail(&error);
                    theirs = None;
                }
                Err(ours) => return Err(ours),
            }
        }
        Ok(())
    }
}

/// The process at fault.
enum Trouble {
    Theirs(anyhow::Error),
    Ours(anyhow::Error),
}

impl Beside {
    fn open(reference: &Program, raw: &Program, senders: usize, cores: Cores) -> Result<Self> {
        Ok(Self {
            ours: Session::open(reference, senders, cores).context("ours")?,
            raw: Session::open(raw, 1, cores).context("the raw hand-off")?,
            counts: BTreeMap::new(),
        })
    }

    fn round(
        &mut self,
        theirs: &mut Measurable,
        figure: Figure,
        count: u64,
        round: usize,
        lasts: Duration,
    ) -> Result<Round, Trouble> {
        if !self.counts.contains_key(&figure) {
            let count = calibrate(&mut |count| self.ours.order(figure, count), figure, lasts)
                .map_err(Trouble::Ours)?
                .map_err(|reason| Trouble::Ours(anyhow::anyhow!(reason)))?;
            self.counts.insert(figure, count);
        }
        let ours_count = self.counts[&figure];
        let mut repeats = 0;
        loop {
            let mut raw_ns = Vec::new();
            let (mut value, mut ours) = (f64::NAN, f64::NAN);
            raw_ns.push(self.raw_ns().map_err(Trouble::Ours)?);
            // The second peer finds the caches as the first left them; so they take turns.
            for half in 0..2 {
                if (round + half).is_multiple_of(2) {
                    ours = measure(
                        &mut |count| self.ours.order(figure, count),
                        figure,
                        ours_count,
                        true,
                    )
                    .map_err(Trouble::Ours)?;
                } else {
                    let warms = !theirs.warms_up();
                    value = measure(
                        &mut |count| theirs.order(figure, count),
                        figure,
                        count,
                        warms,
                    )
                    .map_err(Trouble::Theirs)?;
                }
                raw_ns.push(self.raw_ns().map_err(Trouble::Ours)?);
            }
            let steady = is_steady(&raw_ns);
            if steady || repeats == REPEATS_MAX {
                return Ok(Round {
                    value,
                    ours,
                    raw_ns,
                    steady,
                    repeats,
                });
            }
            repeats += 1;
        }
    }

    /// The raw hand-off now.
    fn raw_ns(&mut self) -> Result<f64> {
        let raw = &mut self.raw;
        measure(
            &mut |count| raw.order(RAW_FIGURE, count),
            RAW_FIGURE,
            RAW_ROUND_TRIPS,
            true,
        )
    }

    /// The state of the cores now.
    fn state(&mut self) -> Result<State> {
        let mut raw_ns = [0.0; 3];
        for ns in &mut raw_ns {
            *ns = self.raw_ns()?;
        }
        Ok(State::of(median(&raw_ns)))
    }
}

/// Whether these, taken within one measurement, are close enough to each other.
fn is_steady(raw_ns: &[f64]) -> bool {
    let least = raw_ns.iter().copied().fold(f64::INFINITY, f64::min);
    raw_ns.iter().all(|&raw| raw - least <= STEADY * least)
}

type Ordering<'a> = &'a mut dyn FnMut(u64) -> Result<Outcome>;

/// One measurement, after messages that do not count.
fn measure(order: Ordering<'_>, figure: Figure, count: u64, warm_up: bool) -> Result<f64> {
    if warm_up {
        order(figure.warm_up_count(count))?;
    }
    match order(count)? {
        Outcome::Took(elapsed_ns) => Ok(figure.value(count, elapsed_ns)),
        Outcome::Unsupported(reason) => bail!("it could do this before: {reason}"),
    }
}

fn calibrated(
    theirs: &mut Measurable,
    figure: Figure,
    lasts: Duration,
) -> Result<Result<u64, String>> {
    calibrate(&mut |count| theirs.order(figure, count), figure, lasts)
}

/// How many messages last about that long; or why there can be none.
pub(crate) fn calibrate(
    order: Ordering<'_>,
    figure: Figure,
    lasts: Duration,
) -> Result<Result<u64, String>> {
    let mut count = figure.first_count();
    let lasts_ns = figure.lasts(lasts).as_nanos() as f64;
    let deadline = Instant::now() + Duration::from_secs(30);
    for _ in 0..4 {
        let elapsed_ns = match order(count)? {
            Outcome::Took(elapsed_ns) => elapsed_ns,
            Outcome::Unsupported(reason) => return Ok(Err(reason)),
        };
        // The first messages are slower, so a short trial says little.
        let is_enough = elapsed_ns > lasts_ns / 4.0 || Instant::now() > deadline;
        let wanted = count as f64 * lasts_ns / elapsed_ns;
        count = (wanted.min(count as f64 * 50.0) as u64).clamp(COUNT_MIN, COUNT_MAX);
        if is_enough {
            break;
        }
    }
    Ok(Ok(count))
}

#[cfg(test)]
mod tests;

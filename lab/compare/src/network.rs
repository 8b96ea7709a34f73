//! Between two hosts: the same orders to programs in two network namespaces, joined by a veth pair.
//!
//! Ours in the clear is measured after each peer, figure by figure, and the peer's figure is
//! compared with that of its own round. There is no hand-off of a cache line to judge the cores by;
//! the spread of the rounds is shown instead. Why each peer is run that way is in
//! `lab/compare/README.md`.

pub(crate) mod hosts;
mod report;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::catalogue::{Means, Peer, Places};
use crate::figure::{Active, Category, Figure};
use crate::interruption;
use crate::perftest;
use crate::pin::Cores;
use crate::prepare;
use crate::publication;
use crate::record::Circumstances;
use crate::run::{Effort, calibrate};
use crate::session::{Outcome, Session};
use hosts::Hosts;
pub(crate) use report::Report;

/// With which every other one is compared.
pub(crate) const REFERENCE: &str = "hamlyn_raw";
const RATE: Figure = Figure::Rate { size_bytes: 16 };
/// What is measured.
const FIGURES: [Figure; 6] = [
    Figure::OneWay { size_bytes: 16 },
    Figure::OneWay {
        size_bytes: 1 << 10,
    },
    Figure::OneWay {
        size_bytes: 64 << 10,
    },
    RATE,
    Figure::Bandwidth {
        size_bytes: 64 << 10,
        fresh: false,
    },
    Figure::Bandwidth {
        size_bytes: 1 << 20,
        fresh: false,
    },
];
/// The same of active messages. Medium ones of Hamlyn are one packet of the path.
const ACTIVE_FIGURES: [Figure; 6] = [
    active(Category::Short, 4, true),
    active(Category::Short, 4, false),
    active(Category::Medium, 512, true),
    active(Category::Medium, 512, false),
    active(Category::Long, 16 << 10, false),
    active(Category::Long, 1 << 20, false),
];

const fn active(category: Category, size: usize, is_round_trip: bool) -> Figure {
    Figure::Active(Active {
        category,
        size,
        is_round_trip,
    })
}

/// Failures after which a peer is not tried again.
const FAILURES_MAX: usize = 2;

/// One figure of one peer, round by round.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) values: Vec<f64>,
    /// Ours, right after.
    pub(crate) ours: Vec<f64>,
    /// Why there is nothing.
    pub(crate) failure: Option<String>,
    /// Why the peer does not do this.
    pub(crate) unsupported: Option<String>,
}

/// Measures all that are chosen.
pub(crate) fn compare(
    only: &[String],
    places: &Places,
    cores: Cores,
    rounds: usize,
    lasts: Duration,
    install: bool,
    quick: bool,
) -> Result<Report> {
    let effort = Effort {
        rounds,
        lasts,
        time_max: Duration::MAX,
    };
    let hosts = Hosts::make()?;
    let mut circumstances = Circumstances::now(cores, effort, quick)?;
    circumstances.commit = publication::commit(&places.compare);
    let all = hosts::catalogue(places, &hosts)?;
    prepare::all(hosts::LIBRARIES, only, places, install, &mut circumstances)?;
    let peers: Vec<&Peer> = all
        .iter()
        .filter(|peer| circumstances.versions.contains_key(peer.library))
        .collect();
    let mut measured = BTreeMap::new();
    let mut broken: BTreeMap<&str, usize> = BTreeMap::new();
    let mut counts = BTreeMap::new();
    for round in 0..rounds {
        for &peer in &peers {
            eprintln!("== round {} of {rounds}: {}", round + 1, peer.label);
            if broken.get(peer.name) == Some(&FAILURES_MAX) {
                continue;
            }
            let figures = match peer.active {
                true => ACTIVE_FIGURES,
                false => FIGURES,
            };
            let reference = peer.reference(figures[0]);
            let of_ours = all.iter().find(|peer| peer.name == reference);
            let of_ours = of_ours.context("ours is not in the catalogue")?;
            let mut ours = Open::new(of_ours, &hosts, cores);
            let mut theirs = Open::new(peer, &hosts, cores);
            for figure in figures {
                interruption::check()?;
                let results: &mut Results = measured.entry((peer.name, figure)).or_default();
                if results.failure.is_some() || results.unsupported.is_some() {
                    continue;
                }
                let mut once = || -> Result<Result<(f64, f64), String>> {
                    let value = match theirs.measure(figure, lasts, &mut counts)? {
                        Ok(value) => value,
                        Err(reason) => return Ok(Err(reason)),
                    };
                    if peer.name == reference {
                        return Ok(Ok((value, value)));
                    }
                    let own = ours.measure(figure, lasts, &mut counts).context("ours")?;
                    Ok(own.map(|own| (value, own)))
                };
                match once() {
                    Ok(Ok((value, own))) => {
                        results.values.push(value);
                        results.ours.push(own);
                    }
                    Ok(Err(reason)) => results.unsupported = Some(reason),
                    Err(error) => {
                        interruption::check()?;
                        eprintln!("{}, {figure:?}: {error:#}", peer.label);
                        results.failure = Some(format!("{error:#}"));
                        ours.close();
                        theirs.close();
                        let failures: &mut usize = broken.entry(peer.name).or_default();
                        *failures += 1;
                        if *failures == FAILURES_MAX {
                            break;
                        }
                    }
                }
            }
        }
    }
    Ok(Report::new(circumstances, &all, measured))
}

/// A peer whose programs are started when they are needed.
struct Open<'a> {
    peer: &'a Peer,
    hosts: &'a Hosts,
    cores: Cores,
    session: Option<Session>,
}

impl<'a> Open<'a> {
    fn new(peer: &'a Peer, hosts: &'a Hosts, cores: Cores) -> Self {
        Self {
            peer,
            hosts,
            cores,
            session: None,
        }
    }

    fn close(&mut self) {
        self.session = None;
    }

    fn order(&mut self, figure: Figure, count: u64) -> Result<Outcome> {
        let program = match &self.peer.means {
            Means::Session(program) => program,
            Means::Perftest {
                time,
                bandwidth,
                waits,
            } => {
                let hosts = Some(self.hosts);
                return perftest::run(time, bandwidth, waits, figure, count, self.cores, hosts);
            }
        };
        let session = match &mut self.session {
            Some(session) => session,
            None => {
                let mut session = Session::open_between(program, 1, self.cores, Some(self.hosts))?;
                if let Some(needed) = self.peer.warm_up {
                    let turns = Figure::OneWay { size_bytes: 16 };
                    session
                        .order(turns, needed.round_trips)
                        .context("warming up")?;
                    session.order(RATE, needed.messages).context("warming up")?;
                }
                self.session.insert(session)
            }
        };
        session.order(figure, count)
    }

    /// The figure, from as many messages as last about so long; or why there is none.
    fn measure(
        &mut self,
        figure: Figure,
        lasts: Duration,
        counts: &mut BTreeMap<(&'static str, Figure), u64>,
    ) -> Result<Result<f64, String>> {
        let key = (self.peer.name, figure);
        let count = match counts.get(&key) {
            Some(&count) => count,
            None => {
                let mut order = |count| self.order(figure, count);
                match calibrate(&mut order, figure, lasts)? {
                    Ok(count) => *counts.entry(key).or_insert(count),
                    Err(reason) => return Ok(Err(reason)),
                }
            }
        };
        self.order(figure, figure.warm_up_count(count))?;
        Ok(match self.order(figure, count)? {
            Outcome::Took(ns) => Ok(figure.value(count, ns)),
            Outcome::Unsupported(reason) => Err(reason),
        })
    }
}

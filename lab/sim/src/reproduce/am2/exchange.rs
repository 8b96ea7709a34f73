//! Table 1: 92 nodes, each of which sends requests to one other, and answers those of one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use hamlyn::Wait;
use hamlyn_am::Error;

use super::cluster::{Cluster, Member, Part};
use crate::reproduce::measure::Failure;
use crate::time::{Span, Time};
use crate::world;

/// Everything is linked by then.
const BEGIN: Span = Span::from_us(20_000);
/// Time before it is measured, and for which it is.
const WARM_UP: Span = Span::from_us(5_000);
const MEASURED: Span = Span::from_us(20_000);

/// The receiver of each node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permutation {
    /// Each to its right neighbour.
    Cshift,
    /// Adjacent nodes to each other.
    Neighbor,
    /// Nodes of one half to those of the other, and back.
    Bisection,
}

/// A permutation under load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// Number of nodes, even.
    pub nodes: usize,
    /// The receiver of each.
    pub permutation: Permutation,
    /// Bytes of data of a request; none: a short message of four words, and one under way.
    pub data_bytes: usize,
}

/// The outcome of an exchange.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Exchanged {
    /// Megabytes a second that a node sends, on average.
    pub mb_per_s: f64,
    /// Mean round trip, in microseconds, of requests that go one at a time.
    pub round_trip_us: f64,
}

impl Exchange {
    pub(super) fn peer(&self, node: usize) -> usize {
        match self.permutation {
            Permutation::Cshift => (node + 1) % self.nodes,
            Permutation::Neighbor => node ^ 1,
            Permutation::Bisection => (node + self.nodes / 2) % self.nodes,
        }
    }

    /// Measures it.
    pub fn measure(&self, cluster: &Cluster) -> Result<Exchanged, Failure> {
        let names: Vec<String> = (0..self.nodes).map(|at| format!("node-{at}")).collect();
        let finished = AtomicUsize::new(0);
        let sums = Mutex::new((0_u64, Span::ZERO));
        let mut parts: Vec<Part<'_>> = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let (names, finished, sums) = (&names, &finished, &sums);
            parts.push((
                name,
                Box::new(move |member| {
                    let peer = &names[self.peer(at)];
                    let (replies, trips) = self
                        .run(member, peer, finished)
                        .expect("peers that keep to the rules");
                    let mut sums = sums.lock().unwrap_or_else(PoisonError::into_inner);
                    sums.0 += replies;
                    sums.1 += trips;
                }),
            ));
        }
        let cluster = Cluster {
            are_neighbours: true,
            ..cluster.clone()
        };
        cluster.run(parts)?;
        let (replies, trips) = sums.into_inner().unwrap_or_else(PoisonError::into_inner);
        let bytes = replies as f64 * self.data_bytes as f64;
        Ok(Exchanged {
            mb_per_s: bytes / self.nodes as f64 / MEASURED.as_us_f64(),
            round_trip_us: trips.as_us_f64() / replies.max(1) as f64,
        })
    }

    /// A node's replies in the time that is measured, and their round trips.
    fn run(
        &self,
        member: &Member,
        peer: &str,
        finished: &AtomicUsize,
    ) -> Result<(u64, Span), Error> {
        let _server = member.server("endpoint")?;
        let (from, until) = (
            Time::ZERO + BEGIN + WARM_UP,
            Time::ZERO + BEGIN + WARM_UP + MEASURED,
        );
        let client = member.client(peer, "endpoint")?;
        let data = vec![7; self.data_bytes];
        world::pause((Time::ZERO + BEGIN).since(world::now()));
        let mut trips = Span::ZERO;
        while world::now() < until {
            let (asked, before) = (world::now(), client.replies());
            client.request(&data)?;
            if self.data_bytes > 0 {
                continue;
            }
            client.await_replies(before + 1)?;
            let answered = world::now();
            if answered >= from && answered < until {
                trips += answered.since(asked);
            }
        }
        finished.fetch_add(1, Ordering::Relaxed);
        while client.outstanding()? > 0 || finished.load(Ordering::Relaxed) < self.nodes {
            member.bundle.serve(Wait::millis(1))?;
        }
        let replies = client.replies_between(from, until);
        Ok((replies.len() as u64, trips))
    }
}

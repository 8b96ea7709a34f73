//! Clients of one server, all at once: the same endpoint (Figures 7 to 9), or one for each client
//! (Figures 10 and 11).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use hamlyn::Wait;
use hamlyn_am::{Error, Statistics};

use super::cluster::{Cluster, Member, Part};
use crate::reproduce::measure::Failure;
use crate::time::{Span, Time};
use crate::world;

/// Everything is linked by then.
const BEGIN: Span = Span::from_us(10_000);
/// Between the beginnings of clients.
const APART: Span = Span::from_us(50);
/// A look of the server, after which it asks whether it is over.
const LOOK: Wait = Wait::millis(1);

/// Clients that ask a server without pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// Number of clients, each on a host of its own.
    pub clients: usize,
    /// Each client has an endpoint of the server to itself.
    pub has_own_endpoints: bool,
    /// Requests that a client has under way at most, if its credits allow them.
    pub under_way: u32,
    /// Bytes of data of a request; none: a short message of four words.
    pub data_bytes: usize,
    /// Time before it is measured, from the last client's beginning.
    pub warm_up: Span,
    /// Time for which it is measured.
    pub measured: Span,
}

/// A client's part of an outcome.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Client {
    /// Replies in the time that was measured.
    pub replies: Vec<Time>,
    /// Sum of the round trips of those of them whose requests went alone.
    pub round_trips: Span,
    /// Counts of its node.
    pub statistics: Statistics,
}

/// The outcome of a load.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// Clients, in the order of their beginnings.
    pub clients: Vec<Client>,
    /// Counts of the server's node.
    pub server: Statistics,
    /// Time for which it was measured.
    pub measured: Span,
}

impl Load {
    /// So many clients of one endpoint, who have one request under way each.
    pub fn one_at_a_time(clients: usize) -> Self {
        Self {
            clients,
            has_own_endpoints: false,
            under_way: 1,
            data_bytes: 0,
            warm_up: Span::from_us(10_000),
            measured: Span::from_us(40_000),
        }
    }

    /// Measures it.
    pub fn measure(&self, cluster: &Cluster) -> Result<Outcome, Failure> {
        let names: Vec<String> = (0..self.clients).map(|at| format!("client-{at}")).collect();
        let found = Mutex::new(Outcome {
            clients: vec![Client::default(); self.clients],
            measured: self.measured,
            ..Outcome::default()
        });
        let finished = AtomicUsize::new(0);
        let keep = |put: &dyn Fn(&mut Outcome)| {
            put(&mut found.lock().unwrap_or_else(PoisonError::into_inner));
        };
        let mut parts: Vec<Part<'_>> = vec![(
            "server",
            Box::new(|member| {
                let served = self.serve(member, &finished);
                served.expect("clients that keep to the rules");
                keep(&|outcome| outcome.server = member.statistics());
            }),
        )];
        for (at, name) in names.iter().enumerate() {
            let (keep, finished) = (&keep, &finished);
            parts.push((
                name,
                Box::new(move |member| {
                    let client = self.ask(member, at).expect("a server that answers");
                    keep(&|outcome| outcome.clients[at] = client.clone());
                    finished.fetch_add(1, Ordering::Relaxed);
                }),
            ));
        }
        cluster.run(parts)?;
        Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn serve(&self, member: &Member, finished: &AtomicUsize) -> Result<(), Error> {
        let count = if self.has_own_endpoints {
            self.clients
        } else {
            1
        };
        let items = (0..count).map(|at| format!("endpoint-{at}"));
        let _endpoints: Vec<_> = items
            .map(|item| member.server(&item))
            .collect::<Result<_, _>>()?;
        while finished.load(Ordering::Relaxed) < self.clients {
            member.bundle.serve(LOOK)?;
        }
        Ok(())
    }

    fn ask(&self, member: &Member, at: usize) -> Result<Client, Error> {
        let own = if self.has_own_endpoints { at } else { 0 };
        let begin = Time::ZERO + BEGIN + APART * at as u64;
        let from = Time::ZERO + BEGIN + APART * self.clients as u64 + self.warm_up;
        let until = from + self.measured;
        let client = member.client("server", &format!("endpoint-{own}"))?;
        let data = vec![7; self.data_bytes];
        world::pause(begin.since(world::now()));
        let mut round_trips = Span::ZERO;
        while world::now() < until {
            while client.outstanding()? >= self.under_way {
                member.bundle.serve(Wait::Forever)?;
            }
            let asked = world::now();
            client.request(&data)?;
            if self.under_way == 1 {
                client.await_replies(client.replies() + 1)?;
                let answered = world::now();
                if answered >= from && answered < until {
                    round_trips += answered.since(asked);
                }
            }
        }
        while client.outstanding()? > 0 {
            member.bundle.serve(Wait::Forever)?;
        }
        Ok(Client {
            replies: client.replies_between(from, until),
            round_trips,
            statistics: member.statistics(),
        })
    }
}

impl Outcome {
    /// Requests a second that the server answered.
    pub fn rate(&self) -> f64 {
        let replies: usize = self.clients.iter().map(|client| client.replies.len()).sum();
        replies as f64 / (self.measured.as_us_f64() / 1e6)
    }

    /// Mean round trip, in microseconds, of clients with one request under way.
    pub fn round_trip_us(&self) -> f64 {
        let clients = self.clients.iter();
        let sums = clients.fold((0, Span::ZERO), |(count, sum), client| {
            (count + client.replies.len(), sum + client.round_trips)
        });
        sums.1.as_us_f64() / sums.0.max(1) as f64
    }

    /// The clients' rates as parts of an equal share: the least, and the most.
    pub fn shares(&self) -> (f64, f64) {
        let share = self.clients.iter().map(|client| client.replies.len());
        let all: usize = share.clone().sum();
        let part = |count: usize| (count * self.clients.len()) as f64 / all.max(1) as f64;
        (
            share.clone().min().map_or(0.0, part),
            share.max().map_or(0.0, part),
        )
    }
}

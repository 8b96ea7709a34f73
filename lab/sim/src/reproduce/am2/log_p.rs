//! Figure 5: LogP by the paper's own method.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use hamlyn::Wait;
use hamlyn_am::Error;

use super::cluster::{Cluster, Member, Part};
use crate::reproduce::measure::Failure;
use crate::time::Span;
use crate::world;

/// Longer than a round trip: the sender waits for nothing but its own overheads.
const DELAY: Span = Span::from_us(200);
/// Requests of a burst.
const MANY: u64 = 200;
/// Nothing is under way after that.
const QUIET: Span = Span::from_us(5_000);

/// LogP parameters, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LogP {
    /// Sending overhead.
    pub send: f64,
    /// Receiving overhead.
    pub receive: f64,
    /// Gap.
    pub gap: f64,
    /// Latency.
    pub latency: f64,
    /// Round trip.
    pub round_trip: f64,
}

/// Time for each request of a burst of so many with so much computing after each.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Burst {
    /// Requests.
    pub requests: u64,
    /// Computing after each.
    pub delay: Span,
    /// Until the last one was issued, for each, in microseconds.
    pub issue_us: f64,
    /// Until all were answered, for each, in microseconds.
    pub answer_us: f64,
}

/// Issues bursts, one after the other: each of so many requests with such a delay.
pub fn bursts(cluster: &Cluster, wanted: &[(u64, Span)]) -> Result<Vec<Burst>, Failure> {
    let found = Mutex::new(Vec::new());
    let is_over = AtomicBool::new(false);
    let parts: Vec<Part<'_>> = vec![
        (
            "server",
            Box::new(|member| {
                let _endpoint = member.server("endpoint").expect("a first endpoint");
                while !is_over.load(Ordering::Relaxed) {
                    member.bundle.serve(Wait::millis(1)).expect("good requests");
                }
            }),
        ),
        (
            "client",
            Box::new(|member| {
                let measured = issue(member, wanted).expect("a server that answers");
                *found.lock().unwrap_or_else(PoisonError::into_inner) = measured;
                is_over.store(true, Ordering::Relaxed);
            }),
        ),
    ];
    cluster.run(parts)?;
    Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn issue(member: &Member, wanted: &[(u64, Span)]) -> Result<Vec<Burst>, Error> {
    let client = member.client("server", "endpoint")?;
    let mut measured = Vec::new();
    let mut sent = 0;
    // The first message introduces the client.
    for &(requests, delay) in [(1, Span::ZERO)].iter().chain(wanted) {
        world::pause(QUIET);
        let began = world::now();
        for _ in 0..requests {
            client.request(&[])?;
            sent += 1;
            if delay != Span::ZERO {
                world::compute(delay);
                while member.bundle.poll()? > 0 {}
            }
        }
        let issued = world::now();
        client.await_replies(sent)?;
        let each = |span: Span| span.as_us_f64() / requests as f64;
        measured.push(Burst {
            requests,
            delay,
            issue_us: each(issued.since(began)),
            answer_us: each(world::now().since(began)),
        });
    }
    measured.remove(0);
    Ok(measured)
}

/// Measures the parameters as the paper does.
pub fn log_p(cluster: &Cluster) -> Result<LogP, Failure> {
    let wanted = [(1, Span::ZERO), (MANY, Span::ZERO), (MANY, DELAY)];
    let [one, many, slow] = bursts(cluster, &wanted)?[..] else {
        return Err(Failure::World("a burst was not measured".to_owned()));
    };
    let (send, round_trip) = (one.issue_us, one.answer_us);
    let receive = slow.issue_us - send - DELAY.as_us_f64();
    Ok(LogP {
        send,
        receive,
        gap: many.issue_us,
        latency: round_trip / 2.0 - send - receive,
        round_trip,
    })
}

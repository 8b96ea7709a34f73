//! The rows of the paper, each with its measurement or its judgement.

use super::bench::{
    BOTH, Bench, CLIENTS, Dma, FRAMES, LENGTHS, LOADING_US, LONG_QUEUE, PROTECTION, RELIABILITY,
    VIRTUAL_NETWORKS, Variant, loads,
};
use super::exchange::Permutation;
use super::load::Outcome;
use crate::machine::PointName;
use crate::reproduce::measure::Failure;
use crate::reproduce::report::Experiment;

/// From so many clients on a server is busy all the time.
const BUSY: usize = 4;
/// Numbers of clients between which the slope of Figure 9 is taken, in the middle of it.
const SLOPE: (usize, usize) = (8, 16);

type Number = Result<f64, Failure>;
type Judged = Result<(bool, String), Failure>;

/// The experiment by which a row is measured.
pub(super) fn of(id: &str) -> Option<Experiment<Bench>> {
    use Experiment::{Figures, Judged};
    Some(match id {
        "V-226" => Figures(&[|bench| Ok(bench.log_p(Variant::paper())?.send)]),
        "V-227" => Figures(&[|bench| Ok(bench.log_p(Variant::paper())?.receive)]),
        "V-228" => Figures(&[gap]),
        "V-229" => Figures(&[|bench| Ok(bench.log_p(Variant::paper())?.latency)]),
        "V-230" => Figures(&[|bench| Ok(bench.log_p(Variant::paper())?.round_trip)]),
        "V-232" => Figures(&[
            |bench| saved(bench, PROTECTION, slope),
            |bench| saved(bench, PROTECTION, latency),
            |bench| saved(bench, PROTECTION, round_trip),
        ]),
        "V-233" => Figures(&[
            |bench| saved(bench, RELIABILITY, slope),
            |bench| saved(bench, RELIABILITY, latency),
            |bench| saved(bench, RELIABILITY, round_trip),
        ]),
        "V-234" => Figures(&[
            |bench| slope(bench, Variant::without(BOTH)),
            |bench| latency(bench, Variant::without(BOTH)),
            |bench| round_trip(bench, Variant::without(BOTH)),
        ]),
        "V-236" => Judged(mostly_gap),
        "V-238" => Figures(&[|bench| Ok(bench.log_p(Variant::paper())?.round_trip / 2.0)]),
        "V-245" => Judged(gap_limits),
        "V-250" => Figures(&[|bench| bandwidth(bench, Dma::Streaming, 4_096)]),
        "V-251" => Figures(&[|bench| bandwidth(bench, Dma::Consistent, 8_192)]),
        "V-253" => Judged(consistent_is_faster_for_small),
        "V-254" => Judged(curves_cross),
        "V-124" => Judged(two_long_messages_fill_the_pipe),
        "V-126" => Judged(four_credits_do),
        "V-264" => Figures(&[
            |bench| Ok(bench.exchange(Permutation::Neighbor, 4_096)?.mb_per_s),
            |bench| Ok(bench.exchange(Permutation::Neighbor, 0)?.round_trip_us),
        ]),
        "V-265" => Figures(&[
            |bench| Ok(bench.exchange(Permutation::Bisection, 4_096)?.mb_per_s),
            |bench| Ok(bench.exchange(Permutation::Bisection, 0)?.round_trip_us),
        ]),
        "V-266" => Judged(neighbours_scale),
        "V-267" => Judged(bisection_saturates),
        "V-272" => Figures(&[
            |bench| Ok(least_rate(bench, loads::round_trips)),
            |bench| Ok(least_rate(bench, loads::rates)),
        ]),
        "V-274" => Judged(|bench| {
            let bulk = Variant::bulk(Dma::Streaming);
            fair(&bench.loads(bulk, &CLIENTS, loads::bandwidths), 0.5)
        }),
        "V-275" => Judged(overruns),
        "V-276" => {
            Judged(|bench| fair(&bench.loads(Variant::paper(), &CLIENTS, loads::rates), 0.9))
        }
        "V-278" => Figures(&[
            |bench| slope(bench, Variant::paper()),
            |bench| Ok(slope(bench, Variant::paper())? / gap(bench)?),
            |bench| Ok(whole_slope(bench, Variant::paper())),
            |bench| Ok(whole_slope(bench, Variant::queue(LONG_QUEUE))),
        ]),
        "V-284" => Figures(&[|bench| Ok(1e6 / gap(bench)?)]),
        "V-285" => Judged(resident_rates),
        "V-286" => Judged(|bench| {
            let all = bench.loads(Variant::paper(), &VIRTUAL_NETWORKS, loads::virtual_networks);
            let resident: Vec<_> = all
                .into_iter()
                .filter(|(count, _)| *count <= FRAMES)
                .collect();
            fair(&resident, 0.84)
        }),
        "V-111" => Judged(visits),
        "V-292" => Judged(single_thread_falls),
        "V-300" => Figures(&[
            |bench| Ok(most(bench, Variant::paper())?.shares().1),
            |bench| Ok(most(bench, Variant::paper())?.shares().0),
        ]),
        "V-308" => Figures(&[
            |bench| Ok(most(bench, Variant::loading(0))?.rate() / resident_rate(bench)?),
            |bench| Ok(most(bench, Variant::paper())?.rate() / resident_rate(bench)?),
        ]),
        _ => return None,
    })
}

fn gap(bench: &Bench) -> Number {
    Ok(bench.log_p(Variant::paper())?.gap)
}

fn slope(bench: &Bench, variant: Variant) -> Number {
    bench.slope(variant, SLOPE)
}

fn latency(bench: &Bench, variant: Variant) -> Number {
    Ok(bench.log_p(variant)?.latency)
}

fn round_trip(bench: &Bench, variant: Variant) -> Number {
    Ok(bench.log_p(variant)?.round_trip)
}

/// The part of a number that is gone where boards take no time for those points.
fn saved(
    bench: &Bench,
    points: &'static [PointName],
    number: fn(&Bench, Variant) -> Number,
) -> Number {
    Ok(number(bench, Variant::paper())? - number(bench, Variant::without(points))?)
}

/// The slope of Figure 9 over all numbers of clients of a busy server, by least squares.
fn whole_slope(bench: &Bench, variant: Variant) -> f64 {
    let all = bench.loads(variant, &CLIENTS, loads::round_trips);
    let busy = all.iter().filter(|(clients, _)| *clients >= BUSY);
    let points: Vec<(f64, f64)> = busy
        .map(|(clients, outcome)| (*clients as f64, outcome.round_trip_us()))
        .collect();
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let together: f64 = points
        .iter()
        .map(|point| (point.0 - x) * (point.1 - y))
        .sum();
    let alone: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    together / alone
}

fn mostly_gap(bench: &Bench) -> Judged {
    let both = |number| saved(bench, BOTH, number);
    let (gap, latency) = (both(slope)?, both(latency)?);
    Ok((
        gap > 2.0 * latency,
        format!("gap {gap:.2} µs, latency {latency:.2} µs"),
    ))
}

fn gap_limits(bench: &Bench) -> Judged {
    let found = bench.log_p(Variant::paper())?;
    let overheads = found.send + found.receive;
    Ok((
        found.gap > 1.5 * overheads,
        format!("gap {:.2} µs, overheads {overheads:.2} µs", found.gap),
    ))
}

/// Megabytes a second of requests of that length.
pub(super) fn bandwidth(bench: &Bench, dma: Dma, length: usize) -> Number {
    let outcome = bench.load(Variant::bulk(dma), loads::of_length(length))?;
    Ok(outcome.rate() * length as f64 / 1e6)
}

fn consistent_is_faster_for_small(bench: &Bench) -> Judged {
    let length = 256;
    let (consistent, streaming) = (
        bandwidth(bench, Dma::Consistent, length)?,
        bandwidth(bench, Dma::Streaming, length)?,
    );
    Ok((
        consistent > streaming,
        format!("{length} bytes: {consistent:.1} and {streaming:.1} MB/s"),
    ))
}

fn curves_cross(bench: &Bench) -> Judged {
    for length in LENGTHS {
        let (consistent, streaming) = (
            bandwidth(bench, Dma::Consistent, length)?,
            bandwidth(bench, Dma::Streaming, length)?,
        );
        if streaming > consistent && length > 64 {
            return Ok((
                length < 4_096,
                format!("streaming is faster from {length} bytes on"),
            ));
        }
    }
    Ok((false, "streaming is never faster".to_owned()))
}

fn two_long_messages_fill_the_pipe(bench: &Bench) -> Judged {
    let us = 8_192.0 / bandwidth(bench, Dma::Streaming, 8_192)?;
    Ok((us <= 264.0, format!("8 KB each {us:.0} µs, 264 at 31 MB/s")))
}

fn four_credits_do(bench: &Bench) -> Judged {
    let gap = |credits| Ok::<f64, Failure>(bench.log_p(Variant::credits(credits))?.gap);
    let (one, two, eight) = (gap(1)?, gap(2)?, gap(8)?);
    let four = self::gap(bench)?;
    let is_enough = four < 0.7 * two && two < 0.7 * one && eight > 0.9 * four;
    Ok((
        is_enough,
        format!("gap with K = 1, 2, 4, 8: {one:.1}, {two:.1}, {four:.1}, {eight:.1} µs"),
    ))
}

fn neighbours_scale(bench: &Bench) -> Judged {
    let mut holds = true;
    let mut said = Vec::new();
    let peak = bandwidth(bench, Dma::Streaming, 4_096)?;
    let alone = round_trip(bench, Variant::paper())?;
    for (name, permutation) in [
        ("cshift", Permutation::Cshift),
        ("neighbor", Permutation::Neighbor),
    ] {
        let mb_per_s = bench.exchange(permutation, 4_096)?.mb_per_s;
        let trip = bench.exchange(permutation, 0)?.round_trip_us;
        holds &= mb_per_s >= 0.85 * peak && trip <= 2.0 * alone;
        said.push(format!("{name} {mb_per_s:.1} MB/s, {trip:.1} µs"));
    }
    Ok((holds, said.join("; ")))
}

fn bisection_saturates(bench: &Bench) -> Judged {
    let near = bench.exchange(Permutation::Neighbor, 4_096)?.mb_per_s;
    let far = bench.exchange(Permutation::Bisection, 4_096)?.mb_per_s;
    Ok((
        far < near / 3.0,
        format!("{far:.1} MB/s a node, between neighbours {near:.1}"),
    ))
}

/// The least rate of a busy server of one endpoint.
fn least_rate(bench: &Bench, load: fn(usize) -> super::load::Load) -> f64 {
    let all = bench.loads(Variant::paper(), &CLIENTS, load);
    let busy = all.iter().filter(|(clients, _)| *clients >= BUSY);
    busy.map(|(_, outcome)| outcome.rate())
        .fold(f64::INFINITY, f64::min)
}

/// True if each client has at least that part of its share, whatever their number.
fn fair(all: &[(usize, &Outcome)], least: f64) -> Judged {
    let mut said = Vec::new();
    let mut holds = !all.is_empty();
    for (clients, outcome) in all.iter().filter(|(clients, _)| *clients > 1) {
        let (slowest, fastest) = outcome.shares();
        holds &= slowest >= least;
        said.push(format!("{clients} clients {slowest:.2} to {fastest:.2}"));
    }
    Ok((
        holds,
        format!("parts of an equal share: {}", said.join("; ")),
    ))
}

/// Messages that were refused and sent again, for each that was answered.
fn again(outcome: &Outcome) -> f64 {
    let clients = outcome.clients.iter();
    let (again, sent) = clients.fold((0, 0), |(again, sent), client| {
        let counts = client.statistics;
        (again + counts.sent_again, sent + counts.requests_sent)
    });
    again as f64 / (sent as f64).max(1.0)
}

fn overruns(bench: &Bench) -> Judged {
    let all = bench.loads(Variant::paper(), &CLIENTS, loads::rates);
    let said: Vec<String> = all
        .iter()
        .map(|(clients, outcome)| {
            format!(
                "{clients} clients {:.0}/s, {:.2}",
                outcome.rate(),
                again(outcome)
            )
        })
        .collect();
    // The fluctuation comes from refusals: there are none where the queue holds all.
    let few = all.first().map_or(0.0, |(_, outcome)| again(outcome));
    let many = all.last().map_or(0.0, |(_, outcome)| again(outcome));
    Ok((
        few == 0.0 && many > 0.0,
        format!("rate, and refusals for each request: {}", said.join("; ")),
    ))
}

fn resident_rate(bench: &Bench) -> Number {
    let load = loads::virtual_networks(FRAMES);
    Ok(bench.load(Variant::paper(), load)?.rate())
}

fn resident_rates(bench: &Bench) -> Judged {
    let peak = 1e6 / gap(bench)?;
    let all = bench.loads(Variant::paper(), &VIRTUAL_NETWORKS, loads::virtual_networks);
    let resident = all.iter().filter(|(clients, _)| *clients <= FRAMES);
    let parts: Vec<f64> = resident.map(|(_, outcome)| outcome.rate() / peak).collect();
    let holds = parts.iter().all(|part| (part - 1.0).abs() <= 0.11);
    let said: Vec<String> = parts.iter().map(|part| format!("{part:.2}")).collect();
    Ok((
        holds,
        format!("of 1/g, for 1 to {FRAMES}: {}", said.join(", ")),
    ))
}

/// The most virtual networks that were measured.
fn most(bench: &Bench, variant: Variant) -> Result<&Outcome, Failure> {
    let all = bench.loads(variant, &VIRTUAL_NETWORKS, loads::virtual_networks);
    let last = all.last().map(|(_, outcome)| *outcome);
    last.ok_or_else(|| Failure::World("no virtual networks were measured".to_owned()))
}

fn visits(bench: &Bench) -> Judged {
    let shares = |variant| {
        let outcome = bench.load(variant, loads::virtual_networks(FRAMES));
        outcome.map(Outcome::shares)
    };
    let (long, short) = (shares(Variant::paper())?, shares(Variant::visit(8))?);
    Ok((
        short.0 > long.0 + 0.05,
        format!(
            "parts of an equal share of {FRAMES} clients: visits of 256 {:.2} to {:.2}, of 8 {:.2} to {:.2}",
            long.0, long.1, short.0, short.1
        ),
    ))
}

fn single_thread_falls(bench: &Bench) -> Judged {
    let before = resident_rate(bench)?;
    let mut said = Vec::new();
    let mut holds = true;
    for us in LOADING_US {
        let variant = Variant::loading(us);
        let all = bench.loads(variant, &VIRTUAL_NETWORKS, loads::virtual_networks);
        let parts: Vec<String> = all
            .iter()
            .map(|(clients, outcome)| format!("{clients}: {:.2}", outcome.rate() / before))
            .collect();
        if us >= 500 {
            holds &= all
                .iter()
                .all(|(_, outcome)| outcome.rate() < 0.85 * before);
        }
        said.push(format!("{us} µs to load: {}", parts.join(", ")));
    }
    Ok((
        holds,
        format!("rates by that of {FRAMES} clients; {}", said.join("; ")),
    ))
}

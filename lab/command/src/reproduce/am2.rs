//! `hamlyn-lab reproduce am2`: Active Messages on the cluster of the virtual networks.

use anyhow::Result;
use hamlyn_sim::reproduce::Report;
use hamlyn_sim::reproduce::am2::bench::{CLIENTS, VIRTUAL_NETWORKS, Variant, loads};
use hamlyn_sim::reproduce::am2::{Bench, Extent, load, machine, report};

use super::narrow::{narrow, show_claims, show_numbers, show_summary};
use super::words::amount;
use hamlyn_cli::terminal::steps_bar;

/// A report, with the loads behind it.
#[derive(serde::Serialize)]
pub(super) struct Reproduced {
    #[serde(flatten)]
    pub(super) report: Report,
    loads: Vec<Load>,
}

/// The outcome of a number of clients.
#[derive(serde::Serialize)]
struct Load {
    figure: &'static str,
    clients: usize,
    requests_per_s: f64,
    round_trip_us: Option<f64>,
    least_share: f64,
    most_share: f64,
    sent_again: u64,
    faults: u64,
    unloaded: u64,
}

/// Measures all of it.
pub(super) fn measure(is_quick: bool) -> Result<Reproduced> {
    let (machine, extent) = (machine(), Extent { is_quick });
    let settings = extent.settings();
    let bar = steps_bar(settings.len() as u64, "worlds", false);
    let bench = Bench::measure(&machine, extent, &settings, || bar.inc(1));
    bar.finish_and_clear();
    let bench = bench?;
    Ok(Reproduced {
        report: report(&machine, &bench)?,
        loads: loads_of(&bench),
    })
}

fn loads_of(bench: &Bench) -> Vec<Load> {
    type Of = fn(usize) -> load::Load;
    let figures: [(&'static str, &[usize], Of, bool); 3] = [
        ("7, K = 4", &CLIENTS, loads::rates, false),
        ("9", &CLIENTS, loads::round_trips, true),
        ("10, 11", &VIRTUAL_NETWORKS, loads::virtual_networks, false),
    ];
    let mut all = Vec::new();
    for (figure, clients, of, has_trips) in figures {
        for (clients, outcome) in bench.loads(Variant::paper(), clients, of) {
            let (least_share, most_share) = outcome.shares();
            let again = outcome.clients.iter().map(|one| one.statistics.sent_again);
            all.push(Load {
                figure,
                clients,
                requests_per_s: outcome.rate(),
                round_trip_us: has_trips.then(|| outcome.round_trip_us()),
                least_share,
                most_share,
                sent_again: again.sum(),
                faults: outcome.server.faults_by_message,
                unloaded: outcome.server.unloaded,
            });
        }
    }
    all
}

pub(super) fn show(reproduced: &Reproduced) {
    let report = &reproduced.report;
    show_numbers(report);
    show_claims(report);
    show_loads(&reproduced.loads);
    show_summary(report);
}

fn show_loads(loads: &[Load]) {
    let mut shown = narrow(&[
        "figure",
        "clients",
        "per s",
        "trip, µs",
        "least",
        "most",
        "again",
        "unloads",
    ]);
    for load in loads {
        shown.add_row([
            load.figure.to_owned(),
            load.clients.to_string(),
            amount(load.requests_per_s),
            load.round_trip_us.map(amount).unwrap_or_default(),
            format!("{:.2}", load.least_share),
            format!("{:.2}", load.most_share),
            load.sent_again.to_string(),
            load.unloaded.to_string(),
        ]);
    }
    println!(
        "{shown}\nleast, most: parts of an equal share; again: refused and sent again.\nFigure 7: as many requests under way as credits allow; 9: one of each client.\n"
    );
}

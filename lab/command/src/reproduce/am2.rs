//! `hamlyn-lab reproduce am2`: Active Messages on the cluster of the virtual networks.

use anyhow::Result;
use comfy_table::{ContentArrangement, Table};
use hamlyn_sim::reproduce::am2::bench::{CLIENTS, VIRTUAL_NETWORKS, Variant, loads};
use hamlyn_sim::reproduce::am2::{Bench, Extent, load, machine, report};
use hamlyn_sim::reproduce::{Report, Verdict};

use super::words::{amount, judgement, verdict, with_unit};
use hamlyn_cli::terminal::{steps_bar, table};

/// Columns of all that is printed.
const COLUMNS: u16 = 80;

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

/// Measures all of it, on as many threads as there are processors: each setting is a world of its
/// own.
pub(super) fn measure(is_quick: bool) -> Result<Reproduced> {
    let (machine, extent) = (machine(), Extent { is_quick });
    let settings = extent.settings();
    let bar = steps_bar(settings.len() as u64, "worlds", false);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let bench = Bench::measure(&machine, extent, &settings, threads, || bar.inc(1));
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
    let headline = &report.headline;
    println!(
        "Predictions: {} hit, {} missed; half deviate by {:.1} % or less.",
        headline.predicted_hit,
        headline.predicted_missed,
        headline.median_deviation_predicted.unwrap_or_default(),
    );
    println!(
        "Claims: {} supported, {} contradicted.",
        report.count(Verdict::Supported),
        report.count(Verdict::Contradicted),
    );
    println!(
        "Numbers of the machine: {} given by the paper, {} calibrated on {} rows,\n{} assumed. Figures that were given or follow from those: {} and {}.",
        headline.given,
        headline.calibrated,
        headline.independent,
        headline.assumed,
        headline.inputs,
        headline.calibrated_figures,
    );
    for defect in &headline.defects {
        println!("DEFECT: {defect}.");
    }
}

fn narrow(header: &[&str]) -> Table {
    let mut shown = table(header);
    shown
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(COLUMNS);
    shown
}

fn show_numbers(report: &Report) {
    let mut shown = narrow(&["id", "what", "paper", "ours", "off", "verdict"]);
    for entry in &report.entries {
        for figure in &entry.figures {
            shown.add_row([
                entry.id.clone(),
                format!("{}: {}", entry.says, figure.what),
                with_unit(figure.paper, &figure.unit),
                amount(figure.ours),
                format!("{:+.1} %", figure.deviation_percent),
                judgement(figure).to_owned(),
            ]);
        }
    }
    println!("{shown}\n");
}

fn show_claims(report: &Report) {
    let mut shown = narrow(&["id", "the paper", "verdict", "measured, or a remark"]);
    for entry in &report.entries {
        if entry.figures.is_empty() || !entry.remark.is_empty() {
            shown.add_row([
                &entry.id,
                &entry.says,
                verdict(entry.verdict),
                &entry.remark,
            ]);
        }
    }
    println!("{shown}\n");
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

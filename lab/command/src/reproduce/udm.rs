//! `hamlyn-lab reproduce udm`: User Direct Messaging on FUGU.

use std::collections::BTreeMap;

use anyhow::Result;
use hamlyn_sim::reproduce::Report;
use hamlyn_sim::reproduce::udm::bench::Setting;
use hamlyn_sim::reproduce::udm::{Bench, Extent, Machines, report};

use super::narrow::{narrow, show_claims, show_numbers, show_summary};
use super::words::amount;
use hamlyn_cli::terminal::steps_bar;

/// A report, with the runs behind it.
#[derive(serde::Serialize)]
pub(super) struct Reproduced {
    #[serde(flatten)]
    pub(super) report: Report,
    runs: Vec<Run>,
}

/// The outcome of a run, times in cycles.
#[derive(serde::Serialize)]
struct Run {
    setting: String,
    cost: f64,
    messages: u64,
    buffered_percent: f64,
    episodes: u64,
    pages_max: u64,
    handler: f64,
    /// Of programs on CRL, by kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    kinds: BTreeMap<String, u64>,
}

/// Measures all of it.
pub(super) fn measure(is_quick: bool) -> Result<Reproduced> {
    let (machines, extent) = (Machines::paper(), Extent { is_quick });
    let settings = extent.settings();
    let bar = steps_bar(settings.len() as u64, "worlds", false);
    let bench = Bench::measure(&machines, extent, &settings, || bar.inc(1));
    bar.finish_and_clear();
    let bench = bench?;
    Ok(Reproduced {
        report: report(&machines, &bench)?,
        runs: settings
            .iter()
            .filter_map(|setting| run(&bench, *setting))
            .collect(),
    })
}

fn run(bench: &Bench, setting: Setting) -> Option<Run> {
    let outcome = bench.outcome(setting).ok()?;
    Some(Run {
        setting: format!("{setting:?}"),
        cost: outcome.cost,
        messages: outcome.messages,
        buffered_percent: outcome.buffered * 100.0,
        episodes: outcome.episodes,
        pages_max: outcome.pages_max,
        handler: outcome.handler,
        kinds: outcome.messages_by_kind().collect(),
    })
}

pub(super) fn show(reproduced: &Reproduced) {
    let report = &reproduced.report;
    show_numbers(report);
    show_claims(report);
    for plot in &report.plots {
        let labels = plot.curves.iter().map(|curve| curve.label.as_str());
        let header: Vec<&str> = std::iter::once(plot.across).chain(labels).collect();
        let mut shown = narrow(&header);
        let points = plot.curves.first().map_or(&[][..], |curve| &curve.points);
        for (at, (across, _)) in points.iter().enumerate() {
            let of_curves = plot.curves.iter().filter_map(|curve| curve.points.get(at));
            let cells = of_curves.map(|(_, value)| amount(*value));
            shown.add_row(std::iter::once(amount(*across)).chain(cells));
        }
        println!("{} ({})\n{shown}\n", plot.title, plot.unit);
    }
    show_summary(report);
}

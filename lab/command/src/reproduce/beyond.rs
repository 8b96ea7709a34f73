//! `hamlyn-lab reproduce beyond`: the paper's experiments on a host pair of today, and the
//! saturation of networks.

use anyhow::Result;
use hamlyn_sim::reproduce::beyond::pair::Row;
use hamlyn_sim::reproduce::beyond::saturation::{name_of_routing, name_of_traffic, settings};
use hamlyn_sim::reproduce::beyond::{Beyond, Extent, Pair, Setting, pair};
use hamlyn_sim::reproduce::parallel::side_by_side;

use super::words::{amount, set_width};
use hamlyn_cli::terminal::{steps_bar, table};

/// Measures all of it, on as many threads as there are processors: every sweep is a world of its
/// own.
pub(super) fn measure(is_quick: bool) -> Result<Beyond> {
    let extent = if is_quick {
        Extent::Quick
    } else {
        Extent::Full
    };
    let settings = settings(extent);
    let bar = steps_bar(settings.len() as u64 + 1, "machines and networks", false);
    let sweep = |setting: &Setting| {
        let sweep = setting.measure();
        bar.inc(1);
        Ok(sweep?)
    };
    let (measured, sweeps) = std::thread::scope(|scope| {
        let sweeps = scope.spawn(|| side_by_side(&settings, sweep));
        let measured = pair();
        bar.inc(1);
        (measured, sweeps.join())
    });
    bar.finish_and_clear();
    let sweeps = sweeps.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked));
    let (pair, plots) = measured?;
    Ok(Beyond::new(pair, plots, sweeps?))
}

pub(super) fn show(beyond: &Beyond) {
    show_pair(&beyond.pair);
    show_saturation(beyond);
}

fn show_pair(pair: &Pair) {
    let mut assumed = table(&["number of today", "value", "is", "from"]);
    for parameter in &pair.parameters {
        let value = format!("{} {}", amount(parameter.value), parameter.unit);
        assumed.add_row([
            &*parameter.path,
            value.trim_end(),
            parameter.provenance.name(),
            &parameter.source,
        ]);
    }
    set_width(&mut assumed, 3);
    println!("{assumed}\n");
    for machine in &pair.machines {
        println!("{}: {}", machine.name, machine.what);
    }
    println!();
    let names = || pair.machines.iter().map(|machine| machine.name);
    let show = |title: &'static str, rows: &[Row]| {
        let header: Vec<&str> = std::iter::once(title).chain(names()).collect();
        let mut shown = table(&header);
        for row in rows {
            let values = row.values.iter().map(|&value| precise(value));
            let what = format!("{}, {}", row.what, row.unit);
            shown.add_row(std::iter::once(what).chain(values).collect::<Vec<_>>());
        }
        println!("{shown}\n");
    };
    show("Table 4, by the library", &pair.table4);
    show("figure", &pair.figures);
}

fn show_saturation(beyond: &Beyond) {
    let header = [
        "hosts",
        "traffic",
        "routing",
        "offered, %",
        "taken, %",
        "MB/s a host",
        "mean, µs",
        "99 %, µs",
        "late, %",
    ];
    let mut loads = table(&header);
    for sweep in &beyond.saturation {
        let setting = &sweep.setting;
        for (at, point) in sweep.points.iter().enumerate() {
            let name = |name: String| if at == 0 { name } else { String::new() };
            loads.add_row([
                name(setting.hosts.to_string()),
                name(name_of_traffic(setting.traffic).to_owned()),
                name(name_of_routing(setting.routing).to_owned()),
                percent(point.offered_per_mille),
                percent(point.accepted_per_mille),
                amount(point.accepted_mb_per_s),
                amount(point.mean_latency_ns as f64 / 1e3),
                amount(point.p99_latency_ns as f64 / 1e3),
                amount(f64::from(point.reordered_per_million) / 1e4),
            ]);
        }
    }
    println!("{loads}\n");

    let header = [
        "hosts",
        "traffic",
        "in order, by pair, %",
        "in order, by receiver, %",
        "adaptive, %",
        "over pair",
        "over receiver",
        "late, %",
    ];
    let mut gains = table(&header);
    for gain in &beyond.gains {
        gains.add_row([
            gain.hosts.to_string(),
            name_of_traffic(gain.traffic).to_owned(),
            percent(gain.by_pair_per_mille),
            percent(gain.by_receiver_per_mille),
            percent(gain.adaptive_per_mille),
            format!("{:.2}", gain.over_pair),
            format!("{:.2}", gain.over_receiver),
            amount(f64::from(gain.reordered_per_million) / 1e4),
        ]);
    }
    println!("The most that each network took, and what adaptive routing gains:\n{gains}");
}

fn percent(per_mille: u32) -> String {
    amount(f64::from(per_mille) / 10.0)
}

/// With more digits where little is left of what was much.
fn precise(value: f64) -> String {
    if value != 0.0 && value.abs() < 1.0 {
        format!("{value:.3}")
    } else {
        amount(value)
    }
}

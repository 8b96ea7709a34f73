//! The live figures, as tables and as plots.

use hamlyn_sim::reproduce::{Curve, Plot};

use super::figures::{Live, OfProgram, Point};
use crate::reproduce::narrow::narrow;
use crate::reproduce::words::amount;

/// Programs beside each other in a table.
const COLUMNS_MAX: usize = 5;

/// A figure of a point, with its name.
type Figure = (&'static str, fn(&Point) -> f64);

const AFTER_STOP: Figure = ("percent of messages", |point| point.after_stop_percent);
const LOGGED: Figure = ("percent of messages", |point| point.logged_percent);
const RUN_TIME: Figure = ("times", |point| point.run_time_ratio);
const PAGES: Figure = ("pages", |point| point.pages_most as f64);

/// The counterparts of the paper's Figures 7 and 8.
pub(super) fn plots(programs: &[OfProgram]) -> Vec<Plot> {
    let plot = |name: &str, title: &str, (unit, figure): Figure| Plot {
        name: name.to_owned(),
        title: title.to_owned(),
        across: "percent of a quantum",
        unit,
        curves: programs.iter().map(|of| curve(of, figure)).collect(),
        anchors: Vec::new(),
    };
    vec![
        plot(
            "live-figure-7",
            "Live, like Figure 7: messages handled after a stop, by skew",
            AFTER_STOP,
        ),
        plot(
            "live-figure-8",
            "Live, like Figure 8: run time by that in step, by skew",
            RUN_TIME,
        ),
    ]
}

fn curve(of: &OfProgram, figure: fn(&Point) -> f64) -> Curve {
    let points = of.by_skew.iter();
    Curve {
        label: of.program.clone(),
        points: points
            .map(|point| (point.skew_percent, figure(point)))
            .collect(),
    }
}

pub(crate) fn show(live: &Live) {
    println!(
        "Live figures of this host, which are no model's and no predictions.\n{}\n{} processes on \
         {} processors, quanta of {} ms beside null,\na cycle of FUGU as {} ns, medians of {}; \
         load before: {:.1}.\n",
        live.processor,
        live.procs,
        live.processors,
        live.quantum_ms,
        live.cycle_ns,
        match live.trials {
            1 => "one run".to_owned(),
            trials => format!("{trials} runs"),
        },
        live.load_before,
    );
    if live.procs as usize > live.processors {
        println!("There are more processes than processors: they share them also within a turn.\n");
    }
    let programs = &live.programs;
    by_skew("Handled after a stop, like Figure 7", AFTER_STOP, programs);
    by_skew(
        "Run time by that in step, like Figure 8",
        RUN_TIME,
        programs,
    );
    by_skew("Through the overflow log, rings as usual", LOGGED, programs);
    by_skew("Most pages of a log, rings as usual", PAGES, programs);
    println!(
        "With rings of {} cells, where a message for a stopped process finds no place",
        live.cells_few
    );
    let mut few = narrow(&[
        "program",
        "skew, %",
        "after a stop, %",
        "in the log, %",
        "pages",
        "run time",
    ]);
    for of in programs {
        for point in &of.few_cells {
            few.add_row([
                of.program.clone(),
                amount(point.skew_percent),
                amount(point.after_stop_percent),
                amount(point.logged_percent),
                point.pages_most.to_string(),
                format!("{:.3}", point.run_time_ratio),
            ]);
        }
    }
    println!("{few}\n");
    let mut alone = narrow(&["program", "messages", "alone, ms", "in step, by alone"]);
    for of in programs {
        let in_step = of
            .by_skew
            .first()
            .map_or(f64::NAN, |point| point.run_time_ms);
        alone.add_row([
            of.program.clone(),
            of.messages.to_string(),
            format!("{:.0}", of.alone_ms),
            format!("{:.3}", in_step / of.alone_ms),
        ]);
    }
    println!("{alone}");
}

/// A row for each skew, a column for each program; in tables that fit 80 columns.
fn by_skew(title: &str, (unit, figure): Figure, programs: &[OfProgram]) {
    println!("{title} ({unit})");
    for programs in programs.chunks(COLUMNS_MAX) {
        let names = programs.iter().map(|of| of.program.as_str());
        let header: Vec<&str> = std::iter::once("skew, %").chain(names).collect();
        let mut shown = narrow(&header);
        for (at, point) in programs[0].by_skew.iter().enumerate() {
            let cells = programs.iter().filter_map(|of| of.by_skew.get(at));
            let cells = cells.map(|point| match unit {
                "times" => format!("{:.3}", figure(point)),
                _ => amount(figure(point)),
            });
            shown.add_row(std::iter::once(amount(point.skew_percent)).chain(cells));
        }
        println!("{shown}");
    }
    println!();
}

//! Figures 7 to 10.

use super::bench::{BETWEEN, BUFFERED, Bench, GROUPS, Program, SKEWS};
use super::claims::{of_figure_9, of_figure_10};
use crate::reproduce::measure::Failure;
use crate::reproduce::report::{Curve, Plot};

type Number = Result<f64, Failure>;

fn curve(
    label: String,
    across: impl IntoIterator<Item = f64>,
    number: impl Fn(usize) -> Number,
) -> Result<Curve, Failure> {
    let points = across.into_iter().enumerate();
    let points = points.map(|(at, across)| Ok((across, number(at)?)));
    Ok(Curve {
        label,
        points: points.collect::<Result<_, Failure>>()?,
    })
}

fn plot(
    name: &str,
    title: &str,
    (across, unit): (&'static str, &'static str),
    curves: Vec<Result<Curve, Failure>>,
) -> Result<Plot, Failure> {
    Ok(Plot {
        name: name.to_owned(),
        title: title.to_owned(),
        across,
        unit,
        curves: curves.into_iter().collect::<Result<_, _>>()?,
        anchors: Vec::new(),
    })
}

/// All of them; the paper's are lost.
pub(super) fn of(bench: &Bench) -> Result<Vec<Plot>, Failure> {
    let by_skew = |number: fn(&Bench, Program, u32) -> Number| {
        let curves = bench
            .extent
            .named()
            .into_iter()
            .map(move |(name, program)| {
                let skews = SKEWS.map(|skew| f64::from(skew) / 10.0);
                curve(name.to_owned(), skews, |at| {
                    number(bench, program, SKEWS[at])
                })
            });
        curves.collect::<Vec<_>>()
    };
    let by_group = |across: &'static [u64], number: fn(&Bench, u32, u64) -> Number| {
        let curves = GROUPS.into_iter().map(move |group| {
            let points = across.iter().map(|&across| across as f64);
            let percent = |at| Ok(100.0 * number(bench, group, across[at])?);
            curve(format!("synth-{group}"), points, percent)
        });
        curves.collect::<Vec<_>>()
    };
    Ok(vec![
        plot(
            "figure-7",
            "Figure 7: messages that are buffered, by skew",
            ("percent of a slice", "percent"),
            by_skew(|bench, program, skew| Ok(100.0 * bench.buffered(program, skew)?)),
        )?,
        plot(
            "figure-8",
            "Figure 8: runtime by that in step",
            ("percent of a slice", "times"),
            by_skew(Bench::slowdown),
        )?,
        plot(
            "figure-9",
            "Figure 9: messages that are buffered, by the interval between requests",
            ("cycles", "percent"),
            by_group(&BETWEEN, of_figure_9),
        )?,
        plot(
            "figure-10",
            "Figure 10: messages that are buffered, by the cost of the buffered path",
            ("cycles", "percent"),
            by_group(&BUFFERED, of_figure_10),
        )?,
    ])
}

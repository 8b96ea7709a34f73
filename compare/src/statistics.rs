//! Medians, and what the rounds of one figure come to.

use serde::Serialize;

use crate::figure::Figure;

/// The middle of some figures; between two, the mean of them. NaN of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

/// One round of one figure: the peer's and ours, measured one after the other.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Round {
    pub(crate) value: f64,
    /// Ours just before or after.
    pub(crate) ours: f64,
    /// The raw hand-off before, between and after, in nanoseconds; of times only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) raw_ns: Vec<f64>,
    /// Whether the machine kept still.
    pub(crate) steady: bool,
    /// Measurements thrown away before this one because it did not.
    pub(crate) repeats: usize,
}

/// What the rounds come to.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) best: f64,
    /// Median over rounds of the peer's over ours.
    pub(crate) over_ours: f64,
    /// Best over our best in the same rounds.
    pub(crate) best_over_ours: f64,
    /// Median over rounds of the time over the raw hand-off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) over_raw: Option<f64>,
    pub(crate) rounds: usize,
    /// False if no round was steady, so unsteady ones had to do.
    pub(crate) steady: bool,
}

/// Sums up the steady rounds; if there are none, all.
pub(crate) fn summarize(figure: Figure, rounds: &[Round]) -> Option<Summary> {
    let steady: Vec<&Round> = rounds.iter().filter(|round| round.steady).collect();
    let is_steady = !steady.is_empty();
    let used = if is_steady {
        steady
    } else {
        rounds.iter().collect()
    };
    if used.is_empty() {
        return None;
    }
    let of = |value: fn(&Round) -> f64| used.iter().map(|round| value(round)).collect::<Vec<_>>();
    let values = of(|round| round.value);
    let best = figure.best(&values);
    Some(Summary {
        median: median(&values),
        best,
        over_ours: median(&of(|round| round.value / round.ours)),
        best_over_ours: best / figure.best(&of(|round| round.ours)),
        over_raw: used
            .iter()
            .all(|round| !round.raw_ns.is_empty())
            .then(|| median(&of(|round| round.value / median(&round.raw_ns)))),
        rounds: used.len(),
        steady: is_steady,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(value: f64, ours: f64, steady: bool) -> Round {
        Round {
            value,
            ours,
            raw_ns: vec![10.0, 20.0, 30.0],
            steady,
            repeats: 0,
        }
    }

    #[test]
    fn medians() {
        assert!(median(&[]).is_nan());
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn unsteady_rounds_count_only_if_there_are_no_others() {
        let figure = Figure::OneWay { size_bytes: 16 };
        let mixed = [round(40.0, 20.0, true), round(1.0, 20.0, false)];
        let summary = summarize(figure, &mixed).unwrap();
        assert_eq!((summary.median, summary.best), (40.0, 40.0));
        assert_eq!(summary.over_ours, 2.0);
        assert_eq!(summary.over_raw, Some(2.0));
        assert!(summary.steady);
        let summary = summarize(figure, &mixed[1..]).unwrap();
        assert_eq!(summary.median, 1.0);
        assert!(!summary.steady);
        assert!(summarize(figure, &[]).is_none());
    }

    #[test]
    fn the_best_time_is_the_least_and_the_best_rate_the_most() {
        let rounds = [round(1.0, 1.0, true), round(2.0, 4.0, true)];
        let time = summarize(Figure::OneWay { size_bytes: 8 }, &rounds).unwrap();
        assert_eq!((time.best, time.best_over_ours), (1.0, 1.0));
        let rate = summarize(Figure::Rate, &rounds).unwrap();
        assert_eq!((rate.best, rate.best_over_ours), (2.0, 0.5));
    }
}

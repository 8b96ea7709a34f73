//! Medians, and what the rounds of one figure come to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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

/// The lower and the upper quartile, between two figures in proportion. NaN of none.
pub(crate) fn quartiles(values: &[f64]) -> [f64; 2] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    [0.25, 0.75].map(|part| {
        let at = part * sorted.len().saturating_sub(1) as f64;
        match (
            sorted.get(at.floor() as usize),
            sorted.get(at.ceil() as usize),
        ) {
            (Some(below), Some(above)) => below + (above - below) * at.fract(),
            _ => f64::NAN,
        }
    })
}

/// How far the two cores are from each other, by the raw hand-off of a cache line. A hypervisor may
/// move them during a run, and then everything takes other times; so figures of different states
/// are not mixed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// Two threads of one core.
    SameCore,
    /// Two cores that share a cache.
    Near,
    /// Two cores that do not.
    Far,
}

/// A hand-off that takes less is within a core: 18 to 30 ns there, 50 to 65 through a shared cache.
const NEAR_MIN_NS: f64 = 40.0;
/// One that takes more goes between caches: 120 ns and more.
const FAR_MIN_NS: f64 = 95.0;

impl State {
    pub(crate) fn of(raw_ns: f64) -> Self {
        match raw_ns {
            ns if ns < NEAR_MIN_NS => State::SameCore,
            ns if ns < FAR_MIN_NS => State::Near,
            _ => State::Far,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            State::SameCore => "same core",
            State::Near => "near",
            State::Far => "far",
        }
    }
}

/// The state in which most of the steady rounds were.
pub(crate) fn usual_state<'a>(rounds: impl IntoIterator<Item = &'a Round>) -> Option<State> {
    let mut counts = BTreeMap::<State, usize>::new();
    for round in rounds {
        if let (true, Some(state)) = (round.steady, round.state()) {
            *counts.entry(state).or_default() += 1;
        }
    }
    counts
        .into_iter()
        .max_by_key(|&(_, count)| count)
        .map(|(state, _)| state)
}

/// One round of one figure: the peer's and ours, measured one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    pub(crate) value: f64,
    /// Ours just before or after.
    pub(crate) ours: f64,
    /// The raw hand-off before, between and after, in nanoseconds.
    pub(crate) raw_ns: Vec<f64>,
    /// Whether the machine kept still.
    pub(crate) steady: bool,
    /// Measurements thrown away before this one because it did not.
    pub(crate) repeats: usize,
}

impl Round {
    /// Nothing if the raw hand-off was not measured beside it.
    pub(crate) fn state(&self) -> Option<State> {
        (!self.raw_ns.is_empty()).then(|| State::of(median(&self.raw_ns)))
    }
}

/// What the rounds come to.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) quartiles: [f64; 2],
    /// Least and most.
    pub(crate) range: [f64; 2],
    pub(crate) best: f64,
    /// Median over rounds of the peer's over ours.
    pub(crate) over_ours: f64,
    /// Best over our best in the same rounds.
    pub(crate) best_over_ours: f64,
    /// Median over rounds of the time over the raw hand-off; of times only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) over_raw: Option<f64>,
    /// Median over rounds of the raw hand-off beside them, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) raw_ns: Option<f64>,
    /// In which all of these rounds were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<State>,
    /// Of this state; those of another are left out.
    pub(crate) rounds: usize,
    /// False if no round was steady, so unsteady ones had to do.
    pub(crate) steady: bool,
}

/// Sums up the steady rounds; if there are none, all. Of these, it takes the ones in the wanted
/// state, or if there are none, in the one in which most are.
pub(crate) fn summarize(
    figure: Figure,
    rounds: &[Round],
    wanted: Option<State>,
) -> Option<Summary> {
    let is_steady = rounds.iter().any(|round| round.steady);
    let mut used: Vec<&Round> = rounds
        .iter()
        .filter(|round| round.steady == is_steady)
        .collect();
    let is_in = |state: Option<State>| used.iter().any(|round| round.state() == state);
    let state = if wanted.is_some() && is_in(wanted) {
        wanted
    } else if is_steady {
        usual_state(used.iter().copied())
    } else {
        used.first()?.state()
    };
    used.retain(|round| round.state() == state);
    if used.is_empty() {
        return None;
    }
    let of = |value: fn(&Round) -> f64| used.iter().map(|round| value(round)).collect::<Vec<_>>();
    let values = of(|round| round.value);
    let best = figure.best(&values);
    Some(Summary {
        median: median(&values),
        quartiles: quartiles(&values),
        range: [f64::min, f64::max].map(|of| values.iter().copied().reduce(of).unwrap_or(f64::NAN)),
        best,
        over_ours: median(&of(|round| round.value / round.ours)),
        best_over_ours: best / figure.best(&of(|round| round.ours)),
        over_raw: (figure.is_time() && state.is_some())
            .then(|| median(&of(|round| round.value / median(&round.raw_ns)))),
        raw_ns: state.map(|_| median(&of(|round| median(&round.raw_ns)))),
        state,
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

    fn in_state(value: f64, raw_ns: f64) -> Round {
        Round {
            raw_ns: vec![raw_ns; 3],
            ..round(value, 10.0, true)
        }
    }

    const TIME: Figure = Figure::OneWay { size_bytes: 16 };

    #[test]
    fn medians() {
        assert!(median(&[]).is_nan());
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn quartiles_lie_between_figures() {
        assert_eq!(quartiles(&[5.0, 1.0, 2.0, 4.0, 3.0]), [2.0, 4.0]);
        assert_eq!(quartiles(&[1.0, 2.0]), [1.25, 1.75]);
        assert_eq!(quartiles(&[7.0]), [7.0, 7.0]);
        assert!(quartiles(&[])[0].is_nan());
        let rounds = [3.0, 1.0, 2.0].map(|value| round(value, 1.0, true));
        let summary = summarize(TIME, &rounds, None).unwrap();
        assert_eq!((summary.quartiles, summary.range), ([1.5, 2.5], [1.0, 3.0]));
    }

    #[test]
    fn unsteady_rounds_count_only_if_there_are_no_others() {
        let mixed = [round(40.0, 20.0, true), round(1.0, 20.0, false)];
        let summary = summarize(TIME, &mixed, None).unwrap();
        assert_eq!((summary.median, summary.best), (40.0, 40.0));
        assert_eq!(summary.over_ours, 2.0);
        assert_eq!(summary.over_raw, Some(2.0));
        assert!(summary.steady);
        let summary = summarize(TIME, &mixed[1..], None).unwrap();
        assert_eq!(summary.median, 1.0);
        assert!(!summary.steady);
        assert!(summarize(TIME, &[], None).is_none());
    }

    #[test]
    fn states_are_not_mixed() {
        let rounds = [
            in_state(100.0, 57.0),
            in_state(300.0, 250.0),
            in_state(310.0, 251.0),
            in_state(320.0, 252.0),
            in_state(110.0, 58.0),
        ];
        assert_eq!(usual_state(&rounds), Some(State::Far));
        let near = summarize(TIME, &rounds, Some(State::Near)).unwrap();
        assert_eq!((near.median, near.rounds), (105.0, 2));
        assert_eq!((near.state, near.raw_ns), (Some(State::Near), Some(57.5)));
        // Nobody saw that one: so it is the usual one, and says so.
        let other = summarize(TIME, &rounds, Some(State::SameCore)).unwrap();
        assert_eq!((other.median, other.state), (310.0, Some(State::Far)));
    }

    #[test]
    fn rounds_without_a_hand_off_beside_them_have_no_state() {
        let mut bare = round(5.0, 10.0, true);
        bare.raw_ns.clear();
        let summary = summarize(TIME, &[bare], Some(State::Near)).unwrap();
        assert_eq!((summary.median, summary.state), (5.0, None));
        assert_eq!((summary.over_raw, summary.raw_ns), (None, None));
    }

    #[test]
    fn the_best_time_is_the_least_and_the_best_rate_the_most() {
        let rounds = [round(1.0, 1.0, true), round(2.0, 4.0, true)];
        let time = summarize(TIME, &rounds, None).unwrap();
        assert_eq!((time.best, time.best_over_ours), (1.0, 1.0));
        let rate = summarize(Figure::Rate { size_bytes: 16 }, &rounds, None).unwrap();
        assert_eq!((rate.best, rate.best_over_ours), (2.0, 0.5));
    }
}

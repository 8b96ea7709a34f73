//! Figures 6 to 11 as curves.

use super::bench::{Bench, CLIENTS, Dma, LENGTHS, LONG_QUEUE, VIRTUAL_NETWORKS, Variant, loads};
use super::claims::bandwidth;
use super::load::{Load, Outcome};
use crate::reproduce::report::{Anchor, Curve, Plot};

pub(super) fn of(bench: &Bench) -> Vec<Plot> {
    vec![
        lengths(bench),
        clients(
            bench,
            "am2-figure-7",
            "Figure 7: clients of one endpoint",
            loads::rates,
        ),
        bandwidths(bench),
        round_trips(bench),
        virtual_networks(bench),
    ]
}

fn curve(label: &str, all: &[(usize, &Outcome)], of: impl Fn(usize, &Outcome) -> f64) -> Curve {
    let points = all.iter();
    Curve {
        label: label.to_owned(),
        points: points
            .map(|&(clients, outcome)| (clients as f64, of(clients, outcome)))
            .collect(),
    }
}

fn bandwidths(bench: &Bench) -> Plot {
    let all = bench.loads(Variant::bulk(Dma::Streaming), &CLIENTS, loads::bandwidths);
    let mb_per_s = |outcome: &Outcome| outcome.rate() * 1_024.0 / 1e6;
    Plot {
        name: "am2-figure-8".to_owned(),
        title: "Figure 8: 1 KB requests to one endpoint".to_owned(),
        across: "clients",
        unit: "MB/s",
        curves: vec![
            curve("all", &all, |_, outcome| mb_per_s(outcome)),
            curve("each", &all, |clients, outcome| {
                mb_per_s(outcome) / clients as f64
            }),
        ],
        anchors: Vec::new(),
    }
}

fn round_trips(bench: &Bench) -> Plot {
    let of = |label: &str, variant| {
        let all = bench.loads(variant, &CLIENTS, loads::round_trips);
        curve(label, &all, |_, outcome| outcome.round_trip_us())
    };
    Plot {
        name: "am2-figure-9".to_owned(),
        title: "Figure 9: round trips of clients of one endpoint".to_owned(),
        across: "clients",
        unit: "µs",
        curves: vec![
            of("queue of 16", Variant::paper()),
            of("queue of 256", Variant::queue(LONG_QUEUE)),
        ],
        anchors: Vec::new(),
    }
}

fn lengths(bench: &Bench) -> Plot {
    let of = |label: &str, dma| Curve {
        label: label.to_owned(),
        points: LENGTHS
            .iter()
            .filter_map(|&length| Some((length as f64, bandwidth(bench, dma, length).ok()?)))
            .collect(),
    };
    Plot {
        name: "am2-figure-6".to_owned(),
        title: "Figure 6: bandwidth by the length of messages".to_owned(),
        across: "bytes",
        unit: "MB/s",
        curves: vec![
            of("consistent", Dma::Consistent),
            of("streaming", Dma::Streaming),
        ],
        anchors: vec![
            Anchor {
                id: "V-250",
                point: (4_096.0, 31.0),
            },
            Anchor {
                id: "V-251",
                point: (8_192.0, 23.0),
            },
        ],
    }
}

fn rates(all: &[(usize, &Outcome)], label: &str) -> Curve {
    curve(label, all, |_, outcome| outcome.rate())
}

fn clients(bench: &Bench, name: &str, title: &str, load: fn(usize) -> Load) -> Plot {
    let all = bench.loads(Variant::paper(), &CLIENTS, load);
    let one = bench.loads(Variant::paper(), &CLIENTS, loads::round_trips);
    Plot {
        name: name.to_owned(),
        title: title.to_owned(),
        across: "clients",
        unit: "requests a second",
        curves: vec![
            rates(&all, "four under way, all"),
            curve("four under way, each", &all, |clients, outcome| {
                outcome.rate() / clients as f64
            }),
            rates(&one, "one under way, all"),
        ],
        anchors: vec![],
    }
}

fn virtual_networks(bench: &Bench) -> Plot {
    let of = |variant| bench.loads(variant, &VIRTUAL_NETWORKS, loads::virtual_networks);
    let all = of(Variant::paper());
    let mut curves = vec![
        rates(&all, "500 µs to load, all"),
        curve("500 µs to load, each", &all, |clients, outcome| {
            outcome.rate() / clients as f64
        }),
    ];
    for us in [0, 2_000] {
        curves.push(rates(
            &of(Variant::loading(us)),
            &format!("{us} µs to load, all"),
        ));
    }
    curves.push(rates(&of(Variant::visit(8)), "visits of 8, all"));
    Plot {
        name: "am2-figures-10-and-11".to_owned(),
        title: "Figures 10 and 11: an endpoint for each client, 7 frames".to_owned(),
        across: "virtual networks",
        unit: "requests a second",
        curves,
        anchors: vec![Anchor {
            id: "V-284",
            point: (7.0, 62_578.0),
        }],
    }
}

//! The machine of today follows from its parameters, and the sweeps say what the networks do.

use std::sync::LazyLock;

use super::saturation::{
    ROUTINGS, TRAFFIC, arriving_per_mille, name_of_traffic, of_64_hosts, ratio, settings,
};
use super::*;
use crate::machine::Machine;
use crate::network::Routing;
use crate::network::saturation::Traffic;
use crate::reproduce::hamlyn::tests::every_number_has_a_part;

fn measure() -> Beyond {
    let (pair, plots) = pair().unwrap();
    // In another order than asked for, as if by several threads.
    let sweeps = settings(Extent::Quick)
        .iter()
        .rev()
        .map(|setting| setting.measure().unwrap())
        .collect();
    Beyond::new(pair, plots, sweeps)
}

static BEYOND: LazyLock<Beyond> = LazyLock::new(measure);

fn values(what: &str) -> &'static [f64] {
    let pair = &BEYOND.pair;
    let mut rows = pair.figures.iter().chain(&pair.table4);
    &rows.find(|row| row.what == what).expect(what).values
}

fn gain(hosts: u32, traffic: Traffic) -> &'static Gain {
    let wanted = |gain: &&Gain| (gain.hosts, gain.traffic) == (hosts, traffic);
    BEYOND.gains.iter().find(wanted).unwrap()
}

#[test]
fn the_papers_machine_is_the_first_of_the_machines() {
    let paper = crate::reproduce::hamlyn::report(&Machine::hamlyn()).unwrap();
    let total = paper.table4.last().unwrap().ours_us.1;
    assert_eq!(values("Total")[0], total);
    assert_eq!(values("16 bytes, library, one way")[0], total);
    let figure8 = |name: &str, plots: &[Plot]| {
        let plot = plots.iter().find(|plot| plot.name == name).unwrap();
        plot.curves.clone()
    };
    // Of the same lengths, and another machine.
    let (then, now) = (
        figure8("figure-8", &paper.plots),
        figure8("today-figure-8", &BEYOND.plots),
    );
    assert_eq!(then[0].points.len(), now[0].points.len());
    assert!(then[0].points[100].1 > 5.0 * now[0].points[100].1);
}

#[test]
fn parts_of_table_4_add_up() {
    for machine in 0..BEYOND.pair.machines.len() {
        let (total, parts) = BEYOND.pair.table4.split_last().unwrap();
        let sum: f64 = parts.iter().map(|row| row.values[machine]).sum();
        assert!((sum - total.values[machine]).abs() < 1e-5);
    }
    // What the paper's machine has no place for.
    assert_eq!(values("Crossing bus and cable")[0], 0.0);
    assert!(values("Crossing bus and cable")[1] > 0.5);
}

/// What the text says of it: accumulators in host memory cost a round trip of the bus for each
/// packet, which nothing hides.
#[test]
fn accumulators_in_host_memory_bind_the_machine_of_today() {
    let [_, fetched, kept] = *values("4 KB packets, by the slope") else {
        panic!("three machines");
    };
    let wire = 4096.0 / values("a 4 KB packet: link")[2];
    assert!((kept - wire).abs() < 0.01 * wire, "{kept} of {wire}");
    assert!(fetched < 0.5 * kept, "{fetched} of {kept}");
    // A single packet needs none.
    let [_, fetched, kept] = *values("normal message without data") else {
        panic!("three machines");
    };
    assert_eq!(fetched, kept);
}

#[test]
fn every_number_of_today_has_a_part_in_the_figures() {
    every_number_has_a_part(&Machine::pair_of_today());
}

#[test]
fn quick_sweeps_are_of_every_traffic_and_routing() {
    let all = &BEYOND.saturation;
    assert_eq!(all.len(), 2 * TRAFFIC.len() * ROUTINGS.len());
    assert_eq!(BEYOND.gains.len(), 2 * TRAFFIC.len());
    for sweep in all {
        let setting = sweep.setting;
        for point in &sweep.points {
            assert!(point.frames > 0, "{setting:?}");
            // Nothing is taken that nobody offers, but for chance and what the warm-up left over.
            assert!(point.accepted_per_mille <= point.offered_per_mille * 6 / 5 + 10);
            let in_order = point.reordered_per_million == 0;
            assert!(!setting.routing.keeps_order() || in_order, "{setting:?}");
        }
        // A tenth more: chance in a short time.
        let most = sweep.most_per_mille();
        assert!(
            most <= sweep.ceiling_per_mille * 11 / 10,
            "{setting:?}: {most}"
        );
    }
    let plots = BEYOND.plots.len();
    assert_eq!(plots, 2 * 4 + 2 * 2 * TRAFFIC.len());
}

/// What the text says of adaptive routing.
#[test]
fn adaptive_routing_gains_by_what_it_is_compared_with() {
    let reversal = gain(64, Traffic::BitReversal);
    assert!(reversal.over_receiver > 1.8, "{reversal:?}");
    assert!(reversal.over_pair > 1.2, "{reversal:?}");
    let random = gain(64, Traffic::Uniform);
    assert!(random.over_pair > 1.05, "{random:?}");
    assert!(random.over_pair < 1.6, "{random:?}");
    assert!(random.over_receiver < 1.1, "{random:?}");
    // The cable of the hot spot is the limit, with either routing.
    let hot = gain(64, Traffic::HotSpot { per_mille: 50 });
    assert!((0.8..1.2).contains(&hot.over_pair), "{hot:?}");
    assert!(gain(64, Traffic::Permutation).reordered_per_million > 10_000);
    assert_eq!(ratio(300, 200), 1.5);
}

#[test]
fn cut_cables_are_gone_around_where_there_is_a_choice() {
    let [fixed, receiver, adaptive] = ROUTINGS.map(|routing| arriving_per_mille(routing).unwrap());
    assert!(adaptive < 1_000, "there is no other way down");
    assert!(
        adaptive > fixed && adaptive > receiver,
        "{adaptive} of {fixed}"
    );
    assert_eq!(arriving_per_mille(Routing::Pair).unwrap(), fixed);
}

#[test]
fn the_same_twice() {
    assert_eq!(measure(), *BEYOND);
    assert!(serde_json::to_string(&*BEYOND).is_ok());
}

/// `docs/reproduce-hamlyn.md` lists what came out: it is that of the code. Sweeps of 1,024 hosts
/// are too long for this.
#[test]
fn the_document_says_what_is() {
    let document = include_str!("../../../../../docs/reproduce-hamlyn.md");
    let says = |line: &str| assert!(document.contains(line), "missing: {line}");
    let shown = |value: f64| match value {
        small if small != 0.0 && small < 1.0 => format!("{small:.3}"),
        other => {
            let text = format!("{other:.2}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    };
    for row in &BEYOND.pair.figures {
        let values = row.values.iter().copied().map(shown);
        let values: Vec<_> = values
            .map(|value| format!("{value} {}", row.unit))
            .collect();
        says(&format!("| {} | {} |\n", row.what, values.join(" | ")));
    }
    for traffic in TRAFFIC {
        let gain = of_64_hosts(traffic).unwrap();
        let percent = |per_mille: u32| f64::from(per_mille) / 10.0;
        says(&format!(
            "| 64 | {} | {:.1} % | {:.1} % | {:.1} % | {:.2} | {:.2} |",
            name_of_traffic(traffic),
            percent(gain.by_pair_per_mille),
            percent(gain.by_receiver_per_mille),
            percent(gain.adaptive_per_mille),
            gain.over_pair,
            gain.over_receiver,
        ));
    }
}

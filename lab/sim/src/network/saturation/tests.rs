use proptest::prelude::*;

use super::super::topology::Switching;
use super::*;

fn experiment(hosts: u32, routing: Routing, traffic: Traffic) -> Experiment {
    Experiment {
        topology: paper_fabric(hosts).unwrap(),
        routing,
        traffic,
        frame_bytes: 256,
        warm_up: Span::from_us(100),
        measured: Span::from_us(200),
        seed: 4,
    }
}

const ALL: [Traffic; 5] = [
    Traffic::Uniform,
    Traffic::HotSpot { per_mille: 50 },
    Traffic::AllToAll,
    Traffic::Permutation,
    Traffic::BitReversal,
];

#[test]
fn a_light_load_is_taken_whole_and_at_once() {
    for hosts in [8, 64, 1024] {
        for traffic in ALL {
            // 5 % of 1,024 hosts are 50 times what the hot one can take; so little is always taken.
            let load = if hosts == 1024 { 5 } else { 100 };
            let mut experiment = experiment(hosts, Routing::Adaptive, traffic);
            experiment.measured = Span::from_us(600);
            let point = experiment.run(load).unwrap();
            let taken = f64::from(point.accepted_per_mille) / f64::from(load);
            assert!(
                (0.75..1.25).contains(&taken),
                "{hosts} {traffic:?}: {point:?}"
            );
            // 256 bytes at 12.5 ns and at most nine switches; and not much waiting.
            assert!(
                (3_700..16_000).contains(&point.mean_latency_ns),
                "{hosts} {traffic:?}: {point:?}"
            );
            assert!(point.p99_latency_ns >= point.mean_latency_ns);
        }
    }
}

#[test]
fn too_much_load_fills_queues_and_not_the_fabric() {
    for traffic in ALL {
        let points = experiment(64, Routing::Pair, traffic)
            .sweep(&[100, 1_000, 3_000])
            .unwrap();
        let [light, full, over] = &points[..] else {
            panic!("three loads, three points")
        };
        assert!(light.accepted_per_mille < full.accepted_per_mille);
        assert!(full.accepted_per_mille < 700 && full.mean_latency_ns > 4 * light.mean_latency_ns);
        // What is taken does not collapse, nor grow: only the queues do.
        let ratio = f64::from(over.accepted_per_mille) / f64::from(full.accepted_per_mille);
        assert!(
            (0.7..1.3).contains(&ratio),
            "{traffic:?}: {full:?} {over:?}"
        );
        assert!(points.iter().all(|point| point.reordered_per_million == 0));
        let rate = f64::from(full.accepted_per_mille) * 0.08;
        assert!((full.accepted_mb_per_s - rate).abs() < 0.1, "of 80 MB/s");
    }
}

#[test]
fn adaptive_routing_takes_more_than_ways_fixed_at_random() {
    // H-019 and H-382 say about twice. How much it is depends on the traffic.
    for hosts in [64, 1024] {
        for (traffic, least) in [
            (Traffic::Uniform, 1.1),
            (Traffic::AllToAll, 1.1),
            (Traffic::Permutation, 1.2),
            (Traffic::BitReversal, 1.2),
        ] {
            let taken = |routing| {
                let point = experiment(hosts, routing, traffic).run(1_000).unwrap();
                f64::from(point.accepted_per_mille)
            };
            let gain = taken(Routing::Adaptive) / taken(Routing::Pair);
            assert!(gain > least, "{hosts} {traffic:?}: {gain}");
        }
    }
    // Ways by the digits of a number are as good, until the traffic has the same pattern.
    let taken = |routing| {
        experiment(1024, routing, Traffic::BitReversal)
            .run(1_000)
            .unwrap()
    };
    let [adaptive, digits] = [Routing::Adaptive, Routing::Destination].map(taken);
    assert!(adaptive.accepted_per_mille > 4 * digits.accepted_per_mille);
    assert!(adaptive.reordered_per_million > 10_000 && digits.reordered_per_million == 0);
}

#[test]
fn a_hot_host_takes_no_more_than_its_cable() {
    let traffic = Traffic::HotSpot { per_mille: 1_000 };
    let point = experiment(64, Routing::Adaptive, traffic)
        .run(1_000)
        .unwrap();
    // All but host 0 send to it alone, and it sends to anyone: two cables' worth of 64.
    assert!((10..33).contains(&point.accepted_per_mille), "{point:?}");
}

#[test]
fn storing_and_forwarding_takes_longer() {
    let mut experiment = experiment(64, Routing::Adaptive, Traffic::Uniform);
    let through = experiment.run(100).unwrap();
    experiment.topology = experiment
        .topology
        .buffers(1_024)
        .switching(Switching::StoreAndForward);
    let stored = experiment.run(100).unwrap();
    assert!(stored.mean_latency_ns > through.mean_latency_ns + 2 * 3_200);
}

#[test]
fn a_seed_decides_all_numbers() {
    for routing in [Routing::Spray, Routing::Adaptive] {
        let mut experiment = experiment(64, routing, Traffic::Uniform);
        let one = experiment.run(500).unwrap();
        assert_eq!(one, experiment.run(500).unwrap());
        experiment.seed += 1;
        assert_ne!(one, experiment.run(500).unwrap());
    }
}

#[test]
fn errors_say_what_is_missing() {
    let mut nothing = experiment(64, Routing::Pair, Traffic::Uniform);
    assert_eq!(nothing.run(0), Err(ExperimentError::Nothing));
    nothing.measured = Span::ZERO;
    assert_eq!(nothing.run(1), Err(ExperimentError::Nothing));
    let mut alone = experiment(64, Routing::Pair, Traffic::Uniform);
    alone.topology = Topology::single_switch(1);
    assert_eq!(alone.run(1), Err(ExperimentError::TooFewHosts));
    let mut apart = experiment(64, Routing::Pair, Traffic::Uniform);
    apart.topology = Topology::line(2);
    apart.topology.cables.pop();
    let refused = apart.run(100).unwrap_err().to_string();
    assert!(
        refused.ends_with(": no way between these hosts"),
        "{refused}"
    );
    apart.topology.hosts.clear();
    assert_eq!(apart.run(1), Err(TopologyError::NoHosts.into()));
    assert!(paper_fabric(9).is_err() && paper_fabric(16_384).is_err());
}

#[test]
fn spans_between_frames_are_exponential() {
    let mut random = Random::new(1);
    let spans: Vec<u64> = (0..200_000)
        .map(|_| exponential(&mut random, 1_000_000).as_ps())
        .collect();
    let mean = spans.iter().sum::<u64>() / spans.len() as u64;
    assert!((990_000..1_010_000).contains(&mean), "{mean}");
    // So much of all is above x: e^-x.
    for (above, left) in [(100_000, 0.9048), (1_000_000, 0.3679), (3_000_000, 0.0498)] {
        let count = spans.iter().filter(|&&span| span > above).count();
        let share = count as f64 / spans.len() as f64;
        assert!((share - left).abs() < 0.005, "{share} above {above}");
    }
}

proptest! {
    #[test]
    fn partners_are_others_and_each_is_one(hosts in 2..200u32, seed in any::<u64>()) {
        let partners = partners(hosts, &mut Random::new(seed));
        prop_assert!((0..hosts).zip(&partners).all(|(host, &partner)| host != partner));
        let mut sorted = partners;
        sorted.sort_unstable();
        prop_assert_eq!(sorted, (0..hosts).collect::<Vec<_>>());
    }

    #[test]
    fn bits_are_reversed_there_and_back(hosts in 2..5_000u32) {
        let to = reversals(hosts);
        prop_assert!((0..hosts).all(|host| to[to[host as usize] as usize] == host));
        prop_assert_eq!(&reversals(8), &[0, 4, 2, 6, 1, 5, 3, 7]);
    }
}

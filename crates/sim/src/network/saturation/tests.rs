use super::*;

fn experiment(hosts: u32, routing: Routing, traffic: Traffic) -> Experiment {
    Experiment {
        topology: paper_fabric(hosts).unwrap(),
        routing,
        traffic,
        frame_bytes: 256,
        warm_up: Span::from_us(100),
        measured: Span::from_us(300),
        seed: 4,
    }
}

#[test]
#[ignore]
fn show() {
    for hosts in [8, 64, 1024] {
        for traffic in [
            Traffic::Uniform,
            Traffic::HotSpot { per_mille: 50 },
            Traffic::AllToAll,
            Traffic::Permutation,
        ] {
            for routing in Routing::ALL {
                if routing == Routing::Flow {
                    continue;
                }
                let t = std::time::Instant::now();
                let points = experiment(hosts, routing, traffic)
                    .sweep(&[200, 400, 600, 1000])
                    .unwrap();
                let s = t.elapsed().as_secs_f64();
                let ev: u64 = points.iter().map(|p| p.events).sum();
                println!(
                    "{hosts} {traffic:?} {routing:?} {s:.2}s {:.2} Mev/s",
                    ev as f64 / s / 1e6
                );
                for p in points {
                    println!(
                        "    {:4} -> {:4} mean {:6} p99 {:7} reord {}",
                        p.offered_per_mille,
                        p.accepted_per_mille,
                        p.mean_latency_ns,
                        p.p99_latency_ns,
                        p.reordered_per_million
                    )
                }
            }
        }
    }
}

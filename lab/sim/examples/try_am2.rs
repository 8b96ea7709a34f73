fn main() {
    use hamlyn_sim::reproduce::am2::{cluster::Cluster, load::Load, log_p, bench::*};
    use hamlyn_sim::time::Span;
    let cluster = Cluster::paper();
    println!("{:?}", log_p::log_p(&cluster).unwrap());
    for v in [PROTECTION, RELIABILITY, BOTH] {
        let b = |n| Setting{variant: Variant::without(v), subject: Subject::Load(loads::round_trips(n))}.measure(&cluster.machine).unwrap();
        if let (Measured::Load(a), Measured::Load(b)) = (b(8), b(16)) { println!("{v:?} slope {}", (b.round_trip_us() - a.round_trip_us()) / 8.0); }
    }
    for n in [1,2,3,4,5,6,7,8,9,10,14,21,42,84] {
        for us in [0.0, 100.0, 500.0, 2000.0] {
        if n < 8 && us > 0.0 { continue }
        let machine = cluster.machine.with("at.processor.port_resumed.0", |_| us).unwrap();
        let t = std::time::Instant::now();
        let o = Load{ under_way: u32::MAX, has_own_endpoints: true, measured: Span::from_us(200_000), ..Load::one_at_a_time(n)}.measure(&Cluster{machine, ..cluster.clone()}).unwrap();
        let again: u64 = o.clients.iter().map(|c| c.statistics.sent_again).sum();
        println!("own {n} {us}: rate {} shares {:?} again {again} faults {} unl {} {:?}", o.rate(), o.shares(), o.server.faults_by_message, o.server.unloaded, t.elapsed());
        }
    }
}

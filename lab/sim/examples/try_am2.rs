fn main() {
    use hamlyn_sim::reproduce::am2::{cluster::Cluster, load::Load, log_p, exchange::*, bench::*};
    let mut cluster = Cluster::paper();
    for k in [1, 2, 3, 4, 5, 6, 8, 16] {
        let mut cluster = Cluster::paper();
        cluster.options.credits = k;
        println!("{k} {:?}", log_p::log_p(&cluster).unwrap().gap);
    }
    for v in [&[], PROTECTION, RELIABILITY, BOTH] {
        let m = |s| Setting{variant: Variant::without(v), subject: s}.measure(&cluster.machine).unwrap();
        let b = |n| m(Subject::Load(loads::round_trips(n)));
        println!("{:?}", m(Subject::LogP));
        if let (Measured::Load(a), Measured::Load(b)) = (b(8), b(16)) { println!("{v:?} slope {}", (b.round_trip_us() - a.round_trip_us()) / 8.0); }
    }
    for n in [1, 4, 16, 32, 48, 64, 92] {
        for u in [1, 4] {
        let o = Load{ under_way: u, ..Load::one_at_a_time(n)}.measure(&cluster).unwrap();
        println!("{n} {u}: rate {} rtt {} shares {:?}", o.rate(), o.round_trip_us(), o.shares());
    }}
    cluster.options.medium_bytes_max = 8192;
    cluster.options.queue_bytes = 16 * 8256;
    for dma in ["streaming", "consistent"] {
        for bytes in [512, 1024, 4096, 8192] {
            let machine = cluster.machine.besides(dma);
            let o = Load{ under_way: u32::MAX, data_bytes: bytes, ..Load::one_at_a_time(1)}.measure(&Cluster{machine, ..cluster.clone()}).unwrap();
            println!("{dma} {bytes}: {} MB/s", o.rate() * bytes as f64 / 1e6);
        }
    }
    for p in [Permutation::Neighbor, Permutation::Bisection] {
        for data_bytes in [0, 4096, 8192] {
            let machine = cluster.machine.besides("streaming");
            println!("{p:?} {data_bytes} {:?}", Exchange{nodes: 92, permutation: p, data_bytes}.measure(&Cluster{machine, ..cluster.clone()}));
        }
    }
}

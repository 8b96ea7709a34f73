fn main() {
    use hamlyn_sim::reproduce::am2::*;
    let machine = machine();
    let extent = Extent {
        is_quick: std::env::args().len() > 1,
    };
    let n = std::sync::atomic::AtomicUsize::new(0);
    let bench = Bench::measure(&machine, extent, &extent.settings(), 2, || {
        n.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    })
    .unwrap();
    let r = report(&machine, &bench).unwrap();
    for e in &r.entries {
        println!("{} {:?} {}", e.id, e.verdict, e.remark);
        for f in &e.figures {
            println!(
                "     {} paper {} ours {} {}% {:?}",
                f.what, f.paper, f.ours, f.deviation_percent, f.verdict
            );
        }
    }
    println!("{:?}", r.headline);
}

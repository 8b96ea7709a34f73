use hamlyn_engine::mutation::{self, Mutation};
fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    for &bug in Mutation::ALL.iter().filter(|b| std::env::args().len() < 2 || std::env::args().any(|a| a == b.name())) {
        mutation::switch(Some(bug));
        let begun = std::time::Instant::now();
        let mut found = None;
        for seed in 0..400 {
            
            let plan = hamlyn_sim::scenario::Plan::of_seed(seed);
            let v = hamlyn_sim::scenario::run(&plan, false);
            if !v.violations.is_empty() { found = Some((seed, v.violations[0].clone())); break; }
            if begun.elapsed().as_secs() >= 10 { break; }
        }
        mutation::switch(None);
        println!("{:26} {:?} {:.1?}", bug.name(), found, begun.elapsed());
    }
}

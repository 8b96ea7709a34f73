use hamlyn_engine::mutation::{self, Mutation};
fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    for &bug in Mutation::ALL {
        mutation::switch(Some(bug));
        let begun = std::time::Instant::now();
        let mut found = None;
        for seed in 0..300 {
            let plan = hamlyn_sim::scenario::Plan::of_seed(seed);
            let verdict = std::panic::catch_unwind(|| hamlyn_sim::scenario::run(&plan, false));
            match verdict {
                Ok(v) if v.violations.is_empty() => {}
                Ok(v) => { found = Some((seed, v.violations[0].clone())); break; }
                Err(_) => { found = Some((seed, "panic".into())); break; }
            }
            if begun.elapsed().as_secs() > 6 { break; }
        }
        mutation::switch(None);
        println!("{:26} {:?} {:.1?}", bug.name(), found, begun.elapsed());
    }
}

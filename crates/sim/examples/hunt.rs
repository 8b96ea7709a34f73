fn main() {
    let from: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let to: u64 = std::env::args().nth(2).unwrap().parse().unwrap();
    let (mut events, mut messages) = (0, 0);
    let begun = std::time::Instant::now();
    for seed in from..to {
        let plan = hamlyn_sim::scenario::Plan::of_seed(seed);
        let verdict = hamlyn_sim::scenario::run(&plan, false);
        events += verdict.events;
        messages += verdict.messages;
        if !verdict.violations.is_empty() {
            println!("seed {seed}: {:?}", verdict.violations);
        }
    }
    println!(
        "{events} events {messages} messages in {:?}",
        begun.elapsed()
    );
}

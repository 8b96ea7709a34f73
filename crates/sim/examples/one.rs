fn main() {
    let seed: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let plan = hamlyn_sim::scenario::Plan::of_seed(seed);
    let small = if std::env::args().nth(2).is_some() {
        hamlyn_sim::scenario::shrink(&plan, |_| ())
    } else {
        plan
    };
    let v = hamlyn_sim::scenario::run(&small, false);
    let mut text = format!("{small:#?}");
    for (a, b) in [
        ("\n                    ", " "),
        ("\n                ", " "),
        ("\n            ", " "),
    ] {
        text = text.replace(a, b);
    }
    println!("{text}\n{:?} {} events {}", v.violations, v.events, v.at);
}

//! `hamlyn-lab simulate`: random programs in random worlds with random faults, checked by a
//! reference model.
//!
//! A seed decides a scenario. One in which something is wrong is made as small as it goes, and
//! shown with what happened last; its plan can be saved and run again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hamlyn_sim::scenario::{self, Outcome, Plan};
use indicatif::ProgressBar;
use serde_json::json;

use hamlyn_cli::terminal;

/// Lines of a history that are shown, from its end.
const LINES_SHOWN: usize = 60;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The seed of the first scenario; the others have the following ones.
    #[arg(long, default_value_t = 0, value_name = "S")]
    seed: u64,
    /// How many.
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    scenarios: u64,
    /// Scenarios of so many hosts each, with a program each, that are not made smaller if they
    /// fail.
    #[arg(long, value_name = "N", conflicts_with = "plan", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    hosts: Option<u32>,
    /// Go on until one fails or somebody stops it, however many that are.
    #[arg(long, conflicts_with = "scenarios")]
    soak: bool,
    /// Run the scenario of this file instead, as another run has printed it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "scenarios", "soak"])]
    plan: Option<PathBuf>,
    /// Print the plan of the first scenario, and run nothing.
    #[arg(long, conflicts_with_all = ["scenarios", "soak", "plan", "trace"])]
    print: bool,
    /// Show all that happens, if there is one scenario.
    #[arg(long)]
    trace: bool,
    /// Show a scenario that fails as it is.
    #[arg(long)]
    no_shrink: bool,
    /// How many of the scenarios that fail are made smaller and shown; of the others, what is wrong
    /// is said as soon as it is found.
    #[arg(long, value_name = "N", default_value_t = 3)]
    explained: usize,
    /// Scenarios at the same time; as many as there are processors, unless told otherwise.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// A scenario that takes longer than that has something that never ends: it is named, and the
    /// run ends.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    stuck_after: u64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn plan_of(&self, seed: u64) -> Plan {
        match self.hosts {
            Some(hosts) => Plan::of_hosts(seed, hosts),
            None => Plan::of_seed(seed),
        }
    }

    /// How a scenario is seen again.
    fn command(&self, seed: u64) -> String {
        let hosts = self.hosts.map(|hosts| format!(" --hosts {hosts}"));
        let hosts = hosts.unwrap_or_default();
        format!("hamlyn-lab simulate --seed {seed} --scenarios 1{hosts}")
    }
}

/// What each thread runs, and since when.
struct Running(Mutex<Vec<Option<(u64, Instant)>>>);

impl Running {
    fn set(&self, thread: usize, scenario: Option<(u64, Instant)>) {
        let mut all = self.0.lock().unwrap_or_else(|error| error.into_inner());
        all[thread] = scenario;
    }

    /// The seed of a scenario that runs for longer than that.
    fn longer_than(&self, limit: Duration, now: Instant) -> Option<u64> {
        let all = self.0.lock().unwrap_or_else(|error| error.into_inner());
        let late = |(_, begun): &&(u64, Instant)| now.saturating_duration_since(*begun) > limit;
        all.iter().flatten().find(late).map(|(seed, _)| *seed)
    }
}

/// What all scenarios came to.
#[derive(Default)]
struct Sums {
    scenarios: AtomicU64,
    events: AtomicU64,
    messages: AtomicU64,
}

impl Sums {
    fn count(&self, outcome: &Outcome) {
        self.scenarios.fetch_add(1, Ordering::Relaxed);
        self.events.fetch_add(outcome.events, Ordering::Relaxed);
        self.messages.fetch_add(outcome.messages, Ordering::Relaxed);
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (plans, first) = match &arguments.plan {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("reading {}", path.display()))?;
            let plan: Plan =
                toml::from_str(&text).with_context(|| format!("{} is no plan", path.display()))?;
            (Some(plan), 0)
        }
        None => (None, arguments.seed),
    };
    if arguments.print {
        print!(
            "{}",
            toml::to_string(&arguments.plan_of(first)).context("writing the plan")?
        );
        return Ok(ExitCode::SUCCESS);
    }
    let count = match (&plans, arguments.soak) {
        (Some(_), _) => 1,
        (None, true) => u64::MAX - first,
        (None, false) => arguments.scenarios,
    };
    // A panic's place stands in the failure; by the thousand they would flood the terminal.
    hamlyn_sim::world::remember_panic_places(true);
    let sums = Sums::default();
    let begun = Instant::now();
    let failed = match plans {
        Some(plan) => {
            let outcome = scenario::run(&plan, false);
            sums.count(&outcome);
            match outcome.violations.is_empty() {
                true => BTreeMap::new(),
                false => BTreeMap::from([(plan.seed, (plan, outcome.violations))]),
            }
        }
        None => hunt(arguments, first, count, &sums),
    };
    let took_s = begun.elapsed().as_secs_f64();
    if arguments.trace && count == 1 {
        let plan = match failed.first_key_value() {
            Some((_, (plan, _))) => plan.clone(),
            None => arguments.plan_of(first),
        };
        print!("{}", scenario::run(&plan, true).trace);
    }
    let failures = failed
        .into_iter()
        .enumerate()
        .map(
            |(number, (seed, (plan, violations)))| match number < arguments.explained {
                true => explain(arguments, seed, plan),
                false => Ok(Failure::named(arguments, seed, violations)),
            },
        )
        .collect::<Result<Vec<_>>>()?;
    let get = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
    let events = get(&sums.events);
    if arguments.json {
        let object = json!({
            "seed": first,
            "scenarios": get(&sums.scenarios),
            "events": events,
            "messages": get(&sums.messages),
            "seconds": took_s,
            "events_per_s": events as f64 / took_s,
            "messages_per_s": get(&sums.messages) as f64 / took_s,
            "failures": failures.iter().map(Failure::json).collect::<Vec<_>>(),
        });
        println!("{}", serde_json::to_string_pretty(&object)?);
    } else {
        failures.iter().for_each(Failure::show);
        println!(
            "{} scenarios, {} messages, {:.1} million events in {took_s:.1} s: {:.2} million events and {:.0} messages a second; {}",
            get(&sums.scenarios),
            get(&sums.messages),
            events as f64 / 1e6,
            events as f64 / took_s / 1e6,
            get(&sums.messages) as f64 / took_s,
            match failures.len() {
                0 => "nothing is wrong".to_owned(),
                failed => format!("{failed} failed"),
            }
        );
    }
    Ok(if failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Runs the scenarios of all these seeds, several at a time; those that fail. A soak ends with the
/// first of them.
fn hunt(
    arguments: &Arguments,
    first: u64,
    count: u64,
    sums: &Sums,
) -> BTreeMap<u64, (Plan, Vec<String>)> {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.threads.unwrap_or(available).max(1);
    let bar = if arguments.soak {
        terminal::spinner(arguments.json)
    } else {
        terminal::steps_bar(count, "simulating", arguments.json)
    };
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let failed = Mutex::new(BTreeMap::new());
    let running = &Running(Mutex::new(vec![None; threads]));
    let is_done = &(Mutex::new(0), Condvar::new());
    std::thread::scope(|scope| {
        scope.spawn(|| watch(arguments, running, is_done, threads));
        for thread in 0..threads {
            let (next, stop, failed, bar) = (&next, &stop, &failed, &bar);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    let seed = first + number;
                    let plan = arguments.plan_of(seed);
                    running.set(thread, Some((seed, Instant::now())));
                    let outcome = scenario::run(&plan, false);
                    running.set(thread, None);
                    sums.count(&outcome);
                    tell(bar, sums, seed);
                    if let Some(violation) = outcome.violations.first() {
                        bar.suspend(|| eprintln!("seed {seed} fails: {violation}"));
                        let mut failed = failed.lock().unwrap_or_else(|error| error.into_inner());
                        failed.insert(seed, (plan, outcome.violations));
                        stop.fetch_or(arguments.soak, Ordering::Relaxed);
                    }
                }
                *is_done.0.lock().unwrap_or_else(|error| error.into_inner()) += 1;
                is_done.1.notify_all();
            });
        }
    });
    bar.finish_and_clear();
    failed
        .into_inner()
        .unwrap_or_else(|error| error.into_inner())
}

/// Until all threads are done: ends the run if a scenario never does. What computes without a call
/// of its world cannot be interrupted from within.
fn watch(
    arguments: &Arguments,
    running: &Running,
    is_done: &(Mutex<usize>, Condvar),
    threads: usize,
) {
    let limit = Duration::from_secs(arguments.stuck_after);
    let mut done = is_done.0.lock().unwrap_or_else(|error| error.into_inner());
    while *done < threads {
        let waited = is_done.1.wait_timeout(done, Duration::from_secs(1));
        done = waited.unwrap_or_else(|error| error.into_inner()).0;
        if let Some(seed) = running.longer_than(limit, Instant::now()) {
            eprintln!(
                "seed {seed} has not ended after {} s: a program computes without end. To see it again: {}",
                limit.as_secs(),
                arguments.command(seed)
            );
            std::process::exit(1);
        }
    }
}

fn tell(bar: &ProgressBar, sums: &Sums, seed: u64) {
    bar.inc(1);
    let events = sums.events.load(Ordering::Relaxed) as f64 / 1e6;
    bar.set_message(format!("seed {seed}, {events:.0} million events"));
}

/// A scenario that failed.
struct Failure {
    seed: u64,
    command: String,
    violations: Vec<String>,
    /// Unless it is one of many: its plan and the end of its history.
    shown: Option<(String, String)>,
}

fn explain(arguments: &Arguments, seed: u64, plan: Plan) -> Result<Failure> {
    let plan = if arguments.no_shrink || arguments.hosts.is_some() {
        plan
    } else {
        let bar = terminal::spinner(arguments.json);
        let smallest = scenario::shrink(&plan, |smaller| {
            bar.inc(1);
            bar.set_message(format!(
                "making seed {seed} smaller: {} flows, {} processes",
                smaller.flows.len(),
                smaller.processes.len()
            ));
        });
        bar.finish_and_clear();
        smallest
    };
    let outcome = scenario::run(&plan, true);
    let lines: Vec<_> = outcome.trace.lines().collect();
    let shown = lines.len().saturating_sub(LINES_SHOWN);
    Ok(Failure {
        seed,
        command: arguments.command(seed),
        violations: outcome.violations,
        shown: Some((
            toml::to_string(&plan).context("writing the plan")?,
            lines[shown..].join("\n"),
        )),
    })
}

impl Failure {
    fn named(arguments: &Arguments, seed: u64, violations: Vec<String>) -> Self {
        Self {
            seed,
            command: arguments.command(seed),
            violations,
            shown: None,
        }
    }

    fn json(&self) -> serde_json::Value {
        let shown = self.shown.as_ref();
        json!({
            "seed": self.seed,
            "violations": self.violations,
            "plan": shown.map(|(plan, _)| plan),
            "history": shown.map(|(_, history)| history),
        })
    }

    fn show(&self) {
        println!("seed {} fails ({}):", self.seed, self.command);
        for violation in &self.violations {
            println!("  {violation}");
        }
        let Some((plan, history)) = &self.shown else {
            return;
        };
        println!("\nin this plan (save it, and run it with --plan):\n\n{plan}");
        println!("with this at the end of its history:\n\n{history}\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_that_takes_too_long_is_named() {
        let running = Running(Mutex::new(vec![None; 3]));
        let (begun, limit) = (Instant::now(), Duration::from_secs(10));
        running.set(0, Some((7, begun)));
        running.set(2, Some((9, begun + Duration::from_secs(5))));
        let after = |seconds| running.longer_than(limit, begun + Duration::from_secs(seconds));
        assert_eq!(after(9), None);
        assert_eq!(after(11), Some(7));
        running.set(0, None);
        assert_eq!(after(11), None);
        assert_eq!(after(16), Some(9));
    }
}

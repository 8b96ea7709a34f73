//! `hamlyn demo`: one receiver and several senders, all processes of their own, show what the
//! interface does and what it refuses; then three hosts, where this user may make them.

mod file;
pub(crate) mod host;
mod hosts;
pub(crate) mod sender;
mod steps;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use hamlyn::host::process::{Access, Options, ProcessHost};
use hamlyn::{Manager, ManagerOptions};

use hamlyn_cli::actor::Actor;

use crate::Role;
use sender::Order;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Print one JSON object instead of the table.
    #[arg(long)]
    json: bool,
    /// Size of the file that is carried, in MiB.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    megabytes: u64,
}

/// Senders that take part.
const SENDERS: usize = 5;
/// A user that has no rights anywhere: `nobody`.
const OTHER_USER: u32 = 65_534;

/// What one step showed.
struct Shown {
    what: &'static str,
    outcome: Outcome,
    time: Duration,
}

/// What became of a step.
enum Outcome {
    Held(String),
    Failed(anyhow::Error),
    /// It cannot be shown here, for that reason.
    Skipped(String),
}

impl From<Result<String>> for Outcome {
    fn from(result: Result<String>) -> Self {
        match result {
            Ok(text) => Self::Held(text),
            Err(error) => Self::Failed(error),
        }
    }
}

impl Outcome {
    fn mark(&self) -> &'static str {
        match self {
            Self::Held(_) => "ok",
            Self::Failed(_) => "FAIL",
            Self::Skipped(_) => "skip",
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Held(text) => text.clone(),
            Self::Failed(error) => format!("{error:#}"),
            Self::Skipped(why) => format!("SKIPPED: {why}"),
        }
    }
}

/// What the steps work with.
struct Stage {
    manager: Manager<ProcessHost>,
    senders: Vec<Actor>,
    /// Whom the senders run as.
    sender_user: u32,
    megabytes: u64,
    quiet: bool,
}

/// A step and what it is called.
type Step = (&'static str, fn(&mut Stage) -> Result<String>);

const STEPS: [Step; 7] = [
    ("short messages", steps::short_messages),
    ("a stream that carries a file", steps::stream),
    ("a group of four, one of which delegates", steps::group),
    ("a forged key", steps::forged_key),
    ("a bound overrun", steps::bound_overrun),
    ("a replay against a one-shot entry", steps::replay),
    ("a peer killed in mid-message", steps::killed_peer),
];

/// A step of the part with several hosts.
type HostsStep = (&'static str, fn(&mut hosts::Hosts) -> Result<String>);

const HOSTS: &str = "three hosts";
const HOSTS_STEPS: [HostsStep; 5] = [
    ("three hosts write to each other", hosts::messages),
    ("a ping between two hosts", hosts::ping),
    ("a host without the secret", hosts::stranger),
    ("a host that is cut off", hosts::cut),
    ("the same host, back again", hosts::mend),
];

/// The steps so far, told as they are shown.
struct Telling {
    shown: Vec<Shown>,
    quiet: bool,
}

impl Telling {
    fn show(&mut self, what: &'static str, step: impl FnOnce() -> Outcome) {
        let start = Instant::now();
        let outcome = step();
        if !self.quiet {
            println!("  {:4}  {what}", outcome.mark());
        }
        self.shown.push(Shown {
            what,
            outcome,
            time: start.elapsed(),
        });
    }
}

/// The part with several hosts.
fn show_hosts(telling: &mut Telling) {
    let mut hosts = match hosts::set_up() {
        Ok(Ok(hosts)) => hosts,
        Ok(Err(why)) => return telling.show(HOSTS, || Outcome::Skipped(why)),
        Err(error) => return telling.show(HOSTS, || Outcome::Failed(error)),
    };
    for (what, step) in HOSTS_STEPS {
        telling.show(what, || step(&mut hosts).into());
    }
    if let Err(error) = hosts::finish(hosts) {
        telling.show(HOSTS, || Outcome::Failed(error));
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut stage = set_up(arguments)?;
    if !arguments.json {
        println!(
            "receiver: process {}, user {}; {SENDERS} senders: processes of their own, user {}",
            std::process::id(),
            rustix::process::geteuid().as_raw(),
            stage.sender_user,
        );
    }
    let mut telling = Telling {
        shown: Vec::new(),
        quiet: arguments.json,
    };
    for (what, step) in STEPS {
        telling.show(what, || step(&mut stage).into());
    }
    show_hosts(&mut telling);
    let shown = telling.shown;
    let held = !shown
        .iter()
        .any(|shown| matches!(shown.outcome, Outcome::Failed(_)));
    print(&shown, held, arguments.json)?;
    Ok(if held {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn set_up(arguments: &Arguments) -> Result<Stage> {
    let mut options = Options::default().in_namespace("demo");
    let mut senders = start_senders(Some(OTHER_USER)).or_else(|error| {
        if !arguments.json {
            println!("senders run as this user, since others cannot be used here ({error:#})");
        }
        start_senders(None)
    })?;
    let mut sender_user = 0;
    for sender in &mut senders {
        sender.order(&Order::Introduce)?;
        sender_user = sender.answer()?;
    }
    // Exactly the users that are expected, by the kernel's word.
    options.access = Access::Listed {
        users: vec![sender_user, rustix::process::geteuid().as_raw()],
        groups: Vec::new(),
    };
    let manager = hamlyn::open_with(options, ManagerOptions::default())?;
    Ok(Stage {
        manager,
        senders,
        sender_user,
        megabytes: arguments.megabytes,
        quiet: arguments.json,
    })
}

/// Starts all senders, as another user if that is allowed.
fn start_senders(user: Option<u32>) -> Result<Vec<Actor>> {
    if user.is_some() && !rustix::process::geteuid().is_root() {
        anyhow::bail!("only root may start processes of other users");
    }
    (0..SENDERS)
        .map(|_| Actor::start(Role::Demo, user))
        .collect()
}

fn print(shown: &[Shown], held: bool, json: bool) -> Result<()> {
    if json {
        let steps: Vec<_> = shown
            .iter()
            .map(|shown| {
                serde_json::json!({
                    "step": shown.what,
                    "ok": matches!(shown.outcome, Outcome::Held(_)),
                    "skipped": matches!(shown.outcome, Outcome::Skipped(_)),
                    "outcome": shown.outcome.text(),
                    "seconds": shown.time.as_secs_f64(),
                })
            })
            .collect();
        println!(
            "{}",
            serde_json::to_string_pretty(&serde_json::json!({"ok": held, "steps": steps}))?
        );
        return Ok(());
    }
    let mut table = hamlyn_cli::terminal::table(&["", "shown", "outcome", "time"]);
    for shown in shown {
        table.add_row([
            shown.outcome.mark(),
            shown.what,
            &shown.outcome.text(),
            &format!("{:.2} s", shown.time.as_secs_f64()),
        ]);
    }
    println!("{table}");
    println!(
        "{}",
        if held {
            "all of it held"
        } else {
            "NOT all of it held"
        }
    );
    Ok(())
}

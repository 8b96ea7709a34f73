//! Three hosts, in network namespaces of this machine, joined by a switch: the same library, over a
//! real wire.
//!
//! Only root may make them; anybody else is told that this part is left out.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use hamlyn::host::network::ClusterSecret;
use hamlyn_testbed::{TestHost, Testbed};

use super::file::{Kept, keep};
use super::host::{DESK, Loss, Order, Route};
use hamlyn_cli::actor::{Actor, this_program};

use crate::Role;

const NAMES: [&str; 3] = ["red", "green", "blue"];
const RED: usize = 0;
const GREEN: usize = 1;
const BLUE: usize = 2;
/// What Ethernet carries.
const MTU_BYTES: u32 = 1_500;
/// Messages from each host to each other.
const MESSAGES: u64 = 20_000;
const PINGS: &str = "1000";

/// The hosts, and on each a program.
pub(super) struct Hosts {
    actors: Vec<Actor>,
    files: Files,
    testbed: Testbed,
}

/// What all hosts have.
struct Files {
    secret: Kept,
    hosts: Kept,
}

/// Makes the hosts. Nothing, with the reason, if that may not be.
pub(super) fn set_up() -> Result<Result<Hosts, String>> {
    let testbed = match Testbed::with_names(&NAMES, MTU_BYTES) {
        Ok(testbed) => testbed,
        Err(error) if error.is_want_of_rights() => return Ok(Err(error.to_string())),
        Err(error) => return Err(error.into()),
    };
    let mut hosts = String::new();
    for host in testbed.hosts() {
        hosts.push_str(&format!("{} {}\n", host.name(), host.address()));
    }
    let secret = ClusterSecret::generate().context("making a secret")?;
    let files = Files {
        secret: keep("secret", secret.to_text().as_bytes())?,
        hosts: keep("hosts", hosts.as_bytes())?,
    };
    let mut actors = Vec::new();
    for host in testbed.hosts() {
        actors.push(Actor::start_by(files.on(host)?, Role::Host)?);
    }
    for actor in &mut actors {
        let () = actor.answer()?;
    }
    Ok(Ok(Hosts {
        actors,
        files,
        testbed,
    }))
}

impl Files {
    /// What runs this program on that host: its environment says that there is a network.
    fn on(&self, host: &TestHost) -> Result<Command> {
        let mut command = host.command(this_program()?);
        for variable in ["HAMLYN_KEY", "HAMLYN_KNOWN", "HAMLYN_INSECURE"] {
            command.env_remove(variable);
        }
        command
            .env("HAMLYN_HOST", host.name())
            .env("HAMLYN_HOSTS", self.hosts.path())
            .env("HAMLYN_SECRET", self.secret.path())
            .env("HAMLYN_LISTEN", host.address().to_string());
        Ok(command)
    }
}

fn desk(host: usize) -> String {
    format!("{}/{DESK}", NAMES[host])
}

impl Hosts {
    /// Each writes to each other, and takes what the others write.
    fn exchange(&mut self, hosts: &[usize], messages: u64) -> Result<Vec<Route>> {
        for &from in hosts {
            let others = hosts.iter().filter(|&&to| to != from);
            self.actors[from].order(&Order::Exchange {
                to: others.map(|&to| desk(to)).collect(),
                from: from as u64 + 1,
                messages,
            })?;
        }
        let mut routes = Vec::new();
        for &from in hosts {
            routes.push(self.actors[from].answer::<Route>()?);
        }
        Ok(routes)
    }
}

pub(super) fn messages(hosts: &mut Hosts) -> Result<String> {
    let routes = hosts.exchange(&[RED, GREEN, BLUE], MESSAGES)?;
    ensure!(
        routes.iter().all(|way| way.is_encrypted),
        "not all was encrypted"
    );
    let first = &routes[RED];
    Ok(format!(
        "{} messages between {}, {} and {}: each once, encrypted ({} to {}, ...)",
        MESSAGES * 6,
        desk(RED),
        desk(GREEN),
        desk(BLUE),
        first.local,
        first.peer,
    ))
}

/// Ends the process that answers.
struct Answering(std::process::Child);

impl Drop for Answering {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) fn ping(hosts: &mut Hosts) -> Result<String> {
    let [red, _, blue] = hosts.testbed.hosts() else {
        unreachable!("three hosts")
    };
    let mut answering = hosts.files.on(blue)?;
    answering.args(["ping", "--listen", "echo", "--quiet"]);
    let answering = answering.stdin(Stdio::null()).spawn();
    let _answering = Answering(answering.context("starting hamlyn ping")?);
    let mut asking = hosts.files.on(red)?;
    asking.args([
        "ping",
        "blue/echo",
        "--count",
        PINGS,
        "--interval",
        "0",
        "--json",
    ]);
    let output = asking
        .stdin(Stdio::null())
        .output()
        .context("hamlyn ping")?;
    ensure!(
        output.status.success(),
        "hamlyn ping failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let micros = |figure: &str| -> Result<f64> {
        let ns = shown["round_trip"][figure].as_u64();
        Ok(ns.with_context(|| format!("no {figure}"))? as f64 / 1e3)
    };
    ensure!(shown["path"]["encrypted"] == true, "it was not encrypted");
    ensure!(shown["lost"] == 0, "{} messages were lost", shown["lost"]);
    Ok(format!(
        "red asks blue/echo: {} of {} answered; round trip {:.0} µs at best, median {:.0}, p99 {:.0}",
        shown["answered"],
        shown["sent"],
        micros("min_ns")?,
        micros("p50_ns")?,
        micros("p99_ns")?,
    ))
}

pub(super) fn stranger(hosts: &mut Hosts) -> Result<String> {
    const SECONDS: u64 = 1;
    let other = ClusterSecret::generate().context("making a secret")?;
    let other = keep("other-secret", other.to_text().as_bytes())?;
    let mut command = hosts.files.on(&hosts.testbed.hosts()[BLUE])?;
    command.env("HAMLYN_SECRET", other.path());
    // So that it does not take the name of another process.
    command.env("HAMLYN_NAMESPACE", "stranger");
    let mut stranger = Actor::start_by(command, Role::Host)?;
    let () = stranger.answer()?;
    stranger.order(&Order::Seek {
        whom: desk(RED),
        seconds: SECONDS,
    })?;
    let error: Option<String> = stranger.answer()?;
    let error = error.context("a program with another secret was answered")?;
    stranger.finish()?;
    let reason = error.trim_start_matches(&format!("{:?} ", desk(RED)));
    Ok(format!(
        "blue, with another secret, seeks red/desk for {SECONDS} s: {reason}"
    ))
}

pub(super) fn cut(hosts: &mut Hosts) -> Result<String> {
    hosts.testbed.cut(GREEN)?;
    for (host, other) in [(RED, GREEN), (GREEN, RED)] {
        hosts.actors[host].order(&Order::Persist { to: desk(other) })?;
    }
    let loss: Loss = hosts.actors[RED].answer()?;
    let other: Loss = hosts.actors[GREEN].answer()?;
    for error in [&loss.error, &other.error] {
        ensure!(error.contains("answers"), "another cause: {error}");
    }
    ensure!(loss.returned > 0, "nothing came back to its sender");
    // The others do not care.
    hosts.exchange(&[RED, BLUE], MESSAGES / 10)?;
    let cause = loss.error.rsplit(": ").next().unwrap_or_default();
    Ok(format!(
        "its cable is pulled: {:.1} s later red hears that {cause}, and has its messages back; red and blue go on",
        loss.seconds
    ))
}

pub(super) fn mend(hosts: &mut Hosts) -> Result<String> {
    hosts.testbed.mend(GREEN)?;
    hosts.exchange(&[RED, GREEN], MESSAGES / 10)?;
    Ok("its cable is plugged in: red and green write to each other again".to_owned())
}

/// Ends the programs.
pub(super) fn finish(hosts: Hosts) -> Result<()> {
    for actor in hosts.actors {
        actor.finish()?;
    }
    Ok(())
}

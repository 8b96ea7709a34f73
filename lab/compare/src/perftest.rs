//! UCX measured by its own program, `ucx_perftest`: a server and a client for each figure.

use std::io::Read;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::figure::Figure;
use crate::interruption;
use crate::network::hosts::Hosts;
use crate::pin::{Cores, Place};
use crate::session::{Outcome, end};

const RUN_MAX: Duration = Duration::from_secs(45);
/// Polled messages from this length on may go by one copy of the kernel, from memory to memory;
/// shorter ones it would hold up, and those of a peer that sleeps.
const CMA_MIN_BYTES: usize = 64 << 10;
/// Columns of its output in comma-separated form.
const TIME_COLUMN: &str = "overall_lat";
const RATE_COLUMN: &str = "overall_mr";

/// Runs one test with so many messages.
pub(crate) fn run(
    test_of_time: &str,
    test_of_bandwidth: &str,
    waits: &str,
    figure: Figure,
    count: u64,
    cores: Cores,
    hosts: Option<&Hosts>,
) -> Result<Outcome> {
    let (test, column) = match figure {
        Figure::OneWay { .. } => (test_of_time, TIME_COLUMN),
        Figure::Bandwidth { fresh: true, .. } => {
            return Ok(Outcome::Unsupported(
                "ucx_perftest uses its buffers again".to_owned(),
            ));
        }
        Figure::Senders { .. } => {
            return Ok(Outcome::Unsupported(
                "ucx_perftest has one sender".to_owned(),
            ));
        }
        Figure::Loaned { .. } => {
            return Ok(Outcome::Unsupported("ucx_perftest has no loans".to_owned()));
        }
        Figure::Active(_) => {
            return Ok(Outcome::Unsupported(
                "ucx_perftest has no arguments and no handlers of ours".to_owned(),
            ));
        }
        Figure::Rate { .. } | Figure::Bandwidth { .. } => (test_of_bandwidth, RATE_COLUMN),
    };
    let port = free_port()?;
    let warm_up = figure.warm_up_count(count).min(1000);
    let transports = match hosts {
        Some(_) => "tcp,self",
        None if waits == "poll" && figure.size_bytes() >= CMA_MIN_BYTES => "posix,cma,self",
        None => "posix,self",
    };
    let arguments = ["-p", &port, "-E", waits];
    let server = start(Place::Receiver, cores, transports, &arguments, hosts)?;
    let table = format!("/proc/{}/net", server.id());
    let mut server = Running(vec![server]);
    let to = match hosts {
        Some(hosts) => hosts.address(0).to_string(),
        None => "127.0.0.1".to_owned(),
    };
    let client = start_client(
        cores,
        transports,
        &[
            &to,
            "-p",
            &port,
            "-t",
            test,
            "-s",
            &figure.size_bytes().to_string(),
            "-n",
            &count.to_string(),
            "-w",
            &warm_up.to_string(),
            "-E",
            waits,
            "-f",
            "-v",
        ],
        &port,
        &table,
        hosts,
    )?;
    server.0.push(client);
    let text = server.finish()?;
    let value = column_of(&text, column)?;
    let elapsed_ns = match figure {
        // Microseconds one way.
        Figure::OneWay { .. } => value * 1e3 * 2.0 * count as f64,
        _ => count as f64 / value * 1e9,
    };
    Ok(Outcome::Took(elapsed_ns))
}

/// A server and, once it listens, a client; ended when dropped.
struct Running(Vec<Child>);

impl Running {
    /// What the client says when both are done.
    fn finish(mut self) -> Result<String> {
        let deadline = Instant::now() + RUN_MAX;
        loop {
            interruption::check()?;
            let mut done = true;
            for child in &mut self.0 {
                match child.try_wait()? {
                    Some(status) if !status.success() => {
                        bail!("ucx_perftest ended: {status}: {}", said(child))
                    }
                    Some(_) => {}
                    None => done = false,
                }
            }
            if done {
                break;
            }
            ensure!(
                Instant::now() < deadline,
                "ucx_perftest did not end in time"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        let client = self.0.last_mut().context("no client")?;
        let mut text = String::new();
        if let Some(out) = &mut client.stdout {
            out.read_to_string(&mut text)?;
        }
        Ok(text)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Already gone is as good.
            let _ = child.kill();
        }
        end(&mut self.0, Duration::from_secs(1));
    }
}

fn said(child: &mut Child) -> String {
    let mut text = String::new();
    if let Some(errors) = &mut child.stderr {
        // What cannot be read is not said.
        let _ = errors.read_to_string(&mut text);
    }
    text.lines()
        .last()
        .unwrap_or_default()
        .chars()
        .take(300)
        .collect()
}

fn start(
    place: Place,
    cores: Cores,
    transports: &str,
    arguments: &[&str],
    hosts: Option<&Hosts>,
) -> Result<Child> {
    const PROGRAM: &str = "ucx_perftest";
    let mut command = match (hosts, place) {
        (None, _) => Command::new(PROGRAM),
        (Some(hosts), Place::Sender) => hosts.command(1, PROGRAM.as_ref()),
        (Some(hosts), _) => hosts.command(0, PROGRAM.as_ref()),
    };
    command
        .args(arguments)
        .env("UCX_TLS", transports)
        .envs(hosts.map(|_| ("UCX_NET_DEVICES", "eth0")))
        .env("UCX_LOG_LEVEL", "error")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    cores
        .confined(place, || command.spawn())?
        .context("starting ucx_perftest")
}

/// Starts the client when the server listens.
fn start_client(
    cores: Cores,
    transports: &str,
    arguments: &[&str],
    port: &str,
    table: &str,
    hosts: Option<&Hosts>,
) -> Result<Child> {
    let port: u16 = port.parse()?;
    let wanted = format!(":{port:04X}");
    let deadline = Instant::now() + Duration::from_secs(10);
    while !listens(&wanted, table)? {
        ensure!(
            Instant::now() < deadline,
            "the server of ucx_perftest does not listen"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    start(Place::Sender, cores, transports, arguments, hosts)
}

/// Whether a socket listens at an address that ends so; asked of the kernel, since a trial
/// connection would be taken for the client.
fn listens(wanted: &str, table: &str) -> Result<bool> {
    const LISTEN: &str = "0A";
    let tables = ["tcp", "tcp6"].map(|name| std::fs::read_to_string(format!("{table}/{name}")));
    let text: String = tables.into_iter().flatten().collect();
    ensure!(!text.is_empty(), "{table}/tcp cannot be read");
    Ok(text.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next().is_some_and(|local| local.ends_with(wanted)) && words.nth(1) == Some(LISTEN)
    }))
}

/// A port that was free a moment ago.
fn free_port() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("looking for a free port")?;
    Ok(listener.local_addr()?.port().to_string())
}

/// A column of the last line of comma-separated text.
fn column_of(text: &str, column: &str) -> Result<f64> {
    let names = text
        .lines()
        .find(|line| line.starts_with("iterations,"))
        .context("ucx_perftest printed no header")?;
    let index = names
        .split(',')
        .position(|name| name == column)
        .with_context(|| format!("ucx_perftest prints no {column}"))?;
    text.lines()
        .map(str::trim_start)
        .rfind(|line| line.starts_with(|first: char| first.is_ascii_digit()))
        .and_then(|line| line.split(',').nth(index))
        .and_then(|word| word.trim().parse().ok())
        .context("ucx_perftest printed no figure")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n\
        200000,0.185,0.718,0.719,21.24,21.24,1391899,1391898\n";

    #[test]
    fn finds_columns() {
        assert_eq!(column_of(OUTPUT, TIME_COLUMN).unwrap(), 0.719);
        assert_eq!(column_of(OUTPUT, RATE_COLUMN).unwrap(), 1391898.0);
        // Short counts are padded.
        let padded = OUTPUT.replace("200000,", "   200,");
        assert_eq!(column_of(&padded, TIME_COLUMN).unwrap(), 0.719);
    }

    #[test]
    fn says_what_is_missing() {
        assert!(column_of(OUTPUT, "no_such").is_err());
        assert!(column_of("", TIME_COLUMN).is_err());
        let header = OUTPUT.lines().next().unwrap();
        assert!(column_of(header, TIME_COLUMN).is_err());
    }
}

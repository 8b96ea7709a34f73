//! Over long paths: a stream of ours beside TCP, at one base round trip after the other.
//!
//! The hosts are network namespaces; a relay between them delays what both send, so ours and TCP go
//! through the same thing in the same minute. Ours is `hamlyn pipe`, in the clear; its rate is that
//! of the bytes that come out of the other process. Ratios are of one round, and medians of the
//! rounds are reported.

use std::fs::File;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hamlyn_testbed::{LongPath, TestHost, Testbed};
use serde_json::{Value, json};

use super::{Depth, Effort, median, report};
use hamlyn_cli::terminal;

/// Base round trips, in microseconds.
const BASES_US: [u64; 10] = [
    20, 100, 300, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000,
];
/// Of the kernel's ways to control congestion these are measured, if it has them; the first is what
/// ours is compared with.
const KERNELS: [&str; 2] = ["cubic", "bbr"];
/// Ours is to come to this part of it.
const GOAL: f64 = 0.3;
const NAME: &str = "bench-wan";
/// How long a sender may take until its first byte comes.
const PATIENCE: Duration = Duration::from_secs(20);

/// One base.
struct Row {
    base_us: u64,
    /// Bytes a second: ours, and TCP's by kernel; one of each a round.
    ours: Vec<f64>,
    tcp: Vec<Vec<f64>>,
}

/// All of it.
pub(super) struct Figures {
    kernels: Vec<&'static str>,
    rows: Vec<Row>,
}

/// Measures all bases.
pub(super) fn measure(effort: Effort, is_quiet: bool) -> Result<Figures> {
    let testbed = Testbed::new(2).context("long paths need network namespaces")?;
    let (rounds, span) = match effort.depth {
        Depth::Full => (3, Duration::from_secs(6)),
        Depth::Quick => (1, Duration::from_secs(3)),
        Depth::Trial => (1, Duration::from_millis(300)),
    };
    let kernels = kernels();
    let steps = BASES_US.len() * rounds * (1 + kernels.len());
    let bar = terminal::steps_bar(steps as u64, "measuring", is_quiet);
    let mut rows = Vec::new();
    for base_us in BASES_US {
        let path = LongPath {
            base: Duration::from_micros(base_us),
            ..LongPath::default()
        };
        let _relay = testbed.long_path(path).context("making a long path")?;
        let mut row = Row {
            base_us,
            ours: Vec::new(),
            tcp: vec![Vec::new(); kernels.len()],
        };
        for _ in 0..rounds {
            for (kernel, rates) in kernels.iter().zip(&mut row.tcp) {
                rates.push(tcp(&testbed, kernel, span)?);
                bar.inc(1);
            }
            row.ours.push(ours(&testbed, span)?);
            bar.inc(1);
        }
        rows.push(row);
    }
    bar.finish_and_clear();
    Ok(Figures { kernels, rows })
}

/// Those that the kernel has.
fn kernels() -> Vec<&'static str> {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let has = std::fs::read_to_string(path).unwrap_or_default();
    let has: Vec<&str> = has.split_whitespace().collect();
    let known = KERNELS.into_iter();
    known.filter(|kernel| has.contains(kernel)).collect()
}

/// Bytes a second that come, from the first one on, for so long.
fn rate(mut from: impl std::io::Read, span: Duration) -> Result<f64> {
    let mut buffer = vec![0; 1 << 18];
    let mut read = || -> Result<usize> {
        let bytes = from.read(&mut buffer).context("reading what came")?;
        ensure!(bytes > 0, "the sender has gone");
        Ok(bytes)
    };
    let mut bytes = read()? as f64;
    let began = Instant::now();
    while began.elapsed() < span {
        bytes += read()? as f64;
    }
    Ok(bytes / began.elapsed().as_secs_f64())
}

fn tcp(testbed: &Testbed, kernel: &str, span: Duration) -> Result<f64> {
    let [sends, receives] = [&testbed.hosts()[0], &testbed.hosts()[1]];
    let listener = receives.within(|| TcpListener::bind((receives.far_address(), 0)))??;
    let to = listener.local_addr()?;
    let mut stream = sends.within(|| connect(to, kernel))??;
    let (came, _) = listener.accept()?;
    came.set_read_timeout(Some(PATIENCE))?;
    std::thread::scope(|scope| {
        let sending = scope.spawn(move || {
            let buffer = vec![0; 1 << 18];
            // Until the receiver closes.
            while stream.write_all(&buffer).is_ok() {}
        });
        let rate = rate(&came, span);
        let _ = came.shutdown(std::net::Shutdown::Both);
        drop(came);
        let _ = sending.join();
        rate
    })
}

fn connect(to: SocketAddr, kernel: &str) -> Result<TcpStream> {
    let stream = TcpStream::connect(to).context("connecting by TCP")?;
    socket2::SockRef::from(&stream)
        .set_tcp_congestion(kernel.as_bytes())
        .with_context(|| format!("choosing {kernel}"))?;
    Ok(stream)
}

/// A process that goes with this.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn pipe(host: &TestHost, arguments: &[&str], stdin: Stdio, stdout: Stdio) -> Result<Process> {
    let program = std::env::current_exe().context("finding this program")?;
    let program = program.with_file_name("hamlyn");
    ensure!(
        program.is_file(),
        "there is no {}, which carries the stream: build it (make build)",
        program.display()
    );
    let child = host
        .command(program)
        .arg("pipe")
        .args(arguments)
        .args(["--quiet", "--insecure", "--host-name", host.name()])
        .stdin(stdin)
        .stdout(stdout)
        .stderr(Stdio::null())
        .spawn();
    Ok(Process(child.context("starting `hamlyn pipe`")?))
}

fn ours(testbed: &Testbed, span: Duration) -> Result<f64> {
    let [sends, receives] = [&testbed.hosts()[0], &testbed.hosts()[1]];
    let mut receiver = pipe(receives, &["--listen", NAME], Stdio::null(), Stdio::piped())?;
    let host = format!("{}={}", receives.name(), receives.far_address());
    let name = format!("{}/{NAME}", receives.name());
    let zeros = File::open("/dev/zero").context("opening /dev/zero")?;
    let _sender = pipe(
        sends,
        &[&name, "--host", &host],
        zeros.into(),
        Stdio::null(),
    )?;
    let came = receiver.0.stdout.take().context("no pipe to read from")?;
    rate(came, span)
}

/// Of one round each, in the middle.
fn ratio(ours: &[f64], other: &[f64]) -> f64 {
    median(
        ours.iter()
            .zip(other)
            .map(|(ours, other)| ours / other)
            .collect(),
    )
}

impl Figures {
    /// For people, or for programs.
    pub(super) fn print(&self, as_json: bool) -> Result<()> {
        match as_json {
            true => println!("{}", serde_json::to_string_pretty(&self.json())?),
            false => println!("{}", self.table()),
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let spread = |rates: &[f64]| {
                json!({
                    "median": median(rates.to_vec()),
                    "least": rates.iter().copied().fold(f64::INFINITY, f64::min),
                    "most": rates.iter().copied().fold(0.0, f64::max),
                })
            };
            let tcp = self.kernels.iter().zip(&row.tcp).map(|(kernel, rates)| {
                let one = json!({
                    "bytes_per_s": spread(rates),
                    "ours_over_it": ratio(&row.ours, rates),
                });
                ((*kernel).to_owned(), one)
            });
            json!({
                "base_us": row.base_us,
                "ours_bytes_per_s": spread(&row.ours),
                "tcp": Value::Object(tcp.collect()),
            })
        });
        json!({
            "processor": report::processor(),
            "load": report::load(),
            "goal_over_cubic": GOAL,
            "bases": rows.collect::<Vec<_>>(),
        })
    }

    fn table(&self) -> String {
        let mut header = vec!["base".to_owned(), "ours, Mbit/s".to_owned()];
        for kernel in &self.kernels {
            header.push(format!("TCP {kernel}"));
            header.push(format!("ours/{kernel}"));
        }
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        let mut table = terminal::table(&header);
        for row in &self.rows {
            let shown = |rates: &[f64]| format!("{:.1}", median(rates.to_vec()) * 8e-6);
            let mut cells = vec![format!("{} ms", row.base_us as f64 / 1e3), shown(&row.ours)];
            for rates in &row.tcp {
                cells.push(shown(rates));
                cells.push(format!("{:.2}", ratio(&row.ours, rates)));
            }
            table.add_row(cells);
        }
        let processor = report::processor();
        format!("{table}\n{processor}; through a relay in user space; medians of the rounds")
    }
}

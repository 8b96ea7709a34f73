//! Acquisitions and releases of locks, by clients in processes of their own, beside one server:
//! Hamlyn's lock manager, or Redis over a UNIX socket.
//!
//! ```text
//! compare-locks run hamlyn|redis CLIENTS one|own MILLISECONDS      # acquisitions a second, of all
//! ```
//!
//! `one` lock is contended; with its `own` each client has another one.

mod redis;

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use hamlyn::Wait;
use hamlyn::host::process::Options;
use hamlyn_am::{Node, NodeOptions, Tag};
use hamlyn_locks::{LockClient, LockServer, Mode, ServerOptions};

use redis::Redis;

/// Longer than anything takes.
const LONG: Wait = Wait::millis(20_000);
/// Locks that a client takes before it is measured.
const WARM: u32 = 200;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["run", system, clients, which, milliseconds] => {
            let rate = run(system, clients.parse()?, which, milliseconds)?;
            println!("{rate:.0}");
            Ok(())
        }
        ["serve", name] => serve(name),
        ["client", "hamlyn", server, lock, milliseconds] => {
            let node = Node::open(Options::default(), NodeOptions::default())?;
            let client = LockClient::open(&node, &[server], Tag::Any)?;
            measure(milliseconds, || {
                let held = client.acquire(lock, Mode::Ex, LONG)?;
                Ok(held.release()?)
            })
        }
        ["client", "redis", socket, lock, milliseconds] => {
            let mut redis = Redis::connect(socket)?;
            let mut count = 0_u64;
            measure(milliseconds, || {
                count += 1;
                let token = format!("{}-{count}", std::process::id());
                // A client that does not get it tries again at once: nothing is faster.
                while !redis.try_lock(lock, &token)? {}
                ensure!(redis.unlock(lock, &token)?, "the lock was not kept");
                Ok(())
            })
        }
        _ => bail!("usage: compare-locks run hamlyn|redis CLIENTS one|own MILLISECONDS"),
    }
}

/// A process that ends with this one.
struct Program(Child);

impl Program {
    fn start(command: &mut Command) -> Result<Self> {
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        Ok(Self(
            started.with_context(|| format!("starting {command:?}"))?,
        ))
    }

    fn own(arguments: &[&str]) -> Result<Self> {
        Self::start(Command::new(std::env::current_exe()?).args(arguments))
    }

    /// The next line that it prints.
    fn line(&mut self) -> Result<String> {
        let output = self.0.stdout.as_mut().context("its output")?;
        let mut line = String::new();
        BufReader::with_capacity(1, output).read_line(&mut line)?;
        ensure!(!line.is_empty(), "it ended before it said anything");
        Ok(line.trim().to_owned())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory that goes with this process.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(system: &str, clients: u32, which: &str, milliseconds: &str) -> Result<f64> {
    let name = format!("compare-locks-{}", std::process::id());
    let directory = Directory(std::env::temp_dir().join(&name));
    let socket = directory.0.join("redis.sock").display().to_string();
    let (_server, target) = match system {
        "hamlyn" => {
            let mut server = Program::own(&["serve", &name])?;
            server.line()?;
            (server, name.as_str())
        }
        "redis" => {
            std::fs::create_dir(&directory.0)?;
            // No other socket, and nothing is kept.
            let options = [
                "--port",
                "0",
                "--save",
                "",
                "--appendonly",
                "no",
                "--unixsocket",
            ];
            let mut command = Command::new("redis-server");
            let server = Program::start(command.args(options).arg(&socket))?;
            let until = Instant::now() + Duration::from_secs(20);
            while Redis::connect(&socket).is_err() {
                ensure!(Instant::now() < until, "redis-server does not listen");
                std::thread::sleep(Duration::from_millis(10));
            }
            (server, socket.as_str())
        }
        _ => bail!("there is no {system}"),
    };
    let start = |number: u32| {
        let lock = match which {
            "one" => "lock".to_owned(),
            _ => format!("lock/{number}"),
        };
        Program::own(&["client", system, target, &lock, milliseconds])
    };
    let mut programs = (0..clients).map(start).collect::<Result<Vec<_>>>()?;
    for program in &mut programs {
        program.line()?;
    }
    for program in &mut programs {
        program
            .0
            .stdin
            .as_mut()
            .context("its input")?
            .write_all(b"go\n")?;
    }
    let mut rate = 0.0;
    for program in &mut programs {
        rate += program.line()?.parse::<f64>()?;
    }
    ensure!(rate > 0.0, "nothing was acquired");
    Ok(rate)
}

fn serve(name: &str) -> Result<()> {
    let node = Node::open(Options::named(name), NodeOptions::default())?;
    let mut server = LockServer::open(&node, name, &[name], ServerOptions::default())?;
    println!("ready");
    loop {
        server.serve(Wait::Forever)?;
    }
}

/// Takes and gives a lock for so long, once it is told to; prints how often in a second.
fn measure(milliseconds: &str, mut take: impl FnMut() -> Result<()>) -> Result<()> {
    let lasts = Duration::from_millis(milliseconds.parse()?);
    for _ in 0..WARM {
        take()?;
    }
    println!("ready");
    let mut line = String::new();
    ensure!(std::io::stdin().read_line(&mut line)? > 0, "nobody waits");
    let begin = Instant::now();
    let mut count = 0_u64;
    while begin.elapsed() < lasts {
        take()?;
        count += 1;
    }
    println!("{}", count as f64 / begin.elapsed().as_secs_f64());
    Ok(())
}

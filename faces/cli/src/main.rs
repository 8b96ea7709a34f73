//! The `hamlyn` command. What it prints on standard output is for people, or for programs with
//! `--json`; errors go to standard error, with an exit status that is not 0.
#![forbid(unsafe_code)]

#[macro_use]
mod output;

mod actor;
mod bench;
mod demo;
mod doctor;
mod keygen;
mod manual;
mod network;
mod partners;
mod ping;
mod pipe;
mod reproduce;
mod run;
mod simulate;
mod soak;
mod terminal;
mod trace;

use std::io::ErrorKind;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::actor::Role;
use crate::output::Unwritten;

/// How a process ends that SIGPIPE ended, as a shell says it.
const NOBODY_READS: u8 = 128 + 13;

/// A network interface made of software: protected messages between processes at memory speed.
#[derive(Parser)]
#[command(name = "hamlyn", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show it working: messages, streams, groups, refusals and a killed peer, between real processes; and, as root, between hosts.
    Demo(demo::Arguments),
    /// Carry standard input to standard output between two processes.
    Pipe(pipe::Arguments),
    /// How long messages take to a name and back, and what becomes of them.
    Ping(ping::Arguments),
    /// Run a program, and write the packets that it exchanges with other hosts into a file.
    Trace(trace::Arguments),
    /// Start the processes of a Split-C job, here or on several hosts, and end all when one fails.
    Run(run::Arguments),
    /// Measure this machine and the interface on it, in one run.
    Bench(bench::Arguments),
    /// Say what this machine allows, and what to change.
    Doctor(doctor::Arguments),
    /// Make the key of a host, or the secret of a cluster.
    Keygen(keygen::Arguments),
    /// Carry out a paper's measurements on a model of its machine, and set ours beside the paper's.
    Reproduce(reproduce::Arguments),
    /// Hunt for faults: random programs in random worlds, in virtual time.
    Simulate(simulate::Arguments),
    /// Print what a shell needs to complete the command's arguments.
    Completions(manual::Completions),
    /// Write the manual pages of the command into a directory.
    Manual(manual::Pages),
    /// Keep several hosts busy while processes are killed and cables pulled, and see that nothing is lost.
    Soak(soak::Arguments),
    /// A process that `run` starts, before it becomes the program.
    #[command(hide = true)]
    ProcessOfRun,
    /// The other processes of `demo` and `bench`.
    #[command(hide = true)]
    Actor {
        /// Which.
        role: Role,
    },
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_env("HAMLYN_LOG"))
        .with_writer(std::io::stderr)
        .init();
    let command = Arguments::parse().command;
    let result = output::catch(|| match command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Pipe(arguments) => pipe::run(&arguments),
        Command::Ping(arguments) => ping::run(&arguments),
        Command::Trace(arguments) => trace::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::ProcessOfRun => run::process::run(),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Keygen(arguments) => keygen::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Completions(arguments) => {
            manual::print_completions(&arguments, Arguments::command())
        }
        Command::Manual(arguments) => manual::write_pages(&arguments, Arguments::command()),
        Command::Soak(arguments) => soak::run(&arguments),
        Command::Actor { role } => match role {
            Role::Bench => bench::peer::run(),
            Role::Demo => demo::sender::run(),
            Role::Host => demo::host::run(),
            Role::Count => bench::one_thread::run(),
            Role::Sender => bench::senders::sender::run(),
            Role::Crowd => bench::oversubscribed::process::run(),
            Role::Peers => bench::stopped::peers::run(),
            Role::Soak => soak::worker::run(),
            Role::Network => bench::network::process::run(),
            Role::Splitc => bench::splitc::run_processor(),
        }
        .map(|()| ExitCode::SUCCESS),
    });
    match result {
        Ok(status) => status,
        Err(error) => match error.downcast_ref::<Unwritten>() {
            Some(Unwritten(error)) if error.kind() == ErrorKind::BrokenPipe => NOBODY_READS.into(),
            _ => {
                eprintln!("hamlyn: {error:#}");
                ExitCode::FAILURE
            }
        },
    }
}

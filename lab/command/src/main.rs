//! The `hamlyn-lab` command, for engineers of Hamlyn: it measures, hunts for faults, and carries
//! out the papers' measurements. Output is for people, or for programs with `--json`; errors go to
//! standard error, with an exit status that is not 0.
#![deny(unsafe_code)]

#[macro_use]
extern crate hamlyn_cli;

mod bench;
mod reproduce;
mod simulate;
mod soak;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use hamlyn_cli::run;

/// The laboratory of Hamlyn: measurements, simulation, and the papers' experiments.
#[derive(Parser)]
#[command(name = "hamlyn-lab", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure this machine and the interface on it, in one run.
    Bench(bench::Arguments),
    /// Carry out a paper's measurements on a model of its machine, and set ours beside the paper's.
    Reproduce(reproduce::Arguments),
    /// Hunt for faults: random programs in random worlds, in virtual time.
    Simulate(simulate::Arguments),
    /// Keep several hosts busy while processes are killed and cables pulled, and see that nothing
    /// is lost.
    Soak(soak::Arguments),
    /// Like `hamlyn run`, which `bench` measures with.
    #[command(hide = true)]
    Run(run::Arguments),
    /// A process that `run` starts, before it becomes the program.
    #[command(hide = true)]
    ProcessOfRun,
    /// The other processes of `bench`, `soak` and `reproduce`.
    #[command(hide = true)]
    Actor {
        /// Which.
        role: Role,
    },
}

/// A process that `bench`, `soak` or `reproduce` starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Role {
    /// The other end of a benchmark.
    Bench,
    /// The program whose instructions are counted.
    Count,
    /// A sender of many in a benchmark.
    Sender,
    /// One of more processes than processors in a benchmark.
    Crowd,
    /// Live peers and a stopped one in a benchmark.
    Peers,
    /// A process of a soak.
    Soak,
    /// A process of a pair of a soak.
    SoakPair,
    /// A process on one of two hosts in a benchmark.
    Network,
    /// A processor of a Split-C job in a benchmark.
    Splitc,
    /// A node of a program that `reproduce udm --live` runs.
    Live,
}

fn main() -> ExitCode {
    let command = Arguments::parse().command;
    hamlyn_cli::output::run("hamlyn-lab", || match command {
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Soak(arguments) => soak::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::ProcessOfRun => run::process::run(),
        Command::Actor { role } => match role {
            Role::Bench => bench::peer::run(),
            Role::Count => hamlyn_counted::program::run(),
            Role::Sender => bench::senders::sender::run(),
            Role::Crowd => bench::oversubscribed::process::run(),
            Role::Peers => bench::stopped::peers::run(),
            Role::Soak => soak::worker::run(),
            Role::SoakPair => soak::pair_process::run(),
            Role::Network => bench::network::process::run(),
            Role::Splitc => bench::splitc::run_processor(),
            Role::Live => reproduce::live::process::run(),
        }
        .map(|()| ExitCode::SUCCESS),
    })
}

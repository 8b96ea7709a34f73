//! The `hamlyn` command. What it prints on standard output is for people, or for programs with
//! `--json`; errors go to standard error, with an exit status that is not 0.
#![forbid(unsafe_code)]

#[macro_use]
extern crate hamlyn_cli;

mod bench;
mod demo;
mod doctor;
mod keygen;
mod manual;
mod network;
mod partners;
mod ping;
mod pipe;
mod trace;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use hamlyn_cli::run;

/// A process that `demo` or `bench` starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Role {
    /// The other end of a benchmark.
    Bench,
    /// A sender in the demonstration.
    Demo,
    /// A process on one of several hosts in the demonstration.
    Host,
}

/// A network interface made of software: protected messages between processes at memory speed.
#[derive(Parser)]
#[command(name = "hamlyn", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show it working: messages, streams, groups, refusals and a killed peer, between real
    /// processes; and, as root, between hosts.
    Demo(demo::Arguments),
    /// Carry standard input to standard output between two processes.
    Pipe(pipe::Arguments),
    /// How long messages take to a name and back, and what becomes of them.
    Ping(ping::Arguments),
    /// Run a program, and write the packets that it exchanges with other hosts into a file.
    Trace(trace::Arguments),
    /// Start the processes of a job (Split-C, Active Messages), here or on several hosts, and end all when one fails.
    Run(run::Arguments),
    /// Measure this machine and the interface on it, in one run.
    Bench(bench::Arguments),
    /// Say what this machine allows, and what to change.
    Doctor(doctor::Arguments),
    /// Make the key of a host, or the secret of a cluster.
    Keygen(keygen::Arguments),
    /// Print what a shell needs to complete the command's arguments.
    Completions(manual::Completions),
    /// Write the manual pages of the command into a directory.
    Manual(manual::Pages),
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
    let command = Arguments::parse().command;
    hamlyn_cli::output::run("hamlyn", || match command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Pipe(arguments) => pipe::run(&arguments),
        Command::Ping(arguments) => ping::run(&arguments),
        Command::Trace(arguments) => trace::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::ProcessOfRun => run::process::run(),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Keygen(arguments) => keygen::run(&arguments),
        Command::Completions(arguments) => {
            manual::print_completions(&arguments, Arguments::command())
        }
        Command::Manual(arguments) => manual::write_pages(&arguments, Arguments::command()),
        Command::Actor { role } => match role {
            Role::Bench => bench::other_process(),
            Role::Demo => demo::sender::run(),
            Role::Host => demo::host::run(),
        }
        .map(|()| ExitCode::SUCCESS),
    })
}

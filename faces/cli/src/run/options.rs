//! The arguments of `hamlyn run`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::gang::options::GangOptions;

/// The processes of a job, and how they are started.
#[derive(clap::Args)]
pub struct Arguments {
    /// Number of processes; a process of Split-C is a processor.
    #[arg(short = 'n', long = "procs", value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(super) procs: u32,
    /// Who moves packets: the program in its calls, a network processor (np), or both (inject: the
    /// program sends; receive: the thread that is free receives).
    #[arg(long, value_enum, default_value_t = StrategyName::Proc)]
    pub(super) strategy: StrategyName,
    /// How memory of processes of one host is reached: mapped, or only by packets.
    #[arg(long, value_enum, default_value_t = PlacementName::Direct)]
    pub(super) placement: PlacementName,
    /// Shared memory of each process of Split-C, for heap, spread arrays and stack: virtual, so what is not
    /// touched costs nothing. With K, M, G or T.
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = memory)]
    pub(super) memory: u64,
    /// Where the processes run: a file with a line for each host, its name, its addresses, and
    /// perhaps how many processes it takes (`slots=4`). Reached by ssh, or what HAMLYN_REMOTE_SHELL
    /// says.
    #[arg(long, value_name = "FILE")]
    pub(super) hosts: Option<PathBuf>,
    /// Seconds that a process waits for others at a barrier before the job fails and says who is
    /// missing. By default for ever.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) barrier_timeout: Option<f64>,
    /// Begin each line of output with the number of its process.
    #[arg(long)]
    pub(super) label: bool,
    /// Give the job the processors by turns, as an experiment: each process runs for a quantum,
    /// 1ms to 500ms, and is stopped (SIGSTOP) for one. With skew=P (0 to 0.9) processes are out of
    /// step: one is first, another one later by P of the quantum, the others in between at random,
    /// as seed=N (1 by default) decides. With null a process that computes runs beside each one
    /// while that is stopped; otherwise nothing does. On this host only.
    #[arg(long, value_name = "QUANTUM[,skew=P][,seed=N][,null]", value_parser = GangOptions::parse)]
    pub(super) gang: Option<GangOptions>,
    /// With --gang: say at the end on standard error how well the turns were kept.
    #[arg(long, short = 'v', requires = "gang")]
    pub(super) verbose: bool,
    /// The program and its arguments.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    pub(super) command: Vec<String>,
}

/// The strategies of a job.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum StrategyName {
    Proc,
    Np,
    Inject,
    Receive,
}

/// The placements of a job.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum PlacementName {
    Direct,
    Copied,
}

fn memory(text: &str) -> Result<u64, String> {
    hamlyn_job::memory_bytes(text)
        .ok_or_else(|| "it is 16M to 1T: a number with K, M, G or T".to_owned())
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| {
        seconds.is_finite() && *seconds >= 0.0 && *seconds <= f64::from(u32::MAX)
    });
    seconds.ok_or_else(|| "it is a number of seconds".to_owned())
}

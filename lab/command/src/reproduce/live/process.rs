//! A process of the live experiment: a node of a job that `run` has started.

use anyhow::{Context, Result, ensure};
use hamlyn::ManagerOptions;
use hamlyn_cli::actor::answer;
use hamlyn_job::Job;
use hamlyn_udm::{Group, GroupOptions, Interrupt, Udm, UdmOptions};
use serde::{Deserialize, Serialize};

use super::logs::Logs;
use super::program::{Program, Values};
use super::tempo::{Progress, Tempo, WAIT, now_ns};

/// The order of a process, in the variable [`ORDER`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) program: Program,
    /// Cells of each ring; by default those of the interface.
    pub(super) cells: Option<u32>,
}

/// The variable that carries it.
pub(super) const ORDER: &str = "HAMLYN_REPRODUCE_LIVE";

/// The account of a process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Account {
    /// When its program began, and how far it was at its end.
    pub(super) begun_ns: u64,
    pub(super) end: Progress,
    /// Its use of the memory that others lend until then.
    pub(super) logs: Logs,
    pub(super) values: Values,
}

/// Runs a node.
pub(crate) fn run() -> Result<()> {
    let order = std::env::var(ORDER).context("started by `hamlyn-lab reproduce` only")?;
    let order: Order = serde_json::from_str(&order).context("an order that is none")?;
    let job = Job::from_environment()?;
    let mut host = job.host_options();
    host.cells = order.cells.unwrap_or(host.cells);
    let manager = hamlyn::open_with(host, ManagerOptions::default())?;
    let group = Group::new(manager, GroupOptions::of_job(&job))?;
    let options = UdmOptions {
        // The program polls while it computes, as often as it would be interrupted.
        interrupt: Interrupt::Polling,
        wait: WAIT,
        ..UdmOptions::default()
    };
    let tempo = Tempo::new(order.program.cycles_per_operation())?;
    let mut meeting = Udm::open(&group, "meeting", options, (), WAIT)?;
    meeting.barrier(WAIT)?;
    let begun_ns = now_ns();
    let (values, end, logs) = order.program.run(&group, options, &tempo)?;
    let account = Account {
        begun_ns,
        end,
        logs,
        values,
    };
    // A node that ends takes what others still have to say to it along.
    meeting.barrier(WAIT)?;
    ensure!(meeting.flush(WAIT)?, "what was sent has not left");
    answer(&account)
}

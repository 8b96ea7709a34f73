//! Memory that a peer costs while it says nothing.

use anyhow::{Context, Result};
use hamlyn::host::process::ProcessHost;
use hamlyn::{Manager, NewSlot, Ticket, Wait};
use indicatif::ProgressBar;

use super::pair::{Order, Pair};
use super::report::Report;
use hamlyn_cli::actor::{from_hex, to_hex};

/// Idle peers over which the figure is averaged.
const PEERS: usize = 64;

/// Connects idle peers and sees by how much the memory grows that this interface pays for them:
/// what this process has for itself, and the ring that it made for each to send to it. The
/// rings of the other direction, as large, are the peers'; so half of the growth of the
/// machine's shared memory is ours.
pub(crate) fn measure(pair: &mut Pair, report: &mut Report, bar: &ProgressBar) -> Result<()> {
    let mut interface = pair.manager.session();
    let area = interface.allocate(64)?;
    let slot = interface.open_slot(NewSlot::new(&area))?;
    let ticket = to_hex(&slot.fast_ticket(0, 64)?.to_bytes());
    drop(interface);
    // The first few also pay for tables that grow.
    connect(pair, &ticket, PEERS)?;
    let before = used_bytes()?;
    connect(pair, &ticket, PEERS)?;
    let grown = used_bytes()?.since(before);
    report.idle_peer_bytes = (grown.private + grown.shared / 2) / PEERS as u64;
    bar.inc(1);
    Ok(())
}

fn connect(pair: &mut Pair, ticket: &str, peers: usize) -> Result<()> {
    let known = pair.manager.session().peers().count();
    pair.actor.order(&Order::Idle {
        ticket: ticket.to_owned(),
        peers,
    })?;
    let () = pair.actor.answer()?;
    while pair.manager.session().peers().count() < known + peers {
        pair.manager.session().poll();
    }
    Ok(())
}

/// The other side: interfaces that connect and then say nothing.
pub(crate) fn connect_idle(
    idle: &mut Vec<Manager<ProcessHost>>,
    ticket: &str,
    peers: usize,
) -> Result<()> {
    let ticket = Ticket::from_bytes(&from_hex(ticket)?)?;
    for _ in 0..peers {
        let manager = super::open()?;
        manager.session().target(&ticket, Wait::millis(5000))?;
        idle.push(manager);
    }
    Ok(())
}

/// Memory in use, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Used {
    /// Of this process alone.
    pub(crate) private: u64,
    /// Shared memory of the whole machine.
    pub(crate) shared: u64,
}

impl Used {
    /// By how much it grew.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            private: self.private.saturating_sub(before.private),
            shared: self.shared.saturating_sub(before.shared),
        }
    }
}

/// What the kernel says of it.
pub(crate) fn used_bytes() -> Result<Used> {
    Ok(Used {
        private: kernel_figure("/proc/self/status", "RssAnon:")?,
        shared: kernel_figure("/proc/meminfo", "Shmem:")?,
    })
}

fn kernel_figure(file: &str, name: &str) -> Result<u64> {
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {file}"))?;
    let kilobytes: u64 = text
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next())
        .with_context(|| format!("{file} does not tell {name}"))?
        .parse()
        .context("no number")?;
    Ok(kilobytes * 1024)
}

//! A process on one of the two hosts.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, Result, bail};
use hamlyn::Manager;
use hamlyn::host::process::ProcessHost;
use serde::{Deserialize, Serialize};

use super::ours::{self, Receiving, Sending, Tickets, Traffic};
use super::place::Entry;
use super::udp::Udp;
use crate::bench::latency::{End, Exchange, Protocol, USUAL_BYTES};
use crate::bench::pin;
use hamlyn_cli::actor::{answer, next_order};

/// What it is to do next. It answers when it is done; what follows somebody else's lead also when
/// it is ready.
#[derive(Serialize, Deserialize)]
pub(super) enum Order {
    /// Stay on that processor.
    Settle {
        processor: usize,
    },
    /// Open a plain socket; answers with its address.
    Udp {
        at: IpAddr,
    },
    UdpConnect {
        to: SocketAddr,
    },
    UdpLead {
        round_trips: u64,
    },
    UdpEcho {
        round_trips: u64,
    },
    UdpPour {
        bytes: u64,
        mtu_bytes: usize,
    },
    UdpDrain,
    /// Open an interface.
    Enter(Entry),
    /// Open the receiving end of a protocol; answers with what the other one grows from.
    Open {
        protocol: Protocol,
    },
    /// Grow the sending end.
    Grow {
        grown: String,
    },
    /// Answers with the nanoseconds of one way.
    Lead {
        round_trips: u64,
    },
    Echo {
        round_trips: u64,
    },
    /// Open what receives; answers with tickets.
    Receive,
    /// Open what sends to them; answers with the ticket of what counts.
    Send {
        tickets: Tickets,
    },
    Credit {
        ticket: String,
    },
    Take {
        traffic: Traffic,
        units: u64,
    },
    /// Answers with the seconds that it took.
    Give {
        traffic: Traffic,
        units: u64,
    },
}

/// What a process has.
#[derive(Default)]
struct Process {
    udp: Option<Udp>,
    manager: Option<Manager<ProcessHost>>,
    end: Option<End>,
    receiving: Option<Receiving>,
    sending: Option<Sending>,
}

const NO_INTERFACE: &str = "no interface is open";
const NO_SOCKET: &str = "no socket is open";
const NO_END: &str = "no end is open";

/// The process.
pub(crate) fn run() -> Result<()> {
    let mut process = Process::default();
    while let Some(order) = next_order()? {
        match order {
            Order::Settle { processor } => {
                pin(&[processor])?;
                answer(&())?;
            }
            Order::Udp { .. }
            | Order::UdpConnect { .. }
            | Order::UdpLead { .. }
            | Order::UdpEcho { .. }
            | Order::UdpPour { .. }
            | Order::UdpDrain => process.udp(order)?,
            order => process.ours(order)?,
        }
    }
    Ok(())
}

impl Process {
    fn udp(&mut self, order: Order) -> Result<()> {
        if let Order::Udp { at } = order {
            let udp = Udp::bind(at)?;
            answer(&udp.local()?)?;
            self.udp = Some(udp);
            return Ok(());
        }
        let udp = self.udp.as_mut().context(NO_SOCKET)?;
        match order {
            Order::UdpConnect { to } => {
                udp.connect(to)?;
                answer(&())
            }
            Order::UdpLead { round_trips } => answer(&udp.lead(round_trips)?),
            Order::UdpEcho { round_trips } => {
                udp.empty()?;
                answer(&())?;
                udp.echo(round_trips)?;
                answer(&())
            }
            Order::UdpPour { bytes, mtu_bytes } => {
                udp.pour(bytes, mtu_bytes)?;
                answer(&())
            }
            Order::UdpDrain => {
                udp.empty()?;
                answer(&())?;
                answer(&udp.drain()?)
            }
            _ => bail!("not an order about sockets"),
        }
    }

    fn ours(&mut self, order: Order) -> Result<()> {
        if let Order::Enter(entry) = order {
            self.manager = Some(ours::enter(&entry)?);
            return answer(&());
        }
        let manager = self.manager.as_mut().context(NO_INTERFACE)?;
        match order {
            Order::Open { protocol } => {
                let end = End::open(manager, Exchange::over_one_link(protocol, USUAL_BYTES))?;
                answer(&end.grows_from()?)?;
                self.end = Some(end);
                Ok(())
            }
            Order::Grow { grown } => {
                let end = self.end.as_mut().context(NO_END)?;
                end.grow(manager, &grown)?;
                answer(&())
            }
            Order::Lead { round_trips } => {
                let end = self.end.as_mut().context(NO_END)?;
                let began = std::time::Instant::now();
                end.lead(round_trips)?;
                answer(&(began.elapsed().as_nanos() as f64 / round_trips as f64 / 2.0))
            }
            Order::Echo { round_trips } => {
                answer(&())?;
                let end = self.end.as_mut().context(NO_END)?;
                end.echo(round_trips)?;
                answer(&())
            }
            Order::Receive => {
                let receiving = Receiving::open(manager)?;
                answer(&receiving.tickets(manager)?)?;
                self.receiving = Some(receiving);
                Ok(())
            }
            Order::Send { tickets } => {
                let sending = Sending::open(manager, &tickets)?;
                answer(&sending.credit()?)?;
                self.sending = Some(sending);
                Ok(())
            }
            Order::Credit { ticket } => {
                let receiving = self.receiving.as_mut().context(NO_END)?;
                receiving.credit(manager, &ticket)?;
                answer(&())
            }
            Order::Take { traffic, units } => {
                let receiving = self.receiving.as_mut().context(NO_END)?;
                receiving.take(manager, traffic, units)?;
                answer(&())
            }
            Order::Give { traffic, units } => {
                let sending = self.sending.as_mut().context(NO_END)?;
                answer(&sending.give(manager, traffic, units)?)
            }
            _ => bail!("not an order about interfaces"),
        }
    }
}

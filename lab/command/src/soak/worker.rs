//! A process of a soak: a process on one of the hosts that sends to all others and receives from
//! all others, over one interface.

use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hamlyn::host::Supply;
use hamlyn::host::network::NetworkOptions;
use hamlyn::host::process::{NetworkUse, Options, ProcessHost};
use hamlyn::{
    Destination, Manager, ManagerOptions, ReceiveError, Strategy, Ticket, Wait, tagged_write,
};

use super::ends::{REGISTRATION, REGISTRATION_PLACE_BYTES, REQUEST_BYTES, process_name, requester};
use super::incoming::Incoming;
use super::orders::{Life, Order, Report};
use super::outgoing::Outgoing;
use hamlyn_cli::actor::{answer, next_order};

/// How often it says how far it is.
const PROGRESS: Duration = Duration::from_millis(500);
/// How long it sleeps when there is nothing to do.
const NAP: Wait = Wait::millis(20);
/// Notifications that all connections together may have outstanding.
const QUEUE_ENTRIES: usize = 1 << 14;

/// Whether there is a link to that interface, if only with what it had sent.
pub(super) fn is_linked(manager: &Manager<ProcessHost>, to: &Destination) -> bool {
    manager
        .session()
        .peers()
        .any(|(_, peer)| peer.destination.is_same(to))
}

pub(crate) fn run() -> Result<()> {
    let Some(Order::Begin {
        life,
        hosts,
        strategy,
    }) = next_order()?
    else {
        bail!("it was not told to begin");
    };
    let (orders, heard) = channel();
    std::thread::spawn(move || {
        while let Ok(Some(order)) = next_order::<Order>() {
            if orders.send(order).is_err() {
                return;
            }
        }
        // The process at the other end is gone.
    });
    let result = Process::open(life, hosts, &strategy).and_then(|mut process| process.work(&heard));
    if let Err(error) = &result {
        answer(&Report::Fault(format!(
            "host {} (process {}): {error:#}",
            life.host, life.number
        )))?;
    }
    result
}

struct Process {
    life: Life,
    manager: Manager<ProcessHost>,
    registration: tagged_write::Receiver,
    outgoing: Vec<Outgoing>,
    incoming: Vec<Option<Incoming>>,
    connections: u64,
    /// Messages of connections that are over.
    received_before: u64,
}

impl Process {
    fn open(life: Life, hosts: usize, strategy: &str) -> Result<Self> {
        let network = NetworkOptions::from_environment()?.context("no network is named")?;
        let mut options = Options::default();
        options.name = Some(process_name(life.host));
        options.network = NetworkUse::On(Box::new(network));
        let strategy = Strategy::ALL.into_iter().find(|it| it.name() == strategy);
        let manager_options = ManagerOptions {
            queue_entries: QUEUE_ENTRIES,
            strategy: strategy.context("no such strategy")?,
            ..ManagerOptions::default()
        };
        let manager = hamlyn::open_with(options, manager_options)?;
        let registration_bytes = hosts as u64 * REGISTRATION_PLACE_BYTES;
        let registration = tagged_write::Receiver::new(&manager, registration_bytes, 256)?;
        let ticket = registration.ticket().to_bytes();
        manager
            .session()
            .offer(REGISTRATION, Supply::Always, &ticket)?;
        let others = (0..hosts).filter(|host| *host != life.host);
        Ok(Self {
            life,
            manager,
            registration,
            outgoing: others.map(|host| Outgoing::new(life, host)).collect(),
            incoming: (0..hosts).map(|_| None).collect(),
            connections: 0,
            received_before: 0,
        })
    }

    fn work(&mut self, orders: &Receiver<Order>) -> Result<()> {
        answer(&Report::Ready)?;
        let (mut is_stopping, mut is_drained) = (false, false);
        let mut told = Instant::now();
        loop {
            match orders.try_recv() {
                Ok(Order::Stop) => is_stopping = true,
                Ok(Order::Quit) => return self.account(),
                // The conducting process is gone.
                Err(TryRecvError::Disconnected) => return Ok(()),
                Ok(Order::Begin { .. }) => bail!("it was told to begin twice"),
                Err(TryRecvError::Empty) => {}
            }
            let mut moved = self.open_door()?;
            moved |= self.receive()?;
            while let Some(back) = self.manager.session().next_undelivered() {
                moved = true;
                let mut senders = self.outgoing.iter_mut();
                if !senders.any(|outgoing| outgoing.came_back(&back)) {
                    tracing::debug!(%back, "a part of a stream, an answer or a knock came back");
                }
            }
            for outgoing in &mut self.outgoing {
                let (acted, ended) = outgoing.drive(&self.manager, is_stopping)?;
                moved |= acted;
                if let Some(sent) = ended {
                    answer(&Report::Sent(sent))?;
                }
            }
            if told.elapsed() >= PROGRESS {
                told = Instant::now();
                self.tell()?;
            }
            if is_stopping && !is_drained && self.outgoing.iter().all(Outgoing::is_settled) {
                is_drained = true;
                answer(&Report::Drained)?;
            }
            if !moved {
                match self.manager.wait(NAP) {
                    // It is seen by the links.
                    Ok(()) | Err(ReceiveError::PeerLost(_)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    /// Serves the processes that have sent a request.
    fn open_door(&mut self) -> Result<bool> {
        let mut moved = false;
        while let Some(tag) = self.registration.get_tag(Wait::Poll)? {
            moved = true;
            let from = requester(tag);
            let place = from.host as u64 * REGISTRATION_PLACE_BYTES;
            let mut bytes = [0; REQUEST_BYTES];
            self.registration.area().read_at(place, &mut bytes)?;
            let (said, ticket) = bytes.split_at(8);
            if said != tag.to_le_bytes() {
                // It has knocked again since, and that tag comes as well.
                continue;
            }
            let to = Ticket::from_bytes(ticket).context("a knock without a ticket")?;
            let known = self.incoming.get_mut(from.host);
            let known = known.context("a knock from no host")?;
            if let Some(before) = known.take() {
                self.received_before += before.count();
                answer(&Report::Received(before.close(&self.manager)?))?;
            }
            self.connections += 1;
            let connection =
                self.connections << 40 | u64::from(self.life.number) << 8 | self.life.host as u64;
            let opened = Incoming::open(&self.manager, self.life, connection, &to)?;
            self.incoming[from.host] = Some(opened);
        }
        Ok(moved)
    }

    fn receive(&mut self) -> Result<bool> {
        let mut moved = false;
        for place in &mut self.incoming {
            let Some(incoming) = place else { continue };
            moved |= incoming.drive(&self.manager)?;
            if incoming.is_over(&self.manager)
                && let Some(incoming) = place.take()
            {
                let count = incoming.count();
                let received = incoming.close(&self.manager)?;
                self.received_before += count;
                answer(&Report::Received(received))?;
            }
        }
        Ok(moved)
    }

    /// All that there is to be said at the end.
    fn account(&self) -> Result<()> {
        for sent in self.outgoing.iter().filter_map(Outgoing::account) {
            answer(&Report::Sent(sent))?;
        }
        for incoming in self.incoming.iter().flatten() {
            answer(&Report::Received(incoming.account()))?;
        }
        Ok(())
    }

    fn tell(&self) -> Result<()> {
        let mut answered = vec![0; self.incoming.len()];
        for outgoing in &self.outgoing {
            answered[outgoing.host()] = outgoing.answered;
        }
        let incoming = self.incoming.iter().flatten().map(Incoming::count);
        let received = self.received_before + incoming.sum::<u64>();
        answer(&Report::Progress { answered, received })
    }
}

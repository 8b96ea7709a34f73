//! Loaned messages: nothing is written to a sample but one word, and nothing else of it is read.
//! The word lies in the user header, right before the payload, because safe code can leave a
//! payload unwritten, as `MaybeUninit`, but then not read it.

use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use hamlyn_compare_session::{LOAN_DEPTH, Order, Peer, RECEIVER, Session, Stamp};
use iceoryx2::node::Node;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::PortFactory as _;
use iceoryx2::service::port_factory::publish_subscribe::PortFactory;

type Bytes = [MaybeUninit<u8>];

/// How long the publisher waits for its readers.
const CONNECTING: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_micros(500);

pub(crate) struct Loans {
    node: Node<ipc::Service>,
    session: String,
    directory: PathBuf,
    role: usize,
    order: Option<Order>,
    readers: usize,
    /// Whether the readers have seen the publisher. Before that, a sample that does not fit is not
    /// waited for, but lost.
    is_connected: bool,
    publisher: Option<Publisher<ipc::Service, Bytes, u64>>,
    subscribers: Vec<Subscriber<ipc::Service, Bytes, u64>>,
    /// Kept: a service lives as long as somebody has it open.
    service: Option<PortFactory<ipc::Service, Bytes, u64>>,
}

impl Loans {
    pub(crate) fn open(session: &Session) -> Result<Self> {
        Ok(Self {
            node: crate::node()?,
            session: crate::name_of(session)?,
            directory: session.directory.clone(),
            role: session.role,
            order: None,
            readers: 0,
            is_connected: false,
            publisher: None,
            subscribers: Vec::new(),
            service: None,
        })
    }

    /// A service for each size and number of readers. The receiver opens it first, with all
    /// readers.
    fn open_ports(&mut self, order: &Order) -> Result<()> {
        self.publisher = None;
        self.subscribers.clear();
        self.service = None;
        let name = format!(
            "{}/loans/{}/{}",
            self.session, order.size_bytes, order.readers
        );
        if self.role == RECEIVER {
            // Of an earlier order.
            let _ = std::fs::remove_file(self.connected(order));
        }
        let service = self
            .node
            .service_builder(&name.as_str().try_into()?)
            .publish_subscribe::<Bytes>()
            .user_header::<u64>()
            .enable_safe_overflow(false)
            .subscriber_max_buffer_size(usize::from(LOAN_DEPTH))
            .subscriber_max_borrowed_samples(1)
            .history_size(0)
            .max_subscribers(order.readers)
            .max_publishers(1)
            .max_nodes(2)
            .open_or_create()
            .with_context(|| format!("the service {name}"))?;
        if self.role == RECEIVER {
            for _ in 0..order.readers {
                let subscriber = service.subscriber_builder().create();
                self.subscribers.push(subscriber.context("a subscriber")?);
            }
        } else {
            let publisher = service
                .publisher_builder()
                .initial_max_slice_len(order.size_bytes)
                .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
                .max_loaned_samples(2)
                .create()
                .context("a publisher")?;
            self.publisher = Some(publisher);
        }
        self.service = Some(service);
        self.readers = order.readers;
        self.is_connected = false;
        Ok(())
    }

    /// The file by which the readers tell the publisher that they have seen it.
    fn connected(&self, order: &Order) -> PathBuf {
        self.directory
            .join(format!("loans-{}-{}", order.size_bytes, order.readers))
    }

    #[cold]
    fn connect(&mut self) -> Result<()> {
        let order = self.order.context("no order")?;
        let deadline = Instant::now() + CONNECTING;
        let path = self.connected(&order);
        if self.role == RECEIVER {
            let service = self.service.as_ref().context("no service")?;
            while service.dynamic_config().number_of_publishers() == 0 {
                ensure!(Instant::now() < deadline, "no publisher came");
            }
            for subscriber in &self.subscribers {
                subscriber.update_connections()?;
            }
            std::fs::write(&path, [])?;
        } else {
            while !path.exists() {
                ensure!(Instant::now() < deadline, "the readers did not come");
                std::thread::sleep(LOOK);
            }
        }
        self.is_connected = true;
        Ok(())
    }
}

impl Peer for Loans {
    fn prepare(&mut self, order: &Order) -> Result<Option<String>> {
        let same = self.order.is_some_and(|last| {
            last.size_bytes == order.size_bytes && last.readers == order.readers
        });
        if !same {
            self.open_ports(order)?;
        }
        self.order = Some(*order);
        if self.role != RECEIVER && !self.is_connected {
            self.connect()?;
        }
        Ok(None)
    }

    fn send(&mut self, _: &[u8]) -> Result<()> {
        bail!("loans only")
    }

    fn receive(&mut self) -> Result<Stamp> {
        bail!("loans only")
    }

    #[inline]
    fn lend(&mut self, stamp: Stamp, size_bytes: usize) -> Result<()> {
        let publisher = self.publisher.as_ref().context("no publisher")?;
        let mut sample = publisher.loan_slice_uninit(size_bytes)?;
        *sample.user_header_mut() = stamp.first;
        // Writes nothing: optimised, it is no loop.
        let reached = sample.write_from_fn(|_| MaybeUninit::uninit()).send()?;
        ensure!(reached == self.readers, "{reached} readers got it");
        Ok(())
    }

    #[inline]
    fn borrow(&mut self, reader: usize) -> Result<u64> {
        if !self.is_connected {
            self.connect()?;
        }
        let subscriber = self.subscribers.get(reader).context("no such reader")?;
        loop {
            if let Some(sample) = subscriber.receive()? {
                return Ok(*sample.user_header());
            }
        }
    }

    fn settle(&mut self) -> Result<()> {
        Ok(())
    }
}

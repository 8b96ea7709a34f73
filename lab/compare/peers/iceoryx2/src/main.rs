//! iceoryx2's publish-subscribe: a service to the receiver and one back, polled without pause.
//!
//! * `copy`: messages are copied into a loaned sample, and out of the received one.
//! * `loan`: messages are written where they will be read, by filling the sample, and looked at in
//!   place.
//! * `loans`: see `loans`.
//!
//! Each size has a service of its own, opened with the order, so that a sample is as large as a
//! message.

mod loans;

use std::mem::MaybeUninit;

use anyhow::{Context, Result, bail};
use hamlyn_compare_session::{Order, Peer, RECEIVER, REGION_BYTES, Session, Stamp};
use iceoryx2::config::Config;
use iceoryx2::node::{Node, NodeBuilder};
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use iceoryx2::sample_mut_uninit::SampleMutUninit;
use iceoryx2::service::port_factory::publish_subscribe::PortFactory;

/// Samples on their way: as many bytes as stay in a cache.
const WINDOW_BYTES: usize = 256 << 10;
const WINDOW_MAX: usize = 256;
const WINDOW_MIN: usize = 2;
/// What a process that was killed left behind is found, and removed, by this.
const PREFIX: &str = "hamlyn_compare_";

fn main() -> Result<()> {
    let session = Session::open()?;
    let copies = match session.variant.as_str() {
        "copy" => true,
        "loan" => false,
        "loans" => return session.run(loans::Loans::open),
        other => bail!("no variant {other:?}"),
    };
    session.run(|session| Samples::open(session, copies))
}

fn node() -> Result<Node<ipc::Service>> {
    let mut config = Config::default();
    config.global.prefix = PREFIX.try_into()?;
    NodeBuilder::new()
        .config(&config)
        .create::<ipc::Service>()
        .context("a node")
}

/// A part of the services' names, which no other session has.
fn name_of(session: &Session) -> Result<String> {
    let name = session.directory.file_name().context("no directory")?;
    Ok(name.to_string_lossy().into_owned())
}

struct Samples {
    node: Node<ipc::Service>,
    /// A part of the services' names.
    session: String,
    role: usize,
    senders: usize,
    copies: bool,
    order: Option<Order>,
    ports: Option<Ports>,
    /// Where messages are copied to.
    target: Vec<u8>,
    at: usize,
}

/// The ports of an order.
struct Ports {
    publisher: Publisher<ipc::Service, [u8], ()>,
    subscriber: Option<Subscriber<ipc::Service, [u8], ()>>,
    /// Loaned while there is time: right after the last was sent.
    next: Option<SampleMutUninit<ipc::Service, [MaybeUninit<u8>], ()>>,
    /// Kept: a service lives as long as somebody has it open.
    _services: [PortFactory<ipc::Service, [u8], ()>; 2],
}

impl Samples {
    fn open(session: &Session, copies: bool) -> Result<Self> {
        Ok(Self {
            node: node()?,
            session: name_of(session)?,
            role: session.role,
            senders: session.senders,
            copies,
            order: None,
            ports: None,
            target: Vec::new(),
            at: 0,
        })
    }

    fn open_ports(&self, order: &Order) -> Result<Ports> {
        let window = if order.is_latency {
            WINDOW_MIN
        } else {
            (WINDOW_BYTES / order.size_bytes).clamp(WINDOW_MIN, WINDOW_MAX)
        };
        let service = |direction: &str, publishers: usize| {
            let name = format!(
                "{}/{direction}/{}/{}",
                self.session, order.size_bytes, order.is_latency
            );
            self.node
                .service_builder(&name.as_str().try_into()?)
                .publish_subscribe::<[u8]>()
                .enable_safe_overflow(false)
                .subscriber_max_buffer_size(window)
                .subscriber_max_borrowed_samples(1)
                .history_size(0)
                .max_subscribers(1)
                .max_publishers(publishers)
                .max_nodes(self.senders + 1)
                .open_or_create()
                .with_context(|| format!("the service {name}"))
        };
        let there = service("there", self.senders)?;
        let back = service("back", 1)?;
        let (out, into) = if self.role == RECEIVER {
            (&back, &there)
        } else {
            (&there, &back)
        };
        // Before the publisher: it finds its subscriber at the first sample.
        let subscriber = (self.role <= 1)
            .then(|| into.subscriber_builder().create())
            .transpose()
            .context("a subscriber")?;
        let publisher = out
            .publisher_builder()
            .initial_max_slice_len(order.size_bytes)
            .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
            .max_loaned_samples(2)
            .create()
            .context("a publisher")?;
        Ok(Ports {
            publisher,
            subscriber,
            next: None,
            _services: [there, back],
        })
    }
}

impl Peer for Samples {
    fn prepare(&mut self, order: &Order) -> Result<Option<String>> {
        let same = self.order.is_some_and(|last| {
            last.size_bytes == order.size_bytes && last.is_latency == order.is_latency
        });
        if !same {
            // Closed first, so that the memory is not needed twice.
            self.ports = None;
            self.ports = Some(self.open_ports(order)?);
        }
        self.order = Some(*order);
        self.at = 0;
        let needed = if order.is_fresh {
            REGION_BYTES
        } else {
            order.size_bytes
        };
        if self.target.len() < needed {
            self.target = vec![1; needed];
        }
        Ok(None)
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<()> {
        let ports = self.ports.as_mut().context("no ports")?;
        // A full buffer is waited for only when the subscriber has seen the publisher; until then
        // a sample that does not fit reaches nobody.
        loop {
            let reached = if self.copies {
                let sample = match ports.next.take() {
                    Some(sample) => sample,
                    None => ports.publisher.loan_slice_uninit(message.len())?,
                };
                let reached = sample.write_from_slice(message).send()?;
                ports.next = Some(ports.publisher.loan_slice_uninit(message.len())?);
                reached
            } else {
                let mut sample = ports.publisher.loan_slice(message.len())?;
                if let Some(stamp) = Stamp::read(message) {
                    stamp.write(sample.payload_mut());
                }
                sample.send()?
            };
            if reached == 1 {
                return Ok(());
            }
        }
    }

    #[inline]
    fn receive(&mut self) -> Result<Stamp> {
        let ports = self.ports.as_ref().context("no ports")?;
        let subscriber = ports.subscriber.as_ref().context("no subscriber")?;
        let sample = loop {
            if let Some(sample) = subscriber.receive()? {
                break sample;
            }
        };
        let payload = sample.payload();
        let length = payload.len();
        if !self.copies {
            return Stamp::read(payload).context("a sample too short");
        }
        if self.order.is_some_and(|order| order.is_fresh) {
            self.at = if self.at + 2 * length > self.target.len() {
                0
            } else {
                self.at + length
            };
        }
        let place = self
            .target
            .get_mut(self.at..self.at + length)
            .context("a sample too long")?;
        place.copy_from_slice(payload);
        Stamp::read(place).context("a sample too short")
    }

    fn settle(&mut self) -> Result<()> {
        Ok(())
    }
}

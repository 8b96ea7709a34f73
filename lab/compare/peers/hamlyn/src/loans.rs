//! Loaned messages: a publisher for each number of readers, with as many readers in the receiver's
//! process.

use anyhow::{Context, Result, ensure};
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::loans::{Publisher, PublisherOptions, SlowReaders, Subscriber};
use hamlyn::{Manager, ManagerOptions, Wait};
use hamlyn_compare_session::{
    LOAN_BYTES_MAX, LOAN_CHUNKS, LOAN_DEPTH, LOAN_READERS, Order, Peer, RECEIVER, Session, Stamp,
};

use crate::SETTING_UP;

/// The publisher's end, or the readers'.
pub(crate) struct Loans {
    /// As many as there are numbers of readers; none in the receiver.
    publishers: Vec<Publisher<ProcessHost>>,
    /// By number of readers; none in the sender.
    subscribers: Vec<Vec<Subscriber<ProcessHost>>>,
    managers: Vec<Manager<ProcessHost>>,
    /// Which number of readers the order has.
    at: usize,
}

impl Loans {
    pub(crate) fn open(session: &Session) -> Result<Self> {
        let mut loans = Self {
            publishers: Vec::new(),
            subscribers: Vec::new(),
            managers: Vec::new(),
            at: 0,
        };
        let open = |options: Options| {
            let mut options = options.in_namespace("compare");
            options.spin_ns = Some(u64::MAX / 4);
            hamlyn::open_with(options, ManagerOptions::default())
        };
        let item = |readers: usize| format!("loans-{readers}");
        if session.role != RECEIVER {
            let name = format!("lender-{}", std::process::id());
            let manager = open(Options::named(&name))?;
            let options = PublisherOptions {
                message_bytes: u32::try_from(LOAN_BYTES_MAX)?,
                chunks: LOAN_CHUNKS,
                depth: LOAN_DEPTH,
                slow_readers: SlowReaders::Block,
                ..PublisherOptions::default()
            };
            for readers in LOAN_READERS {
                let publisher = manager.bind_publisher(&item(readers), options)?;
                loans.publishers.push(publisher);
            }
            session.publish("lender", name.as_bytes())?;
            for (publisher, readers) in loans.publishers.iter_mut().zip(LOAN_READERS) {
                let there = publisher.await_readers(readers, SETTING_UP)?;
                ensure!(there == readers, "{there} of {readers} readers came");
            }
            loans.managers.push(manager);
            return Ok(loans);
        }
        let name = String::from_utf8(session.awaited("lender")?)?;
        for readers in LOAN_READERS {
            let address = format!("{name}/{}", item(readers));
            let mut subscribers = Vec::new();
            for _ in 0..readers {
                let manager = open(Options::default())?;
                subscribers.push(manager.connect_subscriber(&address, SETTING_UP)?);
                loans.managers.push(manager);
            }
            loans.subscribers.push(subscribers);
        }
        Ok(loans)
    }
}

impl Peer for Loans {
    fn prepare(&mut self, order: &Order) -> Result<Option<String>> {
        let at = LOAN_READERS
            .iter()
            .position(|&readers| readers == order.readers);
        let Some(at) = at else {
            return Ok(Some("loans to so many readers only".to_owned()));
        };
        self.at = at;
        Ok(None)
    }

    fn send(&mut self, _: &[u8]) -> Result<()> {
        anyhow::bail!("loans only")
    }

    fn receive(&mut self) -> Result<Stamp> {
        anyhow::bail!("loans only")
    }

    #[inline]
    fn lend(&mut self, stamp: Stamp, size_bytes: usize) -> Result<()> {
        let publisher = self.publishers.get_mut(self.at).context("no publisher")?;
        let mut loan = publisher.loan(size_bytes, Wait::Forever)?;
        *loan.first_chunk_mut().context("a message too short")? = stamp.first.to_le_bytes();
        let published = loan.publish(Wait::Forever)?;
        ensure!(
            published.readers == LOAN_READERS[self.at],
            "a reader is gone"
        );
        Ok(())
    }

    #[inline]
    fn borrow(&mut self, reader: usize) -> Result<u64> {
        let subscribers = self.subscribers.get_mut(self.at).context("no readers")?;
        let subscriber = subscribers.get_mut(reader).context("no such reader")?;
        let sample = subscriber.recv(Wait::Forever)?.context("no message")?;
        let word: Option<u64> = sample.read(0);
        word.context("a message too short")
    }

    fn settle(&mut self) -> Result<()> {
        for manager in &self.managers {
            ensure!(manager.flush(SETTING_UP)?, "something could not be sent");
        }
        Ok(())
    }
}

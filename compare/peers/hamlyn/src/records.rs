//! Records of streams, one each way.

use anyhow::{Context, Result};
use hamlyn::host::process::ProcessHost;
use hamlyn::{Manager, Wait, stream};
use hamlyn_compare_session::{MESSAGE_BYTES_MAX, Order, Peer, RECEIVER, Session, Stamp};

use crate::{SETTING_UP, open};

pub(crate) struct Records {
    manager: Manager<ProcessHost>,
    receiver: stream::Receiver,
    sender: stream::Sender,
    /// Received and not given back yet.
    last: Option<stream::Record>,
    is_latency: bool,
}

impl Records {
    pub(crate) fn open(session: &Session) -> Result<Self> {
        let mut manager = open(session)?;
        let options = stream::StreamOptions {
            limit_bytes: 4 * MESSAGE_BYTES_MAX as u64,
            ..stream::StreamOptions::default()
        };
        let receiver = stream::Receiver::new(&manager, options)?;
        let seed = receiver.make_seed().to_bytes();
        session.publish(&format!("seed.{}", session.role), &seed)?;
        let other = if session.role == RECEIVER {
            1
        } else {
            RECEIVER
        };
        let seed = stream::StreamSeed::from_bytes(&session.awaited(&format!("seed.{other}"))?)?;
        let sender = stream::Sender::grow(&manager, &seed, SETTING_UP)?;
        Ok(Self {
            manager,
            receiver,
            sender,
            last: None,
            is_latency: true,
        })
    }

    /// Gives back what was received last.
    #[inline]
    fn tidy(&mut self) {
        if let Some(record) = self.last.take() {
            self.receiver.release(&record);
        }
    }
}

impl Peer for Records {
    fn prepare(&mut self, order: &Order) -> Result<Option<String>> {
        self.is_latency = order.is_latency;
        Ok(None)
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<()> {
        self.sender
            .send(message, Wait::Forever)?;
        if self.is_latency {
            // While the answer is on its way.
            self.tidy();
        }
        Ok(())
    }

    #[inline]
    fn receive(&mut self) -> Result<Stamp> {
        self.tidy();
        let record = self
            .receiver
            .receive(Wait::Forever)?
            .context("no record")?;
        let bytes = self.receiver.bytes(&record).context("no bytes")?;
        let stamp = Stamp::read(bytes).context("a record too short")?;
        self.last = Some(record);
        Ok(stamp)
    }

    fn settle(&mut self) -> Result<()> {
        self.tidy();
        self.sender.flush(Wait::Forever)?;
        self.manager.interface().flush(SETTING_UP)?;
        Ok(())
    }
}

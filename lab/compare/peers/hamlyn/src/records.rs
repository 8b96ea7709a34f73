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
}

impl Records {
    pub(crate) fn open(session: &Session) -> Result<Self> {
        let manager = open(session)?;
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
        })
    }
}

impl Peer for Records {
    fn prepare(&mut self, _: &Order) -> Result<Option<String>> {
        Ok(None)
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<()> {
        self.sender.send(message, Wait::Forever)?;
        Ok(())
    }

    #[inline]
    fn receive(&mut self) -> Result<Stamp> {
        let record = self.receiver.recv(Wait::Forever)?.context("no record")?;
        Stamp::read(&record).context("a record too short")
    }

    fn settle(&mut self) -> Result<()> {
        self.sender.flush(Wait::Forever)?;
        self.manager.session().flush(SETTING_UP)?;
        Ok(())
    }
}

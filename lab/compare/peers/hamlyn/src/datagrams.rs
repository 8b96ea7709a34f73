//! Datagrams. A receiver takes one at a time, so there are round trips only.

use anyhow::{Context, Result};
use hamlyn::host::process::ProcessHost;
use hamlyn::{Manager, Ticket, Wait, datagram};
use hamlyn_compare_session::{Order, Peer, RECEIVER, Session, Stamp};

use crate::{SETTING_UP, open};

const BUFFER_BYTES: u32 = 1 << 20;

pub(crate) struct Datagrams {
    manager: Manager<ProcessHost>,
    receiver: datagram::Receiver,
    sender: datagram::Sender,
}

impl Datagrams {
    pub(crate) fn open(session: &Session) -> Result<Self> {
        let manager = open(session)?;
        let mut receiver = datagram::Receiver::new(&manager, BUFFER_BYTES)?;
        receiver.ready();
        session.publish(
            &format!("ticket.{}", session.role),
            &receiver.ticket().to_bytes(),
        )?;
        let other = if session.role == RECEIVER {
            1
        } else {
            RECEIVER
        };
        let ticket = Ticket::from_bytes(&session.awaited(&format!("ticket.{other}"))?)?;
        let sender = datagram::Sender::grow(&manager, &ticket, SETTING_UP)?;
        Ok(Self {
            manager,
            receiver,
            sender,
        })
    }
}

impl Peer for Datagrams {
    fn prepare(&mut self, order: &Order) -> Result<Option<String>> {
        Ok((!order.is_latency).then(|| "a datagram receiver takes one at a time".to_owned()))
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<()> {
        self.sender.send(message, Wait::Forever)?;
        Ok(())
    }

    #[inline]
    fn receive(&mut self) -> Result<Stamp> {
        let datagram = self.receiver.recv(Wait::Forever)?.context("no datagram")?;
        let stamp = Stamp::read(&datagram).context("a datagram too short")?;
        Ok(stamp)
    }

    fn settle(&mut self) -> Result<()> {
        self.manager.session().flush(SETTING_UP)?;
        Ok(())
    }
}

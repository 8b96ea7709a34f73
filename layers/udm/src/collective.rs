//! What all nodes do together.

use hamlyn::{Host, Wait};

use crate::error::Error;
use crate::limits::{BARRIER, VISIT};
use crate::udm::Udm;

impl<S: 'static, H: Host> Udm<S, H> {
    /// Waits until all nodes have entered this barrier, as long as `wait` says in each of its lg n
    /// rounds; handlers run meanwhile. Each node injects lg n messages.
    ///
    /// On one host, what nodes had injected for this one before they entered has been handled when
    /// it returns. Between hosts, or with a strategy by which a network processor receives, a
    /// message may still be under way.
    ///
    /// # Errors
    ///
    /// A node of which it awaits a message is gone, or has not come in time: the barrier is of no
    /// use any more.
    pub fn barrier(&mut self, wait: Wait) -> Result<(), Error> {
        let (me, nodes) = (self.me(), self.nodes());
        self.barrier.entered += 1;
        for round in 0..self.barrier.came.len() {
            let distance = (1_u64 << round) % u64::from(nodes);
            let to = ((u64::from(me) + distance) % u64::from(nodes)) as u32;
            let round_bytes = (round as u32).to_le_bytes();
            let inject_wait = self.context.endpoint.wait;
            self.context
                .endpoint
                .send_any(to, BARRIER, &round_bytes, inject_wait)?;
            let node = self.barrier.awaited(me, round);
            while self.barrier.came[round] < self.barrier.entered {
                if self.serve_barrier(round, wait)? {
                    continue;
                }
                return match self.lost(node) {
                    Some(end) => Err(Error::Lost { node, end }),
                    None => Err(Error::BarrierTimeout { node }),
                };
            }
        }
        // The round of one may have come before what others had injected.
        self.take_all()
    }

    /// Takes messages for a round. False if nothing came and the node is gone, or the time is over.
    fn serve_barrier(&mut self, round: usize, wait: Wait) -> Result<bool, Error> {
        let before = self.barrier.came[round];
        if self.run(1, false)? > 0 || self.barrier.came[round] != before {
            return Ok(true);
        }
        let node = self.barrier.awaited(self.me(), round);
        if self.lost(node).is_some() {
            // What it had sent before its end may still be on its way to this port.
            self.take_all()?;
            return Ok(self.barrier.came[round] != before);
        }
        self.context.endpoint.await_news(wait)
    }

    /// Runs handlers until no message is at hand; a look for one is not at all links.
    fn take_all(&mut self) -> Result<(), Error> {
        while self.run(VISIT, false)? > 0 || self.context.endpoint.poll() > 0 {}
        Ok(())
    }
}

//! What all nodes do together.

use hamlyn::{Host, Wait};

use crate::error::Error;
use crate::limits::BARRIER;
use crate::udm::Udm;

impl<S: 'static, H: Host> Udm<S, H> {
    /// Waits until all nodes have entered this barrier, as long as `wait` says in each of its lg n
    /// rounds; handlers run meanwhile. Each node injects lg n messages. Tasks run at its end.
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
            let inject_wait = self.endpoint.wait;
            self.endpoint
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
        Ok(())
    }

    /// Takes messages for a round. False if nothing came and the node is gone, or the time is over.
    fn serve_barrier(&mut self, round: usize, wait: Wait) -> Result<bool, Error> {
        let before = self.barrier.came[round];
        if self.run(1, false)? > 0 || self.barrier.came[round] != before {
            return Ok(true);
        }
        let node = self.barrier.awaited(self.me(), round);
        if self.lost(node).is_some() {
            // What it had sent before was taken.
            return Ok(false);
        }
        self.endpoint.await_news(wait)
    }
}

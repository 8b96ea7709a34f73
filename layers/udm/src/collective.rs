//! Operations of all nodes.

use hamlyn::{Host, Wait};

use crate::error::Error;
use crate::limits::{BARRIER, VISITS_MAX};
use crate::udm::Udm;

impl<S: 'static, H: Host> Udm<S, H> {
    /// Waits until all nodes have entered this barrier, in each of its lg n rounds as long as `wait`
    /// says after the last message that came; handlers run meanwhile. Each node injects lg n
    /// messages.
    ///
    /// On one host, messages that nodes had injected for this one before they entered have been
    /// handled when it returns, but for those that had no room, if that lasted longer than `wait`,
    /// and those that are more than 4,096. Between hosts, or with a strategy by which a network
    /// processor receives, a message may still be under way.
    ///
    /// # Errors
    ///
    /// A node of which it awaits a message is gone, or has not come in time: the barrier is of no
    /// use any more.
    pub fn barrier(&mut self, wait: Wait) -> Result<(), Error> {
        let (me, nodes) = (self.me(), self.nodes());
        // Messages that wait for room here are behind those of the barrier otherwise, as these go
        // over other links.
        self.flush(wait)?;
        let endpoint = &mut self.context.endpoint;
        endpoint.barrier.entered += 1;
        for round in 0..self.context.endpoint.barrier.came.len() {
            let distance = (1_u64 << round) % u64::from(nodes);
            let to = ((u64::from(me) + distance) % u64::from(nodes)) as u32;
            let round_bytes = (round as u32).to_le_bytes();
            let endpoint = &mut self.context.endpoint;
            endpoint.send_any(to, BARRIER, &round_bytes, wait)?;
            let node = endpoint.barrier.awaited(me, round);
            while !self.context.endpoint.barrier.has_come(round) {
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
        let ran = self.run(1, false)?;
        let endpoint = &self.context.endpoint;
        if ran > 0 || endpoint.has_more() || endpoint.barrier.has_come(round) {
            return Ok(true);
        }
        let node = self.context.endpoint.barrier.awaited(self.me(), round);
        if self.lost(node).is_some() {
            // Messages of before its end may still be on their way to this port.
            self.take_all()?;
            return Ok(self.context.endpoint.barrier.has_come(round));
        }
        self.context.endpoint.await_news(wait)
    }

    /// Runs handlers until no message is at hand; a look for one is not at all links.
    fn take_all(&mut self) -> Result<(), Error> {
        for _ in 0..VISITS_MAX {
            let ran = self.run_first_of_all(false)?;
            let endpoint = &mut self.context.endpoint;
            if ran == 0 && !endpoint.has_more() && endpoint.poll() == 0 {
                break;
            }
        }
        Ok(())
    }
}

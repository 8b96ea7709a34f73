//! More announcements than their queue holds: those that are lost are counted, all of them, and no
//! others.

use hamlyn::{Message, NewSlot, Queue, ReceiveError, Slot, Target, Wait};

use super::{FlowReceiver, FlowSender, Program, Step, Turn, outcome, parts_of, word_of, wrong};
use crate::random::Random;
use crate::scenario::history::Oracle;

const QUEUE_ENTRIES: usize = 4;
const AREA_BYTES: u64 = 64;
/// Messages handed over in one call.
const BATCH: u64 = 8;
/// Between two looks at the queue this many turns go by, for messages to heap up.
const TURNS: u64 = 6;

/// A queue that is looked at seldom.
pub(super) struct FloodReceiver {
    slot: Slot,
    queue: Queue,
    random: Random,
    /// The first message for this queue.
    first: u64,
    taken: u64,
    lost: u64,
}

impl FloodReceiver {
    pub(super) fn open(program: &Program, oracle: &Oracle<'_>) -> Result<Self, String> {
        let area = program
            .session()
            .allocate(AREA_BYTES)
            .map_err(wrong("allocating"))?;
        let queue = program.session().open_queue(QUEUE_ENTRIES);
        let queue = queue.map_err(wrong("opening a queue"))?;
        let slot = program
            .session()
            .open_slot(NewSlot::new(&area).queue(&queue));
        Ok(Self {
            slot: slot.map_err(wrong("opening a slot"))?,
            queue,
            random: Random::new(oracle.seed()),
            first: oracle.sent(),
            taken: 0,
            lost: 0,
        })
    }
}

impl FlowReceiver for FloodReceiver {
    fn seed(&self, _: &Program) -> Result<Vec<u8>, String> {
        let ticket = self.slot.fast_ticket(0, AREA_BYTES);
        Ok(ticket.map_err(wrong("a ticket"))?.to_bytes().to_vec())
    }

    fn look(&mut self, program: &Program, oracle: &Oracle<'_>, _: Wait) -> Result<bool, String> {
        if !oracle.is_sent() && self.random.below(TURNS) != 0 {
            program.session().poll();
            return Ok(false);
        }
        let mut moved = false;
        let mut came = 0;
        loop {
            match program.session().rcv(&mut self.queue) {
                Ok(Some(notification)) => {
                    let (number, length) = parts_of(notification.word);
                    if !notification.is_fast() || length != oracle.length(number) {
                        return Err(format!("word {:x} was never sent", notification.word));
                    }
                    oracle.came(number, &oracle.content(number));
                    self.taken += 1;
                    // However wrong the interface is, this ends.
                    came += 1;
                    if came > oracle.known().items.len() + QUEUE_ENTRIES {
                        return Err("more is announced than was ever sent".to_owned());
                    }
                }
                Err(ReceiveError::Overrun(overrun)) => self.lost += overrun.lost,
                Ok(None) => break,
                Err(error) => return Err(wrong("receiving")(error)),
            }
            moved = true;
        }
        if self.lost != self.queue.lost() {
            return Err("the queue counts other losses than it reports".to_owned());
        }
        let sent = oracle.sent() - self.first;
        if !oracle.is_old() && self.taken + self.lost > sent {
            return Err(format!(
                "{} were announced and {} lost, of {sent}",
                self.taken, self.lost
            ));
        }
        if oracle.is_sent() && !oracle.is_ended() && self.taken + self.lost == sent {
            oracle.lost_all_else();
        }
        Ok(moved)
    }

    fn close(self: Box<Self>, program: &Program, _: &Oracle<'_>) -> Result<(), String> {
        let closed = program
            .session()
            .close_slot(self.slot)
            .map_err(wrong("closing"));
        program.session().close_queue(self.queue);
        closed
    }
}

/// Where such a flow begins.
pub(super) struct FloodSender(pub(super) Vec<Target>);

impl FlowSender for FloodSender {
    fn step(&mut self, program: &Program, turn: Turn<'_>) -> Result<Step, String> {
        let oracle = turn.oracle;
        let Some(first) = oracle.next(u64::MAX).filter(|_| turn.is_due) else {
            return Ok(Step::Nothing);
        };
        let left = oracle.known().items.len() as u64 - first;
        let count = (1 + turn.random.below(BATCH)).min(left);
        let numbers = first..first + count;
        let contents: Vec<_> = numbers.map(|number| oracle.content(number)).collect();
        contents.iter().for_each(|data| oracle.sending(data));
        let messages = contents.iter().zip(first..).map(|(data, number)| {
            let at = number % (AREA_BYTES / 16) * 16;
            Message::new(data).at(at).word(word_of(number, data.len()))
        });
        let terminus = program.terminus();
        let sent = outcome(program.session().send_many(
            terminus,
            &self.0[0],
            messages,
            Wait::Poll,
        ))?;
        let went = match &sent {
            super::Sent::Yes(sent) => sent.count as u64,
            super::Sent::Lost => count,
            _ => 0,
        };
        for _ in went..count {
            oracle.unsent();
        }
        Ok(sent.step())
    }
}

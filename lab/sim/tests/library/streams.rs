//! A stream of records, some of which its receiver keeps for a while.

use std::collections::VecDeque;

use hamlyn::stream::{Kept, Receiver, Sender, StreamOptions};
use hamlyn::{Host, Manager, ReceiveError, Wait};
use hamlyn_sim::random::Random;
use hamlyn_sim::reference::Violation;
use hamlyn_sim::reference::delivery::{Deliveries, Order};

use super::{GROW, failed, noise, sent};

const OPTIONS: StreamOptions = StreamOptions {
    pieces: 4,
    piece_bytes: 1024,
    limit_bytes: 16 << 10,
    ahead: false,
};
/// As much at once.
const AHEAD: StreamOptions = StreamOptions {
    piece_bytes: 4096,
    ahead: true,
    ..OPTIONS
};
/// Records that the receiver keeps at most.
const HELD: usize = 12;

pub struct Stream<H: Host> {
    receiver: Receiver<H>,
    /// Gone when it is closed.
    sender: Option<Sender<H>>,
    pub channel: usize,
    /// Records that were not released, with what was in them.
    held: VecDeque<(Kept, Vec<u8>)>,
    ended: bool,
}

impl<H: Host> Stream<H> {
    pub fn open(
        manager: &Manager<H>,
        is_ahead: bool,
        deliveries: &mut Deliveries,
    ) -> Result<Self, Violation> {
        let options = if is_ahead { AHEAD } else { OPTIONS };
        let receiver = Receiver::new(manager, options).map_err(failed("opening a stream"))?;
        let seed = receiver.make_seed();
        let sender = Sender::grow(manager, &seed, GROW).map_err(failed("growing a stream"))?;
        Ok(Self {
            receiver,
            sender: Some(sender),
            channel: deliveries.open(Order::Kept),
            held: VecDeque::new(),
            ended: false,
        })
    }

    pub fn is_ended(&self) -> bool {
        self.ended
    }

    pub fn send(
        &mut self,
        random: &mut Random,
        deliveries: &mut Deliveries,
    ) -> Result<(), Violation> {
        let Some(sender) = &mut self.sender else {
            return Ok(());
        };
        let length = match random.below(8) {
            0..3 => 16,
            3..6 => random.below(110),
            6 => random.below(1_100),
            _ => random.below(3_500),
        };
        let data = noise(random, length);
        let result = sender.send(&data, Wait::Poll);
        if sent("sending a record", result)?.is_some() {
            deliveries.sent(self.channel, &data);
        }
        Ok(())
    }

    pub fn receive(&mut self, deliveries: &mut Deliveries) -> Result<(), Violation> {
        if self.held.len() >= HELD || self.ended {
            return Ok(());
        }
        let record = match self.receiver.recv(Wait::Poll) {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(()),
            Err(ReceiveError::Closed) => {
                self.ended = true;
                return Ok(());
            }
            Err(error) => return Err(failed("receiving a record")(error)),
        };
        let bytes = record.to_vec();
        deliveries.delivered(self.channel, &bytes)?;
        let record = record.keep();
        self.held.push_back((record, bytes));
        Ok(())
    }

    fn bytes(&self, record: &Kept) -> Result<&[u8], Violation> {
        let wrong = || Violation::Delivered {
            channel: self.channel,
            length_bytes: 0,
            why: "not there, though their record was not released",
        };
        self.receiver.view(record).ok_or_else(wrong)
    }

    /// Releases some of the records that are held; those that are kept are what they were.
    pub fn release(&mut self, random: &mut Random) -> Result<(), Violation> {
        let count = random.below(self.held.len() as u64 + 1);
        for _ in 0..count {
            if let Some((record, _)) = self.held.pop_front() {
                drop(record);
            }
        }
        for (record, bytes) in &self.held {
            if self.bytes(record)? != bytes {
                return Err(Violation::Delivered {
                    channel: self.channel,
                    length_bytes: bytes.len(),
                    why: "not what they were when they were delivered",
                });
            }
        }
        Ok(())
    }

    pub fn release_all(&mut self, _: &Manager<H>) -> Result<(), Violation> {
        while let Some((record, bytes)) = self.held.pop_front() {
            if self.bytes(&record)? != bytes {
                self.held.push_front((record, bytes));
                return self.release(&mut Random::new(0));
            }
            drop(record);
        }
        Ok(())
    }

    /// Hands over what was held back; false if there is no room for all of it.
    pub fn flush(&mut self) -> Result<bool, Violation> {
        match &mut self.sender {
            Some(sender) => Ok(sent("flushing a stream", sender.flush(Wait::Poll))?.is_some()),
            None => Ok(true),
        }
    }

    /// Closes the sending end.
    pub fn close(&mut self) -> Result<(), Violation> {
        match self.sender.take() {
            Some(mut sender) => sender.close(GROW).map_err(failed("closing a stream")),
            None => Ok(()),
        }
    }
}

//! A stream of records, some of which its receiver keeps for a while.

use std::collections::VecDeque;

use hamlyn::stream::{Receiver, Record, Sender, StreamOptions};
use hamlyn::{Host, Manager, ReceiveError, Wait};
use hamlyn_sim::random::Random;
use hamlyn_sim::reference::Violation;
use hamlyn_sim::reference::delivery::{Deliveries, Order};

use super::{GROW, failed, noise, sent};

const OPTIONS: StreamOptions = StreamOptions {
    pieces: 4,
    piece_bytes: 1024,
    limit_bytes: 16 << 10,
};
/// Records that the receiver keeps at most.
const HELD: usize = 12;

pub struct Stream {
    receiver: Receiver,
    /// Gone when it is closed.
    sender: Option<Sender>,
    pub channel: usize,
    /// Records that were not released, with what was in them.
    held: VecDeque<(Record, Vec<u8>)>,
    ended: bool,
}

impl Stream {
    pub fn open<H: Host>(
        manager: &mut Manager<H>,
        deliveries: &mut Deliveries,
    ) -> Result<Self, Violation> {
        let receiver = Receiver::new(manager, OPTIONS).map_err(failed("opening a stream"))?;
        let seed = receiver.make_seed(manager);
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

    pub fn send<H: Host>(
        &mut self,
        manager: &mut Manager<H>,
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
        let result = sender.send(manager, &data, Wait::Poll);
        if sent("sending a record", result)?.is_some() {
            deliveries.sent(self.channel, &data);
        }
        Ok(())
    }

    pub fn receive<H: Host>(
        &mut self,
        manager: &mut Manager<H>,
        deliveries: &mut Deliveries,
    ) -> Result<(), Violation> {
        if self.held.len() >= HELD || self.ended {
            return Ok(());
        }
        let record = match self.receiver.receive(manager, Wait::Poll) {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(()),
            Err(ReceiveError::Closed) => {
                self.ended = true;
                return Ok(());
            }
            Err(error) => return Err(failed("receiving a record")(error)),
        };
        let bytes = self.bytes(&record)?.to_vec();
        deliveries.delivered(self.channel, &bytes)?;
        self.held.push_back((record, bytes));
        Ok(())
    }

    fn bytes(&self, record: &Record) -> Result<&[u8], Violation> {
        let wrong = || Violation::Delivered {
            channel: self.channel,
            length_bytes: record.len(),
            why: "not there, though their record was not released",
        };
        self.receiver.bytes(record).ok_or_else(wrong)
    }

    /// Releases some of the records that are held; those that are kept are what they were.
    pub fn release<H: Host>(
        &mut self,
        manager: &mut Manager<H>,
        random: &mut Random,
    ) -> Result<(), Violation> {
        let count = random.below(self.held.len() as u64 + 1);
        for _ in 0..count {
            if let Some((record, _)) = self.held.pop_front() {
                self.receiver.release(manager, &record);
            }
        }
        for (record, bytes) in &self.held {
            if self.bytes(record)? != bytes {
                return Err(Violation::Delivered {
                    channel: self.channel,
                    length_bytes: record.len(),
                    why: "not what they were when they were delivered",
                });
            }
        }
        Ok(())
    }

    pub fn release_all<H: Host>(&mut self, manager: &mut Manager<H>) -> Result<(), Violation> {
        while let Some((record, bytes)) = self.held.pop_front() {
            if self.bytes(&record)? != bytes {
                self.held.push_front((record, bytes));
                return self.release(manager, &mut Random::new(0));
            }
            self.receiver.release(manager, &record);
        }
        Ok(())
    }

    /// Hands over what was held back; false if there is no room for all of it.
    pub fn flush<H: Host>(&mut self, manager: &mut Manager<H>) -> Result<bool, Violation> {
        match &mut self.sender {
            Some(sender) => {
                Ok(sent("flushing a stream", sender.flush(manager, Wait::Poll))?.is_some())
            }
            None => Ok(true),
        }
    }

    /// Closes the sending end.
    pub fn close<H: Host>(&mut self, manager: &mut Manager<H>) -> Result<(), Violation> {
        match self.sender.take() {
            Some(mut sender) => sender
                .close(manager, GROW)
                .map_err(failed("closing a stream")),
            None => Ok(()),
        }
    }

    pub fn dismantle<H: Host>(self, manager: &mut Manager<H>) -> Result<(), Violation> {
        self.receiver
            .close(manager)
            .map_err(failed("closing a stream's receiver"))
    }
}

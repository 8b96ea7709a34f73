//! Messages between programs, whatever carries them: each is delivered once at most, exactly as it
//! was sent, and when all is closed each was delivered or reported.

use std::collections::{BTreeMap, VecDeque};

use super::Violation;

/// In which order a channel delivers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// As they were sent.
    Kept,
    /// Any.
    Free,
}

/// How a message ended, as its sender knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// It must be delivered.
    Due,
    /// Its sender was told that it may be lost; it may have arrived nevertheless.
    Reported,
}

#[derive(Clone, Debug)]
struct Channel {
    order: Order,
    /// Messages that were not delivered, by number.
    waiting: BTreeMap<u64, (Vec<u8>, Fate)>,
    /// For channels without order: the numbers of the messages with these bytes.
    numbers: BTreeMap<Vec<u8>, VecDeque<u64>>,
    sent: u64,
    delivered: u64,
}

/// All channels between programs. A channel is a stream, the datagrams of one receiver, the place
/// of one tag.
#[derive(Clone, Debug, Default)]
pub struct Deliveries {
    channels: Vec<Channel>,
}

impl Deliveries {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// A channel more; its number.
    pub fn open(&mut self, order: Order) -> usize {
        self.channels.push(Channel {
            order,
            waiting: BTreeMap::new(),
            numbers: BTreeMap::new(),
            sent: 0,
            delivered: 0,
        });
        self.channels.len() - 1
    }

    /// A message was accepted by that channel; its number there, from 0.
    pub fn sent(&mut self, channel: usize, bytes: &[u8]) -> u64 {
        let channel = &mut self.channels[channel];
        let number = channel.sent;
        channel.sent += 1;
        channel.waiting.insert(number, (bytes.to_vec(), Fate::Due));
        if channel.order == Order::Free {
            channel
                .numbers
                .entry(bytes.to_vec())
                .or_default()
                .push_back(number);
        }
        number
    }

    /// The last message was not accepted after all: it must not have come.
    pub fn unsent(&mut self, number: usize) -> Result<(), Violation> {
        let channel = &mut self.channels[number];
        let last = channel.sent.saturating_sub(1);
        let Some((bytes, _)) = channel.waiting.remove(&last) else {
            return Err(Violation::Delivered {
                channel: number,
                length_bytes: 0,
                why: "those of a message that its sender was told was not sent",
            });
        };
        channel.sent = last;
        if let Some(numbers) = channel.numbers.get_mut(&bytes) {
            numbers.retain(|number| *number != last);
        }
        Ok(())
    }

    /// The sender was told that the message, and in a channel with order all after it, may be lost.
    pub fn reported(&mut self, channel: usize, number: u64) {
        let channel = &mut self.channels[channel];
        let last = match channel.order {
            Order::Kept => u64::MAX,
            Order::Free => number,
        };
        for (_, message) in channel.waiting.range_mut(number..=last) {
            message.1 = Fate::Reported;
        }
    }

    /// A message was delivered; which.
    pub fn delivered(&mut self, number: usize, bytes: &[u8]) -> Result<u64, Violation> {
        let channel = &mut self.channels[number];
        let wrong = |why| Violation::Delivered {
            channel: number,
            length_bytes: bytes.len(),
            why,
        };
        let message = match channel.order {
            Order::Kept => {
                let (&first, (expected, _)) = channel
                    .waiting
                    .first_key_value()
                    .ok_or_else(|| wrong("more than was sent"))?;
                if expected != bytes {
                    return Err(wrong("not those of the message whose turn it is"));
                }
                first
            }
            Order::Free => {
                let numbers = channel
                    .numbers
                    .get_mut(bytes)
                    .ok_or_else(|| wrong("not those of any message that was not yet delivered"))?;
                let first = numbers.pop_front();
                if numbers.is_empty() {
                    channel.numbers.remove(bytes);
                }
                first.ok_or_else(|| wrong("not those of any message"))?
            }
        };
        channel.waiting.remove(&message);
        channel.delivered += 1;
        Ok(message)
    }

    /// That very message was delivered, in a channel whose messages say which they are.
    pub fn delivered_as(
        &mut self,
        number: usize,
        message: u64,
        bytes: &[u8],
    ) -> Result<(), Violation> {
        let channel = &mut self.channels[number];
        let due = |(_, (_, fate)): (&u64, &(Vec<u8>, Fate))| *fate == Fate::Due;
        let is_early = channel.waiting.range(..message).any(due);
        let why = match channel.waiting.get(&message) {
            None => "those of a message that was delivered before, or never sent",
            Some((expected, _)) if expected != bytes => "not those that were sent",
            Some(_) if channel.order == Order::Kept && is_early => {
                "not those of the message whose turn it is"
            }
            Some(_) => {
                channel.waiting.remove(&message);
                if let Some(numbers) = channel.numbers.get_mut(bytes) {
                    numbers.retain(|number| *number != message);
                }
                channel.delivered += 1;
                return Ok(());
            }
        };
        Err(Violation::Delivered {
            channel: number,
            length_bytes: bytes.len(),
            why,
        })
    }

    /// Messages delivered by that channel.
    pub fn count(&self, channel: usize) -> u64 {
        self.channels[channel].delivered
    }

    /// Nothing is under way any more: every message was delivered or reported.
    pub fn quiet(&self) -> Result<(), Violation> {
        for (number, channel) in self.channels.iter().enumerate() {
            let due = channel
                .waiting
                .iter()
                .find(|(_, (_, fate))| *fate == Fate::Due);
            if let Some((message, (bytes, _))) = due {
                return Err(Violation::Unfinished(format!(
                    "channel {number} owes message {message} of {} bytes",
                    bytes.len()
                )));
            }
        }
        Ok(())
    }
}

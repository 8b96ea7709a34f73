//! Ours: what an interface of one host carries to one of another, through the public library.
//!
//! Three kinds of traffic: records of a stream; large messages to slots; and 16-byte messages in
//! fast mode. The receiver says when it has all, by a message; so a figure counts what has arrived.

use anyhow::{Context, Result, ensure};
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::stream;
use hamlyn::{Area, Manager, ManagerOptions, Message, NewSlot, Queue, Slot, Target, Ticket, Wait};
use serde::{Deserialize, Serialize};

use super::place::Entry;
use hamlyn_cli::actor::{answer, from_hex, to_hex};

/// How long a link may take.
const SETTING_UP: Wait = Wait::millis(10_000);
/// A record of the stream.
pub(super) const RECORD_BYTES: u32 = 256 << 10;
const PIECES: u32 = 16;
/// A large message, and how many may be on their way: as many bytes as pieces of the stream.
pub(super) const LARGE_BYTES: u64 = 1 << 20;
const LARGE_ON_THEIR_WAY: u64 = 4;
/// Short messages of one call.
const MANY: u64 = 64;
/// Places of short messages.
const PLACES: u64 = 64;
const PLACE_BYTES: u64 = 16;

/// What is carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Traffic {
    /// Records of the stream protocol.
    Stream,
    /// Large messages to slots.
    Large,
    /// 16-byte messages, a call for each.
    Each,
    /// 16-byte messages, many in a call.
    Many,
}

impl Traffic {
    /// How many units have so many bytes at least; short messages are counted one by one.
    pub(super) fn units(self, bytes: u64) -> u64 {
        bytes.div_ceil(self.unit_bytes())
    }

    pub(super) fn unit_bytes(self) -> u64 {
        match self {
            Self::Stream => RECORD_BYTES.into(),
            Self::Large => LARGE_BYTES,
            Self::Each | Self::Many => PLACE_BYTES,
        }
    }
}

/// A manager that polls and never sleeps.
pub(super) fn enter(entry: &Entry) -> Result<Manager<ProcessHost>> {
    let mut options = Options::default().in_namespace(&entry.namespace());
    options.spin_ns = Some(u64::MAX / 4);
    options.network = entry.network()?;
    Ok(hamlyn::open_with(options, ManagerOptions::default())?)
}

/// What a sender grows from, as text.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Tickets {
    stream: String,
    large: String,
    short: String,
}

/// A slot, its memory and its notifications.
struct Basin {
    area: Area,
    slot: Slot,
    queue: Queue,
}

impl Basin {
    fn open(
        manager: &Manager<ProcessHost>,
        bytes: u64,
        entries: u64,
        notifications: usize,
    ) -> Result<Self> {
        let mut interface = manager.session();
        let area = interface.allocate(bytes)?;
        let queue = interface.open_queue(notifications)?;
        let new = NewSlot::new(&area).queue(&queue).entries(entries as usize);
        let slot = interface.open_slot(new)?;
        Ok(Self { area, slot, queue })
    }
}

/// The end that receives.
pub(super) struct Receiving {
    stream: stream::Receiver,
    large: Basin,
    short: Basin,
    /// Where the sender learns what was taken.
    credit: Option<Target>,
}

impl Receiving {
    pub(super) fn open(manager: &Manager<ProcessHost>) -> Result<Self> {
        let options = stream::StreamOptions {
            pieces: PIECES,
            piece_bytes: RECORD_BYTES,
            limit_bytes: u64::from(PIECES) * u64::from(RECORD_BYTES),
            ahead: false,
        };
        let stream = stream::Receiver::new(manager, options)?;
        let large_bytes = LARGE_BYTES * LARGE_ON_THEIR_WAY;
        Ok(Self {
            stream,
            large: Basin::open(manager, large_bytes, LARGE_ON_THEIR_WAY, 64)?,
            short: Basin::open(manager, PLACES * PLACE_BYTES, 1, 1 << 14)?,
            credit: None,
        })
    }

    pub(super) fn tickets(&self, _: &Manager<ProcessHost>) -> Result<Tickets> {
        let (large, short) = (&self.large.slot, &self.short.slot);
        let large = large.ticket(0, 0, large.length_bytes())?;
        let short = short.fast_ticket(0, short.length_bytes())?;
        Ok(Tickets {
            stream: to_hex(&self.stream.make_seed().to_bytes()),
            large: to_hex(&large.to_bytes()),
            short: to_hex(&short.to_bytes()),
        })
    }

    pub(super) fn credit(&mut self, manager: &Manager<ProcessHost>, ticket: &str) -> Result<()> {
        let ticket = Ticket::from_bytes(&from_hex(ticket)?)?;
        self.credit = Some(manager.session().target(&ticket, SETTING_UP)?);
        Ok(())
    }

    /// Takes so many units, and says so to the sender.
    pub(super) fn take(
        &mut self,
        manager: &Manager<ProcessHost>,
        traffic: Traffic,
        units: u64,
    ) -> Result<()> {
        answer(&())?;
        match traffic {
            Traffic::Stream => self.take_records(manager, units)?,
            Traffic::Large => return self.take_large(manager, units),
            Traffic::Each | Traffic::Many => self.take_short(manager, units)?,
        }
        self.say(manager, 0)
    }

    fn say(&self, manager: &Manager<ProcessHost>, word: u64) -> Result<()> {
        let terminus = manager.terminus();
        let credit = self.credit.as_ref().context("nobody to tell")?;
        let message = Message::new(&[]).word(word);
        let mut interface = manager.session();
        interface.send_msg(terminus, credit, &message, Wait::Forever)?;
        Ok(())
    }

    fn take_records(&mut self, _: &Manager<ProcessHost>, units: u64) -> Result<()> {
        for number in 0..units {
            let record = self.stream.recv(Wait::Forever)?.context("no record")?;
            ensure!(
                record.len() == RECORD_BYTES as usize && record.starts_with(&number.to_le_bytes()),
                "a record is missing"
            );
        }
        Ok(())
    }

    /// They come in any order; each is told of by itself, so that its place can be used again.
    fn take_large(&mut self, manager: &Manager<ProcessHost>, units: u64) -> Result<()> {
        let (mut sum, mut wanted) = (0_u64, 0_u64);
        for number in 0..units {
            let notification = loop {
                let mut interface = manager.session();
                if let Some(notification) = interface.rcv(&mut self.large.queue)? {
                    break notification;
                }
            };
            let place = u64::from(notification.metadata_index) * LARGE_BYTES;
            let first = self.large.area.load_u64(place).unwrap_or(u64::MAX);
            let last = place + LARGE_BYTES - 8;
            let last = self.large.area.load_u64(last).unwrap_or(0);
            ensure!(first == last, "a message is torn");
            (sum, wanted) = (sum.wrapping_add(first), wanted.wrapping_add(number));
            self.say(manager, notification.metadata_index.into())?;
        }
        ensure!(sum == wanted, "a message is missing");
        Ok(())
    }

    fn take_short(&mut self, manager: &Manager<ProcessHost>, units: u64) -> Result<()> {
        let (mut sum, mut count) = (0_u64, 0_u64);
        let mut interface = manager.session();
        while count < units {
            let most = MANY.min(units - count) as usize;
            let came = interface.receive_many(&mut self.short.queue, most, |notification| {
                sum = sum.wrapping_add(notification.word);
            })?;
            count += came as u64;
        }
        let wanted = u128::from(units) * u128::from(units - 1) / 2;
        ensure!(sum == wanted as u64, "a message is missing");
        Ok(())
    }
}

/// The end that sends.
pub(super) struct Sending {
    stream: stream::Sender,
    large: Vec<Target>,
    short: Target,
    credit: Basin,
    record: Vec<u8>,
}

impl Sending {
    pub(super) fn open(manager: &Manager<ProcessHost>, tickets: &Tickets) -> Result<Self> {
        let seed = stream::StreamSeed::from_bytes(&from_hex(&tickets.stream)?)?;
        let stream = stream::Sender::grow(manager, &seed, SETTING_UP)?;
        let credit = Basin::open(manager, 0, 1, 64)?;
        let large = Ticket::from_bytes(&from_hex(&tickets.large)?)?;
        let short = Ticket::from_bytes(&from_hex(&tickets.short)?)?;
        let mut interface = manager.session();
        let large: Result<Vec<_>, _> = (0..LARGE_ON_THEIR_WAY)
            .map(|entry| {
                let metadata_index = entry as u16;
                let ticket = Ticket {
                    metadata_index,
                    ..large
                };
                interface.target(&ticket, SETTING_UP)
            })
            .collect();
        Ok(Self {
            stream,
            large: large?,
            short: interface.target(&short, SETTING_UP)?,
            credit,
            record: vec![0x5a; LARGE_BYTES as usize],
        })
    }

    pub(super) fn credit(&self) -> Result<String> {
        Ok(to_hex(&self.credit.slot.fast_ticket(0, 0)?.to_bytes()))
    }

    /// Sends so many units; the seconds until the receiver had them all.
    pub(super) fn give(
        &mut self,
        manager: &Manager<ProcessHost>,
        traffic: Traffic,
        units: u64,
    ) -> Result<f64> {
        let began = std::time::Instant::now();
        match traffic {
            Traffic::Stream => self.give_records(manager, units)?,
            Traffic::Large => self.give_large(manager, units)?,
            Traffic::Each => self.give_each(manager, units)?,
            Traffic::Many => self.give_many(manager, units)?,
        }
        if traffic != Traffic::Large {
            self.told(manager)?;
        }
        Ok(began.elapsed().as_secs_f64())
    }

    /// Waits for a word of the receiver.
    fn told(&mut self, manager: &Manager<ProcessHost>) -> Result<u64> {
        let mut interface = manager.session();
        loop {
            if let Some(notification) = interface.rcv(&mut self.credit.queue)? {
                return Ok(notification.word);
            }
        }
    }

    fn give_records(&mut self, _: &Manager<ProcessHost>, units: u64) -> Result<()> {
        let record = &mut self.record[..RECORD_BYTES as usize];
        for number in 0..units {
            record[..8].copy_from_slice(&number.to_le_bytes());
            self.stream.send(record, Wait::Forever)?;
        }
        Ok(())
    }

    fn give_large(&mut self, manager: &Manager<ProcessHost>, units: u64) -> Result<()> {
        let terminus = manager.terminus();
        let mut free: Vec<u64> = (0..LARGE_ON_THEIR_WAY).collect();
        for number in 0..units {
            let entry = match free.pop() {
                Some(entry) => entry,
                None => self.told(manager)?,
            };
            let stamp = number.to_le_bytes();
            let end = self.record.len() - stamp.len();
            self.record[..stamp.len()].copy_from_slice(&stamp);
            self.record[end..].copy_from_slice(&stamp);
            let target = self.large.get(entry as usize).context("no such entry")?;
            let put = Message::new(&self.record).at(entry * LARGE_BYTES);
            let mut interface = manager.session();
            interface.send_msg(terminus, target, &put, Wait::Forever)?;
        }
        while (free.len() as u64) < LARGE_ON_THEIR_WAY.min(units) {
            let entry = self.told(manager)?;
            free.push(entry);
        }
        Ok(())
    }

    fn give_each(&mut self, manager: &Manager<ProcessHost>, units: u64) -> Result<()> {
        let terminus = manager.terminus();
        let mut interface = manager.session();
        let data = [0x5a; PLACE_BYTES as usize];
        for turn in 0..units {
            let place = turn % PLACES * PLACE_BYTES;
            let message = Message::new(&data).at(place).word(turn);
            interface.send_msg(terminus, &self.short, &message, Wait::Forever)?;
        }
        Ok(())
    }

    fn give_many(&mut self, manager: &Manager<ProcessHost>, units: u64) -> Result<()> {
        let terminus = manager.terminus();
        let mut interface = manager.session();
        let data = [0x5a; PLACE_BYTES as usize];
        for first in (0..units).step_by(MANY as usize) {
            let turns = first..units.min(first + MANY);
            let count = turns.clone().count();
            let messages = turns.map(|turn| {
                let place = turn % PLACES * PLACE_BYTES;
                Message::new(&data).at(place).word(turn)
            });
            let sent = interface.send_many(terminus, &self.short, messages, Wait::Forever)?;
            ensure!(sent.count == count, "a batch was cut short");
        }
        Ok(())
    }
}

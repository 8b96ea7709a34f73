//! The two ends of a line, by kind: what a program does to send and to receive.

use hamlyn::engine::key::Key;
use hamlyn::engine::metadata::Permission;
use hamlyn::engine::slot::Mode;
use hamlyn::{
    Area, Manager, Message, NewSlot, OpenError, Queue, ReceiveError, SendError, Slot, Target,
    Ticket, Wait, datagram, stream, tagged_write,
};

use crate::host::SimHost;
use crate::random::Random;
use crate::scenario::ledger::Ledger;
use crate::scenario::plan::Kind;

/// Messages of a line that may be under way, where each has a place of its own.
const PLACES: u64 = 4;
/// Nothing may ever be written there: before and behind all places.
const GUARD_BYTES: u64 = 512;
const GUARD: u8 = 0xa5;
/// Of a ticket on its way.
const TICKET_BYTES: usize = hamlyn::ticket::TICKET_BYTES;

type Program = Manager<SimHost>;

impl Kind {
    /// How many messages may be under way.
    pub(crate) fn window(self) -> u64 {
        match self {
            Kind::Datagram => 1,
            Kind::Stream => u64::MAX,
            _ => PLACES,
        }
    }

    fn place_bytes(self) -> u64 {
        u64::from(self.longest_bytes()).next_multiple_of(8)
    }
}

/// What went wrong in a call, as text: a violation, unless it was to be.
fn wrong<E: std::fmt::Display>(call: &'static str) -> impl Fn(E) -> String {
    move |error| format!("{call}: {error}")
}

/// Memory with places, a guard before and behind them, and a slot over the places.
pub(crate) struct Places {
    area: Area,
    slot: Slot,
    queue: Queue,
    kind: Kind,
}

impl Places {
    fn open(program: &mut Program, kind: Kind) -> Result<Self, OpenError> {
        let interface = program.interface_mut();
        let bytes = PLACES * kind.place_bytes();
        let area = interface.allocate(bytes + 2 * GUARD_BYTES)?;
        for at in [0, GUARD_BYTES + bytes] {
            // It lies within.
            let _ = area.fill(at, GUARD_BYTES, GUARD);
        }
        let queue = interface.open_queue(PLACES as usize * 2)?;
        let new = NewSlot::new(&area)
            .range(GUARD_BYTES..GUARD_BYTES + bytes)
            .queue(&queue);
        let new = match kind {
            Kind::Counted => new.entries(PLACES as usize),
            Kind::OneShot => new.entries(PLACES as usize).mode(Mode::ParanoidOneShot),
            _ => new,
        };
        let slot = interface.open_slot(new)?;
        let places = Self {
            area,
            slot,
            queue,
            kind,
        };
        if kind == Kind::OneShot {
            for place in 0..PLACES {
                let key = program.interface_mut().new_key()?;
                places.permit(place, key);
            }
        }
        Ok(places)
    }

    fn permit(&self, place: u64, key: Key) {
        let bytes = self.kind.place_bytes();
        let entry = self.slot.metadata().and_then(|all| all.entry(place as u16));
        if let Some(entry) = entry {
            entry.permit(Permission {
                key,
                low: place * bytes,
                high: (place + 1) * bytes,
            });
            entry.arm();
        }
    }

    fn tickets(&self) -> Result<Vec<u8>, String> {
        let bytes = self.kind.place_bytes();
        let ticket = |place: u64| match self.kind {
            Kind::Counted | Kind::OneShot => self.slot.ticket(place as u16, place * bytes, bytes),
            _ => self.slot.fast_ticket(place * bytes, bytes),
        };
        let mut all = Vec::new();
        for place in 0..PLACES {
            all.extend(ticket(place).map_err(wrong("a ticket"))?.to_bytes());
        }
        Ok(all)
    }

    fn read(&self, place: u64, length: usize) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; length];
        self.area
            .read_at(GUARD_BYTES + place * self.kind.place_bytes(), &mut bytes)
            .map_err(wrong("reading a place"))?;
        Ok(bytes)
    }

    /// Whether nothing was written beyond the places.
    fn check_guard(&self) -> Result<(), String> {
        let mut bytes = vec![0; GUARD_BYTES as usize];
        for at in [0, GUARD_BYTES + PLACES * self.kind.place_bytes()] {
            self.area
                .read_at(at, &mut bytes)
                .map_err(wrong("reading the guard"))?;
            if let Some(found) = bytes.iter().position(|byte| *byte != GUARD) {
                return Err(format!(
                    "byte {} lies outside and was written",
                    at + found as u64
                ));
            }
        }
        Ok(())
    }

    /// Takes one message: its bytes.
    fn take(&mut self, program: &mut Program) -> Result<Option<Vec<u8>>, String> {
        let found = program.interface_mut().rcv(&mut self.queue);
        let Some(notification) = found.map_err(wrong("receiving"))? else {
            return Ok(None);
        };
        if notification.is_fast() {
            let number = notification.word & 0xffff_ffff;
            let length = notification.word >> 32;
            return self.read(number % PLACES, length as usize).map(Some);
        }
        let place = u64::from(notification.metadata_index);
        let entry = self
            .slot
            .metadata()
            .and_then(|all| all.entry(notification.metadata_index))
            .ok_or("a notification of an entry that there is not")?;
        let mut metadata = [0; hamlyn::engine::limits::USER_METADATA_BYTES];
        let length = entry.metadata(&mut metadata);
        let word = metadata[..length]
            .first_chunk()
            .map(|bytes| u64::from_le_bytes(*bytes))
            .ok_or("metadata are cut")?;
        let bytes = self.read(place, (word >> 32) as usize)?;
        if self.kind == Kind::OneShot {
            if entry.is_armed() {
                return Err("an entry is armed after its message".to_owned());
            }
            entry.arm();
        }
        Ok(Some(bytes))
    }

    fn close(self, program: &mut Program) -> Result<(), String> {
        self.check_guard()?;
        let interface = program.interface_mut();
        let closed = interface.close_slot(self.slot).map(drop);
        interface.close_queue(self.queue);
        closed.map_err(wrong("closing"))
    }
}

/// Where a line ends.
pub(crate) enum Inlet {
    Places(Box<Places>),
    Datagram(Box<datagram::Receiver>),
    Tagged(Box<tagged_write::Receiver>),
    Stream(Box<stream::Receiver>),
}

impl Inlet {
    pub(crate) fn open(program: &mut Program, kind: Kind) -> Result<Self, String> {
        let open = wrong("opening");
        Ok(match kind {
            Kind::Datagram => {
                let mut receiver =
                    datagram::Receiver::new(program, kind.longest_bytes()).map_err(open)?;
                receiver.ready();
                Self::Datagram(Box::new(receiver))
            }
            Kind::Tagged => {
                let bytes = PLACES * kind.place_bytes();
                let receiver = tagged_write::Receiver::new(program, bytes, PLACES as usize * 2);
                Self::Tagged(Box::new(receiver.map_err(open)?))
            }
            Kind::Stream => {
                let options = stream::StreamOptions {
                    pieces: 4,
                    piece_bytes: 512,
                    limit_bytes: 64 << 10,
                };
                let receiver = stream::Receiver::new(program, options).map_err(open)?;
                Self::Stream(Box::new(receiver))
            }
            _ => Self::Places(Box::new(Places::open(program, kind).map_err(open)?)),
        })
    }

    /// What the other end needs.
    pub(crate) fn seed(&self, program: &Program) -> Result<Vec<u8>, String> {
        Ok(match self {
            Self::Places(places) => places.tickets()?,
            Self::Datagram(receiver) => receiver.ticket().to_bytes().to_vec(),
            Self::Tagged(receiver) => receiver.ticket().to_bytes().to_vec(),
            Self::Stream(receiver) => receiver.make_seed(program).to_bytes().to_vec(),
        })
    }

    /// Takes what has come. Whether anything had. The loss of a peer is not an error here.
    pub(crate) fn look(
        &mut self,
        program: &mut Program,
        mut came: impl FnMut(&[u8]),
    ) -> Result<bool, String> {
        match self {
            Self::Places(places) => {
                let taken = places.take(program)?;
                if let Some(bytes) = &taken {
                    came(bytes);
                }
                Ok(taken.is_some())
            }
            Self::Datagram(receiver) => {
                let data = match receiver.receive(program, Wait::Poll) {
                    Ok(Some(datagram)) => datagram.data.to_vec(),
                    Ok(None) | Err(ReceiveError::PeerLost(_)) => return Ok(false),
                    Err(error) => return Err(wrong("receiving a datagram")(error)),
                };
                receiver.ready();
                came(&data);
                Ok(true)
            }
            Self::Tagged(receiver) => {
                let tag = match receiver.get_tag(program, Wait::Poll) {
                    Ok(Some(tag)) => tag,
                    Ok(None) | Err(ReceiveError::PeerLost(_)) => return Ok(false),
                    Err(error) => return Err(wrong("getting a tag")(error)),
                };
                let mut bytes = vec![0; (tag >> 32) as usize];
                let at = (tag & 0xffff_ffff) % PLACES * Kind::Tagged.place_bytes();
                receiver
                    .area()
                    .read_at(at, &mut bytes)
                    .map_err(wrong("reading what was tagged"))?;
                came(&bytes);
                Ok(true)
            }
            Self::Stream(receiver) => {
                let record = match receiver.receive(program, Wait::Poll) {
                    Ok(Some(record)) => record,
                    Ok(None) | Err(ReceiveError::PeerLost(_) | ReceiveError::Closed) => {
                        return Ok(false);
                    }
                    Err(error) => return Err(wrong("receiving a record")(error)),
                };
                let bytes = receiver.bytes(&record).ok_or("a record without bytes")?;
                came(bytes);
                receiver.release(program, &record);
                Ok(true)
            }
        }
    }

    pub(crate) fn close(self, program: &mut Program) -> Result<(), String> {
        let close = wrong("closing");
        match self {
            Self::Places(places) => places.close(program),
            Self::Datagram(receiver) => receiver.close(program).map_err(close),
            Self::Tagged(receiver) => receiver.close(program).map_err(close),
            Self::Stream(receiver) => receiver.close(program).map_err(close),
        }
    }
}

/// Where a line begins.
pub(crate) enum Outlet {
    Places(Kind, Vec<Target>),
    Datagram(datagram::Sender),
    Tagged(tagged_write::Sender),
    Stream(Box<stream::Sender>),
    Hostile(Vec<Target>),
}

/// How sending ended.
pub(crate) enum Sent {
    Yes,
    /// There was no room, and nothing was sent.
    NotNow,
    /// Its peer is lost.
    Lost,
}

impl Outlet {
    /// Grows the end. Nothing if its peer is gone.
    pub(crate) fn grow(
        program: &mut Program,
        kind: Kind,
        seed: &[u8],
        random: &mut Random,
    ) -> Result<Option<Self>, String> {
        let tickets = || {
            let all = seed.chunks_exact(TICKET_BYTES).map(Ticket::from_bytes);
            all.collect::<Result<Vec<_>, _>>()
                .map_err(wrong("a ticket"))
        };
        // Whatever fails here fails because of the peer's end; what else could, the conformance suite shows.
        Ok(match kind {
            Kind::Datagram => datagram::Sender::grow(program, &tickets()?[0], Wait::Forever)
                .ok()
                .map(Self::Datagram),
            Kind::Tagged => tagged_write::Sender::grow(program, &tickets()?[0], Wait::Forever)
                .ok()
                .map(Self::Tagged),
            Kind::Stream => {
                let seed = stream::StreamSeed::from_bytes(seed).map_err(wrong("a seed"))?;
                let sender = stream::Sender::grow(program, &seed, Wait::Forever).ok();
                sender.map(|sender| Self::Stream(Box::new(sender)))
            }
            Kind::Hostile => {
                let forged = tickets()?.into_iter().map(|ticket| forge(ticket, random));
                targets(program, forged).map(Self::Hostile)
            }
            _ => targets(program, tickets()?).map(|targets| Self::Places(kind, targets)),
        })
    }

    pub(crate) fn send(
        &mut self,
        program: &mut Program,
        number: u64,
        data: &[u8],
        waits: bool,
    ) -> Result<Sent, String> {
        let place = number % PLACES;
        let word = number & 0xffff_ffff | (data.len() as u64) << 32;
        let wait = if waits { Wait::Forever } else { Wait::Poll };
        let result = match self {
            Self::Places(kind, targets) => {
                let metadata = word.to_le_bytes();
                let message = Message::new(data);
                // Messages that are counted may be cut when a wait ends, so theirs does not.
                let (message, wait) = match kind {
                    Kind::Fast => (message.word(word), wait),
                    _ => (message.metadata(&metadata), Wait::Forever),
                };
                let terminus = program.terminus();
                let target = &targets[place as usize];
                let interface = program.interface_mut();
                interface
                    .send_msg(terminus, target, &message, wait)
                    .map(drop)
            }
            Self::Datagram(sender) => sender.send(program, 0, data, None, Wait::Forever).map(drop),
            Self::Tagged(sender) => {
                let at = place * Kind::Tagged.place_bytes();
                sender.send(program, at, data, word, wait).map(drop)
            }
            // Its receiver's program must take records for there to be room, and may itself wait for this one.
            Self::Stream(sender) => sender.send(program, data, Wait::Poll),
            Self::Hostile(targets) => {
                let terminus = program.terminus();
                let message = Message::new(data).word(word);
                let interface = program.interface_mut();
                let target = &targets[place as usize];
                interface
                    .send_msg(terminus, target, &message, wait)
                    .map(drop)
            }
        };
        match result {
            Ok(()) => Ok(Sent::Yes),
            Err(SendError::WouldBlock { .. }) => Ok(Sent::NotNow),
            Err(SendError::PeerLost(_) | SendError::ClosedByReceiver | SendError::Finished) => {
                Ok(Sent::Lost)
            }
            Err(error) => Err(wrong("sending")(error)),
        }
    }

    /// Sends what is held back, as far as there is room.
    pub(crate) fn flush(&mut self, program: &mut Program) {
        if let Self::Stream(sender) = self {
            // It is tried again until everything has come.
            let _ = sender.flush(program, Wait::Poll);
        }
    }

    pub(crate) fn close(self, program: &mut Program) {
        if let Self::Stream(sender) = self {
            // Its receiver may be gone.
            let _ = sender.close(program, Wait::millis(1));
        }
    }

    /// Whether nothing that it sends may do anything.
    pub(crate) fn is_hostile(&self) -> bool {
        matches!(self, Self::Hostile(_))
    }
}

fn targets(
    program: &mut Program,
    tickets: impl IntoIterator<Item = Ticket>,
) -> Option<Vec<Target>> {
    tickets
        .into_iter()
        .map(|ticket| program.interface_mut().target(&ticket, Wait::Forever).ok())
        .collect()
}

/// A ticket that nobody gave.
fn forge(ticket: Ticket, random: &mut Random) -> Ticket {
    match random.below(3) {
        0 => Ticket {
            key: Key::from_bits(random.bits()),
            ..ticket
        },
        1 => Ticket {
            base: ticket.base + PLACES * Kind::Hostile.place_bytes() + random.below(1 << 40),
            ..ticket
        },
        _ => Ticket {
            slot: hamlyn::engine::packet::SlotName::new(
                ticket.slot.index(),
                ticket
                    .slot
                    .generation()
                    .wrapping_add(1 + random.below(9) as u16),
            ),
            ..ticket
        },
    }
}

/// Tells the judge that something is wrong.
pub(crate) fn violate(ledger: &std::sync::Mutex<Ledger>, line: usize, what: &str) {
    let mut ledger = ledger
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    ledger.violate(format!("line {line}: {what}"));
}

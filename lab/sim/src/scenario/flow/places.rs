//! Messages to places, each to its own: fast ones, counted ones, to entries that take one each, and
//! silent ones. Slots are closed and opened anew, and get other keys, in between.

use hamlyn::engine::counting::Counting;
use hamlyn::engine::key::Key;
use hamlyn::engine::limits::USER_METADATA_BYTES;
use hamlyn::engine::metadata::Permission;
use hamlyn::engine::notification::Notification;
use hamlyn::engine::slot::Mode;
use hamlyn::{Area, Message, NewSlot, Queue, ReceiveError, Slot, Target, Wait};

use super::{
    FlowReceiver, FlowSender, PLACES, Program, Sent, Step, TICKET_BYTES, Turn, parts_of,
    send_message, targets, word_of, wrong,
};
use crate::scenario::history::{End, Oracle, noise};
use crate::scenario::plan::Kind;

/// Nothing may ever be written there: before and behind all places.
const GUARD_BYTES: u64 = 512;
const GUARD: u8 = 0xa5;
/// How long a message may take where the rest of it can be sent anew.
const SHORT_WAIT: Wait = Wait::For(std::time::Duration::from_micros(20));

fn place_bytes(kind: Kind) -> u64 {
    u64::from(kind.longest_bytes()).next_multiple_of(8)
}

/// Metadata of a message: its word, and of some a few bytes more.
pub(super) fn metadata_of(oracle: &Oracle<'_>, number: u64) -> Vec<u8> {
    let mut metadata = word_of(number, oracle.length(number))
        .to_le_bytes()
        .to_vec();
    let more = match number % 3 {
        0 => 0,
        _ => number * 11 % (USER_METADATA_BYTES as u64 - 7),
    };
    metadata.extend(noise(oracle.seed(), number | 1 << 32, more as usize));
    metadata
}

/// What is said of what is told: the place of a message that was cut, or another ticket of it.
const OF_ONE: u8 = 1;
/// Tickets of all places, from a message on.
const OF_ALL: u8 = 0;

/// Memory with places, a guard before and behind them, and a slot over the places.
pub(super) struct Places {
    area: Area,
    slot: Option<Slot>,
    queue: Queue,
    kind: Kind,
    counting: Counting,
    /// The first message for the slot as it is.
    first: u64,
    renewed: u64,
    heard: usize,
}

impl Places {
    pub(super) fn open(program: &Program, oracle: &Oracle<'_>) -> Result<Self, String> {
        let kind = oracle.known().kind;
        let bytes = PLACES * place_bytes(kind);
        let area = program
            .session()
            .allocate(bytes + 2 * GUARD_BYTES)
            .map_err(wrong("allocating"))?;
        for at in [0, GUARD_BYTES + bytes] {
            // It lies within.
            let _ = area.fill(at, GUARD_BYTES, GUARD);
        }
        let queue = program.session().open_queue(PLACES as usize * 2);
        let mut places = Self {
            area,
            slot: None,
            queue: queue.map_err(wrong("opening a queue"))?,
            kind,
            counting: match oracle.flow % 2 {
                0 => Counting::Bits32,
                _ => Counting::Bits64,
            },
            first: oracle.sent(),
            renewed: 0,
            heard: 0,
        };
        places.open_slot(program)?;
        Ok(places)
    }

    fn open_slot(&mut self, program: &Program) -> Result<(), String> {
        let bytes = PLACES * place_bytes(self.kind);
        let new = NewSlot::new(&self.area)
            .range(GUARD_BYTES..GUARD_BYTES + bytes)
            .queue(&self.queue)
            .counting(self.counting);
        let new = match self.kind {
            Kind::Fast => new,
            Kind::OneShot => new.entries(PLACES as usize).mode(Mode::ParanoidOneShot),
            _ => new.entries(PLACES as usize),
        };
        let slot = program.session().open_slot(new);
        self.slot = Some(slot.map_err(wrong("opening a slot"))?);
        self.permit_all(program)
    }

    fn permit_all(&self, program: &Program) -> Result<(), String> {
        if self.kind == Kind::OneShot {
            for place in 0..PLACES {
                self.permit(program, place)?;
            }
        }
        Ok(())
    }

    /// Lets another message into a place, under a new key.
    fn permit(&self, program: &Program, place: u64) -> Result<(), String> {
        let key: Key = program.session().new_key().map_err(wrong("a new key"))?;
        let bytes = place_bytes(self.kind);
        let metadata = self.slot.as_ref().and_then(Slot::metadata);
        if let Some(entry) = metadata.and_then(|all| all.entry(place as u16)) {
            // It may be armed, and what is left of a message that was cut on its way.
            program.session().between_packets(|| {
                entry.permit(Permission {
                    key,
                    low: place * bytes,
                    high: (place + 1) * bytes,
                });
                entry.arm();
            });
        }
        Ok(())
    }

    fn ticket(&self, place: u64) -> Result<[u8; TICKET_BYTES], String> {
        let bytes = place_bytes(self.kind);
        let slot = self.slot.as_ref().ok_or("the slot is closed")?;
        let ticket = match self.kind {
            Kind::Fast => slot.fast_ticket(place * bytes, bytes),
            _ => slot.ticket(place as u16, place * bytes, bytes),
        };
        Ok(ticket.map_err(wrong("a ticket"))?.to_bytes())
    }

    fn tickets(&self) -> Result<Vec<u8>, String> {
        let mut all = Vec::new();
        for place in 0..PLACES {
            all.extend(self.ticket(place)?);
        }
        Ok(all)
    }

    fn read(&self, place: u64, length: usize) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; length];
        self.area
            .read_at(GUARD_BYTES + place * place_bytes(self.kind), &mut bytes)
            .map_err(wrong("reading a place"))?;
        Ok(bytes)
    }

    /// Whether nothing was written beyond the places.
    fn check_guard(&self) -> Result<(), String> {
        let mut bytes = vec![0; GUARD_BYTES as usize];
        for at in [0, GUARD_BYTES + PLACES * place_bytes(self.kind)] {
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

    fn take(&self, oracle: &Oracle<'_>, notification: Notification) -> Result<(), String> {
        if self.kind == Kind::Silent {
            return Err("a silent message was announced".to_owned());
        }
        if self.slot.as_ref().map(Slot::name) != Some(notification.slot) {
            return Err("an announcement of another slot".to_owned());
        }
        if notification.is_fast() {
            let (number, length) = parts_of(notification.word);
            oracle.came(number, &self.read(number % PLACES, length)?);
            return Ok(());
        }
        let place = u64::from(notification.metadata_index);
        let metadata = self.slot.as_ref().and_then(Slot::metadata);
        let entry = metadata
            .and_then(|all| all.entry(notification.metadata_index))
            .ok_or("an announcement of an entry that there is not")?;
        let mut found = [0; USER_METADATA_BYTES];
        let length = entry.metadata(&mut found);
        let word = found[..length]
            .first_chunk()
            .map(|bytes| u64::from_le_bytes(*bytes))
            .ok_or("metadata are cut")?;
        let (number, bytes) = parts_of(word);
        if number % PLACES != place || found[..length] != metadata_of(oracle, number) {
            return Err(format!("metadata {word:x} are not those that were sent"));
        }
        if self.kind == Kind::OneShot {
            if entry.is_armed() {
                return Err("an entry is armed after its message".to_owned());
            }
            entry.arm();
        } else if entry.accumulator() != 0 {
            return Err("a message is announced before all of it is counted".to_owned());
        }
        oracle.came(number, &self.read(place, bytes)?);
        Ok(())
    }

    /// What silent messages have come: nothing but their bytes says so.
    fn find_silent(&self, oracle: &Oracle<'_>) -> Result<bool, String> {
        let mut found = false;
        for number in oracle.in_flight() {
            let expected = oracle.content(number);
            if self.read(number % PLACES, expected.len())? == expected {
                oracle.came(number, &expected);
                found = true;
            }
        }
        Ok(found)
    }

    /// Opens the place anew, or gives it another key, if it is time and nothing is in flight.
    fn renew_if_due(&mut self, program: &Program, oracle: &Oracle<'_>) -> Result<bool, String> {
        let after = u64::from(oracle.known().renewed_after);
        if after == 0
            || oracle.sent() != self.first + after
            || !oracle.is_settled()
            || oracle.is_old()
        {
            return Ok(false);
        }
        self.check_guard()?;
        self.renewed += 1;
        match (&mut self.slot, self.renewed % 2) {
            (Some(slot), 0) if self.kind != Kind::OneShot => {
                let renewed = program.session().rekey_slot(slot);
                renewed.map_err(wrong("giving a slot another key"))?;
            }
            (Some(_), 0) => self.permit_all(program)?,
            (slot, _) => {
                if let Some(slot) = slot.take() {
                    let closed = program.session().close_slot(slot);
                    closed.map_err(wrong("closing a slot"))?;
                }
                self.open_slot(program)?;
            }
        }
        self.first = oracle.sent();
        let mut told = vec![OF_ALL];
        told.extend(self.first.to_le_bytes());
        told.extend(self.tickets()?);
        oracle.tell(End::Sender, told);
        Ok(true)
    }

    /// Lets another message in where one was cut.
    fn hear(&mut self, program: &Program, oracle: &Oracle<'_>) -> Result<bool, String> {
        let Some(told) = oracle.told(End::Receiver, self.heard) else {
            return Ok(false);
        };
        self.heard += 1;
        let place = u64::from(told.first().copied().unwrap_or_default());
        self.permit(program, place)?;
        let mut told = vec![OF_ONE, place as u8];
        told.extend(self.ticket(place)?);
        oracle.tell(End::Sender, told);
        Ok(true)
    }
}

impl FlowReceiver for Places {
    fn seed(&self, _: &Program) -> Result<Vec<u8>, String> {
        self.tickets()
    }

    fn look(&mut self, program: &Program, oracle: &Oracle<'_>, wait: Wait) -> Result<bool, String> {
        let mut moved = self.hear(program, oracle)? || self.renew_if_due(program, oracle)?;
        let found = match wait {
            Wait::Poll => program.session().rcv(&mut self.queue),
            _ => program.session().rcv_block(&mut self.queue, wait),
        };
        match found {
            Ok(Some(notification)) => {
                self.take(oracle, notification)?;
                moved = true;
            }
            Ok(None) | Err(ReceiveError::PeerLost(_)) => {}
            Err(error) => return Err(wrong("receiving")(error)),
        }
        if self.kind == Kind::Silent {
            moved |= self.find_silent(oracle)?;
        }
        Ok(moved)
    }

    fn close(self: Box<Self>, program: &Program, _: &Oracle<'_>) -> Result<(), String> {
        self.check_guard()?;
        let closed = self.slot.map(|slot| program.session().close_slot(slot));
        program.session().close_queue(self.queue);
        closed.transpose().map(drop).map_err(wrong("closing"))
    }
}

/// The tickets of a flow's places, as they are renewed.
pub(super) struct Tickets {
    pub(super) targets: Vec<Target>,
    /// The first message for them.
    first: Option<u64>,
    heard: usize,
    /// Places of messages that were cut.
    blocked: [bool; PLACES as usize],
}

impl Tickets {
    pub(super) fn new(targets: Vec<Target>) -> Self {
        Self {
            targets,
            first: None,
            heard: 0,
            blocked: [false; PLACES as usize],
        }
    }

    /// The next message that may be sent.
    pub(super) fn next(
        &mut self,
        program: &Program,
        oracle: &Oracle<'_>,
    ) -> Result<Option<u64>, String> {
        while let Some(told) = oracle.told(End::Sender, self.heard) {
            self.heard += 1;
            match told.split_first() {
                Some((&OF_ONE, told)) => {
                    let (place, ticket) = told.split_first().ok_or("nothing was told")?;
                    let place = usize::from(*place) % PLACES as usize;
                    if let Some(found) = targets(program, ticket)? {
                        self.targets.splice(place..=place, found);
                        self.blocked[place] = false;
                    }
                }
                Some((_, told)) => {
                    let (first, all) = told.split_first_chunk().ok_or("nothing was told")?;
                    if let Some(found) = targets(program, all)? {
                        self.targets = found;
                    }
                    self.first = Some(u64::from_le_bytes(*first));
                }
                None => {}
            }
        }
        let first = *self.first.get_or_insert_with(|| oracle.sent());
        let after = u64::from(oracle.known().renewed_after);
        Ok(oracle.next(PLACES).filter(|number| {
            let is_renewed = after == 0 || *number < first + after;
            is_renewed && !self.blocked[(number % PLACES) as usize]
        }))
    }

    pub(super) fn of(&self, number: u64) -> Target {
        self.targets[(number % PLACES) as usize]
    }
}

/// Where such a flow begins.
pub(super) struct PlacesSender(Tickets);

impl PlacesSender {
    pub(super) fn new(targets: Vec<Target>) -> Self {
        Self(Tickets::new(targets))
    }
}

impl FlowSender for PlacesSender {
    fn step(&mut self, program: &Program, turn: Turn<'_>) -> Result<Step, String> {
        let oracle = turn.oracle;
        let Some(number) = self.0.next(program, oracle)?.filter(|_| turn.is_due) else {
            return Ok(Step::Nothing);
        };
        let kind = oracle.known().kind;
        let wait = match turn.random.below(4) {
            0 => Wait::Poll,
            1 if kind == Kind::OneShot => SHORT_WAIT,
            _ => Wait::Forever,
        };
        let target = self.0.of(number);
        let metadata = metadata_of(oracle, number);
        let terminus = program.terminus();
        let sent = send_message(oracle, number, |data| {
            let message = Message::new(data);
            let message = match kind {
                Kind::Fast => message.word(word_of(number, data.len())),
                Kind::Silent => message.silent(),
                _ => message.metadata(&metadata),
            };
            program
                .session()
                .send_msg(terminus, &target, &message, wait)
        })?;
        if let Sent::Cut = sent {
            // What has come of it must not be counted with the next.
            let place = number % PLACES;
            self.0.blocked[place as usize] = true;
            oracle.tell(End::Receiver, vec![place as u8]);
        }
        Ok(sent.step())
    }
}

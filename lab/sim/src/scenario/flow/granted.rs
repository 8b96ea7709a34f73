//! Messages to regions that are shared with their sender, and taken back again. Short ones go as
//! copies. Messages that were placed and not announced before the end are refused, and counted.

use hamlyn::engine::refusal::Refusal;
use hamlyn::region::{PLACED_BYTES_MIN, SharedOptions};
use hamlyn::{
    Access, Area, Attached, Holders, Message, NewSlot, Queue, ReceiveError, Region, RegionTicket,
    ShareError, Slot, Target, Wait,
};

use super::places::Tickets;
use super::{
    FlowReceiver, FlowSender, PLACES, Program, Sent, Step, Turn, parts_of, send_message, word_of,
    wrong,
};
use crate::random::Random;
use crate::scenario::history::{End, Oracle};
use crate::scenario::process;

/// Of each place, and of the guard before and behind them.
const PAGE_BYTES: u64 = 4096;
const GUARD: u8 = 0xa5;
/// Between two changes of mind this many turns go by.
const TURNS: u64 = 12;

/// The sender is told of a region, and of its end.
const BEGINS: u8 = 0;
const ENDS: u8 = 1;
/// What the receiver is told of a message: its data are about to be put in their place; they are;
/// they are not after all.
const PLACING: u8 = 0;
const PLACED: u8 = 1;
const UNPLACED: u8 = 2;

/// Places of which the pages are shared for a while.
pub(super) struct GrantedReceiver {
    area: Area,
    slot: Slot,
    queue: Queue,
    random: Random,
    region: Option<Region>,
    heard: usize,
    /// Messages that are announced by their header alone, as the sender says.
    placed: Vec<u64>,
    /// Those of them that may not be announced any more.
    barred: Vec<u64>,
    /// Those of these that were announced while their sender was still in its call, and may be
    /// copies.
    doubtful: Vec<u64>,
    refused: u64,
}

impl GrantedReceiver {
    pub(super) fn open(program: &Program, oracle: &Oracle<'_>) -> Result<Self, String> {
        // Both kinds, as the pages of a sparse one are copied one by one.
        let length_bytes = (PLACES + 2) * PAGE_BYTES;
        let options = match oracle.seed() % 2 {
            0 => SharedOptions::reserved(length_bytes),
            _ => SharedOptions::sparse(length_bytes),
        };
        let area = Area::shared(options);
        let area = area.map_err(wrong("allocating"))?;
        for at in [0, (PLACES + 1) * PAGE_BYTES] {
            // It lies within.
            let _ = area.fill(at, PAGE_BYTES, GUARD);
        }
        let queue = program.session().open_queue(PLACES as usize * 2);
        let queue = queue.map_err(wrong("opening a queue"))?;
        let new = NewSlot::new(&area)
            .range(PAGE_BYTES..(PLACES + 1) * PAGE_BYTES)
            .entries(PLACES as usize)
            .queue(&queue);
        let slot = program.session().open_slot(new);
        Ok(Self {
            area,
            slot: slot.map_err(wrong("opening a slot"))?,
            queue,
            random: Random::new(oracle.seed()),
            region: None,
            heard: 0,
            placed: Vec::new(),
            barred: Vec::new(),
            doubtful: Vec::new(),
            refused: 0,
        })
    }

    fn hear(&mut self, oracle: &Oracle<'_>) -> Result<(), String> {
        while let Some(told) = oracle.told(End::Receiver, self.heard) {
            self.heard += 1;
            let number = told.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
            let Some(number) = number else { continue };
            match told.last() {
                Some(&PLACING) => self.placed.push(number),
                Some(&PLACED) if self.doubtful.contains(&number) => return Err(too_late(number)),
                Some(&PLACED) => {}
                _ => {
                    self.placed.retain(|placed| *placed != number);
                    self.barred.retain(|barred| *barred != number);
                    self.doubtful.retain(|doubtful| *doubtful != number);
                }
            }
        }
        Ok(())
    }

    /// Takes an announcement. Whether there was one.
    fn take(&mut self, program: &Program, oracle: &Oracle<'_>) -> Result<bool, String> {
        let notification = match program.session().rcv(&mut self.queue) {
            Ok(Some(notification)) => notification,
            Ok(None) | Err(ReceiveError::PeerLost(_)) => return Ok(false),
            Err(error) => return Err(wrong("receiving")(error)),
        };
        self.hear(oracle)?;
        let metadata = self.slot.metadata();
        let entry = metadata
            .and_then(|all| all.entry(notification.metadata_index))
            .ok_or("an announcement of an entry that there is not")?;
        let (number, length) = parts_of(entry.metadata_word());
        if self.barred.contains(&number) {
            self.doubtful.push(number);
        }
        let mut bytes = vec![0; length];
        let at = PAGE_BYTES + number % PLACES * PAGE_BYTES;
        let read = self.area.read_at(at, &mut bytes);
        read.map_err(wrong("reading a place"))?;
        oracle.came(number, &bytes);
        Ok(true)
    }

    /// The pages, to the sender if it is near and linked.
    fn begin(&mut self, program: &Program, oracle: &Oracle<'_>) -> Result<bool, String> {
        let flow = oracle.known();
        let node = |process: usize| {
            oracle
                .plan
                .processes
                .get(process)
                .map(|process| process.node)
        };
        if flow.from == flow.to || node(flow.from) != node(flow.to) || oracle.is_ended() {
            return Ok(false);
        }
        let name = process::name(flow.from);
        let linked = program
            .session()
            .peers()
            .find(|(_, peer)| peer.name.as_deref() == Some(&name))
            .map(|(link, _)| link);
        let Some(link) = linked else {
            return Ok(false);
        };
        let pages = 0..PLACES * PAGE_BYTES;
        let holders = match oracle.seed() / 2 % 2 {
            0 => Holders::One(link),
            _ => Holders::Linked,
        };
        let mut session = program.session();
        match session.share(&self.slot, pages, Access::Writable, holders) {
            Ok(region) => {
                let mut told = vec![BEGINS];
                told.extend(region.ticket().to_bytes());
                oracle.tell(End::Sender, told);
                self.region = Some(region);
                Ok(true)
            }
            Err(ShareError::NoLink(_)) => Ok(false),
            Err(error) => Err(wrong("sharing")(error)),
        }
    }

    fn end(&mut self, program: &Program, oracle: &Oracle<'_>) -> Result<bool, String> {
        let Some(region) = self.region.take() else {
            return Ok(false);
        };
        match program.session().revoke(&region) {
            Ok(()) | Err(ShareError::NoSuchRegion) => {}
            Err(error) => return Err(wrong("revoking")(error)),
        }
        // What is in the queue by now was received before the end.
        while self.take(program, oracle)? {}
        self.hear(oracle)?;
        oracle.tell(End::Sender, vec![ENDS]);
        let barred = self.placed.drain(..);
        self.barred = barred.filter(|number| !oracle.has_come(*number)).collect();
        Ok(true)
    }

    /// What was refused as it should be needs not come.
    fn settle(&mut self, program: &Program, oracle: &Oracle<'_>) -> Result<(), String> {
        let info = program.session().slot_info(&self.slot);
        let refusals = info.map_err(wrong("looking at a slot"))?.refusals;
        let refused = refusals.count(Refusal::NotGranted);
        let most = self.refused + self.barred.len() as u64;
        if refused > most || refusals.total() != refused {
            return Err(format!("{refusals:?} were refused, and {most} to be"));
        }
        if refused == most || oracle.is_ended() {
            self.refused = refused;
            for number in self.barred.drain(..) {
                oracle.permit(number);
            }
        }
        Ok(())
    }
}

fn too_late(number: u64) -> String {
    format!("message {number} was placed in a region that is at an end, and announced")
}

impl FlowReceiver for GrantedReceiver {
    fn seed(&self, _: &Program) -> Result<Vec<u8>, String> {
        let mut all = Vec::new();
        for place in 0..PLACES {
            let ticket = self
                .slot
                .ticket(place as u16, place * PAGE_BYTES, PAGE_BYTES);
            all.extend(ticket.map_err(wrong("a ticket"))?.to_bytes());
        }
        Ok(all)
    }

    fn look(&mut self, program: &Program, oracle: &Oracle<'_>, _: Wait) -> Result<bool, String> {
        if oracle.is_old() {
            return Ok(false);
        }
        if !self.barred.is_empty() {
            self.settle(program, oracle)?;
        } else if self.random.below(TURNS) == 0 && !oracle.is_through() {
            let moved = match self.region {
                None => self.begin(program, oracle)?,
                Some(_) => self.end(program, oracle)?,
            };
            if moved {
                return Ok(true);
            }
        }
        self.take(program, oracle)
    }

    fn close(self: Box<Self>, program: &Program, _: &Oracle<'_>) -> Result<(), String> {
        let mut guard = vec![0; PAGE_BYTES as usize];
        for at in [0, (PLACES + 1) * PAGE_BYTES] {
            let read = self.area.read_at(at, &mut guard);
            read.map_err(wrong("reading the guard"))?;
            if guard.iter().any(|byte| *byte != GUARD) {
                return Err("bytes outside of the slot were written".to_owned());
            }
        }
        let closed = program
            .session()
            .close_slot(self.slot)
            .map_err(wrong("closing"));
        program.session().close_queue(self.queue);
        closed
    }
}

/// Where such a flow begins.
pub(super) struct GrantedSender {
    tickets: Tickets,
    heard: usize,
    region: Option<Attached>,
}

impl GrantedSender {
    pub(super) fn new(targets: Vec<Target>) -> Self {
        Self {
            tickets: Tickets::new(targets),
            heard: 0,
            region: None,
        }
    }

    fn hear(&mut self, program: &Program, oracle: &Oracle<'_>) -> Result<(), String> {
        while let Some(told) = oracle.told(End::Sender, self.heard) {
            self.heard += 1;
            match told.split_first() {
                Some((&BEGINS, ticket)) => {
                    let ticket = RegionTicket::from_bytes(ticket).map_err(wrong("a region"))?;
                    // It may be at an end already.
                    self.region = program.session().attach(&ticket, Wait::millis(1)).ok();
                }
                _ => {
                    if let Some(attached) = self.region.take() {
                        program.session().detach(&attached);
                    }
                }
            }
        }
        Ok(())
    }
}

impl FlowSender for GrantedSender {
    fn step(&mut self, program: &Program, turn: Turn<'_>) -> Result<Step, String> {
        let oracle = turn.oracle;
        self.hear(program, oracle)?;
        let Some(number) = oracle.next(PLACES).filter(|_| turn.is_due) else {
            return Ok(Step::Nothing);
        };
        let target = self.tickets.of(number);
        let metadata = word_of(number, oracle.length(number)).to_le_bytes();
        let terminus = program.terminus();
        let is_long = oracle.length(number) as u64 >= PLACED_BYTES_MIN;
        let is_placed = is_long && self.region.is_some();
        let wait = match is_placed {
            // A region that lasts now may have ended later.
            true => Wait::Poll,
            false => Wait::Forever,
        };
        let tell = |what: u8| {
            let number = number.to_le_bytes();
            oracle.tell(End::Receiver, [number.as_slice(), &[what]].concat());
        };
        if is_placed {
            tell(PLACING);
        }
        let attached = program.session().regions_attached();
        let sent = send_message(oracle, number, |data| {
            let message = Message::new(data).metadata(&metadata);
            program
                .session()
                .send_msg(terminus, &target, &message, wait)
        })?;
        // A region that was found at an end is no longer there, and the message went as a copy.
        let was_placed = program.session().regions_attached() == attached;
        if !was_placed {
            self.region = None;
        }
        if is_placed {
            tell(match was_placed && matches!(sent, Sent::Yes(_)) {
                true => PLACED,
                false => UNPLACED,
            });
        }
        Ok(sent.step())
    }
}

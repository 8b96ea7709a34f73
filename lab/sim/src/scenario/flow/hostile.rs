//! Senders with wrong keys, stale names, and bounds and rights that are not theirs; and their
//! victim, where nothing may change, nothing be announced, and every packet be counted with its
//! reason.

use hamlyn::engine::key::Key;
use hamlyn::engine::limits::{FAST_INDEX, USER_METADATA_BYTES};
use hamlyn::engine::metadata::Permission;
use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::slot::{Mode, Rights};
use hamlyn::engine::transport::Return;
use hamlyn::ticket::TicketKind;
use hamlyn::{
    Area, Message, NewSlot, Queue, ReceiveError, Slot, Target, Ticket, Undelivered, Wait,
};

use super::{FlowReceiver, FlowSender, Program, Sent, Step, Turn, outcome, wrong};
use crate::random::Random;
use crate::scenario::history::{End, Oracle, noise};
use crate::scenario::plan::Kind;

const SLOT_BYTES: u64 = 1_536;
const GUARD_BYTES: u64 = 64;
const FILL: u8 = 0x5a;
const ENTRIES: u64 = 4;
const ENTRY_BYTES: u64 = SLOT_BYTES / ENTRIES;
/// Bytes of a message that is one packet on any path: the smallest carries datagrams of 1,232 bytes
/// (decision 0012).
const FAR_BYTES_MAX: u32 = 1_000;

/// The entry of the one-shot slot that is spent.
const SPENT: u16 = 2;

// The slots, and the tickets that are told, by their numbers.
const REKEYED: usize = 0;
const READ_ONLY: usize = 1;
const PARANOID: usize = 2;
const ONE_SHOT: usize = 3;
const REOPENED: usize = 4;
const REVOKED: usize = 5;
const SLOTS: usize = 6;
/// The ticket of the first slot before it got another key.
const STALE_KEY: usize = SLOTS;
/// The ticket of the slot that was where the fifth is.
const STALE_NAME: usize = SLOTS + 1;
const TICKETS: usize = SLOTS + 2;

/// Slots of which nobody may change anything.
pub(super) struct Victim {
    area: Area,
    queue: Queue,
    slots: Vec<Slot>,
    tickets: Vec<Ticket>,
    /// Packets that the interface had refused when it was last looked at, and these slots.
    seen: u64,
    refused: u64,
}

impl Victim {
    pub(super) fn open(program: &Program) -> Result<Self, String> {
        let bytes = SLOTS as u64 * (SLOT_BYTES + GUARD_BYTES) + GUARD_BYTES;
        let area = program
            .session()
            .allocate(bytes)
            .map_err(wrong("allocating"))?;
        area.fill(0, bytes, FILL)
            .map_err(wrong("filling an area"))?;
        let queue = program.session().open_queue(16);
        let queue = queue.map_err(wrong("opening a queue"))?;
        let mut slots = Vec::new();
        let mut tickets = Vec::new();
        let mut stale_name = None;
        for number in 0..SLOTS {
            let base = GUARD_BYTES + number as u64 * (SLOT_BYTES + GUARD_BYTES);
            let mut new = NewSlot::new(&area)
                .range(base..base + SLOT_BYTES)
                .entries(ENTRIES as usize)
                .mode(match number {
                    PARANOID => Mode::Paranoid,
                    ONE_SHOT => Mode::ParanoidOneShot,
                    _ => Mode::Normal,
                })
                .queue(&queue);
            if number == READ_ONLY {
                new.rights = Rights::NONE;
            }
            let mut slot = program
                .session()
                .open_slot(new.clone())
                .map_err(wrong("opening a slot"))?;
            if number == REOPENED {
                stale_name = Some(slot.name());
                let closed = program.session().close_slot(slot);
                closed.map_err(wrong("closing a slot"))?;
                slot = program
                    .session()
                    .open_slot(new)
                    .map_err(wrong("opening a slot"))?;
            }
            if slot.metadata().is_some() && matches!(number, PARANOID | ONE_SHOT) {
                permit(program, &slot)?;
                // Of the first entry; an attacker knows the rest by heart.
                let ticket = slot.ticket(0, 0, ENTRY_BYTES);
                tickets.push(ticket.map_err(wrong("a ticket"))?);
            } else {
                let ticket = slot.fast_ticket(0, SLOT_BYTES);
                tickets.push(ticket.map_err(wrong("a ticket"))?);
            }
            slots.push(slot);
        }
        let stale_key = tickets[REKEYED];
        let rekeyed = program.session().rekey_slot(&mut slots[REKEYED]);
        rekeyed.map_err(wrong("giving a slot another key"))?;
        tickets[REKEYED] = slots[REKEYED]
            .fast_ticket(0, SLOT_BYTES)
            .map_err(wrong("a ticket"))?;
        let revoked = program.session().revoke_slot(&slots[REVOKED]);
        revoked.map_err(wrong("revoking a slot"))?;
        tickets.push(stale_key);
        tickets.push(Ticket {
            slot: stale_name.unwrap_or(tickets[REOPENED].slot),
            ..tickets[REOPENED]
        });
        Ok(Self {
            area,
            queue,
            slots,
            tickets,
            seen: 0,
            refused: 0,
        })
    }

    fn check(&self) -> Result<(), String> {
        let bytes = SLOTS as u64 * (SLOT_BYTES + GUARD_BYTES) + GUARD_BYTES;
        let mut found = vec![0; bytes as usize];
        let read = self.area.read_at(0, &mut found);
        read.map_err(wrong("reading an area"))?;
        if let Some(at) = found.iter().position(|byte| *byte != FILL) {
            return Err(format!("byte {at} was written by an attacker"));
        }
        let entries = self.slots.iter().filter_map(Slot::metadata);
        for area in entries {
            for index in 0..ENTRIES as u16 {
                let entry = area.entry(index);
                let is_touched = entry.is_some_and(|entry| {
                    entry.accumulator() != 0 || entry.metadata_length_bytes() != 0
                });
                if is_touched {
                    return Err(format!("entry {index} was written by an attacker"));
                }
            }
        }
        Ok(())
    }

    /// Counts what was refused, slot by slot. More than was sent is wrong.
    fn count_refusals(&mut self, program: &Program, oracle: &Oracle<'_>) -> Result<(), String> {
        self.refused = 0;
        for (number, slot) in self.slots.iter().enumerate() {
            let info = program.session().slot_info(slot);
            let refusals = info.map_err(wrong("looking at a slot"))?.refusals;
            self.refused += refusals.total();
            for &reason in Refusal::ALL {
                let (expected, found) = (oracle.expected(number, reason), refusals.count(reason));
                if found > expected && !oracle.is_old() {
                    return Err(format!(
                        "slot {number} refused {found} packets, and {expected} were to be: {reason}"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Gives each entry its part of the slot and a key that is known to those who have it: the first
/// one's, and so many more.
fn permit(program: &Program, slot: &Slot) -> Result<(), String> {
    let first = program.session().new_key().map_err(wrong("a new key"))?;
    for index in 0..ENTRIES as u16 {
        let low = u64::from(index) * ENTRY_BYTES;
        if let Some(entry) = slot.metadata().and_then(|all| all.entry(index)) {
            entry.permit(Permission {
                key: key_of(first, index),
                low,
                high: low + ENTRY_BYTES,
            });
            entry.arm();
            if index == SPENT {
                entry.disarm();
            }
        }
    }
    Ok(())
}

/// The key of an entry, from that of the first.
fn key_of(first: Key, index: u16) -> Key {
    Key::from_bits(first.to_bits().wrapping_add(u64::from(index)))
}

impl FlowReceiver for Victim {
    fn seed(&self, _: &Program) -> Result<Vec<u8>, String> {
        Ok(self
            .tickets
            .iter()
            .flat_map(|ticket| ticket.to_bytes())
            .collect())
    }

    fn look(&mut self, program: &Program, oracle: &Oracle<'_>, wait: Wait) -> Result<bool, String> {
        let found = match wait {
            Wait::Poll => program.session().rcv(&mut self.queue),
            _ => program.session().rcv_block(&mut self.queue, wait),
        };
        match found {
            Ok(Some(found)) => return Err(format!("{found:?} of an attacker was announced")),
            Ok(None) | Err(ReceiveError::PeerLost(_)) => {}
            Err(error) => return Err(wrong("receiving")(error)),
        }
        let refused = program.session().refusals().total();
        if std::mem::replace(&mut self.seen, refused) == refused {
            return Ok(false);
        }
        self.check()?;
        self.count_refusals(program, oracle)?;
        Ok(true)
    }

    fn is_done(&self, oracle: &Oracle<'_>) -> bool {
        let attacks = oracle.known().items.len();
        let is_over = attacks == 0 || oracle.told(End::Receiver, attacks - 1).is_some();
        oracle.is_ended() || is_over && self.refused == oracle.expected_of(0..SLOTS)
    }

    fn close(mut self: Box<Self>, program: &Program, oracle: &Oracle<'_>) -> Result<(), String> {
        self.check()?;
        self.count_refusals(program, oracle)?;
        for slot in self.slots {
            let closed = program.session().close_slot(slot);
            closed.map_err(wrong("closing"))?;
        }
        program.session().close_queue(self.queue);
        Ok(())
    }
}

/// An attack: at what, and why it must fail.
struct Attack {
    slot: usize,
    reason: Refusal,
    ticket: Ticket,
    /// Each packet of it fails, however many there are.
    may_be_long: bool,
}

/// Where attacks begin.
pub(super) struct Attacker {
    targets: Vec<Target>,
    fired: usize,
    /// Packets of these attacks, and how many of them came back: from another host all of them do,
    /// once.
    packets: u64,
    back: u64,
}

impl Attacker {
    pub(super) fn new(targets: Vec<Target>) -> Self {
        Self {
            targets,
            fired: 0,
            packets: 0,
            back: 0,
        }
    }

    fn attack(&self, random: &mut Random, length: u64) -> Attack {
        let ticket = |number: usize| *self.targets[number % TICKETS].ticket();
        let index = match random.below(2 * ENTRIES) {
            index if index < ENTRIES => index as u16,
            _ => FAST_INDEX,
        };
        // Any entry of a slot that its own key guards.
        let normal = |number: usize| Ticket {
            metadata_index: index,
            ..ticket(number)
        };
        let guarded = [PARANOID, ONE_SHOT, ONE_SHOT][random.below(3) as usize];
        let entry = [1, 3][random.below(2) as usize];
        let of_entry = |index: u16| Ticket {
            metadata_index: index,
            key: key_of(ticket(guarded).key, index),
            base: u64::from(index) * ENTRY_BYTES,
            ..ticket(guarded)
        };
        let attack = |slot, reason, ticket, may_be_long| Attack {
            slot,
            reason,
            ticket,
            may_be_long,
        };
        match random.below(15) {
            0 => {
                let key = Key::from_bits(random.bits());
                let ticket = Ticket {
                    key,
                    ..normal(REKEYED)
                };
                attack(REKEYED, Refusal::BadKey, ticket, true)
            }
            1 => attack(REKEYED, Refusal::BadKey, normal(STALE_KEY), true),
            2 => {
                let base = SLOT_BYTES - length + 1;
                let ticket = Ticket {
                    base,
                    ..normal(REKEYED)
                };
                attack(REKEYED, Refusal::OutOfBounds, ticket, false)
            }
            3 => {
                let base = match random.below(2) {
                    0 => SLOT_BYTES + random.below(1 << 40),
                    _ => u64::MAX - 4096,
                };
                let ticket = Ticket {
                    base: base + 1,
                    ..normal(REKEYED)
                };
                attack(REKEYED, Refusal::OutOfBounds, ticket, true)
            }
            4 => {
                let metadata_index = ENTRIES as u16 + random.below(100) as u16;
                let ticket = Ticket {
                    metadata_index,
                    ..ticket(REKEYED)
                };
                attack(REKEYED, Refusal::NoMetadataEntry, ticket, true)
            }
            5 => attack(READ_ONLY, Refusal::NoRight, normal(READ_ONLY), true),
            6 => {
                let ticket = Ticket {
                    metadata_index: FAST_INDEX,
                    ..of_entry(0)
                };
                attack(guarded, Refusal::FastToParanoid, ticket, true)
            }
            7 | 12 | 13 => {
                // One's own key, and another's entry.
                let ticket = Ticket {
                    key: ticket(guarded).key,
                    ..of_entry(entry)
                };
                attack(guarded, Refusal::BadEntryKey, ticket, false)
            }
            8 => {
                let own = of_entry(entry);
                let ticket = Ticket {
                    base: own.base - 1,
                    ..own
                };
                attack(guarded, Refusal::OutOfLimits, ticket, false)
            }
            9 => {
                let own = of_entry(random.below(2) as u16);
                let ticket = Ticket {
                    base: own.base + ENTRY_BYTES - length.min(ENTRY_BYTES) + 1,
                    ..own
                };
                attack(guarded, Refusal::OutOfLimits, ticket, false)
            }
            10 => {
                let ticket = Ticket {
                    slot: ticket(ONE_SHOT).slot,
                    key: key_of(ticket(ONE_SHOT).key, SPENT),
                    ..of_entry(SPENT)
                };
                attack(ONE_SHOT, Refusal::EntrySpent, ticket, false)
            }
            11 => attack(REVOKED, Refusal::SlotRevoked, normal(REVOKED), true),
            _ => attack(SLOTS, Refusal::SlotClosed, normal(STALE_NAME), true),
        }
    }
}

impl FlowSender for Attacker {
    fn step(&mut self, program: &Program, turn: Turn<'_>) -> Result<Step, String> {
        let oracle = turn.oracle;
        let left = self.fired < oracle.known().items.len();
        if !turn.is_due || !left || oracle.is_ended() {
            return Ok(Step::Nothing);
        }
        let node_of = |process: usize| oracle.plan.processes.get(process).map(|one| one.node);
        let is_far = node_of(oracle.known().from) != node_of(oracle.known().to);
        // Between hosts the largest packet changes with what the path is found to carry, so there a
        // message is one packet on any path.
        let most = if is_far { FAR_BYTES_MAX } else { u32::MAX };
        let payload = oracle.plan.packet_payload_bytes.min(most) as usize;
        // Such that one packet suffices, and an entry's limits.
        let single_bytes = (payload - USER_METADATA_BYTES).min(ENTRY_BYTES as usize) as u64;
        let mut length = match turn.random.below(5) {
            0 | 1 => 16,
            2 | 3 => turn.random.within(17..single_bytes + 1),
            _ => oracle.length(self.fired as u64) as u64,
        };
        let attack = self.attack(turn.random, length.clamp(1, single_bytes));
        if !attack.may_be_long {
            length = length.clamp(1, single_bytes);
        }
        let is_fast = attack.ticket.metadata_index == FAST_INDEX;
        length = match is_fast {
            true => length.min(payload as u64),
            false => length.min(u64::from(Kind::Hostile.longest_bytes().min(most))),
        };
        let metadata_bytes = match turn.random.below(4) {
            _ if is_fast || is_far => 0,
            0 => 0,
            1 => 13,
            _ => 8,
        };
        let data = noise(oracle.seed(), turn.random.bits(), length as usize);
        let metadata = noise(oracle.seed(), 1, metadata_bytes);
        let message = Message {
            word: if is_fast { 1 } else { 0 },
            metadata: &metadata,
            ..Message::new(&data)
        };
        let ticket = Ticket {
            length_bytes: length,
            ..attack.ticket
        };
        let packets = packets_of(length, metadata_bytes as u64, payload as u64);
        let Some(target) = self.targets[0].with_ticket(ticket) else {
            return Err("tickets of one process lead to several".to_owned());
        };
        let is_long = packets > 1 || length > 128;
        let wait = match turn.random.below(2) {
            0 if !is_long => Wait::Poll,
            _ => Wait::Forever,
        };
        oracle.expect(attack.slot, attack.reason, packets);
        let terminus = program.terminus();
        let sent = outcome(
            program
                .session()
                .send_msg(terminus, &target, &message, wait),
        )?;
        match sent {
            Sent::Yes(_) => {
                self.fired += 1;
                self.packets += packets;
                oracle.tell(End::Receiver, Vec::new());
            }
            Sent::NotNow => oracle.unexpect(attack.slot, attack.reason, packets),
            // Some of them may have gone, and come back.
            Sent::Cut | Sent::Lost => self.packets += packets,
        }
        Ok(sent.step())
    }

    fn came_back(&mut self, packet: &Undelivered, oracle: &Oracle<'_>) -> Result<(), String> {
        let is_ours = |target: &Target| {
            let ticket = target.ticket();
            packet.to == Some(ticket.destination) && packet.slot == ticket.slot
        };
        let is_refused =
            matches!(packet.reason, Return::Refused(_)) && packet.kind == TicketKind::Slot;
        if !is_refused || !self.targets.iter().any(is_ours) {
            return Ok(());
        }
        self.back += 1;
        if self.back > self.packets && !oracle.is_old() {
            let (back, packets) = (self.back, self.packets);
            return Err(format!("of {packets} packets {back} came back"));
        }
        Ok(())
    }

    fn is_done(&self, oracle: &Oracle<'_>) -> bool {
        let [from, to] = [oracle.known().from, oracle.known().to].map(|process| {
            oracle
                .plan
                .processes
                .get(process)
                .map(|process| process.node)
        });
        let is_back = from == to || self.back == self.packets;
        oracle.is_ended() || self.fired == oracle.known().items.len() && is_back
    }
}

/// So many packets a message needs: the first carries all metadata, and each as many data as it has
/// room for.
fn packets_of(length: u64, metadata_bytes: u64, payload: u64) -> u64 {
    let mut left = length.saturating_sub(payload - metadata_bytes);
    let mut packets = 1;
    while left > 0 {
        left = left.saturating_sub(payload);
        packets += 1;
    }
    packets
}

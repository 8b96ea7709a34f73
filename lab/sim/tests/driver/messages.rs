//! Messages that honest senders send, by every call that sends, and what becomes of them on their
//! way out.

use hamlyn_engine::counting::{Share, packets_needed};
use hamlyn_engine::limits::{
    FAST_INDEX, PACKET_PAYLOAD_MIN, SHORT_BYTES_WITH_WORD, USER_METADATA_BYTES,
};
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::{Address, Flags, Header, Kind, Short};
use hamlyn_engine::slot::Mode;
use hamlyn_engine::terminus::{Completion, GatherPiece, PostError, SendHandle};
use hamlyn_engine::transmit::{self, Posted, SendProgress};
use hamlyn_sim::reference::Violation;
use hamlyn_sim::reference::sending::{self, Message};

use super::host::{self, VecArea};
use super::{Driver, Goal, PAYLOADS, SEND_AREA_BYTES, modulus, noise, short_of};

/// Sequence numbers that are remembered, to be asked for.
const ASKED: usize = 12;

/// What is sent, before it is known how.
struct Draft {
    message: transmit::Message,
    metadata: Vec<u8>,
    data: Vec<u8>,
}

impl Draft {
    /// As the model is told of it.
    fn told(&self) -> Message {
        let share = self.message.share;
        Message {
            link: self.message.link,
            header: self.message.header,
            share: u128::from(share.minus_one()) + 1,
            modulus: modulus(share.counting()),
            metadata: self.metadata.clone(),
            data: self.data.clone(),
        }
    }

    /// Whether it is nothing but a header.
    fn is_plain(&self) -> bool {
        self.metadata.is_empty() && self.data.is_empty()
    }

    /// As a short packet, if it can be one.
    fn short(&self) -> Option<Short> {
        let header = &self.message.header;
        let to = Address::new(header.slot, header.metadata_index);
        let told = self.told();
        // With metadata it is for an entry, without it is in fast mode.
        let word = match self.metadata.as_slice() {
            [] if to.is_fast() => header.word,
            metadata if !to.is_fast() && told.share.is_multiple_of(told.modulus) => {
                u64::from_le_bytes(metadata.try_into().ok()?)
            }
            _ => return None,
        };
        (!header.flags.is_silent()).then(|| short_of(header, word, &self.data))?
    }
}

impl Driver {
    /// Where a message may go: mostly as the owner of the slot would say.
    pub(super) fn goal(&mut self) -> Option<Goal> {
        let at = self.any_slot()?;
        let slot = self.slots[at].clone();
        let fast = Goal {
            slot: slot.name,
            index: FAST_INDEX,
            key: slot.new.key,
            low: 0,
            high: slot.new.length_bytes,
            counting: slot.counting,
        };
        let Some(entries) = slot.new.entries else {
            return Some(fast);
        };
        if slot.new.mode == Mode::Normal && self.random.below(2) == 0 {
            return Some(fast);
        }
        let count = self.entries[entries].len() as u64;
        let mut index = self.random.below(count) as u16;
        // One that lets something in, if one is found.
        for _ in 0..3 {
            let entry = self.entries[entries].entry(index)?;
            if slot.new.mode != Mode::ParanoidOneShot || entry.is_armed() {
                break;
            }
            index = self.random.below(count) as u16;
        }
        if slot.new.mode == Mode::Normal {
            return Some(Goal { index, ..fast });
        }
        let permission = self.entries[entries].entry(index)?.permission()?;
        if permission.low >= slot.new.length_bytes {
            return None;
        }
        Some(Goal {
            index,
            key: permission.key,
            low: permission.low,
            high: permission.high.min(slot.new.length_bytes),
            ..fast
        })
    }

    pub(super) fn header(&mut self, goal: &Goal, offset: u64) -> Header {
        Header {
            slot: goal.slot,
            metadata_index: goal.index,
            key: goal.key,
            offset,
            length_bytes: 0,
            word: 0,
            metadata_length_bytes: 0,
            flags: Flags::NONE,
            kind: Kind::WRITE,
        }
    }

    fn any_link(&mut self) -> LinkId {
        self.links[self.random.below(self.links.len() as u64) as usize]
    }

    /// A message to somewhere; whole, or a part of a group.
    fn draft(&mut self) -> Result<Option<Draft>, Violation> {
        let Some(goal) = self.goal() else {
            return Ok(None);
        };
        let (goal, share) = match self.random.below(5) {
            0 | 1 if !self.group.is_empty() => self.group.swap_remove(0),
            2 if goal.index != FAST_INDEX && self.group.is_empty() => {
                self.divide(goal)?;
                self.group.swap_remove(0)
            }
            _ => (goal, Share::whole(goal.counting)),
        };
        let span = goal.high.saturating_sub(goal.low);
        let is_fast = goal.index == FAST_INDEX;
        let length = match self.random.below(8) {
            0..4 => self.random.below(SHORT_BYTES_WITH_WORD as u64 + 1),
            4 => self.random.below(4),
            5 => self.random.below(100),
            6 if !is_fast => self.random.below(span + 1),
            _ => self.random.below(span.min(300) + 1),
        };
        // Nearly all fit.
        let length = match self.random.below(12) {
            0 => length,
            _ => length.min(span),
        };
        let offset = match self.random.below(4) {
            0 => goal.low,
            1 => goal.high.saturating_sub(length),
            _ => goal.low + self.random.below(span.saturating_sub(length) + 1),
        };
        let metadata = match self.random.below(3) {
            _ if is_fast => 0,
            0 => 0,
            1 => 8,
            _ => self.random.below(USER_METADATA_BYTES as u64 + 1),
        };
        let mut header = self.header(&goal, offset);
        if is_fast {
            header.word = self.random.bits();
        }
        if self.random.below(8) == 0 {
            header.flags = Flags::SILENT;
        }
        let message = transmit::Message {
            link: self.any_link(),
            header,
            share,
        };
        Ok(Some(Draft {
            message,
            metadata: noise(&mut self.random, metadata as usize),
            data: noise(&mut self.random, length as usize),
        }))
    }

    /// Divides the count of a goal among several messages.
    fn divide(&mut self, goal: Goal) -> Result<(), Violation> {
        let whole = Share::whole(goal.counting);
        let count = |share: &Share| u128::from(share.minus_one()) + 1;
        let parts = 2 + self.random.below(3) as usize;
        let mut shares = Vec::new();
        if self.random.below(2) == 0 {
            let needed: Vec<u64> = (0..parts).map(|_| 1 + self.random.below(100)).collect();
            let divided = whole.divide(&needed, |share| shares.push(share));
            divided.map_err(|error| Violation::Unfinished(error.to_string()))?;
        } else {
            let mut rest = whole;
            for _ in 1..parts {
                let most = packets_needed(5_000, USER_METADATA_BYTES, PACKET_PAYLOAD_MIN);
                let (part, left) = rest
                    .take(most)
                    .map_err(|error| Violation::Unfinished(error.to_string()))?;
                shares.push(part);
                rest = left;
            }
            shares.push(rest);
        }
        let counts: Vec<u128> = shares.iter().map(count).collect();
        sending::divided(modulus(goal.counting), &counts)?;
        self.group = shares.into_iter().map(|share| (goal, share)).collect();
        Ok(())
    }

    pub(super) fn post(&mut self) -> Result<(), Violation> {
        let Some(mut draft) = self.draft()? else {
            return Ok(());
        };
        let mut number = self.random.below(self.termini.len() as u64) as usize;
        if draft.is_plain() {
            // Such messages look alike. If two termini had them, the model could not tell whose
            // left.
            number = 0;
        }
        let id = self.termini[number].id;
        let link = draft.message.link;
        let way = self.random.below(6);
        if way == 0
            && let Some(short) = draft.short()
        {
            let wires = &mut self.wires;
            let handle = self.transmitter.post_short(id, link, short, wires);
            if let Some(handle) = handle {
                return self.posted(number, handle.sequence, &draft);
            }
        }
        let posted = if way == 2 {
            let pieces = self.gather(number, &mut draft);
            let (message, metadata) = (&draft.message, &draft.metadata);
            self.transmitter
                .post_gather(id, message, metadata, &pieces, &mut self.wires)
        } else {
            let (message, metadata) = (&draft.message, &draft.metadata);
            let (transmitter, wires) = (&mut self.transmitter, &mut self.wires);
            match way {
                4 => transmitter.post_copied(id, message, metadata, &draft.data, wires),
                5 => {
                    let mut data = draft.data.clone();
                    let posted = transmitter.post_owned(id, message, metadata, &mut data, wires);
                    let is_kept = posted.is_ok_and(|posted| !posted.sent);
                    assert_eq!(data.is_empty(), is_kept || draft.data.is_empty());
                    posted
                }
                _ => transmitter.post(id, message, metadata, &draft.data, wires),
            }
        };
        self.note_posted(number, posted, &draft)
    }

    /// Pieces of the send-buffer area of a terminus in place of the data.
    fn gather(&mut self, number: usize, draft: &mut Draft) -> Vec<GatherPiece> {
        let sender = &self.termini[number];
        let mut left = draft.data.len() as u64;
        let mut pieces = Vec::new();
        draft.data.clear();
        while left > 0 && pieces.len() < 4 {
            let most = if pieces.len() == 3 {
                left
            } else {
                1 + self.random.below(left)
            };
            let length_bytes = most.min(SEND_AREA_BYTES as u64);
            let offset = self.random.below(SEND_AREA_BYTES as u64 - length_bytes + 1);
            pieces.push(GatherPiece {
                tag: sender.tag,
                offset,
                length_bytes,
            });
            let bytes = sender.area.bytes.borrow();
            let range = offset as usize..(offset + length_bytes) as usize;
            draft.data.extend_from_slice(&bytes[range]);
            left -= length_bytes;
        }
        pieces
    }

    fn note_posted(
        &mut self,
        number: usize,
        posted: Result<Posted, PostError>,
        draft: &Draft,
    ) -> Result<(), Violation> {
        match posted {
            Ok(posted) => self.posted(number, posted.handle.sequence, draft),
            // Nothing of it was sent; others may have been.
            Err(_) => self.note_departures(),
        }
    }

    fn posted(&mut self, number: usize, sequence: u64, draft: &Draft) -> Result<(), Violation> {
        self.figures.posted += 1;
        self.sending.posted(number, sequence, draft.told())?;
        let sent = &mut self.termini[number].sent;
        sent.push_back(sequence);
        if sent.len() > ASKED {
            sent.pop_front();
        }
        self.note_departures()?;
        self.sending.fits(number)
    }

    /// What left since is under way from now on.
    pub(super) fn note_departures(&mut self) -> Result<(), Violation> {
        for (link, packet) in self.wires.left.drain(..) {
            let (header, metadata) = (&packet.header, &packet.metadata);
            self.sending
                .departed(None, link, header, metadata, &packet.data)?;
            self.under_way.push(packet);
        }
        Ok(())
    }

    /// Sends a message from where it lies.
    pub(super) fn send_streaming(&mut self) -> Result<(), Violation> {
        let Some(draft) = self.draft()?.filter(|draft| !draft.is_plain()) else {
            return Ok(());
        };
        let number = self.random.below(self.termini.len() as u64) as usize;
        let id = self.termini[number].id;
        let (message, metadata) = (&draft.message, &draft.metadata);
        let bytes = draft.data.len() as u64;
        let begun = self
            .transmitter
            .begin_streaming(id, message, metadata, bytes, &self.wires);
        let Ok(mut segmenter) = begun else {
            return Ok(());
        };
        self.sending.streaming(number, draft.told());
        loop {
            let state = self.transmitter.continue_streaming(
                id,
                draft.message.link,
                &mut segmenter,
                &draft.metadata,
                &draft.data,
                &mut self.wires,
            );
            self.note_departures()?;
            match state {
                Ok(SendProgress::Sent) => break,
                Ok(SendProgress::More) => {}
                Ok(SendProgress::Full) => {
                    // As its receiver would: some room more.
                    let link = draft.message.link.index as usize;
                    if let Some(wire) = &mut self.wires.wires[link] {
                        wire.room += 1 + self.random.below(4);
                    }
                }
                Ok(SendProgress::Gone) | Err(_) => {
                    return self.sending.streaming_ended(number, None);
                }
            }
        }
        let handle = self.transmitter.finish_streaming(id);
        let sequence = handle.ok().map(|handle| handle.sequence);
        self.figures.posted += 1;
        self.sending.streaming_ended(number, sequence)
    }

    /// The holder of a grant stores into the slot by itself and announces it.
    pub(super) fn post_placed(&mut self) -> Result<(), Violation> {
        let granted = self.slots.iter().position(|slot| !slot.grants.is_empty());
        let Some(slot) = granted.map(|at| self.slots[at].clone()) else {
            return Ok(());
        };
        let Some((_, holder, range)) = self.random.one_of(&slot.grants).cloned() else {
            return Ok(());
        };
        let offset = self.random.within(range.clone());
        let length = self.random.below(range.end - offset + 1);
        let data = noise(&mut self.random, length as usize);
        let at = slot.new.base + offset;
        let area = &self.areas[slot.new.area];
        let stored = self.receiving.store_begins(slot.name, offset, data.len());
        if let Some((number, store)) = stored {
            let place = at as usize..(at + length) as usize;
            area.bytes.borrow_mut()[place].copy_from_slice(&data);
            let memory = self.receiving.memory_mut(number);
            memory.store_ends(store, &data);
        }
        let is_fast = slot.new.entries.is_none() || self.random.below(2) == 0;
        let goal = Goal {
            slot: slot.name,
            index: if is_fast { FAST_INDEX } else { 0 },
            key: slot.new.key,
            low: 0,
            high: 0,
            counting: slot.counting,
        };
        // Sometimes it says that it stored where it may not.
        let claimed = match self.random.below(4) {
            0 => self.random.below(slot.new.length_bytes - length + 1),
            _ => offset,
        };
        let mut header = self.header(&goal, claimed);
        header.flags = Flags::PLACED;
        // A word of its own tells it from others that are placed there.
        let word = self.random.bits();
        let metadata = if is_fast {
            header.word = word;
            Vec::new()
        } else {
            word.to_le_bytes().to_vec()
        };
        let draft = Draft {
            message: transmit::Message {
                link: self.links[holder.index as usize],
                header,
                share: Share::whole(goal.counting),
            },
            metadata,
            data,
        };
        let number = self.random.below(self.termini.len() as u64) as usize;
        let posted = self.transmitter.post_placed(
            self.termini[number].id,
            || draft.message,
            &draft.metadata,
            draft.data.len() as u32,
            &mut self.wires,
        );
        self.figures.placed += u64::from(posted.is_ok());
        if let Ok(posted) = posted {
            self.sending
                .posted(number, posted.handle.sequence, draft.told())?;
        }
        self.note_departures()?;
        self.sending.fits(number)
    }

    pub(super) fn pump(&mut self) -> Result<(), Violation> {
        for wire in self.wires.wires.iter_mut().flatten() {
            wire.room = self.random.below(8);
        }
        let most = match self.random.below(3) {
            0 => self.random.below(6) as usize,
            _ => usize::MAX,
        };
        self.transmitter.pump(&mut self.wires, most);
        self.note_departures()
    }

    pub(super) fn lose_link(&mut self) -> Result<(), Violation> {
        let at = self.random.below(self.links.len() as u64) as usize;
        let payload = self.random.one_of(&PAYLOADS).copied();
        let new = self
            .wires
            .add(payload.unwrap_or(PACKET_PAYLOAD_MIN), host::peer(at as u64));
        let old = std::mem::replace(&mut self.links[at], new);
        self.wires.wires[old.index as usize] = None;
        self.sending.link_lost(old);
        Ok(())
    }

    /// Takes a send-buffer area away, if it can be, and gives another one in its place.
    pub(super) fn rebind(&mut self) -> Result<(), Violation> {
        let number = self.random.below(self.termini.len() as u64) as usize;
        let sender = &mut self.termini[number];
        if self.transmitter.unbind_area(sender.id, sender.tag).is_err() {
            return Ok(());
        }
        sender.area = VecArea::from_bytes(noise(&mut self.random, SEND_AREA_BYTES));
        let length = SEND_AREA_BYTES as u64;
        sender.tag = self
            .transmitter
            .bind_area(sender.id, sender.area.clone(), 0, length)
            .map_err(|error| Violation::Unfinished(error.to_string()))?;
        Ok(())
    }

    pub(super) fn ask(&mut self) -> Result<(), Violation> {
        let number = self.random.below(self.termini.len() as u64) as usize;
        let sent = &self.termini[number].sent;
        let at = self.random.below(sent.len() as u64) as usize;
        match sent.get(at).copied() {
            Some(sequence) => self.ask_for(number, sequence),
            None => Ok(()),
        }
    }

    pub(super) fn ask_for(&mut self, number: usize, sequence: u64) -> Result<(), Violation> {
        let terminus = self.termini[number].id;
        let found = self
            .transmitter
            .completion(SendHandle { terminus, sequence });
        let found = found.map_err(|error| Violation::Unfinished(error.to_string()))?;
        self.figures.failed += u64::from(found == Completion::Failed);
        self.sending.completed(number, sequence, found)
    }
}

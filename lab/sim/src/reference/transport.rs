//! The transport between nodes, as its users may rely on it (`virtual-networks` 4.1 to 4.4): each
//! packet is taken once or comes back once, with the reason that its receiver gave; both only if
//! the association ended. Nothing is sent again without a cause that its sender could see.
//!
//! The model reads the bytes of frames by itself (`docs/protocol.md`). It refuses a frame that a
//! receiver is given twice, an acknowledgement of what was not taken, a return of what was
//! acknowledged, a return with another reason than the receiver's, a fence that is answered early,
//! and a retransmission without cause.

use std::collections::BTreeMap;

use hamlyn_engine::packet::Header;
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::{CloseReason, Return};

mod direction;
mod words;

use super::Violation;
use direction::{Answer, Direction, Frame, Taking};
use words::Words;

/// A packet by what it carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Its header.
    pub header: Header,
    /// Its metadata, then its data.
    pub bytes: Vec<u8>,
}

/// How soon a frame may be taken for lost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// While nothing is known of the way.
    pub first_ns: u64,
    /// Ever.
    pub least_ns: u64,
    /// After one before it was: within that a receiver has answered it.
    pub answer_ns: u64,
}

/// All associations of a world; each end is one sender and has a number.
#[derive(Clone, Debug, Default)]
pub struct Transport {
    ends: BTreeMap<u32, Direction>,
    has_begun_anew: bool,
}

impl Transport {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// An association between these ends.
    pub fn opened(&mut self, ends: [u32; 2], limits: Limits) {
        for (end, peer) in [(ends[0], ends[1]), (ends[1], ends[0])] {
            self.ends.insert(end, Direction::new(peer, limits));
        }
    }

    /// Whether the numbers of frames were used up, and began anew.
    pub fn has_begun_anew(&self) -> bool {
        self.has_begun_anew
    }

    /// Frames that were sent again so far.
    pub fn retransmitted(&self) -> u64 {
        self.ends.values().map(|end| end.retransmitted).sum()
    }

    /// An end accepted a packet.
    pub fn offered(&mut self, end: u32, packet: Sent) {
        if let Some(sender) = self.ends.get_mut(&end) {
            sender.offered.push_back(packet);
        }
    }

    /// The packet that it was offered last it did not accept.
    pub fn not_accepted(&mut self, end: u32) -> Result<(), Violation> {
        let sender = self.ends.get_mut(&end);
        match sender.map(|sender| sender.offered.pop_back().is_some()) {
            Some(false) => wrong(end, "sends a packet that it did not accept".to_owned()),
            _ => Ok(()),
        }
    }

    /// An end sends a frame with these packets, then and over that path.
    pub fn sent(
        &mut self,
        end: u32,
        (now_ns, path): (u64, u8),
        frame: &[u8],
        packets: impl FnOnce(&[u8]) -> Vec<Sent>,
    ) -> Result<(), Violation> {
        let Some(words) = Words::read(frame) else {
            return wrong(end, "sent bytes that are no frame".to_owned());
        };
        self.answers(end, &words)?;
        self.has_begun_anew |= words.packets.is_some_and(|(_, sequence, _)| sequence == 0);
        let Some(sender) = self.ends.get_mut(&end) else {
            return Ok(());
        };
        match words.packets {
            Some((channel, sequence, at)) => {
                let bytes = frame.get(at..).unwrap_or_default();
                sender.send(end, (now_ns, path), (channel, sequence), bytes, packets)
            }
            None => Ok(()),
        }
    }

    /// Whether an end acknowledges only what it took, and refuses what it refused.
    fn answers(&self, end: u32, words: &Words) -> Result<(), Violation> {
        let Some(peer) = self.ends.get(&end).and_then(|it| self.ends.get(&it.peer)) else {
            return Ok(());
        };
        let taking = |channel: u16, sequence: u32| {
            let frame = peer.channels.get(&channel);
            // Of a frame before, the sender has had the answer.
            match frame {
                Some(frame) if frame.sequence == sequence => Some(&frame.taking),
                _ => None,
            }
        };
        for &(channel, sequence) in &words.acknowledged {
            if let Some(found) = taking(channel, sequence)
                && *found != Taking::Taken(Vec::new())
            {
                return wrong(
                    end,
                    format!(
                        "acknowledges frame {sequence} of channel {channel}, which is {found:?}"
                    ),
                );
            }
        }
        for (channel, sequence, refused) in &words.nacks {
            let found = taking(*channel, *sequence);
            let is_so = match (found, refused) {
                (None, _) => true,
                (Some(Taking::Taken(found)), Some(told)) if told.is_part => {
                    told.refused.iter().all(|packet| found.contains(packet))
                }
                (Some(Taking::Taken(found)), Some(told)) => *found == told.refused,
                (Some(Taking::Not), None) => true,
                // What was not taken before may have come again meanwhile.
                (Some(_), None) => true,
                (Some(_), Some(_)) => false,
            };
            if !is_so {
                return wrong(
                    end,
                    format!(
                        "answers {refused:?} to frame {sequence} of channel {channel}, which is {found:?}"
                    ),
                );
            }
        }
        Ok(())
    }

    /// A frame came to an end then, undamaged: what the end learns from it.
    pub fn came(&mut self, end: u32, now_ns: u64, frame: &[u8]) {
        let Some(words) = Words::read(frame) else {
            return;
        };
        let Some(sender) = self.ends.get_mut(&end) else {
            return;
        };
        if sender.ended.is_some() {
            return;
        }
        sender.has_echo |= words.echoes;
        for (channel, sequence) in words.acknowledged {
            sender.answer(now_ns, channel, sequence, Answer::Taken);
        }
        for (channel, sequence, refused) in words.nacks {
            let answer = match refused {
                None => Answer::NotTaken,
                Some(told) if told.is_part => Answer::InPart,
                Some(_) => Answer::Taken,
            };
            sender.answer(now_ns, channel, sequence, answer);
        }
    }

    fn frame_to(&mut self, end: u32, channel: u16) -> Option<&mut Frame> {
        let peer = self.ends.get(&end)?.peer;
        self.ends.get_mut(&peer)?.channels.get_mut(&channel)
    }

    /// An end gives the packets of a frame that came to its interface.
    pub fn given(&mut self, end: u32, channel: u16, sequence: u32) -> Result<(), Violation> {
        match self.frame_to(end, channel) {
            Some(frame) if frame.sequence == sequence && frame.taking == Taking::Not => {
                frame.taking = Taking::Held(0, Vec::new());
                if let Some(receiver) = self.ends.get_mut(&end) {
                    receiver.given.push_back(channel);
                }
                Ok(())
            }
            found => {
                let found = found.map(|frame| (frame.sequence, frame.taking.clone()));
                wrong(
                    end,
                    format!("is given frame {sequence} of channel {channel}, where {found:?} is"),
                )
            }
        }
    }

    /// The interface of an end looks at a packet.
    pub fn received(&mut self, end: u32, packet: &Sent) -> Result<(), Violation> {
        let channel = self.next_channel(end);
        let frame = channel.and_then(|channel| self.frame_to(end, channel));
        let expected = frame.and_then(|frame| match frame.taking {
            Taking::Held(read, _) => frame.packets.get(read),
            _ => None,
        });
        match expected {
            Some((sent, _)) if sent == packet => Ok(()),
            Some((sent, _)) => wrong(
                end,
                format!("gives {packet:?} to its interface in place of {sent:?}"),
            ),
            None => wrong(
                end,
                format!("gives {packet:?} to its interface, which did not come"),
            ),
        }
    }

    /// The interface took that packet, or refused it.
    pub fn taken(&mut self, end: u32, refusal: Option<Refusal>) {
        let Some(channel) = self.next_channel(end) else {
            return;
        };
        let Some(frame) = self.frame_to(end, channel) else {
            return;
        };
        if let Taking::Held(read, refused) = &mut frame.taking {
            refused.extend(refusal.map(|why| (*read as u16, why as u8)));
            *read += 1;
            if *read == frame.packets.len() {
                frame.taking = Taking::Taken(std::mem::take(refused));
                if let Some(receiver) = self.ends.get_mut(&end) {
                    receiver.given.pop_front();
                }
            }
        }
    }

    fn next_channel(&self, end: u32) -> Option<u16> {
        self.ends.get(&end)?.given.front().copied()
    }

    /// The association of an end has ended.
    pub fn ended(&mut self, end: u32, why: CloseReason) {
        if let Some(sender) = self.ends.get_mut(&end) {
            sender.ended.get_or_insert(why);
        }
    }

    /// A packet came back to the end that had sent it.
    pub fn returned(
        &mut self,
        end: u32,
        packet: &Sent,
        why: Return,
        never_sent: bool,
    ) -> Result<(), Violation> {
        let Some(sender) = self.ends.get_mut(&end) else {
            return Ok(());
        };
        sender.returned.push((packet.header, why));
        match sender.take_back(packet, why, never_sent) {
            Ok(()) => Ok(()),
            Err(what) => wrong(
                end,
                format!(
                    "a packet to {} came back ({why}), {what}",
                    packet.header.slot
                ),
            ),
        }
    }

    /// The interface of an end is told of a packet that came back. Of some it may not be told.
    pub fn told(&mut self, end: u32, header: &Header, why: Return) -> Result<(), Violation> {
        let Some(sender) = self.ends.get_mut(&end) else {
            return Ok(());
        };
        let mut returned = sender.returned.iter();
        match returned.position(|returned| *returned == (*header, why)) {
            Some(place) => {
                sender.returned.remove(place);
                Ok(())
            }
            None => wrong(
                end,
                format!("says that {header:?} came back ({why}), which did not"),
            ),
        }
    }

    /// An end marks what it has accepted.
    pub fn fenced(&mut self, end: u32, mark: u64) {
        if let Some(sender) = self.ends.get_mut(&end) {
            let packets = sender.packets + sender.offered.len() as u64;
            sender.fences.insert(mark, packets);
        }
    }

    /// An end holds that everything before the mark has been answered.
    pub fn fence_answered(&self, end: u32, mark: u64) -> Result<(), Violation> {
        let Some(sender) = self.ends.get(&end) else {
            return Ok(());
        };
        let Some(&packets) = sender.fences.get(&mark) else {
            return Ok(());
        };
        let open = |frame: &&Frame| !frame.is_answered && frame.first < packets;
        if sender.packets < packets || sender.channels.values().any(|frame| open(&frame)) {
            return wrong(
                end,
                "a fence is answered, and something before it is not".to_owned(),
            );
        }
        Ok(())
    }
}

fn wrong(end: u32, what: String) -> Result<(), Violation> {
    Err(Violation::Transport { end, what })
}

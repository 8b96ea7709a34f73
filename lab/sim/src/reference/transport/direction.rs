//! One direction of an association, as the model of the transport sees it: which frames are under
//! way, and what their sender knows of them.

use std::collections::{BTreeMap, VecDeque};

use hamlyn_engine::packet::Header;
use hamlyn_engine::transport::{CloseReason, Return};

use super::super::Violation;
use super::words::Refused;
use super::{Limits, Sent, wrong};

/// What became of a frame at its receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Taking {
    /// It was not given to the receiver, or the receiver did not take it.
    Not,
    /// The receiver has it in its hands, has read so many of its packets, and refused these.
    Held(usize, Refused),
    /// The receiver took all of it but for these packets.
    Taken(Refused),
}

/// The last frame of a channel.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) sequence: u32,
    /// The bytes of its packets, the same whenever it is sent.
    pub(super) bytes: Vec<u8>,
    /// The packets, and whether each has come back.
    pub(super) packets: Vec<(Sent, bool)>,
    /// How many packets were sent for the first time before these.
    pub(super) first: u64,
    /// When it was sent last, and the how manieth of all that was.
    pub(super) sent_ns: u64,
    pub(super) number: u64,
    /// Over which path.
    pub(super) path: u8,
    /// Its sender has heard since then that it was not taken.
    pub(super) not_taken: bool,
    /// Its sender has heard what became of it.
    pub(super) is_answered: bool,
    /// In several frames, one of which may be missing: the frame may be sent again to hear the
    /// rest.
    pub(super) in_parts: bool,
    pub(super) taking: Taking,
}

/// What a sender hears of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    Taken,
    /// It was taken; of the packets that were refused some are named.
    InPart,
    NotTaken,
}

/// One direction of an association.
#[derive(Clone, Debug)]
pub(super) struct Direction {
    pub(super) peer: u32,
    pub(super) limits: Limits,
    /// Packets that were accepted and not sent yet.
    pub(super) offered: VecDeque<Sent>,
    /// Packets that were sent for the first time.
    pub(super) packets: u64,
    pub(super) channels: BTreeMap<u16, Frame>,
    pub(super) frames: u64,
    /// The newest frame, in the order of sending, that is known to have been taken.
    pub(super) answered: u64,
    /// The sender has learned how long an answer takes.
    pub(super) has_echo: bool,
    /// When a frame was last sent again as nothing was heard of it.
    pub(super) timed_out_ns: Option<u64>,
    /// Of each path when a frame that had gone over it was last sent again. There may be one path
    /// only.
    pub(super) lost_ns: BTreeMap<u8, u64>,
    pub(super) has_paths: bool,
    pub(super) ended: Option<CloseReason>,
    /// Marks whose answer is awaited: how many packets are before each.
    pub(super) fences: BTreeMap<u64, u64>,
    pub(super) retransmitted: u64,
    /// Packets that came back and of which the interface was not told yet.
    pub(super) returned: Vec<(Header, Return)>,
    /// Frames of the peer that wait for this end's interface, by channel, in order.
    pub(super) given: VecDeque<u16>,
}

impl Direction {
    pub(super) fn new(peer: u32, limits: Limits) -> Self {
        Self {
            peer,
            limits,
            offered: VecDeque::new(),
            packets: 0,
            channels: BTreeMap::new(),
            frames: 0,
            answered: 0,
            has_echo: false,
            timed_out_ns: None,
            lost_ns: BTreeMap::new(),
            has_paths: false,
            ended: None,
            fences: BTreeMap::new(),
            retransmitted: 0,
            returned: Vec::new(),
            given: VecDeque::new(),
        }
    }

    pub(super) fn send(
        &mut self,
        end: u32,
        (now_ns, path): (u64, u8),
        (channel, sequence): (u16, u32),
        bytes: &[u8],
        packets: impl FnOnce(&[u8]) -> Vec<Sent>,
    ) -> Result<(), Violation> {
        self.frames += 1;
        let number = self.frames;
        let (answered, limits) = (self.answered, self.limits);
        let least_ns = self.least_ns();
        let is_overdue =
            |frame: &Frame| !frame.is_answered && now_ns.saturating_sub(frame.sent_ns) >= least_ns;
        let is_any_overdue = self.channels.values().any(is_overdue);
        let timed_out_ns = self.timed_out_ns;
        self.has_paths |= path != 0;
        // A path that lost a frame may be given up, with all that is under way on it.
        let is_lost = |frame: &Frame| {
            !frame.is_answered
                && (now_ns.saturating_sub(frame.sent_ns) >= least_ns || answered > frame.number)
        };
        let has_paths = self.has_paths;
        let losing = self
            .channels
            .values()
            .filter(|frame| has_paths && is_lost(frame));
        let losing: Vec<u8> = losing.map(|frame| frame.path).collect();
        let lost_ns = self.lost_ns.clone();
        let given_up = |frame: &Frame| {
            let since = lost_ns.get(&frame.path);
            has_paths
                && (losing.contains(&frame.path)
                    || since.is_some_and(|at_ns| *at_ns >= frame.sent_ns))
        };
        let others_timed_out = |frame: &Frame| {
            is_any_overdue || timed_out_ns.is_some_and(|at_ns| at_ns >= frame.sent_ns)
        };
        if let Some(frame) = self.channels.get_mut(&channel)
            && frame.sequence == sequence
        {
            self.retransmitted += 1;
            let waited_ns = now_ns.saturating_sub(frame.sent_ns);
            let is_late = waited_ns >= least_ns;
            // No answer for long; a NACK; a later frame that was taken; or one before it had no
            // answer for long, and its own should be there.
            let has_cause = is_late
                || frame.not_taken
                || answered > frame.number
                || waited_ns >= limits.answer_ns && others_timed_out(frame)
                || given_up(frame);
            // The length of a frame may change, but not its packets.
            let common = frame.bytes.len().min(bytes.len());
            let is_same = frame.bytes[..common] == bytes[..common]
                || packets(bytes)
                    .iter()
                    .eq(frame.packets.iter().map(|(sent, _)| sent));
            let what = if !is_same {
                "with other packets"
            } else if frame.is_answered && !frame.in_parts {
                "though it was acknowledged"
            } else if !has_cause {
                "without cause"
            } else {
                // A NACK may be of an earlier transmission, and its timeout have passed as well.
                if !frame.not_taken || is_late {
                    self.lost_ns.insert(frame.path, now_ns);
                }
                (frame.sent_ns, frame.number, frame.not_taken) = (now_ns, number, false);
                frame.path = path;
                if is_late {
                    self.timed_out_ns = Some(now_ns);
                }
                return Ok(());
            };
            return wrong(
                end,
                format!(
                    "sends frame {sequence} of channel {channel} again {what}, after {waited_ns} ns"
                ),
            );
        }
        if self
            .channels
            .get(&channel)
            .is_some_and(|frame| !frame.is_answered)
        {
            return wrong(
                end,
                format!(
                    "sends frame {sequence} of channel {channel}, whose last frame is not answered"
                ),
            );
        }
        let mut of_frame = Vec::new();
        for packet in packets(bytes) {
            let Some(offered) = self.offered.pop_front() else {
                return wrong(end, "sends more packets than were accepted".to_owned());
            };
            if offered != packet {
                return wrong(
                    end,
                    format!("sends {:?} in place of {:?}", packet.header, offered.header),
                );
            }
            of_frame.push((packet, false));
        }
        let first = self.packets;
        self.packets += of_frame.len() as u64;
        self.channels.insert(
            channel,
            Frame {
                sequence,
                bytes: bytes.to_vec(),
                packets: of_frame,
                first,
                sent_ns: now_ns,
                number,
                path,
                not_taken: false,
                is_answered: false,
                in_parts: false,
                taking: Taking::Not,
            },
        );
        Ok(())
    }

    /// When a frame may be taken for lost of which nothing is heard.
    pub(super) fn least_ns(&self) -> u64 {
        match self.has_echo {
            true => self.limits.least_ns,
            false => self.limits.first_ns,
        }
    }

    /// The sender hears of a frame.
    pub(super) fn answer(&mut self, now_ns: u64, channel: u16, sequence: u32, answer: Answer) {
        let least_ns = self.least_ns();
        if let Some(frame) = self.channels.get_mut(&channel)
            && frame.sequence == sequence
        {
            match answer {
                Answer::Taken => frame.is_answered = true,
                Answer::InPart => (frame.is_answered, frame.in_parts) = (true, true),
                Answer::NotTaken => frame.not_taken = true,
            }
            // It may have been taken for lost before, as its timeout passed or a later one was
            // answered, and others with it.
            let is_late = now_ns.saturating_sub(frame.sent_ns) >= least_ns;
            if is_late {
                self.timed_out_ns = Some(now_ns);
            }
            if is_late || self.answered > frame.number {
                self.lost_ns.insert(frame.path, now_ns);
            }
            self.answered = self.answered.max(frame.number);
        }
    }

    pub(super) fn take_back(
        &mut self,
        packet: &Sent,
        why: Return,
        never_sent: bool,
    ) -> Result<(), &'static str> {
        if never_sent {
            let place = self.offered.iter().position(|offered| offered == packet);
            if self.ended.is_none() {
                return Err("was never sent, and the association has not ended");
            }
            return match place.and_then(|place| self.offered.remove(place)) {
                Some(_) => Ok(()),
                None => Err("as one that was never sent"),
            };
        }
        let mut found = "but is not under way";
        for frame in self.channels.values_mut() {
            for (index, (sent, is_back)) in frame.packets.iter_mut().enumerate() {
                if sent != packet {
                    continue;
                }
                let what = match (why, &frame.taking) {
                    _ if *is_back => "for the second time",
                    (Return::Refused(why), Taking::Taken(refused)) => {
                        let ours = refused.iter().find(|(at, _)| usize::from(*at) == index);
                        match ours {
                            Some(_) if !frame.is_answered => "though its sender has not heard that",
                            Some((_, reason)) if *reason == why as u8 => "",
                            Some(_) => "for another reason than its receiver's",
                            None => "but was taken",
                        }
                    }
                    (Return::Refused(_), _) => "but was not taken or refused",
                    (Return::Ended(why), _) if self.ended != Some(why) => {
                        "and the association has not ended so"
                    }
                    (Return::Ended(_), _) if frame.is_answered => "but was acknowledged",
                    (Return::Ended(_), _) => "",
                    _ => "for a reason that there is not",
                };
                if what.is_empty() {
                    *is_back = true;
                    return Ok(());
                }
                found = what;
            }
        }
        Err(found)
    }
}

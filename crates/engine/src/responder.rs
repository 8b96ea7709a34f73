//! Answers to one-sided operations that wait to be sent (decision 0037): a line for each link, no
//! longer than [`RESPONSES_PER_LINK`].
//!
//! A link that has no room holds up no other link. A line has memory from its link's first request
//! on. An answer that waits alone is in no line: so is nearly every one.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::limits::{FAST_INDEX, SHORT_BYTES_WITH_WORD};
use crate::memory::{Area, LinkId, Part, TxLinks, Unsent};
use crate::operation::{AnswerWord, RESPONSES_PER_LINK, ReturnPlace};
use crate::packet::{Flags, Header, Kind, SlotName};
use crate::point::Point;
use crate::refusal::Refusal;

/// Answers of one link that are sent before the next link has its turn.
const TURN_ANSWERS: usize = 16;

/// Words of an answer that was fetched at once: one short packet holds them beside its word.
pub(crate) const FETCHED_WORDS: usize = SHORT_BYTES_WITH_WORD / size_of::<u64>();

/// What a request gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Response {
    /// These bytes of a slot, from where the next packet goes on.
    Bytes {
        slot: SlotName,
        offset: u64,
        length_bytes: u32,
    },
    /// So many bytes were put.
    Put(u32),
    /// So many bytes of these words, lowest first: they were fetched when the request was carried
    /// out.
    Fetched([u64; FETCHED_WORDS], u32),
    /// No, and so many bytes will not come.
    Refused(Refusal, u32),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) to: ReturnPlace,
    pub(crate) response: Response,
}

#[derive(Debug)]
struct Line {
    link: LinkId,
    answers: VecDeque<Answer>,
}

/// The lines of all links.
#[derive(Debug, Default)]
pub(crate) struct Responder {
    /// Whether any answer waits.
    is_waiting: bool,
    /// The only answer that waits; then all lines are empty.
    alone: Option<(LinkId, Answer)>,
    /// By the link's index.
    lines: Vec<Option<Line>>,
    /// Indices of lines that are not empty, in the order in which they are served.
    listed: VecDeque<u32>,
}

impl Responder {
    /// Whether any answer waits.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Whether that link may have one more answer.
    pub(crate) fn has_room(&self, link: LinkId) -> bool {
        let line = self.lines.get(link.index as usize);
        line.and_then(Option::as_ref)
            .is_none_or(|line| line.link != link || line.answers.len() < RESPONSES_PER_LINK)
    }

    /// Reserves memory for the line of a link, so that [`Responder::push`] allocates none.
    pub(crate) fn reserve(&mut self, link: LinkId) {
        self.make_line(link);
        self.listed.reserve(self.lines.len() - self.listed.len());
    }

    /// Puts an answer into the line of its link, which has room.
    #[inline]
    pub(crate) fn push(&mut self, link: LinkId, answer: Answer) {
        if !self.is_waiting {
            self.is_waiting = true;
            self.alone = Some((link, answer));
            return;
        }
        if let Some((link, answer)) = self.alone.take() {
            self.enter_line(link, answer);
        }
        self.enter_line(link, answer);
    }

    fn make_line(&mut self, link: LinkId) -> &mut Line {
        let index = link.index as usize;
        if self.lines.len() <= index {
            self.lines.resize_with(index + 1, || None);
        }
        let line = self.lines[index].get_or_insert_with(|| Line {
            link,
            answers: VecDeque::with_capacity(RESPONSES_PER_LINK),
        });
        if line.link != link {
            line.link = link;
            line.answers.clear();
        }
        line
    }

    fn enter_line(&mut self, link: LinkId, answer: Answer) {
        let line = self.make_line(link);
        line.answers.push_back(answer);
        if line.answers.len() == 1 && !self.listed.contains(&link.index) {
            self.listed.push_back(link.index);
        }
    }

    /// A link is gone, and what waits for it.
    pub(crate) fn link_ended(&mut self, link: LinkId) {
        self.alone.take_if(|(of, _)| *of == link);
        if let Some(line) = self.lines.get_mut(link.index as usize)
            && line.as_ref().is_some_and(|line| line.link == link)
        {
            *line = None;
            self.listed.retain(|&listed| listed != link.index);
        }
        self.is_waiting = self.alone.is_some() || !self.listed.is_empty();
    }

    /// Sends what waits, as far as there is room: each line has one turn. How many packets went.
    /// `answered` is told of each answer that is sent as a whole. `bytes_of` says where the bytes
    /// of a slot lie, or why they may not be read any more.
    pub(crate) fn pump<'a, A: Area + 'a, O: TxLinks<A>>(
        &mut self,
        tx_links: &mut O,
        bytes_of: impl Fn(SlotName, u64, u32) -> Result<(&'a A, u64), Refusal>,
        mut answered: impl FnMut(LinkId),
    ) -> usize {
        let mut sent = 0;
        if let Some((link, mut answer)) = self.alone.take() {
            let done = send_one(link, &mut answer, tx_links, &bytes_of);
            if done == Ok(true) {
                answered(link);
                self.is_waiting = false;
                return 1;
            }
            sent += usize::from(done.is_ok());
            self.enter_line(link, answer);
        }
        for _ in 0..self.listed.len() {
            let Some(index) = self.listed.pop_front() else {
                break;
            };
            let Some(Some(line)) = self.lines.get_mut(index as usize) else {
                continue;
            };
            for _ in 0..TURN_ANSWERS {
                let Some(answer) = line.answers.front_mut() else {
                    break;
                };
                match send_one(line.link, answer, tx_links, &bytes_of) {
                    Ok(is_whole) => {
                        sent += 1;
                        if is_whole {
                            line.answers.pop_front();
                            answered(line.link);
                        }
                    }
                    // A link that is not there may not be there yet; what waits for one that ended
                    // is dropped with it.
                    Err(Unsent::Full | Unsent::Gone) => break,
                }
            }
            if !line.answers.is_empty() {
                self.listed.push_back(index);
            }
        }
        self.is_waiting = !self.listed.is_empty();
        sent
    }
}

/// Sends one packet of an answer; whether it was the last one.
fn send_one<'a, A: Area + 'a, O: TxLinks<A>>(
    link: LinkId,
    answer: &mut Answer,
    tx_links: &mut O,
    bytes_of: &impl Fn(SlotName, u64, u32) -> Result<(&'a A, u64), Refusal>,
) -> Result<bool, Unsent> {
    let to = answer.to;
    match answer.response {
        Response::Bytes {
            slot,
            offset,
            length_bytes,
        } => {
            let payload_max = tx_links.payload_max_bytes(link).ok_or(Unsent::Gone)?;
            let now = length_bytes.min(payload_max as u32);
            // Looked up anew for each packet: a slot that was closed or revoked meanwhile is not
            // read.
            let (area, at) = match bytes_of(slot, offset, now) {
                Ok(found) => found,
                Err(reason) => {
                    let header = to.header(0, length_bytes, true, Some(reason));
                    offer(tx_links, link, &header, &[])?;
                    return Ok(true);
                }
            };
            let part = Part::Area {
                area,
                offset: at,
                length_bytes: now,
            };
            let is_last = now == length_bytes;
            offer(tx_links, link, &to.header(now, now, is_last, None), &[part])?;
            answer.to.offset = to.offset.wrapping_add(u64::from(now));
            answer.response = Response::Bytes {
                slot,
                offset: offset + u64::from(now),
                length_bytes: length_bytes - now,
            };
            return Ok(is_last);
        }
        Response::Put(bytes) => {
            offer(tx_links, link, &to.header(0, bytes, true, None), &[])?;
        }
        Response::Fetched(words, length_bytes) => {
            let mut bytes = [0; SHORT_BYTES_WITH_WORD];
            for (into, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
                *into = word.to_le_bytes();
            }
            let part = Part::Bytes(&bytes[..length_bytes as usize]);
            let header = to.header(length_bytes, length_bytes, true, None);
            offer(tx_links, link, &header, &[part])?;
        }
        Response::Refused(reason, bytes) => {
            offer(
                tx_links,
                link,
                &to.header(0, bytes, true, Some(reason)),
                &[],
            )?;
        }
    }
    Ok(true)
}

fn offer<A: Area, O: TxLinks<A>>(
    tx_links: &mut O,
    link: LinkId,
    header: &Header,
    parts: &[Part<'_, A>],
) -> Result<(), Unsent> {
    tx_links.passes(Point::PacketCut);
    if header.length_bytes != 0 {
        tx_links.passes(Point::DataFetched(header.length_bytes));
    }
    tx_links.offer(link, header, &[], parts)?;
    if header.length_bytes != 0 {
        tx_links.passes(Point::Answered);
    }
    Ok(())
}

impl ReturnPlace {
    /// The header of a packet of an answer, with so many bytes of data.
    fn header(
        &self,
        length_bytes: u32,
        answered_bytes: u32,
        is_last: bool,
        refused: Option<Refusal>,
    ) -> Header {
        let word = AnswerWord {
            token: self.token,
            bytes: answered_bytes,
            is_last,
            refused: refused.map(|reason| reason as u8),
        };
        Header {
            slot: self.slot,
            metadata_index: FAST_INDEX,
            key: self.key,
            offset: self.offset,
            length_bytes,
            word: word.to_bits(),
            metadata_length_bytes: 0,
            flags: Flags::NONE,
            kind: Kind::WRITE,
        }
    }
}

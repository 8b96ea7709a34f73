//! The sending half: which packets may leave, and what is true of completions (`Hamlyn 2.3`,
//! `2.5`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::Header;
use hamlyn_engine::terminus::Completion;

use super::Violation;

/// A message as its sender handed it over.
#[derive(Clone, Debug)]
pub struct Message {
    /// Over which link.
    pub link: LinkId,
    /// Slot, metadata index, key, offset, flags, kind; in fast mode the word. Lengths are not
    /// looked at.
    pub header: Header,
    /// Its share of the receiver's count, from 1 to the modulus.
    pub share: u128,
    /// The modulus: 2^32 or 2^64.
    pub modulus: u128,
    /// Its metadata.
    pub metadata: Vec<u8>,
    /// Its data. Of a placed message, what was stored.
    pub data: Vec<u8>,
}

/// A message on its way out.
#[derive(Clone, Debug)]
struct Outgoing {
    message: Message,
    sequence: u64,
    sent_bytes: usize,
    started: bool,
    /// Sum of the deltas of its packets.
    sum: u128,
}

impl Outgoing {
    fn new(message: Message, sequence: u64) -> Self {
        Self {
            message,
            sequence,
            sent_bytes: 0,
            started: false,
            sum: 0,
        }
    }

    fn is_sent(&self) -> bool {
        self.started && self.sent_bytes == self.message.data.len()
    }

    fn is_placed(&self) -> bool {
        self.message.header.flags.is_placed()
    }

    /// Whether that is its next packet, and if not, why not.
    fn next(&self, header: &Header, metadata: &[u8], data: &[u8]) -> Result<(), &'static str> {
        let ours = &self.message.header;
        let names = |header: &Header| {
            (
                header.slot,
                header.metadata_index,
                header.key,
                header.flags,
                header.kind,
            )
        };
        if names(header) != names(ours) {
            return Err("no message's");
        }
        if header.offset != ours.offset + self.sent_bytes as u64 {
            return Err("for another place than its message's next");
        }
        let expected_metadata: &[u8] = if self.started {
            &[]
        } else {
            &self.message.metadata
        };
        if metadata != expected_metadata
            || usize::from(header.metadata_length_bytes) != metadata.len()
        {
            return Err("without the metadata of its message, or with them twice");
        }
        let left = &self.message.data[self.sent_bytes..];
        if self.is_placed() {
            if header.length_bytes as usize != left.len() || !data.is_empty() {
                return Err("not the whole of a placed message");
            }
        } else if header.length_bytes as usize != data.len() || !left.starts_with(data) {
            return Err("not the next bytes of its message");
        } else if data.is_empty() && !left.is_empty() {
            return Err("empty, though its message is not");
        }
        let delta = u128::from(header.word);
        if ours.metadata_index == u16::MAX {
            return if header.word == ours.word && header.length_bytes as usize == left.len() {
                Ok(())
            } else {
                Err("a part of a message in fast mode, or has another word")
            };
        }
        // The deltas of a message make up its share with its last packet, and not before.
        let is_last = header.length_bytes as usize == left.len();
        let (sum, share) = (self.sum + delta, self.message.share);
        if is_last && sum % self.message.modulus != share % self.message.modulus {
            return Err("the last of its message, whose deltas do not make up its share");
        }
        if !is_last && (delta == 0 || sum >= share) {
            return Err("a part of a message, whose deltas make up its share too early");
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
struct Terminus {
    entries: usize,
    /// What waits, in the order in which it was posted; apart for each link, which no message of
    /// another holds up.
    queues: BTreeMap<LinkId, VecDeque<Outgoing>>,
    /// Messages that are sent from where they lie.
    guests: Vec<Outgoing>,
    /// How many of these are all sent, and were not reported so.
    sent_guests: u64,
    failed: BTreeMap<LinkId, BTreeSet<u64>>,
}

/// The sending half of an interface: its termini, by number.
#[derive(Clone, Debug, Default)]
pub struct Sending {
    termini: Vec<Option<Terminus>>,
    /// Messages that were accepted, by all termini.
    posted: u64,
    lost: BTreeSet<LinkId>,
}

impl Sending {
    /// Without termini.
    pub fn new() -> Self {
        Self::default()
    }

    /// A terminus whose work queue has so many entries for each link; its number.
    pub fn open(&mut self, entries: usize) -> usize {
        self.termini.push(Some(Terminus {
            entries,
            queues: BTreeMap::new(),
            guests: Vec::new(),
            sent_guests: 0,
            failed: BTreeMap::new(),
        }));
        self.termini.len() - 1
    }

    /// It was closed; what waited in it never leaves.
    pub fn closed(&mut self, terminus: usize) {
        self.termini[terminus] = None;
    }

    /// The terminus took a message under that sequence number. To be told before its packets.
    pub fn posted(
        &mut self,
        number: usize,
        sequence: u64,
        message: Message,
    ) -> Result<(), Violation> {
        let Some(terminus) = &mut self.termini[number] else {
            return Err(Violation::Unfinished(format!(
                "terminus {number} is closed and took a message"
            )));
        };
        count(&mut self.posted, number, sequence)?;
        let queue = terminus.queues.entry(message.link).or_default();
        queue.push_back(Outgoing::new(message, sequence));
        Ok(())
    }

    /// Messages that are a packet each left as they were posted, so many, the last of them with
    /// that number and that header. None may pass by one that waits.
    pub fn shorts_left(
        &mut self,
        number: usize,
        sequence: u64,
        messages: u64,
        link: LinkId,
        header: &Header,
    ) -> Result<(), Violation> {
        self.posted += messages - 1;
        count(&mut self.posted, number, sequence)?;
        let terminus = self.termini[number].as_ref();
        let queue = terminus.and_then(|terminus| terminus.queues.get(&link));
        if queue.is_none_or(VecDeque::is_empty) {
            return Ok(());
        }
        Err(Violation::Departed {
            why: "before one that was posted earlier",
            header: *header,
            link,
        })
    }

    /// Whether all that waits for each link fits its work queue, now that packets have left.
    pub fn fits(&self, number: usize) -> Result<(), Violation> {
        let Some(terminus) = &self.termini[number] else {
            return Ok(());
        };
        for (link, queue) in &terminus.queues {
            if queue.len() > terminus.entries && !self.lost.contains(link) {
                return Err(Violation::Posted {
                    terminus: number,
                    what: "messages in its work queue:",
                    expected: terminus.entries as u64,
                    found: queue.len() as u64,
                });
            }
        }
        Ok(())
    }

    /// The terminus begins a message that is sent from where it lies. If such a one was begun and
    /// nothing of it was sent, that is given up.
    pub fn streaming(&mut self, number: usize, message: Message) {
        if let Some(terminus) = &mut self.termini[number] {
            terminus.guests.retain(|guest| {
                guest.started
                    || guest.message.link != message.link
                    || guest.message.header != message.header
            });
            terminus.guests.push(Outgoing::new(message, 0));
        }
    }

    /// The streaming send ended: with that sequence number if it is all sent, or all that were
    /// begun were cut.
    pub fn streaming_ended(
        &mut self,
        number: usize,
        sequence: Option<u64>,
    ) -> Result<(), Violation> {
        let Some(terminus) = &mut self.termini[number] else {
            return Ok(());
        };
        let Some(sequence) = sequence else {
            terminus.guests.clear();
            return Ok(());
        };
        count(&mut self.posted, number, sequence)?;
        match terminus.sent_guests.checked_sub(1) {
            Some(left) => {
                terminus.sent_guests = left;
                Ok(())
            }
            None => {
                let begun = terminus.guests.iter().map(|guest| {
                    format!("{} of {} bytes", guest.sent_bytes, guest.message.data.len())
                });
                let begun: Vec<String> = begun.collect();
                Err(Violation::Unfinished(format!(
                    "a streaming send is done with {} sent",
                    begun.join(", ")
                )))
            }
        }
    }

    /// A link is gone: what waits for it fails.
    pub fn link_lost(&mut self, link: LinkId) {
        self.lost.insert(link);
    }

    /// Termini know that a link is gone: what waits for it has failed.
    pub fn link_ended(&mut self, link: LinkId) {
        self.link_lost(link);
        for terminus in self.termini.iter_mut().flatten() {
            terminus.fail(link);
        }
    }

    /// The first message that waits there cannot be carried any more: it failed.
    pub fn first_failed(&mut self, number: usize, link: LinkId) {
        if let Some(terminus) = &mut self.termini[number]
            && let Some(first) = terminus.queues.entry(link).or_default().pop_front()
        {
            terminus
                .failed
                .entry(link)
                .or_default()
                .insert(first.sequence);
        }
    }

    /// A packet left, of that terminus if it is known. It must be the next of a message whose turn
    /// it is.
    pub fn departed(
        &mut self,
        of: Option<usize>,
        link: LinkId,
        header: &Header,
        metadata: &[u8],
        data: &[u8],
    ) -> Result<(), Violation> {
        let mut why = "no message's";
        let termini = self.termini.iter_mut().enumerate();
        let termini = termini.filter(|(number, _)| of.is_none_or(|of| of == *number));
        for terminus in termini.filter_map(|(_, terminus)| terminus.as_mut()) {
            let queue = terminus.queues.entry(link).or_default();
            let queued = queue.front_mut();
            let guests = terminus.guests.iter_mut();
            let guests = guests.filter(|guest| guest.message.link == link);
            for outgoing in queued.into_iter().chain(guests) {
                match outgoing.next(header, metadata, data) {
                    Err("no message's") => {}
                    Err(found) => why = found,
                    Ok(()) => {
                        outgoing.started = true;
                        outgoing.sent_bytes += header.length_bytes as usize;
                        outgoing.sum += u128::from(header.word);
                        let is_done = outgoing.is_sent();
                        match (is_done, outgoing.sequence == 0) {
                            (true, true) => {
                                terminus.guests.retain(|guest| !guest.is_sent());
                                terminus.sent_guests += 1;
                            }
                            (true, false) => drop(queue.pop_front()),
                            (false, _) => {}
                        }
                        return Ok(());
                    }
                }
            }
        }
        Err(Violation::Departed {
            why,
            header: *header,
            link,
        })
    }

    /// What the terminus says of a message that it took.
    pub fn completed(
        &mut self,
        number: usize,
        sequence: u64,
        found: Completion,
    ) -> Result<(), Violation> {
        let Some(terminus) = &mut self.termini[number] else {
            return Ok(());
        };
        let waits = |(_, queue): (&LinkId, &VecDeque<Outgoing>)| {
            queue.iter().any(|outgoing| outgoing.sequence == sequence)
        };
        let waits_for = terminus.queues.iter().find(|entry| waits(*entry));
        let waits_for = waits_for.map(|(link, _)| *link);
        // That a link is lost may be known to the terminus at once, or when it next offers a
        // packet.
        if found == Completion::Failed
            && let Some(link) = waits_for
            && self.lost.contains(&link)
        {
            terminus.fail(link);
        }
        let has_failed = |failed: &BTreeSet<u64>| failed.contains(&sequence);
        let failed = terminus.failed.values().find(|failed| has_failed(failed));
        let expected = match failed {
            Some(_) => Completion::Failed,
            None if waits_for.is_some() || sequence > self.posted => Completion::Pending,
            None => Completion::Sent,
        };
        // A failure is remembered until as many later ones to its destination as the queue holds.
        let forgotten = found == Completion::Sent
            && failed.is_some_and(|failed| failed.range(sequence..).count() > terminus.entries);
        if found == expected || forgotten {
            return Ok(());
        }
        Err(Violation::Completion {
            terminus: number,
            sequence,
            expected,
            found,
        })
    }

    /// Links have room and all was pumped: nothing waits but what can never leave, and that has
    /// failed.
    pub fn quiet(&mut self) -> Result<(), Violation> {
        for (number, terminus) in self.termini.iter_mut().enumerate() {
            let Some(terminus) = terminus else { continue };
            self.lost.iter().for_each(|&link| terminus.fail(link));
            if let Some(first) = terminus.queues.values().find_map(VecDeque::front) {
                return Err(Violation::Unfinished(format!(
                    "message {} of terminus {number} has not left: {} of {} bytes",
                    first.sequence,
                    first.sent_bytes,
                    first.message.data.len()
                )));
            }
        }
        Ok(())
    }
}

/// One more message was accepted, under that number.
fn count(posted: &mut u64, terminus: usize, sequence: u64) -> Result<(), Violation> {
    *posted += 1;
    if sequence == *posted {
        return Ok(());
    }
    Err(Violation::Posted {
        terminus,
        what: "its number is",
        expected: *posted,
        found: sequence,
    })
}

impl Terminus {
    /// All that waits for that link has failed.
    fn fail(&mut self, link: LinkId) {
        let waiting = self.queues.remove(&link).unwrap_or_default();
        let sequences = waiting.iter().map(|outgoing| outgoing.sequence);
        self.failed.entry(link).or_default().extend(sequences);
    }
}

/// Whether parts that a share was divided into make it up, no more and no less.
pub fn divided(share: u128, parts: &[u128]) -> Result<(), Violation> {
    let found: u128 = parts.iter().sum();
    if found == share && !parts.contains(&0) {
        return Ok(());
    }
    Err(Violation::Divided {
        expected: share,
        found,
    })
}

#[cfg(test)]
mod tests;

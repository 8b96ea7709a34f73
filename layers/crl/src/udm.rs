//! Messages over User Direct Messaging: a handler for each kind keeps them until they are received.

use std::collections::VecDeque;

use hamlyn::host::process::ProcessHost;
use hamlyn::{Host, Wait};
use hamlyn_udm::{Error, Group, InjectError, Message, Udm, UdmOptions};

use crate::courier::{Courier, Incoming};
use crate::message::{Kind, WORDS_MAX};

/// Handlers from this one on are for messages with bytes, which begin with the number of words.
const WITH_BYTES: u16 = 64;
const WORD_BYTES: usize = size_of::<u32>();
/// Bytes before those of a message, at most.
const HEADER_BYTES: usize = (1 + WORDS_MAX) * WORD_BYTES;
/// Messages that are taken in one go.
const VISIT: usize = 64;
const POLLS_PER_LOOK: u32 = 64;

/// Carries messages over an end point of User Direct Messaging.
///
/// Messages that a node does not take wait in memory that it lends, so a node that computes or is
/// stopped delays only those that need it.
#[derive(Debug)]
pub struct UdmCourier<H: Host = ProcessHost> {
    udm: Udm<VecDeque<Incoming>, H>,
    piece_bytes: usize,
    /// Nodes whose loss was told.
    told: Vec<bool>,
    /// Polls that found nothing.
    polls: u32,
    scratch: Vec<u8>,
}

impl<H: Host> UdmCourier<H> {
    /// Opens the end point of that name at this node, as [`Udm::open`] does.
    ///
    /// # Errors
    ///
    /// A node could not be reached in time, or there is no memory.
    pub fn open(group: &Group<H>, name: &str, wait: Wait) -> Result<Self, Error> {
        let inbox = VecDeque::new();
        let mut udm = Udm::open(group, name, UdmOptions::default(), inbox, wait)?;
        for &kind in Kind::ALL {
            for first in [0, WITH_BYTES] {
                udm.on(first + kind as u16, |arrival| {
                    let mut call = arrival.extract();
                    let (message, inbox) = call.parts();
                    inbox.extend(incoming(message));
                    call
                })?;
            }
        }
        let mut piece_bytes = usize::MAX;
        for node in 0..udm.nodes() {
            piece_bytes = piece_bytes.min(udm.bytes_max(node)? - HEADER_BYTES);
        }
        let told = vec![false; udm.nodes() as usize];
        Ok(Self {
            udm,
            piece_bytes,
            told,
            polls: 0,
            scratch: Vec::new(),
        })
    }

    /// Interrupts the program ([`Udm::upcall`]): keeps messages that are there, at most so many,
    /// until they are taken ([`next_kept`](Self::next_kept)). For couriers on processors that
    /// bring interrupts of their own; how many it kept. Does not block.
    ///
    /// # Errors
    ///
    /// Messages cannot be carried any more.
    pub fn upcall(&mut self, most: usize) -> Result<usize, Error> {
        self.udm.upcall(most)
    }

    /// The next message that was kept, without a look for others.
    pub fn next_kept(&mut self) -> Option<Incoming> {
        self.udm.state_mut().pop_front()
    }

    /// A node that was lost, which takes a look at each.
    fn next_lost(&self) -> Option<u32> {
        let is_news = |node: &u32| !self.told[*node as usize] && self.udm.lost(*node).is_some();
        (0..self.udm.nodes()).find(is_news)
    }
}

/// The message that has come; nothing if it is none.
fn incoming(message: &Message) -> Option<Incoming> {
    let (kind, mut rest) = (message.handler() % WITH_BYTES, message.as_bytes());
    let mut count = rest.len() / WORD_BYTES;
    if message.handler() >= WITH_BYTES {
        let (first, others) = rest.split_first_chunk()?;
        (count, rest) = (u32::from_le_bytes(*first) as usize, others);
    }
    let mut words = [0; WORDS_MAX];
    for word in words.get_mut(..count)? {
        let (first, others) = rest.split_first_chunk()?;
        (*word, rest) = (u32::from_le_bytes(*first), others);
    }
    Some(Incoming::Message {
        from: message.source(),
        kind: kind as u8,
        words,
        bytes: rest.to_vec(),
    })
}

impl<H: Host> Courier for UdmCourier<H> {
    fn me(&self) -> u32 {
        self.udm.me()
    }

    fn nodes(&self) -> u32 {
        self.udm.nodes()
    }

    fn piece_bytes(&self) -> usize {
        self.piece_bytes
    }

    fn send(&mut self, to: u32, kind: u8, words: &[u32], bytes: &[u8]) -> Result<(), String> {
        let kind = u16::from(kind);
        let injected = if bytes.is_empty() {
            self.udm.inject(to, kind, words)
        } else {
            self.scratch.clear();
            let count = [words.len() as u32];
            let header = count.iter().chain(words);
            self.scratch
                .extend(header.flat_map(|word| word.to_le_bytes()));
            self.scratch.extend_from_slice(bytes);
            self.udm.inject_bytes(to, WITH_BYTES + kind, &self.scratch)
        };
        match injected {
            Ok(()) | Err(InjectError::Lost { .. }) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn receive(&mut self, wait: Wait) -> Result<Option<Incoming>, String> {
        let cause = |error: Error| error.to_string();
        let mut has_waited = false;
        loop {
            if let Some(incoming) = self.next_kept() {
                return Ok(Some(incoming));
            }
            // One that only polls looks now and then.
            self.polls = self.polls.wrapping_add(1);
            let looks = wait != Wait::Poll || self.polls.is_multiple_of(POLLS_PER_LOOK);
            let lost = looks.then(|| self.next_lost()).flatten();
            // Its messages of before are there by now.
            if self.udm.poll(VISIT).map_err(cause)? > 0 {
                continue;
            }
            if let Some(node) = lost {
                self.told[node as usize] = true;
                return Ok(Some(Incoming::Lost { node }));
            }
            if has_waited || wait == Wait::Poll {
                return Ok(None);
            }
            self.udm.serve(wait).map_err(cause)?;
            has_waited = true;
        }
    }

    fn flush(&mut self, wait: Wait) -> Result<bool, String> {
        self.udm.flush(wait).map_err(|error| error.to_string())
    }
}

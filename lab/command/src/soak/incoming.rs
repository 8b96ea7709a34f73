//! What a process of a soak receives from one host, and checks message by message: content, number,
//! order where there is one. Each datagram is answered with what has come so far.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use hamlyn::host::process::ProcessHost;
use hamlyn::stream::StreamOptions;
use hamlyn::{
    Destination, Manager, ReceiveError, SendError, Ticket, Wait, datagram, stream, tagged_write,
};

use super::content::{self, Kind};
use super::ends::{Answer, Bundle, TAG_PLACE_BYTES, TAGS_MAX};
use super::orders::{Life, Received};
use super::worker::is_linked;

/// Messages taken of each kind in one turn.
const PER_TURN: u32 = 64;
const STREAM: StreamOptions = StreamOptions {
    pieces: 16,
    piece_bytes: 4 << 10,
    limit_bytes: 1 << 20,
    ahead: false,
};

/// See the module.
pub(super) struct Incoming {
    peer: Destination,
    connection: u64,
    datagrams: datagram::Receiver,
    tags: tagged_write::Receiver,
    records: stream::Receiver,
    /// An answer that found no room, and whereto it goes.
    unanswered: Option<Ticket>,
    datagrams_came: u64,
    tags_below: u64,
    tags_beyond: BTreeSet<u64>,
    records_came: u64,
}

impl Incoming {
    /// Opens the receiving ends, and hands the others to the requester.
    pub(super) fn open(
        manager: &Manager<ProcessHost>,
        own: Life,
        connection: u64,
        to: &Ticket,
    ) -> Result<Self> {
        let mut datagrams = datagram::Receiver::new(manager, 2_048)?;
        datagrams.ready();
        let area_bytes = TAGS_MAX * TAG_PLACE_BYTES;
        let tags = tagged_write::Receiver::new(manager, area_bytes, 4 * TAGS_MAX as usize)?;
        let records = stream::Receiver::new(manager, STREAM)?;
        let bundle = Bundle {
            connection,
            number: own.number,
            datagrams: datagrams.ticket(),
            tags: tags.ticket(),
            records: records.make_seed(),
        };
        let incoming = Self {
            peer: to.destination,
            connection,
            datagrams,
            tags,
            records,
            unanswered: None,
            datagrams_came: 0,
            tags_below: 0,
            tags_beyond: BTreeSet::new(),
            records_came: 0,
        };
        // If it cannot be sent, its link is gone, and it requests again.
        let wait = Wait::millis(200);
        if let Ok(answer) = datagram::Sender::grow(manager, to, wait) {
            let _ = answer.send(&bundle.to_bytes(), wait);
        }
        Ok(incoming)
    }

    /// How many messages have come.
    pub(super) fn count(&self) -> u64 {
        self.datagrams_came + self.tags_below + self.tags_beyond.len() as u64 + self.records_came
    }

    /// Whether its link is gone, and all that came over it taken.
    pub(super) fn is_over(&self, manager: &Manager<ProcessHost>) -> bool {
        !is_linked(manager, &self.peer)
    }

    /// Takes what has come; whether there was anything.
    pub(super) fn drive(&mut self, manager: &Manager<ProcessHost>) -> Result<bool> {
        let moved = self.take_tags(manager)?;
        let moved = moved | self.take_records(manager)?;
        Ok(moved | self.take_datagram(manager)?)
    }

    fn take_datagram(&mut self, manager: &Manager<ProcessHost>) -> Result<bool> {
        let mut moved = false;
        if self.unanswered.is_none() {
            let Some(came) = self.datagrams.recv(Wait::Poll)? else {
                return Ok(false);
            };
            let reply = came
                .reply_ticket()
                .context("a datagram without a reply ticket")?;
            check(self.connection, Kind::Datagram, self.datagrams_came, &came)?;
            self.datagrams_came += 1;
            drop(came);
            self.unanswered = Some(reply);
            moved = true;
        }
        if let Some(reply) = self.unanswered {
            let answer = Answer {
                connection: self.connection,
                datagrams: self.datagrams_came,
                tags_below: self.tags_below,
                records: self.records_came,
            };
            // Never to another link than that by which it came: the one who asked is gone with it.
            if self.is_over(manager) {
                return Ok(moved);
            }
            let Ok(sender) = datagram::Sender::grow(manager, &reply, Wait::Poll) else {
                return Ok(moved);
            };
            match sender.send(&answer.to_bytes(), Wait::Poll) {
                Err(SendError::WouldBlock { .. }) => {}
                Ok(_) | Err(SendError::PeerLost(_)) => self.unanswered = None,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(moved)
    }

    fn take_tags(&mut self, _: &Manager<ProcessHost>) -> Result<bool> {
        for taken in 0..PER_TURN {
            let Some(number) = self.tags.get_tag(Wait::Poll)? else {
                return Ok(taken > 0);
            };
            ensure!(
                number >= self.tags_below && self.tags_beyond.insert(number),
                "tag {number} of connection {:x} came twice",
                self.connection
            );
            ensure!(
                number < self.tags_below + TAGS_MAX,
                "tag {number} of connection {:x} came before its place was free",
                self.connection
            );
            let mut expected = Vec::new();
            content::message(self.connection, Kind::Tag, number, &mut expected);
            let mut found = vec![0; expected.len()];
            let place = number % TAGS_MAX * TAG_PLACE_BYTES;
            self.tags.area().read_at(place, &mut found)?;
            check(self.connection, Kind::Tag, number, &found)?;
            while self.tags_beyond.remove(&self.tags_below) {
                self.tags_below += 1;
            }
        }
        Ok(true)
    }

    fn take_records(&mut self, _: &Manager<ProcessHost>) -> Result<bool> {
        for taken in 0..PER_TURN {
            let record = match self.records.recv(Wait::Poll) {
                Ok(Some(record)) => record,
                // The end of the link tells that its peer is lost, too. A sender that gave up a link
                // which is not lost here closes its stream; all that it sent was received then.
                Ok(None) | Err(ReceiveError::PeerLost(_) | ReceiveError::Closed) => {
                    return Ok(taken > 0);
                }
                Err(error) => bail!(error),
            };
            check(self.connection, Kind::Record, self.records_came, &record)?;
            self.records_came += 1;
        }
        Ok(true)
    }

    /// Takes what is left, and closes. What there is to be said of it.
    pub(super) fn close(mut self, manager: &Manager<ProcessHost>) -> Result<Received> {
        while self.drive(manager)? {}
        let received = self.account();
        drop(self.datagrams);
        drop(self.tags);
        drop(self.records);
        Ok(received)
    }

    /// What there is to be said of it so far.
    pub(super) fn account(&self) -> Received {
        Received {
            connection: self.connection,
            datagrams: self.datagrams_came,
            records: self.records_came,
            tags_below: self.tags_below,
            tags_beyond: self.tags_beyond.iter().copied().collect(),
        }
    }
}

/// Whether that is the message of that number.
fn check(connection: u64, kind: Kind, number: u64, found: &[u8]) -> Result<()> {
    let mut expected = Vec::new();
    content::message(connection, kind, number, &mut expected);
    if found == expected {
        return Ok(());
    }
    let head = |bytes: &[u8]| {
        let (words, _) = bytes.as_chunks();
        let word = |at: usize| words.get(at).map(|word| u64::from_le_bytes(*word));
        format!("{:x?} number {:?}, {} bytes", word(0), word(1), bytes.len())
    };
    bail!(
        "{kind:?} {number} of connection {connection:x} is not what was sent: {} where {} should be",
        head(found),
        head(&expected)
    )
}

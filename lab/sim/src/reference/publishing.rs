//! Messages of a publisher: each reader gets those that were published, whole and in order; one
//! that may not lose any gets all of them, from its first on.

use std::collections::BTreeMap;

use super::Violation;

#[derive(Clone, Debug)]
struct Reader {
    /// Of which publisher, of those of one flow.
    publisher: u64,
    last: Option<u64>,
    /// Messages between the first and the last that it did not get.
    skipped: u64,
}

#[derive(Clone, Debug)]
struct Message {
    bytes: Vec<u8>,
    /// Readers to which it goes, once its publisher knows.
    readers: Option<usize>,
    receipts: usize,
}

/// Publishers of a flow, one after the other, and their readers.
#[derive(Clone, Debug, Default)]
pub struct Publications {
    publisher: u64,
    /// Readers find the newest message by themselves, also those to which it was not published.
    shows_newest: bool,
    /// Messages of the publisher that is there now, and of those before, by publisher and number.
    messages: BTreeMap<(u64, u64), Message>,
    readers: BTreeMap<u64, Reader>,
    connected: u64,
    /// Readers that left, or whose publisher may not have known them.
    left: usize,
}

fn wrong(number: u64, why: &'static str) -> Violation {
    Violation::Publication { number, why }
}

impl Publications {
    /// A publisher is about to be opened; those before it are at an end.
    pub fn opening(&mut self, shows_newest: bool) {
        self.publisher += 1;
        self.shows_newest = shows_newest;
        self.left = 0;
    }

    /// Which publisher there is, of those of the flow.
    pub fn publisher(&self) -> u64 {
        self.publisher
    }

    /// A reader begins to connect; its number. It may have found that publisher in an attempt that
    /// came to nothing.
    pub fn connecting(&mut self, found: Option<u64>) -> u64 {
        self.connected += 1;
        let reader = Reader {
            publisher: found.unwrap_or(self.publisher),
            last: None,
            skipped: 0,
        };
        self.readers.insert(self.connected, reader);
        self.connected
    }

    /// A reader is about to leave.
    pub fn leaving(&mut self, reader: u64) {
        if self.readers.remove(&reader).is_some() {
            self.left += 1;
        }
    }

    /// A message is about to be published; its number.
    pub fn publishing(&mut self, bytes: &[u8]) -> u64 {
        let number = self.count();
        let message = Message {
            bytes: bytes.to_vec(),
            readers: None,
            receipts: 0,
        };
        self.messages.insert((self.publisher, number), message);
        number
    }

    fn count(&self) -> u64 {
        let all = (self.publisher, 0)..=(self.publisher, u64::MAX);
        self.messages.range(all).count() as u64
    }

    /// It was not published after all: no reader must have it.
    pub fn unpublished(&mut self, number: u64) -> Result<(), Violation> {
        match self.messages.remove(&(self.publisher, number)) {
            Some(message) if message.receipts > 0 => {
                Err(wrong(number, "was read, and was not published"))
            }
            _ => Ok(()),
        }
    }

    /// It was published, under that number, to so many readers.
    pub fn published(&mut self, number: u64, said: u64, readers: usize) -> Result<(), Violation> {
        if said != number {
            return Err(wrong(number, "was published under another number"));
        }
        let message = self.messages.get_mut(&(self.publisher, number));
        let Some(message) = message else {
            return Ok(());
        };
        message.readers = Some(readers);
        match message.receipts > readers && !self.shows_newest {
            true => Err(wrong(number, "was read by more than it was published to")),
            false => Ok(()),
        }
    }

    /// A message came to a reader that loses none, or may lose some.
    pub fn came(
        &mut self,
        reader: u64,
        number: u64,
        bytes: &[u8],
        may_lose: bool,
    ) -> Result<(), Violation> {
        let Some(reader) = self.readers.get_mut(&reader) else {
            return Ok(());
        };
        if let Some(last) = reader.last {
            if number <= last {
                return Err(wrong(number, "was read after a later one, or twice"));
            }
            reader.skipped += number - last - 1;
            if reader.skipped > 0 && !may_lose {
                return Err(wrong(number, "was read, and one before it is lost"));
            }
        }
        reader.last = Some(number);
        // A reader that began to connect to the one before may have found its follower.
        let newest = self.publisher;
        let is_it = |publisher: &u64| {
            let message = self.messages.get(&(*publisher, number));
            message.is_some_and(|message| message.bytes == bytes)
        };
        let publisher = (reader.publisher..=newest).find(is_it);
        let Some(publisher) = publisher else {
            return Err(wrong(number, "has other bytes than were published"));
        };
        reader.publisher = publisher;
        if let Some(message) = self.messages.get_mut(&(publisher, number)) {
            message.receipts += 1;
            let is_beyond = |readers| message.receipts > readers;
            if message.readers.is_some_and(is_beyond) && !self.shows_newest {
                return Err(wrong(number, "was read by more than it was published to"));
            }
        }
        Ok(())
    }

    /// What a reader says that it did not get.
    pub fn lost(&self, reader: u64, said: u64) -> Result<(), Violation> {
        match self.readers.get(&reader) {
            Some(reader) if reader.skipped != said => Err(wrong(
                reader.last.unwrap_or_default(),
                "was read, and its reader counts other losses before it",
            )),
            _ => Ok(()),
        }
    }

    /// A reader was told that its publisher ended.
    pub fn closed(&self, reader: u64) -> Result<(), Violation> {
        match self.readers.get(&reader) {
            Some(reader) if reader.publisher >= self.publisher => Err(wrong(
                reader.last.unwrap_or_default(),
                "is said to be the last, and its publisher lives",
            )),
            _ => Ok(()),
        }
    }

    /// Whether all that the publisher of now gave to readers is read; of readers that may lose
    /// messages, the last one.
    pub fn is_read(&self, only_last: bool) -> bool {
        let all = (self.publisher, 0)..=(self.publisher, u64::MAX);
        let due = |message: &Message| message.receipts + self.left >= message.readers.unwrap_or(0);
        let mut messages = self.messages.range(all).map(|(_, message)| message);
        match only_last {
            true => messages.next_back().is_none_or(due),
            false => messages.all(due),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(readers: usize) -> (Publications, u64) {
        let mut all = Publications::default();
        all.opening(false);
        let reader = all.connecting(None);
        for bytes in [b"a", b"b", b"c"] {
            let number = all.publishing(bytes);
            all.published(number, number, readers).unwrap();
        }
        (all, reader)
    }

    #[test]
    fn a_reader_gets_all_in_order_from_its_first_on() {
        let (mut all, reader) = published(1);
        assert_eq!(all.came(reader, 1, b"b", false), Ok(()));
        assert!(all.clone().came(reader, 1, b"b", true).is_err());
        assert!(all.clone().came(reader, 0, b"a", true).is_err());
        assert!(!all.is_read(true));
        assert_eq!(all.came(reader, 2, b"c", false), Ok(()));
        assert!(all.is_read(true) && !all.is_read(false));
        all.leaving(reader);
        assert!(all.is_read(false));
    }

    #[test]
    fn gaps_are_counted_and_forbidden_to_readers_that_lose_none() {
        let (mut all, reader) = published(1);
        all.came(reader, 0, b"a", true).unwrap();
        assert!(all.clone().came(reader, 2, b"c", false).is_err());
        assert_eq!(all.came(reader, 2, b"c", true), Ok(()));
        assert!(all.lost(reader, 0).is_err());
        assert_eq!(all.lost(reader, 1), Ok(()));
    }

    #[test]
    fn bytes_are_those_that_were_published() {
        let (mut all, reader) = published(1);
        assert!(all.clone().came(reader, 0, b"b", true).is_err());
        assert!(all.clone().came(reader, 7, b"a", true).is_err());
        assert!(all.closed(reader).is_err());
        let other = all.connecting(None);
        all.came(reader, 0, b"a", true).unwrap();
        assert!(all.came(other, 0, b"a", true).is_err());
        all.opening(true);
        assert_eq!(all.closed(reader), Ok(()));
        let number = all.publishing(b"d");
        assert_eq!(all.unpublished(number), Ok(()));
        // Of a publisher that shows its newest message, others read it as well.
        let number = all.publishing(b"e");
        let readers = [all.connecting(None), all.connecting(None)];
        assert_eq!(all.came(readers[0], number, b"e", true), Ok(()));
        assert_eq!(all.published(number, number, 0), Ok(()));
        assert_eq!(all.came(readers[1], number, b"e", true), Ok(()));
    }
}

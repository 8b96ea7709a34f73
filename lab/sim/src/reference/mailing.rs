//! Messages to a mailbox: each is taken out of it once, as it was sent, or was refused, which its
//! sender is told. Those of one sender come in order where the world keeps it.
//!
//! A refusal names the length of its message, not the message. Which one it was is known when as
//! many messages of that length are on their way as were refused.

use std::collections::BTreeMap;

use super::Violation;

#[derive(Clone, Debug)]
struct Letter {
    number: u64,
    bytes: Vec<u8>,
    /// A later one of its sender came, in a world that keeps order: it must have been refused.
    is_passed: bool,
    /// A fence behind it was answered, and all refusals before that were told: it is in its place.
    is_fenced: bool,
}

/// Refusals that were told, of messages of one sender and one length.
#[derive(Clone, Copy, Default, Debug)]
struct Told {
    all: usize,
    since_fence: usize,
}

/// The mailbox of a flow, and its senders.
#[derive(Clone, Debug, Default)]
pub struct Mailing {
    /// Messages that neither came nor are known to be refused, by sender, as they were sent.
    letters: BTreeMap<usize, Vec<Letter>>,
    told: BTreeMap<(usize, usize), Told>,
}

/// The message that came, and those that are known to be refused since.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Came {
    /// The number of the message.
    pub number: u64,
    /// The numbers of the others.
    pub refused: Vec<u64>,
}

impl Mailing {
    /// That sender is about to send a message.
    pub fn sending(&mut self, sender: usize, number: u64, bytes: &[u8]) {
        self.letters.entry(sender).or_default().push(Letter {
            number,
            bytes: bytes.to_vec(),
            is_passed: false,
            is_fenced: false,
        });
    }

    /// It was not sent after all. Those that are known to be refused.
    pub fn unsent(&mut self, sender: usize, number: u64) -> Result<Vec<u64>, Violation> {
        let letters = self.letters.entry(sender).or_default();
        let Some(at) = letters.iter().position(|letter| letter.number == number) else {
            return Err(Violation::Mail {
                sender,
                length_bytes: 0,
                why: "came or was refused, and its sender was told that it was not sent",
            });
        };
        let length = letters.remove(at).bytes.len();
        Ok(self.settle(sender, length))
    }

    /// A message was taken out. If it is not known who sent it, anybody may have.
    pub fn came(
        &mut self,
        sender: Option<usize>,
        bytes: &[u8],
        is_ordered: bool,
    ) -> Result<Came, Violation> {
        let is_it = |letter: &Letter| !letter.is_passed && letter.bytes == bytes;
        let mut found = None;
        for (&from, letters) in &self.letters {
            if sender.is_none_or(|sender| sender == from) {
                let at = letters.iter().position(is_it);
                found = found.or(at.map(|at| (from, at)));
            }
        }
        let (from, at) = found.ok_or(Violation::Mail {
            sender: sender.unwrap_or(usize::MAX),
            length_bytes: bytes.len(),
            why: "was never sent, came before, or came out of order",
        })?;
        let letters = self.letters.entry(from).or_default();
        let number = letters.remove(at).number;
        if is_ordered {
            for letter in &mut letters[..at] {
                letter.is_passed = true;
            }
        }
        let refused = self.settle(from, bytes.len());
        Ok(Came { number, refused })
    }

    /// That sender was told that a message of that length was refused. Those that are known to be
    /// refused.
    pub fn refused(&mut self, sender: usize, length_bytes: usize) -> Result<Vec<u64>, Violation> {
        let wrong = |why| Violation::Mail {
            sender,
            length_bytes,
            why,
        };
        let letters = self.letters.entry(sender).or_default();
        let of_length = |letter: &&Letter| letter.bytes.len() == length_bytes;
        let all = letters.iter().filter(of_length);
        let unfenced = all.clone().filter(|letter| !letter.is_fenced).count();
        let all = all.count();
        let told = self.told.entry((sender, length_bytes)).or_default();
        told.all += 1;
        told.since_fence += 1;
        if told.all > all {
            return Err(wrong("is said to be refused, and none is on its way"));
        }
        if told.since_fence > unfenced {
            return Err(wrong("is said to be refused after a fence behind it"));
        }
        Ok(self.settle(sender, length_bytes))
    }

    /// A fence of that sender was answered, and all refusals that it found were told.
    pub fn fenced(&mut self, sender: usize) {
        for letter in self.letters.entry(sender).or_default() {
            letter.is_fenced = true;
        }
        for (_, told) in self.told.range_mut((sender, 0)..=(sender, usize::MAX)) {
            told.since_fence = 0;
        }
    }

    /// Whether messages of that sender are on their way.
    pub fn is_outstanding(&self, sender: usize) -> bool {
        let letters = self.letters.get(&sender);
        letters.is_some_and(|letters| !letters.is_empty())
    }

    /// If all messages of that length that are on their way were refused, they are over.
    fn settle(&mut self, sender: usize, length: usize) -> Vec<u64> {
        let letters = self.letters.entry(sender).or_default();
        let told = self.told.entry((sender, length)).or_default();
        let of_length = |letter: &Letter| letter.bytes.len() == length;
        if letters.iter().filter(|letter| of_length(letter)).count() != told.all {
            return Vec::new();
        }
        *told = Told::default();
        let over = letters.extract_if(.., |letter| of_length(letter));
        over.map(|letter| letter.number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(came: Result<Came, Violation>) -> Option<(u64, Vec<u64>)> {
        came.ok().map(|came| (came.number, came.refused))
    }

    #[test]
    fn each_message_comes_once_or_is_refused() {
        let mut mailing = Mailing::default();
        mailing.sending(0, 0, b"one");
        mailing.sending(0, 1, b"two");
        mailing.sending(1, 2, b"one");
        // Which of the two was refused, nobody knows until the other came.
        assert_eq!(mailing.refused(0, 3), Ok(vec![]));
        assert_eq!(
            numbers(mailing.came(Some(0), b"two", true)),
            Some((1, vec![0]))
        );
        assert!(!mailing.is_outstanding(0) && mailing.is_outstanding(1));
        assert_eq!(numbers(mailing.came(None, b"one", true)), Some((2, vec![])));
        assert!(mailing.came(None, b"one", true).is_err());
        assert!(mailing.refused(1, 3).is_err());
    }

    #[test]
    fn order_counts_where_the_world_keeps_it() {
        for is_ordered in [false, true] {
            let mut mailing = Mailing::default();
            mailing.sending(0, 0, b"first");
            mailing.sending(0, 1, b"then");
            assert!(mailing.came(Some(0), b"then", is_ordered).is_ok());
            let late = mailing.came(Some(0), b"first", is_ordered);
            assert_eq!(late.is_err(), is_ordered);
        }
    }

    #[test]
    fn a_fence_tells_of_every_refusal_before_it() {
        let mut mailing = Mailing::default();
        mailing.sending(0, 0, b"one");
        mailing.fenced(0);
        mailing.sending(0, 1, b"two");
        assert_eq!(mailing.refused(0, 3), Ok(vec![]));
        assert!(mailing.refused(0, 3).is_err());
    }

    #[test]
    fn a_message_that_was_not_sent_must_not_come() {
        let mut mailing = Mailing::default();
        mailing.sending(0, 0, b"one");
        assert_eq!(mailing.unsent(0, 0), Ok(vec![]));
        assert!(mailing.came(Some(0), b"one", true).is_err());
        mailing.sending(0, 0, b"one");
        assert!(mailing.came(Some(0), b"one", true).is_ok());
        assert!(mailing.unsent(0, 0).is_err());
    }
}

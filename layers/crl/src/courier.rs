//! The trait by which messages travel.

use hamlyn::Wait;

use crate::message::WORDS_MAX;

/// Bytes that a message may have for each node at least: a reduction sends the values of half of
/// them in one.
pub(crate) const BYTES_PER_NODE: usize = 4;

/// Carries messages between the nodes of a program.
///
/// Messages from one node to another arrive in their order, each once, unless one of the two is
/// lost: then those from some message on do not arrive. After a node is told to be lost, no message
/// of it comes. Messages of different nodes, and to different ones, have no order among each other.
pub trait Courier {
    /// The number of this node.
    fn me(&self) -> u32;

    /// The number of nodes.
    fn nodes(&self) -> u32;

    /// Bytes that a message may have besides its words, at least four for each node: longer ones go
    /// in pieces.
    fn piece_bytes(&self) -> usize;

    /// Sends a message of at most [`WORDS_MAX`] words. Waits for room, and may run handlers meanwhile, but
    /// gives nothing out. Of a node that is lost, [`receive`](Self::receive) tells.
    ///
    /// # Errors
    ///
    /// It will never be possible again, whatever node it is for: the reason, as a sentence.
    fn send(&mut self, to: u32, kind: u8, words: &[u32], bytes: &[u8]) -> Result<(), String>;

    /// The next message, or the loss of a node. Nothing if none came within that time, or for no
    /// reason.
    ///
    /// # Errors
    ///
    /// None will ever come: the reason, as a sentence.
    fn receive(&mut self, wait: Wait) -> Result<Option<Incoming>, String>;

    /// Waits until all that was sent has left this node, at most so long. False if not all has.
    ///
    /// # Errors
    ///
    /// It will never be possible: the reason, as a sentence.
    fn flush(&mut self, wait: Wait) -> Result<bool, String>;
}

impl<C: Courier + ?Sized> Courier for Box<C> {
    fn me(&self) -> u32 {
        (**self).me()
    }

    fn nodes(&self) -> u32 {
        (**self).nodes()
    }

    fn piece_bytes(&self) -> usize {
        (**self).piece_bytes()
    }

    fn send(&mut self, to: u32, kind: u8, words: &[u32], bytes: &[u8]) -> Result<(), String> {
        (**self).send(to, kind, words, bytes)
    }

    fn receive(&mut self, wait: Wait) -> Result<Option<Incoming>, String> {
        (**self).receive(wait)
    }

    fn flush(&mut self, wait: Wait) -> Result<bool, String> {
        (**self).flush(wait)
    }
}

/// Something that has come.
#[derive(Debug)]
pub enum Incoming {
    /// A message.
    Message {
        /// Its sender.
        from: u32,
        /// Its kind, as it was sent.
        kind: u8,
        /// Its words, and zeros.
        words: [u32; WORDS_MAX],
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// A node is lost.
    Lost {
        /// Its number.
        node: u32,
    },
}

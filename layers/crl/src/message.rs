//! Messages between nodes: their kinds, and their form as words.

use crate::id::{NodeSet, RegionId};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident,)+) => {
        /// The kind of a message.
        ///
        /// A message names a region and a *number*: of a request, which the node that makes it
        /// chooses, and which is the number of the copy that it is granted.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Kind { $($(#[$doc])* $kind,)+ }

        impl Kind {
            /// All of them, each at its number.
            pub const ALL: &[Kind] = &[$(Kind::$kind,)+];
        }
    };
}

kinds! {
    /// To the home: the region is to be mapped.
    Map,
    /// From the home: it has so many bytes.
    Mapped,
    /// From the home: it does not exist.
    NoRegion,
    /// To the home: a shared copy is wanted.
    Read,
    /// To the home: an exclusive copy is wanted, and a shared copy of that number is held.
    Write,
    /// From the home: a shared copy, or a piece of it.
    Shared,
    /// From the home or the node that held it: an exclusive copy, or a piece of it. The nodes named
    /// acknowledge their invalidation to the receiver.
    Exclusive,
    /// From the home: the shared copy is exclusive once the nodes named have acknowledged.
    Grant,
    /// From the home: a shared copy ends, which is to be acknowledged to a third node.
    Invalidate,
    /// To the node that writes: a copy has ended.
    Acknowledge,
    /// From the home: an exclusive copy becomes a shared one, and its bytes go to the home.
    Fetch,
    /// From the home: an exclusive copy goes to a third node.
    Pass,
    /// From the home: an exclusive copy goes to the home.
    Recall,
    /// To the home: the bytes of an exclusive copy, of which a shared one remains.
    Back,
    /// To the home: the bytes of an exclusive copy, of which nothing remains.
    Flush,
    /// To the home: a shared copy was given up.
    Drop,
    /// To the home: an exclusive copy has come from a third node.
    Have,
    /// To the home: the copy that is recalled was passed on.
    Gone,
    /// From the home: the third node, which was to pass its copy, is lost.
    Check,
    /// To the home: the copy has not come from the lost node.
    Stuck,
    /// From the home: the only copy was lost with that node.
    Fail,
    /// To the home: the region is to be destroyed.
    Destroy,
    /// From the home: the region is destroyed.
    Destroyed,
    /// From the home: that node has it mapped.
    InUse,
    /// From the home: is the region mapped?
    AskMapped,
    /// To the home: it is.
    IsMapped,
    /// To the home: it is not, and will not be before the home is asked.
    IsUnmapped,
    /// From the home: the region is destroyed, and its copy is of no use.
    Forget,
    /// A node has come to a barrier.
    Barrier,
    /// Values of a reduction.
    Gather,
    /// A piece of a broadcast.
    Broadcast,
    /// A collective operation cannot end, as that node is lost.
    Broken,
}

/// A message without its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Message {
    pub(crate) kind: Kind,
    pub(crate) region: RegionId,
    /// Of the request or the copy.
    pub(crate) number: u32,
    /// A third node.
    pub(crate) node: u32,
    /// The number of the third node's request, or an offset or a length in bytes.
    pub(crate) other: u32,
    pub(crate) nodes: NodeSet,
}

/// Words of a message besides those of the set of nodes.
const WORDS_MIN: usize = 4;
/// Words of a message, at most.
pub const WORDS_MAX: usize = WORDS_MIN + NodeSet::WORDS;

impl Message {
    pub(crate) fn new(kind: Kind, region: RegionId, number: u32) -> Self {
        Self {
            kind,
            region,
            number,
            node: 0,
            other: 0,
            nodes: NodeSet::default(),
        }
    }

    /// With a third node and the number of its request.
    pub(crate) fn of(self, node: u32, other: u32) -> Self {
        Self {
            node,
            other,
            ..self
        }
    }

    /// With an offset or a length.
    pub(crate) fn at(self, other: usize) -> Self {
        Self {
            other: other as u32,
            ..self
        }
    }

    /// Its words, and how many of them are used.
    pub(crate) fn words(&self) -> ([u32; WORDS_MAX], usize) {
        let mut words = [0; WORDS_MAX];
        words[..WORDS_MIN].copy_from_slice(&[
            self.region.home | self.node << 16,
            self.region.index,
            self.number,
            self.other,
        ]);
        words[WORDS_MIN..].copy_from_slice(self.nodes.words());
        let used = words.iter().rposition(|word| *word != 0);
        (words, used.map_or(0, |at| at + 1).max(WORDS_MIN))
    }

    /// The message of that kind and those words, if its nodes are among so many.
    pub(crate) fn of_words(kind: Kind, words: &[u32; WORDS_MAX], nodes: u32) -> Option<Self> {
        let (&[places, index, number, other], set) = words.split_first_chunk()?;
        let message = Self {
            kind,
            region: RegionId {
                home: places & 0xffff,
                index,
            },
            number,
            node: places >> 16,
            other,
            nodes: NodeSet::of_words(set),
        };
        let are_nodes = message.region.home < nodes && message.node < nodes;
        let are_all = message.nodes.iter().all(|node| node < nodes);
        (are_nodes && are_all).then_some(message)
    }
}

/// Sends messages. Those to one node arrive in their order, each once, unless a node is lost.
pub(crate) trait Outgoing {
    /// Bytes of a message, at most: longer copies go in pieces.
    fn piece_bytes(&self) -> usize;

    /// Sends a message with its bytes. Errors are told with what is received.
    fn send(&mut self, to: u32, message: &Message, bytes: &[u8]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_of_their_words() {
        for (code, kind) in Kind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, code);
        }
        let region = RegionId { home: 7, index: 9 };
        let mut message = Message::new(Kind::Pass, region, 3).of(5, 11);
        for nodes in [&[][..], &[0, 1], &[7, 31, 32, 255]] {
            message.nodes = nodes.iter().copied().collect();
            let (words, used) = message.words();
            assert!(used <= WORDS_MAX && (used > 4) != nodes.is_empty());
            let read = |nodes| Message::of_words(Kind::Pass, &words, nodes);
            assert_eq!(read(256), Some(message));
            assert_eq!(read(7), None, "its home is no node");
        }
        let mut words = [0; WORDS_MAX];
        words[4] = 256;
        assert_eq!(Message::of_words(Kind::Pass, &words, 8), None);
    }
}

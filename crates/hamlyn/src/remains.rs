//! What end points leave behind. An end point that is closed or dropped writes down what is still
//! to be done for it; its interface does that in its next call but those that take what lies ready.
//! So closing and dropping are one thing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::{PortName, SlotName};
use hamlyn_engine::slot::QueueId;
use hamlyn_engine::table::Name;

use crate::arrival::ClassId;
use crate::drop_list::DropList;
use crate::message::{Message, Target};
use crate::tasks::WaitsAt;

/// What is still to be done for an end point that is gone.
#[derive(Debug, Default)]
pub(crate) struct Remains {
    /// Slots to be closed.
    pub(crate) slots: Vec<SlotName>,
    /// A port to be closed.
    pub(crate) port: Option<PortName>,
    /// An initiator's slot, to be closed when what it asked is answered.
    pub(crate) initiator: Option<SlotName>,
    /// The notification queue that only they named.
    pub(crate) queue: Option<QueueId>,
    /// The receiver to be forgotten, with its room for notifications.
    pub(crate) class: Option<ClassId>,
    /// Notifications that a receiver has room for no longer.
    pub(crate) entries: Option<(ClassId, usize)>,
    /// The item to which it was bound.
    pub(crate) item: Option<String>,
    /// The place under an item that its peer had, by the item and its number.
    pub(crate) place: Option<(String, u64)>,
    /// A completion queue.
    pub(crate) completions: Option<Name>,
    /// A pool that was shown.
    pub(crate) pool: Option<u64>,
    /// Where a task waited for it.
    pub(crate) waiting: Option<WaitsAt>,
    /// What its peer is to be told.
    pub(crate) last_word: Option<LastWord>,
}

/// What the peer of an end point that is gone is to be told, as soon as there is room for it.
#[derive(Debug)]
pub(crate) struct LastWord {
    target: Target,
    /// Without metadata it is a message in fast mode.
    metadata: Vec<u8>,
    word: u64,
    offset: u64,
    data: Vec<u8>,
}

impl LastWord {
    /// A message with metadata and no data.
    pub(crate) fn new(target: Target, metadata: Vec<u8>) -> Self {
        Self {
            target,
            metadata,
            word: 0,
            offset: 0,
            data: Vec::new(),
        }
    }

    /// A word in fast mode.
    pub(crate) fn fast(target: Target, word: u64) -> Self {
        let metadata = Vec::new();
        Self {
            word,
            ..Self::new(target, metadata)
        }
    }

    /// The same with data.
    pub(crate) fn with_data(self, offset: u64, data: Vec<u8>) -> Self {
        Self {
            offset,
            data,
            ..self
        }
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    pub(crate) fn message(&self) -> Message<'_> {
        let message = Message::new(&self.data).at(self.offset);
        message.metadata(&self.metadata).word(self.word)
    }
}

/// Last words that wait for room, those of each link in their order. A peer that takes nothing is
/// in nobody else's way.
#[derive(Debug, Default)]
pub(crate) struct LastWords(BTreeMap<LinkId, VecDeque<LastWord>>);

/// Last words that wait for one link; of more the oldest are given up.
const LAST_WORDS_MAX: usize = 8_192;

impl LastWords {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if none waits for that link, or for any.
    pub(crate) fn is_empty_for(&self, link: Option<LinkId>) -> bool {
        match link {
            Some(link) => !self.0.contains_key(&link),
            None => self.is_empty(),
        }
    }

    pub(crate) fn add(&mut self, last_word: LastWord) {
        let waiting = self.0.entry(last_word.target.link()).or_default();
        if waiting.len() == LAST_WORDS_MAX {
            waiting.pop_front();
        }
        waiting.push_back(last_word);
    }

    /// Says what `say` finds room for. A link that has none is asked once.
    pub(crate) fn say(&mut self, mut say: impl FnMut(&LastWord) -> bool) {
        self.0.retain(|_, waiting| {
            while waiting.front().is_some_and(&mut say) {
                waiting.pop_front();
            }
            !waiting.is_empty()
        });
    }
}

/// Where the end points of an interface leave their remains, from whatever thread.
#[derive(Clone, Debug)]
pub(crate) struct Leaving {
    left: DropList<Remains>,
    /// Has the interface look.
    attention: Arc<AtomicBool>,
}

impl Leaving {
    pub(crate) fn new(attention: Arc<AtomicBool>) -> Self {
        Self {
            left: DropList::default(),
            attention,
        }
    }

    /// True if both are of one interface.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.left.is(&other.left)
    }

    pub(crate) fn leave(&self, remains: Remains) {
        self.left.note(remains);
        self.attention.store(true, Ordering::Relaxed);
    }

    /// All that was left since this was last called.
    pub(crate) fn take(&self) -> Vec<Remains> {
        self.left.take()
    }
}

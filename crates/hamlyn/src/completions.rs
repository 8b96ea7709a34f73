//! Completion queues (decision 50): the ends of sends, fences and one-sided operations, each with a
//! number of the caller's own, and packets that came back, in one queue.
//!
//! Work that has begun is *tracked* in a queue ([`Interface::track_send`],
//! [`Interface::track_fence`], [`Interface::track_operation`]). That takes a place of the queue
//! until its completion is fetched ([`Interface::next_completion`]), so no completion is lost: a
//! queue without a free place refuses to track. Ends come in any order.
//!
//! Each call of the interface that moves packets looks at a bounded part of what is tracked. So a
//! program that waits elsewhere, in an event loop say, is woken for completions as for messages.
//!
//! ```
//! use hamlyn::engine::slot::Rights;
//! use hamlyn::one_sided::{Atomic, Change, InitiatorOptions, Width};
//! use hamlyn::{Message, NewSlot, Wait};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let manager = hamlyn::open_unnamed()?;
//! let mut session = manager.session();
//! let area = session.allocate(4096)?;
//! let slot = session.open_slot(NewSlot::new(&area).rights(Rights::ALL))?;
//! let target = session.target(&slot.fast_ticket(0, 4096)?, Wait::millis(1000))?;
//!
//! let (completions, terminus) = (session.open_completions(64)?, session.terminus());
//! session.send_msg(terminus, &target, &Message::new(b"hello"), Wait::Forever)?;
//! // "In its place at the receiver", as number 1.
//! session.track_fence(&completions, target.link(), 1)?;
//! let mut word = session.open_initiator(target, InitiatorOptions::default())?;
//! let five = Atomic::new(Change::Add, Width::Bits64, 5);
//! let add = session.begin_atomic(&mut word, 8, five, Wait::Forever)?;
//! session.track_word(&completions, &mut word, add, 2)?;
//!
//! let mut contexts = Vec::new();
//! while contexts.len() < 2 {
//!     if let Some(completion) = session.await_completion(&completions, Wait::Forever)? {
//!         assert_eq!(completion.result, Ok(0));
//!         contexts.push(completion.context);
//!     }
//! }
//! contexts.sort();
//! assert_eq!(contexts, [1, 2]);
//! # Ok(())
//! # }
//! ```
//!
//! [`Interface::track_send`]: crate::Interface::track_send
//! [`Interface::track_fence`]: crate::Interface::track_fence
//! [`Interface::track_operation`]: crate::Interface::track_operation
//! [`Interface::next_completion`]: crate::Interface::next_completion

use hamlyn_engine::table::Name;
use hamlyn_engine::terminus::TerminusError;

use crate::error::{FenceError, Undelivered};
use crate::forks::from_forked;
use crate::one_sided::OperationError;
use crate::remains::{Leaving, Remains};

/// Most places of a completion queue.
pub const COMPLETIONS_MAX: usize = 1 << 16;
/// Most completion queues of an interface.
pub const COMPLETION_QUEUES_MAX: usize = 4_096;

/// A completion queue, opened by
/// [`Interface::open_completions`](crate::Interface::open_completions). When it is dropped, all
/// that it tracks goes on, and nobody is told of its end.
#[derive(Debug)]
pub struct CompletionQueue {
    pub(crate) name: Name,
    places: usize,
    leaving: Leaving,
}

impl CompletionQueue {
    pub(crate) fn new(name: Name, places: usize, leaving: Leaving) -> Self {
        Self {
            name,
            places,
            leaving,
        }
    }

    /// True if it is of the interface whose end points leave there.
    pub(crate) fn is_of(&self, leaving: &Leaving) -> bool {
        self.leaving.is(leaving)
    }

    /// Completions that may be tracked or wait to be fetched.
    pub fn places(&self) -> usize {
        self.places
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        self.leaving.leave(Remains {
            completions: Some(self.name),
            ..Remains::default()
        });
    }
}

/// The end of something that was tracked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The caller's number.
    pub context: u64,
    /// Of a change or a read of a word the word: what it was before. Otherwise 0.
    pub result: Result<u64, CompletionError>,
}

/// Something that was tracked ended otherwise than it was to.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompletionError {
    /// The link of a message was lost before all of it was handed over.
    #[error(
        "the message was not sent: its link was lost before all of it was handed over, or carries shorter packets since"
    )]
    NotSent,
    /// A fence found packets that were refused, or a peer that is gone.
    #[error(transparent)]
    Fence(#[from] FenceError),
    /// A one-sided operation was not carried out, or it is not known whether it was.
    #[error(transparent)]
    Operation(#[from] OperationError),
    /// A packet came back ([`Interface::track_refusals`](crate::Interface::track_refusals)).
    #[error(transparent)]
    Returned(#[from] Undelivered),
}

/// Something was not tracked. It goes on by itself.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrackError {
    /// All places are taken.
    #[error(
        "all {places} places of the completion queue are taken: fetch completions, or open it with more"
    )]
    Full {
        /// The number of places.
        places: usize,
    },
    /// The queue is another interface's.
    #[error("the completion queue is another interface's")]
    NoSuchQueue,
    /// No message of that number was sent.
    #[error("no message of that number was sent: track what a send has returned")]
    NoSuchMessage,
    /// The message is of a terminus that is not open.
    #[error(transparent)]
    Terminus(#[from] TerminusError),
    /// The fence did not begin.
    #[error(transparent)]
    Fence(#[from] FenceError),
    /// The operation is not outstanding.
    #[error(transparent)]
    Operation(#[from] OperationError),
}

from_forked! {
    TrackError: Self::Operation;
}

//! An end point, and the message that it holds: in Rust the message borrows the end point. A view of a message keeps both.
//!
//! A message is *held* by its end point until it is released, or until the next receive. Each has a state of its own, outside of the
//! gate, which counts its views: a message with views is not released, but kept, if its protocol can, or the receive fails. When an
//! end point is closed, what its messages lie in lives on until the last view is gone.

use std::any::Any;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hamlyn::PeerIdentity;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::borrowing::Borrowing;
use crate::error::{Failure, Kind};
use crate::gate::{Carried, Closing, Gate, Guarded};
use crate::message::copy_whole;

/// In the word of a state, beside the number of views.
const RELEASED: usize = 1 << (usize::BITS - 1);

/// What a message owns that its end point does not hold any more.
#[derive(Default)]
pub(crate) struct Own {
    /// It is kept.
    pub(crate) kept: Option<Carried<Box<dyn Any>>>,
    /// It was copied.
    pub(crate) copy: Option<Box<[u8]>>,
}

/// The state of a message. See the module.
#[derive(Default)]
pub(crate) struct State {
    word: AtomicUsize,
    /// Views are views of a copy from now on.
    pub(crate) is_copied: AtomicBool,
    own: Mutex<Own>,
}

// SAFETY: what a message keeps is not used, but dropped, which leaves a note in a list with a lock, or frees memory.
unsafe impl Send for State {}
// SAFETY: as above; and it lies under a lock.
unsafe impl Sync for State {}

impl State {
    /// Counts one view more, unless the message was released.
    pub(crate) fn begin_view(&self) -> bool {
        let more = |word: usize| (word & RELEASED == 0).then_some(word + 1);
        self.word
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, more)
            .is_ok()
    }

    pub(crate) fn end_view(&self) {
        self.word.fetch_sub(1, Ordering::SeqCst);
    }

    /// Releases the message if it has no views. True also if it was released before.
    pub(crate) fn try_release(&self) -> bool {
        match self
            .word
            .compare_exchange(0, RELEASED, Ordering::SeqCst, Ordering::SeqCst)
        {
            Ok(_) => true,
            Err(word) => word == RELEASED,
        }
    }

    pub(crate) fn has_views(&self) -> bool {
        self.word.load(Ordering::SeqCst) & !RELEASED != 0
    }

    pub(crate) fn is_released(&self) -> bool {
        self.word.load(Ordering::SeqCst) & RELEASED != 0
    }

    pub(crate) fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Own {
    /// What is kept.
    pub(crate) fn kept(&self) -> Option<&dyn Any> {
        self.kept.as_ref().map(|Carried(kept)| &**kept)
    }

    /// What is kept, to be used up.
    pub(crate) fn take_kept<K: 'static>(&mut self) -> Option<Box<K>> {
        let Carried(kept) = self.kept.take()?;
        kept.downcast().ok()
    }
}

/// How an end point stands to the views of all its messages.
#[derive(Default)]
pub(crate) struct Views(pub(crate) AtomicUsize);

/// A message of end points of that kind.
pub(crate) trait Lent<E>: Sized + 'static {
    /// As errors name it.
    const NAME: &'static str;
    /// The next receive keeps one without views, rather than to release it. One with views cannot be kept then.
    const IS_DEFERRED: bool = false;

    /// Keeps it, if it can be.
    fn keep(self) -> Result<Box<dyn Any>, Self> {
        Err(self)
    }

    /// Who sent it.
    fn peer(&self) -> Option<PeerIdentity> {
        None
    }

    /// Copies from it; false if that is not there. Of messages of which views are copies.
    fn read_at(&self, _offset: usize, _into: &mut [u8]) -> bool {
        false
    }

    /// The same, of one that is kept.
    fn read_kept(_end: &mut E, _kept: &dyn Any, _offset: usize, _into: &mut [u8]) -> bool {
        false
    }
}

/// A message beside which its end point may be read.
///
/// # Safety
///
/// It reaches its end point by shared references alone.
pub(crate) unsafe trait BorrowsShared {}

/// An end point, and the message that it holds.
pub(crate) struct Holding<E: 'static, M: 'static> {
    /// Borrows the end point.
    message: Option<M>,
    state: Arc<State>,
    /// The program was not given the message that is held: the next receive gives it.
    is_undelivered: bool,
    end: NonNull<E>,
}

/// A message that the program is given as a copy.
pub(crate) enum Brought {
    /// It is copied already, and released.
    Short([u8; SHORT_BYTES], usize),
    /// It is held.
    Held(Arc<State>, *const u8, usize),
}

/// Messages up to this length are copied on the spot.
const SHORT_BYTES: usize = 64;

impl Brought {
    /// The bytes, as an object.
    #[inline]
    pub(crate) fn into_object<'py>(
        self,
        py: Python<'py>,
        lender: impl FnOnce() -> Arc<dyn Lender>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        match self {
            Self::Short(bytes, length) => Ok(PyBytes::new(py, &bytes[..length])),
            Self::Held(state, data, length_bytes) => {
                let borrowing = Borrowing::at(lender(), state, data, length_bytes);
                Ok(borrowing.show(|bytes| PyBytes::new(py, bytes))?)
            }
        }
    }
}

impl<E, M: Lent<E>> Holding<E, M> {
    fn new(end: E) -> Self {
        Self {
            message: None,
            state: Arc::default(),
            is_undelivered: false,
            end: NonNull::from(Box::leak(Box::new(end))),
        }
    }

    /// The end point, after the message before is released or kept.
    #[inline(always)]
    pub(crate) fn end(&mut self) -> Result<&mut E, Failure> {
        if self.message.is_some() {
            self.let_go()?;
        }
        // SAFETY: the box is ours, and what could borrow it is not there.
        Ok(unsafe { self.end.as_mut() })
    }

    /// The end point, to be read beside the message that it holds.
    pub(crate) fn beside(&self) -> &E
    where
        M: BorrowsShared,
    {
        // SAFETY: the box is ours, and a message that is held shares it.
        unsafe { self.end.as_ref() }
    }

    /// Whether a message is held.
    pub(crate) fn is_held(&self) -> bool {
        self.message.is_some()
    }

    fn let_go(&mut self) -> Result<(), Failure> {
        self.is_undelivered = false;
        let Some(message) = self.message.take() else {
            return Ok(());
        };
        if M::IS_DEFERRED {
            // A view that begins just now is refused, as the gate is taken.
            self.state.is_copied.store(true, Ordering::SeqCst);
            if self.state.has_views() {
                self.state.is_copied.store(false, Ordering::SeqCst);
                self.message = Some(message);
                return Err(has_views(M::NAME));
            }
        } else if self.state.try_release() {
            drop(message);
            return Ok(());
        }
        match message.keep() {
            Ok(kept) => {
                self.state.own().kept = Some(Carried(kept));
                Ok(())
            }
            Err(message) => {
                self.message = Some(message);
                Err(has_views(M::NAME))
            }
        }
    }

    /// Receives a message, and holds it. `receive` must not keep the reference but in what it returns.
    #[inline(always)]
    pub(crate) fn hold(
        &mut self,
        receive: impl FnOnce(&'static mut E) -> Result<Option<M>, Failure>,
    ) -> Result<Option<(&M, Arc<State>)>, Failure> {
        if !self.receive(receive)? {
            return Ok(None);
        }
        self.is_undelivered = false;
        Ok(self
            .message
            .as_ref()
            .map(|message| (message, Arc::clone(&self.state))))
    }

    /// Whether a message is held after a receive.
    #[inline(always)]
    fn receive(
        &mut self,
        receive: impl FnOnce(&'static mut E) -> Result<Option<M>, Failure>,
    ) -> Result<bool, Failure> {
        if self.message.is_some() {
            if self.is_undelivered {
                return Ok(true);
            }
            self.let_go()?;
        }
        // SAFETY: the box is ours and lives until `drop`, before which the message ends; nothing else borrows it.
        let end = unsafe { &mut *self.end.as_ptr() };
        self.message = receive(end)?;
        if self.message.is_none() {
            return Ok(false);
        }
        match Arc::get_mut(&mut self.state) {
            // No message object has it any more.
            Some(state) => *state = State::default(),
            None => self.state = Arc::default(),
        }
        Ok(true)
    }

    /// As [`Holding::hold`], to be copied: short messages are, and are not held any more.
    #[inline(always)]
    pub(crate) fn bring(
        &mut self,
        receive: impl FnOnce(&'static mut E) -> Result<Option<M>, Failure>,
    ) -> Result<Option<Brought>, Failure>
    where
        M: Deref<Target = [u8]>,
    {
        if !self.receive(receive)? {
            return Ok(None);
        }
        self.is_undelivered = false;
        let Some(message) = &self.message else {
            return Ok(None);
        };
        let length = message.len();
        if length > SHORT_BYTES {
            let data = message.as_ptr();
            return Ok(Some(Brought::Held(Arc::clone(&self.state), data, length)));
        }
        let mut bytes = [0; SHORT_BYTES];
        bytes[..length].copy_from_slice(message);
        self.message = None;
        Ok(Some(Brought::Short(bytes, length)))
    }

    /// As [`Holding::hold`], into memory of the program. A message that does not fit is held for the next receive.
    pub(crate) fn receive_into(
        &mut self,
        into: &mut [u8],
        receive: impl FnOnce(&'static mut E) -> Result<Option<M>, Failure>,
    ) -> Result<Option<usize>, Failure>
    where
        M: Deref<Target = [u8]>,
    {
        if !self.receive(receive)? {
            return Ok(None);
        }
        let Some(message) = &self.message else {
            return Ok(None);
        };
        let copied = copy_whole(message, into);
        self.is_undelivered = copied.is_err();
        if copied.is_ok() {
            self.message = None;
        }
        copied.map(Some)
    }

    /// The message, if that is its state.
    pub(crate) fn message_of(&mut self, state: &Arc<State>) -> Option<&mut M> {
        match Arc::ptr_eq(&self.state, state) {
            true => self.message.as_mut(),
            false => None,
        }
    }

    /// The message, to be used up; nothing if that is not its state, or if it has views.
    pub(crate) fn use_up(&mut self, state: &Arc<State>) -> Result<M, Failure> {
        if self.message_of(state).is_none() {
            return Err(released(M::NAME));
        }
        if !state.try_release() {
            return Err(has_views(M::NAME));
        }
        self.message.take().ok_or_else(|| released(M::NAME))
    }
}

impl<E, M> Drop for Holding<E, M> {
    fn drop(&mut self) {
        self.message = None;
        // SAFETY: the box was made in `new`, and nothing borrows it any more.
        drop(unsafe { Box::from_raw(self.end.as_ptr()) });
    }
}

#[cold]
pub(crate) fn has_views(name: &str) -> Failure {
    Failure::of(
        Kind::Buffer,
        &format_args!(
            "a view of the {name} is alive, a memoryview or an array: delete it first, or make it of a copy, `bytes(...)`"
        ),
    )
}

#[cold]
pub(crate) fn released(name: &str) -> Failure {
    Failure::of(
        Kind::Released,
        &format_args!(
            "this {name} was released, by `release`, by the next receive of its end point, or because it was used up: copy what is needed for longer"
        ),
    )
}

/// An end point behind its gate.
pub(crate) struct End<E: 'static, M: 'static> {
    pub(crate) held: Guarded<Holding<E, M>>,
    views: Views,
}

impl<E, M: Lent<E>> End<E, M> {
    pub(crate) fn new(gate: &Arc<Gate>, name: &'static str, end: E) -> Arc<Self> {
        let end = Arc::new(Self {
            held: Guarded::new(gate, name, Holding::new(end)),
            views: Views::default(),
        });
        let closing: Arc<dyn Closing> = end.clone();
        gate.register(&closing);
        end
    }
}

impl<E, M: Lent<E>> Closing for End<E, M> {
    fn close(self: Arc<Self>) {
        self.held.shut();
        if self.views.0.load(Ordering::SeqCst) == 0 {
            self.finish();
        }
    }
}

/// What messages need of the end point that lends them.
pub(crate) trait Lender: Send + Sync {
    fn views(&self) -> &Views;
    fn is_shut(&self) -> bool;
    fn gate(&self) -> &Gate;
    fn name(&self) -> &'static str;
    /// A message object is gone, or released: what the end point holds of it is dropped.
    fn let_go(self: Arc<Self>, state: Arc<State>);
    /// Who sent it.
    fn peer(&self, state: &Arc<State>) -> Result<Option<PeerIdentity>, Failure>;
    /// Copies from a message of which views are copies.
    fn read_at(
        &self,
        state: &Arc<State>,
        own: &Own,
        offset: usize,
        into: &mut [u8],
    ) -> Result<(), Failure>;
    /// Keeps a message beyond the next receive.
    fn keep(&self, state: &Arc<State>) -> Result<(), Failure>;
    /// The end point is closed and its last view is gone.
    fn finish(self: Arc<Self>);
}

impl<E, M: Lent<E>> Lender for End<E, M> {
    fn views(&self) -> &Views {
        &self.views
    }

    fn is_shut(&self) -> bool {
        self.held.is_shut()
    }

    fn gate(&self) -> &Gate {
        self.held.gate()
    }

    fn name(&self) -> &'static str {
        M::NAME
    }

    fn let_go(self: Arc<Self>, state: Arc<State>) {
        let gate = Arc::clone(self.held.gate());
        gate.run(move || {
            // SAFETY: `run` has passed the gate.
            if let Some(held) = unsafe { self.held.behind() }
                && held.message_of(&state).is_some()
            {
                held.message = None;
            }
        });
    }

    fn peer(&self, state: &Arc<State>) -> Result<Option<PeerIdentity>, Failure> {
        let mut held = self.held.enter()?;
        match held.message_of(state) {
            Some(message) => Ok(message.peer()),
            None => Err(released(M::NAME)),
        }
    }

    fn read_at(
        &self,
        state: &Arc<State>,
        own: &Own,
        offset: usize,
        into: &mut [u8],
    ) -> Result<(), Failure> {
        let mut held = self.held.enter()?;
        let is_read = match (held.message_of(state), own.kept()) {
            (Some(message), _) => message.read_at(offset, into),
            (None, Some(kept)) => M::read_kept(held.end()?, kept, offset, into),
            (None, None) => false,
        };
        match is_read {
            true => Ok(()),
            false => Err(released(M::NAME)),
        }
    }

    fn keep(&self, state: &Arc<State>) -> Result<(), Failure> {
        let mut held = self.held.enter()?;
        if held.message_of(state).is_none() {
            return Err(released(M::NAME));
        }
        let Some(message) = held.message.take() else {
            return Ok(());
        };
        match message.keep() {
            Ok(kept) => {
                state.own().kept = Some(Carried(kept));
                Ok(())
            }
            Err(message) => {
                held.message = Some(message);
                Err(Failure::of(
                    Kind::Invalid,
                    &format_args!(
                        "a {} cannot be kept: copy what is needed, `bytes(...)`",
                        M::NAME
                    ),
                ))
            }
        }
    }

    fn finish(self: Arc<Self>) {
        let gate = Arc::clone(self.held.gate());
        // SAFETY: `run` has passed the gate.
        gate.run(move || drop(unsafe { self.held.take() }));
    }
}

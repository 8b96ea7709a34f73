//! An end point, and the message that it holds: in Rust the message borrows the end point. A view of a message keeps both.
//!
//! A message is *held* by its end point until it is released, or until the next receive. Each has a state of its own, outside of the
//! gate, which counts its views: a message with views is not released, but kept, if its protocol can, or the receive fails. When an
//! end point is closed, what its messages lie in lives on until the last view is gone.

use std::any::Any;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hamlyn::PeerIdentity;

use crate::error::{Failure, Kind};
use crate::gate::{Carried, Closing, Gate, Guarded, forked};

/// In the word of a state, beside the number of views.
const RELEASED: usize = 1 << (usize::BITS - 1);

/// What a message owns that its end point does not hold any more.
enum Own {
    /// It is kept.
    Kept(Carried<Box<dyn Any>>),
    /// It was copied.
    Copy(Box<[u8]>),
}

/// The state of a message. See the module.
#[derive(Default)]
pub(crate) struct State {
    word: AtomicUsize,
    own: Mutex<Option<Own>>,
}

// SAFETY: what a message keeps is not used, but dropped, which leaves a note in a list with a lock, or frees memory.
unsafe impl Send for State {}
// SAFETY: as above; and it lies under a lock.
unsafe impl Sync for State {}

impl State {
    /// Counts one view more, unless the message was released.
    fn begin_view(&self) -> bool {
        let more = |word: usize| (word & RELEASED == 0).then_some(word + 1);
        self.word
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, more)
            .is_ok()
    }

    fn end_view(&self) {
        self.word.fetch_sub(1, Ordering::SeqCst);
    }

    /// Releases the message if it has no views. True also if it was released before.
    fn try_release(&self) -> bool {
        match self.word.compare_exchange(0, RELEASED, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => true,
            Err(word) => word == RELEASED,
        }
    }

    fn is_released(&self) -> bool {
        self.word.load(Ordering::SeqCst) & RELEASED != 0
    }

    fn own(&self) -> std::sync::MutexGuard<'_, Option<Own>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How an end point stands to the views of all its messages.
#[derive(Default)]
pub(crate) struct Head {
    is_closed: AtomicBool,
    views: AtomicUsize,
}

/// What a message can do for a view that outlives the next receive.
pub(crate) enum Keep {
    /// It is kept.
    Kept(Box<dyn Any>),
    /// It cannot be.
    No,
}

/// A message of an end point.
pub(crate) trait Lent: Sized + 'static {
    /// As errors name it.
    const NAME: &'static str;

    /// Keeps it, if it can be.
    fn keep(self) -> Result<Box<dyn Any>, Self> {
        Err(self)
    }

    /// Who sent it.
    fn peer(&self) -> Option<PeerIdentity> {
        None
    }

    /// A copy of it, for those of which views are copies.
    fn copy(&self) -> Option<Box<[u8]>> {
        None
    }
}

/// An end point, and the message that it holds.
pub(crate) struct Holding<E: 'static, M: 'static> {
    /// Borrows the end point.
    message: Option<M>,
    state: Arc<State>,
    end: NonNull<E>,
}

impl<E, M: Lent> Holding<E, M> {
    fn new(end: E) -> Self {
        Self {
            message: None,
            state: Arc::default(),
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

    /// The end point, to be asked while a message is held: for what does not change it.
    pub(crate) fn look<R>(&self, ask: impl FnOnce(&E) -> R) -> R {
        // SAFETY: the box is ours. A message that borrows it does nothing meanwhile, as we are behind the gate.
        ask(unsafe { self.end.as_ref() })
    }

    fn let_go(&mut self) -> Result<(), Failure> {
        let Some(message) = self.message.take() else {
            return Ok(());
        };
        if self.state.try_release() {
            drop(message);
            return Ok(());
        }
        match message.keep() {
            Ok(kept) => {
                *self.state.own() = Some(Own::Kept(Carried(kept)));
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
        if self.message.is_some() {
            self.let_go()?;
        }
        // SAFETY: the box is ours and lives until `drop`, before which the message ends; nothing else borrows it.
        let end = unsafe { &mut *self.end.as_ptr() };
        self.message = receive(end)?;
        let Some(message) = &self.message else {
            return Ok(None);
        };
        match Arc::get_mut(&mut self.state) {
            // No message object has it any more.
            Some(state) => *state = State::default(),
            None => self.state = Arc::default(),
        }
        Ok(Some((message, Arc::clone(&self.state))))
    }

    /// The message, if that is its state.
    fn message_of(&mut self, state: &Arc<State>) -> Option<&mut M> {
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
fn has_views(name: &str) -> Failure {
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
    head: Head,
}

impl<E, M: Lent> End<E, M> {
    pub(crate) fn new(gate: &Arc<Gate>, name: &'static str, end: E) -> Arc<Self> {
        let end = Arc::new(Self {
            held: Guarded::new(gate, name, Holding::new(end)),
            head: Head::default(),
        });
        let closing: Arc<dyn Closing> = end.clone();
        gate.register(Arc::downgrade(&closing));
        end
    }
}

impl<E, M: Lent> Closing for End<E, M> {
    fn close(&self) {
        self.head.is_closed.store(true, Ordering::SeqCst);
        if self.head.views.load(Ordering::SeqCst) == 0 {
            // SAFETY: `run` has passed the gate.
            self.held.gate().run_now(|| drop(unsafe { self.held.take() }));
        }
    }
}

/// What messages need of the end point that lends them.
pub(crate) trait Lender: Send + Sync {
    fn head(&self) -> &Head;
    fn gate(&self) -> &Gate;
    fn name(&self) -> &'static str;
    /// A message object is gone, or released: what the end point holds of it is dropped.
    fn let_go(self: Arc<Self>, state: Arc<State>);
    /// Who sent it.
    fn peer(&self, state: &Arc<State>) -> Result<Option<PeerIdentity>, Failure>;
    /// A private copy of the message, which is given back for that.
    fn copy(&self, state: &Arc<State>) -> Result<Box<[u8]>, Failure>;
    /// Keeps a message beyond the next receive.
    fn keep(&self, state: &Arc<State>) -> Result<(), Failure>;
    /// The end point is closed and its last view is gone.
    fn finish(self: Arc<Self>);
}

impl<E, M: Lent> Lender for End<E, M> {
    fn head(&self) -> &Head {
        &self.head
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

    fn copy(&self, state: &Arc<State>) -> Result<Box<[u8]>, Failure> {
        let mut held = self.held.enter()?;
        let message = held.message_of(state).ok_or_else(|| released(M::NAME))?;
        let copy = message.copy().ok_or_else(|| released(M::NAME))?;
        held.message = None;
        Ok(copy)
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
                *state.own() = Some(Own::Kept(Carried(kept)));
                Ok(())
            }
            Err(message) => {
                held.message = Some(message);
                Err(Failure::of(
                    Kind::Invalid,
                    &format_args!("a {} cannot be kept: copy what is needed, `bytes(...)`", M::NAME),
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

/// A message in the hands of the program.
pub(crate) struct Borrowing {
    lender: Arc<dyn Lender>,
    state: Arc<State>,
    data: *const u8,
    length_bytes: usize,
    /// Its views are views of a copy.
    is_copied: bool,
}

// SAFETY: the pointer is read while a view is counted, during which the memory stays.
unsafe impl Send for Borrowing {}
// SAFETY: as above.
unsafe impl Sync for Borrowing {}

impl Borrowing {
    pub(crate) fn new(lender: Arc<dyn Lender>, state: Arc<State>, data: Option<&[u8]>, length_bytes: usize) -> Self {
        Self {
            lender,
            state,
            data: data.map_or(std::ptr::null(), <[u8]>::as_ptr),
            length_bytes,
            is_copied: data.is_none(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.length_bytes
    }

    pub(crate) fn state(&self) -> &Arc<State> {
        &self.state
    }

    pub(crate) fn is_released(&self) -> bool {
        self.state.is_released() || self.lender.head().is_closed.load(Ordering::SeqCst)
    }

    /// Counts a view. The bytes stay until it ends.
    pub(crate) fn begin_view(&self) -> Result<*const u8, Failure> {
        if self.lender.gate().is_forked() {
            return Err(forked());
        }
        let head = self.lender.head();
        head.views.fetch_add(1, Ordering::SeqCst);
        let refused = if head.is_closed.load(Ordering::SeqCst) || !self.state.begin_view() {
            released(self.lender.name())
        } else if !self.is_copied {
            return Ok(self.data);
        } else {
            match self.copied() {
                Ok(data) => return Ok(data),
                Err(failure) => {
                    self.state.end_view();
                    failure
                }
            }
        };
        self.view_is_gone();
        Err(refused)
    }

    /// The private copy, made now if there was none.
    fn copied(&self) -> Result<*const u8, Failure> {
        let mut own = self.state.own();
        if let Some(Own::Copy(copy)) = &*own {
            return Ok(copy.as_ptr());
        }
        let copy = self.lender.copy(&self.state)?;
        let data = copy.as_ptr();
        *own = Some(Own::Copy(copy));
        Ok(data)
    }

    pub(crate) fn end_view(&self) {
        self.state.end_view();
        self.view_is_gone();
    }

    fn view_is_gone(&self) {
        let head = self.lender.head();
        if head.views.fetch_sub(1, Ordering::SeqCst) == 1 && head.is_closed.load(Ordering::SeqCst) {
            Arc::clone(&self.lender).finish();
        }
    }

    /// Shows the bytes to `act`.
    pub(crate) fn show<R>(&self, act: impl FnOnce(&[u8]) -> R) -> Result<R, Failure> {
        let data = self.begin_view()?;
        let bytes = match self.length_bytes {
            0 => &[],
            // SAFETY: a view is counted, so that so many bytes stay there.
            length => unsafe { std::slice::from_raw_parts(data, length) },
        };
        let shown = act(bytes);
        self.end_view();
        Ok(shown)
    }

    /// Releases it: an error if a view of it is alive, nothing if it was released before.
    pub(crate) fn release(&self) -> Result<(), Failure> {
        if self.lender.gate().is_forked() {
            return Err(forked());
        }
        if self.state.is_released() {
            return Ok(());
        }
        if !self.state.try_release() {
            return Err(has_views(self.lender.name()));
        }
        self.give_back();
        Ok(())
    }

    fn give_back(&self) {
        let own = self.state.own().take();
        match own {
            Some(own) if self.lender.gate().is_forked() => std::mem::forget(own),
            Some(own) => drop(own),
            None => Arc::clone(&self.lender).let_go(Arc::clone(&self.state)),
        }
    }

    /// Who sent it.
    pub(crate) fn peer(&self) -> Result<Option<PeerIdentity>, Failure> {
        self.lender.peer(&self.state)
    }

    /// Keeps it beyond the next receive.
    pub(crate) fn keep(&self) -> Result<(), Failure> {
        if self.state.is_released() {
            return Err(released(self.lender.name()));
        }
        match self.state.own().is_some() {
            true => Ok(()),
            false => self.lender.keep(&self.state),
        }
    }
}

impl Drop for Borrowing {
    fn drop(&mut self) {
        // It has no views: they hold the object.
        if !self.state.is_released() && self.state.try_release() {
            self.give_back();
        }
    }
}

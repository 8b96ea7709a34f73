//! A face as one thread of the process has it open.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::process;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::LocalKey;

use hamlyn::forks::Birth;

/// The place of a thread for what it has open.
pub type Place<L> = RefCell<Option<Opened<L>>>;

/// Something that a thread has opened. A forked child closes nothing of it: not even when it exits.
#[derive(Debug)]
pub struct Opened<L> {
    birth: Birth,
    open: ManuallyDrop<Rc<L>>,
}

impl<L> Drop for Opened<L> {
    fn drop(&mut self) {
        if self.birth.is_here() {
            // SAFETY: it is dropped here alone, and not used after that.
            unsafe { ManuallyDrop::drop(&mut self.open) };
        }
    }
}

/// Leads each thread to what it has open: one thread of a process at a time, and nobody in a forked
/// child.
#[derive(Debug)]
pub struct Owner<L: 'static> {
    /// The process of which a thread has something open; 0 if none has.
    process: AtomicU32,
    place: &'static LocalKey<Place<L>>,
}

/// That the process has something open: the last field of that, so that others may open something
/// once it is closed.
#[derive(Debug)]
pub struct Claim(&'static AtomicU32);

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

/// Why a thread has nothing open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Absence {
    /// Nobody has, or the thread ends.
    Closed,
    /// Another thread has.
    OtherThread,
    /// The process is a forked child of the one that has.
    Forked,
}

impl<L> Owner<L> {
    /// An owner whose threads have such a place.
    pub const fn new(place: &'static LocalKey<Place<L>>) -> Self {
        let process = AtomicU32::new(0);
        Self { process, place }
    }

    /// That which this thread has open.
    #[inline]
    pub fn current(&self) -> Result<Rc<L>, Absence> {
        let found = self.place.try_with(|place| match &*place.borrow() {
            Some(opened) if opened.birth.is_here() => Ok(Rc::clone(&opened.open)),
            Some(_) => Err(Some(Absence::Forked)),
            None => Err(None),
        });
        let found = found.unwrap_or(Err(None));
        found.map_err(|absence| absence.unwrap_or_else(|| self.absence()))
    }

    #[cold]
    fn absence(&self) -> Absence {
        match self.process.load(Ordering::Acquire) {
            0 => Absence::Closed,
            owner if owner == process::id() => Absence::OtherThread,
            _ => Absence::Forked,
        }
    }

    /// Opens in this thread what `make` makes, which keeps its claim.
    ///
    /// # Errors
    ///
    /// `busy`, if this thread or another one has something open; those of `make`.
    pub fn open<E>(
        &'static self,
        busy: E,
        make: impl FnOnce(Claim) -> Result<L, E>,
    ) -> Result<Rc<L>, E> {
        self.forget_of_parent();
        let (before, this) = (self.process.load(Ordering::Acquire), process::id());
        let claim = |before| {
            let order = Ordering::AcqRel;
            self.process
                .compare_exchange(before, this, order, Ordering::Acquire)
        };
        // A forked child has nothing of its parent's.
        if before == this || claim(before).is_err() {
            return Err(busy);
        }
        let open = Rc::new(make(Claim(&self.process))?);
        let opened = Opened {
            birth: Birth::here(),
            open: ManuallyDrop::new(Rc::clone(&open)),
        };
        self.place.with(|place| *place.borrow_mut() = Some(opened));
        Ok(open)
    }

    /// Forgets what a forked child has of its parent's: nothing of that may be closed there.
    pub fn forget_of_parent(&self) {
        // Nothing is left while the thread ends.
        let _ = self.place.try_with(|place| {
            let mut place = place.borrow_mut();
            if place.as_ref().is_some_and(|opened| !opened.birth.is_here()) {
                *place = None;
            }
        });
    }

    /// Lets go of what this thread has open: it is closed when no call uses it any more.
    pub fn close(&self) {
        let open = self.place.try_with(RefCell::take);
        drop(open);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static PLACE: Place<(u32, Claim)> = const { RefCell::new(None) };
    }

    static OWNER: Owner<(u32, Claim)> = Owner::new(&PLACE);

    #[test]
    fn one_thread_of_a_process_has_it() {
        let absence = || OWNER.current().map(|it| it.0).unwrap_err();
        assert_eq!(absence(), Absence::Closed);
        assert_eq!(OWNER.open("busy", |_| Err("none")).err(), Some("none"));
        let open = OWNER.open("busy", |claim| Ok((7, claim))).unwrap();
        assert_eq!(OWNER.current().unwrap().0, 7);
        assert_eq!(
            OWNER.open("busy", |claim| Ok((8, claim))).err(),
            Some("busy")
        );
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(absence(), Absence::OtherThread);
                assert_eq!(
                    OWNER.open("busy", |claim| Ok((8, claim))).err(),
                    Some("busy")
                );
            });
        });
        OWNER.close();
        // A call that uses it still has it.
        assert_eq!(absence(), Absence::OtherThread);
        drop(open);
        assert_eq!(absence(), Absence::Closed);
        // A thread that ends closes what it has; a scope would not wait for that.
        let other =
            std::thread::spawn(|| drop(OWNER.open("busy", |claim| Ok((9, claim))).unwrap()));
        other.join().unwrap();
        assert_eq!(absence(), Absence::Closed);
    }
}

//! Objects of the lower layer (`Hamlyn 3.2`): each holds the manager whose interface made it, so a call needs no other handle and a
//! wrong pairing cannot be written. Objects of two managers in one call are refused.

use hamlyn::host::Host;
use hamlyn::{Destination, Manager};

use crate::manager::{Of, OneThread, Threads, each};
use crate::status::{Failure, Status};

/// What an interface made, and the manager of that interface.
pub(crate) struct Made<H: Host, T> {
    pub(crate) manager: Manager<H>,
    pub(crate) object: T,
}

/// The same, of a manager of one thread or of several.
pub(crate) type Lower<T> = Of<Made<OneThread, T>, Made<Threads, T>>;

/// Makes an object with the interface of a manager's handle, and puts its own handle into its place.
macro_rules! make_lower {
    ($manager:ident, $place:ident, $interface:ident => $make:expr) => {{
        let made = $crate::handle::with($manager, |$crate::manager::Manager(manager)| {
            Ok($crate::manager::each_into!(manager, manager => {
                let manager = manager.end()?.clone();
                let object = {
                    let mut $interface = manager.session();
                    $make
                };
                $crate::lower::Made { manager, object }
            }))
        })?;
        $crate::manager::put($place, made, |made| made);
        Ok(())
    }};
}

/// Makes another object with the interface of one, and puts its handle into its place.
macro_rules! make_beside {
    ($handle:ident, $place:ident, ($interface:ident, $object:ident) => $make:expr) => {{
        let made = $crate::handle::with($handle, |of| {
            Ok($crate::manager::each_into!(of, of => {
                let manager = of.manager.clone();
                let object = {
                    let $object = &mut of.object;
                    let mut $interface = manager.session();
                    $make
                };
                $crate::lower::Made { manager, object }
            }))
        })?;
        $crate::manager::put($place, made, |made| made);
        Ok(())
    }};
}

/// Does something with an object and its interface.
macro_rules! on {
    ($of:expr, ($interface:ident, $object:ident) => $act:expr) => {
        $crate::manager::each!($of, of => {
            let $object = &mut of.object;
            #[allow(unused_mut, reason = "some calls only look")]
            let mut $interface = of.manager.session();
            $act
        })
    };
}

/// Does something with the interface of a manager's handle.
macro_rules! with_interface {
    ($handle:ident, $interface:ident => $act:expr) => {
        $crate::handle::with($handle, |$crate::manager::Manager(manager)| {
            $crate::manager::each!(manager, manager => {
                #[allow(unused_mut, reason = "some calls only look")]
                let mut $interface = manager.end()?.session();
                $act
            })
        })
    };
}
pub(crate) use {make_beside, make_lower, on, with_interface};

impl<T> Lower<T> {
    /// Which interface made it.
    pub(crate) fn identity(&self) -> Destination {
        each!(self, of => of.manager.session().identity())
    }

    /// Refuses it if another interface made it.
    pub(crate) fn check(&self, interface: Destination, what: &'static str) -> Result<(), Failure> {
        match self.identity() == interface {
            true => Ok(()),
            false => Err(Failure::of(
                Status::Invalid,
                &format_args!("the {what} is another manager's: make one with this manager"),
            )),
        }
    }
}

// Handles of shared managers pass from thread to thread, with what is in them.
const _: () = {
    const fn passes<T: Send>() {}
    passes::<Made<Threads, hamlyn::Queue>>();
    passes::<Made<Threads, hamlyn::Slot>>();
    passes::<Made<Threads, hamlyn::CompletionQueue>>();
    passes::<Made<Threads, hamlyn::engine::terminus::TerminusId>>();
    passes::<Made<Threads, hamlyn::Target>>();
    passes::<Made<Threads, hamlyn::one_sided::Initiator>>();
    passes::<Made<Threads, hamlyn::Region>>();
    passes::<Made<Threads, hamlyn::Attached>>();
    passes::<hamlyn::Area>();
    passes::<crate::handover::Handover>();
};

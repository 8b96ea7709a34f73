//! An end point as C knows it.

use std::cell::{RefCell, RefMut};
use std::rc::Rc;

use hamlyn_udm::{Exclusive, INTERRUPT_DISABLE, Udm, Upcalls};

use crate::group::{OpenGroup, SharedHost};
use crate::node::{Outside, State};
use crate::status::{Code, Failure};

pub(crate) struct Object {
    kind: RefCell<Kind>,
    pub(crate) group: Rc<OpenGroup>,
}

pub(crate) enum Kind {
    /// Handlers run in calls of the program.
    Own(Box<dyn Outside>),
    /// They run in a thread of their own.
    Upcalls(WithUpcalls),
}

pub(crate) const IN_HANDLER: Failure = Failure::new(
    Code::InHandler,
    "a handler or a task runs: it may inject, extract, end its section and spawn; make this call when it has returned",
);

pub(crate) const NO_SECTION: Failure = Failure::new(
    Code::BadDispose,
    "handlers have a thread of their own (UDM_THREAD): begin a section (udm_beginatom) to see or extract messages",
);

impl Object {
    pub(crate) fn new(kind: Kind, group: Rc<OpenGroup>) -> Self {
        Self {
            kind: RefCell::new(kind),
            group,
        }
    }

    /// The end point, if no call is in the middle of it: from a handler of another one, for example.
    #[inline]
    pub(crate) fn kind(&self) -> Result<RefMut<'_, Kind>, Failure> {
        self.kind.try_borrow_mut().map_err(|_| IN_HANDLER)
    }
}

/// An end point whose handlers run in a thread of their own.
pub(crate) struct WithUpcalls {
    /// The section of the program, if it is in one. It ends before that which it borrows.
    section: Option<Exclusive<'static, State, SharedHost>>,
    /// Behind a pointer, where it stays.
    upcalls: Box<Upcalls<State, SharedHost>>,
}

impl WithUpcalls {
    pub(crate) fn new(udm: Udm<State, SharedHost>) -> Result<Self, Failure> {
        Ok(Self {
            section: None,
            upcalls: Box::new(udm.with_upcalls()?),
        })
    }
}

impl Kind {
    /// Makes a call of the program; with upcalls in a section of its own, if it is in none.
    #[inline]
    pub(crate) fn with<R>(
        &mut self,
        act: impl FnOnce(&mut dyn Outside) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        match self {
            Self::Own(udm) => act(&mut **udm),
            Self::Upcalls(WithUpcalls {
                section: Some(section),
                ..
            }) => act(&mut **section),
            Self::Upcalls(WithUpcalls { upcalls, .. }) => {
                let mut section = upcalls.atomic()?;
                let result = act(&mut *section);
                section.end()?;
                result
            }
        }
    }

    /// True if handlers may run between two calls.
    pub(crate) fn is_beside_handlers(&self) -> bool {
        matches!(self, Self::Upcalls(WithUpcalls { section: None, .. }))
    }

    pub(crate) fn begin(&mut self, mask: u8) -> Result<(), Failure> {
        if let Self::Upcalls(WithUpcalls { section, upcalls }) = self
            && section.is_none()
            && mask & INTERRUPT_DISABLE != 0
        {
            let mut begun = upcalls.atomic()?;
            begun.begin_atomic(mask)?;
            // SAFETY: it borrows what the box points to, which is dropped after it.
            *section = Some(unsafe {
                std::mem::transmute::<
                    Exclusive<'_, State, SharedHost>,
                    Exclusive<'static, State, SharedHost>,
                >(begun)
            });
            return Ok(());
        }
        self.with(|udm| Ok(udm.begin(mask)?))
    }

    pub(crate) fn end(&mut self, mask: u8) -> Result<(), Failure> {
        if let Self::Upcalls(WithUpcalls { section, .. }) = self
            && mask & INTERRUPT_DISABLE != 0
            && let Some(held) = section
        {
            held.end_atomic(mask & !INTERRUPT_DISABLE)?;
            if let Some(held) = section.take() {
                held.end()?;
            }
            return self.with(|udm| udm.check_handlers());
        }
        self.with(|udm| udm.end(mask))
    }

    pub(crate) fn uac(&mut self) -> Result<u8, Failure> {
        let is_of_call = self.is_beside_handlers();
        let bits = self.with(|udm| Ok(udm.uac()))?;
        Ok(match is_of_call {
            true => bits & !INTERRUPT_DISABLE,
            false => bits,
        })
    }
}

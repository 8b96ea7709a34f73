//! An end point as C knows it.

use std::cell::{RefCell, RefMut};
use std::rc::Rc;

use hamlyn_udm::{Error, Exclusive, INTERRUPT_DISABLE, Signals, Suspension, Upcalls};

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
    Upcalls(Sections<Upcalls<State, SharedHost>>),
    /// They interrupt the program, by a signal.
    Signals(Sections<Signals<State>>),
}

pub(crate) const IN_HANDLER: Failure = Failure::new(
    Code::InHandler,
    "a handler or a task runs: it may inject, extract, end its section and spawn; make this call when it has returned",
);

pub(crate) const NO_SECTION: Failure = Failure::new(
    Code::BadDispose,
    "handlers run between calls (UDM_THREAD, UDM_SIGNAL): begin a section (udm_beginatom) to see or extract messages",
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

/// An end point whose handlers run between the program's calls, and so in none of its sections.
pub(crate) trait Beside: 'static {
    /// The end point in the hands of the program.
    type Section<'a>: Section;

    fn begin(&self) -> Result<Self::Section<'_>, Error>;
}

/// See [`Beside::Section`].
pub(crate) trait Section {
    fn udm(&mut self) -> &mut dyn Outside;
    /// Clears bits other than that of the section.
    fn end_others(&mut self, mask: u8) -> Result<(), Error>;
    fn finish(self) -> Result<(), Error>;
}

impl Beside for Upcalls<State, SharedHost> {
    type Section<'a> = Exclusive<'a, State, SharedHost>;

    fn begin(&self) -> Result<Self::Section<'_>, Error> {
        self.atomic()
    }
}

impl Section for Exclusive<'_, State, SharedHost> {
    fn udm(&mut self) -> &mut dyn Outside {
        &mut **self
    }

    fn end_others(&mut self, mask: u8) -> Result<(), Error> {
        self.end_atomic(mask)
    }

    fn finish(self) -> Result<(), Error> {
        self.end()
    }
}

impl Beside for Signals<State> {
    type Section<'a> = Suspension<'a, State>;

    fn begin(&self) -> Result<Self::Section<'_>, Error> {
        self.atomic()
    }
}

impl Section for Suspension<'_, State> {
    fn udm(&mut self) -> &mut dyn Outside {
        &mut **self
    }

    fn end_others(&mut self, mask: u8) -> Result<(), Error> {
        self.end_atomic(mask)
    }

    fn finish(self) -> Result<(), Error> {
        self.end()
    }
}

/// An end point of that kind, and its sections.
pub(crate) struct Sections<B: Beside> {
    /// The section of the program, if it is in one. It ends before that which it borrows.
    section: Option<B::Section<'static>>,
    /// Behind a pointer, where it stays.
    beside: Box<B>,
}

impl<B: Beside> Sections<B> {
    pub(crate) fn of(beside: B) -> Self {
        Self {
            section: None,
            beside: Box::new(beside),
        }
    }

    /// Makes a call of the program, in a section of its own if it is in none.
    fn with<R>(
        &mut self,
        act: impl FnOnce(&mut dyn Outside) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        if let Some(section) = &mut self.section {
            return act(section.udm());
        }
        let mut section = self.beside.begin()?;
        let result = act(section.udm());
        section.finish()?;
        result
    }

    fn begin(&mut self, mask: u8) -> Result<(), Failure> {
        if self.section.is_some() || mask & INTERRUPT_DISABLE == 0 {
            return self.with(|udm| Ok(udm.begin(mask)?));
        }
        let beside: *const B = &raw const *self.beside;
        // SAFETY: the box is dropped after the section that borrows what it points to.
        let mut begun = unsafe { &*beside }.begin()?;
        begun.udm().begin(mask)?;
        self.section = Some(begun);
        Ok(())
    }

    fn end(&mut self, mask: u8) -> Result<(), Failure> {
        if mask & INTERRUPT_DISABLE == 0 {
            return self.with(|udm| udm.end(mask));
        }
        let Some(held) = &mut self.section else {
            return self.with(|udm| udm.end(mask));
        };
        held.end_others(mask & !INTERRUPT_DISABLE)?;
        if let Some(held) = self.section.take() {
            held.finish()?;
        }
        self.with(|udm| udm.check_handlers())
    }
}

impl Kind {
    /// Makes a call of the program; where handlers run between calls, in a section of its own if it
    /// is in none.
    #[inline]
    pub(crate) fn with<R>(
        &mut self,
        act: impl FnOnce(&mut dyn Outside) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        match self {
            Self::Own(udm) => act(&mut **udm),
            Self::Upcalls(sections) => sections.with(act),
            Self::Signals(sections) => sections.with(act),
        }
    }

    /// True if handlers may run between two calls.
    pub(crate) fn is_beside_handlers(&self) -> bool {
        match self {
            Self::Own(_) => false,
            Self::Upcalls(sections) => sections.section.is_none(),
            Self::Signals(sections) => sections.section.is_none(),
        }
    }

    pub(crate) fn begin(&mut self, mask: u8) -> Result<(), Failure> {
        match self {
            Self::Own(udm) => Ok(udm.begin(mask)?),
            Self::Upcalls(sections) => sections.begin(mask),
            Self::Signals(sections) => sections.begin(mask),
        }
    }

    pub(crate) fn end(&mut self, mask: u8) -> Result<(), Failure> {
        match self {
            Self::Own(udm) => udm.end(mask),
            Self::Upcalls(sections) => sections.end(mask),
            Self::Signals(sections) => sections.end(mask),
        }
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

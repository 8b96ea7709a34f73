//! The register of user atomicity control (`T 4.1`, Tables 1 and 3).

use crate::error::AtomError;

/// Handlers do not run until this is cleared: an atomic section (user bit).
pub const INTERRUPT_DISABLE: u8 = 1;
/// The section is to be timed though no message waits (user bit). It is kept, and no timer runs: a
/// section holds up no other process.
pub const TIMER_FORCE: u8 = 2;
/// A handler runs that has not extracted its message (kernel bit).
pub const DISPOSE_PENDING: u8 = 4;
/// Handlers wait for the end of the section (kernel bit).
pub const ATOMICITY_EXTEND: u8 = 8;

const USER_BITS: u8 = INTERRUPT_DISABLE | TIMER_FORCE;

/// The four bits of user atomicity control. The user bits are set and cleared by the program, the
/// kernel bits by the layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Uac(u8);

impl Uac {
    pub(crate) fn bits(self) -> u8 {
        self.0
    }

    /// True in an atomic section.
    #[inline]
    pub(crate) fn is_atomic(self) -> bool {
        self.0 & INTERRUPT_DISABLE != 0
    }

    /// Begins a section: UAC := UAC or mask.
    #[inline]
    pub(crate) fn begin(&mut self, mask: u8) -> Result<(), AtomError> {
        if mask & !USER_BITS != 0 {
            return Err(AtomError::KernelBit { mask });
        }
        self.0 |= mask;
        Ok(())
    }

    /// Ends a section: fails as long as a message is to be disposed of; otherwise UAC := UAC and not
    /// mask. True if handlers have waited for that, which are to run now.
    #[inline]
    pub(crate) fn end(&mut self, mask: u8) -> Result<bool, AtomError> {
        if mask & !USER_BITS != 0 {
            return Err(AtomError::KernelBit { mask });
        }
        if self.0 & DISPOSE_PENDING != 0 {
            return Err(AtomError::DisposeFailure);
        }
        self.0 &= !mask;
        let is_extended = self.0 & (ATOMICITY_EXTEND | INTERRUPT_DISABLE) == ATOMICITY_EXTEND;
        if is_extended {
            self.0 &= !ATOMICITY_EXTEND;
        }
        Ok(is_extended)
    }

    /// A handler begins, in a section of its own: the bits that the program had.
    #[inline]
    pub(crate) fn enter_handler(&mut self) -> Uac {
        let before = *self;
        self.0 |= INTERRUPT_DISABLE | TIMER_FORCE | DISPOSE_PENDING;
        before
    }

    /// The handler has returned.
    #[inline]
    pub(crate) fn leave_handler(&mut self, before: Uac) {
        self.0 = self.0 & ATOMICITY_EXTEND | before.0;
    }

    /// A message was disposed of.
    #[inline]
    pub(crate) fn disposed(&mut self) {
        self.0 &= !DISPOSE_PENDING;
    }

    /// A message waits, and the section keeps its handler from running.
    #[inline]
    pub(crate) fn extend(&mut self) {
        self.0 |= ATOMICITY_EXTEND;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 1, clause by clause, for all states and masks. An end in a section that lasts on (the
    /// mask does not clear interrupt-disable) leaves the work of atomicity-extend for later.
    #[test]
    fn the_register_follows_table_1() {
        for state in 0..16 {
            for mask in 0..16 {
                let kernel_mask = mask & !USER_BITS != 0;
                let mut uac = Uac(state);
                let begun = uac.begin(mask);
                if kernel_mask {
                    assert_eq!(begun, Err(AtomError::KernelBit { mask }));
                    assert_eq!(uac.bits(), state);
                } else {
                    assert_eq!((begun, uac.bits()), (Ok(()), state | mask));
                }
                let mut uac = Uac(state);
                let ended = uac.end(mask);
                if kernel_mask {
                    assert_eq!(ended, Err(AtomError::KernelBit { mask }));
                    assert_eq!(uac.bits(), state);
                } else if state & DISPOSE_PENDING != 0 {
                    assert_eq!(ended, Err(AtomError::DisposeFailure));
                    assert_eq!(uac.bits(), state);
                } else if state & ATOMICITY_EXTEND != 0 && state & !mask & INTERRUPT_DISABLE == 0 {
                    assert_eq!(ended, Ok(true));
                    assert_eq!(uac.bits(), state & !mask & !ATOMICITY_EXTEND);
                } else {
                    assert_eq!((ended, uac.bits()), (Ok(false), state & !mask));
                }
                let mut uac = Uac(state);
                uac.disposed();
                assert_eq!(uac.bits(), state & !DISPOSE_PENDING);
                let before = uac.enter_handler();
                assert_eq!(uac.bits() & 7, 7);
                assert_eq!(uac.end(INTERRUPT_DISABLE), Err(AtomError::DisposeFailure));
                uac.disposed();
                uac.leave_handler(before);
                assert_eq!(uac, before);
            }
        }
    }
}

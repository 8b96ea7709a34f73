//! Numbers by which C knows objects. A number is looked up, never followed: one whose object is
//! gone is refused, and so is one of another kind.

use std::ffi::c_void;

use slotmap::{DefaultKey, Key, KeyData, SlotMap};

use crate::status::Failure;

/// Kinds of objects, in bits that the place of an object never has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Bundle = 1,
    Endpoint = 2,
    /// A request whose token was kept.
    Kept = 3,
    /// A message whose handler runs.
    Running = 4,
}

const KIND_SHIFT: u32 = 28;
const KIND_MASK: u64 = 0xf << KIND_SHIFT;

/// The kind that a number claims.
pub(crate) fn kind_of(handle: *const c_void) -> u64 {
    (handle as u64 & KIND_MASK) >> KIND_SHIFT
}

/// The number of the `serial`th handler that ran.
pub(crate) fn running(serial: u64) -> *mut c_void {
    let low = serial & ((1 << KIND_SHIFT) - 1);
    let high = serial >> KIND_SHIFT << 32;
    (high | (Kind::Running as u64) << KIND_SHIFT | low) as *mut c_void
}

/// Objects of a kind.
#[derive(Debug)]
pub(crate) struct Handles<T> {
    kind: Kind,
    objects: SlotMap<DefaultKey, T>,
}

impl<T> Handles<T> {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            objects: SlotMap::new(),
        }
    }

    /// Takes an object in, made with the number that it gets.
    pub(crate) fn insert(&mut self, make: impl FnOnce(*mut c_void) -> T) -> (*mut c_void, &T) {
        let kind = (self.kind as u64) << KIND_SHIFT;
        let handle = |key: DefaultKey| (key.data().as_ffi() | kind) as *mut c_void;
        let key = self.objects.insert_with_key(|key| make(handle(key)));
        (handle(key), &self.objects[key])
    }

    fn key(&self, handle: *const c_void) -> Option<DefaultKey> {
        let is_of_kind = kind_of(handle) == self.kind as u64;
        is_of_kind.then(|| KeyData::from_ffi(handle as u64 & !KIND_MASK).into())
    }

    #[inline]
    pub(crate) fn get(&self, handle: *const c_void) -> Option<&T> {
        self.objects.get(self.key(handle)?)
    }

    pub(crate) fn remove(&mut self, handle: *const c_void) -> Option<T> {
        self.objects.remove(self.key(handle)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.objects.values()
    }
}

/// The error for a number that was refused.
pub(crate) const NO_BUNDLE: Failure =
    Failure::bad("the bundle is none, or was freed: use one of AM_AllocateBundle");
pub(crate) const NO_ENDPOINT: Failure =
    Failure::bad("the endpoint is none, or was freed: use one of AM_AllocateEndpoint");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_gone_objects_and_of_other_kinds_are_refused() {
        let mut bundles = Handles::new(Kind::Bundle);
        let mut endpoints = Handles::new(Kind::Endpoint);
        let (bundle, _) = bundles.insert(|_| 1);
        let (endpoint, _) = endpoints.insert(|_| 2);
        assert!(!bundle.is_null() && bundle != endpoint);
        assert_eq!(
            (bundles.get(bundle), endpoints.get(endpoint)),
            (Some(&1), Some(&2))
        );
        assert_eq!((bundles.get(endpoint), endpoints.get(bundle)), (None, None));
        assert_eq!(bundles.remove(bundle), Some(1));
        let (next, _) = bundles.insert(|_| 3);
        assert_eq!((bundles.get(bundle), bundles.get(next)), (None, Some(&3)));
        for number in [0_u64, 1, 1 << 28, u64::MAX, 0x1234_5678_9abc_def0] {
            assert_eq!(bundles.get(number as *const c_void), None, "{number:#x}");
        }
    }

    #[test]
    fn each_run_has_a_number_of_its_own() {
        let serials = [1, 2, (1 << 28) - 1, 1 << 28, (1 << 28) + 1, 1 << 40];
        let numbers = serials.map(running);
        for (at, number) in numbers.iter().enumerate() {
            assert_eq!(kind_of(*number), Kind::Running as u64);
            assert!(!numbers[..at].contains(number));
        }
    }
}

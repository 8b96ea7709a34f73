//! Numbers by which C knows objects. A number is looked up, never followed: one whose object is
//! gone is refused, and so is one of another kind, or of an earlier table.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

use slotmap::{DefaultKey, Key, KeyData, SlotMap};

/// The bits of a kind, which the place of an object never has.
const KIND_SHIFT: u32 = 28;
const KIND_MASK: u64 = 0xf << KIND_SHIFT;
/// Those of a table: a process that opens anew has another one.
const TABLE_SHIFT: u32 = 20;
const TABLE_MASK: u64 = 0xff << TABLE_SHIFT;

static TABLES: AtomicU32 = AtomicU32::new(0);

/// The kind that a number claims.
pub fn kind_of(handle: *const c_void) -> u8 {
    ((handle as u64 & KIND_MASK) >> KIND_SHIFT) as u8
}

/// A number of a kind without a table: the `serial`th.
pub fn serial(kind: u8, serial: u64) -> *mut c_void {
    let low = serial & ((1 << KIND_SHIFT) - 1);
    let high = serial >> KIND_SHIFT << 32;
    (high | u64::from(kind) << KIND_SHIFT | low) as *mut c_void
}

/// Objects of a kind.
#[derive(Debug)]
pub struct Handles<T> {
    /// Kind and table, where a number has them.
    bits: u64,
    objects: SlotMap<DefaultKey, T>,
}

impl<T> Handles<T> {
    /// A table of objects of a kind, 1 to 15.
    pub fn new(kind: u8) -> Self {
        let table = u64::from(TABLES.fetch_add(1, Ordering::Relaxed));
        let bits = u64::from(kind) << KIND_SHIFT & KIND_MASK | table << TABLE_SHIFT & TABLE_MASK;
        Self {
            bits,
            objects: SlotMap::new(),
        }
    }

    /// Takes an object in, made with the number that it gets. Nothing if there are a million.
    pub fn insert(&mut self, make: impl FnOnce(*mut c_void) -> T) -> Option<(*mut c_void, &T)> {
        if self.objects.len() >= (1 << TABLE_SHIFT) - 2 {
            return None;
        }
        let bits = self.bits;
        let handle = |key: DefaultKey| (key.data().as_ffi() | bits) as *mut c_void;
        let key = self.objects.insert_with_key(|key| make(handle(key)));
        Some((handle(key), &self.objects[key]))
    }

    #[inline]
    fn key(&self, handle: *const c_void) -> Option<DefaultKey> {
        let number = handle as u64;
        let is_of_table = number & (KIND_MASK | TABLE_MASK) == self.bits;
        is_of_table.then(|| KeyData::from_ffi(number & !(KIND_MASK | TABLE_MASK)).into())
    }

    /// The object of a number.
    #[inline]
    pub fn get(&self, handle: *const c_void) -> Option<&T> {
        self.objects.get(self.key(handle)?)
    }

    /// Removes the object of a number.
    pub fn remove(&mut self, handle: *const c_void) -> Option<T> {
        self.objects.remove(self.key(handle)?)
    }

    /// All objects.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.objects.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_gone_objects_and_of_other_kinds_are_refused() {
        let (mut bundles, mut endpoints) = (Handles::new(1), Handles::new(2));
        let (bundle, _) = bundles.insert(|_| 1).unwrap();
        let (endpoint, _) = endpoints.insert(|_| 2).unwrap();
        assert!(!bundle.is_null() && bundle != endpoint);
        assert_eq!(
            (bundles.get(bundle), endpoints.get(endpoint)),
            (Some(&1), Some(&2))
        );
        assert_eq!((bundles.get(endpoint), endpoints.get(bundle)), (None, None));
        assert_eq!(bundles.remove(bundle), Some(1));
        let (next, _) = bundles.insert(|_| 3).unwrap();
        assert_eq!((bundles.get(bundle), bundles.get(next)), (None, Some(&3)));
        for number in [0_u64, 1, 1 << 28, u64::MAX, 0x1234_5678_9abc_def0] {
            assert_eq!(bundles.get(number as *const c_void), None, "{number:#x}");
        }
        // A later table has other numbers.
        let mut later = Handles::new(1);
        let (first, _) = later.insert(|_| 4).unwrap();
        assert_eq!((later.get(next), bundles.get(first)), (None, None));
    }

    #[test]
    fn each_serial_has_a_number_of_its_own() {
        let serials = [1, 2, (1 << 28) - 1, 1 << 28, (1 << 28) + 1, 1 << 40];
        let numbers = serials.map(|number| serial(4, number));
        for (at, number) in numbers.iter().enumerate() {
            assert_eq!(kind_of(*number), 4);
            assert!(!numbers[..at].contains(number));
        }
    }
}

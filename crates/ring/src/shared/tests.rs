//! Copies: whatever their length and alignment, the range is copied and nothing else is touched.

use proptest::prelude::*;

use super::*;
use crate::memfd::Memfd;

const LEN: usize = 64 << 10;

/// A mapping of bytes that differ, and the same bytes.
fn filled(seed: u8) -> (Mapping, Vec<u8>) {
    let bytes: Vec<u8> = (0..LEN)
        .map(|at| (at as u8).wrapping_mul(31).wrapping_add((at >> 8) as u8) ^ seed)
        .collect();
    let mapping = Mapping::anonymous(LEN).unwrap();
    mapping.copy_in(0, &bytes).unwrap();
    (mapping, bytes)
}

fn all(mapping: &Mapping) -> Vec<u8> {
    let mut bytes = vec![0; LEN];
    mapping.copy_out(0, &mut bytes).unwrap();
    bytes
}

/// Lengths around every change of routine.
fn lengths() -> impl Strategy<Value = usize> {
    prop_oneof![0..200_usize, 960..1400_usize, 4000..4300_usize, 0..LEN / 2]
}

/// A child of this process may reach a mapping through safe code, and drop it.
#[test]
fn a_forked_child_may_touch_a_mapping() {
    unsafe extern "C" {
        fn fork() -> i32;
        fn signal(number: i32, handler: usize) -> usize;
        fn _exit(status: i32) -> !;
        fn waitpid(child: i32, status: *mut i32, options: i32) -> i32;
    }
    let file = Memfd::create("fork-test", PAGE_BYTES, PAGE_BYTES).unwrap();
    let mapping = file.map(Access::Writable).unwrap();
    mapping.store_u64(0, 7).unwrap();
    // SAFETY: the child only loads, stores and ends, which any child of a process with threads may.
    let child = unsafe { fork() };
    if child == 0 {
        // The handler of a fault that the test program brings may wait for a lock of another
        // thread, for ever.
        // SAFETY: 11 is SIGSEGV, 0 is the default: the child ends.
        unsafe { signal(11, 0) };
        let was = mapping.load_u64(0);
        let is_stored = mapping.store_u64(8, 9).is_ok();
        // SAFETY: ends this process, whose memory nobody else uses.
        unsafe { _exit(i32::from(was != Ok(7) || !is_stored)) };
    }
    assert!(child > 0, "fork failed");
    let mut status = -1;
    // SAFETY: waits for our child, and stores how it ended.
    assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child ended by a signal, or saw other bytes");
    assert_eq!(mapping.load_u64(8), Ok(9));
}

proptest! {
    #[test]
    fn a_copy_is_of_its_range(from_at in 0..200_usize, to_at in 0..200_usize, len in lengths()) {
        let (from, from_bytes) = filled(0x55);
        for way in [StoreKind::Temporal, StoreKind::NonTemporal] {
            let (to, mut expected) = filled(0xaa);
            Mapping::copy_between(&from, from_at, &to, to_at, len, way).unwrap();
            expected[to_at..to_at + len].copy_from_slice(&from_bytes[from_at..from_at + len]);
            prop_assert!(all(&to) == expected);
        }
    }

    #[test]
    fn a_slice_goes_in_past_the_caches(to_at in 0..200_usize, len in lengths()) {
        let (to, mut expected) = filled(0xaa);
        let (_, bytes) = filled(0x55);
        to.stream_in(to_at, &bytes[..len]).unwrap();
        expected[to_at..to_at + len].copy_from_slice(&bytes[..len]);
        prop_assert!(all(&to) == expected);
    }
}

#[test]
fn ranges_outside_are_refused() {
    let (from, _) = filled(0);
    let (to, expected) = filled(1);
    for (from_at, to_at, len) in [
        (1, 0, LEN),
        (0, 1, LEN),
        (0, usize::MAX, 2),
        (usize::MAX, 0, 1),
    ] {
        let refused =
            Mapping::copy_between(&from, from_at, &to, to_at, len, StoreKind::NonTemporal);
        assert_eq!(refused, Err(OutOfRange));
    }
    assert_eq!(to.stream_in(LEN, &[0]), Err(OutOfRange));
    assert!(all(&to) == expected);
}

/// Longer than the processor's own loop takes over.
#[test]
fn a_very_long_copy_is_whole() {
    const LONG: usize = (32 << 20) + 4097;
    let bytes: Vec<u8> = (0..LONG).map(|at| (at ^ (at >> 11)) as u8).collect();
    let mapping = Mapping::anonymous(LONG + 1).unwrap();
    mapping.copy_in(1, &bytes).unwrap();
    let mut back = vec![0; LONG];
    mapping.copy_out(1, &mut back).unwrap();
    assert!(back == bytes);
}

/// What the kernel says in a file of this process.
fn said(file: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).unwrap();
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line[key.len()..].trim().to_owned())
}

#[test]
fn memory_is_locked_where_that_is_allowed() {
    const MAY_LOCK: u64 = 1 << 14;
    let rights = said("status", "CapEff:").unwrap();
    let may_lock = u64::from_str_radix(&rights, 16).unwrap() & MAY_LOCK != 0;
    let limit = said("limits", "Max locked memory").unwrap();
    if !may_lock && !limit.starts_with("unlimited") {
        eprintln!("skipped: this user may lock little memory only ({limit})");
        return;
    }
    let mapping = Mapping::anonymous(LEN).unwrap();
    let at = mapping.base.as_ptr() as usize;
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut is_ours = false;
    for line in maps.lines() {
        let first = line.split(' ').next().unwrap();
        if let Some((from, to)) = first.split_once('-') {
            let address = |text| usize::from_str_radix(text, 16).unwrap();
            is_ours = (address(from)..address(to)).contains(&at);
        } else if is_ours && first == "VmFlags:" {
            assert!(line.split(' ').any(|flag| flag == "lo"), "{line}");
            return;
        }
    }
    panic!("the kernel does not know the mapping");
}

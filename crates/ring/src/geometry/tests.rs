//! Geometry: what is refused, and that the parts do not overlap.

use hamlyn_engine::limits::{PACKET_PAYLOAD_MAX, PACKET_PAYLOAD_MIN};
use proptest::prelude::*;

use super::*;

#[test]
fn refuses_what_is_out_of_bounds() {
    for cells in [0, 1, 3, 255, CELLS_MAX * 2, u32::MAX] {
        assert_eq!(
            Geometry::new(cells, ARENA_MIN_BYTES),
            Err(BadGeometry::Cells(cells))
        );
    }
    for arena in [
        0,
        4096,
        ARENA_MIN_BYTES + 1,
        ARENA_MAX_BYTES + 4096,
        u32::MAX,
    ] {
        assert_eq!(
            Geometry::new(2, arena),
            Err(BadGeometry::PayloadArena(arena))
        );
    }
}

proptest! {
    #[test]
    fn any_two_numbers_are_judged(cells: u32, arena: u32) {
        if let Ok(geometry) = Geometry::new(cells, arena) {
            prop_assert_eq!((geometry.cells(), geometry.arena_bytes()), (cells, arena));
        }
    }

    #[test]
    fn the_parts_follow_each_other(
        shift in 1_u32..=16,
        pages in ARENA_MIN_BYTES / 4096..=ARENA_MAX_BYTES / 4096,
        payload in PACKET_PAYLOAD_MIN..=PACKET_PAYLOAD_MAX,
    ) {
        let geometry = Geometry::new(1 << shift, pages * 4096).unwrap();
        prop_assert!(geometry.consumed_offset() + 8 <= geometry.cells_offset());
        let cells_end = geometry.cells_offset() + geometry.cells() as usize * LINE_BYTES;
        prop_assert!(cells_end <= geometry.arena_offset());
        prop_assert_eq!(geometry.arena_offset() % PAGE_BYTES, 0);
        let end = geometry.arena_offset() + geometry.arena_bytes() as usize;
        prop_assert_eq!(end, geometry.total_bytes());
        // A largest payload fits into the first window, metadata apart, unless it is long.
        let first = payload.min(FIRST_PAYLOAD_BYTES);
        prop_assert!(geometry.window_bytes(payload) >= first + USER_METADATA_BYTES.min(15));
        let [cells, arena] = geometry.reserved(payload);
        prop_assert!(cells.start == 0 && cells.end > geometry.cells_offset());
        prop_assert!(cells.end <= cells_end && arena.start == geometry.arena_offset());
        prop_assert!(arena.end <= geometry.total_bytes());
        let [all, _] = geometry.fixed().reserved(payload);
        prop_assert_eq!(all, 0..cells_end);
    }
}

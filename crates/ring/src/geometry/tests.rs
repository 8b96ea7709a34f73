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
        // A largest payload, its metadata apart, fits into the first window, unless it is long.
        let window = geometry.window_bytes(payload);
        prop_assert!(window >= (payload + LINE_BYTES).min(FIRST_WINDOW_BYTES));
        let [cells, arena] = geometry.reserved(payload);
        prop_assert_eq!(cells, 0..cells_end);
        prop_assert_eq!(arena, geometry.arena_offset()..geometry.arena_offset() + window);
    }
}

/// What each end writes lies on lines that the other does not write.
#[test]
fn the_ends_write_on_lines_of_their_own() {
    let geometry = Geometry::DEFAULT;
    let line = |offset: usize| offset / LINE_BYTES;
    let of_consumer = [
        geometry.consumed_offset(),
        geometry.refused_offset(),
        geometry.attention_offset(),
    ];
    let of_producer = [
        geometry.awaited_offset(),
        geometry.barrier_offset(),
        geometry.sent_offset(),
    ];
    let mut all = [of_consumer.as_slice(), &of_producer].concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 6);
    assert!(all.iter().all(|offset| offset % 8 == 0));
    for offset in of_producer {
        assert!(of_consumer.iter().all(|other| line(*other) != line(offset)));
    }
}

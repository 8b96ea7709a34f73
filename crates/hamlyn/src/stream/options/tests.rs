//! The first pieces of a stream whose sender may go ahead.

use proptest::prelude::*;

use super::*;

proptest! {
    /// They have all of the limit, and no more than half of the queue while pieces can grow.
    #[test]
    fn first_pieces_have_all_of_the_limit(
        shift in 12..31_u32,
        limit_bytes in prop_oneof![1..1_u64 << 28, 1..=AHEAD_BYTES_MAX],
        room in prop_oneof![0..20_usize, 0..70_000_usize, 0..1_usize << 20],
        pieces in 1..=PIECES_MAX,
    ) {
        let given = StreamOptions { pieces, piece_bytes: 1 << shift, limit_bytes, ahead: true };
        prop_assume!(given.check().is_ok());
        let first = given.with_first_pieces(room);
        let piece_bytes = u64::from(first.piece_bytes);
        prop_assert!(first.check().is_ok() || piece_bytes > limit_bytes);
        prop_assert_eq!(first, StreamOptions {
            pieces: limit_bytes.div_ceil(piece_bytes) as u32,
            piece_bytes: first.piece_bytes,
            ..given
        });
        prop_assert!(first.piece_bytes.is_power_of_two() && first.piece_bytes >= given.piece_bytes);
        let fits = |piece_bytes: u64| {
            let pieces = limit_bytes.div_ceil(piece_bytes);
            pieces == 1 || 2 * (pieces + 3) <= room as u64 && pieces <= u64::from(PIECES_MAX)
        };
        prop_assert!(fits(piece_bytes) || first.piece_bytes == PIECE_BYTES_MAX);
        // And they are no larger than they must be.
        prop_assert!(first.piece_bytes == given.piece_bytes || !fits(piece_bytes / 2));
        let unchanged = StreamOptions { ahead: false, ..given };
        prop_assert_eq!(unchanged.with_first_pieces(room), unchanged);
    }
}

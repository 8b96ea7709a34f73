use super::*;

/// The sixth puzzle of the paper, and the others of its side.
#[test]
fn a_side_of_six_has_the_known_counts() {
    let positions = [
        (0, 146_435),
        (1, 149_702),
        (3, 186_787),
        (4, 113_893),
        (7, 170_592),
    ];
    let solutions = [
        43_419_942_138,
        82_905_434_589,
        113_077_359_159,
        29_235_690_234,
        266_871_356_732,
    ];
    for ((hole, positions), solutions) in positions.into_iter().zip(solutions) {
        let counts = serial(6, hole).unwrap();
        assert_eq!((counts.positions, counts.solutions), (positions, solutions));
        if hole == 4 {
            assert_eq!(counts.moves, 688_348);
        }
    }
}

#[test]
fn a_side_of_five_has_the_known_solutions() {
    let solutions = [(0, 29_760), (1, 14_880), (3, 85_258), (4, 1_550)];
    for (hole, solutions) in solutions {
        assert_eq!(serial(5, hole).unwrap().solutions, solutions);
    }
}

#[test]
fn positions_are_spread_evenly() {
    let board = Board::new(6).unwrap();
    let mut of = [0_u32; 8];
    let mut level = vec![board.first(4).unwrap()];
    for _ in 0..8 {
        let next = level.iter().flat_map(|&position| board.moves(position));
        level = next.collect();
        level.sort_unstable();
        level.dedup();
        level
            .iter()
            .for_each(|&position| of[owner(position, 8)] += 1);
    }
    let all: u32 = of.iter().sum();
    assert!(all > 10_000);
    assert!(
        of.iter().all(|&one| one.abs_diff(all / 8) < all / 80),
        "{of:?}"
    );
}

#[test]
fn what_is_no_puzzle_is_refused() {
    assert_eq!(Board::new(2).unwrap_err(), BoardError::Side { side: 2 });
    assert_eq!(Board::new(8).unwrap_err(), BoardError::Side { side: 8 });
    let board = Board::new(3).unwrap();
    let error = BoardError::Hole { hole: 6, holes: 6 };
    assert_eq!(board.first(6).unwrap_err(), error);
}

#[test]
fn a_canonical_position_is_its_own() {
    let board = Board::new(5).unwrap();
    for position in 0..1 << board.holes() {
        let canonical = board.canonical(position);
        assert!(canonical <= position);
        assert_eq!(board.canonical(canonical), canonical);
        assert_eq!(canonical.count_ones(), position.count_ones());
    }
}

//! The triangle puzzle: peg solitaire on a triangle.
//!
//! Holes are counted from the top, row by row. A move jumps a peg over a neighbour into the hole
//! behind it, and takes the neighbour away. Positions are sets of holes with pegs, as bits, and are
//! taken up to the six symmetries of the triangle.

/// The longest side: 28 holes, whose positions and counts fit the words of a message.
pub const SIDE_MAX: u32 = 7;
/// Bits of a position that a table turns at once.
const PART_BITS: u32 = 7;
const PARTS: usize = 4;
const PART_MASK: u32 = (1 << PART_BITS) - 1;

/// A puzzle that is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BoardError {
    /// Its side is too short to move on, or too long.
    #[error("a triangle with {side} holes a side: choose 3 to {SIDE_MAX}")]
    Side {
        /// The side.
        side: u32,
    },
    /// There is no such hole.
    #[error("hole {hole} of a triangle with {holes} holes: choose 0 to {}", holes - 1)]
    Hole {
        /// The hole.
        hole: u32,
        /// Their number.
        holes: u32,
    },
}

/// A jump: the peg that jumps and the one that it takes, and the hole that it lands in.
#[derive(Clone, Copy, Debug)]
struct Jump {
    pegs: u32,
    into: u32,
}

/// The places that the bits of a part of a position have in the position's image.
type Turned = [[u32; 1 << PART_BITS]; PARTS];

/// A triangle.
#[derive(Clone, Debug)]
pub struct Board {
    holes: u32,
    jumps: Vec<Jump>,
    /// The symmetries but for the identity.
    symmetries: Vec<Turned>,
}

fn index(row: i64, column: i64) -> u32 {
    (row * (row + 1) / 2 + column) as u32
}

impl Board {
    /// A triangle with so many holes a side.
    pub fn new(side: u32) -> Result<Self, BoardError> {
        if !(3..=SIDE_MAX).contains(&side) {
            return Err(BoardError::Side { side });
        }
        let rows = i64::from(side);
        let places: Vec<(i64, i64)> = (0..rows)
            .flat_map(|row| (0..=row).map(move |column| (row, column)))
            .collect();
        let is_on = |(row, column): (i64, i64)| row < rows && (0..=row).contains(&column);
        let mut jumps = Vec::new();
        for &(row, column) in &places {
            for (down, right) in [(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, -1)] {
                let over = (row + down, column + right);
                let into = (row + 2 * down, column + 2 * right);
                if is_on(into) {
                    let pegs = 1 << index(row, column) | 1 << index(over.0, over.1);
                    let into = 1 << index(into.0, into.1);
                    jumps.push(Jump { pegs, into });
                }
            }
        }
        // Distances of a hole from the three sides, which symmetries permute.
        let distances = |(row, column): (i64, i64)| [column, row - column, rows - 1 - row];
        let symmetries = [[1, 0, 2], [0, 2, 1], [2, 1, 0], [1, 2, 0], [2, 0, 1]].map(|order| {
            let image: Vec<u32> = places
                .iter()
                .map(|&place| {
                    let of = distances(place);
                    let [column, _, above] = order.map(|at: usize| of[at]);
                    index(rows - 1 - above, column)
                })
                .collect();
            turned(&image)
        });
        Ok(Self {
            holes: places.len() as u32,
            jumps,
            symmetries: symmetries.to_vec(),
        })
    }

    /// Its number of holes.
    pub fn holes(&self) -> u32 {
        self.holes
    }

    /// The first position: pegs in all holes but one.
    pub fn first(&self, hole: u32) -> Result<u32, BoardError> {
        if hole >= self.holes {
            let holes = self.holes;
            return Err(BoardError::Hole { hole, holes });
        }
        Ok(self.canonical(((1 << self.holes) - 1) & !(1 << hole)))
    }

    /// The least of the positions that symmetries make of this one.
    pub fn canonical(&self, position: u32) -> u32 {
        let image = |symmetry: &Turned| {
            let part = |at: usize| (position >> (at as u32 * PART_BITS) & PART_MASK) as usize;
            symmetry[0][part(0)]
                | symmetry[1][part(1)]
                | symmetry[2][part(2)]
                | symmetry[3][part(3)]
        };
        let least = |least: u32, symmetry: &Turned| least.min(image(symmetry));
        self.symmetries.iter().fold(position, least)
    }

    /// Jumps on the board, possible or not.
    pub fn jumps(&self) -> usize {
        self.jumps.len()
    }

    /// The positions that a move leads to from this one, one for each move, up to symmetry.
    pub fn moves(&self, position: u32) -> impl Iterator<Item = u32> {
        let possible =
            move |jump: &&Jump| position & jump.pegs == jump.pegs && position & jump.into == 0;
        let jumps = self.jumps.iter().filter(possible);
        jumps.map(move |jump| self.canonical(position & !jump.pegs | jump.into))
    }
}

fn turned(image: &[u32]) -> Turned {
    let mut turned = [[0; 1 << PART_BITS]; PARTS];
    for (at, table) in turned.iter_mut().enumerate() {
        for (part, bits) in table.iter_mut().enumerate() {
            let first = at * PART_BITS as usize;
            let holes = image.iter().skip(first).take(PART_BITS as usize);
            for (bit, &hole) in holes.enumerate() {
                *bits |= (part as u32 >> bit & 1) << hole;
            }
        }
    }
    turned
}

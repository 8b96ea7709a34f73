//! The matrix multiplications of Table 2: Cannon's, and one on spread arrays of blocks.
//!
//! Elements are integers modulo 2^64, as long as the paper's, so that products are compared
//! exactly. A result is the blocks of C of each processor.

use super::Size;
use super::node::Node;

/// A block, row by row.
type Block = Vec<u64>;

fn a_at(row: usize, column: usize) -> u64 {
    ((row * 7 + column * 3) % 11) as u64
}

fn b_at(row: usize, column: usize) -> u64 {
    ((row * 5 + column * 2) % 13) as u64
}

/// A block of a matrix whose elements are known.
fn block_of(at: fn(usize, usize) -> u64, row: usize, column: usize, side: usize) -> Block {
    let places = (0..side * side).map(|place| (place / side, place % side));
    places
        .map(|(i, j)| at(row * side + i, column * side + j))
        .collect()
}

/// c += a b
fn multiply_add(c: &mut [u64], a: &[u64], b: &[u64], side: usize) {
    for i in 0..side {
        for k in 0..side {
            let factor = a[i * side + k];
            for j in 0..side {
                let place = &mut c[i * side + j];
                *place = place.wrapping_add(factor.wrapping_mul(b[k * side + j]));
            }
        }
    }
}

/// A block of the product, element by element.
fn product_block(blocks: usize, row: usize, column: usize, side: usize) -> Block {
    let order = blocks * side;
    let places = (0..side * side).map(|place| (place / side, place % side));
    let element = |(i, j)| {
        let terms =
            (0..order).map(|k| a_at(row * side + i, k).wrapping_mul(b_at(k, column * side + j)));
        terms.fold(0, u64::wrapping_add)
    };
    places.map(element).collect()
}

/// Cannon's blocks form a square of this side. With 8 processors each has two of them, one above
/// the other.
const SQUARE: usize = 4;

/// The blocks of a processor, by row and column.
fn cannon_blocks(rank: usize, procs: usize) -> Vec<(usize, usize)> {
    let rows = SQUARE * SQUARE / procs;
    let (row, column) = (rank / SQUARE * rows, rank % SQUARE);
    (row..row + rows).map(|row| (row, column)).collect()
}

/// The processor of a block, and the place of the block among its own.
fn cannon_owner(row: usize, column: usize, procs: usize) -> (usize, usize) {
    let rows = SQUARE * SQUARE / procs;
    (row / rows * SQUARE + column, row % rows)
}

pub(super) fn is_cannon_product(size: &Size, results: &[Vec<u64>]) -> bool {
    let procs = results.len();
    let expected = (0..procs).map(|rank| -> Block {
        let blocks = cannon_blocks(rank, procs).into_iter();
        blocks
            .flat_map(|(row, column)| product_block(SQUARE, row, column, size.elements))
            .collect()
    });
    expected.eq(results.iter().cloned())
}

/// After each multiplication blocks of A go left and blocks of B go up, by bulk stores that are
/// under way meanwhile. An element is one of a block in a step: its time is that of as many
/// multiplications as the paper's blocks have rows, so that a smaller block computes as long for
/// each word that it sends.
pub(super) fn cannon(node: &mut Node<'_>, size: &Size) -> Vec<u64> {
    let (side, procs) = (size.elements, node.procs());
    let words = side * side;
    let own = cannon_blocks(node.rank(), procs);
    // Of A and of B, in this step and in the next.
    let place = |matrix: usize, step: usize, nth: usize| {
        (((matrix * 2 + step % 2) * own.len() + nth) * words) as u32
    };
    let mut product = vec![vec![0; words]; own.len()];
    for (nth, &(row, column)) in own.iter().enumerate() {
        let skewed = (row + column) % SQUARE;
        node.set_words(place(0, 0, nth), &block_of(a_at, row, skewed, side));
        node.set_words(place(1, 0, nth), &block_of(b_at, skewed, column, side));
    }
    node.begin_timing();
    for step in 0..SQUARE {
        if step < SQUARE - 1 {
            for (nth, &(row, column)) in own.iter().enumerate() {
                let (left, left_nth) = cannon_owner(row, (column + SQUARE - 1) % SQUARE, procs);
                let at = place(0, step + 1, left_nth);
                node.bulk_store(left, at, place(0, step, nth), words);
                let (up, up_nth) = cannon_owner((row + SQUARE - 1) % SQUARE, column, procs);
                let at = place(1, step + 1, up_nth);
                node.bulk_store(up, at, place(1, step, nth), words);
            }
        }
        for (nth, product) in product.iter_mut().enumerate() {
            let (a, b) = (
                node.words(place(0, step, nth), words),
                node.words(place(1, step, nth), words),
            );
            multiply_add(product, &a, &b, side);
            node.compute(words as u64);
        }
        if step < SQUARE - 1 {
            node.all_store_sync();
        }
    }
    node.end_timing();
    product.concat()
}

/// Rows of a block of `mm`, whose matrices are of so many blocks.
pub(super) const MM_BLOCK: usize = 8;
const MM_WORDS: usize = MM_BLOCK * MM_BLOCK;

/// The processor of a block, and the place of the block among its own: blocks are dealt out in
/// turn.
fn mm_owner(row: usize, column: usize, blocks: usize, procs: usize) -> (usize, usize) {
    let number = row * blocks + column;
    (number % procs, number / procs)
}

pub(super) fn is_mm_product(size: &Size, results: &[Vec<u64>]) -> bool {
    let (procs, blocks) = (results.len(), size.elements);
    let numbers = |rank| (rank..blocks * blocks).step_by(procs);
    let expected = (0..procs).map(|rank| -> Block {
        numbers(rank)
            .flat_map(|number| product_block(blocks, number / blocks, number % blocks, MM_BLOCK))
            .collect()
    });
    expected.eq(results.iter().cloned())
}

/// The owner of a block of C gets the blocks of A and B that it needs, the next ones while it
/// multiplies. An element is a multiplication of two blocks.
pub(super) fn mm(node: &mut Node<'_>, size: &Size) -> Vec<u64> {
    let (blocks, procs) = (size.elements, node.procs());
    let own: Vec<usize> = (node.rank()..blocks * blocks).step_by(procs).collect();
    let matrix_words = own.len() * MM_WORDS;
    let (a_place, b_place) = (0, matrix_words as u32);
    let buffers = 2 * matrix_words as u32;
    let buffer = |matrix: usize, step: usize| buffers + ((matrix * 2 + step % 2) * MM_WORDS) as u32;
    for (nth, number) in own.iter().enumerate() {
        let (row, column) = (number / blocks, number % blocks);
        let at = (nth * MM_WORDS) as u32;
        node.set_words(a_place + at, &block_of(a_at, row, column, MM_BLOCK));
        node.set_words(b_place + at, &block_of(b_at, row, column, MM_BLOCK));
    }
    let mut product = Vec::new();
    node.begin_timing();
    for number in &own {
        let (row, column) = (number / blocks, number % blocks);
        let mut block = vec![0; MM_WORDS];
        // Processors begin at different places, so that no owner is asked by all at once.
        let begin = node.rank();
        let get = |node: &mut Node<'_>, step: usize| {
            let k = (begin + step) % blocks;
            let (from, nth) = mm_owner(row, k, blocks, procs);
            let at = a_place + (nth * MM_WORDS) as u32;
            node.bulk_get(from, at, buffer(0, step), MM_WORDS);
            let (from, nth) = mm_owner(k, column, blocks, procs);
            let at = b_place + (nth * MM_WORDS) as u32;
            node.bulk_get(from, at, buffer(1, step), MM_WORDS);
        };
        get(node, 0);
        for step in 0..blocks {
            node.sync();
            if step + 1 < blocks {
                get(node, step + 1);
            }
            let (a, b) = (
                node.words(buffer(0, step), MM_WORDS),
                node.words(buffer(1, step), MM_WORDS),
            );
            multiply_add(&mut block, &a, &b, MM_BLOCK);
            node.compute(1);
        }
        product.extend(block);
    }
    node.end_timing();
    product
}
